"""Tokenizer folders as the families publish them: `tokenizer.json` and `tokenizer_config.json`.

Each function writes the files of one published convention (normaliser, splitting, special tokens,
what the tokenizer adds around a text), with a small vocabulary in place of the real one, so that
`AutoTokenizer` takes the same way as with the published files. They return the vocabulary's size.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import vocabularies
from tokenizers import (
    AddedToken,
    Regex,
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
)


def bert(folder: Path, *, lower: bool = True) -> int:
    """WordPiece, lower-cased or not; [CLS] text [SEP]."""
    specials = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]")
    vocab = vocabularies.wordpiece(lower=lower, specials=specials)
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    _template(tokenizer, "[CLS] $A [SEP]")
    config = _names("[UNK]", pad="[PAD]", cls="[CLS]", sep="[SEP]", mask="[MASK]")
    return _save(tokenizer, folder, "BertTokenizer", config | {"do_lower_case": lower}, specials)


def mpnet(folder: Path) -> int:
    """BERT's WordPiece with RoBERTa's special tokens; the mask takes the blank before it."""
    specials = ("<s>", "<pad>", "</s>", "<unk>", "[UNK]", "<mask>")
    vocab = vocabularies.wordpiece(lower=True, specials=specials)
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=True)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    _template(tokenizer, "<s> $A </s>")
    config = _names(
        "[UNK]", bos="<s>", eos="</s>", pad="<pad>", cls="<s>", sep="</s>", mask="<mask>"
    )
    return _save(tokenizer, folder, "MPNetTokenizer", config, specials, mask_lstrip=True)


def roberta(folder: Path) -> int:
    """Byte-level BPE; <s> text </s>; the mask takes the blank before it (also BART)."""
    specials = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    tokenizer = _byte_level(specials)
    tokenizer.post_processor = processors.RobertaProcessing(("</s>", 2), ("<s>", 0))
    config = _names(
        "<unk>", bos="<s>", eos="</s>", pad="<pad>", cls="<s>", sep="</s>", mask="<mask>"
    )
    return _save(tokenizer, folder, "RobertaTokenizer", config, specials, mask_lstrip=True)


def deberta(folder: Path) -> int:
    """Byte-level BPE with BERT's special tokens."""
    specials = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
    tokenizer = _byte_level(specials)
    _template(tokenizer, "[CLS] $A [SEP]")
    config = _names("[UNK]", pad="[PAD]", cls="[CLS]", sep="[SEP]", mask="[MASK]")
    return _save(tokenizer, folder, "DebertaTokenizer", config, specials, mask_lstrip=True)


def modernbert(folder: Path) -> int:
    """Byte-level BPE, NFC; [CLS] text [SEP]; the mask takes the blank before it."""
    specials = ("[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]")
    tokenizer = _byte_level(specials)
    tokenizer.normalizer = normalizers.NFC()
    _template(tokenizer, "[CLS] $A [SEP]")
    config = _names("[UNK]", pad="[PAD]", cls="[CLS]", sep="[SEP]", mask="[MASK]")
    return _save(tokenizer, folder, "PreTrainedTokenizerFast", config, specials, mask_lstrip=True)


def eurobert(folder: Path) -> int:
    """Llama 3's byte-level BPE with begin and end of text; the mask leaves the blank before it."""
    specials = ("<|begin_of_text|>", "<|end_of_text|>", "<|mask|>", "<|pad|>")
    tokenizer = _byte_level(specials)
    tokenizer.pre_tokenizer = vocabularies.byte_level_gpt4()
    _template(tokenizer, "<|begin_of_text|> $A <|end_of_text|>")
    names = _names(None, bos=specials[0], eos=specials[1], mask=specials[2], pad=specials[3])
    return _save(tokenizer, folder, "PreTrainedTokenizerFast", names, specials)


def xlm_roberta(folder: Path) -> int:
    """SentencePiece unigram; <s> text </s>; the mask takes the blank before it."""
    specials = ("<s>", "<pad>", "</s>", "<unk>", "<mask>")
    tokenizer = _unigram(specials)
    _template(tokenizer, "<s> $A </s>")
    config = _names(
        "<unk>", bos="<s>", eos="</s>", pad="<pad>", cls="<s>", sep="</s>", mask="<mask>"
    )
    return _save(tokenizer, folder, "XLMRobertaTokenizer", config, specials, mask_lstrip=True)


def camembert(folder: Path) -> int:
    """XLM-R's convention with CamemBERT's order of special tokens."""
    specials = ("<s>NOTUSED", "<pad>", "</s>NOTUSED", "<unk>", "<unk>NOTUSED", "<s>", "</s>")
    specials = (*specials, "<mask>")
    tokenizer = _unigram(specials)
    _template(tokenizer, "<s> $A </s>")
    config = _names(
        "<unk>", bos="<s>", eos="</s>", pad="<pad>", cls="<s>", sep="</s>", mask="<mask>"
    )
    return _save(tokenizer, folder, "CamembertTokenizer", config, specials, mask_lstrip=True)


def albert(folder: Path) -> int:
    """Lower-cased SentencePiece unigram without accents; [CLS] text [SEP]."""
    specials = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    tokenizer = _unigram(specials, lower=True)
    folding = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    tokenizer.normalizer = normalizers.Sequence([*_quotes(), *folding, _nmt_nfkc()])
    _template(tokenizer, "[CLS] $A [SEP]")
    config = _names(
        "<unk>", bos="[CLS]", eos="[SEP]", pad="<pad>", cls="[CLS]", sep="[SEP]", mask="[MASK]"
    )
    return _save(tokenizer, folder, "AlbertTokenizer", config, specials, mask_lstrip=True)


def fnet(folder: Path) -> int:
    """ALBERT's convention with case and accents kept."""
    specials = ("<pad>", "<unk>", "[CLS]", "[SEP]", "[MASK]")
    tokenizer = _unigram(specials)
    tokenizer.normalizer = normalizers.Sequence([*_quotes(), _nmt_nfkc()])
    _template(tokenizer, "[CLS] $A [SEP]")
    config = _names("<unk>", pad="<pad>", cls="[CLS]", sep="[SEP]", mask="[MASK]")
    config |= {"do_lower_case": False, "keep_accents": True}
    return _save(tokenizer, folder, "FNetTokenizer", config, specials, mask_lstrip=True)


def deberta_v2(folder: Path, *, split_by_punct: bool) -> int:
    """SentencePiece unigram with BERT's special tokens; v2 splits at punctuation, v3 does not."""
    specials = ("[PAD]", "[CLS]", "[SEP]", "[UNK]", "[MASK]")
    tokenizer = _unigram(specials)
    _template(tokenizer, "[CLS] $A [SEP]")
    config = _names("[UNK]", pad="[PAD]", cls="[CLS]", sep="[SEP]", mask="[MASK]")
    config |= {"do_lower_case": False, "split_by_punct": split_by_punct}
    return _save(tokenizer, folder, "DebertaV2Tokenizer", config, specials)


def gpt2(folder: Path, *, bos: bool = False) -> int:
    """Byte-level BPE, nothing around the text, or OPT's </s> before it."""
    end = "</s>" if bos else "<|endoftext|>"
    specials = (end, "<pad>") if bos else (end,)
    tokenizer = _byte_level(specials)
    if bos:
        _template(tokenizer, f"{end} $A")
    config = _names(end, bos=end, eos=end) | {"add_prefix_space": False, "add_bos_token": bos}
    return _save(tokenizer, folder, "GPT2Tokenizer", config, specials)


def gpt_neox(folder: Path) -> int:
    """Byte-level BPE, NFC, nothing around the text (Pythia, also Mamba and RWKV)."""
    specials = ("<|endoftext|>", "<|padding|>")
    tokenizer = _byte_level(specials)
    tokenizer.normalizer = normalizers.NFC()
    config = _names("<|endoftext|>", bos="<|endoftext|>", eos="<|endoftext|>")
    return _save(tokenizer, folder, "GPTNeoXTokenizer", config, specials)


def bloom(folder: Path) -> int:
    """Byte-level BPE with BLOOM's own splitting, nothing around the text."""
    specials = ("<unk>", "<s>", "</s>", "<pad>")
    tokenizer = _byte_level(specials)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(r" ?[^(\s|[.,!?…。，、।۔،])]+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    config = _names("<unk>", bos="<s>", eos="</s>", pad="<pad>")
    return _save(tokenizer, folder, "BloomTokenizerFast", config, specials)


def falcon(folder: Path) -> int:
    """Byte-level BPE after splitting off punctuation and digits, nothing around the text."""
    specials = (">>TITLE<<", "<|endoftext|>")
    tokenizer = _byte_level(specials)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            pre_tokenizers.Digits(individual_digits=False),
        ]
    )
    config = _names(None, eos="<|endoftext|>")
    return _save(tokenizer, folder, "PreTrainedTokenizerFast", config, specials)


def qwen2(folder: Path) -> int:
    """Byte-level BPE, NFC, no beginning-of-sequence token at all."""
    specials = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")
    tokenizer = _byte_level(specials)
    tokenizer.normalizer = normalizers.NFC()
    tokenizer.pre_tokenizer = vocabularies.byte_level_gpt4()
    config = _names(None, eos="<|endoftext|>", pad="<|endoftext|>")
    return _save(tokenizer, folder, "Qwen2Tokenizer", config, specials)


def llama3(folder: Path) -> int:
    """Byte-level BPE with <|begin_of_text|> before the text."""
    specials = ("<|begin_of_text|>", "<|end_of_text|>")
    tokenizer = _byte_level(specials)
    tokenizer.pre_tokenizer = vocabularies.byte_level_gpt4()
    _template(tokenizer, "<|begin_of_text|> $A")
    config = _names(None, bos=specials[0], eos=specials[1])
    return _save(tokenizer, folder, "PreTrainedTokenizerFast", config, specials)


def llama(folder: Path) -> int:
    """SentencePiece BPE with byte fallback and a blank before the first word; <s> text."""
    specials = ("<unk>", "<s>", "</s>")
    tokenizer = _metaspace_bpe(specials)
    tokenizer.normalizer = normalizers.Sequence(
        [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
    )
    _template(tokenizer, "<s> $A")
    config = _names("<unk>", bos="<s>", eos="</s>")
    config |= {"add_bos_token": True, "add_eos_token": False, "legacy": False}
    return _save(tokenizer, folder, "LlamaTokenizer", config, specials)


def gemma(folder: Path) -> int:
    """SentencePiece BPE with byte fallback, no blank before the first word; <bos> text."""
    specials = ("<pad>", "<eos>", "<bos>", "<unk>", "<mask>")
    tokenizer = _metaspace_bpe(specials)
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", "merged_with_previous")
    _template(tokenizer, "<bos> $A")
    config = _names("<unk>", bos="<bos>", eos="<eos>", pad="<pad>")
    return _save(tokenizer, folder, "GemmaTokenizer", config, specials)


def xglm(folder: Path) -> int:
    """SentencePiece unigram for a causal model; </s> before the text."""
    specials = ("<s>", "<pad>", "</s>", "<unk>")
    made_up = tuple(f"<madeupword{number}>" for number in range(7))
    tokenizer = _unigram(specials, tail=made_up)
    _template(tokenizer, "</s> $A")
    config = _names("<unk>", bos="<s>", eos="</s>", pad="<pad>", cls="<s>", sep="</s>")
    return _save(tokenizer, folder, "XGLMTokenizer", config, (*specials, *made_up))


def t5(folder: Path) -> int:
    """SentencePiece unigram; text </s>; a hundred sentinels at the end, the first one last."""
    sentinels = tuple(f"<extra_id_{number}>" for number in range(99, -1, -1))
    specials = ("<pad>", "</s>", "<unk>")
    tokenizer = _unigram(specials, tail=sentinels)
    _template(tokenizer, "$A </s>")
    config = _names("<unk>", eos="</s>", pad="<pad>")
    config |= {"extra_ids": 100, "additional_special_tokens": list(reversed(sentinels))}
    return _save(tokenizer, folder, "T5Tokenizer", config, (*specials, *sentinels))


def _byte_level(specials: tuple[str, ...]) -> Tokenizer:
    vocab, merges = vocabularies.byte_level(specials=specials)
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _metaspace_bpe(specials: tuple[str, ...]) -> Tokenizer:
    vocab, merges = vocabularies.metaspace_bpe(specials=specials)
    return Tokenizer(
        models.BPE(vocab, merges, unk_token="<unk>", fuse_unk=True, byte_fallback=True)
    )


def _unigram(
    specials: tuple[str, ...], *, lower: bool = False, tail: Sequence[str] = ()
) -> Tokenizer:
    vocab = vocabularies.unigram(specials=specials, lower=lower)
    unknown = next(i for i, (piece, _) in enumerate(vocab) if piece in ("<unk>", "[UNK]"))
    vocab = [*vocab, *((piece, 0.0) for piece in tail)]
    tokenizer = Tokenizer(models.Unigram(vocab, unknown))
    tokenizer.normalizer = normalizers.Sequence(
        [_nmt_nfkc(), normalizers.Replace(Regex(" {2,}"), " ")]
    )
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def _nmt_nfkc() -> normalizers.Normalizer:
    return normalizers.Precompiled(vocabularies.charsmap())


def _quotes() -> list[normalizers.Normalizer]:
    return [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]


def _template(tokenizer: Tokenizer, single: str) -> None:
    names = [name for name in single.split() if name != "$A"]
    tokenizer.post_processor = processors.TemplateProcessing(
        single=single, special_tokens=[(name, tokenizer.token_to_id(name)) for name in names]
    )


def _names(unknown: str | None, **names: str) -> dict[str, object]:
    return {"unk_token": unknown, **{f"{role}_token": name for role, name in names.items()}}


def _save(
    tokenizer: Tokenizer,
    folder: Path,
    tokenizer_class: str,
    config: dict[str, object],
    specials: Sequence[str],
    *,
    mask_lstrip: bool = False,
) -> int:
    tokenizer.add_special_tokens(
        [
            AddedToken(name, lstrip=mask_lstrip and name == config["mask_token"], special=True)
            for name in specials
        ]
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": tokenizer_class, "model_max_length": 64, **config}
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    return tokenizer.get_vocab_size()
