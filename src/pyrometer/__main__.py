"""The door of the command: ``pyrometer``, and ``python -m pyrometer``."""

import sys


def main() -> None:
    """Run the command and exit with its code."""
    # `python -m` puts the current folder first, where a rich.py of the user's would be taken for
    # the library. Last, it still serves those who keep libraries there.
    if __name__ == "__main__" and not sys.flags.safe_path:
        sys.path.append(sys.path.pop(0))
    from pyrometer.cli.app import run_command

    sys.exit(run_command())


if __name__ == "__main__":
    main()
