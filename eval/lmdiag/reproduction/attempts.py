"""One attempt to reproduce each entry of a leaderboard, kept on disk and resumed after a kill.

The folder of attempts has a folder for each entry: `seed` as long as the attempt is under way,
`journal/` with the batches that were answered, and in the end `outcome.json`.
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
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from lmdiag.hub.names import DEMO_MODELS, is_local
from lmdiag.hub.refusal import shorten
from lmdiag.leaderboard.collect import Entry
from lmdiag.leaderboard.outcome import Outcome
from lmdiag.reproduction.agree import first_difference, tolerance
from lmdiag.reproduction.sample import Sample, draw
from lmdiag.schema import AGREEMENT, Answer, BadInput
from lmdiag.writing import write_atomically

LONGER = 4
"""How many times longer the asked list of top words is than the submitted one."""

TIME_LIMIT = 3600
"""Seconds that one model may take; enough for a large one on a processor."""


@dataclass(frozen=True)
class Settings:
    """How models are asked again.

    Attributes:
        n: contexts of each submission; None for all.
        max_parameters: of a model that is loaded.
        device: that models are loaded on; None for the accelerator if there is one.
        time_limit: seconds that one model may take.
    """

    n: int | None
    max_parameters: int
    device: str | None = None
    time_limit: int = TIME_LIMIT


def reproduce(entries: Sequence[Entry], folder: Path, settings: Settings | None) -> Iterator[Entry]:
    """Yields the entries with the outcomes of their attempts.

    An attempt that was finished before, of the same submission and number of contexts, is not
    repeated; one that was not possible is.

    Args:
        entries: of a leaderboard.
        folder: of attempts; made where there is none.
        settings: how models are asked; None to ask none and show earlier outcomes.
    """
    for entry in entries:
        place = folder / _name(entry)
        outcome = _read(place)
        if settings is not None and not _is_final(outcome, settings.n):
            outcome = _attempt(entry, place, settings)
        yield replace(entry, outcome=outcome)


def _name(entry: Entry) -> str:
    """Returns the folder name of an entry: another for other predictions or another model."""
    said = json.dumps([entry.identity, entry.judged.log_probs]).encode()
    return hashlib.sha256(said).hexdigest()[:16]


def _read(place: Path) -> Outcome | None:
    try:
        return Outcome(**json.loads((place / "outcome.json").read_text("utf-8")))
    except (OSError, ValueError, TypeError):
        return None


def _is_final(outcome: Outcome | None, n: int | None) -> bool:
    if outcome is None or outcome.status == "not possible":
        return False
    return outcome.asked >= min(outcome.of, n or outcome.of)


def _attempt(entry: Entry, place: Path, settings: Settings) -> Outcome:
    """Asks the model of an entry and writes the outcome."""
    started = time.monotonic()
    seed = _seed(place, settings.n)
    sample = draw(entry.run(), settings.n, seed)
    try:
        outcome = _compare(entry, sample, _ask(entry, sample, place / "journal", settings))
    except BadInput as error:
        outcome = Outcome("not possible", shorten(str(error)))
    outcome = replace(
        outcome,
        seed=seed if outcome.asked else "",
        seconds=round(time.monotonic() - started, 1),
        finished=datetime.now(UTC).isoformat(timespec="seconds"),
    )
    write_atomically(place / "outcome.json", json.dumps(outcome.to_json(), indent=1).encode())
    (place / "seed").unlink()
    shutil.rmtree(place / "journal", ignore_errors=True)
    return outcome


def _seed(place: Path, n: int | None) -> str:
    """Returns the seed of the attempt: a new secret, or that of an attempt that was interrupted."""
    place.mkdir(parents=True, exist_ok=True)
    path, wanted = place / "seed", "all" if n is None else str(n)
    if path.is_file():
        of, _, seed = path.read_text("utf-8").partition(" ")
        if of == wanted and seed:
            return seed
    shutil.rmtree(place / "journal", ignore_errors=True)
    seed = secrets.token_hex(16)
    write_atomically(path, f"{wanted} {seed}".encode())
    return seed


def _ask(entry: Entry, sample: Sample, journal: Path, settings: Settings) -> dict[str, Any]:
    """Returns the reply of a process that loads and asks the model.

    Raises:
        BadInput: it cannot be loaded or asked here.
    """
    model = entry.results["model"]
    if is_local(model) and model["id"] not in DEMO_MODELS:
        raise BadInput("it is a local folder")
    verbs = _verbs(entry) if AGREEMENT in entry.run().stimuli else []
    request = {
        "model": model,
        "questions": [[*q.query, list(q.words), q.number] for q in sample.questions],
        "verbs": verbs,
        "top": LONGER * max(len(claim.top_words) for claim in sample.claims),
        "device": settings.device,
        "max_parameters": settings.max_parameters,
        "journal": str(journal),
    }
    reply = _exchange(request, settings.time_limit)
    if "problem" in reply:
        raise BadInput(reply["problem"])
    return reply


def _verbs(entry: Entry) -> list[tuple[str, str]]:
    from lmdiag import stimuli

    return stimuli.load_verbs(entry.benchmark.data, revision=entry.benchmark.revision)


def _exchange(request: Mapping[str, Any], time_limit: int) -> dict[str, Any]:
    """Runs the worker on one request.

    Raises:
        BadInput: it took too long, or ended without a reply.
    """
    from huggingface_hub import constants

    # A model without code of its own can still crash the process or take all of its memory.
    hub = {"HF_ENDPOINT": constants.ENDPOINT, "HF_HUB_CACHE": constants.HF_HUB_CACHE}
    try:
        done = subprocess.run(
            [sys.executable, "-m", "lmdiag.reproduction.worker"],
            input=json.dumps(request),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            env=os.environ | hub,
            timeout=time_limit,
            check=False,
        )
        return dict(json.loads(done.stdout))
    except subprocess.TimeoutExpired:
        raise BadInput(f"it took more than {time_limit} seconds") from None
    except ValueError:
        raise BadInput(
            f"the process that loaded it ended without an answer (exit status {done.returncode})"
        ) from None


def _compare(entry: Entry, sample: Sample, reply: Mapping[str, Any]) -> Outcome:
    model = entry.results["model"]
    answers = {
        (question.query, question.number): Answer.from_json(answer)
        for question, answer in zip(sample.questions, reply["answers"], strict=True)
    }
    difference = first_difference(model, reply["info"], sample.claims, answers)
    return Outcome(
        status="reproduced" if difference is None else "differs",
        detail=shorten(difference or ""),
        asked=len(sample.questions),
        of=sample.of,
        tolerance=tolerance(model),
        device=reply["device"],
        versions=reply["versions"],
    )
