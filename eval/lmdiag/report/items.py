"""The items of runs: every contrast with its contexts, top words and probabilities.

Where rows are sentences, an item has their words, or the regions of its conditions, in bits.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag.measures import EMPTY_REGION_BITS, fold_word, sentence_parts
from lmdiag.measures.scores import number_text
from lmdiag.perturb import NONE, perturb
from lmdiag.report import numbers
from lmdiag.report.labels import run_labels
from lmdiag.results.items import measure_columns
from lmdiag.text import suggest
from lmdiag.types import GAP_SPACES, BadInput, Fold, Query, WordSpan

if TYPE_CHECKING:
    from lmdiag.measures import Columns, Scores
    from lmdiag.protocol import Predictions
    from lmdiag.results import Run

_SHOWN_OTHERWISE = ("accuracy", "sensitivity", "suite_accuracy", "surprisal", "rank")
"""Measures of which the list of items shows what they are computed from."""

MAX_LISTED = 600
"""Number of contrasts of a task that a page lists in full; of more it shows a sample."""


class Part(NamedTuple):
    """A word of a sentence, or a region, whose `name` begins with its number; "" for a word.

    `start` is in characters; `bits` is None without a probability and for an empty region.
    """

    start: int
    text: str
    bits: float | None
    name: str = ""

    @property
    def shade(self) -> int:
        """The shade of its cell, 0 to 8: a step is 2 bits of a word, or 4 bits of a region."""
        return min(8, int((self.bits or 0) / (4 if self.name else 2)))


class Choice(NamedTuple):
    """A row of the data with the answer of the model: a word at a blank, or a whole sentence.

    Attributes:
        id, context, right_context, gap_spaces, target, good, expected, condition, regions: columns
            of the row; `good` is None where rows are not compared. Of a sentence, `context` is all
            of it.
        has_blank, is_option: whether the row is a word at a blank, or an option of a forced choice.
        log_prob, rank: of the target, sentence or option, nats; None where unscorable or unknown.
        words, word_log_probs: the most probable words at the blank, and what is known of them.
        folds: differences between words that do not count, see `lmdiag.measures.fold_word`.
        spans: the words of a sentence, empty where not known; None for blanks and options.
        n_tokens: of the words of a sentence that have a probability.
        empty_bits: surprisal of a region without words.
    """

    id: str
    context: str
    right_context: str = ""
    gap_spaces: str = ""
    target: str = ""
    good: bool | None = None
    expected: Sequence[str] = ()
    condition: str = ""
    has_blank: bool = True
    is_option: bool = False
    log_prob: float | None = None
    rank: int | None = None
    words: Sequence[str] | None = None
    word_log_probs: Sequence[float] | None = None
    folds: Collection[Fold] = ()
    spans: Sequence[WordSpan] | None = None
    n_tokens: int | None = None
    regions: Sequence[Mapping[str, Any]] = ()
    empty_bits: float = math.nan

    @property
    def is_sentence(self) -> bool:
        """Whether the row is a sentence that was read word by word."""
        return self.spans is not None

    @property
    def label(self) -> str:
        """What it is among the sentences of its item."""
        if self.good is None:
            return self.condition or "sentence"
        return "good" if self.good else "bad"

    @property
    def sentence(self) -> str:
        """The context with its blank, or the whole sentence."""
        if not self.has_blank:
            return self.context
        query = Query(self.context, self.right_context, *GAP_SPACES[self.gap_spaces])
        before, after = query.around(self.target)
        return f"{before}____{after}"

    @property
    def probability(self) -> float | None:
        """Of the target; None where unscorable or unknown."""
        return None if self.log_prob is None else math.exp(self.log_prob)

    @property
    def bits(self) -> float | None:
        """Surprisal of the target or sentence; None where unscorable or unknown."""
        return None if self.log_prob is None else -self.log_prob / math.log(2)

    @property
    def value(self) -> float | None:
        """What rows are compared by: probability or share; of a sentence, its logarithm in bits."""
        bits = self.bits
        return -bits if self.is_sentence and bits is not None else self.probability

    @property
    def top(self) -> list[tuple[str, float | None, bool]]:
        """The most probable words: word, probability if it is known, whether it is expected."""
        expected = {fold_word(word, self.folds) for word in self.expected}
        words = self.words or ()
        log_probs: Sequence[float | None] = self.word_log_probs or [None] * len(words)
        return [
            (word, None if p is None else math.exp(p), fold_word(word, self.folds) in expected)
            for word, p in zip(words, log_probs, strict=True)
        ]

    @property
    def place(self) -> int | None:
        """Place of the first expected word in the top list, from 1; None where there is none."""
        return next((i for i, word in enumerate(self.top, start=1) if word[2]), None)

    @property
    def parts(self) -> list[Part]:
        """The words of the sentence, or its regions."""
        regions = self.regions or None
        parts = []
        for part in sentence_parts(self.context, self.spans, regions, empty_bits=self.empty_bits):
            name = f"{part.number} {part.name}".rstrip() if regions else ""
            bits = None if math.isnan(part.bits) else part.bits
            parts.append(Part(part.start, self.context[part.start : part.end], bits, name))
        return parts

    @property
    def said(self) -> list[str]:
        """The most probable words, the parts of a sentence with surprisals, or the share."""
        if self.is_option:
            return [numbers.probability(self.probability)]
        if self.is_sentence:
            return [f"{part.text} {numbers.bits(part.bits)}" for part in self.parts]
        return list(self.words or ())


class Item(NamedTuple):
    """A contrast and its outcome, an item of a suite, or a row that is not compared.

    Attributes:
        id: of the contrast, the item or the row.
        choices: its rows, the good one first.
        levels: break-down -> the level it belongs to.
        prefers_good: whether the good row is the most probable; None where this is not known.
        by_threshold: the same by more than the run's threshold.
        predictions: of an item of a suite, each a formula, and whether it holds, None if unknown.
        measures: further measure -> its value for the item, of several rows for the first.
    """

    id: str
    choices: Sequence[Choice]
    levels: Mapping[str, str]
    prefers_good: bool | None = None
    by_threshold: bool | None = None
    predictions: Sequence[tuple[str, bool | None]] = ()
    measures: Mapping[str, float] = MappingProxyType({})

    @property
    def is_compared(self) -> bool:
        """Whether the item is a contrast, and not a single row."""
        return self.choices[0].good is not None

    @property
    def good(self) -> float | None:
        """Value of the good row (see `Choice`); None where unknown or not in the sample."""
        return next((choice.value for choice in self.choices if choice.good), None)

    @property
    def difference(self) -> float | None:
        """`good` minus the value of the most probable bad row; None where a value is unknown."""
        good = self.good
        bad = [choice.value for choice in self.choices if choice.good is False]
        known = [value for value in bad if value is not None]
        return None if good is None or not bad or len(known) < len(bad) else good - max(known)

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
        choice = self.choices[0]
        gap = self.difference
        if self.predictions:
            return self._verdict_on_predictions()
        if not self.is_compared:
            digits = 1 if choice.is_sentence else 2
            return (
                "plain",
                "unscorable" if choice.bits is None else f"{choice.bits:.{digits}f} bits",
            )
        if self.prefers_good is None or gap is None:
            return "unknown", "cannot be compared"
        size = numbers.probability(abs(gap))
        if choice.is_sentence:
            size = f"{numbers.bits(abs(gap))} bits"
        if not self.prefers_good:
            return "wrong", f"bad preferred by {size}" if gap else "neither preferred"
        if self.by_threshold is False:
            return "narrow", f"good preferred by only {size}"
        return "right", f"good preferred by {size}"

    def _verdict_on_predictions(self) -> tuple[str, str]:
        n = len(self.predictions)
        held = self.held
        if held is None:
            return "unknown", "cannot be evaluated"
        kind = "right" if held == 1 else "narrow" if held else "wrong"
        if n == 1:
            return kind, f"prediction {'holds' if held else 'does not hold'}"
        return kind, f"{round(held * n)} of {n} predictions hold"


Chosen = tuple[Choice, Mapping[str, Choice | None]]
"""A row with a chosen context, and name of each model -> the row with its answer, if it has it."""


# ---- from runs -----------------------------------------------------------------------------------


def items(run: Run, task: str, setting: str = NONE) -> list[Item]:
    """Returns all contrasts of a task in the order of the data, with the contexts of a setting.

    Where no rows are compared, each item of a suite is an item, and otherwise each row.
    """
    protocol = run.results.protocol
    stimuli = run.stimuli[task]
    if setting != NONE:
        stimuli = perturb(stimuli, setting, 0, protocol.seed)
    rows = stimuli.columns()
    diagnostic = stimuli.diagnostic
    answers = run.predictions[task][setting, 0]
    choices = _choices(rows, answers, run.results.model.word_folds, stimuli.form)
    owners = rows.get("item" if diagnostic.has_regions else "contrast", rows["id"])
    groups: dict[str, list[int]] = {}
    for i, name in enumerate(owners):
        groups.setdefault(name, []).append(i)
    scores = run.scores_of(task, setting)
    prefers_good = _verdicts(scores.get("sensitivity"))
    by_threshold = _verdicts(scores.get(f"sensitivity@{number_text(protocol.threshold)}"))
    holds = _verdicts(scores.get("prediction_accuracy"))
    levels = diagnostic.levels(rows)
    formulas = rows.get("formulas", [()] * len(owners))
    further = {
        name: values
        for name, values in measure_columns(stimuli, scores)
        if name.partition("@")[0] not in _SHOWN_OTHERWISE
    }
    found = []
    for name, group in groups.items():
        row = group[0]
        numbered = enumerate(formulas[row], start=1)
        defined = {x: [of[i] for i in group if not math.isnan(of[i])] for x, of in further.items()}
        item = Item(
            name,
            sorted((choices[i] for i in group), key=lambda choice: not choice.good),
            {by: level for by, of in levels.items() if (level := of[row]) is not None},
            prefers_good.get(name),
            by_threshold.get(name),
            [(formula, holds.get(f"{name}/{number}")) for number, formula in numbered],
            {measure: values[0] for measure, values in defined.items() if values},
        )
        found.append(item)
    return found


def _verdicts(scores: Scores | None) -> dict[str, bool]:
    """Item -> whether its value is 1; without items that were left out."""
    if scores is None:
        return {}
    return dict(zip(scores.items.tolist(), (scores.values == 1).tolist(), strict=True))


def _choices(
    rows: Columns, answers: Predictions, folds: Collection[Fold], form: str
) -> list[Choice]:
    """The rows with their answers."""
    n = len(rows["id"])
    shared = ("id", "context", "right_context", "gap_spaces", "target", "good", "condition")
    columns: dict[str, Sequence[Any]] = {name: rows[name] for name in shared if name in rows}
    columns["log_prob"] = answers.log_prob
    if "sentence" in rows:
        columns |= {"context": rows["sentence"], "has_blank": [False] * n}
    if any(answers.labels):
        columns["is_option"] = [True] * n
    elif "sentence" in rows:
        columns["regions"] = [regions or () for regions in rows.get("regions", [None] * n)]
        columns["spans"] = [words or () for words in answers.words or [None] * n]
        columns["n_tokens"] = answers.n_tokens
        columns["empty_bits"] = [EMPTY_REGION_BITS if form == "suites" else math.nan] * n
    else:
        columns |= {"expected": rows["expected"], "rank": answers.rank}
        columns |= {"words": answers.top_words, "word_log_probs": answers.top_log_probs}
    records = zip(*columns.values(), strict=True)
    return [Choice(folds=folds, **dict(zip(columns, values, strict=True))) for values in records]


def choose(runs: Sequence[Run], ids: Sequence[str]) -> list[Chosen]:
    """Returns the distinct contexts of chosen items, in the order in which they were named.

    The ids are those of rows (`neg136-simp-4-TA`) or of contrasts (`role88-68`).

    Raises:
        BadInput: no run has an item of that name.
    """
    by_id: dict[str, dict[str, dict[str, Choice]]] = {}  # id -> sentence -> model -> row
    models = run_labels([run.results for run in runs])
    for model, run in zip(models, runs, strict=True):
        for item in (item for task in run.stimuli for item in items(run, task)):
            for choice in item.choices:
                for name in (item.id, choice.id):
                    by_id.setdefault(name, {}).setdefault(choice.sentence, {})[model] = choice
    chosen: dict[str, dict[str, Choice]] = {}
    for name in ids:
        if name not in by_id:
            where = f"{suggest(name, by_id)} in {' or '.join(str(run.path) for run in runs)}"
            raise BadInput(f"no item {name!r}{where}: its ids are in predictions.parquet")
        for sentence, answers in by_id[name].items():
            chosen.setdefault(sentence, {}).update(answers)
    return [
        (next(iter(answers.values())), {model: answers.get(model) for model in models})
        for answers in chosen.values()
    ]
