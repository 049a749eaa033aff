"""``import pyrometer`` must cost next to nothing, since it stands in programs that are not profiled.

What it loads is checked here; how long it takes is printed by ``benchmarks/import_time.py``.
"""

import subprocess
import sys

TOO_DEAR = (
    "asyncio",
    "concurrent.futures",
    "importlib.metadata",
    "msgspec",
    "numpy",
    "psutil",
    "rich",
    "torch",
    "typer",
)


def modules_after(statement: str) -> set[str]:
    """The names in ``sys.modules`` of a fresh interpreter that ran this statement."""
    script = f"{statement}\nimport sys\nprint(*sys.modules, sep='\\n')"
    # Isolated, so that neither the environment nor the current folder adds modules of its own.
    finished = subprocess.run(
        [sys.executable, "-I", "-c", script], capture_output=True, text=True, check=True
    )
    return set(finished.stdout.split())


def test_importing_pyrometer_loads_nothing_dear() -> None:
    already_there = modules_after("pass")
    loaded = modules_after("import pyrometer")
    assert "pyrometer" in loaded
    assert sorted((loaded - already_there) & set(TOO_DEAR)) == []


def test_the_check_sees_what_an_import_loads() -> None:
    assert "concurrent.futures" in modules_after("import concurrent.futures")
