"""What a Python file holds: its lines, functions, classes and imports, from its syntax tree alone."""

import ast
import gc
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from pyrometer.codemap.python_lines import PlacedString, count_python_lines
from pyrometer.record.code_map import FunctionFacts, ImportFact, ImportKind, LineCounts

_DECIDES = frozenset(
    {
        ast.If, ast.IfExp, ast.For, ast.AsyncFor, ast.While, ast.ExceptHandler, ast.match_case,
        ast.comprehension,
    }
)  # fmt: skip
_MAY_NOT_RUN = (
    ast.If, ast.Try, ast.TryStar, ast.For, ast.AsyncFor, ast.While, ast.With, ast.AsyncWith, ast.Match,
)  # fmt: skip
"""Statements in which an import is not carried out for sure: a ``with`` may swallow its failure."""
_LEAVES = frozenset({ast.Name, ast.Load, ast.Store, ast.Del, ast.Pass, ast.Break, ast.Continue})


@dataclass(frozen=True, slots=True, kw_only=True)
class PythonFacts:
    """What the tree of a file tells."""

    lines: LineCounts
    functions: tuple[FunctionFacts, ...]
    classes: int
    complexity: int
    imports: tuple[ImportFact, ...]


def read_python(text: str, *, package: str) -> PythonFacts:
    """What the text of a file holds; lines end with a single character. ``package`` is the one it is in.

    Raises ``SyntaxError`` or ``ValueError`` for what Python would not take, ``RecursionError`` or
    ``MemoryError`` for what is nested too deeply.
    """
    with _undisturbed():
        reader = _Reader(package)
        reader.read(ast.parse(text))
    functions = tuple(
        FunctionFacts(name=name, line=first, lines=last - first + 1, complexity=owner.complexity)
        for first, last, name, owner in sorted(reader.functions, key=lambda one: one[:3])
    )
    return PythonFacts(
        lines=count_python_lines(text, documentation=reader.documentation, strings=reader.strings),
        functions=functions,
        classes=reader.classes,
        complexity=reader.module.complexity + sum(one.complexity for one in functions),
        imports=tuple(sorted(reader.imports, key=lambda one: one.line)),
    )


@contextmanager
def _undisturbed() -> Iterator[None]:
    """Without warnings about the user's code, and without looking for garbage among what is all in use."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        if was_enabled:
            gc.enable()


@dataclass(slots=True)
class _Owner:
    """What decisions count for: a function, or the module's own level."""

    complexity: int = 1


class _Around(NamedTuple):
    """Where in the tree a node is."""

    owner: _Owner
    prefix: str
    """Of the names of functions and classes there."""
    kind: ImportKind
    """Of imports there."""


@dataclass(slots=True)
class _Reader:
    """Goes through a tree without recursion: a chain of a thousand ``elif`` is a tree a thousand deep."""

    package: str
    module: _Owner = field(default_factory=_Owner)
    functions: list[tuple[int, int, str, _Owner]] = field(default_factory=list)
    """First line, last line, name."""
    classes: int = 0
    imports: list[ImportFact] = field(default_factory=list)
    documentation: list[PlacedString] = field(default_factory=list)
    """Strings that are statements by themselves."""
    strings: list[PlacedString] = field(default_factory=list)
    """All that go over several lines."""
    _left: list[tuple[Any, _Around]] = field(default_factory=list)

    def read(self, tree: ast.Module) -> None:
        left = self._left
        left.append((tree, _Around(self.module, "", ImportKind.ALWAYS)))
        while left:
            node, around = left.pop()
            of = node.__class__
            if of in _DECIDES:
                around.owner.complexity += 1
            handler = _HANDLERS.get(of)
            inner = around if handler is None else handler(self, node, around)
            if inner is not None:
                self._go_into(node.__dict__.values(), inner)

    def _go_into(self, values: Iterable[Any], around: _Around) -> None:
        push = self._left.append
        for value in values:
            if value.__class__ is list:
                for item in value:
                    if isinstance(item, ast.AST) and item.__class__ not in _LEAVES:
                        push((item, around))
            elif isinstance(value, ast.AST) and value.__class__ not in _LEAVES:
                push((value, around))

    # What is special about a node; each says where its children are, None where they were seen to.

    def on_function(self, node: Any, around: _Around) -> _Around:
        name = f"{around.prefix}{node.name}"
        first = min([node.lineno, *(one.lineno for one in node.decorator_list)])
        owner = _Owner()
        self.functions.append((first, node.end_lineno, name, owner))
        kind = around.kind if around.kind is ImportKind.TYPING else ImportKind.LAZY
        return _Around(owner, f"{name}.<locals>.", kind)

    def on_class(self, node: Any, around: _Around) -> _Around:
        self.classes += 1
        return around._replace(prefix=f"{around.prefix}{node.name}.")

    def on_import(self, node: Any, around: _Around) -> None:
        self.imports += (
            ImportFact(module=one.name, line=node.lineno, kind=around.kind) for one in node.names
        )

    def on_import_from(self, node: Any, around: _Around) -> None:
        module = absolute_name(node.module, node.level, package=self.package)
        for one in node.names:
            # In the outermost folder ``from . import x`` is no more than ``import x``.
            what = (one.name, None) if module == "" else (module, one.name)
            self.imports.append(ImportFact(module=what[0], name=what[1], line=node.lineno, kind=around.kind))

    def on_if(self, node: Any, around: _Around) -> _Around | None:
        body, orelse = node.body, node.orelse
        test = node.test
        if test.__class__ is ast.UnaryOp and test.op.__class__ is ast.Not:
            test, body, orelse = test.operand, orelse, body
        is_part = test.__class__ is ast.BoolOp and test.op.__class__ is ast.And
        if is_part and any(map(_asks_for_type_checking, test.values)):
            self._go_into([body], around._replace(kind=ImportKind.TYPING))
            self._go_into([test, orelse], self.on_what_may_not_run(node, around))
        elif _asks_for_type_checking(test):
            self._go_into([body], around._replace(kind=ImportKind.TYPING))
            self._go_into([orelse], around)
        else:
            return self.on_what_may_not_run(node, around)
        return None

    def on_what_may_not_run(self, _node: Any, around: _Around) -> _Around:
        is_sure = around.kind is ImportKind.ALWAYS
        return around._replace(kind=ImportKind.CONDITIONAL) if is_sure else around

    def on_bool_op(self, node: Any, around: _Around) -> _Around:
        around.owner.complexity += len(node.values) - 1
        return around

    def on_comprehension(self, node: Any, around: _Around) -> _Around:
        around.owner.complexity += len(node.ifs)
        return around

    def on_expression(self, node: Any, around: _Around) -> _Around:
        value = node.value
        if value.__class__ is ast.Constant and isinstance(value.value, str):
            self.documentation.append(_placed(value))
        return around

    def on_constant(self, node: Any, _around: _Around) -> None:
        if node.end_lineno != node.lineno and isinstance(node.value, str | bytes):
            self.strings.append(_placed(node))

    def on_f_string(self, node: Any, around: _Around) -> None:
        if node.end_lineno != node.lineno:
            self.strings.append(_placed(node))
        # Before Python 3.12 constants in it have all of its lines.
        self._go_into([one for one in node.values if one.__class__ is not ast.Constant], around)


def _placed(node: Any) -> PlacedString:
    return PlacedString(node.lineno, node.col_offset, node.end_lineno, node.end_col_offset)


def absolute_name(module: str | None, level: int, *, package: str) -> str:
    """The module that an import means in that package, empty for the outermost folder itself.

    One that leads above that folder cannot be resolved, and stays as it is written.
    """
    if level == 0:
        return module or ""
    around = package.split(".") if package else []
    if level > max(len(around), 1):
        return "." * level + (module or "")
    return ".".join([*around[: len(around) - level + 1], *([module] if module else [])])


def _asks_for_type_checking(test: Any) -> bool:
    name = test.id if test.__class__ is ast.Name else getattr(test, "attr", None)
    return name == "TYPE_CHECKING"


_HANDLERS: dict[type, Callable[[_Reader, Any, _Around], _Around | None]] = {
    **dict.fromkeys(_MAY_NOT_RUN, _Reader.on_what_may_not_run),
    ast.If: _Reader.on_if,
    ast.FunctionDef: _Reader.on_function,
    ast.AsyncFunctionDef: _Reader.on_function,
    ast.ClassDef: _Reader.on_class,
    ast.Import: _Reader.on_import,
    ast.ImportFrom: _Reader.on_import_from,
    ast.BoolOp: _Reader.on_bool_op,
    ast.comprehension: _Reader.on_comprehension,
    ast.Expr: _Reader.on_expression,
    ast.Constant: _Reader.on_constant,
    ast.JoinedStr: _Reader.on_f_string,
}
