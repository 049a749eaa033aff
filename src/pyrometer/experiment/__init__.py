"""Measuring by experiment: programs that take turns, interleaved, in pairs of fresh processes."""
