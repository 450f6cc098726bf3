"""Control tokens: items of a vocabulary that stand for no text.

A tokenizer reads the name of a control token (`[MASK]`, `<|endoftext|>`) in a text as the token
itself, not as the characters.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MARKUP = re.compile(r"<.*>|\[.*\]", re.DOTALL)
"""Names such as <|im_start|>, <think> and [INST]."""


def control_ids(tokenizer: PreTrainedTokenizerFast) -> frozenset[int]:
    """Returns the ids of all control tokens.

    These are the special tokens and the added tokens that are marked as special or named like one
    (some tokenizers add the tokens of their chat template as ordinary ones). Other added tokens are
    words.
    """
    added = tokenizer.added_tokens_decoder.items()
    named = (id for id, token in added if token.special or _MARKUP.fullmatch(token.content.strip()))
    return frozenset(tokenizer.all_special_ids).union(named)


def control_names(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str]) -> list[list[str]]:
    """Returns the names of the control tokens in each text, in order of first appearance.

    The unknown token counts only if the text contains its name: it also stands for characters that
    the vocabulary lacks.
    """
    controls, unknown = control_ids(tokenizer), tokenizer.unk_token_id
    unknown_name = str(tokenizer.unk_token)  # an unknown piece has its own characters as a name
    encodings = tokenizer.backend_tokenizer.encode_batch(list(texts), add_special_tokens=False)
    names: list[dict[str, None]] = [{} for _ in texts]
    for text, encoding, in_text in zip(texts, encodings, names, strict=True):
        for id, name in zip(encoding.ids, encoding.tokens, strict=True):
            if id in controls and (id != unknown or unknown_name in text):
                in_text[unknown_name if id == unknown else name] = None
    return [list(in_text) for in_text in names]
