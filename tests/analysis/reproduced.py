"""Published figures that lmdiag reproduces, each computed from the published data.

    python tests/analysis/reproduced.py DATA        writes docs/reproduced.md

DATA is a directory built by `lmdiag build`. What other programs compute is read
from `tests/peers/records.json`, which the scripts there write.

`test_reproduced.py` compares the same figures and the page, so that neither can drift.
"""

from __future__ import annotations

import csv
import json
import os
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path
from statistics import fmean
from typing import NamedTuple

import pandas as pd
import torch

from lmdiag import api, stimuli
from lmdiag.analysis.linear import fit_mixed
from lmdiag.measures import quartiles
from lmdiag.models.agreement import agreement_values
from lmdiag.types import DIAGNOSTICS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reproduced.md"
PEERS = ROOT / "tests/peers/records.json"
NATURAL_STORIES = ("gpt2", "opt-125m", "Llama-2-7b-hf")
TRIALS = tuple(
    (data, model) for data in ("boyce", "brothers") for model in ("pythia-160m", "mamba-130m-hf")
)
ITO = ("gpt2-xl.causal", "albert-xxlarge-v2.masked")
_TRIAL_FILES = {
    "boyce": ("boyce_2023.tsv", "futrell_2018_dl", "Maze"),
    "brothers": ("brothers_2021.tsv", "brothers_2021", "self-paced reading"),
}


class Reproduction(NamedTuple):
    """A published figure and the one of lmdiag.

    Attributes:
        figure: what it is.
        published: as printed, or to as many digits as are compared.
        computed: by lmdiag, full precision.
        tolerance: largest difference that counts as equal; 0 for equality of the printed digits.
    """

    figure: str
    published: str
    computed: float
    tolerance: float = 0.0

    @property
    def rounded(self) -> str:
        """The computed figure with as many decimals as the published one."""
        return f"{self.computed:.{len(self.published.partition('.')[2])}f}"

    @property
    def holds(self) -> bool:
        """Whether the two are equal."""
        if self.tolerance:
            return abs(self.computed - float(self.published)) <= self.tolerance
        return self.rounded == self.published


@cache
def natural_stories(human: Path, model: str) -> list[Reproduction]:
    """Kuribayashi et al. (2024): what they print for a model on Natural Stories."""
    folder = human / "kuribayashi-2024"
    result = folder / "results/NS" / model / "surprisal.json"
    times = folder / "data/NS/all.txt.annotation.filtered.averaged_rt.csv"
    (fit,) = api.fit(times, surprisal=str(result), profile="kuribayashi2024").models
    printed = Path(f"{result}.result").read_text("utf-8")
    known = dict(re.findall(r"^([a-z ]+): ([\d.]+)$", printed, re.MULTILINE))
    rows = [
        Reproduction(f"{model}: {figure}", f"{float(known[figure]):.{digits}f}", value)
        for figure, digits, value in (
            ("delta loglik", 8, fit.delta_log_likelihood),
            ("delta loglik per tokens", 12, fit.per_word),
            ("average surprisal", 10, fit.mean_surprisal),
        )
    ]
    terms = {term.term: term for term in fit.terms}
    table = re.findall(r"^(\w+) +(-?\d+\.\d{4}) +(\d+\.\d{3}) ", printed, re.MULTILINE)
    for name, value, error in table:
        term = terms.pop("surprisal" if name == "interest" else name)
        rows.append(Reproduction(f"{model}: coefficient of {name}", value, term.estimate))
        rows.append(Reproduction(f"{model}: standard error of {name}", error, term.se))
    assert not terms
    (n,) = re.findall(r"No. Observations: +(\d+)", printed)
    return [*rows, Reproduction(f"{model}: number of words", n, fit.n)]


@cache
def trials(human: Path, data: str, model: str) -> list[Reproduction]:
    """Michaelov et al. (2024): lme4's AIC of a model."""
    folder = human / "michaelov-2024"
    table, prefix, label = _TRIAL_FILES[data]
    (surprisals,) = (folder / "results").glob(f"{prefix}.*__{model}.causal.output")
    with (folder / f"statistics/all_AICs_{data}.tsv").open(encoding="utf-8") as lines:
        rows = csv.DictReader(lines, delimiter="\t")
        aic = {row["ModelName"]: float(row["Surprisal_AIC"]) for row in rows}[model]
    times = folder / "cleaned_datasets" / table
    (fit,) = api.fit(times, surprisal=str(surprisals), profile="michaelov2024").models
    return [Reproduction(f"{label}, {model}: AIC", f"{aic:.6f}", fit.aic, tolerance=1e-6)]


@cache
def ito(human: Path, model: str) -> list[Reproduction]:
    """Michaelov & Bergen (2022): lme4's F of semantically related against unrelated words."""
    folder = human / "michaelov-bergen-2022"
    stimuli = pd.read_csv(folder / "stimuli/ito_2016.tsv", sep="\t")
    name = f"surprisal/ito_2016.surprisal.{model}.output"
    surprisals = pd.read_csv(folder / name, sep="\t").drop(columns="Sentence")
    table = stimuli.merge(surprisals, left_on="Sentence", right_on="FullSentence")
    table = table[table.Condition.isin(["semantically_related", "unrelated"])]
    table = table.assign(target=table.TargetWords.str.strip())
    term = fit_mixed("Surprisal ~ Condition + (1 | SentenceFrame) + (1 | target)", table).terms[1]
    published = {"gpt2-xl.causal": ("64.013", "156.66")}.get(model, ("20.61", "82.29"))
    label = model.partition(".")[0]
    return [
        Reproduction(f"{label}: F", published[0], term.t**2, tolerance=1e-3 * term.t**2),
        Reproduction(f"{label}: df", published[1], term.df, tolerance=1e-3 * term.df),
    ]


def ettinger(data: Path) -> list[Reproduction]:
    """Ettinger (2020): sizes of the data sets, and human figures of ROLE-88."""
    rows = {task: stimuli.load(str(data), task).columns() for task in DIAGNOSTICS}
    role88, subsets = rows["role88"], Counter(rows["neg136"]["subset"])
    pairs: dict[str, dict[bool, float]] = {}
    for contrast, good, cloze in zip(
        role88["contrast"], role88["good"], role88["target_cloze"], strict=True
    ):
        pairs.setdefault(contrast, {})[good] = cloze
    difference = fmean(pair[True] - pair[False] for pair in pairs.values())
    bins: dict[str | None, list[float]] = {}
    cloze = role88["expected_cloze"]
    for level, value in zip(quartiles(cloze), cloze, strict=True):
        bins.setdefault(level, []).append(value)
    table_8 = zip("1234", ("0.17", "0.23", "0.33", "0.77"), ("25", "23", "23", "17"), strict=True)
    return [
        Reproduction("CPRAG-102: items", "102", len(rows["cprag102"]["id"])),
        Reproduction("CPRAG-102: contexts", "34", sum(map(bool, rows["cprag102"]["expected"]))),
        Reproduction("ROLE-88: items", "88", len(role88["id"])),
        Reproduction("NEG-136-SIMP: items", "72", subsets["simp"]),
        Reproduction("NEG-136-NAT: items", "64", subsets["nat"]),
        Reproduction("section 5.2: mean cloze difference", "0.233", difference),
        *(
            row
            for level, bound, n in table_8
            for row in (
                Reproduction(f"table 8: largest cloze of bin {level}", bound, max(bins[level])),
                Reproduction(f"table 8: items of bin {level}", n, len(bins[level])),
            )
        ),
    ]


def newman() -> list[Reproduction]:
    """Newman et al. (2021): the scores of the example in their text, of are/is and exist/exists."""
    toy = torch.tensor([[0.6, 0.05, 0.1, 0.25]], dtype=torch.float64).log()
    ew, mw, *_ = agreement_values([(1, 0), (3, 2)], toy, [True])[0]
    return [
        Reproduction("example: EW", "0.5", ew or 0),
        Reproduction("example: MW", "0.7", mw or 0),
    ]


def sections(upstream: Path, data: Path) -> Iterator[tuple[str, str, str, list[Reproduction]]]:
    """Yields paper, what is compared, the command, and the figures."""
    human = upstream / "human"
    yield (
        "Kuribayashi, Oseki and Baldwin (2024)",
        "Natural Stories: log-likelihood that surprisal adds to a regression of reading times, and "
        "the coefficients of this regression, as printed with statsmodels",
        "lmdiag fit --human all.txt.annotation.filtered.averaged_rt.csv --surprisal surprisal.json "
        "--profile kuribayashi2024",
        [row for model in NATURAL_STORIES for row in natural_stories(human, model)],
    )
    yield (
        "Michaelov, Arnett and Bergen (2024)",
        "AIC of linear mixed models of single trials with surprisal, by lme4",
        "lmdiag fit --human boyce_2023.tsv --surprisal FILE.output --profile michaelov2024",
        [row for data_name, model in TRIALS for row in trials(human, data_name, model)],
    )
    yield (
        "Michaelov and Bergen (2022)",
        "The items of Ito et al. (2016): F test of semantically related against unrelated words, "
        "by lme4 and lmerTest",
        'fit_mixed("Surprisal ~ Condition + (1 | SentenceFrame) + (1 | target)", table)',
        [row for model in ITO for row in ito(human, model)],
    )
    yield (
        "Ettinger (2020)",
        "Sizes of the data sets, where an item is a context with a target, and human figures of "
        "ROLE-88; the number of items of each bin of table 8 is the one that its shares imply",
        "lmdiag report RUN",
        ettinger(data),
    )
    yield (
        "Newman et al. (2021)",
        "EW and MW of the example in their text",
        "lmdiag run --tasks agreement --model MODEL",
        newman(),
    )


def page(upstream: Path, data: Path) -> str:
    """Returns the content of docs/reproduced.md."""
    lines = [
        "# Published figures that lmdiag reproduces",
        "",
        "This page is written by `tests/analysis/reproduced.py`: published figures from the "
        "comparisons that the tests make with the authors' data, and those of other programs from "
        "what the scripts of `tests/peers` kept when they ran both.",
    ]
    for paper, what, command, rows in sections(upstream, data):
        texts = []
        for row in rows:
            apart = float(row.rounded) - float(row.published)
            difference = f"{apart:.1g}" if apart else "0"
            texts.append(f"{row.figure} | {row.published} | {row.rounded} | {difference}")
        lines += table(paper, what, command, "published", texts)
    return "\n".join([*lines, *peers()]) + "\n"


def table(title: str, what: str, command: str, source: str, rows: Iterable[str]) -> list[str]:
    """Returns the lines of a section of the page."""
    heads = ["", f"## {title}", "", f"{what}:", "", f"`{command}`", ""]
    heads += [f"| figure | {source} | lmdiag | difference |", "| --- | ---: | ---: | ---: |"]
    return [*heads, *(f"| {row} |" for row in rows)]


def peers() -> Iterator[str]:
    """Yields the lines about other programs, from what their comparisons kept."""
    for name, found in json.loads(PEERS.read_text("utf-8")).items():
        yield from table(name, found["what"], found["command"], found["program"], found["figures"])


if __name__ == "__main__":
    UPSTREAM = Path(os.environ.get("LMDIAG_UPSTREAM") or ROOT.parent / "shared" / "upstream")
    PAGE.write_text(page(UPSTREAM, Path(sys.argv[1])), "utf-8")
