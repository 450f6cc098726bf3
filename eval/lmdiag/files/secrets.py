"""Removes tokens, keys and passwords from texts before they are shown or written."""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
from base64 import b64encode
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import Any

_TOKENS = (
    (r"(?<![A-Za-z0-9_])(?:hf|api_org)_[A-Za-z0-9]{8,}", "hf_***"),
    (r"(?<=://)[^\s/@?#'\"<>]*:[^\s/@?#'\"<>]*@", "***@"),  # user:password@
)
"""Pattern of what is a secret, and what replaces it."""
_SUSPECTS = (
    (r"(?<=://)[^\s/@?#:'\"<>]+@", "***@"),  # a token, or the name of a user
    (r"(?i)([?&](?:access_)?(?:token|key|api_key|password|secret)=)[^\s&#'\"<>]+", r"\1***"),
    (r"\b([Bb]earer\s+)[A-Za-z0-9._~+/=-]{16,}", r"\1***"),
)
"""The same for what may be a secret."""
_VARIABLES = (
    "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "LMDIAG_BOARD_TOKEN", "OPENAI_API_KEY",
    "LMDIAG_SERVER_KEY",
)  # fmt: skip
"""Variables of the environment that have a secret."""

_PART = 8
"""As many characters of a secret in a row are not shown; a shorter part occurs in any text."""


def without_secrets(text: str, *tokens: str, suspects: bool = True) -> str:
    """Returns a text in which every secret is replaced by asterisks.

    Secrets are the token in use (`HF_TOKEN`, or the one that `hf auth login` saved), the keys of
    servers in the environment, words that look like a token of the Hub, and a password in a URL.

    Args:
        text: the text that is shown or written.
        tokens: further secrets.
        suspects: whether to replace also what may be a secret: 8 or more characters of a secret in
            any letter case or in base64, all before `@` in a URL, `token=` and the like in a query,
            and `Bearer` tokens.

    >>> without_secrets("pushed with hf_abcdefghijkl to https://me:word@host/data")
    'pushed with hf_*** to https://***@host/data'
    """
    from huggingface_hub.constants import HF_TOKEN_PATH

    keys = [os.environ.get(name, "").strip() for name in _VARIABLES]
    with suppress(OSError, UnicodeDecodeError):
        keys.append(Path(HF_TOKEN_PATH).read_text("utf-8").strip())
    secrets = {token for token in tokens if token}
    secrets |= {key for key in keys if len(key) >= _PART}
    for secret in sorted(secrets, key=len, reverse=True):  # one may contain another
        text = text.replace(secret, "***")
        if suspects and len(secret) >= _PART:
            text = _without_parts(text, secret)
    for pattern, replacement in _TOKENS + _SUSPECTS if suspects else _TOKENS:
        text = re.sub(pattern, replacement, text)
    return text


def _without_parts(text: str, secret: str) -> str:
    """Returns a text with *** for every part of a secret of `_PART` characters or more.

    >>> _without_parts("the key begins with ABCDEFGH", "abcdefghijkl")
    'the key begins with ***'
    """
    hidden: set[int] = set()  # positions in the text
    for match in _part_pattern(secret).finditer(text):
        start, end = match.span(1)
        hidden.update(range(start, end))
    if not hidden:
        return text
    # each hidden character becomes a NUL, and each row of NULs becomes ***
    marked = "".join("\0" if i in hidden else character for i, character in enumerate(text))
    return re.sub("\0+", "***", marked)


@cache
def _part_pattern(secret: str) -> re.Pattern[str]:
    """Returns a pattern that finds the parts of a secret, in any letter case or in base64.

    A part is group 1 of a match. The match itself is empty, by a lookahead, so that parts that
    overlap are all found.
    """
    # base64 has three forms of a text, by its position in what is encoded
    padded = [b64encode(b" " * shift + secret.encode()).decode() for shift in range(3)]
    url_safe = [form.replace("+", "-").replace("/", "_") for form in padded]
    parts: set[str] = set()
    for form in (secret, *padded, *url_safe):
        parts.update(form[i : i + _PART] for i in range(len(form) - _PART + 1))
    alternatives = "|".join(map(re.escape, sorted(parts)))
    return re.compile(f"(?=({alternatives}))", re.IGNORECASE)


def has_secret(content: bytes) -> bool:
    """Returns whether the bytes of a file contain a token, a key or a URL with a password."""
    text = content.decode("utf-8", "replace")
    return without_secrets(text, suspects=False) != text


def redact_output() -> None:
    """Removes secrets from tracebacks and log records of this process before they are shown."""

    def make_redacted(*args: Any, **kwargs: Any) -> logging.LogRecord:
        """Makes a log record as before, with a message that has no secrets and no arguments."""
        record = make_record(*args, **kwargs)
        text = ""
        with suppress(Exception):  # the arguments do not fit the format
            text = record.getMessage()
        record.msg = without_secrets(text or str(record.msg))
        record.args = None
        return record

    def print_redacted(*error: Any) -> None:
        """Prints the traceback of an exception that ends the process."""
        lines = traceback.format_exception(*error)
        print(without_secrets("".join(lines)), end="", file=sys.stderr)

    sys.excepthook = print_redacted
    make_record = logging.getLogRecordFactory()
    is_redacted = make_record.__qualname__ == make_redacted.__qualname__  # by an earlier call
    if not is_redacted:
        logging.setLogRecordFactory(make_redacted)
