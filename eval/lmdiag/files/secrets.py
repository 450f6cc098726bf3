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
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    pass

_TOKENS = (
    (r"(?<![A-Za-z0-9_])(?:hf|api_org)_[A-Za-z0-9]{8,}", "hf_***"),
    (r"(?<=://)[^\s/@?#'\"<>]*:[^\s/@?#'\"<>]*@", "***@"),  # user:password@
)
_SUSPECTS = (
    (r"(?<=://)[^\s/@?#:'\"<>]+@", "***@"),  # a token, or the name of a user
    (r"(?i)([?&](?:access_)?(?:token|key|api_key|password|secret)=)[^\s&#'\"<>]+", r"\1***"),
    (r"\b([Bb]earer\s+)[A-Za-z0-9._~+/=-]{16,}", r"\1***"),
)
_VARIABLES = (
    "HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "LMDIAG_BOARD_TOKEN", "OPENAI_API_KEY",
    "LMDIAG_SERVER_KEY",
)  # fmt: skip


_PART = 8
"""Characters of a secret that are not shown."""


def without_secrets(text: str, *tokens: str, suspects: bool = True) -> str:
    """Returns a text in which every secret is replaced by asterisks.

    Replaced are the token in use (`HF_TOKEN`, or the one that `hf auth login` saved), the keys of
    servers in the environment, `tokens`, words that look like a token of the Hub, a password in
    a URL, and, as `suspects`, 8 or more characters of a secret in any letter case or in base64, all
    before `@` in a URL, `token=` and the like in a query, and `Bearer` tokens.
    """
    from huggingface_hub.constants import HF_TOKEN_PATH

    in_use = {os.environ.get(name, "").strip() for name in _VARIABLES}
    with suppress(OSError, UnicodeDecodeError):
        in_use.add(Path(HF_TOKEN_PATH).read_text("utf-8").strip())
    # a shorter one would match in any text
    secrets = {*filter(None, tokens), *(secret for secret in in_use if len(secret) >= _PART)}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "***")
        if suspects and len(secret) >= _PART:
            hidden = {i for match in _parts(secret).finditer(text) for i in range(*match.span(1))}
            characters = ("\0" if i in hidden else character for i, character in enumerate(text))
            text = re.sub("\0+", "***", "".join(characters)) if hidden else text
    for pattern, replacement in _TOKENS + _SUSPECTS if suspects else _TOKENS:
        text = re.sub(pattern, replacement, text)
    return text


@cache
def _parts(secret: str) -> re.Pattern[str]:
    """Matches before every part of a secret, as it is, in another letter case, and in base64."""
    padded = [b64encode(b" " * shift + secret.encode()).decode() for shift in range(3)]
    url_safe = [form.replace("+", "-").replace("/", "_") for form in padded]
    forms = (secret, *padded, *url_safe)
    parts = {form[i : i + _PART] for form in forms for i in range(len(form) - _PART + 1)}
    return re.compile(f"(?=({'|'.join(map(re.escape, sorted(parts)))}))", re.IGNORECASE)


def find_secret(content: bytes) -> bool:
    """Returns whether the bytes of a file contain a token, a key or a URL with a password."""
    text = content.decode("utf-8", "replace")
    return without_secrets(text, suspects=False) != text


def redact_output() -> None:
    """Removes secrets from tracebacks and log records of this process before they are shown."""

    def make_redacted(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        text = ""
        with suppress(Exception):  # the arguments do not fit the format
            text = record.getMessage()
        record.msg = without_secrets(text or str(record.msg))
        record.args = None
        return record

    sys.excepthook = lambda *error: print(
        without_secrets("".join(traceback.format_exception(*error))), end="", file=sys.stderr
    )
    make = logging.getLogRecordFactory()
    if make.__qualname__ != make_redacted.__qualname__:
        logging.setLogRecordFactory(make_redacted)
