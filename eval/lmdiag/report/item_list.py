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

_MOST_OF_A_GROUP = 12
"""Contrasts per combination of levels in a sample, at most."""


class ListedItem(NamedTuple):
    """An item as a page lists it.

    Attributes:
        id: of the item.
        name: what readers call it, "" for its id.
        setting: in which it was asked.
        anchor: its id in the page.
        tags: break-down=level -> level in words.
        good, difference: what a list is sorted by, of the first run; None where unknown.
        place: of the first expected word, "none" if it is not in the top words; None without one.
        verdicts: of each run, see `lmdiag.report.run_items.verdict`.
        predictions: each as every run has it.
        measures: further measures with their values in each run.
        rows: each row of `RunItems.rows` as every run has it.
        contexts: these by context, of rows with blanks or options.
        columns: the words or regions of sentences that stand below each other: the name, "" for
            words, and for each row its part as each run has it, or None.
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


def listed(
    runs: Sequence[RunItems],
    diagnostic: Diagnostic,
    setting: str = NONE,
    chosen: Sequence[str] = (),
) -> list[ListedItem]:
    """Returns the items of one setting that a page lists: all, or a sample and the chosen ones.

    The runs have the same items in the same order; `chosen` are ids of rows or contrasts.
    """
    first = runs[0]
    is_chosen = first.rows[["item", "id"]].isin(chosen).any(axis=1)
    sample = representative(first.outcomes, first.levels, first.n_parts)
    listed_ids = {*sample, *first.rows.loc[is_chosen, "item"]}
    tables = [table.of_items(listed_ids) for table in runs]
    rows_of: dict[str, list[Sequence[Any]]] = {}
    for row_of_runs in zip(*(records(table.rows) for table in tables), strict=True):
        rows_of.setdefault(row_of_runs[0].item, []).append(row_of_runs)
    parts_of_runs = [_parts_by_row(table) for table in tables] if first.asks == "sentence" else []
    levels = tables[0].levels.to_dict("index")
    listed_items = []
    for outcomes in zip(*(records(table.outcomes) for table in tables), strict=True):
        outcome = outcomes[0]
        name = outcome.Index
        rows = rows_of[name]
        expecting = next((row[0] for row in rows if row[0].expected), None)
        item = ListedItem(
            id=name, name=rows[0][0].item_name, setting=setting,
            anchor=visible(name if setting == NONE else f"{setting}:{name}"),
            tags=_tags(levels[name], diagnostic),
            good=outcome.good if outcome.is_compared else outcome.order,
            difference=outcome.held if outcome.predictions else outcome.difference,
            place=expecting and (expecting.place or "none"),
            verdicts=[verdict(run_outcome, first.asks) for run_outcome in outcomes],
            predictions=[*zip(*(run_outcome.predictions for run_outcome in outcomes), strict=True)],
            measures=_measures(tables, name),
            rows=rows,
            contexts=[] if parts_of_runs else _by_context(rows),
            columns=_columns(
                [[parts[row[0].Index] for parts in parts_of_runs] for row in rows]
            ) if parts_of_runs else [],
        )  # fmt: skip
        listed_items.append(item)
    return listed_items


def _tags(levels: Mapping[str, Any], diagnostic: Diagnostic) -> dict[str, str]:
    """Break-down=level -> level in words, of the levels that an item has."""
    return {
        f"{by}={level}": diagnostic.level_label(by, level)
        for by, level in levels.items()
        if isinstance(level, str) and by not in diagnostic.untagged
    }


def _by_context(rows: Sequence[Sequence[Any]]) -> list[list[Sequence[Any]]]:
    """Returns the rows of an item, those with the same context together."""
    contexts: dict[str, list[Sequence[Any]]] = {}
    for row in rows:
        contexts.setdefault(row[0].sentence, []).append(row)
    return [*contexts.values()]


def _measures(tables: Sequence[RunItems], name: str) -> list[str]:
    """Returns the further measures of an item that any run has: name, and the value in each run."""
    texts = []
    for measure in dict.fromkeys(x for table in tables for x in table.measures):
        values = [table.measures.get(measure, {}).get(name, math.nan) for table in tables]
        if not all(map(math.isnan, values)):
            value_texts = ", ".join(numbers.decimals(value, 3) for value in values)
            texts.append(f"{MeasureName.of(measure).label} {value_texts}")
    return texts


def _parts_by_row(table: RunItems) -> dict[int, list[Any]]:
    """Position of each row -> its words or regions."""
    parts: dict[int, list[Any]] = {}
    for part in records(table.parts()):
        parts.setdefault(part.row, []).append(part)
    return parts


def _columns(rows: Sequence[Sequence[Sequence[Any]]]) -> list[tuple[str, list[list[Any] | None]]]:
    """Returns columns of words that stand below each other, or of the regions of conditions.

    Words are aligned from the left as far as the shortest sentence reaches, and from the right as
    far as all sentences end in the same words.

    Args:
        rows: of each row of an item, its parts in each run; runs may split words differently, and
            those of the first run count.

    Returns:
        of each column its name, "" for words, and for each row its part as each run has it, or
        None.
    """
    parts_of_rows = []
    for reference, *other_runs in rows:
        parts_by_start = [{part.start: part for part in run_parts} for run_parts in other_runs]
        row_parts = []
        for part in reference:
            unknown = part._replace(surprisal=None)
            same_parts = [by_start.get(part.start, unknown) for by_start in parts_by_start]
            row_parts.append([part, *same_parts])
        parts_of_rows.append(row_parts)
    texts_of_rows = [[part[0].text for part in row] for row in parts_of_rows]
    longest = max(map(len, parts_of_rows))
    shortest = min(map(len, parts_of_rows))
    n_shared = 0  # words at the end
    while n_shared < shortest and len({row[-1 - n_shared] for row in texts_of_rows}) == 1:
        n_shared += 1
    aligned = [
        [*row[: len(row) - n_shared], *[None] * (longest - len(row)), *row[len(row) - n_shared :]]
        for row in parts_of_rows
    ]
    columns = map(list, zip(*aligned, strict=True))
    return [(next(cell[0].name for cell in cells if cell), cells) for cells in columns]


def representative(outcomes: DataFrame, levels: DataFrame, n_parts: int = 0) -> list[str]:
    """Returns the ids of all items or, of too many, of a sample from each combination of levels.

    The sample is spread evenly over the `order` of the items, from the worst to the best: it shows
    what the model does well and what badly, and figures cannot be computed from it. Items without a
    place in the order are left out, unless none of a combination has one.

    Args:
        outcomes, levels: see `RunItems`.
        n_parts: words or regions of all items.
    """
    limit = min(MAX_LISTED, max(2, _MOST_PARTS * len(outcomes) // max(n_parts, 1)))
    if len(outcomes) <= limit:
        return [*outcomes.index]
    keys = [levels[by].fillna("") for by in levels] or [Series(0, outcomes.index)]
    groups = outcomes.groupby(keys, sort=False)
    n_of_group = (
        min(_MOST_OF_A_GROUP, max(2, limit // groups.ngroups)) if groups.ngroups > 1 else limit
    )
    chosen_items = []
    for _, group in groups:
        ordered = group.dropna(subset="order").sort_values("order", kind="stable")
        ordered = ordered if len(ordered) else group
        last_rank = len(ordered) - 1
        ranks = (
            range(last_rank + 1)
            if last_rank < n_of_group
            else [round(i * last_rank / (n_of_group - 1)) for i in range(n_of_group)]
        )
        chosen_items += [*ordered.index[ranks]]
    return chosen_items


# ---- the list and its controls -------------------------------------------------------------------


class _ItemWords(NamedTuple):
    """Words for what is listed, its outcomes, and orders; `alone` orders rows without contrast."""

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
    """A choice of items: its label, its name in the page's script, and texts by their values."""

    label: str
    name: str
    options: Mapping[str, str]


def item_list(data: TaskRuns, chosen: Sequence[str] = ()) -> dict[str, Any]:
    """Returns the items of a diagnostic as a page lists them, of one run in all its settings.

    `total` is the number of unperturbed items, and `of_sample` what it counts, "" if all of them
    are `listed`; `asks` is that of `RunItems`, and `has_blanks` whether rows have a blank; `orders`
    are texts by the values of the orders of the list.
    """
    diagnostic = data.diagnostic
    listed_items = listed(data.items, diagnostic, chosen=chosen)
    for setting in data.settings if len(data.runs) == 1 else ():
        perturbation = diagnostic.perturbation(setting)
        if perturbation and not perturbation.shuffled:
            perturbed = items(data.runs[0], data.task, setting)
            listed_items += listed([perturbed], diagnostic, setting, chosen)
    table = data.items[0]
    words = _WORDS["prediction" if table.has_predictions else table.asks]
    if table.has_critical_word:
        words = words._replace(alone="surprisal of the critical word")
    is_compared = any(item.verdicts[0][0] != "plain" for item in listed_items)
    has_expected = any(item.place for item in listed_items)
    first_pole, last_pole = (
        ("lowest", "highest") if table.asks == "sentence" else ("highest", "lowest")
    )
    orders = {"order": "order of the data"}
    if is_compared:
        orders["difference"] = f"{words.difference}, lowest first"
        orders["-difference"] = f"{words.difference}, highest first"
        orders["-good"] = words.good
    elif words.alone:
        orders["-good"] = f"{words.alone}, {first_pole} first"
        orders["good"] = f"{words.alone}, {last_pole} first"
    if has_expected:
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
    """Returns the choices by which a reader filters the list; those with one value are left out.

    Args:
        outcomes: outcome of a contrast -> its words; {} where nothing is compared.
    """
    no_choice = {"": "all"}
    changed = {"changed": "differs between runs"} if outcomes and len(data.runs) > 1 else {}
    place_texts = _PLACES if any(item.place for item in listed_items) else {}
    levels: dict[str, dict[str, str]] = {}
    for item in listed_items:
        for level, name in item.tags.items():
            levels.setdefault(level.partition("=")[0], {})[level] = name
    settings = dict.fromkeys(item.setting for item in listed_items)
    filters = [
        _ItemFilter("Outcome", "outcome", no_choice | {**outcomes} | changed),
        _ItemFilter("Expected word", "place", place_texts),
    ]
    for by, names in levels.items():
        in_order = sorted(names.items(), key=lambda level: level[0].lower())
        filters.append(_ItemFilter(by.replace("_", " "), "levels", no_choice | dict(in_order)))
    labels = {name: data.diagnostic.setting_label(name) for name in settings}
    filters.append(_ItemFilter("Perturbation", "setting", labels | no_choice))
    return [choice for choice in filters if len(choice.options) > 2]
