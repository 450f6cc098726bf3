"""An independent reference for the words of sentences (docs/specification.md, section 2).

transformers' own model in float64, one row at a time, the whole of its logits; a masked model gets
one row per token. Nothing here is shared with `lmdiag.models`: tokens and their places are what the
tokenizer returns, and the vocabulary's word boundaries are those of `reference`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

from reference import items, load, read_bytes, run

from lmdiag.types import WordSpan


class Tokens(NamedTuple):
    """A text as the tokenizer splits it.

    Attributes:
        opening: special tokens before the text.
        ids: its own tokens.
        spans: start and end of each word, or part of a word, in characters.
        owners: number of the span that each of `ids` belongs to.
        words: number of the word that each of `ids` belongs to, wherever it is cut.
        offsets: characters that each of `ids` covers.
    """

    opening: list[int]
    ids: list[int]
    spans: list[tuple[int, int]]
    owners: list[int]
    words: list[int]
    offsets: list[tuple[int, int]]


class SentenceReference:
    """A model of one family, asked for every word of a text in float64.

    Args:
        folder: of the model.
        kind: masked or causal.
        bos: auto, always or never.
        pll: within-word or original.
        convention: of the tokenizer, see `Reference`, for unit `word`; None for unit `token`.
        attention: implementation of the attention.
        window: most tokens that the model is given, special ones included; None for all.
    """

    def __init__(
        self,
        folder: Path,
        kind: str,
        *,
        bos: str = "auto",
        pll: str = "within-word",
        convention: str | None = None,
        attention: str = "eager",
        window: int | None = None,
    ) -> None:
        self.kind, self.pll, self.window = kind, pll, window
        self.tokenizer, self.model = load(folder, kind, attention)
        self._ends = None if convention is None else self._items_that_end(convention)
        # what the tokenizer puts before and after a text
        bare = self.tokenizer("the", add_special_tokens=False).input_ids
        full = self.tokenizer("the").input_ids
        start = next(i for i in range(len(full)) if full[i : i + len(bare)] == bare)
        self._opening, self._closing = full[:start], full[start + len(bare) :]
        if kind == "causal":
            first = self.tokenizer.bos_token_id
            default = [first] if first is not None and not self._opening else self._opening
            self._opening, self._closing = [] if bos == "never" else default, []

    def words(self, text: str, cuts: tuple[int, ...] = ()) -> list[WordSpan]:
        """Returns the words of a text in their order.

        A span is represented by tokens, none of them special, or by a token before it that covers
        all of it; marks and control characters need no token.
        """
        tokens = self.split(text, cuts)
        values = self._causal(tokens) if self.kind == "causal" else self._masked(tokens)
        covered = {place for first, last in tokens.offsets for place in range(first, last)}
        special, found = set(self.tokenizer.all_special_ids), []
        for number, (start, end) in enumerate(tokens.spans):
            inside = [i for i, owner in enumerate(tokens.owners) if owner == number]
            visible = [i for i in range(start, end) if unicodedata.category(text[i])[0] not in "MC"]
            is_known = special.isdisjoint(tokens.ids[i] for i in inside)
            if not (is_known and covered.issuperset(visible)):
                found.append(WordSpan(start, end, None, 0))
                continue
            known = [values[i] for i in inside if values[i] is not None]
            total = sum(known) if len(known) == len(inside) else None
            found.append(WordSpan(start, end, total, len(inside)))
        return found

    def split(self, text: str, cuts: tuple[int, ...] = ()) -> Tokens:
        """Returns the tokens of a text, and the word that each belongs to.

        A token belongs to the word of the first character from its beginning on that is not a
        blank; blanks at the end of the text belong to its last word.
        """
        words = [match.span() for match in re.finditer(r"\S+", text)]
        spans = []
        for start, end in words:
            spans += pairwise([start, *(cut for cut in cuts if start < cut < end), end])
        encoding = self.tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)
        owners, whole = (
            [
                # the first span that ends after the first character that is not a blank
                next(
                    (n for n, (_, end) in enumerate(some) if text[start:end].strip()), len(some) - 1
                )
                for start, _ in encoding.offset_mapping
            ]
            for some in (spans, words)
        )
        ids, offsets = encoding.input_ids, encoding.offset_mapping
        return Tokens(list(self._opening), ids, spans, owners, whole, offsets)

    def _causal(self, tokens: Tokens) -> list[float | None]:
        """Returns the log-probability of each token; None where nothing stands before it."""
        opening, ids = tokens.opening, tokens.ids
        # what is predicted in the place of each token, and in one after the last
        before: list[Any] = [None] * (len(ids) + 1)
        width = (self.window or len(opening) + len(ids)) - len(opening)
        stride = max(1, width // 2)
        for start in range(0, max(1, len(ids) - width + stride), stride):
            row = [*opening, *ids[start : start + width]]
            for place, distribution in enumerate(run(self.model, input_ids=row)):
                n = start + place - len(opening) + 1
                is_here = start <= n < start + width or n == len(ids)
                if is_here and before[n] is None:
                    before[n] = distribution
        values: list[Any] = [
            None if before[n] is None else float(before[n][token]) for n, token in enumerate(ids)
        ]
        if self._ends is not None:
            for n in range(before[0] is None, len(values)):
                if n and tokens.words[n] != tokens.words[n - 1]:
                    values[n] -= float(before[n][self._ends].logsumexp(0))
                if n + 1 == len(values) or tokens.words[n + 1] != tokens.words[n]:
                    values[n] += float(before[n + 1][self._ends].logsumexp(0))
        return values

    def _masked(self, tokens: Tokens) -> list[float | None]:
        """Returns the log-probability of each token, with the right tokens masked."""
        opening, ids, closing = tokens.opening, tokens.ids, self._closing
        width = (self.window or 10**9) - len(opening) - len(closing)
        stride = max(1, width // 2)
        starts = range(0, max(1, len(ids) - width + stride), stride)
        values: list[float | None] = []
        for n, token in enumerate(ids):
            start = max(
                (s for s in starts if s <= n < s + width),
                key=lambda s: (min(n - s, min(s + width, len(ids)) - 1 - n), -s),
            )
            shown = list(ids)
            for later in range(n, len(ids)):
                same = tokens.words[later] == tokens.words[n]
                if later == n or (same and self.pll == "within-word"):
                    shown[later] = self.tokenizer.mask_token_id
            row = [*opening, *shown[start : start + width], *closing]
            values.append(float(run(self.model, input_ids=row)[len(opening) + n - start][token]))
        return values

    def _items_that_end(self, convention: str) -> Any:
        """Returns which items of the vocabulary begin with white space, or end the text."""
        import torch

        names, specials = items(self.tokenizer)
        ids = range(self.model.config.get_text_config().vocab_size)
        return torch.tensor([n in specials or follows_blank(names.get(n), convention) for n in ids])


def follows_blank(name: str | None, convention: str) -> bool:
    """Whether an item begins with white space, by its name; so does an id without a name."""
    if name is None:
        return True
    text = read_bytes(name) if convention == "byte-level" else name
    if convention == "byte-level" and text is None:  # bytes of several characters, or of a part
        return name.startswith(("Ġ", "Ċ", "ĉ"))
    if match := re.fullmatch(r"<0x(..)>", name):
        return chr(int(match[1], 16)).isspace() and int(match[1], 16) < 128
    return bool(text) and (text[0] == "▁" or text[0].isspace())


def total(words: list[WordSpan]) -> float:
    """Sums the words that have a probability; NaN where there is none."""
    known = [word.log_prob for word in words if word.log_prob is not None]
    return sum(known) if known else math.nan
