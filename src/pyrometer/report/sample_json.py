"""The ``samples`` section of the JSON report: what sampled stacks say, unrounded.

``null`` when no stacks were sampled. Shares are fractions of the CPU time of all threads
(``overall.cpu_ns``), each with the ``low`` and ``high`` of its 95 % interval, and null when there was
no CPU time. Times are split alike everywhere: ``samples``, ``waiting`` and ``native`` (of these),
``wall_ns``, ``cpu_ns``, ``python_ns``, ``native_ns``, ``waiting_ns``; the last three make ``wall_ns``.

``samples_per_s``, ``dropped``, ``sampler_cpu_ns``
    As in the run file.
``samples``, ``profiler``
    The samples of the program's code, which all else here is about; the split of those in which the
    profiler's own code was the innermost.
``effective_samples``
    So many samples of equal weight, of running threads, say as much about shares.
``overall``, ``threads``, ``phases``, ``modules``, ``scopes``
    A split each, with a ``name``; threads add up to overall, as do phases, innermost modules and innermost
    scopes, where there are any.
``outside_phases``
    What adds up to the time outside any phase: functions that never lead to one (``name``, ``kind``,
    ``module``, ``file``, ``first_line``), and where ``is_loop`` the own lines of one that does; ``caller``
    and ``line`` where most of it is called, null at the top of a thread; the split of its time.
``functions``, ``functions_not_shown``, ``lines``, ``lines_not_shown``
    By CPU time of their own: ``rank``, ``name`` (of a line ``function``), ``module``, ``file``,
    ``first_line`` (of a line ``line``), ``origin`` and ``notes`` (of functions), the split of its ``own``
    time, ``total_cpu_ns``, ``total_wall_ns`` (of functions), ``self_share``, ``total_share``. Over all of
    them ``own`` adds up to overall; ``total`` holds what was called, recursion once. By default the
    first 1,000.
``hot_paths``
    ``paths``: ``frames`` from the outermost (``name``, ``kind``, ``module``, ``file``, ``first_line``,
    ``line``, ``times`` it called itself), ``samples``, ``cpu_ns``, ``native_ns``, the most
    frequent ``native`` function known by name, ``share``; and ``others``,
    ``others_cpu_ns``, ``others_share``.
``natives``, ``natives_not_shown``
    All native code by function, most CPU time first: ``name``, ``kind``, ``module`` (the library),
    ``file``, ``first_line`` (null), ``samples``, ``cpu_ns``, ``share``. Empty without ``--native``.
``wide_frames``, ``depths``
    Frames at one place that do not merely call one other, widest first: ``name``, ``kind``, ``module``,
    ``file``, ``first_line``, ``depth``, ``cpu_ns``, ``share``. Frames of the ``deepest`` stack, its
    innermost ``deepest_frame``, and the ``median``.
``outside``
    The ranks of the functions outside the program's own code that take more than 5 % by themselves.
"""

from typing import Any

from pyrometer.analysis.frame_tree import Frame, Parts
from pyrometer.analysis.hot_paths import HotPath
from pyrometer.analysis.sample_results import SampleResults, TimeSplit
from pyrometer.analysis.sampled_functions import SampledFunction, SampledLine, Share
from pyrometer.report.torch_json import as_json

_MOST_ROWS = 1_000


def sample_content(results: SampleResults, *, top: int | None) -> dict[str, Any]:
    """The ``samples`` section."""
    most = _MOST_ROWS if top is None else top
    paths, depths = results.hot_paths, results.depths
    return {
        "samples_per_s": results.samples_per_s,
        "samples": results.samples,
        "dropped": results.dropped,
        "sampler_cpu_ns": results.sampler_cpu_ns,
        "profiler": _parts(results.profiler),
        "effective_samples": results.effective_samples,
        "overall": _split(results.overall),
        "threads": [_split(thread) for thread in results.threads],
        "phases": [_split(phase) for phase in results.phases],
        "modules": [_split(module) for module in results.modules],
        "scopes": [_split(scope) for scope in results.scopes],
        "outside_phases": [
            {
                **_frame(call.frame),
                "is_loop": call.is_loop,
                "caller": None if call.caller is None else _frame(call.caller),
                "line": call.line,
                **_parts(call.parts),
            }
            for call in results.outside_phases[:most]
        ],
        "functions": [_row(function) for function in results.functions[:most]],
        "functions_not_shown": len(results.functions[most:]),
        "lines": [_row(line) for line in results.lines[:most]],
        "lines_not_shown": len(results.lines[most:]),
        "hot_paths": {
            "paths": [_path(path) for path in paths.paths],
            "others": paths.others,
            "others_cpu_ns": paths.others_cpu_ns,
            "others_share": _share(paths.others_share),
        },
        "natives": [
            {
                **_frame(native.frame),
                "samples": native.samples,
                "cpu_ns": native.cpu_ns,
                "share": _share(native.share),
            }
            for native in results.natives[:most]
        ],
        "natives_not_shown": len(results.natives[most:]),
        "wide_frames": [
            {
                **_frame(wide.frame),
                "depth": wide.depth,
                "cpu_ns": wide.cpu_ns,
                "share": _share(wide.share),
            }
            for wide in results.wide_frames
        ],
        "depths": None
        if depths is None
        else {
            "deepest": depths.deepest,
            "deepest_frame": _frame(depths.deepest_frame),
            "median": depths.median,
        },
        "outside": [function.rank for function in results.outside],
    }


def _split(split: TimeSplit) -> dict[str, Any]:
    return {"name": split.name, **_parts(split.parts)}


def _parts(parts: Parts) -> dict[str, Any]:
    return {
        "samples": parts.samples,
        "waiting": parts.waiting,
        "native": parts.native,
        "wall_ns": parts.wall_ns,
        "cpu_ns": parts.cpu_ns,
        "python_ns": parts.python_ns,
        "native_ns": parts.native_ns,
        "waiting_ns": parts.waiting_ns,
    }


def _row(row: SampledFunction | SampledLine) -> dict[str, Any]:
    content: dict[str, Any] = as_json(row)
    content["own"] = _parts(row.own)
    content["self_share"] = _share(row.self_share)
    content["total_share"] = _share(row.total_share)
    return content


def _path(path: HotPath) -> dict[str, Any]:
    return {
        "frames": [
            {**_frame(frame.frame), "line": frame.line, "times": frame.times} for frame in path.frames
        ],
        "samples": path.samples,
        "cpu_ns": path.cpu_ns,
        "native_ns": path.native_ns,
        "native": None if path.native is None else _frame(path.native),
        "share": _share(path.share),
    }


def _frame(frame: Frame) -> dict[str, Any]:
    content: dict[str, Any] = as_json(frame)
    return content


def _share(share: Share | None) -> dict[str, float] | None:
    if share is None:
        return None
    return {"value": share.value, "low": share.interval.low, "high": share.interval.high}
