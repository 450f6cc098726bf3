"""The leaderboard in a real browser: what works by mouse, by keyboard, on a phone, in the dark."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from browser import Complaints, NewPage, contrast, new_context
from hub.boards import build, request, run_of, write_request

from lmdiag.leaderboard.board import Board

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.slow

MODELS = {
    "org/strong": ("masked", 110_000_000, 4.0),
    "org/a-model-with-a-very-long-name-of-many-words-v2.1-instruct": ("causal", 1_500_000_000, 1.5),
    "org/weak": ("causal", 70_000_000, 0.0),
}
STRONG, MIDDLE, WEAK = MODELS


@pytest.fixture(scope="module")
def site(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three models of different kinds, sizes and skills; and a request that was not run."""
    root = tmp_path_factory.mktemp("site")
    board = Board(root / "board-runs", str(demo_dir))
    for seed, (name, (kind, size, skill)) in enumerate(MODELS.items()):
        wanted = request(name)
        write_request(root, wanted)
        run_of(board, wanted, kind=kind, n_parameters=size, skill=skill, seed=seed)
    write_request(root, request("org/later"))
    build(root, demo_dir, "--no-run")
    return root / "board"


@pytest.fixture
def board(page: Page, site: Path) -> Page:
    page.goto((site / "index.html").as_uri())
    return page


def names(page: Page) -> list[str]:
    """Names in the table's visible rows, from top to bottom."""
    return page.locator("#board tbody tr:visible th bdi").all_inner_texts()


def test_headings_sort_by_mouse_and_keyboard_and_ranks_follow(board: Page) -> None:
    assert names(board) == [STRONG, MIDDLE, WEAK]
    assert board.locator("#board .rank").all_inner_texts() == ["1", "2", "3"]
    board.evaluate(
        """document.querySelectorAll("#board tbody tr").forEach((row, i) =>
           row.cells[5].setAttribute("data-sort", ["0.5", "0.9", "0.5"][i]))"""
    )
    heading = board.locator("#board th[data-column='5']")
    heading.get_by_role("button").click()
    assert heading.get_attribute("aria-sort") == "descending"
    assert names(board) == [MIDDLE, STRONG, WEAK]
    assert board.locator("#board .rank").all_inner_texts() == ["1", "2", "2"]
    heading.get_by_role("button").focus()
    board.keyboard.press("Enter")
    assert names(board) == [STRONG, WEAK, MIDDLE]
    assert board.locator("#board th[aria-sort]:not([aria-sort=none])").count() == 1


def test_rows_and_columns_can_be_chosen(board: Page) -> None:
    controls = board.locator("#board-controls")
    controls.get_by_label("Kind").select_option("causal")
    assert names(board) == [MIDDLE, WEAK]
    controls.get_by_label("Parameters").select_option(label="below 150M")
    assert names(board) == [WEAK]
    assert board.locator("#board-count").inner_text() == "1 of 3 rows"
    for label in ("Kind", "Parameters"):
        controls.get_by_label(label).select_option("")
    controls.get_by_label("Find a model").fill("STRO")
    assert names(board) == [STRONG]
    for group, n in (("overview", 7), ("neg136", 5), ("", 13)):
        controls.get_by_label("Columns").select_option(group)
        assert board.locator("#board thead th.figure:visible").count() == n


def test_two_rows_are_compared_as_first_minus_second(board: Page, site: Path) -> None:
    table = board.locator("#comparison")
    board.get_by_label(f"Compare {WEAK}").check()
    assert not table.is_visible()
    board.get_by_label(f"Compare {STRONG}").check()
    heads = table.locator("thead th").all_inner_texts()
    assert heads[1].startswith(f"First: {WEAK}")
    assert heads[2].startswith(f"Second: {STRONG}")
    assert heads[3:] == ["First minus second", "95% interval", "p"]
    rows = json.loads((site / "leaderboard.json").read_text())["rows"]
    strong, _, weak = ({k: 100 * f["value"] for k, f in row["figures"].items()} for row in rows)
    key = "cprag102_accuracy_at_1"
    cells = table.locator("tbody tr").first.locator("td").all_inner_texts()
    assert cells[:2] == [f"{weak[key]:.1f}", f"{strong[key]:.1f}"]
    assert cells[2] == f"{weak[key] - strong[key]:+.1f}".replace("-", "−")
    low, high = (float(x.replace("−", "-")) for x in cells[3].split(" to "))
    assert low < weak[key] - strong[key] < high <= 0
    assert cells[4] == "< .001" or 0 < float(cells[4]) < 0.05
    board.get_by_label(f"Compare {MIDDLE}").check()  # takes the place of the first
    assert table.locator("thead th").all_inner_texts()[1].startswith(f"First: {STRONG}")


@pytest.mark.parametrize(
    ("width", "scheme"), [(1400, "light"), (800, "dark"), (420, "light"), (420, "dark")]
)
def test_every_figure_can_be_read_at_every_width(
    new_page: NewPage, site: Path, width: int, scheme: str
) -> None:
    page = new_page(viewport={"width": width, "height": 900}, color_scheme=scheme)
    page.goto((site / "index.html").as_uri())
    assert page.evaluate("document.documentElement.scrollWidth") == width
    region = page.get_by_role("region", name="Leaderboard")
    if width == 1400:
        assert region.evaluate("box => box.scrollWidth <= box.clientWidth"), "a column is cut"
    for cell in page.locator("#board tbody tr").first.locator("td.figure:visible").all():
        cell.scroll_into_view_if_needed()
        value = cell.locator(".value")
        region.evaluate("(box, x) => { box.scrollLeft += x - 260; }", value.bounding_box()["x"])
        box, height = value.bounding_box(), value.evaluate("x => x.getClientRects().length")
        assert height == 1, "a number is broken"
        at = [box["x"] + box["width"] / 2, box["y"] + box["height"] / 2]
        on_top = page.evaluate("([x, y]) => document.elementFromPoint(x, y).className", at)
        assert on_top == "value", "covered by the column of names"
    style = "getComputedStyle(document.body)"
    assert contrast(*page.evaluate(f"[{style}.color, {style}.backgroundColor]")) > 12
    assert page.locator(".pictures svg").count() == 7
    assert "org/later" in page.locator(".unranked").inner_text()


def test_the_table_can_be_read_without_scripts(new_page: NewPage, site: Path) -> None:
    page = new_page(java_script_enabled=False)
    page.goto((site / "index.html").as_uri())
    assert names(page) == [STRONG, MIDDLE, WEAK]
    assert not page.locator("#board-controls").is_visible()
    page.get_by_role("link", name=STRONG).click()
    page.wait_for_url("**/models/org-strong-*.html")


def test_a_page_that_misbehaves_is_noticed(chromium: Browser, tmp_path: Path) -> None:
    """The tests above would see it: dialogs, errors, requests, and what a policy stopped."""
    policy = "<meta http-equiv='Content-Security-Policy' content=\"script-src 'none'\">"
    loud = "<script>alert('hi'); missing()</script><img src='http://127.0.0.1:9/x.png'>"
    for name, text in (("loud", loud), ("stopped", policy + loud)):
        (tmp_path / f"{name}.html").write_text(f"<!doctype html>{text}")
    found = {name: Complaints() for name in ("loud", "stopped")}
    for name, complaints in found.items():
        page = new_context(chromium).new_page()
        complaints.watch(page)
        page.goto((tmp_path / f"{name}.html").as_uri())
        page.close()
    told = "\n".join(found["loud"])
    for text in ("dialog: hi", "missing is not defined", "http://127.0.0.1:9/x.png"):
        assert text in told
    told = "\n".join(found["stopped"])
    assert "Content Security Policy" in told
    assert "dialog" not in told
