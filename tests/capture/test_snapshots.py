"""From a recorder's snapshot to values of the record."""

from typing import Any

import pytest

from pyrometer.capture.snapshots import losses_in, strands_in
from pyrometer.record.values import ScopeNode, Strand, StrandParent

pytestmark = pytest.mark.usefixtures("clean_recorder")

NO_LOSSES = dict.fromkeys(
    ("places", "depth", "threads", "out_of_order", "unmatched_exits", "unseen_suspensions"), 0
)


def test_strands_and_nodes_keep_everything() -> None:
    outer = (-1, "outer", 2, 0, 70, 30, 40, 0, -1, ((30, 1), (40, 1)), 4_096, 3, 500, 7, 90, -20, -1, -1, 60)
    inner = (0, "inner", 0, 1, 20, -1, -1, 5, 15, (), -1, -1, -1, -1, -1, 0, 64, 2, -1)
    snapshot: dict[str, Any] = {
        "strands": [(11, "main", None, 1, [outer]), (12, "worker", (0, 0), 3, [outer, inner])]
    }
    node = ScopeNode(
        name="outer",
        calls=2,
        total_ns=70,
        min_ns=30,
        max_ns=40,
        allocated_bytes=4_096,
        allocations=3,
        heap_bytes=500,
        heap_allocations=7,
        freed_bytes=90,
        kept_bytes=-20,
        peak_bytes=60,
        buckets=((30, 1), (40, 1)),
    )
    still_open = ScopeNode(
        name="inner",
        parent=0,
        open_calls=1,
        total_ns=20,
        suspended_ns=5,
        wall_ns=15,
        python_bytes=64,
        python_allocations=2,
    )
    assert strands_in(snapshot) == (
        Strand(thread_id=11, thread_name="main", nodes=(node,)),
        Strand(
            thread_id=12,
            thread_name="worker",
            parent=StrandParent(strand=0, node=0),
            threads=3,
            nodes=(node, still_open),
        ),
    )


def test_what_was_not_lost_is_not_mentioned() -> None:
    assert losses_in({"losses": NO_LOSSES}) == ()


def test_each_kind_of_loss_has_its_words() -> None:
    losses = losses_in({"losses": dict.fromkeys(NO_LOSSES, 3)})
    assert [loss.count for loss in losses] == [3] * len(NO_LOSSES)
    assert len({loss.reason for loss in losses}) == len(NO_LOSSES)
    assert "20,000" in losses[0].reason


def test_what_the_tree_of_modules_could_not_keep_is_a_loss_of_its_own() -> None:
    (loss,) = losses_in({"losses": NO_LOSSES}, {**NO_LOSSES, "places": 7})
    assert (loss.collector, loss.count) == ("torch", 7)
    assert "modules" in loss.reason
    assert "(other)" in loss.reason
