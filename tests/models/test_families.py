"""Every family of models, asked by lmdiag and by an independent float64 reference.

The reference (`reference`) runs transformers' own model on one sentence at a time, without padding,
for every piece of every word.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from families import FAMILIES, SEQ2SEQ, family_params
from reference import Reference, Scored
from vocabularies import UNKNOWN

from lmdiag import stimuli
from lmdiag.models import LoadOptions, Model, load
from lmdiag.models.forward.reuse import no_reuse, reuse_keys_and_values, reuse_sources
from lmdiag.models.whole_words.search import WordSearch
from lmdiag.protocol import Unit
from lmdiag.types import DIAGNOSTICS, Answer, Query, Question
from models.toys import edit

FamilyDir = Callable[[str], Path]

BOS_FAMILIES = ("gpt2", "opt", "llama3", "llama", "gemma", "gpt_neox", "mamba", "bloom")
"""With and without a beginning-of-sequence token by default."""

EQUAL = {
    "deberta", "deberta-v2", "deberta-v3", "bloom", "falcon-alibi", "mamba", "rwkv", "fnet",
    "modernbert", "gpt_neo", "mistral", "gemma2", "gemma3", *(family.name for family in SEQ2SEQ),
}  # fmt: skip
"""Families whose position schemes do not let several contexts share a row, or whose windows here
are too narrow to be worth it."""

NO_CACHE = ("mamba", "rwkv")

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

QUESTIONS = [Question(query, (*WORDS, UNKNOWN)) for query in QUERIES]

PLAIN = "tree"
"""A word that leaves the pieces around it alone in every vocabulary."""

TOP = 8

TOLERANCES = {"token": 1e-5, "word": 2e-5}
"""Nats; the models are float32, the reference float64."""


def ask(
    model: Model, questions: Sequence[Question], size: int | None = None, top: int = TOP
) -> list[Answer]:
    """Returns the answers, asked in batches of a size, in the questions' order."""
    encoded = [model.encode(question) for question in questions]
    size = size or len(encoded)
    batches = [encoded[start : start + size] for start in range(0, len(encoded), size)]
    return [answer for batch in batches for answer in model.answer(batch, top)]


def check_family(name: str, folder: Path, unit: Unit = "token", bos: str = "auto") -> list[Answer]:
    """Compares a family's answers with its reference; the list only in unit `token`."""
    family = FAMILIES[name]
    answers = ask(load(str(folder), LoadOptions(bos=bos, unit=unit)), QUESTIONS)  # type: ignore[arg-type]
    reference = Reference(folder, family.kind, family.convention, bos, family.attention)
    for question, answer in zip(QUESTIONS, answers, strict=True):
        score = reference.score_whole if unit == "word" else reference.score
        scored = {word: score(*question.query, word) for word in question.words}
        if unit == "token":
            # Two more than the answer has, so that its last ones can be told from a near tie.
            check_top(answer, reference.top(*question.query, PLAIN, TOP + 2))
        check_words(answer, scored, unit)
        sizes = [len(each.pieces) > 1 for each in scored.values() if each is not None]
        assert min(sizes.count(True), sizes.count(False)) >= 2
    return answers


def check_words(answer: Answer, scored: dict[str, Scored | None], unit: Unit = "token") -> None:
    """Scores are the reference's."""
    for word, right in scored.items():
        given = answer.words[word]
        if right is None:
            assert given == (None, None, 0), word
            continue
        assert given.log_prob == pytest.approx(right.log_prob, abs=TOLERANCES[unit]), word
        assert given.n_tokens == len(right.pieces), word
        assert unit == "word" or given.rank in right.ranks, word


def check_top(answer: Answer, top: Sequence[tuple[str | None, float]]) -> None:
    """Each place holds the reference's item, or one that is as good within the tolerance."""
    tolerance = TOLERANCES["token"]
    values = [value for _, value in top]
    assert answer.top_log_probs == pytest.approx(values[:TOP], abs=tolerance)
    for word, value in zip(answer.top_words, values, strict=False):
        near = {shown for shown, other in top if abs(other - value) < 2 * tolerance}
        assert word in near or None in near, (word, near)


def check_same(first: Iterable[Answer], second: Iterable[Answer], unit: Unit = "token") -> None:
    """Answers to the same questions are the same up to float32."""
    for one, other in zip(first, second, strict=True):
        assert one.top_words == other.top_words
        assert one.top_log_probs == pytest.approx(other.top_log_probs, abs=TOLERANCES[unit])
        for word, score in one.words.items():
            assert score[1:] == other.words[word][1:], word
            expected = other.words[word].log_prob
            assert score.log_prob == (expected and pytest.approx(expected, abs=TOLERANCES[unit]))


@pytest.fixture(scope="module")
def loaded(family_dir: FamilyDir) -> Callable[..., Model]:
    """Returns a function from a family's name and a unit to its model."""
    models: dict[tuple[str, Unit], Model] = {}

    def get(name: str, unit: Unit = "token") -> Model:
        if (name, unit) not in models:
            models[name, unit] = load(str(family_dir(name)), LoadOptions(unit=unit))
        return models[name, unit]

    return get


@pytest.mark.parametrize("name", family_params(FAMILIES))
def test_the_answers_are_the_references(name: str, family_dir: FamilyDir) -> None:
    answers = check_family(name, family_dir(name))
    spelled_by_bytes = FAMILIES[name].convention in ("byte-level", "metaspace-bpe")
    assert {(each.words[UNKNOWN].log_prob is not None) for each in answers} == {spelled_by_bytes}
    # Guards the other tests: a model that looked at nothing but the blank would agree, too.
    probabilities = [answer.words[PLAIN].log_prob for answer in answers]
    assert len({round(p, 4) for p in probabilities if p is not None}) == len(QUERIES)


@pytest.mark.parametrize("name", family_params(FAMILIES))
def test_whole_words_are_the_references(name: str, family_dir: FamilyDir) -> None:
    check_family(name, family_dir(name), unit="word")


@pytest.mark.parametrize("bos", ["always", "never"])
@pytest.mark.parametrize("name", family_params(BOS_FAMILIES))
def test_beginning_of_sequence(name: str, bos: str, family_dir: FamilyDir) -> None:
    check_family(name, family_dir(name), bos=bos)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("family", "published", "size", "n_several"),
    [("bert", "bert-base-uncased", 30522, 0), ("gpt2", "gpt2", 50257, 11)],
)
def test_all_rows_with_a_published_vocabulary(
    family: str,
    published: str,
    size: int,
    n_several: int,
    upstream: Path,
    data_dir: Path,
    tmp_path: Path,
) -> None:
    """The 198 distinct contexts of the three diagnostics with the words of their 326 rows."""
    source = upstream.parent / "tokenizers" / published
    if not source.is_dir():
        pytest.skip(f"no published tokenizer at {source}")
    words: dict[Query, dict[str, None]] = {}
    for task in DIAGNOSTICS:
        columns = stimuli.load(str(data_dir), task).columns()
        for *query, target in zip(
            columns["context"], columns["right_context"], columns["target"], strict=True
        ):
            words.setdefault(Query(*query), {})[target] = None
    questions = [Question(query, tuple(some)) for query, some in words.items()]
    made = FAMILIES[family]
    folder = made.make(tmp_path / published, (source, size))
    reference = Reference(folder, made.kind, made.convention)
    n_tokens = []
    for question, answer in zip(questions, ask(load(str(folder)), questions, 32), strict=True):
        scored = {word: reference.score(*question.query, word) for word in question.words}
        assert None not in scored.values()
        check_words(answer, scored)
        # "elephant" is in no context, and leaves the pieces around it alone
        check_top(answer, reference.top(*question.query, "elephant", 10))
        n_tokens += [given.n_tokens for given in answer.words.values()]
    assert (len(questions), len(n_tokens)) == (198, 326)
    assert sum(n > 1 for n in n_tokens) == n_several


class TestCompany:
    """No number depends on what goes through the model together."""

    @pytest.mark.parametrize("unit", ["token", "word"])
    @pytest.mark.parametrize("name", family_params(FAMILIES))
    def test_batches(self, name: str, unit: Unit, loaded: Callable[..., Model]) -> None:
        model = loaded(name, unit)
        alone = ask(model, QUESTIONS, 1)
        check_same(alone, ask(model, QUESTIONS), unit)
        check_same(alone[::-1], ask(model, QUESTIONS[::-1], 2), unit)

    @pytest.mark.parametrize("name", family_params(FAMILIES))
    def test_packing(self, name: str, family_dir: FamilyDir, loaded: Callable[..., Model]) -> None:
        packed, plain = loaded(name), load(str(family_dir(name)), LoadOptions(packing="never"))
        check_same(ask(packed, QUESTIONS), ask(plain, QUESTIONS))
        assert packed.reader.layout == ("equal" if name in EQUAL else "packed")
        assert plain.reader.layout == "equal"

    def test_padding_token_without_an_embedding(
        self, family_dir: FamilyDir, tmp_path: Path
    ) -> None:
        from transformers import AutoTokenizer

        folder = shutil.copytree(family_dir("llama"), tmp_path / "llama")
        edit(folder, "tokenizer_config.json", pad_token="[PAD]")
        plain, model = (
            load(str(made), LoadOptions(unit="word")) for made in (family_dir("llama"), folder)
        )
        assert AutoTokenizer.from_pretrained(folder).pad_token_id >= model.info.vocab_size
        check_same(ask(plain, QUESTIONS), ask(model, QUESTIONS), "word")


class TestWholeWords:
    @pytest.mark.parametrize("name", family_params(FAMILIES))
    def test_what_is_reused(self, name: str, loaded: Callable[..., Model]) -> None:
        """And that it gives what reading again gives."""
        model = loaded(name, "word")
        reuses = {"masked": no_reuse, "causal": reuse_keys_and_values, "seq2seq": reuse_sources}
        expected = no_reuse if name in NO_CACHE else reuses[FAMILIES[name].kind]
        assert model.words.reuse is expected
        if expected is not no_reuse:
            again = WordSearch(model.encoder, model.reader, model.vocabulary, model.info)
            again.reuse = no_reuse
            check_same(ask(model, QUESTIONS), ask(again, QUESTIONS), "word")  # type: ignore[arg-type]

    def test_contexts_are_read_once(self, family_dir: FamilyDir) -> None:
        """All rounds together read each context's tokens once, and then the pieces alone."""
        model = load(str(family_dir("gpt2")), LoadOptions(unit="word"))
        given: list[tuple[int, ...]] = []

        def note(_: Any, __: Any, arguments: dict[str, Any]) -> None:
            given.append(tuple(arguments["input_ids"].shape))

        model.reader.model.register_forward_pre_hook(note, with_kwargs=True)  # type: ignore[attr-defined]
        batch = [model.encode(question) for question in QUESTIONS]
        model.answer(batch, 5)
        contexts, *rounds = given
        assert contexts == (len(batch), max(len(each.rows[0].ids) for each in batch))
        assert len(rounds) > 2
        assert max(width for _, width in rounds) <= 8
