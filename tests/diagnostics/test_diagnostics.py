"""Diagnostics: each is one file, and what it declares is there in the data and on the Hub."""

import io
import sys
from fnmatch import fnmatchcase
from typing import get_args

import pytest
import yaml
from invented_runs import by_name, make_run, predictions_of
from rich.console import Console
from sentence_files import FILES as SETS
from sentence_files import write_set
from shown import plots_of, print_tables, sections_as, shown_as

import lmdiag
from lmdiag import diagnostics, stimuli
from lmdiag.asking.protocol import Protocol
from lmdiag.diagnostics import Chart
from lmdiag.diagnostics.base import FigureColumn
from lmdiag.hub.benchmark import columns, leaderboard_figures, task_id
from lmdiag.measures import AGREEMENT_LAYOUT, measures_of, registry
from lmdiag.report.item_list import item_list
from lmdiag.report.run_report import Report
from lmdiag.results import FigureKey, load_run
from lmdiag.stimuli import perturbations
from lmdiag.studies.comparison import compare_runs

TENSE = '''
"""Tense of a verb after an adverb of time."""

from dataclasses import replace

from lmdiag.diagnostics.base import (
    Column, Diagnostic, FigureSelection, Perturbation, TableShape,
)
from lmdiag.measures import register, probability_difference, sensitivity


def _without_adverb(row, run, seed):
    return row["context"].removeprefix(row["adverb"]).strip()


@register("tense", tense_margin="margin")
def margin(trials):
    return [replace(score, name="tense_margin") for score in probability_difference(trials)]


@register("tense", "new_measure")
def new_measure(trials):
    return [replace(sensitivity(trials, threshold=0.01)[0], name="new_measure")]


DIAGNOSTIC = Diagnostic(
    name="tense",
    title="TENSE-4: adverbs of time",
    short_title="TENSE-4",
    about="An adverb decides the tense.",
    columns=(Column("adverb", required=True), Column("tense", required=True)),
    breakdowns=("tense",),
    perturbations=(Perturbation("bare", "No adverb", _without_adverb, ("adverb",)),),
    tables=(TableShape(
        "Sensitivity by tense", "",
        measures=("sensitivity",), rows=("setting", "level"), columns="measure",
        by=("", "tense"), levels=("past",),
    ),),
    headlines=(FigureSelection(("sensitivity",), label="tense preferred"),),
    leaderboard=(FigureSelection(("sensitivity",)),),
    level_labels={"tense": {"past": "past tense", "future": "future tense"}},
    compared_by=(FigureSelection(("sensitivity",), "tense"),),
)
'''

ROWS = """id,item,context,target,good,contrast,adverb,tense
1a,1,Yesterday she,walked,true,1,Yesterday,past
1b,1,Yesterday she,walks,false,1,Yesterday,past
2a,1,Tomorrow she,walks,true,2,Tomorrow,future
2b,1,Tomorrow she,walked,false,2,Tomorrow,future
"""


@pytest.fixture
def tense(tmp_path, monkeypatch):
    """A diagnostic in one file of its own, and a file of its rows."""
    (tmp_path / "further").mkdir()
    (tmp_path / "further/tense.py").write_text(TENSE)
    monkeypatch.setattr(diagnostics, "__path__", [*diagnostics.__path__, str(tmp_path / "further")])
    diagnostics.declared.cache_clear()
    monkeypatch.setattr(registry, "REGISTRY", [*registry.REGISTRY])
    (tmp_path / "tense.csv").write_text(ROWS)
    yield tmp_path / "tense.csv"
    diagnostics.declared.cache_clear()
    sys.modules.pop("lmdiag.diagnostics.tense", None)
    vars(diagnostics).pop("tense", None)


def test_a_diagnostic_in_one_file_is_everywhere(tense, tmp_path):
    assert "tense" in diagnostics.built_in()
    assert "bare" in perturbations.names()
    protocol = Protocol(tasks=("tense",), perturb=("bare",))
    runs = [
        load_run(make_run(tmp_path / name, tense, protocol, id=name, skill=skill, seed=seed))
        for name, skill, seed in (("strong", 4.0, 0), ("weak", 0.0, 1))
    ]
    results = [run.results for run in runs]

    # run: settings, measures, break-downs
    contexts = perturbations.perturb(runs[0].stimuli["tense"], "bare", 0, 0).columns()["context"]
    assert contexts == ["she"] * 4
    for setting in ("none", "bare"):
        measures = results[0].tasks["tense"][setting].measures
        assert {"sensitivity", "tense_margin"} <= set(measures)
        assert list(measures["sensitivity"].by["tense"]) == ["past", "future"]

    # tables, the page, the comparison
    report = Report(runs)
    page = shown_as("html", report)
    markdown, latex = (sections_as(name, report.sections) for name in ("markdown", "latex"))
    for text in (markdown, page):
        assert all(label in text for label in ("No adverb", "margin", "past tense"))

    # a measure that no table and no chart declares: terminal, formats, csv, JSON, page, chart
    print_tables(results[0], Console(file=(terminal := io.StringIO()), width=200))
    assert all("new measure" in text for text in (terminal.getvalue(), markdown, page, latex))
    # models, settings, all items and two levels
    assert shown_as("csv", results).count(",new_measure,") == 2 * 2 * 3
    assert "new_measure" in results[0].to_json()["tasks"]["tense"]["none"]["measures"]
    items = lmdiag.load_run(runs[0].path, str(tense)).items().query("perturbation == 'none'")
    assert items["new_measure"].dropna().tolist() == items["sensitivity"].dropna().tolist()
    verdicts = runs[0].scores_of("tense")["new_measure"].values
    cells = lmdiag.analyse(runs[0], response="new_measure", conditions=["tense"]).cells
    assert cells.set_index("tense")["mean"][["past", "future"]].tolist() == verdicts.tolist()
    (first, *_) = item_list(Report(runs[0]).tasks["tense"])["listed"]
    assert f"new measure {verdicts[0]:.3f}" in first.measures
    (chart,) = (plot for plot in plots_of(runs) if plot.name == "tense-measures")
    assert {row["label"] for row in chart.spec["data"]["values"]} >= {"sensitivity", "new measure"}
    assert "TENSE-4: adverbs of time" in page
    assert "tense preferred" in page
    compared = [row for row in compare_runs(*runs, measures=["all"]) if row.task == "tense"]
    assert {(row.measure, row.level) for row in compared if row.setting == "none"} >= {
        ("sensitivity", "past"), ("sensitivity", "future"), ("tense_margin", ""),
        ("new_measure", ""),
    }  # fmt: skip

    # the leaderboard
    assert FigureKey("tense", "none", "sensitivity") in columns()
    figure = leaderboard_figures(results[0])["tense_sensitivity"]
    assert figure == results[0].figure(FigureKey("tense", "none", "sensitivity"))


WITH_DATA = [name for name, of in diagnostics.built_in().items() if of.in_data_set or name in SETS]


@pytest.mark.parametrize("task", WITH_DATA)
def test_what_a_diagnostic_declares_is_in_its_data(demo_dir, tmp_path, task):
    diagnostic = diagnostics.get(task)
    data = write_set(tmp_path, SETS[task], 20) if task in SETS else demo_dir
    rows = stimuli.load(str(data), task)
    table = rows.columns()
    declared = {column.name for column in diagnostic.columns}
    assert set(table) == declared | {column.name for column in diagnostics.CORE}
    n = len(rows)
    more = {"n_tokens": [1] * n}
    if diagnostic.has_verbs:
        more["agreement"] = [(0.5,) * len(AGREEMENT_LAYOUT)] * n
    answers = vars(predictions_of(table, [-1.0] * n, [["a"] * 5] * n, **more))
    scores = by_name(diagnostic.score(table, answers))
    by = {name: set(levels) for score in scores.values() for name, levels in score.levels.items()}

    for perturbation in diagnostic.perturbations:
        assert set(perturbation.needs) <= set(table)
        assert perturbations.perturb(rows, perturbation.name, 0, 0).columns()["context"]
    selections = (*diagnostic.headlines, *diagnostic.leaderboard, *diagnostic.compared_by)
    for shape in (*diagnostic.tables, *selections):
        for pattern in shape.measures:
            assert any(fnmatchcase(name, pattern) for name in scores), pattern
    assert {name for x in diagnostic.leaderboard for name in x.measures} <= scores.keys()
    addresses = [(by_, "") for table in diagnostic.tables for by_ in table.by]
    addresses += [(x.by, level) for x in selections for level in (x.levels or ("",))]
    addresses += [(chart.by, level) for chart in diagnostic.charts for level in chart.levels]
    addresses += [(by_, "") for by_ in diagnostic.untagged]
    for column, level in addresses:
        assert not column or column in by, column
        is_known = any(fnmatchcase(known, level) for known in by.get(column, ()))
        assert level in ("", "*") or is_known, (column, level)


def test_the_leaderboards_columns_are_the_tasks_of_the_benchmark(root):
    declared = {task_id(place): place.task for place in columns()}
    tasks = yaml.safe_load((root / "datasets/lmdiag/eval-lmdiag.yaml").read_text("utf-8"))["tasks"]
    assert [(task["id"], task["config"]) for task in tasks] == list(declared.items())


@pytest.mark.parametrize("name", diagnostics.declared())
def test_every_name_in_a_declaration_is_known(name):
    """A wrong name would leave a table, a chart or a column empty without a word."""
    diagnostic = diagnostics.declared()[name]
    functions = [*measures_of(name, diagnostic.asks), *measures_of(name, "choice")]
    bases = {base.removeprefix("human_") for entry in functions for base in entry.labels}
    measures = {base.partition("@")[0] for base in bases}
    columns = {column.name for column in (*diagnostic.core, *diagnostic.columns)}
    by = {"", *columns, *diagnostic.breakdowns, *diagnostic.verbatim, *diagnostic.level_labels}
    levels = {level for labels in diagnostic.level_labels.values() for level in labels}
    levels |= {level for table in diagnostic.tables for level in table.levels}
    labels = {"", "human", *measures, *levels}
    figures = (*diagnostic.headlines, *diagnostic.leaderboard, *diagnostic.compared_by)
    selections = (*figures, *diagnostic.charts)
    patterns = {name for x in (*selections, *diagnostic.tables) for name in x.measures}
    if diagnostic.asks == "sentence":
        patterns -= {*Chart("figures").measures}  # the usual ones, of which a diagnostic has some
    for pattern in patterns:
        assert any(fnmatchcase(base, pattern.partition("@")[0]) for base in measures), pattern
    used = {x.by for x in selections} | {by_ for table in diagnostic.tables for by_ in table.by}
    used |= {*diagnostic.untagged, diagnostic.item_within}
    own = {"prediction"} if diagnostic.has_regions else set()
    assert used <= by | own
    for table in diagnostic.tables:
        assert {*table.rows, table.columns} <= {*get_args(FigureColumn)}
        assert {key.partition("@")[0] for key in (*table.labels, *table.published)} <= labels
    settings = {"none", *(perturbation.name for perturbation in diagnostic.perturbations)}
    for perturbation in diagnostic.perturbations:
        assert {*perturbation.needs} <= columns
        assert perturbation.unshuffled in settings
