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
        """Whether items are contrasts of rows, and not single rows."""
        return bool(self.outcomes["is_compared"].any())

    @property
    def has_predictions(self) -> bool:
        """Whether items are those of test suites, with formulas that hold or do not."""
        return bool(self.outcomes["predictions"].map(len).any())

    @property
    def n_parts(self) -> int:
        """Number of words, or of regions, of all sentences; 0 for rows with blanks.

        A page lists these below each other, so it lists fewer items if there are many.
        """
        if self.asks != "sentence":
            return 0
        parts_of_rows: Sequence[Any] = self.predictions.words  # of each sentence its words
        # sentences with a critical word are shown as words, others with regions as regions
        if self.stimuli.regions and not self.has_critical_word:
            parts_of_rows = self.stimuli.regions
        return sum(len(parts) for parts in parts_of_rows if parts)

    @property
    def has_critical_word(self) -> bool:
        """Whether sentences have a critical word, whose surprisal is their response."""
        return _has_critical_word(self.stimuli)

    def select_items(self, ids: Collection[str]) -> RunItems:
        """Returns the items with some ids, each with all of its rows."""
        return replace(
            self,
            rows=self.rows[self.rows["item"].isin(ids)],
            outcomes=self.outcomes[self.outcomes.index.isin(ids)],
            levels=self.levels[self.levels.index.isin(ids)],
            measures=self.measures[self.measures.index.isin(ids)],
        )

    def parts(self) -> DataFrame:
        """Returns the words of sentences, or their regions, a row each.

        Sentences with regions have these, but for those with a critical word, which have words.

        Returns:
            Columns: `row`, position in the data; `start`, in characters; `text`; `surprisal`, bits,
            NaN without a probability and for an empty region; `name`, number and name of a region,
            "" of a word; `is_critical`, whether it begins in the critical region; and `shade`, of
            its cell in a page, 0 to 8: a step is 2 bits of a word, or 4 bits of a region.
        """
        has_regions = self.stimuli.regions is not None and not self.has_critical_word
        per: Per = "region" if has_regions else "word"
        table = part_rows(self.stimuli, self.predictions, per, self.rows.index)
        bits = table["surprisal"].fillna(0.0)  # parts without a probability have the lightest shade
        bits_per_shade = 4 if has_regions else 2  # a region has several words
        critical_regions = [critical_region(regions) for regions in self.stimuli.regions or ()]
        is_critical = [
            bool(critical_regions) and _is_within(start, critical_regions[row])
            for row, start in zip(table["row"], table["start"], strict=True)
        ]
        names = table["number"].astype(str) + " " + table["name"]
        return table[["row", "start", "text", "surprisal"]].assign(
            is_critical=is_critical,
            name=names.str.rstrip() if has_regions else "",
            shade=(bits / bits_per_shade).clip(upper=_DARKEST).astype(int),
        )

    def level(self, by: str) -> Series[Any]:
        """Returns the level of each item in a break-down, "" for an item without one.

        The index has the ids of the items.
        """
        levels = self.levels.get(by, Series("", self.outcomes.index))
        return levels.fillna("")

    def answer(self, row: Any) -> list[str]:
        """Returns what the model answers to a row, in texts.

        These are the top words at a blank, the words or regions of a sentence with their surprisals
        in bits ("robin 12.3"), or the share of an option.

        Args:
            row: of `rows`, see `records`.
        """
        if self.asks == "choice":
            return [numbers.probability(row.probability)]
        if self.asks == "word":
            return [word for word, _, _ in row.top]
        # `parts` of this row alone
        parts = replace(self, rows=self.rows.loc[[row.Index]]).parts()
        return [f"{part.text} {numbers.bits(part.surprisal)}" for part in parts.itertuples()]


def _is_within(position: int, region: Mapping[str, Any]) -> bool:
    """Whether a position, in characters, is within a region with the keys `start` and `end`.

    False for {}, which `critical_region` returns for a sentence without a critical region.
    """
    return "start" in region and region["start"] <= position < region["end"]


def records(table: DataFrame) -> list[Any]:
    """Returns the rows of a table as named tuples; None stands for missing values.

    The fields are `Index` and the columns. For example, a row with the index 3, the `item` "a" and
    a `rank` of NaN becomes Record(Index=3, item="a", rank=None).
    """
    with_none = table.astype(object).where(table.notna(), None)
    return [*with_none.itertuples(name="Record")]


def verdict(outcome: Any, asks: str) -> tuple[str, str]:
    """Returns the kind of an outcome, and the outcome in words: ("right", "good preferred by .42").

    The kind is `right`, `narrow` (good preferred, but not by the threshold; some predictions hold,
    but not all), `wrong`, `tied` (equal probabilities), `unknown`, or `plain` where nothing is
    compared.

    Args:
        outcome: a record of an item: `is_compared`, `difference` (value of the good row minus that
            of the best bad row), `prefers_good`, `predictions` and others; None for unknown values.
        asks: "word", "choice" or "sentence": what the model was asked.
    """
    if outcome.predictions:  # an item of a test suite
        return _verdict_on_predictions(outcome)
    if not outcome.is_compared:
        bits = outcome.response
        digits = 1 if asks == "sentence" else 2
        return "plain", "unscorable" if bits is None else f"{bits:.{digits}f} bits"
    if outcome.prefers_good is None or outcome.difference is None:
        return "unknown", "cannot be compared"
    distance = abs(outcome.difference)
    if asks == "sentence":
        distance_text = f"{numbers.bits(distance)} bits"
        most_of_tied = TIE / math.log(2)  # TIE is in nats
    else:
        distance_text = numbers.probability(distance)
        # of nearly equal probabilities, nats are about the difference in parts of one of them
        most_of_tied = TIE * outcome.good
    if distance <= most_of_tied:
        return "tied", "neither preferred"
    if not outcome.prefers_good:
        return "wrong", f"bad preferred by {distance_text}"
    if outcome.by_threshold == 0:
        return "narrow", f"good preferred by only {distance_text}"
    return "right", f"good preferred by {distance_text}"


def _verdict_on_predictions(outcome: Any) -> tuple[str, str]:
    """Returns the `verdict` on an item of a test suite: ("narrow", "1 of 2 predictions hold")."""
    n = len(outcome.predictions)
    share_held = outcome.held
    if share_held is None:
        return "unknown", "cannot be evaluated"
    if share_held == 1:
        kind = "right"
    elif share_held == 0:
        kind = "wrong"
    else:
        kind = "narrow"
    if n == 1:
        return kind, f"prediction {'holds' if share_held else 'does not hold'}"
    return kind, f"{round(share_held * n)} of {n} predictions hold"


# ---- from runs -----------------------------------------------------------------------------------


def items(run: Run, task: str, setting: str = NONE) -> RunItems:
    """Returns the items of a task in the order of the data, as they were asked in a setting.

    Args:
        setting: name of a perturbation whose contexts are not shuffled, or "none".
    """
    # what was asked, answered and scored
    stimuli = run.asked(task, setting)
    predictions = run.predictions[task][setting, 0]  # 0: a setting that is not shuffled has one
    scores = run.scores_of(task, setting)
    asks = "choice" if any(predictions.labels) else stimuli.diagnostic.asks
    rows = _rows(stimuli, predictions, asks, run.results.model.word_folds)
    item_of_first_row = rows.drop_duplicates("item")["item"]  # the index has the row
    # levels and measures of each row of the data, then measures of each item
    levels = DataFrame(dict(stimuli.levels), rows.index)
    measure_values = DataFrame(dict(measure_columns(stimuli, scores)), rows.index)
    # of an item, the first value that is not NaN: a contrast has it in its good row
    measure_values = measure_values.groupby(rows["item"], sort=False).first()
    further_measures = [
        name for name in measure_values if name.partition("@")[0] not in _SHOWN_OTHERWISE
    ]
    # the rows of an item together and its good one first
    item_order = {item: i for i, item in enumerate(item_of_first_row)}
    is_not_good = ~rows["good"].eq(True)
    # `lexsort` sorts by the last key first: by item, and within an item by whether a row is good
    rows = rows.iloc[np.lexsort((is_not_good, rows["item"].map(item_order)))]
    threshold = number_text(run.results.protocol.threshold)
    outcomes = outcomes_of(
        rows,
        _suite_predictions(stimuli, item_of_first_row, scores.get("prediction_accuracy")),
        prefers_good=measure_values.get("sensitivity"),
        by_threshold=measure_values.get(f"sensitivity@{threshold}"),
    )
    return RunItems(
        asks=asks, rows=rows, outcomes=outcomes,
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
    # surprisal (bits) and probability of the word at the blank, or of the whole sentence
    table = item_rows(stimuli, predictions, scores={}, per="sentence")  # `items` adds measures
    columns = stimuli.columns()
    n = len(table)
    has_blanks = stimuli.asks_words
    is_sentence = asks == "sentence"
    response = table["surprisal"]
    if _has_critical_word(stimuli) and any(predictions.words or ()):
        # of the critical word
        response = item_rows(stimuli, predictions, scores={}, per="row")["surprisal"]
    text_columns = {
        name: columns.get(name, [""] * n) for name in ("right_context", "target", "condition")
    }
    # options and sentences expect no words, and have no lists of top words
    expected = [()] * n
    top_lists = [list[TopWord]()] * n
    if asks == "word":
        expected = columns["expected"]
        lists = zip(predictions.top_words, predictions.top_log_probs, expected, strict=True)
        top_lists = [
            top_words(words, log_probs, expected_words, folds)
            for words, log_probs, expected_words in lists
        ]
    good = Series(columns.get("good"), table.index, object)
    conditions = Series(text_columns["condition"], table.index, object).replace("", "sentence")
    # rows without items or contrasts are items by themselves
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
    """Returns what sentences are compared or ordered by, higher for less surprising sentences.

    Good and bad sentences are compared as wholes, by minus their surprisal. Other sentences are
    ordered by minus their response, which may be that of the critical word.

    Args:
        table: with the column `surprisal`, bits.
        response: bits of the critical word, or of the whole sentence.
        good: whether a row is good; None where rows are not compared.
    """
    return -table["surprisal"] if good.notna().any() else -response


def _has_critical_word(stimuli: Stimuli) -> bool:
    """Whether the sentences have a region with the name of a critical word."""
    if not stimuli.regions:
        return False
    return bool(critical_region(stimuli.regions[0]))  # those of all rows have the same names


def _item_names(stimuli: Stimuli) -> list[str]:
    """Returns what readers call the item of each row: "item 3", or "GROUP item 3".

    "" for rows that are not a user's own sentences in conditions, whose items have ids alone.
    """
    columns = stimuli.columns()
    n = len(columns["id"])
    diagnostic = stimuli.diagnostic
    has_items_in_conditions = (
        "item" in columns and "good" not in columns and not diagnostic.has_regions
    )
    if not has_items_in_conditions or diagnostic.asks != "sentence":
        return [""] * n
    groups = [""] * n
    if diagnostic.item_within:  # the numbers of items are unique within the groups of this column
        groups = columns[diagnostic.item_within]
    names = zip(groups, columns["item"], strict=True)
    return [f"{group} item {item}".strip() for group, item in names]


def _with_blanks(columns: Columns) -> list[str]:
    """Returns the text of each row with "____" in place of its word: "A robin is a ____."."""
    # where spaces stand at the blank, if not where they usually do
    gap_spaces = columns.get("gap_spaces", [""] * len(columns["id"]))
    column_values = (columns["context"], columns["right_context"], columns["target"], gap_spaces)
    texts = []
    for context, right_context, target, gap in zip(*column_values, strict=True):
        query = Query(context, right_context, *GAP_SPACES[gap])
        before, after = query.around(target)  # the text before and after the blank
        texts.append(f"{before}____{after}")
    return texts


def top_words(
    words: Sequence[str] | None,
    log_probs: Sequence[float] | None,
    expected: Sequence[str],
    folds: Collection[Fold] = (),
) -> list[TopWord]:
    """Returns word, probability (None if unknown) and whether it is expected, for each word.

    For example, the words "bird" and "cat" with the log-probabilities -0.5 and -2.0, where "bird"
    is expected, give ("bird", 0.61, True) and ("cat", 0.14, False).

    Args:
        words: most probable first; None without a list.
        log_probs: of the words, in nats; None if they are not known.
        expected: the words that are expected at the blank.
        folds: differences between words that do not count, see `lmdiag.measures.fold_word`.
    """
    words = words or ()
    expected_keys = {fold_word(word, folds) for word in expected}
    word_log_probs: Sequence[float | None] = log_probs or [None] * len(words)
    listed_words = []
    for word, log_prob in zip(words, word_log_probs, strict=True):
        probability = None if log_prob is None else math.exp(log_prob)
        is_expected = fold_word(word, folds) in expected_keys
        listed_words.append((word, probability, is_expected))
    return listed_words


def place_of_expected(top: Sequence[TopWord]) -> int | None:
    """Returns the place of the first expected word in a list, from 1; None if none is in it.

    >>> place_of_expected([("cat", 0.4, False), ("bird", 0.2, True)])
    2
    """
    for place, (_, _, is_expected) in enumerate(top, start=1):
        if is_expected:
            return place
    return None


def _suite_predictions(
    stimuli: Stimuli, item_of_first_row: Series[Any], scores: Scores | None
) -> dict[str, list[Prediction]]:
    """Returns item of a test suite -> its formulas, and whether each holds; {} for other rows.

    For example, {"7": [("(2;%bad%) > (2;%good%)", True)]}. None in place of True or False if it is
    not known whether a formula holds.

    Args:
        item_of_first_row: position of the first row of each item -> the item.
        scores: 1 for a prediction that holds, by "ITEM/NUMBER"; None if no prediction was scored.
    """
    formulas_of_rows = stimuli.columns().get("formulas")
    if formulas_of_rows is None:
        return {}
    holds: dict[str, bool] = {}
    if scores is not None:
        holds = dict(zip(scores.items.tolist(), (scores.values == 1).tolist(), strict=True))
    predictions: dict[str, list[Prediction]] = {}
    for row, item in item_of_first_row.items():
        predictions[item] = [
            (formula, holds.get(f"{item}/{number}"))
            for number, formula in enumerate(formulas_of_rows[row], start=1)
        ]
    return predictions


def outcomes_of(
    rows: DataFrame,
    predictions: Mapping[str, Sequence[Prediction]],
    prefers_good: Series[float] | None,
    by_threshold: Series[float] | None,
) -> DataFrame:
    """Returns the table `RunItems.outcomes`, a row per item: which of its rows the model prefers.

    The good row of an item is compared with the most probable of its bad rows. If the value of a
    bad row is not known, the difference is undefined.

    Args:
        rows: see `RunItems.rows`.
        predictions: item of a test suite -> its predictions, and whether they hold.
        prefers_good: item -> 1 if the good row is preferred, else 0; None if it is not known.
        by_threshold: the same, where a difference must exceed the threshold.
    """
    rows = rows.assign(row=rows.index)
    good = rows[rows["good"].eq(True)].drop_duplicates("item").set_index("item")
    # the most probable bad row of each item; one without a value comes before all others
    bad = rows[rows["good"].eq(False)]
    bad = bad.sort_values("value", ascending=False, kind="stable", na_position="first")
    bad = bad.drop_duplicates("item").set_index("item")
    first_rows = rows.drop_duplicates("item").set_index("item")
    items = first_rows.index
    undefined = Series(math.nan, items)
    # items without good or bad rows have NaN, by `reindex`
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
    # what a list is sorted by: the difference of contrasts, the value of single rows, and of suites
    # the share of predictions that hold
    order = outcomes["difference"].where(outcomes["is_compared"], first_rows["value"])
    has_predictions = outcomes["predictions"].map(bool)
    return outcomes.assign(held=share_held, order=order.mask(has_predictions, share_held))


def _share_held(predictions: Sequence[Prediction]) -> float:
    """Returns the share of predictions (formula, whether it holds) that hold.

    NaN without predictions, or if it is not known of a prediction whether it holds.
    """
    holds = [is_true for _, is_true in predictions]
    if not holds or None in holds:
        return math.nan
    return holds.count(True) / len(holds)


# ---- chosen by users -----------------------------------------------------------------------------


class Answers(NamedTuple):
    """What models answered to a sentence, or to a context with a blank.

    Attributes:
        sentence: with its blank.
        is_whole: whether it is a whole sentence, without a blank.
        by_model: name of each model -> its answer, see `RunItems.answer`.
    """

    sentence: str
    is_whole: bool
    by_model: dict[str, list[str]]


def answers_to_items(runs: Sequence[Run], ids: Sequence[str]) -> list[Answers]:
    """Returns the answers to the distinct contexts of items, in the order of their ids.

    Args:
        ids: of rows (`neg136-simp-4-TA`) or of contrasts (`role88-68`).

    Raises:
        BadInput: no run has an item of that name.
    """
    models = run_labels([run.results for run in runs])
    tables = [
        (model, items(run, task))
        for model, run in zip(models, runs, strict=True)
        for task in run.stimuli
    ]
    # sentence -> the answers to it; the rows of a contrast may have the same context
    answers_to: dict[str, Answers] = {}
    for name in ids:
        has_item = False
        for model, table in tables:
            is_named = (table.rows[["item", "id"]] == name).any(axis=1)
            for row in records(table.rows[is_named]):
                has_item = True
                is_whole = table.asks == "sentence"
                answers = answers_to.setdefault(row.sentence, Answers(row.sentence, is_whole, {}))
                answers.by_model[model] = table.answer(row)
        if not has_item:
            all_ids = list[str]()
            for _, table in tables:
                all_ids += [*table.outcomes.index, *table.rows["id"]]
            where = f"{suggest(name, all_ids)} in {' or '.join(str(run.path) for run in runs)}"
            raise BadInput(f"no item {name!r}{where}: name some of {first_few(all_ids, 5)}")
    return [*answers_to.values()]
