"""Finished runs of invented models on the demo data, for tests of reports."""

import pytest
from invented_runs import PERTURBED, WITH_AGREEMENT, make_run
from sentence_files import write_pairs, write_sentences, write_suites

from lmdiag.results import load_run


@pytest.fixture(scope="session")
def runs(demo_dir, made_once):
    """Runs of two models by the full protocol, one with agreement, and three checkpoints."""
    asked = {
        "strong": {"protocol": PERTURBED, "id": "org/strong", "skill": 3, "unscorable": 1},
        "weak": {"protocol": PERTURBED, "id": "org/weak", "skill": 0.5, "seed": 1},
        "all": {"protocol": WITH_AGREEMENT, "id": "org/all", "skill": 2},
    }
    for step in (0, 1000, 64000):
        asked[f"step{step}"] = {
            "id": "org/trained", "revision": f"step{step}", "training_step": step,
            "commit": f"{step:040}", "skill": step / 20000, "seed": step,
        }  # fmt: skip

    def make(folder):
        for name, options in asked.items():
            make_run(folder / name, demo_dir, **options)

    folder = made_once("report-runs", make)
    return {name: load_run(folder / name) for name in asked}


@pytest.fixture(scope="session")
def forms(made_once):
    """Runs of two models on the three forms of sentences."""
    strong = {"id": "org/strong", "kind": "causal", "bos": True, "skill": 5}
    weak = {"id": "org/weak", "skill": 0, "seed": 1}
    asked = {
        "pairs": strong | {"unscorable": 1}, "suites": strong,
        "sentences": {"id": "org/none", "kind": "causal"},
    }  # fmt: skip

    def make(folder):
        data = {
            "pairs": write_pairs(folder / "blimp"), "suites": write_suites(folder / "gym"),
            "sentences": write_sentences(folder / "texts.csv"),
        }  # fmt: skip
        for form, path in data.items():
            make_run(folder / form, path, **asked[form])
            make_run(folder / f"{form} of weak", path, **weak)

    folder = made_once("forms", make)
    names = [f"{form}{model}" for form in asked for model in ("", " of weak")]
    return {name: load_run(folder / name) for name in names}
