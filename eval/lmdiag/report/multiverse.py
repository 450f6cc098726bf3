"""`multiverse.html`: a specification curve of each headline figure."""

from __future__ import annotations


def render(multiverse):
    return ""
