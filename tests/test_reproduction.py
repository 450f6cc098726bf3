"""Submitted models are asked again: invented predictions are found out, honest ones agree."""

from __future__ import annotations

import json
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import families
import pytest
from hub import LoopbackHub
from hub.runs import make_run, model_info
from huggingface_hub import HfApi

from lmdiag import stimuli
from lmdiag.cli import main
from lmdiag.cli.leaderboard import count
from lmdiag.leaderboard.outcome import Outcome, level, sentence
from lmdiag.reproduction import attempts, worker
from lmdiag.reproduction.agree import first_difference, tolerance
from lmdiag.reproduction.sample import Claim, draw
from lmdiag.results import Run
from lmdiag.schema import DIAGNOSTICS, Answer, ModelInfo, Protocol, Query, WordScore

pytest_plugins = ["hub.fixtures"]

Json = dict[str, Any]


# ---- which contexts -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def made_up(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    folder = make_run(tmp_path_factory.mktemp("made-up") / "run", demo_dir)
    rows = {task: stimuli.load(str(demo_dir), task) for task in DIAGNOSTICS}
    return Run(folder, json.loads((folder / "results.json").read_text()), rows)


def test_contexts_are_drawn_by_the_seed_from_every_task(made_up: Run) -> None:
    sample = draw(made_up, 9, "seed")
    assert len(sample.questions) == 9
    assert sample == draw(made_up, 9, "seed")
    assert sample.questions != draw(made_up, 9, "another seed").questions
    tasks = {claim.id.split("-")[0] for claim in sample.claims}
    assert tasks == {"cprag102", "role88", "neg136"}
    asked = {question.query for question in sample.questions}
    assert {claim.key[0] for claim in sample.claims} == asked


def test_all_contexts_have_all_rows(made_up: Run) -> None:
    sample = draw(made_up, None, "seed")
    assert len(sample.questions) == sample.of
    assert sorted(claim.id for claim in sample.claims) == sorted(
        row for rows in made_up.stimuli.values() for row in rows.columns()["id"]
    )
    assert len(draw(made_up, 10_000, "seed").questions) == sample.of


# ---- what agrees --------------------------------------------------------------------------------

QUERY = Query("A robin is a")
MODEL = {
    "kind": "masked", "cased": False, "vocab_size": 9, "n_parameters": 100, "dtype": "float32",
    "quantization": None,
}  # fmt: skip
CLAIM = Claim("r1", (QUERY, None), "tree", -3.0, 1, ("bird", "dog"), (-0.5, -1.5), None)
ANSWER = Answer(
    {"tree": WordScore(-3.0, 3, 1)},
    ("bird", "dog", "tree", "fish"),
    (-0.5, -1.5, -3.0, -4.0),
)


def difference(claim: Claim = CLAIM, answer: Answer = ANSWER, **model: Any) -> str | None:
    return first_difference(MODEL | model, MODEL, [claim], {(QUERY, None): answer})


def test_the_same_numbers_agree() -> None:
    assert difference() is None
    # Within .01 in float32, and with words that change places where they are as close as that.
    near = replace(CLAIM, log_prob=-3.009, top_log_probs=(-0.509, -1.491))
    assert difference(near) is None
    swapped = replace(ANSWER, top_log_probs=(-0.5, -1.5, -1.505, -4.0))
    assert difference(replace(CLAIM, top_words=("bird", "tree")), swapped) is None


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
    found = difference(replace(CLAIM, **changes))
    assert found is not None
    assert found.startswith("r1: ")
    assert said in found


def test_facts_of_the_model_are_compared() -> None:
    assert difference(n_parameters=10**9) == "n_parameters is 100, the submission says 1000000000"
    assert difference(cased=True) == "cased is False, the submission says True"
    assert difference(n_parameters=10**9, quantization="4bit") is None


def test_tolerance_follows_the_dtype() -> None:
    dtypes = ("float64", "float32", "float16", "bfloat16")
    allowed = [tolerance(MODEL | {"dtype": dtype}) for dtype in dtypes]
    assert allowed == sorted(allowed)
    assert difference(replace(CLAIM, log_prob=-3.3)) is not None
    assert difference(replace(CLAIM, log_prob=-3.3), dtype="bfloat16") is None


def test_what_is_said_of_an_outcome() -> None:
    assert level(None) == level(Outcome("not possible", "gated")) == "recomputed"
    assert "could not be asked: gated." in sentence(Outcome("not possible", "gated"))
    asked = Outcome("reproduced", "", asked=30, of=198, seed="ab", tolerance=0.01)
    assert "30 of 198 contexts" in sentence(asked)
    assert "within 0.01 nats" in sentence(asked)
    assert "First difference: r1: x." in sentence(replace(asked, status="differs", detail="r1: x"))


def test_numbers_of_parameters() -> None:
    assert [count(text) for text in ("7B", "7e9", "350M", "10000")] == [
        7_000_000_000, 7_000_000_000, 350_000_000, 10_000,
    ]  # fmt: skip


# ---- models of the Hub --------------------------------------------------------------------------


@pytest.fixture
def in_process(monkeypatch: pytest.MonkeyPatch) -> list[Json]:
    """Answers requests in this process, which has torch already; returns the requests."""
    requests: list[Json] = []

    def exchange(request: Json, time_limit: int) -> Json:
        requests.append(json.loads(json.dumps(request)))
        answered: Json = json.loads(json.dumps(worker.respond(requests[-1])))
        return answered

    monkeypatch.setattr(attempts, "_exchange", exchange)
    return requests


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
        make_submissions(made / "runs", demo_dir, commits["org/invented"])
    return Path(shutil.copytree(made / "runs", tmp_path / "runs"))


def make_submissions(output: Path, demo_dir: Path, commit: str) -> None:
    """Runs `org/honest`, and makes up predictions for `org/invented` at a commit."""
    from lmdiag.models import LoadOptions
    from lmdiag.runs.inputs import load_inputs
    from lmdiag.runs.run import run_model

    inputs = load_inputs(str(demo_dir), Protocol())
    run = run_model("org/honest", LoadOptions(), inputs, output=output, quiet=True)
    assert run is not None
    info = ModelInfo(**run.results["model"] | {"id": "org/invented", "commit": commit})
    make_run(output / "invented", demo_dir, info=info, skill=6.0)


def build(runs: Path, data: Path, *more: str) -> dict[str, Json]:
    """Builds the leaderboard as the command does; returns name -> its row."""
    out = runs.parent / "board"
    command = ["leaderboard", str(runs), "--data", str(data), "--out", str(out)]
    assert main([*command, *more]) == 0
    rows = json.loads((out / "leaderboard.json").read_text())["rows"]
    return {row["name"]: row for row in rows if row["origin"] == "submitted"}


def check_found_out(rows: dict[str, Json], out: Path, asked: int) -> None:
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
    assert "First difference: " in page
    assert "The answers differ." in page


@pytest.mark.slow
def test_invented_predictions_are_found_out(
    submissions: Path, demo_dir: Path, in_process: list[Json]
) -> None:
    rows = build(submissions, demo_dir, "--reproduce", "6")
    check_found_out(rows, submissions.parent / "board", asked=6)
    # Outcomes are kept: the same attempt is not repeated, one with more contexts is made.
    assert build(submissions, demo_dir, "--reproduce", "6") == rows
    assert len(in_process) == 2
    rows = build(submissions, demo_dir, "--reproduce", "all")
    assert len(in_process) == 4
    honest = rows["org/honest"]["reproduction"]
    assert honest["asked"] == honest["of"] > 100
    assert honest["status"] == "reproduced"


@pytest.mark.slow
def test_an_interrupted_attempt_resumes(
    submissions: Path, demo_dir: Path, in_process: list[Json], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Killed after the second model had answered: the first is not asked again, the second keeps
    its contexts and the batches that it had answered."""
    answer = attempts._exchange

    def killed(request: Json, time_limit: int) -> Json:
        reply = answer(request, time_limit)
        if len(in_process) == 2:
            raise KeyboardInterrupt
        return reply

    monkeypatch.setattr(attempts, "_exchange", killed)
    out = submissions.parent / "board"
    command = ["leaderboard", str(submissions), "--data", str(demo_dir), "--out", str(out)]
    assert main([*command, "--reproduce", "6"]) != 0
    assert not out.exists()

    monkeypatch.setattr("lmdiag.models.local.LocalModel.answer", refuse_to_answer)
    rows = build(submissions, demo_dir, "--reproduce", "6")
    check_found_out(rows, out, asked=6)
    first, second, again = in_process
    assert first["model"]["id"] != second["model"]["id"]
    assert again == second


def refuse_to_answer(*arguments: object) -> None:
    raise AssertionError("this batch was answered before")


@pytest.mark.slow
def test_what_cannot_be_loaded_stays_recomputed(
    submissions: Path, demo_dir: Path, in_process: list[Json], hub: LoopbackHub
) -> None:
    info = model_info(id="org/nowhere", commit="d" * 40)
    make_run(submissions / "nowhere", demo_dir, info=info, seed=5)
    rows = build(submissions, demo_dir, "--reproduce", "3", "--max-parameters", "1000")
    assert {row["level"] for row in rows.values()} == {"recomputed"}
    details = {name: row["reproduction"]["detail"] for name, row in rows.items()}
    assert "more than 1,000 parameters" in details["org/honest"]
    assert "org/nowhere at dddddddddddd: not found" in details["org/nowhere"]
    # No weights were fetched.
    assert not [path for _, path, _ in hub.log if path.endswith(".safetensors") and "HEAD" in path]


@pytest.mark.slow
def test_models_are_asked_in_a_process_of_their_own(submissions: Path, demo_dir: Path) -> None:
    rows = build(submissions, demo_dir, "--reproduce", "6")
    check_found_out(rows, submissions.parent / "board", asked=6)


def test_a_process_that_ends_without_an_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", "/bin/false")
    with pytest.raises(attempts.BadInput, match="ended without an answer"):
        attempts._exchange({}, 60)
