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
from lmdiag.results.results import advice_to_overwrite
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
    """Returns the Arrow types of `COLUMNS`."""
    import pyarrow as pa

    text = pa.string()
    count = pa.int32()
    real = pa.float64()
    word = pa.struct(zip(_Word._fields, (count, count, real, count), strict=True))
    types = (
        text, text, count, real, count, count,
        pa.list_(text), pa.list_(real), pa.list_(word), *[pa.list_(real)] * 3,
    )  # fmt: skip
    return pa.schema(zip(COLUMNS, types, strict=True))


def write(path: Path, predictions: Iterable[Predictions]) -> None:
    """Writes predictions of several settings to one Parquet file, in the order given."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    tables = [schema().empty_table()]
    for part in predictions:
        n_rows = len(part.id)
        columns = {name: getattr(part, name) or [None] * n_rows for name in PER_ROW}
        columns |= {name: [getattr(part, name)] * n_rows for name in PER_SETTING}
        tables.append(pa.table(columns, schema=schema()))
    with replacing(path) as file:
        pq.write_table(pa.concat_tables(tables), file, compression="zstd")


def read(path: Path) -> dict[SettingKey, Predictions]:
    """Returns setting -> predictions; `UNNAMED` -> predictions of a file that names no settings.

    The file is Parquet or JSON lines, of a run or of another program. `BadInput` if it is missing
    or damaged, or a value is not what its column holds; names file, row and column.
    """
    with opened(path) as file:
        is_parquet = file.read(4) == b"PAR1"
    if not is_parquet:
        return {UNNAMED: of_records(read_json_lines(path))}
    columns = _parquet_columns(path)
    agreement = columns.pop("agreement", None)  # is checked
    columns = _checked_columns(columns, lambda row: f"{path}, row {row + 1}")
    columns["agreement"] = agreement or columns["agreement"]
    if not columns.keys() >= {*PER_SETTING}:
        return {UNNAMED: Predictions(**_rows_of_columns(columns, range(len(columns["id"]))))}
    rows_of: dict[SettingKey, list[int]] = {}
    for row, key in enumerate(zip(*(columns[name] for name in PER_SETTING), strict=True)):
        rows_of.setdefault(key, []).append(row)
    return {
        key: Predictions(**_rows_of_columns(columns, rows), perturbation=key[0], run=key[1])
        for key, rows in rows_of.items()
    }


def _parquet_columns(path: Path) -> dict[str, list[Any]]:
    """Returns the columns of a Parquet file as Python values.

    `agreement`, the longest, is checked here, in Arrow: checks of its Python values would take
    seconds.
    """
    import pyarrow.compute as pc

    table = read_parquet(path, COLUMNS)
    if "id" not in table.column_names:
        raise BadInput(f"{path} has no column id: predictions have id, top_words and log_prob")
    columns: dict[str, list[Any]] = {}
    for name in table.column_names:
        column = table[name].combine_chunks()
        has_type = column.type == schema().field(name).type
        n_values = len(AGREEMENT_LAYOUT)
        if name == "words" and has_type:  # field by field: dictionaries would take seconds
            words = zip(*(part.to_pylist() for part in column.flatten().flatten()), strict=True)
            lengths = column.value_lengths().to_pylist()
            columns[name] = [None if n is None else [*islice(words, n)] for n in lengths]
        elif name == "agreement" and column.null_count < len(column):
            low, high = pc.min_max(column.flatten()).as_py().values() if has_type else (-1, -1)
            is_long = has_type and pc.all(pc.equal(pc.list_value_length(column), n_values)).as_py()
            if not (low is None or 0 <= low <= high <= _MOST_PROBABILITY) or is_long is False:
                raise BadInput(f"{path}: agreement must be lists of {n_values} numbers in [0, 1]")
            equal_values: dict[Any, Any] = {}  # rows of one context share their values in memory
            parts = (column[i : i + _CHUNK].to_pylist() for i in range(0, len(column), _CHUNK))
            tuples = (values and tuple(values) for part in parts for values in part)
            columns[name] = [equal_values.setdefault(values, values) for values in tuples]
        else:
            columns[name] = column.to_pylist()
    return columns


def of_records(records: Iterable[tuple[str, Mapping[str, Any]]]) -> Predictions:
    """Returns checked predictions of records: where each is, e.g. "FILE:3", and its values."""
    places, values = tuple(zip(*records, strict=True)) or ((), ())
    names = [name for name in PER_ROW if name != "agreement"]  # which no other program has
    for place, record in zip(places, values, strict=True):
        for key in record.keys() - COLUMNS.keys():
            if near := suggest(key, [name for name in names if name not in record]):
                raise BadInput(f"{place}: there is no key {key!r}{near}")
    values_of_column = {name: [record.get(name) for record in values] for name in names}
    columns = _checked_columns(values_of_column, lambda row: str(places[row]))
    return Predictions(**_rows_of_columns(columns, range(len(values))))


def _checked_columns(
    raw_columns: Mapping[str, list[Any]], place: Callable[[int], str]
) -> dict[str, list[Any]]:
    """Returns all columns of `PER_ROW`, and others that are given, with checked values.

    Args:
        raw_columns: name -> a value per row; absent columns have None in every row.
        place: number of a row, from 0 -> its name in messages.
    """
    from pydantic import ValidationError

    columns: dict[str, list[Any]] = dict.fromkeys(PER_ROW, [None] * len(raw_columns["id"]))
    for name, values in raw_columns.items():
        column_type: Any = list[COLUMNS[name][0]]  # type: ignore[misc]
        try:
            columns[name] = type_adapter(column_type).validate_python(values, strict=True)
        except ValidationError as error:
            problem_found = first_problem(error)
            row_name = place(int(problem_found.location[0]))
            rule = f"{name} must be {COLUMNS[name][1]}"
            message = f"{name}{problem_found.path(1)} is {problem_found.given}; {rule}"
            raise BadInput(f"{row_name}: {message}") from None
    names = ("top_words", "top_log_probs", "words", "labels")
    lists = zip(*(columns[name] for name in names), strict=True)
    for row, (tops, log_probs, words, labels) in enumerate(lists):
        n_tops = len(tops or ())
        word_log_probs = (word.log_prob for word in words or ())
        row_log_probs = (
            columns["log_prob"][row],
            *(log_probs or ()),
            *(labels or ()),
            *word_log_probs,
        )
        impossible = [
            x
            for x in row_log_probs
            if x == _NO_LOG_PROB or (x is not None and -math.inf < x < _LEAST_LOG_PROB)
        ]
        if impossible:
            advice = f"give null for none ({_NO_LOG_PROB} is what vLLM writes)"
            raise BadInput(f"{place(row)}: a log-probability is {impossible[0]}; {advice}")
        if log_probs is not None and len(log_probs) != n_tops:
            problem = f"top_log_probs has {len(log_probs)} values, top_words {n_tops}: give as many"
            raise BadInput(f"{place(row)}: {problem}")
        end_of_last = 0
        for number, word in enumerate(words or ()):
            if not end_of_last <= word.start <= word.end:
                raise BadInput(
                    f"{place(row)}: words[{number}] is from {word.start} to {word.end}; give start "
                    "and end of each word, in characters, in the order of the sentence"
                )
            end_of_last = word.end
    columns["words"] = [x if x is None else tuple(map(WordSpan._make, x)) for x in columns["words"]]
    return columns


def _rows_of_columns(columns: Mapping[str, Any], rows: Sequence[int | None]) -> dict[str, Any]:
    """Values of some rows, None for no row; `words` and `agreement` are [] if all are None."""
    values_of_column = {}
    for name in PER_ROW:
        values = [None if i is None else columns[name][i] for i in rows] if columns[name] else []
        is_list = name in ("words", "entropies", "labels", "agreement")
        is_unused = is_list and all(value is None for value in values)
        values_of_column[name] = [] if is_unused else values
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

    `BadInput` names the file (`where`) and the first few ids that are missing, doubled or foreign.

    Args:
        part: predictions in any order.
        rows: ids of the rows.
        where: the file, for messages.
        partial: give rows without a prediction None for all values.
        foreign: leave out predictions of other rows, instead of refusing them.
    """
    if part.id == list(rows):
        return part
    wanted_ids = set(rows)
    if not foreign and (foreign_ids := [row for row in part.id if row not in wanted_ids]):
        raise BadInput(
            f"{where}: {ids(foreign_ids)} not among the rows: take them out, or name their --task"
        )
    if doubled_ids := [row for row, n in Counter(part.id).items() if n > 1 and row in wanted_ids]:
        raise BadInput(f"{where}: {ids(doubled_ids)} more than once: give each row one prediction")
    index_of_id = {row: i for i, row in enumerate(part.id)}
    missing_ids = [row for row in rows if row not in index_of_id]
    if missing_ids and not partial:
        raise BadInput(f"{where}: {ids(missing_ids)} missing: give every row a prediction")
    in_order = _rows_of_columns(vars(part), [index_of_id.get(row) for row in rows])
    return replace(part, **in_order | {"id": list(rows)})


def check_possible(part: Predictions, stimuli: Stimuli, where: str) -> None:
    """Refuses probabilities at one blank that cannot be true together.

    Words of which none begins another sum to at most 1, those of the rows with the same blank
    included if they are one token: several masks are another distribution. A word of one token that
    has rank 1 is not below the first of the list.

    Args:
        part: predictions in the order of the rows.
        stimuli: the rows, unperturbed. Sentences may have a column target that is not read.
        where: the file, for messages.
    """
    rows = stimuli.columns()
    has_blanks = stimuli.asks_words and part.perturbation in ("", NONE) and not any(part.labels)
    blanks: Sequence[object] = range(len(part.id))
    if has_blanks:
        blanks = [*zip(rows["context"], rows["right_context"], strict=True)]
    last_row = {blank: row for row, blank in enumerate(blanks)}
    words_at_blank: dict[object, dict[str, float]] = {}
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
        word_log_probs = [*zip(top_words or (), top_log_probs or (), strict=False)]
        if has_blanks and is_token:
            word_log_probs.append((rows["target"][row], log_prob))
        log_prob_of_word = words_at_blank.setdefault(blanks[row], {})
        for word, value in word_log_probs:
            key = without_differences(word)
            log_prob_of_word[key] = max(value, log_prob_of_word.get(key, -math.inf))
        if row < last_row[blanks[row]]:
            continue
        del words_at_blank[blanks[row]]  # its last row: all its words are known
        if (total := impossible_sum(log_prob_of_word)) is not None:
            raise BadInput(
                f"{row_name}: its top words and the words of rows with the same blank have "
                f"{total:.4f} of probability together, more than 1"
            )


def ids(names: Sequence[str]) -> str:
    """Returns how many ids and the first few, as in "4 ids (a, b, c, …)"."""
    first_ids = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
    return f"id {first_ids}" if len(names) == 1 else f"{len(names)} ids ({first_ids})"


def read_run(
    file: Path, stimuli: Mapping[str, Stimuli]
) -> dict[str, dict[SettingKey, Predictions]]:
    """Returns task -> (perturbation, run) -> predictions in the order of the task's rows.

    `BadInput` if `predictions.parquet` is missing or damaged, or a setting has other ids than rows.
    """
    with advice_to_overwrite():
        predictions_of_setting = read(file)
        rows_of = {task: rows.columns()["id"] for task, rows in stimuli.items()}
        task_of = {row: task for task, rows in rows_of.items() for row in rows}
        settings_of: dict[str, dict[SettingKey, Predictions]] = {task: {} for task in stimuli}
        for key, predictions in predictions_of_setting.items():
            if foreign := [row for row in predictions.id if row not in task_of]:
                raise BadInput(f"{file}: {ids(foreign)} in none of the tasks {', '.join(stimuli)}")
            for task in dict.fromkeys(task_of[row] for row in predictions.id):
                aligned = align(predictions, rows_of[task], str(file), foreign=True)
                check_possible(aligned, stimuli[task], str(file))
                settings_of[task][key] = aligned
    return settings_of


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
        path: JSON lines or Parquet, or a folder with files of the original code. From a run's own
            `predictions.parquet`, the task and setting asked for are taken.
        stimuli: the rows.
        setting: perturbation to take from a run's file.

    Raises:
        BadInput: the file cannot be read (file and line are named); see `read`, `normalised` and
            `align`.
    """
    rows = stimuli.columns()["id"]
    notes: list[str] = []
    if is_original_output(path):
        records, notes = original_records(path, stimuli.task, stimuli.columns())
        parts = {UNNAMED: of_records(records)}
    else:
        parts = read(path)
    if UNNAMED not in parts:
        shuffles = [part for key, part in sorted(parts.items()) if key[0] == setting]
        if not shuffles:
            raise BadInput(f"{path} has no setting {setting}: run it with --perturb {setting}")
        aligned_shuffles = [align(part, rows, str(path), foreign=True) for part in shuffles]
        return ExternalPredictions(aligned_shuffles, [], [])
    if setting != "none":
        raise BadInput(f"{path} has no settings: leave --setting {setting} out")
    predictions, changes = normalised(parts[UNNAMED], str(path))
    aligned = align(predictions, rows, str(path), partial=True)
    check_possible(aligned, stimuli, str(path))
    sentences = stimuli.columns().get("sentence", ())
    for row, words, text in zip(rows, aligned.words, sentences, strict=False):
        if words and words[-1].end > len(text):
            raise BadInput(
                f"{path}: a word of {row} ends at {words[-1].end}, but its sentence has "
                f"{len(text)} characters: give positions in the sentence of the data"
            )
    predicted_ids = set(predictions.id)
    missing = [row for row in rows if row not in predicted_ids]
    return ExternalPredictions([aligned], missing, notes + changes)


def normalised(part: Predictions, where: str) -> tuple[Predictions, list[str]]:
    """Returns predictions of another program with the values that a run records.

    Sums over sentences follow from their words, rounding above 0 is cut, and the mark of a word's
    beginning is removed from top words, with a note. `BadInput`, with `where`, if there are none,
    nothing in them can be scored, some rows only have top words, or these have other white space.
    """
    if not part.id:
        raise BadInput(f"{where} is empty: write one prediction per line")
    if all(value is None for value in (*part.top_words, *part.log_prob, *part.words)):
        raise BadInput(f"{where} has neither top_words nor log_prob: nothing can be computed")
    for name, values in (("top_words", part.top_words), ("words", part.words)):
        rows_without = [row for row, value in zip(part.id, values, strict=False) if value is None]
        if 0 < len(rows_without) < len(part.id):
            raise BadInput(
                f"{where}: {name} are not given for id {rows_without[0]}; give all or none"
            )
    log_prob = part.log_prob
    n_tokens = part.n_tokens
    words_of_rows = [words or () for words in part.words]
    spans = [
        tuple(word._replace(n_tokens=word.n_tokens or 0) for word in words)
        for words in words_of_rows
    ]
    answers = [SentenceAnswer(words) for words in spans]
    if answers and all(value is None for value in log_prob):
        log_prob = [answer.log_prob for answer in answers]
    if answers and all(value is None for value in n_tokens):
        is_counted = [all(word.n_tokens is not None for word in words) for words in words_of_rows]
        pairs = zip(answers, is_counted, strict=True)
        n_tokens = [answer.n_tokens if counted else None for answer, counted in pairs]
    n_marked = 0
    top_words = list[list[str] | None]()
    for row, tops in zip(part.id, part.top_words, strict=True):
        unmarked = [word[1:] if word.startswith(_WORD_STARTS) else word for word in tops or ()]
        for word, text in zip(tops or (), unmarked, strict=True):
            n_marked += word != text
            if " ".join(text.split()) != text:  # no expected word could equal it
                raise BadInput(
                    f"{where}: id {row}: top_words has {word!r:.60}: remove the white space, but "
                    'for one space before a word (for a token of white space alone, give "")'
                )
        top_words.append(None if tops is None else unmarked)
    new_columns: dict[str, Any] = {"n_tokens": n_tokens, "top_words": top_words, "words": spans}
    new_columns["log_prob"] = [None if value is None else min(value, 0.0) for value in log_prob]
    note = f"{where}: the leading space (or Ġ, ▁) of {n_marked} top words was removed"
    return replace(part, **new_columns), [note] if n_marked else []
