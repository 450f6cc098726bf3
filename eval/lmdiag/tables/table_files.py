"""The one reader and the one writer of tables of users.

Text files (`text_tables`), Excel (`excel_tables`), JSON lines, Parquet, and tables in memory.
Errors name file, line and column.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from datetime import date, time, timedelta
from functools import cached_property
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, get_args

from lmdiag import diagnostics
from lmdiag.files import reading, writing
from lmdiag.files.reading import MAX_CELL, check_size, user_path
from lmdiag.tables.excel_tables import excel_letters, excel_rows
from lmdiag.tables.table_headers import (
    KNOWN_NAMES,
    Rows,
    TextRow,
    can_be_names,
    has_known_name,
)
from lmdiag.tables.text_tables import text_rows
from lmdiag.text import (
    column_like,
    csv_cell,
    date_text,
    first_few,
    folded,
    from_csv_cell,
    shortened,
    suggest,
    visible,
)
from lmdiag.types import BadInput, WordState

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pandas import DataFrame, MultiIndex, Series

TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".xlsx", ".jsonl", ".parquet")
"""Endings of the names of files that are tables."""

WRITTEN_SUFFIXES = (".csv", ".tsv", ".parquet")
"""Endings of the names of files that a table is written to."""

MISSING = (
    "", "NA", "NaN", "nan",
    "#N/A", "#NULL!", "#DIV/0!", "#VALUE!", "#REF!", "#NAME?", "#NUM!",
)  # fmt: skip
"""What stands for a missing value in files of text and of Excel, whose errors are such values."""

TRUTH = {"True": 1, "False": 0, "TRUE": 1, "FALSE": 0, "true": 1, "false": 0}
"""How truth values are written in tables, and the numbers that they count as."""

ROW_NAMES = ("", "__index_level_0__")
"""Columns of row names, which R and pandas add."""

MEMORY = "rows"
"""What a table in memory is called in messages."""

# what is numbered -> what stands between the name of a file and the number
_MARKS = {"line": ":", "row": ", row "}
# types of the values of a table, whatever it was read from
_PLAIN_TYPES = {str, bool, int, float, type(None)}
# other types -> what messages call them
_TYPES_IN_WORDS: dict[type, str] = {list: "a list", dict: "an object", bytes: "binary data"}
# columns that are read where they are there, folded; see `Table.plain`
_READ_COLUMNS = KNOWN_NAMES | {"rightcontext", "expected", "surprisal"}
# columns of a table of `lmdiag surprisal`
_SURPRISALS = {"text", "position", "word", "start", "surprisal", "n_tokens"}
# rows that are compared with the header
_SAMPLE = 200
# keys of a region in the column `regions`; see docs/specification.md, section 1
_REGION_KEYS = {"number", "name", "start", "end"}

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?").fullmatch
_DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?").fullmatch


class Problems(list[str]):
    """Messages of errors that are raised together."""

    @contextmanager
    def collected(self) -> Iterator[None]:
        """Adds the message of a `BadInput` that the block raises, instead of raising it."""
        try:
            yield
        except BadInput as error:
            self.append(str(error))

    def raise_all(self) -> None:
        """Raises one `BadInput` with all messages, if there are any.

        The name of the file stands in the first alone: "my.csv: no row; a column is missing".
        """
        if not self:
            return
        file_name, _, _ = self[0].partition(": ")
        others = [message.removeprefix(f"{file_name}: ") for message in self[1:]]
        raise BadInput("; ".join([self[0], *others]))


def row_index(
    places: Sequence[int | str],
    unit: str = "row",
    *,
    below: Sequence[int | str] = (),
    names: Sequence[int | str] = (),
) -> MultiIndex:
    """Returns the index of the rows of a table: `unit`, "below" and "name".

    Args:
        places: of each row in its source: a number, or what messages call it.
        unit: what places number: "line" of a text file, or "row".
        below: numbers of the rows below the header, from 1, also counting empty ones.
        names: what ids are made of.

    `below` and `names` are 1, 2 and so on where they are not given. For example, rows in lines 2
    and 4 of a file, which are `below` 1 and 3, have the index [(2, 1, 1), (4, 3, 2)] with the
    levels line, below and name.
    """
    from pandas import Index, MultiIndex

    numbers = range(1, len(places) + 1)
    levels = (places, below or numbers, names or numbers)
    return MultiIndex.from_arrays([*map(Index, levels)], names=[unit, "below", "name"])


def shown_places(index: MultiIndex) -> str:
    """Returns what messages call some rows, e.g. "lines 4, 5", each once.

    Args:
        index: of these rows, see `row_index`.
    """
    unit = index.names[0]
    places = [*dict.fromkeys(index.get_level_values(unit))]
    names = first_few([*map(str, places)], 5)
    if isinstance(places[0], str):  # they have names of their own
        return names
    return f"{unit}s {names}" if len(places) > 1 else f"{unit} {names}"


def _as_objects(
    columns: Mapping[str, Sequence[Any] | Series], index: MultiIndex
) -> dict[str, Series]:
    """Columns as Series of objects, whose values pandas leaves as they are: 1 stays an int."""
    from pandas import Series

    return {name: Series([*column], index=index, dtype=object) for name, column in columns.items()}


@dataclass(frozen=True, eq=False)
class Table:
    """Rows as they were read: each step of reading takes a table and returns one.

    Attributes:
        name: of the file or data set.
        rows: plain Python values. The index has the place of each row in its source, see
            `row_index`, which stays with a row in all steps.
        form: of rows that were made from other data; see `lmdiag.stimuli.Stimuli`.
        notes: how the columns and rows were read where they differ from the specification.
        chosen: known name -> the column of the source that the user says it is, as
            {"context": "stem"} for --columns context=stem.
        sources: known name -> the column of the source that has it, of the columns in `chosen` and
            of those whose name is a spelling of a known name, as {"context": "stem", "item":
            "Item"}.
        is_text: whether all values are texts, as in files of text and of Excel.
    """

    name: str
    rows: DataFrame
    form: str = ""
    notes: tuple[str, ...] = ()
    chosen: Mapping[str, str] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    is_text: bool = False

    @classmethod
    def of(
        cls,
        name: str,
        columns: Mapping[str, Sequence[Any] | Series],
        index: MultiIndex | None = None,
        **fields: Any,
    ) -> Table:
        """Returns a table of columns; rows are numbered where there is no index.

        `BadInput`: there are too many columns or rows, or a text is too long.

        Args:
            name: of the file or data set.
            columns: name -> values, one per row.
            index: of the rows, see `row_index`.
            fields: further attributes of the table.
        """
        from pandas import DataFrame

        n_rows = max(map(len, columns.values()), default=0)
        check_size(name, len(columns), n_rows)
        index = row_index(range(1, n_rows + 1)) if index is None else index
        table = cls(name, DataFrame(_as_objects(columns, index), index=index), **fields)
        for column in columns:
            table._refuse_long_texts(column)
        return table

    @classmethod
    def of_rows(
        cls, name: str, rows: Sequence[Mapping[str, Any]], index: MultiIndex | None = None,
        **fields: Any,
    ) -> Table:  # fmt: skip
        """Returns a table of rows, each a mapping of columns to values.

        A column has None where a row lacks it. For the other arguments see `of`.
        """
        names = dict.fromkeys(column for row in rows for column in row)
        check_size(name, len(names), len(rows))
        columns = {column: [row.get(column) for row in rows] for column in names}
        return cls.of(name, columns, index, **fields)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @cached_property
    def columns(self) -> Mapping[str, list[Any]]:
        """Column -> its values, one per row. The lists are shared: callers must not change them."""
        return {name: self.rows[name].tolist() for name in self.rows}

    def _refuse_long_texts(self, name: str) -> None:
        """Refuses a text of a column that is longer than any cell that is read."""
        values = self.rows[name].tolist()
        are_texts = {*map(type, values)} == {str}
        texts = values if are_texts else [value for value in values if isinstance(value, str)]
        longest = max(texts, key=len, default="")
        if len(longest) > MAX_CELL:
            problem = f"{len(longest):,} characters; at most {MAX_CELL:,} are read"
            raise self.error(values.index(longest), f"{name} has {problem}")

    def _refuse_nul(self) -> None:
        """Refuses NUL in a cell: no text has it, and other programs end the text there."""
        for name, values in self.columns.items():
            if "\0" in "".join(filter(_is_text, values)):  # one search is quicker than many
                row = next(i for i, x in enumerate(values) if _is_text(x) and "\0" in x)
                raise self.error(row, f"the column {visible(name)} has a NUL character: remove it")

    def plain(self) -> Table:
        """Returns the table with texts, numbers, truth values, and None for what is missing.

        Dates and times become texts (ISO 8601). Columns of words and of regions may have lists;
        other columns of nothing but lists, objects and the like are left out. `BadInput` names row
        and column of such a value in a text, or beside plain values.
        """
        values_of = {name: self._plain_values(name) for name in self.rows}
        self._refuse_nul()
        unread: dict[str, str] = {}  # column that is left out -> what its values are
        for name, values in values_of.items():
            wrong_types = self._wrong_types(name, values)
            if not wrong_types:
                continue
            row, what = next(iter(wrong_types.items()))  # the first wrong value
            n_filled = sum(value is not None for value in values)
            has_plain_values = len(wrong_types) < n_filled
            if has_plain_values or folded(name) in _READ_COLUMNS:
                remedy = "write one text, number or truth value in a cell, or leave the column out"
                value = shortened(repr(values[row]), 40)
                raise self.error(row, f"the column {name} has {what}, {value}: {remedy}")
            unread[name] = what
        notes = []
        if unread:
            reasons = ", ".join(f"{name} has {what}" for name, what in unread.items())
            notes.append(shortened(f"columns: not read, since {reasons}", 300))
        columns = {name: values for name, values in values_of.items() if name not in unread}
        return self.with_columns(columns, *notes, without=unread)

    def _plain_values(self, name: str) -> Sequence[Any]:
        """The values of a column as plain Python values, see `_plain_value`."""
        values = self.columns[name]
        types = set(map(type, values))
        has_nan = float in types and any(value != value for value in values)  # only NaN differs
        if types <= _PLAIN_TYPES and not has_nan:
            return values
        return [_plain_value(value) for value in values]

    def _wrong_types(self, name: str, values: Sequence[Any]) -> dict[int, str]:
        """Row -> what its value is ("a list"), where no column of this name has such values."""
        if {*map(type, values)} <= _PLAIN_TYPES:
            return {}
        return {
            row: _TYPES_IN_WORDS.get(type(value), f"a value of type {type(value).__name__}")
            for row, value in enumerate(values)
            if type(value) not in _PLAIN_TYPES and not _is_known_list(name, value)
        }

    def labels(self, level: str) -> list[int | str]:
        """Returns one level of the index of the rows, a value per row.

        Args:
            level: "below", "name", or for the places "line" or "row"; see `row_index`.
        """
        return [*self.rows.index.get_level_values(level)]

    @cached_property
    def _places(self) -> list[int | str]:
        """The place of each row in its source, see `row_index`."""
        return self.labels(self.rows.index.names[0])

    def where(self, row: int) -> str:
        """Returns what messages call a row, for example "my.csv:3" or "my.xlsx, row 3".

        Args:
            row: its position, from 0. Its place in the source, see `row_index`, is a number, or a
                name that is returned as it is.
        """
        place = self._places[row]
        mark = _MARKS[self.rows.index.names[0]]  # ":" before a line, ", row " before a row
        return place if isinstance(place, str) else f"{self.name}{mark}{place}"

    def places(self, rows: Sequence[int]) -> str:
        """Returns what messages call some rows, e.g. "lines 4, 5".

        Args:
            rows: their positions, from 0.
        """
        return shown_places(self.rows.index[[*rows]])

    def error(self, row: int, message: str) -> BadInput:
        """Returns the error that a row, by its position from 0, is wrong: "my.csv:3: MESSAGE"."""
        return BadInput(f"{self.where(row)}: {message}")

    def refuse_rows(self, wrong: Mapping[int, str]) -> None:
        """Raises the problem of the first wrong row, and names the places of the other ones.

        Args:
            wrong: row -> what is wrong with it; nothing is raised for {}.
        """
        if not wrong:
            return
        first, *others = wrong
        problem = wrong[first]
        if others:
            rows = "rows" if len(others) > 1 else "row"
            problem += f" ({len(others):,} more {rows}: {self.places(others)})"
        raise self.error(first, problem)

    def with_columns(
        self,
        new_columns: Mapping[str, Sequence[Any] | Series],
        *notes: str,
        without: Collection[str] = (),
    ) -> Table:
        """Returns the table with new columns, without some of its own, and with further notes.

        Args:
            new_columns: name -> values, one per row; they replace columns of the same name.
            notes: lines on how the rows were read.
            without: columns that are left out.
        """
        from pandas import DataFrame

        other_rows = self.rows.drop(columns=[*without])
        columns = {**dict(other_rows.items()), **_as_objects(new_columns, other_rows.index)}
        rows = DataFrame(columns, index=other_rows.index, copy=False)
        n_rows, n_columns = rows.shape
        check_size(self.name, n_columns, n_rows)
        table = replace(self, rows=rows, notes=(*self.notes, *notes))
        for name in new_columns:
            table._refuse_long_texts(name)
        return table

    def with_notes(self, *notes: str) -> Table:
        """Returns the table with further lines on how its rows were read."""
        return replace(self, notes=(*self.notes, *notes))

    def of_rows_at(self, rows: Sequence[int] | NDArray[Any]) -> Table:
        """Returns the table of the rows at some positions, from 0; one may be there several times.

        Each row keeps its place in the source: rows [1, 1] are both "line 3" in messages.
        """
        return replace(self, rows=self.rows.iloc[rows])

    def column_of(self, name: str, option: str) -> str:
        """Returns the column that a user calls by a name, or by a spelling that fits only one.

        The name may also be that of a column in the source, which the user gave a known name.
        `BadInput` if there is none; the option is named.

        Args:
            name: as the user writes it.
            option: that names the column, for messages.
        """
        column = column_like(name, self.columns)
        if column == name:  # as it is, or no column is like it: perhaps a name in the source
            known_name_of = {source: known for known, source in self.chosen.items()}
            column = known_name_of.get(column_like(name, known_name_of), name)
        if column not in self.columns:
            names = self.source_names()
            existing = ", ".join(filter(None, names))
            problem = f"no column {name!r}{suggest(name, names)}; there are {existing:.800}"
            raise BadInput(f"{self.name}: {option}: {problem}")
        return column

    def missing_column_error(self, column: str, rule: str) -> BadInput:
        """Returns the error that a column is missing, which names similar and all columns.

        Args:
            column: known name that is missing.
            rule: why it is needed, for the message.
        """
        names = self.source_names()
        problem = f"the column {column} is missing{suggest(column, names)}"
        return BadInput(f"{self.name}: {problem}; found: {', '.join(names):.800}; {rule}")

    def source_names(self) -> list[str]:
        """Returns the names of the columns in the source, before the user named them otherwise."""
        return [*dict.fromkeys(self.chosen.get(name, name) for name in self.columns)]


# ---- reading -------------------------------------------------------------------------------------


def read_table(path: Path, *, raw: bool = False, sheet: str = "") -> Table:
    """Returns the rows of a file; one with a suffix that is not known is read as text.

    Values of text and Excel files are texts; rows without any are left out. NA, NaN and nan are
    None, unless the values are asked for as they are written (`raw`). Where a semicolon separates
    the fields, numbers with a decimal comma get a point. In tables that lmdiag wrote, texts are
    those that were written, also NA, with a line break, or with a sign of formulas in front.

    Args:
        path: of the file.
        raw: leave missing values as they are written.
        sheet: of an Excel file: name or number from 1; "" for the first that has some text.
    """
    suffix = path.suffix.lower()
    if sheet and suffix != ".xlsx":
        raise BadInput(f"{path}: --sheet is for Excel files: leave it out")
    if suffix == ".parquet":
        return Table.of(str(path), reading.read_parquet(path).to_pydict()).plain()
    if suffix == ".json" and reading.json_layout(path) != "lines":
        return Table.of_rows(str(path), reading.read_json_list(path)).plain()
    if suffix in (".json", ".jsonl"):
        records = [*reading.read_json_lines(path)]
        lines = [int(place.rpartition(":")[2]) for place, _ in records]  # 3 of "my.jsonl:3"
        index = row_index(lines, "line", below=lines)
        return Table.of_rows(str(path), [row for _, row in records], index).plain()
    if suffix == ".xlsx":
        return _table_of_cells(str(path), excel_rows(path, sheet), "row", raw=raw)
    return _table_of_cells(str(path), text_rows(path), "line", raw=raw)


def has_json_rows(path: str | Path) -> bool:
    """Returns whether a file is JSON with an object for each row, in a list or in lines."""
    path = user_path(str(path))
    is_json_file = path.suffix.lower() == ".json" and reading.is_file(path)
    return is_json_file and bool(reading.json_layout(path))


def _table_of_cells(name: str, file_rows: Rows, unit: str, *, raw: bool) -> Table:
    """The table of the rows of a text or Excel file; see `read_table`.

    Args:
        name: of the file.
        file_rows: the header and the rows below it.
        unit: what places of rows number: "line" or "row".
        raw: leave missing values as they are written.
    """
    _check_header(file_rows.rows, f"{name}{_MARKS[unit]}")
    (header_line, header_number, header), *rows = file_rows.rows
    notes = [*file_rows.notes]
    # rows that repeat the header, as where several files were joined
    repeated_lines = [str(line) for line, _, cells in rows if cells == header]
    if repeated_lines:
        lines = f"{unit}{'s' if len(repeated_lines) > 1 else ''} {first_few(repeated_lines, 5)}"
        notes.append(f"header: it is there again in {lines}, passed over")
        rows = [row for row in rows if row[2] != header]
    is_by_lmdiag = _is_by_lmdiag(header, [cells for _, _, cells in rows])
    columns: dict[str, Sequence[Any]] = {}
    for position, column in enumerate(header):
        texts = [cells[position] for _, _, cells in rows]
        if position and not column.strip():  # the first may be without a name: names of rows
            filled = [text for text in texts if text.strip()]
            if filled:
                number = excel_letters(position + 1) if unit == "row" else position + 1
                what = f"column {number}, with {shortened(min(filled), 40)!r}, has no name"
                if 2 * len(filled) > len(texts):  # the names may stand one column too far left
                    place = f"{name}{_MARKS[unit]}{header_line}"
                    raise BadInput(f"{place}: {what}: name it in the header")
                notes.append(f"columns: {what} and is not read")
        elif column in columns:
            raise BadInput(f"{name}: the column {column} is there twice: rename one")
        elif is_by_lmdiag:  # texts without the signs that were added when they were written
            value_of = {text: from_csv_cell(text) or None for text in {*texts}}
            columns[from_csv_cell(column)] = [value_of[text] for text in texts]
        else:
            columns[column] = _values_of_texts(texts, file_rows.separator, raw=raw)
    places = [line for line, _, _ in rows]
    index = row_index(places, unit, below=[number - header_number for _, number, _ in rows])
    table = Table.of(name, columns, index, notes=tuple(notes), is_text=not is_by_lmdiag)
    if not is_by_lmdiag:
        table._refuse_nul()
    return table


def _check_header(rows: Sequence[TextRow], place: str) -> None:
    """Refuses an empty file, a row in the place of the header, and all columns in one.

    Args:
        rows: of the file, the header first.
        place: what a message calls a line without its number, as "my.csv:".
    """
    if not rows:
        raise BadInput(f"{place}1: the file is empty; its first line must name the columns")
    first, _, header = rows[0]
    sample = [cells for _, _, cells in rows[1:_SAMPLE]]
    if _is_row(header, sample):
        cells = first_few([*map(repr, header)], 5)
        problem = f"the first line seems to be a row, with {cells}, and must name the columns"
        raise BadInput(f"{place}{first}: {problem}: write a line of names above it")
    for separator in ",;\t" if len(header) == 1 else ():
        names = header[0].split(separator)
        have_separator = all(separator in cells[0] for cells in sample)
        if len(names) > 1 and have_separator and can_be_names(names):
            remedy = "divide it (in Excel: Text to Columns), or remove the quotes around lines"
            raise BadInput(f"{place}{first}: all columns are in one, {header[0]!r:.60}: {remedy}")


def _is_row(header: Sequence[str], sample: Sequence[Sequence[str]]) -> bool:
    """Whether a header seems to be a row of data, in a file without a header.

    It does

    - if it has a number, and a cell twice, as 1, 1, "The key"; or
    - if the rows below repeat several of its cells, of which some are numbers and some are words;
      or
    - if the rows below repeat two of its cells, and no cell is a name that columns often have.

    Args:
        header: cells of the first row.
        sample: cells of the first rows below it.
    """
    filled = [cell for cell in header if cell]
    if any(map(_NUMBER, filled)) and len({*filled}) < len(filled):
        return True
    names_as_values = _names_as_values(header, sample)
    n_numbers = sum(bool(_NUMBER(name)) for name in names_as_values)
    if 0 < n_numbers < len(names_as_values):
        return True
    if has_known_name(header):
        return False
    without_header = [cells for cells in sample if cells != header]  # it may be repeated
    return len(_names_as_values(header, without_header)) > 1  # one may be a label, as filler


def _names_as_values(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The cells of a first row that the rows below it repeat in the same column.

    They are a sign that the table has no header: "1" and "cat" are values of data, whereas a name
    such as "item" does not stand again below itself. For example, the first row ["1", "cat"] above
    the rows ["2", "cat"] and ["1", "dog"] gives ["1", "cat"].

    A column in which all rows repeat the first cell is left out: users name a column after its only
    value, such as a column "filler" with the value "filler" in each row.

    Args:
        header: cells of the first row.
        rows: cells of the rows below it.
    """
    columns = zip(header, *rows, strict=False)  # of each column, the first cell and those below it
    return [name for name, *values in columns if name and name in values and {*values} != {name}]


def _values_of_texts(texts: list[str], separator: str, *, raw: bool) -> Sequence[Any]:
    """The values of a column of texts: None for what is missing, decimal points for commas.

    Args:
        texts: cells of the column.
        separator: of fields; where it is a semicolon, numbers may have decimal commas.
        raw: leave missing values as they are written.
    """
    missing = MISSING[1:]  # without "": an empty cell stays an empty text
    distinct = {*texts}
    if separator == ";" and all(_DECIMAL_COMMA(text) for text in distinct - {*MISSING}):
        texts = [text.replace(",", ".") for text in texts]
    if raw or distinct.isdisjoint(missing):
        return texts
    return [None if text in missing else text for text in texts]


def _is_by_lmdiag(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether lmdiag wrote a table: surprisals of words, or answers of a model with their state.

    Args:
        header: names of the columns.
        rows: cells of the rows below it.
    """
    if {*header} >= _SURPRISALS:
        return True
    if not {"model", "surprisal", "state"} <= {*header}:
        return False
    position = header.index("state")
    return {cells[position] for cells in rows} <= {"", *get_args(WordState)}


def as_frame(table: Table, *, raw: bool = False) -> DataFrame:
    """Returns a table as a DataFrame, whose index has the lines or rows of the file.

    Values are as they were read: those of text files are texts. What is missing is NaN, but in a
    `raw` frame of a text file it is as it is written, and names of rows, which R adds, are there.
    """
    from pandas import DataFrame

    columns = {name: _with_joined_lists(values) for name, values in table.columns.items()}
    frame = DataFrame(columns, index=[*table.rows.index.get_level_values(0)])
    if not table.is_text:
        return frame.drop(columns="__index_level_0__", errors="ignore")  # of pandas
    if raw:
        return frame
    frame = frame.drop(columns="", errors="ignore")
    return frame.mask(frame.isna() | frame.isin(MISSING))


def as_numbers(column: Series, name: str, where: Callable[[int], str]) -> NDArray[np.float64]:
    """Returns a column as numbers: (n rows,), NaN for what is missing, 1 and 0 for truth values.

    Args:
        column: numbers, truth values, or texts of them.
        name: of the column, for messages.
        where: what to call a row, counted from 0, in a message.
    """
    import numpy as np
    from pandas import to_numeric

    missing = (column.isna() | column.isin(MISSING)).to_numpy()
    present = column.astype(object).replace(TRUTH).where(~missing, None)
    try:
        numbers: NDArray[np.float64] = to_numeric(present, errors="coerce").to_numpy(float)
    except OverflowError:  # a whole number of more than 308 digits
        present = present.map(_without_huge_number)
        numbers = to_numeric(present, errors="coerce").to_numpy(float)
    wrong_rows = np.flatnonzero(np.isnan(numbers) & ~missing)
    if wrong_rows.size:
        row = int(wrong_rows[0])
        value = shortened(repr(column.iloc[row]))
        remedy = "write 0.5 for 0,5 or 50%, and nothing where a value is missing"
        raise BadInput(f"{where(row)}: the column {name}: {value} is not a number; {remedy}")
    return numbers


def _without_huge_number(value: Any) -> Any:
    """The value itself; None for a whole number beyond the range of floats."""
    return None if isinstance(value, int) and abs(value) > sys.float_info.max else value


def as_texts(column: Series) -> Series:
    """Returns a column as texts: whole numbers without .0, "true", and None for what is missing."""
    from pandas import Series

    codes, texts = coded_texts(column)
    return Series([*texts, None], dtype=object).take(codes).set_axis(column.index)


def name_texts(column: Series) -> Series:
    """Returns names of items or texts as in `as_texts`; an empty one is missing.

    `BadInput` for a number that is not whole: read as one, 1.10 is 1.1.
    """
    for value in column:
        is_number = isinstance(value, float) and not math.isnan(value)
        if is_number and not value.is_integer():
            raise BadInput(f"the column {column.name}: {not_a_name(value)}")
    texts = as_texts(column)
    return texts.mask(texts == "")


def not_a_name(value: Any) -> str:
    """Returns why a number that is not whole, such as 1.1, cannot name an item or a text."""
    return f"{value!r} is a number, as which 1.1 and 1.10 are one: write names as texts (dtype=str)"


def coded_texts(column: Series) -> tuple[NDArray[np.intp], list[str]]:
    """Returns the distinct values of a column as texts, and their numbers in the rows.

    Texts are as in `as_texts`, in the order of the rows; several may be the same, as of 1 and "1".
    For example, the column ["b", None, "a", "b"] gives [0, -1, 1, 0] and ["b", "a"].

    Returns:
        The number (code) of the text of each row, (n rows,), -1 where it is missing; the texts.
    """
    from pandas import factorize

    values = column.to_numpy(dtype=object)
    codes, distinct = factorize(values)
    if {*map(type, distinct)} > {bool}:  # 1 and True are one value there
        values = column.map(written_text, na_action="ignore").to_numpy(dtype=object)
        codes, distinct = factorize(values)
    are_texts = {*map(type, distinct)} <= {str}
    if are_texts:
        return codes, [*distinct]
    return codes, [written_text(value) for value in distinct]


def written_text(value: Any) -> str:
    """Returns a value as text: a whole number without .0, a truth value in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return str(value)


def read_memory(data: Any) -> Table:
    """Returns the rows of an object in memory.

    It is a pandas DataFrame (an index without a name is ignored), a `datasets.Dataset`, a pyarrow
    Table, a mapping of column names to values, or an iterable of mappings, one per row.
    """
    if type(data).__name__ in ("DatasetDict", "IterableDatasetDict"):
        splits = ", ".join(map(str, data))
        raise BadInput(f"{MEMORY}: a DatasetDict has splits ({splits}): give one, as data[SPLIT]")
    if hasattr(data, "iloc"):  # pandas: missing values become None
        frame = _with_index_columns(data)
        names = [*map(str, frame.columns)]
        for name in names:
            if names.count(name) > 1:
                raise BadInput(f"{MEMORY}: the column {name} is there twice: rename one")
        data = frame.astype(object).where(frame.notna(), None).to_dict("list")
    elif hasattr(data, "to_pydict"):  # pyarrow
        data = data.to_pydict()
    elif hasattr(data, "to_dict"):  # datasets
        data = data.to_dict()
    if not isinstance(data, Mapping):
        rows = list(data) if isinstance(data, Iterable) else [data]
        if not all(isinstance(row, Mapping) for row in rows):
            kinds = "the name of a data set, a file, a DataFrame, a list of dicts"
            problem = f"cannot read stimuli from {type(data).__name__}"
            raise BadInput(f"{problem}: give {kinds}, or a dict of columns")
        rows = [{str(name): value for name, value in row.items()} for row in rows]
        return Table.of_rows(MEMORY, rows).plain()
    for name, values in data.items():
        if isinstance(values, str):
            rule = "give a list of values per column, or a list with one dict per row"
            raise BadInput(f"{MEMORY}: the column {name} is one text: {rule}")
    columns = {str(name): [*values] for name, values in data.items()}
    if len({len(values) for values in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise BadInput(f"{MEMORY}: the columns differ in length: {lengths}")
    return Table.of(MEMORY, columns).plain()


def _with_index_columns(data: Any) -> DataFrame:
    """A DataFrame or Series as a DataFrame, in which named levels of the index are columns, too."""
    data = data.to_frame() if hasattr(data, "to_frame") else data
    if data.columns.nlevels > 1:
        n = data.columns.nlevels
        remedy = "give each column one name, as data.columns = data.columns.map('_'.join)"
        raise BadInput(f"{MEMORY}: the names of the columns have {n} levels: {remedy}")
    names = [name for name in data.index.names if name is not None and name not in data.columns]
    return data.reset_index(level=names) if names else data


def _plain_value(value: Any) -> Any:
    """A value as plain Python has it: numbers and lists of numpy, dates and times as texts.

    None for NaN, NA and NaT; other values, as objects, are returned as they are.
    """
    value = value.tolist() if hasattr(value, "tolist") else value  # of numpy
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, timedelta):
        return str(value)
    if isinstance(value, date | time):
        return date_text(value)
    if isinstance(value, Number) and not isinstance(value, complex | int):  # also a Decimal
        number = float(value)  # type: ignore[arg-type]
        return None if math.isnan(number) else number
    return str(value) if isinstance(value, str) else value  # no subclass of str


def _is_text(value: object) -> TypeGuard[str]:
    """Whether a value is a text."""
    return isinstance(value, str)


def _is_known_list(name: str, value: Any) -> bool:
    """Whether a value is a list, and the column is one of lists: of words, formulas or regions."""
    if not isinstance(value, list | tuple):
        return False
    if name == "regions":
        return all(isinstance(x, Mapping) and x.keys() == _REGION_KEYS for x in value)
    return name == "formulas" or name in diagnostics.word_columns()


def _with_joined_lists(values: Sequence[Any]) -> Sequence[Any]:
    """The values of a column with lists joined by bars, as in csv files: ["a", "b"] as "a|b"."""
    if not any(isinstance(value, list | tuple) for value in values):
        return values
    lists = [value if isinstance(value, list | tuple) else [value or ""] for value in values]
    return ["|".join(map(str, parts)) for parts in lists]


# ---- writing -------------------------------------------------------------------------------------


def write_table(table: DataFrame, path: Path) -> None:
    """Writes a table as csv, tab-separated or Parquet, completely or not at all."""
    writing.write_user_file(path, table_content(table, path.suffix))


def table_content(table: DataFrame, suffix: str) -> bytes:
    """Returns a table as the content of a file: csv, tab-separated or Parquet.

    A csv file is UTF-8, with a byte-order mark if a text is not ASCII: Excel needs it, R and pandas
    drop it.
    """
    if suffix == ".parquet":
        content: bytes = table.to_parquet(index=False)
        return content
    text = csv_text(table, "\t" if suffix == ".tsv" else ",").replace("\n", "\r\n")
    return text.encode("utf-8" if text.isascii() else "utf-8-sig")


def csv_text(table: DataFrame, separator: str = ",") -> str:
    """Returns a table as csv, without its index.

    Numbers have all their digits; what is missing is empty. Texts that a spreadsheet would take for
    a formula get an apostrophe in front, unless they are numbers.
    """
    cells = table.apply(_csv_column).rename(columns=lambda name: csv_cell(visible(name)))
    return str(cells.to_csv(index=False, sep=separator, lineterminator="\n"))


def _csv_column(column: Series) -> Series:
    """The cells of a column of a csv file: truth values as TRUE and FALSE, texts by `csv_cell`."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    def cell(value: Any) -> Any:
        """A value as R and Excel write it; a text that no spreadsheet takes for a formula."""
        if isinstance(value, bool):
            return str(value).upper()
        return csv_cell(visible(value)) if isinstance(value, str) else value

    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return column
    return column.map(cell, na_action="ignore")
