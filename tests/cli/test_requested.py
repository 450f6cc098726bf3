"""Which models a command runs: lists in files, revisions on the Hub, and the steps they name."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Commands
from hub import LoopbackHub
from huggingface_hub import HfApi

from lmdiag.cli.options import matching_revisions, read_models
from lmdiag.training_steps import by_step, trained_model, training_step
from lmdiag.types import BadInput

pytest_plugins = ["hub.fixtures"]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "\ufeff# checkpoints\n\norg/one\n  org/two\tstep1000  # the first\n\r\norg/two main\n"
            "org/three#4\n   # none",
            [
                ("org/one", None),
                ("org/two", "step1000"),
                ("org/two", "main"),
                ("org/three#4", None),
            ],
        ),
        ("org/one\norg/two step1 step2\n", "models.txt:2: expected a model and optionally"),
        ("org/one a\norg/one\n\norg/one a\n", "models.txt:4: repeats line 1"),
        ("# org/one\n\n", "models.txt names no model"),
    ],
)
def test_a_list_of_models_is_read_or_the_line_is_named(
    tmp_path: Path, text: str, expected: object
) -> None:
    file = tmp_path / "models.txt"
    file.write_text(text, "utf-8")
    if not isinstance(expected, str):
        assert read_models(str(file)) == expected
        return
    with pytest.raises(BadInput) as caught:
        read_models(str(file))
    assert expected in str(caught.value)


# ---- training steps ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("model_id", "revision", "model", "step"),
    [
        ("runs/tiny/step1", None, "runs/tiny", 1),
        ("./runs/tiny/global_step20/", None, "runs/tiny", 20),
        ("runs/tiny-step20k-hf", None, "runs/tiny-hf", 20_000),
        ("step1000", None, ".", 1000),
        ("google/multiberts-seed_0-step_20k", None, "google/multiberts-seed_0", 20_000),
        ("EleutherAI/pythia-70m", "step1000", "EleutherAI/pythia-70m", 1000),
        ("org/footstep-12", None, "org/footstep-12", None),
        ("runs/step5/final", None, "runs/step5/final", None),
    ],
)
def test_a_checkpoint_belongs_to_the_model_without_the_step(
    model_id: str, revision: str | None, model: str, step: int | None
) -> None:
    assert trained_model(model_id, revision) == model
    assert training_step(revision or model_id.rstrip("/").rpartition("/")[2]) == step


def test_forms_and_order_of_steps() -> None:
    forms = {
        "step-1000": 1000, "checkpoint-500": 500, "1000-steps": 1000, "100k-steps": 100_000,
        "stage1-step140000-tokens294B": 140_000, "iter_0010000": 10_000, "step1M": 1_000_000,
        "step0": 0, "main": None, "v1.0": None, "step3b2f": None, "0123456789abcdef": None,
    }  # fmt: skip
    assert {name: training_step(name) for name in forms} == forms
    names = ["step1000-tokens2B", "step9", "step_2", "stage2-step1", "stage1-step10", "step2k", "v"]
    assert by_step([*names, "10", "9", ""]) == [
        "", "9", "10", "stage1-step10", "stage2-step1", "step9", "step1000-tokens2B", "step2k",
        "step_2", "v",
    ]  # fmt: skip


# ---- revisions -----------------------------------------------------------------------------------

STEPS = ("step10", "step9", "step1k", "step1", "step-final")


@pytest.fixture
def published(hub: LoopbackHub, api: HfApi, command: Commands) -> str:
    """A tiny model on the Hub with branches and a tag."""
    api.create_repo("org/tiny")
    api.upload_folder(repo_id="org/tiny", folder_path=command.models["gpt2"])
    refs = hub.repositories["models", "org/tiny"].refs
    refs |= dict.fromkeys(STEPS, refs["main"])
    refs |= {"refs/tags/step200": refs["main"], "refs/pr/1": refs["main"]}
    return "org/tiny"


def test_revisions_are_in_the_order_of_their_steps(published: str, command: Commands) -> None:
    steps = ["step1", "step9", "step10", "step200", "step1k"]
    assert matching_revisions(published, "step[0-9]*") == steps
    assert set(matching_revisions(published, "*")) == {*STEPS, "step200", "main"}
    error = command.refused("run", "--model", "org/none", "--revisions", "*", "--data", "demo")
    assert "cannot list the revisions of model org/none: not found" in error


@pytest.mark.slow
def test_all_checkpoints_are_run_and_shown_as_steps(command: Commands, published: str) -> None:
    output = command.folder / "out"
    options = ["--data", command.data, "--tasks", "neg136", "--output", output]
    code, out, err = command("run", "--model", published, "--revisions", "step?", *options)
    assert code == 0, err
    written = {path.name for path in output.iterdir()}
    assert written == {"org--tiny@step1", "org--tiny@step9", "comparison.html"}
    assert f"open {output / 'comparison.html'} in a browser" in out
    overview = out[out.index("All 2 models") :]
    assert overview.index("step 1") < overview.index("step 9")
    files = output.rglob("predictions.parquet")
    assert len({path.read_bytes() for path in files}) == 1  # one commit, several names
