"""Whole sentences: what `contenders` does with rows of {"sentence": text}.

Every contender scores every word of every sentence. This file needs nothing of lmdiag unless the
contender is lmdiag, so that it runs in other environments.
"""

from __future__ import annotations

import re
import signal
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from benchmarks.contenders import Bare

Row = tuple[list[int], list[tuple[int, int]]]
"""Token ids, and (position whose output is read, id of the token to be scored)."""

MINICONS_BATCH = 8
"""Sentences of a masked model: minicons reads all rows of all of them at once."""


def causal_row(bare: Bare, text: str) -> list[Row]:
    """Returns the one row of a sentence, a beginning token before it."""
    ids = bare.tokenizer(text)["input_ids"]
    bos = bare.tokenizer.bos_token_id
    ids = ids if ids[0] == bos else [bos, *ids]
    return [(ids, [(place, token) for place, token in enumerate(ids[1:])])]


def masked_rows(bare: Bare, text: str) -> list[Row]:
    """Returns a row for each token, masked with the later ones of its word."""
    encoding = bare.tokenizer(text, return_offsets_mapping=True)
    ends = [match.end() for match in re.finditer(r"\S+", text)]
    words = [
        next(n for n, last in enumerate(ends) if start < last) if start < end else None
        for start, end in encoding["offset_mapping"]
    ]
    ids = encoding["input_ids"]
    mask = bare.tokenizer.mask_token_id
    rows: list[Row] = []
    for place, word in enumerate(words):
        if word is not None:
            row = [
                mask if n >= place and words[n] == word else token for n, token in enumerate(ids)
            ]
            rows.append((row, [(place, ids[place])]))
    return rows


def bare_loop(
    bare: Bare, texts: Sequence[str], batch: int, *, everywhere: bool
) -> Callable[[], None]:
    """Rows sorted by length, in padded batches; one `log_softmax`, the wanted items gathered.

    Args:
        bare: model and tokenizer.
        texts: the sentences.
        batch: rows in a batch.
        everywhere: whether the model projects all positions to the vocabulary, as transformers
            does; else a masked model those that are read only.
    """
    import torch

    encode = masked_rows if bare.masked else causal_row

    def ask(rows: Sequence[Row]) -> None:
        width = max(len(ids) for ids, _ in rows)
        inputs = {
            "input_ids": torch.tensor([[*ids, *[0] * (width - len(ids))] for ids, _ in rows]),
            "attention_mask": torch.tensor(
                [[1] * len(ids) + [0] * (width - len(ids)) for ids, _ in rows]
            ),
        }
        reads = [(n, place, t) for n, (_, some) in enumerate(rows) for place, t in some]
        lines, places, tokens = torch.tensor(reads).T
        with torch.inference_mode():
            if everywhere:
                log_probs = bare.model(**inputs).logits.log_softmax(-1)
                log_probs[lines, places, tokens].tolist()
            else:
                states = bare.model.base_model(**inputs).last_hidden_state[lines, places]
                log_probs = bare.model.cls(states).log_softmax(-1)
                log_probs[torch.arange(len(tokens)), tokens].tolist()

    def work() -> None:
        rows = [row for text in texts for row in encode(bare, text)]
        rows.sort(key=lambda row: len(row[0]), reverse=True)
        for first in range(0, len(rows), batch):
            ask(rows[first : first + batch])

    return work


def lmdiag(model: str, texts: Sequence[str], limit: int = 0) -> Callable[[], None]:
    """A run's questions and answers: tokenising, batches, journal.

    Args:
        model: folder.
        texts: the sentences.
        limit: seconds after which the work is broken off, to see its memory; 0 for none.
    """
    from lmdiag import models
    from lmdiag.runs.asking import ask
    from lmdiag.runs.journal import Journal
    from lmdiag.types import Sentence

    loaded = models.load(model)
    sentences = [Sentence(text) for text in texts]

    def broken_off(*_: Any) -> None:
        raise TimeoutError

    def work() -> None:
        signal.signal(signal.SIGALRM, broken_off)
        signal.alarm(limit)
        try:
            with tempfile.TemporaryDirectory() as folder, Journal(Path(folder)) as journal:
                ask(loaded, sentences, top=5, journal=journal)
        except TimeoutError:
            pass
        finally:
            signal.alarm(0)

    return work


def minicons(model: str, texts: Sequence[str], batch: int, *, masked: bool) -> Callable[[], None]:
    """minicons' token scores, in the sentences' order."""
    from minicons import scorer  # type: ignore[import-not-found,unused-ignore]

    one = (scorer.MaskedLMScorer if masked else scorer.IncrementalLMScorer)(model, "cpu")
    if not hasattr(one.tokenizer, "batch_encode_plus"):  # its name before transformers 5
        one.tokenizer.batch_encode_plus = one.tokenizer.__call__
    options = {"PLL_metric": "within_word_l2r"} if masked else {"bos_token": True}
    size = MINICONS_BATCH if masked else batch

    def work() -> None:
        for first in range(0, len(texts), size):
            one.token_score([*texts[first : first + size]], **options)

    return work
