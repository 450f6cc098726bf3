"""Messages on the columns of a table of items: what looks wrong, and why it has no conditions.

Each line is of the table as its columns were classified, see `lmdiag.stimuli.designs.conditions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from difflib import get_close_matches
from shlex import quote

import numpy as np

from lmdiag.diagnostics.base import MOST_LEVELS
from lmdiag.stimuli.designs.conditions import (
    MANY_LABELS,
    SAME_TEXTS,
    ColumnUses,
    ConditionCandidate,
)
from lmdiag.stimuli.designs.item_keys import item_key
from lmdiag.stimuli.values.codes import Codes, combine_codes, is_determined_by, n_distinct_by
from lmdiag.stimuli.values.critical_words import word_spans
from lmdiag.stimuli.values.items import item_column
from lmdiag.stimuli.values.kinds import MOST_LABELS, DistinctValues
from lmdiag.stimuli.values.misspelt import FAR_FEWER, lookalike_problems, rare_levels
from lmdiag.stimuli.values.names import is_filler
from lmdiag.stimuli.values.splits import (
    split_message_for_item_names,
    split_message_for_labels,
    split_of,
)
from lmdiag.text import first_few, in_order, shortened
from lmdiag.types import BadInput

Places = Callable[[Sequence[int]], str]
"""Returns what messages call some rows, which are counted from 0, e.g. "lines 4, 5"."""

NO_CONDITION = (
    "no column with 2 to 6 levels differs within items: name the conditions with --conditions, and "
    "the columns that name the items with --item"
)
"""What is said of a table without conditions if there is no better reason."""

_CLOSE = 0.75  # similarity, from 0 to 1, of a misspelt level and the one that may be meant


def warnings_of(uses: ColumnUses, places: Places | None = None) -> list[str]:
    """Returns what looks wrong in the columns of a table, a line each.

    Why there are no conditions is not among it, see `why_no_conditions`.

    Args:
        uses: what the columns of a table are used for.
        places: what to call rows; None for tables whose rows have no places.
    """
    lines = [
        *_missing_values(uses, places),
        *_inconsistent_texts(uses),
        *_misspelt_levels(uses, places),
    ]
    if uses.restart_columns:
        lines += restart_lines(uses)
    if uses.conditions:
        split_message = _split_message(uses)
        lines += [split_message] if split_message else []
        for name in uses.incomplete_columns:
            # words of the texts, and their lengths, differ with the conditions
            if not (_has_words_of_texts(uses, name) or _numbers_cells(uses, name)):
                lines.append(_nested_levels(uses, name) or _incomplete(uses, name))
        for name, candidate in uses.condition_candidates.items():
            # too many levels for a condition, if the user does not name it
            if len(candidate.kept) > MOST_LABELS and name not in uses.conditions:
                nested = _nested_levels(uses, name)
                lines += [nested] if nested else []
    for name, levels in uses.conditions.items():
        split = split_of(levels, uses.table.columns)
        if split:
            remedy = f"--split {quote(f'{name}={split}')} gives their effects and interaction"
            lines.append(f"{name} has {len(levels)} levels of several parts: {remedy}")
    return [*lines, *_fillers(uses), *_repeated_trials(uses)]


def _split_message(uses: ColumnUses) -> str:
    """Returns the message that labels, such as 7_sg, have conditions in them; "" if none have.

    The labels are names of items, or those of another column that have the item and conditions in
    them. The message ends in the option that divides the labels, such as `--split
    item=_:item,number`.
    """
    table = uses.table
    if uses.item_column:  # joined names are not divided again
        texts = None if table.texts is None else table.texts.tolist()
        if uses.conditions:
            # Similar texts under different names are a sign that the names have conditions in them.
            # With conditions it says nothing, since texts of an item are similar anyway.
            texts = None
        message = split_message_for_item_names(
            table.items, texts, other_columns=table.columns, column=uses.item_column
        )
        if message:
            return message
    # labels that follow from item and conditions have nothing new to divide them by
    determining = [table.items.codes, *(table.columns[name].codes for name in uses.conditions)]
    for name, use in uses.other_uses.items():
        values = table.columns[name]
        if use != "reader" and not is_determined_by(values.codes, determining):
            message = split_message_for_labels(
                values, table.items, column=name, taken=table.columns
            )
            if message:
                return message
    return ""


def restart_lines(uses: ColumnUses) -> Iterator[str]:
    """Yields messages that item numbers start again from 1 at each level of some columns.

    One message, if columns are found that name the items together; else one for each of
    `uses.restart_columns`. For example, "item numbers begin anew at each experiment: their texts
    have few words in common: give --item experiment item (48 items)". Without restart columns, as
    where cells of an item have several texts, there is a message only if such columns are found.
    """
    key, n_items = item_key(uses)  # the columns that name the items, () if none are found
    why = "their texts have few words in common"
    if not uses.restart_columns:
        why = "texts at one level of it have more words in common than others"
    if key:
        columns = [name for name in key if name != uses.item_column]
        if uses.item_column in key:
            at = f"at each {' and '.join(columns)}: {why}"
        else:  # a key without the item column is one column alone, as a code of all items
            at = f"({why}), and {columns[0]} names the items"
        option = " ".join(quote(name) for name in key)
        yield f"item numbers begin anew {at}: give --item {option} ({n_items:,} items)"
        return
    for name in uses.restart_columns:
        yield f"item numbers begin anew at each {name}: {why}: give --item {quote(name)} item"


def lookalike_levels_of(uses: ColumnUses) -> Iterator[tuple[int, str]]:
    """Yields (row, problem) for each level of a condition, or item, that looks like another one.

    They differ in letter case or Unicode normalization alone. The row is the position, from 0, of
    the first row with the rarer spelling.
    """
    for name, values in uses.table.misspelt_columns.items():
        if name in ("item", *uses.conditions, *uses.incomplete_columns):
            yield from lookalike_problems(name, values)


def refuse_lookalike_levels(uses: ColumnUses) -> None:
    """Refuses levels of conditions, and items, that look like another one."""
    for _, problem in lookalike_levels_of(uses):
        raise BadInput(problem)


def why_no_conditions(uses: ColumnUses) -> str:
    """Returns why a table has no conditions, and what the user can do; "" if there is no reason.

    It is a message of one line, for example "list differs between readers alone: name it by
    --conditions list". Where several reasons hold, the first of this order is returned.

    Args:
        uses: what the columns of a table without conditions are used for.
    """
    # names of items have conditions in them
    split_message = _split_message(uses)
    if split_message:
        return split_message
    if uses.equivalent_columns:
        names = " and ".join(uses.equivalent_columns)
        what = "rows" if uses.table.texts is None else "texts"
        remedy = f"name one, --conditions {quote(uses.equivalent_columns[0])}"
        return f"{names} explain the {what} equally well, and neither is taken: {remedy}"
    # the items are not what they seem
    if uses.restart_columns:
        return next(restart_lines(uses))
    item_name = _column_of_related_texts(uses)
    if item_name:
        has = f"each row is an item of its own, and rows of one {item_name} have related texts"
        return f"{has}: give --item {quote(item_name)}"
    # a column has too many levels, or other levels at each level of another column
    for name in uses.condition_candidates:
        if len(uses.table.columns[name].levels) <= MANY_LABELS:
            message = _nested_levels(uses, name) or _many_levels(uses, name)
            if message:
                return message
    # most items lack some levels
    if uses.incomplete_columns:
        return "; ".join(_incomplete(uses, name) for name in uses.incomplete_columns)
    # a column differs between items alone, or between readers alone
    for name, use in uses.other_uses.items():
        message = between_items_message(uses, name) if use == "covariate" else ""
        if message:
            return message
    for name in uses.reader_attributes:
        return f"{name} differs between readers alone: name it by --conditions {quote(name)}"
    # any other reason that was found for a column, but that it has nothing to do with the texts
    for name, use in uses.other_uses.items():
        is_reason = use.startswith("not a condition (") and use != SAME_TEXTS
        if is_reason and name in uses.condition_candidates:
            return f"{name} is {use}: if it is one, give --conditions {quote(name)}"
    return ""


def between_items_message(uses: ColumnUses, name: str) -> str:
    """Returns the message that a column differs between items alone, with a remedy.

    For example, "length differs between items alone: --item reader --conditions length compares it
    within readers", for a column with one level in each item and several levels in the rows of each
    reader. "" for other columns.
    """
    if not is_within_readers(uses, name):
        return ""
    remedy = f"--item {quote(uses.reader_column)} --conditions {quote(name)}"
    return f"{name} differs between items alone: {remedy} compares it within readers"


def is_within_readers(uses: ColumnUses, name: str) -> bool:
    """Returns whether readers have several levels of a column of which each item has one."""
    values = uses.table.columns[name]
    items = uses.table.items
    n_levels = len(values.levels)
    is_few = 1 < n_levels <= MOST_LABELS and n_levels < len(items.levels)
    if not (uses.reader_column and is_few):
        return False
    if not is_determined_by(values.codes, [items.codes]):
        return False
    readers = uses.table.columns[uses.reader_column]
    return values.differs_within(readers)


def refuse_between_items(uses: ColumnUses) -> None:
    """Refuses conditions that have one level in each item and several levels for each reader.

    Effects are differences within items, and such a condition has none. The error says how its
    levels are compared within readers instead.
    """
    for name in uses.conditions:
        message = between_items_message(uses, name)
        if message:
            raise BadInput(message)


def _column_of_related_texts(uses: ColumnUses) -> str:
    """Returns the column that groups rows with related texts, in a table with one row per item.

    It may be what names the items. "" for none, and for a table with items of several rows.
    """
    table = uses.table
    if table.texts is None or table.items.counts.max(initial=0) > 1:
        return ""
    return item_column(table.columns, table.texts.tolist())


def _in_brackets(places: Places | None, rows: Sequence[int]) -> str:
    """Returns what to call rows, as " (lines 4, 5)"; "" for tables whose rows have no places."""
    return f" ({places(rows)})" if places else ""


def _missing_values(uses: ColumnUses, places: Places | None) -> Iterator[str]:
    """Yields in how many rows the item or the level of a condition is missing, a line for each.

    For example, "number is missing in 2 of 96 rows (lines 4, 5)". Without `places` the line ends
    after "rows".
    """
    columns = {"item": uses.table.items}  # column -> its value in each row
    columns |= {name: uses.table.columns[name] for name in uses.conditions}
    for name, values in columns.items():
        rows = np.flatnonzero(values.codes < 0).tolist()  # -1 stands for no value
        if rows:
            has = f"{len(rows):,} of {len(values.codes):,} rows"
            yield f"{name} is missing in {has}{_in_brackets(places, rows)}"


def _inconsistent_texts(uses: ColumnUses) -> Iterator[str]:
    """Yields how many texts of an item have several levels of a condition."""
    for name, (n_inconsistent, n_texts) in uses.inconsistent_texts.items():
        if name in uses.conditions:
            has = f"{n_inconsistent:,} of {n_texts:,} texts have several levels of {name}"
            yield f"{has}: correct them"


def _columns_of_few_levels(uses: ColumnUses) -> Iterator[tuple[str, DistinctValues]]:
    """Yields (name, levels) of the conditions, and of columns that were examined as such.

    Columns with too many levels for a break-down are left out.
    """
    for name, values in uses.table.columns.items():
        is_examined = name in uses.condition_candidates or name in uses.conditions
        if is_examined and len(values.levels) <= MOST_LEVELS:
            yield name, values


def _misspelt_levels(uses: ColumnUses, places: Places | None) -> Iterator[str]:
    """Yields rare levels of columns that may be misspelt, and which level may be meant.

    For example, "number: level 'sgg' has 1 row (line 7); did you mean 'sg'?" Rare levels that are
    like no other are named, too, if they are neither levels of the condition nor set aside.
    """
    for name, values in _columns_of_few_levels(uses):
        if all(level.isnumeric() for level in values.levels):
            continue  # numbers are not misspelt
        kept = uses.conditions.get(name, values.levels)
        set_aside = uses.levels_set_aside(name) if name in uses.conditions else ()
        counts = values.by_count()
        for number in np.flatnonzero(rare_levels(values)).tolist():
            level = values.levels[number]
            rows = np.flatnonzero(values.codes == number).tolist()
            frequent_levels = [other for other, n in counts.items() if len(rows) < FAR_FEWER * n]
            close_levels = get_close_matches(level, frequent_levels, n=1, cutoff=_CLOSE)
            has = f"{len(rows)} row{'s' if len(rows) > 1 else ''}{_in_brackets(places, rows)}"
            if level not in kept:
                has += " and is left out"
            if close_levels:
                yield f"{name}: level {level!r} has {has}; did you mean {close_levels[0]!r}?"
            elif level not in kept and level not in set_aside:
                yield f"{name}: level {level!r} has {has}: correct it"


def _has_words_of_texts(uses: ColumnUses, name: str) -> bool:
    """Returns whether each value of a column is a word of the text of its row.

    An example is a column of critical words, with "sat" beside "The cat sat.". Rows without a value
    do not count; some rows have one, since only columns with two levels or more are examined. False
    for a table without texts.
    """
    if uses.table.texts is None:
        return False
    values = uses.table.columns[name]
    for text, code in zip(uses.table.texts.tolist(), values.codes.tolist(), strict=True):
        if code >= 0 and not word_spans(str(text), values.levels[code]):
            return False
    return True


def _numbers_cells(uses: ColumnUses, name: str) -> bool:
    """Returns whether a column has one number for each item and cell of the conditions.

    An example is the length of the critical word: 4 in item 1 with sg, 5 in item 1 with pl. Levels
    of a condition may be numbers, too, but then some item has all of them: False in this case.
    """
    values = uses.table.columns[name]
    items = uses.table.items.codes
    n_levels_of_item = n_distinct_by(items, values.codes)
    if (n_levels_of_item == len(values.levels)).any():
        return False
    if not all(level.isnumeric() for level in values.levels):
        return False
    conditions = [uses.table.columns[condition].codes for condition in uses.conditions]
    return is_determined_by(values.codes, [items, *conditions])


def _incomplete(uses: ColumnUses, name: str) -> str:
    """Returns the message that a column is not taken, since most items lack some of its levels.

    For example, "number is not taken for a condition: 1 of 24 items have all of its levels (rows:
    sg 24, pl 1); correct it, or name it by --conditions". If some items have one set of levels and
    others another set: "cond has other levels in other items (a, b; c, d): choose some by --filter
    cond=a,b".
    """
    values = uses.table.columns[name]
    counts = ", ".join(f"{level} {n}" for level, n in values.by_count().items())
    n_levels_of_item = n_distinct_by(uses.table.items.codes, values.codes)
    n_complete = int((n_levels_of_item == len(values.levels)).sum())
    has = f"{n_complete} of {len(n_levels_of_item)} items have all of its levels"
    has += f" (rows: {shortened(counts, 200)})"
    level_sets = _sets_of_levels(uses, name)
    if len(level_sets) > 1:
        sets = "; ".join(", ".join(levels) for levels in level_sets)
        kept = quote(f"{name}={','.join(level_sets[0])}")
        return f"{name} has other levels in other items ({sets}): choose some by --filter {kept}"
    # --conditions helps only if some item is complete: without one, no effect is tested
    remedy = "correct it, or name it by --conditions" if n_complete else "correct it if it is one"
    return f"{name} is not taken for a condition: {has}; {remedy}"


def _sets_of_levels(uses: ColumnUses, name: str) -> list[tuple[str, ...]]:
    """Returns the sets of levels of a column that occur together in items; [] for no clear sets.

    For example, [("a", "b"), ("c", "d")] if some items have the levels a and b, and other items c
    and d. Sets that share a level are joined to one. The sets are clear if most items have all
    levels of their set, and if there are at least two items for each set on average. Items with one
    level, as fillers have, do not count.
    """
    candidate = uses.condition_candidates[name]
    # the numbers of the levels of each item; a row of `rows_per_item` has n rows of each level
    levels_of_items = [
        frozenset(np.flatnonzero(n_rows).tolist()) for n_rows in candidate.rows_per_item
    ]
    levels_of_items = [levels for levels in levels_of_items if len(levels) > 1]
    level_sets: list[frozenset[int]] = []
    for levels in {*levels_of_items}:
        overlapping = [other for other in level_sets if other & levels]
        separate = [other for other in level_sets if not other & levels]
        level_sets = [*separate, levels.union(*overlapping)]
    n_complete = sum(levels in level_sets for levels in levels_of_items)
    if 2 * n_complete > len(levels_of_items) >= 2 * len(level_sets):
        return sorted(candidate.level_names(levels) for levels in level_sets)
    return []


def _fillers(uses: ColumnUses) -> Iterator[str]:
    """Yields a line for each column with levels of fillers, or levels that are set aside.

    For example, "type has 48 rows 'filler', in items of their own: --filter 'type!=filler' leaves
    them out".
    """
    for name, values in _columns_of_few_levels(uses):
        set_aside = uses.levels_set_aside(name) if name in uses.conditions else ()
        named_fillers = [level for level in values.levels if is_filler(level)]
        fillers = [*dict.fromkeys((*set_aside, *named_fillers))]
        if fillers:
            counts = values.by_count()
            n = sum(counts[level] for level in fillers)
            names = first_few([repr(level) for level in fillers])
            has = f"{name} has {n:,} row{'s' if n > 1 else ''} {names}"
            if _are_in_items_of_their_own(uses, name, fillers):
                has += ", in items of their own"
            condition = quote(f"{name}!={','.join(fillers)}")
            yield f"{has}: --filter {condition} leaves them out"


def _are_in_items_of_their_own(uses: ColumnUses, name: str, levels: Sequence[str]) -> bool:
    """Returns whether no item has one of these levels of a column beside another level."""
    values = uses.table.columns[name]
    # the last entry is for code -1
    is_among_levels = np.array([*(level in levels for level in values.levels), False])
    is_among = is_among_levels[values.codes].astype(np.intp)
    kinds = np.where(values.codes < 0, -1, is_among)  # 1 for these levels, 0 for others
    n_kinds_of_item = n_distinct_by(uses.table.items.codes, kinds)
    return bool((n_kinds_of_item < 2).all())


def _nested_levels(uses: ColumnUses, name: str) -> str:
    """Returns the message that a column has other levels at each level of another column.

    An example is `cond` with a and b in items of experiment 1, c and d in those of experiment 2.
    The other column has one level for each item; at each of its levels most items have all
    levels that occur there. "" if there is no such column.
    """
    candidate = uses.condition_candidates.get(name)
    if candidate is None or candidate.share_of_varying_items() < 0.5:
        return ""
    items = uses.table.items.codes
    for block_column, blocks in uses.table.columns.items():
        is_few = 2 <= len(blocks.levels) <= MOST_LABELS
        if not is_few or not is_determined_by(blocks.codes, [items]):
            continue
        # {} if items of a block lack levels that other items of the block have
        levels_of_blocks = _levels_of_blocks(candidate, blocks, items)
        if len({*levels_of_blocks.values()}) > 1:
            shown = "; ".join(f"{x}: {', '.join(levels)}" for x, levels in levels_of_blocks.items())
            has = f"{name} has other levels at each level of {block_column} ({shown})"
            first_block = next(iter(levels_of_blocks))
            return f"{has}: choose one by --filter {quote(f'{block_column}={first_block}')}"
    return ""


def _levels_of_blocks(
    candidate: ConditionCandidate, blocks: DistinctValues, items: Codes
) -> dict[str, tuple[str, ...]]:
    """Returns block -> the levels that a column has in the items of this block.

    A block is a set of items, such as those of one experiment of a table with several experiments.
    For example, {"exp1": ("a", "b"), "exp2": ("c", "d")}: the column has other conditions in each
    experiment, and is complete within each of them, though no item has all four levels.

    {} if a block has fewer than two items, or most items of a block lack some of its levels: the
    column is then not complete in its blocks either. Blocks are in the order of their names.

    Args:
        candidate: the column, with its number of rows of each level in each item.
        blocks: the values of another column, which has one value for each item.
        items: number of the item of each row.
    """
    is_filled = (items >= 0) & (blocks.codes >= 0)
    block_of_item = np.full(len(candidate.rows_per_item), -1)  # -1 for an item without a block
    block_of_item[items[is_filled]] = blocks.codes[is_filled]
    levels_of_blocks = {}
    for number, block in enumerate(blocks.levels):
        # (n items of the block, n levels)
        has_level = candidate.rows_per_item[block_of_item == number] > 0
        levels = np.flatnonzero(has_level.any(axis=0))  # those that some item of the block has
        is_complete = has_level[:, levels].all(axis=1)
        if len(has_level) < 2 or is_complete.mean() < 0.5:
            return {}
        levels_of_blocks[block] = candidate.level_names(levels)
    return dict(sorted(levels_of_blocks.items()))


def _many_levels(uses: ColumnUses, name: str) -> str:
    """Returns the message that a column has more than six levels, which differ within items.

    "" if it has fewer, or hardly repeats, or each of its values stands in one item.
    """
    values = uses.table.columns[name]
    n = len(values.levels)
    if n <= MOST_LABELS or 2 * n > values.n_filled:
        return ""
    if uses.condition_candidates[name].share_of_varying_items() < 0.5:
        return ""
    if is_determined_by(uses.table.items.codes, [values.codes]):
        return ""
    levels = in_order(values.levels)
    remedy = f"name it by --conditions {quote(name)}, or keep some by "
    remedy += f"--filter {quote(f'{name}={levels[0]},{levels[1]}')}"
    split = split_of(levels, uses.table.columns)
    if split:
        remedy += f", or divide them by --split {quote(f'{name}={split}')}"
    return f"{name} has {n} levels, more than {MOST_LABELS}: {remedy}"


def _repeated_trials(uses: ColumnUses) -> Iterator[str]:
    """Yields a line for each condition that differs within trials, if another one does not.

    A trial is what one reader does with one item. A reader mostly sees an item in one condition, so
    that several levels in a trial may be those of measures or regions. For example, "rows of one
    reader and item differ in measure, and not in number: if it names measures or regions, choose
    one by --filter measure=FFD".
    """
    if not uses.reader_column or uses.reader_column in uses.conditions:
        return
    readers = uses.table.columns[uses.reader_column].codes
    trials = combine_codes(uses.table.items.codes, readers)  # number of the trial of each row
    if (trials < 0).all():  # no row has a reader and an item
        return
    n_levels = {}  # condition -> median number of its levels in a trial
    for name in uses.conditions:
        n_levels[name] = np.median(n_distinct_by(trials, uses.table.columns[name].codes))
    fixed = [name for name, n in n_levels.items() if n < 2]
    if not fixed:
        return
    for name, n in n_levels.items():
        if n > 1:
            has = f"rows of one reader and item differ in {name}, and not in {fixed[0]}"
            choice = quote(f"{name}={uses.conditions[name][0]}")
            yield f"{has}: if it names measures or regions, choose one by --filter {choice}"
