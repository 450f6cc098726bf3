"""Tables and charts of fits of surprisals to human measures, such as reading times."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from pandas import DataFrame, Series, concat

from lmdiag import stats
from lmdiag.analysis.fit import HumanFit, ModelFit
from lmdiag.analysis.procedures import SURPRISAL
from lmdiag.analysis.regression import names_in, sides
from lmdiag.report.charts import Plot, drawing
from lmdiag.report.charts.vega import Spec, field
from lmdiag.report.fit_findings import fit_findings, response_unit
from lmdiag.report.grid import Grid, text_grid
from lmdiag.report.labels import difference_title
from lmdiag.report.numbers import UNDEFINED, decimals, p_value
from lmdiag.report.output import Deferred, Fact, Output, Section
from lmdiag.text import csv_cell, visible

_STATISTICS = {"F": "F (df)", "LR": "chi-squared (df)"}
_TESTS = {"F": "F test", "LR": "likelihood ratio"}
_CHART_COLUMNS = {"name": "series", "ci_low": "low", "ci_high": "high"}
"""Column of a fit -> column of a chart."""

_INTERVALS = " Lines are 95% intervals."

_MOST_DECIMALS = 7
"""Decimals of a number with four significant digits, at most."""

_LEAST_IN_BIN = 10
"""Rows of a bin of surprisals that is drawn, at least."""

_MOST_MARKS = 500
"""Rows of a model up to which a chart has a mark for each row, and not for each bin."""


# ---- tables -------------------------------------------------------------------------------------


def fit_grid(fit: HumanFit) -> Grid:
    """Returns a table with a row per model: n, slope per bit, test, gain, interval and AIC.

    The heading of each p names its test. Columns that a procedure does not have are left out. The
    slope per bit is the figure of the table; all other columns are less prominent.
    """
    rows = []
    procedure = fit.table.procedure
    held_out = "held-out " if procedure.folds else ""
    unit = "row" if fit.is_mixed else "word"
    per_bit = f"{response_unit(fit)} per bit"
    for model in fit.models:
        gain = _four_digits(model.per_word)
        if model.per_word < 0:
            gain += ", no gain"
        df = ", ".join(map(str, model.df))
        published_p = p_value(model.published_p) if procedure.published_test else ""
        interval = _interval(model, model.per_word) if procedure.folds else ""
        cells = {
            "n": f"{model.n:,}",
            per_bit: _four_digits(model.per_bit),
            _STATISTICS[model.test]: f"{_four_digits(model.statistic)} ({df})",
            f"p ({_TESTS[model.test]})": p_value(model.p),
            f"p ({procedure.published_test})": published_p,
            f"{held_out}delta log-lik.": _four_digits(model.delta_log_likelihood),
            f"{held_out}per {unit}": gain,
            "95% interval": interval,
            "AIC": decimals(model.aic),
            "baseline AIC": decimals(model.baseline_aic),
            "mean surprisal": _four_digits(model.mean_surprisal),
        }
        # a procedure without folds or a test of its own has "" in these columns
        texts = {heading: text for heading, text in cells.items() if text}
        rows.append(((model.name,), texts))
    response = visible(sides(fit.full)[0])
    caption = f"{response}: predictive power of {' and '.join(procedure.predictors)}"
    text_columns = [heading for _, texts in rows for heading in texts if heading != per_bit]
    return text_grid(caption, ("model",), rows, text_columns=text_columns)


def coefficient_grid(fit: HumanFit) -> Grid:
    """Returns a table with a row per model and coefficient of its full model, in sample."""
    rows = [
        ((model.name, term.Index), {
            "estimate": _four_digits(term.estimate), "95% interval": _interval(term, term.estimate),
            "SE": _four_digits(term.se), "df": decimals(term.df, 1).removesuffix(".0"),
            "t": decimals(term.t), "p (t test)": p_value(term.p),
        })
        for model in _distinct_models(fit) for term in model.terms.itertuples()
    ]  # fmt: skip
    text_columns = ("95% interval", "SE", "df", "t", "p (t test)")
    return text_grid("Coefficients of the full model", ("model", "term"), rows, text_columns)


def _comparison_grid(fit: HumanFit) -> Grid:
    """Returns a table with a row per pair of models: the difference in gain, and its test.

    For example, "bert − gpt2", 0.0021, "[0.0004, 0.0038]", ".012", ".024".
    """
    rows = [
        ((difference_title(pair.base_model, pair.new_model),), {
            "difference": _four_digits(pair.difference),
            "95% interval": _interval(pair, pair.difference),
            "p (sign-flip test)": p_value(pair.p), "adjusted": p_value(pair.p_adjusted),
        })
        for pair in fit.comparisons.itertuples()
    ]  # fmt: skip
    n_tests = len(rows)
    title = f"Compared per word, p adjusted by Holm over {n_tests} test{'s' if n_tests > 1 else ''}"
    return text_grid(title, ("",), rows, ("95% interval", "p (sign-flip test)", "adjusted"))


def _left_out_grid(fit: HumanFit) -> Grid:
    """Returns a table of the numbers of rows that were fitted, or left out for each reason.

    It has a row per reason and a column per source of surprisals (a model or a column). For
    example, "rt is missing" 12, "fitted" 188, "rows of the table" 200: the last number is the sum
    of the others.
    """
    models = {visible(source): model for source, model in _by_source(fit).items()}
    n_rows = len(fit.table.frame)
    n_by_reason: dict[str, dict[str, int]] = {}  # reason -> source -> number of rows
    for reason in dict.fromkeys(reason for model in fit.models for reason in model.left_out):
        n_by_reason[reason] = {
            source: model.left_out.get(reason, 0) for source, model in models.items()
        }
    # rows that were neither fitted nor left out were averaged with others of the same word
    n_averaged = {
        source: n_rows - model.n - sum(model.left_out.values()) for source, model in models.items()
    }
    if any(n_averaged.values()):
        n_by_reason["averaged into another row of the word"] = n_averaged
    n_by_reason["fitted"] = {source: model.n for source, model in models.items()}
    n_by_reason["rows of the table"] = dict.fromkeys(models, n_rows)
    rows = [
        ((reason,), {source: f"{n:,}" for source, n in n_of_source.items()})
        for reason, n_of_source in n_by_reason.items()
    ]
    # all columns are numbers of rows, and none is a figure
    return text_grid("Rows left out", ("reason",), rows, text_columns=[*models])


def _four_digits(value: float, reference: float = math.nan) -> str:
    """Returns a number with four significant digits, or with the decimals that another one has.

    >>> _four_digits(304.3158), _four_digits(-0.89114), _four_digits(12.25, reference=0.89114)
    ('304.3', '−0.8911', '12.2500')

    Args:
        reference: a number with four significant digits, whose number of decimals is used.
    """
    if math.isnan(value):
        return UNDEFINED
    size = abs(value if math.isnan(reference) else reference)
    n_before_point = math.floor(math.log10(size)) + 1 if size > 0 else 1
    n_decimals = max(4 - n_before_point, 0)
    return decimals(value, min(n_decimals, _MOST_DECIMALS))


def method_lines(fit: HumanFit) -> Iterator[str]:
    """Yields the lines below the tables of a fit.

    They give formulas ("baseline: rt ~ length, on the same rows"), tests, units, how rows were
    read, correlations of response and surprisal, and warnings.
    """
    procedure = fit.table.procedure
    how_fitted = "in sample"
    if fit.is_mixed:
        how_fitted = "maximum likelihood"
    elif procedure.folds:
        how_fitted = f"{procedure.folds} contiguous folds"
    yield f"full model: {fit.full}, {how_fitted}"
    yield f"baseline: {fit.baseline}, on the same rows"
    if fit.is_mixed:
        yield (
            "rows of a mixed model depend on each other, so there is no interval over rows; the "
            "likelihood-ratio test is conservative where variances are left out as well"
        )
    else:
        yield "F test of the two models on all rows, in sample"
    if procedure.folds:
        yield "the held-out gain describes; the interval is mean ± 1.96 standard errors over rows"
    slope = "per bit: slope of the current word's surprisal, in units of the response"
    yield f"surprisals in {procedure.units or 'bits'}; {slope}"
    yield from fit.notes
    for source, model in _by_source(fit).items():
        texts = []
        for name, r in (("Pearson", model.pearson), ("Spearman", model.spearman)):
            interval = f"[{decimals(r.ci_low, 3)}, {decimals(r.ci_high, 3)}]"
            texts.append(f"{name} {decimals(r.value, 3)} {interval}")
        yield f"{source}: correlation of response and surprisal: {', '.join(texts)}"
    for model in fit.models:
        if model.warning:
            yield f"{model.name}: {model.warning}"


def _method(fit: HumanFit) -> Iterator[str]:
    """Yields sentences on how a fit is made, for the end of a page."""
    procedure = fit.table.procedure
    with_predictors = f"the same with {' and '.join(procedure.predictors)}"
    yield (
        f"Two regressions are fitted to the same rows: the baseline, and {with_predictors}. The "
        "gain is the log-likelihood of the second minus that of the first."
    )
    if procedure.folds:
        yield (
            f"The gain is held out: the rows of each of {procedure.folds} contiguous folds are "
            "predicted by regressions that are fitted to all others. Its interval describes the "
            "rows and is not a test; a value below zero means no gain."
        )
    if fit.is_mixed:
        yield (
            "The regressions are linear mixed models, fitted by maximum likelihood; p is that of "
            "the likelihood-ratio test."
        )
    else:
        yield "The regressions are by ordinary least squares; p is that of the F test on all rows."
    yield "Values of earlier words are taken within a text, before any row is left out."
    if len(fit.comparisons):
        yield "Models are compared by the sign-flip test of the differences in gain of the rows."


def fit_output(fit: HumanFit) -> Output:
    """Returns what is shown of a fit: its tables and charts."""
    about = (
        "Log-likelihood of the model with surprisals less that of the baseline, on the same rows."
    )
    main_section = Section("", [fit_grid(fit), _comparison_grid(fit)], about=[about])
    tables = [coefficient_grid(fit)]
    if any(model.n < len(fit.table.frame) for model in fit.models):
        tables.append(_left_out_grid(fit))
    detail_section = Section(
        "Coefficients and rows", tables, [*method_lines(fit)], signatures=[fit.signature],
        plots=Deferred(lambda: human_plots(fit)), short_title="Coefficients",
    )  # fmt: skip
    sources = ", ".join(map(visible, _by_source(fit)))
    return Output(
        kind="human measures", title=f"{visible(sides(fit.full)[0])} and surprisal",
        facts=[Fact(visible(fit.table.name), [sources])],
        findings=fit_findings(fit),
        sections=[main_section, detail_section], method=[*_method(fit)],
        frame=fit.to_frame, document=fit.to_json,
    )  # fmt: skip


def _by_source(fit: HumanFit) -> dict[str, ModelFit]:
    """Returns source of surprisals -> its last fit; all fits of a source have the same rows."""
    return {model.source: model for model in fit.models}


def _distinct_models(fit: HumanFit) -> list[ModelFit]:
    """Returns the fits, without those that have the same estimates as another one before them.

    With several predictors, the same full model is fitted several times, against other baselines;
    its coefficients are shown once.
    """
    fits: dict[tuple[float, ...], ModelFit] = {}
    for model in reversed(fit.models):  # of equal estimates, the first fit is written last
        fits[tuple(model.terms["estimate"])] = model
    return [*reversed(fits.values())]


def _interval(record: Any, value: float) -> str:
    """Returns an interval in brackets, with as many decimals as its value is shown with.

    For example, "[0.7211, 1.0612]" for a value of 0.8911.

    Args:
        record: has the interval in `ci_low` and `ci_high`.
        value: that the interval is of.
    """
    return f"[{_four_digits(record.ci_low, value)}, {_four_digits(record.ci_high, value)}]"


def words_as_csv(fit: HumanFit) -> str:
    """Returns a csv file with a row per model and fitted row of the table.

    Columns: `model`; `row`, as the table numbers it; `text`, `sentence`, `position` and `word`, if
    the procedure names columns for these; and those of `ModelFit.words`.
    """
    procedure = fit.table.procedure
    frames = []
    for model in fit.models:
        rows = model.words.index  # positions of the fitted rows in the table, from 0
        # `csv_cell`: no spreadsheet takes a text for a formula
        columns: dict[str, Any] = {
            "model": csv_cell(model.name),
            "row": fit.table.frame.index[rows],
        }
        for role in ("text", "sentence", "position", "word"):
            column = getattr(procedure, role)  # name of the user's column; "" without one
            if column:
                columns[role] = fit.table.texts(column)[rows].map(csv_cell).to_numpy()
        frames.append(DataFrame(columns, rows).join(model.words))
    return str(concat(frames).to_csv(index=False, lineterminator="\n"))


# ---- charts -------------------------------------------------------------------------------------


def human_plots(fit: HumanFit) -> list[Plot]:
    """Returns the charts of a fit.

    Of several models, their predictive power against mean surprisal; the response by surprisal, of
    one model by least squares as partial residuals with the fitted line; and coefficients per
    standard deviation of their predictors. Of several layers, their predictive power against the
    layer and against mean surprisal.
    """
    styles = {visible(model.name): number for number, model in enumerate(fit.models)}
    layers = {model.layer for model in fit.models if model.layer is not None}
    if len(layers) > 1:
        return [_layer_plot(fit), _power_plot(fit, styles)]
    has_several_models = len(fit.models) > 1
    plots = [_power_plot(fit, styles)] if has_several_models else []
    has_slope = not math.isnan(fit.models[0].per_bit)
    if has_several_models or fit.is_mixed or not has_slope:
        plots.append(_response_plot(fit, styles))
    else:
        plots.append(_partial_plot(fit))
    chart = drawing.dot_plot(
        _coefficients(fit), form="", title="coefficient", styles=styles, zero=True
    )
    caption = (
        f"Coefficients of the full model, {visible(sides(fit.full)[0])} per standard deviation of "
        f"the predictor.{_INTERVALS}"
    )
    return [*plots, Plot("human", "coefficients", caption, chart)]


def _power_plot(fit: HumanFit, styles: Mapping[str, int]) -> Plot:
    """Returns the chart of the gain in log-likelihood of each model against its mean surprisal.

    Args:
        styles: name of each model -> number of its colour and mark, from 0.
    """
    gain = f"delta log-likelihood per {'row' if fit.is_mixed else 'word'}"
    power = fit.to_frame()[["mean_surprisal", "per_word", "n", "ci_low", "ci_high", "name"]]
    names = {"mean_surprisal": "surprisal", "per_word": "value"} | _CHART_COLUMNS
    power = power.rename(columns=names)
    power["series"] = power["series"].map(visible)
    caption = f"Predictive power: {gain} against mean surprisal, a mark per model."
    if not math.isnan(fit.models[0].ci_low):
        caption += _INTERVALS
    chart = _surprisal_chart(power, "mean surprisal, bits", gain, styles)
    return Plot("human", "power", caption, chart)


_WIDTH_IN_BIN = 0.6
"""Part of a bin within which the means of several models stand beside each other."""


def _response_plot(fit: HumanFit, styles: Mapping[str, int]) -> Plot:
    """Returns the chart of the response against the surprisals of each model.

    A mark is a row, or of many rows the mean of a bin.

    Args:
        styles: name of each model -> number of its colour and mark, from 0.
    """
    response = visible(names_in(sides(fit.full)[0])[0])  # the column, without functions of it
    has_mark_per_row = fit.models[0].n <= _MOST_MARKS
    tables = []
    for number, model in enumerate(fit.models):
        rows = model.words[["surprisal"]].assign(value=model.words["response"])  # a row per word
        if has_mark_per_row:
            marks = _with_words(fit, rows)
        else:
            from_middle = (number + 0.5) / len(fit.models) - 0.5  # between -0.5 and 0.5
            marks = _bin_means(rows, place=0.5 + _WIDTH_IN_BIN * from_middle)
        tables.append(marks.assign(series=visible(model.name)))
    caption = f"{response} by surprisal: {_marks_text(has_mark_per_row)}."
    chart = _surprisal_chart(concat(tables), "surprisal, bits", response, styles)
    return Plot("human", "binned", caption, chart)


def _partial_plot(fit: HumanFit) -> Plot:
    """Returns the chart of the partial residuals of a single model, with the fitted line.

    A partial residual is the residual plus b (s - m), with b the coefficient per bit, s the
    surprisal and m its mean: what the other predictors leave of the response (Larsen and McCleary
    1972). The line goes through the point (m, 0); its band is the 95% interval of b.
    """
    (model,) = fit.models
    response = visible(sides(fit.full)[0])
    surprisal = model.words["surprisal"].astype(float)
    deviation = surprisal - surprisal.mean()
    slope = _slope_with_interval(model)
    partial_residuals = model.words["residual"].astype(float) + slope["estimate"] * deviation
    rows = DataFrame({"surprisal": surprisal, "value": partial_residuals})
    has_mark_per_row = model.n <= _MOST_MARKS
    marks = _with_words(fit, rows) if has_mark_per_row else _bin_means(rows, place=0.5)
    line = _line_layers(slope, surprisal.mean(), drawing.ends(marks["surprisal"]))
    name = visible(model.name)
    y = f"{response}, partial residual"
    styles = {name: 0}  # the first colour
    chart = _surprisal_chart(marks.assign(series=name), "surprisal, bits", y, styles, *line)
    caption = (
        f"{response} by surprisal, less the part of the other predictors (partial residuals): "
        f"{_marks_text(has_mark_per_row)}. The line has the slope of surprisal in the "
        "full model, its band the 95% interval of the slope."
    )
    return Plot("human", "partial", caption, chart)


def _slope_with_interval(model: ModelFit) -> Series:
    """Returns the coefficient of surprisal per bit, on the scale of the residuals.

    The result has the entries `estimate`, `ci_low` and `ci_high`. The predictor of the model may be
    surprisal in another unit, as standard deviations. Its standard deviation divided by that of the
    surprisals in bits is the number of these units per bit.
    """
    name = SURPRISAL if SURPRISAL in model.terms.index else f"scale({SURPRISAL})"
    units_per_bit = model.predictor_sd[name] / model.words["surprisal"].astype(float).std()
    return model.terms.loc[name, ["estimate", "ci_low", "ci_high"]] * units_per_bit


def _line_layers(slope: Series, mean: float, ends: Sequence[float]) -> list[Spec]:
    """Returns the layers of a chart with the fitted line and the band of its 95% interval.

    The line is 0 at the mean surprisal, as are on average the partial residuals around it: each of
    them is the residual plus the slope times the difference of the surprisal from its mean.

    Args:
        slope: `estimate`, `ci_low` and `ci_high` of the coefficient of surprisal: units of the
            response per bit.
        mean: mean surprisal of the rows, in bits.
        ends: lowest and highest surprisal in bits, between which the line is drawn.
    """
    surprisal = np.linspace(ends[0], ends[1], 41)  # enough for the bend of the band at the mean
    deviation = surprisal - mean
    lines_of_bounds = np.outer(slope[["ci_low", "ci_high"]], deviation)  # (2, 41)
    # left of the mean, the line of `ci_low` is above that of `ci_high`
    low, high = np.sort(lines_of_bounds, axis=0)
    value = slope["estimate"] * deviation
    rows = DataFrame({"surprisal": surprisal, "value": value, "low": low, "high": high})
    return drawing.fitted_line(rows, field("surprisal", "numbers"))


def _marks_text(has_mark_per_row: bool) -> str:
    """Returns the end of a caption: "a mark per row", or what the means and their lines are.

    The text of means is "means of bins of one bit with at least 10 rows. Lines are 95% intervals".
    """
    if has_mark_per_row:
        return "a mark per row"
    bins = f"means of bins of one bit with at least {_LEAST_IN_BIN} rows"
    return f"{bins}.{_INTERVALS.removesuffix('.')}"


def _layer_plot(fit: HumanFit) -> Plot:
    """Returns the chart of the gain by layer, with a line for each model and tested predictor.

    For example, the fits "gpt2, layer 0" to "gpt2, layer 12" are the points of the line "gpt2".
    """
    power = fit.to_frame().dropna(subset="layer")
    power = power.rename(columns={"per_word": "value"} | _CHART_COLUMNS)
    # the name of a fit is that of the model with its layer, and of the predictors that are tested
    series = power["series"].str.replace(r", layer \d+", "", regex=True).map(visible)
    data = power[["layer", "value", "n", "low", "high"]].assign(series=series)
    x = drawing.layer_channel("layer", sorted(drawing.distinct(data, "layer")))
    gain = f"delta log-likelihood per {'row' if fit.is_mixed else 'word'}"
    chart = drawing.line_plot(data, x, title=gain, zero=True)
    caption = f"Predictive power by layer: {gain}; the same baseline and rows for all."
    if not math.isnan(fit.models[0].ci_low):
        caption += _INTERVALS
    return Plot("human", "layers", caption, chart)


def _coefficients(fit: HumanFit) -> DataFrame:
    """Returns the coefficients of the full models per standard deviation, but for the intercepts.

    Columns: `label` (term), `series` (model), `value`, `low` and `high`.
    """
    coefficients_of = {}
    for model in _distinct_models(fit):
        terms = model.terms[["estimate", "ci_low", "ci_high"]]
        per_sd = terms.mul(model.predictor_sd, axis=0)
        without_intercept = per_sd[1:]  # the intercept is the first term
        coefficients_of[visible(model.name)] = without_intercept.rename(visible)
    table = concat(coefficients_of, names=["series", "label"]).reset_index()
    table = table.rename(columns={"estimate": "value"} | _CHART_COLUMNS)
    return table[["label", "series", "value", "low", "high"]]


def _surprisal_chart(
    data: DataFrame, x: str, y: str, styles: Mapping[str, int], *layers: Spec
) -> Spec:
    """Returns a chart of values of models over surprisals, with marks that no lines join.

    Args:
        data: columns `surprisal`, `value`, `series` (model), and those of intervals and tooltips.
        x, y: titles of the axes.
        styles: name of each model -> number of its colour and mark, from 0.
        layers: further layers of the chart.
    """
    ends = drawing.ends(data["surprisal"])
    x_channel = drawing.numeric("surprisal", title=x, domain=ends, padding=8)
    # `joined` names the series whose marks are joined by a line
    return drawing.line_plot(
        data, x_channel, *layers, title=y, joined=(), styles=styles, zero=False
    )


def _with_words(fit: HumanFit, rows: DataFrame) -> DataFrame:
    """Returns rows with the columns `row`, their number in the table, and `word`, if it has words.

    Args:
        rows: the index has their positions in the table, from 0.
    """
    rows = rows.assign(row=fit.table.frame.index[rows.index])
    word = fit.table.procedure.word
    if word in fit.table.frame.columns:
        rows["word"] = fit.table.texts(word)[rows.index].map(visible).to_numpy()
    return rows


def _bin_means(rows: DataFrame, place: float) -> DataFrame:
    """Returns the means of the values in bins of one bit, with 95% intervals.

    Bins with few rows are left out. Columns: `surprisal`, `value`, `low`, `high` and `n`.

    Args:
        rows: columns `surprisal` (bits) and `value`.
        place: where in its bin a mean is drawn, from 0 to 1.
    """
    means = []
    for start, values in rows.groupby(np.floor(rows["surprisal"]))["value"]:
        if len(values) >= _LEAST_IN_BIN:
            low, high = stats.mean_interval(values.to_numpy())
            means.append((start + place, values.mean(), low, high, len(values)))
    return DataFrame(means, columns=["surprisal", "value", "low", "high", "n"])
