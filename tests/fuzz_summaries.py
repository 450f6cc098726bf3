"""Valid files of whole sentences, and of what is made from runs: multiverses, boards."""

from __future__ import annotations

import json
import shutil
from io import StringIO
from pathlib import Path

from fuzz_files import ROWS, Reader, read_run
from hub.boards import request, write_request
from pairs_of_sentences import write_set
from report.forms import write_pairs, write_sentences, write_suites
from rich.console import Console
from runs import make_run

from lmdiag import stimuli
from lmdiag.hub.requests import read_requests
from lmdiag.multiverse import RunOfMember, multiverse_of
from lmdiag.protocol import Protocol
from lmdiag.questions import Setting, collect
from lmdiag.report.formats.terminal import print_multiverse
from lmdiag.report.multiverse import multiverse_plots
from lmdiag.report.multiverse import render as render_multiverse
from lmdiag.results import load_run
from lmdiag.results.multiverse import Multiverse, Questions
from lmdiag.runs.journal import Journal
from lmdiag.types import SentenceAnswer, WordSpan

SET = "NEG-1500-SIMP-GEN"
TASKS = {
    "sentences": "sentences.csv",
    "pairs": "pairs.jsonl",
    "suites": "suites.json",
    "neg1500_gen": "neg1500_gen.txt",
}
"""Task -> its data."""


def make_summaries(folder: Path, demo: Path) -> None:
    """Writes one valid file, or folder of files, of each kind.

    Args:
        folder: to write to.
        demo: the demo data set, built.
    """
    write_sentences(folder / "sentences.csv")
    shutil.move(write_pairs(folder / "pairs", 2) / "wh_island.jsonl", folder / "pairs.jsonl")
    suites = write_suites(folder / "suites", 1)
    shutil.move(suites / "two_predictions.json", folder / "suites.json")
    write_set(folder, SET, 3).rename(folder / "neg1500_gen.txt")
    for task, file in TASKS.items():
        make_run(folder / f"run-{task}", folder / file, Protocol(tasks=(task,)))
    (folder / "own.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in ROWS))
    runs = [
        RunOfMember(model, {"unit": unit}, load_run(make_run(
            folder / f"multi/{model}-{unit}", folder / "own.jsonl",
            Protocol(tasks=("own",), unit=unit), seed=i, id=f"org/{model}",
        )))
        for i, (model, unit) in enumerate((m, u) for m in (0, 1) for u in ("token", "word"))
    ]  # fmt: skip
    multiverse_of(runs, Questions(4, 24, 24), folder / "multi", resamples=20).write(
        folder / "multi"
    )
    wanted = request("org/model")
    claimed = write_request(folder / "board", wanted).with_suffix(".json")
    shutil.copy(make_run(folder / "claimed", demo) / "results.json", claimed)
    spans = WordSpan(0, 3, -1.5, 1), WordSpan(4, 9, None, 0)
    with Journal(folder / "journal") as journal:
        for i in range(4):
            journal.append({i: SentenceAnswer(spans)})
    (journal_file,) = (folder / "journal").iterdir()
    journal_file.rename(folder / "journal/0.jsonl")


# ---- readers -------------------------------------------------------------------------------------


def read_rows(file: Path) -> None:
    collect([Setting(stimuli.load(str(file), file.stem))], kind="masked", cased=True)


def read_multiverse(folder: Path) -> None:
    """Prints the tables of a multiverse; writes its page only sometimes (it is slow)."""
    multiverse = Multiverse.read(folder)
    print_multiverse(multiverse, Console(file=StringIO(), width=100))
    if (folder / "multiverse.json").stat().st_size % 8 == 0:
        multiverse_plots(multiverse)
        render_multiverse(multiverse)


def read_board(folder: Path) -> None:
    """Reads requests and the claimed figures beside them."""
    for entry in read_requests([str(folder)]):
        json.dumps(dict(entry.claimed), allow_nan=False)


def summary_readers(folder: Path, demo: Path) -> list[Reader]:
    """What reads the files of `make_summaries`."""
    runs = [
        Reader(f"run-{task}/{name}", read, f"run-{task}", 1)
        for task in TASKS
        for name, read in (("results.json", read_run), ("predictions.parquet", read_run))
    ]  # fmt: skip
    return [
        *(Reader(file, read_rows, file) for file in TASKS.values()),
        *runs,
        Reader("multi/multiverse.json", read_multiverse, "multi", 8),
        Reader(f"board/{request('org/model').path}", read_board, "board"),
        Reader(f"board/{request('org/model').path[:-5]}.json", read_board, "board"),
        Reader("journal/0.jsonl", lambda path: Journal(path).read(), "journal", 1),
    ]
