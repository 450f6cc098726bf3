"""The columns of every config (section 1 of docs/specification.md), and their parsers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from .agreement import agreement, verbs
from .diagnostics import cprag102, neg136, role88
from .lines import Row

if TYPE_CHECKING:
    import datasets

STRINGS = "list of string"

CORE = {
    "id": "string", "item": "string", "condition": "string", "context": "string",
    "right_context": "string", "target": "string", "good": "bool", "contrast": "string",
    "expected": STRINGS,
}  # fmt: skip
"""Core columns: the same in every config but `verbs`, so that one metric is enough for all."""

COLUMNS: dict[str, dict[str, str]] = {
    "cprag102": CORE
    | dict.fromkeys(("sentence_1", "sentence_2", "constraint", "explanation"), "string"),
    "role88": CORE
    | dict.fromkeys(("expected_cloze", "target_cloze", "target_cloze_strict"), "float64")
    | {"expected_responses": STRINGS, "object": "string", "subject": "string"},
    "neg136": CORE | {"subset": "string", "polarity": "string", "natural": "bool"},
    "agreement": CORE | {"source": "string", "template": "string", "number": "string"},
    "verbs": {"singular": "string", "plural": "string"},
}
"""Config -> column -> type."""

PARSERS: dict[str, Callable[..., Iterator[Row]]] = {
    "cprag102": cprag102,
    "role88": role88,
    "neg136": neg136,
    "agreement": agreement,
    "verbs": verbs,
}
"""Config -> parser; its arguments are the config's source files, in `sources.json`'s order."""

DESCRIPTIONS = {
    "cprag102": "Commonsense and pragmatic inference: two-sentence contexts with three completions",
    "role88": "Event knowledge and semantic roles: contexts and their role reversals",
    "neg136": "Negation and category membership: affirmed and negated statements",
    "agreement": "Subject-verb agreement: minimal pairs that differ in one verb",
    "verbs": "Singular and plural present-tense forms of verbs, for EW and MW on agreement",
}
"""Config -> one line about it."""


def features(config: str) -> datasets.Features:
    """The exact `datasets.Features` of a config."""
    from datasets import Features, List, Value

    return Features(
        {
            name: List(Value("string")) if kind == STRINGS else Value(kind)
            for name, kind in COLUMNS[config].items()
        }
    )
