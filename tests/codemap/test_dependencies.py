"""What depends on what: edges, circles, layers, and packages from elsewhere."""

import itertools
import random
import textwrap
from pathlib import Path
from types import ModuleType

import msgspec
import pytest

from pyrometer.analysis.codemap.cycles import Cycle, find_cycles, find_layers
from pyrometer.analysis.codemap.imports import Edge, ImportSite, edges_of_parts, find_imports, modules_of
from pyrometer.analysis.codemap.packages import find_packages
from pyrometer.codemap.mapping import find_root, make_map
from pyrometer.errors import UsageError
from pyrometer.record.code_map import ImportKind, Installed
from tests.codemap.trees import map_of, write_tree


def edges(files: dict[str, str], root: Path) -> set[tuple[str, str]]:
    return {(edge.importer, edge.imported) for edge in find_imports(map_of(root, files)).edges}


def test_an_import_leads_to_the_module_it_names_as_far_as_there_is_one(tmp_path: Path) -> None:
    files = {
        "pack/__init__.py": "from . import a\nfrom .a import X\n",
        "pack/a.py": "import pack.b.c\nfrom pack.b import d, NAME\nimport os, pack.missing\n",
        "pack/b/__init__.py": "",
        "pack/b/c.py": "from ..a import thing\nfrom . import c\n",
        "pack/b/d.py": "from pack import *\n",
    }
    assert edges(files, tmp_path) == {
        ("pack", "pack.a"),
        ("pack.a", "pack.b.c"),
        ("pack.a", "pack.b.d"),
        ("pack.a", "pack.b"),
        ("pack.b.c", "pack.a"),
        ("pack.b.d", "pack"),
    }
    assert list(find_imports(map_of(tmp_path, {})).without_source) == ["pack.missing"]


def test_scripts_find_their_neighbours_and_packages_do_not(tmp_path: Path) -> None:
    files = {
        "tools/run.py": "import helper\n",
        "tools/helper.py": "",
        "pack/__init__.py": "",
        "pack/a.py": "import b\n",
        "pack/b.py": "",
    }
    assert edges(files, tmp_path) == {("tools.run", "tools.helper")}
    assert list(find_imports(map_of(tmp_path, {})).externals) == ["b"]


def test_in_a_namespace_package_plain_names_are_not_the_neighbours(tmp_path: Path) -> None:
    files = {
        "pack/__init__.py": "",
        "pack/util/other.py": "import logging\nimport pack.util\nfrom pack import util\n",
        "pack/util/logging.py": "import types\n",
        "pack/util/types.py": "",
    }
    assert edges(files, tmp_path) == {("pack.util.other", "pack")}
    found = find_imports(map_of(tmp_path, {}))
    assert list(found.externals) == ["logging", "types"]
    assert found.without_source == {}


def test_a_namespace_package_that_is_mapped_by_itself_finds_its_own_modules(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "",
        "src/space/name/a.py": "import space.name.sub.b\nfrom space.name import c\nimport space.other\n",
        "src/space/name/c.py": "from space.name.sub import b\nimport space.name.sub\nimport name\n",
        "src/space/name/sub/b.py": "",
    }
    found = find_imports(map_of(tmp_path, files, below="src/space/name"))
    assert [(edge.importer, edge.imported) for edge in found.edges] == [
        ("space.name.a", "space.name.c"),
        ("space.name.a", "space.name.sub.b"),
        ("space.name.c", "space.name.sub.b"),
    ]
    assert list(found.externals) == ["name", "space"]


def test_a_folder_of_scripts_may_be_imported_by_its_name(tmp_path: Path) -> None:
    files = {"checks/run.py": "from checks.tools import x\n", "checks/tools.py": ""}
    found = find_imports(map_of(tmp_path, files, below="checks"))
    assert [(edge.importer, edge.imported) for edge in found.edges] == [("run", "tools")]


def test_a_folder_with_the_name_of_an_installed_package_is_not_that(tmp_path: Path) -> None:
    files = {"rich/run.py": "from rich import table\n", "rich/table.py": ""}
    found = find_imports(map_of(tmp_path, files, below="rich"))
    assert found.edges == ()
    assert list(found.externals) == ["rich"]


def test_folders_named_like_packages_from_elsewhere_give_way_to_them(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nname = "benches"\ndependencies = ["rich", "absent"]\n',
        "rich/bench.py": "import rich\nimport rich.table\nimport absent\n",
        "absent/bench.py": "import absent\n",
    }
    found = find_imports(map_of(tmp_path, files))
    assert (found.edges, found.without_source) == ((), {})
    assert {name: len(sites) for name, sites in found.externals.items()} == {"absent": 2, "rich": 2}


def test_a_package_in_a_namespace_that_is_mapped_by_itself_has_its_full_name(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": "",
        "src/company/product/__init__.py": "",
        "src/company/product/a.py": "from company.product import b\n",
        "src/company/product/b.py": "",
    }
    code = map_of(tmp_path, files, below="src/company/product")
    assert code.package == "company.product"
    assert [edge.imported for edge in find_imports(code).edges] == ["company.product.b"]


def test_the_projects_own_package_is_no_other_where_it_is_installed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stem = "company_product-1.0.dist-info"
    metadata = "Metadata-Version: 2.1\nName: company-product\nVersion: 1.0\n"
    write_tree(tmp_path / "site", {f"{stem}/METADATA": metadata, f"{stem}/top_level.txt": "company\n"})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    files = {
        "pyproject.toml": '[project]\nname = "company.product"\n',
        "company/product/__init__.py": "",
        "company/product/a.py": "import company.product.b\n",
        "company/product/b.py": "",
    }
    assert edges(files, tmp_path / "own") == {("product.a", "product.b")}


@pytest.mark.parametrize("above", ["src/", ""])
def test_a_package_in_a_namespace_is_imported_by_its_full_name(tmp_path: Path, above: str) -> None:
    files = {
        "pyproject.toml": "",
        f"{above}company/one.py": "import company.product.a\n",
        f"{above}company/product/__init__.py": "",
        f"{above}company/product/a.py": "from company.product import b\nfrom company.product.c import x\n",
        f"{above}company/product/b.py": "from . import c\n",
        f"{above}company/product/c.py": "",
    }
    name = "company.product" if above else "product"
    assert edges(files, tmp_path) == {
        ("company.one", f"{name}.a"),
        (f"{name}.a", f"{name}.b"),
        (f"{name}.a", f"{name}.c"),
        (f"{name}.b", f"{name}.c"),
    }
    found = find_imports(map_of(tmp_path, {}))
    assert (list(found.externals), found.without_source) == ([], {})


def test_packages_of_one_name_in_a_folder_of_several_projects_are_told_apart(tmp_path: Path) -> None:
    files = {
        f"services/{one}/app/{name}.py": text
        for one, texts in {
            "a": {"__init__": "", "x": "from app import y\n", "y": ""},
            "b": {"__init__": "", "x": "", "y": "import app.x\nfrom . import z\n", "z": "import common\n"},
        }.items()
        for name, text in texts.items()
    }
    files["common/__init__.py"] = ""
    assert edges(files, tmp_path) == {
        ("services.a.app.x", "services.a.app.y"),
        ("services.b.app.y", "services.b.app.x"),
        ("services.b.app.y", "services.b.app.z"),
        ("services.b.app.z", "common"),
    }
    assert find_cycles(find_imports(map_of(tmp_path, {})).edges) == ()


def test_a_notebook_is_no_module_that_can_be_imported(tmp_path: Path) -> None:
    notebook = '{"cells": [{"cell_type": "code", "source": "import a"}]}'
    assert edges({"a.py": "import b\n", "b.py": "", "b.ipynb": notebook}, tmp_path) == {
        ("a", "b"),
        ("b_ipynb", "a"),
    }


def test_stubs_import_for_types_only(tmp_path: Path) -> None:
    files = {
        "pack/__init__.py": "",
        "pack/a.py": "from pack import b\n",
        "pack/b.pyi": "from pack.a import A\n",
    }
    found = find_imports(map_of(tmp_path, files))
    kinds = {edge.importer: edge.kinds for edge in found.edges}
    assert kinds == {"pack.a": {ImportKind.ALWAYS}, "pack.b": {ImportKind.TYPING}}


def test_relative_imports_of_scripts_lead_to_their_neighbours(tmp_path: Path) -> None:
    files = {"main.py": "from . import sib\nfrom .sib import x\nfrom .. import above\n", "sib.py": ""}
    assert edges(files, tmp_path) == {("main", "sib")}
    assert list(find_imports(map_of(tmp_path, {})).without_source) == [".."]


def test_a_project_whose_root_is_a_package_is_run_from_there(tmp_path: Path) -> None:
    files = {
        "__init__.py": "",
        "main.py": "import helper\nimport nodes.util\n",
        "helper.py": "",
        "nodes/util.py": "",
    }
    name = tmp_path.name
    assert edges(files, tmp_path) == {
        (f"{name}.main", f"{name}.helper"),
        (f"{name}.main", f"{name}.nodes.util"),
    }


def test_both_files_of_one_name_are_looked_at(tmp_path: Path) -> None:
    notebook = '{"cells": [{"cell_type": "code", "source": "import yaml"}]}'
    code = map_of(tmp_path, {"dup.py": "import requests\n", "dup.ipynb": notebook})
    assert list(find_imports(code).externals) == ["requests", "yaml"]


def test_names_of_one_statement_are_one_import_from_elsewhere_too(tmp_path: Path) -> None:
    found = find_imports(map_of(tmp_path, {"a.py": "from numpy import array, zeros, ones\n"}))
    assert len(found.externals["numpy"]) == 1


def test_a_stub_stands_for_a_module_only_where_there_is_no_other(tmp_path: Path) -> None:
    code = map_of(tmp_path, {"pack/__init__.py": "", "pack/a.py": "", "pack/a.pyi": "", "pack/fast.pyi": ""})
    assert {name: file.path for name, file in modules_of(code.files).items()} == {
        "pack": "pack/__init__.py",
        "pack.a": "pack/a.py",
        "pack.fast": "pack/fast.pyi",
    }


def test_statements_are_counted_once_whatever_they_take(tmp_path: Path) -> None:
    files = {
        "pack/__init__.py": "",
        "pack/a.py": "from pack.b import x, y, z\ndef f():\n    import pack.b\n",
        "pack/b.py": "",
    }
    (edge,) = find_imports(map_of(tmp_path, files)).edges
    assert edge.weight == 2
    assert edge.sites == (
        ImportSite(path="pack/a.py", line=1, kind=ImportKind.ALWAYS, name="pack.b"),
        ImportSite(path="pack/a.py", line=3, kind=ImportKind.LAZY, name="pack.b"),
    )


def test_edges_between_parts_are_those_of_all_modules_in_them(tmp_path: Path) -> None:
    files = {
        "pack/__init__.py": "",
        "pack/low/__init__.py": "",
        "pack/low/a.py": "",
        "pack/low/b.py": "import pack.low.a\n",
        "pack/high/__init__.py": "from pack.low import a, b\n",
        "pack/high/c.py": "from pack.low.a import x\n",
    }
    code = map_of(tmp_path, files, below="pack")
    found = edges_of_parts(find_imports(code).edges, code)
    assert {
        part: [(edge.importer, edge.imported, edge.weight) for edge in edges] for part, edges in found.items()
    } == {(): [("high", "low", 3)], ("low",): [("b", "a", 1)]}


@pytest.mark.parametrize("package", ["pyrometer", "rich", "msgspec", "typer"])
def test_edges_are_those_that_grimp_finds(package: str, tmp_path: Path, agreement: ModuleType) -> None:
    root = find_root(package, tmp_path)
    code, _ = make_map(root, project=root, with_vendored=True)
    assert agreement.edges_agree(package, code)
    assert len(find_imports(code).edges) > 15


def edge(importer: str, imported: str, weight: int = 1) -> Edge:
    sites = tuple(
        ImportSite(path=f"{importer}.py", line=line, kind=ImportKind.ALWAYS, name=imported)
        for line in range(weight)
    )
    return Edge(importer=importer, imported=imported, sites=sites)


def cycle(*links: str, weights: dict[str, int] | None = None) -> tuple[Cycle, ...]:
    """The circles of links such as ``a>b``."""
    return find_cycles(
        edge(link.partition(">")[0], link.partition(">")[2], (weights or {}).get(link, 1)) for link in links
    )


def test_no_circle() -> None:
    assert cycle("a>b", "b>c", "a>c") == ()


def test_a_circle_is_cut_where_that_takes_fewest_statements() -> None:
    (found,) = cycle("a>b", "b>c", "c>a", weights={"a>b": 3, "b>c": 2, "c>a": 5})
    assert found.members == ("a", "b", "c")
    assert found.shortest == ("a", "b", "c")
    assert [(one.importer, one.imported) for one in found.cut] == [("b", "c")]
    assert found.is_least


def test_of_circles_that_hang_together_the_shortest_way_is_told() -> None:
    (found,) = cycle("a>b", "b>c", "c>d", "d>a", "d>c")
    assert found.shortest == ("c", "d")
    assert sum(one.weight for one in found.cut) == 1
    assert cycle("a>b", "b>a", "x>y", "y>z", "z>x")[0].members == ("x", "y", "z")


@pytest.mark.parametrize("seed", range(20))
def test_the_cut_is_the_least_of_all_orders(seed: int) -> None:
    chooser = random.Random(seed)
    names = "abcdef"
    links = [edge(one, other, chooser.randint(1, 4)) for one, other in itertools.permutations(names, 2)]
    links = [one for one in links if chooser.random() < 0.5]
    for found in find_cycles(links):
        inner = [one for one in links if one.importer in found.members and one.imported in found.members]

        def against(order: tuple[str, ...], inner: list[Edge] = inner) -> int:
            return sum(one.weight for one in inner if order.index(one.importer) < order.index(one.imported))

        least = min(map(against, itertools.permutations(found.members)))
        assert sum(one.weight for one in found.cut) == least
        left = [one for one in inner if one not in found.cut]
        assert find_cycles(left) == ()


def test_a_circle_of_many_is_cut_too_and_says_that_fewer_may_do() -> None:
    names = [f"m{number:03}" for number in range(300)]
    links = [edge(one, names[(index + 1) % len(names)]) for index, one in enumerate(names)]
    links += [edge(one, names[0]) for one in names[2::7]]
    (found,) = find_cycles(links)
    assert not found.is_least
    assert find_cycles([one for one in links if one not in found.cut]) == ()


def test_layers_import_only_lower_ones() -> None:
    layers = find_layers(
        ["alone", *"abcde"], [edge(link[0], link[1]) for link in ("ab", "bc", "cb", "cd", "ad", "ea")]
    )
    # Between b and c one of the two edges is against the order.
    assert layers == (("alone", "b", "d"), ("a", "c"), ("e",))


PYPROJECT = """
[project]
name = "pack"
dependencies = ["rich>=13", "Unused_Package", "pack[all]"]

[project.optional-dependencies]
dev = ["pytest", "mypy"]

[dependency-groups]
docs = ["sphinx", {include-group = "dev"}]
"""


def test_packages_are_imported_declared_both_or_one_of_it(tmp_path: Path) -> None:
    code = map_of(
        tmp_path,
        {
            "pyproject.toml": PYPROJECT,
            "requirements-gpu.txt": "# why\nnot_here_dist==1 ; python_version > '3'\n-r other.txt\nhttps://x/y.whl\n",
            "pack/__init__.py": """
            import os, rich, pytest, not_here_dist, nowhere_at_all
            from rich.text import Text
            if TYPE_CHECKING:
                import only_types
            """,
        },
    )
    packages = find_packages(code, find_imports(code))
    found = {one.import_name: one for one in packages.imported}
    assert found["os"].is_standard_library
    assert len(found["rich"].sites) == 2
    assert found["rich"].version is not None
    assert [one.where for one in found["rich"].declarations] == ["pyproject.toml"]
    assert [one.group for one in found["pytest"].declarations] == ["dev"]
    assert [(one.where, one.group) for one in found["not_here_dist"].declarations] == [
        ("requirements-gpu.txt", "gpu")
    ]
    assert found["not_here_dist"].version is None
    assert found["only_types"].is_for_types_only
    # Neither is installed here: one may be the other under its own name.
    assert {name for name, one in found.items() if one.is_undeclared is None} == {"nowhere_at_all"}
    assert [one.name for one in packages.perhaps_unused] == ["unused-package"]
    assert packages.unused == ()


@pytest.mark.parametrize(
    ("line", "undeclared", "unused"),
    [("import nowhere_at_all", ["nowhere_at_all"], []), ("", [], ["absent"])],
)
def test_what_is_only_on_one_side_is_told_for_sure(
    tmp_path: Path, line: str, undeclared: list[str], unused: list[str]
) -> None:
    needs = '"rich"' if line else '"rich", "absent"'
    files = {
        "pyproject.toml": f'[project]\nname = "pack"\ndependencies = [{needs}]\n',
        "a.py": f"import rich\n{line}\n",
    }
    code = map_of(tmp_path, files)
    packages = find_packages(code, find_imports(code))
    assert [one.import_name for one in packages.imported if one.is_undeclared] == undeclared
    assert [one.name for one in packages.unused] == unused
    assert packages.perhaps_unused == ()


def test_packages_that_share_the_first_part_of_their_names_are_told_apart(tmp_path: Path) -> None:
    code = map_of(tmp_path, {"a.py": "from sharing.one import x\nimport sharing.two.deep\nimport sharing\n"})
    here = [("sharing.one", "one"), ("sharing.two", "two")]
    code = msgspec.structs.replace(
        code,
        installed=tuple(
            Installed(import_name=name, distributions=(f"sharing-{its}",), version=its) for name, its in here
        ),
    )
    packages = find_packages(code, find_imports(code))
    assert {one.import_name: one.version for one in packages.imported} == {
        "sharing.one": "one",
        "sharing.two": "two",
        "sharing": None,
    }


def test_which_of_several_installed_packages_is_imported_is_told_by_their_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, version, folder in (
        ("sharing-one", "1.0", "sharing/one"),
        ("sharing-two", "2.0", "sharing/two"),
    ):
        stem = f"{name.replace('-', '_')}-{version}.dist-info"
        write_tree(
            tmp_path / "site",
            {
                f"{folder}/__init__.py": "",
                f"{stem}/METADATA": f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n",
                f"{stem}/RECORD": f"{folder}/__init__.py,,\n{stem}/METADATA,,\n",
            },
        )
    write_tree(
        tmp_path / "site",
        {"sharing_two-2.0.dist-info/RECORD": "sharing/two/__init__.py,,\nsharing/_fast.cpython-311.so,,\n"},
    )
    # What is left of a package that was removed by half.
    write_tree(tmp_path / "site", {"half-1.0.dist-info/top_level.txt": "sharing\n"})
    monkeypatch.syspath_prepend(str(tmp_path / "site"))
    code = map_of(
        tmp_path / "own",
        {"a.py": "from sharing import two, _fast\nimport sharing.one.x\nfrom sharing.one import y\n"},
    )
    assert {one.import_name: (one.distributions, one.version) for one in code.installed} == {
        "sharing.one": (("sharing-one",), "1.0"),
        "sharing.two": (("sharing-two",), "2.0"),
        "sharing._fast": (("sharing-two",), "2.0"),
    }


@pytest.mark.parametrize(
    ("files", "names", "are_known"),
    [
        ({"pyproject.toml": "[build-system]\nrequires = []\n"}, set(), False),
        ({"pyproject.toml": '[project]\nname = "x"\n'}, set(), True),
        ({"pyproject.toml": '[project]\ndynamic = ["dependencies"]\n'}, set(), False),
        (
            {
                "pyproject.toml": '[project]\ndynamic = ["dependencies"]\n'
                '[tool.setuptools.dynamic]\ndependencies = {file = ["needs.txt"]}\n',
                "needs.txt": "numpy\n",
            },
            {"numpy"},
            True,
        ),
        (
            {"setup.py": "NEEDS = ['numpy>1']\nsetup(install_requires=NEEDS, extras_require={'t': []})"},
            {"numpy", "setuptools"},
            True,
        ),
        ({"setup.py": "setup(install_requires=open('x').read())"}, set(), False),
        ({"setup.py": "import setuptools\nsetuptools.setup(**made())"}, set(), False),
        ({"setup.py": "setup("}, set(), False),
        (
            {"setup.py": "setup(install_requires=('numpy',), extras_require={1: []})"},
            {"numpy", "setuptools"},
            True,
        ),
        (
            {
                "pyproject.toml": '[project]\nname = "x"\ndynamic = ["optional-dependencies"]\n'
                "[tool.setuptools.dynamic.optional-dependencies]\ngpu = {file = ['needs.txt']}\n",
                "needs.txt": "torch\n",
            },
            {"torch"},
            True,
        ),
        ({"pyproject.toml": "a = " + "[" * 5_000}, set(), False),
    ],
)
def test_whether_declarations_are_known(
    tmp_path: Path, files: dict[str, str], names: set[str], are_known: bool
) -> None:
    code = map_of(tmp_path, {**files, "a.py": ""})
    assert ({one.name for one in code.declarations}, code.are_declarations_known) == (names, are_known)


def test_what_is_only_for_building_hides_nothing(tmp_path: Path) -> None:
    built = '[build-system]\nrequires = ["absent-backend"]\n[project]\nname = "x"\n'
    code = map_of(tmp_path, {"pyproject.toml": built, "a.py": "import nowhere_at_all\n"})
    (package,) = find_packages(code, find_imports(code)).imported
    assert package.is_undeclared is True


def test_declarations_of_projects_inside_are_read(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nname = "all"\n',
        "services/a/pyproject.toml": '[project]\nname = "a"\ndependencies = ["rich", "a[x]"]\n',
        "services/a/app.py": "import rich\n",
        "services/b/requirements.txt": "numpy\n",
        "services/b/app.py": "",
    }
    assert declared(tmp_path, files) == {
        ("rich", "services/a/pyproject.toml", None),
        ("numpy", "services/b/requirements.txt", None),
    }


def declared(root: Path, files: dict[str, str]) -> set[tuple[str, str, str | None]]:
    return {(one.name, one.where, one.group) for one in map_of(root, {**files, "a.py": ""}).declarations}


def test_every_way_to_declare_is_read(tmp_path: Path) -> None:
    setup = """
    [options]
    install_requires = file: requirements.txt
    [options.extras_require]
    dev = black
    """
    requirements = """
    url-package @ https://somewhere/x.whl
    git+https://somewhere/y#egg=egg-package
    https://somewhere/z.whl
    ./local
    -rmore/other.txt
    dist/wheel_package-1.0-py3-none-any.whl
    named @ https://somewhere/x#egg=other
    --index-url https://somewhere
    # old: https://somewhere/foo-1.0.tar.gz and -e git+https://somewhere/y#egg=bar
    commented >= 1  # from https://somewhere/baz-1.0.tar.gz
    plain[extra] >= 1 ; python_version > "3"
    """
    poetry = """
    [tool.poetry.dependencies]
    python = "^3.11"
    always = "1"
    perhaps = {version = "1", optional = true}
    [tool.poetry.dev-dependencies]
    tool = "1"
    [tool.poetry.group.docs.dependencies]
    paper = "1"
    """
    files = {
        "setup.cfg": setup,
        "requirements.txt": textwrap.dedent(requirements),
        "more/other.txt": "included\n-r other.txt\n",
        "pyproject.toml": poetry,
    }
    found = declared(tmp_path, files)
    assert {one for one in found if one[1] == "requirements.txt"} == {
        (name, "requirements.txt", None)
        for name in ("url-package", "egg-package", "included", "plain", "named", "wheel-package", "commented")
    }
    assert ("plain", "setup.cfg, requirements.txt", None) in found
    assert ("black", "setup.cfg", "dev") in found
    assert {one[::2] for one in found if one[1] == "pyproject.toml"} == {
        ("always", None),
        ("perhaps", "optional"),
        ("tool", "dev"),
        ("paper", "docs"),
    }


@pytest.mark.parametrize("encoding", ["utf-8-sig", "utf-16"])
def test_requirements_may_begin_with_a_mark_of_their_encoding(tmp_path: Path, encoding: str) -> None:
    (tmp_path / "requirements.txt").write_bytes("numpy\nrich\n".encode(encoding))
    assert {name for name, _, _ in declared(tmp_path, {})} == {"numpy", "rich"}


def test_dependencies_that_are_no_list_are_said(tmp_path: Path) -> None:
    code = map_of(tmp_path, {"pyproject.toml": '[project]\ndependencies = "numpy"\n', "a.py": ""})
    assert code.declarations == ()
    assert [one.path for one in code.skipped] == ["pyproject.toml"]


def test_a_part_of_a_project_says_nothing_of_the_rest(tmp_path: Path) -> None:
    files = {
        "pyproject.toml": '[project]\nname = "pack"\ndependencies = ["rich"]\n',
        "pack/__init__.py": "",
        "pack/errors.py": "",
        "pack/inner/__init__.py": "from pack.errors import X\n",
        "tests/test_a.py": "import pack\nimport unheard_of\n",
    }
    inner = map_of(tmp_path, files, below="pack/inner")
    imports = find_imports(inner)
    assert imports.without_source == {}
    assert find_packages(inner, imports).unused == ()
    tests = map_of(tmp_path, {}, below="tests")
    packages = find_packages(tests, find_imports(tests))
    assert [one.import_name for one in packages.imported if one.is_undeclared] == ["unheard_of"]


def test_a_damaged_declaration_is_said_and_stops_nothing(tmp_path: Path) -> None:
    code = map_of(tmp_path, {"pyproject.toml": "[project\n", "a.py": "import rich\n", "setup.cfg": "x"})
    assert {one.path for one in code.skipped} == {"pyproject.toml", "setup.cfg"}
    assert len(code.files) == 2


@pytest.mark.parametrize("wanted", ["nowhere", "no/where", "not-a-name", "rich.nothing"])
def test_what_is_neither_path_nor_package_is_refused(wanted: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is n"):
        find_root(wanted, tmp_path)


def test_a_package_is_found_without_importing_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_tree(
        tmp_path, {"boom/__init__.py": "raise SystemExit", "boom/inner/__init__.py": "", "single.py": ""}
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert find_root("boom", tmp_path / "nowhere") == tmp_path / "boom"
    assert find_root("boom.inner", tmp_path / "nowhere") == tmp_path / "boom" / "inner"
    assert find_root("single", tmp_path / "nowhere") == tmp_path / "single.py"
    assert make_map(tmp_path / "boom" / "inner", project=tmp_path)[0].package == "boom.inner"
