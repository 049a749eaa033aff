"""Run files on disk."""
