"""Who imports whom: edges between modules, and at any level above them."""

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import takewhile

from pyrometer.analysis.codemap.inventory import OWN_FILE, Path, module_path, names_in_path
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
    name: str
    """The module it asks for, in full."""


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
    """By the first part of the name of what is imported from elsewhere; by more where packages share it."""
    without_source: Mapping[str, tuple[ImportSite, ...]]
    """Modules of the map's own packages that are imported and have no source: compiled ones, or none."""


def find_imports(code: CodeMap) -> Imports:
    """Every import statement of the map, resolved to what it imports."""
    resolver = _Resolver(code)
    inner: dict[tuple[str, str], list[ImportSite]] = {}
    outer: dict[str, list[ImportSite]] = {}
    missing: dict[str, list[ImportSite]] = {}
    for file in code.files:
        for one in file.imports:
            site = ImportSite(path=file.path, line=one.line, kind=one.kind, name=one.module)
            imported = resolver.resolve(one, file)
            first = one.module.partition(".")[0]
            if imported is not None:
                if imported != file.module:
                    _add_once(inner.setdefault((file.module or "", imported), []), site)
            elif resolver.is_namespace(one.module):
                continue  # a folder without a file of its own: there is nothing to depend on
            elif (first in resolver.own and code.is_whole) or not first:
                _add_once(missing.setdefault(one.module, []), site)
            else:
                _add_once(outer.setdefault(resolver.package_of(one), []), site)
    return Imports(
        edges=edges_from(inner),
        externals={name: tuple(sites) for name, sites in sorted(outer.items())},
        without_source={name: tuple(sites) for name, sites in sorted(missing.items())},
    )


def edges_from(sites: Mapping[tuple[str, str], Iterable[ImportSite]]) -> tuple[Edge, ...]:
    """An edge for each pair of who imports and what is imported, in the order of their names."""
    return tuple(
        Edge(importer=importer, imported=imported, sites=tuple(found))
        for (importer, imported), found in sorted(sites.items())
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


class _Resolver:
    """Which module of the map an import statement leads to."""

    def __init__(self, code: CodeMap) -> None:
        self._modules = frozenset(modules_of(code.files))
        self._standard = frozenset(code.standard_library)
        self._package = code.package
        places = [file.path.rpartition("/") for file in code.files if file.module is not None]
        self._packages = {folder for folder, _, name in places if name.startswith("__init__.")}
        self._installed = {one.import_name for one in code.installed}
        self._others = {name.partition(".")[0] for name in self._installed}
        self._others |= {one.name.replace("-", "_") for one in code.declarations}
        self._other_names = self._find_other_names(code)
        # A folder without a file of its own gives way to a package from elsewhere that has its name.
        own = [
            parts
            for parts in (name.split(".") for name in (*self._modules, *self._other_names))
            if parts[0] in self._modules or parts[0] not in self._others
        ]
        self._namespaces = {".".join(parts[:depth]) for parts in own for depth in range(1, len(parts))}
        self.own = {parts[0] for parts in own}

    def _find_other_names(self, code: CodeMap) -> dict[str, list[FileFacts]]:
        """What else modules may be imported as: it depends on the folder that is on the path.

        By their path, below the root or from it on, unless a package from elsewhere has that name; and by
        the outermost package they are in.
        """
        if code.package is not None:
            return {}
        found: dict[str, list[FileFacts]] = {}
        for file in modules_of(code.files).values():
            module = file.module or ""
            parts = names_in_path(file.path)
            path = ".".join(parts).removeprefix("src.")
            names = [name for name in (path, f"{code.name}.{module}") if not self._is_others(name)]
            folders = file.path.split("/")[:-1]
            around = ("/".join(folders[: depth + 1]) for depth in range(len(folders)))
            outermost = next((at for at, folder in enumerate(around) if folder in self._packages), None)
            if outermost is not None:
                names.append(".".join(parts[outermost:]))
            for name in {*names} - {module}:
                found.setdefault(name, []).append(file)
        return found

    def _is_others(self, name: str) -> bool:
        return name.partition(".")[0] in self._others

    def resolve(self, one: ImportFact, file: FileFacts) -> str | None:
        """The module; None where it is not in the map."""
        found = self._known(one.module, one.name)
        if found is not None or one.module.partition(".")[0] in self._standard:
            return found
        # On the path of a script are its neighbours; a project whose root is a package may be run from there.
        beside = self._package if self._package is not None else self._folder_of_script(file)
        if beside:
            found = self._known(f"{beside}.{one.module}", one.name)
        return found or self._known_otherwise(one, file)

    def is_namespace(self, module: str) -> bool:
        """Whether it is a folder with modules below it, and without a file of its own."""
        return module in self._namespaces

    def package_of(self, one: ImportFact) -> str:
        """The name by which a package from elsewhere is told from all others."""
        parts = [*one.module.split("."), *([one.name] if one.name else [])]
        names = (".".join(parts[:depth]) for depth in range(len(parts), 1, -1))
        return next((name for name in names if name in self._installed), parts[0])

    def _known(self, module: str, name: str | None) -> str | None:
        """What is taken out of a module may be a module itself."""
        inner = f"{module}.{name}"
        if inner in self._modules:
            return inner
        return module if module in self._modules else None

    def _known_otherwise(self, one: ImportFact, file: FileFacts) -> str | None:
        """By another name; of several modules that have it the one nearest to who imports it."""
        for name in (f"{one.module}.{one.name}", one.module):
            others = self._other_names.get(name, ())
            nearest = sorted((-_shared(other.path, file.path), other.module or "") for other in others)
            if len(nearest) == 1 or (len(nearest) > 1 and nearest[0][0] != nearest[1][0]):
                return nearest[0][1]
        return None

    def _folder_of_script(self, file: FileFacts) -> str | None:
        """The name before those of the neighbours of a file that is in no package."""
        folders = file.path.split("/")[:-1]
        around = ("/".join(folders[:depth]) for depth in range(len(folders) + 1))
        if file.module is None or any(folder in self._packages for folder in around):
            return None
        return file.module.rpartition(".")[0] or None


def _shared(one: str, other: str) -> int:
    """How many folders two paths have in common."""
    pairs = zip(one.split("/")[:-1], other.split("/")[:-1], strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


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
    return {inside: edges_from(found) for inside, found in grouped.items()}


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
