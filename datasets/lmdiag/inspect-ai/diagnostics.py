"""The diagnostics of the lmdiag data set as tasks of Inspect (inspect_ai), for causal models.

Inspect asks a model to continue a text and returns log-probabilities of tokens. Two kinds of tasks
use them, with the same figures as lmdiag with `--unit token`:

- `accuracy`: a sample is a distinct context with an expected word. `accuracy_at_1` and
  `accuracy_at_5` are whether an expected word is among the most probable next tokens. Any provider
  that returns log-probabilities of the answer can be used. The context must reach the model as it
  is: give a template without roles.
- `sensitivity`: a sample is a row, its context followed by its target. The log-probability of the
  target is that of its tokens in the prompt, which vLLM and servers of its kind return through the
  providers `vllm-completions` and `openai-api-completions`. `sensitivity` is the share of contrasts
  whose good row has a higher probability than every bad row; `sensitivity_at_0_01` by more than
  0.01.

With the data set directory `lmdiag` in the current folder:

    inspect eval lmdiag/inspect-ai/diagnostics.py@lmdiag_cprag102_accuracy --model hf/gpt2 \\
        -M "chat_template='{{ messages[0].content }}'"
    inspect eval lmdiag/inspect-ai/diagnostics.py@lmdiag_cprag102_sensitivity \\
        --model vllm-completions/gpt2
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from datasets import load_dataset
from inspect_ai import Task, task
from inspect_ai.dataset import MemoryDataset, Sample
from inspect_ai.model import GenerateConfig
from inspect_ai.scorer import (
    Metric,
    SampleScore,
    Score,
    Scorer,
    Target,
    grouped,
    mean,
    metric,
    scorer,
)
from inspect_ai.solver import TaskState, generate

HUB_ID = "ORG/lmdiag"
"""The data set on the Hub."""
FOLDER = Path(__file__).resolve().parents[1]
DATA = str(FOLDER) if (FOLDER / "provenance.json").is_file() else HUB_ID
"""The data set: the directory that this file is in; elsewhere that of the Hub."""

STARTS = ("Ġ", "▁", " ")
"""Marks of tokens that begin a word."""

TOLERANCE = 1e-9
"""A difference of probabilities within this distance of the threshold is not above it."""


def contexts(rows: Iterable[Mapping[str, Any]]) -> list[Sample]:
    """Returns one sample per distinct context that has expected words."""
    by_context: dict[str, Sample] = {}
    for row in rows:
        if row["expected"]:
            part = {"part": row.get("subset") or "all"}
            target = list(row["expected"])
            sample = Sample(row["context"], target=target, id=row["id"], metadata=part)
            by_context.setdefault(row["context"], sample)
    return list(by_context.values())


def completions(rows: Iterable[Mapping[str, Any]]) -> list[Sample]:
    """Returns one sample per row: its context, a space and its target."""
    samples = []
    for row in rows:
        parts = [row.get("subset"), row.get("polarity") if row.get("subset") == "simp" else None]
        metadata = {
            "contrast": row["contrast"],
            "good": row["good"],
            "word": row["target"],
            "part": "_".join(filter(None, parts)) or "all",
        }
        text = f"{row['context']} {row['target']}"
        samples.append(Sample(text, target=row["target"], id=row["id"], metadata=metadata))
    return samples


@scorer(metrics={"*": [grouped(mean(), "part", all=False)]})
def first_tokens() -> Scorer:
    """Returns accuracy from the most probable first tokens."""

    async def score(state: TaskState, target: Target) -> Score:
        logprobs = state.output.choices[0].logprobs
        if logprobs is None:
            raise ValueError("this model gives no log-probabilities: choose another provider")
        tokens = [entry.token for entry in logprobs.content[0].top_logprobs or []]
        # A token that continues a word gets ## in front.
        words = [x[1:] if x.startswith(STARTS) else f"##{x}" for x in tokens]
        expected = set(target)
        hits = {f"accuracy_at_{k}": float(bool(expected & {*words[:k]})) for k in (1, 5)}
        return Score(value=hits, answer=words[0])

    return score


def log_prob_of_last_word(tokens: Sequence[tuple[str, float]], word: str) -> float:
    """Returns the log-probability (nats) of the word at the end of a text.

    Args:
        tokens: the text and log-probability of every token.
        word: the last word.

    Returns:
        The sum over its tokens; NaN if no tokens at the end make up the word.
    """
    text = ""
    total = 0.0
    for at in range(len(tokens) - 1, -1, -1):
        token, log_prob = tokens[at]
        text = token + text
        total += log_prob
        if text.strip() == word:
            is_space_apart = text == word and at > 0 and not tokens[at - 1][0].strip()
            return total + tokens[at - 1][1] if is_space_apart else total
    return math.nan


@metric
def sensitivity(threshold: float | None = None) -> Metric:
    """Returns the share of contrasts whose good row is more probable than every bad row.

    Args:
        threshold: by more than this difference of probabilities; None for any difference.
    """

    def is_above(good: float, bad: float) -> bool:
        if threshold is None:
            return good > bad
        return math.exp(good) - math.exp(bad) > threshold + TOLERANCE

    def compute(scores: list[SampleScore]) -> float:
        rows: dict[str, list[tuple[bool, float]]] = {}
        for score in scores:
            facts = score.sample_metadata or {}
            row = (facts["good"], score.score.as_float())
            rows.setdefault(facts["contrast"], []).append(row)
        hits = []
        for members in rows.values():
            good = [log_prob for is_good, log_prob in members if is_good]
            bad = [log_prob for is_good, log_prob in members if not is_good]
            # Inspect shows the figure of the samples that are done, before all of them are.
            is_complete = good and bad and not any(math.isnan(x) for x in good + bad)
            if is_complete:
                hits.append(all(is_above(good[0], other) for other in bad))
        return sum(hits) / len(hits) if hits else math.nan

    return compute


_SENSITIVITY = grouped(sensitivity(), "part", name_template="sensitivity_{group_name}", all=False)
_SENSITIVITY_AT_0_01 = grouped(
    sensitivity(0.01), "part", name_template="sensitivity_at_0_01_{group_name}", all=False
)


@scorer(metrics=[_SENSITIVITY, _SENSITIVITY_AT_0_01])
def last_word() -> Scorer:
    """Returns the log-probability (nats) of the target at the end of the prompt."""

    async def score(state: TaskState, target: Target) -> Score:
        logprobs = state.output.choices[0].prompt_logprobs
        if logprobs is None:
            raise ValueError(
                "this provider gives no log-probabilities of the prompt: use vllm-completions"
            )
        tokens = [(entry.token, entry.logprob) for entry in logprobs.content]
        return Score(value=log_prob_of_last_word(tokens, state.metadata["word"]))

    return score


def accuracy_task(config: str) -> Task:
    """Returns the task that measures accuracy@1 and accuracy@5 on a config of the data set."""
    samples = contexts(load_dataset(DATA, config, split="test"))
    options = GenerateConfig(max_tokens=1, logprobs=True, top_logprobs=5)
    return Task(MemoryDataset(samples), solver=generate(), scorer=first_tokens(), config=options)


def sensitivity_task(config: str) -> Task:
    """Returns the task that measures sensitivity on a config of the data set."""
    samples = completions(load_dataset(DATA, config, split="test"))
    options = GenerateConfig(max_tokens=1, prompt_logprobs=1)
    return Task(MemoryDataset(samples), solver=generate(), scorer=last_word(), config=options)


@task
def lmdiag_cprag102_accuracy() -> Task:
    """Commonsense and pragmatic inference: the expected word among the first tokens."""
    return accuracy_task("cprag102")


@task
def lmdiag_cprag102_sensitivity() -> Task:
    """Commonsense and pragmatic inference: the expected word against two inappropriate ones."""
    return sensitivity_task("cprag102")


@task
def lmdiag_role88_accuracy() -> Task:
    """Semantic roles and event knowledge: an expected verb among the first tokens."""
    return accuracy_task("role88")


@task
def lmdiag_role88_sensitivity() -> Task:
    """Semantic roles and event knowledge: a verb in the appropriate and the reversed context."""
    return sensitivity_task("role88")


@task
def lmdiag_neg136_accuracy() -> Task:
    """Category membership and everyday statements: the expected word among the first tokens."""
    return accuracy_task("neg136")


@task
def lmdiag_neg136_sensitivity() -> Task:
    """Category membership and everyday statements, affirmative and negative."""
    return sensitivity_task("neg136")
