"""The kernels for a machine's limits do exactly the work they are said to do; how fast is not asked here."""

import struct
import threading
from itertools import pairwise

import pytest

kernels = pytest.importorskip("pyrometer._native.kernels")

BLOCK = 512
LINE = 64
every_set = pytest.mark.parametrize("instruction_set", kernels.INSTRUCTION_SETS)


def floats(data: bytes) -> tuple[float, ...]:
    return struct.unpack(f"{len(data) // 4}f", data)


def after_rounds(accumulators: int, lanes: int, rounds: int) -> float:
    """What halving and adding one, so often, makes of 1, 2, 3, … in all lanes."""
    total = 0.0
    for accumulator in range(accumulators):
        value = accumulator + 1.0
        for _ in range(rounds):
            value = value * 0.5 + 1.0
        total += value * lanes
    return total


def test_the_generic_kernels_are_always_there_and_last() -> None:
    assert kernels.INSTRUCTION_SETS[-1] == "generic"


@every_set
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_the_operations_told_are_those_that_were_done(precision: str, instruction_set: str) -> None:
    _, _, flops_of_one, start = kernels.fma(precision, 0, instruction_set)
    assert flops_of_one == 0
    _, _, flops_of_one, _ = kernels.fma(precision, 1, instruction_set)
    # The lanes of all accumulators start at 1, 2, 3, …: their sum tells how many there are of each.
    candidates = [
        (accumulators, lanes)
        for accumulators in range(1, 64)
        for lanes in (2, 4, 8, 16)
        if 2 * accumulators * lanes == flops_of_one and after_rounds(accumulators, lanes, 0) == start
    ]
    [(accumulators, lanes)] = candidates
    for rounds in (1, 2, 3, 7):
        began_ns, ended_ns, flops, total = kernels.fma(precision, rounds, instruction_set)
        assert flops == rounds * 2 * accumulators * lanes
        assert total == after_rounds(accumulators, lanes, rounds)
        assert ended_ns >= began_ns


def element(row: int, column: int) -> int:
    """Of the product of the transposed first matrix with the second."""
    return sum((3 * k + 7 * row) % 5 * ((5 * k + column) % 3) for k in range(kernels.PRODUCT_SIZE))


@every_set
@pytest.mark.parametrize("precision", ["f32", "f64"])
def test_a_product_is_the_product(precision: str, instruction_set: str) -> None:
    product, size = kernels.Product(precision), kernels.PRODUCT_SIZE
    for _ in range(2):
        began_ns, ended_ns, flops = product.multiply(instruction_set)
        assert ended_ns >= began_ns
        assert flops == 2 * size**3
        # In each corner, and on both sides of the borders of tiles and of the parts it is worked through in.
        for row in (0, 5, 6, 13, 14, 167, 168, 335, 336, size - 1):
            for column in (0, 3, 4, 15, 16, 31, 32, size - 1):
                assert product.result(row, column) == element(row, column)


def test_what_cannot_be_multiplied_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no product of 'bf16'"):
        kernels.Product("bf16")
    product = kernels.Product("f32")
    with pytest.raises(ValueError, match="no instruction set 'AVX-9'"):
        product.multiply("AVX-9")
    for place in ((-1, 0), (0, kernels.PRODUCT_SIZE)):
        with pytest.raises(ValueError, match="no element"):
            product.result(*place)


@pytest.mark.skipif(not kernels.BF16, reason="the processor has no bf16")
def test_the_operations_on_bf16_are_those_that_were_done() -> None:
    _, _, _, start = kernels.fma("bf16", 0)
    _, _, flops, total = kernels.fma("bf16", 5)
    # Each lane of f32 has taken in two products of ones a round, which is four operations.
    assert (total - start) * 2 == flops


@every_set
@pytest.mark.parametrize("streaming", [False, True])
def test_the_triad_writes_its_part_of_a_and_nothing_else(instruction_set: str, streaming: bool) -> None:
    if streaming and instruction_set in {"generic", "NEON"}:
        pytest.skip("has no streaming stores")
    arrays = kernels.Arrays(4 * BLOCK)
    arrays.fill()
    arrays.triad(BLOCK, 2 * BLOCK, streaming, instruction_set)
    assert floats(arrays.copy_of("a")) == (0.0,) * 128 + (7.0,) * 256 + (0.0,) * 128
    assert set(floats(arrays.copy_of("b"))) == {1.0}
    assert set(floats(arrays.copy_of("c"))) == {2.0}


@every_set
def test_a_read_takes_in_every_element_of_its_part(instruction_set: str) -> None:
    arrays = kernels.Arrays(4 * BLOCK)
    arrays.fill()
    arrays.triad(0, 2 * BLOCK, False)
    for first, blocks, expected in (
        (0, 1, 128),
        (0, 2, 256),
        (0, 4, 256),
        (1, 1, 128),
        (1, 3, 128),
        (2, 2, 0),
    ):
        assert arrays.read(first * BLOCK, blocks * BLOCK, instruction_set)[2] == 7.0 * expected


@pytest.mark.parametrize("stride", [1, 2, 3, 8, 64, 127, 512])
def test_a_strided_read_takes_in_each_nth_element(stride: int) -> None:
    arrays = kernels.Arrays(4 * BLOCK)
    arrays.fill()
    arrays.number()
    _, _, elements, total = arrays.read_strided(0, 4 * BLOCK, stride)
    taken = range(512)[: 512 // stride * stride : stride]
    assert (elements, total) == (len(taken), sum(taken))
    if stride <= 256:
        _, _, elements, total = arrays.read_strided(BLOCK, 2 * BLOCK, stride)
        taken = range(128, 384)[: 256 // stride * stride : stride]
        assert (elements, total) == (len(taken), sum(taken))


@pytest.mark.parametrize("lines", [2, 3, 64, 1_000])
def test_a_walk_comes_to_every_line_before_it_is_back(lines: int) -> None:
    ring = kernels.Ring(lines * LINE)
    visited = [ring.walk(1)[2] for _ in range(lines)]
    assert sorted(visited) == list(range(lines))
    assert visited[-1] == 0
    assert ring.walk(lines)[2] == 0


def test_a_long_ring_is_in_no_order_that_could_be_foreseen() -> None:
    ring = kernels.Ring(1_000 * LINE)
    visited = [ring.walk(1)[2] for _ in range(1_000)]
    steps = {second - first for first, second in pairwise(visited)}
    assert len(steps) > 500


@pytest.mark.parametrize("size", [-512, 0, 1, 511, 513, 2**62])
def test_arrays_of_another_size_are_refused(size: int) -> None:
    with pytest.raises(ValueError, match="multiple"):
        kernels.Arrays(size)


def test_more_than_there_is_is_not_worked_on() -> None:
    arrays = kernels.Arrays(BLOCK)
    arrays.fill()
    parts = ((0, -BLOCK), (0, 0), (0, 100), (0, 2 * BLOCK), (BLOCK, BLOCK), (-BLOCK, BLOCK), (4, BLOCK))
    for offset, size in parts:
        with pytest.raises(ValueError, match="no part"):
            arrays.triad(offset, size, False)
        with pytest.raises(ValueError, match="no part"):
            arrays.read(offset, size)
        with pytest.raises(ValueError, match="no part"):
            arrays.read_strided(offset, size, 1)
    for stride in (-1, 0, 129):
        with pytest.raises(ValueError, match="stride"):
            arrays.read_strided(0, BLOCK, stride)
    with pytest.raises(ValueError, match="two lines"):
        kernels.Ring(LINE)
    with pytest.raises(ValueError, match="rounds"):
        kernels.fma("f32", -1)
    with pytest.raises(ValueError, match="no kernel for 'f16'"):
        kernels.fma("f16", 1)
    with pytest.raises(ValueError, match="no instruction set 'MMX'"):
        kernels.fma("f32", 1, "MMX")


def test_other_threads_run_while_a_kernel_does() -> None:
    """One that held the GIL would let nothing happen between its beginning and its end."""
    ring = kernels.Ring(64 * LINE)
    seen: list[tuple[int, int]] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            seen.append(kernels.fma("f32", 10)[:2])

    looker = threading.Thread(target=look)
    looker.start()
    try:
        walks = []
        for _ in range(50):
            began_ns, ended_ns, _ = ring.walk(20_000_000)
            walks.append((began_ns, ended_ns))
            if any(began_ns < first and last < ended_ns for first, last in seen[:]):
                return
            seen.clear()
        pytest.fail(f"nothing else ran during {len(walks)} walks")
    finally:
        ended.set()
        looker.join()
