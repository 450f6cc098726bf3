"""The columns of a table of an unknown layout by what their values are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from lmdiag.stimuli.values.codes import is_known_from
from lmdiag.stimuli.values.items import item_column, participants
from lmdiag.stimuli.values.kinds import (
    FEW_ROWS,
    MOST_LABELS,
    RELATED,
    ValueKind,
    shared_words,
    values_of,
)
from lmdiag.stimuli.values.marks import is_ended
from lmdiag.stimuli.values.names import named
from lmdiag.types import Options, typed_words

_LONG = 5  # words of a text that does not name an item


class TableLayout:
    """The columns of a table by what their values are.

    Args:
        columns: name -> values, one per row.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.values = {name: values_of(x) for name, x in columns.items() if name}
        self.n_rows = max(map(len, columns.values()), default=0)
        self.participants = participants(self.values)
        self.item = item_column(self.values)
        items = self.values[self.item].codes if self.item else None
        self.kinds = {name: values.kind(items) for name, values in self.values.items()}
        self.of_readers = self._found_of_readers()

    def _found_of_readers(self) -> set[str]:
        """The columns that are about readers: each has one value in all rows of a reader."""
        readers = [self.values[name] for name in self.participants]
        readers = [x for x in readers if 2 * len(x.levels) <= x.n_filled]
        if not readers:
            return set()
        codes = [readers[0].codes]
        return {name for name, x in self.values.items() if is_known_from(x.codes, codes)}

    def of_kind(self, *kinds: ValueKind) -> list[str]:
        """Returns the columns of some kinds that have values in most rows, but those of readers."""
        return [
            name
            for name, kind in self.kinds.items()
            if kind in kinds
            and 2 * self.values[name].n_filled > self.n_rows
            and name not in self.of_readers
        ]

    def texts(self, name: str, n: int | None = None) -> list[str]:
        """Returns the text of each row, or of the first ones; "" where it is missing."""
        values = self.values[name]
        return [values.levels[code] if code >= 0 else "" for code in values.codes[:n].tolist()]

    def are_pieces(self, name: str) -> bool:
        """Returns whether rows have the parts of sentences, of which only the last ends them.

        Several rows are of one item, or numbered as regions are, and have no words in common, as
        the sentences of conditions have. In scripts with capitals most begin with a small letter.
        """
        values = self.values[name]
        texts = self.texts(name)
        n_ended = sum(map(is_ended, filter(None, texts)))
        is_capital = values.share_capital is not None and values.share_capital > 0.5
        if is_capital or not 0 < 2 * n_ended <= values.n_filled:
            return False
        if not (self.item and self.values[self.item].are_groups):
            return bool(named("position", self.of_kind("number")))
        within, across = shared_words(texts, self.values[self.item].codes)
        return not (within >= RELATED and within > across)

    def name_items(self, name: str) -> bool:
        """Returns whether short texts name the items: each item has one, in several rows."""
        values = self.values[name]
        if not self.item or values.mean_words >= _LONG or not values.are_groups:
            return False
        items = self.values[self.item].codes
        return is_known_from(values.codes, [items]) and is_known_from(items, [values.codes])

    def numbered_words(self) -> list[list[str]]:
        """Returns three or more columns of texts whose names differ in their numbers alone.

        Columns of labels that repeat in all of them do not count.
        """
        stems: dict[str, list[str]] = {}
        for name, values in self.values.items():
            is_text = self.kinds[name] in ("word", "text", "label") and values.have_letters
            if re.search(r"\d", name) and is_text:
                stems.setdefault(re.sub(r"\d+", "", name), []).append(name)
        families = [names for names in stems.values() if len(names) > 2]
        return [names for names in families if not all(map(self.are_answers, names))]

    def are_answers(self, name: str) -> bool:
        """Returns whether a few values repeat in many rows, as answers to a question."""
        values = self.values[name]
        n = len(values.levels)
        is_repeated = values.n_filled > FEW_ROWS and 4 * n <= values.n_filled
        return self.kinds[name] == "label" or (n <= 2 * MOST_LABELS and is_repeated)


def named_options(columns: Mapping[str, str]) -> tuple[str, ...]:
    """Returns known name -> column as NAME=COLUMN, without columns of the known name."""
    return tuple(f"{name}={column}" for name, column in columns.items() if name != column)


def as_typed(options: Options) -> str:
    """Returns options as they are typed, those that make rows first."""
    fields = ("columns", "wide", "split", "critical")
    given = options.stored()
    values = {name: given[name] for name in (*fields, *given) if name in given}
    return shlex.join(typed_words(values))
