"""Names as readers see them: of diagnostics, settings, measures and levels."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

Measures = Mapping[str, Mapping[str, Any]]
"""The `measures` of one setting in `results.json` (SPEC 8)."""

TITLES = {
    "cprag102": "CPRAG-102: commonsense and pragmatic inference",
    "role88": "ROLE-88: semantic roles and event knowledge",
    "neg136": "NEG-136: category membership and negation",
    "agreement": "Agreement: subject and verb",
}

SETTINGS = {
    "none": "Orig",
    "shuf": "Shuf",
    "trunc": "Trunc",
    "shuf_trunc": "Shuf + Trunc",
    "obj": "-Obj",
    "sub": "-Sub",
    "both": "-Both",
}
"""Setting -> its heading in tables 4 and 7."""

QUARTILES = {"1": "≤ .17", "2": "≤ .23", "3": "≤ .33", "4": "≤ .77"}
"""Quartile of `expected_cloze` -> its heading in table 8; true of the 88 published rows only."""

LABELS = {
    "surprisal": "mean surprisal, bits",
    "rank": "median rank",
    "spearman": "Spearman, log p and cloze",
    "pearson": "Pearson, log p and cloze",
    "ew": "EW",
    "mw": "MW",
    "tse": "TSE",
}
"""Measures that readers know by another spelling; all others go by their name in the results."""

SOURCES = {"marvin_linzen": "Marvin & Linzen", "blimp": "BLiMP"}

CONSTRUCTIONS = {
    "simple": "Simple",
    "sentential_complement": "In a sentential complement",
    "vp_coordination": "VP coordination",
    "across_prepositional_phrase": "Across a prepositional phrase",
    "across_subject_relative": "Across a subject relative",
    "across_object_relative": "Across an object relative",
    "across_object_relative_no_that": "Across an object relative, no that",
    "in_object_relative": "In an object relative",
    "in_object_relative_no_that": "In an object relative, no that",
    "blimp": "BLiMP",
}
"""Construction -> row of the agreement table, in its order; any others follow."""


def label(measure: str) -> str:
    """Returns a measure's name as readers see it everywhere: `accuracy@5`, but `MW, top 0.1`.

    >>> label("accuracy@5"), label("sensitivity@0.01"), label("mw@top=0.1")
    ('accuracy@5', 'sensitivity@0.01', 'MW, top 0.1')
    """
    name, _, cutoff = measure.partition("@")
    if "=" in cutoff:
        return f"{LABELS.get(name, name)}, {cutoff.replace('=', ' ')}"
    return LABELS.get(measure, measure)


def level_label(by: str, level: str) -> str:
    """Returns a level of a break-down as words."""
    if by == "cloze_quartile":
        return f"cloze quartile {level}"
    if by == "construction":
        return CONSTRUCTIONS.get(level, level)
    if by in ("template", "source"):
        return SOURCES.get(level, level)
    words = level.replace("less_natural", "less natural").replace("/", ", ").replace("_", " ")
    if re.fullmatch(r"[-\d.]+|true|false|yes|no", words, re.IGNORECASE):
        return f"{by} {words}"  # a bare number says nothing without the column
    return f"{words} constraint" if by == "constraint" else words


def quartile_headings(measures: Measures) -> dict[str, str]:
    """Returns level -> heading of table 8; bounds only where the bins are the published ones."""
    for measure in measures.values():
        bins = measure.get("by", {}).get("cloze_quartile", {})
        if [bins[level]["n"] for level in sorted(bins)] == [25, 23, 23, 17]:
            return QUARTILES
    return {"1": "lowest quartile", "2": "second", "3": "third", "4": "highest"}


def short_commit(commit: str) -> str:
    """Returns the beginning of a commit, or of a checksum that stands for one."""
    return commit.removeprefix("sha256:")[:12]
