"""What each column of a table of items is used for: the conditions of a design, and the others.

A condition has 2 to 6 levels that go with another text of an item, or, in a table of responses,
with another row of it. All is computed on the numbers (codes) of the values.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import product
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np

from lmdiag.diagnostics import CORE, SENTENCES
from lmdiag.diagnostics.base import MOST_LEVELS
from lmdiag.stimuli.codes import (
    Codes,
    combined,
    is_known_from,
    n_distinct,
    n_distinct_by,
    presence,
)
from lmdiag.stimuli.kinds import MOST_LABELS, RELATED, Distinct, overlap, words_of
from lmdiag.stimuli.levels import ItemLevels, level_texts, model_texts
from lmdiag.stimuli.names import TEXT_COLUMNS, is_named, is_outcome, names_measures
from lmdiag.stimuli.splits import split_of, split_of_names
from lmdiag.text import folded, in_order

if TYPE_CHECKING:
    from pandas import DataFrame, Series

NO_CONDITIONS = {column.name for column in (*CORE, *SENTENCES)} - {"condition", "good"}
NO_CONDITIONS |= {"regions", "formulas", "gap_spaces"}
"""Columns that are conditions only where they are named."""

NO_CONDITION = (
    "no column with 2 to 6 levels differs within items: name the conditions with --conditions, and "
    "the items in the column item"
)
"""What is said of a table without conditions if there is no better reason."""

MEASURE_NAMES = "names of measures: choose one by --filter"
"""What a column is whose levels are names of measures."""

# a level with so many rows or fewer, and less than this share of another's, may be misspelt
RARE, SHARE = 3, 0.25

# texts of items in which a column may differ without being a list; items that have all levels
_MOST_REPEATED, _MOST_ITEMS = 0.05, 0.5
# items that have several levels of a column which may be a condition with a mistake
_LEAST_VARYING = 0.25
# rows of the rarest level for one of the most frequent level, within an item of responses
_LEAST_BALANCE = 0.5
_SAMPLE = 60  # items whose texts are compared


@dataclass(frozen=True)
class Uses:
    """What the columns of a table are used for.

    Attributes:
        levels: condition -> its levels, in order, without those that are set aside.
        set_aside: condition -> levels of items that have no other one (fillers, practice).
        others: further column -> what it is, in words.
        restarts: columns in each level of which item numbers begin anew.
        dropped: columns that would be conditions, but most items lack some of their levels.
        alike: columns that explain the texts equally well, of which none is taken.
        notes: lines on what was left out.
        split: that names of items have a condition in them, and the option that divides them.
    """

    levels: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    set_aside: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    others: Mapping[str, str] = field(default_factory=dict)
    restarts: tuple[str, ...] = ()
    dropped: tuple[str, ...] = ()
    alike: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    split: str = ""


@dataclass(frozen=True)
class _Candidate:
    """A column that may be a condition.

    Attributes:
        values: its levels.
        presence: number of rows of each level in each item.
        kept: the numbers of its levels without misspelt ones and those that are set aside.
        aside: the numbers of the latter.
    """

    values: Distinct
    presence: Codes
    kept: Codes
    aside: Codes

    @property
    def varies(self) -> bool:
        return bool(len(self.kept))

    def share_with_all(self) -> float:
        """The share of the items with some level that is kept which have all of them."""
        rows = self.presence[:, self.kept] > 0
        rows = rows[rows.any(axis=1)]
        return float(rows.all(axis=1).mean()) if len(rows) else 0.0

    def share_varying(self) -> float:
        """The share of the items with several levels."""
        return float(((self.presence > 0).sum(axis=1) > 1).mean())

    def texts(self, numbers: Iterable[int]) -> tuple[str, ...]:
        return in_order(self.values.levels[number] for number in numbers)


def _candidate(values: Distinct, items: Codes) -> _Candidate:
    n_levels = len(values.levels)
    n_rows = presence(items, values.codes, n_levels)
    several = n_rows[(n_rows > 0).sum(axis=1) > 1] > 0
    is_inner = several.any(axis=0) if len(several) else np.zeros(n_levels, dtype=bool)
    counts = values.counts
    is_rare = (counts <= RARE) & (counts < SHARE * counts.max(initial=0))
    return _Candidate(
        values, n_rows, np.flatnonzero(is_inner & ~is_rare), np.flatnonzero(~is_inner)
    )


# ---- uses ----------------------------------------------------------------------------------------


def uses_of(table: DataFrame, conditions: Sequence[str] = (), response: str = "") -> Uses:
    """Returns what each column of a table with a column item is used for.

    A condition has 2 to 6 levels, and at least half of the items have all of them. A column is none
    if rows of an item with the same text differ in it, in more than 5% of the texts; if it follows
    from other conditions, as the correct answer or a column that names their cells; or if it stands
    for each condition once per item, as the list of a Latin square. In a table without texts it has
    each level about equally often within an item, and is not named as an outcome.

    Args:
        table: columns of plain values, among them those of texts that a model reads, if there are.
        conditions: what the user says they are; () to find them.
        response: the column of the response, which cannot be a condition.
    """
    return uses_of_levels(item_levels(table, conditions, response), conditions)


def item_levels(
    table: DataFrame, conditions: Collection[str] = (), response: str = ""
) -> ItemLevels:
    """Returns the levels of the columns that may be conditions; see `uses_of`."""
    texts = model_texts(table)
    never = {"item", response, *(TEXT_COLUMNS if texts else ())}
    never |= _never(table) if texts else {"id"}
    names = [str(name) for name in table if name not in never or name in conditions]
    return ItemLevels.of(table, names, texts)


def uses_of_levels(rows: ItemLevels, conditions: Sequence[str] = ()) -> Uses:
    """Returns what `uses_of` returns."""
    finder = _Finder(rows)
    if conditions:
        given = [name for name in conditions if name in rows.columns]
        levels = {name: in_order(rows.columns[name].levels) for name in given}
        return Uses(levels, others=finder.others(given))
    found = finder.found()
    # of conditions that were found, texts of an item may be alike for other reasons
    texts = None if found.levels or rows.texts is None else rows.texts.tolist()
    return replace(found, split=split_of_names(rows.items, texts, rows.columns))


def _never(table: DataFrame) -> set[str]:
    """The columns of a table with texts that have a use of their own."""
    partner = {"contrast": "good", "expected": "target"}
    return {name for name in NO_CONDITIONS if partner.get(name, name) in table}


class _Finder:
    """The columns of a table, their candidates, and why some are not conditions."""

    def __init__(self, rows: ItemLevels) -> None:
        columns = rows.columns
        self.columns = columns
        self.items = rows.items.codes
        self.text_codes = rows.text_codes
        self.texts = rows.texts
        numbers = {folded(name) for name, values in columns.items() if values.is_number}
        has_parts = "number" in numbers and any(folded(name) == "name" for name in columns)
        has_places = has_parts or any(is_named(name, "position") for name in numbers)
        self.is_by_word = rows.texts is None and has_places
        self.reasons: dict[str, str] = {}
        self.notes: list[str] = []
        self.restarts: list[str] = []
        self.dropped: list[str] = []
        self.alike: list[str] = []
        few = {
            name: values
            for name, values in columns.items()
            if 2 <= len(values.levels) <= 4 * MOST_LABELS and not self._is_place(name, values)
        }
        self.candidates = {name: _candidate(values, self.items) for name, values in few.items()}

    def _is_place(self, name: str, values: Distinct) -> bool:
        """Whether a column tells readers, words, regions or measures apart; names its reason."""
        reason = ""
        if is_named(name, "reader"):
            reason = "reader"
        elif names_measures(values.levels):
            reason = MEASURE_NAMES
        elif self.text_codes is None and is_outcome(name):
            reason = "response, not a condition"
        elif values.are_amounts:
            reason = "numbers that are not whole, not a condition"
        elif values.is_number and (is_named(name, "position") or folded(name) == "region"):
            reason = "position"
        elif self.text_codes is None and folded(name) == "region":
            reason = "region"
        elif self.is_by_word and folded(name) in ("word", "number", "name"):
            reason = "word or region"
        if reason:
            self.reasons[name] = reason
        return bool(reason)

    def found(self) -> Uses:
        """The conditions of the table, and what the other columns are."""
        found = [name for name in self.candidates if self._may_be(name)]
        found = self._without_restarts(found)
        found = self._without_lists(found)
        found = self._without_followers(found)
        candidates = [(name, self.candidates[name]) for name in found]
        return Uses(
            levels={name: column.texts(column.kept) for name, column in candidates},
            set_aside={name: column.texts(column.aside) for name, column in candidates},
            others=self.others(found),
            restarts=tuple(self.restarts),
            dropped=tuple(self.dropped),
            alike=tuple(self.alike),
            notes=tuple(self.notes),
        )

    def _may_be(self, name: str) -> bool:
        """Whether a column has 2 to 6 levels that most items have, with other texts at each."""
        column = self.candidates[name]
        if not column.varies or len(column.kept) > MOST_LABELS:
            return False
        if len(column.kept) < 2 or column.share_with_all() < _MOST_ITEMS:
            is_likely = column.share_varying() >= _LEAST_VARYING and not is_outcome(name)
            self.dropped += [name] if is_likely else []
            return False
        if self.text_codes is None:
            return self._is_balanced(name)
        return self._changes_texts(name, self.text_codes)

    def _changes_texts(self, name: str, text_codes: Codes) -> bool:
        """Whether rows of an item with the same text have the same level, but for a few."""
        codes = self.columns[name].codes
        texts = np.where(codes < 0, -1, combined(self.items, text_codes))
        n_levels = n_distinct_by(texts, codes)
        n_levels = n_levels[n_levels > 0]
        n_repeated = int((n_levels > 1).sum())
        if n_repeated > _MOST_REPEATED * len(n_levels):
            self.reasons[name] = "not a condition (same texts at several levels)"
            return False
        if n_repeated:
            has = f"{n_repeated:,} of {len(n_levels):,} texts have several levels of {name}"
            self.notes.append(f"{has}: correct them")
        return True

    def _is_balanced(self, name: str) -> bool:
        """Whether most items have each level about equally often: measures of people do not."""
        column = self.candidates[name]
        rows = column.presence[:, column.kept]
        rows = rows[rows.all(axis=1)]
        is_balanced = rows.min(axis=1) >= _LEAST_BALANCE * rows.max(axis=1)
        if is_balanced.mean() < 0.5:
            self.reasons[name] = "not a condition (levels are not balanced within items)"
            return False
        readers = [values.codes for x, values in self.columns.items() if is_named(x, "reader")]
        values = self.columns[name]
        if (is_named(name, "list") or values.is_number) and is_known_from(
            values.codes, readers[:1]
        ):
            self.reasons[name] = "not a condition (follows from the reader)"
            return False
        return True

    def _without_restarts(self, found: Sequence[str]) -> list[str]:
        """The columns but those in each level of which item numbers begin anew."""
        texts = self.texts
        if texts is None:
            return [*found]
        for name in found:
            cells = combined(self.items, self.columns[name].codes)
            has_rows_inside = n_distinct(cells) < 0.75 * (cells >= 0).sum()
            is_set = is_named(name, "set")
            if self._follows(name, self.restarts):
                self.reasons[name] = "follows from another column"
            elif (has_rows_inside or is_set) and self._has_unrelated_texts(name, texts):
                self.restarts.append(name)
                self.reasons[name] = "not a condition (item numbers begin anew)"
        return [name for name in found if name not in self.reasons]

    def _has_unrelated_texts(self, name: str, row_texts: Series) -> bool:
        """Whether most items have texts with few words in common at two levels of a column."""
        codes = self.columns[name].codes
        texts = row_texts.to_numpy()
        order = np.argsort(self.items, kind="stable")
        starts = np.flatnonzero(np.diff(self.items[order], prepend=-2))
        shares = []
        for rows in np.split(order, starts[1:])[:: max(1, len(starts) // _SAMPLE)]:
            by_level: dict[int, list[frozenset[str]]] = {}
            for row in rows[:24]:
                if codes[row] >= 0:
                    by_level.setdefault(int(codes[row]), []).append(words_of(texts[row]))
            first, *others = [*by_level.values()] or [[]]
            if others:
                shares.append(max(overlap(a, b) for a in first for b in others[0]))
        return bool(shares) and float(np.median(shares)) < RELATED

    def _without_lists(self, found: Sequence[str]) -> list[str]:
        """The columns but lists, which stand for each condition once per item."""
        lists = [name for name in found if is_named(name, "list")]
        factors = [name for name in found if name not in lists]
        kept = []
        for name in found:
            others = [x for x in (*factors, *self._many()) if x != name]
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

    def _many(self) -> list[str]:
        """Columns of conditions with more levels than are found."""
        return [
            name
            for name, values in self.columns.items()
            if len(values.levels) > MOST_LABELS and folded(name).startswith("cond")
        ]

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

    def _follows(self, name: str, others: Sequence[str]) -> bool:
        codes = [self.columns[other].codes for other in others]
        return is_known_from(self.columns[name].codes, codes)

    def _rotates(self, name: str, others: Sequence[str]) -> bool:
        """Whether a column follows from others within each item, but not in all items alike."""
        codes = [self.columns[other].codes for other in others]
        within = is_known_from(self.columns[name].codes, [self.items, *codes])
        return bool(others) and within and not self._follows(name, others)

    def others(self, found: Collection[str]) -> dict[str, str]:
        """What the columns beside the conditions are."""
        return {name: self._use(name, found) for name in self.columns if name not in found}

    def _use(self, name: str, found: Collection[str]) -> str:
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
        if values.is_number and n > MOST_LEVELS:
            return "numbers"
        if n > MOST_LEVELS and 2 * n > len(values.codes):
            return f"not used ({n:,} values that hardly repeat)"
        if n > MOST_LABELS:
            many = f"{n:,} levels, more than {MOST_LABELS}"
            return f"not used ({many}: give --conditions or --split)"
        return "follows from item" if self._rotates(name, [*found]) else "not a condition"


def why_no_conditions(table: DataFrame, response: str = "") -> str:
    """Returns why no column of a table is a condition, and what to do."""
    uses = uses_of(table, response=response)
    if uses.split:
        return uses.split
    if uses.alike:
        both = " and ".join(uses.alike)
        return f"{both} explain the rows equally well: name one by --conditions {uses.alike[0]}"
    if uses.restarts:
        name = uses.restarts[0]
        return f"item numbers begin anew in each {name}: give --item {name} item"
    names = [x for x, use in uses.others.items() if use not in ("reader", "position", "numbers")]
    levels = table[names].apply(level_texts).assign(item=table["item"])
    by_item = levels.groupby("item")[names].nunique()
    inner = [name for name in names if by_item[name].median() >= 2]
    outer = [name for name in names if by_item[name].max() <= 1]
    for name, block in product(inner, outer):
        if levels[block].nunique() > MOST_LABELS or levels[name].nunique() > 4 * MOST_LABELS:
            continue
        if levels.groupby(block)["item"].nunique().min() < 2:
            continue  # a column that names items
        parts = {x: in_order(part[name].dropna().unique()) for x, part in levels.groupby(block)}
        sizes = levels.groupby([block, "item"])[name].nunique()
        is_full = [(sizes[level] == len(part)).mean() >= 0.5 for level, part in parts.items()]
        if len(parts) >= 2 and all(is_full) and len({*parts.values()}) == len(parts):
            block_levels = "; ".join(f"{level}: {', '.join(part)}" for level, part in parts.items())
            has = f"{name} has other levels at each level of {block} ({block_levels})"
            return f"{has}: choose one by --filter {block}={next(iter(parts))}"
    for name in inner:
        n = levels[name].nunique()
        if MOST_LABELS < n <= 4 * MOST_LABELS and levels[name].duplicated().mean() >= 0.5:
            has = f"{name} has {n} levels, more than {MOST_LABELS}"
            remedy = f"name it by --conditions {name}, keep some by --filter {name}=A,B"
            split = split_of(in_order(levels[name].dropna().unique()), table.columns)
            divides = f"--split {quote(f'{name}={split}')}" if split else "--split"
            return f"{has}: {remedy}, divide them by {divides}"
    return NO_CONDITION
