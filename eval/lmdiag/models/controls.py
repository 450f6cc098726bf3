"""Control tokens: items of a vocabulary that stand for no text, and their names in texts.

A tokenizer reads the name of a control token (`[MASK]`, `<|endoftext|>`) as the token itself, not
as the characters, wherever it stands in a text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

_MARKUP = re.compile(r"<.*>|\[.*\]", re.DOTALL)
"""Names such as <|im_start|>, <think> and [INST]."""


def control_ids(tokenizer: PreTrainedTokenizerFast) -> frozenset[int]:
    """Returns the ids of all control tokens, in whichever list the tokenizer keeps them.

    These are the special tokens with a role, additional and extra special tokens, and added tokens
    that are marked as special or are named like one: some tokenizers add the tokens of their chat
    template as ordinary ones. Other added tokens are words.
    """
    added = tokenizer.added_tokens_decoder.items()
    named = (id for id, token in added if token.special or _MARKUP.fullmatch(token.content.strip()))
    return frozenset(tokenizer.all_special_ids).union(named)


class Controls:
    """Finds the names of control tokens in texts.

    Args:
        tokenizer: the model's.
    """

    def __init__(self, tokenizer: PreTrainedTokenizerFast) -> None:
        self._backend = tokenizer.backend_tokenizer
        self._ids = control_ids(tokenizer)
        self._unknown = tokenizer.unk_token_id

    def named_in(self, texts: Sequence[str]) -> list[tuple[str, ...]]:
        """Returns the names of control tokens in each text, in order of first appearance.

        An unknown token counts only if the text has its name: it stands for unknown characters,
        too.
        """
        encodings = self._backend.encode_batch(list(texts), add_special_tokens=False)
        return [
            tuple(dict.fromkeys(self._names(text, zip(each.ids, each.tokens, strict=True))))
            for text, each in zip(texts, encodings, strict=True)
        ]

    def _names(self, text: str, pieces: Iterable[tuple[int, str]]) -> Iterator[str]:
        for id, name in pieces:
            if id in self._ids and (id != self._unknown or name in text):
                yield name
