"""Fits to human measures: a table in several formats, charts, and a page."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from lmdiag import stats
from lmdiag.analysis.regression import names_in, sides, term_interval
from lmdiag.report.charts.specs import Plot, Spec
from lmdiag.report.formats import latex_text, markdown_text
from lmdiag.report.numbers import p_value
from lmdiag.report.page import environment, frame
from lmdiag.text import csv_cell, visible

if TYPE_CHECKING:
    from lmdiag.analysis.fit import HumanFit, ModelFit

_HEADER = (
    "model", "n", "delta log-lik.", "per word", "95% interval", "p", "AIC", "baseline AIC",
    "mean surprisal", "per bit",
)  # fmt: skip
_LEAST = 10
"""Rows of a bin of surprisals that is drawn."""

_FEW = 500
"""Rows up to which every one is drawn."""


# ---- tables -------------------------------------------------------------------------------------


def grid(fit: HumanFit) -> list[list[str]]:
    """Returns a row of texts per model, below a header."""
    rows = [list(_HEADER)]
    for model in fit.models:
        interval = ""
        if model.ci_low == model.ci_low:
            interval = f"[{model.ci_low:.5f}, {model.ci_high:.5f}]"
        rows.append([
            visible(model.name), f"{model.n:,}", f"{model.delta_log_likelihood:.3f}",
            f"{model.per_word:.5f}", interval, p_value(model.p) if model.p == model.p else "",
            f"{model.aic:.2f}", f"{model.baseline_aic:.2f}", f"{model.mean_surprisal:.3f}",
            f"{model.per_bit:.4g}" if model.per_bit == model.per_bit else "",
        ])  # fmt: skip
    return rows


def method_lines(fit: HumanFit) -> Iterator[str]:
    """Yields how the figures were computed, and warnings."""
    held_out = f", {fit.procedure.folds} contiguous folds" if fit.procedure.folds else ", in sample"
    yield f"full model: {fit.full}{held_out if '|' not in fit.full else ', maximum likelihood'}"
    yield f"baseline: {fit.baseline}, on the same rows"
    yield f"surprisals in {fit.procedure.units or 'bits'}; per bit: units of the response per bit"
    yield from fit.notes
    for model in fit.models:
        names = (("Pearson", model.pearson), ("Spearman", model.spearman))
        figures = (f"{n} {e.value:.3f} [{e.ci_low:.3f}, {e.ci_high:.3f}]" for n, e in names)
        yield f"{model.name}: correlation of response and surprisal: {', '.join(figures)}"
    yield from (f"{model.name}: {model.warning}" for model in fit.models if model.warning)


def further_lines(fit: HumanFit) -> Iterator[str]:
    """Yields what a page shows as tables: rows left out by reason, and models compared."""
    for model in fit.models:
        if model.left_out:
            reasons = ", ".join(f"{reason} {n:,}" for reason, n in model.left_out.items())
            yield f"{model.name}: rows left out: {reasons}"
    for pair in fit.comparisons:
        yield (
            f"{pair.first} minus {pair.second}: {pair.difference:+.5f} per word "
            f"[{pair.ci_low:.5f}, {pair.ci_high:.5f}], p {p_value(pair.p)}, adjusted by Holm "
            f"{p_value(pair.p_adjusted)}"
        )
    yield fit.signature


def as_text(fit: HumanFit, form: str) -> str:
    """Returns the table as csv (all digits), LaTeX or Markdown."""
    if form == "csv":
        out = io.StringIO()
        frame_of = fit.to_frame()
        writer = csv.writer(out, lineterminator="\n")
        writer.writerow(frame_of.columns)
        for row in frame_of.itertuples(index=False):
            writer.writerow([csv_cell(value) for value in row])
        return out.getvalue()
    header, *rows = grid(fit)
    if form == "markdown":
        lines = [header, ["---"] * len(header), *rows]
        return "".join(f"| {' | '.join(map(markdown_text, line))} |\n" for line in lines)
    cells = [" & ".join(map(latex_text, line)) + r" \\" for line in (header, *rows)]
    body = "\n".join([cells[0], r"\midrule", *cells[1:]])
    columns = "l" + "r" * (len(header) - 1)
    return f"\\begin{{tabular}}{{{columns}}}\n\\toprule\n{body}\n\\bottomrule\n\\end{{tabular}}\n"


def words_as_csv(fit: HumanFit) -> str:
    """Returns a row per model and fitted row: where it stands, response, surprisal, residual.

    Raises:
        BadInput: a column is missing.
    """
    places = [n for n in ("text", "sentence", "position", "word") if getattr(fit.procedure, n)]
    columns = [fit.table.texts(getattr(fit.procedure, name)) for name in places]
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*("model", "row"), *places, "surprisal", "response", "residual", "delta"])
    for model in fit.models:
        values = [
            values if values is not None else [None] * model.n
            for values in (model.surprisal, model.response, model.residuals, model.deltas)
        ]
        for row, *numbers in zip(model.rows.tolist(), *values, strict=True):
            place = [csv_cell(column[row]) for column in columns]
            writer.writerow([csv_cell(model.name), row + fit.table.first, *place, *numbers])
    return out.getvalue()


# ---- charts -------------------------------------------------------------------------------------


def human_plots(fit: HumanFit) -> list[Plot]:
    """Returns the charts: predictive power of models, response by surprisal, coefficients."""
    response = visible(sides(fit.full)[0])
    unit = "per word" if fit.models[0].deltas is not None else "per row"
    power = [
        {"model": visible(m.name), "surprisal": m.mean_surprisal, "value": m.per_word, "n": m.n}
        | ({"low": m.ci_low, "high": m.ci_high} if m.ci_low == m.ci_low else {})
        for m in fit.models
    ]
    binned: list[dict[str, Any]] = []
    few = fit.models[0].n <= _FEW
    for number, model in enumerate(fit.models):
        if few:
            binned += _points(fit, model)
            continue
        aside = 0.5 + 0.6 * ((number + 0.5) / len(fit.models) - 0.5)  # side by side within a bin
        binned += [row | {"surprisal": row["surprisal"] + aside} for row in _binned(model)]
    terms = [
        {"model": visible(model.name), "term": visible(term.term), "value": term.estimate}
        | dict(zip(("low", "high"), term_interval(term), strict=True))
        for model in fit.models
        for term in model.terms[1:]
    ]
    title = f"delta log-likelihood {unit}"
    return [
        Plot(
            "human", "power",
            f"Predictive power: {title} against mean surprisal, a mark per model. "
            "Lines are 95% intervals.",
            _marks(power, "surprisal", ("mean surprisal, bits", title), vertical=True),
        ),
        Plot(
            "human", "binned",
            f"{_plain(fit)} by surprisal"
            + (": a mark per row." if few else f": means of bins of one bit with at least {_LEAST} "
            "rows. Lines are 95% intervals."),
            _marks(binned, "surprisal", ("surprisal, bits", _plain(fit)), vertical=True),
        ),
        Plot(
            "human", "coefficients",
            f"Coefficients of the full model, {response} per unit of the predictor. Lines are 95% "
            "intervals.",
            _marks(terms, "term", ("coefficient", ""), vertical=False),
        ),
    ]  # fmt: skip


def _plain(fit: HumanFit) -> str:
    """The column of the response."""
    return visible(names_in(sides(fit.full)[0])[0])


def _points(fit: HumanFit, model: ModelFit) -> Iterator[dict[str, Any]]:
    """Every row."""
    word = fit.procedure.word
    words = fit.table.texts(word) if word in fit.table.frame.columns else []
    for i, row in enumerate(model.rows.tolist()):
        yield {
            "model": visible(model.name), "surprisal": float(model.surprisal[i]),
            "value": float(model.response[i]), "row": row + fit.table.first,
        } | ({"word": visible(words[row])} if words else {})  # fmt: skip


def _binned(model: ModelFit) -> Iterator[dict[str, Any]]:
    """Means of the response in bins of one bit."""
    bins = np.floor(model.surprisal)
    for low in np.unique(bins[np.isfinite(bins)]):
        values = model.response[bins == low]
        if len(values) >= _LEAST:
            bounds = stats.mean_interval(values)
            yield {
                "model": visible(model.name), "surprisal": float(low), "n": len(values),
                "value": float(values.mean()), "low": bounds[0], "high": bounds[1],
            }  # fmt: skip


def _marks(
    rows: Sequence[dict[str, Any]], by: str, titles: tuple[str, str], *, vertical: bool
) -> Spec:
    """Values with intervals: up and down over numbers, or left and right beside names."""
    import altair as alt

    models = list(dict.fromkeys(row["model"] for row in rows))
    colors = [f"var(--c{i % 6 + 1})" for i in range(len(models))]
    legend = alt.Legend(title=None, columns=2) if len(models) > 1 else None
    color = alt.Color(
        "model:N", sort=None, legend=legend, scale=alt.Scale(domain=models, range=colors)
    )
    free = alt.Scale(zero=False)
    base = alt.Chart()
    if vertical:
        place: dict[str, Any] = {"x": alt.X(f"{by}:Q", title=titles[0], scale=free)}
        value: dict[str, Any] = {"y": alt.Y("value:Q", title=titles[1], scale=free)}
        ends: dict[str, Any] = {"y": alt.Y("low:Q", title=titles[1], scale=free), "y2": "high:Q"}
        size: dict[str, Any] = {"height": 240}
    else:
        place = {"y": alt.Y(f"{by}:N", title=None, sort=None), "yOffset": alt.YOffset("model:N")}
        value = {"x": alt.X("value:Q", title=titles[0])}
        ends = {"x": alt.X("low:Q", title=titles[0]), "x2": "high:Q"}
        size = {"height": max(40, 14 * len(rows) + 8 * len({row[by] for row in rows}))}
    shown = [name for name in ("model", "row", "word", "n", by) if name in rows[0]]
    tips = [alt.Tooltip(f"{name}:N") for name in shown if name != "surprisal"]
    numbers = [name for name in ("surprisal", "value", "low", "high") if name in rows[0]]
    tips += [alt.Tooltip(f"{name}:Q", format=".4~g") for name in numbers]
    points = base.mark_point(filled=True, size=45, opacity=1).encode(
        **place, **value, color=color, tooltip=tips
    )
    lines = [base.mark_rule(strokeWidth=1.3).encode(**place, **ends, color=color)]
    has_intervals = any("low" in row for row in rows)
    chart = alt.layer(
        *(lines if has_intervals else []), points, data=alt.InlineData(values=[*rows])
    )
    spec: Spec = chart.properties(width=360, **size).to_dict()
    return {key: value for key, value in spec.items() if key not in ("config", "$schema")}


# ---- the page -----------------------------------------------------------------------------------


def human_page(fit: HumanFit) -> str:
    """Returns the page of a fit.

    Raises:
        BadInput: a data file of the package is missing.
    """
    header, *rows = grid(fit)
    page = environment().get_template("human.html.j2")
    return page.render(
        title=f"{visible(sides(fit.full)[0])} and surprisal",
        names=[model.name for model in fit.models],
        fit=fit,
        header=header,
        rows=rows,
        reasons=list(dict.fromkeys(reason for m in fit.models for reason in m.left_out)),
        p_value=p_value,
        plots=human_plots(fit),
        remarks=list(method_lines(fit)),
        interval=term_interval,
        **frame("report", charts=True),
    )
