"""Break-downs: which levels each row or contrast belongs to (SPEC 4 and 8).

The diagnostics of the project have the break-downs that the papers report, made of their own
columns. Any other task has one for each column of a few levels, `condition` included. The name of
the task decides which it is; `lmdiag.stimuli` has checked that a diagnostic has its columns.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from lmdiag.measures.scores import Columns, Labels, floats

Levels = Mapping[str, Labels]
"""Break-down -> level of each row."""

CORE = {
    "id", "item", "condition", "context", "right_context", "target", "good", "contrast", "expected",
}  # fmt: skip

MOST_LEVELS = 12
"""A further column with more levels than this is taken for text, not for a factor."""

CONSTRUCTIONS = {
    "simple_agrmt_all": "simple",
    "sent_comp_all": "sentential_complement",
    "vp_coord_all": "vp_coordination",
    "long_vp_coord_all": "vp_coordination",
    "prep_anim_all": "across_prepositional_phrase",
    "prep_inanim_all": "across_prepositional_phrase",
    "subj_rel_all": "across_subject_relative",
    "obj_rel_across_anim_all": "across_object_relative",
    "obj_rel_across_inanim_all": "across_object_relative",
    "obj_rel_no_comp_across_anim_all": "across_object_relative_no_that",
    "obj_rel_no_comp_across_inanim_all": "across_object_relative_no_that",
    "obj_rel_within_anim_all": "in_object_relative",
    "obj_rel_within_inanim_all": "in_object_relative",
    "obj_rel_no_comp_within_anim_all": "in_object_relative_no_that",
    "obj_rel_no_comp_within_inanim_all": "in_object_relative_no_that",
}
"""Template -> row of the table of Newman et al. (2021); their four BLiMP templates are one row."""


def construction(template: str, source: str | None = None) -> str:
    """Returns the construction of an agreement template; a template of one's own is its own."""
    return "blimp" if source == "blimp" else CONSTRUCTIONS.get(template, template)


ORDER = {
    level: place for place, level in enumerate([*dict.fromkeys(CONSTRUCTIONS.values()), "blimp"])
}
"""Levels that have an order of their own: constructions as in the paper's table."""


def in_order(levels: Iterable[str]) -> list[str]:
    """Returns levels in the order that readers expect: numbers by size, the rest as they came.

    >>> in_order(["10", "9"]), in_order(["low", "high"])
    (['9', '10'], ['low', 'high'])
    """
    there = list(levels)
    if all(re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", level) for level in there):
        return sorted(there, key=float)
    return sorted(there, key=lambda level: ORDER.get(level, len(ORDER)))


def row_levels(task: str, rows: Columns) -> dict[str, Labels]:
    """Returns break-down -> level of each row."""
    if task not in DIAGNOSTICS:
        return factors(rows, CORE - {"condition"})
    own, levels = DIAGNOSTICS[task]
    return levels(rows) | factors(rows, CORE | own)


def factors(rows: Columns, known: set[str]) -> dict[str, Labels]:
    """Returns the break-downs by columns of a few levels, but for the known columns."""
    found = {name: text(rows[name]) for name in rows if name not in known}
    return {name: labels for name, labels in found.items() if is_factor(labels)}


def cprag102(rows: Columns) -> dict[str, Labels]:
    """Returns the constraint of the context."""
    return {"constraint": text(rows["constraint"])}


def neg136(rows: Columns) -> dict[str, Labels]:
    """Returns subset and naturalness, each alone and with the polarity of the sentence."""
    polarity = text(rows["polarity"])
    levels = {"subset": text(rows["subset"]), "natural": naturalness(rows["natural"])}
    finer = {f"{name}/polarity": joined(labels, polarity) for name, labels in levels.items()}
    return levels | finer


def agreement(rows: Columns) -> dict[str, Labels]:
    """Returns construction, template and source."""
    pairs = zip(rows["template"], rows["source"], strict=True)
    return {
        "construction": [construction(*pair) for pair in pairs],
        "template": text(rows["template"]),
        "source": text(rows["source"]),
    }


DIAGNOSTICS: Mapping[str, tuple[set[str], Callable[[Columns], dict[str, Labels]]]] = {
    "cprag102": ({"sentence_1", "sentence_2", "constraint", "explanation"}, cprag102),
    "role88": (
        {
            "expected_cloze", "target_cloze", "target_cloze_strict", "expected_responses",
            "object", "subject",
        },
        lambda rows: {},
    ),
    "neg136": ({"subset", "polarity", "natural"}, neg136),
    "agreement": ({"source", "template", "number"}, agreement),
}  # fmt: skip
"""Diagnostic -> its own columns, and the break-downs that are made of them."""


def naturalness(column: Sequence[object]) -> Labels:
    """Returns the levels of NEG-136-NAT as the paper names them; other columns keep their own."""
    names = {True: "natural", False: "less_natural", None: None}
    if not set(map(type, column)) <= {bool, type(None)}:
        return text(column)
    return [names[value] for value in column]  # type: ignore[index]


def is_factor(labels: Labels) -> bool:
    """Returns whether a column has a few levels, and at least two."""
    return 2 <= len(set(labels) - {None}) <= MOST_LEVELS


def text(column: Sequence[object]) -> Labels:
    """Returns a column of words, truth values or numbers as levels; no other column has any.

    An empty text is a missing level, as a field of a csv file may be.
    """
    values = set(map(type, column)) - {type(None)}
    if not values <= {str, bool, int, float}:
        return [None] * len(column)
    missing = [value is None or value == "" or value != value for value in column]
    return [None if no else level(value) for value, no in zip(column, missing, strict=True)]


def level(value: object) -> str:
    """Returns a value as the name of a level, as it would stand in a csv file."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def joined(first: Labels, second: Labels) -> Labels:
    """Returns the levels of a finer break-down; a row without a level in either has none."""
    pairs = zip(first, second, strict=True)
    return [None if None in pair else "/".join(pair) for pair in pairs]  # type: ignore[arg-type]


def quartiles(values: Sequence[float | None]) -> Labels:
    """Returns the quartile of each value, "1" to "4".

    The bounds are the 25th, 50th and 75th percentile (linear interpolation) of all values that are
    there, and the bins are closed on the right, as in table 8 of Ettinger (2020).
    """
    numbers = floats(values)
    there = ~np.isnan(numbers)
    if not there.any():
        return [None] * len(numbers)
    bounds = np.percentile(numbers[there], [25, 50, 75])
    bins = np.searchsorted(bounds, numbers, side="left") + 1
    return [str(number) if known else None for number, known in zip(bins, there, strict=True)]


def contrast_levels(
    levels: Levels, group: NDArray[np.intp], good: NDArray[np.intp], n: int
) -> dict[str, Labels]:
    """Returns break-down -> level of each of n contrasts: the one that all its rows share.

    Args:
        levels: break-down -> level of each row.
        group: position of each row's contrast.
        good: position of each contrast's good row, -1 where it has none. It alone decides the level
            in `condition`, which differs between the rows of a contrast by its nature.
        n: number of contrasts.
    """
    of_contrasts: dict[str, Labels] = {}
    for name, labels in levels.items():
        if name == "condition":
            of_contrasts[name] = [None if row < 0 else labels[row] for row in good]
        else:
            of_contrasts[name] = shared(labels, group, n)
    return {name: labels for name, labels in of_contrasts.items() if any(labels)}


def shared(labels: Labels, group: NDArray[np.intp], n: int) -> Labels:
    """Returns the label that all rows of a group have in common; None where they differ."""
    common: list[str | None] = [None] * n
    mixed = set()
    seen = [False] * n
    for place, label in zip(group.tolist(), labels, strict=True):
        if not seen[place]:
            seen[place], common[place] = True, label
        elif common[place] != label:
            mixed.add(place)
    for place in mixed:
        common[place] = None
    return common
