"""The backward pass by module: which node is whose, on a make-believe graph with known costs."""

import threading
from types import ModuleType
from typing import Any

import pytest

from tests.recorders import Clock, Path, assert_conserved, losses, seen
from tests.watches import NUMBERS, Tensor, Watched


@pytest.fixture
def watched(implementation: ModuleType, clock: Clock) -> Watched:
    watched = Watched(implementation, clock)
    watched.watch.detail = 1
    return watched


def backward_part(watched: Watched) -> dict[Path, int]:
    """Total time by path, of what stands below the backward phase."""
    return {path[1:]: ns for path, ns in watched.totals().items() if path[0] == "backward" and path[1:]}


def test_each_module_has_the_time_of_its_own_nodes(watched: Watched) -> None:
    a, b, c = (watched.layer(f"net.{name}", ns) for name, ns in (("a", 1), ("b", 10), ("c", 100)))
    net = watched.module("net", lambda value: c(b(a(value))))
    watched.backward(net(Tensor()))
    assert backward_part(watched) == {
        ("net",): 111,
        ("net", "net.a"): 1,
        ("net", "net.b"): 10,
        ("net", "net.c"): 100,
    }
    assert (watched.watch.timed_backward_passes, watched.watch.timed_backward_ns) == (1, 111)
    assert_conserved(watched.recorder)


def test_what_is_worked_out_between_modules_is_their_parents(watched: Watched) -> None:
    a, b = watched.layer("net.a", 1), watched.layer("net.b", 10)

    def forward(value: Tensor) -> Tensor:
        between = watched.op(a(value), backward_ns=100)
        return watched.op(b(between), backward_ns=1_000)

    watched.backward(watched.op(watched.module("net", forward)(Tensor()), backward_ns=10_000))
    assert backward_part(watched) == {("net",): 1_111, ("net", "net.a"): 1, ("net", "net.b"): 10}
    assert watched.totals()["backward",] == 11_111


def test_a_residual_connection(watched: Watched) -> None:
    a, b = watched.layer("net.a", 1), watched.layer("net.b", 10)

    def forward(value: Tensor) -> Tensor:
        first = a(value)
        return watched.op(first, b(first), backward_ns=100)

    watched.backward(watched.module("net", forward)(Tensor()))
    assert backward_part(watched) == {("net",): 111, ("net", "net.a"): 1, ("net", "net.b"): 10}


def test_containers_have_the_sum_of_what_they_hold(watched: Watched) -> None:
    a, b, c = (watched.layer(f"net.block.{name}", ns) for name, ns in (("a", 1), ("b", 10), ("c", 100)))
    block = watched.module("net.block", lambda value: c(b(a(value))))
    head = watched.layer("net.head", 1_000)
    net = watched.module("net", lambda value: head(block(value)))
    watched.backward(net(Tensor()))
    assert backward_part(watched)["net", "net.block"] == 111
    assert backward_part(watched)["net",] == 1_111


def test_a_module_called_twice_has_both_parts(watched: Watched) -> None:
    shared, other = watched.layer("net.shared", 1), watched.layer("net.other", 10)
    net = watched.module("net", lambda value: shared(other(shared(value))))
    watched.backward(net(Tensor()))
    assert backward_part(watched) == {("net",): 12, ("net", "net.shared"): 2, ("net", "net.other"): 10}
    assert seen(watched.recorder)["backward", "net", "net.shared"].calls == 2


def test_a_module_that_gives_back_what_it_got_has_no_part(watched: Watched) -> None:
    a, same = watched.layer("net.a", 1), watched.module("net.same", lambda value: value)
    watched.backward(watched.module("net", lambda value: same(a(value)))(Tensor()))
    assert backward_part(watched) == {("net",): 1, ("net", "net.a"): 1}


def test_a_tensor_that_was_made_before_the_model_is_not_the_models(watched: Watched) -> None:
    before = watched.op(backward_ns=100)
    a = watched.layer("net.a", 1)
    watched.backward(watched.module("net", lambda: a(before))())
    assert backward_part(watched) == {("net",): 1, ("net", "net.a"): 1}
    assert watched.totals()["backward",] == 101


@pytest.mark.parametrize("pack", [lambda t: [t], lambda t: {"out": (t,)}, lambda t: (3, {"out": t})])
def test_tensors_in_containers_are_marked(watched: Watched, pack: Any) -> None:
    made: list[Tensor] = []

    def make(value: Tensor) -> Any:
        made.append(watched.op(value, backward_ns=1))
        return pack(made[0])

    a = watched.module("net.a", make)
    net = watched.module("net", lambda value: (a(value), watched.op(made[0], backward_ns=10))[1])
    watched.backward(net(Tensor()))
    assert backward_part(watched) == {("net",): 11, ("net", "net.a"): 1}


def test_inputs_are_marked_by_keyword_too(watched: Watched) -> None:
    before = watched.op(backward_ns=5)
    a = watched.module("a", lambda *, value: watched.op(value, backward_ns=1))
    watched.backward(a(value=before))
    assert backward_part(watched) == {("a",): 1}
    assert watched.totals()["backward",] == 6


def test_a_backward_pass_over_the_same_graph_again_is_timed_again(watched: Watched) -> None:
    result = watched.layer("a", 3)(Tensor())
    watched.backward(result)
    watched.backward(result)
    assert backward_part(watched) == {("a",): 6}
    assert watched.watch.timed_backward_passes == 2


def test_only_in_steps_chosen_for_it(watched: Watched) -> None:
    a = watched.layer("a", 3)
    for detail in (0, 2):
        watched.watch.detail = detail
        result = a(Tensor())
        assert result.grad_fn.hooks == []
        watched.backward(result)
    assert backward_part(watched) == {}
    assert watched.watch.timed_backward_passes == 0


def test_without_gradients_nothing_is_marked(watched: Watched) -> None:
    value = watched.op()
    watched.tracks_gradients = False
    watched.module("a", lambda value: value)(value)
    assert value.grad_fn is not None
    assert value.grad_fn.hooks == []


def test_a_node_is_marked_once_a_step(watched: Watched) -> None:
    a = watched.layer("a", 3)
    same = watched.module("same", lambda value: value)
    result = same(same(a(Tensor())))
    assert len(result.grad_fn.hooks) == 1
    watched.watch.detail = 1  # the next step
    same(result)
    assert len(result.grad_fn.hooks) == 2


def test_modules_called_again_by_the_backward_pass_are_not_marked(watched: Watched) -> None:
    """As with checkpointing: the node that stands for the block calls its modules again."""
    a = watched.layer("net.a", 1)

    def recompute(_gradients: object) -> None:
        assert a(Tensor()).grad_fn.hooks == []
        watched.clock.spend(5)

    def forward(value: Tensor) -> Tensor:
        result = watched.op(value, backward_ns=7)
        assert result.grad_fn is not None
        return result

    net = watched.module("net", forward)
    result = net(Tensor())
    result.grad_fn.register_prehook(recompute)
    watched.backward(result)
    assert backward_part(watched) == {
        ("net",): 12,
        ("net", "recomputed forward"): 0,
        ("net", "recomputed forward", "net.a"): 0,
    }


def test_a_backward_pass_that_raises_is_left_and_not_counted(watched: Watched) -> None:
    def fail(_gradients: object) -> None:
        raise KeyError("theirs")

    b = watched.layer("net.b", 10)
    result = watched.module("net", b)(Tensor())
    result.grad_fn.register_prehook(fail)
    with pytest.raises(KeyError, match="theirs"):
        watched.backward(result)
    assert watched.watch.timed_backward_passes == 0
    watched.phased("data", watched.spends(5))()
    assert ("data",) in watched.totals()
    assert losses(watched.recorder) == {}


def test_a_pass_inside_a_pass_belongs_to_it(watched: Watched) -> None:
    a, b = watched.layer("a", 1), watched.layer("b", 10)
    inner = b(Tensor())
    outer = a(Tensor())
    outer.grad_fn.register_prehook(lambda _: watched.backward(inner))
    watched.backward(outer)
    # The inner one's module is followed like any other; what comes after it is not known.
    assert backward_part(watched) == {("a",): 0, ("b",): 11}
    assert (watched.watch.timed_backward_passes, watched.watch.timed_backward_ns) == (1, 11)


def test_a_pass_is_timed_though_the_program_has_named_backward_itself(watched: Watched) -> None:
    result = watched.layer("a", 3)(Tensor())
    token = watched.watch.enter(NUMBERS["backward"], True)
    watched.backward(result)
    watched.watch.leave(token)
    assert backward_part(watched) == {("a",): 3}
    assert watched.watch.timed_backward_passes == 1


def test_a_pass_on_a_thread_that_is_not_watched_opens_nothing(watched: Watched) -> None:
    """As on the thread of a GPU: marks are met, but the pass began elsewhere."""
    result = watched.layer("a", 3)(Tensor())

    def device_thread() -> None:
        for hook in result.grad_fn.hooks:
            hook(())

    thread = threading.Thread(target=device_thread)
    thread.start()
    thread.join()
    assert len(result.grad_fn.hooks) == 1
    assert len(watched.recorder.snapshot()["strands"]) == 1


def test_nodes_of_two_threads_with_one_number_are_both_marked(watched: Watched) -> None:
    results = [watched.layer("a", 3)(Tensor())]
    watched.nodes_made = 0
    thread = threading.Thread(target=lambda: results.append(watched.layer("b", 3)(Tensor())))
    thread.start()
    thread.join()
    assert [result.grad_fn.number for result in results] == [0, 0]
    assert [len(result.grad_fn.hooks) for result in results] == [1, 1]


@pytest.mark.parametrize("switch", ["stop", "reset", "recorder"])
def test_all_is_well_when_something_is_switched_during_the_pass(watched: Watched, switch: str) -> None:
    def act(_gradients: object) -> None:
        watched.clock.spend(1)
        if switch == "stop":
            watched.watch.stop()
        elif switch == "reset":
            watched.watch.reset()
        else:
            watched.recorder.stop()
            watched.recorder.start()

    a, b = watched.layer("net.a", 10), watched.layer("net.b", 100)
    result = watched.module("net", lambda value: b(a(value)))(Tensor())
    result.grad_fn.register_prehook(act)
    watched.backward(result)
    watched.watch.start()
    watched.phased("data", watched.spends(5))()
    assert watched.totals()["data",] == 5
    if switch == "recorder":
        # What the recorder had left when it stopped is not left again, and what follows stands alone.
        node = seen(watched.recorder)["backward", "net", "net.b"]
        assert (node.calls, node.open_calls, node.total_ns) == (0, 1, 1)
        assert watched.totals()["net", "net.a"] == 10
        assert losses(watched.recorder) == {}
        assert watched.watch.timed_backward_passes == 1
    else:
        assert watched.watch.timed_backward_passes == 0
        # The next mark is not followed any more.
        assert backward_part(watched) == {("net",): 111, ("net", "net.b"): 111}


def test_marks_outlive_the_watch_they_were_set_by(implementation: ModuleType, clock: Clock) -> None:
    watched = Watched(implementation, clock)
    watched.watch.detail = 1
    result = watched.layer("a", 3)(Tensor())
    hooks = result.grad_fn.hooks
    del watched, result
    assert [hook(()) for hook in hooks] == [None]


class Failing(Tensor):
    """A tensor that cannot say where it came from."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    @property
    def grad_fn(self) -> Any:  # type: ignore[override]
        raise self.error


def test_a_tensor_that_cannot_be_marked_is_noted_and_the_others_are(watched: Watched) -> None:
    good = watched.op(backward_ns=5)
    net = watched.module("net", watched.spends(1, "result"))
    assert net(Failing(ValueError("no graph")), good) == "result"
    assert [str(error) for error in watched.failures] == ["no graph"]
    assert good.grad_fn is not None
    assert len(good.grad_fn.hooks) == 1


def test_what_a_signal_handler_raises_while_marks_are_set_is_the_programs(watched: Watched) -> None:
    same = watched.module("same", lambda: Failing(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        same()
    with pytest.raises(KeyboardInterrupt):
        watched.module("net", watched.spends(1))(Failing(KeyboardInterrupt()))
    watched.taken()
    watched.clock.spend(1)
    assert watched.taken() == {"other": 1}


def test_many_nodes_are_marked(watched: Watched) -> None:
    layers = [watched.layer(f"net.{number}", 1) for number in range(1_000)]

    def forward(value: Tensor) -> Tensor:
        for layer in layers:
            value = layer(value)
        return value

    watched.backward(watched.module("net", forward)(Tensor()))
    part = backward_part(watched)
    assert part["net",] == 1_000
    assert all(part["net", f"net.{number}"] == 1 for number in range(1_000))
