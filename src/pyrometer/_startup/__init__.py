"""What ``pyrometer run`` puts first on the program's path: one module, ``sitecustomize``."""

import json
import os
from collections.abc import Mapping
from pathlib import Path


def launch_environment(environment: Mapping[str, str], **launch_options: object) -> dict[str, str]:
    """An environment in which Python starts us first; start-up turns it back into the one given."""
    python_path = environment.get("PYTHONPATH")
    startup_folder = str(Path(__file__).parent)
    # An empty PYTHONPATH means none, but an empty entry would mean the current folder.
    entries = [startup_folder, python_path] if python_path else [startup_folder]
    return {
        **environment,
        "PYTHONPATH": os.pathsep.join(entries),
        "PYROMETER_LAUNCH": json.dumps({"python_path": python_path, **launch_options}),
    }
