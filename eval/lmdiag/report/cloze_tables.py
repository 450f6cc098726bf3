"""What is shown of cloze norms, the words that people gave at blanks, beside what models expect."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from pandas import DataFrame

from lmdiag.measures import MeasureName
from lmdiag.measures.scores import without_differences
from lmdiag.report import numbers
from lmdiag.report.charts import Plot, drawing
from lmdiag.report.charts.items import FLOOR, axis_of
from lmdiag.report.charts.vega import mark
from lmdiag.report.cloze_findings import cloze_findings
from lmdiag.report.comparisons import comparison_grids, comparison_notes
from lmdiag.report.grid import Grid, GridRow, cell_of, figure_grid, text_grid
from lmdiag.report.labels import difference_title
from lmdiag.report.output import Deferred, Fact, ItemList, Output, Section
from lmdiag.results import cited_signatures
from lmdiag.results.without_figures import without_any_figure
from lmdiag.studies.cloze_norms import ClozeNorms, is_on_one_scale
from lmdiag.studies.comparison import not_compared, runs_of_other_kind
from lmdiag.text import plain_response, truncated, visible

_MOST_ITEMS = 300
"""Items of a page."""

_MOST_MARKS = 4_000
"""Marks of the chart."""

_MOST_WORDS = 10
"""Words of a list of an item."""

_MOST_LISTED = 5
"""Rows of a table of words."""

_MOST_LETTERS = 48
"""Characters of a context in a table of words."""

_POINTS: dict[str, Any] = {"size": 42, "strokeWidth": 1.3, "cursor": "pointer"}
"""The marks of the chart."""


# ---- tables -------------------------------------------------------------------------------------


def model_grid(norms: ClozeNorms) -> Grid:
    """Returns a table with a row per model and a column per measure.

    If some of the models are causal and others are not, it has only the measures that are on one
    scale for both.
    """
    results = [run.results for run in norms.runs]
    (task,) = results[0].tasks
    # the form of data with responses of people declares one table, of all measures of norms
    measures: Sequence[str] = results[0].diagnostic(task).tables[0].measures
    if runs_of_other_kind(norms.runs):
        measures = [name for name in measures if is_on_one_scale(name)]
    rows = []
    for model, result in zip(norms.models, results, strict=True):
        cells = [cell_of(result.measure(task, "none", name)) for name in measures]
        rows.append(GridRow((visible(model),), 0, tuple(cells)))
    headings = []
    for name in measures:
        figures = [result.measure(task, "none", name) for result in results]
        is_percent = any(figure and figure.is_percent for figure in figures)
        label = MeasureName.of(name).label
        headings.append(f"{label}, %" if is_percent else label)
    return figure_grid("People and models", ("model",), headings, rows)


def pair_grids(norms: ClozeNorms) -> Iterator[Grid]:
    """Yields a table for each model but the first, of its differences from the first one.

    A row is a measure, with n, both figures, the difference and the test.
    """
    base, *others = norms.models
    for number, other in enumerate(others, start=1):
        comparisons = [x for x in norms.comparisons if x.number == number]
        for grid in comparison_grids(comparisons, visible(base), visible(other)):
            yield grid._replace(title=f"{difference_title(base, other)}, over the same items")


def word_grids(norms: ClozeNorms, model: str) -> Iterator[Grid]:
    """Yields tables of the words of people that a model ranks lowest, and of those nobody said.

    The latter are top words of the model. A table without rows is left out.
    """
    words_of_table = {
        "words that people say and the model ranks lowest": norms.missed(model),
        "top words that nobody said": norms.unsaid(model),
    }
    for title, words in words_of_table.items():
        rows = []
        for record in words.head(_MOST_LISTED).to_dict("records"):
            cells = {}
            if "cloze" in record:
                cells["share"] = numbers.probability(record["cloze"])
            cells["p"] = numbers.probability(record["probability"])
            rows.append(((_in_context(record),), cells))
        if rows:
            yield text_grid(f"{visible(model)}: {title}", ("word in its context",), rows)


def _in_context(record: Mapping[str, Any]) -> str:
    """Returns a word in brackets in its context: "…to stir her coffee with a [spoon] ."

    Of a long context, what stands next to the word.

    Args:
        record: `word`, `context` and, if the item has one, `right_context`.
    """
    before = " ".join(str(record.get("context", "")).split())
    after = " ".join(str(record.get("right_context", "")).split())
    half = _MOST_LETTERS // 2
    most_before = _MOST_LETTERS - min(len(after), half)  # more beside a short right context
    if len(before) > most_before:
        # its end, with one character less for the ellipsis
        before = f"…{before[1 - most_before :]}"
    parts = (before, f"[{record['word']}]", truncated(after, half))
    return visible(" ".join(filter(None, parts)))


def how_measured(norms: ClozeNorms) -> Iterator[str]:
    """Yields lines on how the figures of models were computed.

    If some of the models are causal and others are not, `model_grid` has fewer measures.
    """
    interval = "t"
    # models of both kinds have no figures of probabilities, to which these lines belong
    if not runs_of_other_kind(norms.runs):  # all models are causal, or none is
        yield (
            "probability of human responses: of all words that people gave, together; KL "
            "divergence: bits that a response costs beyond the entropy of the responses"
        )
        yield "pooled Spearman: words of an item depend on each other, so there is no interval"
        interval = "t, for probabilities on the logit of the mean"
    yield "Spearman: over the words of an item, at least three"
    yield f"95% intervals over items: {interval}, from 8 items on; Wilson's for top word agrees"
    yield from not_compared(norms.runs)


def cloze_output(norms: ClozeNorms) -> Output:
    """Returns what is shown of cloze norms: models, items, differences, words and the chart."""
    models_section = Section(
        "People and models", [model_grid(norms)], [*how_measured(norms)],
        signatures=cited_signatures(run.results.signature for run in norms.runs),
        plots=Deferred(lambda: cloze_plots(norms)),
        lists=Deferred(lambda: [_item_list(norms)]),
    )  # fmt: skip
    sections = [models_section]
    if len(norms.runs) > 1:
        grids = [*pair_grids(norms)]
        sections.append(Section("Differences", grids, comparison_notes(norms.comparisons)))
    grids_of_words = [grid for model in norms.models for grid in word_grids(norms, model)]
    sections.append(Section("Words", grids_of_words, norms.notes))
    line = f"{norms.n_items:,} items · {', '.join(map(visible, norms.models))}"
    return Output(
        kind="cloze norms", title="What people say and what models expect",
        facts=[Fact(visible(norms.name), [line])], sections=sections,
        findings=[*_models_without_figures(norms), *cloze_findings(norms)],
        frame=lambda: norms.words, document=norms.to_json,
    )  # fmt: skip


def _models_without_figures(norms: ClozeNorms) -> Iterator[str]:
    """Yields a sentence for each model that has no figure, with the reason."""
    for name, run in zip(norms.models, norms.runs, strict=True):
        yield from without_any_figure(run.results, name)


# ---- charts -------------------------------------------------------------------------------------


def cloze_plots(norms: ClozeNorms) -> list[Plot]:
    """Returns the chart of cloze against probability, with a mark per model and word.

    Of very many words it has a random sample, which is always the same.
    """
    words = norms.words[norms.words["cloze"] > 0].dropna(subset="probability")
    caption = "Probability of each word against its share of the responses, on logarithmic axes."
    if len(words) > _MOST_MARKS:
        caption += f" A random sample of {_MOST_MARKS:,} of {len(words):,} words."
        words = words.sample(_MOST_MARKS, random_state=0).sort_index()
    caption += " On the line both are equal."
    if n_below := int((words["probability"] < FLOOR).sum()):
        caption += f" {n_below:,} words with p < {FLOOR:g} stand on the floor."  # end of the axis
    columns = {"cloze": words["cloze"], "probability": words["probability"], "rank": words["rank"]}
    table = DataFrame(columns).assign(
        item=[_anchor(item) for item in words["item"]],
        **{name: words[name].map(visible) for name in ("context", "word", "model")},
    )
    axes = {
        "x": axis_of("cloze", "share of people's responses", table["cloze"], is_bits=False),
        "y": axis_of("probability", "model's probability", table["probability"], is_bits=False),
    }
    # the line of equal values, from the lowest value that is on both axes
    low = max(axis["scale"]["domain"][0] for axis in axes.values())
    line_ends = DataFrame({"cloze": [low, 1.0], "probability": [low, 1.0]})
    line = mark("line", axes, color=drawing.MUTED, strokeWidth=1)
    models = [*map(visible, norms.models)]
    styles = drawing.series("model", models, color=drawing.COLORS, shape=drawing.SHAPES)
    tooltips = drawing.tooltip(table, ["item", "context", "word", "cloze", "probability", "rank"])
    points = mark("point", axes | styles | {"tooltip": tooltips}, **_POINTS)
    # the page's script finds the marks by their name
    layers = {"data": drawing.inline(line_ends), **line}, {"name": "items", **points}
    chart = drawing.layered(table, *layers, height=300)
    return [Plot("cloze-norms", "cloze", caption, chart)]


# ---- the page -----------------------------------------------------------------------------------


def _anchor(item: object) -> str:
    """Returns the id of an item in the page, which links point to: "item-3"."""
    return f"item-{visible(str(item))}"


def listed_items(norms: ClozeNorms) -> list[dict[str, Any]]:
    """Returns the items of a page, from the largest mean divergence on; undefined ones last.

    Of models whose divergences are not on one scale they have the order of the data.

    Returns:
        For each item `anchor`, its id in the page; `label`, `context` and `right_context`;
        `divergences`, one per model; `people`, the most frequent words with share, whether a
        model's list has the word, and its probability in each model; `models`, for each the most
        probable words with probability, and whether people said the word.
    """
    # the order of the items
    item_rows = norms.items.drop_duplicates("item").set_index("item")
    divergence = norms.items.pivot(index="item", columns="model", values="divergence")
    order = item_rows.index
    if not runs_of_other_kind(norms.runs):
        means = divergence.mean(axis=1)[order]
        order = means.sort_values(ascending=False, kind="stable").index
    # of each item, the responses of people and the top words of each model
    (rows,) = norms.runs[0].stimuli.values()
    columns = {name: rows.columns()[name] for name in ("item", "target", "cloze")}
    responses = DataFrame(columns).rename(columns={"target": "word"})
    responses_to = dict(tuple(responses.groupby("item")))
    top_words_of = dict(tuple(norms.top_words.groupby(["item", "model"])))
    probability_of = _probabilities(norms)
    items = []
    for item in order[:_MOST_ITEMS]:
        # a model without words for the item has an empty list
        lists = [top_words_of.get((item, model), norms.top_words[:0]) for model in norms.models]
        shared_words = set()  # words that people said and that are in the list of a model
        for top_words in lists:
            said_words = top_words["word"][top_words["is_said"]]
            shared_words |= {_plain(word) for word in said_words}
        is_said = [_plain(word) in shared_words for word in responses_to[item]["word"]]
        people_words = responses_to[item].assign(is_said=is_said)
        people_words = people_words.sort_values("cloze", ascending=False, kind="stable")
        people = []
        for word, share, is_shared in _first_words(people_words, "cloze"):
            keys = [(model, item, _plain(word)) for model in norms.models]
            people.append((word, share, is_shared, [probability_of.get(key) for key in keys]))
        items.append({
            "anchor": _anchor(item), "label": item,
            **item_rows.loc[item, ["context", "right_context"]],
            "divergences": divergence.loc[item, norms.models].tolist(),
            "people": people,
            "models": [_first_words(top_words, "probability") for top_words in lists],
        })  # fmt: skip
    return items


def _probabilities(norms: ClozeNorms) -> dict[tuple[str, Any, str], float]:
    """Returns (model, item, word) -> probability, where it is known.

    Words are without case and accents, as `_plain` returns them: {("gpt2", "3", "cafe"): 0.12}.
    """
    words = norms.words.dropna(subset="probability")
    keys = zip(words["model"], words["item"], words["word"].map(_plain), strict=True)
    return dict(zip(keys, words["probability"], strict=True))


def _plain(word: str) -> str:
    """Returns a response without final punctuation, case and accents: "Café." becomes "cafe"."""
    return without_differences(plain_response(word))


def _first_words(words: DataFrame, column: str) -> list[tuple[Any, ...]]:
    """Returns the first words of a list: word, number, whether people and a model both have it.

    For example, [("spoon", 0.61, True), ("stick", 0.12, False)].

    Args:
        words: columns `word`, `is_said`, and the one with the number.
        column: with the number, a share of responses or a probability.
    """
    columns = words[["word", column, "is_said"]]
    return [*columns[:_MOST_WORDS].itertuples(index=False, name=None)]


def _item_list(norms: ClozeNorms) -> ItemList:
    """Returns the list of items on the page: the name of a macro, and what it takes.

    `measured` has the models whose divergences stand beside an item: all, or none if they are not
    on one scale.
    """
    models_with_figures = [] if runs_of_other_kind(norms.runs) else norms.models
    content = {"listed": listed_items(norms), "models": norms.models, "n_items": norms.n_items}
    return ItemList("cloze_list", content | {"measured": models_with_figures})
