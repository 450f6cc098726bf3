"""`lmdiag template`: writes a starter file for your own diagnostic."""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from lmdiag.diagnostics import CORE_COLUMNS, NEEDED_COLUMNS
from lmdiag.schema import BadInput

ROWS: tuple[dict[str, Any], ...] = (
    {
        "id": "1-typical", "item": "1", "condition": "typical",
        "context": "She put salt and", "right_context": "on her egg.",
        "target": "pepper", "good": True, "contrast": "1", "expected": ["pepper"],
    },
    {
        "id": "1-odd", "item": "1", "condition": "odd",
        "context": "She put salt and", "right_context": "on her egg.",
        "target": "paper", "good": False, "contrast": "1", "expected": [],
    },
    {
        "id": "2-typical", "item": "2", "condition": "typical",
        "context": "The dog chased the cat up a", "right_context": "",
        "target": "tree", "good": True, "contrast": "2", "expected": ["tree", "wall"],
    },
    {
        "id": "2-odd", "item": "2", "condition": "odd",
        "context": "The dog chased the cat up a", "right_context": "",
        "target": "cloud", "good": False, "contrast": "2", "expected": [],
    },
    {
        "id": "2-odder", "item": "2", "condition": "odd",
        "context": "The dog chased the cat up a", "right_context": "",
        "target": "spoon", "good": False, "contrast": "2", "expected": [],
    },
)  # fmt: skip
"""Two items: one with text right of the blank, one with two expected words and two bad rows."""

SUFFIXES = (".csv", ".tsv", ".jsonl")

ADVICE = """\
Written: {file}. Replace its rows by your own. Two columns are needed:
  context        text to the left of the blank, without a space at the end
  target         the word that is scored in this row
The others may be left out:
  id             unique for each row; made of the file's name and the row's number if absent
  item           what your rows belong to     condition  a name of your own
  right_context  text to the right of the blank; empty where the blank ends the sentence
  good, contrast a contrast has exactly one good row (true) and one or more bad ones (false);
                 without both columns nothing is compared, and each word gets its surprisal
  expected       words that count as correct for accuracy@k{separator}; empty for none
Every further column with a few levels is a break-down, whatever its name.
The smallest file (lmdiag template --minimal) has two columns:
  {smallest}
Then: lmdiag run --model MODEL --data {file}"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declares the arguments."""
    parser.add_argument(
        "file",
        nargs="?",
        default="my_diagnostic.csv",
        type=Path,
        metavar="FILE",
        help=f"file to write (default: %(default)s); its name must end in {', '.join(SUFFIXES)}",
    )
    parser.add_argument(
        "--minimal", action="store_true", help="write the columns context and target only"
    )
    parser.add_argument("--overwrite", action="store_true", help="replace an existing file")


def main(args: argparse.Namespace) -> int:
    """Writes the file and says what to do with it.

    Raises:
        BadInput: the file exists, or has another suffix.
    """
    file: Path = args.file
    if file.suffix not in SUFFIXES:
        raise BadInput(f"{file}: the file name must end in {', '.join(SUFFIXES)}")
    if file.exists() and not args.overwrite:
        raise BadInput(f"{file} exists already: choose another name, or add --overwrite")
    if not file.parent.is_dir():
        raise BadInput(f"no directory {file.parent}: make it first")
    write(file, NEEDED_COLUMNS if args.minimal else CORE_COLUMNS)
    separator = "" if file.suffix == ".jsonl" else ", separated by |"
    smallest = "\n  ".join(_lines(file.suffix, NEEDED_COLUMNS)[:2])
    print(ADVICE.format(file=file, separator=separator, smallest=smallest))
    return 0


def write(file: Path, columns: Sequence[str] = CORE_COLUMNS) -> None:
    """Writes some columns of the rows in the format that the file's suffix names."""
    file.write_text("\n".join(_lines(file.suffix, columns)) + "\n", "utf-8")


def _lines(suffix: str, columns: Sequence[str]) -> list[str]:
    """The lines of a file with these columns."""
    rows = [{name: row[name] for name in columns} for row in ROWS]
    if suffix == ".jsonl":
        return [json.dumps(row, ensure_ascii=False) for row in rows]
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(value) for value in row.values()] for row in rows)
    return out.getvalue().splitlines()


def _field(value: Any) -> str:
    """A value as csv files have it: see `lmdiag.stimuli.values`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "|".join(value) if isinstance(value, list) else str(value)
