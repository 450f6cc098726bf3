"""The columns that name the items and the participants of a table: decided here alone.

Names only suggest. An item groups rows: where texts are known, those of its rows are related.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from lmdiag.stimuli.values.codes import combine_codes, is_determined_by, n_distinct
from lmdiag.stimuli.values.kinds import (
    FEW_ROWS,
    MOST_LABELS,
    RELATED,
    DistinctValues,
    median_overlaps,
)
from lmdiag.stimuli.values.names import is_named_as, is_outcome, named_columns
from lmdiag.text import DATA_SUFFIX, folded

_LONG = 5  # words of a text that does not name an item
# how much more overlap of texts rows of one item have than those of two, in a column of any name
_MARGIN = 0.25

# ends of folded names of columns that number or name something
_ends_as_name_of_numbers = re.compile(r"(id|nr|no|num|number|item|code)\Z").search

_letters_and_number = re.compile(r"([^\W\d_]+)[\W_]?\d+").fullmatch


def names_rows(column: str) -> bool:
    """Returns whether a column is named as an id or a number, as `trial_nr` or `ItemCode`."""
    return bool(_ends_as_name_of_numbers(folded(column)))


def item_column(columns: Mapping[str, DistinctValues], texts: Sequence[str] = ()) -> str:
    """Returns the column that names the items of a table; "" for none.

    That is the column `item`, else one whose values group rows with related texts, or, where texts
    are not known, one that has a name and values as items have.

    Args:
        columns: name -> values, of all columns that may name the items.
        texts: of the rows, as models read them; () where they are not known.
    """
    if "item" in columns:
        return "item"
    return _with_related_texts(columns, texts) if texts else _named_as_items(columns)


def _with_related_texts(columns: Mapping[str, DistinctValues], texts: Sequence[str]) -> str:
    """Returns the column whose values group rows with related texts; "" for none.

    Of several such columns it is the first that is named as items, such as `item_id`. Without such
    a name it is the first one if all of them group the rows in the same way, otherwise none.
    """
    grouping = []
    for name, values in columns.items():
        is_other = values.are_texts or is_named_as(name, "list") or name == "condition"
        if is_other or not values.are_groups:
            continue
        within, across = median_overlaps(texts, values.codes)
        margin = 0.0 if is_named_as(name, "item") else _MARGIN
        if within >= RELATED and within > across + margin:
            grouping.append(name)
    if len(grouping) > 1:  # a word of its text does not name an item
        grouping = [name for name in grouping if not _are_parts_of_texts(columns[name], texts)]
    names = named_columns("item", grouping) or grouping
    if not names:
        return ""
    likeliest = names[0]
    group_alike = all(columns[likeliest].groups_rows_like(columns[name]) for name in names)
    return likeliest if is_named_as(likeliest, "item") or group_alike else ""


def _are_parts_of_texts(values: DistinctValues, texts: Sequence[str]) -> bool:
    """Returns whether more than half of the values of a column stand in the texts of their rows.

    Each distinct value is looked for, as a string, in the text of the first row that has it: "dog"
    stands in "The dog barks.". Numbers are never parts of texts: they count items.

    Args:
        values: of the column.
        texts: of the rows, one for each.
    """
    if values.is_number:
        return False
    first_texts: dict[int, str] = {}  # code of a value -> text of the first row that has it
    for code, text in zip(values.codes.tolist(), texts, strict=True):
        if code >= 0:
            first_texts.setdefault(code, text)
    n_inside = sum(values.levels[code] in text for code, text in first_texts.items())
    return 2 * n_inside > len(values.levels)


def _named_as_items(columns: Mapping[str, DistinctValues]) -> str:
    """Returns the column that is named as items, and whose values repeat; "" for none.

    Its values are neither texts nor conditions. Without one it is a column whose name begins with
    "item", whatever its values are, or else a column whose values each participant has once, as
    the items that a participant reads.
    """
    people = participant_columns(columns)
    item_names = [name for name in columns if folded(name).startswith("item")]
    names = [*dict.fromkeys((*named_columns("item", columns), *item_names))]
    names = [name for name in names if name not in people]
    for name in names:
        values = columns[name]
        is_repeated = 1 < len(values.levels) < values.n_filled
        if is_repeated and not values.are_texts and not _is_factor(name, columns, names):
            return name
    for name in names:
        if name in item_names:  # such a name is enough where no column has values as items have
            return name
    if people:
        for name in columns_crossed_with(people[0], columns):
            if _may_name_items(name, columns[name], people[0]):
                return name
    return ""


def _is_factor(name: str, columns: Mapping[str, DistinctValues], names: Sequence[str]) -> bool:
    """Returns whether a column that is named as items has a few labels, which are conditions.

    For example, a column `itemtype` with "sg" and "pl". Labels are conditions if they differ within
    the values of another column that is named as items, or if each label stands in many rows.

    Args:
        name: of the column.
        columns: name -> values, of all columns.
        names: of the columns that are named as items, this one among them.
    """
    values = columns[name]
    for other in names:
        if other != name and values.are_labels_within(columns[other]):
            return True
    if values.is_number or not values.levels:
        return False
    n_rows_of_level = values.n_filled // len(values.levels)
    return len(values.levels) <= MOST_LABELS and n_rows_of_level > FEW_ROWS


def _may_name_items(name: str, values: DistinctValues, reader: str) -> bool:
    """Returns whether a column names items rather than conditions, lists, positions or long texts.

    Args:
        name: of a column whose values each participant has once.
        values: of this column.
        reader: the column of participants. If it is named as such, a column with up to six values
            must itself be named as an `id`, a number or the like; otherwise it has conditions.
    """
    if values.are_texts and values.mean_words >= _LONG:
        return False
    if any(is_named_as(name, role) for role in ("position", "text", "word", "list")):
        return False
    has_many_values = len(values.levels) > MOST_LABELS
    return has_many_values or names_rows(name) or not is_named_as(reader, "reader")


def participant_columns(columns: Mapping[str, DistinctValues]) -> list[str]:
    """Returns the columns that name participants: those that are called so, else an `ID`.

    An `ID` names participants where each of its values stands once beside each value of another
    column, as a participant reads each item once, and

    - that column has texts, or names more items than a column of labels has values; or
    - a column of the age or the like has one value for each `ID`; or
    - its values are codes as S01.
    """
    names = named_columns("reader", columns)
    if names:
        return names
    id_columns = [name for name in columns if folded(name.removesuffix(DATA_SUFFIX)) == "id"]
    if not id_columns or not columns[id_columns[0]].are_groups:
        return []
    name = id_columns[0]
    crossed = columns_crossed_with(name, columns)
    if not crossed:
        return []
    are_items = any(
        columns[other].are_texts
        or (is_named_as(other, "item") and len(columns[other].levels) > MOST_LABELS)
        for other in crossed
    )
    has_person = any(
        is_named_as(other, "person") and is_determined_by(values.codes, [columns[name].codes])
        for other, values in columns.items()
    )
    are_codes = all(_names_participant(level) for level in columns[name].levels)
    return [name] if are_items or has_person or are_codes else []


def _names_participant(level: str) -> bool:
    """Returns whether a value is a code of a participant, such as S01 or subj_12."""
    match = _letters_and_number(level)  # letters and a number
    if match is None:
        return False
    letters = match[1]
    return letters.casefold() in ("s", "p") or is_named_as(letters, "reader")


def columns_crossed_with(name: str, columns: Mapping[str, DistinctValues]) -> list[str]:
    """Returns the columns whose values each stand at most once beside each value of another column.

    Both columns differ within the values of the other, as participants and items do where each
    participant reads each item once. The column with the most values comes first.

    Args:
        name: of the other column.
        columns: name -> values, of the whole table.
    """
    reference = columns[name]
    crossed = []
    for other, values in columns.items():
        if other == name or not values.are_groups or is_outcome(other):
            continue
        n_pairs = n_distinct(combine_codes(reference.codes, values.codes))
        is_once = n_pairs == values.n_filled == reference.n_filled
        if is_once and values.differs_within(reference) and reference.differs_within(values):
            crossed.append(other)
    return sorted(crossed, key=lambda other: -len(columns[other].levels))
