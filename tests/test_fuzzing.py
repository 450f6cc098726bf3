"""Changes valid files at random and reads them: the outcome is a result or `BadInput`, soon.

A case is a number that decides how a file is changed, so that a case that fails can be repeated.
The cases are the same at every run, so that these tests do not decide by chance.
"""

from __future__ import annotations

import json
import random
import shutil
import signal
import time
from collections.abc import Callable
from io import StringIO
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from changes import change
from hub.boards import request, write_request
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pairs_of_sentences import write_set
from report.forms import write_pairs, write_sentences, write_suites
from rich.console import Console
from runs import make_run

from lmdiag import evaluation, results, stimuli
from lmdiag.leaderboard.entries import read_requests
from lmdiag.protocol import Protocol
from lmdiag.questions import Setting, collect
from lmdiag.report.formats import render_tables
from lmdiag.report.html import render
from lmdiag.report.terminal import print_results
from lmdiag.results.predictions import read_external
from lmdiag.runs.journal import Journal
from lmdiag.types import Answer, BadInput, SentenceAnswer, WordScore, WordSpan

SECONDS = 5.0
"""Processor time that a case may take."""
LONGEST = 3000
"""Characters that a message may have; the longest texts put into files have 100,000."""
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
REQUEST = request("org/model")


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory, demo_dir: Path) -> Path:
    """A folder with one valid file, or folder of files, of each kind."""
    folder = tmp_path_factory.mktemp("valid")
    for name in ("data/own", "data/verbs", "begun", "journal"):
        (folder / name).mkdir(parents=True)
    frame = pd.DataFrame(ROWS).assign(expected=["|".join(row["expected"]) for row in ROWS])
    frame.to_csv(folder / "own.csv", index=False)
    for name, records in (("own", ROWS), ("data/own/test-0", ROWS), ("predicted", PREDICTIONS)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
        pq.write_table(pa.Table.from_pylist(records), folder / f"{name}.parquet")
    (folder / "verbs.csv").write_text("singular,plural\nis,are\nwalks,walk\n")
    (folder / "data/README.md").write_text(CARD)
    provenance = {"configs": {"own": {"commit": "abc", "files": [1]}}}
    (folder / "data/provenance.json").write_text(json.dumps(provenance))
    verbs = pa.table({"singular": ["is"], "plural": ["are"]})
    pq.write_table(verbs, folder / "data/verbs/test.parquet")
    (folder / "begun/run.json").write_text(json.dumps(BEGUN))
    blank = Answer({"bird": WordScore(-1.0, 1, 1)}, ("bird",), (-1.0,))
    spans = SentenceAnswer((WordSpan(0, 3, -1.5, 1), WordSpan(4, 9, None, 0)))
    with Journal(folder / "journal") as journal:
        for i in range(4):
            journal.append({f"question {i}": spans if i % 2 else blank})
    next((folder / "journal").iterdir()).rename(folder / "journal/0.jsonl")
    write_sentences(folder / "sentences.csv")
    shutil.move(write_pairs(folder / "pairs", 2) / "wh_island.jsonl", folder / "pairs.jsonl")
    suites = write_suites(folder / "suites", 1)
    shutil.move(suites / "two_predictions.json", folder / "suites.json")
    write_set(folder, "NEG-1500-SIMP-GEN", 3).rename(folder / "neg1500_gen.txt")
    for task, suffix in (("own", ".jsonl"), ("pairs", ".jsonl"), ("suites", ".json")):
        make_run(folder / f"run-{task}", folder / f"{task}{suffix}", Protocol(tasks=(task,)))
    claimed = write_request(folder / "board", REQUEST).with_suffix(".json")
    shutil.copy(make_run(folder / "claimed", demo_dir) / "results.json", claimed)
    return folder


# ---- readers -------------------------------------------------------------------------------------


def read_stimuli(data: Path) -> None:
    task = "own" if data.stem == "data" else data.stem
    collect([Setting(stimuli.load(str(data), task))], kind="masked", cased=True)


def read_verbs(data: Path) -> None:
    stimuli.load_verbs(str(data))


def read_predictions(file: Path) -> None:
    rows = stimuli.load(str(file.parent / "own.jsonl"), "own")
    parts, *_ = read_external(file, rows)
    evaluation.evaluate(rows, parts, Protocol(tasks=("own",)), cased=True, kind="masked")


def read_run(folder: Path) -> None:
    """Reads a run and writes its tables in all formats, the page only sometimes (it is slow)."""
    run = results.load_run(folder)
    print_results(run.results, Console(file=StringIO(), width=100))
    for name in ("markdown", "latex", "csv"):
        render_tables(name, [run.results])
    if run.predictions and (folder / "results.json").stat().st_size % 16 == 0:
        render([run])


def open_directory(folder: Path) -> None:
    directory = results.RunDirectory(folder)
    try:
        directory.open(BEGUN, overwrite=False)
    finally:
        directory.close()


def read_board(folder: Path) -> None:
    """Reads requests and the claimed figures beside them."""
    for entry in read_requests([str(folder)]):
        json.dumps(dict(entry.claimed), allow_nan=False)


READERS: list[tuple[str, Callable[[Path], object], str, int]] = [
    ("own.csv", read_stimuli, "", 2),
    ("own.jsonl", read_stimuli, "", 2),
    ("own.parquet", read_stimuli, "", 4),
    ("data/README.md", read_stimuli, "data", 2),
    ("data/provenance.json", read_stimuli, "data", 1),
    ("data/own/test-0.parquet", read_stimuli, "data", 1),
    ("data/verbs/test.parquet", read_verbs, "data", 2),
    ("verbs.csv", read_verbs, "", 2),
    ("predicted.jsonl", read_predictions, "", 3),
    ("predicted.parquet", read_predictions, "", 3),
    ("sentences.csv", read_stimuli, "", 2),
    ("pairs.jsonl", read_stimuli, "", 2),
    ("suites.json", read_stimuli, "", 2),
    ("neg1500_gen.txt", read_stimuli, "", 2),
    *((f"run-{task}/results.json", read_run, f"run-{task}", 3) for task in ("own", "suites")),
    *((f"run-{task}/predictions.parquet", read_run, f"run-{task}", 2) for task in ("own", "pairs")),
    ("begun/run.json", open_directory, "begun", 1),
    ("journal/0.jsonl", lambda path: Journal(path).read(), "journal", 2),
    (f"board/{REQUEST.path}", read_board, "board", 2),
    (f"board/{REQUEST.path[:-5]}.json", read_board, "board", 2),
]
"""A file that is changed, what reads it, from which path ("": itself), and its share of cases."""


def too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"still reading after {2 * SECONDS} s of processor time")


@pytest.mark.parametrize(("name", "read", "place", "share"), READERS, ids=[x[0] for x in READERS])
@pytest.mark.parametrize("cases", [5, pytest.param(450, marks=pytest.mark.nightly)])
def test_changed_files_are_read_or_refused(
    valid: Path, name: str, read: Callable[[Path], object], place: str, share: int, cases: int
) -> None:
    """Each file as it is and in changed forms: 230 cases of all files, nightly 20,000."""
    file, path = valid / name, valid / (place or name)
    content = file.read_bytes()
    read(path)

    @settings(
        max_examples=cases * share, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.integers(0, 2**64 - 1))
    def read_changed(number: int) -> None:
        file.write_bytes(change(name, content, random.Random(number)))
        began, length = time.process_time(), 0
        signal.signal(signal.SIGVTALRM, too_long)
        signal.setitimer(signal.ITIMER_VIRTUAL, 2 * SECONDS)  # ends what would never end
        try:
            read(path)
        except BadInput as error:
            length = len(str(error))
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            file.write_bytes(content)
        assert length <= LONGEST, f"a message of {length} characters"
        assert time.process_time() - began <= SECONDS

    read_changed()
