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
from typing import Any, NamedTuple

ABSOLUTE, RELATIVE = 1e-3, 1e-5
"""Tolerance of `=`: |left - right| is at most `ABSOLUTE + RELATIVE * |right|`, in bits."""

_MAX_DEPTH = 50
"""Brackets within brackets; published formulas have three."""

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<region> \(\s* (?P<index>[0-9]{1,9}|\*) \s*;\s* %(?P<condition>[^%]*)% \s*\) )
    | (?P<number> (?:[0-9]+\.?[0-9]*|\.[0-9]+) (?:[eE][+-]?[0-9]+)? )
    | (?P<sign> [-+<>=&|()\[\]] )
    | (?P<end> $ )
    )""",
    re.VERBOSE,
)
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


def _equal(left: float, right: float) -> bool:
    return abs(left - right) <= ABSOLUTE + RELATIVE * abs(right)


_LEVELS: tuple[dict[str, Callable[[Any, Any], Any]], ...] = (
    {"|": operator.or_},
    {"&": operator.and_},
    {"<": operator.lt, ">": operator.gt, "=": _equal},
    {"+": operator.add, "-": operator.sub},
)
"""The operators, from the loosest to the tightest; the first two levels join comparisons."""
_COMPARISONS = 2
"""The level of comparisons; its operands and those of later levels are numbers."""


class _Part(NamedTuple):
    """A part of a formula: a comparison, or a sum of numbers."""

    is_truth: bool
    value: Callable[[Surprisals], Any]
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
    _value: Callable[[Surprisals], Any]

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
    parser = _Parser(text)
    whole = parser.expect(parser.part(), truth=True)
    if parser.kind != "end":
        raise parser.error(f"unexpected {parser.token!r}")
    return Formula(text, tuple(parser.regions), whole.value)


class _Parser:
    """Precedence climbing: `part` reads the operators of a level, `operand` what they join."""

    def __init__(self, text: str) -> None:
        self.text, self.end, self.depth = text, 0, 0
        self.regions: dict[RegionOf, None] = {}
        self.advance()

    def advance(self) -> None:
        """Reads the next token: its `kind`, its `token` and where it starts."""
        match = _TOKEN.match(self.text, self.end)
        if match is None:
            self.start = len(self.text) - len(self.text[self.end :].lstrip())
            raise self.error(f"unexpected {self.text[self.start]!r}")
        self.match, self.kind = match, str(match.lastgroup)
        self.token, self.start, self.end = match[self.kind], match.start(self.kind), match.end()

    def error(self, problem: str, at: int | None = None) -> FormulaError:
        """The problem, with the place of a part or of this token."""
        return FormulaError(f"{problem} at character {(self.start if at is None else at) + 1}")

    def expect(self, part: _Part, *, truth: bool) -> _Part:
        """Returns the part, which must be a comparison or must be a number."""
        if part.is_truth != truth:
            kinds = "a number", "a comparison"
            raise self.error(f"expected {kinds[truth]}, not {kinds[part.is_truth]},", part.start)
        return part

    def part(self, level: int = 0) -> _Part:
        """Reads operands joined by operators of this level or a tighter one, left to right."""
        if level == len(_LEVELS):
            return self.operand()
        first = self.part(level + 1)
        joined: list[tuple[Callable[[Any, Any], Any], Callable[[Surprisals], Any]]] = []
        while apply := _LEVELS[level].get(self.token):
            if joined and level == _COMPARISONS:
                raise self.error(f"a second comparison {self.token!r}: join two of them by &")
            self.expect(first, truth=level < _COMPARISONS)
            self.advance()
            operand = self.expect(self.part(level + 1), truth=level < _COMPARISONS)
            joined.append((apply, operand.value))
        if not joined:
            return first

        def value(bits: Surprisals) -> Any:  # a loop: chains may be longer than the stack is deep
            result = first.value(bits)
            for apply, operand in joined:
                result = apply(result, operand(bits))
            return result

        return _Part(level <= _COMPARISONS, value, first.start)

    def operand(self) -> _Part:
        """Reads a region, a number or a part in brackets."""
        if self.token in _CLOSING:
            return self.group()
        start, match, sign = self.start, self.match, 1.0
        if self.kind == "region":
            index = None if match["index"] == "*" else int(match["index"])
            region = RegionOf(index, match["condition"])
            self.regions[region] = None
            self.advance()
            return _Part(False, lambda bits: bits[region], start)
        if self.token == "-":
            sign = -1.0
            self.advance()
        if self.kind != "number":
            token = repr(self.token) if self.token else "the end"
            raise self.error(f"expected a region such as (6;%condition%) or a number, not {token},")
        number = sign * float(self.token)
        if not math.isfinite(number):
            raise self.error("the number is too large")
        self.advance()
        return _Part(False, lambda bits: number, start)

    def group(self) -> _Part:
        closing, start = _CLOSING[self.token], self.start
        self.depth += 1
        if self.depth > _MAX_DEPTH:
            raise self.error(f"more than {_MAX_DEPTH} brackets within each other")
        self.advance()
        inner = self.part()
        if self.token != closing:
            token = repr(self.token) if self.token else "the end"
            raise self.error(f"expected {closing!r}, not {token},")
        self.depth -= 1
        self.advance()
        return inner._replace(start=start)
