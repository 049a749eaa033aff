"""Multiplies matrices when told to: the program that ``gemm.py`` runs in a process of its own.

Imports torch, or numpy where there is none, and says which. Then each line it reads, such as ``f32 2``,
asks for products of square matrices of some sizes by so many threads, answered with ``<operations>
<nanoseconds>`` of the fastest, or with ``no <reason>``. Large ones come nearest to the peak; small ones
are over before a neighbour disturbs them. Nothing of Pyrometer is imported, so that nothing of it is in
the way.
"""

import importlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any

_SIZES = (128, 256, 384, 512, 768, 1_024, 1_536)
_LONGEST_NS = 60_000_000
_EACH_SIZE_NS = 8_000_000
_MOST_TRIES = 8

_Product = Callable[[], object]


class _Torch:
    """Products by torch."""

    def __init__(self) -> None:
        self._torch: Any = importlib.import_module("torch")
        self.name = f"torch {self._torch.__version__}"
        self._torch.set_grad_enabled(False)

    def set_threads(self, threads: int) -> None:
        self._torch.set_num_threads(threads)

    def product(self, precision: str, size: int) -> _Product:
        kinds = {"f32": "float32", "f64": "float64", "bf16": "bfloat16"}
        kind = getattr(self._torch, kinds[precision])
        one, other, result = (self._torch.ones(size, size, dtype=kind) for _ in range(3))
        return lambda: self._torch.mm(one, other, out=result)


class _Numpy:
    """Products by numpy, by as many threads as its BLAS was started with."""

    def __init__(self) -> None:
        self._numpy: Any = importlib.import_module("numpy")
        self.name = f"numpy {self._numpy.__version__}"

    def set_threads(self, threads: int) -> None:
        if threads != int(os.environ["OMP_NUM_THREADS"]):
            raise ValueError("numpy cannot change its number of threads")

    def product(self, precision: str, size: int) -> _Product:
        kinds = {"f32": "float32", "f64": "float64"}
        if precision not in kinds:
            raise ValueError(f"numpy has no {precision}")
        one, other, result = (self._numpy.ones((size, size), dtype=kinds[precision]) for _ in range(3))
        return lambda: self._numpy.matmul(one, other, out=result)


def _load() -> Any:
    for library in (_Torch, _Numpy):
        try:
            return library()
        except ImportError:
            continue
    return None


def _timed_ns(product: _Product) -> int:
    began_ns = time.perf_counter_ns()
    product()
    return time.perf_counter_ns() - began_ns


def _products(library: Any, precision: str) -> list[tuple[int, int, _Product]]:
    """(size, how many tries, product) of each size that takes a fraction of a second, or of the smallest."""
    smallest = library.product(precision, _SIZES[0])
    smallest()
    smallest_ns = min(_timed_ns(smallest) for _ in range(3))
    found: list[tuple[int, int, _Product]] = []
    for size in _SIZES:
        expected_ns = smallest_ns * (size / _SIZES[0]) ** 3
        if not found or expected_ns <= _LONGEST_NS:
            tries = min(max(int(_EACH_SIZE_NS / max(expected_ns, 1)), 1), _MOST_TRIES)
            found.append((size, tries, library.product(precision, size)))
    return found


def _fastest(products: list[tuple[int, int, _Product]]) -> tuple[int, int]:
    """(operations, nanoseconds) of the product with most operations a second."""
    timed = [
        (2 * size**3, min(_timed_ns(product) for _ in range(tries))) for size, tries, product in products
    ]
    return max(timed, key=lambda one: one[0] / max(one[1], 1))


def _answer(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Answer until there is nothing more to read."""
    library = _load()
    _answer("none" if library is None else f"ready {library.name}")
    if library is None:
        return
    products: dict[str, list[tuple[int, int, _Product]]] = {}
    for line in sys.stdin:
        precision, threads = line.split()
        try:
            library.set_threads(int(threads))
            if precision not in products:
                products[precision] = _products(library, precision)
            flops, duration_ns = _fastest(products[precision])
            _answer(f"{flops} {duration_ns}")
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            _answer(f"no {' '.join(str(error).split())[:150]}")


if __name__ == "__main__":
    main()
