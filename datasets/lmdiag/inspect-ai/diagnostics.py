"""The diagnostics of the lmdiag data set as tasks of Inspect (inspect_ai), for causal models.

Inspect asks a model to continue a text, so it sees the most probable next tokens and no others. A
sample is a distinct context. `accuracy_at_1` and `accuracy_at_5` are whether an expected word is
among the first tokens, as in lmdiag with `--unit token`. `preference` is `sensitivity` for the
contrasts whose rows have this context and targets that are all in the list of `TOP` tokens; other
contrasts are left out, and `compared` says how many of a context's are not.

The context must reach the model as it is: give a template without roles, and no more than one
token to generate. With the data set directory `lmdiag` in the current folder:

    inspect eval lmdiag/inspect-ai/diagnostics.py@lmdiag_cprag102 --model hf/gpt2 \\
        -M "chat_template='{{ messages[0].content }}'"
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Any

from datasets import load_dataset
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import Metric, SampleScore, Score, Scorer, Target, metric, scorer
from inspect_ai.solver import TaskState, generate

DATA = "lmdiag"
"""The data set: a directory of this name where inspect is started, or set a Hub id here."""

TOP = 1000
"""Tokens that are asked for: the `hf` provider gives any number, most other ones 20 at most."""

STARTS = ("Ġ", "▁", " ")
"""Marks of tokens that begin a word."""


def samples(rows: Iterable[Mapping[str, Any]]) -> list[Sample]:
    """Returns one sample per distinct context: its expected words and its contrasts."""
    rows = list(rows)
    by_contrast: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        by_contrast.setdefault(row["contrast"], []).append(row)
    by_context: dict[str, dict[str, Any]] = {}
    for row in rows:
        facts = by_context.setdefault(row["context"], {"id": row["id"], "expected": []})
        facts["expected"] += [word for word in row["expected"] if word not in facts["expected"]]
        same = by_contrast[row["contrast"]]
        if row["good"] and len({other["context"] for other in same}) == 1:
            bad = [other["target"] for other in same if not other["good"]]
            facts.setdefault("contrasts", []).append([row["target"], *bad])
    return [
        Sample(context, target=facts["expected"] or [""], id=facts["id"], metadata=facts)
        for context, facts in by_context.items()
    ]


@metric
def mean_of_defined() -> Metric:
    """Returns the mean over the samples for which a measure is defined."""

    def compute(scores: list[SampleScore]) -> float:
        values = [score.score.as_float() for score in scores]
        defined = [value for value in values if not math.isnan(value)]
        return math.fsum(defined) / len(defined) if defined else math.nan

    return compute


@scorer(metrics={"*": [mean_of_defined()]})
def first_tokens() -> Scorer:
    """Returns accuracy and preference from the most probable first tokens."""

    async def score(state: TaskState, target: Target) -> Score:
        logprobs = state.output.choices[0].logprobs
        if logprobs is None:
            raise ValueError("this model gives no log-probabilities: choose another provider")
        entries = logprobs.content[0].top_logprobs or []
        tokens = [entry.token for entry in entries]  # one that continues a word gets ## in front
        words = [x[1:] if x.startswith(STARTS) else f"##{x}" for x in tokens]
        known: dict[str, float] = {}
        for word, entry in zip(words, entries, strict=True):
            known.setdefault(word, entry.logprob)
        value: dict[str, float] = {}
        expected = state.metadata["expected"]
        for k in (1, 5):
            is_right = float(any(word in expected for word in words[:k]))
            value[f"accuracy_at_{k}"] = is_right if expected else math.nan
        contrasts = state.metadata.get("contrasts", [])
        compared = [contrast for contrast in contrasts if known.keys() >= {*contrast}]
        better = [known[good] > max(map(known.__getitem__, bad)) for good, *bad in compared]
        value["preference"] = sum(better) / len(better) if better else math.nan
        return Score(value=value, answer=words[0], metadata={"compared": len(compared)})

    return score


def diagnostic(config: str) -> Task:
    """Returns the task of a config of the data set."""
    rows = load_dataset(DATA, config, split="test")
    options = GenerateConfig(max_tokens=1, logprobs=True, top_logprobs=TOP)
    return Task(
        MemoryDataset(samples(rows)), solver=generate(), scorer=first_tokens(), config=options
    )


@task
def lmdiag_cprag102() -> Task:
    """Commonsense and pragmatic inference: the expected word against two inappropriate ones."""
    return diagnostic("cprag102")


@task
def lmdiag_role88() -> Task:
    """Semantic roles and event knowledge; its contrasts have two contexts and are left out."""
    return diagnostic("role88")


@task
def lmdiag_neg136() -> Task:
    """Category membership and everyday statements, affirmative and negative."""
    return diagnostic("neg136")
