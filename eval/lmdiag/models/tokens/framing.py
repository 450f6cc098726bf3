"""What stands around a context when a model reads it: a prompt, or a turn of a chat template."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING

from lmdiag.asking.protocol import QueryOptions
from lmdiag.asking.questions import with_first_letter
from lmdiag.text import shortened
from lmdiag.types import BadInput, Query

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SLOT = "{context}"
"""Where the context stands in a prompt."""

_CONTEXTS = ("The old man said that it was a", "Every morning she goes to the")
"""Contexts with which a chat template is tried: what stands around them must be the same."""

MAX_TEXT = 2**20
"""Characters of a chat template, and of what it writes, at most."""

_TODAY = date(2024, 7, 26)
"""What templates that write the date take for today; Llama 3.1's own, where it knows no other."""

_DATE = re.compile(r"""strftime_now\(\s*(?:"([^"]*)"|'([^']*)')\s*\)""")
"""How a template asks for today's date."""


@dataclass(frozen=True)
class Framing:
    """How a query is changed before the model reads it.

    Attributes:
        options: knobs that change the context.
        prompt: text with `SLOT` in it, which the context replaces.
    """

    options: QueryOptions
    prompt: str = SLOT

    @property
    def shown(self) -> str:
        """The prompt as a run records it; "" for none."""
        return "" if self.prompt == SLOT else self.prompt

    def apply(self, query: Query) -> Query:
        """Returns the query as the model reads it, with the prompt as a part of its context.

        The prompt is a text with `SLOT` at the place of the context; for a chat it is what the
        model's template makes, up to the assistant's turn. A space at the end, as of a prompt whose
        context is empty, is left out: it belongs to the word that follows.

        `space_before` of the returned query is True or False if it is known whether a space stands
        before the word, and None if words at this place have one as usual. A word that opens the
        assistant's turn of a chat has one only if the template writes one.
        """
        context = with_first_letter(query.context, self.options.first_letter)
        text = self.prompt.replace(SLOT, context)
        ends_in_context = self.prompt.endswith(SLOT)
        # None: there is a space where words usually have one
        space_before = query.space_before if ends_in_context else None
        # no text of the context stands between the beginning of the turn and the word
        opens_turn = self.options.chat and not (ends_in_context and context)
        if opens_turn:
            space_before = text.endswith(" ")
        return query._replace(context=text.rstrip(" "), space_before=space_before)


def chat_prompt(tokenizer: PreTrainedTokenizerFast, instruction: str, model_id: str) -> str:
    """Returns the prompt that a chat template makes: the text around a context, with `SLOT` in it.

    With an instruction, this is the user's turn, and the assistant's turn begins with the context
    and is left open. Without one, the context is the user's turn, and the assistant's turn begins
    after it. The template is applied to two contexts, and what stands around both must be the same.
    A template that writes today's date is given a fixed one, so that a run can be repeated.

    Args:
        tokenizer: has the template.
        instruction: the user's turn; "" for the context.
        model_id: for messages.

    Raises:
        BadInput: the model does not have a chat template, or the template refuses these turns or
            changes the context.
    """
    head = f"model {model_id}"
    if not tokenizer.chat_template:
        raise BadInput(f"{head} has no chat template: leave out --chat, or use --prompt")
    prompts = set()  # of both contexts: one prompt if they have the same
    for context in _CONTEXTS:
        reply = context if instruction else "1"  # any text whose end can be found again
        turns = [
            {"role": "user", "content": instruction or context},
            {"role": "assistant", "content": reply},
        ]
        try:
            text = _apply_template(tokenizer, turns)
        except Exception as error:  # a template raises whatever its author wrote
            raise BadInput(
                f"{head}: its chat template cannot be used for a turn of the user and one of the "
                f"assistant ({shortened(error)}): use --prompt"
            ) from error
        if not text.endswith(reply):
            raise BadInput(
                f"{head}: its chat template changes the text of the assistant's turn, so that the "
                "turn cannot be continued: use --prompt"
            )
        text_before_reply = text.removesuffix(reply)
        if instruction:
            prompts.add(text_before_reply + SLOT)
        else:
            prompts.add(text_before_reply.replace(context, SLOT))
    prompt = prompts.pop()
    # the contexts have different prompts, or the template changed or repeated the context
    if prompts or prompt.count(SLOT) != 1:
        raise BadInput(
            f"{head}: what its chat template puts before the assistant's turn depends on the turn: "
            "use --prompt"
        )
    return prompt


def _apply_template(tokenizer: PreTrainedTokenizerFast, turns: list[dict[str, str]]) -> str:
    """Returns the text that a chat template makes of turns, the last of which is left open.

    `turns` have "role" and "content". Raises `ValueError` if template or text is too long, and
    whatever the template raises.
    """
    template = tokenizer.get_chat_template()
    if len(template) > MAX_TEXT:
        raise ValueError(f"it has more than {MAX_TEXT:,} characters")
    # strftime_now("%d %B %Y") becomes the text of a fixed date, '26 July 2024'; the format is in
    # group 1 or 2 of the match, by its quotation marks
    template = _DATE.sub(
        lambda call: repr(_TODAY.strftime(call[1] or call[2] or "")),
        template,
    )
    text = tokenizer.apply_chat_template(
        turns, chat_template=template, tokenize=False, continue_final_message=True
    )
    if len(text) > MAX_TEXT:
        raise ValueError(f"it writes more than {MAX_TEXT:,} characters")
    return str(text)
