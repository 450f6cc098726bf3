"""Changes valid files at random and reads them: `python -m fuzzing MINUTES` (`make fuzz`).

A case is a number that decides how a file is changed, so that a case that fails can be repeated:
`python -m fuzzing 1 NAME NUMBER`. The outcome is a result or `BadInput`, soon.
"""

import contextlib
import copy
import json
import logging
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from datetime import date
from decimal import Decimal
from io import StringIO
from pathlib import Path

import cyclopts
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from families import CHAT, FAMILIES
from hostile import HOSTILE
from hub.boards import request, write_request
from invented_runs import make_run
from rich.console import Console
from sentence_files import write_pairs, write_sentences, write_set, write_suites
from shown import page_of, print_tables, sections_as, shown_as

import lmdiag
from lmdiag import cli, results, stimuli
from lmdiag.asking.protocol import Protocol
from lmdiag.asking.questions import Setting, distinct_questions
from lmdiag.cli.command_options import text_or_file
from lmdiag.leaderboard.entries import read_requests
from lmdiag.models import LoadOptions, load
from lmdiag.models.server.client import WrongReply
from lmdiag.models.server.replies import read_reply
from lmdiag.models.tokens.framing import chat_prompt
from lmdiag.report.run_report import Report
from lmdiag.results import evaluation
from lmdiag.results.predictions import read_external
from lmdiag.runs.asking import ask
from lmdiag.runs.journal import Journal
from lmdiag.tables.table_files import TABLE_SUFFIXES, read_table
from lmdiag.text import shortened
from lmdiag.types import (
    Answer,
    BadInput,
    Sentence,
    SentenceAnswer,
    WordScore,
    WordSpan,
)

SECONDS = 5.0
"""Processor time that a case may take."""
LONGEST = 3000
"""Characters that a message may have; the longest texts put into files have 100,000."""
ROWS = [
    {
        "id": f"{item}-{kind}", "item": str(item), "condition": kind, "context": f"The {item} ate",
        "right_context": "today" if item else "", "target": word, "good": kind == "good",
        "contrast": str(item), "expected": ["bread", "it"] if kind == "good" else [],
        "level": "low", "target_cloze": 0.25 * item, "count": item,
    }
    for item in range(3)
    for kind, word in (("good", "bread"), ("bad", "stone"))
]  # fmt: skip
PREDICTIONS = [
    {"id": row["id"], "log_prob": -1.0 - i, "top_words": ["bread", "stone"], "rank": i + 1}
    for i, row in enumerate(ROWS)
]
OPTIONS = (
    {"columns": ["context=context", "target=target"]}, {"filter": ["condition=good"]},
    {"wide": ["context", "right_context"]}, {"split": ["id=-:number,kind"]},
    {"good": "condition=good", "contrast": ["item"]}, {"gap": "ate"}, {"separator": "/"},
)  # fmt: skip
"""How a table is read; see `TableOptions`."""
CARD = "---\nlicense: mit\nconfigs:\n- config_name: own\n  data_files: own/*.parquet\n---\n# Data\n"
REQUEST = request("org/model")
REPLY = {"choices": [{"logprobs": {
    "tokens": ["token_id:5", "token_id:6", "token_id:7"], "token_logprobs": [None, -1.5, -2.0],
    "top_logprobs": [None, {"token_id:6": -1.5}, {"token_id:7": -2.0, "token_id:8": -2.5}],
}}]}  # fmt: skip
"""A server's answer to the prompt (5, 6)."""


def write_valid(folder, demo_dir):
    """Writes one valid file, or folder of files, of each kind."""
    for name in ("data/own", "journal"):
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
        make_run(folder / f"run-{task}", folder / f"{task}{suffix}")
    said = [(i, f"The {i} man saw the", word) for i in range(3) for word in ("dog", "cat", "dog ")]
    responses = pd.DataFrame(said, columns=["item", "context", "response"])
    responses.to_csv(folder / "cloze.csv", index=False)
    claimed = write_request(folder / "board", REQUEST).with_suffix(".json")
    shutil.copy(make_run(folder / "claimed", demo_dir) / "results.json", claimed)
    frame.assign(surprisal=frame.index * 1.5).to_excel(folder / "own.xlsx", index=False)
    words = pd.DataFrame({"text": 1, "position": range(1, 61)})
    words["word"] = random.Random(0).choices(["the", "old", "man", "bird", "garden", "said"], k=60)
    words["surprisal"] = words["position"] ** 2 % 13 + 0.5
    words["rt"] = 200 + words["position"] * 7 % 11
    words.to_csv(folder / "human.csv", index=False)
    (folder / "prompt.txt").write_text("Say: {context}")
    (folder / "reply.json").write_text(json.dumps(REPLY))
    model = FAMILIES["gpt2"].make(folder / "model")
    (model / "chat_template.jinja").write_text(CHAT)


# ---- changes of bytes, and of the structure of JSON, csv and Parquet ----------------------------

NUMBERS = [
    0, -1, 2**31, 2**63, -(2**63) - 1, 10**400, -(10**4000), 0.1, -0.0, 1e308, -1e308,
    float("nan"), float("inf"), float("-inf"),
]  # fmt: skip
TEXTS = [
    "", " ", "\ud800", "a\udfffb", "\x00", "\ufeff", "é" * 1000, "x" * 100_000, "NaN", "null",
    "9" * 5000, "2001-13-45", "0000-00-00T99:99:99+99:99", "../../etc/passwd", "a" * 300,
    *HOSTILE.values(),
]  # fmt: skip
OTHERS = [None, True, False, [], {}, [[]], [None], {"": None}]
PIECES = [
    b"\x00", b"\xff\xfe", b"\xed\xa0\x80", b"\xc3", b"\n", b"\r", b'"', b",", b"\t", b"{", b"}",
    b"[" * 1000, b"[" * 100_000, b'{"a":' * 5000, b"9" * 5000, b"1e999999", b"NaN", b"\\ud800",
    b"- " * 3000, b"&a [*a, *a]", b"!!python/object:os.system", b"2001-99-99", b"!!int x",
    b"---\n", b"\xef\xbb\xbf", b"\xe2\x80\xa8",
]  # fmt: skip
SPAN = {"start": 0, "end": 3, "log_prob": -1.0, "n_tokens": None}
ODD = [
    (b"\xff", pa.binary()), (2**62, pa.timestamp("s", tz="Moon/Crater")),
    (0, pa.timestamp("ms", tz="+99:99")), (2**62, pa.timestamp("us")), (1, pa.timestamp("ns")),
    (2**62, pa.duration("s")), (86_399, pa.time32("s")), (Decimal("9" * 70), pa.decimal256(76, 0)),
    (2**64 - 1, pa.uint64()), (1.5, pa.float16()), ([("k", 1)], pa.map_(pa.string(), pa.int64())),
    ("x", pa.dictionary(pa.int32(), pa.string())), (["x"], pa.list_(pa.string(), 1)),
    (date(1, 1, 1), None), (float("nan"), None), (-1e308, None), ([800.0], None), (None, None),
    (True, None), (["a", None], None), ({"a": 1}, None), ("a\x00b", None), ([SPAN], None),
    ([SPAN | {"start": 90, "end": 7, "log_prob": 1e308, "n_tokens": -1}] * 99, None),
]  # fmt: skip
"""A value of a column of Parquet, and its type where it is not the usual one."""


def nasty(rng):
    """A value of any JSON type that some reader may not expect."""
    text, number, deep = rng.choice(TEXTS), rng.choice(NUMBERS), 0
    for i in range(rng.choice([1, 5, 70, 400])):
        deep = [deep] if i % 2 else {"a": deep}
    return rng.choice([number, text, text, copy.deepcopy(rng.choice(OTHERS)), deep, [text, number]])


def change_bytes(content, rng):
    """Flips a bit, cuts, repeats, inserts or removes a piece, one to four times."""
    for _ in range(rng.randint(1, 4)):
        at, length = rng.randrange(len(content) + 1), rng.randint(1, 40)
        here, after = content[at : at + 1], content[at + length :]
        flipped = bytes(byte ^ 1 << rng.randrange(8) for byte in here) + content[at + 1 :]
        pieces = [flipped, flipped, rng.choice(PIECES) + content[at:], after, b""]
        content = content[:at] + rng.choice([*pieces, content[at : at + length] + content[at:]])
    return content


def change_json(content, rng):
    """Replaces, removes, renames or adds a value anywhere in a JSON value."""
    value = json.loads(content)
    places, containers = [], [value]
    while containers:
        container = containers.pop()
        if isinstance(container, dict | list):
            keys = [*container] if isinstance(container, dict) else [*range(len(container))]
            places += [(container, key) for key in keys]
            containers += [container[key] for key in keys]
    if not places or rng.random() < 0.02:
        return json.dumps(nasty(rng)).encode()
    container, key = rng.choice(places)
    kind = rng.randrange(5) if isinstance(container, dict) else rng.choice([0, 3])
    if kind == 0:
        del container[key]
    elif kind == 1:
        container[rng.choice(TEXTS)] = container.pop(key)
    else:
        container[rng.choice(TEXTS) if kind == 2 else key] = nasty(rng)
    return json.dumps(value).encode()


def change_lines(content, rng):
    """Changes the JSON value in one line of a file, or gives all lines one more column."""
    lines = content.splitlines()
    if rng.random() < 0.2:
        name = rng.choice([*json.loads(lines[0]), *TEXTS])
        lines = [json.dumps(json.loads(line) | {name: nasty(rng)}).encode() for line in lines]
    else:
        at = rng.randrange(len(lines))
        lines[at] = change_json(lines[at], rng)
    return b"\n".join(lines) + b"\n"


def change_parquet(content, rng):
    """Gives a column an odd type or value or another name, removes or repeats it or rows."""
    table = pq.read_table(pa.BufferReader(content))
    at, n = rng.randrange(table.num_columns), table.num_rows
    name, column = table.column_names[at], table.column(at)
    value, odd = rng.choice(ODD)
    with_null = [None, *column.to_pylist()[1:]]
    changes = [
        lambda: table.remove_column(at),
        lambda: table.append_column(rng.choice(table.column_names), column),
        lambda: table.take([rng.randrange(n) for _ in range(rng.randrange(9))]),
        lambda: table.set_column(at, rng.choice(TEXTS), column),
        lambda: table.set_column(at, name, pa.array(with_null, column.type)),
        *3 * [lambda: table.set_column(at, name, pa.array([value] * n, odd))],
    ]
    sink = pa.BufferOutputStream()
    pq.write_table(rng.choice(changes)(), sink, compression=rng.choice(["snappy", "none"]))
    return bytes(sink.getvalue())


def change(file, content, rng):
    """Changes the content of a file one to three times, by its bytes or by its structure."""
    structured = {".json": change_json, ".jsonl": change_lines, ".parquet": change_parquet}
    suffix = "" if file.startswith("journal") else Path(file).suffix
    if suffix not in structured or rng.random() < 0.4:
        return change_bytes(content, rng)
    for _ in range(rng.randint(1, 3)):
        # Parquet cannot hold every value, a changed file may have nothing left to change, and an
        # unknown time zone is a KeyError of pytz.
        with contextlib.suppress(
            pa.ArrowException, OverflowError, TypeError, ValueError, IndexError, KeyError
        ):
            content = structured[suffix](content, rng)
    return content


# ---- readers -------------------------------------------------------------------------------------


def read_stimuli(data):
    task = "own" if data.stem == "data" else data.stem
    distinct_questions([Setting(stimuli.load(str(data), task))], kind="masked", cased=True)


def read_predictions(file):
    rows = stimuli.load(str(file.parent / "own.jsonl"), "own")
    parts, *_ = read_external(file, rows)
    evaluation.evaluate(rows, parts, Protocol(tasks=("own",)), kind="masked")


def read_run(folder):
    """Reads a run and writes its tables in all formats, the page only sometimes (it is slow)."""
    run = results.load_run(folder)
    print_tables(run.results, Console(file=StringIO(), width=100))
    shown_as("csv", [run.results])
    for name in ("markdown", "latex"):
        sections_as(name, Report(run).sections)
    if run.predictions and (folder / "results.json").stat().st_size % 16 == 0:
        page_of([run])


def read_cloze(file):
    """Reads responses, as text and as a table that names its columns in another way."""
    stimuli.load(file, responses=True)
    with contextlib.suppress(BadInput):
        options = {"filter": "item!=1", "columns": "response=response", "keep_case": True}
        stimuli.load(file, responses=True, **options)


def read_with_options(file):
    """Reads a table by each option that divides, chooses or renames columns and rows."""
    for options in OPTIONS:
        with contextlib.suppress(BadInput):
            stimuli.load(str(file), file.stem, **options)


def read_pipe(file):
    """Reads a named pipe, and a link to a device, in place of a table of each suffix."""
    content = file.read_bytes()
    for suffix in TABLE_SUFFIXES:
        for make in (os.mkfifo, lambda path: path.symlink_to("/dev/zero")):
            other = file.with_name(f"other{suffix}")
            make(other)
            try:
                with contextlib.suppress(BadInput):
                    read_table(other)
                    raise AssertionError(f"{other} was read beside {len(content)} bytes")
            finally:
                other.unlink()


def read_board(folder):
    """Reads requests and the claimed figures beside them."""
    for entry in read_requests([str(folder)]):
        json.dumps(dict(entry.claimed), allow_nan=False)


def read_analysis(file):
    """Reads items, and how they differ between conditions."""
    lmdiag.analyse(file, conditions=["condition"], response="target_cloze")


def read_reply_of_server(file):
    with contextlib.suppress(WrongReply):
        read_reply(file.read_bytes(), (5, 6), "tiny")


def read_model(folder):
    """Loads a model and asks it; what its template says of two turns of a chat."""
    model = load(str(folder), LoadOptions())
    ask(model, [Sentence("A dog ran.")], top=0)
    with contextlib.suppress(BadInput):
        chat_prompt(model.parts.tokenizer, "Go on.", str(folder))


OF_MODEL = (
    "config.json", "tokenizer.json", "tokenizer_config.json", "chat_template.jinja",
    "generation_config.json", "model.safetensors",
)  # fmt: skip
READERS = [
    ("own.csv", read_stimuli, "", 2),
    ("own.csv", read_with_options, "", 1),
    *[("own.csv", read_pipe, "", 1)] * hasattr(os, "mkfifo"),
    ("cloze.csv", read_cloze, "", 2),
    ("own.jsonl", read_stimuli, "", 2),
    ("own.parquet", read_stimuli, "", 4),
    ("data/README.md", read_stimuli, "data", 2),
    ("data/provenance.json", read_stimuli, "data", 1),
    ("data/own/test-0.parquet", read_stimuli, "data", 1),
    ("verbs.csv", lambda path: stimuli.load_verbs(str(path)), "", 2),
    ("predicted.jsonl", read_predictions, "", 3),
    ("predicted.parquet", read_predictions, "", 3),
    ("own.xlsx", read_analysis, "", 1),
    ("own.parquet", read_analysis, "", 2),
    ("human.csv", lambda path: lmdiag.fit(path, response="rt"), "", 1),
    ("prompt.txt", lambda path: LoadOptions(prompt=text_or_file(str(path))), "", 1),
    ("reply.json", read_reply_of_server, "", 4),
    *((f"model/{name}", read_model, "model", 1) for name in OF_MODEL),
    ("sentences.csv", read_stimuli, "", 2),
    ("pairs.jsonl", read_stimuli, "", 2),
    ("suites.json", read_stimuli, "", 2),
    ("neg1500_gen.txt", read_stimuli, "", 2),
    *((f"run-{task}/results.json", read_run, f"run-{task}", 3) for task in ("own", "suites")),
    *((f"run-{task}/predictions.parquet", read_run, f"run-{task}", 2) for task in ("own", "pairs")),
    ("journal/0.jsonl", lambda path: Journal(path).read(), "journal", 2),
    (f"board/{REQUEST.path}", read_board, "board", 2),
    (f"board/{REQUEST.path[:-5]}.json", read_board, "board", 2),
]
"""A file that is changed, what reads it, from which path ("": itself), and its share of cases."""


def too_long(number, frame):
    raise TimeoutError(f"still reading after {2 * SECONDS} s of processor time")


def read_case(folder, reader, number):
    """Changes the file of a reader as the number says, reads it, and puts the file back.

    Returns the message of a refusal, or "".
    """
    name, read, place, _ = reader
    file = folder / name
    content = file.read_bytes()
    file.write_bytes(change(name, content, random.Random(number)))
    signal.signal(signal.SIGVTALRM, too_long)
    signal.setitimer(signal.ITIMER_VIRTUAL, 2 * SECONDS)  # ends what would never end
    try:
        read(folder / (place or name))
    except BadInput as error:
        return str(error)
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        file.write_bytes(content)
    return ""


# ---- campaign ------------------------------------------------------------------------------------


def campaign(folder, minutes, name="", number=None):
    """Reads changed files for some minutes, in turns, and prints what came of it per reader.

    A hang is a case of more than `SECONDS` of processor time; a case is also shown if it takes
    another 512 MiB, or its message is longer than `LONGEST`.
    """
    readers = [reader for reader in READERS if name in ("", reader[0])]
    counts = {reader: Counter() for reader in readers}
    rng = random.Random(number)
    end = time.monotonic() + 60 * minutes
    while time.monotonic() < end and readers:
        for reader in readers if number is None else readers[:1]:
            case = rng.randrange(2**64) if number is None else number
            began, before = time.process_time(), peak()
            outcome = "read"
            try:
                message = read_case(folder, reader, case)
                outcome = "refused" if message else "read"
                if len(message) > LONGEST:
                    outcome = "long message"
            except KeyboardInterrupt:
                raise
            except BaseException as error:  # a panic of a library in Rust is no Exception
                outcome = "hang" if isinstance(error, TimeoutError) else "traceback"
                where = traceback.extract_tb(error.__traceback__)[-1]
                what = (
                    f"{type(error).__name__}: {shortened(error)} ({where.filename}:{where.lineno})"
                )
                print(f"{outcome}: python -m fuzzing 1 {reader[0]} {case}: {what}", flush=True)
            if time.process_time() - began > SECONDS and outcome != "hang":
                outcome = "hang"
                print(f"hang: {reader[0]} {case}", flush=True)
            if peak() - before > 512:
                counts[reader]["memory"] += 1
                print(f"memory: {reader[0]} {case}: {peak() - before} MiB more", flush=True)
            counts[reader].update(("inputs", outcome))
        if number is not None:
            break
    columns = ("inputs", "read", "refused", "traceback", "hang", "long message", "memory")
    print(f"{'':40}", *(f"{column:>12}" for column in columns))
    for reader, count in [*counts.items(), (("all",), sum(counts.values(), Counter()))]:
        print(f"{reader[0][:40]:40}", *(f"{count[column]:12,}" for column in columns))
    print(f"at most {peak():,} MiB of memory")
    bad = sum(count[column] for count in counts.values() for column in columns[3:])
    return 1 if bad else 0


def peak():
    """Returns the most memory that this process has had, in MiB."""
    import resource  # which Windows does not have

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def main(minutes: float = 5, name: str = "", number: int | None = None):
    """Reads changed files, each in its turn.

    Args:
        minutes: how long
        name: of one reader (default: all)
        number: of one case of it, as a campaign prints it
    """
    logging.disable()
    warnings.simplefilter("ignore")
    with tempfile.TemporaryDirectory() as scratch, contextlib.chdir(scratch):
        folder = Path(scratch)
        with contextlib.redirect_stdout(StringIO()):
            assert cli.main(["build", str(folder / "demo"), "--source", "demo"]) == 0
            write_valid(folder / "valid", folder / "demo")
        return campaign(folder / "valid", minutes, name, number)


if __name__ == "__main__":
    sys.exit(cyclopts.run(main))
