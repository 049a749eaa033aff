"""The BLAS and the threads of what a program has loaded."""

import sys
import types

import pytest

from pyrometer.machine import numerics
from pyrometer.machine.facts import collect_software
from pyrometer.machine.numerics import (
    blas_of_numpy,
    blas_of_torch,
    loaded_blas,
    thread_variables,
    torch_threads,
)

MKL = "  - Intel(R) oneAPI Math Kernel Library Version 2024.2-Product Build 20240605 for Intel(R) 64\n"


@pytest.fixture(autouse=True)
def _nothing_loaded(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("torch", "torch.__config__", "numpy", "numpy.__config__"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(numerics, "_told_by_torch", None)


def pretend(monkeypatch: pytest.MonkeyPatch, name: str, **held: object) -> None:
    module = types.ModuleType(name)
    vars(module).update(held)
    monkeypatch.setitem(sys.modules, name, module)


@pytest.mark.parametrize(
    ("configuration", "blas"),
    [
        (
            f"PyTorch built with:\n{MKL}  - Build settings: BLAS_INFO=mkl,",
            "MKL 2024.2-Product Build 20240605",
        ),
        ("  - Build settings: BLAS_INFO=open, BUILD_TYPE=Release", "open"),
        ("PyTorch built with:\n  - GCC 13.3", None),
    ],
)
def test_torchs_blas_is_what_torch_says(configuration: str, blas: str | None) -> None:
    assert blas_of_torch(configuration) == blas


@pytest.mark.parametrize(
    ("held", "blas"),
    [
        (
            {"CONFIG": {"Build Dependencies": {"blas": {"name": "openblas", "version": "0.3"}}}},
            "openblas 0.3",
        ),
        ({"CONFIG": {"Build Dependencies": {"blas": {"name": "accelerate"}}}}, "accelerate"),
        ({"blas_opt_info": {"libraries": ["openblas", "openblas"]}}, "openblas"),
        ({}, None),
    ],
)
def test_numpys_blas_is_what_numpy_was_built_with(held: dict[str, object], blas: str | None) -> None:
    assert blas_of_numpy(held) == blas


def test_without_torch_and_numpy_there_is_no_blas() -> None:
    assert loaded_blas() is None
    assert torch_threads() is None


def test_torchs_blas_goes_before_numpys_and_is_asked_for_once(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def show() -> str:
        asked.append(1)
        return MKL

    pretend(monkeypatch, "numpy.__config__", blas_opt_info={"libraries": ["openblas"]})
    assert loaded_blas() == "openblas"
    pretend(monkeypatch, "torch", get_num_threads=lambda: 3)
    pretend(monkeypatch, "torch.__config__", show=show)
    assert [loaded_blas(), loaded_blas()] == ["MKL 2024.2-Product Build 20240605"] * 2
    assert len(asked) == 1
    assert torch_threads() == 3


def test_a_torch_that_is_half_imported_or_no_torch_at_all_disturbs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def fail() -> int:
        raise RuntimeError("not yet")

    pretend(monkeypatch, "torch", get_num_threads=fail)
    software = collect_software()
    assert (software.blas, software.torch_threads) == (None, None)


def test_only_variables_that_are_set_are_kept() -> None:
    environment = {"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": "", "HOME": "/home/ada", "SECRET": "x"}
    assert thread_variables(environment) == {"OMP_NUM_THREADS": "4", "MKL_NUM_THREADS": ""}
