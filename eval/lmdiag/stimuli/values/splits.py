"""Names of several parts, as levels gram_sg and items 1_sg, and how `--split` divides them."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from math import prod
from shlex import quote
from typing import TYPE_CHECKING

from lmdiag.stimuli.values.codes import combined, is_known_from
from lmdiag.stimuli.values.kinds import MOST_LABELS, RELATED, Distinct, is_numeral, shared_words

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

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

_SEPARATOR = re.compile(r"(?:\W|_)+").findall
_FIRST_NAMES = 20  # which are divided before all of them
_MOST_LETTERS = 3  # parts of names that are single letters
_MOST_UNMARKED = 3  # levels of a condition whose name no sign divides from another


def parts_of(names: Sequence[str], separator: str, n: int) -> list[list[str]]:
    """Returns the parts of each name, `n` if it has as many.

    Without a separator these are the characters, or the numbers and what stands between them, or
    what begins with capital letters; all names are divided in the same way.

    >>> parts_of(["Gram_Match"], "_", 2), parts_of(["12a"], "", 2), parts_of(["GramSg"], "", 2)
    ([['Gram', 'Match']], [['12', 'a']], [['Gram', 'Sg']])
    """
    if separator:
        return [[part.strip() for part in name.split(separator)] for name in names]
    for divide in (list, _capital_parts):
        parts = [divide(name) for name in names]
        if all(len(of) == n for of in parts):
            return parts
    return [re.findall(r"\d+|\D+", name) for name in names]


def _capital_parts(name: str) -> list[str]:
    """The parts of a name that begin with capital letters."""
    starts = [i for i in range(1, len(name)) if name[i].isupper() > name[i - 1].isupper()]
    return [name[start:end] for start, end in pairwise([0, *starts, len(name)])]


def _divisions(names: Sequence[str]) -> Iterator[tuple[str, list[list[str]]]]:
    """Yields each separator by which all names have the same number of parts, and the parts.

    Numbers have no parts.
    """
    if all(map(is_numeral, names)):
        return
    first = names[0]
    marks = _SEPARATOR(first)
    choices = [(x, first.count(x) + 1) for x in (*marks, *"".join(marks))]
    choices += [("", 2), ("", len(_capital_parts(first)))]
    is_short = len(first) <= _MOST_LETTERS and first.isupper()
    choices += [("", len(first))] if is_short else []
    for separator, n in dict.fromkeys(choices):
        for some in (names[:_FIRST_NAMES], names):
            parts = parts_of(some, separator, n) if n > 1 else [[]]
            if not all(len(of) == n and all(of) for of in parts):
                break
        else:
            yield separator, parts


def _part_names(parts: Sequence[Sequence[str]], taken: Collection[str]) -> list[str]:
    """Names of the parts: known ones that no column has, `factor_1`, and `part_1` for one value."""
    names = []
    for levels in map(set, zip(*parts, strict=True)):
        plain = {level.casefold() for level in levels}
        known = (name for name, of in _FACTORS.items() if plain in of and name not in taken)
        names.append(next(known, "factor" if len(levels) > 1 else "part"))
    return [
        f"{'part' if name == 'part' else 'factor'}_{number}"
        if name in ("part", "factor") or names.count(name) > 1
        else name
        for number, name in enumerate(names, start=1)
    ]


def split_of(levels: Sequence[str], taken: Collection[str] = ()) -> str:
    """Returns the SEPARATOR:NAME,NAME that divides levels into crossed conditions; "" for none.

    Args:
        levels: of a column.
        taken: names of other columns.

    >>> split_of(["Gram_Match", "Gram_Mismatch", "Ungram_Match", "Ungram_Mismatch"])
    '_:grammaticality,factor_2'
    """
    if len({*levels}) < 4:
        return ""
    found = [*filter(_are_crossed, _divisions(levels))]
    if not found:
        return ""
    separator, parts = min(found, key=lambda division: (not division[0], len(division[1][0])))
    return f"{separator}:{','.join(_part_names(parts, taken))}"


def _are_crossed(division: tuple[str, list[list[str]]]) -> bool:
    """Whether two parts or more vary, and have all combinations of their levels."""
    separator, parts = division
    sizes = [len({*factor}) for factor in zip(*parts, strict=True)]
    most = MOST_LABELS if separator else _MOST_UNMARKED
    n_varying = sum(size > 1 for size in sizes)
    return max(sizes) <= most and n_varying > 1 and prod(sizes) == len(parts)


# ---- names of items ------------------------------------------------------------------------------


def split_of_names(
    items: Distinct,
    texts: Sequence[str] | None,
    others: Mapping[str, Distinct],
    column: str = "item",
) -> str:
    """Returns which names of items have conditions in them and what divides them; "" for none.

    The item is one part of a name. The others have 2 to 6 levels each, of which most items have
    several. Texts of these have words in common; in a table without texts, another column names the
    same levels.

    Args:
        items: names of the rows' items.
        texts: of the rows; None in a table of responses.
        others: the columns of the table beside these.
        column: of the names.
    """
    import numpy as np

    for split, of_items, levels in _readings(items.levels, others):
        if texts is None:
            is_divided = any(_names_levels(x, items, levels) for x in others.values())
        else:
            of_rows = np.where(items.codes < 0, -1, of_items[items.codes])
            within, across = shared_words(texts, of_rows)
            is_divided = within >= RELATED and within > across
        if is_divided:
            first = int(np.flatnonzero(np.bincount(of_items)[of_items] > 1)[0])
            numbers = np.flatnonzero(of_items == of_items[first]).tolist()
            names = [items.levels[n] for n in numbers]
            has = f"names of items have a condition in them, as {names[0]} and {names[1]}"
            return f"{has}: --split {quote(f'{column}={split}')} divides them"
    return ""


def _readings(
    names: Sequence[str], taken: Collection[str], item: str = "item"
) -> Iterator[tuple[str, NDArray[np.intp], NDArray[np.intp]]]:
    """Yields how names are divided into an item and conditions, and the numbers of these.

    Any part may be the item, which gets this name, if the others have 2 to 6 levels each, and most
    items several.
    """
    import numpy as np
    from pandas import factorize

    for separator, parts in _divisions(names) if len(names) > 1 else ():
        codes = [factorize(np.array(part, dtype=object))[0] for part in zip(*parts, strict=True)]
        part_names = _part_names(parts, taken)
        for number, items in enumerate(codes):
            factors = [x for x in codes if x is not items and x.max() > 0]
            sizes = np.bincount(items)
            if not factors or max(map(np.max, factors)) >= MOST_LABELS or len(sizes) < 2:
                continue
            if (sizes > 1).mean() > 0.5:
                columns = [item if x == number else name for x, name in enumerate(part_names)]
                yield f"{separator}:{','.join(columns)}", items, combined(*factors)


def split_with_items(labels: Distinct, items: Distinct, column: str, taken: Collection[str]) -> str:
    """Returns what divides labels into the item that stands beside them and conditions; or "".

    Args:
        labels: of a column.
        items: names of the rows' items, which one part of the labels has, too.
        column: of the labels.
        taken: names of the columns of the table.
    """
    import numpy as np

    for split, of_items, _ in _readings(labels.levels, taken, "part"):
        of_rows = np.where(labels.codes < 0, -1, of_items[labels.codes])
        filled = np.where(of_rows < 0, -1, items.codes)
        if is_known_from(of_rows, [filled]) and is_known_from(filled, [of_rows]):
            has = f"{column} has the item and conditions in it, as {labels.levels[0]}"
            return f"{has}: --split {quote(f'{column}={split}')} divides them"
    return ""


def _names_levels(column: Distinct, items: Distinct, levels: NDArray[np.intp]) -> bool:
    """Whether a column has one value for each of the levels in names of items."""
    is_filled = (items.codes >= 0) & (column.codes >= 0)
    pairs = {*zip(levels[items.codes[is_filled]], column.codes[is_filled], strict=True)}
    return len(pairs) == len(column.levels) == int(levels.max()) + 1
