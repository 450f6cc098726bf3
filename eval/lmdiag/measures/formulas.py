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
        """Returns the region as formulas write it, e.g. `(6;%match%)`, `(*;%match%)`."""
        number = "*" if self.number is None else self.number
        return f"({number};%{self.condition}%)"


Surprisals = Mapping[RegionOf, float]
"""Region -> its surprisal in bits."""


@dataclass(frozen=True, eq=False)
class Formula:
    """A prediction on the surprisals of an item; `regions` are those that it reads, each once."""

    text: str
    regions: tuple[RegionOf, ...]
    _value: Callable[[Surprisals], Any]

    def holds(self, surprisals: Surprisals) -> bool | None:
        """Returns whether the prediction is true of an item; None where it is undefined.

        Args:
            surprisals: bits of each region that the formula reads; it is undefined if one of them
                is not finite.
        """
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
    python_tokens: list[str] = []
    token_starts: list[int] = []  # where each token begins in `text`
    end = 0
    text_end = len(text.rstrip())
    while end < text_end:
        if len(python_tokens) == _LONGEST:
            raise FormulaError(f"more than {_LONGEST} parts at character {end + 1}")
        match = _TOKEN.match(text, end)
        if match is None:
            start = len(text) - len(text[end:].lstrip())
            raise FormulaError(f"unexpected {text[start]!r} at character {start + 1}")
        start = match.start(str(match.lastgroup))  # without the white space before the token
        end = match.end()
        token = match[0].strip()
        # the token as Python writes it: a variable, a number with a decimal point, or an operator
        if match["region"]:
            number = None if match["index"] == "*" else int(match["index"])
            region = RegionOf(number, match["condition"])
            token = variable_of.setdefault(region, f"r{len(variable_of)}")
        elif match["number"]:
            token = repr(float(token))
            if token == "inf":
                raise FormulaError(f"the number is too large at character {start + 1}")
        python_tokens.append(_PYTHON.get(token, token))
        token_starts.append(start)
    expression = " ".join(python_tokens)

    def character_of(column: int) -> int:
        """Returns the character of `text`, from 1, for a position in the expression, from 0.

        Tokens are divided by single spaces in the expression, so the number of spaces before the
        position is the number of its token.
        """
        token_number = expression[:column].count(" ")  # no token has a space in it
        is_inside = token_number < len(token_starts)
        return (token_starts[token_number] if is_inside else len(text)) + 1

    try:
        tree = ast.parse(expression, mode="eval").body
    except (SyntaxError, MemoryError) as error:
        column = (getattr(error, "offset", None) or 1) - 1
        problem = "expected comparisons such as (6;%a%) < (6;%b%), joined by & and |,"
        raise FormulaError(f"{problem} at character {character_of(column)}") from None
    region_of_variable = {name: region for region, name in variable_of.items()}
    value = _compile(tree, region_of_variable, character_of, is_comparison=True)
    return Formula(text, tuple(variable_of), value)


def _compile(
    node: ast.expr,
    region_of: Mapping[str, RegionOf],
    character_of: Callable[[int], int],
    *,
    is_comparison: bool,
) -> Callable[[Surprisals], Any]:
    """Returns the function that computes a node of the tree from surprisals.

    For example, the node of `r0 < r1` gives a function that compares the bits of two regions.

    Args:
        node: an expression of Python.
        region_of: variable -> region.
        character_of: position in the expression -> character of the formula, for messages.
        is_comparison: whether the node must be a comparison, or comparisons joined by & and |; else
            it must be a number.
    """
    value: Callable[[Surprisals], Any]

    def compile_part(part: ast.expr, *, is_comparison: bool) -> Callable[[Surprisals], Any]:
        return _compile(part, region_of, character_of, is_comparison=is_comparison)

    match node:
        case ast.List(elts=[inside]):  # square brackets
            return compile_part(inside, is_comparison=is_comparison)
        case ast.BoolOp(op=join, values=nodes):
            parts = [compile_part(part, is_comparison=True) for part in nodes]
            all_or_any = all if isinstance(join, ast.And) else any
            gives_truth = True
            value = lambda bits: all_or_any(part(bits) for part in parts)  # noqa: E731
        case (
            ast.BinOp(left=left_node, op=sign, right=right_node)
            | ast.Compare(left=left_node, ops=[sign], comparators=[right_node])
        ) if type(sign) in _OPERATORS:
            operation = _OPERATORS[type(sign)]
            left = compile_part(left_node, is_comparison=False)
            right = compile_part(right_node, is_comparison=False)
            gives_truth = isinstance(node, ast.Compare)
            value = lambda bits: operation(left(bits), right(bits))  # noqa: E731
        case ast.Name(id=name):
            gives_truth = False
            value = lambda bits: bits[region_of[name]]  # noqa: E731
        case ast.Constant(value=float(number)):
            gives_truth = False
            value = lambda bits: number  # noqa: E731
        case ast.UnaryOp(op=ast.USub(), operand=ast.Constant(value=float(number))):
            gives_truth = False
            value = lambda bits: -number  # noqa: E731
        case _:
            is_chain = isinstance(node, ast.Compare)  # a < b < c
            problem = "join comparisons by &" if is_chain else "unexpected part"
            raise FormulaError(f"{problem} at character {character_of(node.col_offset)}")
    # a comparison is true or false, and all else a number: neither (1;%a%) & (2;%a%) nor
    # 1 + (a < b) is a formula
    if gives_truth != is_comparison:
        problem = "expected a number, not a comparison,"
        if is_comparison:
            problem = "expected a comparison, not a number,"
        raise FormulaError(f"{problem} at character {character_of(node.col_offset)}")
    return value
