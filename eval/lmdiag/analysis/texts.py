"""Texts for `lmdiag surprisal`: a text per row of a table, or a table with a row per word."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

from pandas import DataFrame

from lmdiag.analysis.human import HumanTable
from lmdiag.analysis.procedures import PLACES, Procedure, procedure_for
from lmdiag.stimuli.forms import form_of
from lmdiag.stimuli.proposals import WORDS
from lmdiag.stimuli.reading import read_rows
from lmdiag.stimuli.regions import refuse_fragments, with_regions
from lmdiag.stimuli.table import text_problem
from lmdiag.table_files import MISSING, RawTable, as_frame
from lmdiag.types import AS_IT_IS, BadInput, TableOptions


class NamedTexts(NamedTuple):
    """Texts and what they are called.

    Attributes:
        texts: what a model reads.
        names: of the texts.
        notes: how the table was read.
        words: the words of the table, where it has a row per word; None for texts.
    """

    texts: list[str]
    names: list[int | str]
    notes: tuple[str, ...] = ()
    words: HumanTable | None = None

    def of_table(self, surprisals: DataFrame) -> DataFrame:
        """Returns a table of `LanguageModel.surprisals` with the names and the words of the table.

        Texts are numbered from 1 in it.
        """
        named = surprisals.assign(text=[self.names[n - 1] for n in surprisals["text"]])
        if self.words is None:
            return named
        places = self.words.places.iloc[self.words.first_rows]
        positions = places["position"].to_numpy()
        of_words = named.iloc[self.words.word_in_texts].reset_index(drop=True)
        whole = (positions % 1 == 0).all()
        return of_words.assign(position=positions.astype(int) if whole else positions)


def read_texts(path: Path, options: TableOptions = AS_IT_IS) -> NamedTexts:
    """Returns the texts of a table: those of its rows, or of its words.

    A text of a row is called by the number of the row; a text of several rows as in its column.

    Raises:
        BadInput: there is no column of texts, or no text in a row.
    """
    known = PLACES | {"sentence", "region"}
    table = read_rows(path, options, known, raw=True, reads=("separator",))
    how = procedure_for(table.columns, None, Procedure(response="surprisal"))
    if how.text and how.position and how.word and not _has_blanks(table, how.text):
        words = HumanTable(as_frame(table, raw=True), path.name, how)
        texts = words.running_texts()
        gaps = [note for note in [words.gap_note()] if note]
        return NamedTexts([*texts.values()], [*texts], (*table.notes, *gaps), words)
    if form_of(table.columns) == "sentences":
        refuse_fragments(table)
        table = with_regions(table, options.separator)
    names = [name for name in ("text", "sentence") if name in table.columns]
    if len(names) != 1:
        rule = "a table needs one column text or sentence; give other texts as a .txt file"
        if remedy := WORDS.option(table.columns):
            rule = f"if it has a row per word, give {remedy}"
        raise BadInput(f"{path} has the columns {', '.join(table.columns)}: {rule}")
    texts_of_rows = table.columns[names[0]]
    for row, text in enumerate(texts_of_rows):
        if not isinstance(text, str) or text.strip() in MISSING:
            raise table.error(row, f"the column {names[0]} is empty or not text")
        if problem := text_problem("sentence", text):
            raise table.error(row, f"the column {names[0]} {problem}")
    return NamedTexts([*texts_of_rows], [*(table.row_names or table.numbers.rows)], table.notes)


def _has_blanks(table: RawTable, name: str) -> bool:
    """Whether most values of a column are texts of several words."""
    values = [str(value).strip() for value in table.columns[name]]
    return sum(" " in value for value in values) > len(values) / 2
