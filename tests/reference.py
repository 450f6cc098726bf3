"""An independent reference for what a model predicts at a blank (docs/specification.md, section 2).

transformers' own model in float64, one sentence at a time, the whole of its logits, one forward
pass for every piece of every word. Nothing here is shared with `lmdiag.models`.
"""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

PUNCTUATION = ".,;:!?"
JOINERS = "-'’‐‑\u200c\u200d"
LENGTHS = 3
"""Most pieces of a word that unit `word` looks for with a masked model."""


@contextmanager
def double() -> Iterator[None]:
    """Makes float64 the type of whatever a model makes on the way, and keeps it quiet."""
    import torch
    from transformers.utils import logging

    logging.disable_progress_bar()
    before = torch.get_default_dtype()
    torch.set_default_dtype(torch.float64)
    try:
        yield
    finally:
        torch.set_default_dtype(before)


def load(folder: Path, kind: str, attention: str) -> tuple[Any, Any]:
    """Returns the tokenizer of a folder, and its model in float64."""
    import torch
    import transformers

    name = {"masked": "MaskedLM", "causal": "CausalLM", "seq2seq": "Seq2SeqLM"}[kind]
    model_class = getattr(transformers, f"AutoModelFor{name}")
    with double():
        model = model_class.from_pretrained(
            folder, dtype=torch.float64, attn_implementation=attention
        ).eval()
    if hasattr(model.base_model, "set_attention_type"):  # BigBird
        model.base_model.set_attention_type("original_full")
    return transformers.AutoTokenizer.from_pretrained(folder), model


def run(model: Any, **inputs: list[int]) -> Any:
    """Returns the (tokens, vocabulary) float64 log-probabilities of one row."""
    import torch

    cache = {} if "MaskedLM" in type(model).__name__ else {"use_cache": False}
    tensors = {name: torch.tensor([ids]) for name, ids in inputs.items()}
    with torch.inference_mode(), double():
        return model(**tensors, **cache).logits[0].double().log_softmax(-1)


@dataclass(frozen=True)
class Scored:
    """A word at a blank, by the reference.

    Attributes:
        log_prob: nats.
        pieces: ids of its pieces.
        ranks: lowest and highest rank that a model within `tolerance` of the reference may give.
    """

    log_prob: float
    pieces: list[int]
    ranks: range


class Reference:
    """A model of one family, asked in float64.

    Args:
        folder: of the model.
        kind: masked, causal or seq2seq.
        convention: of its tokenizer: wordpiece, byte-level, unigram or metaspace-bpe.
        bos: auto, always or never.
        attention: implementation of the attention.
    """

    def __init__(
        self,
        folder: Path,
        kind: str,
        convention: str,
        bos: str = "auto",
        attention: str = "eager",
    ) -> None:
        self.kind = kind
        self.bos = bos
        self._known: dict[tuple[tuple[int, ...], int, tuple[int, ...]], Any] = {}
        self._ends: Any = None
        self.convention = convention
        self.tokenizer, self.model = load(folder, kind, attention)
        self.names, self.specials = items(self.tokenizer)

    def spell(self, word: str) -> list[int] | None:
        """Returns the pieces of a word after another one; None if it has an unknown one."""
        texts = ("a", f"a {word}")
        first, both = (self.tokenizer(text, add_special_tokens=False).input_ids for text in texts)
        assert both[: len(first)] == first
        pieces = both[len(first) :]
        unknown = self.tokenizer.unk_token_id
        return None if unknown in pieces and unknown is not None else pieces

    def show(self, token: int) -> str | None:
        """Returns an item as it is shown in answers; None where it is not text to be shown."""
        name = self.names.get(token)
        if token in self.specials or name is None or self.convention == "wordpiece":
            return name
        if self.convention == "byte-level":
            text = read_bytes(name)
        else:
            text = None if name.startswith("<0x") else name.replace("▁", " ")
        if text is None or not text.strip() or not text.strip().isprintable():
            return None
        return text.strip() if text.startswith(" ") else "##" + text

    def score(self, context: str, right: str, word: str, tolerance: float = 1e-5) -> Scored | None:
        """Returns the word's score; None for a word that the vocabulary cannot spell."""
        pieces = self.spell(word)
        if pieces is None:
            return None
        total = 0.0
        for index, piece in enumerate(pieces):
            total += float(self._distribution(context, right, word, pieces, index)[piece])
        blank = self.blank(context, right, word).clone()
        blank[pieces[0]] = -math.inf  # the word's own first piece is not counted
        lowest = 1 + int((blank > total + tolerance).sum())
        highest = 1 + int((blank > total - tolerance).sum())
        return Scored(total, pieces, range(lowest, highest + 1))

    def score_whole(self, context: str, right: str, word: str) -> Scored | None:
        """Returns the score of a whole word (unit `word`), by the formulas of the specification."""
        scored = self.score(context, right, word)
        if scored is None:
            return None
        if self.kind == "masked":
            return replace(scored, log_prob=scored.log_prob - math.log(LENGTHS))
        before, after = (
            self._end(self._distribution(context, right, word, scored.pieces, n))
            for n in (0, len(scored.pieces))
        )
        return replace(scored, log_prob=scored.log_prob + after - before)

    def _end(self, distribution: Any) -> float:
        """Returns the log-probability that no item follows that continues a word."""
        import torch

        if self._ends is None:
            ids = range(len(distribution))
            ends = [ends_a_word(self.names.get(n), self.convention) for n in ids]
            self._ends = torch.tensor(ends)
        return float(distribution[self._ends].logsumexp(0))

    def blank(self, context: str, right: str, word: str) -> Any:
        """Returns the log-probabilities at the blank: one mask, or what follows the context.

        Args:
            context, right: the text around the blank.
            word: any word that stands there without changing the pieces of the text around it.
        """
        pieces = self.spell(word)
        assert pieces is not None
        return self._distribution(context, right, word, pieces, 0, n_masks=1)

    def top(self, context: str, right: str, word: str, k: int) -> list[tuple[str | None, float]]:
        """Returns the k most probable items as shown, with log-probabilities; ties by id."""
        values = self.blank(context, right, word)
        order = values.sort(descending=True, stable=True).indices[:k].tolist()
        return [(self.show(token), float(values[token])) for token in order]

    def _distribution(
        self,
        context: str,
        right: str,
        word: str,
        pieces: list[int],
        index: int,
        n_masks: int | None = None,
    ) -> Any:
        """Returns float64 log-probabilities for the piece after `pieces[:index]`."""
        if self.kind == "masked":
            left, after = self._around(context, right, word, pieces)
            masks = [self.tokenizer.mask_token_id] * ((n_masks or len(pieces)) - index)
            return self._read(left + pieces[:index] + masks + after, len(left) + index)
        if self.kind == "causal":
            ids = self._prompt(context) + pieces[:index]
            return self._read(ids, len(ids) - 1)
        source, start = self._source(context, right, word, pieces)
        ids = start + pieces[:index]
        return self._read(ids, len(ids) - 1, source)

    def _read(self, ids: list[int], position: int, source: list[int] | None = None) -> Any:
        """Runs the model on one sequence; returns float64 log-probabilities at one position."""
        key = (tuple(ids), position, tuple(source or ()))
        if key not in self._known:
            if len(self._known) > 100:
                self._known.clear()
            inputs = {"input_ids": ids}
            if source is not None:
                inputs = {"input_ids": source, "decoder_input_ids": ids}
            self._known[key] = run(self.model, **inputs)[position]
        return self._known[key]

    def _around(
        self, context: str, right: str, word: str, pieces: list[int]
    ) -> tuple[list[int], list[int]]:
        """Returns the pieces on both sides of a word, from a sentence that has the word in it."""
        right = right or "."
        sentence = f"{context} {word}" if context else word
        sentence += right if right[0] in PUNCTUATION else f" {right}"
        whole = self.tokenizer(sentence).input_ids
        places = [
            start
            for start in range(len(whole) - len(pieces) + 1)
            if whole[start : start + len(pieces)] == pieces
        ]
        assert len(places) == 1, f"{word!r} is not in the sentence once: {sentence!r}"
        return whole[: places[0]], whole[places[0] + len(pieces) :]

    def _prompt(self, context: str) -> list[int]:
        """Returns the context's pieces with the special token that the rule puts before it."""
        plain = self.tokenizer(context, add_special_tokens=False).input_ids
        default = self.tokenizer(context).input_ids
        if self.bos == "never":
            return plain
        if self.bos == "auto" or len(default) > len(plain):
            return default
        return [self.tokenizer.bos_token_id, *plain]

    def _source(
        self, context: str, right: str, word: str, pieces: list[int]
    ) -> tuple[list[int], list[int]]:
        """Returns the encoder's input and what the decoder has read before the blank.

        T5 fills the first sentinel; BART writes the whole sentence again, up to the blank.
        """
        left, after = self._around(context, right, word, pieces)
        begin = self.model.config.decoder_start_token_id
        if self.tokenizer.mask_token_id is not None:
            return [*left, self.tokenizer.mask_token_id, *after], [begin, *left]
        sentinel = self.tokenizer.convert_tokens_to_ids("<extra_id_0>")
        return [*left, sentinel, *after], [begin, sentinel]


def ends_a_word(name: str | None, convention: str) -> bool:
    """Whether an item of a vocabulary ends a word, by its name."""
    if name is None or (convention == "wordpiece" and not name.startswith("##")):
        return True
    text: str | None = name.removeprefix("##")
    if name.startswith("<0x"):
        text = chr(int(name[3:5], 16)) if int(name[3:5], 16) < 128 else None
    elif convention == "byte-level" and name[0] == "Ġ":
        return True
    elif convention == "byte-level":
        text = read_bytes(name) if name[0] not in "<[" else name
    if not text or text[0] == "\ufffd":  # a part of a character, or what became of one
        return False
    letters = [unicodedata.category(character)[0] in "LMN" for character in text[:2]]
    if text[0] in JOINERS:
        return len(text) > 1 and not letters[1]
    return not letters[0]


def items(tokenizer: Any) -> tuple[dict[int, str], set[int]]:
    """Returns the names of a vocabulary's items by id, and the ids of its added tokens."""
    names = {number: name for name, number in tokenizer.get_vocab().items()}
    return names, set(tokenizer.added_tokens_decoder)


def byte_characters() -> list[str]:
    """Returns the characters by which byte-level vocabularies write the bytes (GPT-2's table)."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [byte for byte in range(256) if byte not in shown]
    return [chr(byte if byte in shown else 256 + hidden.index(byte)) for byte in range(256)]


BYTES = byte_characters()


def read_bytes(name: str) -> str | None:
    """Returns the text of a byte-level item; None for bytes that are no text by themselves."""
    try:
        return bytes(BYTES.index(character) for character in name).decode("utf-8")
    except UnicodeDecodeError:
        return None
