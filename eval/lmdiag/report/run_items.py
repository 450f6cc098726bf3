"""The items of a run as pages and charts show them: its table of items, by what is compared.

The rows are those of `lmdiag.results.item_rows.item_rows`, the table that `lmdiag items` writes,
with their top words. A contrast of rows, an item of a suite, or a row that is not compared is an
item.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from pandas import DataFrame, Series

from lmdiag.measures import critical_region, fold_word
from lmdiag.measures.scores import TIE, number_text
from lmdiag.report import numbers
from lmdiag.report.labels import run_labels
from lmdiag.results.item_rows import Per, item_rows, measure_columns, part_rows
from lmdiag.stimuli.perturbations import NONE
from lmdiag.text import first_few, suggest
from lmdiag.types import GAP_SPACES, BadInput, Fold, Query

if TYPE_CHECKING:
    from lmdiag.asking.protocol import Predictions
    from lmdiag.measures import Columns, Scores
    from lmdiag.results import Run
    from lmdiag.stimuli import Stimuli

_SHOWN_OTHERWISE = (
    "accuracy", "sensitivity", "suite_accuracy", "surprisal", "critical_surprisal", "rank",
)  # fmt: skip
"""Measures of which the list of items shows what they are computed from."""

MAX_LISTED = 600
"""Number of contrasts of a task that a page lists in full; of more it shows a sample."""

_DARKEST = 8
"""The largest shade of a cell."""

TopWord = tuple[str, float | None, bool]
"""A word at a blank, its probability if it is known, and whether it is expected."""

Prediction = tuple[str, bool | None]
"""A formula of a suite, and whether it holds for an item; None if this is not known."""


@dataclass(frozen=True)
class RunItems:
    """The items of a task in one setting of a run.

    Attributes:
        asks: "word" for words at blanks, "choice" for options, "sentence" for whole sentences.
        rows: a row of the data each, those of an item together and its good one first; the index is
            the position in the data. Columns: `item` (id of what it belongs to), `id`, `context`,
            `right_context`, `target` and `condition` of the data; `item_name` (what a reader calls
            the item, "" for its id); `sentence` (with its blank); `response` (bits of the critical
            word, without one `surprisal`);
            `good` (None where rows are not compared); `label` (good, bad, or the condition);
            `expected` (words); `surprisal` (bits), `probability`, `rank` and `n_tokens`; `value`
            (what rows are compared by: probability or share, of sentences -surprisal); `top` (most
            probable words: word, probability or None, whether it is expected); `place` (of the
            first expected word among them, from 1).
        outcomes: an item each, by id. Columns: `is_compared`; `good` (value of the good row);
            `difference` (`good` minus the value of the most probable bad row; NaN where a value is
            unknown); `good_row` and `bad_row` (of these two, in `rows`); `prefers_good`, and
            `by_threshold` for the same by more than the threshold of the run (1, 0, or NaN where
            not known); `response` (of its first row); `predictions` of suites (formula, and
            whether it holds, None if unknown); `held` (share of the predictions that hold); `order`
            (where it stands between the worst and the best: `held`, `difference`, or the value of
            its row).
        levels: an item each, by id; a column per break-down.
        measures: an item each, by id; a column per further measure, of several rows for the first.
        stimuli, predictions: what the rows are of.
    """

    asks: str
    rows: DataFrame
    outcomes: DataFrame
    levels: DataFrame
    measures: DataFrame
    stimuli: Stimuli
    predictions: Predictions

    @property
    def is_compared(self) -> bool:
        """Whether items are contrasts, and not single rows."""
        return bool(self.outcomes["is_compared"].any())

    @property
    def has_predictions(self) -> bool:
        """Whether items are those of suites with predictions."""
        return bool(self.outcomes["predictions"].map(len).any())

    @property
    def n_parts(self) -> int:
        """Number of words or regions of all sentences."""
        if self.asks != "sentence":
            return 0
        regions = None if self.has_critical_word else self.stimuli.regions
        return sum(map(len, filter(None, regions or self.predictions.words)))

    @property
    def has_critical_word(self) -> bool:
        """Whether sentences have a critical word, whose surprisal is their response."""
        return _has_critical_word(self.stimuli)

    def of_items(self, names: Collection[str]) -> RunItems:
        """Returns some of the items."""
        return replace(
            self,
            rows=self.rows[self.rows["item"].isin(names)],
            outcomes=self.outcomes[self.outcomes.index.isin(names)],
            levels=self.levels[self.levels.index.isin(names)],
            measures=self.measures[self.measures.index.isin(names)],
        )

    def parts(self) -> DataFrame:
        """Returns the words of sentences, or their regions.

        Sentences with a critical word have their words. Columns: `row`, `start` (characters),
        `text`, `surprisal` (bits, NaN without a probability and for an empty region), `name`
        (number and name of a region, "" of a word), `is_critical` (whether it begins in the
        critical region), and `shade` of its cell, 0 to 8: a step is 2 bits of a word, or 4 bits of
        a region.
        """
        has_regions = self.stimuli.regions is not None and not self.has_critical_word
        per: Per = "region" if has_regions else "word"
        table = part_rows(self.stimuli, self.predictions, per, self.rows.index)
        names = table["number"].astype(str) + " " + table["name"]
        bits = table["surprisal"].fillna(0.0)
        bits_per_shade = 4 if has_regions else 2  # a region has several words
        regions = [*map(critical_region, self.stimuli.regions or ())]
        is_critical = [
            bool(regions) and _begins_in(regions[row], start)
            for row, start in zip(table["row"], table["start"], strict=True)
        ]
        return table[["row", "start", "text", "surprisal"]].assign(
            is_critical=is_critical,
            name=names.str.rstrip() if has_regions else "",
            shade=(bits / bits_per_shade).clip(upper=_DARKEST).astype(int),
        )

    def level(self, by: str) -> Series[Any]:
        """Returns the level of each item in a break-down, "" for an item without one."""
        levels = self.levels.get(by, Series("", self.outcomes.index))
        return levels.fillna("")

    def answer(self, row: Any) -> list[str]:
        """Returns the top words of a row, the parts of a sentence with surprisals, or the share."""
        if self.asks == "choice":
            return [numbers.probability(row.probability)]
        if self.asks == "word":
            return [word for word, *_ in row.top]
        parts = replace(self, rows=self.rows.loc[[row.Index]]).parts()
        return [f"{part.text} {numbers.bits(part.surprisal)}" for part in parts.itertuples()]


def _begins_in(region: Mapping[str, Any], start: int) -> bool:
    """Whether a part that begins at a character begins in a region; an empty one has no parts."""
    return "start" in region and region["start"] <= start < region["end"]


def records(table: DataFrame) -> list[Any]:
    """Returns rows as named tuples, the index as `Index`; None stands for what is not known."""
    known = table.astype(object).where(table.notna(), None)
    return [*known.itertuples(name="Record")]


def verdict(outcome: Any, asks: str) -> tuple[str, str]:
    """Returns the kind of an outcome, and the outcome in words.

    The kind is `right`, `narrow` (good preferred, but not by the threshold; some predictions hold,
    but not all), `wrong`, `tied` (equal probabilities), `unknown`, or `plain` where nothing is
    compared.

    Args:
        outcome: a row of `RunItems.outcomes`, see `records`.
        asks: see `RunItems`.
    """
    if outcome.predictions:
        return _verdict_on_predictions(outcome)
    if not outcome.is_compared:
        bits = outcome.response
        digits = 1 if asks == "sentence" else 2
        return "plain", "unscorable" if bits is None else f"{bits:.{digits}f} bits"
    gap = outcome.difference
    if outcome.prefers_good is None or gap is None:
        return "unknown", "cannot be compared"
    size_text = numbers.probability(abs(gap))
    if asks == "sentence":
        size_text = f"{numbers.bits(abs(gap))} bits"
    # TIE is in nats, and the difference in bits or, for nearly equal ones, in parts of the good one
    if abs(gap) <= (TIE / math.log(2) if asks == "sentence" else TIE * outcome.good):
        return "tied", "neither preferred"
    if not outcome.prefers_good:
        return "wrong", f"bad preferred by {size_text}"
    if outcome.by_threshold == 0:
        return "narrow", f"good preferred by only {size_text}"
    return "right", f"good preferred by {size_text}"


def _verdict_on_predictions(outcome: Any) -> tuple[str, str]:
    """Returns `verdict` of an item of a suite: how many of its predictions hold."""
    n = len(outcome.predictions)
    share_held = outcome.held
    if share_held is None:
        return "unknown", "cannot be evaluated"
    kind = "narrow"
    if share_held in (0, 1):
        kind = "right" if share_held else "wrong"
    if n == 1:
        return kind, f"prediction {'holds' if share_held else 'does not hold'}"
    return kind, f"{round(share_held * n)} of {n} predictions hold"


# ---- from runs -----------------------------------------------------------------------------------


def items(run: Run, task: str, setting: str = NONE) -> RunItems:
    """Returns the items of a task in the order of the data, with the contexts of a setting."""
    stimuli = run.asked(task, setting)
    predictions = run.predictions[task][setting, 0]
    scores = run.scores_of(task, setting)
    asks = "choice" if any(predictions.labels) else stimuli.diagnostic.asks
    rows = _rows(stimuli, predictions, asks, run.results.model.word_folds)
    item_of_first_row = rows.drop_duplicates("item")["item"]
    levels = DataFrame(dict(stimuli.levels), rows.index)
    measure_values = DataFrame(dict(measure_columns(stimuli, scores)), rows.index)
    measure_values = measure_values.groupby(rows["item"], sort=False).first()
    threshold = number_text(run.results.protocol.threshold)
    sensitivity = [measure_values.get(name) for name in ("sensitivity", f"sensitivity@{threshold}")]
    further_measures = [
        name for name in measure_values if name.partition("@")[0] not in _SHOWN_OTHERWISE
    ]
    suite_predictions = _suite_predictions(
        stimuli, item_of_first_row, scores.get("prediction_accuracy")
    )
    order = rows["item"].map({item: i for i, item in enumerate(item_of_first_row)})
    is_good = rows["good"].eq(True)
    rows = rows.iloc[np.lexsort((~is_good, order))]
    return RunItems(
        asks=asks, rows=rows, outcomes=outcomes_of(rows, suite_predictions, *sensitivity),
        levels=levels.loc[item_of_first_row.index].set_axis(item_of_first_row),
        measures=measure_values[further_measures],
        stimuli=stimuli, predictions=predictions,
    )  # fmt: skip


def _rows(
    stimuli: Stimuli, predictions: Predictions, asks: str, folds: Collection[Fold]
) -> DataFrame:
    """Returns the table `RunItems.rows`: what was asked and answered, a row per row of the data.

    Args:
        stimuli: the rows as they were asked.
        predictions: of these rows, in their order.
        asks: "word", "sentence" or "choice", whether words, sentences or labels have probabilities.
        folds: differences of spelling that do not count between words.
    """
    table = item_rows(stimuli, predictions, {}, "sentence")
    columns = stimuli.columns()
    n = len(table)
    has_blanks = stimuli.asks_words
    response = table["surprisal"]
    if _has_critical_word(stimuli) and any(predictions.words or ()):
        response = item_rows(stimuli, predictions, {}, "row")["surprisal"]
    text_columns = {
        name: columns.get(name, [""] * n) for name in ("right_context", "target", "condition")
    }
    expected = columns["expected"] if asks == "word" else [()] * n
    top_lists = [list[TopWord]()] * n
    if asks == "word":
        words = zip(predictions.top_words, predictions.top_log_probs, expected, strict=True)
        top_lists = [top_words(*row_words, folds) for row_words in words]
    good = Series(columns.get("good"), table.index, object)
    conditions = Series(text_columns["condition"], table.index, object).replace("", "sentence")
    is_sentence = asks == "sentence"
    item_column = "item" if stimuli.diagnostic.has_regions else "contrast"
    return DataFrame(text_columns, table.index).assign(
        item=columns.get(item_column, columns["id"]),
        id=columns["id"],
        item_name=_item_names(stimuli),
        context=columns["context" if has_blanks else "sentence"],
        sentence=_with_blanks(columns) if has_blanks else columns["sentence"],
        good=good,
        label=good.map({True: "good", False: "bad"}).fillna(conditions),
        expected=Series(expected, table.index, object),
        surprisal=table["surprisal"],
        response=response,
        probability=table["probability"],
        rank=Series(predictions.rank if asks == "word" else None, table.index, object),
        n_tokens=Series(predictions.n_tokens if is_sentence else None, table.index, object),
        value=_compared_values(table, response, good) if is_sentence else table["probability"],
        top=Series(top_lists, table.index, object),
        place=Series([place_of_expected(top) for top in top_lists], table.index, object),
    )


def _compared_values(table: DataFrame, response: Series[float], good: Series[Any]) -> Series[float]:
    """Returns what sentences are compared or ordered by: higher values for less surprising ones.

    Good and bad ones are compared as whole sentences, others are ordered by their response.

    Args:
        table: with the column `surprisal`, bits.
        response: bits of the critical word, or of the whole sentence.
        good: whether a row is good; None where rows are not compared.
    """
    return -table["surprisal"] if good.notna().any() else -response


def _has_critical_word(stimuli: Stimuli) -> bool:
    """Whether the sentences have a critical region; the regions of all have the same names."""
    return any(map(critical_region, (stimuli.regions or ())[:1]))


def _item_names(stimuli: Stimuli) -> list[str]:
    """What readers call the item of each row of own data with a design; "" for others."""
    columns = stimuli.columns()
    n = len(columns["id"])
    is_named = "item" in columns and not (stimuli.diagnostic.has_regions or "good" in columns)
    if not (is_named and stimuli.diagnostic.asks == "sentence"):
        return [""] * n
    within = stimuli.diagnostic.item_within
    groups = columns[within] if within else [""] * n
    names = zip(groups, columns["item"], strict=True)
    return [f"{group} item {item}".strip() for group, item in names]


def _with_blanks(columns: Columns) -> list[str]:
    """Returns each context with "____" where its word was, and what stands after it."""
    spaces = columns.get("gap_spaces", [""] * len(columns["id"]))
    texts = []
    for context, after, target, gap in zip(
        columns["context"], columns["right_context"], columns["target"], spaces, strict=True
    ):
        before, after = Query(context, after, *GAP_SPACES[gap]).around(target)
        texts.append(f"{before}____{after}")
    return texts


def top_words(
    words: Sequence[str] | None,
    log_probs: Sequence[float] | None,
    expected: Sequence[str],
    folds: Collection[Fold] = (),
) -> list[TopWord]:
    """Returns the most probable words: word, probability if known, whether it is expected.

    `folds` are differences between words that do not count, see `lmdiag.measures.fold_word`.
    """
    words = words or ()
    expected_keys = {fold_word(word, folds) for word in expected}
    known_log_probs: Sequence[float | None] = log_probs or [None] * len(words)
    return [
        (word, None if nats is None else math.exp(nats), fold_word(word, folds) in expected_keys)
        for word, nats in zip(words, known_log_probs, strict=True)
    ]


def place_of_expected(top: Sequence[TopWord]) -> int | None:
    """Returns the place of the first expected word, from 1; None where there is none."""
    return next((i for i, (_, _, is_expected) in enumerate(top, start=1) if is_expected), None)


def _suite_predictions(
    stimuli: Stimuli, item_of_first_row: Series[Any], scores: Scores | None
) -> dict[str, list[Prediction]]:
    """Returns item of a suite -> its predictions.

    Args:
        item_of_first_row: position of the first row of each item -> the item.
        scores: 1 for a prediction that holds, by "ITEM/NUMBER".
    """
    formulas = stimuli.columns().get("formulas")
    if formulas is None:
        return {}
    holds: dict[str, bool] = {}
    if scores is not None:
        holds = dict(zip(scores.items.tolist(), (scores.values == 1).tolist(), strict=True))
    return {
        item: [
            (formula, holds.get(f"{item}/{number}"))
            for number, formula in enumerate(formulas[row], start=1)
        ]
        for row, item in item_of_first_row.items()
    }


def outcomes_of(
    rows: DataFrame,
    predictions: Mapping[str, Sequence[Prediction]],
    prefers_good: Series[float] | None,
    by_threshold: Series[float] | None,
) -> DataFrame:
    """Returns the table `RunItems.outcomes`, a row per item: which of its rows the model prefers.

    If an item has several bad rows, it is the most probable one that the good row is compared with;
    one without a value comes before all others, so that the difference is undefined.

    Args:
        rows: see `RunItems.rows`.
        predictions: item of a test suite -> its predictions, and whether they hold.
        prefers_good: item -> 1 if the good row is preferred, else 0; None if it is not known.
        by_threshold: the same, where a difference must exceed the threshold.
    """
    rows = rows.assign(row=rows.index)
    good = rows[rows["good"].eq(True)].drop_duplicates("item").set_index("item")
    bad = rows[rows["good"].eq(False)]
    bad = bad.sort_values("value", ascending=False, kind="stable", na_position="first")
    bad = bad.drop_duplicates("item").set_index("item")
    first_rows = rows.drop_duplicates("item").set_index("item")
    items = first_rows.index
    undefined = Series(math.nan, items)
    outcomes = DataFrame({
        "is_compared": first_rows["good"].notna(),
        "response": first_rows["response"],
        "good": good["value"].reindex(items),
        "difference": (good["value"] - bad["value"]).reindex(items),
        "good_row": good["row"].reindex(items),
        "bad_row": bad["row"].reindex(items),
        "prefers_good": undefined if prefers_good is None else prefers_good.reindex(items),
        "by_threshold": undefined if by_threshold is None else by_threshold.reindex(items),
        "predictions": Series([predictions.get(item, []) for item in items], items, object),
    })  # fmt: skip
    share_held = outcomes["predictions"].map(_share_held)
    order = outcomes["difference"].where(outcomes["is_compared"], first_rows["value"])
    has_predictions = outcomes["predictions"].map(bool)
    return outcomes.assign(held=share_held, order=order.mask(has_predictions, share_held))


def _share_held(predictions: Sequence[Prediction]) -> float:
    """Share of the predictions that hold; NaN where one is not known or there are none."""
    holds = [holds for _, holds in predictions]
    return sum(map(bool, holds)) / len(holds) if holds and None not in holds else math.nan


# ---- chosen by users -----------------------------------------------------------------------------


class Answers(NamedTuple):
    """What models answered to a sentence: name of each model -> its answer, see `answer`."""

    sentence: str
    is_whole: bool
    of_models: dict[str, list[str]]


def choose(runs: Sequence[Run], ids: Sequence[str]) -> list[Answers]:
    """Returns the distinct contexts of chosen items, in the order in which they were named.

    The ids are those of rows (`neg136-simp-4-TA`) or of contrasts (`role88-68`).

    Raises:
        BadInput: no run has an item of that name.
    """
    models = run_labels([run.results for run in runs])
    tables = [
        (model, items(run, task))
        for model, run in zip(models, runs, strict=True)
        for task in run.stimuli
    ]
    answers_to: dict[str, Answers] = {}
    for name in ids:
        is_known = False
        for model, table in tables:
            rows = table.rows[(table.rows[["item", "id"]] == name).any(axis=1)]
            for row in records(rows):
                is_known = True
                no_answers = Answers(row.sentence, table.asks == "sentence", {})
                answers = answers_to.setdefault(row.sentence, no_answers)
                answers.of_models[model] = table.answer(row)
        if not is_known:
            all_ids = [x for _, table in tables for x in (*table.outcomes.index, *table.rows["id"])]
            where = f"{suggest(name, all_ids)} in {' or '.join(str(run.path) for run in runs)}"
            raise BadInput(f"no item {name!r}{where}: name some of {first_few(all_ids, 5)}")
    return [*answers_to.values()]
