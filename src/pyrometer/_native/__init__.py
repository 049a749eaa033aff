"""The scope recorder: the C core, or its Python twin where there is none.

``PYROMETER_NATIVE=0`` chooses the twin.
"""

import os

# Not from typing, which would take half of what `import pyrometer` may cost.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from pyrometer._native.core import KIND, Position, Recorder, Scope
elif os.environ.get("PYROMETER_NATIVE") == "0":
    from pyrometer._native.twin import KIND, Position, Recorder, Scope
else:
    try:
        from pyrometer._native.core import KIND, Position, Recorder, Scope
    except ImportError:
        from pyrometer._native.twin import KIND, Position, Recorder, Scope

__all__ = ["KIND", "Position", "Recorder", "Scope"]
