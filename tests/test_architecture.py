"""The layers of docs/architecture.md, kept by import-linter (contracts in pyproject.toml)."""

import subprocess
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_every_layer_imports_only_what_stands_below_it() -> None:
    lint_imports = Path(sys.executable).with_name("lint-imports")
    finished = subprocess.run(
        [lint_imports, "--no-logo", "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, f"an import contract is broken:\n{finished.stdout}{finished.stderr}"


def test_the_architecture_page_names_every_package() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    packages = [
        folder.name for folder in (ROOT / "src" / "pyrometer").iterdir() if (folder / "__init__.py").exists()
    ]
    assert [name for name in packages if f"`{name}`" not in page] == []


def test_every_header_of_the_c_code_is_in_the_source_distribution() -> None:
    with (ROOT / "pyproject.toml").open("rb") as file:
        extensions = tomllib.load(file)["tool"]["setuptools"]["ext-modules"]
    headers = (ROOT / "src" / "pyrometer" / "_native").glob("*.h")
    depends = [header for extension in extensions for header in extension["depends"]]
    assert sorted(depends) == sorted(header.relative_to(ROOT).as_posix() for header in headers)
