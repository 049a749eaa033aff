"""A thousand short programs under the sampler at its fastest: each does what it does with plain Python."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

PROGRAMS = {
    "nothing": "",
    "threads": """
import threading
threads = [threading.Thread(target=sorted, args=(range(20_000),)) for _ in range(8)]
for thread in threads: thread.start()
for thread in threads: thread.join()
print("done")
""",
    "threads left running": """
import threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
print("left")
""",
    "recursion": """
def deep(n): return n if n == 0 else deep(n - 1)
for _ in range(200): deep(900)
try:
    deep(100_000)
except RecursionError:
    print("too deep")
""",
    "generators and coroutines": """
import asyncio
async def one(n): await asyncio.sleep(0); return n
async def main(): return sum(await asyncio.gather(*(one(n) for n in range(500))))
print(asyncio.run(main()))
""",
    "forks": """
import os
for _ in range(10):
    child = os.fork()
    if child == 0: os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
print("forked")
""",
    "made functions": """
for n in range(300):
    exec(f"def f{n}(): return sum(range(50))\\nf{n}()", {})
print("made")
""",
    "an exception": "def f(): raise ValueError('wrong')\nf()",
    "an exit code": "import sys; sys.exit(7)",
    "an end without a word": "import os; print('gone', flush=True); os._exit(3)",
}


@pytest.mark.slow
def test_a_thousand_short_programs_end_as_without_us(tmp_path: Path) -> None:
    scripts = {}
    for number, (name, source) in enumerate(PROGRAMS.items()):
        scripts[name] = tmp_path / f"program_{number}.py"
        scripts[name].write_text(source)

    def ended(*command: str) -> tuple[int, str, str]:
        done = subprocess.run(
            [sys.executable, *command], capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False
        )
        return done.returncode, done.stdout, done.stderr

    expected = {name: ended(str(script)) for name, script in scripts.items()}

    def run(number: int) -> tuple[str, tuple[int, str, str]]:
        name = [*scripts][number % len(scripts)]
        options = ("--quiet", "--sample-hz", "10000", "-o", str(tmp_path / f"{number}.json"))
        return name, ended("-m", "pyrometer", "run", *options, str(scripts[name]))

    with ThreadPoolExecutor(2) as pool:
        for name, seen in pool.map(run, range(1_000)):
            assert seen == expected[name], name
