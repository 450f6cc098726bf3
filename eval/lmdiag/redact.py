"""Removes secrets from text before it is shown or written: tokens of the Hub, passwords in URLs.

Every line on standard error, every log record and every text in results.json passes through here.
"""

from __future__ import annotations

import logging
import os
import re
import sys
import traceback
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any

HIDDEN, HIDDEN_TOKEN = "***", "hf_***"

_TOKEN = re.compile(r"(?<![A-Za-z0-9_])(?:hf|api_org)_[A-Za-z0-9]{8,}")
_PASSWORD = re.compile(r"(?<=://)[^\s/@?#'\"<>]*:[^\s/@?#'\"<>]*@")
"""`user:password@` between `https://` and a host; the user may be missing."""
_USER = re.compile(r"(?<=://)[^\s/@?#:'\"<>]+@")
"""`token@` there; a user's name without a password looks the same."""
_PARAMETER = re.compile(
    r"(?i)([?&](?:access_)?(?:token|key|api_key|password|secret)=)[^\s&#'\"<>]+"
)
_BEARER = re.compile(r"\b([Bb]earer\s+)[A-Za-z0-9._~+/=-]{16,}")
_SHORTEST = 8
"""Characters of a token that is looked for as it stands; shorter ones would match in any text."""


def without_secrets(text: str) -> str:
    """Returns a text in which every secret is replaced by asterisks.

    What is replaced: the token in use (`HF_TOKEN`, or the one that `hf auth login` saved) and the
    keys of servers in the environment, wherever they stand; words that look like a token of the
    Hub; the part before `@` in a URL; the value of `token=` and the like in a query; what follows
    `Bearer`.
    """
    text = _without_tokens(text)
    text = _USER.sub(f"{HIDDEN}@", text)
    text = _PARAMETER.sub(rf"\1{HIDDEN}", text)
    return _BEARER.sub(rf"\1{HIDDEN}", text)


def find_secret(content: bytes) -> bool:
    """Returns whether the bytes of a file hold a token, a key or a URL with a password."""
    text = content.decode("utf-8", "replace")
    return _without_tokens(text) != text


def _without_tokens(text: str) -> str:
    for secret in _known():
        text = text.replace(secret, HIDDEN_TOKEN)
    return _PASSWORD.sub(f"{HIDDEN}@", _TOKEN.sub(HIDDEN_TOKEN, text))


def _known() -> list[str]:
    """The secrets of this process, longest first."""
    from huggingface_hub.constants import HF_TOKEN_PATH

    names = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY", "LMDIAG_SERVER_KEY")
    found = {os.environ.get(name, "").strip() for name in names}
    with suppress(OSError, UnicodeDecodeError):
        found.add(Path(HF_TOKEN_PATH).read_text("utf-8").strip())
    return sorted((each for each in found if len(each) >= _SHORTEST), key=len, reverse=True)


def redacted(value: Any) -> Any:
    """Returns a JSON value without secrets in any of its texts, keys included."""
    if isinstance(value, str):
        return without_secrets(value)
    if isinstance(value, dict):
        return {redacted(key): redacted(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [redacted(item) for item in value]
    return value


def redact_tracebacks() -> None:
    """Makes what the interpreter prints of an unexpected error lose its secrets."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        lines = traceback.format_exception(kind, error, trace)
        print(without_secrets("".join(lines)), end="", file=sys.stderr)

    sys.excepthook = hook


def redact_logs() -> None:
    """Makes every log record of this process lose its secrets before any handler sees it."""
    make = logging.getLogRecordFactory()
    if getattr(make, "redacts", False):
        return

    def record(*args: Any, **kwargs: Any) -> logging.LogRecord:
        made = make(*args, **kwargs)
        try:
            text = made.getMessage()
        except Exception:  # the arguments do not fit the format
            text = str(made.msg)
        made.msg, made.args = without_secrets(text), None
        return made

    record.redacts = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(record)
