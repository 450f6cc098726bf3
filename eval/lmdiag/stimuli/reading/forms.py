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
"""Column of a table of pairs -> the name of published sets, which lmdiag has for it."""

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
        "sentences", "minimal_pairs", or "" for rows with a blank and for a table without any of
        these columns.
    """
    if "sentence" in chosen or {*PAIR} <= {*chosen}:
        return "sentences" if "sentence" in chosen else "minimal_pairs"
    has_sentences = "sentence" in names or any(map(is_region, names))
    if "context" in names or ("target" in names and not has_sentences):
        return ""
    columns_of_pair = [name for name in _pair_columns(names) if name in names]
    if has_sentences and len(columns_of_pair) < 2:
        return "sentences"
    return "minimal_pairs" if columns_of_pair else ""


def _check_language(code: str) -> None:
    """Refuses the code of a language for which no rule says where spaces stand between words."""
    if code not in LANGUAGES:
        choice = ", ".join(filter(None, LANGUAGES))
        remedy = f"choose from {choice}, or leave it out for the rule of most texts"
        raise BadInput(f"--language {code}: {remedy}")


def with_form(table: Table, task: str, options: TableOptions = AS_IT_IS) -> Table:
    """Returns a table with its form, see `form_of`, and a row per sentence or per blank.

    Sentences get their regions and critical word, sentences with a gap become contexts, and each
    minimal pair becomes two rows. `BadInput` for options that the form has no use for.

    Args:
        table: after the steps before; one that has a form is returned as it is.
        task: what pairs without names are named after.
        options: separator, gap, critical, language and others.
    """
    if table.form:
        return table
    # options and gaps, before the form is known: a sentence with a gap becomes a context
    if options.keep_case:
        remedy = "leave it out, nothing is read by it here"
        raise BadInput(f"{table.name}: --keep-case is for responses of people: {remedy}")
    _check_language(options.language)
    table = without_gaps(_without_ellipses(table, options.gap), options.gap)
    has_contexts = _have_contexts(table, options)
    form = form_of(table.columns, table.chosen.keys() & table.columns.keys())
    # sentences, also those after contexts, whose columns look like rows with a blank
    if form == "sentences" or has_contexts:
        return _sentence_rows(table, options, has_contexts=has_contexts)
    # pairs, and rows with a blank
    for name, value in (("separator", options.separator), ("critical", options.critical)):
        if value:
            row = "two sentences" if form else "a word at a blank"
            rule = f"--{name} is for sentences, and a row is {row}: leave it out"
            raise BadInput(f"{table.name}: {rule}")
    if form == "minimal_pairs":
        if options.language:
            rule = "--language is for parts of sentences, and a row is two whole sentences"
            raise BadInput(f"{table.name}: {rule}: leave it out")
        return _pair_rows(table, task)
    if "sentence" in table.columns:
        refuse_fragments(table)
        note = "sentence: not read, since a row is a word in its context"
        table = table.with_notes(f"{note}; --columns sentence=sentence reads it instead")
    return _with_spaces(table, options.language) if options.language else table


def _sentence_rows(table: Table, options: TableOptions, *, has_contexts: bool) -> Table:
    """The table of the form "sentences", with the regions and critical words of its sentences.

    Args:
        table: with a column of sentences, or with columns of regions.
        options: separator, critical, language and wide columns.
        has_contexts: whether contexts stand before the sentences, which then begin with them.
    """
    refuse_fragments(table)
    table = with_regions(table, options.separator, options.language)
    if options.language and "regions" not in table.columns:
        rule = "--language is for parts of sentences, and the sentences are whole"
        raise BadInput(f"{table.name}: {rule}: leave it out")
    table = with_critical(table, options.critical, options.wide)
    if has_contexts:
        table = _after_contexts(table)
    # a column of targets is read where it has the critical words
    critical_columns = [column_and_start(text, ())[0] for text in options.critical]
    if "target" in table.columns and critical_columns != ["target"]:
        remedy = "___ or --gap TEXT marks its place"
        table = table.with_notes(f"target: not read, since no sentence has a gap; {remedy}")
    return replace(table, form="sentences")


def _have_contexts(table: Table, options: TableOptions) -> bool:
    """Whether a table has contexts before its sentences, of which a critical word is scored.

    `BadInput` where the user names a context and a sentence, and no critical word.
    """
    chosen = table.chosen.keys() & table.columns.keys()
    if {"context", "sentence"} <= chosen and not options.critical:
        sentence = quote(table.chosen["sentence"])
        remedy = f"--critical COLUMN gives the surprisal of a word of {sentence} after it"
        other = f"target={sentence} instead of sentence={sentence} that of all its words"
        raise BadInput(f"{table.name}: --columns names a context and a sentence: {remedy}, {other}")
    has_both = {"context", "sentence"} <= table.columns.keys()
    only_sentence_chosen = "sentence" in chosen and "context" not in chosen
    return has_both and bool(options.critical) and not only_sentence_chosen


def _after_contexts(table: Table) -> Table:
    """The table whose sentences begin with their contexts, without the column of contexts.

    For example, the context "It rained." and the sentence "The cat sat." become the sentence "It
    rained. The cat sat.". The spans of `regions` (start and end, in characters) move by the 11
    characters that now stand before the sentence.
    """
    names = ("context", "sentence", "regions")
    rows = zip(*(table.columns[name] for name in names), strict=True)
    texts = []
    spans = []
    for row, (context, sentence, regions) in enumerate(rows):
        if not isinstance(context, str):
            raise table.error(row, "the column context is missing: write the text, or leave it out")
        text = join_texts([context, sentence])
        shift = len(text) - len(sentence.strip())
        texts.append(text)
        spans.append([
            region | {"start": shift + region["start"], "end": shift + region["end"]}
            for region in regions
        ])  # fmt: skip
    note = "context: read before the sentence, as one text"
    return table.with_columns({"sentence": texts, "regions": spans}, note, without=["context"])


# ---- pairs ---------------------------------------------------------------------------------------


def _pair_columns(names: Collection[str]) -> tuple[str, str]:
    """The names of the columns with the good and the bad sentence of a pair.

    They are the first of `_PAIRS` of which the table has both; else `PAIR`, of which then one
    column or both are not in the table.
    """
    for good, bad in _PAIRS:
        if good in names and bad in names:
            return good, bad
    return PAIR


def _pair_rows(table: Table, task: str) -> Table:
    """The table with two rows for each minimal pair: its good sentence, then its bad one.

    For example, the row

        sentence_good  sentence_bad  number
        He sleeps.     He sleep.     sg

    of the task `agr` becomes, in place of the columns `sentence_good` and `sentence_bad`,

        id          sentence    good   contrast  number
        agr-1-good  He sleeps.  True   agr-1     sg
        agr-1-bad   He sleep.   False  agr-1     sg

    where the contrast is the name of the pair, see `_pair_names`.
    """
    pair = _pair_columns(table.columns)
    _check_pairs(table, pair)
    # a column lang becomes language, and uid UID, unless the table has a column of this name; the
    # columns of the pair never have one of these names
    long_names = {x: name for x, name in SHORT_NAMES.items() if name not in table.columns}
    renamed = replace(table, rows=table.rows.rename(columns=long_names))
    pair_names = _pair_names(renamed.columns, len(table), task)
    good_and_bad = zip(renamed.columns[pair[0]], renamed.columns[pair[1]], strict=True)
    new_columns = {
        "id": [f"{name}-{which}" for name in pair_names for which in ("good", "bad")],
        "sentence": [*chain.from_iterable(good_and_bad)],
        "good": [True, False] * len(table),
        "contrast": [name for name in pair_names for _ in pair],
    }
    doubled = renamed.of_rows_at([row for row in range(len(table)) for _ in pair])
    return replace(doubled.with_columns(new_columns, without=pair), form="minimal_pairs")


def _check_pairs(table: Table, pair: Sequence[str]) -> None:
    """Refuses a table that cannot be divided into the sentences of pairs.

    It lacks a column or a text of the pair, a text is not fit for a model, or it has one of the
    columns that are made of pairs.

    Args:
        table: of pairs.
        pair: the columns of the good and of the bad sentences.
    """
    for column in pair:
        if column not in table.columns:
            raise table.missing_column_error(column, "every pair needs both")
    _refuse_empty_halves(table, pair)
    for column in pair:
        for row, text in enumerate(table.columns[column]):
            is_text = isinstance(text, str)
            problem = text_problem("sentence", text) if is_text else "is missing or not text"
            if problem:
                raise table.error(row, f"the column {column} {problem}")
    for name in ("sentence", "good", "contrast"):
        if name in table.columns:
            origin = f"is made of {pair[0]} and {pair[1]} here: rename it"
            raise BadInput(f"{table.name}: the column {name} {origin}")


def _refuse_empty_halves(table: Table, pair: Sequence[str]) -> None:
    """Refuses pairs without one of their sentences, and names the filter that leaves them out.

    For example, "my.csv:3: the column bad is empty in 1 of 24 rows: write a sentence, or give
    --filter 'bad!='".
    """
    empty_rows: dict[str, list[int]] = {}  # column, as the user calls it -> rows without its text
    for column in pair:
        rows = [row for row, text in enumerate(table.columns[column]) if text in (None, "")]
        if rows:
            empty_rows[table.chosen.get(column, column)] = rows
    if not empty_rows:
        return
    remedy = " ".join(quote(f"{column}!=") for column in empty_rows)
    column, rows = next(iter(empty_rows.items()))
    has = f"the column {column} is empty in {len(rows):,} of {len(table):,} rows"
    every = f" ({table.places(rows)})" if len(rows) > 1 else ""
    raise table.error(rows[0], f"{has}{every}: write a sentence, or give --filter {remedy}")


def _pair_names(columns: Mapping[str, Sequence[Any]], n_pairs: int, task: str) -> list[str]:
    """Names of the pairs: `UID` and its number, else their `id`, else the task and the row.

    `UID` and `id` stand behind the language, as translated sets repeat them in each language: for
    example `en-anaphor_agreement-12`.
    """
    languages = columns.get("language", [""] * n_pairs)
    prefixes = [f"{language}-" if language else "" for language in languages]
    # the number of a pair within its UID: in BLiMP's files, and on the Hub
    numbers = columns.get("pairID", columns.get("pair_id", ()))
    parts = zip(prefixes, columns.get("UID", ()), numbers, strict=False)  # none without these
    names = [f"{prefix}{uid}-{number}" for prefix, uid, number in parts]
    if n_pairs and len(set(names)) == n_pairs:  # no name is there twice
        return names
    if "id" in columns:
        return [f"{prefix}{name}" for prefix, name in zip(prefixes, columns["id"], strict=True)]
    return [f"{task}-{row + 1}" for row in range(n_pairs)]


def refuse_fragments(table: Table) -> None:
    """Refuses a column of sentences that seem to be contexts of the words of another column.

    For example, "The dog chased the" beside the target "cat". Sentences seem to be contexts where
    nine of ten do not end in punctuation, and most do not have the word of their row in them.
    Columns of sentences or contexts that the user names by --columns are not checked.
    """
    targets = named_columns("target", table.columns)
    is_chosen = "sentence" in table.chosen or "context" in table.chosen
    if not targets or is_chosen or not table.columns.get("sentence"):
        return
    n_words = 0
    n_ended = 0  # texts that end in punctuation
    n_inside = 0  # texts that have their word in them
    for text, word in zip(table.columns["sentence"], table.columns[targets[0]], strict=True):
        if isinstance(word, str) and isinstance(text, str) and word.strip():
            n_words += 1
            n_ended += is_ended(text)
            n_inside += bool(word_spans(text, word.strip()))
    have_words = n_words >= 0.9 * len(table)
    are_open = n_ended <= 0.1 * n_words
    lack_words = n_inside <= 0.5 * n_words
    if not (have_words and are_open and lack_words):
        return
    what = f"sentences have no end and not the word in {targets[0]}: it seems to continue them"
    remedy = f"give --columns context=sentence target={targets[0]}"
    other = "or, to score them as sentences, --columns sentence=sentence"
    if "context" in table.columns:
        other = "or, to ask for the word after the column context, --columns context=context"
    raise BadInput(f"{table.name}: {what}: {remedy}, {other}")


def _without_ellipses(table: Table, gap: str) -> Table:
    """The table with contexts of targets that do not end in an ellipsis, where all texts end so.

    "The dog chased the ..." with the target "cat" becomes the context "The dog chased the". Texts
    with a gap, and sentences that the user names, stay as they are.
    """
    name = "context" if "context" in table.columns else "sentence"
    texts = table.columns.get(name, ())
    is_chosen = name == "sentence" and name in table.chosen
    if not texts or "target" not in table.columns or gap or is_chosen:
        return table
    if not all(isinstance(text, str) and ends_open(text) for text in texts):
        return table
    if any(re.search(GAP, text, re.IGNORECASE) for text in texts):
        return table
    note = f"{name}: the ellipsis at the end of each is the place of the target, and left out"
    contexts = [text.rstrip().rstrip(".…").rstrip() for text in texts]
    return table.with_columns({"context": contexts}, note, without=[name])


# ---- gaps ----------------------------------------------------------------------------------------


def without_gaps(table: Table, gap: str) -> Table:
    """Returns a table in which sentences with a gap are a context and a right context.

    Only beside a column target; other tables are returned as they are. `BadInput` if only some of
    the sentences have a gap, or one has several.

    Args:
        table: with the sentences.
        gap: the text that marks a gap, or the column that has it; "" for the usual marks, as ___.
    """
    has_target = "target" in table.columns
    if gap and not has_target:
        remedy = "give the word that is scored there in a column target"
        raise BadInput(f"{table.name}: --gap {gap}: {remedy}")
    if not has_target or ("context" in table.columns and not gap):
        return table
    texts = [text if isinstance(text, str) else "" for text in table.columns.get("sentence", ())]
    if gap:
        marks = table.columns.get(gap, [gap] * len(texts))  # each row may have its own
        never = r"(?!)"  # an empty mark is found nowhere
        patterns = [re.escape(str(mark or "")) or never for mark in marks]
        flags = re.NOFLAG
    else:
        patterns = [GAP] * len(texts)
        flags = re.IGNORECASE
    pairs = zip(patterns, texts, strict=True)
    gaps = [[*re.finditer(pattern, text, flags)] for pattern, text in pairs]
    if not any(gaps):
        if gap:
            raise BadInput(f"{table.name}: --gap {gap}: no sentence has it")
        _refuse_unknown_mark(table, texts)
        return table
    problems = {}
    for row, matches in enumerate(gaps):
        if len(matches) != 1:
            has = f"{len(matches)} gaps" if matches else "no gap, as other rows have"
            problems[row] = f"the column sentence has {has}: mark the place of the target once"
    table.refuse_rows(problems)
    gap_of_rows = [matches[0] for matches in gaps]
    sides = _around_gaps(gap_of_rows, table.columns["target"])
    shown = first_few([*dict.fromkeys(match[0] for match in gap_of_rows)], 5)
    note = f"gap: {shown} in the sentence is the place of the target, context is what precedes it"
    return table.with_columns(sides, note, without=("sentence",))


def unknown_mark(texts: Sequence[str]) -> str:
    """Returns a sign or a word in capitals that stands once in every text, as a gap does; or "".

    >>> unknown_mark(["The ... ran.", "A cat saw the ...!"]), unknown_mark(["A - b.", "C - d."])
    ('...', '')
    """
    if len({*texts}) < 2:
        return ""

    def words(text: str) -> list[str]:
        """The words of a text without the punctuation behind them."""
        return [_TRAILING.sub("", word) for word in text.split()]

    for mark in filter(_MARK, words(texts[0])):
        if all(words(text).count(mark) == 1 for text in texts):
            return mark
    return ""


def _refuse_unknown_mark(table: Table, texts: Sequence[str]) -> None:
    """Refuses sentences with the same unknown mark where most do not have their target.

    "The ... ran." beside the target "dog", for example. A user who names the column of sentences,
    and not that of targets, wants them as they are.
    """
    if "sentence" in table.chosen and "target" not in table.chosen:
        return
    mark = unknown_mark(texts)
    if not mark:
        return
    targets = [str(target) for target in table.columns["target"]]
    pairs = zip(texts, targets, strict=True)
    n_with_target = sum(bool(word_spans(text, target)) for text, target in pairs)
    if 2 * n_with_target <= len(texts):
        has = f"{mark} stands once in every sentence, and few of them have their target"
        remedy = f"give --gap={quote(mark)} if it is the place of the target"
        other = "or, to read the sentences as they are, --columns sentence=sentence"
        raise BadInput(f"{table.name}: {has}: {remedy}, {other}")


def _around_gaps(gaps: Sequence[re.Match[str]], targets: Sequence[Any]) -> dict[str, list[str]]:
    """New columns: `context` and `right_context`, the texts on both sides of the gap of each row.

    For example, "The ___ sat." becomes the context "The" and the right context "sat.". A column
    `gap_spaces` (both, before, after or none) is added where some rows have other spaces around
    their target than `Query` puts there by default, as "The un___ cat" has.

    Args:
        gaps: the match of the gap in the sentence of each row, which has exactly one gap.
        targets: the word of each row that belongs into the gap.
    """
    name_of_spaces = {spaces: name for name, spaces in GAP_SPACES.items()}
    queries = []
    are_usual = True
    for match, target in zip(gaps, targets, strict=True):
        left = match.string[: match.start()]
        right = match.string[match.end() :].rstrip()
        query = Query(
            context=left.rstrip(" "),
            right_context=right.lstrip(" "),
            space_before=left[-1:] == " ",
            space_after=right[:1] == " ",
        )
        usual = query._replace(space_before=None, space_after=None)
        are_usual &= query.around(str(target)) == usual.around(str(target))
        # other white space, as a line break, also takes the place of the usual space
        are_usual &= not (query.context[-1:].isspace() or query.right_context[:1].isspace())
        queries.append(query)
    columns = {
        "context": [query.context for query in queries],
        "right_context": [query.right_context for query in queries],
    }
    if not are_usual:
        columns["gap_spaces"] = [
            name_of_spaces[query.space_before, query.space_after] for query in queries
        ]
    return columns


def _with_spaces(table: Table, language: str) -> Table:
    """The table with a column `gap_spaces`: which spaces a language has around target words.

    The value of a row is both, before, after or none, and "" for the spaces that `Query` puts there
    by default. The column is left out if all rows would have "". A table with a column `gap_spaces`
    is returned as it is: sentences that were typed with gaps have the spaces of their author.
    """
    if "gap_spaces" in table.columns or not {"context", "target"} <= table.columns.keys():
        return table
    name_of_spaces = {spaces: name for name, spaces in GAP_SPACES.items()}
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
        spaces.append("" if is_usual else name_of_spaces[before, after])
    return table.with_columns({"gap_spaces": spaces}) if any(spaces) else table


# ---- regions -------------------------------------------------------------------------------------


def join_regions(
    regions: Iterable[tuple[int, str]], names: Mapping[str, str], place: str, language: str = ""
) -> tuple[str, list[dict[str, Any]]]:
    """Returns the sentence of some regions, and each region with its position in it.

    Contents are stripped, and joined by a space where `lmdiag.spacing` says that one stands between
    them: before a full stop, for example, there is none.

    Args:
        regions: number and content of each.
        names: number, as text -> name of the region.
        place: of the row, for messages.
        language: whose rule of spaces is used; "" for the rule of most texts.

    Returns:
        The sentence, and for each region its number, name, start and end, in characters.
    """
    parts = []
    before = ""  # the end of the text so far
    end = 0
    spans = []
    for number, content in regions:
        content = content.strip()
        space = " " if has_space(before, content, language) else ""
        start = end + len(space)
        end = start + len(content)
        parts.append(space + content)
        before = (before + space + content)[-LONGEST_LOOK:]
        name = names.get(str(number), "")
        spans.append({"number": number, "name": name, "start": start, "end": end})
    text = "".join(parts)
    if not text:
        raise BadInput(f"{place}: regions do not join to a sentence: all are empty")
    if problem := text_problem("sentence", text):
        raise BadInput(f"{place}: content {problem}")
    return text, spans


def join_texts(parts: Iterable[str]) -> str:
    """Returns parts of a text, joined as the regions of a sentence are."""
    text = ""
    for part in filter(None, map(str.strip, parts)):
        if has_space(text[-LONGEST_LOOK:], part):
            text += " "
        text += part
    return text


def with_regions(table: Table, separator: str, language: str = "") -> Table:
    """Returns a table with its sentences, and in a column `regions` the places of their regions.

    The regions are the columns `region_1`, `region_2` and so on, or the parts of sentences between
    separators. Sentences without regions stay as they are.

    Args:
        table: with regions or sentences.
        separator: of regions; "" for a bar, which is text if not all sentences have it.
        language: whose rule of spaces between regions is used.
    """
    mark = separator or "|"
    numbers = sorted(int(match[1]) for match in map(is_region, table.columns) if match)
    names = [f"region_{number}" for number in numbers]
    if names and "sentence" in table.columns and "sentence" not in table.chosen:
        note = f"sentence: not read, since it is made of {names[0]} to {names[-1]}"
        table = table.with_columns({}, note, without=["sentence"])
    sentences = table.columns.get("sentence", ())
    texts = [sentence for sentence in sentences if isinstance(sentence, str)]
    n_divided = sum(mark in text for text in texts)
    is_divided = n_divided > 0 and (bool(separator) or n_divided == len(texts))
    problem = ""
    if names and "sentence" in table.chosen:
        remedy = "leave --columns sentence=COLUMN out, which is made of the regions"
        problem = f"the columns sentence and {names[0]} are both there: {remedy}"
    elif names and separator:
        problem = f"--separator {separator}: the regions have columns of their own: leave it out"
    elif separator and not is_divided:
        problem = f"--separator {separator}: no sentence has it"
    elif not is_divided and 2 * n_divided > len(texts):
        lacking = f"{len(texts) - n_divided} of {len(texts)} sentences have no {mark}"
        problem = f"{lacking}: divide them, or leave it out of the others"
    elif "regions" in table.columns and (names or is_divided):
        problem = "the column regions is made of the regions: rename it"
    # regions in columns, or between bars in all sentences, are plain: other marks are then text
    elif separator or not (names or is_divided):
        problem = _other_separator(texts, mark, is_divided=is_divided)
    if problem:
        raise BadInput(f"{table.name}: {problem}")
    if names:
        contents = [[*row] for row in zip(*(table.columns[name] for name in names), strict=True)]
        return _joined_regions(table, contents, numbers, language)
    if is_divided:
        contents = [text.split(mark) if isinstance(text, str) else [text] for text in sentences]
        return _joined_regions(table, contents, [], language)
    notes = []
    if n_divided:
        n = f"{n_divided} of {len(sentences)}"
        notes.append(f"regions: {mark} is text, since {n} sentences have it")
    if len({*texts}) > 1 and all(map(_SPEAKER, texts)):
        what = f"as {shortened(texts[0], 30)!r}, and is read as text"
        notes.append(f"sentence: a mark with a colon stands before every sentence, {what}")
    return table.with_notes(*notes)


def _joined_regions(
    table: Table, contents: Sequence[Sequence[Any]], numbers: Sequence[int], language: str
) -> Table:
    """The table with columns `sentence` and `regions`, in place of the columns of regions.

    For example, the contents ["The cat", "sat."] make the sentence "The cat sat." and the regions
    [{"number": 1, "name": "", "start": 0, "end": 7}, {"number": 2, "name": "", "start": 8, "end":
    12}].

    Args:
        table: with columns of regions or with divided sentences.
        contents: of each row, the texts of its regions.
        numbers: of the columns of regions, such as [1, 2] for region_1 and region_2; [] for parts
            of sentences, which are numbered from 1.
        language: whose rule of spaces between regions is used.
    """
    columns = [f"region_{number}" for number in numbers]
    sentences = []
    regions = []
    for row, texts in enumerate(contents):
        for name, text in zip(columns or repeat("sentence"), texts, strict=False):
            if text is None:
                remedy = "write its words, or an empty text where the sentence has none there"
                raise table.error(row, f"the column {name} is NA or NaN: {remedy}")
            if not isinstance(text, str):
                raise table.error(row, f"a region must be text, not {text!r:.60}")
        numbered = zip(numbers or count(1), texts, strict=False)
        sentence, spans = join_regions(numbered, {}, table.where(row), language)
        sentences.append(sentence)
        regions.append(spans)
    return table.with_columns({"sentence": sentences, "regions": regions}, without=columns)


def _other_separator(texts: Sequence[str], separator: str, *, is_divided: bool) -> str:
    """What is wrong where all texts have a mark that would be read as text; "" if none has.

    For example, in "The dog / chased / the cat" a slash seems to separate regions, and would be a
    word for the model.

    Args:
        texts: sentences.
        separator: the mark that separates regions, which is not a mistake.
        is_divided: whether this mark separates regions in these texts.
    """
    no_mark = re.compile(f"{GAP}|{MARKUP}", re.IGNORECASE)

    @cache
    def plain(text: str) -> str:
        """The text without gaps and markup, for which there are other messages."""
        return no_mark.sub(" ", text).strip()

    def have_all(pattern: str) -> bool:
        """Whether all texts have a pattern; the first texts decide in most tables."""
        return len(texts) > 1 and all(re.search(pattern, plain(text)) for text in texts)

    if have_all(r"\A[(\[]?\d+[.)\]]+\s+(?=\S)"):
        what = f"a number stands before every sentence, as in {shortened(plain(texts[0]), 40)!r}"
        return f"the column sentence: {what}, and would be read as text: remove it"
    # mark -> pattern of its use between words; commas and semicolons count only without spaces
    patterns: dict[str, str] = {}
    for mark in "*/_^@#~\\+¦‖｜":
        escaped = re.escape(mark)
        patterns[mark] = rf"[^\s{escaped}]\s*{escaped}\s*\S"
    for mark in ",;":
        patterns[mark] = rf"[^\W\d]{mark}[^\W\d]"
    marks = [x for x, pattern in patterns.items() if x not in separator and have_all(pattern)]
    if marks:
        most_frequent = max(marks, key=lambda mark: sum(plain(text).count(mark) for text in texts))
        repeated = re.compile(f"(?:{re.escape(most_frequent)})+")  # || and __ are one mark
        counts = Counter(run for text in texts for run in repeated.findall(plain(text)))
        mark = counts.most_common(1)[0][0]
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
