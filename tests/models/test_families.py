"""Every family of models, asked by lmdiag and by an independent float64 reference.

The reference (`reference`, `spelling`) spells words by hand and runs transformers' own model on one
sentence at a time, without padding, for every piece of every word.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from families import CAUSAL, FAMILIES, MASKED, SEQ2SEQ, Family, family_params
from reference import Reference
from vocabularies import UNKNOWN

from lmdiag.models import LoadOptions, load
from lmdiag.schema import Answer, Query, Question
from models.comparison import (
    PLAIN,
    QUERIES,
    TOP,
    WORDS,
    Compared,
    ask,
    compare,
    questions,
)

TOLERANCE = 1e-5
TOLERANCES = {"token": TOLERANCE, "word": 2e-5}
"""Nats; the models are float32, the reference float64."""

BOS_FAMILIES = ("gpt2", "opt", "llama3", "llama", "gemma", "gpt_neox", "mamba", "bloom")
"""With and without a beginning-of-sequence token by default."""


PADDED = {"deberta", "deberta-v2", "deberta-v3", "bloom", "falcon-alibi", "mamba", "rwkv"}
"""Families whose position schemes do not let several contexts share a row."""

NARROW = {"modernbert", "gpt_neo", "mistral", "gemma2", "gemma3", "big_bird"}
"""Families that could, but have a window or a limit here that is too narrow to be worth it."""


def check_words(pairs: list[Compared], unit: str = "token") -> None:
    """Scores are the reference's; there are words of one piece and of several everywhere."""
    for pair in pairs:
        for word, scored in pair.words.items():
            given = pair.answer.words[word]
            if scored is None:
                assert given == (None, None, 0), word
                continue
            assert given.log_prob == pytest.approx(scored.log_prob, abs=TOLERANCES[unit]), word
            assert given.n_tokens == len(scored.pieces), word
            assert unit == "word" or given.rank in scored.ranks, word
        assert all(len(pair.differences(several=several)) >= 2 for several in (False, True))


def check_top(pair: Compared) -> None:
    """Each place holds the reference's item, or one that is as good within the tolerance."""
    values = [value for _, value in pair.top]
    assert pair.answer.top_log_probs == pytest.approx(values[:TOP], abs=TOLERANCE)
    for word, value in zip(pair.answer.top_words, values, strict=False):
        near = {shown for shown, other in pair.top if abs(other - value) < 2 * TOLERANCE}
        assert word in near or None in near, (word, near)


def check_same(first: list[Answer], second: list[Answer]) -> None:
    """Answers to the same questions are the same up to float32."""
    for one, other in zip(first, second, strict=True):
        assert one.top_words == other.top_words
        assert one.top_log_probs == pytest.approx(other.top_log_probs, abs=TOLERANCE)
        for word, score in one.words.items():
            assert score[1:] == other.words[word][1:], word
            if score.log_prob is not None:
                assert score.log_prob == pytest.approx(other.words[word].log_prob, abs=TOLERANCE)


@pytest.mark.parametrize("name", family_params(FAMILIES))
def test_the_answers_are_the_references(name: str, family_dir: Callable[[str], Path]) -> None:
    pairs = compare(FAMILIES[name], family_dir(name))
    check_words(pairs)
    spelled_by_bytes = FAMILIES[name].convention in ("byte-level", "metaspace-bpe")
    for pair in pairs:
        check_top(pair)
        assert (pair.words[UNKNOWN] is not None) == spelled_by_bytes
    # Guards the other tests: a model that looked at nothing but the blank would agree, too.
    probabilities = [pair.answer.words[PLAIN].log_prob for pair in pairs]
    assert len({round(p, 4) for p in probabilities if p is not None}) == len(QUERIES)


@pytest.mark.parametrize("name", family_params(FAMILIES))
def test_whole_words_are_the_references(name: str, family_dir: Callable[[str], Path]) -> None:
    check_words(compare(FAMILIES[name], family_dir(name), unit="word"), "word")


@pytest.mark.parametrize("name", family_params(FAMILIES))
def test_batches_do_not_matter(name: str, family_dir: Callable[[str], Path]) -> None:
    model = load(str(family_dir(name)))
    asked = questions()
    alone = ask(model, asked, 1)
    check_same(alone, ask(model, asked))
    check_same(alone, ask(model, asked, 2))
    check_same(alone[::-1], ask(model, asked[::-1]))


@pytest.mark.parametrize("name", family_params(FAMILIES))
def test_packing_does_not_matter(name: str, family_dir: Callable[[str], Path]) -> None:
    folder = str(family_dir(name))
    packed, plain = load(folder), load(folder, LoadOptions(packing="never"))
    check_same(ask(packed, questions()), ask(plain, questions()))
    padded = PADDED | NARROW | {family.name for family in SEQ2SEQ}
    # FNet mixes all positions, padded ones too: only rows of one length go together.
    expected = "equal" if name == "fnet" else "padded" if name in padded else "packed"
    assert packed.reader.layout == expected
    assert plain.reader.layout == ("equal" if name == "fnet" else "padded")


@pytest.mark.parametrize("name", ["bert", "roberta", "gpt2", "llama", "mamba", "bloom", "t5"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_padding_side_does_not_matter(
    name: str, side: str, family_dir: Callable[[str], Path], tmp_path: Path
) -> None:
    folder = shutil.copytree(family_dir(name), tmp_path / name)
    file = folder / "tokenizer_config.json"
    file.write_text(json.dumps(json.loads(file.read_text("utf-8")) | {"padding_side": side}))
    check_same(ask(load(str(family_dir(name))), questions()), ask(load(str(folder)), questions()))


def test_padding_token_without_an_embedding(
    family_dir: Callable[[str], Path], tmp_path: Path
) -> None:
    from transformers import AutoTokenizer

    folder = shutil.copytree(family_dir("llama"), tmp_path / "llama")
    file = folder / "tokenizer_config.json"
    config = json.loads(file.read_text("utf-8")) | {"pad_token": "[PAD]"}
    file.write_text(json.dumps(config))
    options = LoadOptions(packing="never")
    model = load(str(folder), options)
    padding = AutoTokenizer.from_pretrained(str(folder)).pad_token_id
    assert padding >= model.info.vocab_size
    check_same(ask(load(str(family_dir("llama")), options), questions()), ask(model, questions()))


@pytest.mark.parametrize("name", family_params(BOS_FAMILIES))
@pytest.mark.parametrize("bos", ["always", "never"])
def test_beginning_of_sequence(name: str, bos: str, family_dir: Callable[[str], Path]) -> None:
    pairs = compare(FAMILIES[name], family_dir(name), bos)
    check_words(pairs)
    for pair in pairs:
        check_top(pair)


@pytest.mark.parametrize("name", family_params(BOS_FAMILIES))
def test_beginning_of_sequence_by_default(name: str, family_dir: Callable[[str], Path]) -> None:
    folder = str(family_dir(name))
    default, always, never = (
        ask(load(folder, LoadOptions(bos=bos)), questions()) for bos in ("auto", "always", "never")
    )
    has_one = name in ("opt", "llama3", "llama", "gemma")
    check_same(default, always if has_one else never)
    gaps = [
        abs(one.top_log_probs[0] - other.top_log_probs[0])
        for one, other in zip(always, never, strict=True)
    ]
    assert max(gaps) > 1000 * TOLERANCE
    assert load(folder).info.bos == has_one


@pytest.mark.parametrize("family", [*CAUSAL, *MASKED], ids=lambda family: family.name)
def test_only_masked_models_see_the_right(
    family: Family, family_dir: Callable[[str], Path]
) -> None:
    model = load(str(family_dir(family.name)))
    rights = ("", "and nothing else.")
    first, second = (
        ask(model, [Question(Query(QUERIES[0].context, right), WORDS)]) for right in rights
    )
    if family.kind == "causal":
        check_same(first, second)
    else:
        top = second[0].top_log_probs[0]
        assert first[0].top_log_probs[0] != pytest.approx(top, abs=1e-3)


@pytest.mark.parametrize("name", ["bert", "roberta", "xlm-roberta", "llama", "gemma", "opt", "t5"])
def test_empty_context(name: str, family_dir: Callable[[str], Path]) -> None:
    """At the beginning of the text a word stands as the tokenizer has it there."""
    family = FAMILIES[name]
    model = load(str(family_dir(name)))
    (answer,) = ask(model, [Question(Query("", "was asleep."), ("bird", "penguin"))])
    reference = Reference(family_dir(name), family.kind, family.convention)
    # Llama puts a blank before a text's first word, Gemma and the byte-level ones do not.
    blank = name == "llama"
    for word, given in answer.words.items():
        pieces = reference.speller.spell(word, blank=blank)
        assert pieces is not None
        assert given.n_tokens == len(pieces)
        assert given.log_prob is not None
        assert math.isfinite(given.log_prob)


def test_every_kind_is_there() -> None:
    assert {family.kind for family in FAMILIES.values()} == {"masked", "causal", "seq2seq"}
    assert len(MASKED) + len(CAUSAL) + len(SEQ2SEQ) == len(FAMILIES) >= 35
