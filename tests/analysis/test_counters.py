from pyrometer.analysis.counters import build_counter_results
from pyrometer.record.counters import CounterRecord, HardwareCounter, HardwareCounters, ThreadCounters
from tests.record.example_runs import make_counters


def counter(name: str, count: int | None) -> HardwareCounter:
    reason = "not there" if count is None else None
    return HardwareCounter(name=name, count=count, reason=reason, counted_share=None if reason else 1.0)


def hardware(**counts: int | None) -> tuple[HardwareCounter, ...]:
    return tuple(counter(name.replace("_", " "), count) for name, count in counts.items())


def test_nothing_asked_for_is_nothing() -> None:
    assert build_counter_results(None) is None
    results = build_counter_results(CounterRecord())
    assert results is not None
    assert (results.hardware, results.simulated) == (None, None)


def test_rates_are_of_what_was_looked_up_and_unknown_without_it() -> None:
    counters = hardware(
        instructions=300, cycles=200, cache_references=100, cache_misses=25, branches=None, branch_misses=7
    )
    results = build_counter_results(CounterRecord(hardware=HardwareCounters(counters=counters)))
    assert results is not None
    assert results.hardware is not None
    process = results.hardware.process
    assert process.instructions_per_cycle == 1.5
    assert {each.name: each.rate for each in process.counters} == {
        "instructions": None,
        "cycles": None,
        "cache references": None,
        "cache misses": 0.25,
        "branches": None,
        "branch misses": None,
    }


def test_no_cycles_give_no_rate_and_no_division_by_zero() -> None:
    counters = hardware(instructions=3, cycles=0, cache_references=0, cache_misses=0)
    results = build_counter_results(CounterRecord(hardware=HardwareCounters(counters=counters)))
    assert results is not None
    assert results.hardware is not None
    assert results.hardware.process.instructions_per_cycle is None
    assert {each.rate for each in results.hardware.process.counters} == {None}


def test_threads_stand_in_order_of_instructions_those_without_last() -> None:
    threads = tuple(
        ThreadCounters(thread_name=name, counters=hardware(instructions=count))
        for name, count in (("unknown", None), ("small", 1), ("large", 9))
    )
    record = CounterRecord(hardware=HardwareCounters(counters=hardware(instructions=10), threads=threads))
    results = build_counter_results(record)
    assert results is not None
    assert results.hardware is not None
    assert [thread.name for thread in results.hardware.threads] == ["large", "small", "unknown"]


def test_the_simulated_caches_add_up() -> None:
    results = build_counter_results(make_counters())
    assert results is not None
    simulated = results.simulated
    assert simulated is not None
    caches = {cache.name: (cache.references, cache.misses) for cache in simulated.caches}
    assert caches["D1, both"] == (400 + 100, 40 + 5)
    assert caches["LL, behind I1 and D1"] == (10 + 45, 5 + 20 + 2)
    first = simulated.functions[0]
    assert (first.share, first.d1_misses, first.ll_misses) == (0.6, 35, 19)
    assert simulated.source == "simulated by callgrind-3.19.0"
