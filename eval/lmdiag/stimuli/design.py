"""The design of a user's own rows: conditions within items, other columns, and what looks wrong."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import combinations
from math import prod
from shlex import quote
from typing import TYPE_CHECKING, Any

import numpy as np

from lmdiag import diagnostics
from lmdiag.diagnostics.base import MOST_LEVELS
from lmdiag.stimuli.conditions import (
    NO_CONDITION,
    NO_CONDITIONS,
    RARE,
    SHARE,
    Uses,
    joined_texts,
    level_texts,
    texts_of,
    uses_of,
    why_no_conditions,
)
from lmdiag.stimuli.item_names import split_of_names
from lmdiag.stimuli.kinds import MOST_LABELS, values_of
from lmdiag.stimuli.names import TEXT_COLUMNS
from lmdiag.stimuli.names import named as named_columns
from lmdiag.stimuli.proposals import critical_options, filler_levels, split_of
from lmdiag.stimuli.rows import Stimuli
from lmdiag.stimuli.shown import first_rows, uses_text
from lmdiag.text import column_like, first_few, shortened, suggest, visible
from lmdiag.types import FOUND_DESIGN, WHOLE_SENTENCE, BadInput, DesignOptions

if TYPE_CHECKING:
    from pandas import DataFrame, Series

_SHARES = "shares of people, for spearman_human"
_FORMS = {"": "words in context", "sentences": "sentences", "minimal_pairs": "sentences of pairs"}


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
        rows: the first row as it is read; see `lmdiag.stimuli.shown.first_rows`.
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
        raise BadInput(f"--region {design.region}: the rows have no regions")


def design_of(stimuli: Stimuli, options: DesignOptions = FOUND_DESIGN) -> Design | None:
    """Returns the design of a user's own rows; None for a diagnostic's items and for suites."""
    from pandas import DataFrame, Series

    if stimuli.task in diagnostics.built_in() or stimuli.form not in _FORMS:
        return None
    columns = stimuli.columns()
    filled_texts = [name for name in TEXT_COLUMNS if any(columns.get(name, ()))]
    texts = [name for name in filled_texts if (name != "sentence") == stimuli.asks_words]
    unread = dict.fromkeys((name for name in filled_texts if name not in texts), "not read")
    names = item_columns(options, columns)
    named = [column_like(name, columns) for name in options.conditions]
    filled = [name for name, values in columns.items() if any(x not in (None, "") for x in values)]
    others = [x for x in filled if x in named or x not in (*NO_CONDITIONS, *names)]
    has_shares = "human" in others and stimuli.compared and stimuli.diagnostic.has_shares(columns)
    known_uses = {**({"human": _SHARES} if has_shares else {}), **unread}
    form = _FORMS[stimuli.form]
    if stimuli.regions:
        form += f" in up to {max(map(len, stimuli.regions))} regions"
    if not {*names} <= {*filled} or stimuli.form == "minimal_pairs":
        by = stimuli.diagnostic.levels(columns)
        uses = {x: "break-down" if x in by else "not used" for x in others if x != "good"}
        near = named_columns("item", others)[:1] if stimuli.form != "minimal_pairs" else []
        hints = [_item_hint(stimuli, name, texts) for name in near]
        rows = first_rows(stimuli)
        return Design(
            len(stimuli), form, others=uses | known_uses, warnings=hints, texts=texts, rows=rows
        )
    table = DataFrame({name: Series(columns[name], dtype=object) for name in others})
    for name in texts:
        table[name] = columns[name]
    table["item"] = joined_items(DataFrame({name: columns[name] for name in names}))
    found = uses_of(table, [name for name in named if name in others])
    table = table.assign(**{name: level_texts(table[name]) for name in others})
    design = _Found(stimuli, table, found, others)
    counts = {name: design.factors[name].value_counts() for name in found.levels}
    sizes = design.factors.groupby(["item", *found.levels]).size().reset_index(name="rows")
    cells = sizes.groupby([*found.levels]) if found.levels else ()
    return Design(
        len(stimuli),
        form,
        n_items=table["item"].nunique(),
        levels={
            name: {k: int(counts[name].get(k, 0)) for k in of} for name, of in found.levels.items()
        },
        cells={", ".join(cell): (len(part), int(part["rows"].sum())) for cell, part in cells},
        n_complete=len(design.complete(found.levels)),
        others={**found.others, **known_uses},
        warnings=[*design.warnings()],
        texts=texts,
        rows=first_rows(stimuli, found.levels),
    )


def _item_hint(stimuli: Stimuli, name: str, texts: Sequence[str]) -> str:
    """What a column that is named as items may be."""
    names = values_of(stimuli.columns()[name])
    if len(names.levels) == len(stimuli) and (
        split := split_of_names(names, stimuli.texts(*texts), {}, name)
    ):
        return f"no column item: {split}"
    return f"no column item: if {name} names the items, give --item {quote(name)}"


def item_columns(options: DesignOptions, columns: Collection[str]) -> list[str]:
    """Returns the columns whose values together name the items."""
    return [column_like(name, columns) for name in options.item or ("item",)]


def joined_items(columns: DataFrame) -> Series:
    """Returns the item of each row: the values of some columns, joined by blanks; NaN for none."""
    texts = columns.apply(level_texts)
    if texts.shape[1] == 1:
        return texts.iloc[:, 0]
    return joined_texts(texts).where(texts.notna().all(axis=1))


# ---- warnings ------------------------------------------------------------------------------------


class _Found:
    """A design that was found, and what looks wrong in it.

    Args:
        stimuli: its rows.
        table: their columns as levels, and the columns of their texts.
        uses: what they are used for.
        names: columns of levels.

    Attributes:
        factors: item and conditions of each row; NaN where a level is set aside or missing.
    """

    def __init__(
        self, stimuli: Stimuli, table: DataFrame, uses: Uses, names: Sequence[str]
    ) -> None:
        self.stimuli = stimuli
        self.table = table
        self.uses = uses
        self.names = names
        factors = {x: table[x].where(table[x].isin(of)) for x, of in uses.levels.items()}
        self.factors = table[["item"]].assign(**factors)

    def complete(self, conditions: Iterable[str]) -> Any:
        """The items that have rows in all cells of the crossed conditions."""
        names = [*conditions]
        n_cells = prod(len(self.uses.levels[name]) for name in names)
        rows = self.factors[["item", *names]].dropna().drop_duplicates()
        sizes = rows.groupby("item").size()
        return sizes.index[sizes == n_cells]

    def _lines(self, rows: Series) -> str:
        """What messages call the rows that are true."""
        return self.stimuli.shown_rows(np.flatnonzero(rows).tolist())

    def warnings(self) -> Iterator[str]:
        """Yields what looks wrong, a line each."""
        uses = self.uses
        for name in ["item", *uses.levels]:
            if (missing := self.table[name].isna()).any():
                n = int(missing.sum())
                yield f"{name} is missing in {n} of {len(missing)} rows ({self._lines(missing)})"
        yield from uses.notes
        yield from [uses.split] if uses.split and uses.levels else []
        yield from self._misspelt()
        for name in uses.restarts:
            has = f"item numbers begin anew at each {name}: their texts have few words in common"
            yield f"{has}: give --item {quote(name)} item"
        if uses.alike:
            both = " and ".join(uses.alike)
            remedy = f"name one, --conditions {quote(uses.alike[0])}"
            yield f"{both} explain the texts equally well, and neither is taken: {remedy}"
        for name in uses.dropped if uses.levels else ():
            yield self._dropped(name)
        for name, levels in uses.levels.items():
            for split in split_of(levels):
                remedy = f"--split {quote(f'{name}={split}')} gives their effects and interaction"
                yield f"{name} has {len(levels)} levels of several parts: {remedy}"
        yield from self._fillers()
        if self.stimuli.form == "sentences" and not self.stimuli.regions:
            for option in critical_options(self.stimuli.columns()):
                has = f"{option.removesuffix(':0')} has the critical word of each sentence"
                yield f"{has}: --critical {quote(option)} gives its surprisal"
        if uses.levels:
            yield from self._cells()
            # of pairs, a contrast may have several bad rows
            if not (self.stimuli.compared or uses.restarts):
                yield from self._several_texts()
            if self.stimuli.regions:
                yield from self._empty_regions()
        elif not (self.stimuli.compared or uses.alike or uses.restarts):
            reason = why_no_conditions(self.table)
            dropped = map(self._dropped, uses.dropped)
            yield from dropped if reason == NO_CONDITION else [reason]

    def _misspelt(self) -> Iterator[str]:
        """Yields rare levels that are nearly another one, and other rare ones of conditions."""
        for name in self.names:
            counts = self.table[name].value_counts()
            if len(counts) > MOST_LEVELS or all(map(str.isnumeric, counts.index)):
                continue
            for level, n in counts[counts <= RARE].items():
                others = counts.index[n < SHARE * counts]
                has = f"{n} row{'s' if n > 1 else ''} ({self._lines(self.table[name] == level)})"
                for close in get_close_matches(level, others, n=1, cutoff=0.75):
                    yield f"{name}: level {level!r} has {has}; did you mean {close!r}?"
                    break
                else:
                    is_level = name in self.uses.levels and level not in self.uses.levels[name]
                    if is_level and level not in self.uses.set_aside[name]:
                        yield f"{name}: level {level!r} has {has} and is left out: correct it"

    def _dropped(self, name: str) -> str:
        column = self.table[name]
        of = ", ".join(f"{level} {n}" for level, n in column.value_counts().items())
        n_levels = self.table.groupby("item")[name].nunique()
        n_items = f"{int((n_levels == column.nunique()).sum())} of {len(n_levels)} items"
        has = f"{n_items} have all of its levels (rows: {shortened(of, 200)})"
        remedy = "correct it, or name it by --conditions"
        return f"{name} is not taken for a condition: {has}; {remedy}"

    def _fillers(self) -> Iterator[str]:
        """Yields one line for each column with levels of fillers: those that are set aside."""
        for name in self.names:
            column = self.table[name]
            if column.nunique() > MOST_LEVELS:
                continue
            fillers = [*self.uses.set_aside.get(name, ()), *filler_levels(column)]
            fillers = [*dict.fromkeys(fillers)]
            if fillers:
                n = int(column.isin(fillers).sum())
                names = first_few([*map(repr, fillers)])
                condition = quote(f"{name}!={','.join(fillers)}")
                remedy = f"--filter {condition} leaves them out"
                yield f"{name} has {n} rows {names}, in items of their own: {remedy}"

    def _cells(self) -> Iterator[str]:
        """Yields which items lack cells, and which conditions to give if all items do."""
        found = [*self.uses.levels]
        crossed = " x ".join(found)
        items = self.factors.dropna()["item"].unique()
        complete = {*self.complete(found)}
        lacking = [item for item in items if item not in complete]
        if lacking and complete:
            of = f"{len(lacking)} of {len(items)} items ({first_few(lacking)})"
            yield f"left out, since they have no row in some cells of {crossed}: {of}"
        elif lacking:
            few = found[:MOST_LABELS]  # of many columns, there are too many combinations
            choices = [names for n in range(len(few), 0, -1) for names in combinations(few, n)]
            enough = next((names for names in choices if len(self.complete(names))), ())
            n = len(self.complete(enough)) if enough else 0
            remedy = f"--conditions {' '.join(enough)} ({n} items)" if enough else "other items"
            yield f"no item has all cells of {crossed}, so no effects are tested: give {remedy}"

    def _several_texts(self) -> Iterator[str]:
        """Yields the first cell of an item with several texts, and the column that divides them."""
        keys = ["item", *self.uses.levels]
        texts = texts_of(self.table)
        cells = self.factors.assign(text=texts).dropna().groupby(keys)["text"]
        n_texts = cells.nunique()
        several = n_texts[n_texts > 1]
        for cell, n in several[:1].items():
            rows = cells.groups[cell].tolist()
            has = f"item {', '.join(cell)} has {n} texts ({self.stimuli.shown_rows(rows)})"
            more = f", and {len(several) - 1} other cells have several" if len(several) > 1 else ""
            what = "their mean is analysed; if a column tells them apart, it is a condition "
            what += "(--conditions COLUMN) or a part of the item (--item COLUMN item)"
            divider = self._divider(keys, texts) if 4 * len(several) > len(n_texts) else ""
            if divider:
                what = f"if item numbers begin anew at each {divider}, give --item {divider} item; "
                what += f"choose rows by --filter {divider}=VALUE, else their mean is analysed"
            yield f"{has}{more}: {what}"

    def _divider(self, keys: Sequence[str], texts: Series | None) -> str:
        """The first column in each level of which a cell has one text; "" for none."""
        for name in self.uses.others:
            if self.table[name].nunique() > 1:
                cells = self.factors.assign(text=texts, other=self.table[name]).dropna()
                if cells.groupby([*keys, "other"])["text"].nunique().max() == 1:
                    return quote(name)
        return ""

    def _empty_regions(self) -> Iterator[str]:
        """Yields which regions are empty in some rows of a condition."""
        from pandas import DataFrame

        regions = self.stimuli.regions or ()
        rows = [{x["number"]: x["start"] == x["end"] for x in row} for row in regions]
        empty = DataFrame(rows).eq(True)  # a region that a row lacks is not empty
        cells = [self.table[name] for name in self.uses.levels]
        share = empty.groupby(cells).transform("mean")
        for number in sorted(empty):
            odd = empty[number] & (share[number] < 1)
            if odd.any():
                of = f"{int(odd.sum())} of {len(odd)} rows ({self._lines(odd)})"
                has = f"region_{number} is empty in {of}"
                yield f"{has} but not in all of their condition: its surprisal is missing there"
