"""One value in every view: page, `analyse`, `items`, `compare`, csv, json and Python."""

import csv
import io
import json
import math
import re
import tempfile
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path
from random import Random

import docx
import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from invented_runs import make_run
from parsed import ParsedPage
from sentence_files import suite_of
from shown import plots_of

import lmdiag
from lmdiag.asking.protocol import Protocol
from lmdiag.cli import main
from lmdiag.measures import MeasureName, part_bits
from lmdiag.report import formats, numbers
from lmdiag.report.display import output_of
from lmdiag.report.item_list import item_list
from lmdiag.report.run_report import Report
from lmdiag.report.selections import ReportFigures
from lmdiag.results import read_results
from lmdiag.results.item_scores import without_curves
from lmdiag.stats import point
from lmdiag.types import BadInput

FACTS = {
    "id": ("org/a", "org/b"), "dtype": ("float32", "bfloat16"), "name": (None, "x"),
    "revision": (None, "step1"), "quantization": (None, "8bit"),
}  # fmt: skip
"""What identifies a model, with two values each."""


SCORING = ({"k": (1, 5), "threshold": 0.01}, {"k": (1, 2), "threshold": 0.1})
"""The two ways in which runs are scored."""


def contrasts(draw):
    """Rows with a blank in two conditions, some of whose contrasts ask the same."""
    lines = ["item,size,context,target,good,contrast,expected"]
    for item in range(1, draw.randint(4, 6)):
        for size in ("small", "large"):
            good, bad = draw.choice(WORDS), draw.choice(WORDS)
            bad = "stone" if bad == good else bad
            for word, is_good in ((good, 1), (bad, 0)):
                expected = good if is_good else ""
                context = f"The {size} animal {item} is a"
                lines.append(f"{item},{size},{context},{word},{is_good},{item}{size},{expected}")
    return "own.csv", "\n".join(lines)


def pairs(draw):
    """Minimal pairs, some of whose sentences are the same for an uncased model."""
    rows = [
        {"sentence_good": f"The {a} {n} sings.", "sentence_bad": f"The {b} {n} sings.",
         "UID": draw.choice("xy")}
        for n in range(draw.randint(3, 5))
        for a, b in [draw.sample(WORDS, 2)]
    ]  # fmt: skip
    return "own.jsonl", "\n".join(map(json.dumps, rows))


def suites(draw):
    """A test suite in two conditions, some of whose regions are empty."""
    n_items = draw.randint(2, 3)
    items = [
        {name: ("The dogs", draw.choice(VERBS), "loudly.") for name in "ab"} for _ in range(n_items)
    ]
    return "own.json", json.dumps(suite_of("own", "abc", items, ["(2;%a%) < (2;%b%)"]))


def regions(draw):
    """Sentences in regions and two conditions, some of whose cells are empty."""
    lines = ["item,condition,region_1,region_2,region_3"]
    for item in range(1, draw.randint(3, 5)):
        lines += [f"{item},{name},Dog {item},{draw.choice(VERBS)},now." for name in "ab"]
    return "own.csv", "\n".join(lines)


def shuffled(draw):
    """Rows of CPRAG-102, whose sentence 1 is shuffled twice."""
    names = "item,condition,sentence_1,sentence_2,context,target,good,contrast,expected,constraint"
    lines = [names]
    for item in range(1, draw.randint(3, 5)):
        first, second = f"She saw the {draw.choice(WORDS)} {item}.", "He wanted a"
        for name, good in (("expected", 1), ("within_category", 0), ("between_category", 0)):
            target = f"{name[:7]}{item}"
            cells = (item, name, first, second, f"{first} {second}", target, good, item,
                     target * good, draw.choice(("high", "low")))  # fmt: skip
            lines.append(",".join(map(str, cells)))
    return "cprag102.csv", "\n".join(lines)


WORDS = ("bird", "Bird", "tool", "hen")
VERBS = ("bark", "", "that barked")
FORMS = {
    contrasts: {}, pairs: {}, suites: {}, regions: {},
    shuffled: {"perturb": ("shuf",), "shuffles": 2},
    "choices": {"elicitation": "choice"},
}  # fmt: skip
"""How the data are made -> the protocol that they are asked by."""


EXAMPLES = [*zip(FORMS, [*FACTS, "id"], SCORING * 3, strict=True)]
"""Each form, each fact by which two models can differ, and both ways of scoring."""
SEED = 6
"""With which each form has what its docstring names: equal contrasts, pairs and empty cells."""


@pytest.mark.slow
@pytest.mark.parametrize(("form", "changed", "scoring"), EXAMPLES)
def test_every_view_has_the_same_value(form, changed, scoring, tmp_path):
    model = {name: value for name, (value, _) in FACTS.items()}
    models = [model, model | {changed: FACTS[changed][1]}]
    check_views(tmp_path, form, Random(SEED), models, scoring)


@st.composite
def two_models(draw):
    """Facts of two models that differ in one of them."""
    model = {name: draw(st.sampled_from(values)) for name, values in FACTS.items()}
    changed = draw(st.sampled_from([*FACTS]))
    (other,) = {*FACTS[changed]} - {model[changed]}
    return [model, model | {changed: other}]


@pytest.mark.nightly
@settings(max_examples=60, deadline=None, derandomize=True, phases=[Phase.generate])
@given(
    st.sampled_from([*FORMS]), st.randoms(use_true_random=False), two_models(),
    st.sampled_from(SCORING),
)  # fmt: skip
def test_every_view_has_the_same_value_in_any_combination(form, draw, models, scoring):
    with tempfile.TemporaryDirectory() as folder:
        check_views(Path(folder), form, draw, models, scoring)


def check_views(folder, form, draw, models, scoring):
    """Invents runs of two models, and compares what each view shows of them."""
    name, text = (contrasts if form == "choices" else form)(draw)
    file = folder / name
    file.write_text(text)
    protocol = Protocol(tasks=(), **scoring, **FORMS[form])
    kind = "causal" if form == "choices" else "masked"
    facts = {"cased": False, "bos": True, "kind": kind}
    paths = [
        make_run(folder / str(i), file, protocol, seed=draw.randint(0, 9), **facts, **model)
        for i, model in enumerate(models)
    ]
    runs = [lmdiag.load_run(path) for path in paths]
    check_figures(runs)
    check_tables(runs[:1])
    check_tables(runs)
    check_contrasts(runs[0])
    if form != pairs:
        check_models(runs)
    if form in (suites, regions):
        check_regions(runs[0])


def printed(*words):
    """What a command prints."""
    with redirect_stdout(io.StringIO()) as output, redirect_stderr(io.StringIO()):
        assert main([*map(str, words)]) == 0
    return output.getvalue()


def check_figures(runs):
    """csv, json, `score`, Python and the comparison have the figure of the table of scores."""
    first, second = runs
    results = read_results(first.path)
    rows = csv.DictReader(io.StringIO(printed("report", first.path, "--format", "csv")))
    of_csv = {(row["setting"], row["measure"]): row for row in rows if not row["by"]}
    (task,) = results.tasks
    scored = json.loads(printed("score", "--task", task, "--predictions", first.path, "--json"))
    compared = {(x.setting, x.measure): x for x in lmdiag.compare(first, second, measures="all")
                if not x.by}  # fmt: skip
    for setting in results.tasks[task]:
        for name, scores in without_curves(first.scores_of(task, setting)).items():
            shuffles = [first.scores_of(task, setting, n).get(name) for n in (0, 1)]
            values = [point(x.values, x.statistic) for x in shuffles if x]
            value = sum(values) / len(values)
            if math.isnan(value):
                assert of_csv[setting, name]["value"] == ""
                continue
            assert results.measure(task, setting, name).value == pytest.approx(value, abs=1e-12)
            assert float(of_csv[setting, name]["value"]) == pytest.approx(value, abs=1e-12)
            if setting == "none":
                score = scored["measures"][name]["value"]
                assert score == results.measure(task, setting, name).value
            others = [run.mean_scores(task, setting)[name].items for run in runs]
            if (setting, name) in compared and {*others[0]} == {*others[1]} == {*scores.items}:
                assert compared[setting, name].base == pytest.approx(value, abs=1e-12)
                other = second.results.measure(task, setting, name).value
                assert compared[setting, name].new == pytest.approx(other, abs=1e-12)


def check_tables(runs):
    """LaTeX, Markdown and Word have the same cells; they and the page have all that is compared.

    That is each figure, and of two runs each difference.
    """
    output = output_of(Report(runs))
    sections = [section._replace(plots=()) for section in output.sections]
    output = replace(output, sections=sections)
    cells = {
        "latex": {*latex_cells(formats.printed(output, "latex", 60.0))},
        "markdown": {*markdown_cells(formats.printed(output, "markdown", 60.0))},
        "word": {*word_cells(formats.FORMATS["word"].render(output, 60.0))},
    }
    values = {
        numbers.value(figure)
        for run in runs
        for key, figure in run.results.figures()
        if key.setting == "none" and not key.by and not MeasureName.of(key.measure).is_curve_point
    }
    differences = lmdiag.compare(*runs) if len(runs) > 1 else []
    values |= {numbers.signed(x.difference, x.statistic) for x in differences}
    page = ParsedPage(formats.printed(output, "html", 60.0))
    assert values - {numbers.UNDEFINED} <= {text.strip() for text in page.texts}
    for name, found in cells.items():
        assert found <= cells["markdown"], name  # a divided table has n in its headings
        shown = {text for _, cell in found for text in (cell, cell.partition(" [")[0])}
        assert values - {numbers.UNDEFINED} <= shown, name


SIGNS = {
    "$-$": "−", "$<$": "<", "$>$": ">", "$\\pm$": "±", "$\\uparrow$": "↑", "$\\downarrow$": "↓",
    "$\\approx$": "≈", "$\\bullet$": "●", "--": "–", "\\\\": " ", "\\_": "_", "\\&": "&",
    "\\%": "%", "\\textbar": "|", "$\\sim$": "~", "~": " ",
}  # fmt: skip
"""What LaTeX has for signs."""


def latex_cells(text):
    """Yields label and text of each cell of LaTeX tables below their headings."""
    for body in re.findall(r"\\midrule\n(.*?)\\bottomrule", text, re.DOTALL):
        for line in body.splitlines():
            row = re.sub(r"\\(begin|end)\{tabular\}(\[t\])?(\{@\{\}.@\{\}\})?", "", line[:-3])
            row = re.sub(
                r"\\(allowbreak|scriptsize|quad|raggedright)|\\hyphenpenalty10000", "", row
            )
            row = re.sub(r"\\hangindent=[\d.]+em", "", row)
            cells = row.split(" & ")
            for sign, shown in SIGNS.items():
                cells = [cell.replace(sign, shown) for cell in cells]
            yield from _with_label([re.sub(r"[{}]", "", cell) for cell in cells], 1)


def markdown_cells(text):
    """Yields label and text of each cell of Markdown tables below their headings."""
    for heading, body in re.findall(r"\n\|(.*)\n\| --- \|.*\n((?:\|.*\n)+)", text):
        n_labels = 2 if heading.split(" | ")[1] == "model" else 1
        for line in body.splitlines():
            cells = line.replace("&emsp;", "").strip("|").split(" |")
            yield from _with_label([re.sub(r"\\(.)", r"\1", cell) for cell in cells], n_labels)


def word_cells(content):
    """Yields label and text of each cell of Word tables below their headings."""
    for table in docx.Document(io.BytesIO(content)).tables:
        n_labels = 2 if table.rows[0].cells[1].text == "model" else 1
        for row in table.rows[1:]:
            texts = [cell.text.replace("\u200b", "") for cell in row.cells]  # where lines may end
            yield from _with_label(texts, n_labels)


def _with_label(cells, n_labels):
    """Each label and text of the cells of a row that have a digit."""
    texts = [" ".join(cell.split()) for cell in cells]
    cells = [text for text in texts[n_labels:] if re.search(r"\d", text)]
    return [(label, text) for label in texts[:n_labels] for text in cells]


def check_models(runs):
    """Each model is analysed by itself, under a label of its own."""
    (rows,) = runs[0].stimuli.values()
    condition = "size" if "size" in rows.columns() else "condition"
    asked = {"conditions": [condition], "response": "log_odds" if rows.asks_words else "surprisal"}
    alone = [lmdiag.analyse(run, **asked).cells["mean"].tolist() for run in runs]
    cells = lmdiag.analyse(runs, **asked).cells
    assert [rows["mean"].tolist() for _, rows in cells.groupby("model", sort=False)] == alone
    labels = ReportFigures.of([run.results for run in runs]).table["model"].unique()
    assert (len({*labels}), [*dict.fromkeys(cells["model"])]) == (len(runs), [*labels])
    file = runs[0].path.parent / "items.csv"
    printed("items", *(run.path for run in runs), "--out", file, "--overwrite")
    of_file = lmdiag.analyse(file, **asked).cells
    assert of_file["mean"].tolist() == pytest.approx([x for means in alone for x in means])


def check_contrasts(run):
    """A contrast is right, wrong or left out in the same way everywhere."""
    (task,) = run.stimuli
    scores = run.scores_of(task).get("sensitivity")
    if scores is None:
        return
    verdict = dict(zip(scores.items, scores.values, strict=True))
    table = run.items()
    table = table[table["good"] & (table.get("perturbation", "none") == "none")]
    listed = {x.id: x.verdicts[0][0] for x in page_items(run, task)}
    shown = {1: ("right", "narrow"), 0: ("wrong",), None: ("unknown",)}
    for name, value in table.set_index("contrast")["sensitivity"].items():
        assert math.isnan(value) if name not in verdict else value == verdict[name]
        assert listed[name] in shown[verdict.get(name)]
    if "size" in table and len({name[-5:] for name in verdict}) == 2:
        complete = table.pivot(index="item", columns="size", values="sensitivity").dropna()
        if len(complete):
            cells = lmdiag.analyse(run, response="correct", conditions=["size"]).cells
            means = complete.mean()
            assert cells["mean"].tolist() == pytest.approx([means["large"], means["small"]])


def check_regions(run):
    """A region has one surprisal: of its words, or 0 bits in a suite where it has none."""
    (rows,) = run.stimuli.values()
    table = run.items(per="region")
    spans = run.predictions[rows.task]["none", 0].words
    empty = 0.0 if rows.form == "suites" else math.nan
    bits = {
        (row, x["number"]): empty if x["start"] == x["end"]
        else part_bits(words, x["start"], x["end"])
        for row, words, parts in zip(rows.columns()["id"], spans, rows.regions, strict=True)
        for x in parts
    }  # fmt: skip
    keys = zip(table["id"], table["number"], strict=True)
    assert table["surprisal"].tolist() == pytest.approx([bits[key] for key in keys], nan_ok=True)
    for item in page_items(run, rows.task):
        for i, (choice, *_) in enumerate(item.rows):
            of_row = [value for (row, _), value in bits.items() if row == choice.id]
            parts = [cells[i][0] for _, cells in item.columns if cells[i]]
            listed = [math.nan if part.surprisal is None else part.surprisal for part in parts]
            assert listed == pytest.approx(of_row, nan_ok=True)
    charts = [chart for chart in plots_of([run]) if chart.kind == "regions"]
    try:
        cells = lmdiag.analyse(run, region=2, conditions=["condition"]).cells
    except BadInput:  # no item has region 2 in both conditions
        return
    for chart in charts if rows.form == "suites" else ():
        drawn = {x["series"]: x for x in chart.spec["data"]["values"] if x["level"] == "2 b"}
        for row in cells.itertuples():
            assert drawn[row.condition]["n"] == row.n
            assert drawn[row.condition]["value"] == pytest.approx(row.mean)


def page_items(run, task):
    """The items that the page of a run lists."""
    return [x for x in item_list(Report([run]).tasks[task])["listed"] if x.setting == "none"]
