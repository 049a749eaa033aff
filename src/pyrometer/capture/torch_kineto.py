"""torch's profiler of operators by its raw interface: switched on and off, and what it saw as it is."""

import os
import threading
from typing import Any

_LOG_LEVEL = "KINETO_LOG_LEVEL"
_SILENT = "99"


class KinetoSession:
    """One stretch under torch's profiler, on the thread that made it.

    torch's profiler is one for the process: whether another is at work has to be asked before.
    """

    def __init__(self, torch: Any, *, has_shapes: bool) -> None:
        self._torch = torch
        self.has_shapes = has_shapes
        profiler = torch._C._profiler  # noqa: SLF001 - raw events are to be had in no other way
        self._activities = {profiler.ProfilerActivity.CPU}
        cuda = profiler.ProfilerActivity.CUDA
        self.has_devices = bool(
            cuda in torch._C._autograd._supported_activities() and torch.cuda.is_available()  # noqa: SLF001
        )
        if self.has_devices:
            self._activities.add(cuda)
        self._config = profiler.ProfilerConfig(
            profiler.ProfilerState.KINETO,
            has_shapes,
            False,  # noqa: FBT003 - no memory
            False,  # noqa: FBT003 - no stacks
            has_shapes,
            False,  # noqa: FBT003 - no modules: ours are known
            profiler._ExperimentalConfig(),  # noqa: SLF001
        )
        self.thread_id = threading.get_ident()
        self.native_thread_id = threading.get_native_id()

    def start(self) -> None:
        """From now on every operator of this thread, and of the backward pass it asks for, is seen."""
        autograd = self._torch._C._autograd  # noqa: SLF001
        # It writes to stderr that it starts and stops, unless told when it is first used. Not by
        # os.environ, which the program may be going through.
        theirs = os.environ.get(_LOG_LEVEL)
        os.putenv(_LOG_LEVEL, _SILENT)
        try:
            autograd._prepare_profiler(self._config, self._activities)  # noqa: SLF001
        finally:
            if theirs is None:
                os.unsetenv(_LOG_LEVEL)
            else:
                os.putenv(_LOG_LEVEL, theirs)
        autograd._enable_profiler(self._config, self._activities)  # noqa: SLF001

    def stop(self) -> Any:
        """What it saw; on the thread that started it."""
        return self._torch._C._autograd._disable_profiler()  # noqa: SLF001


def is_profiling(torch: Any) -> bool:
    """Whether torch's profiler is on, on this thread."""
    return bool(torch._C._autograd._profiler_enabled())  # noqa: SLF001
