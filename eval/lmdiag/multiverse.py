"""From the finished runs of a multiverse to its figures, protocol by protocol.

Source: Simonsohn, Simmons and Nelson (2020), Specification curve analysis.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from lmdiag.comparison import RESAMPLES, Side, compare_pairs, pair_at, side_of
from lmdiag.report.labels import run_labels
from lmdiag.report.tables import HeadlineFigure, headlines, sources_of
from lmdiag.results import Figure, Place
from lmdiag.results.multiverse import (
    ComparedModel,
    Contest,
    Curve,
    CurvePoint,
    HeadlineCurves,
    Member,
    Multiverse,
    PairedMembers,
    Questions,
    effects_of,
)

if TYPE_CHECKING:
    from lmdiag.results import Run


class RunOfMember(NamedTuple):
    """A finished run of a multiverse.

    Attributes:
        model: number of the model.
        choices: knob -> choice.
        run: the run.
    """

    model: int
    choices: Mapping[str, str]
    run: Run


def multiverse_of(
    runs: Sequence[RunOfMember],
    questions: Questions,
    folder: Path,
    *,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Multiverse:
    """Returns the headline figures of all members, and where several models differ.

    Args:
        runs: of all models, those of the first model first, on the same rows.
        questions: how much was asked.
        folder: that holds the run directories.
        seed, resamples: of the paired bootstrap.
    """
    members = [
        Member(
            each.model,
            dict(each.choices),
            each.run.path.relative_to(folder).as_posix(),
            each.run.results.signature,
        )
        for each in runs
    ]
    first = {each.model: each.run for each in reversed(runs)}
    models = _models([first[number] for number in sorted(first)])
    facts = first[0].results
    forms = {task: data.form for task, data in facts.data.tasks.items()}
    sources = sources_of([each.run.results for each in runs])
    shown = [one for task in facts.tasks for one in headlines(task, sources)]
    paired = _Paired([side_of(each.run) for each in runs], members, seed, resamples)
    figures = [_figure(one, members, paired) for one in shown]
    return Multiverse(models, forms, members, questions, figures, resamples, seed)


def _models(runs: Sequence[Run]) -> list[ComparedModel]:
    labels = run_labels([run.results for run in runs])
    return [
        ComparedModel(label, model.id, model.revision, model.commit, model.kind)
        for label, model in zip(labels, (run.results.model for run in runs), strict=True)
    ]


def _figure(one: HeadlineFigure, members: Sequence[Member], paired: _Paired) -> HeadlineCurves:
    """A headline figure in all protocols."""
    numbers = sorted({member.model for member in members})
    curves = [_curve(one.figures, members, model) for model in numbers]
    contests = [
        Contest(second, pairs)
        for second in numbers[1:]
        if (pairs := paired.compare(one.place, second))
    ]
    curves = [curve for curve in curves if curve.points]
    return HeadlineCurves(*one.place, label=one.label, curves=curves, contests=contests)


def _curve(figures: Sequence[Figure | None], members: Sequence[Member], model: int) -> Curve:
    """The figures of one model in ascending order."""
    entries: list[tuple[float, int, Figure]] = []
    for number, (figure, member) in enumerate(zip(figures, members, strict=True)):
        if member.model == model and figure is not None and figure.value is not None:
            plain = Figure(
                figure.value, figure.n, figure.ci_low, figure.ci_high, figure.chance,
                statistic=figure.statistic,
            )  # fmt: skip
            entries.append((figure.value, number, plain))
    entries.sort(key=lambda entry: entry[:2])
    points = [CurvePoint(number, figure) for _, number, figure in entries]
    effects = effects_of([(members[number].choices, value) for value, number, _ in entries])
    return Curve(model, points, effects)


class _Paired:
    """The members of the first model beside those of another one that were asked alike.

    Args:
        sides: of all members, as they are compared.
        members: parallel to them.
        seed, resamples: of the bootstrap.
    """

    def __init__(
        self, sides: Sequence[Side], members: Sequence[Member], seed: int, resamples: int
    ) -> None:
        self._members, self._seed, self._resamples = members, seed, resamples
        self._sides = [side._replace(scores=cache(side.scores)) for side in sides]

    def compare(self, place: Place, second: int) -> list[PairedMembers]:
        """Returns the differences of one figure, in ascending order.

        Args:
            place: the address of the figure.
            second: number of the other model.
        """
        matched = [
            (a, b, pair)
            for a, b in self._alike(second)
            if (pair := pair_at(self._sides[a], self._sides[b], place)) is not None
        ]
        compared = compare_pairs(
            [pair for *_, pair in matched], seed=self._seed, resamples=self._resamples
        )
        differences = [
            PairedMembers(
                a, b, one.n, one.difference, _or_none(one.ci_low), _or_none(one.ci_high),
                _or_none(one.p), _or_none(one.p_adjusted), one.test,
            )
            for (a, b, _), one in zip(matched, compared, strict=True)
            if one.n and not math.isnan(one.difference)
        ]  # fmt: skip
        return sorted(differences, key=lambda pair: (pair.difference, pair.a, pair.b))

    def _alike(self, second: int) -> Iterator[tuple[int, int]]:
        """Numbers of members with the same choice of every knob that is open for both models.

        A knob that is open for one of the two only takes each of its values.
        """
        shared = [
            knob
            for knob in self._choices(0)
            if len(self._choices(0)[knob]) > 1 and len(self._choices(second).get(knob, ())) > 1
        ]
        for a, one in enumerate(self._members):
            for b, other in enumerate(self._members):
                if (one.model, other.model) == (0, second) and all(
                    one.choices[knob] == other.choices[knob] for knob in shared
                ):
                    yield a, b

    def _choices(self, model: int) -> dict[str, set[str]]:
        """Knob -> the choices of a model."""
        choices: dict[str, set[str]] = {}
        for member in self._members:
            for knob, choice in member.choices.items() if member.model == model else ():
                choices.setdefault(knob, set()).add(choice)
        return choices


def _or_none(value: float) -> float | None:
    return None if math.isnan(value) else value
