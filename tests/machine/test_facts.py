"""The machine's and the interpreter's facts."""

import gc
import json
import os
import platform
import subprocess
import sys
import types
from collections.abc import Iterator

import pytest

from pyrometer.machine import facts
from pyrometer.machine.facts import (
    collect_machine,
    collect_software,
    cpu_flags_in,
    cpu_model_in,
    flags_in_sysctl,
    usable_cores,
)


@pytest.fixture
def garbage_collector_restored() -> Iterator[None]:
    was_enabled, thresholds = gc.isenabled(), gc.get_threshold()
    yield
    gc.set_threshold(*thresholds)
    (gc.enable if was_enabled else gc.disable)()


def test_the_machine_is_the_one_the_tests_run_on() -> None:
    machine = collect_machine()
    assert machine.architecture == platform.machine()
    assert platform.release() in machine.system or platform.mac_ver()[0] in machine.system
    assert machine.logical_cores == os.cpu_count()


def test_no_more_cores_are_usable_than_there_are() -> None:
    machine = collect_machine()
    assert machine.usable_cores is not None
    assert machine.logical_cores is not None
    assert 1 <= machine.usable_cores <= machine.logical_cores


def test_a_containers_quota_limits_the_usable_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "cpu_quota_cores", lambda: 0.5)
    assert usable_cores() == 1


if sys.platform == "linux":

    def test_an_affinity_mask_limits_the_usable_cores() -> None:
        program = (
            "import os; os.sched_setaffinity(0, {min(os.sched_getaffinity(0))});"
            "from pyrometer.machine.facts import usable_cores; print(usable_cores())"
        )
        answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
        assert answer.stdout == "1\n"


def test_a_containers_memory_limit_counts_when_it_is_smaller(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(facts, "memory_limit_bytes", lambda: 1_000_000)
    assert collect_machine().memory_bytes == 1_000_000
    monkeypatch.setattr(facts, "memory_limit_bytes", lambda: 1 << 63)
    memory_bytes = collect_machine().memory_bytes
    assert memory_bytes is not None
    assert 1_000_000 < memory_bytes < 1 << 63


def test_what_the_system_will_not_tell_is_none_and_never_zero(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(**_: object) -> int:
        raise PermissionError

    monkeypatch.setattr("psutil.cpu_count", refuse)
    monkeypatch.setattr("psutil.virtual_memory", refuse)
    monkeypatch.setattr(facts, "memory_limit_bytes", lambda: None)
    machine = collect_machine()
    assert (machine.physical_cores, machine.logical_cores, machine.memory_bytes) == (None, None, None)


@pytest.mark.parametrize(
    ("cpuinfo", "model"),
    [
        ("processor\t: 0\nmodel name\t: AMD  EPYC\n\nmodel name\t: other\n", "AMD EPYC"),
        ("processor\t: 0\nBogoMIPS\t: 108.00\nModel\t\t: Raspberry Pi 4\n", "Raspberry Pi 4"),
        ("processor\t: 0\nBogoMIPS\t: 108.00\n", None),
        ("model name\t:\n", None),
        ("", None),
    ],
)
def test_the_processor_is_named_where_the_kernel_names_it(cpuinfo: str, model: str | None) -> None:
    assert cpu_model_in(cpuinfo) == model


@pytest.mark.parametrize(
    ("cpuinfo", "flags"),
    [
        ("flags\t\t: fpu avx2  avx fpu\n\nflags\t\t: other\n", ("avx", "avx2", "fpu")),
        ("Features\t: fp asimd\n", ("asimd", "fp")),
        ("flags\t\t:\n", None),
        ("", None),
    ],
)
def test_the_processors_flags_are_told_in_order(cpuinfo: str, flags: tuple[str, ...] | None) -> None:
    assert cpu_flags_in(cpuinfo) == flags


def test_the_flags_of_macos_are_those_that_are_on() -> None:
    features = "hw.optional.neon: 1\nhw.optional.avx2_0: 0\nhw.optional.arm.FEAT_DotProd: 1"
    assert flags_in_sysctl(features) == ("arm.FEAT_DotProd", "neon")
    assert flags_in_sysctl("") is None


@pytest.mark.usefixtures("garbage_collector_restored")
def test_the_garbage_collectors_state_and_thresholds_are_told() -> None:
    gc.enable()
    gc.set_threshold(701, 11, 12)
    assert collect_software().garbage_collector == "on (701, 11, 12)"
    gc.disable()
    assert collect_software().garbage_collector == "off"


def test_the_interpreter_is_the_one_that_asks() -> None:
    software = collect_software()
    assert software.python_version == platform.python_version()
    assert software.python_implementation == platform.python_implementation()


def test_loaded_packages_are_listed_by_name_with_their_version(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, version in (("zebra", "1.0"), ("aardvark", "2.0"), ("zebra.stripes", "3.0"), ("mole", 4)):
        module = types.ModuleType(name)
        module.__dict__["__version__"] = version
        monkeypatch.setitem(sys.modules, name, module)
    packages = collect_software().packages
    assert packages["zebra"] == "1.0"
    assert packages["aardvark"] == "2.0"
    assert not {"zebra.stripes", "mole"} & packages.keys()
    assert list(packages) == sorted(packages)


def test_neither_the_standard_library_nor_pyrometer_is_listed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json, "__version__", "1.0", raising=False)
    assert not {"json", "pyrometer", "__main__"} & collect_software().packages.keys()


def test_asking_for_versions_wakes_no_lazy_module(monkeypatch: pytest.MonkeyPatch) -> None:
    class Lazy(types.ModuleType):
        def __getattr__(self, name: str) -> str:
            raise AssertionError(f"asked for {name}")

    monkeypatch.setitem(sys.modules, "sleeper", Lazy("sleeper"))
    monkeypatch.setitem(sys.modules, "nothing", None)
    assert not {"sleeper", "nothing"} & collect_software().packages.keys()


def test_a_version_that_is_a_str_of_its_own_class_is_kept_as_plain_text(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Version(str):
        __slots__ = ()

        def __str__(self) -> str:
            raise AssertionError("the package's code was run")

    module = types.ModuleType("vain")
    module.__dict__["__version__"] = Version("1.2")
    monkeypatch.setitem(sys.modules, "vain", module)
    assert type(collect_software().packages["vain"]) is str


def test_collecting_software_facts_imports_nothing() -> None:
    program = (
        "import sys; from pyrometer.machine.facts import collect_software; before = set(sys.modules);"
        "collect_software(); print(sorted(set(sys.modules) - before)); print('psutil' in sys.modules)"
    )
    answer = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert answer.stdout == "[]\nFalse\n"
