"""What modules are called, how large they are, and what their calls do."""

from typing import Any

import pytest

from pyrometer.capture.torch_modules import ModuleNames
from pyrometer.record.torch_run import Module

pytestmark = pytest.mark.torch


def _records(names: ModuleNames) -> dict[str, Module]:
    return {record.name: record for record in names.records()}


def test_a_root_module_is_called_what_the_program_calls_it() -> None:
    import torch

    names = ModuleNames()
    model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    assert names.describe(model, None) == ("model", False)
    assert names.describe(model[0], model) == ("model.0", False)


def test_an_attribute_of_self_gives_the_name() -> None:
    import torch

    class Trainer:
        def __init__(self) -> None:
            self.network = torch.nn.Linear(2, 3)

        def fit(self, names: ModuleNames) -> str:
            return names.describe(self.network, None)[0]

    assert Trainer().fit(ModuleNames()) == "network"


def test_a_module_without_a_name_has_that_of_its_class() -> None:
    import torch

    assert ModuleNames().describe([torch.nn.Linear(2, 3)][0], None)[0] == "Linear"


def test_two_models_of_one_name_that_live_at_once_are_told_apart() -> None:
    import torch

    names = ModuleNames()

    def seen(model: Any) -> str:
        return names.describe(model, None)[0]

    first, second, third = torch.nn.Linear(2, 3), torch.nn.Linear(2, 3), torch.nn.Bilinear(2, 2, 2)
    assert [seen(first), seen(second), seen(third)] == ["model", "model (Linear)", "model (Bilinear)"]
    assert seen(first) == "model"


def test_a_model_made_anew_goes_on_under_its_name() -> None:
    import torch

    names = ModuleNames()
    for _ in range(3):
        model = torch.nn.Linear(2, 3)
        assert names.describe(model, None)[0] == "model"
        del model


def test_a_module_put_in_later_is_found_under_its_parent() -> None:
    import torch

    names = ModuleNames()
    model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    names.describe(model, None)
    model.append(torch.nn.ReLU())
    assert names.describe(model[1], model)[0] == "model.1"
    assert names.describe(torch.nn.Tanh(), model)[0] == "model.Tanh"


def test_losses_are_known_by_torch_s_class_or_their_name() -> None:
    import torch

    class FocalLoss(torch.nn.Module):
        pass

    names = ModuleNames()
    criterion, own, model = torch.nn.MSELoss(), FocalLoss(), torch.nn.Linear(1, 1)
    assert [names.describe(module, None)[1] for module in (criterion, own, model)] == [True, True, False]


def test_the_program_s_models_are_not_kept_alive() -> None:
    import gc
    import weakref

    import torch

    names = ModuleNames()
    model = torch.nn.Sequential(torch.nn.Linear(2, 3))
    names.describe(model, None)
    names.learn(model)
    names.measure(model, "model", (torch.ones(1, 2),), None, model(torch.ones(1, 2)))
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


def test_sizes_are_those_of_the_parameters_shared_ones_once() -> None:
    import torch

    class Tied(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embed = torch.nn.Embedding(10, 4)
            self.head = torch.nn.Linear(4, 10, bias=False)
            self.head.weight = self.embed.weight

    names = ModuleNames()
    model = Tied()
    names.describe(model, None)
    names.learn(model)
    records = _records(names)
    assert {name: record.parameters for name, record in records.items()} == {
        "model": 40,
        "model.embed": 40,
        "model.head": 40,
    }
    assert records["model"].parameter_bytes == 160


def test_a_module_has_the_one_floating_type_of_its_parameters() -> None:
    import torch
    from torch import nn

    class Steps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.count = nn.Parameter(torch.zeros(3, dtype=torch.long), requires_grad=False)

    names = ModuleNames()
    model = nn.ModuleDict(
        {
            "in_single": nn.Sequential(nn.Linear(2, 3), nn.ReLU()),
            "in_double": nn.Linear(2, 3).double(),
            "in_half": nn.Linear(2, 3).bfloat16(),
            "steps": Steps(),
        }
    )
    names.describe(model, None)
    names.learn(model)
    assert {name: record.dtype for name, record in _records(names).items()} == {
        "model": "mixed",
        "model.in_single": "float32",
        "model.in_single.0": "float32",
        "model.in_single.1": None,
        "model.in_double": "float64",
        "model.in_half": "bfloat16",
        "model.steps": None,
    }


def test_a_lazy_module_has_its_type_once_it_has_its_shape() -> None:
    import torch

    names = ModuleNames()
    model = torch.nn.Sequential(torch.nn.LazyLinear(3, dtype=torch.float64), torch.nn.LazyLinear(2))
    names.describe(model, None)
    model[0](torch.ones(1, 2, dtype=torch.float64))
    names.learn(model)
    assert _records(names)["model"].dtype == "float64"


def test_the_type_of_the_inputs_is_that_of_the_last_measured_call() -> None:
    import torch

    names = ModuleNames()
    model = torch.nn.Identity()
    single, double, tokens = torch.ones(2), torch.ones(2, dtype=torch.float64), torch.ones(2).long()
    given: list[tuple[tuple[Any, ...], dict[str, Any] | None]] = [
        ((single,), None),
        ((double, tokens), {"mask": tokens}),
        (([single], {"more": double}), None),
        ((tokens,), None),
        ((), {"values": double}),
    ]
    seen = []
    for arguments, keywords in given:
        names.measure(model, "model", arguments, keywords, single)
        seen.append(_records(names)["model"].input_dtype)
    assert seen == ["float32", "float64", "mixed", None, "float64"]


def test_a_call_that_was_not_measured_has_no_type_of_inputs() -> None:
    import torch

    names = ModuleNames()
    model = torch.nn.Linear(2, 3)
    names.describe(model, None)
    names.learn(model)
    assert (_records(names)["model"].dtype, _records(names)["model"].input_dtype) == ("float32", None)


@pytest.mark.filterwarnings("ignore:`torch.jit.script` is deprecated:DeprecationWarning")
def test_scripted_modules_say_that_their_inside_is_not_seen() -> None:
    import torch

    names = ModuleNames()
    scripted = torch.jit.script(torch.nn.Linear(2, 3))
    compiled = torch.compile(torch.nn.Linear(2, 3), backend="eager")
    for module in (scripted, compiled):
        names.describe(module, None)
        names.learn(module)
    assert [record.hidden for record in names.records() if "." not in record.name] == ["scripted", "compiled"]


def _cases() -> dict[str, tuple[Any, tuple[Any, ...]]]:
    import torch
    from torch import nn

    return {
        "linear": (nn.Linear(7, 5), (torch.ones(3, 11, 7),)),
        "convolution": (nn.Conv2d(4, 6, 3, padding=1, groups=2), (torch.ones(2, 4, 9, 8),)),
        "strided convolution": (nn.Conv1d(4, 6, 5, stride=2), (torch.ones(2, 4, 33),)),
        "transposed convolution": (nn.ConvTranspose2d(4, 6, 3, stride=2), (torch.ones(2, 4, 9, 8),)),
        "activation": (nn.GELU(), (torch.ones(3, 7),)),
        "norm": (nn.LayerNorm(7), (torch.ones(3, 7),)),
    }


@pytest.mark.parametrize("case", ["linear", "convolution", "strided convolution", "transposed convolution",
                                  "activation", "norm"])  # fmt: skip
def test_the_formulas_agree_with_torch_s_own_count(case: str) -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    module, inputs = _cases()[case]
    with torch.no_grad(), FlopCounterMode(display=False) as counter:
        result = module(*inputs)
    names = ModuleNames()
    names.measure(module, "module", inputs, None, result)
    assert _records(names)["module"].flops == counter.get_total_flops()


def test_attention_agrees_with_torch_s_own_count() -> None:
    import torch
    from torch.utils.flop_counter import FlopCounterMode

    attention = torch.nn.MultiheadAttention(16, 4, batch_first=True)
    query, memory = torch.ones(2, 5, 16), torch.ones(2, 9, 16)
    with FlopCounterMode(display=False) as counter:
        result = attention(query, memory, memory, need_weights=True)
    names = ModuleNames()
    names.measure(attention, "attention", (query, memory, memory), None, result)
    assert _records(names)["attention"].flops == counter.get_total_flops()


def test_a_recurrent_net_counts_its_products_for_each_step() -> None:
    import torch

    lstm = torch.nn.LSTM(6, 8, num_layers=2, batch_first=True)
    inputs = torch.ones(3, 10, 6)
    names = ModuleNames()
    names.measure(lstm, "lstm", (inputs,), None, lstm(inputs))
    first, second = 4 * 8 * (6 + 8), 4 * 8 * (8 + 8)
    assert _records(names)["lstm"].flops == 2 * 3 * 10 * (first + second)


def test_a_class_without_a_formula_is_not_counted() -> None:
    import torch

    class Mine(torch.nn.Linear):
        def forward(self, values: Any) -> Any:
            return super().forward(values) ** 2

    names = ModuleNames()
    module = Mine(2, 3)
    names.measure(module, "mine", (torch.ones(1, 2),), None, module(torch.ones(1, 2)))
    assert _records(names)["mine"].flops is None


def test_output_bytes_are_those_of_all_tensors_given() -> None:
    import torch

    names = ModuleNames()
    module = torch.nn.Identity()
    given = {"logits": torch.ones(3, 5), "states": (torch.ones(2, dtype=torch.float64), [torch.ones(7)])}
    names.measure(module, "module", (), None, given)
    names.measure(module, "module", (), None, torch.ones(1))
    record = _records(names)["module"]
    assert (record.measured_calls, record.output_bytes) == (2, 60 + 16 + 28 + 4)


def test_input_bytes_are_those_of_all_tensors_it_was_given() -> None:
    import torch

    names = ModuleNames()
    module = torch.nn.Identity()
    given = (torch.ones(3, 5), [torch.ones(2, dtype=torch.float64)])
    names.measure(module, "module", given, {"mask": torch.ones(7), "scale": 2.0}, torch.ones(1))
    names.measure(module, "module", (torch.ones(1),), None, torch.ones(1))
    record = _records(names)["module"]
    assert (record.measured_calls, record.input_bytes) == (2, 60 + 16 + 28 + 4)


def test_the_products_left_to_the_backward_pass_are_counted() -> None:
    import torch

    names = ModuleNames()
    module = torch.nn.Linear(2, 3)
    plain, followed = torch.ones(4, 2), torch.ones(4, 2, requires_grad=True)

    def products(name: str, given: torch.Tensor) -> int | None:
        names.measure(module, name, (given,), None, module(given))
        return _records(names)[name].gradient_products

    assert products("first layer", plain) == 1
    assert products("inner layer", followed) == 2
    assert products("inner layer", followed) == 4
    with torch.no_grad():
        assert products("evaluated", plain) is None
    module.requires_grad_(requires_grad=False)
    assert products("frozen", followed) == 1
    assert products("frozen and first", plain) == 0


def test_calls_that_train_go_before_those_that_evaluate() -> None:
    import torch

    names = ModuleNames()
    module = torch.nn.Linear(2, 3)

    def call(samples: int) -> None:
        given = torch.ones(samples, 2)
        names.measure(module, "module", (given,), None, module(given))

    with torch.no_grad():
        call(100)
    call(4)
    with torch.no_grad():
        call(100)
    record = _records(names)["module"]
    assert (record.measured_calls, record.input_bytes, record.output_bytes, record.flops) == (1, 32, 48, 48)
