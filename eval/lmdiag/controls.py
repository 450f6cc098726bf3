"""Contexts with the name of a control token in them, which a model does not read as text."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

from lmdiag.questions import row_keys
from lmdiag.types import Sentence

if TYPE_CHECKING:
    from lmdiag.models import Model
    from lmdiag.questions import Setting

_EXAMPLES = 3
"""Rows that are named in a warning."""


def control_warning(model: Model, settings: Iterable[Setting]) -> str | None:
    """Returns one line about the rows whose context has the name of a control token.

    Args:
        model: the model that is queried; its tokenizer decides what a control token is.
        settings: all rows that are asked.

    Returns:
        the line, with the number of rows, and text and id of the first ones; None for no such row.
    """
    rows: dict[str, str] = {}
    noun = "context"
    for setting in settings:
        noun = "sentence" if setting.stimuli.diagnostic.asks == "sentence" else "context"
        keys = row_keys(setting, kind=model.info.kind, cased=model.info.cased)
        for row, key in zip(setting.stimuli.columns()["id"], keys, strict=True):
            text = key.text if isinstance(key, Sentence) else "\n".join(key[0])
            rows.setdefault(f"row {row}", text)
    return text_warning(model, rows, noun)


def text_warning(model: Model, texts: Mapping[str, str], noun: str) -> str | None:
    """Returns one line about the texts with the name of a control token; None for no such text.

    Args:
        model: the model that is queried.
        texts: where a text is -> the text.
        noun: what each of them is, e.g. "sentence".
    """
    distinct = list(dict.fromkeys(texts.values()))
    names = dict(zip(distinct, model.control_names(distinct), strict=True))
    hits = [f"{names[text][0]} in {place}" for place, text in texts.items() if names[text]]
    if not hits:
        return None
    examples = ", ".join(hits[:_EXAMPLES]) + (", ..." if len(hits) > _EXAMPLES else "")
    count = f"1 {noun} contains" if len(hits) == 1 else f"{len(hits)} {noun}s contain"
    return (
        f"{count} the text of a control token, which model {model.info.id} reads as the token "
        f"itself and not as text ({examples}): rewrite these rows if this is not intended"
    )
