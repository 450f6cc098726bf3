"""Encoder-decoders: T5's sentinel, BART's mask, and those that cannot fill a blank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from tokenizer_files import wordpiece
from transformers import (
    AutoModelForSeq2SeqLM,
    AutoTokenizer,
    PegasusConfig,
    PegasusForConditionalGeneration,
)

from lmdiag.models import load
from lmdiag.schema import BadInput, Query, Question
from models.toys import asked

NEAR = Question(Query("The old woman", "near the sea."), ("tree", "sparrows", "trees"))


class Asked:
    """A family's model beside its own float64 form."""

    def __init__(self, folder: Path) -> None:
        self.model = load(str(folder))
        self.tokenizer = AutoTokenizer.from_pretrained(folder)
        self.exact = AutoModelForSeq2SeqLM.from_pretrained(folder, dtype=torch.float64).eval()

    def log_prob(self, source: list[int], prompt: list[int], token: int) -> float:
        """Returns the log-probability of a token after the decoder's prompt."""
        with torch.inference_mode():
            logits = self.exact(
                input_ids=torch.tensor([source]), decoder_input_ids=torch.tensor([prompt])
            ).logits
        return float(logits[0, -1].log_softmax(-1)[token])

    def check(self, start: list[int], source: list[int]) -> None:
        """Compares the answer to NEAR with the chain rule, piece by piece."""
        (answer,) = self.model.answer([self.model.encode(NEAR)], 5)
        for word, score in answer.words.items():
            pieces = self.tokenizer(f" {word}", add_special_tokens=False).input_ids
            total = sum(
                self.log_prob(source, start + pieces[:index], piece)
                for index, piece in enumerate(pieces)
            )
            assert score.n_tokens == len(pieces)
            assert score.log_prob == pytest.approx(total, abs=2e-5), word


@pytest.mark.parametrize("name", ["t5", "flan-t5", "mt5"])
def test_t5(name: str, family_dir: Callable[[str], Path]) -> None:
    """The sentinel stands at the blank, and before the word in the decoder."""
    asked = Asked(family_dir(name))
    (row, *_) = asked.model.encode(NEAR).rows
    sentinel = asked.tokenizer.convert_tokens_to_ids("<extra_id_0>")
    sentence = "The old woman <extra_id_0> near the sea."
    assert list(row.source) == asked.tokenizer(sentence).input_ids
    assert row.ids[:2] == (0, sentinel)
    assert row.reads[0] == 1
    asked.check([0, sentinel], list(row.source))


def test_bart(family_dir: Callable[[str], Path]) -> None:
    """The mask stands at the blank; the decoder has written the sentence up to it."""
    asked = Asked(family_dir("bart"))
    (row, *_) = asked.model.encode(NEAR).rows
    assert list(row.source) == asked.tokenizer("The old woman <mask> near the sea.").input_ids
    start = asked.exact.config.decoder_start_token_id
    left = asked.tokenizer("The old woman").input_ids[:-1]  # without </s>
    prompt = [start, *left]
    assert list(row.ids[: len(prompt)]) == prompt
    asked.check(prompt, list(row.source))


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
    assert seen == [2]


def test_no_blank_to_fill() -> None:
    """An encoder-decoder for other tasks is refused, not asked something that it never saw."""
    tokenizer = wordpiece("a", "the")
    config = PegasusConfig(
        vocab_size=len(tokenizer), d_model=8, encoder_layers=1, decoder_layers=1,
        encoder_ffn_dim=8, decoder_ffn_dim=8, encoder_attention_heads=2, decoder_attention_heads=2,
    )  # fmt: skip
    with pytest.raises(BadInput, match=r"model toy \(pegasus\) was not trained to fill a blank"):
        asked(PegasusForConditionalGeneration(config).eval(), tokenizer, "seq2seq")
