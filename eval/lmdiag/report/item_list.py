"""The items of a diagnostic as a page lists them, with the controls of the list."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag.diagnostics import Diagnostic
from lmdiag.measures import MeasureName
from lmdiag.perturb import NONE
from lmdiag.report import numbers
from lmdiag.report.items import MAX_LISTED, Choice, Item, Part, items
from lmdiag.text import visible

if TYPE_CHECKING:
    from lmdiag.report.charts.task_runs import TaskRuns

_MOST_PARTS = 16_000
"""Words or regions that a page lists, over all items: of long texts it lists fewer items."""

_OF_EACH = 12
"""Contrasts per combination of levels in a sample, at most."""


def listed(
    runs: Sequence[Sequence[Item]],
    diagnostic: Diagnostic,
    setting: str = NONE,
    chosen: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Returns the items of one setting that a page lists: all, or a sample and the chosen ones.

    `anchor` is the id of an item in the page; `tags` are break-down=level -> level in words;
    `place` is that of the first expected word, "none" if it is not in the top words; `difference`
    and `good` are what a list is sorted by, of the first run; `rows` are the rows as every run has
    them, `contexts` these by context, or `columns` the words or regions of sentences.

    The runs have the same items in the same order; `chosen` are ids of rows or contrasts.
    """
    wanted = {item.id for item in representative(runs[0])} | set(chosen)
    parts = []
    for same in zip(*runs, strict=True):
        leading = same[0]
        if not wanted & {leading.id, *(choice.id for choice in leading.choices)}:
            continue
        expecting = next((choice for choice in leading.choices if choice.expected), None)
        rows = [list(row) for row in zip(*(item.choices for item in same), strict=True)]
        contexts: dict[str, list[list[Choice]]] = {}
        for row in rows:
            contexts.setdefault(row[0].sentence, []).append(row)
        is_sentence = leading.choices[0].is_sentence
        values_of = {
            name: [numbers.decimals(item.measures.get(name), 3) for item in same]
            for name in dict.fromkeys(name for item in same for name in item.measures)
        }
        parts.append({
            "item": leading,
            "setting": setting,
            "anchor": visible(leading.id if setting == NONE else f"{setting}:{leading.id}"),
            "tags": {
                f"{by}={level}": diagnostic.level_label(by, level)
                for by, level in leading.levels.items()
                if by not in diagnostic.untagged
            },
            "good": leading.good if leading.is_compared else leading.order,
            "difference": leading.held if leading.predictions else leading.difference,
            "place": expecting and (expecting.place or "none"),
            "verdicts": [item.verdict for item in same],
            "predictions": list(zip(*(item.predictions for item in same), strict=True)),
            "measures": [
                f"{MeasureName.of(name).label} {', '.join(values)}"
                for name, values in values_of.items()
            ],
            "rows": rows,
            "contexts": [] if is_sentence else [*contexts.values()],
            "columns": _columns(rows) if is_sentence else [],
        })  # fmt: skip
    return parts


def _columns(rows: Sequence[Sequence[Choice]]) -> list[tuple[str, list[list[Part] | None]]]:
    """The words of sentences that stand below each other, or the regions of conditions.

    Words are aligned from the left as far as the sentences share them, and likewise from the right.
    Each column has a name, "" for words, and for each row its part as each run has it, or None.
    """
    parts = []
    for reference, *others in rows:
        parts_at = [{part.start: part for part in choice.parts} for choice in others]
        parts.append([
            [part, *(of.get(part.start, part._replace(bits=None)) for of in parts_at)]
            for part in reference.parts
        ])  # fmt: skip
    texts = [[part[0].text for part in row] for row in parts]
    longest = max(map(len, parts))
    shortest = min(map(len, parts))
    shared = 0  # words at the end
    while shared < shortest and len({row[-1 - shared] for row in texts}) == 1:
        shared += 1
    aligned = [
        [*row[: len(row) - shared], *[None] * (longest - len(row)), *row[len(row) - shared :]]
        for row in parts
    ]
    columns = map(list, zip(*aligned, strict=True))
    return [(next(cell[0].name for cell in cells if cell), cells) for cells in columns]


def representative(found: Sequence[Item]) -> list[Item]:
    """Returns all items, or of too many some of each combination of levels.

    They are spread evenly over their `order`, the worst and the best included, to show what the
    model does well and what badly; figures cannot be computed from them. Items without a place in
    the order are left out, unless none of a combination has one.
    """
    parts = sum(len(c.regions or c.spans or ()) for item in found for c in item.choices)
    most = min(MAX_LISTED, max(2, _MOST_PARTS * len(found) // parts)) if parts else MAX_LISTED
    if len(found) <= most:
        return list(found)
    groups: dict[tuple[tuple[str, str], ...], list[Item]] = {}
    for item in found:
        groups.setdefault(tuple(sorted(item.levels.items())), []).append(item)
    n = min(_OF_EACH, max(2, most // len(groups))) if len(groups) > 1 else most
    chosen_items = []
    for group in groups.values():
        pairs = [(order, item) for item in group if (order := item.order) is not None]
        ordered = [item for _, item in sorted(pairs, key=itemgetter(0))] or group
        last = len(ordered) - 1
        ranks = range(last + 1) if last < n else [round(i * last / (n - 1)) for i in range(n)]
        chosen_items += [ordered[rank] for rank in ranks]
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
    "unknown": "? cannot be compared",
}
"""Outcome of a contrast -> its words."""

_WORDS = {
    "word": _ItemWords(
        "rows", {"right": "✓ good preferred", "narrow": "≈ by little"} | _PREFERRED,
        "p(good) − p(bad)", "p(good), highest first", "p(word), highest first",
    ),
    "sentence": _ItemWords(
        "sentences", _PREFERRED, "bits by which good is preferred",
        "surprisal of good, lowest first", "surprisal, lowest first",
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
    are `listed`; `orders` are texts by the values of the orders of the list.
    """
    diagnostic = data.diagnostic
    listed_items = listed(data.items, diagnostic, chosen=chosen)
    for setting in data.settings if len(data.runs) == 1 else ():
        perturbation = diagnostic.perturbation(setting)
        if perturbation and not perturbation.shuffled:
            perturbed = items(data.runs[0], data.task, setting)
            listed_items += listed([perturbed], diagnostic, setting, chosen)
    first = listed_items[0]["item"] if listed_items else None
    asks = "choice" if first and first.choices[0].is_option else diagnostic.asks
    words = _WORDS["prediction" if first and first.predictions else asks]
    is_compared = any(item["verdicts"][0][0] != "plain" for item in listed_items)
    has_expected = any(item["place"] for item in listed_items)
    orders = {
        "order": "order of the data",
        "difference": f"{words.difference}, lowest first" if is_compared else "",
        "-difference": f"{words.difference}, highest first" if is_compared else "",
        "-good": words.good if is_compared else words.alone,
        "place": "place of the expected word" if has_expected else "",
    }
    n_listed = sum(item["setting"] == NONE for item in listed_items)
    counted = "contrasts" if first and first.is_compared else words.rows
    return {
        "listed": listed_items,
        "total": len(data.items[0]),
        "of_sample": counted if n_listed < len(data.items[0]) else "",
        "filters": _filters(listed_items, data, words.outcomes if is_compared else {}),
        "orders": {value: text for value, text in orders.items() if text},
    }


def _filters(
    shown: Sequence[Mapping[str, Any]], data: TaskRuns, outcomes: Mapping[str, str]
) -> list[_ItemFilter]:
    """The choices of items by which any are told apart."""
    every = {"": "all"}
    changed = {"changed": "differs between runs"} if outcomes and len(data.runs) > 1 else {}
    places = _PLACES if any(item["place"] for item in shown) else {}
    levels: dict[str, dict[str, str]] = {}
    for item in shown:
        for level, name in item["tags"].items():
            levels.setdefault(level.partition("=")[0], {})[level] = name
    settings = dict.fromkeys(item["setting"] for item in shown)
    filters = [
        _ItemFilter("Outcome", "outcome", every | {**outcomes} | changed),
        _ItemFilter("Expected word", "place", places),
    ]
    for by, names in levels.items():
        in_order = sorted(names.items(), key=lambda level: level[0].lower())
        filters.append(_ItemFilter(by.replace("_", " "), "levels", every | dict(in_order)))
    labels = {name: data.diagnostic.setting_label(name) for name in settings}
    filters.append(_ItemFilter("Perturbation", "setting", labels | every))
    return [choice for choice in filters if len(choice.options) > 2]
