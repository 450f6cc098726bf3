"""The results of a run: the content of `results.json`, typed, validated and written here alone."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from datetime import datetime
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from lmdiag import diagnostics
from lmdiag.diagnostics import Diagnostic
from lmdiag.files import read_json, redacted
from lmdiag.protocol import Protocol
from lmdiag.results.figure import Figure, Measure, Place, SettingResults
from lmdiag.types import BadInput, ModelInfo

if TYPE_CHECKING:
    from pydantic import TypeAdapter

SCHEMA_VERSION = 1
"""The version of `results.json` that is written and read."""


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

    @property
    def match(self) -> Literal["exact", "case-blind"]:
        """How words are compared with the expected words: as the tokenizer distinguishes case."""
        return "exact" if self.model.cased else "case-blind"

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

    # ---- json ------------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        tasks = {
            task: {setting: results.to_json() for setting, results in settings.items()}
            for task, settings in self.tasks.items()
        }
        document = {"schema_version": SCHEMA_VERSION} | {
            each.name: getattr(self, each.name) for each in fields(self)
        }
        document |= {
            name: asdict(document[name]) for name in ("model", "data", "device", "protocol")
        }
        document["protocol"]["match"] = self.match
        plain: dict[str, Any] = json.loads(json.dumps(document | {"tasks": tasks}, allow_nan=False))
        return plain

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
        from pydantic import ValidationError

        version = document.get("schema_version") if isinstance(document, dict) else None
        if type(version) is not int or version != SCHEMA_VERSION:
            raise BadInput(
                f"{where} has schema version {str(version)[:20]}; this version of lmdiag reads "
                f"version {SCHEMA_VERSION}"
            )
        try:
            results = _adapter().validate_json(json.dumps(document), strict=True)
        except ValidationError as error:
            raise BadInput(f"{where}: {first_problem(error)}") from None
        for complaint in _complaints(results, document):
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
    unknown = {"commit": "", "architecture": "", "dtype": "", "tokenizer": ""}
    numbers = {"vocab_size": 0, "n_parameters": 0, "max_length": None}
    return Results(
        signature=content.signature,
        model=ModelInfo(id="", revision=None, kind="masked", cased=True, **unknown, **numbers),  # type: ignore[arg-type]
        data=DataInfo("", None, "", {task: TaskData("", 0, form)}),
        protocol=Protocol(tasks=(task,)),
        versions={},
        device=Device("", 0),
        seconds={},
        finished="",
        n_contexts=0,
        tasks={task: {setting: content}},
    )


@cache
def _adapter() -> TypeAdapter[Results]:
    from pydantic import TypeAdapter

    return TypeAdapter(Results)


def first_problem(error: Any) -> str:
    """Returns the first error of a validation: the path of the field, and what is wrong."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    path = "".join(f"[{at}]" if isinstance(at, int) else f".{at}" for at in first["loc"])
    message = first["msg"][:1].lower() + first["msg"][1:]
    return f"{path.removeprefix('.') or 'the document'}: {message}"


def _complaints(results: Results, document: Mapping[str, Any]) -> Iterator[str]:
    """What types do not say."""
    for each in fields(Protocol):
        if each.name not in document["protocol"]:
            yield f"protocol.{each.name}: field required"
    try:
        datetime.fromisoformat(results.finished)
    except ValueError:
        yield "finished is not an ISO 8601 date"
    if not results.protocol.k:
        yield "protocol.k: the list is empty"
    if document["protocol"].get("match") != results.match:
        yield f"protocol.match: must be {results.match!r}, which follows from model.cased"
    if not results.tasks:
        yield "tasks: there are none"
    for task, settings in results.tasks.items():
        if task not in results.data.tasks:
            yield f"data.tasks.{task}: field required"
        if not settings:
            yield f"tasks.{task}: there are no settings"
    for task, facts in results.data.tasks.items():
        if facts.form and facts.form not in diagnostics.forms():
            yield f"data.tasks.{task}.form: {facts.form!r:.60} is not a form of data"
    for place, figure in results.figures():
        where = f"tasks.{place.task}.{place.setting}.measures.{place.measure}"
        if figure.statistic is None:
            yield f"{where}.statistic: field required"
        if figure.chance is not None:
            n_rows = results.data.tasks[place.task].n
            is_proportion = 0 <= figure.chance <= 1 and 0 <= (figure.value or 0) <= 1
            if not is_proportion or not 0 <= (figure.n or 0) <= n_rows:
                yield f"{where}: not a proportion in [0, 1] of at most all rows"
