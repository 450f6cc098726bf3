"""A run's `results.json` written by hand, small enough to check by eye."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from runs import PERTURBED, WITH_AGREEMENT, make_run

from lmdiag.results import Run, load_run

SIGNATURE = "lmdiag:0.1|data:1a2b3c4d|unit:token|k:1,5|t:0.01|shuf:100|seed:0"

Json = dict[str, Any]


def measure(hits: int, n: int, by: Json | None = None, **more: Any) -> Json:
    """A proportion with a round interval of a tenth to either side."""
    value = hits / n
    return {
        "value": value,
        "n": n,
        "ci_low": value - 0.1,
        "ci_high": value + 0.1,
        "by": by or {},
    } | more


def setting(measures: Json, unscorable: list[Json] | None = None) -> Json:
    return {"signature": SIGNATURE, "measures": measures, "unscorable": unscorable or []}


def results(tasks: Json, model: str = "org/model") -> Json:
    return {
        "schema_version": 1,
        "signature": SIGNATURE,
        "model": {
            "id": model, "revision": None, "commit": "86b5e0934494bd15c963", "kind": "masked",
            "dtype": "float32", "cased": False, "n_parameters": 109_514_298,
        },
        "data": {"source": "lmdiag", "tasks": {task: {"n": 10} for task in tasks}},
        "n_contexts": 198,
        "tasks": tasks,
    }  # fmt: skip


@pytest.fixture
def cprag102() -> Json:
    def constraints(high: int, low: int) -> Json:
        return {"constraint": {"high": measure(high, 17), "low": measure(low, 17)}}

    shuffled = setting({"accuracy@1": {**measure(4, 34), "sd": 0.031, "runs": 100}})
    plain = setting(
        {
            "accuracy@1": measure(8, 34, constraints(5, 3)),
            "accuracy@5": measure(18, 34, constraints(10, 8)),
            "sensitivity": measure(25, 33, constraints(13, 12)),
            "sensitivity@0.01": measure(15, 33, constraints(9, 6)),
            "within_category_boost": measure(9, 33, constraints(6, 3)),
        },
        [{"id": "cprag102-3-within", "word": "mascara"}],
    )
    return {"none": plain, "shuf": shuffled}


@pytest.fixture
def role88() -> Json:
    quartiles = {str(i + 1): measure(i + 1, n) for i, n in enumerate((25, 23, 23, 17))}
    further = {"value": 0.0123, "n": 44, "ci_low": 0.004, "ci_high": 0.02, "by": {}}
    return {
        "none": setting(
            {
                "accuracy@1": measure(10, 88, {"cloze_quartile": quartiles}),
                "sensitivity": measure(33, 44),
                "sensitivity@0.01": measure(14, 44),
                "human_sensitivity": measure(44, 44),
                "probability_difference": further,
            }
        )
    }


@pytest.fixture
def neg136() -> Json:
    natural = ("natural", "less_natural")
    by = {
        "subset": {"simp": measure(18, 36), "nat": measure(20, 32)},
        "subset/polarity": {"simp/affirmative": measure(18, 18), "simp/negative": measure(0, 18)},
        "natural": {"natural": measure(12, 16), "less_natural": measure(6, 16)},
        "natural/polarity": {
            f"{level}/{polarity}": measure(4, 8)
            for level in natural
            for polarity in ("affirmative", "negative")
        },
    }
    accuracy = {"subset": {"simp": measure(7, 18), "nat": measure(4, 16)}}
    return {
        "none": setting(
            {
                "accuracy@1": measure(11, 34, accuracy),
                "sensitivity": measure(38, 68, by),
                "determiner_match@5": measure(300, 360),
            }
        )
    }


# ---- finished runs on the demo data --------------------------------------------------------------


@pytest.fixture(scope="session")
def run_dirs(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of two models by the full protocol, one with agreement, and three checkpoints."""
    root = tmp_path_factory.mktemp("runs")
    asked: dict[str, dict[str, Any]] = {
        "strong": {"protocol": PERTURBED, "id": "org/strong", "skill": 3, "unscorable": 1},
        "weak": {"protocol": PERTURBED, "id": "org/weak", "skill": 0.5, "seed": 1},
        "all": {"protocol": WITH_AGREEMENT, "id": "org/all", "skill": 2},
    }
    for step in (0, 1000, 64000):
        asked[f"step{step}"] = {
            "id": "org/trained", "revision": f"step{step}", "training_step": step,
            "commit": f"{step:040}", "skill": step / 20000, "seed": step,
        }  # fmt: skip
    return {name: make_run(root / name, demo_dir, **options) for name, options in asked.items()}


@pytest.fixture(scope="session")
def runs(run_dirs: dict[str, Path]) -> dict[str, Run]:
    """The same, read back."""
    return {name: load_run(path) for name, path in run_dirs.items()}
