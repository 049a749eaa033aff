"""Shares that samples give: they add up, recursion counts once, and they say how sure they are."""

import pytest
from hypothesis import given

from pyrometer.analysis.code_origin import CodePlaces, Origin
from pyrometer.analysis.frame_tree import NOTHING, TOP, are_outermost, merge_by
from pyrometer.analysis.sample_results import SampleResults, build_sample_results
from pyrometer.analysis.sampled_functions import Note, SampledFunction
from pyrometer.record.run import Program, Run
from pyrometer.record.samples import StackSamples
from tests.record.example_runs import any_runs, make_node, make_run, make_strand, make_torch_run
from tests.report.sample_runs import empty_run
from tests.sampled_runs import MS, STACKS, THREADS, Seen, stack_samples, with_samples


def results_of(samples: StackSamples, run: Run | None = None) -> SampleResults:
    results = build_sample_results(with_samples(empty_run() if run is None else run, samples))
    assert results is not None
    return results


def function_of(results: SampleResults, name: str) -> SampledFunction:
    return next(function for function in results.functions if function.name == name)


def test_a_run_without_samples_has_no_results_of_them() -> None:
    assert build_sample_results(make_run()) is None


def test_self_and_total_are_shares_of_the_cpu_time() -> None:
    results = results_of(stack_samples(Seen(stack="main;f", python=300), Seen(stack="main", native=100)))
    main, f = function_of(results, "main"), function_of(results, "f")
    assert main.self_share is not None
    assert main.total_share is not None
    assert f.self_share is not None
    assert (main.self_share.value, main.total_share.value, f.self_share.value) == (0.25, 1.0, 0.75)
    assert [function.name for function in results.functions] == ["f", "main"]
    assert [function.rank for function in results.functions] == [1, 2]


@pytest.mark.parametrize(
    "stack", ["fib;fib;fib", "fib;other;fib", "fib;other;fib;other;fib"], ids=["itself", "by another", "both"]
)
def test_a_function_that_calls_itself_counts_once(stack: str) -> None:
    results = results_of(stack_samples(Seen(stack=stack, python=100), Seen(stack="main", python=100)))
    fib = function_of(results, "fib")
    assert fib.total_cpu_ns == 100 * MS
    assert fib.total_wall_ns == 100 * MS
    assert all(line.total_cpu_ns <= 100 * MS for line in results.lines)


def test_the_time_is_split_into_python_native_and_waiting() -> None:
    results = results_of(stack_samples(*STACKS, threads=THREADS))
    parts = results.overall.parts
    assert (parts.python_ns, parts.native_ns, parts.waiting_ns) == (2_890 * MS, 4_800 * MS, 10_400 * MS)
    assert [thread.name for thread in results.threads] == ["MainThread", "loader"]
    assert results.threads[1].parts.waiting_ns == 8_900 * MS
    assert sum((thread.parts for thread in results.threads), NOTHING) == parts


def test_the_time_is_split_by_phase_and_what_is_in_none() -> None:
    run = make_run(make_strand(make_node("step", 900)), torch=make_torch_run())
    samples = stack_samples(
        Seen(stack="main", python=100),
        Seen(stack="main", native=200, call=(0, 0)),
        Seen(stack="main", waiting=300, call=(0, 2)),
    )
    results = results_of(samples, run)
    assert [(phase.name, phase.parts.wall_ns) for phase in results.phases] == [
        ("forward", 500 * MS),
        ("outside any phase", 100 * MS),
    ]


def test_and_by_the_innermost_module_and_scope() -> None:
    run = make_run(make_strand(make_node("step", 900)), torch=make_torch_run())
    assert run.torch is not None
    module = run.torch.calls[0].nodes[1]
    assert module.parent is not None
    samples = stack_samples(
        Seen(stack="main", python=100),
        Seen(stack="main", native=200, call=(0, 0), scope=(0, 0)),
        Seen(stack="main", waiting=300, call=(0, 1), scope=(0, 0)),
    )
    results = results_of(samples, run)
    assert [(split.name, split.parts.wall_ns) for split in results.scopes] == [
        ("step", 500 * MS),
        ("outside any scope", 100 * MS),
    ]
    assert [(split.name, split.parts.wall_ns) for split in results.modules] == [
        ("in no module", 300 * MS),
        (module.name, 300 * MS),
    ]
    for splits in (results.scopes, results.modules):
        assert sum((split.parts for split in splits), NOTHING) == results.overall.parts


def test_without_scopes_or_modules_there_is_no_split_by_them() -> None:
    results = results_of(stack_samples(Seen(stack="main", python=100)))
    assert (results.scopes, results.modules, results.phases) == ((), (), ())


def test_what_the_profiler_does_itself_is_told_apart() -> None:
    results = results_of(stack_samples(*STACKS, threads=THREADS))
    assert results.profiler.cpu_ns > 0
    assert results.profiler.samples + results.overall.parts.samples == stack_samples(*STACKS).samples
    assert results.samples == results.overall.parts.samples == results.recorded.samples
    assert not any(Note.PROFILER in function.notes and function.own.samples for function in results.functions)
    drawn = {results.tree.frames[frame].name for frame in results.tree.frame_of}
    assert "settle" not in drawn


def test_notes_say_whose_code_it_is_and_what_it_does() -> None:
    results = results_of(stack_samples(*STACKS, threads=THREADS))
    notes = {function.name: function.notes for function in results.functions}
    assert notes["Linear.forward"] == (Note.TORCH, Note.NATIVE)
    assert notes["norm"] == (Note.LIBRARY, Note.NATIVE)
    assert notes["Condition.wait"] == (Note.STDLIB, Note.WAITS)
    assert notes["step"] == ()


def test_functions_outside_the_own_code_that_take_much_are_pointed_out() -> None:
    results = results_of(stack_samples(*STACKS, threads=THREADS))
    assert [function.name for function in results.outside] == ["Linear.forward", "norm"]


def test_a_hot_path_is_a_stack_whatever_the_depth_of_recursion() -> None:
    found = results_of(stack_samples(*STACKS, threads=THREADS)).hot_paths
    names = [[(frame.frame.name, frame.times) for frame in path.frames] for path in found.paths]
    assert names[0] == [
        ("<module>", 1),
        ("train", 1),
        ("step", 1),
        ("Module._call_impl", 1),
        ("Linear.forward", 1),
    ]
    first = found.paths[0]
    assert first.native is not None
    assert (first.native.name, first.native_ns, first.cpu_ns) == ("cblas_sgemm", 4_000 * MS, 4_300 * MS)
    fib = found.paths[3]
    assert [(frame.frame.name, frame.times) for frame in fib.frames] == [
        ("<module>", 1),
        ("train", 1),
        ("fib", 4),
    ]
    assert fib.cpu_ns == 900 * MS
    assert fib.samples == 90
    assert [frame.line for frame in fib.frames] == [80, 43, 6]


def test_native_code_is_told_by_function_where_names_are_known() -> None:
    results = results_of(stack_samples(*STACKS, threads=THREADS))
    assert [(native.frame.name, native.cpu_ns) for native in results.natives] == [
        ("cblas_sgemm", 4_000 * MS),
        ("native code", 700 * MS),
        ("native code of libc.so.6", 100 * MS),
    ]
    assert sum(native.cpu_ns for native in results.natives) == results.overall.parts.native_ns
    assert results_of(stack_samples(Seen(stack="main", native=100))).natives == ()


def test_the_paths_that_are_not_listed_are_counted() -> None:
    stacks = [Seen(stack=f"main;f{index}", python=10 * (index + 1)) for index in range(30)]
    found = results_of(stack_samples(*stacks)).hot_paths
    assert len(found.paths) == 20
    assert found.others == 10
    assert found.others_cpu_ns == sum(10 * MS * (index + 1) for index in range(10))


def test_the_widest_frames_do_more_than_call_one_other() -> None:
    wide = results_of(stack_samples(*STACKS, threads=THREADS)).wide_frames
    assert [frame.frame.name for frame in wide] == ["train", "step", "Linear.forward", "load_batch", "norm"]
    assert [frame.depth for frame in wide] == [2, 3, 5, 3, 4]


def test_the_depth_of_stacks_is_that_of_python_frames() -> None:
    depths = results_of(stack_samples(*STACKS, threads=THREADS)).depths
    assert depths is not None
    assert (depths.deepest, depths.deepest_frame.name, depths.median) == (6, "fib", 2)


def test_few_samples_make_wide_intervals_and_many_make_narrow_ones() -> None:
    def margin(times: int) -> float:
        stacks = (Seen(stack="f", python=20 * times), Seen(stack="g", python=80 * times))
        share = function_of(results_of(stack_samples(*stacks)), "f").self_share
        assert share is not None
        assert share.interval.low < 0.2 < share.interval.high
        return share.interval.margin

    # Of 1,000 samples, and with intervals that vary: 1.96 × √(0.2 × 0.8 × 13/12 / 1,000).
    assert margin(100) == pytest.approx(0.0258, abs=0.0001)
    assert margin(1) > 0.2


def test_without_cpu_time_there_are_no_shares() -> None:
    results = results_of(stack_samples(Seen(stack="main", waiting=100)))
    assert results.functions[0].self_share is None
    assert results.hot_paths.paths == ()
    assert results.wide_frames == ()


@given(any_runs())
def test_every_view_adds_up_to_all_there_is(run: Run) -> None:
    results = build_sample_results(run)
    if results is None:
        return
    parts = results.overall.parts
    assert parts.python_ns + parts.native_ns + parts.waiting_ns == parts.wall_ns
    for view in (results.functions, results.lines):
        assert sum((row.own for row in view), NOTHING) == parts
        assert all(row.own.cpu_ns <= row.total_cpu_ns <= parts.cpu_ns for row in view)
    for splits in (results.threads, *([results.phases] if results.phases else [])):
        assert sum((split.parts for split in splits), NOTHING) == parts
    paths = results.hot_paths
    assert sum(path.cpu_ns for path in paths.paths) + paths.others_cpu_ns == parts.cpu_ns
    tree = results.tree
    assert (sum(tree.samples), sum(tree.cpu_ns), sum(tree.wall_ns)) == (
        parts.samples,
        parts.cpu_ns,
        parts.wall_ns,
    )


def test_a_stack_as_deep_as_a_record_allows_is_no_trouble() -> None:
    parents = [TOP, *range(199_999)]
    assert are_outermost(parents, ["f"] * 200_000).count(True) == 1
    assert set(merge_by(parents, ["f"] * 200_000, fold=True)) == {0}


@pytest.mark.parametrize(
    ("file", "origin", "module"),
    [
        ("/srv/project/train.py", Origin.OWN, "train"),
        ("/srv/project/models/net.py", Origin.OWN, "models.net"),
        ("/srv/lib/here.py", Origin.OWN, "lib.here"),
        ("/elsewhere/mine.py", Origin.LIBRARY, "mine"),
        (
            "/srv/project/.venv/lib/python3.12/site-packages/torch/nn/functional.py",
            Origin.TORCH,
            "torch.nn.functional",
        ),
        ("/usr/lib/python3/dist-packages/numpy/__init__.py", Origin.LIBRARY, "numpy"),
        ("/usr/lib/python3.11/json/decoder.py", Origin.STDLIB, "json.decoder"),
        ("<frozen importlib._bootstrap>", Origin.STDLIB, "importlib._bootstrap"),
        ("<string>", Origin.OWN, "<string>"),
        ("/x/site-packages/pyrometer/_native/twin.py", Origin.PROFILER, "pyrometer._native.twin"),
        ("", Origin.OWN, ""),
    ],
)
def test_whose_code_a_file_is_and_which_module(file: str, origin: Origin, module: str) -> None:
    places = CodePlaces(Program(name="x", argv=("project/train.py",), working_directory="/srv"))
    assert places.origin(file) is origin
    assert places.module(file) == module


# Outside any phase.


def _outside(*seen: Seen) -> list[tuple[str, bool, str | None, int]]:
    run = make_run(make_strand(make_node("step", 900)), torch=make_torch_run())
    results = results_of(stack_samples(*seen), run)
    outside = next((phase.parts for phase in results.phases if phase.name == "outside any phase"), NOTHING)
    assert sum((call.parts for call in results.outside_phases), NOTHING) == outside
    return [
        (
            call.frame.name,
            call.is_loop,
            None if call.caller is None else call.caller.name,
            call.parts.wall_ns // MS,
        )
        for call in results.outside_phases
    ]


def test_time_outside_phases_is_that_of_the_functions_the_loop_calls() -> None:
    forward, backward = (0, 0), (0, 2)
    assert _outside(
        Seen(stack="main;train;model", native=500, call=forward),
        Seen(stack="main;train", native=300, call=backward),
        Seen(stack="main;train;save;write", waiting=60),
        Seen(stack="main;train;save;pickle", python=20),
        Seen(stack="main;train;log", python=30),
        Seen(stack="main;train", python=10),
        Seen(stack="main;load;read", python=40),
    ) == [
        ("save", False, "train", 80),
        ("load", False, "main", 40),
        ("log", False, "train", 30),
        ("train", True, "train", 10),
    ]


def test_a_function_that_leads_to_a_phase_only_at_one_place_is_charged_at_the_other() -> None:
    assert _outside(
        Seen(stack="main;step;model", native=500, call=(0, 0)),
        Seen(stack="other;step", python=20),
    ) == [("other", False, None, 20)]


def test_a_program_without_phases_has_none_to_be_outside_of() -> None:
    results = results_of(stack_samples(Seen(stack="main", python=100)))
    assert results.outside_phases == ()
