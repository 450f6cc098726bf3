"""The report in a real browser: sort, filter, follow a link; on a phone; strangers' names inert."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hub.boards import HOSTILE
from hub.browser import Complaints, browser, new_context

from lmdiag.report.html import render
from lmdiag.results import Run, load_run

from .runs import ONE_TASK, write_run

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

PHONE = {"width": 390, "height": 844}


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    with browser() as started:
        yield started


@pytest.fixture(scope="module")
def report(
    chromium: Browser, runs: dict[str, Run], tmp_path_factory: pytest.TempPathFactory
) -> Path:
    """The page of one run."""
    path = tmp_path_factory.mktemp("page") / "report.html"
    path.write_text(render(runs["weak"]))
    return path


@pytest.fixture
def complaints() -> Iterator[Complaints]:
    """Fails the test at its end if a page complained of anything or fetched from elsewhere."""
    found = Complaints()
    yield found
    assert not found


@pytest.fixture
def page(chromium: Browser, complaints: Complaints) -> Iterator[Page]:
    context = new_context(chromium, viewport={"width": 1280, "height": 900})
    opened = context.new_page()
    complaints.watch(opened)
    yield opened
    context.close()


def open_items(page: Page, report: Path, task: int) -> str:
    """Opens the items of a task; returns what selects its list."""
    page.goto(report.as_uri())
    page.locator("[data-items] > summary").nth(task).click()
    return f"[data-items] >> nth={task}"


def shown(page: Page, inside: str) -> list[str]:
    return page.locator(f"{inside} >> .item:visible .anchor").all_inner_texts()


def test_items_are_closed_until_they_are_asked_for(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    assert page.locator(".item:visible").count() == 0
    assert page.locator("figure svg:visible").count() > 8


def test_filters_leave_what_matches(page: Page, report: Path, runs: dict[str, Run]) -> None:
    inside = open_items(page, report, 2)
    everything = shown(page, inside)
    contrasts = runs["weak"].stimuli["neg136"].columns()["contrast"]
    assert everything == list(dict.fromkeys(contrasts))
    page.select_option(f"{inside} >> [data-filter=outcome]", "wrong")
    wrong = shown(page, inside)
    assert 0 < len(wrong) < len(everything)
    assert page.locator(f"{inside} >> .item:visible .verdict.wrong").count() == len(wrong)
    assert page.locator(f"{inside} >> .shown").inner_text() == f"{len(wrong)} shown"
    page.select_option(f"{inside} >> [data-filter=outcome]", "")
    page.fill(f"{inside} >> [data-filter=text]", everything[3])
    assert everything[3] in shown(page, inside)
    assert len(shown(page, inside)) < len(everything)


def test_a_part_and_a_setting_can_be_chosen(page: Page, report: Path) -> None:
    inside = open_items(page, report, 0)
    page.select_option(f"{inside} >> [data-filter=levels]", "constraint=high")
    tags = page.locator(f"{inside} >> .item:visible .tag").all_inner_texts()
    assert set(tags) == {"high constraint"}
    page.select_option(f"{inside} >> [data-filter=levels]", "")
    before = page.locator(f"{inside} >> .item:visible .context").first.inner_text()
    page.select_option(f"{inside} >> [data-filter=setting]", "trunc")
    after = page.locator(f"{inside} >> .item:visible .context").first.inner_text()
    assert len(after) < len(before)


def test_sorting_by_difference_runs_from_worst_to_best(page: Page, report: Path) -> None:
    inside = open_items(page, report, 1)
    page.select_option(f"{inside} >> [data-sort]", "difference")
    found = page.locator(f"{inside} >> .item:visible").evaluate_all(
        "items => items.map(item => Number(item.dataset.difference))"
    )
    assert found == sorted(found)
    assert found[0] < found[-1]


def test_a_mark_leads_to_its_item_even_if_it_was_filtered_out(page: Page, report: Path) -> None:
    inside = open_items(page, report, 1)
    page.select_option(f"{inside} >> [data-filter=setting]", "obj")
    mark = page.locator("figure svg a").first
    target = mark.get_attribute("xlink:href") or ""
    inside = open_items(page, report, 1)
    page.goto(report.as_uri() + target)
    assert page.locator(f"[id='{target[1:]}']").is_visible()


def test_a_link_opens_the_list_and_shows_the_item(
    page: Page, report: Path, runs: dict[str, Run]
) -> None:
    name = f"obj:{runs['weak'].stimuli['role88'].columns()['contrast'][-1]}"
    page.goto(f"{report.as_uri()}#{name}")
    item = page.locator(f"[id='{name}']")
    assert item.is_visible()
    box = item.bounding_box()
    assert box is not None
    assert 0 <= box["y"] < 900


def test_keys_are_enough(page: Page, report: Path) -> None:
    page.goto(report.as_uri())
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    page.locator("[data-items] > summary").first.focus()
    page.keyboard.press("Enter")
    assert page.locator(".item:visible").count() > 0


def test_a_phone_needs_no_sideways_scrolling(
    chromium: Browser, report: Path, complaints: Complaints
) -> None:
    context = new_context(chromium, viewport=PHONE)
    page = context.new_page()
    complaints.watch(page)
    for task in range(3):
        open_items(page, report, task)
    assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
    letters = page.locator("figure svg").first.evaluate(
        "svg => svg.querySelector('text').getBoundingClientRect().height"
    )
    assert letters >= 10
    context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_can_be_read_in_either_scheme(
    chromium: Browser, report: Path, complaints: Complaints, scheme: str
) -> None:
    context = new_context(chromium, color_scheme=scheme)
    page = context.new_page()
    complaints.watch(page)
    page.goto(report.as_uri())
    colours = page.evaluate(
        """() => ["body", "figcaption", "figure svg text", "td b", ".remarks"].map(selector => {
            const style = getComputedStyle(document.querySelector(selector));
            return selector.includes("svg") ? style.fill : style.color;
        }).concat(getComputedStyle(document.body).backgroundColor)"""
    )
    *texts, paper = (luminance(colour) for colour in colours)
    for text in texts:
        light, dark = max(text, paper), min(text, paper)
        assert (light + 0.05) / (dark + 0.05) >= 4.5  # WCAG 2 AA
    context.close()


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)`, as WCAG 2 defines it."""
    channels = [int(part) / 255 for part in colour[4:-1].split(",")[:3]]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def test_names_and_words_of_strangers_do_nothing(
    page: Page, demo_dir: Path, tmp_path: Path
) -> None:
    tried = list(HOSTILE.values())
    fields = ("id", "commit", "dtype", "architecture", "tokenizer")
    facts = dict(zip(fields, tried, strict=False))
    run = load_run(
        write_run(tmp_path / "run", demo_dir, protocol=ONE_TASK, cased=True, fillers=tried, **facts)
    )
    path = tmp_path / "report.html"
    path.write_text(render(run))
    page.goto(path.as_uri())
    for link in page.locator("[data-items] > summary").all():
        link.click()
    assert "owned" not in page.title()[:5]
    assert page.locator("script").count() == 1
    assert page.locator("img").count() == 0
    assert page.locator(".word", has_text="onerror").first.is_visible()
