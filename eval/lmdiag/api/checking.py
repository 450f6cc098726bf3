"""How a table is read: what each column is used for, what the model reads, what looks wrong."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from lmdiag import stimuli
from lmdiag.api.table_check import READ_AS, CheckedColumn, Proposal, TableCheck
from lmdiag.options import pop_options, with_fields
from lmdiag.stimuli import Stimuli
from lmdiag.stimuli.dataset import find
from lmdiag.stimuli.proposing.proposals import UnknownLayout, own_names, readings_with_contexts
from lmdiag.stimuli.values.critical_words import column_and_start
from lmdiag.stimuli.values.layouts import as_typed
from lmdiag.stimuli.values.names import is_named_as
from lmdiag.tables.table_files import MEMORY, ROW_NAMES, Table, read_memory
from lmdiag.text import column_like, folded, shortened, suggest, visible
from lmdiag.types import (
    BadInput,
    DesignOptions,
    FactorOptions,
    TableKeywords,
    TableOptions,
)

if TYPE_CHECKING:
    from lmdiag.stimuli.designs.conditions import ColumnUses
    from lmdiag.stimuli.proposing.other_rows import OtherRows
    from lmdiag.stimuli.proposing.proposals import Reading

_SHOWN_ROWS = 5
_SHOWN_VALUES = 3
_ROWS_FOR_VALUES = 200
"""Rows with a value whose distinct values may be shown: large tables take no longer than others."""

_LONGEST_VALUE = 60
_LONGEST_LIST = 800
"""Characters of a value of a column, and of the names of all columns, in messages."""

_USE_OF_DESCRIPTION = {
    "not a condition": "not used",
    "not read": "not used",
    "follows from the conditions": "not used",
    "follows from another column": "not used",
    "names of measures: choose one by --filter": "not used",
    "numbers that are not whole, not a condition": "not used",
    "response, not a condition": "not used",
    "position of the critical word": "critical",
    "critical word": "critical",
    "word or region": "word",
}
"""What a column is, in words (those before a bracket) -> its `use`; other words are the use."""

_RESPONSES = {
    name: name
    for name in ("item", "context", "right_context", "sentence", "response", "count", "cloze")
}
_RESPONSES |= {"word": "response", "participant": "reader"}
"""Known name of a column of a table of responses -> its use."""


class CheckKeywords(TableKeywords, total=False):
    """Keywords of `check`: how a table is read, and its factors."""

    conditions: str | Sequence[str]
    item: str | Sequence[str]
    region: str | int


@with_fields(FactorOptions, TableOptions, keywords=CheckKeywords)
def check(
    table: Any,
    task: str | None = None,
    *,
    model: str | None = None,
    allow_duplicates: bool = False,
    **reading: Unpack[CheckKeywords],
) -> TableCheck:
    """Returns how a table is read, and what looks wrong in it, as `lmdiag check` prints it.

    What is wrong in the table is the `error` of the record, and not raised.

    Args:
        table: file of own rows, or any other data set; or rows in memory, as `load_stimuli` takes
            them.
        task: name of a config, see `load_stimuli`.
        model: model whose tokenizer is tried on the texts: Hub id or local folder.
        allow_duplicates: keep one of identical rows of own data, instead of an error.

    Raises:
        BadInput: there is no such option.

    >>> import lmdiag
    >>> rows = {"item": [1, 1], "number": ["sg", "pl"], "sentence": ["A hen ran.", "Hens ran."]}
    >>> table_check = lmdiag.check(rows)
    >>> [(column.name, column.use) for column in table_check.columns]
    [('item', 'item'), ('number', 'condition'), ('sentence', 'sentence')]
    >>> table_check.reads
    ('item 1, sg: A hen ran.',)
    """
    keywords: dict[str, Any] = {**reading}
    design = pop_options(FactorOptions, keywords)
    options = TableOptions.of(keywords)
    data = str(table) if isinstance(table, Path) else table
    file = data if isinstance(data, str) else MEMORY
    record = TableCheck(file, task or "", options=options, design=design)
    source: Table | None = None
    # after an error, the record has what was read until then
    try:
        record = replace(record, task=task or stimuli.only_task(stimuli.tasks(data), data))
        source = _source_table(data, record.task, options)
        record = replace(record, n_rows=len(source or ()), first_rows=_first_rows(source))
        return _check_rows(record, source, data, model, allow_duplicates=allow_duplicates)
    except BadInput as error:
        columns = _checked_columns(record, source, ())
        return _with_problems(replace(record, columns=columns, error=str(error)))


def _check_rows(
    record: TableCheck, source: Table | None, table: Any, model: str | None, *,
    allow_duplicates: bool,
) -> TableCheck:  # fmt: skip
    """Completes the record of a table: what is read of it, or options that may read it.

    Raises `BadInput` for what is wrong in the table.

    Args:
        record: the record so far: the options, the size of the table and its first rows.
        source: the table as its file has it; None for test suites.
        table: the name of its file, or its rows in memory.
        model: model whose tokenizer is tried on the texts; None for none.
    """
    stored_options = record.options.stored()
    try:
        rows = stimuli.load(table, record.task, allow_duplicates=allow_duplicates, **stored_options)
    except UnknownLayout as unknown:
        return _check_unknown_layout(record, source, unknown, table)
    tokens = tuple(_byte_split_lines(rows, model)) if model else ()
    record = replace(_check_stimuli(record, source, rows), tokens=tokens)
    # only sentences that are read as a whole may also be read with a context before them
    if record.command != "run" or rows.form != "sentences" or rows.regions or not source:
        return record

    def read_with(further: TableOptions) -> Stimuli:
        """Returns the rows that are read with further options."""
        options = record.options.with_further(further).stored()
        return stimuli.load(table, record.task, allow_duplicates=allow_duplicates, **options)

    command_lines = _command_with_contexts(record, source, read_with)
    return replace(record, others=(*record.others, *command_lines))


def _source_table(table: Any, task: str, options: TableOptions) -> Table | None:
    """Returns the table as its file has it, before options change it; None for test suites.

    Args:
        table: the name of a file or data set, or rows in memory.
        options: of which the sheet of an Excel file is used.
    """
    if isinstance(table, str):
        rows = find(table).read(task, options.sheet)
    elif stimuli.is_suite(table):
        return None
    else:
        rows = read_memory(table)
    return None if rows.form == "suites" else rows


def _first_rows(source: Table | None) -> tuple[Mapping[str, str], ...]:
    """Returns the first five rows, each as column -> text; () for test suites."""
    if source is None:
        return ()
    names = [name for name in source.columns if name not in ROW_NAMES]
    columns = [source.columns[name][:_SHOWN_ROWS] for name in names]
    first_rows = []
    for values in zip(*columns, strict=True):
        texts = ["" if value is None else visible(str(value)) for value in values]
        first_rows.append(dict(zip(names, texts, strict=True)))
    return tuple(first_rows)


# ---- what is read --------------------------------------------------------------------------------


def _check_stimuli(record: TableCheck, source: Table | None, rows: Stimuli) -> TableCheck:
    """Adds to the record what is read of stimuli: texts, design, columns and warnings.

    Args:
        record: the record so far: the options, the size of the table and its first rows.
        source: the table as its file has it; None for test suites.
        rows: the stimuli that were read from it.
    """
    from lmdiag.stimuli.designs.design import check_columns, design_of, item_columns
    from lmdiag.stimuli.proposing.other_rows import responses_beside_texts

    options = DesignOptions(**record.design.stored())
    check_columns({rows.task: rows}, options)
    design = design_of(rows, options)
    columns = rows.columns()
    if design is None:  # items of a built-in diagnostic, or test suites
        return replace(record, n_rows=len(rows), columns=_checked_columns(record, source, ()))
    is_cloze = rows.form == "cloze"
    source_columns = columns if source is None else source.columns
    other_rows = None
    if not is_cloze and not rows.compared:  # a table of compared pairs has no other rows
        other_rows = _rows_beside_sentences(rows, source_columns)
        # responses may also stand beside other stimuli than sentences
        other_rows = other_rows or responses_beside_texts(source_columns)
        other_rows = _with_item_of(other_rows, rows, source_columns)
    record = replace(
        record,
        command="cloze" if is_cloze else "run",
        n_rows=design.n_rows,
        form=design.form,
        reads=tuple(design.rows),
        summary=design.summary(),
        notes=tuple(f"responses: {note}" for note in rows.notes) if is_cloze else rows.notes,
        texts=", ".join(design.texts),
        n_items=design.n_items,
        n_contrasts=len({*columns["contrast"]}) if rows.compared else 0,
        conditions=tuple(design.levels),
        cells=design.cells,
        n_complete=design.n_complete,
        regions={} if record.options.critical else _regions(rows),
        comparing=design.comparing_options,
        warnings=tuple(design.warnings),
        other=other_rows.text() if other_rows else "",
    )
    # what each column is used for, by the name under which it is read
    use_of_text = _RESPONSES if is_cloze else {name: name for name in design.texts}
    uses = [CheckedColumn(name, use) for name, use in use_of_text.items()]
    if design.n_items and not is_cloze:  # `_RESPONSES` has the items of responses already
        uses += [CheckedColumn(name, "item") for name in item_columns(options, columns)]
    for name, levels in design.levels.items():
        uses.append(CheckedColumn(name, "condition", levels=levels))
    for name, why in design.other_uses.items():
        uses.append(CheckedColumn(name, _use_of(name, why), why))
    return _with_problems(replace(record, columns=_checked_columns(record, source, uses)))


def _with_item_of(
    other_rows: OtherRows | None, rows: Stimuli, names: Iterable[str]
) -> OtherRows | None:
    """Returns what a table has beside stimuli, with the column that names the items of the stimuli.

    A table may have sentences and, in another column, ratings of them. The command that analyses
    the ratings then names the column of items, as `--item nr`. Rows for another command than
    `analyse` are returned as they are.

    Args:
        other_rows: what the table has beside stimuli; None for nothing.
        rows: the stimuli, whose column `item` has the values of a column of the file.
        names: the columns of the file.
    """
    if other_rows is None or other_rows.command != "analyse":
        return other_rows
    columns = rows.columns()
    items = columns.get("item")
    if not items:
        return other_rows
    for name in names:
        # the column of the file that became the column `item` of the stimuli; one that is called
        # "item" in the file needs no option
        if name != "item" and columns.get(name) == items:
            return other_rows._replace(columns={**other_rows.columns, "item": name})
    return other_rows


def _regions(rows: Stimuli) -> dict[str, str]:
    """Returns number of a region -> its text in the first row in which it is not empty.

    For example, {"1": "The key", "2": "is"}; {} for sentences without regions.
    """
    texts: dict[int, str] = {}
    for sentence, regions in zip(rows.texts("sentence"), rows.regions or (), strict=False):
        for region in regions:
            text = sentence[region["start"] : region["end"]].strip()
            if not texts.get(region["number"]):
                texts[region["number"]] = text
    return {str(number): texts[number] for number in sorted(texts)}


def _rows_beside_sentences(rows: Stimuli, columns: Mapping[str, Sequence[Any]]) -> OtherRows | None:
    """Returns what else a table with sentences may hold, words of texts or responses; else None.

    The table is read as stimuli, and the record tells which other command may read it, too.

    Args:
        rows: the stimuli.
        columns: of the file, name -> values.
    """
    from lmdiag.stimuli.proposing.other_rows import (
        responses,
        responses_beside_texts,
        words_of_texts,
    )
    from lmdiag.stimuli.values.layouts import TableLayout

    if rows.form != "sentences" or rows.regions:  # contexts and regions are stimuli for sure
        return None
    own_columns = {name: values for name, values in columns.items() if name not in ROW_NAMES}
    layout = TableLayout(own_columns)
    return words_of_texts(layout) or responses_beside_texts(columns) or responses(layout)


def _command_with_contexts(
    record: TableCheck, source: Table, read_with: Callable[[TableOptions], Stimuli]
) -> Iterator[str]:
    """Yields two lines about a command that joins other columns of text to the sentences.

    A context may stand before the sentences, or a word after them. The first line is "or: " with
    the most likely command, the second one is "reads: " with the first row as models would read it.
    A table without such columns gives no lines.

    Args:
        record: the record so far.
        source: the table as its file has it.
        read_with: reads the table with further options.
    """
    columns = {name: values for name, values in source.columns.items() if name not in ROW_NAMES}
    for reading in readings_with_contexts(columns, read_with):
        proposal = _proposal(record, reading, notes=())
        if proposal:
            yield f"or: lmdiag run {shlex.quote(record.file)} --model M {proposal.typed}"
            yield f"reads: {proposal.rows[0]}"
            return


def _check_unknown_layout(
    record: TableCheck, source: Table | None, unknown: UnknownLayout, table: Any
) -> TableCheck:
    """Adds to the record what a table may be from which `run` reads no stimuli.

    Another command may read the table: then it is checked as that command reads it. Or `run` may
    read it with further options: then these are proposed.

    Args:
        source: the table as its file has it; None for test suites.
        unknown: the error of `lmdiag.load_stimuli`, with what it says of the rows.
        table: the name of the file, or rows in memory.
    """
    record = replace(record, n_rows=len(unknown.table), lacks=unknown.lacks, command="")
    record = replace(record, columns=_checked_columns(record, source, ()))
    other_rows = unknown.other
    named_by_user = _named_items_and_conditions(record, unknown)  # refuses names of no column
    if other_rows is None:  # no other command, but `run` with further options
        return _check_proposals(record, source, unknown, table)
    if other_rows.command == "analyse":
        # what the user names takes the place of what was found; of several columns of items,
        # `items` has all, and `columns`, which has one column per name, the first
        items = {"item": record.design.item[0]} if record.design.item else {}
        other_rows = other_rows._replace(
            columns={**other_rows.columns, **items},
            items=record.design.item,
            conditions=record.design.conditions,
        )
    elif named_by_user:  # the other commands take neither items nor conditions
        names = ", ".join(named_by_user)
        problem = f"{names} cannot be items or conditions here: {other_rows.text()}"
        raise BadInput(f"{record.file}: {problem}; leave out --item and --conditions")
    record = replace(record, other=other_rows.text())
    if other_rows.command == "analyse" and {*other_rows.columns} >= {"item", "response"}:
        return _check_responses(record, source, unknown.table, other_rows)
    record = replace(record, options=record.options.with_further(other_rows.options))
    if other_rows.command == "surprisal":
        return _check_words(record, source, unknown, other_rows, table)
    if other_rows.command == "cloze":
        return _check_cloze_responses(record, source, table)
    return record  # no command reads the rows as they are: `other` says what they seem to be


def _check_proposals(
    record: TableCheck, source: Table | None, unknown: UnknownLayout, table: Any
) -> TableCheck:
    """Adds to the record the options with which `run` may read a table of an unknown layout.

    It also tells whether the table has responses, which `analyse` may read. The arguments are those
    of `_check_unknown_layout`.
    """
    from lmdiag.stimuli.proposing.other_rows import responses_beside_texts

    readings = [_without_proposed_item(record, reading, table) for reading in unknown.readings]
    proposals = [_proposal(record, reading, unknown.notes) for reading in readings]
    responses = responses_beside_texts(own_names(unknown.table.columns))
    if readings:
        responses = _with_item_of(responses, readings[0].rows, unknown.columns)
    return replace(
        record,
        notes=source.notes if source else (),
        proposals=tuple(proposal for proposal in proposals if proposal),
        others=(f"perhaps: {responses.text()}",) if responses else (),
    )


def _named_items_and_conditions(record: TableCheck, unknown: UnknownLayout) -> tuple[str, ...]:
    """Returns the columns that the user names as items and conditions.

    `BadInput` for a name that is neither a column of the file nor one that proposed options make.
    """
    named_by_user = (*record.design.item, *record.design.conditions)
    columns = dict.fromkeys(unknown.columns)
    for reading in unknown.readings:
        columns |= dict.fromkeys(reading.rows.columns())
    for name in named_by_user:
        if column_like(name, columns) not in columns:
            existing = ", ".join(unknown.columns)[:_LONGEST_LIST]
            problem = f"no column {name!r}{suggest(name, columns)}"
            raise BadInput(f"{record.file}: {problem}; there are {existing}")
    return named_by_user


def _without_proposed_item(record: TableCheck, reading: Reading, table: Any) -> Reading:
    """Returns the reading without its proposed column of items, if the user names the items.

    The items that the user gives by --item take the place of a proposed `--columns item=COLUMN`.
    All other options of the reading, and all options that the user gave, stay. For example,
    `--columns item=nr sentence=text` beside `--item story` becomes `--columns sentence=text`, and
    the table is read again. A reading without a proposed item is returned as it is.

    Args:
        record: the options and the design that the user gave.
        reading: the options that may read the table, and the rows that they give.
        table: the name of the file, or rows in memory.
    """
    columns = tuple(text for text in reading.options.columns if not text.startswith("item="))
    options = replace(reading.options, columns=columns)
    if not record.design.item or options == reading.options:
        return reading
    rows = stimuli.load(table, record.task, **record.options.with_further(options).stored())
    return reading._replace(options=options, rows=rows)


def _proposal(record: TableCheck, reading: Reading, notes: Iterable[str]) -> Proposal | None:
    """Returns a reading as a proposal; None if it lacks a column that the user names.

    Args:
        record: the options that the user gives.
        reading: the options that may read the table, and the rows that they give.
        notes: what is a guess, a line each.
    """
    from lmdiag.stimuli.designs.design import check_columns, design_of

    options = record.options.with_further(reading.options)
    factors = DesignOptions(**record.design.stored())
    try:
        check_columns({reading.rows.task: reading.rows}, factors)
    except BadInput:
        return None
    design = design_of(reading.rows, factors)
    if design is None:
        return Proposal(options, rows=(), summary="", notes=tuple(notes))
    return Proposal(options, tuple(design.rows), design.summary(), (*design.warnings, *notes))


def _check_responses(
    record: TableCheck, source: Table | None, table: Table, other_rows: OtherRows
) -> TableCheck:
    """Adds to the record what `analyse` reads of a table of responses: response, items, conditions.

    Effects compare levels within items, so that a column with one level for each item cannot be a
    condition. If readers have several levels of such a column, and neither conditions are found nor
    items named by the user, the table is checked once more: with the readers in the place of the
    items, and the first such column as the condition.

    Args:
        record: the record so far.
        source: the table as its file has it.
        table: the same as it is read.
        other_rows: says which columns are items, conditions and the response.
    """
    from lmdiag.stimuli.designs.column_warnings import (
        is_within_readers,
        refuse_between_items,
        refuse_lookalike_levels,
        warnings_of,
        why_no_conditions,
    )

    items = other_rows.items or [other_rows.columns["item"]]
    response = other_rows.columns["response"]
    uses = _uses_of_responses(table, items, response, other_rows.conditions)
    refuse_lookalike_levels(uses)
    refuse_between_items(uses)
    conditions_of_readers = [name for name in uses.other_uses if is_within_readers(uses, name)]
    if conditions_of_readers and not (uses.conditions or record.design.item):
        rows_of_readers = other_rows._replace(
            items=(uses.reader_column,), conditions=conditions_of_readers[:1]
        )
        record = replace(record, other=rows_of_readers.text())  # with the options for this
        return _check_responses(record, source, table, rows_of_readers)
    # what each column is used for: response, items, conditions, and what the others are
    columns = [CheckedColumn(response, "response")]
    columns += [CheckedColumn(name, "item") for name in items]
    for name, levels in uses.conditions.items():
        n_rows_of_level = uses.table.columns[name].by_count()
        n_rows = {level: n_rows_of_level[level] for level in levels}
        columns.append(CheckedColumn(name, "condition", levels=n_rows))
    # the items are there already, as the user spells them; `other_uses` has the table's spelling
    item_columns = (*items, *(column_like(name, table.columns) for name in items))
    for name, why in uses.other_uses.items():
        if name not in item_columns:
            columns.append(CheckedColumn(name, _use_of(name, why), why))
    warnings = warnings_of(uses, table.places)
    no_conditions = "" if uses.conditions else why_no_conditions(uses)
    if no_conditions:
        warnings = [*warnings, no_conditions]
    is_named_item = [*map(folded, items)] == ["item"]  # "Item" is found without an option
    record = replace(
        record,
        command="analyse",
        design=FactorOptions(
            conditions=tuple(other_rows.conditions),
            item=() if is_named_item else tuple(items),
        ),
        response=response,
        n_items=len(uses.table.items.levels),
        conditions=tuple(uses.conditions),
        warnings=tuple(warnings),
    )
    return _with_problems(replace(record, columns=_checked_columns(record, source, columns)))


def _check_words(
    record: TableCheck,
    source: Table | None,
    unknown: UnknownLayout,
    other_rows: OtherRows,
    table: Any,
) -> TableCheck:
    """Adds to the record what `surprisal` and `fit` read of a table with a row per word.

    Args:
        source: the table as its file has it.
        unknown: the error of `lmdiag.load_stimuli`, which has the table as it is read.
        other_rows: says which columns are words, positions, texts and the response.
        table: the name of the file, or rows in memory.
    """
    from lmdiag.analysis.human import read_human
    from lmdiag.analysis.procedures import Procedure

    response = other_rows.response
    procedure = Procedure(response=response or "surprisal")
    record = replace(record, command="surprisal", response=response)
    try:
        words = read_human(table, chosen=procedure, options=record.options)
        texts = words.running_texts().texts
    except BadInput as problem:  # what is wrong once the columns are named as proposed
        return replace(record, others=(f"then: {problem}",))
    first_text, _ = words.reads()
    record = replace(
        record,
        notes=tuple(words.notes),
        reads=(first_text.removeprefix("reads "),),
        texts=f"{len(texts):,}, of {len(words.place_of_word):,} words",
        warnings=tuple(note.removeprefix("warning: ") for note in words.gap_notes()),
    )
    uses = [CheckedColumn(name, use) for name, use in words.uses().items()]
    # the names of these uses say in words what a column is
    columns = [replace(column, why=column.use) for column in _checked_columns(record, source, uses)]
    record = replace(record, columns=tuple(columns))
    if not response:
        return _with_problems(record)
    # with a response, `fit` and, if conditions are found, `analyse` read the table, too
    response_option = f"--response {shlex.quote(response)}"
    typed = " ".join(filter(None, [as_typed(record.options), response_option]))
    # a table with surprisals is fitted without asking a model
    model = "" if "surprisal" in unknown.columns else "--model M "
    others = [f"response: lmdiag fit {shlex.quote(record.file)} {model}{typed}"]
    if "item" in unknown.table.columns:
        levels = _uses_of_responses(unknown.table, ["item"], response).conditions
        conditions = [name for name in levels if name not in other_rows.columns.values()]
        if conditions:
            command = f"lmdiag analyse {shlex.quote(record.file)} {response_option}"
            others.append(f"conditions: {', '.join(conditions)}: {command}")
    return _with_problems(replace(record, others=(*record.others, *others)))


def _check_cloze_responses(record: TableCheck, source: Table | None, table: Any) -> TableCheck:
    """Adds to the record what `cloze` reads of a table of people's responses, or why it does not.

    Args:
        source: the table as its file has it.
        table: the name of the file, or rows in memory.
    """
    record = replace(record, command="cloze")
    try:
        rows = stimuli.load(table, record.task, responses=True, **record.options.stored())
    except BadInput as problem:
        return replace(record, others=(*record.others, f"then: {problem}"))
    cloze_check = _check_stimuli(record, source, rows)
    # with what the record says of the file, in place of what it says of the responses
    return replace(cloze_check, n_rows=record.n_rows, lacks=record.lacks, other=record.other)


def _uses_of_responses(
    table: Table, items: Sequence[str], response: str, conditions: Sequence[str] = ()
) -> ColumnUses:
    """Returns what each column of a table of responses is used for in an analysis over items.

    Items occur in three forms here. `items` has the columns by whose values the user tells items
    apart, as ["Experiment", "nr"]. The analysis needs one column, `item`, with the item of each
    row. It is made of them: "2 14" for item 14 of experiment 2. The frame still has the columns of
    the file beside it. If the file has a column `item` of its own, which the user does not name,
    the made column takes its place.

    Args:
        table: the table as it is read.
        items: columns that name the items together, as the user spells them.
        response: the column of the response.
        conditions: columns that the user names; () to find them.
    """
    from pandas import DataFrame

    from lmdiag.stimuli.designs.conditions import uses_of
    from lmdiag.stimuli.designs.design import joined_items

    # names of rows, as R writes them, stand in a column without a name, which is left out
    named_columns = {name: values for name, values in table.columns.items() if name}
    frame = DataFrame(named_columns, dtype=object)
    item_columns = [column_like(name, frame) for name in items]  # as the table spells them
    frame_with_item = frame.assign(item=joined_items(frame[item_columns]))
    return uses_of(
        frame_with_item,
        conditions=[column_like(name, frame) for name in conditions],
        response=column_like(response, frame),
        # what messages call the column of items; "" stands for several columns
        item=item_columns[0] if len(item_columns) == 1 else "",
    )


# ---- columns -------------------------------------------------------------------------------------


def _use_of(name: str, why: str) -> str:
    """Returns the `use` of a column other than texts, items and conditions, e.g. "covariate".

    Args:
        name: name of the column.
        why: what a design says that the column is, e.g. "not a condition (fillers)".

    >>> _use_of("type", "not a condition (fillers)"), _use_of("length", "covariate (numbers)")
    ('not used', 'covariate')
    """
    start = why.partition(" (")[0]
    use = _USE_OF_DESCRIPTION.get(start, start)
    return "list" if use == "not used" and is_named_as(name, "list") else use


def _checked_columns(
    record: TableCheck, source: Table | None, uses: Iterable[CheckedColumn]
) -> tuple[CheckedColumn, ...]:
    """Returns the columns of a file in their order, then columns that options make.

    Of the latter, the conditions are listed, and columns of which `why` says what they are. A
    column has another name in lmdiag if an option says so, or if its name is only similar to a
    known one: "Sentence" is read as "sentence".

    Args:
        record: has the options.
        source: the table as its file has it; None for test suites, whose columns are not listed.
        uses: columns by the names under which they are read; () if nothing is read.
    """
    if source is None:
        return ()
    # Uses by the name in lmdiag. Each column of the file takes its own out; what is left are
    # columns that options make, as `condition` of wide ones.
    remaining = {column.name: column for column in uses}
    uses_in_options = _uses_in_options(record.options, source)
    columns = []
    for name in source.columns:
        if name in ROW_NAMES:
            continue
        # the name under which the column is read: a use that an option gives, or a like name
        read_as = uses_in_options.get(name, "")
        if read_as not in remaining:
            read_as = column_like(name, remaining)
        column = remaining.pop(read_as, None) or CheckedColumn(name, _use_by_name(name))
        columns.append(
            replace(
                column,
                name=name,
                use=uses_in_options.get(name, column.use),
                read_as=read_as if column.name != name else "",
                values=_example_values(source, name),
            )
        )
    for column in remaining.values():
        if column.use == "condition" or column.why:
            columns.append(replace(column, is_made=True))
    return tuple(columns)


def _uses_in_options(options: TableOptions, source: Table) -> dict[str, str]:
    """Returns column of the file -> its use by the options of the user.

    For example {"ia": "word"} for `--columns word=ia`. `region=A..C` names all columns from A to C.
    """
    names = [*source.columns]
    uses: dict[str, str] = {}
    for text in options.columns:
        use, _, column = text.partition("=")
        start, dots, end = column.partition("..")
        first = column_like(start, names)
        last = column_like(end, names)
        if dots and first in names and last in names:
            region_names = names[names.index(first) : names.index(last) + 1]
            uses |= dict.fromkeys(region_names, "region")
        else:
            uses[column_like(column, names)] = use
    for name in options.wide:
        uses[column_like(name, names)] = "wide"
    for text in options.critical:
        name, _ = column_and_start(text, names)
        uses[column_like(name, names)] = "critical"
    return uses


def _use_by_name(name: str) -> str:
    """Returns the use that the name of a column suggests, or "not used".

    It is for tables that are not read, and for columns that no reading uses.

    >>> _use_by_name("Sentence"), _use_by_name("region_2"), _use_by_name("rt")
    ('sentence', 'region', 'not used')
    """
    plain_name = folded(name)
    if re.fullmatch(r"region\d+", plain_name):
        return "region"
    for text_name in READ_AS:
        if folded(text_name) == plain_name:
            return text_name
    return "not used"


def _example_values(source: Table, name: str) -> tuple[str, ...]:
    """Returns the first three distinct values of a column as texts; empty values are left out."""
    # lazily: only `_ROWS_FOR_VALUES` of the values are looked at
    filled = (value for value in source.columns[name] if value not in (None, ""))
    distinct = dict.fromkeys(str(value) for value in islice(filled, _ROWS_FOR_VALUES))
    shown = [*distinct][:_SHOWN_VALUES]
    return tuple(shortened(visible(text), _LONGEST_VALUE) for text in shown)


def _with_problems(record: TableCheck) -> TableCheck:
    """Returns the record whose columns have the warnings and the error that name them.

    A line that begins with the name of a column belongs to this column: "number: 3 items lack pl".
    Any other line belongs to the columns that it names after the word "column" or "each".
    """
    lines = [*record.warnings]
    if record.error:
        lines.append(record.error)
    problems: dict[str, list[str]] = {column.name: [] for column in record.columns}
    for line in lines:
        columns_of_line = [x for x in record.columns if _is_named(x, line, after="^")]
        if not columns_of_line:
            after = r"\bcolumn |\beach "
            columns_of_line = [x for x in record.columns if _is_named(x, line, after=after)]
        for column in columns_of_line:
            problems[column.name].append(line)
    columns = [replace(x, problems=tuple(problems[x.name])) for x in record.columns]
    return replace(record, columns=tuple(columns))


def _is_named(column: CheckedColumn, line: str, *, after: str) -> bool:
    """Returns whether a line has the name of a column directly after a match of a pattern.

    For example, "the column nr is empty" has the name "nr" after "column ".

    Args:
        column: has its name in the file, and maybe another one in lmdiag.
        line: a warning or an error.
        after: the pattern; "^" is the beginning of the line.
    """
    names = "|".join(re.escape(name) for name in (column.name, column.read_as) if name)
    return bool(re.search(rf"(?:{after})(?:{names})(?=[\s:,;]|$)", line))


# ---- tokens --------------------------------------------------------------------------------------


def _byte_split_lines(rows: Stimuli, model: str) -> Iterator[str]:
    """Yields a line for each script whose characters the tokenizer of a model splits into bytes.

    For example "gpt2 splits Thai characters into bytes in 12 of 40 rows". The last line names the
    languages of such rows. Tokens of such words are parts of characters, so that their surprisals
    are hard to interpret.

    Args:
        rows: stimuli, of which the texts and the column `language` are used.
        model: Hub id or local folder.
    """
    from lmdiag.models import LoadOptions
    from lmdiag.models.demo import demo_folder
    from lmdiag.models.loading.load import load_tokenizer
    from lmdiag.models.tokens.spelling import split_scripts

    columns = rows.columns()
    texts = rows.texts("context", "target", "right_context", "sentence")
    folder = model
    if model.startswith("demo:"):
        folder = str(demo_folder(model.removeprefix("demo:")))
    tokenizer, warning = load_tokenizer(folder, LoadOptions())
    if warning:
        yield f"warning: {warning}"
    scripts_of_rows = split_scripts(tokenizer, texts)
    rows_of_script: Counter[str] = Counter()
    split_languages = set()
    languages = columns.get("language", [""] * len(rows))
    for language, scripts in zip(languages, scripts_of_rows, strict=True):
        rows_of_script.update(scripts)
        if scripts and language:
            split_languages.add(str(language))
    for script, n in rows_of_script.most_common():
        share = f"in {n:,} of {len(rows):,} rows"
        yield f"{model} splits {script} characters into bytes {share}"
    if split_languages:
        yield f"languages with such rows: {', '.join(sorted(split_languages))}"
    if not rows_of_script:
        yield f"{model} splits no character into bytes"
