"""The charts of sentences: good against bad ones, and surprisal region by region."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from lmdiag import stats
from lmdiag.analysis.designs import within_item_intervals
from lmdiag.diagnostics import Chart
from lmdiag.formulas import parse_formula
from lmdiag.report.charts import specs
from lmdiag.report.charts.charted import Charted, name_part
from lmdiag.report.charts.specs import Datum, Plot
from lmdiag.report.items import MAX_LISTED, Item
from lmdiag.text import visible

_UNFOLDED = 6
"""Suites whose charts are shown at once; of more, all are folded."""


def sentence_pairs(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """Yields the surprisal of good against bad sentences, a chart per run."""
    known = [[item for item in of if item.difference is not None] for of in charted.items]
    reach = [-value for of in known for item in of for value in (item.good, item.bad) if value]
    reading = "Below the diagonal the model prefers the good sentence."
    what = "Surprisal of the good against the bad sentence"
    for i, items in enumerate(known):
        if len(items) > MAX_LISTED:
            caption = f"{what}, {len(items):,} contrasts; the darker, the more. {reading}"
            good, bad = ([-getattr(item, name) for item in items] for name in ("good", "bad"))
            spec = specs.density(good, bad, in_bits=True)
            yield charted.of_run(i, "density", "pairs", caption, spec)
        elif items:
            caption = f"{what}, one mark per contrast. {reading}"
            spec = specs.surprisal_scatter([_pair(item) for item in items], reach)
            yield charted.of_run(i, chart.kind, "pairs", caption, spec)


def _pair(item: Item) -> Datum:
    """A contrast as a row of `specs.surprisal_scatter`."""
    good = next(choice for choice in item.choices if choice.good)
    bad = min((c for c in item.choices if not c.good), key=lambda c: c.bits or 0.0)
    return {
        "item": visible(item.id),
        "context": visible(good.context),
        "other": visible(bad.context),
        "good": good.bits,
        "bad": bad.bits,
        "verdict": "good" if item.prefers_good else "bad",
    }


def suite_regions(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """Yields the mean surprisal of each region in each condition, a chart per suite."""
    suites: dict[str, list[Datum]] = {}
    for source, items in zip(charted.sources, charted.items, strict=True):
        by_suite: dict[str, list[Item]] = {}
        for item in items:
            by_suite.setdefault(item.levels.get(chart.by, ""), []).append(item)
        for suite, of_suite in by_suite.items():
            rows = ({**row, "model": source.label} for row in _means(of_suite))
            suites.setdefault(suite, []).extend(rows)
    for number, (suite, shown) in enumerate(suites.items(), start=1):
        if not shown:
            continue
        name = visible(charted.diagnostic.level_label(chart.by, suite)) or charted.task
        caption = f"{name}: mean surprisal by region. Lines are 95% intervals within items."
        if 0 < sum(row["named"] for row in shown) < len(shown):
            caption += " Only the regions that the predictions read are shown."
        file = "-".join(filter(None, ("regions", str(number), name_part(suite))))
        yield Plot(chart.kind, file, caption, specs.region_lines(shown), len(suites) > _UNFOLDED)


def _means(items: list[Item]) -> Iterator[Datum]:
    """Yields the mean of each region in each condition, with its interval within items.

    The mean is over the items that have the region in all conditions that any item has it in.
    """
    read = _regions_read(items)
    values: dict[str, dict[str, dict[str, float]]] = {}  # region -> condition -> item -> bits
    for item in items:
        for choice in item.choices:
            for part in choice.parts:
                of_region = values.setdefault(part.name, {})
                if part.bits is not None:
                    of_region.setdefault(choice.condition, {})[item.id] = part.bits
    for region, of_region in values.items():
        complete = [item.id for item in items if all(item.id in v for v in of_region.values())]
        if not complete or not of_region:
            continue
        bits = np.array([[of[name] for of in of_region.values()] for name in complete])
        for condition, column, (low, high) in zip(of_region, bits.T, _bounds(bits), strict=True):
            yield {
                "region": visible(region), "condition": visible(condition), "n": len(complete),
                "value": float(column.mean()), "low": low, "high": high,
                "named": None in read or region.partition(" ")[0] in read,
            }  # fmt: skip


def _bounds(bits: np.ndarray[Any, Any]) -> list[tuple[float, float]]:
    """The interval of each column: within items, or of a mean where there is a single column."""
    n, columns = bits.shape
    if n < 2 or columns < 2:
        return [stats.mean_interval(column) if n > 1 else (np.nan, np.nan) for column in bits.T]
    return within_item_intervals(bits)


def _regions_read(items: list[Item]) -> set[str | None]:
    """Numbers of the regions that the predictions read; None for whole sentences."""
    formulas = {formula for item in items for formula, _ in item.predictions}
    regions = (region for text in formulas for region in parse_formula(text).regions)
    return {None if region.number is None else str(region.number) for region in regions}
