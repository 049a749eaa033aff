"""The code map: what sources hold and import, as far as reading tells. A file of its own, beside the Run."""

from enum import StrEnum
from typing import Annotated, Literal

import msgspec

from pyrometer.record.values import Count, SignedCount, Value

MAP_FORMAT: Literal["pyrometer-map"] = "pyrometer-map"
MAP_VERSION: Literal[1] = 1
MAP_FILE_NAME = "code_map.json"
"""Of a map among all its documents."""

MAX_FILES = 200_000
MAX_IMPORTS = 4_000_000


class ImportKind(StrEnum):
    """When an import statement is carried out."""

    ALWAYS = "always"
    """Whenever the module is imported."""
    CONDITIONAL = "conditional"
    """At the module's level, under ``if``, ``try`` or in a loop."""
    LAZY = "lazy"
    """When a function is called."""
    TYPING = "typing"
    """Under ``if TYPE_CHECKING``: never, but for type checkers."""


class LineCounts(Value, frozen=True, kw_only=True, omit_defaults=False):
    """The lines of a file; code, comment, docstring and blank ones are all of them."""

    total: Count = 0
    code: Count = 0
    comment: Count = 0
    docstring: Count = 0
    blank: Count = 0
    in_strings: Count = 0
    """Of the lines of code, those that are nothing but the inside of a string."""

    def __add__(self, other: "LineCounts") -> "LineCounts":
        return LineCounts(
            total=self.total + other.total,
            code=self.code + other.code,
            comment=self.comment + other.comment,
            docstring=self.docstring + other.docstring,
            blank=self.blank + other.blank,
            in_strings=self.in_strings + other.in_strings,
        )


class FunctionFacts(Value, frozen=True, kw_only=True, omit_defaults=False):
    """A function or method."""

    name: str
    """Within its file, with what is around it: ``Model.forward``, ``make.<locals>.inner``."""
    line: Count
    lines: Count
    complexity: Count
    """Ways through it: 1, and one more for each place that decides."""


class ImportFact(Value, frozen=True, kw_only=True, omit_defaults=False):
    """One name that an import statement asks for."""

    module: str
    """Absolute: relative ones are resolved by the file's own place."""
    name: str | None = None
    """What is taken out of the module, ``*`` for all; None: the module itself is imported."""
    line: Count
    kind: ImportKind = ImportKind.ALWAYS


class FileFacts(Value, frozen=True, kw_only=True, omit_defaults=False):
    """What one file holds."""

    path: str
    """From the map's root, with forward slashes."""
    language: str
    lines: LineCounts
    bytes: Count = 0
    module: str | None = None
    """What it is imported as; None where it is no Python file."""
    functions: tuple[FunctionFacts, ...] = ()
    classes: Count = 0
    complexity: Count = 0
    """Of all of its functions, and of the module's own level."""
    imports: Annotated[tuple[ImportFact, ...], msgspec.Meta(max_length=MAX_IMPORTS)] = ()
    is_generated: bool = False
    """Says so itself, in its first lines."""
    problem: str | None = None
    """Why it could be counted only, and not understood."""


class KnownFile(Value, frozen=True, kw_only=True, omit_defaults=False):
    """What was read of a file earlier, and by what it is known that it is still the same."""

    size: Count
    modified_ns: SignedCount
    changed_ns: SignedCount
    facts: FileFacts


class Skipped(Value, frozen=True, kw_only=True, omit_defaults=False):
    """A file or folder that was not read, and why."""

    path: str
    reason: str


class Declaration(Value, frozen=True, kw_only=True, omit_defaults=False):
    """A package that the project says it needs."""

    name: str
    """As declared, in its normal form: lower case, with dashes."""
    where: str
    """``pyproject.toml``, ``requirements.txt``."""
    group: str | None = None
    """The extra or group it is in; None: always needed."""


class Installed(Value, frozen=True, kw_only=True, omit_defaults=False):
    """An imported package that is installed here."""

    import_name: str
    """With as many parts as tell packages apart that share the first one."""
    distributions: tuple[str, ...]
    version: str | None = None


class CodeMap(Value, frozen=True, kw_only=True, omit_defaults=False):
    """Everything that reading the sources tells."""

    format: Literal["pyrometer-map"] = MAP_FORMAT
    version: Literal[1] = MAP_VERSION
    pyrometer_version: str
    name: str
    """The package, or the folder."""
    package: str | None = None
    """By its full name, where what is mapped is one."""
    root: str
    """Absolute; paths are as seen from there."""
    made_at: str
    files: Annotated[tuple[FileFacts, ...], msgspec.Meta(max_length=MAX_FILES)] = ()
    skipped: tuple[Skipped, ...] = ()
    uncounted_files: Count = 0
    """Files that are no sources by their names, such as data."""
    declarations: tuple[Declaration, ...] = ()
    are_declarations_known: bool = False
    """Whether there are places where the project says what it needs, and all of them could be read."""
    installed: tuple[Installed, ...] = ()
    installed_declared: tuple[str, ...] = ()
    """Of the declared packages, those that are installed here."""
    standard_library: tuple[str, ...] = ()
    """Of the imported names, those of Python itself."""
    own_packages: tuple[str, ...] = ()
    """Packages and modules of the project that the sources belong to, whether they are on the map or not."""
    is_whole: bool = True
    """Whether it is all of a project, or of a package: what is used nowhere on it is then used nowhere."""
