"""`lmdiag surprisal`: the surprisal of every word of some texts, as a table."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from lmdiag.cli.exits import say
from lmdiag.cli.parser import (
    add_asking,
    add_conventions,
    add_loading,
    add_overwrite,
    add_server,
    check_new_file,
    fields_of,
)
from lmdiag.models.loading.options import LoadOptions
from lmdiag.schema import BadInput

if TYPE_CHECKING:
    from lmdiag.runs.surprisals import WordSurprisal

_SUFFIXES = (".csv", ".tsv", ".parquet")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "file", metavar="FILE",
        help="text in UTF-8 with one sentence or text per line; - for standard input",
    )  # fmt: skip
    parser.add_argument(
        "--model", required=True, metavar="M",
        help="a Hub id, a local folder, demo:masked or demo:causal",
    )  # fmt: skip
    parser.add_argument("--revision", metavar="R", help="branch, tag or commit of the model")
    parser.add_argument(
        "--output", type=Path, metavar="FILE",
        help=f"file to write; its name must end in {', '.join(_SUFFIXES)} (default: csv to "
        "standard output)",
    )  # fmt: skip
    add_overwrite(parser)
    add_conventions(parser.add_argument_group("scoring"))
    add_loading(parser.add_argument_group("loading the model"))
    add_server(parser.add_argument_group("a model behind a server"))
    add_asking(parser.add_argument_group("running"))


def main(args: argparse.Namespace) -> int:
    """Writes the table.

    Raises:
        BadInput: the texts, the model or the name of the output file cannot be used.
    """
    if args.output:
        check_new_file(args.output, _SUFFIXES, overwrite=args.overwrite)
    texts = _texts(args.file)
    from lmdiag import models
    from lmdiag.controls import text_warning
    from lmdiag.runs.surprisals import word_surprisals

    model = models.load(args.model, LoadOptions(**fields_of(LoadOptions, args)))
    label = None if args.quiet else args.model
    rows = word_surprisals(model, texts, batch_size=args.batch_size, label=label)
    lines = {f"line {number}": text for number, text in enumerate(texts, start=1)}
    if warning := text_warning(model, lines, "text"):
        say(f"lmdiag: warning: {warning}")
    if args.output:
        _write(args.output, rows)
    else:
        _print(rows)
    return 0


def _texts(file: str) -> list[str]:
    """Returns the lines of a file or of standard input; at least one of them has a word."""
    from lmdiag.reading import decoded, read_text, user_path

    if file == "-":
        file = "standard input"
        content = decoded(sys.stdin.buffer.read(), file)
    else:
        content = read_text(user_path(file))
    if not content.strip():
        raise BadInput(f"{file} has no text: give one sentence or text per line")
    # Not `splitlines`, for which some characters within a sentence end a line, too.
    return content.removesuffix("\n").replace("\r\n", "\n").split("\n")


def _write(file: Path, rows: list[WordSurprisal]) -> None:
    """Writes the table completely or not at all."""
    from lmdiag.runs.surprisals import to_arrow
    from lmdiag.writing import replacing

    with replacing(file) as out:
        if file.suffix == ".parquet":
            from pyarrow.parquet import write_table

            write_table(to_arrow(rows), out)
        else:
            out.write(_as_text(rows, "\t" if file.suffix == ".tsv" else ",").encode())


def _print(rows: list[WordSurprisal]) -> None:
    """Prints the table as csv; a terminal gets no control characters."""
    from lmdiag.text import visible

    if sys.stdout.isatty():
        rows = [row._replace(word=visible(row.word)) for row in rows]
    sys.stdout.write(_as_text(rows, ","))


def _as_text(rows: list[WordSurprisal], delimiter: str) -> str:
    """Returns the table as csv, surprisals with six decimals.

    Words are written as they are, since the table is data for other programs.
    """
    from lmdiag.runs.surprisals import WordSurprisal

    out = io.StringIO()
    writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
    writer.writerow(WordSurprisal._fields)
    for text, word, start, bits, n_tokens in rows:
        writer.writerow([text, word, start, "" if bits is None else f"{bits:.6f}", n_tokens])
    return out.getvalue()
