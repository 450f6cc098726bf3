"""A model behind a server gives the numbers of the same weights in this process, or is refused."""

import gzip
import math
import re
import subprocess
import sys
import time
from functools import cache
from itertools import count

import engines
import pytest
from engines import TOKENIZER, Answer, Engine, faults, honest, refusal
from launched import HANG
from reference import CLOSE

import lmdiag
from lmdiag import models
from lmdiag.models import LoadOptions
from lmdiag.models.loading.load import load_tokenizer
from lmdiag.models.server import client as requests
from lmdiag.models.server.client import IN_FLIGHT
from lmdiag.models.server.served import score_word
from lmdiag.types import BadInput, Query, Question, Sentence

TEXTS = (
    "The robin is a bird.",
    "“A robin’s nest,” she said, “is naïve.”",
    " ".join(["The old man saw the trout ."] * 30),  # longer than the server's 128 tokens
)


@pytest.fixture(autouse=True)
def short_pauses(monkeypatch):
    monkeypatch.setattr(requests, "FIRST_PAUSE", 0.001)


@cache
def loaded(folder):
    return load_tokenizer(folder, LoadOptions())


@pytest.fixture(autouse=True)
def one_tokenizer(monkeypatch):
    """The tokenizer of all servers is loaded once."""
    place = "lmdiag.models.server.load.load_tokenizer"
    monkeypatch.setattr(place, lambda folder, options: loaded(folder))


def load(engine, model="tiny", **options):
    given = {"server": engine.url, "tokenizer": TOKENIZER} | options
    return models.load(model, LoadOptions(**given))


def asked(model, context, words=(), top=5):
    (answer,) = model.answer([model.encode(Question(Query(context), words))], top)
    return answer


def refused(call):
    """The one line with which something is refused."""
    with pytest.raises(BadInput) as error:
        call()
    assert "\n" not in str(error.value)
    assert len(str(error.value)) < 700
    return str(error.value)


# ---- the same numbers ----------------------------------------------------------------------------


@pytest.mark.parametrize("dialect", ["vllm", "sglang"])
def test_numbers_are_those_of_the_weights(demo_dir, dialect):
    local = lmdiag.load_model("demo:causal")
    with Engine(dialect) as engine:
        served = lmdiag.load_model("tiny", server=engine.url, tokenizer=TOKENIZER)
        for task in ("cprag102", "neg136"):
            rows = lmdiag.load_stimuli(str(demo_dir), task)
            expected, given = local.predict(rows), served.predict(rows)
            assert given.log_prob == pytest.approx(expected.log_prob, abs=CLOSE)
            assert given.n_tokens == expected.n_tokens
            assert given.top_words == expected.top_words
            for a, b in zip(given.top_log_probs, expected.top_log_probs, strict=True):
                assert a == pytest.approx(b, abs=CLOSE)
            ranks = [*zip(given.rank, expected.rank, strict=True)]
            assert any(rank is not None for rank, _ in ranks)
            assert all(a == b or (a is None and b > 20) for a, b in ranks)
        texts = local.surprisals(TEXTS[:2]), served.surprisals(TEXTS[:2])
        assert len(served.surprisals(TEXTS[2:])) == 210  # read in windows
    assert texts[1].surprisal.to_numpy() == pytest.approx(texts[0].surprisal.to_numpy(), abs=1e-3)
    assert texts[1].drop(columns="surprisal").equals(texts[0].drop(columns="surprisal"))


def test_a_prompt_reaches_the_server():
    options = {"prompt": "It is true that {context}", "first_letter": "upper"}
    local = models.load("demo:causal", LoadOptions(**options))
    with Engine() as engine:
        served = load(engine, **options)
        words = ("a robin is a", ("bird", "<|endoftext|>"))
        given, expected = (asked(model, *words).words for model in (served, local))
    assert served.prompt == local.prompt
    assert given["bird"].log_prob == pytest.approx(expected["bird"].log_prob, abs=CLOSE)
    assert given["<|endoftext|>"] == (None, None, 0)  # unscorable
    assert served.control_names(["a <|endoftext|>"]) == [["<|endoftext|>"]]
    assert "cannot be used on whole sentences" in refused(lambda: served.encode(Sentence("A dog")))


def test_a_word_below_what_the_server_tells_is_censored():
    stone = [*engines.demo_model()[0](" stone")["input_ids"]]

    def clamp(body, document):
        if stone[-1] == body["prompt"][-1]:
            document["choices"][0]["prompt_logprobs"][-1][str(stone[-1])]["logprob"] = -9999.0
        return document

    with Engine() as engine:
        served = load(engine)
        engine.spoil = clamp
        words = asked(served, "A robin is a", ("bird", "stone")).words
        assert words["stone"] == (None, None, len(stone))
        assert words["bird"].log_prob is not None
        (sentence,) = served.answer([served.encode(Sentence("A robin is a stone"))], 0)
        assert sentence.words[-1].log_prob is None


def test_lists_are_as_long_as_the_servers():
    with Engine() as engine:
        for most, length in ((1, 1), (7, 5), (50, 30)):
            engine.most = most
            assert len(asked(load(engine), "A robin is a", top=30).top_words) == length


LISTED = [(id, math.log(p)) for id, p in enumerate([0.4, 0.2, 0.1])]


@pytest.mark.parametrize(
    ("first", "probabilities", "rank"),
    [
        (1, [0.2001], 2),  # its token stands in the list, which decides
        (2, [0.0999], 3),  # the engine rounds otherwise in a prompt
        (9, [0.2], 2),  # as probable as the second of the list
        (9, [0.05], None),  # below the list
        (0, [0.4, 0.3], 2),  # 0.12: above it is 0.2, and 0.4 is its own first token
        (0, [0.4, 0.1], None),  # 0.04
    ],
)
def test_the_rank_of_a_word(first, probabilities, rank):
    scored = score_word(first, [*map(math.log, probabilities)], LISTED)
    assert scored.rank == rank
    assert scored.log_prob == pytest.approx(math.log(math.prod(probabilities)))


# ---- refusals ------------------------------------------------------------------------------------


def top(change):
    def spoil(_, document):
        change(document["choices"][0]["logprobs"]["top_logprobs"][-1])
        return document

    return spoil


def prompt(change):
    def spoil(_, document):
        choice = document["choices"][0]
        choice["prompt_logprobs"] = change(choice["prompt_logprobs"])
        return document

    return spoil


def with_fields(**fields):
    return lambda _, document: {**document, **fields}


def choice(**fields):
    return lambda _, document: {**document, "choices": [{**document["choices"][0], **fields}]}


def number(value):
    """An answer whose log-probabilities of the prompt are this value."""
    return prompt(lambda rows: [row and {id: {"logprob": value} for id in row} for row in rows])


def raw(body, status=200, **headers):
    named = {name.replace("_", "-"): text for name, text in headers.items()}
    return lambda *_: Answer(body if isinstance(body, bytes) else body(), status, named)


def endless():
    while True:
        yield b" " * 2**16


def drops():
    while not time.sleep(0.05):
        yield b" "


TICKS = count()
PACKED = gzip.compress(bytes(2**20) * 80, 1)
LISTS = gzip.compress(b"[" + b"[]," * 600_000, 1)
SPOILED = {
    # what the self-check finds
    "no prompt": (prompt(lambda records: None), "gives no log-probabilities of the prompt"),
    "gaps": (prompt(lambda records: [None] * len(records)), "gives no log-probability for"),
    "too short": (prompt(lambda records: records[1:]), "of other tokens than were sent"),
    "warm": (top(lambda t: t.update({k: 0.1 * v - 5 for k, v in t.items()})),
             "another log-probability than the same token in a prompt"),
    "no distribution": (top(lambda t: t.update(dict.fromkeys(t, -0.1))), "of probability together"),
    "no list": (top(lambda t: t.clear()), "gives no list of the most probable next tokens"),
    "restless": (top(lambda t: t.update({k: v - next(TICKS) for k, v in t.items()})),
                 "gives other log-probabilities when the same is asked again"),
    # another model, a part of the prompt, a failure
    "another model": (with_fields(model="huge"), "answers as model huge, and tiny was asked"),
    "an error beside": (with_fields(error={"message": "no memory"}), "beside its answer .*no mem"),
    "an abort": (choice(finish_reason="abort"), "ended its answer by 'abort'"),
    "truncated": (with_fields(truncated=True), "read a part of a prompt of"),
    "part of the prompt": (with_fields(usage={"prompt_tokens": 1}), "read a part of a prompt of"),
    # numbers
    "NaN": (number(math.nan), "should be a finite number, not nan"),
    "-inf": (number(-math.inf), "should be a finite number, not -inf"),
    "-1e308": (number(-1e308), r"greater than -100000, not -1e\+308"),
    "-10**400": (number(-(10**400)), "should be a valid number, not -1000000"),
    "above 0": (number(0.5), "less than or equal to 0, not 0.5"),
    "text": (number("-1"), "valid number, not '-1'"),
    "25 digits": (top(lambda t: t.update({f"token_id:{'9' * 25}": -9e3})), "names a token 'tok"),
    # forms
    "a page": (raw(b"<html>please wait</html>"), r"invalid JSON: .* not b'<html>please"),
    "200,000 [": (raw(b"[" * 200_000), "invalid JSON: recursion limit"),
    "no choice": (raw(b'{"choices": []}'), "choices list should have at least 1 item"),
    "llama-server": (raw(b'{"choices": [{"logprobs": {"content": []}}]}'), "of the prompt"),
    "no gzip": (raw(b"plain", Content_Encoding="gzip"), "gives a damaged answer"),
    # sizes and pauses
    "gzip of blanks": (raw(PACKED, Content_Encoding="gzip"), "an answer of more than 64 MiB"),
    "gzip of lists": (raw(LISTS, Content_Encoding="gzip"), "answer of more than 1,000,000 values"),
    "endless": (raw(endless), "an answer of more than 64 MiB"),
    "endless error": (raw(endless, 404), "status 404.* the address that ends before"),
    "retry in 1e999 s": (raw(b"", 429, Retry_After="1e999"), r"in 4 attempts \(status 429"),
    "a control character": (raw(b'{"error": "a\\u001b[2Jb"}', 400), r"400: a⟨U\+001B⟩\[2Jb"),
}  # fmt: skip


@pytest.mark.parametrize("name", SPOILED)
def test_a_server_whose_answers_cannot_be_used_is_refused(name, monkeypatch):
    spoil, said = SPOILED[name]
    with Engine() as engine:
        engine.spoil = spoil
        assert re.search(said, refused(lambda: load(engine)))
        engine.spoil = honest
        served = load(engine)
        engine.spoil = spoil  # in the middle of a run, one request is enough
        if name not in ("warm", "restless", "no list"):
            monkeypatch.setattr(served.client, "attempts", 4)
            assert engine.url in refused(lambda: asked(served, "A robin is a", ("bird",)))


def test_a_server_that_reads_too_little_for_the_first_questions_is_refused():
    """The texts are those of the check, and no rows of the user."""
    with Engine() as engine:
        engine.max_model_len = 8
        said = "reads at most 7 tokens .*, and what lmdiag asks it first has 12: start it with"
        assert re.search(said, refused(lambda: load(engine)))
        engine.max_model_len = 13
        load(engine)


def test_an_answer_that_comes_drop_by_drop(monkeypatch):
    monkeypatch.setattr(requests, "MAX_SECONDS", 0.2)
    with Engine() as engine:
        engine.spoil = raw(drops)
        assert "gave no answer within 0.2 seconds" in refused(lambda: load(engine))


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"kind": "masked"}, "--server cannot be used with a masked model: a server"),
        ({"server": "localhost:8000"}, "is not an address"),
        ({"server": "http://user:secret@"}, "is not an address"),
        ({"server": "http://127.0.0.1:9"}, "127.0.0.1:9/v1 gave no answer in 4 attempts ("),
        ({"tokenizer": "{gpt2}"}, "give --tokenizer the one of the model that is served"),
        ({"model": "tinny"}, "has no model tinny (did you mean 'tiny'?)"),
    ],
)
def test_options_that_a_server_cannot_follow(options, said, tiny_models):
    if options.get("tokenizer"):
        options = {"tokenizer": str(tiny_models["gpt2"])}
    with Engine() as engine:
        line = refused(lambda: load(engine, **options))
    assert said in line
    assert "secret" not in line


def test_a_server_is_not_asked_after_layers():
    with Engine() as engine:
        assert "layer" in refused(lambda: load(engine, layer=1))
        n_requests = len(engine.bodies)
        served = load(engine)
        line = refused(lambda: served.at_layers(["all"]))
    why = "a server tells the answer of the last layer only; leave --layers out"
    assert line == f"--layers cannot be used beside --server: {why}"
    assert n_requests == 0


def test_a_run_is_of_one_model(command):
    """A server has another model under the same name from some request on, and later again."""
    given = ["--data", command.data, "--tasks", "neg136", "--limit", "16", "--batch-size", "2"]
    given += ["--model", "tiny", "--tokenizer", TOKENIZER, "--quiet", "--output"]
    said = "has another model under the name tiny than the one that .* differ by"
    with Engine() as engine:
        run = ["run", *given, command.folder / "run", "--server", engine.url]
        undisturbed = command.folder / "undisturbed"
        assert command("run", *given, undisturbed, "--server", engine.url)[0] == 0
        n_requests = len(engine.bodies)

        def swap(_, document):
            if len(engine.bodies) >= n_requests + n_requests * 2 // 3:
                engine.log_probs = engines.other_log_probs
            return document

        engine.spoil = swap
        assert re.search(said, command.refused(*run))
        saved = {path: path.read_bytes() for path in command.folder.rglob("journal/*")}
        assert saved
        assert re.search(said, command.refused(*run))
        assert {path: path.read_bytes() for path in command.folder.rglob("journal/*")} == saved
        engine.spoil, engine.log_probs = honest, engines.log_probs
        before = len(engine.bodies)
        assert command(*run)[0] == 0  # with the answers that were saved
        assert len(engine.bodies) - before < n_requests
        paths = command.folder.rglob("predictions.parquet")
        one, other = (path.read_bytes() for path in paths)
        assert one == other
        engine.log_probs = engines.other_log_probs
        assert re.search(said, command.refused(*run))  # a finished one


# ---- requests ------------------------------------------------------------------------------------


def test_requests_go_side_by_side_and_faults_pass():
    words = ("robin", "trout", "man", "bird", "stone", "nest", "hammer", "child")
    with Engine() as engine:
        served = load(engine)
        questions = [
            served.encode(Question(Query(f"The {a} saw the {b}"), (a, b)))
            for a in words for b in words
        ]  # fmt: skip
        assert engine.most_at_once == 1
        engine.hold = IN_FLIGHT  # it would wait for ever if fewer came
        undisturbed = served.answer(questions, 5)
        before = len(engine.bodies)
        engine.spoil = faults(5)
        assert served.answer(questions, 5) == undisturbed
        assert len(engine.bodies) - before >= 128 * 5 / 4 - 1
        assert engine.most_at_once == IN_FLIGHT


def test_the_process_ends_while_requests_hang():
    script = (
        "import sys; from lmdiag.models.server.client import Client\n"
        "client = Client(sys.argv[1])\n"
        "async def ask(n): return await client.send('completions', "
        "{'logprobs': 1, 'prompt': [0, 0], 'number': n})\n"
        "client.gather([ask(0), ask(1)])"
    )

    def spoil(body, _):
        if body["number"] == 0:
            engine.end.wait(HANG)
        return refusal(400, "no")

    with Engine() as engine:
        engine.spoil = spoil
        command = [sys.executable, "-c", script, engine.url]
        done = subprocess.run(command, stderr=subprocess.PIPE, text=True, timeout=HANG)
        assert not engine.end.is_set()
    assert "ServerRefusal" in done.stderr


@pytest.mark.parametrize("key", ["sesame", None])
def test_secrets_are_sent_and_not_told(key, monkeypatch):
    """A key of the environment, or a password in the address."""
    monkeypatch.setenv("OPENAI_API_KEY", "of-someone-else" if key else "")
    monkeypatch.setenv("LMDIAG_SERVER_KEY", key or "")
    with Engine() as engine:
        address = engine.url if key else engine.url.replace("//", "//me:secret@")
        served = load(engine, server=address)
        assert {*engine.keys} == {"Bearer sesame" if key else "Basic bWU6c2VjcmV0"}
        assert served.info.server == f"{engine.url}/v1"
        assert served.device == f"server {engine.url}/v1"
        engine.key = "another"  # the engine quotes the header
        line = refused(lambda: load(engine, server=address))
        assert "LMDIAG_SERVER_KEY" in line
        assert "(status 401: Unauthorized)" in line
        monkeypatch.setenv("LMDIAG_SERVER_KEY", "open\nsesame")
        assert "sesame" not in refused(lambda: load(engine))
