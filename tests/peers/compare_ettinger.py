"""Compares the scorer of Ettinger (2020) with lmdiag, and keeps the figures of both.

    python tests/peers/compare_ettinger.py SCORER DATASETS DATA

Run by hand. SCORER is run_diagnostics_bert.py of github.com/aetting/lm-diagnostics at commit
3754528b861f, DATASETS the folder `datasets` there, DATA a built data set directory. No model is
needed: both get the same probabilities, which a seeded generator draws.
"""

from __future__ import annotations

import importlib.util
import io
import math
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock

import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from records import keep
from runs import predictions_of

from lmdiag import evaluation, stimuli
from lmdiag.protocol import Protocol

SIZES = ("HIGH", "high"), ("LOW", "low")
FIGURES = {
    "cprag102": {
        **{f"EXP TGT in TOP {k} preds": f"accuracy@{k}" for k in (1, 5)},
        **{f"in TOP {k} for {size[0]}": f"accuracy@{k} constraint {name}"
           for k in (1, 5) for size, name in SIZES},
        "EXP TOP": "sensitivity",
        **{f"EXP TOP {size}": f"sensitivity constraint {name}" for size, name in SIZES},
        "EXP TOP w/ THRESH 0.01": "sensitivity@0.01",
        **{f"EXP TOP {size} w/ THRESH 0.01": f"sensitivity@0.01 constraint {name}"
           for size, name in SIZES},
        **{f"WC BOOST {size}": f"within_category_boost constraint {name}" for size, name in SIZES},
    },
    "role88": {
        **{f"TGT in top {k} preds": f"accuracy@{k}" for k in (1, 5)},
        **{f"TGT in top {k} for Q{n}": f"accuracy@{k} cloze_quartile {n}"
           for k in (1, 5) for n in "1234"},
        "GOOD TGT HIGHER": "sensitivity",
        "GOOD TGT HIGHER BY 0.01": "sensitivity@0.01",
        "AVG PROB DIFF": "probability_difference",
        "AVG CLOZE DIFF": "cloze_difference",
    },
    "neg136": {
        f"{subset} {label}": f"{measure} {level.format(subset)}"
        for subset in ("simp", "nat")
        for label, measure, level in (
            ("TRUE TGT in top 1 preds", "accuracy@1", "subset/polarity {}/affirmative"),
            ("TRUE TGT in top 5 preds", "accuracy@5", "subset/polarity {}/affirmative"),
            ("PREF TRUE", "sensitivity", "subset {}"),
            ("AFF", "sensitivity", "subset/polarity {}/affirmative"),
            ("NEG", "sensitivity", "subset/polarity {}/negative"),
            ("PREF TRUE AFF THRESH 0.01", "sensitivity@0.01", "subset/polarity {}/affirmative"),
            ("PREF TRUE NEG THRESH 0.01", "sensitivity@0.01", "subset/polarity {}/negative"),
        )
    } | {
        "nat PREF TRUE LICENSED": "sensitivity natural natural",
        "nat PREF TRUE UNLICENSED": "sensitivity natural less_natural",
    },
}  # fmt: skip
"""Task -> label in the scorer's report -> measure of lmdiag, with what it is broken down by."""


class Drawn:
    """Probabilities of a vocabulary at each blank, drawn once; half of the blanks expect a word."""

    def __init__(self, tables: list[dict[str, Any]]) -> None:
        words = {word for table in tables for word in table["target"]}
        words |= {word for table in tables for row in table["expected"] for word in row}
        self.words = np.array(sorted(words))
        self.p: dict[str, Any] = {}
        rng = np.random.default_rng(2020)
        for table in tables:
            for context, expected in zip(table["context"], table["expected"], strict=True):
                scores = rng.normal(0, 2, len(self.words))
                scores[np.isin(self.words, expected)] += rng.choice([0, 5])
                p = np.exp(scores)
                self.p.setdefault(" ".join(context.split()), p / p.sum())

    def at(self, context: str) -> Any:
        """The probabilities at a blank, whose mask is not part of its name."""
        return self.p[" ".join(context.replace("[MASK]", "").split())]

    def top(self, context: str, k: int) -> list[str]:
        """The most probable words."""
        return [str(word) for word in self.words[np.argsort(-self.at(context))[:k]]]

    def of(self, context: str, word: str) -> float:
        """The probability of a word."""
        return float(self.at(context)[np.searchsorted(self.words, word)])


def reports(file: str, datasets: Path, drawn: Drawn, k: int) -> Iterator[tuple[str, str, str]]:
    """Yields task, prefix of its labels, and the scorer's report; `drawn` is its model."""
    sys.modules["access_model"] = SimpleNamespace(  # type: ignore[assignment]
        get_predictions=lambda texts, drawn, _, k, bert: (
            [drawn.top(text, k) for text in texts], [None] * len(texts)
        ),
        get_probabilities=lambda texts, words, drawn, _, bert: [*map(drawn.of, texts, words)],
    )  # fmt: skip
    sys.modules |= {name: MagicMock() for name in ("matplotlib", "matplotlib.pyplot")}
    spec: Any = importlib.util.spec_from_file_location("scorer", file)
    scorer: Any = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(scorer)
    log = io.StringIO()
    fk = scorer.process_fk(datasets / "CPRAG-102/CPRAG-102.tsv")
    report = scorer.test_fk_acc(fk[0], fk[1], fk[5], drawn, None, "orig", log, k=k)
    yield "cprag102", "", "".join(report[:2])
    role = scorer.process_rr(datasets / "ROLE-88/ROLE-88.tsv")
    yield "role88", "", "".join(scorer.test_rr_acc(*role, drawn, None, log, k=k)[:2])
    for subset, read in (("simp", scorer.process_fischler), ("nat", scorer.process_nk)):
        texts, rows, words = read(datasets / f"NEG-136/NEG-136-{subset.upper()}.tsv")
        report = scorer.test_nkf_acc(rows, texts, words, drawn, None, log, k=k)
        yield "neg136", f"{subset} ", "".join(report[:2])


def main(file: str, datasets: str, data: str) -> None:
    """Scores the same predictions with both and keeps the figures."""
    tasks = {task: stimuli.load(data, task) for task in FIGURES}
    drawn = Drawn([rows.columns() for rows in tasks.values()])
    original: dict[str, dict[str, float]] = {task: {} for task in tasks}
    for k in (1, 5):
        for task, prefix, text in reports(file, Path(datasets), drawn, k):
            for label, value in re.findall(r"^(.+): ([-\d.e]+)\b", text, re.MULTILINE):
                original[task].setdefault(prefix + label, float(value))
    rows = []
    for task, labels in FIGURES.items():
        columns = tasks[task].columns()
        blanks = [*zip(columns["context"], columns["target"], strict=True)]
        log_prob = [math.log(drawn.of(*blank)) for blank in blanks]
        predictions = predictions_of(columns, log_prob, [drawn.top(text, 5) for text, _ in blanks])
        figures = evaluation.evaluate(tasks[task], [predictions], Protocol(), cased=True)
        for label, path in labels.items():
            measure, *level = path.split()
            figure = figures.to_json()["measures"][measure]
            if level:
                figure = figure["by"][level[0]][level[1]]
            first, second = original[task][label], figure["value"]
            gap = str(round(abs(first - second), 9) or "0")
            rows.append((f"{task}: {path}", f"{first:.6f}", f"{second:.6f}", gap))
    what = "The published data sets, with the same probabilities, drawn by a seeded generator: the "
    what += "figures of the authors' program and those of lmdiag"
    command = "tests/peers/compare_ettinger.py run_diagnostics_bert.py datasets DATA"
    program = "run_diagnostics_bert.py, commit 3754528b861f"
    keep("The scorer of Ettinger (2020)", program, what, command, rows)


if __name__ == "__main__":
    main(*sys.argv[1:])
