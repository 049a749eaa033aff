"""What the benchmark of the gate's errors makes of samples and of gates that are known."""

import importlib
from pathlib import Path
from types import ModuleType

import pytest

from pyrometer.analysis.gate import Reason

BENCHMARKS = Path(__file__).parents[2] / "benchmarks"
PAGE = BENCHMARKS.parent / "docs" / "gate-errors.md"

STEADY = [100.0, 101.0, 99.0, 100.5, 99.5, 100.2, 99.8, 100.1, 99.9, 100.3, 99.7, 100.4]


@pytest.fixture
def rules(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("gate_rules")


@pytest.fixture
def tables(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("gate_tables")


def slower(factor: float) -> list[float]:
    return [factor * value for value in STEADY]


def outcome(**changed: object) -> object:
    measuring = importlib.import_module("gate_measuring")
    known = {
        "part": "aa", "workload": "light", "load": "quiet", "extra": 0.0, "verdict": "PASS",
        "reason": "not slower by more than the margin", "pairs": 10, "change": 0.0, "p_slower": 0.5,
        "p_control": 0.5, "ratios": [0.0], "control": [0.0], "before": STEADY, "after": STEADY,
        "turn_steps": 7, "rounds": 12, "seconds": 12.0, "cores_of_others": 0.1,
        "started_at": "2026-01-01T00:00:00+00:00", "machine": "a machine", "engine": "0",
    }  # fmt: skip
    return measuring.Outcome(**{**known, **changed})


def test_no_rule_calls_equal_samples_slower(rules: ModuleType) -> None:
    assert not any(is_slower(STEADY, STEADY) for is_slower in rules.RULES.values())


def test_no_rule_calls_a_faster_program_slower(rules: ModuleType) -> None:
    assert not any(is_slower(STEADY, slower(0.5)) for is_slower in rules.RULES.values())


def test_thresholds_of_five_percent_are_met_by_six_and_not_by_four(rules: ModuleType) -> None:
    for is_slower in (rules.mean_is_slower, rules.minimum_is_slower):
        assert is_slower(STEADY, slower(1.06))
        assert not is_slower(STEADY, slower(1.04))


def test_one_sample_far_out_moves_the_mean_and_not_the_minimum(rules: ModuleType) -> None:
    disturbed = [*STEADY[:-1], 300.0]
    assert rules.mean_is_slower(STEADY, disturbed)
    assert not rules.minimum_is_slower(STEADY, disturbed)


def test_benchstat_calls_any_sure_difference_slower_and_asv_only_beyond_its_factor(rules: ModuleType) -> None:
    assert rules.benchstat_is_slower(STEADY, slower(1.03))
    assert not rules.asv_is_slower(STEADY, slower(1.03))
    assert not rules.asv_is_slower(STEADY, slower(1.09))
    assert rules.asv_is_slower(STEADY, slower(1.12))


def test_asv_wants_more_than_a_factor(rules: ModuleType) -> None:
    before, after = [1.0, 1.0, 1.0, 9.0, 9.0], [1.0, 2.0, 2.0, 2.0, 9.0]
    assert not rules.asv_is_slower(before, after)


def test_the_p_value_of_ranks_is_that_of_all_ways_to_deal_them(rules: ModuleType) -> None:
    # Of the 20 ways to choose 3 of 6, the lowest and the highest three are as far out.
    assert rules.label_p_value([1.0, 2.0, 3.0], [4.0, 5.0, 6.0]) == pytest.approx(2 / 20)


def test_the_p_value_of_uneven_samples_is_exact(rules: ModuleType) -> None:
    before, after = [1.1, 2.3, 0.4, 3.8, 2.9, 1.7, 0.9], [2.5, 4.1, 3.3, 1.9, 5.0, 3.6]
    # Worked out with another program (scipy.stats.mannwhitneyu(..., method="exact")).
    assert rules.label_p_value(before, after) == pytest.approx(0.051282051)


def test_samples_that_are_all_alike_differ_by_chance_alone(rules: ModuleType) -> None:
    assert rules.label_p_value([5.0] * 4, [5.0] * 6) == 1


def test_a_limit_is_kept_or_missed_only_with_all_of_its_interval(tables: ModuleType) -> None:
    # 0 of 368 is the least whose interval ends at 1 %; a single gate says nothing.
    assert tables.at_most(0, 368, 0.01) == "PASS"
    assert tables.at_most(0, 367, 0.01) == "UNCLEAR"
    assert tables.at_most(20, 500, 0.01) == "FAIL"
    assert tables.at_least(1, 1, 0.99) == "UNCLEAR"
    assert tables.at_least(450, 500, 0.99) == "FAIL"


def test_false_alarms_beyond_the_limit_are_told_as_missed(tables: ModuleType) -> None:
    gates = [outcome(verdict="FAIL", reason="slower than allowed")] * 20 + [outcome()] * 480
    section = tables.false_alarms("Same code", gates)
    assert section.missed == ("false alarms: light, quiet",)
    assert "4.0 (2.5–6.1)" in section.text


def test_all_gates_on_identical_code_are_counted_together(tables: ModuleType) -> None:
    fails = outcome(part="adversaries", load="drift", verdict="FAIL")
    section = tables.false_alarms("Adversaries", [fails], [outcome()] * 3)
    assert "all, and those above       4     1  25.0 (" in section.text


def test_a_gate_that_needed_forty_pairs_has_not_failed_within_twenty(tables: ModuleType) -> None:
    gates = [
        outcome(part="power", extra=3.0, verdict="FAIL", change=0.03, pairs=pairs)
        for pairs in (10, 20, 40, 40)
    ]
    row = next(line for line in tables.power(gates).text.splitlines() if "+3 %" in line)
    assert [row.count(share) for share in ("25.0 (", "50.0 (", "100.0 (")] == [1, 1, 1]


def test_a_place_is_right_only_if_it_is_told_first_and_any_other_is_wrong(tables: ModuleType) -> None:
    tellings = [["step.mix"], ["step.read", "step.mix"], []]
    gates = [outcome(part="attribution", slowed="step.mix", told=told) for told in tellings]
    row = tables.attribution(gates).text.splitlines()[-1]
    assert row.count("33.3 (") == 2


def test_a_test_that_is_off_is_noticed_though_hardly_a_gate_fails(tables: ModuleType) -> None:
    # Ten pairs that all agree, by half a percent: too little for FAIL, and one case in 512 by chance.
    off = [outcome(ratios=[0.005] * 10)] * 15
    even = [outcome(ratios=[0.005, -0.006] * 5)] * 85
    assert tables.false_alarms("Same code", off + even).missed == ()
    assert tables.p_values(off + even).missed == (
        "p-values up to 5 %: light, quiet",
        "p-values up to 1 %: light, quiet",
    )
    assert tables.p_values(even).missed == ()


def test_what_is_slower_in_few_steps_is_missed_where_it_passes(tables: ModuleType) -> None:
    told = outcome(part="bursts", verdict="INCONCLUSIVE", reason=Reason.UNEVEN)
    assert tables.uneven([told] * 40).missed == ()
    assert tables.uneven([told] * 36 + [outcome(part="bursts")] * 4).missed != ()


def test_the_rules_see_the_samples_that_the_gates_saw(tables: ModuleType) -> None:
    gates = [outcome(after=slower(1.06)), outcome()]
    _, heads, row = tables.rules(gates).text.splitlines()
    shares = dict(zip(heads.split(), row.removeprefix("same, quiet").split(), strict=True))
    assert shares["gates"] == "2"
    assert (shares["pyrometer"], shares["mean:5%"], shares["asv"]) == ("0.0", "50.0", "0.0")


@pytest.fixture
def error_rate(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(BENCHMARKS)
    return importlib.import_module("gate_error_rate")


def test_the_page_of_errors_shows_what_is_counted_from_the_gates_that_were_kept(
    error_rate: ModuleType, tmp_path: Path
) -> None:
    results = error_rate.Results(error_rate.RESULTS)
    results.read()
    shown = PAGE.read_text(encoding="utf-8")
    anew = tmp_path / "anew.md"
    anew.write_text(shown, encoding="utf-8")
    error_rate.put_into(anew, error_rate.told(results.outcomes, error_rate.tables_of(results.outcomes)))
    assert anew.read_text(encoding="utf-8") == shown, "make gate-page writes it anew"


def test_the_gates_that_are_kept_were_measured_by_the_code_there_is(error_rate: ModuleType) -> None:
    results = error_rate.Results(error_rate.RESULTS)
    results.read()
    assert results.parts_of_other_code() == []


def test_gates_of_other_code_are_not_counted_with_new_ones(
    error_rate: ModuleType,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    kept = tmp_path / "gates.jsonl"
    error_rate.Results(kept).add(outcome(engine="other"))
    monkeypatch.delattr(error_rate.Run, "measure")
    monkeypatch.setattr("sys.argv", ["gate_error_rate.py", "--only", "aa", "--results", str(kept)])
    assert error_rate.main() == 2
    assert "gates of other code than there is now: aa" in capsys.readouterr().err
    assert len(kept.read_bytes().splitlines()) == 1
