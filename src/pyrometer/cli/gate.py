"""``pyrometer gate``: whether a change has made the program slower."""

import contextlib
import os
import secrets
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from pyrometer.analysis.baseline import key_of
from pyrometer.analysis.gate import LOOKS, Verdict
from pyrometer.analysis.gated import GatedLane, overall
from pyrometer.analysis.identity import (
    RULES,
    Identity,
    check_baseline_side,
    check_fact_names,
    identity_of,
)
from pyrometer.analysis.trials import Metric
from pyrometer.cli.measuring import (
    ProgressLine,
    bytecode_alike,
    check_writable,
    end_cleanly_on_termination,
    parse_percent,
    parse_threads,
    print_result,
    tell_of_file_systems,
)
from pyrometer.cli.printing import screen_for
from pyrometer.errors import PyrometerError, UsageError
from pyrometer.experiment.counted import find_counter
from pyrometer.experiment.errors import ProgramFailedError, RefusedError
from pyrometer.experiment.experiment import Conditions
from pyrometer.experiment.gated_programs import BENCHMARK, OUTPUT, Gated, gate_program
from pyrometer.experiment.gating import Rule
from pyrometer.experiment.planning import Wanted
from pyrometer.experiment.sides import Command, command_in
from pyrometer.experiment.worktrees import Tree, checked_out, commit_of, recorded_commit, working_tree
from pyrometer.record.run import Program, Run
from pyrometer.report.gate_json import GATE_FORMAT, render_gate_json, render_problem_json
from pyrometer.report.gate_report import (
    render_gate_markdown,
    render_gate_terminal,
    render_judged_markdown,
)
from pyrometer.report.safe_text import for_markdown, visible
from pyrometer.store.baseline_files import baseline_names, load_saved_runs
from pyrometer.store.run_files import current_folder
from pyrometer.units import format_count

OF_BENCHMARKS = frozenset({OUTPUT, BENCHMARK, "inputs"})
"""What may be allowed to differ between two versions of a benchmark."""
OWN_ERROR = 70
EXIT_CODES = {Verdict.PASS: 0, Verdict.FAIL: 1, Verdict.INCONCLUSIVE: 3, Verdict.REFUSED: 4}

COMMAND_OPTIONS = {
    "context_settings": {"allow_interspersed_args": False},
    "options_metavar": "[OPTIONS] --",
}


class Inconclusive(StrEnum):
    """What an inconclusive gate exits with."""

    TELL = "tell"
    FAIL = "fail"


def gate(
    program: Annotated[
        list[str],
        typer.Argument(
            metavar="SCRIPT [ARGS]...",
            help="The program, -m and a module, or a file bench_*.py (and names of its benchmarks).",
            show_default=False,
        ),
    ],
    *,
    baseline: Annotated[
        str,
        typer.Option(
            metavar="NAME|REV",
            help="What to hold it against: a saved baseline, whose commit is run again, or a git revision.",
            show_default=False,
        ),
    ],
    max_slowdown: Annotated[str, typer.Option(metavar="PERCENT", help="How much slower is allowed.")] = "0%",
    metric: Annotated[
        list[Metric] | None,
        typer.Option(
            help="What to judge; may be given more than once.  [default: throughput, or latency where "
            "samples are not known]",
            show_default=False,
        ),
    ] = None,
    inconclusive: Annotated[
        Inconclusive,
        typer.Option(help="Exit with 3 where nothing can be told, or with 1, as for FAIL."),
    ] = Inconclusive.TELL,
    pairs: Annotated[
        int,
        typer.Option(
            min=1,
            max=LOOKS[-1].pairs,
            metavar="N",
            help="Measure at most N pairs of processes; looks are after 10, 20 and 40.",
        ),
    ] = LOOKS[-1].pairs,
    threads: Annotated[
        str, typer.Option(metavar="N", help="What libraries may use; auto: what they choose.")
    ] = "1",
    link: Annotated[
        list[str] | None,
        typer.Option(
            metavar="PATH",
            help="An untracked file or folder, such as data, that the baseline's tree needs too.",
            show_default=False,
        ),
    ] = None,
    allow: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FACT",
            help="A fact in which the sides may differ, as a refusal names it.",
            show_default=False,
        ),
    ] = None,
    summary: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="Append the report there as Markdown, for a pull request."),
    ] = None,
    output: Annotated[
        str | None,
        typer.Option("--output", "-o", metavar="FILE", help="Write all that was measured there, as JSON."),
    ] = None,
    seed: Annotated[
        int | None, typer.Option(metavar="N", help="Make the same random choices again.", show_default=False)
    ] = None,
) -> None:
    """Measure the program beside another version of itself, and say whether it became slower.

    Both versions run here and now, in pairs of fresh processes that take turns; a stored time never
    gates. Exit codes: 0 PASS, 1 FAIL, 3 INCONCLUSIVE, 4 REFUSED, 2 wrong usage, 5 the program failed,
    70 an error of Pyrometer's own.
    """
    end_cleanly_on_termination()
    check_writable("--summary", summary, endings=(".md", ".markdown", ".txt", ""))
    check_writable("--output", output, endings=(".json",), begins=GATE_FORMAT)
    folder = current_folder()
    command = command_in(program)
    allowed = frozenset(allow or ())
    check_fact_names(allowed - OF_BENCHMARKS, also=sorted(OF_BENCHMARKS - RULES.keys()))
    rule = Rule(max_slowdown=parse_percent("--max-slowdown", max_slowdown), most_pairs=pairs)
    conditions = Conditions(
        wanted=Wanted(threads=parse_threads("--threads", threads)),
        allowed=allowed - (OF_BENCHMARKS - RULES.keys()),
        seed=secrets.randbits(32) if seed is None else seed,
    )
    if Metric.INSTRUCTIONS in (metric or ()):
        find_counter()  # before others are measured, whose figures would be lost
    _warn_of_few_pairs(pairs, metric or ())
    line = ProgressLine()
    lanes: list[GatedLane] = []
    results = Results(lanes=lanes, seed=conditions.seed, summary=summary, output=output)
    results.keep_unfinished()
    try:
        with _own_errors_apart():
            # One by one: those before a problem stay.
            lanes.extend(
                _measure(
                    baseline,
                    command,
                    working_tree(folder),
                    links=link or (),
                    metrics=metric or [None],
                    rule=rule,
                    conditions=conditions,
                    allowed=allowed & OF_BENCHMARKS,
                    tell=line.show,
                )
            )
    except (RefusedError, ProgramFailedError) as error:
        results.keep_problem(error)
        raise
    finally:
        line.clear()
    with _own_errors_apart():
        shown = _render(lanes)
    try:
        # Before it is printed: a reader may be gone by then.
        with _own_errors_apart():
            results.keep()
    finally:
        print_result(shown)
    verdict = overall(lanes)
    code = EXIT_CODES[verdict]
    if verdict is Verdict.INCONCLUSIVE and inconclusive is Inconclusive.FAIL:
        code = EXIT_CODES[Verdict.FAIL]
    raise typer.Exit(code)


def _measure(
    baseline: str,
    command: Command,
    here: Tree,
    *,
    links: Sequence[str],
    metrics: Sequence[Metric | None],
    rule: Rule,
    conditions: Conditions,
    allowed: frozenset[str],
    tell: Callable[[str], None],
) -> Iterator[GatedLane]:
    recorded = _recorded(baseline, command, here.folder)
    if recorded is None:
        commit = commit_of(here.folder, baseline)
    else:
        print(f"pyrometer: {baseline} is the saved baseline of that name", file=sys.stderr)
        commit = recorded_commit(here.folder, str(recorded.fact("code").value))
    if commit == here.commit and not here.is_dirty:
        print(
            f"pyrometer: the working tree is {baseline} itself, without a change: only chance can differ",
            file=sys.stderr,
        )
    with (
        checked_out(here, commit, name=baseline, links=links) as other,
        bytecode_alike([other.root, here.root]) as bytecode,
    ):
        tell_of_file_systems([other.root, here.root])
        gated = Gated(
            baseline=other,
            candidate=here,
            command=command,
            metrics=metrics,
            rule=rule,
            conditions=replace(conditions, recorded=recorded, bytecode=bytecode),
            allowed=allowed,
            tell=tell,
        )
        yield from gate_program(gated)


def _warn_of_few_pairs(pairs: int, metrics: Sequence[Metric]) -> None:
    least = LOOKS[0].pairs
    if pairs < least and (not metrics or any(metric.is_timed for metric in metrics)):
        print(
            f"pyrometer: a time cannot be told from {format_count(pairs, 'pair')}, it takes {least} or more: "
            "this will be INCONCLUSIVE",
            file=sys.stderr,
        )


@contextlib.contextmanager
def _own_errors_apart() -> Iterator[None]:
    """An error of ours is no verdict, and has a code of its own: Python's for it would be that of FAIL."""
    try:
        yield
    except PyrometerError:
        raise
    except Exception as error:
        traceback.print_exc()
        raise typer.Exit(OWN_ERROR) from error


def _recorded(baseline: str, command: Command, folder: Path) -> Identity | None:
    """What a saved baseline was a run of; None where the name is a revision's."""
    if baseline not in baseline_names(folder) and not baseline.endswith(".json"):
        return None
    saved = load_saved_runs(baseline, folder=folder)
    wanted = key_of(_program(command, folder))
    runs = saved.get(wanted) or _of_the_same_file(saved, command, folder)
    if runs is None:
        raise RefusedError(
            f"REFUSED: the baseline {baseline} has no run of {wanted}; it has: {', '.join(saved)}. Save one "
            f"with: pyrometer baseline save {baseline} RUN, or name a revision"
        )
    identity = identity_of(runs[0])
    problems = check_baseline_side(identity)
    if problems:
        raise RefusedError(f"REFUSED: {'; '.join(problem.sentence for problem in problems)}")
    return identity


def _of_the_same_file(
    saved: Mapping[str, tuple[Run, ...]], command: Command, folder: Path
) -> tuple[Run, ...] | None:
    """The runs of the same script with the same arguments, however it was typed, and from where."""
    if command.script is None:
        return None
    script = os.path.realpath(folder / command.script)
    for runs in saved.values():
        program = runs[0].program
        typed, *arguments = program.argv or ("",)
        if tuple(arguments) == command.arguments and script == os.path.realpath(
            Path(program.working_directory, typed)
        ):
            return runs
    return None


def _program(command: Command, folder: Path) -> Program:
    first = str(command.script) if command.module is None else f"-m {command.module}"
    return Program(name=first, argv=(first, *command.arguments), working_directory=str(folder))


def _render(lanes: Sequence[GatedLane]) -> str:
    screen = screen_for()
    return render_gate_terminal(lanes, width=screen.width, color=screen.color, ascii_only=screen.ascii_only)


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """What was judged, and the files that it is to be in."""

    lanes: Sequence[GatedLane]
    seed: int
    summary: str | None
    output: str | None

    def keep(self) -> None:
        """All was judged."""
        self._write(render_gate_json(self.lanes, seed=self.seed), render_gate_markdown(self.lanes))

    def keep_unfinished(self) -> None:
        """Leave no earlier result where somebody looks for this one's, however this one may end."""
        if self.output is not None:
            unfinished = "it did not come to its end"
            _write(Path(self.output), render_problem_json(None, unfinished, seed=self.seed), mode="w")

    def keep_problem(self, error: RefusedError | ProgramFailedError) -> None:
        """Why there is no result, and what was judged before."""
        is_refused = isinstance(error, RefusedError)
        title = "REFUSED" if is_refused else "the program failed"
        first, *said = str(error).splitlines()
        # Indented: nothing that a program says can end such a block.
        block = "\n".join(f"    {visible(line)}" if line else "" for line in said)
        judged = render_judged_markdown(self.lanes).rstrip("\n")
        paragraphs = (f"# Pyrometer gate: {title}", for_markdown(first), block, judged)
        self._write(
            render_problem_json(
                Verdict.REFUSED if is_refused else None, str(error), judged=self.lanes, seed=self.seed
            ),
            "\n\n".join(filter(None, paragraphs)) + "\n",
        )

    def _write(self, values: str, report: str) -> None:
        """Both, even if one of them cannot be written."""
        try:
            if self.output is not None:
                _write(Path(self.output), values, mode="w")
        finally:
            if self.summary is not None:
                # With a line between: what is appended next would be part of the block that is folded.
                _write(Path(self.summary), f"{report}\n", mode="a")


def _write(path: Path, text: str, *, mode: str) -> None:
    try:
        with path.open(mode, encoding="utf-8") as file:
            file.write(text)
    except OSError as error:
        raise UsageError(f"cannot write {path}: {error.strerror}; name another file") from error
