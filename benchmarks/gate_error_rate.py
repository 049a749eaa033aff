"""How often the gate is wrong: false alarms on identical code, and how much real extra work it catches.

Every gate is measured for real, on fresh processes that take turns, and judged at the planned looks. Each
finished one is a line of JSON in the results file, to which later runs add: all tables are made from it. The
one in ``results/`` belongs to the sources: with ``--summary`` everybody can count its gates again, and
``docs/gate-errors.md`` shows them. Gates of other code than there is now are never counted with new ones.
A gate that is under way when its time is over is finished, or long ones would be missing: only ``--short``,
with gates of ten pairs at most, cuts off, and says so.

  aa            the same code on both sides
  power         2, 3, 5 and 10 % more work, which the program really does
  bursts        half as much work again, all of it in every 20th or 50th step
  torch         the same code, a small training program
  attribution   one of many places slowed: a tree of ten scopes, and a training program's modules
  adversaries   who goes first is slower; the machine slows down; a neighbour comes and goes; one process in
                ten is slower; more threads than cores
  rules         other tools' rules on the samples of aa and power (nothing is measured)

The machine is quiet but for the gate, has two gates at once, or is busy: two at once and a neighbour that is
busy and idle by turns. Exits with 1 if a stated limit is missed for sure; with too few gates to be sure,
UNCLEAR is printed.
"""

import argparse
import contextlib
import random
import re
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from pathlib import Path

import msgspec
from gate_load import machine_facts, neighbours
from gate_measuring import Outcome, is_of_this_engine, plan_for, run_gate
from gate_tables import Section, attribution, biases, false_alarms, p_values, power, rules, uneven
from gate_trials import BUSY, CELLS, TWO_AT_ONCE, Cell

from pyrometer.analysis.gate import LOOKS, Look
from pyrometer.record.trials import Plan

PARTS = ("aa", "power", "bursts", "torch", "attribution", "adversaries", "rules")
BLOCK_OF_TABLES = re.compile(r"^(```text gates\n).*?^(```)$", re.MULTILINE | re.DOTALL)
"""Where a page shows them."""
BLOCK = 10
"""So many gates of one kind are measured before another kind has its turn."""
RESULTS = Path(__file__).parent / "results" / "gate_error_rate.jsonl"
SHORT_S = 150.0
"""For all parts; what one leaves is the next one's."""
ORDER = ("aa", "power", "bursts", "attribution", "adversaries", "torch")
"""What takes longest comes last."""


@dataclass(slots=True)
class Results:
    """The file of finished gates."""

    file: Path
    outcomes: list[Outcome] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def read(self) -> None:
        """All that is in the file; a line that was cut off in the middle is left out, and told."""
        if not self.file.exists():
            return
        for number, line in enumerate(self.file.read_bytes().splitlines(), start=1):
            try:
                self.outcomes.append(msgspec.json.decode(line, type=Outcome))
            except msgspec.MsgspecError as error:
                print(f"{self.file}:{number} is left out: {error}", file=sys.stderr)

    def add(self, outcome: Outcome) -> None:
        """Keep a finished gate, at once."""
        with self.lock, self.file.open("ab") as stream:
            self.outcomes.append(outcome)
            stream.write(msgspec.json.encode(outcome) + b"\n")

    def parts_of_other_code(self) -> list[str]:
        """Which parts have gates that were measured or judged by other code than there is now."""
        return sorted({one.part for one in self.outcomes if not is_of_this_engine(one)})

    def done(self, cell: Cell) -> int:
        """How many gates of a kind there are."""
        return sum(map(cell.has, self.outcomes))


@dataclass(slots=True)
class Run:
    """Gates of the kinds asked for, until their time is over."""

    results: Results
    is_short: bool
    plans: dict[str, Plan] = field(default_factory=dict)
    cut_off: int = 0

    def measure(self, cells: Sequence[Cell], *, budget_s: float) -> None:
        """The kind of which most is missing goes next, a block of gates at a time."""
        deadline_s = time.monotonic() + budget_s
        while time.monotonic() < deadline_s:
            missing = [cell for cell in cells if self.results.done(cell) < self._wanted(cell)]
            if not missing:
                return
            cell = min(missing, key=lambda cell: self.results.done(cell) / self._wanted(cell))
            gates = min(BLOCK, self._wanted(cell) - self.results.done(cell))
            cut_off = self.cut_off
            self._block(cell, gates, lambda: time.monotonic() >= deadline_s)
            if self.cut_off > cut_off:
                return

    def _wanted(self, cell: Cell) -> int:
        return cell.short if self.is_short else cell.wanted

    def _block(self, cell: Cell, gates: int, is_over: Callable[[], bool]) -> None:
        key = f"{cell.part} {cell.workload} {cell.load.name}"
        if key not in self.plans:
            trial = cell.trial()
            self.plans[key] = plan_for(trial.baseline, threads=trial.threads)
        left = iter(range(gates))

        def work() -> None:
            # The first is begun whatever the clock says: a part has at least one.
            for index in left:
                if index and is_over():
                    return
                self._gate(cell, self.plans[key], is_over if self.is_short else lambda: False)

        with contextlib.ExitStack() as beside:
            if cell.load.neighbours:
                beside.enter_context(neighbours(cell.load.neighbours, cell.load.switch_s))
            workers = beside.enter_context(ThreadPoolExecutor(cell.load.at_once))
            for done in [workers.submit(work) for _ in range(cell.load.at_once)]:
                done.result()

    def _gate(self, cell: Cell, plan: Plan, is_over: Callable[[], bool]) -> None:
        seed = random.SystemRandom().getrandbits(32)
        looks = looks_of(is_short=self.is_short)
        outcome = run_gate(cell.trial(), plan, seed=seed, looks=looks, is_over=is_over)
        if outcome is None:
            self.cut_off += 1
        else:
            self.results.add(outcome)


def tables_of(outcomes: Sequence[Outcome], parts: Sequence[str] = PARTS) -> list[Section]:
    """All tables of the parts asked for that have gates."""
    of_part = {
        part: [outcome for outcome in outcomes if outcome.part == part and part in parts] for part in PARTS
    }
    same = [*of_part["aa"], *of_part["torch"]]
    compared = [*of_part["aa"], *of_part["power"]]
    if "rules" in parts:
        compared = [outcome for outcome in outcomes if outcome.part in {"aa", "power"}]
    sections = [
        false_alarms("The same code on both sides: FAIL is a false alarm (limit: 1 %)", same)
        if same
        else None,
        p_values([*same, *of_part["adversaries"]]) if same or of_part["adversaries"] else None,
        power(of_part["power"]) if of_part["power"] else None,
        uneven(of_part["bursts"]) if of_part["bursts"] else None,
        rules(compared) if compared else None,
        attribution(of_part["attribution"]) if of_part["attribution"] else None,
        false_alarms(
            "Adversaries, the same code on both sides: FAIL is a false alarm (limit: 1 %)",
            of_part["adversaries"],
            same,
        )
        if of_part["adversaries"]
        else None,
        biases([*same, *of_part["adversaries"]]) if same or of_part["adversaries"] else None,
    ]
    return [section for section in sections if section is not None]


def told(outcomes: Sequence[Outcome], sections: Sequence[Section], *, is_short: bool = False) -> str:
    """What is shown: what was measured, and on what, and all tables."""
    machines = sorted({outcome.machine for outcome in outcomes}) or [machine_facts()]
    days = sorted({outcome.started_at[:10] for outcome in outcomes})
    counted = f"{len(outcomes)} gates, {days[0]} to {days[-1]}." if days else "No gates."
    return "\n\n".join(
        ("\n".join((*machines, head(is_short=is_short), counted)), *(one.text for one in sections))
    )


def put_into(page: Path, text: str) -> None:
    """Let the page's block of tables be this text."""
    changed, blocks = BLOCK_OF_TABLES.subn(
        lambda block: f"{block[1]}{text}\n{block[2]}", page.read_text("utf-8")
    )
    if blocks != 1:
        raise SystemExit(f"{page} has {blocks} blocks that begin with ```text gates, and not one.")
    page.write_text(changed, "utf-8")


def head(*, is_short: bool) -> str:
    """By which rule gates are measured, and what the words of the tables mean."""
    looks = looks_of(is_short=is_short)
    pairs = ", ".join(str(look.pairs) for look in looks)
    alphas = ", ".join(f"{100 * look.alpha:g}" for look in looks)
    return "\n".join(
        (
            "Pairs measured and judged by the product's code, one program a gate, time only.",
            f"Max slowdown 0, looks after {pairs} pairs ({alphas} %).",
            "A pair: a fresh process of baseline, candidate and control. void: the control differed.",
            "others: cores that processes not ours kept busy, median.",
            f"{TWO_AT_ONCE.name}: of the gates. {BUSY.name}: also a neighbour that comes and goes.",
            "Intervals: Clopper-Pearson, 95 %. PASS or FAIL: all of one keeps its limit, or misses it.",
        )
    )


def looks_of(*, is_short: bool) -> Sequence[Look]:
    """The planned ones; in the short version the first only, as with ``--max-pairs`` at its number."""
    return LOOKS[:1] if is_short else LOOKS


def options_of(arguments: Sequence[str] | None = None) -> argparse.Namespace:
    """What was asked for on the command line."""
    parser = argparse.ArgumentParser(description="Count how often the gate is wrong.")
    parser.add_argument("--only", choices=PARTS, action="append", help="these parts (default: all)")
    parser.add_argument("--load", choices=sorted({cell.load.name for cell in CELLS}), help="beside this only")
    parser.add_argument("--extra", type=float, help="with so many percent of extra work only")
    parser.add_argument("--minutes", type=float, default=60.0, help="for each part (default: %(default)g)")
    parser.add_argument(
        "--short", action="store_true", help="few gates of ten pairs, none kept: three minutes"
    )
    parser.add_argument("--results", type=Path, default=RESULTS, help=f"default: {RESULTS.name} in results/")
    parser.add_argument("--summary", action="store_true", help="measure nothing, only print the tables")
    parser.add_argument("--page", type=Path, help="put what is printed into this page's block, too")
    options = parser.parse_args(arguments)
    if options.minutes <= 0:
        parser.error("--minutes must be above 0")
    return options


def main() -> int:
    """Measure what is asked for, and print all there is."""
    options = options_of()
    parts = options.only or PARTS
    with tempfile.TemporaryDirectory(prefix="gate-short-") as folder:
        kept = options.results if not options.short or options.summary else Path(folder) / "gates.jsonl"
        kept.parent.mkdir(parents=True, exist_ok=True)
        results = Results(kept)
        results.read()
        measured = [part for part in ORDER if part in parts and not options.summary]
        if older := results.parts_of_other_code():
            print(f"{kept} has gates of other code than there is now: {', '.join(older)}.", file=sys.stderr)
            if set(older) & set(measured):
                print("They do not count together: remove them, or use another --results.", file=sys.stderr)
                return 2
        run = Run(results=results, is_short=options.short)
        ends_s = time.monotonic() + SHORT_S
        for index, part in enumerate(measured):
            share_s = (ends_s - time.monotonic()) / (len(measured) - index)
            cells = [
                cell
                for cell in CELLS
                if cell.part == part
                and options.load in {None, cell.load.name}
                and options.extra in {None, cell.extra}
            ]
            run.measure(cells, budget_s=share_s if options.short else 60 * options.minutes)
        if run.cut_off:
            print(f"Not finished in time, and left out: {run.cut_off}\n")
    sections = tables_of(results.outcomes, parts)
    text = told(results.outcomes, sections, is_short=options.short)
    print(text)
    if options.page:
        put_into(options.page, text)
    missed = [limit for section in sections for limit in section.missed]
    print(f"\nFAIL: {'; '.join(missed)}" if missed else "\nNo limit is missed for sure.")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
