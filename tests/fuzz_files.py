"""Valid files of rows, predictions and runs, and what reads them, for the fuzz test."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console
from runs import make_run

from lmdiag import evaluation, results, stimuli
from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.protocol import Protocol
from lmdiag.questions import Setting, collect
from lmdiag.report.formats import format_names, render_tables
from lmdiag.report.formats.terminal import print_results
from lmdiag.report.html import render
from lmdiag.results import predictions
from lmdiag.results.external import read_external
from lmdiag.runs.journal import Journal
from lmdiag.types import Answer, WordScore


@dataclass(frozen=True)
class Reader:
    """A file that is changed, what reads it, from which path, and how often it is drawn."""

    file: str
    read: Callable[[Path], object]
    path: str
    weight: int = 2


# ---- valid files ---------------------------------------------------------------------------------

ROWS: list[dict[str, Any]] = [
    {
        "id": f"{item}-{kind}", "item": str(item), "condition": kind, "context": f"The {item} ate",
        "right_context": "today" if item else "", "target": word, "good": kind == "good",
        "contrast": str(item), "expected": ["bread", "it"] if kind == "good" else [],
        "level": "high" if item % 2 else "low", "target_cloze": 0.25 * item, "count": item,
        "expected_cloze": 0.5,
    }
    for item in range(3)
    for kind, word in (("good", "bread"), ("bad", "stone"))
]  # fmt: skip
PREDICTIONS = [
    {"id": row["id"], "log_prob": -1.0 - i, "top_words": ["bread", "stone"], "rank": i + 1}
    for i, row in enumerate(ROWS)
]
CARD = """---
license: mit
configs:
- config_name: own
  data_files:
  - split: test
    path: own/test-*.parquet
- config_name: verbs
  data_files: verbs/test.parquet
tags: [a, b]
---
# A data set
"""
BEGUN = {"model": "x", "commit": None, "signature": "y"}


def make_files(folder: Path) -> None:
    """Writes one valid file, or folder of files, of each kind."""
    for suffix, delimiter in ((".csv", ","), (".tsv", "\t")):
        rows = [["|".join(v) if isinstance(v, list) else str(v) for v in r.values()] for r in ROWS]
        lines = map(delimiter.join, [list(ROWS[0]), *rows])
        (folder / f"own{suffix}").write_text("\n".join(lines) + "\n")
    for name, records in (("own", ROWS), ("role88", ROWS), ("said", PREDICTIONS)):
        lines = (json.dumps(record) + "\n" for record in records)
        (folder / f"{name}.jsonl").write_text("".join(lines))
        pq.write_table(pa.Table.from_pylist(records), folder / f"{name}.parquet")
    (folder / "verbs.csv").write_text("singular,plural\nis,are\nwalks,walk\n")
    for name in ("data/own", "data/verbs", "begun"):
        (folder / name).mkdir(parents=True)
    (folder / "data/README.md").write_text(CARD)
    (folder / "data/provenance.json").write_text(
        '{"configs": {"own": {"commit": "abc", "files": [1]}}}'
    )
    shutil.copy(folder / "own.parquet", folder / "data/own/test-0.parquet")
    verbs = pa.table({"singular": ["is"], "plural": ["are"]})
    pq.write_table(verbs, folder / "data/verbs/test.parquet")
    protocol = Protocol(tasks=("own",))
    make_run(folder / "run", folder / "own.jsonl", protocol)
    with Journal(folder / "journal") as journal:
        for i in range(4):
            journal.append({i: Answer({"bird": WordScore(-1.0, 1, 1)}, ("bird",), (-1.0,))})
    (journal_file,) = (folder / "journal").iterdir()
    journal_file.rename(folder / "journal/0.jsonl")
    contexts = {(f"The {i}", "", "singular"): (0.5,) * len(AGREEMENT_LAYOUT) for i in range(3)}
    predictions.write_agreement(folder / "agreement.parquet", contexts)
    (folder / "begun/run.json").write_text(json.dumps(BEGUN))


# ---- readers -------------------------------------------------------------------------------------


def read_stimuli(data: Path) -> None:
    collect([Setting(stimuli.load(str(data), "own"))], kind="masked", cased=True)


def read_predictions(file: Path) -> None:
    rows = stimuli.load(str(file.parent / "own.jsonl"), "own")
    parts = read_external(file, rows).runs
    evaluation.evaluate(rows, parts, Protocol(tasks=("own",)), cased=True, kind="masked")


def read_run(folder: Path) -> None:
    """Reads a run and writes its tables in all formats, the page only sometimes (it is slow)."""
    run = results.load_run(folder)
    n_tasks = len(run.predictions)
    print_results(run.results, Console(file=StringIO(), width=100))
    for name in format_names():
        render_tables(name, [run.results])
    if n_tasks and (folder / "results.json").stat().st_size % 16 == 0:
        render([run])


def open_directory(folder: Path) -> None:
    directory = results.RunDirectory(folder)
    try:
        directory.open(BEGUN, overwrite=False)
    finally:
        directory.close()


READERS = [
    Reader("own.csv", read_stimuli, "own.csv"),
    Reader("own.tsv", read_stimuli, "own.tsv"),
    Reader("own.jsonl", read_stimuli, "own.jsonl"),
    Reader("own.parquet", read_stimuli, "own.parquet", 4),
    Reader("data/README.md", read_stimuli, "data"),
    Reader("data/provenance.json", read_stimuli, "data", 1),
    Reader("data/own/test-0.parquet", read_stimuli, "data", 1),
    Reader("data/verbs/test.parquet", lambda path: stimuli.load_verbs(str(path)), "data"),
    Reader("verbs.csv", lambda path: stimuli.load_verbs(str(path)), "verbs.csv"),
    Reader("said.jsonl", read_predictions, "said.jsonl", 3),
    Reader("said.parquet", read_predictions, "said.parquet", 3),
    Reader("run/results.json", read_run, "run", 4),
    Reader("run/predictions.parquet", read_run, "run", 2),
    Reader("agreement.parquet", predictions.read_agreement, "agreement.parquet", 1),
    Reader("begun/run.json", open_directory, "begun", 1),
    Reader("journal/0.jsonl", lambda path: Journal(path).read(), "journal", 1),
]
