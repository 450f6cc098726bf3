"""The items of runs as one tidy table: a row per scored word, sentence, region or word of one."""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lmdiag.files import read_parquet, read_text, replacing
from lmdiag.measures import part_bits
from lmdiag.perturb import NONE, is_shuffled, perturb
from lmdiag.text import csv_cell, shortened
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame

    from lmdiag.protocol import Predictions
    from lmdiag.results import Run
    from lmdiag.stimuli import Stimuli

Per = Literal["row", "region", "word"]
_Values = dict[str, list[Any]]

ITEM_SUFFIXES = (".csv", ".tsv", ".parquet")
"""Endings of the names of files that a table is written to."""

SCORES = ("surprisal", "probability", "rank", "n_tokens", "state", "top_word")
"""Columns of what the model predicted, of rows with a blank; rows of sentences have no rank and no
top word."""

PARTS = ("number", "name", "text", "start")
"""Columns of a region or word."""

_RUN = ("model", "signature", "task", "perturbation", "shuffle")
_NOT_WRITTEN = ("regions", "formulas")
"""Columns of suites that are not single values; the regions are rows with `per="region"`."""


def items_table(run: Run, per: Per = "row", task: str = "") -> DataFrame:
    """Returns the items of a run.

    Args:
        run: a finished run.
        per: "row" for a row per row of the data; of sentences also "region" or "word".
        task: one of the run; "" for all.

    Returns:
        A row per scored thing and setting. Columns: model, signature, task; perturbation and
        shuffle in a run with perturbations; the columns of the data as the user wrote them, without
        those that are empty; of regions and words `number`, `name`, `text`, `start`; then
        surprisal (bits), probability, n_tokens and state (scored, censored or unscorable), and for
        blanks rank and top_word. A column of the data that has one of these names gets `_data`
        at its end.

    Raises:
        BadInput: no such task; rows with a blank, or sentences without regions, have no such parts.
    """
    from pandas import DataFrame, concat

    frames = []
    several = any(len(settings) > 1 for settings in run.results.tasks.values())
    if task and task not in run.stimuli:
        raise BadInput(f"{run.path} has no task {task!r}: choose from {', '.join(run.stimuli)}")
    for name, stimuli in run.stimuli.items():
        if task not in ("", name):
            continue
        for (setting, shuffle), predictions in run.predictions[name].items():
            asked = stimuli
            if setting != NONE:
                asked = perturb(stimuli, setting, shuffle, run.results.protocol.seed)
            columns = _rows(asked, predictions, per)
            facts: list[Any] = [run_name(run), run.results.signature, name]
            if several:
                facts += [setting, shuffle if is_shuffled(name, setting) else None]
            length = len(columns["state"])
            first = {column: [fact] * length for column, fact in zip(_RUN, facts, strict=False)}
            frames.append(DataFrame(first | columns))
    table = frames[0] if len(frames) == 1 else concat(frames, ignore_index=True)
    whole = {name: "Int64" for name in ("rank", "n_tokens", "shuffle") if name in table}
    return table.astype(whole)


def run_name(run: Run) -> str:
    """Returns the name that the user gave the model, or its id with the revision."""
    model = run.results.model
    return model.name or (f"{model.id}@{model.revision}" if model.revision else model.id)


def _rows(stimuli: Stimuli, predictions: Predictions, per: Per) -> _Values:
    """The columns of the data and of the predictions."""
    taken = (*_RUN, *SCORES, *(PARTS if per != "row" else ()))
    data = {
        f"{name}_data" if name in taken else name: list(map(_cell, values))
        for name, values in stimuli.columns().items()
        if name not in _NOT_WRITTEN and any(value not in ("", None, []) for value in values)
    }
    if within := stimuli.diagnostic.item_within:
        pairs = zip(data[within], data["item"], strict=True)
        data["item"] = [f"{part}-{item}" for part, item in pairs]
    if per != "row":
        return _parts(stimuli, predictions, per, data)
    scores: _Values = {
        "surprisal": [None if p is None else 0.0 - p / math.log(2) for p in predictions.log_prob],
        "probability": [None if p is None else math.exp(p) for p in predictions.log_prob],
        "rank": predictions.rank,
        "n_tokens": predictions.n_tokens,
        "state": [predictions.state(row) for row in range(len(predictions.id))],
        "top_word": [words[0] if words else None for words in predictions.top_words],
    }
    if stimuli.diagnostic.asks == "sentence":
        del scores["rank"], scores["top_word"]
    return data | scores


def _cell(value: Any) -> Any:
    """A list of words as a csv file has it: separated by bars."""
    return "|".join(map(str, value)) if isinstance(value, list | tuple) else value


def _parts(stimuli: Stimuli, predictions: Predictions, per: Per, data: _Values) -> _Values:
    """The columns of regions or words."""
    rows = stimuli.columns()
    if stimuli.diagnostic.asks != "sentence":
        raise BadInput(f"{stimuli.task} has words at blanks: --per {per} needs whole sentences")
    if per == "region" and stimuli.regions is None:
        raise BadInput(
            f"{stimuli.task} has no regions: give columns region_1, region_2, ..., or put | "
            "between the regions in the column sentence"
        )
    names = (*PARTS, "surprisal", "probability", "n_tokens", "state")
    columns: _Values = {name: [] for name in (*data, *names)}
    for row, sentence in enumerate(rows["sentence"]):
        spans = predictions.words[row] if predictions.words else None
        words = enumerate(re.finditer(r"\S+", sentence), start=1)
        parts = [(number, "", *match.span()) for number, match in words]
        if per == "region":
            regions = (stimuli.regions or [])[row]
            parts = [(r["number"], r["name"], r["start"], r["end"]) for r in regions]
        for number, label, start, end in parts:
            n_tokens = sum(span.n_tokens for span in spans or () if start <= span.start < end)
            bits = part_bits(spans, start, end)
            is_known = not math.isnan(bits)
            numbers = (bits, 2.0**-bits) if is_known else (None, None)
            state = "scored" if is_known else "unscorable"
            values = (number, label, sentence[start:end], start, *numbers, n_tokens, state)
            for name, value in zip(names, values, strict=True):
                columns[name].append(value)
        for name, column in data.items():
            columns[name] += [column[row]] * len(parts)
    return columns


# ---- files ---------------------------------------------------------------------------------------


def write_items(table: DataFrame, path: Path) -> None:
    """Writes a table as csv, tab-separated or Parquet, completely or not at all.

    A csv file is UTF-8, with a byte-order mark if a text is not ASCII: Excel needs it, R and pandas
    drop it. Numbers have all their digits; what is missing is empty. Texts that a spreadsheet would
    take for a formula get an apostrophe in front, unless they are numbers.
    """
    with replacing(path) as file:
        if path.suffix == ".parquet":
            table.to_parquet(file, index=False)
            return
        out = io.StringIO()
        writer = csv.writer(out, delimiter="\t" if path.suffix == ".tsv" else ",")
        writer.writerow(map(csv_cell, table.columns))
        values = [_written(table[name].tolist()) for name in table.columns]
        writer.writerows(zip(*values, strict=True))
        text = out.getvalue()
        file.write(text.encode("utf-8" if text.isascii() else "utf-8-sig"))


def _written(column: list[Any]) -> Iterator[Any]:
    """The values of a column as csv has them: missing ones are empty, formulas are inert."""
    import pandas as pd

    for value in column:
        if isinstance(value, bool):
            yield str(value).upper()  # as R and Excel write truth values
        else:
            yield "" if value is None or value is pd.NA or value != value else csv_cell(value)


def read_items(path: Path) -> DataFrame:
    """Reads a table that `write_items` or another program wrote; row names of R are dropped.

    Raises:
        BadInput: the file cannot be read.
    """
    import pandas as pd

    if path.suffix not in ITEM_SUFFIXES:
        raise BadInput(f"{path}: the file name must end in {', '.join(ITEM_SUFFIXES)}")
    if path.suffix == ".parquet":
        return read_parquet(path).to_pandas()
    text = read_text(path)
    header = text.partition("\n")[0]
    try:
        table = pd.read_csv(
            io.StringIO(text),
            sep=max(",;\t", key=header.count),
            keep_default_na=False,
            na_values=["", "NA", "NaN", "nan"],  # a condition may be called "None" or "null"
        )
    except ValueError as error:
        raise BadInput(f"{path} is not a table: {shortened(error)}") from None
    return table.drop(columns=[name for name in table if str(name).startswith("Unnamed: ")])


def items_of(source: Any, *, task: str = "", per: Per = "row") -> DataFrame:
    """Returns the items of runs, of a table or of its file as one table.

    Args:
        source: a run, a run directory, a table, or a file of one; or several of them.
        task: of the runs; "" for all.
        per: of the runs, see `items_table`.

    Raises:
        BadInput: there is no such task, or the file cannot be read.
    """
    from pandas import DataFrame, concat

    from lmdiag.results import Run, load_run

    tables = []
    for part in source if isinstance(source, list | tuple) else [source]:
        if isinstance(part, DataFrame):
            tables.append(part)
        elif isinstance(part, str | Path) and Path(part).suffix in ITEM_SUFFIXES:
            tables.append(read_items(Path(part)))
        else:
            run = part if isinstance(part, Run) else load_run(part)
            tables.append(items_table(run, per, task))
    return tables[0] if len(tables) == 1 else concat(tables, ignore_index=True)
