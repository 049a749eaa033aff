"""Each finding, on a program that has it and on a twin that does not."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyrometer.analysis.findings.find import FINDERS, find
from pyrometer.analysis.findings.model import Finding, FindingKind, Findings
from pyrometer.analysis.observed import observe
from pyrometer.store.run_files import read_run

pytestmark = pytest.mark.torch

PROGRAMS = Path(__file__).parent / "programs"
WITH_OPERATORS = frozenset({FindingKind.TINY_OPERATORS, FindingKind.SYNCHRONISING, FindingKind.COPIES})
WITH_LIMITS = frozenset({FindingKind.MEMORY_BOUND, FindingKind.STRIDED_ACCESS})
WITHOUT_PROGRAM = frozenset({FindingKind.GPU_IDLE, FindingKind.LAUNCH_BOUND})
"""No GPU to be expected where tests run; these are found in runs made by hand."""

KINDS = [kind for kind in FindingKind if kind not in WITHOUT_PROGRAM]


@pytest.fixture(scope="session")
def environment(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """As a user has it, but with a cache folder of its own: what was measured here before is not there."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PYROMETER", "PYTHON", "COV_", "PYTEST"))
    }
    return {**kept, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache"))}


@pytest.fixture(scope="session")
def environment_with_limits(
    environment: dict[str, str], tmp_path_factory: pytest.TempPathFactory
) -> dict[str, str]:
    """The same, with the limits of this machine measured."""
    with_limits = {**environment, "XDG_CACHE_HOME": str(tmp_path_factory.mktemp("cache-with-limits"))}
    subprocess.run(
        [sys.executable, "-m", "pyrometer", "limits"], env=with_limits, check=True, capture_output=True
    )
    return with_limits


@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.value)
def test_it_is_found_in_the_guilty_program_and_not_in_its_innocent_twin(
    kind: FindingKind, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    name = "environment_with_limits" if kind in WITH_LIMITS else "environment"
    environment = request.getfixturevalue(name)
    guilty = find_in(kind, "guilty", environment, tmp_path)
    innocent = find_in(kind, "innocent", environment, tmp_path)

    found = of_kind(guilty, kind)
    assert found, describe(guilty)
    assert not of_kind(innocent, kind), describe(innocent)
    # Silent because it was looked for and not there, not because it could not be.
    assert kind in innocent.clear or kind is FindingKind.LONG_TAIL, describe(innocent)
    for one in found:
        assert one.evidence
        assert one.remedies
        assert one.gain is None or 0 <= one.gain.share <= 1


def test_every_kind_has_a_finder_and_a_program() -> None:
    assert set(FINDERS) == set(FindingKind)
    names = {path.stem.replace("_", "-") for path in PROGRAMS.glob("*.py")} - {"loop"}
    assert names >= {kind.value.replace("key-value-", "") for kind in KINDS}


def find_in(kind: FindingKind, twin: str, environment: dict[str, str], folder: Path) -> Findings:
    program = PROGRAMS / f"{kind.value.replace('key-value-', '').replace('-', '_')}.py"
    run_file = folder / f"{twin}.json"
    options = ["--quiet", "-o", str(run_file), *(["--ops", "5"] if kind in WITH_OPERATORS else [])]
    command = [sys.executable, "-m", "pyrometer", "run", *options, str(program), twin]
    ended = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
    return find(observe(read_run(run_file)))


def of_kind(findings: Findings, kind: FindingKind) -> list[Finding]:
    return [one for one in findings.found if one.kind is kind]


def describe(findings: Findings) -> str:
    lines = [f"{one.kind.value}: {one.what} {[each.text for each in one.evidence]}" for one in findings.found]
    lines += [f"not looked for {one.kind.value}: {one.reason}" for one in findings.not_looked_for]
    return "\n".join([findings.verdict, *lines])
