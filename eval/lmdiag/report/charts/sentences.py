"""The charts of sentences: good against bad ones, and surprisal region by region."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from lmdiag import stats
from lmdiag.diagnostics import Chart
from lmdiag.report.charts import specs
from lmdiag.report.charts.charted import Charted, name_part
from lmdiag.report.charts.specs import Datum, Plot
from lmdiag.report.items import MAX_LISTED, Item
from lmdiag.text import visible

_UNFOLDED = 6
"""Suites whose charts are shown at once; of more, all are folded."""


def sentence_pairs(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """Yields the surprisal of good against bad sentences, a chart per run."""
    for i, suffix, beginning in charted.each_run():
        known = [item for item in charted.items[i] if item.difference is not None]
        reading = "Below the diagonal the model prefers the good sentence."
        what = f"{beginning}Surprisal of the good against the bad sentence"
        if len(known) > MAX_LISTED:
            caption = f"{what}, {len(known):,} contrasts; the darker, the more. {reading}"
            good, bad = ([-getattr(item, name) for item in known] for name in ("good", "bad"))
            spec = charted.painted(specs.density(good, bad, in_bits=True), i)
            yield Plot("density", f"pairs{suffix}", caption, spec)
        elif known:
            caption = f"{what}, one mark per contrast. {reading}"
            spec = charted.painted(specs.surprisal_scatter([_pair(item) for item in known]), i)
            yield Plot(chart.kind, f"pairs{suffix}", caption, spec)


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
    """Yields the mean surprisal of each region in each condition, a chart per suite and run."""
    for i, suffix, beginning in charted.each_run():
        suites: dict[str, list[Item]] = {}
        for item in charted.items[i]:
            suites.setdefault(item.levels.get(chart.by, ""), []).append(item)
        for number, (suite, items) in enumerate(suites.items(), start=1):
            name = visible(charted.diagnostic.level_label(chart.by, suite)) or charted.task
            caption = f"{beginning}{name}: mean surprisal by region. Lines are 95% intervals."
            if rows := _means(items):
                spec = charted.painted(specs.region_lines(rows), i)
                folded = len(suites) > _UNFOLDED
                file = "-".join(filter(None, ("regions", str(number), name_part(suite))))
                yield Plot(chart.kind, f"{file}{suffix}", caption, spec, folded)


def _means(items: list[Item]) -> list[Datum]:
    """The mean over items of each region that is not empty, in each condition, in their order."""
    values: dict[tuple[str, str], list[float]] = {}
    for choice in (choice for item in items for choice in item.choices):
        for part in choice.parts:
            place = values.setdefault((choice.condition, part.name), [])
            if part.bits is not None:
                place.append(part.bits)
    rows = []
    for (condition, region), found in values.items():
        if found:
            estimate = stats.estimate(np.array(found), "mean")
            rows.append(
                {
                    "region": visible(region), "condition": visible(condition),
                    "value": estimate.value, "low": estimate.ci_low, "high": estimate.ci_high,
                    "n": estimate.n,
                }
            )  # fmt: skip
    order = list(dict.fromkeys(visible(region) for _, region in values))
    return sorted(rows, key=lambda row: order.index(row["region"]))
