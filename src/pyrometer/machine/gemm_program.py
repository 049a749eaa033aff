"""Multiplies matrices when told to: the program that ``gemm.py`` runs in a process of its own.

Imports torch, or numpy where there is none, and says which. Then each line it reads, such as ``f32 2``,
is one product of square matrices by so many threads, answered with ``<operations> <nanoseconds>`` or
with ``no <reason>``. Nothing of Pyrometer is imported, so that nothing of it is in the way.
"""

import importlib
import os
import sys
import time
from collections.abc import Callable
from typing import Any

_SIZES = (1_536, 1_024, 768, 512, 384, 256)
_LONGEST_NS = 45_000_000

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


def _fitting_size(library: Any, precision: str) -> int:
    """The largest size that one thread multiplies in a fraction of a second."""
    smallest = _SIZES[-1]
    product = library.product(precision, smallest)
    product()
    smallest_ns = min(_timed_ns(product) for _ in range(2))
    return next(
        (size for size in _SIZES if smallest_ns * (size / smallest) ** 3 <= _LONGEST_NS),
        smallest,
    )


def _answer(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main() -> None:
    """Answer until there is nothing more to read."""
    library = _load()
    _answer("none" if library is None else f"ready {library.name}")
    if library is None:
        return
    products: dict[str, tuple[int, _Product]] = {}
    for line in sys.stdin:
        precision, threads = line.split()
        try:
            library.set_threads(int(threads))
            if precision not in products:
                size = _fitting_size(library, precision)
                products[precision] = (size, library.product(precision, size))
            size, product = products[precision]
            _answer(f"{2 * size**3} {_timed_ns(product)}")
        except (LookupError, RuntimeError, TypeError, ValueError) as error:
            _answer(f"no {' '.join(str(error).split())[:150]}")


if __name__ == "__main__":
    main()
