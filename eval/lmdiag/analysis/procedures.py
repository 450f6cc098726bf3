"""How surprisals are fitted to human measures: one record, and the published procedures as values.

The procedures are defined in docs/specification.md, section 10.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypedDict

from lmdiag.stimuli.reading.filters import Condition
from lmdiag.stimuli.values.names import NAMES, NAMES_OF_WORDS, named_columns
from lmdiag.types import BadInput, Options

SURPRISAL = "surprisal"
"""Name of the fitted surprisals in formulas; k words earlier: "surprisal_prev_k"."""

ENTROPY = "entropy"
"""Name of the entropies before each word, of a model or in a column."""

COMPUTED = ("length", "len", "log_frequency", "freq")
"""Columns that are computed from the words where a table lacks them."""


@dataclass(frozen=True, kw_only=True)
class Procedure(Options):
    """How surprisals are fitted. The texts of the fields are the help of the command line."""

    response: str = ""
    """column of the human measure"""
    text: str = ""
    """column that tells texts apart; earlier words are those of the same text (default: text,
    article, trialid, docid or sentence)"""
    sentence: str = ""
    """column that tells sentences apart, if earlier words are those of the same sentence; if it has
    their full text, that is what models read"""
    position: str = ""
    """column with the place of a word in its text or sentence (default: a usual name, as position,
    zone or word_nr)"""
    word: str = ""
    """column of the words (default: a usual name, as word, ia or token)"""
    reader: str = ""
    """column that tells readers apart; the response is the mean over the rows of a word, unless the
    formula has a group of readers (default: a usual name, as reader, subj or WorkerId)"""
    controls: tuple[str, ...] | None = None
    """columns that the baseline has; length (characters) and log_frequency (wordfreq) are computed
    if there are none (default: these two)"""
    lags: int | None = None
    """how many earlier words' controls and surprisals are predictors, too (default: 2; without
    columns of texts and positions 0)"""
    predictors: tuple[str, ...] = (SURPRISAL,)
    """what the full model adds to the baseline: surprisal, entropy or columns; of several, each is
    also fitted without the others, and tested beyond them"""
    formula: str = ""
    """full model instead of controls and lags, as `rt ~ surprisal + length` or, for a mixed
    model, `rt ~ surprisal + (surprisal | subject)`; NAME_prev_1 is an earlier word's value"""
    baseline: str = ""
    """formula of the baseline (default: the full model without surprisals)"""
    filter: tuple[str, ...] = ()
    """conditions as COLUMN=VALUE, or with != > < >= <=; other rows are left out after earlier words
    are looked up"""
    folds: int | None = None
    """contiguous folds, each predicted from the others (default: 0, in sample)"""
    units: Literal["bits", "nats"] | None = None
    """unit of surprisals that are read; coefficients are per unit (default: bits)"""
    distinct: bool = False
    """leave out repetitions of a row first"""
    language: str = ""
    """language of computed word frequencies (default: en)"""

    def __post_init__(self) -> None:
        """Refuses values that cannot be fitted."""
        if not 0 <= (self.lags or 0) <= 10:
            raise BadInput(f"lags must be between 0 and 10, not {self.lags}")
        if (self.folds or 0) < 0 or self.folds == 1:
            raise BadInput(f"folds must be 0 (in sample) or at least 2, not {self.folds}")
        for condition in self.filter:
            if not Condition.of(condition):
                raise BadInput(
                    f"filter {condition!r}: write it as COLUMN=VALUE, or with != > < >= <="
                )
        if self.formula and self.response not in self.formula.partition("~")[0]:
            raise BadInput(f"the formula {self.formula!r} is not about {self.response}: name one")


class ProcedureKeywords(TypedDict, total=False):
    """The fields of `Procedure`, as keywords of Python."""

    response: str
    text: str
    sentence: str
    position: str
    word: str
    reader: str
    controls: Sequence[str] | None
    lags: int | None
    predictors: Sequence[str]
    formula: str
    baseline: str
    filter: Sequence[str]
    folds: int | None
    units: Literal["bits", "nats"] | None
    distinct: bool
    language: str


@dataclass(frozen=True, kw_only=True)
class Profile(Procedure):
    """A procedure with what only publications do; it says what is fitted.

    Attributes:
        earlier_in_baseline: surprisals of earlier words are part of the baseline, too.
        complete: rows with a missing value in any column are left out.
        fill: surprisals (and entropies) before the beginning of a text or sentence are the mean.
        lags_as_text: earlier surprisals are those of the texts sorted as text, "10" before "2".
        published_test: the test of the publication if it does not compare nested models: a random
            permutation of the signs of the rows' differences.
    """

    earlier_in_baseline: bool = False
    complete: bool = False
    fill: bool = False
    lags_as_text: bool = False
    published_test: Literal["sign permutation"] | None = None

    def formulas(self) -> tuple[str, str]:
        """Returns the formulas of the full model and of the baseline without the predictors.

        For example, ("rt ~ surprisal + length", "rt ~ length"). `BadInput` if the two do not fit
        together, or the full model lacks a predictor.
        """
        from lmdiag.analysis.regression import names_in, quoted, sides, without_terms

        full = self.formula
        if not full:
            names = []
            for name in (*self.predictors, *(self.controls or ())):
                names.append(name)
                names += [f"{name}_prev_{lag}" for lag in range(1, (self.lags or 0) + 1)]
            full = f"{quoted(self.response)} ~ {' + '.join(map(quoted, names))}"
        baseline = self.baseline or without_terms(full, self._pattern(self.predictors))
        response, _ = sides(full)
        baseline_response, _ = sides(baseline)
        if response != baseline_response:
            raise BadInput(f"the baseline {baseline!r} must have the response of {full!r}")
        variables = {*names_in(full), *names_in(baseline)}
        for name in self.predictors:
            # a formula may have the value of an earlier word alone
            if name not in variables and f"{name}_prev_1" not in variables:
                raise BadInput(f"formula {full!r} has no term {name}, which is a predictor")
        return full, baseline

    def _pattern(self, predictors: Sequence[str]) -> str:
        """Returns a regular expression for the columns that some predictors add to the baseline.

        It matches values of earlier words, too, unless these are part of the baseline: for the
        predictor "surprisal" it matches "surprisal" and "surprisal_prev_1".
        """
        lags = "" if self.earlier_in_baseline else r"(_prev_\d+)?"
        return f"({'|'.join(map(re.escape, predictors))}){lags}"

    def regressions(self) -> dict[str, tuple[str, str]]:
        """Returns the comparisons that are fitted: label -> full model and baseline.

        With one predictor there is one comparison; with several, each predictor alone, all
        together, and each beyond the others: the labels of the predictors surprisal and entropy are
        "surprisal", "entropy", "surprisal + entropy", "surprisal beyond entropy" and "entropy
        beyond surprisal".
        """
        from lmdiag.analysis.regression import without_terms

        full, baseline = self.formulas()
        all_together = {" + ".join(self.predictors): (full, baseline)}
        if len(self.predictors) == 1:
            return all_together
        alone = {}
        beyond_others = {}
        for name in self.predictors:
            other_predictors = [other for other in self.predictors if other != name]
            alone[name] = (without_terms(full, self._pattern(other_predictors)), baseline)
            label = f"{name} beyond {' + '.join(other_predictors)}"
            beyond_others[label] = (full, without_terms(full, self._pattern([name])))
        return alone | all_together | beyond_others

    def signature(self) -> str:
        """Returns the fields that change figures and that the formulas do not show.

        For example, "units:bits|folds:10|filter:time>0|complete:true".
        """
        values: dict[str, object] = {
            "units": self.units or "bits",
            "folds": self.folds,
            "filter": ",".join(self.filter),
        }
        for flag in ("distinct", "complete", "fill"):
            if getattr(self, flag):
                values[flag] = "true"
        return "|".join(f"{name}:{value}" for name, value in values.items() if value)


PLACES = frozenset(name for names in NAMES_OF_WORDS.values() for name in names)
PLACES |= {*NAMES["reader"][:3]}
"""Columns that `fit` takes without being told, and those of readers that formulas name."""

PROFILES: Mapping[str, tuple[Profile, ...]] = {
    "wilcox2023": (Profile(
        response="gaze_rt", controls=("freq", "len"), folds=10, complete=True,
        published_test="sign permutation",
        filter=tuple(
            f"freq{lag}{bound}" for lag in ("", "_prev_1", "_prev_2") for bound in (">0", "<inf")
        ),
    ),),
    "kuribayashi2024": (Profile(
        response="time", text="article", sentence="sent_id", position="tokenN_in_sent", word="word",
        controls=("length", "log_gmean_freq"), earlier_in_baseline=True, units="nats", fill=True,
        filter=("time>0", "tokenN_in_sent>0", "is_first=False", "is_last=False"),
        lags_as_text=True,
    ),),
    "michaelov2024": (
        Profile(distinct=True, sentence="sentid", formula=(
            "scale(log(rt)) ~ scale(surprisal) + scale(wlen) + scale(unigramsurp) + scale(sentpos) "
            "+ (1 + scale(surprisal) + scale(wlen) + scale(sentpos) || subject) "
            "+ (1 | docid:sentid)"
        )),
        Profile(distinct=True, formula=(
            "scale(SUM_3RT_trimmed) ~ scale(surprisal) + (scale(surprisal) | SUB) "
            "+ (scale(surprisal) | ITEM)"
        )),
    ),
}  # fmt: skip
"""Name -> procedures of Wilcox et al. (2023), Kuribayashi et al. (2024), Michaelov et al. (2024).

The one whose formula a table has the columns for is used: Maze, or self-paced reading."""

_DEFAULT = Profile(controls=("length", "log_frequency"), lags=2, language="en")


def procedure_for(
    columns: Collection[str], profile: str | None = None, chosen: Procedure | None = None
) -> Profile:
    """Returns the procedure for a table, with the columns of the table that it uses.

    A field is what the user chooses, else that of the profile, else the default; columns that
    nobody names are found by their usual names. `BadInput` for an unknown profile, and if the table
    lacks a column of its formula.

    Args:
        columns: of the table.
        profile: one of `PROFILES`; None for none.
        chosen: what the user chooses. Filters are on top of those of the profile.
    """
    from lmdiag.analysis.regression import names_in

    if profile is not None and profile not in PROFILES:
        raise BadInput(f"no profile {profile!r}: choose from {', '.join(PROFILES)}")
    chosen = chosen or Procedure()
    published = _choose_profile(columns, profile, chosen) if profile else Profile()
    # `stored` has the fields that are not at their default, so that the later records win only
    # where they set a field
    values = vars(_DEFAULT) | published.stored() | chosen.stored()
    values["filter"] = (*published.filter, *chosen.filter)
    # the column of sentences of a profile is that of the published tables: others may lack it
    if values["sentence"] not in (*columns, chosen.sentence):
        values["sentence"] = ""
    for field, usual_names in NAMES_OF_WORDS.items():
        if not values[field]:
            values[field] = next((name for name in usual_names if name in columns), "")
    if not values["reader"]:
        values["reader"] = next(iter(named_columns("reader", columns)), "")
    if not (values["text"] or values["position"] or chosen.lags):
        values["lags"] = 0  # no row has a place in a text
    if not values["response"]:
        left_side = values["formula"].partition("~")[0]
        values["response"] = next(iter(names_in(left_side)), "")
    return Profile(**values)


def _choose_profile(columns: Collection[str], profile: str, chosen: Procedure) -> Profile:
    """Returns the first procedure of a profile whose formula names only columns of the table.

    If the user gives a formula, which takes the place of that of the profile, this is the first
    procedure. `BadInput` if the table lacks a column of each procedure.

    Args:
        columns: of the table.
        profile: one of `PROFILES`, e.g. "michaelov2024", which has two procedures.
        chosen: what the user chooses.
    """
    from lmdiag.analysis.regression import names_in

    columns_of_procedures = []
    for procedure in PROFILES[profile]:
        needed_columns = {*names_in(procedure.formula)} - {SURPRISAL}
        if chosen.formula or needed_columns <= {*columns}:
            return procedure
        columns_of_procedures.append(", ".join(sorted(needed_columns)))
    lists = "; or ".join(columns_of_procedures)
    raise BadInput(f"profile {profile} needs the columns {lists}: rename yours")
