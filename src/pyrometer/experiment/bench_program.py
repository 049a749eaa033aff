"""The program that runs one benchmark of a file, or lists them all.

``python -P -m pyrometer.experiment.bench_program FILE --list``, or
``… FILE NAME --calls N``: under ``PacedProcess`` each step is N calls of the function, and 0 has N found
out. The file is imported by its own name with its folder first on the path; what stands behind
``if __name__ == "__main__":`` is not run.
"""

import importlib.util
import os
import random
import sys
import time
import traceback
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from importlib.machinery import PathFinder
from itertools import repeat
from pathlib import Path
from typing import Any

import msgspec

from pyrometer._native import allocations as core
from pyrometer.capture import pacing, torch_watch
from pyrometer.capture.benchmarks import Case, Marked, marked_functions
from pyrometer.capture.checksums import UncheckableError, checksum
from pyrometer.capture.import_watch import when_imported
from pyrometer.errors import PyrometerError, UsageError
from pyrometer.record.benchmarks import Benchmark, BenchmarkNote, CallMemory, Listing

STEP_NS = 4_000_000
"""A step has so many calls that it takes at least this."""
MOST_CALLS = 1 << 24
RANDOM_SEED = 0
"""Of the generators of random numbers, before the file is imported, and before the arguments are made:
both are to be the same each time."""

Call = Callable[[], Any]

_OURS = str(Path(__file__).parents[1])


def main(arguments: list[str]) -> int:
    """Run the program; returns the exit code."""
    try:
        _do(arguments)
    except PyrometerError as error:
        print(f"pyrometer: {error}", file=sys.stderr)  # noqa: T201 - a program of its own
        return error.exit_code
    except Exception as error:  # noqa: BLE001 - the benchmark's own, told without our frames
        _show(error)
        return 1
    return 0


def _do(arguments: list[str]) -> None:
    match arguments:
        case [file, "--list"]:
            _list(file)
        case [file, name, "--calls", calls] if calls.isdecimal():
            _run(file, name, int(calls))
        case _:
            raise UsageError("bench_program: give FILE --list, or FILE NAME --calls N")


# What is in a file.


def _list(file: str) -> None:
    # What the file prints is not to be read as the list.
    answer = os.dup(1)
    os.dup2(2, 1)
    try:
        listing = Listing(benchmarks=tuple(_described(case, file) for case in find_cases(file)))
    except PyrometerError as error:
        listing = Listing(problem=str(error))
    with os.fdopen(answer, "wb") as stream:
        stream.write(msgspec.json.encode(listing))


def _described(case: Case, file: str) -> Benchmark:
    return Benchmark(
        name=case.name,
        function=case.marked.function.__name__,
        parameters=dict(case.labels),
        source=case.marked.source,
        file=file,
    )


def find_cases(file: str) -> list[Case]:
    """Import the file, and what is marked in it: at its top level, each name once."""
    module = import_file(Path(file))
    cases: dict[str, Case] = {}
    functions: set[str] = set()
    for marked in marked_functions:
        function = marked.function
        if getattr(function, "__module__", None) != module:
            continue  # another file's, imported by this one
        if function.__qualname__ != function.__name__:
            raise UsageError(
                f"{file}: {function.__qualname__} is not at the top level of the file; mark functions there"
            )
        if function.__name__ in functions:
            raise UsageError(f"{file}: two functions are called {function.__name__}; rename one of them")
        functions.add(function.__name__)
        cases |= {case.name: case for case in marked.cases()}
    return list(cases.values())


def import_file(file: Path) -> str:
    """Import a file under its stem, as a script's neighbour would; the name it has then."""
    name, folder = file.stem, str(file.resolve().parent)
    sys.path.insert(0, folder)
    sys.argv = [str(file)]
    _make_way(folder)
    spec = importlib.util.spec_from_file_location(name, file.resolve())
    if spec is None or spec.loader is None:
        raise UsageError(f"{file} is no Python file")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    with _seeded_generators():
        spec.loader.exec_module(module)
    return name


def _make_way(folder: str) -> None:
    """Forget what we have loaded and the folder has by the same name: its files are to find their own."""
    for name in {module.partition(".")[0] for module in sys.modules} - {"__main__", "pyrometer"}:
        theirs = PathFinder.find_spec(name, [folder])
        ours = getattr(sys.modules.get(name), "__file__", None)
        if name in sys.builtin_module_names or theirs is None or theirs.origin in {None, ours}:
            continue
        for module in [loaded for loaded in sys.modules if loaded.partition(".")[0] == name]:
            del sys.modules[module]


# One benchmark.


def _run(file: str, name: str, calls: int) -> None:
    pacer = pacing.active
    if pacer is None:
        raise UsageError("bench_program: there is nobody to measure it; use pyrometer bench FILE")
    # The steps are ours to tell: torch's watch sees calls of modules, and never waits.
    torch_watch.configure(pacer=pacing.Pacer(-1, whole=True))
    cases = {case.name: case for case in find_cases(file)}
    if name not in cases:
        raise UsageError(f"there is no benchmark {name} in {file}")
    call, note = _prepare(cases[name])
    if calls == 0:
        note = msgspec.structs.replace(_with_memory(call, note), calls=find_calls(call))
    else:
        note = msgspec.structs.replace(note, calls=calls)
    pacer.note = msgspec.json.encode(note).decode()
    _wait_for_the_gpu(pacer)
    pacer.steps_ended()
    while True:
        for _ in repeat(None, note.calls):
            call()
        pacer.steps_ended()


def _prepare(case: Case) -> tuple[Call, BenchmarkNote]:
    """The call, and what the first one shows."""
    marked = case.marked
    # A setup may leave what it makes of them elsewhere than in the arguments.
    parameters = [_checksum_or_why(marked.parameters[name][label])[0] for name, label in case.labels.items()]
    with _seeded_generators():
        given, named = case.make_arguments()
        call = partial(marked.function, *given, **named) if given or named else marked.function
        arguments = [*given, *(named[name] for name in sorted(named))]
        before, reasons = _checksums(arguments)
        returned = call()
    told, why_unchecked = _check(marked, returned)
    after, _ = _checksums(arguments)
    note = BenchmarkNote(
        source=marked.source,
        calls=1,
        checksum=told,
        why_unchecked=why_unchecked,
        inputs=checksum([parameters, before]),
        why_inputs_unchecked=next(filter(None, reasons), None),
        changes_arguments=_has_changed(before, after),
    )
    return call, note


def _check(marked: Marked, returned: object) -> tuple[str | None, str | None]:
    """A checksum of what a call returned, or why there is none."""
    checked = returned if marked.check is None else marked.check(returned)
    if checked is None:
        return None, "it returns None" if marked.check is None else "its check returns None"
    return _checksum_or_why(checked)


@contextmanager
def _seeded_generators() -> Iterator[None]:
    """The generators begin with the seed, numpy's also if it is imported only now: it begins by chance.

    torch begins with a seed of its own, the same each time.
    """
    random.seed(RANDOM_SEED)
    torch = sys.modules.get("torch")
    if torch is not None:
        torch.manual_seed(RANDOM_SEED)
    wait_no_longer = when_imported("numpy", lambda numpy: numpy.random.seed(RANDOM_SEED))
    try:
        yield
    finally:
        wait_no_longer()


def _checksums(values: Iterable[object]) -> tuple[list[str | None], list[str | None]]:
    """Of each value its checksum, or why there is none."""
    both = [_checksum_or_why(value) for value in values]
    return [known for known, _ in both], [why for _, why in both]


def _checksum_or_why(value: object) -> tuple[str | None, str | None]:
    try:
        return checksum(value), None
    except UncheckableError as error:
        return None, str(error)


def _has_changed(before: Iterable[str | None], after: Iterable[str | None]) -> bool | None:
    pairs = list(zip(before, after, strict=True))
    if any(None not in pair and pair[0] != pair[1] for pair in pairs):
        return True
    return None if any(None in pair for pair in pairs) else False


def find_calls(call: Call, *, clock_ns: Callable[[], int] = time.perf_counter_ns) -> int:
    """How many calls take at least ``STEP_NS``: 1, 2, 4 … Of two tries the shorter counts."""
    calls = 1
    while calls < MOST_CALLS:
        tries = []
        for _ in range(2):
            began_ns = clock_ns()
            for _ in repeat(None, calls):
                call()
            tries.append(clock_ns() - began_ns)
        if min(tries) >= STEP_NS:
            break
        calls *= 2
    return calls


def _with_memory(call: Call, note: BenchmarkNote) -> BenchmarkNote:
    """The note with what one call allocates. The counting stays in the way: only where nothing is timed."""
    reason = core.count_allocations()
    if reason is not None:
        return msgspec.structs.replace(note, why_uncounted=reason)
    core.reset_allocations()
    before = core.process_allocations()
    call()
    after = core.process_allocations()
    core.stop_counting_allocations()
    size, count = (sum(after[kind][i] - before[kind][i] for kind in ("tensors", "heap")) for i in (0, 1))
    memory = CallMemory(
        allocations=count, allocated_bytes=size, peak_bytes=max(after["peak"] - before["live"], 0)
    )
    return msgspec.structs.replace(note, memory=memory)


def _wait_for_the_gpu(pacer: pacing.Pacer) -> None:
    torch = sys.modules.get("torch")
    if torch is not None and torch.cuda.is_initialized():
        pacer.has_gpu = True
        pacer.before_reading_the_clock = torch.cuda.synchronize


def _show(error: Exception) -> None:
    """The traceback, from the first frame that is the benchmark's."""
    trace = error.__traceback__
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith((_OURS, "<frozen importlib")):
        trace = trace.tb_next
    traceback.print_exception(error.with_traceback(trace))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
