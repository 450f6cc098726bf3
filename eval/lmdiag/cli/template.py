"""`lmdiag template`: writes a starter file for your own diagnostic."""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path
from typing import Any

from lmdiag.schema import CORE_COLUMNS, BadInput

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
Written: {file}. Replace its rows by your own:
  id             unique for each row          item       what your rows belong to
  condition      a name of your own           target     the word that is scored in this row
  context        left of the blank, without a blank at the end
  right_context  right of the blank; empty where the blank ends the sentence
  good, contrast a contrast has exactly one good row (true) and one or more bad ones (false)
  expected       words that count as correct for accuracy@k{separator}; empty for none
Further columns are kept. Then: lmdiag run --model MODEL --data {file}"""


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
    write(file)
    separator = "" if file.suffix == ".jsonl" else ", separated by |"
    print(ADVICE.format(file=file, separator=separator))
    return 0


def write(file: Path) -> None:
    """Writes the rows in the format that the file's suffix names."""
    with file.open("w", encoding="utf-8", newline="") as out:
        if file.suffix == ".jsonl":
            out.writelines(json.dumps(row, ensure_ascii=False) + "\n" for row in ROWS)
            return
        delimiter = "\t" if file.suffix == ".tsv" else ","
        writer = csv.writer(out, delimiter=delimiter, lineterminator="\n")
        writer.writerow(CORE_COLUMNS)
        writer.writerows([_field(row[name]) for name in CORE_COLUMNS] for row in ROWS)


def _field(value: Any) -> str:
    """A value as csv files have it: see `lmdiag.stimuli.tables`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "|".join(value) if isinstance(value, list) else str(value)
