"""What keeps an experiment from giving an answer."""

from pyrometer.errors import PyrometerError

PROGRAM_FAILED = 5
REFUSED = 4


class ProgramFailedError(PyrometerError):
    """A measured program ended with an error of its own."""

    exit_code = PROGRAM_FAILED

    def __init__(self, side: str, code: int | None, last_words: str) -> None:
        how = "did not answer" if code is None else f"ended with exit code {code}"
        if code is not None and code < 0:
            how = f"was ended by signal {-code}"
        said = f":\n{last_words}" if last_words.strip() else ", without a word"
        super().__init__(f"the program that is measured {how} ({side}){said}")


class RefusedError(PyrometerError):
    """The two sides may not be compared."""

    exit_code = REFUSED


class NotHaltedError(Exception):
    """A program has started threads or processes that go on while it waits, and nobody has halted them."""
