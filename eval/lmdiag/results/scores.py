"""The value of every item in every measure: computed once, when a run is saved.

`scores.parquet` has a row per task, setting, shuffle, measure and item. Figures are a group-by of
it, a comparison joins two of them on the item, and tables, lists and charts of items join it with
the stimuli and the predictions. The points of curves over cut-offs, as `ew@top=0.1`, are not in it:
`predictions.parquet` has them as the model gave them (`agreement`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
    stimuli: Stimuli,
    predictions: Predictions,
    protocol: Protocol,
    cased: bool,
    kind: Kind = "masked",
) -> dict[str, Scores]:
    """Returns measure -> its per-item scores, computed from predictions.

    The human baseline is left out where the rows were perturbed.

    Args:
        stimuli: the rows, unperturbed.
        predictions: of them, in the order of the rows.
        protocol: of which `k`, `threshold` and, in shuffled settings, `seed` are used.
        cased: compare words with `expected` exactly, else case-blind.
        kind: of the model; a causal model saw the left context alone.

    Raises:
        BadInput: predictions do not belong to the rows.
    """
    if predictions.perturbation != NONE:
        stimuli = perturb(stimuli, predictions.perturbation, predictions.run, protocol.seed)
    rows = stimuli.columns()
    if list(rows["id"]) != predictions.id:
        raise BadInput(
            f"predictions of {stimuli.task} are not in the order of its rows: "
            "align them by `lmdiag.results.predictions.align`"
        )
    computed = stimuli.diagnostic.score(
        rows, vars(predictions), k=protocol.k, threshold=protocol.threshold, cased=cased,
        left_only=kind == "causal",
    )  # fmt: skip
    skipped = () if predictions.perturbation == NONE else HUMAN_MEASURES
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
        for task, settings in table.items():
            for (setting, shuffle), measures in settings.items():
                for scores in without_curves(measures).values():
                    waiting.append(_rows_of(task, setting, shuffle, scores))
                    if sum(map(len, waiting)) >= _ROW_GROUP:
                        writer.write_table(pa.concat_tables(waiting))
                        waiting = [schema.empty_table()]
        writer.write_table(pa.concat_tables(waiting))


def _rows_of(task: str, setting: str, shuffle: int, scores: Scores) -> pa.Table:
    """The rows of a measure: its items, then those that were left out."""
    import pyarrow as pa

    schema = schema_of_scores()
    items = [*scores.items, *scores.left_out]
    n_left_out = len(scores.left_out)
    constants = (task, setting, shuffle, scores.name, scores.statistic, scores.over)
    columns = {
        name: pa.repeat(pa.scalar(value, schema.field(name).type), len(items))
        for name, value in zip((*_BLOCK, "statistic", "over"), constants, strict=True)
    }
    columns["item"] = pa.array(items, pa.string())
    columns["levels"] = pa.array([*_level_texts(scores), *[None] * n_left_out], pa.string())
    undefined = np.full(len(scores.items), np.nan)
    chance = undefined if scores.chance is None else scores.chance
    value, covariate, *_ = (*np.atleast_2d(scores.values.T), undefined)
    for name, values in zip(_NUMBERS, (value, covariate, chance), strict=True):
        padded = np.append(values, np.full(n_left_out, np.nan))
        columns[name] = pa.array(padded, from_pandas=True)  # null for NaN
    return pa.table([columns[name] for name in schema.names], schema=schema)


def _level_texts(scores: Scores) -> list[str | None]:
    """The levels of each item as JSON, break-down -> levels; None without any."""
    addresses = [(by, level) for by, levels in scores.levels.items() for level in levels]
    codes = objects([0] * len(scores.items))  # bit i: whether the item is in level i
    for number, (by, level) in enumerate(addresses):
        codes[scores.levels[by][level]] += 1 << number
    texts: dict[int, str | None] = {}
    for code in {*codes}:
        levels: dict[str, list[str]] = {}
        for number, (by, level) in enumerate(addresses):
            if code >> number & 1:
                levels.setdefault(by, []).append(level)
        texts[code] = json.dumps(levels, ensure_ascii=False) if addresses else None
    return [texts[code] for code in codes]


class _StoredScores(Mapping[str, Scores]):
    """Measure -> its scores, each made of its rows of the file when it is first asked for."""

    def __init__(self, rows: Mapping[str, pa.Table]) -> None:
        self._rows = rows
        self._made: dict[str, Scores] = {}

    def __getitem__(self, measure: str) -> Scores:
        if measure not in self._made:
            self._made[measure] = _scores_of(measure, self._rows[measure])
        return self._made[measure]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)


def read_scores(path: Path) -> dict[str, dict[SettingKey, MeasureScores]]:
    """Returns the content of `scores.parquet`; `BadInput` if it is missing or damaged."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    try:
        table = pq.read_table(path, read_dictionary=[*_TEXTS])
        if table.schema.names != schema_of_scores().names:
            raise ValueError(f"its columns are {', '.join(table.schema.names)}")
    except (pa.ArrowException, OSError, ValueError) as error:
        raise BadInput(
            f"{path} cannot be read ({shortened(error)}): run again with --overwrite"
        ) from None
    keys = table.select(_BLOCK).to_pandas()
    is_first = (keys != keys.shift()).any(axis=1)
    bounds = [*np.flatnonzero(is_first).tolist(), len(keys)]
    rows_of: dict[str, dict[SettingKey, dict[str, pa.Table]]] = {}
    for start, end in pairwise(bounds):
        task, setting, shuffle, measure = keys.iloc[start]
        measures = rows_of.setdefault(task, {}).setdefault((setting, int(shuffle)), {})
        if measure in measures:
            raise BadInput(f"{path} has {measure} twice in one setting")
        measures[measure] = table.slice(start, end - start)
    return {
        task: {key: _StoredScores(measures) for key, measures in settings.items()}
        for task, settings in rows_of.items()
    }


def _scores_of(name: str, rows: pa.Table) -> Scores:
    """The scores of the rows of a measure."""
    value, covariate, chance = (rows[column].to_numpy() for column in _NUMBERS)  # NaN for null
    items = objects(rows["item"].to_pylist())
    is_defined = ~np.isnan(value)
    is_pair = not np.isnan(covariate).all()
    values = np.column_stack([value, covariate]) if is_pair else value
    has_chance = not np.isnan(chance[is_defined]).all()
    levels: dict[str, dict[str, list[NDArray[np.intp]]]] = {}
    texts = objects(rows["levels"].to_pylist())[is_defined]
    for text, where in positions(texts).items():
        for by, of_items in json.loads(text).items():
            for level in of_items:
                levels.setdefault(by, {}).setdefault(level, []).append(where)
    return Scores(
        name, items[is_defined], values[is_defined], rows["statistic"][0].as_py(),
        {by: {x: np.sort(np.concatenate(parts)) for x, parts in of_by.items()}
         for by, of_by in levels.items()},
        rows["over"][0].as_py(), tuple(items[~is_defined]),
        chance[is_defined] if has_chance else None,
    )  # fmt: skip
