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
    """Refuses a table that cannot be fitted, whatever its surprisals, before a model is asked.

    To ask a model takes long. The table is therefore checked with zeros in place of surprisals, and
    of entropies if the formula has them.
    """
    table.running_texts()  # refuses words that are not in the texts
    zeros = np.zeros(len(table.frame))
    entropy = zeros if needs_entropy(table) else None
    selection = Selection(table, SurprisalSource("", zeros, entropy=entropy))
    selection.rows()  # refuses columns that cannot be fitted


def needs_entropy(table: HumanTable) -> bool:
    """Returns whether a model must give entropies, since the formulas name them.

    A column `entropy` of the table has them already, unless they are a predictor.
    """
    is_column = ENTROPY in table.frame.columns and ENTROPY not in table.procedure.predictors
    names = names_in(" + ".join(table.procedure.formulas()))
    is_named = any(re.fullmatch(rf"{ENTROPY}(_prev_\d+)?", name) for name in names)
    return is_named and not is_column


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
        """Selects the rows that the procedure of the table analyses."""
        formulas = " + ".join(table.procedure.formulas())  # the response is named first
        self.table = table
        self.source = source
        self.kept = np.ones(len(table.frame), dtype=bool)
        self.left_out: dict[str, int] = {}
        self.notes = {"source": source.note} if source.note else {}
        self._columns = names_in(formulas)
        self._groups = grouping_columns(formulas)  # of random effects, whose values are texts
        self.response = self._columns[0]
        self._values_of = {SURPRISAL: source.values}
        if source.entropy is not None:
            self._values_of[ENTROPY] = source.entropy
        # whether the earlier words of a row are beyond a gap in the positions, as of position 5
        # after position 3; `_values_of_earlier_words` sets it
        self._beyond_gap = np.zeros(len(table.frame), dtype=bool)
        self._meets_column_filters = self.kept  # by the filters of columns that the table has
        self._leave_out_rows()

    def _leave_out_rows(self) -> None:
        """Leaves out the rows that the procedure does not analyse, and counts them by reason.

        The order is that of docs/specification.md, section 10: a row that two reasons apply to
        counts for the first.
        """
        table = self.table
        procedure = table.procedure
        if procedure.distinct:
            self.leave_out("repeated row", table.frame.duplicated().to_numpy())
        conditions = []
        for text in procedure.filter:
            condition = Condition.of(text)
            if condition:
                column = column_like(condition.column, table.frame.columns)
                conditions.append(condition._replace(column=column))
        # filters of the table's columns choose the rows over which responses are averaged
        for condition in conditions:
            if self._is_own_column(condition.column):
                self._filter(condition)
        self._meets_column_filters = self.kept.copy()
        if procedure.text and procedure.position:
            self._keep_one_row_per_word()
        for condition in conditions:
            if not self._is_own_column(condition.column):  # computed, or of a model
                self._filter(condition)
        # a row needs a value in each column of the formulas, and by some profiles in every column
        for name in self._columns:
            is_group = name in self._groups
            is_missing = table.missing(name) if is_group else np.isnan(self.values(name))
            self.leave_out(f"{name} is missing", is_missing)
        if procedure.complete:
            for name in table.frame.columns:
                if name != self.response:
                    self.leave_out(f"{name} is missing", table.missing(name))
        is_beyond_gap = self.kept & self._beyond_gap
        n_beyond_gap = int(is_beyond_gap.sum())
        if n_beyond_gap:
            first_row = table.where(int(is_beyond_gap.argmax()))
            self.notes["gaps"] = (
                f"positions: the earlier words of {n_beyond_gap:,} rows are beyond a gap in the "
                f"column {procedure.position}, the first time in {first_row}"
            )

    def leave_out(self, reason: str, rows: NDArray[np.bool_]) -> None:
        """Leaves out some rows, and counts those that were still kept.

        For example, `left_out` becomes {"rt is missing": 12}.

        Args:
            reason: why they are left out, e.g. "rt is missing".
            rows: whether each row of the table is left out, (n rows,).
        """
        n = int((self.kept & rows).sum())
        if n:
            self.left_out[reason] = self.left_out.get(reason, 0) + n
            self.kept &= ~rows

    def _filter(self, condition: Condition) -> None:
        """Keeps the rows that meet a condition, as `is_first=False` or `time>0`.

        `=` and `!=` compare texts of the table as they are written; other comparisons, and those of
        computed values, are of numbers.

        Args:
            condition: its text, e.g. "time>0", and the parts of the text: "time", ">" and "0".
        """
        text, column, sign, value = condition
        try:
            if condition.names_values and self._is_own_column(column):
                is_met = condition.is_met(self.table.texts(column).tolist())
                # a missing value meets `=` where the condition names it, and never meets `!=`
                is_missing = self.table.missing(column) & (~is_met | (sign == "!="))
            else:
                values = self.values(column)
                is_missing = np.isnan(values)
                number = float(TRUTH.get(value, value))  # true is 1, and false is 0
                is_met = _COMPARE[sign](values, number)
        except ValueError:
            raise BadInput(f"filter {text!r}: {value!r} is not a number") from None
        except BadInput as problem:
            raise BadInput(f"filter {text!r}: {problem}") from None
        self.leave_out(f"{column} is missing", is_missing)
        self.leave_out(f"not {text}", ~is_met)

    def _is_own_column(self, column: str) -> bool:
        """Whether a column has values of the table, and not surprisals of a model."""
        return column in self.table.frame.columns and column != SURPRISAL

    def _keep_one_row_per_word(self) -> None:
        """Averages the response over the rows of a word, unless the formula groups by reader.

        For example, of three readers of a word, one row with their mean reading time is kept. With
        a random effect of readers in the formula, all rows are kept.
        """
        table = self.table
        procedure = table.procedure
        kept_rows = np.flatnonzero(self.kept)
        rows = table.frame.iloc[kept_rows].assign(**{_WORD: table.word_of_row[kept_rows]})
        if not rows[_WORD].duplicated().any():
            return
        if procedure.word in table.frame.columns:
            table.check_words()
        # random effects whose groups differ between the rows of a word are those of readers; the
        # text of a word, as another group, is the same in all of its rows
        n_levels = rows.groupby(_WORD)[self._groups].nunique(dropna=False)
        reader_groups = [name for name in self._groups if (n_levels[name] > 1).any()]
        if reader_groups:
            self._refuse_repeated_readers(rows, reader_groups)
            return
        if procedure.reader:
            table.texts(procedure.reader)  # refuses an unknown column
            self._refuse_repeated_readers(rows, [procedure.reader])
            self._average(f"over {procedure.reader}")
        else:
            self._average("over the rows of a word")

    def _refuse_repeated_readers(self, rows: DataFrame, readers: Sequence[str]) -> None:
        """Refuses two rows of one reader and word.

        Args:
            rows: the rows that are kept, with the number of their word in the column `_WORD`.
            readers: columns that name readers.
        """
        columns = [_WORD, *readers]
        is_second = rows.duplicated(columns)
        if is_second.any():
            second_row = rows[is_second].iloc[0]
            is_same = (rows[columns] == second_row[columns]).all(axis=1)
            names = ", ".join(f"{name} {second_row[name]}" for name in readers)
            problem = f"a second row of {names} for the word of row {is_same.idxmax()}"
            raise BadInput(
                f"{self.table.name}:{second_row.name}: {problem}: remove one, choose rows by "
                "--filter COLUMN=VALUE, or leave out rows that are equal by --distinct"
            )

    def _average(self, over: str) -> None:
        """Keeps the first of the kept rows of each word, with their mean response in it.

        `over` says what the mean is over, for a note, e.g. "over subject".
        """
        for name in dict.fromkeys((SURPRISAL, *self._columns)):
            if name not in (self.response, *self._groups):
                self._values_of_words(name)  # refuses values that differ within a word
        word_of_row = self.table.word_of_row
        n_before = int(self.kept.sum())
        responses = Series(self.values(self.response)).where(self.kept)
        means = responses.groupby(word_of_row).transform("mean")
        self._values_of[self.response] = means.to_numpy()
        word_of_kept_row = Series(word_of_row).where(self.kept)  # NaN in rows that are left out
        self.kept &= ~word_of_kept_row.duplicated().to_numpy()
        n = int(self.kept.sum())
        self.notes["average"] = (
            f"{self.response}: mean {over}, {n_before:,} rows of {n:,} words; a formula with a "
            "group of readers uses the rows as they are"
        )

    def rows(self) -> DataFrame:
        """Returns the columns of the formulas on the fitted rows.

        They are numbers, or texts of groups; the index has what messages call a row. `BadInput` for
        an infinite value, and if the response is the same in all rows.
        """
        kept_rows = np.flatnonzero(self.kept)
        rows = DataFrame(index=[self.table.where(row) for row in kept_rows.tolist()])
        for name in self._columns:
            if name in self._groups:
                rows[name] = self.table.names(name).to_numpy()[kept_rows]
                continue
            rows[name] = self.values(name)[kept_rows]
            is_infinite = np.isinf(rows[name])
            if is_infinite.any():
                raise BadInput(f"{is_infinite.idxmax()}: column {name} is infinite")
        response = rows[self.response]
        if len(rows) > 1 and response.nunique() == 1:
            problem = f"{self.response} is {response.iloc[0]:g} in each of {len(rows):,} rows"
            raise BadInput(f"{self.table.name}: {problem}, so that nothing can predict it")
        return rows

    def values(self, name: str) -> Values:
        """Returns what a formula means by a name, for all rows of the table, (n rows,).

        NaN where a row has no value. The name is "surprisal" or "entropy" of the model; a column;
        such a name of an earlier word, "NAME_prev_1"; or "length", "log_frequency" and others that
        are computed from the words. Values are kept for the next call.
        """
        if name not in self._values_of:
            self._values_of[name] = self._compute_values(name)
        return self._values_of[name]

    def _compute_values(self, name: str) -> Values:
        """Returns the values of a name that `values` was not asked for before, (n rows,)."""
        columns = self.table.frame.columns
        lagged_name = _LAG.fullmatch(name)
        if lagged_name:
            return self._values_of_earlier_words(lagged_name[1], int(lagged_name[2]))
        synonym = {"length": "len", "len": "length"}.get(name, name)
        if name not in columns and synonym in columns:
            name = synonym
        can_be_computed = name in COMPUTED and self.table.procedure.word in columns
        if can_be_computed and name not in columns:
            return self._length_or_frequency(name)
        return self.table.numbers(name)

    def _length_or_frequency(self, name: str) -> Values:
        """Returns the length or the log frequency of the word of each row; notes how.

        `name` is one of `COMPUTED`; `freq` is the frequency with the other sign, as a surprisal.
        """
        procedure = self.table.procedure
        words = self.table.names(procedure.word)
        if name in ("length", "len"):
            self.notes[name] = f"{name}: characters of {procedure.word}"
            lengths: Values = words.str.len().where(words != "").to_numpy(float)
            return lengths
        proportion = f"wordfreq's proportion of {procedure.word}, language {procedure.language}"
        if name == "freq":
            self.notes[name] = f"{name}: -log2 of {proportion}"
            return -1 * log_frequencies(words, procedure.language)
        self.notes[name] = f"{name}: log2 of {proportion}"
        return log_frequencies(words, procedure.language)

    def _values_of_earlier_words(self, name: str, lag: int) -> Values:
        """Returns, for each row, the value of a name at the word `lag` words before.

        For example, of "length" and 1 in "the hen eats", the row of "eats" gets the 3 of "hen". The
        values are read from a column as "length_prev_1" or "prev_length", if the table has one, and
        otherwise looked up by the positions of words. (Two words before, these columns are called
        "length_prev_2" and "prev2_length".) NaN where a text has no such word.
        """
        table = self.table
        procedure = table.procedure
        # surprisals may stand in a column of another name, or in none: ""
        column = self.source.column if name == SURPRISAL else name
        for lagged_column in (f"{column}_prev_{lag}", f"prev{lag if lag > 1 else ''}_{column}"):
            if column and lagged_column in table.frame.columns:
                self.notes["lags"] = f"earlier words' values from columns as {lagged_column}"
                return table.numbers(lagged_column)
        values = self._values_of_words(name)
        earlier, has_gap = table.values_of_earlier_words(values, lag)
        self._beyond_gap |= has_gap[table.word_of_row]
        if name in (SURPRISAL, ENTROPY) and procedure.fill:  # before the beginning of a text
            earlier = np.where(np.isnan(earlier), np.nanmean(values), earlier)
        # as published: there, the earlier values stand in another order than the words, with the
        # texts sorted as text, "10" before "2"
        if name == SURPRISAL and procedure.lags_as_text:
            first_rows = table.first_row_of_word
            text_names = table.texts(procedure.text).to_numpy()[first_rows].astype(str)
            earlier = earlier[np.argsort(text_names, kind="stable")]
        at_rows: Values = earlier[table.word_of_row]
        return at_rows

    def _values_of_words(self, name: str) -> Values:
        """Returns the value of each word, (n words,), which all rows of the word must share.

        The rows of a word are those of its readers. If their values differ, as of a column that is
        0 in rows of skipped words, only the rows that meet the filters of columns count. `BadInput`
        if these differ, too.
        """
        word_of_row = self.table.word_of_row
        values = Series(self.values(name))
        is_shared = values.groupby(word_of_row).transform("nunique") <= 1
        values = values.where(is_shared | self._meets_column_filters)
        first_values = values.groupby(word_of_row).transform("first")
        differs = values.notna() & (values != first_values)
        if differs.any():
            row = int(differs.to_numpy().argmax())
            raise BadInput(
                f"{self.table.where(row)}: column {name} is {values[row]:g} but was "
                f"{first_values[row]:g} in an earlier row of the same word: choose rows by "
                "--filter COLUMN=VALUE, or give the readers a group in --formula"
            )
        values_of_words: Values = values.groupby(word_of_row).first().to_numpy()
        return values_of_words
