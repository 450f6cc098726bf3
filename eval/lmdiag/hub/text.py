"""Text that strangers wrote, made fit to be shown anywhere: a terminal, a page, a file name."""

from __future__ import annotations

import hashlib
import re
import unicodedata
from typing import Any

_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
"""Unicode categories of what is not seen: controls, direction marks, surrogates, unassigned."""

_JOINERS = "\u200c\u200d"
"""Formatting characters that spelling needs in some scripts."""


def visible(text: str) -> str:
    """Returns the text with every hidden character spelled out, e.g. `⟨U+202E⟩`.

    A terminal or a page that gets it can neither be steered nor be made to show another order.
    """
    return "".join(
        f"⟨U+{ord(character):04X}⟩"
        if unicodedata.category(character) in _HIDDEN and character not in _JOINERS
        else character
        for character in text
    )


def all_visible(value: Any) -> Any:
    """Returns a JSON value with every text in it made visible, keys included."""
    if isinstance(value, str):
        return visible(value)
    if isinstance(value, dict):
        return {visible(str(key)): all_visible(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [all_visible(item) for item in value]
    return value


def file_name(name: str, identity: str) -> str:
    """Returns a name for a file: readable, of safe characters, and its own for each identity.

    Args:
        name: what it should remind of.
        identity: what must differ for two files to differ.
    """
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name)[:60].strip("-").lower() or "model"
    return f"{readable}-{hashlib.sha256(identity.encode('utf-8', 'replace')).hexdigest()[:10]}"
