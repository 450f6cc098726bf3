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
    """Returns the first 12 digits of a commit, or of the checksum of a local folder.

    >>> short_commit("sha256:0123456789abcdef")
    '0123456789ab'
    """
    return commit.removeprefix("sha256:")[:12]


def weights_text(model: ModelInfo) -> str:
    """Returns what identifies the weights of a model: id, precision and commit.

    For example "openai-community/gpt2, float32, commit 607a30d783df". The id is left out if it is
    the name of the model, which stands beside this text.
    """
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
    # Names that are still equal get one part more. The last number is one above that of the parts:
    # "frequency:en" is a single part, and has its language as the second one.
    for n_parts in range(2, most_parts + 2):
        n_models = Counter(names.values())
        for model_id, name in names.items():
            if n_models[name] > 1:
                names[model_id] = _last_parts(model_id, n_parts)
    return names


def _last_parts(model_id: str, n: int) -> str:
    """Returns the last `n` parts of an id or path; of `ngram:FILE`, those of the file.

    Word frequencies have a name in words, and with n > 1 also their language.

    >>> _last_parts("runs/a/tiny", 2), _last_parts("ngram:data/books.arpa", 1)
    ('a/tiny', 'books.arpa')
    >>> _last_parts("frequency:en", 1), _last_parts("frequency:en", 2)
    ('word frequency, no context', 'word frequency, no context (en)')
    """
    family, _, source = model_id.partition(":")
    if family == "frequency":
        return NO_CONTEXT if n == 1 else f"{NO_CONTEXT} ({source})"
    if family == "ngram":
        model_id = source
    return "/".join(_parts(model_id)[-n:]) or model_id


def _parts(model_id: str) -> list[str]:
    """Returns the parts of an id or path; the first part of an absolute path is "".

    >>> _parts("openai-community/gpt2"), _parts("/models/tiny/")
    (['openai-community', 'gpt2'], ['', 'models', 'tiny'])
    """
    return re.split(r"[/\\]", model_id.rstrip("/\\"))


def model_label(model: ModelInfo | None, query: QueryOptions | None = None, name: str = "") -> str:
    """Returns what a model is called, e.g. "gpt2@step100, layer 6".

    A label has the name of the model, its revision if the user gave one, and the layer if it is not
    the last one.

    Args:
        model: None for a model of which nothing is known.
        query: how the model was asked, for the layer; None to leave it out.
        name: another name; "" for the name of the model, see `model_name`.
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

    If ids end alike, labels have further parts of them: "a/tiny" and "b/tiny". If labels are still
    equal, they get a fact in brackets that differs, as "gpt2 (float16)" and "gpt2 (float32)", and
    then a further one if that is needed. The facts are, in this order: the id of a model with a
    name, the options by which it was asked, dtype, quantization, server and commit.

    Args:
        models: None for a model of which nothing is known.
        asked: how each model was asked, in the same order; () if this is the same for all.
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
    """Returns for each query a text with the values of the knobs that differ between queries.

    For example, ["token, always", "word, always", "word, never"] if `unit` and `bos` differ. The
    layer, which labels have anyway, is left out, and so is "none", the value of a text that is not
    given.
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

    This is done for a model that also answers after an earlier layer. So its labels are "gpt2,
    layer 6" and "gpt2, layer 12", and not "gpt2, layer 6" and "gpt2".
    """

    def key(model: ModelInfo) -> tuple[str, str | None, str | None]:
        """Returns what two entries of one model have in common."""
        return model.id, model.revision, model.name

    pairs = [*zip(models, asked, strict=False)]  # `asked` may be (): then the result is []
    with_inner_layers = {key(model) for model, query in pairs if model and query.layer is not None}
    queries = []
    for model, query in pairs:
        if model and query.layer is None and key(model) in with_inner_layers:
            query = replace(query, layer=model.n_layers)
        queries.append(query)
    return queries
