"""Every family of models, asked by lmdiag and by an independent float64 reference."""

import shutil

import pytest
import reference
from families import FAMILIES, SEQ2SEQ, family_params
from reference import CLOSE
from transformers import AutoTokenizer
from vocabularies import UNKNOWN

from lmdiag import stimuli
from lmdiag.models import LoadOptions, load
from lmdiag.models.forward.reuse import no_reuse, reuse_keys_and_values, reuse_sources
from lmdiag.runs import asking
from lmdiag.types import DIAGNOSTICS, Query, Question
from models.toys import check_same, edit

BOS_FAMILIES = ("gpt2", "opt", "llama3", "llama", "gemma", "gpt_neox", "mamba", "bloom")
"""With and without a beginning-of-sequence token by default."""

EQUAL = {
    "deberta", "deberta-v2", "deberta-v3", "bloom", "falcon-alibi", "mamba", "rwkv", "fnet",
    "modernbert", "gpt_neo", "mistral", "gemma2", "gemma3", *(family.name for family in SEQ2SEQ),
}  # fmt: skip
"""Families whose position schemes do not let several contexts share a row, or whose windows here
are too narrow to be worth it."""

NO_CACHE = ("mamba", "rwkv", "glm_moe_dsa", "deepseek_v32")

PADDED = ("roberta", "roberta-causal", "ibert", "mpnet", "camembert", "xlm-roberta", "xmod", "luke")
"""Families that leave the padding token out when they count positions."""

QUERIES = (
    Query("He said “the Café on Mondays is not so quiet”, but a robin is a"),
    Query("The doctor told José that the", "was asleep in the garden."),
    Query("In the evening Zoë walks her old", ", and the cat sleeps!"),
    Query("A"),
    Query("The 日本 and the ½ chased one", "near the sea."),
)
"""Curly quotes, accents, capitals, marks after the blank, a short context, unknown letters."""

WORDS = ("bird", "tree", "student", "like", "penguin", "wrench", "Peter", "naïve", "sparrows")
"""Some are one piece and some several, in every vocabulary."""

QUESTIONS = [Question(query, (*WORDS, UNKNOWN), None, True) for query in QUERIES]

TOP = 8


def ask(model, questions, size=None):
    return asking.ask(model, questions, top=TOP, batch_size=size or len(questions))


def check(name, folder, unit="token", bos="auto", questions=QUESTIONS, plain="tree"):
    """Compares a family's answers and entropies with its reference; the list in unit `token`.

    Args:
        name, folder: of the family and its model.
        unit, bos: how it is asked.
        questions: what it is asked.
        plain: a word that leaves the pieces around it alone.
    """
    family = FAMILIES[name]
    model = load(str(folder), LoadOptions(bos=bos, unit=unit))
    answers = ask(model, questions)
    exact = reference.Reference(folder, family.kind, family.convention, bos, family.attention)
    for question, answer in zip(questions, answers, strict=True):
        for word in question.words:
            right, given = exact.score(*question.query[:2], word, unit), answer.words[word]
            if right is None:
                assert given == (None, None, 0), word
                continue
            assert given.log_prob == pytest.approx(right.log_prob, abs=CLOSE), word
            assert given.n_tokens == len(right.pieces), word
            assert unit == "word" or given.rank in right.ranks, word
        blank = exact.blank(*question.query[:2], plain)
        bits = pytest.approx(reference.entropy(blank), abs=CLOSE) if question.entropy else None
        assert answer.entropy == bits
        if unit == "word":
            continue
        best = blank.sort(descending=True).values[:TOP].tolist()
        assert answer.top_log_probs == pytest.approx(best, abs=CLOSE)
        for word, value in zip(answer.top_words, best, strict=True):
            near = (blank - value).abs().lt(2 * CLOSE).nonzero().flatten().tolist()
            assert word in map(model.vocabulary.show, near), word
    return model, answers


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("name", family_params(FAMILIES))
def test_the_answers_are_the_references(name, unit, family_dir):
    """Whatever goes through the model together, and whatever is not read again."""
    model, answers = check(name, family_dir(name), unit)
    spelled_by_bytes = FAMILIES[name].convention in ("byte-level", "metaspace-bpe")
    assert {(each.words[UNKNOWN].log_prob is not None) for each in answers} == {spelled_by_bytes}
    check_same(ask(model, QUESTIONS, 1), answers)
    check_same(ask(model, QUESTIONS[::-1], 2), answers[::-1])
    assert model.reader.layout == ("equal" if name in EQUAL else "packed")
    model.reader.layout = "equal"
    check_same(ask(model, QUESTIONS), answers)
    if unit == "word":
        reuses = {"masked": no_reuse, "causal": reuse_keys_and_values, "seq2seq": reuse_sources}
        expected = no_reuse if name in NO_CACHE else reuses[FAMILIES[name].kind]
        assert model.words.reuse is expected


@pytest.mark.parametrize("unit", ["token", "word"])
@pytest.mark.parametrize("name", family_params(PADDED))
def test_the_name_of_the_padding_token(name, unit, family_dir):
    contexts = ("The <pad> old man said that it was a", "The old man said <pad><pad>", "<pad> A")
    questions = [Question(Query(context), WORDS) for context in contexts]
    check(name, family_dir(name), unit, questions=questions)


@pytest.mark.parametrize("bos", ["always", "never"])
@pytest.mark.parametrize("name", family_params(BOS_FAMILIES))
def test_beginning_of_sequence(name, bos, family_dir):
    check(name, family_dir(name), bos=bos)


@pytest.mark.slow
@pytest.mark.parametrize(("name", "published"), [("bert", "bert-base-uncased"), ("gpt2", "gpt2")])
def test_all_rows_with_a_published_vocabulary(name, published, upstream, data_dir, tmp_path):
    """The 198 distinct contexts of the three diagnostics with the words of their 326 rows."""
    source = upstream.parent / "tokenizers" / published
    if not source.is_dir():
        pytest.skip(f"no published tokenizer at {source}")
    words = {}
    for task in DIAGNOSTICS:
        columns = stimuli.load(str(data_dir), task).columns()
        for *query, target in zip(
            columns["context"], columns["right_context"], columns["target"], strict=True
        ):
            words.setdefault(Query(*query), {})[target] = None
    questions = [Question(query, tuple(some)) for query, some in words.items()]
    folder = FAMILIES[name].make(tmp_path / published, source)
    _, answers = check(name, folder, questions=questions, plain="elephant")  # it is in no context
    n_tokens = [score.n_tokens for answer in answers for score in answer.words.values()]
    assert (len(questions), len(n_tokens)) == (198, 326)
    assert sum(n > 1 for n in n_tokens) == {"bert": 0, "gpt2": 11}[name]


def test_padding_token_without_an_embedding(family_dir, tmp_path):
    folder = shutil.copytree(family_dir("llama"), tmp_path / "llama")
    edit(folder, "tokenizer_config.json", pad_token="[PAD]")
    assert AutoTokenizer.from_pretrained(folder).pad_token == "[PAD]"
    check("llama", folder, unit="word")
