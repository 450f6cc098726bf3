"""The items of a run: every contrast with its contexts, top words and probabilities."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmdiag import evaluation
from lmdiag.measures.scores import number_text
from lmdiag.perturb import NONE, perturb

if TYPE_CHECKING:
    from lmdiag.measures import Scores
    from lmdiag.results import Run

MAX_LISTED = 600
"""Number of contrasts of a task that a page lists in full; of more it shows a sample."""

_OF_EACH = 12
"""Contrasts per combination of levels in a sample, at most."""


class TopWord(NamedTuple):
    """An entry of a top-k list: its probability, None where unknown; whether it is expected."""

    word: str
    probability: float | None
    expected: bool


class Choice(NamedTuple):
    """A row of the data with the answer of the model.

    Attributes:
        id, context, right_context, target, good, expected: columns of the row; `good`
            is None where rows are not compared.
        log_prob: of the target, in nats; None where unscorable or unknown.
        rank: of the target; None where unknown.
        words, word_log_probs: the most probable words at the blank, and what is known of them.
        cased: whether words are compared with `expected` exactly.
    """

    id: str
    context: str
    right_context: str
    target: str
    good: bool | None
    expected: Sequence[str]
    log_prob: float | None
    rank: int | None
    words: Sequence[str] | None
    word_log_probs: Sequence[float] | None
    cased: bool

    @property
    def top(self) -> tuple[TopWord, ...]:
        """The most probable words."""
        fold = str if self.cased else str.casefold
        expected = {fold(word) for word in self.expected}
        words = self.words or ()
        log_probs: Sequence[float | None] = self.word_log_probs or [None] * len(words)
        return tuple(
            TopWord(word, None if p is None else math.exp(p), fold(word) in expected)
            for word, p in zip(words, log_probs, strict=True)
        )

    @property
    def probability(self) -> float | None:
        """Of the target; None where unscorable or unknown."""
        return None if self.log_prob is None else math.exp(self.log_prob)

    @property
    def place(self) -> int | None:
        """Place of the first expected word in the top list, from 1; None where there is none."""
        return next((i for i, entry in enumerate(self.top, start=1) if entry.expected), None)

    @property
    def sentence(self) -> str:
        """The context with its blank."""
        return f"{self.context} ____ {self.right_context}".rstrip()


class Item(NamedTuple):
    """A contrast and its outcome, or a row that is not compared.

    Attributes:
        id: of the contrast, or of the row.
        choices: its rows, the good one first.
        levels: break-down -> the level it belongs to.
        prefers_good: whether the good row is the most probable; None where this is not known.
        by_threshold: the same by more than the run's threshold.
    """

    id: str
    choices: Sequence[Choice]
    levels: Mapping[str, str]
    prefers_good: bool | None = None
    by_threshold: bool | None = None

    @property
    def good(self) -> float | None:
        """Probability of the good completion; None where unknown or not in the sample."""
        return next((choice.probability for choice in self.choices if choice.good), None)

    @property
    def bad(self) -> float | None:
        """Probability of the most probable bad completion; None where one is unknown."""
        values = [choice.probability for choice in self.choices if choice.good is False]
        known = [value for value in values if value is not None]
        return max(known) if known and len(known) == len(values) else None

    @property
    def difference(self) -> float | None:
        """`good` minus `bad`."""
        good, bad = self.good, self.bad
        return None if good is None or bad is None else good - bad

    @property
    def is_compared(self) -> bool:
        """Whether the item is a contrast, and not a single row."""
        return self.choices[0].good is not None

    @property
    def order(self) -> float | None:
        """Where it stands between the worst and the best: by difference, or by probability."""
        return self.difference if self.is_compared else self.choices[0].probability


def run_scores(run: Run, task: str, setting: str = NONE, shuffle: int = 0) -> dict[str, Scores]:
    """Returns measure -> its per-item scores, computed from the predictions of the run."""
    model, protocol = run.results.model, run.results.protocol
    predictions = run.predictions[task][setting, shuffle]
    computed = evaluation.scores(
        run.stimuli[task], predictions, protocol, cased=model.cased, kind=model.kind
    )
    return {scores.name: scores for scores in computed}


def items(run: Run, task: str, setting: str = NONE) -> list[Item]:
    """Returns all contrasts of a task in the order of the data, with the contexts of a setting.

    Where no rows are compared, each row is an item.
    """
    protocol, stimuli = run.results.protocol, run.stimuli[task]
    if setting != NONE:
        stimuli = perturb(stimuli, setting, 0, protocol.seed)
    rows, said = stimuli.columns(), run.predictions[task][setting, 0]
    cased, n = run.results.model.cased, len(rows["id"])
    columns = (rows[name] for name in ("id", "context", "right_context", "target"))
    answers = (said.log_prob, said.rank, said.top_words, said.top_log_probs)
    good = rows.get("good", [None] * n)
    choices = map(Choice, *columns, good, rows["expected"], *answers, [cased] * n)
    groups: dict[str, list[Choice]] = {}
    first: dict[str, int] = {}
    for i, (contrast, choice) in enumerate(
        zip(rows.get("contrast", rows["id"]), choices, strict=True)
    ):
        groups.setdefault(contrast, []).append(choice)
        first.setdefault(contrast, i)
    labels = stimuli.diagnostic.levels(rows)
    scores = run_scores(run, task, setting)
    plain = _verdicts(scores.get("sensitivity"))
    strict = _verdicts(scores.get(f"sensitivity@{number_text(protocol.threshold)}"))
    return [
        Item(
            contrast,
            sorted(group, key=lambda choice: not choice.good),
            {by: x for by, of in labels.items() if (x := of[first[contrast]]) is not None},
            plain.get(contrast),
            strict.get(contrast),
        )
        for contrast, group in groups.items()
    ]


def _verdicts(scores: Scores | None) -> dict[str, bool]:
    """Item -> whether its value is 1; without the items that were left out."""
    if scores is None:
        return {}
    return dict(zip(scores.items.tolist(), (scores.values == 1).tolist(), strict=True))


def representative(items: Sequence[Item]) -> list[Item]:
    """Returns all items, or of too many some of each combination of levels.

    They are spread evenly over the order of p(good) - p(bad), the worst and the best included, to
    show what the model does well and what badly; figures cannot be computed from them.
    """
    if len(items) <= MAX_LISTED:
        return list(items)
    groups: dict[tuple[tuple[str, str], ...], list[Item]] = {}
    for item in items:
        groups.setdefault(tuple(sorted(item.levels.items())), []).append(item)
    of_each = min(_OF_EACH, max(2, MAX_LISTED // len(groups))) if len(groups) > 1 else MAX_LISTED
    return [item for group in groups.values() for item in _spread(group, of_each)]


def _spread(group: Sequence[Item], n: int) -> list[Item]:
    """n items, evenly spread over their order."""
    ordered = sorted(
        (order, i) for i, item in enumerate(group) if (order := item.order) is not None
    )
    known = [group[i] for _, i in ordered]
    if len(known) <= n:
        return known
    return [known[round(place * (len(known) - 1) / (n - 1))] for place in range(n)]
