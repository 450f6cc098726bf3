"""What looks wrong in the columns of a table of items, and why none is a condition.

Each line is of the table as its columns were classified, see `lmdiag.stimuli.designs.conditions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from shlex import quote

import numpy as np

from lmdiag.diagnostics.base import MOST_LEVELS
from lmdiag.stimuli.designs.conditions import MANY_LABELS, SAME_TEXTS, Uses
from lmdiag.stimuli.designs.item_keys import item_key
from lmdiag.stimuli.values.codes import combined, is_known_from, n_distinct_by
from lmdiag.stimuli.values.critical_words import word_spans
from lmdiag.stimuli.values.items import item_column
from lmdiag.stimuli.values.kinds import MOST_LABELS, Distinct
from lmdiag.stimuli.values.misspelt import FAR_FEWER, near_level_problems, rare_levels
from lmdiag.stimuli.values.names import is_filler
from lmdiag.stimuli.values.splits import split_of, split_of_names, split_with_items
from lmdiag.text import first_few, in_order, shortened
from lmdiag.types import BadInput

Places = Callable[[Sequence[int]], str]
"""What messages call some rows, counted from 0, e.g. "lines 4, 5"."""

NO_CONDITION = (
    "no column with 2 to 6 levels differs within items: name the conditions with --conditions, and "
    "the columns that name the items with --item"
)
"""What is said of a table without conditions if there is no better reason."""


def warnings_of(uses: Uses, places: Places | None = None) -> list[str]:
    """Returns what looks wrong, a line each; why no column is a condition is not among it.

    Args:
        uses: of the columns.
        places: what to call rows; None for tables whose rows have no places.
    """
    lines = [*_missing(uses, places), *_repeated(uses), *_misspelt(uses, places)]
    lines += restart_lines(uses) if uses.restarts else ()
    if uses.levels:
        lines += [*filter(None, [_split_of_labels(uses)])]
        dropped = [
            x for x in uses.dropped if not (_has_words_of_texts(uses, x) or _counts(uses, x))
        ]
        lines += [_nested(uses, name) or _dropped(uses, name) for name in dropped]
        many = [name for name in uses.candidates if _has_many(uses, name)]
        lines += filter(None, (_nested(uses, name) for name in many))
    for name, levels in uses.levels.items():
        if split := split_of(levels, uses.rows.columns):
            remedy = f"--split {quote(f'{name}={split}')} gives their effects and interaction"
            lines.append(f"{name} has {len(levels)} levels of several parts: {remedy}")
    return [*lines, *_fillers(uses), *_repeated_trials(uses)]


def _has_many(uses: Uses, name: str) -> bool:
    """Whether a column has too many levels for a condition, and is not one that the user names."""
    return len(uses.candidates[name].kept) > MOST_LABELS and name not in uses.levels


def _split_of_labels(uses: Uses) -> str:
    """Which names of items, or labels beside them, have conditions in them, and the remedy."""
    rows = uses.rows
    # of conditions that were found, texts of an item may be alike for other reasons
    texts = None if uses.levels or rows.texts is None else rows.texts.tolist()
    # joined names are not divided again
    split = split_of_names(rows.items, texts, rows.columns, uses.item) if uses.item else ""
    if split:
        return split
    known = [rows.items.codes, *(rows.columns[name].codes for name in uses.levels)]
    columns = {name: rows.columns[name] for name, use in uses.others.items() if use != "reader"}
    unknown = {x: v for x, v in columns.items() if not is_known_from(v.codes, known)}
    splits = (split_with_items(v, rows.items, x, rows.columns) for x, v in unknown.items())
    return next(filter(None, splits), "")


def restart_lines(uses: Uses) -> Iterator[str]:
    """Yields the columns that name the items together, or those at which numbers begin anew."""
    key, n_items = item_key(uses)
    why = "their texts have few words in common"
    if not uses.restarts:
        why = "texts at one level of it have more words in common than others"
    if key:
        columns = [name for name in key if name != uses.item]
        at = f"at each {' and '.join(columns)}: {why}"
        at = at if uses.item in key else f"({why}), and {columns[0]} names the items"
        option = " ".join(map(quote, key))
        yield f"item numbers begin anew {at}: give --item {option} ({n_items:,} items)"
        return
    for name in uses.restarts:
        yield f"item numbers begin anew at each {name}: {why}: give --item {quote(name)} item"


def near_levels_of(uses: Uses) -> Iterator[tuple[int, str]]:
    """Yields (row, problem) for each level of a condition, or item, that looks like another one.

    They differ in letter case or Unicode normalization alone. The row is the position, from 0, of
    the first row with the rarer spelling.
    """
    for name, values in uses.rows.misspelt.items():
        if name in ("item", *uses.levels, *uses.dropped):
            yield from near_level_problems(name, values)


def refuse_near_levels(uses: Uses) -> None:
    """Refuses levels of conditions, and items, that look like another one."""
    for _, problem in near_levels_of(uses):
        raise BadInput(problem)


def why_no_conditions(uses: Uses) -> str:
    """Returns why no column of a table is a condition, and what to do; "" if none may be one.

    Only the first reason that holds is returned, in this order: names of items have conditions in
    them; two columns explain the texts equally well; items are not what they seem; a column has
    levels nested in another one's, or too many; items lack levels; a column differs between items
    alone, or between readers alone; a column is none for another reason.
    """
    if split := _split_of_labels(uses):
        return split
    if uses.alike:
        both = " and ".join(uses.alike)
        what = "rows" if uses.rows.texts is None else "texts"
        remedy = f"name one, --conditions {quote(uses.alike[0])}"
        return f"{both} explain the {what} equally well, and neither is taken: {remedy}"
    if uses.restarts:
        return next(restart_lines(uses))
    if name := _naming_items(uses):
        has = f"each row is an item of its own, and rows of one {name} have related texts"
        return f"{has}: give --item {quote(name)}"
    columns = uses.rows.columns
    names = [x for x in uses.candidates if len(columns[x].levels) <= MANY_LABELS]
    lines = (_nested(uses, name) or _of_many_levels(uses, name) for name in names)
    if line := next(filter(None, lines), ""):
        return line
    if uses.dropped:
        return "; ".join(_dropped(uses, name) for name in uses.dropped)
    covariates = [name for name, use in uses.others.items() if use == "covariate"]
    if line := next(filter(None, (between_items(uses, name) for name in covariates)), ""):
        return line
    for name in uses.of_readers:
        return f"{name} differs between readers alone: name it by --conditions {quote(name)}"
    for name, use in uses.others.items():
        if name in uses.candidates and use.startswith("not a condition (") and use != SAME_TEXTS:
            return f"{name} is {use}: if it is one, give --conditions {quote(name)}"
    return ""


def between_items(uses: Uses, name: str) -> str:
    """Returns that a column differs between items alone, and what compares it; "" if not so."""
    if not is_within_readers(uses, name):
        return ""
    remedy = f"--item {quote(uses.reader)} --conditions {quote(name)}"
    return f"{name} differs between items alone: {remedy} compares it within readers"


def is_within_readers(uses: Uses, name: str) -> bool:
    """Returns whether readers have several levels of a column of which each item has one."""
    values = uses.rows.columns[name]
    items = uses.rows.items
    is_few = 1 < len(values.levels) <= MOST_LABELS and len(values.levels) < len(items.levels)
    if not (uses.reader and is_few and is_known_from(values.codes, [items.codes])):
        return False
    return values.differs_within(uses.rows.columns[uses.reader])


def refuse_between_items(uses: Uses) -> None:
    """Refuses conditions of which each item has one level, where they differ within readers."""
    for line in filter(None, (between_items(uses, name) for name in uses.levels)):
        raise BadInput(line)


def _naming_items(uses: Uses) -> str:
    """A column that groups rows with related texts where each row is an item; "" for none."""
    rows = uses.rows
    if rows.texts is None or rows.items.counts.max(initial=0) > 1:
        return ""
    return item_column(rows.columns, rows.texts.tolist())


def _shown(places: Places | None, rows: Sequence[int]) -> str:
    return f" ({places(rows)})" if places else ""


def _missing(uses: Uses, places: Places | None) -> Iterator[str]:
    columns = {"item": uses.rows.items} | {name: uses.rows.columns[name] for name in uses.levels}
    for name, values in columns.items():
        rows = np.flatnonzero(values.codes < 0).tolist()
        if rows:
            has = f"{len(rows):,} of {len(values.codes):,} rows"
            yield f"{name} is missing in {has}{_shown(places, rows)}"


def _repeated(uses: Uses) -> Iterator[str]:
    for name, (n, n_texts) in uses.repeated.items():
        if name in uses.levels:
            yield f"{n:,} of {n_texts:,} texts have several levels of {name}: correct them"


def _few(uses: Uses) -> Iterator[tuple[str, Distinct]]:
    """The columns that may have levels, with these."""
    for name, values in uses.rows.columns.items():
        if len(values.levels) <= MOST_LEVELS and (name in uses.candidates or name in uses.levels):
            yield name, values


def _misspelt(uses: Uses, places: Places | None) -> Iterator[str]:
    """Yields rare levels that are nearly another one, and other rare ones of conditions."""
    for name, values in _few(uses):
        if all(map(str.isnumeric, values.levels)):
            continue
        is_rare = rare_levels(values)
        kept = uses.levels.get(name, values.levels)
        aside = uses.set_aside(name) if name in uses.levels else ()
        for number in np.flatnonzero(is_rare).tolist():
            level = values.levels[number]
            rows = np.flatnonzero(values.codes == number).tolist()
            counts = values.by_count().items()
            others = [other for other, n in counts if len(rows) < FAR_FEWER * n]
            has = f"{len(rows)} row{'s' if len(rows) > 1 else ''}{_shown(places, rows)}"
            has += "" if level in kept else " and is left out"
            if close := get_close_matches(level, others, n=1, cutoff=0.75):
                yield f"{name}: level {level!r} has {has}; did you mean {close[0]!r}?"
            elif level not in (*kept, *aside):
                yield f"{name}: level {level!r} has {has}: correct it"


def _has_words_of_texts(uses: Uses, name: str) -> bool:
    """Whether each value of a column is a word of its text, such as the critical word.

    Rows without a value do not count. A column that is asked about has two levels or more, so that
    some rows do. False for a table without texts.
    """
    if uses.rows.texts is None:
        return False
    values = uses.rows.columns[name]
    pairs = zip(uses.rows.texts.tolist(), values.codes.tolist(), strict=True)
    filled = [(str(text), values.levels[code]) for text, code in pairs if code >= 0]
    return all(word_spans(text, word) for text, word in filled)


def _counts(uses: Uses, name: str) -> bool:
    """Whether a column has a number for each cell, as a length, and no item has all numbers."""
    values = uses.rows.columns[name]
    items = uses.rows.items.codes
    is_complete = n_distinct_by(items, values.codes) == len(values.levels)
    if is_complete.any() or not all(map(str.isnumeric, values.levels)):
        return False
    return is_known_from(values.codes, [items, *(uses.rows.columns[x].codes for x in uses.levels)])


def _dropped(uses: Uses, name: str) -> str:
    """Why a column is not taken of which most items lack some levels."""
    values = uses.rows.columns[name]
    of = ", ".join(f"{level} {n}" for level, n in values.by_count().items())
    n_levels = n_distinct_by(uses.rows.items.codes, values.codes)
    n_complete = int((n_levels == len(values.levels)).sum())
    has = f"{n_complete} of {len(n_levels)} items have all of its levels"
    has += f" (rows: {shortened(of, 200)})"
    apart = _sets_of_levels(uses, name)
    if len(apart) > 1:
        sets = "; ".join(", ".join(levels) for levels in apart)
        kept = quote(f"{name}={','.join(apart[0])}")
        return f"{name} has other levels in other items ({sets}): choose some by --filter {kept}"
    # by items that lack levels, no effect is tested
    remedy = "correct it, or name it by --conditions" if n_complete else "correct it if it is one"
    return f"{name} is not taken for a condition: {has}; {remedy}"


def _sets_of_levels(uses: Uses, name: str) -> list[tuple[str, ...]]:
    """The levels that items have together, if most items have all of a set; [] if not so.

    Levels of items that have no other one, as fillers, are left out.
    """
    column = uses.candidates[name]
    of_items = [frozenset(np.flatnonzero(row).tolist()) for row in column.presence]
    of_items = [levels for levels in of_items if len(levels) > 1]
    found: list[frozenset[int]] = []
    for levels in {*of_items}:
        joined = levels.union(*(x for x in found if x & levels))
        found = [*(x for x in found if not x & levels), joined]
    n_complete = sum(levels in found for levels in of_items)
    is_full = 2 * n_complete > len(of_items) >= 2 * len(found)
    return sorted(map(column.texts, found)) if is_full else []


def _fillers(uses: Uses) -> Iterator[str]:
    """Yields one line for each column with levels of fillers: those that are set aside."""
    for name, values in _few(uses):
        aside = uses.set_aside(name) if name in uses.levels else ()
        fillers = [*dict.fromkeys((*aside, *filter(is_filler, values.levels)))]
        if fillers:
            n = sum(values.by_count()[level] for level in fillers)
            names = first_few([*map(repr, fillers)])
            has = f"{name} has {n:,} row{'s' if n > 1 else ''} {names}"
            has += ", in items of their own" if _are_apart(uses, name, fillers) else ""
            condition = quote(f"{name}!={','.join(fillers)}")
            yield f"{has}: --filter {condition} leaves them out"


def _are_apart(uses: Uses, name: str, levels: Sequence[str]) -> bool:
    """Whether no item has these levels of a column beside others."""
    values = uses.rows.columns[name]
    is_level = np.array([*(level in levels for level in values.levels), False])[values.codes]
    kinds = np.where(values.codes < 0, -1, is_level.astype(np.intp))
    n_kinds = n_distinct_by(uses.rows.items.codes, kinds)
    return bool((n_kinds < 2).all())


def _nested(uses: Uses, name: str) -> str:
    """That a column has other levels at each level of a column between items; "" if not so."""
    column = uses.candidates.get(name)
    if column is None or column.share_varying() < 0.5:
        return ""
    items = uses.rows.items.codes
    for block, values in uses.rows.columns.items():
        n = len(values.levels)
        if not 2 <= n <= MOST_LABELS or not is_known_from(values.codes, [items]):
            continue
        filled = (items >= 0) & (values.codes >= 0)
        blocks = np.full(len(column.presence), -1)
        blocks[items[filled]] = values.codes[filled]
        rows = [column.presence[blocks == number] > 0 for number in range(n)]
        parts = {
            level: column.texts(np.flatnonzero(of.any(axis=0)))
            for level, of in sorted(zip(values.levels, rows, strict=True))
        }
        is_full = all(
            len(of) > 1 and (of[:, of.any(axis=0)].all(axis=1)).mean() >= 0.5 for of in rows
        )
        if is_full and len({*parts.values()}) > 1:
            levels = "; ".join(f"{level}: {', '.join(part)}" for level, part in parts.items())
            has = f"{name} has other levels at each level of {block} ({levels})"
            return f"{has}: choose one by --filter {quote(f'{block}={next(iter(parts))}')}"
    return ""


def _of_many_levels(uses: Uses, name: str) -> str:
    """That a column that differs within items has more than six levels; "" if not so."""
    values = uses.rows.columns[name]
    n = len(values.levels)
    inner = uses.candidates[name].share_varying() >= 0.5
    if not (inner and n > MOST_LABELS and 2 * n <= values.n_filled):
        return ""
    if is_known_from(uses.rows.items.codes, [values.codes]):
        return ""
    levels = in_order(values.levels)
    remedy = f"name it by --conditions {quote(name)}, or keep some by "
    remedy += f"--filter {quote(f'{name}={levels[0]},{levels[1]}')}"
    split = split_of(levels, uses.rows.columns)
    divided = f", or divide them by --split {quote(f'{name}={split}')}" if split else ""
    return f"{name} has {n} levels, more than {MOST_LABELS}: {remedy}{divided}"


def _repeated_trials(uses: Uses) -> Iterator[str]:
    """Yields conditions that differ between rows of a reader and item where another one does not.

    Such rows may be measures or regions of one trial.
    """
    if not uses.reader or uses.reader in uses.levels:
        return
    trials = combined(uses.rows.items.codes, uses.rows.columns[uses.reader].codes)
    n_levels = {x: n_distinct_by(trials, uses.rows.columns[x].codes) for x in uses.levels}
    once = [name for name, n in n_levels.items() if np.median(n) < 2]
    for name, n in n_levels.items():
        if once and np.median(n) > 1:
            has = f"rows of one reader and item differ in {name}, and not in {once[0]}"
            choice = quote(f"{name}={uses.levels[name][0]}")
            yield f"{has}: if it names measures or regions, choose one by --filter {choice}"
