"""Programs that fork, under ``pyrometer run``."""

import signal
from pathlib import Path

import pytest

from tests.cli.running import PROFILED, Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


def test_a_pool_of_forked_workers_ends_as_with_plain_python(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import multiprocessing
        with multiprocessing.get_context("fork").Pool(8) as pool:
            print(pool.map(abs, range(-20, 0)))
        """,
    )
    assert folder.profiled("program.py") == folder.plain("program.py")
    assert folder.record().outcome.status == "finished"


def test_threads_that_fork_at_the_same_time_do_not_end_the_program(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import os, subprocess, threading
        def run_commands():
            for _ in range(10):
                subprocess.run(["true"], preexec_fn=lambda: None, check=True)
        def fork():
            for _ in range(10):
                child = os.fork()
                if child == 0:
                    os._exit(0)
                os.waitpid(child, 0)
        threads = [threading.Thread(target=work) for work in (*[run_commands] * 4, *[fork] * 2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        print("done")
        """,
    )
    ended = folder.profiled("program.py")
    assert (ended.stdout, ended.stderr, ended.code) == ("done\n", "", 0)
    (loss,) = folder.record().losses
    assert (loss.collector, loss.count) == ("processes", 60)


def test_nobody_forks_once_sigterm_is_acted_on(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import os, signal, sys, threading
        import pyrometer.session as session

        def fork():
            if os.fork() == 0:
                os.write(1, b"an orphan\\n")
                os._exit(0)

        def write_while_another_thread_forks(*arguments, write_run=session.write_run):
            thread = threading.Thread(target=fork, daemon=True)
            thread.start()
            while thread.is_alive():
                frame = sys._current_frames().get(thread.ident)
                if frame is not None and frame.f_code.co_name == "wait_for_the_end":
                    break
            write_run(*arguments)

        session.write_run = write_while_another_thread_forks
        print("ready", flush=True)
        signal.pause()
        """,
    )
    process = folder.start((*PROFILED, "--quiet", "-o", str(folder.run_file), "program.py"))
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    process.send_signal(signal.SIGTERM)
    stdout, stderr = process.communicate()
    assert (stdout, stderr, process.returncode) == ("", "", -signal.SIGTERM)
    assert folder.record().outcome.detail == "SIGTERM"
