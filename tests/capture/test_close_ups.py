"""Which steps are looked at closely."""

from pyrometer.capture.close_ups import NOTHING, SIZES, SIZES_AND_BACKWARD, CloseUps


def test_the_first_step_gives_sizes_and_the_second_everything() -> None:
    close_ups = CloseUps()
    assert [close_ups.next_detail() for _ in range(2)] == [SIZES, SIZES_AND_BACKWARD]


def test_one_step_of_each_eight_is_taken_and_later_of_each_thirty_two() -> None:
    close_ups = CloseUps()
    details = [close_ups.next_detail() for _ in range(64 + 32 * 20)]
    taken = [number for number, detail in enumerate(details) if detail == SIZES_AND_BACKWARD]
    assert sorted({number // 8 for number in taken if number < 64}) == list(range(8))
    later = [number // 32 for number in taken if number >= 96]
    assert later == list(range(3, 22))
    assert details.count(NOTHING) == len(details) - len(taken) - 1


def test_a_loop_of_any_period_is_not_always_met_at_the_same_place() -> None:
    close_ups = CloseUps()
    taken = [number for number in range(32 * 200) if close_ups.next_detail() == SIZES_AND_BACKWARD]
    assert len({number % 32 for number in taken}) == 32
