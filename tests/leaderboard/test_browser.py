"""The leaderboard in a real browser: what works by mouse, by keyboard, on a phone."""

import json

import pytest
from hub.boards import build, request, run_of, write_request

from lmdiag.leaderboard.board import Board

pytestmark = pytest.mark.slow

MODELS = {
    "org/strong": ("masked", 110_000_000, 4.0),
    "org/a-model-with-a-very-long-name-of-many-words-v2.1-instruct": ("causal", 1_500_000_000, 1.5),
    "org/weak": ("causal", 70_000_000, 0.0),
}
STRONG, MIDDLE, WEAK = MODELS


@pytest.fixture(scope="module")
def site(demo_dir, tmp_path_factory):
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
def board(page, site):
    page.goto((site / "index.html").as_uri())
    return page


def names(page):
    return page.locator("#board tbody tr:visible th bdi").all_inner_texts()


def test_headings_sort_by_mouse_and_keyboard_and_ranks_follow(board):
    assert names(board) == [STRONG, MIDDLE, WEAK]
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
    board.set_viewport_size({"width": 420, "height": 900})
    assert board.evaluate("document.documentElement.scrollWidth") == 420
    assert board.locator(".pictures svg").count() == 7
    box = board.locator(".scroll.more")  # what lies beyond its edge fades out
    box.evaluate("box => { box.scrollLeft = box.scrollWidth; }")
    board.wait_for_selector(".scroll:not(.more)")
    last = board.locator("#board tbody tr:first-child td:visible").last.bounding_box()
    assert last["x"] + last["width"] <= 420
    assert "org/later" in board.locator(".unranked").inner_text()


def test_rows_and_columns_can_be_chosen(board):
    controls = board.locator("#board-controls")
    for label, choice, shown in (
        ("Kind", "causal", [MIDDLE, WEAK]),
        ("Parameters", "below 150M", [WEAK]),
        ("Kind", "", [STRONG, WEAK]),
    ):
        controls.get_by_label(label).select_option(choice)
        assert names(board) == shown
    assert board.locator("#board-count").inner_text() == "2 of 3 rows"
    controls.get_by_label("Find a model").fill("STRO")
    assert names(board) == [STRONG]
    for group, n in (("overview", 8), ("neg136", 9), ("", 17)):
        controls.get_by_label("Columns").select_option(group)
        assert board.locator("#board thead th.figure:visible").count() == n


def test_the_row_selected_first_is_the_base_of_a_comparison(board, site):
    heads, cells = board.locator("#comparison thead th"), board.locator("#comparison tbody td")
    board.get_by_label(f"Compare {WEAK}").check()
    assert not board.locator("#comparison").is_visible()
    board.get_by_label(f"Compare {STRONG}").check()
    _, first, second, *columns = heads.all_inner_texts()
    assert first.startswith(f"Base: {WEAK}")
    assert second.startswith(f"New: {STRONG}")
    assert columns == ["New minus base", "95% interval", "p, not adjusted"]
    rows = json.loads((site / "leaderboard.json").read_text())["rows"]
    key = "cprag102_accuracy_at_1"
    strong, _, weak = (100 * row["figures"][key]["value"] for row in rows)
    *values, interval, p = cells.all_inner_texts()[:5]
    assert values[:2] == [f"{weak:.1f}", f"{strong:.1f}"]
    assert values[2] == f"{strong - weak:+.1f}".replace("-", "−")
    low, high = (float(x.replace("−", "-")) for x in interval.split(" to "))
    assert 0 <= low < strong - weak < high
    assert p == "< .001" or 0 < float(p) < 0.05
    board.get_by_label(f"Compare {MIDDLE}").check()  # takes the place of the first
    assert heads.all_inner_texts()[1].startswith(f"Base: {STRONG}")
