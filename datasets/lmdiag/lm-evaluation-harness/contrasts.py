"""From rows of the lmdiag data set to documents of lm-evaluation-harness, and to its metrics.

A document is a contrast: its good row against its bad ones. What is compared is the probability of
each row's target after the row's own context. Where the contexts differ ("is a bird", "is an
insect"), multiple choice has no form for that: the choices then begin where the contexts part, and
the log-probability of what a row's context has beyond that point is asked for and taken off.

Used by the YAML files beside this one: `lm_eval --include_path DIRECTORY_OF_THIS_FILE`.
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
    """Returns a document per contrast, in order of first appearance.

    Columns:
        contrast: its id.
        contexts, targets: of its rows.
        good: place of the good row among them.
        shared: the words that all contexts begin with.
        choices: what follows `shared` in each row; then, where the contexts differ, the part of it
            that belongs to the context.
    """
    import datasets

    by_contrast: dict[str, list[Row]] = {}
    for row in rows:
        by_contrast.setdefault(row["contrast"], []).append(row)
    return datasets.Dataset.from_list([document(of) for of in by_contrast.values()])


def document(rows: Sequence[Row]) -> dict[str, Any]:
    """Returns the document of one contrast; see `documents`."""
    contexts = [row["context"].split(" ") for row in rows]
    n = 0
    while all(n < len(words) and words[n] == contexts[0][n] for words in contexts):
        n += 1
    wholes = [
        " ".join([*words[n:], row["target"]]) for words, row in zip(contexts, rows, strict=True)
    ]
    parts = [" ".join(words[n:]) for words in contexts]
    return {
        "contrast": rows[0]["contrast"],
        "contexts": [row["context"] for row in rows],
        "targets": [row["target"] for row in rows],
        "good": [row["good"] for row in rows].index(True),
        "shared": " ".join(contexts[0][:n]),
        "choices": wholes + (parts if any(parts) else []),
    }


def simp_affirmative(rows: Iterable[Row]) -> Dataset:
    """Returns the contrasts of NEG-136 SIMP in affirmative statements."""
    return documents(row for row in rows if is_simp(row) and row["polarity"] == "affirmative")


def simp_negative(rows: Iterable[Row]) -> Dataset:
    """Returns the contrasts of NEG-136 SIMP in negated statements."""
    return documents(row for row in rows if is_simp(row) and row["polarity"] == "negative")


def nat(rows: Iterable[Row]) -> Dataset:
    """Returns the contrasts of NEG-136 NAT."""
    return documents(row for row in rows if not is_simp(row))


def is_simp(row: Row) -> bool:
    """Returns whether a row of NEG-136 is about category membership."""
    return bool(row["subset"] == "simp")


def sentences(rows: Iterable[Row]) -> Dataset:
    """Returns the contrasts of rows that begin a sentence, its first letter upper-cased.

    A model that knows no capitals does not see the difference.
    """
    return documents(
        {**row, "context": row["context"][:1].upper() + row["context"][1:]} for row in rows
    )


def measures(doc: Mapping[str, Any], results: Sequence[tuple[float, bool]]) -> dict[str, float]:
    """Returns whether the good row's target is more probable than that of every bad row.

    Args:
        doc: a document.
        results: for each choice its log-probability (nats), and whether it is the likeliest text.

    Returns:
        acc: more probable at all; a tie is none. sensitivity@0.01: by more than `THRESHOLD`.
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
