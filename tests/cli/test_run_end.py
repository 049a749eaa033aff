"""What is left of a run when something goes wrong after the program's last line."""

from pathlib import Path

import pytest

from tests.cli.running import PROFILED, Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


INTERRUPTED = """
    import os, signal, threading
    import pyrometer.session as session
    from pyrometer import scope
    with scope("marked"):
        pass
    def interrupted(*arguments, write_run=session.write_run):
        {interrupt}
        write_run(*arguments)
    session.write_run = interrupted
"""


@pytest.mark.parametrize(
    "interrupt",
    [
        "signal.raise_signal(signal.SIGINT)",
        "thread = threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)); thread.start()",
    ],
    ids=["on the main thread", "from another thread"],
)
def test_ctrl_c_while_the_run_is_written_does_not_lose_it(folder: Folder, interrupt: str) -> None:
    folder.write("program.py", INTERRUPTED.format(interrupt=interrupt))
    ended = folder.profiled("program.py")
    assert (ended.stdout, ended.stderr, ended.code) == ("", "", 0)
    run = folder.record()
    assert run.outcome.status == "finished"
    assert [node.name for node in run.scopes()] == ["marked"]


def test_ctrl_c_ends_the_report_in_silence(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import os, signal, threading
        import pyrometer.session as session
        def interrupted_spawn(*arguments, spawn=os.posix_spawn, **options):
            report = spawn(*arguments, **options)
            os.kill(report, signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)
            return report
        os.posix_spawn = interrupted_spawn
        """,
    )
    ended = folder.run(*PROFILED, "-o", str(folder.run_file), "program.py")
    assert (ended.stdout, ended.code) == ("", 0)
    assert "Traceback" not in ended.stderr
    assert "KeyboardInterrupt" not in ended.stderr
    assert folder.record().outcome.status == "finished"


def test_a_run_that_cannot_be_written_is_reported_all_the_same(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import shutil, sys
        from pyrometer import scope
        with scope("marked"):
            shutil.rmtree(sys.argv[1])
        open(sys.argv[1], "w").close()
        """,
    )
    ended = folder.run(*PROFILED, "-o", str(folder.run_file), "program.py", str(folder.run_file.parent))
    assert ended.code == 0
    first_line, rest = ended.stderr.split("\n", 1)
    assert first_line.startswith(f"pyrometer: the run could not be kept: {folder.run_file}: ")
    assert rest.startswith("program.py ")
    assert "marked" in rest
    assert "run written to" not in rest
