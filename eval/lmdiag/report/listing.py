"""Items as a page lists them, with the answers of one or several runs; chosen items."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from lmdiag.diagnostics import Diagnostic
from lmdiag.perturb import NONE
from lmdiag.report.items import MAX_LISTED, Choice, Item, Part, items
from lmdiag.report.labels import run_labels
from lmdiag.text import suggest, visible
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.results import Run

_MOST_PARTS = 16_000
"""Words or regions that a page lists, over all items: of long texts it lists fewer items."""

_OF_EACH = 12
"""Contrasts per combination of levels in a sample, at most."""

Chosen = tuple[Choice, Mapping[str, Choice | None]]
"""A row with a chosen context, and name of each model -> the row with its answer, if it has it."""


def listed(
    runs: Sequence[Sequence[Item]],
    diagnostic: Diagnostic,
    setting: str = NONE,
    chosen: Sequence[str] = (),
) -> list[dict[str, Any]]:
    """Returns the items of one setting that a page lists: all, or a sample and the chosen ones.

    Args:
        runs: items of each run, the same ones in the same order.
        diagnostic: that they are of.
        setting: perturbation.
        chosen: ids of rows or contrasts.
    """
    wanted = {item.id for item in representative(runs[0])} | set(chosen)
    return [
        _listed(same, diagnostic, setting)
        for same in zip(*runs, strict=True)
        if same[0].id in wanted or any(choice.id in wanted for choice in same[0].choices)
    ]


def _listed(of_runs: Sequence[Item], diagnostic: Diagnostic, setting: str) -> dict[str, Any]:
    """What the template shows of an item, given as each run has it.

    `anchor` is its id in the page; `tags` are break-down=level -> level in words; `place` is that
    of the first expected word, "none" if it is not in the top words; `difference` and `good` are
    what a list is sorted by, of the first run; `rows` are the rows of each distinct context, each
    as every run has it, or `columns` the words or regions of the sentences.
    """
    first = of_runs[0]
    expecting = next((choice for choice in first.choices if choice.expected), None)
    rows = [list(row) for row in zip(*(item.choices for item in of_runs), strict=True)]
    contexts = dict.fromkeys(row[0].sentence for row in rows)
    return {
        "item": first,
        "setting": setting,
        "anchor": visible(first.id if setting == NONE else f"{setting}:{first.id}"),
        "tags": {
            f"{by}={level}": diagnostic.level_label(by, level)
            for by, level in first.levels.items()
            if by not in diagnostic.untagged
        },
        "good": first.good if first.is_compared else first.order,
        "difference": first.held if first.predictions else first.difference,
        "place": expecting and (expecting.place or "none"),
        "verdicts": [item.verdict for item in of_runs],
        "predictions": list(zip(*(item.predictions for item in of_runs), strict=True)),
        "rows": rows,
        "contexts": [[row for row in rows if row[0].sentence == text] for text in contexts],
        "columns": _columns(rows) if first.choices[0].is_sentence else [],
    }


def _columns(rows: Sequence[Sequence[Choice]]) -> list[tuple[str, list[list[Part] | None]]]:
    """The words of sentences that stand below each other, or the regions of conditions.

    Words are aligned from the left as far as the sentences share them, and likewise from the right.
    Each column has a name, "" for words, and for each row its part as each run has it, or None.
    """
    parts = []
    for first, *others in rows:
        known = [{part.start: part for part in choice.parts} for choice in others]
        parts.append([
            [part, *(of.get(part.start, part._replace(bits=None)) for of in known)]
            for part in first.parts
        ])  # fmt: skip
    texts = [[part[0].text for part in row] for row in parts]
    longest, shortest = max(map(len, parts)), min(map(len, parts))
    shared = 0  # words at the end
    while shared < shortest and len({row[-1 - shared] for row in texts}) == 1:
        shared += 1
    aligned = [
        [*row[: len(row) - shared], *[None] * (longest - len(row)), *row[len(row) - shared :]]
        for row in parts
    ]
    columns = map(list, zip(*aligned, strict=True))
    return [(next(cell[0].name for cell in cells if cell), cells) for cells in columns]


def representative(items: Sequence[Item]) -> list[Item]:
    """Returns all items, or of too many some of each combination of levels.

    They are spread evenly over their `order`, the worst and the best included, to show what the
    model does well and what badly; figures cannot be computed from them.
    """
    parts = sum(len(c.regions or c.spans or ()) for item in items for c in item.choices)
    most = min(MAX_LISTED, max(2, _MOST_PARTS * len(items) // parts)) if parts else MAX_LISTED
    if len(items) <= most:
        return list(items)
    groups: dict[tuple[tuple[str, str], ...], list[Item]] = {}
    for item in items:
        groups.setdefault(tuple(sorted(item.levels.items())), []).append(item)
    of_each = min(_OF_EACH, max(2, most // len(groups))) if len(groups) > 1 else most
    return [item for group in groups.values() for item in _spread(group, of_each)]


def _spread(group: Sequence[Item], n: int) -> list[Item]:
    """n items, evenly spread over their order; those without a place in it if none has one."""
    orders = [(item.order, i) for i, item in enumerate(group)]
    ordered = sorted((order, i) for order, i in orders if order is not None)
    known = [group[i] for _, i in ordered] or list(group)
    if len(known) <= n:
        return known
    return [known[round(place * (len(known) - 1) / (n - 1))] for place in range(n)]


def choose(runs: Sequence[Run], ids: Sequence[str]) -> list[Chosen]:
    """Returns the distinct contexts of chosen items, in the order in which they were named.

    Args:
        runs: runs on the same data.
        ids: of rows (`neg136-simp-4-TA`) or of contrasts (`role88-68`).

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
            paths = " or ".join(str(run.path) for run in runs)
            raise BadInput(
                f"no item {name!r}{suggest(name, set(by_id))} in {paths}: its ids are in "
                "predictions.parquet"
            )
        for sentence, of_models in by_id[name].items():
            chosen.setdefault(sentence, {}).update(of_models)
    return [
        (next(iter(of.values())), {model: of.get(model) for model in models})
        for of in chosen.values()
    ]
