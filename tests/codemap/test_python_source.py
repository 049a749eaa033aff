"""What a Python file holds, from its text."""

import io
import sys
import sysconfig
import textwrap
import tokenize
from pathlib import Path
from types import ModuleType

import pytest

from pyrometer.codemap.python_source import PythonFacts, absolute_name, read_python
from pyrometer.record.code_map import ImportKind


def read(source: str, *, package: str = "pack.inner") -> PythonFacts:
    return read_python(textwrap.dedent(source).lstrip("\n"), package=package)


def kinds(source: str) -> tuple[int, int, int, int, int]:
    """Code, comment, docstring, blank lines, and those of code that are inside of strings."""
    lines = read(source).lines
    assert lines.total == lines.code + lines.comment + lines.docstring + lines.blank
    return lines.code, lines.comment, lines.docstring, lines.blank, lines.in_strings


class TestLines:
    def test_each_kind(self) -> None:
        source = '''
        """What it is.

        More of it.
        """
        # a comment
        import os  # and code

        X = 1
        """An attribute's own words."""
        '''
        assert kinds(source) == (2, 1, 4, 2, 0)

    def test_a_sharp_inside_of_a_string_is_no_comment(self) -> None:
        source = '''
        TEXT = """
        # not a comment

        """
        '''
        assert kinds(source) == (3, 0, 0, 1, 1)

    def test_a_comment_between_the_parts_of_a_string_is_one(self) -> None:
        source = '''
        TEXT = (
            "a"
            # why there is more
            """b
            # text"""
        )
        '''
        assert kinds(source) == (5, 1, 0, 0, 0)

    def test_what_shares_its_line_with_code_is_code(self) -> None:
        source = '''
        def f(): "said beside"
        x = 1; """begun behind code
        goes on"""
        """ended
        before code"""; y = 2
        '''
        assert kinds(source) == (3, 0, 2, 0, 0)

    def test_a_docstring_with_a_comment_behind_it_is_still_one(self) -> None:
        assert kinds('"""words"""  # noqa') == (0, 0, 1, 0, 0)

    def test_strings_that_are_used_are_code(self) -> None:
        source = '''
        print("""
        one
        two
        """)
        f"""{1
        } text
        """
        '''
        assert kinds(source) == (7, 0, 0, 0, 3)

    def test_columns_are_counted_in_bytes_as_python_does(self) -> None:
        assert kinds('x = "ä"; """ü\n# no comment"""; y = 1') == (2, 0, 0, 0, 0)

    @pytest.mark.parametrize(("source", "total"), [("", 0), ("\n", 1), ("x = 1", 1), ("x = 1\n", 1)])
    def test_the_last_line_may_lack_its_end(self, source: str, total: int) -> None:
        assert read_python(source, package="").lines.total == total

    def test_of_the_standard_library_each_line_is_what_its_tokens_say(self, agreement: ModuleType) -> None:
        files = sorted(Path(sysconfig.get_path("stdlib")).glob("*.py"))[::4]
        assert len(files) > 30
        for file in files:
            data = file.read_bytes()
            text = data.decode(tokenize.detect_encoding(io.BytesIO(data).readline)[0])
            lines = read_python(text.replace("\r\n", "\n"), package="").lines
            assert (lines.code, lines.comment, lines.docstring, lines.blank) == agreement.count_by_tokens(
                text
            ), file


def complexity(source: str) -> dict[str, int]:
    return {one.name: one.complexity for one in read(source).functions}


def test_functions_have_the_names_of_what_is_around_them_and_their_lines() -> None:
    source = """
    class Model:
        @property
        @staticmethod
        def size():
            return 1

        class Part:
            async def run(self):
                def inner():
                    pass
                return inner
    """
    found = [(one.name, one.line, one.lines) for one in read(source).functions]
    assert found == [
        ("Model.size", 2, 4),
        ("Model.Part.run", 8, 4),
        ("Model.Part.run.<locals>.inner", 9, 2),
    ]
    assert read(source).classes == 2


def test_complexity_counts_what_decides() -> None:
    source = """
    def plain():
        with open("x") as f:
            return f

    def branches(x):
        if x and (x > 1 or x < 5):
            return 1
        elif x:
            return 2
        else:
            return 3 if x else 4

    def loops(xs):
        for x in xs:
            while x:
                pass
        return [y for y in xs if y if y > 1]

    def fails():
        try:
            pass
        except ValueError:
            pass
        except KeyError:
            pass

    def matches(x):
        match x:
            case 1:
                pass
            case _:
                pass
    """
    assert complexity(source) == {"plain": 1, "branches": 6, "loops": 6, "fails": 3, "matches": 3}


def test_a_function_inside_counts_for_itself_and_a_class_for_what_it_is_in() -> None:
    source = """
    def outer(x):
        def inner(y):
            return y if y else x
        return inner

    class Config:
        value = 1 if X else 2
    """
    assert complexity(source) == {"outer": 1, "outer.<locals>.inner": 2}
    assert read(source).complexity == 2 + 1 + 2


def test_a_thousand_branches_are_no_deep_recursion() -> None:
    branches = "".join(f"elif x == {number}:\n    pass\n" for number in range(1, 900))
    source = f"def f(x):\n    if x == 0:\n        pass\n{textwrap.indent(branches, '    ')}"
    assert complexity(source) == {"f": 901}


def imports(source: str) -> list[tuple[str, str | None, str]]:
    return [(one.module, one.name, one.kind.value) for one in read(source).imports]


def test_imports_are_told_apart_by_when_they_are_carried_out() -> None:
    source = """
    import os, sys as system
    from json import loads
    try:
        import fast
    except ImportError:
        fast = None
    if sys.platform == "linux":
        import fcntl
    if TYPE_CHECKING:
        from typing_only import X
        if sys.version_info > (3, 12):
            import newer
    else:
        X = object
        import here
    if typing.TYPE_CHECKING:
        import other
    class Held:
        import in_class
    def f():
        import lazy
        if TYPE_CHECKING:
            import never
    """
    assert imports(source) == [
        ("os", None, "always"),
        ("sys", None, "always"),
        ("json", "loads", "always"),
        ("fast", None, "conditional"),
        ("fcntl", None, "conditional"),
        ("typing_only", "X", "typing"),
        ("newer", None, "typing"),
        ("here", None, "always"),
        ("other", None, "typing"),
        ("in_class", None, "always"),
        ("lazy", None, "lazy"),
        ("never", None, "typing"),
    ]


@pytest.mark.parametrize(
    ("module", "level", "package", "absolute"),
    [
        ("a.b", 0, "pack", "a.b"),
        (None, 1, "pack.inner", "pack.inner"),
        ("x", 1, "pack.inner", "pack.inner.x"),
        ("x", 2, "pack.inner", "pack.x"),
        (None, 2, "pack.inner", "pack"),
        ("x", 3, "pack.inner", "...x"),
        ("x", 1, "", "x"),
        (None, 1, "", ""),
    ],
)
def test_relative_imports(module: str | None, level: int, package: str, absolute: str) -> None:
    assert absolute_name(module, level, package=package) == absolute


def test_an_import_from_above_everything_stays_as_it_is() -> None:
    assert imports("from .... import x") == [("....", "x", "always")]


def test_type_checking_may_be_asked_for_in_other_ways() -> None:
    source = """
    if not TYPE_CHECKING:
        import here
    else:
        import for_types
    if TYPE_CHECKING and sys.version_info > (3, 12):
        import newer
    else:
        import other
    if TYPE_CHECKING or X:
        import perhaps
    """
    assert [one[::2] for one in imports(source)] == [
        ("here", "always"),
        ("for_types", "typing"),
        ("newer", "typing"),
        ("other", "conditional"),
        ("perhaps", "conditional"),
    ]


def test_several_names_of_one_statement_are_told_one_by_one() -> None:
    assert imports("from . import a, b\nfrom .a import *") == [
        ("pack.inner", "a", ImportKind.ALWAYS),
        ("pack.inner", "b", ImportKind.ALWAYS),
        ("pack.inner.a", "*", ImportKind.ALWAYS),
    ]


@pytest.mark.parametrize("source", ["def f(:", "x = \0", "print 'two'", "x = " + "(" * 500 + ")" * 500])
def test_what_python_would_not_take_is_said(source: str) -> None:
    with pytest.raises((SyntaxError, ValueError, RecursionError, MemoryError)):
        read_python(source, package="")


@pytest.mark.filterwarnings("error")
def test_warnings_about_the_users_code_are_the_users() -> None:
    assert read_python("x = '\\d'\nx is 1\n", package="").lines.code == 2


def test_it_is_the_python_that_runs_which_reads() -> None:
    is_new = sys.version_info >= (3, 12)
    source = "type Alias = int\n"
    if is_new:
        assert read_python(source, package="").lines.code == 1
    else:
        with pytest.raises(SyntaxError):
            read_python(source, package="")
