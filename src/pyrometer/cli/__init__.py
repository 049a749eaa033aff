"""The command line: one file a command, arguments and one call."""

import time

# Taken at the first line of ours in a command, for what `pyrometer run` says about its own cost.
BEGAN_NS = time.perf_counter_ns()
INTERPRETER_START_NS = time.process_time_ns()
"""CPU time so far, which is all that a starting interpreter spends.

The age of the process would be wrong by minutes where a shell script ends in ``exec pyrometer``.
"""
