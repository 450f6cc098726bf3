"""Encoder-decoders: T5's sentinel, BART's mask, and those that cannot fill a blank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from tokenizer_files import wordpiece
from transformers import (
    AutoTokenizer,
    PegasusConfig,
    PegasusForConditionalGeneration,
)

from lmdiag.models import load
from lmdiag.types import BadInput, Query, Question, Sentence
from models.toys import asked

NEAR = Question(Query("The old woman", "near the sea."), ("tree", "sparrows", "trees"))


@pytest.mark.parametrize("name", ["t5", "flan-t5", "mt5", "bart"])
def test_the_blank(name: str, family_dir: Callable[[str], Path]) -> None:
    """T5's sentinel stands at the blank, and before the word in the decoder; BART's mask stands at
    the blank, and the decoder has written the sentence up to it."""
    model = load(str(family_dir(name)))
    tokenizer = AutoTokenizer.from_pretrained(family_dir(name))
    filler = "<mask>" if name == "bart" else "<extra_id_0>"
    (row, *_) = model.encode(NEAR).rows
    assert list(row.source) == tokenizer(f"The old woman {filler} near the sea.").input_ids
    start = model.reader.model.config.decoder_start_token_id
    left = tokenizer("The old woman").input_ids[:-1]  # without </s>
    prompt = [start, *left] if name == "bart" else [0, tokenizer.convert_tokens_to_ids(filler)]
    assert list(row.ids[: len(prompt)]) == prompt
    assert row.reads[0] == len(prompt) - 1


def test_each_sentence_is_encoded_once(family_dir: Callable[[str], Path]) -> None:
    """Words of several pieces that part ways need several decoder rows, but one encoder row."""
    model = load(str(family_dir("t5")))
    question = model.encode(Question(NEAR.query, ("sparrows", "elephants", "wrenches")))
    assert len(question.rows) == 3
    other = model.encode(Question(Query("A robin is a"), ("bird",)))
    seen = []
    model.reader.model.get_encoder().register_forward_pre_hook(
        lambda _, __, inputs: seen.append(len(inputs["input_ids"])), with_kwargs=True
    )
    model.answer([question, other], 5)
    assert seen == [1, 1]  # of two lengths


def test_no_blank_to_fill() -> None:
    """An encoder-decoder for other tasks is refused, not asked something that it never saw."""
    tokenizer = wordpiece("a", "the")
    config = PegasusConfig(
        vocab_size=len(tokenizer), d_model=8, encoder_layers=1, decoder_layers=1,
        encoder_ffn_dim=8, decoder_ffn_dim=8, encoder_attention_heads=2, decoder_attention_heads=2,
    )  # fmt: skip
    with pytest.raises(BadInput, match=r"^model toy is not supported: pegasus is an enc"):
        asked(PegasusForConditionalGeneration(config).eval(), tokenizer, "seq2seq")


def test_whole_sentences_are_refused(family_dir: Callable[[str], Path]) -> None:
    with pytest.raises(BadInput, match="is an encoder-decoder, which gives no probability of"):
        load(str(family_dir("t5"))).encode(Sentence("A robin is a bird."))
