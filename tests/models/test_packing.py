"""Packs and batches: every token in its place, every question in one batch."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.models.forward.batches import plan_batches
from lmdiag.models.forward.packing import pack
from lmdiag.models.tokens.questions import EncodedQuestion, TokenRow
from lmdiag.types import Query, Question

CONTEXTS = st.lists(
    st.lists(st.integers(0, 3), min_size=1, max_size=9).map(tuple), min_size=1, max_size=12
)


@given(CONTEXTS, st.booleans(), st.integers(9, 20))
def test_every_context_sees_itself_alone(
    contexts: list[tuple[int, ...]], causal: bool, width: int
) -> None:
    packs, placed = pack(contexts, width, causal=causal)
    assert all(0 < len(one.ids) <= width for one in packs)
    assert all(one.sees(width).diagonal().all() for one in packs)  # what fills a pack up, too
    for ids, (number, places) in zip(contexts, placed, strict=True):
        one = packs[number]
        assert [one.ids[place] for place in places] == list(ids)
        assert [one.depths[place] for place in places] == list(range(len(ids)))
        sees = one.sees(width)[places]
        inside = np.ones((len(ids), len(ids)), dtype=bool)
        assert (sees[:, places] == (np.tril(inside) if causal else inside)).all()
        assert sees.sum() == (np.tril(inside) if causal else inside).sum()  # and nothing else


def test_what_is_shared_goes_together() -> None:
    """Twins in the last token cost one token more, in the pack that has their beginning."""
    twins = [(1, 2, 3, 4, 5, 6), (7, 8, 9, 10), (1, 2, 3, 4, 5, 9)]
    packs, placed = pack(twins, 8, causal=True)
    assert [len(one.ids) for one in packs] == [7, 4]
    assert [number for number, _ in placed] == [0, 1, 0]


def literal_fill(
    contexts: list[tuple[int, ...]], width: int, causal: bool
) -> tuple[list[int], list[set[tuple[int, ...]]]]:
    """Puts each context, longest first, into the first pack that has most of its beginning.

    A pack is the set of its tokens: beginnings of contexts, and of masked ones their number, too.
    """
    packs: list[set[tuple[int, ...]]] = []
    numbers = [0] * len(contexts)
    for n in sorted(range(len(contexts)), key=lambda n: (-len(contexts[n]), contexts[n])):
        ids = contexts[n] if causal else (-n, *contexts[n])
        tokens = {ids[:end] for end in range(1 if causal else 2, len(ids) + 1)}
        fitting = [(-len(p & tokens), i) for i, p in enumerate(packs) if len(p | tokens) <= width]
        numbers[n] = min(fitting)[1] if fitting else len(packs)
        if not fitting:
            packs.append(set())
        packs[numbers[n]] |= tokens
    return numbers, packs


@given(CONTEXTS, st.booleans(), st.integers(9, 20))
def test_packs_are_those_with_fewest_gaps(
    contexts: list[tuple[int, ...]], causal: bool, width: int
) -> None:
    """Literally: every width down to half is tried until the packs are full to 31/32."""
    _, placed = pack(contexts, width, causal=causal)
    narrowest = max(width // 2, *map(len, contexts))
    tried: list[tuple[int, list[int]]] = []
    while not tried or width >= narrowest:
        numbers, made = literal_fill(contexts, width, causal)
        widest = max(map(len, made))
        tried.append((len(made) * widest, numbers))
        if sum(map(len, made)) >= 31 / 32 * len(made) * widest:
            break
        width = widest - 1
    assert [number for number, _ in placed] == min(tried, key=lambda one: one[0])[1]


def encoded(contexts: list[tuple[int, ...]]) -> list[EncodedQuestion]:
    question = Question(Query(""), ())
    return [
        EncodedQuestion(question, (TokenRow(ids, (len(ids) - 1,)),), {}, False) for ids in contexts
    ]


@given(
    CONTEXTS, st.integers(1, 40), st.one_of(st.none(), st.integers(1, 5)), st.booleans(),
    st.booleans(),
)  # fmt: skip
def test_every_question_is_in_one_batch(
    contexts: list[tuple[int, ...]], budget: int, count: int | None, packed: bool, causal: bool
) -> None:
    questions = encoded(contexts)
    dealt = plan_batches(questions, budget=budget, count=count, packed=packed, causal=causal)
    assert sorted(number for batch in dealt for number in batch) == list(range(len(contexts)))
    sizes = [sum(questions[number].length for number in batch) for batch in dealt]
    assert sizes == sorted(sizes, reverse=True)
    for batch in dealt:
        if count is not None:
            assert len(batch) <= count
        elif len(batch) > 1:
            rows = [contexts[number] for number in batch]
            tree = {row[: end + 1] for row in rows for end in range(len(row))}
            blocks = sum(map(len, rows))
            padded = len(rows) * max(map(len, rows))
            if not packed:
                assert padded <= budget
            elif causal:
                assert len(tree) <= budget
            else:  # dealt evenly: at most one context beyond its share
                assert blocks <= budget + max(map(len, contexts))


def test_batches_are_a_function_of_the_questions() -> None:
    """Twins together where that is cheaper, all lengths in a pack, like lengths where padded."""
    contexts = [(1, 2, 3), (4, 5, 6), (1, 2, 7), (4, 5, 8), (9,)]
    shared = plan_batches(encoded(contexts), budget=5, count=None, packed=True, causal=True)
    assert shared == [[0, 2], [1, 3], [4]]
    mixed = plan_batches(encoded(contexts), budget=8, count=None, packed=True, causal=False)
    assert mixed == [[0, 2, 4], [1, 3]]
    plain = plan_batches(encoded(contexts), budget=6, count=None, packed=False, causal=True)
    assert plain == [[0, 1], [2, 3], [4]]
