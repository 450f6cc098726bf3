"""What each column of a table of items is used for: the conditions of a design, and the others.

A condition has 2 to 6 levels that go with another text of an item, or, in a table of responses,
with another row of it. All is computed on the numbers (codes) of the values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain, combinations, product
from typing import TYPE_CHECKING

import numpy as np

from lmdiag.diagnostics import CORE, SENTENCES
from lmdiag.diagnostics.base import MOST_LEVELS
from lmdiag.stimuli.values.codes import (
    Codes,
    chi_square_per_df,
    combine_codes,
    is_determined_by,
    n_distinct,
    n_distinct_by,
    n_rows_by,
)
from lmdiag.stimuli.values.items import participant_columns
from lmdiag.stimuli.values.kinds import (
    MOST_LABELS,
    RELATED,
    DistinctValues,
    frequent_words,
    overlap_of_rarer_words,
    words_of,
)
from lmdiag.stimuli.values.levels import CodedTable, model_texts
from lmdiag.stimuli.values.misspelt import rare_levels
from lmdiag.stimuli.values.names import (
    TEXT_COLUMNS,
    are_lists,
    is_filler,
    is_named_as,
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
"""Reason why a column is not a condition if rows of an item with one text have several levels."""

MANY_LABELS = 4 * MOST_LABELS
"""A column with up to this many levels is examined, though a condition has up to six."""

# texts of items in which a column may differ without being a list; items that have all levels
_MOST_REPEATED, _MOST_ITEMS = 0.05, 0.5
# items that have several levels of a column which may be a condition with a mistake
_LEAST_VARYING = 0.25
# rows of the rarest level for one of the most frequent level, within an item of responses
_LEAST_BALANCE = 0.5
# chi-square by its degrees of freedom, of levels over items or readers: 1 by chance, 0 for a design
_MOST_CHI_SQUARE = 0.4
# cells of item and level for one row, where cells have several rows
_MOST_CELLS = 0.75
_SAMPLE = 60  # items whose texts are compared
_MOST_ROWS = 24  # rows of an item whose texts are compared


@dataclass(frozen=True)
class ConditionCandidate:
    """A column that may be a condition, and which of its levels each item has.

    Attributes:
        values: the distinct values of the column, which are its levels.
        rows_per_item: number of rows of each level in each item, (n items, n levels). For example,
            [[1, 1], [1, 0]]: item 0 has one row of each level, and item 1 lacks level 1.
        kept: numbers of the levels that the condition would have, in ascending order. Misspelt
            levels and those that are set aside are not among them.
        set_aside: numbers of the levels of fillers, and of levels that no item has beside another
            level.
    """

    values: DistinctValues
    rows_per_item: Codes
    kept: Codes
    set_aside: Codes

    @classmethod
    def of(cls, values: DistinctValues, items: Codes) -> ConditionCandidate:
        """Returns a column as a candidate; `items` has the number of the item of each row."""
        rows_per_item = n_rows_by(items, values.codes, len(values.levels))
        has_level = rows_per_item > 0  # (n items, n levels)
        items_with_several = has_level[has_level.sum(axis=1) > 1]
        # of each level, whether some item has it beside another level
        is_compared = items_with_several.any(axis=0)
        is_rare = rare_levels(values)
        are_fillers = np.array([is_filler(level) for level in values.levels], dtype=bool)
        # levels with the name of fillers are set aside if two other levels are left for a condition
        if (is_compared & ~is_rare & ~are_fillers).sum() > 1:
            is_compared &= ~are_fillers
        kept = np.flatnonzero(is_compared & ~is_rare)
        return cls(values, rows_per_item, kept, set_aside=np.flatnonzero(~is_compared))

    def share_of_complete_items(self) -> float:
        """Returns the share of items with all kept levels, among the items with any of these.

        For example, 0.5 where one item has the levels sg and pl, and another one has sg alone. 0 if
        no item has a kept level.
        """
        has_level = self.rows_per_item[:, self.kept] > 0
        has_level = has_level[has_level.any(axis=1)]
        return float(has_level.all(axis=1).mean()) if len(has_level) else 0.0

    def share_of_varying_items(self) -> float:
        """Returns the share of items with several levels, kept or not; 0 without items."""
        n_levels = (self.rows_per_item > 0).sum(axis=1)  # of each item
        return float((n_levels > 1).mean()) if len(n_levels) else 0.0

    def is_balanced(self) -> bool:
        """Returns whether half of the items with all kept levels, or more, are balanced.

        An item is balanced if its rarest kept level has at least half as many rows as its most
        frequent one: 4 rows of sg and 2 rows of pl are balanced, 4 and 1 are not. False if no item
        has all kept levels, of which there are two or more.
        """
        n_rows = self.rows_per_item[:, self.kept]  # (n items, n kept levels)
        n_rows = n_rows[n_rows.all(axis=1)]  # items with all kept levels
        if not len(n_rows):
            return False
        is_balanced = n_rows.min(axis=1) >= _LEAST_BALANCE * n_rows.max(axis=1)  # of each item
        return bool(is_balanced.mean() >= 0.5)

    def level_names(self, numbers: Iterable[int]) -> tuple[str, ...]:
        """Returns the levels with these numbers as texts, in order."""
        return in_order(self.values.levels[number] for number in numbers)


@dataclass(frozen=True)
class ColumnUses:
    """What each column of a table is used for: conditions, and what the others are.

    Attributes:
        table: the columns, items and texts of the table.
        conditions: condition -> its levels, in order, without those that are set aside.
        other_uses: column that is not a condition -> what it is, in words.
        condition_candidates: column that was examined as a condition -> its levels in the items.
        restart_columns: columns at each level of which item numbers start again from 1, such as
            an experiment: item 1 of one level has nothing to do with item 1 of another.
        incomplete_columns: columns that would be conditions if most items had all their levels.
        equivalent_columns: columns that explain the texts equally well, of which none is taken.
        inconsistent_texts: column -> (number of texts of an item with several of its levels, number
            of texts of all items), where the former is not 0.
        reader_attributes: columns with one level for each reader, such as a group of readers.
        reader_column: the column of readers; "" for none.
        item_column: the column that names the items in the file; "" where several do.
    """

    table: CodedTable
    conditions: Mapping[str, tuple[str, ...]]
    other_uses: Mapping[str, str]
    condition_candidates: Mapping[str, ConditionCandidate]
    restart_columns: Sequence[str] = ()
    incomplete_columns: Sequence[str] = ()
    equivalent_columns: Sequence[str] = ()
    inconsistent_texts: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    reader_attributes: Sequence[str] = ()
    reader_column: str = ""
    item_column: str = "item"

    def levels_set_aside(self, condition: str) -> tuple[str, ...]:
        """Returns the levels of a column that are left out of the condition, such as fillers.

        A condition that the user names has all levels of its column if fewer than two would be left
        without those that are set aside; then none is left out.
        """
        candidate = self.condition_candidates.get(condition)
        if candidate is None:
            return ()
        levels = candidate.level_names(candidate.set_aside)
        return tuple(level for level in levels if level not in self.conditions[condition])


def uses_of(
    table: DataFrame,
    conditions: Collection[str] = (),
    response: str = "",
    *,
    item: str = "item",
) -> ColumnUses:
    """Returns what each column of a table with a column item is used for.

    A condition has 2 to 6 levels, and at least half of the items have all of them. These columns
    are not conditions:

    - rows of an item with the same text differ in it, in more than 5% of the texts;
    - it follows from other conditions, such as the correct answer or a name of their cells;
    - it has each condition once per item, such as the list of a Latin square;
    - in a table without texts: it has the name of an outcome, its level depends on the reader
      alone, or its levels are as unequal in items and readers as responses are by chance.

    Args:
        table: columns of plain values, among them those of texts that a model reads, if there are.
        conditions: what the user says they are; () to find them.
        response: the column of the response, which cannot be a condition.
        item: the column that names the items in the file; "" where several do, see
            `lmdiag.stimuli.designs.design.joined_items`.
    """
    texts = model_texts(table)
    never = {"item", response}
    if texts:
        never |= {*TEXT_COLUMNS, *_columns_of_stimuli(table)}
    else:  # of responses: names of columns of stimuli are names like any other there
        never.add("id")
    names = [str(name) for name in table if name not in never or name in conditions]
    finder = _ConditionFinder(CodedTable.of(table, names, texts))
    given = [name for name in conditions if name in names]
    uses = finder.with_given_conditions(given) if given else finder.with_found_conditions()
    return replace(uses, item_column=item)


def _columns_of_stimuli(table: DataFrame) -> set[str]:
    """Returns the columns of stimuli that lmdiag reads itself, such as `id` and `regions`.

    In a table without `good`, a column `contrast` is one of the user's own, and so is `expected` in
    one without `target`.
    """
    needed_column = {"contrast": "good", "expected": "target"}
    # a column that needs no other one is looked up by its own name
    return {name for name in NO_CONDITIONS if needed_column.get(name, name) in table}


class _ConditionFinder:
    """Finds the conditions among the columns of a table, and why other columns are not.

    Args:
        table: the columns, items and texts.

    Attributes:
        columns: name -> levels, of the table.
        items: number of the item of each row.
        has_texts: whether the table has texts that a model reads.
        reasons: column -> why it is not a condition, in words.
        candidates: column that may be a condition -> its levels in the items.

    Other attributes are those of `ColumnUses`, to which the methods add columns.
    """

    def __init__(self, table: CodedTable) -> None:
        self.table = table
        self.columns = table.columns
        self.items = table.items.codes
        self.has_texts = table.text_codes is not None
        self.reader_column = self._reader_column()
        self.reasons: dict[str, str] = {}
        self.restart_columns: list[str] = []
        self.incomplete_columns: list[str] = []
        self.equivalent_columns: list[str] = []
        self.inconsistent_texts: dict[str, tuple[int, int]] = {}
        self.reader_attributes: list[str] = []
        self.candidates: dict[str, ConditionCandidate] = {}
        for name, values in self.columns.items():
            n_levels = len(values.levels)
            # `_other_use` says of a column with one level or none that it is not used
            use = self._known_use(name, values) if n_levels > 1 else ""
            if use:
                self.reasons[name] = use
            elif 2 <= n_levels <= MANY_LABELS:
                self.candidates[name] = ConditionCandidate.of(values, self.items)

    def _reader_column(self) -> str:
        """Returns the column of readers, if they have two items or more on average; "" for none."""
        names = participant_columns(self.columns)
        if not names:
            return ""
        reader_column = max(names, key=lambda name: len(self.columns[name].levels))
        n_items_of_reader = n_distinct_by(self.columns[reader_column].codes, self.items)
        return reader_column if n_items_of_reader.sum() >= 2 * len(n_items_of_reader) else ""

    @cached_property
    def _has_rows_of_words(self) -> bool:
        """Whether rows are words or regions: a column numbers them, by its name and values."""
        numbers = {folded(name) for name, values in self.columns.items() if values.is_number}
        names = {folded(name) for name in self.columns}
        if "number" in numbers and "name" in names:  # as lmdiag calls those of regions
            return True
        return any(is_named_as(name, "position") for name in numbers)

    def _known_use(self, name: str, values: DistinctValues) -> str:
        """Returns the use of a column whose name or kind of values excludes that it is a condition.

        Such columns tell readers, words, regions or measures apart. "" for other columns, which are
        examined as conditions.
        """
        plain = folded(name)
        is_few = len(values.levels) <= MOST_LABELS
        is_reader = is_named_as(name, "reader") or name == self.reader_column
        if is_reader and self.has_texts and is_determined_by(values.codes, [self.items]):
            is_reader = False  # several people read an item: this is about its texts
        # a few levels, such as kinds of subjects of sentences, may be those of a condition
        may_be_condition = is_few and (self.has_texts or name != self.reader_column)
        if is_reader and not may_be_condition:
            return "reader"
        if _MEASURES.get(name) in self.columns:  # lmdiag wrote it beside this column
            return "measure, not a condition"
        if names_measures(values.levels):
            return "names of measures: choose one by --filter"
        if not self.has_texts and is_outcome(name):
            return "response, not a condition"
        if values.are_decimals and len(values.levels) <= MANY_LABELS:
            return "numbers that are not whole, not a condition"
        if values.is_number and (is_named_as(name, "position") or plain == "region"):
            return "position"
        if not self.has_texts and plain == "region":
            return "region"
        if not self.has_texts and self._has_rows_of_words and plain in ("word", "number", "name"):
            return "word or region"
        return ""

    def with_given_conditions(self, names: Sequence[str]) -> ColumnUses:
        """Returns the uses with conditions that the user names.

        They lack levels that are set aside or misspelt, if two others or more are left.
        """
        conditions = {}
        for name in names:
            candidate = self.candidates.get(name)
            if candidate is not None and len(candidate.kept) > 1:
                conditions[name] = candidate.level_names(candidate.kept)
            else:
                conditions[name] = in_order(self.columns[name].levels)
        return self._column_uses(conditions)

    def with_found_conditions(self) -> ColumnUses:
        """Returns the uses with the conditions that are found.

        The steps remove columns from the candidates. Each step compares the columns that are left,
        so that their order matters.
        """
        # judged by its own levels and rows, without the other columns
        names = [name for name in self.candidates if self._is_possible(name)]
        # first of all, since within wrong items no comparison of columns means anything
        names = self._remove_restart_columns(names)
        # lists are told by the conditions that they rotate over, before any condition is removed
        names = self._remove_lists(names)
        # before the next step, which would keep an arbitrary column of two equivalent ones
        names = self._remove_equivalent_columns(names)
        names = self._remove_dependent_columns(names)
        # only conditions that are left are crossed, and may leave cells empty
        names = self._replace_by_column_of_cells(names)
        # at the end, when it is known whether a list stands beside a condition or alone
        names = self._remove_lists_alone(names)
        candidates = {name: self.candidates[name] for name in names}
        return self._column_uses(
            {name: candidate.level_names(candidate.kept) for name, candidate in candidates.items()}
        )

    def _column_uses(self, conditions: Mapping[str, tuple[str, ...]]) -> ColumnUses:
        """Returns the record of all uses; `conditions` has the levels of each condition."""
        other_uses = {
            name: self._other_use(name, conditions)
            for name in self.columns
            if name not in conditions
        }
        return ColumnUses(
            table=self.table,
            conditions=conditions,
            other_uses=other_uses,
            condition_candidates=self.candidates,
            restart_columns=self.restart_columns,
            incomplete_columns=self.incomplete_columns,
            equivalent_columns=self.equivalent_columns,
            inconsistent_texts=self.inconsistent_texts,
            reader_attributes=self.reader_attributes,
            reader_column=self.reader_column,
        )

    def _is_possible(self, name: str) -> bool:
        """Returns whether a candidate may be a condition, by its own levels and rows.

        It has 2 to 6 levels, half of the items or more have all of them, and no reason against it
        is found. A reason goes to `self.reasons`; a column whose items lack levels goes to
        `self.incomplete_columns`, if it may be a condition with a mistake.
        """
        candidate = self.candidates[name]
        n_levels = len(candidate.kept)  # without misspelt ones and fillers
        if not 0 < n_levels <= MOST_LABELS:
            return False
        if n_levels < 2 or candidate.share_of_complete_items() < _MOST_ITEMS:
            if candidate.share_of_varying_items() >= _LEAST_VARYING and not is_outcome(name):
                self.incomplete_columns.append(name)
            return False
        reason = self._reason_against(name, candidate)
        if reason:
            self.reasons[name] = reason
        return not reason

    def _reason_against(self, name: str, candidate: ConditionCandidate) -> str:
        """Returns why the rows of a column exclude it as a condition; "" if they do not."""
        if self.table.text_codes is not None:  # a condition goes with another text
            if self._has_one_level_per_text(name, self.table.text_codes):
                return ""
            return "reader" if is_named_as(name, "reader") else SAME_TEXTS
        # in a table of responses, there are no texts that could tell
        if any(is_filler(level) for level in candidate.level_names(candidate.kept)):
            return "not a condition (fillers)"
        if self.reader_column and self._follows_from(name, [self.reader_column]):
            self.reader_attributes.append(name)
            return "not a condition (follows from the reader)"
        if self._is_by_chance(name, candidate):
            return "not a condition (levels are not balanced within items)"
        return ""

    def _has_one_level_per_text(self, name: str, text_codes: Codes) -> bool:
        """Returns whether rows of an item with the same text have the same level of a column.

        Up to 5% of the texts may have several levels; `self.inconsistent_texts` counts them.
        `text_codes` has the number of the text of each row.
        """
        codes = self.columns[name].codes
        texts = combine_codes(self.items, text_codes)
        texts = np.where(codes < 0, -1, texts)  # rows without a level do not count
        n_levels_of_text = n_distinct_by(texts, codes)
        n_texts = int((n_levels_of_text > 0).sum())
        n_inconsistent = int((n_levels_of_text > 1).sum())
        if n_inconsistent:
            self.inconsistent_texts[name] = n_inconsistent, n_texts
        return n_inconsistent <= _MOST_REPEATED * n_texts

    def _is_by_chance(self, name: str, candidate: ConditionCandidate) -> bool:
        """Returns whether a column has its levels by chance, as answers of readers have.

        A design balances the levels of a condition: each level has about equally many rows within
        an item, or, where one list had more readers than another one, within a reader. A column
        whose name begins with "cond" is a condition in any case.
        """
        if folded(name).startswith("cond"):
            return False
        if not self.reader_column:
            return not candidate.is_balanced()
        # levels are balanced within items
        if chi_square_per_df(candidate.rows_per_item[:, candidate.kept]) < _MOST_CHI_SQUARE:
            return False
        # readers have as many rows of each block or session, too, though these are not conditions
        if is_named_as(name, "list"):
            return True
        # or within readers
        readers = self.columns[self.reader_column].codes
        rows_per_reader = n_rows_by(readers, candidate.values.codes, len(candidate.values.levels))
        return chi_square_per_df(rows_per_reader[:, candidate.kept]) >= _MOST_CHI_SQUARE

    def _remove_restart_columns(self, names: Sequence[str]) -> list[str]:
        """Returns the columns without those of data sets that each number their items from 1.

        Item 1 of one level of such a column then has nothing to do with item 1 of another level, as
        their texts show. The columns that are left out get a reason in `self.reasons`, and those
        that do not follow from earlier ones are added to `self.restart_columns`. Tables without
        texts keep all columns.
        """
        if self.table.texts is None:
            return [*names]
        texts = self.table.texts.to_numpy()
        for name in names:
            if self._follows_from(name, self.restart_columns):
                self.reasons[name] = "follows from another column"
                continue
            values = self.columns[name]
            # a condition has mostly one row in each item and level, a data set has several
            cells = combine_codes(self.items, values.codes)
            n_rows = (cells >= 0).sum()
            has_several_rows_per_cell = n_distinct(cells) < _MOST_CELLS * n_rows
            is_set = is_named_as(name, "set") or any(is_filler(level) for level in values.levels)
            if not (has_several_rows_per_cell or is_set):
                continue
            if self._has_unrelated_texts(name, texts, is_set=is_set):
                self.restart_columns.append(name)
                self.reasons[name] = "not a condition (item numbers begin anew)"
        return [name for name in names if name not in self.reasons]

    def _has_unrelated_texts(self, name: str, texts: Sequence[str], *, is_set: bool) -> bool:
        """Returns whether most items have unrelated texts at two levels of a column.

        For example, "The cat sat." at one level of `experiment` and "A man ate bread." at another
        one, both with the item number 1. Words of more than half of the items, as articles, are not
        compared. Texts with a single other word are compared as a whole, since this word may be
        that of a condition, unless the column has the name of data sets.

        Args:
            name: of the column.
            texts: of the rows.
            is_set: whether the column has the name of data sets, or fillers.
        """
        order = np.argsort(self.items, kind="stable")  # rows by item; those without one first
        starts = np.flatnonzero(np.diff(self.items[order], prepend=-2))  # -2 is before all codes
        rows_of_items = np.split(order, starts[1:])
        step = max(1, len(starts) // _SAMPLE)
        codes = self.columns[name].codes
        words_of_items = [
            _words_of_levels(rows[:_MOST_ROWS], codes, texts) for rows in rows_of_items[::step]
        ]
        frequent = frequent_words([[*chain(*levels.values())] for levels in words_of_items])
        least = 1 if is_set else 2
        overlaps = []  # of each item, that of the two most similar texts at two levels
        for words_of_levels in words_of_items:
            if len(words_of_levels) > 1:
                first_level, second_level, *_ = words_of_levels.values()
                pairs = product(first_level, second_level)
                overlaps.append(
                    max(overlap_of_rarer_words(a, b, frequent, least) for a, b in pairs)
                )
        return bool(overlaps) and float(np.median(overlaps)) < RELATED

    def _remove_lists(self, names: Sequence[str]) -> list[str]:
        """Returns the columns without the lists of a Latin square, which get a reason.

        In such a design each reader reads one list, and a list has each item in one condition. For
        example, list A has item 1 in sg and item 2 in pl; list B has item 1 in pl and item 2 in sg.
        """
        factors = [name for name in names if not _is_named_as_list(name)]
        kept = []
        for name in names:
            if _is_named_as_list(name) and self._rotates_over_items(name, factors):
                self.reasons[name] = "not a condition (list: has each condition once per item)"
            else:
                kept.append(name)
        return kept

    def _remove_equivalent_columns(self, names: Sequence[str]) -> list[str]:
        """Returns the columns without pairs that explain the texts of an item equally well.

        Each column of such a pair rotates over the items as the list of a Latin square does. For
        example, with columns x and y, item 1 has the rows (a, c) and (b, d), and item 2 has (a, d)
        and (b, c). One of the two is a condition and the other one a list, but nothing tells which.
        Both columns go to `self.equivalent_columns`, for a message.
        """
        factors = [name for name in names if not _is_named_as_list(name)]
        for name, other in combinations(factors, 2):
            is_equivalent = self._rotates_over_items(name, [other])
            if is_equivalent and self._rotates_over_items(other, [name]):
                self.equivalent_columns += [name, other]
        self.equivalent_columns = [*dict.fromkeys(self.equivalent_columns)]
        return [name for name in names if name not in self.equivalent_columns]

    def _remove_dependent_columns(self, names: Sequence[str]) -> list[str]:
        """Returns the columns without those whose level is known from the columns that are kept.

        Three examples, of which `number` is kept each time:

        - `number` (sg, pl), `match` (yes, no) and `cell` (sg_yes, sg_no, pl_yes, pl_no): `cell`
          follows from the other two columns and is left out.
        - `number` (sg, pl) and `code` (1, 2), which name the same levels: labels are preferred to
          numbers.
        - `is_sg` (yes, no) and `number` (sg, dual, pl): `is_sg` follows from `number`, which tells
          more levels apart.
        """

        def rank(name: str) -> tuple[int, bool, bool]:
            # Columns with fewer levels are tried first; of equally many levels, labels before
            # numbers. `good` comes after these, since in many designs it follows from two crossed
            # conditions, such as the numbers of subject and verb.
            return len(self.candidates[name].kept), name == "good", self.columns[name].is_number

        kept: list[str] = []
        for name in sorted(names, key=rank):
            # a column that rotates over the items is a list of a Latin square under another name
            if self._follows_from(name, kept) or self._rotates_over_items(name, kept):
                continue
            # columns with fewer levels, which were kept before, may follow from this one
            kept = [other for other in kept if not self._follows_from(other, [name])]
            kept.append(name)
        return [name for name in names if name in kept]

    def _replace_by_column_of_cells(self, names: list[str]) -> list[str]:
        """Returns the conditions, or in place of some of them the column that names their cells.

        For example, the conditions a (1, 2) and b (1, 2), and a column cell (a1b1, a1b2, a2b1): no
        item has the cell of a2 and b2, so that no interaction can be tested, and `cell` is the
        condition. A column of cells may have more than six levels. The conditions are returned as
        they are if an item has all their cells, or no item has all levels of a column of cells.
        """
        if len(names) < 2 or self._has_complete_items(names):
            return names
        for cell_column, candidate in self.candidates.items():
            if cell_column in self.reasons:
                continue
            factors = [name for name in names if self._follows_from(name, [cell_column])]
            chosen = [*(name for name in names if name not in factors), cell_column]
            # it tells the levels of two conditions or more, and most items have all its levels
            names_cells = len(factors) > 1 and candidate.share_of_complete_items() >= _MOST_ITEMS
            if names_cells and self._has_complete_items(chosen):
                return [name for name in self.candidates if name in chosen]
        return names

    def _remove_lists_alone(self, names: list[str]) -> list[str]:
        """Returns the conditions; none if all of them are lists, groups or versions."""
        if not all(are_lists(name, self.columns[name].levels) for name in names):
            return names
        for name in names:
            self.reasons[name] = "not a condition (a list, group or version alone)"
        return []

    def _has_complete_items(self, names: Sequence[str]) -> bool:
        """Returns whether some item has all combinations of the kept levels of some columns."""
        n_cells = 1
        codes = []  # of each column, number of the level of each row, -1 if it is not kept
        for name in names:
            levels = self.columns[name].codes
            kept = self.candidates[name].kept
            n_cells *= len(kept)
            codes.append(np.where(np.isin(levels, kept), levels, -1))
        n_cells_of_item = n_distinct_by(self.items, combine_codes(*codes))
        return bool((n_cells_of_item == n_cells).any())

    def _follows_from(self, name: str, others: Sequence[str]) -> bool:
        """Returns whether rows with the same levels in other columns have one level in this column.

        For example, `cell` (sg_yes, sg_no, ...) follows from `number` and `match`. False without
        other columns.
        """
        codes = [self.columns[other].codes for other in others]
        return is_determined_by(self.columns[name].codes, codes)

    def _rotates_over_items(self, name: str, others: Sequence[str]) -> bool:
        """Returns whether a column follows from others within each item, but not across items.

        An example is the list of a Latin square. List A has item 1 in the first condition and item
        2 in the second condition: the condition tells the list of a row only where the item is
        known. False without other columns.
        """
        if not others:
            return False
        codes = [self.columns[other].codes for other in others]
        follows_within_items = is_determined_by(self.columns[name].codes, [self.items, *codes])
        return follows_within_items and not self._follows_from(name, others)

    def _other_use(self, name: str, conditions: Collection[str]) -> str:
        """Returns what a column that is not among the conditions is, in words.

        For example, "covariate" for a column with one level in each item, such as the frequency of
        its word, or "follows from item" for the list of a Latin square.

        Three numbers of levels decide: up to MOST_LABELS (6) may be a condition, up to MOST_LEVELS
        (12) a break-down, and up to MANY_LABELS (24) a condition that the user names or divides.
        """
        values = self.columns[name]
        n = len(values.levels)  # number of levels
        if name in self.reasons:
            return self.reasons[name]
        if n == 0:
            return "not used (empty)"
        if n == 1:
            n_missing = int((values.codes < 0).sum())
            also = f", missing in {n_missing:,} rows" if n_missing else ""
            return f"not used (one value{also})"
        if is_determined_by(values.codes, [self.items]):  # each item has one level
            return "covariate"
        follows_from_one = any(self._follows_from(name, [condition]) for condition in conditions)
        if follows_from_one or self._follows_from(name, [*conditions]):
            return "follows from the conditions"
        if name in self.equivalent_columns:
            others = [other for other in self.equivalent_columns if other != name]
            return f"as good as {' and '.join(others)}"
        if values.is_number and n > MOST_LABELS:
            return "numbers"
        if n > MOST_LEVELS and 2 * n > len(values.codes):
            return f"not used ({n:,} values that hardly repeat)"
        if self.reader_column and self._follows_from(name, [self.reader_column]):
            return "follows from the reader"
        n_items = len(self.table.items.levels)
        # rows with one value are of one item, as those of an id of texts
        if n > MOST_LABELS and n_items > 1 and is_determined_by(self.items, [values.codes]):
            return f"not used ({n:,} values, each of one item)"
        # with texts, a list has as few levels as a condition; without texts, it may name readers
        may_follow_from_item = n <= MOST_LABELS or not self.has_texts
        if may_follow_from_item and self._rotates_over_items(name, [*conditions]):
            return "follows from item"
        if n > MANY_LABELS:
            return f"not used ({n:,} values)"
        if n > MOST_LABELS:
            many = f"{n:,} levels, more than {MOST_LABELS}"
            return f"not used ({many}: give --conditions or --split)"
        return "not a condition"


def _words_of_levels(
    rows: Codes, codes: Codes, texts: Sequence[str]
) -> dict[int, list[frozenset[str]]]:
    """Returns level -> the words of each text that some rows of an item have at this level.

    `codes` has the number of the level of each row of the table, -1 where it is missing.
    """
    words_of_levels: dict[int, list[frozenset[str]]] = {}
    for row in rows.tolist():
        level = int(codes[row])
        if level >= 0:
            words_of_levels.setdefault(level, []).append(words_of(texts[row]))
    return words_of_levels


def _is_named_as_list(name: str) -> bool:
    """Returns whether a column is named as a list or as a reader, each of whom reads one list."""
    return is_named_as(name, "list") or is_named_as(name, "reader")
