"""`lmdiag run` as typed: results, several models, and what is refused."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from commands import Commands


@pytest.fixture
def run(command: Commands) -> Callable[..., Any]:
    """Runs models on one diagnostic; `refused=True` for a run that must fail."""

    def run(*models: object, refused: bool = False) -> Any:
        options = ["--data", command.data, "--output", command.folder / "out", "--quiet"]
        call = command.refused if refused else command
        return call("run", *options, "--tasks", "neg136", "--model", *models)

    return run


def results(folder: Path) -> Any:
    (path,) = folder.rglob("results.json")
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_run_leaves_the_files_of_the_specification(command: Commands) -> None:
    """And is not asked again."""
    output = command.folder / "out"
    arguments = ["--model", command.models["bert"], "--data", command.data, "--output", output]
    code, out, err = command("run", *arguments, "--quiet")
    assert (code, err) == (0, "")
    assert "table 4" in out
    assert "lmdiag:0.1|data:" in out
    folder = output / "bert" / "diagnostics-token"
    names = {path.name for path in folder.iterdir()} - {".lock"}
    assert names == {"results.json", "predictions.parquet", "report.html"}
    document = results(folder)
    assert document["model"]["kind"] == "masked"
    assert document["protocol"]["match"] == "case-blind"
    assert document["tasks"]["neg136"]["none"]["measures"]["accuracy@1"]["n"] > 0
    written = (folder / "results.json").read_bytes()
    assert command("run", *arguments, "--quiet")[:2] == (0, out)
    code, out, _ = command("run", *arguments, "--quiet", "--json")
    assert (code, json.loads(out)) == (0, document)
    assert (folder / "results.json").read_bytes() == written
    command("run", *arguments, "--quiet", "--overwrite")
    assert (folder / "results.json").read_bytes() != written  # another time, other seconds


@pytest.mark.parametrize("unit", ["token", pytest.param("word", marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_predictions_of_a_diagnostic_do_not_depend_on_what_else_is_asked(
    command: Commands, name: str, unit: str
) -> None:
    def asked(folder: str, *options: str) -> pa.Table:
        output = command.folder / folder
        arguments = ["--model", command.models[name], "--data", command.data, "--output", output]
        assert command("run", *arguments, "--unit", unit, "--quiet", *options)[0] == 0
        (path,) = output.rglob("predictions.parquet")
        return pq.read_table(path)

    alone = asked("alone", "--tasks", "neg136")
    others = "all" if unit == "token" else "shuf"  # a whole word takes many times as long
    among = asked("among", "--perturb", others, "--shuffles", "2")
    is_same_row = pc.is_in(among["id"], alone["id"].combine_chunks())
    is_plain = pc.equal(among["perturbation"], "none")
    assert 0 < alone.num_rows < among.num_rows
    assert among.filter(pc.and_(is_same_row, is_plain)).equals(alone)


@pytest.mark.slow
def test_a_failure_of_one_model_does_not_stop_the_rest(
    run: Callable[..., Any], command: Commands
) -> None:
    code, out, err = run(command.folder / "absent", *command.models.values())
    assert code == 1
    assert "1 of 3 runs failed" in err
    assert "absent" in err
    files = (command.folder / "out").rglob("results.json")
    assert {path.parts[-3] for path in files} == {"bert", "gpt2"}
    code, again, _ = run(*command.models.values())
    assert code == 0
    assert again in out


def test_models_that_an_option_makes_incomparable_are_run_all_the_same(command: Commands) -> None:
    """`--bos` has no effect on a masked model, so that the two runs differ in it."""
    output = command.folder / "out"
    options = ["--data", command.data, "--tasks", "neg136", "--bos", "always", "--output", output]
    code, _, err = command("run", "--quiet", *options, "--model", *command.models.values())
    assert (code, len([*output.rglob("results.json")])) == (0, 2)
    assert "no comparison was written" in err
    assert "lmdiag compare --across bos" in err


def test_models_of_one_name_need_names_of_their_own(
    run: Callable[..., Any], command: Commands
) -> None:
    """They are refused before any is run; a later one leaves the results of the first alone."""
    output = command.folder / "out"
    models = [
        shutil.copytree(model, command.folder / name / "final")
        for name, model in command.models.items()
    ]
    for names in ([], ["--name", "a", "a"]):
        error = run(*models, *names, refused=True)
        assert f"{models[0]} and {models[1]} would share the folder" in error
        assert "--name" in error
        assert not output.exists()
    names = ["masked one", "causal"]
    code, out, _ = run(*models, "--name", *names)
    assert code == 0
    assert all(name in out for name in names)
    assert not any(str(folder) in out for folder in models)
    for folder, name, model in zip(("masked--one", "causal"), names, models, strict=True):
        facts = results(output / folder)["model"]
        assert (facts["name"], facts["id"]) == (name, str(model))
    before = results(output / "causal")
    assert "holds a run of another" in run(models[0], "--name", "causal", refused=True)
    assert results(output / "causal") == before


def test_data_that_changed_since_the_run(command: Commands) -> None:
    data = command.folder / "own.csv"
    data.write_text("context,target\nA robin is a,bird\n")
    asked = ["run", "--model", command.models["bert"], "--data", data]
    asked += ["--output", command.folder / "out", "--quiet"]
    assert command(*asked)[0] == 0
    data.write_text("context,target\nA robin is a,tree\n")
    error = command.refused(*asked)
    assert "the data changed since the run in " in error
    assert "choose another --output or --name, or --overwrite the run" in error
    assert "signature" not in error
    assert command(*asked, "--overwrite")[0] == 0
