"""From distributions to answers: only the few numbers that a question needs leave the device."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
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
        log_probs: (reads, vocabulary), nats, the reads of all questions in order; the first read of
            each question is the distribution at its blank.
        vocabulary: shows the items.
        top: length of the list of the most probable items.
        verbs: (singular, plural) ids, for EW and MW of questions with a `number`; or None.
    """
    # questions of 1, 3 and 2 reads have the first reads 0, 1 and 4
    first_reads = [0, *accumulate(len(encoded.partials) for encoded in batch)][:-1]
    has_only_blanks = len(first_reads) == len(log_probs)  # then the table need not be copied
    blanks = log_probs if has_only_blanks else log_probs[first_reads]
    top_ids, top_nats = (tensor.tolist() for tensor in most_probable(blanks, top))
    measures_of_blanks = agreement_and_entropy(batch, blanks, verbs)
    piece_reads: list[tuple[int, int]] = []
    for encoded, first_read in zip(batch, first_reads, strict=True):
        piece_reads += _piece_reads(encoded, first_read)
    piece_nats = iter(look_up(log_probs, piece_reads))
    all_answers = []
    for number, encoded in enumerate(batch):
        scores = _word_scores(encoded, piece_nats, blanks[number])
        top_words = [vocabulary.show(token, bare=encoded.bare) for token in top_ids[number]]
        agreement, entropy = measures_of_blanks[number]
        all_answers.append(
            Answer(scores, tuple(top_words), tuple(top_nats[number]), agreement, entropy)
        )
    return all_answers


def _piece_reads(encoded: EncodedQuestion, first_read: int) -> list[tuple[int, int]]:
    """Returns (read, token id) of every piece of the scorable words of a question, word by word.

    The read is the number of the distribution that gives the piece its probability, after the
    pieces before it; `first_read` is the number of the question's first one.
    """
    read_of_partial = {
        partial: read for read, partial in enumerate(encoded.partials, start=first_read)
    }
    piece_reads = []
    for pieces in filter(None, encoded.words.values()):
        partials = encoded.blank.partial_words(pieces)
        for partial, piece in zip(partials, pieces, strict=True):
            piece_reads.append((read_of_partial[partial], piece))
    return piece_reads


def _word_scores(
    encoded: EncodedQuestion, piece_nats: Iterator[float], blank: torch.Tensor
) -> dict[str, WordScore]:
    """Returns the score of each candidate word of a question.

    Args:
        encoded: the question.
        piece_nats: log-probabilities of the pieces in the order of `_piece_reads`; those of the
            question are taken from it.
        blank: (vocabulary,) log-probabilities at the blank, for the ranks.
    """
    scores = dict.fromkeys(encoded.words, WordScore(None, None, 0))  # for unscorable words
    spelled = {word: pieces for word, pieces in encoded.words.items() if pieces is not None}
    nats = [[next(piece_nats) for _ in pieces] for pieces in spelled.values()]
    totals = [math.fsum(nats_of_word) for nats_of_word in nats]
    counts_above = _count_above(blank, totals)
    for word, nats_of_word, total, n_above in zip(spelled, nats, totals, counts_above, strict=True):
        # the first piece of a word is more probable than the word, but does not compete with it
        if len(nats_of_word) > 1 and nats_of_word[0] > total:
            n_above -= 1
        scores[word] = WordScore(total, 1 + n_above, len(nats_of_word))
    return scores


def refuse_nan(queries: Sequence[Query], log_probs: torch.Tensor, info: ModelInfo) -> None:
    """Raises `BadInput` naming the first query that has NaN or infinite logits.

    Args:
        queries: the query of each read.
        log_probs: (reads, vocabulary).
        info: of the model, for the message.
    """
    # one logit that is NaN or +inf makes all log-probabilities of its read NaN, also the first one
    is_broken = log_probs[:, 0].isnan().tolist()
    for query, broken in zip(queries, is_broken, strict=True):
        if broken:
            raise nan_error(info, f"context {truncated(query.context)!r}")


def nan_error(info: ModelInfo, text: str) -> BadInput:
    """Returns the error of a model whose logits for a text are NaN or infinite.

    `text` is for the message, for example "context 'The old man'".
    """
    remedy = "it runs in float32 already, so its weights or its code are broken"
    if info.dtype not in ("float32", "float64"):
        remedy = "try --dtype float32"
    problem = f"gives NaN or infinite logits for the {text}: nothing can be scored"
    return BadInput(f"model {info.id} {problem}; {remedy}")


def most_probable(log_probs: torch.Tensor, top: int) -> tuple[torch.Tensor, torch.Tensor]:
    """Returns the most probable items and their log-probabilities, best first, ties by id.

    `torch.topk` does not define which of equal values it takes and in which order, so that
    distributions with ties are sorted again.

    Args:
        log_probs: (blanks, vocabulary).
        top: how many; the whole vocabulary if that is smaller.

    Returns:
        ids and log-probabilities, both (blanks, top).
    """
    n_items = log_probs.shape[-1]
    top = min(top, n_items)
    topk = log_probs.topk(min(top + 1, n_items))  # one more: the last one may be tied with it
    ids = topk.indices[:, :top].contiguous()
    values = topk.values[:, :top].contiguous()
    has_ties = (topk.values[:, 1:] == topk.values[:, :-1]).any(-1)
    for number in has_ties.nonzero()[:, 0].tolist():
        ids[number] = _most_probable_by_id(log_probs[number], top)
        values[number] = log_probs[number, ids[number]]
    return ids, values


def _most_probable_by_id(log_probs: torch.Tensor, top: int) -> torch.Tensor:
    """Returns the (top,) ids of the most probable items of one distribution, ties by id."""
    least = log_probs.topk(top).values[-1]
    ids = (log_probs >= least).nonzero()[:, 0]  # ascending; more than `top` if the last are tied
    order = log_probs[ids].sort(descending=True, stable=True).indices  # stable: ties stay by id
    return ids[order[:top]]


def agreement_and_entropy(
    batch: Sequence[EncodedQuestion], blanks: torch.Tensor, verbs: Sequence[tuple[int, int]] | None
) -> list[tuple[tuple[float | None, ...] | None, float | None]]:
    """Returns EW and MW, and the entropy in bits, of each blank.

    They are `Answer.agreement` (None for a question without a `number`) and `Answer.entropy` (None
    for all questions if none of the batch asks for it).

    Args:
        batch: the questions.
        blanks: (questions, vocabulary) log-probabilities, nats.
        verbs: (singular, plural) ids; None for neither EW nor MW.
    """
    numbers = [encoded.question.number for encoded in batch]
    agreement: list[tuple[float | None, ...] | None] = [None] * len(batch)
    if verbs is not None and any(numbers):
        # values of questions without a number are computed, too, and left out below
        all_values = agreement_values(verbs, blanks, [number == "plural" for number in numbers])
        agreement = [
            values if number else None for number, values in zip(numbers, all_values, strict=True)
        ]
    bits: list[float | None] = [None] * len(batch)
    if any(encoded.question.entropy for encoded in batch):
        bits = list(entropies(blanks).tolist())
    return list(zip(agreement, bits, strict=True))


def entropies(log_probs: torch.Tensor) -> torch.Tensor:
    """Returns the (distributions,) entropies over tokens in bits: -sum p log2 p, with 0 for p = 0.

    Args:
        log_probs: (distributions, vocabulary), nats, whose type the result has.
    """
    size = sizes_for(log_probs.device.type).entropies  # computed at a time, to bound the memory
    least = torch.finfo(log_probs.dtype).min  # in place of -inf: 0 times -inf is not defined
    parts = []
    for start in range(0, len(log_probs), size):
        chunk = log_probs[start : start + size]
        parts.append((chunk.exp() * chunk.clamp(min=least)).sum(-1))
    # sums of p ln p are at most 0, but for rounding; the divisor makes them bits
    return torch.cat(parts).clamp(max=0.0) / -math.log(2)


def look_up(log_probs: torch.Tensor, reads: Sequence[tuple[int, int]]) -> list[float]:
    """Returns the log-probability of each (read, token id); `log_probs` is (reads, vocabulary)."""
    index = torch.tensor(reads, dtype=torch.long, device=log_probs.device).view(-1, 2)
    return cast("list[float]", log_probs[index[:, 0], index[:, 1]].tolist())


def _count_above(blank: torch.Tensor, totals: Sequence[float]) -> list[int]:
    """Returns for each word how many items at a blank are more probable than it.

    Args:
        blank: (vocabulary,) log-probabilities of the items.
        totals: log-probability of each word.
    """
    word_nats = torch.tensor(totals, dtype=blank.dtype, device=blank.device)
    if blank.device.type == "cpu":  # NumPy counts ten times as fast, in the processor's cache
        item_nats = blank.numpy()
        return [int(np.count_nonzero(item_nats > nats)) for nats in word_nats.numpy()]
    return cast("list[int]", (blank > word_nats[:, None]).count_nonzero(-1).tolist())
