"""Tokenizers with chat templates of the structure that published ones have.

The templates were written for these tests: roles, special tokens, line breaks, trimming and errors
are those of the models' own templates for one turn of the user and one of the assistant; tools,
images and further turns are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tokenizer_files import write
from transformers import AutoTokenizer, PreTrainedTokenizerFast


@dataclass(frozen=True)
class Chat:
    """A chat template.

    Attributes:
        family: whose tokenizer it goes with, see `tokenizer_files.PUBLISHED`.
        tokens: control tokens of turns.
        template: in Jinja.
        prompt: what it makes of the instruction "Go on." and an open turn of the assistant.
    """

    family: str
    tokens: str
    template: str
    prompt: str


_TURNS = "{% for message in messages %}"
_ALTERNATE = (
    "{% if (message.role == 'user') != (loop.index0 % 2 == 0) %}"
    "{{ raise_exception('roles must alternate') }}{% endif %}"
)
_LLAMA = (
    "{{ '<|start_header_id|>' ~ message.role ~ '<|end_header_id|>\n\n' ~ message.content | trim"
    " ~ '<|eot_id|>' }}{% endfor %}"
)
_LLAMA_TURNS = (
    "<|start_header_id|>user<|end_header_id|>\n\nGo on.<|eot_id|>"
    "<|start_header_id|>assistant<|end_header_id|>\n\n{context}"
)
_DATED = (
    "<|start_header_id|>system<|end_header_id|>\n\n"
    "Cutting Knowledge Date: December 2023\nToday Date: "
)
_LLAMA_TOKENS = "<|start_header_id|> <|end_header_id|> <|eot_id|>"

CHATS = {
    # Llama 3.2 writes today's date.
    "llama-3.2": Chat(
        "llama3", _LLAMA_TOKENS,
        "{{ bos_token }}" + _DATED + "{{ strftime_now(\"%d %b %Y\") }}\n\n<|eot_id|>" + _TURNS
        + _LLAMA,
        "<|begin_of_text|>" + _DATED + "26 Jul 2024\n\n<|eot_id|>" + _LLAMA_TURNS,
    ),
    # Qwen 3 puts an empty thought before the last answer.
    "qwen-3": Chat(
        "qwen2", "<think> </think>",
        _TURNS + "{{ '<|im_start|>' ~ message.role ~ '\n' }}"
        "{% if message.role == 'assistant' and loop.last %}{{ '<think>\n\n</think>\n\n' }}"
        "{% endif %}{{ message.content.split('</think>')[-1].lstrip('\n') ~ '<|im_end|>\n' }}"
        "{% endfor %}",
        "<|im_start|>user\nGo on.<|im_end|>\n"
        "<|im_start|>assistant\n<think>\n\n</think>\n\n{context}",
    ),
    "gemma-3": Chat(
        "gemma", "<start_of_turn> <end_of_turn>",
        "{{ bos_token }}" + _TURNS + _ALTERNATE +
        "{{ '<start_of_turn>' ~ ('model' if message.role == 'assistant' else message.role) ~ '\n'"
        " ~ message.content | trim ~ '<end_of_turn>\n' }}{% endfor %}",
        "<bos><start_of_turn>user\nGo on.<end_of_turn>\n<start_of_turn>model\n{context}",
    ),
    "mistral": Chat(
        "llama", "[INST] [/INST]",
        "{{ bos_token }}" + _TURNS + _ALTERNATE +
        "{% if message.role == 'user' %}{{ '[INST] ' ~ message.content ~ '[/INST]' }}"
        "{% else %}{{ ' ' ~ message.content | trim ~ eos_token }}{% endif %}{% endfor %}",
        "<s>[INST] Go on.[/INST] {context}",
    ),
    "chatml": Chat(
        "gpt_neox", "<|im_start|> <|im_end|>",
        _TURNS + "{{ '<|im_start|>' ~ message.role ~ '\n' ~ message.content ~ '<|im_end|>\n' }}"
        "{% endfor %}",
        "<|im_start|>user\nGo on.<|im_end|>\n<|im_start|>assistant\n{context}",
    ),
}  # fmt: skip
"""Name -> a chat template."""


def chat_tokenizer(name: str, folder: Path) -> PreTrainedTokenizerFast:
    """Returns the tokenizer of a chat, with its template."""
    chat = CHATS[name]
    write(chat.family, folder)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    tokenizer.add_special_tokens({"extra_special_tokens": chat.tokens.split()})
    tokenizer.chat_template = chat.template
    return tokenizer
