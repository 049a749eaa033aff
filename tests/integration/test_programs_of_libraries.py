"""Programs made of libraries from PyPI: Hugging Face, Lightning, neuralforecast."""

import pytest

from tests.integration.running import run_program

pytestmark = pytest.mark.torch

LAYER_OF_GPT2 = (
    "ln_1",
    "attn",
    "attn.c_attn",
    "attn.c_proj",
    "ln_2",
    "mlp",
    "mlp.c_fc",
    "mlp.act",
    "mlp.c_proj",
)


def test_a_gpt2_under_trainer_makes_the_steps_it_is_told_to() -> None:
    group = run_program("gpt2_trainer").groups["training"]
    assert (group.label, group.steps, group.batches) == ("AdamW", 12, 24)
    assert (group.forward_calls, group.backward_passes) == (24, 24)
    assert (group.samples, group.tokens) == (96, 96 * 16)
    assert group.phases == ("data", "forward", "backward", "clipping", "optimizer", "clearing", "other")


@pytest.mark.parametrize(
    ("program", "root", "phase", "calls"),
    [
        (("gpt2_trainer",), "model", "forward", 24),
        (("gpt2_generate",), "GPT2LMHeadModel", "forward without gradients", 60),
        (("gpt2_generate", "--no-cache"), "GPT2LMHeadModel", "forward without gradients", 60),
    ],
)
def test_the_layers_of_a_gpt2_stand_under_it(
    program: tuple[str, ...], root: str, phase: str, calls: int
) -> None:
    places = run_program(*program).places
    inside = (phase, root, f"{root}.transformer")
    assert places[inside].calls == calls
    assert places[phase, root, f"{root}.lm_head"].calls == calls
    called = run_program(*program).calls(*inside)
    for layer in range(2):
        name = f"{root}.transformer.h.{layer}"
        assert {called[f"{name}.{part}"] for part in LAYER_OF_GPT2} == {calls}


@pytest.mark.parametrize(("arguments", "cached_passes"), [((), 3 * 19), (("--no-cache",), 0)])
def test_generated_text_is_counted_token_by_token(arguments: tuple[str, ...], cached_passes: int) -> None:
    seen = run_program("gpt2_generate", *arguments)
    (generation,) = seen.torch.generations
    assert (generation.label, generation.sequences, generation.passes) == ("GPT2LMHeadModel", 3, 60)
    assert (generation.tokens, generation.prompt_tokens) == (2 * 60, 3 * 2 * 8)
    assert generation.cached_passes == cached_passes
    assert generation.allocated_bytes is not None
    assert generation.first_token_ns > 0
    assert sum(place.tokens for place in generation.positions) == generation.tokens
    assert (generation.positions[0].low, generation.positions[-1].high) == (8, 27)
    assert (seen.groups["generation"].steps, seen.groups["generation"].tokens) == (60, 120)


def test_without_a_cache_each_token_takes_more_bytes_than_the_one_before() -> None:
    (generation,) = run_program("gpt2_generate", "--no-cache").torch.generations
    by_place = [(place.allocated_bytes or 0) / place.tokens for place in generation.positions]
    assert by_place[-1] > 2 * by_place[0]
    (cached,) = run_program("gpt2_generate").torch.generations
    assert (cached.allocated_bytes or 0) < (generation.allocated_bytes or 0) / 2


def test_a_vit_on_images_makes_a_step_a_batch() -> None:
    seen = run_program("vit_images")
    group = seen.groups["training"]
    assert (group.label, group.steps, group.batches, group.samples) == ("AdamW", 10, 10, 40)
    assert group.tokens is None
    called = seen.calls("forward")
    assert called["model.vit.embeddings.patch_embeddings.projection"] == 10
    assert called["model.classifier"] == 10
    assert seen.modules["model.classifier"].parameters == 32 * 5 + 5
    for layer in range(2):
        assert called[f"model.vit.layers.{layer}.attention"] == 10
        # Shared by the two halves of the layer.
        assert called[f"model.vit.layers.{layer}.dropout"] == 20


@pytest.mark.parametrize("arguments", [(), ("--bar",)])
def test_a_lightning_module_is_trained_and_validated(arguments: tuple[str, ...]) -> None:
    seen = run_program("lightning_module", *arguments)
    training, validation = seen.groups["training"], seen.groups["forward"]
    assert (training.label, training.steps, training.batches, training.samples) == ("Adam", 24, 24, 192)
    assert (training.forward_calls, training.backward_passes) == (24, 24)
    assert {"data", "forward", "loss", "backward", "optimizer", "clearing"} <= set(training.phases)
    assert (validation.steps, validation.batches, validation.samples) == (8, 8, 64)
    assert validation.backward_passes == 0


def test_the_modules_of_lightning_stand_under_the_optimizer_that_calls_its_closure() -> None:
    seen = run_program("lightning_module")
    assert seen.calls("optimizer", "forward") == {"net": 24, "net.0": 24, "net.1": 24, "net.2": 24}
    assert seen.calls("forward without gradients") == {"net": 8, "net.0": 8, "net.1": 8, "net.2": 8}


def test_n_hits_is_fitted_in_as_many_steps_as_it_is_told_to() -> None:
    seen = run_program("nhits")
    training = seen.groups["training"]
    assert (training.label, training.steps, training.backward_passes) == ("Adam", 25, 25)
    called = seen.calls("optimizer", "forward")
    assert called["NHITS"] == 25
    for block in range(3):
        assert called[f"NHITS.blocks.{block}"] == 25
        # One activation for all layers of a block.
        assert called[f"NHITS.blocks.{block}.layers.2"] == 3 * 25


def test_the_forecast_of_n_hits_is_a_step_without_gradients() -> None:
    seen = run_program("nhits")
    forecast = seen.groups["forward"]
    assert (forecast.steps, forecast.forward_calls, forecast.backward_passes) == (1, 1, 0)
    assert seen.calls("forward without gradients")["NHITS"] == 1
