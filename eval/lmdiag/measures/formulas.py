"""The formulas of test suites: what a suite predicts of the surprisals of an item's regions.

    [(6;%mismatch%) > (6;%match%)] & [(7;%mismatch%) - (7;%match%) > 0.5]

`(6;%match%)` is the surprisal of region 6 in the condition `match`, in bits, and `(*;%match%)` that
of the whole sentence. From the tightest to the loosest bind `+ -` (left to right), `< > =`, `&`,
`|`. Parentheses and square brackets group alike. `=` holds within a tolerance.

A formula is translated to a Python expression and parsed by `ast`; other nodes are refused.

Source: the grammar of SyntaxGym (Gauthier et al. 2020); see docs/specification.md.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

ABSOLUTE = 1e-3
RELATIVE = 1e-5
"""Tolerance of `=`: |left - right| is at most `ABSOLUTE + RELATIVE * |right|`, in bits."""

_LONGEST = 300
"""Regions, numbers, operators and brackets of a formula; published ones have up to 25."""

_TOKEN = re.compile(
    r"""\s*(?:
    (?P<region> \(\s* (?P<index>[0-9]{1,9}|\*) \s*;\s* %(?P<condition>[^%]*)% \s*\) )
    | (?P<number> (?:[0-9]+\.?[0-9]*|\.[0-9]+) (?:[eE][+-]?[0-9]+)? )
    | (?P<sign> [-+<>=&|()\[\]] )
    )""",
    re.VERBOSE,
)
_OPERATORS: Mapping[type[ast.AST], Callable[[float, float], Any]] = {
    ast.Lt: operator.lt,
    ast.Gt: operator.gt,
    ast.Eq: lambda left, right: abs(left - right) <= ABSOLUTE + RELATIVE * abs(right),
    ast.Add: operator.add,
    ast.Sub: operator.sub,
}
_PYTHON = {"=": "==", "&": "and", "|": "or"}


class FormulaError(ValueError):
    """A text that is not a formula; the message says what is wrong at which character, from 1."""


class RegionOf(NamedTuple):
    """What a formula reads: a region, or the whole sentence (None), in a condition."""

    number: int | None
    condition: str

    def __str__(self) -> str:
        return f"({'*' if self.number is None else self.number};%{self.condition}%)"


Surprisals = Mapping[RegionOf, float]
"""Region -> its surprisal in bits."""


@dataclass(frozen=True, eq=False)
class Formula:
    """A prediction on the surprisals of an item; `regions` are those that it reads, each once."""

    text: str
    regions: tuple[RegionOf, ...]
    _value: Callable[[Surprisals], Any]

    def holds(self, surprisals: Surprisals) -> bool | None:
        """Returns whether the prediction is true; None where a surprisal (bits) is not finite."""
        is_defined = all(math.isfinite(surprisals[region]) for region in self.regions)
        return bool(self._value(surprisals)) if is_defined else None


def parse_formula(text: str) -> Formula:
    """Returns the formula that a text is; raises `FormulaError`, which names the character.

    The text is read token by token and written as a Python expression, in which regions are the
    variables r0, r1, ...; Python's own parser then gives the tree. Token and expression keep their
    order, so that an error of the parser can be shown at its character of the text.

    >>> parse_formula("(1;%a%) < [(1;%b%) - 0.5]").holds({(1, "a"): 3.0, (1, "b"): 3.6})
    True
    """
    variable_of: dict[RegionOf, str] = {}
    terms: list[str] = []  # tokens of the Python expression
    token_starts: list[int] = []  # where each token begins in `text`
    end = 0
    text_end = len(text.rstrip())
    while end < text_end:
        if len(terms) == _LONGEST:
            raise FormulaError(f"more than {_LONGEST} parts at character {end + 1}")
        match = _TOKEN.match(text, end)
        if match is None:
            start = len(text) - len(text[end:].lstrip())
            raise FormulaError(f"unexpected {text[start]!r} at character {start + 1}")
        start = match.start(str(match.lastgroup))
        end = match.end()
        term = match[0].strip()
        if match["region"]:
            number = None if match["index"] == "*" else int(match["index"])
            term = variable_of.setdefault(
                RegionOf(number, match["condition"]), f"r{len(variable_of)}"
            )
        elif match["number"]:
            term = repr(float(term))
            if term == "inf":
                raise FormulaError(f"the number is too large at character {start + 1}")
        terms.append(_PYTHON.get(term, term))
        token_starts.append(start)
    expression = " ".join(terms)

    def character_of(column: int) -> int:
        """The character of the text, from 1, that a character of the expression stands for."""
        number = expression[:column].count(" ")
        return (token_starts[number] if number < len(token_starts) else len(text)) + 1

    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, MemoryError) as error:
        column = (getattr(error, "offset", None) or 1) - 1
        problem = "expected comparisons such as (6;%a%) < (6;%b%), joined by & and |,"
        raise FormulaError(f"{problem} at character {character_of(column)}") from None
    region_of_variable = {name: region for region, name in variable_of.items()}
    return Formula(
        text, tuple(variable_of), _compiled(tree, region_of_variable, character_of, truth=True)
    )


def _compiled(
    node: ast.expr, named: Mapping[str, RegionOf], place: Callable[[int], int], *, truth: bool
) -> Callable[[Surprisals], Any]:
    """Returns the function that computes a node of the tree from surprisals.

    Args:
        named: variable -> region.
        place: character of the expression -> character of the formula, for messages.
        truth: whether the node must be a comparison, or else a number.
    """
    value: Callable[[Surprisals], Any]
    match node:
        case ast.List(elts=[inside]):  # square brackets
            return _compiled(inside, named, place, truth=truth)
        case ast.BoolOp(op=join, values=nodes):
            parts = [_compiled(part, named, place, truth=True) for part in nodes]
            all_or_any = all if isinstance(join, ast.And) else any
            is_truth, value = True, lambda bits: all_or_any(part(bits) for part in parts)
        case (
            ast.BinOp(left=first, op=sign, right=second)
            | ast.Compare(left=first, ops=[sign], comparators=[second])
        ) if type(sign) in _OPERATORS:
            apply = _OPERATORS[type(sign)]
            left, right = (_compiled(part, named, place, truth=False) for part in (first, second))
            is_truth = isinstance(node, ast.Compare)
            value = lambda bits: apply(left(bits), right(bits))  # noqa: E731
        case ast.Name(id=name):
            is_truth, value = False, lambda bits: bits[named[name]]
        case ast.Constant(value=float(number)):
            is_truth, value = False, lambda bits: number
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float(number))):
            is_truth, value = False, lambda bits: -number
        case _:
            problem = (
                "join comparisons by &" if isinstance(node, ast.Compare) else "unexpected part"
            )
            raise FormulaError(f"{problem} at character {place(node.col_offset)}")
    if is_truth != truth:  # so that neither (1;%a%) & (2;%a%) nor 1 + (a < b) is a formula
        expected, found = ("a comparison", "a number") if truth else ("a number", "a comparison")
        problem = f"expected {expected}, not {found},"
        raise FormulaError(f"{problem} at character {place(node.col_offset)}")
    return value
