"""Errors of the command line: one line, exit code 2, and a close match for a misspelt name."""

from __future__ import annotations

import pytest
from commands import Commands

from lmdiag.suggestions import suggest

MISSPELT = [
    ("rnu", "'run'"),
    ("run --model demo:masked --perturbe all", "'--perturb'"),
    ("run --modle demo:masked", "'--model'"),
    ("run --model demo:masked --sed=1", "'--seed'"),
    ("run --model demo:masked --overwr", "'--overwrite'"),
    ("run --model demo:masked --unit wrod", "'word'"),
    ("run --model demo:masked --perturb shuff", "'shuf'"),
    ("run --model demo:maskd --data {data}", "'masked'"),
    ("publish data x --repo-i a/b", "'--repo-id'"),
    ("publish dta x --repo-id a/b", "'data'"),
    ("report {run} --format makrdown", "'markdown'"),
    ("report {run} --format csv --items role88-01", "'role88-1'"),
    ("score --task rol88 --predictions none.jsonl --data {data}", "'role88'"),
]


@pytest.mark.parametrize(("line", "meant"), MISSPELT)
def test_a_misspelt_name_is_one_line_with_the_closest_one(
    command: Commands, monkeypatch: pytest.MonkeyPatch, line: str, meant: str
) -> None:
    monkeypatch.chdir(command.folder)
    arguments = [word.format(run=command.runs[0], data=command.data) for word in line.split()]
    assert f"(did you mean {meant}?)" in command.refused(*arguments)
    assert list(command.folder.iterdir()) == []


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("", "required: COMMAND; see `lmdiag --help`"),
        ("run", "one of the arguments --model --models-from is required; see `lmdiag run --help`"),
        ("run --model x --k none", "must be a whole number of at least 1, not 'none'"),
        ("report x -f csv", "no option -f; see"),
        ("publish", "required: WHAT; see `lmdiag publish --help`"),
        ("leaderboard x --out y --max-parameters many", "'many' is not a number of parameters"),
        ("run --model ./x --seed -1 --data nowhere", "nowhere"),  # -1 is a value, not an option
    ],
)
def test_an_argument_error_is_one_line_without_the_usage(
    command: Commands, line: str, message: str
) -> None:
    assert message in command.refused(*line.split())


def test_several_processes_report_an_error_of_the_arguments_once(
    command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert command("run", "--modle", "x") == (0, "", "")
    monkeypatch.setenv("RANK", "0")
    command.refused("run", "--modle", "x")


@pytest.mark.parametrize(
    ("name", "choices", "suggestion"),
    [
        ("CPRAG", ["cprag102", "role88"], " (did you mean 'cprag102'?)"),
        ("surprisal", ["accuracy@1", "sensitivity"], ""),
        ("anything", [], ""),
        # of many names, those that begin alike are compared
        (
            "simple_agrmt-4999x",
            [f"{kind}-{n}" for kind in ("simple_agrmt", "sent_comp") for n in range(5000)],
            " (did you mean 'simple_agrmt-4999'?)",
        ),
    ],
    ids=["case", "other names", "no names", "many names"],
)
def test_suggestions(name: str, choices: list[str], suggestion: str) -> None:
    assert suggest(name, choices) == suggestion
