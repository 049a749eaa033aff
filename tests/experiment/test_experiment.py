"""Whether two sides may be compared, by what their processes told; those are made by hand."""

import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

import pytest
from msgspec.structs import replace

from pyrometer.analysis.identity import RULES, Weight, identity_of
from pyrometer.experiment import experiment as experiments
from pyrometer.experiment.errors import NotHaltedError, RefusedError
from pyrometer.experiment.experiment import TIMED_OTHERWISE, Conditions, Contender, Experiment
from pyrometer.experiment.paced_process import Side, Surroundings
from pyrometer.experiment.pairs import Measured
from pyrometer.experiment.planning import Wanted
from pyrometer.experiment.worktrees import Tree
from pyrometer.record.run import Run
from pyrometer.record.torch_run import TorchRun
from pyrometer.record.trials import Pair
from pyrometer.record.turns import Farewell
from tests.cli.test_compare import known
from tests.compared_runs import net_run
from tests.experiment.test_paced_process import plan
from tests.trial_pairs import process


def torch_of(run: Run) -> TorchRun:
    assert run.torch is not None
    return run.torch


Change = Callable[[Run], Run]

OTHERWISE: dict[str, Change] = {
    "program": lambda run: replace(run, program=replace(run.program, name="other.py")),
    "inputs": lambda run: replace(run, program=replace(run.program, argv=("train.py", "--big"))),
    "steps": lambda run: replace(run, torch=replace(torch_of(run), max_steps=50)),
    "python": lambda run: replace(run, software=replace(run.software, python_version="3.9.1")),
    "torch": lambda run: replace(run, torch=replace(torch_of(run), torch_version="1.0")),
    "blas": lambda run: replace(run, software=replace(run.software, blas="another BLAS")),
    "threads": lambda run: replace(run, software=replace(run.software, torch_threads=7)),
    "cpu_flags": lambda run: replace(run, machine=replace(run.machine, cpu_flags=("sse2",))),
}
"""A run in which the fact is another one."""
MISSING: dict[str, Change] = {
    "blas": lambda run: replace(run, software=replace(run.software, blas=None)),
    "threads": lambda run: replace(run, software=replace(run.software, thread_variables=None)),
    "cpu_flags": lambda run: replace(run, machine=replace(run.machine, cpu_flags=None)),
}
"""One that does not tell it; what is not here, every run has."""
OF_THE_MACHINE: dict[str, Change] = {
    "cpu_model": lambda run: replace(run, machine=replace(run.machine, cpu_model="another CPU")),
    "usable_cores": lambda run: replace(run, machine=replace(run.machine, usable_cores=96)),
    "recorder": lambda run: replace(run, recorder="python" if run.recorder == "native" else "native"),
    "probes": lambda run: replace(run, limits=None),
}

RUN = known(net_run())
MUST_BE_THE_SAME = [name for name, rule in RULES.items() if rule.weight is Weight.REFUSED]


def test_no_rule_is_forgotten_here() -> None:
    assert list(OTHERWISE) == MUST_BE_THE_SAME


@dataclass(kw_only=True)
class Sides:
    """What the processes of each pair are going to tell."""

    runs: Mapping[str, Run] = field(default_factory=lambda: dict.fromkeys(("baseline", "candidate"), RUN))
    farewells: Mapping[str, Farewell] = field(default_factory=dict)
    unhalted_pairs: int = 0
    """So many pairs turn out to work on while they wait, unless they are halted."""
    plans: list[bool] = field(default_factory=list)
    """Whether blocks were wanted, each time a plan was made."""


@pytest.fixture
def sides(monkeypatch: pytest.MonkeyPatch) -> Sides:
    """Experiments start no process, and measure what this says."""
    told = Sides()

    @contextmanager
    def running(*_: object) -> Iterator[dict[str, object]]:
        yield {}

    def plan_turns(_: object, wanted: Wanted) -> object:
        told.plans.append(wanted.in_blocks)
        return plan(in_blocks=wanted.in_blocks)

    def measure_pair(
        contenders: Mapping[str, Side], _plan: object, surroundings: Surroundings, **_: object
    ) -> Measured:
        if told.unhalted_pairs and not told.plans[-1]:
            told.unhalted_pairs -= 1
            if told.unhalted_pairs == 0:
                raise NotHaltedError
        pair = Pair(
            hash_seed=surroundings.hash_seed,
            baseline=process(),
            candidate=process(),
            control=process() if "control" in contenders else None,
        )
        return Measured(pair=pair, runs=told.runs, farewells=told.farewells)

    monkeypatch.setattr(experiments, "running", running)
    monkeypatch.setattr(experiments, "plan_turns", plan_turns)
    monkeypatch.setattr(experiments, "measure_pair", measure_pair)
    return told


def contender(name: str, folder: Path, *, in_tree: bool = False) -> Contender:
    folder.mkdir(exist_ok=True)
    side = Side(name=name, arguments=("train.py", "-v"), folder=folder, program_folder=folder)
    tree = Tree(name=name, root=folder, folder=folder, commit="1" * 40, is_dirty=name == "working tree")
    return Contender(side=side, tree=tree if in_tree else None)


def experiment(folder: Path, conditions: Conditions | None = None, *, in_tree: bool = False) -> Experiment:
    return Experiment(
        contender("main", folder / "main", in_tree=in_tree),
        contender("working tree", folder / "here", in_tree=in_tree),
        conditions or Conditions(),
    )


@pytest.mark.parametrize("name", MUST_BE_THE_SAME)
class TestSidesThatDiffer:
    def test_are_refused_by_the_name_of_the_fact(self, sides: Sides, tmp_path: Path, name: str) -> None:
        sides.runs = {"baseline": RUN, "candidate": OTHERWISE[name](RUN)}
        one = experiment(tmp_path)
        with pytest.raises(RefusedError, match=f"^REFUSED: {RULES[name].label}: ") as refusal:
            one.measure(1)
        assert refusal.value.exit_code == 4
        assert "(main)" in str(refusal.value)
        assert "(working tree)" in str(refusal.value)
        assert str(refusal.value).endswith(f"--allow {name}")
        assert one.pairs == []

    def test_pass_where_that_is_allowed(self, sides: Sides, tmp_path: Path, name: str) -> None:
        sides.runs = {"baseline": RUN, "candidate": OTHERWISE[name](RUN)}
        one = experiment(tmp_path, Conditions(allowed=frozenset({name})))
        assert len(one.measure(2)) == 2
        identities = one.trials()
        assert identities.baseline.identity[name] != identities.candidate.identity[name]


@pytest.mark.parametrize("name", [name for name in MUST_BE_THE_SAME if name != "steps"])
def test_a_side_that_differs_from_the_saved_baseline_is_refused(
    sides: Sides, tmp_path: Path, name: str
) -> None:
    # Threads are as many as the user says, on both sides: here as many as libraries choose.
    saved = identity_of(OTHERWISE[name](RUN))
    conditions = Conditions(recorded=saved, wanted=Wanted(threads=None))
    with pytest.raises(RefusedError, match=f"^REFUSED: {RULES[name].label}: ") as refusal:
        experiment(tmp_path, conditions).measure(1)
    assert "(main as saved)" in str(refusal.value)
    assert "(main as run here)" in str(refusal.value)
    allowed = Conditions(recorded=saved, wanted=Wanted(threads=None), allowed=frozenset({name}))
    assert len(experiment(tmp_path, allowed).measure(1)) == 1
    assert sides.plans == [False, False]


@pytest.mark.parametrize("name", MISSING)
def test_a_fact_that_is_not_recorded_is_refused_even_on_both_sides(
    sides: Sides, tmp_path: Path, name: str
) -> None:
    sides.runs = dict.fromkeys(("baseline", "candidate"), MISSING[name](RUN))
    with pytest.raises(RefusedError, match=f"^REFUSED: {RULES[name].label}: not recorded"):
        experiment(tmp_path).measure(1)


@pytest.mark.parametrize("name", MISSING)
@pytest.mark.parametrize("threads", [1, None])
def test_a_fact_that_the_saved_baseline_does_not_tell_is_refused(
    sides: Sides, tmp_path: Path, name: str, threads: int | None
) -> None:
    conditions = Conditions(recorded=identity_of(MISSING[name](RUN)), wanted=Wanted(threads=threads))
    with pytest.raises(RefusedError, match=r"not recorded \(main as saved\)"):
        experiment(tmp_path, conditions).measure(1)
    assert sides.plans == [False]


@pytest.mark.parametrize("name", ["threads", "steps"])
def test_what_is_chosen_here_may_have_been_another_when_the_baseline_was_saved(
    sides: Sides, tmp_path: Path, name: str
) -> None:
    saved = identity_of(OTHERWISE[name](RUN))
    one = experiment(tmp_path, Conditions(recorded=saved, wanted=Wanted(threads=1)))
    assert len(one.measure(1)) == 1
    assert sides.plans == [False]


@pytest.mark.parametrize("name", sorted(OF_THE_MACHINE.keys() - TIMED_OTHERWISE))
def test_what_a_machine_is_matters_only_between_machines(sides: Sides, tmp_path: Path, name: str) -> None:
    sides.runs = {"baseline": RUN, "candidate": OF_THE_MACHINE[name](RUN)}
    conditions = Conditions(recorded=identity_of(OF_THE_MACHINE[name](RUN)))
    assert len(experiment(tmp_path, conditions).measure(1)) == 1


@pytest.mark.parametrize("name", sorted(TIMED_OTHERWISE))
def test_sides_that_are_timed_otherwise_are_refused_and_a_saved_baseline_is_not(
    sides: Sides, tmp_path: Path, name: str
) -> None:
    other = OF_THE_MACHINE[name](RUN)
    assert len(experiment(tmp_path, Conditions(recorded=identity_of(other))).measure(1)) == 1
    sides.runs = {"baseline": RUN, "candidate": other}
    with pytest.raises(RefusedError, match=rf"^REFUSED: {RULES[name].label}: .*--allow {name}$"):
        experiment(tmp_path).measure(1)


def test_all_that_differs_is_named_at_once(sides: Sides, tmp_path: Path) -> None:
    sides.runs = {"baseline": RUN, "candidate": OTHERWISE["blas"](OTHERWISE["python"](RUN))}
    with pytest.raises(RefusedError, match=r"Python: .*; BLAS: .*--allow python$"):
        experiment(tmp_path).measure(1)
    with pytest.raises(RefusedError, match=r"^REFUSED: BLAS: .*--allow blas$"):
        experiment(tmp_path, Conditions(allowed=frozenset({"python"}))).measure(1)


@pytest.mark.parametrize("left", ["baseline", "candidate"])
def test_a_side_that_left_no_word_is_refused(sides: Sides, tmp_path: Path, left: str) -> None:
    sides.runs = {left: RUN}
    with pytest.raises(RefusedError, match=r"did not end when it was told to.* 10 s .*could not be written"):
        experiment(tmp_path).measure(1)


class TestImports:
    def imported(self, sides: Sides, folder: Path, whose: str, file: Path) -> None:
        """Both trees have a module ``work``; this side takes it from ``file``."""
        for name in ("main", "here"):
            (folder / name).mkdir(exist_ok=True)
            (folder / name / "work.py").touch()
        own = {"baseline": "main", "control": "main", "candidate": "here"}
        sides.farewells = {
            name: Farewell(imported={"work": str(file if name == whose else folder / tree / "work.py")})
            for name, tree in own.items()
        }

    @pytest.mark.parametrize(
        ("whose", "tree"), [("baseline", "here"), ("control", "here"), ("candidate", "main")]
    )
    def test_code_of_the_other_side_is_refused(
        self, sides: Sides, tmp_path: Path, whose: str, tree: str
    ) -> None:
        file = tmp_path / tree / "work.py"
        self.imported(sides, tmp_path, whose, file)
        name = "working tree" if whose == "candidate" else "main"
        with pytest.raises(
            RefusedError, match=f"{name} did not run its own code: work was imported from {file}"
        ) as refusal:
            experiment(tmp_path, in_tree=True).measure(1)
        assert "PYTHONPATH" in str(refusal.value)

    def test_a_control_that_runs_the_candidates_own_module_is_refused(
        self, sides: Sides, tmp_path: Path
    ) -> None:
        # A module that only the candidate has: nothing in its own tree stands for it.
        file = tmp_path / "here" / "fresh.py"
        self.imported(sides, tmp_path, "nobody", file)
        file.touch()
        sides.farewells = {**sides.farewells, "control": Farewell(imported={"fresh": str(file)})}
        with pytest.raises(RefusedError, match="main did not run its own code: fresh"):
            experiment(tmp_path, in_tree=True).measure(1)

    def test_an_installed_copy_is_refused(self, sides: Sides, tmp_path: Path) -> None:
        self.imported(sides, tmp_path, "baseline", tmp_path / "site-packages" / "work.py")
        with pytest.raises(RefusedError, match="did not run its own code"):
            experiment(tmp_path, in_tree=True).measure(1)

    def test_its_own_code_is_what_it_should_run(self, sides: Sides, tmp_path: Path) -> None:
        self.imported(sides, tmp_path, "baseline", tmp_path / "main" / "work.py")
        assert len(experiment(tmp_path, in_tree=True).measure(1)) == 1

    @pytest.mark.parametrize(("whose", "other"), [("candidate", "main"), ("baseline", "working tree")])
    def test_a_compiled_module_that_one_side_does_without_is_refused(
        self, sides: Sides, tmp_path: Path, whose: str, other: str
    ) -> None:
        """Built in place it is in no checkout, and the program makes do with something slower."""
        self.imported(sides, tmp_path, "nobody", tmp_path)
        own = sides.farewells[whose].imported
        tree = Path(own["work"]).parent
        built = str(tree / f"_core{EXTENSION_SUFFIXES[0]}")
        sides.farewells = {**sides.farewells, whose: Farewell(imported={**own, "_core": built})}
        with pytest.raises(
            RefusedError, match=f"compiled module _core .*, and {other} did without"
        ) as refusal:
            experiment(tmp_path, in_tree=True).measure(1)
        assert f"--link _core{EXTENSION_SUFFIXES[0]}" in str(refusal.value)

    @pytest.mark.parametrize("whose", ["candidate", "baseline"])
    def test_a_compiled_module_that_one_side_has_in_python_is_refused(
        self, sides: Sides, tmp_path: Path, whose: str
    ) -> None:
        """As of Cython or mypyc, whose sources Python can run as well."""
        self.imported(sides, tmp_path, "nobody", tmp_path)
        plain = Path(sides.farewells[whose].imported["work"])
        built = str(plain.with_name(f"work{EXTENSION_SUFFIXES[0]}"))
        sides.farewells = {**sides.farewells, whose: Farewell(imported={"work": built})}
        other = tmp_path / ("here" if plain.parent.name == "main" else "main") / "work.py"
        with pytest.raises(RefusedError, match=f"compiled module work .* did without it, with {other}"):
            experiment(tmp_path, in_tree=True).measure(1)

    @pytest.mark.parametrize("whose", ["main", "here"])
    def test_code_that_is_edited_while_it_is_measured_is_refused(
        self, sides: Sides, tmp_path: Path, whose: str
    ) -> None:
        self.imported(sides, tmp_path, "nobody", tmp_path)
        one = experiment(tmp_path, in_tree=True)
        one.measure(1)
        file = tmp_path / whose / "work.py"
        file.write_text("slower = True\n")
        with pytest.raises(RefusedError, match=f"^REFUSED: {file} .* was changed while it was measured"):
            one.measure(2)
        assert len(one.pairs) == 1
        file.unlink()
        with pytest.raises(RefusedError, match="was removed while it was measured"):
            one.measure(2)

    def test_code_that_is_edited_in_the_first_pair_is_refused(
        self, sides: Sides, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """It is known from the processes that the plan was found out on."""
        self.imported(sides, tmp_path, "nobody", tmp_path)

        class Planned:
            def end(self) -> Farewell:
                return sides.farewells["candidate"]

        @contextmanager
        def running(*_: object) -> Iterator[dict[str, Planned]]:
            yield {"candidate": Planned()}

        monkeypatch.setattr(experiments, "running", running)
        one = experiment(tmp_path, in_tree=True)
        assert one.plan.unit == "step"
        (tmp_path / "here" / "work.py").write_text("slower = True\n")
        with pytest.raises(RefusedError, match="was changed while it was measured"):
            one.measure(1)

    def test_code_that_is_edited_between_two_metrics_is_refused(self, sides: Sides, tmp_path: Path) -> None:
        self.imported(sides, tmp_path, "nobody", tmp_path)
        conditions = Conditions()
        experiment(tmp_path, conditions, in_tree=True).measure(1)
        (tmp_path / "here" / "work.py").write_text("slower = True\n")
        counting = dataclasses.replace(conditions, count_live_bytes=True)
        with pytest.raises(RefusedError, match="while it was measured"):
            experiment(tmp_path, counting, in_tree=True).measure(1)
        # A gate that begins anew knows nothing of the one before.
        assert len(experiment(tmp_path, Conditions(), in_tree=True).measure(1)) == 1

    @pytest.mark.parametrize(("whose", "name"), [("baseline", "main"), ("candidate", "working tree")])
    def test_a_module_that_only_one_side_has_in_its_tree_is_told(
        self, sides: Sides, tmp_path: Path, whose: str, name: str
    ) -> None:
        """As of a submodule that is not checked out, where a copy of it is installed."""
        self.imported(sides, tmp_path, "nobody", tmp_path)
        sides.farewells = {
            side: Farewell(
                imported=one.imported
                | {
                    module: str(tmp_path / "site-packages" / f"{module}.py")
                    if side == whose
                    else str(Path(one.imported["work"]).with_name(f"{module}.py"))
                    for module in ("parts", "wheels")
                }
            )
            for side, one in sides.farewells.items()
        }
        one = experiment(tmp_path, in_tree=True)
        one.measure(2)
        (loss,) = one.trials().losses
        assert loss.startswith("whether parts is the same on both sides: ")
        assert f"{name} from elsewhere ({tmp_path / 'site-packages' / 'parts.py'})" in loss
        assert loss.endswith("; and so it is with 1 more")

    @pytest.mark.parametrize("how", ["linked", "built"])
    def test_a_module_that_is_linked_or_built_for_a_checkout_is_where_it_should_be(
        self, sides: Sides, tmp_path: Path, how: str
    ) -> None:
        self.imported(sides, tmp_path, "nobody", tmp_path)
        own = tmp_path / "here" / f"parts{EXTENSION_SUFFIXES[0]}"
        file = own if how == "linked" else tmp_path / "built" / own.name
        sides.farewells = {
            side: Farewell(imported={**one.imported, "parts": str(own if side == "candidate" else file)})
            for side, one in sides.farewells.items()
        }
        before = contender("main", tmp_path / "main", in_tree=True)
        assert before.tree is not None
        linked = frozenset({own} if how == "linked" else ())
        tree = dataclasses.replace(before.tree, linked=linked, extensions=tmp_path / "built")
        one = Experiment(
            dataclasses.replace(before, tree=tree),
            contender("working tree", tmp_path / "here", in_tree=True),
            Conditions(),
        )
        one.measure(1)
        assert one.trials().losses == ()

    def test_a_compiled_module_that_both_have_is_fine(self, sides: Sides, tmp_path: Path) -> None:
        self.imported(sides, tmp_path, "nobody", tmp_path)
        sides.farewells = {
            name: Farewell(
                imported={
                    **one.imported,
                    "_core": str(Path(one.imported["work"]).with_name(f"_core{EXTENSION_SUFFIXES[0]}")),
                }
            )
            for name, one in sides.farewells.items()
        }
        assert len(experiment(tmp_path, in_tree=True).measure(1)) == 1

    def test_two_commands_may_run_any_code(self, sides: Sides, tmp_path: Path) -> None:
        self.imported(sides, tmp_path, "baseline", tmp_path / "here" / "work.py")
        assert len(experiment(tmp_path).measure(1)) == 1


def test_pairs_are_measured_until_there_are_enough_and_kept(sides: Sides, tmp_path: Path) -> None:
    told: list[str] = []
    one = Experiment(
        contender("main", tmp_path / "main"),
        contender("working tree", tmp_path / "here"),
        Conditions(seed=5),
        tell=told.append,
    )
    first = list(one.measure(2))
    assert len(one.measure(5)) == 5
    assert one.measure(5)[:2] == first
    assert one.pairs[0].control is not None
    assert told[-1] == "pair 5; the next look is after 5"
    # Planned once; each pair has a hash seed of its own.
    assert sides.plans == [False]
    assert len({pair.hash_seed for pair in one.pairs}) == 5


def test_the_same_seed_makes_the_same_choices(sides: Sides, tmp_path: Path) -> None:
    seeds = [
        [pair.hash_seed for pair in experiment(tmp_path, Conditions(seed=seed)).measure(3)]
        for seed in (1, 1, 2)
    ]
    assert seeds[0] == seeds[1] != seeds[2]
    assert sides.plans == [False] * 3


def test_a_program_that_works_on_while_it_waits_is_measured_anew_in_blocks(
    sides: Sides, tmp_path: Path
) -> None:
    sides.unhalted_pairs = 3
    one = experiment(tmp_path)
    assert len(one.measure(4)) == 4
    # Two pairs were good before the third told of it: they are void as well.
    assert sides.plans == [False, True]
    assert one.plan.in_blocks


def test_all_that_was_measured_is_told(sides: Sides, tmp_path: Path) -> None:
    lost = Farewell(losses=("modules: too many",))
    sides.farewells = {"baseline": lost, "candidate": lost}
    one = experiment(tmp_path, in_tree=True)
    one.measure(2)
    trials = one.trials()
    assert trials.program == "train.py -v"
    assert (trials.baseline.name, trials.baseline.command) == ("main", "python train.py -v")
    assert (trials.baseline.is_dirty, trials.candidate.is_dirty) == (False, True)
    assert trials.candidate.identity["blas"] == "MKL"
    assert trials.losses == ("modules: too many",)
    assert len(trials.pairs) == 2
