"""Two words are the same for a model where its tokenizer reads the same tokens.

Beside tokens of `tokenizers` alone, and probabilities of the network in float64.
"""

import math

import pytest
from pandas import DataFrame
from tokenizer_files import PUBLISHED, byte_level, wordpiece
from tokenizer_files import write as write_published
from tokenizers import Tokenizer, normalizers
from transformers import PreTrainedTokenizerFast

import lmdiag
from lmdiag.api import LanguageModel
from lmdiag.measures import fold_word
from lmdiag.models.tokens.spelling import folds_of
from lmdiag.types import Query, Question
from models.toys import alone, ask, asked, bert

WORDS = ("vu", "Vu", "vü", "VÜ", "ｖu", "fine", "ﬁne", "wu")


@pytest.mark.parametrize(
    "normalizer",
    [None, normalizers.Lowercase(), normalizers.NFKC(), normalizers.BertNormalizer(),
     normalizers.BertNormalizer(lowercase=False),
     normalizers.BertNormalizer(strip_accents=True, lowercase=False),
     normalizers.Sequence([normalizers.NFKD(), normalizers.StripAccents(),
                           normalizers.Lowercase()])],
)  # fmt: skip
def test_words_are_the_same_where_their_tokens_are(normalizer):
    tokenizer = byte_level("v u", "f i")
    tokenizer.backend_tokenizer.normalizer = normalizer
    folds = folds_of(tokenizer)
    read = tokenizer.backend_tokenizer.encode
    for one in WORDS:
        for other in WORDS:
            same = read(f"a {one}").ids == read(f"a {other}").ids
            assert (fold_word(one, folds) == fold_word(other, folds)) == same, (one, other, folds)


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_tokenizers(name, tmp_path):
    write_published(name, tmp_path)
    own = Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    made = PreTrainedTokenizerFast(tokenizer_object=own)
    folds = folds_of(made)
    for one, other in (("Bird", "bird"), ("naïve", "naive"), ("ﬁne", "fine")):
        ids = [own.encode(word, add_special_tokens=False).ids for word in (one, other)]
        assert (fold_word(one, folds) == fold_word(other, folds)) == (ids[0] == ids[1]), (
            one,
            other,
        )


def test_the_top_word_of_an_uncased_model_is_the_expected_one(tmp_path):
    """It is `vu`, of rank 1; people's `vü` is it, in the accuracy, in lists and in cloze norms."""
    tokenizer = wordpiece("vu", "wu", "the", "deja", ".")
    network = bert(len(tokenizer))
    ids = [tokenizer.convert_tokens_to_ids(x) for x in ["[CLS]", "the", "[MASK]", ".", "[SEP]"]]
    vu = tokenizer.convert_tokens_to_ids("vu")
    network.cls.predictions.bias.data[vu] += 20
    exact = float(alone(network, ids, 2)[vu])
    model = asked(network, tokenizer, "masked")
    answer = ask(model, Question(Query("The"), ("vü",)))[0]
    assert answer.top_words[0] == "vu"
    assert answer.words["vü"].rank == 1
    assert answer.words["vü"].log_prob == pytest.approx(exact, abs=1e-4)
    loaded = LanguageModel(model, model.options)
    row = {"item": "1", "contrast": "1", "context": "The"}
    good = row | {"target": "vü", "good": True, "expected": ["vü"]}
    bad = row | {"target": "wu", "good": False, "expected": []}
    rows = lmdiag.load_stimuli([good, bad])
    measures = lmdiag.measure(loaded.predict(rows), rows)
    assert measures["accuracy@1"].value == 1
    assert lmdiag.measure(loaded.predict(rows), rows, cased=True)["accuracy@1"].value == 0
    responses = [("vü", 2), ("vu", 1), ("wu", 1)]
    table = [{"context": "The", "response": word, "count": n} for word, n in responses]
    norms = lmdiag.cloze(DataFrame(table), models=loaded, output=tmp_path)
    figures = norms.to_frame().set_index("measure")["value"]
    p = sum(
        math.exp(float(alone(network, ids, 2)[tokenizer.convert_tokens_to_ids(w)]))
        for w in ("vu", "wu")
    )
    assert figures["top_agrees"] == 1
    assert figures["mass"] == pytest.approx(p, abs=1e-4)  # not vu twice
    assert norms.top_words.set_index("word")["is_said"]["vu"]
