"""To which project a folder belongs."""

from pathlib import Path


def project_folder(folder: Path) -> Path:
    """The nearest folder upwards that holds a pyproject.toml or a git repository, else the folder itself."""
    folder = folder.absolute()
    for candidate in (folder, *folder.parents):
        if any((candidate / name).exists() for name in ("pyproject.toml", ".git")):
            return candidate
    return folder
