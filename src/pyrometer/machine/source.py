"""The text of a program, as a fingerprint: what tells code apart that is in no repository."""

import hashlib
from pathlib import Path

_MOST_BYTES = 64 << 20


def source_sha256(path: Path | None) -> str | None:
    """The SHA-256 of a script, of a folder's ``__main__.py``, or of an archive of up to 64 MiB.

    ``None`` where there is no such file, where it is no regular one, and where it cannot be read.
    """
    if path is None:
        return None
    try:
        file = path / "__main__.py" if path.is_dir() else path
        if not file.is_file() or file.stat().st_size > _MOST_BYTES:
            return None
        return hashlib.sha256(file.read_bytes()).hexdigest()
    except (OSError, ValueError):
        return None
