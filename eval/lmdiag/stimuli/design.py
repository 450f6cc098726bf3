"""The design of a user's own rows: conditions within items, other columns, and what looks wrong."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import combinations, product
from math import prod
from shlex import quote
from typing import TYPE_CHECKING, Any

from lmdiag import diagnostics
from lmdiag.diagnostics import CORE, SENTENCES
from lmdiag.diagnostics.base import MOST_LEVELS
from lmdiag.stimuli.columns import READER_NAMES, WORD_PLACES
from lmdiag.stimuli.proposals import critical_columns, filler_levels, split_of
from lmdiag.stimuli.rows import Stimuli
from lmdiag.table_files import as_texts
from lmdiag.text import column_like, first_few, folded, in_order, suggest, visible
from lmdiag.types import FOUND_DESIGN, BadInput, DesignOptions

if TYPE_CHECKING:
    from pandas import DataFrame, Series

NO_CONDITIONS = {column.name for column in (*CORE, *SENTENCES)} - {"condition", "good"}
NO_CONDITIONS |= {"word", "region", "regions", "formulas"}
"""Columns that are conditions only where they are named."""

NO_CONDITION = (
    "no column with 2 to 6 levels differs within items: name the conditions with --conditions, and "
    "the items in the column item"
)
"""What is said of a table without conditions if there is no better reason."""

# levels of a condition that is found
_MOST = 6
# a level with so many rows or fewer, and less than this share of another's, may be misspelt
_RARE, _SHARE = 3, 0.25

TEXT_COLUMNS = ("context", "target", "right_context", "sentence")
"""Columns of the text that a model reads."""

_NO_CONDITION = "not a condition"
_SHARES = "shares of people, for spearman_human"
_FORMS = {"": "words in context", "sentences": "sentences", "minimal_pairs": "sentences of pairs"}
# names of what items are distributed over, which is hardly a condition
_LISTS = re.compile(
    r"(lists?|lst|gro?u?ps?|versions?|latin|counterbalanc|order|script|subj|participant|session).*"
).fullmatch


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
    """

    n_rows: int
    form: str
    n_items: int = 0
    levels: dict[str, dict[str, int]] = field(default_factory=dict)
    cells: dict[str, tuple[int, int]] = field(default_factory=dict)
    n_complete: int = 0
    others: dict[str, str] = field(default_factory=dict)
    warnings: list[str] = field(default_factory=list)

    def summary(self) -> str:
        """Returns one line: the rows, the conditions with their levels, the other columns."""
        parts = [f"{self.n_rows:,} {self.form}"]
        if self.n_items:
            crossed = " x ".join(f"{name} ({', '.join(of)})" for name, of in self.levels.items())
            parts += [f"{self.n_items:,} items", f"conditions: {crossed or 'none'}"]
        for use in dict.fromkeys(self.others.values()):
            names = [name for name, other in self.others.items() if other == use]
            parts.append(f"{use}: {first_few(names)}")
        return visible("; ".join(parts))


def joined_texts(table: DataFrame) -> Series:
    """Returns the texts of the columns of each row, joined by blanks; "" where one is missing."""
    from pandas import Series

    columns = [table[name].fillna("").astype(str) for name in table]
    texts = [" ".join(parts) for parts in zip(*columns, strict=True)]
    return Series(texts, table.index, dtype=object)  # `agg` would make a Series of each row


def level_texts(column: Series) -> Series:
    """Returns values as texts: truth values in lower case, 1.0 as "1"; what is missing is NaN."""
    texts = as_texts(column)
    lower = texts.str.lower() if len(texts.dropna()) else texts
    return texts.where(~lower.isin(["true", "false"]), lower).where(texts.notna() & (texts != ""))


def find_conditions(table: DataFrame) -> list[str]:
    """Returns the columns that are conditions of a design, of a table with a column item.

    A condition has 2 to 6 levels; at least half of the items have all of them, and other texts at
    each. Other columns are covariates or text. A column that follows from other conditions is left
    out, as one that names their cells does, and one that follows from them within each item, as the
    list of a Latin square.
    """
    names = _candidates(table)
    n_values = table[names].nunique()
    few = [name for name in names if 2 <= n_values[name] <= _MOST + 1]
    levels = table[few].apply(level_texts).assign(item=table["item"])
    n_levels = levels[few].nunique()
    n_levels = n_levels[n_levels.between(2, _MOST)]
    has_all = levels.groupby("item")[[*n_levels.index]].nunique().eq(n_levels).mean() >= 0.5
    texts = _texts(table)
    found = [name for name in has_all.index[has_all] if _texts_differ(levels, name, texts)]

    many = [name for name in names if n_values[name] > _MOST and folded(name).startswith("cond")]
    levels[many] = table[many]
    lists = [name for name in found if _LISTS(folded(name))]
    others = [name for name in (*found, *many) if name not in (*lists, "good")]
    found = [name for name in found if name not in lists or not _rotates(levels, name, others)]
    chosen: list[str] = []
    for name in sorted(found, key=lambda name: (n_levels[name], name == "good")):
        if not _follows(levels, name, chosen) and not _rotates(levels, name, chosen):
            chosen = [*(x for x in chosen if not _follows(levels, x, [name])), name]
    return [name for name in found if name in chosen]


def _candidates(table: DataFrame) -> list[str]:
    """The columns that may be conditions: not texts, nor places of words, nor readers."""
    never = {*NO_CONDITIONS, "item"}
    others = {*WORD_PLACES, *READER_NAMES}
    return [name for name in table if name not in never and folded(name) not in others]


def why_no_conditions(table: DataFrame) -> str:
    """Returns why no column of a table is a condition, and what to do."""
    names = _candidates(table)
    levels = table[names].apply(level_texts).assign(item=table["item"])
    by_item = levels.groupby("item")[names].nunique()
    inner = [name for name in names if by_item[name].median() >= 2]
    outer = [name for name in names if by_item[name].max() <= 1]
    for name, block in product(inner, outer):
        parts = {x: in_order(part[name].dropna().unique()) for x, part in levels.groupby(block)}
        sizes = levels.groupby([block, "item"])[name].nunique()
        is_full = [(sizes[level] == len(part)).mean() >= 0.5 for level, part in parts.items()]
        if 2 <= len(parts) <= _MOST and all(is_full) and len({*parts.values()}) == len(parts):
            block_levels = "; ".join(f"{level}: {', '.join(part)}" for level, part in parts.items())
            has = f"{name} has other levels at each level of {block} ({block_levels})"
            return f"{has}: choose one by --filter {block}={next(iter(parts))}"
    for name in inner:
        if (n := levels[name].nunique()) > _MOST and levels[name].duplicated().mean() >= 0.5:
            has = f"{name} has {n} levels, more than {_MOST}: name it by --conditions {name}"
            return f"{has}, keep some by --filter {name}=A,B, divide them by --split"
    return NO_CONDITION


def _texts(table: DataFrame) -> Series | None:
    """The text of each row; None for a table without texts."""
    names = [name for name in TEXT_COLUMNS if name in table]
    return joined_texts(table[names]) if names else None


def _texts_differ(levels: DataFrame, name: str, texts: Series | None) -> bool:
    """Whether at least half of the items that have several levels have other texts at each."""
    if texts is None:
        return True
    cells = levels[["item", name]].assign(text=texts).dropna()
    texts_at: dict[tuple[Any, ...], set[str]] = {}
    for item, level, text in cells.itertuples(index=False, name=None):
        texts_at.setdefault((item, level), set()).add(text)
    texts_of: dict[Any, list[frozenset[str]]] = {}
    for (item, _), level_set in texts_at.items():
        texts_of.setdefault(item, []).append(frozenset(level_set))
    several = [len({*sets}) > 1 for sets in texts_of.values() if len(sets) > 1]
    return not several or sum(several) / len(several) >= 0.5


def _follows(levels: DataFrame, name: str, others: Sequence[str]) -> bool:
    """Whether the level of a column is known where those of others are."""
    return bool(others) and levels.groupby([*others])[name].nunique().max() <= 1


def _rotates(levels: DataFrame, name: str, others: Sequence[str]) -> bool:
    """Whether a column follows from others within each item, but in another way in other items."""
    within_items = _follows(levels, name, ["item", *others])
    return bool(others) and within_items and not _follows(levels, name, others)


def check_columns(stimuli: Mapping[str, Stimuli], design: DesignOptions) -> None:
    """Checks that the rows of some task have the columns of a design; `BadInput` if not."""
    names = dict.fromkeys(name for rows in stimuli.values() for name in rows.columns())
    for name in design.columns():
        if column_like(name, names) not in names:
            close = suggest(name, names)
            raise BadInput(f"no column {name!r}{close}: choose from {', '.join(names)}")
    if design.region and all(rows.regions is None for rows in stimuli.values()):
        raise BadInput(f"--region {design.region}: the rows have no regions")


def design_of(stimuli: Stimuli, options: DesignOptions = FOUND_DESIGN) -> Design | None:
    """Returns the design of a user's own rows; None for a diagnostic's items and for suites."""
    from pandas import DataFrame, Series

    if stimuli.task in diagnostics.built_in() or stimuli.form not in _FORMS:
        return None
    columns = stimuli.columns()
    item = column_like(options.item or "item", columns)
    named = [column_like(name, columns) for name in options.conditions]
    filled = [name for name, values in columns.items() if any(x not in (None, "") for x in values)]
    names = [name for name in filled if name in named or name not in (*NO_CONDITIONS, item)]
    has_shares = "human" in names and stimuli.compared and stimuli.diagnostic.has_shares(columns)
    uses = {"human": _SHARES} if has_shares else {}
    form = _FORMS[stimuli.form]
    if stimuli.regions:
        form += f" in up to {max(map(len, stimuli.regions))} regions"
    if item not in filled or stimuli.form == "minimal_pairs":
        by = stimuli.diagnostic.levels(columns)
        others = {x: "break-down" if x in by else "not used" for x in names if x != "good"}
        near = [x for x in names if x.lower().startswith("item") or folded(x) == "id"][:1]
        hints = [f"no column item: if {name} names the items, give --item {name}" for name in near]
        return Design(len(stimuli), form, others=others | uses, warnings=hints)
    table = DataFrame({name: level_texts(Series(columns[name], dtype=object)) for name in names})
    table["item"] = level_texts(Series(columns[item], dtype=object))
    table = table.assign(**{name: columns[name] for name in TEXT_COLUMNS if name in columns})
    found = [name for name in named if name in names] or find_conditions(table)
    counts = {name: table[name].value_counts() for name in found}
    sizes = table.groupby(["item", *found]).size().reset_index(name="rows")
    cells = sizes.groupby(found) if found else ()
    others = {x: uses.get(x) or _use(table, x, found) for x in names if x not in found}
    dropped = [name for name, use in others.items() if use == _NO_CONDITION and found and not named]
    return Design(
        len(stimuli),
        form,
        n_items=table["item"].nunique(),
        levels={name: {k: int(n[k]) for k in in_order(n.index)} for name, n in counts.items()},
        cells={", ".join(cell): (len(part), int(part["rows"].sum())) for cell, part in cells},
        n_complete=len(_complete(table, found)),
        others=others,
        warnings=[*_warnings(stimuli, table, [*names, "item"], found, dropped)],
    )


def _use(table: DataFrame, name: str, found: Sequence[str]) -> str:
    """What a column beside the conditions is."""
    n = table[name].nunique()
    if n < 2:
        return "not used (one value)"
    if table.groupby("item")[name].nunique().max() <= 1:
        return "covariate"
    if any(_follows(table, name, others) for others in (found, *([x] for x in found))):
        return "follows from the conditions"
    if n > MOST_LEVELS and 2 * n > len(table):
        return f"not used ({n:,} values that hardly repeat)"
    if n > _MOST:
        return f"not used ({n:,} levels, more than {_MOST}: give --conditions or --split)"
    if not _texts_differ(table, name, _texts(table)):
        return "same texts at each level"
    return "follows from item" if _rotates(table, name, found) else _NO_CONDITION


def _complete(levels: DataFrame, conditions: Sequence[str]) -> Any:
    """The items that have rows in all cells of the crossed conditions."""
    n_cells = prod(levels[name].nunique() for name in conditions)
    rows = levels[["item", *conditions]].dropna().drop_duplicates()
    sizes = rows.groupby("item").size()
    return sizes.index[sizes == n_cells]


# ---- warnings ------------------------------------------------------------------------------------


def _warnings(
    stimuli: Stimuli,
    table: DataFrame,
    names: Sequence[str],
    found: Sequence[str],
    dropped: Sequence[str],
) -> Iterator[str]:
    """Yields what looks wrong in a design.

    `names` are the columns of levels, `found` those that are conditions, and `dropped` those that
    are none, since most items lack some of their levels.
    """
    for name in ["item", *found]:
        if rows := table.index[table[name].isna()].tolist():
            lines = stimuli.shown_rows(rows)
            yield f"{name} is missing in {len(rows)} of {len(table)} rows ({lines})"
    for name in names:
        counts = table[name].value_counts()
        if name == "item" or len(counts) > MOST_LEVELS or all(map(str.isnumeric, counts.index)):
            continue
        for level, n in counts[counts <= _RARE].items():
            others = counts.index[n < _SHARE * counts]
            for close in get_close_matches(level, others, n=1, cutoff=0.75):
                lines = stimuli.shown_rows(table.index[table[name] == level].tolist())
                has = f"{n} row{'s' if n > 1 else ''} ({lines})"
                yield f"{name}: level {level!r} has {has}; did you mean {close!r}?"
    for name in dropped:
        of = ", ".join(f"{level} {n}" for level, n in table[name].value_counts().items())
        n_items = f"{len(_complete(table, [name]))} of {table['item'].nunique()} items"
        has = f"{n_items} have all of its levels (rows: {of})"
        remedy = "correct it, or name it by --conditions"
        yield f"{name} is not taken for a condition: {has}; {remedy}"
    for name in names:
        levels = table[name].dropna()
        for split in split_of([*levels.unique()]) if name in found else []:
            remedy = f"--split {quote(f'{name}={split}')} gives their effects and interaction"
            yield f"{name} has {levels.nunique()} levels of several parts: {remedy}"
        for level in filler_levels(levels):
            n = int((levels == level).sum())
            remedy = f"--filter {quote(name)}!={quote(level)} leaves them out"
            yield f"{name} has {n} rows {level!r}: {remedy}"
    if stimuli.form == "sentences" and not stimuli.regions:
        for name in critical_columns(stimuli.columns()):
            has = f"{name} has the critical word of each sentence"
            yield f"{has}: --critical {quote(name)} gives its surprisal"
    if found:
        yield from _cell_warnings(table, found)
        if not stimuli.compared:  # else a contrast may have several bad rows
            yield from _text_warnings(stimuli, table, ["item", *found])
        if stimuli.regions:
            yield from _region_warnings(stimuli, table, found)
    elif not stimuli.compared and (reason := why_no_conditions(table)) != NO_CONDITION:
        yield reason


def _cell_warnings(table: DataFrame, found: Sequence[str]) -> Iterator[str]:
    """Yields which items lack cells, and which conditions to give if all items do."""
    crossed = " x ".join(found)
    items = table["item"].dropna().unique()
    complete = _complete(table, found)
    lacking = [item for item in items if item not in complete]
    if lacking and len(complete):
        of = f"{len(lacking)} of {len(items)} items ({first_few(lacking)})"
        yield f"left out, since they have no row in some cells of {crossed}: {of}"
    elif lacking:
        few = found[:_MOST]  # of many columns, there are too many combinations
        choices = [names for n in range(len(few), 0, -1) for names in combinations(few, n)]
        enough = next((names for names in choices if len(_complete(table, names))), ())
        n = len(_complete(table, enough)) if enough else 0
        remedy = f"--conditions {' '.join(enough)} ({n} items)" if enough else "other items"
        yield f"no item has all cells of {crossed}, so no effects are tested: give {remedy}"


def _text_warnings(stimuli: Stimuli, table: DataFrame, keys: list[str]) -> Iterator[str]:
    """Yields the first cell of an item with several texts."""
    cells = table[keys].assign(text=_texts(table)).groupby(keys)["text"]
    n_texts = cells.nunique()
    several = n_texts[n_texts > 1]
    for cell, n in several[:1].items():
        lines = stimuli.shown_rows(cells.groups[cell].tolist())
        has = f"item {', '.join(cell)} has {n} texts ({lines})"
        more = f", and {len(several) - 1} other cells have several" if len(several) > 1 else ""
        yield f"{has}{more}: their mean is analysed; is an item number used twice?"


def _region_warnings(stimuli: Stimuli, table: DataFrame, found: Sequence[str]) -> Iterator[str]:
    """Yields which regions are empty in some rows of a condition."""
    from pandas import DataFrame

    rows = [{x["number"]: x["start"] == x["end"] for x in row} for row in stimuli.regions or ()]
    empty = DataFrame(rows).eq(True)  # a region that a row lacks is not empty
    share = empty.groupby([table[name] for name in found]).transform("mean")
    for number in sorted(empty):
        if odd := empty.index[empty[number] & (share[number] < 1)].tolist():
            of = f"{len(odd)} of {len(table)} rows ({stimuli.shown_rows(odd)})"
            has = f"region_{number} is empty in {of}"
            yield f"{has} but not in all of their condition: its surprisal is missing there"
