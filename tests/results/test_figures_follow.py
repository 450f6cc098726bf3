"""Predictions and figures that do not belong together are refused, also with digests that fit."""

import json
import shutil

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from invented_runs import make_run

from lmdiag.asking.protocol import Protocol
from lmdiag.results import PREDICTIONS, RESULTS, digest_of_predictions, load_run
from lmdiag.types import BadInput

ONE_TASK = Protocol(tasks=("agreement",))
ASKED = Protocol(tasks=("cprag102", "role88"), perturb=("shuf", "trunc", "both"), shuffles=2)


@pytest.fixture(scope="module")
def run_folder(tmp_path_factory, demo_dir):
    return make_run(tmp_path_factory.mktemp("follow") / "run", demo_dir, ASKED, unscorable=2)


@pytest.fixture(scope="module")
def agreement_run(tmp_path_factory, demo_dir):
    """It has thousands of figures, which take most of the time of a run that has all tasks."""
    return make_run(tmp_path_factory.mktemp("follow") / "run", demo_dir, ONE_TASK, unscorable=2)


@pytest.fixture(scope="module")
def other_predictions(tmp_path_factory, demo_dir):
    """The table of predictions of another model for the same questions."""
    folder = tmp_path_factory.mktemp("follow") / "other"
    return pq.read_table(make_run(folder, demo_dir, ASKED, unscorable=2, seed=1) / PREDICTIONS)


# ---- predictions ---------------------------------------------------------------------------------


def column(name, change):
    """Changes the values of a column."""

    def changed(table):
        values = change(table[name].to_pylist())
        column = pa.array(values, table.schema.field(name).type)
        return table.set_column(table.column_names.index(name), name, column)

    return changed


def first(value):
    """Puts a value in place of the first that is not null."""

    def changed(values):
        at = next(i for i, old in enumerate(values) if old is not None)
        return [*values[:at], value, *values[at + 1 :]]

    return changed


def points(change):
    """Changes the points of the curves of EW and MW; the first two values are EW and MW."""
    return column("agreement", lambda rows: [row and [*row[:2], *change(row[2:])] for row in rows])


def without(**values):
    """Leaves out the rows of a setting, or of one of its shuffles."""

    def changed(table):
        is_left_out = pc.equal(table["perturbation"], values["perturbation"])
        for name, value in values.items():
            is_left_out = pc.and_(is_left_out, pc.equal(table[name], value))
        return table.filter(pc.invert(is_left_out))

    return changed


FOLLOWS = "follows from the predictions"
OF_AGREEMENT = {"other tokens", "curve points", "a point of a curve"}
"""The cases below that change what only agreement has."""
ON_PREDICTIONS = {
    "half of the rows": (lambda table: table.slice(0, len(table) // 2), "missing"),
    "one row less": (lambda table: table.slice(1), "missing"),
    "all rows twice": (lambda table: pa.concat_tables([table, table]), "more than once"),
    "one row twice": (lambda table: table.take([0, *range(len(table))]), "more than once"),
    "no rows": (lambda table: table.slice(0, 0), "in results.json alone"),
    "doubled": (column("log_prob", lambda nats: [x and 2 * x for x in nats]), "has rank 1"),
    "reversed": (column("log_prob", lambda nats: nats[::-1]), "predictions.parquet: id"),
    "lowered": (column("log_prob", lambda nats: [x and x - 0.4 for x in nats]), FOLLOWS),
    "null": (column("log_prob", lambda nats: [None] * len(nats)), "in results.json alone"),
    "half of the values": (
        column("log_prob", lambda nats: [*nats[: len(nats) // 2], *[None] * -(-len(nats) // 2)]),
        "results.json",
    ),
    "NaN": (column("log_prob", first(float("nan"))), "log_prob is nan"),
    "positive": (column("log_prob", lambda nats: [x and -x for x in nats]), "never above 0"),
    "text": (lambda table: table.set_column(3, "log_prob", table["id"]), "log_prob is"),
    "list": (lambda table: table.set_column(3, "log_prob", table["top_log_probs"]), "log_prob is"),
    "other words": (column("top_words", lambda rows: rows[::-1]), "together, more than 1"),
    "other tokens": (column("n_tokens", lambda n: [0] * len(n)), "tse is in results.json alone"),
    "curve points": (points(lambda shares: [0.5] * len(shares)), FOLLOWS),
    "a shuffle less": (without(perturbation="shuf", run=1), FOLLOWS),
    "a shuffle alone": (without(perturbation="shuf", run=0), FOLLOWS),
    "a setting less": (without(perturbation="trunc"), "trunc is in results.json alone"),
    "another name": (
        column("perturbation", lambda names: ["new" if x == "trunc" else x for x in names]),
        "the setting new of cprag102 is not in results.json",
    ),
}  # fmt: skip
"""What is wrong with the predictions -> what makes it so, and a part of the message."""


def refused(folder):
    """The message on a run whose digests fit."""
    document = json.loads((folder / RESULTS).read_text())
    document["files"] = {PREDICTIONS: digest_of_predictions(folder)}
    (folder / RESULTS).write_text(json.dumps(document))
    with pytest.raises(BadInput) as error:
        load_run(folder)
    message = str(error.value)
    assert "\n" not in message
    assert message.endswith("run again with --overwrite")
    return message


@pytest.mark.parametrize("name", ON_PREDICTIONS)
def test_predictions_that_do_not_give_the_figures_are_refused(
    tmp_path, run_folder, agreement_run, name
):
    change, message = ON_PREDICTIONS[name]
    original = agreement_run if name in OF_AGREEMENT else run_folder
    folder = shutil.copytree(original, tmp_path / "run")
    pq.write_table(change(pq.read_table(folder / PREDICTIONS)), folder / PREDICTIONS)
    assert message in refused(folder)


def test_predictions_of_another_model_are_refused(tmp_path, run_folder, other_predictions):
    folder = shutil.copytree(run_folder, tmp_path / "run")
    pq.write_table(other_predictions, folder / PREDICTIONS)
    assert FOLLOWS in refused(folder)


# ---- figures -------------------------------------------------------------------------------------


def figures_of(document, task="cprag102", setting="shuf"):
    return document["tasks"][task][setting]["measures"]


def number(name, change):
    """Changes a number of sensitivity."""

    def changed(document):
        figure = figures_of(document)["sensitivity"]
        figure[name] = change(figure[name])

    return changed


def level(name):
    """Changes a number of the first level that has it."""

    def changed(document):
        levels = (
            figure
            for measure in figures_of(document).values()
            for by in measure["by"].values()
            for figure in by.values()
        )
        change = NUMBERS[name]
        has_number = (figure for figure in levels if figure.get(name) is not None)
        figure = next(figure for figure in has_number if change(figure[name]) != figure[name])
        figure[name] = change(figure[name])

    return changed


def of_setting(name, value, task="role88", setting="none"):
    """Changes a count of a setting."""

    def changed(document):
        document["tasks"][task][setting][name] = value

    return changed


def curve_point(document):
    measures = figures_of(document, "agreement", "none")
    next(figure for name, figure in measures.items() if "@top=" in name)["value"] /= 2


NUMBERS = {
    "value": lambda value: value * 0.999, "n": lambda n: n + 1, "n_tied": lambda n: n + 1,
    "ci_low": lambda low: low / 2, "ci_high": lambda high: high - 0.01,
    "chance": lambda chance: chance / 2, "sd": lambda sd: sd + 0.01,
    "runs": lambda runs: runs + 1,
}  # fmt: skip
ON_FIGURES = {
    **{f"{name} of a measure": (number(name, change), "sensitivity is")
       for name, change in NUMBERS.items()},
    **{f"{name} of a level": (level(name), FOLLOWS) for name in NUMBERS},
    "no value": (number("value", lambda _: None), "sensitivity is None, but"),
    "a statistic": (number("statistic", lambda _: "mean"), "statistic of sensitivity is mean"),
    "a measure less": (lambda document: figures_of(document).pop("sensitivity"), "not in results"),
    "a measure more": (
        lambda document: figures_of(document).update(new=figures_of(document)["sensitivity"]),
        "the measure new is in results.json alone",
    ),
    "no levels": (
        lambda document: figures_of(document)["sensitivity"]["by"].clear(), "break-down of"
    ),
    "a setting less": (
        lambda document: document["tasks"]["role88"].pop("both"), "both of role88 is not in"
    ),
    "a point of a curve": (curve_point, FOLLOWS),
    "no unscorable words": (of_setting("unscorable", []), "number of unscorable is 0, but 2"),
    "other unscorable words": (
        of_setting("unscorable", [{"id": "a", "word": "a"}] * 2), "unscorable is"
    ),
    "censored words": (of_setting("censored", [{"id": "a", "word": "a"}]), "censored is 1, but 0"),
    "equal contrasts": (of_setting("equal_contrasts", 7), "equal_contrasts is 7, but 0"),
    "words at starts": (of_setting("without_first", 3), "without_first is 3, but 0"),
    "contexts": (lambda document: document.update(n_contexts=7), "n_contexts is 7, but"),
}  # fmt: skip
"""What is wrong with the figures -> what makes it so, and a part of the message."""


@pytest.mark.parametrize("name", ON_FIGURES)
def test_figures_that_do_not_follow_from_the_predictions_are_refused(
    tmp_path, run_folder, agreement_run, name
):
    change, message = ON_FIGURES[name]
    original = agreement_run if name in OF_AGREEMENT else run_folder
    folder = shutil.copytree(original, tmp_path / "run")
    document = json.loads((folder / RESULTS).read_text())
    change(document)
    (folder / RESULTS).write_text(json.dumps(document))
    assert message in refused(folder)


def test_a_count_that_an_earlier_version_did_not_store_is_named(tmp_path, demo_dir):
    """Equal contrasts: of ROLE-88 with both nouns replaced, all ask the same."""
    protocol = Protocol(tasks=("role88",), perturb=("both",))
    folder = make_run(tmp_path / "run", demo_dir, protocol)
    document = json.loads((folder / RESULTS).read_text())
    del document["tasks"]["role88"]["both"]["equal_contrasts"]
    (folder / RESULTS).write_text(json.dumps(document))
    assert "equal_contrasts is 0, but 16 follows" in refused(folder)


# ---- commands ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "reads",
    [
        ["report"], ["report", "--format", "csv"], ["report", "--format", "json"],
        ["report", "--format", "markdown"], ["report", "--format", "text"], ["compare"],
        ["items", "--out", "items.csv"], ["analyse", "--task", "cprag102"], ["submit", "--dry-run"],
        ["score", "--task", "role88", "--predictions"],
    ],
    ids=" ".join,
)  # fmt: skip
def test_every_command_that_shows_figures_refuses(run_folder, tmp_path, command, reads):
    folder = shutil.copytree(run_folder, tmp_path / "run")
    document = json.loads((folder / RESULTS).read_text())
    number("value", NUMBERS["value"])(document)
    (folder / RESULTS).write_text(json.dumps(document))
    name, *options = reads
    paths = [folder, run_folder] if name == "compare" else [folder]
    given = [name, *options, *paths] if name == "score" else [name, *paths, *options]
    assert "sensitivity is" in command.refused(*given)
    assert not (folder / "report.html").exists()
