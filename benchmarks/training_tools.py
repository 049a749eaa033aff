"""How each profiler is started on a program: its own command, as its documentation shows it."""

import sys
import sysconfig
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

LAUNCHERS = Path(__file__).parent / "launchers"
PLAIN = "un-profiled"
CONTROL = "un-profiled, again"
PYROMETER = "pyrometer run"

# The program with its arguments, and a folder to write into.
Command = Callable[[Sequence[str], Path], list[str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Tool:
    """A way to start a program. ``needs`` is the package or command that must be installed."""

    name: str
    command: Command
    needs: str | None = None
    stopped: bool = True
    """Whether it is held still between visits."""

    @property
    def installed(self) -> bool:
        """Whether it can be started here."""
        return self.needs is None or any(map(Path.exists, _places(self.needs)))


def _places(package: str) -> tuple[Path, Path]:
    """Where a package or a command of that name would be, for the interpreter that runs this."""
    return Path(sysconfig.get_path("platlib"), package), Path(sysconfig.get_path("scripts"), package)


def python_command(*before: str) -> Command:
    """Plain Python, with this before the program."""
    return lambda program, _folder: [sys.executable, *before, *program]


def _pyrometer(program: Sequence[str], folder: Path) -> list[str]:
    return [sys.executable, "-m", "pyrometer", "run", "-o", str(folder / "run.json"), *program]


def _scalene(*options: str) -> Command:
    def command(program: Sequence[str], folder: Path) -> list[str]:
        script, *arguments = program
        started = [sys.executable, "-m", "scalene", "run", *options, "-o", str(folder / "scalene.json")]
        return [*started, script, "---", *arguments]

    return command


def _py_spy(program: Sequence[str], folder: Path) -> list[str]:
    return [
        str(_places("py-spy")[1]),
        "record",
        "-o",
        str(folder / "py-spy.svg"),
        "--",
        sys.executable,
        *program,
    ]


def _memray(program: Sequence[str], folder: Path) -> list[str]:
    return [sys.executable, "-m", "memray", "run", "-o", str(folder / "memray.bin"), *program]


def _viztracer(program: Sequence[str], folder: Path) -> list[str]:
    return [sys.executable, "-m", "viztracer", "-o", str(folder / "viztracer.json"), "--", *program]


def _cprofile(program: Sequence[str], folder: Path) -> list[str]:
    return [sys.executable, "-m", "cProfile", "-o", str(folder / "cprofile.pstats"), *program]


TOOLS = (
    Tool(name=PLAIN, command=python_command()),
    Tool(name=CONTROL, command=python_command()),
    Tool(name=PYROMETER, command=_pyrometer),
    Tool(name="torch.profiler", command=python_command(str(LAUNCHERS / "torch_profiler.py"))),
    Tool(
        name="Lightning's timers",
        command=python_command(str(LAUNCHERS / "phase_timers.py")),
        needs="lightning",
    ),
    Tool(name="scalene", command=_scalene(), needs="scalene"),
    Tool(name="scalene --cpu-only", command=_scalene("--cpu-only"), needs="scalene"),
    # Stopped, it would make up for every sample it has missed in the next block.
    Tool(name="py-spy", command=_py_spy, needs="py-spy", stopped=False),
    Tool(name="memray", command=_memray, needs="memray"),
    Tool(name="viztracer", command=_viztracer, needs="viztracer"),
    Tool(name="cProfile", command=_cprofile),
)
