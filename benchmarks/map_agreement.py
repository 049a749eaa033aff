"""Whether the code map counts and finds what others do: lines, and imports.

    python benchmarks/map_agreement.py [--packages rich typer …] [--sampled N]

Lines of Python: by Python's own tokens, on the standard library and packages; all lines, code, comments,
docstrings and blank ones must be the same in every file. Where cloc is installed: all lines and blank ones
of every file, in every language that both count, but that a blank line after a backslash is code for it.
Imports: the edges that grimp finds. And of sampled modules, imported in processes of their own: what they
import at run time must be known to the map.
"""

import argparse
import csv
import importlib.util
import io
import itertools
import json
import random
import shutil
import subprocess
import sys
import sysconfig
import tokenize
from collections.abc import Iterator
from pathlib import Path

import grimp

from pyrometer.analysis.codemap.imports import find_imports, modules_of
from pyrometer.codemap.mapping import make_map
from pyrometer.record.code_map import CodeMap, FileFacts, ImportKind

PACKAGES = ("rich", "hypothesis", "psutil")
_COMPOUND = frozenset(
    ["def", "class", "if", "elif", "else", "for", "while", "with", "try", "except", "finally", "async"]
)
_TRACED = """
import builtins, json, sys
name = sys.argv[1]
found = set()
before = builtins.__import__
def traced(module, globals=None, locals=None, fromlist=(), level=0):
    if (globals or {}).get("__name__") == name:
        found.add((module, tuple(fromlist or ()), level))
    return before(module, globals, locals, fromlist, level)
builtins.__import__ = traced
try:
    __import__(name)
except BaseException as error:
    print(json.dumps({"error": repr(error)}))
else:
    print(json.dumps({"package": sys.modules[name].__package__, "imports": sorted(found)}))
"""


def main() -> int:
    """Compare all, and say how many agree."""
    options = _options()
    roots = {"standard library": Path(sysconfig.get_path("stdlib"))}
    roots |= {name: _folder_of(name) for name in options.packages}
    agreed = True
    for name, root in roots.items():
        code, _ = make_map(root.resolve(), project=root, with_vendored=True)
        agreed &= _lines_agree(name, code)
        agreed &= _cloc_agrees(name, code)
    for name in options.packages:
        code, _ = make_map(roots[name].resolve(), project=roots[name], with_vendored=True)
        agreed &= edges_agree(name, code)
        agreed &= _run_time_agrees(name, code, options.sampled // len(options.packages) + 1)
    print("PASS" if agreed else "FAIL")
    return 0 if agreed else 1


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description="Whether the code map agrees with others.")
    parser.add_argument("--packages", nargs="+", default=PACKAGES)
    parser.add_argument("--sampled", type=int, default=50, help="modules that are imported")
    return parser.parse_args()


def _folder_of(package: str) -> Path:
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        sys.exit(f"there is no package {package}; install it, or name others")
    return Path(spec.submodule_search_locations[0])


# Lines.


def _lines_agree(name: str, code: CodeMap) -> bool:
    files = [file for file in code.files if file.language == "Python" and file.problem is None]
    differing = [file.path for file in files if not _as_its_tokens_say(code, file)]
    problems = sum(file.problem is not None for file in code.files)
    print(
        f"{name}: lines of {len(files) - len(differing):,} of {len(files):,} Python files as their tokens "
        f"say; {problems} could not be read by Python"
    )
    _show(differing)
    return not differing


def _as_its_tokens_say(code: CodeMap, file: FileFacts) -> bool:
    data = (Path(code.root) / file.path).read_bytes()
    text = data.decode(tokenize.detect_encoding(io.BytesIO(data).readline)[0])
    lines = file.lines
    told = count_by_tokens(text.replace("\r\n", "\n").replace("\r", "\n"))
    return (lines.code, lines.comment, lines.docstring, lines.blank) == told


def count_by_tokens(text: str) -> tuple[int, int, int, int]:
    """Code, comments, docstrings and blank lines: a statement that is nothing but strings is a docstring."""
    code, documentation = _lines_of_statements(text)
    lines = text.split("\n")
    counts = {"code": 0, "comment": 0, "docstring": 0, "blank": 0}
    for number, line in enumerate(lines[:-1] if lines[-1] == "" else lines, start=1):
        if not line.strip():
            counts["blank"] += 1
        elif number in code:
            counts["code"] += 1
        else:
            counts["docstring" if number in documentation else "comment"] += 1
    return counts["code"], counts["comment"], counts["docstring"], counts["blank"]


def _lines_of_statements(text: str) -> tuple[set[int], set[int]]:
    """The lines that hold code, and those of statements that are nothing but strings."""
    code: set[int] = set()
    documentation: set[int] = set()
    for statement in _statements(text):
        target = documentation if all(map(_is_plain_string, statement)) else code
        for one in statement:
            target.update(range(one.start[0], one.end[0] + 1))
    return code, documentation


def _statements(text: str) -> Iterator[list[tokenize.TokenInfo]]:
    statement: list[tokenize.TokenInfo] = []
    without_text = {tokenize.NL, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER, tokenize.COMMENT}
    for one in tokenize.generate_tokens(io.StringIO(text).readline):
        is_header = one.string == ":" and _is_header(statement)
        if one.type not in without_text:
            statement.append(one)
        if one.type == tokenize.NEWLINE or (one.type == tokenize.OP and one.string == ";") or is_header:
            yield statement if is_header else statement[:-1]
            statement = []
    yield statement


def _is_header(statement: list[tokenize.TokenInfo]) -> bool:
    """Whether what was read so far is all before the body of a compound statement, which may follow."""
    if not statement or statement[0].string not in _COMPOUND:
        return False
    texts = [one.string for one in statement if one.type == tokenize.OP]
    return sum(text in "([{" for text in texts) == sum(text in ")]}" for text in texts)


def _is_plain_string(one: tokenize.TokenInfo) -> bool:
    prefix = one.string[: one.string.find(one.string[-1])].lower()
    return one.type == tokenize.STRING and not {"b", "f", "t"} & set(prefix)


def _cloc_agrees(name: str, code: CodeMap) -> bool:
    if shutil.which("cloc") is None:
        print(f"{name}: cloc is not installed")
        return True
    known = {file.path: file.lines for file in code.files}
    both = differing = same_comments = 0
    shown: list[str] = []
    for path, blank, comment, total in _by_cloc(code):
        lines = known.get(path)
        if lines is None:
            continue
        both += 1
        # In languages in which a backslash continues a line; in others it does not for cloc either.
        blanks = {lines.blank, lines.blank - _continued(Path(code.root) / path)}
        if lines.total != total or blank not in blanks:
            differing += 1
            shown.append(path)
        same_comments += lines.comment + lines.docstring == comment
    print(
        f"{name}: all lines and blank ones of {both - differing:,} of {both:,} files as cloc has them; its "
        f"comments are our comments and docstrings in {same_comments:,}"
    )
    _show(shown)
    return differing == 0


def _continued(path: Path) -> int:
    """Blank lines after one that ends with a backslash, which are code for cloc."""
    lines = path.read_bytes().replace(b"\r\n", b"\n").split(b"\n")
    return sum(before.endswith(b"\\") and not line.strip() for before, line in itertools.pairwise(lines[:-1]))


def _by_cloc(code: CodeMap) -> Iterator[tuple[str, int, int, int]]:
    command = ["cloc", "--by-file", "--csv", "--quiet", "--skip-uniqueness", "--timeout", "0", "."]
    done = subprocess.run(command, cwd=code.root, capture_output=True, text=True, check=True)
    for row in csv.reader(done.stdout.splitlines()):
        if len(row) >= 5 and row[2].isdigit():
            blank, comment, lines = map(int, row[2:5])
            yield row[1].removeprefix("./"), blank, comment, blank + comment + lines


# Imports.


def edges_agree(name: str, code: CodeMap) -> bool:
    """Whether the edges of a package are those that grimp finds."""
    graph = grimp.build_graph(name, cache_dir=None)
    theirs = {
        (module, imported)
        for module in graph.modules
        for imported in graph.find_modules_directly_imported_by(module)
        if module != imported
    }
    stubs = {module for module, file in modules_of(code.files).items() if file.path.endswith(".pyi")}
    ours = {(edge.importer, edge.imported) for edge in find_imports(code).edges if edge.importer not in stubs}
    # Grimp knows no stubs: what is in one is for it something in the package.
    instead = {(one, other.rpartition(".")[0]) for one, other in ours if other in stubs}
    differing = ({one for one in ours if one[1] not in stubs} - instead) ^ (theirs - instead)
    print(f"{name}: {len(theirs):,} edges of grimp, {len(ours):,} of ours; {len(differing)} differ")
    _show(sorted(map(" → ".join, differing)))
    return not differing


def _run_time_agrees(name: str, code: CodeMap, count: int) -> bool:
    modules = [module for module, file in modules_of(code.files).items() if file.path.endswith(".py")]
    chosen = random.Random(0).sample(sorted(modules), min(count, len(modules)))
    known = modules_of(code.files)
    tried = 0
    differing = []
    for module in chosen:
        command = [sys.executable, "-c", _TRACED, module]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        told = json.loads(done.stdout.splitlines()[-1]) if done.stdout.strip() else {"error": "no word"}
        if "error" in told:
            continue  # what cannot be imported here says nothing
        tried += 1
        differing += _unknown(known[module], told)
    print(f"{name}: of {tried} modules imported, {len(differing)} imports at run time are not on the map")
    _show(differing)
    return not differing


def _unknown(file: FileFacts, told: dict[str, object]) -> list[str]:
    """The statements that were carried out in a module and that the map does not have."""
    found = {one.module for one in file.imports if one.kind is not ImportKind.TYPING}
    missing = []
    imports = told["imports"]
    package = str(told["package"] or "")
    for module, _, level in imports if isinstance(imports, list) else []:
        around = package.split(".")[: len(package.split(".")) - level + 1] if level else []
        name = ".".join([*around, *([module] if module else [])])
        if name not in found:
            missing.append(f"{file.path}: {name}")
    return missing


def _show(differing: list[str]) -> None:
    for one in differing[:10]:
        print(f"    {one}")
    if len(differing) > 10:
        print(f"    and {len(differing) - 10} more")


if __name__ == "__main__":
    sys.exit(main())
