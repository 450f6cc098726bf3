"""The design of a user's own rows: conditions within items, other columns, and what looks wrong."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations
from math import prod
from shlex import quote
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmdiag import diagnostics
from lmdiag.stimuli.designs.column_warnings import restart_lines, warnings_of, why_no_conditions
from lmdiag.stimuli.designs.comparing_options import comparing_options
from lmdiag.stimuli.designs.conditions import NO_CONDITIONS, ColumnUses, uses_of
from lmdiag.stimuli.designs.item_keys import item_key
from lmdiag.stimuli.designs.shown import first_rows, uses_text
from lmdiag.stimuli.stimulus_rows import Stimuli
from lmdiag.stimuli.values.codes import (
    Codes,
    combine_codes,
    first_row_of_each,
    is_determined_by,
    n_distinct_by,
)
from lmdiag.stimuli.values.critical_words import critical_lines, critical_uses
from lmdiag.stimuli.values.items import item_column
from lmdiag.stimuli.values.kinds import MOST_LABELS, values_of
from lmdiag.stimuli.values.levels import in_given_order, joined_names
from lmdiag.stimuli.values.names import TEXT_COLUMNS
from lmdiag.stimuli.values.splits import split_message_for_item_names
from lmdiag.tables.table_files import name_texts
from lmdiag.text import column_like, first_few, folded, suggest, visible
from lmdiag.types import FOUND_DESIGN, WHOLE_SENTENCE, BadInput, DesignOptions

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_SHARES = "shares of people, for spearman_human"
_FORMS = {
    "": "words in context",
    "cloze": "words that people gave",
    "sentences": "sentences",
    "minimal_pairs": "sentences of pairs",
}


@dataclass(frozen=True)
class Design:
    """How the rows of a user's own data are read.

    Attributes:
        n_rows: number of rows.
        form: what a row is, in words.
        n_items: number of items; 0 without a column that names them.
        levels: condition -> level -> number of rows.
        cells: cell of the crossed conditions -> number of items and of rows.
        n_complete: number of items with all cells.
        other_uses: column that is not a condition -> what it is, in words.
        warnings: what looks wrong, one line each.
        texts: columns of the texts that are read.
        rows: the first row as it is read; see `lmdiag.stimuli.designs.shown.first_rows`.
        comparing_options: options that compare good rows with bad ones; "" for none.
    """

    n_rows: int
    form: str
    n_items: int = 0
    levels: dict[str, dict[str, int]] = field(default_factory=dict)
    cells: dict[str, tuple[int, int]] = field(default_factory=dict)
    n_complete: int = 0
    other_uses: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    texts: Sequence[str] = ()
    rows: Sequence[str] = ()
    comparing_options: str = ""

    def summary(self) -> str:
        """Returns one line: the rows, the conditions with their levels, the other columns.

        For example, "8 sentences; text: sentence; 4 items; conditions: number (sg, pl); not used:
        note".
        """
        parts = [f"{self.n_rows:,} {self.form}", f"text: {', '.join(self.texts)}"]
        if self.n_items:
            conditions = [f"{name} ({', '.join(of)})" for name, of in self.levels.items()]
            parts.append(f"{self.n_items:,} items")
            parts.append(f"conditions: {' x '.join(conditions) or 'none'}")
        if self.other_uses:
            parts.append(uses_text(self.other_uses))
        return visible("; ".join(parts))


def check_columns(stimuli: Mapping[str, Stimuli], design: DesignOptions) -> None:
    """Checks that the rows of some task have the columns of a design; `BadInput` if not.

    Args:
        stimuli: task -> its rows.
        design: the columns that the user names, and the region.
    """
    names = dict.fromkeys(name for rows in stimuli.values() for name in rows.columns())
    for name in design.columns():
        if column_like(name, names) not in names:
            close = suggest(name, names)
            raise BadInput(f"no column {name!r}{close}: choose from {', '.join(names)}")
    has_regions = any(rows.regions is not None for rows in stimuli.values())
    if design.region not in ("", WHOLE_SENTENCE) and not has_regions:
        raise BadInput(
            f"--region {design.region}: the rows have no regions: give columns region_1, region_2, "
            "..., put | between the regions of a sentence, or name a critical word by --critical"
        )


def design_of(stimuli: Stimuli, options: DesignOptions = FOUND_DESIGN) -> Design | None:
    """Returns the design of a user's own rows; None for a diagnostic's items and for suites.

    What the columns of a sample are is judged on all rows.

    Args:
        stimuli: the rows.
        options: conditions, items and orders of levels that the user gave.
    """
    if stimuli.whole is not None:
        return _design_of_sample(stimuli, stimuli.whole, options)
    if stimuli.task in diagnostics.built_in() or stimuli.form not in _FORMS:
        return None
    form = _FORMS[stimuli.form]
    texts = [name for name in _filled_texts(stimuli) if _is_read(stimuli, name)]
    if stimuli.form == "cloze":  # the counts of words are not conditions
        n_items = len({*stimuli.columns()["item"]})
        return Design(len(stimuli), form, n_items=n_items, texts=texts, rows=first_rows(stimuli))
    # rows with items have a design; of pairs of sentences the two of a pair are compared instead
    if stimuli.regions:
        form += f" in up to {max(map(len, stimuli.regions))} regions"
    groups = _column_groups(stimuli, options, texts)
    if groups.has_items and stimuli.form != "minimal_pairs":
        return _design_with_items(stimuli, options, form, groups)
    # without a design: why there are no items, columns of texts that are not read, repeated rows
    warnings: list[str] = []
    if stimuli.form != "minimal_pairs":
        warnings += _item_hints(stimuli, groups.others, texts)
    warnings += _further_texts(stimuli, groups.others)
    if not warnings:
        warnings += _repeated_texts(stimuli, texts)
    other_uses = {
        name: "break-down" if name in stimuli.levels else "not used"
        for name in groups.others
        if name != "good"
    }
    return Design(
        len(stimuli),
        form,
        other_uses={**other_uses, **groups.known_uses},
        warnings=warnings,
        texts=texts,
        rows=first_rows(stimuli),
    )


def _filled_texts(stimuli: Stimuli) -> list[str]:
    """Returns the columns of texts that have some text."""
    columns = stimuli.columns()
    return [name for name in TEXT_COLUMNS if any(columns.get(name, ()))]


def _is_read(stimuli: Stimuli, text_column: str) -> bool:
    """Returns whether a model reads a column of texts.

    Rows that ask for a word are read by the columns around the blank, and other rows by `sentence`.
    """
    is_sentence = text_column == "sentence"
    return not is_sentence if stimuli.asks_words else is_sentence


@dataclass(frozen=True)
class _ColumnGroups:
    """The columns of rows, by what is known of them before conditions are looked for.

    Attributes:
        texts: columns of the texts that are read.
        items: columns whose values together name the items.
        has_items: whether these columns have values.
        sources_of_item: columns with the same values as the column `item`, which was made of one.
        others: further columns, among which the conditions are.
        known_uses: column -> what it is, where that follows from its name or its values.
    """

    texts: Sequence[str]
    items: Sequence[str]
    has_items: bool
    sources_of_item: Sequence[str]
    others: Sequence[str]
    known_uses: Mapping[str, str]


def _column_groups(stimuli: Stimuli, options: DesignOptions, texts: Sequence[str]) -> _ColumnGroups:
    """Returns the columns of rows in groups; `texts` are those of the texts that are read.

    For example, of the columns id, item, sentence, number and note (empty): `texts` ["sentence"],
    `items` ["item"], `others` ["number"] and `known_uses` {"note": "not used (empty)"}.
    """
    columns = stimuli.columns()
    items = item_columns(options, columns)
    given_conditions = [column_like(name, columns) for name in options.conditions]
    filled = [
        name for name, values in columns.items() if any(value not in (None, "") for value in values)
    ]
    # without the columns that lmdiag reads itself (NO_CONDITIONS), such as id and sentence
    own_columns = [name for name in filled if name not in (*NO_CONDITIONS, *items)]
    # the user's own column, as `story`, of which the column `item` was made
    sources_of_item = [name for name in own_columns if columns[name] == columns["item"]]
    others = [
        name
        for name in filled
        if name in given_conditions or (name in own_columns and name not in sources_of_item)
    ]
    # Each column has one of the uses below, except that it may have the critical words, too: this
    # use is set last, and replaces the others.
    known_uses = {}
    # where rows are compared, numbers in a column human are shares of people, and no condition
    if "human" in others and stimuli.compared and stimuli.diagnostic.has_shares(columns):
        known_uses["human"] = _SHARES
    for name in _filled_texts(stimuli):
        if name not in texts:
            known_uses[name] = "not read"
    for name in sources_of_item:
        known_uses[name] = "item"
    for name in columns:
        # columns of lmdiag itself are not named where they are empty, since all rows have them
        if name not in (*NO_CONDITIONS, "condition", "good", *items, *filled):
            known_uses[name] = "not used (empty)"
    if stimuli.regions:
        known_uses |= critical_uses(columns, stimuli.regions)
    has_items = all(name in filled for name in items)
    return _ColumnGroups(texts, items, has_items, sources_of_item, others, known_uses)


def _design_with_items(
    stimuli: Stimuli, options: DesignOptions, form: str, groups: _ColumnGroups
) -> Design:
    """Returns the design of rows with items, among whose columns conditions are looked for.

    `form` is what a row is, in words.
    """
    from pandas import DataFrame, Series

    columns = stimuli.columns()
    # the table in which conditions are looked for, and what its column of items is called
    names = (*groups.others, *groups.texts)
    table = DataFrame({name: Series(columns[name], dtype=object) for name in names})
    table["item"] = joined_items(
        DataFrame({name: Series(columns[name], dtype=object) for name in groups.items})
    )
    item_column = groups.items[0] if len(groups.items) == 1 else ""
    # the user's column, of which the column `item` was made
    if item_column == "item" and groups.sources_of_item:
        item_column = groups.sources_of_item[0]
    # the conditions, with their levels in the order that the user gave
    given_conditions = [column_like(name, columns) for name in options.conditions]
    given_conditions = [name for name in given_conditions if name in groups.others]
    uses = uses_of(table, given_conditions, item=item_column)
    given_orders = options.given().get("levels", {})
    orders = {column_like(name, columns): order for name, order in given_orders.items()}
    conditions = {
        name: in_given_order(name, levels, orders.get(name, ()))
        for name, levels in uses.conditions.items()
    }
    uses = replace(uses, conditions=conditions)
    known_uses = {x: use for x, use in groups.known_uses.items() if x not in conditions}
    item_design = _ItemDesign(stimuli, uses, groups.items)
    return Design(
        len(stimuli),
        form,
        n_items=len(item_design.items.levels),
        levels=item_design.level_counts(),
        cells=item_design.cell_counts(),
        n_complete=int(item_design.is_complete(conditions).sum()),
        other_uses={**uses.other_uses, **known_uses},
        warnings=[*item_design.warnings()],
        texts=groups.texts,
        rows=first_rows(stimuli, conditions, table["item"].tolist()),
        comparing_options=item_design.comparing_options(),
    )


def _design_of_sample(sample: Stimuli, whole: Stimuli, options: DesignOptions) -> Design | None:
    """Returns the design of a sample, with the conditions and warnings of all rows, `whole`.

    Numbers of rows and items are those of the sample. What its columns are is judged on all rows,
    since a sample of few items may have conditions by chance, or lack levels.
    """
    whole_design = design_of(whole, options)
    if whole_design is None:
        return None
    conditions = tuple(whole_design.levels) or options.conditions
    design = design_of(replace(sample, whole=None), replace(options, conditions=conditions))
    if design is None:
        return None
    if not whole_design.levels:  # what a sample seems to have is not a condition either
        design = replace(design, levels={}, cells={}, n_complete=0)
    return replace(
        design,
        other_uses=whole_design.other_uses,
        warnings=whole_design.warnings,
        comparing_options=whole_design.comparing_options,
    )


def _further_texts(stimuli: Stimuli, others: Iterable[str]) -> Iterator[str]:
    """Yields one line if some of the other columns have texts, as sentence2, and are not read."""
    read = "target" if stimuli.asks_words else "sentence"
    is_numbered = re.compile(rf"{read}(\d\d?|[a-d])").fullmatch
    columns = stimuli.columns()
    unread_texts = []
    for name in others:
        if is_numbered(folded(name)) and values_of(columns[name]).kind() in ("text", "word"):
            unread_texts.append(name)
    if unread_texts:
        wide = " ".join(quote(name) for name in (read, *unread_texts))
        yield f"{', '.join(unread_texts)} not read: --wide {wide} reads a row for each"


def _repeated_texts(stimuli: Stimuli, texts: Sequence[str]) -> Iterator[str]:
    """Yields one line if rows without items have the text of another row; `texts` are columns."""
    n_repeated = len(stimuli) - len({*stimuli.texts(*texts)})
    if n_repeated and not stimuli.compared:
        has = f"{n_repeated:,} of {len(stimuli):,} rows have the text of another row"
        yield f"{has}, and count as often as they stand there"


def _item_hints(stimuli: Stimuli, others: Sequence[str], texts: Sequence[str]) -> Iterator[str]:
    """Yields up to one line: which column, or part of its labels, may name the items.

    For example, "no column item: if story names the items, give --item story".

    Args:
        stimuli: rows without items.
        others: columns that may name them.
        texts: columns of the texts that are read.
    """
    columns = stimuli.columns()
    values = {name: values_of(columns[name]) for name in others}
    name = item_column(values)
    if name:
        hint = f"if {name} names the items, give --item {quote(name)}"
        # with this column as the item, another column may be found that names the items with it
        design = design_of(stimuli, DesignOptions(item=(name,)))
        for warning in design.warnings if design else ():
            if "begin anew" in warning:
                hint = warning
                break
        yield f"no column item: {hint}"
        return
    # names of rows, as 7_sg in the column id, may have the item in them
    values["id"] = values_of(columns["id"])
    for name, labels in values.items():
        if labels.kind() in ("word", "label"):
            message = split_message_for_item_names(
                labels, stimuli.texts(*texts), other_columns={}, column=name
            )
            if message:
                yield f"no column item: {message}"
                return


def item_columns(options: DesignOptions, columns: Collection[str]) -> list[str]:
    """Returns the columns whose values together name the items: the user's, or else `item`.

    A name in another letter case becomes that of the column.
    """
    return [column_like(name, columns) for name in options.item or ("item",)]


def joined_items(columns: DataFrame) -> Series:
    """Returns the item of each row: the values of some columns, joined by blanks.

    NaN where a value is missing.

    Args:
        columns: those that name the items together.
    """
    texts = columns.apply(name_texts)
    if texts.shape[1] == 1:
        return texts.iloc[:, 0]
    return joined_names(texts, " ").where(texts.notna().all(axis=1))


# ---- conditions within items ---------------------------------------------------------------------


class _ItemDesign:
    """The conditions of rows with items, and what looks wrong in them.

    Args:
        stimuli: the rows.
        uses: what their columns are used for.
        item_names: columns that name the items.

    Attributes:
        items: the names of the items.
        columns: name -> its levels.
        text_codes: number of the text of each row; None without texts.
        factors: condition -> number of the level of each row, -1 where one is set aside or missing.
    """

    def __init__(self, stimuli: Stimuli, uses: ColumnUses, item_names: Sequence[str]) -> None:
        self.stimuli = stimuli
        self.item_names = item_names
        self.uses = uses
        self.items = uses.table.items
        self.columns = uses.table.columns
        self.text_codes = uses.table.text_codes
        # condition -> number of the level of each row, -1 where it is set aside or missing
        self.factors = {
            name: self._codes_of_levels(name, levels) for name, levels in uses.conditions.items()
        }

    def _codes_of_levels(self, name: str, levels: Sequence[str]) -> Codes:
        """Returns the number of the level of each row, (n rows,); -1 where it is not in `levels`.

        The levels are those of a condition, without levels that are set aside.
        """
        values = self.columns[name]
        # the last entry is for code -1
        is_kept = np.array([*(level in levels for level in values.levels), False])
        return np.where(is_kept[values.codes], values.codes, -1)

    def level_counts(self) -> dict[str, dict[str, int]]:
        """Returns condition -> level -> its number of rows."""
        counts = {}
        for name, levels in self.uses.conditions.items():
            n_rows = self.columns[name].by_count()
            counts[name] = {level: n_rows[level] for level in levels}
        return counts

    def cell_counts(self) -> dict[str, tuple[int, int]]:
        """Returns cell of the crossed conditions -> its numbers of items and of rows.

        For example, {"sg, match": (24, 24), ...}; {} without conditions.
        """
        if not self.factors:
            return {}
        cells = combine_codes(*self.factors.values())
        cells = np.where(self.items.codes < 0, -1, cells)  # rows without an item do not count
        n_items = n_distinct_by(cells, self.items.codes)
        n_rows = np.bincount(cells[cells >= 0])
        # levels of the conditions, as ("sg", "match") -> number of their cell
        cell_of = {self._levels_at(row): int(cells[row]) for row in first_row_of_each(cells)}
        return {
            ", ".join(levels): (int(n_items[cell]), int(n_rows[cell]))
            for levels, cell in sorted(cell_of.items())
        }

    def _levels_at(self, row: int) -> tuple[str, ...]:
        """Returns the levels of the conditions in a row."""
        columns = [self.columns[name] for name in self.factors]
        return tuple(column.levels[column.codes[row]] for column in columns)

    def is_complete(
        self, conditions: Iterable[str], is_kept: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Returns which items have rows in all cells of conditions, (n items,).

        For example, [True, False] with the condition number (sg, pl), if item 0 has rows with sg
        and with pl, and item 1 has rows with sg alone.

        Args:
            conditions: that are crossed.
            is_kept: which rows count, (n rows,); None for all.
        """
        names = [*conditions]
        n_cells = prod(len(self.uses.conditions[name]) for name in names)
        # number of the item and cell of each row, -1 for a level that is set aside
        cells_of_items = combine_codes(self.items.codes, *(self.factors[name] for name in names))
        if is_kept is not None:
            cells_of_items = np.where(is_kept, cells_of_items, -1)
        rows = first_row_of_each(cells_of_items)  # one row for each item and cell
        n_items = len(self.items.levels)
        n_cells_of_item = np.bincount(self.items.codes[rows], minlength=n_items)
        is_complete: NDArray[np.bool_] = n_cells_of_item == n_cells
        return is_complete

    def _shown_rows(self, is_shown: NDArray[np.bool_] | Series) -> str:
        """Returns what messages call the rows where `is_shown` is true, as "lines 4, 5"."""
        return self.stimuli.shown_rows(np.flatnonzero(is_shown).tolist())

    def warnings(self) -> Iterator[str]:
        """Yields what looks wrong, a line each."""
        stimuli = self.stimuli
        uses = self.uses
        yield from warnings_of(uses, stimuli.shown_rows)
        yield from self._line_breaks()
        yield from _further_texts(stimuli, uses.other_uses)
        if stimuli.form == "sentences" and not stimuli.regions:
            yield from critical_lines(stimuli.columns(), stimuli.shown_rows)
        # rows that are compared may be several bad ones in a cell, and with items that are wrong,
        # nothing follows for conditions
        are_conditions_clear = not (stimuli.compared or uses.restart_columns)
        if uses.conditions:
            yield from self._incomplete_items()
            if are_conditions_clear:
                yield from self._cells_of_several_texts()
            if stimuli.regions:
                yield from self._unequal_regions()
                yield from self._empty_regions()
        elif are_conditions_clear:
            reason = why_no_conditions(uses)
            if reason:
                yield reason

    def _line_breaks(self) -> Iterator[str]:
        """Yields which texts have line breaks that most other ones lack."""
        columns = self.stimuli.columns()
        for name in TEXT_COLUMNS:
            if name not in columns:
                continue
            has_break = np.array(["\n" in str(text) or "\r" in str(text) for text in columns[name]])
            if 0 < 2 * has_break.sum() < len(has_break):
                shown = self._shown_rows(has_break)
                n = f"{has_break.sum():,} of {len(has_break):,} rows ({shown})"
                yield f"{name} has a line break in {n}, which the model reads: write a blank"

    def comparing_options(self) -> str:
        """Returns the options that compare good rows with bad ones, where a column names them."""
        if self.stimuli.compared:
            return ""
        conditions = [*self.uses.conditions]
        return comparing_options(self.columns, self.items, self.item_names, conditions)

    def _incomplete_items(self) -> Iterator[str]:
        """Yields a line if items lack cells of the crossed conditions.

        For example, "left out, since they have no row in some cells of number x match: 2 of 24
        items (7, 9)"; or, if all items lack cells, what to do: "no item has all cells of number x
        match, so no effects are tested: give --conditions number (24 items)".
        """
        conditions = [*self.uses.conditions]
        crossed = " x ".join(conditions)
        has_cell = combine_codes(*self.factors.values()) >= 0  # rows with all conditions
        item_of_row = np.where(has_cell, self.items.codes, -1)
        items = item_of_row[first_row_of_each(item_of_row)]  # each item of such rows once
        is_complete = self.is_complete(conditions)
        lacking = [self.items.levels[item] for item in items[~is_complete[items]].tolist()]
        if lacking and is_complete.any():
            n = f"{len(lacking)} of {len(items)} items ({first_few(lacking)})"
            yield f"left out, since they have no row in some cells of {crossed}: {n}"
        elif lacking:
            remedy = self._remedy_for_incomplete_items() or "give other items"
            yield f"no item has all cells of {crossed}, so no effects are tested: {remedy}"

    def _remedy_for_incomplete_items(self) -> str:
        """Returns which option leaves items with all cells, and how many; "" if no option does.

        For example, "give --filter gram=yes (24 items)": the level of a condition at which the most
        items have all cells of the other conditions. If there is no such level, "give --conditions
        gram (12 items)": as many conditions as possible, of which some item has all cells.
        """
        conditions = [*self.uses.conditions]
        few = conditions[:MOST_LABELS]  # of many columns, there are too many combinations
        n_items = {}
        if len(conditions) > 1:
            for name in few:
                for level in self.uses.conditions[name]:
                    option = f"--filter {quote(f'{name}={level}')}"
                    n_items[option] = self._n_complete_at(name, level)
        if any(n_items.values()):
            option = max(n_items, key=n_items.__getitem__)
            return f"give {option} ({n_items[option]} items)"
        for n in range(len(few), 0, -1):
            for names in combinations(few, n):
                n_complete = int(self.is_complete(names).sum())
                if n_complete:
                    option = f"--conditions {' '.join(quote(name) for name in names)}"
                    return f"give {option} ({n_complete} items)"
        return ""

    def _n_complete_at(self, name: str, level: str) -> int:
        """Returns how many items have all cells of the other conditions, in rows at one level.

        Args:
            name: of the condition with this level.
            level: that the rows have.
        """
        others = [other for other in self.uses.conditions if other != name]
        is_at = self.columns[name].codes == self.columns[name].levels.index(level)
        return int(self.is_complete(others, is_at).sum())

    def _cells_of_several_texts(self) -> Iterator[str]:
        """Yields a line if cells of an item have several texts, and why that may be.

        A cell is an item at one level of each condition, as item 7 with sg and match. The line
        names the first such cell with its rows, and the likeliest reason: a level is wrong, another
        column tells the texts apart, or item numbers start again (in several lines, if several
        columns may be what they start again at).
        """
        texts = self.text_codes
        if texts is None:
            return
        # which cells have several texts
        cells = combine_codes(self.items.codes, *self.factors.values())
        cells = np.where(texts < 0, -1, cells)
        n_texts = n_distinct_by(cells, texts)  # of each cell
        several = np.flatnonzero(n_texts > 1)  # numbers of the cells with several texts
        if not several.size:
            return
        # the first of these cells, by the names of items and levels
        rows = np.flatnonzero(np.isin(cells, several))  # of these cells
        # name of the cell, as ("7", "sg", "match") -> its first row
        row_of_cell = {self._cell_at(row): row for row in rows[first_row_of_each(cells[rows])]}
        name, row = min(row_of_cell.items())
        shown = self._shown_rows(cells == cells[row])
        has = f"item {', '.join(name)} has {n_texts[cells[row]]} texts ({shown})"
        if len(several) > 1:
            has += f", and {len(several) - 1} other cells have several"
        # the likeliest reason: all items of these cells lack another cell, as if a row with a wrong
        # level were in the cell beside its own
        if not self.is_complete(self.uses.conditions)[self.items.codes[rows]].any():
            yield f"{has} and no row in another cell, so that a level may be wrong: correct it"
            return
        # in more than a quarter of the cells it is not a mistake in single rows
        is_frequent = 4 * len(several) > np.count_nonzero(n_texts)
        divider = self._column_that_divides(cells, texts) if is_frequent else ""
        if is_frequent and item_key(self.uses)[0]:
            choice = f", or choose rows by --filter {divider}=VALUE" if divider else ""
            for line in restart_lines(self.uses):
                yield f"{line}{choice}"
        elif divider:
            remedy = f"choose rows by --filter {divider}=VALUE, else their mean is analysed"
            yield f"{has}: {remedy}"
        else:
            remedy = "their mean is analysed; if a column tells them apart, it is a condition "
            remedy += "(--conditions COLUMN) or a part of the item (--item COLUMN item)"
            yield f"{has}: {remedy}"

    def _cell_at(self, row: int) -> tuple[str, ...]:
        """Returns the item and the levels of the conditions in a row, as ("7", "sg", "match")."""
        return self.items.levels[self.items.codes[row]], *self._levels_at(row)

    def _column_that_divides(self, cells: Codes, texts: Codes) -> str:
        """Returns the first column that tells the texts of all cells apart; "" for none.

        Each cell has one text at each level of the column, as of a column `version` whose versions
        have texts of their own. The name is quoted for a command line.

        Args:
            cells: number of the item and the levels of the conditions of each row.
            texts: number of the text of each row.
        """
        for name in self.uses.other_uses:
            values = self.columns[name]
            parts = combine_codes(cells, values.codes)
            is_divided = (parts >= 0).any() and is_determined_by(texts, [parts])
            if len(values.levels) > 1 and is_divided:
                return quote(name)
        return ""

    def _unequal_regions(self) -> Iterator[str]:
        """Yields a line if sentences of an item differ in their number of regions without names.

        Regions without names are compared by their numbers: region 3 would be another part of the
        sentence in a condition that lacks region 2.
        """
        regions = self.stimuli.regions or ()
        n_unnamed = np.array([sum(not region["name"] for region in row) for row in regions])
        is_unequal = n_distinct_by(self.items.codes, n_unnamed) > 1  # of each item
        if is_unequal.any():
            n = f"{int(is_unequal.sum())} of {len(self.items.levels)} items"
            sizes = f"{n_unnamed.min()} to {n_unnamed.max()} regions"
            what = f"sentences of one item have {sizes} in {n}"
            remedy = "leave one empty (||) where a condition lacks it"
            yield f"{what}, so the same number is not the same part: {remedy}"

    def _empty_regions(self) -> Iterator[str]:
        """Yields a line for each region that is empty in some rows of a condition, but not in all.

        A region that a condition lacks is empty in all its rows; otherwise it may be a mistake.
        """
        from pandas import DataFrame, Series

        regions = self.stimuli.regions or ()
        empty_of_rows = [
            {region["number"]: region["start"] == region["end"] for region in row}
            for row in regions
        ]
        is_empty = DataFrame(empty_of_rows).eq(True)  # a region that a row lacks is not empty
        # share of the rows of the same condition in which a region is empty
        cells = Series(combine_codes(*(self.columns[x].codes for x in self.uses.conditions)))
        share_of_cell = is_empty.groupby(cells.where(cells >= 0)).transform("mean")
        for number in sorted(is_empty):
            is_odd = is_empty[number] & (share_of_cell[number] < 1)
            if is_odd.any():
                shown = self._shown_rows(is_odd)
                has = f"region_{number} is empty in {int(is_odd.sum())} of {len(is_odd)} rows"
                yield (
                    f"{has} ({shown}) but not in all of their condition: its surprisal is missing "
                    "there"
                )
