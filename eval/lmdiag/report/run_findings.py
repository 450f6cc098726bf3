"""What figures against chance say of a run, and of several: sentences.

A model "prefers" something where the figure is above its chance level. All else cannot be told from
chance. Undefined figures are passed over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lmdiag.diagnostics import Diagnostic, Finding
from lmdiag.report import numbers
from lmdiag.report.numbers import percent, short_percent, within
from lmdiag.results import Figure, FigureKey, Results
from lmdiag.results.model_labels import model_label
from lmdiag.results.published_figures import REFERENCES, reference_figures
from lmdiag.results.results import VersusChance
from lmdiag.stimuli.perturbations import NONE
from lmdiag.studies.comparison import ALPHA, Comparison
from lmdiag.text import listing, visible

VERDICTS: tuple[VersusChance, ...] = ("above", "below", "not distinguishable")
"""The order in which a sentence names figures."""


class _Clause(NamedTuple):
    """What a model does on one diagnostic, and the published models that do the same."""

    text: str
    same: tuple[str, ...]
    is_alone: bool


def run_findings(results: Results, subject: str = "") -> list[str]:
    """Returns what a model prefers, by its figures against chance: a sentence or more.

    Diagnostics with one figure share the first sentence; one with several has its own. `subject`
    takes the place of the name of the model.
    """
    clauses = [*filter(None, (_clause_on(results, task) for task in results.tasks))]
    shared = [clause for clause in clauses if not clause.is_alone]
    groups = [shared] if shared else []
    groups += [[clause] for clause in clauses if clause.is_alone]
    subject = visible(subject or model_label(results.model, results.protocol))
    sentences = []
    for group in groups:
        same = [name for name in group[0].same if all(name in clause.same for clause in group)]
        text = listing([clause.text for clause in group])
        sentences.append(f"{subject} {text}{_as_published(same)}.")
        subject = "It"
    return sentences + _all_tied(results, subject)


def _all_tied(results: Results, subject: str) -> list[str]:
    """Says where all contrasts are tied, so that there is neither a preference nor a test."""
    tied_places = []
    for task in results.tasks:
        for key, figure in _named_figures(results, task).items():
            if figure.n and figure.n_tied == figure.n:
                contrasts = f"any of the {figure.n} contrasts" if figure.n > 1 else "the contrast"
                tied_places.append(f"{contrasts} {_where(results.diagnostic(task), key)}")
    if not tied_places:
        return []
    reason = "two rows share the highest probability (tied)"
    return [f"{subject} has no preference in {listing(tied_places)}: {reason}."]


def _clause_on(results: Results, task: str) -> _Clause | None:
    """Returns what a model does on a diagnostic; None without a figure tested against chance."""
    figures = _tested_figures(results, task)
    if not figures:
        return None
    diagnostic = results.diagnostic(task)
    same = _same_verdicts(results, task, figures)
    say = _shares_of_items if diagnostic.finding.noun else _sides_of_chance
    return _Clause(say(diagnostic, figures), same, len(figures) > 1)


def _sides_of_chance(diagnostic: Diagnostic, figures: Mapping[FigureKey, Figure]) -> str:
    """What a model does in the items of figures above, below and at chance."""
    texts = []
    chance = None
    for verdict in VERDICTS:
        items = []
        for key, figure in figures.items():
            if figure.versus_chance == verdict:
                level = "" if figure.chance == chance else f", chance {percent(figure.chance)}"
                tied = f", {numbers.ties(figure)}" if figure.n_tied else ""
                share = f"{percent(figure.value)}{level}{tied}"
                items.append(f"{_where(diagnostic, key)} ({share})")
                chance = figure.chance
        if items:
            texts.append(f"{_verb(diagnostic.finding, verdict)} {listing(items)}")
    return listing(texts)


def _shares_of_items(diagnostic: Diagnostic, figures: Mapping[FigureKey, Figure]) -> str:
    """In which shares of the items of each level a model does what a finding says."""
    finding = diagnostic.finding
    shares = [
        f"{short_percent(x.value)} of {finding.items[key.level]}" for key, x in figures.items()
    ]
    chance = (
        f"chance {listing([*dict.fromkeys(short_percent(x.chance) for x in figures.values())])}"
    )
    unclear = [x.value for x in figures.values() if x.versus_chance == "not distinguishable"]
    if unclear and len(unclear) == len(figures):
        chance += f"; {'none can' if len(figures) > 1 else 'this cannot'} be told from it"
    elif unclear:
        chance += (
            f"; {listing([*dict.fromkeys(map(short_percent, unclear))])} cannot be told from it"
        )
    tied = [
        f"{numbers.ties(figure)} in {finding.items[key.level]} ones"
        for key, figure in figures.items()
        if figure.n_tied
    ]
    notes = "; ".join([chance, *tied])
    return f"{finding.above} in {listing(shares)} {finding.noun} ({notes})"


def _where(diagnostic: Diagnostic, key: FigureKey) -> str:
    """The items of a figure, as the place where a model does something."""
    finding = diagnostic.finding
    if finding.noun:
        return f"in {finding.items[key.level]} {finding.noun}"
    return finding.items[key.level] or f"on {visible(diagnostic.short_title)}"


def _tested_figures(results: Results, task: str) -> dict[FigureKey, Figure]:
    """The figures of a diagnostic that findings name, those with a test against chance."""
    figures = _named_figures(results, task)
    return {key: figure for key, figure in figures.items() if figure.versus_chance}


def _named_figures(results: Results, task: str) -> dict[FigureKey, Figure]:
    """The figures of a diagnostic that findings name."""
    finding = results.diagnostic(task).finding
    measure = next((name for name in finding.measures if results.measure(task, NONE, name)), "")
    keys = [
        FigureKey(task, setting=NONE, measure=measure, by=finding.by, level=level)
        for level in finding.items
    ]
    figures = {key: results.figure(key) for key in keys}
    return {key: figure for key, figure in figures.items() if figure}


def frequency_findings(
    results: Results, comparisons: Mapping[FigureKey, Comparison], model: str
) -> list[str]:
    """Returns what word frequency alone does, beside a model: a sentence per diagnostic.

    Args:
        results: of the model.
        comparisons: of the model, the base, with word frequencies.
        model: its name.
    """
    sentences = []
    for task in results.tasks:
        diagnostic = results.diagnostic(task)
        compared = [
            comparisons[key]
            for key in _named_figures(results, task)
            if key in comparisons and comparisons[key].n
        ]
        parts = []
        for c in compared:
            where = _where(diagnostic, c.key)
            share = f"in {percent(c.new)} {where.replace('in ', 'of ', 1)}"
            if not diagnostic.finding.noun:
                share = f"{where} in {percent(c.new)}"
            if c.n_tied:
                share += f" (over {c.n} contrasts that are not tied)"
            parts.append(f"{share}, {_compared_with_model(c, model)}")
        if parts:
            sentences.append(f"Frequency alone {diagnostic.finding.above} {listing(parts)}.")
    return sentences


def _compared_with_model(c: Comparison, model: str) -> str:
    """What the adjusted test says of word frequencies beside a model."""
    p = numbers.p_value(c.p_adjusted)
    if math.isnan(c.p_adjusted):
        return f"as {model} does in every item"
    test = f"adjusted p {p if p.startswith('<') else f'= {p}'}"
    if c.p_adjusted >= ALPHA:
        return f"which cannot be told from {model} ({percent(c.base)}; {test})"
    often = "less often" if c.difference < 0 else "more often"
    return f"{often} than {model} ({percent(c.base)}; {test})"


def prediction_findings(results: Results) -> list[str]:
    """Returns the share of the predictions of test suites that hold for a model: suite_accuracy.

    It has an interval and no test, for no chance level is defined.
    """
    name = visible(model_label(results.model, results.protocol))
    sentences = []
    for task in results.tasks:
        figure = results.figure(FigureKey(task, NONE, "suite_accuracy"))
        if figure and figure.value is not None:
            share = f"{percent(figure.value)} of the predictions hold for {name}"
            n = f"{figure.n} item{'s' if figure.n != 1 else ''}"
            sentences.append(f"On average over {n}, {share}{within(figure, figure.statistic)}.")
    return sentences


def models_findings(runs: Sequence[Results], noun: str = "models") -> list[str]:
    """Returns how many of several runs are above, and how many below, each chance level.

    `noun` says what the runs are of. Figures without a test are not counted.
    """
    verdicts: dict[str, list[VersusChance | None]] = {}
    for results in runs:
        for task in results.tasks:
            diagnostic = results.diagnostic(task)
            for key, figure in _tested_figures(results, task).items():
                verdicts.setdefault(_where(diagnostic, key), []).append(figure.versus_chance)
    if not verdicts:
        return []
    above = []
    below = []
    for where, verdicts_of_runs in verdicts.items():
        n_tested = f" ({len(verdicts_of_runs)} tested)" if len(verdicts_of_runs) < len(runs) else ""
        above.append(f"{verdicts_of_runs.count('above') or 'none'} {where}{n_tested}")
        if n := verdicts_of_runs.count("below"):
            below.append(f"{n} {where}{n_tested}")
    text = f"above chance are {listing(above)}"
    if not any("above" in verdicts_of_runs for verdicts_of_runs in verdicts.values()):
        text = f"none is above chance {' or '.join(verdicts)}"
    below_text = f"; below chance are {listing(below)}" if below else ""
    return [f"Of {len(runs)} {noun}, {text}{below_text}."]


def _verb(finding: Finding, verdict: VersusChance) -> str:
    """Returns what a model does where its figure is above, below or at chance."""
    verbs = {"above": finding.above, "below": finding.below}
    return verbs.get(verdict, "cannot be told from chance")


def _same_verdicts(
    results: Results, task: str, figures: Mapping[FigureKey, Figure]
) -> tuple[str, ...]:
    """Models of the paper whose published figures lie on the same sides of chance."""
    published = reference_figures(results, task)
    names = []
    for model, name in REFERENCES.items():
        published_figures = [published.get((model, key)) for key in figures]
        verdicts = [
            # the count that was rounded to a percentage
            Figure(round(x.value / 100 * x.n) / x.n, x.n, chance=figure.chance).versus_chance
            for x, figure in zip(published_figures, figures.values(), strict=True)
            if x is not None
        ]
        is_other = results.model.id.rpartition("/")[2] != model
        if is_other and verdicts == [figure.versus_chance for figure in figures.values()]:
            names.append(name)
    return tuple(names)


def _as_published(names: Sequence[str]) -> str:
    """Returns the end of a sentence on models of the paper that do the same; "" for none."""
    verb = "do" if len(names) > 1 else "does"
    return f", as the published {listing(names)} {verb}" if names else ""
