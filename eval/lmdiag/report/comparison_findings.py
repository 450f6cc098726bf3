"""What the adjusted tests of a comparison say: sentences."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from lmdiag.studies.comparison import ALPHA
from lmdiag.text import MOST_NAMED, capital, listing, visible

_PLACE = re.compile(r"(layer|step) \d+")
"""Matches what layers and checkpoints are called; other names are those of models."""


class Difference(NamedTuple):
    """A figure of one model less the same figure of another one.

    Attributes:
        label: of the figure, with its diagnostic where there are several.
        text: the difference as tables show it, with its sign and unit.
        value: of the difference.
        p: adjusted over all figures; NaN where the models do not differ in any item.
    """

    label: str
    text: str
    value: float
    p: float


def comparison_findings(new: str, base: str, differences: Iterable[Difference]) -> list[str]:
    """Returns in which figures a model is higher or lower than another one, by adjusted p."""
    tested = [*differences]
    if not tested:
        return []
    subject = capital(new) if _PLACE.fullmatch(new) else visible(new)  # names stay as they are
    names = f"{visible(new)} and {visible(base)}"
    n = len(tested)
    figures = f"the {n} compared figures" if n > 1 else tested[0].label
    if all(math.isnan(x.p) for x in tested):
        return [f"{subject} and {visible(base)} do not differ in any item of {figures}."]
    clear = [x for x in tested if x.p < ALPHA]
    if not clear:
        any_of = "any of " if n > 1 else ""
        return [f"No difference between {names} can be told from chance in {any_of}{figures}."]
    parts = []
    for word, group in (
        ("higher", [x for x in clear if x.value > 0]),
        ("lower", [x for x in clear if x.value < 0]),
    ):
        if group:
            group.sort(key=lambda x: x.p)
            named = [f"{x.label} ({x.text})" for x in group[:MOST_NAMED]]
            if len(group) > MOST_NAMED:
                named.append(f"{len(group) - MOST_NAMED} more")
            parts.append(f"{word} than {visible(base)} in {listing(named)}")
    sentences = [f"{subject} is {listing(parts)} (adjusted p < .05)."]
    if rest := n - len(clear):
        others = "other figure" if rest == 1 else f"other {rest} figures"
        sentences.append(f"The difference in the {others} cannot be told from chance.")
    return sentences


def comparisons_findings(base: str, pairs: Mapping[str, Sequence[Difference]]) -> list[str]:
    """Returns, for each of some models, in how many figures it is higher or lower than the base.

    Of a single one, the figures are named: see `comparison_findings`.
    """
    if len(pairs) == 1:
        return [
            sentence
            for new, differences in pairs.items()
            for sentence in comparison_findings(new, base, differences)
        ]
    counts = []
    for new, differences in pairs.items():
        clear = [x.value for x in differences if x.p < ALPHA]
        higher = sum(value > 0 for value in clear)
        lower = len(clear) - higher
        sides = [f"{word} in {n}" for word, n in (("higher", higher), ("lower", lower)) if n]
        counts.append(f"{visible(new)} is {listing(sides or ['different in none'])}")
    n = max((len(differences) for differences in pairs.values()), default=0)
    if not n:
        return []
    figures = f"the {n} compared figures" if n > 1 else "the compared figure"
    return [f"Against {visible(base)}, of {figures} {listing(counts)} (adjusted p < .05)."]
