"""The levels of the columns of a table of items, as texts and as numbers (codes)."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from lmdiag.stimuli.values.codes import Codes
from lmdiag.stimuli.values.kinds import DistinctValues, distinct_values, values_of
from lmdiag.stimuli.values.misspelt import lookalike_levels, spelled_alike
from lmdiag.stimuli.values.names import TEXT_COLUMNS
from lmdiag.tables.table_files import coded_texts
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame, Series


def joined_texts(table: DataFrame, mark: str = " ") -> Series:
    """Returns the texts of all columns of each row, joined by a mark; "" for a missing text.

    >>> from pandas import DataFrame
    >>> joined_texts(DataFrame({"item": ["1", "2"], "list": ["a", None]}), "-").tolist()
    ['1-a', '2-']
    """
    from pandas import Series

    columns = []
    for name in table:
        values = table[name].astype(object).where(table[name].notna(), "")
        columns.append([str(value) for value in values])
    if len(columns) == 1:
        texts = columns[0]
    else:
        texts = [mark.join(parts) for parts in zip(*columns, strict=True)]
    return Series(texts, table.index, dtype=object)


def joined_names(names: DataFrame, mark: str) -> Series:
    """Returns the names in the columns of each row as one name, joined by a mark.

    Different rows get different names. The mark is doubled until this is so: joined by one blank,
    "a b" and "c" would have the same name as "a" and "b c".

    >>> from pandas import DataFrame
    >>> joined_names(DataFrame({"x": ["a b", "a"], "y": ["c", "b c"]}), " ").tolist()
    ['a b  c', 'a  b c']
    """
    n_names = len(names.fillna("").drop_duplicates())
    joined = joined_texts(names, mark)
    while joined.nunique() < n_names:
        mark += mark
        joined = joined_texts(names, mark)
    return joined


def level_texts(column: Series) -> Series:
    """Returns the values of a column as texts; NaN where they are missing or empty.

    Whole numbers have no ".0", see `lmdiag.tables.table_files.written_text`.
    """
    from pandas import Series

    codes, texts = coded_texts(column)
    levels = [text or math.nan for text in texts]
    levels.append(math.nan)  # the last one, which code -1 takes
    return Series(levels, dtype=object).take(codes).set_axis(column.index)


# ---- tables --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class CodedTable:
    """The columns of a table of items, each as its levels and the number of the level of each row.

    Attributes:
        items: the names of the items, and the item of each row.
        columns: name -> its levels, of all columns that may be conditions. A level that looks the
            same as a more frequent one, such as "Match" and "match", is replaced by that one.
        texts: the text of each row that a model reads, (n rows,); None in a table without texts.
        text_codes: the number of this text, (n rows,).
        misspelt_columns: column -> its levels as they are written, where some look the same as
            others; it may have the column `item`, too.
    """

    items: DistinctValues
    columns: Mapping[str, DistinctValues]
    texts: Series | None = None
    text_codes: Codes | None = None
    misspelt_columns: Mapping[str, DistinctValues] = field(default_factory=dict)

    @classmethod
    def of(
        cls, table: DataFrame, names: Iterable[str], texts: Mapping[str, DistinctValues]
    ) -> CodedTable:
        """Returns the columns of a table with the numbers of their levels, and the texts of rows.

        Args:
            table: with a column `item`.
            names: of the columns that may be conditions.
            texts: column -> its values, of the columns of the text that a model reads.
        """
        items = values_of(table["item"])
        # column -> its levels as they are written
        written = {name: distinct_values(*coded_texts(table[name])) for name in names}
        columns = {}
        misspelt = {}
        for name, values in written.items():
            lookalikes = lookalike_levels(name, values)
            columns[name] = spelled_alike(values, lookalikes)
            if lookalikes:
                misspelt[name] = values
        if lookalike_levels("item", items):
            misspelt["item"] = items
        coded = cls(items, columns, misspelt_columns=misspelt)
        if not texts:
            return coded
        joined = joined_texts(table[[*texts]])
        if len(texts) == 1:  # the codes of its one column
            (values,) = texts.values()
            codes = values.codes
        else:
            codes = values_of(joined).codes
        return replace(coded, texts=joined, text_codes=codes)


def model_texts(table: DataFrame) -> dict[str, DistinctValues]:
    """Returns column -> its values, of the columns of the texts that a model reads.

    Numbers, labels and names of files are not texts, but targets may repeat as labels do. {} for a
    table without a context or a sentence, such as one of responses.
    """
    columns = {name: values_of(table[name]) for name in TEXT_COLUMNS if name in table}
    kinds = {name: values.kind() for name, values in columns.items()}
    names = [name for name, kind in kinds.items() if kind not in ("number", "label", "file")]
    if kinds.get("target") == "label":
        names.append("target")
    if "context" not in names and "sentence" not in names:
        return {}
    return {name: columns[name] for name in names}


def in_given_order(name: str, levels: Sequence[str], given: Sequence[str]) -> tuple[str, ...]:
    """Returns the levels of a column in the order that a user gave; as they are if that is ().

    `BadInput` if the order does not name each level once.
    """
    if not given:
        return tuple(levels)
    if sorted(given) != sorted(levels):
        raise BadInput(
            f"the order {','.join(given)} does not name each level of {name} once: "
            f"{', '.join(levels)}"
        )
    return tuple(given)
