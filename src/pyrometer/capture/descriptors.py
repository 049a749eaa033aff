"""Files of ours stand away from the small numbers, which the program expects to get for its own."""

import fcntl
import os
import resource


def move_high(fd: int) -> int:
    """The same file under a high number, not inherited by programs started; the old number is free again."""
    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest = min(limit, 1_024) - 24 if limit > 0 else 1_000
    try:
        return fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, max(lowest, 3))
    finally:
        os.close(fd)


def high_pipe() -> tuple[int, int]:
    """A pipe (read end, write end) that never blocks."""
    read_fd, write_fd = os.pipe()
    ends = move_high(read_fd), move_high(write_fd)
    for end in ends:
        os.set_blocking(end, False)
    return ends
