"""Documents and metrics of lm-evaluation-harness, from rows of the lmdiag data set.

A document is a contrast: its good row against its bad ones. The probabilities of the targets, each
after the context of its own row, are compared. A multiple-choice document has one context for all
choices. If the contexts of the rows differ ("is a bird", "is an insect"), the choices begin with
the first word that differs, and the log-probability of the part that belongs to the context is
asked for as a further choice and subtracted.

Used by the YAML files in this folder: `lm_eval --include_path DIRECTORY_OF_THIS_FILE`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from datasets import Dataset

Row = Mapping[str, Any]

THRESHOLD = 0.01
"""Smallest difference in probability for sensitivity@0.01 (Ettinger 2020)."""


def documents(rows: Iterable[Row]) -> Dataset:
    """Returns one document per contrast, in order of first appearance.

    Columns:
        contrast: its id.
        contexts, targets: of its rows.
        good: index of the good row.
        shared: the words with which all contexts begin.
        choices: what follows `shared` in each row; then, if the contexts differ, the part of each
            that belongs to the context.
    """
    import datasets

    by_contrast: dict[str, list[Row]] = {}
    for row in rows:
        by_contrast.setdefault(row["contrast"], []).append(row)
    docs = []
    for contrast, members in by_contrast.items():
        contexts = [row["context"].split(" ") for row in members]
        n = 0
        while all(n < len(words) and words[n] == contexts[0][n] for words in contexts):
            n += 1
        parts = [" ".join(words[n:]) for words in contexts]
        targets = [row["target"] for row in members]
        wholes = [f"{part} {target}".lstrip() for part, target in zip(parts, targets, strict=True)]
        doc = {
            "contrast": contrast,
            "contexts": [row["context"] for row in members],
            "targets": targets,
            "good": [row["good"] for row in members].index(True),
            "shared": " ".join(contexts[0][:n]),
            "choices": wholes + (parts if any(parts) else []),
        }
        docs.append(doc)
    return datasets.Dataset.from_list(docs)


def simp_affirmative(rows: Iterable[Row]) -> Dataset:
    """Returns the contrasts of NEG-136 SIMP in affirmative statements."""
    simp = (row for row in rows if row["subset"] == "simp")
    return documents(row for row in simp if row["polarity"] == "affirmative")


def simp_negative(rows: Iterable[Row]) -> Dataset:
    """Returns the contrasts of NEG-136 SIMP in negated statements."""
    simp = (row for row in rows if row["subset"] == "simp")
    return documents(row for row in simp if row["polarity"] == "negative")


def nat(rows: Iterable[Row]) -> Dataset:
    """Returns the contrasts of NEG-136 NAT."""
    return documents(row for row in rows if row["subset"] == "nat")


def sentences(rows: Iterable[Row]) -> Dataset:
    """Returns the contrasts of rows that begin a sentence, with a capital as its first letter.

    This makes no difference to a model without capital letters.
    """
    return documents(
        {**row, "context": row["context"][:1].upper() + row["context"][1:]} for row in rows
    )


def measures(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, float]:
    """Returns whether the good row's target is more probable than that of every bad row.

    Args:
        doc: a document.
        results: for each choice its log-probability (nats), and whether it is the most likely text.

    Returns:
        acc: whether it is more probable; sensitivity@0.01: whether by more than `THRESHOLD`.
    """
    log_probs = [log_prob for log_prob, _ in results]
    n = len(doc["targets"])
    if len(log_probs) > n:
        log_probs = [whole - part for whole, part in zip(log_probs[:n], log_probs[n:], strict=True)]
    good = log_probs.pop(doc["good"])
    lead = min(math.exp(good) - math.exp(bad) for bad in log_probs)
    return {
        "acc": float(good > max(log_probs)),
        f"sensitivity@{THRESHOLD}": float(lead > THRESHOLD),
    }
