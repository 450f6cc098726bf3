"""A model behind a server gives the numbers of the same weights in this process, or is refused."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import pytest
from engines import FAULTS, DemoWeights, Dialect, Engine, TableWeights, every

import lmdiag
from lmdiag import models
from lmdiag.models import LoadOptions, Model
from lmdiag.models.demo import demo_folder
from lmdiag.models.server.client import Client
from lmdiag.types import BadInput, Query, Question, Sentence

TOKENIZER = str(demo_folder("causal"))
TOLERANCE = 1e-4
TASKS = ("cprag102", "role88", "neg136")
TEXTS = (
    "The robin is a bird.",
    "“A robin’s nest,” she said, “is naïve.”",
    "The  old man   saw the trout .",
)
BOS, SPECIAL = "<|endoftext|>", "[no text]"
"""The special token of the demo model, and how a token is shown that comes without a text."""

SCREENS = [("vllm", TOKENIZER, {}), ("vllm", None, {}), ("llama", None, {"bos": "always"})]
"""Dialect, tokenizer that is given, and options with which the local model reads the same."""


@pytest.fixture(scope="module")
def demo() -> DemoWeights:
    return DemoWeights()


@pytest.fixture(scope="module")
def table() -> TableWeights:
    return TableWeights()


def load(engine: Engine, **options: Any) -> Model:
    return models.load(engine.name, LoadOptions(server=engine.url, **options))


def refusal(engine: Engine, **options: Any) -> str:
    """The one line with which a server is refused."""
    with pytest.raises(BadInput) as error:
        load(engine, **options)
    assert "\n" not in str(error.value)
    return str(error.value)


# ---- the same numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize(("dialect", "tokenizer", "same"), SCREENS)
def test_words_and_lists_are_those_of_the_weights(
    demo: DemoWeights, demo_dir: Path, dialect: Dialect, tokenizer: str | None, same: dict[str, Any]
) -> None:
    local = lmdiag.load_model("demo:causal", **same)
    with Engine(demo, dialect) as engine:
        served = lmdiag.load_model("tiny", server=engine.url, tokenizer=tokenizer)
        for task in TASKS:
            rows = lmdiag.load_stimuli(str(demo_dir), task)
            ours, theirs = local.predict(rows), served.predict(rows)
            assert theirs.log_prob == pytest.approx(ours.log_prob, abs=TOLERANCE)
            assert theirs.n_tokens == ours.n_tokens
            assert theirs.top_words == [
                [SPECIAL if tokenizer is None and word == BOS else word for word in words or ()]
                for words in ours.top_words
            ]
            for a, b in zip(theirs.top_log_probs, ours.top_log_probs, strict=True):
                assert a == pytest.approx(b, abs=TOLERANCE)
            known = [i for i, rank in enumerate(theirs.rank) if rank is not None]
            assert known
            assert [theirs.rank[i] for i in known] == [ours.rank[i] for i in known]
            assert all(
                rank > 20 for rank in map(ours.rank.__getitem__, {*range(len(rows))} - {*known})
            )


@pytest.mark.parametrize(("dialect", "tokenizer", "same"), SCREENS)
def test_sentences_are_those_of_the_weights(
    demo: DemoWeights, dialect: Dialect, tokenizer: str | None, same: dict[str, Any]
) -> None:
    # Without a tokenizer nothing stands before a text, or the server does not tell of it.
    has_first = tokenizer is not None
    same = same if has_first or same else {"bos": "never"}
    local = lmdiag.load_model("demo:causal", **same)
    with Engine(demo, dialect) as engine:
        served = lmdiag.load_model("tiny", server=engine.url, tokenizer=tokenizer)
        ours, theirs = local.surprisals(TEXTS), served.surprisals(TEXTS)
    columns = ["text", "word", "start", "n_tokens"]
    assert theirs[columns].equals(ours[columns])
    for row in range(len(ours)):
        if ours["start"][row] == 0 and not has_first:
            assert math.isnan(theirs["surprisal"][row])
        else:
            assert theirs["surprisal"][row] == pytest.approx(ours["surprisal"][row], abs=1e-3)


def test_a_prompt_and_the_case_of_letters_reach_the_server(demo: DemoWeights) -> None:
    question = Question(Query("a robin is a"), ("bird",))
    options: dict[str, Any] = {"prompt": "It is true that {context}", "first_letter": "upper"}
    local = models.load("demo:causal", LoadOptions(**options))
    (ours,) = local.answer([local.encode(question)], 5)
    with Engine(demo) as engine:
        for tokenizer in (TOKENIZER, None):
            served = load(engine, tokenizer=tokenizer, **options)
            assert served.prompt == local.prompt
            (theirs,) = served.answer([served.encode(question)], 5)
            expected = ours.words["bird"].log_prob  # type: ignore[union-attr]
            assert theirs.words["bird"].log_prob == pytest.approx(expected, abs=TOLERANCE)  # type: ignore[union-attr]


def test_the_tokenizer_says_which_words_are_unscorable(demo: DemoWeights) -> None:
    question = Question(Query("A robin is a"), ("bird", "<|endoftext|>"))
    with Engine(demo) as engine:
        served = load(engine, tokenizer=TOKENIZER)
        (answer,) = served.answer([served.encode(question)], 5)
        assert answer.words["<|endoftext|>"] == (None, None, 0)  # type: ignore[union-attr]
        assert served.control_names(["a <|endoftext|>"]) == [["<|endoftext|>"]]


def test_a_word_below_what_the_server_tells_is_censored(demo: DemoWeights) -> None:
    with Engine(demo) as engine:
        served = load(engine)
        complete = engine.complete

        def clamped(body: dict[str, Any]) -> dict[str, Any]:
            document = complete(body)
            values = document["choices"][0]["logprobs"]["token_logprobs"]
            if body["prompt"].endswith(" stone"):
                values[-2] = -9999.0
            return document

        engine.complete = clamped  # type: ignore[method-assign]
        question = served.encode(Question(Query("A robin is a"), ("bird", "stone")))
        (answer,) = served.answer([question], 5)
        assert answer.words["stone"] == (None, None, 3)  # type: ignore[union-attr]
        assert answer.words["bird"].log_prob is not None  # type: ignore[union-attr]
        (words,) = served.answer([served.encode(Sentence("A robin is a stone"))], 0)
        assert words.log_prob is None  # type: ignore[union-attr]


def test_a_list_is_there_where_the_model_ends_the_text(table: TableWeights) -> None:
    with Engine(table, "llama") as engine:
        served = load(engine)
        (answer,) = served.answer([served.encode(Question(Query("wab wtt"), ("wab",)))], 5)
        plain = engine.complete({"model": "tiny", "prompt": "wab wtt", "logprobs": 5})
    assert plain["choices"][0]["logprobs"]["top_logprobs"] == []
    best = sorted(table.log_probs(table.encode(" wtt"))[0], reverse=True)[:5]
    assert answer.top_log_probs == pytest.approx(best)  # type: ignore[union-attr]
    assert answer.top_words[0] == SPECIAL  # type: ignore[union-attr]


@pytest.mark.parametrize("most", [1, 3, 7, 50])
def test_lists_are_as_long_as_the_servers(table: TableWeights, most: int) -> None:
    with Engine(table) as engine:
        engine.most = most
        served = load(engine)
        (answer,) = served.answer([served.encode(Question(Query("wab wcd"), ("wef",)))], 30)
        lengths = {1: 1, 3: 2, 7: 5, 50: 30}  # 20, 10, 5, 2 and 1 are tried
        assert len(answer.top_words) == lengths[most]  # type: ignore[union-attr]


# ---- what passes, and what does not --------------------------------------------------------------


def questions(served: Model, n: int = 40) -> list[Any]:
    words = [f"w{a}{b}" for a in "abcdefgh" for b in "abcde"]
    return [served.encode(Question(Query(f"wab {word}"), (word, "wcd"))) for word in words[:n]]


def test_faults_that_pass_change_nothing(table: TableWeights) -> None:
    with Engine(table) as engine:
        served = load(engine, in_flight=4)
        undisturbed = served.answer(questions(served), 5)
        before = len(engine.bodies)
        engine.fault = every(5)
        again = served.answer(questions(served), 5)
        sent = len(engine.bodies) - before
    assert again == undisturbed
    assert sent >= 80 * 5 / 4 - 1  # a fifth of all requests failed
    assert engine.most_at_once <= 4


def test_requests_go_side_by_side(table: TableWeights) -> None:
    with Engine(table) as engine:
        served = load(engine, in_flight=4)
        assert engine.most_at_once == 1
        engine._held.clear()
        engine.hold = 4  # it would wait for ever if fewer came
        served.answer(questions(served), 5)
        assert engine.most_at_once == 4


@pytest.mark.parametrize("fault", ["429", "slow 429"])
def test_a_server_that_stays_busy_ends_the_run(table: TableWeights, fault: str) -> None:
    assert fault in FAULTS
    with Engine(table) as engine:
        client = Client(engine.url, 1)
        engine.fault = lambda number: fault
        with pytest.raises(BadInput, match=r"gave no answer in 3 attempts \(status 429: busy\)"):
            client.post("completions", {}, attempts=3)
        assert len(engine.bodies) == 3


def test_a_server_that_is_not_there_is_named(table: TableWeights) -> None:
    with Engine(table) as engine:
        url = engine.url
    line = refusal(engine)
    assert line.startswith(f"server {url}/v1 gave no answer in 4 attempts (")


HABITS = {
    "no prompt": "no log-probabilities of the prompt",
    "null prompt": "gives no log-probability for",
    "shifted": "gives a next token another log-probability than the same token in a prompt",
    "warm": "gives a next token another log-probability than the same token in a prompt",
    "logits": "of probability together",
    "restless": "gives other log-probabilities when the same is asked again",
    "nan": "gives nan for a log-probability",
    "positive": "gives a log-probability above 0",
    "other text": "gives tokens that join to 'JOINED",
}


@pytest.mark.parametrize("habit", HABITS)
def test_a_server_with_wrong_numbers_is_refused(table: TableWeights, habit: str) -> None:
    with Engine(table) as engine:
        engine.habit = habit
        assert HABITS[habit] in refusal(engine)


def test_wrong_numbers_in_the_middle_of_a_run_end_it(table: TableWeights) -> None:
    with Engine(table) as engine:
        served = load(engine)
        engine.habit = "nan"
        with pytest.raises(BadInput, match=r"gives nan .*; the text is 'wab waa'"):
            served.answer(questions(served, 1), 5)


def test_the_tokenizer_of_another_model_is_refused(
    demo: DemoWeights, tiny_models: dict[str, Path]
) -> None:
    with Engine(demo) as engine:
        line = refusal(engine, tokenizer=str(tiny_models["gpt2"]))
    assert "give --tokenizer the one of the model that is served" in line


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"unit": "word"}, "--unit word needs the whole distribution"),
        ({"kind": "masked"}, "--kind masked is not for a server"),
        ({"revision": "main"}, "--revision is for weights in this process"),
        ({"dtype": "bfloat16"}, "--dtype is for weights in this process"),
        ({"bos": "always"}, "--bos needs the tokenizer"),
        ({"chat": True}, "--chat needs the tokenizer"),
        ({"server": "localhost:8000"}, "is not an address"),
        ({"server": "http://user:secret@"}, "is not an address"),
    ],
)
def test_options_that_a_server_cannot_follow(
    table: TableWeights, options: dict[str, Any], said: str
) -> None:
    with Engine(table) as engine, pytest.raises(BadInput) as error:
        models.load("tiny", LoadOptions(**{"server": engine.url} | options))
    assert said in str(error.value)
    assert "secret" not in str(error.value)


def test_a_model_that_the_server_does_not_have_is_named(table: TableWeights) -> None:
    with Engine(table) as engine, pytest.raises(BadInput, match=r"has no model tinny.*tiny"):
        models.load("tinny", LoadOptions(server=engine.url))


# ---- the key -------------------------------------------------------------------------------------


@pytest.fixture
def key(monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("OPENAI_API_KEY", "of-someone-else")
    monkeypatch.setenv("LMDIAG_SERVER_KEY", "sesame")
    return "sesame"


def test_the_key_goes_to_the_server_and_into_no_message(table: TableWeights, key: str) -> None:
    with Engine(table) as engine:
        engine.key = key
        load(engine)
        assert {*engine.keys} == {f"Bearer {key}"}
        engine.key = "another"
        line = refusal(engine)
    assert "status 401" in line
    assert "LMDIAG_SERVER_KEY" in line
    assert key not in line
    assert "of-someone-else" not in line


def test_a_password_in_the_address_is_used_and_not_recorded(table: TableWeights) -> None:
    with Engine(table) as engine:
        url = engine.url.replace("//", "//me:secret@")
        served = models.load("tiny", LoadOptions(server=url))
        assert {*engine.keys} == {"Basic bWU6c2VjcmV0"}
    assert served.info.server == f"{engine.url}/v1"
    assert served.device == f"server {engine.url}/v1"
