"""Waiting for an import: seen right after it, and unseen by the program."""

import importlib
import importlib.util
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from pyrometer._native import KIND
from pyrometer.capture import losses
from pyrometer.capture.import_watch import when_imported


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder on the path, whose modules are forgotten afterwards."""
    monkeypatch.syspath_prepend(str(tmp_path))
    before = set(sys.modules)
    yield tmp_path
    for name in set(sys.modules) - before:
        del sys.modules[name]
    losses.failures.clear()


def test_the_callback_gets_the_module_once_it_is_complete(folder: Path) -> None:
    (folder / "awaited_module.py").write_text("import json\nvalue = 41\nvalue += 1\n")
    values: list[int] = []
    when_imported("awaited_module", lambda module: values.append(module.value))
    assert values == []

    import awaited_module  # type: ignore[import-not-found]

    assert values == [42]
    importlib.reload(awaited_module)
    assert values == [42]


def test_a_module_already_there_is_given_at_once() -> None:
    seen: list[ModuleType] = []
    when_imported("subprocess", seen.append)
    assert seen == [subprocess]


def test_a_module_inside_a_package_is_seen(folder: Path) -> None:
    (folder / "awaited_package").mkdir()
    (folder / "awaited_package" / "__init__.py").write_text("")
    (folder / "awaited_package" / "inner.py").write_text("value = 1\n")
    seen: list[str] = []
    when_imported("awaited_package.inner", lambda module: seen.append(module.__name__))
    when_imported("awaited_package", lambda module: seen.append(module.__name__))

    importlib.import_module("awaited_package.inner")

    assert seen == ["awaited_package", "awaited_package.inner"]


def test_the_module_is_as_it_would_be_unwatched(folder: Path) -> None:
    source = "spec, loader, keys = __spec__, __loader__, sorted(globals())\n"
    (folder / "watched_module.py").write_text(source)
    (folder / "plain_module.py").write_text(source)
    finders = list(sys.meta_path)
    when_imported("watched_module", lambda _: None)
    watched = importlib.import_module("watched_module")
    plain = importlib.import_module("plain_module")

    assert watched.keys == plain.keys
    assert watched.__spec__ is watched.spec
    assert watched.__loader__ is watched.loader is watched.__spec__.loader
    assert type(watched.__loader__) is type(plain.__loader__)
    assert vars(watched.__loader__).keys() == vars(plain.__loader__).keys()
    assert sys.meta_path == finders


def test_looking_for_a_module_is_not_importing_it(folder: Path) -> None:
    (folder / "looked_for.py").write_text("value = 1\n")
    seen: list[ModuleType] = []
    when_imported("looked_for", seen.append)

    spec = importlib.util.find_spec("looked_for")
    assert spec is not None
    assert type(spec.loader).__name__ == "SourceFileLoader"
    assert seen == []

    assert seen == [importlib.import_module("looked_for")]


def test_a_module_that_cannot_be_found_stays_awaited(folder: Path) -> None:
    seen: list[ModuleType] = []
    when_imported("written_later", seen.append)
    with pytest.raises(ModuleNotFoundError, match="No module named 'written_later'"):
        importlib.import_module("written_later")

    (folder / "written_later.py").write_text("")
    importlib.invalidate_caches()
    assert seen == [importlib.import_module("written_later")]


IMPORTS = {
    "import": "import failing",
    "from": "from package import failing",
    "import_module": "importlib.import_module('failing')",
    "import_module in a package": "importlib.import_module('package.failing')",
}


@pytest.mark.parametrize("statement", IMPORTS.values(), ids=IMPORTS.keys())
@pytest.mark.parametrize("source", ["1 / 0\n", "import absent\n", "raise KeyboardInterrupt\n", "1 /\n"])
def test_a_failed_import_reads_as_it_would_unwatched(tmp_path: Path, statement: str, source: str) -> None:
    if KIND != "native" and "import_module" in statement:
        pytest.skip("the Python twin has a frame of its own in such a traceback")
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "__init__.py").write_text("")
    for path in (tmp_path, tmp_path / "package"):
        (path / "failing.py").write_text(source)
    (tmp_path / "plain.py").write_text(f"import importlib\n{statement}\n")
    watch = "from pyrometer.capture.import_watch import when_imported as w; "
    watch += "w('failing', print); w('package.failing', print); "
    plain, watched = (
        subprocess.run(
            [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(tmp_path)!r}); {first}import plain"],
            capture_output=True,
            text=True,
            check=False,
        )
        for first in ("", watch)
    )
    assert "failing" in plain.stderr
    assert watched.stderr == plain.stderr
    assert watched.stdout == ""


def test_a_module_whose_import_failed_stays_awaited(folder: Path) -> None:
    (folder / "fails_once.py").write_text(
        "import sys\nif not hasattr(sys, '_again'):\n    raise ImportError\n"
    )
    seen: list[ModuleType] = []
    when_imported("fails_once", seen.append)
    with pytest.raises(ImportError):
        importlib.import_module("fails_once")
    assert seen == []
    sys._again = True  # type: ignore[attr-defined]
    try:
        assert seen == [importlib.import_module("fails_once")] != []
    finally:
        del sys._again  # type: ignore[attr-defined]


@pytest.mark.skipif(KIND != "native", reason="the Python twin has a frame of its own there")
def test_a_module_sees_the_stack_it_would_see_unwatched(folder: Path) -> None:
    source = "import inspect\nstack = [frame.function for frame in inspect.stack()]\n"
    (folder / "seen_stack.py").write_text(source)
    (folder / "plain_stack.py").write_text(source)
    when_imported("seen_stack", lambda _: None)
    stacks = [importlib.import_module(name).stack for name in ("seen_stack", "plain_stack")]
    assert stacks[0] == stacks[1]


def test_waiting_shows_in_nothing_that_a_program_looks_at() -> None:
    import_system: Any = importlib._bootstrap
    function = import_system._call_with_frames_removed
    before = (list(sys.meta_path), list(sys.path_hooks), sys.getprofile(), sys.gettrace())
    give_up = when_imported("never_imported", lambda _: None)
    assert before == (list(sys.meta_path), list(sys.path_hooks), sys.getprofile(), sys.gettrace())

    give_up()
    assert import_system._call_with_frames_removed is function


def test_a_program_may_replace_the_finders(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (folder / "found_anyway.py").write_text("")
    seen: list[ModuleType] = []
    when_imported("found_anyway", seen.append)
    finder = next(finder for finder in sys.meta_path if getattr(finder, "__name__", "") == "PathFinder")
    monkeypatch.setattr(sys, "meta_path", [finder])
    assert seen == [importlib.import_module("found_anyway")]


def test_threads_that_import_at_once_are_told_of_once(folder: Path) -> None:
    (folder / "raced_for.py").write_text("value = 1\n")
    seen: list[ModuleType] = []
    when_imported("raced_for", seen.append)
    together = threading.Barrier(8)

    def import_it() -> None:
        together.wait()
        importlib.import_module("raced_for")

    threads = [threading.Thread(target=import_it) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert seen == [sys.modules["raced_for"]]


def test_a_module_that_another_thread_is_importing_is_given_whole(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "half_done.py").write_text(
        "from gates import begun, go_on\nbegun.set()\ngo_on.wait()\nvalue = 42\n"
    )
    gates: Any = ModuleType("gates")
    gates.begun, gates.go_on = threading.Event(), threading.Event()
    sys.modules["gates"] = gates
    import_system: Any = importlib._bootstrap
    wait_for_import = import_system._lock_unlock_module

    def wait(name: str) -> None:
        gates.go_on.set()
        wait_for_import(name)

    monkeypatch.setattr(import_system, "_lock_unlock_module", wait)
    values: list[int] = []
    importing = threading.Thread(target=importlib.import_module, args=("half_done",))
    importing.start()
    gates.begun.wait()
    when_imported("half_done", lambda module: values.append(module.value))
    gates.go_on.set()
    importing.join()
    assert values == [42]
    assert not losses.failures


def test_an_error_of_the_callback_is_a_loss_and_no_error_of_the_program(folder: Path) -> None:
    (folder / "imported_fine.py").write_text("value = 1\n")
    seen: list[ModuleType] = []

    def fail(_: ModuleType) -> None:
        raise ValueError("our own")

    when_imported("imported_fine", fail)
    when_imported("imported_fine", seen.append)
    module = importlib.import_module("imported_fine")

    assert seen == [module]
    ((collector, reason),) = losses.failures
    assert collector == "imports"
    assert "imported_fine" in reason
    assert "our own" in reason


def test_one_who_waits_no_longer_is_not_called(folder: Path) -> None:
    (folder / "given_up.py").write_text("")
    seen: list[ModuleType] = []
    finders = list(sys.meta_path)
    give_up = when_imported("given_up", seen.append)
    give_up()
    assert sys.meta_path == finders

    importlib.import_module("given_up")
    give_up()
    assert seen == []


def test_a_lazily_loaded_module_is_seen_when_it_is_executed(folder: Path) -> None:
    (folder / "lazily_loaded.py").write_text("value = 1\n")
    seen: list[str] = []
    when_imported("lazily_loaded", lambda _: seen.append("executed"))
    spec = importlib.util.find_spec("lazily_loaded")
    assert spec is not None
    assert spec.loader is not None
    spec.loader = importlib.util.LazyLoader(spec.loader)
    module = importlib.util.module_from_spec(spec)
    sys.modules["lazily_loaded"] = module
    spec.loader.exec_module(module)

    assert seen == []
    assert module.value == 1
    assert seen == ["executed"]
