"""Tokenizers that were trained at home: their tokenizer.json is read, whatever transformers makes.

The reference reads the file with `tokenizers` alone, and the network in float64.
"""

import json
import shutil
from itertools import product

import pytest
import shown
import torch
import transformers
from reference import CLOSE, double
from sentence_texts import SENTENCES
from tokenizer_files import PUBLISHED
from tokenizer_files import write as write_published
from tokenizers import (
    Tokenizer,
    decoders,
    models,
    normalizers,
    pre_tokenizers,
    processors,
    trainers,
)

import lmdiag
from lmdiag.models import load
from lmdiag.models.demo import demo_folder
from lmdiag.models.loading.tokenizer_file import use_tokenizer_file
from lmdiag.types import Query, Question
from models.toys import ask, edit

BYTES = pre_tokenizers.ByteLevel(add_prefix_space=False)
STEPS = {
    "lower case": {"normalizer": normalizers.Lowercase()},
    "no accents": {"normalizer": normalizers.Sequence([normalizers.NFD(),
                                                       normalizers.StripAccents()])},
    "digits apart": {"pre_tokenizer": pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), BYTES])},
    "leading blank": {"pre_tokenizer": pre_tokenizers.ByteLevel(add_prefix_space=True)},
}  # fmt: skip
"""What stands in a file, and not in GPT-2's."""

BYTE_LEVEL = ("GPT2TokenizerFast", "RobertaTokenizerFast", "CodeGenTokenizerFast",
              "Qwen2TokenizerFast")  # fmt: skip
WORDPIECE = ("BertTokenizerFast", "DistilBertTokenizer", "ElectraTokenizerFast")
QUICK = (("GPT2TokenizerFast", "lower case"), ("BertTokenizerFast", "cased"))
CASES = [
    pytest.param(*case, marks=() if case in QUICK else pytest.mark.slow)
    for case in [*product(BYTE_LEVEL, STEPS), *product(WORDPIECE, ("cased", "no special tokens"))]
]
TEXTS = [*SENTENCES, *["Rooms 12, 123 and 1234 are free.", "John drew a naïve Café."] * 20]


def trained(name, step):
    """A tokenizer trained on a few sentences, as its own file has it."""
    specials = {"unk_token": "[UNK]", "mask_token": "[MASK]", "pad_token": "[PAD]"}
    if name in BYTE_LEVEL:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = BYTES
        tokenizer.decoder = decoders.ByteLevel()
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(vocab_size=600, initial_alphabet=alphabet,
                                      special_tokens=[*specials.values()])  # fmt: skip
    else:
        tokenizer = Tokenizer(models.WordPiece(unk_token="[UNK]"))
        tokenizer.normalizer = normalizers.BertNormalizer(lowercase=step != "cased")
        tokenizer.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
        tokenizer.decoder = decoders.WordPiece()
        names = ["[CLS]", "[SEP]"]
        specials |= {"cls_token": names[0], "sep_token": names[1]}
        trainer = trainers.WordPieceTrainer(vocab_size=500, special_tokens=[*specials.values()])
    tokenizer.train_from_iterator(TEXTS, trainer)
    for part, value in STEPS.get(step, {}).items():
        setattr(tokenizer, part, value)
    if step == "cased":
        ids = [(each, tokenizer.token_to_id(each)) for each in names]
        tokenizer.post_processor = processors.TemplateProcessing("[CLS] $A [SEP]", None, ids)
    return tokenizer, specials


def write(folder, name, step):
    """Writes tokenizer and model; returns the tokenizer and the model in float64."""
    tokenizer, specials = trained(name, step)
    kind = "masked" if name in WORDPIECE or name.startswith("Roberta") else "causal"
    torch.manual_seed(0)
    size = {"vocab_size": tokenizer.get_vocab_size() + 9}  # of special tokens that a class adds
    if kind == "causal":
        shape = {"n_embd": 16, "n_layer": 1, "n_head": 2, "n_positions": 96}
        model = transformers.GPT2LMHeadModel(transformers.GPT2Config(**size, **shape))
    else:
        shape = {"hidden_size": 16, "num_hidden_layers": 1, "num_attention_heads": 2}
        shape |= {"intermediate_size": 24, "max_position_embeddings": 160}
        model = transformers.BertForMaskedLM(transformers.BertConfig(**size, **shape))
    for parameter in model.parameters():
        parameter.data.add_(0.3 * torch.randn_like(parameter))
    model.save_pretrained(folder)
    tokenizer.save(str(folder / "tokenizer.json"))
    config = {"tokenizer_class": name, "model_max_length": 96} | specials
    (folder / "tokenizer_config.json").write_text(json.dumps(config), "utf-8")
    with double():
        loaded = type(model).from_pretrained(folder, dtype=torch.float64).eval()
    return tokenizer, loaded, kind


def score(tokenizer, network, kind, context, word):
    """Log-probability of a word by the file and the network alone, nats."""
    if kind == "causal":
        before, ids = (tokenizer.encode(text).ids for text in (context, f"{context} {word}"))
        assert ids[: len(before)] == before
        rows = [(ids, at - 1, ids[at]) for at in range(len(before), len(ids))]
    else:
        whole = tokenizer.encode(f"{context} {word}.")
        start, end = len(context), len(context) + 1 + len(word)  # the blank belongs to the word
        places = [i for i, (a, b) in enumerate(whole.offsets) if a < end and b > start]
        mask = tokenizer.token_to_id("[MASK]")
        rows = []
        for done, place in enumerate(places):
            later = places[done:]
            ids = [mask if i in later else id for i, id in enumerate(whole.ids)]
            rows.append((ids, place, whole.ids[place]))
    total = 0.0
    for ids, place, token in rows:
        with torch.inference_mode(), double():
            total += float(network(torch.tensor([ids])).logits[0, place].log_softmax(-1)[token])
    return total


@pytest.mark.parametrize(("name", "step"), CASES)
def test_words_are_read_as_the_file_says(name, step, tmp_path):
    tokenizer, network, kind = write(tmp_path, name, step)
    made = transformers.AutoTokenizer.from_pretrained(tmp_path)
    model = load(str(tmp_path))
    differs = [x for x in TEXTS if made(x).input_ids != tokenizer.encode(x).ids]
    assert differs  # or there is nothing to test
    assert f"{type(made).__name__} of transformers" in model.warning
    assert "as tokenizer.json says, which is used: " in model.warning
    for context in ("In room 1234 John said that a", "The Café near Paris was"):
        [answer] = ask(model, Question(Query(context), ("dog", "Mary", "12")))
        for word, given in answer.words.items():
            exact = score(tokenizer, network, kind, context, word)
            assert given.log_prob == pytest.approx(exact, abs=CLOSE), (context, word)


def test_both_readings_are_named_everywhere(tmp_path, command):
    """By a run, by `check`, in results.json and on the page."""
    write(tmp_path / "gpt2", "GPT2TokenizerFast", "lower case")
    told = "'John saw Mary' is [j o hn "
    data = command.folder / "data.csv"
    data.write_text("item,condition,sentence\n1,a,John saw a dog.\n1,b,Mary saw a dog.\n")
    output = command.folder / "runs"
    code, _, err = command("run", "--model", tmp_path / "gpt2", "--data", data, "--output", output)
    assert code == 0
    assert told in err
    [results] = output.rglob("results.json")
    assert told in json.loads(results.read_text("utf-8"))["warnings"][0]
    page = shown.page_of([lmdiag.load_run(results.parent)])
    assert "says, which is used: &#39;John saw Mary&#39; is [j o hn " in page
    (command.folder / "text.txt").write_text("John saw it.")
    assert told in command("check", data, "--model", tmp_path / "gpt2")[1]
    assert (
        told in command("surprisal", "--model", tmp_path / "gpt2", command.folder / "text.txt")[2]
    )


def test_a_trained_model_keeps_its_figures(tmp_path):
    """Whatever its tokenizer_config.json has transformers make of the file."""
    folder = shutil.copytree(demo_folder("causal"), tmp_path / "causal")
    edit(folder, "tokenizer_config.json", add_prefix_space=True)
    question = Question(Query("The old man said that he was a"), ("bird", "tree", "teacher"))
    original, model = load("demo:causal"), load(str(folder))
    assert original.warning is None
    assert "as tokenizer.json says" in model.warning
    assert ask(model, question) == ask(original, question)


@pytest.mark.slow
@pytest.mark.parametrize("name", PUBLISHED)
def test_published_files_need_no_warning(name, tmp_path):
    write_published(name, tmp_path)
    made = transformers.AutoTokenizer.from_pretrained(tmp_path)
    before = made.backend_tokenizer.to_str()
    assert use_tokenizer_file(name, made, tmp_path / "tokenizer.json") is None
    made.backend_tokenizer.no_truncation()
    assert made.backend_tokenizer.to_str() == before


def test_without_the_file_there_is_one_reading(tmp_path):
    """Vocabulary and merges, as GPT-2 had them at first."""
    write(tmp_path, "GPT2TokenizerFast", "lower case")
    transformers.AutoTokenizer.from_pretrained(tmp_path).backend_tokenizer.model.save(str(tmp_path))
    (tmp_path / "tokenizer.json").unlink()
    model = load(str(tmp_path))
    assert model.warning is None
    words = ask(model, Question(Query("In Paris a"), ("Dog", "dog")))[0].words
    assert words["Dog"] != words["dog"]
