"""The items of a run: every contrast with its contexts, top words and probabilities.

Where rows are sentences, an item has their words, or the regions of its conditions, in bits.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag import evaluation
from lmdiag.measures import part_bits
from lmdiag.measures.scores import number_text
from lmdiag.perturb import NONE, perturb
from lmdiag.report import numbers
from lmdiag.types import WordSpan

if TYPE_CHECKING:
    from lmdiag.measures import Columns, Scores
    from lmdiag.protocol import Predictions
    from lmdiag.results import Run

MAX_LISTED = 600
"""Number of contrasts of a task that a page lists in full; of more it shows a sample."""


class Part(NamedTuple):
    """A word of a sentence, or a region of it.

    Attributes:
        start: its position in the sentence, in characters.
        text: its own; "" for an empty region.
        bits: its surprisal; None without a probability and for an empty region.
        name: number and name of a region; "" for a word.
    """

    start: int
    text: str
    bits: float | None
    name: str = ""


class Choice(NamedTuple):
    """A row of the data with the answer of the model: a word at a blank, or a whole sentence.

    Attributes:
        id, context, right_context, target, good, expected, condition: columns of the row; `good`
            is None where rows are not compared. Of a sentence, `context` is all and `target` "".
        log_prob: of the target or sentence, in nats; None where unscorable or unknown.
        rank: of the target; None where unknown.
        words, word_log_probs: the most probable words at the blank, and what is known of them.
        cased: whether words are compared with `expected` exactly.
        spans: the words of a sentence; None where the row has a blank, empty where not known.
        n_tokens: of the words of a sentence that have a probability.
        regions: of a sentence of a suite, see `docs/specification.md`.
    """

    id: str
    context: str
    right_context: str = ""
    target: str = ""
    good: bool | None = None
    expected: Sequence[str] = ()
    condition: str = ""
    log_prob: float | None = None
    rank: int | None = None
    words: Sequence[str] | None = None
    word_log_probs: Sequence[float] | None = None
    cased: bool = True
    spans: Sequence[WordSpan] | None = None
    n_tokens: int | None = None
    regions: Sequence[Mapping[str, Any]] = ()

    @property
    def is_sentence(self) -> bool:
        """Whether the row is a sentence, and not a word at a blank."""
        return self.spans is not None

    @property
    def sentence(self) -> str:
        """The context with its blank, or the whole sentence."""
        blank = "" if self.is_sentence else f" ____ {self.right_context}"
        return f"{self.context}{blank}".rstrip()

    @property
    def probability(self) -> float | None:
        """Of the target; None where unscorable or unknown."""
        return None if self.log_prob is None else math.exp(self.log_prob)

    @property
    def bits(self) -> float | None:
        """Surprisal of the target or sentence; None where unscorable or unknown."""
        return _surprisal(self.log_prob)

    @property
    def value(self) -> float | None:
        """What rows are compared by: the probability, or the log-probability of a sentence in bits.

        None where unscorable or unknown.
        """
        if not self.is_sentence:
            return self.probability
        return None if self.bits is None else -self.bits

    @property
    def top(self) -> list[tuple[str, float | None, bool]]:
        """The most probable words: word, probability if it is known, whether it is expected."""
        fold = str if self.cased else str.casefold
        expected = {fold(word) for word in self.expected}
        words = self.words or ()
        log_probs: Sequence[float | None] = self.word_log_probs or [None] * len(words)
        return [
            (word, None if p is None else math.exp(p), fold(word) in expected)
            for word, p in zip(words, log_probs, strict=True)
        ]

    @property
    def place(self) -> int | None:
        """Place of the first expected word in the top list, from 1; None where there is none."""
        places = (i for i, (_, _, is_expected) in enumerate(self.top, start=1) if is_expected)
        return next(places, None)

    @property
    def parts(self) -> list[Part]:
        """The words of the sentence, or its regions."""
        if not self.regions:
            spans = ((s.start, s.end, s.log_prob if s.n_tokens else None) for s in self.spans or ())
            return [Part(a, self.context[a:b], _surprisal(p)) for a, b, p in spans]
        parts = []
        for region in self.regions:
            start, end = region["start"], region["end"]
            bits = part_bits(self.spans, start, end) if start < end else math.nan
            name = f"{region['number']} {region['name']}".rstrip()
            known = None if math.isnan(bits) else bits
            parts.append(Part(start, self.context[start:end], known, name))
        return parts

    @property
    def said(self) -> list[str]:
        """The most probable words, or the parts of the sentence with their surprisals."""
        if self.is_sentence:
            return [f"{part.text} {numbers.bits(part.bits)}" for part in self.parts]
        return [word for word, _, _ in self.top]


def _surprisal(log_prob: float | None) -> float | None:
    return None if log_prob is None else -log_prob / math.log(2)


class Item(NamedTuple):
    """A contrast and its outcome, an item of a suite, or a row that is not compared.

    Attributes:
        id: of the contrast, the item or the row.
        choices: its rows, the good one first.
        levels: break-down -> the level it belongs to.
        prefers_good: whether the good row is the most probable; None where this is not known.
        by_threshold: the same by more than the run's threshold.
        predictions: of an item of a suite, each a formula over the surprisals of regions, and
            whether it holds; None where a surprisal is not known.
    """

    id: str
    choices: Sequence[Choice]
    levels: Mapping[str, str]
    prefers_good: bool | None = None
    by_threshold: bool | None = None
    predictions: Sequence[tuple[str, bool | None]] = ()

    @property
    def is_compared(self) -> bool:
        """Whether the item is a contrast, and not a single row."""
        return self.choices[0].good is not None

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
    def held(self) -> float | None:
        """Share of the predictions that hold; None where one is not known or there are none."""
        holds = [holds for _, holds in self.predictions]
        return sum(map(bool, holds)) / len(holds) if holds and None not in holds else None

    @property
    def order(self) -> float | None:
        """Where it stands between the worst and the best.

        By difference, by the share of its predictions that hold, or by the value of its row.
        """
        if self.predictions:
            return self.held
        return self.difference if self.is_compared else self.choices[0].value

    @property
    def verdict(self) -> tuple[str, str]:
        """The kind of its outcome, and the outcome in words.

        The kind is `right`, `narrow` (good preferred, but not by the threshold; some predictions
        hold, but not all), `wrong`, `unknown`, or `plain` where nothing is compared.
        """
        first = self.choices[0]
        if self.predictions:
            n, held = len(self.predictions), self.held
            if held is None:
                return "unknown", "cannot be evaluated"
            kind = "right" if held == 1 else "narrow" if held else "wrong"
            text = f"{round(held * n)} of {n} predictions hold"
            return kind, text if n > 1 else f"prediction {'holds' if held else 'does not hold'}"
        if not self.is_compared:
            digits = 1 if first.is_sentence else 2
            return "plain", "unscorable" if first.bits is None else f"{first.bits:.{digits}f} bits"
        if self.prefers_good is None or self.difference is None:
            return "unknown", "cannot be compared"
        gap = abs(self.difference)
        size = f"{numbers.bits(gap)} bits" if first.is_sentence else numbers.probability(gap)
        if not self.prefers_good:
            return "wrong", f"bad preferred by {size}" if gap else "neither preferred"
        if self.by_threshold is False:
            return "narrow", f"good preferred by only {size}"
        return "right", f"good preferred by {size}"


# ---- from runs -----------------------------------------------------------------------------------


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
    rows, diagnostic = stimuli.columns(), stimuli.diagnostic
    choices = _choices(rows, run.predictions[task][setting, 0], run.results.model.cased)
    owners = rows.get("item" if diagnostic.has_regions else "contrast", rows["id"])
    groups: dict[str, list[Choice]] = {}
    first: dict[str, int] = {}
    for i, (name, choice) in enumerate(zip(owners, choices, strict=True)):
        groups.setdefault(name, []).append(choice)
        first.setdefault(name, i)
    labels = diagnostic.levels(rows)
    scores = run_scores(run, task, setting)

    def verdicts(measure: str) -> dict[str, bool]:
        """Item -> whether its value is 1; without the items that were left out."""
        if (of := scores.get(measure)) is None:
            return {}
        return dict(zip(of.items.tolist(), (of.values == 1).tolist(), strict=True))

    plain, holds = verdicts("sensitivity"), verdicts("prediction_accuracy")
    strict = verdicts(f"sensitivity@{number_text(protocol.threshold)}")
    formulas = rows.get("formulas", [()] * len(rows["id"]))
    return [
        Item(
            name,
            sorted(group, key=lambda choice: not choice.good),
            {by: x for by, of in labels.items() if (x := of[first[name]]) is not None},
            plain.get(name),
            strict.get(name),
            [
                (formula, holds.get(f"{name}/{number}"))
                for number, formula in enumerate(formulas[first[name]], start=1)
            ],
        )
        for name, group in groups.items()
    ]


def _choices(rows: Columns, answers: Predictions, cased: bool) -> Iterator[Choice]:
    """The rows with their answers."""
    nothing = [None] * len(rows["id"])
    if "sentence" in rows:
        columns = {name: rows[name] for name in ("id", "condition")}
        regions = [of or () for of in rows.get("regions", nothing)]
        spans = [words or () for words in answers.words or nothing]
        columns |= {"context": rows["sentence"], "regions": regions, "spans": spans}
        columns |= {"n_tokens": answers.n_tokens}
    else:
        names = ("id", "context", "right_context", "target", "expected")
        columns = {name: rows[name] for name in names} | {"rank": answers.rank}
        columns |= {"words": answers.top_words, "word_log_probs": answers.top_log_probs}
    columns |= {"good": rows.get("good", nothing), "log_prob": answers.log_prob}
    for values in zip(*columns.values(), strict=True):
        yield Choice(cased=cased, **dict(zip(columns, values, strict=True)))
