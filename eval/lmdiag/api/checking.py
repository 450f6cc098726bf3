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
"""Values among which the distinct ones that are shown are looked for."""

_USES = {
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
"""What a column is, in words -> its use."""

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
    >>> found = lmdiag.check(rows)
    >>> [(column.name, column.use) for column in found.columns]
    [('item', 'item'), ('number', 'condition'), ('sentence', 'sentence')]
    >>> found.reads
    ('item 1, sg: A hen ran.',)
    """
    keywords: dict[str, Any] = {**reading}
    design = pop_options(FactorOptions, keywords)
    options = TableOptions.of(keywords)
    data = str(table) if isinstance(table, Path) else table
    file = data if isinstance(data, str) else MEMORY
    checked = TableCheck(file, task or "", options=options, design=design)
    source: Table | None = None
    try:
        checked = replace(checked, task=task or stimuli.only_task(stimuli.tasks(data), data))
        source = _source_table(data, checked.task, options)
        checked = replace(checked, n_rows=len(source or ()), first_rows=_first_rows(source))
        return _check_rows(checked, source, data, model, allow_duplicates=allow_duplicates)
    except BadInput as error:
        columns = _checked_columns(checked, source, ())
        return _with_problems(replace(checked, columns=columns, error=str(error)))


def _check_rows(
    checked: TableCheck, source: Table | None, table: Any, model: str | None, *,
    allow_duplicates: bool,
) -> TableCheck:  # fmt: skip
    """Completes the record of a table: what is read of it, or options that may read it.

    Raises `BadInput` for what is wrong in the table.
    """
    stored_options = checked.options.stored()
    try:
        rows = stimuli.load(
            table, checked.task, allow_duplicates=allow_duplicates, **stored_options
        )
    except UnknownLayout as unknown:
        return _check_unknown_layout(checked, source, unknown, table)
    tokens = tuple(_byte_split_lines(rows, model)) if model else ()
    checked = replace(_check_stimuli(checked, source, rows), tokens=tokens)
    if checked.command != "run" or rows.form != "sentences" or rows.regions or not source:
        return checked

    def read_with(further: TableOptions) -> Stimuli:
        options = checked.options.with_further(further).stored()
        return stimuli.load(table, checked.task, allow_duplicates=allow_duplicates, **options)

    command = _command_with_contexts(checked, source, read_with)
    return replace(checked, others=(*checked.others, *command))


def _source_table(table: Any, task: str, options: TableOptions) -> Table | None:
    """Returns the table as its file has it, before options change it; None for test suites."""
    if isinstance(table, str):
        rows = find(table).read(task, options.sheet)
    elif stimuli.is_suite(table):
        return None
    else:
        rows = read_memory(table)
    return None if rows.form == "suites" else rows


def _first_rows(source: Table | None) -> tuple[Mapping[str, str], ...]:
    """Returns the first five rows, each as column -> text."""
    if source is None:
        return ()
    names = [name for name in source.columns if name not in ROW_NAMES]
    first_rows = zip(*(source.columns[name][:_SHOWN_ROWS] for name in names), strict=True)
    texts = (["" if value is None else visible(str(value)) for value in row] for row in first_rows)
    return tuple(dict(zip(names, row, strict=True)) for row in texts)


# ---- what is read --------------------------------------------------------------------------------


def _check_stimuli(checked: TableCheck, source: Table | None, rows: Stimuli) -> TableCheck:
    """Adds to the record what is read of stimuli: texts, design, columns and warnings.

    Args:
        source: the table as its file has it; None for test suites.
        rows: the stimuli that were read from it.
    """
    from lmdiag.stimuli.designs.design import check_columns, design_of, item_columns
    from lmdiag.stimuli.proposing.other_rows import responses_beside_texts

    options = DesignOptions(**checked.design.stored())
    check_columns({rows.task: rows}, options)
    design = design_of(rows, options)
    columns = rows.columns()
    if design is None:
        return replace(checked, n_rows=len(rows), columns=_checked_columns(checked, source, ()))
    is_cloze = rows.form == "cloze"
    source_columns = columns if source is None else source.columns
    other = None
    if not is_cloze and not rows.compared:
        other = _rows_beside_sentences(rows, source_columns)
        other = other or responses_beside_texts(source_columns)
        other = _with_item_of(other, rows, source_columns)
    checked = replace(
        checked,
        command="cloze" if is_cloze else "run",
        n_rows=design.n_rows,
        form=design.form,
        reads=tuple(design.rows),
        summary=design.summary(),
        notes=tuple(f"responses: {x}" for x in rows.notes) if is_cloze else rows.notes,
        texts=", ".join(design.texts),
        n_items=design.n_items,
        n_contrasts=len({*columns["contrast"]}) if rows.compared else 0,
        conditions=tuple(design.levels),
        cells=design.cells,
        n_complete=design.n_complete,
        regions={} if checked.options.critical else _regions(rows),
        comparing=design.comparing_options,
        warnings=tuple(design.warnings),
        other=other.text() if other else "",
    )
    texts = _RESPONSES if is_cloze else dict(zip(design.texts, design.texts, strict=True))
    uses = [CheckedColumn(name, use) for name, use in texts.items()]
    if design.n_items and not is_cloze:
        uses += [CheckedColumn(name, "item") for name in item_columns(options, columns)]
    uses += [CheckedColumn(x, "condition", levels=of) for x, of in design.levels.items()]
    uses += [CheckedColumn(x, _use_of(x, why), why) for x, why in design.other_uses.items()]
    return _with_problems(replace(checked, columns=_checked_columns(checked, source, uses)))


def _with_item_of(other: OtherRows | None, rows: Stimuli, names: Iterable[str]) -> OtherRows | None:
    """Returns responses in numbers with the item column of stimuli in the same table."""
    if other is None or other.command != "analyse":
        return other
    columns = rows.columns()
    items = columns.get("item")
    item = next((x for x in names if items and x != "item" and columns.get(x) == items), "")
    return other._replace(columns={**other.columns, "item": item}) if item else other


def _regions(rows: Stimuli) -> dict[str, str]:
    """Returns number of a region -> its text in the first row that has one."""
    texts: dict[int, str] = {}
    for sentence, regions in zip(rows.texts("sentence"), rows.regions or (), strict=False):
        for region in regions:
            text = sentence[region["start"] : region["end"]].strip()
            if not texts.get(region["number"]):
                texts[region["number"]] = text
    return {str(number): texts[number] for number in sorted(texts)}


def _rows_beside_sentences(rows: Stimuli, columns: Mapping[str, Sequence[Any]]) -> OtherRows | None:
    """Returns what else a table with sentences may hold, or None: words of texts, responses.

    Such a table is read as stimuli; the record tells which other command may read it, too.
    """
    from lmdiag.stimuli.proposing.other_rows import (
        responses,
        responses_beside_texts,
        words_of_texts,
    )
    from lmdiag.stimuli.values.layouts import TableLayout

    if rows.form != "sentences" or rows.regions:
        return None
    layout = TableLayout({name: x for name, x in columns.items() if name not in ROW_NAMES})
    return words_of_texts(layout) or responses_beside_texts(columns) or responses(layout)


def _command_with_contexts(
    checked: TableCheck, source: Table, read_with: Callable[[TableOptions], Stimuli]
) -> Iterator[str]:
    """Yields the most likely command that joins other columns of text to the sentences.

    A context may stand before the sentences, or a word after them. The second line is the first
    row as models would read it. Nothing is yielded if there are no such columns.

    Args:
        read_with: reads the table with further options.
    """
    columns = {name: x for name, x in source.columns.items() if name not in ROW_NAMES}
    readings = readings_with_contexts(columns, read_with)
    proposals = filter(None, (_proposal(checked, reading, ()) for reading in readings))
    for proposal in islice(proposals, 1):
        command = f"lmdiag run {shlex.quote(checked.file)} --model M {proposal.typed}"
        yield f"or: {command}"
        yield f"reads: {proposal.rows[0]}"


def _check_unknown_layout(
    checked: TableCheck, source: Table | None, unknown: UnknownLayout, table: Any
) -> TableCheck:
    """Adds to the record what a table that `run` cannot read may be.

    That is a table for another command, which is then checked as this command reads it, or options
    with which `run` may read it.
    """
    from lmdiag.stimuli.proposing.other_rows import responses_beside_texts

    checked = replace(checked, n_rows=len(unknown.table), lacks=unknown.lacks, command="")
    checked = replace(checked, columns=_checked_columns(checked, source, ()))
    other = unknown.other
    named_by_user = _named_items_and_conditions(checked, unknown)
    if other and other.command == "analyse":
        items = {"item": checked.design.item[0]} if checked.design.item else {}
        other = other._replace(
            columns={**other.columns, **items},
            items=checked.design.item,
            conditions=checked.design.conditions,
        )
    elif other and named_by_user:
        problem = f"{', '.join(named_by_user)} cannot be items or conditions here: {other.text()}"
        raise BadInput(f"{checked.file}: {problem}; leave out --item and --conditions")
    if other is None:
        responses_table = responses_beside_texts(own_names(unknown.table.columns))
        readings = [_without_proposed_item(checked, reading, table) for reading in unknown.readings]
        if readings:
            responses_table = _with_item_of(responses_table, readings[0].rows, unknown.columns)
        proposals = (_proposal(checked, reading, unknown.notes) for reading in readings)
        return replace(
            checked,
            notes=source.notes if source else (),
            proposals=tuple(filter(None, proposals)),
            others=(f"perhaps: {responses_table.text()}",) if responses_table else (),
        )
    checked = replace(checked, other=other.text())
    if other.command == "analyse" and {*other.columns} >= {"item", "response"}:
        return _check_responses(checked, source, unknown.table, other)
    checked = replace(checked, options=checked.options.with_further(other.options))
    if other.command == "surprisal":
        return _check_words(checked, source, unknown, other, table)
    if other.command == "cloze":
        return _check_cloze_responses(checked, source, table)
    return checked


def _named_items_and_conditions(checked: TableCheck, unknown: UnknownLayout) -> tuple[str, ...]:
    """Returns the columns that the user names as items and conditions.

    `BadInput` for a name that is neither a column of the file nor one that proposed options make.
    """
    named_by_user = (*checked.design.item, *checked.design.conditions)
    stimuli_read = [reading.rows for reading in unknown.readings]
    columns = dict.fromkeys(
        (*unknown.columns, *(name for x in stimuli_read for name in x.columns()))
    )
    for name in named_by_user:
        if column_like(name, columns) not in columns:
            existing = ", ".join(unknown.columns)
            problem = f"no column {name!r}{suggest(name, columns)}"
            raise BadInput(f"{checked.file}: {problem}; there are {existing:.800}")
    return named_by_user


def _without_proposed_item(checked: TableCheck, reading: Reading, table: Any) -> Reading:
    """Returns a reading without its option `item=`, if the user names the columns of items.

    Users name columns as in the file, and two items cannot both hold.
    """
    columns = tuple(x for x in reading.options.columns if not x.startswith("item="))
    options = replace(reading.options, columns=columns)
    if not checked.design.item or options == reading.options:
        return reading
    rows = stimuli.load(table, checked.task, **checked.options.with_further(options).stored())
    return reading._replace(options=options, rows=rows)


def _proposal(checked: TableCheck, reading: Reading, notes: Iterable[str]) -> Proposal | None:
    """Returns a reading as a proposal; None if it lacks a column that the user names.

    Args:
        notes: what is a guess, for the proposal.
    """
    from lmdiag.stimuli.designs.design import check_columns, design_of

    options = checked.options.with_further(reading.options)
    factors = DesignOptions(**checked.design.stored())
    try:
        check_columns({reading.rows.task: reading.rows}, factors)
    except BadInput:
        return None
    design = design_of(reading.rows, factors)
    if design is None:
        return Proposal(options, (), "", tuple(notes))
    return Proposal(options, tuple(design.rows), design.summary(), (*design.warnings, *notes))


def _check_responses(
    checked: TableCheck, source: Table | None, table: Table, other: OtherRows
) -> TableCheck:
    """Adds to the record what `analyse` reads of a table of responses."""
    from lmdiag.stimuli.designs.column_warnings import (
        is_within_readers,
        refuse_between_items,
        refuse_lookalike_levels,
        warnings_of,
        why_no_conditions,
    )

    items = other.items or [other.columns["item"]]
    response = other.columns["response"]
    uses = _uses_of_responses(table, items, response, other.conditions)
    refuse_lookalike_levels(uses)
    refuse_between_items(uses)
    names = [name for name in uses.other_uses if is_within_readers(uses, name)]
    if names and not (uses.conditions or checked.design.item):
        of_readers = other._replace(items=(uses.reader_column,), conditions=names[:1])
        checked = replace(checked, other=of_readers.text())
        return _check_responses(checked, source, table, of_readers)
    reason = "" if uses.conditions else why_no_conditions(uses)
    counts = {name: uses.table.columns[name].by_count() for name in uses.conditions}
    columns = [CheckedColumn(response, "response"), *(CheckedColumn(x, "item") for x in items)]
    columns += [
        CheckedColumn(name, "condition", levels={level: counts[name][level] for level in levels})
        for name, levels in uses.conditions.items()
    ]
    item_columns = (*items, *(column_like(name, table.columns) for name in items))
    other_uses = {name: why for name, why in uses.other_uses.items() if name not in item_columns}
    columns += [CheckedColumn(name, _use_of(name, why), why) for name, why in other_uses.items()]
    checked = replace(
        checked,
        command="analyse",
        design=FactorOptions(
            conditions=tuple(other.conditions),
            item=() if [*map(folded, items)] == ["item"] else (*items,),
        ),
        response=response,
        n_items=len(uses.table.items.levels),
        conditions=tuple(uses.conditions),
        warnings=(*warnings_of(uses, table.places), *filter(None, [reason])),
    )
    return _with_problems(replace(checked, columns=_checked_columns(checked, source, columns)))


def _check_words(
    checked: TableCheck, source: Table | None, unknown: UnknownLayout, other: OtherRows, table: Any
) -> TableCheck:
    """Adds to the record what `surprisal` and `fit` read of a table with a row per word."""
    from lmdiag.analysis.human import read_human
    from lmdiag.analysis.procedures import Procedure

    response = other.response
    procedure = Procedure(response=response or "surprisal")
    checked = replace(checked, command="surprisal", response=response)
    try:
        words = read_human(table, chosen=procedure, options=checked.options)
        texts = words.running_texts().texts
    except BadInput as problem:
        return replace(checked, others=(f"then: {problem}",))
    first_text, _ = words.reads()
    checked = replace(
        checked,
        notes=tuple(words.notes),
        reads=(first_text.removeprefix("reads "),),
        texts=f"{len(texts):,}, of {len(words.words):,} words",
        warnings=tuple(x.removeprefix("warning: ") for x in words.gap_notes()),
    )
    uses = [CheckedColumn(name, use) for name, use in words.uses().items()]
    columns = [
        replace(column, why=column.use) for column in _checked_columns(checked, source, uses)
    ]
    checked = replace(checked, columns=tuple(columns))
    if not response:
        return _with_problems(checked)
    response_option = f"--response {shlex.quote(response)}"
    typed = " ".join(filter(None, [as_typed(checked.options), response_option]))
    model = "" if "surprisal" in unknown.columns else "--model M "
    others = [f"response: lmdiag fit {shlex.quote(checked.file)} {model}{typed}"]
    if "item" in unknown.table.columns:
        levels = _uses_of_responses(unknown.table, ["item"], response).conditions
        names = [name for name in levels if name not in other.columns.values()]
        if names:
            command = f"lmdiag analyse {shlex.quote(checked.file)} {response_option}"
            others.append(f"conditions: {', '.join(names)}: {command}")
    return _with_problems(replace(checked, others=(*checked.others, *others)))


def _check_cloze_responses(checked: TableCheck, source: Table | None, table: Any) -> TableCheck:
    """Adds to the record what `cloze` reads of a table of responses."""
    checked = replace(checked, command="cloze")
    try:
        rows = stimuli.load(table, checked.task, responses=True, **checked.options.stored())
    except BadInput as problem:
        return replace(checked, others=(*checked.others, f"then: {problem}"))
    cloze_check = _check_stimuli(checked, source, rows)
    return replace(cloze_check, n_rows=checked.n_rows, lacks=checked.lacks, other=checked.other)


def _uses_of_responses(
    table: Table, items: Sequence[str], response: str, conditions: Sequence[str] = ()
) -> ColumnUses:
    """Returns what each column of a table of responses is used for in an analysis over items."""
    from pandas import DataFrame

    from lmdiag.stimuli.designs.conditions import uses_of
    from lmdiag.stimuli.designs.design import joined_items

    frame = DataFrame({name: x for name, x in table.columns.items() if name}, dtype=object)
    names = [column_like(name, frame) for name in items]
    return uses_of(
        frame.assign(item=joined_items(frame[names])),
        [column_like(name, frame) for name in conditions],
        column_like(response, frame),
        item=items[0] if len(items) == 1 else "",
    )


# ---- columns -------------------------------------------------------------------------------------


def _use_of(name: str, why: str) -> str:
    """Returns the `use` of a column other than texts, items and conditions.

    Args:
        why: what the column is, in words, as designs describe it.
    """
    start = why.partition(" (")[0]
    use = _USES.get(start, start)
    return "list" if use == "not used" and is_named_as(name, "list") else use


def _checked_columns(
    checked: TableCheck, source: Table | None, uses: Iterable[CheckedColumn]
) -> tuple[CheckedColumn, ...]:
    """Returns the columns of a file in their order, then those that options make.

    Args:
        uses: columns by the names under which they are read; () if nothing is read.
    """
    if source is None:
        return ()
    unused_uses = {column.name: column for column in uses}
    uses_in_options = _uses_in_options(checked.options, source)
    columns = []
    for name in source.columns:
        if name in ROW_NAMES:
            continue
        read_as = uses_in_options.get(name, "")
        read_as = read_as if read_as in unused_uses else column_like(name, unused_uses)
        column = unused_uses.pop(read_as, None) or CheckedColumn(name, _use_by_name(name))
        use = uses_in_options.get(name, column.use)
        alias = read_as if column.name != name else ""
        columns.append(
            replace(column, name=name, use=use, read_as=alias, values=_example_values(source, name))
        )
    made_columns = [x for x in unused_uses.values() if x.use == "condition" or x.why]
    return (*columns, *(replace(column, is_made=True) for column in made_columns))


def _uses_in_options(options: TableOptions, source: Table) -> dict[str, str]:
    """Returns column of the file -> what the options of the user say it is."""
    names = [*source.columns]
    uses: dict[str, str] = {}
    for text in options.columns:
        use, _, column = text.partition("=")
        first, dots, last = (column_like(part, names) for part in column.partition(".."))
        if dots and {first, last} <= {*names}:
            uses |= dict.fromkeys(names[names.index(first) : names.index(last) + 1], "region")
        else:
            uses[column_like(column, names)] = use
    uses |= {column_like(name, names): "wide" for name in options.wide}
    critical = (column_and_start(text, names)[0] for text in options.critical)
    return uses | {column_like(name, names): "critical" for name in critical}


def _use_by_name(name: str) -> str:
    """Returns the use that the name of a column suggests, though it is not read by this name."""
    plain = folded(name)
    if re.fullmatch(r"region\d+", plain):
        return "region"
    return next((known for known in READ_AS if folded(known) == plain), "not used")


def _example_values(source: Table, name: str) -> tuple[str, ...]:
    """Returns the first three distinct values of a column as texts."""
    filled = (value for value in source.columns[name] if value not in (None, ""))
    distinct = dict.fromkeys(map(str, islice(filled, _ROWS_FOR_VALUES)))
    return tuple(shortened(visible(text), 60) for text in islice(distinct, _SHOWN_VALUES))


def _with_problems(checked: TableCheck) -> TableCheck:
    """Returns the record with each warning and error also at the columns that it names.

    A line is of the columns that it begins with; of columns that it names later only if there are
    none.
    """
    problems: dict[str, list[str]] = {column.name: [] for column in checked.columns}
    for line in (*checked.warnings, *filter(None, [checked.error])):
        subjects = [x for x in checked.columns if _names_after(x, line, "^")]
        others = [x for x in checked.columns if _names_after(x, line, r"\bcolumn |\beach ")]
        for column in subjects or others:
            problems[column.name].append(line)
    columns = [replace(column, problems=(*problems[column.name],)) for column in checked.columns]
    return replace(checked, columns=tuple(columns))


def _names_after(column: CheckedColumn, line: str, before: str) -> bool:
    """Returns whether a line has the name of a column after what the pattern `before` matches."""
    names = "|".join(re.escape(name) for name in (column.name, column.read_as) if name)
    return bool(re.search(rf"(?:{before})(?:{names})(?=[\s:,;]|$)", line))


# ---- tokens --------------------------------------------------------------------------------------


def _byte_split_lines(rows: Stimuli, model: str) -> Iterator[str]:
    """Yields a line for each script whose characters the tokenizer of a model splits into bytes.

    A line has the number of rows concerned; the last one names their languages. Surprisals of such
    words depend on parts of characters.
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
    scripts = split_scripts(tokenizer, texts)
    rows_of_script = Counter(script for names in scripts for script in names)
    languages = columns.get("language", [""] * len(rows))
    split_languages = sorted(
        {str(x) for x, names in zip(languages, scripts, strict=True) if names and x}
    )
    for script, n in rows_of_script.most_common():
        share = f"in {n:,} of {len(rows):,} rows"
        yield f"{model} splits {script} characters into bytes {share}"
    if split_languages:
        yield f"languages with such rows: {', '.join(split_languages)}"
    if not rows_of_script:
        yield f"{model} splits no character into bytes"
