"""What a model is called, in tables, charts, items, analyses and comparisons alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import compress

from lmdiag.asking.protocol import KNOBS, QueryOptions
from lmdiag.types import ModelInfo

UNKNOWN_MODEL = "unknown model"
"""The model of predictions that another program made."""

NO_CONTEXT = "word frequency, no context"
"""The beginning of the labels of word frequencies, which charts show in grey."""


def short_commit(commit: str) -> str:
    """Returns the beginning of a commit, or of the checksum of a local folder."""
    return commit.removeprefix("sha256:")[:12]


def weights_text(model: ModelInfo) -> str:
    """Returns what identifies the weights: id (where it is not the name), precision and commit."""
    facts = [own_id(model), model.dtype, model.quantization]
    if model.server is not None:
        facts += [f"asked through {model.server}", "commit and precision not known"]
    elif model.commit:
        facts.append(f"commit {short_commit(model.commit)}")
    return ", ".join(fact for fact in facts if fact)


def model_name(model: ModelInfo) -> str:
    """Returns the name of a model: `--name`, else the last part of its id or path."""
    return model.name or _last_parts(model.id, 1)


def needs_no_context(model: ModelInfo) -> bool:
    """Returns whether a model has the frequencies of words: it stands after all other models."""
    return model.id.startswith("frequency:")


def own_id(model: ModelInfo) -> str:
    """Returns the id of a model; "" where this is its name."""
    return model.id if model_name(model) != model.id else ""


def distinct_names(ids: Iterable[str]) -> dict[str, str]:
    """Returns the last part of each id or path; of those that end alike, as many as differ.

    Word frequencies are called what they are.

    >>> distinct_names(["openai-community/gpt2", "runs/a/tiny", "runs/b/tiny"])
    {'openai-community/gpt2': 'gpt2', 'runs/a/tiny': 'a/tiny', 'runs/b/tiny': 'b/tiny'}
    """
    names = {model_id: _last_parts(model_id, 1) for model_id in ids}
    for n_parts in range(2, 2 + max((len(_parts(model_id)) for model_id in names), default=0)):
        counts = Counter(names.values())
        longer = {key: _last_parts(key, n_parts) for key, name in names.items() if counts[name] > 1}
        names |= longer
    return names


def _last_parts(model_id: str, n: int) -> str:
    """Returns the last `n` parts of an id or path; word frequencies have words instead."""
    family, _, source = model_id.partition(":")
    if family == "frequency":
        return NO_CONTEXT if n == 1 else f"{NO_CONTEXT} ({source})"
    if family == "ngram":
        model_id = source
    return "/".join(_parts(model_id)[-n:]) or model_id


def _parts(model_id: str) -> list[str]:
    """The parts of an id or path; those of a whole path begin with an empty one."""
    return re.split(r"[/\\]", model_id.rstrip("/\\"))


def model_label(model: ModelInfo | None, query: QueryOptions | None = None, name: str = "") -> str:
    """Returns the name of a model, see `model_name`, with the revision if one was given.

    After it stand the knobs that are a part of the name, of how it was asked: "gpt2, layer 6".
    `name` takes the place of that of the model.
    """
    if model is None:
        return UNKNOWN_MODEL
    label = f"{name or model_name(model)}{f'@{model.revision}' if model.revision else ''}"
    knobs_in_name = [
        knob for knob in KNOBS.values() if query and knob.named and knob.is_changed(query)
    ]
    return ", ".join([label, *(knob.words(query) for knob in knobs_in_name if query)])


def model_labels(
    models: Sequence[ModelInfo | None], asked: Sequence[QueryOptions] = ()
) -> list[str]:
    """Returns a label for each model: two are equal exactly if they are one model, asked alike.

    A model is identified by id, revision or commit, dtype, quantization and name. Of models whose
    ids end alike, labels have further parts of the ids, and of others with one name, in brackets,
    what the others have otherwise.

    Args:
        models: None for one of which nothing is known.
        asked: how each was asked, parallel; () where this is the same for all.
    """
    knobs = [knob for knob in KNOBS.values() if not knob.named]
    choices = [[knob.words(query) for knob in knobs] for query in asked]
    is_varied = [len(set(column)) > 1 for column in zip(*choices, strict=True)]
    facts_of = [
        [model.id if model and model.name else "" for model in models],
        [_in_brackets(compress(chosen, is_varied)) for chosen in choices] or [""] * len(models),
        *(
            [short_commit(getattr(model, name) or "") if model else "" for model in models]
            for name in ("dtype", "quantization", "server", "commit")
        ),
    ]
    names = distinct_names(model.id for model in models if model and not model.name)
    queries = _with_last_layers(models, asked) or [None] * len(models)
    labels = [
        model_label(model, query, "" if model is None else model.name or names[model.id])
        for model, query in zip(models, queries, strict=True)
    ]
    for facts in facts_of:
        n_facts = Counter(label for label, _ in {*zip(labels, facts, strict=True)})
        labels = [
            f"{label} ({fact})" if n_facts[label] > 1 and fact else label
            for label, fact in zip(labels, facts, strict=True)
        ]
    return labels


def _with_last_layers(
    models: Sequence[ModelInfo | None], asked: Sequence[QueryOptions]
) -> Sequence[QueryOptions | None]:
    """Returns how each model was asked, with the number of its last layer instead of None.

    This is done where the same model also answers after an earlier layer, so that both are named.
    """
    pairs = [*zip(models, asked, strict=False)]
    models_with_layers = {
        (model.id, model.revision, model.name)
        for model, query in pairs
        if model and query.layer is not None
    }
    return [
        replace(query, layer=model.n_layers)
        if model
        and query.layer is None
        and (model.id, model.revision, model.name) in models_with_layers
        else query
        for model, query in pairs
    ]


def _in_brackets(choices: Iterable[str]) -> str:
    """Returns the choices of knobs in a label; "none", a text that is not given, is left out."""
    return ", ".join(choice for choice in choices if choice != "none")
