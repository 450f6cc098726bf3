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
from lmdiag.options import taken, with_fields
from lmdiag.stimuli import Stimuli
from lmdiag.stimuli.dataset import find
from lmdiag.stimuli.proposing.proposals import UnknownLayout, own_names, readings_with_contexts
from lmdiag.stimuli.values.critical_words import column_and_start
from lmdiag.stimuli.values.layouts import as_typed
from lmdiag.stimuli.values.names import is_named
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
    from lmdiag.stimuli.designs.conditions import Uses
    from lmdiag.stimuli.proposing.other_rows import OtherRows
    from lmdiag.stimuli.proposing.proposals import Reading

_N_ROWS, _N_VALUES = 5, 3

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
    given: dict[str, Any] = {**reading}
    design = taken(FactorOptions, given)
    options = TableOptions.of(given)
    data = str(table) if isinstance(table, Path) else table
    file = data if isinstance(data, str) else MEMORY
    found = TableCheck(file, task or "", options=options, design=design)
    source: Table | None = None
    try:
        found = replace(found, task=task or stimuli.only_task(stimuli.tasks(data), data))
        source = _source_table(data, found.task, options)
        found = replace(found, n_rows=len(source or ()), first_rows=_first_rows(source))
        return _read(found, source, data, model, allow_duplicates=allow_duplicates)
    except BadInput as error:
        columns = _columns(found, source, ())
        return _with_problems(replace(found, columns=columns, error=str(error)))


def _read(
    found: TableCheck, source: Table | None, table: Any, model: str | None, *,
    allow_duplicates: bool,
) -> TableCheck:  # fmt: skip
    """The record of a table, if it can be read or its layout is not known."""
    how = found.options.stored()
    try:
        rows = stimuli.load(table, found.task, allow_duplicates=allow_duplicates, **how)
    except UnknownLayout as unknown:
        return _of_unknown(found, source, unknown, table)
    tokens = tuple(_split_lines(rows, model)) if model else ()
    found = replace(_of_stimuli(found, source, rows), tokens=tokens)
    if found.command != "run" or rows.form != "sentences" or rows.regions or not source:
        return found

    def read(further: TableOptions) -> Stimuli:
        options = found.options.with_further(further).stored()
        return stimuli.load(table, found.task, allow_duplicates=allow_duplicates, **options)

    return replace(found, others=(*found.others, *_after_contexts(found, source, read)))


def _source_table(table: Any, task: str, options: TableOptions) -> Table | None:
    """The rows as they are in their source; None for suites."""
    if isinstance(table, str):
        rows = find(table).read(task, options.sheet)
    elif stimuli.is_suite(table):
        return None
    else:
        rows = read_memory(table)
    return None if rows.form == "suites" else rows


def _first_rows(source: Table | None) -> tuple[Mapping[str, str], ...]:
    """The first rows as texts."""
    if source is None:
        return ()
    names = [name for name in source.columns if name not in ROW_NAMES]
    first = zip(*(source.columns[name][:_N_ROWS] for name in names), strict=True)
    texts = (["" if value is None else visible(str(value)) for value in row] for row in first)
    return tuple(dict(zip(names, row, strict=True)) for row in texts)


# ---- what is read --------------------------------------------------------------------------------


def _of_stimuli(found: TableCheck, source: Table | None, rows: Stimuli) -> TableCheck:
    """What is read of stimuli."""
    from lmdiag.stimuli.designs.design import check_columns, design_of, item_columns
    from lmdiag.stimuli.proposing.other_rows import responses_beside_texts

    options = DesignOptions(**found.design.stored())
    check_columns({rows.task: rows}, options)
    design = design_of(rows, options)
    columns = rows.columns()
    if design is None:
        return replace(found, n_rows=len(rows), columns=_columns(found, source, ()))
    is_cloze = rows.form == "cloze"
    beside = columns if source is None else source.columns
    other = None
    if not is_cloze and not rows.compared:
        other = _beside_sentences(rows, beside) or responses_beside_texts(beside)
        other = _with_item_of(other, rows, beside)
    found = replace(
        found,
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
        regions={} if found.options.critical else _regions(rows),
        comparing=design.comparing,
        warnings=tuple(design.warnings),
        other=other.text() if other else "",
    )
    texts = _RESPONSES if is_cloze else dict(zip(design.texts, design.texts, strict=True))
    uses = [CheckedColumn(name, use) for name, use in texts.items()]
    if design.n_items and not is_cloze:
        uses += [CheckedColumn(name, "item") for name in item_columns(options, columns)]
    uses += [CheckedColumn(x, "condition", levels=of) for x, of in design.levels.items()]
    uses += [CheckedColumn(x, _use_of(x, why), why) for x, why in design.others.items()]
    return _with_problems(replace(found, columns=_columns(found, source, uses)))


def _with_item_of(other: OtherRows | None, rows: Stimuli, names: Iterable[str]) -> OtherRows | None:
    """Responses in numbers with the column of items that stimuli of the same table have."""
    if other is None or other.command != "analyse":
        return other
    columns = rows.columns()
    items = columns.get("item")
    item = next((x for x in names if items and x != "item" and columns.get(x) == items), "")
    return other._replace(columns={**other.columns, "item": item}) if item else other


def _regions(rows: Stimuli) -> dict[str, str]:
    """The numbers of regions, and the text of each in the first row that has one."""
    texts: dict[int, str] = {}
    for sentence, regions in zip(rows.texts("sentence"), rows.regions or (), strict=False):
        for region in regions:
            text = sentence[region["start"] : region["end"]].strip()
            if not texts.get(region["number"]):
                texts[region["number"]] = text
    return {str(number): texts[number] for number in sorted(texts)}


def _beside_sentences(rows: Stimuli, columns: Mapping[str, Sequence[Any]]) -> OtherRows | None:
    """The words or responses of people that a table with a column of sentences may have, too."""
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


def _after_contexts(
    found: TableCheck, source: Table, read: Callable[[TableOptions], Stimuli]
) -> Iterator[str]:
    """Yields a command that reads contexts before sentences, or words after them, and its row."""
    columns = {name: x for name, x in source.columns.items() if name not in ROW_NAMES}
    readings = readings_with_contexts(columns, read)
    proposals = filter(None, (_proposal(found, reading, ()) for reading in readings))
    for proposal in islice(proposals, 1):
        command = f"lmdiag run {shlex.quote(found.file)} --model M {proposal.typed}"
        yield f"or: {command}"
        yield f"reads: {proposal.rows[0]}"


def _of_unknown(
    found: TableCheck, source: Table | None, unknown: UnknownLayout, table: Any
) -> TableCheck:
    """What a table without texts may be, or what another command reads of it."""
    from lmdiag.stimuli.proposing.other_rows import responses_beside_texts

    found = replace(found, n_rows=len(unknown.table), lacks=unknown.lacks, command="")
    found = replace(found, columns=_columns(found, source, ()))
    other = unknown.other
    named = _named_columns(found, unknown)
    if other and other.command == "analyse":
        items = {"item": found.design.item[0]} if found.design.item else {}
        other = other._replace(
            columns={**other.columns, **items},
            items=found.design.item,
            conditions=found.design.conditions,
        )
    elif other and named:
        what = f"{', '.join(named)} cannot be items or conditions here: {other.text()}"
        raise BadInput(f"{found.file}: {what}; leave out --item and --conditions")
    if other is None:
        of_readers = responses_beside_texts(own_names(unknown.table.columns))
        readings = [_with_own_items(found, reading, table) for reading in unknown.readings]
        if readings:
            of_readers = _with_item_of(of_readers, readings[0].rows, unknown.columns)
        proposals = (_proposal(found, reading, unknown.notes) for reading in readings)
        return replace(
            found,
            notes=source.notes if source else (),
            proposals=tuple(filter(None, proposals)),
            others=(f"perhaps: {of_readers.text()}",) if of_readers else (),
        )
    found = replace(found, other=other.text())
    if other.command == "analyse" and {*other.columns} >= {"item", "response"}:
        return _of_responses(found, source, unknown.table, other)
    found = replace(found, options=found.options.with_further(other.options))
    if other.command == "surprisal":
        return _of_words(found, source, unknown, other, table)
    if other.command == "cloze":
        return _of_cloze(found, source, table)
    return found


def _named_columns(found: TableCheck, unknown: UnknownLayout) -> tuple[str, ...]:
    """The columns that the user names as items and conditions; `BadInput` for one that is none."""
    named = (*found.design.item, *found.design.conditions)
    rows = [reading.rows for reading in unknown.readings]
    names = dict.fromkeys((*unknown.columns, *(name for x in rows for name in x.columns())))
    for name in named:
        if column_like(name, names) not in names:
            there = ", ".join(unknown.columns)
            problem = f"no column {name!r}{suggest(name, names)}"
            raise BadInput(f"{found.file}: {problem}; there are {there:.800}")
    return named


def _with_own_items(found: TableCheck, reading: Reading, table: Any) -> Reading:
    """What options read that leave the item to the user, who names its columns as in the file."""
    columns = tuple(x for x in reading.options.columns if not x.startswith("item="))
    options = replace(reading.options, columns=columns)
    if not found.design.item or options == reading.options:
        return reading
    rows = stimuli.load(table, found.task, **found.options.with_further(options).stored())
    return reading._replace(options=options, rows=rows)


def _proposal(found: TableCheck, reading: Reading, notes: Iterable[str]) -> Proposal | None:
    """What options read of a table; None if they do not make a column that the user names."""
    from lmdiag.stimuli.designs.design import check_columns, design_of

    options = found.options.with_further(reading.options)
    factors = DesignOptions(**found.design.stored())
    try:
        check_columns({reading.rows.task: reading.rows}, factors)
    except BadInput:
        return None
    design = design_of(reading.rows, factors)
    if design is None:
        return Proposal(options, (), "", tuple(notes))
    return Proposal(options, tuple(design.rows), design.summary(), (*design.warnings, *notes))


def _of_responses(
    found: TableCheck, source: Table | None, table: Table, other: OtherRows
) -> TableCheck:
    """What `analyse` reads of a table of responses."""
    from lmdiag.stimuli.designs.column_warnings import (
        is_within_readers,
        refuse_between_items,
        refuse_near_levels,
        warnings_of,
        why_no_conditions,
    )

    items = other.items or [other.columns["item"]]
    response = other.columns["response"]
    uses = _uses(table, items, response, other.conditions)
    refuse_near_levels(uses)
    refuse_between_items(uses)
    names = [name for name in uses.others if is_within_readers(uses, name)]
    if names and not (uses.levels or found.design.item):
        of_readers = other._replace(items=(uses.reader,), conditions=names[:1])
        return _of_responses(replace(found, other=of_readers.text()), source, table, of_readers)
    reason = "" if uses.levels else why_no_conditions(uses)
    counts = {name: uses.rows.columns[name].by_count() for name in uses.levels}
    columns = [CheckedColumn(response, "response"), *(CheckedColumn(x, "item") for x in items)]
    columns += [
        CheckedColumn(name, "condition", levels={level: counts[name][level] for level in levels})
        for name, levels in uses.levels.items()
    ]
    own = (*items, *(column_like(name, table.columns) for name in items))
    others = {name: why for name, why in uses.others.items() if name not in own}
    columns += [CheckedColumn(name, _use_of(name, why), why) for name, why in others.items()]
    found = replace(
        found,
        command="analyse",
        design=FactorOptions(
            conditions=tuple(other.conditions),
            item=() if [*map(folded, items)] == ["item"] else (*items,),
        ),
        response=response,
        n_items=len(uses.rows.items.levels),
        conditions=tuple(uses.levels),
        warnings=(*warnings_of(uses, table.places), *filter(None, [reason])),
    )
    return _with_problems(replace(found, columns=_columns(found, source, columns)))


def _of_words(
    found: TableCheck, source: Table | None, unknown: UnknownLayout, other: OtherRows, table: Any
) -> TableCheck:
    """What `surprisal` and `fit` read of a table with a row per word."""
    from lmdiag.analysis.human import read_human
    from lmdiag.analysis.procedures import Procedure

    response = other.response
    chosen = Procedure(response=response or "surprisal")
    found = replace(found, command="surprisal", response=response)
    try:
        words = read_human(table, chosen=chosen, options=found.options)
        texts = words.running_texts().texts
    except BadInput as problem:
        return replace(found, others=(f"then: {problem}",))
    reads, _ = words.reads()
    found = replace(
        found,
        notes=tuple(words.notes),
        reads=(reads.removeprefix("reads "),),
        texts=f"{len(texts):,}, of {len(words.words):,} words",
        warnings=tuple(x.removeprefix("warning: ") for x in words.gap_notes()),
    )
    uses = [CheckedColumn(name, use) for name, use in words.uses().items()]
    columns = [replace(column, why=column.use) for column in _columns(found, source, uses)]
    found = replace(found, columns=tuple(columns))
    if not response:
        return _with_problems(found)
    named = f"--response {shlex.quote(response)}"
    typed = " ".join(filter(None, [as_typed(found.options), named]))
    model = "" if "surprisal" in unknown.columns else "--model M "
    others = [f"response: lmdiag fit {shlex.quote(found.file)} {model}{typed}"]
    if "item" in unknown.table.columns:
        levels = _uses(unknown.table, ["item"], response).levels
        names = [name for name in levels if name not in other.columns.values()]
        if names:
            command = f"lmdiag analyse {shlex.quote(found.file)} {named}"
            others.append(f"conditions: {', '.join(names)}: {command}")
    return _with_problems(replace(found, others=(*found.others, *others)))


def _of_cloze(found: TableCheck, source: Table | None, table: Any) -> TableCheck:
    """What `cloze` reads of a table of responses."""
    found = replace(found, command="cloze")
    try:
        rows = stimuli.load(table, found.task, responses=True, **found.options.stored())
    except BadInput as problem:
        return replace(found, others=(*found.others, f"then: {problem}"))
    read = _of_stimuli(found, source, rows)
    return replace(read, n_rows=found.n_rows, lacks=found.lacks, other=found.other)


def _uses(
    table: Table, items: Sequence[str], response: str, conditions: Sequence[str] = ()
) -> Uses:
    """What the columns of a table of responses are used for."""
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
    """Returns the use of a column other than texts, items and conditions, in a few words."""
    start = why.partition(" (")[0]
    use = _USES.get(start, start)
    return "list" if use == "not used" and is_named(name, "list") else use


def _columns(
    found: TableCheck, source: Table | None, uses: Iterable[CheckedColumn]
) -> tuple[CheckedColumn, ...]:
    """The columns of a file, and those that options make.

    Args:
        uses: of columns by the names under which they are read.
    """
    if source is None:
        return ()
    of_name = {column.name: column for column in uses}
    named = _named_uses(found.options, source)
    columns = []
    for name in source.columns:
        if name in ROW_NAMES:
            continue
        read_as = named.get(name, "")
        read_as = read_as if read_as in of_name else column_like(name, of_name)
        column = of_name.pop(read_as, None) or CheckedColumn(name, _known_use(name))
        use = named.get(name, column.use)
        alias = read_as if column.name != name else ""
        columns.append(
            replace(column, name=name, use=use, read_as=alias, values=_values(source, name))
        )
    made = [x for x in of_name.values() if x.use == "condition" or x.why]
    return (*columns, *(replace(column, is_made=True) for column in made))


def _named_uses(options: TableOptions, source: Table) -> dict[str, str]:
    """Column of the file -> what options say it is."""
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


def _known_use(name: str) -> str:
    """What a column that is not read under its name is used for, by the name."""
    plain = folded(name)
    if re.fullmatch(r"region\d+", plain):
        return "region"
    return next((known for known in READ_AS if folded(known) == plain), "not used")


def _values(source: Table, name: str) -> tuple[str, ...]:
    values = (value for value in source.columns[name] if value not in (None, ""))
    distinct = dict.fromkeys(map(str, islice(values, 200)))
    return tuple(shortened(visible(text), 60) for text in islice(distinct, _N_VALUES))


def _with_problems(found: TableCheck) -> TableCheck:
    """The record, whose columns have the warnings and errors that name them."""
    problems: dict[str, list[str]] = {column.name: [] for column in found.columns}
    for line in (*found.warnings, *filter(None, [found.error])):
        first = [x for x in found.columns if _concerns(x, line, "^")]
        later = [x for x in found.columns if _concerns(x, line, r"\bcolumn |\beach ")]
        for column in first or later:
            problems[column.name].append(line)
    columns = [replace(column, problems=(*problems[column.name],)) for column in found.columns]
    return replace(found, columns=tuple(columns))


def _concerns(column: CheckedColumn, line: str, before: str) -> bool:
    """Whether a line has the name of a column after what a pattern matches."""
    names = "|".join(re.escape(name) for name in (column.name, column.read_as) if name)
    return bool(re.search(rf"(?:{before})(?:{names})(?=[\s:,;]|$)", line))


# ---- tokens --------------------------------------------------------------------------------------


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
        yield f"{model} splits {script} characters into bytes {share}"
    if split:
        yield f"languages with such rows: {', '.join(split)}"
    if not counts:
        yield f"{model} splits no character into bytes"
