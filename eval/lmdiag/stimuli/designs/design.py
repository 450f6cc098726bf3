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
from lmdiag.stimuli.designs.conditions import NO_CONDITIONS, Uses, uses_of
from lmdiag.stimuli.designs.item_keys import item_key
from lmdiag.stimuli.designs.shown import first_rows, uses_text
from lmdiag.stimuli.stimulus_rows import Stimuli
from lmdiag.stimuli.values.codes import Codes, combined, first_rows_of, is_known_from, n_distinct_by
from lmdiag.stimuli.values.critical_words import critical_lines, critical_uses
from lmdiag.stimuli.values.items import item_column
from lmdiag.stimuli.values.kinds import MOST_LABELS, values_of
from lmdiag.stimuli.values.levels import in_given_order, joined_names
from lmdiag.stimuli.values.names import TEXT_COLUMNS
from lmdiag.stimuli.values.splits import split_of_names
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
        others: further column -> what it is.
        warnings: what looks wrong, one line each.
        texts: columns of the texts that are read.
        rows: the first row as it is read; see `lmdiag.stimuli.designs.shown.first_rows`.
        comparing: options that compare good rows with bad ones; "" for none.
    """

    n_rows: int
    form: str
    n_items: int = 0
    levels: dict[str, dict[str, int]] = field(default_factory=dict)
    cells: dict[str, tuple[int, int]] = field(default_factory=dict)
    n_complete: int = 0
    others: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)
    texts: Sequence[str] = ()
    rows: Sequence[str] = ()
    comparing: str = ""

    def summary(self) -> str:
        """Returns one line: the rows, the conditions with their levels, the other columns."""
        parts = [f"{self.n_rows:,} {self.form}", f"text: {', '.join(self.texts)}"]
        if self.n_items:
            crossed = " x ".join(f"{name} ({', '.join(of)})" for name, of in self.levels.items())
            parts += [f"{self.n_items:,} items", f"conditions: {crossed or 'none'}"]
        parts += [uses_text(self.others)] if self.others else []
        return visible("; ".join(parts))


def check_columns(stimuli: Mapping[str, Stimuli], design: DesignOptions) -> None:
    """Checks that the rows of some task have the columns of a design; `BadInput` if not."""
    names = dict.fromkeys(name for rows in stimuli.values() for name in rows.columns())
    for name in design.columns():
        if column_like(name, names) not in names:
            close = suggest(name, names)
            raise BadInput(f"no column {name!r}{close}: choose from {', '.join(names)}")
    if design.region not in ("", WHOLE_SENTENCE) and all(
        rows.regions is None for rows in stimuli.values()
    ):
        raise BadInput(
            f"--region {design.region}: the rows have no regions: give columns region_1, region_2, "
            "..., put | between the regions of a sentence, or name a critical word by --critical"
        )


def design_of(stimuli: Stimuli, options: DesignOptions = FOUND_DESIGN) -> Design | None:
    """Returns the design of a user's own rows; None for a diagnostic's items and for suites.

    What the columns of a sample are is judged on all rows.
    """
    from pandas import DataFrame, Series

    if stimuli.whole is not None:
        return _of_sample(stimuli, stimuli.whole, options)
    if stimuli.task in diagnostics.built_in() or stimuli.form not in _FORMS:
        return None
    columns = stimuli.columns()
    form = _FORMS[stimuli.form]
    filled_texts = [name for name in TEXT_COLUMNS if any(columns.get(name, ()))]
    texts = [name for name in filled_texts if (name != "sentence") == stimuli.asks_words]
    if stimuli.form == "cloze":  # the counts of words are not conditions
        n_items = len({*columns["item"]})
        return Design(len(stimuli), form, n_items=n_items, texts=texts, rows=first_rows(stimuli))
    unread = dict.fromkeys((name for name in filled_texts if name not in texts), "not read")
    names = item_columns(options, columns)
    named = [column_like(name, columns) for name in options.conditions]
    filled = [name for name, values in columns.items() if any(x not in (None, "") for x in values)]
    further = [x for x in filled if x not in (*NO_CONDITIONS, *names)]
    own_names = [x for x in further if columns[x] == columns["item"]]  # of the column item
    others = [x for x in filled if x in named or (x in further and x not in own_names)]
    has_shares = "human" in others and stimuli.compared and stimuli.diagnostic.has_shares(columns)
    known_uses = {**({"human": _SHARES} if has_shares else {}), **unread}
    known_uses |= dict.fromkeys(own_names, "item")
    never = {*NO_CONDITIONS, "condition", "good", *names, *filled}
    known_uses |= dict.fromkeys((x for x in columns if x not in never), "not used (empty)")
    if stimuli.regions:
        known_uses |= critical_uses(columns, stimuli.regions)
        form += f" in up to {max(map(len, stimuli.regions))} regions"
    if not {*names} <= {*filled} or stimuli.form == "minimal_pairs":
        plain_uses = {
            x: "break-down" if x in stimuli.levels else "not used" for x in others if x != "good"
        }
        hints = [] if stimuli.form == "minimal_pairs" else [*_item_hints(stimuli, others, texts)]
        hints += _further_texts(stimuli, others)
        hints = hints or [*_repeated_texts(stimuli, texts)]
        return Design(
            len(stimuli),
            form,
            others=plain_uses | known_uses,
            warnings=hints,
            texts=texts,
            rows=first_rows(stimuli),
        )
    values = {name: Series(columns[name], dtype=object) for name in (*others, *texts, *names)}
    table = DataFrame({name: values[name] for name in (*others, *texts)})
    table["item"] = joined_items(DataFrame({name: values[name] for name in names}))
    named = [name for name in named if name in others]
    item = "" if len(names) > 1 else names[0]
    item = next(iter(own_names), item) if item == "item" else item
    uses = uses_of(table, named, item=item)
    orders = options.given().get("levels", {})
    given = {column_like(name, columns): order for name, order in orders.items()}
    kept = {x: in_given_order(x, of, given.get(x, ())) for x, of in uses.levels.items()}
    uses = replace(uses, levels=kept)
    design = _Found(stimuli, uses, names)
    return Design(
        len(stimuli),
        form,
        n_items=len(design.items.levels),
        levels=design.levels(),
        cells=design.cells(),
        n_complete=int(design.complete(uses.levels).sum()),
        others={**uses.others, **{x: v for x, v in known_uses.items() if x not in uses.levels}},
        warnings=[*design.warnings()],
        texts=texts,
        rows=first_rows(stimuli, uses.levels, table["item"].tolist()),
        comparing=design.comparing(),
    )


def _of_sample(sample: Stimuli, whole: Stimuli, options: DesignOptions) -> Design | None:
    """The design of a sample, with the conditions of all rows."""
    found = design_of(whole, options)
    if found is None:
        return None
    conditions = tuple(found.levels) or options.conditions
    design = design_of(replace(sample, whole=None), replace(options, conditions=conditions))
    if design is None:
        return None
    if not found.levels:
        design = replace(design, levels={}, cells={}, n_complete=0)
    return replace(design, others=found.others, warnings=found.warnings, comparing=found.comparing)


def _further_texts(stimuli: Stimuli, others: Iterable[str]) -> Iterator[str]:
    """Yields the columns with texts beside one that is read whose names are numbered after it."""
    read = "target" if stimuli.asks_words else "sentence"
    is_numbered = re.compile(rf"{read}(\d\d?|[a-d])").fullmatch
    names = [name for name in others if is_numbered(folded(name))]
    columns = stimuli.columns()
    texts = [x for x in names if values_of(columns[x]).kind() in ("text", "word")]
    if texts:
        both = " ".join(map(quote, (read, *texts)))
        yield f"{', '.join(texts)} not read: --wide {both} reads a row for each"


def _repeated_texts(stimuli: Stimuli, texts: Sequence[str]) -> Iterator[str]:
    """Yields how many rows without items have the text of another row."""
    n_repeated = len(stimuli) - len({*stimuli.texts(*texts)})
    if n_repeated and not stimuli.compared:
        has = f"{n_repeated:,} of {len(stimuli):,} rows have the text of another row"
        yield f"{has}, and count as often as they stand there"


def _item_hints(stimuli: Stimuli, others: Sequence[str], texts: Sequence[str]) -> Iterator[str]:
    """Yields what may name the items of rows without them: a column, or a part of its labels."""
    columns = stimuli.columns()
    values = {name: values_of(columns[name]) for name in others}
    if name := item_column(values):
        named = design_of(stimuli, DesignOptions(item=(name,)))
        lines = [line for line in named.warnings if "begin anew" in line] if named else []
        hint = f"if {name} names the items, give --item {quote(name)}"
        yield f"no column item: {lines[0] if lines else hint}"
        return
    for name, labels in {**values, "id": values_of(columns["id"])}.items():
        if labels.kind() in ("word", "label"):
            split = split_of_names(labels, stimuli.texts(*texts), {}, name)
            if split:
                yield f"no column item: {split}"
                return


def item_columns(options: DesignOptions, columns: Collection[str]) -> list[str]:
    """Returns the columns whose values together name the items."""
    return [column_like(name, columns) for name in options.item or ("item",)]


def joined_items(columns: DataFrame) -> Series:
    """Returns the item of each row: the values of some columns, joined by blanks; NaN for none."""
    texts = columns.apply(name_texts)
    if texts.shape[1] == 1:
        return texts.iloc[:, 0]
    return joined_names(texts, " ").where(texts.notna().all(axis=1))


# ---- warnings ------------------------------------------------------------------------------------


class _Found:
    """A design that was found, and what looks wrong in it.

    Args:
        stimuli: its rows.
        uses: what their columns are used for.
        item: columns that name the items.

    Attributes:
        items: the names of the items.
        columns: name -> its levels.
        text_codes: see `ItemLevels`.
        factors: condition -> codes of its levels, -1 where one is set aside or missing.
    """

    def __init__(self, stimuli: Stimuli, uses: Uses, item: Sequence[str]) -> None:
        self.stimuli = stimuli
        self.item = item
        self.uses = uses
        self.items = uses.rows.items
        self.columns = uses.rows.columns
        self.text_codes = uses.rows.text_codes
        self.factors = {name: self._kept(name, levels) for name, levels in uses.levels.items()}

    def _kept(self, name: str, levels: Sequence[str]) -> Codes:
        values = self.columns[name]
        is_kept = np.array([*(level in levels for level in values.levels), False])
        return np.where(is_kept[values.codes], values.codes, -1)

    def levels(self) -> dict[str, dict[str, int]]:
        """The levels of each condition and their numbers of rows."""
        counts = {name: self.columns[name].by_count() for name in self.uses.levels}
        return {
            name: {level: counts[name][level] for level in levels}
            for name, levels in self.uses.levels.items()
        }

    def cells(self) -> dict[str, tuple[int, int]]:
        """The cells of the crossed conditions and their numbers of items and of rows."""
        if not self.factors:
            return {}
        cells = np.where(self.items.codes < 0, -1, combined(*self.factors.values()))
        n_items = n_distinct_by(cells, self.items.codes)
        n_rows = np.bincount(cells[cells >= 0])
        names = {self._levels_at(row): int(cells[row]) for row in first_rows_of(cells)}
        return {
            ", ".join(name): (int(n_items[cell]), int(n_rows[cell]))
            for name, cell in sorted(names.items())
        }

    def _levels_at(self, row: int) -> tuple[str, ...]:
        """The levels of the conditions in a row."""
        columns = [self.columns[name] for name in self.factors]
        return tuple(column.levels[column.codes[row]] for column in columns)

    def complete(
        self, conditions: Iterable[str], is_kept: NDArray[np.bool_] | None = None
    ) -> NDArray[np.bool_]:
        """Which items have rows, of those that are kept, in all cells of conditions, (n items,)."""
        names = [*conditions]
        n_cells = prod(len(self.uses.levels[name]) for name in names)
        cells = combined(self.items.codes, *(self.factors[name] for name in names))
        rows = first_rows_of(cells if is_kept is None else np.where(is_kept, cells, -1))
        n_items = len(self.items.levels)
        complete: NDArray[np.bool_] = (
            np.bincount(self.items.codes[rows], minlength=n_items) == n_cells
        )
        return complete

    def _lines(self, rows: NDArray[np.bool_] | Series) -> str:
        """What messages call the rows that are true."""
        return self.stimuli.shown_rows(np.flatnonzero(rows).tolist())

    def warnings(self) -> Iterator[str]:
        """Yields what looks wrong, a line each."""
        uses = self.uses
        yield from warnings_of(uses, self.stimuli.shown_rows)
        yield from self._line_breaks()
        yield from _further_texts(self.stimuli, self.uses.others)
        if self.stimuli.form == "sentences" and not self.stimuli.regions:
            yield from critical_lines(self.stimuli.columns(), self.stimuli.shown_rows)
        if uses.levels:
            yield from self._cells()
            # of pairs, a contrast may have several bad rows
            if not (self.stimuli.compared or uses.restarts):
                yield from self._several_texts()
            if self.stimuli.regions:
                yield from self._unequal_regions()
                yield from self._empty_regions()
        elif not (self.stimuli.compared or uses.restarts):
            yield from filter(None, [why_no_conditions(uses)])

    def _line_breaks(self) -> Iterator[str]:
        """Yields which texts have line breaks that most other ones lack."""
        columns = self.stimuli.columns()
        for name in (name for name in TEXT_COLUMNS if name in columns):
            has_break = np.array(["\n" in str(x) or "\r" in str(x) for x in columns[name]])
            if 0 < 2 * has_break.sum() < len(has_break):
                n = f"{has_break.sum():,} of {len(has_break):,} rows ({self._lines(has_break)})"
                yield f"{name} has a line break in {n}, which the model reads: write a blank"

    def comparing(self) -> str:
        """The options that compare good rows with bad ones, where a column names them."""
        if self.stimuli.compared:
            return ""
        return comparing_options(self.columns, self.items, self.item, [*self.uses.levels])

    def _cells(self) -> Iterator[str]:
        """Yields which items lack cells, and which conditions to give if all items do."""
        found = [*self.uses.levels]
        crossed = " x ".join(found)
        items = np.where(combined(*self.factors.values()) < 0, -1, self.items.codes)
        items = items[first_rows_of(items)]
        complete = self.complete(found)
        lacking = [self.items.levels[item] for item in items[~complete[items]].tolist()]
        if lacking and complete.any():
            of = f"{len(lacking)} of {len(items)} items ({first_few(lacking)})"
            yield f"left out, since they have no row in some cells of {crossed}: {of}"
        elif lacking:
            remedy = self._complete_part() or "give other items"
            yield f"no item has all cells of {crossed}, so no effects are tested: {remedy}"

    def _complete_part(self) -> str:
        """Which level or which conditions leave items with all cells, and how many; "" for none."""
        found = [*self.uses.levels]
        few = found[:MOST_LABELS]  # of many columns, there are too many combinations
        n_items = {
            f"--filter {quote(f'{name}={level}')}": self._n_complete_at(name, level)
            for name in few
            for level in self.uses.levels[name]
            if len(found) > 1
        }
        if not any(n_items.values()):
            choices = [names for n in range(len(few), 0, -1) for names in combinations(few, n)]
            enough = next((names for names in choices if self.complete(names).any()), ())
            option = f"--conditions {' '.join(map(quote, enough))}"
            n_items = {option: int(self.complete(enough).sum()) if enough else 0}
        option = max(n_items, key=n_items.__getitem__)
        return f"give {option} ({n_items[option]} items)" if n_items[option] else ""

    def _n_complete_at(self, name: str, level: str) -> int:
        """The number of items that have all cells of the other conditions at a level of one."""
        others = [other for other in self.uses.levels if other != name]
        is_at = self.columns[name].codes == self.columns[name].levels.index(level)
        return int(self.complete(others, is_at).sum())

    def _several_texts(self) -> Iterator[str]:
        """Yields the first cell of an item with several texts, and the column that divides them."""
        texts = self.text_codes
        if texts is None:
            return
        cells = combined(self.items.codes, *self.factors.values())
        cells = np.where(texts < 0, -1, cells)
        n_texts = n_distinct_by(cells, texts)
        several = np.flatnonzero(n_texts > 1)
        if not several.size:
            return
        rows = np.flatnonzero(np.isin(cells, several))
        names = {self._cell_at(row): row for row in rows[first_rows_of(cells[rows])]}
        name, row = min(names.items())
        shown = self._lines(cells == cells[row])
        has = f"item {', '.join(name)} has {n_texts[cells[row]]} texts ({shown})"
        more = f", and {len(several) - 1} other cells have several" if len(several) > 1 else ""
        what = "their mean is analysed; if a column tells them apart, it is a condition "
        what += "(--conditions COLUMN) or a part of the item (--item COLUMN item)"
        if not self.complete(self.uses.levels)[self.items.codes[rows]].any():
            what = "no row in another cell, so that a level may be wrong: correct it"
            yield f"{has}{more} and {what}"
            return
        is_often = 4 * len(several) > np.count_nonzero(n_texts)
        divider = self._divider(cells, texts) if is_often else ""
        if is_often and item_key(self.uses)[0]:
            choice = f", or choose rows by --filter {divider}=VALUE" if divider else ""
            yield from (f"{line}{choice}" for line in restart_lines(self.uses))
            return
        if divider:
            what = f"choose rows by --filter {divider}=VALUE, else their mean is analysed"
        yield f"{has}{more}: {what}"

    def _cell_at(self, row: int) -> tuple[str, ...]:
        """The item and the levels of the conditions in a row."""
        return self.items.levels[self.items.codes[row]], *self._levels_at(row)

    def _divider(self, cells: Codes, texts: Codes) -> str:
        """The first column in each level of which a cell has one text; "" for none."""
        for name in self.uses.others:
            values = self.columns[name]
            parts = combined(cells, values.codes)
            is_known = (parts >= 0).any() and is_known_from(texts, [parts])
            if len(values.levels) > 1 and is_known:
                return quote(name)
        return ""

    def _unequal_regions(self) -> Iterator[str]:
        """Yields which items have sentences of several numbers of regions without names."""
        regions = self.stimuli.regions or ()
        sizes = np.array([sum(not x["name"] for x in row) for row in regions])
        n_sizes = n_distinct_by(self.items.codes, sizes)
        if (several := n_sizes > 1).any():
            of = f"{int(several.sum())} of {len(self.items.levels)} items"
            what = f"sentences of one item have {sizes.min()} to {sizes.max()} regions in {of}"
            remedy = "leave one empty (||) where a condition lacks it"
            yield f"{what}, so the same number is not the same part: {remedy}"

    def _empty_regions(self) -> Iterator[str]:
        """Yields which regions are empty in some rows of a condition."""
        from pandas import DataFrame, Series

        regions = self.stimuli.regions or ()
        rows = [{x["number"]: x["start"] == x["end"] for x in row} for row in regions]
        empty = DataFrame(rows).eq(True)  # a region that a row lacks is not empty
        cells = Series(combined(*(self.columns[name].codes for name in self.uses.levels)))
        share = empty.groupby(cells.where(cells >= 0)).transform("mean")
        for number in sorted(empty):
            odd = empty[number] & (share[number] < 1)
            if odd.any():
                of = f"{int(odd.sum())} of {len(odd)} rows ({self._lines(odd)})"
                has = f"region_{number} is empty in {of}"
                yield f"{has} but not in all of their condition: its surprisal is missing there"
