"""The tokenizer of a checkpoint's own `tokenizer.json`, where transformers makes another one of it.

transformers 5 builds the tokenizers of some classes (GPT-2, RoBERTa, CodeGen, Qwen2, BERT and
others) anew from the vocabulary: a normalizer, a pre-tokenizer or special tokens around a text that
stand in the file are replaced by those of the class. A model that was trained with the file reads
other tokens then.
"""

from __future__ import annotations

from importlib.metadata import version
from itertools import islice
from pathlib import Path

from tokenizers import Encoding, Tokenizer
from transformers import PreTrainedTokenizerBase, PreTrainedTokenizerFast

from lmdiag.text import visible

PROBES = (
    "John saw Mary", "room 1234", "a naïve café", "it's “odd”, isn't it?", "one\ntwo\tthree",
    "two  blanks", "IT'S \"So\" (very) well-known...", "12,345 and 3.14", "cafe\u0301s", "ﬁne № 5",
    "我喜欢 dogs", "dogs 🙂!", "line\n\n  end", "x_1=f(y);",
)  # fmt: skip
"""Case, digits, accents, punctuation, white space, scripts without spaces, compatibility forms.
Their first words show a leading blank."""

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
    own = Tokenizer.from_file(str(file))
    used: Tokenizer = tokenizer.backend_tokenizer
    for backend in (own, used):
        backend.no_padding()
        backend.no_truncation()
    has_own_ends = not any(name in tokenizer.init_kwargs for name in _ADDED)
    texts = (*PROBES, *_words_of(own))
    first = next((text for text in texts if _differs(own, used, text, ends=has_own_ends)), None)
    if first is None:
        return None
    before = used.encode(first)
    used.model = own.model
    used.normalizer = own.normalizer
    used.pre_tokenizer = own.pre_tokenizer
    used.decoder = own.decoder or used.decoder
    if has_own_ends:
        used.post_processor = own.post_processor
    name = type(tokenizer).__name__
    return (
        f"model {model_id}: {name} of transformers {version('transformers')} does not read texts "
        f"as tokenizer.json says, which is used: {first!r} is {_tokens(used.encode(first))}, not "
        f"{_tokens(before)}"
    )


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
