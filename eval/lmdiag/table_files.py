"""The one reader and the one writer of tables of users.

Text files (`text_tables`), Excel (`excel_tables`), JSON lines, Parquet, and tables in memory.
Errors name file, line and column.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag import diagnostics, files
from lmdiag.excel_tables import excel_letters, excel_rows
from lmdiag.files import MAX_CELL, check_size
from lmdiag.text import column_like, csv_cell, first_few, shortened, suggest, visible
from lmdiag.text_tables import text_rows
from lmdiag.types import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from pandas import DataFrame, Series

TABLE_SUFFIXES = (".csv", ".tsv", ".tab", ".xlsx", ".jsonl", ".parquet")
"""Endings of the names of files that are tables."""

WRITTEN_SUFFIXES = (".csv", ".tsv", ".parquet")
"""Endings of the names of files that a table is written to."""

MISSING = ("", "NA", "NaN", "nan")
"""What stands for a missing value in files of text and of Excel."""

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
# keys of a region in the column `regions`; see docs/specification.md, section 1
_REGION = {"number", "name", "start", "end"}

_DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?").fullmatch
_LINE_END = re.compile(r"\r\n|\r|\n").findall


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


class RowNumbers(NamedTuple):
    """The numbers of rows in their file.

    Attributes:
        values: of each row; of rows of several files, and of those of a suite, what messages call
            them.
        unit: what is numbered: "line" of a text file, or "row".
        below: numbers of the rows below the header, from 1, also counting empty ones; () for
            `values`, which have no header.
        names: what ids are made of, where rows were left out or made; () for 1, 2 and so on.
    """

    values: Sequence[int | str] = ()
    unit: str = "row"
    below: Sequence[int] = ()
    names: Sequence[int | str] = ()

    def of(self, rows: Sequence[int]) -> RowNumbers:
        """Returns the numbers of some rows."""
        kept: list[Any] = [
            [x[row] for row in rows] if x else () for x in (self.values, self.below, self.names)
        ]
        return RowNumbers(kept[0], self.unit, *kept[1:])

    def text(self, rows: Sequence[int]) -> str:
        """Returns what messages call some rows, e.g. "lines 4, 5"."""
        values = [self.values[row] for row in rows]
        numbers = first_few([*map(str, values)], 5)
        is_number = isinstance(values[0], int)
        return f"{self.unit}{'s' if len(values) > 1 else ''} {numbers}" if is_number else numbers


UNNUMBERED = RowNumbers()


@dataclass(frozen=True)
class RawTable:
    """Rows as they were read, before their values are converted and checked.

    Attributes:
        name: of the file or data set.
        columns: column -> plain Python values, one per row.
        numbers: of the rows.
        form: of rows that were made from other data; see `lmdiag.stimuli.Stimuli`.
        notes: how the columns and rows were read where they differ from the specification.
        chosen: columns that the user named.
        is_text: whether all values are texts, as in files of text and of Excel.
    """

    name: str
    columns: Mapping[str, Sequence[Any]]
    numbers: RowNumbers = UNNUMBERED
    form: str = ""
    notes: tuple[str, ...] = ()
    chosen: frozenset[str] = frozenset()
    is_text: bool = False

    def __post_init__(self) -> None:
        n_rows = max(map(len, self.columns.values()), default=0)
        check_size(self.name, len(self.columns), n_rows)
        if not self.numbers.values:
            object.__setattr__(self, "numbers", RowNumbers(range(1, n_rows + 1)))
        for name, values in self.columns.items():
            longest = max((x for x in values if isinstance(x, str)), key=len, default="")
            if len(longest) > MAX_CELL:
                problem = f"{len(longest):,} characters; at most {MAX_CELL:,} are read"
                raise self.error(values.index(longest), f"{name} has {problem}")

    @classmethod
    def of_rows(
        cls, name: str, rows: Sequence[Mapping[str, Any]], numbers: RowNumbers = UNNUMBERED,
        form: str = "",
    ) -> RawTable:  # fmt: skip
        """Returns a table of rows; an absent column is None."""
        names = dict.fromkeys(column for row in rows for column in row)
        check_size(name, len(names), len(rows))
        return cls(name, {name: [row.get(name) for row in rows] for name in names}, numbers, form)

    def __len__(self) -> int:
        """Number of rows."""
        return len(next(iter(self.columns.values()), ()))

    def plain(self) -> RawTable:
        """Returns the table with texts, numbers, truth values, and None for what is missing.

        Dates and times become texts (ISO 8601). Columns of words and of regions may have lists.
        `BadInput` names row and column of any other value.
        """
        return replace(self, columns={name: self._plain(name) for name in self.columns})

    def _plain(self, name: str) -> Sequence[Any]:
        """The plain values of a column; the column itself if they are."""
        values = self.columns[name]
        types = set(map(type, values))
        if types <= _PLAIN and (float not in types or all(value == value for value in values)):
            return values
        plain = [_plain_value(value) for value in values]
        for row, value in enumerate(plain):
            if type(value) not in _PLAIN and not _is_list_of(name, value):
                kind = _KINDS.get(type(value), f"a value of type {type(value).__name__}")
                remedy = "write one text, number or truth value in a cell, or leave the column out"
                problem = f"the column {name} has {kind}, {shortened(repr(value), 40)}"
                raise self.error(row, f"{problem}: {remedy}")
        return plain

    def where(self, row: int) -> str:
        """Returns what messages call a row, for example "my.csv:3"."""
        value = self.numbers.values[row]
        return value if isinstance(value, str) else f"{self.name}{_MARKS[self.numbers.unit]}{value}"

    def error(self, row: int, message: str) -> BadInput:
        """Returns the error that a row is wrong."""
        return BadInput(f"{self.where(row)}: {message}")

    def refuse(self, wrong: Mapping[int, str]) -> None:
        """Raises the problem of the first of some rows, and names the other ones; {} for none."""
        for row, problem in wrong.items():
            others = [*wrong][1:]
            n = f"{len(others):,} more row{'s' if len(others) > 1 else ''}"
            more = f" ({n}: {self.numbers.text(others)})" if others else ""
            raise self.error(row, f"{problem}{more}")

    def having(
        self, made: Mapping[str, Sequence[Any]], *notes: str, without: Collection[str] = ()
    ) -> RawTable:
        """Returns the rows with made columns in place of some, and lines on how they were read."""
        kept = {name: values for name, values in self.columns.items() if name not in without}
        return replace(self, columns={**kept, **made}, notes=(*self.notes, *notes))

    def numbered(self) -> RawTable:
        """Returns the table with names of its rows, which ids are made of."""
        names = self.numbers.names or range(1, len(self) + 1)
        return replace(self, numbers=self.numbers._replace(names=names))

    def of(self, rows: Sequence[int]) -> RawTable:
        """Returns some rows; one may be there several times."""
        columns = {name: [values[row] for row in rows] for name, values in self.columns.items()}
        return replace(self, columns=columns, numbers=self.numbers.of(rows))

    def column_of(self, name: str, option: str) -> str:
        """Returns the column that a user calls by a name, or by a spelling that fits only one.

        `BadInput` if there is none; the option is named.
        """
        column = column_like(name, self.columns)
        if column not in self.columns:
            names = ", ".join(filter(None, self.columns))
            problem = f"no column {name!r}{suggest(name, self.columns)}; there are {names:.800}"
            raise BadInput(f"{self.name}: {option}: {problem}")
        return column

    def lacks(self, column: str, rule: str) -> BadInput:
        """Returns the error that a column is missing: what may be meant, and what is there."""
        problem = f"the column {column} is missing{suggest(column, self.columns)}"
        return BadInput(f"{self.name}: {problem}; found: {', '.join(self.columns):.800}; {rule}")


# ---- reading -------------------------------------------------------------------------------------


def read_table(path: Path, *, raw: bool = False, sheet: str = "") -> RawTable:
    """Returns the rows of a file; one with a suffix that is not known is read as text.

    Values of text and Excel files are texts; rows without any are left out. NA, NaN and nan are
    None, unless the values are asked for as they are written (`raw`). Where a semicolon separates
    the fields, numbers with a decimal comma get a point.

    Args:
        path: of the file.
        raw: see above.
        sheet: of an Excel file: name or number from 1; "" for the first that has some text.
    """
    suffix = path.suffix.lower()
    if sheet and suffix != ".xlsx":
        raise BadInput(f"{path}: --sheet is for Excel files: leave it out")
    if suffix == ".parquet":
        return RawTable(str(path), files.read_parquet(path).to_pydict()).plain()
    if suffix == ".jsonl":
        records = [*files.read_json_lines(path)]
        numbers = RowNumbers([int(place.rpartition(":")[2]) for place, _ in records], "line")
        return RawTable.of_rows(str(path), [row for _, row in records], numbers).plain()
    unit = "row" if suffix == ".xlsx" else "line"
    place = f"{path}{_MARKS[unit]}"
    filled, separator, notes = excel_rows(path, sheet) if suffix == ".xlsx" else text_rows(path)
    if not filled:
        raise BadInput(f"{place}1: the file is empty; its first line must name the columns")
    (first, header), *rows = filled
    if repeated := [number for number, cells in rows if cells == header]:
        raise BadInput(f"{place}{repeated[0]}: the header is there again: remove this line")
    columns: dict[str, Sequence[Any]] = {}
    for position, name in enumerate(header):
        texts = [cells[position] for _, cells in rows]
        if not name and position:
            if any(texts):
                value = shortened(next(filter(None, texts)), 40)
                number = excel_letters(position + 1) if unit == "row" else position + 1
                which = f"column {number}, with {value!r},"
                raise BadInput(f"{place}{first}: {which} has no name: name it in the header")
            continue  # separators at the ends of all lines
        if name in columns:
            raise BadInput(f"{path}: the column {name} is there twice: rename one")
        if separator == ";" and all(_DECIMAL_COMMA(text) for text in {*texts} - {*MISSING}):
            texts = [text.replace(",", ".") for text in texts]
        columns[name] = texts if raw else [None if text in MISSING[1:] else text for text in texts]
    below = []
    n_inside = first  # ends of lines in the header, in cells, and of the lines above
    for number, cells in rows:
        n_inside += sum(len(_LINE_END(cell)) for cell in cells) if unit == "line" else 0
        below.append(number - n_inside)
    numbers = RowNumbers([number for number, _ in rows], unit, below)
    return RawTable(str(path), columns, numbers, notes=notes, is_text=True)


def as_frame(table: RawTable, *, raw: bool = False) -> DataFrame:
    """Returns a table as a DataFrame, whose index has the lines or rows of the file.

    Values are as they were read: those of text files are texts. What is missing is NaN, but in a
    `raw` frame of a text file it is as it is written, and names of rows, which R adds, are there.
    """
    from pandas import DataFrame

    columns = {name: _cells(values) for name, values in table.columns.items()}
    frame = DataFrame(columns, index=list(table.numbers.values))
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
    numbers: NDArray[np.float64] = to_numeric(present, errors="coerce").to_numpy(float)
    wrong = np.flatnonzero(np.isnan(numbers) & ~missing)
    if wrong.size:
        value = shortened(repr(column.iloc[wrong[0]]))
        raise BadInput(f"{where(int(wrong[0]))}: the column {name}: {value} is not a number")
    return numbers


def as_texts(column: Series) -> Series:
    """Returns a column as texts as they are written: whole numbers without .0; NaN is missing."""
    import numpy as np
    from pandas import Series, factorize

    codes, values = factorize(column.astype(object).to_numpy())
    texts = [_written(value) for value in values]
    if {*map(type, values)} > {bool}:  # 1 and True are one value there
        return column.map(_written, na_action="ignore")
    written = np.array([*texts, None], dtype=object)[codes]  # -1: missing
    return Series(written, column.index, dtype=object)


def _written(value: Any) -> str:
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)


def read_memory(data: Any) -> RawTable:
    """Returns the rows of an object in memory.

    It is a pandas DataFrame (its index is ignored), a `datasets.Dataset`, a pyarrow Table, a
    mapping of column names to values, or an iterable of mappings, one per row.
    """
    if type(data).__name__ in ("DatasetDict", "IterableDatasetDict"):
        splits = ", ".join(map(str, data))
        raise BadInput(f"{MEMORY}: a DatasetDict has splits ({splits}): give one, as data[SPLIT]")
    if hasattr(data, "iloc"):  # pandas: missing values become None
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
        return RawTable.of_rows(MEMORY, named).plain()
    if texts := [name for name, values in data.items() if isinstance(values, str)]:
        rule = "give a list of values per column, or a list with one dict per row"
        raise BadInput(f"{MEMORY}: the column {texts[0]} is one text: {rule}")
    columns = {str(name): [*values] for name, values in data.items()}
    if len({len(values) for values in columns.values()}) > 1:
        lengths = ", ".join(f"{name} {len(values)}" for name, values in columns.items())
        raise BadInput(f"{MEMORY}: the columns differ in length: {lengths}")
    return RawTable(MEMORY, columns).plain()


def _plain_value(value: Any) -> Any:
    """The plain value of a number, an array of numpy, a date or a time; None for NaN, NA, NaT."""
    value = value.tolist() if hasattr(value, "tolist") else value
    if type(value).__name__ in ("NAType", "NaTType"):
        return None
    if isinstance(value, date | time | timedelta):
        return str(value) if isinstance(value, timedelta) else value.isoformat()
    if isinstance(value, Number) and not isinstance(value, complex | int):
        number = float(value)  # type: ignore[arg-type]
        return number if number == number else None
    return str(value) if isinstance(value, str) else value


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
    files.write_atomically(path, table_content(table, path.suffix))


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
