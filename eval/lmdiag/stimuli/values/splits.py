"""Names of several parts, as levels gram_sg and items 1_sg, and how `--split` divides them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from shlex import quote

from lmdiag.stimuli.values.codes import Codes, combine_codes, is_determined_by
from lmdiag.stimuli.values.kinds import (
    MOST_LABELS,
    RELATED,
    DistinctValues,
    is_numeral,
    median_overlaps,
)

# name of a condition -> sets of levels that it usually has
_FACTORS: Mapping[str, Sequence[set[str]]] = {
    "grammaticality": [{"gram", "ungram"}, {"grammatical", "ungrammatical"}, {"g", "ug"}],
    "plausibility": [{"plausible", "implausible"}, {"plaus", "implaus"}],
    "number": [{"sg", "pl"}, {"singular", "plural"}, {"sing", "plur"}],
    "expectation": [{"expected", "unexpected"}],
    "relatedness": [{"related", "unrelated"}],
    "ambiguity": [{"ambiguous", "unambiguous"}, {"amb", "unamb"}],
    "length": [{"short", "long"}],
}

_separators_in = re.compile(r"(?:\W|_)+").findall
_FIRST_NAMES = 20  # which are divided before all of them
_MOST_LETTERS = 3  # parts of names that are single letters
_MOST_UNMARKED = 3  # levels of a condition whose name no sign divides from another


def parts_of(names: Sequence[str], separator: str, n: int) -> list[list[str]]:
    """Returns the parts of each name.

    Without a separator all names are divided in the same way: into characters if all names have `n`
    of these, else before capital letters if that makes `n` parts of all names, else into numbers
    and what stands between them.

    Args:
        names: to be divided.
        separator: what stands between the parts; "" if nothing does.
        n: number of parts that each name should have; without effect if there is a separator.

    >>> parts_of(["Gram_Match"], "_", 2), parts_of(["12a"], "", 2), parts_of(["GramSg"], "", 2)
    ([['Gram', 'Match']], [['12', 'a']], [['Gram', 'Sg']])
    """
    if separator:
        return [[part.strip() for part in name.split(separator)] for name in names]
    for divide in (list, _capital_parts):  # `list` divides into characters
        parts = [divide(name) for name in names]
        if all(len(parts_of_name) == n for parts_of_name in parts):
            return parts
    return [re.findall(r"\d+|\D+", name) for name in names]


def _capital_parts(name: str) -> list[str]:
    """Returns the parts of a name, of which each but the first begins with a capital letter.

    >>> _capital_parts("gramSgMatch"), _capital_parts("NPBias")
    (['gram', 'Sg', 'Match'], ['NPBias'])
    """
    starts = []
    for position in range(1, len(name)):
        if name[position].isupper() and not name[position - 1].isupper():
            starts.append(position)
    return [name[start:end] for start, end in pairwise([0, *starts, len(name)])]


def _divisions(names: Sequence[str]) -> Iterator[tuple[str, list[list[str]]]]:
    """Yields each way to divide all names into the same number of parts: (separator, parts).

    For example, ("_", [["gram", "sg"], ["gram", "pl"]]) for gram_sg and gram_pl. The separators are
    those that the first name has; the separator "" divides names as `parts_of` does. Names that are
    numbers are not divided.
    """
    if all(is_numeral(name) for name in names):
        return
    first_name = names[0]
    marks = _separators_in(first_name)  # one sign or several, as " - "
    single_marks = "".join(marks)
    # (separator, number of parts); the last ones have no separator: a number and letters, words
    # that begin with capitals, and single letters, as in "AB"
    choices = [(mark, first_name.count(mark) + 1) for mark in (*marks, *single_marks)]
    choices.append(("", 2))
    choices.append(("", len(_capital_parts(first_name))))
    if len(first_name) <= _MOST_LETTERS and first_name.isupper():
        choices.append(("", len(first_name)))
    for separator, n in dict.fromkeys(choices):
        if n < 2:
            continue
        # a look at some names first saves time, since most separators do not divide them
        if _parts_if_alike(names[:_FIRST_NAMES], separator, n):
            parts = _parts_if_alike(names, separator, n)
            if parts:
                yield separator, parts


def _parts_if_alike(names: Sequence[str], separator: str, n: int) -> list[list[str]]:
    """Returns the parts of each name if all names have `n` parts, none of them empty; else []."""
    parts = parts_of(names, separator, n)
    is_alike = all(len(parts_of_name) == n and all(parts_of_name) for parts_of_name in parts)
    return parts if is_alike else []


def _part_names(parts: Sequence[Sequence[str]], taken: Collection[str]) -> list[str]:
    """Returns a name for the column of each part, such as ["part_1", "number", "factor_3"].

    A condition with usual levels gets its usual name, `number` for sg and pl, unless a column has
    this name or two parts would have it. Others are `factor_1` and so on by their position, or
    `part_1` if all names have the same value in this part.

    Args:
        parts: of each name.
        taken: names of the columns of the table.
    """
    names = []
    for values in zip(*parts, strict=True):
        levels = {value.casefold() for value in values}
        name = "factor" if len({*values}) > 1 else "part"
        for factor, usual_levels in _FACTORS.items():
            if levels in usual_levels and factor not in taken:
                name = factor
                break
        names.append(name)
    numbered_names = []
    for number, name in enumerate(names, start=1):
        if name == "part":
            numbered_names.append(f"part_{number}")
        elif name == "factor" or names.count(name) > 1:
            numbered_names.append(f"factor_{number}")
        else:
            numbered_names.append(name)
    return numbered_names


def split_of(levels: Sequence[str], taken: Collection[str] = ()) -> str:
    """Returns the SEPARATOR:NAME,NAME that divides levels into crossed conditions; "" for none.

    A separator is preferred to none, and few parts to many.

    Args:
        levels: of a column.
        taken: names of the columns of the table, which the conditions do not get.

    >>> split_of(["Gram_Match", "Gram_Mismatch", "Ungram_Match", "Ungram_Mismatch"])
    '_:grammaticality,factor_2'
    """
    if len({*levels}) < 4:  # two conditions have four cells or more
        return ""
    divisions = [
        (separator, parts)
        for separator, parts in _divisions(levels)
        if _are_crossed(separator, parts)
    ]
    if not divisions:
        return ""

    def rank(division: tuple[str, list[list[str]]]) -> tuple[bool, int]:
        separator, parts = division
        return separator == "", len(parts[0])

    separator, parts = min(divisions, key=rank)
    return f"{separator}:{','.join(_part_names(parts, taken))}"


def _are_crossed(separator: str, parts: Sequence[Sequence[str]]) -> bool:
    """Returns whether two parts or more vary, and the names have all combinations of their levels.

    A part has up to six levels, and up to three if no sign separates the parts.

    `parts` has the parts of each name, and `separator` what stands between them, "" for nothing.
    """
    n_levels = [len({*values}) for values in zip(*parts, strict=True)]  # of each part
    most = MOST_LABELS if separator else _MOST_UNMARKED
    n_varying = sum(n > 1 for n in n_levels)
    return max(n_levels) <= most and n_varying > 1 and prod(n_levels) == len(parts)


# ---- names of items ------------------------------------------------------------------------------


@dataclass(frozen=True)
class _ItemDivision:
    """One way to divide names into an item and conditions.

    Attributes:
        split: what `--split` takes, SEPARATOR:NAME,NAME.
        items: number of the item of each name, (n names,).
        cells: number of the combination of levels of each name, (n names,).
    """

    split: str
    items: Codes
    cells: Codes


def split_message_for_item_names(
    items: DistinctValues,
    texts: Sequence[str] | None,
    other_columns: Mapping[str, DistinctValues],
    column: str = "item",
) -> str:
    """Returns a message if names of items have conditions in them; "" if they have not.

    For example, the names "7_sg", "7_pl", "8_sg" and "8_pl" are those of the items 7 and 8 at the
    levels sg and pl. The message then is "names of items have a condition in them, as 7_sg and
    7_pl: --split item=_:item,number divides them".

    One part of a name is the item, and each other part has up to six levels; most items have
    several names. To exclude names that have such parts by chance, the texts of an item must have
    words in common. In a table without texts, the values of another column must name the same
    combinations of levels.

    Args:
        items: names of the rows' items.
        texts: of the rows; None in a table of responses.
        other_columns: name -> values, of the columns of the table beside that of items.
        column: name of the column of items.
    """
    import numpy as np

    for division in _item_divisions(items.levels, other_columns):
        # is the division more than chance? the other columns or the texts tell
        if texts is None:
            is_divided = any(
                _names_cells(values, items, division.cells) for values in other_columns.values()
            )
        else:
            # row -> its name -> the item in this name; -1 for a row without a name
            item_of_row = np.where(items.codes < 0, -1, division.items[items.codes])
            within, across = median_overlaps(texts, item_of_row)
            is_divided = within >= RELATED and within > across
        if is_divided:
            # the first item with several names; a division in which most items have several names
            # has such an item
            n_names_of_item = np.bincount(division.items)
            example_item = division.items[n_names_of_item[division.items] > 1][0]
            first, second, *_ = np.flatnonzero(division.items == example_item).tolist()
            examples = f"{items.levels[first]} and {items.levels[second]}"
            has = f"names of items have a condition in them, as {examples}"
            return f"{has}: --split {quote(f'{column}={division.split}')} divides them"
    return ""


def _item_divisions(
    names: Sequence[str], taken: Collection[str], item: str = "item"
) -> Iterator[_ItemDivision]:
    """Yields each way to divide names into an item and conditions.

    For example, "7_sg", "7_pl", "8_sg" and "8_pl" are divided by "_:item,number": the items have
    the numbers [0, 0, 1, 1], and the cells, here sg and pl, [0, 1, 0, 1].

    Any part may be the item if each other part has up to six levels, one of them has several, and
    most items have several names.

    Args:
        names: to be divided.
        taken: names of the columns of the table, which the conditions do not get.
        item: what the split calls the part of the item.
    """
    import numpy as np
    from pandas import factorize

    if len(names) < 2:
        return
    for separator, parts in _divisions(names):
        # of each part, the number of its value in each name
        codes = [factorize(np.array(part, dtype=object))[0] for part in zip(*parts, strict=True)]
        part_names = _part_names(parts, taken)
        for item_part, items in enumerate(codes):
            n_names_of_item = np.bincount(items)
            # the other parts, without those that are the same in all names
            factors = [part for part in codes if part is not items and part.max() > 0]
            if not factors or len(n_names_of_item) < 2:
                continue
            # codes are 0 to 5 for six levels
            if max(part.max() for part in factors) >= MOST_LABELS:
                continue
            if (n_names_of_item > 1).mean() > 0.5:
                columns = [*part_names]
                columns[item_part] = item
                split = f"{separator}:{','.join(columns)}"
                yield _ItemDivision(split, items, combine_codes(*factors))


def split_message_for_labels(
    labels: DistinctValues, items: DistinctValues, column: str, taken: Collection[str]
) -> str:
    """Returns a message if labels have the item of their row and conditions in them; "" if not.

    For example, the labels 7_sg and 7_pl in a column `name` beside item 7 give the message "name
    has the item and conditions in it, as 7_sg: --split name=_:part,number divides them".

    Args:
        labels: of a column.
        items: names of the rows' items, which one part of the labels has, too.
        column: name of the column of labels.
        taken: names of the columns of the table.
    """
    import numpy as np

    for division in _item_divisions(labels.levels, taken, "part"):
        # of each row, the number of the part of its label that may be the item
        parts = np.where(labels.codes < 0, -1, division.items[labels.codes])
        items_of_parts = np.where(parts < 0, -1, items.codes)
        # part and item name the same rows: each item has one part, and each part one item
        has_one_part = is_determined_by(parts, [items_of_parts])
        if has_one_part and is_determined_by(items_of_parts, [parts]):
            has = f"{column} has the item and conditions in it, as {labels.levels[0]}"
            return f"{has}: --split {quote(f'{column}={division.split}')} divides them"
    return ""


def _names_cells(column: DistinctValues, items: DistinctValues, cells: Codes) -> bool:
    """Returns whether a column has exactly one value for each cell of conditions in names of items.

    For example, a column with "singular" in all rows of 7_sg and 8_sg, and with "plural" in those
    of 7_pl and 8_pl, names the cells sg and pl.

    Args:
        column: whose values may name the cells.
        items: names of the rows' items.
        cells: number of the cell that each name has in it, (n names,).
    """
    is_filled = (items.codes >= 0) & (column.codes >= 0)
    cell_of_row = cells[items.codes[is_filled]]
    pairs = {*zip(cell_of_row, column.codes[is_filled], strict=True)}
    # as many pairs as cells and as values: each cell has one value, and each value one cell
    return len(pairs) == len(column.levels) == int(cells.max()) + 1
