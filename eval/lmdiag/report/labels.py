"""Names of measures, models and commits as readers see them; checkpoints of one model."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Literal, NamedTuple

from lmdiag.asking.protocol import KNOBS, Protocol, QueryOptions, ScoringOptions, bos_remark
from lmdiag.asking.training_steps import trained_model
from lmdiag.measures import match_rule
from lmdiag.report import numbers
from lmdiag.report.output import Fact
from lmdiag.results import Results
from lmdiag.results.model_labels import (
    distinct_names,
    id_if_not_name,
    model_label,
    model_labels,
    needs_no_context,
    short_commit,
)
from lmdiag.studies.comparison import differing_knobs
from lmdiag.text import shortened, visible
from lmdiag.types import ModelInfo

# ---- models --------------------------------------------------------------------------------------


def model_facts(model: ModelInfo) -> list[str]:
    """Returns what a model is, in a few words each; of a server's model, what is known."""
    if model.server is not None:
        identity = id_if_not_name(model), model.kind, f"asked through {model.server}"
        return [*filter(None, identity), "commit and precision not known"]
    if model.counts_words:
        words = f"{numbers.count(model.vocab_size)} words"
        return [
            id_if_not_name(model),
            model.architecture,
            words,
            f"commit {short_commit(model.commit)}",
        ]
    size = f"{numbers.count(model.n_parameters)} parameters"
    commit = short_commit(model.commit)
    facts = (
        id_if_not_name(model),
        model.kind,
        size,
        model.dtype,
        model.quantization,
        f"commit {commit}",
    )
    return [fact for fact in facts if fact]


def model_fact(results: Results) -> Fact:
    """Returns what was asked of which model."""
    model = results.model
    *facts, commit = model_facts(model)
    facts = [*facts, "cased" if model.cased else "uncased", commit]
    source = f"data {results.data.source} · {results.n_contexts} {asked(results)}"
    framing_texts = framing_facts(results.protocol).items()
    framing = " · ".join(f"{name} {shortened(text, 80)}" for name, text in framing_texts)
    lines = (" · ".join(facts), source, framing, *remarks_on_model(results))
    return Fact(visible(model_label(model)), [line for line in lines if line])


def asked(results: Results) -> str:
    """Returns what models are asked: `contexts`, `sentences` or, of choices, `questions`."""
    if results.protocol.elicitation == "choice":
        return "questions"
    asks = {results.diagnostic(task).asks for task in results.tasks}
    return "sentences" if asks == {"sentence"} else "contexts"


def framing_facts(protocol: Protocol) -> dict[str, str]:
    """Returns what the contexts of a run were put into and how they were changed: name -> text.

    >>> framing_facts(Protocol(prompt="Complete: {context}", final_period="never"))
    {'prompt': 'Complete: {context}', 'final period': 'never'}
    """
    facts = {"instruction": protocol.instruction} if protocol.instruction else {}
    for option, knob in KNOBS.items():
        if knob.is_changed(protocol) and knob.name not in vars(ScoringOptions()):
            name = f"{knob.template} template" if knob.has_template(protocol) else option
            facts[name.replace("-", " ")] = getattr(protocol, knob.name).replace("\n", "⏎")
    return {name: visible(text) for name, text in facts.items()}


def remarks_on_model(results: Results) -> list[str]:
    """Returns what `bos_remark` says of a run, and what looks wrong in the model's files."""
    asks = "sentence" if asked(results) == "sentences" else "word"
    remark = bos_remark(results.protocol, results.model, asks)
    return [visible(line) for line in (remark, *results.model_warnings) if line]


def run_facts(results: Results) -> dict[str, str]:
    """Returns how a run was made, for the section on the method: name -> text."""
    model = results.model
    protocol = results.protocol
    data = results.data
    revision = f" at {data.revision[:12]}" if data.revision else ""
    rows = ", ".join(f"{task} {facts.n}" for task, facts in data.tasks.items())
    sample = f"; a sample, --limit {protocol.limit}" if protocol.limit else ""
    question_noun = asked(results)
    facts_on_scoring = {"sentences": _sentence_facts, "questions": _choice_facts}.get(
        question_noun, _blank_facts
    )
    seconds = results.seconds.get("ask", 0)
    n = results.device.processes
    device = f"{results.device.name}, {n} process{'es' if n > 1 else ''}"
    return {
        "Model": f"{model.id} ({model.architecture}, {model.tokenizer})",
        "Commit": f"not known: asked through {model.server}" if model.server else model.commit,
        "Data": f"{data.source}{revision}, fingerprint {data.fingerprint}",
        "Rows": f"{rows}{sample}",
        **facts_on_scoring(results),
        "Cost": f"{results.n_contexts} {question_noun} in {seconds:.0f} s on {device}",
        "Versions": ", ".join(map(" ".join, results.versions.items())),
        "Finished": results.finished,
    }


def _sentence_facts(results: Results) -> dict[str, str]:
    """Returns in words how the probability of a sentence is computed: name -> text."""
    model = results.model
    protocol = results.protocol
    if model.counts_words:
        probability = _word_count_probability(model)
    elif model.kind in ("masked", "mntp"):
        probability = "pseudo-log-likelihood of each word: each of its tokens is masked in turn"
        if protocol.pll == "within-word":
            probability += ", together with the later tokens of the word"
        if model.kind == "mntp":
            probability += "; read one place before it"
    else:
        probability = "of each word of a sentence, given all before it"
        if protocol.unit == "word":
            probability += ", with the correction at its boundary"
        probability += f"; {_bos_text(model.sentence_bos)}"
        if not model.sentence_bos:
            probability += ", so that the first word has none"
    units = "in bits, summed over the tokens of a word, a region or a sentence"
    return {"Probability": probability, "Surprisal": units}


def _choice_facts(results: Results) -> dict[str, str]:
    """Returns in words what the share of an option is: name -> text."""
    share = "probability of the label of an option over that of all labels, after the question; "
    share += "a geometric mean over the orders of the options"
    sensitivity = "the good option has the largest share; equal shares count as not"
    return {"Share": share, **_framing_facts(results.protocol), "Sensitivity": sensitivity}


def _blank_facts(results: Results) -> dict[str, str]:
    """Returns in words how words at blanks are scored, and how answers are: name -> text."""
    model = results.model
    protocol = results.protocol
    probability = "of the word over the whole vocabulary, token by token"
    if protocol.unit == "word":
        probability = "of the complete word, with the correction at its boundary"
    if model.kind == "mntp":
        probability += "; read one place before the mask"
    if model.kind == "causal" and (model.bos or not model.server):
        probability += f"; {_bos_text(model.bos)}"
    if model.counts_words:
        probability = _word_count_probability(model)
    rule = match_rule(model.word_folds)
    if model.word_folds:
        rule += f", as {'wordfreq' if needs_no_context(model) else 'the tokenizer'} reads them"
    declared = [x for task in results.tasks for x in results.diagnostic(task).perturbations]
    perturbations_asked = {x.name: x for x in declared if x.name in protocol.perturb}.values()
    names = ", ".join(perturbation.label for perturbation in perturbations_asked) or "none"
    if any(perturbation.shuffled for perturbation in perturbations_asked):
        names += f", {protocol.shuffles} shuffles, seed {protocol.seed}"
    ranks = " and ".join(map(str, protocol.k))
    return {
        "Probability": probability,
        **_framing_facts(protocol),
        "Accuracy": f"among the first {ranks}; words are compared {rule}",
        "Sensitivity": f"threshold {protocol.threshold:g} on differences of probabilities",
        "Perturbations": names,
    }


def _word_count_probability(model: ModelInfo) -> str:
    """Returns in words what the probability of a word is, for a model that counts words."""
    if needs_no_context(model):
        return "of the word among the words of the language, whatever the context"
    return "of the word after the words before it in the text, with <s> at its beginning"


def _framing_facts(protocol: Protocol) -> dict[str, str]:
    """Returns `framing_facts` with names that begin with a capital letter."""
    return {name.capitalize(): text for name, text in framing_facts(protocol).items()}


def _bos_text(is_there: bool | None) -> str:
    """Returns "with" or "without a beginning-of-sequence token"."""
    return f"{'with' if is_there else 'without'} a beginning-of-sequence token"


# ---- several runs --------------------------------------------------------------------------------


def difference_title(base: str, new: str) -> str:
    """Returns what a difference of two models is, by their names."""
    return f"{visible(new)} − {visible(base)}"


def asked_differently(protocols: Sequence[QueryOptions], names: Sequence[str]) -> list[str]:
    """Returns a line for each run that was asked otherwise than the first one.

    Layers, which the names say, are passed over.

    >>> asked_differently([QueryOptions(), QueryOptions(unit="word", bos="never")], ["a", "b"])
    ['a and b were asked differently: unit (token and word); bos (auto and never)']
    """
    keys_in_names = {knob.key for knob in KNOBS.values() if knob.named}
    differences = [
        {
            key: text
            for key, text in differing_knobs(protocols[0], x).items()
            if key not in keys_in_names
        }
        for x in protocols
    ]
    return [
        f"{names[0]} and {name} were asked differently: {'; '.join(texts.values())}"
        for name, texts in zip(names, differences, strict=True)
        if texts
    ]


class Order(NamedTuple):
    """What runs of one model are ordered by.

    Attributes:
        name: "step" of training checkpoints, or "layer".
        places: number of the step or layer of each run.
    """

    name: Literal["step", "layer"]
    places: list[int]

    @property
    def plural(self) -> str:
        """What the runs are of."""
        return "checkpoints" if self.name == "step" else "layers"


_OF_LAYER = re.compile(r"(?:(.*), )?layer \d+")
_OF_STEP = re.compile(r"(?:(.*)[ @])?step ?\d+")
"""Match the labels of layers and checkpoints, with the model's name."""


def noun_of(names: Sequence[str]) -> str:
    """Returns what runs with these labels are: models, layers or checkpoints of one model.

    >>> noun_of(["gpt2, layer 0", "gpt2, layer 6"]), noun_of(["gpt2, layer 0", "gpt2"])
    ('layers', 'models')
    """
    for pattern, noun in ((_OF_LAYER, "layers"), (_OF_STEP, "checkpoints")):
        matches = [pattern.fullmatch(name) for name in names]
        if all(matches) and len({match[1] for match in matches if match}) == 1:
            return noun
    return "models"


def order_of(runs: Sequence[Results]) -> Order | None:
    """Returns the order of runs of several training steps, or several layers, of one model."""
    models = {(run.model.id, run.model.revision, run.model.name) for run in runs}
    layers = [run.layer for run in runs if run.layer is not None]
    is_varied = any(run.protocol.layer is not None for run in runs)
    if len(runs) > 1 and is_varied and len(models) == 1 and len({*layers}) == len(runs):
        return Order("layer", layers)
    steps = [run.model.training_step for run in runs if run.model.training_step is not None]
    trained_models = {trained_model(run.model.id, run.model.revision) for run in runs}
    if len(runs) > 1 and len(trained_models) == 1 and len({*steps}) == len(runs) and not is_varied:
        return Order("step", steps)
    return None


def title(results: Sequence[Results]) -> str:
    """Returns the title of a page, or of a table of all models."""
    if order := order_of(results):
        model = results[0].model
        [name] = distinct_names([trained_model(model.id, model.revision)]).values()
        if order.name == "layer":
            name = model_label(model)
        return f"{visible(name)}: {len(results)} {order.plural}"
    if len(results) < 3:
        return " and ".join(dict.fromkeys(run_labels(results)))
    return f"{len(results)} models"


def positions_in_order(runs: Sequence[Results]) -> list[int]:
    """Returns the positions of checkpoints or layers in their order.

    Of other runs, as given, word frequencies after all models.
    """
    order = order_of(runs)
    places = order.places if order else [needs_no_context(run.model) for run in runs]
    return sorted(range(len(runs)), key=places.__getitem__)


def run_labels(runs: Sequence[Results]) -> list[str]:
    """Returns names that tell runs apart: steps, layers, models, and what else differs."""
    if order := order_of(runs):
        return [f"{order.name} {place}" for place in order.places]
    models = [run.model for run in runs]
    labels = [*map(visible, model_labels(models, [run.protocol for run in runs]))]
    numbered = enumerate(labels, start=1)
    return [f"{label} #{i}" if labels.count(label) > 1 else label for i, label in numbered]
