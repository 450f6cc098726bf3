"""`lmdiag check`: what a file of own rows is, and what looks wrong in it."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any

from lmdiag import stimuli
from lmdiag.cli import options
from lmdiag.stimuli import Stimuli
from lmdiag.stimuli.layouts import as_typed
from lmdiag.stimuli.proposals import READS_SENTENCES, UnknownLayout
from lmdiag.table_files import Table
from lmdiag.text import truncated, visible
from lmdiag.types import AS_IT_IS, BadInput, DesignOptions, FactorOptions, TableOptions

if TYPE_CHECKING:
    from lmdiag.stimuli.conditions import Uses
    from lmdiag.stimuli.other_rows import OtherRows

_LONGEST_LINE = 4_000
"""Characters of a line, which the name of a column may exceed."""


def check_command(
    file: str,
    /,
    *,
    design: Annotated[FactorOptions, options.DESIGN] = FactorOptions(),
    table: Annotated[TableOptions, options.TABLE] = AS_IT_IS,
    allow_duplicates: bool = False,
    model: str | None = None,
) -> None:
    """Prints what is read, or the first mistake.

    Args:
        file: file of own rows, or any other data set
        allow_duplicates: keep one of identical rows, instead of an error
        model: model whose tokenizer is tried on the texts: Hub id or local folder
    """
    for task in stimuli.tasks(file):
        try:
            rows = stimuli.load(file, task, allow_duplicates=allow_duplicates, **table.stored())
        except UnknownLayout as unknown:
            lines = [*_proposed_lines(task, file, unknown, table)]
        else:
            lines = [
                *_lines(rows, DesignOptions(**design.stored())),
                *_response_of_reader_lines(rows.columns()),
                *(_split_lines(rows, model) if model else ()),
            ]
        for line in lines:
            print(truncated(visible(line), _LONGEST_LINE))


def _proposed_lines(
    task: str, file: str, unknown: UnknownLayout, table: TableOptions
) -> Iterator[str]:
    """Yields what a table without texts may be, or the command that may read it, if it does."""
    yield f"{task}: {len(unknown.table):,} rows without a {unknown.lacks}"
    yield f"columns     {', '.join(unknown.columns)}"
    if unknown.other:
        yield f"perhaps     {unknown.other.text()}"
        if unknown.has_sentences:
            yield f"or          lmdiag run {shlex.quote(file)} --model M {READS_SENTENCES}"
        if unknown.other.command == "analyse" and {*unknown.other.columns} >= {"item", "response"}:
            yield from _use_lines(unknown.table, unknown.other.columns)
        elif unknown.other.command == "surprisal":
            yield from _word_lines(file, unknown, unknown.other, table)
        elif unknown.other.command == "cloze":
            yield from _response_lines(file, task, table.with_further(unknown.other.options))
        return
    best, *others = unknown.readings
    for what, reading in (("proposed", best), *(("or", x) for x in others if x.rows)):
        options = as_typed(table.with_further(reading.options))
        yield f"{what:<11} lmdiag run {shlex.quote(file)} --model M {options}"
        yield from _read_lines(reading.rows) if reading.rows else [f"then        {reading.problem}"]
        yield from (f"warning: {note}" for note in reading.notes)
    yield from _response_of_reader_lines(unknown.table.columns)


def _response_of_reader_lines(columns: Mapping[str, Sequence[Any]]) -> Iterator[str]:
    """Yields which command reads the responses that a table of texts has, too."""
    from lmdiag.stimuli.other_rows import responses_of_readers

    if found := responses_of_readers(columns):
        yield f"perhaps     {found.text()}"


def _read_lines(rows: Stimuli) -> Iterator[str]:
    """Yields the first row as the proposed command reads it, and what its columns are used for."""
    from lmdiag.stimuli.design import design_of

    design = design_of(rows)
    if design is not None:
        yield from (f"reads       {line}" for line in design.rows)
        yield f"then        {design.summary()}"
        yield from (f"warning: {line}" for line in design.warnings)


def _word_lines(
    file: str, unknown: UnknownLayout, other: OtherRows, table: TableOptions
) -> Iterator[str]:
    """Yields the first text as models read it, and the commands for responses at its words."""
    from lmdiag.analysis.human import read_human
    from lmdiag.analysis.procedures import Procedure

    options = table.with_further(other.options)
    response = other.response
    try:
        words = read_human(
            file, chosen=Procedure(response=response or "surprisal"), options=options
        )
        texts = words.running_texts().texts
    except BadInput as problem:
        yield f"then        {problem}"
        return
    for step, line in zip(("reads", "then"), words.reads(), strict=True):
        yield f"{step:<11} {line.removeprefix('reads ')}"
    yield f"texts       {len(texts):,}, of {len(words.words):,} words"
    yield from words.gap_notes()
    if not response:
        return
    named = f"--response {shlex.quote(response)}"
    typed = " ".join(filter(None, [as_typed(options), named]))
    model = "" if "surprisal" in unknown.columns else "--model M "
    yield f"response    lmdiag fit {shlex.quote(file)} {model}{typed}"
    if "item" in unknown.table.columns:
        levels = _uses(unknown.table, "item", response).levels
        names = [name for name in levels if name not in other.columns.values()]
        if names:
            yield f"conditions  {', '.join(names)}: lmdiag analyse {shlex.quote(file)} {named}"


def _response_lines(file: str, task: str, options: TableOptions) -> Iterator[str]:
    """Yields what `cloze` reads of a table of responses."""
    try:
        rows = stimuli.load(file, task, responses=True, **options.stored())
    except BadInput as problem:
        yield f"then        {problem}"
    else:
        yield from _lines(rows, DesignOptions())


def _uses(table: Table, item: str, response: str) -> Uses:
    """What the columns of a table of responses are used for."""
    from pandas import DataFrame

    from lmdiag.stimuli.conditions import uses_of

    frame = DataFrame({name: x for name, x in table.columns.items() if name}, dtype=object)
    return uses_of(frame.assign(item=frame[item]), response=response)


def _use_lines(table: Table, columns: Mapping[str, str]) -> Iterator[str]:
    """Yields what the columns of a table of responses are used for."""
    from lmdiag.stimuli.column_warnings import (
        refuse_near_levels,
        warnings_of,
        why_no_conditions,
    )

    uses = _uses(table, columns["item"], columns["response"])
    refuse_near_levels(uses)
    yield f"response    {columns['response']}"
    yield f"items       {table.rows[columns['item']].nunique():,}"
    for name, levels in uses.levels.items():
        yield f"condition   {name}: {', '.join(levels)}"
    for name, use in uses.others.items():
        if name != columns["item"]:
            yield f"column      {name}: {use}"
    reason = "" if uses.levels else why_no_conditions(uses)
    for line in (*warnings_of(uses, table.places), *filter(None, [reason])):
        yield f"warning: {line}"


def _lines(rows: Stimuli, options: DesignOptions) -> Iterator[str]:
    """Yields what own rows are: texts, items, conditions, cells, other columns, warnings."""
    from lmdiag.stimuli.design import check_columns, design_of

    check_columns({rows.task: rows}, options)
    design = design_of(rows, options)
    if design is None:
        yield f"{rows.task}: {len(rows):,} rows"
        return
    if rows.form == "cloze":
        yield f"{rows.task}: {design.n_rows:,} rows"
        yield f"items       {design.n_items:,}, with the {design.form}"
        yield from (f"responses   {note}" for note in rows.notes)
        yield from (f"reads       {line}" for line in design.rows)
        return
    columns = rows.columns()
    yield f"{rows.task}: {design.n_rows:,} {design.form}"
    for note in rows.notes:
        step, _, text = note.partition(": ")
        yield f"{step:<11} {text}"
    for row in design.rows:
        yield f"reads       {row}"
    yield f"texts       {', '.join(design.texts)}"
    if rows.compared:
        yield f"compared    {len({*columns['contrast']}):,} contrasts of good and bad rows"
    if design.n_items:
        yield f"items       {design.n_items:,}"
    for name, levels in design.levels.items():
        counts = ", ".join(f"{level} ({n} rows)" for level, n in levels.items())
        yield f"condition   {name}: {counts}"
    if design.levels:
        yield f"cells       {' x '.join(design.levels)}: {design.n_complete:,} items have all"
        for cell, (n_items, n_rows) in design.cells.items():
            yield f"            {cell}: {n_items:,} items, {n_rows:,} rows"
    for name, use in design.others.items():
        yield f"column      {name}: {use}"
    if design.comparing:
        yield f"or          {design.comparing} compares good and bad rows"
    for line in design.warnings:
        yield f"warning: {line}"


def _split_lines(rows: Stimuli, model: str) -> Iterator[str]:
    """Yields which scripts and languages a tokenizer splits into bytes, and in how many rows."""
    from lmdiag.models import LoadOptions
    from lmdiag.models.demo import demo_folder
    from lmdiag.models.loading.load import load_tokenizer
    from lmdiag.models.tokens.spelling import split_scripts

    columns = rows.columns()
    texts = rows.texts("context", "target", "right_context", "sentence")
    place = str(demo_folder(model[5:])) if model.startswith("demo:") else model
    tokenizer, warning = load_tokenizer(place, LoadOptions())
    if warning:
        yield f"warning: {warning}"
    scripts = split_scripts(tokenizer, texts)
    counts = Counter(script for names in scripts for script in names)
    languages = columns.get("language", [""] * len(rows))
    split = sorted({str(x) for x, names in zip(languages, scripts, strict=True) if names and x})
    for script, n in counts.most_common():
        share = f"in {n:,} of {len(rows):,} rows"
        yield f"bytes       {model} splits {script} characters into bytes {share}"
    if split:
        yield f"bytes       languages with such rows: {', '.join(split)}"
    if not counts:
        yield f"bytes       {model} splits no character into bytes"
