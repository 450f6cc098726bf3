"""The items of a diagnostic as a page lists them, with the controls of the list."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from pandas import DataFrame, Series

from lmdiag.diagnostics import Diagnostic
from lmdiag.measures import MeasureName
from lmdiag.report import numbers
from lmdiag.report.run_items import MAX_LISTED, Prediction, RunItems, items, records, verdict
from lmdiag.stimuli.perturbations import NONE
from lmdiag.text import visible

if TYPE_CHECKING:
    from lmdiag.report.charts.task_runs import TaskRuns

_MOST_PARTS = 16_000
"""Words or regions that a page lists, over all items: of long texts it lists fewer items."""

_MOST_PER_COMBINATION = 12
"""Contrasts per combination of levels in a sample, at most."""


class ListedItem(NamedTuple):
    """An item as a page lists it.

    Attributes:
        id: of the item.
        name: what readers call it, "" for its id.
        setting: in which it was asked.
        anchor: its id in the page.
        tags: break-down=level -> level in words.
        good, difference: numbers that a list is sorted by, of the first run; None where unknown.
        place: of the first expected word among the top words, from 1; "none" if it is not among
            them; None if no word is expected.
        verdicts: of each run, see `lmdiag.report.run_items.verdict`.
        predictions: of each formula of a test suite, whether it holds in each run.
        measures: texts with a further measure and its values in each run.
        rows: of each row of the item, its record in each run, see `RunItems.rows`.
        contexts: `rows` in groups with the same context; [] for sentences.
        columns: of sentences, the words or regions that stand below each other, see `_columns`.
    """

    id: str
    name: str
    setting: str
    anchor: str
    tags: Mapping[str, str]
    good: float | None
    difference: float | None
    place: int | str | None
    verdicts: Sequence[tuple[str, str]]
    predictions: Sequence[Sequence[Prediction]]
    measures: Sequence[str]
    rows: Sequence[Sequence[Any]]
    contexts: Sequence[Sequence[Sequence[Any]]]
    columns: Sequence[tuple[str, Sequence[Sequence[Any] | None]]]


def list_items(
    runs: Sequence[RunItems],
    diagnostic: Diagnostic,
    setting: str = NONE,
    chosen: Sequence[str] = (),
) -> list[ListedItem]:
    """Returns the items of one setting that a page lists: all, or a sample and the chosen ones.

    Args:
        runs: the same items of each run, in the same order.
        diagnostic: of the items.
        setting: in which they were asked.
        chosen: ids of rows or contrasts that are listed in any case.
    """
    # which items are listed: the same of all runs
    reference = runs[0]
    is_chosen = reference.rows[["item", "id"]].isin(chosen).any(axis=1)
    sample = sample_items(reference.outcomes, reference.levels, reference.n_parts)
    listed_ids = {*sample, *reference.rows.loc[is_chosen, "item"]}
    tables = [table.select_items(listed_ids) for table in runs]
    # item -> its rows; a row is a tuple with its record in each run
    rows_of: dict[str, list[Sequence[Any]]] = {}
    for row_of_runs in zip(*(records(table.rows) for table in tables), strict=True):
        rows_of.setdefault(row_of_runs[0].item, []).append(row_of_runs)
    is_sentence = reference.asks == "sentence"
    parts_of_runs = [_parts_by_row(table) for table in tables] if is_sentence else []
    levels = tables[0].levels.to_dict("index")
    listed_items = []
    # all runs have the same items in the same order: `outcomes` are those of one item in each run
    for outcomes in zip(*(records(table.outcomes) for table in tables), strict=True):
        outcome = outcomes[0]
        item = outcome.Index
        rows = rows_of[item]
        formulas_of_runs = [run_outcome.predictions for run_outcome in outcomes]
        contexts: list[list[Sequence[Any]]] = []
        columns: list[tuple[str, list[list[Any] | None]]] = []
        if is_sentence:
            # of each row, its words or regions in each run
            parts_of_rows = [[parts[row[0].Index] for parts in parts_of_runs] for row in rows]
            columns = _columns(parts_of_rows)
        else:
            contexts = _by_context(rows)
        listed_item = ListedItem(
            id=item, name=rows[0][0].item_name, setting=setting,
            anchor=visible(item if setting == NONE else f"{setting}:{item}"),
            tags=_tags(levels[item], diagnostic),
            # rows that are not compared are sorted by their own value, suites by what holds
            good=outcome.good if outcome.is_compared else outcome.order,
            difference=outcome.held if outcome.predictions else outcome.difference,
            place=_place_of_expected([row[0] for row in rows]),
            verdicts=[verdict(run_outcome, reference.asks) for run_outcome in outcomes],
            predictions=[*zip(*formulas_of_runs, strict=True)],  # of each formula, in every run
            measures=_measures(tables, item),
            rows=rows, contexts=contexts, columns=columns,
        )  # fmt: skip
        listed_items.append(listed_item)
    return listed_items


def _place_of_expected(rows: Sequence[Any]) -> int | str | None:
    """Returns the place of the expected word among the model's top words, from 1, e.g. 3.

    It is that of the first row that expects a word. "none" if the word is not among the top words;
    None if no row expects a word.

    Args:
        rows: of an item, as one run has them: `expected` (words) and `place` (of the first of these
            among the top words, None if none is there).
    """
    for row in rows:
        if row.expected:
            place: int | str = row.place or "none"
            return place
    return None


def _tags(levels: Mapping[str, Any], diagnostic: Diagnostic) -> dict[str, str]:
    """Returns "BREAK-DOWN=LEVEL" -> level in words, of the levels that an item has.

    For example, {"polarity=neg": "negated"}. The script of a page filters items by the keys.

    Args:
        levels: break-down -> level of the item; NaN in a break-down that it is not in.
    """
    return {
        f"{by}={level}": diagnostic.level_label(by, level)
        for by, level in levels.items()
        if isinstance(level, str) and by not in diagnostic.untagged
    }


def _by_context(rows: Sequence[Sequence[Any]]) -> list[list[Sequence[Any]]]:
    """Returns the rows of an item in groups with the same context.

    Args:
        rows: of each row, its record in each run; all runs have the same context.
    """
    contexts: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        contexts.setdefault(row[0].sentence, []).append(row)
    return [*contexts.values()]


def _measures(tables: Sequence[RunItems], item: str) -> list[str]:
    """Returns a text for each further measure of an item: its name, and the value in each run.

    For example, "SLOR 1.203, 0.982". A measure that no run has for the item is left out.
    """
    texts = []
    for measure in dict.fromkeys(name for table in tables for name in table.measures):
        values = [table.measures.get(measure, {}).get(item, math.nan) for table in tables]
        if not all(math.isnan(value) for value in values):
            value_texts = ", ".join(numbers.decimals(value, 3) for value in values)
            texts.append(f"{MeasureName.of(measure).label} {value_texts}")
    return texts


def _parts_by_row(table: RunItems) -> dict[int, list[Any]]:
    """Returns position of each row in the data -> the records of its words or regions.

    A record has `row`, `start` (in characters), `text`, `surprisal` (bits) and `name`, among
    others. For example, {0: [part "The", part "hen"]}.
    """
    parts: dict[int, list[Any]] = {}
    for part in records(table.parts()):
        parts.setdefault(part.row, []).append(part)
    return parts


def _columns(rows: Sequence[Sequence[Sequence[Any]]]) -> list[tuple[str, list[list[Any] | None]]]:
    """Returns the words or regions of the rows of an item that stand below each other in a page.

    Words are aligned from the left as far as the shortest sentence reaches, and from the right as
    far as all sentences end in the same words:

        The robin  is    not a bird.
        The robin  is        a bird.

    Rows with regions have the same regions, so that each column is a region.

    Args:
        rows: of each row of an item, its parts in each run. Runs may split words differently; the
            columns have the parts of the first run.

    Returns:
        For each column its name, "" for words, and its cell in each row: the part as each run has
        it, or None where the row has no part.
    """
    # the cells of each row: a part as each run has it
    cells_of_rows = []
    for reference_parts, *parts_of_other_runs in rows:
        parts_by_start = [{part.start: part for part in parts} for parts in parts_of_other_runs]
        row_cells = []
        for part in reference_parts:
            unknown = part._replace(surprisal=None)  # a run that splits the word differently
            row_cells.append([part, *(parts.get(part.start, unknown) for parts in parts_by_start)])
        cells_of_rows.append(row_cells)
    texts_of_rows = [[cell[0].text for cell in row_cells] for row_cells in cells_of_rows]
    longest = max(len(row_cells) for row_cells in cells_of_rows)
    shortest = min(len(row_cells) for row_cells in cells_of_rows)
    n_shared = 0  # words at the end that all sentences have
    while n_shared < shortest and len({texts[-1 - n_shared] for texts in texts_of_rows}) == 1:
        n_shared += 1
    # shorter rows get their gap before the words that all sentences end in
    aligned_rows = []
    for row_cells in cells_of_rows:
        start_of_shared = len(row_cells) - n_shared
        gap = [None] * (longest - len(row_cells))
        aligned_rows.append([*row_cells[:start_of_shared], *gap, *row_cells[start_of_shared:]])
    columns = []
    for cells in zip(*aligned_rows, strict=True):
        names = [cell[0].name for cell in cells if cell]
        columns.append((names[0], [*cells]))
    return columns


def sample_items(outcomes: DataFrame, levels: DataFrame, n_parts: int = 0) -> list[str]:
    """Returns the ids of all items or, of too many, of a sample from each combination of levels.

    The sample is spread evenly over the `order` of the items, from the worst to the best: it shows
    what the model does well and what badly, and figures cannot be computed from it. Items without a
    place in the order are left out, unless no item of a combination has one.

    Args:
        outcomes, levels: see `RunItems`.
        n_parts: words or regions of all items.
    """
    n_items = len(outcomes)
    # number of items of average length that have as many parts as a page lists
    n_with_most_parts = _MOST_PARTS * n_items // max(n_parts, 1)
    limit = min(MAX_LISTED, max(2, n_with_most_parts))  # at least the worst and the best
    if n_items <= limit:
        return [*outcomes.index]
    # items without break-downs are one group
    keys = [levels[by].fillna("") for by in levels] or [Series(0, outcomes.index)]
    groups = outcomes.groupby(keys, sort=False)
    n_per_group = limit
    if groups.ngroups > 1:
        n_per_group = min(_MOST_PER_COMBINATION, max(2, limit // groups.ngroups))
    sample = []
    for _, group in groups:
        ordered = group.dropna(subset="order").sort_values("order", kind="stable")
        if ordered.empty:
            ordered = group
        last = len(ordered) - 1
        positions = [*range(len(ordered))]
        if len(ordered) > n_per_group:  # the first, the last, and others at equal distances
            positions = [round(i * last / (n_per_group - 1)) for i in range(n_per_group)]
        sample += [*ordered.index[positions]]
    return sample


# ---- the list and its controls -------------------------------------------------------------------


class _ItemWords(NamedTuple):
    """Words for what is listed and for the controls of the list.

    Attributes:
        rows: what is listed, in the plural.
        outcomes: kind of a verdict -> its words.
        difference, good: what contrasts are sorted by.
        alone: what rows that are not compared are sorted by; "" if they cannot be sorted.
    """

    rows: str
    outcomes: Mapping[str, str]
    difference: str
    good: str
    alone: str


_PREFERRED = {
    "right": "✓ good preferred",
    "wrong": "✗ bad preferred",
    "tied": "= neither preferred",
    "unknown": "? cannot be compared",
}
"""Outcome of a contrast -> its words."""

_WORDS = {
    "word": _ItemWords(
        "rows", {"right": "✓ good preferred", "narrow": "≈ by little"} | _PREFERRED,
        "p(good) − p(bad)", "p(good), highest first", "p(word)",
    ),
    "sentence": _ItemWords(
        "sentences", _PREFERRED, "bits by which good is preferred",
        "surprisal of good, lowest first", "surprisal",
    ),
    "choice": _ItemWords(
        "rows", _PREFERRED, "share of good − share of bad", "share of good, highest first", "",
    ),
    "prediction": _ItemWords(
        "items of suites",
        {"right": "✓ all predictions hold", "narrow": "≈ some", "wrong": "✗ none",
         "unknown": "? cannot be evaluated"},
        "predictions that hold", "", "",
    ),
}  # fmt: skip


_PLACES = {"": "all", "1": "first", "top": "among the top words", "none": "not among them"}
"""Place of the expected word among the top words -> its words."""


class _ItemFilter(NamedTuple):
    """A control by which a reader filters the list.

    Attributes:
        label: that the reader sees.
        name: in the page's script.
        options: value -> the text that the reader sees.
    """

    label: str
    name: str
    options: Mapping[str, str]


def item_list(data: TaskRuns, chosen: Sequence[str] = ()) -> dict[str, Any]:
    """Returns what a page needs for the list of the items of a diagnostic: items and controls.

    Of one run, the list has the items in all its settings but for shuffled ones.

    Args:
        chosen: ids of rows or contrasts that are listed in any case.

    Returns:
        Arguments of the macro `item_list` in `cards/items.html.j2`: `listed`, the items; `asks`,
        see `RunItems`; `has_critical_word` and `has_blanks`; `total`, the number of unperturbed
        items; `of_sample`, what it counts, "" if all of them are listed; `filters`; and `orders`,
        value of each order of the list -> its text.
    """
    diagnostic = data.diagnostic
    listed_items = list_items(data.items, diagnostic, chosen=chosen)
    if len(data.runs) == 1:
        for setting in data.settings:
            perturbation = diagnostic.perturbation(setting)
            if perturbation and not perturbation.shuffled:
                perturbed = items(data.runs[0], data.task, setting)
                listed_items += list_items([perturbed], diagnostic, setting, chosen)
    # the words of the list, and its orders
    table = data.items[0]
    words = _WORDS["prediction" if table.has_predictions else table.asks]
    if table.has_critical_word:
        words = words._replace(alone="surprisal of the critical word")
    # a verdict is (kind, words), and "plain" that of rows that are not compared
    is_compared = any(item.verdicts[0][0] != "plain" for item in listed_items)
    orders = {"order": "order of the data"}  # values that begin with "-" sort the highest first
    if is_compared:
        orders["difference"] = f"{words.difference}, lowest first"
        orders["-difference"] = f"{words.difference}, highest first"
        orders["-good"] = words.good
    elif words.alone:
        # sentences are sorted by minus their surprisal, words by their probability
        is_sentence = table.asks == "sentence"
        orders["-good"] = f"{words.alone}, {'lowest' if is_sentence else 'highest'} first"
        orders["good"] = f"{words.alone}, {'highest' if is_sentence else 'lowest'} first"
    if any(item.place for item in listed_items):
        orders["place"] = "place of the expected word"
    n_listed = sum(item.setting == NONE for item in listed_items)
    noun = "contrasts" if table.is_compared else words.rows
    return {
        "listed": listed_items,
        "asks": table.asks,
        "has_critical_word": table.has_critical_word,
        "has_blanks": table.stimuli.asks_words,
        "total": len(table.outcomes),
        "of_sample": noun if n_listed < len(table.outcomes) else "",
        "filters": _filters(listed_items, data, words.outcomes if is_compared else {}),
        "orders": {value: text for value, text in orders.items() if text},
    }


def _filters(
    listed_items: Sequence[ListedItem], data: TaskRuns, outcomes: Mapping[str, str]
) -> list[_ItemFilter]:
    """Returns the controls by which a reader filters the list; those with one value are left out.

    Args:
        outcomes: kind of a verdict -> its words; {} where nothing is compared.
    """
    all_items = {"": "all"}
    outcome_options = all_items | {**outcomes}
    if outcomes and len(data.runs) > 1:
        outcome_options["changed"] = "differs between runs"
    place_options = _PLACES if any(item.place for item in listed_items) else {}
    filters = [
        _ItemFilter("Outcome", "outcome", outcome_options),
        _ItemFilter("Expected word", "place", place_options),
    ]
    tags_by_breakdown: dict[str, dict[str, str]] = {}  # break-down -> tag -> level in words
    for item in listed_items:
        for tag, level in item.tags.items():
            by = tag.partition("=")[0]
            tags_by_breakdown.setdefault(by, {})[tag] = level
    for by, tags in tags_by_breakdown.items():
        options = all_items | {tag: tags[tag] for tag in sorted(tags, key=str.lower)}
        filters.append(_ItemFilter(by.replace("_", " "), "levels", options))
    settings = dict.fromkeys(item.setting for item in listed_items)
    setting_options = {name: data.diagnostic.setting_label(name) for name in settings}
    # "all" is the last option: a page begins with the first, the unperturbed items
    filters.append(_ItemFilter("Perturbation", "setting", setting_options | all_items))
    # one option is "all": with a single other one there is nothing to choose
    return [item_filter for item_filter in filters if len(item_filter.options) > 2]
