"""Runs on whole sentences with rows that share a sentence."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
from sentence_texts import REPEATED, write_table

from lmdiag import cli


def test_rows_that_share_a_sentence_share_its_words(
    tiny_models: dict[str, Path], tmp_path: Path
) -> None:
    data = write_table(tmp_path / "mine.csv")
    arguments = ["--model", str(tiny_models["gpt2"]), "--data", str(data), "--quiet"]
    assert cli.main(["run", *arguments, "--output", str(tmp_path)]) == 0
    (path,) = tmp_path.rglob("predictions.parquet")
    table = pq.read_table(path).to_pydict()
    assert table["id"] == [f"row-{number}" for number in range(len(REPEATED))]
    for column in ("words", "log_prob", "n_tokens"):
        assert table[column][30:] == table[column][10:20]
    for row, text in enumerate(map(str.strip, REPEATED)):  # as a table's texts are read
        words = [text[word["start"] : word["end"]] for word in table["words"][row]]
        assert words == text.split()
        total = sum(word["log_prob"] for word in table["words"][row])
        assert table["log_prob"][row] == pytest.approx(total)
