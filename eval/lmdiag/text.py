"""Text that others wrote, made safe to show in a terminal, on a page and in a file name."""

from __future__ import annotations

import difflib
import hashlib
import math
import re
import reprlib
import unicodedata
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from decimal import ROUND_HALF_UP, Decimal
from functools import cache
from itertools import pairwise
from typing import Any, NamedTuple

# Unicode categories of invisible characters: controls, direction marks, surrogates, unassigned.
_HIDDEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")
_SPELLED_OUT = re.compile("⟨U\\+([0-9A-F]{4,6})⟩")
_JOINERS = "\u200c\u200d"  # formatting characters that the spelling of some scripts needs
_FORMULA = tuple("=+-@＝＋－＠")  # a spreadsheet takes them for the start of a formula
_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?", re.ASCII)

names_options: ContextVar[bool] = ContextVar("names_options", default=False)
"""Whether a command runs, whose messages name options; those of the Python API name parameters."""


@contextmanager
def options_as_typed() -> Iterator[None]:
    """Within the block, messages name options as a command line has them: `--unit word`.

    Outside of it they name parameters of functions: `unit='word'`.
    """
    token = names_options.set(True)
    try:
        yield
    finally:
        names_options.reset(token)


WITHOUT_SPACES = (
    r"\u0e00-\u0fff"  # Thai, Lao, Tibetan
    r"\u1000-\u109f\ua9e0-\ua9ff\uaa60-\uaa7f"  # Burmese
    r"\u1780-\u17ff\u19e0-\u19ff"  # Khmer
    r"\u1950-\u19df\u1a20-\u1aaf\ua980-\ua9df\u1b00-\u1b7f"  # Tai, Javanese, Balinese
    # Chinese, Japanese, Yi; not their enclosed Hangul letters and squared Latin ones
    r"\u2e80-\u2fff\u3001-\u302d\u3030-\u312f\u3190-\u31ff\u3220-\u325f\u3280-\u32cb\u32d0-\u3370"
    r"\u337b-\u337f\u33e0-\u33fe\u3400-\u4dbf\u4e00-\ua4cf\uf900-\ufaff\ufe30-\ufe4f"
    # full-width signs, not digits and Latin letters; half-width kana
    r"\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff9f"
    r"\U0001b000-\U0001b16f\U00020000-\U0003ffff"
)
"""Characters of scripts that write no spaces between words, with their punctuation, for a regex."""


def visible(text: str) -> str:
    """Returns the text with every invisible character spelled out.

    The result cannot control a terminal, and cannot change the order in which a page shows text.

    >>> visible("a\u202eb")
    'a⟨U+202E⟩b'
    """
    if text.isprintable():  # quick; a text with a character of a hidden category is not printable
        return text
    shown = []
    for character in text:
        is_hidden = unicodedata.category(character) in _HIDDEN and character not in _JOINERS
        shown.append(f"⟨U+{ord(character):04X}⟩" if is_hidden else character)
    return "".join(shown)


UNDEFINED = "–"
"""Stands for a figure that is not defined."""


def decimals(value: float | None, digits: int = 2) -> str:
    """Returns a number with so many decimals and a typographic minus; None and NaN as `UNDEFINED`.

    A tie is rounded away from zero, as in charts: Python's format would not.

    >>> decimals(-0.925), decimals(-0.001), decimals(None)
    ('−0.93', '0.00', '–')
    """
    if value is None or math.isnan(value):
        return UNDEFINED
    text = f"{value:.{digits}f}"
    if abs(value) < 1e15:  # not beyond the digits of a float
        last_digit = Decimal(1).scaleb(-digits)
        text = str(Decimal(value).quantize(last_digit, ROUND_HALF_UP))
    is_zero = not text.strip("-0.")  # zero has no sign
    return text.lstrip("-") if is_zero else text.replace("-", "−")


def change_texts(value: Any, change: Callable[[str], str]) -> Any:
    """Returns a JSON value in which `change` is applied to every text, keys of objects included.

    >>> change_texts({"a": ["b", 1]}, str.upper)
    {'A': ['B', 1]}
    """
    if isinstance(value, str):
        return change(value)
    if isinstance(value, dict):
        return {change(str(key)): change_texts(item, change) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [change_texts(item, change) for item in value]
    return value


def in_order(texts: Iterable[str]) -> tuple[str, ...]:
    """Returns texts in alphabetical order, whatever their case and accents; numbers by size.

    >>> in_order(["b", "A", "é", "f"]), in_order(["10", "9"])
    (('A', 'b', 'é', 'f'), ('9', '10'))
    """

    def key(text: str) -> tuple[str, str]:
        """Returns the letters without accents, then the text, to order "resume" and "résumé"."""
        letters = unicodedata.normalize("NFKD", text).casefold()
        plain = "".join(letter for letter in letters if not unicodedata.combining(letter))
        return plain, text.swapcase()  # of two spellings, lower case first, as in R's locales

    ordered = sorted(texts, key=key)
    try:
        return tuple(sorted(ordered, key=float))
    except ValueError:  # some are not numbers
        return tuple(ordered)


def csv_cell(value: Any) -> Any:
    """Returns a value that no spreadsheet takes for a formula.

    A text that begins with `=`, `+`, `-` or `@` gets an apostrophe in front, unless it is a number;
    so does one that has apostrophes there already, since `from_csv_cell` takes one away.

    >>> csv_cell("=1+1"), csv_cell("-0.5"), csv_cell(-0.5)
    ("'=1+1", '-0.5', -0.5)
    """
    if not isinstance(value, str) or _NUMBER.fullmatch(value):
        return value
    content = value.lstrip().lstrip("'")
    return f"'{value}" if content.startswith(_FORMULA) else value


def from_csv_cell(text: str) -> str:
    """Returns the text of a cell that `csv_cell` and `visible` wrote.

    >>> from_csv_cell(csv_cell("=1+1")), from_csv_cell(visible("a\\nb")), from_csv_cell("-0.5")
    ('=1+1', 'a\\nb', '-0.5')
    """
    has_added_apostrophe = text.startswith("'") and csv_cell(text[1:]) == text
    if has_added_apostrophe:
        text = text[1:]
    return _SPELLED_OUT.sub(lambda match: chr(int(match[1], 16)), text)


def date_text(value: Any) -> str:
    """Returns a date or a time as text (ISO 8601); of midnight, as Excel stores dates, the date.

    >>> from datetime import datetime
    >>> date_text(datetime(2026, 1, 2)), date_text(datetime(2026, 1, 2, 9, 30))
    ('2026-01-02', '2026-01-02T09:30:00')
    """
    return str(value.isoformat()).removesuffix("T00:00:00")


def shortened(text: object, most: int = 100) -> str:
    """Returns the text on one line of at most `most` characters, all of them visible.

    >>> shortened("a  long\\ntext", 8)
    'a long …'
    """
    beginning = str(text)[: 2 * most]  # a text may be very long
    one_line = " ".join(beginning.split())
    return truncated(visible(one_line), most)  # `visible` makes a text longer


def truncated(text: str, most: int = 60) -> str:
    """Returns the text, or its first characters and an ellipsis if it has more than `most`.

    >>> truncated("abcdef", 4)
    'abc…'
    """
    return text if len(text) <= most else f"{text[: most - 1]}…"


def first_few(names: Sequence[str], most: int = 3) -> str:
    """Returns the first names, and the number of the others.

    >>> first_few(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    text = ", ".join(names[:most])
    return text if len(names) <= most else f"{text} and {len(names) - most} more"


MOST_NAMED = 3
"""Figures or models that a sentence names, if there are more."""


def listing(texts: Sequence[str]) -> str:
    """Returns texts as a list in a sentence.

    >>> listing(["a", "b", "c"])
    'a, b and c'
    """
    *all_but_last, last = texts
    return f"{', '.join(all_but_last)} and {last}" if all_but_last else last


def listing_of_first(names: Sequence[str]) -> str:
    """Returns a few names as a list in a sentence, and how many more there are; "" without any.

    >>> listing_of_first(["a", "b", "c", "d", "e"])
    'a, b, c and 2 more'
    """
    if not names:
        return ""
    texts = [visible(name) for name in names[:MOST_NAMED]]
    n_more = len(names) - MOST_NAMED
    if n_more > 0:
        texts.append(f"{n_more} more")
    return listing(texts)


_SHORT_WORD = 6
"""Letters of words; fewer without a vowel are an abbreviation, as `rt` or `ffd`."""


def capital(text: str) -> str:
    """Returns a text with the capital of a sentence; an abbreviation in front all in capitals.

    >>> capital("surprisal of rt"), capital("rt by word")
    ('Surprisal of rt', 'RT by word')
    """
    word, space, rest = text.partition(" ")
    has_vowel = any(letter in "aeiouy" for letter in word.lower())
    if word.isalpha() and len(word) < _SHORT_WORD and not has_vowel:
        return word.upper() + space + rest
    return text[:1].upper() + text[1:]


def describe_shared_tokens(words: Sequence[str]) -> str:
    """Returns how many words have no token of their own, and the first few of them.

    Each is given after the word before it, whose last token covers both.

    >>> describe_shared_tokens(["is a", "of the", "is a"])
    '3 words that begin in a token of the word before (is a, of the)'
    """
    count = "1 word that begins" if len(words) == 1 else f"{len(words):,} words that begin"
    distinct_words = list(dict.fromkeys(words))
    return f"{count} in a token of the word before ({first_few(distinct_words)})"


def file_name(name: str, identity: str) -> str:
    """Returns a name for a file that is readable and differs for each identity.

    It begins with the letters and digits of `name`; a digest of `identity` follows.

    >>> file_name("openai-community/gpt2", "commit 607a30d")[:22]
    'openai-community-gpt2-'
    """
    readable = re.sub(r"[^A-Za-z0-9]+", "-", name)[:60].strip("-").lower() or "model"
    digest = hashlib.sha256(identity.encode("utf-8", "replace")).hexdigest()
    return f"{readable}-{digest[:10]}"


DATA_SUFFIX = "_data"
"""End of the name of a column of the data whose own name means something else in a table."""

_FINAL = re.compile(r"[\s.,;:!?…。，、；：！？]+\Z")


def plain_response(text: str) -> str:
    """Returns a response in Unicode's form C, without white space around it and final punctuation.

    >>> plain_response(" wooden spoon. "), plain_response("cafe\u0301") == "café"
    ('wooden spoon', True)
    """
    return unicodedata.normalize("NFC", _FINAL.sub("", text.strip()))


def is_decomposed(text: str) -> bool:
    """Returns whether a text has a letter and a mark that Unicode's form C writes as one character.

    >>> is_decomposed("cafe\u0301"), is_decomposed("café"), is_decomposed("cafe")
    (True, False, False)
    """
    return not unicodedata.is_normalized("NFC", text)


def decomposed(text: str) -> tuple[str, list[int]]:
    """Returns a text in Unicode's form D, and the position of each of its characters in `text`.

    Marks have the position -1. The last position, that of the end, is the length of `text`.

    >>> decomposed("né") == ("ne\u0301", [0, 1, -1, 2])
    True
    """
    is_mark = [n > 0 and unicodedata.combining(character) > 0 for n, character in enumerate(text)]
    starts = [n for n in range(len(text)) if not is_mark[n]]
    letters = list[str]()
    positions = list[int]()
    for start, end in pairwise([*starts, len(text)]):  # a letter and the marks after it
        letter = unicodedata.normalize("NFD", text[start:end])
        letters.append(letter)
        positions += [start] + [-1] * (len(letter) - 1)
    return "".join(letters), [*positions, len(text)]


def is_composed(text: str) -> bool:
    """Returns whether all accented letters of a text are single characters, and it has some.

    >>> is_composed("cafe\u0301"), is_composed("café"), is_composed("cafe")
    (False, True, False)
    """
    return not is_decomposed(text) and not unicodedata.is_normalized("NFD", text)


_BYTES = {chr(n): n for n in range(0x80, 0x100)}  # as Latin-1, and below as Windows-1252
_BYTES |= {bytes([n]).decode("cp1252", "ignore") or chr(n): n for n in _BYTES.values()}
_CONTINUING = "".join(character for character, n in _BYTES.items() if n < 0xC0)
# a letter of Latin, Greek or Cyrillic in UTF-8, or a character of three bytes, read as Windows-1252
_MISREAD = re.compile(f"[ÂÃÄÅÎÏÐÑ][{_CONTINUING}]|[à-ï][{_CONTINUING}]{{2}}").search
_CLOSING = tuple("”“’…–—")  # which are continuing bytes, and end a word in capitals: PÅ”


def misread_word(text: str) -> tuple[str, str]:
    """Returns the first word that is UTF-8 read as Windows-1252, and what it was.

    Without such a word, "" and "".

    >>> misread_word("Der bÃ¤cker kam."), misread_word("Der Bäcker kam.")
    (('bÃ¤cker', 'bäcker'), ('', ''))
    """
    if text.isascii() or not _MISREAD(text):
        return "", ""
    for word in text.split():
        match = _MISREAD(word)
        if not match or (word.isupper() and word.endswith(_CLOSING)):
            continue
        content = bytearray()  # the bytes that were read as this word
        for character in word:
            byte = _BYTES.get(character, ord(character))
            content += bytes([byte]) if byte < 0x100 else character.encode()
        try:
            original = content.decode()
        except UnicodeDecodeError:  # the word was not UTF-8
            continue
        # the text é”… may be meant as it is, although it is one Chinese character in UTF-8
        is_unlikely_text = match[0][0] in "ÂÃÄÅÎÏÐÑâ"
        n_not_ascii = sum(not character.isascii() for character in original)
        if is_unlikely_text or n_not_ascii > 1:
            return word, original
    return "", ""


def folded(name: str) -> str:
    """Returns a name without letter case, zeros before numbers, white space and punctuation.

    Two names of columns count as spellings of one name if they are equal in this form.

    >>> folded("Region_01"), folded("right.context"), folded("Sa\u0308tze") == folded("Sätze")
    ('region1', 'rightcontext', True)
    """
    composed = name if name.isascii() else unicodedata.normalize("NFC", name)
    letters_and_digits = re.sub(r"[\W_]+", "", composed.casefold())
    return re.sub(r"(?<!\d)0+(?=\d)", "", letters_and_digits)


def column_like(name: str, columns: Iterable[str]) -> str:
    """Returns the one column that a name is a spelling of, see `folded`.

    If there is no such column, or several, it is the name itself. A column whose name means
    something else in a table has `_data` at its end there.

    >>> column_like("Condition", ["item", "condition"]), column_like("list", ["item"])
    ('condition', 'list')
    >>> column_like("context", ["sentence", "context_data"])
    'context_data'
    """
    names = [*columns]
    if name in names:
        return name
    for key in (folded(name), folded(f"{name}{DATA_SUFFIX}")):
        matches = [column for column in names if folded(column) == key]
        if len(matches) == 1:
            return matches[0]
    return name


def without_copies(columns: Iterable[object]) -> list[str]:
    """Returns the names of columns as the user spells them.

    Left out are the copies in lower case that the reader of tables adds, as `item` of `Item`.

    >>> without_copies(["item", "Item", "subject", "RT"])
    ['Item', 'subject', 'RT']
    """
    names = [*map(str, columns)]
    copies = {name.lower() for name in names if name != name.lower()}
    return [name for name in names if name not in copies]


def backticks_hint(formula: str, columns: Iterable[object]) -> str:
    """Returns the advice to write a column of several words between backticks in a formula.

    "" if the formula has no such column outside of backticks.

    >>> backticks_hint("RT ~ Critical verb", ["RT", "Critical verb"])
    '; write `Critical verb` between backticks'
    """
    without_quoted_names = re.sub(r"`[^`]*`", "", formula)
    names_in_formula = [str(name) for name in columns if str(name) in without_quoted_names]
    names_of_words = [name for name in names_in_formula if re.search(r"\W", name)]
    if not names_of_words:
        return ""
    return f"; write `{max(names_of_words, key=len)}` between backticks"


_MOST_CHOICES = 2000
"""Choices that a name is compared with: the comparison of more takes seconds."""


def suggest(name: str, choices: Iterable[str]) -> str:
    """Returns ` (did you mean 'x'?)` for the choice closest to a name; "" if none is close.

    >>> suggest("WROD", ["token", "word"]), suggest("anything", ["token", "word"])
    (" (did you mean 'word'?)", '')
    """
    choice = closest(name, choices)
    return f" (did you mean {choice!r}?)" if choice else ""


def closest(name: str, choices: Iterable[str]) -> str:
    """Returns the choice closest to a name; "" if none is close.

    Letter case is ignored. Of more than `_MOST_CHOICES`, the first ones of the alphabet are
    compared.

    >>> closest("WROD", ["token", "word"])
    'word'
    """
    first_choices = sorted(set(choices))[:_MOST_CHOICES]
    # reversed: of choices that differ in letter case alone, the first one stays
    choice_of_lower = {choice.lower(): choice for choice in reversed(first_choices)}
    matches = difflib.get_close_matches(name.lower(), choice_of_lower, n=1)
    return choice_of_lower[matches[0]] if matches else ""


@cache
def type_adapter(kind: Any) -> Any:
    """Returns pydantic's `TypeAdapter` of a type; it is made once, since this takes long."""
    from pydantic import TypeAdapter

    return TypeAdapter(kind)


class ValidationProblem(NamedTuple):
    """What pydantic found wrong with a document.

    Attributes:
        location: names of fields and positions in lists, from outside in.
        kind: pydantic's name of the problem, e.g. `missing`.
        message: what is wrong, e.g. `input should be a valid string`.
        given: the value, shortened.
    """

    location: tuple[str | int, ...]
    kind: str
    message: str
    given: str

    def path(self, start: int = 0) -> str:
        """Returns the location as text, without its first `start` parts.

        The location ("models", 0, "id") is "models[0].id".
        """
        text = ""
        for part in self.location[start:]:
            text += f"[{part}]" if isinstance(part, int) else f".{part}"
        return text.removeprefix(".")

    def __str__(self) -> str:
        """Returns location and message, e.g. `models[0].id: field required`."""
        return f"{self.path() or 'the document'}: {self.message}"


def first_problem(error: Any) -> ValidationProblem:
    """Returns the first problem of a pydantic `ValidationError`."""
    problem = error.errors(include_url=False, include_context=False)[0]
    message = problem["msg"][:1].lower() + problem["msg"][1:]
    value = problem["input"]
    is_text = isinstance(value, str | bytes)
    # a text may be very long: it is cut before it is quoted, and after
    given = repr(value[:60])[:60] if is_text else reprlib.repr(value)
    return ValidationProblem(problem["loc"], problem["type"], message, given)
