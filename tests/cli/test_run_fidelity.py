"""A program under ``pyrometer run`` sees and leaves behind what it does with plain Python."""

import signal
from pathlib import Path

import pytest

from tests.cli.running import PLAIN, PROFILED, Ended, Folder


@pytest.fixture
def folder(tmp_path: Path) -> Folder:
    return Folder(tmp_path)


WHAT_A_PROGRAM_SEES = """
    import inspect, os, signal, sys, threading
    print(sys.argv, sys.path, sys.flags, sys.warnoptions, sys.orig_argv[1:])
    print(__name__, __file__, __spec__ and (__spec__.name, __spec__.origin))
    print(sorted(vars(sys.modules["__main__"])))
    print([(frame.filename, frame.function) for frame in inspect.stack()])
    print([thread.name for thread in threading.enumerate()], threading.active_count())
    print([(number.name, signal.getsignal(number)) for number in sorted(signal.valid_signals())
           if isinstance(number, signal.Signals)])
    print(list(os.environ.items()))
    print(sys.getrecursionlimit(), sys.getprofile(), sys.gettrace(), sys.excepthook)
    print("sitecustomize" in sys.modules, [type(finder).__name__ for finder in sys.meta_path])
    print([hook.__name__ for hook in sys.path_hooks])
    print(os.open(__file__, os.O_RDONLY))
    print(sys.stdin.read())
"""

PROGRAMS = {
    "what it sees": WHAT_A_PROGRAM_SEES,
    "chained exceptions": """
        def inner():
            raise KeyError("inner")
        def outer():
            try:
                inner()
            except KeyError as error:
                raise ValueError("outer") from error
        outer()
    """,
    "an exception group": "raise ExceptionGroup('several', [ValueError(1), TypeError(2)])",
    "a syntax error": "print('never')\nif True print('wrong')",
    "an exit code": "import sys; sys.exit(3)",
    "an exit text": "import sys; sys.exit('that is all')",
    "an exit from a deep call": "def f(n):\n    f(n - 1) if n else exit(7)\nf(50)",
    "an exit past everything": "import os; print('gone', flush=True); os._exit(9)",
    "a signal held back": """
        import os, signal
        signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM, signal.SIGUSR1])
        os.kill(os.getpid(), signal.SIGTERM)
        os.kill(os.getpid(), signal.SIGUSR1)
        print(signal.sigpending())
    """,
    "the order of atexit": """
        import atexit
        for word in "abc":
            atexit.register(print, word)
        print("main")
    """,
    "an error in atexit": """
        import atexit
        class Callback:
            def __repr__(self):
                return "the callback"
            def __call__(self):
                return 1 / 0
        atexit.register(Callback())
    """,
    "a thread outliving main": """
        import threading
        def work():
            threading.main_thread().join()
            print("after main", [thread.name for thread in threading.enumerate()])
        threading.Thread(target=work, name="worker").start()
        print("main ends")
    """,
    "an error in a thread": """
        import threading
        threading.Thread(target=lambda: 1 / 0, name="worker").start()
    """,
    "a thread started twice": """
        import threading
        thread = threading.Thread(target=print)
        thread.start()
        thread.start()
    """,
    "the deepest recursion": """
        def depth(n=1):
            try:
                return depth(n + 1)
            except RecursionError:
                return n
        print(depth())
        def for_ever():
            for_ever()
        for_ever()
    """,
    "warnings": """
        import warnings
        warnings.warn("look out")
        warnings.warn("going away", DeprecationWarning)
        print(warnings.filters)
    """,
    "pickled classes of the script": """
        import pickle
        class Thing:
            pass
        text = pickle.dumps(Thing(), protocol=0)
        print(text, type(pickle.loads(text)) is Thing)
    """,
    "spawned and forked processes": """
        import multiprocessing, os
        class Thing:
            def __init__(self, number):
                self.number = number
        def work(thing):
            return type(thing).__name__, thing.number, __name__, sorted(os.environ) == expected()
        def expected():
            return sorted(os.environ)
        if __name__ == "__main__":
            for method in ("spawn", "fork"):
                with multiprocessing.get_context(method).Pool(1) as pool:
                    print(pool.map(work, [Thing(1), Thing(2)]))
    """,
    "a forked child that ends by itself": """
        import os, sys
        if os.fork() == 0:
            print("child", flush=True)
            sys.exit(4)
        print(os.waitstatus_to_exitcode(os.wait()[1]))
    """,
    "a forked child ended by SIGTERM": """
        import os, signal
        ready, tell = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(tell, b"x")
            signal.pause()
        os.read(ready, 1)
        os.kill(child, signal.SIGTERM)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
    """,
    "waiting for children it does not have": """
        import os
        try:
            os.wait()
        except ChildProcessError as error:
            print(error)
    """,
    "a broken pipe": """
        import os, sys
        read_end, write_end = os.pipe()
        os.dup2(write_end, 1)
        os.close(read_end)
        print("nobody reads this")
    """,
    "an exception hook": """
        import sys
        sys.excepthook = lambda kind, error, trace: print(kind, error, trace.tb_frame.f_code.co_name)
        raise ValueError("hooked")
    """,
    "work in an executor": """
        import inspect, traceback
        from concurrent.futures import ThreadPoolExecutor, wait
        def fail():
            print([frame.function for frame in inspect.stack()])
            raise ValueError("from a worker")
        with ThreadPoolExecutor(1) as pool:
            for _ in range(2):
                future = pool.submit(fail)
                wait([future])  # a result that is there already is raised at another line
                try:
                    future.result()
                except ValueError:
                    traceback.print_exc()
    """,
}


@pytest.mark.parametrize("source", PROGRAMS.values(), ids=PROGRAMS.keys())
def test_a_script_does_what_it_does_with_plain_python(folder: Folder, source: str) -> None:
    folder.write("program.py", source)
    arguments = ("program.py", "--top", "-o", "--", "x y", "-m")
    expected = folder.plain(*arguments, given="from stdin")
    assert folder.profiled(*arguments, given="from stdin") == expected


@pytest.mark.parametrize("python_path", ["", "elsewhere", "elsewhere:more"])
def test_the_python_path_of_the_environment_stays(folder: Folder, python_path: str) -> None:
    folder.environment["PYTHONPATH"] = python_path
    folder.write("program.py", WHAT_A_PROGRAM_SEES)
    assert folder.profiled("program.py") == folder.plain("program.py")


def test_a_sitecustomize_of_the_users_still_runs(folder: Folder) -> None:
    folder.environment["PYTHONPATH"] = "site"
    folder.write("site/sitecustomize.py", "import os, sys; print('customized', os.environ.get('PYTHONPATH'))")
    folder.write("program.py", "import sys; print(sys.modules['sitecustomize'].__file__, sys.path)")
    plain = folder.plain("program.py")
    assert plain.stdout.startswith("customized site\n")
    # Once more for the command itself, which is Python too.
    assert folder.profiled("program.py").stdout == "customized site\n" + plain.stdout
    assert folder.record().outcome.status == "finished"


def test_an_error_in_a_sitecustomize_of_the_users_is_reported_as_always(folder: Folder) -> None:
    folder.environment["PYTHONPATH"] = "site"
    folder.write("site/sitecustomize.py", "1 / 0")
    folder.write("program.py", "print('goes on')")
    assert folder.profiled("program.py").stderr == 2 * folder.plain("program.py").stderr
    assert folder.record().outcome.status == "finished"


def test_modules_in_the_programs_folder_are_the_programs_own(folder: Folder) -> None:
    names = ("rich", "msgspec", "report", "typer", "json", "random", "uuid", "platform", "signal", "gzip")
    for name in names:
        folder.write(f"{name}.py", f"print('my own {name}')")
    folder.write("program.py", "\n".join(f"import {name}" for name in names))
    assert folder.profiled("program.py") == folder.plain("program.py")
    assert folder.record().outcome.status == "finished"


def test_a_folder_of_data_is_not_taken_for_a_module(folder: Folder) -> None:
    folder.write("msgspec/data.txt", "numbers")
    folder.write("program.py", "import msgspec; print(msgspec.json.encode([1]))")
    assert folder.profiled("program.py") == folder.plain("program.py")


@pytest.mark.parametrize("target", [("-m", "tool"), ("-m", "package"), ("-m", "package.part"), ("package",)])
def test_modules_and_packages_run_as_with_plain_python(folder: Folder, target: tuple[str, ...]) -> None:
    folder.write("tool.py", WHAT_A_PROGRAM_SEES)
    folder.write("package/__init__.py", "print('the package')")
    folder.write("package/__main__.py", WHAT_A_PROGRAM_SEES)
    folder.write("package/part.py", WHAT_A_PROGRAM_SEES + "    raise ValueError('in a module')\n")
    arguments = (*target, "--quiet", "-o", "file")
    assert folder.profiled(*arguments) == folder.plain(*arguments)


def test_a_program_from_stdin_runs(folder: Folder) -> None:
    source = "import sys\nprint(sys.argv, __name__)\n1 / 0\n"
    assert folder.profiled("-", "x", given=source) == folder.plain("-", "x", given=source)
    assert folder.record().program.name == "stdin"


@pytest.mark.parametrize("options", [("-O",), ("-W", "error"), ("-X", "dev"), ("-u",), ("-B", "-q")])
def test_options_of_python_itself_reach_the_program(folder: Folder, options: tuple[str, ...]) -> None:
    folder.write("program.py", "import sys\nprint(sys.flags, sys.warnoptions, sys.stdout.write_through)")
    quiet = ("-m", "pyrometer", "run", "--quiet", "-o", str(folder.run_file))
    expected = folder.plain(*options, "program.py")
    assert folder.run(PLAIN[0], *options, *quiet, "program.py") == expected


def end_by_signal(folder: Folder, command: tuple[str, ...], number: signal.Signals) -> Ended:
    """What is left of program.py when it is sent a signal as soon as it says so."""
    process = folder.start((*command, "program.py"))
    assert process.stdout is not None
    first_line = process.stdout.readline()
    process.send_signal(number)
    stdout, stderr = process.communicate()
    return Ended(stdout=first_line + stdout, stderr=stderr, code=process.returncode)


# Where the signal finds the program is one line in each, and it says "ready" only there.
WAITS = {
    "asleep": "import signal\nprint('ready', flush=True) or signal.pause()\n",
    "at work": """
        import sys, threading
        def tell(main_id=threading.get_ident()):
            while sys._current_frames()[main_id].f_lineno != 8:
                pass
            print("ready", flush=True)
        threading.Thread(target=tell).start()
        while True: pass
    """,
}


def quiet(folder: Folder) -> tuple[str, ...]:
    return (*PROFILED, "--quiet", "-o", str(folder.run_file))


@pytest.mark.parametrize("source", WAITS.values(), ids=WAITS.keys())
def test_ctrl_c_ends_a_program_as_always(folder: Folder, source: str) -> None:
    # Marks below the line would tell how far the program had come in it.
    folder.environment["PYTHONNODEBUGRANGES"] = "1"
    folder.write("program.py", source)
    plain = end_by_signal(folder, PLAIN, signal.SIGINT)
    assert end_by_signal(folder, quiet(folder), signal.SIGINT) == plain
    assert plain.code == -signal.SIGINT
    assert folder.record().outcome.detail == "KeyboardInterrupt"


@pytest.mark.parametrize("source", WAITS.values(), ids=WAITS.keys())
def test_sigterm_ends_a_program_after_its_run_is_written(folder: Folder, source: str) -> None:
    folder.write("program.py", source)
    plain = end_by_signal(folder, PLAIN, signal.SIGTERM)
    assert end_by_signal(folder, quiet(folder), signal.SIGTERM) == plain
    assert plain.code == -signal.SIGTERM
    outcome = folder.record().outcome
    assert (outcome.status, outcome.detail) == ("signal", "SIGTERM")


def test_a_handler_of_the_programs_own_gets_sigterm(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import signal, sys
        def end(number, frame):
            print("handled", number)
            sys.exit(5)
        print(signal.signal(signal.SIGTERM, end), flush=True)
        signal.pause()
        """,
    )
    plain = end_by_signal(folder, PLAIN, signal.SIGTERM)
    assert end_by_signal(folder, quiet(folder), signal.SIGTERM) == plain
    assert (plain.code, folder.record().outcome.status) == (5, "finished")


def test_an_ignored_sigterm_stays_ignored(folder: Folder) -> None:
    folder.write(
        "program.py",
        """
        import os, signal
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.kill(os.getpid(), signal.SIGTERM)
        print("still here")
        """,
    )
    assert folder.profiled("program.py") == folder.plain("program.py")


def test_the_program_has_the_process_id_of_the_command(folder: Folder) -> None:
    folder.write("program.py", "import os; print(os.getpid())")
    process = folder.start((*quiet(folder), "program.py"))
    stdout, _ = process.communicate()
    assert int(stdout) == process.pid
