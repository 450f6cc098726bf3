"""A run, a comparison, an analysis and a fit without a figure say what was not scored."""

import math
from dataclasses import replace

import pytest
from invented_runs import make_run
from numpy import array
from pandas import DataFrame

import lmdiag
from lmdiag.asking.protocol import Predictions
from lmdiag.report.display import output_of
from lmdiag.report.formats import FORMATS, printed, write_files
from lmdiag.report.run_report import Report, runs_output
from lmdiag.results import load_run
from lmdiag.types import BadInput

SENTENCES = "item,cond,sentence\n1,a,The 😀 sat\n1,b,The 😀 ran\n2,a,A 😀 sat\n2,b,A 😀 ran\n"
WHY = "none has no figure on an: its vocabulary lacks sat, ran."
DOCUMENTS = [name for name in FORMATS if name not in ("svg", "pdf", "png", "tsv", "parquet")]


@pytest.fixture(scope="module")
def pair(tmp_path_factory):
    """A masked model that scores no sentence, and a causal one that scores all."""
    folder = tmp_path_factory.mktemp("none")
    (folder / "an.csv").write_text(SENTENCES, encoding="utf-8")
    make_run(folder / "none", folder / "an.csv", id="org/none", unscorable=4)
    make_run(folder / "some", folder / "an.csv", id="org/some", kind="causal", bos=True)
    return [load_run(folder / name) for name in ("none", "some")]


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_format_says_why_a_run_has_no_figure(pair, name, tmp_path):
    output = runs_output(Report(pair[0]))
    assert [*output.findings] == [WHY]
    (file,) = write_files(output, [tmp_path / f"run{FORMATS[name].suffix}"], 8.0)
    assert file.stat().st_size > 0
    if name in ("text", "html", "markdown"):
        assert WHY in printed(output, name, 8.0)
    if name == "json":
        assert '"word": "sat"' in printed(output, name, 8.0)


def test_a_comparison_says_why_nothing_is_compared(pair):
    output = output_of(lmdiag.compare(*pair))
    assert [*output.findings] == [WHY, "Nothing is compared: no item was scored by both models."]
    assert WHY in [*runs_output(Report(pair)).findings]


def test_an_analysis_names_the_cause(pair):
    with pytest.raises(BadInput, match="its vocabulary lacks sat, ran"):
        lmdiag.analyse(pair[0])
    both = lmdiag.analyse(pair)
    assert {*both.effects["model"]} == {"some"}
    assert "left out: none: surprisal is missing" in both.notes
    empty = DataFrame({"item": [1, 1], "c": ["a", "b"], "surprisal": [math.nan] * 2})
    with pytest.raises(BadInput, match="surprisal is missing in all 2 rows"):
        lmdiag.analyse(empty)


def test_models_that_score_different_contrasts_have_rows_without_items():
    rows = DataFrame(
        {"item": i, "context": f"Number {i} saw the", "target": word, "good": good, "contrast": i}
        for i in (1, 2)
        for word, good in (("dog", 1), ("cat", 0))
    )
    stimuli = lmdiag.load_stimuli(rows)
    ids = stimuli.columns()["id"]
    some = Predictions(
        id=ids, log_prob=[-2, -3, None, None], rank=[1] * 4, n_tokens=[1, 1, 0, 0],
        top_words=[["dog"]] * 4, top_log_probs=[None] * 4,
    )  # fmt: skip
    other = replace(some, log_prob=some.log_prob[::-1], n_tokens=some.n_tokens[::-1])
    compared = lmdiag.compare(*(lmdiag.measure(part, stimuli) for part in (some, other)))
    (row,) = (row for row in compared if row.measure == "sensitivity")
    assert (row.n, row.test) == (0, "none")
    assert array([row.base, row.new, row.difference, row.p, row.ci_low]).dtype == float
    assert math.isnan(row.difference)
    output = output_of(compared)
    *_, last = output.findings
    assert last.startswith("No item of sensitivity,")
    assert "was scored by both" in last
    (line,) = (line for line in output.sections[-1].remarks if line.startswith("n = 0"))
    assert "no item was scored by both" in line
    assert not compared.losses(0.0)


def test_a_fit_names_a_model_without_rows_and_refuses_a_constant_response():
    n = 30
    table = DataFrame({"position": range(n), "word": ["word"] * n, "x": [i % 7 for i in range(n)]})
    table = table.assign(a=[(i * 5) % 11 for i in range(n)], b=math.nan)
    table["rt"] = [200 + (i * i) % 17 for i in range(n)]
    how = {"response": "rt", "controls": ["x"], "lags": 0}
    fit = lmdiag.fit(table, surprisal=["a", "b"], **how)
    assert [model.name for model in fit.models] == ["a"]
    assert "b: no row is left: surprisal is missing (30)" in fit.notes
    with pytest.raises(BadInput, match="b: no row is left"):
        lmdiag.fit(table, surprisal="b", **how)
    with pytest.raises(BadInput, match="rt is 300 in each of 30 rows, so that nothing"):
        lmdiag.fit(table.assign(rt=300), surprisal="a", **how)
