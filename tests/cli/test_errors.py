"""Errors of the command line: one line, exit code 2, and a close match for a misspelt name."""

from __future__ import annotations

import shlex

import pytest
from commands import Commands

BAD = [
    # a misspelt name, and the closest one
    ("rnu", 'Unknown command "rnu". Did you mean "run"?'),
    ("run --model demo:masked --perturbe all", "Unknown option: --perturbe. Did you mean --pertur"),
    ("run --modle demo:masked", "Did you mean --model? See `lmdiag run --help`."),
    ("run --model demo:masked --overwr", "Did you mean --overwrite?"),  # never an abbreviation
    ("run --model demo:masked --unit wrod", 'Choose from: "token", "word". Did you mean "word"?'),
    ("run --model demo:masked --data {data} --perturb shuff", "(did you mean 'shuf'?)"),
    ("run --model demo:maskd --data {data}", "(did you mean 'masked'?)"),
    ("publish dta x --repo-id a/b", 'Did you mean "data"?'),
    ("report {run} --format csv --items role88-01", "(did you mean 'role88-1'?)"),
    # something is missing, doubled or of the wrong type
    ("", "choose from build, run, "),
    ("run", "give --model or --models-from, and not both"),
    ("score --task role88", "--predictions requires an argument"),
    ("run --model x --k", "--k requires at least 1"),
    ("run --model x --k 1 none", "must be a whole number of at least 1, not 'none'"),
    ("run --model x --seed 1.5", "--seed: must be a whole number, not '1.5'"),
    ("run --model x --batch-size many", "must be a whole number of at least 1, not 'many'"),
    ("run --model x --threshold 1.5 --data {data}", "give a number from 0 up to below 1"),
    ("run --model x --data a --data b", "--data specified multiple times"),
    ("run --model x --instruction x", "instruction is the user's turn of a chat: give chat, too"),
    ("report x --width 3", "for --width. Must be >= 4"),
    ("compare {run}", "compare takes two or more"),
    ("run --model ./x --seed -1 --data nowhere", "nowhere"),  # -1 is a value, not an option
    # which models
    ("run --models-from no/such/file", "no/such/file cannot be read"),
    ("run --models-from x --revisions *", "leave --revisions out"),
    ("run --models-from x --model y", "give --model or --models-from, and not both"),
    ("run --model x y --revisions *", "--revisions is for one model, not 2"),
    ("run --model demo:masked --revisions *", "has no branches"),
    ("run --model x --name a b", "got 2 for 1 models"),
    # what they are asked
    ("run --model x --data {data} --tasks neg137", "no task 'neg137' (did you mean 'neg136'?)"),
    ("run --model x --data {data} --tasks role88 --perturb shuf", "shuf is made for cprag102"),
    ("run --model x --data {data} --tasks agreement --verbs no/verbs.csv", "no/verbs.csv"),
    ("run --model {gpt2} --data {data} --kind masked", "mask token"),
    # files, and what a run does not have
    ("surprisal --model x none.txt", "none.txt cannot be read: No such file"),
    ("surprisal --model x none.txt --output x.xlsx", "must end in .csv, .tsv, .parquet"),
    ("template my.xlsx", "the file name must end in .csv, .tsv, .jsonl"),
    ("template no/my.csv", "no directory no: make it first"),
    ("template my.csv --minimal --design 2", "leave it out"),
    ("compare {run} {second} --across promt", "across 'promt' (did you mean 'prompt'?): choose"),
    ("compare {run} {second} --measures acuracy", "no measure acuracy (did you mean"),
    (
        "score --task role88 --setting obj --predictions {run}",
        "no role88 in setting obj: choose",
    ),
    ("score --task agreement --predictions {run}", "choose from cprag102 (none)"),
    ("score --task role88 --k 7 --predictions {run}", "keeps the first 5 words only"),
]


@pytest.mark.parametrize(("line", "message"), BAD, ids=[line for line, _ in BAD])
def test_bad_input_is_one_line_without_the_usage(
    command: Commands, monkeypatch: pytest.MonkeyPatch, line: str, message: str
) -> None:
    monkeypatch.chdir(command.folder)
    places = dict(zip(("run", "second"), command.runs, strict=True))
    places |= {"data": command.data, "gpt2": command.models["gpt2"]}
    arguments = [word.format(**places) for word in shlex.split(line)]
    assert message in command.refused(*arguments)
    assert list(command.folder.iterdir()) == []


def test_several_processes_report_an_error_of_the_arguments_once(
    command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RANK", "1")
    assert command("run", "--modle", "x") == (0, "", "")
    monkeypatch.setenv("RANK", "0")
    command.refused("run", "--modle", "x")
