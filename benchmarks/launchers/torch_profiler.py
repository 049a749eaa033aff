"""Runs a program with torch.profiler on from its first line to its last, then makes the usual table.

python torch_profiler.py PROGRAM ARGUMENTS...
"""

import runpy
import sys

from torch.profiler import ProfilerActivity, profile

program = sys.argv[1]
sys.argv = sys.argv[1:]
with profile(activities=[ProfilerActivity.CPU]) as profiler:
    runpy.run_path(program, run_name="__main__")
print(profiler.key_averages().table(sort_by="cpu_time_total", row_limit=20), file=sys.stderr)
