"""What stands before the program's command so that valgrind runs it."""

import contextlib
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyrometer import _native
from pyrometer.errors import UsageError

# Counts of programs in Python differ by several percent between hash seeds.
_HASH_SEED = {"PYTHONHASHSEED": "0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """The command to put in front, what to add to the environment, and what the program's start needs."""

    command: list[str]
    environment: dict[str, str]
    settings: dict[str, Any]


def find_valgrind() -> str:
    """The command, or a ``UsageError`` that says what is missing."""
    # Behind the option, as all of this: it would only delay other runs.
    from pyrometer.machine.valgrind import find_valgrind

    if _native.KIND != "native":
        raise UsageError(
            "--cachegrind needs the native recorder, which is not in use here; see: pyrometer doctor"
        )
    return find_valgrind()


def prepare_callgrind(valgrind: str, output: Path, scope: str | None) -> Prepared:
    """Valgrind with this machine's caches; its files stand beside the run and are named like it."""
    import msgspec

    from pyrometer.capture.callgrind import Settings, reference_ns
    from pyrometer.machine.valgrind import VALGRIND_ENVIRONMENT, caches_to_model, callgrind_command

    name = output.name.removesuffix(".gz").removesuffix(".json")
    counts_file = output.absolute().with_name(f"{name}.callgrind.out")
    log_file = output.absolute().with_name(f"{name}.valgrind.log")
    wanted = {**VALGRIND_ENVIRONMENT, **_HASH_SEED}
    environment = {key: value for key, value in wanted.items() if key not in os.environ}
    caches = caches_to_model()
    settings = Settings(
        scope=scope,
        # Valgrind adds the process id, which an exec leaves as it is.
        counts_file=f"{counts_file}.{os.getpid()}",
        log_file=f"{log_file}.{os.getpid()}",
        caches=caches,
        environment=environment,
        reference_ns=reference_ns(),
    )
    with contextlib.suppress(FileNotFoundError):
        Path(settings.counts_file).unlink()  # callgrind would add to it
    return Prepared(
        command=callgrind_command(
            valgrind,
            caches=caches,
            counts_file=counts_file,
            log_file=log_file,
            whole_program=scope is None,
        ),
        environment=environment,
        settings=msgspec.to_builtins(settings),
    )
