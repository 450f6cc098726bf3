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
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

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
from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.multiverse import Multiverse, multiverse_of
from lmdiag.protocol import Protocol
from lmdiag.questions import Setting, collect
from lmdiag.report.formats import format_names, render_tables
from lmdiag.report.formats.terminal import print_multiverse, print_results
from lmdiag.report.html import render
from lmdiag.report.multiverse import multiverse_plots
from lmdiag.report.multiverse import render as render_multiverse
from lmdiag.results import Place, predictions
from lmdiag.results.predictions import read_external
from lmdiag.runs.journal import Journal
from lmdiag.types import Answer, BadInput, SentenceAnswer, WordScore, WordSpan

SECONDS = 5.0
"""Processor time that a case may take."""
LONGEST = 3000
"""Characters that a message may have; the longest texts put into files have 100,000."""

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
SENTENCES = {"sentences": ".csv", "pairs": ".jsonl", "suites": ".json", "neg1500_gen": ".txt"}
"""Task on whole sentences -> suffix of its data."""
REQUEST = request("org/model")


@pytest.fixture(scope="module")
def valid(tmp_path_factory: pytest.TempPathFactory, demo_dir: Path) -> Path:
    """A folder with one valid file, or folder of files, of each kind."""
    folder = tmp_path_factory.mktemp("valid")
    for name in ("data/own", "data/verbs", "begun", "journal"):
        (folder / name).mkdir(parents=True)
    frame = pd.DataFrame(ROWS).assign(expected=["|".join(row["expected"]) for row in ROWS])
    for suffix, separator in ((".csv", ","), (".tsv", "\t")):
        frame.to_csv(folder / f"own{suffix}", sep=separator, index=False)
    for name, records in (("own", ROWS), ("data/own/test-0", ROWS), ("said", PREDICTIONS)):
        (folder / f"{name}.jsonl").write_text("".join(json.dumps(r) + "\n" for r in records))
        pq.write_table(pa.Table.from_pylist(records), folder / f"{name}.parquet")
    (folder / "verbs.csv").write_text("singular,plural\nis,are\nwalks,walk\n")
    (folder / "data/README.md").write_text(CARD)
    provenance = {"configs": {"own": {"commit": "abc", "files": [1]}}}
    (folder / "data/provenance.json").write_text(json.dumps(provenance))
    verbs = pa.table({"singular": ["is"], "plural": ["are"]})
    pq.write_table(verbs, folder / "data/verbs/test.parquet")
    (folder / "begun/run.json").write_text(json.dumps(BEGUN))
    with_agreement = replace(
        predictions.read(folder / "said.parquet")[predictions.UNNAMED],
        agreement=[(0.5,) * len(AGREEMENT_LAYOUT)] * len(ROWS),
    )
    predictions.write(folder / "agreement.parquet", [with_agreement])
    spans = SentenceAnswer((WordSpan(0, 3, -1.5, 1), WordSpan(4, 9, None, 0)))
    blank = Answer({"bird": WordScore(-1.0, 1, 1)}, ("bird",), (-1.0,))
    for kind, answer in (("blanks", blank), ("sentences", spans)):
        with Journal(folder / f"journal/{kind}") as journal:
            for i in range(4):
                journal.append({f"question {i}": answer})
        (written,) = (folder / f"journal/{kind}").iterdir()
        written.rename(folder / f"journal/{kind}/0.jsonl")

    write_sentences(folder / "sentences.csv")
    shutil.move(write_pairs(folder / "pairs", 2) / "wh_island.jsonl", folder / "pairs.jsonl")
    suites = write_suites(folder / "suites", 1)
    shutil.move(suites / "two_predictions.json", folder / "suites.json")
    write_set(folder, "NEG-1500-SIMP-GEN", 3).rename(folder / "neg1500_gen.txt")
    for task, suffix in {"own": ".jsonl", **SENTENCES}.items():
        make_run(folder / f"run-{task}", folder / f"{task}{suffix}", Protocol(tasks=(task,)))
    models = {
        f"model {model}": ([({"unit": unit}, results.load_run(make_run(
            folder / f"multi/{model}-{unit}", folder / "own.jsonl",
            Protocol(tasks=("own",), unit=unit), seed=2 * model + i, id=f"org/{model}",
        ))) for i, unit in enumerate(("token", "word"))], 2, 12, 12)
        for model in (0, 1)
    }  # fmt: skip
    headlines = {Place("own", "none", name): name for name in ("accuracy@1", "sensitivity")}
    multiverse = multiverse_of(models, headlines, folder / "multi", resamples=20)
    (folder / "multi/multiverse.json").write_text(json.dumps(multiverse.to_json()))
    claimed = write_request(folder / "board", REQUEST).with_suffix(".json")
    shutil.copy(make_run(folder / "claimed", demo_dir) / "results.json", claimed)
    return folder


# ---- readers -------------------------------------------------------------------------------------


def read_stimuli(data: Path) -> None:
    task = "own" if data.stem == "data" else data.stem
    collect([Setting(stimuli.load(str(data), task))], kind="masked", cased=True)


def read_predictions(file: Path) -> None:
    rows = stimuli.load(str(file.parent / "own.jsonl"), "own")
    parts = read_external(file, rows).runs
    evaluation.evaluate(rows, parts, Protocol(tasks=("own",)), cased=True, kind="masked")


def read_run(folder: Path) -> None:
    """Reads a run and writes its tables in all formats, the page only sometimes (it is slow)."""
    run = results.load_run(folder)
    print_results(run.results, Console(file=StringIO(), width=100))
    for name in format_names():
        render_tables(name, [run.results])
    if run.predictions and (folder / "results.json").stat().st_size % 16 == 0:
        render([run])


def open_directory(folder: Path) -> None:
    (folder / "results.json").unlink(missing_ok=True)
    directory = results.RunDirectory(folder)
    try:
        directory.open(BEGUN, overwrite=False)
    finally:
        directory.close()


def read_multiverse(folder: Path) -> None:
    """Prints the tables of a multiverse; writes its page only sometimes (it is slow)."""
    multiverse = Multiverse.read(folder)
    print_multiverse(multiverse, Console(file=StringIO(), width=100))
    if (folder / "multiverse.json").stat().st_size % 8 == 0:
        [*multiverse_plots(multiverse)]
        render_multiverse(multiverse)


def read_board(folder: Path) -> None:
    """Reads requests and the claimed figures beside them."""
    for entry in read_requests([str(folder)]):
        json.dumps(dict(entry.claimed), allow_nan=False)


class Reader(NamedTuple):
    """A file that is changed, what reads it, from which path, and its share of the cases."""

    file: str
    read: Callable[[Path], object]
    path: str = ""
    weight: int = 2


READERS = [
    *(Reader(f"own{suffix}", read_stimuli) for suffix in (".csv", ".tsv", ".jsonl")),
    Reader("own.parquet", read_stimuli, weight=4),
    Reader("data/README.md", read_stimuli, "data"),
    Reader("data/provenance.json", read_stimuli, "data", 1),
    Reader("data/own/test-0.parquet", read_stimuli, "data", 1),
    Reader("data/verbs/test.parquet", lambda path: stimuli.load_verbs(str(path)), "data"),
    Reader("verbs.csv", lambda path: stimuli.load_verbs(str(path))),
    *(Reader(f"said{suffix}", read_predictions, weight=3) for suffix in (".jsonl", ".parquet")),
    *(Reader(f"{task}{suffix}", read_stimuli) for task, suffix in SENTENCES.items()),
    Reader("run-own/results.json", read_run, "run-own", 4),
    Reader("run-own/predictions.parquet", read_run, "run-own"),
    *(
        Reader(f"run-{task}/{name}", read_run, f"run-{task}", 1)
        for task in SENTENCES
        for name in ("results.json", "predictions.parquet")
    ),
    Reader("agreement.parquet", predictions.read, weight=1),
    Reader("begun/run.json", open_directory, "begun", 1),
    *(
        Reader(f"journal/{kind}/0.jsonl", lambda path: Journal(path).read(), f"journal/{kind}", 1)
        for kind in ("blanks", "sentences")
    ),
    Reader("multi/multiverse.json", read_multiverse, "multi", 8),
    Reader(f"board/{REQUEST.path}", read_board, "board"),
    Reader(f"board/{REQUEST.path[:-5]}.json", read_board, "board"),
]


# ---- cases ---------------------------------------------------------------------------------------


def too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"still reading after {2 * SECONDS} s of processor time")


def check(folder: Path, reader: Reader, number: int) -> None:
    """Changes a file and reads it; raises whatever the reader raises that is not `BadInput`."""
    file, path = folder / reader.file, folder / (reader.path or reader.file)
    content = file.read_bytes()
    file.write_bytes(change(reader.file, content, random.Random(number)))
    began, length = time.process_time(), 0
    signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * SECONDS)  # ends what would never end
    try:
        reader.read(path)
    except BadInput as error:
        length = len(str(error))
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        file.write_bytes(content)
    assert length <= LONGEST, f"a message of {length} characters"
    assert time.process_time() - began <= SECONDS


@pytest.mark.parametrize("reader", READERS, ids=lambda reader: reader.file)
@pytest.mark.parametrize("cases", [5, pytest.param(330, marks=pytest.mark.nightly)])
def test_changed_files_are_read_or_refused(valid: Path, reader: Reader, cases: int) -> None:
    """Each file as it is and in changed forms: 300 cases of all files, nightly 20,000."""
    reader.read(valid / (reader.path or reader.file))

    @settings(
        max_examples=cases * reader.weight, deadline=None, database=None, derandomize=True,
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(st.integers(0, 2**64 - 1))
    def read_changed(number: int) -> None:
        check(valid, reader, number)

    read_changed()
