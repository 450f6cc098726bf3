"""Tables of human measures, a row per word or per word and reader, and surprisals for them."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from lmdiag.analysis.procedures import COMPUTED, SURPRISAL, Procedure, procedure_for
from lmdiag.files import exists, is_folder, parse_json, read_parquet, read_text, user_path
from lmdiag.stats import Values
from lmdiag.text import shortened
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame, Series

Flags = NDArray[np.bool_]
"""One truth value per row."""

_MISSING = ("", "NA", "NaN", "nan", "None")
TRUTH = {"True": "1", "False": "0", "TRUE": "1", "FALSE": "0"}


@dataclass(frozen=True)
class SurprisalSource:
    """Surprisals of one model.

    Attributes:
        name: of the model.
        values: (n rows of the table,), in the units of the procedure; NaN where there is none.
        column: the column of the table that they stand in, or "".
        note: what readers should know about them, or "".
    """

    name: str
    values: Values
    column: str = ""
    note: str = ""


class HumanTable:
    """A table of human measures and the words that its rows are about.

    Args:
        frame: the rows; values may be text.
        name: of the file, for messages.
        first: number of the first row in messages.
        procedure: which columns place a row in its text.
    """

    def __init__(self, frame: DataFrame, name: str, first: int, procedure: Procedure) -> None:
        if len(frame) == 0:
            raise BadInput(f"{name} has no rows")
        if doubled := frame.columns[frame.columns.duplicated()].tolist():
            raise BadInput(f"{name}: the column {doubled[0]} stands there twice: rename one")
        self.frame = frame.reset_index(drop=True)
        self.name, self.first, self.procedure = name, first, procedure

    def fingerprint(self) -> str:
        """Returns eight hexadecimal digits that tell the content."""
        return hashlib.sha256(self.frame.to_csv(index=False).encode()).hexdigest()[:8]

    def where(self, row: int) -> str:
        """Returns what to call a row of the file in a message."""
        return f"{self.name}:{row + self.first}"

    # ---- columns

    def texts(self, column: str) -> Series[str]:
        """Returns a column as text; "" where a value is missing.

        Raises:
            BadInput: there is no such column.
        """
        if column not in self.frame.columns:
            known = ", ".join(map(str, self.frame.columns))
            raise BadInput(f"{self.name}: no column {column!r}; it has {known}")
        values = self.frame[column].astype(object)
        return values.where(values.notna(), "").map(str)

    def missing(self, column: str) -> Flags:
        """Returns which values of a column are missing."""
        return np.asarray(self.texts(column).isin(_MISSING))

    def numbers(self, column: str) -> Values:
        """Returns a column as numbers; NaN where a value is missing, truth values as 1 and 0.

        Raises:
            BadInput: there is no such column, or a value is text.
        """
        from pandas import to_numeric

        texts = self.texts(column)
        values = np.asarray(to_numeric(texts.replace(TRUTH), errors="coerce"), float)
        if (bad := np.flatnonzero(np.isnan(values) & ~self.missing(column))).size:
            what = f"column {column}: {texts[bad[0]]!r} is not a number"
            raise BadInput(f"{self.where(bad[0])}: {what}")
        return values

    def keys(self, column: str) -> Series[float] | Series[str]:
        """Returns a column for joining: numbers if all values are, so that 1 and 1.0 are equal."""
        from pandas import Series

        texts = self.texts(column)
        try:
            values = self.numbers(column)
        except BadInput:
            return texts
        return texts if np.isnan(values).any() else Series(values)

    # ---- words

    @cached_property
    def word(self) -> NDArray[np.intp]:
        """Number of the word of each row, (n rows,), by text, sentence and position.

        Raises:
            BadInput: a column that places the rows is missing, or not given.
        """
        from pandas import DataFrame

        for field in ("text", "position"):
            if not getattr(self.procedure, field):
                raise BadInput(
                    f"{self.name}: which column is the {field} of a word? Name it, --{field} "
                    "COLUMN; words of earlier positions are needed"
                )
        places = {name: self.keys(name) for name in self._within()}
        positions = self.numbers(self.procedure.position)
        if (bad := np.flatnonzero(np.isnan(positions))).size:
            column = self.procedure.position
            raise BadInput(f"{self.where(bad[0])}: column {column} is missing")
        frame = DataFrame(places).assign(position=positions)
        return np.asarray(frame.groupby([*frame], sort=True).ngroup())

    def _within(self) -> list[str]:
        """The columns within whose values words are earlier or later."""
        return [name for name in (self.procedure.text, self.procedure.sentence) if name]

    @cached_property
    def first_rows(self) -> NDArray[np.intp]:
        """The first row of each word, (n words,)."""
        return np.unique(self.word, return_index=True)[1]

    def of_words(self, column: str) -> list[str]:
        """Returns a column as text, a value per word."""
        return [*self.texts(column).iloc[self.first_rows]]

    def lagged(self, values: Values, lag: int) -> Values:
        """Returns values of the words some words earlier, (n words,); NaN before a beginning.

        Args:
            values: (n words,).
            lag: how many words earlier.
        """
        from pandas import Series

        within = [self.keys(name).to_numpy()[self.first_rows] for name in self._within()]
        return np.asarray(Series(values).groupby(within).shift(lag))

    def running_texts(self) -> dict[str, str]:
        """Returns text -> its words joined by blanks.

        Raises:
            BadInput: a word is empty, has a blank, or differs between rows (row and column named).
        """
        column = self.procedure.word
        words = self.of_words(column)
        for row, (code, text) in enumerate(zip(self.word, self.texts(column), strict=True)):
            where = f"{self.where(row)}: column {column}"
            if text.split() != [text]:
                what = f"{text!r} contains a blank" if text.strip() else "is empty"
                raise BadInput(f"{where} {what}; a row is one word")
            if text != words[code]:
                first = self.where(self.first_rows[code])
                raise BadInput(f"{where}: {text!r} stands where {first} has {words[code]!r}")
        texts: dict[str, list[str]] = {}
        for name, word in zip(self.of_words(self.procedure.text), words, strict=True):
            texts.setdefault(name, []).append(word)
        return {name: " ".join(parts) for name, parts in texts.items()}


# ---- files --------------------------------------------------------------------------------------


def read_human(
    data: str | Path | DataFrame, profile: str | None = None, chosen: Procedure | None = None
) -> HumanTable:
    """Returns a table of human measures.

    Args:
        data: a file (comma-separated; tab-separated, then without quotes; Parquet), a DataFrame, or
            a run directory, whose items are the rows.
        profile, chosen: how it will be fitted, see `procedure_for`.

    Raises:
        BadInput: the file cannot be read as a table, has no rows, or lacks a column.
    """
    if not isinstance(data, str | Path):
        return HumanTable(data, "rows", 1, procedure_for(data.columns, profile, chosen))
    path = user_path(str(data))
    if is_folder(path):
        from lmdiag.analysis.items import items_of

        frame, first = items_of(path), 1
    else:
        frame, first = _read_file(path)
    return HumanTable(frame, path.name, first, procedure_for(frame.columns, profile, chosen))


def _read_file(path: Path) -> tuple[DataFrame, int]:
    """The rows of a file, and the number of the first one."""
    from pandas import read_csv
    from pandas.errors import EmptyDataError, ParserError

    if path.suffix == ".parquet":
        return read_parquet(path).to_pandas(), 1
    text = read_text(path)
    has_tabs = "\t" in text.partition("\n")[0]
    try:
        frame = read_csv(
            io.StringIO(text), sep="\t" if has_tabs else ",", dtype=str, keep_default_na=False,
            quoting=csv.QUOTE_NONE if has_tabs else csv.QUOTE_MINIMAL, header=None,
        )  # fmt: skip
    except (EmptyDataError, ParserError, ValueError) as error:
        raise BadInput(f"{path} is not a table: {shortened(error)}") from None
    return frame[1:].set_axis(frame.iloc[0].tolist(), axis="columns"), 2


def read_surprisals(table: HumanTable, source: str) -> SurprisalSource:
    """Returns surprisals that were made elsewhere, by the rows of a table.

    Args:
        table: the human measures.
        source: a column of the table; or a JSON file, text -> sentences -> numbers, one per word;
            or a table with a column `surprisal` and columns that tell the rows: those that both
            tables have, or `text`, `position` and `word` as `lmdiag surprisal` writes them.

    Raises:
        BadInput: there is no such column or file, or it does not fit the rows.
    """
    if source in table.frame.columns:
        return SurprisalSource(source, table.numbers(source), source)
    path = user_path(source)
    if not exists(path):
        raise BadInput(f"{source!r} is neither a column of {table.name} nor a file")
    if path.suffix == ".json":
        return _from_json(table, path)
    from pandas import DataFrame

    frame, first = _read_file(path)
    other = HumanTable(frame, path.name, first, table.procedure)
    name = next((name for name in frame.columns if name.lower() == SURPRISAL), "")
    places = {getattr(table.procedure, field): field for field in ("text", "position", "word")}
    keys = {key: key for key in frame.columns if key in table.frame.columns}
    keys |= {key: field for key, field in places.items() if key and field in frame.columns}
    keys = {key: named for key, named in keys.items() if named not in (name, *COMPUTED)}
    if not name or not keys:
        missing = f"a column of {table.name}" if name else f"a column {SURPRISAL!r}"
        raise BadInput(f"{path.name} needs {missing}; it has {', '.join(frame.columns)}")
    wanted, made = DataFrame(), DataFrame({"": other.numbers(name)})
    for key, named in keys.items():
        wanted[key], made[key] = table.keys(key), other.keys(named)
        if wanted[key].dtype != made[key].dtype:
            wanted[key], made[key] = table.texts(key), other.texts(named)
    made = made.drop_duplicates()
    if (second := made.duplicated([*keys])).any():
        row = made[second].iloc[0]
        place = ", ".join(map(str, row[1:]))
        raise BadInput(f"{other.where(row.name)}: a second surprisal for {place}")
    values = wanted.merge(made, how="left", on=[*keys])[""].to_numpy()
    if np.isnan(values).all():
        raise BadInput(f"{path.name} and {table.name} have no {', '.join(keys)} in common")
    return SurprisalSource(path.stem, values)


def _from_json(table: HumanTable, path: Path) -> SurprisalSource:
    """Surprisals of texts and sentences, as Kuribayashi et al. (2024) publish them."""
    content = parse_json(read_text(path), path.name)
    texts = Counter(table.of_words(table.procedure.text))
    if not isinstance(content, Mapping) or set(content) != set(texts):
        raise BadInput(
            f"{path.name} must be an object with the texts of {table.name} "
            f"({table.procedure.text}) as names: {', '.join([*texts][:3])}, ..."
        )
    values: list[float] = []
    for text, due in texts.items():
        try:
            made = [float(x) for sentence in content[text] for x in sentence]
        except (TypeError, ValueError):
            raise BadInput(f"{path.name}: text {text} is not a list of lists of numbers") from None
        if len(made) != due:
            n = len(made)
            raise BadInput(
                f"{path.name}: text {text} has {n} surprisals; {table.name} has {due} words"
            )
        values += made
    name = path.stem if path.stem != SURPRISAL else path.resolve().parent.name
    return SurprisalSource(name, np.array(values)[table.word])


def log_frequencies(texts: Iterable[str], language: str) -> Values:
    """Returns log2 of the proportion of each word in `wordfreq`; NaN for unknown words.

    Raises:
        BadInput: `wordfreq` is not installed, or has no such language.

    Source: Speer (2022), rspeer/wordfreq, version 3.
    """
    try:
        from wordfreq import word_frequency
    except ImportError:
        raise BadInput(
            "word frequencies need the package wordfreq: `pip install 'lmdiag[words]'`, or give a "
            "column log_frequency, or other columns by --controls"
        ) from None
    try:
        known = {text: word_frequency(text, language) for text in dict.fromkeys(texts)}
    except LookupError as error:
        raise BadInput(f"wordfreq: {shortened(error)}") from None
    return np.array([math.log2(known[x]) if known[x] else math.nan for x in texts])
