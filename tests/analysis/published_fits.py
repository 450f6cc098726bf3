"""Published fits to human measures, and the same fits by lmdiag."""

from __future__ import annotations

import csv
import re
from pathlib import Path
from typing import Any

from lmdiag.analysis.fit import HumanFit, fit_surprisals
from lmdiag.analysis.human import read_human, read_surprisals
from lmdiag.analysis.procedures import procedure_for

KURIBAYASHI = ("gpt2", "opt-125m", "Llama-2-7b-hf")
MICHAELOV = tuple(
    (data, model) for data in ("boyce", "brothers") for model in ("pythia-160m", "mamba-130m-hf")
)
_MODEL_FILES = {
    "boyce": ("boyce_2023.tsv", "futrell_2018_dl"),
    "brothers": ("brothers_2021.tsv", "brothers_2021"),
}


def kuribayashi(human: Path, model: str) -> tuple[HumanFit, str]:
    """Returns the fit of a model to Natural Stories, and the file that its authors printed."""
    folder = human / "kuribayashi-2024"
    result = folder / "results/NS" / model / "surprisal.json"
    times = folder / "data/NS/all.txt.annotation.filtered.averaged_rt.csv"
    return _fit(times, result, "kuribayashi2024"), Path(f"{result}.result").read_text("utf-8")


def printed(text: str) -> dict[str, Any]:
    """Returns the figures of a printed fit; coefficients and their errors as texts."""
    figures: dict[str, Any] = {
        name: float(value) for name, value in re.findall(r"^([a-z ]+): ([\d.]+)$", text, re.M)
    }
    rows = re.findall(r"^(\w+) +(-?\d+\.\d{4}) +(\d+\.\d{3}) ", text, re.M)
    names = {"interest": "surprisal"}
    figures["coefficients"] = {names.get(name, name): value for name, value, _ in rows}
    figures["errors"] = {names.get(name, name): error for name, _, error in rows}
    return figures


def michaelov(human: Path, data: str, model: str) -> tuple[HumanFit, float]:
    """Returns the fit of a model to trials, and the AIC that its authors publish."""
    folder = human / "michaelov-2024"
    trials, prefix = _MODEL_FILES[data]
    (surprisals,) = (folder / "results").glob(f"{prefix}.*__{model}.causal.output")
    with (folder / f"statistics/all_AICs_{data}.tsv").open(encoding="utf-8") as lines:
        rows = csv.DictReader(lines, delimiter="\t")
        published = {row["ModelName"]: float(row["Surprisal_AIC"]) for row in rows}
    fit = _fit(folder / "cleaned_datasets" / trials, surprisals, "michaelov2024")
    return fit, published[model]


def _fit(table_file: Path, surprisals: Path, profile: str) -> HumanFit:
    table = read_human(table_file)
    procedure = procedure_for(table.frame.columns, profile)
    return fit_surprisals(table, [read_surprisals(table, str(surprisals), procedure)], procedure)
