"""The rows that are fitted with one model's surprisals, and the values that formulas name."""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Sequence
from functools import cached_property

import numpy as np

from lmdiag.analysis.human import (
    TRUTH,
    Flags,
    HumanTable,
    SurprisalSource,
    Words,
    log_frequencies,
)
from lmdiag.analysis.procedures import SURPRISAL, Procedure
from lmdiag.analysis.regression import grouping_factors, names_in, sides
from lmdiag.stats import Values
from lmdiag.types import BadInput

_LENGTHS = ("length", "len")
_FREQUENCIES = {"log_frequency": 1.0, "freq": -1.0}
"""Computed column -> sign of log2 p in it."""

_COMPARE = {
    "!=": operator.ne, ">=": operator.ge, "<=": operator.le, "=": operator.eq,
    ">": operator.gt, "<": operator.lt,
}  # fmt: skip
_FILTER = re.compile(r"(.+?)(!=|>=|<=|=|>|<)(.*)", re.DOTALL)
_LAG = re.compile(r"(.+)_prev_(\d+)")


class Selection:
    """Rows of a table; what cannot be fitted is left out, and counted by reason.

    Attributes:
        kept: (n rows of the table,), which rows are fitted.
        left_out: reason -> number of rows.
        notes: what was computed, for readers.
    """

    def __init__(
        self, table: HumanTable, procedure: Procedure, source: SurprisalSource, used: Sequence[str]
    ) -> None:
        self.table, self.procedure, self.source = table, procedure, source
        self.kept = np.ones(len(table.frame), dtype=bool)
        self.left_out: dict[str, int] = {}
        self.notes = {"source": source.note} if source.note else {}
        full = procedure.formulas()[0]
        self.response = names_in(sides(full)[0])[0]
        self._means: Values | None = None
        self._telling = self.kept.copy()
        if procedure.distinct:
            self.leave_out("repeated row", table.frame.duplicated().to_numpy())
        conditions = procedure.filter or ()
        varying = [condition for condition in conditions if self._varies_within_words(condition)]
        for condition in varying:
            self._filter(condition)
        self._telling = self.kept.copy()
        if procedure.average:
            self._average()
        for condition in conditions:
            if condition not in varying:
                self._filter(condition)
        groups = grouping_factors(full)
        for name in used:
            missing = table.missing(name) if name in groups else np.isnan(self.values(name))
            self.leave_out(f"{name} is missing", missing)
        for name in map(str, table.frame.columns if procedure.complete else ()):
            if name != self.response:
                self.leave_out(f"{name} is missing", table.missing(name))

    # ---- the fitted rows, see `regression.Rows`

    def numbers(self, column: str) -> Values:
        """Returns the values of the fitted rows, all finite."""
        values = self.values(column)[self.kept]
        if (bad := np.flatnonzero(~np.isfinite(values))).size:
            raise BadInput(f"{self.where(int(bad[0]))}: column {column} is infinite")
        return values

    def labels(self, column: str) -> list[str]:
        """Returns the values of the fitted rows as text."""
        texts = self.table.texts(column)
        return [texts[row] for row in np.flatnonzero(self.kept)]

    def where(self, row: int) -> str:
        """Returns what to call a fitted row in a message."""
        return self.table.where(int(np.flatnonzero(self.kept)[row]))

    # ---- which rows are fitted

    def leave_out(self, reason: str, rows: Flags) -> None:
        """Leaves out and counts those of some rows that are still there."""
        if n := int((self.kept & rows).sum()):
            self.left_out[reason] = self.left_out.get(reason, 0) + n
            self.kept &= ~rows

    def _filter(self, condition: str) -> None:
        column, present, passed = self._passes(condition)
        self.leave_out(f"{column} is missing", ~present)
        self.leave_out(f"not {condition}", ~passed)

    def _passes(self, condition: str) -> tuple[str, Flags, Flags]:
        """The column of a filter; which rows have a value there, and which pass."""
        match = _FILTER.fullmatch(condition)
        if not match:
            raise BadInput(f"filter {condition!r}: write it as COLUMN=VALUE, or with != > < >= <=")
        column, sign, value = (part.strip() for part in match.groups())
        compare = _COMPARE[sign]
        try:
            numbers = self.values(column)
            return column, ~np.isnan(numbers), compare(numbers, float(TRUTH.get(value, value)))
        except (BadInput, ValueError):
            texts = np.array(self.table.texts(column), dtype=object)
            if sign not in ("=", "!="):
                raise BadInput(f"filter {condition!r}: only numbers have an order") from None
            return column, texts != "", np.asarray(compare(texts, value))

    def _varies_within_words(self, condition: str) -> bool:
        """Whether a filter tells rows of one word apart, e.g. readers or models."""
        if not (self.procedure.text and self.procedure.position):
            return False
        code = self.words.word
        share = np.bincount(code, self._passes(condition)[2]) / np.bincount(code)
        return bool(((share > 0) & (share < 1)).any())

    def _average(self) -> None:
        """Keeps one row per word, with the mean response over its rows."""
        self._by_word(SURPRISAL)  # refuses rows of several models, whose mean would say nothing
        values, code = self.values(self.response), self.words.word
        counted = self.kept & ~np.isnan(values)
        with np.errstate(invalid="ignore"):
            means = np.bincount(code, np.where(counted, values, 0)) / np.bincount(code, counted)
        self._means = means[code]
        rows = np.flatnonzero(self.kept)
        self.kept[:] = False
        self.kept[rows[np.unique(code[rows], return_index=True)[1]]] = True
        if (n := self.kept.sum()) < len(rows):
            mean = f"{self.response}: mean over the rows of a word"
            self.notes["average"] = f"{mean}, {len(rows):,} rows of {n:,} words"

    # ---- values of all rows

    @cached_property
    def words(self) -> Words:
        """The words of the rows."""
        return Words(self.table, self.procedure)

    def values(self, name: str) -> Values:
        """Returns the values of all rows of the table; NaN where there is none.

        Raises:
            BadInput: there is no such column and none that it can be computed from.
        """
        columns, word = self.table.frame.columns, self.procedure.word
        if name in _LENGTHS and name not in columns:
            name = next((other for other in _LENGTHS if other in columns), name)
        lag = _LAG.fullmatch(name)
        if name == SURPRISAL:
            return self.source.values
        if name == self.response and self._means is not None:
            return self._means
        if lag:
            base = self.source.column if lag[1] == SURPRISAL else lag[1]
            for column in (f"{base}_prev_{lag[2]}", f"prev{lag[2].removeprefix('1')}_{base}"):
                if base and column in columns:
                    self.notes["lags"] = f"earlier words' values from columns as {column}"
                    return self.table.numbers(column)
            return self._lagged(lag[1], int(lag[2]))
        if name in columns or name not in (*_LENGTHS, *_FREQUENCIES) or word not in columns:
            return self.table.numbers(name)
        texts = self.table.texts(word)
        if name in _LENGTHS:
            self.notes[name] = f"{name}: characters of {word}"
            return np.array([len(text) or math.nan for text in texts])
        sign, language = _FREQUENCIES[name], self.procedure.language or "en"
        self.notes[name] = (
            f"{name}: {'-' if sign < 0 else ''}log2 of wordfreq's proportion of {word}, language "
            f"{language}"
        )
        return sign * log_frequencies(texts, language)

    def _lagged(self, base: str, lag: int) -> Values:
        """Values of an earlier word."""
        by_word = self._by_word(base)
        words, sentences = self.words, self.source.sentences
        is_surprisal = base == SURPRISAL
        within = sentences[words.first_row] if is_surprisal and sentences is not None else None
        earlier = words.lagged(by_word, lag, within)
        if is_surprisal and self.procedure.fill:
            earlier[np.isnan(earlier)] = np.nanmean(by_word)
        if is_surprisal and self.procedure.lags_as_text:
            earlier = earlier[words.texts_as_text()]
        values: Values = earlier[words.word]
        return values

    def _by_word(self, name: str) -> Values:
        """The value of each word: of all its rows if they agree, else of those kept by filters."""
        values, code = self.values(name), self.words.word
        low, high = (np.full(code.max() + 1, math.nan) for _ in range(2))
        np.fmin.at(low, code, values)
        np.fmax.at(high, code, values)
        by_word = np.where(low == high, low, math.nan)
        for row in np.flatnonzero(self._telling & (low != high)[code] & ~np.isnan(values)):
            first = by_word[code[row]]
            if first == first and first != values[row]:
                raise BadInput(
                    f"{self.table.where(int(row))}: column {name} is {values[row]:g} but was "
                    f"{first:g} in an earlier row of the same word: choose rows by "
                    "--filter COLUMN=VALUE"
                )
            by_word[code[row]] = values[row]
        return by_word
