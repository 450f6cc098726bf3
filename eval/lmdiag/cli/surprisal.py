"""`lmdiag surprisal`: the surprisal of every word of some texts, as a table."""

from __future__ import annotations

import csv
import sys
from pathlib import Path
from typing import Annotated, Literal

from cyclopts import Parameter

import lmdiag
from lmdiag.cli.options import RECORD, Overwrite, TextOptions, check_new_file, warnings_as_lines
from lmdiag.files import decoded, read_text, user_path, write_atomically
from lmdiag.text import visible
from lmdiag.types import BadInput


def main(
    file: Annotated[str, Parameter(allow_leading_hyphen=True)],
    /,
    *,
    model: str,
    output: Path | None = None,
    columns: tuple[Literal["length", "log_frequency"], ...] = (),
    language: str = "en",
    overwrite: Overwrite = False,
    reading: Annotated[TextOptions, RECORD] = TextOptions(),
) -> int:
    """Writes the table.

    Args:
        file: text in UTF-8 with one sentence or text per line; - for standard input
        model: a Hub id, a local folder, demo:masked or demo:causal
        output: file to write; its name must end in .csv, .tsv or .parquet (default: csv to standard
            output)
        columns: further columns: length in characters, log_frequency (log2 of the word's proportion
            by wordfreq)
        language: language of the frequencies
    """
    if output:
        check_new_file(output, (".csv", ".tsv", ".parquet"), overwrite=overwrite)
    if file == "-":
        file = "standard input"
        content = decoded(sys.stdin.buffer.read(), file)
    else:
        content = read_text(user_path(file))
    if not content.strip():
        raise BadInput(f"{file} has no text: give one sentence or text per line")
    # Not `splitlines`, for which some characters within a sentence end a line, too.
    texts = content.removesuffix("\n").replace("\r\n", "\n").split("\n")
    with warnings_as_lines():
        table = lmdiag.load_model(model, **reading.keywords()).surprisals(
            texts, columns=columns, language=language, **vars(reading.batching)
        )
    if output and output.suffix == ".parquet":
        write_atomically(output, table.to_parquet(index=False))
        return 0
    if not output and sys.stdout.isatty():  # a terminal gets no control characters
        table["word"] = table["word"].map(visible)
    # no word has a tab, and programs that read tab-separated words take quotes for characters
    tabs = {"sep": "\t", "quoting": csv.QUOTE_NONE} if output and output.suffix == ".tsv" else {}
    text = table.to_csv(index=False, float_format="%.6f", lineterminator="\n", **tabs)
    if output:
        write_atomically(output, text.encode())
    else:
        sys.stdout.write(text)
    return 0
