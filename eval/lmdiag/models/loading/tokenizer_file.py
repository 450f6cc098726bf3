"""The tokenizer of a checkpoint's own `tokenizer.json`, where transformers makes another one of it.

transformers 5 builds the tokenizers of some classes (GPT-2, RoBERTa, CodeGen, Qwen2, BERT and
others) anew from the vocabulary: a normalizer, a pre-tokenizer or special tokens around a text that
stand in the file are replaced by those of the class. A model that was trained with the file reads
other tokens then.
"""

from __future__ import annotations

import json
from copy import copy
from importlib.metadata import version
from itertools import islice
from pathlib import Path
from typing import Any

from tokenizers import Encoding, Tokenizer
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from lmdiag.text import visible
from lmdiag.types import BadInput

PROBES = (
    "John saw Mary", "room 1234", "a naïve café", "it's “odd”, isn't it?", "one\ntwo\tthree",
    "two  blanks", "IT'S \"So\" (very) well-known...", "12,345 and 3.14", "cafe\u0301s", "ﬁne № 5",
    "我喜欢 dogs", "dogs 🙂!", "line\n\n  end", "x_1=f(y);",
)  # fmt: skip
"""Case, digits, accents, punctuation, white space, scripts without spaces, compatibility forms.
Their first words show a leading blank."""

_PLAIN = ("I saw a dog", "The dog saw me", "a bird is a dog")
"""Texts of plain words, each of which has tokens with its characters."""

_N_WORDS = 20

_ADDED = ("add_bos_token", "add_eos_token")
"""Entries of tokenizer_config.json that replace the special tokens of the file."""


def use_tokenizer_file(
    model_id: str, tokenizer: PreTrainedTokenizerBase, file: Path | None
) -> str | None:
    """Has a tokenizer read texts as its file says, where both readings of probe texts differ.

    The texts are `PROBES` and words of the vocabulary.

    Args:
        model_id: for the warning.
        tokenizer: as transformers made it; is changed.
        file: its tokenizer.json; None without one.

    Returns:
        a warning with both readings of the first text in which they differ; None for none.
    """
    makes_another = type(tokenizer).__init__ is not PreTrainedTokenizerFast.__init__
    if file is None or not tokenizer.is_fast or not makes_another:
        return None
    file_tokenizer = Tokenizer.from_file(str(file))
    used: Tokenizer = tokenizer.backend_tokenizer
    for backend in (file_tokenizer, used):
        backend.no_padding()
        backend.no_truncation()
    has_own_ends = not any(name in tokenizer.init_kwargs for name in _ADDED)
    texts = (*PROBES, *_words_of(file_tokenizer))
    first_text = next(
        (text for text in texts if _differs(file_tokenizer, used, text, ends=has_own_ends)), None
    )
    if first_text is None:
        return None
    before = used.encode(first_text)
    used.model = file_tokenizer.model
    used.normalizer = file_tokenizer.normalizer
    used.pre_tokenizer = file_tokenizer.pre_tokenizer
    used.decoder = file_tokenizer.decoder or used.decoder
    if has_own_ends:
        used.post_processor = file_tokenizer.post_processor
    name = type(tokenizer).__name__
    return (
        f"model {model_id}: {name} of transformers {version('transformers')} does not read texts "
        f"as tokenizer.json says, which is used: {first_text!r} is "
        f"{_tokens(used.encode(first_text))}, not {_tokens(before)}"
    )


def check_offsets(model_id: str, tokenizer: PreTrainedTokenizerBase) -> str | None:
    """Has a tokenizer tell the characters of all tokens of plain words, or refuses it.

    Files whose pre-tokenizer adds a space before a text, and whose post-processor trims spaces as
    if it did not, give the first word no characters; where a space is added before each punctuation
    mark, words behind one lose their first letter. So spaces are not trimmed, which needs no other
    change: they belong to the word behind them anyhow.

    Args:
        model_id: for messages.
        tokenizer: is changed.

    Returns:
        a warning where a plain word had no characters; None for none.

    Raises:
        BadInput: tokens have no characters.
    """
    backend: Tokenizer = tokenizer.backend_tokenizer
    text = _without_characters(backend)
    if backend.post_processor is not None:
        step = json.loads(backend.post_processor.__getstate__())
        untrimmed = copy(backend.post_processor)
        untrimmed.__setstate__(json.dumps(_untrimmed(step)).encode())
        backend.post_processor = untrimmed
    text_after = _without_characters(backend)
    head = f"model {model_id}: its tokenizer.json gives tokens of {text!r} no characters"
    if text_after is not None:
        raise BadInput(f"{head}, so that lmdiag cannot tell which word they belong to")
    if text is None:
        return None
    return f"{head} (add_prefix_space and trim_offsets contradict each other): they are repaired"


def _without_characters(backend: Tokenizer) -> str | None:
    """Returns the first plain text of which a token has no characters that no other one has."""
    for text in _PLAIN:
        spans = backend.encode(text, add_special_tokens=False).offsets
        covered = {place for start, end in spans for place in range(start, end)}
        letters = {place for place, character in enumerate(text) if not character.isspace()}
        # characters that a vocabulary lacks may have no token at all
        if letters - covered and any(start >= end for start, end in spans):
            return text
    return None


def _untrimmed(step: Any) -> Any:
    """Returns the JSON of a post-processor, with the spaces before words in their tokens."""
    if isinstance(step, list):
        return [_untrimmed(inner) for inner in step]
    if not isinstance(step, dict):
        return step
    changed = {name: _untrimmed(value) for name, value in step.items()}
    return changed | {"trim_offsets": False} if "trim_offsets" in step else changed


def _words_of(tokenizer: Tokenizer) -> list[str]:
    """Returns words of a vocabulary with and without capitals: a small one may have no others."""
    names = map(tokenizer.id_to_token, range(tokenizer.get_vocab_size(with_added_tokens=False)))
    words = ((name or "").strip("Ġ▁#") for name in names)  # read as far as needed
    few = [*islice((word for word in words if len(word) > 2 and word.isalpha()), _N_WORDS)]
    return [f"the {word} {word.capitalize()}" for word in few]


def _differs(own: Tokenizer, used: Tokenizer, text: str, *, ends: bool) -> bool:
    """Whether two tokenizers read a text differently; `ends`: special tokens around it count."""
    readings = [backend.encode(text, add_special_tokens=ends).ids for backend in (own, used)]
    return readings[0] != readings[1]


def _tokens(encoding: Encoding) -> str:
    """The tokens of a text, for readers."""
    return f"[{visible(' '.join(encoding.tokens))}]"
