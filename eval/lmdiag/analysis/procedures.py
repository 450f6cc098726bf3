"""How surprisals are fitted to human measures: one record, and the published procedures as values.

The procedures are defined in docs/specification.md, section 10.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Literal

from lmdiag.types import BadInput

SURPRISAL = "surprisal"
"""Name of the fitted surprisals in formulas; k words earlier: "surprisal_prev_k"."""


@dataclass(frozen=True, kw_only=True)
class Procedure:
    """How surprisals are fitted. The texts of the fields are the help of the command line."""

    response: str = ""
    """column of the human measure"""
    text: str = ""
    """column that tells texts apart; earlier words are those of the same text (default: text,
    article, trialid, docid or sentence)"""
    sentence: str = ""
    """column that tells sentences apart, if earlier words are those of the same sentence"""
    position: str = ""
    """column with the place of a word in its text or sentence (default: position, zone, ianum or
    sentpos)"""
    word: str = ""
    """column of the words (default: word, ia or target)"""
    controls: tuple[str, ...] | None = None
    """columns that the baseline has; length (characters) and log_frequency (wordfreq) are computed
    if there are none (default: these two)"""
    lags: int | None = None
    """how many earlier words' controls and surprisals are predictors, too (default: 2)"""
    added: Literal["all", "current"] | None = None
    """surprisals that only the full model has: all, or that of the current word, so that those of
    earlier words are part of the baseline (default: all)"""
    formula: str = ""
    """full model instead of controls, lags and added, as `rt ~ surprisal + length` or, for a mixed
    model, `rt ~ surprisal + (surprisal | subject)`; NAME_prev_1 is an earlier word's value"""
    baseline: str = ""
    """formula of the baseline (default: the full model without surprisals)"""
    filter: tuple[str, ...] | None = None
    """conditions as COLUMN=VALUE, or with != > < >= <=; other rows are left out after earlier words
    are looked up"""
    folds: int | None = None
    """contiguous folds, each predicted from the others (default: 0, in sample)"""
    units: Literal["bits", "nats"] | None = None
    """unit of surprisals that are read; coefficients are per unit (default: bits)"""
    average: bool = False
    """the response is the mean over the rows of a word"""
    distinct: bool = False
    """leave out repetitions of a row first"""
    complete: bool = False
    """leave out rows with a missing value in any column"""
    fill: bool = False
    """replace surprisals before the beginning of a text or sentence by the mean surprisal"""
    lags_as_text: bool = False
    """take earlier surprisals from the texts sorted as text, "10" before "2", as kuribayashi2024"""
    language: str = ""
    """language of computed word frequencies (default: en)"""

    def __post_init__(self) -> None:
        if not 0 <= (self.lags or 0) <= 10:
            raise BadInput(f"lags must be between 0 and 10, not {self.lags}")
        if (self.folds or 0) < 0 or self.folds == 1:
            raise BadInput(f"folds must be 0 (in sample) or at least 2, not {self.folds}")

    def formulas(self) -> tuple[str, str]:
        """Returns the full model and the baseline, as formulas."""
        from lmdiag.analysis.regression import quoted, without_terms

        full = self.formula
        if not full:
            names = [
                name if lag == 0 else f"{name}_prev_{lag}"
                for name in (SURPRISAL, *(self.controls or ()))
                for lag in range((self.lags or 0) + 1)
            ]
            full = f"{quoted(self.response)} ~ {' + '.join(map(quoted, names))}"
        added = SURPRISAL if self.added == "current" else rf"{SURPRISAL}(_prev_\d+)?"
        return full, self.baseline or without_terms(full, added)


PLACES = {
    "text": ("text", "article", "trialid", "docid", "sentence"),
    "position": ("position", "zone", "ianum", "sentpos"),
    "word": ("word", "ia", "target"),
}
"""Field of `Procedure` -> columns that it may be, the first that a table has."""

_MAZE = (
    "scale(log(rt)) ~ scale(surprisal) + scale(wlen) + scale(unigramsurp) + scale(sentpos) "
    "+ (1 + scale(surprisal) + scale(wlen) + scale(sentpos) || subject) + (1 | docid:sentid)"
)
_SELF_PACED = (
    "scale(SUM_3RT_trimmed) ~ scale(surprisal) + (scale(surprisal) | SUB) "
    "+ (scale(surprisal) | ITEM)"
)

PROFILES = {
    "wilcox2023": Procedure(
        response="gaze_rt", controls=("freq", "len"), folds=10, average=True, complete=True,
        filter=tuple(
            f"freq{lag}{bound}" for lag in ("", "_prev_1", "_prev_2") for bound in (">0", "<inf")
        ),
    ),
    "kuribayashi2024": Procedure(
        response="time", text="article", sentence="sent_id", position="tokenN_in_sent", word="word",
        controls=("length", "log_gmean_freq"), added="current", units="nats", fill=True,
        filter=("time>0", "tokenN_in_sent>0", "is_first=False", "is_last=False"),
        lags_as_text=True,
    ),
    "michaelov2024": Procedure(distinct=True),
}  # fmt: skip
"""Name -> procedure of Wilcox et al. (2023), Kuribayashi et al. (2024), Michaelov et al. (2024)."""


_DEFAULT = Procedure(controls=("length", "log_frequency"), lags=2, language="en")


def procedure_for(
    columns: Collection[str], profile: str | None = None, chosen: Procedure | None = None
) -> Procedure:
    """Returns the procedure for a table.

    Args:
        columns: of the table.
        profile: of `PROFILES`; None for the default.
        chosen: fields that differ from the profile, and filters on top of it.

    Raises:
        BadInput: there is no such profile, no response, or the table lacks a column.
    """
    if profile is not None and profile not in PROFILES:
        raise BadInput(f"no profile {profile!r}: choose from {', '.join(PROFILES)}")
    values = vars(_DEFAULT).copy()
    for record in filter(None, (PROFILES[profile] if profile else None, chosen)):
        given = (item for item in vars(record).items() if item[1] is not None)
        values |= {name: value for name, value in given if value is not False and value != ""}
    if profile and chosen and chosen.filter:
        values["filter"] = (*(PROFILES[profile].filter or ()), *chosen.filter)
    if profile == "michaelov2024" and not values["formula"]:
        values["formula"] = _michaelov_formula(columns)
    for field, names in PLACES.items():
        values[field] = values[field] or next((name for name in names if name in columns), "")
    values["response"] = values["response"] or values["formula"].partition("~")[0].strip()
    if not values["response"]:
        raise BadInput("no response: name the column of the human measure, --response COLUMN")
    named, formula = chosen.response if chosen else "", values["formula"]
    if formula and named not in formula.partition("~")[0]:
        raise BadInput(f"the formula {formula!r} is not about the response {named}: name one")
    return Procedure(**values)


def _michaelov_formula(columns: Collection[str]) -> str:
    """The formula of the data that has these columns."""
    if {"rt", "wlen", "unigramsurp", "subject", "docid", "sentid", "sentpos"} <= set(columns):
        return _MAZE
    if {"SUM_3RT_trimmed", "SUB", "ITEM"} <= set(columns):
        return _SELF_PACED
    raise BadInput(
        "profile michaelov2024 needs the columns rt, wlen, unigramsurp, subject, docid, sentid and "
        "sentpos (Maze), or SUM_3RT_trimmed, SUB and ITEM (self-paced reading): rename yours, or "
        "give --formula"
    )
