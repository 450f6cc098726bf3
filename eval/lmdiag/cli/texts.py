"""`lmdiag surprisal` and `lmdiag fit`: surprisals of words, and what they predict."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

import lmdiag
from lmdiag.analysis.procedures import Procedure
from lmdiag.cli import command_options as options
from lmdiag.cli import say
from lmdiag.files.reading import decoded, read_text, user_path
from lmdiag.files.writing import write_user_file
from lmdiag.tables.table_files import (
    TABLE_SUFFIXES,
    WRITTEN_SUFFIXES,
    Table,
    has_json_rows,
    row_index,
    write_table,
)
from lmdiag.tables.text_tables import is_text_table
from lmdiag.text import visible
from lmdiag.types import BadInput, TableOptions

if TYPE_CHECKING:
    from lmdiag.runs.surprisals import NamedTexts

_COMPUTED = ("length", "log_frequency")
"""Further columns of a table of surprisals."""

_TABLE_OF_WORDS = options.TablesOfWords()
_TABLE_OF_TEXTS = options.TablesOfTexts()


def surprisal_command(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    model: Annotated[tuple[str, ...], Parameter(consume_multiple=False)],
    out: Annotated[tuple[Path, ...], Parameter(name=("--out", "--output"))] = (),
    columns: tuple[str, ...] = (),
    sentence: str = "",
    language: str = "en",
    entropy: bool = False,
    overwrite: options.Overwrite = False,
    table: Annotated[options.TablesOfTexts, options.TABLE] = _TABLE_OF_TEXTS,
    reading: Annotated[options.TextOptions, options.RECORD] = options.TextOptions(),
    batching: Annotated[
        options.CommandBatching, options.section("Running")
    ] = options.CommandBatching(),
) -> None:
    """Writes a table with the surprisal of every word of some texts, for one or several models.

    Args:
        file: text in UTF-8 with one sentence or text per line (- for standard input), or a table
            (csv, tsv, xlsx, JSON lines, Parquet) with them in a column text or sentence, or with a
            row per word in columns text, position and word
        model: a Hub id, a local folder, frequency:en or another language, ngram:FILE, demo:masked
            or demo:causal; given several times, of several models, and the table begins with a
            column model
        out: files to write; their names must end in .csv, .tsv or .parquet (default: csv to
            standard output)
        columns: further columns: length in characters, log_frequency (log2 of the word's proportion
            by wordfreq); and which column of a table is what, NAME=COLUMN
        sentence: column with the full texts in which the words of a table with a row per word
            stand, if the table lacks words of them or does not have them as they are typed
        language: language of the frequencies
        entropy: add the entropy over tokens before the first token of each word, in bits
    """
    from pandas import concat

    from lmdiag.frequencies import log_frequencies

    # what is wrong with the arguments and the texts is said before a model is loaded
    for path in out:
        options.check_new_file(path, WRITTEN_SUFFIXES, overwrite=overwrite)
    computed_columns, columns_of_uses = _computed_and_used(columns)
    table_options = TableOptions(**vars(table) | {"columns": columns_of_uses})
    named_texts = _read_texts(file, table_options, sentence)
    for note in named_texts.notes:
        say(f"lmdiag: {note}")
    if "log_frequency" in columns:
        # raises `BadInput` for a missing package now, and not after the models are asked
        log_frequencies(["a"], language)
    tables = []
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)  # also of a second model
        # each warning is one line on standard error, without the line of code that gave it
        warnings.showwarning = lambda message, *_, **__: say(f"lmdiag: warning: {message}")
        all_models = options.named_models(model)  # @FILE is replaced by the models of the file
        # each model is loaded in its turn of the loop
        loaded_models = reading.load_in_turn(model, entropy=entropy)
        for (name, _), loaded_model in zip(all_models, loaded_models, strict=True):
            words = loaded_model.surprisals(
                named_texts.texts,
                columns=computed_columns,
                language=language,
                cuts=named_texts.cuts,
                layers=reading.scoring.layers,
                **vars(batching),
            )
            words = named_texts.of_table(words)  # with names and order of the user's table
            if len(all_models) > 1:
                words.insert(0, "model", name)
            tables.append(words)
    words = concat(tables, ignore_index=True)
    for path in out:
        write_table(words, path)
    if out:
        return
    if sys.stdout.isatty():  # a terminal gets no control characters
        words["word"] = words["word"].map(visible)
    sys.stdout.write(words.to_csv(index=False, float_format="%.6f", lineterminator="\n"))


def _computed_and_used(columns: Sequence[str]) -> tuple[list[Any], tuple[str, ...]]:
    """Returns the two kinds of values of --columns, each in a list of its own.

    The first kind are further columns of the result, as "length". The second kind say which column
    of the table is what, as "word=ia". `BadInput` for another value.

    >>> _computed_and_used(["length", "word=ia"])
    (['length'], ('word=ia',))
    """
    computed = [name for name in columns if "=" not in name]
    unknown = {*computed} - {*_COMPUTED}
    if unknown:
        choice = ", ".join(_COMPUTED)
        raise BadInput(f"--columns {min(unknown)}: choose from {choice}, or write NAME=COLUMN")
    return computed, tuple(name for name in columns if "=" in name)


def _read_texts(file: str, options: TableOptions, sentence: str) -> NamedTexts:
    """Returns the texts of a table, or the lines of a text file or of standard input.

    `BadInput` for options of tables beside a text, and for a text that looks wrong: file and line
    are named.

    Args:
        file: name of the file; "-" for standard input.
        options: how a table is read.
        sentence: column with the full texts of a table of words; "" for none.
    """
    from lmdiag.runs.surprisals import NamedTexts, read_texts
    from lmdiag.stimuli.reading.conversion import markup_problem
    from lmdiag.stimuli.reading.steps import notes_on_letter_forms, notes_on_odd_characters

    path = user_path(file)
    is_standard_input = file == "-"
    is_table = path.suffix.lower() in TABLE_SUFFIXES
    if not is_table and not is_standard_input:
        is_table = has_json_rows(path) or is_text_table(path)
    if is_table:
        return read_texts(path, options, sentence)
    name = "standard input" if is_standard_input else file
    table_options = options.stored()
    if sentence:
        table_options["sentence"] = sentence
    if table_options:
        option = next(iter(table_options))
        raise BadInput(f"--{option} is for tables, and {name} is a text: leave it out")
    content = decoded(sys.stdin.buffer.read(), name) if is_standard_input else read_text(path)
    if not content.strip():
        raise BadInput(f"{name} has no text: give one sentence or text per line")
    # not `splitlines`, for which some characters within a sentence end a line, too
    lines = content.replace("\r\n", "\n").removesuffix("\n").split("\n")
    line_numbers = range(1, len(lines) + 1)
    for number, line in zip(line_numbers, lines, strict=True):
        problem = markup_problem(line)
        if problem:
            raise BadInput(f"{name}:{number}: the text {problem}")
        if "\0" in line:
            raise BadInput(f"{name}:{number}: the text has a NUL character: remove it")
    table = Table.of(name, {"text": lines}, row_index(line_numbers, "line"))
    notes = (*notes_on_letter_forms(table), *notes_on_odd_characters(table))
    return NamedTexts(lines, [*line_numbers], notes)


def fit_command(
    human: str,
    *,
    surprisal: tuple[str, ...] = (),
    model: tuple[str, ...] = (),
    profile: Literal["wilcox2023", "kuribayashi2024", "michaelov2024"] | None = None,
    showing: Annotated[options.Showing, options.OUTPUT] = options.Showing(),
    residuals: Path | None = None,
    procedure: Annotated[Procedure, options.section("Procedure")] = Procedure(),
    table: Annotated[options.TablesOfWords, options.TABLE] = _TABLE_OF_WORDS,
    reading: Annotated[options.TextOptions, options.RECORD] = options.TextOptions(),
    recording: Annotated[
        options.CommandRecording, options.section("Running")
    ] = options.CommandRecording(),
) -> None:
    """Fits human measures with and without surprisals; prints the result and writes its files.

    Args:
        human: table with a row per word, or per word and reader (csv, tsv, xlsx, JSON lines,
            Parquet); or a run directory, whose items are the rows
        surprisal: columns of the table, or files, with surprisals that were made elsewhere: a table
            with a column surprisal and columns of the human table that tell its rows, or JSON, text
            -> sentences -> numbers (default: the column surprisal, if no model is asked)
        model: models that are asked: Hub ids, local folders, frequency:en or another language,
            ngram:FILE, demo:masked or demo:causal
        profile: published procedure; options below change it
        residuals: write a csv file with a row per model and word: surprisal, response, residual,
            delta
    """
    showing.check()
    if residuals:
        options.check_new_file(residuals, (".csv",), overwrite=showing.overwrite)
    from lmdiag.report.fits import words_as_csv

    # The fields of both records are arguments of `lmdiag.fit`, which takes a value that is equal to
    # its default as not given, and then the value of the profile. Both records have `filter` and
    # `language`, of which the command takes those of the procedure.
    table_and_procedure = {**vars(table), **vars(procedure)}
    result = lmdiag.fit(
        human,
        surprisal=surprisal,
        models=reading.load_in_turn(model) if model else (),  # each is loaded when it is asked
        profile=profile,
        layers=reading.scoring.layers,
        **vars(recording),
        **table_and_procedure,
    )
    if residuals:
        write_user_file(residuals, words_as_csv(result).encode())
        say(f"Saved in {residuals}")
    showing.show(result)
