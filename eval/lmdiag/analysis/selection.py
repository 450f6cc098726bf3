"""The rows that are fitted with one model's surprisals, and the values that formulas name."""

from __future__ import annotations

import operator
import re
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from pandas import DataFrame, Series

from lmdiag.analysis.human import HumanTable, SurprisalSource
from lmdiag.analysis.procedures import COMPUTED, ENTROPY, SURPRISAL
from lmdiag.analysis.regression import grouping_columns, names_in
from lmdiag.frequencies import log_frequencies
from lmdiag.stats import Values
from lmdiag.stimuli.reading.filters import Condition
from lmdiag.tables.table_files import TRUTH
from lmdiag.text import column_like
from lmdiag.types import BadInput

_COMPARE = {
    "!=": operator.ne, ">=": operator.ge, "<=": operator.le, "=": operator.eq,
    ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_LAG = re.compile(r"(.+)_prev_(\d+)")
_WORD = "\0word"
"""Name of a column that no table has."""


def check_table(table: HumanTable) -> None:
    """Refuses a table that cannot be fitted, whatever its surprisals."""
    table.running_texts()
    zeros = np.zeros(len(table.frame))
    entropy = zeros if needs_entropy(table) else None
    Selection(table, SurprisalSource("", zeros, entropy=entropy)).rows()


def needs_entropy(table: HumanTable) -> bool:
    """Returns whether entropies are a predictor, or named in a formula but no column."""
    is_column = ENTROPY in table.frame.columns and ENTROPY not in table.procedure.predictors
    names = names_in(" + ".join(table.procedure.formulas()))
    return not is_column and any(re.fullmatch(rf"{ENTROPY}(_prev_\d+)?", name) for name in names)


class Selection:
    """Rows of a table; what cannot be fitted is left out, and counted by reason.

    Args:
        table: all rows.
        source: their surprisals.

    Attributes:
        kept: (n rows of the table,), which rows are fitted.
        left_out: reason -> number of rows.
        notes: what was computed, for readers.
        response: the column of the human measure.
    """

    def __init__(self, table: HumanTable, source: SurprisalSource) -> None:
        formulas = " + ".join(table.procedure.formulas())  # the response is named first
        self.table = table
        self.source = source
        self.kept = np.ones(len(table.frame), dtype=bool)
        self.left_out: dict[str, int] = {}
        self.notes = {"source": source.note} if source.note else {}
        self._columns = names_in(formulas)
        self._groups = grouping_columns(formulas)
        self.response = self._columns[0]
        self._values_of = {SURPRISAL: source.values}
        if source.entropy is not None:
            self._values_of[ENTROPY] = source.entropy
        self._beyond_gap = np.zeros(len(table.frame), dtype=bool)
        self._meets_column_filters = self.kept  # by the filters of columns that the table has
        self._leave_out_all()

    def _leave_out_all(self) -> None:
        """Leaves out the rows that the procedure does not analyse, and counts them by reason.

        The order is that of docs/specification.md, section 10: a row that two reasons apply to
        counts for the first.
        """
        table = self.table
        procedure = table.procedure
        if procedure.distinct:
            self.leave_out("repeated row", table.frame.duplicated().to_numpy())
        conditions = [
            condition._replace(column=column_like(condition.column, table.frame.columns))
            for condition in filter(None, map(Condition.of, procedure.filter))
        ]
        for condition in conditions:
            if self._is_read(condition.column):
                self._filter(condition)
        self._meets_column_filters = self.kept.copy()
        if procedure.text and procedure.position:
            self._one_row_per_word()
        for condition in conditions:
            if not self._is_read(condition.column):
                self._filter(condition)
        for name in self._columns:
            is_group = name in self._groups
            missing = table.missing(name) if is_group else np.isnan(self.values(name))
            self.leave_out(f"{name} is missing", missing)
        for name in table.frame.columns if procedure.complete else ():
            if name != self.response:
                self.leave_out(f"{name} is missing", table.missing(name))
        if n := int((self.kept & self._beyond_gap).sum()):
            where = table.where(int((self.kept & self._beyond_gap).argmax()))
            self.notes["gaps"] = (
                f"positions: the earlier words of {n:,} rows are beyond a gap in the column "
                f"{procedure.position}, the first time in {where}"
            )

    def leave_out(self, reason: str, rows: NDArray[np.bool_]) -> None:
        """Leaves out and counts those of some rows that are still there."""
        if n := int((self.kept & rows).sum()):
            self.left_out[reason] = self.left_out.get(reason, 0) + n
            self.kept &= ~rows

    def _filter(self, condition: Condition) -> None:
        """Keeps the rows that meet a condition: on texts as they are written, else on numbers."""
        text, column, sign, value = condition
        try:
            if condition.names_values and self._is_read(column):
                passed = condition.is_met(self.table.texts(column).tolist())
                missing = self.table.missing(column) & (~passed | (sign == "!="))
            else:
                values = self.values(column)
                missing = np.isnan(values)
                passed = _COMPARE[sign](values, float(TRUTH.get(value, value)))
        except ValueError:
            raise BadInput(f"filter {text!r}: {value!r} is not a number") from None
        except BadInput as problem:
            raise BadInput(f"filter {text!r}: {problem}") from None
        self.leave_out(f"{column} is missing", missing)
        self.leave_out(f"not {text}", ~passed)

    def _is_read(self, column: str) -> bool:
        """Whether a column has values of the table, and not those of a model."""
        return column in self.table.frame.columns and column != SURPRISAL

    def _one_row_per_word(self) -> None:
        """Averages the response over the rows of a word, unless the formula groups by reader."""
        table = self.table
        procedure = table.procedure
        fitted_rows = np.flatnonzero(self.kept)
        rows = table.frame.iloc[fitted_rows].assign(**{_WORD: table.word[fitted_rows]})
        if not rows[_WORD].duplicated().any():
            return
        if procedure.word in table.frame.columns:
            table.check_words()
        sizes = rows.groupby(_WORD)[self._groups].nunique(dropna=False)
        groups = [name for name in self._groups if (sizes[name] > 1).any()]  # of readers
        if procedure.reader and not groups:
            table.texts(procedure.reader)  # refuses an unknown column
        readers = groups or [name for name in [procedure.reader] if name]
        self._check_readers(rows, readers)
        if not groups:
            self._average(f"over {procedure.reader}" if readers else "over the rows of a word")

    def _check_readers(self, rows: DataFrame, readers: Sequence[str]) -> None:
        """Refuses two rows of a reader and word."""
        second = rows.duplicated([_WORD, *readers]) if readers else []
        if np.any(second):
            last = rows[second].iloc[0]
            is_repeated = (rows[[_WORD, *readers]] == last[[_WORD, *readers]]).all(axis=1)
            names = ", ".join(f"{name} {last[name]}" for name in readers)
            word = f"a second row of {names} for the word of row {is_repeated.idxmax()}"
            raise BadInput(
                f"{self.table.name}:{last.name}: {word}: remove one, choose rows by --filter "
                "COLUMN=VALUE, or leave out rows that are equal by --distinct"
            )

    def _average(self, over: str) -> None:
        """Keeps a row per word, with the mean response over its rows."""
        for name in dict.fromkeys((SURPRISAL, *self._columns)):
            if name not in (self.response, *self._groups):
                self._by_word(name)  # refuses values that differ within a word
        word = self.table.word
        before = int(self.kept.sum())
        values = Series(self.values(self.response)).where(self.kept)
        self._values_of[self.response] = values.groupby(word).transform("mean").to_numpy()
        self.kept &= ~Series(word).where(self.kept).duplicated().to_numpy()
        n = int(self.kept.sum())
        self.notes["average"] = (
            f"{self.response}: mean {over}, {before:,} rows of {n:,} words; a formula with a group "
            "of readers uses the rows as they are"
        )

    def rows(self) -> DataFrame:
        """Returns the columns of the formulas on the fitted rows; the index names the rows."""
        kept = np.flatnonzero(self.kept)
        rows = DataFrame(index=[self.table.where(row) for row in kept.tolist()])
        for name in self._columns:
            if name in self._groups:
                rows[name] = self.table.names(name).to_numpy()[kept]
                continue
            rows[name] = self.values(name)[kept]
            infinite = np.isinf(rows[name])
            if infinite.any():
                raise BadInput(f"{infinite.idxmax()}: column {name} is infinite")
        response = rows[self.response]
        if len(rows) > 1 and response.nunique() == 1:
            same = f"{self.response} is {response.iloc[0]:g} in each of {len(rows):,} rows"
            raise BadInput(f"{self.table.name}: {same}, so that nothing can predict it")
        return rows

    def values(self, name: str) -> Values:
        """Returns the values of all rows of the table, computed once; NaN where there is none."""
        if name not in self._values_of:
            self._values_of[name] = self._read(name)
        return self._values_of[name]

    def _read(self, name: str) -> Values:
        """The values of a column, of an earlier word, or computed from the words."""
        columns = self.table.frame.columns
        if match := _LAG.fullmatch(name):
            return self._lagged(match[1], int(match[2]))
        other = {"length": "len", "len": "length"}.get(name, name)
        if name not in columns and other in columns:
            name = other
        is_computed = name in COMPUTED and name not in columns
        if is_computed and self.table.procedure.word in columns:
            return self._computed(name)
        return self.table.numbers(name)

    def _computed(self, name: str) -> Values:
        """Length or log frequency of the words; see `COMPUTED`."""
        procedure = self.table.procedure
        texts = self.table.names(procedure.word)
        if name in ("length", "len"):
            self.notes[name] = f"{name}: characters of {procedure.word}"
            lengths: Values = texts.str.len().where(texts != "").to_numpy(float)
            return lengths
        sign = -1 if name == "freq" else 1
        proportion = f"wordfreq's proportion of {procedure.word}, language {procedure.language}"
        self.notes[name] = f"{name}: {'-' if sign < 0 else ''}log2 of {proportion}"
        return sign * log_frequencies(texts, procedure.language)

    def _lagged(self, base: str, lag: int) -> Values:
        """Values of an earlier word, from a column that has them or by position."""
        table = self.table
        procedure = table.procedure
        column = self.source.column if base == SURPRISAL else base
        for spelling in (f"{column}_prev_{lag}", f"prev{lag if lag > 1 else ''}_{column}"):
            if column and spelling in table.frame.columns:
                self.notes["lags"] = f"earlier words' values from columns as {spelling}"
                return table.numbers(spelling)
        by_word = self._by_word(base)
        earlier, is_beyond_gap = table.lagged(by_word, lag)
        self._beyond_gap |= is_beyond_gap[table.word]
        if base in (SURPRISAL, ENTROPY) and procedure.fill:
            earlier = np.where(np.isnan(earlier), np.nanmean(by_word), earlier)
        if base == SURPRISAL and procedure.lags_as_text:
            texts = table.texts(procedure.text).to_numpy()[table.first_rows].astype(str)
            earlier = earlier[np.argsort(texts, kind="stable")]
        at_rows: Values = earlier[table.word]
        return at_rows

    def _by_word(self, name: str) -> Values:
        """A value per word: that of all its rows if they agree, else of those that filters keep."""
        word = self.table.word
        values = Series(self.values(name))
        agree = values.groupby(word).transform("nunique") <= 1
        values = values.where(agree | self._meets_column_filters)
        first_values = values.groupby(word).transform("first")
        differs = values.notna() & (values != first_values)
        if differs.any():
            row = int(differs.to_numpy().argmax())
            raise BadInput(
                f"{self.table.where(row)}: column {name} is {values[row]:g} but was "
                f"{first_values[row]:g} in an earlier row of the same word: choose rows by "
                "--filter COLUMN=VALUE, or give the readers a group in --formula"
            )
        by_word: Values = values.groupby(word).first().to_numpy()
        return by_word
