"""The fingerprint of a program's text."""

import hashlib
import os
from pathlib import Path

from pyrometer.machine.source import source_sha256


def test_a_script_is_known_by_its_text(tmp_path: Path) -> None:
    script = tmp_path / "train.py"
    script.write_bytes(b"print(1)\n")
    assert source_sha256(script) == hashlib.sha256(b"print(1)\n").hexdigest()


def test_a_folder_is_known_by_what_is_run_in_it(tmp_path: Path) -> None:
    (tmp_path / "__main__.py").write_bytes(b"pass\n")
    assert source_sha256(tmp_path) == hashlib.sha256(b"pass\n").hexdigest()


def test_what_is_no_file_has_no_text(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.py")
    for path in (None, tmp_path, tmp_path / "missing.py", tmp_path / "pipe.py", Path("a\0b.py")):
        assert source_sha256(path) is None
