"""Turns the command's process into the program's: a plain ``python`` with our start-up on its path.

Rejected: running the program inside our own interpreter with ``runpy``. Its ``__main__``, its
tracebacks, its recursion depth, what it pickles and its multiprocessing would then all have to
be made to look right, one by one. An ``execve`` leaves nothing to imitate, and keeps the pid.
"""

import contextlib
import os
import sys
import time
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import NoReturn

from pyrometer import _startup, cli
from pyrometer.cli.cachegrind import find_valgrind, prepare_callgrind
from pyrometer.errors import UsageError
from pyrometer.machine.git import git_state
from pyrometer.machine.source import source_sha256
from pyrometer.record.run import Program
from pyrometer.session import CHECKPOINT_INTERVAL_S, begin_run
from pyrometer.store.run_files import current_folder, rank_in, resolve_output, write_run
from pyrometer.store.settings import Window
from pyrometer.store.trace_files import resolve_trace

_OPTIONS_WITH_VALUE = ("-W", "-X", "--check-hash-based-pycs")
_INTERVAL_VARIABLE = "PYROMETER_CHECKPOINT_SECONDS"


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What to run: a script (a file, or a folder or zip file with a ``__main__.py``), or a module."""

    script: str | None
    module: str | None

    @property
    def name(self) -> str:
        """What the run is called."""
        if self.module is not None:
            return self.module
        return "stdin" if self.script == "-" else Path(str(self.script)).name

    @property
    def folder(self) -> Path:
        """What plain Python puts first on the program's path."""
        if self.module is not None or self.script in {None, "-"}:
            return current_folder()
        script = Path(str(self.script))
        if script.is_dir() or zipfile.is_zipfile(script):
            return script.absolute()
        return Path(os.path.realpath(script)).parent

    @property
    def source(self) -> Path | None:
        """The file that is run; None where it is none, or a module that is not in the program's folder."""
        if self.module is not None:
            place = self.folder.joinpath(*self.module.split("."))
            return next(filter(Path.is_file, (place / "__main__.py", Path(f"{place}.py"))), None)
        return None if self.script in {None, "-"} else Path(str(self.script))

    def command(self) -> list[str]:
        """The arguments that make Python run it."""
        if self.module is not None:
            return ["-m", self.module]
        script = str(self.script)
        return ["--", script] if script.startswith("-") and script != "-" else [script]

    def check(self) -> None:
        """Say clearly what cannot be run, before anything is written."""
        if self.script is None or self.script == "-":
            return
        path = Path(self.script)
        if not path.exists():
            raise UsageError(
                f"there is no script {self.script!r}; for a module write: pyrometer run -m MODULE"
            )
        if path.is_dir() and not (path / "__main__.py").exists():
            raise UsageError(f"{self.script!r} is a folder without a __main__.py; name the script in it")
        if not os.access(path, os.R_OK):
            raise UsageError(f"the script {self.script!r} cannot be read; check its permissions")


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What ``pyrometer run`` was asked for."""

    output: str | None
    top: int | None
    quiet: bool
    show_report: bool
    html: bool
    """Whether the page to look at is to be written beside the run."""
    open_page: bool
    window: Window | None
    warmup: int | None
    max_steps: int | None
    """After so many the program is ended."""
    live: bool | None
    """Whether to show the line of progress; None: where that is of use."""
    deep: bool
    """Whether to turn on all that costs more than a few percent."""
    ops: int
    """In so many steps every operator of torch is seen; 0: in none."""
    trace: str | None
    baseline: str | None
    history: bool
    """Whether the run is added to the user's history."""
    sample_hz: float
    """How often the program's stacks are looked at; 0: never."""
    native: bool
    """Whether the native functions in them are asked for."""
    counters: bool
    cachegrind: bool
    cachegrind_scope: str | None
    memory: bool
    """Whether allocations are counted."""
    python_memory: bool
    """Whether small Python objects are, too."""


def launch(target: Target, arguments: Sequence[str], options: Options) -> NoReturn:
    """Become the program, recorded.

    The run file is written before: a place that cannot be written to is found out now, not
    after hours of training, and the program's interpreter takes the facts from there.
    """
    _check_interpreter()
    target.check()
    valgrind = find_valgrind() if options.cachegrind else None
    if valgrind is not None:
        options = _without_what_would_be_counted(options)
    baseline = None if options.baseline is None else _resolve_baseline(options.baseline)
    started_at = datetime.now().astimezone()
    output = resolve_output(
        options.output,
        folder=current_folder(),
        script_name=target.name,
        started_at=started_at,
        pid=os.getpid(),
    )
    program = Program(
        name=target.name,
        argv=(target.script or f"-m {target.module}", *arguments),
        working_directory=str(current_folder()),
        git=git_state(target.folder if target.folder.is_dir() else target.folder.parent),
        source_sha256=source_sha256(target.source),
        rank=rank_in(os.environ),
    )
    write_run(begin_run(program, started_at), output)
    counted = None if valgrind is None else prepare_callgrind(valgrind, output, options.cachegrind_scope)
    command = [sys.executable, *interpreter_options(sys.orig_argv), *target.command(), *arguments]
    environment = _environment(
        output=str(output.absolute()),
        report_options=report_options(options),
        quiet=options.quiet,
        window=options.window,
        warmup=options.warmup,
        max_steps=options.max_steps,
        live=options.live,
        ops=options.ops,
        trace=None if options.trace is None else str(resolve_trace(options.trace, folder=current_folder())),
        baseline=baseline,
        history=options.history,
        sample_hz=options.sample_hz,
        native=options.native,
        memory_counted=options.memory,
        python_memory=options.python_memory,
        program_folder=None if sys.flags.safe_path else str(target.folder),
        checkpoint_interval_s=_checkpoint_interval_s(),
        counters=options.counters,
        cachegrind=None if counted is None else counted.settings,
    )
    if counted is not None:
        command = [*counted.command, *command]
        environment.update(counted.environment)
    # A sitecustomize of the user's may have printed in this process too.
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError):
            stream.flush()
    os.execve(command[0], command, environment)


def report_options(options: Options) -> list[str] | None:
    """What is to be made of the run at its end, as options of ``pyrometer report``; None: nothing."""
    page = [*["--html"] * options.html, *["--open"] * options.open_page]
    if options.quiet or not options.show_report:
        return ["--quiet", *page] if page else None
    top = [] if options.top is None else ["--top", str(options.top)]
    # Only in a folder made for this run: others may hold files of the user's own under these names.
    kept = ["--keep", "--level", "deep" if options.deep else "standard"] if options.output is None else []
    return ["--format", "terminal", *top, *kept, *page]


def _without_what_would_be_counted(options: Options) -> Options:
    """Under valgrind our own work would be counted as the program's, and times mean nothing anyway."""
    return replace(
        options, history=False, ops=0, sample_hz=0, native=False, memory=False, python_memory=False
    )


def _resolve_baseline(option: str) -> str:
    # Behind the option, because it needs much that starting a program does not.
    from pyrometer.store.baseline_files import resolve_baseline

    return str(resolve_baseline(option, folder=current_folder()).absolute())


def _environment(**launch_options: object) -> dict[str, str]:
    startup_ns = cli.INTERPRETER_START_NS + time.perf_counter_ns() - cli.BEGAN_NS
    return _startup.launch_environment(os.environ, startup_ns=startup_ns, **launch_options)


def interpreter_options(command_line: Sequence[str]) -> list[str]:
    """The options for Python itself, such as ``-O`` and ``-W error``, in the words they were given."""
    options: list[str] = []
    waiting = list(command_line[1:])
    while waiting and waiting[0].startswith("-"):
        option = waiting.pop(0)
        if option[:2] in {"-W", "-X"} or option.startswith("--"):
            options.append(option)
            if option in _OPTIONS_WITH_VALUE:
                options.append(waiting.pop(0))
            continue
        # `-m pyrometer` is where the program begins, and may stand in one word with others: -um.
        before_module, module, _ = option.partition("m")
        if before_module != "-":
            options.append(before_module)
        if module:
            break
    return options


def _check_interpreter() -> None:
    if sys.flags.isolated or sys.flags.ignore_environment or sys.flags.no_site:
        raise UsageError(
            "python was started with -I, -E or -S, which keep the profiler from starting inside the "
            "program; leave the option out"
        )


def _checkpoint_interval_s() -> float:
    text = os.environ.get(_INTERVAL_VARIABLE)
    if text is None:
        return CHECKPOINT_INTERVAL_S
    try:
        interval_s = float(text)
    except ValueError:
        interval_s = 0.0
    if not 0 < interval_s < 1e6:
        raise UsageError(f"{_INTERVAL_VARIABLE} is {text!r}, but must be a number of seconds above 0")
    return interval_s
