"""The sentences about stack samples."""

from collections.abc import Iterable, Iterator, Sequence

from pyrometer.analysis.frame_tree import Frame, FrameKind
from pyrometer.analysis.hot_paths import HotPath, PathFrame
from pyrometer.analysis.outside_phases import OutsideCall
from pyrometer.analysis.sample_results import SampleResults
from pyrometer.analysis.sampled_functions import (
    OUTSIDE_SHARE,
    Note,
    SampledFunction,
    Share,
)
from pyrometer.units import format_count, format_duration, format_share

NO_SAMPLES = "No stack was sampled: the program was too short, or no thread could be looked at."

_SHORT_NOTES = {Note.STDLIB: "stdlib", Note.NATIVE: "native", Note.PROFILER: "profiler"}
_WHOSE = {
    FrameKind.OWN: "of the program",
    FrameKind.TORCH: "of torch",
    FrameKind.LIBRARY: "of libraries",
    FrameKind.STDLIB: "of the standard library",
    FrameKind.PROFILER: "of the profiler",
}
_FEW_SAMPLES = 100
_MOST_FRAMES = 8
_LAST_KEPT = 2
_WIDE_FRAMES = 3


def describe_sampling(results: SampleResults, *, wordy: bool = True) -> Iterator[str]:
    """What was looked at, and what the columns of time mean."""
    parts = results.overall.parts
    threads = format_count(len(results.threads), "thread")
    yield (
        f"{threads} looked at {results.samples_per_s:,.0f} times a second; "
        f"{parts.running:,} samples of running threads, {parts.waiting:,} of waiting ones."
    )
    if wordy:
        yield (
            "Native: torch, BLAS, built-in functions. Waiting: not on a processor, for sleep, data, locks, "
            "the GIL, or because others were."
        )
    if results.profiler.cpu_ns:
        own = format_duration(results.profiler.cpu_ns)
        yield f"Besides {own} CPU time of the profiler's own on these threads, which is left out."
    if parts.cpu_ns and parts.running < _FEW_SAMPLES:
        yield f"Few samples ({parts.running:,} of running threads): the shares below are rough."


def describe_shares(results: SampleResults, *, wordy: bool = True) -> Iterator[str]:
    """What the shares are of, and how sure they are."""
    of = f"% of {format_duration(results.overall.parts.cpu_ns)} CPU time of all threads"
    if wordy:
        inside = "total holds what a function calls, recursion once"
        yield f"{of}; {inside}. ± is the 95 % interval of self."
    else:
        yield f"{of}; ± is the 95 % interval of self."


def how_to_see_more(*, whole: bool) -> str:
    """The commands for what is not shown."""
    drawn = "pyrometer report RUN --flamegraph FILE.svg draws it"
    return f"{drawn}." if whole else f"{drawn}; --functions shows more functions, stacks, and lines."


def describe_notes(function: SampledFunction, *, wordy: bool) -> str:
    """What is worth knowing of a function, in words."""
    notes = function.notes
    return ", ".join(note.value if wordy else _SHORT_NOTES.get(note, note.value) for note in notes)


def outside_name(call: OutsideCall) -> str:
    """What took time outside any phase."""
    return f"{call.frame.name}, its own lines" if call.is_loop else call.frame.name


def called_at(call: OutsideCall) -> str:
    """Where most of it was called from, or ran."""
    return "top of a thread" if call.caller is None else place(call.caller.file, call.line)


def place(file: str, line: int | None) -> str:
    """A place in a file, by the file's own name: ``linear.py:116``."""
    frozen = file.startswith("<frozen ") and file.endswith(">")
    name = file[8:-1].rpartition(".")[2] if frozen else file.rpartition("/")[2]
    return name if line is None else f"{name}:{line}"


def describe_stack(frames: Sequence[PathFrame]) -> str:
    """A stack in a line, outermost first; frames of libraries between the program's own are counted."""
    return " → ".join(_shortened(frames))


def describe_path(path: HotPath) -> str:
    """A stack in a line, with how much of its time is in native code."""
    stack = describe_stack(path.frames)
    if not path.native_ns:
        return stack
    native = f"{format_share(path.native_ns / path.cpu_ns)} native"
    if path.native is None:
        return f"{stack}; {native}"
    return f"{stack}; {native}, most often {native_name(path.native)}"


def in_words(results: SampleResults, *, most: int | None = None) -> tuple[str, ...]:
    """What to see in the flame graph; at most so many functions that are not the program's own."""
    ran = results.overall.parts.cpu_ns > 0
    return (
        *_widest(results),
        *_deepest(results),
        *(_outside(results.outside, most=most) if ran else ()),
        *_waiting(results),
    )


def _widest(results: SampleResults) -> Iterator[str]:
    if results.wide_frames:
        named = (
            f"{_with_place(wide.frame, wide.frame.first_line)} {_share(wide.share)}"
            for wide in results.wide_frames[:_WIDE_FRAMES]
        )
        yield f"Widest frames that do more than call one other: {', '.join(named)}."


def _deepest(results: SampleResults) -> Iterator[str]:
    depths = results.depths
    if depths is not None:
        frame = depths.deepest_frame
        yield (
            f"Deepest stack: {format_count(depths.deepest, 'frame')}, in "
            f"{_with_place(frame, frame.first_line)}; half of the samples are at most {depths.median} deep."
        )


def _outside(functions: Sequence[SampledFunction], *, most: int | None) -> Iterator[str]:
    limit = f"{100 * OUTSIDE_SHARE:.0f} %"
    if functions:
        named = (
            f"{function.name} of {function.module} {_share(function.self_share)}"
            for function in functions[:most]
        )
        more = 0 if most is None else len(functions[most:])
        rest = f" and {more} more" if more else ""
        yield f"Outside the program's own code, each more than {limit}: {', '.join(named)}{rest}."
    else:
        yield f"No function outside the program's own code takes more than {limit} by itself."


def _waiting(results: SampleResults) -> Iterator[str]:
    """Where the threads wait, if that is a good part of their time."""
    wall_ns = results.overall.parts.wall_ns
    longest = sorted(results.functions, key=lambda function: -function.own.waiting_ns)[:_WIDE_FRAMES]
    named = [
        f"{function.name} ({place(function.file, function.first_line)}) "
        f"{format_share(function.own.waiting_ns / wall_ns)}"
        for function in longest
        if function.own.waiting_ns > OUTSIDE_SHARE * wall_ns
    ]
    if named:
        yield f"Threads wait most in: {', '.join(named)} of their time."


def _share(share: Share | None) -> str:
    return "" if share is None else format_share(share.value)


def _shortened(frames: Sequence[PathFrame]) -> list[str]:
    """The program's own frames and the innermost ones; what lies between is counted."""
    kept = {*range(max(0, len(frames) - _LAST_KEPT), len(frames))}
    own = [index for index, frame in enumerate(frames) if frame.frame.kind is FrameKind.OWN]
    room = _MOST_FRAMES - len(kept)
    own = [index for index in own if index not in kept]
    # The innermost ones of the program's own, and the one that it begins with.
    kept |= {*own[:1], *own[max(1, len(own) - room + 1) :]}
    texts: list[str] = []
    left_out: list[PathFrame] = []
    for index, frame in enumerate(frames):
        if index in kept:
            texts += [_left_out(left_out)] if left_out else []
            left_out = []
            texts.append(_frame(frame))
        else:
            left_out.append(frame)
    return texts


def _left_out(frames: Iterable[PathFrame]) -> str:
    kinds = [frame.frame.kind for frame in frames]
    count = sum(frame.times for frame in frames)
    return f"… {count} {_WHOSE[kinds[0]]} …" if len(set(kinds)) == 1 else f"… {count} …"


def frame_name(frame: Frame) -> str:
    """A frame's name, and of the code of a module that of the module too."""
    return f"{frame.name} {frame.module}" if frame.name == "<module>" else frame.name


def native_name(frame: Frame) -> str:
    """Native code by its name and library, as far as these are known."""
    return frame.name if not frame.module or frame.module in frame.name else f"{frame.name} [{frame.module}]"


def _frame(path_frame: PathFrame) -> str:
    frame = path_frame.frame
    text = _with_place(frame, frame.first_line if path_frame.line is None else path_frame.line)
    return f"{text} ×{path_frame.times:,}" if path_frame.times > 1 and frame.file else text


def _with_place(frame: Frame, line: int | None) -> str:
    return f"{frame.name} ({place(frame.file, line)})" if frame.file else frame.name
