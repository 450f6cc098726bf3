"""`lmdiag template`: writes a starter file for your own diagnostic."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any, Literal

from lmdiag.cli.options import RECORD, Overwrite, check_new_file
from lmdiag.diagnostics import CORE
from lmdiag.types import BadInput

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

_DESIGN_ITEMS = (
    ("key", "keys", "to the cabinet", "to the cabinets", "rusty."),
    ("label", "labels", "on the bottle", "on the bottles", "old."),
    ("road", "roads", "to the village", "to the villages", "closed."),
)
"""Of each item of a design: the subject and what comes between it and the verb, both in singular
and plural, and the end."""

_DESIGN_ADVICE = """\
Written: {file}. Replace its rows by your own.
  item       what is repeated over the conditions: every item has a row in each of them
  {names}
             the conditions: any columns with 2 to 6 values that differ within items
  {texts}
Further columns that differ between items only are covariates.
Then: lmdiag run --model MODEL --data {file}
      lmdiag analyse RUN{region}"""


@RECORD
@dataclass(frozen=True, kw_only=True)
class Options:
    """The file to write."""

    file: Path = field(default=Path("my_diagnostic.csv"), kw_only=False)
    """file to write; its name must end in .csv, .tsv or .jsonl"""
    minimal: bool = False
    """write the columns context and target only"""
    design: Literal["2", "2x2"] | None = None
    """write items in the conditions of a design, with one or two factors"""
    regions: bool = False
    """write sentences with regions, in the conditions of a design"""
    overwrite: Overwrite = False


def main(options: Options = Options()) -> int:
    """Writes the file and says what to do with it."""
    file, suffix, is_jsonl = options.file, options.file.suffix, options.file.suffix == ".jsonl"
    check_new_file(file, (".csv", ".tsv", ".jsonl"), overwrite=options.overwrite)
    if options.design or options.regions:
        if options.minimal:
            raise BadInput("--minimal has no conditions: leave it out, or --design and --regions")
        rows = [*_design_rows(options.design or "2x2", options.regions)]
        names = ", ".join(name for name in ("subject", "between") if name in rows[0])
        texts = "context, target  the text to the left of the word, and the word that is scored"
        if options.regions:
            texts = "region_1, region_2, ...  the sentence in parts; a part may be empty"
        region = " --region 3" if options.regions else ""
        advice = _DESIGN_ADVICE.format(file=file, names=names, texts=texts, region=region)
    else:
        rows = [dict(zip((column.name for column in CORE), row, strict=True)) for row in _ROWS]
        smallest = [{c.name: row[c.name] for c in CORE if c.required} for row in rows]
        first, second, *_ = _content(suffix, smallest).splitlines()
        separator = "" if is_jsonl else ", separated by |"
        advice = _ADVICE.format(file=file, separator=separator, smallest=f"{first}\n  {second}")
        rows = smallest if options.minimal else rows
    file.write_text(_content(suffix, rows), "utf-8")
    print(advice)
    return 0


def _design_rows(design: str, regions: bool) -> Iterator[dict[str, Any]]:
    """Yields the rows of an example: agreement of the verb, with a noun between it and its subject.

    Factors: whether the noun has the number of the subject; for 2x2, the number of the subject.
    """
    numbers = ("singular", "plural") if design == "2x2" else ("singular",)
    for item, (*nouns, ending) in enumerate(_DESIGN_ITEMS, start=1):
        for number, between in product(numbers, ("same", "different")):
            is_plural = number == "plural"
            start, verb = f"The {nouns[is_plural]}", "are" if is_plural else "is"
            middle = nouns[2 + (is_plural == (between == "same"))]
            factors = {"subject": number} if len(numbers) == 2 else {}
            parts = {f"region_{i}": part for i, part in enumerate((start, middle, verb, ending), 1)}
            blank = {"context": f"{start} {middle}", "right_context": ending, "target": verb}
            yield {"item": str(item), **factors, "between": between} | (parts if regions else blank)


def _content(suffix: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """Returns the content of a file with these rows, as `lmdiag.stimuli.columns` reads them."""
    if suffix == ".jsonl":
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    cells = [
        [
            "|".join(value) if isinstance(value, list)
            else str(value).lower() if isinstance(value, bool) else value
            for value in row.values()
        ]
        for row in rows
    ]  # fmt: skip
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
    writer.writerows([[*rows[0]], *cells])
    return out.getvalue()
