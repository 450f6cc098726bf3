"""What is shown of cloze norms beside what models expect: tables, the chart, and items."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import altair as alt
from pandas import DataFrame

from lmdiag.analysis.cloze import LABELS, ClozeAnalysis, plain_word
from lmdiag.measures import MeasureName
from lmdiag.report import numbers
from lmdiag.report.charts import Plot, drawing
from lmdiag.report.charts.items import axis_of
from lmdiag.report.comparisons import comparison_grids, notes
from lmdiag.report.findings import cloze_findings
from lmdiag.report.grid import Grid, GridRow, cell_of, figure_grid, text_grid
from lmdiag.report.labels import difference_title
from lmdiag.report.output import Deferred, Fact, ItemList, Output, Section
from lmdiag.results import Figure
from lmdiag.text import visible
from lmdiag.types import UNCASED

_MOST_ITEMS = 300
_MOST_MARKS = 4_000
_MOST_WORDS = 10
_MOST_LISTED = 5
"""Items of a page, marks of a chart, words of a list of an item, and of a table of words."""


# ---- tables -------------------------------------------------------------------------------------


def model_grid(analysis: ClozeAnalysis) -> Grid:
    """Returns a row of figures per model."""
    rows = []
    for model, figures in analysis.figures.groupby("model", sort=False):
        cells = [
            cell_of(Figure(row.value, row.n, row.ci_low, row.ci_high, statistic=row.statistic))
            for row in figures.itertuples()
        ]
        rows.append(GridRow((visible(model),), 0, tuple(cells)))
    names = analysis.figures["measure"].unique()
    headings = [LABELS.get(name) or MeasureName.of(name).label for name in names]
    return figure_grid("People and models", ("model",), headings, rows)


def pair_grids(analysis: ClozeAnalysis) -> Iterator[Grid]:
    """Yields the first model against each other one: a row per measure."""
    for number, other in enumerate(analysis.models[1:], start=1):
        compared = [x for x in analysis.comparisons if x.number == number]
        base = analysis.models[0]
        for grid in comparison_grids(compared, visible(base), visible(other)):
            yield grid._replace(title=f"{difference_title(base, other)}, over the same items")


def word_grids(analysis: ClozeAnalysis, model: str) -> Iterator[Grid]:
    """Yields the words of people that a model ranks lowest, and its words that nobody said."""
    lists = {
        "words that people say and the model ranks lowest": analysis.missed(model),
        "top words that nobody said": analysis.unsaid(model),
    }
    for title, words in lists.items():
        rows = []
        for word in words.head(_MOST_LISTED).to_dict("records"):
            cells = {"item": visible(str(word["item"]))}
            if "cloze" in word:
                cells["cloze"] = numbers.probability(word["cloze"])
            rows.append(((word["word"],), cells | {"p": numbers.probability(word["probability"])}))
        if rows:
            yield text_grid(title, ("word",), rows, ("item",))


def cloze_lines(analysis: ClozeAnalysis) -> Iterator[str]:
    """Yields what was read, and how the figures were computed."""
    yield from analysis.notes
    yield (
        "mass: probability of all words that people gave; divergence: cross-entropy less the "
        "entropy of the responses; Spearman: over the words of an item, at least three"
    )
    yield "pooled Spearman: words of an item depend on each other, so there is no interval"
    yield "95% intervals over items: t, from 8 items on; Wilson's for top word agrees"
    if analysis.comparisons:
        yield "the difference in cross-entropy is that in divergence"
        yield from notes(analysis.comparisons)


def cloze_output(analysis: ClozeAnalysis) -> Output:
    """Returns what is shown of cloze norms: tables, lists of words, the chart and the items."""
    words = [
        grid._replace(title=f"{visible(model)}: {grid.title}")
        for model in analysis.models
        for grid in word_grids(analysis, model)
    ]
    n_items = len(analysis.items) // len(analysis.models)
    facts = [f"{n_items:,} items", *map(visible, analysis.models)]
    section = Section(
        "", [model_grid(analysis), *pair_grids(analysis), *words], [*cloze_lines(analysis)],
        plots=Deferred(lambda: cloze_plots(analysis)),
        lists=Deferred(lambda: [_item_list(analysis, n_items)]),
    )  # fmt: skip
    return Output(
        kind="cloze norms", title="What people say and what models expect",
        facts=[Fact(visible(Path(analysis.name).name), facts)],
        findings=cloze_findings(analysis), sections=[section],
        frame=lambda: analysis.words, document=analysis.to_json,
    )  # fmt: skip


# ---- charts -------------------------------------------------------------------------------------


def cloze_plots(analysis: ClozeAnalysis) -> list[Plot]:
    """Returns the chart of cloze against probability, with a mark per model and word."""
    words = analysis.words[analysis.words["cloze"] > 0].dropna(subset="probability")
    caption = "Probability of each word against its share of the responses, on logarithmic axes."
    if len(words) > _MOST_MARKS:
        caption += f" A random sample of {_MOST_MARKS:,} of {len(words):,} words."
        words = words.sample(_MOST_MARKS, random_state=0).sort_index()
    columns = {"cloze": words["cloze"], "probability": words["probability"], "rank": words["rank"]}
    table = DataFrame(columns).assign(
        item=[_anchor(item) for item in words["item"]],
        **{name: words[name].map(visible) for name in ("context", "word", "model")},
    )
    names = [*map(visible, analysis.models)]
    axes = {
        "x": axis_of("x", "cloze", "share of people's responses", table["cloze"], False),
        "y": axis_of("y", "probability", "model's probability", table["probability"], False),
    }
    low = max(axis["scale"]["domain"][0] for axis in axes.values())
    ends = DataFrame({"cloze": [low, 1.0], "probability": [low, 1.0]})
    line = alt.Chart(drawing.inline(ends)).mark_line(color=drawing.MUTED, strokeWidth=1)
    looks = drawing.series("model", names, color=drawing.COLORS, shape=drawing.SHAPES)
    tooltips = drawing.tooltip(table, ["item", "context", "word", "cloze", "probability", "rank"])
    marks = alt.Chart(name="items").mark_point(size=42, strokeWidth=1.3, cursor="pointer")
    layers = line.encode(**axes), marks.encode(**axes, **looks, tooltip=tooltips)
    chart = drawing.layered(table, *layers, height=300)
    caption += " On the line both are equal."
    return [Plot("cloze-norms", "cloze", caption, chart)]


# ---- the page -----------------------------------------------------------------------------------


def _anchor(item: object) -> str:
    return f"item-{visible(str(item))}"


def listed_items(analysis: ClozeAnalysis) -> list[dict[str, Any]]:
    """Returns the items of a page, from the largest mean divergence on; undefined ones last.

    `people` and `models` have the most frequent and the most probable words, each with its share
    and whether both have it.
    """
    places = analysis.items.drop_duplicates("item").set_index("item")
    divergence = analysis.items.pivot(index="item", columns="model", values="divergence")
    order = divergence.mean(axis=1).sort_values(ascending=False, kind="stable").index
    people = dict(tuple(analysis.words.drop_duplicates(["item", "word"]).groupby("item")))
    tops = dict(tuple(analysis.top_words.groupby(["item", "model"])))
    items = []
    for item in order[:_MOST_ITEMS]:
        lists = [tops.get((item, model), analysis.top_words[:0]) for model in analysis.models]
        shared = {plain_word(x, UNCASED) for of in lists for x in of["word"][of["is_said"]]}
        is_said = [plain_word(x, UNCASED) in shared for x in people[item]["word"]]
        said = people[item].assign(is_said=is_said)
        items.append({
            "anchor": _anchor(item), "label": item,
            **places.loc[item, ["context", "right_context"]],
            "divergences": divergence.loc[item, analysis.models].tolist(),
            "people": _bars(said, "cloze"), "models": [_bars(of, "probability") for of in lists],
        })  # fmt: skip
    return items


def _bars(words: DataFrame, column: str) -> list[tuple[Any, ...]]:
    """The first words of a list: word, share, whether people and a model have it."""
    return [*words[["word", column, "is_said"]][:_MOST_WORDS].itertuples(index=False, name=None)]


def _item_list(analysis: ClozeAnalysis, n_items: int) -> ItemList:
    """The items as the page lists them."""
    content = {"listed": listed_items(analysis), "models": analysis.models, "n_items": n_items}
    return ItemList("cloze_list", content)
