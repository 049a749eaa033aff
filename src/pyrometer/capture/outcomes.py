"""How the program came to its end, as far as the interpreter tells."""

import sys

from pyrometer.record.run import Outcome


def last_error() -> BaseException | None:
    """The exception that was last printed as uncaught; 3.12 renamed where it stands."""
    error = getattr(sys, "last_exc", None) or getattr(sys, "last_value", None)
    return error if isinstance(error, BaseException) else None


def outcome_since(error_before: BaseException | None) -> Outcome:
    """Whether an exception has ended the program, another than the one noted before it began."""
    error = last_error()
    if error is None or error is error_before:
        return Outcome(status="finished")
    trace = error.__traceback__
    # Consoles and debuggers inside a program note errors in the same place. What ended the
    # program was raised below its main module, or nowhere if that has a syntax error.
    if trace is not None and trace.tb_frame.f_globals.get("__name__") not in {"__main__", "runpy"}:
        return Outcome(status="finished")
    return Outcome(status="exception", detail=type(error).__name__)
