"""What stands around a context when a model reads it: a prompt, or a turn of a chat template."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmdiag.schema import BadInput, FirstLetter, Query

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

SLOT = "{context}"
"""Where the context stands in a prompt."""

_CONTEXTS = ("The old man said that it was a", "Every morning she goes to the")
"""Contexts with which a chat template is tried: what stands around them must be the same."""


@dataclass(frozen=True)
class Framing:
    """How a query is changed before the model reads it.

    Attributes:
        prompt: text with `SLOT` in it, which the context replaces.
        first_letter: case of the first letter of the context.
    """

    prompt: str = SLOT
    first_letter: FirstLetter = "as-is"

    def apply(self, query: Query) -> Query:
        """Returns the query as the model reads it."""
        context = query.context
        if self.first_letter != "as-is":
            first = context[:1].upper() if self.first_letter == "upper" else context[:1].lower()
            context = first + context[1:]
        return Query(self.prompt.replace(SLOT, context), query.right_context)


def chat_prompt(tokenizer: PreTrainedTokenizerFast, instruction: str, model_id: str) -> str:
    """Returns what a chat template puts around a context that the assistant is to continue.

    The user's turn is the instruction, the assistant's turn begins with the context and is left
    open.

    Args:
        tokenizer: has the template.
        instruction: the user's turn.
        model_id: for messages.

    Raises:
        BadInput: the model does not have a chat template, or the template refuses these turns or
            changes the context.
    """
    if not tokenizer.chat_template:
        raise BadInput(f"model {model_id} has no chat template: leave out --chat, or use --prompt")
    prompts = set()
    for context in _CONTEXTS:
        text = _rendered(tokenizer, instruction, context, model_id)
        before, context_there, after = text.rpartition(context)
        if not context_there or after:
            raise BadInput(
                f"model {model_id}: its chat template changes the text of the assistant's turn, so "
                "that the turn cannot be continued: use --prompt"
            )
        prompts.add(before + SLOT)
    if len(prompts) > 1 or SLOT in before:
        raise BadInput(
            f"model {model_id}: what its chat template puts around a context depends on the "
            "context: use --prompt"
        )
    return prompts.pop()


def _rendered(
    tokenizer: PreTrainedTokenizerFast, instruction: str, context: str, model_id: str
) -> str:
    turns: list[Any] = [
        {"role": "user", "content": instruction},
        {"role": "assistant", "content": context},
    ]
    try:
        text = tokenizer.apply_chat_template(turns, tokenize=False, continue_final_message=True)
    except Exception as error:  # a template raises whatever its author wrote
        reason = str(error).partition("\n")[0]
        raise BadInput(
            f"model {model_id}: its chat template cannot be used for a turn of the user and one of "
            f"the assistant ({reason}): use --prompt"
        ) from error
    assert isinstance(text, str)
    return text
