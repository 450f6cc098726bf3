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
        """Returns the question about some options, which are listed as "1. ...", "2. ...".

        Args:
            context: the text that all options continue; "" where the options are sentences.
            options: targets or sentences.
        """
        lines = [f"{label}. {text}" for label, text in enumerate(options, start=1)]
        text_of_slot = {_CONTEXT: context, _OPTIONS: "\n".join(lines)}
        wording = self.of_targets if context else self.of_sentences
        # in one pass, since a context may itself contain "{options}"
        return re.sub(r"\{(?:context|options)\}", lambda slot: text_of_slot[slot[0]], wording)


@lru_cache
def parse_wording(text: str) -> Wording:
    """Returns the wording of the questions that a text contains.

    Args:
        text: one part that asks about whole sentences, with `{options}` in it. A second part may
            ask about targets of one context, with `{context}` and `{options}` in it; a line `---`
            stands between them. "" is the text of `cards/choice.txt`.

    Raises:
        BadInput: the text has other parts.

    >>> parse_wording("Which is better?\\n{options}").of_sentences
    'Which is better?\\n{options}'
    """
    # the last line break of a part is not shown to the model
    text = text or resource_path("cards", "choice.txt").read_text("utf-8").removesuffix("\n")
    parts = [part.removesuffix("\n") for part in _PART.split(text)]
    target_parts = [part for part in parts if part.count(_CONTEXT) == 1]
    sentence_parts = [part for part in parts if _CONTEXT not in part]
    has_parts = (
        len(sentence_parts) == 1
        and len(target_parts) <= 1
        and len(parts) == len(sentence_parts) + len(target_parts)
        and all(part.count(_OPTIONS) == 1 for part in parts)
    )
    if not has_parts:
        raise BadInput(
            "option choice_prompt must be a text, or a file with a text, that has {options} in it "
            "once; before it may stand another one with {context} and {options}, then a line ---"
        )
    return Wording(target_parts[0] if target_parts else "", sentence_parts[0])


def wording_of(query: QueryOptions) -> Wording | None:
    """Returns the wording of forced choices; None if the model is not asked to choose."""
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
        """The labels of the rows, which are scored at the blank: "1", "2", ..."""
        return tuple(str(number) for number in range(1, len(self.rows) + 1))


def choices(
    columns: Mapping[str, Sequence[Any]], texts: Sequence[Query | Sentence], wording: Wording
) -> Iterator[ChoiceQuestion]:
    """Yields the questions about each contrast of some rows, one for each rotation of its rows.

    The rows a, b, c of a contrast are asked in the orders abc, bca and cab, so that each row has
    each label once. The options of a question are the targets of the rows if all of them end the
    same context, and otherwise whole sentences.

    Args:
        columns: of the rows: `id`, `contrast`, and `target` where rows have a blank.
        texts: of the rows; left and right context, or the sentence.
        wording: what a question says around its options.
    """
    rows_of_contrast: dict[str, list[int]] = {}
    rows_by_id = sorted(range(len(texts)), key=lambda row: columns["id"][row])
    for row in rows_by_id:
        rows_of_contrast.setdefault(columns["contrast"][row], []).append(row)
    for rows in rows_of_contrast.values():
        first_text = texts[rows[0]]
        have_same_text = all(texts[row] == first_text for row in rows)
        if (
            have_same_text
            and isinstance(first_text, Query)
            and not first_text.right_context
            and wording.of_targets
        ):
            context = first_text.context
            option_of_row = {row: columns["target"][row] for row in rows}
        else:
            context = ""
            option_of_row = {row: _sentence(columns, texts, row) for row in rows}
        for start in range(len(rows)):
            order = (*rows[start:], *rows[:start])
            question = wording.question(context, [option_of_row[row] for row in order])
            yield ChoiceQuestion(Query(question), order)


def _sentence(
    columns: Mapping[str, Sequence[Any]], texts: Sequence[Query | Sentence], row: int
) -> str:
    """Returns the whole sentence of a row; if the row has a blank, with the target in its place.

    A period ends a sentence whose blank is its last word: "A robin is a" and "bird" give "A robin
    is a bird.". The arguments are those of `choices`, and the number of the row.
    """
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
    """Returns the answers to choices as one prediction per row.

    `labels` has, for each row, the log-probability of label j (nats) in the order in which the row
    has this label. `log_prob` is the mean over orders of the log of the probability of the row's
    label, normalised over all labels; None where a label has no probability.

    Args:
        asked: the questions about all contrasts, in each of which rows have the labels 1, 2, ...
        answers: (query, None) of each question -> its answer, which has the score of each label.
        ids: of the rows.
        setting: further fields of the predictions, e.g. perturbation.
    """
    # For each row: number of a label, from 0 -> its log-probability. And a list with an entry for
    # each order: the log of the probability of the label that the row has in it, divided by the sum
    # over all labels.
    log_prob_of_label: list[dict[int, float | None]] = [{} for _ in ids]
    log_shares: list[list[float]] = [[] for _ in ids]
    n_tokens = [0] * len(ids)
    for choice in asked:
        answer = answers[choice.query, None]
        scores = [answer.words[label] for label in choice.labels]
        log_probs = [score.log_prob for score in scores if score.log_prob is not None]
        # NaN, which makes the mean of the row NaN, too, if a label has no probability
        log_total = _log_sum(log_probs) if len(log_probs) == len(scores) else math.nan
        for label, (row, score) in enumerate(zip(choice.rows, scores, strict=True)):
            log_share = math.nan if score.log_prob is None else score.log_prob - log_total
            log_prob_of_label[row][label] = score.log_prob
            log_shares[row].append(log_share)
            n_tokens[row] = max(n_tokens[row], score.n_tokens)
    means = [math.fsum(shares_of_row) / len(shares_of_row) for shares_of_row in log_shares]
    no_values: list[Any] = [None] * len(ids)
    return Predictions(
        id=list(ids),
        log_prob=[None if math.isnan(mean) else mean for mean in means],
        rank=no_values,
        n_tokens=[*n_tokens],
        top_words=no_values,
        top_log_probs=no_values,
        labels=[
            [log_probs_of_row[label] for label in sorted(log_probs_of_row)]
            for log_probs_of_row in log_prob_of_label
        ],
        **setting,
    )


def _log_sum(values: Sequence[float]) -> float:
    """Returns the log of the sum of probabilities, from their logs.

    >>> round(_log_sum([math.log(0.25), math.log(0.5)]), 6) == round(math.log(0.75), 6)
    True
    """
    highest = max(values)  # is subtracted first, since exp of a low log-probability is 0
    return highest + math.log(math.fsum(math.exp(value - highest) for value in values))
