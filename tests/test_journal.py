"""The journal gives back what was saved whole, and nothing else."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.runs.journal import Journal
from lmdiag.types import Answer, WordScore

LOG_PROBS = st.floats(max_value=0.0, allow_nan=False, allow_infinity=False)
SCORES = st.builds(WordScore, st.none() | LOG_PROBS, st.none() | st.integers(1), st.integers(0, 9))
ANSWERS = st.builds(
    Answer,
    words=st.dictionaries(st.text(min_size=1), SCORES, max_size=3),
    top_words=st.lists(st.text(), max_size=5).map(tuple),
    top_log_probs=st.lists(LOG_PROBS, max_size=5).map(tuple),
    agreement=st.none() | st.lists(st.none() | st.floats(0, 1), max_size=4).map(tuple),
)
BATCHES = st.lists(st.dictionaries(st.integers(0, 99), ANSWERS, min_size=1, max_size=3), max_size=4)


def answer(value: float) -> Answer:
    return Answer({"bird": WordScore(value, 1, 1)}, ("bird",), (value,))


def save(folder: Path, *batches: dict[int, Answer], rank: int = 0, owner: str = "") -> None:
    with Journal(folder, rank, owner) as journal:
        for batch in batches:
            journal.append(batch)


@given(batches=BATCHES)
def test_every_bit_of_an_answer_comes_back(
    tmp_path_factory: pytest.TempPathFactory, batches: list[dict[int, Answer]]
) -> None:
    folder = tmp_path_factory.mktemp("journal") / "inner"
    save(folder, *batches)
    assert folder.exists() == bool(batches)  # made only when something is saved
    assert Journal(folder).read() == {n: a for batch in batches for n, a in batch.items()}


def test_a_record_with_any_flipped_bit_is_not_read_and_later_ones_are(tmp_path: Path) -> None:
    save(tmp_path, {0: answer(-1.0)}, {1: answer(-2.0)}, owner="model")
    (path,) = tmp_path.glob("*.jsonl")
    content = path.read_bytes()
    record = content.index(b"\n")
    for bit in range(8 * record):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert Journal(tmp_path, owner="model").read() == {1: answer(-2.0)}, bit
    path.write_bytes(content[:-1])  # torn
    assert Journal(tmp_path, owner="model").read() == {0: answer(-1.0)}
    assert Journal(tmp_path, owner="model b").read() == {}  # records of another run


def test_a_full_disk_raises_and_keeps_what_was_saved(tmp_path: Path) -> None:
    save(tmp_path, {0: answer(-1.0)})
    full = Journal(tmp_path)
    full._path = Path("/dev/full")
    with pytest.raises(OSError, match="No space left on device") as caught:
        full.append({1: answer(-2.0)})
    assert caught.value.errno == errno.ENOSPC
    assert Journal(tmp_path).read() == {0: answer(-1.0)}
