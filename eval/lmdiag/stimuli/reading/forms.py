"""The form of a table (rows with a blank, sentences, minimal pairs), and the parts of a sentence.

Sentences in regions and minimal pairs become one row per sentence here.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import chain, count, repeat
from shlex import quote
from typing import Any

from lmdiag.spacing import LANGUAGES, LONGEST_LOOK, has_space
from lmdiag.stimuli.reading.conversion import text_problem
from lmdiag.stimuli.values.critical_words import column_and_start, with_critical, word_spans
from lmdiag.stimuli.values.marks import GAP, MARKUP, ends_open, is_ended
from lmdiag.stimuli.values.names import named_columns
from lmdiag.tables.table_files import Table
from lmdiag.text import first_few, shortened
from lmdiag.types import AS_IT_IS, GAP_SPACES, BadInput, Query, TableOptions

PAIR = ("sentence_good", "sentence_bad")
"""Columns of minimal pairs as BLiMP has them."""

SHORT_NAMES: Mapping[str, str] = {"uid": "UID", "lang": "language"}
"""Column of pairs of a user's own -> its name here."""

# those of BLiMP, MultiBLiMP and TurBLiMP; one alone of the others may be anything
_PAIRS = (PAIR, ("sen", "wrong_sen"), ("good_sentence", "bad_sentence"))

is_region = re.compile(r"region_([1-9]\d{0,3})").fullmatch
"""Matches the name of a column of regions."""

# what may mark a gap: signs other than dashes, brackets and quotation marks, or a word in capitals
_MARK = re.compile(
    r"""(?![-–—&"'“”„«»‹›「」『』()\[\]{}/|]\Z)[^\w\s]+|_+|[(\[<{]?[A-Z]{3,}[)\]>}]?|[(\[<{][^\w]*[)\]>}]"""
).fullmatch
_SPEAKER = re.compile(r"\s*[^\W\d_]\w{0,9}:\s+\S").match  # A: Did it rain?
_TRAILING = re.compile(r"(?<=[^\s.,;:!?])[.,;:!?]+\Z|(?<=[?.])[,;:!]\Z")


def form_of(names: Collection[str], chosen: Collection[str] = ()) -> str:
    """Returns the form that a table of these columns has.

    The first rule that holds decides: what the user chose; a context or target makes rows with a
    blank; sentences or regions make sentences, unless both columns of a pair are there; a column of
    a pair makes pairs, even one alone, so that the reader can name the other one as missing.

    Args:
        names: of all columns.
        chosen: names that the user gave to columns.

    Returns:
        "sentences", "minimal_pairs", or "" for rows with a blank.
    """
    if "sentence" in chosen or {*PAIR} <= {*chosen}:
        return "sentences" if "sentence" in chosen else "minimal_pairs"
    pair = _pair_columns(names)
    has_sentences = "sentence" in names or any(map(is_region, names))
    if "context" in names or ("target" in names and not has_sentences):
        return ""
    if has_sentences and not set(pair) <= set(names):
        return "sentences"
    return "" if set(pair).isdisjoint(names) else "minimal_pairs"


def _check_language(code: str) -> None:
    """Refuses a language without a rule."""
    if code not in LANGUAGES:
        choice = ", ".join(filter(None, LANGUAGES))
        remedy = f"choose from {choice}, or leave it out for the rule of most texts"
        raise BadInput(f"--language {code}: {remedy}")


def in_form(table: Table, task: str, options: TableOptions = AS_IT_IS) -> Table:
    """Returns a table with its form, a row per sentence; a table of blanks as it is.

    Rows without names are named after the task.
    """
    if table.form:
        return table
    if options.keep_case:
        remedy = "leave it out, nothing is read by it here"
        raise BadInput(f"{table.name}: --keep-case is for responses of people: {remedy}")
    _check_language(options.language)
    table = without_gaps(_without_ellipses(table, options.gap), options.gap)
    has_contexts = _have_contexts(table, options)
    form = form_of(table.columns, table.chosen.keys() & table.columns.keys())
    if form == "sentences" or has_contexts:
        form = "sentences"
        refuse_fragments(table)
        table = with_regions(table, options.separator, options.language)
        if options.language and "regions" not in table.columns:
            rule = "--language is for parts of sentences, and the sentences are whole"
            raise BadInput(f"{table.name}: {rule}: leave it out")
        table = with_critical(table, options.critical, options.wide)
        table = _after_contexts(table) if has_contexts else table
        if "target" in table.columns and [
            column_and_start(text, ())[0] for text in options.critical
        ] != ["target"]:
            remedy = "___ or --gap TEXT marks its place"
            table = table.having({}, f"target: not read, since no sentence has a gap; {remedy}")
        return replace(table, form=form)
    for option in ("separator", "critical"):
        if getattr(options, option):
            row = "two sentences" if form else "a word at a blank"
            rule = f"--{option} is for sentences, and a row is {row}: leave it out"
            raise BadInput(f"{table.name}: {rule}")
    if form == "minimal_pairs":
        if options.language:
            rule = "--language is for parts of sentences, and a row is two whole sentences"
            raise BadInput(f"{table.name}: {rule}: leave it out")
        return _pair_rows(table, task)
    if "sentence" in table.columns:
        refuse_fragments(table)
        note = "sentence: not read, since a row is a word in its context"
        table = table.having({}, f"{note}; --columns sentence=sentence reads it instead")
    return _with_spaces(table, options.language) if options.language else table


def _have_contexts(table: Table, options: TableOptions) -> bool:
    """Whether sentences, of which a critical word is scored, are read after contexts.

    `BadInput` where the user names both, and no critical word.
    """
    chosen = table.chosen.keys() & table.columns.keys()
    has_both = {"context", "sentence"} <= table.columns.keys()
    if {"context", "sentence"} <= chosen and not options.critical:
        sentence = quote(table.chosen["sentence"])
        remedy = f"--critical COLUMN gives the surprisal of a word of {sentence} after it"
        other = f"target={sentence} instead of sentence={sentence} that of all its words"
        raise BadInput(f"{table.name}: --columns names a context and a sentence: {remedy}, {other}")
    return has_both and bool(options.critical) and ("context" in chosen or "sentence" not in chosen)


def _after_contexts(table: Table) -> Table:
    """Sentences after their contexts, with the critical word where it then stands."""
    names = ("context", "sentence", "regions")
    rows = zip(*(table.columns[name] for name in names), strict=True)
    texts = []
    spans = []
    for row, (context, sentence, regions) in enumerate(rows):
        if not isinstance(context, str):
            raise table.error(row, "the column context is missing: write the text, or leave it out")
        text = joined_text([context, sentence])
        start = len(text) - len(sentence.strip())
        texts.append(text)
        spans.append([x | {"start": start + x["start"], "end": start + x["end"]} for x in regions])
    note = "context: read before the sentence, as one text"
    return table.having({"sentence": texts, "regions": spans}, note, without=["context"])


# ---- pairs ---------------------------------------------------------------------------------------


def _pair_columns(names: Collection[str]) -> tuple[str, str]:
    """The names of the columns with the good and the bad sentence of a pair.

    They are the first of `_PAIRS` of which the table has both; else `PAIR`, of which then one
    column or both are not in the table.
    """
    return next((pair for pair in _PAIRS if {*pair} <= {*names}), PAIR)


def _pair_rows(table: Table, task: str) -> Table:
    """Minimal pairs as rows: `PAIR-good` and `PAIR-bad` for each contrast PAIR."""
    pair = _pair_columns(table.columns)
    for column in pair:
        if column not in table.columns:
            raise table.lacks(column, "every pair needs both")
    _refuse_empty_halves(table, pair)
    for column in pair:
        for row, text in enumerate(table.columns[column]):
            is_text = isinstance(text, str)
            problem = text_problem("sentence", text) if is_text else "is missing or not text"
            if problem:
                raise table.error(row, f"the column {column} {problem}")
    if taken := [name for name in ("sentence", "good", "contrast") if name in table.columns]:
        origin = f"is made of {pair[0]} and {pair[1]} here: rename it"
        raise BadInput(f"{table.name}: the column {taken[0]} {origin}")
    short = {x: name for x, name in SHORT_NAMES.items() if name not in table.columns}
    columns = {short.get(column, column): values for column, values in table.columns.items()}
    names = _pair_names(columns, len(table), task)
    sentences = zip(*(columns[column] for column in pair), strict=True)
    made = {
        "id": [f"{name}-{which}" for name in names for which in ("good", "bad")],
        "sentence": [*chain.from_iterable(sentences)],
        "good": [True, False] * len(table),
        "contrast": [name for name in names for _ in pair],
    }
    renamed = replace(table, rows=table.rows.rename(columns=short))
    twice = renamed.of_rows_at([row for row in range(len(table)) for _ in pair])
    return replace(twice.having(made, without=pair), form="minimal_pairs")


def _refuse_empty_halves(table: Table, pair: Sequence[str]) -> None:
    """Refuses pairs without one of their sentences, and names the filter that leaves them out."""
    empty = {
        column: [row for row, text in enumerate(table.columns[column]) if text in (None, "")]
        for column in pair
    }
    found = {table.chosen.get(column, column): rows for column, rows in empty.items() if rows}
    remedy = " ".join(quote(f"{column}!=") for column in found)
    for column, rows in found.items():
        has = f"the column {column} is empty in {len(rows):,} of {len(table):,} rows"
        every = f" ({table.places(rows)})" if len(rows) > 1 else ""
        raise table.error(rows[0], f"{has}{every}: write a sentence, or give --filter {remedy}")


def _pair_names(columns: Mapping[str, Sequence[Any]], n_pairs: int, task: str) -> list[str]:
    """Names of the pairs: `UID` and its number, else their `id`, else the task and the row.

    `UID` and `id` stand behind the language, as translated sets repeat them in each language.
    """
    languages = columns.get("language", [""] * n_pairs)
    starts = [f"{language}-" if language else "" for language in languages]
    # the number of a pair within its UID: in BLiMP's files, and on the Hub
    numbers = columns.get("pairID", columns.get("pair_id", ()))
    parts = zip(starts, columns.get("UID", ()), numbers, strict=False)
    names = [f"{start}{uid}-{number}" for start, uid, number in parts]
    if n_pairs and len(set(names)) == n_pairs:
        return names
    if "id" in columns:
        return [f"{start}{name}" for start, name in zip(starts, columns["id"], strict=True)]
    return [f"{task}-{row + 1}" for row in range(n_pairs)]


def refuse_fragments(table: Table) -> None:
    """Refuses a column of sentences that the word of another column continues.

    That is where nine of ten sentences do not end in punctuation, and most do not have the word in
    them. A user who wants them as they are names the column, and so does one who wants the word
    after the contexts that stand beside them.
    """
    names = named_columns("target", table.columns)
    if (
        not names
        or {"sentence", "context"} & table.chosen.keys()
        or not table.columns.get("sentence")
    ):
        return
    n_words = n_ended = n_inside = 0
    for text, word in zip(table.columns["sentence"], table.columns[names[0]], strict=True):
        if isinstance(word, str) and isinstance(text, str) and word.strip():
            n_words += 1
            n_ended += is_ended(text)
            n_inside += bool(word_spans(text, word.strip()))
    if 10 * n_words < 9 * len(table) or 10 * n_ended > n_words or 2 * n_inside > n_words:
        return
    what = f"sentences have no end and not the word in {names[0]}: it seems to continue them"
    remedy = f"give --columns context=sentence target={names[0]}"
    other = "or, to score them as sentences, --columns sentence=sentence"
    if "context" in table.columns:
        other = "or, to ask for the word after the column context, --columns context=context"
    raise BadInput(f"{table.name}: {what}: {remedy}, {other}")


def _without_ellipses(table: Table, gap: str) -> Table:
    """The texts before targets without an ellipsis that stands at the end of each of them."""
    name = "context" if "context" in table.columns else "sentence"
    texts = table.columns.get(name, ())
    is_open = "target" in table.columns and not gap and name not in {*table.chosen} - {"context"}
    if not (is_open and texts and all(isinstance(x, str) and ends_open(x) for x in texts)):
        return table
    if any(re.search(GAP, text, re.IGNORECASE) for text in texts):
        return table
    note = f"{name}: the ellipsis at the end of each is the place of the target, and left out"
    contexts = [text.rstrip().rstrip(".…").rstrip() for text in texts]
    return table.having({"context": contexts}, note, without=[name])


# ---- gaps ----------------------------------------------------------------------------------------


def without_gaps(table: Table, gap: str) -> Table:
    """Returns sentences with a gap beside a column target as a context and a right context.

    `BadInput` if only some of the sentences have one, or one has several.
    """
    has_target = "target" in table.columns
    if gap and not has_target:
        remedy = "give the word that is scored there in a column target"
        raise BadInput(f"{table.name}: --gap {gap}: {remedy}")
    if not has_target or ("context" in table.columns and not gap):
        return table
    texts = [text if isinstance(text, str) else "" for text in table.columns.get("sentence", ())]
    marks = table.columns.get(gap, [gap] * len(texts))  # each row may have its own
    patterns = [re.escape(str(mark or "")) or r"(?!)" if gap else GAP for mark in marks]
    flags = 0 if gap else re.IGNORECASE
    pairs = zip(patterns, texts, strict=True)
    gaps = [[*re.finditer(pattern, text, flags)] for pattern, text in pairs]
    if not any(gaps):
        if gap:
            raise BadInput(f"{table.name}: --gap {gap}: no sentence has it")
        _refuse_unknown_mark(table, texts)
        return table
    sizes = {row: len(matches) for row, matches in enumerate(gaps) if len(matches) != 1}
    has = {row: f"{n} gaps" if n else "no gap, as other rows have" for row, n in sizes.items()}
    rule = "mark the place of the target once"
    table.refuse({row: f"the column sentence has {text}: {rule}" for row, text in has.items()})
    matches = [match for (match,) in gaps]
    made = _around_gaps(matches, table.columns["target"])
    shown = first_few([*dict.fromkeys(match[0] for match in matches)], 5)
    note = f"gap: {shown} in the sentence is the place of the target, context is what precedes it"
    return table.having(made, note, without=("sentence",))


def unknown_mark(texts: Sequence[str]) -> str:
    """Returns a sign or a word in capitals that stands once in every text, as a gap does; or "".

    >>> unknown_mark(["The ... ran.", "A cat saw the ...!"]), unknown_mark(["A - b.", "C - d."])
    ('...', '')
    """
    if len({*texts}) < 2:
        return ""

    def words(text: str) -> list[str]:
        return [_TRAILING.sub("", word) for word in text.split()]

    marks = filter(_MARK, words(texts[0]))
    return next((mark for mark in marks if all(words(x).count(mark) == 1 for x in texts)), "")


def _refuse_unknown_mark(table: Table, texts: Sequence[str]) -> None:
    """Refuses sentences with an unknown mark, of which few have their target."""
    mark = "" if {*table.chosen} & {"sentence", "target"} == {"sentence"} else unknown_mark(texts)
    if not mark:
        return
    targets = [str(target) for target in table.columns["target"]]
    pairs = zip(texts, targets, strict=True)
    if 2 * sum(bool(word_spans(text, target)) for text, target in pairs) <= len(texts):
        has = f"{mark} stands once in every sentence, and few of them have their target"
        remedy = f"give --gap={quote(mark)} if it is the place of the target"
        other = "or, to read the sentences as they are, --columns sentence=sentence"
        raise BadInput(f"{table.name}: {has}: {remedy}, {other}")


def _around_gaps(gaps: Sequence[re.Match[str]], targets: Sequence[Any]) -> dict[str, list[str]]:
    """The texts on both sides of gaps, and the spaces there where they are not the usual ones."""
    names = {spaces: name for name, spaces in GAP_SPACES.items()}
    typed = []
    is_usual = True
    for match, target in zip(gaps, targets, strict=True):
        left = match.string[: match.start()]
        right = match.string[match.end() :].rstrip()
        query = Query(left.rstrip(" "), right.lstrip(" "), left[-1:] == " ", right[:1] == " ")
        usual = query._replace(space_before=None, space_after=None)
        is_usual &= query.around(str(target)) == usual.around(str(target))
        is_usual &= not (query.context[-1:].isspace() or query.right_context[:1].isspace())
        typed.append(query)
    made = {
        "context": [query.context for query in typed],
        "right_context": [query.right_context for query in typed],
    }
    if not is_usual:
        made["gap_spaces"] = [names[query.space_before, query.space_after] for query in typed]
    return made


def _with_spaces(table: Table, language: str) -> Table:
    """The rows with the spaces that a language has around their words, where they are not usual.

    A sentence that was typed with its gap keeps the spaces that stand there.
    """
    if "gap_spaces" in table.columns or not {"context", "target"} <= table.columns.keys():
        return table
    names = {spaces: name for name, spaces in GAP_SPACES.items()}
    rights = table.columns.get("right_context", [""] * len(table))
    spaces = []
    for parts in zip(table.columns["context"], table.columns["target"], rights, strict=True):
        context, target, right = (part if isinstance(part, str) else "" for part in parts)
        before = has_space(context, target, language)
        left = f"{context} {target}" if before else context + target
        after = has_space(left, right, language)
        query = Query(context, right, before, after)
        usual = Query(context, right)
        is_usual = query.around(target) == usual.around(target)
        spaces.append("" if is_usual else names[before, after])
    return table.having({"gap_spaces": spaces}) if any(spaces) else table


# ---- regions -------------------------------------------------------------------------------------


def joined(
    regions: Iterable[tuple[int, str]], names: Mapping[str, str], place: str, language: str = ""
) -> tuple[str, list[dict[str, Any]]]:
    """Returns the sentence of some regions, and each region with its position in it.

    Contents are stripped, empty ones left out, and the others joined by a space where
    `lmdiag.spacing` says that one stands between them. Names are by number, as text.
    """
    parts = []
    before = ""
    end = 0
    spans = []
    for number, content in regions:
        content = content.strip()
        space = " " if has_space(before, content, language) else ""
        start = end + len(space)
        end = start + len(content)
        parts.append(space + content)
        before = (before + space + content)[-LONGEST_LOOK:]
        spans.append(_region(number, names.get(str(number), ""), start, end))
    text = "".join(parts)
    if not text:
        raise BadInput(f"{place}: regions do not join to a sentence: all are empty")
    if problem := text_problem("sentence", text):
        raise BadInput(f"{place}: content {problem}")
    return text, spans


def joined_text(parts: Iterable[str]) -> str:
    """Returns parts of a text, joined as the regions of a sentence are."""
    text = ""
    for part in filter(None, map(str.strip, parts)):
        text += (" " if has_space(text[-LONGEST_LOOK:], part) else "") + part
    return text


def _region(number: int, name: str, start: int, end: int) -> dict[str, Any]:
    return {"number": number, "name": name, "start": start, "end": end}


def with_regions(table: Table, separator: str, language: str = "") -> Table:
    """Returns sentences of the columns `region_1`, ..., or of parts between separators.

    The separator is a bar unless it is given; a bar is text if not all sentences have it.
    """
    mark = separator or "|"
    numbers = sorted(int(match[1]) for match in map(is_region, table.columns) if match)
    names = [f"region_{number}" for number in numbers]
    if names and "sentence" in table.columns and "sentence" not in table.chosen:
        note = f"sentence: not read, since it is made of {names[0]} to {names[-1]}"
        table = table.having({}, note, without=["sentence"])
    texts = table.columns.get("sentence", ())
    written = [text for text in texts if isinstance(text, str)]
    n_divided = sum(mark in text for text in written)
    is_divided = n_divided > 0 if separator else 0 < n_divided == len(written)
    problem = ""
    if names and "sentence" in table.chosen:
        remedy = "leave --columns sentence=COLUMN out, which is made of the regions"
        problem = f"the columns sentence and {names[0]} are both there: {remedy}"
    elif names and separator:
        problem = f"--separator {separator}: the regions have columns of their own: leave it out"
    elif separator and not is_divided:
        problem = f"--separator {separator}: no sentence has it"
    elif not is_divided and 2 * n_divided > len(written):
        lacking = f"{len(written) - n_divided} of {len(written)} sentences have no {mark}"
        problem = f"{lacking}: divide them, or leave it out of the others"
    elif "regions" in table.columns and (names or is_divided):
        problem = "the column regions is made of the regions: rename it"
    elif separator or not (names or is_divided):
        problem = _other_separator(texts, mark, is_divided=is_divided)
    if problem:
        raise BadInput(f"{table.name}: {problem}")
    if not (names or is_divided):
        notes = []
        if n_divided:
            n = f"{n_divided} of {len(texts)}"
            notes.append(f"regions: {mark} is text, since {n} sentences have it")
        if len({*written}) > 1 and all(map(_SPEAKER, written)):
            what = f"as {shortened(written[0], 30)!r}, and is read as text"
            notes.append(f"sentence: a mark with a colon stands before every sentence, {what}")
        return table.having({}, *notes)
    parts = zip(*(table.columns[name] for name in names), strict=True)
    divided = (text.split(mark) if isinstance(text, str) else [text] for text in texts)
    contents = parts if names else divided
    rows = []
    for row, regions in enumerate(contents):
        for name, content in zip(names or repeat("sentence"), regions, strict=False):
            if content is None:
                remedy = "write its words, or an empty text where the sentence has none there"
                raise table.error(row, f"the column {name} is NA or NaN: {remedy}")
            if not isinstance(content, str):
                raise table.error(row, f"a region must be text, not {content!r:.60}")
        numbered = zip(numbers or count(1), regions, strict=False)
        rows.append(joined(numbered, {}, table.where(row), language))
    sentences = [text for text, _ in rows]
    spans = [row_spans for _, row_spans in rows]
    return table.having({"sentence": sentences, "regions": spans}, without=names)


def _other_separator(sentences: Iterable[Any], separator: str, *, is_divided: bool) -> str:
    """What is wrong with sentences whose words or regions other characters separate; "" if none."""
    texts = [sentence for sentence in sentences if isinstance(sentence, str)]
    no_mark = re.compile(f"{GAP}|{MARKUP}", re.IGNORECASE)
    plain = cache(lambda text: no_mark.sub(" ", text).strip())

    def have_all(pattern: str) -> bool:
        """Whether all texts have something, which the first ones decide in most tables."""
        return len(texts) > 1 and all(re.search(pattern, plain(text)) for text in texts)

    if have_all(r"\A[(\[]?\d+[.)\]]+\s+(?=\S)"):
        what = f"a number stands before every sentence, as in {shortened(plain(texts[0]), 40)!r}"
        return f"the column sentence: {what}, and would be read as text: remove it"
    signs = {mark: re.escape(mark) for mark in "*/_^@#~\\+¦‖｜" if mark not in separator}
    patterns = {mark: rf"[^\s{x}]\s*{x}\s*\S" for mark, x in signs.items()}
    patterns |= {mark: rf"[^\W\d]{mark}[^\W\d]" for mark in ",;" if mark not in separator}
    marks = [mark for mark, pattern in patterns.items() if have_all(pattern)]
    if marks:
        mark = max(marks, key=lambda mark: sum(plain(text).count(mark) for text in texts))
        repeated = re.compile(f"(?:{re.escape(mark)})+").findall  # || and __ are one mark
        mark = Counter(chain(*(repeated(plain(text)) for text in texts))).most_common(1)[0][0]
        what = f"{mark} stands between words in every sentence, and would be read as text"
        remedy = f"give --separator '{mark}' if it divides regions, or write blanks"
        if is_divided:
            remedy = "remove it, since another one divides the regions"
        return f"the column sentence: {what}: {remedy}"
    if have_all(r"\[\w[^][]*\]|\{\w[^}{]*\}|(?<!\w)([%$&=+])\w[^%$&=+]*\1(?!\w)"):
        what = "brackets or other marks stand in every sentence, and would be read as text"
        remedy = "remove them, and name the critical word by --critical COLUMN"
        return f"the column sentence: {what}: {remedy}"
    return ""
