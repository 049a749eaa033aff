"""The processor's counters, read by the core from a stand-in for the kernel, and what is made of them."""

import errno
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyrometer._native import KIND
from pyrometer.capture.hardware_counters import advise, figures, judge
from pyrometer.record.counters import HardwareCounter, HardwareCounters
from tests.cli.running import PROFILED, Folder

SECOND_NS = 1_000_000_000
KNOWN = 2_000_000

PROGRAM = """
    import threading
    worker = threading.Thread(target=sum, args=(range(1000),), name="worker")
    worker.start()
    worker.join()
    print("done")
"""


@pytest.fixture(scope="session")
def fake_kernel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library that answers in place of the kernel's perf events."""
    compiler = shutil.which("gcc") or shutil.which("cc")
    if sys.platform != "linux" or KIND != "native" or compiler is None:
        pytest.skip("needs Linux, the native recorder and a C compiler")
    library = tmp_path_factory.mktemp("fake") / "fake_perf.so"
    source = Path(__file__).with_name("fake_perf.c")
    subprocess.run([compiler, "-shared", "-fPIC", "-O1", source, "-o", library, "-ldl"], check=True)
    return library


@pytest.fixture
def folder(tmp_path: Path, fake_kernel: Path) -> Folder:
    folder = Folder(tmp_path)
    folder.write("program.py", PROGRAM)
    folder.environment["LD_PRELOAD"] = str(fake_kernel)
    return folder


def counted(folder: Folder, **fake: object) -> HardwareCounters:
    """What a run under ``--counters`` leaves in the record."""
    folder.environment |= {f"FAKE_PERF_{name.upper()}": str(value) for name, value in fake.items()}
    ended = folder.profiled("--counters", "program.py")
    assert (ended.stdout, ended.stderr, ended.code) == ("done\n", "", 0)
    counters = folder.record().counters
    assert counters is not None
    assert counters.hardware is not None
    return counters.hardware


def counts(counters: tuple[HardwareCounter, ...]) -> dict[str, int | None]:
    return {counter.name: counter.count for counter in counters}


def test_a_run_has_the_counts_of_the_process(folder: Folder) -> None:
    hardware = counted(folder)
    assert counts(hardware.counters) == {
        "instructions": 8_000_000,
        "cycles": 4_000_000,
        "cache references": 200_000,
        "cache misses": 10_000,
        "branches": 2_500_000,
        "branch misses": 25_000,
        "L1d loads": 2_000_000,
        "L1d load misses": 80_000,
        "LLC loads": 100_000,
        "LLC load misses": 20_000,
    }
    assert all(counter.counted_share == 1 for counter in hardware.counters)
    assert (hardware.advice, hardware.with_forked_processes) == (None, False)


def test_each_thread_of_pythons_is_counted_by_itself(folder: Folder) -> None:
    threads = {thread.thread_name: counts(thread.counters) for thread in counted(folder).threads}
    assert threads.keys() == {"MainThread", "worker"}
    assert threads["worker"]["instructions"] == 4_000_000
    assert threads["worker"]["branch misses"] == 12_500


def test_counters_shared_by_turns_are_scaled_and_say_so(folder: Folder) -> None:
    instructions = counted(folder, share=40).counters[0]
    assert (instructions.count, instructions.counted_share) == (8_000_000, 0.4)


def test_an_event_that_is_not_there_has_a_reason_and_no_count(folder: Folder) -> None:
    hardware = counted(folder, lacks="0.3")
    misses = hardware.counters[3]
    assert (misses.name, misses.count) == ("cache misses", None)
    assert misses.reason == "not given by this machine (ENOENT)"
    assert hardware.counters[2].count == 200_000


def test_a_counter_that_stands_at_0_is_not_believed(folder: Folder) -> None:
    hardware = counted(folder, zero="0.0")
    cycles = hardware.counters[1]
    assert cycles.count is None
    assert cycles.reason == "cannot be believed: reads 0 for work that takes 125,000 or more"
    assert "--cachegrind" in str(hardware.advice)
    assert counts(hardware.threads[0].counters)["cycles"] is None


def test_a_kernel_that_forbids_it_gives_no_counts_and_the_way_to_get_them(folder: Folder) -> None:
    hardware = counted(folder, error=errno.EPERM)
    assert {counter.reason for counter in hardware.counters} == {"the system does not allow it (EPERM)"}
    assert {counter.count for counter in hardware.counters} == {None}
    assert hardware.threads == ()
    assert "perf_event" in str(hardware.advice)


def test_an_old_kernel_counts_forked_processes_too_and_says_so(folder: Folder) -> None:
    hardware = counted(folder, old_kernel=1)
    assert hardware.with_forked_processes
    assert hardware.counters[0].count == 8_000_000


def test_the_program_gets_the_descriptors_it_would_get_without_us(folder: Folder) -> None:
    folder.write("program.py", "import os; print(os.open('/dev/null', os.O_RDONLY))")
    plain, profiled = folder.plain("program.py"), folder.profiled("--counters", "program.py")
    assert profiled == plain


def test_a_forked_child_leaves_the_counters_to_its_parent(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import os, pathlib
        if os.fork() == 0:
            files = [os.path.realpath(file) for file in pathlib.Path("/proc/self/fd").iterdir()]
            os._exit(any("fake_perf" in file for file in files))
        print(os.waitstatus_to_exitcode(os.wait()[1]))
        """,
    )
    assert folder.profiled("--counters", "program.py").stdout == "0\n"


def test_a_program_that_closes_our_files_is_told_so_and_lives(folder: Folder) -> None:
    folder.write("program.py", "import os; os.closerange(3, 65536)\nprint('done')")
    reasons = {counter.reason for counter in counted(folder).counters}
    assert reasons == {"the program has closed our files"}


def test_the_report_shows_rates_and_their_source(folder: Folder) -> None:
    ended = folder.run(*PROFILED, "-o", str(folder.run_file), "--counters", "program.py")
    assert "instructions" in ended.stderr
    assert "2.00 a cycle" in ended.stderr
    assert "5.0 % of cache references" in ended.stderr
    assert "1.0 % of branches" in ended.stderr
    assert "the processor's own counters" in ended.stderr


# What is made of what was read.


def test_a_counter_never_given_time_has_no_count() -> None:
    [figure] = figures([("cycles", (0, SECOND_NS, 0))], {})
    assert (figure.count, figure.reason) == (None, "was never counted: other events had the counters")


def test_a_thread_that_never_ran_has_no_count() -> None:
    [figure] = figures([("cycles", (0, 0, 0))], {})
    assert (figure.count, figure.reason) == (None, "nothing ran")


def test_a_count_of_0_that_was_counted_is_0() -> None:
    [figure] = figures([("LLC load misses", (0, SECOND_NS, SECOND_NS))], {})
    assert (figure.count, figure.reason) == (0, None)


@pytest.mark.parametrize(
    ("name", "count", "believed"),
    [
        ("instructions", KNOWN, True),
        ("instructions", KNOWN - 1, False),
        ("instructions", 40 * KNOWN, False),
        ("cycles", KNOWN // 16, True),
        ("cycles", 100, False),
        ("branches", KNOWN // 2, True),
        ("cache misses", 1, True),
        ("cache misses", 0, False),
    ],
)
def test_a_counter_is_believed_if_it_fits_the_known_work(name: str, count: int, believed: bool) -> None:
    assert (judge([(name, (count, SECOND_NS, SECOND_NS))], KNOWN) == {}) is believed


def test_known_work_is_judged_by_the_scaled_count() -> None:
    assert judge([("instructions", (KNOWN // 2, SECOND_NS, SECOND_NS // 2))], KNOWN) == {}


@pytest.mark.parametrize(
    ("error", "paranoid", "words"),
    [
        (errno.EACCES, 4, "sysctl kernel.perf_event_paranoid=2 (it is 4)"),
        (errno.EPERM, 2, "--cap-add PERFMON"),
        (errno.EPERM, None, "--cap-add PERFMON"),
        (errno.ENOENT, 2, "Virtual machines often pass no counters on"),
        (errno.ENOSYS, None, "--cachegrind"),
    ],
)
def test_each_refusal_comes_with_the_way_out(error: int, paranoid: int | None, words: str) -> None:
    advice = advise([("cycles", error)], paranoid)
    assert advice is not None
    assert words in advice


def test_nothing_is_advised_where_nothing_is_missing() -> None:
    assert advise([("cycles", (1, 1, 1))], 2) is None
