"""What makes two runs comparable, and the names of the directories of runs."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from lmdiag import __version__
from lmdiag.asking.protocol import INSTRUCTION, KNOBS, Knob, Protocol, text_digest
from lmdiag.asking.training_steps import trained_model
from lmdiag.files.reading import is_folder, real_path, user_path
from lmdiag.files.secrets import without_secrets
from lmdiag.text import change_texts
from lmdiag.types import DIAGNOSTICS, ModelInfo


def signature(
    protocol: Protocol,
    fingerprint: str,
    *,
    run: int = 0,
    asks_words: bool = True,
    model: ModelInfo | None = None,
) -> str:
    """Returns the line that makes two runs comparable exactly when `comparable_part` is equal.

    Options that not every run has are left out at their default; otherwise each adds a key.

    Args:
        protocol: what was asked, and how it is scored.
        fingerprint: of the data.
        run: number of the shuffle, for a single one; 0 for the first, or for all of a run.
        asks_words: whether any of the data asks for words at a blank; top words, threshold and
            shuffles cannot move the numbers of whole sentences.
        model: that answered; it is named if it is a model of word counts.

    >>> signature(Protocol(), "1a2b3c4d")
    'lmdiag:0.2|data:1a2b3c4d|unit:token|k:1,5|t:0.01|shuf:100|seed:0'
    """
    parts = {
        "lmdiag": ".".join(__version__.split(".")[:2]),
        "data": fingerprint,
        "unit": protocol.unit,
        "k": ",".join(map(str, protocol.k)) if asks_words else None,
        "t": f"{protocol.threshold:g}" if asks_words else None,
        "shuf": protocol.shuffles if asks_words else None,
        "seed": protocol.seed,
        "perturb": "+".join(protocol.perturb) or None,
        **{knob.key: knob.in_signature(protocol) for knob in _changed_knobs(protocol)},
        # "sample" distinguishes these runs from runs of versions that took the first rows
        "limit": protocol.limit and f"sample{protocol.limit}",
        "verbs": protocol.verbs,
        "run": run or None,
        "model": _model_of_word_counts(model) if model else None,
    }
    return "|".join(f"{key}:{value}" for key, value in parts.items() if value is not None)


def _model_of_word_counts(model: ModelInfo) -> str | None:
    """What names a model of word counts: its language, or the name and the digest of its file."""
    if not model.counts_words:
        return None
    family, _, source = model.id.partition(":")
    if family == "frequency":
        return model.id
    digest = model.commit.removeprefix("sha256:")[:8]
    return f"{family}:{re.sub(_UNSAFE, '--', Path(source).name)}@{digest}"


def comparable_part(text: str) -> str:
    """Returns the part of a signature that is equal for two results that can be compared.

    That is all but `model:` at its end, which tells what answered, not what was asked.

    >>> comparable_part("lmdiag:0.2|data:1a2b3c4d|unit:token|model:frequency:en")
    'lmdiag:0.2|data:1a2b3c4d|unit:token'
    """
    return text.partition("|model:")[0]


def cited_signatures(texts: Iterable[str]) -> list[str]:
    """Returns what `cited_signature` gives of each, and one for all that can be compared."""
    groups: dict[str, set[str]] = {}
    for text in map(cited_signature, texts):
        groups.setdefault(comparable_part(text), set()).add(text)
    return [part if len(group) > 1 else group.pop() for part, group in groups.items()]


def cited_signature(text: str) -> str:
    """Returns a signature as tables, pages and papers show it: without what decided nothing.

    Those are the number of shuffles and the seed where nothing was shuffled or drawn.

    >>> cited_signature("lmdiag:0.2|data:1a2b3c4d|unit:token|k:1,5|t:0.01|shuf:100|seed:0")
    'lmdiag:0.2|data:1a2b3c4d|unit:token|k:1,5|t:0.01'
    """
    parts = text.split("|")
    is_shuffled = any(part.startswith("perturb:") and "shuf" in part for part in parts)
    is_drawn = is_shuffled or any(part.startswith("limit:") for part in parts)
    if not is_shuffled:
        parts = [part for part in parts if not part.startswith("shuf:")]
    if not is_drawn:
        parts = [part for part in parts if not part.startswith("seed:")]
    return "|".join(parts)


def combine(fingerprints: Mapping[str, str]) -> str:
    """Returns the fingerprint of several tasks' data; of a single task, its own."""
    if len(fingerprints) == 1:
        [fingerprint] = fingerprints.values()
        return fingerprint
    return text_digest(
        "\n".join(f"{task}:{fingerprint}" for task, fingerprint in sorted(fingerprints.items()))
    )


_UNSAFE = r"[^A-Za-z0-9._+-]+"
"""Characters that do not stand in names of folders."""

_DEVICE = r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)"
"""Beginnings of names that no file or folder has on Windows."""


def model_slug(model_id: str, revision: str | None, name: str | None = None) -> str:
    """Returns the folder name of a model; `name` (`--name`) takes the place of the id.

    `org/name` becomes org--name, and so does a relative path of a local folder. Of an absolute path
    it is the last name, with the folder above it where the last name is only a training step.
    """
    family, _, file = model_id.partition(":")
    if family == "ngram" and Path(user_path(file)).is_absolute():
        model_id = f"{family}:{Path(file).name}"
    text = name or model_id
    folder = user_path(model_id)
    if name is None and is_folder(folder):
        path = Path(os.path.normpath(folder))
        text = str(path)
        if path.is_absolute() or path.parts[:1] in ((), ("..",)):
            path = real_path(path)
            is_step = trained_model(str(path), None) == str(path.parent)
            text = "/".join(path.parts[-2:]) if is_step else path.name
    slug = re.sub(_UNSAFE, "--", text).strip("-.") or "model"
    if revision is not None:
        slug = f"{slug}@{re.sub(_UNSAFE, '--', revision)}"
    return f"_{slug}" if re.match(_DEVICE, slug) else slug


def run_folder(folder: Path, protocol: Protocol) -> Path:
    """Returns the directory of a run; one of an earlier version has a digest of `chat`."""
    path = folder / protocol_slug(protocol)
    earlier = folder / protocol_slug(protocol, has_digests=True)
    return earlier if earlier.exists() and not path.exists() else path


def protocol_slug(protocol: Protocol, *, has_digests: bool = False) -> str:
    """Returns the folder name of a protocol: tasks and unit, then options that are not defaults.

    Texts have a digest; that of a chat template only with another instruction than the usual one,
    or with `has_digests`.

    >>> protocol_slug(Protocol()), protocol_slug(Protocol(prompt="U: {context}", chat=True))
    ('diagnostics-token', 'diagnostics-token-chat')
    """
    tasks = "diagnostics" if protocol.tasks == DIAGNOSTICS else "+".join(protocol.tasks)
    if len(tasks) > 100:
        tasks = f"{len(protocol.tasks)}tasks+{text_digest(tasks)}"
    parts = [tasks, protocol.unit, *filter(None, ["+".join(protocol.perturb)])]
    for name in ("shuffles", "seed", "k", "threshold", "limit", "verbs"):
        value = getattr(protocol, name)
        if value != getattr(Protocol(), name):
            parts.append(f"{name}{'+'.join(map(str, value)) if name == 'k' else value}")
    for knob in _changed_knobs(protocol):
        has_template = knob.has_template(protocol)
        is_usual = has_template and protocol.instruction in ("", INSTRUCTION)
        name = knob.template if has_template else knob.key
        value = "" if is_usual and not has_digests else knob.in_signature(protocol)
        parts.append(f"{name}{value}")
    return "-".join(parts)


def _changed_knobs(protocol: Protocol) -> list[Knob]:
    """The changed knobs, without `unit`, which every signature and folder name has."""
    return [knob for key, knob in KNOBS.items() if key != "unit" and knob.is_changed(protocol)]


def identity(
    info: ModelInfo, protocol: Protocol, fingerprint: str, *, asks_words: bool = True
) -> dict[str, Any]:
    """Returns what must be equal for two runs to share a directory: what decides the numbers."""
    facts: dict[str, Any] = {"model": info.id}
    facts |= {name: getattr(info, name) for name in ("commit", "kind", "dtype", "quantization")}
    # without `model:`: the model and its commit stand above
    facts["signature"] = signature(protocol, fingerprint, asks_words=asks_words)
    if info.server is not None:  # nothing else tells two servers' models of one name apart
        facts |= {"server": info.server, "tokenizer": info.tokenizer}
    if protocol.entropy:  # not False without: a run with entropies is also one without
        facts["entropy"] = "yes"
    return {key: change_texts(value, without_secrets) for key, value in facts.items()}
