"""Tokenizers and models of a handful of entries, for tests whose results can be seen by eye."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers, processors
from transformers import (
    BertConfig,
    BertForMaskedLM,
    GPT2Config,
    GPT2LMHeadModel,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

from lmdiag.models import LoadOptions, Model
from lmdiag.models.loading.load import Parts
from lmdiag.models.local import assemble
from lmdiag.schema import Kind

GPT2_SHAPE = {
    "n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 96, "bos_token_id": 0,
    "eos_token_id": 0,
}  # fmt: skip
BERT_SHAPE = {
    "hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2, "intermediate_size": 24,
    "max_position_embeddings": 64,
}  # fmt: skip
SPECIAL = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")


def wordpiece(*pieces: str, lower: bool = True) -> PreTrainedTokenizerFast:
    """BERT's convention: `##` continues a word, [CLS] text [SEP]."""
    vocab = {piece: index for index, piece in enumerate((*SPECIAL, *pieces))}
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="[UNK]", pad_token="[PAD]", cls_token="[CLS]",
        sep_token="[SEP]", mask_token="[MASK]",
    )  # fmt: skip


def byte_level(*merges: str, end: bool = False) -> PreTrainedTokenizerFast:
    """GPT-2's convention: all 256 bytes, `Ġ` starts a word, then the results of the merges.

    Args:
        merges: pairs such as "Ġ b", in order.
        end: whether the tokenizer puts its end token after every text.
    """
    vocab = {"<|end|>": 0}
    for character in sorted(pre_tokenizers.ByteLevel.alphabet()):
        vocab[character] = len(vocab)
    pairs = [tuple(merge.split(" ")) for merge in merges]
    for left, right in pairs:
        vocab.setdefault(left + right, len(vocab))
    tokenizer = Tokenizer(models.BPE(vocab, pairs))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    if end:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="$A <|end|>", special_tokens=[("<|end|>", 0)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, bos_token="<|end|>", eos_token="<|end|>", unk_token=None
    )


def sentencepiece(
    *pieces: str, bos: bool = False, split: bool = True, drop: bool = False
) -> PreTrainedTokenizerFast:
    """SentencePiece BPE: `▁` starts a word, the text begins with one.

    Args:
        pieces: everything that a word is made of; single characters are added.
        bos: whether `<s>` is put before every text.
        split: whether pieces end at words' ends; without, they may span several words.
        drop: whether unknown characters vanish without a trace.
    """
    vocab = {"<unk>": 0, "<s>": 1, "</s>": 2}
    for entry in (*sorted({"▁", *"".join(pieces)}), *pieces):
        vocab.setdefault(entry, len(vocab))
    merges = [pair for piece in pieces for pair in _merges(piece, vocab)]
    unk = None if drop else "<unk>"
    tokenizer = Tokenizer(models.BPE(vocab, list(dict.fromkeys(merges)), unk_token=unk))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=split)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    if bos:
        tokenizer.post_processor = processors.TemplateProcessing(
            single="<s> $A", special_tokens=[("<s>", 1)]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )


def ending(*pieces: str) -> PreTrainedTokenizerFast:
    """GPT-1's convention: `</w>` ends a word, marks are words of their own."""
    vocab = {"<unk>": 0}
    for piece in pieces:
        vocab.setdefault(piece, len(vocab))
    letters = sorted({piece.removesuffix("</w>")[0] for piece in pieces})
    for letter in letters:
        vocab.setdefault(letter, len(vocab))
    merges = []
    for piece in pieces:
        bare = piece.removesuffix("</w>")
        last = bare[-1] + piece[len(bare) :]
        vocab.setdefault(last, len(vocab))
        if len(bare) == 2:
            merges.append((bare[0], last))
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")


def wordlevel(*words: str) -> PreTrainedTokenizerFast:
    """A vocabulary of whole words and marks."""
    vocab = {"<unk>": 0} | {word: index for index, word in enumerate(words, start=1)}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, unk_token="<unk>")


def _merges(piece: str, vocab: dict[str, int]) -> list[tuple[str, str]]:
    """Returns merges that build a piece from the left, intermediate pieces added."""
    merges = []
    for end in range(2, len(piece) + 1):
        vocab.setdefault(piece[:end], len(vocab))
        merges.append((piece[: end - 1], piece[end - 1]))
    return merges


def names(tokenizer: PreTrainedTokenizerFast, ids: Sequence[int] | None) -> list[str] | None:
    """Returns the vocabulary's names of ids."""
    return None if ids is None else tokenizer.convert_ids_to_tokens(list(ids))


def gpt2(size: int, **config: Any) -> GPT2LMHeadModel:
    """A random GPT-2 of one small layer whose probabilities are spread, the same in every run."""
    torch.manual_seed(0)
    return spread(GPT2LMHeadModel(GPT2Config(vocab_size=size, **GPT2_SHAPE | config)))


def bert(size: int, **config: Any) -> BertForMaskedLM:
    """A random BERT of one small layer whose probabilities are spread, the same in every run."""
    torch.manual_seed(0)
    return spread(BertForMaskedLM(BertConfig(vocab_size=size, **BERT_SHAPE | config)))


def spread(model: Any) -> Any:
    """Draws weights wide enough for every position to matter."""
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(0.3 * torch.randn_like(parameter))
    return model.eval().requires_grad_(False)


def asked(
    network: PreTrainedModel, tokenizer: PreTrainedTokenizerFast, kind: Kind, **options: Any
) -> Model:
    """Puts network and tokenizer together as `models.load` does with those of a folder."""
    parts = Parts(
        model=network, tokenizer=tokenizer, config=network.config, kind=kind, commit="toy",
        training_step=None, dtype=str(network.dtype), quantization=None, attention=None,
    )  # fmt: skip
    return assemble("toy", parts, LoadOptions(**options))


def alone(network: PreTrainedModel, ids: Sequence[int], position: int) -> torch.Tensor:
    """Returns the log-probabilities at a position: the whole model, one row, float64."""
    exact = copy.deepcopy(network).double()
    logits = exact(input_ids=torch.tensor([list(ids)])).logits
    return logits[0, position].log_softmax(-1)
