"""What a map tells: heat, rules, comparison, pictures and files, on small trees."""

import itertools
import json
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from pathlib import Path

import jsonschema
import msgspec
import pytest

from pyrometer.analysis.codemap.checks import check_structure, parse_rules, pointless_rules
from pyrometer.analysis.codemap.comparison import compare_maps
from pyrometer.analysis.codemap.heat import HeatBy, find_heat
from pyrometer.analysis.codemap.picture import MOST_BOXES, OTHERS, Box, draw_system_map
from pyrometer.analysis.codemap.results import MapResults, build_results
from pyrometer.errors import UsageError
from pyrometer.record.allocations import AllocationSite, AllocationSites, ProcessAllocations
from pyrometer.record.run import Run
from pyrometer.record.samples import Function, StackNode
from pyrometer.report.codemap_comparison import render_map_comparison_markdown, render_map_comparison_terminal
from pyrometer.report.codemap_comparison_html import render_map_comparison_html
from pyrometer.report.codemap_comparison_json import render_map_comparison_json
from pyrometer.report.codemap_comparison_json import schema_text as comparison_schema
from pyrometer.report.codemap_documents import MapFormat, MapReport, map_documents, render_map
from pyrometer.report.codemap_heat import box_heats, heat_colors
from pyrometer.report.codemap_json import render_map_json, schema_text
from tests.codemap.trees import map_of
from tests.report.sample_runs import HOSTILE_NAMES, simple_run
from tests.sampled_runs import Seen, stack_samples

FILES = {
    "pack/__init__.py": "",
    "pack/low.py": "import os\n\ndef work():\n    return 1\n",
    "pack/high/__init__.py": "",
    "pack/high/a.py": "from pack.low import work\n\ndef go(x):\n    return [work() for _ in x if x and _]\n",
    "pack/high/b.py": "from pack.high import a\n\nclass B:\n    def idle(self):\n        pass\n",
    "pack/notes.md": "# Notes\n",
}


def results_of(root: Path, files: dict[str, str] | None = None) -> MapResults:
    return build_results(map_of(root, FILES if files is None else files, below="pack"))


def run_of(
    root: Path,
    *stacks: Seen,
    sites: AllocationSites | None = None,
    places: dict[str, tuple[Path, int]] | None = None,
) -> Run:
    """A run whose functions are those of the tree."""
    samples = stack_samples(*stacks)
    places = {
        **(places or {}),
        "work": (root / "pack" / "low.py", 3),
        "go": (root / "pack" / "high" / "a.py", 3),
        "go.<locals>.<listcomp>": (root / "pack" / "high" / "a.py", 4),
    }
    functions = tuple(
        Function(one.name, str(places[one.name][0]), places[one.name][1]) if one.name in places else one
        for one in samples.functions
    )
    allocations = (
        None
        if sites is None
        else ProcessAllocations(
            heap_bytes=0,
            heap_allocations=0,
            frees=0,
            freed_bytes=0,
            live_bytes=0,
            peak_bytes=0,
            sites=sites,
        )
    )
    return msgspec.structs.replace(
        simple_run(), samples=msgspec.structs.replace(samples, functions=functions), allocations=allocations
    )


def test_figures_of_parts_are_those_of_all_files_in_them(tmp_path: Path) -> None:
    tree = results_of(tmp_path).tree
    assert {part.dotted: (part.file_count, part.lines.code) for part in tree.walk()} == {
        "": (6, 11),
        "high": (3, 7),
        "high.b": (1, 4),
        "high.a": (1, 3),
        "low": (1, 3),
        "(root)": (1, 1),
        "__init__": (1, 0),
    }
    assert (tree.function_count, tree.class_count) == (3, 1)


class TestHeat:
    def test_own_and_total_time_of_parts_files_and_functions(self, tmp_path: Path) -> None:
        results = results_of(tmp_path)
        run = run_of(
            tmp_path,
            Seen(stack="main;go;go.<locals>.<listcomp>;work", python=300),
            Seen(stack="main;go;go.<locals>.<listcomp>", python=100),
            Seen(stack="main;go;work;go;work", python=200),
            Seen(stack="main;norm", native=400),
        )
        heat = find_heat(results, run)
        assert heat is not None
        spent = {path: (its.own_ns // 10**6, its.total_ns // 10**6) for path, its in heat.parts.items()}
        # What calls itself is counted once.
        assert spent == {("low",): (500, 500), ("high",): (100, 600), ("high", "a"): (100, 600)}
        functions = {one.place.function.name: one.heat.own_ns // 10**6 for one in heat.functions}
        assert functions == {"work": 500, "go": 100}
        assert (heat.cpu_ns, heat.on_map_ns) == (1_000 * 10**6, 600 * 10**6)
        assert [file.path for file in heat.untouched] == ["high/b.py"]
        assert not heat.has_allocations

    def test_allocated_bytes_are_those_of_the_innermost_function(self, tmp_path: Path) -> None:
        results = results_of(tmp_path)
        sites = AllocationSites(
            sampled_bytes=1_000,
            large_from_bytes=10_000,
            functions=(
                Function("go", str(tmp_path / "pack" / "high" / "a.py"), 3),
                Function("work", str(tmp_path / "pack" / "low.py"), 3),
            ),
            nodes=(StackNode(None, 0, 4), StackNode(0, 1, 4)),
            sites=(AllocationSite(stack=1, samples=3, large_bytes=50_000, large_allocations=1),),
        )
        heat = find_heat(results, run_of(tmp_path, Seen(stack="main;go", python=100), sites=sites))
        assert heat is not None
        assert {path: its.allocated_bytes for path, its in heat.parts.items()} == {
            ("low",): 53_000,
            ("high",): 0,
            ("high", "a"): 0,
        }

    def test_a_run_from_elsewhere_is_found_by_its_modules(self, tmp_path: Path) -> None:
        results = results_of(tmp_path)
        run = run_of(tmp_path, Seen(stack="main;work", python=100))
        assert run.samples is not None
        elsewhere = tuple(
            Function("work", "/opt/lib/python3.11/site-packages/pack/low.py", 3)
            if one.name == "work"
            else one
            for one in run.samples.functions
        )
        moved = msgspec.structs.replace(
            run, samples=msgspec.structs.replace(run.samples, functions=elsewhere)
        )
        heat = find_heat(results, moved)
        assert heat is not None
        assert list(heat.files) == ["low.py"]

    def test_a_packages_heat_is_that_of_its_own_file_and_of_all_below(self, tmp_path: Path) -> None:
        files = {**FILES, "pack/high/__init__.py": "def own():\n    pass\n"}
        results = results_of(tmp_path, files)
        run = run_of(
            tmp_path,
            Seen(stack="main;go", python=300),
            Seen(stack="main;own", python=100),
            places={"own": (tmp_path / "pack" / "high" / "__init__.py", 1)},
        )
        heat = find_heat(results, run)
        assert heat is not None
        assert {path: its.own_ns // 10**6 for path, its in heat.parts.items()} == {
            ("high",): 400,
            ("high", "a"): 300,
        }

    def test_pythons_own_module_of_the_same_name_heats_nothing(self, tmp_path: Path) -> None:
        files = {
            "pack/__init__.py": "",
            "pack/threading.py": "class Condition:\n    def wait(self):\n        pass\n",
        }
        results = build_results(map_of(tmp_path, files))
        heat = find_heat(results, run_of(tmp_path, Seen(stack="main;Condition.wait", python=100)))
        assert heat is not None
        assert heat.files == {}

    def test_without_samples_there_is_none(self, tmp_path: Path) -> None:
        run = msgspec.structs.replace(simple_run(), samples=None)
        assert find_heat(results_of(tmp_path), run) is None

    def test_colours_go_from_cold_to_hot(self) -> None:
        colors = heat_colors({"never": None, "cold": 0, "warm": 50, "hot": 100})
        assert colors["never"] == colors["cold"] != colors["warm"] != colors["hot"] != colors["cold"]
        assert all(re.fullmatch("#[0-9a-f]{6}", color) for color in colors.values())

    def test_boxes_are_heated_by_what_they_stand_for(self, tmp_path: Path) -> None:
        files = {**FILES, "pack/high/__init__.py": "def own():\n    pass\n"}
        results = results_of(tmp_path, files)
        run = run_of(
            tmp_path,
            Seen(stack="main;go", python=300),
            Seen(stack="main;work", python=200),
            places={"own": (tmp_path / "pack" / "high" / "__init__.py", 1)},
        )
        heat = find_heat(results, run)
        assert heat is not None
        together = box_heats((OTHERS, "notes"), ("high", "low"), results.tree, heat, HeatBy.OWN)
        assert together == {OTHERS: 500 * 10**6, "notes": None}
        # Both may have been on the same stack.
        assert box_heats((OTHERS, "high"), ("high", "low"), results.tree, heat, HeatBy.TOTAL) == {
            "high": 300 * 10**6
        }
        run = run_of(
            tmp_path,
            Seen(stack="main;own", python=100),
            places={"own": (tmp_path / "pack" / "high" / "__init__.py", 1)},
        )
        heat = find_heat(results, run)
        assert heat is not None
        inside = box_heats(("__init__", "a"), (), results.tree.parts["high"], heat, HeatBy.OWN)
        assert inside == {"__init__": 100 * 10**6, "a": None}

    def test_every_picture_has_the_same_colours(self, tmp_path: Path) -> None:
        results = results_of(tmp_path)
        run = run_of(tmp_path, Seen(stack="main;go", python=300), Seen(stack="main;work", python=100))
        report = MapReport(results=results, heat=find_heat(results, run))
        hottest = heat_colors({"it": 1})["it"]
        svg, dot, mermaid = (
            render_map(report, chosen) for chosen in (MapFormat.SVG, MapFormat.DOT, MapFormat.MERMAID)
        )
        assert re.search(rf'<title>high: .*</title>\n?<rect class="box" style="fill:{hottest}"', svg)
        assert re.search(rf'\[label="high", style=filled, fillcolor="{hottest}"\];', dot)
        assert re.search(rf"style m\d+_high fill:{hottest},", mermaid)
        assert svg.count(hottest) == dot.count(hottest) == mermaid.count(hottest) == 1


class TestRules:
    def broken(self, tmp_path: Path, **table: object) -> list[str]:
        rules = parse_rules({key.replace("_", "-"): value for key, value in table.items()}, where="here")
        return [f"{one.where}: {one.text}" for one in check_structure(results_of(tmp_path), rules)]

    def test_forbidden_edges_by_full_names_and_those_below_the_root(self, tmp_path: Path) -> None:
        expected = ["high/a.py:1: pack.high.a imports pack.low"]
        assert self.broken(tmp_path, forbidden=["high -> low"]) == expected
        assert self.broken(tmp_path, forbidden=["pack.high.a -> pack"])[0] == expected[0]
        assert self.broken(tmp_path, forbidden=["low -> high"]) == []
        assert self.broken(tmp_path, forbidden=["low -> os"]) == ["low.py:1: pack.low imports os"]

    def test_imports_for_types_are_allowed(self, tmp_path: Path) -> None:
        files = {**FILES, "pack/low.py": "if TYPE_CHECKING:\n    import pack.high.a\n"}
        rules = parse_rules({"forbidden": ["low -> high"]}, where="here")
        assert check_structure(results_of(tmp_path, files), rules) == []

    def test_circles(self, tmp_path: Path) -> None:
        assert self.broken(tmp_path, cycles=0) == []
        files = {**FILES, "pack/low.py": "import pack.high.b\n"}
        results = results_of(tmp_path, files)
        broken = check_structure(results, parse_rules({"cycles": 0}, where="here"))
        assert [one.text for one in broken] == ["pack.high.a → pack.low → pack.high.b → pack.high.a"]
        assert check_structure(results, parse_rules({"cycles": 1}, where="here")) == []

    def test_sizes(self, tmp_path: Path) -> None:
        assert self.broken(tmp_path, max_file_lines=3) == ["high/b.py: 4 lines of code"]
        assert self.broken(tmp_path, max_function_lines=1)[0] == "high/a.py:3: go: 2 lines"
        assert self.broken(tmp_path, max_complexity=3) == ["high/a.py:3: go: a complexity of 4"]

    def test_a_rule_that_nobody_can_break_is_told(self, tmp_path: Path) -> None:
        # That nobody imports what is forbidden is the aim.
        rules = parse_rules({"forbidden": ["nowhere -> low", "low -> torch"]}, where="here")
        assert [str(rule) for rule in pointless_rules(results_of(tmp_path), rules)] == ["nowhere -> low"]

    def test_a_name_of_a_package_from_elsewhere_is_its_whole_name(self, tmp_path: Path) -> None:
        files = {**FILES, "pack/low.py": "import torch.high\nimport jax.numpy\n"}
        rules = parse_rules({"forbidden": ["low -> high", "low -> numpy", "low -> pack.high"]}, where="here")
        assert check_structure(results_of(tmp_path, files), rules) == []

    @pytest.mark.parametrize("line", ["from torch import distributed, nn", "import torch.distributed as d"])
    def test_a_module_taken_out_of_a_package_is_one_that_is_imported(self, tmp_path: Path, line: str) -> None:
        files = {**FILES, "pack/low.py": f"{line}\n"}
        rules = parse_rules({"forbidden": ["low -> torch.distributed"]}, where="here")
        broken = check_structure(results_of(tmp_path, files), rules)
        assert [one.text for one in broken] == ["pack.low imports torch.distributed"]

    def test_a_compiled_module_that_is_taken_out_of_its_package_may_be_forbidden(
        self, tmp_path: Path
    ) -> None:
        files = {
            **FILES,
            "pack/low.py": "from pack import _native\n",
            "pack/high/b.py": "from .. import _native\n",
        }
        rules = parse_rules({"forbidden": ["low -> _native", "high -> pack._native"]}, where="here")
        broken = check_structure(results_of(tmp_path, files), rules)
        assert [one.where for one in broken] == ["low.py:1", "high/b.py:1"]

    def test_a_module_without_a_source_may_be_forbidden(self, tmp_path: Path) -> None:
        files = {**FILES, "pack/low.py": "from pack._native import x\nfrom pack._native import y\n"}
        rules = parse_rules({"forbidden": ["low -> _native"]}, where="here")
        broken = check_structure(results_of(tmp_path, files), rules)
        assert {one.where for one in broken} == {"low.py:1", "low.py:2"}

    def test_modules_of_packages_from_elsewhere_are_told_apart(self, tmp_path: Path) -> None:
        files = {**FILES, "pack/low.py": "import concurrent.futures\nfrom concurrent import x\n"}
        rules = parse_rules({"forbidden": ["low -> concurrent.futures"]}, where="here")
        broken = check_structure(results_of(tmp_path, files), rules)
        assert [one.where for one in broken] == ["low.py:1"]

    @pytest.mark.parametrize(
        ("table", "said"),
        [
            ({"forbiden": []}, "did you mean 'forbidden'"),
            ({"forbidden": "a -> b"}, "must be a list"),
            ({"forbidden": ["a"]}, "'importer -> imported'"),
            ({"forbidden": [3]}, "'importer -> imported'"),
            ({"cycles": True}, "must be a whole number"),
            ({"max-complexity": -1}, "must be a whole number"),
        ],
    )
    def test_what_cannot_be_used_is_said(self, table: dict[str, object], said: str) -> None:
        with pytest.raises(UsageError, match=said):
            parse_rules(table, where="here")


def test_two_maps_tell_what_grew_and_what_is_new(tmp_path: Path) -> None:
    before = results_of(tmp_path / "1")
    after = results_of(
        tmp_path / "2",
        {
            **FILES,
            "pack/low.py": "import rich\nfrom pack.new import x\n\ndef work(a):\n    return 1 if a else 2\n",
            "pack/new.py": "import pack.low\n",
            "pack/high/b.py": "",
        },
    )
    comparison = compare_maps(before, after)
    assert {one.name: (one.code, one.grown) for one in comparison.parts if one.grown} == {
        "high": ((7, 3), -4),
        "low": ((3, 4), 1),
        "new": ((0, 1), 1),
    }
    assert [(one.importer, one.imported, one.before, one.after) for one in comparison.edges] == [
        ("low", "new", 0, 1),
        ("new", "low", 0, 1),
    ]
    assert [(one.name, one.before, one.after) for one in comparison.functions] == [("work", 1, 2)]
    assert [cycle.members for cycle in comparison.new_cycles] == [("pack.low", "pack.new")]
    assert {one.name: one.grown for one in comparison.files} == {"high.b": -4, "low": 1, "new": 1}
    assert comparison.new_packages == ("rich",)
    text = render_map_comparison_terminal(comparison)
    assert "low → new" in text
    assert "new circle: pack.low → pack.new → pack.low" in text
    assert "low → new" in render_map_comparison_markdown(comparison)
    assert "pack.low" in render_map_comparison_html(comparison)
    content = json.loads(render_map_comparison_json(comparison))
    jsonschema.Draft202012Validator(json.loads(comparison_schema())).validate(content)
    assert {one["name"]: (one["code_before"], one["code_after"]) for one in content["files"]} == {
        "high.b": (4, 0),
        "low": (3, 4),
        "new": (None, 1),
    }
    assert content["edges"][0] == {
        "importer": "low",
        "imported": "new",
        "imports_before": None,
        "imports_after": 1,
    }
    assert content["new_cycles"] == [["pack.low", "pack.new"]]
    assert [content[side]["lines"]["code"] for side in ("before", "after")] == [
        side.tree.lines.code for side in (before, after)
    ]


def test_a_file_that_changed_and_did_not_grow_is_told(tmp_path: Path) -> None:
    before = results_of(tmp_path / "1")
    other = {**FILES, "pack/low.py": "import os\n\ndef other():\n    return 1\n"}
    comparison = compare_maps(before, results_of(tmp_path / "2", other))
    assert [(one.name, one.grown, one.file_counts) for one in comparison.files] == [("low", 0, (1, 1))]


def test_a_circle_that_grew_is_neither_new_nor_gone(tmp_path: Path) -> None:
    files = {
        "pack/__init__.py": "",
        "pack/a.py": "import pack.b\n",
        "pack/b.py": "import pack.a\n",
        "pack/c.py": "",
    }
    before = results_of(tmp_path / "1", files)
    after = results_of(
        tmp_path / "2", {**files, "pack/b.py": "import pack.a, pack.c\n", "pack/c.py": "import pack.a\n"}
    )
    comparison = compare_maps(before, after)
    assert comparison.new_cycles == comparison.gone_cycles == ()
    assert [(come, gone) for _, come, gone in comparison.changed_cycles] == [(("pack.c",), ())]
    assert "circle of pack.a, now with pack.c" in render_map_comparison_terminal(comparison)


def overlap(one: Box, other: Box) -> bool:
    beside = one.x + one.width <= other.x or other.x + other.width <= one.x
    apart = one.y + one.height <= other.y or other.y + other.height <= one.y
    return not (beside or apart)


@pytest.mark.parametrize("count", [1, 30, 300])
def test_boxes_do_not_overlap_and_many_small_ones_are_one(tmp_path: Path, count: int) -> None:
    files = {"pack/__init__.py": ""} | {
        f"pack/m{number:03}.py": f"from pack import m{(number * 7 + 1) % count:03}\n" * (number + 1)
        for number in range(count)
    }
    picture = draw_system_map(results_of(tmp_path, files))
    assert len(picture.boxes) == min(count + 1, MOST_BOXES)
    assert (OTHERS in {box.name for box in picture.boxes}) is (count + 1 > MOST_BOXES)
    assert not any(overlap(one, other) for one, other in itertools.combinations(picture.boxes, 2))
    assert all(box.x >= 0 and box.x + box.width <= picture.width for box in picture.boxes)
    assert all(box.y >= 0 and box.y + box.height <= picture.height for box in picture.boxes)
    names = {box.name for box in picture.boxes}
    assert all({edge.importer, edge.imported} <= names for edge in picture.edges)


def test_diagrams_of_very_many_modules_are_grouped_too(tmp_path: Path) -> None:
    files = {"pack/__init__.py": ""} | {f"pack/m{number}.py": "import pack\n" for number in range(200)}
    report = MapReport(results=results_of(tmp_path, files))
    for chosen in (MapFormat.MERMAID, MapFormat.DOT):
        text = render_map(report, chosen)
        assert "(others)" in text
        assert len(text.splitlines()) < 3 * MOST_BOXES


def test_mermaid_gets_no_more_edges_than_it_draws_and_no_markup(tmp_path: Path) -> None:
    names = [f"m{number:02}" for number in range(35)]
    files = {f"pack/{one}.py": "".join(f"import pack.{other}\n" for other in names) for one in names}
    files |= {"pack/__init__.py": "", "pack/<img onerror=x>#35;/a.py": "import os\n"}
    text = render_map(MapReport(results=results_of(tmp_path, files)), MapFormat.MERMAID)
    assert text.count("-->|") == 400
    assert "%% The 400 heaviest of 1190 edges." in text
    assert '["#60;img onerror=x#62;#35;35;"]' in text


def test_a_project_with_one_package_shows_what_is_in_it(tmp_path: Path) -> None:
    files = {**{f"src/{path}": text for path, text in FILES.items()}, "README.md": "x\n"}
    results = build_results(map_of(tmp_path, files))
    assert results.start.dotted == "pack"
    assert [(edge.importer, edge.imported) for edge in results.top.edges] == [("high", "low")]
    assert {"high", "low"} <= {box.name for box in draw_system_map(results).boxes}
    assert "1 edge between modules in pack" in render_map(MapReport(results=results), MapFormat.TERMINAL)


def test_a_project_with_one_package_whose_own_file_imports(tmp_path: Path) -> None:
    files = {
        "pack/__init__.py": "from pack.a import x\n",
        "pack/a.py": "x = 1\n",
        "pack/data/notes.md": "x\n",
    }
    results = build_results(map_of(tmp_path, files))
    assert (results.start.dotted, set(results.top.names)) == ("pack", {"a", "data", "__init__"})
    for chosen in MapFormat:
        assert "__init__" in render_map(MapReport(results=results), chosen)


def test_edges_of_maps_that_start_elsewhere_are_compared_from_the_root(tmp_path: Path) -> None:
    files = {"pack/__init__.py": "", "pack/a.py": "import pack.b\n", "pack/b.py": "x = 1\n"}
    before = build_results(map_of(tmp_path / "1", files))
    tests = {"tests/__init__.py": "", "tests/test_a.py": "import pack.a\n"}
    after = build_results(map_of(tmp_path / "2", {**files, **tests}))
    assert before.start.dotted == "pack"
    comparison = compare_maps(before, after)
    assert [(one.importer, one.imported, one.before) for one in comparison.edges] == [("tests", "pack", 0)]


def test_a_module_with_the_name_of_its_package_is_not_that(tmp_path: Path) -> None:
    results = results_of(
        tmp_path, {"pack/__init__.py": "from pack.pack import x\n", "pack/pack.py": "x = 1\n"}
    )
    assert [(edge.importer, edge.imported) for edge in results.top.edges] == [("__init__", "pack")]


def test_every_table_has_as_many_rows_as_are_wanted(tmp_path: Path) -> None:
    files = {"pack/__init__.py": ""} | {
        f"pack/m{at:02}.py": f"import pack.m{at + 1:02}\n" for at in range(30)
    }
    text = render_map(MapReport(results=results_of(tmp_path, files), top=3), MapFormat.TERMINAL)
    assert "27 modules in lower layers not shown" in text


def test_every_key_of_the_file_is_there(tmp_path: Path) -> None:
    content = json.loads(render_map_json(results_of(tmp_path)))
    keys = [set(file) for file in content["files"]]
    assert all(one == keys[0] for one in keys)
    assert content["files"][0]["lines"]["comment"] == 0


def test_who_imports_stands_above_what_is_imported(tmp_path: Path) -> None:
    boxes = {box.name: box for box in draw_system_map(results_of(tmp_path)).boxes}
    assert boxes["high"].y < boxes["low"].y
    assert boxes["__init__"].layer is None


def test_all_documents_and_formats(tmp_path: Path) -> None:
    results = results_of(tmp_path)
    heat = find_heat(results, run_of(tmp_path, Seen(stack="main;go;work", python=100)))
    report = MapReport(results=results, heat=heat)
    documents = map_documents(report)
    assert list(documents) == [
        "module_inventory.md",
        "dependency_graph.md",
        "system_map.md",
        "system_map.svg",
        "module_inventory.json",
        "module_dependencies.json",
        "code_map.json",
        "code_map.html",
    ]
    ET.fromstring(documents["system_map.svg"])  # noqa: S314 - our own
    assert "![System map of pack](system_map.svg)" in documents["system_map.md"]
    inventory = json.loads(documents["module_inventory.json"])
    assert [one["name"] for one in inventory["modules"]] == ["high", "low", "(root)", "__init__"]
    dependencies = json.loads(documents["module_dependencies.json"])
    assert dependencies["top"]["edges"] == [
        {"importer": "high", "imported": "low", "imports": 1, "kinds": {"always": 1}}
    ]
    for chosen in MapFormat:
        assert "high" in render_map(report, chosen)
    assert "-->|1|" in render_map(report, MapFormat.MERMAID)
    assert "->" in render_map(report, MapFormat.DOT)


def test_the_file_fits_its_schema_and_is_read_back(tmp_path: Path) -> None:
    results = results_of(tmp_path)
    heat = find_heat(results, run_of(tmp_path, Seen(stack="main;go;work", python=100)))
    text = render_map_json(results, heat)
    assert text.isascii()
    jsonschema.Draft202012Validator(json.loads(schema_text())).validate(json.loads(text))
    assert msgspec.json.decode(text, type=type(results.code)) == results.code


@pytest.mark.parametrize(
    ("module", "name"), [("codemap_json", "map"), ("codemap_comparison_json", "map-comparison")]
)
def test_the_published_schema_is_the_one_of_the_code(module: str, name: str) -> None:
    published = Path(__file__).parents[2] / "docs" / f"{name}.schema.json"
    command = [sys.executable, "-m", f"pyrometer.report.{module}"]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    assert published.read_text(encoding="utf-8") == printed


@pytest.mark.parametrize(
    "name", [name for name in HOSTILE_NAMES if name and "/" not in name and "\0" not in name]
)
def test_hostile_names_of_files_drive_nothing(tmp_path: Path, name: str) -> None:
    files = {"pack/__init__.py": "", "pack/a.py": "import pack.b\n", "pack/b.py": ""}
    results = results_of(tmp_path, files)
    try:
        (tmp_path / "pack" / f"{name}.py").write_text("import pack.a\n")
    except (OSError, UnicodeEncodeError):
        pytest.skip("no file can have this name here")
    results = results_of(tmp_path, {})
    report = MapReport(results=results, top=None)
    terminal = render_map(report, MapFormat.TERMINAL)
    assert all(character.isprintable() or character == "\n" for character in terminal)
    ET.fromstring(render_map(report, MapFormat.SVG))  # noqa: S314 - our own
    assert "<script" not in render_map(report, MapFormat.MARKDOWN)
    json.loads(render_map(report, MapFormat.JSON))
