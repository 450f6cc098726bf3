"""Asks a model for the surprisals of the words of a table of human measures."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from lmdiag.analysis.human import SurprisalSource
from lmdiag.controls import text_warning
from lmdiag.files import write_atomically
from lmdiag.results import model_slug
from lmdiag.runs.journal import Journal
from lmdiag.runs.surprisals import word_surprisals

if TYPE_CHECKING:
    from lmdiag.analysis.human import HumanTable
    from lmdiag.models import LoadOptions, Model


def ask_about_words(
    model: Model,
    options: LoadOptions,
    table: HumanTable,
    *,
    output: Path | None = None,
    batch_size: int | None = None,
    label: str | None = None,
) -> SurprisalSource:
    """Returns the surprisals of the words of a table, in the units of the procedure.

    The words of each text, joined by blanks, are what the model reads.

    Args:
        model: a masked or a causal model.
        options: how it was loaded.
        table: the rows, and which columns place them.
        output: folder that keeps answers, so that an interrupted run resumes and a finished one is
            not asked again; None to keep nothing.
        batch_size, label: see `word_surprisals`.

    Raises:
        BadInput: the procedure names no column of words, a word has a blank, or the model cannot
            score texts.
    """
    texts = table.running_texts()
    info = model.info
    facts = [info.id, info.commit, info.dtype, str(info.quantization), str(info.server)]
    facts += [options.unit, str(options.bos), str(options.pll), *texts.values()]
    identity = json.dumps(facts)
    name = f"words-{hashlib.sha256(identity.encode()).hexdigest()[:12]}"
    folder = output and output / model_slug(info.id, info.revision, info.name) / name
    file = folder and folder / "surprisals.json"
    if file and file.is_file():
        asked = json.loads(file.read_text("utf-8"))
    else:
        journal = Journal(folder / "journal", owner=identity) if folder else None
        rows = word_surprisals(
            model, [*texts.values()], batch_size=batch_size, journal=journal, label=label
        )
        asked = [row.surprisal for row in rows]
        if folder and file:
            folder.mkdir(parents=True, exist_ok=True)
            write_atomically(file, json.dumps(asked).encode())
            shutil.rmtree(folder / "journal", ignore_errors=True)
    in_units = math.log(2) if table.procedure.units == "nats" else 1.0
    values = np.array([math.nan if bits is None else bits * in_units for bits in asked])
    warning = text_warning(model, {f"text {name}": text for name, text in texts.items()}, "text")
    return SurprisalSource(info.name or info.id, values[table.word], note=warning or "")
