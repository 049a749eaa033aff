"""The code of a notebook as one Python text."""

import msgspec

from pyrometer.codemap.python_lines import lines_of


class _Cell(msgspec.Struct, frozen=True):
    cell_type: str = ""
    source: str | list[str] = ""


class _Notebook(msgspec.Struct, frozen=True):
    cells: list[_Cell]


def code_of_notebook(data: bytes) -> str:
    """The lines of all cells of code; commands of the notebook are comments there.

    Raises ``ValueError`` for what is no notebook, or one of a version before 4.
    """
    try:
        notebook = msgspec.json.decode(data, type=_Notebook)
    except msgspec.DecodeError as error:
        raise ValueError(f"no notebook of version 4: {error}") from None
    lines: list[str] = []
    for cell in notebook.cells:
        if cell.cell_type == "code":
            source = cell.source if isinstance(cell.source, str) else "".join(cell.source)
            its_lines = lines_of(source)
            is_other_language = bool(its_lines) and its_lines[0].startswith("%%")
            lines += (_as_python(line, is_command=is_other_language) for line in its_lines)
    return "".join(f"{line}\n" for line in lines)


def _as_python(line: str, *, is_command: bool) -> str:
    stripped = line.lstrip()
    if is_command or stripped.startswith(("%", "!")) or stripped.endswith("?"):
        return f"# {line}"
    return line
