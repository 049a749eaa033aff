"""A GPT that computes past tokens again for each new one; its twin keeps their keys and values."""

import runpy
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[3] / "examples" / "generate_text.py"
sys.argv = [str(EXAMPLE), *([] if sys.argv[1] == "guilty" else ["--cache"])]
runpy.run_path(str(EXAMPLE), run_name="__main__")
