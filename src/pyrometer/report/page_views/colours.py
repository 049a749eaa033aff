"""The colour of each phase, the same in every view."""

from collections.abc import Iterable

from pyrometer.record.torch_run import OTHER, PHASES

OWN_COLOURS = 6


def phase_colours(names: Iterable[str]) -> dict[str, str]:
    """For each phase the key of its colour: known phases have their own, the program's take turns."""
    colours: dict[str, str] = {}
    own = 0
    for name in names:
        if name in colours:
            continue
        if name in PHASES or name == OTHER:
            colours[name] = name
        else:
            colours[name] = f"own-{own % OWN_COLOURS}"
            own += 1
    return colours
