"""Submitted models are queried again: invented predictions are found, honest ones agree."""

from __future__ import annotations

import json
import shutil
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import families
import pytest
from hub import LoopbackHub
from hub.boards import build
from huggingface_hub import HfApi
from runs import make_run, model_info

from lmdiag.cli import main
from lmdiag.cli.leaderboard import parameter_count
from lmdiag.leaderboard.collect import Entry, Outcome
from lmdiag.leaderboard.pages import sentence
from lmdiag.models import LoadOptions
from lmdiag.protocol import Protocol
from lmdiag.reproduction import attempts, worker
from lmdiag.reproduction.claims import Claim, contradictions, draw_contexts, tolerance
from lmdiag.results import Run, load_run
from lmdiag.runs.inputs import load_inputs
from lmdiag.runs.run import RunOptions, run_model
from lmdiag.types import DIAGNOSTICS, Answer, Query, WordScore

pytest_plugins = ["hub.fixtures"]

Json = dict[str, Any]


# ---- which contexts -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made_up(honest: Path, demo_dir: Path) -> Run:
    return load_run(honest, str(demo_dir))


def test_contexts_are_drawn_by_the_seed_from_every_task(made_up: Run) -> None:
    sample = draw_contexts(made_up, 9, "seed")
    assert len(sample.questions) == 9
    assert sample == draw_contexts(made_up, 9, "seed")
    assert sample.questions != draw_contexts(made_up, 9, "another seed").questions
    assert {claim.id.split("-")[0] for claim in sample.claims} == set(DIAGNOSTICS)
    assert {c.key[0] for c in sample.claims} == {question.query for question in sample.questions}


def test_all_contexts_have_all_rows(made_up: Run) -> None:
    sample = draw_contexts(made_up, None, "seed")
    assert (
        len(sample.questions) == sample.of == len(draw_contexts(made_up, 10_000, "seed").questions)
    )
    assert sorted(claim.id for claim in sample.claims) == sorted(
        row for rows in made_up.stimuli.values() for row in rows.columns()["id"]
    )


# ---- what agrees --------------------------------------------------------------------------------

KEY = (Query("A robin is a"), None)
MODEL = model_info(vocab_size=9, n_parameters=100)
TOP = ("bird", "dog"), (-0.5, -1.5)
CLAIM = Answer({"tree": WordScore(-3.0, 3, 1)}, *TOP)
ANSWER = replace(
    CLAIM, top_words=("bird", "dog", "tree", "fish"), top_log_probs=(-0.5, -1.5, -3.0, -4.0)
)


def difference(answer: Answer = ANSWER, claim: Json | None = None, **model: Any) -> str | None:
    """The first difference from a submission with these changes."""
    changes = claim or {}
    if score := {name: changes.pop(name) for name in ("log_prob", "n_tokens") if name in changes}:
        changes["words"] = {"tree": CLAIM.words["tree"]._replace(**score)}
    claims = [Claim("r1", KEY, "tree", replace(CLAIM, **changes))]
    said = contradictions(replace(MODEL, **model), asdict(MODEL), claims, {KEY: answer})
    return next(said, None)


def test_the_same_numbers_agree() -> None:
    assert difference() is None
    # Within .01 in float32, and with words that change places if they are as close as that.
    assert difference(claim={"log_prob": -3.009, "top_log_probs": (-0.509, -1.491)}) is None
    swapped = replace(ANSWER, top_log_probs=(-0.5, -1.5, -1.505, -4.0))
    assert difference(swapped, {"top_words": ("bird", "tree")}) is None


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"log_prob": -2.98}, "the log-probability of “tree” is -3.000, the submission says -2.98"),
        ({"log_prob": None}, "is -3.000, the submission says not known"),
        ({"n_tokens": 2}, "“tree” has 1 tokens, the submission says 2"),
        ({"top_log_probs": (-0.4, -1.5)}, "top word “bird” is -0.500, the submission says -0.400"),
        ({"top_words": ("bird", "cat")}, "the top word “cat” is not known"),
        (
            {"top_words": ("bird", "fish"), "top_log_probs": (-0.5, -4.0)},
            "“dog” (-1.500) is not among the submission's top words",
        ),
        ({"agreement": (0.5,) * 99}, "the submission says 0.500"),
    ],
)
def test_what_differs_is_named(changes: Json, said: str) -> None:
    text = difference(claim=dict(changes))
    assert text is not None
    assert text.startswith("r1: ")
    assert said in text


def test_facts_of_the_model_are_compared() -> None:
    assert difference(n_parameters=10**9) == "n_parameters is 100, the submission says 1000000000"
    assert difference(cased=True) == "cased is False, the submission says True"
    assert difference(n_parameters=10**9, quantization="4bit") is None


def test_tolerance_follows_the_dtype() -> None:
    dtypes = ("float64", "float32", "float16", "bfloat16")
    allowed = [tolerance(replace(MODEL, dtype=dtype)) for dtype in dtypes]
    assert allowed == sorted(allowed)
    assert difference(claim={"log_prob": -3.3}) is not None
    assert difference(claim={"log_prob": -3.3}, dtype="bfloat16") is None


def test_levels_and_sentences_of_outcomes() -> None:
    for outcome in (None, Outcome("not possible", "gated")):
        assert Entry(None, None, None, outcome=outcome).level == "recomputed"
    assert "could not be queried: gated." in sentence(Outcome("not possible", "gated"))
    asked = Outcome("reproduced", "", asked=30, of=198, seed="ab", tolerance=0.01)
    assert "30 of 198 contexts" in sentence(asked)
    assert "within 0.01 nats" in sentence(asked)
    assert "First difference: r1: x." in sentence(replace(asked, status="differs", detail="r1: x"))


def test_numbers_of_parameters() -> None:
    numbers = [parameter_count(text) for text in ("7B", "7e9", "350M", "10000")]
    assert numbers == [7_000_000_000, 7_000_000_000, 350_000_000, 10_000]


# ---- models of the Hub --------------------------------------------------------------------------


@pytest.fixture
def requests(monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    """Answers requests in this process, which has torch already; the list of the requests."""
    received: list[Json] = []

    def exchange(request: Json) -> Json:
        received.append(json.loads(json.dumps(request)))
        answered: Json = json.loads(json.dumps(worker.respond(received[-1])))
        return answered

    monkeypatch.setattr(attempts, "_exchange", exchange)
    return received


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the tiny model and its runs are kept; commits are the same on every loopback Hub."""
    return tmp_path_factory.mktemp("made")


@pytest.fixture
def submissions(hub: LoopbackHub, api: HfApi, made: Path, demo_dir: Path, tmp_path: Path) -> Path:
    """An honest run of a tiny model, and invented predictions for a copy of it."""
    folder = made / "tiny"
    if not folder.is_dir():
        families.MASKED[0].make(folder)
    commits = {}
    for name in ("org/honest", "org/invented"):
        api.create_repo(name)
        (folder / "README.md").write_text(name)
        commits[name] = str(api.upload_folder(repo_id=name, folder_path=folder).oid)
    if not (made / "runs").is_dir():
        inputs = load_inputs(str(demo_dir), Protocol())
        run = run_model("org/honest", LoadOptions(), inputs, RunOptions(made / "runs", quiet=True))
        assert run is not None
        facts = {"id": "org/invented", "commit": commits["org/invented"]}
        model = asdict(run.results.model) | facts
        make_run(made / "runs/invented", demo_dir, skill=6.0, **model)
    return Path(shutil.copytree(made / "runs", tmp_path / "runs"))


def rows_of(runs: Path, data: Path, *more: str) -> dict[str, Json]:
    """Builds the leaderboard as the command does; returns name -> its row."""
    out = build(runs.parent / "board", data, runs, *more)
    rows = json.loads((out / "leaderboard.json").read_text())["rows"]
    return {row["name"]: row for row in rows if row["origin"] == "submitted"}


def check_found(rows: dict[str, Json], out: Path, asked: int) -> None:
    """The honest run is reproduced; the invented one is not, and the first difference is named."""
    assert rows["org/honest"]["level"] == "reproduced"
    assert rows["org/invented"]["level"] == "differs"
    outcome = rows["org/invented"]["reproduction"]
    assert outcome["asked"] == asked
    assert outcome["detail"].split("-")[0] in DIAGNOSTICS
    assert "the submission says" in outcome["detail"] or "is not among" in outcome["detail"]
    assert outcome["versions"].keys() >= {"torch", "transformers"}
    assert len(outcome["seed"]) == 32
    assert outcome["seed"] != rows["org/honest"]["reproduction"]["seed"]
    page = (out / rows["org/invented"]["page"]).read_text()
    assert "The answers differ. First difference: " in page


@pytest.mark.slow
def test_invented_predictions_are_found(
    submissions: Path, demo_dir: Path, requests: list[Json]
) -> None:
    rows = rows_of(submissions, demo_dir, "--reproduce", "6")
    check_found(rows, submissions.parent / "board", asked=6)
    # Outcomes are kept: the same attempt is not repeated, one with more contexts is made.
    assert rows_of(submissions, demo_dir, "--reproduce", "6") == rows
    assert len(requests) == 2
    rows = rows_of(submissions, demo_dir, "--reproduce", "all")
    assert len(requests) == 4
    outcome = rows["org/honest"]["reproduction"]
    assert outcome["asked"] == outcome["of"] > 100
    assert outcome["status"] == "reproduced"


@pytest.mark.slow
def test_an_interrupted_attempt_resumes(
    submissions: Path, demo_dir: Path, requests: list[Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the second model had answered: the first is not queried again, the second keeps
    its contexts and the batches that it had answered."""
    answer = attempts._exchange

    def killed(request: Json) -> Json:
        reply = answer(request)
        if len(requests) == 2:
            raise KeyboardInterrupt
        return reply

    def refuse_to_answer(*arguments: object) -> None:
        raise AssertionError("this batch was answered before")

    monkeypatch.setattr(attempts, "_exchange", killed)
    out = submissions.parent / "board"
    command = ["leaderboard", str(submissions), "--data", str(demo_dir), "--out", str(out)]
    assert main([*command, "--reproduce", "6"]) != 0
    assert not out.exists()

    monkeypatch.setattr("lmdiag.models.model.Model.answer", refuse_to_answer)
    check_found(rows_of(submissions, demo_dir, "--reproduce", "6"), out, asked=6)
    first, second, again = requests
    assert first["model"]["id"] != second["model"]["id"]
    assert again == second
    attempted = [path.name for path in (out.parent / "board-attempts").glob("*/*")]
    assert attempted == ["outcome.json"] * 2


@pytest.mark.slow
def test_a_model_that_cannot_be_loaded_stays_recomputed(
    submissions: Path, demo_dir: Path, requests: list[Json], hub: LoopbackHub
) -> None:
    make_run(submissions / "nowhere", demo_dir, seed=5, id="org/nowhere", commit="d" * 40)
    hub.log.clear()
    rows = rows_of(submissions, demo_dir, "--reproduce", "3", "--max-parameters", "1000")
    assert {row["level"] for row in rows.values()} == {"recomputed"}
    details = {name: row["reproduction"]["detail"] for name, row in rows.items()}
    assert "more than 1,000 parameters" in details["org/honest"]
    assert "org/nowhere at dddddddddddd: not found" in details["org/nowhere"]
    assert not [path for _, path, _ in hub.log if path.endswith(".safetensors")], "not downloaded"


@pytest.mark.slow
def test_models_are_queried_in_a_process_of_their_own(submissions: Path, demo_dir: Path) -> None:
    rows = rows_of(submissions, demo_dir, "--reproduce", "6")
    check_found(rows, submissions.parent / "board", asked=6)


def test_a_process_that_ends_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(attempts.BadInput, match="ended without an answer"):
        attempts._exchange({})


REPRODUCED = Outcome("reproduced", "", 9, 90, "0f", 1e-4, "cpu", {"torch": "2"}, 1.5, "2025-03-01")


@pytest.mark.parametrize(
    "change",
    [{"asked": "9"}, {"status": "?"}, {"versions": None}, {"tolerance": None}, {"seconds": 1e999},
     {"detail": [[]] * 70}],
    ids=str,
)  # fmt: skip
def test_a_damaged_outcome_counts_as_none(tmp_path: Path, change: Json) -> None:
    path = tmp_path / "outcome.json"
    path.write_text(json.dumps(asdict(REPRODUCED)))
    assert attempts._read(path) == REPRODUCED
    path.write_text(json.dumps(asdict(REPRODUCED) | change))
    assert attempts._read(path) is None
    path.write_text("[" * 100_000)
    assert attempts._read(path) is None
