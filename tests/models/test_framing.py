"""Prompts, chat templates, the final period and the first letter: what is asked, by hand."""

import shutil

import pytest
import reference
import torch
from reference import CLOSE, ends_a_word
from tokenizer_files import byte_level, sentencepiece, wordpiece, write
from transformers import AutoTokenizer

from lmdiag.models import LoadOptions, load
from lmdiag.models.demo import demo_folder
from lmdiag.models.tokens.framing import _DATE
from lmdiag.types import BadInput, Query, Question, Sentence
from models.toys import alone, ask, asked, bert, gpt2

CONTEXTS = ("A robin is a", "The doctor told José that it’s the")
WORDS = ("bird", "tree", "wrenches")


_TURNS = "{% for message in messages %}"
_ALTERNATE = (
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
)
CHATS = {
    # Llama 3.2 writes today's date.
    "llama-3.2": (
        "llama3", "<|start_header_id|> <|end_header_id|> <|eot_id|>",
        "{{ bos_token }}<|start_header_id|>system<|end_header_id|>\n\n"
        "Cutting Knowledge Date: December 2023\nToday Date: "
        "{{ strftime_now(\"%d %b %Y\") }}\n\n<|eot_id|>" + _TURNS +
        "{{ '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\n\n'"
        " ~ message.content | trim ~ '<|eot_id|>' }}{% endfor %}",
    ),
    # Qwen 3 puts an empty thought before the last answer.
    "qwen-3": (
        "qwen2", "<think> </think>",
        _TURNS + "{{ '<|im_start|>' ~ message.role ~ '\n' }}"
        "{% if message.role == 'assistant' and loop.last %}{{ '<think>\n\n</think>\n\n' }}"
        "{% endif %}{{ message.content.split('</think>')[-1].lstrip('\n') ~ '<|im_end|>\n' }}"
        "{% endfor %}",
    ),
    "gemma-3": (
        "gemma", "<start_of_turn> <end_of_turn>",
        "{{ bos_token }}" + _TURNS + _ALTERNATE +
        "{{ '<start_of_turn>' ~ ('model' if message.role == 'assistant' else message.role) ~ '\n'"
        " ~ message.content | trim ~ '<end_of_turn>\n' }}{% endfor %}",
    ),
    # They open the assistant's turn without a line break.
    "mistral-7b": (
        "llama", "[INST] [/INST]",
        "{{ bos_token }}" + _TURNS + _ALTERNATE +
        "{% if message.role == 'user' %}{{ '[INST]' ~ message.content ~ '[/INST]' }}"
        "{% else %}{{ message.content ~ eos_token }}{% endif %}{% endfor %}",
    ),
    "harmony": (
        "gpt2", "<|start|> <|message|> <|endofturn|>",
        _TURNS + "{{ '<|start|>' ~ message.role ~ '<|message|>' ~ message.content"
        " ~ '<|endofturn|>' }}{% endfor %}",
    ),
    "mistral": (
        "llama", "[INST] [/INST]",
        "{{ bos_token }}" + _TURNS + _ALTERNATE +
        "{% if message.role == 'user' %}{{ '[INST] ' ~ message.content ~ '[/INST]' }}"
        "{% else %}{{ ' ' ~ message.content | trim ~ eos_token }}{% endif %}{% endfor %}",
    ),
}  # fmt: skip
"""Name -> name in `tokenizer_files.PUBLISHED`, control tokens of turns, template in Jinja.

Templates of the structure that published ones have, written for these tests: roles, special tokens,
line breaks, trimming and errors are those of the models' own templates; tools and images are not.
"""


@pytest.mark.parametrize("name", CHATS)
def test_ids_are_those_of_the_template(name, tmp_path):
    """And there is no second beginning-of-sequence token before the template's."""
    published, tokens, template = CHATS[name]
    write(published, tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.add_special_tokens({"extra_special_tokens": tokens.split()})
    tokenizer.chat_template = template
    network = gpt2(len(tokenizer), n_positions=512)
    model = asked(network, tokenizer, "causal", chat=True, instruction="Go on.")
    assert model.info.bos == template.startswith("{{ bos_token }}")
    dated = template.replace('strftime_now("%d %b %Y")', "'26 Jul 2024'")
    options = {"continue_final_message": True, "chat_template": dated}
    for context in CONTEXTS:
        turns = [{"role": "user", "content": "Go on."}, {"role": "assistant", "content": context}]
        text = tokenizer.apply_chat_template(turns, tokenize=False, **options)
        ids = list(tokenizer.apply_chat_template(turns, return_dict=False, **options))
        assert text == model.prompt.replace("{context}", context)
        encoded = model.encode(Question(Query(context), WORDS))
        for word in WORDS:
            whole = tokenizer(f"{text} {word}", add_special_tokens=False).input_ids
            assert [*ids, *encoded.words[word]] == whole
        assert all(list(row.ids[: len(ids)]) == ids for row in encoded.rows)
        assert encoded.rows[0].reads[0] == len(ids) - 1
        assert ids.count(tokenizer.bos_token_id) == model.info.bos


def turn(tokenizer, prompt, answer):
    """Text of a whole turn of the user and one of the assistant that is left open."""
    turns = [{"role": "user", "content": prompt}, {"role": "assistant", "content": answer}]
    how = {"tokenize": False, "continue_final_message": True}
    template = tokenizer.chat_template.replace('strftime_now("%d %b %Y")', "'26 Jul 2024'")
    return tokenizer.apply_chat_template(turns, chat_template=template, **how)


@pytest.mark.parametrize("name", CHATS)
def test_a_word_that_opens_the_turn(name, tmp_path):
    """Its tokens are those of the whole turn; its probability is the network's in float64."""
    published, tokens, template = CHATS[name]
    write(published, tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    tokenizer.add_special_tokens({"extra_special_tokens": tokens.split()})
    tokenizer.chat_template = template
    network = gpt2(len(tokenizer), n_positions=512)
    model = asked(network, tokenizer, "causal", chat=True, instruction="Go on.")
    question = Question(Query("", "is a bird."), WORDS)
    encoded, [answer] = model.encode(question), ask(model, question)
    for word in WORDS:
        whole = tokenizer(turn(tokenizer, "Go on.", word), add_special_tokens=False).input_ids
        pieces = list(encoded.words[word])
        assert [*encoded.blank.left, *pieces] == whole
        start = len(whole) - len(pieces)
        nats = [alone(network, whole, at - 1)[whole[at]] for at in range(start, len(whole))]
        assert answer.words[word].log_prob == pytest.approx(float(sum(nats)), abs=CLOSE)


def test_a_word_that_opens_the_turn_of_a_trained_model(tmp_path):
    folder = shutil.copytree(demo_folder("causal"), tmp_path / "causal")
    template = _TURNS + "{{ '[INST]' if message.role == 'user' else '[/INST]' }}"
    (folder / "chat_template.jinja").write_text(template + "{{ message.content }}{% endfor %}")
    model = load(str(folder), LoadOptions(chat=True, unit="word"))
    tokenizer, network = reference.load(folder, "causal", "eager")
    ids = tokenizer(turn(tokenizer, model.options.instruction, "The")).input_ids
    [answer] = ask(model, Question(Query(""), ("The",)))
    before = reference.run(network, input_ids=ids)
    names = tokenizer.convert_ids_to_tokens(range(before.shape[1]))
    ends = torch.tensor([ends_a_word(name, "byte-level") for name in names])
    exact = before[-2][ids[-1]] + before[-1][ends].logsumexp(-1)  # no word before it has to end
    assert answer.words["The"].log_prob == pytest.approx(float(exact), abs=CLOSE)


CANNOT = "cannot be used for a turn of the user"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (None, "has no chat template: leave out --chat"),
        ({"tool_use": "{{ messages[1].content }}"}, CANNOT),
        ("{{ raise_exception('no\nassistant') }}", "turn of the user and one of the assistant"),
        ("{{ messages[1].content[:8] }}", CANNOT),
        ("{{ messages[1].content | upper }}", CANNOT),
        ("{{ messages[1].content }}{{ messages[1].content | replace('a', 'o') }}",
         "changes the text of the assistant's turn"),
        ("{{ messages[1].content | length }}: {{ messages[1].content }}",
         "puts before the assistant's turn depends on the turn"),
        ("{{ '{context}' ~ messages[1].content }}", "depends on the turn"),
        ("{% for i in range(9999) %}{{ 'x' * 200 }}{% endfor %}{{ messages[1].content }}",
         "it writes more than 1,048,576 characters"),
        ("strftime_now('" * 80_000, "it has more than 1,048,576 characters"),
    ],
)  # fmt: skip
def test_templates_that_cannot_be_continued(template, message):
    tokenizer = byte_level()
    tokenizer.chat_template = template
    with pytest.raises(BadInput, match=r"^model toy.*--prompt") as caught:
        asked(gpt2(len(tokenizer)), tokenizer, "causal", chat=True)
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_pattern_of_dates_takes_linear_time():
    """A quadratic one takes ten minutes for a template of this size."""
    text = "strftime_now('" * 70_000
    assert _DATE.sub("", text) == text
    assert _DATE.sub("x", "strftime_now( '%d' )strftime_now(\"it's\")") == "xx"


PROMPTED = byte_level("Ġ b", "Ġb i", "Ġbi r", "Ġbir d", "b i", "bi r", "bir d", "Ġ a")


def prompted(prompt, context, word="bird", **options):
    """The tokens that a small causal model reads before a word, and those of the word."""
    model = asked(gpt2(len(PROMPTED)), PROMPTED, "causal", prompt=prompt, **options)
    encoded = model.encode(Question(Query(context), (word,)))
    pieces = list(encoded.words[word] or ())
    return PROMPTED.convert_ids_to_tokens([*encoded.rows[0].ids, *pieces[-1:]])


class TestPrompts:
    @pytest.mark.parametrize(
        ("prompt", "context", "tokens"),
        [
            ("b: {context}", "a a", "b : Ġa Ġa Ġbird"),
            ("{context} b:", "a", "a Ġb : Ġbird"),
            ("{context}", "a", "a Ġbird"),
            # One space stands before the word, whether the prompt ends with one or not.
            ("b:{context}", "", "b : Ġbird"),
            # No space after a line break.
            ("{context}\n", "a", "a Ċ bird"),
            ("b\n{context}", "", "b Ċ bird"),
        ],
    )
    def test_around_a_context(self, prompt, context, tokens):
        assert prompted(prompt, context) == tokens.split()
        if context:
            assert prompted(prompt, context, bos="always") == ["<|end|>", *tokens.split()]

    def test_a_whole_word_after_a_line_break(self):
        """No word before it has to end: log p(bird | a, line break) + log E, in float64."""
        network = gpt2(len(PROMPTED))
        model = asked(network, PROMPTED, "causal", prompt="{context}\n", unit="word")
        (answer,) = ask(model, Question(Query("a"), ("bird",)))
        ids = PROMPTED.convert_tokens_to_ids(["a", "Ċ", "bird"])
        names = PROMPTED.convert_ids_to_tokens(range(len(PROMPTED)))
        ends = torch.tensor([ends_a_word(name, "byte-level") for name in names])
        exact = alone(network, ids, 1)[ids[2]] + alone(network, ids, 2)[ends].logsumexp(-1)
        assert answer.words["bird"].log_prob == pytest.approx(float(exact), abs=CLOSE)

    def test_length(self):
        with pytest.raises(BadInput, match=r"'a' takes 100 tokens with its prompt and its longest"):
            prompted("c" * 99 + "{context}", "a")

    def test_two_beginnings(self):
        tokenizer = sentencepiece("▁bird", bos=True)
        network = gpt2(len(tokenizer))
        with pytest.raises(BadInput, match=r"the prompt begins with <s>, which .* --bos never"):
            asked(network, tokenizer, "causal", prompt="<s>{context}")
        model = asked(network, tokenizer, "causal", prompt="<s>{context}", bos="never")
        assert model.info.bos
        assert model.encode(Question(Query("a"), ())).rows[0].ids[0] == 1

    @pytest.mark.parametrize(
        "options", [{"prompt": "Go: {context}"}, {"chat": True}, {"elicitation": "choice"}]
    )
    @pytest.mark.parametrize("name", ["bert", "t5"])
    def test_models_that_see_both_sides(self, name, options, family_dir):
        with pytest.raises(BadInput, match=r"^model .*: .* cannot be used with a.* out$"):
            load(str(family_dir(name)), LoadOptions(**options))


PIECES = wordpiece("a", "A", "robin", "Robin", "is", "bird", "##s", ".", "near", '"', lower=False)


@pytest.mark.parametrize(
    ("query", "options", "tokens"),
    [
        (Query("a robin is a"), {}, "a robin is a [MASK] ."),
        (Query("a robin is a"), {"final_period": "never"}, "a robin is a [MASK]"),
        (Query("a robin", "is near ."), {"final_period": "never"}, "a robin [MASK] is near ."),
        (Query("a robin"), {"first_letter": "upper"}, "A robin [MASK] ."),
        (Query("A robin"), {"first_letter": "lower"}, "a robin [MASK] ."),
        (Query('"Robin'), {"first_letter": "lower"}, '" robin [MASK] .'),
        (Query('"'), {"first_letter": "upper"}, '" [MASK] .'),
        (Query("", "is near ."), {"first_letter": "upper"}, "[MASK] is near ."),
    ],
)
def test_final_period_and_first_letter(query, options, tokens):
    """The tokens that a small masked model reads."""
    model = asked(bert(len(PIECES)), PIECES, "masked", **options)
    (row,) = model.encode(Question(query, ("bird",))).rows
    assert PIECES.convert_ids_to_tokens(row.ids) == ["[CLS]", *tokens.split(), "[SEP]"]


@pytest.mark.parametrize(
    ("name", "blank", "decoded"),
    [("t5", "<extra_id_0>", "<pad><extra_id_0>"), ("bart", "<mask>", "</s><s>a robin is a")],
)
def test_encoder_decoders(name, blank, decoded, family_dir):
    """T5 writes the word after its sentinel; BART the sentence again, up to the blank."""
    tokenizer = AutoTokenizer.from_pretrained(family_dir(name))
    model = load(str(family_dir(name)), LoadOptions(final_period="never", first_letter="lower"))
    (row, *_) = model.encode(Question(Query("A robin is a"), ("bird",))).rows
    assert list(row.source) == tokenizer(f"a robin is a {blank}").input_ids
    assert tokenizer.decode(row.ids[: row.reads[0] + 1]) == decoded


def test_causal_models():
    """They read no period; the first letter is that of the context and not of the prompt."""
    assert prompted("{context}", "a", final_period="never") == prompted("{context}", "a")
    read = prompted("b: {context}", "a a", first_letter="upper")
    assert read == ["b", ":", "Ġ", "A", "Ġa", "Ġbird"]


def test_the_end_of_sequence_token_stands_before_texts_without_another():
    """The first word has a probability then; a tokenizer with another token is refused."""
    tokenizer = byte_level("Ġ b", "Ġb i")
    tokenizer.bos_token = None
    model = asked(gpt2(len(tokenizer)), tokenizer, "causal", bos="eos")
    sentence = model.encode(Sentence("a bi"))
    assert sentence.encoder.opening == (tokenizer.eos_token_id,)
    assert [*sentence.scored] == [*range(len(sentence.ids))]
    assert (model.info.bos, model.info.sentence_bos) == (True, True)
    auto = asked(gpt2(len(tokenizer)), tokenizer, "causal")
    assert not auto.info.sentence_bos
    with pytest.raises(BadInput, match=r"has no beginning-of-sequence token.*use --bos eos"):
        asked(gpt2(len(tokenizer)), tokenizer, "causal", bos="always")
    with pytest.raises(BadInput, match=r"has the beginning-of-sequence token <s>: use"):
        asked(gpt2(40), sentencepiece("▁bird"), "causal", bos="eos")
