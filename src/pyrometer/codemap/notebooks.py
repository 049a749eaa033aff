"""The code of a notebook as one Python text."""

import re

import msgspec

from pyrometer.codemap.python_lines import lines_of

_PYTHON_MAGICS = frozenset({"capture", "debug", "prun", "py", "pypy", "python", "python3", "time", "timeit"})
"""Behind ``%%``: the cell below is Python all the same."""
_COMMAND = re.compile(r"(\s*)[!%]{1,2}[A-Za-z./~{$]")
_ASSIGNED = re.compile(r"(\s*[\w, ]+=\s*)[!%][A-Za-z./~{$]")
_HELP = re.compile(r"\s*\?{0,2}[\w.*]+\?{1,2}\s*|\s*\?{1,2}[\w.*]+\s*")


class _Cell(msgspec.Struct, frozen=True):
    cell_type: str = ""
    source: str | list[str] = ""


class _Language(msgspec.Struct, frozen=True):
    name: str | None = None
    language: str | None = None


class _Metadata(msgspec.Struct, frozen=True):
    kernelspec: _Language = _Language()
    language_info: _Language = _Language()


class _Notebook(msgspec.Struct, frozen=True):
    cells: list[_Cell]
    metadata: _Metadata = _Metadata()


def code_of_notebook(data: bytes) -> str:
    """The lines of all cells of code; commands of the notebook are comments there.

    Raises ``ValueError`` for what is no notebook, or one of a version before 4, or of another language.
    """
    try:
        notebook = msgspec.json.decode(data, type=_Notebook)
    except msgspec.DecodeError as error:
        raise ValueError(f"no notebook of version 4: {error}") from None
    language = notebook.metadata.language_info.name or notebook.metadata.kernelspec.language or "python"
    if not language.lower().startswith(("python", "ipython")):
        raise ValueError(f"a notebook of {language}, of which nothing is counted")
    lines: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            source = cell.source if isinstance(cell.source, str) else "".join(cell.source)
            lines += _lines_of_cell(lines_of(source))
    return "".join(f"{line}\n" for line in lines)


def _lines_of_cell(lines: list[str]) -> list[str]:
    if lines and lines[0].startswith("%%"):
        magic = lines[0][2:].split()[:1]
        if not magic or magic[0] not in _PYTHON_MAGICS:
            return [f"# {line}" for line in lines]
    return [_as_python(line) for line in lines]


def _as_python(line: str) -> str:
    """A line that is for the notebook as one that Python takes: as a comment, or in a block as nothing."""
    command = _COMMAND.match(line)
    if command is not None:
        return f"{command[1]}pass  # {line.strip()}" if command[1] else f"# {line}"
    assigned = _ASSIGNED.match(line)
    if assigned is not None:
        return f"{assigned[1]}None"
    return f"# {line}" if _HELP.fullmatch(line) else line
