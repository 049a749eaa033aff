"""Adding a run that has ended to the history, without the libraries of the command line.

Those take longer to load than all that is done here, and a program's end waits for it.
"""

import os
import sys
from pathlib import Path

from pyrometer.analysis.history import remember
from pyrometer.errors import PyrometerError
from pyrometer.store.history import append, history_path, project_of
from pyrometer.store.run_files import rank_in, read_run


def add_run(run_path: Path) -> None:
    """Keep the run in this file; what goes wrong is one line on stderr."""
    try:
        run = read_run(run_path)
        project, folder = project_of(Path(run.program.working_directory))
        past = remember(
            run, project=project, folder=folder, rank=rank_in(os.environ), run_path=str(run_path.absolute())
        )
        aside = append(past, history_path(os.environ))
    except Exception as error:  # noqa: BLE001 - whatever it is, the report is still to come, and one line is enough
        problem = str(error) if isinstance(error, PyrometerError) else f"{type(error).__name__}: {error}"
        _say(f"the run is not in the history: {problem} (pyrometer run --no-history does without)")
    else:
        if aside is not None:
            _say(f"the history was damaged: it is now {aside}, and a new one is begun")


def _say(text: str) -> None:
    print(f"pyrometer: {text}", file=sys.stderr, flush=True)
