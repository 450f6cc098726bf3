"""`lmdiag template`: writes a starter file for your own diagnostic."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from lmdiag.cli.options import RECORD, check_new_file
from lmdiag.diagnostics import CORE_COLUMNS, NEEDED_COLUMNS

_ROWS: tuple[tuple[Any, ...], ...] = (
    ("1-typical", "1", "typical", "She put salt and", "on her egg.", "pepper", True, "1",
     ["pepper"]),
    ("1-odd", "1", "odd", "She put salt and", "on her egg.", "paper", False, "1", []),
    ("2-typical", "2", "typical", "The dog chased the cat up a", "", "tree", True, "2",
     ["tree", "wall"]),
    ("2-odd", "2", "odd", "The dog chased the cat up a", "", "cloud", False, "2", []),
    ("2-odder", "2", "odd", "The dog chased the cat up a", "", "spoon", False, "2", []),
)  # fmt: skip
"""Two items in the core columns: one with text right of the blank, one with two expected words."""

_SUFFIXES = (".csv", ".tsv", ".jsonl")

_ADVICE = """\
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


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """The file to write."""

    file: Path = field(default=Path("my_diagnostic.csv"), kw_only=False)
    """file to write; its name must end in .csv, .tsv or .jsonl"""
    minimal: bool = False
    """write the columns context and target only"""
    overwrite: bool = False
    """replace existing files"""


def main(options: Options = Options()) -> int:
    """Writes the file and says what to do with it.

    Raises:
        BadInput: the file exists, or has another suffix.
    """
    file = options.file
    check_new_file(file, _SUFFIXES, overwrite=options.overwrite)
    lines = _lines(file.suffix, NEEDED_COLUMNS if options.minimal else CORE_COLUMNS)
    file.write_text("\n".join(lines) + "\n", "utf-8")
    separator = "" if file.suffix == ".jsonl" else ", separated by |"
    smallest = "\n  ".join(_lines(file.suffix, NEEDED_COLUMNS)[:2])
    print(_ADVICE.format(file=file, separator=separator, smallest=smallest))
    return 0


def _lines(suffix: str, columns: Sequence[str]) -> list[str]:
    """Returns the lines of a file with these columns."""
    whole = [dict(zip(CORE_COLUMNS, row, strict=True)) for row in _ROWS]
    rows = [{name: row[name] for name in columns} for row in whole]
    if suffix == ".jsonl":
        return [json.dumps(row, ensure_ascii=False) for row in rows]
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
    writer.writerow(columns)
    writer.writerows([_field(value) for value in row.values()] for row in rows)
    return out.getvalue().splitlines()


def _field(value: Any) -> str:
    """A value as csv files have it: see `lmdiag.stimuli.columns`."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "|".join(value) if isinstance(value, list) else str(value)
