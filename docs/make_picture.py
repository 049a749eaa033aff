"""Draws the README's picture: the terminal report of a stored run, as an SVG.

    python docs/make_picture.py

The run is a real one, of ``make demo``. Only the first part of the report is drawn.
"""

import io
import re
from pathlib import Path

from rich._export_format import CONSOLE_SVG_FORMAT
from rich.console import Console
from rich.text import Text

from pyrometer.report import render_terminal
from pyrometer.store.run_files import read_run

ROOT = Path(__file__).parents[1]
RUN = ROOT / "tests" / "runs" / "v1" / "classifier.json"
PICTURE = ROOT / "docs" / "report.svg"
WIDTH = 84
LAST_PART = "How to read it"

# Rich's own frame loads its font from the network; any fixed-width font of the reader's will do.
FRAME = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL).replace(
    "Fira Code", "Menlo, DejaVu Sans Mono"
)


def main() -> None:
    """Draw it."""
    report = render_terminal(read_run(RUN), width=WIDTH, color=True)
    shown = Text.from_ansi(report).split("\n")
    end = next(index for index, line in enumerate(shown) if line.plain.startswith(LAST_PART))
    console = Console(record=True, width=WIDTH, file=io.StringIO(), force_terminal=True)
    for line in shown[: end - 1]:
        console.print(line)
    svg = console.export_svg(title="pyrometer run examples/train_classifier.py", code_format=FRAME)
    PICTURE.write_text(re.sub(r"terminal-\d+", "terminal", svg), encoding="utf-8")


if __name__ == "__main__":
    main()
