"""Sentences of a user's own, with or without contrasts between them."""

from __future__ import annotations

from lmdiag.diagnostics.base import Diagnostic

DIAGNOSTIC = Diagnostic(
    name="suites",
    title="",
    short_title="",
    about="",
    asks="sentence",
    has_regions=True,
    is_form=True,
)
