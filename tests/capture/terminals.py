"""A terminal as small as the tests of what is shown on one need, and programs run on a real one."""

import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path

_PIECES = re.compile(r"\x1b\[[0-9;]*[A-Za-z]|[\r\n]|[^\x1b\r\n]+|\x1b")


def screen_after(text: str, *, columns: int = 80) -> list[str]:
    """The rows a terminal shows after this output, without what stands empty at their ends."""
    rows: list[list[str]] = [[]]
    row = column = 0
    for piece in _PIECES.findall(text):
        if piece == "\r":
            column = 0
        elif piece == "\n":
            row, column = row + 1, 0
            rows.append([])
        elif piece == "\x1b[K":
            del rows[row][column:]
        elif piece.startswith("\x1b["):
            assert piece.endswith("m"), f"a sequence this terminal does not know: {piece!r}"
        else:
            for character in piece:
                if column == columns:
                    row, column = row + 1, 0
                    rows.append([])
                line = rows[row]
                line.extend(" " * (column + 1 - len(line)))
                line[column] = character
                column += 1
    return ["".join(line).rstrip() for line in rows]


def run_on_terminal(
    command: Sequence[str], *, folder: Path, environment: Mapping[str, str]
) -> tuple[str, int]:
    """What a program wrote to the terminal it was started on, and its exit code as a shell tells it.

    A line end is ``\\n``, as the program wrote it.
    """
    process_id, terminal_fd = pty.fork()
    if process_id == 0:
        fcntl.ioctl(0, termios.TIOCSWINSZ, struct.pack("4H", 24, 80, 0, 0))
        os.chdir(folder)
        os.execve(command[0], list(command), dict(environment))
    written = b""
    while True:
        try:
            piece = os.read(terminal_fd, 4_096)
        except OSError:  # how Linux says that the other side is closed
            piece = b""
        if not piece:
            break
        written += piece
    os.close(terminal_fd)
    _, status = os.waitpid(process_id, 0)
    code = os.waitstatus_to_exitcode(status)
    return written.decode().replace("\r\n", "\n"), code
