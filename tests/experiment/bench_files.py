"""Writes files of benchmarks for tests."""

from pathlib import Path
from textwrap import dedent


def write_benchmarks(folder: Path, source: str, *, name: str = "bench_some.py") -> Path:
    """A file with these functions; pyrometer is imported in it."""
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("import pyrometer\n" + dedent(source), encoding="utf-8")
    return path
