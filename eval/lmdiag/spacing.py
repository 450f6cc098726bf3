"""Where a space stands between two parts of a sentence: before a word at a blank, between regions.

docs/specification.md, section 2, "Spaces", has the rule in words.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Mapping
from typing import NamedTuple

from lmdiag.text import WITHOUT_SPACES

# marks that Chinese and Japanese share with other scripts
_SHARED = "\"'\u2018\u2019\u201c\u201d\u2026\u2014\u00b7"
_ENDS_UNSPACED = re.compile(rf"[{WITHOUT_SPACES}]\d*\Z").search
_ENDS_UNSPACED_OR_SHARED = re.compile(rf"[{WITHOUT_SPACES}]\d*[{_SHARED}]*\Z").search
_BEGINS_UNSPACED = re.compile(rf"[{_SHARED}]*\d*[{WITHOUT_SPACES}]|\d+\Z").match
_IS_UNSPACED = re.compile(f"[{WITHOUT_SPACES}]").match


class Apostrophes(NamedTuple):
    """Which words an apostrophe joins in a language.

    Attributes:
        elided: searches the end of a text for a word that is joined to the next one.
        clitic: matches the beginning of a text that is joined to the word before it.
        begins_words: whether a word may begin with an apostrophe after a space.
    """

    elided: Callable[[str], object]
    clitic: Callable[[str], object]
    begins_words: bool = False


def _ending_in(words: str) -> Callable[[str], object]:
    """Returns a function that finds one of some words, and an apostrophe, at the end of a text.

    It returns a match or None. `words` is a regular expression, e.g. "[a-z]" for `l'`.
    """
    return re.compile(rf"(?:\A|[\s(«“\"-])(?:{words})['’]\Z", re.IGNORECASE).search


def _beginning_with(parts: str) -> Callable[[str], object]:
    """Returns a function that finds one of some parts of words at the beginning of a text.

    It returns a match or None. `parts` is a regular expression, e.g. "['’](?:s|re)" for `'s`.
    """
    return re.compile(rf"(?:{parts})\b", re.IGNORECASE).match


_ENGLISH = "['’](?:s|re|ve|ll|d|m|t)|n['’]t"
_NO_WORD = "(?!)"
# Italian words that are cut off at their end, and stand apart from the next one
_CUT_OFF = "po|mo|be|di|fa|va|da|sta|to|ca"

LANGUAGES: Mapping[str, Apostrophes] = {
    # of no language in particular: what most texts have
    "": Apostrophes(_ending_in("[a-z]|[a-zà-ÿ]*qu|[a-z]*ll|un"), _beginning_with(_ENGLISH)),
    # porta'l, digue'ns
    "ca": Apostrophes(_ending_in("[a-z]"), _beginning_with("['’](?:ls?|ns?|m|t|s|hi|ho)")),
    "en": Apostrophes(_ending_in("[a-z]"), _beginning_with(_ENGLISH)),
    # lorsqu'il, aujourd'hui
    "fr": Apostrophes(
        _ending_in("[a-z]|[a-zà-ÿ]*qu|aujourd|entr|prud|grand"), _beginning_with(_NO_WORD)
    ),
    # dov'è, quest'anno, but un po' di
    "it": Apostrophes(_ending_in(f"(?!(?:{_CUT_OFF})['’])[a-zà-ÿ]+"), _beginning_with(_NO_WORD)),
    # Hij komt 's ochtends
    "nl": Apostrophes(_ending_in(_NO_WORD), _beginning_with(_NO_WORD), begins_words=True),
}
"""Code of a language -> its rule for apostrophes, see `--language`."""

# a mark that closes a quotation in some languages -> the mark that opens such a quotation
_OPENER = {"“": "„", "‘": "‚", "«": "»", "‹": "›", "»": "«", "›": "‹"}
_QUOTES = "\"'’”»›“‘«‹‟‛"
_SLASHES = "/\uff0f\u2044"
_OPENING = "¿¡`"
_WRITTEN_APART = "&@#*§¶†‡\\" + _OPENING  # punctuation that does not belong to the word before it

LONGEST_LOOK = 400
"""Characters before a place that decide about it, at most."""

_MOST_MARKS = 8
"""Quotation marks in a row, at most."""


def has_space(left: str, right: str, language: str = "") -> bool:
    """Returns whether a space stands between two parts of a sentence that are typed without it.

    There is none at the edge of a text or where a part has white space at its edge; after an
    opening bracket or quotation mark, a hyphen, a dash and a slash; before other punctuation;
    between characters of scripts without spaces; and after the full-width punctuation of these.
    The language, a key of `LANGUAGES`, decides about apostrophes.

    >>> has_space("He said", "yes"), has_space("He said “", "yes"), has_space("yes", ", he said")
    (True, False, False)
    >>> has_space("Hij komt", "'s ochtends"), has_space("Hij komt", "'s ochtends", "nl")
    (False, True)
    """
    apostrophes = LANGUAGES[language]
    left = left[-LONGEST_LOOK:]
    if not left or not right or left[-1].isspace() or right[0].isspace():
        return False
    if _joins_next(left, apostrophes) or _joins_previous(left, right, apostrophes):
        return False
    is_punctuation = unicodedata.category(left[-1])[0] == "P"
    if is_punctuation and _IS_UNSPACED(left[-1]):  # full-width: 。
        return False
    is_between_unspaced = _ENDS_UNSPACED_OR_SHARED(left) and _BEGINS_UNSPACED(right)
    return not is_between_unspaced


def is_without_space(left: str, right: str) -> bool:
    """Returns whether no space stands between two texts, one of a script without spaces.

    >>> is_without_space("我", "喜欢"), is_without_space("我喜欢", "。"), is_without_space("a", ".")
    (True, True, False)
    """
    is_unspaced = _IS_UNSPACED(left[-1:]) or _IS_UNSPACED(right)
    return bool(is_unspaced) and not has_space(left, right)


def ends_unspaced(text: str) -> bool:
    """Returns whether a text ends in a script without spaces, digits after it included.

    >>> ends_unspaced("我喜欢"), ends_unspaced("我有3"), ends_unspaced("我喜欢 the")
    (True, True, False)
    """
    return bool(_ENDS_UNSPACED(text[-LONGEST_LOOK:]))


def _joins_next(left: str, apostrophes: Apostrophes) -> bool:
    """Whether no space stands after a text because of its last character.

    That is the case after an opening bracket or quotation mark, a hyphen, a dash, a slash, and an
    elided word as "l'".
    """
    mark = left[-1]
    # l' joins the next word, but not where the mark may close a quotation, as in: the letter 'l'
    if mark in "'’" and apostrophes.elided(left) and not _has_open_quotation(left[:-1]):
        return True
    if mark in _QUOTES:
        return _opens_quotation(left[:-1], mark, apostrophes)
    # Unicode's categories of opening brackets, opening quotation marks, and dashes
    return mark in _SLASHES + _OPENING or unicodedata.category(mark) in ("Ps", "Pi", "Pd")


def _opens_quotation(before: str, mark: str, apostrophes: Apostrophes) -> bool:
    """Whether a quotation mark after a text opens a quotation.

    A straight mark opens one at the beginning of a text, after white space, and after a bracket or
    another mark that opens. The same mark opens a quotation in one language and closes it in
    another one: „Ja“ and “yes”, »ja« and «oui».

    Args:
        before: the text before the mark.
        mark: the quotation mark.
        apostrophes: of the language.
    """
    is_at_start = not before or before[-1].isspace()
    # before a mark may stand others, as in "'Yes"
    can_open = is_at_start or _joins_next(before[-_MOST_MARKS:], apostrophes)
    if mark in "»›":  # Unicode has them as closing marks: they open where an opening mark may stand
        return can_open and not _is_inside_quotation(before, mark)
    # “ opens a quotation also within a word, unless it closes „
    is_opening_mark = unicodedata.category(mark) == "Pi"
    return can_open or (is_opening_mark and not _is_inside_quotation(before, mark))


def _has_open_quotation(text: str) -> bool:
    """Whether a single quotation mark stands at the beginning of a word of a text."""
    return bool(re.search(r"(?:\A|[\s(])['‘]", text))


def _is_inside_quotation(text: str, mark: str) -> bool:
    """Whether a quotation that `mark` would close, as “ closes „, is open at the end of a text."""
    return mark in _OPENER and text.count(_OPENER[mark]) > text.count(mark)


def _joins_previous(left: str, right: str, apostrophes: Apostrophes) -> bool:
    """Whether no space stands between two texts because of how the right one begins.

    That is the case before a comma and similar punctuation, a closing quotation mark, and parts of
    words as "n't" and "'s".
    """
    mark = right[0]
    if mark.isalpha():  # the rest of a word: n't after "do"
        return left[-1].isalpha() and bool(apostrophes.clitic(right))
    category = unicodedata.category(mark)
    is_punctuation = category[0] == "P"
    is_opening_bracket = category == "Ps"
    if not is_punctuation or is_opening_bracket or mark in _WRITTEN_APART:
        return False
    is_before_word = right[1:2].isalnum()
    if mark in "“‘«‹‟‛":  # these open a quotation, and in some languages close one
        return not is_before_word and _is_inside_quotation(left, mark)
    if mark in "'’" and is_before_word and apostrophes.begins_words:  # Dutch 's ochtends
        return False
    if mark == "'":  # it closes a quotation, or begins a part of a word; else it opens a quotation
        return not is_before_word or bool(apostrophes.clitic(right))
    if mark == '"' and len(right) == 1:  # nothing follows: it closes a quotation that is open
        return left.count(mark) % 2 == 1
    if mark in '"”»›':  # before a word it opens a quotation
        return not is_before_word
    return True  # a comma, a full stop, a closing bracket and the like
