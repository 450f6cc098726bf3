"""Finished runs of invented models on the demo data, for tests of reports."""

import pytest
from invented_runs import PERTURBED, WITH_AGREEMENT, make_run
from sentence_files import run_on, write_pairs, write_sentences, write_suites

from lmdiag.results import load_run


@pytest.fixture(scope="session")
def runs(demo_dir, tmp_path_factory):
    """Runs of two models by the full protocol, one with agreement, and three checkpoints."""
    root = tmp_path_factory.mktemp("runs")
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
    made = {name: make_run(root / name, demo_dir, **options) for name, options in asked.items()}
    return {name: load_run(path) for name, path in made.items()}


@pytest.fixture(scope="session")
def forms(tmp_path_factory):
    """Runs on the three forms of sentences; two models on the minimal pairs and suites."""
    root = tmp_path_factory.mktemp("forms")
    pairs = write_pairs(root / "blimp")
    suites, texts = write_suites(root / "gym"), write_sentences(root / "texts.csv")
    strong = {"id": "org/strong", "kind": "causal", "bos": True, "skill": 5}
    weak = {"id": "org/weak", "skill": 0, "seed": 1}
    return {
        "pairs": run_on(pairs, root / "a", **strong, unscorable=1),
        "pairs of weak": run_on(pairs, root / "b", **weak),
        "suites": run_on(suites, root / "c", **strong),
        "suites of weak": run_on(suites, root / "d", **weak),
        "sentences": run_on(texts, root / "e", id="org/none", kind="causal"),
        "sentences of weak": run_on(texts, root / "f", **weak),
    }
