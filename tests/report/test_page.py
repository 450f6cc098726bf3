"""The report in a real browser: charts, lists of items, and what connects them.

Every test fails if its page complains or fetches anything, see `browser.py`.
"""

import csv

import pandas as pd
import pytest
from browser import brightness, colors_of
from invented_runs import make_run
from sentence_files import run_on, write_suites
from shown import page_of, shown_as

import lmdiag
from lmdiag.results import load_run
from lmdiag.studies.cloze_norms import ClozeNorms
from lmdiag.types import TableOptions

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def pages(runs, forms, tmp_path_factory):
    """Pages of one run and two, checkpoints, pairs by two models, and suites."""
    root = tmp_path_factory.mktemp("pages")
    shown = {
        "one": [runs["weak"]], "two": [runs["strong"], runs["weak"]], "all": [runs["all"]],
        "steps": [runs[name] for name in ("step64000", "step0", "step1000")],
        "pairs": [forms["pairs"], forms["pairs of weak"]],
        "suites": [run_on(write_suites(root / "gym", 8), root / "run", skill=1)],
    }  # fmt: skip
    for name, several in shown.items():
        (root / f"{name}.html").write_text(page_of(several))
    return {name: root / f"{name}.html" for name in shown}


@pytest.fixture(scope="module")
def others(tmp_path_factory):
    """Pages of other kinds of results, and of a run with a critical word."""
    root = tmp_path_factory.mktemp("others")
    items = range(1, 9)
    responses = "".join(
        f"{item},The old man {item} ate a,{word}\n"
        for item in items for word in ("pear", "fig", "fig", "bun", "bun"[: item % 3 + 1])
    )  # fmt: skip
    sentences = "".join(
        f"{item},{a},{b},friend,The {a} cook {item} near the {b} friend {a} {b} ate soup.\n"
        for item in items for a in "xy" for b in "pq"
    )  # fmt: skip
    (root / "cloze.csv").write_text(f"item,context,response\n{responses}")
    (root / "design.csv").write_text(f"item,a,b,verb,sentence\n{sentences}")
    cloze = [load_run(make_run(root / f"cloze {i}", root / "cloze.csv", id=f"m{i}", seed=i,
                               kind="causal")) for i in range(2)]  # fmt: skip
    table = TableOptions(critical=("verb",))
    design = load_run(make_run(root / "design", root / "design.csv", id="m", kind="causal",
                               bos=True, table=table))  # fmt: skip
    numbers = range(90)
    times = pd.DataFrame({
        "text": [i // 6 for i in numbers], "position": [i % 6 + 1 for i in numbers],
        "word": [f"word{i % 5}" for i in numbers], "bits": [i * 31 % 17 for i in numbers],
        "RT": [300 + i * 7919 % 83 for i in numbers],
    })  # fmt: skip
    shown = {
        "cloze": ClozeNorms(cloze), "design": [design], "analysis": lmdiag.analyse(design),
        "fit": lmdiag.fit(times, surprisal="bits", formula="RT ~ surprisal"),
    }  # fmt: skip
    for name, result in shown.items():
        (root / f"{name}.html").write_text(
            page_of(result) if name == "design" else shown_as("html", result)
        )
    return {name: root / f"{name}.html" for name in shown}


def opened(page, path, address=""):
    """The page with its charts drawn."""
    page.goto(f"{path.as_uri()}{address}")
    page.wait_for_selector("html[data-drawn]")
    return page


def items_of(page, task):
    """The list of items of a task, open, and what it is folded in."""
    items = page.locator("[data-items]").nth(task)
    for folded in (*items.locator("xpath=ancestor::details").all(), items):
        if folded.get_attribute("open") is None:
            folded.locator("summary").first.click()
    return items


def shown(items):
    return items.locator(".item:visible .anchor").all_inner_texts()


def choose(items, name, value):
    """Chooses a filter, or an order."""
    items.locator("[data-sort]" if name == "sort" else f"[data-filter={name}]").select_option(value)


def chart(page, name):
    figure = page.locator(f"figure[data-name={name}]")
    figure.scroll_into_view_if_needed()
    return figure


def marks(figure, where=""):
    """The marks of items, the one that is drawn last at the end."""
    return figure.locator(f".plot path[role=link]{where}")


def bright(figure):
    """Items whose marks are highlighted."""
    names = "marks => marks.map(mark => mark.ariaLabel.split(':')[0])"
    return {*marks(figure, "[opacity='1']").evaluate_all(names)}


def drag_over(page, mark):
    """Selects a mark, and what lies near it."""
    box = mark.bounding_box()
    page.mouse.move(box["x"] - 9, box["y"] - 9)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] + 9, box["y"] + box["height"] + 9, steps=5)
    page.mouse.up()


def test_items_can_be_filtered_sorted_and_addressed(page, pages, runs):
    items = items_of(opened(page, pages["one"]), 2)
    contrasts = list(dict.fromkeys(runs["weak"].stimuli["neg136"].columns()["contrast"]))
    assert shown(items) == contrasts
    choose(items, "outcome", "wrong")
    wrong = shown(items)
    assert 0 < len(wrong) == items.locator(".item:visible .verdict.wrong").count() < len(contrasts)
    assert items.locator(".shown").inner_text() == f"{len(wrong)} shown"
    choose(items, "outcome", "")
    items.locator("[data-filter=text]").fill(contrasts[3])
    assert contrasts[3] in shown(items)
    assert len(shown(items)) < len(contrasts)
    items = items_of(page, 0)
    choose(items, "levels", "constraint=high")
    assert set(items.locator(".item:visible .tag").all_inner_texts()) == {"high constraint"}
    before = items.locator(".item:visible .context").first.inner_text()
    choose(items, "setting", "trunc")
    assert len(items.locator(".item:visible .context").first.inner_text()) < len(before)
    for order, reverse in (("difference", False), ("-difference", True)):
        choose(items, "sort", order)
        values = items.locator(".item:visible").evaluate_all(
            "items => items.map(item => Number(item.dataset.difference))"
        )
        assert values == sorted(values, reverse=reverse)
        assert values[0] != values[-1]
    name = f"obj:{runs['weak'].stimuli['role88'].columns()['contrast'][-1]}"
    opened(page, pages["one"], f"#{name}")
    near = "id => document.getElementById(id).getBoundingClientRect().y < 900"
    page.wait_for_function(near, arg=name)
    assert page.locator(f"[id='{name}']").is_visible()
    for several, task in (("two", 1), ("pairs", 0)):  # items that differ between runs
        items = items_of(opened(page, pages[several]), task)
        choose(items, "outcome", "changed")
        changed = items.locator(".item:visible")
        assert 0 < changed.count() < items.locator(".item").count()
        assert changed.locator(".verdict.wrong").count() == changed.count()


def test_marks_lead_to_items_by_mouse_and_keyboard(page, pages):
    opened(page, pages["one"])
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    choose(items_of(page, 1), "setting", "obj")
    mark = marks(chart(page, "role88-pairs")).last
    name = mark.evaluate("mark => mark.ariaLabel.split(':')[0]")
    mark.hover()
    told = page.locator(".tip").inner_text()
    assert all(fact in told for fact in (name, "context", "good word", "p(good)", "rank of bad"))
    mark.click()
    page.wait_for_url(f"**#{name}")
    assert page.locator(f"[id='{name}']").is_visible()  # although its setting was filtered out
    points = marks(chart(page, "neg136-pairs-negative-sentences"))
    assert points.evaluate_all("marks => marks.filter(m => m.tabIndex === 0).length") == 1
    points.first.focus()
    page.keyboard.press("ArrowRight")
    name = points.nth(1).evaluate("mark => mark.ariaLabel.split(':')[0]")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**#{name}")


def test_a_selection_filters_the_list_and_the_list_highlights_marks(page, pages):
    figure = chart(opened(page, pages["one"]), "role88-pairs")
    drag_over(page, marks(figure).first)
    items = page.locator("[data-items]").nth(1)
    items.locator("[data-clear]").wait_for()
    selected = shown(items)
    everything = items.locator(".item[data-setting=none]").count()
    assert 0 < len(selected) < everything
    assert f"{len(selected)} selected" in figure.locator(".selected").inner_text()
    assert bright(figure) == bright(chart(page, "role88-cloze")) == set(selected)
    items.locator("[data-clear]").click()
    assert len(bright(figure)) == everything
    choose(items, "outcome", "wrong")
    marks(figure, "[opacity='0.12']").first.wait_for()
    assert bright(figure) == set(shown(items))


@pytest.mark.parametrize("name", ["all", "steps", "suites"])
def test_every_kind_of_chart_is_drawn_folded_ones_when_they_are_opened(page, pages, name):
    """The page fails the test if Vega warns of anything."""
    opened(page, pages[name])
    for folded in page.locator("details:has(figure)").all():  # the outer ones first
        figures = folded.locator("figure:visible")
        assert figures.locator(".plot svg").count() == 0
        folded.locator("summary").first.click()
        figures.locator(".plot svg").nth(figures.count() - 1).wait_for()
    assert page.locator("figure").count() == page.locator(".plot svg:visible").count() > 5
    if name == "suites":  # regions that no prediction reads are shown by a checkbox
        figure = chart(page, "gym-regions-1-center-embed")
        assert "1 intro" not in figure.locator("svg text").all_text_contents()
        figure.get_by_role("checkbox", name="all regions").check()
        figure.locator("svg text", has_text="1 intro").wait_for()
        heads = items_of(page, 0).locator("[id='center_embed/1']").get_by_role("rowheader")
        assert heads.all_inner_texts()[:2] == ["1 intro", "2 comma"]  # words are a table
    if name == "steps":
        titles = chart(page, "role88-steps").locator("svg text").all_text_contents()
        assert {"accuracy@5", "sensitivity", "step, log scale"} <= {*titles}


def test_charts_are_saved_as_svg_png_and_csv(page, pages, runs, tmp_path):
    figure = chart(opened(page, pages["one"]), "cprag102-measures")
    for kind in ("svg", "png", "csv"):
        with page.expect_download() as started:
            figure.get_by_role("button", name=kind.upper()).click()
        assert started.value.suggested_filename == f"cprag102-measures.{kind}"
        started.value.save_as(tmp_path / kind)
    svg = (tmp_path / "svg").read_text()
    assert "var(" not in svg
    assert "accuracy@1" in svg
    box, png = figure.locator("svg").bounding_box(), (tmp_path / "png").read_bytes()
    assert int.from_bytes(png[16:20]) == pytest.approx(3 * box["width"], abs=3)
    assert len(png) > 10_000  # an empty picture is smaller
    with (tmp_path / "csv").open() as file:
        row = next(csv.DictReader(file))
    measure = runs["weak"].results.tasks["cprag102"]["none"].measures["accuracy@1"]
    assert (row["label"], float(row["value"])) == ("accuracy@1", measure.value)


@pytest.mark.parametrize(("width", "scheme"), [(1400, "light"), (420, "dark")])
def test_pages_fit_their_windows_and_can_be_read(new_page, pages, width, scheme):
    size = {"width": width, "height": 900}
    for name in ("one", "two", "pairs", "suites"):
        page = opened(new_page(viewport=size, color_scheme=scheme), pages[name])
        for task in range(page.locator("[data-items]").count()):
            items_of(page, task)
        assert page.evaluate("document.documentElement.scrollWidth") == width
        most = 13 if name == "one" else 12  # a run with perturbations has a chart of its shuffles
        assert page.locator("figure").count() <= most
        paper, *texts = colors_of(page, "body", "figcaption", "figure svg text", "td b", ".remarks")
        assert (brightness(paper) < 150) == (scheme == "dark")
        assert all(abs(brightness(text) - brightness(paper)) > 300 for text in texts)


@pytest.mark.parametrize("name", ["cloze", "design", "analysis", "fit"])
def test_other_kinds_of_pages_are_drawn_and_fit(new_page, others, name):
    """`new_page` fails the test if a page complains of anything."""
    for width, scheme in ((1280, "light"), (420, "dark")):
        page = new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
        opened(page, others[name])
        for task in range(page.locator("[data-items]").count()):
            items_of(page, task)
        assert page.locator("figure").count() == page.locator(".plot svg:visible").count() > 0
        assert page.evaluate("document.documentElement.scrollWidth") == width


def test_marks_of_cloze_norms_are_connected_with_the_items(page, others):
    figure = chart(opened(page, others["cloze"]), "cloze")
    drag_over(page, marks(figure).first)
    items = page.locator("[data-items]")
    items.locator("[data-clear]").wait_for()
    assert f"{len(shown(items))} selected" in figure.locator(".selected").inner_text()
    items.locator("[data-clear]").click()
    marks(figure).first.focus()
    page.keyboard.press("ArrowRight")
    name = marks(figure).nth(1).evaluate("mark => mark.ariaLabel.split(':')[0]")
    page.keyboard.press("Enter")
    page.wait_for_url(f"**#{name}")
    assert "p" in items.locator(".responses").first.locator("thead").inner_text()


def test_sentences_with_a_critical_word_are_whole_and_sorted_by_its_surprisal(page, others):
    items = items_of(opened(page, others["design"]), 0)
    first = items.locator(".item").first
    assert shown(items)[:5] == ["item 1"] * 4 + ["item 2"]  # and not the id of the row
    marked = first.locator("td:has(mark)")
    assert marked.locator("mark").inner_text() == "friend"
    bits = float(marked.locator("small").inner_text())
    assert float(first.locator(".verdict").inner_text().split()[0]) == pytest.approx(bits, abs=0.06)
    assert first.locator("tbody tr:not(.sum)").count() == 12  # all words
    items.locator("[data-filter=text]").fill("cook 3 near the q friend")
    assert {*shown(items)} == {"item 3"}
    items.locator("[data-filter=text]").fill("")
    for order, reverse in (("-good", False), ("good", True)):
        choose(items, "sort", order)
        corners = items.locator(".item:visible .verdict").all_inner_texts()
        bits = [float(text.split()[0]) for text in corners]
        assert bits == sorted(bits, reverse=reverse)
        assert bits[0] != bits[-1]
