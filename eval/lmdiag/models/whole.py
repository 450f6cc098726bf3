"""Questions about whole words: which beginnings of words are read in any case."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from lmdiag.models.frontier import State
from lmdiag.models.rows import Asker, Blank, Encoded, Step
from lmdiag.models.words import Pieces
from lmdiag.schema import Question


@dataclass(frozen=True)
class WholeWords(Encoded):
    """A question about whole words.

    Attributes:
        blank: makes further rows.
        states: what each row reads the continuation of, shorter ones first.
    """

    blank: Blank
    states: tuple[State, ...]

    @cached_property
    def asked(self) -> dict[State, tuple[int, ...]]:
        """For each state, the items that candidates go on with."""
        found: dict[State, dict[int, None]] = {}
        for step in chain.from_iterable(filter(None, self.words.values())):
            found.setdefault(self.states[step.read], {})[step.token] = None
        return {state: tuple(tokens) for state, tokens in found.items()}


def whole_words(
    question: Question, asker: Asker, *, masks: Iterable[int], ends: bool
) -> WholeWords:
    """Returns the rows that every search begins with: the blank and the candidates' pieces.

    Args:
        question: the question.
        asker: turns it into rows.
        masks: for masked models, the numbers of masks that words are looked for under; else empty.
        ends: whether it is read too what follows a candidate's last piece.
    """
    query = question.query
    spelt = {word: asker.spell(word, query) for word in question.words}
    roots = [State((), total) for total in masks] or [State(())]
    needed = (
        state
        for pieces in filter(None, spelt.values())
        for state in _beginnings(pieces, told=bool(roots[0].total), ends=ends)
    )
    states = tuple(sorted(dict.fromkeys((*roots, *needed)), key=lambda state: len(state.filled)))
    numbers = {state: number for number, state in enumerate(states)}
    words = {
        word: tuple(
            Step(numbers[state], piece)
            for state, piece in zip(
                _beginnings(pieces, told=bool(roots[0].total), ends=False), pieces, strict=True
            )
        )
        if pieces
        else None
        for word, pieces in spelt.items()
    }
    blank = asker.blank(query)
    rows = tuple(blank.row(*state) for state in states)
    return WholeWords(question, rows, words, blank, states)


def _beginnings(pieces: Pieces, *, told: bool, ends: bool) -> Iterator[State]:
    """Yields the states before each piece of a word, and the one after the last if `ends`."""
    for n in range(len(pieces) + ends):
        yield State(pieces[:n], len(pieces) if told else 0)
