"""The tables of runs: whole, in every format, and what decides their shape.

The expected texts are in `tests/data/tables`. After an intended change, write them again with
`ACCEPT_TABLES=1 pytest tests/report/test_tables.py` and read the difference.
"""

import csv
import io
import math
import os
import re
import shutil
import subprocess
from dataclasses import replace
from pathlib import Path

import docx
import pytest
from launched import HANG
from rich.console import Console
from shown import print_tables, sections_as, shown_as

import lmdiag
from lmdiag import diagnostics
from lmdiag.report import formats, numbers
from lmdiag.report.display import output_of
from lmdiag.report.formats import word
from lmdiag.report.formats.terminal import print_output
from lmdiag.report.grid import CellText, text_grid, with_one_label_column
from lmdiag.report.labels import run_labels
from lmdiag.report.output import Fact, Output, Section
from lmdiag.report.run_report import Report, brief_output
from lmdiag.report.selections import ReportFigures
from lmdiag.report.tables import overview, sections
from lmdiag.results import FigureKey, Run
from lmdiag.results.run import joined_runs

EXPECTED = Path(__file__).parents[1] / "data" / "tables"


def of_bert(run):
    """Results as those of a model of the papers, on as many rows as theirs."""
    data = run.results.data
    tasks = {
        task: replace(facts, n=diagnostics.get(task).published_rows or facts.n)
        for task, facts in data.tasks.items()
    }
    model = replace(run.results.model, id="bert-base-uncased")
    return replace(run.results, model=model, data=replace(data, tasks=tasks, source="lmdiag"))


def changed(results, task, setting, **content):
    """Results with other content of a setting."""
    new = replace(results.tasks[task][setting], **content)
    return replace(results, tasks={task: results.tasks[task] | {setting: new}})


def elsewhere(run):
    """A run with data of a name that is the same on every machine."""
    results = run.results
    return replace(run, results=replace(results, data=replace(results.data, source="data")))


@pytest.fixture(scope="module")
def tables(runs, forms):
    """Beginning of the names of expected texts -> what is shown, made once for all formats."""
    strong, weak = runs["strong"], runs["weak"]
    names = ("pairs", "suites", "pairs of weak", "suites of weak")
    both = joined_runs([forms[name] for name in names])
    chosen = ["two_predictions/2", "wh_island-0-good"]
    texts = forms["sentences"].results
    texts = replace(texts, data=replace(texts.data, source="texts.csv"))
    reports = {
        "run": Report([Run(Path(), of_bert(strong), {})]),
        "agreement": Report([elsewhere(runs["all"])]),
        "runs": Report([elsewhere(strong), elsewhere(weak)], items=["role88-1"]),
        "sentences": Report([Run(Path(), texts, {})]),
        "two-sentences": Report([*map(elsewhere, both)], items=chosen),
    }
    return {name: output_of(report) for name, report in reports.items()}


def sections_of(*results):
    return sections(ReportFigures.of(results))


def printed(content, width, show=print_tables):
    show(content, console=Console(file=(stream := io.StringIO()), width=width))
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines()) + "\n"


def headlines_printed(content, console):
    report = Report([Run(Path("results/model/diagnostics-token"), content, {})])
    print_output(brief_output(report), console)


def undivided(output, console):
    print_output(output, console, is_undivided=True)


@pytest.mark.parametrize("name", [file.name for file in sorted(EXPECTED.iterdir())])
def test_tables_are_the_expected_ones(name, runs, tables):
    """Shapes of the papers, levels in order, n, chance, signs, published rows, remarks."""
    what, _, form = name.partition(".")
    kind, _, width = form.partition("-")
    output, file = tables[what], EXPECTED / name
    if kind == "headlines":
        text = printed(of_bert(runs["strong"]), int(width), headlines_printed)
    elif width:
        text = printed(output, int(width))
    else:
        text = shown_as(kind, output)
    if os.environ.get("ACCEPT_TABLES"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("width", [60, 100])
def test_no_table_is_wider_than_the_terminal_or_cut_off(runs, width):
    for content in (of_bert(runs["strong"]), runs["all"].results):
        blocks = printed(content, width).split("\n\n")
        tables = [line for block in blocks if "────" in block for line in block.splitlines()]
        assert max(map(len, tables)) <= width
        assert not [line for line in tables if "…" in line]


def test_four_checkpoints_are_one_table_on_a_narrow_terminal(runs):
    """Each figure has its interval beside it, in whole percent; chance stands below."""
    four = [runs[name].results for name in ("step0", "step1000", "step64000", "step1000")]
    four[3] = replace(four[3], model=replace(four[3].model, revision="x", training_step=143000))
    report = Report([Run(Path(), results, {}) for results in four])
    text = printed(replace(brief_output(report), findings=()), 80, undivided)
    lines = text.splitlines()
    assert len(lines) <= 40
    table = lines[: lines.index("", 4)]
    assert max(map(len, table)) <= 80
    cprag = next(line for line in lines if "sensitivity " in line)
    figures = [run.tasks["cprag102"]["none"].measures["sensitivity"] for run in four]
    intervals = [f"{100 * x.ci_low:.0f}–{100 * x.ci_high:.0f}" for x in figures]
    assert re.findall(r"\d+–\d+", cprag) == intervals
    assert "chance: CPRAG-102 33.3, ROLE-88 50.0, NEG-136 50.0" in lines


TWO_COLUMNS = (
    r"\documentclass[twocolumn]{article}\usepackage[textwidth=17cm,columnsep=1cm]{geometry}"
)
CLASSES = {8: TWO_COLUMNS, 12: r"\documentclass{article}", 17: TWO_COLUMNS}
"""Width of tables in cm -> a class of papers with columns or pages of that width."""


@pytest.fixture(scope="module")
def pdflatex(tmp_path_factory):
    """Returns a function that compiles a document; skips without it or without its packages."""
    if not shutil.which("pdflatex"):
        pytest.skip("needs pdflatex")

    def compile(text, folder):
        (folder / "a.tex").write_text(text)
        command = ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "-draftmode", "a.tex"]
        done = subprocess.run(command, cwd=folder, capture_output=True, timeout=HANG, check=False)
        return done.returncode, (folder / "a.log").read_text(errors="replace")

    for package in ("geometry", "booktabs", "graphicx", "longtable"):
        head = rf"\documentclass{{article}}\usepackage{{{package}}}"
        code, _ = compile(head + r"\begin{document}x\end{document}", tmp_path_factory.mktemp("tex"))
        if code:
            pytest.skip(f"pdflatex has no {package}")
    return compile


@pytest.mark.slow
@pytest.mark.parametrize("width", [8, 12, 17])
def test_latex_fits_a_column_and_a_page(runs, forms, tables, width, pdflatex, tmp_path):
    """No line is more than 5 pt too wide, and no table longer than a page."""
    pair = [runs["strong"], runs["weak"]]
    given = [lmdiag.compare(*pair), *tables.values(), Report([runs["all"]]), Report([*pair] * 3)]
    texts = [shown_as("latex", result, width) for result in given]
    body = "\\clearpage\n".join(texts)  # LaTeX keeps a few floats only
    body = re.sub(r"(?<=\\end\{table\})|(?<=\\end\{table\*\})", "\n\\\\clearpage", body)
    head = CLASSES[width] + r"\usepackage{booktabs,graphicx}\begin{document}"
    code, log = pdflatex(f"{head}\n{body}\n\\end{{document}}", tmp_path)
    assert not code, log[-2000:]
    too_wide = [float(x) for x in re.findall(r"Overfull \\hbox \(([\d.]+)pt", log)]
    assert max(too_wide, default=0) <= 5
    assert "Float too large" not in log
    assert "undefined" not in log.lower().replace("undefined references", "")


EFFECTS = ("grammatical[yes - no]", "attractor[same - different]", "grammatical:attractor")


def effects_output(n_columns=5):
    """A result with a table of effects in two models, and one of cells."""
    names = ["n", "difference, bits", "t (df)", "p", "d_z", *map(str, range(n_columns - 5))]
    cells = dict.fromkeys(names, "1") | {"difference, bits": CellText("−2.03", "[−3.40, −0.66]")}
    rows = [((effect, model), cells) for model in ("gpt2", "bert") for effect in EFFECTS]
    effects = text_grid("Effects on surprisal", ("effect", "model"), rows)
    means = text_grid("Mean surprisal", ("cell",), [(("yes, same",), {"n": "24"})])
    tables = [effects._replace(notes=("effects: t tests; d_z",)), means._replace(notes=("cells",))]
    remarks = ["effects: t tests; d_z", "cells", "left out: 2 items"]
    section = Section("", tables, remarks, signatures=["lmdiag:0.2|data:1"])
    facts = [Fact("gpt2", ["float32, data a.csv"])]
    return Output(
        kind="analysis", title="a", facts=facts, sections=[section], frame=None, document=None
    )


def test_tables_of_papers_are_whole_and_have_their_notes():
    """In LaTeX and Word: up to six columns in one table, and below it what it needs."""
    text = formats.printed(effects_output(), "latex", 8.0)
    assert re.findall(r"\\label\{(.*)\}", text) == [
        "tab:effects-on-surprisal",
        "tab:mean-surprisal",
    ]
    assert "$d_z$" in text
    assert "$p$" in next(line for line in text.splitlines() if r"\shortstack" in line)
    first, second = re.findall(r"\\textit\{Note.\}(.*)\}", text)
    facts = r"gpt2: float32, data a.csv. lmdiag:0.2\textbar{}\allowbreak{}data:1."
    assert first == f" Effects: t tests; $d_z$. left out: 2 items. {facts}"
    assert second == f" Cells. {facts}"
    # the rows of a model follow each other: they are below its name
    order = [text.index(name) for name in ("gpt2 &", "yes", "bert &")]
    assert order == sorted(order)
    assert formats.printed(effects_output(40), "latex", 8.0).count("Effects on surprisal") > 1

    document = docx.Document(io.BytesIO(word.render(effects_output(), 8.0)))
    texts = [x.text for x in document.paragraphs]
    place = texts.index("Table 1")
    assert texts[place + 1] == "Effects on surprisal"
    note = next(text for text in texts if text.startswith("Note. "))
    assert note.startswith("Note. Effects: t tests; d_z. left out: 2 items. gpt2: float32")
    table, _ = document.tables
    lines = [
        x.paragraph_format.keep_with_next for row in table.rows for x in row.cells[0].paragraphs
    ]
    assert all(lines)
    assert table.style.name == "Normal Table"


def test_every_figure_is_in_some_table_and_in_csv(runs):
    run = runs["strong"].results
    for section in sections_of(run):
        rows = [row for table in section.tables + section.further for row in table.rows]
        shown = {(cell.value, cell.n) for row in rows for cell in row.cells}
        figures = [figure for place, figure in run.figures() if place.task == section.task]
        assert {(numbers.value(figure), figure.n) for figure in figures} <= shown
    values = {}
    for row in csv.DictReader(io.StringIO(shown_as("csv", [run]))):
        place = FigureKey(*(row[name] for name in FigureKey._fields))
        values[place] = [float(row[x]) if row[x] else None for x in ("value", "n", "ci_low")]
    assert values == {place: [x.value, x.n, x.ci_low] for place, x in run.figures()}


def test_remarks_count_what_is_left_out_and_name_a_sample(runs):
    run = runs["strong"].results
    remark = "3 contrasts whose good and bad rows have the same text or the same tokens"
    (section,) = sections_of(changed(run, "cprag102", "none", equal_contrasts=3))
    assert f"not compared: {remark}" in section.remarks
    measures = run.tasks["cprag102"]["shuf"].measures
    fewer = {"accuracy@1": replace(measures["accuracy@1"], n=15)}
    other = changed(run, "cprag102", "shuf", measures=measures | fewer)
    (section,) = sections_of(replace(other, protocol=replace(run.protocol, limit=8)))
    assert section.remarks[0].startswith("a sample of 54 rows")
    # n shows where figures differ in it
    assert section.tables[0].rows[0].cells[0].value == "15–18"


def test_what_one_of_two_models_lacks_is_said_of_it(runs):
    strong = changed(runs["strong"].results, "cprag102", "none", not_computed=["rank: why"])
    weak = runs["weak"].results
    assert sections_of(strong)[0].remarks[0] == "not computed: rank: why"
    assert sections_of(strong, weak)[0].remarks[0] == "not computed by strong: rank: why"


def test_figures_of_the_paper_stand_beside_runs_on_its_rows(runs):
    """Those of the model itself, else of BERT base and large; none beside other rows."""
    bert = of_bert(runs["strong"])
    other_model = replace(bert, model=runs["strong"].results.model)
    other_rows = replace(bert, data=runs["strong"].results.data)
    base, large = "BERT base, published", "BERT large, published"
    shown = {}
    for name, results in (("bert", bert), ("other", other_model), ("rows", other_rows)):
        tables = [table for section in sections_of(results) for table in section.tables]
        rows = [row for table in tables for row in table.rows if row.is_published]
        shown[name] = {row.labels[0] for row in rows}
        headings = overview(ReportFigures.of([results])).tables[0].headings
        assert (large in [heading.label for heading in headings]) == (name != "rows")
    assert shown == {"bert": {"published", large}, "other": {base, large}, "rows": set()}
    (table,) = overview(ReportFigures.of([other_model])).tables
    row = next(row for row in table.rows if row.labels == ("accuracy@5",))
    names = [heading.label for heading in table.headings]
    # table 4 of Ettinger (2020)
    assert [row.cells[names.index(name)].value for name in (base, large)] == ["52.9", "52.9"]
    # bounds of quartiles, too, are those of the published rows
    role = next(section for section in sections_of(other_rows) if section.task == "role88")
    labels = [heading.label for heading in role.tables[1].headings if heading.is_figure]
    assert labels == ["lowest quartile", "second", "third", "highest"]


def test_an_overview_of_a_task_without_figures_is_empty(runs):
    run = changed(runs["strong"].results, "cprag102", "none", measures={})
    assert not overview(ReportFigures.of([run, run])).tables


def test_runs_of_one_name_are_told_apart_by_what_differs(runs):
    run = runs["strong"].results
    other = replace(run, model=replace(run.model, dtype="bfloat16"))
    assert run_labels([run, other]) == ["strong (float32)", "strong (bfloat16)"]
    later = replace(run, model=replace(run.model, commit="f" * 40))
    names = ["strong (aaaaaaaaaaaa) #1", "strong (ffffffffffff)"]
    assert run_labels([run, later, run]) == [*names, "strong (aaaaaaaaaaaa) #3"]


def test_numbers_as_readers_see_them():
    for function, statistic, values, texts in (
        (numbers.signed, "share", (-0.0001, 0.0567, math.nan), "0.0 +5.7 –"),
        # a tie goes away from zero, as in charts: Python's own format would give 6.2
        (numbers.signed, "proportion", (0.0625, -0.0625), "+6.3 −6.3"),
        # 100.0 is what is 100, and nothing less
        (numbers.number, "proportion", (1.0, 0.9996, 0.99999, 0.9994), "100.0 99.96 99.999 99.9"),
        # a rank, the median of two ranks, a mean over shuffles
        (numbers.number, "median", (12.0, 3.5, 7.333, -0.0), "12 3.5 7.3 0"),
        (numbers.number, "mean", (12.0, -0.5, 1e15), f"12.000 −0.500 1{15 * '0'}.000"),
    ):
        assert " ".join(function(value, statistic) for value in values) == texts
    p_values = [numbers.p_value(p) for p in (1.0, 0.9996, 0.999, 0.0004)]
    assert p_values == ["1", "> .999", ".999", "< .001"]
    assert numbers.probability(0.9996) == "> .999"
    counts = [numbers.count(n) for n in (950, 4_385_920, 109_514_298, 6_738_415_616)]
    assert counts == ["950", "4.4M", "110M", "6.7B"]


def test_a_long_heading_of_labels_counts_in_the_width_of_latex():
    rows = [((name,), {"ahead": "1", "behind": "2"}) for name in ("accuracy", "sensitivity")]
    heading = "a model with a long name − another model with a long name"
    text = sections_as("latex", [Section("", [text_grid("", (heading,), rows)])])
    assert r"\begin{tabular}{@{}p{" in text


def test_a_label_that_is_longer_than_a_page_of_latex_ends_a_part_of_its_table():
    labels = [("figure", "very long " * 400), ("figure", "b"), ("other", "b")]
    grid = text_grid("", ("", "model"), [(label, {"n": "1"}) for label in labels])
    text = sections_as("latex", [Section("", [grid])])
    assert "(1 of 2)" in text


@pytest.mark.parametrize("models", ["ab", "aabb"])
def test_rows_of_people_have_one_label_as_those_of_models_in_word(models):
    labels = [(f"figure {i % 2}", model) for i, model in enumerate(models)]
    labels.append(("people", ""))
    grid = with_one_label_column(
        text_grid("", ("", "model"), [(label, {"n": "1"}) for label in labels])
    )
    assert {len(row.labels) for row in grid.rows} == {1}
    assert grid.rows[-1].labels == ("people",)
