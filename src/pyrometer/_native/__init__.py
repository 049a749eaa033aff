"""The scope recorder: the C core, or its Python twin where there is none.

``PYROMETER_NATIVE=0`` chooses the twin.
"""

import os

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrometer._native.core import (
        KIND,
        Position,
        Recorder,
        Sampler,
        Scope,
        Watch,
        allocation_totals,
        count_allocations,
        stop_counting_allocations,
    )
elif os.environ.get("PYROMETER_NATIVE") == "0":
    from pyrometer._native.twin import KIND, Position, Recorder, Scope
    from pyrometer._native.twin_watch import Watch
    from pyrometer._native.uncounted import allocation_totals, count_allocations, stop_counting_allocations
    from pyrometer._native.unsampled import Sampler
else:
    try:
        from pyrometer._native.core import (
            KIND,
            Position,
            Recorder,
            Scope,
            Watch,
            allocation_totals,
            count_allocations,
            stop_counting_allocations,
        )
    except ImportError:
        from pyrometer._native.twin import KIND, Position, Recorder, Scope
        from pyrometer._native.twin_watch import Watch
        from pyrometer._native.uncounted import (
            allocation_totals,
            count_allocations,
            stop_counting_allocations,
        )
    try:
        from pyrometer._native.core import Sampler
    except ImportError:
        from pyrometer._native.unsampled import Sampler

__all__ = [
    "KIND",
    "Position",
    "Recorder",
    "Sampler",
    "Scope",
    "Watch",
    "allocation_totals",
    "count_allocations",
    "stop_counting_allocations",
]
