"""The items of a run: every contrast with its contexts, top words and probabilities.

Where rows are sentences, an item has their words, or the regions of its conditions, in bits.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from lmdiag import evaluation
from lmdiag.measures.scores import number_text
from lmdiag.perturb import NONE, perturb
from lmdiag.report import choices
from lmdiag.report.choices import Choice

if TYPE_CHECKING:
    from lmdiag.measures import Scores
    from lmdiag.results import Run

MAX_LISTED = 600
"""Number of contrasts of a task that a page lists in full; of more it shows a sample."""

_MOST_PARTS = 16_000
"""Words or regions that a page lists, over all items: of long texts it lists fewer items."""

_OF_EACH = 12
"""Contrasts per combination of levels in a sample, at most."""


class Prediction(NamedTuple):
    """A prediction of a suite for one of its items.

    Attributes:
        number: among those of the suite, from 1.
        formula: over the surprisals of regions.
        holds: whether it is true of the item; None where a surprisal is not known.
    """

    number: int
    formula: str
    holds: bool | None


class Item(NamedTuple):
    """A contrast and its outcome, an item of a suite, or a row that is not compared.

    Attributes:
        id: of the contrast, the item or the row.
        choices: its rows, the good one first.
        levels: break-down -> the level it belongs to.
        prefers_good: whether the good row is the most probable; None where this is not known.
        by_threshold: the same by more than the run's threshold.
        predictions: of an item of a suite.
    """

    id: str
    choices: Sequence[Choice]
    levels: Mapping[str, str]
    prefers_good: bool | None = None
    by_threshold: bool | None = None
    predictions: Sequence[Prediction] = ()

    @property
    def good(self) -> float | None:
        """Value of the good row (see `Choice`); None where unknown or not in the sample."""
        return next((choice.value for choice in self.choices if choice.good), None)

    @property
    def bad(self) -> float | None:
        """Value of the most probable bad row; None where one is unknown."""
        values = [choice.value for choice in self.choices if choice.good is False]
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
        """Where it stands between the worst and the best.

        By difference, by the share of its predictions that hold, or by the value of its row.
        """
        if self.predictions:
            return self.held
        return self.difference if self.is_compared else self.choices[0].value

    @property
    def held(self) -> float | None:
        """Share of the predictions that hold; None where one is not known or there are none."""
        holds = [each.holds for each in self.predictions]
        return sum(map(bool, holds)) / len(holds) if holds and None not in holds else None


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

    Where no rows are compared, each item of a suite is an item, and otherwise each row.
    """
    protocol, stimuli = run.results.protocol, run.stimuli[task]
    if setting != NONE:
        stimuli = perturb(stimuli, setting, 0, protocol.seed)
    rows, said = stimuli.columns(), run.predictions[task][setting, 0]
    diagnostic = stimuli.diagnostic
    is_sentence = diagnostic.asks == "sentence"
    read = choices.sentence_choices if is_sentence else choices.blank_choices
    groups: dict[str, list[Choice]] = {}
    first: dict[str, int] = {}
    owner = rows.get("item" if diagnostic.has_regions else "contrast", rows["id"])
    answered = read(rows, said, run.results.model.cased)
    for i, (name, choice) in enumerate(zip(owner, answered, strict=True)):
        groups.setdefault(name, []).append(choice)
        first.setdefault(name, i)
    labels = diagnostic.levels(rows)
    scores = run_scores(run, task, setting)
    plain = _verdicts(scores.get("sensitivity"))
    strict = _verdicts(scores.get(f"sensitivity@{number_text(protocol.threshold)}"))
    formulas = rows.get("formulas", [()] * len(rows["id"]))
    holds = _verdicts(scores.get("prediction_accuracy"))
    return [
        Item(
            name,
            sorted(group, key=lambda choice: not choice.good),
            {by: x for by, of in labels.items() if (x := of[first[name]]) is not None},
            plain.get(name),
            strict.get(name),
            [
                Prediction(number, formula, holds.get(f"{name}/{number}"))
                for number, formula in enumerate(formulas[first[name]], start=1)
            ],
        )
        for name, group in groups.items()
    ]


def _verdicts(scores: Scores | None) -> dict[str, bool]:
    """Item -> whether its value is 1; without the items that were left out."""
    if scores is None:
        return {}
    return dict(zip(scores.items.tolist(), (scores.values == 1).tolist(), strict=True))


def representative(items: Sequence[Item]) -> list[Item]:
    """Returns all items, or of too many some of each combination of levels.

    They are spread evenly over their `order`, the worst and the best included, to show what the
    model does well and what badly; figures cannot be computed from them.
    """
    most = _most_listed(items)
    if len(items) <= most:
        return list(items)
    groups: dict[tuple[tuple[str, str], ...], list[Item]] = {}
    for item in items:
        groups.setdefault(tuple(sorted(item.levels.items())), []).append(item)
    of_each = min(_OF_EACH, max(2, most // len(groups))) if len(groups) > 1 else most
    return [item for group in groups.values() for item in _spread(group, of_each)]


def _most_listed(items: Sequence[Item]) -> int:
    """How many of these items a page lists, at most."""
    parts = sum(len(c.regions or c.spans or ()) for item in items for c in item.choices)
    return min(MAX_LISTED, max(2, _MOST_PARTS * len(items) // parts)) if parts else MAX_LISTED


def _spread(group: Sequence[Item], n: int) -> list[Item]:
    """n items, evenly spread over their order; those without a place in it if none has one."""
    ordered = sorted(
        (order, i) for i, item in enumerate(group) if (order := item.order) is not None
    )
    known = [group[i] for _, i in ordered] or list(group)
    if len(known) <= n:
        return known
    return [known[round(place * (len(known) - 1) / (n - 1))] for place in range(n)]
