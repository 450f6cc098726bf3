"""The columns of a table of an unknown layout by what their values are."""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import Any

from lmdiag.stimuli.values.codes import is_determined_by
from lmdiag.stimuli.values.items import item_column, participant_columns
from lmdiag.stimuli.values.kinds import (
    FEW_ROWS,
    MOST_LABELS,
    RELATED,
    ValueKind,
    median_overlaps,
    values_of,
)
from lmdiag.stimuli.values.marks import is_ended
from lmdiag.stimuli.values.names import named_columns
from lmdiag.types import Options, typed_words

_LONG = 5  # words of a text that does not name an item


class TableLayout:
    """The columns of a table by what their values are.

    Args:
        columns: name -> values, one per row.

    Attributes:
        values: column -> its distinct values.
        n_rows: number of rows.
        participants: the columns that name participants.
        item: the column that names the items; "" for none.
        kinds: column -> what its values are, e.g. "text" or "number".
        reader_attributes: columns with one value for each participant, such as an age.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        # without columns that have no name, such as the row numbers that pandas writes
        self.values = {name: values_of(column) for name, column in columns.items() if name}
        self.n_rows = max(map(len, columns.values()), default=0)
        self.participants = participant_columns(self.values)
        self.item = item_column(self.values)
        items = self.values[self.item].codes if self.item else None
        self.kinds = {name: values.kind(items) for name, values in self.values.items()}
        self.reader_attributes = self._reader_attributes()

    def _reader_attributes(self) -> set[str]:
        """Returns the columns with one value in all rows of a reader, that of readers included.

        The readers are those of the first column of participants that have two rows or more on
        average. Without such a column there are none.
        """
        for name in self.participants:
            readers = self.values[name]
            if 2 * len(readers.levels) <= readers.n_filled:
                return {
                    other
                    for other, values in self.values.items()
                    if is_determined_by(values.codes, [readers.codes])
                }
        return set()

    def of_kind(self, *kinds: ValueKind) -> list[str]:
        """Returns the columns of some kinds that have values in most rows, in their order.

        `reader_attributes` are left out.
        """
        return [
            name
            for name, kind in self.kinds.items()
            if kind in kinds
            and 2 * self.values[name].n_filled > self.n_rows
            and name not in self.reader_attributes
        ]

    def texts(self, name: str, n: int | None = None) -> list[str]:
        """Returns the value of a column in each row, or in the first `n` rows; "" for none."""
        values = self.values[name]
        return [values.levels[code] if code >= 0 else "" for code in values.codes[:n].tolist()]

    def are_pieces(self, name: str) -> bool:
        """Returns whether the texts of a column are parts of sentences, with a part in each row.

        Some parts, but not more than half, end as sentences do, and, in scripts with capitals, not
        more than half begin with one. The rows of an item have few words in common, unlike
        the sentences of its conditions; without items, a column numbers the parts.
        """
        values = self.values[name]
        texts = self.texts(name)
        n_ended = sum(is_ended(text) for text in texts if text)
        if not 0 < 2 * n_ended <= values.n_filled:
            return False
        if values.share_capital is not None and values.share_capital > 0.5:
            return False
        if not (self.item and self.values[self.item].are_groups):
            return bool(named_columns("position", self.of_kind("number")))
        within, across = median_overlaps(texts, self.values[self.item].codes)
        are_related = within >= RELATED and within > across
        return not are_related

    def name_items(self, name: str) -> bool:
        """Returns whether the values of a column name the items, as "banker" for item 7.

        They are short texts, each in several rows, and each is the only one of its item.
        """
        values = self.values[name]
        if not self.item or values.mean_words >= _LONG or not values.are_groups:
            return False
        items = self.values[self.item].codes
        is_one_per_item = is_determined_by(values.codes, [items])
        return is_one_per_item and is_determined_by(items, [values.codes])

    def numbered_words(self) -> list[list[str]]:
        """Returns groups of three or more columns of texts with names such as word1, word2, word3.

        The names of a group differ in their numbers alone. A group of nothing but columns of
        answers, which repeat in many rows, does not count.
        """
        columns_by_stem: dict[str, list[str]] = {}
        for name, values in self.values.items():
            is_text = self.kinds[name] in ("word", "text", "label") and values.have_letters
            if re.search(r"\d", name) and is_text:
                stem = re.sub(r"\d+", "", name)
                columns_by_stem.setdefault(stem, []).append(name)
        return [
            names
            for names in columns_by_stem.values()
            if len(names) > 2 and not all(self.are_answers(name) for name in names)
        ]

    def are_answers(self, name: str) -> bool:
        """Returns whether a few values repeat in many rows, as answers to a question.

        They are labels, or up to 12 values in more than 12 rows, each in four rows on average.
        """
        values = self.values[name]
        n = len(values.levels)
        is_repeated = values.n_filled > FEW_ROWS and 4 * n <= values.n_filled
        return self.kinds[name] == "label" or (n <= 2 * MOST_LABELS and is_repeated)


def named_options(columns: Mapping[str, str]) -> tuple[str, ...]:
    """Returns what `--columns` takes: NAME=COLUMN for each column that is not called NAME.

    >>> named_options({"context": "stem", "target": "target"})
    ('context=stem',)
    """
    return tuple(f"{name}={column}" for name, column in columns.items() if name != column)


def as_typed(options: Options) -> str:
    """Returns options as they are typed in a command, e.g. "--columns context=stem --gap XX".

    Those that decide which rows there are come first, the others in the order of the fields.
    """
    first_fields = ("columns", "wide", "split", "critical")
    given = options.stored()
    fields = [name for name in first_fields if name in given]
    fields += [name for name in given if name not in first_fields]
    return shlex.join(typed_words({name: given[name] for name in fields}))
