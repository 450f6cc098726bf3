"""Which of a server's tokens belong to which characters, and what is read from its answers."""

from __future__ import annotations

import math
from typing import Any

import pytest

from lmdiag.models.server.alignment import placed, spelled
from lmdiag.models.server.dialects import (
    Echo,
    PromptLogprobs,
    Reply,
    ServedToken,
    WrongReply,
    top_tokens,
)
from lmdiag.models.server.prompts import TextPrompts
from lmdiag.models.server.scoring import is_complete, score_tokens, score_words, show_text
from lmdiag.models.tokens.framing import Framing
from lmdiag.models.tokens.sentences import word_spans
from lmdiag.types import Sentence

BAD = "\ufffd"


def tokens(*texts: str, log_prob: float | None = -1.0) -> list[ServedToken]:
    return [ServedToken(None, text, log_prob) for text in texts]


@pytest.mark.parametrize(
    ("text", "pieces", "expected"),
    [
        ("a bird", ["a", " bird"], (0, [0, 1])),
        ("a bird", ["a", " ", "bi", "rd"], (0, [0, 1, 2, 4])),
        ("a bird", ["<s>", "a", " bird"], (1, [0, 1])),
        ("a bird", ["", "a", " bird"], (1, [0, 1])),  # a special token without a text
        ("a bird", [" a", " bird"], (0, [0, 1])),  # SentencePiece's space before the first word
        ("a bird", ["<s>", " a", " bird"], (1, [0, 1])),
        # a curly quote in three parts: as nothing, as U+FFFD, joined with what is beside it
        ("cat’s tail", ["cat", "", "", "", "s", " tail"], (0, [0, 3, 3, 3, 4, 5])),
        ("cat’s tail", ["cat", BAD, BAD, "s", " tail"], (0, [0, 3, 3, 4, 5])),
        ("cat’s tail", ["cat" + BAD, BAD + "s", " tail"], (0, [0, 4, 5])),
        ("cat’s tail", ["cat", "’", "s", " tail"], (0, [0, 3, 4, 5])),
        ("“a bird”", ["", "", "", "a", " bird", BAD, BAD], (0, [0, 0, 0, 1, 2, 7, 7])),
        ("a bird", ["a", "bird"], None),  # without its space
        ("a bird", ["a", " bird", "s"], None),
        ("a bird", ["a"], None),
        ("a bird", [], None),
        ("cat’s", ["cat", "s"], None),  # no token has the quote, not even a part of it
        ("cat’s", ["cat", "", "x"], None),
        ("a bird", ["A", " bird"], None),
    ],
)
def test_tokens_are_placed_by_their_texts(text: str, pieces: list[str], expected: Any) -> None:
    assert placed(text, tokens(*pieces)) == expected


def test_words_of_a_sentence_from_the_servers_tokens() -> None:
    text = "A  cat’s tail."
    pieces = ["A", " ", " cat", "", "", "", "s", " ta", "il", "."]
    place = placed(text, tokens(*pieces))
    assert place is not None
    spans = list(word_spans(Sentence(text), spelled(text, place[1])))
    words = [(text[span.start : span.end], span.last - span.first) for span in spans]
    # a token of blanks alone belongs to the word after it
    assert words == [("A", 1), ("cat’s", 6), ("tail.", 3)]


def test_words_without_and_below_a_log_probability() -> None:
    spans = list(word_spans(Sentence("a b c d"), spelled("a b c d", [0, 1, 3, 5])))
    scored = score_words(spans, [None, -2.0, -math.inf, -3.0])
    assert [(word.log_prob, word.n_tokens) for word in scored] == [
        (None, 1), (-2.0, 1), (None, 0), (-3.0, 1)
    ]  # fmt: skip


# ---- answers -------------------------------------------------------------------------------------

VLLM = {
    "choices": [
        {
            "logprobs": {"top_logprobs": [{"token_id:7": -0.5, "token_id:3": -2.0}]},
            "prompt_logprobs": [
                None,
                {"12": {"logprob": -1.5, "rank": 2, "decoded_token": " a"}},
                {"7": {"logprob": -9999.0, "rank": 90, "decoded_token": " bird"}},
            ],
        }
    ]
}


def test_prompt_logprobs() -> None:
    reply = PromptLogprobs().read(VLLM)
    assert reply.prompt == (
        ServedToken(None, None, None),
        ServedToken(12, " a", -1.5),
        ServedToken(7, " bird", -math.inf),
    )
    assert reply.top == (ServedToken(7, None, -0.5), ServedToken(3, None, -2.0))


def echo(names: list[str], values: list[Any], generated: int = 1) -> dict[str, Any]:
    tops = [None, *({" x": -1.0, " y": -1.5} for _ in names[1:])]
    logprobs = {"tokens": names, "token_logprobs": values, "top_logprobs": tops}
    return {"choices": [{"logprobs": logprobs}], "usage": {"completion_tokens": generated}}


def test_echo() -> None:
    reply = Echo().read(echo(["a", " bird", " x"], [None, -2.5, -1.0]))
    assert reply.prompt == (ServedToken(None, "a", None), ServedToken(None, " bird", -2.5))
    assert [token.text for token in reply.top] == [" x", " y"]
    assert reply.top_before(1) == reply.top
    assert reply.top_before(0) == ()


def test_echo_with_several_tokens_for_one_character() -> None:
    reply = Echo().read(echo(["a", " bird", "", BAD], [None, -2.5, -1.0, -0.1], generated=2))
    assert [token.text for token in reply.prompt] == ["a", " bird"]
    assert len(reply.top) == 2


def test_echo_without_a_generated_token() -> None:
    reply = Echo().read(echo(["a", " bird"], [None, -2.5], generated=0))
    assert len(reply.prompt) == 2
    assert reply.top == ()


def test_llama_server_gives_no_prompt() -> None:
    """It ignores `echo`, and answers in the form of the chat endpoint."""
    content = [{"id": 5, "token": " x", "logprob": -1.0, "top_logprobs": []}]
    document = {"choices": [{"logprobs": {"content": content}}], "usage": {"completion_tokens": 1}}
    reply = Echo().read(document)
    assert reply == Reply((), (), [])
    prompts = TextPrompts(Framing())
    with pytest.raises(WrongReply, match="gives no log-probabilities of the prompt"):
        prompts.check("a bird", reply)


@pytest.mark.parametrize(
    ("document", "said"),
    [
        ({}, "of another form"),
        ({"choices": []}, "of another form"),
        ([], "of another form"),
        ({"choices": [{"logprobs": {"tokens": ["a"], "token_logprobs": []}}]}, "of another form"),
        (echo(["a", " b", " x"], [None, "1", -1.0]), "gives 1 for a log-probability"),
        (echo(["a", " b", " x"], [None, True, -1.0]), "gives True for a log-probability"),
        (echo(["a", " b", " x"], [None, math.nan, -1.0]), "gives nan for a log-probability"),
        (echo(["a", " b", " x"], [None, 0.5, -1.0]), "above 0"),
    ],
)
def test_answers_that_cannot_be_used(document: Any, said: str) -> None:
    with pytest.raises(WrongReply, match=said):
        Echo().read(document)


def test_a_list_is_no_distribution() -> None:
    with pytest.raises(WrongReply, match=r"2 top tokens with 1\.2131 of probability together"):
        top_tokens({" a": -0.5, " b": -0.5})
    assert [token.text for token in top_tokens({" b": -1.0, " a": -1.0})] == [" a", " b"]


# ---- ranks and lists -----------------------------------------------------------------------------

TOP = (
    ServedToken(None, " a", math.log(0.4)),
    ServedToken(None, " b", math.log(0.2)),
    ServedToken(None, " c", math.log(0.1)),
)


@pytest.mark.parametrize(
    ("own", "rank"),
    [
        ([(" a", 0.4)], 1),
        ([(" b", 0.2)], 2),
        ([(" b", 0.2001)], 2),  # its token stands in the list, which decides
        ([(" c", 0.0999)], 3),  # the engine rounds otherwise in a prompt
        ([(" d", 0.15)], 3),
        ([(" d", 0.05)], None),  # below the list
        ([(" a", 0.4), ("x", 0.3)], 2),  # 0.12: above it is b, and a is its own first token
        ([(" d", 0.5), ("x", 0.3)], 3),  # 0.15: a and b are above it
        ([(" a", 0.4), ("x", 0.1)], None),  # 0.04
    ],
)
def test_the_rank_of_a_word(own: list[tuple[str, float]], rank: int | None) -> None:
    of_word = [ServedToken(None, text, math.log(p)) for text, p in own]
    scored = score_tokens(of_word, TOP)
    assert scored.rank == rank
    assert scored.log_prob == pytest.approx(sum(math.log(p) for _, p in own))
    assert scored.n_tokens == len(own)


def test_a_word_below_what_is_told() -> None:
    below = [ServedToken(None, " a", -1.0), ServedToken(None, "x", -math.inf)]
    assert score_tokens(below, TOP) == (None, None, 2)


def test_a_list_lacks_tokens_that_share_a_text() -> None:
    broken = (*TOP[:2], ServedToken(None, BAD, math.log(0.1)))
    assert not is_complete(broken, 4)
    assert is_complete(broken, 3)
    assert is_complete(TOP, 4)  # the server gives no more
    assert is_complete([token._replace(id=1, text=None) for token in broken], 4)


@pytest.mark.parametrize(
    ("text", "bare", "shown"),
    [
        (" bird", False, "bird"), ("bird", False, "##bird"), ("bird", True, "bird"),
        ("\n", False, "\\n"), (" ", False, "▁"), ("", False, "[no text]"), (BAD, False, BAD),
        (".", False, "##."), ("\x0e", False, "\\x0e"),
    ],
)  # fmt: skip
def test_how_tokens_are_shown(text: str, bare: bool, shown: str) -> None:
    assert show_text(text, bare=bare) == shown
