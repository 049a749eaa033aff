"""What a user can do wrong, as one tree of errors.

Each message says what is wrong, which value, and what to do next. The command
line prints it as one line and exits with ``exit_code``; the library only raises.
"""

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False

if TYPE_CHECKING:  # loading pathlib would be a good part of what `import pyrometer` costs
    from pathlib import Path


class PyrometerError(Exception):
    """The base of every error that is meant for the user."""

    exit_code = 2


class UsageError(PyrometerError):
    """An option, an argument or a setting has a value that cannot be used."""


class UnsupportedPlatformError(PyrometerError):
    """This platform is one Pyrometer cannot run on."""


class RunFileError(PyrometerError):
    """A file is not a run that can be read.

    ``place`` is where in the file: a JSON path such as ``$.strands[0].nodes[3]``, or a byte.
    """

    def __init__(self, problem: str, *, path: "Path | str | None" = None, place: str = "") -> None:
        self.problem = problem
        self.path = path
        self.place = place
        where = "run" if path is None else str(path)
        super().__init__(f"{where}: {problem}" + (f" (at {place})" if place else ""))
