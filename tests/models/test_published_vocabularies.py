"""Every row of the three diagnostics, with two published vocabularies, against the reference."""

from __future__ import annotations

from pathlib import Path

import pytest
from families import FAMILIES
from reference import Reference

from lmdiag import stimuli
from lmdiag.models import load
from lmdiag.schema import DIAGNOSTICS, Query, Question
from models.comparison import ask

NEUTRAL = "elephant"
"""A word that stands in no context, and leaves the pieces around it alone."""


@pytest.fixture(scope="module")
def asked(data_dir: Path) -> list[Question]:
    """The 198 distinct contexts with the words of their 326 rows."""
    words: dict[Query, dict[str, None]] = {}
    for task in DIAGNOSTICS:
        columns = stimuli.load(str(data_dir), task).columns()
        for context, right, target in zip(
            columns["context"], columns["right_context"], columns["target"], strict=True
        ):
            words.setdefault(Query(context, right), {})[target] = None
    return [Question(query, tuple(found)) for query, found in words.items()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "published", "size", "n_several"),
    [("bert", "bert-base-uncased", 30522, 0), ("gpt2", "gpt2", 50257, 11)],
)
def test_all_rows(
    family: str,
    published: str,
    size: int,
    n_several: int,
    upstream: Path,
    asked: list[Question],
    tmp_path: Path,
) -> None:
    source = upstream.parent / "tokenizers" / published
    if not source.is_dir():
        pytest.skip(f"no published tokenizer at {source}")

    made = FAMILIES[family]
    folder = made.make(tmp_path / published, (source, size))
    reference = Reference(folder, made.kind, made.convention)
    answers = ask(load(str(folder)), asked, 32)
    n_tokens = []
    for question, answer in zip(asked, answers, strict=True):
        for word, given in answer.words.items():
            scored = reference.score(*question.query, word)
            assert scored is not None
            assert given.log_prob == pytest.approx(scored.log_prob, abs=1e-5)
            assert given.n_tokens == len(scored.pieces)
            assert given.rank in scored.ranks
            n_tokens.append(given.n_tokens)
        top = reference.top(*question.query, NEUTRAL, 8)
        assert answer.top_log_probs == pytest.approx([value for _, value in top], abs=1e-5)
    assert len(asked) == 198
    assert len(n_tokens) == 326
    assert sum(n > 1 for n in n_tokens) == n_several
