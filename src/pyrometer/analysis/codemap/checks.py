"""Rules for the structure of a project, and what breaks them."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any

from pyrometer.analysis.codemap.imports import RUNNING, Edge, ImportSite, of_kinds
from pyrometer.analysis.codemap.inventory import functions_by
from pyrometer.analysis.codemap.results import MapResults
from pyrometer.errors import UsageError
from pyrometer.record.code_map import FileFacts
from pyrometer.units import format_count


@dataclass(frozen=True, slots=True, kw_only=True)
class Forbidden:
    """Modules that may not import others: by their names, each with all that is below it."""

    importer: str
    imported: str

    def __str__(self) -> str:
        return f"{self.importer} -> {self.imported}"

    def has(self, edge: Edge, *, is_outside: bool = False) -> bool:
        """Whether it forbids the edge; what is imported may be outside of the map."""
        is_imported = _is_below if is_outside else _is_in
        return _is_in(edge.importer, self.importer) and is_imported(edge.imported, self.imported)


@dataclass(frozen=True, slots=True, kw_only=True)
class StructureRules:
    """What ``[tool.pyrometer.map]`` asks for; None: nothing."""

    forbidden: tuple[Forbidden, ...] = ()
    cycles: int | None = None
    """So many circles of modules are allowed."""
    max_file_lines: int | None = None
    """Of code."""
    max_function_lines: int | None = None
    max_complexity: int | None = None
    """Of a function."""

    @property
    def count(self) -> int:
        """How many rules there are."""
        limits = (self.cycles, self.max_file_lines, self.max_function_lines, self.max_complexity)
        return len(self.forbidden) + sum(limit is not None for limit in limits)


@dataclass(frozen=True, slots=True, kw_only=True)
class Violation:
    """Something that breaks a rule."""

    rule: str
    where: str
    """A file, with its line where there is one."""
    text: str


def parse_rules(table: Mapping[str, Any], *, where: str) -> StructureRules:
    """The rules of a table of settings; ``UsageError`` names what cannot be used."""
    for key in table:
        if key not in _KEYS:
            near = get_close_matches(key, _KEYS, n=1)
            hint = f"did you mean {near[0]!r}?" if near else f"allowed: {', '.join(_KEYS)}"
            raise UsageError(f"{where} has no key {key!r}; {hint}")
    limits = {key.replace("-", "_"): _limit(table, key, where) for key in _LIMITS}
    return StructureRules(
        forbidden=tuple(_forbidden(entry, where) for entry in _list(table.get("forbidden", []), where)),
        **limits,
    )


_LIMITS = ("cycles", "max-file-lines", "max-function-lines", "max-complexity")
_KEYS = ("forbidden", *_LIMITS)


def _limit(table: Mapping[str, Any], key: str, where: str) -> int | None:
    value = table.get(key)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int) or value < 0:
        raise UsageError(f"{where} {key} is {value!r}, but must be a whole number from 0")
    return value


def _list(value: object, where: str) -> list[object]:
    if not isinstance(value, list):
        raise UsageError(f"{where} forbidden is {value!r}, but must be a list such as ['report -> capture']")
    return value


def _forbidden(entry: object, where: str) -> Forbidden:
    names = [name.strip() for name in entry.split("->")] if isinstance(entry, str) else []
    if len(names) != 2 or not all(names):
        raise UsageError(f"{where} forbidden has {entry!r}, but an entry is 'importer -> imported'")
    return Forbidden(importer=names[0], imported=names[1])


def check_structure(results: MapResults, rules: StructureRules) -> list[Violation]:
    """All that breaks the rules, rule by rule."""
    return [violation for check in _CHECKS for violation in check(results, rules)]


def pointless_rules(results: MapResults, rules: StructureRules) -> list[Forbidden]:
    """Rules whose importer is no module of the map: they can never be broken."""
    modules = results.modules.names
    return [rule for rule in rules.forbidden if not any(_is_in(one, rule.importer) for one in modules)]


def _forbidden_edges(results: MapResults, rules: StructureRules) -> Iterator[Violation]:
    if not rules.forbidden:
        return
    imports = results.imports
    own_sites = [*(edge.sites for edge in imports.edges), *imports.without_source.values()]
    own = tuple(of_kinds((*imports.edges, *_edges_by_name(results, own_sites)), RUNNING))
    others = tuple(of_kinds(_edges_by_name(results, imports.externals.values()), RUNNING))
    for rule in rules.forbidden:
        broken = [edge for edge in own if rule.has(edge)]
        broken += (edge for edge in others if rule.has(edge, is_outside=True))
        places: dict[str, str] = {}
        for edge in broken:
            for site in edge.sites:
                places.setdefault(f"{site.path}:{site.line}", f"{edge.importer} imports {edge.imported}")
        for where, text in places.items():
            yield Violation(rule=f"{rule.importer} may not import {rule.imported}", where=where, text=text)


def _edges_by_name(results: MapResults, imports: Iterable[Iterable[ImportSite]]) -> Iterator[Edge]:
    """An edge for each name that is asked for; what is taken out of a module may be one, compiled or not."""
    sites = {(site.path, site.line, site.name): site for its in imports for site in its}
    for file in results.code.files:
        for one in file.imports:
            site = sites.get((file.path, one.line, one.module))
            if site is not None:
                names = (one.module,) if one.name is None else (one.module, f"{one.module}.{one.name}")
                for name in names:
                    yield Edge(importer=file.module or file.path, imported=name, sites=(site,))


def _is_in(module: str, name: str) -> bool:
    """Whether a module of the map has that name, or is below one that has; it may begin below the root's."""
    return _is_below(module, name) or _is_below(module.partition(".")[2], name)


def _is_below(module: str, name: str) -> bool:
    return module == name or module.startswith(f"{name}.")


def _cycles(results: MapResults, rules: StructureRules) -> Iterator[Violation]:
    if rules.cycles is None or len(results.cycles) <= rules.cycles:
        return
    allowed = "none is allowed" if not rules.cycles else f"{rules.cycles} allowed"
    for cycle in results.cycles:
        first = cycle.cut[0].sites[0]
        yield Violation(
            rule=f"{format_count(len(results.cycles), 'circle')} of modules, {allowed}",
            where=f"{first.path}:{first.line}",
            text=cycle.way_round,
        )


def _files(results: MapResults, rules: StructureRules) -> Iterator[Violation]:
    most = rules.max_file_lines
    if most is None:
        return
    for file in sorted(results.code.files, key=lambda file: -file.lines.code):
        if file.lines.code > most and _is_written(file):
            yield Violation(
                rule=f"a file has at most {most:,} lines of code",
                where=file.path,
                text=f"{file.lines.code:,} lines of code",
            )


def _is_written(file: FileFacts) -> bool:
    """By people, as code: not generated, and no document."""
    return not file.is_generated and file.language not in {"Markdown", "reStructuredText"}


def _function_lines(results: MapResults, rules: StructureRules) -> Iterator[Violation]:
    return _functions(
        results,
        rules.max_function_lines,
        complexity=False,
        rule="a function has at most {} lines",
        what="{} lines",
    )


def _function_complexity(results: MapResults, rules: StructureRules) -> Iterator[Violation]:
    return _functions(
        results,
        rules.max_complexity,
        complexity=True,
        rule="a function has a complexity of at most {}",
        what="a complexity of {}",
    )


def _functions(
    results: MapResults, most: int | None, *, complexity: bool, rule: str, what: str
) -> Iterator[Violation]:
    if most is None:
        return
    files = [file for file in results.code.files if not file.is_generated]
    every = sum(len(file.functions) for file in files)
    for one in functions_by(files, complexity=complexity, count=every):
        size = one.function.complexity if complexity else one.function.lines
        if size > most:
            yield Violation(
                rule=rule.format(f"{most:,}"),
                where=f"{one.file.path}:{one.function.line}",
                text=f"{one.function.name}: {what.format(f'{size:,}')}",
            )


_CHECKS: tuple[Callable[[MapResults, StructureRules], Iterator[Violation]], ...] = (
    _forbidden_edges,
    _cycles,
    _files,
    _function_lines,
    _function_complexity,
)
