"""Watching a program: the one recorder of the process, threads, checkpoints, and our own cost.

Nothing here opens a file or prints: what was seen is handed on as values of the record.
"""
