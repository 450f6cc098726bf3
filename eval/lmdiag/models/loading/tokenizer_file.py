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

_PLAIN_TEXTS = ("I saw a dog", "The dog saw me", "a bird is a dog")
"""Texts of plain words, each of which has tokens with its characters."""

_N_WORDS = 20
"""Words of a vocabulary of which probe texts are made."""

_SPECIAL_TOKEN_ENTRIES = ("add_bos_token", "add_eos_token")
"""Entries of tokenizer_config.json that replace the special tokens of the file."""


def use_tokenizer_file(
    model_id: str, tokenizer: PreTrainedTokenizerBase, file: Path | None
) -> str | None:
    """Makes a tokenizer read texts as its tokenizer.json says, if it does not do so.

    Probe texts are read by the tokenizer and by the file: `PROBES` and words of the vocabulary.
    Only if both readings of one differ, the tokenizer gets the parts of the file.

    Args:
        model_id: for the warning.
        tokenizer: as transformers made it; is changed.
        file: its tokenizer.json; None without one.

    Returns:
        a warning with both readings of the first text in which they differ; None for none.
    """
    # only classes with an `__init__` of their own make the parts anew, see above
    is_built_anew = type(tokenizer).__init__ is not PreTrainedTokenizerFast.__init__
    if file is None or not tokenizer.is_fast or not is_built_anew:
        return None
    file_backend = Tokenizer.from_file(str(file))
    backend: Tokenizer = tokenizer.backend_tokenizer
    for either_backend in (file_backend, backend):
        either_backend.no_padding()
        either_backend.no_truncation()
    # special tokens are the file's unless tokenizer_config.json replaces them
    uses_special = not any(name in tokenizer.init_kwargs for name in _SPECIAL_TOKEN_ENTRIES)
    for text in (*PROBES, *_vocabulary_texts(file_backend)):
        ids_by_file = file_backend.encode(text, add_special_tokens=uses_special).ids
        if backend.encode(text, add_special_tokens=uses_special).ids != ids_by_file:
            break
    else:  # all texts are read alike
        return None
    # the readings of `text` differ: all parts of the file replace those of the class
    encoding_before = backend.encode(text)
    backend.model = file_backend.model
    backend.normalizer = file_backend.normalizer
    backend.pre_tokenizer = file_backend.pre_tokenizer
    backend.decoder = file_backend.decoder or backend.decoder
    if uses_special:
        backend.post_processor = file_backend.post_processor
    name = type(tokenizer).__name__
    return (
        f"model {model_id}: {name} of transformers {version('transformers')} does not read texts "
        f"as tokenizer.json says, which is used: {text!r} is "
        f"{_shown_tokens(backend.encode(text))}, not {_shown_tokens(encoding_before)}"
    )


def check_offsets(model_id: str, tokenizer: PreTrainedTokenizerBase) -> str | None:
    """Repairs a tokenizer that gives tokens of plain words no characters, or refuses it.

    Files whose pre-tokenizer adds a space before a text, and whose post-processor trims spaces as
    if it did not, give the first word no characters; where a space is added before each punctuation
    mark, words behind one lose their first letter. So spaces are not trimmed from any tokenizer's
    offsets, which needs no other change: they belong to the word behind them anyhow.

    Args:
        model_id: for messages.
        tokenizer: is changed.

    Returns:
        a warning where a plain word had no characters; None for none.

    Raises:
        BadInput: tokens have no characters.
    """
    backend: Tokenizer = tokenizer.backend_tokenizer
    text_before = _text_with_empty_token(backend)
    if backend.post_processor is not None:
        state = json.loads(backend.post_processor.__getstate__())
        untrimmed_processor = copy(backend.post_processor)
        untrimmed_processor.__setstate__(json.dumps(_untrimmed(state)).encode())
        backend.post_processor = untrimmed_processor
    text_after = _text_with_empty_token(backend)
    head = f"model {model_id}: its tokenizer.json gives tokens of {text_before!r} no characters"
    if text_after is not None:
        raise BadInput(f"{head}, so that lmdiag cannot tell which word they belong to")
    if text_before is None:
        return None
    return f"{head} (add_prefix_space and trim_offsets contradict each other): they are repaired"


def _text_with_empty_token(backend: Tokenizer) -> str | None:
    """Returns the first plain text with a token without characters and a letter without a token.

    None if there is none. Then every token tells which word it belongs to.
    """
    for text in _PLAIN_TEXTS:
        spans = backend.encode(text, add_special_tokens=False).offsets
        covered = {position for start, end in spans for position in range(start, end)}
        letters = {position for position, letter in enumerate(text) if not letter.isspace()}
        has_empty_token = any(start >= end for start, end in spans)
        # without an empty token, the vocabulary lacks the letter
        if letters - covered and has_empty_token:
            return text
    return None


def _untrimmed(value: Any) -> Any:
    """Returns the JSON of a post-processor with all its "trim_offsets" false.

    The space before a word then belongs to the word's first token.
    """
    if isinstance(value, list):
        return [_untrimmed(inner_value) for inner_value in value]
    if not isinstance(value, dict):
        return value
    untrimmed = {name: _untrimmed(field) for name, field in value.items()}
    if "trim_offsets" in untrimmed:
        untrimmed["trim_offsets"] = False
    return untrimmed


def _vocabulary_texts(backend: Tokenizer) -> list[str]:
    """Returns probe texts with words of the vocabulary, for example "the bird Bird".

    A small vocabulary may not have the words of `PROBES`.
    """
    texts: list[str] = []
    for token in range(backend.get_vocab_size(with_added_tokens=False)):
        word = (backend.id_to_token(token) or "").strip("Ġ▁#")  # marks of spaces and word parts
        if len(word) > 2 and word.isalpha():
            texts.append(f"the {word} {word.capitalize()}")
        if len(texts) == _N_WORDS:
            break
    return texts


def _shown_tokens(encoding: Encoding) -> str:
    """Returns the tokens of a text for a message, for example "[Ġa Ġdog]"."""
    return f"[{visible(' '.join(encoding.tokens))}]"
