"""Files of the original code: every line is that of its row, and errors name file and line."""

from __future__ import annotations

import csv
import hashlib
import json
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from lmdiag import stimuli
from lmdiag.cli import main
from lmdiag.results.external import read_external
from lmdiag.results.original_code import is_original
from lmdiag.types import BadInput

MODEL = "bert-base-uncased"
TASKS = ("cprag102", "role88", "neg136")


# ---- the format, stated independently ------------------------------------------------------------


def table(source: Path, name: str) -> Iterator[list[str]]:
    """Rows of a TSV file below its header."""
    (path,) = source.glob(f"lm-diagnostics/datasets/*/{name}.tsv")
    with path.open(encoding="utf-8", newline="") as file:
        yield from list(csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE))[1:]


def asked(source: Path, test: str) -> list[tuple[str, str]]:
    """Context and target, line by line, as the original code writes them for a model."""
    if test == "cprag":
        rows = [(f"{row[1]} {row[2]}", row[3:6]) for row in table(source, "CPRAG-102")]
        return [(context, target) for context, targets in rows for target in targets]
    if test == "role":
        return [(row[1].strip(), row[4].strip()) for row in table(source, "ROLE-88")]
    lines = []
    for row in table(source, "NEG-136-" + test.removeprefix("neg").upper()):
        affirmative, negative, true, false = (cell.strip() for cell in row[1:5])
        for context, word in (
            (affirmative, true), (negative, true), (affirmative, false), (negative, false),
        ):  # fmt: skip
            article = "an" if word[0] in "aeiou" else "a"
            lines.append((context.replace("(a|an)", article), word))
    return lines


def probability(context: str, target: str) -> float:
    """A probability that is different for any other context or target."""
    return int(hashlib.sha256(f"{context}|{target}".encode()).hexdigest()[:8], 16) / 2**32


def top(context: str) -> list[str]:
    """Five words that are different for any other context."""
    return [f"{word}{len(context)}" for word in [*context.split()[-4:], context.split()[0]]]


def write_files(folder: Path, source: Path, model: str = MODEL, **kinds: bool) -> Path:
    """The eight files of a model."""
    folder.mkdir(exist_ok=True)
    for test in ("cprag", "role", "negsimp", "negnat"):
        lines = asked(source, test)
        words = "".join(f"{' '.join(top(context))}\n" for context, _ in lines)
        numbers = "".join(f"{probability(*line)}\n" for line in lines)
        if kinds.get("words", True):
            (folder / f"modelpreds-{test}-{model}").write_text(words, "utf-8")
        if kinds.get("numbers", True):
            (folder / f"modeltgtprobs-{test}-{model}").write_text(numbers, "utf-8")
    return folder


@pytest.fixture(scope="module")
def demo(root: Path) -> Path:
    return root / "datasets/lmdiag/demo"


@pytest.fixture
def files(demo: Path, tmp_path: Path) -> Path:
    """The files of one model for the demo data."""
    return write_files(tmp_path / "files", demo)


# ---- valid files ---------------------------------------------------------------------------------


def check(files: Path, source: Path, data: Path) -> None:
    for task in TASKS:
        rows = stimuli.load(str(data), task)
        [part] = read_external(files, rows).runs
        columns = rows.columns()
        assert part.id == columns["id"]
        pairs = zip(columns["context"], columns["target"], strict=True)
        assert part.log_prob == [math.log(probability(*pair)) for pair in pairs]
        assert part.top_words == [top(context) for context in columns["context"]]
        assert part.rank == part.n_tokens == [None] * len(rows)


def test_every_line_is_that_of_its_row(files: Path, demo: Path, demo_dir: Path) -> None:
    check(files, demo, demo_dir)


def test_every_line_of_the_published_items_is_that_of_its_row(
    upstream: Path, data_dir: Path, tmp_path: Path
) -> None:
    files = write_files(tmp_path / "files", upstream)
    lines = {path.name.split("-")[1]: path.read_text().count("\n") for path in files.iterdir()}
    assert lines == {"cprag": 102, "role": 88, "negsimp": 72, "negnat": 64}
    check(files, upstream, data_dir)


def test_a_file_stands_for_all_of_its_model(files: Path, demo: Path, demo_dir: Path) -> None:
    write_files(files, demo, model="other-model", numbers=False)
    rows = stimuli.load(str(demo_dir), "neg136")
    for name in ("modelpreds-negnat", "modeltgtprobs-cprag"):
        [part] = read_external(files / f"{name}-{MODEL}", rows).runs
        assert None not in part.log_prob
    [part] = read_external(files / "modelpreds-negsimp-other-model", rows).runs
    assert part.log_prob == [None] * len(rows)


@pytest.mark.parametrize(
    ("kind", "present", "absent"),
    [("words", "accuracy@1", "sensitivity"), ("numbers", "sensitivity", "accuracy@1")],
)
def test_one_kind_of_file_is_enough(
    demo: Path, demo_dir: Path, tmp_path: Path, capsys: Any, kind: str, present: str, absent: str
) -> None:
    kinds = {"words": False, "numbers": False} | {kind: True}
    files = write_files(tmp_path / "files", demo, **kinds)
    options = ["--task", "role88", "--predictions", str(files), "--data", str(demo_dir), "--json"]
    assert main(["score", *options]) == 0
    out, said = capsys.readouterr()
    document = json.loads(out)
    assert present in document["measures"]
    assert absent not in document["measures"]
    assert "not computed" in said


def test_nan_is_a_word_without_probability_and_0_an_impossible_one(
    files: Path, demo_dir: Path
) -> None:
    path = files / f"modeltgtprobs-role-{MODEL}"
    lines = path.read_text().splitlines()
    path.write_text("\n".join(["nan", "0.0", "1e-3", *lines[3:]]))  # no newline at the end
    [part] = read_external(files, stimuli.load(str(demo_dir), "role88")).runs
    assert part.log_prob[:3] == [None, -math.inf, math.log(1e-3)]


def test_such_files_are_recognised_by_their_names(tmp_path: Path) -> None:
    for name in ("modelpreds-cprag-x", "modeltgtprobs-negsimp-org-model-1"):
        assert is_original(tmp_path / name)
    for name in ("modelpreds-cprag", "modelpreds-blimp-x", "p.jsonl", "xmodelpreds-role-x", "."):
        assert not is_original(tmp_path / name)


# ---- errors --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "line", "message"),
    [
        ("modeltgtprobs", "high", "'high' is not a number; write one probability"),
        ("modeltgtprobs", "", "'' is not a number"),
        ("modeltgtprobs", "1.5", "1.5 is not a probability; it must be from 0 to 1"),
        ("modeltgtprobs", "-2.3", "-2.3 is not a probability"),
        ("modeltgtprobs", "0.1 0.2", "'0.1 0.2' is not a number"),
        ("modelpreds", "  ", "no word; write the most probable words"),
    ],
)
def test_a_malformed_line_is_named_by_file_and_number(
    files: Path, demo_dir: Path, kind: str, line: str, message: str
) -> None:
    path = files / f"{kind}-negnat-{MODEL}"
    lines = path.read_text().splitlines()
    path.write_text("\n".join([lines[0], line, *lines[2:]]))
    with pytest.raises(BadInput) as raised:
        read_external(files, stimuli.load(str(demo_dir), "neg136"))
    assert str(raised.value).startswith(f"{path}:2: {message}")
    assert "\n" not in str(raised.value)


def test_other_encodings_and_other_numbers_of_lines(files: Path, demo_dir: Path) -> None:
    rows = stimuli.load(str(demo_dir), "cprag102")
    path = files / f"modelpreds-cprag-{MODEL}"
    text = path.read_text("utf-8")
    path.write_bytes(text.encode().replace(b"\n", b" caf\xe9\n", 1))
    with pytest.raises(BadInput, match=r":1: not UTF-8"):
        read_external(files, rows)
    path.write_text(text + "one more\n", "utf-8")
    n = len(rows)
    with pytest.raises(BadInput, match=f"has {n + 1} lines, but the data have {n} rows"):
        read_external(files, rows)


def test_files_that_are_missing_or_of_several_models(
    files: Path, demo: Path, demo_dir: Path
) -> None:
    neg, role = (stimuli.load(str(demo_dir), task) for task in ("neg136", "role88"))
    (files / f"modelpreds-negnat-{MODEL}").unlink()
    with pytest.raises(BadInput, match=r"modelpreds-negnat-\S+ is missing: neg136 is negsimp and"):
        read_external(files, neg)
    write_files(files, demo, model="another")
    with pytest.raises(BadInput, match=rf"several models \(another, {MODEL}\): name one of"):
        read_external(files, neg)
    with pytest.raises(BadInput, match="does not exist"):
        read_external(files / "modelpreds-cprag-third", neg)
    for path in files.glob("*-role-*"):
        path.unlink()
    for path in (files, files / f"modelpreds-cprag-{MODEL}"):
        with pytest.raises(BadInput, match="nothing for role88: put modelpreds-role-"):
            read_external(path, role)


def test_tasks_and_settings_that_such_files_do_not_have(files: Path, demo_dir: Path) -> None:
    with pytest.raises(BadInput, match="are for cprag102, role88, neg136, not for agreement"):
        read_external(files, stimuli.load(str(demo_dir), "agreement"))
    with pytest.raises(BadInput, match="has no settings: leave --setting shuf out"):
        read_external(files, stimuli.load(str(demo_dir), "cprag102"), "shuf")
