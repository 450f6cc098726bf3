"""Parts of a sentence: its gap, its regions, its critical word."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Mapping
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

_CRITICAL = ("critical", "spill_1", "spill_2")
"""Names of the critical word and the words after it."""

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
    name = next(filter(continues_fragments, table.columns), None)
    if name is None or not texts or "sentence" in table.chosen:
        return
    for text, word in zip(texts, table.columns[name], strict=True):
        is_word = isinstance(word, str) and isinstance(text, str) and word.strip()
        if not is_word or text.rstrip()[-1:] in SENTENCE_ENDS or word.strip() in text:
            return
    what = f"no sentence has an end or the word in {name}: the word seems to continue it"
    remedy = f"give --columns context=sentence target={name}"
    other = "or, to score them as sentences, --columns sentence=sentence"
    raise BadInput(f"{table.name}: {what}: {remedy}, {other}")


# ---- gaps ----------------------------------------------------------------------------------------


def without_gaps(table: RawTable, gap: str) -> RawTable:
    """Returns sentences with a gap beside a column target as a context and a right context.

    `BadInput` if only some of the sentences have one, or one has several.
    """
    if gap and "target" not in table.columns:
        remedy = "give the word that is scored there in a column target"
        raise BadInput(f"{table.name}: --gap {gap}: {remedy}")
    if "target" not in table.columns or ("context" in table.columns and not gap):
        return table
    pattern = re.compile(re.escape(gap) if gap else GAP, 0 if gap else re.IGNORECASE)
    texts = [text if isinstance(text, str) else "" for text in table.columns.get("sentence", ())]
    gaps = [[*pattern.finditer(text)] for text in texts]
    if gap and not any(gaps):
        raise BadInput(f"{table.name}: --gap {gap}: no sentence has it")
    if not any(gaps):
        return table
    sizes = {row: len(of_row) for row, of_row in enumerate(gaps) if len(of_row) != 1}
    has = {row: f"{n} gaps" if n else "no gap, as other rows have" for row, n in sizes.items()}
    rule = "mark the place of the target once"
    table.refuse({row: f"the column sentence has {text}: {rule}" for row, text in has.items()})
    matches = [match for (match,) in gaps]
    columns = {name: x for name, x in table.columns.items() if name != "sentence"}
    columns["context"] = [match.string[: match.start()].rstrip() for match in matches]
    columns["right_context"] = [match.string[match.end() :].strip() for match in matches]
    marks = ", ".join(dict.fromkeys(match[0] for match in matches))
    note = f"gap: {marks} in the sentence is the place of the target, context is what precedes it"
    return table.having(columns, note)


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
        spans.append(_region(number, names.get(str(number), ""), start, len(text)))
    if not text:
        raise BadInput(f"{place}: regions do not join to a sentence: all are empty")
    if problem := text_problem("sentence", text):
        raise BadInput(f"{place}: content {problem}")
    return text, spans


def _region(number: int, name: str, start: int, end: int) -> dict[str, Any]:
    return {"number": number, "name": name, "start": start, "end": end}


def with_regions(table: RawTable, separator: str) -> RawTable:
    """Returns sentences of the columns `region_1`, ..., or of parts between separators.

    Args:
        separator: "" for a bar. Sentences without one stay as they are.
    """
    mark = separator or "|"
    numbers = sorted(int(match[1]) for match in map(is_region, table.columns) if match)
    names = [f"region_{number}" for number in numbers]
    texts = table.columns.get("sentence", ())
    is_divided = any(mark in str(text) for text in texts)
    problem = ""
    if numbers and "sentence" in table.columns:
        remedy = "leave sentence out, which is made of the regions"
        problem = f"the columns sentence and {names[0]} are both there: {remedy}"
    elif numbers and separator:
        problem = f"--separator {separator}: the regions have columns of their own: leave it out"
    elif separator and not is_divided:
        problem = f"--separator {separator}: no sentence has it"
    elif "regions" in table.columns and (numbers or is_divided):
        problem = "the column regions is made of the regions: rename it"
    elif separator or not (numbers or is_divided):
        problem = _other_separator(texts, mark)
    if problem:
        raise BadInput(f"{table.name}: {problem}")
    if numbers:
        contents = zip(*(table.columns[name] for name in names), strict=True)
        rows = [[*zip(numbers, row, strict=True)] for row in contents]
    elif is_divided:
        parts = (text.split(mark) if isinstance(text, str) else [text] for text in texts)
        rows = [[*enumerate(row, start=1)] for row in parts]
    else:
        return table
    sentences = []
    spans = []
    for row, regions in enumerate(rows):
        for number, content in regions:
            if content is None:
                column = f"region_{number}" if numbers else "sentence"
                remedy = "write its words, or an empty text where the sentence has none there"
                raise table.error(row, f"the column {column} is NA or NaN: {remedy}")
            if not isinstance(content, str):
                raise table.error(row, f"a region must be text, not {content!r:.60}")
        text, spans_of_row = joined(regions, {}, table.where(row))
        sentences.append(text)
        spans.append(spans_of_row)
    columns = {name: x for name, x in table.columns.items() if name not in names}
    return table.having(columns | {"sentence": sentences, "regions": spans})


def _other_separator(sentences: Iterable[Any], separator: str) -> str:
    """What is wrong with sentences whose words or regions other characters separate; "" if none."""
    texts = [x for x in sentences if isinstance(x, str)]
    texts = [re.sub(GAP, " ", text, flags=re.IGNORECASE).strip() for text in texts]
    for mark in "*/_^@#~\\".replace(separator, "") if len(texts) > 1 else "":
        if all(re.search(rf"[^\s{re.escape(mark)}]\s*{re.escape(mark)}\s*\S", x) for x in texts):
            what = f"{mark} stands between words in every sentence, and would be read as text"
            remedy = f"give --separator '{mark}' if it divides regions, or write blanks"
            return f"the column sentence: {what}: {remedy}"
    if len(texts) > 1 and all(re.search(r"\[\w[^][]*\]|\{\w[^}{]*\}", text) for text in texts):
        what = "brackets stand in every sentence, and would be read as text"
        remedy = "remove them, and name the critical word by --critical COLUMN"
        return f"the column sentence: {what}: {remedy}"
    return ""


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
        remedy = "the sentences have regions: name one by --region"
        raise BadInput(f"{table.name}: --critical: {remedy}")
    regions = []
    wrong = {}
    pairs = zip(table.columns["sentence"], table.columns[column], strict=True)
    for row, (text, value) in enumerate(pairs):
        text = text.strip() if isinstance(text, str) else ""
        try:
            critical = critical_span(text, value)
        except ValueError as error:
            wrong[row] = f"--critical: the column {column}: {error}"
            continue
        spans = [critical, *(span for span in _words_of(text) if span[0] >= critical[1])]
        named_spans = enumerate(zip(_CRITICAL, spans, strict=False), start=1)
        regions.append([_region(number, name, *span) for number, (name, span) in named_spans])
    table.refuse(wrong)
    note = f"critical: {column} is the region critical; {' and '.join(_CRITICAL[1:])} follow it"
    return table.having({**table.columns, "regions": regions}, note)


def critical_span(text: str, value: object) -> tuple[int, int]:
    """Returns start and end of a critical word in a sentence, in characters.

    Args:
        value: its position among the words, from 1, or the word.

    Raises:
        ValueError: there is no such word, or several.
    """
    named = str(value if value is not None else "").strip().removesuffix(".0")
    words = [*_words_of(text)]
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


def _words_of(text: str) -> Iterator[tuple[int, int]]:
    return (match.span() for match in re.finditer(r"\S+", text))
