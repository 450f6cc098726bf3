"""Ten times the data take at most 13 times the processor time of every command.

Both times are of one process, so that the ratio is the same on a slow or a busy machine. What a
command does once, such as drawing a page, makes the ratio smaller.
"""

import contextlib
import io
import random
import shutil
import time
import tracemalloc
import zlib

import pandas as pd
import pytest
from hub.boards import request, write_request
from invented_runs import FakeModel, json_lines, make_run, model_info

from lmdiag import models
from lmdiag.cli import COMMANDS, main
from lmdiag.leaderboard.entries import RankedEntry, ranked
from lmdiag.results import load_run
from lmdiag.types import Answer, SentenceAnswer, WordScore, WordSpan

pytestmark = pytest.mark.slow

ROWS = (500, 5_000)
GROWTH = 13
WORDS = ("bread", "stone", "cheese", "paper", "apples", "soap", "rice", "sand")


class Quick(FakeModel):
    """A model whose answers cost next to nothing, and differ between questions."""

    info = model_info()

    def plan(self, encoded, batch_size=None):
        return [[*range(len(encoded))]]  # the journal writes every batch to the disk

    def reply(self, question, top):
        number = zlib.crc32(repr(question).encode())
        if hasattr(question, "text"):
            return SentenceAnswer(words_of(question.text, number))
        scores = {
            word: WordScore(-12 - (number >> i % 20) % 97 / 9, 1 + i, 1)
            for i, word in enumerate(question.words)
        }
        return Answer(scores, WORDS[:top], tuple(-24.0 - i for i in range(len(WORDS[:top]))))


def words_of(text, number):
    """The words of a text with invented log-probabilities."""
    spans = []
    start = 0
    for i, word in enumerate(text.split(" ")):
        spans.append(WordSpan(start, start + len(word), -1 - (number >> i % 20) % 97 / 9, 1))
        start += len(word) + 1
    return tuple(spans)


# ---- data of n rows ------------------------------------------------------------------------------


def sentences(n):
    """Sentences in the four cells of a design."""
    return {
        "item": [i // 4 for i in range(n)],
        "verb": [("amb", "unamb")[i % 2] for i in range(n)],
        "noun": [("long", "short")[i // 2 % 2] for i in range(n)],
        "sentence": [f"The man number {i // 4} saw the {WORDS[i % 4]} today." for i in range(n)],
    }


def blanks(n):
    """Good and bad words at blanks."""
    return {
        "item": [i // 2 for i in range(n)],
        "condition": [("good", "bad")[i % 2] for i in range(n)],
        "context": [f"The man number {i // 2} ate the" for i in range(n)],
        "target": [WORDS[i % 2] for i in range(n)],
        "good": [i % 2 == 0 for i in range(n)],
        "contrast": [i // 2 for i in range(n)],
    }


def wide(n):
    """Sentences of four conditions in columns of their own, which `check` has to propose."""
    of_items = {"set": [*range(n)]}
    for verb in ("amb", "unamb"):
        for noun in ("long", "short"):
            texts = [f"The {noun} man {i} saw the {verb} {WORDS[i % 8]}." for i in range(n)]
            of_items[f"{verb}_{noun}"] = texts
    return of_items


def conditions(n):
    """A hundred items with a sentence in each of n conditions, which are columns."""
    sentence = "The man {} saw the {} that number {} saw."
    texts = {f"of{k}": [sentence.format(i, WORDS[i % 8], k) for i in range(100)] for k in range(n)}
    return {"set": [*range(100)]} | texts


def columns(n):
    """Sentences beside thirty columns: labels, numbers and texts without repetition."""
    others = {f"label{i}": [WORDS[k // (i + 1) % 8] for k in range(n)] for i in range(10)}
    others |= {f"number{i}": [k * (i + 1) % 997 / 7 for k in range(n)] for i in range(10)}
    others |= {f"name{i}": [f"name {k * (i + 1)}" for k in range(n)] for i in range(10)}
    return sentences(n) | others


def responses(n):
    """Responses of ten people to each context."""
    return {
        "item": [i // 10 for i in range(n)],
        "context": [f"The man number {i // 10} ate the" for i in range(n)],
        "response": [WORDS[i * i % 7] for i in range(n)],
    }


def responses_at_one_blank(n):
    """Different responses to one context."""
    return {
        "item": [1] * n,
        "context": ["The man ate the"] * n,
        "response": [f"{WORDS[i % 8]}{i}" for i in range(n)],
    }


def reading_times(n):
    """Words of texts of 20 words, with reading times and surprisals."""
    draw = random.Random(0)
    return {
        "text": [i // 20 for i in range(n)],
        "position": [1 + i % 20 for i in range(n)],
        "half": [("first", "second")[i // 10 % 2] for i in range(n)],
        "word": [WORDS[draw.randrange(8)] for _ in range(n)],
        "surprisal": [draw.gammavariate(2, 3) for _ in range(n)],
        "rt": [draw.gauss(300, 40) for _ in range(n)],
    }


def write_data(folder, n, root):
    """Writes n rows of every kind, and what commands make of them."""
    folder.mkdir()
    tables = sentences, blanks, wide, columns, responses, responses_at_one_blank, reading_times
    for make in tables:
        pd.DataFrame(make(n)).to_csv(folder / f"{make.__name__}.csv", index=False)
    rows = pd.DataFrame(sentences(n))
    rows.to_excel(folder / "rows.xlsx", index=False)
    rows.to_json(folder / "rows.jsonl", orient="records", lines=True)
    texts = "".join(f"The man number {i} saw the bread.\n" for i in range(n))
    (folder / "lines.txt").write_text(texts)
    answers = [{"log_prob": -1 - i % 7, "top_words": WORDS} for i in range(n)]
    rows = [{"id": f"blanks-{i + 1}"} | answer for i, answer in enumerate(answers)]
    json_lines(folder / "predictions.jsonl", *rows)
    for i in range(n // 10):  # each is a file
        write_request(folder, request(f"org/model-{i}"))
    tree = shutil.copytree(root / "datasets/lmdiag/demo", folder / "tree")
    words = [{f"sentence_{x}": f"the author number {i} laugh{end}" for x, end in ENDS.items()}
             for i in range(n // 2)]  # fmt: skip
    pairs = [pair | {"label": -1} for pair in words]
    json_lines(tree / "refining-tse/data/ML/simple_agrmt_all.jsonl", *pairs)
    with contextlib.redirect_stdout(io.StringIO()):
        assert main(["build", str(folder / "built"), "--source", str(tree)]) == 0
    for i, (name, data) in enumerate({"a": "blanks", "b": "blanks", "design": "sentences"}.items()):
        make_run(folder / name, folder / f"{data}.csv", id=f"org/{name}", seed=i)


ENDS = {"good": "s", "bad": ""}
MODEL = "--model org/model --quiet"
ARGUMENTS = {
    "check": "{data}/sentences.csv",
    "check wide": "{data}/wide.csv",
    "check words": "{data}/reading_times.csv",
    "check responses": "{data}/responses.csv",
    "check columns": "{data}/columns.csv",
    "check lines": "{data}/rows.jsonl",
    "check workbook": "{data}/rows.xlsx",
    "run": f"--data {{data}}/sentences.csv {MODEL} --output {{out}}",
    "multiverse": f"--data {{data}}/blanks.csv {MODEL} --output {{out}} --knobs final-period",
    "surprisal": f"{{data}}/lines.txt {MODEL} --out {{out}}.csv",
    "score": "--task blanks --data {data}/blanks.csv --predictions {data}/predictions.jsonl",
    "fit": "--human {data}/reading_times.csv --response rt",
    "fit model": f"--human {{data}}/reading_times.csv --response rt {MODEL} --output {{out}}",
    "cloze": f"{{data}}/responses.csv {MODEL} --output {{out}}",
    "cloze one": f"{{data}}/responses_at_one_blank.csv {MODEL} --output {{out}}",
    "compare": "{data}/a {data}/b",
    "items": "{data}/design --out {out}.csv",
    "analyse": "{data}/design",
    "analyse table": "{data}/reading_times.csv --response rt --conditions half --item text",
    "report": "{data}/a --out {out}.html",
    "build": "{out} --source {data}/tree",
    "publish": "data {data}/built --repo-id org/data --dry-run",
    "leaderboard": "{data} --data {data}/built --out {out} --no-run",
}
"""Command, and what it reads where there are several kinds -> its arguments."""


@pytest.fixture(scope="module")
def data(tmp_path_factory, root):
    """Number of rows -> the folder of data with so many."""
    base = tmp_path_factory.mktemp("growth")
    for n in ROWS:
        write_data(base / str(n), n, root)
    return {n: base / str(n) for n in ROWS}


def seconds(command, data, out):
    """Processor time of a command."""
    arguments = ARGUMENTS[command].format(data=data, out=out)
    began = time.process_time()
    with (
        contextlib.redirect_stdout(io.StringIO()),
        contextlib.redirect_stderr(io.StringIO()) as messages,
    ):
        code = main([command.split()[0], *arguments.split()])
    assert code == 0, messages.getvalue()
    return time.process_time() - began


def test_every_command_that_reads_rows_is_measured():
    """`template` and `app` read none, and `submit` what a Hub has."""
    reading = {*COMMANDS} - {"template", "submit", "app"}
    assert {command.split()[0] for command in ARGUMENTS} == reading


@pytest.mark.parametrize("command", ARGUMENTS)
def test_time_grows_as_data(data, tmp_path, monkeypatch, command):
    monkeypatch.setattr(models, "load", lambda model_id, options: Quick())
    monkeypatch.chdir(tmp_path)
    few, many = ROWS
    seconds(command, data[few], tmp_path / "imports")
    short = min(seconds(command, data[few], tmp_path / f"few-{i}") for i in range(2))
    long = seconds(command, data[many], tmp_path / "many")
    if long >= GROWTH * short:  # a busy machine?
        long = min(long, seconds(command, data[many], tmp_path / "again"))
    assert long < GROWTH * short


def test_time_and_memory_grow_as_columns(tmp_path, monkeypatch):
    """Of conditions, all of which are read: a row for each must not have the texts of all."""
    monkeypatch.setitem(ARGUMENTS, "check conditions", "{data}")
    times, peaks = [], []
    for n in (25, 250):
        file = tmp_path / f"{n}.csv"
        pd.DataFrame(conditions(n)).to_csv(file, index=False)
        times.append(min(seconds("check conditions", file, tmp_path) for _ in range(2)))
        tracemalloc.start()
        seconds("check conditions", file, tmp_path)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    assert times[1] < GROWTH * times[0]
    assert peaks[1] < GROWTH * peaks[0]


def test_time_of_a_report_grows_as_models(tmp_path, monkeypatch):
    """In formats in which every figure is a cell of its own."""
    file = tmp_path / "blanks.csv"
    pd.DataFrame(blanks(100)).to_csv(file, index=False)
    runs = [make_run(tmp_path / f"{i}", file, id=f"org/model-{i}", seed=i) for i in range(30)]
    times = []
    for n in (3, 3, 30):  # the first one imports what it needs
        words = " ".join(map(str, runs[:n]))
        monkeypatch.setitem(ARGUMENTS, "report models", f"{words} --out {{out}}.tex {{out}}.docx")
        times.append(seconds("report models", "", tmp_path / f"report-{len(times)}"))
    assert times[2] < GROWTH * times[1]


def test_time_of_ranks_grows_as_entries(data):
    """Of entries with a value each, which the requests above do not have."""
    run = load_run(data[ROWS[0]] / "a")
    times = []
    for n in ROWS:
        rows = [RankedEntry(str(i), request(f"org/model-{i}"), run=run) for i in range(n)]
        for i, row in enumerate(rows):
            vars(row)["corrected_sensitivity"] = i / n
        tries = []
        for _ in range(5):
            began = time.process_time()
            ranks = [row.rank for row in ranked(rows)]
            tries.append(time.process_time() - began)
        assert ranks == [*range(1, n + 1)]
        times.append(min(tries))  # a few milliseconds, of which garbage collection can be half
    assert times[1] < 2 * GROWTH * times[0]  # caches matter in times so short
