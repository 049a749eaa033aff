import io
from collections.abc import Mapping

import pytest

from pyrometer.report import Screen


class FakeStream(io.TextIOWrapper):
    def __init__(self, *, terminal: bool, encoding: str = "utf-8") -> None:
        super().__init__(io.BytesIO(), encoding=encoding)
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    def fileno(self) -> int:
        return 7


def screen_of(stream: FakeStream, environment: Mapping[str, str]) -> Screen:
    return Screen.of(stream, environment=environment, terminal_size=lambda descriptor: (100 + descriptor, 24))


def test_a_terminal_gets_its_width_and_colours() -> None:
    screen = screen_of(FakeStream(terminal=True), {"TERM": "xterm"})
    assert screen == Screen(width=107, color=True, ascii_only=False)


def test_a_pipe_gets_80_columns_without_colours() -> None:
    assert screen_of(FakeStream(terminal=False), {}) == Screen(width=80, color=False, ascii_only=False)


@pytest.mark.parametrize("environment", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_colours_can_be_refused(environment: Mapping[str, str]) -> None:
    assert not screen_of(FakeStream(terminal=True), environment).color


@pytest.mark.parametrize(
    ("columns", "width"), [("132", 132), ("0", 80), ("wide", 80), ("-5", 80), ("9999", 160)]
)
def test_columns_in_the_environment_are_believed_when_they_make_sense(columns: str, width: int) -> None:
    assert screen_of(FakeStream(terminal=False), {"COLUMNS": columns}).width == width


def test_a_terminal_that_does_not_know_its_size_gets_80_columns() -> None:
    def no_size(_descriptor: int) -> tuple[int, int]:
        raise OSError("not a terminal after all")

    screen = Screen.of(FakeStream(terminal=True), environment={}, terminal_size=no_size)
    assert screen.width == 80


@pytest.mark.parametrize(("encoding", "ascii_only"), [("utf-8", False), ("ascii", True), ("latin-1", True)])
def test_an_encoding_without_box_characters_asks_for_ascii(encoding: str, ascii_only: bool) -> None:
    assert screen_of(FakeStream(terminal=True, encoding=encoding), {}).ascii_only is ascii_only
