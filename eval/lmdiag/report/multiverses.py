"""Tables and specification curves of a multiverse: models that were asked by several protocols.

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
        info = multiverse.runs[_default_member(multiverse, model)].results.model
        lines = [" · ".join(model_facts(info)), protocols_line(multiverse, model)]
        facts.append(Fact(visible(model), lines))
    signatures = [cited_signature(member.signature) for member in multiverse.members]
    return Output(
        kind="multiverse", title=" and ".join(map(visible, models)), facts=facts,
        findings=Deferred(lambda: multiverse_findings(multiverse)),
        sections=[*_sections(multiverse), _protocols(multiverse)],
        method=[*_method(multiverse), f"Signatures of the runs: {', '.join(signatures)}"],
        frame=multiverse.to_frame, document=multiverse.to_json, files=["multiverse.json"],
    )  # fmt: skip


def _default_member(multiverse: Multiverse, model: str) -> int:
    """Returns the number of the member of a model that has the default protocol."""
    return multiverse.numbers_of(model)[0]


def choice_label(choice: str) -> str:
    """Returns a choice as readers see it: of a long prompt its beginning and its end.

    >>> choice_label("Please complete this sentence with a single word: {context}")
    'Please complete this … ngle word: {context}'
    """
    text = visible(" ".join(choice.split()))
    half = _LONGEST_CHOICE // 2
    return text if len(text) <= _LONGEST_CHOICE else f"{text[:half]} … {text[-half:]}"


def protocols_line(multiverse: Multiverse, model: str) -> str:
    """Returns how many protocols a model has, and what varies: "4 protocols: unit token, word"."""
    count = len(multiverse.numbers_of(model))
    line = f"{count} protocol{'s' if count != 1 else ''}"
    knobs = [
        f"{knob} {', '.join(map(choice_label, choices))}"
        for knob, choices in multiverse.choices(model).items()
    ]
    return f"{line}: {'; '.join(knobs)}" if knobs else line


def _sections(multiverse: Multiverse) -> Iterator[Section]:
    """Yields a section per diagnostic with its tables and curves.

    A table per model has the ranges of the figures; a table per further model has its differences
    from the first one.
    """
    for task, headlines in groupby(multiverse.figures, key=lambda headline: headline.task):
        figures = [*headlines]
        diagnostic = diagnostics.get(task, multiverse.forms.get(task, ""))
        ranges = [_range_grid(multiverse, figures, model) for model in multiverse.models]
        differences = [_difference_grid(multiverse, figures, new) for new in multiverse.models[1:]]
        yield Section(
            diagnostic.title, [*ranges, *differences], task=task,
            short_title=diagnostic.short_title,
            about=[diagnostic.about], notes=[how_to_read(multiverse, figures)],
            plots=Deferred(partial(multiverse_plots, multiverse, figures)),
        )  # fmt: skip


def _protocols(multiverse: Multiverse) -> Section:
    """Returns the table of all runs, with the choices of each and a link to its report.

    Choices are those of knobs, the options of how models are asked.
    """
    choices = multiverse.choices(*multiverse.models)
    knobs = [*choices]
    defaults = {_default_member(multiverse, model) for model in multiverse.models}
    rows = []
    for number, member in enumerate(multiverse.members):
        cells = {knob: CellText(choice_label(member.choices.get(knob, ""))) for knob in knobs}
        path = visible(member.path)
        if number in defaults:
            path += " (default)"
        cells["run"] = CellText(path, link=str(multiverse.path / member.path / REPORT))
        rows.append(((member.model,), cells))
    title = "Each protocol is a run of its own, with a report"
    grid = text_grid(title, ("model",), rows, text_columns=[*knobs, "run"])  # no figures
    # the table may shorten a prompt, so the notes have it whole; other choices, such as "none", are
    # not shortened
    prompts = [prompt for prompt in choices.get("prompt", ()) if "{" in prompt]
    notes = [f"Prompt: {visible(prompt)}" for prompt in prompts]
    return Section("Protocols", [grid], notes=notes)


def _method(multiverse: Multiverse) -> Iterator[str]:
    """Yields the lines of the page that say how to read its tables and curves."""
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
    """Returns a table with a row per figure of a model: its range, and the effect of each knob.

    The columns are the figure in the default protocol, the lowest, median and highest one, and how
    far each knob moves it; empty cells where a knob has no effect that can be computed.
    """
    knobs = [*multiverse.choices(model)]
    default = _default_member(multiverse, model)
    rows = []
    for headline in figures:
        figure_of_member = dict(multiverse.curve(headline, model))
        if not figure_of_member:
            continue
        range_values = multiverse.range_of(headline, model)  # lowest, median, highest, effects
        effects = range_values.pop("effects")
        default_value = None
        if default in figure_of_member:
            default_value = figure_of_member[default].value
        values = {"default": default_value, **range_values}
        values |= {knob: effects.get(knob) for knob in knobs}
        statistic = next(iter(figure_of_member.values())).statistic  # the same in all protocols
        cells = {
            name: "" if value is None else numbers.number(value, statistic)
            for name, value in values.items()
        }
        rows.append(((headline.label,), cells))
    title = visible(model) if len(multiverse.models) > 1 else ""
    caption = "Range over the protocols, and how far each option moves the figure"
    return text_grid(caption, (title,), rows, text_columns=knobs)


def _difference_grid(multiverse: Multiverse, figures: Sequence[Headline], new: str) -> Grid:
    """Returns a table with a row per figure: in how many protocols two models differ, and how.

    The models are the first one and `new`; the columns count the pairs of protocols in which the
    figure of `new` is higher, lower or equal, and those in which the test rejects.
    """
    headings = ("higher", "lower", "equal", "p < .05", "adjusted", "tests")
    rows = []
    for headline in figures:
        if differences := multiverse.differences(headline, new):
            counts = counts_of(differences.values()).values()  # in the order of the headings
            texts = [str(count) for count in counts]
            rows.append(((headline.label,), dict(zip(headings, texts, strict=True))))
    title = difference_title(multiverse.models[0], new)
    caption = (
        "Number of protocols in which the figure is higher than the first model's, lower, equal"
    )
    return text_grid(caption, (title,), rows)


_MOST_CHARTS = 12
"""Charts of a page; tables alone have further figures and differences, and files all charts."""

_HOW_TO_READ = (
    "Charts have the figures of a model under all its protocols in ascending order, with 95% "
    "intervals, and below each point the choices of its protocol. The large point is the default "
    "protocol"
)


def multiverse_plots(multiverse: Multiverse, figures: Sequence[Headline]) -> Iterator[Plot]:
    """Yields the charts of some figures, also those that a page leaves out (`is_repeated`).

    The curves of each model, then those of the differences from the first model of each other one.
    """
    figures_of_page = _figures_with_curves(multiverse)
    reference, *others = multiverse.models
    # numbers of models, from 1, are parts of the names of files; other models are from 2
    for number, model in enumerate(multiverse.models, start=1):
        color = COLORS[(number - 1) % len(COLORS)]
        for headline in figures:
            if multiverse.curve(headline, model):
                plot = _model_plot(multiverse, headline, model, color)
                name = f"{_file_name(headline)}-{number}"
                yield plot._replace(name=name, is_repeated=headline not in figures_of_page)
    for number, new in enumerate(others, start=2):
        knobs = multiverse.choices(reference) | multiverse.choices(new)
        pair = difference_title(reference, new)
        for headline in figures:
            points = _difference_points(multiverse, headline, new)
            if points:
                is_percent = _is_percent_in_all(multiverse, headline)
                chart = _chart(points, knobs, INK, is_percent=is_percent)
                title = f"{visible(headline.label)}, {pair}"
                caption = f"{title}. {_HOW_TO_READ}; a filled point has p < .05, not adjusted."
                name = f"{_file_name(headline)}-difference-{number}"
                yield Plot("curve", name, caption, chart, heading=title, is_repeated=True)


def _file_name(headline: Headline) -> str:
    """Returns the name of the file of a figure's curve, without its ending: "neg136-none-accuracy".

    It is made of the letters and digits of the figure's address.
    """
    parts = [re.sub(r"[^A-Za-z0-9]+", "-", part).strip("-") for part in headline.key if part]
    return "-".join(parts)


def _figures_of_models(multiverse: Multiverse, headline: Headline) -> list[Figure]:
    """Returns one headline figure as it is in all protocols of all models, where it is defined."""
    curves = [multiverse.curve(headline, model) for model in multiverse.models]
    return [figure for curve in curves for _, figure in curve]


def _is_percent_in_all(multiverse: Multiverse, headline: Headline) -> bool:
    """Whether a figure is in percent in all protocols of all models."""
    return all(figure.is_percent for figure in _figures_of_models(multiverse, headline))


def _has_chance(multiverse: Multiverse, headline: Headline) -> bool:
    """Whether a figure has a chance level in any protocol of any model."""
    return any(figure.chance is not None for figure in _figures_of_models(multiverse, headline))


def _model_plot(multiverse: Multiverse, headline: Headline, model: str, color: str) -> Plot:
    """Returns the chart of a figure of a model in all protocols; the caller gives it a name.

    The scale is the same for all models: 0 to 100 percent, or from the lowest to the highest value
    or bound of any model.
    """
    is_percent = _is_percent_in_all(multiverse, headline)
    scale_values = [0.0, 1.0]
    if not is_percent:
        figures = _figures_of_models(multiverse, headline)
        bounds = [bound for x in figures for bound in (x.value, x.ci_low, x.ci_high)]
        scale_values = [bound for bound in bounds if bound is not None]
    curve = multiverse.curve(headline, model)  # in ascending order
    _, lowest = curve[0]  # number of the member, and its figure
    _, highest = curve[-1]
    sign = "%" if is_percent else ""
    low = numbers.number(lowest.value, lowest.statistic) + sign
    high = numbers.number(highest.value, highest.statistic) + sign
    points = _model_points(multiverse, curve, model)
    knobs = multiverse.choices(model)
    chart = _chart(points, knobs, color, is_percent=is_percent, scale_values=scale_values)
    title = f"{visible(headline.label)}, {visible(model)}"
    return Plot("curve", "", f"{title}: from {low} to {high}.", chart, heading=title)


def how_to_read(multiverse: Multiverse, figures: Sequence[Headline]) -> str:
    """Returns what the marks of the charts of some figures mean."""
    if any(_has_chance(multiverse, headline) for headline in figures):
        chance = "the dashed line is chance, and a hollow point is not distinguishable from chance"
        return f"{_HOW_TO_READ}; {chance}."
    return f"{_HOW_TO_READ}."


def _figures_with_curves(multiverse: Multiverse) -> list[Headline]:
    """Returns the figures whose curves a page shows: those with a chance level come first."""
    ordered = sorted(multiverse.figures, key=lambda figure: not _has_chance(multiverse, figure))
    most_figures = max(1, _MOST_CHARTS // len(multiverse.models))  # a chart of each per model
    return ordered[:most_figures]


def _model_points(
    multiverse: Multiverse, curve: Sequence[tuple[int, Figure]], model: str
) -> list[dict[str, Any]]:
    """Returns the points of the curve of a model: figures for `curve_chart`, and `choices`.

    A point is {"value": 0.8, "low": 0.7, "high": 0.9, "chance": 0.5, "solid": True, "default":
    False, "choices": {"unit": "word"}, ...}. A point that is not `solid` has a figure that is not
    distinguishable from its chance level; `default` says whether it is that of the default
    protocol.

    Args:
        curve: number and figure of each member, see `Multiverse.curve`.
    """
    default = _default_member(multiverse, model)
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


def _difference_points(
    multiverse: Multiverse, headline: Headline, new: str
) -> list[dict[str, Any]]:
    """Returns the points of the curve of the differences of a model from the first one.

    A point is {"value": difference, "low": ..., "high": ..., "choices": {"unit": "word"}, ...}. It
    stands for two runs, one of each model, with the same choices of all knobs (options of how a
    model is asked) that vary for both. A knob that varies for one of the models has the choice in
    the run of this model.
    """
    reference = multiverse.models[0]
    varying_knobs = multiverse.choices(reference)
    default_pair = (_default_member(multiverse, reference), _default_member(multiverse, new))
    points = []
    for pair, comparison in multiverse.differences(headline, new).items():
        reference_choices, new_choices = (multiverse.members[number].choices for number in pair)
        choices = reference_choices | new_choices
        for knob, choice in reference_choices.items():
            if knob in varying_knobs:  # the new model may have a single other choice of it
                choices[knob] = choice
        points.append({
            "value": comparison.difference, "low": comparison.ci_low, "high": comparison.ci_high,
            "chance": 0.0, "n": comparison.n, "n_tied": comparison.n_tied or None,
            "p": comparison.p, "p_adjusted": comparison.p_adjusted,
            "solid": comparison.p < ALPHA, "default": pair == default_pair, "choices": choices,
        })  # fmt: skip
    return points


def _chart(
    points: Sequence[dict[str, Any]],
    open_knobs: Mapping[str, Sequence[str]],
    color: str,
    *,
    is_percent: bool,
    scale_values: Sequence[float] = (),
) -> Any:
    """Returns a curve above the choices of its points, the knob that moves the figure most first.

    Args:
        points: in ascending order, each as {"value": 0.8, "choices": {"unit": "word"}, ...}. The
            points are changed: `choices` is taken out, and `place` and `protocol` are added.
        open_knobs: option of how models are asked -> its choices, if the protocols have several.
        color: of the points.
        is_percent: whether values are in percent.
        scale_values: values that the scale has to show beside those of the points.
    """
    # the strongest knob, whose dots are in colour
    choices_of_points = [point.pop("choices") for point in points]
    values = [point["value"] for point in points]
    effects = effects_of(choices_of_points, values)  # knob -> how far it moves the figure
    largest = max(effects.values(), default=0.0)
    # below the curve, a line for each choice, with a dot below each point that has the choice
    dots: list[dict[str, Any]] = []
    for knob in sorted(open_knobs, key=lambda knob: -effects.get(knob, 0.0)):
        is_strongest = largest > 0 and effects.get(knob) == largest
        labels = [choice_label(choice) for choice in open_knobs[knob]]
        for number, choice in enumerate(open_knobs[knob], start=1):
            label = labels[number - 1]
            line = f"{knob} {label}"
            if labels.count(label) > 1:  # long prompts that differ in the middle
                line = f"{knob} {number}: {label}"
            for place, choices in enumerate(choices_of_points, start=1):
                if choices.get(knob) == choice:
                    dots.append({"place": place, "choice": line, "strongest": is_strongest})
    # of each point, its place in the curve and its protocol in words
    for place, (point, choices) in enumerate(zip(points, choices_of_points, strict=True), start=1):
        open_choices = [
            f"{knob} {choice_label(choices[knob])}"
            for knob in KNOBS
            if knob in open_knobs and knob in choices
        ]
        protocol = ", ".join(open_choices) or "the one protocol"
        if point["default"]:
            protocol += " (default)"
        point |= {"place": place, "protocol": protocol}
    matrix = DataFrame(dots, columns=["place", "choice", "strongest"])
    form = "%" if is_percent else ""
    return curve_chart(DataFrame(points), matrix, color, form, scale_values)
