"""Predictions on disk, of runs and of other programs (`docs/specification.md`, sections 7 and 8).

`predictions.parquet` has a row per stimulus, perturbation and shuffle. Files of other programs, in
JSON lines or Parquet, have the same columns, of which all but `id` may be absent, and so may rows:
what the others allow is computed. `COLUMNS` declares the columns for reading and checking, `schema`
their types in Parquet.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NamedTuple

from annotated_types import Ge, Le

from lmdiag.asking.possible import impossible_sum, is_below_first
from lmdiag.asking.protocol import Predictions
from lmdiag.files.reading import opened, read_json_lines, read_parquet
from lmdiag.files.writing import replacing
from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.measures.scores import without_differences
from lmdiag.results.original_code import is_original_output, original_records
from lmdiag.results.results import advising_to_overwrite
from lmdiag.stimuli.perturbations import NONE
from lmdiag.text import first_problem, suggest, type_adapter
from lmdiag.types import BadInput, SentenceAnswer, WordSpan

if TYPE_CHECKING:
    import pyarrow as pa

    from lmdiag.stimuli import Stimuli

_Count = Annotated[int, Ge(0)]
_LogProb = Annotated[float, Le(0.01)]
"""Nats. That of a certain word exceeds 0 by rounding, in low precision."""

_NO_LOG_PROB = -9999.0
"""What vLLM writes for a token below all that it tells."""

_LEAST_LOG_PROB = -1e5
"""Nats. No word has a finite log-probability below this; such a value stands for something."""

_Bits = Annotated[float, Ge(0)]


class _Word(NamedTuple):
    """A `WordSpan` in a file; other programs may leave out the last fields."""

    start: _Count
    end: _Count
    log_prob: _LogProb | None = None
    n_tokens: _Count | None = None


_COUNT = "an integer from 0 up"
_LOG_PROB = "a number, the natural log of a probability, which is never above 0"
_WORDS = "a list of objects with start, end (characters), log_prob and n_tokens, one per word"
COLUMNS: Mapping[str, tuple[Any, str]] = {
    "id": (str, "the id of a row"),
    "perturbation": (str, "the name of a perturbation"),
    "run": (_Count, _COUNT),
    "log_prob": (_LogProb | None, f"{_LOG_PROB} (null for a word that has no score)"),
    "rank": (_Count | None, _COUNT),
    "n_tokens": (_Count | None, _COUNT),
    "top_words": (list[str] | None, "a list of words, best first"),
    "top_log_probs": (list[_LogProb] | None, f"a list; each value is {_LOG_PROB}"),
    "words": (list[_Word] | None, _WORDS),
    "entropies": (list[_Bits | None] | None, "a list of numbers from 0 up, in bits"),
    "labels": (list[_LogProb | None] | None, f"a list; each value is {_LOG_PROB}"),
    "agreement": (list[float | None] | None, "EW and MW, in the order of `AGREEMENT_LAYOUT`"),
}
"""Column of `predictions.parquet` -> type of its values, and what they are, in messages."""
PER_SETTING = ("perturbation", "run")
"""Columns with one value in `Predictions`; the others have one per row."""
PER_ROW = tuple(name for name in COLUMNS if name not in PER_SETTING)

SettingKey = tuple[str, int]
"""A setting: (perturbation, run)."""
UNNAMED: SettingKey = ("", 0)
"""The setting of a file without the columns `PER_SETTING`."""

_CHUNK = 10_000
"""Rows whose values become Python objects at once."""

_MOST_PROBABILITY = 1.01
"""Sums of probabilities exceed 1 by rounding, in low precision."""

_WORD_STARTS = (" ", "Ġ", "▁")
"""How tokenizers mark the beginning of a word: as text, in byte-level BPE, and in SentencePiece."""


# ---- files ---------------------------------------------------------------------------------------


@cache
def schema() -> pa.Schema:
    """Returns the types of the columns of `predictions.parquet`, in the order of `COLUMNS`."""
    import pyarrow as pa

    text = pa.string()
    count = pa.int32()
    real = pa.float64()
    word = pa.struct({"start": count, "end": count, "log_prob": real, "n_tokens": count})
    return pa.schema({
        "id": text, "perturbation": text, "run": count, "log_prob": real, "rank": count,
        "n_tokens": count, "top_words": pa.list_(text), "top_log_probs": pa.list_(real),
        "words": pa.list_(word), "entropies": pa.list_(real), "labels": pa.list_(real),
        "agreement": pa.list_(real),
    })  # fmt: skip


def write(path: Path, predictions: Iterable[Predictions]) -> None:
    """Writes predictions of several settings to one Parquet file, in the order given."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [schema().empty_table()]  # `concat_tables` needs one, also without predictions
    for part in predictions:
        n_rows = len(part.id)
        columns = {}
        for name in PER_ROW:
            columns[name] = getattr(part, name) or [None] * n_rows  # a column may be []
        for name in PER_SETTING:
            columns[name] = [getattr(part, name)] * n_rows
        tables.append(pa.table(columns, schema=schema()))
    with replacing(path) as file:
        pq.write_table(pa.concat_tables(tables), file, compression="zstd")


def read(path: Path) -> dict[SettingKey, Predictions]:
    """Returns (perturbation, number of the shuffle) -> the predictions of this setting in a file.

    A file that names no settings has one, `UNNAMED`. It is Parquet or JSON lines, of a run or of
    another program. `BadInput`, which names file, row and column, if it is missing or damaged, or a
    value is not what its column holds.
    """
    with opened(path) as file:
        is_parquet = file.read(4) == b"PAR1"
    if not is_parquet:
        return {UNNAMED: predictions_of_records(read_json_lines(path))}
    columns = _parquet_columns(path)
    agreement = columns.pop("agreement", None)  # `_parquet_columns` has checked it
    columns = _checked_columns(columns, lambda row: f"{path}, row {row + 1}")
    if agreement:
        columns["agreement"] = agreement
    has_settings = all(name in columns for name in PER_SETTING)
    if not has_settings:
        all_rows = range(len(columns["id"]))
        return {UNNAMED: Predictions(**_rows_of_columns(columns, all_rows))}
    rows_of_setting: dict[SettingKey, list[int]] = {}
    keys = zip(columns["perturbation"], columns["run"], strict=True)
    for row, key in enumerate(keys):
        rows_of_setting.setdefault(key, []).append(row)
    predictions_of_setting = {}
    for (perturbation, shuffle), rows in rows_of_setting.items():
        predictions_of_setting[perturbation, shuffle] = Predictions(
            **_rows_of_columns(columns, rows), perturbation=perturbation, run=shuffle
        )
    return predictions_of_setting


def _parquet_columns(path: Path) -> dict[str, list[Any]]:
    """Returns the columns of a Parquet file as Python values.

    `agreement`, the longest, is checked here, in Arrow: checks of its Python values would take
    seconds.
    """
    table = read_parquet(path, COLUMNS)
    if "id" not in table.column_names:
        raise BadInput(f"{path} has no column id: predictions have id, top_words and log_prob")
    columns: dict[str, list[Any]] = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        has_type = column.type == schema().field(name).type
        if name == "words" and has_type:
            columns[name] = _words_of_rows(column)
        elif name == "agreement" and column.null_count < len(column):
            if not has_type or not _is_agreement(column):
                n_values = len(AGREEMENT_LAYOUT)
                raise BadInput(f"{path}: agreement must be lists of {n_values} numbers in [0, 1]")
            columns[name] = _tuples_of_rows(column)
        else:
            columns[name] = column.to_pylist()
    return columns


def _words_of_rows(column: pa.ListArray) -> list[list[tuple[Any, ...]] | None]:
    """Returns the words of each row as tuples, in the order of `_Word`; None for a missing row.

    They are read field by field: to make a dictionary of each word would take seconds.
    """
    # the first `flatten` joins the words of all rows, the second one gives a column for each field
    fields = [field.to_pylist() for field in column.flatten().flatten()]
    words = zip(*fields, strict=True)
    lengths = column.value_lengths().to_pylist()
    # each `islice` takes the next n words from the same iterator
    return [None if n is None else list(islice(words, n)) for n in lengths]


def _is_agreement(column: pa.ListArray) -> bool:
    """Whether each list of a column is as long as `AGREEMENT_LAYOUT`, with numbers in [0, 1].

    Lists, and numbers in them, may be missing.
    """
    import pyarrow.compute as pc

    bounds = pc.min_max(column.flatten()).as_py()
    low, high = bounds["min"], bounds["max"]
    are_in_range = low is None or 0 <= low <= high <= _MOST_PROBABILITY
    has_length = pc.equal(pc.list_value_length(column), len(AGREEMENT_LAYOUT))
    return are_in_range and pc.all(has_length).as_py() is not False  # None: all rows are missing


def _tuples_of_rows(column: pa.ListArray) -> list[tuple[Any, ...] | None]:
    """Returns the lists of a column as tuples; None for a missing row.

    Rows with the same context have equal lists, which share one tuple: this saves memory.
    """
    distinct: dict[Any, Any] = {}
    tuples = []
    for start in range(0, len(column), _CHUNK):
        for values in column[start : start + _CHUNK].to_pylist():
            row = values and tuple(values)  # None stays None
            tuples.append(distinct.setdefault(row, row))
    return tuples


def predictions_of_records(records: Iterable[tuple[str, Mapping[str, Any]]]) -> Predictions:
    """Returns the predictions of some records, whose values are checked.

    `BadInput` names the record with a value that is not what its column holds.

    Args:
        records: where each record stands, e.g. "FILE:3", and its values by the name of their
            column, e.g. {"id": "role88-1", "log_prob": -2.5}.
    """
    places = []
    values = []
    for place, record in records:
        places.append(place)
        values.append(record)
    names = [name for name in PER_ROW if name != "agreement"]  # only lmdiag computes it
    for place, record in zip(places, values, strict=True):
        for key in record.keys() - COLUMNS.keys():
            absent_names = [name for name in names if name not in record]
            suggestion = suggest(key, absent_names)
            if suggestion:  # probably misspelled; other keys are ignored
                raise BadInput(f"{place}: there is no key {key!r}{suggestion}")
    values_of_column = {name: [record.get(name) for record in values] for name in names}
    columns = _checked_columns(values_of_column, lambda row: places[row])
    return Predictions(**_rows_of_columns(columns, range(len(values))))


def _checked_columns(
    raw_columns: Mapping[str, list[Any]], place: Callable[[int], str]
) -> dict[str, list[Any]]:
    """Returns all columns of `PER_ROW`, and others that are given, with checked values.

    Raises `BadInput` in each of these cases: a value is not of the type of its column; a number
    stands for a missing log-probability, as -9999; the lists of top words and of their
    log-probabilities differ in length; the words of a sentence are not in its order.

    Args:
        raw_columns: name -> a value per row; absent columns have None in every row.
        place: number of a row, from 0 -> its name in messages.
    """
    from pydantic import ValidationError

    columns: dict[str, list[Any]] = dict.fromkeys(PER_ROW, [None] * len(raw_columns["id"]))
    # each value by the type of its column
    for name, values in raw_columns.items():
        column_type: Any = list[COLUMNS[name][0]]  # type: ignore[misc]
        try:
            columns[name] = type_adapter(column_type).validate_python(values, strict=True)
        except ValidationError as error:
            problem = first_problem(error)  # its location is the row, then the place in the value
            row_name = place(int(problem.location[0]))
            rule = f"{name} must be {COLUMNS[name][1]}"
            raise BadInput(
                f"{row_name}: {name}{problem.path(1)} is {problem.given}; {rule}"
            ) from None
    # the values of a row together
    names = ("log_prob", "top_words", "top_log_probs", "words", "labels")
    rows = zip(*(columns[name] for name in names), strict=True)
    for row, (log_prob, top_words, top_log_probs, words, labels) in enumerate(rows):
        word_log_probs = [word.log_prob for word in words or ()]
        for value in (log_prob, *(top_log_probs or ()), *(labels or ()), *word_log_probs):
            if value is not None and _stands_for_none(value):
                advice = f"give null for none ({_NO_LOG_PROB} is what vLLM writes)"
                raise BadInput(f"{place(row)}: a log-probability is {value}; {advice}")
        n_words = len(top_words or ())
        if top_log_probs is not None and len(top_log_probs) != n_words:
            lengths = f"top_log_probs has {len(top_log_probs)} values, top_words {n_words}"
            raise BadInput(f"{place(row)}: {lengths}: give as many")
        previous_end = 0
        for number, word in enumerate(words or ()):
            if not previous_end <= word.start <= word.end:
                raise BadInput(
                    f"{place(row)}: words[{number}] is from {word.start} to {word.end}; give start "
                    "and end of each word, in characters, in the order of the sentence"
                )
            previous_end = word.end
    columns["words"] = [
        None if words is None else tuple(WordSpan(*word) for word in words)
        for words in columns["words"]
    ]
    return columns


def _stands_for_none(log_prob: float) -> bool:
    """Whether a number in the place of a log-probability means that there is none.

    >>> _stands_for_none(-9999.0), _stands_for_none(-12.5), _stands_for_none(-math.inf)
    (True, False, False)
    """
    return log_prob == _NO_LOG_PROB or -math.inf < log_prob < _LEAST_LOG_PROB


def _rows_of_columns(columns: Mapping[str, Any], rows: Sequence[int | None]) -> dict[str, Any]:
    """Returns the values of some rows for each column of `PER_ROW`, as arguments of `Predictions`.

    For example, {"id": ["b", "a"], "log_prob": [-1.0, -2.0], ...} for the rows [1, 0]. Columns that
    `Predictions` has empty by default, as `words`, are [] if no row has a value.

    Args:
        columns: name -> a value per row, or [].
        rows: numbers of rows, from 0; None for a row without values, which gets None.
    """
    values_of_column = {}
    for name in PER_ROW:
        values = []
        if columns[name]:
            values = [None if row is None else columns[name][row] for row in rows]
        is_empty_by_default = name in ("words", "entropies", "labels", "agreement")
        if is_empty_by_default and all(value is None for value in values):
            values = []
        values_of_column[name] = values
    return values_of_column


# ---- predictions of rows -------------------------------------------------------------------------


def align(
    part: Predictions,
    rows: Sequence[str],
    where: str,
    *,
    partial: bool = False,
    foreign: bool = False,
) -> Predictions:
    """Returns the predictions in the order of the rows, exactly one for each.

    `BadInput` names the first few ids that are missing, doubled or not among the rows.

    Args:
        part: predictions in any order.
        rows: ids of the rows.
        where: name of the file, for messages.
        partial: whether rows may lack a prediction: they get None for all values.
        foreign: whether there may be predictions of other rows: they are left out.
    """
    if part.id == list(rows):
        return part
    row_ids = set(rows)
    foreign_ids = [row_id for row_id in part.id if row_id not in row_ids]
    if foreign_ids and not foreign:
        remedy = "take them out, or name their --task"
        raise BadInput(f"{where}: {ids_text(foreign_ids)} not among the rows: {remedy}")
    counts = Counter(part.id)
    doubled_ids = [row_id for row_id, n in counts.items() if n > 1 and row_id in row_ids]
    if doubled_ids:
        raise BadInput(
            f"{where}: {ids_text(doubled_ids)} more than once: give each row one prediction"
        )
    position_of_id = {row_id: i for i, row_id in enumerate(part.id)}
    missing_ids = [row_id for row_id in rows if row_id not in position_of_id]
    if missing_ids and not partial:
        raise BadInput(f"{where}: {ids_text(missing_ids)} missing: give every row a prediction")
    columns = _rows_of_columns(vars(part), [position_of_id.get(row_id) for row_id in rows])
    columns["id"] = list(rows)  # also of rows without a prediction
    return replace(part, **columns)


def check_possible(part: Predictions, stimuli: Stimuli, where: str) -> None:
    """Raises `BadInput` for probabilities at one blank that cannot be true together.

    Words of which none is the beginning of another exclude each other, so that their probabilities
    sum to at most 1. Summed are the top words at a blank, and the targets of all rows with this
    blank that are one token. Targets of several tokens do not count: a masked model is asked for
    them with several masks, which have another distribution. And a target of one token that has
    rank 1 cannot be less probable than the first of the top words.

    Args:
        part: predictions in the order of the rows.
        stimuli: the rows, unperturbed. Sentences may have a column target that is not read.
        where: name of the file, for messages.
    """
    rows = stimuli.columns()
    has_blanks = stimuli.asks_words and part.perturbation in ("", NONE) and not any(part.labels)
    # a blank is identified by its texts, and where these are not known, by the number of the row
    blanks: Sequence[object] = range(len(part.id))
    if has_blanks:
        blanks = list(zip(rows["context"], rows["right_context"], strict=True))
    last_row_of_blank = {blank: row for row, blank in enumerate(blanks)}
    log_probs_at: dict[object, dict[str, float]] = {}  # blank -> word -> its log-probability
    names = ("log_prob", "rank", "n_tokens", "top_words", "top_log_probs")
    columns = zip(*(getattr(part, name) for name in names), strict=True)
    for row, (log_prob, rank, n_tokens, top_words, top_log_probs) in enumerate(columns):
        is_token = n_tokens == 1 and log_prob is not None
        row_name = f"{where}: id {part.id[row]}"
        if top_log_probs and is_token and is_below_first(log_prob, rank, top_log_probs):
            raise BadInput(
                f"{row_name} has rank 1 and log_prob {log_prob:.4g}, below the "
                f"{top_log_probs[0]:.4g} of the first of its top words"
            )
        word_log_probs = list(zip(top_words or (), top_log_probs or (), strict=False))
        if has_blanks and is_token:
            word_log_probs.append((rows["target"][row], log_prob))
        blank = blanks[row]
        log_prob_of_word = log_probs_at.setdefault(blank, {})
        for word, value in word_log_probs:
            key = without_differences(word)  # words that may be the same tokens are one
            log_prob_of_word[key] = max(value, log_prob_of_word.get(key, -math.inf))
        if row < last_row_of_blank[blank]:
            continue  # the words of a later row are missing yet
        del log_probs_at[blank]  # saves memory: no later row has this blank
        total = impossible_sum(log_prob_of_word)
        if total is not None:
            raise BadInput(
                f"{row_name}: its top words and the words of rows with the same blank have "
                f"{total:.4f} of probability together, more than 1"
            )


def ids_text(names: Sequence[str]) -> str:
    """Returns how many ids there are and the first few.

    >>> ids_text(["a"]), ids_text(["a", "b", "c", "d"])
    ('id a', '4 ids (a, b, c, …)')
    """
    if len(names) == 1:
        return f"id {names[0]}"
    first_ids = ", ".join(names[:3])
    if len(names) > 3:
        first_ids += ", …"
    return f"{len(names)} ids ({first_ids})"


def read_run(
    file: Path, stimuli: Mapping[str, Stimuli]
) -> dict[str, dict[SettingKey, Predictions]]:
    """Returns task -> (perturbation, shuffle) -> predictions in the order of the task's rows.

    Args:
        file: `predictions.parquet` of a run. A setting in it has the rows of all tasks that were
            asked in this setting.
        stimuli: task -> its rows. No id is in two tasks: `lmdiag.runs.inputs.load_inputs` refuses
            that.

    Raises:
        BadInput: the file is missing or damaged, has an id that no task has, lacks some rows of a
            task, or has probabilities that cannot be true together. The message ends with the
            advice to run again with --overwrite.
    """
    with advising_to_overwrite():
        predictions_of_setting = read(file)
        ids_of_task = {task: rows.columns()["id"] for task, rows in stimuli.items()}
        task_of_id = {row_id: task for task, row_ids in ids_of_task.items() for row_id in row_ids}
        settings_of_task: dict[str, dict[SettingKey, Predictions]] = {task: {} for task in stimuli}
        for key, predictions in predictions_of_setting.items():
            foreign_ids = [row_id for row_id in predictions.id if row_id not in task_of_id]
            if foreign_ids:
                tasks = ", ".join(stimuli)
                raise BadInput(f"{file}: {ids_text(foreign_ids)} in none of the tasks {tasks}")
            tasks_of_setting = dict.fromkeys(task_of_id[row_id] for row_id in predictions.id)
            for task in tasks_of_setting:
                # foreign to a task are here the rows of the other tasks in the same setting
                aligned = align(predictions, ids_of_task[task], str(file), foreign=True)
                check_possible(aligned, stimuli[task], str(file))
                settings_of_task[task][key] = aligned
    return settings_of_task


# ---- predictions of other programs ---------------------------------------------------------------


class ExternalPredictions(NamedTuple):
    """Predictions of another program for the rows of a task.

    Attributes:
        shuffles: in the order of the rows; one for each shuffle of a run's file, otherwise one.
        missing: ids of the rows that have no prediction, whose values are None.
        notes: a line for each thing that was changed in what was read.
    """

    shuffles: list[Predictions]
    missing: list[str]
    notes: list[str]


def read_external(path: Path, stimuli: Stimuli, setting: str = "none") -> ExternalPredictions:
    """Reads the predictions in a file for the rows of a task.

    Args:
        path: JSON lines or Parquet, or a folder with files of the original code; or the file
            `predictions.parquet` of a run, which may have several tasks and settings.
        stimuli: the rows of the task.
        setting: perturbation that is taken from the file of a run; "none" for any other file.

    Raises:
        BadInput: the file cannot be read, lacks the setting, has predictions of other rows or
            impossible values, or has nothing that can be scored. The message names file and line.
    """
    row_ids = stimuli.columns()["id"]
    notes: list[str] = []
    if is_original_output(path):
        records, notes = original_records(path, stimuli.task, stimuli.columns())
        predictions_of = {UNNAMED: predictions_of_records(records)}
    else:
        predictions_of = read(path)
    if UNNAMED not in predictions_of:  # the file of a run
        shuffles = [part for key, part in sorted(predictions_of.items()) if key[0] == setting]
        if not shuffles:
            raise BadInput(f"{path} has no setting {setting}: run it with --perturb {setting}")
        # the file may have rows of other tasks, too: they are left out
        aligned_shuffles = [align(part, row_ids, str(path), foreign=True) for part in shuffles]
        return ExternalPredictions(aligned_shuffles, [], [])
    if setting != "none":
        raise BadInput(f"{path} has no settings: leave --setting {setting} out")
    predictions, changes = normalise(predictions_of[UNNAMED], str(path))
    aligned = align(predictions, row_ids, str(path), partial=True)
    check_possible(aligned, stimuli, str(path))
    sentences = stimuli.columns().get("sentence", ())  # rows with blanks have none
    for row_id, words, text in zip(row_ids, aligned.words, sentences, strict=False):
        if words and words[-1].end > len(text):
            raise BadInput(
                f"{path}: a word of {row_id} ends at {words[-1].end}, but its sentence has "
                f"{len(text)} characters: give positions in the sentence of the data"
            )
    predicted_ids = set(predictions.id)
    missing = [row_id for row_id in row_ids if row_id not in predicted_ids]
    return ExternalPredictions([aligned], missing, notes + changes)


def normalise(part: Predictions, where: str) -> tuple[Predictions, list[str]]:
    """Returns predictions of another program with the values that a run would record, and notes.

    These values change: the log-probability and the number of tokens of a sentence, if they are not
    given, become sums over its words; a log-probability above 0, which is rounding, becomes 0; and
    top words lose the mark of a word's beginning, as "Ġdog" has it, with a note.

    Args:
        part: the predictions.
        where: name of the file, for messages.

    Raises:
        BadInput: there are no predictions, nothing in them can be scored, only some rows have top
            words, or top words have other white space.
    """
    if not part.id:
        raise BadInput(f"{where} is empty: write one prediction per line")
    if all(value is None for value in (*part.top_words, *part.log_prob, *part.words)):
        raise BadInput(f"{where} has neither top_words nor log_prob: nothing can be computed")
    # a list that only some rows have would give a figure over these rows alone
    for name, values in (("top_words", part.top_words), ("words", part.words)):
        pairs = zip(part.id, values, strict=False)  # without words of sentences, `words` is []
        ids_without = [row_id for row_id, value in pairs if value is None]
        if 0 < len(ids_without) < len(part.id):
            raise BadInput(
                f"{where}: {name} are not given for id {ids_without[0]}; give all or none"
            )
    # sentences: sums over their words, in place of what no row gives
    log_prob = part.log_prob
    n_tokens = part.n_tokens
    words_of_rows: list[tuple[WordSpan, ...] | None] = []
    answers = []
    counts_are_given = []  # of each row, whether all its words have a number of tokens
    for words in part.words:  # [] if the rows are not sentences
        given_words = words or ()
        counts_are_given.append(all(word.n_tokens is not None for word in given_words))
        spans = tuple(word._replace(n_tokens=word.n_tokens or 0) for word in given_words)
        words_of_rows.append(spans)
        answers.append(SentenceAnswer(spans))
    if answers and all(value is None for value in log_prob):
        log_prob = [answer.log_prob for answer in answers]
    if answers and all(value is None for value in n_tokens):
        counts = zip(answers, counts_are_given, strict=True)
        n_tokens = [answer.n_tokens if is_given else None for answer, is_given in counts]
    top_words, n_marked = _without_marks(part, where)
    normalised_part = replace(
        part,
        log_prob=[None if value is None else min(value, 0.0) for value in log_prob],
        n_tokens=n_tokens,
        top_words=top_words,
        words=words_of_rows,
    )
    note = f"{where}: the leading space (or Ġ, ▁) of {n_marked} top words was removed"
    return normalised_part, [note] if n_marked else []


def _without_marks(part: Predictions, where: str) -> tuple[list[list[str] | None], int]:
    """Returns the top words of each row without the mark of a word's beginning, as "Ġdog" has it.

    The second value is the number of words that had a mark. For example, [["Ġdog", "cat"], None]
    gives [["dog", "cat"], None] and 1. `BadInput` for other white space in a word.
    """
    n_marked = 0
    lists = list[list[str] | None]()
    for row_id, top_words in zip(part.id, part.top_words, strict=True):
        if top_words is None:
            lists.append(None)
            continue
        unmarked_words = []
        for word in top_words:
            has_mark = word.startswith(_WORD_STARTS)
            n_marked += has_mark
            unmarked = word[1:] if has_mark else word
            if " ".join(unmarked.split()) != unmarked:  # no expected word could equal it
                raise BadInput(
                    f"{where}: id {row_id}: top_words has {word!r:.60}: remove the white space, "
                    'but for one space before a word (for a token of white space alone, give "")'
                )
            unmarked_words.append(unmarked)
        lists.append(unmarked_words)
    return lists, n_marked
