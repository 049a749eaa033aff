"""Which steps are looked at closely."""

import pytest

import pyrometer
from pyrometer.capture import torch_watch
from pyrometer.capture.close_ups import NOTHING, SIZES, SIZES_AND_BACKWARD, CloseUps


def test_the_first_step_gives_sizes_and_the_second_everything() -> None:
    close_ups = CloseUps()
    assert [close_ups.next_detail() for _ in range(2)] == [SIZES, SIZES_AND_BACKWARD]


def test_one_step_of_each_eight_is_taken_and_later_of_each_sixty_four() -> None:
    close_ups = CloseUps()
    details = [close_ups.next_detail() for _ in range(64 * 21)]
    taken = [number for number, detail in enumerate(details) if detail == SIZES_AND_BACKWARD]
    assert sorted({number // 8 for number in taken if number < 64}) == list(range(8))
    later = [number // 64 for number in taken if number >= 128]
    assert later == list(range(2, 21))
    assert details.count(NOTHING) == len(details) - len(taken) - 1


def test_a_loop_of_any_period_is_not_always_met_at_the_same_place() -> None:
    close_ups = CloseUps()
    taken = [number for number in range(64 * 400) if close_ups.next_detail() == SIZES_AND_BACKWARD]
    assert len({number % 64 for number in taken}) == 64


def test_a_step_that_two_threads_have_counted_at_once_does_not_end_the_close_ups() -> None:
    close_ups = CloseUps()
    close_ups.next_detail()
    close_ups._steps += 1  # the second step's number was never asked for
    assert close_ups.steps_left >= 0
    assert close_ups.next_detail() == SIZES_AND_BACKWARD


@pytest.mark.torch
@pytest.mark.usefixtures("clean_recorder")
@pytest.mark.parametrize("seed", [0, 1])
def test_every_step_chosen_is_looked_at_although_the_core_follows_the_loop_by_itself(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    import torch
    from torch.utils.data import DataLoader, TensorDataset

    monkeypatch.setattr(torch_watch, "CloseUps", lambda: CloseUps(seed))
    pyrometer.reset()  # a watch that is there already takes new ones
    steps = 200
    model = torch.nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pyrometer.profile():
        for (points,) in DataLoader(TensorDataset(torch.ones(steps, 4))):
            optimizer.zero_grad()
            model(points).sum().backward()
            optimizer.step()
    torch_results = pyrometer.results().torch
    assert torch_results is not None
    # The first step is looked at before its kind is known.
    chosen = CloseUps(seed)
    expected = sum(chosen.next_detail() == SIZES_AND_BACKWARD for _ in range(steps - 1))
    assert torch_results.modules.timed_backward_passes == expected
    assert torch_results.modules.backward_passes == steps
