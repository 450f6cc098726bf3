"""The results of a run: the content of `results.json`, typed, validated and written here alone."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import Any, Literal, TypeVar

from lmdiag import diagnostics
from lmdiag.diagnostics import Diagnostic
from lmdiag.files import read_json, redacted
from lmdiag.protocol import Protocol
from lmdiag.results.figure import Figure, Measure, Place, SettingResults
from lmdiag.types import BadInput, ModelInfo

T = TypeVar("T")


@dataclass(frozen=True)
class TaskData:
    """The rows of a task that were used.

    Attributes:
        fingerprint: see `lmdiag.stimuli.Stimuli`.
        n: number of rows.
        form: of the data, see `lmdiag.stimuli.Stimuli`.
    """

    fingerprint: str
    n: int
    form: str = ""


@dataclass(frozen=True)
class DataInfo:
    """The data set of a run.

    Attributes:
        source: as the user named it.
        revision: commit; None where there is none.
        fingerprint: of all tasks together.
        tasks: task -> its rows.
    """

    source: str
    revision: str | None
    fingerprint: str
    tasks: dict[str, TaskData]


@dataclass(frozen=True)
class Device:
    """What a run ran on: name of the device, and number of processes."""

    name: str
    processes: int


@dataclass(frozen=True)
class Results:
    """How a run was made, and all its figures.

    Attributes:
        signature: makes two runs comparable exactly when it is equal.
        model, data, protocol: what was evaluated, on what, and how.
        tasks: task -> setting -> its figures.
        identity: what must be equal for two runs to share a directory.
        versions: package -> version.
        device: that the run ran on.
        seconds: step -> duration.
        finished: date and time, ISO 8601.
        n_contexts: number of distinct contexts that were asked.
        files: name -> SHA-256 of the files that the figures were computed from.
        schema_version: of `results.json`; no other one is read.
    """

    signature: str
    model: ModelInfo
    data: DataInfo
    protocol: Protocol
    versions: dict[str, str]
    device: Device
    seconds: dict[str, float]
    finished: str
    n_contexts: int
    tasks: dict[str, dict[str, SettingResults]]
    identity: dict[str, str | None] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    schema_version: Literal[1] = 1

    def diagnostic(self, task: str) -> Diagnostic:
        """Returns what is declared for a task."""
        known = self.data.tasks.get(task)
        return diagnostics.get(task, known.form if known else "")

    def measure(self, task: str, setting: str, name: str) -> Measure | None:
        """Returns a measure of a setting; None where there is none."""
        settings = self.tasks.get(task, {})
        return settings[setting].measures.get(name) if setting in settings else None

    def figure(self, place: Place) -> Figure | None:
        """Returns the figure at an address; None where there is none."""
        measure = self.measure(place.task, place.setting, place.measure)
        return None if measure is None else measure.at(place.by, place.level)

    def figures(self) -> Iterator[tuple[Place, Figure]]:
        """Yields all figures with their addresses."""
        for task, settings in self.tasks.items():
            for setting, results in settings.items():
                yield from results.figures(task, setting)

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        document = asdict(replace(self, tasks={}))
        document["protocol"]["match"] = "exact" if self.model.cased else "case-blind"
        document["tasks"] = {
            task: {setting: content.to_json() for setting, content in settings.items()}
            for task, settings in self.tasks.items()
        }
        return document

    def redacted(self) -> Results:
        """Returns the results without secrets in their texts."""
        return replace(
            self,
            model=replace(self.model, **redacted(asdict(self.model))),
            data=replace(self.data, source=redacted(self.data.source)),
        )

    @classmethod
    def from_json(cls, document: Any, where: str) -> Results:
        """Returns the results of a document; keys that are not known are ignored.

        Args:
            document: the parsed content of a `results.json`.
            where: name of the file, for messages.

        Raises:
            BadInput: it is of another version, or a value is missing or of the wrong type; the
                message names file and field.
        """
        results = validated(cls, document, where)
        for complaint in _complaints(results):
            raise BadInput(f"{where}: {complaint}")
        return results

    @classmethod
    def read(cls, file: Path) -> Results:
        """Reads a `results.json`.

        Raises:
            BadInput: see `from_json`; or the file is missing or not JSON.
        """
        return cls.from_json(read_json(file), str(file))


def of_setting(task: str, setting: str, content: SettingResults, form: str = "") -> Results:
    """Returns results with the figures of one setting, of a model of which nothing is known."""
    model = ModelInfo("", None, "", "masked", "", "", "", True, 0, 0, None)
    data = DataInfo("", None, "", {task: TaskData("", 0, form)})
    protocol, device = Protocol(tasks=(task,)), Device("", 0)
    tasks = {task: {setting: content}}
    return Results(content.signature, model, data, protocol, {}, device, {}, "", 0, tasks)


def validated(kind: type[T], document: Any, where: str) -> T:
    """Returns a dataclass from the JSON values of its fields.

    Raises:
        BadInput: a value is missing or of the wrong type; the message names file and field.
    """
    from pydantic import TypeAdapter, ValidationError

    try:
        return TypeAdapter(kind).validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        raise BadInput(f"{where}: {first_problem(error)}") from None


def first_problem(error: Any) -> str:
    """Returns the first error of a validation: the path of the field, and what is wrong."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    path = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in first["loc"])
    message = first["msg"][:1].lower() + first["msg"][1:]
    return f"{path.removeprefix('.') or 'the document'}: {message}"


def _complaints(results: Results) -> Iterator[str]:
    """What types do not say."""
    try:
        datetime.fromisoformat(results.finished)
    except ValueError:
        yield "finished is not an ISO 8601 date"
    if not results.protocol.k:
        yield "protocol.k: the list is empty"
    if not results.tasks or not all(results.tasks.values()):
        yield "tasks: there are none, or one has no settings"
    for task in results.tasks.keys() - results.data.tasks.keys():
        yield f"data.tasks.{task}: field required"
    for task, facts in results.data.tasks.items():
        if facts.form and facts.form not in diagnostics.forms():
            yield f"data.tasks.{task}.form: {facts.form!r:.60} is not a form of data"
    for place, figure in results.figures():
        where = f"tasks.{place.task}.{place.setting}.measures.{place.measure}"
        if figure.statistic is None:
            yield f"{where}.statistic: field required"
        n_rows = results.data.tasks[place.task].n
        numbers = figure.chance is None or (
            0 <= figure.chance <= 1
            and 0 <= (figure.value or 0) <= 1
            and 0 <= (figure.n or 0) <= n_rows
        )
        if not numbers:
            yield f"{where}: not a proportion in [0, 1] of at most all rows"
