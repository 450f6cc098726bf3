"""Changes valid files at random and reads them: every outcome is a result or `BadInput`, soon.

A case is a number: it decides which file is changed and how, so that a case that fails can be
repeated. `test_fuzzing.py` runs some; many by hand, in child processes that a reader may crash:

    PYTHONPATH=tests python -m fuzzing --cases 100000 --first 0
"""

from __future__ import annotations

import argparse
import json
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from fuzz_changes import change
from rich.console import Console
from runs import make_run

from lmdiag import evaluation, predictions, results, stimuli
from lmdiag.elsewhere import read_elsewhere
from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.queries import Setting, collect
from lmdiag.report.formats import format_names, render_tables
from lmdiag.report.formats.terminal import print_results
from lmdiag.report.html import render
from lmdiag.runs.journal import Journal
from lmdiag.schema import Answer, BadInput, Protocol, WordScore

SECONDS = 5.0
"""Processor time that a case may take."""
LONGEST = 3000
"""Characters that a message may have; the longest texts put into files have 100,000."""

# ---- valid files --------------------------------------------------------------------------------

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


def csv_text(delimiter: str) -> str:
    """The rows as a table of text."""
    lines = [delimiter.join(ROWS[0])]
    for row in ROWS:
        fields = ("|".join(v) if isinstance(v, list) else str(v) for v in row.values())
        lines.append(delimiter.join(fields))
    return "\n".join(lines) + "\n"


def make_files(folder: Path) -> None:
    """Writes one valid file, or folder of files, of each kind."""
    for suffix, delimiter in ((".csv", ","), (".tsv", "\t")):
        (folder / f"own{suffix}").write_text(csv_text(delimiter))
    (folder / "own.jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    pq.write_table(pa.Table.from_pylist(ROWS), folder / "own.parquet")
    (folder / "verbs.csv").write_text("singular,plural\nis,are\nwalks,walk\n")
    (folder / "said.jsonl").write_text("".join(json.dumps(row) + "\n" for row in PREDICTIONS))
    pq.write_table(pa.Table.from_pylist(PREDICTIONS), folder / "said.parquet")
    data = folder / "data"
    for name in ("own", "verbs"):
        (data / name).mkdir(parents=True)
    (data / "README.md").write_text(CARD)
    (data / "provenance.json").write_text('{"configs": {"own": {"commit": "abc", "files": [1]}}}')
    shutil.copy(folder / "own.parquet", data / "own/test-0.parquet")
    pq.write_table(pa.table({"singular": ["is"], "plural": ["are"]}), data / "verbs/test.parquet")
    protocol = Protocol(tasks=("own",))
    make_run(folder / "run", folder / "own.jsonl", protocol)
    with Journal(folder / "journal") as journal:
        for i in range(4):
            journal.append({i: Answer({"bird": WordScore(-1.0, 1, 1)}, ("bird",), (-1.0,))})
    (journal_file,) = (folder / "journal").iterdir()
    journal_file.rename(folder / "journal/0.jsonl")
    contexts = {(f"The {i}", "", "singular"): (0.5,) * len(AGREEMENT_LAYOUT) for i in range(3)}
    predictions.write_agreement(folder / "agreement.parquet", contexts)
    shutil.copy(folder / "own.jsonl", folder / "role88.jsonl")
    (folder / "modelpreds-role-m").write_text("bread stone it\n" * len(ROWS))
    (folder / "modeltgtprobs-role-m").write_text("0.25\n" * len(ROWS))
    begun = folder / "begun"
    begun.mkdir()
    (begun / "run.json").write_text(json.dumps({"model": "x", "commit": None, "signature": "y"}))


# ---- readers ------------------------------------------------------------------------------------


def read_stimuli(data: str, task: str = "own") -> None:
    rows = stimuli.load(data, task)
    collect([Setting(rows)], kind="masked", cased=True)


def read_predictions(folder: Path, name: str) -> None:
    rows = stimuli.load(str(folder / "own.jsonl"), "own")
    parts = read_elsewhere(folder / name, rows)
    evaluation.evaluate(rows, parts, Protocol(tasks=("own",)), cased=True, kind="masked")


def read_original(folder: Path) -> None:
    read_elsewhere(
        folder / "modelpreds-role-m", stimuli.load(str(folder / "role88.jsonl"), "role88")
    )


def read_run(folder: Path) -> None:
    """Reads a run and writes its tables in all formats, the page only now and then (it is slow)."""
    run = results.load_run(folder / "run")
    found = run.predictions
    print_results(run.results, Console(file=StringIO(), width=100))
    for name in format_names():
        render_tables(name, [run.results])
    if len(found) and (folder / "run/results.json").stat().st_size % 16 == 0:
        render([run])


def open_directory(folder: Path) -> None:
    directory = results.RunDirectory(folder / "begun")
    try:
        directory.open({"model": "x", "commit": None, "signature": "y"}, overwrite=False)
    finally:
        directory.close()


@dataclass(frozen=True)
class Reader:
    """A file that is changed, and what reads it."""

    file: str
    read: Callable[[Path], object]
    weight: int = 2


READERS = [
    *(
        Reader(f"own{suffix}", lambda folder, s=suffix: read_stimuli(str(folder / f"own{s}")))
        for suffix in (".csv", ".tsv", ".jsonl")
    ),
    Reader("own.parquet", lambda folder: read_stimuli(str(folder / "own.parquet")), 4),
    Reader("data/README.md", lambda folder: read_stimuli(str(folder / "data"))),
    Reader("data/provenance.json", lambda folder: read_stimuli(str(folder / "data")), 1),
    Reader("data/own/test-0.parquet", lambda folder: read_stimuli(str(folder / "data")), 1),
    Reader("data/verbs/test.parquet", lambda folder: stimuli.load_verbs(str(folder / "data"))),
    Reader("verbs.csv", lambda folder: stimuli.load_verbs(str(folder / "verbs.csv"))),
    Reader("said.jsonl", lambda folder: read_predictions(folder, "said.jsonl"), 3),
    Reader("said.parquet", lambda folder: read_predictions(folder, "said.parquet"), 3),
    Reader("run/results.json", read_run, 4),
    Reader("run/predictions.parquet", read_run, 2),
    Reader("agreement.parquet", lambda f: predictions.read_agreement(f / "agreement.parquet"), 1),
    Reader("modelpreds-role-m", read_original, 1),
    Reader("modeltgtprobs-role-m", read_original, 1),
    Reader("begun/run.json", open_directory, 1),
    Reader("journal/0.jsonl", lambda folder: Journal(folder / "journal").read(), 1),
]


# ---- cases --------------------------------------------------------------------------------------


def too_long(number: int, frame: object) -> None:
    raise TimeoutError(f"still reading after {2 * SECONDS} s of processor time")


@dataclass
class Fuzzer:
    """Valid files in a folder of its own, which cases change one at a time.

    Attributes:
        folder: of the files.
        outcomes: how many cases of each file were read, and how many refused.
        slowest: (seconds of processor time, case).
    """

    folder: Path
    outcomes: Counter[tuple[str, str]] = field(default_factory=Counter)
    slowest: tuple[float, int] = (0.0, -1)

    def __post_init__(self) -> None:
        signal.signal(signal.SIGVTALRM, too_long)
        make_files(self.folder)
        self._valid = {each.file: (self.folder / each.file).read_bytes() for each in READERS}
        for reader in READERS:
            reader.read(self.folder)
            self._restore(reader.file)

    def case(self, number: int) -> None:
        """Runs a case.

        Raises:
            Exception: whatever the reader raised that is not `BadInput`.
            TimeoutError: the reader took longer than `SECONDS` of processor time.
        """
        rng = random.Random(number)
        (reader,) = rng.choices(READERS, [each.weight for each in READERS])
        content = change(reader.file, self._valid[reader.file], rng)
        (self.folder / reader.file).write_bytes(content)
        began = time.process_time()
        outcome, length = "read", 0
        signal.setitimer(signal.ITIMER_VIRTUAL, 2 * SECONDS)  # ends what would never end
        try:
            reader.read(self.folder)
        except BadInput as error:
            outcome = "refused"
            length = len(str(error))
        finally:
            signal.setitimer(signal.ITIMER_VIRTUAL, 0)
            self._restore(reader.file)
        seconds = time.process_time() - began
        self.outcomes[reader.file, outcome] += 1
        self.slowest = max(self.slowest, (seconds, number))
        if length > LONGEST:
            raise ValueError(f"case {number}: a message of {length} characters on {reader.file}")
        if seconds > SECONDS:
            raise TimeoutError(f"case {number}: {reader.file} took {seconds:.1f} s")

    def _restore(self, file: str) -> None:
        (self.folder / file).write_bytes(self._valid[file])
        if file.startswith("begun"):
            (self.folder / "begun/results.json").unlink(missing_ok=True)


def program() -> int:
    """Runs cases in child processes, so that a crash of a reader ends one of them alone."""
    parser = argparse.ArgumentParser(description=program.__doc__)
    parser.add_argument("--cases", type=int, default=1000)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--show", type=int, default=20, help="failures that are shown whole")
    args = parser.parse_args()
    failures, begin, end = 0, args.first, args.first + args.cases
    with tempfile.TemporaryDirectory() as temporary:
        log = Path(temporary) / "done"
        while begin < end:
            child = os.fork()
            if not child:
                os._exit(run_cases(Path(temporary), log, begin, end, args.show))
            status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
            last = int(log.read_text())
            if status < 0:
                print(f"case {last}: the process died of signal {-status}", flush=True)
            failures += status != 0
            begin = last + 1
    print(f"{args.cases} cases from {args.first}: {'some failed' if failures else 'none failed'}")
    return int(failures > 0)


def run_cases(folder: Path, log: Path, begin: int, end: int, show: int) -> int:
    """Runs cases in this process; returns 1 if any failed."""
    failed: Counter[str] = Counter()
    with tempfile.TemporaryDirectory(dir=folder) as own:
        fuzzer = Fuzzer(Path(own))
        for number in range(begin, end):
            log.write_text(str(number))
            try:
                fuzzer.case(number)
            except Exception as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                key = f"{type(error).__name__} at {Path(where.filename).name}:{where.lineno}"
                failed[key] += 1
                if failed[key] == 1 and len(failed) <= show:
                    print(f"case {number}:", flush=True)
                    traceback.print_exc(limit=-6, file=sys.stdout)
    for (file, outcome), count in sorted(fuzzer.outcomes.items()):
        print(f"{count:8}  {file} {outcome}")
    print(f"slowest: {fuzzer.slowest[0]:.2f} s, case {fuzzer.slowest[1]}")
    for key, count in failed.most_common():
        print(f"{count:8}  {key}")
    sys.stdout.flush()
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(program())
