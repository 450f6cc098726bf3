"""The columns of a user's own rows by which figures are broken down."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lmdiag.stimuli.designs.conditions import uses_of
from lmdiag.stimuli.values.critical_words import columns_in_texts, may_be_critical
from lmdiag.stimuli.values.kinds import DistinctValues, values_of
from lmdiag.stimuli.values.names import TEXT_COLUMNS, are_lists, is_named_as, is_outcome

_NO_FACTORS = ("reader", "person", "position", "item")


def breakdown_columns(
    columns: Mapping[str, Sequence[Any]], names: Collection[str], texts: Sequence[str]
) -> list[str]:
    """Returns which of some columns with a few values make break-downs.

    For example, ["number"] of number (sg, pl) and list (A, B). If rows of an item differ in
    conditions, and are not compared as good and bad rows, these conditions are the break-downs.
    Otherwise all columns are, except lists, readers, responses, positions and words of the texts.

    Args:
        columns: name -> values, of all rows.
        names: of the columns to choose from, which have a few values.
        texts: of the rows.
    """
    from pandas import DataFrame

    # conditions are looked for where rows have items, and are not compared in contrasts
    if any(columns.get("item", ())) and "contrast" not in columns:
        # the regions of each sentence, and what is right in a row, are not conditions
        never = ("regions", "expected", "good")
        table = DataFrame({name: x for name, x in columns.items() if name not in never})
        conditions = uses_of(table).conditions
        if conditions:
            return [name for name in names if name in conditions]
    choices = {name: columns[name] for name in names}
    values = {name: values_of(column) for name, column in choices.items()}
    # columns that are named as critical words, or hardly repeat, have words and not conditions
    words = set()
    for column in columns_in_texts(choices, texts):
        if may_be_critical(column.name) or values[column.name].hardly_repeat:
            words.add(column.name)
    return [name for name in names if name not in words and _may_be_factor(name, values[name])]


def _may_be_factor(name: str, values: DistinctValues) -> bool:
    """Returns whether a column may be a factor: it is not named as something that never is.

    Texts, outcomes, lists, and what `_NO_FACTORS` names, such as readers, never are.
    """
    if name in TEXT_COLUMNS or is_outcome(name) or are_lists(name, values.levels):
        return False
    return not any(is_named_as(name, role) for role in _NO_FACTORS)
