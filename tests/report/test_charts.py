"""Charts: specifications that have the figures of the runs, and take text as text."""

import re
from itertools import chain, pairwise, product
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest
from invented_runs import make_run
from sentence_files import run_on, write_pairs, write_suites
from shown import page_of, plots_of

import lmdiag
from lmdiag import diagnostics
from lmdiag.asking.protocol import Protocol
from lmdiag.report.charts import Plot, drawing, kinds, output
from lmdiag.report.charts.models import family, ranked_plots, trend_plots
from lmdiag.report.charts.vega import field
from lmdiag.report.display import output_of
from lmdiag.report.fits import human_plots
from lmdiag.report.run_items import items
from lmdiag.report.run_report import Report
from lmdiag.report.selections import ReportFigures
from lmdiag.results import FigureKey, load_run
from lmdiag.results.published_figures import PublishedFigure


def rows(plots, name):
    (spec,) = (plot.spec for plot in plots if plot.name == name)
    return list(spec["data"]["values"])


@pytest.mark.slow
@pytest.mark.long
def test_every_declared_kind_is_made_and_altair_takes_it(runs, forms):
    """altair validates them by the schema of Vega-Lite; charts of a run can be changed."""
    steps = [runs[f"step{step}"] for step in (0, 1000, 64000)]
    shown = [[runs["strong"]], [runs["all"]], [runs["strong"], runs["weak"]], steps]
    plots = [plots_of(several) for several in (*shown, [forms["suites"]], [forms["pairs"]])]
    for of_runs in plots:
        assert len({plot.name for plot in of_runs}) == len(of_runs)
    kind_of = {plot.kind: plot for plot in chain(*plots)}
    declared = {chart.kind for one in diagnostics.built_in().values() for chart in one.charts}
    assert declared <= {*kinds.PLOTS_OF} < {*kind_of}
    assert {"steps", "differences"} <= {*kind_of}
    for plot in kind_of.values():
        output.notebook(plot).properties(background="white").to_dict()
    notebook = lmdiag.load_run(runs["strong"].path).charts()
    assert len((notebook["role88-cloze"] + notebook["role88-pairs"]).layer) == 2


def test_figures_shuffles_and_levels(runs):
    results = runs["strong"].results
    settings = {"Original": "none", "Shuf": "shuf", "Trunc": "trunc", "Shuf + Trunc": "shuf_trunc"}
    names = {"low": "ci_low", "high": "ci_high"}
    plots = plots_of(runs["strong"])
    for row in rows(plots, "cprag102-measures"):
        figure = results.figure(FigureKey("cprag102", settings[row["series"]], row["measure"]))
        for column in ("value", "low", "high", "n", "sd", "chance"):
            assert row.get(column) == getattr(figure, names.get(column, column))
    shuffled = rows(plots, "cprag102-shuffles")
    means = [row for row in shuffled if row["series"] == "mean"]
    assert len(means) == 4
    for row in means:
        counted = [x for x in shuffled if (x["label"], x["series"]) == (row["label"], "shuffles")]
        assert sum(x["shuffles"] for x in counted) == 3
        assert sum(x["shuffles"] * x["value"] for x in counted) / 3 == pytest.approx(row["value"])
    plain = {row["label"]: row["value"] for row in shuffled if row["series"] == "not shuffled"}
    for label, setting in (("Shuf, accuracy@5", "none"), ("Shuf + Trunc, accuracy@5", "trunc")):
        key = FigureKey("cprag102", setting, "accuracy@5")
        assert plain[label] == getattr(results.figure(key), "value", None)
    key = FigureKey("neg136", "none", "sensitivity", "subset/polarity", "simp/negative")
    levels = rows(plots, "neg136-subset-polarity-sensitivity")
    (row,) = (x for x in levels if (x["series"], x["level"]) == ("sensitivity", key.level))
    assert row["value"] == getattr(results.figure(key), "value", None)


def test_cutoffs_and_published_figures(runs, monkeypatch):
    results, key = runs["all"].results, FigureKey("cprag102", "none", "accuracy@5")
    published = {key: PublishedFigure("paper", "4", "org/all", key, 23.5, None, 34)}
    monkeypatch.setattr("lmdiag.results.figures.published_figures_of", lambda run: published)
    plots = plots_of(runs["all"])
    (row,) = (row for row in rows(plots, "cprag102-measures") if "published" in row)
    assert (row["label"], row["published"]) == ("accuracy@5", pytest.approx(0.235))
    for row in rows(plots, "agreement-cutoffs-mw-ew"):
        end, cutoff = row["cut-off"].split()
        name = f"{row['score'].lower()}@{end}={float(cutoff):g}"
        assert row["value"] == results.tasks["agreement"]["none"].measures[name].value
    plot = next(plot for plot in plots if plot.name == "agreement-cutoffs-mw-ew")
    ends = [cut.split()[0] for cut in plot.spec["layer"][0]["encoding"]["x"]["sort"]]
    assert ends == sorted(ends, reverse=True)  # all of the top, then all of the bottom
    small = rows(plots, "agreement-cutoffs-constructions")
    constructions = results.tasks["agreement"]["none"].measures["ew"].by["construction"]
    assert len({row["label"] for row in small}) == len(constructions)


def test_pairs_in_bits(forms, monkeypatch):
    outcomes = items(forms["pairs"], "blimp").outcomes
    marks = rows(plots_of(forms["pairs"]), "blimp-pairs")
    assert len(marks) == len(outcomes) - 1
    for mark in marks:
        outcome = outcomes.loc[mark["item"]]
        assert mark["bad"] - mark["good"] == pytest.approx(outcome["difference"])
        assert mark["verdict"] == ("good" if outcome["prefers_good"] else "bad")
    # very many have a density, and very many levels charts by the level that they belong to
    monkeypatch.setattr("lmdiag.report.charts.items.MAX_LISTED", 3)
    monkeypatch.setattr(kinds, "_MOST_LEVELS", 2)
    many = plots_of(forms["pairs"])
    assert sum(cell["contrasts"] for cell in rows(many, "blimp-pairs")) == len(marks)
    parts = [plot for plot in many if "-uid-" in plot.name]
    assert {plot.name: len(plot.spec["data"]["values"]) for plot in parts} == {
        "blimp-uid-sensitivity-island-effects": 2, "blimp-uid-sensitivity-argument-structure": 1,
        "blimp-uid-sensitivity-binding": 1,
    }  # fmt: skip
    assert all(plot.is_further for plot in parts)


def test_regions_are_in_order_and_those_of_predictions_are_shown(forms):
    """That values are those of `analyse` is tested with all views."""
    plots = plots_of(forms["suites"])
    means = rows(plots, "gym-regions-2-two-predictions")
    levels = ["1 intro", "2 comma", "3 verb1", "4 verb2", "5 end"]
    assert [row["level"] for row in means if row["series"] == "plaus"] == levels
    assert all(
        row["n"] == 8 and row["low"] - 1e-9 <= row["value"] <= row["high"] + 1e-9 for row in means
    )
    # of the first suite, whose prediction reads regions 3 and 4, the others are shown by a checkbox
    named = rows(plots, "gym-regions-1-center-embed")
    assert {row["level"] for row in named if row["named"]} == {"3 verb1", "4 verb2"}


@pytest.mark.slow
def test_figures_have_the_width_of_a_column(forms):
    plot = next(plot for plot in plots_of(forms["pairs"]) if plot.name == "blimp-pairs")
    drawn, document, pixels = (
        output.image_file(plot.spec, kind, 8) for kind in ("svg", "pdf", "png")
    )
    svg = drawn.decode()
    width = float(re.findall(r'width="([\d.]+)pt"', svg)[0])
    assert width == pytest.approx(8 / 2.54 * 72, abs=3)
    assert set(re.findall(r'font-family="(.*?)"', svg)) == {"sans-serif"}
    assert "var(" not in svg
    (box,) = re.findall(rb"/MediaBox \[0 0 ([\d.]+)", document)
    assert float(box) == pytest.approx(width, abs=0.1)
    header = pixels[16:20]
    assert int.from_bytes(header) == pytest.approx(8 / 2.54 * 300, abs=12)
    # colours come from the style sheet, and data keep their text
    spec = {"mark": "var(--c1)", "data": {"values": [{"x": "var(--c1)"}]}}
    assert output.resolve_colors(spec) == spec | {"mark": output.palette()["var(--c1)"]}


def axes_of(plot, width=8):
    """The texts of the ticks of each axis of numbers, in a figure so many centimetres wide."""
    svg = ElementTree.fromstring(output.image_file(plot.spec, "svg", width))
    groups = [x for x in svg.iter() if "role-axis-label" in x.get("class", "")]
    texts = [["".join(text.itertext()) for text in group] for group in groups]
    return [ticks for ticks in texts if all(re.match(r"[−\d.]+(e-\d+)?[%kMB]?$", x) for x in ticks)]


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["fit", "row", "sentence", "pairs", "suites"])
def test_axes_of_one_figure_have_a_range_and_three_ticks(kind, tmp_path):
    """One model, one item, one level: a scale from a value to itself has one tick, rounded."""
    model = {"id": "org/one", "kind": "causal", "bos": True}
    row = "id,item,condition,context,target,good,contrast\n"
    row += "a,1,x,A robin is a,bird,true,c\nb,1,x,A robin is a,tree,false,c\n"
    texts = "id,item,condition,sentence\na,1,x,A robin is a bird.\nb,1,y,A robin is a tree.\n"
    if kind == "fit":
        words = pd.DataFrame({"text": 1, "position": range(1, 61), "word": "w"})
        words["surprisal"] = [8.063 + (i * 7 % 11 - 5) / 10 for i in range(60)]
        words["rt"] = [250 + 4 * x + i % 3 for i, x in enumerate(words["surprisal"])]
        words["len"] = [i % 5 for i in range(60)]
        fit = lmdiag.fit(words, surprisal="surprisal", response="rt", controls=["len"])
        plots = human_plots(fit)
    else:
        data = tmp_path / f"{kind}.csv"
        if kind in ("row", "sentence"):
            data.write_text(row if kind == "row" else texts)
        else:
            data = {"pairs": write_pairs, "suites": write_suites}[kind](tmp_path / kind, 1)
        plots = plots_of(run_on(data, tmp_path / "run", **model))
    assert plots
    for plot in plots:
        axes = axes_of(plot)
        assert axes or plot.kind == "conditions", plot.name
        assert all(len({*ticks}) >= 3 for ticks in axes), (plot.name, axes)


def test_a_fit_of_one_model_has_partial_residuals_and_its_line():
    """Against the residuals of numpy's least squares; a word's coefficient times its sd."""
    rng = np.random.default_rng(0)
    words = pd.DataFrame({"text": 1, "position": range(1, 81), "word": "w"})
    words["len"] = rng.integers(1, 12, 80).astype(float)
    words["bits"] = rng.exponential(4, 80) + words["len"]
    words["rt"] = 300 + 5 * words["len"] + 4 * words["bits"] + rng.normal(0, 20, 80)
    formula = "rt ~ surprisal + len"
    plots = human_plots(lmdiag.fit(words, surprisal="bits", response="rt", formula=formula))
    assert [plot.name for plot in plots] == ["partial", "coefficients"]

    x = np.column_stack([np.ones(80), words["bits"], words["len"]])
    beta, *_ = np.linalg.lstsq(x, words["rt"], rcond=None)
    apart = words["bits"] - words["bits"].mean()
    partial = words["rt"] - x @ beta + beta[1] * apart
    shown = [row["value"] for row in rows(plots, "partial")]
    assert shown == pytest.approx(partial.tolist(), abs=1e-8)
    (line,) = [
        layer["data"]["values"]
        for layer in plots[0].spec["layer"]
        if "data" in layer and layer["mark"]["type"] == "line"
    ]
    for end in (line[0], line[-1]):
        assert end["value"] == pytest.approx(beta[1] * (end["surprisal"] - words["bits"].mean()))
        assert end["low"] < end["value"] < end["high"]
    by_term = {row["label"]: row["value"] for row in rows(plots, "coefficients")}
    spread = {"surprisal": beta[1] * words["bits"].std(), "len": beta[2] * words["len"].std()}
    assert by_term == pytest.approx(spread)


def test_checkpoints_are_lines_of_one_chart_with_names_at_their_ends(runs):
    steps = [runs[name].results for name in ("step0", "step1000", "step64000")]
    (plot,) = [x for x in trend_plots(ReportFigures.of(steps)) if x.name == "cprag102-steps"]
    line, *_, names = plot.spec["layer"]
    assert line["encoding"]["x"]["axis"]["values"] == [0, 1000, 64000]
    ends = names["data"]["values"]
    measures = ["accuracy@1", "accuracy@5", "sensitivity", "sensitivity@0.01"]
    assert sorted(end["name"] for end in ends) == measures
    assert {end["at"] for end in ends} == {64000}
    heights = sorted(end["height"] for end in ends)
    # two lines of text are not above each other
    assert min(b - a for a, b in pairwise(heights)) > 0.057
    values = [row["value"] for row in plot.spec["data"]["values"] if row["at"] == 64000]
    assert max(heights) == max(values)
    assert ["0", "1k", "64k"] in axes_of(plot, 17)


@pytest.mark.slow
@pytest.mark.parametrize(("axis", "n_runs"), [("layers", 3), ("steps", 5)])
def test_effects_of_a_design_stand_against_layer_and_step(axis, n_runs, root, tmp_path):
    """A line per effect, and per condition, of all models; the numbers are those of `analyse`."""
    design = root / "docs/examples/attraction.csv"
    runs = []
    for n in range(n_runs):
        facts = {"id": "org/trained", "kind": "causal", "bos": True, "seed": n, "n_layers": 2}
        protocol = Protocol(tasks=())
        if axis == "layers":
            protocol = Protocol(tasks=(), layer=n if n < 2 else None)
        else:
            facts |= {"revision": f"step{10**n}", "training_step": 10**n}
        runs.append(load_run(make_run(tmp_path / str(n), design, protocol, **facts)))
    places = [run.results.layer if axis == "layers" else 10**n for n, run in enumerate(runs)]
    (conditions,) = Report(runs[::-1]).designs
    plots = conditions.plots
    tables = {kind: rows(plots, f"attraction-{kind}-{axis}") for kind in ("effects", "means")}
    assert places == sorted({row["at"] for row in tables["means"]})
    found = lmdiag.analyse(runs)
    names = ("series", "value", "low", "high", "n")
    assert [tuple(map(row.get, names)) for row in tables["effects"]] == [
        *found.effects[["effect", "estimate", "ci_low", "ci_high", "n"]].itertuples(False, None)
    ]
    assert [row["value"] for row in tables["means"]] == [*found.cells["mean"]]
    assert {row["series"] for row in tables["means"]} == {
        "no, different", "no, same", "yes, different", "yes, same",
    }  # fmt: skip


def test_a_model_has_the_same_colour_and_mark_in_all_charts(runs):
    models = ["strong", "weak"]
    looks = {name: set() for name in models}
    for plot in plots_of([runs["strong"], runs["weak"]]):
        for layer in plot.spec.get("layer", ()):
            scales = [layer["encoding"].get(x, {}).get("scale", {}) for x in ("color", "shape")]
            for name in {*models}.intersection(scales[0].get("domain", ())):
                i = scales[0]["domain"].index(name)
                mark = scales[1]["range"][i] if scales[1] else None
                looks[name].add((scales[0]["range"][i], mark))
    assert looks == {
        name: {(f"var(--c{i})", mark), (f"var(--c{i})", None)}
        for i, (name, mark) in enumerate(zip(models, ("circle", "square"), strict=True), start=1)
    }


NAMES = (
    "org/pythia-70m", "org/pythia-160m", "org/pythia-1.4b", "bert-base-uncased",
    "bert-large-uncased", "org/a-model-with-a-very-long-name-of-many-words-v2.1-instruct",
    *(f"org/other{i}" for i in range(14)),
)  # fmt: skip


@pytest.fixture(scope="module")
def many(demo_dir, tmp_path_factory):
    """Twenty models: two families, and others."""
    folder = tmp_path_factory.mktemp("many")
    facts = [{"seed": i, "skill": i % 5, "n_parameters": 10**7 * (i + 1)} for i in range(20)]
    return [
        load_run(make_run(folder / str(i), demo_dir, id=name, **facts[i]))
        for i, name in enumerate(NAMES)
    ]


@pytest.mark.slow
def test_figures_stand_against_the_number_of_parameters(many):
    of_runs = ReportFigures.of([run.results for run in many])
    plots = {plot.name: plot for plot in (*trend_plots(of_runs), *ranked_plots(of_runs))}
    rows = plots["role88-sizes"].spec["data"]["values"]
    sensitivity = [row for row in rows if row["panel"] == "sensitivity"]
    assert len(sensitivity) == 20
    for row, run in zip(sensitivity, many, strict=True):
        figure = run.results.figure(FigureKey("role88", "none", "sensitivity"))
        assert (row["at"], row["value"]) == (run.results.model.n_parameters, figure.value)
        assert (row["low"], row["high"], row["chance"]) == (figure.ci_low, figure.ci_high, 0.5)
    assert [row["series"] for row in sensitivity[:6]] == [
        *["pythia"] * 3, *["bert-uncased"] * 2, "other models",
    ]  # fmt: skip
    ranked = plots["role88-models-sensitivity"].spec["data"]["values"]
    values = [row["value"] for row in ranked]
    assert values == sorted(values, reverse=True)
    others = ("meta-llama/Llama-3.2-1B", "gpt2-xl", "gpt2", "org/large")
    assert [*map(family, others)] == ["Llama-3.2", "gpt2", "gpt2", "large"]


@pytest.mark.slow
def test_the_page_of_twenty_models(page, many, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(page_of(many))
    assert path.stat().st_size < 1.5e6
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-drawn]")
    shown = page.locator("figure:visible")
    assert shown.count() == page.locator(".plot svg:visible").count() > 3
    assert page.locator("figure").count() <= 12
    # charts of single models are in the reports of their runs
    assert page.locator("figure[data-name^=role88-pairs]").count() == 0
    for width in (1400, 800, 420):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    region = page.get_by_role("group", name="Models")
    table = region.locator("table")
    # what lies outside the box has a sign, which goes at its end
    is_cut = region.evaluate("box => box.scrollWidth > box.clientWidth + 2")
    assert is_cut == region.evaluate("box => box.classList.contains('more')")
    region.evaluate("box => { box.scrollLeft = 1e4; }")
    page.wait_for_function("box => !box.classList.contains('more')", arg=region.element_handle())
    # a heading sorts, and chooses the figure of the chart
    table.get_by_role("button", name=re.compile(r"^sensitivity(?!@)")).first.click()
    column = table.locator("tbody td:nth-child(6)").all_inner_texts()
    values = [float(text.split("\n")[0].rstrip("↑↓≈")) for text in column]
    assert values == sorted(values, reverse=True)
    figure = page.locator("#section-headline figure:visible")
    figure.locator("svg").wait_for()
    assert figure.get_attribute("data-name") == "cprag102-models-sensitivity"
    first = table.locator("tbody th").first.inner_text()
    assert first in figure.locator("svg text").all_text_contents()
    # intervals on demand
    interval = table.locator("tbody td small").first
    assert not interval.is_visible()
    page.get_by_label("intervals", exact=True).check()
    assert interval.is_visible()
    # the first model against each other one
    rows = page.locator("#section-compared table").first.locator("tbody tr")
    assert rows.count() == 19


@pytest.mark.parametrize("level", ["constructor", "toString", "hasOwnProperty", "__proto__"])
def test_levels_may_be_called_as_what_objects_have(level):
    """Vega groups rows by their texts, in objects that have these names themselves."""
    rows = [
        {"label": x, "series": s, "panel": x, "value": i, "zero": 0.0, "level": x}
        for i, (x, s) in enumerate(product([level, "b"], ["c", level]))
    ]
    data = pd.DataFrame(rows)
    line = drawing.line_plot(data, field("level", "names"))
    for chart in (drawing.dot_plot(data, form=""), line):
        drawn = output.image_file(Plot("k", "n", "c.", chart).spec, "svg", 12).decode()
        assert level in drawn
        assert "NaN" not in drawn


def test_layers_begin_with_curves_against_chance_and_are_not_tested_against_each_other(
    demo_dir, tmp_path
):
    protocols = [Protocol(tasks=("role88",), layer=n if n < 20 else None) for n in (0, 7, 20)]
    runs = [
        load_run(make_run(tmp_path / str(n), demo_dir, protocol, n_layers=20, seed=n, skill=n + 1))
        for n, protocol in enumerate(protocols)
    ]
    output = output_of(Report(runs))
    assert [section.title for section in output.sections][:2] == ["By layer", "Main figures"]
    assert "Compared, item by item" not in [section.title for section in output.sections]
    assert output.findings[0].startswith("model, after layer 20, ")
    first, *others = output.sections[0].plots
    assert all("chance" in row for row in first.spec["data"]["values"])
    assert [plot.is_further for plot in (first, *others)] == [False, True]
    assert first.spec["layer"][0]["encoding"]["x"]["axis"]["values"][-2:] == [15, 20]
