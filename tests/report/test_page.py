"""The report in a real browser: charts, lists of items, and what connects them."""

from __future__ import annotations

import csv
import re
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from browser import PHONE, NewPage, contrast, luminance
from hostile import HOSTILE, hostile_rows
from runs import ONE_TASK, make_run

from lmdiag.protocol import Protocol
from lmdiag.report.html import render
from lmdiag.results import Run, load_run

from .forms import run_on, write_pairs, write_suites

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def report(runs: dict[str, Run], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of one run."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(runs["weak"]))
    return path


def opened(page: Page, path: Path, address: str = "") -> Page:
    """The page with its charts drawn."""
    page.goto(f"{path.as_uri()}{address}")
    page.wait_for_selector("html[data-drawn]")
    return page


def items_of(page: Page, task: int) -> Locator:
    """The list of items of a task, open."""
    items = page.locator("[data-items]").nth(task)
    if items.get_attribute("open") is None:
        items.locator("summary").click()
    return items


def shown(items: Locator) -> list[str]:
    return items.locator(".item:visible .anchor").all_inner_texts()


def chart(page: Page, name: str) -> Locator:
    figure = page.locator(f"figure[data-name={name}]")
    figure.scroll_into_view_if_needed()
    return figure


def marks(figure: Locator) -> Locator:
    """The marks of items, the one that is drawn last at the end."""
    return figure.locator(".plot path[role=link]")


# ---- lists ---------------------------------------------------------------------------------------


def test_the_page_can_be_read_without_scripts(new_page: NewPage, report: Path) -> None:
    page = new_page(java_script_enabled=False)
    page.goto(report.as_uri())
    assert page.locator("table.headline").is_visible()
    assert page.locator("table.figures").first.is_visible()
    assert not page.locator("figure, .controls").first.is_visible()
    page.locator("[data-items] > summary").first.click()
    assert page.locator(".item:visible").count() > 30


def test_items_can_be_filtered_and_sorted(page: Page, report: Path, runs: dict[str, Run]) -> None:
    items = items_of(opened(page, report), 2)
    contrasts = list(dict.fromkeys(runs["weak"].stimuli["neg136"].columns()["contrast"]))
    assert shown(items) == contrasts
    items.locator("[data-filter=outcome]").select_option("wrong")
    wrong = shown(items)
    assert 0 < len(wrong) < len(contrasts)
    assert items.locator(".item:visible .verdict.wrong").count() == len(wrong)
    assert items.locator(".shown").inner_text() == f"{len(wrong)} shown"
    items.locator("[data-filter=outcome]").select_option("")
    items.locator("[data-filter=text]").fill(contrasts[3])
    assert contrasts[3] in shown(items)
    assert len(shown(items)) < len(contrasts)
    items = items_of(page, 0)
    items.locator("[data-filter=levels]").select_option("constraint=high")
    assert set(items.locator(".item:visible .tag").all_inner_texts()) == {"high constraint"}
    before = items.locator(".item:visible .context").first.inner_text()
    items.locator("[data-filter=setting]").select_option("trunc")
    assert len(items.locator(".item:visible .context").first.inner_text()) < len(before)
    for order, reverse in (("difference", False), ("-difference", True)):
        items.locator("[data-sort]").select_option(order)
        values = items.locator(".item:visible").evaluate_all(
            "items => items.map(item => Number(item.dataset.difference))"
        )
        assert values == sorted(values, reverse=reverse)
        assert values[0] != values[-1]


def test_an_address_opens_the_list_and_shows_the_item(
    page: Page, report: Path, runs: dict[str, Run]
) -> None:
    name = f"obj:{runs['weak'].stimuli['role88'].columns()['contrast'][-1]}"
    item = opened(page, report, f"#{name}").locator(f"[id='{name}']")
    page.wait_for_function(
        "id => document.getElementById(id).getBoundingClientRect().y < 900", arg=name
    )
    assert item.is_visible()


# ---- charts --------------------------------------------------------------------------------------


def test_a_mark_shows_its_item_and_leads_to_it(page: Page, report: Path) -> None:
    opened(page, report)
    items_of(page, 1).locator("[data-filter=setting]").select_option("obj")
    mark = marks(chart(page, "role88-pairs")).last
    name = (mark.get_attribute("aria-label") or "").partition(":")[0]
    mark.hover()
    told = page.locator(".tip").inner_text()
    assert name in told
    for fact in ("context", "good word", "p(good)", "rank of bad"):
        assert fact in told
    mark.click()
    page.wait_for_url(f"**#{name}")
    assert page.locator(f"[id='{name}']").is_visible()  # although its setting was filtered out


def test_a_selection_filters_the_list_and_the_list_highlights_marks(
    page: Page, report: Path
) -> None:
    figure = chart(opened(page, report), "role88-pairs")
    box = figure.locator("svg").bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.2 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.95 * box["width"], box["y"] + 0.8 * box["height"], steps=5)
    page.mouse.up()
    items = page.locator("[data-items]").nth(1)
    items.locator("[data-clear]").wait_for()
    selected = shown(items)
    everything = items.locator(".item[data-setting=none]").count()
    assert 0 < len(selected) < everything

    def bright(figure: Locator) -> set[str]:
        bright = figure.locator(".plot path[role=link][opacity='1']")
        return {
            each.partition(":")[0]
            for each in bright.evaluate_all("marks => marks.map(m => m.ariaLabel)")
        }

    assert bright(figure) == set(selected)
    assert bright(chart(page, "role88-cloze")) == set(selected)
    items.locator("[data-clear]").click()
    assert len(bright(figure)) == everything
    items.locator("[data-filter=outcome]").select_option("wrong")
    page.wait_for_function(
        "document.querySelectorAll(\"[data-name=role88-pairs] path[opacity='0.12']\").length"
    )
    assert bright(figure) == set(shown(items))


def test_items_that_differ_between_runs_can_be_found(
    page: Page, runs: dict[str, Run], tmp_path: Path
) -> None:
    path = tmp_path / "report.html"
    path.write_text(render([runs["strong"], runs["weak"]]))
    items = items_of(opened(page, path), 1)
    items.locator("[data-filter=outcome]").select_option("changed")
    found = items.locator(".item:visible").all()
    assert found
    for item in found:
        assert item.locator(".verdict.wrong").count() == 1


@pytest.mark.parametrize("names", [["all"], ["step0", "step1000", "step64000"]])
def test_every_kind_of_chart_is_drawn(
    page: Page, runs: dict[str, Run], names: list[str], tmp_path: Path
) -> None:
    """The page fails the test if Vega warns of anything."""
    path = tmp_path / "report.html"
    path.write_text(render([runs[name] for name in names]))
    opened(page, path)
    assert page.locator("figure").count() == page.locator(".plot svg:visible").count() > 5


def test_charts_are_saved_as_svg_png_and_csv(
    page: Page, report: Path, runs: dict[str, Run], tmp_path: Path
) -> None:
    figure = chart(opened(page, report), "cprag102-measures")
    for kind in ("svg", "png", "csv"):
        with page.expect_download() as started:
            figure.get_by_role("button", name=kind.upper()).click()
        assert started.value.suggested_filename == f"cprag102-measures.{kind}"
        started.value.save_as(tmp_path / kind)
    svg = (tmp_path / "svg").read_text()
    assert "var(" not in svg
    assert "accuracy@1" in svg
    box = figure.locator("svg").bounding_box()
    png = (tmp_path / "png").read_bytes()
    assert box is not None
    assert int.from_bytes(png[16:20]) == pytest.approx(3 * box["width"], abs=3)
    assert len(png) > 10_000  # an empty picture is smaller
    with (tmp_path / "csv").open() as file:
        row = next(csv.DictReader(file))
    measure = runs["weak"].results.tasks["cprag102"]["none"].measures["accuracy@1"]
    assert (row["label"], row["series"]) == ("accuracy@1", "Orig")
    assert float(row["value"]) == measure.value


def test_the_keyboard_is_enough(page: Page, report: Path) -> None:
    opened(page, report)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    points = marks(chart(page, "neg136-pairs-negative-sentences"))
    assert points.evaluate_all("marks => marks.filter(m => m.tabIndex === 0).length") == 1
    points.first.focus()
    page.keyboard.press("ArrowRight")
    label = page.evaluate("document.activeElement.ariaLabel")
    assert label == points.nth(1).get_attribute("aria-label")
    assert page.locator(".tip").is_visible()
    page.keyboard.press("Enter")
    assert page.locator(f"[id='{label.partition(':')[0]}']").is_visible()


# ---- sizes and schemes ---------------------------------------------------------------------------


@pytest.mark.parametrize("width", [390, 420, 1700])
def test_it_fits_its_window(new_page: NewPage, report: Path, width: int) -> None:
    page = opened(new_page(viewport={"width": width, "height": PHONE["height"]}), report)
    for task in range(3):
        items_of(page, task)
    assert page.evaluate("document.documentElement.scrollWidth") == width
    for figure in page.locator("figure").all():
        letters = figure.locator("svg text").first.bounding_box()
        assert letters is not None
        assert letters["height"] >= 10
    page.set_viewport_size({"width": 600, "height": 800})
    page.wait_for_function("document.querySelector('.plot svg').clientWidth > 0")
    assert page.evaluate("document.documentElement.scrollWidth") == 600


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_either_scheme(new_page: NewPage, report: Path, scheme: str) -> None:
    page = opened(new_page(color_scheme=scheme), report)
    colours = page.evaluate(
        """() => ["body", "figcaption", "figure svg text", "td b", ".remarks"].map(selector => {
            const style = getComputedStyle(document.querySelector(selector));
            return selector.includes("svg") ? style.fill : style.color;
        }).concat(getComputedStyle(document.body).backgroundColor)"""
    )
    *texts, paper = colours
    assert (luminance(paper) < 0.1) == (scheme == "dark")
    assert all(contrast(text, paper) >= 4.5 for text in texts)  # WCAG 2 AA


def test_text_from_outside_does_nothing(page: Page, demo_dir: Path, tmp_path: Path) -> None:
    tried = list(HOSTILE.values())
    fields = ("id", "commit", "dtype", "architecture", "tokenizer")
    facts: dict[str, Any] = dict(zip(fields, tried, strict=False))
    run = make_run(tmp_path / "run", demo_dir, ONE_TASK, cased=True, fillers=tried, **facts)
    own = hostile_rows(tmp_path / "own.jsonl")
    other = make_run(tmp_path / "other", own, Protocol(tasks=("own",)), **facts)
    for number, folder in enumerate((run, other)):
        path = tmp_path / f"{number}.html"
        path.write_text(render(load_run(folder)))
        opened(page, path)
        for summary in page.locator("[data-items] > summary").all():
            summary.click()
        for mark in marks(page.locator("figure")).all():
            mark.focus()
        assert "owned" not in page.title()[:5]
        assert page.locator("img").count() == 0
        assert page.locator("script:not([type])").count() == 2  # the page's own, and the library
    assert page.locator(".context", has_text="onerror").first.is_visible()


# ---- whole sentences -----------------------------------------------------------------------------


@pytest.fixture(scope="module")
def sentence_pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """The pages of minimal pairs by two models, and of suites."""
    root = tmp_path_factory.mktemp("sentences")
    pairs, suites = write_pairs(root / "blimp"), write_suites(root / "gym", 8)
    two = [run_on(pairs, root / f"{i}", id=f"org/{i}", skill=4 * i, seed=i) for i in (0, 1)]
    pages = {"pairs": [two[1]], "two": two, "suites": [run_on(suites, root / "c", skill=1)]}
    for name, several in pages.items():
        (root / f"{name}.html").write_text(render(several))
    return {name: root / f"{name}.html" for name in pages}


def words_of(item: Locator) -> list[list[str]]:
    """The words of an item's sentences by the lines in which they are drawn."""
    lines: dict[float, list[str]] = {}
    for cell in item.locator(".words tbody tr:not(.sum) td").all():
        box, text = cell.bounding_box(), cell.inner_text().split("\n")[0].strip()
        assert box is not None
        lines.setdefault(round(box["y"]), []).append(text)
    return [lines[y] for y in sorted(lines)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_sentences_stand_above_each_other_and_wrap(
    new_page: NewPage, sentence_pages: dict[str, Path], scheme: str
) -> None:
    for name in ("pairs", "two", "suites"):
        page = opened(new_page(viewport=PHONE, color_scheme=scheme), sentence_pages[name])
        items_of(page, 0)
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    page = opened(new_page(color_scheme=scheme), sentence_pages["pairs"])
    items_of(page, 0)
    good, bad = words_of(page.locator("[id='wh_island-1']"))
    assert " ".join(good) == "Who did Sally number 1 insult herself  in the wh_island?"
    assert " ".join(bad) == "Who did Sally number 1 ever insult himself in the wh_island?"
    page.set_viewport_size(PHONE)
    lines = words_of(page.locator("[id='wh_island-1']"))
    assert len(lines) >= 4
    assert [len(line) for line in lines[::2]] == [len(line) for line in lines[1::2]]
    assert [*chain(*lines[::2])] == good
    assert darkest(page) >= 4.5  # WCAG 2 AA


def darkest(page: Page) -> float:
    """The least contrast of a surprisal with its shade, over all shades."""
    ink, paper, shades = page.evaluate(
        """() => {
            const cell = document.querySelector(".words tbody small");
            const style = getComputedStyle(cell);
            const shades = [...Array(9).keys()].map(step => {
                cell.className = `h${step}`;
                return style.backgroundColor;
            });
            return [style.color, getComputedStyle(document.body).backgroundColor, shades];
        }"""
    )
    assert len(set(shades)) == 9
    under = [int(part) for part in paper.strip("rgb()").split(",")]
    mixed = [
        [(1 - alpha) * old + alpha * 255 * new for old, new in zip(under, colour, strict=True)]
        for *colour, alpha in (map(float, re.findall(r"[.\d]+", each)) for each in shades[1:])
    ]
    return min(contrast(ink, f"rgb({','.join(str(round(c)) for c in one)})") for one in mixed)


def test_pairs_can_be_found_and_marks_lead_to_them(
    page: Page, sentence_pages: dict[str, Path]
) -> None:
    opened(page, sentence_pages["two"])
    items = items_of(page, 0)
    everything = shown(items)
    items.locator("[data-filter=text]").fill("number 3 ever insult himself in the causative")
    assert shown(items) == ["causative-3"]
    items.locator("[data-filter=text]").fill("")
    items.locator("[data-filter=outcome]").select_option("changed")
    assert 0 < len(shown(items)) < len(everything)
    items.locator("[data-filter=outcome]").select_option("")
    for order, reverse in (("difference", False), ("-difference", True)):
        items.locator("[data-sort]").select_option(order)
        bits = items.locator(".item").evaluate_all("all => all.map(i => +i.dataset.difference)")
        assert bits == sorted(bits, reverse=reverse)
    mark = marks(chart(page, "blimp-pairs-2")).last
    name = (mark.get_attribute("aria-label") or "").partition(":")[0]
    mark.focus()
    for fact in (name, "good", "bits", "Who did Sally"):
        assert fact in page.locator(".tip").inner_text()
    mark.click()
    page.wait_for_url(f"**#{name}")
    assert page.locator(f"[id='{name}']").is_visible()


def test_the_words_of_an_item_are_a_table(page: Page, sentence_pages: dict[str, Path]) -> None:
    """As a screen reader has it: a row for each word, headed by the conditions."""
    opened(page, sentence_pages["suites"])
    items_of(page, 0)
    table = page.locator("[id='center_embed/1']").get_by_role("table")
    assert table.get_by_role("columnheader").all_inner_texts() == ["plaus\nbits", "implaus\nbits"]
    names = table.get_by_role("rowheader").all_inner_texts()
    assert names[:5] == ["1 intro", "2 comma", "3 verb1", "4 verb2", "5 end"]
    assert table.get_by_role("row").count() == 7  # the head, five regions, the sum
    assert page.locator("[id='two_predictions/1'] .predictions li").count() == 2


def test_folded_charts_are_drawn_when_they_are_opened(
    page: Page, sentence_pages: dict[str, Path]
) -> None:
    opened(page, sentence_pages["suites"])
    folded = page.locator("details.further:has(figure)")
    assert folded.locator(".plot svg").count() == 0
    folded.locator("summary").click()
    n = folded.locator("figure").count()
    assert n > 6
    folded.locator(".plot svg").nth(n - 1).wait_for()
