"""The items of a run: every contrast with its contexts, top words and probabilities."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag import evaluation
from lmdiag.perturb import perturb
from lmdiag.schema import Predictions, Protocol

if TYPE_CHECKING:
    from lmdiag.measures import Scores
    from lmdiag.results import Run
    from lmdiag.stimuli import Stimuli

MOST = 600
"""Contrasts of a task that a page lists in full; of more it shows a sample."""

OF_EACH = 12
"""Contrasts of each combination of levels that stand for a task with too many, at most."""

BLANK = "____"


class TopWord(NamedTuple):
    """An entry of a top-k list: its probability, None where unknown; whether it is expected."""

    word: str
    probability: float | None
    expected: bool


@dataclass(frozen=True)
class Choice:
    """A row of the data with what the model said.

    Attributes:
        id, condition, context, right_context, target, good, expected: the row's own columns; good
            is None where rows are not compared.
        log_prob: of the target, in nats; None where unscorable or unknown.
        rank: of the target; None where unknown.
        words, word_log_probs: the most probable words at the blank, and what is known of them.
        cased: whether words are compared with `expected` exactly.
    """

    id: str
    condition: str
    context: str
    right_context: str
    target: str
    good: bool | None
    expected: tuple[str, ...]
    log_prob: float | None
    rank: int | None
    words: Sequence[str]
    word_log_probs: Sequence[float] | None
    cased: bool

    @cached_property
    def top(self) -> tuple[TopWord, ...]:
        """The most probable words; agreement has a million of them, so they are made late."""
        fold = str if self.cased else str.casefold
        wanted = {fold(word) for word in self.expected}
        chances: Sequence[float | None] = self.word_log_probs or [None] * len(self.words)
        return tuple(
            TopWord(word, None if p is None else math.exp(p), fold(word) in wanted)
            for word, p in zip(self.words, chances, strict=True)
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
    def sentence(self) -> tuple[str, str]:
        """What is left and right of the blank: rows that share it were asked once."""
        return self.context, self.right_context


@dataclass(frozen=True)
class Item:
    """A contrast: what is compared, and how it came out; or a row that is not compared.

    Attributes:
        id: of the contrast, or of the row.
        choices: its rows, the good one first.
        prefers_good: whether the good row is the most probable; None where it cannot be said.
        by_threshold: the same by more than the run's threshold.
        levels: break-down -> the level it belongs to.
    """

    id: str
    choices: tuple[Choice, ...]
    prefers_good: bool | None
    by_threshold: bool | None
    levels: Mapping[str, str] = field(default_factory=dict)

    @property
    def good(self) -> float | None:
        """Probability of the good completion; None where unknown, or cut off by a limit."""
        return next((choice.probability for choice in self.choices if choice.good), None)

    @property
    def bad(self) -> float | None:
        """Probability of the most probable bad completion; None where one is unknown."""
        values = [choice.probability for choice in self.choices if choice.good is False]
        known = [value for value in values if value is not None]
        return max(known) if known and len(known) == len(values) else None

    @property
    def difference(self) -> float | None:
        """`good` less `bad`."""
        return None if self.good is None or self.bad is None else self.good - self.bad

    @property
    def is_compared(self) -> bool:
        """Whether the item is a contrast, and not a row that stands alone."""
        return self.choices[0].good is not None

    @property
    def order(self) -> float | None:
        """Where it stands between the worst and the best: by difference, or by probability."""
        return self.difference if self.is_compared else self.choices[0].probability


def protocol(run: Run) -> Protocol:
    """Returns the part of a run's protocol that scores depend on."""
    knobs = run.results["protocol"]
    return Protocol(k=tuple(knobs["k"]), threshold=knobs["threshold"])


def run_scores(run: Run, task: str, setting: str = "none", shuffle: int = 0) -> dict[str, Scores]:
    """Returns measure -> its per-item scores, computed from the run's predictions."""
    model = run.results["model"]
    found = evaluation.scores(
        run.stimuli[task],
        run.predictions[task][setting, shuffle],
        protocol(run),
        cased=model["cased"],
        kind=model["kind"],
    )
    return {scores.name: scores for scores in found}


def as_asked(run: Run, task: str, setting: str) -> Stimuli:
    """Returns the rows of a task with the contexts that the model saw, in the first run."""
    rows = run.stimuli[task]
    return rows if setting == "none" else perturb(rows, setting, 0, run.results["protocol"]["seed"])


def items(run: Run, task: str, setting: str = "none") -> list[Item]:
    """Returns all contrasts of a task in the order of the data, as they were asked in a setting.

    Where no rows are compared, each row is an item.
    """
    rows, said = as_asked(run, task, setting).columns(), run.predictions[task][setting, 0]
    knobs = protocol(run)
    scores = run_scores(run, task, setting)
    plain = verdicts(scores.get("sensitivity"))
    strict = verdicts(scores.get(f"sensitivity@{knobs.threshold:g}"))
    levels = levels_of(scores.get("sensitivity", scores.get("surprisal")))
    grouped: dict[str, list[Choice]] = {}
    for contrast, choice in zip(
        rows.get("contrast", rows["id"]),
        choices(rows, said, run.results["model"]["cased"]),
        strict=True,
    ):
        grouped.setdefault(contrast, []).append(choice)
    return [
        Item(
            contrast,
            tuple(sorted(group, key=lambda choice: not choice.good)),
            plain.get(contrast),
            strict.get(contrast),
            levels.get(contrast, {}),
        )
        for contrast, group in grouped.items()
    ]


def choices(rows: Mapping[str, Sequence[Any]], said: Predictions, cased: bool) -> Iterable[Choice]:
    """Yields the rows with what a model said of them."""
    for i, row in enumerate(rows["id"]):
        yield Choice(
            id=row,
            condition=rows["condition"][i],
            context=rows["context"][i],
            right_context=rows["right_context"][i],
            target=rows["target"][i],
            good=rows["good"][i] if "good" in rows else None,
            expected=tuple(rows["expected"][i]),
            log_prob=said.log_prob[i],
            rank=said.rank[i],
            words=said.top_words[i] or (),
            word_log_probs=said.top_log_probs[i],
            cased=cased,
        )


def verdicts(scores: Scores | None) -> dict[str, bool]:
    """Returns item -> verdict of a proportion; items that were left out are not in it."""
    if scores is None:
        return {}
    return dict(zip(scores.items, (scores.values == 1).tolist(), strict=True))


def levels_of(scores: Scores | None) -> dict[str, dict[str, str]]:
    """Returns item -> break-down -> level."""
    found: dict[str, dict[str, str]] = {}
    for by, levels in scores.by.items() if scores is not None else ():
        for level, part in levels.items():
            for item in part.items:
                found.setdefault(item, {})[by] = level
    return found


def sample(found: Sequence[Item]) -> list[Item]:
    """Returns all items, or of too many some of each combination of levels.

    They are spread evenly over the order of p(good) - p(bad), the worst and the best included, so
    that the sample shows what the model does well and what badly; it is no sample to compute from.
    """
    if len(found) <= MOST:
        return list(found)
    groups: dict[tuple[tuple[str, str], ...], list[Item]] = {}
    for item in found:
        groups.setdefault(tuple(sorted(item.levels.items())), []).append(item)
    of_each = min(OF_EACH, max(2, MOST // len(groups))) if len(groups) > 1 else MOST
    return [item for group in groups.values() for item in _spread(group, of_each)]


def _spread(group: Sequence[Item], n: int) -> list[Item]:
    """n items, evenly spread over their order."""
    known = sorted((i for i in group if i.order is not None), key=lambda i: i.order or 0.0)
    if len(known) <= n:
        return known
    return [known[round(place * (len(known) - 1) / (n - 1))] for place in range(n)]
