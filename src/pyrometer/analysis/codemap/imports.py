"""Who imports whom: edges between modules, and at any level above them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass

from pyrometer.analysis.codemap.inventory import Path, module_path
from pyrometer.record.code_map import CodeMap, FileFacts, ImportFact, ImportKind

RUNNING = frozenset({ImportKind.ALWAYS, ImportKind.CONDITIONAL, ImportKind.LAZY})
"""Those that may be carried out when a program runs."""
ON_IMPORT = frozenset({ImportKind.ALWAYS, ImportKind.CONDITIONAL})
"""Those that are carried out when a module is imported: only they can make a cycle fail."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportSite:
    """An import statement."""

    path: str
    line: int
    kind: ImportKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Edge:
    """One module, or part, imports another."""

    importer: str
    imported: str
    sites: tuple[ImportSite, ...]
    """In order of files and lines."""

    @property
    def weight(self) -> int:
        """How many statements."""
        return len(self.sites)

    @property
    def kinds(self) -> frozenset[ImportKind]:
        """When they are carried out."""
        return frozenset(site.kind for site in self.sites)


@dataclass(frozen=True, slots=True, kw_only=True)
class Imports:
    """All imports of a map."""

    edges: tuple[Edge, ...]
    """Between modules of the map."""
    externals: Mapping[str, tuple[ImportSite, ...]]
    """By the first part of the name of what is imported from elsewhere."""
    without_source: Mapping[str, tuple[ImportSite, ...]]
    """Modules of the map's own packages that are imported and have no source: compiled ones, or none."""


def find_imports(code: CodeMap) -> Imports:
    """Every import statement of the map, resolved to what it imports."""
    by_module = modules_of(code.files)
    resolver = _Resolver(frozenset(by_module), frozenset(_folders_without_init(code.files)))
    inner: dict[tuple[str, str], list[ImportSite]] = {}
    outer: dict[str, list[ImportSite]] = {}
    missing: dict[str, list[ImportSite]] = {}
    own = {module.partition(".")[0] for module in by_module}
    for module, file in by_module.items():
        for one in file.imports:
            site = ImportSite(path=file.path, line=one.line, kind=one.kind)
            imported = resolver.resolve(one, module, file)
            if imported is None and one.module.partition(".")[0] in own:
                missing.setdefault(one.module, []).append(site)
            elif imported is None:
                outer.setdefault(one.module.partition(".")[0], []).append(site)
            elif imported != module:
                _add_once(inner.setdefault((module, imported), []), site)
    return Imports(
        edges=tuple(
            Edge(importer=importer, imported=imported, sites=tuple(sites))
            for (importer, imported), sites in sorted(inner.items())
        ),
        externals={name: tuple(sites) for name, sites in sorted(outer.items())},
        without_source={name: tuple(sites) for name, sites in sorted(missing.items())},
    )


def _add_once(sites: list[ImportSite], site: ImportSite) -> None:
    """A statement that takes several names out of one module is one import of it."""
    if site not in sites[-1:]:
        sites.append(site)


def modules_of(files: Iterable[FileFacts]) -> dict[str, FileFacts]:
    """Each module's file: a stub only where there is nothing else of that name."""
    by_module: dict[str, FileFacts] = {}
    for file in files:
        if file.module is not None:
            known = by_module.get(file.module)
            if known is None or known.path.endswith(".pyi"):
                by_module[file.module] = file
    return by_module


def _folders_without_init(files: Iterable[FileFacts]) -> set[str]:
    """Those whose files are scripts: they find their neighbours by plain names."""
    python = [file.path for file in files if file.module is not None]
    packages = {path.rpartition("/")[0] for path in python if path.rpartition("/")[2].startswith("__init__.")}
    return {path.rpartition("/")[0] for path in python} - packages


@dataclass(frozen=True, slots=True)
class _Resolver:
    modules: Collection[str]
    script_folders: Collection[str]

    def resolve(self, one: ImportFact, importer: str, file: FileFacts) -> str | None:
        """The module of the map that is imported; None where it is not in the map."""
        found = self._known(one)
        if found is not None or file.path.rpartition("/")[0] not in self.script_folders:
            return found
        beside = importer.rpartition(".")[0]
        name = f"{beside}.{one.module}" if beside else one.module
        return name if name in self.modules else None

    def _known(self, one: ImportFact) -> str | None:
        """What is taken out of a module may be a module itself."""
        inner = f"{one.module}.{one.name}"
        if inner in self.modules:
            return inner
        return one.module if one.module in self.modules else None


OWN_FILE = "__init__"
"""The name of a package's own file among the parts of the package."""


def edges_of_parts(edges: Iterable[Edge], code: CodeMap) -> dict[Path, tuple[Edge, ...]]:
    """For each part that has any, and the root, the edges between the parts directly in it."""
    grouped: dict[Path, dict[tuple[str, str], list[ImportSite]]] = {(): {}}
    paths: dict[str, Path] = {}
    for edge in edges:
        for module in (edge.importer, edge.imported):
            if module not in paths:
                paths[module] = module_path(module, code)
        importer, imported = paths[edge.importer], paths[edge.imported]
        inside = _common(importer, imported)
        names = tuple(
            path[len(inside)] if len(path) > len(inside) else OWN_FILE for path in (importer, imported)
        )
        grouped.setdefault(inside, {}).setdefault((names[0], names[1]), []).extend(edge.sites)
    return {
        inside: tuple(
            Edge(importer=importer, imported=imported, sites=tuple(sites))
            for (importer, imported), sites in sorted(found.items())
        )
        for inside, found in grouped.items()
    }


def _common(one: Path, other: Path) -> Path:
    """The innermost part that both are in."""
    length = 0
    while length < min(len(one), len(other)) and one[length] == other[length]:
        length += 1
    return one[:length]


def of_kinds(edges: Iterable[Edge], kinds: Collection[ImportKind]) -> Iterator[Edge]:
    """The edges with their statements of these kinds only; those without any are left out."""
    for edge in edges:
        sites = tuple(site for site in edge.sites if site.kind in kinds)
        if sites:
            yield Edge(importer=edge.importer, imported=edge.imported, sites=sites)
