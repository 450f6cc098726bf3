"""Forced choice: contrasts as questions that list their rows, and answers back to the rows.

A contrast of m rows is asked m times. Its rows are listed with the labels 1 to m, in m rotations of
the order of their ids (both orders of two), and the answer is the probability of each label after
the question. So every row has every label once.

Sources: Hu and Levy (2023) for metalinguistic prompts; Zheng et al. (2024) for the selection bias
of option labels, which the mean over orders takes out.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

from lmdiag.asking.protocol import Predictions, QueryOptions
from lmdiag.files.reading import resource_path
from lmdiag.types import Answer, BadInput, Query, Sentence

_CONTEXT, _OPTIONS = "{context}", "{options}"
_PART = re.compile(r"^-{3,}\n", re.MULTILINE)


@dataclass(frozen=True)
class Wording:
    """What a question says around its options.

    Attributes:
        of_targets: asks about targets of one context, with `{context}` and `{options}` in it; ""
            where targets are shown in their sentences, too.
        of_sentences: asks about sentences, with `{options}` in it.
    """

    of_targets: str
    of_sentences: str

    def question(self, context: str, options: Sequence[str]) -> str:
        """Returns the question; `context` is "" where the options are sentences."""
        listed = "\n".join(f"{label}. {text}" for label, text in enumerate(options, start=1))
        values = {_CONTEXT: context, _OPTIONS: listed}
        wording = self.of_targets if context else self.of_sentences
        return re.sub(r"\{(?:context|options)\}", lambda slot: values[slot[0]], wording)


@lru_cache
def parse_wording(text: str) -> Wording:
    """Returns the wording of a text, or of `cards/choice.txt` for "".

    Raises:
        BadInput: not a part for sentences, and at most one for targets; a part without `{options}`.
    """
    text = text or resource_path("cards", "choice.txt").read_text("utf-8").removesuffix("\n")
    parts = [part.removesuffix("\n") for part in _PART.split(text)]
    targets = [part for part in parts if part.count(_CONTEXT) == 1]
    sentences = [part for part in parts if _CONTEXT not in part]
    is_whole = len(sentences) == 1 and len(targets) == len(parts) - 1 < 2
    if not is_whole or any(part.count(_OPTIONS) != 1 for part in parts):
        raise BadInput(
            "option choice_prompt must be a text, or a file with a text, that has {options} in it "
            "once; before it may stand another one with {context} and {options}, then a line ---"
        )
    return Wording(targets[0] if targets else "", sentences[0])


def wording_of(query: QueryOptions) -> Wording | None:
    """Returns the wording of the choices; None where probabilities are read."""
    return parse_wording(query.choice_prompt) if query.elicitation == "choice" else None


@dataclass(frozen=True)
class ChoiceQuestion:
    """The question about a contrast in one order of its rows.

    Attributes:
        query: the question, before the blank where the label is read.
        rows: positions of the rows with the labels 1, 2, ...
    """

    query: Query
    rows: tuple[int, ...]

    @property
    def labels(self) -> tuple[str, ...]:
        """What is scored at the blank."""
        return tuple(str(number) for number in range(1, len(self.rows) + 1))


def choices(
    columns: Mapping[str, Sequence[Any]], texts: Sequence[Query | Sentence], wording: Wording
) -> Iterator[ChoiceQuestion]:
    """Yields every question about the contrasts of some rows.

    Targets that differ at the end of one context are listed after it; all other alternatives are
    whole sentences.

    Args:
        columns: of the rows: `id`, `contrast`, and `target` where rows have a blank.
        texts: of the rows; left and right context, or the sentence.
        wording: of the questions.
    """
    rows_of: dict[str, list[int]] = {}
    for row in sorted(range(len(texts)), key=lambda row: columns["id"][row]):
        rows_of.setdefault(columns["contrast"][row], []).append(row)
    for rows in rows_of.values():
        context = ""
        targets = {row: _sentence(columns, texts, row) for row in rows}
        example = texts[rows[0]]
        is_shared = len({texts[row] for row in rows}) == 1 and wording.of_targets != ""
        if isinstance(example, Query) and is_shared and not example.right_context:
            context = example.context
            targets = {row: columns["target"][row] for row in rows}
        for start in range(len(rows)):
            order = (*rows[start:], *rows[:start])
            text = wording.question(context, [targets[row] for row in order])
            yield ChoiceQuestion(Query(text), order)


def _sentence(
    columns: Mapping[str, Sequence[Any]], texts: Sequence[Query | Sentence], row: int
) -> str:
    """The whole sentence of a row; a period ends one whose blank is its last word."""
    text = texts[row]
    if isinstance(text, Sentence):
        return text.text
    target = columns["target"][row]
    before, after = text.around(target, ".")
    return f"{before}{target}{after}"


def choice_predictions(
    asked: Sequence[ChoiceQuestion],
    answers: Mapping[Any, Answer],
    ids: Sequence[str],
    **setting: Any,
) -> Predictions:
    """Returns what was answered as one prediction per row.

    `labels` has, for each row, the log-probability of label j (nats) in the order in which the row
    has this label. `log_prob` is the mean over orders of the log of the probability of the row's
    label, normalised over all labels; None where a label has no probability.

    Args:
        asked: all choices.
        answers: (query, None) of each -> its answer.
        ids: of the rows.
        setting: further fields of the predictions.
    """
    labels: list[dict[int, float | None]] = [{} for _ in ids]
    shares: list[list[float]] = [[] for _ in ids]
    n_tokens = [0] * len(ids)
    for choice in asked:
        scores = [answers[choice.query, None].words[label] for label in choice.labels]
        nats = [score.log_prob for score in scores if score.log_prob is not None]
        total = _log_sum(nats) if len(nats) == len(scores) else math.nan
        for number, (row, score) in enumerate(zip(choice.rows, scores, strict=True)):
            labels[row][number] = score.log_prob
            shares[row].append(math.nan if score.log_prob is None else score.log_prob - total)
            n_tokens[row] = max(n_tokens[row], score.n_tokens)
    means = [math.fsum(values) / len(values) for values in shares]
    nothing: list[Any] = [None] * len(ids)
    return Predictions(
        id=list(ids),
        log_prob=[None if math.isnan(mean) else mean for mean in means],
        rank=nothing,
        n_tokens=[*n_tokens],
        top_words=nothing,
        top_log_probs=nothing,
        labels=[[numbers[number] for number in sorted(numbers)] for numbers in labels],
        **setting,
    )


def _log_sum(values: Sequence[float]) -> float:
    """The log of the sum of probabilities, from their logs."""
    most = max(values)
    return most + math.log(math.fsum(math.exp(value - most) for value in values))
