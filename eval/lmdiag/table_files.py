"""The one reader and the one writer of tables of users.

csv with a comma, a semicolon or a tab between its fields, in quotes or not, in UTF-8 or UTF-16;
Excel (.xlsx), JSON lines, Parquet, and tables in memory. Errors name file, line and column.
"""

from __future__ import annotations

import csv
import re
import zipfile
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date, time, timedelta
from functools import partial
from io import StringIO
from numbers import Number
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lmdiag import diagnostics, files
from lmdiag.files import MAX_CELL, MAX_TABLE, check_size, read_text
from lmdiag.text import column_like, csv_cell, first_few, folded, shortened, suggest, visible
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

# between the fields of a line; spreadsheets write a semicolon or a tab in many languages
_SEPARATORS = {",": "a comma", ";": "a semicolon", "\t": "a tab"}
_MAX_LINE = 16 * MAX_CELL  # characters of a line of a text file
_MAX_ROW = 4 * MAX_CELL  # bytes of a row of an Excel file, unpacked

# what is numbered -> what stands between the name of a file and the number
_MARKS = {"line": ":", "row": ", row "}
# types of the values of a table, whatever it was read from, and names of other ones
_PLAIN = {str, bool, int, float, type(None)}
_KINDS: dict[type, str] = {list: "a list", dict: "an object", bytes: "binary data"}
# keys of a region in the column `regions`; see docs/specification.md, section 1
_REGION = {"number", "name", "start", "end"}

_DECIMAL_COMMA = re.compile(r"[+-]?\d+(,\d+)?([eE][+-]?\d+)?").fullmatch
_LINE_END = re.compile(r"\r\n|\r|\n").findall
_QUOTE_FIRST = re.compile(r'(?:^|(?<=\t))"', re.MULTILINE)
_IN_QUOTES = re.compile(r'(?:^|(?<=\t))"((?:[^"\t\n]|"")*+)"(?=\t|\r?$)', re.MULTILINE)

_Row = tuple[int, list[str]]  # the number of a row in its file, and its cells


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


def read_table(path: Path, *, raw: bool = False) -> RawTable:
    """Returns the rows of a file; one with a suffix that is not known is read as text.

    Values of text and Excel files are texts; rows without any are left out. NA, NaN and nan are
    None, unless the values are asked for as they are written (`raw`). Where a semicolon separates
    the fields, numbers with a decimal comma get a point.
    """
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        return RawTable(str(path), files.read_parquet(path).to_pydict()).plain()
    if suffix == ".jsonl":
        records = [*files.read_json_lines(path)]
        numbers = RowNumbers([int(place.rpartition(":")[2]) for place, _ in records], "line")
        return RawTable.of_rows(str(path), [row for _, row in records], numbers).plain()
    unit = "row" if suffix == ".xlsx" else "line"
    place = f"{path}{_MARKS[unit]}"
    filled, separator = (_excel_rows(path), "") if suffix == ".xlsx" else _text_rows(path)
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
                raise BadInput(f"{path}: a column has no name: name it in the header")
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
    return RawTable(str(path), columns, numbers, is_text=True)


def is_text_table(path: Path) -> bool:
    """Returns whether a text file begins with a header: names of columns, or `sentence` alone."""
    head = _header(path, read_text(path)).strip()
    names = [name.strip('"') for name in re.split(r'[\t,;]|(?<=") (?=")', head)]
    is_known = {"text", "sentence", "word", "context", "item"} & {*map(folded, names)}
    has_names = len(names) > 1 or names[0].casefold() == "sentence"
    return has_names and bool(is_known) and not any(name[:1].isspace() for name in names)


def _text_rows(path: Path) -> tuple[list[_Row], str]:
    """The rows of a text file that have some text, the header first, and what separates fields.

    Below a header in quotes, rows may have a cell more: their names, as R's `write.table` does.
    """
    text = read_text(path)
    head = _header(path, text)
    if "\0" in head:
        raise BadInput(f"{path}:1: a NUL character; save the file as UTF-8 (in Excel: CSV UTF-8)")
    usual = "\t" if path.suffix.lower() in (".tsv", ".tab", ".txt") else ","
    separator = max((usual, *_SEPARATORS), key=re.sub(r'"[^"]*"', "", head).count)
    if re.fullmatch(r'"[^"]*"( "[^"]*")+\s*', head):  # R's write.table
        separator = " "
    check_size(path, 1 + head.count(separator), 0)
    is_quoted = separator != "\t" or '"' in head or _has_quoted_fields(text)
    quoting: Literal[0, 3] = csv.QUOTE_MINIMAL if is_quoted else csv.QUOTE_NONE
    csv.field_size_limit(MAX_CELL)
    reader = csv.reader(
        _lines(path, text), delimiter=separator, quoting=quoting, strict=True,
        escapechar="\\" if separator == " " else None,
    )  # fmt: skip
    rows: list[_Row] = []
    try:
        for cells in reader:
            check_size(path, len(cells), reader.line_num - 1)
            if "".join(cells).strip():
                rows.append((reader.line_num, cells))
    except csv.Error as error:
        too_long = f"a cell has more than {MAX_CELL:,} characters; split the text"
        remedy = 'write "" for a quote inside a quoted text'
        problem = too_long if "limit" in str(error) else f"{error}; {remedy}"
        raise BadInput(f"{path}:{reader.line_num}: {problem}") from error
    header = rows[0][1] if rows else []
    if '"' in head and all(len(cells) == len(header) + 1 for _, cells in rows[1:]):
        header.insert(0, "")
    n = len(header)
    for line, cells in rows:
        if len(cells) < n or any(cells[n:]):
            remedy = f"put text with {_SEPARATORS.get(separator, 'a blank')} in double quotes"
            raise BadInput(f"{path}:{line}: {len(cells)} fields, expected {n}; {remedy}")
    return rows, separator


def _lines(path: Path, text: str) -> Iterator[str]:
    """Yields the lines of a text with their ends."""
    for number, line in enumerate(StringIO(text, newline=""), start=1):
        if len(line) > _MAX_LINE:
            problem = f"the line has more than {_MAX_LINE:,} characters"
            raise BadInput(f"{path}:{number}: {problem}; split the text")
        yield line


def _header(path: Path, text: str) -> str:
    """The first line of a text that is not empty."""
    return next((line for line in _lines(path, text) if line.strip()), "")


def _has_quoted_fields(text: str) -> bool:
    """Whether quotes surround tab-separated fields, or are characters of their words.

    They surround fields if every field that begins with a quote ends with one, and one of them has
    a blank or a quote in it.
    """
    fields = _IN_QUOTES.findall(text)
    n_begun = len(_QUOTE_FIRST.findall(text))
    return len(fields) == n_begun and any(re.search(r'\s|"', field) for field in fields)


def _excel_rows(path: Path) -> list[_Row]:
    """The rows with some text in the one sheet of an Excel file that has any."""
    from openpyxl import load_workbook

    sheets = {}
    try:
        _check_excel(path)
        for sheet in load_workbook(path, read_only=True, data_only=True).worksheets:
            sheet.reset_dimensions()  # what the file says of them need not be true
            rows: list[list[str]] = []
            for row in sheet.iter_rows(values_only=True):
                # before rows are made equally long: two cells far apart would take gigabytes
                check_size(path, len(row), len(rows))
                rows.append([_excel_text(cell) for cell in row])
            if any(map(any, rows)):
                sheets[sheet.title] = rows
    except BadInput:
        raise
    except Exception as error:  # openpyxl does not check what it reads
        raise BadInput(f"{path} cannot be read: not valid Excel ({shortened(error)})") from None
    if len(sheets) > 1:
        names = ", ".join(sheets)
        raise BadInput(f"{path} has {len(sheets)} sheets ({names}): save one of them by itself")
    rows = next(iter(sheets.values()), [])
    width = max(map(len, rows), default=0)
    padded = [(n, row + [""] * (width - len(row))) for n, row in enumerate(rows, start=1)]
    return [(n, row) for n, row in padded if "".join(row).strip()]


def _check_excel(path: Path) -> None:
    """Refuses a file that would take too much memory: openpyxl takes 80 times the size of a row."""
    with zipfile.ZipFile(path) as archive:
        parts = {part.filename: part.file_size for part in archive.infolist()}
        cells = [name for name in parts if name.startswith(("xl/worksheets/", "xl/sharedStrings"))]
        other = max((size for name, size in parts.items() if name not in cells), default=0)
        for what, size, most in (
            ("in all", sum(parts.values()), MAX_TABLE),
            ("in a part without cells", other, files.MAX_INDEX),
        ):
            if size > most:
                problem = f"{size:,} bytes {what}; at most {most:,} are read"
                raise BadInput(f"{path} has {problem}: save it as csv")
        for name in cells:
            n_in_row = 0
            with archive.open(name) as content:
                for chunk in iter(partial(content.read, MAX_CELL), b""):
                    has_end = re.search(rb"</(\w+:)?(row|si)>", chunk)
                    n_in_row = 0 if has_end else n_in_row + len(chunk)
                    if n_in_row > _MAX_ROW:
                        raise BadInput(f"{path} has a row of more than {_MAX_ROW:,} bytes")


def _excel_text(cell: Any) -> str:
    """A cell as Excel saves it in a csv file; a date as ISO 8601."""
    if cell is None or isinstance(cell, bool):
        return "" if cell is None else str(cell).upper()
    if isinstance(cell, float) and cell.is_integer():
        return str(int(cell))
    return cell.isoformat() if hasattr(cell, "isoformat") else str(cell)


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
    from pandas import Series, factorize

    codes, values = factorize(column.astype(object).to_numpy())
    texts = [_written(value) for value in values]
    if {*map(type, values)} > {bool}:  # 1 and True are one value there
        return column.map(_written, na_action="ignore")
    return Series([None, *texts], dtype=object).take(codes + 1).set_axis(column.index)


def _written(value: Any) -> str:
    is_whole = isinstance(value, float) and value.is_integer()
    return str(int(value)) if is_whole else str(value)


def read_memory(data: Any) -> RawTable:
    """Returns the rows of an object in memory.

    It is a pandas DataFrame (its index is ignored), a `datasets.Dataset`, a pyarrow Table, a
    mapping of column names to values, or an iterable of mappings, one per row.
    """
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
    """Writes a table as csv, tab-separated or Parquet, completely or not at all.

    A csv file is UTF-8, with a byte-order mark if a text is not ASCII: Excel needs it, R and pandas
    drop it. Numbers have all their digits; what is missing is empty. Texts that a spreadsheet would
    take for a formula get an apostrophe in front, unless they are numbers.
    """
    with files.replacing(path) as file:
        if path.suffix == ".parquet":
            table.to_parquet(file, index=False)
            return
        cells = table.apply(_csv_column).rename(columns=lambda name: csv_cell(visible(name)))
        separator = "\t" if path.suffix == ".tsv" else ","
        text = cells.to_csv(index=False, sep=separator, lineterminator="\r\n")
        file.write(text.encode("utf-8" if text.isascii() else "utf-8-sig"))


def _csv_column(column: Series) -> Series:
    """Truth values as R and Excel write them; no text is a formula."""
    from pandas.api.types import is_bool_dtype, is_numeric_dtype

    if is_numeric_dtype(column) and not is_bool_dtype(column):
        return column
    texts = column.map(lambda x: str(x).upper() if isinstance(x, bool) else x, na_action="ignore")
    return texts.map(lambda text: csv_cell(visible(text)) if isinstance(text, str) else text)
