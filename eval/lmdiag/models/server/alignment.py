"""Which of a server's tokens belong to which characters of the text that was sent.

Tokens are placed by their texts alone: engines count the offsets of tokens in different ways, and
some give none. The texts must join to the text that was sent. A token that has only a part of a
character (byte-level vocabularies split curly quotes) comes without it or with U+FFFD in its place,
so at characters beyond ASCII a gap is allowed.
"""

from __future__ import annotations

from collections.abc import Sequence

from lmdiag.models.server.dialects import ServedToken
from lmdiag.models.tokens.spelling import SpelledText

_BROKEN = "\ufffd"
_MOST_SPECIAL = 3
"""Special tokens that a server may put before a text and repeat in its answer."""


def placed(text: str, tokens: Sequence[ServedToken]) -> tuple[int, list[int]] | None:
    """Returns how many special tokens come first, and where each of the others starts in the text.

    Args:
        text: as it was sent.
        tokens: as they came back.

    Returns:
        number of tokens before the text; position of the first character of each other one, which
        may be a blank. None if the texts of the tokens do not join to the text.
    """
    pieces = [token.text or "" for token in tokens]
    numbers = range(min(_MOST_SPECIAL, len(pieces)) + 1)
    # an empty piece before a text that begins with an ASCII character is a special token
    for before in reversed(numbers) if text[:1].isascii() else numbers:
        if (starts := _starts(text, pieces[before:])) is not None:
            return before, starts
    return None


def spelled(text: str, starts: Sequence[int]) -> SpelledText:
    """Returns a text as the server's tokens, as `Spelling.spell` does with a tokenizer.

    Args:
        text: as it was sent.
        starts: see `placed`; the ids are the numbers of the tokens.
    """
    solid = []
    for start, end in zip(starts, [*starts[1:], len(text)], strict=True):
        blanks = len(text[start:end]) - len(text[start:end].lstrip())
        solid.append(start + blanks)
    return SpelledText(tuple(range(len(starts))), solid, [], [])


def _starts(text: str, pieces: Sequence[str]) -> list[int] | None:
    """Where each piece starts; None if the pieces do not join to the text."""
    if pieces and pieces[0].startswith(" ") and not text.startswith(" "):
        pieces = [pieces[0][1:], *pieces[1:]]  # SentencePiece puts a space before the first word
    starts, at, broken = [], 0, False
    for piece in pieces:
        solid = piece.strip(_BROKEN)
        broken = broken or not solid or piece.startswith(_BROKEN)
        if solid:
            while broken and not text.startswith(solid, at) and _beyond_ascii(text, at):
                at += 1
            if not text.startswith(solid, at):
                return None
            broken = piece.endswith(_BROKEN)
        starts.append(at)
        at += len(solid)
    while broken and _beyond_ascii(text, at):
        at += 1
    return starts if at == len(text) else None


def _beyond_ascii(text: str, at: int) -> bool:
    return at < len(text) and not text[at].isascii()
