"""The parser of formulas: values worked by hand, errors with their place, generated formulas."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.measures.formulas import FormulaError, RegionOf, parse_formula

A, B, WHOLE = RegionOf(1, "a"), RegionOf(2, "no-b c"), RegionOf(None, "a")
BITS = {A: 3.0, B: 5.0, WHOLE: 12.0}


@pytest.mark.parametrize(
    ("text", "holds"),
    [
        ("(1;%a%) < (2;%no-b c%)", True),
        ("(*;%a%)>11.5", True),
        (" ( * ; %a%) = 1.2e1 ", True),
        # left to right: (10 - 3) - 5 = 2, not 10 - (3 - 5) = 12; 10 - 3 + 5 = 12, not 2
        ("10 - (1;%a%) - (2;%no-b c%) = 2", True),
        ("10 - (1;%a%) + (2;%no-b c%) = 12", True),
        ("10 - [(1;%a%) + (2;%no-b c%)] = 2", True),
        ("-2 < [-.5]", True),
        # & before |: F & F | T, T | F & F, and with brackets the other way
        ("1 > 2 & 1 > 2 | 1 < 2", True),
        ("1 < 2 | 1 > 2 & 1 > 2", True),
        ("[1 < 2 | 1 > 2] & 1 > 2", False),
        # a chain holds where all hold: the third decides
        ("1 < 2 & 2 < 3 & 4 < 3", False),
        ("(1 < 2) & [2 < 3] & ([3 < 4])", True),
        ("1 > 2 | 2 > 3 | 3 < 4", True),
        # |left - right| <= 0.001 + 0.00001 * |right|: 0.002 for a right side of 100
        ("100.00199 = 100", True),
        ("100.00201 = 100", False),
        ("0.00099 = 0", True),
        ("0.00101 = 0", False),
        # not symmetrical: 0.001 + 0.00001 * 5000 = 0.051, and of 5000.05100005 a little more
        ("5000.0510002 = 5000", False),
        ("5000 = 5000.0510002", True),
        # 300 parts
        ("+".join(["1"] * 149) + " = 149", True),
    ],
)
def test_values_by_hand(text, holds):
    assert parse_formula(text).holds(BITS) is holds


def test_the_regions_of_a_formula_and_surprisals_that_are_undefined():
    formula = parse_formula("(2;%no-b c%) < (*;%a%) & (1;%a%) < (2;%no-b c%)")
    assert formula.regions == (B, WHOLE, A)
    assert str(formula.regions[1]) == "(*;%a%)"
    for bits, holds in ((2.0, True), (float("nan"), None), (float("inf"), None)):
        assert parse_formula("1 < 2 | (1;%a%) < 3").holds({A: bits}) is holds


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "such as (6;%a%) < (6;%b%), joined by & and |, at character 1"),
        ("(1;%a%)", "expected a comparison, not a number, at character 1"),
        ("1 < 2 < 3", "join comparisons by & at character 1"),
        ("(1 < 2", "joined by & and |, at character 1"),
        ("3 < (1 < 2)", "expected a number, not a comparison, at character 6"),
        ("(1;a) > 2", "unexpected ';' at character 3"),
        ("1 < 2 x", "unexpected 'x' at character 7"),
        ("1 < 1e999", "the number is too large at character 5"),
        ("1 < -(1;%a%)", "unexpected part at character 5"),
        ("__import__('os')", "unexpected '_' at character 1"),
        ("[" * 100_000, "more than 300 parts at character 301"),
        ("[" * 250, "at character 201"),
    ],
)
def test_what_is_no_formula_has_its_place_named(text, message):
    with pytest.raises(FormulaError) as error:
        parse_formula(text)
    assert message in str(error.value)


@given(st.text(alphabet="()[];%*a1.e+-<>=&| \n", max_size=40))
def test_any_text_is_a_formula_or_has_one_line(text):
    try:
        formula = parse_formula(text)
        said = f"{formula.holds(dict.fromkeys(formula.regions, 1.0))} at character 0"
    except FormulaError as error:
        said = str(error)
    assert re.search(r"^.+ at character \d+$", said)
