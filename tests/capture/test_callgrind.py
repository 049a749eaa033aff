"""What valgrind says beside its counts: passed on, unless it is about caches that were not asked of it."""

from collections import Counter
from pathlib import Path

import pytest

from pyrometer.capture import losses
from pyrometer.capture.callgrind import CallgrindCounting, Settings

OF_ITS_OWN_CACHES = """\
--812-- warning: L3 cache found, using its data for the LL simulation.
--812-- warning: specified LL cache: line_size 64  assoc 1  total_size 335,544,320
--812-- warning: simulated LL cache: line_size 64  assoc 1  total_size 268,435,456
"""


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(losses, "failures", Counter())
    return tmp_path / "run.valgrind.log"


def tidy(log: Path) -> list[str]:
    counting = CallgrindCounting(
        Settings(
            scope=None,
            counts_file=str(log.with_name("counts")),
            log_file=str(log),
            caches=(),
            environment={},
            reference_ns=1,
        )
    )
    counting._tidy_log()
    return [reason for collector, reason in losses.failures if collector == "valgrind"]


def test_words_about_caches_it_does_not_simulate_are_taken_away(log: Path) -> None:
    log.write_text(OF_ITS_OWN_CACHES)
    assert tidy(log) == []
    assert not log.exists()


def test_anything_else_is_a_loss_and_stays(log: Path) -> None:
    log.write_text(f"{OF_ITS_OWN_CACHES}--812-- brk segment overflow in thread #1\n")
    assert tidy(log) == [f"it says: --812-- brk segment overflow in thread #1 (more in {log})"]
    assert log.exists()


def test_a_log_that_was_never_written_is_no_loss(log: Path) -> None:
    assert tidy(log) == []
