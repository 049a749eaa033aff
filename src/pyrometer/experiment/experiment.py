"""An experiment from its plan to its pairs: the same for a gate, a comparison and a knob that is turned."""

import os
import random
import shlex
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path

from pyrometer._version import __version__
from pyrometer.analysis.baseline import key_of
from pyrometer.analysis.identity import (
    NOT_RECORDED,
    Identity,
    Weight,
    compare_identities,
    identity_of,
    known_facts,
)
from pyrometer.experiment.counted import counting_instructions
from pyrometer.experiment.errors import NotHaltedError, RefusedError
from pyrometer.experiment.imported import (
    find_foreign_modules,
    find_missing_extensions,
    find_own_and_installed,
    is_project_code,
    python_files,
    source_root_of,
)
from pyrometer.experiment.paced_process import Side, Surroundings, running
from pyrometer.experiment.pairs import BASELINE, CANDIDATE, CONTROL, Measured, measure_pair
from pyrometer.experiment.planning import Wanted, plan_turns
from pyrometer.experiment.scratch import scratch_folder
from pyrometer.experiment.unchanged import FileStates
from pyrometer.experiment.worktrees import Tree
from pyrometer.record.run import Program
from pyrometer.record.trials import Pair, Plan, Trials, TrialSide

LARGEST_HASH_SEED = 2**32 - 1
TIMED_OTHERWISE = frozenset({"recorder"})
"""Facts that leave a trend of recorded runs: sides timed beside each other may not differ in them."""
_PAIR = ((BASELINE, CANDIDATE), (CANDIDATE, BASELINE))
"""Each side, and the other one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Contender:
    """A side, and the tree its code must come from; None where any code may be run."""

    side: Side
    tree: Tree | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Conditions:
    """How is measured."""

    wanted: Wanted = field(default_factory=Wanted)
    count_live_bytes: bool = False
    count_instructions: bool = False
    allowed: frozenset[str] = frozenset()
    """Facts in which the sides may differ."""
    recorded: Identity | None = None
    """What the baseline was when it was saved: it must still be that."""
    seed: int = 0
    bytecode: Path | None = None
    """Where both sides keep their bytecode; None: beside their code, as Python does."""
    files: FileStates = field(default_factory=FileStates)
    """What the sides' own files were when they were first run, in all experiments of a gate."""


class Experiment:
    """Two programs, measured pair by pair.

    After the first pair it is known whether they may be compared at all: if not, ``RefusedError``.
    """

    def __init__(
        self,
        baseline: Contender,
        candidate: Contender,
        conditions: Conditions,
        *,
        tell: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._contenders = {BASELINE: baseline, CANDIDATE: candidate}
        self._conditions = conditions
        self._tell = tell
        self._chooser = random.Random(conditions.seed)
        self._started_at = datetime.now().astimezone()
        self._plan: Plan | None = None
        self._halts_those_that_wait = conditions.wanted.in_blocks
        self.pairs: list[Pair] = []
        self._identities: dict[str, Identity] = {}
        self._losses: dict[str, None] = {}
        self._files: dict[Path, frozenset[str]] = {}

    @property
    def plan(self) -> Plan:
        """How the programs take turns; found out on a process of each that is not counted."""
        if self._plan is None:
            self._tell("finding out how long a step takes")
            wanted = replace(self._conditions.wanted, in_blocks=self._halts_those_that_wait)
            with self._surroundings() as (surroundings, scratch):
                sides = {name: contender.side for name, contender in self._contenders.items()}
                with running(sides, surroundings, scratch) as processes:
                    self._plan = plan_turns(list(processes.values()), wanted)
                    for name, process in processes.items():
                        farewell = process.end()
                        if farewell is not None:
                            self._check_unchanged(self._contenders[name].tree, farewell.imported)
                        elif self._plan.unit != "program":
                            raise _goes_on(process.side, process.last_words())
        return self._plan

    def measure(self, pairs: int) -> list[Pair]:
        """Measure until there are so many pairs; all there are."""
        sides = {name: contender.side for name, contender in self._contenders.items()}
        sides[CONTROL] = sides[BASELINE]
        while len(self.pairs) < pairs:
            self._tell(f"pair {len(self.pairs) + 1}; the next look is after {pairs}")
            plan = self.plan
            with self._surroundings() as (surroundings, scratch):
                try:
                    measured = measure_pair(sides, plan, surroundings, scratch=scratch, chooser=self._chooser)
                except NotHaltedError:
                    self._begin_anew_in_blocks()
                    continue
            self._check(measured)
            self.pairs.append(measured.pair)
        return self.pairs

    def _begin_anew_in_blocks(self) -> None:
        """What was measured is void: a program worked on while it should have waited."""
        self._halts_those_that_wait = True
        self._plan = None
        self.pairs.clear()

    def trials(self) -> Trials:
        """All that was measured so far."""
        return Trials(
            pyrometer_version=__version__,
            started_at=self._started_at.isoformat(timespec="milliseconds"),
            program=_as_typed(self._contenders[CANDIDATE].side),
            baseline=self._told(BASELINE),
            candidate=self._told(CANDIDATE),
            plan=self.plan,
            pairs=tuple(self.pairs),
            losses=tuple(self._losses),
        )

    @property
    def identities(self) -> Mapping[str, Identity]:
        """What each side was, by the name of the side; known after the first pair."""
        return self._identities

    @contextmanager
    def _surroundings(self) -> Iterator[tuple[Surroundings, Path]]:
        with scratch_folder() as folder:
            surroundings = Surroundings(
                hash_seed=self._chooser.randint(0, LARGEST_HASH_SEED),
                threads=self._conditions.wanted.threads,
                count_live_bytes=self._conditions.count_live_bytes,
                bytecode=self._conditions.bytecode,
            )
            if self._conditions.count_instructions:
                surroundings = counting_instructions(surroundings, folder)
            yield surroundings, folder

    def _check(self, measured: Measured) -> None:
        for name, farewell in measured.farewells.items():
            self._losses |= dict.fromkeys(farewell.losses)
            tree = self._contenders[BASELINE if name == CONTROL else name].tree
            if tree is not None:
                self._check_imports(name, tree, farewell.imported)
            self._check_unchanged(tree, farewell.imported)
        imported = {name: one.imported for name, one in measured.farewells.items()}
        if self._contenders.keys() <= imported.keys():
            self._check_extensions(imported)
        if self._identities:
            return
        if not {BASELINE, CANDIDATE} <= measured.runs.keys():
            missing = next(name for name in (BASELINE, CANDIDATE) if name not in measured.runs)
            raise _goes_on(self._contenders[missing].side)
        self._identities = {name: identity_of(measured.runs[name]) for name in self._contenders}
        self._check_identities()
        if self._contenders.keys() <= imported.keys():
            self._losses |= dict.fromkeys(self._own_and_installed(imported))

    def _check_imports(self, name: str, tree: Tree, imported: Mapping[str, str]) -> None:
        other = self._contenders[BASELINE if name == CANDIDATE else CANDIDATE].tree
        if tree.root not in self._files:
            self._files[tree.root] = python_files(tree.root)
        foreign = find_foreign_modules(
            imported,
            own=tree.root,
            other=(other or tree).root,
            files=self._files[tree.root],
            linked=tree.linked,
        )
        if foreign:
            module, file = foreign[0]
            more = f" and {len(foreign) - 1} more" if len(foreign) > 1 else ""
            raise RefusedError(
                f"REFUSED: {tree.name} did not run its own code: {module} was imported from {file}{more}. "
                "Where the project is installed, put its own folder first on the path of both sides: "
                f"PYTHONPATH={self._way_out(module, tree)} pyrometer …"
            )

    def _check_unchanged(self, tree: Tree | None, imported: Mapping[str, str]) -> None:
        """Raise where somebody has edited a side's own code since it was first run."""
        if tree is None:
            return
        root = tree.root.resolve()
        own = sorted(file for file in imported.values() if is_project_code(Path(file), root))
        changed = self._conditions.files.find_changed(own)
        if changed is not None:
            what = "was changed" if Path(changed).exists() else "was removed"
            raise RefusedError(
                f"REFUSED: {changed} ({tree.name}) {what} while it was measured, so that two versions of it "
                "would be taken for one. Run it again, and leave the files alone meanwhile"
            )

    def _own_and_installed(self, imported: Mapping[str, Mapping[str, str]]) -> Iterator[str]:
        """What may be another version on one side, as a change may want it."""
        for name, other in _PAIR:
            tree, others = self._contenders[name].tree, self._contenders[other].tree
            if tree is None or others is None:
                continue
            built = set() if others.extensions is None else {others.extensions.resolve()}
            found = find_own_and_installed(
                imported[name],
                imported[other],
                own=tree.root,
                others_own=others.root,
                expected=others.linked | built,
            )
            if found:
                module = found[0]
                more = f"; and so it is with {len(found) - 1} more" if len(found) > 1 else ""
                yield (
                    f"whether {module} is the same on both sides: {tree.name} has it in its own tree "
                    f"({imported[name][module]}), and {others.name} from elsewhere "
                    f"({imported[other][module]}){more}"
                )

    def _check_extensions(self, imported: Mapping[str, Mapping[str, str]]) -> None:
        for name, other in _PAIR:
            tree, its = self._contenders[name].tree, self._contenders[other].side.name
            if tree is None:
                continue
            missing = find_missing_extensions(imported[name], imported[other], own=tree.root)
            if missing:
                module, file = missing[0]
                instead = imported[other].get(module)
                with_what = "" if instead is None else f", with {instead}"
                raise RefusedError(
                    f"REFUSED: {tree.name} imported the compiled module {module} ({file}), and {its} did "
                    f"without it{with_what}: what is built in place is not in a checkout. If its sources are "
                    f"the same, use it on both sides: --link {os.path.relpath(file, tree.folder)}; else "
                    "install the project into an environment of its own for each version, and compare "
                    "--measure those"
                )

    def _way_out(self, module: str, tree: Tree) -> str:
        """Where the tree has the module, from the folder that programs are run in."""
        root = source_root_of(module, self._files[tree.root])
        return "src" if root is None else os.path.relpath(tree.root / root, tree.folder)

    def _check_identities(self) -> None:
        baseline, candidate = self._contenders.values()
        names = baseline.side.name, candidate.side.name
        self._refuse_if_different(
            self._identities[BASELINE], self._identities[CANDIDATE], names, also=TIMED_OTHERWISE
        )
        recorded = self._conditions.recorded
        if recorded is not None:
            sides = f"{names[0]} as saved", f"{names[0]} as run here"
            self._refuse_if_different(recorded, self._identities[BASELINE], sides, but=self._ours_to_choose)

    @property
    def _ours_to_choose(self) -> frozenset[str]:
        """What is chosen here, on both sides alike, whatever a saved baseline had.

        Steps; threads where they are pinned; and of a file of benchmarks, which of them: its arguments.
        """
        wanted = self._conditions.wanted
        facts = {"steps": True, "threads": wanted.threads is not None, "inputs": wanted.unit == "call"}
        return frozenset(name for name, is_chosen in facts.items() if is_chosen)

    def _refuse_if_different(
        self,
        one: Identity,
        other: Identity,
        sides: tuple[str, str],
        but: frozenset[str] = frozenset(),
        also: frozenset[str] = frozenset(),
    ) -> None:
        """Raise for each fact that must be the same; what a machine is matters only between machines."""
        found = compare_identities(one, other, allowed=self._conditions.allowed, sides=sides)
        refused = [
            difference
            for difference in found.differences
            if (difference.weight is Weight.REFUSED or difference.name in also)
            and not difference.accepted
            # Chosen anew here, but never unknown.
            and (difference.name not in but or NOT_RECORDED in {difference.before, difference.after})
        ]
        if refused:
            raise RefusedError(
                "REFUSED: " + "; ".join(difference.sentence for difference in refused) + ". To accept a "
                f"difference all the same: --allow {refused[0].name}"
            )

    def _told(self, name: str) -> TrialSide:
        contender = self._contenders[name]
        identity = self._identities.get(name)
        commit, is_dirty = _state_of_code(contender.tree, identity)
        return TrialSide(
            name=contender.side.name,
            command=shlex.join(["python", *contender.side.arguments]),
            commit=commit,
            is_dirty=is_dirty,
            identity={} if identity is None else known_facts(identity),
        )


def _goes_on(side: Side, last_words: str = "") -> RefusedError:
    said = f"; the last it said:\n{last_words}" if last_words.strip() else ""
    return RefusedError(
        f"REFUSED: the program ({side.name}) did not end when it was told to, as by sys.exit() in its loop: "
        "it may catch SystemExit, or take more than 10 s to end. Or its run could not be written, as where "
        f"the temporary folder is full. So it is not known what it ran with{said}"
    )


def _state_of_code(tree: Tree | None, identity: Identity | None) -> tuple[str | None, bool | None]:
    """The commit, and whether something was changed since: of the tree, or where any may be run, as run."""
    if tree is not None:
        return tree.commit, None if tree.commit is None else tree.is_dirty
    commit = None if identity is None else identity.fact("code").value
    if identity is None or commit is None:
        return None, None
    return commit, identity.fact("dirty").value == "yes"


def _as_typed(side: Side) -> str:
    name, *argv = side.program
    return key_of(Program(name=name, argv=tuple(argv), working_directory=str(side.folder)))
