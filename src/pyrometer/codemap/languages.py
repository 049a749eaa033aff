"""The languages whose lines are counted, and how: by comments that fill a line."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from pyrometer.codemap.python_lines import lines_of
from pyrometer.record.code_map import LineCounts

PYTHON, NOTEBOOK = "Python", "Jupyter notebook"

# What has no end goes to that of the line or text: to look for one from every quote would take forever.
_QUOTED = r'"(?:\\.|[^"\\\n])*(?:"|(?=\n)|\Z)' + r"|'(?:\\.|[^'\\\n])*(?:'|(?=\n)|\Z)"
_IN_BACKTICKS = r"`(?:\\.|[^`\\])*(?:`|\Z)"
# In Rust a quote alone is the name of a lifetime.
_QUOTED_RUST = (
    r'"(?:\\.|[^"\\])*(?:"|\Z)' + r"|'(?:\\.|[^'\\\n])'" + r'|r(?P<hashes>#*)".*?(?:"(?P=hashes)|\Z)'
)
# R, and before it the end of no name, but for what says how a text is encoded. It begins with a letter: fast.
_QUOTED_CPP = r'R(?<![A-KM-TV-Za-tv-z0-79_]R)"(?P<mark>[^()\\\s]{0,16})\(.*?(?:\)(?P=mark)"|\Z)|' + _QUOTED
_MARK = "\0"
_IN_A_LINE = re.compile(r"[^\n]+")


@dataclass(frozen=True)
class Language:
    """How comments are written; strings are there because what looks like one in them is none."""

    name: str
    line_comment: str | None = None
    block_comment: tuple[str, str] | None = None
    strings: str | None = None
    """A pattern for those in which the beginning of a comment may stand."""

    @cached_property
    def _comments_and_strings(self) -> re.Pattern[str] | None:
        comments = []
        if self.line_comment is not None:
            # A sharp in the middle of a word or an address is none.
            before = r"(?<![^\s;])" if self.line_comment == "#" else ""
            comments.append(f"{before}{re.escape(self.line_comment)}[^\n]*")
        if self.block_comment is not None:
            begin, end = map(re.escape, self.block_comment)
            comments.append(f"{begin}.*?(?:{end}|(?P<endless>\\Z))")
        elif comments:
            comments.append("(?P<endless>(?!))")
        if not comments:
            return None
        strings = f"(?P<string>{self.strings})|" if self.strings else ""
        return re.compile(f"{strings}(?P<comment>{'|'.join(comments)})", re.DOTALL)

    def count(self, text: str) -> LineCounts:
        """Blank: nothing but white space. Comment: that, and comments. Code: all else."""
        lines = lines_of(text)
        pattern = self._comments_and_strings
        left = lines if pattern is None else lines_of(pattern.sub(_without_comment, text.replace(_MARK, " ")))
        blank = comment = 0
        for line, rest in zip(lines, left, strict=True):
            if not line.strip():
                blank += 1
            elif not rest.replace(_MARK, "").strip():
                comment += 1
        total = len(lines)
        return LineCounts(total=total, code=total - blank - comment, comment=comment, blank=blank)


def _without_comment(found: re.Match[str]) -> str:
    # One that never ends is none: it stands in a pattern or the like.
    is_comment = found["comment"] is not None and found["endless"] is None
    return _IN_A_LINE.sub(_MARK, found[0]) if is_comment else found[0]


def _like_c(name: str, strings: str = _QUOTED) -> Language:
    return Language(name, line_comment="//", block_comment=("/*", "*/"), strings=strings)


def _with_sharps(name: str) -> Language:
    return Language(name, line_comment="#", strings=_QUOTED)


_MARKUP = ("<!--", "-->")

BY_ENDING: Mapping[str, Language] = {
    ".pyx": _with_sharps("Cython"),
    ".pxd": _with_sharps("Cython"),
    ".c": _like_c("C"),
    ".h": _like_c("C/C++ header", _QUOTED_CPP),
    ".hh": _like_c("C/C++ header", _QUOTED_CPP),
    ".hpp": _like_c("C/C++ header", _QUOTED_CPP),
    ".cc": _like_c("C++", _QUOTED_CPP),
    ".cpp": _like_c("C++", _QUOTED_CPP),
    ".cxx": _like_c("C++", _QUOTED_CPP),
    ".cu": _like_c("CUDA", _QUOTED_CPP),
    ".cuh": _like_c("CUDA", _QUOTED_CPP),
    ".rs": _like_c("Rust", _QUOTED_RUST),
    ".cs": _like_c("C#"),
    ".go": _like_c("Go", f"{_QUOTED}|{_IN_BACKTICKS}"),
    ".java": _like_c("Java"),
    ".js": _like_c("JavaScript", f"{_QUOTED}|{_IN_BACKTICKS}"),
    ".mjs": _like_c("JavaScript", f"{_QUOTED}|{_IN_BACKTICKS}"),
    ".jsx": _like_c("JavaScript", f"{_QUOTED}|{_IN_BACKTICKS}"),
    ".ts": _like_c("TypeScript", f"{_QUOTED}|{_IN_BACKTICKS}"),
    ".tsx": _like_c("TypeScript", f"{_QUOTED}|{_IN_BACKTICKS}"),
    ".css": Language("CSS", block_comment=("/*", "*/"), strings=_QUOTED),
    ".html": Language("HTML", block_comment=_MARKUP),
    ".sh": _with_sharps("shell"),
    ".bash": _with_sharps("shell"),
    ".zsh": _with_sharps("shell"),
    ".yaml": _with_sharps("YAML"),
    ".yml": _with_sharps("YAML"),
    ".toml": _with_sharps("TOML"),
    ".cmake": _with_sharps("CMake"),
    ".md": Language("Markdown", block_comment=_MARKUP),
    ".rst": Language("reStructuredText"),
}
BY_NAME: Mapping[str, Language] = {
    "Makefile": _with_sharps("Make"),
    "CMakeLists.txt": _with_sharps("CMake"),
    "Dockerfile": _with_sharps("Dockerfile"),
}
PYTHON_ENDINGS = frozenset({".py", ".pyi", ".pyw"})
NOTEBOOK_ENDING = ".ipynb"
