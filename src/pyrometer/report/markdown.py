"""The report as Markdown: tables, a code block for each tree of scopes, the rest in lists.

Text from the run is escaped, so that it shows as it is and is never markup or HTML.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from urllib.parse import quote

from pyrometer.analysis.sample_results import SampleResults
from pyrometer.analysis.torch_results import TorchResults
from pyrometer.record.run import Run
from pyrometer.report import wording
from pyrometer.report.allocation_sections import build_allocation_sections
from pyrometer.report.blocks import Block, Bullets, Checklist, Code, Emphasis, Lines, Pairs, Section, Table
from pyrometer.report.cells import SPACIOUS, apart_cells, hottest_amount, scope_cells
from pyrometer.report.counters_section import build_counter_sections
from pyrometer.report.document import Document, build_document
from pyrometer.report.page import Page
from pyrometer.report.safe_text import escape_controls, for_markdown, shorten_middle, visible
from pyrometer.report.sample_sections import build_sample_sections
from pyrometer.report.terminal import PARALLEL_MARK, tree_table
from pyrometer.report.torch_baseline import build_baseline_sections
from pyrometer.report.torch_roofline import ROOFLINE_TITLE
from pyrometer.report.torch_sections import build_torch_sections
from pyrometer.report.torch_wording import describe_headline
from pyrometer.report.tree_rows import TreeRow
from pyrometer.units import format_duration

_LONGEST_NAME = 120
_TREE_WIDTH = 100


def render_markdown(
    run: Run,
    *,
    top: int = 20,
    by_thread: bool = False,
    flamegraph: str | None = None,
    roofline_file: str | None = None,
) -> str:
    """The report as CommonMark with GitHub's tables; ``by_thread`` as for the terminal.

    ``flamegraph`` and ``roofline_file`` are where these pictures are, as seen from the report.
    """
    document = build_document(run, top=top, by_thread=by_thread)
    lines = _lines(run, document, top=top, flamegraph=flamegraph, roofline_file=roofline_file)
    return "\n".join(lines) + "\n"


def _lines(
    run: Run, document: Document, *, top: int, flamegraph: str | None, roofline_file: str | None
) -> Iterator[str]:
    yield f"# Pyrometer: {_name(document.headline.program)}"
    yield ""
    yield _headline(document)
    if document.torch is not None:
        yield from _torch_lines(run, document, document.torch, top=top, roofline_file=roofline_file)
    if document.samples is not None:
        yield from _samples(document.samples, top=top, flamegraph=flamegraph)
    if document.by_thread:
        profiled = format_duration(document.headline.profiled_ns)
        yield from _section("Threads", (f"By total time; % is of the {profiled} profiled.", ""))
        yield from _fenced(_tree_text(document.by_thread))
        yield from _notes(0, document.by_thread_notes)
    if document.scopes:
        yield from _scopes(document)
        yield from _section("Tree", _fenced(_tree_text(document.tree)))
        if document.apart:
            yield from _apart(document)
        numbered = (
            f"{number}. {for_markdown(line)}" for number, line in enumerate(document.how_to_read, start=1)
        )
        yield from _section("How to read it", numbered)
    elif document.asks_for_marks:
        yield from _section("Scopes", (for_markdown(wording.NO_SCOPES), ""))
        yield from _fenced("\n".join(wording.HOW_TO_MARK), language="python")
    yield from _sections(build_allocation_sections(document.allocations, SPACIOUS, top=top))
    yield from _sections(build_counter_sections(document.counters, SPACIOUS, top=top))
    yield from _section("The profiler's own cost", _bullets(document.cost))
    yield from _section("Losses", _bullets(document.losses))
    yield from _section("Machine and software", _facts(document.facts))


def _torch_lines(
    run: Run, document: Document, torch: TorchResults, *, top: int, roofline_file: str | None
) -> Iterator[str]:
    for section in build_torch_sections(torch, document.memory, SPACIOUS, top=top):
        yield from _section(for_markdown(section.title), _blocks(section))
        if section.title == ROOFLINE_TITLE and roofline_file is not None:
            yield ""
            yield f"![Phases and modules below the limits of the machine]({quote(roofline_file)})"
    yield from _sections(build_baseline_sections(run, torch))


def sections_as_markdown(title: str, sections: Iterable[Section]) -> str:
    """A page of its own, made of such sections as reports have."""
    return "\n".join((f"# {for_markdown(title)}", *_sections(sections))) + "\n"


def _sections(sections: Iterable[Section]) -> Iterator[str]:
    for section in sections:
        yield from _section(for_markdown(section.title), _blocks(section))


def _section(title: str, lines: Iterable[str]) -> Iterator[str]:
    yield ""
    yield f"## {title}"
    yield ""
    yield from lines


def _blocks(section: Section) -> Iterator[str]:
    for index, block in enumerate(section.blocks):
        if index:
            yield ""
        yield from _block(block)


def _block(block: Block) -> Iterator[str]:
    if isinstance(block, Table):
        yield from _block_table(block)
    elif isinstance(block, Lines) and block.emphasis is Emphasis.FAINT:
        yield from _bullets(block.lines)
    elif isinstance(block, Lines):
        yield "  \n".join(map(_line, block.lines))
    elif isinstance(block, Bullets):
        yield from _bullets(block.lines)
    elif isinstance(block, Pairs):
        yield from _facts(block.rows)
    elif isinstance(block, Checklist):
        yield from _checked(block)
    elif isinstance(block, Code):
        yield from _fenced("\n".join(map(escape_controls, block.lines)), language=block.language)


def _block_table(table: Table) -> Iterator[str]:
    details = [table.details] if table.details else []
    headings = [column.spelled or column.heading for column in table.columns]
    yield _row([table.names, *map(for_markdown, headings), *details])
    yield _row(
        [":---", *(":---" if column.left else "---:" for column in table.columns), *[":---" for _ in details]]
    )
    for row in table.rows:
        cells = [
            _name(row.qualified_name or row.name) + for_markdown(row.mark),
            *map(for_markdown, row.cells),
        ]
        if details:
            cells.append(for_markdown(" ".join(row.details)))
        # Only our own words are set bold: stars next to a blank in a name would stay stars.
        yield _row([f"**{cell}**" if row.total and cell else cell for cell in cells])


def _samples(samples: SampleResults, *, top: int, flamegraph: str | None) -> Iterator[str]:
    yield from _sections(build_sample_sections(samples, SPACIOUS, top=top, whole=True))
    if flamegraph is not None:
        yield from _section("Flame graph", _picture("Flame graph of the CPU time", flamegraph))


def _picture(text: str, target: str) -> Iterator[str]:
    """A picture that is a link to itself: opened, it can be zoomed and searched."""
    address = quote(target)
    yield f"[![{text}]({address})]({address})"
    yield ""
    yield "Open the picture itself to zoom, to search and to see each frame's share."


def _headline(document: Document) -> str:
    headline = document.headline
    start = f"{_unindented(_name(headline.program))} {for_markdown(headline.ending)}"
    if document.torch is not None and document.torch.headline is not None:
        return f"{start}: {for_markdown(describe_headline(document.torch))}."
    # Only our own words are set bold: stars next to a blank in a name would stay stars.
    start += f", **{format_duration(headline.profiled_ns)} profiled**"
    if headline.hottest is None:
        return f"{start}, no scopes."
    hottest = _name(headline.hottest.name, parallel=headline.hottest.parallel)
    return f"{start}, most self time: {hottest} ({hottest_amount(headline)})."


def _scopes(document: Document) -> Iterator[str]:
    profiled = format_duration(document.headline.profiled_ns)
    table = _table(
        [_name(scope.name, parallel=scope.parallel) for scope in document.scopes],
        [scope_cells(document, scope, SPACIOUS) for scope in document.scopes],
    )
    yield from _section("Scopes", (f"By total time; % is of the {profiled} profiled.", ""))
    yield from table
    yield from _notes(document.scopes_not_shown, document.marks)


def _apart(document: Document) -> Iterator[str]:
    table = _table(
        [_name(scope.name, parallel=scope.parallel) for scope in document.apart],
        [apart_cells(document, scope, SPACIOUS) for scope in document.apart],
    )
    yield from _section("Shown apart", table)
    yield from _notes(document.apart_not_shown, document.apart_notes)


def _notes(not_shown: int, notes: Iterable[str]) -> Iterator[str]:
    lines = [f"{not_shown:,} more not shown."] if not_shown else []
    lines += notes
    if lines:
        yield ""
        yield from _bullets(lines)


def _table(names: Sequence[str], rows: Sequence[Mapping[str, str]]) -> Iterator[str]:
    headings = list(rows[0])
    yield _row(["name", *headings])
    yield _row([":---", *["---:"] * len(headings)])
    for name, row in zip(names, rows, strict=True):
        yield _row([name, *map(for_markdown, row.values())])


def _facts(facts: Iterable[tuple[str, str]]) -> Iterator[str]:
    yield _row(["", ""])
    yield _row([":---", ":---"])
    for label, value in facts:
        yield _row([for_markdown(label), for_markdown(value)])


def _row(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _bullets(lines: Iterable[str]) -> Iterator[str]:
    return (f"- {_line(line)}" for line in lines)


def _line(text: str) -> str:
    return _unindented(for_markdown(visible(text)))


def _unindented(line: str) -> str:
    """The same to see, but blanks at its start do not make it a piece of code, or a list in a list."""
    return f"&#32;{line[1:]}" if line.startswith(" ") else line


def _checked(checklist: Checklist) -> Iterator[str]:
    for met, text in checklist.items:
        box = "[x]" if met else "[ ]"
        yield f"- {box} {for_markdown(text)}{'' if met is not None else ' (cannot be told)'}"


def _tree_text(rows: Sequence[TreeRow]) -> str:
    page = Page(width=_TREE_WIDTH)
    return page.render(page.table(tree_table(rows)))


def _fenced(text: str, *, language: str = "text") -> Iterator[str]:
    """A code block; nothing in it can end it, as its fence is longer than any in the text."""
    longest = max(map(len, re.findall("`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    yield f"{fence}{language}"
    yield text.rstrip("\n")
    yield fence


def _name(name: str, *, parallel: bool = False) -> str:
    return for_markdown(shorten_middle(visible(name), _LONGEST_NAME)) + (PARALLEL_MARK if parallel else "")
