"""The value of every item in every measure: computed once, when a run is saved.

`scores.parquet` has a row per task, setting, shuffle, measure and item. Figures are a group-by of
it, a comparison joins two of them on the item, and tables, lists and charts of items join it with
the stimuli and the predictions. The points of curves over cut-offs, as `ew@top=0.1`, are not in it:
`predictions.parquet` has them as the model gave them (`agreement`).
"""

from __future__ import annotations

import json
from collections import UserDict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, get_args

import numpy as np
from numpy.typing import NDArray

from lmdiag.asking.protocol import Predictions, Protocol
from lmdiag.files.reading import parse_json, read_parquet
from lmdiag.files.writing import replacing
from lmdiag.measures import MeasureName, is_human, is_pooled
from lmdiag.measures.scores import Floats, Scores, Statistic, objects, positions
from lmdiag.results.predictions import SettingKey
from lmdiag.stats import CORRELATIONS, Estimate, estimate
from lmdiag.stimuli.perturbations import NONE, perturb
from lmdiag.text import shortened
from lmdiag.types import BadInput, Fold, Kind

if TYPE_CHECKING:
    import pyarrow as pa

    from lmdiag.diagnostics import Diagnostic
    from lmdiag.stimuli import Stimuli

MeasureScores = Mapping[str, Scores]
"""Measure -> its per-item scores."""

ScoreTable = Mapping[str, Mapping[SettingKey, MeasureScores]]
"""Task -> (perturbation, shuffle) -> measure -> its per-item scores."""

_BLOCK = ("task", "setting", "shuffle", "measure")
"""Columns with one value for all items of a measure."""
_TEXTS = ("task", "setting", "measure", "statistic", "over", "item", "levels")
_NUMBERS = ("value", "covariate", "chance")
_REQUIRED = (*_BLOCK, "statistic", "over", "item")
"""Columns that have a value in every row."""
_ROW_GROUP = 50_000
"""Rows from which on a part of the file is written: a measure of very many items is one part."""


def item_scores(
    stimuli: Stimuli,
    predictions: Predictions,
    protocol: Protocol,
    folds: Collection[Fold] = (),
    kind: Kind = "masked",
) -> dict[str, Scores]:
    """Returns measure -> its per-item scores; of perturbed rows, without the human baseline.

    Args:
        stimuli: the rows, unperturbed.
        predictions: of them, in the order of the rows; otherwise `BadInput` is raised.
        protocol: of which `k`, `threshold` and, in shuffled settings, `seed` are used.
        folds: differences between words that do not count, see `lmdiag.measures.fold_word`.
        kind: of the model; a causal model saw the left context alone.
    """
    is_perturbed = predictions.perturbation != NONE
    if is_perturbed:
        stimuli = perturb(stimuli, predictions.perturbation, predictions.run, protocol.seed)
    rows = stimuli.columns()
    if list(rows["id"]) != predictions.id:
        raise BadInput(
            f"predictions of {stimuli.task} are not in the order of its rows: "
            "align them by `lmdiag.results.predictions.align`"
        )
    computed = stimuli.diagnostic.score(
        rows, vars(predictions), k=protocol.k, threshold=protocol.threshold, folds=folds,
        left_only=kind == "causal",
    )  # fmt: skip
    return {
        scores.name: scores for scores in computed if not (is_perturbed and is_human(scores.name))
    }


def estimate_of(scores: Scores, diagnostic: Diagnostic) -> Estimate:
    """Returns value, n and interval of a measure, NaN where the diagnostic gives no interval."""
    found = estimate(scores.values, scores.statistic)
    is_mean = scores.statistic in ("mean", "share")
    is_small = is_mean and len(scores.items) < diagnostic.interval_from
    if is_pooled(scores.name) or is_small:
        return replace(found, ci_low=np.nan, ci_high=np.nan)
    return found


def without_curves(scores: MeasureScores) -> dict[str, Scores]:
    """Returns the measures that are not points of curves over cut-offs."""
    return {
        name: measure for name, measure in scores.items() if not MeasureName.of(name).is_curve_point
    }


def mean_scores(shuffles: Sequence[MeasureScores]) -> MeasureScores:
    """Returns measure -> the mean over shuffles of each item that all of them have."""
    if len(shuffles) < 2:
        return shuffles[0] if shuffles else {}
    means = {}
    for name, of_first in shuffles[0].items():
        items, values = on_common_items([scores[name] for scores in shuffles if name in scores])
        statistic = "share" if of_first.statistic == "proportion" else of_first.statistic
        means[name] = Scores(name, objects(items), np.mean(values, axis=0), statistic)
    return means


def on_common_items(several: Sequence[Scores]) -> tuple[list[str], list[Floats]]:
    """Returns the items that all scores have, in the order of the first, and the values of each."""
    in_order = several[0].items
    if all(np.array_equal(scores.items, in_order) for scores in several):
        return list(in_order), [scores.values for scores in several]
    places = [{item: i for i, item in enumerate(scores.items)} for scores in several]
    items = [item for item in in_order if all(item in place for place in places)]
    rows_of = [[place[item] for item in items] for place in places]
    return items, [scores.values[rows] for scores, rows in zip(several, rows_of, strict=True)]


@cache
def schema_of_scores() -> pa.Schema:
    """Returns the columns of `scores.parquet`, see `Scores`, with their Arrow types.

    `levels` are JSON text; the value is null for an item that was left out, and `covariate` is the
    second value of a correlation.
    """
    import pyarrow as pa

    names = ("task", "setting", "shuffle", *_TEXTS[2:], *_NUMBERS)
    types = {"shuffle": pa.int32()} | dict.fromkeys(_NUMBERS, pa.float64())
    return pa.schema((name, types.get(name, pa.string())) for name in names)


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
    if not scores.levels:
        return [None] * len(scores.items)
    levels_of: list[dict[str, list[str]]] = [{} for _ in scores.items]
    for by, where_of in scores.levels.items():
        for level, where in where_of.items():
            for position in where.tolist():
                levels_of[position].setdefault(by, []).append(level)
    return [json.dumps(levels, ensure_ascii=False) for levels in levels_of]


class _StoredScores(UserDict[str, Any]):
    """Measure -> its scores, each made of its rows of the file when it is first asked for."""

    def __getitem__(self, measure: str) -> Scores:
        if not isinstance(self.data[measure], Scores):
            self.data[measure] = _scores_of(measure, self.data[measure])
        scores: Scores = self.data[measure]
        return scores


def read_scores(path: Path) -> ScoreTable:
    """Returns the content of `scores.parquet`.

    `BadInput` if it is missing or damaged, a value has another type or range than `Scores` says, or
    a measure has an item twice.
    """
    import pyarrow as pa

    table = read_parquet(path, repeated=_TEXTS).unify_dictionaries()
    expected = [*zip(schema_of_scores().names, _types_read(), strict=True)]
    if [(field.name, field.type) for field in table.schema] != expected:
        columns = ", ".join(f"{field.name} ({field.type})" for field in table.schema)
        raise BadInput(f"{path} does not have the columns of scores: {shortened(columns)}")
    blocks = table.select([*_BLOCK, "statistic", "over"])
    starts = _starts(blocks)
    if problem := _problem(table, starts):
        raise BadInput(f"{path} does not have the values of scores: {problem}")
    stored: dict[str, dict[SettingKey, _StoredScores]] = {}
    keys = zip(*blocks.take(pa.array(starts, pa.int64())).to_pydict().values(), strict=True)
    for (start, end), key in zip(pairwise([*starts, len(blocks)]), keys, strict=True):
        task, setting, shuffle, measure, *_ = key
        task_scores = stored.setdefault(task, {})
        measures = task_scores.setdefault((setting, int(shuffle)), _StoredScores())
        if measure in measures:
            raise BadInput(f"{path} has {measure} twice in one setting")
        measures[measure] = table.slice(start, end - start)
    return stored


def _types_read() -> list[pa.DataType]:
    """The types of the columns as `read_scores` reads them."""
    import pyarrow as pa

    text = pa.dictionary(pa.int32(), pa.string())
    return [text if field.name in _TEXTS else field.type for field in schema_of_scores()]


def _starts(blocks: pa.Table) -> list[int]:
    """The rows that differ from the row before them; 0 for the first."""
    is_start = np.zeros(len(blocks), dtype=bool)
    is_start[:1] = True
    for column in blocks.combine_chunks().itercolumns():
        for values in column.chunks:  # one, or none
            numbers = values.indices if hasattr(values, "indices") else values
            codes = numbers.to_numpy(zero_copy_only=False)
            is_start[1:] |= codes[1:] != codes[:-1]
    return np.flatnonzero(is_start).tolist()


def _problem(table: pa.Table, starts: Sequence[int]) -> str:
    """What is wrong with the values of a table, whose measures begin at some rows; "" if nothing.

    Proportions are 0 or 1, shares and chances from 0 to 1, and only the values of correlations have
    a second one beside them; what is missing is null, never NaN.
    """
    lacking = [name for name in _REQUIRED if table[name].null_count]
    if lacking:
        return f"{lacking[0]} is missing in a row"
    numbers = {name: table[name].to_numpy() for name in _NUMBERS}  # NaN for null
    if nan := [name for name in _NUMBERS if table[name].null_count < np.isnan(numbers[name]).sum()]:
        return f"{nan[0]} is NaN in a row"
    value, covariate, chance = numbers.values()
    is_defined = ~np.isnan(value)
    statistic = _Codes.of(table, "statistic")
    is_correlation = statistic.are(*CORRELATIONS) & is_defined
    block = np.zeros(len(table), dtype=np.intp)
    block[list(starts)] = 1
    item = _Codes.of(table, "item")
    in_block = block.cumsum() * len(item.texts) + item.codes
    wrong = {
        "a shuffle is below 0": table["shuffle"].to_numpy() < 0,
        "a statistic is unknown": ~statistic.are(*get_args(Statistic)),
        "a proportion is neither 0 nor 1": (
            statistic.are("proportion") & is_defined & (value != 0) & (value != 1)
        ),
        "a share is not from 0 to 1": statistic.are("share") & _is_outside(value),
        "a chance is not from 0 to 1": _is_outside(chance),
        "an item is there twice in one measure": len(np.unique(in_block)) < len(in_block),
        "a covariate is not that of a correlation": is_correlation == np.isnan(covariate),
    }
    if not all(map(_are_levels, filter(None, _Codes.of(table, "levels").texts))):
        return "levels are not an object of lists of texts"
    return next((problem for problem, rows in wrong.items() if np.any(rows)), "")


def _is_outside(shares: Floats) -> NDArray[np.bool_]:
    """Which numbers are not from 0 to 1; not those that are NaN."""
    return (shares < 0) | (shares > 1)


class _Codes(NamedTuple):
    """A column of texts: its distinct texts, and the position of that of each row, (rows,)."""

    texts: list[str | None]
    codes: NDArray[np.intp]

    @classmethod
    def of(cls, table: pa.Table, name: str) -> _Codes:
        """Returns a column without nulls, or whose codes are not used."""
        parts = table[name].chunks  # with one dictionary
        texts = parts[0].dictionary.to_pylist() if parts else []
        codes = [part.indices.to_numpy(zero_copy_only=False) for part in parts]
        return cls(texts, np.concatenate(codes) if codes else np.array([], dtype=np.intp))

    def are(self, *texts: str) -> NDArray[np.bool_]:
        """Returns which rows have one of some texts."""
        wanted = [text in texts for text in self.texts]
        return np.array(wanted, dtype=bool)[self.codes]


def _are_levels(text: str) -> bool:
    """Whether a text is a JSON object, break-down -> list of levels."""
    content = parse_json(text, "levels")
    return isinstance(content, dict) and all(
        isinstance(levels, list) and all(isinstance(level, str) for level in levels)
        for levels in content.values()
    )


def _scores_of(name: str, rows: pa.Table) -> Scores:
    """The scores of the rows of a measure."""
    value, covariate, chance = (rows[column].to_numpy() for column in _NUMBERS)  # NaN for null
    items = objects(rows["item"].to_pylist())
    is_defined = ~np.isnan(value)
    is_pair = not np.isnan(covariate).all()
    values = np.column_stack([value, covariate]) if is_pair else value
    has_chance = not np.isnan(chance[is_defined]).all()
    where_of: dict[str, dict[str, list[NDArray[np.intp]]]] = {}
    texts = objects(rows["levels"].to_pylist())[is_defined]
    for text, where in positions(texts).items():
        for by, labels in json.loads(text).items():
            for level in labels:
                where_of.setdefault(by, {}).setdefault(level, []).append(where)
    levels = {
        by: {level: np.sort(np.concatenate(parts)) for level, parts in positions.items()}
        for by, positions in where_of.items()
    }
    return Scores(
        name, items[is_defined], values[is_defined], rows["statistic"][0].as_py(), levels,
        rows["over"][0].as_py(), tuple(items[~is_defined]),
        chance[is_defined] if has_chance else None,
    )  # fmt: skip
