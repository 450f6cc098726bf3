"""Tables of human measures, a row per word or per word and reader, and surprisals for them."""

from __future__ import annotations

import csv
import hashlib
import io
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from lmdiag.analysis.procedures import SURPRISAL, Procedure
from lmdiag.files import exists, is_folder, parse_json, read_parquet, read_text, user_path
from lmdiag.stats import Values
from lmdiag.text import shortened
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame

Flags = NDArray[np.bool_]
"""One truth value per row."""

_MISSING = {"", "NA", "NaN", "nan", "None"}
TRUTH = {"True": "1", "False": "0", "TRUE": "1", "FALSE": "0"}


@dataclass(frozen=True)
class SurprisalSource:
    """Surprisals of one model.

    Attributes:
        name: of the model.
        values: (n rows of the table,), in the units of the procedure; NaN where there is none.
        column: the column of the table that they stand in, or "".
        sentences: (n rows,), number of the sentence of each row where the source tells; else None.
        note: what readers should know about them, or "".
    """

    name: str
    values: Values
    column: str = ""
    sentences: Values | None = None
    note: str = ""


class HumanTable:
    """A table of human measures.

    Args:
        frame: the rows; values may be text.
        name: of the file, for messages.
        first: number of the first row in messages.
    """

    def __init__(self, frame: DataFrame, name: str, first: int) -> None:
        if len(frame) == 0:
            raise BadInput(f"{name} has no rows")
        if doubled := frame.columns[frame.columns.duplicated()].tolist():
            raise BadInput(f"{name}: the column {doubled[0]} stands there twice: rename one")
        self.frame = frame.reset_index(drop=True)
        self.name = name
        self.first = first
        self._numbers: dict[str, Values] = {}

    @cached_property
    def fingerprint(self) -> str:
        """Eight hexadecimal digits of the content."""
        return hashlib.sha256(self.frame.to_csv(index=False).encode()).hexdigest()[:8]

    def where(self, row: int) -> str:
        """Returns what to call a row of the file in a message."""
        return f"{self.name}:{row + self.first}"

    def texts(self, column: str) -> list[str]:
        """Returns a column as text; "" where a value is missing.

        Raises:
            BadInput: there is no such column.
        """
        if column not in self.frame.columns:
            known = ", ".join(map(str, self.frame.columns))
            raise BadInput(f"{self.name}: no column {column!r}; it has {known}")
        values = self.frame[column].astype(object)
        return ["" if v is None or v != v else str(v) for v in values]

    def missing(self, column: str) -> Flags:
        """Returns which values of a column are missing."""
        return np.array([text in _MISSING for text in self.texts(column)])

    def numbers(self, column: str) -> Values:
        """Returns a column as numbers; NaN where a value is missing, truth values as 1 and 0.

        Raises:
            BadInput: there is no such column, or a value is text.
        """
        if column not in self._numbers:
            texts = self.texts(column)
            values = _numbers(texts)
            if (bad := np.flatnonzero(np.isnan(values) & ~self.missing(column))).size:
                what = f"column {column}: {texts[bad[0]]!r} is not a number"
                raise BadInput(f"{self.where(int(bad[0]))}: {what}")
            self._numbers[column] = values
        return self._numbers[column]


def _numbers(texts: Sequence[str]) -> Values:
    """Texts as numbers; NaN for missing values and other texts."""
    from pandas import Series, to_numeric

    plain = Series(texts, dtype=object).replace(TRUTH)
    return np.asarray(to_numeric(plain, errors="coerce"), float)


# ---- files --------------------------------------------------------------------------------------


def read_human(data: str | Path | DataFrame) -> HumanTable:
    """Returns a table of human measures.

    Args:
        data: a file (comma-separated; tab-separated, then without quotes; Parquet), a DataFrame, or
            a run directory, whose items are the rows.

    Raises:
        BadInput: the file cannot be read as a table, or has no rows.
    """
    if not isinstance(data, str | Path):
        return HumanTable(data, "rows", 1)
    path = user_path(str(data))
    if is_folder(path):
        from lmdiag.analysis.items import items_of

        return HumanTable(items_of(path), path.name, 1)
    if path.suffix == ".parquet":
        return HumanTable(read_parquet(path).to_pandas(), path.name, 1)
    from pandas import read_csv
    from pandas.errors import EmptyDataError, ParserError

    text = read_text(path)
    header = text.partition("\n")[0].rstrip("\r")
    separator = "\t" if "\t" in header else ","
    quoting: Literal[0, 3] = csv.QUOTE_NONE if separator == "\t" else csv.QUOTE_MINIMAL
    try:
        names = next(csv.reader([header], delimiter=separator, quoting=quoting), [])
        frame = read_csv(
            io.StringIO(text), sep=separator, quoting=quoting, dtype=str, keep_default_na=False,
            index_col=False, header=None, skiprows=1, names=range(len(names)),
        )  # fmt: skip
    except (EmptyDataError, ParserError, ValueError, csv.Error) as error:
        raise BadInput(f"{path} is not a table: {shortened(error)}") from None
    frame.columns = names
    return HumanTable(frame, path.name, 2)


def read_surprisals(table: HumanTable, source: str, procedure: Procedure) -> SurprisalSource:
    """Returns surprisals that were made elsewhere, by the rows of a table.

    Args:
        table: the human measures.
        source: a column of the table; or a JSON file, text -> sentences -> numbers, one per word;
            or a table with a column `surprisal` and columns of the human table that tell its rows.
        procedure: which columns place a row in its text.

    Raises:
        BadInput: there is no such column or file, or it does not fit the rows.
    """
    if source in table.frame.columns:
        return SurprisalSource(source, table.numbers(source), source)
    path = user_path(source)
    if not exists(path):
        raise BadInput(f"{source!r} is neither a column of {table.name} nor a file")
    if path.suffix == ".json":
        return _from_json(table, path, procedure)
    other = read_human(path)
    columns = [str(name) for name in other.frame.columns]
    name = next((name for name in columns if name.lower() == SURPRISAL), "")
    keys = [key for key in columns if key in table.frame.columns and key != name]
    if not name or not keys:
        missing = f"a column of {table.name}" if name else f"a column {SURPRISAL!r}"
        raise BadInput(f"{path.name} needs {missing}; it has {', '.join(columns)}")
    values = dict[tuple[Any, ...], float]()
    found = zip(*(_keys(other, key) for key in keys), strict=True)
    for row, (key, value) in enumerate(zip(found, other.numbers(name), strict=True)):
        if values.setdefault(key, value) != value:
            raise BadInput(f"{other.where(row)}: a second surprisal for {', '.join(map(str, key))}")
    wanted = list(zip(*(_keys(table, key) for key in keys), strict=True))
    joined = np.array([values.get(key, math.nan) for key in wanted])
    if np.isnan(joined).all():
        raise BadInput(f"{path.name} and {table.name} have no {', '.join(keys)} in common")
    return SurprisalSource(path.stem, joined)


def _keys(table: HumanTable, column: str) -> list[Any]:
    """A column for joining: as numbers if all values are, so that 1 and 1.0 are equal."""
    texts = table.texts(column)
    values = _numbers(texts)
    return values.tolist() if np.isfinite(values).all() else texts


def _from_json(table: HumanTable, path: Path, procedure: Procedure) -> SurprisalSource:
    """Surprisals of texts and sentences, as Kuribayashi et al. (2024) publish them."""
    content = parse_json(read_text(path), path.name)
    order = Words(table, procedure)
    names = [order.text_names[i] for i in order.texts_in_order]
    if not isinstance(content, Mapping) or set(content) != set(names):
        raise BadInput(
            f"{path.name} must be an object with the texts of {table.name} ({procedure.text}) as "
            f"names: {', '.join(names[:3])}, ..."
        )
    values: list[float] = []
    sentences: list[int] = []
    for i, name in zip(order.texts_in_order, names, strict=True):
        try:
            parts = [[float(x) for x in sentence] for sentence in content[name]]
        except (TypeError, ValueError):
            raise BadInput(f"{path.name}: text {name} is not a list of lists of numbers") from None
        n, due = sum(map(len, parts)), int((order.text == i).sum())
        if n != due:
            raise BadInput(
                f"{path.name}: text {name} has {n} surprisals; {table.name} has {due} words"
            )
        for part in parts:
            sentences += [(sentences[-1] if sentences else 0) + 1] * len(part)
            values += part
    name = path.stem if path.stem != SURPRISAL else path.resolve().parent.name
    by_word = np.array(values), np.array(sentences, float)
    return SurprisalSource(name, by_word[0][order.word], "", by_word[1][order.word])


# ---- words and lags -----------------------------------------------------------------------------


class Words:
    """The words that the rows of a table are about, in the order of reading.

    Attributes:
        word: (n rows,), number of the word of each row; words are sorted by text, sentence and
            position.
        text: (n words,), number of the text of each word.
        sentence: (n words,), number of its sentence, or of its text where sentences are not named.
        texts_in_order: numbers of the texts, sorted as numbers if all are.
        text_names: number of a text -> its name.

    Raises:
        BadInput: a column that places the rows is missing, or not given.
    """

    def __init__(self, table: HumanTable, procedure: Procedure) -> None:
        from pandas import DataFrame

        for field in ("text", "position"):
            if not getattr(procedure, field):
                raise BadInput(
                    f"{table.name}: which column is the {field} of a word? Name it, --{field} "
                    "COLUMN; words of earlier positions are needed"
                )
        names = table.texts(procedure.text)
        places = {"text": _keys(table, procedure.text)}
        if procedure.sentence:
            places["sentence"] = _keys(table, procedure.sentence)
        places["position"] = list(table.numbers(procedure.position))
        if np.isnan(places["position"]).any():
            row = int(np.flatnonzero(np.isnan(places["position"]))[0])
            raise BadInput(f"{table.where(row)}: column {procedure.position} is missing")
        frame = DataFrame(places)
        grouped = frame.groupby(list(places), sort=True)
        self.word = grouped.ngroup().to_numpy()
        first = frame.assign(row=np.arange(len(frame)), code=self.word)
        first = first.drop_duplicates("code").sort_values("code")
        self.first_row = first["row"].to_numpy()
        self.text = first.groupby("text", sort=True).ngroup().to_numpy()
        self.sentence = first.groupby([*places][:-1], sort=True).ngroup().to_numpy()
        self.text_names = {
            int(code): names[row] for code, row in zip(self.text, self.first_row, strict=True)
        }
        self.texts_in_order = sorted(self.text_names)

    def lagged(self, values: Values, lag: int, sentences: Values | None = None) -> Values:
        """Returns values of the words some words earlier, (n words,); NaN before a beginning.

        Args:
            values: (n words,).
            lag: how many words earlier.
            sentences: (n words,), beyond whose beginnings there is nothing; None for `sentence`.
        """
        within = self.sentence if sentences is None else sentences
        earlier = np.full(len(values), math.nan)
        if 0 < lag < len(values):
            same = within[lag:] == within[:-lag]
            earlier[lag:] = np.where(same, values[:-lag], math.nan)
        return earlier

    def texts_as_text(self) -> Values:
        """Returns the words' order with the texts sorted as text, "10" before "2", (n words,)."""
        names = [self.text_names[int(code)] for code in self.text]
        return np.array(sorted(range(len(names)), key=lambda i: names[i]), dtype=np.int64)

    def joined(self, table: HumanTable, column: str) -> tuple[dict[str, str], list[str]]:
        """Returns text -> its words joined by blanks, and the words in their order.

        Raises:
            BadInput: a word is empty, has a blank, or differs between rows (row and column named).
        """
        texts = table.texts(column)
        words = [texts[row] for row in self.first_row]
        for row, (code, text) in enumerate(zip(self.word, texts, strict=True)):
            if text.split() != [text]:
                what = "is empty" if not text.strip() else f"{text!r} contains a blank"
                raise BadInput(f"{table.where(row)}: column {column} {what}; a row is one word")
            if text != words[code]:
                raise BadInput(
                    f"{table.where(row)}: column {column}: {text!r} stands where "
                    f"{table.where(int(self.first_row[code]))} has {words[code]!r}"
                )
        joined: dict[str, list[str]] = {}
        for code, word in zip(self.text, words, strict=True):
            joined.setdefault(self.text_names[int(code)], []).append(word)
        return {name: " ".join(parts) for name, parts in joined.items()}, words


def log_frequencies(texts: Sequence[str], language: str) -> Values:
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
