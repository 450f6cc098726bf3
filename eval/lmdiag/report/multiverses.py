"""What is shown of a multiverse: tables, and a specification curve of each headline figure.

Source: Simonsohn, Simmons and Nelson (2020), Specification curve analysis.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from itertools import groupby
from typing import Any

from pandas import DataFrame

from lmdiag import diagnostics
from lmdiag.asking.protocol import KNOBS
from lmdiag.report import numbers
from lmdiag.report.charts import Plot
from lmdiag.report.charts.drawing import COLORS, INK, curve_chart
from lmdiag.report.grid import CellText, Grid, text_grid
from lmdiag.report.labels import difference_title, model_facts
from lmdiag.report.multiverse_findings import multiverse_findings
from lmdiag.report.output import Deferred, Fact, Output, Section
from lmdiag.results import REPORT, Figure, cited_signature
from lmdiag.studies.comparison import ALPHA
from lmdiag.studies.multiverse import Headline, Multiverse, counts_of, effects_of
from lmdiag.text import visible

_LONGEST_CHOICE = 40
"""Characters of a choice; of a longer prompt the beginning and the end are shown."""


def multiverse_output(multiverse: Multiverse) -> Output:
    """Returns what is shown of a multiverse: ranges, differences, curves and protocols."""
    models = multiverse.models
    facts = []
    for model in models:
        default = multiverse.runs[multiverse.numbers_of(model)[0]].results.model
        lines = [" · ".join(model_facts(default)), protocols_line(multiverse, model)]
        facts.append(Fact(visible(model), lines))
    signatures = [cited_signature(member.signature) for member in multiverse.members]
    return Output(
        kind="multiverse", title=" and ".join(map(visible, models)), facts=facts,
        findings=Deferred(lambda: multiverse_findings(multiverse)),
        sections=[*_sections(multiverse), _protocols(multiverse)],
        method=[*_method(multiverse), f"Signatures of the runs: {', '.join(signatures)}"],
        frame=multiverse.to_frame, document=multiverse.to_json, files=["multiverse.json"],
    )  # fmt: skip


def choice_label(choice: str) -> str:
    """Returns a choice as readers see it: of a long prompt its beginning and its end."""
    text = visible(" ".join(choice.split()))
    half = _LONGEST_CHOICE // 2
    return text if len(text) <= _LONGEST_CHOICE else f"{text[:half]} … {text[-half:]}"


def protocols_line(multiverse: Multiverse, model: str) -> str:
    """Returns the number of protocols of a model, and the choices of the knobs that are open."""
    count = len(multiverse.numbers_of(model))
    knobs = multiverse.choices(model).items()
    choices = "; ".join(f"{knob} {', '.join(map(choice_label, values))}" for knob, values in knobs)
    return ": ".join(filter(None, (f"{count} protocol{'s' if count != 1 else ''}", choices)))


def _sections(multiverse: Multiverse) -> Iterator[Section]:
    """A section per diagnostic: a table of ranges per model, and of differences per further one."""
    for task, headlines in groupby(multiverse.figures, key=lambda headline: headline.task):
        figures = [*headlines]
        diagnostic = diagnostics.get(task, multiverse.forms.get(task, ""))
        ranges = [_range_grid(multiverse, figures, model) for model in multiverse.models]
        gaps = [_gap_grid(multiverse, figures, new) for new in multiverse.models[1:]]
        yield Section(
            diagnostic.title, [*ranges, *gaps], task=task, short_title=diagnostic.short_title,
            about=[diagnostic.about], notes=[how_to_read(multiverse, figures)],
            plots=Deferred(partial(multiverse_plots, multiverse, figures)),
        )  # fmt: skip


def _protocols(multiverse: Multiverse) -> Section:
    """Returns the table of all runs, with the knobs of each and a link to its report."""
    knobs = [*multiverse.choices(*multiverse.models)]
    defaults = {multiverse.numbers_of(model)[0] for model in multiverse.models}
    rows = []
    for number, member in enumerate(multiverse.members):
        is_default = " (default)" if number in defaults else ""
        cells = {knob: CellText(choice_label(member.choices.get(knob, ""))) for knob in knobs}
        path = visible(member.path)
        cells["run"] = CellText(
            f"{path}{is_default}", link=str(multiverse.path / member.path / REPORT)
        )
        rows.append(((member.model,), cells))
    title = "Protocols"
    grid = text_grid(
        "Each protocol is a run of its own, with a report", ("model",), rows, [*knobs, "run"]
    )
    prompts = [x for x in multiverse.choices(*multiverse.models).get("prompt", ()) if "{" in x]
    notes = [f"Prompt: {visible(prompt)}" for prompt in prompts]
    return Section(title, [grid], notes=notes)


def _method(multiverse: Multiverse) -> Iterator[str]:
    """Returns the lines of the page that say how to read its tables and curves."""
    if multiverse.choices(*multiverse.models):
        yield (
            "Default: the protocol of lmdiag run without options. Below each option: how far it "
            "moves the figure, the largest difference between the means of two of its choices over "
            "all choices of the other options."
        )
    if len(multiverse.models) > 1:
        yield (
            "Differences are taken within items, each model minus the first one: McNemar's score "
            "test where each item is right or wrong, sign-flip test of a mean over items, "
            "permutation test of a median or a correlation; adjusted by Holm's method over the "
            "protocols of a figure and pair of models."
        )
        yield (
            "Models are compared where they share the choices of every option that varies for "
            "both; an option that varies for one of them takes each of its values."
        )
    yield (
        "A specification curve (Simonsohn, Simmons & Nelson 2020) shows a figure in all protocols "
        "in ascending order; the dots below each point are its choices. The option that moves "
        "the figure most comes first, in colour. Curves of all figures, and of the differences, "
        "are written by --out FOLDER/."
    )
    yield (
        "Intervals are 95% intervals: Wilson's for proportions, Student's for means, Fisher's z "
        "for correlations."
    )


def _range_grid(multiverse: Multiverse, figures: Sequence[Headline], model: str) -> Grid:
    """The range of each figure of a model, and how far each knob moves it."""
    knobs = [*multiverse.choices(model)]
    default = multiverse.numbers_of(model)[0]
    rows = []
    for headline in figures:
        curve = dict(multiverse.curve(headline, model))
        if curve:
            values = multiverse.range_of(headline, model)
            effects = values.pop("effects")
            values |= {knob: effects.get(knob) for knob in knobs}
            default_value = curve[default].value if default in curve else None
            statistic = next(iter(curve.values())).statistic  # the same in all protocols
            cells = {
                name: "" if value is None else numbers.number(value, statistic)
                for name, value in ({"default": default_value} | values).items()
            }
            rows.append(((headline.label,), cells))
    title = visible(model) if len(multiverse.models) > 1 else ""
    caption = "Range over the protocols, and how far each option moves the figure"
    return text_grid(caption, (title,), rows, knobs)


def _gap_grid(multiverse: Multiverse, figures: Sequence[Headline], new: str) -> Grid:
    """In how many protocols a figure of a model is higher than that of the first one."""
    headings = ("higher", "lower", "equal", "p < .05", "adjusted", "tests")
    rows = []
    for headline in figures:
        if differences := multiverse.differences(headline, new):
            counts = map(str, counts_of(differences.values()).values())
            rows.append(((headline.label,), dict(zip(headings, counts, strict=True))))
    title = difference_title(multiverse.models[0], new)
    caption = (
        "Number of protocols in which the figure is higher than the first model's, lower, equal"
    )
    return text_grid(caption, (title,), rows)


_MOST_SHOWN = 12
"""Charts of a page; tables alone have further figures and differences, and files all charts."""

_HOW_TO_READ = (
    "Charts have the figures of a model under all its protocols in ascending order, with 95% "
    "intervals, and below each point the choices of its protocol. The large point is the default "
    "protocol"
)


def multiverse_plots(multiverse: Multiverse, figures: Sequence[Headline]) -> Iterator[Plot]:
    """Yields the charts of some figures.

    The curves of each model, then those of the differences from the first model of each other one.
    """
    figures_of_page = _figures_with_curves(multiverse)
    reference, *others = multiverse.models
    for number, model in enumerate(multiverse.models, start=1):
        for headline in figures:
            if multiverse.curve(headline, model):
                plot = _model_plot(multiverse, headline, model, COLORS[(number - 1) % len(COLORS)])
                name = f"{_file_name(headline)}-{number}"
                yield plot._replace(name=name, is_repeated=headline not in figures_of_page)
    for number, new in enumerate(others, start=2):
        knobs = multiverse.choices(reference) | multiverse.choices(new)
        pair = difference_title(reference, new)
        for headline in figures:
            if rows := _difference_rows(multiverse, headline, new):
                chart = _chart(rows, knobs, INK, _are_percent(multiverse, headline))
                title = f"{visible(headline.label)}, {pair}"
                caption = f"{title}. {_HOW_TO_READ}; a filled point has p < .05, not adjusted."
                name = f"{_file_name(headline)}-difference-{number}"
                yield Plot("curve", name, caption, chart, heading=title, is_repeated=True)


def _file_name(headline: Headline) -> str:
    """Returns the name of the file of a figure's curve, without its ending."""
    parts = (re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-") for part in headline.key if part)
    return "-".join(parts)


def _are_percent(multiverse: Multiverse, headline: Headline) -> bool:
    """Whether all models have a figure in percent."""
    curves = (multiverse.curve(headline, model) for model in multiverse.models)
    return all(figure.is_percent for curve in curves for _, figure in curve)


def _model_plot(multiverse: Multiverse, headline: Headline, model: str, color: str) -> Plot:
    """The curve of a figure of a model; all those in percent have one scale."""
    curves = {name: multiverse.curve(headline, name) for name in multiverse.models}
    figures = [figure for curve in curves.values() for _, figure in curve]
    is_percent = _are_percent(multiverse, headline)
    values_and_bounds = [bound for x in figures for bound in (x.value, x.ci_low, x.ci_high)]
    scale_values = (
        [0.0, 1.0] if is_percent else [bound for bound in values_and_bounds if bound is not None]
    )
    rows = _model_rows(multiverse, curves[model], model)
    title = f"{visible(headline.label)}, {visible(model)}"
    statistic = figures[0].statistic
    sorted_values = sorted(figure.value for _, figure in curves[model] if figure.value is not None)
    sign = "%" if is_percent else ""
    low = numbers.number(sorted_values[0], statistic) + sign
    high = numbers.number(sorted_values[-1], statistic) + sign
    chart = _chart(rows, multiverse.choices(model), color, is_percent, scale_values)
    return Plot("curve", "", f"{title}: from {low} to {high}.", chart, heading=title)


def how_to_read(multiverse: Multiverse, figures: Sequence[Headline]) -> str:
    """Returns what the marks of the charts of some figures mean."""
    curves = [multiverse.curve(x, model) for x in figures for model in multiverse.models]
    if any(figure.chance is not None for curve in curves for _, figure in curve):
        chance = "the dashed line is chance, and a hollow point is not distinguishable from chance"
        return f"{_HOW_TO_READ}; {chance}."
    return f"{_HOW_TO_READ}."


def _figures_with_curves(multiverse: Multiverse) -> list[Headline]:
    """The figures whose curves a page shows: those with a chance level come first."""

    def has_chance(headline: Headline) -> bool:
        curves = (multiverse.curve(headline, model) for model in multiverse.models)
        return any(figure.chance is not None for curve in curves for _, figure in curve)

    ordered = sorted(multiverse.figures, key=lambda headline: not has_chance(headline))
    return ordered[: max(1, _MOST_SHOWN // len(multiverse.models))]


def _model_rows(
    multiverse: Multiverse, curve: Sequence[tuple[int, Figure]], model: str
) -> list[dict[str, Any]]:
    """The points of the curve of a model, with the choices of each."""
    default, *_ = multiverse.numbers_of(model)
    return [
        {
            "value": figure.value, "low": figure.ci_low, "high": figure.ci_high,
            "chance": figure.chance, "n": figure.n, "n_tied": figure.n_tied or None,
            "versus_chance": figure.versus_chance,
            "solid": figure.chance is None or figure.versus_chance in ("above", "below"),
            "default": member == default, "choices": multiverse.members[member].choices,
        }
        for member, figure in curve
    ]  # fmt: skip


def _difference_rows(multiverse: Multiverse, headline: Headline, new: str) -> list[dict[str, Any]]:
    """The differences of a model from the first one, with the choices of each."""
    reference = multiverse.models[0]
    knobs = multiverse.choices(reference)
    defaults = (multiverse.numbers_of(reference)[0], multiverse.numbers_of(new)[0])
    rows = []
    for pair, x in multiverse.differences(headline, new).items():
        base, other = (multiverse.members[number].choices for number in pair)
        rows.append({
            "value": x.difference, "low": x.ci_low, "high": x.ci_high, "chance": 0.0,
            "n": x.n, "n_tied": x.n_tied or None, "p": x.p, "p_adjusted": x.p_adjusted,
            "solid": x.p < ALPHA, "default": pair == defaults,
            "choices": base | other | {knob: x for knob, x in base.items() if knob in knobs},
        })  # fmt: skip
    return rows


def _chart(
    rows: Sequence[dict[str, Any]],
    open_knobs: Mapping[str, Sequence[str]],
    color: str,
    percent: bool,
    reach: Sequence[float] = (),
) -> Any:
    """A curve above the choices of its points, the knob that moves the figure most first."""
    choices = [row.pop("choices") for row in rows]
    effects = effects_of(choices, [row["value"] for row in rows])
    largest = max(effects.values(), default=0.0)
    lines: list[dict[str, Any]] = []
    for knob in sorted(open_knobs, key=lambda knob: -effects.get(knob, 0.0)):
        labels = [*map(choice_label, open_knobs[knob])]
        for number, (choice, label) in enumerate(zip(open_knobs[knob], labels, strict=True)):
            alike = labels.count(label) > 1  # long prompts
            title = f"{knob} {number + 1}: {label}" if alike else f"{knob} {label}"
            strongest = largest > 0 and effects.get(knob) == largest
            lines += [
                {"place": place, "choice": title, "strongest": strongest}
                for place, chosen in enumerate(choices, start=1)
                if chosen.get(knob) == choice
            ]
    for place, (row, chosen) in enumerate(zip(rows, choices, strict=True), start=1):
        parts = [f"{k} {choice_label(chosen[k])}" for k in KNOBS if k in open_knobs and k in chosen]
        label = ", ".join(parts) or "the one protocol"
        row |= {"place": place, "protocol": f"{label} (default)" if row["default"] else label}
    matrix = DataFrame(lines, columns=["place", "choice", "strongest"])
    return curve_chart(DataFrame(rows), matrix, color, "%" if percent else "", reach)
