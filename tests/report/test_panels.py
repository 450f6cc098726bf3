"""Panels: where values lie, and that everything finds room on the sheet."""

from __future__ import annotations

import math
from itertools import combinations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.report.curves import training
from lmdiag.report.drawing import WIDTH, Shape, Sheet
from lmdiag.report.panels import Entry, Panel, Side, legend, panels, percents, probabilities

LABELS = st.text("abc \n", max_size=30)


def test_values_lie_between_the_ends_of_their_side() -> None:
    assert Side(0, 10).share(2.5) == 0.25
    assert Side(10, 0).share(2.5) == 0.75
    assert Side(1e-4, 1, warp=math.log10).share(1e-3) == pytest.approx(0.25)
    assert percents().share(50) == 0.5


def test_ticks_are_where_they_say() -> None:
    assert list(probabilities(1e-3, "p").ticks.items()) == [
        (0.001, "10⁻³"), (0.01, "10⁻²"), (0.1, "10⁻¹"), (1.0, "1")
    ]  # fmt: skip
    assert percents(48, 10).ticks == {
        50: "50",
        60: "60",
        70: "70",
        80: "80",
        90: "90",
        100: "100 %",
    }


@pytest.mark.parametrize("found", [[0], [7], [0, 1000], [1000, 2000, 3000], [0, 10, 10_000]])
def test_steps_of_training_follow_each_other(found: list[float]) -> None:
    side = training(found)
    places = [side.share(x) for x in found]
    assert places == sorted(set(places))
    assert places[0] > 0
    assert places[-1] < 1


def corners(panel: Panel) -> tuple[float, float, float, float]:
    (left, bottom), (right, top) = (
        panel.at(panel.x.low, panel.y.low),
        panel.at(panel.x.high, panel.y.high),
    )
    return left, bottom, right, top


@given(
    st.integers(1, 7),
    st.integers(1, 2),
    st.lists(LABELS, min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
)
def test_panels_lie_on_the_sheet_and_apart(
    count: int, columns: int, labels: list[str], titled: bool, square: bool
) -> None:
    sheet = Sheet(700)
    y = Side(0, 5, dict(enumerate(labels)), "name")
    sides = [(percents(), y)] * count
    titles = ["title"] * count if titled else []
    found = [corners(each) for each in panels(
        sheet, sides, columns=columns, titles=titles, square=square
    )]  # fmt: skip
    for left, bottom, right, top in found:
        assert 0 < left < right < WIDTH
        assert 0 < bottom < top <= sheet.top
        assert not square or right - left == pytest.approx(top - bottom)
    for one, other in combinations(found, 2):
        beside = one[2] < other[0] or other[2] < one[0]
        assert beside or one[3] < other[1] or other[3] < one[1]


@given(st.lists(LABELS, min_size=2, max_size=8), st.sampled_from(["", "title"]))
def test_a_legend_leaves_the_rest_of_the_sheet(labels: list[str], title: str) -> None:
    sheet = Sheet(400)
    legend(sheet, [Entry(label, Shape("o", "#010101")) for label in labels], title)
    assert 0 < sheet.top < 400
    svg = sheet.svg("pic", "a legend")
    assert svg.count("<use") == len(labels)
