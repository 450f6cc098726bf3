"""The leaderboard in a real browser: what works by mouse, by keyboard, on a phone, in the dark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import PHONE, Complaints, NewPage, contrast, luminance, new_context
from hub.boards import HOSTILE, build, hostile_runs
from runs import make_run

from lmdiag.text import visible

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

MODELS = {
    "org/strong": ("masked", 110_000_000, 4.0),
    "org/middle": ("causal", 1_500_000_000, 1.5),
    "org/weak": ("causal", 70_000_000, 0.0),
}
LIVELY = {
    kind: HOSTILE[kind]
    for kind in ("script", "attribute", "end of script", "address", "template", "long")
}
"""The hostile names that a browser might do something with."""


@pytest.fixture(scope="module")
def site(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models of different kinds, sizes and skills."""
    root = tmp_path_factory.mktemp("site")
    for seed, (name, (kind, size, skill)) in enumerate(MODELS.items()):
        facts = {"id": name, "kind": kind, "n_parameters": size, "commit": f"{seed}" * 40}
        make_run(root / "runs" / name, demo_dir, skill=skill, seed=seed, **facts)
    return build(root / "board", demo_dir, root / "runs")


@pytest.fixture(scope="module")
def hostile_site(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Models whose texts and words try to get out of the page, and rejected ones named so."""
    root = tmp_path_factory.mktemp("hostile")
    hostile_runs(root / "runs", demo_dir, LIVELY)
    (root / "runs" / "<img src=x onerror=alert(1)>").mkdir()
    (root / "runs" / "<img src=x onerror=alert(1)>" / "results.json").write_text("{}")
    return build(root / "board", demo_dir, root / "runs")


def open_board(page: Page, site: Path) -> None:
    page.goto((site / "index.html").as_uri())


def names(page: Page) -> list[str]:
    """Names in the table's visible rows, from top to bottom."""
    return page.locator("#board tbody tr:visible th bdi").all_inner_texts()


def test_a_heading_sorts_and_says_so(page: Page, site: Path) -> None:
    open_board(page, site)
    assert names(page) == ["org/strong", "org/middle", "org/weak", "People"]
    sorted_by = page.locator("#board th[aria-sort=descending]")
    assert sorted_by.count() == 1
    assert sorted_by.is_visible()
    heading = page.locator("#board th", has=page.get_by_role("button", name="sensitivity")).nth(1)
    column = int(heading.get_attribute("data-column") or 0)
    shown = []
    for order in ("descending", "ascending"):
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == order
        assert page.locator("#board th[aria-sort]:not([aria-sort=none])").count() == 1
        rows = page.locator("#board tbody tr").all()
        cells = [row.locator("> *").nth(column) for row in rows]
        shown.append([cell.get_attribute("data-sort") or "" for cell in cells])
    assert shown[0] == sorted(shown[0], key=float, reverse=True) == shown[1][::-1]
    size = page.get_by_role("button", name="Size")  # what has none stands last either way
    for order in (
        ["org/middle", "org/strong", "org/weak"],
        ["org/weak", "org/strong", "org/middle"],
    ):
        size.click()
        assert names(page) == [*order, "People"]


def test_everything_can_be_done_by_keyboard(page: Page, site: Path) -> None:
    open_board(page, site)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.className") == "skip"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.textContent") == "Model":
            break
    page.keyboard.press("Enter")
    assert names(page) == ["org/middle", "org/strong", "org/weak", "People"]
    page.keyboard.press("Space")
    assert names(page) == ["People", "org/weak", "org/strong", "org/middle"]
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid"
    for _ in range(20):
        page.keyboard.press("Tab")
        if page.evaluate("document.activeElement.tagName") == "A":
            break
    page.keyboard.press("Enter")
    page.wait_for_url("**/models/org-weak-*.html")


def test_rows_and_columns_can_be_chosen(page: Page, site: Path) -> None:
    open_board(page, site)
    count = page.locator("#board-count")
    assert count.inner_text() == "3 of 3 models"
    page.get_by_label("Kind").select_option("causal")
    assert names(page) == ["org/middle", "org/weak"]
    page.get_by_label("Parameters").select_option(label="below 150M")
    assert names(page) == ["org/weak"]
    assert count.inner_text() == "1 of 3 models"
    page.get_by_label("Kind").select_option("")
    assert names(page) == ["org/strong", "org/weak"]
    page.get_by_label("Parameters").select_option("")
    page.get_by_label("Find a model").fill("MIDD")
    assert names(page) == ["org/middle"]
    page.get_by_label("Find a model").fill("")
    page.get_by_label("People and papers").select_option("hide")
    assert names(page) == ["org/strong", "org/middle", "org/weak"]
    page.get_by_label("People and papers").select_option("show")
    heads, figures = page.locator("#board thead th.group:visible"), "th.figure:visible"
    for group, titles, n in (
        (None, ["CPRAG-102", "ROLE-88", "NEG-136"], 7),
        ("neg136", ["NEG-136"], 5),
        ("", ["CPRAG-102", "ROLE-88", "NEG-136"], 13),
    ):
        if group is not None:
            page.get_by_label("Columns").select_option(group)
        assert heads.all_inner_texts() == titles
        assert page.locator(f"#board thead {figures}").count() == n
    for row in page.locator("#board tbody tr").all():
        assert row.locator("td.figure:visible").count() == 13


def test_a_model_opens_and_its_items_can_be_filtered(page: Page, site: Path) -> None:
    open_board(page, site)
    page.get_by_role("link", name="org/strong").click()
    assert page.locator("h1").inner_text() == "org/strong"
    count = page.locator("#item-count")
    total = int(count.inner_text().split()[0])
    assert page.locator(".items tbody:visible").count() == total
    shown = 0
    for outcome, mark in (("good", "✓ good"), ("bad", "✗ bad")):
        page.get_by_label("Outcome").select_option(outcome)
        verdicts = page.locator(".items tbody:visible .verdict").all_inner_texts()
        assert all(mark in verdict for verdict in verdicts)
        shown += len(verdicts)
    assert shown == total
    page.get_by_label("Outcome").select_option("")
    page.get_by_label("Diagnostic").select_option("role88")
    assert page.locator("section[data-task]:visible h3").all_inner_texts() == ["ROLE-88"]
    first = page.locator(".items tbody:visible").first.get_attribute("id") or ""
    page.get_by_label("Find").fill(first)
    assert page.locator(".items tbody:visible").count() >= 1
    assert count.inner_text() != f"{total} of {total} items"
    page.get_by_label("Find").fill("no sentence has this")
    assert count.inner_text() == f"0 of {total} items"
    page.get_by_role("link", name="← lmdiag leaderboard").click()
    assert names(page)[0] == "org/strong"


def ranks(page: Page) -> list[str]:
    """Ranks in the table's rows, from top to bottom; "" where there is none."""
    return [text.strip() for text in page.locator("#board tbody .rank").all_inner_texts()]


@pytest.mark.parametrize(
    ("values", "is_revision", "expected", "shown"),
    [
        (["0.5", "0.5", "0.9"], False, "org/weak org/strong org/middle", "1 2 2"),
        (["0.9", "0.6", "0.3"], True, "org/strong org/weak org/middle", "1 - 2"),
    ],
)
def test_ranks_follow_the_column_and_rows_of_one_model_stay_together(
    page: Page, site: Path, values: list[str], is_revision: bool, expected: str, shown: str
) -> None:
    """Equal figures share a rank; a revision stands below the best row of its model, unranked."""
    open_board(page, site)
    assert ranks(page) == ["1", "2", "3"]
    page.evaluate(
        """([values, isRevision]) => {
            const rows = document.querySelectorAll("#board tbody tr[data-origin=submitted]");
            values.forEach((value, i) => rows[i].cells[5].setAttribute("data-sort", value));
            if (isRevision) rows[2].dataset.group = rows[0].dataset.group; }""",
        [values, is_revision],
    )
    page.locator("#board th[data-column='5']").get_by_role("button").click()
    assert names(page)[:3] == expected.split()
    assert [rank or "-" for rank in ranks(page)] == shown.split()


def test_two_rows_are_compared(page: Page, site: Path) -> None:
    open_board(page, site)
    table = page.locator("#comparison")
    assert not table.is_visible()
    page.get_by_label("Compare org/strong").check()
    assert not table.is_visible()
    page.get_by_label("Compare org/weak").check()
    heads = table.locator("thead th").all_inner_texts()
    assert heads[1].startswith("org/strong")
    assert heads[2].startswith("org/weak")
    rows = json.loads((site / "leaderboard.json").read_text())["rows"]
    figures = {row["name"]: row["figures"] for row in rows}
    assert table.locator("tbody tr").count() == len(figures["org/strong"])
    first = table.locator("tbody tr").first.locator("td").all_inner_texts()
    strong, weak = (
        100 * figures[name]["cprag102_accuracy_at_1"]["value"]
        for name in ("org/strong", "org/weak")
    )
    assert first[0].startswith(f"{strong:.1f} ")
    assert first[1].startswith(f"{weak:.1f} ")
    assert first[2] == f"{weak - strong:+.1f}"
    # A third takes the place of the one that was chosen first.
    page.get_by_label("Compare org/middle").check()
    assert not page.get_by_label("Compare org/strong").is_checked()
    assert table.locator("thead th").all_inner_texts()[1].startswith("org/weak")
    page.get_by_label("Compare org/middle").uncheck()
    assert not table.is_visible()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone_and_follows_the_dark(new_page: NewPage, site: Path, scheme: str) -> None:
    page = new_page(viewport=PHONE, color_scheme=scheme)
    for path in (site / "index.html", next(site.glob("models/*.html"))):
        page.goto(path.as_uri())
        assert page.evaluate("document.documentElement.scrollWidth") == PHONE["width"]
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        ink = page.evaluate("getComputedStyle(document.body).color")
        assert contrast(ink, paper) > 12
        assert (luminance(paper) < 0.1) == (scheme == "dark")


def test_hostile_text_stays_text(page: Page, hostile_site: Path) -> None:
    open_board(page, hostile_site)
    title = page.title()
    rejected = page.locator(".rejected").inner_text()
    for text in LIVELY.values():
        # A browser runs blanks together; what is too long is cut.
        start = " ".join(visible(text).split())[:100]
        assert start in " ".join(rejected.split())
    page.get_by_label("Find a model").fill("<script>")
    assert len(names(page)) == 2
    page.get_by_label("Find a model").fill("")
    links = page.locator("#board tbody a").all()
    addresses = [link.get_attribute("href") or "" for link in links]
    assert len(addresses) == len(LIVELY)
    assert page.title() == title
    assert page.locator("img").count() == 0
    for address in addresses:
        page.goto((hostile_site / address).as_uri())
        assert page.locator("img").count() == 0
        assert page.locator("script").count() == 1
        assert page.title().endswith("lmdiag leaderboard")
        assert page.evaluate("document.documentElement.scrollWidth") <= 1280


def test_the_table_can_be_read_without_scripts(new_page: NewPage, site: Path) -> None:
    page = new_page(java_script_enabled=False)
    page.goto((site / "index.html").as_uri())
    assert names(page) == ["org/strong", "org/middle", "org/weak", "People"]
    assert not page.locator("#board-controls").is_visible()
    assert page.locator("#board thead th.figure:visible").count() == 13


def test_a_page_that_misbehaves_is_noticed(chromium: Browser, tmp_path: Path) -> None:
    """The tests above would see it: dialogs, errors, requests, and what a policy stopped."""
    policy = "<meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\">"
    loud = "<script>alert('hi'); missing()</script><img src='http://127.0.0.1:9/x.png'>"
    for name, text in (("loud", loud), ("stopped", policy + loud)):
        (tmp_path / f"{name}.html").write_text(f"<!doctype html>{text}")
    found = {}
    for name in ("loud", "stopped"):
        page, found[name] = new_context(chromium).new_page(), Complaints()
        found[name].watch(page)
        page.goto((tmp_path / f"{name}.html").as_uri())
        page.close()
    said = "\n".join(found["loud"])
    assert "dialog: hi" in said
    assert "missing is not defined" in said
    assert "http://127.0.0.1:9/x.png" in said
    assert "Content Security Policy" in "\n".join(found["stopped"])
    assert "dialog" not in "\n".join(found["stopped"])
