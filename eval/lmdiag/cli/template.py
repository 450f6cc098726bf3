"""`lmdiag template`: writes a starter file for your own diagnostic."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from lmdiag.cli.options import RECORD, Overwrite, check_new_file
from lmdiag.diagnostics import CORE
from lmdiag.files import read_json_lines, read_text, resource_path
from lmdiag.types import BadInput


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
    """Writes the rows of `cards/starter.*.jsonl` and prints the text beside them."""
    file, is_design = options.file, bool(options.design or options.regions)
    check_new_file(file, (".csv", ".tsv", ".jsonl"), overwrite=options.overwrite)
    if is_design and options.minimal:
        raise BadInput("--minimal has no conditions: leave it out, or --design and --regions")
    name = "design" if is_design else "rows"
    path = resource_path("cards", f"starter.{name}.jsonl")
    rows = [row for _, row in read_json_lines(path)]
    if options.design == "2":
        singular = [row for row in rows if row["subject"] == "singular"]
        rows = [{k: v for k, v in row.items() if k != "subject"} for row in singular]
    if is_design and not options.regions:
        rows = [_with_blank(row) for row in rows]
    smallest = (
        [] if is_design else [{c.name: row[c.name] for c in CORE if c.required} for row in rows]
    )
    texts = "context, target  the text to the left of the word, and the word that is scored"
    if options.regions:
        texts = "region_1, region_2, ...  the sentence in parts; a part may be empty"
    advice = read_text(path.with_suffix(".txt")).format(
        file=file,
        separator="" if file.suffix == ".jsonl" else ", separated by |",
        smallest="\n  ".join(_content(file.suffix, smallest[:2]).splitlines()[:2]),
        names=", ".join(name for name in ("subject", "between") if name in rows[0]),
        texts=texts,
        region=" --region 3" if options.regions else "",
    )
    file.write_text(_content(file.suffix, smallest if options.minimal else rows), "utf-8")
    print(advice, end="")
    return 0


def _with_blank(row: Mapping[str, str]) -> dict[str, str]:
    """A row with regions as a row with a blank in place of the third."""
    start, between, verb, ending = (row[f"region_{number}"] for number in range(1, 5))
    kept = {name: value for name, value in row.items() if not name.startswith("region_")}
    return kept | {"context": f"{start} {between}", "right_context": ending, "target": verb}


def _content(suffix: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The content of a file with these rows, as `lmdiag.stimuli.columns` reads them."""
    if suffix == ".jsonl":
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    out = io.StringIO()
    writer = csv.writer(out, delimiter="\t" if suffix == ".tsv" else ",", lineterminator="\n")
    writer.writerow(rows[0] if rows else ())
    for row in rows:
        texts = ("|".join(cell) if isinstance(cell, list) else str(cell) for cell in row.values())
        writer.writerow(text.lower() if text in ("True", "False") else text for text in texts)
    return out.getvalue()
