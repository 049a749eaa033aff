import msgspec
import pytest
from msgspec.structs import replace

from pyrometer.analysis.baseline import (
    Baseline,
    Latency,
    Measurement,
    Phases,
    Spread,
    add_measurements,
    command_of,
    key_of,
    measure,
    recording_options,
)
from pyrometer.analysis.torch_results import build_torch_results
from pyrometer.errors import UsageError
from pyrometer.record.run import Loss, Memory, Program, Run
from tests.record.example_runs import make_allocations, make_counters, make_garbage, make_operators
from tests.record.example_samples import make_samples
from tests.report.sample_runs import empty_run
from tests.torch_runs import (
    accumulation_run,
    evaluation_run,
    generation_run,
    gpu_run,
    inference_run,
    long_run,
    no_steps_run,
    torch_run,
    training_run,
)

GIB = 1 << 30
ANY_RUNS = [
    training_run(),
    accumulation_run(),
    evaluation_run(),
    inference_run(),
    generation_run(cached=True),
    long_run(),
]


def loss(collector: str) -> Loss:
    return Loss(collector=collector, reason="it is not possible here", count=1)


def measured(run: Run) -> Measurement:
    return measure(run, file_name="baseline.json")


def started_with(*argv: str) -> Run:
    program = Program(name="train.py", argv=argv, working_directory="/home/ada")
    return msgspec.structs.replace(training_run(), program=program)


def baseline_of(*runs: Run, known: Baseline | None = None) -> Baseline:
    return add_measurements(known, [(run.program, measured(run)) for run in runs])


def test_a_steady_batch_of_ten_milliseconds_is_told_as_one() -> None:
    baseline = measured(training_run())
    assert baseline.batch_latency_ms == Latency(min=10, avg=10, p50=10, p95=10, max=10)
    assert baseline.data_throughput_samples_per_s == pytest.approx(3_200)
    assert baseline.data_throughput_batches_per_s == pytest.approx(100)
    assert baseline.warmup_batches == 3
    assert baseline.configuration.batches == 97
    assert baseline.configuration.batch_size == 32
    assert baseline.configuration.parameters == 203_530
    assert baseline.configuration.threads == 2
    assert baseline.configuration.steps == "training: Adam"


def test_the_phases_are_folded_into_the_five_of_the_document() -> None:
    phases = measured(training_run()).phases
    assert phases.data_loading.ms == pytest.approx(1.4)  # 1.0 of data and 0.4 of copies
    assert phases.forward.ms == pytest.approx(3.4)  # with the loss
    assert phases.backward.ms == pytest.approx(3.5)
    assert phases.optimizer.ms == pytest.approx(1.6)  # with clipping and clearing
    assert phases.other.ms == pytest.approx(0.1)
    assert phases.forward.percent == pytest.approx(34)


@pytest.mark.parametrize("run", ANY_RUNS)
def test_the_phases_make_up_all_of_a_batch(run: Run) -> None:
    baseline = measured(run)
    shares = [getattr(baseline.phases, name) for name in Phases.__struct_fields__]
    assert sum(share.percent for share in shares) == pytest.approx(100)
    assert sum(share.ms for share in shares) == pytest.approx(baseline.batch_latency_ms.avg)
    for batch in baseline.per_batch:
        parts = [getattr(batch.phases_ms, name) for name in Phases.__struct_fields__]
        assert sum(parts) == pytest.approx(batch.latency_ms)


@pytest.mark.parametrize("run", ANY_RUNS)
def test_each_figure_of_a_batch_lies_within_its_aggregate(run: Run) -> None:
    baseline = measured(run)
    aggregates = baseline.aggregates
    assert baseline.per_batch
    for batch in baseline.per_batch:
        pairs = [
            (batch.latency_ms, aggregates.latency_ms),
            (batch.samples_per_s, aggregates.samples_per_s),
            (batch.host_memory_gb, aggregates.host_memory_gb),
        ]
        pairs += [
            (getattr(batch.phases_ms, name), getattr(aggregates.phases_ms, name))
            for name in Phases.__struct_fields__
        ]
        for value, spread in pairs:
            if value is not None:
                assert spread is not None
                assert spread.min <= value <= spread.max
                assert spread.min <= spread.avg <= spread.max


def test_every_batch_after_the_warm_up_is_kept_with_its_figures() -> None:
    batches = measured(training_run()).per_batch
    assert [batch.index for batch in batches] == list(range(3, 100))
    assert {batch.latency_ms for batch in batches} == {10.0}
    assert {batch.samples_per_s for batch in batches} == {3_200.0}


def test_a_batch_has_the_memory_that_was_read_last_before_its_end() -> None:
    run = training_run()
    # The steady batches end at 73, 83, 93, … ms.
    series = ((80_000_000, GIB), (90_000_000, 2 * GIB))
    run = msgspec.structs.replace(run, memory=Memory(peak_bytes=3 * GIB, series=series))
    baseline = measured(run)
    assert [batch.host_memory_gb for batch in baseline.per_batch[:4]] == [None, 1, 2, 2]
    assert baseline.aggregates.host_memory_gb == Spread(min=1, avg=191 / 96, max=2)
    assert (baseline.current_host_memory_gb, baseline.peak_host_memory_gb) == (2, 3)


def test_what_was_not_measured_is_null_and_never_zero() -> None:
    torch = training_run().torch
    assert torch is not None
    baseline = measured(torch_run(torch))
    assert baseline.peak_host_memory_gb is None
    assert baseline.current_host_memory_gb is None
    assert baseline.aggregates.host_memory_gb is None
    assert baseline.gpu_util_avg_percent is None
    assert baseline.peak_gpu_memory_gb is None
    assert baseline.system.gpu is None


def test_a_gpu_is_named_with_its_figures() -> None:
    run = gpu_run()
    assert run.torch is not None
    gpu = run.torch.gpu
    assert gpu is not None
    assert gpu.peak_bytes is not None
    baseline = measured(run)
    assert baseline.system.gpu == gpu.name
    assert baseline.gpu_util_avg_percent == gpu.utilisation_percent
    assert baseline.peak_gpu_memory_gb == gpu.peak_bytes / GIB


def test_the_hotspots_are_those_of_the_report() -> None:
    run = training_run()
    results = build_torch_results(run)
    assert results is not None
    told = [(one.rank, one.name, one.priority, one.percent, one.ms) for one in measured(run).hotspots]
    assert told == [
        (one.rank, one.name, one.priority.value, 100 * one.share, one.ns_per_step / 1e6)
        for one in results.hotspots
    ]
    assert told


def test_batches_that_are_accumulated_are_told_as_such() -> None:
    baseline = measured(accumulation_run())
    assert baseline.configuration.loader_batches_per_step == 4
    assert baseline.data_throughput_batches_per_s == pytest.approx(4 * 25)


@pytest.mark.parametrize("run", [empty_run(), no_steps_run()])
def test_a_run_without_steps_has_no_baseline(run: Run) -> None:
    with pytest.raises(UsageError) as caught:
        measured(run)
    assert str(caught.value) == (
        "there is no baseline of train.py: no step of a PyTorch program was recorded in it"
    )


# Several configurations.


def test_each_program_with_its_arguments_is_a_configuration() -> None:
    small, large = started_with("train.py", "--batch-size", "32"), started_with("train.py", "-b", "64")
    baseline = baseline_of(small, large)
    assert list(baseline.configurations) == ["train.py --batch-size 32", "train.py -b 64"]
    assert baseline.configuration.argv == ("train.py", "--batch-size", "32")


def test_the_same_configuration_is_replaced_and_the_others_stay() -> None:
    first, second = started_with("train.py", "1"), started_with("train.py", "2")
    again = msgspec.structs.replace(first, started_at="2027-01-01T00:00:00+00:00")
    baseline = baseline_of(again, known=baseline_of(first, second))
    assert {key: one.timestamp for key, one in baseline.configurations.items()} == {
        "train.py 1": "2027-01-01T00:00:00+00:00",
        "train.py 2": first.started_at,
    }
    assert baseline.timestamp == "2027-01-01T00:00:00+00:00"


def test_the_command_can_be_typed_as_it_stands() -> None:
    assert command_of(started_with("a b.py", "--name", "x y"), file_name="b.json") == (
        "pyrometer run --baseline b.json 'a b.py' --name 'x y'"
    )
    run = started_with("-m pkg.train", "--fast")
    assert run.torch is not None
    torch = msgspec.structs.replace(run.torch, warmup=3, window=(10, None))
    assert command_of(msgspec.structs.replace(run, torch=torch), file_name="b c.json") == (
        "pyrometer run --baseline 'b c.json' --warmup 3 --steps 10: -m pkg.train --fast"
    )


def chosen(**parts: object) -> Run:
    run = training_run()
    assert run.torch is not None
    return replace(run, torch=replace(run.torch, **parts))


SAMPLES = make_samples()
COUNTERS = make_counters()
WITHOUT_NATIVE = replace(SAMPLES, native_functions=(), observations=())
TODAY = replace(training_run(), garbage=make_garbage())
"""Of a Pyrometer that can watch all there is, and was asked not to."""


@pytest.mark.parametrize(
    ("run", "options"),
    [
        (training_run(), []),
        (
            chosen(warmup=3, window=(10, 90), max_steps=100),
            ["--warmup 3", "--steps 10:90", "--max-steps 100"],
        ),
        (chosen(operators=replace(make_operators(), asked_steps=5)), ["--ops 5"]),
        (replace(TODAY, samples=replace(WITHOUT_NATIVE, samples_per_s=100)), ["--no-memory"]),
        (replace(training_run(), samples=replace(WITHOUT_NATIVE, samples_per_s=250)), ["--sample-hz 250"]),
        (replace(training_run(), samples=replace(SAMPLES, samples_per_s=100)), ["--native"]),
        (replace(TODAY, allocations=replace(make_allocations(), python_bytes=None)), ["--sample-hz 0"]),
        (
            replace(training_run(), allocations=replace(make_allocations(), python_bytes=1)),
            ["--python-memory"],
        ),
        (replace(training_run(), counters=replace(COUNTERS, simulated=None)), ["--counters"]),
        (
            replace(TODAY, losses=(loss("sampler"), loss("memory"))),  # neither was possible there
            [],
        ),
        (TODAY, ["--sample-hz 0", "--no-memory"]),
    ],
)
def test_the_run_is_made_again_with_the_options_it_was_made_with(run: Run, options: list[str]) -> None:
    assert recording_options(run) == options


@pytest.mark.parametrize(("scope", "option"), [(None, "--cachegrind"), ("a b", "--cachegrind-scope 'a b'")])
def test_a_simulation_is_asked_for_again_with_its_scope(scope: str | None, option: str) -> None:
    assert COUNTERS.simulated is not None
    counters = replace(COUNTERS, hardware=None, simulated=replace(COUNTERS.simulated, scope=scope))
    assert recording_options(replace(empty_run(), counters=counters)) == [option]


def test_a_program_that_was_started_otherwise_goes_by_its_name() -> None:
    assert key_of(Program(name="python", argv=(), working_directory="/")) == "python"
