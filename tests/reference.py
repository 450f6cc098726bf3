"""Independent references for what a model predicts (docs/specification.md, section 2).

transformers' own model in float64, one row at a time, the whole of its logits: `Reference` for a
word at a blank, one forward pass for every piece of it; `SentenceReference` for the words of a
sentence, where a masked model gets one row per token. Nothing here is shared with `lmdiag.models`:
tokens and their places are what the tokenizer returns.
"""

import math
import re
import unicodedata
from contextlib import contextmanager
from functools import lru_cache
from itertools import pairwise
from types import SimpleNamespace
from typing import NamedTuple

from tokenizers import decoders

from lmdiag.types import WordSpan

PUNCTUATION = ".,;:!?"
JOINERS = "-'’‐‑\u200c\u200d"
CLOSE = 1e-4
"""Nats or bits by which float32 may differ between batches, processors and float64."""
LENGTHS = 3
"""Most pieces of a word that unit `word` looks for with a masked model."""


@contextmanager
def double():
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


def load(folder, kind, attention):
    """Returns the tokenizer of a folder, and its model in float64."""
    import torch
    import transformers

    name = {"masked": "MaskedLM", "causal": "CausalLM", "seq2seq": "Seq2SeqLM"}[kind]
    model_class = getattr(transformers, f"AutoModelFor{name}")
    with double():
        model = model_class.from_pretrained(
            folder,
            dtype=torch.float64,
            attn_implementation=attention,
            experts_implementation="eager",  # the others refuse float64
        ).eval()
    if hasattr(model.base_model, "set_attention_type"):  # BigBird
        model.base_model.set_attention_type("original_full")
    return transformers.AutoTokenizer.from_pretrained(folder), model


def run(model, **inputs):
    """Returns the (tokens, vocabulary) float64 log-probabilities of one row."""
    import torch

    cache = {} if "MaskedLM" in type(model).__name__ else {"use_cache": False}
    tensors = {name: torch.tensor([ids]) for name, ids in inputs.items()}
    with torch.inference_mode(), double():
        return model(**tensors, **cache).logits[0].double().log_softmax(-1)


def entropy(log_probs):
    """Returns the entropy of a distribution in bits."""
    return -float((log_probs.exp() * log_probs).sum()) / math.log(2)


class Scored(NamedTuple):
    """A word at a blank: nats, ids of its pieces, and the ranks within a tolerance of them."""

    log_prob: float
    pieces: list[int]
    ranks: range


class AtLayer:
    """A model of transformers whose logits are those of the states after a layer."""

    def __init__(self, model, layer, finish):
        self.model, self.layer, self.finish = model, layer, finish
        self.config = model.config

    def __call__(self, use_cache=None, **inputs):
        outputs = self.model(**inputs, output_hidden_states=True)
        states = outputs.get("decoder_hidden_states") or outputs.hidden_states
        if self.config.model_type == "mamba":  # transformers leaves out the embeddings
            states = (self.model.backbone.embeddings(inputs["input_ids"]), *states)
        if self.layer == len(states) - 1:  # transformers has normalised it
            return SimpleNamespace(logits=outputs.logits)
        return SimpleNamespace(logits=self.finish(self.model, states[self.layer]))


class Reference:
    """A model of one family, asked for words at a blank in float64.

    Args:
        folder: of the model.
        kind: masked, causal or seq2seq.
        convention: of its tokenizer: wordpiece, byte-level, unigram or metaspace-bpe.
        bos: auto, always or never.
        attention: implementation of the attention.
    """

    def __init__(self, folder, kind, convention, bos="auto", attention="eager"):
        self.kind, self.convention, self.bos = kind, convention, bos
        self.tokenizer, self.model = load(folder, kind, attention)
        self._read = lru_cache(100)(self._run)

    def spell(self, word):
        """Returns the pieces of a word after another one; None if it has an unknown one."""
        texts = ("a", f"a {word}")
        first, both = (self.tokenizer(text, add_special_tokens=False).input_ids for text in texts)
        assert both[: len(first)] == first
        pieces = both[len(first) :]
        unknown = self.tokenizer.unk_token_id
        return None if unknown in pieces and unknown is not None else pieces

    def score(self, context, right, word, unit="token"):
        """Returns the word's score; None for a word that the vocabulary cannot spell."""
        pieces = self.spell(word)
        if pieces is None:
            return None
        steps = [self._distribution(context, right, word, pieces, n) for n in range(len(pieces))]
        total = sum(float(step[piece]) for step, piece in zip(steps, pieces, strict=True))
        blank = self.blank(context, right, word).clone()
        blank[pieces[0]] = -math.inf  # the word's own first piece is not counted
        lowest, highest = (1 + int((blank > total + x).sum()) for x in (CLOSE, -CLOSE))
        if unit == "word" and self.kind == "masked":
            total -= math.log(LENGTHS)
        elif unit == "word":
            ends = marked(self.tokenizer, len(blank), ends_a_word, self.convention)
            after = self._distribution(context, right, word, pieces, len(pieces))
            total += float(after[ends].logsumexp(0) - steps[0][ends].logsumexp(0))
        return Scored(total, pieces, range(lowest, highest + 1))

    def blank(self, context, right, word):
        """Returns the log-probabilities at the blank: one mask, or what follows the context.

        Args:
            context, right: the text around the blank.
            word: any word that stands there without changing the pieces of the text around it.
        """
        pieces = self.spell(word)
        return self._distribution(context, right, word, pieces, 0, n_masks=1)

    def _distribution(self, context, right, word, pieces, index, n_masks=0):
        """Returns float64 log-probabilities for the piece after `pieces[:index]`.

        T5 fills the first sentinel; BART writes the whole sentence again, up to the blank.
        """
        if self.kind == "causal":
            ids = [*self._prompt(context), *pieces[:index]]
            return self._read(tuple(ids), len(ids) - 1)
        left, after = self._around(context, right, word, pieces)
        mask = self.tokenizer.mask_token_id
        if self.kind == "masked":
            masks = [mask] * ((n_masks or len(pieces)) - index)
            return self._read((*left, *pieces[:index], *masks, *after), len(left) + index)
        decoded = [self.model.config.decoder_start_token_id, *left]
        if mask is None:
            mask = self.tokenizer.convert_tokens_to_ids("<extra_id_0>")
            decoded[1:] = [mask]
        decoded += pieces[:index]
        return self._read(tuple(decoded), len(decoded) - 1, (*left, mask, *after))

    def _run(self, ids, position, source=()):
        """Runs the model on one sequence; returns float64 log-probabilities at one position."""
        inputs = {"input_ids": source, "decoder_input_ids": ids} if source else {"input_ids": ids}
        return run(self.model, **inputs)[position]

    def _around(self, context, right, word, pieces):
        """Returns the pieces on both sides of a word, from a sentence that has the word in it."""
        right = right or "."
        sentence = f"{context} {word}" if context else word
        sentence += right if right[0] in PUNCTUATION else f" {right}"
        whole = self.tokenizer(sentence).input_ids
        places = [n for n in range(len(whole)) if whole[n : n + len(pieces)] == pieces]
        assert len(places) == 1, f"{word!r} is not in the sentence once: {sentence!r}"
        return whole[: places[0]], whole[places[0] + len(pieces) :]

    def _prompt(self, context):
        """Returns the context's pieces with the special token that the rule puts before it."""
        plain = self.tokenizer(context, add_special_tokens=False).input_ids
        default = self.tokenizer(context).input_ids
        if default[-1] == self.tokenizer.sep_token_id:  # RoBERTa's end of a text
            default.pop()
        if self.bos == "never":
            return plain
        if self.bos == "auto" or len(default) > len(plain):
            return default
        return [self.tokenizer.bos_token_id, *plain]


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
        self, folder, kind, *, bos="auto", pll="within-word", convention=None, attention="eager",
        window=None,
    ):  # fmt: skip
        self.kind, self.pll, self.window = kind, pll, window
        self.tokenizer, self.model = load(folder, kind, attention)
        size = self.model.config.get_text_config().vocab_size
        self._ends = convention and marked(self.tokenizer, size, follows_blank, convention)
        # what the tokenizer puts before and after a text
        bare = self.tokenizer("the", add_special_tokens=False).input_ids
        full = self.tokenizer("the").input_ids
        start = next(i for i in range(len(full)) if full[i : i + len(bare)] == bare)
        self._opening, self._closing = full[:start], full[start + len(bare) :]
        if kind == "causal":
            first = self.tokenizer.bos_token_id
            default = [first] if first is not None and not self._opening else self._opening
            self._opening, self._closing = [] if bos == "never" else default, []

    def words(self, text, cuts=()):
        """Returns the words of a text in their order, and the entropy in bits before each of them.

        A span is represented by tokens, none of them special, or by a token before it that covers
        all of it; marks and control characters need no token.
        """
        tokens = self.split(text, cuts)
        values, before = self._causal(tokens) if self.kind == "causal" else self._masked(tokens)
        covered = {place for first, last in tokens.offsets for place in range(first, last)}
        special = set(self.tokenizer.all_special_ids)
        spans = []
        entropies = []
        for number, (start, end) in enumerate(tokens.spans):
            inside = [i for i, owner in enumerate(tokens.owners) if owner == number]
            first = before[inside[0]] if inside else None
            entropies.append(None if first is None else entropy(first))
            visible = [i for i in range(start, end) if unicodedata.category(text[i])[0] not in "MC"]
            is_known = special.isdisjoint(tokens.ids[i] for i in inside)
            if not (is_known and covered.issuperset(visible)):
                spans.append(WordSpan(start, end, None, 0))
                continue
            known = [values[i] for i in inside]
            total = None if None in known else sum(known)
            spans.append(WordSpan(start, end, total, len(inside)))
        return spans, entropies

    def split(self, text, cuts=()):
        """Returns the tokens of a text, and the word that each belongs to.

        A token belongs to the word of the first character from its beginning on that is not a
        blank; blanks at the end of the text belong to its last word.
        """
        words = [match.span() for match in re.finditer(r"\S+", text)]
        spans = []
        for start, end in words:
            spans += pairwise([start, *(cut for cut in cuts if start < cut < end), end])
        encoding = self.tokenizer(text, return_offsets_mapping=True, add_special_tokens=False)

        def owner(start, some):
            """The first span that ends after the first character that is not a blank."""
            ends = (n for n, (_, end) in enumerate(some) if text[start:end].strip())
            return next(ends, len(some) - 1)

        starts = [start for start, _ in encoding.offset_mapping]
        owners, whole = ([owner(start, some) for start in starts] for some in (spans, words))
        ids, offsets = encoding.input_ids, encoding.offset_mapping
        return Tokens(list(self._opening), ids, spans, owners, whole, offsets)

    def _causal(self, tokens):
        """Returns the log-probability of each token and its distribution; None for no text."""
        opening, ids = tokens.opening, tokens.ids
        # what is predicted in the place of each token, and in one after the last
        before = [None] * (len(ids) + 1)
        width = (self.window or len(opening) + len(ids)) - len(opening)
        stride = max(1, width // 2)
        for start in range(0, max(1, len(ids) - width + stride), stride):
            row = [*opening, *ids[start : start + width]]
            for place, distribution in enumerate(run(self.model, input_ids=row)):
                n = start + place - len(opening) + 1
                is_here = start <= n < start + width or n == len(ids)
                if is_here and before[n] is None:
                    before[n] = distribution
        values = [
            None if before[n] is None else float(before[n][token]) for n, token in enumerate(ids)
        ]
        if self._ends is not None:
            for n in range(before[0] is None, len(values)):
                if n and tokens.words[n] != tokens.words[n - 1]:
                    values[n] -= float(before[n][self._ends].logsumexp(0))
                if n + 1 == len(values) or tokens.words[n + 1] != tokens.words[n]:
                    values[n] += float(before[n + 1][self._ends].logsumexp(0))
        return values, before

    def _masked(self, tokens):
        """Returns the log-probability of each token and its distribution, the right ones masked."""
        opening, ids, closing = tokens.opening, tokens.ids, self._closing
        width = (self.window or 10**9) - len(opening) - len(closing)
        stride = max(1, width // 2)
        starts = range(0, max(1, len(ids) - width + stride), stride)
        values = []
        distributions = []
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
            distributions.append(run(self.model, input_ids=row)[len(opening) + n - start])
            values.append(float(distributions[-1][token]))
        return values, distributions


def ends_a_word(name, convention):
    """Whether an item of a vocabulary ends a word, by its name."""
    if name is None or (convention == "wordpiece" and not name.startswith("##")):
        return True
    text = name.removeprefix("##")
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


def read_bytes(name):
    """Returns the text of a byte-level item; None for bytes that are no text by themselves."""
    text = decoders.ByteLevel().decode([name])
    return None if "\ufffd" in text else text


def follows_blank(name, convention):
    """Whether an item begins with white space, by its name; so does an id without a name."""
    if name is None:
        return True
    text = read_bytes(name) if convention == "byte-level" else name
    if convention == "byte-level" and text is None:  # bytes of several characters, or of a part
        return name.startswith(("Ġ", "Ċ", "ĉ"))
    if match := re.fullmatch(r"<0x(..)>", name):
        return chr(int(match[1], 16)).isspace() and int(match[1], 16) < 128
    return bool(text) and (text[0] == "▁" or text[0].isspace())


def marked(tokenizer, size, ends, convention):
    """Returns which items of a vocabulary end a word, by one of the definitions above."""
    import torch

    names = {number: name for name, number in tokenizer.get_vocab().items()}
    names |= dict.fromkeys(tokenizer.added_tokens_decoder)
    return torch.tensor([ends(names.get(number), convention) for number in range(size)])
