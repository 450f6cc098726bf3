"""The conditions of own data in reports: the plot first, then effects and cells."""

import re
from pathlib import Path

import pandas as pd
import pytest
from invented_runs import make_run
from shown import page_of, plots_of

import lmdiag
from lmdiag.analysis.designs import analyse_table
from lmdiag.asking.protocol import Protocol
from lmdiag.report.analyses import designs_of
from lmdiag.report.charts.conditions import condition_plot
from lmdiag.report.display import output_of
from lmdiag.report.formats.terminal import print_output
from lmdiag.report.run_report import Report, brief_output
from lmdiag.results import load_run
from lmdiag.types import DesignOptions

BLANKS = "item,a,b,context,right_context,target\n" + "".join(
    f"{item},{a},{b},The {a} {b[-1]} cook {item} made,today.,soup\n"
    for item in range(1, 8)
    for a in ("x", "y")
    for b in ("p", "<b>q")
)
REGIONS = "item,a,region_1,region_2\n" + "".join(
    f"{item},{a},The cook {item},{a} the soup.\n" for item in range(1, 5) for a in ("x", "y")
)


def made(folder, text, name="mine", **options):
    data = folder / "mine.csv"
    data.write_text(text)
    return load_run(make_run(folder / name, data, **options))


@pytest.mark.slow
def test_a_page_begins_with_the_conditions(tmp_path, page):
    file = tmp_path / "report.html"
    file.write_text(text := page_of(made(tmp_path, BLANKS, kind="causal")))
    assert text.index('id="section-conditions"') < text.index('id="section-headline"')
    assert "the right context was not read" in text
    assert "<b>q" not in text
    page.goto(file.as_uri())
    page.wait_for_selector("#section-conditions svg")
    heads = page.locator("#section-conditions tbody th").all_inner_texts()
    heads = [head.replace("\xa0", " ") for head in heads]
    labels = ["a[y - x]", "b[p - <b>q]", "a[y - x]:b[p - <b>q]"]
    assert heads == [*labels, "x, <b>q", "x, p", "y, <b>q", "y, p"]
    caption = page.locator("#section-conditions figcaption").inner_text()
    assert "Mean surprisal by condition" in caption
    for width in (1400, 420):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") == width
    for cell in page.locator("#section-conditions table >> nth=0").locator("td").all():
        box = cell.bounding_box()  # n, difference, t, df, p are in view
        is_last = cell.evaluate("cell => cell === cell.parentNode.lastElementChild")
        assert is_last or box["x"] + box["width"] <= 420
    for caption_of_table in page.locator("#section-conditions caption").all():  # they wrap
        box = caption_of_table.bounding_box()
        assert box["x"] + box["width"] < 420


def test_regions_share_a_scale_and_the_critical_one_has_its_own(tmp_path):
    run = made(tmp_path, REGIONS)
    whole, panels = (plot.spec for plot in plots_of(run)[:2])
    assert "facet" not in whole
    assert {row["level"] for row in panels["data"]["values"]} == {"region 1", "region 2"}
    (design,) = designs_of([run], DesignOptions(region="2"))
    assert "of region 2" in design.tables[0].caption


def test_the_axis_of_surprisals_has_no_negative_bits():
    table = pd.DataFrame({"item": [1, 1, 2, 2], "a": ["x", "y"] * 2, "surprisal": [0.1, 1, 0, 3]})
    spec = condition_plot("few", analyse_table(table)).spec
    assert min(row["low"] for row in spec["data"]["values"] if "low" in row) < 0
    channels = [layer["encoding"] for layer in spec["layer"]]
    assert {x["y"]["scale"]["domainMin"] for x in channels if "y2" not in x} == {0}


@pytest.mark.parametrize("form", ["latex", "markdown"])
def test_the_tables_as_text(tmp_path, command, form):
    run = made(tmp_path, BLANKS)
    text = command("report", run.path, "--format", form)[1]
    first = text.index("Effects on surprisal over items")
    assert first < text.index("Mean surprisal by condition") < text.index("All measures")
    assert len(re.findall(r"^.*y, p .*$", text, re.MULTILINE)) == 1
    (tmp_path / "mine.csv").unlink()  # without the data, the other tables are there
    code, text, _ = command("report", run.path, "--format", form)
    assert (code, "Effects" in text) == (0, False)


@pytest.mark.parametrize("n", [2, 13])
def test_suites_with_different_conditions(tmp_path, n, capsys):
    rows = (
        f"{suite}{item},s{suite:02},{suite}{a},The cook {item} {a},soup\n"
        for suite in range(n) for item in (1, 2) for a in "xy"
    )  # fmt: skip
    run = made(tmp_path, "item,suite,condition,context,target\n" + "".join(rows))
    (design,) = designs_of([run])
    labels = [row.labels[0] for grid in (*design.tables, *design.further) for row in grid.rows]
    panels = {row["panel"] for plot in design.plots for row in plot.spec["data"]["values"]}
    effects = [f"s{suite:02}: condition[{suite}y - {suite}x]" for suite in range(n)]
    assert labels[:n] == effects
    assert design.remarks[0].startswith(f"{n} suites with different conditions")
    assert panels == ({"s00", "s01"} if n == 2 else set())
    report = Report([run])
    print_output(brief_output(report))
    assert (effects[0] in capsys.readouterr().out) == (n == 2)  # the others are too many
    report.designs = [design] * 7
    print_output(brief_output(report))
    out = capsys.readouterr().out
    assert out.count(design.remarks[0]) == 5
    assert "the conditions of 2 more tasks: by the commands below" in out


@pytest.mark.slow
def test_two_models_have_panels_and_built_in_sets_no_designs(demo_dir, tmp_path, page):
    runs = [made(tmp_path, BLANKS, name, seed=i, id=name) for i, name in enumerate("AB")]
    (design,) = designs_of(runs)
    assert [grid.caption.split()[0] for grid in design.tables] == ["Effects", "Differences", "Mean"]
    assert {row["panel"] for row in design.plots[0].spec["data"]["values"]} == {"A", "B"}
    (tmp_path / "two.html").write_text(page_of(runs))
    page.goto((tmp_path / "two.html").as_uri())
    for width, is_beside in ((1280, True), (420, False)):  # below each other on a narrow page
        page.set_viewport_size({"width": width, "height": 900})
        page.reload()
        page.wait_for_selector("html[data-drawn]")
        texts = page.locator("#section-conditions svg text")
        a, b = (texts.filter(has_text=re.compile(f"^{name}$")).bounding_box() for name in "AB")
        assert (abs(a["y"] - b["y"]) < 3) == is_beside
        assert (a["x"] == b["x"]) != is_beside
    run = load_run(make_run(tmp_path / "run", demo_dir, Protocol(tasks=("cprag102",))))
    assert designs_of([run]) == []
    assert designs_of([made(tmp_path, BLANKS.replace("item,", "list,", 1))]) == []


@pytest.mark.slow
@pytest.mark.pages
def test_a_given_design_is_stored_with_the_run_and_shown(tmp_path, monkeypatch, command):
    """A third column hides the design; the page, LaTeX and `analyse` have what was given."""
    monkeypatch.chdir(tmp_path)
    rows = [line.split(",", 1) for line in REGIONS.splitlines()]
    text = "".join(f"{item},{n % 3 if n else 'list'},{row}\n" for n, (item, row) in enumerate(rows))
    Path("mine.csv").write_text(text.replace("item,", "unit,", 1))
    asked = ["run", "--model", "demo:causal", "--data", "mine.csv", "--item", "unit"]
    given = ["--conditions", "a", "--region", "2", "--levels", "a=y,x"]
    assert "no column 'b'" in command.refused(*asked, "--conditions", "b")
    assert command(*asked, *given)[0] == 0
    run = "results/demo--causal/mine-token"
    for arguments in (["report", run, "--format", "latex"], ["analyse", run]):
        assert "Effects on surprisal of region 2 over items" in command(*arguments)[1]
    shown = re.sub(r"<wbr>|</?span[^>]*>", "", Path(run, "report.html").read_text())
    assert "a[x - y]" in shown
    # of chosen rows, the stored order is that of their levels
    assert "the order" not in command.refused("analyse", run, "--filter", "a=x")
    shown = command("analyse", run, "--region", "all")[1]
    assert "Effects on surprisal in each region" in shown
    assert "region 2: a[x - y]" in shown
    assert command(*asked, "--region", "1")[0] == 0  # the finished run gets another design
    assert load_run(Path(run)).results.design.region == "1"


@pytest.mark.slow
def test_the_effects_of_many_models_are_all_shown_and_unlike_ones_not_compared(tmp_path):
    kinds = ["causal", "masked", "causal", "causal", "causal"]
    runs = [made(tmp_path, REGIONS, f"m{i}", seed=i, id=f"m{i}", kind=kind)
            for i, kind in enumerate(kinds)]  # fmt: skip
    (design,) = designs_of(runs)
    assert [row.labels[1] for row in design.tables[0].rows] == [f"m{i}" for i in range(5)]
    (forest,) = design.plots
    assert len(forest.spec["data"]["values"]) == 5
    differences = next(grid for grid in design.further if grid.caption.startswith("Differences"))
    assert [row.labels[1] for row in differences.rows] == ["m2 - m0", "m3 - m0", "m4 - m0"]
    assert any("not compared with the first model: m1: the pseudo-" in x for x in design.remarks)
    text = page_of(runs)
    assert "m4</th>" in text
    assert " of m0 and m1: the pseudo-log-likelihood" in text
    nothing = lmdiag.compare(*runs[:2])
    assert [*output_of(nothing).sections] == []
