"""Which models a command runs: lists in files, and patterns of revisions on the Hub."""

from __future__ import annotations

from pathlib import Path

import pytest
from commands import Commands
from hub import LoopbackHub
from huggingface_hub import HfApi

from lmdiag.cli.options import matching_revisions, read_models
from lmdiag.types import BadInput

pytest_plugins = ["hub.fixtures"]


def write(folder: Path, text: str) -> str:
    path = folder / "models.txt"
    path.write_text(text, "utf-8")
    return str(path)


def test_a_list_has_models_revisions_comments_and_blank_lines(tmp_path: Path) -> None:
    file = write(
        tmp_path,
        "\ufeff# checkpoints\n\norg/one\n  org/two\tstep1000  # the first\n\r\norg/two main\n"
        "org/three#4\n   # none",
    )
    assert read_models(file) == [
        ("org/one", None), ("org/two", "step1000"), ("org/two", "main"), ("org/three#4", None),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("org/one\norg/two step1 step2\n", "models.txt:2: expected a model and optionally"),
        ("org/one a\norg/one\n\norg/one a\n", "models.txt:4: repeats line 1"),
        ("# org/one\n\n", "models.txt names no model"),
        ("", "models.txt names no model"),
    ],
)
def test_a_mistake_names_file_and_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(BadInput) as caught:
        read_models(write(tmp_path, text))
    assert message in str(caught.value)


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


def test_revisions_are_in_the_order_of_their_steps(published: str) -> None:
    steps = ["step1", "step9", "step10", "step200", "step1k"]
    assert matching_revisions(published, "step[0-9]*") == steps
    assert matching_revisions(published, "m*") == ["main"]
    assert set(matching_revisions(published, "*")) == {*STEPS, "step200", "main"}


@pytest.mark.usefixtures("hub")
def test_a_model_that_is_not_on_the_hub(command: Commands) -> None:
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
