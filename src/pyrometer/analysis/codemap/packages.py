"""Packages from elsewhere: which are imported, which are declared, and which are only one of both."""

import re
from collections.abc import Iterable
from dataclasses import dataclass

from pyrometer.analysis.codemap.imports import Imports, ImportSite
from pyrometer.record.code_map import CodeMap, Declaration, ImportKind

_OTHER_NAMES = {
    "attr": "attrs", "bs4": "beautifulsoup4", "cv2": "opencv-python", "dateutil": "python-dateutil",
    "dotenv": "python-dotenv", "fitz": "pymupdf", "git": "gitpython", "google": "protobuf",
    "jose": "python-jose", "jwt": "pyjwt", "magic": "python-magic", "mpl_toolkits": "matplotlib",
    "OpenSSL": "pyopenssl", "PIL": "pillow", "pkg_resources": "setuptools", "pythoncom": "pywin32",
    "serial": "pyserial", "skimage": "scikit-image", "sklearn": "scikit-learn", "usb": "pyusb",
    "yaml": "pyyaml", "zmq": "pyzmq",
}  # fmt: skip
"""By what is imported: packages that are called otherwise, for where they are not installed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExternalPackage:
    """A package that is imported and is not in the map."""

    import_name: str
    distributions: tuple[str, ...]
    """What it is installed as, or would be."""
    version: str | None
    """None: not installed here."""
    sites: tuple[ImportSite, ...]
    declarations: tuple[Declaration, ...]
    is_standard_library: bool
    is_own: bool
    """Whether it is of the same project, beside what is on the map."""

    @property
    def is_undeclared(self) -> bool:
        """Whether a program may need it, and nobody says so."""
        known = self.is_standard_library or self.is_own or self.is_for_types_only
        return not known and not self.declarations

    @property
    def is_for_types_only(self) -> bool:
        """Whether no running program imports it."""
        return all(site.kind is ImportKind.TYPING for site in self.sites)


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages:
    """What the sources import from elsewhere, and what they are said to."""

    imported: tuple[ExternalPackage, ...]
    """The most imported first; Python's own modules too."""
    unused: tuple[Declaration, ...]
    """Declared, always needed, and imported nowhere; not told of a part of a project."""
    has_declarations: bool
    """Whether anything is declared at all: without, nothing can be undeclared."""


def find_packages(code: CodeMap, imports: Imports) -> Packages:
    """All packages from elsewhere."""
    installed = {one.import_name: one for one in code.installed}
    declared: dict[str, list[Declaration]] = {}
    for one in code.declarations:
        declared.setdefault(one.name, []).append(one)
    found = []
    for name, sites in imports.externals.items():
        here = installed.get(name)
        distributions = tuple(map(normalized, here.distributions)) if here else (_likely_name(name),)
        found.append(
            ExternalPackage(
                import_name=name,
                distributions=distributions,
                version=None if here is None else here.version,
                sites=sites,
                declarations=tuple(one for its in distributions for one in declared.get(its, ())),
                is_standard_library=name in code.standard_library,
                is_own=name in code.own_packages,
            )
        )
    used = {name for one in found for name in one.distributions}
    return Packages(
        imported=tuple(sorted(found, key=lambda one: (-len(one.sites), one.import_name))),
        unused=tuple(_unused(code.declarations, used, own=normalized(code.name))) if code.is_whole else (),
        has_declarations=bool(code.declarations),
    )


def _unused(declarations: Iterable[Declaration], used: set[str], *, own: str) -> Iterable[Declaration]:
    """Of those that are always needed: groups are for tests, tools and documents that import nothing."""
    return (one for one in declarations if one.group is None and one.name not in used and one.name != own)


def normalized(name: str) -> str:
    """A package's name as all ways to write it have in common."""
    return re.sub(r"[-_.]+", "-", name).lower()


def _likely_name(import_name: str) -> str:
    return _OTHER_NAMES.get(import_name, normalized(import_name))
