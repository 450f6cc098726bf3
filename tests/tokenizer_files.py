"""Tokenizers of every published convention, with small vocabularies.

`write` makes the files of a family (`tokenizer.json`, `tokenizer_config.json`) as it publishes
them: normalizer, splitting, special tokens, what is added around a text; only the vocabulary is a
small one (`vocabularies`). `wordpiece`, `byte_level`, `sentencepiece`, `ending` and `wordlevel`
return tokenizers of a handful of given pieces, for tests whose results can be checked by eye.
"""

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

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
from transformers import PreTrainedTokenizerFast


@dataclass(frozen=True)
class Published:
    """The tokenizer of a family.

    Attributes:
        model: wordpiece, byte-level, unigram or metaspace-bpe.
        specials: its special tokens, in the order of their ids.
        roles: what they are for, as in "unk=[UNK] mask=[MASK]".
        tokenizer_class: name in transformers.
        template: what is put around a text; "" for nothing.
        steps: replaces normalizer or pre-tokenizer of the model.
        config: further entries of `tokenizer_config.json`.
        lower: whether the vocabulary is lower-cased.
        strips: whether the mask takes the space before it.
        tail: special tokens after the vocabulary.
    """

    model: str
    specials: str
    roles: str
    tokenizer_class: str = "PreTrainedTokenizerFast"
    template: str = ""
    steps: Callable[[], dict[str, Any]] = dict
    config: dict[str, Any] = field(default_factory=dict)
    lower: bool = False
    strips: bool = False
    tail: tuple[str, ...] = ()


GPT4_SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
"""How Llama 3 splits words (a constant of its published tokenizer)."""


def _nmt_nfkc():
    """SentencePiece's own normalization."""
    return normalizers.Precompiled(vocabularies.charsmap())


def _albert(*folding):
    quotes = [normalizers.Replace("``", '"'), normalizers.Replace("''", '"')]
    return {"normalizer": normalizers.Sequence([*quotes, *folding, _nmt_nfkc()])}


def _split(*steps):
    return {"pre_tokenizer": pre_tokenizers.Sequence(list(steps))}


def _deberta_v2(*steps):
    spaces = normalizers.Replace(Regex(r"\s{2,}|[\n\r\t]"), " ")
    stripped = normalizers.Strip(left=False, right=True)
    folding = normalizers.Sequence([spaces, normalizers.NFC(), stripped])
    return {"normalizer": folding} | _split(*steps, pre_tokenizers.Metaspace())


def _nfc():
    return {"normalizer": normalizers.NFC()}


def _gpt4():
    return _split(
        pre_tokenizers.Split(Regex(GPT4_SPLIT), "isolated"),
        pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
    )


CLS = "unk=[UNK] pad=[PAD] cls=[CLS] sep=[SEP] mask=[MASK]"
S = "unk=<unk> bos=<s> eos=</s> pad=<pad> cls=<s> sep=</s>"
ALBERT = "unk=<unk> bos=[CLS] eos=[SEP] pad=<pad> cls=[CLS] sep=[SEP] mask=[MASK]"
AROUND, S_AROUND = "[CLS] $A [SEP]", "<s> $A </s>"
BERT, DEBERTA = "[PAD] [UNK] [CLS] [SEP] [MASK]", "[PAD] [CLS] [SEP] [UNK] [MASK]"
END = "<|endoftext|>"
_SENTINELS = tuple(f"<extra_id_{number}>" for number in range(99, -1, -1))

PUBLISHED = {
    "bert": Published(
        "wordpiece", BERT, CLS, "BertTokenizer", AROUND, config={"do_lower_case": True}, lower=True
    ),
    "bert-cased": Published(
        "wordpiece", BERT, CLS, "BertTokenizer", AROUND, config={"do_lower_case": False}
    ),
    "mpnet": Published(
        "wordpiece", "<s> <pad> </s> <unk> [UNK] <mask>",
        S.replace("<unk>", "[UNK]") + " mask=<mask>", "MPNetTokenizer", S_AROUND, lower=True,
        strips=True,
    ),
    "roberta": Published(
        "byte-level", "<s> <pad> </s> <unk> <mask>", S + " mask=<mask>", "RobertaTokenizer",
        steps=lambda: {"post_processor": processors.RobertaProcessing(("</s>", 2), ("<s>", 0))},
        strips=True,
    ),
    "deberta": Published("byte-level", DEBERTA, CLS, "DebertaTokenizer", AROUND, strips=True),
    "modernbert": Published(
        "byte-level", "[UNK] [CLS] [SEP] [PAD] [MASK]", CLS, template=AROUND, steps=_nfc,
        strips=True,
    ),
    "eurobert": Published(
        "byte-level", "<|begin_of_text|> <|end_of_text|> <|mask|> <|pad|>",
        "bos=<|begin_of_text|> eos=<|end_of_text|> mask=<|mask|> pad=<|pad|>",
        template="<|begin_of_text|> $A <|end_of_text|>", steps=_gpt4,
    ),
    "xlm-roberta": Published(
        "unigram", "<s> <pad> </s> <unk> <mask>", S + " mask=<mask>", "XLMRobertaTokenizer",
        S_AROUND, strips=True,
    ),
    "camembert": Published(
        "unigram", "<s>NOTUSED <pad> </s>NOTUSED <unk> <unk>NOTUSED <s> </s> <mask>",
        S + " mask=<mask>", "CamembertTokenizer", S_AROUND, strips=True,
    ),
    "albert": Published(
        "unigram", "<pad> <unk> [CLS] [SEP] [MASK]", ALBERT, "AlbertTokenizer", AROUND,
        steps=lambda: _albert(
            normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()
        ),
        lower=True, strips=True,
    ),
    "fnet": Published(
        "unigram", "<pad> <unk> [CLS] [SEP] [MASK]",
        "unk=<unk> pad=<pad> cls=[CLS] sep=[SEP] mask=[MASK]", "FNetTokenizer", AROUND,
        steps=_albert, config={"do_lower_case": False, "keep_accents": True}, strips=True,
    ),
    # Published without tokenizer.json: these are the files that transformers makes.
    "deberta-v2": Published(
        "unigram", DEBERTA, CLS, "DebertaV2Tokenizer", AROUND,
        steps=lambda: _deberta_v2(pre_tokenizers.Punctuation("isolated")),
        config={"do_lower_case": False, "split_by_punct": True},
    ),
    "deberta-v3": Published(
        "unigram", DEBERTA, CLS, "DebertaV2Tokenizer", AROUND, steps=_deberta_v2,
        config={"do_lower_case": False, "split_by_punct": False},
    ),
    "gpt2": Published(
        "byte-level", END, f"unk={END} bos={END} eos={END}", "GPT2Tokenizer",
        config={"add_prefix_space": False, "add_bos_token": False},
    ),
    # A text's first word begins with a blank, too.
    "gpt2-prefixed": Published(
        "byte-level", END, f"unk={END} bos={END} eos={END}",
        steps=lambda: {"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=True)},
    ),
    # No word begins with a blank: each blank is a token of its own.
    "gpt2-apart": Published(
        "byte-level", END, f"unk={END} bos={END} eos={END}",
        steps=lambda: _split(
            pre_tokenizers.Split(" ", "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ),
    ),
    "opt": Published(
        "byte-level", "</s> <pad>", "unk=</s> bos=</s> eos=</s>", "GPT2Tokenizer", "</s> $A",
        config={"add_prefix_space": False, "add_bos_token": True},
    ),
    "gpt_neox": Published(
        "byte-level", f"{END} <|padding|>", f"unk={END} bos={END} eos={END}", "GPTNeoXTokenizer",
        steps=_nfc,
    ),
    "bloom": Published(
        "byte-level", "<unk> <s> </s> <pad>", "unk=<unk> bos=<s> eos=</s> pad=<pad>",
        "BloomTokenizerFast",
        steps=lambda: _split(
            pre_tokenizers.Split(Regex(r" ?[^(\s|[.,!?…。，、।۔،])]+"), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ),
    ),
    "falcon": Published(
        "byte-level", f">>TITLE<< {END}", f"eos={END}",
        steps=lambda: _split(
            pre_tokenizers.Punctuation("contiguous"),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
            pre_tokenizers.Digits(individual_digits=False),
        ),
    ),
    "qwen2": Published(
        "byte-level", f"{END} <|im_start|> <|im_end|>", f"eos={END} pad={END}", "Qwen2Tokenizer",
        steps=lambda: _nfc() | _gpt4(),
    ),
    "llama3": Published(
        "byte-level", "<|begin_of_text|> <|end_of_text|>",
        "bos=<|begin_of_text|> eos=<|end_of_text|>", template="<|begin_of_text|> $A", steps=_gpt4,
    ),
    "llama": Published(
        "metaspace-bpe", "<unk> <s> </s>", "unk=<unk> bos=<s> eos=</s>", "LlamaTokenizer", "<s> $A",
        steps=lambda: {
            "normalizer": normalizers.Sequence(
                [normalizers.Prepend("▁"), normalizers.Replace(" ", "▁")]
            )
        },
        config={"add_bos_token": True, "add_eos_token": False, "legacy": False},
    ),
    "gemma": Published(
        "metaspace-bpe", "<pad> <eos> <bos> <unk> <mask>",
        "unk=<unk> bos=<bos> eos=<eos> pad=<pad>", "GemmaTokenizer", "<bos> $A",
        steps=lambda: {
            "normalizer": normalizers.Replace(" ", "▁"),
            "pre_tokenizer": pre_tokenizers.Split(" ", "merged_with_previous"),
        },
    ),
    "xglm": Published(
        "unigram", "<s> <pad> </s> <unk>", S, "XGLMTokenizer", "</s> $A",
        tail=tuple(f"<madeupword{number}>" for number in range(7)),
    ),
    "t5": Published(
        "unigram", "<pad> </s> <unk>", "unk=<unk> eos=</s> pad=<pad>", "T5Tokenizer", "$A </s>",
        config={"extra_ids": 100, "additional_special_tokens": list(reversed(_SENTINELS))},
        tail=_SENTINELS,
    ),
}  # fmt: skip
"""Family -> its tokenizer. mpnet is WordPiece with RoBERTa's special tokens, roberta is also
BART's, gpt_neox is also that of Pythia, Mamba and RWKV."""


def write(name, folder):
    """Writes the files of a family's tokenizer; returns the size of its vocabulary."""
    published = PUBLISHED[name]
    specials = tuple(published.specials.split())
    roles = {"unk": None} | dict(role.split("=") for role in published.roles.split())
    tokenizer = _build(published, specials)
    tokenizer.add_special_tokens(
        [
            AddedToken(each, lstrip=published.strips and each == roles["mask"], special=True)
            for each in (*specials, *published.tail)
        ]
    )
    folder.mkdir(parents=True, exist_ok=True)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": published.tokenizer_class, "model_max_length": 64}
    config |= {f"{role}_token": token for role, token in roles.items()} | published.config
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    return tokenizer.get_vocab_size()


def _build(published, specials):
    """Returns the tokenizer of a family; its model decides the usual steps."""
    lower = published.lower
    if published.model == "wordpiece":
        vocab = vocabularies.wordpiece(lower=lower, specials=specials)
        tokenizer = _wordpiece(vocab, lower)
    elif published.model == "byte-level":
        tokenizer = _byte_level(*vocabularies.byte_level(specials))
    elif published.model == "metaspace-bpe":
        vocab, merges = vocabularies.metaspace_bpe(specials=specials)
        fallback = {"unk_token": "<unk>", "fuse_unk": True, "byte_fallback": True}
        tokenizer = Tokenizer(models.BPE(vocab, merges, **fallback))
    else:
        pieces = vocabularies.unigram(specials=specials, lower=lower)
        unknown = next(i for i, (piece, _) in enumerate(pieces) if piece in ("<unk>", "[UNK]"))
        pieces = [*pieces, *((piece, 0.0) for piece in published.tail)]
        tokenizer = _unigram(pieces, unknown)
    _template(tokenizer, published.template)
    for step, value in published.steps().items():
        setattr(tokenizer, step, value)
    return tokenizer


def _wordpiece(vocab, lower):
    tokenizer = Tokenizer(models.WordPiece(vocab, unk_token="[UNK]"))
    tokenizer.normalizer = normalizers.BertNormalizer(lowercase=lower)
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.WordPiece()
    return tokenizer


def _byte_level(vocab, merges):
    tokenizer = Tokenizer(models.BPE(vocab, merges))
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    tokenizer.decoder = decoders.ByteLevel()
    return tokenizer


def _unigram(pieces, unknown):
    tokenizer = Tokenizer(models.Unigram(pieces, unknown))
    single_spaces = normalizers.Replace(Regex(" {2,}"), " ")
    tokenizer.normalizer = normalizers.Sequence([_nmt_nfkc(), single_spaces])
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.WhitespaceSplit(), pre_tokenizers.Metaspace()]
    )
    tokenizer.decoder = decoders.Metaspace()
    return tokenizer


def _template(tokenizer, template):
    names = [name for name in template.split() if name != "$A"]
    if names:
        tokenizer.post_processor = processors.TemplateProcessing(
            single=template, special_tokens=[(name, tokenizer.token_to_id(name)) for name in names]
        )


def _fast(tokenizer, template="", **roles):
    _template(tokenizer, template)
    names = {f"{role}_token": name for role, name in roles.items()}
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **names)


def wordpiece(*pieces, lower=True):
    """BERT's convention: `##` continues a word, [CLS] text [SEP]."""
    vocab = {piece: index for index, piece in enumerate((*BERT.split(), *pieces))}
    roles = dict(role.split("=") for role in CLS.split())
    return _fast(_wordpiece(vocab, lower), AROUND, **roles)


def byte_level(*merges, end=False):
    """GPT-2's convention: all 256 bytes, `Ġ` starts a word, then the results of the merges.

    Args:
        merges: pairs such as "Ġ b", in order.
        end: whether the tokenizer puts its end token after every text.
    """
    pairs = [tuple(merge.split(" ")) for merge in merges]
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    names = dict.fromkeys(("<|end|>", *alphabet, *map("".join, pairs)))
    vocab = {name: index for index, name in enumerate(names)}
    template = "$A <|end|>" if end else ""
    return _fast(_byte_level(vocab, pairs), template, bos="<|end|>", eos="<|end|>", unk=None)


def trained_bytes(texts, size):
    """GPT-2's convention, trained: in other scripts some merges cross or split characters."""
    vocab, merges = vocabularies.byte_level(("<|end|>",), tuple(texts), size)
    return _fast(_byte_level(vocab, merges), bos="<|end|>", eos="<|end|>", unk=None)


def unigram(*pieces):
    """XLM-R's and T5's convention: `▁` starts a word, and the fewest pieces are the best."""
    scored = [("<unk>", 0.0), ("<s>", 0.0), ("<mask>", 0.0), ("▁", -4.0)]
    scored += [(piece, -3.0 - len(piece)) for piece in pieces]
    roles = dict.fromkeys(("bos", "eos", "cls", "sep"), "<s>")
    return _fast(_unigram(scored, 0), unk="<unk>", mask="<mask>", **roles)


def sentencepiece(*pieces, bos=False, split=True, drop=False):
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
    merges = {}
    for piece in pieces:  # built from the left, intermediate pieces added
        for end in range(2, len(piece) + 1):
            vocab.setdefault(piece[:end], len(vocab))
            merges[piece[: end - 1], piece[end - 1]] = None
    tokenizer = Tokenizer(models.BPE(vocab, list(merges), unk_token=None if drop else "<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=split)
    tokenizer.decoder = decoders.Metaspace(prepend_scheme="first")
    return _fast(tokenizer, "<s> $A" if bos else "", unk="<unk>", bos="<s>", eos="</s>")


def ending(*pieces):
    """GPT-1's convention: `</w>` ends a word, marks are words of their own."""
    vocab = {"<unk>": 0}
    bare = [piece.removesuffix("</w>") for piece in pieces]
    last = [text[-1] + piece[len(text) :] for text, piece in zip(bare, pieces, strict=True)]
    for entry in (*pieces, *sorted({text[0] for text in bare}), *last):
        vocab.setdefault(entry, len(vocab))
    merges = [(text[0], end) for text, end in zip(bare, last, strict=True) if len(text) == 2]
    tokenizer = Tokenizer(models.BPE(vocab, merges, unk_token="<unk>", end_of_word_suffix="</w>"))
    tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    tokenizer.decoder = decoders.BPEDecoder(suffix="</w>")
    return _fast(tokenizer, unk="<unk>")


def wordlevel(*words):
    vocab = {"<unk>": 0} | {word: index for index, word in enumerate(words, start=1)}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    return _fast(tokenizer, unk="<unk>")


def names(tokenizer, ids):
    return None if ids is None else tokenizer.convert_ids_to_tokens(list(ids))
