"""Fits to human measures: a table in several formats, charts, and a page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import altair as alt
import numpy as np
from pandas import DataFrame, concat

from lmdiag import stats
from lmdiag.analysis.fit import HumanFit
from lmdiag.analysis.regression import names_in, sides
from lmdiag.report.charts import Plot, drawing
from lmdiag.report.charts.drawing import COLORS, distinct, numeric
from lmdiag.report.formats import render_tables
from lmdiag.report.grid import CellText, Grid, GridRow, Section, figure_headings
from lmdiag.report.numbers import decimals, p_value
from lmdiag.report.page import environment, frame
from lmdiag.text import csv_cell, visible

_Row = dict[str, Any]

_LEAST, _FEW = 10, 500
"""Rows of a bin of surprisals that is drawn; rows up to which every one is drawn."""


# ---- tables -------------------------------------------------------------------------------------


def fit_grid(fit: HumanFit) -> Grid:
    """Returns a row of texts per model."""
    rows, labels = [], dict[str, str]()
    for model in fit.models:
        labels = {
            "n": f"{model.n:,}", "delta log-lik.": f"{model.delta_log_likelihood:.3f}",
            "per word": f"{model.per_word:.5f}",
            "95% interval": f"[{model.ci_low:.5f}, {model.ci_high:.5f}]", "p": p_value(model.p),
            "AIC": f"{model.aic:.2f}", "baseline AIC": f"{model.baseline_aic:.2f}",
            "mean surprisal": f"{model.mean_surprisal:.3f}", "per bit": f"{model.per_bit:.4g}",
        }  # fmt: skip
        texts = (text.replace("-", "−") for text in labels.values())
        cells = tuple(CellText("" if "nan" in text.lower() else text) for text in texts)
        rows.append(GridRow((visible(model.name),), 0, cells))
    caption = f"{visible(sides(fit.full)[0])}: predictive power of surprisal"
    return Grid(caption, ("model",), figure_headings(*labels), tuple(rows))


def method_lines(fit: HumanFit) -> Iterator[str]:
    """Yields how the figures were computed, and warnings."""
    how = fit.table.procedure
    held_out = f", {how.folds} contiguous folds" if how.folds else ", in sample"
    yield f"full model: {fit.full}{', maximum likelihood' if fit.is_mixed else held_out}"
    yield f"baseline: {fit.baseline}, on the same rows"
    if fit.is_mixed:
        yield (
            "rows of a mixed model depend on each other, so there is no interval over rows; p is "
            "the likelihood-ratio test of the two models, conservative where variances are left out"
        )
    yield f"surprisals in {how.units or 'bits'}; per bit: units of the response per bit"
    yield from fit.notes
    for model in fit.models:
        names = (("Pearson", model.pearson), ("Spearman", model.spearman))
        figures = (f"{n} {_bounded(e.value, e.ci_low, e.ci_high, 3)}" for n, e in names)
        yield f"{model.name}: correlation of response and surprisal: {', '.join(figures)}"
    yield from (f"{model.name}: {model.warning}" for model in fit.models if model.warning)


def fit_section(fit: HumanFit) -> Section:
    """Returns what a terminal shows: the table, and in lines what a page has as further tables."""
    lines = [*method_lines(fit)]
    for model in fit.models:
        reasons = ", ".join(f"{reason} {n:,}" for reason, n in model.left_out.items())
        lines += [f"{model.name}: rows left out: {reasons}"] if reasons else []
    for pair in fit.comparisons:
        apart = _bounded(pair.difference, pair.ci_low, pair.ci_high, 5)
        lines.append(
            f"{pair.first} minus {pair.second}, per word: {apart}, p {p_value(pair.p)}, adjusted "
            f"by Holm {p_value(pair.p_adjusted)}"
        )
    return Section("", [fit_grid(fit)._replace(title="")], lines, signatures=[fit.signature])


def _bounded(value: float, low: float, high: float, digits: int) -> str:
    return f"{decimals(value, digits)} [{decimals(low, digits)}, {decimals(high, digits)}]"


def as_text(fit: HumanFit, form: str) -> str:
    """Returns the table as csv (all digits), LaTeX or Markdown."""
    if form == "csv":
        return str(fit.to_frame().map(csv_cell).to_csv(index=False, lineterminator="\n"))
    return render_tables(form, [], designs=[fit_grid(fit)])


def words_as_csv(fit: HumanFit) -> str:
    """Returns a row per model and fitted row: where it stands, response, surprisal, residual."""
    how, frames = fit.table.procedure, []
    for model in fit.models:
        rows = model.words.index
        columns: _Row = {"model": csv_cell(model.name), "row": fit.table.frame.index[rows]}
        for place in ("text", "sentence", "position", "word"):
            if name := getattr(how, place):
                columns[place] = fit.table.texts(name)[rows].map(csv_cell).to_numpy()
        frames.append(DataFrame(columns, rows).join(model.words))
    return str(concat(frames).to_csv(index=False, lineterminator="\n"))


# ---- charts -------------------------------------------------------------------------------------


def human_plots(fit: HumanFit) -> list[Plot]:
    """Returns the charts: predictive power of models, response by surprisal, coefficients."""
    left, word = sides(fit.full)[0], fit.table.procedure.word
    response = visible(names_in(left)[0])
    title = f"delta log-likelihood per {'row' if fit.is_mixed else 'word'}"
    power, terms, responses = list[_Row](), list[_Row](), list[DataFrame]()
    is_few = fit.models[0].n <= _FEW
    for number, model in enumerate(fit.models):
        name = {"model": visible(model.name)}
        bounds = {} if fit.is_mixed else {"low": model.ci_low, "high": model.ci_high}
        place = {"surprisal": model.mean_surprisal, "value": model.per_word, "n": model.n}
        power.append(name | place | bounds)
        for term in model.terms[1:]:
            ends = dict(zip(("low", "high"), term.interval, strict=True))
            terms.append(name | {"term": visible(term.term), "value": term.estimate} | ends)
        points = model.words[["surprisal"]].assign(value=model.words["response"], **name)
        if is_few:
            points["row"] = fit.table.frame.index[points.index]
            if word in fit.table.frame.columns:
                points["word"] = fit.table.texts(word)[points.index].map(visible).to_numpy()
        aside = 0.5 + 0.6 * ((number + 0.5) / len(fit.models) - 0.5)  # side by side within a bin
        responses.append(points if is_few else _binned(points, aside).assign(**name))
    lines = " Lines are 95% intervals."
    shown = "a mark per row" if is_few else f"means of bins of one bit with at least {_LEAST} rows"
    power_caption = f"Predictive power: {title} against mean surprisal, a mark per model."
    binned_caption = f"{response} by surprisal: {shown}."
    terms_caption = f"Coefficients of the full model, {visible(left)} per unit of the predictor."
    by_mean = _marks(DataFrame(power), "surprisal", "mean surprisal, bits", title)
    by_bits = _marks(concat(responses), "surprisal", "surprisal, bits", response)
    by_term = _marks(DataFrame(terms), "term", "", "coefficient")
    return [
        Plot("human", "power", power_caption + lines * (not fit.is_mixed), by_mean),
        Plot("human", "binned", binned_caption + lines * (not is_few), by_bits),
        Plot("human", "coefficients", terms_caption + lines, by_term),
    ]


def _binned(points: DataFrame, aside: float) -> DataFrame:
    """Means of the values in bins of one bit; `aside` is their place in the bin."""
    means = []
    for start, values in points.groupby(np.floor(points["surprisal"]))["value"]:
        if len(values) >= _LEAST:
            low, high = stats.mean_interval(values.to_numpy())
            means.append((start + aside, values.mean(), low, high, len(values)))
    return DataFrame(means, columns=["surprisal", "value", "low", "high", "n"])


def _marks(data: DataFrame, by: str, by_title: str, title: str) -> Any:
    """Values with intervals: up and down over numbers, or left and right beside names."""
    is_named, models = by == "term", distinct(data, "model")
    on, height = ("x", max(40, 14 * len(data) + 8 * data[by].nunique())) if is_named else ("y", 240)
    channels = drawing.series("model", models, color=COLORS)
    channels[on] = numeric(on, "value", percent=False, title=title, zero=is_named)
    if is_named:
        channels["y"] = drawing.labels(data, by)
        channels["yOffset"] = alt.YOffset("model:N", sort=models)
    else:
        channels["x"] = numeric("x", by, percent=False, title=by_title, zero=False, padding=8)
    columns = "model, row, word, n, term, surprisal, value, low, high"
    marks = drawing.points(data, on, channels, columns, ".4~g")
    return drawing.layered(data, *marks, height=height)


# ---- the page -----------------------------------------------------------------------------------


def human_page(fit: HumanFit) -> str:
    """Returns the page of a fit.

    Raises:
        BadInput: a data file of the package is missing.
    """
    return environment().get_template("human.html.j2").render(
        title=f"{visible(sides(fit.full)[0])} and surprisal", fit=fit, grid=fit_grid(fit),
        names=[model.name for model in fit.models], plots=human_plots(fit),
        reasons=list(dict.fromkeys(reason for m in fit.models for reason in m.left_out)),
        remarks=list(method_lines(fit)),
        **frame("report", charts=True),
    )  # fmt: skip
