"""Test suites: formulas on the surprisals of regions (Hu et al. 2020; Gauthier et al. 2020)."""

from __future__ import annotations

from lmdiag.diagnostics.base import Chart, Diagnostic, FigureSelection, TableShape

DIAGNOSTIC = Diagnostic(
    name="suites",
    about=(
        "Sentences in several conditions, divided into regions, with predictions about the "
        "surprisals of regions. Suite accuracy: the share of a suite's predictions that hold, over "
        "items. Prediction accuracy: the same, prediction by prediction."
    ),
    breakdowns=("suite",),
    further_measures=("suite_measures",),
    asks="sentence",
    has_regions=True,
    is_form=True,
    tables=(
        TableShape("Suite accuracy", "", ("suite_accuracy",), by=("", "suite")),
        TableShape(
            "By prediction", "", ("prediction_accuracy",), by=("", "prediction"), is_further=True
        ),
    ),
    charts=(
        Chart("levels", "By suite", by="suite", measures=("suite_accuracy",)),
        Chart("regions", by="suite"),
    ),
    headlines=(FigureSelection(("suite_accuracy",)),),
    verbatim=frozenset({"suite", "prediction"}),
)
