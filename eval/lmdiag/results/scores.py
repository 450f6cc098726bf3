"""The value of every item in every measure: computed once, when a run is saved.

`scores.parquet` has a row per task, setting, shuffle, measure and item. Figures are a group-by of
it, a comparison joins two of them on the item, and tables, lists and charts of items join it with
the stimuli and the predictions. The points of curves over cut-offs, as `ew@top=0.1`, are not in it:
`predictions.parquet` has them as the model gave them (`agreement`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np
from numpy.typing import NDArray

from lmdiag.files import replacing
from lmdiag.measures.scores import Floats, Scores, objects, positions
from lmdiag.perturb import NONE, perturb
from lmdiag.protocol import Predictions, Protocol
from lmdiag.results.predictions import SettingKey
from lmdiag.text import shortened
from lmdiag.types import BadInput, Kind

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from lmdiag.stimuli import Stimuli

HUMAN_MEASURES = ("human_", "cloze_difference")
"""Beginnings of the measures of the human baseline, which say nothing of perturbed rows."""

MeasureScores = Mapping[str, Scores]
"""Measure -> its per-item scores."""

ScoreTable = Mapping[str, Mapping[SettingKey, MeasureScores]]
"""Task -> (perturbation, shuffle) -> measure -> its per-item scores."""

_BLOCK = ("task", "setting", "shuffle", "measure")
"""Columns with one value for all items of a measure."""
_TEXTS = ("task", "setting", "measure", "statistic", "over", "item", "levels")
_NUMBERS = ("value", "covariate", "chance")
_ROW_GROUP = 50_000
"""Rows from which on a part of the file is written: a measure of very many items is one part."""


def item_scores(
    stimuli: Stimuli, run: Predictions, protocol: Protocol, cased: bool, kind: Kind = "masked"
) -> dict[str, Scores]:
    """Returns measure -> its per-item scores, computed from predictions.

    The human baseline is left out where the rows were perturbed.

    Args:
        stimuli: the rows, unperturbed.
        run: their predictions, in the order of the rows.
        protocol: of which `k`, `threshold` and, in shuffled settings, `seed` are used.
        cased: compare words with `expected` exactly, else case-blind.
        kind: of the model; a causal model saw the left context alone.

    Raises:
        BadInput: predictions do not belong to the rows.
    """
    if run.perturbation != NONE:
        stimuli = perturb(stimuli, run.perturbation, run.run, protocol.seed)
    rows = stimuli.columns()
    if list(rows["id"]) != run.id:
        raise BadInput(
            f"predictions of {stimuli.task} are not in the order of its rows: "
            "align them by `lmdiag.results.predictions.align`"
        )
    computed = stimuli.diagnostic.score(
        rows, vars(run), k=protocol.k, threshold=protocol.threshold, cased=cased,
        left_only=kind == "causal",
    )  # fmt: skip
    skipped = () if run.perturbation == NONE else HUMAN_MEASURES
    return {scores.name: scores for scores in computed if not scores.name.startswith(skipped)}


def is_curve_point(measure: str) -> bool:
    """Returns whether a measure is a point of a curve over cut-offs, e.g. `ew@top=0.1`."""
    return measure.partition("@")[2].startswith(("top=", "bottom="))


def without_curves(scores: MeasureScores) -> dict[str, Scores]:
    """Returns the measures that are not points of curves over cut-offs."""
    return {name: measure for name, measure in scores.items() if not is_curve_point(name)}


def mean_scores(shuffles: Sequence[MeasureScores]) -> dict[str, Scores]:
    """Returns measure -> the mean over shuffles of each item that all of them have."""
    means = {}
    for name, first in shuffles[0].items():
        items, values = on_common_items([scores[name] for scores in shuffles if name in scores])
        statistic = "share" if first.statistic == "proportion" else first.statistic
        means[name] = Scores(name, objects(items), np.mean(values, axis=0), statistic)
    return means


def on_common_items(several: Sequence[Scores]) -> tuple[list[str], list[Floats]]:
    """Returns the items that all scores have, in the order of the first, and the values of each."""
    first = several[0]
    if all(np.array_equal(scores.items, first.items) for scores in several):
        return list(first.items), [scores.values for scores in several]
    positions_of = [{item: i for i, item in enumerate(scores.items)} for scores in several]
    items = [item for item in first.items if all(item in known for known in positions_of)]
    pairs = zip(several, positions_of, strict=True)
    return items, [scores.values[[known[item] for item in items]] for scores, known in pairs]


# ---- scores.parquet ------------------------------------------------------------------------------


@cache
def schema_of_scores() -> pa.Schema:
    """Returns the columns of `scores.parquet` with their Arrow types.

    task, setting, shuffle, measure, item; the `statistic`, column of the items (`over`) and
    `levels` of `Scores`, these as JSON text; the value, which is null for an item that was left
    out, the second value of a correlation (`covariate`), and the chance level of the item.
    """
    import pyarrow as pa

    fields: list[Any] = [(name, pa.string()) for name in _TEXTS]
    fields.insert(2, ("shuffle", pa.int32()))
    return pa.schema([*fields, *((name, pa.float64()) for name in _NUMBERS)])


def write_scores(path: Path, table: ScoreTable) -> None:
    """Writes `scores.parquet`, one measure after another."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    schema = schema_of_scores()
    with replacing(path) as file, pq.ParquetWriter(file, schema, compression="zstd") as writer:
        waiting = [schema.empty_table()]
        for block in _blocks(table):
            waiting.append(block)
            if sum(map(len, waiting)) >= _ROW_GROUP:
                writer.write_table(pa.concat_tables(waiting))
                waiting = [schema.empty_table()]
        writer.write_table(pa.concat_tables(waiting))


def _blocks(table: ScoreTable) -> Iterator[pa.Table]:
    """The rows of each measure."""
    for task, settings in table.items():
        for (setting, shuffle), measures in settings.items():
            for scores in without_curves(measures).values():
                yield _block(task, setting, shuffle, scores)


def _block(task: str, setting: str, shuffle: int, scores: Scores) -> pa.Table:
    """The rows of a measure: its items, then those that were left out."""
    import pyarrow as pa

    schema = schema_of_scores()
    n = len(scores.items) + len(scores.left_out)
    value, *covariate = np.atleast_2d(scores.values.T)
    lists: dict[str, Any] = {
        "item": [*scores.items, *scores.left_out],
        "levels": [*_level_texts(scores), *[None] * len(scores.left_out)],
        "value": value,
        "covariate": covariate[0] if covariate else [],
        "chance": [] if scores.chance is None else scores.chance,
    }
    constants = dict(zip(_BLOCK, (task, setting, shuffle, scores.name), strict=True))
    constants |= {"statistic": scores.statistic, "over": scores.over}
    arrays = []
    for field in schema:
        if field.name in constants:
            arrays.append(pa.repeat(pa.scalar(constants[field.name], field.type), n))
        elif field.name in _NUMBERS:
            numbers = np.full(n, np.nan)
            numbers[: len(lists[field.name])] = lists[field.name]
            arrays.append(pa.array(numbers, from_pandas=True))  # null for NaN
        else:
            arrays.append(pa.array(lists[field.name], field.type))
    return pa.Table.from_arrays(arrays, schema=schema)


def _level_texts(scores: Scores) -> list[str | None]:
    """The levels of each item as JSON: break-down -> levels."""
    addresses = [(by, level) for by, of_levels in scores.levels.items() for level in of_levels]
    if not addresses:
        return [None] * len(scores.items)
    is_in = np.zeros((len(scores.items), len(addresses)), dtype=bool)
    for number, (by, level) in enumerate(addresses):
        is_in[scores.levels[by][level], number] = True
    packed = np.packbits(is_in, axis=1)
    keys = packed.view(f"V{packed.shape[1]}").ravel().tolist()
    texts: dict[bytes, str] = {}
    for row, key in enumerate(keys):
        if key not in texts:
            levels: dict[str, list[str]] = {}
            for number in np.flatnonzero(is_in[row]).tolist():
                by, level = addresses[number]
                levels.setdefault(by, []).append(level)
            texts[key] = json.dumps(levels, ensure_ascii=False)
    return [texts[key] for key in keys]


class _StoredScores(Mapping[str, Scores]):
    """Measure -> its scores, each read from the file when it is first asked for."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._places: dict[str, tuple[int, int, int]] = {}  # row group, first row in it, rows
        self._read: dict[str, Scores] = {}

    def add(self, measure: str, *place: int) -> None:
        """Adds a measure with its place in the file."""
        if measure in self._places:
            raise BadInput(f"{self._path} has {measure} twice in one setting")
        self._places[measure] = place  # type: ignore[assignment]

    def __getitem__(self, measure: str) -> Scores:
        if measure not in self._read:
            group, start, n = self._places[measure]
            with _opened(self._path) as file:
                rows = file.read_row_group(group).slice(start, n)
                self._read[measure] = _scores_of(measure, rows)
        return self._read[measure]

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def read_scores(path: Path) -> dict[str, dict[SettingKey, MeasureScores]]:
    """Returns the content of `scores.parquet`; `BadInput` if it is missing or damaged."""
    found: dict[str, dict[SettingKey, MeasureScores]] = {}
    with _opened(path) as file:
        for group in range(file.num_row_groups):
            keys = file.read_row_group(group, columns=[*_BLOCK]).combine_chunks()
            is_first = np.zeros(len(keys), dtype=bool)
            is_first[:1] = True
            for column in keys.columns:
                codes = column if column.type == "int32" else column.combine_chunks().indices
                is_first[1:] |= np.diff(codes.to_numpy()) != 0
            bounds = [*np.flatnonzero(is_first).tolist(), len(keys)]
            for start, end in pairwise(bounds):
                task, setting, shuffle, measure = (keys[name][start].as_py() for name in _BLOCK)
                settings = found.setdefault(task, {})
                of_setting = settings.setdefault((setting, shuffle), _StoredScores(path))
                cast(_StoredScores, of_setting).add(measure, group, start, end - start)
    return found


@contextmanager
def _opened(path: Path) -> Iterator[pq.ParquetFile]:
    """The file; `BadInput` if it is missing, damaged or of other columns."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path, read_dictionary=[*_TEXTS]) as file:
            if file.schema_arrow.names != schema_of_scores().names:
                raise ValueError(f"its columns are {', '.join(file.schema_arrow.names)}")
            yield file
    except (pa.ArrowException, OSError, ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"{path} cannot be read ({shortened(error)}): run again with --overwrite"
        ) from None


def _scores_of(name: str, rows: pa.Table) -> Scores:
    """The scores of the rows of a measure."""
    value, covariate, chance = (rows[x].to_numpy() for x in _NUMBERS)  # NaN for null
    items = objects(rows["item"].to_pylist())
    is_defined = ~np.isnan(value)
    of_pairs = value if np.isnan(covariate).all() else np.column_stack([value, covariate])
    has_chance = not np.isnan(chance[is_defined]).all()
    texts = objects(rows["levels"].to_pylist())[is_defined]
    levels: dict[str, dict[str, list[NDArray[np.intp]]]] = {}
    for text, where in positions(texts).items():
        for by, of_item in json.loads(text).items():
            for level in of_item:
                levels.setdefault(by, {}).setdefault(level, []).append(where)
    merged = {
        by: {level: np.sort(np.concatenate(parts)) for level, parts in of_levels.items()}
        for by, of_levels in levels.items()
    }
    return Scores(
        name, items[is_defined], of_pairs[is_defined], rows["statistic"][0].as_py(), merged,
        rows["over"][0].as_py(), tuple(items[~is_defined]),
        chance[is_defined] if has_chance else None,
    )  # fmt: skip
