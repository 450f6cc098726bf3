"""What a model is called, in tables, charts, items, analyses and comparisons alike."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import compress

from lmdiag.protocol import KNOBS, QueryOptions
from lmdiag.types import ModelInfo

UNKNOWN_MODEL = "unknown model"
"""The model of predictions that another program made."""


def short_commit(commit: str) -> str:
    """Returns the beginning of a commit, or of the checksum of a local folder."""
    return commit.removeprefix("sha256:")[:12]


def weights_text(model: ModelInfo) -> str:
    """Returns what identifies the weights: precision and commit, and the id of a named model."""
    facts = [model.id if model.name else "", model.dtype, model.quantization]
    if model.server is not None:
        facts += [f"asked through {model.server}", "commit and precision not known"]
    elif model.commit:
        facts.append(f"commit {short_commit(model.commit)}")
    return ", ".join(fact for fact in facts if fact)


def model_label(model: ModelInfo | None, asked: QueryOptions | None = None) -> str:
    """Returns the name of a model (`--name`, else its id), with the revision if one was given.

    After it stand the knobs that are a part of the name, of how it was asked: "gpt2, layer 6".
    """
    if model is None:
        return UNKNOWN_MODEL
    name = f"{model.name or model.id}{f'@{model.revision}' if model.revision else ''}"
    named = [knob for knob in KNOBS.values() if asked and knob.named and knob.is_changed(asked)]
    return ", ".join([name, *(knob.words(asked) for knob in named if asked)])


def model_labels(
    models: Sequence[ModelInfo | None], asked: Sequence[QueryOptions] = ()
) -> list[str]:
    """Returns a label for each model: two are equal exactly if they are one model, asked alike.

    A model is identified by id, revision or commit, dtype, quantization and name. A label has, in
    brackets, what the others of the same name have otherwise.

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
    queries: Sequence[QueryOptions | None] = asked or [None] * len(models)
    labels = [*map(model_label, models, queries)]
    for facts in facts_of:
        n_facts = Counter(label for label, _ in {*zip(labels, facts, strict=True)})
        labels = [
            f"{label} ({fact})" if n_facts[label] > 1 and fact else label
            for label, fact in zip(labels, facts, strict=True)
        ]
    return labels


def _in_brackets(choices: Iterable[str]) -> str:
    """The values of knobs in a label, without the texts that are not there."""
    return ", ".join(choice for choice in choices if choice != "none")
