"""The rows that are fitted with one model's surprisals, and the values that formulas name."""

from __future__ import annotations

import math
import operator
import re
from typing import TYPE_CHECKING

import numpy as np

from lmdiag.analysis.human import TRUTH, Flags, HumanTable, SurprisalSource, log_frequencies
from lmdiag.analysis.procedures import COMPUTED, FILTER, SURPRISAL
from lmdiag.analysis.regression import grouping_columns, names_in
from lmdiag.stats import Values
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame

_COMPARE = {
    "!=": operator.ne, ">=": operator.ge, "<=": operator.le, "=": operator.eq,
    ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_LAG = re.compile(r"(.+)_prev_(\d+)")


class Selection:
    """Rows of a table; what cannot be fitted is left out, and counted by reason.

    Args:
        table: all rows.
        source: their surprisals.
        formulas: what is fitted, the response first.

    Attributes:
        kept: (n rows of the table,), which rows are fitted.
        left_out: reason -> number of rows.
        notes: what was computed, for readers.
        response: the column of the human measure.
    """

    def __init__(self, table: HumanTable, source: SurprisalSource, formulas: str) -> None:
        self.table, self.source, how = table, source, table.procedure
        self.kept = np.ones(len(table.frame), dtype=bool)
        self.left_out: dict[str, int] = {}
        self.notes = {"source": source.note} if source.note else {}
        self._columns, self._groups = names_in(formulas), grouping_columns(formulas)
        self.response = self._columns[0]
        self._mean: Values | None = None
        if how.distinct:
            self.leave_out("repeated row", table.frame.duplicated().to_numpy())
        known = {*table.frame.columns} - {SURPRISAL}
        filters = [FILTER.fullmatch(condition) for condition in how.filter or ()]
        for match in (match for match in filters if match and match[1] in known):
            self._filter(*match.group(0, 1, 2, 3))
        self._passed = self.kept.copy()
        if how.average:
            self._average()
        for match in (match for match in filters if match and match[1] not in known):
            self._filter(*match.group(0, 1, 2, 3))
        for name in self._columns:
            is_group = name in self._groups
            missing = table.missing(name) if is_group else np.isnan(self.values(name))
            self.leave_out(f"{name} is missing", missing)
        for name in table.frame.columns if how.complete else ():
            if name != self.response:
                self.leave_out(f"{name} is missing", table.missing(name))

    def rows(self) -> DataFrame:
        """Returns the columns of the formulas on the fitted rows; the index names the rows.

        Raises:
            BadInput: a number is infinite.
        """
        from pandas import DataFrame

        kept = np.flatnonzero(self.kept)
        rows = DataFrame(index=[self.table.where(row) for row in kept.tolist()])
        for name in self._columns:
            values = self.table.texts(name) if name in self._groups else self.values(name)
            rows[name] = np.asarray(values)[kept]
            if name not in self._groups and (infinite := np.isinf(rows[name].to_numpy())).any():
                raise BadInput(f"{rows.index[infinite.argmax()]}: column {name} is infinite")
        return rows

    def leave_out(self, reason: str, rows: Flags) -> None:
        """Leaves out and counts those of some rows that are still there."""
        if n := int((self.kept & rows).sum()):
            self.left_out[reason] = self.left_out.get(reason, 0) + n
            self.kept &= ~rows

    def _filter(self, condition: str, column: str, sign: str, value: str) -> None:
        try:
            values, bound = self.values(column), float(TRUTH.get(value, value))
            missing, passed = np.isnan(values), _COMPARE[sign](values, bound)
        except (BadInput, ValueError):
            if sign not in ("=", "!="):
                raise BadInput(f"filter {condition!r}: only numbers have an order") from None
            texts = self.table.texts(column).to_numpy()
            missing, passed = texts == "", _COMPARE[sign](texts, value)
        self.leave_out(f"{column} is missing", missing)
        self.leave_out(f"not {condition}", ~passed)

    def _average(self) -> None:
        """Keeps a row per word, with the mean response over its rows."""
        from pandas import Series

        self._by_word(SURPRISAL)  # refuses rows of several models, whose mean would say nothing
        word = self.table.word
        values = Series(self.values(self.response)).where(self.kept)
        self._mean = values.groupby(word).transform("mean").to_numpy()
        before = int(self.kept.sum())
        self.kept &= ~Series(word).where(self.kept).duplicated().to_numpy()
        if (n := int(self.kept.sum())) < before:
            mean = f"{self.response}: mean over the rows of a word"
            self.notes["average"] = f"{mean}, {before:,} rows of {n:,} words"

    # ---- values of all rows

    def values(self, name: str) -> Values:
        """Returns the values of all rows of the table; NaN where there is none.

        Raises:
            BadInput: there is no such column and none that it can be computed from.
        """
        columns = self.table.frame.columns
        if name == SURPRISAL:
            return self.source.values
        if name == self.response and self._mean is not None:
            return self._mean
        if lag := _LAG.fullmatch(name):
            base = self.source.column if lag[1] == SURPRISAL else lag[1]
            for column in (f"{base}_prev_{lag[2]}", f"prev{lag[2].removeprefix('1')}_{base}"):
                if base and column in columns:
                    self.notes["lags"] = f"earlier words' values from columns as {column}"
                    return self.table.numbers(column)
            return self._lagged(lag[1], int(lag[2]))
        if name in ("length", "len") and name not in columns:
            name = next((other for other in ("length", "len") if other in columns), name)
        word, language = self.table.procedure.word, self.table.procedure.language or "en"
        if name in columns or name not in COMPUTED or word not in columns:
            return self.table.numbers(name)
        texts = self.table.texts(word)
        if name in ("length", "len"):
            self.notes[name] = f"{name}: characters of {word}"
            return np.array([len(text) or math.nan for text in texts])
        minus = "-" if name == "freq" else ""
        self.notes[name] = (
            f"{name}: {minus}log2 of wordfreq's proportion of {word}, language {language}"
        )
        frequencies = log_frequencies(texts, language)
        return -frequencies if minus else frequencies

    def _lagged(self, base: str, lag: int) -> Values:
        """Values of an earlier word."""
        how, by_word = self.table.procedure, self._by_word(base)
        earlier = self.table.lagged(by_word, lag)
        if base == SURPRISAL and how.fill:
            earlier = np.where(np.isnan(earlier), np.nanmean(by_word), earlier)
        if base == SURPRISAL and how.lags_as_text:
            texts = self.table.of_words(how.text)
            earlier = earlier[np.argsort(np.array(texts), kind="stable")]
        at_rows: Values = earlier[self.table.word]
        return at_rows

    def _by_word(self, name: str) -> Values:
        """A value per word: that of all its rows if they agree, else of those that filters keep."""
        from pandas import Series

        word, values = self.table.word, Series(self.values(name))
        agree = values.groupby(word).transform("nunique") <= 1
        values = values.where(agree | self._passed)
        first = values.groupby(word).transform("first")
        if (other := values.notna() & (values != first)).any():
            row = int(other.to_numpy().argmax())
            raise BadInput(
                f"{self.table.where(row)}: column {name} is {values[row]:g} but was "
                f"{first[row]:g} in an earlier row of the same word: choose rows by "
                "--filter COLUMN=VALUE"
            )
        by_word: Values = values.groupby(word).first().to_numpy()
        return by_word
