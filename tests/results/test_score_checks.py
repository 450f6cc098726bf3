"""Scores that are not those of the run's figures are refused, also with a digest that fits."""

import json
import os
import shutil

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from invented_runs import PERTURBED, make_run

from lmdiag.results import RESULTS, SCORES, load_run, read_results
from lmdiag.results.run import digests
from lmdiag.types import BadInput


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory, demo_dir):
    return make_run(tmp_path_factory.mktemp("checked") / "run", demo_dir, PERTURBED, unscorable=2)


@pytest.fixture(scope="module")
def other_folder(tmp_path_factory, demo_dir):
    folder = tmp_path_factory.mktemp("checked") / "other"
    return make_run(folder, demo_dir, PERTURBED, unscorable=2, seed=1)


def with_column(name, change, type_=None):
    """Changes the values of a column; of another type where one is given."""

    def changed(table):
        at = table.column_names.index(name)
        values = change(table[name].to_pylist())
        return table.set_column(at, name, pa.array(values, type_ or table.schema.field(name).type))

    return changed


def first(value):
    """Puts a value in place of the first that is not null."""

    def changed(values):
        at = next(i for i, old in enumerate(values) if old is not None)
        return [*values[:at], value, *values[at + 1 :]]

    return changed


def of_measure(change):
    """Changes the values of the first measure of shares of right items."""

    def changed(table):
        values = np.array(table["value"].to_pylist(), dtype=float)
        rows = [name == "sensitivity" for name in table["measure"].to_pylist()]
        values[rows] = change(values[rows])
        column = pa.array(values, from_pandas=True)
        return table.set_column(table.column_names.index("value"), "value", column)

    return changed


def without(**values):
    """Leaves out the rows with these values."""

    def changed(table):
        frame = table.to_pandas()
        kept = ~np.logical_and.reduce([frame[name] == value for name, value in values.items()])
        return table.filter(pa.array(kept))

    return changed


def cast(name, type_):
    def changed(table):
        column = table[name].cast(type_)
        return table.set_column(table.column_names.index(name), name, column)

    return changed


FIGURES = "does not give the figures of this run"
COLUMNS = "does not have the columns of scores"
VALUES = "does not have the values of scores"
CHANGES = {
    "half of the items": (lambda table: table.slice(0, len(table) // 2), FIGURES),
    "every second item": (lambda table: table.take([*range(0, len(table), 2)]), FIGURES),
    "no rows": (lambda table: table.slice(0, 0), FIGURES),
    "one row less": (lambda table: table.slice(1), FIGURES),
    "all rows twice": (lambda table: pa.concat_tables([table, table]), "twice"),
    "one row twice": (lambda table: table.take([0, *range(len(table))]), "twice in one measure"),
    "rows in another order": (lambda table: table.take([*range(len(table))][::-2]), FIGURES),
    "all right": (of_measure(np.ones_like), FIGURES),
    "all wrong": (of_measure(np.zeros_like), FIGURES),
    "right for wrong": (of_measure(lambda values: 1 - values), FIGURES),
    "proportion of a half": (of_measure(lambda values: values / 2), VALUES),
    "undefined": (of_measure(lambda values: values * np.nan), FIGURES),
    "value of 1e308": (with_column("value", first(1e308)), VALUES),
    "infinite value": (with_column("value", first(np.inf)), VALUES),
    "NaN": (with_column("value", first(np.nan)), "value is NaN in a row"),
    "chance of 2": (with_column("chance", first(2.0)), VALUES),
    "chance of NaN": (with_column("chance", first(np.nan)), "chance is NaN in a row"),
    "another chance": (with_column("chance", first(0.25)), FIGURES),
    "no chance": (with_column("chance", lambda values: [None] * len(values)), FIGURES),
    "no covariate": (with_column("covariate", lambda values: [None] * len(values)), VALUES),
    "covariate of a mean": (with_column("covariate", lambda values: [1.0] * len(values)), VALUES),
    "no levels": (with_column("levels", lambda values: [None] * len(values)), FIGURES),
    "levels of no JSON": (with_column("levels", first("{")), "not valid JSON"),
    "levels of numbers": (with_column("levels", first('{"constraint": [1]}')), VALUES),
    "deep levels": (with_column("levels", first("[" * 100_000)), "not valid JSON"),
    "shuffle of -1": (with_column("shuffle", first(-1)), VALUES),
    "null task": (with_column("task", first(None)), "task is missing in a row"),
    "null item": (with_column("item", first(None)), "item is missing in a row"),
    "null shuffle": (with_column("shuffle", first(None)), "shuffle is missing in a row"),
    "another task": (without(task="role88"), "the task role88 is in results.json alone"),
    "another setting": (without(setting="trunc"), "trunc is in results.json alone"),
    "another measure": (without(measure="sensitivity"), "sensitivity is in results.json alone"),
    "unknown statistic": (with_column("statistic", first("mode")), VALUES),
    "shuffle less": (without(setting="shuf", shuffle=1), FIGURES),
    "numbers as text": (cast("value", pa.string()), COLUMNS),
    "float32": (cast("value", pa.float32()), COLUMNS),
    "shuffles as text": (cast("shuffle", pa.string()), COLUMNS),
    "nested levels": (
        with_column("levels", lambda x: [[text] for text in x], pa.list_(pa.string())), "levels"
    ),
    "nested values": (
        with_column("value", lambda x: [{"a": n} for n in x], pa.struct({"a": pa.float64()})),
        COLUMNS,
    ),
    "a column less": (lambda table: table.drop_columns("chance"), COLUMNS),
    "a column more": (lambda table: table.append_column("more", table["item"]), COLUMNS),
    "a column twice": (lambda table: table.append_column("item", table["item"]), "item twice"),
    "another name": (lambda table: table.rename_columns({"covariate": "covariat"}), COLUMNS),
    "names exchanged": (
        lambda table: table.rename_columns({"chance": "covariate", "covariate": "chance"}), COLUMNS
    ),
    "no columns": (lambda table: table.select([]), COLUMNS),
    "long text": (with_column("item", first("x" * (2**20 + 1))), "at most 1,048,576 are read"),
}  # fmt: skip
"""What is wrong with the table of scores -> what makes it so, and a part of the message."""


def refused(folder):
    """The message on a run whose scores were changed, and whose digests fit."""
    document = json.loads((folder / RESULTS).read_text())
    document.pop("sha256", None)
    if (folder / SCORES).is_file():
        document["files"] = digests(folder)
    (folder / RESULTS).write_text(json.dumps(document))
    messages = []
    for read in (read_results, load_run):
        with pytest.raises(BadInput) as error:
            read(folder)
        messages.append(str(error.value))
    assert messages[0] == messages[1]
    assert "\n" not in messages[0]
    return messages[0]


@pytest.mark.parametrize(("change", "message"), CHANGES.values(), ids=[*CHANGES])
def test_changed_scores_are_refused(tmp_path, run_folder, change, message):
    folder = shutil.copytree(run_folder, tmp_path / "run")
    pq.write_table(change(pq.read_table(folder / SCORES)), folder / SCORES)
    text = refused(folder)
    assert message in text
    assert "run again with --overwrite" in text


@pytest.mark.parametrize("field", ["value", "n", "ci_low", "ci_high", "chance", "sd", "runs"])
def test_changed_figures_are_refused(tmp_path, run_folder, field):
    """Of a shuffled setting, which has all of them: of a measure, and of one of its levels."""
    figures = shutil.copytree(run_folder, tmp_path / "run") / RESULTS
    content = figures.read_text()
    for is_level in (False, True):
        document = json.loads(content)
        measures = document["tasks"]["cprag102"]["shuf"]["measures"]
        figure = measures["sensitivity"]
        if is_level:
            figure = next(
                level for x in measures.values() for by in (x["by"] or {}).values()
                for level in by.values() if level[field] is not None
            )  # fmt: skip
        figure[field] *= 2 if field in ("n", "runs") else 0.999
        figures.write_text(json.dumps(document))
        assert FIGURES in refused(figures.parent)


def test_files_that_are_no_scores_are_refused(tmp_path, run_folder, other_folder):
    folder = shutil.copytree(run_folder, tmp_path / "run")
    file = folder / SCORES
    for content in (b"", b"PAR1", b"PAR1" * 9, file.read_bytes()[:-9]):
        file.write_bytes(content)
        assert "not valid Parquet" in refused(folder)
    shutil.copy(other_folder / SCORES, file)
    assert FIGURES in refused(folder)
    file.unlink()
    if not hasattr(os, "mkfifo"):  # on Windows
        return
    os.mkfifo(file)
    assert "is not a regular file" in refused(folder)


@pytest.mark.slow
def test_page_that_declares_more_than_it_has_is_refused(tmp_path, run_folder):
    """A few kB: a page of one long text that says it is as long as a page may be."""
    file = shutil.copytree(run_folder, tmp_path / "run") / SCORES
    table = pa.table({"item": ["x" * 140_000_000]})
    how = {"compression": "zstd", "use_dictionary": False, "write_statistics": False}
    pq.write_table(table, file, data_page_size=2**31 - 1, **how)
    content = file.read_bytes()
    size = content.index(b"\x15\x00\x15") + 3  # after the type of the page: a number of 5 bytes
    assert all(byte >= 128 for byte in content[size : size + 4])
    file.write_bytes(content[:size] + b"\xfe\xff\xff\xff\x0f" + content[size + 5 :])
    assert len(content) < 10_000
    assert "cannot be read: Corrupt" in refused(file.parent)
