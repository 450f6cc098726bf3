"""Loads and checks stimuli: rows with a blank and a word to be scored at it, or whole sentences.

`data` is a directory written by `lmdiag build` (or any directory whose README.md has YAML
`configs:`), the id of a Hub data set, a table of your own rows, whose task name is the file's stem,
a test suite (.json), a folder of test suites or of minimal pairs, whose task name is the folder's,
a text file (.txt) of an extended set, which its name says, or rows in memory. What rows ask, and
their form, follows from their columns. Without a directory `lmdiag`, that name stands for the
published items, which are built into the user's cache on first use, and `demo` for the bundled
ones.

A task that is named after a diagnostic of lmdiag is that diagnostic, and has its columns: this is
checked here, and nowhere else.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, Unpack

from lmdiag import diagnostics
from lmdiag.files.writing import write_atomically
from lmdiag.options import RowKeywords, RowOptions, check_names, pop_options, with_fields
from lmdiag.stimuli.dataset import VERBS, find, read_file
from lmdiag.stimuli.extended_sets import EXTENDED_SETS, TEXT, extended_rows
from lmdiag.stimuli.proposing.proposals import UnknownLayout, check_layout
from lmdiag.stimuli.reading.conversion import checked_columns
from lmdiag.stimuli.reading.steps import read_items
from lmdiag.stimuli.responses import are_responses, response_rows
from lmdiag.stimuli.stimulus_rows import Stimuli, sample
from lmdiag.tables.table_files import MEMORY, Table, read_memory
from lmdiag.text import suggest
from lmdiag.types import AS_IT_IS, BadInput, TableKeywords, TableOptions

__all__ = ["VERBS", "Stimuli", "is_data", "is_suite", "load", "load_verbs", "saved_rows", "tasks"]


def tasks(data: Any, *, revision: str | None = None) -> list[str]:
    """Returns the names of the tasks of a data set: its configs but for verbs and questions.

    Rows in memory are one task, see `load`.
    """
    return find(data, revision).tasks if isinstance(data, str) else [MEMORY]


def only_task(names: Sequence[str], data: object) -> str:
    """Returns the one task of a data set or run; `BadInput` if it has several."""
    if len(names) != 1:
        raise BadInput(f"{data} has several tasks: choose from {', '.join(names) or 'none'}")
    return names[0]


def saved_rows(data: Any, task: str, folder: Path) -> Path:
    """Writes rows in memory into a file of a task, and returns it; equal rows have one file.

    It is JSON lines, or JSON of a suite, in a folder whose name is a digest of its content.
    `BadInput` if the name of the task cannot be that of a file.

    Args:
        data: rows in memory, as `load` takes them.
        task: name of the rows.
        folder: directory in which the folder of the file is made.
    """
    if Path(task).name != task:
        raise BadInput(f"--tasks {task!r} is the name of the rows, and of their file: leave out /")
    if is_suite(data):
        suffix = ".json"
        content = json.dumps(data, indent=1)
    else:
        suffix = ".jsonl"
        columns = read_memory(data).columns
        lines = []
        for values in zip(*columns.values(), strict=True):
            row = dict(zip(columns, values, strict=True))
            lines.append(f"{json.dumps(row)}\n")
        content = "".join(lines)
    digest = hashlib.sha256(content.encode()).hexdigest()[:8]
    file = folder / f"data-{digest}" / f"{task}{suffix}"
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(file, content.encode())
    return file


def is_suite(data: Any) -> bool:
    """Returns whether rows in memory are a test suite, as a dict with items and predictions."""
    return isinstance(data, Mapping) and {"items", "predictions"} <= data.keys()


def is_data(path: Path) -> bool:
    """Returns whether there is a data set or a file of rows at a path.

    Of a file, the content is not looked at: it is read when it is loaded. A folder must have a card
    with configs, or nothing but test suites or minimal pairs.
    """
    try:
        find(str(path))
    except BadInput:
        return False
    return True


class StimulusKeywords(RowKeywords, TableKeywords, total=False):
    """Keywords of `load`: which rows are read, and how a table."""


@with_fields(RowOptions, TableOptions, keywords=StimulusKeywords)
def load(
    data: Any = "lmdiag",
    task: str | None = None,
    *,
    revision: str | None = None,
    responses: bool = False,
    **reading: Unpack[StimulusKeywords],
) -> Stimuli:
    """Reads the stimuli of one task and checks them.

    Only the columns `context` and `target` are needed, or `sentence`, or `sentence_good` and
    `sentence_bad`. `good` and `contrast`, both or neither, say which rows are compared with each
    other.

    Args:
        data: directory, file or Hub data set (`ID@REVISION` for a branch, tag or commit); or rows
            in memory: a DataFrame, a list of dicts, a dict of columns, a suite as a dict.
        task: name of a config, or the stem of the file; None for the only one there is. For rows in
            memory, a name for them; the name of a diagnostic is for rows with its columns.
        revision: branch, tag or commit of a Hub data set; ignored for local data.
        responses: the rows are people's responses, see `lmdiag.stimuli.responses`, also where their
            columns may be stimuli.
        reading: how a table of own rows is read, fields of `lmdiag.types.TableOptions`, e.g.
            columns={"context": "text"}, filter="type=critical", wide=["match", "mismatch"].

    Raises:
        BadInput: unknown data set or task, a missing column, a row that breaks a rule; the message
            names file, row and column.

    >>> import lmdiag
    >>> rows = [{"context": "A robin is a", "target": word} for word in ("bird", "tool")]
    >>> lmdiag.load_stimuli(rows, "robins")
    <Stimuli robins: 2 rows of rows>
    >>> lmdiag.load_stimuli("demo", "neg136").columns()["context"][0]
    'A trout is a'
    """
    check_names(load, reading)
    given: dict[str, Any] = {**reading}
    row_options = pop_options(RowOptions, given)  # leaves those of tables
    options = TableOptions.of(given)
    # the rows as they were read, of a data set or in memory
    if isinstance(data, str | Path):
        source = str(data)
        dataset = find(source, revision)
        tasks = dataset.tasks
        if not task:
            task = tasks[0] if len(tasks) == 1 else None
        if task not in tasks:
            choices = ", ".join(tasks) or "none"
            if task is None:
                raise BadInput(f"{source} has several tasks: choose from {choices}")
            problem = f"{source} has no task {task!r}{suggest(task, tasks)}: choose from {choices}"
            raise BadInput(f"{problem}; for rows of your own give --data NAME.csv")
        table = dataset.read(task, options.sheet)
        responses = responses or are_responses(table, options)
        if responses:  # read again as text, since NA may be a word
            table = dataset.read(task, options.sheet, raw=True)
        commit = dataset.commit(task)
        source = dataset.name
    else:
        source = MEMORY
        task = task or MEMORY
        commit = None
        table = _memory_rows(data, task)
        responses = responses or are_responses(table, options)
    # the stimuli that they are: of an extended set, of responses, or of the user's own table
    if task in EXTENDED_SETS and {*table.columns} == {TEXT}:
        table = extended_rows(table, task)
    if responses:
        return _stimuli(response_rows(table, options), task, source, commit, row_options)

    def read(further: TableOptions) -> Stimuli:
        rows = read_items(
            table,
            task,
            options.with_further(further),
            check=check_layout,
            allow_duplicates=row_options.allow_duplicates,
        )
        return _stimuli(rows, task, source, commit, row_options)

    try:
        return read(AS_IT_IS)
    except UnknownLayout as unknown:  # its message proposes further options that read the rows
        raise unknown.with_readings(read) from None


def _memory_rows(data: Any, task: str) -> Table:
    """Returns the rows of data in memory: of a test suite (a dict, as in its JSON) or a table.

    `task` is the name of a suite that has none.
    """
    if not is_suite(data):
        return read_memory(data)
    from lmdiag.stimuli.syntaxgym import suite_rows

    return suite_rows(data, MEMORY, task)


def _stimuli(
    table: Table, task: str, source: str, commit: str | None, options: RowOptions
) -> Stimuli:
    """Returns the checked rows of a table as stimuli, or a sample of them if there is a limit.

    Args:
        table: as its rows were read.
        task: whose rows they are.
        source: where the data came from, as the user named it.
        commit: of the data set; None if it is not known.
        options: the limit and the seed of the sample.
    """
    columns = checked_columns(table, task)
    index = table.rows.index
    stimuli = Stimuli(
        task, columns, source, revision=commit, form=table.form, index=index, notes=table.notes
    )
    if options.limit is None or options.limit >= len(table):
        return stimuli
    by_item = task not in diagnostics.built_in() and any(columns["item"])
    diagnostic = diagnostics.get(task, table.form)
    rows = sample(columns, options.limit, options.seed, diagnostic, by_item=by_item)
    sampled_columns = {name: [values[row] for row in rows] for name, values in columns.items()}
    # the sample has the design of all rows
    return replace(
        stimuli, _columns=sampled_columns, index=index[rows], perturbed={}, whole=stimuli
    )


def load_verbs(data: str, *, revision: str | None = None) -> list[tuple[str, str]]:
    """Returns the distinct (singular, plural) present-tense forms of verbs, in order.

    They are in a data set with a config `verbs`, or in a csv file. A header may name the two
    columns (singular,plural or sing,plur, others are ignored); a file without a header has only
    these two. `BadInput`: no such data, or a line without two forms.
    """
    if Path(data).suffix == ".csv":
        table = read_file(Path(data))
    else:
        dataset = find(data, revision)
        if VERBS not in dataset.configs:
            remedy = "name a csv of singular,plural by --verbs"
            raise BadInput(f"{data} has no config {VERBS}: {remedy}")
        table = dataset.read(VERBS)
    columns = {name.strip().lower(): column for name, column in table.columns.items()}
    header: tuple[str, ...] = ()
    for names in (("singular", "plural"), ("sing", "plur")):  # of lmdiag, of the published list
        if not header and {*names} <= columns.keys():
            header = names
    if not header and not len(columns) == len(table.columns) == 2:
        raise BadInput(f"{table.name}:1: name the columns singular,plural in a header")
    pairs = [*zip(*(columns[name] for name in header or columns), strict=True)]
    for row, forms in enumerate(pairs):
        if not all(isinstance(form, str) and form.strip() for form in forms):
            raise table.error(row, "expected a singular and a plural form")
    if not header:  # the first line was read as names of columns, and is a pair, too
        pairs.insert(0, tuple(table.columns))
    if not pairs:
        raise BadInput(f"{table.name} has no verbs: expected a csv of singular,plural")
    return [*dict.fromkeys((singular.strip(), plural.strip()) for singular, plural in pairs)]
