"""One attempt to reproduce each entry of a leaderboard, kept on disk and resumed after a kill.

The folder of attempts has a folder for each entry. While an attempt of N contexts is under way,
`asking-N/` has its `seed` and a `journal/` with the batches that were answered. At the end,
`outcome.json` takes its place.
"""

from __future__ import annotations

import hashlib
import json
import os
import secrets
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lmdiag.hub.names import DEMO_MODELS, is_local
from lmdiag.leaderboard.collect import Entry, Outcome
from lmdiag.questions import key_of
from lmdiag.reading import read_json, read_text
from lmdiag.reproduction.claims import Sample, contradictions, draw_contexts, tolerance
from lmdiag.text import shortened
from lmdiag.types import AGREEMENT, Answer, BadInput
from lmdiag.writing import write_atomically

_LONGER = 4
"""How many times longer the requested list of top words is than the submitted one."""

_TIME_LIMIT = 3600
"""Seconds that one model may take; enough for a large one on a processor."""


@dataclass(frozen=True)
class Settings:
    """How models are queried again.

    Attributes:
        n: contexts of each submission; None for all.
        max_parameters: of a model that is loaded.
        device: that models are loaded on; None for the accelerator if there is one.
    """

    n: int | None
    max_parameters: int
    device: str | None = None


def reproduce(entries: Sequence[Entry], folder: Path, settings: Settings | None) -> Iterator[Entry]:
    """Yields the entries with the outcomes of their attempts.

    An attempt is not repeated if it was finished before, for the same submission and number of
    contexts, unless the model could not be queried then.

    Args:
        entries: of a leaderboard.
        folder: of attempts; created if it does not exist.
        settings: how models are queried; None to query none and show earlier outcomes.
    """
    for entry in entries:
        # The name differs for other predictions and for another model.
        said = json.dumps([entry.identity, entry.judged.log_probs]).encode()
        place = folder / hashlib.sha256(said).hexdigest()[:16]
        outcome = _read(place / "outcome.json")
        if settings is not None and not _is_final(outcome, settings.n):
            outcome = _attempt(entry, place, settings)
        yield replace(entry, outcome=outcome)


def _read(path: Path) -> Outcome | None:
    """Returns the outcome in a file; None if it is missing or damaged."""
    from pydantic import TypeAdapter, ValidationError

    try:
        document = json.dumps(read_json(path))
        outcome = TypeAdapter(Outcome).validate_json(document, strict=True)
    except (BadInput, ValidationError):
        return None
    is_whole = outcome.status == "not possible" or outcome.tolerance is not None
    return outcome if is_whole else None


def _is_final(outcome: Outcome | None, n: int | None) -> bool:
    if outcome is None or outcome.status == "not possible":
        return False
    return outcome.asked >= min(outcome.of, n or outcome.of)


def _attempt(entry: Entry, place: Path, settings: Settings) -> Outcome:
    """Queries the model of an entry and writes the outcome."""
    started = time.monotonic()
    work = place / f"asking-{settings.n or 'all'}"
    seed = _seed(work / "seed")
    sample = draw_contexts(entry.run(), settings.n, seed)
    try:
        outcome = _compare(entry, sample, _ask(entry, sample, work / "journal", settings))
    except BadInput as error:
        outcome = Outcome("not possible", shortened(str(error)))
    outcome = replace(
        outcome,
        seed=seed if outcome.asked else "",
        seconds=round(time.monotonic() - started, 1),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    write_atomically(place / "outcome.json", json.dumps(asdict(outcome), indent=1).encode())
    shutil.rmtree(work, ignore_errors=True)
    return outcome


def _seed(path: Path) -> str:
    """Returns the seed of the attempt: a new secret, or that of an attempt that was interrupted."""
    if not path.is_file():
        path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(path, secrets.token_hex(16).encode())
    return read_text(path)


def _ask(entry: Entry, sample: Sample, journal: Path, settings: Settings) -> dict[str, Any]:
    """Returns the reply of a process that loads and queries the model.

    Raises:
        BadInput: it cannot be loaded or queried here.
    """
    model = entry.results.model
    if is_local(model) and model.id not in DEMO_MODELS:
        raise BadInput("it is a local folder")
    request = {
        "model": asdict(model),
        "questions": [[*q.query, list(q.words), q.number] for q in sample.questions],
        "verbs": entry.benchmark.verbs() if AGREEMENT in entry.run().stimuli else [],
        "top": _LONGER * max(len(claim.answer.top_words) for claim in sample.claims),
        "device": settings.device,
        "max_parameters": settings.max_parameters,
        "journal": str(journal),
    }
    reply = _exchange(request)
    if "problem" in reply:
        raise BadInput(reply["problem"])
    return reply


def _exchange(request: Mapping[str, Any]) -> dict[str, Any]:
    """Runs the worker on one request.

    Raises:
        BadInput: it took too long, or ended without a reply.
    """
    from huggingface_hub import constants

    # A model can crash the process or take all of its memory without any code of its own.
    hub = {"HF_ENDPOINT": constants.ENDPOINT, "HF_HUB_CACHE": constants.HF_HUB_CACHE}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "lmdiag.reproduction.worker"],
            input=json.dumps(request),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | hub,
            timeout=_TIME_LIMIT,
            check=False,
        )
        return dict(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        raise BadInput(f"it took more than {_TIME_LIMIT} seconds") from None
    except ValueError:
        raise BadInput(
            f"the process that loaded it ended without an answer (exit status {done.returncode})"
        ) from None


def _compare(entry: Entry, sample: Sample, reply: Mapping[str, Any]) -> Outcome:
    model = entry.results.model
    answers = {
        key_of(question): Answer.from_json(answer)
        for question, answer in zip(sample.questions, reply["answers"], strict=True)
    }
    difference = next(contradictions(model, reply["info"], sample.claims, answers), None)
    return Outcome(
        status="reproduced" if difference is None else "differs",
        detail=shortened(difference or ""),
        asked=len(sample.questions),
        of=sample.of,
        tolerance=tolerance(model),
        device=reply["device"],
        versions=reply["versions"],
    )
