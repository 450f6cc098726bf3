"""The words of whole sentences, asked by lmdiag and by an independent float64 reference.

The reference (`sentence_reference`) runs transformers' own model on one row at a time, without
padding, and takes tokens and their places from the tokenizer itself.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import pytest
import torch
from families import SENTENCE_FAMILIES
from reference import double
from sentence_reference import SentenceReference, total
from sentence_texts import SENTENCES, SOME
from tokenizer_files import byte_level, trained_bytes
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from lmdiag.models import LoadOptions, load
from lmdiag.runs.asking import ask
from lmdiag.types import Sentence, SentenceAnswer, WordSpan
from models.toys import gpt2

FamilyDir = Callable[[str], Path]

SIX = ("bert", "roberta", "gpt2", "gpt2-apart", "llama", "qwen2")
"""Every kind of vocabulary, with and without a blank in its words or a token before the first."""

CUT = "The well-known author’s dog sleeps; isn’t it?"
TEXTS = (
    *SOME, Sentence(CUT), Sentence(CUT, tuple(map(CUT.index, ("-known", "’s", ";", "’t", "?")))),
    "The author laughs.", "The author laugh.", "The author laughs", "The author  laughs.", "The",
    " ".join(SENTENCES[20:28]),
)  # fmt: skip
"""Odd ones, regions that begin inside words, common beginnings, and a long text."""


def cases(names: Sequence[str]) -> list[Any]:
    """Families with the options under which each is asked."""
    masked = [{"pll": pll} for pll in ("within-word", "original")]
    causal = [{"unit": unit, "bos": bos} for unit in ("token", "word") for bos in ("auto", "never")]
    return [
        pytest.param(name, options, id="-".join([name, *options.values()]))
        for name in names
        for options in (masked if SENTENCE_FAMILIES[name].kind == "masked" else causal)
    ]


def reference(name: str, folder: Path, *, unit: str = "token", **options: Any) -> SentenceReference:
    family = SENTENCE_FAMILIES[name]
    options |= {"convention": family.convention} if unit == "word" else {}
    return SentenceReference(folder, family.kind, attention=family.attention, **options)


def answered(model: Any, texts: Sequence[str | Sentence]) -> list[SentenceAnswer]:
    """The answers to sentences, in two batches of long and short ones together."""
    encoded = [model.encode(Sentence(text) if isinstance(text, str) else text) for text in texts]
    answers: dict[int, Any] = {}
    for batch in (range(0, len(encoded), 2), range(1, len(encoded), 2)):
        answers |= zip(batch, model.answer([encoded[number] for number in batch], 5), strict=True)
    return [answers[number] for number in range(len(encoded))]


@lru_cache(maxsize=2)
def loaded(name: str, folder: Path, options: tuple[tuple[str, Any], ...]) -> Any:
    """A model in float64, and its reference."""
    # XGLM makes numbers of the default type on its way (transformers 5.23).
    with double() if name == "xglm" else nullcontext():
        model = load(str(folder), LoadOptions(**{"dtype": "float64"} | dict(options)))
    same = {key: value for key, value in options if key not in ("dtype", "packing")}
    return model, reference(name, folder, window=model.info.max_length, **same)


def check(
    name: str,
    folder: Path,
    texts: Sequence[str | Sentence],
    tolerance: float = 1e-5,
    **options: Any,
) -> list[SentenceAnswer]:
    """Every word of every sentence is the reference's."""
    model, by = loaded(name, folder, tuple(options.items()))
    with double() if name == "xglm" else nullcontext():
        answers = answered(model, texts)
    for answer, text in zip(answers, texts, strict=True):
        expected = by.words(*text) if isinstance(text, Sentence) else by.words(text)
        for word, right in zip(answer.words, expected, strict=True):
            assert (word[:2], word.n_tokens) == (right[:2], right.n_tokens), text
            log_prob = right.log_prob and pytest.approx(right.log_prob, abs=tolerance)
            assert word.log_prob == log_prob, text
    return answers


class TestReference:
    """The reference against transformers' own loss, and against rows worked out by hand."""

    def test_the_sum_is_the_loss(self, family_dir: FamilyDir) -> None:
        right = reference("gpt2", family_dir("gpt2"))
        tokens = right.split(SENTENCES[0])
        ids = torch.tensor([tokens.opening + tokens.ids])
        loss = right.model(input_ids=ids, labels=ids).loss  # mean over all tokens but the first
        assert total(right.words(SENTENCES[0])) == pytest.approx(-len(tokens.ids) * loss.item())


@pytest.mark.slow
@pytest.mark.parametrize(("name", "options"), cases(SIX))
def test_every_word(name: str, options: dict[str, Any], family_dir: FamilyDir) -> None:
    answers = check(name, family_dir(name), TEXTS, **options)
    # Guards the test: words of several pieces, and words without a probability where there are.
    words = [word for answer in answers for word in answer.words]
    assert sum(word.n_tokens > 1 for word in words) > 30
    spelled = SENTENCE_FAMILIES[name].convention in ("byte-level", "metaspace-bpe")
    has_first = options.get("bos") != "never" and name != "qwen2"  # Qwen has no such token
    assert all(word.log_prob is not None for word in words) == (spelled and has_first)


@pytest.mark.nightly
@pytest.mark.parametrize(("name", "options"), cases(list(SENTENCE_FAMILIES)))
def test_every_family(name: str, options: dict[str, Any], family_dir: FamilyDir) -> None:
    check(name, family_dir(name), SENTENCES[:60], **options)


@pytest.mark.parametrize("tokens", [12, 23])
@pytest.mark.parametrize(("name", "options"), cases(["roberta", "gpt2"]))
def test_windows(name: str, options: dict[str, Any], tokens: int, tmp_path: Path) -> None:
    """Texts that are longer than what a model reads at a time."""
    limit = {"n_positions": tokens, "max_position_embeddings": tokens + 2}  # RoBERTa's begin at 2
    family = SENTENCE_FAMILIES[name]
    folder = replace(family, config=family.config | limit).make(tmp_path / name)
    text = " ".join(SENTENCES[20:60])
    texts = [text[:end].strip() for end in (20, 41, 42, 43, 44, 150)]
    check(name, folder, texts, **options)


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("packing", ["always", "never"])
def test_a_text_of_one_token(unit: str, packing: str, family_dir: FamilyDir) -> None:
    """Nothing stands before it, so that nothing is read; other texts keep their numbers."""
    options = {"bos": "never", "unit": unit, "packing": packing}
    for texts in (["a"], ["a", "a robin", "the"], ["a", "the"]):
        answers = check("gpt2", family_dir("gpt2"), texts, **options)
        assert answers[0].words == (WordSpan(0, 1, None, 1),)
    asked = ask(load(str(family_dir("gpt2")), LoadOptions(**options)), [Sentence("a")], top=0)  # type: ignore[arg-type]
    assert asked[0].words == (WordSpan(0, 1, None, 1),)


def test_a_text_without_a_token(family_dir: FamilyDir) -> None:
    """BERT's tokenizer removes the zero-width space."""
    [answer] = ask(load(str(family_dir("bert")), LoadOptions()), [Sentence("\u200b")], top=0)
    assert isinstance(answer, SentenceAnswer)
    assert answer.n_tokens == 0


LANGUAGES = {
    "Chinese": ("我昨天在图书馆看书。", "小猫 喜欢 吃鱼，小狗也喜欢。"),
    "Japanese": ("猫が魚を食べました。", "か\u3099っこう に 行きます。", "ｶﾞﾗｽ\u30001枚"),
    "Arabic": ("الكلبُ ينبحُ في الحديقة.", "كَتَبَتِ البِنْتُ رسالةً، ثُمَّ نامت.", "ﻻ أعرف."),
    "Hebrew": ("הכלב נובח בגן.", "שָׁלוֹם לָכֶם, יְלָדִים!"),
    "Hindi": ("लड़का किताब पढ़ता है।", "लडका क्ष\u200dमा ज़रूर माँगेगा।"),
    "Turkish": ("İstanbul'da ılık bir gün geçirdik.", "Dişçi İnci'yi gördü."),
    "Finnish": ("Pöydällä on kissanpentuja.", "A\u0308iti ei syönyt leipää."),
    "Thai": ("แมวกำลังกินปลา", "เด็ก ๆ ไปโรงเรียน ทุกวัน"),
}
"""Scripts without blanks, from right to left, with combining marks, and composed in two ways."""

SCRIPTS = [text for texts in LANGUAGES.values() for text in texts]

DIVIDED = [
    Sentence(text, tuple(cut for cut in range(2, len(text), 3) if text[cut] != " "))
    for text in SCRIPTS
]
"""Regions that begin inside words, some of them at a combining mark."""


def unigram(normalizer: normalizers.Normalizer) -> PreTrainedTokenizerFast:
    """A tokenizer in the way of XLM-R and T5: `▁` starts a word, the most probable pieces."""
    normal = [normalizer.normalize_str(text) for text in SCRIPTS]
    pairs = {text[n : n + 2] for text in normal for n in range(0, len(text) - 1, 3)}
    pieces = sorted({*"".join(normal).replace(" ", ""), *(p for p in pairs if " " not in p)})
    scored = [("<unk>", 0.0), ("<s>", 0.0), ("<mask>", 0.0), ("▁", -4.0)]
    scored += [(piece, -3.0 - len(piece)) for piece in pieces]
    tokenizer = Tokenizer(models.Unigram(scored, 0))
    single = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([normalizer, single])
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace()
    tokenizer.decoder = decoders.Metaspace()
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, unk_token="<unk>", bos_token="<s>", eos_token="<s>",
        cls_token="<s>", sep_token="<s>", mask_token="<mask>",
    )  # fmt: skip


TOKENIZERS = {
    "bytes": byte_level,
    "merged bytes": lambda: trained_bytes(SCRIPTS * 3, 380),
    "unigram NFKC": lambda: unigram(normalizers.NFKC()),
    "unigram": lambda: unigram(normalizers.Sequence([])),
}


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_causal_models(name: str, unit: str, tmp_path: Path) -> None:
    save(gpt2, TOKENIZERS[name](), tmp_path)
    family = "xglm" if name.startswith("unigram") else "gpt2"  # they share how words are spelled
    answers = check(family, tmp_path, [*SCRIPTS, *DIVIDED], unit=unit)
    # Guards the test: sentences without blanks are one word of several tokens, with a probability.
    assert [word.n_tokens > 1 for word in answers[0].words] == [True]
    assert all(word.log_prob is not None for answer in answers for word in answer.words)


def save(make: Any, tokenizer: PreTrainedTokenizerFast, folder: Path, **config: Any) -> None:
    """Writes a random model and its tokenizer."""
    make(len(tokenizer), **config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
