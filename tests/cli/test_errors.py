"""Errors of the command line: one line, exit code 2, and a close match for a misspelt name."""

from __future__ import annotations

from pathlib import Path

import pytest
from report.runs import PLAIN, write_run

from lmdiag.cli import main
from lmdiag.suggestions import suggest


@pytest.fixture(scope="module")
def run_dir(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_run(tmp_path_factory.mktemp("errors") / "run", demo_dir, protocol=PLAIN)


def typed(capsys: pytest.CaptureFixture[str], *arguments: object) -> tuple[int, str, str]:
    """Runs a command in this process; returns exit code, standard output and standard error."""
    try:
        code = main(list(map(str, arguments)))
    except SystemExit as stop:
        code = int(stop.code or 0)
    return (code, *capsys.readouterr())


MISSPELT = {
    "command": (["rnu"], "'run'"),
    "option": (["run", "--model", "demo:masked", "--perturbe", "all"], "'--perturb'"),
    "required option": (["run", "--modle", "demo:masked"], "'--model'"),
    "option with =": (["run", "--model", "demo:masked", "--sed=1"], "'--seed'"),
    "option of a subcommand": (["publish", "data", "x", "--repo-i", "a/b"], "'--repo-id'"),
    "subcommand": (["publish", "dta", "x", "--repo-id", "a/b"], "'data'"),
    "unit": (["run", "--model", "demo:masked", "--unit", "wrod"], "'word'"),
    "perturbation": (["run", "--model", "demo:masked", "--perturb", "shuff"], "'shuf'"),
    "format": (["report", "{run}", "--format", "makrdown"], "'markdown'"),
    "task": (
        ["run", "--model", "demo:masked", "--tasks", "neg163", "--data", "{data}"],
        "'neg136'",
    ),
    "task of a file": (
        ["score", "--task", "rol88", "--predictions", "none.jsonl", "--data", "{data}"],
        "'role88'",
    ),
    "task of a run": (["score", "--task", "rol88", "--predictions", "{run}"], "'role88'"),
    "setting of a run": (
        ["score", "--task", "role88", "--predictions", "{run}", "--setting", "non"],
        "'none'",
    ),
    "item": (["report", "{run}", "--format", "csv", "--items", "role88-01"], "'role88-1'"),
    "demo model": (["run", "--model", "demo:maskd", "--data", "{data}"], "'masked'"),
}


@pytest.mark.parametrize(("arguments", "meant"), MISSPELT.values(), ids=MISSPELT)
def test_a_misspelt_name_is_one_line_with_the_closest_one(
    capsys: pytest.CaptureFixture[str],
    demo_dir: Path,
    run_dir: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    arguments: list[str],
    meant: str,
) -> None:
    monkeypatch.chdir(tmp_path)
    filled = [word.format(run=run_dir, data=demo_dir) for word in arguments]
    code, out, err = typed(capsys, *filled)
    assert (code, out) == (2, "")
    assert err.startswith("lmdiag: error: ")
    assert err.count("\n") == 1
    assert f"(did you mean {meant}?)" in err
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "required: COMMAND; see `lmdiag --help`"),
        (["run"], "required: --model; see `lmdiag run --help`"),
        (
            ["run", "--model", "x", "--k", "none"],
            "must be a whole number of at least 1, not 'none'",
        ),
        (["run", "--model", "x", "--overwr"], "no option --overwr (did you mean '--overwrite'?)"),
        (["report", "x", "-f", "csv"], "no option -f; see"),
        (["publish"], "required: WHAT; see `lmdiag publish --help`"),
    ],
)
def test_an_argument_error_is_one_line_without_the_usage(
    capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    code, out, err = typed(capsys, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("lmdiag: error: ")
    assert err.count("\n") == 1
    assert message in err


def test_values_that_begin_with_a_dash_are_no_options(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, _, err = typed(capsys, "run", "--model", "x", "--seed", "-1", "--data", tmp_path / "no")
    assert code == 2
    assert "option" not in err


def test_several_processes_report_an_error_of_the_arguments_once(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert typed(capsys, "run", "--modle", "x") == (0, "", "")
    monkeypatch.setenv("RANK", "0")
    code, _, err = typed(capsys, "run", "--modle", "x")
    assert (code, err.count("\n")) == (2, 1)


def test_suggestions_ignore_case_and_stay_away_from_other_names() -> None:
    assert suggest("CPRAG", ["cprag102", "role88"]) == " (did you mean 'cprag102'?)"
    assert suggest("surprisal", ["accuracy@1", "sensitivity"]) == ""
    assert suggest("anything", []) == ""


def test_suggestions_among_many_names_compare_those_that_begin_alike() -> None:
    names = [f"{kind}-{number}" for kind in ("simple_agrmt", "sent_comp") for number in range(5000)]
    assert suggest("simple_agrmt-4999x", names) == " (did you mean 'simple_agrmt-4999'?)"
