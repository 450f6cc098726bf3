"""From distributions to answers: only the few numbers that a question needs leave the device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import cast

import numpy as np
import torch

from lmdiag.models.agreement import Verbs
from lmdiag.models.tokens.questions import EncodedQuestion
from lmdiag.models.tokens.vocabulary import Vocabulary
from lmdiag.text import truncated
from lmdiag.types import Answer, BadInput, Query, WordScore


def answers(
    batch: Sequence[EncodedQuestion],
    log_probs: torch.Tensor,
    vocabulary: Vocabulary,
    top: int,
    verbs: Verbs | None,
) -> list[Answer]:
    """Returns the answers of a batch in unit `token`.

    Args:
        batch: the questions.
        log_probs: (reads, vocabulary), nats, the reads of all questions in order.
        vocabulary: shows the items.
        top: length of the list of the most probable items.
        verbs: for EW and MW of questions with a `number`; None outside agreement.
    """
    starts = [0, *accumulate(len(encoded.partials) for encoded in batch)][:-1]
    blanks = log_probs if len(starts) == len(log_probs) else log_probs[starts]
    ids, values = best(blanks, top)
    return [
        Answer(
            words=dict(zip(encoded.words, scores, strict=True)),
            top_words=tuple(vocabulary.show(token, bare=encoded.bare) for token in tokens),
            top_log_probs=tuple(nats),
            agreement=ew_and_mw,
        )
        for encoded, scores, tokens, nats, ew_and_mw in zip(
            batch,
            _word_scores(batch, starts, log_probs, blanks),
            ids.tolist(),
            values.tolist(),
            verb_agreement(batch, blanks, verbs),
            strict=True,
        )
    ]


def refuse_nan(queries: Sequence[Query], log_probs: torch.Tensor, model_id: str) -> None:
    """Raises `BadInput` naming the first query whose distribution has NaN or infinite logits.

    Both make all of a context's log-probabilities NaN, so that it shows in the first one.

    Args:
        queries: what each read belongs to.
        log_probs: (reads, vocabulary), nats.
        model_id: for the message.
    """
    for query, broken in zip(queries, log_probs[:, 0].isnan().tolist(), strict=True):
        if broken:
            raise BadInput(
                f"model {model_id} gives NaN or infinite logits for the context "
                f"{truncated(query.context)!r}: nothing can be scored; try --dtype float32"
            )


def best(log_probs: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the most probable items and their log-probabilities, best first, ties by id.

    `torch.topk` does not define which of equal values it takes and in which order.

    Args:
        log_probs: (blanks, vocabulary).
        top: how many; the whole vocabulary if that is smaller.

    Returns:
        ids and log-probabilities, both (blanks, top).
    """
    size = log_probs.shape[-1]
    top = min(top, size)
    values, ids = log_probs.topk(min(top + 1, size), dim=-1)
    tied_at_end = (values[:, top:] == values[:, top - 1 : top]).any(-1)
    values, ids = values[:, :top], ids[:, :top]
    ids, order = ids.sort(dim=-1)
    values, order = values.gather(-1, order).sort(dim=-1, descending=True, stable=True)
    ids = ids.gather(-1, order)
    for blank in tied_at_end.nonzero()[:, 0].tolist():
        tied = (log_probs[blank] >= values[blank, -1]).nonzero()[:, 0]
        order = log_probs[blank, tied].sort(descending=True, stable=True).indices[:top]
        ids[blank] = tied[order]
    return ids, torch.gather(log_probs, -1, ids)


def verb_agreement(
    batch: Sequence[EncodedQuestion], blanks: torch.Tensor, verbs: Verbs | None
) -> list[tuple[float | None, ...] | None]:
    """Returns EW and MW of each question that has a number, None for the others.

    Args:
        batch: the questions.
        blanks: (questions, vocabulary), the distribution at each blank.
        verbs: None outside agreement.
    """
    values: list[tuple[float | None, ...] | None] = [None] * len(batch)
    numbers = [encoded.question.number for encoded in batch]
    asked = [index for index, number in enumerate(numbers) if number is not None]
    if verbs is not None and asked:
        plural = [numbers[index] == "plural" for index in asked]
        some = blanks if len(asked) == len(batch) else blanks[asked]
        for index, ew_and_mw in zip(asked, verbs.agreement(some, plural), strict=True):
            values[index] = ew_and_mw
    return values


def look_up(log_probs: torch.Tensor, reads: Sequence[tuple[int, int]]) -> list[float]:
    """Returns single log-probabilities: (read, token) of each."""
    index = torch.tensor(reads, dtype=torch.long, device=log_probs.device).view(-1, 2)
    return cast("list[float]", log_probs[index[:, 0], index[:, 1]].tolist())


def _word_scores(
    batch: Sequence[EncodedQuestion],
    starts: Sequence[int],
    log_probs: torch.Tensor,
    blanks: torch.Tensor,
) -> list[list[WordScore]]:
    """Returns each question's word scores, in the order of its words."""
    words = [[*encoded.words.values()] for encoded in batch]
    reads = []
    for start, encoded in zip(starts, batch, strict=True):
        number = {partial: start + n for n, partial in enumerate(encoded.partials)}
        for word in filter(None, encoded.words.values()):
            partials = encoded.blank.partial_words(word)
            reads += [(number[some], piece) for some, piece in zip(partials, word, strict=True)]
    values = iter(look_up(log_probs, reads))
    pieces = [[[next(values) for _ in word or ()] for word in some] for some in words]
    totals = [[math.fsum(word) if word else None for word in some] for some in pieces]
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


def _count_above(blanks: torch.Tensor, totals: Sequence[Sequence[float | None]]) -> list[list[int]]:
    """Returns, for each word of each question, how many items are more probable than the word."""
    width = max(map(len, totals), default=0)
    rows = [[math.inf if total is None else total for total in words] for words in totals]
    padded = [row + [math.inf] * (width - len(row)) for row in rows]
    table = torch.tensor(padded, dtype=blanks.dtype, device=blanks.device).view(len(rows), width)
    if blanks.device.type == "cpu":  # NumPy counts ten times as fast, in the processor's cache
        each = zip(blanks.numpy(), table.numpy(), rows, strict=True)
        return [[int(np.count_nonzero(p > v)) for v in row[: len(some)]] for p, row, some in each]
    counts = torch.stack([(blanks > table[:, [word]]).count_nonzero(-1) for word in range(width)])
    columns = cast("list[list[int]]", counts.T.tolist())
    return [row[: len(words)] for row, words in zip(columns, totals, strict=True)]
