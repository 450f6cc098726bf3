"""Folders and revisions that name a training step are checkpoints of one model."""

from __future__ import annotations

import pytest

from lmdiag.training_steps import by_step, trained_model, training_step


@pytest.mark.parametrize(
    ("model_id", "revision", "model", "step"),
    [
        ("runs/tiny/step1", None, "runs/tiny", 1),
        ("runs/tiny/checkpoint-500", None, "runs/tiny", 500),
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


def test_names_are_sorted_by_their_numbers() -> None:
    names = ["step1000-tokens2B", "step9", "step_2", "stage2-step1", "stage1-step10", "step2k", "v"]
    assert by_step(names) == [
        "stage1-step10", "stage2-step1", "step9", "step1000-tokens2B", "step2k", "step_2", "v",
    ]  # fmt: skip
    assert by_step(["10", "9", "x", ""]) == ["", "9", "10", "x"]


def test_forms_of_a_step() -> None:
    forms = {
        "step-1000": 1000, "step_20k": 20_000, "1000-steps": 1000, "100k-steps": 100_000,
        "stage1-step140000-tokens294B": 140_000, "iter_0010000": 10_000, "step1M": 1_000_000,
        "step0": 0, "main": None, "v1.0": None, "step3b2f": None, "0123456789abcdef": None,
    }  # fmt: skip
    assert {name: training_step(name) for name in forms} == forms
