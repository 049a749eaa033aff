"""What is allocated besides tensors: counted in all libraries, and everything put back at the end."""

import ctypes
import functools
import mmap
import os
import shutil
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from tests.recorders import CORE, available_recorders, load, seen

LIBRARY = """
#include <stdlib.h>
void *take(size_t size) { return malloc(size); }
void *take_zeroed(size_t count, size_t size) { return calloc(count, size); }
void *grow(void *block, size_t size) { return realloc(block, size); }
void *take_aligned(size_t size) { void *block; return posix_memalign(&block, 64, size) ? NULL : block; }
void *take_page(size_t size) { return aligned_alloc(4096, size); }
void give_back(void *block) { free(block); }
void *(*variable)(size_t) = malloc;
void *take_by_variable(size_t size) { return variable(size); }
"""


def tool(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name}")
    return found


def compiler() -> str:
    return tool("gcc")


@pytest.fixture(scope="module")
def core() -> ModuleType:
    if CORE not in available_recorders():
        pytest.skip("the C core is not built: nothing is counted without it")
    if sys.platform != "linux":
        pytest.skip("allocations are counted on Linux only")
    return load(CORE)


@pytest.fixture
def counting(core: ModuleType) -> Iterator[ModuleType]:
    assert core.count_allocations() is None
    core.reset_allocations()
    yield core
    core.stop_counting_allocations()


@pytest.fixture(scope="module")
def library_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("library")
    (folder / "taking.c").write_text(LIBRARY)
    path = folder / "libtaking.so"
    subprocess.run(
        [compiler(), "-shared", "-fPIC", "-O0", str(folder / "taking.c"), "-o", str(path)], check=True
    )
    return path


@pytest.fixture
def library(library_path: Path) -> ctypes.CDLL:
    loaded = ctypes.CDLL(str(library_path))
    for name in ("take", "take_zeroed", "grow", "take_aligned", "take_page", "take_by_variable"):
        getattr(loaded, name).restype = ctypes.c_void_p
    loaded.grow.argtypes = [ctypes.c_void_p, ctypes.c_size_t]
    loaded.give_back.argtypes = [ctypes.c_void_p]
    return loaded


def grown(core: ModuleType, act: Callable[[], object]) -> tuple[int, int]:
    """Bytes and calls that the calling thread took from the heap for it."""
    before = core.allocation_totals()[1]
    kept = act()
    after = core.allocation_totals()[1]
    del kept
    return after[0] - before[0], after[1] - before[1]


def assert_took(found: tuple[int, int], size: int, calls: int) -> None:
    """Exactly that; where the sanitizers have Python's small objects come from malloc, those too."""
    if os.environ.get("PYTHONMALLOC") == "malloc":
        assert size <= found[0] < size + 2_000
        assert calls <= found[1] < calls + 30
    else:
        assert found == (size, calls)


@pytest.mark.parametrize("size", [1_000, 100_000, 10_000_000])
def test_a_bytearray_counts_with_its_bytes_and_the_zero_behind_them(counting: ModuleType, size: int) -> None:
    assert_took(grown(counting, lambda: bytearray(size)), size + 1, 1)


@pytest.mark.torch
def test_a_numpy_array_is_heap_and_no_tensor(counting: ModuleType) -> None:
    import numpy as np

    np.empty(1)
    counting.count_in_libraries()
    tensors = counting.allocation_totals()[0]
    assert_took(grown(counting, lambda: np.empty(100_000)), 800_000, 1)
    assert counting.allocation_totals()[0] == tensors


@pytest.mark.torch
def test_a_tensor_is_no_heap_but_for_what_describes_it(core: ModuleType) -> None:
    import torch

    torch.empty(1)
    core.count_allocations()
    try:
        size, _ = grown(core, lambda: torch.empty(1_000_000))
        assert size < 1_000
    finally:
        core.stop_counting_allocations()


def test_every_way_to_take_memory_counts(counting: ModuleType, library: ctypes.CDLL) -> None:
    counting.count_in_libraries()
    for take in (library.take, library.take_aligned, library.take_page, library.take_by_variable):
        take(4096)
        assert_took(grown(counting, functools.partial(take, 8192)), 8192, 1)
    assert_took(grown(counting, lambda: library.give_back(library.take_zeroed(10, 1_000))), 10_000, 1)


def test_a_block_that_grows_is_one_freed_and_another_allocated(
    counting: ModuleType, library: ctypes.CDLL
) -> None:
    counting.count_in_libraries()
    before = counting.process_allocations()
    size, calls = grown(counting, lambda: library.grow(library.grow(None, 10_000), 50_000))
    after = counting.process_allocations()
    assert_took((size, calls), 60_000, 2)
    assert 10_000 <= after["freed"][0] - before["freed"][0] < 20_000
    assert 50_000 <= after["live"] - before["live"] < 60_000


def test_the_calling_thread_s_part_is_told_with_the_process_s(
    counting: ModuleType, library: ctypes.CDLL
) -> None:
    counting.count_in_libraries()

    def take_on_another_thread() -> None:
        thread = threading.Thread(target=lambda: library.give_back(library.take(50_000)))
        thread.start()
        thread.join()
        # What it frees at its very end, after join(), would be counted in the next test.
        task = Path(f"/proc/self/task/{thread.native_id}")
        while task.exists():
            os.sched_yield()

    before = counting.process_allocations()
    library.give_back(library.take(20_000))
    own = counting.process_allocations()
    assert 20_000 <= own["thread"][1][0] - before["thread"][1][0] < 30_000
    take_on_another_thread()
    after = counting.process_allocations()
    # Making a thread, and waiting for its end, takes some of its own.
    own_bytes = after["thread"][1][0] - own["thread"][1][0]
    assert after["heap"][0] - own["heap"][0] - own_bytes >= 50_000


def test_what_could_not_be_had_does_not_count(counting: ModuleType, library: ctypes.CDLL) -> None:
    counting.count_in_libraries()
    assert library.take(0) is not None
    too_much = ctypes.c_size_t(2**62)
    assert_took(grown(counting, lambda: library.take(too_much)), 0, 0)


def test_live_memory_comes_and_goes_and_its_peak_stays(counting: ModuleType) -> None:
    begin = counting.process_allocations()["live"]
    first = bytearray(5_000_000)
    second = bytearray(3_000_000)
    high = counting.process_allocations()
    del first, second
    low = counting.process_allocations()
    assert 8_000_000 <= high["live"] - begin < 8_200_000
    assert high["peak"] - begin >= 8_000_000
    assert abs(low["live"] - begin) < 200_000
    assert low["peak"] == high["peak"]


def test_a_block_freed_by_another_thread_is_live_no_more(counting: ModuleType) -> None:
    begin = counting.process_allocations()["live"]
    held = [bytearray(4_000_000)]
    thread = threading.Thread(target=held.clear)
    thread.start()
    thread.join()
    assert abs(counting.process_allocations()["live"] - begin) < 300_000


def test_what_a_thread_counted_stays_when_it_has_ended(counting: ModuleType) -> None:
    before = counting.process_allocations()["heap"][0]
    for _ in range(20):
        thread = threading.Thread(target=lambda: bytearray(1_000_000))
        thread.start()
        thread.join()
    assert 20_000_000 <= counting.process_allocations()["heap"][0] - before < 21_000_000


def test_a_block_of_before_may_be_freed_while_counting_and_the_other_way_round(core: ModuleType) -> None:
    before = [bytearray(700_000) for _ in range(100)]
    core.count_allocations()
    before.clear()
    later = [bytearray(700_000) for _ in range(100)]
    core.stop_counting_allocations()
    later.clear()
    assert len(bytearray(700_000)) == 700_000


def words(places: list[int]) -> list[int]:
    return [ctypes.c_uint64.from_address(place).value for place in places]


def test_every_address_is_put_back(core: ModuleType, library: ctypes.CDLL) -> None:
    library.take(1)
    core.count_allocations()
    core.stop_counting_allocations()
    places = [place for place, _, _ in core.replaced_addresses()]
    before = words(places)
    assert core.count_allocations() is None
    during = core.replaced_addresses()
    assert all(ours for _, _, ours in during)
    assert all(now != then for now, then in zip(words(places), before, strict=True))
    core.stop_counting_allocations()
    assert words(places) == before == [address for _, address, _ in during]
    assert not any(ours for _, _, ours in core.replaced_addresses())


def test_an_address_that_was_found_in_between_is_replaced_all_the_same(library_path: Path) -> None:
    program = f"""
import ctypes
from pyrometer._native import core
dlopen = ctypes.CDLL(None).dlopen  # ctypes itself has all addresses found at once, and not at the first call
dlopen.restype = ctypes.c_void_p
library = ctypes.CDLL("taking", handle=dlopen({os.fsencode(library_path)!r}, 1))
library.take.restype = ctypes.c_void_p
core.count_allocations()
core.stop_counting_allocations()
library.take(1)
core.count_allocations()
before = core.allocation_totals()[1][0]
library.take(100_000)
print((core.allocation_totals()[1][0] - before) // 1_000)
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "100\n"


def test_a_library_loaded_later_counts_once_it_was_looked_for(library_path: Path) -> None:
    program = f"""
import ctypes, gc
from pyrometer._native import core
core.count_allocations()
assert not core.count_in_libraries()
library = ctypes.CDLL({str(library_path)!r})
library.take.restype = ctypes.c_void_p
library.give_back.argtypes = [ctypes.c_void_p]
before = core.allocation_totals()[1][0]
library.take(100_000)
unseen = core.allocation_totals()[1][0] - before
print(core.count_in_libraries(), unseen < 100_000)
before = core.allocation_totals()[1][0]
library.give_back(library.take(100_000))
print((core.allocation_totals()[1][0] - before) // 1_000)
handle = library._handle
del library
import _ctypes
_ctypes.dlclose(handle)
print(core.count_in_libraries())
core.stop_counting_allocations()
"""
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert answer.stdout == "True True\n100\nTrue\n", answer.stderr
    assert answer.returncode == 0


def test_a_forked_child_begins_at_nothing_and_counts_for_itself(counting: ModuleType) -> None:
    kept = [bytearray(2_000_000) for _ in range(10)]
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        begin = counting.process_allocations()
        thread = threading.Thread(target=lambda: bytearray(3_000_000))
        thread.start()
        thread.join()
        kept.append(bytearray(1_000_000))
        end = counting.process_allocations()
        os.write(writer, repr((begin["heap"][0], end["heap"][0], end["live"], end["peak"])).encode())
        os._exit(0)
    os.waitpid(child, 0)
    begin_bytes, heap_bytes, live, peak = eval(os.read(reader, 1_000))  # noqa: S307 - our own numbers
    os.close(reader)
    os.close(writer)
    assert begin_bytes < 1_000_000
    assert 4_000_000 <= heap_bytes < 5_000_000
    assert 1_000_000 <= live < 2_000_000
    assert 3_000_000 <= peak < 5_000_000


def test_scopes_have_what_was_allocated_freed_and_kept_inside(counting: ModuleType) -> None:
    recorder = counting.Recorder()
    recorder.start()
    with recorder.scope("outer"):
        kept = bytearray(1_000_000)
        with recorder.scope("inner"):
            bytearray(300_000)
        with recorder.scope("free"):
            del kept
    nodes = seen(recorder)
    recorder.stop()
    outer, inner, free = nodes["outer",], nodes["outer", "inner"], nodes["outer", "free"]
    assert 1_300_002 <= outer.heap_bytes < 1_400_000
    assert outer.heap_allocations >= 2
    assert 300_001 <= inner.heap_bytes < 310_000
    assert abs(inner.kept_bytes) < 10_000
    assert 1_000_000 <= free.freed_bytes < 1_100_000
    assert -1_100_000 < free.kept_bytes <= -990_000
    assert (outer.allocated_bytes, outer.python_bytes) in {(-1, -1), (0, -1)}


# Small Python objects.


def test_small_objects_count_when_asked_for_and_never_in_the_heap(counting: ModuleType) -> None:
    assert counting.count_objects() is None
    before = counting.allocation_totals()
    objects = [bytes(20) for _ in range(1_000)]  # of which the interpreter keeps none to hand out again
    after = counting.allocation_totals()
    counting.stop_counting_objects()
    last = counting.allocation_totals()[2]
    del objects
    [bytes(20) for _ in range(1_000)]
    assert counting.allocation_totals()[2] == last
    calls = after[2][1] - before[2][1]
    assert 1_000 <= calls < 3_000
    assert after[2][0] - before[2][0] >= 1_000 * sys.getsizeof(bytes(20))
    if os.environ.get("PYTHONMALLOC") != "malloc":
        assert after[1][0] - before[1][0] < 100_000


def test_another_tool_that_wrapped_the_objects_after_us_keeps_working(counting: ModuleType) -> None:
    import tracemalloc

    assert counting.count_objects() is None
    tracemalloc.start()
    counting.stop_counting_objects()
    kept = [(index,) for index in range(1_000)]
    assert tracemalloc.get_traced_memory()[0] > 20_000
    tracemalloc.stop()
    assert len(kept) == 1_000


# Where in the program.


def test_the_lines_that_allocate_are_found_with_their_share(counting: ModuleType) -> None:
    assert counting.note_allocation_sites(100_000) is None

    def small() -> None:
        for _ in range(3_000):
            bytearray(10_000)

    def half() -> None:
        for _ in range(1_500):
            bytearray(10_000)

    def large() -> None:
        bytearray(7_000_000)

    small()
    half()
    large()
    counting.note_allocation_sites(0)
    found = counting.allocation_sites_seen()
    by_function: dict[str, list[int]] = {}
    for stack, samples, large_bytes, large_calls in found["sites"]:
        name = found["functions"][found["nodes"][stack][1]][0].rpartition(".")[2]
        total = by_function.setdefault(name, [0, 0, 0])
        for place, figure in enumerate((samples, large_bytes, large_calls)):
            total[place] += figure
    assert by_function["large"] == [0, 7_000_001, 1]
    # 300 and 150 are expected; five standard deviations to either side.
    assert 213 <= by_function["small"][0] <= 387
    assert 89 <= by_function["half"][0] <= 211
    (line,) = {
        found["nodes"][stack][2]
        for stack, *_ in found["sites"]
        if found["functions"][found["nodes"][stack][1]][0].endswith("large")
    }
    assert line == large.__code__.co_firstlineno + 1


def test_a_thread_without_python_is_told_apart(counting: ModuleType, tmp_path: Path) -> None:
    source = tmp_path / "worker.c"
    source.write_text("""
#include <pthread.h>
#include <stdlib.h>
static void *work(void *nothing) { free(malloc(3000000)); return NULL; }
void run(void) { pthread_t thread; pthread_create(&thread, NULL, work, NULL); pthread_join(thread, NULL); }
""")
    path = tmp_path / "libworker.so"
    subprocess.run(
        [compiler(), "-shared", "-fPIC", "-O0", str(source), "-o", str(path), "-pthread"], check=True
    )
    library = ctypes.CDLL(str(path))
    counting.count_in_libraries()
    assert counting.note_allocation_sites(100_000) is None
    library.run()
    counting.note_allocation_sites(0)
    assert counting.allocation_sites_seen()["elsewhere"] == (0, 3_000_000, 1)


def test_threads_that_allocate_free_fork_and_end_all_at_once(core: ModuleType) -> None:
    """Under the sanitizers too: tests/native/test_sanitizers.py runs all of this file."""
    assert core.count_allocations() is None
    assert core.note_allocation_sites(20_000) is None
    shared: list[bytearray] = []

    def work() -> None:
        for index in range(300):
            shared.append(bytearray(index * 50 + 1))
            if index % 3 == 0 and shared:
                shared.pop()
        recurse(60)

    def recurse(depth: int) -> bytearray:
        return bytearray(1_200_000) if depth == 0 else recurse(depth - 1)

    for _ in range(5):
        threads = [threading.Thread(target=work) for _ in range(6)]
        for thread in threads:
            thread.start()
        child = os.fork()
        if child == 0:
            work()
            os._exit(0 if core.process_allocations()["heap"][1] > 0 else 1)
        assert os.waitpid(child, 0)[1] == 0
        core.stop_counting_allocations()
        core.count_allocations()
        for thread in threads:
            thread.join()
        core.allocation_sites_seen()
    core.reset_allocations()
    core.note_allocation_sites(0)
    core.stop_counting_allocations()
    shared.clear()


def test_the_storage_for_each_thread_stays_small(core: ModuleType) -> None:
    """What the loader has left for libraries loaded later is about 1,500 bytes once torch is there."""
    answer = subprocess.run(
        [tool("readelf"), "-lW", str(core.__file__)], capture_output=True, text=True, check=True
    ).stdout
    (line,) = [line for line in answer.splitlines() if line.split()[:1] == ["TLS"]]
    assert int(line.split()[5], 16) <= 192


def test_figures_are_consistent_while_other_threads_count(counting: ModuleType) -> None:
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            bytearray(1_000)

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()
    last: dict[str, Any] = counting.process_allocations()
    for _ in range(200):
        now = counting.process_allocations()
        assert now["heap"][0] >= last["heap"][0]
        assert now["freed"][1] >= last["freed"][1]
        assert now["peak"] >= now["live"]
        last = now
    stop.set()
    for thread in threads:
        thread.join()


def maps(core: ModuleType) -> dict[str, tuple[int, int]]:
    seen = core.process_allocations()
    return {kind: seen[kind] for kind in ("mapped", "mapped_shared", "unmapped")}


def test_maps_are_counted_by_whose_memory_they_are(counting: ModuleType, tmp_path: Path) -> None:
    file = tmp_path / "data"
    file.write_bytes(bytes(3_000_000))
    counting.reset_allocations()
    private = mmap.mmap(-1, 5_000_000, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    shared = mmap.mmap(-1, 2_000_000)
    with file.open("rb") as opened:
        read = mmap.mmap(opened.fileno(), 0, access=mmap.ACCESS_READ)
    seen = maps(counting)
    # Python may have mapped an arena for small objects meanwhile.
    assert (seen["mapped"][0] - 5_000_000) % (1 << 18) == 0
    assert seen["mapped_shared"] == (5_000_000, 2)
    for each in (private, shared, read):
        each.close()
    assert maps(counting)["unmapped"][0] >= 10_000_000
    counting.reset_allocations()
    assert maps(counting) == {"mapped": (0, 0), "mapped_shared": (0, 0), "unmapped": (0, 0)}


def test_addresses_that_are_only_reserved_are_no_memory(counting: ModuleType) -> None:
    before = maps(counting)["mapped_shared"]
    reserved = mmap.mmap(-1, 9_000_000, prot=0)
    assert maps(counting)["mapped_shared"] == before
    reserved.close()
