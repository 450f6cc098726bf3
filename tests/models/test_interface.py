"""Another kind of model is one module with a `Model` and an entry in the table of loaders."""

from __future__ import annotations

import json
import math
from pathlib import Path

import pytest
from fakes import FakeModel

from lmdiag import cli, models
from lmdiag.models import LoadOptions, Model
from lmdiag.types import Answer, ModelInfo, Question, WordScore

PROBABILITIES = {"bird": 0.5, "tree": 0.2, "stone": 0.1, "it": 0.05, "saw": 0.04}


class Server(FakeModel):
    """A model that tells only its most probable tokens, as a server does; no torch."""

    info = ModelInfo(
        "server:birds", None, "v1", "causal", "Server", "float32", "none", True, 1000, 0, None
    )
    device = "elsewhere"

    def reply(self, question: Question, top: int) -> Answer:
        nats = {word: math.log(p) for word, p in PROBABILITIES.items()}
        ranks = {word: rank for rank, word in enumerate(nats, start=1)}
        words = {word: WordScore(nats.get(word), ranks.get(word), 1) for word in question.words}
        return Answer(words, tuple(nats)[:top], tuple(nats.values())[:top])


def load_server(model_id: str, options: LoadOptions) -> Model:
    return Server()


def test_a_server_runs_like_any_model(
    tmp_path: Path, demo_dir: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaders = {"server:": f"{__name__}:load_server"} | models._LOADERS
    monkeypatch.setattr(models, "_LOADERS", loaders)
    arguments = ["run", "--model", "server:birds", "--data", str(demo_dir), "--tasks", "neg136"]
    assert cli.main([*arguments, "--quiet", "--output", str(tmp_path)]) == 0
    (file,) = tmp_path.rglob("results.json")
    results = json.loads(file.read_text("utf-8"))
    assert results["model"]["id"] == "server:birds"
    assert results["device"]["name"] == "elsewhere"
    setting = results["tasks"]["neg136"]["none"]
    assert not setting["unscorable"]  # the server could score any word
    censored = {row["word"] for row in setting["censored"]}
    assert censored  # words below the list of the server
    assert not censored & set(PROBABILITIES)
