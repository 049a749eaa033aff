import importlib.util
from pathlib import Path
from types import ModuleType

import pytest

from pyrometer.store.run_files import read_run
from tests.examples.programs import EXAMPLES, run_program

pytestmark = pytest.mark.torch

PROGRAM = EXAMPLES / "generate_text.py"


def load_program() -> ModuleType:
    spec = importlib.util.spec_from_file_location("generate_text", PROGRAM)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_model_has_the_tensors_it_is_known_for() -> None:
    parameters = list(load_program().Gpt().parameters())
    assert len(parameters) == 53
    assert sum(parameter.numel() for parameter in parameters) == 3_454_464


def test_the_standard_configuration_makes_three_times_fifty_tokens(tmp_path: Path) -> None:
    ended = run_program([PROGRAM], tmp_path)
    assert (ended.returncode, ended.stderr) == (0, "")
    first, *inferences = ended.stdout.splitlines()
    assert first == "3,454,464 parameters, without a key-value cache"
    assert [line.split(" tokens")[0] for line in inferences] == [
        "inference 1: 50",
        "inference 2: 50",
        "inference 3: 50",
    ]


def test_the_cache_gives_the_same_scores_as_reading_everything_again() -> None:
    import torch

    program = load_program()
    torch.manual_seed(1)
    model = program.Gpt().eval()
    tokens = torch.randint(program.VOCABULARY, (1, 20))
    with torch.no_grad():
        at_once, _ = model(tokens)
        scores, cache = model(tokens[:, :12])
        pieces = [scores]
        for position in range(12, 20):
            scores, cache = model(tokens[:, position : position + 1], cache)
            pieces.append(scores)
    assert torch.allclose(torch.cat(pieces, dim=1), at_once, atol=1e-5)


def test_more_than_the_context_holds_is_refused(tmp_path: Path) -> None:
    refused = run_program([PROGRAM, "--prompt", "100"], tmp_path)
    assert refused.returncode == 2
    assert "a prompt of 100 and 50 tokens exceed the context of 128" in refused.stderr


@pytest.mark.parametrize(("option", "cached_passes"), [("--no-cache", 0), ("--cache", 147)])
def test_its_tokens_are_counted_without_a_word_from_it(
    tmp_path: Path, option: str, cached_passes: int
) -> None:
    command = ["-m", "pyrometer", "run", "-o", "run.json", str(PROGRAM), option]
    ended = run_program(command, tmp_path)
    assert ended.returncode == 0
    assert ended.stdout == run_program([PROGRAM, option], tmp_path).stdout
    torch = read_run(tmp_path / "run.json").torch
    assert torch is not None
    [generation] = torch.generations
    assert (generation.sequences, generation.tokens, generation.prompt_tokens) == (3, 150, 3 * 32)
    # The first token of each sequence has nothing to take from a cache.
    assert generation.cached_passes == cached_passes
    assert sum(place.tokens for place in generation.positions) == 150
    assert "tokens/s" in ended.stderr
