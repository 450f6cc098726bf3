"""
name:
Lmdiag

dataset:
ORG/lmdiag

abstract:
Psycholinguistic diagnostics (Ettinger 2020): contrasts from experiments on human language
processing, where a good and a bad completion differ in one kind of knowledge: commonsense and
pragmatic inference, event knowledge and semantic roles, negation. With the subject-verb agreement
of Newman et al. (2021).

languages:
english

tags:
language-modeling, reasoning

paper:
https://doi.org/10.1162/tacl_a_00298
"""
# lighteval reads the docstring by its keys, and nothing else may stand in it.
#
# A document is a contrast, as in `lm-evaluation-harness/contrasts.py`, whose functions are used:
# `acc` is whether the target of the good row is more probable than that of every bad row, each
# after the context of its own row, and `sensitivity@0.01` whether by more than 0.01.
#
# With the data set directory `lmdiag` in the current folder:
#
#     lighteval accelerate "model_name=gpt2,dtype=float32" "lmdiag:cprag102|0" \
#         --custom-tasks lmdiag/lighteval/diagnostics.py

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from importlib.machinery import SourceFileLoader
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
from datasets import load_dataset
from lighteval.metrics.metrics_sample import SampleLevelComputation
from lighteval.metrics.utils.metric_utils import SampleLevelMetricGrouping
from lighteval.tasks.lighteval_task import LightevalTaskConfig
from lighteval.tasks.requests import Doc, SamplingMethod

DATA = "lmdiag"
"""The data set: a directory of this name where lighteval is started, or set a Hub id here."""

CONFIGS: Mapping[str, tuple[str, str]] = {
    "cprag102": ("cprag102", "documents"),
    "role88": ("role88", "documents"),
    "neg136_simp_affirmative": ("neg136", "simp_affirmative"),
    "neg136_simp_negative": ("neg136", "simp_negative"),
    "neg136_nat": ("neg136", "nat"),
    "agreement": ("agreement", "sentences"),
}
"""Name of a task -> config of the data set, and function that makes its documents."""


@cache
def contrasts() -> ModuleType:
    """Returns the module that makes documents for lm-evaluation-harness."""
    here = Path(__file__).resolve().parent
    beside = here / "contrasts.py"
    file = beside if beside.is_file() else here.parent / "lm-evaluation-harness/contrasts.py"
    module = ModuleType("lmdiag_contrasts")
    SourceFileLoader(module.__name__, str(file)).exec_module(module)
    return module


def document_of(task: str) -> Callable[[dict[str, Any], str], Doc | None]:
    """Returns what makes a row of the data set a document: the good row of each contrast does."""
    config, function = CONFIGS[task]

    @cache
    def documents() -> dict[str, dict[str, Any]]:
        rows = load_dataset(DATA, config, split="test")
        return {doc["contrast"]: doc for doc in getattr(contrasts(), function)(rows)}

    def read(row: dict[str, Any], name: str) -> Doc | None:
        doc = documents().get(row["contrast"]) if row["good"] else None
        if doc is None:
            return None
        choices = [f" {choice}" for choice in doc["choices"]]
        return Doc(doc["shared"], choices, doc["good"], task_name=name, specific=doc)

    return read


class Preference(SampleLevelComputation):
    """Whether the good row of a contrast is preferred: acc and sensitivity@0.01."""

    def compute(self, doc: Doc, model_response: Any, **options: Any) -> dict[str, float]:
        """Returns both from the log-probabilities of the choices."""
        results = [(log_prob, False) for log_prob in model_response.logprobs]
        measures: dict[str, float] = contrasts().measures(doc.specific, results)
        return measures


METRICS = ["acc", "sensitivity@0.01"]
PREFERENCE = SampleLevelMetricGrouping(
    metric_name=METRICS,
    sample_level_fn=Preference(),
    category=SamplingMethod.LOGPROBS,
    corpus_level_fn=dict.fromkeys(METRICS, np.mean),
    higher_is_better=dict.fromkeys(METRICS, True),
)

TASKS_TABLE = [
    LightevalTaskConfig(
        name=f"lmdiag:{task}",
        prompt_function=document_of(task),
        hf_repo=DATA,
        hf_subset=config,
        metrics=[PREFERENCE],
        hf_avail_splits=["test"],
        evaluation_splits=["test"],
    )
    for task, (config, _) in CONFIGS.items()
]
