"""Errors of the command line: one line, exit code 2, a close match; `lmdiag template`."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from commands import Commands

from lmdiag import stimuli
from lmdiag.analysis.designs import find_conditions

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
    ("compare {run} {second} --tasks role8", "no task role8 (did you mean 'role88'?): choose"),
    ("compare {run} {second} --measures acuracy", "no measure acuracy (did you mean"),
    ("score --task role88 --setting obj --predictions {run}", "no role88 in setting obj: choose"),
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


# ---- starter files -------------------------------------------------------------------------------

NAMES = ("my.csv", "my.tsv", "my.jsonl")


def test_starter_files_load_and_agree(command: Commands, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(command.folder)
    assert command("template")[0] == 0
    loaded = [stimuli.load("my_diagnostic.csv")]
    for name in NAMES:
        code, out, _ = command("template", command.folder / name)
        assert code == 0
        assert f"lmdiag run --model MODEL --data {command.folder / name}" in out
        loaded.append(stimuli.load(name))
        _, out, _ = command("template", name, "--minimal", "--overwrite")
        first, second, *_ = Path(name).read_text().splitlines()
        assert f"  {first}\n  {second}\n" in out
        smallest = stimuli.load(name)
        assert (len(smallest), smallest.compared) == (5, False)
    assert len({rows.fingerprint for rows in loaded}) == 1
    assert len(loaded[0]) == 5
    Path("my.csv").write_text("years of work")
    error = command.refused("template", "my.csv")
    assert "my.csv exists already: choose another name, or add --overwrite" in error
    assert Path("my.csv").read_text() == "years of work"


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [["--design", "2"], ["--design", "2x2"], ["--regions"]])
def test_a_design_is_written_and_found(command: Commands, name: str, options: list[str]) -> None:
    file = command.folder / name
    assert command("template", file, *options)[0] == 0
    rows = stimuli.load(str(file))
    factors = ["between"] if "2" in options else ["subject", "between"]
    assert len(rows) == 3 * 2 ** len(factors)
    assert (rows.regions is not None) == (options == ["--regions"])
    assert find_conditions(rows.table.to_pandas().assign(model="")) == factors
    text = rows.columns()["sentence" if rows.regions else "context"]
    assert text[1].startswith("The key to the cabinets")
