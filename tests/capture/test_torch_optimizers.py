"""What is known of a program's optimizers: how it works, how much it changes, its steps."""

import gc
import weakref
from typing import Any

import pytest

import pyrometer
from pyrometer.capture import losses
from pyrometer.capture.torch_optimizers import OptimizerNames, facts_of
from pyrometer.record.torch_run import MAX_OPTIMIZERS, OptimizerFacts
from tests.torch_programs import failures, loader, net, seen, train

pytestmark = [pytest.mark.torch, pytest.mark.usefixtures("clean_recorder")]


def _by_name() -> dict[str, OptimizerFacts]:
    return {facts.name: facts for facts in seen().optimizers}


def _implementation(optimizer: Any) -> str | None:
    return facts_of(optimizer, "any").implementation


def _parameters() -> Any:
    return net().parameters()


def test_an_optimizer_has_its_name_size_and_steps() -> None:
    import torch

    model = net()
    with pyrometer.profile():
        train(model, loader(10), torch.optim.Adam(model.parameters()))
    (group,) = seen().groups
    assert seen().optimizers == (
        OptimizerFacts(
            name=group.label,
            kind="Adam",
            implementation="for-loop",
            tensors=4,
            parameters=16 * 32 + 32 + 32 * 4 + 4,
            steps=10,
        ),
    )


def test_steps_are_counted_however_the_loop_goes() -> None:
    import torch

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pyrometer.profile():
        train(model, loader(40), optimizer)
        for _ in range(3):
            model(torch.ones(4, 16)).sum().backward()
            optimizer.step()
        optimizer.step(lambda: model(torch.ones(4, 16)).sum())
    assert _by_name()["SGD"].steps == 44
    assert failures() == []


@pytest.mark.parametrize(
    ("flags", "implementation"),
    [
        ({}, "for-loop"),
        ({"foreach": True}, "foreach"),
        ({"foreach": False}, "for-loop"),
        ({"fused": True}, "fused"),
        ({"fused": False}, "for-loop"),
        ({"foreach": True, "fused": False}, "foreach"),
    ],
)
@pytest.mark.parametrize("kind", ["Adam", "AdamW", "SGD", "Adagrad"])
def test_the_implementation_is_the_one_asked_for(
    kind: str, flags: dict[str, bool], implementation: str
) -> None:
    import torch

    assert _implementation(getattr(torch.optim, kind)(_parameters(), lr=0.1, **flags)) == implementation


@pytest.mark.parametrize("kind", ["Adadelta", "Adamax", "ASGD", "NAdam", "RAdam", "RMSprop", "Rprop"])
def test_those_that_cannot_be_fused_have_two(kind: str) -> None:
    import torch

    make = getattr(torch.optim, kind)
    assert _implementation(make(_parameters())) == "for-loop"
    assert _implementation(make(_parameters(), foreach=True)) == "foreach"
    assert _implementation(make(_parameters(), differentiable=True)) == "for-loop"


@pytest.mark.parametrize("flags", [{}, {"foreach": True}, {"foreach": False}, {"fused": True}])
@pytest.mark.parametrize("kind", ["Adam", "AdamW", "SGD", "Adagrad"])
def test_torch_itself_calls_what_is_told(
    kind: str, flags: dict[str, bool], monkeypatch: pytest.MonkeyPatch
) -> None:
    import sys

    import torch

    model = net()
    optimizer: Any = getattr(torch.optim, kind)(model.parameters(), lr=0.1, **flags)
    told = _implementation(optimizer)
    module = sys.modules["torch.optim.adam" if kind == "AdamW" else f"torch.optim.{kind.lower()}"]
    called = []
    for name, function in list(vars(module).items()):
        for prefix, implementation in (
            ("_single_tensor_", "for-loop"),
            ("_multi_tensor_", "foreach"),
            ("_fused_", "fused"),
        ):
            if name.startswith(prefix) and callable(function):

                def calling(
                    *given: Any, _real: Any = function, _as: str = implementation, **named: Any
                ) -> Any:
                    called.append(_as)
                    return _real(*given, **named)

                monkeypatch.setattr(module, name, calling)
    model(torch.ones(4, 16)).sum().backward()
    optimizer.step()
    assert called == [told]


def test_it_is_told_of_classes_whose_first_optimizer_is_a_watched_one() -> None:
    """Torch puts its hooks on the class of the first one, be it only derived from the one that steps."""
    import torch

    class Mine(torch.optim.Adam):
        pass

    class Own(torch.optim.Adam):
        def step(self, closure: Any = None) -> Any:
            return super().step(closure)

    with pyrometer.profile():
        for kind in (Mine, Own):
            model = net()
            train(model, loader(3), kind(model.parameters(), fused=True))
    implementations = {name: facts.implementation for name, facts in _by_name().items()}
    assert implementations == {"Mine": "fused", "Own": None}
    assert [facts.steps for facts in seen().optimizers] == [3, 3]


def test_torch_is_asked_what_it_takes_by_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """As on a GPU, where it takes another one than on the processor."""
    import sys

    import torch

    for name in ("adam", "sgd"):
        module = sys.modules[f"torch.optim.{name}"]
        monkeypatch.setattr(module, "_default_to_fused_or_foreach", lambda *_, **__: (False, True))
    learning_rate = torch.tensor(0.1)
    assert _implementation(torch.optim.Adam(_parameters())) == "foreach"
    assert _implementation(torch.optim.Adam(_parameters(), foreach=False)) == "for-loop"
    assert _implementation(torch.optim.Adam(_parameters(), lr=learning_rate)) == "for-loop"
    assert _implementation(torch.optim.Adam(_parameters(), lr=learning_rate, capturable=True)) == "foreach"
    assert _implementation(torch.optim.SGD(_parameters(), lr=learning_rate)) == "foreach"


def test_groups_that_differ_have_no_one_implementation() -> None:
    import torch

    first, second = torch.nn.Linear(2, 3), torch.nn.Linear(3, 4)
    optimizer = torch.optim.SGD(
        [
            {"params": first.parameters(), "foreach": True},
            {"params": second.parameters(), "foreach": False},
        ],
        lr=0.1,
    )
    facts = facts_of(optimizer, "SGD")
    assert (facts.implementation, facts.tensors, facts.parameters) == (None, 4, 2 * 3 + 3 + 3 * 4 + 4)


def test_of_a_class_that_is_not_torch_s_no_implementation_is_told() -> None:
    import torch

    class Lion(torch.optim.Optimizer):
        def __init__(self, parameters: Any) -> None:
            super().__init__(parameters, {"lr": 0.1, "foreach": True})

        def step(self, closure: Any = None) -> Any:
            return closure

    class AdamOfMine(torch.optim.Adam):
        pass

    class OtherAdam(torch.optim.Adam):
        def step(self, closure: Any = None) -> Any:
            return closure

    assert _implementation(Lion(_parameters())) is None
    assert _implementation(AdamOfMine(_parameters(), fused=True)) == "fused"
    assert _implementation(OtherAdam(_parameters(), fused=True)) is None
    assert _implementation(torch.optim.LBFGS(_parameters())) is None


def test_two_that_live_at_once_are_told_apart_as_in_labels() -> None:
    import torch

    model, other = net(), torch.nn.Linear(16, 2)
    one, two = torch.optim.SGD(model.parameters(), lr=0.1), torch.optim.SGD(other.parameters(), lr=0.1)
    with pyrometer.profile():
        for _ in range(3):
            (model(torch.ones(4, 16)).sum() + other(torch.ones(4, 16)).sum()).backward()
            one.step()
            two.step()
    assert [(facts.name, facts.parameters, facts.steps) for facts in seen().optimizers] == [
        ("SGD", 16 * 32 + 32 + 32 * 4 + 4, 3),
        ("SGD (2)", 34, 3),
    ]
    assert [group.label for group in seen().groups] == ["SGD + SGD (2)"]


def test_an_optimizer_is_not_kept_alive_and_stays_known() -> None:
    import torch

    model = net()
    optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.1)
    gone = weakref.ref(optimizer)
    with pyrometer.profile():
        train(model, loader(5), optimizer)
        del optimizer
        gc.collect()
        assert gone() is None
    assert _by_name()["SGD"].steps == 5


def test_one_made_anew_goes_on_under_the_name_with_what_it_is() -> None:
    import torch

    model = net()
    with pyrometer.profile():
        for foreach in (False, True):
            optimizer: Any = torch.optim.SGD(model.parameters(), lr=0.1, foreach=foreach)
            train(model, loader(5), optimizer)
            del optimizer
            gc.collect()
    (facts,) = seen().optimizers
    assert (facts.name, facts.implementation, facts.steps) == ("SGD", "foreach", 10)


def test_an_optimizer_that_answers_nonsense_still_trains_and_is_a_loss() -> None:
    import torch

    class Odd(torch.optim.SGD):
        hidden = False

        def __getattribute__(self, name: str) -> Any:
            if name == "param_groups" and type(self).hidden:
                raise RuntimeError("not now")
            return super().__getattribute__(name)

        def step(self, closure: Any = None) -> Any:
            type(self).hidden = False
            result = super().step(closure)
            type(self).hidden = True
            return result

        def zero_grad(self, set_to_none: bool = True) -> None:
            type(self).hidden = False
            super().zero_grad(set_to_none)

    model = net()
    with pyrometer.profile():
        train(model, loader(3), Odd(model.parameters(), lr=0.1))
    (facts,) = seen().optimizers
    assert facts == OptimizerFacts(name="Odd", kind="Odd", steps=3)
    assert ("torch", "an optimizer does not say what it changes: RuntimeError: not now") in losses.failures


def test_a_lazy_parameter_has_no_elements_yet() -> None:
    import torch

    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.LazyLinear(5))
    facts = facts_of(torch.optim.SGD(model.parameters(), lr=0.1), "SGD")
    assert (facts.tensors, facts.parameters) == (4, 9)


def test_no_more_optimizers_are_kept_than_a_run_may_have() -> None:
    import torch

    names = OptimizerNames()
    living = [torch.optim.SGD(torch.nn.Linear(1, 1).parameters()) for _ in range(MAX_OPTIMIZERS + 3)]
    names.count_steps([names.name_of(optimizer) for optimizer in living])
    assert len(names.records()) == MAX_OPTIMIZERS
    reason = "more optimizers than are kept apart: no more is known of the others"
    assert losses.failures["torch", reason] == 3


def test_a_reset_counts_steps_anew() -> None:
    import torch

    model = net()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    with pyrometer.profile():
        train(model, loader(5), optimizer)
        pyrometer.reset()
        assert seen().optimizers == ()
        train(model, loader(2), optimizer)
    assert _by_name()["SGD"].steps == 2
