"""`lmdiag build` and `lmdiag template`: the data set, and a starter file for your own rows."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from lmdiag.cli import options
from lmdiag.diagnostics import CORE
from lmdiag.files import read_json_lines, read_text, resource_path
from lmdiag.stimuli.building import script
from lmdiag.types import BadInput


def build_command(
    out: Path = Path("lmdiag"),
    /,
    *,
    source: str = "upstream",
    configs: tuple[str, ...] | None = None,
) -> None:
    """Builds the data set by its own loading scripts, and prints the rows of each config.

    Args:
        out: directory to write
        source: upstream: download the pinned commits; demo: the bundled sentences; DIR: a directory
            with the tree of lm-diagnostics, of refining-tse, or with both
        configs: configs to build (default: all that the source has)
    """
    for name, rows in script("directory").build(out, source, configs).items():
        print(f"{name:<10} {rows:>8,} rows")
    print(f"written: {out}")


def template_command(
    file: Path = Path("my_diagnostic.csv"),
    /,
    *,
    minimal: bool = False,
    design: Literal["2", "2x2"] | None = None,
    regions: bool = False,
    overwrite: options.Overwrite = False,
) -> None:
    """Writes the rows of `cards/starter.*.jsonl` and prints the text beside them.

    Args:
        file: file to write; its name must end in .csv, .tsv or .jsonl
        minimal: write the columns context and target only
        design: write items in the conditions of a design, with one or two factors
        regions: write sentences with regions, in the conditions of a design
    """
    is_design = bool(design or regions)
    options.check_new_file(file, (".csv", ".tsv", ".jsonl"), overwrite=overwrite)
    if is_design and minimal:
        raise BadInput("--minimal has no conditions: leave it out, or --design and --regions")
    path = resource_path("cards", f"starter.{'design' if is_design else 'rows'}.jsonl")
    rows = [row for _, row in read_json_lines(path)]
    if design == "2":
        singular = [row for row in rows if row["subject"] == "singular"]
        rows = [{k: v for k, v in row.items() if k != "subject"} for row in singular]
    smallest = []
    if not is_design:
        smallest = [{c.name: row[c.name] for c in CORE if c.required} for row in rows]
    texts = "context, target  the text to the left of the word, and the word that is scored"
    if regions:
        texts = "region_1, region_2, ...  the sentence in parts; a part may be empty"
    elif is_design:  # a blank in place of the third region
        for row in rows:
            start, between, verb, ending = (row.pop(f"region_{n}") for n in range(1, 5))
            row |= {"context": f"{start} {between}", "right_context": ending, "target": verb}
    advice = read_text(path.with_suffix(".txt")).format(
        file=file,
        separator="" if file.suffix == ".jsonl" else ", separated by |",
        smallest="\n  ".join(_content(file.suffix, smallest[:2]).splitlines()[:2]),
        names=", ".join(name for name in ("subject", "between") if name in rows[0]),
        texts=texts,
        region=" --region 3" if regions else "",
    )
    file.write_text(_content(file.suffix, smallest if minimal else rows), "utf-8")
    print(advice, end="")


def _content(suffix: str, rows: Sequence[Mapping[str, Any]]) -> str:
    """The content of a file with these rows, as `lmdiag.stimuli.columns` reads them."""
    if suffix == ".jsonl":
        return "".join(f"{json.dumps(row, ensure_ascii=False)}\n" for row in rows)
    from pandas import DataFrame

    def text(cell: Any) -> str:
        joined = "|".join(cell) if isinstance(cell, list) else str(cell)
        return joined.lower() if isinstance(cell, bool) else joined

    table = DataFrame([{name: text(cell) for name, cell in row.items()} for row in rows])
    separator = "\t" if suffix == ".tsv" else ","
    return str(table.to_csv(sep=separator, index=False, lineterminator="\n"))
