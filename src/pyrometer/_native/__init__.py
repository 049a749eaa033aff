"""The scope recorder: the C core, or its Python twin where there is none.

``PYROMETER_NATIVE=0`` chooses the twin.
"""

import os

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrometer._native import core as allocations
    from pyrometer._native.core import KIND, Position, Recorder, Sampler, Scope, Watch
elif os.environ.get("PYROMETER_NATIVE") == "0":
    from pyrometer._native import uncounted as allocations
    from pyrometer._native.twin import KIND, Position, Recorder, Scope
    from pyrometer._native.twin_watch import Watch
    from pyrometer._native.unsampled import Sampler
else:
    try:
        from pyrometer._native import core as allocations
        from pyrometer._native.core import KIND, Position, Recorder, Scope, Watch
    except ImportError:
        from pyrometer._native import uncounted as allocations
        from pyrometer._native.twin import KIND, Position, Recorder, Scope
        from pyrometer._native.twin_watch import Watch
    try:
        from pyrometer._native.core import Sampler
    except ImportError:
        from pyrometer._native.unsampled import Sampler

__all__ = ["KIND", "Position", "Recorder", "Sampler", "Scope", "Watch", "allocations"]
