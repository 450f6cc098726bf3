"""Small vocabularies of the four kinds that published tokenizers have, trained on the spot.

WordPiece (BERT), byte-level BPE (GPT-2), SentencePiece-like unigram (ALBERT, XLM-R, T5) and
SentencePiece-like BPE with byte fallback (Llama, Gemma). Frequent words of TEXT become one piece,
rare ones several; characters that TEXT lacks are unknown to WordPiece and unigram.
"""

import io
import json
from collections import Counter
from functools import lru_cache

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

TEXT = """
A robin is a bird and a trout is a fish.
The bird is not a tree, and the tree is not a bird.
My sister bought a new hammer; her brother wanted a saw.
The waiter brought the customer a cold drink.
Which customer had the waiter served?
The cook forgot which guest the waiter had thanked.
He thought the café was “too quiet” on Mondays.
She said, “I don’t like the naïve answer.”
It’s a small town, isn’t it?
An apple is a fruit; a carrot is a vegetable.
The farmers near the river sell apples and carrots.
Zoë and José walked their dog to the park.
The dog chased the cat, and the cat chased the mouse.
Most birds can fly, but a penguin can’t.
Anna put the salt and the pepper on the table.
In the evening the children play football in the garden.
The old woman who lived near the sea kept three cats.
They wanted to make the hotel look more like a tropical island.
So along the drive they planted rows of palms.
The authors that the guard likes laugh.
The author who likes the guards smiles.
The doctor told the nurse that the patient was asleep.
A hammer is a tool. A hammer is not a bird.
A rose is a flower. A rose is not an insect.
An ant is an insect. An ant is not a tool.
The students read a book about the history of the city.
Every morning the baker sells bread, cakes and pies.
The teacher asked which student the principal had praised.
Uncle Peter drives a red truck to the market.
We saw a robin, a sparrow and an eagle above the trees.
The mechanic repaired the car with a wrench.
Is the soup hot? Yes, the soup is hot!
The judge sentenced the thief to a year in prison.
At night, the owl hunts mice in the field.
Nobody knew where the key was, so they broke the window.
The singer wore a green dress and a straw hat.
Fish swim in the sea; birds fly in the air.
The pilot landed the plane in the heavy rain.
“Please close the door,” whispered the librarian.
Their crème brûlée was the best in the whole city.
""".strip()
"""Everyday sentences with curly quotes, accents and capitals; written for these tests."""

LINES = tuple(TEXT.splitlines())

UNKNOWN = "жук"
"""A word whose letters TEXT lacks: unknown to WordPiece and unigram vocabularies."""

BYTES = tuple(f"<0x{byte:02X}>" for byte in range(256))
"""The pieces of byte fallback, as SentencePiece writes them."""

_TRAINING_SPLIT = pre_tokenizers.Sequence(
    [pre_tokenizers.Metaspace(), pre_tokenizers.Punctuation("isolated")]
)
"""SentencePiece makes no pieces across a word's end or between letters and marks."""


@lru_cache
def wordpiece(*, lower, specials):
    """Returns a WordPiece vocabulary: special tokens, letters, frequent words, parts of words.

    Counted here, because the library's trainer breaks ties differently in every process.
    """
    normalizer = normalizers.BertNormalizer(lowercase=lower)
    splitter = pre_tokenizers.BertPreTokenizer()
    pieces = [piece for piece, _ in splitter.pre_tokenize_str(normalizer.normalize_str(TEXT))]
    letters = sorted({letter for piece in pieces for letter in piece})
    words = _most_common(pieces, 60)
    opening = _most_common([piece[:n] for piece in pieces for n in (2, 3)], 60)
    parts = [
        piece[start : start + n]
        for piece in pieces
        for n in (2, 3)
        for start in range(1, len(piece) - n + 1)
    ]
    continuing = [f"##{part}" for part in (*letters, *_most_common(parts, 80))]
    unique = dict.fromkeys([*specials, *letters, *words, *opening, *continuing])
    return {piece: number for number, piece in enumerate(unique)}


@lru_cache
def byte_level(specials, texts=LINES, size=440):
    """Returns vocabulary and merges of a byte-level BPE; blanks are part of the word (Ġ)."""
    trainer = trainers.BpeTrainer(
        vocab_size=size,
        special_tokens=list(specials),
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    split = pre_tokenizers.ByteLevel(add_prefix_space=False)
    model = _train(models.BPE(), trainer, split, texts=texts)
    return model["vocab"], [tuple(merge) for merge in model["merges"]]


@lru_cache
def metaspace_bpe(*, specials):
    """Returns vocabulary and merges of a SentencePiece-like BPE: specials, bytes, then pieces."""
    trainer = trainers.BpeTrainer(vocab_size=250, show_progress=False)
    model = _train(models.BPE(), trainer, _TRAINING_SPLIT)
    pieces = [*specials, *BYTES, *sorted(model["vocab"], key=model["vocab"].__getitem__)]
    vocab = {piece: number for number, piece in enumerate(pieces)}
    return vocab, [tuple(merge) for merge in model["merges"]]


@lru_cache
def unigram(*, specials, lower=False):
    """Returns pieces with log-probabilities; the special tokens come first, with 0.

    The trainer's last digits and the order of equal pieces change from process to process: they are
    rounded off, and ordered here, no two pieces equal.
    """
    steps = [normalizers.NFKC()]
    if lower:
        steps = [normalizers.NFKD(), normalizers.StripAccents(), normalizers.Lowercase()]
    trainer = trainers.UnigramTrainer(
        vocab_size=220, special_tokens=["<unk>"], unk_token="<unk>", show_progress=False
    )
    vocab = _train(models.Unigram(), trainer, _TRAINING_SPLIT, *steps)["vocab"]
    rounded = [(piece, round(score, 3)) for piece, score in vocab if piece != "<unk>"]
    ordered = sorted(rounded, key=lambda entry: (-entry[1], entry[0]))
    pieces = [(piece, score - 1e-6 * place) for place, (piece, score) in enumerate(ordered)]
    return [(piece, 0.0) for piece in specials] + pieces


@lru_cache
def charsmap():
    """Returns SentencePiece's own normalisation table (nmt_nfkc), as published files carry it."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    trained = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=iter(LINES), model_writer=trained, vocab_size=60, minloglevel=2,
        hard_vocab_limit=False, normalization_rule_name="nmt_nfkc",
    )  # fmt: skip
    model = sentencepiece_model_pb2.ModelProto.FromString(trained.getvalue())
    return bytes(model.normalizer_spec.precompiled_charsmap)


def _most_common(texts, n):
    counts = Counter(texts)
    return sorted(counts, key=lambda text: (-counts[text], text))[:n]


def _train(model, trainer, split, *steps, texts=LINES):
    """Returns the model part of a `tokenizer.json` trained on texts."""
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Sequence(list(steps))
    tokenizer.pre_tokenizer = split
    tokenizer.train_from_iterator(texts, trainer)
    return json.loads(tokenizer.to_str())["model"]
