"""The journal gives back what was saved whole, and nothing else."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.runs.journal import Journal
from lmdiag.schema import Answer, WordScore

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


@given(batches=BATCHES)
def test_every_bit_of_an_answer_comes_back(
    tmp_path_factory: pytest.TempPathFactory, batches: list[dict[int, Answer]]
) -> None:
    folder = tmp_path_factory.mktemp("journal")
    expected: dict[int, Answer] = {}
    with Journal(folder) as journal:
        for batch in batches:
            journal.append(batch)
            expected.update(batch)
    assert Journal(folder).read() == expected


def answer(value: float) -> Answer:
    return Answer({"bird": WordScore(value, 1, 1)}, ("bird",), (value,))


@pytest.mark.parametrize("cut", [1, 2, 9, 30])
def test_a_torn_last_record_counts_as_never_written(tmp_path: Path, cut: int) -> None:
    with Journal(tmp_path) as journal:
        journal.append({0: answer(-1.0), 1: answer(-2.0)})
        journal.append({2: answer(-3.0)})
    (path,) = tmp_path.glob("*.jsonl")
    path.write_bytes(path.read_bytes()[:-cut])
    assert Journal(tmp_path).read() == {0: answer(-1.0), 1: answer(-2.0)}


def test_a_flipped_bit_is_noticed_and_later_records_survive(tmp_path: Path) -> None:
    with Journal(tmp_path) as journal:
        journal.append({0: answer(-1.0)})
        journal.append({1: answer(-2.0)})
    (path,) = tmp_path.glob("*.jsonl")
    content = bytearray(path.read_bytes())
    content[30] ^= 1
    path.write_bytes(bytes(content))
    assert Journal(tmp_path).read() == {1: answer(-2.0)}


def test_processes_and_sessions_write_side_by_side(tmp_path: Path) -> None:
    with Journal(tmp_path, rank=0) as one, Journal(tmp_path, rank=1) as two:
        one.append({0: answer(-1.0)})
        two.append({1: answer(-2.0)})
    with Journal(tmp_path, rank=0) as later:
        later.append({2: answer(-3.0)})
    assert set(Journal(tmp_path).read()) == {0, 1, 2}


def test_nothing_is_created_before_something_is_saved(tmp_path: Path) -> None:
    with Journal(tmp_path / "journal") as journal:
        assert journal.read() == {}
    assert not (tmp_path / "journal").exists()
