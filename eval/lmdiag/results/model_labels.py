"""What a model is called, in tables, charts, items, analyses and comparisons alike."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import replace

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
    facts = [id_if_not_name(model), model.dtype, model.quantization]
    if model.server is not None:
        facts += [f"asked through {model.server}", "commit and precision not known"]
    elif model.commit:
        facts.append(f"commit {short_commit(model.commit)}")
    return ", ".join(fact for fact in facts if fact)


def model_name(model: ModelInfo) -> str:
    """Returns the name of a model: `--name`, else the last part of its id or path."""
    return model.name or _last_parts(model.id, 1)


def needs_no_context(model: ModelInfo) -> bool:
    """Returns whether a model is word frequencies, which tables show after all other models."""
    return model.id.startswith("frequency:")


def id_if_not_name(model: ModelInfo) -> str:
    """Returns the id of a model; "" where this is its name."""
    return model.id if model_name(model) != model.id else ""


def distinct_names(ids: Iterable[str]) -> dict[str, str]:
    """Returns id or path -> its last part, or as many last parts as tell it from the others.

    Word frequencies are `NO_CONTEXT`, with their language if there are several.

    >>> distinct_names(["openai-community/gpt2", "runs/a/tiny", "runs/b/tiny"])
    {'openai-community/gpt2': 'gpt2', 'runs/a/tiny': 'a/tiny', 'runs/b/tiny': 'b/tiny'}
    """
    names = {model_id: _last_parts(model_id, 1) for model_id in ids}
    most_parts = max((len(_parts(model_id)) for model_id in names), default=0)
    for n_parts in range(2, most_parts + 2):  # names that are still equal get one part more
        n_models = Counter(names.values())
        for model_id, name in names.items():
            if n_models[name] > 1:
                names[model_id] = _last_parts(model_id, n_parts)
    return names


def _last_parts(model_id: str, n: int) -> str:
    """Returns the last `n` parts of an id or path, e.g. `gpt2` of `openai-community/gpt2`.

    Of `ngram:FILE`, they are those of the file. Word frequencies, `frequency:en`, are `NO_CONTEXT`,
    and with n > 1 their language, too.
    """
    family, _, source = model_id.partition(":")
    if family == "frequency":
        return NO_CONTEXT if n == 1 else f"{NO_CONTEXT} ({source})"
    if family == "ngram":
        model_id = source
    return "/".join(_parts(model_id)[-n:]) or model_id


def _parts(model_id: str) -> list[str]:
    """Returns the parts of an id or path; the first part of an absolute path is ""."""
    return re.split(r"[/\\]", model_id.rstrip("/\\"))


def model_label(model: ModelInfo | None, query: QueryOptions | None = None, name: str = "") -> str:
    """Returns what a model is called, e.g. "gpt2@step100, layer 6".

    That is its name, see `model_name`, its revision if one was given, and the knobs of `query` that
    are a part of a name and not at their default.

    Args:
        model: None for one of which nothing is known.
        query: how it was asked; None to leave the knobs out.
        name: another name; "" for that of the model.
    """
    if model is None:
        return UNKNOWN_MODEL
    label = name or model_name(model)
    if model.revision:
        label += f"@{model.revision}"
    for knob in KNOBS.values():
        if query and knob.is_in_model_name and knob.is_changed(query):
            label += f", {knob.words(query)}"
    return label


def model_labels(
    models: Sequence[ModelInfo | None], asked: Sequence[QueryOptions] = ()
) -> list[str]:
    """Returns a label for each model: two are equal exactly if they are one model, asked alike.

    A model is identified by id, revision or commit, dtype, quantization and name. Of models whose
    ids end alike, labels have further parts of the ids; and those of other models with one name
    have in brackets the first fact that differs between them, and the next one if it is needed.

    Args:
        models: None for one of which nothing is known.
        asked: how each was asked, parallel; () where this is the same for all.
    """
    names = distinct_names(model.id for model in models if model and not model.name)
    queries = _with_last_layers(models, asked) or [None] * len(models)
    labels = []
    for model, query in zip(models, queries, strict=True):
        name = (model.name or names[model.id]) if model else ""
        labels.append(model_label(model, query, name))
    # a list for each fact, with a text for each model
    lists_of_facts = [
        [model.id if model and model.name else "" for model in models],
        _varied_choices(asked) or [""] * len(models),
    ]
    for field in ("dtype", "quantization", "server", "commit"):
        lists_of_facts.append(
            [short_commit(getattr(model, field) or "") if model else "" for model in models]
        )
    for facts in lists_of_facts:
        labels_with_facts = list(zip(labels, facts, strict=True))
        n_facts = Counter(label for label, _ in set(labels_with_facts))
        labels = [
            f"{label} ({fact})" if n_facts[label] > 1 and fact else label
            for label, fact in labels_with_facts
        ]
    return labels


def _varied_choices(asked: Sequence[QueryOptions]) -> list[str]:
    """Returns for each query the choices of the knobs that differ between queries, as text.

    Knobs that are a part of names are left out, and the choice "none" of a text not given.
    """
    knobs = [knob for knob in KNOBS.values() if not knob.is_in_model_name]
    varied_knobs = [knob for knob in knobs if len({knob.words(query) for query in asked}) > 1]
    texts = []
    for query in asked:
        choices = [knob.words(query) for knob in varied_knobs]
        texts.append(", ".join(choice for choice in choices if choice != "none"))
    return texts


def _with_last_layers(
    models: Sequence[ModelInfo | None], asked: Sequence[QueryOptions]
) -> Sequence[QueryOptions | None]:
    """Returns how each model was asked, with the number of its last layer instead of None.

    This is done where the same model also answers after an earlier layer, so that both are named.
    """

    def key(model: ModelInfo) -> tuple[str, str | None, str | None]:
        """Returns what two entries of one model have in common."""
        return model.id, model.revision, model.name

    pairs = [*zip(models, asked, strict=False)]  # `asked` may be ()
    with_inner_layers = {key(model) for model, query in pairs if model and query.layer is not None}
    queries = []
    for model, query in pairs:
        if model and query.layer is None and key(model) in with_inner_layers:
            query = replace(query, layer=model.n_layers)
        queries.append(query)
    return queries
