"""The package with a C core built for AddressSanitizer and UndefinedBehaviorSanitizer."""

import os
import shutil
import subprocess
import sysconfig
from pathlib import Path

ROOT = Path(__file__).parents[1]
FLAGS = ["-std=c11", "-O1", "-g", "-fno-omit-frame-pointer", "-shared", "-fPIC"]
SANITIZERS = ["-fsanitize=address,undefined", "-fno-sanitize-recover=undefined"]


def build_sanitized(folder: Path) -> dict[str, str]:
    """Put a copy of the package into the folder; the environment in which Python imports it."""
    shutil.copytree(
        ROOT / "src" / "pyrometer", folder / "pyrometer", ignore=shutil.ignore_patterns("*.so", "__pycache__")
    )
    include = sysconfig.get_path("include")
    for name in ("core", "kernels"):
        target = folder / "pyrometer" / "_native" / f"{name}{sysconfig.get_config_var('EXT_SUFFIX')}"
        source = ROOT / "src" / "pyrometer" / "_native" / f"{name}.c"
        command = ["gcc", *FLAGS, *SANITIZERS, f"-I{include}", str(source), "-o", str(target)]
        subprocess.run(command, check=True)
    return os.environ | {
        # The sanitizer's malloc takes the place of the system's: it is what libraries call then, and
        # what is counted; the sanitizer's own library is left alone like libc.
        "LD_PRELOAD": f"{_library('libasan.so')} {_library('libubsan.so')}",
        "PYTHONPATH": f"{folder}{os.pathsep}{ROOT}",
        "PYTHONMALLOC": "malloc",  # so that the sanitizer sees every Python object too
        # The interpreter keeps memory at exit, leaks have their own test; too much asked for is an error.
        "ASAN_OPTIONS": "detect_leaks=0:allocator_may_return_null=1",
        "UBSAN_OPTIONS": "print_stacktrace=1",
    }


def _library(name: str) -> str:
    command = ["gcc", f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()
