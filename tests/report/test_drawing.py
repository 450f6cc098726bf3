"""Pictures: inline SVG in the page's colours, with nothing in it that a page could not show."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest
from lmdiag.published import Beside, figures
from lmdiag.report.records import Cell

from lmdiag.report.curves import Curve, Ends, cutoffs, small_cutoffs, steps
from lmdiag.report.drawing import SVG, VARIABLES
from lmdiag.report.figures import (
    FLOOR,
    Series,
    Shuffled,
    decade_below,
    deviation,
    dots,
    shuffles,
    whisker,
)
from lmdiag.report.panels import power, shortened

HOSTILE = "$\\frac{1}{0}$ </text><script>alert(1)</script>"


def cell(value: float | None, *, sd: float | None = None, published: bool = False) -> Cell:
    low, high = (None, None) if value is None else (max(0, value - 0.1), min(1, value + 0.1))
    beside = Beside(figures()[0], 40.0, 1.0, True) if published else None
    return Cell(value, 20, low, high, sd, True, beside)


def texts(svg: str) -> list[str]:
    return ["".join(each.itertext()) for each in ElementTree.fromstring(svg).iter(f"{{{SVG}}}text")]


@pytest.fixture
def picture() -> str:
    cells = [cell(0.25), None, cell(None), cell(0.75, published=True)]
    names = ["first", "second", "third", HOSTILE]
    return dots("pic", 'a "description"', names, [Series("one", cells), Series(HOSTILE, cells)])


def test_every_colour_is_the_pages_own(picture: str) -> None:
    root = ElementTree.fromstring(picture)
    colours = {each.get(key, "none") for each in root.iter() for key in ("fill", "stroke")}
    assert colours <= {"none", *VARIABLES.values()}


def test_styles_are_attributes_and_ids_are_the_pictures_own(picture: str) -> None:
    root = ElementTree.fromstring(picture)
    assert not [each for each in root.iter() if "style" in each.attrib]
    assert not list(root.iter(f"{{{SVG}}}style"))
    ids = [each.get("id", "") for each in root.iter() if "id" in each.attrib]
    assert all(name.startswith("pic-") for name in ids)
    used = [
        each.get("{http://www.w3.org/1999/xlink}href", "") for each in root.iter(f"{{{SVG}}}use")
    ]
    assert used
    assert {link[1:] for link in used} <= set(ids)


def test_text_stays_text(picture: str) -> None:
    assert HOSTILE in texts(picture)
    assert {"one", "published", "100 %"} <= set(texts(picture))
    assert not list(ElementTree.fromstring(picture).iter(f"{{{SVG}}}script"))


def test_the_same_picture_is_the_same_text(picture: str) -> None:
    cells = [cell(0.25), None, cell(None), cell(0.75, published=True)]
    names = ["first", "second", "third", HOSTILE]
    series = [Series("one", cells), Series(HOSTILE, cells)]
    assert dots("pic", 'a "description"', names, series) == picture


def test_intervals_and_deviations_are_two_things() -> None:
    assert whisker(cell(0.5)) == pytest.approx((0.4, 0.6))
    assert whisker(cell(0.5, sd=0.03)) == pytest.approx((0.4, 0.6))
    assert whisker(Cell(0.5, 1, None, None, None, True)) == (0.5, 0.5)
    assert deviation(cell(0.5, sd=0.03)) == pytest.approx((0.47, 0.53))
    assert deviation(cell(0.01, sd=0.03)) == pytest.approx((0.0, 0.04))


def test_a_picture_of_both_has_a_sign_for_each_and_names_it() -> None:
    kinds = {"95% interval over items", "± sd over shuffles"}
    plain, shuffled = Series("Orig", [cell(0.5)]), Series("Shuf", [cell(0.4, sd=0.03)])
    assert kinds <= set(texts(dots("pic", "both", ["row"], [plain, shuffled])))
    assert not kinds & set(texts(dots("pic", "one kind", ["row"], [plain, plain])))


def widths(svg: str) -> set[str]:
    """The widths of all lines."""
    found = {each.get("stroke-width", "") for each in ElementTree.fromstring(svg).iter()}
    return found - {""}


def test_a_deviation_is_drawn_broader_than_an_interval() -> None:
    plain = dots("pic", "x", ["row"], [Series("Orig", [cell(0.5)])])
    both = dots("pic", "x", ["row"], [Series("Shuf", [cell(0.5, sd=0.03)])])
    assert "6" in widths(both) - widths(plain)


def test_chance_is_marked_where_there_is_such_a_level() -> None:
    guessed = cell(0.5)._replace(chance=1 / 3)
    shown = dots("pic", "x", ["a", "b"], [Series("Orig", [guessed, cell(0.5)])])
    assert "chance" in texts(shown)
    assert "chance" not in texts(dots("pic", "x", ["a"], [Series("Orig", [cell(0.5)])]))
    points = [guessed, guessed]
    ends = Ends("MW", [Curve("MW", [0.1, 1], points)], [Curve("MW", [0.5, 0.1], points)])
    assert "chance" in texts(cutoffs("pic", ends))
    assert "chance" in texts(steps("pic", "over training", [Curve("MW", [0, 100], points)]))


def test_axes_reach_down_to_the_smallest_probability_within_reason() -> None:
    assert decade_below([0.5, 0.02]) == pytest.approx(0.01)
    assert decade_below([0.01]) == pytest.approx(0.01)
    assert decade_below([1e-30, 0.5]) == pytest.approx(FLOOR)
    assert decade_below([0.0]) == pytest.approx(0.1)


def test_shuffles_show_mean_and_plain_figure() -> None:
    row = Shuffled("Shuf, accuracy@1", [0.1, 0.1, 0.2], cell(0.1333, sd=0.047), 0.3)
    shown = texts(shuffles("pic", [row]))
    assert {"Shuf, accuracy@1", "mean ± sd over shuffles", "not shuffled"} <= set(shown)


def test_curves_leave_out_what_is_undefined() -> None:
    top, bottom = [cell(None), cell(0.9), cell(0.8)], [cell(0.7), cell(0.6)]
    ends = Ends(
        "MW and EW",
        [Curve(name, [0.1, 0.5, 1], top) for name in ("MW", "EW")],
        [Curve(name, [0.5, 1e-6], bottom) for name in ("MW", "EW")],
    )
    assert {"MW", "EW", "top of the distribution", power(-6)} <= set(texts(cutoffs("pic", ends)))
    assert texts(small_cutoffs("pic", [ends, ends, ends])).count("MW and EW") == 3


def test_a_single_kind_of_mark_needs_no_legend() -> None:
    shown = texts(dots("pic", "one kind", ["row"], [Series("Orig", [cell(0.5)])]))
    assert "row" in shown
    assert "Orig" not in shown


def test_steps_are_marked_themselves() -> None:
    curve = Curve("accuracy", [0, 1000, 64000], [cell(0.1), cell(0.5), cell(0.9)])
    shown = texts(steps("pic", "over training", [curve]))
    assert {"0", "1k", "64k", "training step"} <= set(shown)
    assert not [text for text in shown if "mathdefault" in text]


def test_powers_and_long_names() -> None:
    assert (power(0), power(-12)) == ("1", "10⁻¹²")
    assert shortened("short") == "short"
    assert len(shortened("x" * 200)) <= 48
    assert shortened("begin" + "x" * 200 + "end").endswith("end")
