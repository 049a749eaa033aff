"""How much memory the process has in use, as glibc tells it: for programs that must not grow."""

import ctypes
import gc


class _Mallinfo2(ctypes.Structure):
    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena", "ordblks", "smblks", "hblks", "hblkhd", "usmblks", "fsmblks", "uordblks", "fordblks",
            "keepcost",
        )
    ]  # fmt: skip


def bytes_in_use() -> int:
    """What was allocated and not freed, after a collection."""
    mallinfo2 = ctypes.CDLL(None).mallinfo2
    mallinfo2.restype = _Mallinfo2
    gc.collect()
    now = mallinfo2()
    return int(now.uordblks + now.hblkhd)
