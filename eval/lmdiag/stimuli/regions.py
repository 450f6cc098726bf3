"""Parts of a sentence: its gap, its regions, its critical word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from lmdiag.stimuli.table import GAP, text_problem
from lmdiag.table_files import RawTable
from lmdiag.text import WITHOUT_SPACES, folded
from lmdiag.types import BadInput

is_region = re.compile(r"region_([1-9]\d{0,3})").fullmatch
"""Matches the name of a column of regions."""

_QUOTES = "\u2018\u2019\u201c\u201d\u2026\u2014\u00b7"
"""Marks that Chinese and Japanese share with other scripts."""

_JOINED_END = re.compile(rf"[{WITHOUT_SPACES}]\d*[{_QUOTES}]*\Z")
_JOINED_START = re.compile(rf"[{_QUOTES}]*[{WITHOUT_SPACES}]")

SENTENCE_ENDS = ".!?…。！？\"'”’)"
"""Characters at the end of a whole sentence."""

_FOLLOWING = ("spill_1", "spill_2")
"""Names of the words after the critical one."""


_CONTINUATION = re.compile(
    r"(target|critical|crit|final|last)word|word|target|completion|continuation|ending"
).fullmatch


def continues_fragments(name: str) -> bool:
    """Returns whether a column with this name may have the word after a fragment."""
    return bool(_CONTINUATION(folded(name)))


def refuse_fragments(table: RawTable) -> None:
    """Refuses a column of sentences that the word of another column continues.

    That is where no sentence ends in punctuation, and none has the word in it. A user who wants
    them as they are names the column.
    """
    texts = table.columns.get("sentence", ())
    names = [*filter(continues_fragments, table.columns)]
    if not names or not texts or "sentence" in table.chosen:
        return
    words = table.columns[names[0]]
    for text, word in zip(texts, words, strict=True):
        is_word = isinstance(word, str) and isinstance(text, str) and word.strip()
        if not is_word or text.rstrip()[-1:] in SENTENCE_ENDS or word.strip() in text:
            return
    what = f"no sentence has an end or the word in {names[0]}: the word seems to continue it"
    remedy = f"give --columns context=sentence target={names[0]}"
    other = "or, to score them as sentences, --columns sentence=sentence"
    raise BadInput(f"{table.name}: {what}: {remedy}, {other}")


# ---- gaps ----------------------------------------------------------------------------------------


def without_gaps(table: RawTable, gap: str) -> RawTable:
    """Returns sentences with a gap beside a column target as a context and a right context.

    `BadInput` if only some of the sentences have one, or one has several.
    """
    sentences = table.columns.get("sentence", ())
    if gap and "target" not in table.columns:
        remedy = "give the word that is scored there in a column target"
        raise BadInput(f"{table.name}: --gap {gap}: {remedy}")
    if "target" not in table.columns or ("context" in table.columns and not gap):
        return table
    pattern = re.compile(re.escape(gap) if gap else GAP, 0 if gap else re.IGNORECASE)
    found = [[*pattern.finditer(x)] if isinstance(x, str) else [] for x in sentences]
    if not any(found):
        if gap:
            raise BadInput(f"{table.name}: --gap {gap}: no sentence has it")
        return table
    for row, gaps in enumerate(found):
        if len(gaps) != 1:
            n = f"{len(gaps)} gaps" if gaps else "no gap, as other rows have"
            raise table.error(
                row, f"the column sentence has {n}: mark the place of the target once"
            )
    parts = [(text, match) for text, (match,) in zip(sentences, found, strict=True)]
    columns = {name: x for name, x in table.columns.items() if name != "sentence"}
    columns["context"] = [text[: match.start()].rstrip() for text, match in parts]
    columns["right_context"] = [text[match.end() :].strip() for text, match in parts]
    marks = ", ".join(dict.fromkeys(match[0] for _, match in parts))
    note = f"gap: {marks} in the sentence is the place of the target, context is what precedes it"
    return replace(table, columns=columns).noting(note)


# ---- regions -------------------------------------------------------------------------------------


def joined(
    regions: Iterable[tuple[int, str]], names: Mapping[str, str], place: str
) -> tuple[str, list[dict[str, Any]]]:
    """Returns the sentence of some regions, and each region with its position in it.

    Contents are stripped, empty ones left out, and the others joined by a blank, except between two
    characters of scripts without spaces, and before punctuation that belongs to what precedes it: a
    comma does, an opening bracket or quotation mark (categories Ps and Pi of Unicode) does not.
    Names are by number, as text.
    """
    text = ""
    spans = []
    for number, content in regions:
        content = content.strip()
        category = unicodedata.category(content[0]) if content else "P"
        is_word = not category.startswith("P") or category in ("Ps", "Pi")
        if text and is_word and not (_JOINED_END.search(text) and _JOINED_START.match(content)):
            text += " "
        start = len(text)
        text = text + content
        name = names.get(str(number), "")
        spans.append({"number": number, "name": name, "start": start, "end": len(text)})
    if not text:
        raise BadInput(f"{place}: regions do not join to a sentence: all are empty")
    if problem := text_problem("sentence", text):
        raise BadInput(f"{place}: content {problem}")
    return text, spans


def with_regions(table: RawTable, separator: str) -> RawTable:
    """Returns sentences of the columns `region_1`, ..., or of parts between separators.

    Args:
        separator: "" for a bar. Sentences without one stay as they are.
    """
    numbers = {int(match[1]): match[0] for match in map(is_region, table.columns) if match}
    columns = {name: v for name, v in table.columns.items() if name not in numbers.values()}
    rows: list[list[tuple[int, Any]]]
    if numbers:
        if "sentence" in columns:
            both = f"the columns sentence and {numbers[min(numbers)]} are both there"
            remedy = "leave sentence out, which is made of the regions"
            raise BadInput(f"{table.name}: {both}: {remedy}")
        if separator:
            problem = f"--separator {separator}: the regions have columns of their own"
            raise BadInput(f"{table.name}: {problem}: leave it out")
        contents = zip(*(table.columns[numbers[n]] for n in sorted(numbers)), strict=True)
        rows = [list(zip(sorted(numbers), row, strict=True)) for row in contents]
    elif any((separator or "|") in str(text) for text in columns["sentence"]):
        texts = columns["sentence"]
        if None in texts:
            raise table.error(texts.index(None), "the column sentence is empty: write a sentence")
        rows = [list(enumerate(str(text).split(separator or "|"), start=1)) for text in texts]
    elif separator:
        raise BadInput(f"{table.name}: --separator {separator}: no sentence has it")
    else:
        _refuse_separators(table)
        return table
    if separator and not numbers:
        _refuse_separators(table, separator)
    if "regions" in columns:
        raise BadInput(f"{table.name}: the column regions is made of the regions: rename it")
    sentences = []
    spans = []
    for row, regions in enumerate(rows):
        for number, content in regions:
            if content is None:
                remedy = "write its words, or an empty text where the sentence has none there"
                raise table.error(row, f"the column region_{number} is NA or NaN: {remedy}")
            if not isinstance(content, str):
                raise table.error(row, f"a region must be text, not {content!r:.60}")
        text, spans_of_row = joined(regions, {}, table.where(row))
        sentences.append(text)
        spans.append(spans_of_row)
    return replace(table, columns=columns | {"sentence": sentences, "regions": spans})


def _refuse_separators(table: RawTable, separator: str = "|") -> None:
    """Refuses sentences whose words or regions are separated by other characters than that."""
    texts = [x.strip() for x in table.columns["sentence"] if isinstance(x, str)]
    texts = [re.sub(GAP, " ", text, flags=re.IGNORECASE).strip() for text in texts]
    for mark in "*/_".replace(separator, "") if len(texts) > 1 else "":
        if all(re.search(rf"[^\s{re.escape(mark)}]\s*{re.escape(mark)}\s*\S", x) for x in texts):
            what = f"{mark} stands between words in every sentence, and would be read as text"
            remedy = f"give --separator '{mark}' if it divides regions, or write blanks"
            raise BadInput(f"{table.name}: the column sentence: {what}: {remedy}")


# ---- the critical word ---------------------------------------------------------------------------


def with_critical(table: RawTable, named: str) -> RawTable:
    """Returns sentences with the region `critical`, and `spill_1` and `spill_2` after it.

    Args:
        named: column with its position among the words, from 1, or with the word itself.

    Raises:
        BadInput: a position beyond the sentence, a word that is not in it or several times.
    """
    if not named:
        return table
    column = table.column_of(named, "--critical")
    if "regions" in table.columns:
        raise BadInput(
            f"{table.name}: --critical: the sentences have regions: name one by --region"
        )
    regions = []
    pairs = zip(table.columns["sentence"], table.columns[column], strict=True)
    for row, (text, value) in enumerate(pairs):
        text = text.strip() if isinstance(text, str) else ""
        try:
            start, end = critical_span(text, value)
        except ValueError as error:
            raise table.error(row, f"--critical: the column {column}: {error}") from None
        following = [match.span() for match in _words_of(text) if match.start() >= end]
        spans = [(start, end), *following[: len(_FOLLOWING)]]
        of_row = enumerate(zip(("critical", *_FOLLOWING), spans, strict=False), start=1)
        regions.append(
            [
                {"number": number, "name": name, "start": span[0], "end": span[1]}
                for number, (name, span) in of_row
            ]
        )
    note = f"critical: {column} is the region critical; {' and '.join(_FOLLOWING)} follow it"
    return replace(table, columns={**table.columns, "regions": regions}).noting(note)


def critical_span(text: str, value: object) -> tuple[int, int]:
    """Returns start and end of a critical word in a sentence, in characters.

    Args:
        value: its position among the words, from 1, or the word.

    Raises:
        ValueError: there is no such word, or several.
    """
    named = str(value if value is not None else "").strip().removesuffix(".0")
    words = [match.span() for match in _words_of(text)]
    if not named:
        raise ValueError("is empty: name the word or its position")
    if named.isdecimal():
        if not 1 <= int(named) <= len(words):
            raise ValueError(f"position {named} is not between 1 and {len(words)}, the last word")
        return words[int(named) - 1]
    is_joined = re.search(f"[{WITHOUT_SPACES}]", named)
    pattern = re.escape(named) if is_joined else rf"(?<!\w){re.escape(named)}(?!\w)"
    found = [*re.finditer(pattern, text)] or [*re.finditer(pattern, text, re.IGNORECASE)]
    if len(found) != 1:
        times = f"is {len(found)} times" if found else "is not"
        raise ValueError(f"{named!r} {times} in the sentence: give its position, from 1")
    start, end = found[0].span()
    if is_joined:
        return start, end
    inside = [span for span in words if span[1] > start and span[0] < end]
    return inside[0][0], inside[-1][1]


def _words_of(text: str) -> Iterator[re.Match[str]]:
    return re.finditer(r"\S+", text)
