"""The columns of a user's own rows by which figures are broken down."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any

from lmdiag.stimuli.designs.conditions import uses_of
from lmdiag.stimuli.values.critical_words import columns_in_texts, may_be_critical
from lmdiag.stimuli.values.kinds import Distinct, values_of
from lmdiag.stimuli.values.names import TEXT_COLUMNS, are_lists, is_named, is_outcome

_NO_FACTORS = ("reader", "person", "position", "item")


def breakdown_columns(
    columns: Mapping[str, Sequence[Any]], names: Collection[str], texts: Sequence[str]
) -> list[str]:
    """Returns which of some columns with a few values make break-downs.

    Where rows of an item differ in conditions, and are not compared as good and bad ones, these are
    the conditions. Else all but lists, readers, responses, positions and words of the texts.

    Args:
        columns: of all rows.
        names: of columns with a few values.
        texts: of the rows.
    """
    from pandas import DataFrame

    if any(columns.get("item", ())) and "contrast" not in columns:
        never = ("regions", "expected", "good")
        table = DataFrame({name: x for name, x in columns.items() if name not in never})
        if conditions := uses_of(table).levels:
            return [name for name in names if name in conditions]
    few = {name: columns[name] for name in names}
    in_texts = {column.name for column in columns_in_texts(few, texts)}
    values = {name: values_of(columns[name]) for name in names}
    words = {x for x in in_texts if may_be_critical(x) or values[x].hardly_repeat}
    return [name for name in names if name not in words and _may_be_factor(name, values[name])]


def _may_be_factor(name: str, values: Distinct) -> bool:
    """Whether a column is not named as something that no figure is broken down by."""
    is_other = name in TEXT_COLUMNS or is_outcome(name)
    is_other |= any(is_named(name, role) for role in _NO_FACTORS)
    return not (is_other or are_lists(name, values.levels))
