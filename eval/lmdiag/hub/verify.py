"""Does a submission say what its predictions say? Every figure is computed again.

`verify` returns reasons to refuse, each one line that a submitter can act on; none means that the
run is complete, of the leaderboard's protocol, on the leaderboard's data, and that all its figures
follow from its predictions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.hub.client import REPO_ID
from lmdiag.hub.plausible import first_few, implausible
from lmdiag.hub.shape import read_strictly
from lmdiag.hub.text import visible
from lmdiag.results import AGREEMENT as AGREEMENT_FILE
from lmdiag.results import PREDICTIONS, combine, signature
from lmdiag.schema import AGREEMENT, DIAGNOSTICS, BadInput, Predictions, Protocol

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

MAX_PREDICTIONS = 500_000_000
"""Bytes of a predictions.parquet."""

COLUMN_TYPES = {
    "id": "string",
    "perturbation": "string",
    "run": "int32",
    "log_prob": "double",
    "rank": "int32",
    "n_tokens": "int32",
    "top_words": "list<element: string>",
    "top_log_probs": "list<element: double>",
}
"""Columns of predictions.parquet, as Arrow names their types."""

LATER_KEYS = frozenset({"chance"})
"""Keys of a figure that runs of an earlier version lack."""

FIGURE_TOLERANCE = 1e-9
"""What two machines' arithmetic may do to a figure."""


@dataclass
class Benchmark:
    """The data that submissions are measured on, loaded once and only as far as needed.

    Attributes:
        data: built directory or Hub data set id.
        revision: of a Hub data set.
    """

    data: str
    revision: str | None = None
    _loaded: dict[str, Stimuli] = field(default_factory=dict, repr=False)
    _verbs: int | None = field(default=None, repr=False)

    @property
    def is_on_hub(self) -> bool:
        """Whether the data are a data set of the Hub, not a directory of this machine."""
        return not Path(self.data).exists() and bool(REPO_ID.fullmatch(self.data))

    @property
    def name(self) -> str:
        """What to call the data: of a directory its last name, for paths are no one's business."""
        return self.data if self.is_on_hub else Path(self.data).resolve().name

    def stimuli(self, task: str) -> Stimuli:
        """The rows of a task.

        Raises:
            BadInput: the data set cannot be loaded or does not have the task.
        """
        if task not in self._loaded:
            from lmdiag import stimuli

            self._loaded[task] = stimuli.load(self.data, task, revision=self.revision)
        return self._loaded[task]

    def verbs(self) -> int:
        """Number of pairs in its list of verbs.

        Raises:
            BadInput: the data set has none.
        """
        from lmdiag import stimuli

        if self._verbs is None:
            self._verbs = len(stimuli.load_verbs(self.data, revision=self.revision))
        return self._verbs


def verify(folder: Path, benchmark: Benchmark) -> list[str]:
    """Returns the reasons to refuse a run directory; an empty list accepts it.

    Args:
        folder: with results.json and predictions.parquet, from anyone.
        benchmark: the data it must have been made on.

    Raises:
        BadInput: the benchmark itself cannot be loaded.
    """
    return [visible(reason) for reason in _reasons(folder, benchmark)]


def _reasons(folder: Path, benchmark: Benchmark) -> list[str]:
    try:
        results = read_strictly(folder)
    except BadInput as error:
        return [str(error)]
    reasons = [*_protocol_reasons(results)]
    if reasons:
        return reasons
    tasks = list(results["protocol"]["tasks"])
    rows = {task: benchmark.stimuli(task) for task in tasks}
    verbs = benchmark.verbs() if AGREEMENT in rows else None
    reasons = [*_data_reasons(results, rows, verbs), *_file_reasons(folder, rows)]
    if reasons:
        return reasons
    try:
        found = read_predictions(folder, rows, results)
    except BadInput as error:
        return [str(error).replace(f"{folder}/", "")]
    reasons = [*_plausibility_reasons(found, rows, results)]
    return reasons or [*_figure_reasons(found, rows, results)]


def protocol_of(results: Mapping[str, Any]) -> Protocol:
    """Returns the protocol that a results.json of the right form names."""
    said = results["protocol"]
    return Protocol(
        tasks=tuple(said["tasks"]),
        perturb=tuple(said["perturb"]),
        shuffles=said["shuffles"],
        seed=said["seed"],
        unit=said["unit"],
        k=tuple(said["k"]),
        threshold=float(said["threshold"]),
        bos=said["bos"],
        limit=said["limit"],
        verbs=said["verbs"],
    )


def _protocol_reasons(results: Mapping[str, Any]) -> Iterator[str]:
    """The leaderboard's protocol is the default one; agreement may be asked as well."""
    said, wanted = protocol_of(results), Protocol()
    missing = [task for task in DIAGNOSTICS if task not in said.tasks]
    if missing:
        yield f"the run is partial: it lacks {', '.join(missing)}"
    foreign = [task for task in said.tasks if task not in (*DIAGNOSTICS, AGREEMENT)]
    if foreign or len(set(said.tasks)) != len(said.tasks):
        yield f"its tasks are not those of the benchmark: {first_few(said.tasks, 9)}"
    if said.limit is not None:
        yield f"the run is partial: a sample of {said.limit} rows of each task was asked"
    if said.perturb:
        yield f"the run is perturbed ({first_few(said.perturb, 6)}): submit a plain one"
    for knob in ("unit", "k", "threshold", "bos", "shuffles", "seed"):
        mine, theirs = getattr(wanted, knob), getattr(said, knob)
        if mine != theirs:
            yield f"another protocol: {knob} is {theirs}, the leaderboard's is {mine}"
    match = "exact" if results["model"]["cased"] else "case-blind"
    if results["protocol"]["match"] != match:
        yield f"words were compared {results['protocol']['match']}, its tokenizer needs {match}"


def _data_reasons(
    results: Mapping[str, Any], rows: Mapping[str, Stimuli], verbs: int | None
) -> Iterator[str]:
    """Made on the benchmark's rows, and signed for them."""
    said = results["data"]["tasks"]
    for task, stimuli in rows.items():
        facts = said.get(task)
        if not isinstance(facts, dict) or facts.get("fingerprint") != stimuli.fingerprint:
            yield f"{task} was made on other data than the benchmark's ({stimuli.fingerprint})"
        elif facts.get("n") != len(stimuli):
            yield f"{task} has {len(stimuli)} rows, not {facts.get('n')}"
    protocol = protocol_of(results)
    if protocol.verbs != verbs:
        yield f"its list has {protocol.verbs} verbs, the benchmark's {verbs}"
    fingerprint = combine({task: stimuli.fingerprint for task, stimuli in rows.items()})
    if results["data"]["fingerprint"] != fingerprint:
        yield f"the fingerprint of its data is not the benchmark's ({fingerprint})"
    expected = signature(protocol, fingerprint)
    if results["signature"] != expected:
        yield f"its signature is not that of what it says it did, {expected}"
    if set(results["tasks"]) != set(rows):
        yield f"it has figures for {first_few(sorted(results['tasks']), 9)}, not for its tasks"


def _file_reasons(folder: Path, rows: Mapping[str, Stimuli]) -> Iterator[str]:
    """Whether the files are there and not so large that reading them would do harm."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    names = [PREDICTIONS, *([AGREEMENT_FILE] if AGREEMENT in rows else [])]
    expected = sum(map(len, rows.values()))
    limits = f"{MAX_PREDICTIONS:,} bytes or {2 * expected:,} rows"
    for path in (folder / name for name in names):
        if not path.is_file():
            yield f"there is no {path.name}"
            continue
        try:
            metadata = pq.read_metadata(path)
            schema = metadata.schema.to_arrow_schema()
        except (pa.ArrowException, OSError):
            yield f"{path.name} is no Parquet file"
            continue
        groups = (metadata.row_group(index) for index in range(metadata.num_row_groups))
        unpacked = sum(group.total_byte_size for group in groups)
        if metadata.num_rows > 2 * expected or max(unpacked, path.stat().st_size) > MAX_PREDICTIONS:
            yield f"{path.name} is larger than {limits}"
        for name, kind in COLUMN_TYPES.items():
            if path.name == PREDICTIONS and name not in schema.names:
                yield f"{path.name} has no column {name}"
            elif path.name == PREDICTIONS and str(schema.field(name).type) != kind:
                yield f"{path.name}: column {name} is {schema.field(name).type}, not {kind}"


def read_predictions(
    folder: Path, rows: Mapping[str, Stimuli], results: Mapping[str, Any]
) -> dict[str, Predictions]:
    """Returns task -> its unperturbed predictions, in the order of the rows.

    Raises:
        BadInput: missing, doubled or foreign ids, columns of another type, other settings.
    """
    import pyarrow as pa

    from lmdiag import predictions

    try:
        found = predictions.read_run(folder, rows, dict(results))
    except (pa.ArrowException, UnicodeDecodeError) as error:
        raise BadInput(f"{PREDICTIONS} cannot be read: {str(error).splitlines()[0]}") from None
    for task, settings in found.items():
        if set(settings) != {("none", 0)}:
            names = sorted(f"{name} {run}" for name, run in settings if (name, run) != ("none", 0))
            raise BadInput(f"{PREDICTIONS} holds perturbed rows of {task}: {first_few(names)}")
    return {task: settings["none", 0] for task, settings in found.items()}


def _plausibility_reasons(
    found: Mapping[str, Predictions], rows: Mapping[str, Stimuli], results: Mapping[str, Any]
) -> Iterator[str]:
    cased, top = results["model"]["cased"], protocol_of(results).top
    for task, predictions in found.items():
        columns = rows[task].columns()
        for reason in implausible(columns, predictions, cased=cased, top=top):
            yield f"{task}: {reason}"


def _figure_reasons(
    found: Mapping[str, Predictions], rows: Mapping[str, Stimuli], results: Mapping[str, Any]
) -> Iterator[str]:
    """Every figure, interval, count and unscorable word against the ones computed here."""
    from lmdiag import summary

    protocol, cased = protocol_of(results), results["model"]["cased"]
    for task, predictions in found.items():
        stimuli = rows[task]
        computed = {"signature": signature(protocol, stimuli.fingerprint)} | summary.evaluate(
            stimuli, [predictions], protocol, cased=cased, kind=results["model"]["kind"]
        )
        different = [*differences(results["tasks"][task], {"none": computed}, task)]
        yield from different[:3]
        if len(different) > 3:
            yield f"{task}: {len(different) - 3} more differences"


def differences(said: Any, computed: Any, path: str) -> Iterator[str]:
    """Yields where two JSON values differ, numbers by more than `FIGURE_TOLERANCE`."""
    if isinstance(computed, Mapping):
        if not isinstance(said, dict):
            yield f"{path}: there is no such break-down in its figures"
            return
        for key in computed:
            if key not in said:
                if key not in LATER_KEYS:
                    yield f"{path} {key}: is missing from its figures"
            else:
                yield from differences(said[key], computed[key], f"{path} {key}")
        for key in said:
            if key not in computed:
                yield f"{path} {key[:60]}: does not follow from its predictions"
    elif isinstance(computed, list | tuple):
        if said != list(computed):
            yield f"{path}: is not what its predictions give"
    elif not _same(said, computed):
        yield f"{path}: is {_short(said)}, its predictions give {_short(computed)}"


def _same(said: Any, computed: Any) -> bool:
    numbers = (int, float)
    if isinstance(computed, numbers) and isinstance(said, numbers) and not isinstance(said, bool):
        return abs(said - computed) <= FIGURE_TOLERANCE
    return type(said) is type(computed) and said == computed


def _short(value: Any) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)[:60]
