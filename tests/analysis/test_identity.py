"""Whether two runs may be compared: each fact, the same, different and missing."""

from collections.abc import Callable

import msgspec
import pytest

from pyrometer.analysis.identity import (
    RULES,
    Comparability,
    Level,
    Weight,
    check_baseline_side,
    compare_identities,
    identity_of,
)
from pyrometer.errors import UsageError
from pyrometer.record.limits import Limits
from pyrometer.record.run import GitState, Run
from pyrometer.record.torch_run import Gpu, TorchRun
from tests.limits import make_limits
from tests.report.sample_runs import run_of
from tests.sampled_runs import Seen, stack_samples

replace = msgspec.structs.replace


def known_run() -> Run:
    """A run of which every fact is recorded."""
    run = run_of(profiled_ns=1)
    return replace(
        run,
        program=replace(
            run.program, git=GitState(commit="a" * 40, branch="main", dirty=False), source_sha256="1" * 64
        ),
        machine=replace(run.machine, cpu_flags=("avx", "avx2", "fma")),
        software=replace(run.software, blas="MKL 2024.2", torch_threads=2, thread_variables={}),
        limits=make_limits(),
        torch=TorchRun(torch_version="2.6.0", intra_op_threads=2, gpu=Gpu(name="Example GPU")),
    )


def program(**fields: object) -> Callable[[Run], Run]:
    return lambda run: replace(run, program=replace(run.program, **fields))


def machine(**fields: object) -> Callable[[Run], Run]:
    return lambda run: replace(run, machine=replace(run.machine, **fields))


def software(**fields: object) -> Callable[[Run], Run]:
    return lambda run: replace(run, software=replace(run.software, **fields))


def torch(**fields: object) -> Callable[[Run], Run]:
    return lambda run: replace(run, torch=replace(run.torch or TorchRun(torch_version="2.6.0"), **fields))


def without_torch(run: Run) -> Run:
    packages = {name: version for name, version in run.software.packages.items() if name == "attrs"}
    return software(packages=packages, blas=None, torch_threads=None)(replace(run, torch=None))


def limits(change: Callable[[Limits], Limits]) -> Callable[[Run], Run]:
    return lambda run: replace(run, limits=change(run.limits or make_limits()))


def fma_faster(by: float) -> Callable[[Limits], Limits]:
    return lambda known: replace(
        known,
        flop_rates=tuple(
            replace(rate, best_flops_per_s=rate.best_flops_per_s * by) if rate.kind == "fma" else rate
            for rate in known.flop_rates
        ),
    )


DIRTY = GitState(commit="a" * 40, branch="main", dirty=True)
CHANGES: dict[str, Callable[[Run], Run]] = {
    "code": program(git=GitState(commit="b" * 40, branch="main", dirty=False)),
    "dirty": program(git=DIRTY),
    "script": program(source_sha256="2" * 64),
    "program": program(name="other.py"),
    "inputs": program(argv=("train.py", "--epochs", "4")),
    "steps": torch(max_steps=50),
    "python": software(python_version="3.12.1"),
    "torch": torch(torch_version="2.13.0"),
    "blas": software(blas="OpenBLAS 0.3"),
    "threads": software(torch_threads=4),
    "cpu_flags": machine(cpu_flags=("avx", "avx2", "avx512f", "fma")),
    "cpu_model": machine(cpu_model="Another CPU"),
    "usable_cores": machine(usable_cores=1),
    "gpu": torch(gpu=Gpu(name="Another GPU")),
    "pyrometer": lambda run: replace(run, pyrometer_version="9.9.9"),
    "recorder": lambda run: replace(run, recorder="python"),
    "watched": lambda run: replace(run, samples=stack_samples(Seen(stack="main:1", python=10))),
    "probes": limits(fma_faster(1.2)),
}
MISSING: dict[str, Callable[[Run], Run]] = {
    "code": program(git=None),
    "script": program(source_sha256=None),
    "blas": software(blas=None),
    "threads": software(thread_variables=None),
    "cpu_flags": machine(cpu_flags=None),
    "cpu_model": machine(cpu_model=None),
    "usable_cores": machine(usable_cores=None),
    "probes": lambda run: replace(run, limits=None),
}
LEVEL_OF = {
    Weight.REFUSED: Level.REFUSED,
    Weight.TREND_ONLY: Level.TREND_ONLY,
    Weight.NOTED: Level.COMPARABLE,
}


def compared(before: Run, after: Run, *, allowed: frozenset[str] = frozenset()) -> Comparability:
    return compare_identities(identity_of(before), identity_of(after), allowed=allowed)


def test_every_fact_has_a_rule_and_a_test_that_changes_it() -> None:
    names = [fact.name for fact in identity_of(known_run()).facts]
    assert names == list(RULES) == list(CHANGES)
    for name, change in CHANGES.items():
        before, after = identity_of(known_run()), identity_of(change(known_run()))
        changed = [one.name for one, other in zip(before.facts, after.facts, strict=True) if one != other]
        assert changed == [name]


def test_the_rules_are_those_that_were_asked_for() -> None:
    weights = {weight: {name for name, rule in RULES.items() if rule.weight is weight} for weight in Weight}
    assert weights[Weight.REFUSED] == {
        "program", "inputs", "steps", "python", "torch", "blas", "threads", "cpu_flags",
    }  # fmt: skip
    assert weights[Weight.NOTED] == {"code", "dirty", "script", "pyrometer"}


def test_a_run_and_itself_may_be_compared_and_nothing_differs() -> None:
    assert compared(known_run(), known_run()) == Comparability(level=Level.COMPARABLE, differences=())


@pytest.mark.parametrize("name", CHANGES)
@pytest.mark.parametrize("swapped", [False, True])
def test_a_fact_that_differs_is_named_with_its_consequence(name: str, swapped: bool) -> None:
    sides = (known_run(), CHANGES[name](known_run()))
    answer = compared(*(reversed(sides) if swapped else sides))
    [difference] = answer.differences
    assert difference.name == name
    assert not difference.accepted
    assert answer.level is LEVEL_OF[RULES[name].weight]


@pytest.mark.parametrize("name", set(CHANGES) - {"dirty", "cpu_flags", "probes"})
def test_the_sentence_of_a_difference_has_both_values(name: str) -> None:
    [difference] = compared(known_run(), CHANGES[name](known_run())).differences
    assert f"{difference.before} (before), {difference.after} (after)" in difference.sentence
    assert difference.before != difference.after


@pytest.mark.parametrize("name", MISSING)
@pytest.mark.parametrize("sides", ["before", "after", "before, after"])
def test_a_fact_that_is_missing_is_never_taken_for_the_same(name: str, sides: str) -> None:
    without = MISSING[name](known_run())
    before = without if "before" in sides else known_run()
    after = without if "after" in sides else known_run()
    answer = compared(before, after)
    [difference] = answer.differences
    assert difference.name == name
    assert f"not recorded ({sides})" in difference.sentence
    assert answer.level is LEVEL_OF[RULES[name].weight]


def test_what_says_nothing_of_how_to_go_on_is_only_noted() -> None:
    for name, remove in MISSING.items():
        [difference] = compared(known_run(), remove(known_run())).differences
        says_what_to_do = "record the run again" in difference.sentence
        assert says_what_to_do is (RULES[name].weight is not Weight.NOTED)


def test_limits_that_were_never_measured_are_to_be_measured() -> None:
    without = MISSING["probes"](known_run())
    [difference] = compared(without, without).differences
    assert "pyrometer limits" in difference.sentence


def test_programs_without_torch_are_compared_without_it() -> None:
    plain = without_torch(known_run())
    assert compared(plain, plain).level is Level.COMPARABLE
    assert not compared(plain, plain).differences
    for name in ("torch", "blas", "gpu"):
        assert not identity_of(plain).fact(name).applicable


def test_torch_on_one_side_only_is_a_difference() -> None:
    answer = compared(known_run(), without_torch(known_run()))
    assert answer.level is Level.REFUSED
    sentences = {difference.name: difference.sentence for difference in answer.differences}
    assert sentences["torch"] == "torch: 2.6.0 (before), not used (after)"
    assert sentences["blas"] == "BLAS: MKL 2024.2 (before), not used (after)"


def test_a_program_with_numpy_alone_needs_its_blas_recorded() -> None:
    with_numpy = software(packages={"numpy": "2.2.0"})(without_torch(known_run()))
    answer = compared(with_numpy, with_numpy)
    assert [difference.name for difference in answer.differences] == ["blas"]
    assert answer.level is Level.REFUSED


def test_threads_are_those_of_torch_and_of_the_environment() -> None:
    set_by_environment = software(thread_variables={"OMP_NUM_THREADS": "2"})(known_run())
    assert identity_of(set_by_environment).fact("threads").value == "torch 2, OMP_NUM_THREADS=2"
    assert compared(known_run(), set_by_environment).level is Level.REFUSED


def test_the_threads_that_the_watch_on_torch_saw_do_as_well() -> None:
    seen_by_the_watch = software(torch_threads=None)(known_run())
    assert compared(known_run(), seen_by_the_watch).level is Level.COMPARABLE


def test_of_cpu_flags_only_those_that_differ_are_named() -> None:
    [difference] = compared(known_run(), CHANGES["cpu_flags"](known_run())).differences
    assert (
        difference.sentence == "CPU flags: 3, none only here (before), 4, of which only here avx512f (after)"
    )


def test_code_with_changes_is_noted_even_where_both_sides_have_them() -> None:
    dirty = CHANGES["dirty"](known_run())
    [difference] = compared(dirty, dirty).differences
    assert difference.sentence == "uncommitted changes: before and after"


@pytest.mark.parametrize("name", CHANGES)
def test_a_difference_that_is_allowed_stays_listed_and_lowers_nothing(name: str) -> None:
    answer = compared(known_run(), CHANGES[name](known_run()), allowed=frozenset({name}))
    assert answer.level is Level.COMPARABLE
    assert [(difference.name, difference.accepted) for difference in answer.differences] == [(name, True)]


def test_allowing_one_difference_allows_no_other() -> None:
    changed = CHANGES["python"](CHANGES["threads"](known_run()))
    answer = compared(known_run(), changed, allowed=frozenset({"threads"}))
    assert answer.level is Level.REFUSED


def test_a_fact_that_there_is_not_cannot_be_allowed() -> None:
    with pytest.raises(UsageError, match=r"'thread'.*threads"):
        compared(known_run(), known_run(), allowed=frozenset({"thread"}))


def test_the_worst_difference_decides() -> None:
    worse = CHANGES["inputs"](CHANGES["cpu_model"](CHANGES["code"](known_run())))
    assert compared(known_run(), worse).level is Level.REFUSED


def test_no_argument_is_not_an_argument_of_that_name() -> None:
    named = program(argv=("train.py", "(none)"))(known_run())
    assert compared(program(argv=("train.py",))(known_run()), named).level is Level.REFUSED


@pytest.mark.parametrize(("by", "level"), [(1.09, Level.COMPARABLE), (1.12, Level.TREND_ONLY)])
def test_limits_measured_again_may_vary_by_a_tenth(by: float, level: Level) -> None:
    assert compared(known_run(), limits(fma_faster(by))(known_run())).level is level


def test_a_figure_that_differs_and_was_contended_says_nothing_but_one_of_its_kind_must_agree() -> None:
    def contended_triad(known: Limits) -> Limits:
        return replace(
            known,
            bandwidths=tuple(
                replace(bandwidth, best_bytes_per_s=bandwidth.best_bytes_per_s * 1.4)
                for bandwidth in known.bandwidths
            ),
        )

    [difference] = compared(known_run(), limits(contended_triad)(known_run())).differences
    assert "agrees in bandwidth (triad: the machine was busy)" in difference.sentence


def test_limits_of_other_kernels_are_not_the_same() -> None:
    older = limits(lambda known: replace(known, kernels_version=1))(known_run())
    assert compared(known_run(), older).level is Level.TREND_ONLY


def test_a_baseline_of_committed_code_can_be_held_against_others() -> None:
    assert check_baseline_side(identity_of(known_run())) == ()


@pytest.mark.parametrize(("git", "name"), [(DIRTY, "dirty"), (None, "code")])
def test_a_baseline_of_code_that_is_no_commit_is_refused(git: GitState | None, name: str) -> None:
    [difference] = check_baseline_side(identity_of(program(git=git)(known_run())))
    assert (difference.name, difference.weight) == (name, Weight.REFUSED)
    assert "record it again" in difference.sentence
