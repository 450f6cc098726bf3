"""Subject-verb agreement: TSE over minimal pairs, EW and MW over contexts.

EW (equally weighted): the share of all verbs whose right form is more probable than the wrong
form. MW (model-weighted): the probability mass on right forms divided by the mass on all forms.
Both are computed by `lmdiag.models` while the distribution over the vocabulary is available; here
they are averaged.

Source: Newman, Ang, Gong and Hewitt (2021).
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from lmdiag.measures.registry import register
from lmdiag.measures.scores import (
    Flags,
    Floats,
    Items,
    LevelPositions,
    Scores,
    Statistic,
    Trials,
    exceeds,
    float_array,
    number_text,
    positions_by_label,
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
    """Returns tse: sensitivity over the minimal pairs whose verbs are all single tokens.

    That is the share of pairs whose right verb has a higher log-probability than the wrong one; a
    tie counts as not right. Pairs with a verb of several tokens are not part of the measure.
    """
    if not trials.has("log_prob") or not trials.has("n_tokens"):
        return []
    contrasts = trials.contrasts
    # also where the number of tokens is not known: NaN is not 1
    is_several_tokens = float_array(trials.predictions["n_tokens"]) != 1
    n_bad_of_several = np.bincount(  # bad rows of each contrast with several tokens
        contrasts.contrast_of_bad,
        weights=is_several_tokens[contrasts.bad],
        minlength=len(contrasts.ids),
    )
    is_excluded = (n_bad_of_several > 0) | is_several_tokens[contrasts.good]
    tied = contrasts.are_tied(trials.log_prob)
    good, bad = contrasts.good_and_highest_bad(trials.log_prob)
    is_right = exceeds(good, bad)
    is_right = np.where(tied & ~np.isnan(is_right), 0.0, is_right)
    values = np.where(is_excluded, np.nan, is_right)
    scores = contrasts.build_scores("tse", values, with_chance=True, tied=tied)
    # excluded pairs are outside the measure by definition: they do not count as left out
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
    """Returns ew, mw and the values at every cut-off, as scores over distinct contexts.

    A context counts once, with the levels of its first pair; a break-down counts it once in each of
    its levels. A context without a kept verb is left out of a cut-off; `left_out@top=0.1` is their
    share, `mass@top=0.1` the mean mass on the verb forms that count. Guessing between the two forms
    of a verb gives EW and MW of 1/2 at any cut-off.

    Args:
        trials: predictions have `agreement`: per row None, or a value for each name of
            `AGREEMENT_LAYOUT` ("ew", "mw", "ew@top=0.1", ...).
    """
    if not trials.has("agreement"):
        return []
    no_values = (None,) * len(AGREEMENT_LAYOUT)  # of a row without an answer
    rows = [row or no_values for row in trials.predictions["agreement"]]
    # name such as "ew@top=0.1" -> its value in each row, (n rows,); None becomes NaN
    columns = dict(zip(AGREEMENT_LAYOUT, np.array(rows, dtype=np.float64).T, strict=True))
    contexts = _distinct_contexts(trials)

    def scores_of(name: str, column: Floats, statistic: Statistic = "share") -> Scores:
        """Returns the scores of a measure over contexts.

        `column` has its value for each row, or NaN; the rows of a context have the same value.
        """
        values = column[contexts.first_rows]
        has_chance = name.startswith(("ew", "mw"))
        chance = np.full(len(contexts.ids), 0.5) if has_chance else None
        is_defined = ~np.isnan(values)
        scores = Scores(name, contexts.ids, values, statistic, chance=chance).take(is_defined)
        levels = _levels_of_defined(contexts.levels, is_defined)
        return replace(scores, levels=levels, left_out=tuple(contexts.ids[~is_defined]))

    scores = [scores_of(name, columns[name]) for name in ("ew", "mw")]
    for cutoff in CUTOFFS:
        for name in (f"ew@{cutoff}", f"mw@{cutoff}", f"mass@{cutoff}"):
            scores.append(scores_of(name, columns[name]))
        # 1 for a context in which no verb is kept at this cut-off, and so EW is not defined
        is_missing = np.isnan(columns[f"ew@{cutoff}"]).astype(np.float64)
        scores.append(scores_of(f"left_out@{cutoff}", is_missing, "proportion"))
    return scores


class _Contexts(NamedTuple):
    """The distinct contexts of rows, in order of first appearance.

    Attributes:
        ids: id of the first good row of each context, (n,).
        first_rows: position of this row, whose values stand for all rows of the context, (n,).
        levels: break-down -> level -> positions of its contexts, from 0 to n - 1.
    """

    ids: Items
    first_rows: NDArray[np.intp]
    levels: LevelPositions


def _distinct_contexts(trials: Trials) -> _Contexts:
    """Returns the distinct contexts of the good rows; all rows of a context have the same values.

    A context is the text before and after the blank; for a model that reads the left context only,
    the text before it. For example, the rows of two pairs of verbs in "The keys to the door _ old."
    have one context.
    """
    # the contexts of all rows are numbered
    texts = [trials.rows["context"]]
    if not trials.left_only:
        texts.append(trials.rows["right_context"])
    number_of_context: dict[tuple[str, ...], int] = {}
    context_of_row = np.array(
        [
            number_of_context.setdefault(context, len(number_of_context))
            for context in zip(*texts, strict=True)
        ]
    )
    # only contexts with a good row are returned
    good_rows = np.flatnonzero(trials.rows["good"])
    first_rows = _first_row_of_each_context(context_of_row, good_rows)
    item_of_context = np.full(len(number_of_context), -1)  # -1 for a context without a good row
    item_of_context[context_of_row[first_rows]] = np.arange(len(first_rows))
    # a context is in each level that one of its good rows has
    levels: dict[str, dict[str, NDArray[np.intp]]] = {}
    for by, labels in trials.levels.items():
        levels[by] = {}
        for level, level_rows in positions_by_label(labels).items():
            good_level_rows = np.intersect1d(level_rows, good_rows)
            rows = _first_row_of_each_context(context_of_row, good_level_rows)
            levels[by][level] = item_of_context[context_of_row[rows]]
    return _Contexts(trials.ids[first_rows], first_rows, levels)


def _first_row_of_each_context(
    context_of_row: NDArray[np.intp], rows: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Returns those of some rows that are the first ones of their contexts.

    For example, of the rows [1, 2, 3] with the contexts 0, 0 and 1 these are [1, 3].

    Args:
        context_of_row: number of the context of each row, for all rows.
        rows: positions of rows, ascending.
    """
    _, first_places = np.unique(context_of_row[rows], return_index=True)
    return rows[np.sort(first_places)]


def _levels_of_defined(levels: LevelPositions, is_defined: Flags) -> LevelPositions:
    """Returns the positions of items in each level after undefined items are removed.

    For example, without the second of three items the positions [1, 2] become [1]. Levels and
    break-downs without a defined item are left out.

    Args:
        levels: break-down -> level -> positions among all items.
        is_defined: whether each item is kept, (n,).
    """
    new_position = np.cumsum(is_defined) - 1  # of a kept item among the kept ones
    kept_levels: dict[str, dict[str, NDArray[np.intp]]] = {}
    for by, positions_of_level in levels.items():
        for level, positions in positions_of_level.items():
            kept = positions[is_defined[positions]]
            if kept.size:
                kept_levels.setdefault(by, {})[level] = new_position[kept]
    return kept_levels
