"""Runs on whole sentences: several processes, killed ones, rows that share a sentence."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq
import pytest
from launched import ROOT, alone, finished, launch, torchrun
from sentence_texts import SENTENCES

from lmdiag import cli

TEXTS = [*SENTENCES[:30], *SENTENCES[10:20]]
"""Ten of the rows have a sentence that another row has."""


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("data") / "mine.csv"
    ids = [f"row-{number}" for number in range(len(TEXTS))]
    pd.DataFrame({"id": ids, "sentence": TEXTS}).to_csv(path, index=False)
    return path


def files(output: Path) -> list[bytes]:
    return [path.read_bytes() for path in sorted(output.rglob("predictions.parquet"))]


def test_rows_that_share_a_sentence_share_its_words(
    data: Path, tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    arguments = ["--model", str(tiny_models["gpt2"]), "--data", str(data), "--quiet"]
    assert cli.main(["run", *arguments, "--output", str(tmp_path)]) == 0
    (path,) = tmp_path.rglob("predictions.parquet")
    table = pq.read_table(path).to_pydict()
    assert table["id"] == [f"row-{number}" for number in range(len(TEXTS))]
    for column in ("words", "log_prob", "n_tokens"):
        assert table[column][30:] == table[column][10:20]
    for row, text in enumerate(map(str.strip, TEXTS)):  # as a table's texts are read
        words = [text[word["start"] : word["end"]] for word in table["words"][row]]
        assert words == text.split()
        total = sum(word["log_prob"] for word in table["words"][row])
        assert table["log_prob"][row] == pytest.approx(total)


@pytest.mark.slow
@pytest.mark.parametrize("options", [[], ["--unit", "word"], ["--pll", "original"]], ids="".join)
def test_the_files_are_the_same_to_the_last_byte(
    data: Path, tiny_models: dict[str, Path], tmp_path: Path, options: list[str]
) -> None:
    models = list(tiny_models.values())
    if "word" in options:
        models = [tiny_models["gpt2"]]
    arguments = ["--model", *models, "--data", data, "--batch-size", "4", *options, "--output"]
    assert alone("run", *arguments, tmp_path / "1")[0] == 0
    launch(torchrun(2), *arguments, tmp_path / "2")
    one, two = files(tmp_path / "1"), files(tmp_path / "2")
    assert len(one) == len(models)
    assert one == two


@pytest.mark.slow
@pytest.mark.parametrize("name", ["bert", "gpt2"])
def test_killed_runs_end_as_undisturbed_ones(
    data: Path, tiny_models: dict[str, Path], tmp_path: Path, name: str
) -> None:
    run = ["--model", tiny_models[name], "--data", data, "--quiet", "--batch-size", "2"]
    program = [sys.executable, str(ROOT / "tests/killed_runs.py"), "--folder", str(tmp_path)]
    done = finished([*program, "--kills", "10", "--seed", "1"], "--", *run)
    assert done.returncode == 0, done.stderr
    facts = json.loads(done.stdout)
    assert facts["same"] == facts["runs"] >= 1
    assert facts["left"] == facts["twice"] == 0
    assert facts["midway"] >= 1
