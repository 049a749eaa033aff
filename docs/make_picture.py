"""Draws the README's picture: the terminal report of a training program, as an SVG.

    python docs/make_picture.py [RUN]

Without a run it makes one, of a program that needs PyTorch. Only the first part of the report is drawn.
"""

import io
import re
import subprocess
import sys
import tempfile
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from pyrometer.record.run import Run
from pyrometer.report import render_terminal
from pyrometer.store.run_files import read_run

ROOT = Path(__file__).parents[1]
# Long enough to show what a steady step takes.
PROGRAM = "examples/standard_net.py --batches 500"
PICTURE = ROOT / "docs" / "report.svg"
WIDTH = 92
# The first title that is left out.
END = "Data loading"

# Rich's own frame loads its font from the network; any fixed-width font of the reader's will do.
FRAME = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Fira Code", "Menlo, DejaVu Sans Mono"
)


def main() -> None:
    """Draw it."""
    run = read_run(Path(sys.argv[1])) if len(sys.argv) > 1 else record()
    shown = Text.from_ansi(render_terminal(run, width=WIDTH, color=True)).split("\n")
    end = next(index for index, line in enumerate(shown) if line.plain.startswith(END))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in shown[: end - 1]:
        console.print(line)
    svg = console.export_svg(title=f"pyrometer run {PROGRAM}", code_format=FRAME)
    PICTURE.write_text(re.sub(r"terminal-\d+", "terminal", svg), encoding="utf-8")


def record() -> Run:
    """A run of the program, recorded now."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        command = [sys.executable, "-m", "pyrometer", "run", "--no-report", "-o", str(path)]
        subprocess.run([*command, *PROGRAM.split()], cwd=ROOT, check=True)
        return read_run(path)


if __name__ == "__main__":
    main()
