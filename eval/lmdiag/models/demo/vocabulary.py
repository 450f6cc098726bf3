"""Tokenizers of the demo models, made from their corpus, in the real formats.

The masked model has an uncased WordPiece vocabulary, as BERT does, the causal one byte-level BPE
with its leading-space convention, as GPT-2 does. Both keep all but the rarest words whole.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

END = "<|endoftext|>"
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
LETTERS = "abcdefghijklmnopqrstuvwxyz"
ENDINGS = ("s", "es", "ed", "en", "er", "est", "ing", "ly", "ness", "ion", "al", "le", "on", "in")
RARE = 3
"""Words with fewer occurrences than this are spelled in pieces by the masked model."""


def wordpiece(corpus: Iterable[str], folder: Path) -> PreTrainedTokenizerFast:
    """Writes and returns a BERT tokenizer whose vocabulary is the corpus's words and all letters.

    Args:
        corpus: sentences.
        folder: where the tokenizer's files go.
    """
    from tokenizers.normalizers import BertNormalizer
    from tokenizers.pre_tokenizers import BertPreTokenizer
    from transformers import BertTokenizer

    normalise, split = BertNormalizer(lowercase=True), BertPreTokenizer()
    counts = Counter(
        word
        for sentence in corpus
        for word, _ in split.pre_tokenize_str(normalise.normalize_str(sentence))
    )
    words = sorted(word for word, count in counts.items() if count >= RARE and len(word) > 1)
    signs = sorted({sign for word in counts for sign in word} | {*LETTERS})
    pieces = [f"##{piece}" for piece in dict.fromkeys((*signs, *ENDINGS))]
    entries = (*SPECIAL, *signs, *pieces, *words)
    tokenizer = BertTokenizer(vocab={entry: i for i, entry in enumerate(entries)})
    tokenizer.save_pretrained(folder)
    return tokenizer


def byte_level(corpus: Iterable[str], folder: Path) -> PreTrainedTokenizerFast:
    """Writes and returns a GPT-2 tokenizer with merges learned from the corpus.

    Args:
        corpus: sentences.
        folder: where the tokenizer's files go.
    """
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers
    from transformers import GPT2Tokenizer

    learner = Tokenizer(models.BPE())
    learner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    learner.train_from_iterator(
        corpus,
        trainers.BpeTrainer(
            vocab_size=20_000,  # more than there are merges that occur RARE times
            min_frequency=RARE,
            special_tokens=[END],
            initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
            show_progress=False,
        ),
    )
    learned = json.loads(learner.to_str())["model"]
    merges: Any = [tuple(merge) for merge in learned["merges"]]  # transformers' hint is wrong
    tokenizer = GPT2Tokenizer(vocab=learned["vocab"], merges=merges)
    tokenizer.save_pretrained(folder)
    return tokenizer
