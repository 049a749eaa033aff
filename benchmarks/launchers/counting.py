"""Runs a program with its scopes recorded and its allocations counted, and nothing else of ours.

python counting.py PROGRAM ARGUMENTS...
"""

import runpy
import sys

from pyrometer.capture import allocations
from pyrometer.capture.import_watch import when_imported
from pyrometer.capture.recording import recorder

if sys.argv[1] == "--python-memory":
    del sys.argv[1]
    allocations.configure(python_objects=True)
program = sys.argv[1]
sys.argv = sys.argv[1:]
recorder.start()
allocations.start()
when_imported("torch", lambda _: allocations.look_for_libraries())
runpy.run_path(program, run_name="__main__")
allocations.look_for_libraries()
seen = allocations.record(with_tensors=allocations.counts_tensors())
if seen is None:
    sys.exit("nothing was counted")
print(f"{seen.tensor_bytes} bytes of tensors, {seen.heap_bytes} of other heap", file=sys.stderr)
