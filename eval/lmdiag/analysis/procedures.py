"""How surprisals are fitted to human measures: one record, and the published procedures as values.

The procedures are defined in docs/specification.md, section 14.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass, fields, replace
from typing import Any, Literal

from lmdiag.schema import BadInput

SURPRISAL = "surprisal"
"""Name of the fitted surprisals in formulas; k words earlier: "surprisal_prev_k"."""


@dataclass(frozen=True)
class Procedure:
    """How surprisals are fitted to a response.

    Attributes:
        response: column of the human measure.
        text, sentence, position, word: columns that place a row: words of one text are read in the
            order of their positions (in a text with sentences, of sentences and positions); "" for
            the first of `PLACES` that the table has. Lags never cross texts, nor sentences if
            these are named.
        controls: predictors of the baseline.
        lags: how many earlier words' controls and surprisals are predictors, too.
        added: surprisals that the baseline does not have: all, or the current word's.
        formula: full model, instead of controls, lags and added; with terms as `(1 | subject)` it
            is a mixed model, fitted by maximum likelihood.
        baseline: baseline, instead of the full model without the added surprisals.
        filters: conditions on rows, as `time>0`; rows are left out after lags are taken.
        folds: contiguous folds of which each is predicted from all others; 0 for in sample.
        units: of the surprisals that are read: bits or nats. Coefficients are per unit.
        average: the response is the mean over the rows of a word.
        distinct: repetitions of a row are left out first.
        complete: rows with a missing value in any column are left out.
        fill: earlier surprisals that do not exist are the mean surprisal.
        lags_as_text: earlier surprisals are those of the texts sorted as text, "10" before "2".
        language: of the word frequencies that are computed, e.g. "en".
    """

    response: str = ""
    text: str = ""
    sentence: str = ""
    position: str = ""
    word: str = ""
    controls: tuple[str, ...] = ("length", "log_frequency")
    lags: int = 2
    added: Literal["all", "current"] = "all"
    formula: str = ""
    baseline: str = ""
    filters: tuple[str, ...] = ()
    folds: int = 0
    units: Literal["bits", "nats"] = "bits"
    average: bool = False
    distinct: bool = False
    complete: bool = False
    fill: bool = False
    lags_as_text: bool = False
    language: str = "en"

    def __post_init__(self) -> None:
        if not 0 <= self.lags <= 10:
            raise BadInput(f"lags must be between 0 and 10, not {self.lags}")
        if self.folds < 0 or self.folds == 1:
            raise BadInput(f"folds must be 0 (in sample) or at least 2, not {self.folds}")
        if self.units not in ("bits", "nats"):
            raise BadInput(f"units must be bits or nats, not {self.units!r}")

    def formulas(self) -> tuple[str, str]:
        """Returns the full model and the baseline, as formulas."""
        from lmdiag.analysis.regression import quoted, without_terms

        full = self.formula
        if not full:
            names = [
                name if lag == 0 else f"{name}_prev_{lag}"
                for name in (SURPRISAL, *self.controls)
                for lag in range(self.lags + 1)
            ]
            full = f"{quoted(self.response)} ~ {' + '.join(map(quoted, names))}"
        added = rf"{SURPRISAL}(_prev_\d+)?" if self.added == "all" else SURPRISAL
        return full, self.baseline or without_terms(full, added)


PLACES = {
    "text": ("text", "article", "trialid", "docid", "sentence"),
    "position": ("position", "zone", "ianum", "sentpos"),
    "word": ("word", "ia"),
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
        filters=tuple(
            f"freq{lag}{bound}" for lag in ("", "_prev_1", "_prev_2") for bound in (">0", "<inf")
        ),
    ),
    "kuribayashi2024": Procedure(
        response="time", text="article", sentence="sent_id", position="tokenN_in_sent", word="word",
        controls=("length", "log_gmean_freq"), added="current", units="nats", fill=True,
        filters=("time>0", "tokenN_in_sent>0", "is_first=False", "is_last=False"),
        lags_as_text=True,
    ),
    "michaelov2024": Procedure(distinct=True),
}  # fmt: skip
"""Name -> procedure of Wilcox et al. (2023), Kuribayashi et al. (2024), Michaelov et al. (2024)."""


def procedure_for(
    columns: Collection[str], profile: str | None = None, **chosen: Any
) -> Procedure:
    """Returns the procedure for a table.

    Args:
        columns: of the table.
        profile: of `PROFILES`; None for the default.
        chosen: fields of `Procedure` that differ from the profile; None for no difference.

    Raises:
        BadInput: there is no such profile or field, no response, or the table lacks a column.
    """
    if profile is not None and profile not in PROFILES:
        raise BadInput(f"no profile {profile!r}: choose from {', '.join(PROFILES)}")
    known = {field.name for field in fields(Procedure)}
    if unknown := [name for name in chosen if name not in known]:
        raise BadInput(f"no option {unknown[0]!r}: choose from {', '.join(sorted(known))}")
    given = {
        name: tuple(value) if isinstance(value, list) else value
        for name, value in chosen.items()
        if value is not None
    }
    procedure = PROFILES[profile] if profile else Procedure()
    if profile == "michaelov2024" and not given.get("formula"):
        given["formula"] = _michaelov_formula(columns)
    if filters := given.get("filters"):
        given["filters"] = (*procedure.filters, *filters)
    procedure = replace(procedure, **given)
    places = {
        field: next((name for name in names if name in columns), "")
        for field, names in PLACES.items()
        if not getattr(procedure, field)
    }
    if procedure.formula and not procedure.response:
        places["response"] = procedure.formula.partition("~")[0].strip()
    procedure = replace(procedure, **places)
    if not procedure.response:
        raise BadInput("no response: name the column of the human measure, --response COLUMN")
    return procedure


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
