"""The formulas of test suites: what a suite predicts of the surprisals of an item's regions.

    [(6;%mismatch%) > (6;%match%)] & [(7;%mismatch%) - (7;%match%) > 0.5]

`(6;%match%)` is the surprisal of region 6 in the condition `match`, in bits, and `(*;%match%)` that
of the whole sentence. From the tightest to the loosest bind numbers, `+ -` (left to right),
`< > =`, `&`, `|`. Parentheses and square brackets group alike. `=` holds within a tolerance.

Source: the grammar of SyntaxGym (Gauthier et al. 2020); see docs/specification.md.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

ABSOLUTE, RELATIVE = 1e-3, 1e-5
"""Tolerance of `=`: |left - right| is at most `ABSOLUTE + RELATIVE * |right|`, in bits."""

_MAX_DEPTH = 50
"""Brackets within brackets; published formulas have three."""

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<region> \(\s* (?:[0-9]{1,9}|\*) \s*;\s* %[^%]*% \s*\) )
    | (?P<number> (?:[0-9]+\.?[0-9]*|\.[0-9]+) (?:[eE][+-]?[0-9]+)? )
    | (?P<sign> [-+<>=&|()\[\]] )
    | (?P<end> $ )
    )""",
    re.VERBOSE,
)
_REGION = re.compile(r"\(\s*([0-9]+|\*)\s*;\s*%([^%]*)%")
_CLOSING = {"(": ")", "[": "]"}


class FormulaError(ValueError):
    """A text that is not a formula; the message says what is wrong at which character, from 1."""


class RegionOf(NamedTuple):
    """What a formula reads.

    Attributes:
        number: of a region; None for the whole sentence.
        condition: of the item.
    """

    number: int | None
    condition: str

    def __str__(self) -> str:
        return f"({'*' if self.number is None else self.number};%{self.condition}%)"


Surprisals = Mapping[RegionOf, float]
"""Region -> its surprisal in bits."""


class _Part(NamedTuple):
    """A part of a formula: a comparison, or a sum of numbers."""

    is_truth: bool
    value: Callable[[Surprisals], float]
    start: int


@dataclass(frozen=True, eq=False)
class Formula:
    """A prediction on the surprisals of an item.

    Attributes:
        text: as it is written.
        regions: that it reads, each once, in order of first appearance.
    """

    text: str
    regions: tuple[RegionOf, ...]
    _value: Callable[[Surprisals], float]

    def holds(self, surprisals: Surprisals) -> bool | None:
        """Returns whether the prediction is true; None where a surprisal is undefined.

        Args:
            surprisals: of all `regions`, in bits; NaN or infinite where undefined.
        """
        known = all(math.isfinite(surprisals[region]) for region in self.regions)
        return bool(self._value(surprisals)) if known else None


def parse_formula(text: str) -> Formula:
    """Returns the formula that a text is.

    Raises:
        FormulaError: it is not one; the message names the character.

    >>> parse_formula("(1;%a%) < [(1;%b%) - 0.5]").holds({(1, "a"): 3.0, (1, "b"): 3.6})
    True
    """
    return _Parser(text).formula()


class _Parser:
    """Recursive descent: a method for each strength of binding, from `|` down to a number."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.regions: dict[RegionOf, None] = {}
        self.depth = 0
        self.end = 0
        self.advance()

    def advance(self) -> None:
        """Reads the next token: its `kind`, its text and where it starts."""
        match = _TOKEN.match(self.text, self.end)
        if match is None:
            rest = self.text[self.end :]
            self.start = self.end + len(rest) - len(rest.lstrip())
            raise self.error(f"unexpected {self.text[self.start]!r}")
        self.kind = match.lastgroup
        self.token = match[self.kind or 0]
        self.start, self.end = match.start(self.kind or 0), match.end()

    def error(self, problem: str, at: int | None = None) -> FormulaError:
        """The problem, with the place of a part or of this token."""
        return FormulaError(f"{problem} at character {(self.start if at is None else at) + 1}")

    def formula(self) -> Formula:
        whole = self.alternatives()
        if self.kind != "end":
            raise self.error(f"unexpected {self.token!r}")
        self.expect(whole, truth=True)
        return Formula(self.text, tuple(self.regions), whole.value)

    def expect(self, part: _Part, *, truth: bool) -> _Part:
        """The part, which must be a comparison or must be a number."""
        if part.is_truth != truth:
            kinds = "a number", "a comparison"
            raise self.error(f"expected {kinds[truth]}, not {kinds[part.is_truth]},", part.start)
        return part

    # ---- truth values ----------------------------------------------------------------------------

    def alternatives(self) -> _Part:
        return self.chain("|", self.conjunction, any)

    def conjunction(self) -> _Part:
        return self.chain("&", self.comparison, all)

    def chain(
        self, sign: str, part: Callable[[], _Part], combine: Callable[[list[float]], bool]
    ) -> _Part:
        """One or more parts with a sign between them."""
        parts = [part()]
        while self.token == sign:
            self.advance()
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        values = [self.expect(each, truth=True).value for each in parts]
        return _Part(True, lambda bits: combine([value(bits) for value in values]), parts[0].start)

    def comparison(self) -> _Part:
        left = self.sum()
        if self.token not in _COMPARE:
            return left
        compare = _COMPARE[self.token]
        self.advance()
        a, b = (self.expect(side, truth=False).value for side in (left, self.sum()))
        if self.token in _COMPARE:
            raise self.error(f"a second comparison {self.token!r}: join two of them by &")
        return _Part(True, lambda bits: compare(a(bits), b(bits)), left.start)

    # ---- numbers ---------------------------------------------------------------------------------

    def sum(self) -> _Part:
        first = self.operand()
        terms = [(1.0, first)]
        while self.token in ("+", "-"):
            factor = 1.0 if self.token == "+" else -1.0
            self.advance()
            terms.append((factor, self.operand()))
        if len(terms) == 1:
            return first
        values = [(factor, self.expect(term, truth=False).value) for factor, term in terms]
        return _Part(
            False, lambda bits: sum(factor * value(bits) for factor, value in values), first.start
        )

    def operand(self) -> _Part:
        if self.token in _CLOSING:
            return self.group()
        if self.kind == "region":
            return self.region()
        start, is_negative = self.start, self.token == "-"
        if is_negative:
            self.advance()
        if self.kind != "number":
            token = repr(self.token) if self.token else "the end"
            raise self.error(f"expected a region such as (6;%condition%) or a number, not {token},")
        number = float(self.token)
        if not math.isfinite(number):
            raise self.error("the number is too large")
        self.advance()
        return _Part(False, lambda bits: -number if is_negative else number, start)

    def region(self) -> _Part:
        number, condition = _REGION.match(self.token).groups()  # type: ignore[union-attr]
        region = RegionOf(None if number == "*" else int(number), condition)
        self.regions[region] = None
        start = self.start
        self.advance()
        return _Part(False, lambda bits: bits[region], start)

    def group(self) -> _Part:
        opening, start = self.token, self.start
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(f"more than {_MAX_DEPTH} brackets within each other")
        self.advance()
        inner = self.alternatives()
        if self.token != _CLOSING[opening]:
            token = repr(self.token) if self.token else "the end"
            raise self.error(f"expected {_CLOSING[opening]!r}, not {token},")
        self.depth -= 1
        self.advance()
        return _Part(inner.is_truth, inner.value, start)


def _equal(left: float, right: float) -> bool:
    return abs(left - right) <= ABSOLUTE + RELATIVE * abs(right)


_COMPARE: Mapping[str, Callable[[float, float], bool]] = {
    "<": operator.lt,
    ">": operator.gt,
    "=": _equal,
}
