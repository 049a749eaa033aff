"""Counting instructions in measured programs: by callgrind, since few machines give their counters away."""

from dataclasses import replace
from pathlib import Path

from pyrometer._native import KIND
from pyrometer.errors import UsageError
from pyrometer.experiment.paced_process import Surroundings
from pyrometer.machine.valgrind import VALGRIND_ENVIRONMENT, callgrind_command, find_valgrind


def find_counter() -> str:
    """The command that counts; a ``UsageError`` where instructions cannot be counted here."""
    if KIND != "native":
        raise UsageError(
            "counting instructions needs the native recorder, which is not in use here; see: pyrometer doctor"
        )
    return find_valgrind("--metric instructions")


def counting_instructions(surroundings: Surroundings, scratch: Path) -> Surroundings:
    """The same, with valgrind before the program."""
    counts_file = scratch / "callgrind.out"
    command = callgrind_command(
        find_counter(),
        caches=None,
        counts_file=counts_file,
        log_file=scratch / "valgrind.log",
        whole_program=True,
    )
    return replace(
        surroundings,
        valgrind=tuple(command),
        callgrind_file=counts_file,
        variables=VALGRIND_ENVIRONMENT,
    )
