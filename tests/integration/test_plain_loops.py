"""Loops as people write them, each reported for what it does by construction."""

from typing import NamedTuple

import pytest

from pyrometer.record.torch_run import StepGroup
from tests.integration.running import run_program

pytestmark = pytest.mark.torch

TRAINING = ("data", "forward", "loss", "backward", "optimizer", "clearing", "other")


class Facts(NamedTuple):
    """What a group of steps must say."""

    label: str
    steps: int
    batches: int
    forward_calls: int
    backward_passes: int
    samples: int | None
    phases: tuple[str, ...] = TRAINING
    tokens: int | None = None


def facts_of(group: StepGroup) -> Facts:
    return Facts(
        label=group.label,
        steps=group.steps,
        batches=group.batches,
        forward_calls=group.forward_calls,
        backward_passes=group.backward_passes,
        samples=group.samples,
        phases=group.phases,
        tokens=group.tokens,
    )


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("train_net", {"training": Facts("Adam", 200, 200, 200, 200, 6_400)}),
        (
            "train_transformer",
            {
                "training": Facts(
                    *("AdamW", 200, 200, 200, 200, 800),
                    phases=(*TRAINING[:4], "clipping", *TRAINING[4:]),
                    tokens=12_800,
                )
            },
        ),
        ("train_lstm", {"training": Facts("SGD", 200, 200, 200, 200, 1_600)}),
        ("gradient_accumulation", {"training": Facts("SGD", 10, 40, 40, 40, 320)}),
        ("gan", {"training": Facts("SGD + Adam", 25, 25, 100, 50, 400)}),
        ("lbfgs", {"training": Facts("LBFGS", 10, 0, 40, 40, 640, phases=TRAINING[1:])}),
        (
            "evaluation_between_epochs",
            {
                "training": Facts("Adam", 30, 30, 30, 30, 480),
                "forward": Facts("model", 15, 15, 15, 0, 600, phases=("data", "forward", "loss", "other")),
            },
        ),
        (
            "inference_over_loader",
            {"forward": Facts("model", 30, 30, 30, 0, 240, phases=("data", "forward", "other"))},
        ),
        ("forward_only", {"forward": Facts("model", 40, 0, 40, 0, 200, phases=("forward", "other"))}),
        ("compiled", {"training": Facts("Adam", 20, 20, 20, 20, 160)}),
        ("scripted", {"training": Facts("Adam", 20, 20, 20, 20, 160)}),
        ("data_parallel", {"training": Facts("RMSprop", 20, 20, 20, 20, 160)}),
        ("own_hooks", {"training": Facts("Adam", 20, 20, 20, 20, 160)}),
        ("checkpointed", {"training": Facts("Adam", 20, 20, 20, 20, 160)}),
        ("loader_workers", {"training": Facts("Adam", 20, 20, 20, 20, 160)}),
    ],
)
def test_the_steps_are_those_the_loop_makes(program: str, expected: dict[str, Facts]) -> None:
    groups = run_program(program).groups
    assert {kind: facts_of(group) for kind, group in groups.items()} == expected


def test_each_step_of_an_accumulating_loop_has_four_batches() -> None:
    assert {step.samples for step in run_program("gradient_accumulation").groups["training"].first} == {32}


@pytest.mark.parametrize(
    ("program", "phase", "calls"),
    [
        ("train_net", "forward", {"model": 200} | {f"model.{number}": 200 for number in range(5)}),
        ("train_net", "loss", {"loss_function": 200}),
        ("train_lstm", "forward", {"model": 200, "model.lstm": 200, "model.head": 200}),
        (
            "gan",
            "forward",
            {"generator": 25, "discriminator": 75}
            | {f"generator.{number}": 25 for number in range(3)}
            | {f"discriminator.{number}": 75 for number in range(3)},
        ),
        (
            "data_parallel",
            "forward",
            {"model": 20, "model.module": 20} | {f"model.module.{number}": 20 for number in range(3)},
        ),
        ("scripted", "forward", {"model": 20, "model.0": 20, "model.1": 20}),
        ("own_hooks", "forward", {"model": 20, "model.0": 20, "model.1": 20, "model.2": 20}),
        (
            "forward_only",
            "forward without gradients",
            {"model": 40} | {f"model.{number}": 40 for number in range(4)},
        ),
    ],
)
def test_every_call_of_every_module_is_counted(program: str, phase: str, calls: dict[str, int]) -> None:
    assert run_program(program).calls(phase) == calls


def test_the_layers_of_a_transformer_stand_under_it_by_their_names() -> None:
    places = run_program("train_transformer").places
    for layer in range(2):
        path = ("forward", "model", "model.encoder", f"model.encoder.layers.{layer}")
        for part in ("self_attn", "linear1", "linear2", "norm1", "norm2", "dropout", "dropout1", "dropout2"):
            assert places[*path, f"{path[-1]}.{part}"].calls == 200


def test_a_closure_stands_under_the_optimizer_that_calls_it() -> None:
    seen = run_program("lbfgs")
    assert seen.plain.stdout.startswith("closure calls 40\n")
    assert seen.places["optimizer",].calls == 10
    assert seen.calls("optimizer", "forward") == {"model": 40, "model.0": 40, "model.1": 40, "model.2": 40}


def test_evaluation_is_apart_from_training_in_the_tree_too() -> None:
    seen = run_program("evaluation_between_epochs")
    assert seen.calls("forward") == {"model": 30} | {f"model.{number}": 30 for number in range(4)}
    unrecorded = seen.calls("forward without gradients")
    assert unrecorded == {"model": 15} | {f"model.{number}": 15 for number in range(4)}


@pytest.mark.parametrize("program", ["train_net", "train_transformer", "train_lstm", "checkpointed", "gan"])
def test_the_modules_of_some_backward_passes_are_timed(program: str) -> None:
    seen = run_program(program)
    assert 0 < seen.torch.timed_backward_passes <= seen.torch.backward_passes
    with_weights = {
        name
        for name, module in seen.modules.items()
        if module.parameters and not any(other.startswith(f"{name}.") for other in seen.modules)
    }
    timed = seen.calls("backward")
    assert with_weights <= timed.keys()


def test_the_blocks_that_run_again_in_the_backward_pass_are_told_apart() -> None:
    seen = run_program("checkpointed")
    assert seen.calls("forward")["model.blocks.0"] == 20
    again = sum(
        node.calls
        for path, node in seen.places.items()
        if path[-1] == "model.blocks.0" and "recomputed forward" in path
    )
    assert again == 20


@pytest.mark.parametrize(
    ("program", "name", "kind", "parameters"),
    [
        ("train_net", "model", "Sequential", 67_210),
        ("train_net", "model.0", "Linear", 128 * 256 + 256),
        ("train_lstm", "model.lstm", "LSTM", 4 * 16 * (1 + 16 + 2) + 4 * 16 * (16 + 16 + 2)),
        ("data_parallel", "model", "DataParallel", 16 * 32 + 32 + 32 + 1),
    ],
)
def test_a_module_has_its_class_and_its_parameters(
    program: str, name: str, kind: str, parameters: int
) -> None:
    module = run_program(program).modules[name]
    assert (module.kind, module.parameters, module.parameter_bytes) == (kind, parameters, 4 * parameters)


def test_the_bytes_of_each_layer_are_those_of_its_output() -> None:
    seen = run_program("train_net")
    outputs = {
        path[-1]: node.allocated_bytes
        for path, node in seen.places.items()
        if path[0] == "forward" and len(path) > 1
    }
    sizes = {"model.0": 256, "model.1": 256, "model.2": 128, "model.3": 128, "model.4": 10}
    floats = sizes | {"model": sum(sizes.values())}
    assert outputs == {name: 200 * 32 * 4 * columns for name, columns in floats.items()}


def test_a_compiled_model_is_compiled_as_without_us() -> None:
    seen = run_program("compiled")
    assert seen.plain.stdout.startswith("graphs 1, breaks 0\n")
    compilation = seen.torch.compilation
    assert compilation is not None
    assert (compilation.graphs, compilation.graph_breaks, compilation.recompilations) == (1, 0, 0)
    assert seen.modules["compiled"].hidden == "compiled"


def test_what_is_inside_a_scripted_module_is_said_to_be_hidden() -> None:
    assert run_program("scripted").modules["model.0"].hidden == "scripted"


def test_hooks_of_the_program_are_called_as_often_as_without_us() -> None:
    assert run_program("own_hooks").profiled.stdout.startswith("80 ['before forward', 'after forward', ")


def test_the_work_of_loader_workers_is_in_the_record() -> None:
    seen = run_program("loader_workers")
    (loader,) = seen.torch.loaders
    assert (loader.name, loader.workers, loader.iterators, loader.batches) == ("DataLoader(Noisy)", 2, 2, 20)
    assert loader.timed_batches == 20
    assert loader.work_ns is not None
    assert loader.work_ns > 0
    assert seen.groups["training"].worker_ns == loader.work_ns


@pytest.mark.parametrize(
    ("program", "iterators", "batches"),
    [("train_net", 2, 200), ("evaluation_between_epochs", 6, 45), ("inference_over_loader", 1, 30)],
)
def test_a_loader_in_the_same_process_is_counted(program: str, iterators: int, batches: int) -> None:
    (loader,) = run_program(program).torch.loaders
    assert (loader.workers, loader.iterators, loader.batches) == (0, iterators, batches)
