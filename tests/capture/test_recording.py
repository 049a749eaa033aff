"""The process's own recorder across forks."""

import os

import pytest

import pyrometer
from pyrometer.capture import processes
from pyrometer.capture.recording import recorder


@pytest.mark.usefixtures("clean_recorder")
def test_a_forked_child_starts_clean_and_goes_on_recording() -> None:
    read_end, write_end = os.pipe()
    with pyrometer.profile():
        with pyrometer.scope("parent"):
            child = os.fork()
            if child == 0:
                with pyrometer.scope("child"):
                    pass
                names = [scope.name for scope in pyrometer.results().scopes]
                os.write(write_end, repr((names, recorder.enabled, processes.forks)).encode())
                os._exit(0)
        os.waitpid(child, 0)
    assert os.read(read_end, 1_000).decode() == repr((["child"], True, 0))
    assert [scope.name for scope in pyrometer.results().scopes] == ["parent"]
    os.close(read_end)
    os.close(write_end)


def test_one_stop_too_many_changes_nothing() -> None:
    from pyrometer.capture import recording

    recording.stop()
    assert not recorder.enabled
    with pyrometer.profile():
        assert recorder.enabled
