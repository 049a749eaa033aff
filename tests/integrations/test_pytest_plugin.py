"""The plugin as its users see it: whole runs of pytest, each in a process of its own."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from pyrometer._native import KIND
from pyrometer.analysis.results import build_results
from pyrometer.store.run_files import read_run

pytest_plugins = "pytester"

NATIVE = pytest.mark.skipif(KIND != "native", reason="only the compiled core counts allocations")

# Times are made up, so that nothing depends on the machine: each function says what a call of it takes.
MADE_UP_TIMES = """
    import contextlib, itertools
    from pyrometer.integrations import pytest_judging

    @contextlib.contextmanager
    def timing(function, arguments, positional=()):
        function = getattr(function, "__func__", function)
        self = [object()] if "self" in function.__code__.co_varnames[:1] else []
        noises = itertools.cycle(getattr(function, "noises", (1.0,)))
        def timed(calls):
            function(*self, **arguments)
            return round(calls * function.cost_ns * next(noises))
        yield timed

    pytest_judging.timing = timing
"""


@pytest.fixture(autouse=True)
def _own_surroundings(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [*os.environ]:
        if name.startswith(("PYROMETER", "PYTEST_ADDOPTS")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "120")


def run(pytester: pytest.Pytester, *arguments: str) -> pytest.RunResult:
    return pytester.runpytest_subprocess("-p", "no:cacheprovider", *arguments)


# Not used


def test_pytest_starts_without_anything_dear() -> None:
    program = (
        "import sys, pytest; before = set(sys.modules);"
        "import pyrometer.integrations.pytest_plugin;"
        "loaded = set(sys.modules) - before;"
        "print(sorted(name for name in loaded if name.startswith('pyrometer.integrations')));"
        "print({'msgspec', 'typer', 'rich', 'psutil', 'torch', 'pyrometer.session'} & loaded)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "['pyrometer.integrations', 'pyrometer.integrations.pytest_plugin']\nset()\n"


def test_tests_without_marker_or_fixture_run_as_without_us(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import sys
        def test_it(request):
            names = {name for name in sys.modules if name.startswith("pyrometer.integrations.")}
            assert names == {"pyrometer.integrations.pytest_plugin"}
            assert "msgspec" not in sys.modules
            assert not request.config.pluginmanager.has_plugin("pyrometer-measuring")
        """
    )
    result = run(pytester, "-p", "no:hypothesispytest")
    result.assert_outcomes(passed=1)
    result.stdout.no_fnmatch_line("*= pyrometer =*")


def test_the_markers_are_known_and_explained(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.max_time('1 h')\ndef test_it(): ...")
    run(pytester, "--strict-markers").assert_outcomes(passed=1)
    run(pytester, "--markers").stdout.fnmatch_lines(
        [
            "@pytest.mark.max_time(ratio=1.2, reference=function)*",
            "@pytest.mark.max_memory('60 MB'*",
            "@pytest.mark.max_allocations(1000*",
        ]
    )


# max_memory, max_allocations


COUNTED = """
    import threading, unittest
    import pytest

    MB = 1_000_000

    @pytest.fixture
    def data():
        held = bytearray(9 * MB)
        yield held
        bytearray(9 * MB)

    @pytest.mark.max_memory("4 MB")
    def test_too_much(data):
        block = bytearray(5 * MB)

    @pytest.mark.max_memory("4 MB")
    def test_enough_for_one_after_the_other(data):
        for _ in range(3):
            bytearray(3 * MB)

    @pytest.mark.max_memory("4 MB")
    def test_too_much_elsewhere():
        thread = threading.Thread(target=bytearray, args=[5 * MB])
        thread.start()
        thread.join()

    @pytest.mark.max_allocations(3)
    @pytest.mark.parametrize("number", [3, 4])
    def test_so_many(number):
        for _ in range(number):
            bytearray(1_000)

    class TestInClass:
        @pytest.mark.max_allocations(0)
        def test_method(self):
            bytearray(1_000)

    class TestCase(unittest.TestCase):
        @pytest.mark.max_allocations(1)
        def test_case(self):
            blocks = [bytearray(1_000), bytearray(1_000)]

        @pytest.mark.max_time("1 ns")
        @pytest.mark.max_allocations(1)
        def test_case_fails(self):
            blocks = [bytearray(1_000), bytearray(1_000)]
            self.fail("its own failure")

    CACHE = []

    @pytest.mark.max_allocations(0)
    def test_first_call_counts():
        if not CACHE:
            CACHE.append(bytearray(1_000))

    LATER = []

    @pytest.mark.max_allocations(0, warmup=1)
    def test_first_call_apart():
        if not LATER:
            LATER.append(bytearray(1_000))

    @pytest.mark.max_memory("1 MB")
    def test_own_failure_wins():
        block = bytearray(5 * MB)
        raise ValueError("its own failure")

    @pytest.mark.max_memory("1 MB")
    @pytest.mark.xfail(reason="known to be large", strict=True)
    def test_expected():
        block = bytearray(5 * MB)

    @pytest.mark.max_memory("1 MB")
    def test_skips():
        block = bytearray(5 * MB)
        pytest.skip("not today")

    @pytest.mark.max_memory("nonsense")
    @pytest.mark.skip
    def test_skipped(): ...

    @pytest.mark.max_memory("nonsense")
    def test_wrong(data): ...
"""


@NATIVE
def test_memory_and_allocations_beyond_their_limit_fail_the_test(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_counted=COUNTED)
    result = run(pytester, "-rA", "-W", "error")
    result.assert_outcomes(passed=3, failed=8, skipped=2, xfailed=1, errors=1, warnings=0)
    result.stdout.fnmatch_lines_random(
        [
            "PASSED test_counted.py::test_enough_for_one_after_the_other",
            "PASSED test_counted.py::test_so_many[[]3]",
            "PASSED test_counted.py::test_first_call_apart",
            "max_memory: the test's call held 5,0*,*** bytes at once (4.* MiB), over what there was *",
            "*; at most 4,000,000 (3.81 MiB) are allowed",
            "  about 4.77 MiB allocated by test_counted.py:14 test_too_much",
            "max_allocations: the test's call made 4 allocations (3.91 KiB); at most 3 are allowed",
            "max_allocations: the test's call made 2 allocations (1.96 KiB); at most 1 are allowed",
            "FAILED test_counted.py::test_too_much_elsewhere - *max_memory*",
            "FAILED test_counted.py::TestInClass::test_method - *max_allocations*",
            "FAILED test_counted.py::test_first_call_counts - *max_allocations*",
            "FAILED test_counted.py::test_own_failure_wins - ValueError: its own failure",
            "FAILED test_counted.py::TestCase::test_case_fails - AssertionError: its own failure",
            "XFAIL test_counted.py::test_expected - known to be large",
            "ERROR test_counted.py::test_wrong - *max_memory: 'nonsense' cannot be read*",
        ]
    )


def test_where_allocations_are_not_counted_a_warning_says_so(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYROMETER_NATIVE", "0")
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.max_memory("1 kB")
        @pytest.mark.max_allocations(1)
        def test_it(pyrometer):
            blocks = [bytearray(10_000), bytearray(10_000)]
            with pyrometer.measure("none") as measured:
                bytearray(10_000)
            assert (measured.allocated_bytes, measured.allocations, measured.peak_bytes) == (None, None, None)
            assert measured.why_not_counted == "allocations are not counted: needs the compiled core"
        """
    )
    result = run(pytester, "-W", "error", "--pyrometer")
    result.assert_outcomes(passed=1, warnings=2)
    reason = "cannot be told here: allocations are not counted: needs the compiled core"
    result.stdout.fnmatch_lines_random([f"*: max_memory {reason}", f"*: max_allocations {reason}"])


@NATIVE
def test_doctests_take_limits_too(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pytest
        def pytest_collection_modifyitems(items):
            for item in items:
                item.add_marker(pytest.mark.max_memory("1 MB"))
        """
    )
    pytester.makepyfile(
        large='''"""
    >>> len(bytearray(5_000_000))
    5000000
    """'''
    )
    result = run(pytester, "--doctest-modules", "large.py", "--pyrometer")
    result.assert_outcomes(failed=1)
    result.stdout.fnmatch_lines(["max_memory: the test's call held 5,*", "*large.py::large*"])


# max_time


def test_a_test_slower_than_its_reference_fails_and_any_other_passes(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(MADE_UP_TIMES)
    pytester.makepyfile(
        test_timed="""
        import pytest

        def costing(cost_ns, noises=(1.0,)):
            def mark(function):
                function.cost_ns, function.noises = cost_ns, noises
                return function
            return mark

        @costing(1_000)
        def reference(): ...

        @costing(1_000)
        def taking(data):
            assert data == "of the fixture"

        @pytest.fixture
        def data():
            return "of the fixture"

        @pytest.mark.max_time(ratio=1.2, reference=reference)
        @costing(1_500)
        def test_slower(): print("again and again")

        @pytest.mark.max_time(ratio=1.2, reference=taking)
        @costing(1_100)
        def test_within(data): ...

        @pytest.mark.max_time(ratio=1.2, reference=reference)
        @costing(1_200, noises=(0.5, 2.0))
        def test_noisy(): ...

        @pytest.mark.max_time(ratio=1.2, reference=taking)
        @pytest.mark.parametrize("number", [1, 2])
        @costing(1_500)
        def test_slower_with(data, number): ...

        class TestInClass:
            @pytest.mark.max_time(ratio=1.2, reference=reference)
            @costing(1_500)
            def test_method(self): ...

        @pytest.mark.max_time(ratio=1.2, reference=reference)
        @costing(1_500)
        def test_own_failure_wins():
            raise ValueError("its own failure")
        """
    )
    result = run(pytester, "-rA", "-W", "error", "--pyrometer")
    result.assert_outcomes(passed=2, failed=5, warnings=1)
    result.stdout.fnmatch_lines_random(
        [
            "max_time: the test takes 1.5 × as long as the reference (99 % interval 1.5–1.5, 10 blocks in *",
            "*; 1.50 µs a call against 1.00 µs); at most 1.2 × is allowed",
            "*test_noisy: max_time: could not tell whether more than 1.2 ×: the test takes * ×*40 blocks*",
            "FAILED test_timed.py::test_slower_with[[]2] - *max_time*",
            "FAILED test_timed.py::TestInClass::test_method - *max_time*",
            "FAILED test_timed.py::test_own_failure_wins - ValueError: its own failure",
            "PASSED test_timed.py::test_within",
            "PASSED test_timed.py::test_noisy",
        ]
    )


def test_what_cannot_be_called_again_is_told_apart(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_once="""
        import pytest

        CALLS = []

        def reference(): ...

        def broken():
            raise KeyError("lost")

        @pytest.mark.max_time(ratio=1.2, reference=reference)
        def test_only_once():
            CALLS.append(1)
            assert len(CALLS) == 1

        @pytest.mark.max_time(ratio=1.2, reference=broken)
        def test_beside_a_broken_one(): ...
        """
    )
    result = run(pytester, "-W", "error")
    result.assert_outcomes(passed=1, failed=1, warnings=1)
    result.stdout.fnmatch_lines_random(
        [
            "*max_time cannot be told: the test, called again with the same fixtures, raised AssertionError*",
            "max_time: the reference raised KeyError: 'lost'; it must be callable as often as the test is",
        ]
    )


def test_whatever_a_repeated_call_raises_is_told(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_raises="""
        import asyncio
        import pytest

        CALLS = []

        async def cancelled():
            raise asyncio.CancelledError("too late")

        def reference(): ...

        @pytest.mark.max_time(ratio=1.2, reference=cancelled)
        def test_beside_one_that_is_cancelled(): ...

        @pytest.mark.max_time(ratio=1.2, reference=reference)
        def test_leaving():
            CALLS.append(1)
            if len(CALLS) > 1:
                raise GeneratorExit
        """
    )
    result = run(pytester, "-W", "error")
    result.assert_outcomes(passed=1, failed=1, warnings=1)
    result.stdout.fnmatch_lines_random(
        [
            "max_time: the reference raised CancelledError: *; it must be callable as often as the test is",
            "*max_time cannot be told: the test, called again with the same fixtures, raised GeneratorExit*",
        ]
    )


def test_an_interruption_of_a_repeated_call_ends_the_session(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest

        def interrupted():
            raise KeyboardInterrupt

        @pytest.mark.max_time(ratio=1.2, reference=interrupted)
        def test_it(): ...
        """
    )
    assert run(pytester).ret == pytest.ExitCode.INTERRUPTED


def test_repeated_calls_leave_no_trace_in_the_report(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        MADE_UP_TIMES
        + """
    def pytest_runtest_logreport(report):
        if report.when == "call":
            counts = report.caplog.count("told"), report.capstdout.count("printed")
            with open("reported.txt", "a") as file:
                print(report.nodeid, len(report.user_properties), *counts, file=file)
    """
    )
    pytester.makepyfile(
        test_noisy="""
        import logging, sys, warnings
        import pytest

        apart = logging.getLogger("apart")
        apart.propagate = False

        def reference(): ...
        reference.cost_ns = 1_000

        @pytest.mark.max_time(ratio=1.2, reference=reference)
        def test_noisy(record_property):
            print("printed")
            sys.stdout.buffer.flush()
            assert sys.stdout.encoding and sys.stderr.fileno() >= 0
            logging.error("told to the root")
            apart.error("told apart")
            warnings.warn("mind the step")
            record_property("key", "value")

        CALLS = []

        @pytest.mark.max_time(ratio=1.2, reference=reference)
        def test_looks_at_it(caplog, recwarn):
            CALLS.append(1)
            logging.error("seen")
            warnings.warn("mind the gap")
            assert len(caplog.records) == len(recwarn) == len(CALLS)

        test_noisy.cost_ns = test_looks_at_it.cost_ns = 1_000

        def test_afterwards():
            logging.error("told afterwards")
            apart.error("told afterwards")
            assert logging.NullHandler not in map(type, [*apart.handlers, *logging.getLogger().handlers])
        """
    )
    result = run(pytester, "-W", "always")
    # The one of the test's own call.
    result.assert_outcomes(passed=3, warnings=1)
    result.stdout.fnmatch_lines(["*UserWarning: mind the step"])
    # Properties, records and lines of each.
    assert Path("reported.txt").read_text(encoding="utf-8").splitlines() == [
        "test_noisy.py::test_noisy 1 2 1",
        "test_noisy.py::test_looks_at_it 0 0 0",
        "test_noisy.py::test_afterwards 0 2 0",
    ]


def test_an_absolute_time_only_warns(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import pytest
        @pytest.mark.max_time(seconds=1e-9)
        def test_longer(): ...
        @pytest.mark.max_time("1 h")
        def test_shorter(): ...
        """
    )
    result = run(pytester, "-W", "error")
    result.assert_outcomes(passed=2, warnings=1)
    result.stdout.fnmatch_lines(["*test_longer: max_time: the test's call took *, more than 1 ns; *"])


def test_the_warnings_can_be_ignored_by_their_name(pytester: pytest.Pytester) -> None:
    pytester.makepyfile("import pytest\n@pytest.mark.max_time(seconds=1e-9)\ndef test_longer(): ...")
    name = "pyrometer.integrations.pytest_plugin.PyrometerWarning"
    run(pytester, "-W", f"ignore::{name}").assert_outcomes(passed=1, warnings=0)


ASYNCHRONOUS = """
    import asyncio
    import pytest

    @pytest.fixture
    def anyio_backend():
        return "asyncio"

    async def reference(data):
        await asyncio.sleep(0)

    @pytest.fixture
    def data():
        return 5_000_000

    @pytest.mark.anyio
    @pytest.mark.max_memory("1 MB", warmup=1)
    async def test_large(data):
        block = bytearray(data)
        await asyncio.sleep(0)

    @pytest.mark.anyio
    @pytest.mark.max_time(ratio=1_000_000, reference=reference)
    async def test_timed(data):
        await asyncio.sleep(0)
"""


@NATIVE
def test_asynchronous_tests_are_measured_like_others(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(ASYNCHRONOUS)
    result = run(pytester, "-W", "error")
    result.assert_outcomes(passed=1, failed=1, warnings=0)
    result.stdout.fnmatch_lines(["max_memory: the test's call held 5,0*"])


def test_what_is_timed_is_the_test_itself_and_not_what_another_plugin_runs_it_by(
    pytester: pytest.Pytester,
) -> None:
    # As pytest-asyncio does it.
    pytester.makeconftest(
        """
        import asyncio, functools, inspect
        import pytest
        from pyrometer.integrations import pytest_judging

        class Coroutine(pytest.Function):
            def runtest(self):
                function = self.obj
                assert inspect.iscoroutinefunction(function)

                @functools.wraps(function)
                def synchronous(**arguments):
                    asyncio.run(function(**arguments))

                self.obj = synchronous
                super().runtest()

        def pytest_pycollect_makeitem(collector, name, obj):
            if name.startswith("test") and inspect.iscoroutinefunction(obj):
                return Coroutine.from_parent(collector, name=name)

        timing = pytest_judging.timing

        def noting(function, arguments):
            with open("timed.txt", "a") as file:
                print(function.__name__, inspect.iscoroutinefunction(function), file=file)
            return timing(function, arguments)

        pytest_judging.timing = noting
        """
    )
    pytester.makepyfile(
        """
        import pytest

        async def reference(): ...

        @pytest.mark.max_allocations(1_000_000, warmup=2)
        @pytest.mark.max_time(ratio=1_000_000, reference=reference)
        async def test_it(): ...
        """
    )
    run(pytester, "-p", "no:anyio").assert_outcomes(passed=1)
    assert Path("timed.txt").read_text(encoding="utf-8") == "test_it True\nreference True\n"


# The fixture


@NATIVE
def test_the_fixture_measures_inside_a_test_and_the_summary_tells(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        test_fixture="""
        def test_it(pyrometer):
            with pyrometer.measure("load") as measured:
                block = bytearray(5_000_000)
            assert measured.duration_ns > 0
            assert (measured.allocated_bytes, measured.allocations) == (5_000_001, 1)
            assert 5_000_000 <= measured.peak_bytes < 5_200_000
            assert pyrometer(len, "four") == 4
            assert [each.name for each in pyrometer.measurements] == ["load", "len"]
            comparison = pyrometer.compare(sorted, list, range(10), )
            assert comparison.low <= comparison.ratio <= comparison.high
            with pyrometer.scope("inside"):
                pass
        """
    )
    result = run(pytester, "-W", "error")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(
        [
            "*= pyrometer =*",
            "measured in tests * time  allocated  allocs *peak",
            "test_fixture.py::test_it load *  4.77MiB       1  4.7*MiB",
            "test_fixture.py::test_it len *",
            "test_fixture.py::test_it sorted / list",
            "  * × the reference (*–*): *",
        ]
    )


@NATIVE
def test_the_fixture_measures_a_coroutine_function_while_it_is_awaited(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(
        """
        import asyncio
        import pytest

        @pytest.fixture
        def anyio_backend():
            return "asyncio"

        async def load(size, *, more):
            await asyncio.sleep(0)
            block = bytearray(size + more)
            await asyncio.sleep(0)
            return len(block)

        async def failing():
            raise ValueError("its own")

        @pytest.mark.anyio
        async def test_awaited(pyrometer):
            assert await pyrometer(load, 4_000_000, more=1_000_000) == 5_000_000
            assert pyrometer.last.allocated_bytes >= 5_000_000
            with pytest.raises(ValueError, match="its own"):
                await pyrometer(failing)
            assert [each.name for each in pyrometer.measurements] == ["load", "failing"]

        @pytest.mark.anyio
        async def test_at_once(pyrometer):
            sizes = await asyncio.gather(*(pyrometer(load, size, more=0) for size in (1_000, 2_000)))
            assert sizes == [1_000, 2_000]
            assert len(pyrometer.measurements) == 2

        @pytest.mark.anyio
        async def test_compared_in_a_loop(pyrometer):
            for pair in ((load, len), (len, load)):
                with pytest.raises(RuntimeError, match="call it from a test that is not async"):
                    pyrometer.compare(*pair, 1_000)
            assert pyrometer.comparisons == []
        """
    )
    # An error is what was never awaited, too.
    run(pytester, "-W", "error").assert_outcomes(passed=3, warnings=0)
    run(pytester, "-W", "error", "--pyrometer").assert_outcomes(passed=3, warnings=0)


# --pyrometer


PROFILED = """
    import pytest
    import pyrometer as profiler

    @pytest.fixture
    def data():
        with profiler.scope("preparing"):
            yield bytearray(1_000_000)

    @pytest.mark.parametrize("size", [1, 3])
    def test_sized(size):
        with profiler.scope("work"):
            with profiler.scope("inner"):
                block = bytearray(size * 1_000_000)

    def test_with(data): ...

    def test_fails():
        with profiler.scope("work"):
            raise ValueError("its own failure")

    @pytest.mark.skip
    def test_skipped(): ...
"""


@pytest.mark.parametrize("native", ["1", "0"])
def test_tests_are_profiled_and_the_run_can_be_read(
    pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch, native: str
) -> None:
    monkeypatch.setenv("PYROMETER_NATIVE", native)
    pytester.makepyfile(test_profiled=PROFILED)
    result = run(pytester, "-W", "error", "--pyrometer-output", "out/run.json")
    result.assert_outcomes(passed=3, failed=1, skipped=1)
    result.stdout.fnmatch_lines(
        [
            "*= pyrometer =*",
            "4 tests, * in their calls",
            "slowest tests *",
            "top scopes *calls *total *self",
            "run written to *out/run.json; read it with: pyrometer report *out/run.json",
        ]
    )
    run_file = read_run(pytester.path / "out" / "run.json")
    tree = build_results(run_file).tree
    tests = {root.name: root for root in tree.roots}
    assert set(tests) == {
        "preparing",
        "test_profiled.py::test_sized[1]",
        "test_profiled.py::test_sized[3]",
        "test_profiled.py::test_with",
        "test_profiled.py::test_fails",
    }
    sized = tests["test_profiled.py::test_sized[3]"]
    assert [child.name for child in sized.children] == ["work"]
    assert [child.name for child in sized.children[0].children] == ["inner"]
    assert run_file.program.name == "pytest"
    assert run_file.outcome.status == "finished"


TRAINING = """
    import pytest
    import torch

    def train(steps=5):
        model = torch.nn.Linear(8, 1)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for _ in range(steps):
            optimizer.zero_grad()
            model(torch.randn(16, 8)).sum().backward()
            optimizer.step()

    @pytest.mark.max_time(ratio=1_000, reference=train)
    def test_trains():
        train()

    def test_trains_longer():
        train(7)
"""


@pytest.mark.torch
def test_steps_of_tests_are_recorded_and_those_made_to_time_them_are_not(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(TRAINING)
    run(pytester, "-W", "error", "--pyrometer-output", "run.json").assert_outcomes(passed=2)
    torch = read_run(pytester.path / "run.json").torch
    assert torch is not None
    assert [(group.kind, group.steps) for group in torch.groups] == [("training", 12)]


def test_without_a_file_the_summary_is_all(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="def test_it(): ...")
    result = run(pytester, "--pyrometer")
    result.assert_outcomes(passed=1)
    result.stdout.fnmatch_lines(["1 test, *", "test_it.py::test_it *", "no scopes inside the tests; *"])
    assert [path.name for path in pytester.path.glob("**/*.json*")] == []


def test_a_place_that_cannot_be_written_to_is_told_before_any_test_runs(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="def test_it(): ...")
    Path("taken.json").write_text("[]", encoding="utf-8")
    result = run(pytester, "--pyrometer-output", "taken.json")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: --pyrometer-output: *taken.json exists and is not a run*"])
    result.stdout.no_fnmatch_line("*passed*")


MANY_TESTS = """
import pytest
import pyrometer
@pytest.mark.parametrize("number", range(6))
def test_many(number):
    with pyrometer.scope("inside"):
        pass
"""


def test_workers_of_xdist_write_a_file_each_and_one_table(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=MANY_TESTS)
    result = run(pytester, "-n2", "--pyrometer-output", "out/run.json.gz")
    result.assert_outcomes(passed=6)
    files = [pytester.path / "out" / f"run-gw{worker}.json.gz" for worker in (0, 1)]
    assert sorted((pytester.path / "out").iterdir()) == files
    result.stdout.fnmatch_lines(
        [
            "6 tests, *",
            *[r"test_it.py::test_many[[]*"] * 6,
            "each worker of xdist recorded itself; runs written to:",
            *(f"  {file}" for file in files),
        ]
    )
    scopes = [scope for file in files for scope in build_results(read_run(file)).scopes]
    assert sum(scope.calls for scope in scopes if scope.name == "inside") == 6


def test_a_worker_of_xdist_replaces_no_file_that_is_no_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it=MANY_TESTS)
    Path("run-gw0.json").write_text("[]", encoding="utf-8")
    result = run(pytester, "-n2", "--pyrometer-output", "run.json")
    result.assert_outcomes(passed=6)
    result.stdout.fnmatch_lines(
        [
            "gw0: the run could not be kept: *run-gw0.json exists and is not a run that could be replaced*",
            "*; runs written to:",
            "  *run-gw1.json",
        ]
    )
    result.stdout.no_fnmatch_line("  *run-gw0.json")
    assert Path("run-gw0.json").read_text(encoding="utf-8") == "[]"


def test_a_worker_of_xdist_that_dies_takes_only_its_own_figures_along(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_dies="import os\ndef test_dies(): os._exit(3)", test_it=MANY_TESTS)
    result = run(pytester, "-n2", "--pyrometer-output", "run.json")
    result.assert_outcomes(passed=6, failed=1)
    result.stdout.fnmatch_lines(["6 tests, *", "each worker of xdist recorded itself; runs written to:"])
    written = {path.name for path in pytester.path.glob("run-gw*.json")}
    assert len(written & {"run-gw0.json", "run-gw1.json"}) == 1


def test_collecting_only_records_nothing(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="def test_it(): ...")
    result = run(pytester, "--collect-only", "--pyrometer-output", "run.json")
    assert result.ret == 0
    assert not (pytester.path / "run.json").exists()
    result.stdout.no_fnmatch_line("*= pyrometer =*")


def test_an_interrupted_session_has_its_run(pytester: pytest.Pytester) -> None:
    pytester.makepyfile(test_it="def test_one(): ...\ndef test_two(): raise KeyboardInterrupt")
    result = run(pytester, "--pyrometer-output", "run.json")
    assert result.ret == pytest.ExitCode.INTERRUPTED
    outcome = read_run(pytester.path / "run.json").outcome
    assert (outcome.status, outcome.detail) == ("exception", "INTERRUPTED")


# Whatever happens to us


@pytest.mark.parametrize("broken", ["Meter.begin", "Meter.end"])
def test_a_failure_of_ours_is_a_warning(pytester: pytest.Pytester, broken: str) -> None:
    pytester.makeconftest(
        f"""
        from pyrometer.integrations.pytest_measuring import Meter
        def fail(self):
            raise RuntimeError("ours")
        {broken} = fail
        """
    )
    pytester.makepyfile("import pytest\n@pytest.mark.max_memory('1 MB')\ndef test_it(): bytearray(5_000_000)")
    result = run(pytester, "-W", "error")
    result.assert_outcomes(passed=1, warnings=1)
    result.stdout.fnmatch_lines(["*measuring failed, and the test's own result stands: RuntimeError: ours"])


def test_a_failure_of_ours_outside_of_tests_is_told_in_the_summary(pytester: pytest.Pytester) -> None:
    pytester.makeconftest(
        """
        import pyrometer.store.run_files
        def fail(run, path):
            raise OSError("no room")
        pyrometer.store.run_files.write_run = fail
        """
    )
    pytester.makepyfile("def test_it(): ...")
    result = run(pytester, "--pyrometer-output", "run.json")
    result.assert_outcomes(passed=1)
    assert result.ret == 0
    result.stdout.fnmatch_lines(["the run could not be kept: OSError: no room"])
    result.stdout.no_fnmatch_line("run written to*")
