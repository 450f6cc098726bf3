"""Runs on models behind a server: what they say, and what they leave."""

from __future__ import annotations

import json

import pytest
from commands import Commands
from engines import TOKENIZER, Engine, Weights

KEY = "sk-of-this-test-alone"


@pytest.fixture(scope="module")
def weights() -> Weights:
    return Weights()


def served(engine: Engine) -> list[str]:
    return ["--server", engine.url, "--model", "tiny", "--tokenizer", TOKENIZER]


def test_a_run_says_what_is_not_known(
    weights: Weights, command: Commands, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LMDIAG_SERVER_KEY", KEY)
    given = ["--data", command.data, "--tasks", "neg136", "agreement", "--limit", "12", "--quiet"]
    given += ["--k", "1", "50", "--output", command.folder]
    with Engine(weights) as engine:
        engine.key = KEY
        code, out, err = command("run", *served(engine), *given, "--in-flight", 3)
        assert (code, err) == (0, "")
        assert engine.most_at_once <= 3
    with Engine(weights) as another:
        another.key = KEY
        error = command.refused("run", *served(another), *given)
        assert "holds a run of another server" in error
    out = " ".join(out.split())
    assert f"asked through {engine.url}/v1 · cased · commit and precision not known" in out
    assert "EW and MW are not computed" in out
    assert "accuracy@50 not computed: the server's list of top tokens is shorter" in out
    (run,) = (path.parent for path in command.folder.rglob("results.json"))
    document = json.loads((run / "results.json").read_text("utf-8"))
    assert document["model"]["server"] == document["identity"]["server"] == f"{engine.url}/v1"
    assert document["model"]["commit"] == "unknown"
    assert {"accuracy@1", "sensitivity"} <= {*document["tasks"]["neg136"]["none"]["measures"]}
    agreement = document["tasks"]["agreement"]["none"]["measures"]
    assert "tse" in agreement
    assert not {"ew", "mw"} & {*agreement}
    for path in command.folder.rglob("*"):
        assert not path.is_file() or KEY.encode() not in path.read_bytes()
    page = (run / "report.html").read_text("utf-8")
    assert f"not known: asked through {engine.url}/v1" in page

    assert command("run", "--model", "demo:causal", *given)[0] == 0
    (local,) = {path.parent for path in command.folder.rglob("results.json")} - {run}
    code, out, _ = command("compare", run, local, "--resamples", 50, "--json")
    assert json.loads(out)["a"]["server"] == f"{engine.url}/v1"
    assert "cannot be submitted" in command.refused("submit", run, "--dry-run")


def test_surprisals_from_a_server(weights: Weights, command: Commands) -> None:
    texts = command.folder / "texts.txt"
    texts.write_text("The robin is a bird.\nThe old man saw it.\n", "utf-8")
    tables = []
    with Engine(weights) as engine:
        for model in (["--model", "demo:causal"], served(engine)):
            code, out, _ = command("surprisal", *model, texts, "--quiet")
            assert code == 0
            tables.append([line.split(",") for line in out.splitlines()[1:]])
    for local, other in zip(*tables, strict=True):
        assert local[:-2] + local[-1:] == other[:-2] + other[-1:]
        assert float(local[-2]) == pytest.approx(float(other[-2]), abs=1e-3)
