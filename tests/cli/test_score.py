"""`lmdiag score` as typed: what it prints, what it says it cannot do, what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from commands import Commands
from runs import make_run, perfect

from lmdiag import evaluation, results, stimuli
from lmdiag.protocol import Protocol
from lmdiag.results import predictions

Json = dict[str, Any]


@pytest.fixture
def records(demo_dir: Path) -> list[Json]:
    """Perfect predictions for neg136 as records of another program."""
    best = perfect(stimuli.load(str(demo_dir), "neg136").columns())
    columns = zip(best.id, best.top_words, best.log_prob, strict=True)
    return [{"id": row, "top_words": words, "log_prob": p} for row, words, p in columns]


@pytest.fixture
def score(command: Commands) -> Callable[..., Any]:
    """Scores records; returns the document, or what is printed without --json, and the remarks."""

    def run(records: list[Json], *arguments: object, as_json: bool = True) -> tuple[Any, str]:
        file = command.folder / "p.jsonl"
        file.write_text("\n".join(map(json.dumps, records)))
        asked = ["--task", "neg136", "--predictions", file, "--data", command.data, *arguments]
        code, out, err = command("score", *asked, *(["--json"] if as_json else []))
        assert code == 0, err
        return (json.loads(out) if as_json else out), err

    return run


def test_the_document_and_the_tables(
    score: Callable[..., Any], records: list[Json], demo_dir: Path
) -> None:
    document, err = score(records)
    rows = stimuli.load(str(demo_dir), "neg136")
    expected = evaluation.evaluate(rows, [perfect(rows.columns())], Protocol(), True)
    signature = results.signature(Protocol(), rows.fingerprint)
    assert document == {"task": "neg136", **replace(expected, signature=signature).to_json()}
    assert err == ""
    tables, _ = score(records, as_json=False)
    for words in ("sensitivity", "100.0", "lmdiag:0.1|data:"):
        assert words in tables


def test_rows_that_no_measure_needs_may_be_missing(
    score: Callable[..., Any], command: Commands, records: list[Json], demo_dir: Path
) -> None:
    """Accuracy needs the rows with expected words alone."""
    whole, _ = score(records)
    expected = stimuli.load(str(demo_dir), "neg136").columns()["expected"]
    needed = [record for record, words in zip(records, expected, strict=True) if words]
    document, err = score(needed)
    assert document["measures"] == {
        name: whole["measures"][name] for name in ("accuracy@1", "accuracy@5")
    }
    assert document["unscorable"] == []
    n = len(records) - len(needed)
    assert err.startswith(
        "lmdiag: not computed: sensitivity, sensitivity@0.01, determiner_match@1, "
        f"determiner_match@5: {n} ids (neg136-"
    )
    assert err.endswith(" missing, and they need these rows\n")
    assert score(needed, "--measures", "accuracy") == (document, "")
    file = command.folder / "p.jsonl"
    asked = ("score", "--task", "neg136", "--predictions", file, "--data", command.data)
    refused = command.refused(*asked, "--measures", "accuracy@1", "sensitivity")
    assert "sensitivity cannot be computed: sensitivity, sensitivity@0.01, determ" in refused
    # a row less, and accuracy is not possible either
    _, *fewer = needed
    file.write_text("\n".join(map(json.dumps, fewer)))
    assert "p.jsonl: no measure can be computed: accuracy@1, accuracy@5" in command.refused(*asked)


@pytest.mark.parametrize(("case", "accuracy"), [((), 0), (("--cased",), 0), (("--uncased",), 1)])
def test_words_are_compared_exactly_by_default(
    score: Callable[..., Any], records: list[Json], case: tuple[str, ...], accuracy: float
) -> None:
    for record in records:
        record["top_words"] = [word.upper() for word in record["top_words"]]
    assert score(records, *case)[0]["measures"]["accuracy@1"]["value"] == accuracy


@pytest.mark.parametrize("task", ["cprag102", "role88", "neg136"])
def test_a_run_is_computed_again_bit_for_bit(command: Commands, task: str) -> None:
    """From its directory, and from its predictions.parquet and the data set alone."""
    run = command.runs[0]
    told = json.loads((run / "results.json").read_text())["tasks"][task]["none"]
    file = ("--predictions", run / "predictions.parquet", "--data", command.data, "--uncased")
    for source in (("--predictions", run), file):
        code, out, err = command("score", "--task", task, *source, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out) == {"task": task, **told}
    asked = ("--task", task, "--predictions", run, "--json", "--threshold", 0.3, "--k", 2)
    assert "|k:2|t:0.3|" in json.loads(command("score", *asked)[1])["signature"]


def test_the_shuffles_of_a_run_are_averaged(command: Commands) -> None:
    folder = make_run(command.folder / "run", command.data, Protocol(tasks=("cprag102",)))
    plain = predictions.read(folder / "predictions.parquet")["none", 0]
    shuffles = [replace(plain, perturbation="shuf", run=number) for number in range(3)]
    predictions.write(folder / "predictions.parquet", [plain, *shuffles])
    told = json.loads((folder / "results.json").read_text())
    settings = told["tasks"]["cprag102"]
    settings["shuf"] = settings["none"]
    (folder / "results.json").write_text(json.dumps(told))
    asked = ("--task", "cprag102", "--predictions", folder, "--setting", "shuf")
    measure = json.loads(command("score", *asked, "--json")[1])["measures"]["sensitivity"]
    assert (measure["runs"], measure["sd"]) == (3, 0.0)
    assert measure["value"] == settings["none"]["measures"]["sensitivity"]["value"]
    tables = command("score", *asked)[1]
    assert "Shuf" in tables
    assert "Orig" not in tables


@pytest.mark.slow
@pytest.mark.parametrize("line", ["score --task neg136 --predictions {0}", "compare {0} {1}"])
def test_neither_torch_nor_transformers_is_imported(command: Commands, line: str) -> None:
    code = (
        "import sys; from lmdiag.cli import main; code = main(sys.argv[1:]);"
        "heavy = {'torch', 'transformers', 'tokenizers', 'evaluate', 'datasets', 'accelerate'};"
        "print(code, heavy & set(sys.modules), file=sys.stderr)"
    )
    arguments = line.format(*command.runs).split()
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True
    )
    assert done.stderr == "0 set()\n"


def test_a_run_finds_its_data_from_any_folder(
    command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    (command.folder / "work").mkdir()
    (command.folder / "work/org").symlink_to(command.data.parent)
    monkeypatch.chdir(command.folder / "work")
    # the name of the data set is one that a data set of the Hub could have
    make_run(Path("results/run"), Path("org") / command.data.name)
    monkeypatch.chdir(command.folder)
    assert command("score", "--task", "role88", "--predictions", "work/results/run")[0] == 0
