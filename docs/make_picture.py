"""Draws the README's pictures: the terminal report of a training program, and its flame graph, as SVG.

    python docs/make_picture.py [RUN]

Without a run it makes two, of a program that needs PyTorch. Of the report only the first part is drawn.
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

from pyrometer.analysis.sample_results import build_sample_results
from pyrometer.record.run import Run
from pyrometer.report import render_terminal
from pyrometer.report.flamegraph import render_flamegraph
from pyrometer.store.run_files import read_run

ROOT = Path(__file__).parents[1]
# Long enough to show what a steady step takes.
PROGRAM = "examples/standard_net.py --batches 500"
# Long enough for the training to take more than the imports.
LONG_PROGRAM = "examples/standard_net.py --batches 4000"
PICTURE = ROOT / "docs" / "report.svg"
FLAMEGRAPH = ROOT / "docs" / "flamegraph.svg"
WIDTH = 92
# The first title that is left out.
END = "Data loading"

# Rich's own frame loads its font from the network; any fixed-width font of the reader's will do.
FRAME = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Fira Code", "Menlo, DejaVu Sans Mono"
)


def main() -> None:
    """Draw both, or those of the run that is named."""
    named = read_run(Path(sys.argv[1])) if len(sys.argv) > 1 else None
    draw_report(named or record(PROGRAM))
    draw_flamegraph(named or record(LONG_PROGRAM))


def draw_flamegraph(run: Run) -> None:
    """The flame graph as ``pyrometer report --flamegraph`` writes it."""
    results = build_sample_results(run)
    if results is None:
        sys.exit("the run has no stack samples")
    FLAMEGRAPH.write_text(render_flamegraph(run, results), encoding="utf-8")


def draw_report(run: Run) -> None:
    """The first part of the report as it looks on a terminal."""
    shown = Text.from_ansi(render_terminal(run, width=WIDTH, color=True)).split("\n")
    end = next(index for index, line in enumerate(shown) if line.plain.startswith(END))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in shown[: end - 1]:
        console.print(line)
    svg = console.export_svg(title=f"pyrometer run {PROGRAM}", code_format=FRAME)
    PICTURE.write_text(re.sub(r"terminal-\d+", "terminal", svg), encoding="utf-8")


def record(program: str) -> Run:
    """A run of the program, recorded now."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.json"
        command = [sys.executable, "-m", "pyrometer", "run", "--no-report", "-o", str(path)]
        subprocess.run([*command, *program.split()], cwd=ROOT, check=True)
        return read_run(path)


if __name__ == "__main__":
    main()
