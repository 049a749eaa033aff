"""Packages from elsewhere: which are imported, which are declared, and which are only one of both."""

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from pyrometer.analysis.codemap.imports import Imports, ImportSite
from pyrometer.record.code_map import CodeMap, Declaration, ImportKind

_OTHER_NAMES: dict[str, tuple[str, ...]] = {
    "absl": ("absl-py",), "attr": ("attrs",), "bs4": ("beautifulsoup4",), "Crypto": ("pycryptodome",),
    "cv2": ("opencv-python", "opencv-python-headless", "opencv-contrib-python"),
    "dateutil": ("python-dateutil",), "dotenv": ("python-dotenv",), "faiss": ("faiss-cpu", "faiss-gpu"),
    "fitz": ("pymupdf",), "git": ("gitpython",), "grpc": ("grpcio",), "hydra": ("hydra-core",),
    "ignite": ("pytorch-ignite",), "jose": ("python-jose",), "jwt": ("pyjwt",), "magic": ("python-magic",),
    "mpl_toolkits": ("matplotlib",), "OpenSSL": ("pyopenssl",), "open_clip": ("open-clip-torch",),
    "PIL": ("pillow",), "pkg_resources": ("setuptools",), "pythoncom": ("pywin32",),
    "serial": ("pyserial",), "skimage": ("scikit-image",), "sklearn": ("scikit-learn",),
    "tensorflow": ("tensorflow-cpu", "tensorflow-gpu"), "umap": ("umap-learn",), "usb": ("pyusb",),
    "yaml": ("pyyaml",), "zmq": ("pyzmq",),
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
    is_undeclared: bool | None = False
    """Whether a program may need it, and nobody says so; None: not known."""

    @property
    def is_for_types_only(self) -> bool:
        """Whether no running program imports it."""
        return all(site.kind is ImportKind.TYPING for site in self.sites)

    @property
    def needs_declaration(self) -> bool:
        """Whether somebody should say that it is needed, and it has not been seen that anybody does."""
        is_known = self.is_standard_library or self.is_own or self.is_for_types_only
        return not is_known and not self.declarations


@dataclass(frozen=True, slots=True, kw_only=True)
class Packages:
    """What the sources import from elsewhere, and what they are said to."""

    imported: tuple[ExternalPackage, ...]
    """The most imported first; Python's own modules too."""
    unused: tuple[Declaration, ...]
    """Declared, always needed, and imported nowhere; not told of a part of a project."""
    perhaps_unused: tuple[Declaration, ...]
    """The same, but they are not installed here, and may be what is imported under another name."""


def find_packages(code: CodeMap, imports: Imports) -> Packages:
    """All packages from elsewhere."""
    found = [_package(name, sites, code) for name, sites in imports.externals.items()]
    found.sort(key=lambda one: (-len(one.sites), one.import_name))
    used = {name for one in found for name in one.distributions}
    left = [one for one in code.declarations if one.name not in used]
    unclear = _unclear(found, left, code)
    always = [one for one in left if one.group is None] if code.is_whole else []
    return Packages(
        imported=tuple(
            replace(one, is_undeclared=_undeclared(one, code, is_unclear=bool(unclear))) for one in found
        ),
        unused=tuple(one for one in always if one.name not in unclear),
        perhaps_unused=tuple(one for one in always if one.name in unclear),
    )


def _unclear(found: Iterable[ExternalPackage], left: Iterable[Declaration], code: CodeMap) -> frozenset[str]:
    """Declared packages that may be what is imported: what is not installed here may have any name."""
    absent = frozenset(one.name for one in left if one.group != "build").difference(code.installed_declared)
    has_strangers = any(one.needs_declaration and one.version is None for one in found)
    return absent if has_strangers else frozenset()


def _package(name: str, sites: tuple[ImportSite, ...], code: CodeMap) -> ExternalPackage:
    here = next((one for one in code.installed if one.import_name == name), None)
    names = (normalized(name), *_OTHER_NAMES.get(name, ()))
    distributions = names if here is None else tuple(map(normalized, here.distributions))
    return ExternalPackage(
        import_name=name,
        distributions=distributions,
        version=None if here is None else here.version,
        sites=sites,
        declarations=tuple(one for one in code.declarations if one.name in distributions),
        is_standard_library=name in code.standard_library,
        is_own=name in code.own_packages,
    )


def _undeclared(one: ExternalPackage, code: CodeMap, *, is_unclear: bool) -> bool | None:
    if not one.needs_declaration:
        return False
    is_known = code.are_declarations_known and not (is_unclear and one.version is None)
    return True if is_known else None


def normalized(name: str) -> str:
    """A package's name as all ways to write it have in common."""
    return re.sub(r"[-_.]+", "-", name).lower()
