"""From distributions to answers: only the few numbers that a question needs leave the device."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import accumulate
from typing import cast

import numpy as np
import torch

from lmdiag.models.agreement import agreement_values
from lmdiag.models.forward.sizes import sizes_for
from lmdiag.models.tokens.encoded_questions import EncodedQuestion
from lmdiag.models.tokens.vocabulary import Vocabulary
from lmdiag.text import truncated
from lmdiag.types import Answer, BadInput, ModelInfo, Query, WordScore


def answers(
    batch: Sequence[EncodedQuestion],
    log_probs: torch.Tensor,
    vocabulary: Vocabulary,
    top: int,
    verbs: Sequence[tuple[int, int]] | None,
) -> list[Answer]:
    """Returns the answers of a batch in unit `token`.

    Args:
        batch: the questions.
        log_probs: (reads, vocabulary), nats, the reads of all questions in order.
        vocabulary: shows the items.
        top: length of the list of the most probable items.
        verbs: (singular, plural) ids, for EW and MW of questions with a `number`; or None.
    """
    starts = [0, *accumulate(len(encoded.partials) for encoded in batch)][:-1]
    blanks = log_probs if len(starts) == len(log_probs) else log_probs[starts]
    ids, values = (found.tolist() for found in best(blanks, top))
    of_blanks = of_distributions(batch, blanks, verbs)
    piece_reads: list[tuple[int, int]] = []
    for start, encoded in zip(starts, batch, strict=True):
        read_of_partial = {
            partial: start + number for number, partial in enumerate(encoded.partials)
        }
        for pieces in filter(None, encoded.words.values()):
            partials = encoded.blank.partial_words(pieces)
            piece_reads += [
                (read_of_partial[p], piece) for p, piece in zip(partials, pieces, strict=True)
            ]
    piece_nats = iter(look_up(log_probs, piece_reads))
    all_answers = []
    for number, encoded in enumerate(batch):
        scores = dict.fromkeys(encoded.words, WordScore(None, None, 0))
        spelled = {word: pieces for word, pieces in encoded.words.items() if pieces is not None}
        nats = [[next(piece_nats) for _ in pieces] for pieces in spelled.values()]
        totals = [math.fsum(nats_of_word) for nats_of_word in nats]
        counts_above = _count_above(blanks[number], totals)
        for word, nats_of_word, total, n_above in zip(
            spelled, nats, totals, counts_above, strict=True
        ):
            # the first piece of a word is more probable than the word, but does not compete with it
            if len(nats_of_word) > 1 and nats_of_word[0] > total:
                n_above -= 1
            scores[word] = WordScore(total, 1 + n_above, len(nats_of_word))
        top_words = [vocabulary.show(token, bare=encoded.bare) for token in ids[number]]
        all_answers.append(
            Answer(scores, tuple(top_words), tuple(values[number]), *of_blanks[number])
        )
    return all_answers


def refuse_nan(queries: Sequence[Query], log_probs: torch.Tensor, info: ModelInfo) -> None:
    """Raises `BadInput` naming the first query whose distribution has NaN or infinite logits.

    Both make all of a context's log-probabilities (reads, vocabulary) NaN, so that it shows in the
    first one. `queries` are what each read belongs to.
    """
    for query, broken in zip(queries, log_probs[:, 0].isnan().tolist(), strict=True):
        if broken:
            raise nan_error(info, f"context {truncated(query.context)!r}")


def nan_error(info: ModelInfo, text: str) -> BadInput:
    """Returns the error of a model whose logits for a text are NaN or infinite."""
    remedy = "it runs in float32 already, so its weights or its code are broken"
    if info.dtype not in ("float32", "float64"):
        remedy = "try --dtype float32"
    problem = f"gives NaN or infinite logits for the {text}: nothing can be scored"
    return BadInput(f"model {info.id} {problem}; {remedy}")


def best(log_probs: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the most probable items and their log-probabilities, best first, ties by id.

    `torch.topk` does not define which of equal values it takes and in which order.

    Args:
        log_probs: (blanks, vocabulary).
        top: how many; the whole vocabulary if that is smaller.

    Returns:
        ids and log-probabilities, both (blanks, top).
    """
    n_items = log_probs.shape[-1]
    top = min(top, n_items)
    topk = log_probs.topk(min(top + 1, n_items))
    ids = topk.indices[:, :top].contiguous()
    values = topk.values[:, :top].contiguous()
    tied = (topk.values[:, 1:] == topk.values[:, :-1]).any(-1).nonzero()[:, 0]
    for number in tied.tolist():
        ids[number] = _first_of_ties(log_probs[number], top)
        values[number] = log_probs[number, ids[number]]
    return ids, values


def _first_of_ties(log_probs: torch.Tensor, top: int) -> torch.Tensor:
    """Returns the ids of the most probable items of one distribution, ties by id."""
    least = log_probs.topk(top).values[-1]
    ids = (log_probs >= least).nonzero()[:, 0]  # ascending
    return ids[log_probs[ids].sort(descending=True, stable=True).indices[:top]]


def of_distributions(
    batch: Sequence[EncodedQuestion], blanks: torch.Tensor, verbs: Sequence[tuple[int, int]] | None
) -> list[tuple[tuple[float | None, ...] | None, float | None]]:
    """Returns EW and MW, and the entropy, of each blank: `Answer.agreement` and `Answer.entropy`.

    Args:
        batch: the questions.
        blanks: (questions, vocabulary) log-probabilities, nats.
        verbs: (singular, plural) ids; None for neither EW nor MW.
    """
    numbers = [encoded.question.number for encoded in batch]
    agreement: list[tuple[float | None, ...] | None] = [None] * len(batch)
    if verbs is not None and any(numbers):
        values = agreement_values(verbs, blanks, [number == "plural" for number in numbers])
        agreement = [pair if number else None for number, pair in zip(numbers, values, strict=True)]
    bits: list[float | None] = [None] * len(batch)
    if any(encoded.question.entropy for encoded in batch):
        bits = [*entropies(blanks).tolist()]
    return [*zip(agreement, bits, strict=True)]


def entropies(log_probs: torch.Tensor) -> torch.Tensor:
    """Returns the (distributions,) entropies over tokens in bits: -sum p log2 p, with 0 for p = 0.

    Args:
        log_probs: (distributions, vocabulary), nats, whose type the result has.
    """
    size = sizes_for(log_probs.device.type).entropies
    least = torch.finfo(log_probs.dtype).min  # 0 times -inf is not defined
    parts = []
    for start in range(0, len(log_probs), size):
        chunk = log_probs[start : start + size]
        parts.append((chunk.exp() * chunk.clamp(min=least)).sum(-1))
    return torch.cat(parts).clamp(max=0.0) / -math.log(2)


def look_up(log_probs: torch.Tensor, reads: Sequence[tuple[int, int]]) -> list[float]:
    """Returns single log-probabilities: (read, token) of each."""
    index = torch.tensor(reads, dtype=torch.long, device=log_probs.device).view(-1, 2)
    return cast("list[float]", log_probs[index[:, 0], index[:, 1]].tolist())


def _count_above(blank: torch.Tensor, totals: Sequence[float]) -> list[int]:
    """Returns how many items at a blank are more probable than each of some words."""
    words = torch.tensor(totals, dtype=blank.dtype, device=blank.device)
    if blank.device.type == "cpu":  # NumPy counts ten times as fast, in the processor's cache
        items = blank.numpy()
        return [int(np.count_nonzero(items > word)) for word in words.numpy()]
    return cast("list[int]", (blank > words[:, None]).count_nonzero(-1).tolist())
