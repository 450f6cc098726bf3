"""Sentences in many scripts, word by word, against the float64 reference of `test_word_by_word`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from tokenizer_files import byte_level, trained_bytes
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

from lmdiag.types import Sentence
from models.test_word_by_word import check
from models.toys import bert, gpt2

SENTENCES = {
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

TEXTS = [text for texts in SENTENCES.values() for text in texts]

DIVIDED = [
    Sentence(text, tuple(cut for cut in range(2, len(text), 3) if text[cut] != " "))
    for text in TEXTS
]
"""Regions that begin inside words, some of them at a combining mark."""


def unigram(normalizer: normalizers.Normalizer) -> PreTrainedTokenizerFast:
    """A tokenizer in the way of XLM-R and T5: `▁` starts a word, the most probable pieces."""
    normal = [normalizer.normalize_str(text) for text in TEXTS]
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
    "merged bytes": lambda: trained_bytes(TEXTS * 3, 380),
    "unigram NFKC": lambda: unigram(normalizers.NFKC()),
    "unigram": lambda: unigram(normalizers.Sequence([])),
}


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("name", TOKENIZERS)
def test_causal_models(name: str, unit: str, tmp_path: Path) -> None:
    save(gpt2, TOKENIZERS[name](), tmp_path)
    family = "xglm" if name.startswith("unigram") else "gpt2"  # they share how words are spelled
    answers = check(family, tmp_path, [*TEXTS, *DIVIDED], unit=unit)
    # Guards the test: sentences without blanks are one word of several tokens, with a probability.
    assert [word.n_tokens > 1 for word in answers[0].words] == [True]
    assert all(word.log_prob is not None for answer in answers for word in answer.words)


@pytest.mark.parametrize("pll", ["within-word", "original"])
def test_masked_models(pll: str, tmp_path: Path) -> None:
    save(bert, TOKENIZERS["unigram NFKC"](), tmp_path, max_position_embeddings=96)
    check("bert", tmp_path, [*TEXTS, *DIVIDED[::2]], pll=pll)


def save(make: Any, tokenizer: PreTrainedTokenizerFast, folder: Path, **config: Any) -> None:
    """Writes a random model and its tokenizer."""
    make(len(tokenizer), **config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
