"""What is shown of fits to human measures: tables and charts."""

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

_Row = dict[str, Any]

_STATISTICS = {"F": "F (df)", "LR": "chi-squared (df)"}
_TESTS = {"F": "F test", "LR": "likelihood ratio"}
_NAMES = {"name": "series", "ci_low": "low", "ci_high": "high"}
"""Column of a fit -> of a chart."""

_INTERVALS = " Lines are 95% intervals."

_MOST_DECIMALS = 7

_LEAST_IN_BIN = 10
_MOST_MARKS = 500
"""Rows of a bin of surprisals that is drawn; rows up to which every one is drawn."""


# ---- tables -------------------------------------------------------------------------------------


def fit_grid(fit: HumanFit) -> Grid:
    """Returns a row of texts per model, its slope first; the heading of each p names its test."""
    rows = []
    procedure = fit.table.procedure
    held_out = "held-out " if procedure.folds else ""
    unit = "row" if fit.is_mixed else "word"
    per_bit = f"{response_unit(fit)} per bit"
    for model in fit.models:
        gain = _four_digits(model.per_word) + (", no gain" if model.per_word < 0 else "")
        df = ", ".join(map(str, model.df))
        cells = {
            "n": f"{model.n:,}",
            per_bit: _four_digits(model.per_bit),
            _STATISTICS[model.test]: f"{_four_digits(model.statistic)} ({df})",
            f"p ({_TESTS[model.test]})": p_value(model.p),
            f"p ({procedure.published_test})": p_value(model.published_p)
            if procedure.published_test
            else "",
            f"{held_out}delta log-lik.": _four_digits(model.delta_log_likelihood),
            f"{held_out}per {unit}": gain,
            "95% interval": _interval(model, model.per_word) if procedure.folds else "",
            "AIC": decimals(model.aic),
            "baseline AIC": decimals(model.baseline_aic),
            "mean surprisal": _four_digits(model.mean_surprisal),
        }
        texts = {name: text for name, text in cells.items() if text}
        rows.append(((model.name,), texts))
    caption = (
        f"{visible(sides(fit.full)[0])}: predictive power of {' and '.join(procedure.predictors)}"
    )
    facts = [name for _, texts in rows for name in texts if name != per_bit]
    return text_grid(caption, ("model",), rows, facts)


def coefficient_grid(fit: HumanFit) -> Grid:
    """Returns a row of texts per model and coefficient of its full model, in sample."""
    rows = [
        ((model.name, term.Index), {
            "estimate": _four_digits(term.estimate), "95% interval": _interval(term, term.estimate),
            "SE": _four_digits(term.se), "df": decimals(term.df, 1).removesuffix(".0"),
            "t": decimals(term.t), "p (t test)": p_value(term.p),
        })
        for model in _distinct_models(fit) for term in model.terms.itertuples()
    ]  # fmt: skip
    facts = ("95% interval", "SE", "df", "t", "p (t test)")
    return text_grid("Coefficients of the full model", ("model", "term"), rows, facts)


def _comparison_grid(fit: HumanFit) -> Grid:
    """A row of texts per pair of models that are compared."""
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
    """How many rows were fitted by source, and for which reason others were not.

    The numbers of a column are of rows, and add up to those of the table.
    """
    models = {visible(name): model for name, model in _by_source(fit).items()}
    n_rows = len(fit.table.frame)
    reasons = dict.fromkeys(reason for model in fit.models for reason in model.left_out)
    counts = {
        reason: {name: of.left_out.get(reason, 0) for name, of in models.items()}
        for reason in reasons
    }
    fitted = {name: model.n for name, model in models.items()}
    averaged = {
        name: n_rows - n - sum(models[name].left_out.values()) for name, n in fitted.items()
    }
    if any(averaged.values()):
        counts["averaged into another row of the word"] = averaged
    counts["fitted"] = fitted
    counts["rows of the table"] = dict.fromkeys(models, n_rows)
    rows = [
        ((reason,), {name: f"{n:,}" for name, n in of.items()}) for reason, of in counts.items()
    ]
    return text_grid("Rows left out", ("reason",), rows, models)


def _four_digits(value: float, reference: float = math.nan) -> str:
    """A number with four significant digits, or with as many decimals as another one has.

    >>> _four_digits(304.3158), _four_digits(-0.89114), _four_digits(12.25, reference=0.89114)
    ('304.3', '−0.8911', '12.2500')
    """
    if math.isnan(value):
        return UNDEFINED
    size = abs(value if math.isnan(reference) else reference)
    n_before = math.floor(math.log10(size)) + 1 if size > 0 else 1
    return decimals(value, min(max(4 - n_before, 0), _MOST_DECIMALS))


def method_lines(fit: HumanFit) -> Iterator[str]:
    """Yields the lines below the tables of a fit: formulas, tests, how rows were read, warnings."""
    procedure = fit.table.procedure
    held_out = f", {procedure.folds} contiguous folds" if procedure.folds else ", in sample"
    yield f"full model: {fit.full}{', maximum likelihood' if fit.is_mixed else held_out}"
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
    for name, model in _by_source(fit).items():
        kinds = (("Pearson", model.pearson), ("Spearman", model.spearman))
        figures = (
            f"{kind} {decimals(r.value, 3)} [{decimals(r.ci_low, 3)}, {decimals(r.ci_high, 3)}]"
            for kind, r in kinds
        )
        yield f"{name}: correlation of response and surprisal: {', '.join(figures)}"
    yield from (f"{model.name}: {model.warning}" for model in fit.models if model.warning)


def _method(fit: HumanFit) -> Iterator[str]:
    """Yields how a fit is made, in words, for the end of a page."""
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
    """Returns what is shown of a fit: its tables, without those that have no rows, and charts."""
    result = Section("", [fit_grid(fit), _comparison_grid(fit)])
    tables = [coefficient_grid(fit)]
    if any(model.n < len(fit.table.frame) for model in fit.models):
        tables.append(_left_out_grid(fit))
    detail = Section(
        "Coefficients and rows", tables, [*method_lines(fit)], signatures=[fit.signature],
        plots=Deferred(lambda: human_plots(fit)), short_title="Coefficients",
    )  # fmt: skip
    about = (
        "Log-likelihood of the model with surprisals less that of the baseline, on the same rows."
    )
    return Output(
        kind="human measures", title=f"{visible(sides(fit.full)[0])} and surprisal",
        facts=[Fact(visible(fit.table.name), [", ".join(map(visible, _by_source(fit)))])],
        findings=fit_findings(fit),
        sections=[result._replace(about=[about]), detail], method=[*_method(fit)],
        frame=fit.to_frame, document=fit.to_json,
    )  # fmt: skip


def _by_source(fit: HumanFit) -> dict[str, ModelFit]:
    """Returns source of surprisals -> its last fit; all fits of a source have the same rows."""
    return {model.source: model for model in fit.models}


def _distinct_models(fit: HumanFit) -> list[ModelFit]:
    """Returns the fits, without those with the same estimates as an earlier one."""
    estimates = {(*model.terms["estimate"],): model for model in reversed(fit.models)}
    return [*estimates.values()][::-1]


def _interval(of: Any, value: float) -> str:
    """Returns an interval as text, with as many decimals as its value is shown with.

    Args:
        of: a record with `ci_low` and `ci_high`.
    """
    return f"[{_four_digits(of.ci_low, value)}, {_four_digits(of.ci_high, value)}]"


def words_as_csv(fit: HumanFit) -> str:
    """Returns a row per model and fitted row: where it stands, response, surprisal, residual."""
    procedure = fit.table.procedure
    frames = []
    for model in fit.models:
        rows = model.words.index
        columns: _Row = {"model": csv_cell(model.name), "row": fit.table.frame.index[rows]}
        for place in ("text", "sentence", "position", "word"):
            if name := getattr(procedure, place):
                columns[place] = fit.table.texts(name)[rows].map(csv_cell).to_numpy()
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
    looks = {visible(model.name): number for number, model in enumerate(fit.models)}
    (first, *others) = fit.models
    if len({model.layer for model in fit.models} - {None}) > 1:
        return [_layer_plot(fit), _power_plot(fit, looks)]
    plots = [_power_plot(fit, looks)] if others else []
    has_line = not (others or fit.is_mixed or math.isnan(first.per_bit))
    plots.append(_partial_plot(fit) if has_line else _response_plot(fit, looks))
    chart = drawing.dot_plot(
        _coefficients(fit), form="", title="coefficient", styles=looks, zero=True
    )
    caption = (
        f"Coefficients of the full model, {visible(sides(fit.full)[0])} per standard deviation of "
        f"the predictor.{_INTERVALS}"
    )
    return [*plots, Plot("human", "coefficients", caption, chart)]


def _power_plot(fit: HumanFit, looks: Mapping[str, int]) -> Plot:
    """The gain in log-likelihood of each model against its mean surprisal."""
    gain = f"delta log-likelihood per {'row' if fit.is_mixed else 'word'}"
    power = fit.to_frame()[["mean_surprisal", "per_word", "n", "ci_low", "ci_high", "name"]]
    power = power.rename(columns={"mean_surprisal": "surprisal", "per_word": "value"} | _NAMES)
    power["series"] = power["series"].map(visible)
    caption = f"Predictive power: {gain} against mean surprisal, a mark per model."
    if not math.isnan(fit.models[0].ci_low):
        caption += _INTERVALS
    chart = _over_surprisal(power, "mean surprisal, bits", gain, looks)
    return Plot("human", "power", caption, chart)


def _response_plot(fit: HumanFit, looks: Mapping[str, int]) -> Plot:
    """The response of rows, or of bins of many rows, against the surprisals of each model."""
    response = visible(names_in(sides(fit.full)[0])[0])
    is_few = fit.models[0].n <= _MOST_MARKS
    parts = []
    for number, model in enumerate(fit.models):
        rows = model.words[["surprisal"]].assign(value=model.words["response"])
        # the models of a bin are beside each other
        aside = 0.5 + 0.6 * ((number + 0.5) / len(fit.models) - 0.5)
        rows = _with_words(fit, rows) if is_few else _binned(rows, aside)
        parts.append(rows.assign(series=visible(model.name)))
    caption = f"{response} by surprisal: {_marks(is_few)}."
    chart = _over_surprisal(concat(parts), "surprisal, bits", response, looks)
    return Plot("human", "binned", caption, chart)


def _partial_plot(fit: HumanFit) -> Plot:
    """Partial residuals of a model by least squares against surprisal, with the fitted line.

    A partial residual is the residual plus b (s - m), with b the coefficient per bit, s the
    surprisal and m its mean: what the other predictors leave of the response (Larsen and McCleary
    1972). The band is that of b.
    """
    (model,) = fit.models
    response = visible(sides(fit.full)[0])
    surprisal = model.words["surprisal"].astype(float)
    deviation = surprisal - surprisal.mean()
    slopes = _slopes(model)
    values = model.words["residual"].astype(float) + slopes["estimate"] * deviation
    rows = DataFrame({"surprisal": surprisal, "value": values})
    is_few = model.n <= _MOST_MARKS
    rows = _with_words(fit, rows) if is_few else _binned(rows, 0.5)
    chart = _over_surprisal(
        rows.assign(series=visible(model.name)), "surprisal, bits",
        f"{response}, partial residual", {visible(model.name): 0},
        *_line(slopes, surprisal.mean(), drawing.ends(rows["surprisal"])),
    )  # fmt: skip
    caption = (
        f"{response} by surprisal, less the part of the other predictors (partial residuals): "
        f"{_marks(is_few)}. The line has the slope of surprisal in the "
        "full model, its band the 95% interval of the slope."
    )
    return Plot("human", "partial", caption, chart)


def _slopes(model: ModelFit) -> Series:
    """The coefficient of surprisal on the scale of the residuals per bit, with its interval.

    The predictor is the surprisal in another unit, so that their standard deviations give the unit.
    """
    name = SURPRISAL if SURPRISAL in model.terms.index else f"scale({SURPRISAL})"
    per_unit = model.predictor_sd[name] / model.words["surprisal"].astype(float).std()
    return model.terms.loc[name, ["estimate", "ci_low", "ci_high"]] * per_unit


def _line(slopes: Series, mean: float, reach: Sequence[float]) -> list[Spec]:
    """The layers of the fitted line, through 0 at the mean surprisal, and of its band."""
    surprisal = np.linspace(reach[0], reach[1], 41)
    deviation = surprisal - mean
    low, high = np.sort(np.outer(slopes[["ci_low", "ci_high"]], deviation), axis=0)
    value = slopes["estimate"] * deviation
    rows = DataFrame({"surprisal": surprisal, "value": value, "low": low, "high": high})
    return drawing.fitted_line(rows, field("surprisal", "numbers"))


def _marks(is_few: bool) -> str:
    """Returns the end of a caption: what the marks are, and, of means, what their lines are."""
    if is_few:
        return "a mark per row"
    bins = f"means of bins of one bit with at least {_LEAST_IN_BIN} rows"
    return f"{bins}.{_INTERVALS.removesuffix('.')}"


def _layer_plot(fit: HumanFit) -> Plot:
    """The gain of each layer; a line per model, or per predictor of one."""
    power = fit.to_frame().dropna(subset="layer").rename(columns={"per_word": "value"} | _NAMES)
    # a source is called by the model and its layer, a fit also by the predictors that are tested
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
    """The coefficients of the full models per standard deviation, but for the intercepts."""
    parts = {}
    for model in _distinct_models(fit):
        columns = model.terms[["estimate", "ci_low", "ci_high"]]
        parts[visible(model.name)] = columns.mul(model.predictor_sd, axis=0)[1:].rename(visible)
    terms = concat(parts, names=["series", "label"]).reset_index()
    terms = terms.rename(columns={"estimate": "value"} | _NAMES)
    return terms[["label", "series", "value", "low", "high"]]


def _over_surprisal(
    data: DataFrame, x: str, y: str, looks: Mapping[str, int], *layers: Spec
) -> Spec:
    """Values of models over surprisals."""
    reach = drawing.ends(data["surprisal"])
    place = drawing.numeric("surprisal", title=x, domain=reach, padding=8)
    return drawing.line_plot(data, place, *layers, title=y, joined=(), styles=looks, zero=False)


def _with_words(fit: HumanFit, rows: DataFrame) -> DataFrame:
    """Rows with their number in the table and their word."""
    rows = rows.assign(row=fit.table.frame.index[rows.index])
    word = fit.table.procedure.word
    if word in fit.table.frame.columns:
        rows["word"] = fit.table.texts(word)[rows.index].map(visible).to_numpy()
    return rows


def _binned(rows: DataFrame, aside: float) -> DataFrame:
    """Returns the means of the values in bins of one bit, with 95% intervals.

    Args:
        rows: columns `surprisal` (bits) and `value`.
        aside: where in its bin a mean is drawn, from 0 to 1.
    """
    means = []
    for start, values in rows.groupby(np.floor(rows["surprisal"]))["value"]:
        if len(values) >= _LEAST_IN_BIN:
            low, high = stats.mean_interval(values.to_numpy())
            means.append((start + aside, values.mean(), low, high, len(values)))
    return DataFrame(means, columns=["surprisal", "value", "low", "high", "n"])
