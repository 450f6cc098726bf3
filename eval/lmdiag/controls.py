"""Contexts with the name of a control token in them, which a model does not read as text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from lmdiag.questions import row_keys
from lmdiag.schema import Sentence

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
    for setting in settings:
        keys = row_keys(setting, kind=model.info.kind, cased=model.info.cased)
        for row, key in zip(setting.stimuli.columns()["id"], keys, strict=True):
            rows.setdefault(row, key.text if isinstance(key, Sentence) else "\n".join(key[0]))
    texts = list(dict.fromkeys(rows.values()))
    names = dict(zip(texts, model.control_names(texts), strict=True))
    hits = [(row, names[text]) for row, text in rows.items() if names[text]]
    if not hits:
        return None
    examples = ", ".join(f"{in_row[0]} in row {row}" for row, in_row in hits[:_EXAMPLES])
    more = ", ..." if len(hits) > _EXAMPLES else ""
    count = "1 context contains" if len(hits) == 1 else f"{len(hits)} contexts contain"
    return (
        f"{count} the text of a control token, which model {model.info.id} reads as the token "
        f"itself and not as text ({examples}{more}): rewrite these rows if this is not intended"
    )
