"""`lmdiag surprisal`: the surprisal of every word of some texts, as a table."""

from __future__ import annotations

import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal

from cyclopts import Parameter

from lmdiag.cli.exits import say
from lmdiag.cli.options import RECORD, Batching, check_new_file, section
from lmdiag.models.loading.options import Loading, LoadOptions, Serving
from lmdiag.protocol import Conventions, without_effect
from lmdiag.types import BadInput

if TYPE_CHECKING:
    import pyarrow as pa

_SUFFIXES = (".csv", ".tsv", ".parquet")


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """Texts, and the model that reads them."""

    file: Annotated[str, Parameter(allow_leading_hyphen=True)] = field(kw_only=False)
    """text in UTF-8 with one sentence or text per line; - for standard input"""
    model: str
    """a Hub id, a local folder, demo:masked or demo:causal"""
    revision: str | None = None
    """branch, tag or commit of the model"""
    output: Path | None = None
    """file to write; its name must end in .csv, .tsv or .parquet (default: csv to standard
    output)"""
    columns: tuple[Literal["length", "log_frequency"], ...] = ()
    """further columns: length in characters, log_frequency (log2 of the word's proportion by
    wordfreq)"""
    language: str = "en"
    """language of the frequencies"""
    overwrite: bool = False
    """replace existing files"""
    conventions: Annotated[Conventions, section("Scoring")] = Conventions()
    loading: Annotated[Loading, section("Loading the model")] = Loading()
    serving: Annotated[Serving, section("A model behind a server")] = Serving()
    batching: Annotated[Batching, section("Running")] = Batching()


def main(options: Options) -> int:
    """Writes the table.

    Raises:
        BadInput: the texts, the model or the name of the output file cannot be used.
    """
    if options.output:
        check_new_file(options.output, _SUFFIXES, overwrite=options.overwrite)
    texts = _texts(options.file)
    records = options.conventions, options.loading, options.serving
    chosen: dict[str, Any] = {name: value for part in records for name, value in vars(part).items()}
    load_options = LoadOptions(revision=options.revision, **chosen)
    from lmdiag import models
    from lmdiag.controls import text_warning
    from lmdiag.runs.surprisals import to_arrow, word_surprisals
    from lmdiag.text import visible

    model = models.load(options.model, load_options)
    for line in without_effect(load_options, model.info, "sentence").values():
        say(f"lmdiag: {line}")
    label = None if options.batching.quiet else options.model
    rows = word_surprisals(model, texts, batch_size=options.batching.batch_size, label=label)
    lines = {f"line {number}": text for number, text in enumerate(texts, start=1)}
    if warning := text_warning(model, lines, "text"):
        say(f"lmdiag: warning: {warning}")
    if not options.output and sys.stdout.isatty():  # a terminal gets no control characters
        rows = [row._replace(word=visible(row.word)) for row in rows]
    table = to_arrow(rows, options.columns, options.language)
    if options.output:
        _write(options.output, table)
    else:
        sys.stdout.write(_as_text(table, ","))
    return 0


def _texts(file: str) -> list[str]:
    """Returns the lines of a file or of standard input; at least one of them has a word."""
    from lmdiag.files import decoded, read_text, user_path

    if file == "-":
        file = "standard input"
        content = decoded(sys.stdin.buffer.read(), file)
    else:
        content = read_text(user_path(file))
    if not content.strip():
        raise BadInput(f"{file} has no text: give one sentence or text per line")
    # Not `splitlines`, for which some characters within a sentence end a line, too.
    return content.removesuffix("\n").replace("\r\n", "\n").split("\n")


def _write(file: Path, table: pa.Table) -> None:
    """Writes the table completely or not at all."""
    from lmdiag.files import replacing

    with replacing(file) as out:
        if file.suffix == ".parquet":
            from pyarrow.parquet import write_table

            write_table(table, out)
        else:
            out.write(_as_text(table, "\t" if file.suffix == ".tsv" else ",").encode())


def _as_text(table: pa.Table, delimiter: str) -> str:
    """Returns the table as csv, numbers with six decimals; words are written as they are."""
    text: str = table.to_pandas().to_csv(
        sep=delimiter, index=False, float_format="%.6f", lineterminator="\n"
    )
    return text
