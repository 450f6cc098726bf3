"""The columns of a table of an unknown layout by what their values are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from lmdiag.stimuli.forms import SENTENCE_ENDS
from lmdiag.stimuli.kinds import ValueKind, values_of
from lmdiag.stimuli.names import named
from lmdiag.stimuli.table import GAP
from lmdiag.text import folded
from lmdiag.types import TableOptions

has_letters = re.compile(r"[^\W\d]").search
"""Finds a letter."""

_SHORT = 3  # words of a short text, on average

_GAP = re.compile(GAP, re.IGNORECASE).search
_GAPS = re.compile(GAP, re.IGNORECASE).findall


class TableLayout:
    """The columns of a table by what their values are.

    Args:
        columns: name -> values, one per row.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.values = {name: values_of(x) for name, x in columns.items() if name}
        self.n_rows = max(map(len, columns.values()), default=0)
        self.item = "item" if "item" in self.values else self._found_item()
        items = self.values[self.item].codes if self.item else None
        self.kinds = {name: values.kind(items) for name, values in self.values.items()}

    def _found_item(self) -> str:
        """The column that is named as items, whose values are not texts."""
        names = named("item", self.values)
        names += [name for name in self.values if folded(name).startswith("item")]
        for name in names:
            values = self.values[name]
            repeats = 1 < len(values.levels) < values.n_filled
            others = (self.values[other] for other in names if other != name)
            is_factor = any(map(values.differs_within, others))
            if repeats and not values.are_texts and not is_factor:
                return name
        return next((name for name in names if folded(name).startswith("item")), "")

    def of_kind(self, *kinds: ValueKind) -> list[str]:
        """Returns the columns of some kinds that have values in most rows."""
        return [
            name
            for name, kind in self.kinds.items()
            if kind in kinds and 2 * self.values[name].n_filled > self.n_rows
        ]

    def texts(self, name: str, n: int | None = None) -> list[str]:
        """Returns the text of each row, or of the first ones; "" where it is missing."""
        values = self.values[name]
        return [values.levels[code] if code >= 0 else "" for code in values.codes[:n].tolist()]

    def is_short(self, name: str) -> bool:
        """Returns whether values have up to three words on average."""
        return 0 < self.values[name].mean_words <= _SHORT

    def are_fragments(self, name: str) -> bool:
        """Returns whether nine in ten values do not end as sentences do."""
        ends = [_is_ended(level) for level in self.values[name].sample]
        return 10 * sum(ends) <= len(ends)

    def are_pieces(self, name: str) -> bool:
        """Returns whether rows have the parts of sentences, of which only the last ends them."""
        texts = [text for text in self.texts(name) if text]
        n_ended = sum(map(_is_ended, texts))
        n_capital = sum(text[:1].isupper() for text in texts)
        return 0 < 2 * n_ended <= len(texts) and 2 * n_capital <= len(texts)

    def has_gaps(self, name: str) -> bool:
        """Returns whether a value has the marker of a missing word."""
        return any(_GAP(text) for text in self.values[name].levels)

    def has_one_gap(self, name: str) -> bool:
        """Returns whether each value has the marker of a missing word once."""
        levels = self.values[name].levels
        return self.has_gaps(name) and all(len(_GAPS(text)) == 1 for text in levels)

    def numbered_words(self) -> list[list[str]]:
        """Returns three or more columns with letters whose names differ in their numbers alone."""
        stems: dict[str, list[str]] = {}
        for name, values in self.values.items():
            is_text = self.kinds[name] in ("word", "text", "label") and any(
                map(has_letters, values.levels)
            )
            if re.search(r"\d", name) and is_text:
                stems.setdefault(re.sub(r"\d+", "", name), []).append(name)
        return [names for names in stems.values() if len(names) > 2]


def _is_ended(text: str) -> bool:
    """Whether a text ends as sentences do, and not in an ellipsis."""
    end = text.rstrip()
    return end[-1:] in SENTENCE_ENDS and not end.endswith(("...", "…"))


def named_options(columns: Mapping[str, str]) -> tuple[str, ...]:
    """Returns known name -> column as NAME=COLUMN, without columns of the known name."""
    return tuple(f"{name}={column}" for name, column in columns.items() if name != column)


def as_typed(options: TableOptions) -> str:
    """Returns options as they are typed, those that make rows first."""
    fields = ("columns", "wide", "split", "critical")
    given = options.stored()
    values = {name: given[name] for name in (*fields, *given) if name in given}
    words: list[str] = []
    for name, value in values.items():
        texts = [] if value is True else [value] if isinstance(value, str) else value
        words += [f"--{name.replace('_', '-')}", *texts]
    return shlex.join(words)
