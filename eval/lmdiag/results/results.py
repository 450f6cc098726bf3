"""The results of a run: figures, their addresses, and the content of `results.json`."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, TypeVar

from lmdiag import diagnostics, stats
from lmdiag.asking.protocol import Protocol
from lmdiag.diagnostics import Diagnostic
from lmdiag.files.reading import MAX_DOCUMENT, read_json
from lmdiag.measures.scores import Statistic, match_rule
from lmdiag.text import first_problem, type_adapter
from lmdiag.types import BadInput, DesignOptions, ModelInfo, TableOptions

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

RESULTS = "results.json"
PREDICTIONS = "predictions.parquet"
REPORT = "report.html"
"""Files of a run."""

VersusChance = Literal["above", "below", "not distinguishable"]
"""Where a figure lies against the chance level, by a two-sided test at the 5% level."""

CHANCE_SIGNS: Mapping[VersusChance, str] = {"above": "↑", "below": "↓", "not distinguishable": "≈"}
"""Sign of each result of the test against the chance level, wherever figures are shown."""

CHANCE_LEGEND = (
    "↑ above chance, ↓ below chance, ≈ not distinguishable from chance "
    "(exact binomial test; for EW and MW, t test)"
)
"""What the signs mean, in the same words everywhere."""


class FigureKey(NamedTuple):
    """The address of a figure; break-down and level are "" for a measure as a whole."""

    task: str
    setting: str
    measure: str
    by: str = ""
    level: str = ""


@dataclass(frozen=True)
class Figure:
    """A value and how certain it is; what is undefined is None.

    Attributes:
        value: in its own unit, a proportion or share in [0, 1].
        n: number of items (rows, contrasts or contexts) that it is over.
        ci_low, ci_high: 95% interval.
        chance: value that guessing gives, a mean over the items that are not tied.
        n_tied: number of items that are tied, which are in n; None for a measure without ties.
        sd, runs: standard deviation over the shuffles of a shuffled setting, and their number.
        not_defined: why no item has a value.
        statistic: how the values of the items became this value.
        by: break-down -> level -> its figure; {} for a level.
    """

    value: float | None
    n: int | None = None
    ci_low: float | None = None
    ci_high: float | None = None
    chance: float | None = None
    n_tied: int | None = None
    sd: float | None = None
    runs: int | None = None
    not_defined: str | None = None
    statistic: Statistic | None = None
    by: dict[str, dict[str, Figure]] = field(default_factory=dict)

    def __getitem__(self, key: str) -> Any:
        """Returns an attribute: `figure["value"]` is `figure.value`."""
        return getattr(self, key)

    @property
    def is_percent(self) -> bool:
        """Whether it is a proportion or a share, which is shown in percent."""
        return self.statistic in ("proportion", "share")

    @property
    def versus_chance(self) -> VersusChance | None:
        """Where it lies against its chance level; of a mean of shares, by its t interval.

        None where all items are tied.
        """
        if self.value is None or self.chance is None or not self._n_tested:
            return None
        if self.p_chance is not None:
            is_different = self.p_chance < 0.05
        elif self.ci_low is None or self.ci_high is None:  # a single item
            is_different = False
        else:
            is_different = not self.ci_low <= self.chance <= self.ci_high
        if not is_different:
            return "not distinguishable"
        return "above" if self._share_of_tested > self.chance else "below"

    @property
    def p_chance(self) -> float | None:
        """Two-sided p of the exact binomial test of a proportion against its chance level.

        The test is over the items that are not tied.
        """
        if self.value is None or self.chance is None or not self._n_tested:
            return None
        if self.statistic == "share" and self.value not in (0, 1):
            return None  # a mean of shares is no count of successes
        return stats.chance_p(self._share_of_tested, self._n_tested, self.chance)

    @property
    def _n_tested(self) -> int:
        """The number of items that are not tied."""
        return (self.n or 0) - (self.n_tied or 0)

    @property
    def _share_of_tested(self) -> float:
        """The value over the items that are not tied: those that are tied have the value 0."""
        return (self.value or 0.0) * (self.n or 0) / self._n_tested

    @property
    def chance_sign(self) -> str:
        """The sign of `versus_chance` beside the figure; "" where there is none."""
        return CHANCE_SIGNS[self.versus_chance] if self.versus_chance else ""

    def at(self, by: str, level: str) -> Figure | None:
        """Returns the figure of a level, or itself for "" and ""; None where there is none."""
        return self.by.get(by, {}).get(level) if by else self

    def to_json(self, *, is_level: bool = True) -> dict[str, Any]:
        """Returns plain JSON values; what only some figures have is left out where it is None."""
        by = {
            name: {level: figure.to_json() for level, figure in levels.items()}
            for name, levels in self.by.items()
        }
        fields = vars(self) | {"by": None if is_level else by}
        fields |= {"versus_chance": self.versus_chance, "p_chance": self.p_chance}
        always = ("value", "n", "ci_low", "ci_high", "chance")
        return {
            name: value for name, value in fields.items() if name in always or value is not None
        }


@dataclass(frozen=True)
class UnscoredWord:
    """A row without a log-probability: its id, and its target or unknown words of its sentence."""

    id: str
    word: str


@dataclass(frozen=True)
class SettingResults:
    """The figures of one task in one setting.

    Attributes:
        measures: name -> figure over all items, with its break-downs.
        unscorable: rows left out because the tokenizer cannot represent the word.
        signature: what makes the figures comparable; see `lmdiag.results.signature`.
        censored: rows left out because the model returns more probable words only.
        shared_tokens: words of sentences without a token of their own, each with the word before
            it, whose last token covers both: they have no surprisal.
        without_first: number of whole sentences whose first word has no probability, since nothing
            stands before it; it is left out of their sums.
        first_word_contrasts: number of contrasts whose sentences differ in such first words.
        equal_contrasts: number of contrasts left out because a good and a bad row have the same
            text or the same tokens.
        not_computed: a line for each measure that cannot be computed, and why.
    """

    measures: dict[str, Figure]
    unscorable: list[UnscoredWord] = field(default_factory=list)
    signature: str = ""
    censored: list[UnscoredWord] = field(default_factory=list)
    shared_tokens: list[UnscoredWord] = field(default_factory=list)
    without_first: int = 0
    first_word_contrasts: int = 0
    equal_contrasts: int = 0
    not_computed: list[str] = field(default_factory=list)

    def figures(self, task: str, setting: str) -> Iterator[tuple[FigureKey, Figure]]:
        """Yields all figures with their addresses, a whole measure before its levels."""
        for name, measure in self.measures.items():
            yield FigureKey(task, setting, name), measure
            for by, levels in measure.by.items():
                for level, figure in levels.items():
                    yield FigureKey(task, setting, name, by, level), figure

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values: the fields that are not empty (0, "" or []), by name.

        The signature, measures and unscorable rows come first and are there even if empty.
        """
        always = ("signature", "measures", "unscorable")
        measures = {name: figure.to_json(is_level=False) for name, figure in self.measures.items()}
        document = asdict(replace(self, measures={})) | {"measures": measures}
        names = dict.fromkeys((*always, *document))
        return {key: document[key] for key in names if key in always or document[key]}


@dataclass(frozen=True)
class TaskData:
    """The rows of a task that were used: fingerprint and form of `Stimuli`, and their number."""

    fingerprint: str
    n: int
    form: str = ""


@dataclass(frozen=True)
class DataInfo:
    """The data set of a run, as the user named it, its commit, and the fingerprint of all tasks.

    `place` is the path of a file or directory from the run directory; "" for other data sets.
    """

    source: str
    revision: str | None
    fingerprint: str
    tasks: dict[str, TaskData]
    place: str = ""


@dataclass(frozen=True)
class Device:
    """What a run ran on: name of the device, and number of processes."""

    name: str
    processes: int


@dataclass(frozen=True)
class Results:
    """How a run was made, and all its figures.

    Attributes:
        signature: makes two runs comparable, see `lmdiag.results.comparable_part`.
        model, data, protocol: what was evaluated, on what, and how.
        versions, device, seconds, finished: packages, machine, duration of steps, ISO 8601 date.
        n_contexts: number of distinct contexts that were asked.
        tasks: task -> setting -> its figures.
        n_verbs: number of verbs that EW and MW are over, whose two forms are both single tokens;
            None where there are none.
        identity: what must be equal for two runs to share a directory.
        files: name -> SHA-256 of the files that the figures were computed from.
        design, table: how the user's own data are analysed and were read, as far as it was given.
        warnings: what looks wrong in the model's files, and, after the name of its task, in the
            user's own data, see `lmdiag.stimuli.designs.design`.
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
    n_verbs: int | None = None
    identity: dict[str, str | None] = field(default_factory=dict)
    files: dict[str, str] = field(default_factory=dict)
    design: DesignOptions = field(default_factory=DesignOptions)
    table: TableOptions = field(default_factory=TableOptions)
    warnings: list[str] = field(default_factory=list)
    schema_version: Literal[1] = 1

    @property
    def layer(self) -> int | None:
        """Number of the layer after which the model answered; None where it is not known."""
        return self.model.n_layers if self.protocol.layer is None else self.protocol.layer

    def diagnostic(self, task: str) -> Diagnostic:
        """Returns what is declared for a task."""
        facts = self.data.tasks.get(task)
        return diagnostics.get(task, facts.form if facts else "")

    @property
    def model_warnings(self) -> list[str]:
        """What looks wrong in the model's files."""
        tasks = tuple(f"{task}: " for task in self.data.tasks)
        return [line for line in self.warnings if not line.startswith(tasks)]

    def measure(self, task: str, setting: str, name: str) -> Figure | None:
        """Returns a measure of a setting; None where there is none."""
        settings = self.tasks.get(task, {})
        return settings[setting].measures.get(name) if setting in settings else None

    def figure(self, key: FigureKey) -> Figure | None:
        """Returns the figure at an address; None where there is none."""
        measure = self.measure(key.task, key.setting, key.measure)
        return None if measure is None else measure.at(key.by, key.level)

    def figures(self) -> Iterator[tuple[FigureKey, Figure]]:
        """Yields all figures with their addresses."""
        for task, settings in self.tasks.items():
            for setting, results in settings.items():
                yield from results.figures(task, setting)

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        document = asdict(replace(self, tasks={}))
        document["design"] = self.design.stored()
        document["table"] = self.table.stored()
        document["protocol"]["match"] = match_rule(self.model.word_folds)
        document["tasks"] = {
            task: {setting: content.to_json() for setting, content in settings.items()}
            for task, settings in self.tasks.items()
        }
        return document

    def validation_errors(self) -> Iterator[str]:
        """Yields what is wrong beyond the types of the values, with the field."""
        try:
            datetime.fromisoformat(self.finished)
        except ValueError:
            yield "finished is not an ISO 8601 date"
        if not self.protocol.k:
            yield "protocol.k: the list is empty"
        if not self.tasks or not all(self.tasks.values()):
            yield "tasks: there are none, or one has no settings"
        for task in self.tasks.keys() - self.data.tasks.keys():
            yield f"data.tasks.{task}: field required"
        for task, facts in self.data.tasks.items():
            if facts.form and facts.form not in diagnostics.forms():
                yield f"data.tasks.{task}.form: {facts.form!r:.60} is not a form of data"
        seen_keys = set[FigureKey]()
        for key, figure in self.figures():
            where = f"tasks.{key.task}.{key.setting}.measures.{key.measure}"
            if key in seen_keys or bool(key.by) != bool(key.level):
                yield f"{where}.by: a break-down or one of its levels has no name"
            seen_keys.add(key)
            if figure.statistic is None:
                yield f"{where}.statistic: field required"
            n_rows = self.data.tasks[key.task].n
            in_range = 0 <= (figure.value or 0) <= 1 and 0 <= (figure.n or 0) <= n_rows
            if figure.chance is not None and not (0 <= figure.chance <= 1 and in_range):
                yield f"{where}: not a proportion in [0, 1] of at most all rows"
            if not 0 <= (figure.n_tied or 0) <= (figure.n or 0):
                yield f"{where}: n_tied is not a number of its items"


_DIGEST = "sha256"
"""Key of a file's own digest."""

Record = TypeVar("Record", bound=Any)


def read_record(kind: type[Record], file: Path, most: int = MAX_DOCUMENT) -> Record:
    """Reads a JSON file of at most so many bytes, e.g. `results.json`; unknown keys are ignored.

    `BadInput` names file and field if it is not such a file, or the record has `validation_errors`.
    """
    from pydantic import ValidationError

    document = read_json(file, most)
    digest = document.pop(_DIGEST, None) if isinstance(document, dict) else None
    if digest is not None and digest != _digest_of(document):
        raise BadInput(f"{file} is not as lmdiag wrote it (its {_DIGEST} is of another content)")
    table = document.get("table") if isinstance(document, dict) else None
    if isinstance(table, dict) and isinstance(table.get("critical"), str):
        table["critical"] = [table["critical"]]  # earlier runs have one column, and no list
    try:
        adapter = type_adapter(kind)  # type: ignore[arg-type]  # a class is hashable
        record: Record = adapter.validate_json(json.dumps(document), strict=True)
    except ValidationError as error:
        raise BadInput(f"{file}: {first_problem(error)}") from None
    for problem in record.validation_errors():
        raise BadInput(f"{file}: {problem}")
    return record


def _digest_of(document: Any) -> str:
    """The SHA-256 of the values of a JSON file."""
    return hashlib.sha256(json.dumps(document).encode()).hexdigest()


def with_digest(document: Mapping[str, Any]) -> bytes:
    """Returns the content of a JSON file with the SHA-256 of its values, for `read_record`."""
    document = {**document, _DIGEST: _digest_of(document)}
    return json.dumps(document, indent=1, ensure_ascii=False, allow_nan=False).encode()


@contextmanager
def advice_to_overwrite() -> Iterator[None]:
    """Ends a message on a damaged file of a run with the remedy."""
    try:
        yield
    except BadInput as error:
        raise BadInput(f"{error}: run again with --overwrite") from None


def of_setting(
    stimuli: Stimuli, setting: str, content: SettingResults, model: ModelInfo | None = None
) -> Results:
    """Returns results with the figures of one setting alone; no model: of another program."""
    task = stimuli.task
    info = model or ModelInfo("", None, "", "masked", "", "", "", True, 0, 0, None)
    rows = {task: TaskData(stimuli.fingerprint, len(stimuli), stimuli.form)}
    data = DataInfo("", None, stimuli.fingerprint, rows)
    protocol = Protocol(tasks=(task,))
    tasks = {task: {setting: content}}
    return Results(content.signature, info, data, protocol, {}, Device("", 0), {}, "", 0, tasks)
