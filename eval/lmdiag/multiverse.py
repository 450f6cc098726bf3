"""From the finished runs of a multiverse to its figures, protocol by protocol.

Source: Simonsohn, Simmons and Nelson (2020), Specification curve analysis.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from lmdiag.comparison import RESAMPLES, Side, compare_pairs, pair_at, side_of
from lmdiag.report.labels import run_labels
from lmdiag.report.tables import HeadlineFigure, headlines, sources_of
from lmdiag.results import Figure, Place
from lmdiag.results.multiverse import (
    Member,
    MemberDifference,
    Multiverse,
    MultiverseFigure,
    open_choices,
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
    folder: Path,
    *,
    combinations: int,
    questions: int,
    asked: int,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> Multiverse:
    """Returns the headline figures of all members, and where several models differ.

    Args:
        runs: of all models, those of the first model first, on the same rows; the first of each
            model has the default protocol.
        folder: that holds the run directories.
        combinations, questions, asked: see `Multiverse`.
        seed, resamples: of the comparisons.
    """
    first = {one.model: one.run for one in reversed(runs)}
    labels = run_labels([first[number].results for number in sorted(first)])
    members = [_member(one, labels[one.model], folder) for one in runs]
    results = [one.run.results for one in runs]
    sources = sources_of(results)
    shown = [figure for task in results[0].data.tasks for figure in headlines(task, sources)]
    sides = [side_of(one.run) for one in runs]
    sides = [side._replace(scores=cache(side.scores)) for side in sides]
    figures = [
        MultiverseFigure(
            *figure.place,
            label=figure.label,
            values=_values(figure),
            differences=_differences(figure.place, members, sides, seed, resamples),
        )
        for figure in shown
    ]
    forms = {task: data.form for task, data in results[0].data.tasks.items()}
    return Multiverse(members, figures, forms, combinations, questions, asked, resamples, seed)


def _member(one: RunOfMember, label: str, folder: Path) -> Member:
    model = one.run.results.model
    path = one.run.path.relative_to(folder).as_posix()
    return Member(
        label, model.id, model.revision, model.commit, model.kind, dict(one.choices), path,
        one.run.results.signature,
    )  # fmt: skip


def _values(headline: HeadlineFigure) -> list[Figure | None]:
    """The figures of all members, without their break-downs."""
    names = ("value", "n", "ci_low", "ci_high", "chance", "statistic")
    return [
        None if figure is None else Figure(**{name: getattr(figure, name) for name in names})
        for figure in headline.figures
    ]


def _differences(
    place: Place, members: Sequence[Member], sides: Sequence[Side], seed: int, resamples: int
) -> list[MemberDifference]:
    """One figure of the first model and each other one, in the protocols that they share.

    Members are compared that have the same choice of every knob that is open for both models; a
    knob that is open for one of the two only takes each of its values.
    """
    differences = []
    models = [*dict.fromkeys(member.model for member in members)]
    numbers = {
        model: [n for n, member in enumerate(members) if member.model == model] for model in models
    }
    choices = {
        model: open_choices(members[number].choices for number in numbers[model])
        for model in models
    }
    for second in models[1:]:
        shared = choices[models[0]].keys() & choices[second].keys()
        matched = [
            (a, b, pair)
            for a in numbers[models[0]]
            for b in numbers[second]
            if all(members[a].choices[knob] == members[b].choices[knob] for knob in shared)
            and (pair := pair_at(sides[a], sides[b], place)) is not None
        ]
        compared = compare_pairs([p for *_, p in matched], seed=seed, resamples=resamples)
        differences += [
            MemberDifference(
                a, b, one.n, one.difference, _or_none(one.ci_low), _or_none(one.ci_high),
                _or_none(one.p), _or_none(one.p_adjusted), one.test,
            )
            for (a, b, _), one in zip(matched, compared, strict=True)
            if one.n and not math.isnan(one.difference)
        ]  # fmt: skip
    return sorted(differences, key=lambda pair: (pair.difference, pair.a, pair.b))


def _or_none(value: Any) -> float | None:
    return None if value is None or math.isnan(value) else value
