"""What a code map looks like, word by word, and that it adds up."""

from collections.abc import Callable
from pathlib import Path

import pytest
from rich.cells import cell_len

from pyrometer.analysis.codemap.heat import find_heat
from pyrometer.analysis.codemap.results import MapResults
from pyrometer.report.codemap_documents import MapReport, map_documents, render_map_terminal
from tests.codemap.test_map_reports import results_of, run_of
from tests.sampled_runs import Seen

FILES = {
    "pyproject.toml": '[project]\nname = "pack"\ndependencies = ["msgspec", "left-pad"]\n',
    "pack/__init__.py": '"""A package."""\n\nfrom pack.high.a import go\n',
    "pack/low.py": "import os\nimport unheard_of\n\n\ndef work():\n    return 1\n",
    "pack/high/__init__.py": "",
    "pack/high/a.py": """
    # Why it is here.
    from typing import TYPE_CHECKING

    from pack.low import work

    if TYPE_CHECKING:
        from pack.high.b import B

    def go(x):
        import pack.high.b
        return [work() for _ in x if x and _]
    """,
    "pack/high/b.py": """
    from pack.high import a
    import pack

    class B:
        def idle(self):
            if self:
                return 1
    """,
    "pack/core.c": "/* C */\nint x;\n\nint y; // why\n",
    "pack/broken.py": "def f(:\n",
    "pack/vendor/x.py": "x = 1\n",
}


@pytest.fixture
def report(tmp_path: Path) -> MapReport:
    results = results_of(tmp_path, FILES)
    run = run_of(tmp_path, Seen(stack="main;go;work", python=300), Seen(stack="main;norm", native=100))
    return MapReport(results=results, heat=find_heat(results, run))


def test_the_map_on_a_terminal_looks_as_agreed(
    report: MapReport, check_golden: Callable[[str, str], None]
) -> None:
    text = render_map_terminal(report)
    assert max(map(cell_len, text.splitlines())) <= 80
    check_golden("codemap.txt", text)


@pytest.mark.parametrize(
    "name", ["module_inventory.md", "dependency_graph.md", "system_map.md", "system_map.svg"]
)
def test_the_documents_look_as_agreed(
    name: str, report: MapReport, check_golden: Callable[[str, str], None]
) -> None:
    check_golden(f"codemap-{name}", map_documents(report)[name])


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_any_width_is_kept_to(report: MapReport, width: int) -> None:
    text = render_map_terminal(report, width=width, ascii_only=True)
    assert text.isascii()
    assert max(map(len, text.splitlines())) <= width


def test_parts_add_up_to_what_they_are_in(report: MapReport) -> None:
    results: MapResults = report.results
    for part in results.tree.walk():
        inner = [*part.parts.values()]
        assert part.lines.code == sum(one.lines.code for one in inner) + sum(
            file.lines.code for file in part.files
        )
        assert part.file_count == sum(one.file_count for one in inner) + len(part.files)
        lines = part.lines
        assert lines.total == lines.code + lines.comment + lines.docstring + lines.blank
    heat = report.heat
    assert heat is not None
    top = sum(its.own_ns for path, its in heat.parts.items() if len(path) == 1)
    assert top == heat.on_map_ns == sum(one.heat.own_ns for one in heat.functions)
