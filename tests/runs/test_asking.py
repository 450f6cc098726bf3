"""Each batch is asked once, by any process, however often the run is interrupted.

The model here is arithmetic: its answer depends only on the question, and it records what it is
asked. Real models on real processes are in `tests/runs/test_processes.py`.
"""

import math
from collections import Counter
from contextlib import nullcontext, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from invented_runs import FakeModel

from lmdiag.runs.asking import ask, show_progress
from lmdiag.runs.journal import Journal
from lmdiag.runs.processes import Processes
from lmdiag.types import Answer, BadInput, Query, Question, SentenceAnswer, WordScore, WordSpan

QUESTIONS = [Question(Query("x" * (n % 7) + str(n)), ("bird",)) for n in range(23)]


class Arithmetic(FakeModel):
    """Log-probabilities are made of lengths; raises `error` before batch number `fails_at`."""

    def __init__(self, fails_at=None, error=BadInput):
        self.batches = []
        self._fails_at, self._error = fails_at, error

    @property
    def asked(self):
        return Counter(context for batch in self.batches for context in batch)

    def plan(self, encoded, batch_size=None):
        size = batch_size or 4
        order = sorted(range(len(encoded)), key=lambda n: -len(encoded[n].query.context))
        return [order[start : start + size] for start in range(0, len(order), size)]

    def key(self, encoded, top):
        return encoded.query.context

    def answer(self, batch, top):
        if self._fails_at == len(self.batches):
            raise self._error("NaN in the logits")
        self.batches.append([question.query.context for question in batch])
        return super().answer(batch, top)

    def reply(self, question, top):
        words = {word: WordScore(-math.sqrt(len(word) + 1), 1, 1) for word in question.words}
        tops = tuple(f"{question.query.context}{number}" for number in range(top))
        return Answer(words, tops, tuple(-float(number) for number in range(top)))


def run(model, folder, **options):
    with Journal(folder) as journal:
        return ask(model, QUESTIONS, top=5, journal=journal, **options)


def test_answers_come_in_the_order_of_the_questions(tmp_path):
    model = Arithmetic()
    answers = run(model, tmp_path)
    assert [a.top_words[0] for a in answers] == [f"{q.query.context}0" for q in QUESTIONS]
    again = ask(model, [*QUESTIONS, *QUESTIONS[:5]], top=5)  # questions with equal keys are one
    assert again == [*answers, *answers[:5]]
    assert set(model.asked.values()) == {2}


ERRORS = KeyboardInterrupt, BadInput
SIZES = st.just([4] * 5) | st.lists(st.integers(3, 9), min_size=5, max_size=5)


@settings(max_examples=25)
@given(st.lists(st.integers(0, 6), max_size=4), st.sampled_from(ERRORS), SIZES)
def test_a_run_interrupted_anywhere_asks_nothing_twice_and_ends_the_same(
    tmp_path_factory, deaths, error, sizes
):
    """With one batch size also in the same batches."""
    folder, undisturbed = tmp_path_factory.mktemp("run"), Arithmetic()
    expected = run(undisturbed, tmp_path_factory.mktemp("undisturbed"))
    models = [Arithmetic(death, error) for death in deaths] + [Arithmetic()]
    for model, size in zip(models, sizes, strict=False):
        with nullcontext() if model is models[-1] else suppress(error):
            answers = run(model, folder, batch_size=size)
    assert answers == expected
    assert sum((model.asked for model in models), Counter()) == undisturbed.asked
    if {*sizes} == {4}:
        batches = [batch for model in models for batch in model.batches]
        assert sorted(batches) == sorted(undisturbed.batches)


@pytest.mark.parametrize("together", [False, True])
def test_several_processes_ask_each_batch_once_or_all_of_them_each(tmp_path, monkeypatch, together):
    """With tensor parallelism only the first process keeps a journal; all ask the same batches."""
    with pytest.raises(BadInput, match="NaN in the logits"):
        run(Arithmetic(fails_at=1), tmp_path)
    saved, models, shared = Journal(tmp_path).read(), [Arithmetic() for _ in range(3)], []
    monkeypatch.setattr(Processes, "gather", lambda _, value: [value])
    for rank, model in enumerate(models):
        folder = tmp_path / str(rank) if rank else tmp_path
        journal = None if rank and together else Journal(folder)
        processes = Processes(alone=True, together=together)
        processes.rank, processes.count, of_first = rank, 3, iter([*shared])
        share = (lambda _, x, of=of_first: next(of)) if rank else lambda _, x: shared.append(x) or x
        monkeypatch.setattr(Processes, "share", share)
        with suppress(KeyError):  # the first process lacks the answers of the others
            ask(model, QUESTIONS, top=5, processes=processes, journal=journal)
    left = {q.query.context for q in QUESTIONS} - {*saved}
    asked = sum((model.asked for model in models), Counter())
    assert asked == Counter(dict.fromkeys(left, 3 if together else 1))


def test_a_record_with_any_flipped_bit_is_not_read_and_later_ones_are(tmp_path):
    """All others come back with every bit."""
    scores = {"bird": WordScore(-0.1 - 0.2, 12, 2), "“é\n": WordScore(None, None, 0)}
    words = (WordSpan(0, 1, None, 1), WordSpan(2, 5, -1 / 3, 2))
    first = {"a": SentenceAnswer(words)}
    second = {
        "b": Answer(scores, ("##s", ""), (-1e-300, 0.0), (None, 1 / 3)),
        "c": Answer({}, (), ()),
    }
    with Journal(tmp_path / "inner", owner="model") as journal:
        assert not journal.folder.exists()  # made only when something is saved
        journal.append(first)
        journal.append(second)
    (path,) = journal.folder.glob("*.jsonl")
    content = path.read_bytes()
    assert journal.read() == first | second
    for bit in range(8 * content.index(b"\n")):
        flipped = bytearray(content)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        assert journal.read() == second, bit
    other = b'{"d": {"words": 1}}'  # a record with the checksum, in another form
    path.write_bytes(content + b"%b %b\n" % (journal._checksum(other), other))
    assert journal.read() == first | second
    path.write_bytes(content[:-1])  # torn
    assert journal.read() == first
    assert Journal(journal.folder, owner="model b").read() == {}  # records of another run


def test_a_terminal_gets_a_bar_and_a_log_nothing(capsys, monkeypatch):
    with show_progress(3, label="org/model") as show:
        show(3)
    monkeypatch.setenv("FORCE_COLOR", "1")  # as on a terminal
    with show_progress(3, label=None) as show:
        show(3)
    assert capsys.readouterr().err == ""
    with show_progress(20, 2, "demo:[masked]", unit="sentences") as show:
        show(8)
    shown = capsys.readouterr().err
    assert all(words in shown for words in ("demo:[masked]", "8/20", "sentences/s"))
