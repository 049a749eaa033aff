"""Calls of modules: a tree by name, with root calls as phases."""

import gc
import os
import sys
from collections.abc import Iterator
from types import ModuleType

import pytest

from tests.recorders import Clock, assert_conserved, seen
from tests.watches import NUMBERS, Watched, chain


@pytest.fixture
def watched(implementation: ModuleType, clock: Clock) -> Watched:
    return Watched(implementation, clock)


def test_a_root_call_is_the_forward_phase_and_its_modules_stand_below(watched: Watched) -> None:
    assert chain(watched, "net", "net.a", "net.a.b")() == "result"
    watched.clock.spend(5)
    assert watched.taken() == {"forward": 3, "other": 5}
    assert watched.totals() == {
        ("forward",): 3,
        ("forward", "net"): 3,
        ("forward", "net", "net.a"): 2,
        ("forward", "net", "net.a", "net.a.b"): 1,
    }


def test_root_calls_are_told_of_with_what_they_got_and_gave(watched: Watched) -> None:
    net = watched.module("net", watched.spends(4, "result"))
    assert net(1, 2, key=3) == "result"
    net()
    assert watched.told == [
        ("described", "net", None),
        ("begun", "net", (1, 2), {"key": 3}, True),
        ("ended", "net", "result", 4, False),
        ("begun", "net", (), None, True),
        ("ended", "net", "result", 4, False),
    ]


def test_a_module_is_described_once_with_the_module_that_calls_it(watched: Watched) -> None:
    net = chain(watched, "net", "net.a")
    net()
    net()
    described = [told for told in watched.told if told[0] == "described"]
    assert described == [("described", "net", None), ("described", "net.a", "net")]


def test_time_in_callbacks_is_charged_as_by_a_timer_around_the_call(watched: Watched) -> None:
    watched.module.__call__ = watched.module_call(
        watched.module.call,
        describe=watched.spends(1, ("net", False)),
        root_begun=watched.spends(2),
        root_ended=watched.spends(4),
    )
    net = watched.module("net", watched.spends(8))
    net()
    assert watched.watch.hook_ns == 7
    assert watched.taken() == {"forward": 14, "other": 1}  # who the module is, is asked before


def test_a_call_without_gradients_stands_apart(watched: Watched) -> None:
    watched.tracks_gradients = False
    chain(watched, "net", "net.a")()
    assert watched.taken() == {"forward": 2}
    assert set(watched.totals()) == {
        ("forward without gradients",),
        ("forward without gradients", "net"),
        ("forward without gradients", "net", "net.a"),
    }


def test_a_loss_called_by_itself_is_the_loss_phase_and_not_told_of(watched: Watched) -> None:
    watched.module("criterion", watched.spends(3), is_loss=True)()
    assert watched.taken() == {"loss": 3}
    assert watched.totals() == {("loss",): 3, ("loss", "criterion"): 3}
    assert watched.told == [("described", "criterion", None)]


def test_a_loss_called_by_a_module_is_part_of_it(watched: Watched) -> None:
    criterion = watched.module("net.criterion", watched.spends(3), is_loss=True)
    watched.module("net", criterion)()
    assert watched.taken() == {"forward": 3}


def test_a_module_called_in_a_phase_that_forward_keeps_is_part_of_that(watched: Watched) -> None:
    net = chain(watched, "net")
    watched.phased("data", net)()
    assert watched.taken() == {"data": 1}
    assert watched.totals() == {("data",): 1, ("data", "net"): 1}
    assert watched.told == [("described", "net", None)]


def test_a_closure_that_calls_a_module_in_an_optimizers_step_is_forward(watched: Watched) -> None:
    token = watched.watch.enter(NUMBERS["optimizer"])
    watched.clock.spend(2)
    chain(watched, "net")()
    watched.watch.leave(token)
    assert watched.taken() == {"optimizer": 2, "forward": 1}
    assert watched.totals()["optimizer", "forward", "net"] == 1


def test_a_module_called_again_by_the_backward_pass_stands_apart(watched: Watched) -> None:
    net = chain(watched, "net", "net.a")
    watched.phased("backward", net)()
    assert watched.taken() == {"backward": 2}
    assert ("backward", "recomputed forward", "net", "net.a") in watched.totals()
    assert [told for told in watched.told if told[0] != "described"] == []


def test_it_does_so_in_a_phase_the_program_has_named(watched: Watched) -> None:
    token = watched.watch.enter(watched.watch.phase("mine"), True)
    watched.phased("backward", chain(watched, "net"))()
    watched.watch.leave(token)
    assert ("mine", "backward", "recomputed forward", "net") in watched.totals()
    assert [told for told in watched.told if told[0] != "described"] == []


def test_a_root_call_is_told_of_though_the_program_has_named_forward_itself(watched: Watched) -> None:
    token = watched.watch.enter(NUMBERS["forward"], True)
    watched.clock.spend(5)
    chain(watched, "net")()
    watched.watch.leave(token)
    assert watched.taken() == {"forward": 6}
    assert watched.totals() == {("forward",): 6, ("forward", "net"): 1}
    assert [told[0] for told in watched.told] == ["described", "begun", "ended"]


def test_a_module_shared_by_two_stands_in_both_under_one_name(watched: Watched) -> None:
    shared = watched.module("net.a.shared", watched.spends(3))
    one, two = watched.module("net.a", shared), watched.module("net.b", shared)
    watched.module("net", lambda: (one(), two(), shared()))()
    totals = watched.totals()
    assert totals["forward", "net", "net.a", "net.a.shared"] == 3
    assert totals["forward", "net", "net.b", "net.a.shared"] == 3
    assert totals["forward", "net", "net.a.shared"] == 3
    assert_conserved(watched.recorder)


def test_a_module_made_at_the_address_of_one_that_died_is_described_anew(watched: Watched) -> None:
    addresses = []
    for number in range(200):
        module = watched.module(f"module {number}", watched.spends(1))
        addresses.append(id(module))
        module()
        del module
        gc.collect(0)
    # A sanitizer, which needs this allocator, gives no address out again.
    if os.environ.get("PYTHONMALLOC") != "malloc":
        assert len(set(addresses)) < 200, "no address was used twice: nothing was tested"
    nodes = seen(watched.recorder)
    assert {nodes["forward", f"module {number}"].calls for number in range(200)} == {1}


def test_many_living_modules_are_told_apart(watched: Watched) -> None:
    modules = [watched.module(f"module {number}", watched.spends(number)) for number in range(500)]
    for module in [*modules, *modules]:
        module()
    nodes = seen(watched.recorder)
    assert all(nodes["forward", f"module {number}"].total_ns == 2 * number for number in range(500))
    assert sum(told[0] == "described" for told in watched.told) == 500


@pytest.fixture
def deep_stack() -> Iterator[None]:
    """Room for the frames of ours that the twin adds."""
    before = sys.getrecursionlimit()
    sys.setrecursionlimit(5_000)
    yield
    sys.setrecursionlimit(before)


@pytest.mark.usefixtures("deep_stack")
def test_recursion_through_modules_deeper_than_is_kept(watched: Watched) -> None:
    names = [f"layer {number}" for number in range(300)]
    watched.watch.detail = 1
    chain(watched, *names)()
    assert watched.totals()["forward", *names] == 1
    assert watched.totals()["forward", "layer 0"] == 300
    parents = {told[1]: told[2] for told in watched.told if told[0] == "described"}
    assert parents["layer 255"] == "layer 254"
    # Of the deeper ones only that they are below is known.
    assert parents["layer 299"] == "layer 255"
    assert watched.taken() == {"forward": 300}
    chain(watched, "after")()
    assert watched.totals()["forward", "after"] == 1


def test_a_module_that_calls_itself(watched: Watched) -> None:
    def forward(left: int) -> None:
        watched.clock.spend(1)
        if left:
            net(left - 1)

    net = watched.module("net", forward)
    net(3)
    assert watched.totals()["forward", "net", "net", "net", "net"] == 1
    assert watched.totals()["forward",] == 4
