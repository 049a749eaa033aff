"""Reads Markdown as far as tests/test_docs.py needs it: fences, commands, headings, links."""

import re
import shlex
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

_FENCE = re.compile(r"^(?P<indent> *)(?P<marks>`{3,}|~{3,})(?P<info>[^`]*)$")
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<target>[^)\s]+)(?:\s+\"[^\"]*\")?\)")
_HEADING = re.compile(r"^#{1,6} +(?P<title>.*?)\s*#*$")
_ASSIGNMENT = re.compile(r"^\w+=")


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One fenced block; ``first_line`` is the number of the line after its opening fence."""

    language: str
    rest: str
    """What follows the language on the fence: ``no-run: needs a GPU``, ``file=train.py``."""
    first_line: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """A line of a console block after its ``$``, continuation lines joined."""

    text: str
    line: int

    @property
    def words(self) -> list[str]:
        """The command and its arguments, less the settings in front: ``A=1 python x`` gives ``python x``."""
        words = shlex.split(self.text, comments=True)
        while words and _ASSIGNMENT.match(words[0]):
            words.pop(0)
        return words


@dataclass(frozen=True, slots=True, kw_only=True)
class Document:
    """One Markdown file, cut into prose and fenced blocks."""

    path: Path
    prose: tuple[str, ...]
    blocks: tuple[Block, ...]

    def commands(self) -> Iterator[Command]:
        """What a reader would type, in order."""
        for block in self.blocks:
            if block.language in {"bash", "console", "sh", "shell"}:
                yield from _commands(block)

    def anchors(self) -> set[str]:
        """What ``#…`` can name in this file, by the rule of GitHub."""
        titles = [match["title"] for line in self.prose if (match := _HEADING.match(line))]
        return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}

    def links(self) -> Iterator[str]:
        """The targets of links that stay inside the repository."""
        for line in self.prose:
            for match in _LINK.finditer(re.sub(r"`[^`]*`", "", line)):
                if not re.match(r"[a-z]+:", match["target"]):
                    yield match["target"]


def read_document(path: Path) -> Document:
    """The file at ``path``; an unclosed fence is a ValueError."""
    prose: list[str] = []
    blocks: list[Block] = []
    lines = iter(enumerate(path.read_text(encoding="utf-8").splitlines(), start=1))
    for number, line in lines:
        opening = _FENCE.match(line)
        if opening is None:
            prose.append(line)
            continue
        body = list(_body(lines, opening["marks"], len(opening["indent"]), f"{path}:{number}"))
        language, _, rest = opening["info"].strip().partition(" ")
        blocks.append(Block(language=language, rest=rest, first_line=number + 1, lines=tuple(body)))
    return Document(path=path, prose=tuple(prose), blocks=tuple(blocks))


def _body(lines: Iterator[tuple[int, str]], marks: str, indent: int, place: str) -> Iterator[str]:
    for _, line in lines:
        if line.strip().startswith(marks) and not line.strip().strip(marks[0]):
            return
        yield line[min(indent, len(line) - len(line.lstrip())) :]
    raise ValueError(f"{place}: a fence is opened and never closed")


def _commands(block: Block) -> Iterator[Command]:
    lines = iter(enumerate(block.lines, start=block.first_line))
    for number, line in lines:
        if not line.startswith("$ "):
            continue
        text = line[2:]
        while text.endswith("\\"):
            _, continuation = next(lines)
            text = text[:-1] + continuation.removeprefix("> ")
        yield Command(text=text, line=number)
