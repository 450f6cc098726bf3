"""Removes secrets from text before it is shown or written: access tokens, passwords in URLs.

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

_HIDDEN, _HIDDEN_TOKEN = "***", "hf_***"

_TOKEN = re.compile(r"(?<![A-Za-z0-9_])(?:hf|api_org)_[A-Za-z0-9]{8,}")
_PASSWORD = re.compile(r"(?<=://)[^\s/@?#'\"<>]*:[^\s/@?#'\"<>]*@")
"""`user:password@` between `https://` and a host; the user may be missing."""
_USER = re.compile(r"(?<=://)[^\s/@?#:'\"<>]+@")
"""`token@` there; it cannot be distinguished from the name of a user."""
_PARAMETER = re.compile(
    r"(?i)([?&](?:access_)?(?:token|key|api_key|password|secret)=)[^\s&#'\"<>]+"
)
_BEARER = re.compile(r"\b([Bb]earer\s+)[A-Za-z0-9._~+/=-]{16,}")
_VARIABLES = ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "OPENAI_API_KEY", "LMDIAG_SERVER_KEY")
_MIN_SECRET = 8
"""Characters of a secret that is searched for literally; a shorter one would match in any text."""


def without_secrets(text: str) -> str:
    """Returns a text in which every secret is replaced by asterisks.

    Replaced are: the token in use (`HF_TOKEN`, or the one that `hf auth login` saved) and the keys
    of servers in the environment, wherever they occur; words that look like a token of the Hub;
    the part before `@` in a URL; the value of `token=` and the like in a query; what follows
    `Bearer`.
    """
    text = _USER.sub(f"{_HIDDEN}@", _without_tokens(text))
    text = _PARAMETER.sub(rf"\1{_HIDDEN}", text)
    return _BEARER.sub(rf"\1{_HIDDEN}", text)


def find_secret(content: bytes) -> bool:
    """Returns whether the bytes of a file contain a token, a key or a URL with a password."""
    text = content.decode("utf-8", "replace")
    return _without_tokens(text) != text


def _without_tokens(text: str) -> str:
    for secret in _known_secrets():
        text = text.replace(secret, _HIDDEN_TOKEN)
    return _PASSWORD.sub(f"{_HIDDEN}@", _TOKEN.sub(_HIDDEN_TOKEN, text))


def _known_secrets() -> list[str]:
    """The secrets of this process, longest first."""
    from huggingface_hub.constants import HF_TOKEN_PATH

    secrets = {os.environ.get(name, "").strip() for name in _VARIABLES}
    with suppress(OSError, UnicodeDecodeError):
        secrets.add(Path(HF_TOKEN_PATH).read_text("utf-8").strip())
    return sorted((s for s in secrets if len(s) >= _MIN_SECRET), key=len, reverse=True)


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
    """Removes secrets from what the interpreter prints for an unexpected error."""

    def hook(kind: type[BaseException], error: BaseException, trace: TracebackType | None) -> None:
        lines = traceback.format_exception(kind, error, trace)
        print(without_secrets("".join(lines)), end="", file=sys.stderr)

    sys.excepthook = hook


def redact_logs() -> None:
    """Removes secrets from every log record of this process before a handler sees it."""
    make = logging.getLogRecordFactory()
    if getattr(make, "redacts", False):
        return

    def make_redacted(*args: Any, **kwargs: Any) -> logging.LogRecord:
        record = make(*args, **kwargs)
        try:
            text = record.getMessage()
        except Exception:  # the arguments do not fit the format
            text = str(record.msg)
        record.msg, record.args = without_secrets(text), None
        return record

    make_redacted.redacts = True  # type: ignore[attr-defined]
    logging.setLogRecordFactory(make_redacted)
