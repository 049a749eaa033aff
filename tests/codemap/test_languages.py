"""Lines of other languages: what fills a line decides."""

import pytest

from pyrometer.codemap.languages import BY_ENDING, BY_NAME


def count(ending: str, text: str) -> tuple[int, int, int]:
    """Code, comment and blank lines."""
    language = BY_ENDING.get(ending) or BY_NAME[ending]
    lines = language.count(text)
    assert lines.total == lines.code + lines.comment + lines.blank == len(text.splitlines())
    return lines.code, lines.comment, lines.blank


@pytest.mark.parametrize("ending", [".c", ".h", ".cpp", ".cu", ".rs", ".cs", ".js", ".ts", ".go", ".java"])
def test_comments_as_in_c(ending: str) -> None:
    text = 'int x = 1; // why\n// alone\n\n/* a\n\n b */\n/* before */ int y;\ns = "/* no */ // no";\n'
    assert count(ending, text) == (3, 3, 2)


@pytest.mark.parametrize("ending", [".sh", ".yaml", ".toml", ".pyx", ".cmake", "Makefile", "Dockerfile"])
def test_comments_with_sharps(ending: str) -> None:
    text = '# alone\nx: "# no"\n  # indented\ny: http://a/#b\n\nz: 1 # behind\n'
    assert count(ending, text) == (3, 2, 1)


def test_a_lifetime_is_no_string() -> None:
    text = "fn f<'a>(x: &'a str) {} // behind\n// it's alone\nlet r = r#\"/* \"# ; /* c */\n"
    assert count(".rs", text) == (2, 1, 0)


def test_a_string_over_several_lines_hides_comments() -> None:
    assert count(".js", "x = `\n// text\n`;\n// comment\n") == (3, 1, 0)


def test_markup() -> None:
    text = "# Title\n\n<!-- a\nb -->\ntext <!-- c -->\n"
    assert count(".md", text) == (2, 2, 1)
    assert count(".html", text) == (2, 2, 1)


def test_a_comment_that_does_not_end_is_none() -> None:
    assert count(".c", "int x;\n/* a\nb\n") == (3, 0, 0)
    assert count(".js", "const slashes = /[/*]/;\nf();\n") == (2, 0, 0)


@pytest.mark.parametrize("ending", [".js", ".c", ".rs", ".sh"])
@pytest.mark.parametrize(
    "piece", ['\\"\\\n', '\\"', "\\`", 'r#"', 'R"(', "/*", "'", "\\'\n", "\\`\n", '\\"\n']
)
def test_no_text_takes_forever(ending: str, piece: str) -> None:
    # A hundred times as much work would be seen: by whoever waits for this test.
    lines = count(ending, f'"`{piece * 300_000}')
    assert sum(lines) == max(1, piece.count("\n") * 300_000)


def test_raw_strings_may_hold_what_looks_like_a_comment() -> None:
    assert count(".cpp", 'auto x = R"x(\n/* "no )" comment\n)x";\n// one\n/* two */\n') == (3, 2, 0)
    assert count(".cpp", 'auto x = R"(/*\n// still inside\n') == (2, 0, 0)
    assert count(".cpp", 'x = FOOR"("; /* a\nb */\n') == (1, 1, 0)
    assert count(".rs", 'let x = r#"/* "\n"#;\n// one\n') == (2, 1, 0)


def test_nothing_and_a_last_line_without_its_end() -> None:
    assert count(".c", "") == (0, 0, 0)
    assert count(".c", "int x;\n// c") == (1, 1, 0)


def test_a_byte_of_nothing_in_a_text_is_code() -> None:
    assert count(".c", "\0x\n//\0\n") == (1, 1, 0)
