import json
import os
from pathlib import Path

import msgspec
import pytest
import typer
from typer.testing import CliRunner, Result

from pyrometer.cli.report import report
from pyrometer.errors import PyrometerError, RunFileError, UsageError
from pyrometer.record.run import Program
from pyrometer.report import render_json, render_markdown, render_terminal
from pyrometer.report.levels import Level
from pyrometer.store.run_files import write_run
from tests.placed_runs import placed_run
from tests.report.sample_runs import empty_run, simple_run, threaded_run
from tests.report.test_sample_report import sampled_run
from tests.torch_runs import training_run


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("COLUMNS", raising=False)


def invoke(*arguments: str) -> Result:
    app = typer.Typer()
    app.command("report")(report)
    return CliRunner().invoke(app, arguments)


def report_of(*arguments: str) -> str:
    result = invoke(*arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


def error_of(*arguments: str) -> PyrometerError:
    error = invoke(*arguments).exception
    assert isinstance(error, PyrometerError)
    return error


def test_a_run_file_is_reported_for_the_terminal() -> None:
    write_run(simple_run(), Path("run.json"))
    assert report_of("run.json") == render_terminal(simple_run())


def test_a_runs_folder_and_a_packed_file_do_as_well() -> None:
    write_run(simple_run(), Path("some-run/run.json"))
    write_run(simple_run(), Path("packed.json.gz"))
    assert report_of("some-run") == report_of("packed.json.gz") == render_terminal(simple_run())


def test_the_other_formats_are_there_for_the_asking() -> None:
    write_run(threaded_run(), Path("run.json"))
    assert report_of("run.json", "--format", "markdown") == render_markdown(threaded_run())
    assert report_of("run.json", "--format", "json") == render_json(threaded_run())


def test_another_run_is_never_overwritten_by_a_report() -> None:
    write_run(training_run(), Path("run.json"))
    write_run(training_run(), Path("other.json"))
    before = Path("other.json").read_bytes()
    assert "is another run" in str(error_of("run.json", "-o", "other.json"))
    write_run(training_run(), Path("other.json.gz"))
    assert "is another run" in str(error_of("run.json", "--format", "json", "-o", "other.json.gz"))
    for path in ("run.json", "other.json"):
        error = error_of("run.json", "other.json", "--format", "baseline-page", "-o", path)
        assert "is the run itself" in str(error)
    assert Path("other.json").read_bytes() == before


def test_an_ending_that_no_report_has_is_refused_unless_the_format_is_said() -> None:
    write_run(training_run(), Path("run.json"))
    assert "no report has the ending '.pdf'" in str(error_of("run.json", "-o", "report.pdf"))
    report_of("run.json", "--format", "terminal", "-o", "report.pdf")


def test_a_brief_has_no_level() -> None:
    write_run(training_run(), Path("run.json"))
    assert "--brief is a level of its own" in str(error_of("run.json", "--brief", "--level", "deep"))


def test_a_run_of_another_program_to_hold_targets_against_is_doubted() -> None:
    Path("pyproject.toml").write_text('[tool.pyrometer.targets]\nthroughput = "+30%"\n')
    write_run(training_run(), Path("run.json"))
    other = msgspec.structs.replace(training_run().program, argv=("other.py",))
    write_run(msgspec.structs.replace(training_run(), program=other), Path("other.json"))
    assert "mind: --against is a run of other.py" in invoke("run.json", "--against", "other.json").stderr
    Path("pyproject.toml").unlink()
    assert "this project sets none" in invoke("run.json", "--against", "other.json").stderr


def test_tables_of_another_run_are_not_left_beside_those_of_this_one() -> None:
    write_run(training_run(), Path("run.json"))
    write_run(simple_run(), Path("simple.json"))
    report_of("run.json", "--format", "csv", "-o", "tables")
    Path("tables/notes.csv").write_text("mine")
    report_of("simple.json", "--format", "csv", "-o", "tables")
    names = {path.name for path in Path("tables").iterdir()}
    assert "steps.csv" not in names
    assert {"scopes.csv", "notes.csv"} <= names


def test_the_kept_report_shows_the_roofline_from_where_it_is() -> None:
    write_run(placed_run(), Path("run.json"))
    Path("sub").mkdir()
    report_of("run.json", "-o", "sub/a.md", "--roofline", "r.svg", "--keep")
    assert "(../r.svg)" in Path("sub/a.md").read_text()
    assert "(r.svg)" in Path("deep-profile-report.md").read_text()


def test_a_page_is_made_by_its_ending_or_its_format() -> None:
    write_run(training_run(), Path("run.json"))
    report_of("run.json", "-o", "page.html")
    page = Path("page.html").read_text()
    assert page.startswith("<!doctype html>")
    assert report_of("run.json", "--format", "html") == page


def test_levels_and_a_brief_are_markdown() -> None:
    write_run(training_run(), Path("run.json"))
    for level in Level:
        expected = render_markdown(training_run(), level=level)
        assert report_of("run.json", "--level", level.value) == expected
    brief = report_of("run.json", "--brief")
    assert brief == render_markdown(training_run(), brief=True)
    assert len(brief.splitlines()) < 60


@pytest.mark.parametrize("option", [("--brief",), ("--level", "deep")])
def test_words_for_markdown_are_refused_for_other_formats(option: tuple[str, ...]) -> None:
    write_run(training_run(), Path("run.json"))
    error = error_of("run.json", "--format", "json", *option)
    assert str(error) == f"{option[0]} is for Markdown, and the format is json"


@pytest.mark.parametrize(
    ("format_name", "file_name"),
    [
        ("markdown", "deep-profile-report.md"),
        ("html", "report.html"),
        ("json", "report.json"),
        ("findings", "findings.json"),
        ("agent", "agent-brief.md"),
        ("trace", "timeline.json"),
        ("terminal", "report.txt"),
        ("baseline-page", "profiling_report.md"),
    ],
)
def test_in_a_folder_a_report_gets_the_name_of_its_format(format_name: str, file_name: str) -> None:
    write_run(training_run(), Path("run.json"))
    Path("reports").mkdir()
    report_of("run.json", "--format", format_name, "-o", "reports")
    assert [path.name for path in Path("reports").iterdir()] == [file_name]
    assert Path("reports", file_name).stat().st_size > 100


@pytest.mark.parametrize(
    ("format_name", "file_name"),
    [
        ("flamegraph", "flamegraph.svg"),
        ("collapsed", "stacks.txt"),
        ("speedscope", "speedscope.json"),
        ("pprof", "profile.pb.gz"),
    ],
)
def test_stacks_are_a_format_as_well_as_an_option(format_name: str, file_name: str) -> None:
    write_run(sampled_run(), Path("run.json"))
    assert "-o FILE" in str(error_of("run.json", "--format", format_name))
    Path("reports").mkdir()
    assert report_of("run.json", "--format", format_name, "-o", "reports") == ""
    report_of("run.json", f"--{format_name}", "by-option")
    assert Path("reports", file_name).read_bytes() == Path("by-option").read_bytes()


def test_levels_have_names_of_their_own_in_a_folder() -> None:
    write_run(training_run(), Path("run.json"))
    Path("reports").mkdir()
    for level in Level:
        report_of("run.json", "--level", level.value, "-o", "reports")
    names = {path.name for path in Path("reports").iterdir()}
    assert names == {"profile-report.md", "deep-profile-report.md", "comprehensive-report.md"}


def test_every_table_is_written_as_csv_to_a_folder() -> None:
    write_run(training_run(), Path("run.json"))
    result = invoke("run.json", "--format", "csv", "-o", "tables/of/it")
    assert result.exit_code == 0
    names = {path.name for path in Path("tables/of/it").iterdir()}
    assert {"steps.csv", "phases.csv", "modules.csv", "findings.csv"} <= names
    assert "-o FOLDER" in str(error_of("run.json", "--format", "csv"))


def test_the_page_beside_the_run_is_made_for_the_asking() -> None:
    write_run(training_run(), Path("a-run/run.json"))
    result = invoke("a-run", "--html")
    assert (result.stdout, result.stderr) == ("", "page written to a-run/report.html\n")
    assert Path("a-run/report.html").exists()


def test_the_report_is_kept_beside_the_run_for_the_asking() -> None:
    write_run(training_run(), Path("a-run/run.json"))
    result = invoke("a-run", "--keep", "--level", "standard")
    assert result.stdout == render_terminal(training_run())
    assert result.stderr == "report kept in a-run/profile-report.md\n"
    kept = Path("a-run/profile-report.md").read_text()
    assert kept == render_markdown(training_run(), level=Level.STANDARD)


def test_targets_of_the_project_are_judged_against_another_run() -> None:
    Path("pyproject.toml").write_text('[tool.pyrometer.targets]\nthroughput = "+30%"\n')
    write_run(training_run(), Path("run.json"))
    alone = json.loads(report_of("run.json", "--format", "findings"))["targets"]
    assert [target["met"] for target in alone] == [False]
    against = json.loads(report_of("run.json", "--format", "findings", "--against", "run.json"))["targets"]
    assert against[0]["relative_to"] != alone[0]["relative_to"]


def test_targets_that_cannot_be_read_are_named() -> None:
    Path("pyproject.toml").write_text('[tool.pyrometer.targets]\nthroughput = "a lot"\n')
    write_run(training_run(), Path("run.json"))
    assert "throughput is 'a lot'" in str(error_of("run.json"))


def test_top_sets_how_many_scopes_are_shown() -> None:
    write_run(simple_run(), Path("run.json"))
    assert report_of("run.json", "--top", "2") == render_terminal(simple_run(), top=2)
    assert len(json.loads(report_of("run.json", "--format", "json", "--top", "2"))["scopes"]) == 2
    assert invoke("run.json", "--top", "0").exit_code == 2


def test_each_thread_is_shown_by_itself_for_the_asking() -> None:
    write_run(threaded_run(), Path("run.json"))
    assert report_of("run.json", "--by-thread") == render_terminal(threaded_run(), by_thread=True)
    markdown = report_of("run.json", "--by-thread", "--format", "markdown", "--top", "2")
    assert markdown == render_markdown(threaded_run(), top=2, by_thread=True)
    assert report_of("run.json", "--by-thread", "--format", "json") == render_json(threaded_run())
    report_of("run.json", "--by-thread", "-o", "report.txt")
    assert Path("report.txt").read_text(encoding="utf-8") == render_terminal(threaded_run(), by_thread=True)


def test_the_report_goes_to_a_file_in_the_format_of_its_ending() -> None:
    write_run(simple_run(), Path("run.json"))
    for name, text in (
        ("report.md", render_markdown(simple_run())),
        ("report.json", render_json(simple_run())),
        ("report.txt", render_terminal(simple_run())),
    ):
        assert report_of("run.json", "-o", name) == ""
        assert Path(name).read_text(encoding="utf-8") == text


def test_the_format_asked_for_wins_over_the_ending() -> None:
    write_run(simple_run(), Path("run.json"))
    report_of("run.json", "--format", "markdown", "-o", "report.json")
    assert Path("report.json").read_text(encoding="utf-8") == render_markdown(simple_run())


def test_without_a_run_the_newest_one_is_reported_and_named() -> None:
    old, new = Path("pyrometer-runs/b-old/run.json"), Path("pyrometer-runs/a-new/run.json")
    write_run(empty_run(), old)
    write_run(simple_run(), new)
    os.utime(old, ns=(1_000, 1_000))
    os.utime(new, ns=(2_000, 2_000))
    result = invoke()
    assert result.stdout == render_terminal(simple_run())
    assert result.stderr == f"{new}:\n"


def test_without_any_run_the_error_says_how_to_get_one() -> None:
    error = error_of()
    assert isinstance(error, UsageError)
    assert "pyrometer-runs" in str(error)
    assert "pyrometer run SCRIPT" in str(error)


def test_a_file_that_is_no_run_is_named() -> None:
    Path("notes.json").write_text("[1, 2]", encoding="utf-8")
    error = error_of("notes.json")
    assert isinstance(error, RunFileError)
    assert "notes.json" in str(error)


def test_the_run_is_not_overwritten_by_its_own_report() -> None:
    write_run(simple_run(), Path("kept/run.json"))
    before = Path("kept/run.json").read_bytes()
    for run in ("kept", "kept/run.json"):
        assert "is the run itself" in str(error_of(run, "-o", "kept/run.json"))
    assert Path("kept/run.json").read_bytes() == before


def test_a_place_that_cannot_be_written_is_named() -> None:
    write_run(simple_run(), Path("run.json"))
    assert "no-such-folder" in str(error_of("run.json", "-o", "no-such-folder/report.md"))


def test_a_baseline_is_made_from_several_runs() -> None:
    other = Program(name="other.py", argv=("other.py",), working_directory="/home/ada")
    write_run(training_run(), Path("run.json"))
    write_run(msgspec.structs.replace(training_run(), program=other), Path("other.json"))
    baseline = json.loads(report_of("run.json", "other.json", "--format", "baseline"))
    assert list(baseline["configurations"]) == ["train.py --epochs 3", "other.py"]
    assert baseline["commands"] == ["pyrometer run --baseline baseline.json train.py --epochs 3"]


def test_a_baseline_in_the_file_is_added_to() -> None:
    other = Program(name="other.py", argv=("other.py",), working_directory="/home/ada")
    write_run(training_run(), Path("run.json"))
    write_run(msgspec.structs.replace(training_run(), program=other), Path("other.json"))
    for run in ("run.json", "other.json", "run.json"):
        assert report_of(run, "--format", "baseline", "-o", "new/baseline.json") == ""
    baseline = json.loads(Path("new/baseline.json").read_text(encoding="utf-8"))
    assert list(baseline["configurations"]) == ["train.py --epochs 3", "other.py"]
    place = Path("new/baseline.json").absolute()
    assert baseline["commands"] == [f"pyrometer run --baseline {place} train.py --epochs 3"]


def test_a_baseline_never_replaces_another_file() -> None:
    write_run(training_run(), Path("run.json"))
    before = Path("run.json").read_bytes()
    error = error_of("run.json", "--format", "baseline", "-o", "run.json")
    assert "run.json exists and is not a baseline that could be added to" in str(error)
    assert Path("run.json").read_bytes() == before


def test_other_reports_are_of_one_run() -> None:
    write_run(simple_run(), Path("run.json"))
    assert str(error_of("run.json", "run.json")) == (
        "2 runs are too many for one report; only --format baseline and baseline-page take several"
    )


def test_a_stream_of_few_characters_gets_a_report_all_the_same() -> None:
    write_run(threaded_run(), Path("run.json"))
    app = typer.Typer()
    app.command("report")(report)
    runner = CliRunner(charset="ascii")
    assert runner.invoke(app, ["run.json"]).stdout == render_terminal(threaded_run(), ascii_only=True)
    markdown = runner.invoke(app, ["run.json", "--format", "markdown"]).stdout
    assert markdown.isascii()
    assert "train_step \\u2225" in markdown


def test_the_roofline_is_drawn_into_a_file_beside_the_report() -> None:
    write_run(placed_run(), Path("run.json"))
    printed = report_of("run.json", "--roofline", "roofline.svg")
    assert "Roofline: how much of the machine is used" in printed
    assert Path("roofline.svg").read_text(encoding="utf-8").startswith("<svg ")


def test_a_report_in_markdown_shows_the_roofline_where_it_is() -> None:
    write_run(placed_run(), Path("run.json"))
    Path("pages").mkdir()
    report_of("run.json", "-o", "pages/run.md", "--roofline", "roofline.svg")
    assert "](../roofline.svg)" in Path("pages/run.md").read_text(encoding="utf-8")


def test_a_roofline_that_cannot_be_drawn_says_what_to_do() -> None:
    write_run(training_run(), Path("trained.json"))
    assert "--roofline: the run does not know the limits" in str(
        error_of("trained.json", "--roofline", "a.svg")
    )
    write_run(simple_run(), Path("plain.json"))
    assert "did not use PyTorch" in str(error_of("plain.json", "--roofline", "a.svg"))
    write_run(placed_run(), Path("run.json"))
    assert "is the run itself" in str(error_of("run.json", "--roofline", "run.json"))
    assert "Name another file with --roofline" in str(error_of("run.json", "--roofline", "no/where.svg"))
    assert not Path("a.svg").exists()


def test_more_functions_and_lines_are_shown_for_the_asking() -> None:
    write_run(sampled_run(), Path("run.json"))
    assert report_of("run.json") == render_terminal(sampled_run())
    assert report_of("run.json", "--functions") == render_terminal(sampled_run(), functions=True)


def test_a_markdown_file_has_its_flame_graph_beside_it() -> None:
    write_run(sampled_run(), Path("run.json"))
    report_of("run.json", "-o", "my report.md")
    text = Path("my report.md").read_text(encoding="utf-8")
    assert text == render_markdown(sampled_run(), flamegraph="my report.flamegraph.svg")
    assert Path("my report.flamegraph.svg").read_text(encoding="utf-8").startswith("<svg ")
    assert report_of("run.json", "--format", "markdown") == render_markdown(sampled_run())


def test_the_stacks_are_written_in_every_format_asked_for_and_nothing_else() -> None:
    write_run(sampled_run(), Path("run.json"))
    options = [
        "--flamegraph",
        "f.svg",
        "--collapsed",
        "c.txt",
        "--speedscope",
        "s.json",
        "--pprof",
        "p.pb.gz",
    ]
    result = invoke("run.json", *options)
    assert result.stdout == ""
    assert result.stderr.splitlines()[0] == "f.svg: 1,809 samples, open it in a browser"
    assert [line.partition(":")[0] for line in result.stderr.splitlines()] == options[1::2]
    assert Path("f.svg").read_text(encoding="utf-8").startswith("<svg ")
    assert Path("c.txt").read_text(encoding="utf-8").count("\n") == 11
    assert json.loads(Path("s.json").read_bytes())["profiles"][0]["name"] == "CPU time"
    assert Path("p.pb.gz").read_bytes()[:2] == b"\x1f\x8b"


def test_collapsed_stacks_count_what_is_asked_for() -> None:
    write_run(sampled_run(), Path("run.json"))
    report_of("run.json", "--collapsed", "c.txt", "--weight", "samples")
    counts = [int(line.rpartition(" ")[2]) for line in Path("c.txt").read_text(encoding="utf-8").splitlines()]
    assert sum(counts) == 1_809
    assert "name that file too" in str(error_of("run.json", "--weight", "samples"))


def test_a_report_is_written_besides_the_stacks_if_that_is_asked_for_as_well() -> None:
    write_run(sampled_run(), Path("run.json"))
    assert report_of("run.json", "--pprof", "p.pb.gz", "--format", "json") == render_json(sampled_run())
    assert Path("p.pb.gz").exists()


def test_stacks_of_a_run_without_any_are_refused() -> None:
    write_run(simple_run(), Path("run.json"))
    for option in ("--flamegraph", "--collapsed", "--speedscope", "--pprof"):
        error = error_of("run.json", option, "out.file")
        assert isinstance(error, UsageError)
        assert "run.json has no stack samples to write" in str(error)
    assert not Path("out.file").exists()


def test_stacks_are_never_written_over_the_run() -> None:
    write_run(sampled_run(), Path("run.json"))
    before = Path("run.json").read_bytes()
    assert str(error_of("run.json", "--speedscope", "run.json")) == (
        "run.json is the run itself: name another file for its speedscope file with --speedscope"
    )
    assert Path("run.json").read_bytes() == before
