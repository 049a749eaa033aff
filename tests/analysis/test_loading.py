import msgspec
import pytest

from pyrometer.analysis.loading import LoaderResult, LoaderVerdict, build_loaders, judge_loader
from pyrometer.record.run import Run
from tests.torch_runs import MS, US, evaluation_run, in_process_loader, training_run, workers_run


def loaders_of(run: Run) -> tuple[LoaderResult, ...]:
    assert run.torch is not None
    return build_loaders(run.torch.loaders, run.torch.groups)


def test_a_slow_loader_keeps_the_steps_waiting() -> None:
    (loader,) = loaders_of(workers_run(slow=True))
    assert (loader.wait_ns_per_batch, loader.wait_share) == (12 * MS, 0.6)
    assert (loader.ready_share, loader.average_queue, loader.worker_busy_share) == (0.1, 0.1, 1.0)
    assert loader.verdict is LoaderVerdict.TOO_SLOW


def test_an_idle_loader_has_its_batches_ready() -> None:
    (loader,) = loaders_of(workers_run(slow=False))
    assert (loader.ready_share, loader.average_queue) == (0.98, 3)
    # 4 ms of work a batch for two workers, in steps of 8.1 ms.
    assert loader.worker_busy_share == pytest.approx(4 / 16.2)
    assert loader.verdict is LoaderVerdict.IDLE


def test_fetch_transform_and_collate_make_up_the_work() -> None:
    (loader,) = loaders_of(workers_run(slow=True))
    parts = (loader.fetch_ns_per_batch, loader.transform_ns_per_batch, loader.collate_ns_per_batch)
    assert parts == (15 * MS, 20 * MS, 5 * MS)
    assert loader.work_ns_per_batch == 40 * MS


def test_start_up_is_told_per_iterator() -> None:
    (loader,) = loaders_of(workers_run(slow=True))
    assert (loader.start_ns_per_iterator, loader.first_batch_ns_per_iterator) == (30 * MS, 90 * MS)


def test_a_loader_in_the_programs_own_process_has_no_queue() -> None:
    (loader,) = loaders_of(training_run())
    assert (loader.worker_busy_share, loader.ready_share, loader.average_queue) == (None, None, None)
    assert loader.wait_share == pytest.approx(100 / 1_033)
    assert loader.transform_ns_per_batch is None


def test_training_and_evaluation_are_each_judged_by_their_own_steps() -> None:
    training, evaluation = loaders_of(evaluation_run())
    assert training.wait_share == pytest.approx(100 / 1_033)
    assert training.verdict is LoaderVerdict.BALANCED
    assert (evaluation.wait_share, evaluation.verdict) == (0.25, LoaderVerdict.TOO_SLOW)


def test_loaders_that_cannot_be_told_apart_are_not_judged() -> None:
    run = evaluation_run()
    assert run.torch is not None
    alike = (in_process_loader(100, wait_ns=MS), in_process_loader(101, wait_ns=MS))
    torch = msgspec.structs.replace(run.torch, loaders=alike)
    verdicts = {loader.verdict for loader in build_loaders(torch.loaders, torch.groups)}
    assert verdicts == {LoaderVerdict.CANNOT_TELL}


def test_a_loader_nobody_asked_for_a_batch_has_no_figures() -> None:
    loader = msgspec.structs.replace(in_process_loader(0, wait_ns=0), work_ns=None, collate_ns=None)
    (result,) = build_loaders((loader,), ())
    assert (result.wait_ns_per_batch, result.work_ns_per_batch, result.wait_share) == (None, None, None)
    assert result.start_ns_per_iterator == 50 * US
    assert result.verdict is LoaderVerdict.CANNOT_TELL


@pytest.mark.parametrize(
    ("wait", "ready", "busy", "verdict"),
    [
        (0.10, 0.49, 0.9, LoaderVerdict.TOO_SLOW),
        (0.10, 0.50, 0.9, LoaderVerdict.BALANCED),
        (0.09, 0.10, 0.9, LoaderVerdict.BALANCED),
        (0.01, 0.90, 0.49, LoaderVerdict.IDLE),
        (0.01, 0.90, 0.50, LoaderVerdict.BALANCED),
        (0.01, 0.89, 0.10, LoaderVerdict.BALANCED),
        (0.01, 0.95, None, LoaderVerdict.CANNOT_TELL),
        (0.50, None, 0.9, LoaderVerdict.CANNOT_TELL),
        (None, 0.95, 0.9, LoaderVerdict.CANNOT_TELL),
    ],
)
def test_the_verdict_on_a_loader_with_workers_follows_its_rule(
    wait: float | None, ready: float | None, busy: float | None, verdict: LoaderVerdict
) -> None:
    assert judge_loader(in_process=False, wait_share=wait, ready_share=ready, busy_share=busy) is verdict


@pytest.mark.parametrize(
    ("wait", "verdict"), [(0.10, LoaderVerdict.TOO_SLOW), (0.09, LoaderVerdict.BALANCED)]
)
def test_a_loader_without_workers_is_judged_by_the_wait_alone(wait: float, verdict: LoaderVerdict) -> None:
    assert judge_loader(in_process=True, wait_share=wait, ready_share=None, busy_share=None) is verdict
