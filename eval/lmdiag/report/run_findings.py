"""Sentences on what figures against chance say of a run, and of several.

A model "prefers" something where the figure is above its chance level. All else cannot be told from
chance. Undefined figures are passed over.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from lmdiag.diagnostics import Diagnostic, Finding
from lmdiag.report import numbers
from lmdiag.report.numbers import interval_in_sentence, percent, short_percent
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
    """What a model does on one diagnostic.

    Attributes:
        text: a verb and what follows it, without the name of the model.
        alike_models: published models whose figures lie on the same sides of chance.
        has_own_sentence: whether it has several figures, and so a sentence of its own.
    """

    text: str
    alike_models: tuple[str, ...]
    has_own_sentence: bool


def run_findings(results: Results, subject: str = "") -> list[str]:
    """Returns sentences on what a model prefers, by its figures against chance.

    For example, "gpt2 prefers the good completion on NEG-136 (81.2%, chance 50.0%).". Diagnostics
    with one figure share the first sentence; one with several figures has its own. A last sentence
    names where all contrasts are tied.

    Args:
        subject: takes the place of the name of the model.
    """
    clauses = [*filter(None, (_clause_on(results, task) for task in results.tasks))]
    sharing = [clause for clause in clauses if not clause.has_own_sentence]
    clauses_of_sentences = [sharing] if sharing else []
    clauses_of_sentences += [[clause] for clause in clauses if clause.has_own_sentence]
    subject = visible(subject or model_label(results.model, results.protocol))
    sentences = []
    for sentence_clauses in clauses_of_sentences:
        alike_in_all = [
            model
            for model in sentence_clauses[0].alike_models
            if all(model in clause.alike_models for clause in sentence_clauses)
        ]
        text = listing([clause.text for clause in sentence_clauses])
        sentences.append(f"{subject} {text}{_as_published(alike_in_all)}.")
        subject = "It"
    return sentences + _tied_sentence(results, subject)


def _tied_sentence(results: Results, subject: str) -> list[str]:
    """Returns a sentence on the figures in which all contrasts are tied, which have no test.

    [] if there are none. `subject` is the name of the model, or "It".
    """
    tied_places = []
    for task in results.tasks:
        for key, figure in _finding_figures(results, task).items():
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
    text = _sides_of_chance(diagnostic, figures)
    if diagnostic.finding.noun:
        text = _shares_of_items(diagnostic, figures)
    alike_models = _published_alike(results, task, figures)
    return _Clause(text, alike_models, has_own_sentence=len(figures) > 1)


def _sides_of_chance(diagnostic: Diagnostic, figures: Mapping[FigureKey, Figure]) -> str:
    """Returns what a model does in the items of figures above, below and at chance.

    For example, "prefers the good completion on A (81.2%, chance 50.0%) and cannot be told from
    chance on B (53.1%)": a chance level that was just named is not repeated.
    """
    texts = []
    last_chance = None
    for verdict in VERDICTS:
        places = []
        for key, figure in figures.items():
            if figure.versus_chance == verdict:
                share = percent(figure.value)
                if figure.chance != last_chance:
                    share += f", chance {percent(figure.chance)}"
                if figure.n_tied:
                    share += f", {numbers.ties(figure)}"
                places.append(f"{_where(diagnostic, key)} ({share})")
                last_chance = figure.chance
        if places:
            texts.append(f"{_verb(diagnostic.finding, verdict)} {listing(places)}")
    return listing(texts)


def _shares_of_items(diagnostic: Diagnostic, figures: Mapping[FigureKey, Figure]) -> str:
    """Returns in which shares of the items of each level a model does what a finding says.

    For example, "prefers the true completion in 90% of affirmative and 10% of negated sentences
    (chance 50%; 10% cannot be told from it)".
    """
    finding = diagnostic.finding
    shares = []
    tied = []
    for key, figure in figures.items():
        items = finding.items[key.level]
        shares.append(f"{short_percent(figure.value)} of {items}")
        if figure.n_tied:
            tied.append(f"{numbers.ties(figure)} in {items} ones")
    levels = dict.fromkeys(short_percent(figure.chance) for figure in figures.values())
    chance = f"chance {listing([*levels])}"
    unclear = [
        short_percent(figure.value)
        for figure in figures.values()
        if figure.versus_chance == "not distinguishable"
    ]
    if unclear and len(unclear) == len(figures):
        chance += f"; {'none can' if len(figures) > 1 else 'this cannot'} be told from it"
    elif unclear:
        chance += f"; {listing([*dict.fromkeys(unclear)])} cannot be told from it"
    notes = "; ".join([chance, *tied])
    verb = finding.above  # what a model above chance does, e.g. "prefers the true completion"
    return f"{verb} in {listing(shares)} {finding.noun} ({notes})"


def _where(diagnostic: Diagnostic, key: FigureKey) -> str:
    """Returns the items of a figure as a place: "in negated sentences" or "on NEG-136".

    The diagnostic may declare what its items are (`finding.noun`, as "sentences") and words for the
    items of a level (`finding.items`, as "negated").
    """
    finding = diagnostic.finding
    if finding.noun:
        return f"in {finding.items[key.level]} {finding.noun}"
    return finding.items[key.level] or f"on {visible(diagnostic.short_title)}"


def _tested_figures(results: Results, task: str) -> dict[FigureKey, Figure]:
    """Returns those of `_finding_figures` that have a test against chance."""
    figures = _finding_figures(results, task)
    return {key: figure for key, figure in figures.items() if figure.versus_chance}


def _finding_figures(results: Results, task: str) -> dict[FigureKey, Figure]:
    """Returns the figures that sentences on a diagnostic are about, by their addresses.

    The diagnostic declares them, see `lmdiag.diagnostics.Finding`: the first of its measures that
    the run has, at each level of a break-down.
    """
    finding = results.diagnostic(task).finding
    measures = [name for name in finding.measures if results.measure(task, NONE, name)]
    if not measures:
        return {}
    figures = {}
    for level in finding.items:
        key = FigureKey(task, NONE, measures[0], by=finding.by, level=level)
        figure = results.figure(key)
        if figure:
            figures[key] = figure
    return figures


def frequency_findings(
    results: Results, comparisons: Mapping[FigureKey, Comparison], model: str
) -> list[str]:
    """Returns what word frequency alone does, beside a model: a sentence per diagnostic.

    For example, "Frequency alone prefers the good completion on NEG-136 in 60.0%, less often than
    gpt2 (81.2%; adjusted p = .012).".

    Args:
        results: of the model.
        comparisons: figure -> its comparison, in which the model is the base and word frequencies
            are the new run.
        model: name of the model.
    """
    sentences = []
    for task in results.tasks:
        diagnostic = results.diagnostic(task)
        finding = diagnostic.finding
        parts = []
        for key in _finding_figures(results, task):
            comparison = comparisons.get(key)
            if comparison is None or not comparison.n:
                continue
            share = percent(comparison.new)  # of word frequencies
            if finding.noun:  # for example "in 10% of negated sentences"
                text = f"in {share} of {finding.items[key.level]} {finding.noun}"
            else:  # for example "on NEG-136 in 10%"
                text = f"{_where(diagnostic, key)} in {share}"
            if comparison.n_tied:
                text += f" (over {comparison.n} contrasts that are not tied)"
            parts.append(f"{text}, {_compared_with_model(comparison, model)}")
        if parts:
            # what a model above chance does, e.g. "prefers the good completion"
            verb = finding.above
            sentences.append(f"Frequency alone {verb} {listing(parts)}.")
    return sentences


def _compared_with_model(comparison: Comparison, model: str) -> str:
    """Returns how word frequencies compare with a model: "less often than gpt2 (81.2%; ...)".

    Args:
        comparison: word frequencies minus the model, with the adjusted p; NaN if they are equal in
            every item.
        model: its name.
    """
    if math.isnan(comparison.p_adjusted):
        return f"as {model} does in every item"
    p = numbers.p_in_sentence(comparison.p_adjusted)
    model_share_and_test = f"({percent(comparison.base)}; adjusted {p})"
    if comparison.p_adjusted >= ALPHA:
        return f"which cannot be told from {model} {model_share_and_test}"
    often = "less often" if comparison.difference < 0 else "more often"
    return f"{often} than {model} {model_share_and_test}"


def prediction_findings(results: Results) -> list[str]:
    """Returns a sentence per task of test suites: the share of their predictions that hold.

    This is the measure `suite_accuracy`. It has an interval, but no chance level and so no test.
    """
    name = visible(model_label(results.model, results.protocol))
    sentences = []
    for task in results.tasks:
        figure = results.figure(FigureKey(task, NONE, "suite_accuracy"))
        if figure and figure.value is not None:
            share = f"{percent(figure.value)} of the predictions hold for {name}"
            n = f"{figure.n} item{'s' if figure.n != 1 else ''}"
            sentences.append(
                f"On average over {n}, {share}{interval_in_sentence(figure, figure.statistic)}."
            )
    return sentences


def models_findings(runs: Sequence[Results], noun: str = "models") -> list[str]:
    """Returns how many of several runs are above, and how many below, each chance level.

    For example, "Of 12 models, above chance are 7 on NEG-136 and none on ROLE-88 (11 tested); below
    chance are 2 on ROLE-88.". Figures without a test are not counted.

    Args:
        noun: what the runs are of, in the plural.
    """
    verdicts_at: dict[str, list[VersusChance | None]] = {}  # place -> verdict of each tested run
    for results in runs:
        for task in results.tasks:
            diagnostic = results.diagnostic(task)
            for key, figure in _tested_figures(results, task).items():
                verdicts_at.setdefault(_where(diagnostic, key), []).append(figure.versus_chance)
    if not verdicts_at:
        return []
    above = []
    below = []
    for where, verdicts in verdicts_at.items():
        n_tested = f" ({len(verdicts)} tested)" if len(verdicts) < len(runs) else ""
        above.append(f"{verdicts.count('above') or 'none'} {where}{n_tested}")
        if n_below := verdicts.count("below"):
            below.append(f"{n_below} {where}{n_tested}")
    text = f"above chance are {listing(above)}"
    if not any("above" in verdicts for verdicts in verdicts_at.values()):
        text = f"none is above chance {' or '.join(verdicts_at)}"
    below_text = f"; below chance are {listing(below)}" if below else ""
    return [f"Of {len(runs)} {noun}, {text}{below_text}."]


def _verb(finding: Finding, verdict: VersusChance) -> str:
    """Returns what a model does by a verdict: "prefers the good completion"."""
    if verdict == "above":
        return finding.above
    return finding.below if verdict == "below" else "cannot be told from chance"


def _published_alike(
    results: Results, task: str, figures: Mapping[FigureKey, Figure]
) -> tuple[str, ...]:
    """Returns the models of the paper whose figures all lie on the same sides of chance.

    For example, ("BERT base",) if the run is above chance where BERT base is in the paper, and not
    distinguishable from chance where BERT base is not. Left out are the model of the run itself,
    and models without one of the figures.

    Args:
        results: of the run.
        task: of the paper.
        figures: of the run, with their verdicts against chance.
    """
    published = reference_figures(results, task)
    verdicts = [figure.versus_chance for figure in figures.values()]
    alike_models = []
    for model, name in REFERENCES.items():
        published_verdicts = []
        for key, figure in figures.items():
            reported = published.get((model, key))
            if reported is not None:
                # the paper has rounded percentages; the test needs the count behind them
                count = round(reported.value / 100 * reported.n)
                share = Figure(count / reported.n, reported.n, chance=figure.chance)
                published_verdicts.append(share.versus_chance)
        # without one of the figures, a model has fewer verdicts than the run, and is left out
        is_of_run = results.model.id.rpartition("/")[2] == model
        if published_verdicts == verdicts and not is_of_run:
            alike_models.append(name)
    return tuple(alike_models)


def _as_published(models: Sequence[str]) -> str:
    """Returns the end of a sentence: ", as the published BERT base does"; "" without models."""
    verb = "do" if len(models) > 1 else "does"
    return f", as the published {listing(models)} {verb}" if models else ""
