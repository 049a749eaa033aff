"""``pyrometer compare``: two runs, or two groups of runs, compared."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer

from pyrometer.analysis.comparison.compare import Side, compare_facts, compare_sides
from pyrometer.analysis.comparison.model import Comparison
from pyrometer.analysis.gate import LOOKS
from pyrometer.analysis.identity import RULES, Level, check_fact_names
from pyrometer.analysis.observed import observe
from pyrometer.cli.compare_maps import are_maps, compare_map_files
from pyrometer.cli.compare_measured import Measuring, measure_commands, measure_revisions
from pyrometer.cli.compare_sides import RunsOfASide, find_sides
from pyrometer.cli.measuring import check_writable, parse_threads
from pyrometer.cli.printing import print_text, rows_wanted, screen_for
from pyrometer.cli.program_words import ProgramWordsCommand
from pyrometer.cli.report_files import check_replaceable, write_report
from pyrometer.cli.report_formats import CompareFormat, format_for
from pyrometer.errors import UsageError
from pyrometer.report import Screen
from pyrometer.report.comparison_sections import DEFAULT_TOP
from pyrometer.store.run_files import current_folder

COMMAND_OPTIONS = {"cls": ProgramWordsCommand}
REFUSED = 4
_FILE_NAMES = {
    CompareFormat.TERMINAL: "comparison.txt",
    CompareFormat.MARKDOWN: "comparison.md",
    CompareFormat.HTML: "comparison.html",
    CompareFormat.JSON: "comparison.json",
}
"""In a folder."""


_SIDE_HELP = "a run file, a folder of runs (several processes), or the name of a saved baseline"


def compare(
    words: Annotated[
        list[str],
        typer.Argument(
            metavar="A B",
            help=f"Before and after: each {_SIDE_HELP}. With --measure two commands, with --rev one program.",
            show_default=False,
        ),
    ],
    *,
    measure: Annotated[
        bool, typer.Option("--measure", help="Run both commands by turns, and compare what they take.")
    ] = False,
    revisions: Annotated[
        list[str] | None,
        typer.Option(
            "--rev",
            metavar="REV",
            help="Run the program at this git revision, by turns with another --rev or the working tree.",
            show_default=False,
        ),
    ] = None,
    pairs: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=LOOKS[-1].pairs,
            metavar="N",
            help="Measure at most N pairs of processes (40).",
            show_default=False,
        ),
    ] = None,
    threads: Annotated[
        str | None,
        typer.Option(
            metavar="N",
            help="What libraries may use while measured (1); auto: what they choose.",
            show_default=False,
        ),
    ] = None,
    link: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH", help="With --rev: an untracked input that revisions need.", show_default=False
        ),
    ] = None,
    compare_format: Annotated[
        CompareFormat | None,
        typer.Option(
            "--format",
            help="By default by the ending of FILE (.md, .html, .json), else terminal.",
            show_default=False,
        ),
    ] = None,
    output: Annotated[
        Path | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write to FILE, not to the screen."),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FACT",
            help=f"Compare although this differs, and say so ({', '.join(RULES)}); may be repeated.",
            show_default=False,
        ),
    ] = None,
    flamegraph: Annotated[
        Path | None,
        typer.Option(metavar="FILE.svg", help="Draw the stacks there, coloured by what changed."),
    ] = None,
    top: Annotated[
        int | None,
        typer.Option(
            min=1, metavar="N", help=f"Show N rows of each table ({DEFAULT_TOP}).", show_default=False
        ),
    ] = None,
    show_all: Annotated[bool, typer.Option("--all", help="Show all rows.")] = False,
) -> None:
    """Compare two runs, or two groups of runs: what changed, by how much, and how sure that is.

    Counts and bytes are told from one run a side; times are judged only over 8 processes or more on each
    side that were recorded by turns. Ends with code 4 where the runs may not be compared.
    """
    rows = rows_wanted(top, show_all=show_all, default=DEFAULT_TOP)
    allowed = frozenset(allow or ())
    check_fact_names(allowed)
    check_writable("--flamegraph", flamegraph, endings=(".svg",))
    chosen = compare_format or CompareFormat(format_for(output).value)
    file = output / _FILE_NAMES[chosen] if output is not None and output.is_dir() else output
    if measure or revisions:
        _check_before_measuring(file)
        if flamegraph is not None:
            raise UsageError("--flamegraph draws recorded runs, and what is measured by turns has no stacks")
        measuring = Measuring(
            allowed=allowed,
            most_pairs=pairs or LOOKS[-1].pairs,
            threads=parse_threads("--threads", threads or "1"),
            are_threads_given=threads is not None,
            links=link or (),
        )
        comparison, paths = _measured(words, measuring, measure=measure, revisions=revisions or ()), []
    else:
        _check_only_measured(pairs=pairs, threads=threads, link=link)
        if are_maps(*_two(words), folder=current_folder()):
            if flamegraph is not None or allowed:
                raise UsageError("--flamegraph and --allow are for runs, and these are code maps")
            compare_map_files(*_two(words), chosen=chosen, output=file, top=rows)
            return
        sides = find_sides(*_two(words), folder=current_folder(), allowed=allowed)
        comparison = _compare(*sides, allowed)
        paths = [path for side in sides for path in side.paths]
    is_refused = comparison.comparability.level is Level.REFUSED
    if flamegraph is not None and not is_refused:
        write_report(flamegraph, _flamegraph(comparison), run_path=paths, option="--flamegraph")
        print(f"{flamegraph}: open it in a browser", file=sys.stderr)
    text = _render(comparison, chosen, rows, screen_for(file))
    if file is None:
        print_text(text)
    else:
        write_report(file, text, run_path=paths)
    if is_refused:
        print("pyrometer: the runs may not be compared", file=sys.stderr)
        raise typer.Exit(REFUSED)


def _check_before_measuring(file: Path | None) -> None:
    """What takes long to measure must not be lost at the end."""
    if file is not None:
        check_writable("-o", file, endings=(file.suffix,))
        check_replaceable(file)


def _measured(
    words: Sequence[str], measuring: Measuring, *, measure: bool, revisions: Sequence[str]
) -> Comparison:
    if measure and revisions:
        raise UsageError("--measure runs two commands, --rev one program at two revisions; leave one out")
    if revisions:
        return measure_revisions(revisions, words, current_folder(), measuring)
    if measuring.links:
        raise UsageError("--link is for --rev: two commands run in the same folder")
    return measure_commands(*_two(words), current_folder(), measuring)


def _two(words: Sequence[str]) -> tuple[str, str]:
    if len(words) != 2:
        raise UsageError(f"{len(words)} given, but two are compared: pyrometer compare A B")
    return words[0], words[1]


def _check_only_measured(**given: object) -> None:
    for name, value in given.items():
        if value is not None:
            raise UsageError(f"--{name} is for --measure and --rev: recorded runs are compared as they are")


def _compare(before: RunsOfASide, after: RunsOfASide, allowed: frozenset[str]) -> Comparison:
    comparability = compare_facts(before.runs, after.runs, allowed=allowed)
    return compare_sides(
        Side(name=before.name, runs=tuple(map(observe, before.runs))),
        Side(name=after.name, runs=tuple(map(observe, after.runs))),
        comparability,
    )


def _flamegraph(comparison: Comparison) -> str:
    from pyrometer.report.comparison_words import describe_missing
    from pyrometer.report.diff_flamegraph import render_diff_flamegraph

    if comparison.frames is None:
        why = next(describe_missing(one) for one in comparison.missing if one.part.value == "samples")
        raise UsageError(f"There is no flame graph to draw: {why}. Leave --flamegraph out")
    return render_diff_flamegraph(comparison.frames, comparison.after.program)


def _render(comparison: Comparison, chosen: CompareFormat, top: int | None, screen: Screen) -> str:
    # Each loaded when it is asked for: none needs the others.
    match chosen:
        case CompareFormat.JSON:
            from pyrometer.report.comparison_json import render_comparison_json

            return render_comparison_json(comparison)
        case CompareFormat.HTML:
            from pyrometer.report.comparison_html import render_comparison_html

            return render_comparison_html(comparison)
        case CompareFormat.MARKDOWN:
            from pyrometer.report.comparison_markdown import render_comparison_markdown

            return render_comparison_markdown(comparison, top=top)
        case CompareFormat.TERMINAL:
            from pyrometer.report.comparison_terminal import render_comparison_terminal

            return render_comparison_terminal(
                comparison, top=top, width=screen.width, color=screen.color, ascii_only=screen.ascii_only
            )
