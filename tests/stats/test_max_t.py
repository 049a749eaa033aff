"""Which nodes changed, with one chance of error for all."""

import random

from pyrometer.stats.max_t import max_t_p_values


def test_the_one_that_changed_stands_out() -> None:
    noise = random.Random(5)
    rows = [[noise.gauss(0, 1) for _ in range(20)] for _ in range(30)]
    rows[7] = [value + 3 for value in rows[7]]
    found = max_t_p_values(rows)
    assert found[7] < 0.001
    assert min(p for node, p in enumerate(found) if node != 7) > 0.01


def test_less_is_found_as_well_as_more() -> None:
    assert max_t_p_values([[-2.0, -2.1, -1.9] * 4]) == [1 / 2**11]


def test_a_node_without_any_difference_is_not_told() -> None:
    assert max_t_p_values([[0.0] * 10, [1.0] * 10]) == [1.0, 1 / 2**9]


def test_nothing_measured_tells_nothing() -> None:
    assert max_t_p_values([]) == []
    assert max_t_p_values([[], []]) == [1.0, 1.0]


def test_one_error_in_a_hundred_for_all_nodes_together() -> None:
    noise = random.Random(11)
    told = 0
    for _ in range(400):
        common = [noise.gauss(0, 1) for _ in range(10)]
        rows = [[shared + noise.gauss(0, 1) for shared in common] for _ in range(10)]
        told += min(max_t_p_values(rows)) <= 0.01
    # 1 % of 400 is 4; above 11 is less likely than 1 in 1,000.
    assert told <= 11
