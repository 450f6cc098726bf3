"""Types of the columns that mean something: how a value may be written, and what it is read as.

A column that is not named here keeps its values: it is a break-down, or text.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any

TRUTH = {"true": True, "1": True, "false": False, "0": False}
"""How files of text write `good`; compared in lower case."""

SEPARATOR = "|"
"""Between the words of a list in one text field."""

QUOTED = r"""(?:'[^'\\]*'|"[^"\\]*")"""
PYTHON_LIST = re.compile(rf"\[\s*(?:{QUOTED}\s*(?:,\s*{QUOTED}\s*)*,?\s*)?\]")
"""A list of words as pandas writes it into a csv file: Python's own notation."""


def truth(value: Any) -> bool | None:
    """Returns a truth value; None for a missing one.

    Raises:
        ValueError: it is written in another way.
    """
    if value is None or value == "" or isinstance(value, bool):
        return None if value == "" else value
    if str(value).lower() not in TRUTH:
        raise ValueError(f"expected true or false, not {value!r}")
    return TRUTH[str(value).lower()]


def words(value: Any) -> list[str]:
    """Returns a list of words; an empty one for a missing value.

    Raises:
        ValueError: it is neither a list of words nor a text that is one.

    >>> words("bird|tree"), words('["bird", "tree"]'), words(None)
    (['bird', 'tree'], ['bird', 'tree'], [])
    """
    if value is None or value == "":
        return []
    if isinstance(value, str):
        return written_list(value) if value.startswith("[") else separated(value)
    if isinstance(value, list | tuple) and all(isinstance(word, str) for word in value):
        return list(value)
    raise ValueError(f"expected a list of words, not {value!r}")


def separated(text: str) -> list[str]:
    """Returns the words of a text in which `|` stands between them.

    A comma or a semicolon is refused: as part of a word it could never be matched, and accuracy
    would be 0 without a hint.
    """
    if len(text) > 1 and re.search("[,;]", text):
        raise ValueError(f'{text!r}: separate words by |, or write a list: ["bird", "tree"]')
    return [word.strip() for word in text.split(SEPARATOR)]


def written_list(text: str) -> list[str]:
    """Returns the words of a text that is a list, in the notation of JSON or of Python."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        if not PYTHON_LIST.fullmatch(text):
            raise ValueError(f'{text!r} is not a list of words such as ["bird", "tree"]') from None
        found = [word[1:-1] for word in re.findall(QUOTED, text)]
    if not isinstance(found, list):
        raise ValueError(f"expected a list of words, not {text!r}")
    return words(found)


def number(value: Any) -> float | None:
    """Returns a number; None for a missing one.

    Raises:
        ValueError: it is something else.
    """
    if value is None or value == "":
        return None
    try:
        return float(value)
    except (TypeError, ValueError, OverflowError):
        raise ValueError(f"expected a number, not {value!r}") from None


def text(value: Any) -> str | None:
    """Returns text; items are often whole numbers, everything else is a mistake.

    Raises:
        ValueError: it is something else.
    """
    if value is None or isinstance(value, str):
        return value
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    raise ValueError(f"expected text, not {value!r}")


Convert = Callable[[Any], Any]

KEPT: Mapping[Convert, type] = {text: str, truth: bool, number: float}
"""What reads a column -> the type whose values it returns as they are."""

CORE: Mapping[str, Convert] = {
    "id": text, "item": text, "condition": text, "context": text, "right_context": text,
    "target": text, "good": truth, "contrast": text, "expected": words,
}  # fmt: skip
"""Core column -> what reads its values."""

TYPES: Mapping[str, Convert] = {"number": number, "words": words, "boolean": truth}
"""Type of a column of a diagnostic -> what reads its values; text stays as it is."""
