"""From distributions to answers: only the few numbers that a question wants leave the device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate, islice
from typing import TYPE_CHECKING, cast

from lmdiag.models.rows import Encoded, shorten
from lmdiag.models.vocabulary import Vocabulary
from lmdiag.schema import Answer, BadInput, Query, WordScore

if TYPE_CHECKING:
    import torch

    from lmdiag.models.verbs import Verbs


def answers(
    batch: Sequence[Encoded],
    log_probs: torch.Tensor,
    vocabulary: Vocabulary,
    top: int,
    verbs: Verbs | None,
) -> list[Answer]:
    """Returns the answers of a batch.

    Args:
        batch: the questions.
        log_probs: (reads, vocabulary), nats, the reads of all questions in order.
        vocabulary: shows the items.
        top: length of the list of the most probable items.
        verbs: for EW and MW of questions with a `number`; None outside agreement.
    """
    blanks = log_probs[_starts(batch)]
    ids, values = best(blanks, top)
    scores = score(batch, log_probs, blanks)
    agreement = ew_and_mw(batch, blanks, verbs)
    return [
        Answer(
            words=dict(zip(encoded.words, words, strict=True)),
            top_words=tuple(
                vocabulary.show(token, opening=not encoded.question.query.context)
                for token in tokens
            ),
            top_log_probs=tuple(nats),
            agreement=found,
        )
        for encoded, words, tokens, nats, found in zip(
            batch, scores, ids.tolist(), values.tolist(), agreement, strict=True
        )
    ]


def refuse_nan(queries: Sequence[Query], log_probs: torch.Tensor, model_id: str) -> None:
    """Raises `BadInput` naming the first query with a distribution that is none.

    NaN or positive infinity among the logits make all of a context's log-probabilities NaN, so
    that it shows in the first one.

    Args:
        queries: what each read belongs to.
        log_probs: (reads, vocabulary), nats.
        model_id: for the message.
    """
    broken = log_probs[:, 0].isnan().tolist()
    if not any(broken):
        return
    query = next(query for query, bad in zip(queries, broken, strict=True) if bad)
    raise BadInput(
        f"model {model_id} gives NaN or infinite logits for the context "
        f"{shorten(query.context)!r}: nothing can be scored; try --dtype float32"
    )


def best(log_probs: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the most probable items and their log-probabilities, best first, ties by id.

    `torch.topk` leaves open which of equal values it takes and in which order.

    Args:
        log_probs: (blanks, vocabulary).
        top: how many; the whole vocabulary if that is smaller.

    Returns:
        ids and log-probabilities, both (blanks, top).
    """
    import torch

    size = log_probs.shape[-1]
    top = min(top, size)
    values, ids = log_probs.topk(min(top + 1, size), dim=-1)
    crowded = (values[:, top:] == values[:, top - 1 : top]).any(-1)  # the next one is as good
    values, ids = values[:, :top], ids[:, :top]
    ids, order = ids.sort(dim=-1)
    values, order = values.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    ids = ids.gather(-1, order)
    for blank in crowded.nonzero()[:, 0].tolist():
        tied = (log_probs[blank] >= values[blank, -1]).nonzero()[:, 0]
        order = log_probs[blank, tied].sort(descending=True, stable=True).indices[:top]
        ids[blank] = tied[order]
    return ids, torch.gather(log_probs, -1, ids)


def score(
    batch: Sequence[Encoded], log_probs: torch.Tensor, blanks: torch.Tensor
) -> list[list[WordScore]]:
    """Returns each question's word scores, in the order of its words.

    Args:
        batch: the questions.
        log_probs: (reads, vocabulary), see `answers`.
        blanks: (questions, vocabulary), the first read of each.
    """
    pieces = _pieces(batch, log_probs)
    totals = [[math.fsum(word) if word else None for word in words] for words in pieces]
    above = _count_above(blanks, totals)
    return [
        [
            WordScore(None, None, 0)
            if total is None
            else WordScore(total, 1 + count - (len(word) > 1 and word[0] > total), len(word))
            for word, total, count in zip(*columns, strict=True)
        ]
        for columns in zip(pieces, totals, above, strict=True)
    ]


def ew_and_mw(
    batch: Sequence[Encoded], blanks: torch.Tensor, verbs: Verbs | None
) -> list[tuple[float | None, ...] | None]:
    """Returns EW and MW of each question that has a number, None for the others.

    Args:
        batch: the questions.
        blanks: (questions, vocabulary), the distribution at each blank.
        verbs: None outside agreement.
    """
    found: list[tuple[float | None, ...] | None] = [None] * len(batch)
    numbers = [encoded.question.number for encoded in batch]
    asked = [index for index, number in enumerate(numbers) if number is not None]
    if verbs is not None and asked:
        plural = [numbers[index] == "plural" for index in asked]
        for index, values in zip(asked, verbs.agreement(blanks[asked], plural), strict=True):
            found[index] = values
    return found


def _pieces(batch: Sequence[Encoded], log_probs: torch.Tensor) -> list[list[list[float]]]:
    """Returns the log-probabilities of the pieces of each word of each question."""
    import torch

    steps = [
        (start + step.read, step.token)
        for encoded, start in zip(batch, _starts(batch), strict=True)
        for word in encoded.words.values()
        for step in word or ()
    ]
    places = torch.tensor(steps, dtype=torch.long, device=log_probs.device).view(-1, 2)
    values = iter(log_probs[places[:, 0], places[:, 1]].tolist())
    return [
        [list(islice(values, len(word or ()))) for word in encoded.words.values()]
        for encoded in batch
    ]


def _count_above(blanks: torch.Tensor, totals: Sequence[Sequence[float | None]]) -> list[list[int]]:
    """Returns, for each word of each question, how many items are more probable than the word."""
    import torch

    width = max(map(len, totals), default=0)
    padded = [[math.inf if total is None else total for total in words] for words in totals]
    table = torch.tensor(
        [words + [math.inf] * (width - len(words)) for words in padded],
        dtype=blanks.dtype,
        device=blanks.device,
    )
    counts = [_count_true(blanks > table[:, [word]]) for word in range(width)]
    return [
        [column[number] for column in counts[: len(words)]] for number, words in enumerate(totals)
    ]


def _count_true(table: torch.Tensor) -> list[int]:
    """Returns how many of each row are true; on the CPU, NumPy counts ten times as fast."""
    import numpy as np

    if table.device.type == "cpu":
        return [int(np.count_nonzero(row)) for row in table.numpy()]
    return cast("list[int]", table.count_nonzero(-1).tolist())


def _starts(batch: Sequence[Encoded]) -> list[int]:
    """Returns the number of each question's first read."""
    lengths = [encoded.n_reads for encoded in batch]
    return [0, *accumulate(lengths)][:-1]
