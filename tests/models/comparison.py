"""What a family's model answers, beside what the reference says; `python -m` prints the table.

    cd tests && python -m models.comparison [family ...]

prints, for every family, the largest difference from the float64 reference in nats, for words of
one piece and of several, in both units.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import get_args

from families import FAMILIES, Family
from reference import Reference, Scored
from vocabularies import UNKNOWN

from lmdiag.models import LoadOptions, Model, load
from lmdiag.schema import Answer, Query, Question, Unit
from models import whole_words

QUERIES = (
    Query("He said “the Café on Mondays is not so quiet”, but a robin is a"),
    Query("The doctor told José that the", "was asleep in the garden."),
    Query("In the evening Zoë walks her old", ", and the cat sleeps!"),
    Query("A"),
    Query("The 日本 and the ½ chased one", "near the sea."),
)
"""Curly quotes, accents, capitals, marks after the blank, a short context, unknown letters."""

WORDS = ("bird", "tree", "student", "like", "penguin", "wrench", "Peter", "naïve", "sparrows")
"""Some are one piece and some several, in every vocabulary."""

PLAIN = "tree"
"""A word that leaves the pieces around it alone in every vocabulary."""

TOP = 8


@dataclass(frozen=True)
class Compared:
    """A model's answer beside the reference's.

    Attributes:
        query: what was asked.
        answer: of the model.
        words: word -> score by the reference, None where it cannot be spelled.
        top: the reference's most probable items as shown, with log-probabilities, two more than
            the answer has, so that the last ones can be told from a near tie.
    """

    query: Query
    answer: Answer
    words: dict[str, Scored | None]
    top: list[tuple[str | None, float]]

    def differences(self, *, several: bool) -> list[float]:
        """Returns |model - reference| in nats for words of one piece, or of several."""
        found = []
        for word, scored in self.words.items():
            if scored is not None and (len(scored.pieces) > 1) == several:
                given = self.answer.words[word].log_prob
                found.append(abs(float("nan") if given is None else given - scored.log_prob))
        return found


def ask(model: Model, questions: Sequence[Question], size: int | None = None) -> list[Answer]:
    """Returns the answers, asked in batches of a size, in the questions' order."""
    encoded = [model.encode(question) for question in questions]
    size = size or len(encoded)
    batches = [encoded[start : start + size] for start in range(0, len(encoded), size)]
    return [answer for batch in batches for answer in model.answer(batch, TOP)]


def questions() -> list[Question]:
    """Returns every query with every word."""
    return [Question(query, (*WORDS, UNKNOWN)) for query in QUERIES]


def compare(
    family: Family, folder: Path, bos: str = "auto", unit: Unit = "token"
) -> list[Compared]:
    """Asks a family's model and its reference; `top` is that of tokens in either unit."""
    model = load(str(folder), LoadOptions(bos=bos, unit=unit))  # type: ignore[arg-type]
    reference = Reference(folder, family.kind, family.convention, bos, family.attention)
    answers = ask(model, questions())
    return [
        Compared(
            question.query,
            answer,
            {word: score(reference, question.query, word, unit) for word in question.words},
            reference.top(*question.query, PLAIN, TOP + 2),
        )
        for question, answer in zip(questions(), answers, strict=True)
    ]


def score(reference: Reference, query: Query, word: str, unit: Unit) -> Scored | None:
    """Returns what the reference says of a word in a unit."""
    if unit == "word":
        return whole_words.score(reference, query, word)
    return reference.score(*query, word)


def main(names: Sequence[str]) -> None:
    """Prints the table of largest differences."""
    columns = [(unit, several) for unit in ("token", "word") for several in (False, True)]
    heads = [f"{unit}, {'several' if several else 'one'}" for unit, several in columns]
    print("|", " | ".join(["family", "kind", "tokenizer", *heads]), "|")
    print("|---" * (3 + len(heads)), "|", sep="")
    for name in names or FAMILIES:
        family = FAMILIES[name]
        with tempfile.TemporaryDirectory() as folder:
            made = family.make(Path(folder))
            found = {unit: compare(family, made, unit=unit) for unit in get_args(Unit)}
        largest = [
            max(d for each in found[unit] for d in each.differences(several=several))
            for unit, several in columns
        ]
        cells = [name, family.kind, family.convention, *(f"{value:.1e}" for value in largest)]
        print("|", " | ".join(cells), "|", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
