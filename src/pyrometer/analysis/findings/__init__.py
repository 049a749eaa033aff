"""Findings: what in a run is worth changing, how much that could gain at most, and by what evidence."""
