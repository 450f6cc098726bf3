"""The figures of models in every protocol that was asked: the content of `multiverse.json`.

A *member* of a multiverse is a finished run of one model by one protocol; its *choices* say what
distinguishes the protocol from those of the other members. The figures of a model in ascending
order, with the choices of each, are a specification curve.

Source: Simonsohn, Simmons and Nelson (2020), Specification curve analysis.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from lmdiag.files import has_file, read_json, write_atomically
from lmdiag.protocol import KNOBS
from lmdiag.results.figure import Figure, Place
from lmdiag.results.results import validated
from lmdiag.types import BadInput, Kind

if TYPE_CHECKING:
    from lmdiag.results.run import Run

MULTIVERSE, MULTIVERSE_PAGE = "multiverse.json", "multiverse.html"
ALPHA = 0.05
"""A test whose p is below this rejects."""

Choices = Mapping[str, str]
"""Knob -> choice."""


class Members(NamedTuple):
    """The finished runs of one model.

    Attributes:
        runs: choices and run of each combination, the default first; no run on all processes but
            the first.
        combinations, questions, asked: see `Multiverse`.
    """

    runs: Sequence[tuple[dict[str, str], Run | None]]
    combinations: int
    questions: int
    asked: int


@dataclass(frozen=True)
class Member:
    """A run of one model by one protocol. The first member of a model has the default protocol.

    Attributes:
        model: label of the model, which distinguishes it from the other models.
        id, revision, commit, kind: of the model, see `ModelInfo`.
        choices: knob -> choice, for every knob that is open for the model.
        path: of the run directory, relative to the file.
        signature: see `lmdiag.results.signature`.
    """

    model: str
    id: str
    revision: str | None
    commit: str
    kind: Kind
    choices: dict[str, str]
    path: str
    signature: str


@dataclass(frozen=True)
class MemberDifference:
    """The same figure of two members, `a` of the first model and `b` of another one.

    The other fields are those of `lmdiag.comparison.Comparison`; p is adjusted over all pairs of
    these two models for this figure. Undefined is None.
    """

    a: int
    b: int
    n: int
    difference: float
    ci_low: float | None
    ci_high: float | None
    p: float | None
    p_adjusted: float | None
    test: str


class Curve(NamedTuple):
    """A figure of one model in all of its protocols, in ascending order; at least one.

    Attributes:
        model: label of the model.
        members: numbers of the members.
        figures: parallel to them.
        effects: knob -> how far it moves the figure, see `effects_of`.
    """

    model: str
    members: list[int]
    figures: list[Figure]
    effects: dict[str, float]

    @property
    def summary(self) -> dict[str, float]:
        """The lowest, median and highest value."""
        values = [figure.value or 0.0 for figure in self.figures]
        median = statistics.median(values)
        return {"lowest": values[0], "median": median, "highest": values[-1]}


@dataclass(frozen=True)
class MultiverseFigure:
    """A headline figure in all protocols.

    Attributes:
        task, setting, measure, by, level: its address.
        label: in words.
        values: the figure of each member, in their order; None where it is not defined.
        differences: of the first model and each other one, in ascending order.
    """

    task: str
    setting: str
    measure: str
    by: str
    level: str
    label: str
    values: list[Figure | None]
    differences: list[MemberDifference]

    @property
    def place(self) -> Place:
        """Its address."""
        return Place(self.task, self.setting, self.measure, self.by, self.level)


@dataclass(frozen=True)
class Multiverse:
    """All headline figures of some models in every protocol.

    Attributes:
        members: the runs, those of the first model first.
        figures: in the order of a report.
        forms: task -> form of its data, see `lmdiag.stimuli.Stimuli`.
        combinations: of choices, those that ask the same as another one included.
        questions: of all combinations.
        asked: questions that are left where equal ones are asked once.
        resamples, seed: of the comparisons.
    """

    members: list[Member]
    figures: list[MultiverseFigure]
    forms: dict[str, str]
    combinations: int
    questions: int
    asked: int
    resamples: int
    seed: int
    schema_version: Literal[1] = 1

    @property
    def models(self) -> list[str]:
        """Labels of the models; the first is the one that the others are compared with."""
        return [*dict.fromkeys(member.model for member in self.members)]

    def numbers_of(self, model: str) -> list[int]:
        """Returns the numbers of the members of a model, that of the default protocol first."""
        return [number for number, member in enumerate(self.members) if member.model == model]

    def choices(self, *models: str) -> dict[str, list[str]]:
        """Returns knob -> its choices, in order, for knobs with several, over some models."""
        return open_choices(m.choices for m in self.members if m.model in models)

    def curves(self, figure: MultiverseFigure) -> list[Curve]:
        """Returns the specification curve of each model that has the figure."""
        curves = []
        for model in self.models:
            entries = [
                (found.value, number, found)
                for number in self.numbers_of(model)
                if (found := figure.values[number]) is not None and found.value is not None
            ]
            entries.sort(key=lambda entry: entry[:2])
            effects = effects_of([(self.members[n].choices, value) for value, n, _ in entries])
            if entries:
                numbers, figures = [n for _, n, _ in entries], [f for *_, f in entries]
                curves.append(Curve(model, numbers, figures, effects))
        return curves

    def differences(self, figure: MultiverseFigure, second: str) -> list[MemberDifference]:
        """Returns the differences of the first model and another one, in ascending order."""
        return [pair for pair in figure.differences if self.members[pair.b].model == second]

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values; `ranges` and `comparisons` follow from those of a figure."""
        document = asdict(self)
        for figure, content in zip(self.figures, document["figures"], strict=True):
            content["values"] = [value and value.to_json() for value in figure.values]
            content["ranges"] = [
                {"model": curve.model} | curve.summary | {"effects": curve.effects}
                for curve in self.curves(figure)
            ]
            content["comparisons"] = [
                {"second": second} | counts_of(self.differences(figure, second))
                for second in self.models[1:]
            ]
        return document

    def write(self, folder: Path) -> None:
        """Writes `multiverse.json`."""
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(folder / MULTIVERSE, text.encode())

    @classmethod
    def read(cls, folder: Path) -> Multiverse:
        """Reads the `multiverse.json` of a folder; keys that are not known are ignored.

        Raises:
            BadInput: the file is missing, not JSON or of another version, a value is missing or of
                the wrong type, or a number of a member is not one; names file and field.
        """
        file = folder / MULTIVERSE
        if not has_file(file):
            raise BadInput(f"{folder} has no {MULTIVERSE}; `lmdiag multiverse` writes it")
        multiverse = validated(cls, read_json(file), str(file))
        for complaint in _complaints(multiverse):
            raise BadInput(f"{file}: {complaint}")
        return multiverse


def _complaints(multiverse: Multiverse) -> Iterator[str]:
    """What types do not say."""
    count = len(multiverse.members)
    for member in multiverse.members:
        if unknown := member.choices.keys() - KNOBS.keys():
            yield f"members: there is no knob {sorted(unknown)[0][:100]!r}"
        if Path(member.path).is_absolute() or ".." in Path(member.path).parts:
            yield f"members: the path {member.path[:100]!r} leads out of the folder"
    for figure in multiverse.figures:
        if len(figure.values) != count:
            yield f"figures: {figure.label[:100]}: a member has no value"
        if not {n for pair in figure.differences for n in (pair.a, pair.b)} <= {*range(count)}:
            yield f"figures: {figure.label[:100]}: a difference has no member"


def open_choices(members: Iterable[Choices]) -> dict[str, list[str]]:
    """Returns knob -> its distinct choices, in order, for the knobs that have several."""
    members = [*members]
    choices = {knob: [*dict.fromkeys(m[knob] for m in members if knob in m)] for knob in KNOBS}
    return {knob: values for knob, values in choices.items() if len(values) > 1}


def is_rejected(p: float | None) -> bool:
    """Returns whether a test rejects at `ALPHA`."""
    return p is not None and p < ALPHA


def counts_of(differences: Sequence[MemberDifference]) -> dict[str, int]:
    """Returns in how many protocols the first model is ahead, behind or equal, and where p < .05.

    `rejected` counts p, `adjusted` p adjusted by Holm's method over the protocols.
    """
    values = [pair.difference for pair in differences]
    return {
        "ahead": sum(value > 0 for value in values),
        "behind": sum(value < 0 for value in values),
        "equal": sum(value == 0 for value in values),
        "rejected": sum(is_rejected(pair.p) for pair in differences),
        "adjusted": sum(is_rejected(pair.p_adjusted) for pair in differences),
    }


def effects_of(values: Sequence[tuple[Choices, float]]) -> dict[str, float]:
    """Returns knob -> how far it moves a figure.

    Of each two choices of a knob, the values are averaged over the combinations of all other knobs
    that were asked with both; the effect is the largest difference of two such means. A knob
    without two such choices has none.

    Args:
        values: the choices and the value of each member.

    >>> effects_of([({"unit": "token"}, 0.5), ({"unit": "word"}, 1.0)])
    {'unit': 0.5}
    """
    effects = {}
    for knob in KNOBS:
        by_choice: dict[str, dict[frozenset[tuple[str, str]], float]] = {}
        for choices, value in values:
            if knob in choices:
                others = frozenset(choices.items() - {(knob, choices[knob])})
                by_choice.setdefault(choices[knob], {})[others] = value
        moves = [
            abs(statistics.fmean(a[x] - b[x] for x in common))
            for a, b in combinations(by_choice.values(), 2)
            if (common := sorted(a.keys() & b.keys(), key=sorted))
        ]
        if moves:
            effects[knob] = max(moves)
    return effects
