"""Linear mixed models in lme4's notation, fitted by `mixedlm` (the extra `lmdiag[mixed]`)."""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from lmdiag.types import BadInput

if TYPE_CHECKING:
    from pandas import DataFrame

Coding = Literal["treatment", "sum"]


@dataclass(frozen=True)
class MixedTerm:
    """A fixed effect of a mixed model.

    Attributes:
        term: a column, columns joined by ":", or "(Intercept)"; a level of a column of text is
            written "column[level]" if there are more than two.
        estimate, se: coefficient and its standard error, in units of the response.
        df: degrees of freedom by Satterthwaite's approximation.
        t, p: estimate / se, and the two-sided p of a t distribution with df degrees of freedom.
    """

    term: str
    estimate: float
    se: float
    df: float
    t: float
    p: float


@dataclass(frozen=True)
class MixedFit:
    """A fitted linear mixed model.

    Attributes:
        formula: in lme4's notation.
        n: number of rows that the model was fitted to.
        left_out: number of rows without a value in a column of the formula.
        terms: the fixed effects.
        random_sd: grouping column -> term -> standard deviation, in units of the response.
        residual_sd: standard deviation of the residuals.
        groups: grouping column -> number of groups.
        log_likelihood: maximum, or restricted maximum.
        aic: 2 k - 2 log_likelihood, as lme4 has it; k counts fixed effects, variances and
            covariances.
        warning: "" or what makes the estimates unreliable: a singular fit, no convergence.
    """

    formula: str
    n: int
    left_out: int
    terms: tuple[MixedTerm, ...]
    random_sd: Mapping[str, Mapping[str, float]]
    residual_sd: float
    groups: Mapping[str, int]
    log_likelihood: float
    aic: float
    warning: str


def fit_mixed(
    formula: str,
    table: DataFrame,
    *,
    reml: bool = True,
    coding: Coding = "treatment",
) -> MixedFit:
    """Fits a linear mixed model.

    Args:
        formula: in lme4's notation, e.g. "surprisal ~ a * b + (1 + a || subject) + (1 | item)".
        table: its columns; rows without a value in one of them are left out.
        reml: restricted maximum likelihood, as lme4 does by default; else maximum likelihood, which
            AIC and likelihood ratios of models with different fixed effects need.
        coding: of columns of text, levels in alphabetical order. "sum": -0.5 and 0.5 for two
            levels, deviations from the mean of the levels for more; "treatment": 0 and 1.

    Raises:
        BadInput: `mixedlm` is not installed; the formula cannot be read, names an unknown column,
            or cannot be fitted to the table.

    Source: Bates et al. (2015), Fitting linear mixed-effects models using lme4; Kuznetsova et al.
    (2017), lmerTest.
    """
    try:
        import mixedlm
    except ImportError:
        raise BadInput(
            "a formula needs the package mixedlm: install it with `pip install 'lmdiag[mixed]'`"
        ) from None
    from pandas.api.types import is_numeric_dtype

    try:
        parsed = mixedlm.parse_formula(formula)
    except ValueError as error:
        raise BadInput(
            f"formula {formula!r}: {error}; write it as lme4 has it, as in y ~ a * b + (1 | item), "
            "with functions such as log computed as columns first"
        ) from None
    names = sorted(parsed.all_variables)
    if missing := [name for name in names if name not in table.columns]:
        known = ", ".join(map(str, table.columns))
        raise BadInput(f"formula {formula!r}: no column {missing[0]!r}; choose from {known}")
    used = table[names].dropna()
    contrasts: dict[str, Coding] = {}
    labels: dict[str, str] = {}  # the library writes c.1 for the first coefficient of c
    for name in set(names) - parsed.grouping_factors:
        if is_numeric_dtype(used[name]):
            continue
        levels = used[name].astype("category").cat.categories
        if len(levels) == 2:
            codes = dict(zip(levels, (-0.5, 0.5) if coding == "sum" else (0.0, 1.0), strict=True))
            used[name] = used[name].map(codes).astype(float)
        else:
            contrasts[name] = coding
            shown = levels[:-1] if coding == "sum" else levels[1:]
            labels |= {f"{name}.{i}": f"{name}[{level}]" for i, level in enumerate(shown, start=1)}

    def label(term: str) -> str:
        return ":".join(labels.get(part, part) for part in term.split(":"))

    control = mixedlm.lmerControl(check_rankX="stop", check_nlev_gtreq_5="ignore")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # what they say is in `MixedFit.warning`
            fit = mixedlm.lmer(parsed, used, REML=reml, contrasts=contrasts, control=control)
            effects = mixedlm.tidy(fit, effects="fixed")
    except Exception as error:  # the library raises errors of many types
        raise BadInput(f"formula {formula!r} cannot be fitted: {error}") from None
    for random in fit.matrices.random_structures:  # as lme4 checks it
        if (n := random.n_levels * random.n_terms) >= len(used):
            raise BadInput(
                f"formula {formula!r} cannot be fitted: {len(used)} rows for {n} random effects of "
                f"{random.grouping_factor}; simplify the random effects"
            )
    problems = []
    if fit.isSingular():
        problems.append(
            "singular fit: a variance is estimated as 0 or a correlation as 1 or -1; simplify the "
            "random effects"
        )
    if not fit.converged:
        problems.append(f"the fit did not converge ({fit.message}): simplify or rescale the model")
    statistics = effects[["estimate", "std.error", "df", "statistic", "p.value"]].to_numpy(float)
    random_sd: dict[str, dict[str, float]] = {}
    for group in fit.VarCorr().groups.values():
        sds = {label(term): sd for term, sd in group.stddev.items()}
        random_sd.setdefault(group.grouping_factor, {}).update(sds)
    return MixedFit(
        formula=formula,
        n=len(used),
        left_out=len(table) - len(used),
        terms=tuple(
            MixedTerm(label(term), *numbers)
            for term, numbers in zip(effects["term"], statistics.tolist(), strict=True)
        ),
        random_sd=random_sd,
        residual_sd=float(fit.sigma),
        groups={name: int(n) for name, n in fit.ngrps().items()},
        log_likelihood=float(fit.logLik().value),
        aic=float(fit.AIC()),
        warning="; ".join(problems),
    )
