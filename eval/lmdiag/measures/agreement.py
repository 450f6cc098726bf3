"""Subject-verb agreement: TSE over minimal pairs, EW and MW over contexts.

EW (equally weighted): the share of all verbs whose right form is more probable than the wrong
form. MW (model-weighted): the probability mass on right forms divided by the mass on all forms.
Both are computed by `lmdiag.models` while the distribution over the vocabulary is available; here
they are averaged.

Source: Newman, Ang, Gong and Hewitt (2021).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from lmdiag.measures.registry import register
from lmdiag.measures.scores import (
    Floats,
    Scores,
    Statistic,
    Trials,
    floats,
    higher,
    number_text,
    positions,
)
from lmdiag.types import BOTTOM_CUTOFFS, TOP_CUTOFFS

CUTOFFS = (
    *(f"top={number_text(mass)}" for mass in TOP_CUTOFFS),
    *(f"bottom={number_text(mass)}" for mass in BOTTOM_CUTOFFS),
)
"""The cut-offs of the curves of the paper, top first.

Up to such a cumulative probability the most probable tokens are kept, or the least probable ones.
"""

AGREEMENT_LAYOUT: tuple[str, ...] = (
    "ew",
    "mw",
    *(f"{name}@{cutoff}" for cutoff in CUTOFFS for name in ("ew", "mw", "mass")),
)
"""Names of the values of one context, in the order of `Answer.agreement`.

`ew` and `mw` are over all verbs, then for each cut-off follow `ew@top=0.1`, `mw@top=0.1` and
`mass@top=0.1`, the probability mass on the verb forms that count. None where no verb is kept.
"""


@register("agreement", tse="TSE")
def tse(trials: Trials) -> list[Scores]:
    """Returns tse: sensitivity over the minimal pairs whose verbs are all single tokens."""
    if not trials.has("log_prob") or not trials.has("n_tokens"):
        return []
    contrasts = trials.contrasts
    is_several_tokens = floats(trials.predictions["n_tokens"]) != 1
    has_bad_of_several = (
        np.bincount(
            contrasts.bad_of, is_several_tokens[contrasts.bad], minlength=len(contrasts.ids)
        )
        > 0
    )
    tied = contrasts.are_tied(trials.log_prob)
    verdict = higher(*contrasts.pairs(trials.log_prob))
    verdict = np.where(tied & ~np.isnan(verdict), 0.0, verdict)
    values = np.where(has_bad_of_several | is_several_tokens[contrasts.good], np.nan, verdict)
    scores = contrasts.build("tse", values, with_chance=True, tied=tied)
    # a pair with a verb of several tokens is outside the measure by definition, not left out of it
    return [replace(scores, left_out=())]


@register(
    "agreement",
    "mass@",
    "left_out",
    ew="EW",
    mw="MW",
    one_kind="only one of the models sees what is right of the blank",
)
def agreement(trials: Trials) -> list[Scores]:
    """Returns ew, mw and the values at every cut-off.

    EW and MW are means over distinct contexts: a context counts once, with the levels of its first
    pair; a break-down counts it once in each of its levels. A context without a kept verb is left
    out of a cut-off; `left_out@top=0.1` is their share, `mass@top=0.1` the mean mass on the verb
    forms that count. Guessing between the two forms of a verb gives EW and MW of 1/2 at any
    cut-off.

    Args:
        trials: predictions have `agreement`, one `AGREEMENT_LAYOUT` per row.
    """
    if not trials.has("agreement"):
        return []
    no_values = (None,) * len(AGREEMENT_LAYOUT)
    rows = [row or no_values for row in trials.predictions["agreement"]]
    columns = dict(zip(AGREEMENT_LAYOUT, np.array(rows, dtype=np.float64).T, strict=True))
    texts = [trials.rows["context"]] + ([] if trials.left_only else [trials.rows["right_context"]])
    number_of_context: dict[tuple[str, ...], int] = {}  # of the distinct contexts
    context_of_row = np.array(
        [number_of_context.setdefault(x, len(number_of_context)) for x in zip(*texts, strict=True)]
    )
    # rows of one context have the same values: the first good one stands for all
    good = np.flatnonzero(trials.rows["good"])
    first_rows = _first_of_each(context_of_row, good)
    items = trials.ids[first_rows]
    item_of = np.full(len(number_of_context), -1)
    item_of[context_of_row[first_rows]] = np.arange(len(items))
    levels = {
        by: {
            level: item_of[
                context_of_row[_first_of_each(context_of_row, np.intersect1d(level_rows, good))]
            ]
            for level, level_rows in positions(labels).items()
        }
        for by, labels in trials.levels.items()
    }

    def mean(name: str, column: Floats, statistic: Statistic = "share") -> Scores:
        """Returns the scores of one measure, a value per context; undefined ones are left out.

        `column` has the values of all rows; those of the rows of one context are the same.
        """
        values = column[first_rows]
        is_defined = ~np.isnan(values)
        position = np.cumsum(is_defined) - 1  # of a defined item among those
        levels_of_defined = {
            by: {
                level: position[where[is_defined[where]]]
                for level, where in positions.items()
                if is_defined[where].any()
            }
            for by, positions in levels.items()
        }
        chance = np.full(len(items), 0.5) if name.startswith(("ew", "mw")) else None
        scores = Scores(name, items, values, statistic, chance=chance).take(is_defined)
        left_out = tuple(items[~is_defined])
        levels_of_defined = {
            by: positions for by, positions in levels_of_defined.items() if positions
        }
        return replace(scores, levels=levels_of_defined, left_out=left_out)

    scores = [mean(name, columns[name]) for name in ("ew", "mw")]
    for cutoff in CUTOFFS:
        names = (f"ew@{cutoff}", f"mw@{cutoff}", f"mass@{cutoff}")
        is_missing = np.isnan(columns[names[0]]).astype(np.float64)
        scores += [mean(name, columns[name]) for name in names]
        scores.append(mean(f"left_out@{cutoff}", is_missing, "proportion"))
    return scores


def _first_of_each(contexts: NDArray[np.intp], rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """The first of some rows, in ascending order, with each context."""
    return rows[np.sort(np.unique(contexts[rows], return_index=True)[1])]
