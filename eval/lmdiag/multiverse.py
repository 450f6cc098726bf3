"""From the finished runs of a multiverse to its figures, protocol by protocol.

Source: Simonsohn, Simmons and Nelson (2020), Specification curve analysis.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

from lmdiag.comparison import RESAMPLES, Side, compare_pairs, pair_at, side_of
from lmdiag.report.labels import run_labels
from lmdiag.report.tables import headlines, sources_of
from lmdiag.results import Figure, Place
from lmdiag.results.multiverse import (
    Member,
    MemberDifference,
    Members,
    Multiverse,
    MultiverseFigure,
    open_choices,
)


def multiverse_of(
    models: Sequence[Members], folder: Path, *, seed: int = 0, resamples: int = RESAMPLES
) -> Multiverse:
    """Returns the headline figures of all members, and where several models differ.

    Args:
        models: the runs of each, on the same rows.
        folder: that holds the run directories.
        seed, resamples: of the comparisons.
    """
    finished = [[(choices, run) for choices, run in model.runs if run] for model in models]
    labels = run_labels([runs[0][1].results for runs in finished])
    members, sides, results = [], [], []
    for label, runs in zip(labels, finished, strict=True):
        for choices, run in runs:
            info, path = run.results.model, run.path.relative_to(folder).as_posix()
            members.append(
                Member(
                    label, info.id, info.revision, info.commit, info.kind, choices, path,
                    run.results.signature,
                )
            )  # fmt: skip
            sides.append(side_of(run))
            results.append(run.results)
    data, sources = results[0].data.tasks, sources_of(results)
    names = ("value", "n", "ci_low", "ci_high", "chance", "statistic")  # without break-downs
    figures = [
        MultiverseFigure(
            *shown.place,
            shown.label,
            [x and Figure(**{name: getattr(x, name) for name in names}) for x in shown.figures],
            _differences(shown.place, members, sides, seed, resamples),
        )
        for task in data
        for shown in headlines(task, sources)
    ]
    return Multiverse(
        members,
        figures,
        forms={task: facts.form for task, facts in data.items()},
        combinations=sum(model.combinations for model in models),
        questions=sum(model.questions for model in models),
        asked=sum(model.asked for model in models),
        resamples=resamples,
        seed=seed,
    )


def _differences(
    place: Place, members: Sequence[Member], sides: Sequence[Side], seed: int, resamples: int
) -> list[MemberDifference]:
    """One figure of the first model and each other one, in the protocols that they share.

    Members are compared that have the same choice of every knob that is open for both models; a
    knob that is open for one of the two only takes each of its values.
    """
    differences = []
    numbers: dict[str, list[int]] = {}
    for number, member in enumerate(members):
        numbers.setdefault(member.model, []).append(number)
    choices = {model: open_choices(members[i].choices for i in of) for model, of in numbers.items()}
    first, *others = numbers
    for second in others:
        shared = choices[first].keys() & choices[second].keys()
        matched = [
            (a, b, pair)
            for a in numbers[first]
            for b in numbers[second]
            if all(members[a].choices[knob] == members[b].choices[knob] for knob in shared)
            and (pair := pair_at(sides[a], sides[b], place)) is not None
        ]
        compared = compare_pairs([pair for *_, pair in matched], seed=seed, resamples=resamples)
        for (a, b, _), of in zip(matched, compared, strict=True):
            if of.n and not math.isnan(of.difference):
                uncertain = (of.ci_low, of.ci_high, of.p, of.p_adjusted)
                low, high, p, adjusted = (None if math.isnan(x) else x for x in uncertain)
                differences.append(
                    MemberDifference(a, b, of.n, of.difference, low, high, p, adjusted, of.test)
                )
    return sorted(differences, key=lambda pair: (pair.difference, pair.a, pair.b))
