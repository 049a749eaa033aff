"""Which steps are looked at closely: a fair choice, and often enough at first for a short run."""

from random import Random

NOTHING, SIZES_AND_BACKWARD, SIZES = 0, 1, 2
"""How closely: the values of ``Watch.detail``."""

_EVERY = 8
_EVERY_LATER = 64
_OFTEN_UNTIL = 64


class CloseUps:
    """Says of one step after another how closely it is to be looked at.

    Of the first only sizes are taken: its backward pass starts torch up. The second is taken
    in full, then one of each eight, later of each 64, chosen at random.
    """

    def __init__(self, seed: int = 0) -> None:
        # Our own: the program's random numbers are not touched.
        self._random = Random(seed)  # noqa: S311 - a choice of steps is no secret
        self._steps = 0
        self._next = 1

    def next_detail(self) -> int:
        """For the step that begins now."""
        number = self._steps
        self._steps += 1
        if number < self._next:
            return SIZES if number == 0 else NOTHING
        every = _EVERY if number < _OFTEN_UNTIL else _EVERY_LATER
        self._next = (number // every + 1) * every + int(self._random.random() * every)
        return SIZES_AND_BACKWARD

    @property
    def steps_left(self) -> int:
        """After how many more steps there is something to look at closely, or to stop looking."""
        return max(self._next - self._steps + 1, 0)
