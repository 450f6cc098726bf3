"""The one reader and the one writer of tables of users.

Text files (`text_tables`), Excel (`excel_tables`), JSON lines, Parquet, and tables in memory.
Errors name file, line and column.
"""

from __future__ import annotations

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
# types of the values of a table, whatever it was read from, and names of other ones
_PLAIN = {str, bool, int, float, type(None)}
_KINDS: dict[type, str] = {list: "a list", dict: "an object", bytes: "binary data"}
# columns that are read where they are there, folded; see `Table.plain`
_NEEDED = KNOWN_NAMES | {"rightcontext", "expected", "surprisal"}
# columns of a table of `lmdiag surprisal`
_SURPRISALS = {"text", "position", "word", "start", "surprisal", "n_tokens"}
# rows that are compared with the header
_SAMPLE = 200
# keys of a region in the column `regions`; see docs/specification.md, section 1
_REGION = {"number", "name", "start", "end"}

_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?").fullmatch
_DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?").fullmatch


class Problems(list[str]):
    """Errors that are raised together."""

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Keeps a `BadInput` of the block."""
        try:
            yield
        except BadInput as error:
            self.append(str(error))

    def refuse(self) -> None:
        """Raises all errors as one; the name of the file is in the first alone."""
        if not self:
            return
        start = self[0].partition(": ")[0]
        raise BadInput("; ".join([self[0], *(x.removeprefix(f"{start}: ") for x in self[1:])]))


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

    What is not given is 1, 2 and so on.
    """
    from pandas import Index, MultiIndex

    numbers = range(1, len(places) + 1)
    levels = [Index(level) for level in (places, below or numbers, names or numbers)]
    return MultiIndex.from_arrays(levels, names=[unit, "below", "name"])


def shown_places(index: MultiIndex) -> str:
    """Returns what messages call some rows, e.g. "lines 4, 5", each once."""
    unit = index.names[0]
    places = [*dict.fromkeys(index.get_level_values(unit))]
    names = first_few([*map(str, places)], 5)
    if isinstance(places[0], str):  # they have names of their own
        return names
    return f"{unit}s {names}" if len(places) > 1 else f"{unit} {names}"


def _as_objects(
    columns: Mapping[str, Sequence[Any] | Series], index: MultiIndex
) -> dict[str, Series]:
    """Columns as they are, without a guess at their types."""
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
        chosen: known name -> the column of the source that the user says it is.
        sources: the same of all columns that have another name in the source.
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
        """Returns a table of rows; an absent column is None."""
        names = dict.fromkeys(column for row in rows for column in row)
        check_size(name, len(names), len(rows))
        columns = {name: [row.get(name) for row in rows] for name in names}
        return cls.of(name, columns, index, **fields)

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @cached_property
    def columns(self) -> Mapping[str, list[Any]]:
        """Column -> its values, one per row. Shared: not to be changed."""
        return {name: self.rows[name].tolist() for name in self.rows}

    def _refuse_long_texts(self, name: str) -> None:
        """Refuses a text of a column that is longer than any cell that is read."""
        values = self.rows[name].tolist()
        is_text = {*map(type, values)} == {str}
        texts = values if is_text else [x for x in values if isinstance(x, str)]
        if max(map(len, texts), default=0) > MAX_CELL:
            longest = max(texts, key=len)
            problem = f"{len(longest):,} characters; at most {MAX_CELL:,} are read"
            raise self.error(values.index(longest), f"{name} has {problem}")

    def _refuse_nul(self) -> None:
        """Refuses NUL in a cell: no text has it, and other programs end the text there."""
        for name, values in self.columns.items():
            if "\0" in "".join(filter(_is_text, values)):
                row = next(i for i, x in enumerate(values) if _is_text(x) and "\0" in x)
                raise self.error(row, f"the column {visible(name)} has a NUL character: remove it")

    def plain(self) -> Table:
        """Returns the table with texts, numbers, truth values, and None for what is missing.

        Dates and times become texts (ISO 8601). Columns of words and of regions may have lists;
        other columns of nothing but lists, objects and the like are left out. `BadInput` names row
        and column of such a value in a text, or beside plain values.
        """
        values_of = {name: self._plain(name) for name in self.rows}
        wrong_kinds_of = {
            name: self._wrong_kinds(name, values) for name, values in values_of.items()
        }
        self._refuse_nul()
        unread = []
        for name, kinds in wrong_kinds_of.items():
            n_filled = sum(value is not None for value in values_of[name])
            if kinds and (len(kinds) < n_filled or folded(name) in _NEEDED):
                row, kind = next(iter(kinds.items()))  # the first wrong value
                remedy = "write one text, number or truth value in a cell, or leave the column out"
                value = shortened(repr(values_of[name][row]), 40)
                raise self.error(row, f"the column {name} has {kind}, {value}: {remedy}")
            if kinds:
                unread.append(name)
        examples = (f"{name} has {next(iter(wrong_kinds_of[name].values()))}" for name in unread)
        notes = (
            [shortened(f"columns: not read, since {', '.join(examples)}", 300)] if unread else []
        )
        plain = {name: values for name, values in values_of.items() if name not in unread}
        return self.having(plain, *notes, without=unread)

    def _plain(self, name: str) -> Sequence[Any]:
        """The plain values of a column; the column itself if they are."""
        values = self.columns[name]
        types = set(map(type, values))
        if types <= _PLAIN and (float not in types or all(value == value for value in values)):
            return values
        return [_plain_value(value) for value in values]

    def _wrong_kinds(self, name: str, values: Sequence[Any]) -> dict[int, str]:
        """Row -> what its value is, where it is none of a table."""
        if {*map(type, values)} <= _PLAIN:
            return {}
        return {
            row: _KINDS.get(type(value), f"a value of type {type(value).__name__}")
            for row, value in enumerate(values)
            if type(value) not in _PLAIN and not _is_list_of(name, value)
        }

    def labels(self, level: str) -> list[int | str]:
        """Returns a level of the index of the rows, see `row_index`."""
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
        mark = _MARKS[self.rows.index.names[0]]
        return place if isinstance(place, str) else f"{self.name}{mark}{place}"

    def places(self, rows: Sequence[int]) -> str:
        """Returns what messages call some rows, e.g. "lines 4, 5"."""
        return shown_places(self.rows.index[[*rows]])

    def error(self, row: int, message: str) -> BadInput:
        """Returns the error that a row is wrong."""
        return BadInput(f"{self.where(row)}: {message}")

    def refuse(self, wrong: Mapping[int, str]) -> None:
        """Raises the problem of the first of some rows, and names the other ones; {} for none."""
        for row, problem in wrong.items():
            others = [*wrong][1:]
            n = f"{len(others):,} more row{'s' if len(others) > 1 else ''}"
            more = f" ({n}: {self.places(others)})" if others else ""
            raise self.error(row, f"{problem}{more}")

    def having(
        self,
        new_columns: Mapping[str, Sequence[Any] | Series],
        *notes: str,
        without: Collection[str] = (),
    ) -> Table:
        """Returns the rows with made columns in place of some, and lines on how they were read."""
        from pandas import DataFrame

        other_rows = self.rows.drop(columns=[*without])
        columns = {**dict(other_rows.items()), **_as_objects(new_columns, other_rows.index)}
        rows = DataFrame(columns, index=other_rows.index, copy=False)
        check_size(self.name, *rows.shape[::-1])
        table = replace(self, rows=rows, notes=(*self.notes, *notes))
        for name in new_columns:
            table._refuse_long_texts(name)
        return table

    def of_rows_at(self, rows: Sequence[int] | NDArray[Any]) -> Table:
        """Returns some rows; one may be there several times."""
        return replace(self, rows=self.rows.iloc[rows])

    def column_of(self, name: str, option: str) -> str:
        """Returns the column that a user calls by a name, or by a spelling that fits only one.

        `BadInput` if there is none; the option is named.
        """
        known_name_of = {source: known for known, source in self.chosen.items()}
        column = column_like(name, self.columns)
        column = (
            known_name_of.get(column_like(name, known_name_of), column)
            if column == name
            else column
        )
        if column not in self.columns:
            names = self.source_names()
            existing = ", ".join(filter(None, names))
            problem = f"no column {name!r}{suggest(name, names)}; there are {existing:.800}"
            raise BadInput(f"{self.name}: {option}: {problem}")
        return column

    def lacks(self, column: str, rule: str) -> BadInput:
        """Returns the error that a column is missing: what may be meant, and what is there."""
        names = self.source_names()
        problem = f"the column {column} is missing{suggest(column, names)}"
        return BadInput(f"{self.name}: {problem}; found: {', '.join(names):.800}; {rule}")

    def source_names(self) -> list[str]:
        """Returns the names of the columns, those that the user named as in the source."""
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
        raw: see above.
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
        lines = [int(place.rpartition(":")[2]) for place, _ in records]
        index = row_index(lines, "line", below=lines)
        return Table.of_rows(str(path), [row for _, row in records], index).plain()
    if suffix == ".xlsx":
        return _of_cells(str(path), excel_rows(path, sheet), "row", raw=raw)
    return _of_cells(str(path), text_rows(path), "line", raw=raw)


def has_json_rows(path: str | Path) -> bool:
    """Returns whether a file is JSON with an object for each row, in a list or in lines."""
    path = user_path(str(path))
    is_json_file = path.suffix.lower() == ".json" and reading.is_file(path)
    return is_json_file and bool(reading.json_layout(path))


def _of_cells(name: str, file_rows: Rows, unit: str, *, raw: bool) -> Table:
    """The table of the rows of a text or Excel file; see `read_table`."""
    _check_header(file_rows.rows, f"{name}{_MARKS[unit]}")
    (first, first_number, header), *rows = file_rows.rows
    notes = file_rows.notes
    if repeated_lines := [str(line) for line, _, cells in rows if cells == header]:
        lines = f"{unit}{'s' if len(repeated_lines) > 1 else ''} {first_few(repeated_lines, 5)}"
        notes = (*notes, f"header: it is there again in {lines}, passed over")
        rows = [row for row in rows if row[2] != header]
    is_by_lmdiag = _is_by_lmdiag(header, [cells for _, _, cells in rows])
    columns: dict[str, Sequence[Any]] = {}
    for position, column in enumerate(header):
        texts = [cells[position] for _, _, cells in rows]
        if position and not column.strip():
            if filled := [text for text in texts if text.strip()]:
                number = excel_letters(position + 1) if unit == "row" else position + 1
                what = f"column {number}, with {shortened(min(filled), 40)!r}, has no name"
                if 2 * len(filled) > len(texts):  # the names may stand one column too far left
                    place = f"{name}{_MARKS[unit]}{first}"
                    raise BadInput(f"{place}: {what}: name it in the header")
                notes = (*notes, f"columns: {what} and is not read")
        elif column in columns:
            raise BadInput(f"{name}: the column {column} is there twice: rename one")
        elif is_by_lmdiag:
            cell_of = {text: from_csv_cell(text) or None for text in {*texts}}
            columns[from_csv_cell(column)] = [*map(cell_of.__getitem__, texts)]
        else:
            columns[column] = _values_of(texts, file_rows.separator, raw=raw)
    places = [line for line, _, _ in rows]
    index = row_index(places, unit, below=[number - first_number for _, number, _ in rows])
    table = Table.of(name, columns, index, notes=notes, is_text=not is_by_lmdiag)
    if not is_by_lmdiag:
        table._refuse_nul()
    return table


def _check_header(rows: Sequence[TextRow], place: str) -> None:
    """Refuses an empty file, and a row or a line of a csv file in the place of the header."""
    if not rows:
        raise BadInput(f"{place}1: the file is empty; its first line must name the columns")
    first, _, header = rows[0]
    sample = [cells for _, _, cells in rows[1:_SAMPLE]]
    names_as_values = _values_of_their_columns(header, sample)
    is_row = any(map(_NUMBER, names_as_values)) and not all(
        map(_NUMBER, names_as_values)
    )  # also the repeated header
    if not is_row and not has_known_name(header):  # one name may be a label in it, as filler
        is_row = len(_values_of_their_columns(header, [x for x in sample if x != header])) > 1
    filled = [*filter(None, header)]
    has_repeated_number = any(map(_NUMBER, filled)) and len({*filled}) < len(filled)
    if is_row or has_repeated_number:
        cells = first_few([*map(repr, header)], 5)
        problem = f"the first line seems to be a row, with {cells}, and must name the columns"
        raise BadInput(f"{place}{first}: {problem}: write a line of names above it")
    for separator in ",;\t" if len(header) == 1 else ():
        names = header[0].split(separator)
        if (
            len(names) > 1
            and all(separator in cells[0] for cells in sample)
            and can_be_names(names)
        ):
            remedy = "divide it (in Excel: Text to Columns), or remove the quotes around lines"
            raise BadInput(f"{place}{first}: all columns are in one, {header[0]!r:.60}: {remedy}")


def _values_of_their_columns(header: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    """The names that stand in their columns, too, among other values."""
    columns = zip(header, *rows, strict=False)
    return [x for x, *values in columns if x and x in values and {x} != {*values}]


def _values_of(texts: list[str], separator: str, *, raw: bool) -> Sequence[Any]:
    """The values of a column of texts: None for what is missing, decimal points for commas."""
    distinct = {*texts}
    if separator == ";" and all(_DECIMAL_COMMA(text) for text in distinct - {*MISSING}):
        texts = [text.replace(",", ".") for text in texts]
    if raw or distinct.isdisjoint(MISSING[1:]):  # an empty cell stays an empty text
        return texts
    return [None if text in MISSING[1:] else text for text in texts]


def _is_by_lmdiag(header: Sequence[str], rows: Sequence[Sequence[str]]) -> bool:
    """Whether lmdiag wrote a table: surprisals of words, or answers of a model with their state."""
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

    columns = {name: _cells(values) for name, values in table.columns.items()}
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
        numbers = to_numeric(present.map(_finite), errors="coerce").to_numpy(float)
    wrong = np.flatnonzero(np.isnan(numbers) & ~missing)
    if wrong.size:
        value = shortened(repr(column.iloc[wrong[0]]))
        remedy = "write 0.5 for 0,5 or 50%, and nothing where a value is missing"
        problem = f"the column {name}: {value} is not a number; {remedy}"
        raise BadInput(f"{where(int(wrong[0]))}: {problem}")
    return numbers


def _finite(value: Any) -> Any:
    """Returns a value; None for a whole number beyond the range of floats."""
    return None if isinstance(value, int) and abs(value) > sys.float_info.max else value


def as_texts(column: Series) -> Series:
    """Returns a column as texts as they are written: whole numbers without .0; NaN is missing."""
    from pandas import Series

    codes, texts = coded_texts(column)
    return Series([*texts, None], dtype=object).take(codes).set_axis(column.index)


def name_texts(column: Series) -> Series:
    """Returns names of items or texts as in `as_texts`; an empty one is missing.

    `BadInput` for a number that is not whole: read as one, 1.10 is 1.1.
    """
    for value in column:
        if isinstance(value, float) and value == value and not value.is_integer():
            raise BadInput(f"the column {column.name}: {not_a_name(value)}")
    texts = as_texts(column)
    return texts.mask(texts == "")


def not_a_name(value: Any) -> str:
    """Returns why a number that is not whole names nothing."""
    return f"{value!r} is a number, as which 1.1 and 1.10 are one: write names as texts (dtype=str)"


def coded_texts(column: Series) -> tuple[NDArray[np.intp], list[str]]:
    """Returns the number of the text of each value, -1 where it is missing, and these texts.

    Texts are as in `as_texts`, in the order of the rows; several may be the same.
    """
    from pandas import factorize

    values = column.to_numpy(dtype=object)
    codes, distinct = factorize(values)
    if {*map(type, distinct)} > {bool}:  # 1 and True are one value there
        values = column.map(written_text, na_action="ignore").to_numpy(dtype=object)
        codes, distinct = factorize(values)
    is_text = {*map(type, distinct)} <= {str}
    return codes, [*distinct] if is_text else [written_text(value) for value in distinct]


def written_text(value: Any) -> str:
    """Returns a value as text: a whole number without .0, a truth value in lower case."""
    if isinstance(value, bool):
        return str(value).lower()
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)


def read_memory(data: Any) -> Table:
    """Returns the rows of an object in memory.

    It is a pandas DataFrame (an index without a name is ignored), a `datasets.Dataset`, a pyarrow
    Table, a mapping of column names to values, or an iterable of mappings, one per row.
    """
    if type(data).__name__ in ("DatasetDict", "IterableDatasetDict"):
        splits = ", ".join(map(str, data))
        raise BadInput(f"{MEMORY}: a DatasetDict has splits ({splits}): give one, as data[SPLIT]")
    if hasattr(data, "iloc"):  # pandas: missing values become None
        data = _with_index(data)
        names = [*map(str, data.columns)]
        if repeated := [name for name in names if names.count(name) > 1]:
            raise BadInput(f"{MEMORY}: the column {repeated[0]} is there twice: rename one")
        data = data.astype(object).where(data.notna(), None).to_dict("list")
    elif convert := getattr(data, "to_pydict", None) or getattr(data, "to_dict", None):
        data = convert()  # pyarrow, datasets
    if not isinstance(data, Mapping):
        rows = list(data) if isinstance(data, Iterable) else [data]
        if not all(isinstance(row, Mapping) for row in rows):
            kinds = "the name of a data set, a file, a DataFrame, a list of dicts"
            problem = f"cannot read stimuli from {type(data).__name__}"
            raise BadInput(f"{problem}: give {kinds}, or a dict of columns")
        named = [{str(name): value for name, value in row.items()} for row in rows]
        return Table.of_rows(MEMORY, named).plain()
    if texts := [name for name, values in data.items() if isinstance(values, str)]:
        rule = "give a list of values per column, or a list with one dict per row"
        raise BadInput(f"{MEMORY}: the column {texts[0]} is one text: {rule}")
    columns = {str(name): [*values] for name, values in data.items()}
    if len({len(values) for values in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise BadInput(f"{MEMORY}: the columns differ in length: {lengths}")
    return Table.of(MEMORY, columns).plain()


def _with_index(data: Any) -> DataFrame:
    """A DataFrame whose columns are also the levels of its index that have a name."""
    data = data.to_frame() if hasattr(data, "to_frame") else data
    if data.columns.nlevels > 1:
        n = data.columns.nlevels
        remedy = "give each column one name, as data.columns = data.columns.map('_'.join)"
        raise BadInput(f"{MEMORY}: the names of the columns have {n} levels: {remedy}")
    names = [name for name in data.index.names if name is not None and name not in data.columns]
    return data.reset_index(level=names) if names else data


def _plain_value(value: Any) -> Any:
    """The plain value of a number, an array of numpy, a date or a time; None for NaN, NA, NaT."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, date | time | timedelta):
        return str(value) if isinstance(value, timedelta) else date_text(value)
    if isinstance(value, Number) and not isinstance(value, complex | int):
        number = float(value)  # type: ignore[arg-type]
        return number if number == number else None
    return str(value) if isinstance(value, str) else value


def _is_text(value: object) -> TypeGuard[str]:
    """Whether a value is a text."""
    return isinstance(value, str)


def _is_list_of(name: str, value: Any) -> bool:
    """Whether a column of our own formats has this list: words, formulas, or regions."""
    if not isinstance(value, list | tuple):
        return False
    if name == "regions":
        return all(isinstance(region, Mapping) and region.keys() == _REGION for region in value)
    return name == "formulas" or name in diagnostics.word_columns()


def _cells(values: Sequence[Any]) -> Sequence[Any]:
    """The values of a column with lists joined by bars, as in csv files."""
    if not any(isinstance(value, list | tuple) for value in values):
        return values
    lists = [value if isinstance(value, list | tuple) else [value or ""] for value in values]
    return ["|".join(map(str, value)) for value in lists]


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
    """Returns a table as csv.

    Numbers have all their digits; what is missing is empty. Texts that a spreadsheet would take for
    a formula get an apostrophe in front, unless they are numbers.
    """
    cells = table.apply(_csv_column).rename(columns=lambda name: csv_cell(visible(name)))
    return str(cells.to_csv(index=False, sep=separator, lineterminator="\n"))


def _csv_column(column: Series) -> Series:
    """Truth values as R and Excel write them; no text is a formula."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return column
    texts = column.map(lambda x: str(x).upper() if isinstance(x, bool) else x, na_action="ignore")
    return texts.map(lambda text: csv_cell(visible(text)) if isinstance(text, str) else text)
