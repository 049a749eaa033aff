"""Settings from pyproject.toml, and what is said about ones that cannot be used."""

from pathlib import Path

import pytest

from pyrometer.errors import UsageError
from pyrometer.store.settings import RunSettings, load_run_settings, load_targets, parse_steps

SAMPLE_HZ = "a number of looks a second from 1 to 10,000, or 0 for none"
WARMUP = "a whole number from 0 to 256: so many first steps are kept one by one"


def write_settings(folder: Path, text: str) -> Path:
    path = folder / "pyproject.toml"
    path.write_text(text)
    return path


def refusal(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_run_settings(folder)
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"{folder / 'pyproject.toml'}: ")
    return message.removeprefix(f"{folder / 'pyproject.toml'}: ")


def test_every_setting_is_read(tmp_path: Path) -> None:
    write_settings(
        tmp_path,
        '[tool.pyrometer.run]\noutput = "runs"\ntop = 5\nquiet = true\nreport = false\n'
        'live = false\nwarmup = 0\nsteps = "10:60"\n',
    )
    assert load_run_settings(tmp_path) == RunSettings(
        output="runs", top=5, quiet=True, report=False, live=False, warmup=0, steps=(10, 60)
    )


def test_settings_left_out_keep_their_defaults(tmp_path: Path) -> None:
    write_settings(tmp_path, "[tool.pyrometer.run]\ntop = 1\n")
    assert load_run_settings(tmp_path) == RunSettings(output=None, top=1, quiet=False, report=True)


def test_the_project_above_the_folder_counts(tmp_path: Path) -> None:
    write_settings(tmp_path, "[tool.pyrometer.run]\ntop = 7\n")
    inner = tmp_path / "examples" / "small"
    inner.mkdir(parents=True)
    assert load_run_settings(inner).top == 7


def test_the_nearest_project_counts_even_when_it_says_nothing(tmp_path: Path) -> None:
    write_settings(tmp_path, "[tool.pyrometer.run]\ntop = 7\n")
    inner = tmp_path / "inner"
    inner.mkdir()
    write_settings(inner, '[project]\nname = "inner"\n')
    assert load_run_settings(inner) == RunSettings()


def test_a_relative_folder_is_searched_upwards_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write_settings(tmp_path, "[tool.pyrometer.run]\ntop = 7\n")
    (tmp_path / "inner").mkdir()
    monkeypatch.chdir(tmp_path / "inner")
    assert load_run_settings(Path()).top == 7


def test_a_near_miss_is_answered_with_the_key_that_was_meant(tmp_path: Path) -> None:
    write_settings(tmp_path, '[tool.pyrometer.run]\nouput = "runs"\n')
    assert (
        refusal(tmp_path) == "[tool.pyrometer.run] has no key 'ouput' (value 'runs'); did you mean 'output'?"
    )


def test_an_unknown_key_is_answered_with_those_there_are(tmp_path: Path) -> None:
    write_settings(tmp_path, "[tool.pyrometer.run]\ncolour = 3\n")
    assert refusal(tmp_path) == (
        "[tool.pyrometer.run] has no key 'colour' (value 3); allowed: output, top, quiet, report, html, "
        "live, history, deep, memory, python_memory, ops, warmup, steps, sample_hz, native"
    )


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("top = 0", "top is 0, but must be a whole number from 1"),
        ("top = true", "top is True, but must be a whole number from 1"),
        ("top = 2.5", "top is 2.5, but must be a whole number from 1"),
        ("quiet = 1", "quiet is 1, but must be true or false"),
        ('report = "no"', "report is 'no', but must be true or false"),
        ("output = 3", "output is 3, but must be a file or folder name in quotes"),
        ('output = ""', "output is '', but must be a file or folder name in quotes"),
        ("live = 1", "live is 1, but must be true or false"),
        (
            "warmup = 257",
            f"warmup is 257, but must be {WARMUP}",
        ),
        (
            "warmup = true",
            f"warmup is True, but must be {WARMUP}",
        ),
        ("sample_hz = 0.5", f"sample_hz is 0.5, but must be {SAMPLE_HZ}"),
        ("sample_hz = true", f"sample_hz is True, but must be {SAMPLE_HZ}"),
        ("sample_hz = 10001", f"sample_hz is 10001, but must be {SAMPLE_HZ}"),
        ("steps = 5", "steps is 5, but must be A:B with whole numbers, such as '100:200', '100:' or ':200'"),
    ],
)
def test_a_value_of_the_wrong_kind_is_named_with_what_is_allowed(
    tmp_path: Path, line: str, message: str
) -> None:
    write_settings(tmp_path, f"[tool.pyrometer.run]\n{line}\n")
    assert refusal(tmp_path) == f"[tool.pyrometer.run] {message}"


@pytest.mark.parametrize(
    ("text", "window"),
    [("10:60", (10, 60)), ("10:", (10, None)), (":60", (0, 60)), (":", (0, None)), ("0:1", (0, 1))],
)
def test_a_window_of_steps_may_leave_out_either_end(text: str, window: tuple[int, int | None]) -> None:
    assert parse_steps("--steps", text) == window


@pytest.mark.parametrize(
    "text", ["", "5", "a:b", "1:2:3", "-1:5", "5:-1", "1.5:2", " 1:2", "\u0661:\u0662", "1:" + 19 * "9"]
)
def test_what_is_no_window_of_steps_is_told_what_one_looks_like(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_steps("--steps", text)
    assert str(caught.value) == (
        f"--steps is {text!r}, but must be A:B with whole numbers, such as '100:200', '100:' or ':200'"
    )


@pytest.mark.parametrize("text", ["5:5", "5:3", "5:0"])
def test_a_window_without_a_step_is_told_where_it_could_end(text: str) -> None:
    with pytest.raises(UsageError) as caught:
        parse_steps("--steps", text)
    assert str(caught.value) == f"--steps is {text!r}, which holds no step; end it at 6 or later"


def test_a_setting_outside_the_commands_table_is_told_where_it_belongs(tmp_path: Path) -> None:
    write_settings(tmp_path, "[tool.pyrometer]\ntop = 5\n")
    message = refusal(tmp_path)
    assert message == (
        "[tool.pyrometer] has no key 'top'; the settings of pyrometer run belong in [tool.pyrometer.run]"
    )


def test_something_that_is_no_table_is_refused(tmp_path: Path) -> None:
    write_settings(tmp_path, "[tool.pyrometer]\nrun = 5\n")
    assert refusal(tmp_path) == "tool.pyrometer.run is 5, but must be a table: write [tool.pyrometer.run]"
    write_settings(tmp_path, "[tool]\npyrometer = 5\n")
    assert refusal(tmp_path) == "tool.pyrometer is 5, but must be a table: write [tool.pyrometer.run]"


@pytest.mark.parametrize("text", ["[tool.pyrometer.run", "top = ", "a = 1\na = 2", "x = " + "[" * 100_000])
def test_broken_toml_is_one_line_naming_the_file(tmp_path: Path, text: str) -> None:
    write_settings(tmp_path, text)
    assert refusal(tmp_path).startswith("is not valid TOML: ")


def test_a_file_that_is_not_text_is_one_line_naming_the_file(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_bytes(b"\xff\xfe")
    assert refusal(tmp_path).startswith("is not valid TOML: ")


def test_a_project_whose_tool_is_no_table_has_no_settings(tmp_path: Path) -> None:
    write_settings(tmp_path, "tool = 3\n")
    assert load_run_settings(tmp_path) == RunSettings()


# Targets.


def target_refusal(folder: Path) -> str:
    with pytest.raises(UsageError) as caught:
        load_targets(folder)
    message = str(caught.value)
    assert "\n" not in message
    return message.removeprefix(f"{folder / 'pyproject.toml'}: ")


def test_targets_are_read_in_their_order(tmp_path: Path) -> None:
    write_settings(
        tmp_path,
        '[tool.pyrometer.targets]\nthroughput = "+30%"\nstep_latency = "<= 5 ms"\ntokens_per_s = 20\n',
    )
    targets = load_targets(tmp_path)
    assert [(target.name, target.goal.written) for target in targets] == [
        ("throughput", "+30%"),
        ("step_latency", "<= 5 ms"),
        ("tokens_per_s", "20"),
    ]


@pytest.mark.parametrize("text", ["", "[tool.pyrometer.run]\ntop = 5\n", "tool = 3\n"])
def test_a_project_without_targets_has_none(tmp_path: Path, text: str) -> None:
    write_settings(tmp_path, text)
    assert load_targets(tmp_path) == ()


def test_the_settings_of_a_run_are_read_beside_targets(tmp_path: Path) -> None:
    write_settings(tmp_path, '[tool.pyrometer.run]\ntop = 5\n[tool.pyrometer.targets]\nthroughput = "2x"\n')
    assert load_run_settings(tmp_path).top == 5
    assert [target.name for target in load_targets(tmp_path)] == ["throughput"]


def test_a_target_that_cannot_be_used_is_told_by_file_table_and_value(tmp_path: Path) -> None:
    write_settings(tmp_path, '[tool.pyrometer.targets]\nstep_latency = "fast"\n')
    assert target_refusal(tmp_path).startswith(
        "[tool.pyrometer.targets] step_latency is 'fast', but must be "
    )
    write_settings(tmp_path, '[tool.pyrometer.targets]\nstep_latncy = "5 ms"\n')
    assert target_refusal(tmp_path) == (
        "[tool.pyrometer.targets] has no key 'step_latncy' (value '5 ms'); did you mean 'step_latency'?"
    )
    write_settings(tmp_path, "[tool.pyrometer]\ntargets = 5\n")
    assert target_refusal(tmp_path) == (
        "tool.pyrometer.targets is 5, but must be a table: write [tool.pyrometer.targets]"
    )
    write_settings(tmp_path, "[tool.pyrometer.target]\n")
    assert target_refusal(tmp_path) == (
        "[tool.pyrometer] has no key 'target'; did you mean [tool.pyrometer.targets]?"
    )
