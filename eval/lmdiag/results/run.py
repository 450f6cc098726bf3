"""A run: its directory while it is under way, and the finished one, read back."""

from __future__ import annotations

import hashlib
import json
import math
import os
import re
import shutil
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.asking.protocol import Predictions, Protocol, query_options
from lmdiag.files import reading, writing
from lmdiag.presentable import Presentable
from lmdiag.results.evaluation import evaluate
from lmdiag.results.figure_checks import check_figures
from lmdiag.results.figures import figures
from lmdiag.results.item_scores import (
    MeasureScores,
    item_scores,
    mean_scores,
    without_curves,
)
from lmdiag.results.model_labels import model_label, model_labels, weights_text
from lmdiag.results.predictions import SettingKey, read_run
from lmdiag.results.predictions import read as read_predictions
from lmdiag.results.results import (
    PREDICTIONS,
    REPORT,
    RESULTS,
    DataInfo,
    Results,
    SettingResults,
    advising_to_overwrite,
    read_record,
    with_digest,
)
from lmdiag.results.signatures import combined_fingerprint, signature
from lmdiag.stimuli.perturbations import NONE, is_shuffled, perturb
from lmdiag.text import first_few
from lmdiag.types import BadInput, Fold, Kind

if TYPE_CHECKING:
    from pandas import DataFrame

    from lmdiag.results.item_rows import Per
    from lmdiag.stimuli import Stimuli

IDENTITY = "run.json"
"""Whose run an unfinished one is."""

HOW_TO_CONTINUE = "repeat the command that began it, without --overwrite; saved answers are kept"
"""How to go on with a run that is not finished."""

FAILED = "failed.txt"
"""In the folder of a model: why its run failed, in a command of several models."""

SCORES_OF_EARLIER_VERSIONS = "scores.parquet"
"""In run directories of versions that stored the scores, which nothing reads any more."""

LOCK = ".lock"
"""Held while a run is under way."""


# ---- the directory -------------------------------------------------------------------------------


class RunDirectory:
    """The directory of one run, held by one process group at a time.

    Attributes:
        path: `<output>/<model slug>/<protocol>`.
        journal: folder of finished batches while the run is under way.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.journal = path / "journal"
        self._lock = ExitStack()

    def open(self, identity: Mapping[str, Any], *, overwrite: bool) -> bool:
        """Takes the directory for a run; returns whether the finished run is already there.

        A finished run whose predictions are gone counts as unfinished. What a killed process left
        behind is removed.

        Args:
            identity: what two runs must have in common to share a directory, as
                `lmdiag.results.identity` returns it.
            overwrite: whether an earlier run in the directory is removed first.

        Raises:
            BadInput: another process is at work here, the directory belongs to another run, or its
                files are damaged.
        """
        self.take()
        if overwrite:
            self._remove(RESULTS, IDENTITY, PREDICTIONS, REPORT, SCORES_OF_EARLIER_VERSIONS)
        # a finished run says whose directory it is, or else the file of a run that was begun
        results = _read_without_checks(self.path) if (self.path / RESULTS).exists() else None
        owner = results.identity if results else self._identity_of_begun_run()
        self._refuse_other_run(identity, owner)
        if results and (self.path / PREDICTIONS).exists():
            check_files(self.path, results)
            self._remove(IDENTITY)
            return True
        # until the directory has results, this file says which run it belongs to
        writing.write_atomically(self.path / IDENTITY, json.dumps(identity, indent=1).encode())
        (self.path / RESULTS).unlink(missing_ok=True)
        return False

    def take(self) -> None:
        """Takes the directory as it is; `BadInput` if another process is at work here."""
        self.path.mkdir(parents=True, exist_ok=True)
        remedy = "wait for it, or choose another --output"
        busy = f"another lmdiag run is at work in {self.path}: {remedy}"
        self._lock.enter_context(writing.take_lock(self.path / LOCK, busy))
        writing.clear_drafts(self.path)

    def _identity_of_begun_run(self) -> Mapping[str, Any] | None:
        """Returns the identity of the run that was begun here; None for an empty directory.

        `BadInput` if there are files, but none that tells whose run it is.
        """
        file = self.path / IDENTITY
        if file.exists():
            with advising_to_overwrite():
                identity = reading.read_json(file)
                if not isinstance(identity, dict):
                    raise BadInput(f"{file}: expected an object, not {type(identity).__name__}")
            return identity
        names = {path.name for path in self.path.iterdir()} - {LOCK, f"{LOCK}.soft"}
        if not names:
            return None
        problem = f"{self.path} is not empty and is not a run directory: choose another --output"
        names_in_runs = {PREDICTIONS, REPORT, self.journal.name, SCORES_OF_EARLIER_VERSIONS}
        if names <= names_in_runs:
            problem += f", or --overwrite it (it has no {RESULTS})"
        raise BadInput(problem)

    def _refuse_other_run(
        self, identity: Mapping[str, Any], owner: Mapping[str, Any] | None
    ) -> None:
        """Raises `BadInput`, with the difference, if the directory belongs to another run.

        Args:
            identity: of the run that is to be made.
            owner: identity of the run in the directory; None if the directory is empty. Facts of
                the owner that `identity` does not have, as "entropy", do no harm.
        """
        if owner is None:
            return
        for key, value in identity.items():
            old = str(owner.get(key))
            new = str(value)
            if old == new:
                continue
            # signatures name the data as "data:1a2b3c4d"; other facts have no such part
            old_without_data = re.sub(r"\|data:[^|]*", "", old)
            new_without_data = re.sub(r"\|data:[^|]*", "", new)
            if old_without_data == new_without_data:
                raise BadInput(changed_data_message(self.path))
            difference = f"without {key}"
            if key in owner:
                difference = f"of another {key} ({old}, not {new})"
            raise BadInput(f"{self.path} holds a run {difference}: {_ANEW}")

    def finish(self, results: Results) -> None:
        """Writes results.json, the mark of a finished run, and removes what only resuming needs."""
        writing.write_atomically(self.path / RESULTS, with_digest(results.to_json()))
        self._remove(IDENTITY, SCORES_OF_EARLIER_VERSIONS)

    def close(self) -> None:
        """Releases the directory."""
        self._lock.close()

    def _remove(self, *names: str) -> None:
        """Removes files, and the journal."""
        shutil.rmtree(self.journal, ignore_errors=True)
        for name in names:
            (self.path / name).unlink(missing_ok=True)


_ANEW = "add --overwrite to make it anew, or choose another --output or --name"


def changed_data_message(path: Path) -> str:
    """Returns the message for a run directory whose run asked other rows; `path` is its path."""
    return f"the data, or how they are read, changed since the run in {path}: {_ANEW}"


def digest_of_predictions(path: Path) -> str:
    """Returns the SHA-256 of the predictions of a run directory."""
    with reading.opened(path / PREDICTIONS) as content:
        return hashlib.file_digest(content, "sha256").hexdigest()


def check_files(path: Path, results: Results) -> None:
    """Checks that the predictions of a run directory are those that were written with the results.

    `BadInput` if they are missing or have another digest.
    """
    if not (path / PREDICTIONS).exists():
        raise BadInput(f"{path / PREDICTIONS} is missing: run again to make it")
    if results.files.get(PREDICTIONS) != digest_of_predictions(path):
        raise BadInput(
            f"{path / PREDICTIONS} is not the file that this run wrote (its SHA-256 differs from "
            "the one in results.json): run again with --overwrite"
        )


def run_folders(paths: Iterable[Path]) -> list[Path]:
    """Returns the run directories among some paths and inside them.

    A folder of runs is replaced by its run directories, in the order of their names: "results" by
    "results/gpt2/role88-token" and "results/gpt2/role88-word". Any other path is returned as it is.
    """
    folders = []
    for path in paths:
        if reading.is_file(path / RESULTS) or not reading.is_folder(path):
            folders.append(path)
            continue
        with reading.readable(path):
            # in the folder of a model, and in an `--output`, which has the folders of models
            files = [*path.glob(f"*/{RESULTS}"), *path.glob(f"*/*/{RESULTS}")]
        run_directories = sorted(file.parent for file in files)
        folders += run_directories or [path]
    return folders


def unfinished_runs(paths: Iterable[Path]) -> list[Path]:
    """Returns the directories of runs that were begun and not finished, in paths and below them."""
    folders = set[Path]()
    for path in paths:
        if not reading.is_folder(path):
            continue
        files = list[Path]()
        with reading.readable(path):
            for pattern in (IDENTITY, f"*/{IDENTITY}", f"*/*/{IDENTITY}"):
                files += path.glob(pattern)
        for file in files:
            if not reading.is_file(file.with_name(RESULTS)):
                folders.add(file.parent)
    return sorted(folders)


def record_failure(folder: Path, problem: str) -> None:
    """Writes why the run of a model failed into `failed.txt` in the folder of the model.

    If `problem` is "", the run did not fail, and the file of an earlier command is removed.
    """
    file = folder / FAILED
    if problem:
        folder.mkdir(parents=True, exist_ok=True)
        writing.write_atomically(file, f"{problem}\n".encode())
    else:
        file.unlink(missing_ok=True)


def failures(paths: Iterable[Path]) -> list[str]:
    """Returns a line for each model that failed: what `record_failure` wrote into its folder.

    `paths` are folders of models, or folders that have such folders.
    """
    files = set[Path]()
    for path in paths:
        if reading.is_folder(path):
            with reading.readable(path):
                files.update([*path.glob(FAILED), *path.glob(f"*/{FAILED}")])
    return [reading.read_text(file, reading.MAX_DOCUMENT).strip() for file in sorted(files)]


def read_results(path: Path) -> Results:
    """Returns the results of a run directory.

    `BadInput` if there are none, they are damaged (see `read_record`), or were not computed from
    the predictions beside them.
    """
    if reading.has_file(path / RESULTS):
        results = _read_without_checks(path)
        check_files(path, results)
        return results
    first_folder = run_folders([path])[0]
    if first_folder != path:
        raise BadInput(f"{path} has several runs: name one of them, as {first_folder}")
    unfinished = unfinished_runs([path])
    if unfinished:
        names = first_few([str(folder) for folder in unfinished])
        raise BadInput(f"no run in {path} is finished ({names}): {HOW_TO_CONTINUE}")
    if not reading.exists(path):
        raise BadInput(
            f"there is no folder {path}{reading.near_path(path)}: name the directory of a run"
        )
    raise BadInput(f"{path} is not a finished run: it has no {RESULTS}; `lmdiag run` writes it")


def _read_without_checks(path: Path) -> Results:
    """Returns the content of `results.json`, which is not compared with the predictions."""
    with advising_to_overwrite():
        return read_record(Results, path / RESULTS)


# ---- finished runs -------------------------------------------------------------------------------


@dataclass(frozen=True, repr=False)
class Run(Presentable):
    """A finished run, read back.

    Attributes:
        path: the run directory.
        results: its figures and facts.
        stimuli: task -> its rows, unperturbed; {} for figures alone.
        predictions: task -> (perturbation, shuffle) -> predictions in the order of the rows.
        scores: (task, perturbation, shuffle) -> the scores that were computed so far.
    """

    path: Path
    results: Results
    stimuli: Mapping[str, Stimuli]
    predictions: Mapping[str, Mapping[SettingKey, Predictions]] = field(default_factory=dict)
    scores: dict[tuple[str, str, int], MeasureScores] = field(default_factory=dict)
    _means: dict[tuple[str, str], MeasureScores] = field(default_factory=dict)

    @property
    def contents(self) -> dict[str, str]:
        """Task -> a text that is the same for two tasks if their rows are the same.

        The names of the tasks do not matter; see `Stimuli.content`.
        """
        return {task: rows.content for task, rows in self.stimuli.items()}

    def asked(self, task: str, setting: str = NONE, shuffle: int = 0) -> Stimuli:
        """Returns the rows of a task as they were asked in a setting.

        In the setting "none" they are the rows of the data set; in any other one, these rows with
        the perturbation. `shuffle` is the number of the shuffle, from 0.
        """
        rows = self.stimuli[task]
        seed = self.results.protocol.seed
        return rows if setting == NONE else perturb(rows, setting, shuffle, seed)

    def scores_of(self, task: str, setting: str = NONE, shuffle: int = 0) -> MeasureScores:
        """Returns measure -> its per-item scores in a setting; {} if there are no predictions.

        Scores are computed when they are first asked for, and kept in `scores`.

        Args:
            task: name of the task.
            setting: "none", or the name of a perturbation.
            shuffle: number of the shuffle of the words, from 0; 0 in a setting without shuffles.
        """
        key = task, setting, shuffle
        if key in self.scores:
            return self.scores[key]
        scores: MeasureScores = {}
        predictions = self.predictions.get(task, {}).get((setting, shuffle))
        if predictions:
            scores = item_scores(self.stimuli[task], predictions, *self._scoring_arguments)
        self.scores[key] = scores
        return scores

    @property
    def _scoring_arguments(self) -> tuple[Protocol, tuple[Fold, ...], Kind]:
        """The arguments of `item_scores` and `evaluate` after rows and predictions.

        They are the protocol, the differences between words that do not count (`Fold`), and the
        kind of the model.
        """
        model = self.results.model
        return self.results.protocol, model.word_folds, model.kind

    def shuffles_of(self, task: str, setting: str) -> list[MeasureScores]:
        """Returns one dictionary, measure -> its per-item scores, for each shuffle of a setting.

        A setting without shuffles has one dictionary.
        """
        keys = sorted(self.predictions.get(task, {}))  # by setting, then by number of the shuffle
        return [self.scores_of(task, setting, shuffle) for name, shuffle in keys if name == setting]

    def evaluated(self, task: str, setting: str) -> SettingResults:
        """Returns the figures of a setting as they follow from predictions and rows."""
        # the order of the shuffles is that of `shuffles_of`, whose scores belong to them
        in_order = sorted(self.predictions[task].items())
        shuffles = [predictions for (name, _), predictions in in_order if name == setting]
        return evaluate(
            self.stimuli[task],
            shuffles,
            *self._scoring_arguments,
            scores=self.shuffles_of(task, setting),
            model=self.results.model,
        )

    def mean_scores(self, task: str, setting: str = NONE) -> MeasureScores:
        """Returns measure -> its per-item scores in a setting, means over its shuffles.

        The points of curves over cut-offs, as `ew@top=0.1`, are left out.
        """
        if (task, setting) not in self._means:
            shuffles = [without_curves(scores) for scores in self.shuffles_of(task, setting)]
            self._means[task, setting] = mean_scores(shuffles)
        return self._means[task, setting]

    def __repr__(self) -> str:
        """Returns one line: the model, the tasks, the signature and the directory."""
        tasks = ", ".join(self.results.tasks)
        name = model_label(self.results.model)
        return f"<Run of {name}: {tasks}; {self.results.signature}; {self.path}>"

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per figure; see `lmdiag.results.figures.figures`."""
        return figures([self.results])

    def items(self, per: Per = "row", *, task: str = "", label: str = "") -> DataFrame:
        """Returns the items as a pandas table; see `lmdiag.analysis.items.items_of`.

        Args:
            per: "row" for a row per row of the data, of which sentences with a critical word have
                the surprisal of this word; "sentence", "region" or "word" for those of sentences.
            task: one of the tasks; "" for all.
            label: of the model; "" for its usual one.
        """
        from pandas import concat

        from lmdiag.results.item_rows import item_rows, with_facts

        if task and task not in self.stimuli:
            choices = ", ".join(self.stimuli)
            raise BadInput(f"{self.path} has no task {task!r}: choose from {choices}")
        frames = []
        model = self.results.model
        tasks = [task] if task else list(self.stimuli)
        for name in tasks:
            for (setting, shuffle), predictions in self.predictions[name].items():
                facts = {
                    "model": label or model_label(model),
                    "signature": self.results.signature,
                    "weights": weights_text(model),
                    "task": name,
                    "perturbation": setting,
                    "shuffle": shuffle if is_shuffled(name, setting) else math.nan,
                }
                stimuli = self.asked(name, setting, shuffle)
                rows = item_rows(stimuli, predictions, self.scores_of(name, setting, shuffle), per)
                frames.append(with_facts(rows, facts))
        table = concat(frames, ignore_index=True)
        # with the unperturbed setting alone, these columns say nothing
        if all(len(settings) == 1 for settings in self.results.tasks.values()):
            table = table.drop(columns=["perturbation", "shuffle"])
        integer_columns = table.columns.intersection(["rank", "n_tokens", "shuffle"])
        return table.astype(dict.fromkeys(integer_columns, "Int64"))


def load_run(path: str | Path, data: str | None = None) -> Run:
    """Reads a finished run and the data it was made on.

    Args:
        path: run directory, or a folder with a single one.
        data: where the data set is; None for where it was when the run was made. A relative path
            is looked for here, then in the folders above the run directory. `BadInput` if it is
            another data set.

    >>> import lmdiag
    >>> path = lmdiag.run("demo:causal", "demo", tasks="role88").path
    >>> run = lmdiag.load_run(path)
    >>> len(run.items())
    32
    """
    [run] = load_runs([path], data)
    return run


def load_runs(
    paths: Iterable[str | Path],
    data: str | None = None,
    *,
    without_data: Callable[[str], object] | None = None,
) -> list[Run]:
    """Reads finished runs as `load_run` does; rows that several runs have are read once.

    Args:
        paths, data: see `load_run`.
        without_data: is called with a line for each run whose data cannot be read. Such a run is
            returned without rows, and its figures are not compared with its predictions. With None,
            it is refused.
    """
    stimuli_read: dict[str, Stimuli] = {}
    runs = []
    for path in paths:
        # of a path with several runs or none, `read_results` says what is wrong
        folders = run_folders([Path(path)])
        folder = folders[0] if len(folders) == 1 else Path(path)
        results = read_results(folder)
        try:
            rows = _rows_of(folder, results, data, stimuli_read)
        except BadInput as error:
            if without_data is None:
                raise
            with advising_to_overwrite():  # damaged predictions are refused without their rows, too
                read_predictions(folder / PREDICTIONS)
            effect = "effects are left out, and figures not compared with the predictions"
            without_data(f"lmdiag: {folder}: {effect}: {error}")
            runs.append(Run(folder, results, {}))
        else:
            runs.append(open_run(folder, results, rows))
    return runs


def _rows_of(
    path: Path, results: Results, data: str | None, stimuli_read: dict[str, Stimuli]
) -> dict[str, Stimuli]:
    """Returns task -> the rows of a run.

    `BadInput` if they are not those that the run was made on.

    Args:
        path: run directory.
        results: of the run.
        data: where the data set is; None for where it was when the run was made, see
            `_source_of_run`.
        stimuli_read: cache of rows; its keys are source, task and options of reading. It gets the
            rows that are read here.
    """
    from lmdiag import stimuli

    source = data or results.data.source
    revision = None
    if data is None:
        source = _source_of_run(path, results.data)
        revision = results.data.revision
    reading_options: dict[str, Any] = {
        "revision": revision,
        "limit": results.protocol.limit,
        "seed": results.protocol.seed,
        "allow_duplicates": True,  # of identical rows, the run has kept one
        **results.table.stored(),
    }
    rows_of_task = {}
    for task, expected in results.data.tasks.items():
        # cloze norms were made from people's responses
        task_options: dict[str, Any] = {"responses": expected.form == "cloze", **reading_options}
        key = repr((source, task, sorted(task_options.items())))
        if key not in stimuli_read:
            stimuli_read[key] = stimuli.load(source, task, **task_options)
        rows = stimuli_read[key]
        if rows.fingerprint != expected.fingerprint:
            fingerprints = f"{rows.fingerprint}, the run's is {expected.fingerprint}"
            raise BadInput(
                f"{source} is not the data {path} was made on: its {task} has fingerprint "
                f"{fingerprints}; name the right one by --data"
            )
        rows_of_task[task] = rows
    return rows_of_task


def _source_of_run(path: Path, data: DataInfo) -> str:
    """Returns the path of the data of a run, or the name of its data set on the Hub.

    A run may have been moved together with its data. So the path that the user once gave is tried
    from the current directory, and then from each folder above the run directory; and last the path
    from the run directory to the data. The first path that has data is returned.
    """
    from lmdiag import stimuli

    directory = reading.real_path(path)
    candidates = [Path(data.source)]
    candidates += [folder / data.source for folder in directory.parents]
    if data.place:
        candidates.append(Path(os.path.normpath(directory / data.place)))
    for candidate in candidates:
        # a folder of runs may have the name of the data: it is not data
        if reading.exists(candidate) and stimuli.is_data(candidate):
            return str(candidate)
    return data.source


def open_run(path: Path, results: Results, stimuli: Mapping[str, Stimuli]) -> Run:
    """Returns a run with its predictions, from which its figures and counts must follow.

    `BadInput` if the predictions are damaged, or a figure does not follow (see `check_figures`).
    """
    protocol = results.protocol
    recorded_options = query_options(protocol) | {"seed": protocol.seed, "verbs": protocol.verbs}
    predictions: dict[str, dict[SettingKey, Predictions]] = {}
    for task, predictions_of_setting in read_run(path / PREDICTIONS, stimuli).items():
        predictions[task] = {}
        for key, part in predictions_of_setting.items():
            # predictions.parquet does not say how the model was asked, but results.json does
            predictions[task][key] = replace(part, **recorded_options, model=results.model)
    run = Run(path, results, stimuli, predictions)
    computed_results: dict[str, dict[str, SettingResults]] = {}
    for task, settings in predictions.items():
        # settings that the results lack: `check_figures` compares those that they have
        for setting, shuffle in settings:
            problem = ""
            if setting not in results.tasks.get(task, {}):
                problem = f"the setting {setting} of {task} is not in {RESULTS}"
            elif shuffle and not is_shuffled(task, setting):
                problem = f"{task} has several shuffles in setting {setting}"
            if problem:
                raise BadInput(f"{path / PREDICTIONS}: {problem}: run again with --overwrite")
        computed_results[task] = {}
        for setting in dict.fromkeys(setting for setting, _ in settings):
            computed_results[task][setting] = run.evaluated(task, setting)
    check_figures(path / RESULTS, results, computed_results, stimuli)
    return run


# ---- runs on different tasks as one --------------------------------------------------------------


class Runs(Presentable, list[Run]):
    """Finished runs that are shown together, on the same rows; a list.

    >>> import lmdiag
    >>> runs = lmdiag.run(["demo:causal", "demo:masked"], "demo", tasks="role88")
    >>> runs.to_frame()["model"].unique().tolist()
    ['demo:causal', 'demo:masked']
    """

    def __repr__(self) -> str:
        """Returns one line: the number of runs and the labels of their models."""
        names = ", ".join(model_labels([run.results.model for run in self]))
        return f"<{len(self)} runs: {names}>"

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per figure; see `lmdiag.results.figures.figures`."""
        return figures([run.results for run in self])


def joined_runs(runs: Sequence[Run]) -> list[Run]:
    """Returns runs in the order given, in which runs of one model on different tasks are one.

    A run of gpt2 on role88 and another one on neg136 become one run on role88 and neg136. Runs are
    joined if the model is the same (commit and dtype included), no task is in two of them, and
    their protocols differ in tasks, perturbations and verbs alone.
    """
    groups: list[list[Run]] = []
    for run in runs:
        for group in groups:
            if all(_can_join(member.results, run.results) for member in group):
                group.append(run)
                break
        else:  # the run fits into no group
            groups.append([run])
    return [_join(group) if len(group) > 1 else group[0] for group in groups]


def _can_join(a: Results, b: Results) -> bool:
    """Whether two results are of one model, asked in the same way on different tasks."""
    # options that may differ; entropies change no figure
    ignored: dict[str, Any] = {"tasks": (), "perturb": (), "verbs": None, "entropy": False}
    is_asked_alike = replace(a.protocol, **ignored) == replace(b.protocol, **ignored)
    return a.model == b.model and is_asked_alike and a.tasks.keys().isdisjoint(b.tasks)


def _join(runs: Sequence[Run]) -> Run:
    """Returns several runs of one model as one run with the tasks of all.

    The numbers of contexts and of seconds are sums over the runs. Other facts that a run records
    once, as its device, are those of the first run.
    """
    parts = [run.results for run in runs]
    base = parts[0]
    data_of_task = {task: data for part in parts for task, data in part.data.tasks.items()}
    fingerprint = combined_fingerprint(
        {task: data.fingerprint for task, data in data_of_task.items()}
    )
    sources = dict.fromkeys(part.data.source for part in parts)
    revision = base.data.revision if len(sources) == 1 else None
    protocol = _protocol_of_all([part.protocol for part in parts])
    asks_words = any(part.diagnostic(task).asks == "word" for part in parts for task in part.tasks)
    numbers_of_verbs = [part.n_verbs for part in parts if part.n_verbs is not None]
    results = replace(
        base,
        signature=signature(protocol, fingerprint, asks_words=asks_words, model=base.model),
        data=DataInfo(", ".join(sources), revision, fingerprint, data_of_task),
        protocol=protocol,
        seconds={step: sum(part.seconds.get(step, 0.0) for part in parts) for step in base.seconds},
        finished=max(part.finished for part in parts),
        n_contexts=sum(part.n_contexts for part in parts),
        n_verbs=numbers_of_verbs[0] if numbers_of_verbs else None,
        tasks={task: settings for part in parts for task, settings in part.tasks.items()},
        identity={},
        files={},
    )
    stimuli = {task: rows for run in runs for task, rows in run.stimuli.items()}
    predictions = {task: rows for run in runs for task, rows in run.predictions.items()}
    scores = {key: measures for run in runs for key, measures in run.scores.items()}
    return Run(runs[0].path, results, stimuli, predictions, scores)


def _protocol_of_all(protocols: Sequence[Protocol]) -> Protocol:
    """Returns the protocol of a joined run, with the tasks and perturbations of all protocols.

    The protocols differ in tasks, perturbations and verbs alone.
    """
    tasks = [task for protocol in protocols for task in protocol.tasks]
    perturbations = dict.fromkeys(name for protocol in protocols for name in protocol.perturb)
    numbers_of_verbs = [protocol.verbs for protocol in protocols if protocol.verbs]
    return replace(
        protocols[0],
        tasks=tuple(tasks),
        perturb=tuple(perturbations),
        verbs=numbers_of_verbs[0] if numbers_of_verbs else None,
    )
