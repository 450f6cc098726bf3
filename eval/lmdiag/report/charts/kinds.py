"""The kinds of charts that a diagnostic can declare, filled from its runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.hub.text import visible
from lmdiag.report import numbers
from lmdiag.report.charts import curves, intervals, probabilities
from lmdiag.report.charts.parts import Datum, Spec
from lmdiag.report.items import BLANK, MOST, Choice, Item, run_scores
from lmdiag.report.labels import SETTINGS, label, level_label
from lmdiag.report.layouts import Place
from lmdiag.report.records import Cell
from lmdiag.report.tables import Source

if TYPE_CHECKING:
    from lmdiag.results import Run


class Chart(NamedTuple):
    """A chart that a diagnostic declares: its kind, its title, and what it is restricted to."""

    kind: str
    title: str = ""
    by: str = ""
    levels: tuple[str, ...] = ()
    measure: str = ""


class Plot(NamedTuple):
    """A chart with its data.

    Attributes:
        kind: see `KINDS`.
        name: unique among the charts of a report; the name of its file.
        caption: what it shows and how to read it.
        spec: the Vega-Lite specification.
    """

    kind: str
    name: str
    caption: str
    spec: Spec


@dataclass(frozen=True)
class Charted:
    """What the charts of one task are made from.

    Attributes:
        task: its name.
        runs: the runs that have it.
        sources: the same runs as tables see them.
        items: the unperturbed items of each run, parallel to `runs`.
    """

    task: str
    runs: Sequence[Run]
    sources: Sequence[Source]
    items: Sequence[Sequence[Item]]

    def figure(self, place: Place, run: int = 0) -> Cell | None:
        """Returns the figure at a place of a run."""
        return self.sources[run].cell(self.task, place)

    @property
    def measures(self) -> Mapping[str, Mapping[str, object]]:
        """The measures of the first run without perturbation."""
        settings = self.runs[0].results["tasks"][self.task]
        return settings["none"]["measures"] if "none" in settings else {}

    def names(self, *prefixes: str) -> list[str]:
        """The measures whose name begins with one of the prefixes."""
        return [name for name in self.measures if name.startswith(prefixes)]

    def row(self, label: str, series: str, place: Place, run: int = 0) -> list[Datum]:
        """The figure at a place as a row of a chart; none if it is not there or not defined."""
        cell = self.figure(place, run)
        if cell is None or cell.value is None:
            return []
        published = cell.published and cell.published.figure.value / 100
        return [
            {
                "label": label, "series": series, "value": cell.value, "low": cell.low,
                "high": cell.high, "sd": cell.sd, "n": cell.n, "chance": cell.chance,
                "published": published,
            }
        ]  # fmt: skip

    def each_run(self) -> Iterator[tuple[int, str, str]]:
        """Number, suffix of names and beginning of captions of each run; "" for a single one."""
        several = len(self.runs) > 1
        for i, source in enumerate(self.sources):
            yield i, f"-{i + 1}" if several else "", f"{source.label}: " if several else ""


def plots(charted: Charted, declared: Sequence[Chart]) -> list[Plot]:
    """Returns the charts of a task that its runs have data for, in the order of declaration."""
    return [
        plot._replace(name=f"{charted.task}-{plot.name}")
        for chart in declared
        for plot in KINDS[chart.kind](charted, chart)
    ]


# ---- figures -------------------------------------------------------------------------------------


def _figures(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """Accuracy and sensitivity: of one run in all settings, of several runs unperturbed."""
    names = charted.names("accuracy@", "sensitivity")
    if len(charted.runs) > 1:
        kinds = [(source.label, "none", "", i) for i, source in enumerate(charted.sources)]
    else:
        settings = charted.runs[0].results["tasks"][charted.task]
        kinds = [(text, name, "", 0) for name, text in SETTINGS.items() if name in settings]
        kinds.append(("Human (cloze)", "none", "human_", 0))
    rows = [
        row
        for name in names
        for series, setting, prefix, i in kinds
        for row in charted.row(label(name), series, Place(setting, prefix + name), i)
    ]
    yield from _dotted(chart.kind, "measures", chart.title or "Accuracy and sensitivity", rows)


def _levels(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """The levels of a break-down: all measures of one run, or the first measure of several runs."""
    names = charted.names(chart.measure) if chart.measure else charted.names("accuracy@", "sensi")
    several = len(charted.runs) > 1
    rows = [
        row
        for level in chart.levels
        for i, source in enumerate(charted.sources)
        for name in (names[:1] if several else names)
        for row in charted.row(
            level_label(chart.by, level).replace(", ", "\n"),
            source.label if several else label(name),
            Place("none", name, chart.by, level),
            i,
        )
    ]
    title = f"{chart.title} ({label(names[0])})" if several and names else chart.title
    yield from _dotted(chart.kind, f"{_slug(chart.by)}-{_slug(chart.measure)}", title, rows)


def _constructions(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """MW, EW and TSE of each construction: of one run together, of several runs MW alone."""
    names = [name for name in ("mw", "ew", "tse") if name in charted.measures]
    several = len(charted.runs) > 1
    rows = [
        row
        for level in _levels_of(charted, names, "construction")
        for i, source in enumerate(charted.sources)
        for name in (names[:1] if several else names)
        for row in charted.row(
            level_label("construction", level).replace(", ", ",\n"),
            source.label if several else label(name),
            Place("none", name, "construction", level),
            i,
        )
    ]
    title = f"{label(names[0])} by construction" if several and names else "By construction"
    yield from _dotted(chart.kind, "constructions", title, rows)


def _levels_of(charted: Charted, names: Sequence[str], by: str) -> list[str]:
    found = (charted.measures[name].get("by", {}) for name in reversed(names))
    return next((list(each[by]) for each in found if isinstance(each, dict) and by in each), [])


def _dotted(kind: str, name: str, title: str, rows: Sequence[Datum]) -> Iterator[Plot]:
    if rows:
        yield Plot(kind, name.strip("-"), f"{title}. {legend_of(rows)}", intervals.dots(rows))


def legend_of(rows: Sequence[Datum]) -> str:
    """Returns what the marks of `intervals.dots` mean, as far as the rows have them."""
    present = {key for row in rows for key, value in row.items() if value is not None}
    parts = {
        "low": "lines are 95% intervals over items",
        "sd": "thick lines ± one standard deviation over shuffles",
        "published": "◇ is the published figure",
        "chance": "the upright line is chance",
    }
    text = ", ".join(part for key, part in parts.items() if key in present)
    return f"{text[:1].upper()}{text[1:]}." if text else ""


# ---- probabilities -------------------------------------------------------------------------------


def _scatter(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """Good against bad completions, a chart per run."""
    for i, suffix, beginning in charted.each_run():
        known = [
            item
            for item in charted.items[i]
            if item.difference is not None
            and (not chart.by or item.levels.get(chart.by) in chart.levels)
        ]
        beginning += f"{chart.title}. " if chart.title else ""
        name = f"pairs{f'-{_slug(chart.title)}' if chart.title else ''}{suffix}"
        if len(known) > MOST:
            caption = (
                f"{beginning}p(good) against p(bad) of {len(known):,} contrasts; the darker, the "
                "more contrasts. Above the diagonal the model prefers the good completion."
            )
            pairs = ([item.good or 0.0 for item in known], [item.bad or 0.0 for item in known])
            yield Plot("density", name, caption, probabilities.density(*pairs))
        elif known:
            threshold = charted.runs[i].results["protocol"]["threshold"]
            caption = (
                f"{beginning}p(good) against p(bad), one mark per contrast. Above the diagonal the "
                "model prefers the good completion, above the dashed curve by more than "
                f"{threshold:g}."
            )
            rows = [pair_row(item, threshold) for item in known]
            yield Plot(chart.kind, name, caption, probabilities.scatter(rows, threshold))


def pair_row(item: Item, threshold: float) -> Datum:
    """Returns a contrast as a row of `probabilities.scatter`."""
    good = next(choice for choice in item.choices if choice.good)
    bad = max((c for c in item.choices if not c.good), key=lambda c: c.probability or 0.0)
    verdict = f"good by > {threshold:g}" if item.by_threshold else "good"
    return {
        "item": visible(item.id),
        "context": _sentence(good),
        "good": visible(good.target),
        "bad": visible(bad.target),
        "p_good": good.probability,
        "p_bad": bad.probability,
        "rank_good": good.rank,
        "rank_bad": bad.rank,
        "verdict": verdict if item.prefers_good else "bad",
    }


def _sentence(choice: Choice) -> str:
    return visible(f"{choice.context} {BLANK} {choice.right_context}".rstrip())


def _cloze(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """Model probability against human cloze probability, a chart per run."""
    for i, suffix, beginning in charted.each_run():
        columns = charted.runs[i].stimuli[charted.task].columns()
        if "target_cloze" not in columns:
            return
        cloze = dict(zip(columns["id"], columns["target_cloze"], strict=True))
        rows: list[Datum] = [
            {
                "item": visible(item.id), "context": _sentence(choice), "cloze": cloze[choice.id],
                "word": visible(choice.target), "p": choice.probability, "rank": choice.rank,
                "kind": "appropriate" if choice.good else "reversed",
            }
            for item in charted.items[i]
            for choice in item.choices
            if choice.probability is not None
        ]  # fmt: skip
        correlations = ", ".join(
            f"{name.title()} {numbers.figure(cell.value, percent=False)}"
            for name in ("spearman", "pearson")
            if (cell := charted.figure(Place("none", name), i))
        )
        caption = (
            f"{beginning}Probability of the target: model and human cloze. "
            f"Correlation of log p and cloze: {correlations}."
        )
        if rows:
            yield Plot(chart.kind, f"cloze{suffix}", caption, probabilities.cloze(rows))


# ---- shuffles ------------------------------------------------------------------------------------


def _shuffles(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """Accuracy in each shuffle, a chart per run."""
    for i, suffix, beginning in charted.each_run():
        settings = charted.runs[i].results["tasks"][charted.task]
        rows = [
            row
            for name in charted.names("accuracy@")
            for setting, plain in (("shuf", "none"), ("shuf_trunc", "trunc"))
            if setting in settings
            for row in _shuffled(charted, i, name, (setting, plain))
        ]
        if rows:
            times = max(row["runs"] for row in rows if "runs" in row)
            caption = (
                f"{beginning}Accuracy in {times} shuffles of sentence 1: the larger a circle, the "
                "more shuffles had this value. Below: mean ± one standard deviation; dashed: not "
                "shuffled."
            )
            yield Plot(chart.kind, f"shuffles{suffix}", caption, intervals.shuffles(rows))


def _shuffled(charted: Charted, i: int, name: str, settings: tuple[str, str]) -> Iterator[Datum]:
    """How often each value occurred, and the mean beside the figure without shuffling."""
    run, (setting, plain_setting) = charted.runs[i], settings
    cell = charted.figure(Place(setting, name), i)
    if cell is None or cell.value is None:
        return
    numbers_of_runs = sorted(n for found, n in run.predictions[charted.task] if found == setting)
    values = [
        float(run_scores(run, charted.task, setting, n)[name].values.mean())
        for n in numbers_of_runs
    ]
    text = f"{SETTINGS[setting]}, {label(name)}"
    for value, count in sorted(Counter(values).items()):
        yield {"label": text, "value": value, "count": count}
    plain = charted.figure(Place(plain_setting, name), i)
    published = cell.published and cell.published.figure.value / 100
    yield {
        "label": text, "mean": cell.value, "sd": cell.sd, "published": published,
        "plain": plain and plain.value, "runs": len(values),
    }  # fmt: skip


# ---- cut-offs ------------------------------------------------------------------------------------


def _cutoffs(charted: Charted, chart: Chart) -> Iterator[Plot]:
    """EW and MW over cut-offs: of one run together, of several runs a chart per measure."""
    if not charted.names("ew@"):
        return
    several = len(charted.runs) > 1
    for measures in (("mw",), ("ew",)) if several else (("mw", "ew"),):
        title = " and ".join(map(label, measures))
        rows = _cutoff_rows(charted, measures)
        yield Plot(
            chart.kind,
            f"cutoffs-{'-'.join(measures)}",
            f"{title} over the verbs in the top of the distribution, then over those in its "
            "bottom. Bands are 95% intervals, the dashed line is chance.",
            curves.cutoffs(rows),
        )
    levels = [] if several else _levels_of(charted, ["ew"], "construction")
    rows = [
        {**row, "panel": level_label("construction", level)}
        for level in levels
        for row in _cutoff_rows(charted, ("mw", "ew"), level)
    ]
    if rows:
        caption = (
            "MW and EW by cut-off for each construction; left of the line top, right of it bottom."
        )
        yield Plot(chart.kind, "cutoffs-constructions", caption, curves.cutoffs(rows))


def _cutoff_rows(charted: Charted, measures: Sequence[str], level: str = "") -> list[Datum]:
    several, by = len(charted.runs) > 1, "construction" if level else ""
    return [
        {**row, "end": end, "cutoff": float(cutoff)}
        for measure in measures
        for i, source in enumerate(charted.sources)
        for end in ("top", "bottom")
        for name in charted.names(f"{measure}@{end}=")
        for cutoff in [name.partition("=")[2]]
        for row in charted.row(
            "", source.label if several else label(measure), Place("none", name, by, level), i
        )
    ]


def _slug(text: str) -> str:
    """Text as a part of a file name."""
    return "".join(c if c.isascii() and c.isalnum() else "-" for c in text.lower()).strip("-")


KINDS: Mapping[str, Callable[[Charted, Chart], Iterator[Plot]]] = {
    "figures": _figures,
    "levels": _levels,
    "scatter": _scatter,
    "cloze": _cloze,
    "shuffles": _shuffles,
    "cutoffs": _cutoffs,
    "constructions": _constructions,
}
"""Kind of a declared chart -> the function that makes it."""
