"""`lmdiag surprisal`: the surprisal of every word of some texts, as a table."""

from __future__ import annotations

import csv
import sys
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

from lmdiag.cli.options import RECORD, Overwrite, TextOptions, check_new_file, warnings_as_lines
from lmdiag.types import BadInput


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """Texts, and the model that reads them."""

    file: Annotated[str, Parameter(allow_leading_hyphen=True)] = field(kw_only=False)
    """text in UTF-8 with one sentence or text per line; - for standard input"""
    model: str
    """a Hub id, a local folder, demo:masked or demo:causal"""
    output: Path | None = None
    """file to write; its name must end in .csv, .tsv or .parquet (default: csv to standard
    output)"""
    columns: tuple[Literal["length", "log_frequency"], ...] = ()
    """further columns: length in characters, log_frequency (log2 of the word's proportion by
    wordfreq)"""
    language: str = "en"
    """language of the frequencies"""
    overwrite: Overwrite = False
    reading: Annotated[TextOptions, RECORD] = TextOptions()


def main(options: Options) -> int:
    """Writes the table."""
    out = options.output
    if out:
        check_new_file(out, (".csv", ".tsv", ".parquet"), overwrite=options.overwrite)
    texts = _texts(options.file)
    from lmdiag.api import load_model
    from lmdiag.files import write_atomically
    from lmdiag.text import visible

    with warnings_as_lines():
        table = load_model(options.model, **options.reading.keywords()).surprisals(
            texts,
            columns=options.columns,
            language=options.language,
            **vars(options.reading.batching),
        )
    if out and out.suffix == ".parquet":
        write_atomically(out, table.to_parquet(index=False))
        return 0
    if not out and sys.stdout.isatty():  # a terminal gets no control characters
        table["word"] = table["word"].map(visible)
    # no word has a tab, and programs that read tab-separated words take quotes for characters
    tabs = {"sep": "\t", "quoting": csv.QUOTE_NONE} if out and out.suffix == ".tsv" else {}
    text = table.to_csv(index=False, float_format="%.6f", lineterminator="\n", **tabs)
    if out:
        write_atomically(out, text.encode())
    else:
        sys.stdout.write(text)
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
