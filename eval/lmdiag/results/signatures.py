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
    """Returns the name of a model of word counts in signatures; None for other models.

    For example "frequency:en", or "ngram:books.arpa@1a2b3c4d" with the beginning of the digest of
    the file.
    """
    if not model.counts_words:
        return None
    family, _, source = model.id.partition(":")
    if family == "frequency":
        return model.id
    file_name = re.sub(_UNSAFE, "--", Path(source).name)
    digest = model.commit.removeprefix("sha256:")[:8]
    return f"{family}:{file_name}@{digest}"


def comparable_part(text: str) -> str:
    """Returns the part of a signature that is equal for two results that can be compared.

    That is all but `model:` at its end, which tells what answered, not what was asked.

    >>> comparable_part("lmdiag:0.2|data:1a2b3c4d|unit:token|model:frequency:en")
    'lmdiag:0.2|data:1a2b3c4d|unit:token'
    """
    return text.partition("|model:")[0]


def cited_signatures(texts: Iterable[str]) -> list[str]:
    """Returns the distinct signatures as `cited_signature` shows them.

    Signatures that differ only in the model at their end are shown once, without the model.

    >>> cited_signatures(["lmdiag:0.2|data:1a2b|model:frequency:en", "lmdiag:0.2|data:1a2b"])
    ['lmdiag:0.2|data:1a2b']
    """
    groups: dict[str, set[str]] = {}
    for text in texts:
        cited = cited_signature(text)
        groups.setdefault(comparable_part(cited), set()).add(cited)
    return [part if len(group) > 1 else group.pop() for part, group in groups.items()]


def cited_signature(text: str) -> str:
    """Returns a signature as tables, pages and papers show it, without options that had no effect.

    The number of shuffles is left out if nothing was shuffled, and the seed if nothing was shuffled
    and no sample was drawn.

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


def combined_fingerprint(fingerprints: Mapping[str, str]) -> str:
    """Returns one fingerprint for the data of several tasks, as eight hexadecimal digits.

    The fingerprint of a single task stays as it is.

    Args:
        fingerprints: task -> fingerprint of its data.

    >>> combined_fingerprint({"role88": "1a2b3c4d"})
    '1a2b3c4d'
    """
    if len(fingerprints) == 1:
        [fingerprint] = fingerprints.values()
        return fingerprint
    lines = [f"{task}:{fingerprint}" for task, fingerprint in sorted(fingerprints.items())]
    return text_digest("\n".join(lines))


_UNSAFE = r"[^A-Za-z0-9._+-]+"
"""Characters that do not stand in names of folders."""

_DEVICE = r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\.|$)"
"""Beginnings of names that no file or folder has on Windows."""


def model_slug(model_id: str, revision: str | None, name: str | None = None) -> str:
    """Returns the folder name of a model, which is safe on every system.

    Of a local folder with an absolute path, or with one that begins with "..", only the last name
    is used, or the last two if the last one is only a training step, as "checkpoint-500".

    Args:
        model_id: Hub id, path of a local folder, `demo:causal`, `frequency:en` or `ngram:FILE`.
        revision: branch, tag or commit; None for the default.
        name: what the user calls the model (`--name`), in place of the id; None for the id.

    >>> model_slug("openai-community/gpt2", None), model_slug("demo:causal", "step10")
    ('openai-community--gpt2', 'demo--causal@step10')
    """
    family, _, file = model_id.partition(":")
    if family == "ngram" and Path(user_path(file)).is_absolute():
        model_id = f"{family}:{Path(file).name}"
    text = name or model_id
    folder = user_path(model_id)
    if name is None and is_folder(folder):
        path = Path(os.path.normpath(folder))
        text = str(path)
        is_outside = path.parts[:1] in ((), ("..",))  # ".", "..", "../model"
        if path.is_absolute() or is_outside:
            path = real_path(path)
            is_training_step = trained_model(str(path), None) == str(path.parent)
            text = "/".join(path.parts[-2:]) if is_training_step else path.name
    slug = re.sub(_UNSAFE, "--", text).strip("-.") or "model"
    if revision is not None:
        safe_revision = re.sub(_UNSAFE, "--", revision)
        slug = f"{slug}@{safe_revision}"
    return f"_{slug}" if re.match(_DEVICE, slug) else slug


def run_folder(folder: Path, protocol: Protocol) -> Path:
    """Returns the directory of the run of a protocol, in the folder of a model.

    A run of an earlier version, whose name has a digest of the chat template, keeps its directory.
    """
    path = folder / protocol_slug(protocol)
    earlier_path = folder / protocol_slug(protocol, has_digests=True)
    return earlier_path if earlier_path.exists() and not path.exists() else path


def protocol_slug(protocol: Protocol, *, has_digests: bool = False) -> str:
    """Returns the folder name of a protocol: tasks and unit, then options that are not defaults.

    A text of the user stands in the name as a digest. The text of a chat template stands there as
    "chat" alone, and with a digest only if its instruction is not the default one.

    Args:
        protocol: how the model is asked.
        has_digests: give every chat template a digest, as earlier versions did.

    >>> protocol_slug(Protocol()), protocol_slug(Protocol(prompt="U: {context}", chat=True))
    ('diagnostics-token', 'diagnostics-token-chat')
    """
    tasks = "diagnostics" if protocol.tasks == DIAGNOSTICS else "+".join(protocol.tasks)
    if len(tasks) > 100:  # file systems allow names of 255 bytes
        tasks = f"{len(protocol.tasks)}tasks+{text_digest(tasks)}"
    parts = [tasks, protocol.unit]
    if protocol.perturb:
        parts.append("+".join(protocol.perturb))
    for name in ("shuffles", "seed", "k", "threshold", "limit", "verbs"):
        value = getattr(protocol, name)
        if value != getattr(Protocol(), name):
            text = "+".join(map(str, value)) if name == "k" else str(value)
            parts.append(f"{name}{text}")
    for knob in _changed_knobs(protocol):
        # a chat template with the default instruction is named by a word without a digest
        has_template = knob.has_template(protocol)
        is_usual = has_template and protocol.instruction in ("", INSTRUCTION)
        name = knob.template if has_template else knob.key
        digest = "" if is_usual and not has_digests else knob.in_signature(protocol)
        parts.append(f"{name}{digest}")
    return "-".join(parts)


def _changed_knobs(protocol: Protocol) -> list[Knob]:
    """Returns the knobs that are not at their default.

    `unit` is left out, since callers always write it.
    """
    return [knob for key, knob in KNOBS.items() if key != "unit" and knob.is_changed(protocol)]


def identity(
    info: ModelInfo, protocol: Protocol, fingerprint: str, *, asks_words: bool = True
) -> dict[str, Any]:
    """Returns the facts that two runs must have in common to share a directory.

    These facts decide the numbers of a run. A run is refused in a directory whose run lacks one of
    its facts; further facts of the run in the directory do not matter.

    Args:
        info: of the model.
        protocol: what is asked, and how it is scored.
        fingerprint: of the data.
        asks_words: whether the rows ask for words at a blank, and not for whole sentences.

    Returns:
        model, commit, kind, dtype, quantization and signature; of a model behind a server also
        server and tokenizer; with entropies also entropy.
    """
    facts: dict[str, Any] = {"model": info.id}
    for name in ("commit", "kind", "dtype", "quantization"):
        facts[name] = getattr(info, name)
    # the signature is made without a model, which the facts above name already
    facts["signature"] = signature(protocol, fingerprint, asks_words=asks_words)
    if info.server is not None:  # nothing else tells two servers' models of one name apart
        facts |= {"server": info.server, "tokenizer": info.tokenizer}
    # Without entropies, the key is absent, and not "no": a directory with entropies then also
    # serves a run that does not need them. A directory without them refuses a run that does.
    if protocol.entropy:
        facts["entropy"] = "yes"
    return {key: change_texts(value, without_secrets) for key, value in facts.items()}
