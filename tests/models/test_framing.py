"""Prompts, chat templates, the final period and the first letter: what is asked, by hand."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from reference import ends_a_word
from tokenizer_files import byte_level, sentencepiece, wordpiece
from transformers import AutoTokenizer, PreTrainedTokenizerFast

from lmdiag.controls import control_warning
from lmdiag.models import LoadOptions, load
from lmdiag.models.local import LocalModel
from lmdiag.questions import Setting
from lmdiag.stimuli import load as load_stimuli
from lmdiag.types import BadInput, Query, Question, Sentence
from models.chats import CHATS, chat_tokenizer
from models.toys import alone, ask, asked, bert, gpt2

CONTEXTS = ("A robin is a", "The doctor told José that it’s the")
WORDS = ("bird", "tree", "wrenches")


@pytest.fixture(scope="module", params=CHATS)
def chat(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The name of a chat, its tokenizer, and a small model that reads it."""
    tokenizer = chat_tokenizer(request.param, tmp_path_factory.mktemp("chat"))
    network = gpt2(len(tokenizer), n_positions=512)
    return request.param, tokenizer, network, asked(
        network, tokenizer, "causal", chat=True, instruction="Go on."
    )  # fmt: skip


def by_hand(tokenizer: PreTrainedTokenizerFast, context: str) -> tuple[str, list[int]]:
    """The open turn of a chat as transformers makes it, as text and as ids."""
    turns = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": context}]
    template = tokenizer.chat_template.replace('strftime_now("%d %b %Y")', "'26 Jul 2024'")
    options: dict[str, Any] = {"continue_final_message": True, "chat_template": template}
    text = tokenizer.apply_chat_template(turns, tokenize=False, **options)
    ids = tokenizer.apply_chat_template(turns, return_dict=False, **options)
    assert isinstance(text, str)
    return text, list(ids)


class TestChats:
    def test_ids_are_those_of_the_template(self, chat: Any) -> None:
        name, tokenizer, _, model = chat
        assert model.prompt == CHATS[name].prompt
        for context in CONTEXTS:
            text, ids = by_hand(tokenizer, context)
            assert text == model.prompt.replace("{context}", context)
            encoded = model.encode(Question(Query(context), WORDS))
            for word in WORDS:
                whole = tokenizer(f"{text} {word}", add_special_tokens=False).input_ids
                assert whole[: len(ids)] == ids
                assert list(encoded.words[word]) == whole[len(ids) :]
            assert all(list(row.ids[: len(ids)]) == ids for row in encoded.rows)
            assert encoded.rows[0].reads[0] == len(ids) - 1

    def test_log_probabilities(self, chat: Any) -> None:
        """Against the whole model in float64, on the template's ids and the word's pieces."""
        _, tokenizer, network, model = chat
        for context in CONTEXTS:
            (answer,) = ask(model, Question(Query(context), WORDS))
            text, ids = by_hand(tokenizer, context)
            for word in WORDS:
                pieces = tokenizer(f"{text} {word}", add_special_tokens=False).input_ids[len(ids) :]
                exact = sum(
                    float(alone(network, ids + pieces[:n], len(ids) + n - 1)[piece])
                    for n, piece in enumerate(pieces)
                )
                assert answer.words[word].log_prob == pytest.approx(exact, abs=1e-5)
                assert answer.words[word].n_tokens == len(pieces)

    def test_no_other_token_stands_before_the_template(self, chat: Any) -> None:
        """Tokenizers that add a beginning-of-sequence token do not add a second one."""
        name, tokenizer, _, model = chat
        (row,) = model.encode(Question(Query("A"), ("bird",))).rows[:1]
        assert model.info.bos == (name not in ("qwen-3", "chatml"))
        assert list(row.ids).count(tokenizer.bos_token_id) == model.info.bos

    def test_its_own_control_tokens_are_not_warned_about(self, chat: Any) -> None:
        name, _, _, model = chat
        control = CHATS[name].tokens.split()[-1]
        rows = {"context": ["A robin is a"], "target": ["bird"]}
        assert control_warning(model, [Setting(load_stimuli(rows))]) is None
        rows["context"] = [f"A robin {control} is a"]
        line = control_warning(model, [Setting(load_stimuli(rows))])
        assert line is not None
        assert control in line


class TestRefusedChats:
    def refused(self, template: str | dict[str, str] | None, **options: Any) -> str:
        tokenizer = byte_level()
        tokenizer.chat_template = template
        with pytest.raises(BadInput) as caught:
            asked(gpt2(len(tokenizer)), tokenizer, "causal", chat=True, **options)
        message = str(caught.value)
        assert "\n" not in message
        assert message.startswith("model toy")
        assert "--prompt" in message
        return message

    def test_no_template(self) -> None:
        assert "has no chat template: leave out --chat" in self.refused(None)

    @pytest.mark.parametrize(
        ("template", "message"),
        [
            ("{{ raise_exception('no\nassistant') }}", "turn of the user and one of the assistant"),
            ("{{ messages[0].content }}", "cannot be used for a turn of the user"),
            ("{{ messages[1].content[:8] }}", "cannot be used for a turn of the user"),
            ("{{ messages[1].content | upper }}", "cannot be used for a turn of the user"),
            ("{% for %}{{ content }}", "cannot be used for a turn of the user"),
            (
                "{{ messages[1].content }}{{ messages[1].content | replace('a', 'o') }}",
                "changes the text of the assistant's turn",
            ),
            (
                "{{ messages[1].content | length }}: {{ messages[1].content }}",
                "puts before the assistant's turn depends on the turn",
            ),
            ("{{ '{context}' ~ messages[1].content }}", "depends on the turn"),
        ],
    )
    def test_templates_that_cannot_be_continued(self, template: str, message: str) -> None:
        assert message in self.refused(template)

    def test_the_default_one_of_several_is_taken(self) -> None:
        """Some tokenizers have a template for tools, too."""
        tokenizer = byte_level()
        tokenizer.chat_template = {"default": "A:{{ messages[1].content }}", "tool_use": "{{ no }}"}
        model = asked(gpt2(len(tokenizer)), tokenizer, "causal", chat=True)
        assert model.prompt == "A:{context}"
        assert "cannot be used" in self.refused({"tool_use": "{{ messages[1].content }}"})


PROMPTED = byte_level("Ġ b", "Ġb i", "Ġbi r", "Ġbir d", "b i", "bi r", "bir d", "Ġ a")


def prompted(prompt: str, context: str, word: str = "bird", **options: Any) -> list[str]:
    """The tokens that a small causal model reads before a word, and those of the word."""
    model = asked(gpt2(len(PROMPTED)), PROMPTED, "causal", prompt=prompt, **options)
    encoded = model.encode(Question(Query(context), (word,)))
    pieces = list(encoded.words[word] or ())
    return PROMPTED.convert_ids_to_tokens([*encoded.rows[0].ids, *pieces[-1:]])


class TestPrompts:
    def test_around_a_context(self) -> None:
        assert prompted("b: {context}", "a a") == ["b", ":", "Ġa", "Ġa", "Ġbird"]
        assert prompted("{context} b:", "a") == ["a", "Ġb", ":", "Ġbird"]
        assert prompted("{context}", "a") == ["a", "Ġbird"]
        assert prompted("b: {context}", "a", bos="always") == ["<|end|>", "b", ":", "Ġa", "Ġbird"]

    @pytest.mark.parametrize("prompt", ["b:{context}", "b: {context}"])
    def test_an_empty_context(self, prompt: str) -> None:
        """One space stands before the word, whether the prompt ends with one or not."""
        assert prompted(prompt, "") == ["b", ":", "Ġbird"]

    def test_no_space_after_a_line_break(self) -> None:
        assert prompted("{context}\n", "a") == ["a", "Ċ", "bird"]
        assert prompted("b\n{context}", "") == ["b", "Ċ", "bird"]

    @pytest.mark.parametrize("tokenizer", [PROMPTED, sentencepiece("▁bird", "▁a", "bi")])
    @pytest.mark.parametrize("prompt", ["{context}\n", "b: {context}"])
    def test_whole_words(self, tokenizer: PreTrainedTokenizerFast, prompt: str) -> None:
        """Words of the list are spelled as they stand there, and have the candidates' scores."""
        model = asked(gpt2(len(tokenizer)), tokenizer, "causal", prompt=prompt, unit="word")
        (first,) = ask(model, Question(Query("a"), ()), top=5)
        assert len(first.top_words) == 5
        (second,) = ask(model, Question(Query("a"), first.top_words), top=5)
        scores = [second.words[word] for word in first.top_words]
        assert [score.rank for score in scores] == [1, 2, 3, 4, 5]
        assert [score.log_prob for score in scores] == pytest.approx(first.top_log_probs, abs=2e-5)

    def test_a_whole_word_after_a_line_break(self) -> None:
        """No word before it has to end: log p(bird | a, line break) + log E, in float64."""
        network = gpt2(len(PROMPTED))
        model = asked(network, PROMPTED, "causal", prompt="{context}\n", unit="word")
        (answer,) = ask(model, Question(Query("a"), ("bird",)))
        ids = PROMPTED.convert_tokens_to_ids(["a", "Ċ", "bird"])
        names = PROMPTED.convert_ids_to_tokens(range(len(PROMPTED)))
        ends = torch.tensor([ends_a_word(name, "byte-level") for name in names])
        exact = alone(network, ids, 1)[ids[2]] + alone(network, ids, 2)[ends].logsumexp(-1)
        assert answer.words["bird"].log_prob == pytest.approx(float(exact), abs=1e-5)

    def test_pieces_after_a_line_break_are_not_shown_as_continuing(self) -> None:
        model = asked(gpt2(len(PROMPTED)), PROMPTED, "causal", prompt="{context}\n")
        (answer,) = ask(model, Question(Query("a"), ()), top=len(PROMPTED))
        assert "bird" in answer.top_words
        assert "##bird" not in answer.top_words

    def test_length(self) -> None:
        with pytest.raises(BadInput, match=r"'a' takes 100 tokens with its prompt and its longest"):
            prompted("c" * 99 + "{context}", "a")

    def test_two_beginnings(self) -> None:
        tokenizer = sentencepiece("▁bird", bos=True)
        network = gpt2(len(tokenizer))
        with pytest.raises(BadInput, match=r"the prompt begins with <s>, which .* --bos never"):
            asked(network, tokenizer, "causal", prompt="<s>{context}")
        model = asked(network, tokenizer, "causal", prompt="<s>{context}", bos="never")
        assert model.info.bos
        assert model.encode(Question(Query("a"), ())).rows[0].ids[0] == 1

    @pytest.mark.parametrize("options", [{"prompt": "Go: {context}"}, {"chat": True}])
    @pytest.mark.parametrize("name", ["bert", "t5"])
    def test_models_that_see_both_sides(
        self, name: str, options: Any, family_dir: Callable[[str], Path]
    ) -> None:
        with pytest.raises(BadInput, match=r"is not causal, and --\w+ is for .*: leave it out$"):
            load(str(family_dir(name)), LoadOptions(**options))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (
            {"prompt": "Go on."},
            "option prompt must be a text, or a file with a text, that has {con",
        ),
        ({"prompt": "{context} {context}"}, "in it once, where the context goes, not '{context} {"),
        ({"prompt": "a {context}", "chat": True}, "options chat and prompt exclude each other"),
        ({"bos": "always", "chat": True}, "options chat and bos exclude each other"),
        (
            {"chat": True, "instruction": "Go on: {context}"},
            "option instruction must not have {con",
        ),
        ({"chat": "yes"}, "option chat must be True or False"),
        ({"final_period": "no"}, "option final_period must be one of always, never"),
        ({"first_letter": "up"}, "option first_letter must be one of as-is, upper, lower"),
    ],
)
def test_options_that_exclude_each_other(options: dict[str, Any], message: str) -> None:
    with pytest.raises(BadInput) as caught:
        LoadOptions(**options)
    assert message in str(caught.value)


PIECES = wordpiece("a", "A", "robin", "Robin", "is", "bird", "##s", ".", "near", '"', lower=False)
LETTERS = byte_level("Ġ a", "Ġ b")


def masked(query: Query, word: str = "bird", **options: Any) -> list[str]:
    """The tokens that a small masked model reads."""
    model = asked(bert(len(PIECES)), PIECES, "masked", **options)
    return PIECES.convert_ids_to_tokens(model.encode(Question(query, (word,))).rows[0].ids)


class TestFinalPeriod:
    ROBIN = Query("a robin is a")

    def test_masked(self) -> None:
        left = ["[CLS]", "a", "robin", "is", "a", "[MASK]"]
        assert masked(self.ROBIN) == [*left, ".", "[SEP]"]
        assert masked(self.ROBIN, final_period="never") == [*left, "[SEP]"]

    def test_words_of_several_pieces(self) -> None:
        model = asked(bert(len(PIECES)), PIECES, "masked", final_period="never")
        encoded = model.encode(Question(self.ROBIN, ("birds",)))
        left = ["[CLS]", "a", "robin", "is", "a"]
        assert [PIECES.convert_ids_to_tokens(row.ids) for row in encoded.rows] == [
            [*left, "[MASK]", "[SEP]"],
            [*left, "[MASK]", "[MASK]", "[SEP]"],
            [*left, "bird", "[MASK]", "[SEP]"],
        ]

    def test_a_text_right_of_the_blank_stays(self) -> None:
        query = Query("a robin", "is near .")
        assert masked(query, final_period="never") == masked(query)
        assert masked(query)[-3:] == ["near", ".", "[SEP]"]

    @pytest.mark.parametrize("name", ["t5", "bart"])
    def test_encoder_decoders(self, name: str, family_dir: Callable[[str], Path]) -> None:
        tokenizer = AutoTokenizer.from_pretrained(family_dir(name))
        left = tokenizer("A robin is a").input_ids[:-1]  # without </s>
        filler = "<mask>" if name == "bart" else "<extra_id_0>"
        for choice, end in (("always", [".", "</s>"]), ("never", ["</s>"])):
            options = LoadOptions(final_period=choice)  # type: ignore[arg-type]
            model = load(str(family_dir(name)), options)
            (row, *_) = model.encode(Question(Query("A robin is a"), ("bird",))).rows
            assert list(row.source) == left + tokenizer.convert_tokens_to_ids([filler, *end])

    def test_causal_models_do_not_see_it(self) -> None:
        encoded = [
            asked(gpt2(len(LETTERS)), LETTERS, "causal", final_period=choice).encode(
                Question(Query("a b"), ("a",))
            )
            for choice in ("always", "never")
        ]
        assert encoded[0] == encoded[1]


class TestFirstLetter:
    @pytest.mark.parametrize(
        ("context", "choice", "tokens"),
        [
            ("a robin", "upper", ["A", "robin"]),
            ("A robin", "lower", ["a", "robin"]),
            ("A Robin", "as-is", ["A", "Robin"]),
            ('" Robin', "lower", ['"', "robin"]),
            ("", "upper", []),
        ],
    )
    def test_masked(self, context: str, choice: str, tokens: list[str]) -> None:
        read = masked(Query(context, "is near ."), first_letter=choice)
        assert read == ["[CLS]", *tokens, "[MASK]", "is", "near", ".", "[SEP]"]

    def test_of_the_context_not_of_the_prompt(self) -> None:
        read = prompted("b: {context}", "a a", first_letter="upper")
        assert read == ["b", ":", "Ġ", "A", "Ġa", "Ġbird"]

    def test_encoder_decoders(self, family_dir: Callable[[str], Path]) -> None:
        tokenizer = AutoTokenizer.from_pretrained(family_dir("t5"))
        model = load(str(family_dir("t5")), LoadOptions(first_letter="lower"))
        (row, *_) = model.encode(Question(Query("The robin is a"), ("bird",))).rows
        left = tokenizer("the robin is a").input_ids[:-1]  # without </s>
        end = tokenizer.convert_tokens_to_ids(["<extra_id_0>", ".", "</s>"])
        assert list(row.source) == left + end


@pytest.mark.parametrize(
    "options", [{"prompt": "b: {context}"}, {"final_period": "never"}, {"first_letter": "lower"}]
)
def test_whole_sentences_have_no_context(options: dict[str, Any]) -> None:
    model: LocalModel = asked(gpt2(len(LETTERS)), LETTERS, "causal", **options)
    with pytest.raises(BadInput, match=r"--prompt, .* are for data with a blank: leave them out"):
        model.encode(Sentence("A robin is a bird."))
