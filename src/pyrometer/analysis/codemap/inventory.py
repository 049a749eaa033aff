"""What a tree of sources holds, part by part: each part's figures are its own files' and its parts'."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice

from pyrometer.record.code_map import CodeMap, FileFacts, FunctionFacts, LineCounts

ROOT_FILES = "(root)"
"""The part of files that lie at the root, and are no modules."""

OWN_FILE = "__init__"
"""The name of a package's own file among the parts of the package."""
OTHER_FILES = "(files)"
"""That of what lies in a folder and is no module."""

Path = tuple[str, ...]
"""Of a part: its name, after those of what it is in."""


@dataclass(slots=True, kw_only=True)
class Part:
    """A package, folder or module, with all that is below it."""

    path: Path
    files: list[FileFacts] = field(default_factory=list)
    """Its own, not those of parts below it."""
    parts: dict[str, "Part"] = field(default_factory=dict)
    lines: LineCounts = field(default_factory=LineCounts)
    file_count: int = 0
    function_count: int = 0
    class_count: int = 0
    complexity: int = 0

    @property
    def name(self) -> str:
        """In what it is in."""
        return self.path[-1] if self.path else ""

    @property
    def dotted(self) -> str:
        """From the root."""
        return ".".join(self.path)

    @property
    def own_name(self) -> str | None:
        """What its own files are called among its parts; None without any, or where each is a part."""
        if not self.path or not self.files:
            return None
        return OWN_FILE if any(file.module is not None for file in self.files) else OTHER_FILES

    def walk(self) -> Iterator["Part"]:
        """It, and all below, the largest first."""
        # Without recursion: folders may be nested more deeply than calls.
        left = [self]
        while left:
            part = left.pop()
            yield part
            left += reversed(part.sorted_parts())

    def sorted_parts(self) -> list["Part"]:
        """Those directly in it, by lines of code."""
        return sorted(self.parts.values(), key=lambda part: (-part.lines.code, part.name))

    def all_files(self) -> Iterator[FileFacts]:
        """Its own, and those of all parts below."""
        for part in self.walk():
            yield from part.files

    def add(self, file: FileFacts) -> None:
        """Count a file that is in it, at whatever depth."""
        self.lines += file.lines
        self.file_count += 1
        self.function_count += len(file.functions)
        self.class_count += file.classes
        self.complexity += file.complexity


@dataclass(frozen=True, slots=True, kw_only=True)
class PlacedFunction:
    """A function, and where it is."""

    file: FileFacts
    function: FunctionFacts


@dataclass(frozen=True, slots=True, kw_only=True)
class LanguageTotals:
    """All files of one language."""

    language: str
    files: int
    lines: LineCounts


def build_tree(code: CodeMap) -> Part:
    """The whole, with all parts; a file's lines are counted in each part around it."""
    root = Part(path=())
    folders = _parts_of_folders(code)
    for file in code.files:
        part = root
        root.add(file)
        for name in part_of(file, code) if file.module is not None else _part_around(file.path, folders):
            part = part.parts.setdefault(name, Part(path=(*part.path, name)))
            part.add(file)
        part.files.append(file)
    return root


def part_of(file: FileFacts, code: CodeMap) -> Path:
    """In which part a Python file is: its module without the package that is mapped."""
    return module_path(file.module or "", code)


def _parts_of_folders(code: CodeMap) -> dict[str, Path]:
    """The part that a folder of modules is."""
    found: dict[str, Path] = {}
    for file in code.files:
        if file.module is not None:
            folder, _, name = file.path.rpartition("/")
            path = module_path(file.module, code)
            is_own = name.startswith("__init__.")
            found[folder] = (() if not folder else path) if is_own else path[:-1]
    return found


def _part_around(path: str, folders: Mapping[str, Path]) -> Path:
    """In which part another file is: that of the nearest folder with modules, and folders below that."""
    *left, _ = path.split("/")
    below: list[str] = []
    while left and "/".join(left) not in folders:
        below.insert(0, part_name(left.pop()))
    begin = folders.get("/".join(left), ()) if left else ()
    inside = (*begin, *(below[1:] if not left and below[:1] == ["src"] else below))
    return inside or (ROOT_FILES,)


def part_name(name: str) -> str:
    """The name of a folder or file as a part of a module's: a dot in it would begin another part."""
    return name.replace(".", "_")


def names_in_path(path: str) -> Path:
    """The parts of a module's name by the path of its file; a notebook is none that can be imported."""
    *folders, name = path.split("/")
    stem, _, ending = name.rpartition(".")
    own = () if stem == "__init__" else (part_name(name if ending == "ipynb" else stem),)
    return (*map(part_name, folders), *own)


def module_path(module: str, code: CodeMap) -> Path:
    """A module without the package that is mapped, whose own file is a part by itself."""
    if code.package is None:
        return tuple(module.split("."))
    inside = module.removeprefix(code.package).removeprefix(".")
    return tuple(inside.split(".")) if inside else (OWN_FILE,)


def languages_of(files: Sequence[FileFacts]) -> list[LanguageTotals]:
    """Each language's totals, by lines of code."""
    by_language: dict[str, list[FileFacts]] = {}
    for file in files:
        by_language.setdefault(file.language, []).append(file)
    totals = [
        LanguageTotals(
            language=language, files=len(its), lines=sum((file.lines for file in its), LineCounts())
        )
        for language, its in by_language.items()
    ]
    return sorted(totals, key=lambda one: (-one.lines.code, one.language))


def largest_files(part: Part, count: int) -> list[FileFacts]:
    """Of what people write: those that say that they are generated are left out."""
    written = (file for file in part.all_files() if not file.is_generated)
    return list(islice(sorted(written, key=lambda file: (-file.lines.code, file.path)), count))


def functions_by(files: Sequence[FileFacts], *, complexity: bool, count: int) -> list[PlacedFunction]:
    """The longest functions, or the most complex ones."""
    placed = [PlacedFunction(file=file, function=one) for file in files for one in file.functions]

    def size(one: PlacedFunction) -> int:
        return one.function.complexity if complexity else one.function.lines

    return sorted(placed, key=lambda one: (-size(one), one.file.path, one.function.line))[:count]
