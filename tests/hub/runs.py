"""Finished runs of models that never were, for tests of what happens to runs afterwards.

Their predictions are those of a made-up distribution at every blank, so they agree with each other
as those of a real model do, and their figures are computed by the package's own code.
"""

from __future__ import annotations

import json
import math
import random
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from lmdiag import results, stimuli, summary
from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.queries import Setting
from lmdiag.results import predictions
from lmdiag.schema import AGREEMENT, DIAGNOSTICS, ModelInfo, Predictions, Protocol
from lmdiag.stimuli import Stimuli

FILLERS = tuple(f"filler{index}" for index in range(20))


def model_info(**changes: Any) -> ModelInfo:
    """A model of the Hub."""
    facts: dict[str, Any] = {
        "id": "org/model",
        "revision": None,
        "commit": "a" * 40,
        "kind": "masked",
        "architecture": "BertForMaskedLM",
        "dtype": "float32",
        "tokenizer": "BertTokenizer",
        "cased": False,
        "vocab_size": 30522,
        "n_parameters": 110_000_000,
        "max_length": 512,
    }
    return ModelInfo(**facts | changes)


def make_run(
    folder: Path,
    data: str | Path,
    protocol: Protocol | None = None,
    *,
    info: ModelInfo | None = None,
    skill: float = 1.0,
    seed: int = 0,
    fillers: Sequence[str] = FILLERS,
    **facts: Any,
) -> Path:
    """Writes the run directory of a made-up model.

    Args:
        folder: the run directory.
        data: of the data set.
        info: of the model.
        protocol: only unperturbed ones.
        skill: nats that good completions have before others, on average.
        seed: of the distributions.
        fillers: words of the vocabulary that are nobody's target.
    """
    info, protocol = info or model_info(**facts), protocol or Protocol()
    rows = {
        task: stimuli.load(str(data), task, limit=protocol.limit, seed=protocol.seed)
        for task in protocol.tasks
    }
    found = {task: invent(rows[task], skill, seed, protocol.top, fillers) for task in rows}
    folder.mkdir(parents=True, exist_ok=True)
    settings = [Setting(each) for each in rows.values()]
    predictions.write_run(folder, list(found.values()), settings, kind=info.kind)
    record = describe(info, protocol, rows, found)
    (folder / results.RESULTS).write_text(json.dumps(record, indent=1, allow_nan=False))
    return folder


def invent(
    rows: Stimuli, skill: float, seed: int, top: int = 5, fillers: Sequence[str] = FILLERS
) -> Predictions:
    """Predictions from a random distribution over a small vocabulary at every blank."""
    columns = rows.columns()
    log_prob, rank, top_words, top_log_probs = [], [], [], []
    for context, right, target in zip(
        columns["context"], columns["right_context"], columns["target"], strict=True
    ):
        ranked = _distribution(columns, (context, right), skill, seed, fillers)
        words = [word for word, _ in ranked]
        log_prob.append(dict(ranked)[target.lower()])
        rank.append(words.index(target.lower()) + 1)
        top_words.append(words[:top])
        top_log_probs.append([value for _, value in ranked[:top]])
    asked = zip(columns["context"], columns["right_context"], strict=True)
    weights = [_weights(f"{seed} {context} {right}") for context, right in asked]
    return Predictions(
        agreement=list(weights) if rows.task == AGREEMENT else [],
        id=columns["id"],
        log_prob=list(log_prob),
        rank=list(rank),
        n_tokens=[1] * len(rank),
        top_words=list(top_words),
        top_log_probs=list(top_log_probs),
    )


def _weights(key: str) -> tuple[float, ...]:
    """EW and MW of a context at every cut-off."""
    draw = random.Random(key)
    return tuple(draw.random() for _ in AGREEMENT_LAYOUT)


def _distribution(
    columns: Mapping[str, Sequence[Any]],
    query: tuple[str, str],
    skill: float,
    seed: int,
    fillers: Sequence[str],
) -> list[tuple[str, float]]:
    """(word, log-probability in nats) of the words at a blank, best first."""
    draw = random.Random(f"{seed} {query}")
    good: dict[str, bool] = dict.fromkeys(fillers, False)
    for index, other in enumerate(columns["context"]):
        if (other, columns["right_context"][index]) == query:
            target = columns["target"][index].lower()
            good[target] = good.get(target, False) or columns["good"][index]
            good |= {word.lower(): True for word in columns["expected"][index]}
    scores = {word: draw.gauss(skill if good[word] else 0.0, 1.0) for word in good}
    total = math.log(sum(map(math.exp, scores.values())))
    ranked = sorted(scores, key=lambda word: (-scores[word], word))
    return [(word, scores[word] - total) for word in ranked]


def describe(
    info: ModelInfo,
    protocol: Protocol,
    rows: Mapping[str, Stimuli],
    found: Mapping[str, Predictions],
) -> dict[str, Any]:
    """A results.json with the figures of the predictions."""
    prints = {task: each.fingerprint for task, each in rows.items()}
    whole = results.combine(prints)
    first = rows[DIAGNOSTICS[0]] if DIAGNOSTICS[0] in rows else next(iter(rows.values()))
    tasks = {t: results.TaskData(prints[t], len(rows[t])) for t in rows}
    return results.Results(
        signature=results.signature(protocol, whole),
        identity=results.identity(info, protocol, whole),
        model=info,
        data=results.DataInfo(first.source, first.revision, whole, tasks),
        protocol=protocol,
        versions={"lmdiag": "0.1.0"},
        device=results.Device("cpu", 1),
        seconds={"load": 1.0, "ask": 2.0},
        finished="2025-03-01T12:00:00+00:00",
        n_contexts=198,
        tasks={
            task: {
                "none": replace(
                    summary.evaluate(rows[task], [found[task]], protocol, info.cased, info.kind),
                    signature=results.signature(protocol, prints[task]),
                )
            }
            for task in rows
        },
    ).to_json()
