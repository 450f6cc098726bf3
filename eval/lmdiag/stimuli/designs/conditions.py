"""What each column of a table of items is used for: the conditions of a design, and the others.

A condition has 2 to 6 levels that go with another text of an item, or, in a table of responses,
with another row of it. All is computed on the numbers (codes) of the values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, product
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from lmdiag.diagnostics import CORE, SENTENCES
from lmdiag.diagnostics.base import MOST_LEVELS
from lmdiag.stimuli.values.codes import (
    Codes,
    combined,
    is_known_from,
    n_distinct,
    n_distinct_by,
    presence,
    variance_of_counts,
)
from lmdiag.stimuli.values.items import participants
from lmdiag.stimuli.values.kinds import (
    MOST_LABELS,
    RELATED,
    Distinct,
    frequent_words,
    own_overlap,
    words_of,
)
from lmdiag.stimuli.values.levels import ItemLevels, model_texts
from lmdiag.stimuli.values.misspelt import rare_levels
from lmdiag.stimuli.values.names import (
    TEXT_COLUMNS,
    are_lists,
    is_filler,
    is_named,
    is_outcome,
    names_measures,
)
from lmdiag.text import folded, in_order

if TYPE_CHECKING:
    from pandas import DataFrame

NO_CONDITIONS = {column.name for column in (*CORE, *SENTENCES)} - {"condition", "good"}
NO_CONDITIONS |= {"regions", "formulas", "gap_spaces"}
"""Columns that are conditions only where they are named."""

_MEASURES = {"count": "cloze", "n_tokens": "surprisal"}
"""Numbers that lmdiag writes -> the column beside which they are measures of a row."""

SAME_TEXTS = "not a condition (same texts at several levels)"
"""Why a column of which rows of an item with one text have several levels is none."""

MANY_LABELS = 4 * MOST_LABELS
"""Levels of a column that is looked at as a condition, if there are too many, too."""

# texts of items in which a column may differ without being a list; items that have all levels
_MOST_REPEATED, _MOST_ITEMS = 0.05, 0.5
# items that have several levels of a column which may be a condition with a mistake
_LEAST_VARYING = 0.25
# rows of the rarest level for one of the most frequent level, within an item of responses
_LEAST_BALANCE = 0.5
# variance of the numbers of rows of a level over items or readers, for one of what chance gives
_MOST_VARIANCE = 0.4
# cells of item and level for one row, where cells have several rows
_MOST_CELLS = 0.75
_SAMPLE = 60  # items whose texts are compared


@dataclass(frozen=True)
class Candidate:
    """A column that may be a condition.

    Attributes:
        values: its levels.
        presence: number of rows of each level in each item.
        kept: the numbers of its levels without misspelt ones and those that are set aside.
        aside: the numbers of the latter: levels of items that have no other one, and fillers.
    """

    values: Distinct
    presence: Codes
    kept: Codes
    aside: Codes

    @classmethod
    def of(cls, values: Distinct, items: Codes) -> Candidate:
        """Returns a column as a candidate; `items` has the number of the item of each row."""
        n_levels = len(values.levels)
        n_rows = presence(items, values.codes, n_levels)
        several = n_rows[(n_rows > 0).sum(axis=1) > 1] > 0
        is_inner = several.any(axis=0) if len(several) else np.zeros(n_levels, dtype=bool)
        is_rare = rare_levels(values)
        fillers = np.array([*map(is_filler, values.levels)], dtype=bool)
        if (is_inner & ~is_rare & ~fillers).sum() > 1:
            is_inner &= ~fillers
        return cls(values, n_rows, np.flatnonzero(is_inner & ~is_rare), np.flatnonzero(~is_inner))

    def share_with_all(self) -> float:
        """The share of the items with some level that is kept which have all of them."""
        rows = self.presence[:, self.kept] > 0
        rows = rows[rows.any(axis=1)]
        return float(rows.all(axis=1).mean()) if len(rows) else 0.0

    def share_varying(self) -> float:
        """The share of the items with several levels."""
        return float(((self.presence > 0).sum(axis=1) > 1).mean())

    def is_balanced(self) -> bool:
        """Whether most items with all levels have each about equally often."""
        rows = self.presence[:, self.kept]
        rows = rows[rows.all(axis=1)]
        is_balanced = rows.min(axis=1) >= _LEAST_BALANCE * rows.max(axis=1)
        return bool(is_balanced.mean() >= 0.5)

    def texts(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """The levels of some numbers, in order."""
        return in_order(self.values.levels[number] for number in numbers)


@dataclass(frozen=True)
class Uses:
    """What the columns of a table are used for.

    Attributes:
        rows: the items, columns and texts of the table.
        levels: condition -> its levels, in order, without those that are set aside.
        others: further column -> what it is, in words.
        candidates: columns that may be conditions.
        restarts: columns in each level of which item numbers begin anew.
        dropped: columns that would be conditions, but most items lack some of their levels.
        alike: columns that explain the texts equally well, of which none is taken.
        repeated: condition -> texts of items that have several of its levels, and all texts.
        of_readers: columns whose level is that of the reader.
        reader: the column of readers; "" for none.
        item: the column that names the items in the file; "" where several do.
    """

    rows: ItemLevels
    levels: Mapping[str, tuple[str, ...]]
    others: Mapping[str, str]
    candidates: Mapping[str, Candidate]
    restarts: Sequence[str] = ()
    dropped: Sequence[str] = ()
    alike: Sequence[str] = ()
    repeated: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    of_readers: Sequence[str] = ()
    reader: str = ""
    item: str = "item"

    def set_aside(self, condition: str) -> tuple[str, ...]:
        """Returns the levels of a condition that items of their own have, as fillers."""
        column = self.candidates.get(condition)
        levels = column.texts(column.aside) if column else ()
        return tuple(level for level in levels if level not in self.levels[condition])


def uses_of(
    table: DataFrame,
    conditions: Collection[str] = (),
    response: str = "",
    *,
    item: str = "item",
) -> Uses:
    """Returns what each column of a table with a column item is used for.

    A condition has 2 to 6 levels, and at least half of the items have all of them. A column is none
    if rows of an item with the same text differ in it, in more than 5% of the texts; if it follows
    from other conditions, as the correct answer or a column that names their cells; or if it stands
    for each condition once per item, as the list of a Latin square. In a table without texts it is
    none if it is named as an outcome, if its level is that of the reader, or if its levels are as
    unequal in items and readers as by chance, as those of responses are.

    Args:
        table: columns of plain values, among them those of texts that a model reads, if there are.
        conditions: what the user says they are; () to find them.
        response: the column of the response, which cannot be a condition.
        item: the column that names the items in the file; "" where several do, see
            `lmdiag.stimuli.designs.design.joined_items`.
    """
    texts = model_texts(table)
    never = {"item", response, *(TEXT_COLUMNS if texts else ())}
    never |= _never(table) if texts else {"id"}
    names = [str(name) for name in table if name not in never or name in conditions]
    finder = _Finder(ItemLevels.of(table, names, texts))
    given = [name for name in conditions if name in names]
    uses = finder.given(given) if given else finder.found()
    return replace(uses, item=item)


def _never(table: DataFrame) -> set[str]:
    """The columns of a table with texts that have a use of their own."""
    partner = {"contrast": "good", "expected": "target"}
    return {name for name in NO_CONDITIONS if partner.get(name, name) in table}


class _Finder:
    """The columns of a table, their candidates, and why some are not conditions."""

    def __init__(self, rows: ItemLevels) -> None:
        columns = rows.columns
        self.rows = rows
        self.columns = columns
        self.items = rows.items.codes
        self.has_texts = rows.text_codes is not None
        self.reader = self._reader()
        self.reasons: dict[str, str] = {}
        self.restarts: list[str] = []
        self.dropped: list[str] = []
        self.alike: list[str] = []
        self.repeated: dict[str, tuple[int, int]] = {}
        self.of_readers: list[str] = []
        for name, values in columns.items():
            if len(values.levels) > 1 and (reason := self._plain_use(name, values)):
                self.reasons[name] = reason
        self.candidates = {
            name: Candidate.of(values, self.items)
            for name, values in columns.items()
            if 2 <= len(values.levels) <= MANY_LABELS and name not in self.reasons
        }

    def _reader(self) -> str:
        """The column of readers, each with rows of several items; "" for none."""
        names = participants(self.columns)
        reader = max(names, key=lambda name: len(self.columns[name].levels), default="")
        if not reader:
            return ""
        n_items = n_distinct_by(self.columns[reader].codes, self.items)
        return reader if n_items.sum() >= 2 * len(n_items) else ""

    @cached_property
    def _is_by_word(self) -> bool:
        numbers = {folded(name) for name, values in self.columns.items() if values.is_number}
        has_parts = "number" in numbers and any(folded(name) == "name" for name in self.columns)
        return has_parts or any(is_named(name, "position") for name in numbers)

    def _plain_use(self, name: str, values: Distinct) -> str:
        """What a column is that tells readers, words, regions or measures apart; "" for others."""
        plain = folded(name)
        is_few = len(values.levels) <= MOST_LABELS
        is_reader = is_named(name, "reader") or name == self.reader
        # several people read an item: what follows from it is about its texts
        is_reader = is_reader and not (self.has_texts and is_known_from(values.codes, [self.items]))
        if is_reader and not (is_few and (self.has_texts or name != self.reader)):
            return "reader"
        if _MEASURES.get(name) in self.columns:
            return "measure, not a condition"
        if names_measures(values.levels):
            return "names of measures: choose one by --filter"
        if not self.has_texts and is_outcome(name):
            return "response, not a condition"
        if values.are_amounts and len(values.levels) <= MANY_LABELS:
            return "numbers that are not whole, not a condition"
        if values.is_number and (is_named(name, "position") or plain == "region"):
            return "position"
        if not self.has_texts and plain == "region":
            return "region"
        if not self.has_texts and self._is_by_word and plain in ("word", "number", "name"):
            return "word or region"
        return ""

    def given(self, names: Sequence[str]) -> Uses:
        """The conditions that the user names, without levels that are set aside or misspelt."""
        levels = {}
        for name in names:
            column = self.candidates.get(name)
            is_crossed = column is not None and len(column.kept) > 1
            texts = column.texts(column.kept) if column and is_crossed else ()
            levels[name] = texts or in_order(self.columns[name].levels)
        return self._uses(levels)

    def found(self) -> Uses:
        """The conditions of the table, and what the other columns are."""
        found = [name for name in self.candidates if self._may_be(name)]
        found = self._without_restarts(found)
        found = self._without_lists(found)
        found = self._with_complete_cells(self._without_followers(found))
        found = self._with_more_than_lists(found)
        columns = {name: self.candidates[name] for name in found}
        return self._uses({name: column.texts(column.kept) for name, column in columns.items()})

    def _uses(self, levels: Mapping[str, tuple[str, ...]]) -> Uses:
        return Uses(
            rows=self.rows,
            levels=levels,
            others={name: self._use(name, levels) for name in self.columns if name not in levels},
            candidates=self.candidates,
            restarts=self.restarts,
            dropped=self.dropped,
            alike=self.alike,
            repeated=self.repeated,
            of_readers=self.of_readers,
            reader=self.reader,
        )

    def _may_be(self, name: str) -> bool:
        """Whether a column has 2 to 6 levels that most items have, with other texts at each."""
        column = self.candidates[name]
        if not len(column.kept) or len(column.kept) > MOST_LABELS:
            return False
        if len(column.kept) < 2 or column.share_with_all() < _MOST_ITEMS:
            is_likely = column.share_varying() >= _LEAST_VARYING and not is_outcome(name)
            self.dropped += [name] if is_likely else []
            return False
        self.reasons |= self._reason(name, column)
        return name not in self.reasons

    def _reason(self, name: str, column: Candidate) -> dict[str, str]:
        """Column -> why its own rows exclude it as a condition; {} if they do not."""
        if self.rows.text_codes is not None:
            if self._changes_texts(name, self.rows.text_codes):
                return {}
            return {name: "reader" if is_named(name, "reader") else SAME_TEXTS}
        if any(is_filler(column.values.levels[number]) for number in column.kept):
            return {name: "not a condition (fillers)"}
        if self.reader and is_known_from(column.values.codes, [self.columns[self.reader].codes]):
            self.of_readers.append(name)
            return {name: "not a condition (follows from the reader)"}
        if self._is_by_chance(name, column):
            return {name: "not a condition (levels are not balanced within items)"}
        return {}

    def _changes_texts(self, name: str, text_codes: Codes) -> bool:
        """Whether rows of an item with the same text have the same level, but for a few."""
        codes = self.columns[name].codes
        texts = np.where(codes < 0, -1, combined(self.items, text_codes))
        n_levels = n_distinct_by(texts, codes)
        n_levels = n_levels[n_levels > 0]
        n_repeated = int((n_levels > 1).sum())
        if n_repeated:
            self.repeated[name] = n_repeated, len(n_levels)
        return n_repeated <= _MOST_REPEATED * len(n_levels)

    def _is_by_chance(self, name: str, column: Candidate) -> bool:
        """Whether items and readers have levels as unequally often as responses have.

        The levels of a condition are equally often in each item, or, of lists with unequally many
        readers, in the rows of each reader. What readers do is neither.
        """
        if folded(name).startswith("cond"):
            return False
        if not self.reader:
            return not column.is_balanced()
        if variance_of_counts(column.presence[:, column.kept]) < _MOST_VARIANCE:
            return False
        readers = self.columns[self.reader].codes
        n_rows = presence(readers, column.values.codes, len(column.values.levels))
        is_list = is_named(name, "list")
        return is_list or variance_of_counts(n_rows[:, column.kept]) >= _MOST_VARIANCE

    def _without_restarts(self, found: Sequence[str]) -> list[str]:
        """The columns without those of data sets that each number their items from 1.

        Item 1 of one level of such a column then has nothing to do with item 1 of another level.
        The columns that are left out get a reason in `self.reasons`, and those that are not known
        from earlier ones are added to `self.restarts`. Tables without texts keep all columns.
        """
        texts = self.rows.texts
        if texts is None:
            return [*found]
        for name in found:
            cells = combined(self.items, self.columns[name].codes)
            has_rows_inside = n_distinct(cells) < _MOST_CELLS * (cells >= 0).sum()
            is_set = is_named(name, "set") or any(map(is_filler, self.columns[name].levels))
            if self._follows(name, self.restarts):
                self.reasons[name] = "follows from another column"
            elif (has_rows_inside or is_set) and self._has_unrelated_texts(
                name, texts.to_numpy(), is_set=is_set
            ):
                self.restarts.append(name)
                self.reasons[name] = "not a condition (item numbers begin anew)"
        return [name for name in found if name not in self.reasons]

    def _has_unrelated_texts(self, name: str, texts: Sequence[str], *, is_set: bool) -> bool:
        """Whether most items have texts with few words in common at two levels of a column.

        Words of more than half of the items, as articles, say nothing of an item. Where items
        differ in one word, it may be that of a condition, unless the column is named as a data set.
        """
        codes = self.columns[name].codes
        order = np.argsort(self.items, kind="stable")
        starts = np.flatnonzero(np.diff(self.items[order], prepend=-2))
        items: list[dict[int, list[frozenset[str]]]] = []
        for rows in np.split(order, starts[1:])[:: max(1, len(starts) // _SAMPLE)]:
            by_level: dict[int, list[frozenset[str]]] = {}
            for row in rows[:24]:
                if codes[row] >= 0:
                    by_level.setdefault(int(codes[row]), []).append(words_of(texts[row]))
            items.append(by_level)
        frequent = frequent_words([[*chain(*by_level.values())] for by_level in items])
        least = 1 if is_set else 2
        shares = []
        for by_level in items:
            first, *others = [*by_level.values()] or [[]]
            if others:
                pairs = product(first, others[0])
                shares.append(max(own_overlap(a, b, frequent, least) for a, b in pairs))
        return bool(shares) and float(np.median(shares)) < RELATED

    def _without_lists(self, found: Sequence[str]) -> list[str]:
        """The columns but lists, which stand for each condition once per item."""
        lists = [name for name in found if is_named(name, "list") or is_named(name, "reader")]
        factors = [name for name in found if name not in lists]
        kept = []
        for name in found:
            others = [x for x in factors if x != name]
            if name in lists and self._rotates(name, others):
                self.reasons[name] = "not a condition (list: has each condition once per item)"
                continue
            kept.append(name)
        rotating = {
            name: [x for x in kept if x != name and self._rotates(name, [x])] for name in kept
        }
        for name, others in rotating.items():
            for other in others:
                if name in rotating[other] and not {name, other} & {*lists}:
                    self.alike = [*dict.fromkeys((*self.alike, name, other))]
        return [name for name in kept if name not in self.alike]

    def _without_followers(self, found: Sequence[str]) -> list[str]:
        """The columns but those whose level is known from others.

        Of two that follow from each other, the one with fewer levels is kept, else labels.
        """

        def rank(name: str) -> tuple[int, bool, bool]:
            return len(self.candidates[name].kept), name == "good", self.columns[name].is_number

        order = sorted(found, key=rank)
        chosen: list[str] = []
        for name in order:
            if self._follows(name, chosen) or self._rotates(name, chosen):
                continue
            chosen = [*(x for x in chosen if not self._follows(x, [name])), name]
        return [name for name in found if name in chosen]

    def _with_complete_cells(self, found: list[str]) -> list[str]:
        """The conditions, or in place of some the column that names their cells.

        That is where no item has all cells of the conditions that were found, and some have all
        levels of this column, of which there may be more than six.
        """
        if len(found) < 2 or self._has_complete_items(found):
            return found
        for cell, column in self.candidates.items():
            factors = [name for name in found if self._follows(name, [cell])]
            is_cell = len(factors) > 1 and column.share_with_all() >= _MOST_ITEMS
            chosen = [name for name in found if name not in factors] + [cell]
            if is_cell and cell not in self.reasons and self._has_complete_items(chosen):
                return [name for name in self.candidates if name in chosen]
        return found

    def _with_more_than_lists(self, found: list[str]) -> list[str]:
        """The conditions; none where all of them are lists, groups or versions."""
        if not all(are_lists(name, self.columns[name].levels) for name in found):
            return found
        self.reasons |= dict.fromkeys(found, "not a condition (a list, group or version alone)")
        return []

    def _has_complete_items(self, names: Sequence[str]) -> bool:
        """Whether some item has all cells of the levels of columns that are kept."""
        columns = [self.candidates[name] for name in names]
        codes = [self.columns[name].codes for name in names]
        is_kept = [np.isin(of, column.kept) for of, column in zip(codes, columns, strict=True)]
        cells = np.where(np.logical_and.reduce(is_kept), combined(*codes), -1)
        n_cells = prod(len(column.kept) for column in columns)
        return bool((n_distinct_by(self.items, cells) == n_cells).any())

    def _follows(self, name: str, others: Sequence[str]) -> bool:
        codes = [self.columns[other].codes for other in others]
        return is_known_from(self.columns[name].codes, codes)

    def _rotates(self, name: str, others: Sequence[str]) -> bool:
        """Whether a column follows from others within each item, but not in all items alike."""
        codes = [self.columns[other].codes for other in others]
        within = is_known_from(self.columns[name].codes, [self.items, *codes])
        return bool(others) and within and not self._follows(name, others)

    def _use(self, name: str, found: Collection[str]) -> str:
        """What a column is used for that is not a condition."""
        values = self.columns[name]
        n = len(values.levels)
        if name in self.reasons:
            return self.reasons[name]
        if n < 2:
            n_missing = int((values.codes < 0).sum())
            also = f", missing in {n_missing:,} rows" if n_missing else ""
            return f"not used (one value{also})" if n else "not used (empty)"
        if is_known_from(values.codes, [self.items]):
            return "covariate"
        if any(self._follows(name, others) for others in ([*found], *([x] for x in found))):
            return "follows from the conditions"
        if name in self.alike:
            return f"as good as {' and '.join(x for x in self.alike if x != name)}"
        if values.is_number and n > MOST_LABELS:
            return "numbers"
        if n > MOST_LEVELS and 2 * n > len(values.codes):
            return f"not used ({n:,} values that hardly repeat)"
        if self.reader and self._follows(name, [self.reader]):
            return "follows from the reader"
        n_items = len(self.rows.items.levels)
        if n > MOST_LABELS and n_items > 1 and is_known_from(self.items, [values.codes]):
            return f"not used ({n:,} values, each of one item)"
        if (n <= MOST_LABELS or not self.has_texts) and self._rotates(name, [*found]):
            return "follows from item"
        if n > MANY_LABELS:
            return f"not used ({n:,} values)"
        if n > MOST_LABELS:
            many = f"{n:,} levels, more than {MOST_LABELS}"
            return f"not used ({many}: give --conditions or --split)"
        return "not a condition"
