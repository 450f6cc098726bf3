"""The facts on a run that a page lists: the model, the data, and how it was queried."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from lmdiag.report import numbers
from lmdiag.report.labels import SETTINGS, short_commit
from lmdiag.report.tables import Source


def facts(source: Source) -> dict[str, Any]:
    """Returns name, lead, signature and further facts of a run."""
    results = source.results
    model, data, protocol = results["model"], results["data"], results["protocol"]
    return {
        "name": source.label,
        "lead": " · ".join(
            [
                model["kind"],
                f"{numbers.count(model['n_parameters'])} parameters",
                model["dtype"],
                *([model["quantization"]] if model.get("quantization") else []),
                f"commit {short_commit(model['commit'])}",
            ]
        ),
        "signature": results["signature"],
        "facts": {
            "Model": f"{model['id']} ({model['architecture']}, {model['tokenizer']})",
            "Commit": model["commit"],
            "Data": f"{data['source']}{_at(data['revision'])}, fingerprint {data['fingerprint']}",
            "Rows": ", ".join(f"{task} {each['n']}" for task, each in data["tasks"].items())
            + (f"; a sample, --limit {protocol['limit']}" if protocol.get("limit") else ""),
            "Asked": UNITS[protocol["unit"]] + _bos(model),
            "Accuracy": f"among the first {' and '.join(map(str, protocol['k']))}; "
            f"words compared {MATCH[protocol['match']]}",
            "Sensitivity": f"threshold {protocol['threshold']:g} on differences of probabilities",
            "Perturbations": _perturbations(protocol),
            "Cost": f"{results['n_contexts']} contexts in {results['seconds'].get('ask', 0):.0f} s "
            f"on {results['device']['name']}, {results['device']['processes']} process(es)",
            "Versions": ", ".join(f"{name} {v}" for name, v in results["versions"].items()),
            "Finished": results["finished"],
        },
    }


UNITS = {
    "token": "the probability of the word over the whole vocabulary, piece by piece",
    "word": "the probability of the complete word, with the correction at its boundary",
}
MATCH = {"case-blind": "case-blind (the tokenizer is uncased)", "exact": "exactly"}


def _at(revision: str | None) -> str:
    return f" at {revision[:12]}" if revision else ""


def _bos(model: Mapping[str, Any]) -> str:
    if model["kind"] != "causal":
        return ""
    return (
        "; a beginning-of-sequence token first"
        if model["bos"]
        else "; no beginning-of-sequence token"
    )


def _perturbations(protocol: Mapping[str, Any]) -> str:
    names = [SETTINGS.get(name, name) for name in protocol["perturb"]]
    if not names:
        return "none"
    shuffles = f", {protocol['shuffles']} shuffles, seed {protocol['seed']}"
    shuffled = any(name.startswith("shuf") for name in protocol["perturb"])
    return ", ".join(names) + (shuffles if shuffled else "")
