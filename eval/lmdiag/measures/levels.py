"""Break-downs: which levels each row or contrast belongs to (SPEC 4 and 8).

They follow from the columns of the rows. The further columns of the four data sets have the
break-downs that the papers report; in a diagnostic of one's own, every further column with a few
levels is one, and so is `condition`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from lmdiag.measures.scores import Columns, Labels, floats

CORE = {
    "id", "item", "condition", "context", "right_context", "target", "good", "contrast", "expected",
}  # fmt: skip
OWN = {
    "sentence_1", "sentence_2", "constraint", "explanation",
    "expected_cloze", "target_cloze", "target_cloze_strict", "expected_responses",
    "object", "subject", "subset", "polarity", "natural", "source", "template", "number",
}  # fmt: skip
"""Further columns of the four data sets: what is broken down by them is said below, not guessed."""

MOST_LEVELS = 12
"""A further column of one's own with more levels than this is taken for text, not for a factor."""

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
    level: place
    for place, level in enumerate(
        ["1", "2", "3", "4", *dict.fromkeys(CONSTRUCTIONS.values()), "blimp"]
    )
}
"""Levels that have an order of their own: quartiles, and constructions as in the paper's table."""


def in_order(levels: Iterable[str]) -> list[str]:
    """Returns levels in the order that readers expect: their own, else as they came."""
    return sorted(levels, key=lambda level: ORDER.get(level, len(ORDER)))


def row_levels(rows: Columns) -> dict[str, Labels]:
    """Returns break-down -> level of each row."""
    levels = {name: text(rows[name]) for name in ("constraint", "subset") if name in rows}
    if "natural" in rows:
        levels["natural"] = naturalness(rows["natural"])
    for name in ("subset", "natural"):
        if name in rows and "polarity" in rows:
            levels[f"{name}/polarity"] = joined(levels[name], text(rows["polarity"]))
    if {"template", "source"} <= rows.keys():
        pairs = zip(rows["template"], rows["source"], strict=True)
        levels["construction"] = [construction(*pair) for pair in pairs]
        levels |= {name: text(rows[name]) for name in ("template", "source")}
    return levels | own_levels(rows)


def naturalness(column: Sequence[object]) -> Labels:
    """Returns the levels of NEG-136-NAT as the paper names them; other columns keep their own."""
    names = {True: "natural", False: "less_natural", None: None}
    if not set(map(type, column)) <= {bool, type(None)}:
        return text(column)
    return [names[value] for value in column]  # type: ignore[index]


def own_levels(rows: Columns) -> dict[str, Labels]:
    """Returns the break-downs of a diagnostic of one's own."""
    further = {name: text(rows[name]) for name in rows if name not in CORE | OWN}
    if not OWN & rows.keys() and "condition" in rows:
        further["condition"] = text(rows["condition"])
    return {name: labels for name, labels in further.items() if is_factor(labels)}


def is_factor(labels: Labels) -> bool:
    """Returns whether a column has a few levels, and at least two."""
    return 2 <= len(set(labels) - {None}) <= MOST_LEVELS


def text(column: Sequence[object]) -> Labels:
    """Returns a column of words or truth values as levels; no other column has any."""
    values = set(map(type, column)) - {type(None)}
    if not values <= {str, bool}:
        return [None] * len(column)
    return [str(value).lower() if isinstance(value, bool) else value for value in column]  # type: ignore[misc]


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
    rows: Columns, group: NDArray[np.intp], good: NDArray[np.intp], n: int
) -> dict[str, Labels]:
    """Returns break-down -> level of each of n contrasts: the one that all its rows share.

    Args:
        rows: the columns.
        group: position of each row's contrast.
        good: position of each contrast's good row, -1 where it has none. It alone decides the level
            in `condition`, which differs between the rows of a contrast by its nature.
        n: number of contrasts.
    """
    levels: dict[str, Labels] = {}
    for name, labels in row_levels(rows).items():
        if name == "condition":
            levels[name] = [None if row < 0 else labels[row] for row in good]
        else:
            levels[name] = shared(labels, group, n)
    return {name: labels for name, labels in levels.items() if any(labels)}


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
