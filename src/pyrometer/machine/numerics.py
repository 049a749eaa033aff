"""What computes inside the user's program: the BLAS it has loaded, and how many threads that may use.

Nothing is imported. What is asked of torch and numpy may fail in any way, since a program can put
whatever it likes in their place; then it is ``None``, and the program goes on.
"""

import re
import sys
from collections.abc import Mapping
from typing import Any

_THREAD_VARIABLES = (
    "OMP_NUM_THREADS",
    "OMP_THREAD_LIMIT",
    "MKL_NUM_THREADS",
    "OPENBLAS_NUM_THREADS",
    "BLIS_NUM_THREADS",
    "VECLIB_MAXIMUM_THREADS",
    "NUMEXPR_NUM_THREADS",
)
_LONGEST_VALUE = 100

_told_by_torch: str | None = None


def thread_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """The variables that set numbers of threads, as far as they are set."""
    return {name: environment[name][:_LONGEST_VALUE] for name in _THREAD_VARIABLES if name in environment}


def torch_threads() -> int | None:
    """The threads torch may use inside an operator; None while it is not loaded."""
    try:
        torch = sys.modules.get("torch")
        count = None if torch is None else torch.get_num_threads()
    except Exception:  # noqa: BLE001 - a torch half imported, or one of the program's own, must not end it
        return None
    return count if type(count) is int and count > 0 else None


def loaded_blas() -> str | None:
    """The BLAS of torch, or of numpy where torch is not loaded: ``MKL 2024.2``; None without both."""
    global _told_by_torch
    try:
        if sys.modules.get("torch") is not None:
            # Once: torch puts a text of some kilobytes together, and checkpoints ask again and again.
            if _told_by_torch is None:
                _told_by_torch = blas_of_torch(sys.modules["torch.__config__"].show())
            return _told_by_torch
        numpy = sys.modules.get("numpy.__config__")
        return None if numpy is None else blas_of_numpy(vars(numpy))
    except Exception:  # noqa: BLE001 - likewise
        return None


def blas_of_torch(configuration: str) -> str | None:
    """The BLAS in the text of ``torch.__config__.show()``: by version where it tells one, else by name."""
    mkl = re.search(r"Math Kernel Library Version (\S+)( Build \S+)?", configuration)
    if mkl is not None:
        return f"MKL {mkl[1]}{mkl[2] or ''}"
    name = re.search(r"\bBLAS_INFO=(\w+)", configuration)
    return None if name is None else name[1]


def blas_of_numpy(configuration: Mapping[str, Any]) -> str | None:
    """The BLAS in what ``numpy.__config__`` holds: name and version; before numpy 1.25, libraries."""
    if "CONFIG" in configuration:
        built_with = configuration["CONFIG"]["Build Dependencies"]["blas"]
        return f"{built_with['name']} {built_with.get('version', '')}".strip()
    libraries = configuration.get("blas_opt_info", {}).get("libraries", ())
    return " ".join(dict.fromkeys(libraries)) or None
