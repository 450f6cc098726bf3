"""What marks the place of a word, markup, and the end of a sentence in texts."""

import re

from lmdiag.text import WITHOUT_SPACES

GAP = (
    r"_{3,}|(?<!\w)__(?!\w)|\[(?:BLANK|MASK)\]|<(?:blank|mask|extra_id_0)>|\{\}|(?-i:\bX{4,}\b)"
    r"|(?-i:\$[A-Z][A-Z_]{2,}\b)"
)
"""How the place of a word is often marked, without regard to letter case. Two underscores may be
part of a name."""

MARKUP = (
    r"</?(?!(?:mask|blank|unk)\b)[a-z][a-z0-9]*(?:\s[^<>]{0,200})?/?>|\\[a-z]+\{"
    r"|&(?:[a-z]{2,8}|#\d{1,6});"
)
"""HTML's tags and characters by name, LaTeX's commands, and marks of where texts begin and end, as
<eos>, without regard to letter case. Words that are called <unk> are not markup."""

_LETTER = rf"[^\W{WITHOUT_SPACES}]"
SINGLE_GAP = rf"(?<!{_LETTER})_(?!{_LETTER})"
"""One underscore by itself, which marks the place of a word where every text has it once. It may
touch characters of scripts without blanks."""

_CLOSING = "\"'”’»)"
_END_MARKS = ".!?。！？।॥۔؟።፧։།။៕"
_has_opening_quote = re.compile(r"(?<!\w)['‘’]").search
SENTENCE_ENDS = f"{_END_MARKS}…{_CLOSING}"
"""Characters at the end of a whole sentence."""


def is_ended(text: str) -> bool:
    """Returns whether a text ends as sentences do, and not in an ellipsis or a possessive.

    >>> is_ended("He ran. "), is_ended("He ran ..."), is_ended("He ran"), is_ended("the boys'")
    (True, False, False, False)
    """
    text = text.rstrip()
    if text[-1:] not in SENTENCE_ENDS or ends_open(text):
        return False
    # an apostrophe behind a letter closes a quotation only if one was opened before it
    ends_in_apostrophe = text[-1:] in ("'", "’") and text[-2:-1].isalpha()
    is_possessive = ends_in_apostrophe and not _has_opening_quote(text[:-1])
    return not is_possessive


def has_end_mark(word: str) -> bool:
    """Returns whether a word has the mark that ends a sentence behind it.

    >>> has_end_mark("ran."), has_end_mark("(ran)")
    (True, False)
    """
    plain = word.rstrip(_CLOSING)
    return plain != "" and plain[-1] in _END_MARKS


def ends_open(text: str) -> bool:
    """Returns whether a text ends in an ellipsis, where something is left out.

    >>> ends_open("He ran ..."), ends_open("He ran.")
    (True, False)
    """
    return text.rstrip().endswith(("...", "…"))
