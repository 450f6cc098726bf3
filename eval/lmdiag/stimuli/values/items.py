"""The columns that name the items and the participants of a table: decided here alone.

Names only suggest. An item groups rows: where texts are known, those of its rows are related.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lmdiag.stimuli.values.codes import combined, is_known_from, n_distinct
from lmdiag.stimuli.values.kinds import FEW_ROWS, MOST_LABELS, RELATED, Distinct, shared_words
from lmdiag.stimuli.values.names import is_named, is_outcome, named
from lmdiag.text import DATA_SUFFIX, folded

_LONG = 5  # words of a text that does not name an item
# how much more overlap of texts rows of one item have than those of two, in a column of any name
_MARGIN = 0.25

# ends of folded names of columns that number or name something
_NUMBERS_ROWS = re.compile(r"(id|nr|no|num|number|item|code)\Z").search

_NUMBERED = re.compile(r"([^\W\d_]+)[\W_]?\d+").fullmatch


def names_rows(column: str) -> bool:
    """Returns whether the name of a column says that it numbers or names something."""
    return bool(_NUMBERS_ROWS(folded(column)))


def item_column(columns: Mapping[str, Distinct], texts: Sequence[str] = ()) -> str:
    """Returns the column that names the items of a table; "" for none.

    Args:
        columns: that may name them.
        texts: of the rows, as models read them; () where they are not known.
    """
    if "item" in columns:
        return "item"
    return _with_related_texts(columns, texts) if texts else _named_as_items(columns)


def _with_related_texts(columns: Mapping[str, Distinct], texts: Sequence[str]) -> str:
    """The one column that groups rows with related texts, or the first that is named as items."""
    likely = []
    for name, values in columns.items():
        is_other = values.are_texts or is_named(name, "list") or name == "condition"
        if is_other or not values.are_groups:
            continue
        within, across = shared_words(texts, values.codes)
        margin = 0.0 if is_named(name, "item") else _MARGIN
        if within >= RELATED and within > across + margin:
            likely.append(name)
    if len(likely) > 1:  # a word of its text does not name an item
        likely = [name for name in likely if not _are_parts_of_texts(columns[name], texts)]
    names = named("item", likely) or likely
    if not names:
        return ""
    first = columns[names[0]]
    is_sure = is_named(names[0], "item") or all(first.is_same_as(columns[x]) for x in names)
    return names[0] if is_sure else ""


def _are_parts_of_texts(values: Distinct, texts: Sequence[str]) -> bool:
    """Whether more than half of a column's distinct values stand in a text of theirs.

    Each value is looked for, as a string, in the text of the first row that has it. Numbers are
    never parts of texts: they count items.

    Args:
        values: of the column.
        texts: of the rows, one for each.
    """
    pairs = [*zip(values.codes.tolist(), texts, strict=True)]
    first = dict(reversed(pairs))  # of each value, its first text
    n_inside = sum(values.levels[code] in first[code] for code in first if code >= 0)
    return not values.is_number and 2 * n_inside > len(values.levels)


def _named_as_items(columns: Mapping[str, Distinct]) -> str:
    """The column that is named as items, whose values are not texts.

    Where its `ID` is that of a participant, it is a column that each participant has once.
    """
    people = participants(columns)
    names = named("item", columns)
    begin = [name for name in columns if folded(name).startswith("item")]
    names = [name for name in dict.fromkeys((*names, *begin)) if name not in people]
    for name in names:
        values = columns[name]
        repeats = 1 < len(values.levels) < values.n_filled
        if repeats and not values.are_texts and not _is_factor(name, columns, names):
            return name
    crossed = crossed_with(people[0], columns) if people else []
    crossed = [name for name in crossed if _may_name_items(name, columns[name], people[0])]
    return next(iter((*(x for x in names if x in begin), *crossed)), "")


def _is_factor(name: str, columns: Mapping[str, Distinct], names: Sequence[str]) -> bool:
    """Whether a column has a few labels in many rows, or within another one of items."""
    values = columns[name]
    others = (columns[other] for other in names if other != name)
    if any(map(values.are_labels_within, others)):
        return True
    n_rows = 0 if values.is_number else values.n_filled // len(values.levels or [""])
    return len(values.levels) <= MOST_LABELS and n_rows > FEW_ROWS


def _may_name_items(name: str, values: Distinct, reader: str) -> bool:
    """Whether a column that each participant has once has items, and no conditions or texts."""
    is_id = names_rows(name) or not is_named(reader, "reader")
    is_long = values.are_texts and values.mean_words >= _LONG
    is_place = any(is_named(name, role) for role in ("position", "text", "word", "list"))
    return not (is_long or is_place) and (is_id or len(values.levels) > MOST_LABELS)


def participants(columns: Mapping[str, Distinct]) -> list[str]:
    """Returns the columns that name participants: those that are called so, else an `ID`.

    An `ID` names participants where each of its values stands once beside each value of another
    column, as a participant reads each item once, and

    - that column has texts, or names more items than a column of labels has values; or
    - a column of the age or the like has one value for each `ID`; or
    - its values are codes as S01.
    """
    names = named("reader", columns)
    name = next((x for x in columns if folded(x.removesuffix(DATA_SUFFIX)) == "id"), "")
    if names or not name or not columns[name].are_groups:
        return names
    crossed = crossed_with(name, columns)
    are_items = any(
        columns[other].are_texts
        or (is_named(other, "item") and len(columns[other].levels) > MOST_LABELS)
        for other in crossed
    )
    has_person = any(
        is_named(other, "person") and is_known_from(values.codes, [columns[name].codes])
        for other, values in columns.items()
    )
    are_codes = all(map(_names_participant, columns[name].levels))
    return [name] if crossed and (are_items or has_person or are_codes) else []


def _names_participant(level: str) -> bool:
    """Whether a value is a participant's, as S01 or subj_12."""
    match = _NUMBERED(level)
    return match is not None and (match[1].casefold() in ("s", "p") or is_named(match[1], "reader"))


def crossed_with(name: str, columns: Mapping[str, Distinct]) -> list[str]:
    """Returns the columns whose values each stand at most once beside each value of another column.

    Both columns differ within the values of the other. The one with the most values comes first.
    """
    codes = columns[name].codes
    found = [
        other
        for other, values in columns.items()
        if other != name and values.are_groups and not is_outcome(other)
        if n_distinct(combined(codes, values.codes)) == values.n_filled == columns[name].n_filled
        if values.differs_within(columns[name]) and columns[name].differs_within(values)
    ]
    return sorted(found, key=lambda other: -len(columns[other].levels))
