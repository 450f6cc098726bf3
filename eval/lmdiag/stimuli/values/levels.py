"""The levels of the columns of a table of items, as texts and as numbers (codes)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lmdiag.stimuli.values.codes import Codes
from lmdiag.stimuli.values.kinds import Distinct, distinct_values, values_of
from lmdiag.stimuli.values.misspelt import near_levels, spelled_alike
from lmdiag.stimuli.values.names import TEXT_COLUMNS
from lmdiag.tables.table_files import coded_texts
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame, Series


def joined_texts(table: DataFrame, mark: str = " ") -> Series:
    """Returns the texts of the columns of each row, joined by a mark; "" where one is missing."""
    from pandas import Series

    columns = [
        [*map(str, table[name].astype(object).where(table[name].notna(), ""))] for name in table
    ]
    texts = columns[0]
    if len(columns) > 1:
        texts = [mark.join(parts) for parts in zip(*columns, strict=True)]
    return Series(texts, table.index, dtype=object)


def joined_names(names: DataFrame, mark: str) -> Series:
    """Returns the joined names of each row; the mark is longer where two would have one name."""
    n_names = len(names.fillna("").drop_duplicates())
    while (joined := joined_texts(names, mark)).nunique() < n_names:
        mark += mark
    return joined


def level_texts(column: Series) -> Series:
    """Returns values as texts, see `written_text`; what is missing is NaN."""
    from pandas import Series

    codes, texts = coded_texts(column)
    levels = [text or math.nan for text in texts]
    return Series([*levels, math.nan], dtype=object).take(codes).set_axis(column.index)


def _level_values(column: Series) -> Distinct:
    """The distinct levels of a column, without what is missing."""
    return distinct_values(*coded_texts(column))


# ---- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class ItemLevels:
    """The columns of a table of items, as the numbers of their levels.

    Attributes:
        items: the names of the items.
        columns: name -> its levels, of all columns that may be conditions; those that look like
            another level are that one here.
        texts: the text of each row that a model reads, (n rows,); None in a table without texts.
        text_codes: the number of this text, (n rows,).
        misspelt: columns of which some levels look like others, item included, as they are written.
    """

    items: Distinct
    columns: Mapping[str, Distinct]
    texts: Series | None = None
    text_codes: Codes | None = None
    misspelt: Mapping[str, Distinct] = field(default_factory=dict)

    @classmethod
    def of(
        cls, table: DataFrame, names: Iterable[str], texts: Mapping[str, Distinct]
    ) -> ItemLevels:
        """Returns the levels of some columns of a table, and the texts of others."""
        items = values_of(table["item"])
        written = {name: _level_values(table[name]) for name in names}
        near = {name: near_levels(name, x) for name, x in {**written, "item": items}.items()}
        columns = {name: spelled_alike(values, near[name]) for name, values in written.items()}
        misspelt = {x: v for x, v in {**written, "item": items}.items() if near[x]}
        rows = cls(items, columns, misspelt=misspelt)
        if not texts:
            return rows
        joined = joined_texts(table[[*texts]])
        first, *further = texts.values()
        codes = values_of(joined).codes if further else first.codes
        return replace(rows, texts=joined, text_codes=codes)


def model_texts(table: DataFrame) -> dict[str, Distinct]:
    """Returns the columns of the texts that a model reads; {} for a table without texts."""
    columns = {name: values_of(table[name]) for name in TEXT_COLUMNS if name in table}
    kinds = {name: values.kind() for name, values in columns.items()}
    names = [name for name, kind in kinds.items() if kind not in ("number", "label", "file")]
    names += ["target"] if kinds.get("target") == "label" else []
    has_texts = not {"context", "sentence"}.isdisjoint(names)
    return {name: columns[name] for name in names} if has_texts else {}


def in_given_order(name: str, levels: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Returns the levels of a column in the order that a user gave, if any.

    `BadInput` if the order does not name each level once.
    """
    if given and sorted(given) != sorted(levels):
        raise BadInput(
            f"the order {','.join(given)} does not name each level of {name} once: "
            f"{', '.join(levels)}"
        )
    return (*(given or levels),)
