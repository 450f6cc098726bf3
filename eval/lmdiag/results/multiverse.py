"""The figures of models in every protocol that was asked: the content of `multiverse.json`.

A *member* of a multiverse is a finished run of one model by one protocol; its *choices* say what
distinguishes the protocol from those of the other members. The figures of a model in order, with
the choices of each, are a specification curve.

Source: Simonsohn, Simmons and Nelson (2020), Specification curve analysis.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from lmdiag.protocol import KNOBS
from lmdiag.reading import has_file, read_json
from lmdiag.results.figure import Figure, Place
from lmdiag.results.results import first_problem
from lmdiag.types import BadInput, Kind
from lmdiag.writing import write_atomically

if TYPE_CHECKING:
    from pydantic import TypeAdapter

MULTIVERSE, MULTIVERSE_PAGE = "multiverse.json", "multiverse.html"
ALPHA = 0.05
"""A test whose p is below this rejects."""

_VERSION = 1
_TOLERANCE = 1e-9
"""Means that differ by less are equal."""

Choices = Mapping[str, str]
"""Knob -> choice."""


@dataclass(frozen=True)
class ComparedModel:
    """A model of a multiverse.

    Attributes:
        label: distinguishes it from the other models.
        id, revision, commit, kind: see `ModelInfo`.
    """

    label: str
    id: str
    revision: str | None
    commit: str
    kind: Kind


@dataclass(frozen=True)
class Member:
    """A run of one model by one protocol.

    Attributes:
        model: number of the model.
        choices: knob -> choice, for every knob that is open for the model.
        path: of the run directory, relative to the file.
        signature: see `lmdiag.results.signature`.
    """

    model: int
    choices: dict[str, str]
    path: str
    signature: str


@dataclass(frozen=True)
class Questions:
    """How much was asked.

    Attributes:
        combinations: of the choices, those that ask the same as another one included.
        all: questions of all combinations.
        asked: questions that are left where equal ones are asked once.
    """

    combinations: int
    all: int
    asked: int

    def __add__(self, other: Questions) -> Questions:
        """Returns the sums."""
        return Questions(
            self.combinations + other.combinations, self.all + other.all, self.asked + other.asked
        )


@dataclass(frozen=True)
class CurvePoint:
    """The figure of one member, by its number."""

    member: int
    figure: Figure


@dataclass(frozen=True)
class Curve:
    """A headline figure of one model in all protocols.

    Attributes:
        model: number of the model.
        points: in ascending order of the values; members without a value are left out.
        effects: knob -> how far it moves the figure, see `effects_of`.
    """

    model: int
    points: list[CurvePoint]
    effects: dict[str, float]

    @property
    def values(self) -> list[float]:
        """The values in ascending order."""
        return [point.figure.value for point in self.points if point.figure.value is not None]

    @property
    def median(self) -> float:
        """Of the values."""
        return statistics.median(self.values)

    @property
    def strongest(self) -> list[str]:
        """The knobs that move the figure most; several where they do so equally, none at all."""
        largest = max(self.effects.values(), default=0.0)
        near = (knob for knob, one in self.effects.items() if one > largest - _TOLERANCE)
        return [*near] if largest > _TOLERANCE else []

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values, with what follows from the points."""
        return {
            "model": self.model,
            "points": [{"member": p.member, "figure": p.figure.to_json()} for p in self.points],
            "lowest": self.values[0],
            "highest": self.values[-1],
            "median": self.median,
            "effects": self.effects,
            "strongest": self.strongest,
        }


@dataclass(frozen=True)
class PairedMembers:
    """The same figure of a member of the first model and of one of another model.

    Attributes:
        a, b: numbers of the members.
        n: items that both could score.
        difference, ci_low, ci_high, p, p_adjusted, test: see `lmdiag.comparison.Comparison`; p is
            adjusted over all pairs of these two models for this figure. None where undefined.
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


@dataclass(frozen=True)
class Contest:
    """A headline figure of the first model and of another one, protocol by protocol.

    Attributes:
        second: number of the other model.
        pairs: in ascending order of the differences.
    """

    second: int
    pairs: list[PairedMembers]

    @property
    def counts(self) -> dict[str, int]:
        """In how many pairs the first model is ahead, behind or equal, and of how many p < .05.

        `rejected_*` counts p, `adjusted_*` p adjusted by Holm's method over the pairs.
        """
        signs = {"ahead": 1, "behind": -1}
        counts = {name: self._count(sign) for name, sign in (signs | {"equal": 0}).items()}
        for key, field in (("rejected", "p"), ("adjusted", "p_adjusted")):
            counts |= {f"{key}_{name}": self._count(sign, field) for name, sign in signs.items()}
        return counts

    def _count(self, sign: int, field: str = "") -> int:
        return sum(
            (one.difference > 0) - (one.difference < 0) == sign
            and (not field or is_rejected(getattr(one, field)))
            for one in self.pairs
        )

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values, with what follows from the pairs."""
        return {"second": self.second, "pairs": [asdict(p) for p in self.pairs], **self.counts}


@dataclass(frozen=True)
class HeadlineCurves:
    """A headline figure in all protocols.

    Attributes:
        task, setting, measure, by, level: its address.
        label: in words.
        curves: of each model that has the figure.
        contests: of the first model with each other one.
    """

    task: str
    setting: str
    measure: str
    by: str
    level: str
    label: str
    curves: list[Curve]
    contests: list[Contest]

    @property
    def place(self) -> Place:
        """Its address."""
        return Place(self.task, self.setting, self.measure, self.by, self.level)

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        own = {**self.place._asdict(), "label": self.label}
        curves = [curve.to_json() for curve in self.curves]
        return own | {"curves": curves, "contests": [one.to_json() for one in self.contests]}


@dataclass(frozen=True)
class Multiverse:
    """All headline figures of some models in every protocol.

    Attributes:
        models: the first is the one that the others are compared with.
        forms: task -> form of its data, see `lmdiag.stimuli.Stimuli`.
        members: the runs, those of the first model first.
        questions: how much was asked.
        figures: in the order of a report.
        resamples, seed: of the paired bootstrap.
    """

    models: list[ComparedModel]
    forms: dict[str, str]
    members: list[Member]
    questions: Questions
    figures: list[HeadlineCurves]
    resamples: int
    seed: int

    def members_of(self, model: int) -> list[Member]:
        """Returns the members of a model."""
        return [member for member in self.members if member.model == model]

    def choices(self, *models: int) -> dict[str, list[str]]:
        """Returns knob -> its choices, in order, for knobs with several, over some models."""
        choices: dict[str, dict[str, None]] = {}
        for member in self.members:
            for knob, choice in member.choices.items() if member.model in models else ():
                choices.setdefault(knob, {})[choice] = None
        return {knob: [*choices[knob]] for knob in KNOBS if len(choices.get(knob, ())) > 1}

    def to_json(self) -> dict[str, Any]:
        """Returns plain JSON values."""
        return {
            "schema_version": _VERSION,
            **asdict(self),
            "figures": [figure.to_json() for figure in self.figures],
        }

    def write(self, folder: Path) -> None:
        """Writes `multiverse.json`."""
        text = json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False)
        write_atomically(folder / MULTIVERSE, text.encode())

    @classmethod
    def from_json(cls, document: Any, where: str) -> Multiverse:
        """Returns the multiverse of a document; keys that are not known are ignored.

        Raises:
            BadInput: it is of another version, a value is missing or of the wrong type, or a number
                of a model or a member is not one; the message names file and field.
        """
        from pydantic import ValidationError

        version = document.get("schema_version") if isinstance(document, dict) else None
        if version != _VERSION:
            raise BadInput(
                f"{where} has schema version {str(version)[:20]}; this version of lmdiag reads "
                f"version {_VERSION}"
            )
        try:
            multiverse = _adapter().validate_json(json.dumps(document), strict=True)
        except ValidationError as error:
            raise BadInput(f"{where}: {first_problem(error)}") from None
        for complaint in _complaints(multiverse):
            raise BadInput(f"{where}: {complaint}")
        return multiverse

    @classmethod
    def read(cls, folder: Path) -> Multiverse:
        """Reads the `multiverse.json` of a folder.

        Raises:
            BadInput: see `from_json`; or the file is missing or not JSON.
        """
        file = folder / MULTIVERSE
        if not has_file(file):
            raise BadInput(f"{folder} has no {MULTIVERSE}; `lmdiag multiverse` writes it")
        return cls.from_json(read_json(file), str(file))


@cache
def _adapter() -> TypeAdapter[Multiverse]:
    from pydantic import TypeAdapter

    return TypeAdapter(Multiverse)


def _complaints(multiverse: Multiverse) -> Iterator[str]:
    """What types do not say."""
    models, members = range(len(multiverse.models)), range(len(multiverse.members))
    for member in multiverse.members:
        if member.model not in models:
            yield f"members: there is no model {member.model}"
        if unknown := member.choices.keys() - KNOBS.keys():
            yield f"members: there is no knob {sorted(unknown)[0][:100]!r}"
        if Path(member.path).is_absolute() or ".." in Path(member.path).parts:
            yield f"members: the path {member.path[:100]!r} leads out of the folder"
    for figure in multiverse.figures:
        for curve in figure.curves:
            if curve.model not in models or not curve.values:
                yield f"figures: {figure.label[:100]}: a curve has no values or no model"
            if any(p.member not in members or p.figure.value is None for p in curve.points):
                yield f"figures: {figure.label[:100]}: a point has no member or no value"
        for contest in figure.contests:
            numbers = [number for pair in contest.pairs for number in (pair.a, pair.b)]
            if contest.second not in models or any(n not in members for n in numbers):
                yield f"figures: {figure.label[:100]}: a comparison has no model or no member"


def is_rejected(p: float | None) -> bool:
    """Returns whether a test rejects at `ALPHA`."""
    return p is not None and p < ALPHA


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
            others = frozenset(item for item in choices.items() if item[0] != knob)
            if knob in choices:
                by_choice.setdefault(choices[knob], {})[others] = value
        moves = [
            abs(statistics.fmean(a[x] - b[x] for x in common))
            for a, b in combinations(by_choice.values(), 2)
            if (common := sorted(a.keys() & b.keys(), key=sorted))
        ]
        if moves:
            effects[knob] = max(moves)
    return effects
