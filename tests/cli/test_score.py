"""`lmdiag score` as typed: what it prints, what it says it cannot do, what it refuses."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
from invented_runs import make_run, perfect

from lmdiag import results, stimuli
from lmdiag.asking.protocol import Protocol
from lmdiag.results import evaluation


@pytest.fixture
def rows(demo_dir):
    return stimuli.load(str(demo_dir), "neg136")


@pytest.fixture
def records(rows):
    """Perfect predictions for neg136 as records of another program."""
    best = perfect(rows.columns())
    columns = zip(best.id, best.top_words, best.log_prob, strict=True)
    return [{"id": row, "top_words": words, "log_prob": p} for row, words, p in columns]


@pytest.fixture
def score(command):
    """Scores records; returns the exit code, what is printed, and the remarks."""

    def run(records, *arguments):
        file = command.folder / "p.jsonl"
        file.write_text("\n".join(map(json.dumps, records)))
        asked = ["--task", "neg136", "--predictions", file, "--data", command.data]
        return command("score", *asked, *arguments)

    return run


def test_the_document_and_the_tables(score, records, rows):
    code, out, err = score(records, "--json")
    expected = evaluation.evaluate(rows, [perfect(rows.columns())], Protocol())
    signature = results.signature(Protocol(), rows.fingerprint)
    document = {"task": "neg136", **replace(expected, signature=signature).to_json()}
    assert (code, json.loads(out), err) == (0, {"match": "exactly", **document}, "")
    tables = score(records)[1]
    assert tables.startswith("neg136: words are compared exactly\n")
    folded = "neg136: words are compared without case and accents\n"
    assert score(records, "--uncased")[1].startswith(folded)
    for words in ("sensitivity", "100.0", "lmdiag:0.2|data:"):
        assert words in tables
    # words are compared exactly by default
    upper = [x | {"top_words": [word.upper() for word in x["top_words"]]} for x in records]
    for case, accuracy in (([], 0), (["--cased"], 0), (["--uncased"], 1)):
        measures = json.loads(score(upper, "--json", *case)[1])["measures"]
        assert measures["accuracy@1"]["value"] == accuracy


def test_rows_that_no_measure_needs_may_be_missing(score, records, rows):
    """Accuracy needs the rows with expected words alone."""
    whole = json.loads(score(records, "--json")[1])["measures"]
    expected = rows.columns()["expected"]
    needed = [record for record, words in zip(records, expected, strict=True) if words]
    _, out, err = score(needed, "--json")
    document = json.loads(out)
    names = ("accuracy@1", "accuracy@5")
    assert document["measures"] == {name: whole[name] for name in names}
    assert document["unscorable"] == []
    n = len(records) - len(needed)
    assert err.startswith(
        "lmdiag: not computed: sensitivity, sensitivity@0.01, determiner_match@1, "
        f"determiner_match@5: {n} ids (neg136-"
    )
    assert err.endswith(" missing, and they need these rows\n")
    (line,) = document.pop("not_computed")
    assert err == f"lmdiag: not computed: {line}\n"
    assert "not computed: sensitivity, sensitivity@0.01" in score(needed)[1]
    code, out, err = score(needed, "--measures", "accuracy", "--json")
    assert (code, json.loads(out), err) == (0, document, "")
    code, _, err = score(needed, "--measures", "accuracy@1", "sensitivity")
    assert "sensitivity cannot be computed: sensitivity, sensitivity@0.01, determ" in err
    assert code == 2
    # a row less, and accuracy is not possible either
    code, _, err = score(needed[1:])
    assert "p.jsonl: no measure can be computed: accuracy@1, accuracy@5" in err
    assert code == 2


@pytest.mark.parametrize("task", ["cprag102", "role88", "neg136"])
def test_a_run_is_computed_again_bit_for_bit(command, task):
    """From its directory, and from its predictions.parquet and the data set alone."""
    run = command.runs[0]
    written = json.loads((run / "results.json").read_text())["tasks"][task]["none"]
    file = ("--predictions", run / "predictions.parquet", "--data", command.data, "--uncased")
    for source in (("--predictions", run), file):
        code, out, err = command("score", "--task", task, *source, "--json")
        document = {"task": task, "match": "without case and accents", **written}
        assert (code, json.loads(out), err) == (0, document, "")
    asked = ("--task", task, "--predictions", run, "--json", "--threshold", 0.3, "--k", 2)
    assert "|k:2|t:0.3|" in json.loads(command("score", *asked)[1])["signature"]


@pytest.mark.slow
def test_neither_torch_nor_transformers_is_imported(command):
    first, second = command.runs
    lines = (
        f"score --task neg136 --predictions {first}",
        f"compare {first} {second}",
        "run --model demo:masked --data no/such/data",
    )
    program = (
        "import sys; from lmdiag.cli import main; codes = [main(x.split()) for x in sys.argv[1:]];"
        "heavy = {'torch', 'transformers', 'tokenizers', 'evaluate', 'datasets', 'accelerate'};"
        "print(codes, heavy & set(sys.modules))"
    )
    out = subprocess.check_output([sys.executable, "-c", program, *lines], text=True)
    assert out.splitlines()[-1] == "[0, 0, 2] set()"


def test_a_run_finds_its_data_from_any_folder(command, monkeypatch):
    run, (*_, parent, name) = command.folder / "run", command.data.parts
    monkeypatch.chdir(command.data.parent.parent)
    make_run(run, f"{parent}/{name}")  # a data set of the Hub could have this name, too
    monkeypatch.chdir(command.folder)
    assert command("score", "--task", "role88", "--predictions", run)[0] == 0
