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
    """Returns what a model is, in a few words each, the commit last.

    For example, ["causal", "124M parameters", "float32", "commit 607a30d783df"]; the id comes first
    where the model has another name. Of a model behind a server, what is known.
    """
    if model.server is not None:
        identity = id_if_not_name(model), model.kind, f"asked through {model.server}"
        return [*filter(None, identity), "commit and precision not known"]
    commit = f"commit {short_commit(model.commit)}"
    if model.counts_words:
        n_words = f"{numbers.count(model.vocab_size)} words"
        return [id_if_not_name(model), model.architecture, n_words, commit]
    size = f"{numbers.count(model.n_parameters)} parameters"
    facts = (id_if_not_name(model), model.kind, size, model.dtype, model.quantization, commit)
    return [fact for fact in facts if fact]


def model_fact(results: Results) -> Fact:
    """Returns the name of a model, and lines on what it is and what it was asked.

    For example, the name "gpt2" with the lines "causal · 124M parameters · float32 · cased · commit
    607a30d783df", "data lmdiag · 310 contexts" and, if contexts stand in a prompt, "prompt ...".
    """
    model = results.model
    *facts, commit = model_facts(model)  # the last one is on the commit
    facts = [*facts, "cased" if model.cased else "uncased", commit]
    source = f"data {results.data.source} · {results.n_contexts} {question_noun(results)}"
    framing_texts = framing_facts(results.protocol).items()
    framing = " · ".join(f"{name} {shortened(text, 80)}" for name, text in framing_texts)
    lines = (" · ".join(facts), source, framing, *remarks_on_model(results))
    return Fact(visible(model_label(model)), [line for line in lines if line])


def question_noun(results: Results) -> str:
    """Returns what a model was asked: "contexts", "sentences" or, of choices, "questions"."""
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
    scoring_options = vars(ScoringOptions())  # these change how answers are scored, not contexts
    for option, knob in KNOBS.items():
        if knob.is_changed(protocol) and knob.name not in scoring_options:
            # a template that is known by a name, such as the chat template, is called by it
            name = f"{knob.template} template" if knob.has_template(protocol) else option
            facts[name.replace("-", " ")] = getattr(protocol, knob.name).replace("\n", "⏎")
    return {name: visible(text) for name, text in facts.items()}


def remarks_on_model(results: Results) -> list[str]:
    """Returns lines on what looks wrong: the tokens before texts, and the model's files.

    The first is that a beginning-of-sequence token is there, or not, against the tokenizer's or the
    training's convention, see `bos_remark`.
    """
    asks = "sentence" if question_noun(results) == "sentences" else "word"
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
    questions = question_noun(results)
    if questions == "sentences":
        scoring_facts = _sentence_facts(results)
    elif questions == "questions":
        scoring_facts = _choice_facts(results)
    else:
        scoring_facts = _blank_facts(results)
    seconds = results.seconds.get("ask", 0)
    n = results.device.processes
    device = f"{results.device.name}, {n} process{'es' if n > 1 else ''}"
    versions = [f"{name} {version}" for name, version in results.versions.items()]
    return {
        "Model": f"{model.id} ({model.architecture}, {model.tokenizer})",
        "Commit": f"not known: asked through {model.server}" if model.server else model.commit,
        "Data": f"{data.source}{revision}, fingerprint {data.fingerprint}",
        "Rows": f"{rows}{sample}",
        **scoring_facts,
        "Cost": f"{results.n_contexts} {questions} in {seconds:.0f} s on {device}",
        "Versions": ", ".join(versions),
        "Finished": results.finished,
    }


def _sentence_facts(results: Results) -> dict[str, str]:
    """Returns in words how sentences are scored: "Probability" and "Surprisal" -> text."""
    model = results.model
    protocol = results.protocol
    if model.counts_words:
        probability = _word_count_probability(model)
    elif model.kind in ("masked", "mntp"):
        probability = "pseudo-log-likelihood of each word: each of its tokens is masked in turn"
        if protocol.pll == "within-word":
            probability += ", together with the later tokens of the word"
        if model.kind == "mntp":  # such a model predicts a token where the one before it stands
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
    """Returns in words how options are scored where a model chooses among them: name -> text.

    The names are "Share", those of what the question is framed by (e.g. "Prompt"), and
    "Sensitivity".
    """
    share = "probability of the label of an option over that of all labels, after the question; "
    share += "a geometric mean over the orders of the options"
    sensitivity = "the good option has the largest share; equal shares count as not"
    framing = _capitalized_framing_facts(results.protocol)
    return {"Share": share, **framing, "Sensitivity": sensitivity}


def _blank_facts(results: Results) -> dict[str, str]:
    """Returns in words how words at blanks are scored, for each measure: name -> text."""
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
        reader = "wordfreq" if needs_no_context(model) else "the tokenizer"
        rule += f", as {reader} reads them"
    perturbations = {}  # name -> perturbation; several tasks may have the same
    for task in results.tasks:
        for perturbation in results.diagnostic(task).perturbations:
            if perturbation.name in protocol.perturb:
                perturbations[perturbation.name] = perturbation
    labels = ", ".join(perturbation.label for perturbation in perturbations.values()) or "none"
    if any(perturbation.shuffled for perturbation in perturbations.values()):
        labels += f", {protocol.shuffles} shuffles, seed {protocol.seed}"
    ranks = " and ".join(map(str, protocol.k))
    return {
        "Probability": probability,
        **_capitalized_framing_facts(protocol),
        "Accuracy": f"among the first {ranks}; words are compared {rule}",
        "Sensitivity": f"threshold {protocol.threshold:g} on differences of probabilities",
        "Perturbations": labels,
    }


def _word_count_probability(model: ModelInfo) -> str:
    """Returns in words what the probability of a word is, for a model that counts words."""
    if needs_no_context(model):
        return "of the word among the words of the language, whatever the context"
    return "of the word after the words before it in the text, with <s> at its beginning"


def _capitalized_framing_facts(protocol: Protocol) -> dict[str, str]:
    """Returns `framing_facts` with names that begin with a capital letter."""
    return {name.capitalize(): text for name, text in framing_facts(protocol).items()}


def _bos_text(has_bos: bool | None) -> str:
    """Returns "with" or "without a beginning-of-sequence token"."""
    return f"{'with' if has_bos else 'without'} a beginning-of-sequence token"


# ---- several runs --------------------------------------------------------------------------------


def difference_title(base: str, new: str) -> str:
    """Returns the title of a table of differences: "NEW − BASE"."""
    return f"{visible(new)} − {visible(base)}"


def asked_differently(protocols: Sequence[QueryOptions], names: Sequence[str]) -> list[str]:
    """Returns a line for each run that was asked in another way than the first one.

    Options that the names of runs have, such as the layer, are passed over.

    >>> asked_differently([QueryOptions(), QueryOptions(unit="word", bos="never")], ["a", "b"])
    ['a and b were asked differently: unit (token and word); bos (auto and never)']

    Args:
        protocols: how each run was asked.
        names: of the runs.
    """
    keys_in_names = {knob.key for knob in KNOBS.values() if knob.is_in_model_name}
    lines = []
    for protocol, name in zip(protocols, names, strict=True):
        differences = differing_knobs(protocols[0], protocol)
        texts = [text for key, text in differences.items() if key not in keys_in_names]
        if texts:
            lines.append(f"{names[0]} and {name} were asked differently: {'; '.join(texts)}")
    return lines


class Order(NamedTuple):
    """What runs of one model are ordered by.

    Attributes:
        name: "step" of training checkpoints, or "layer".
        numbers: of the step or layer of each run.
    """

    name: Literal["step", "layer"]
    numbers: list[int]

    @property
    def plural(self) -> str:
        """What the runs are of: "checkpoints" or "layers"."""
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
        models = {match[1] for match in matches if match}
        if all(matches) and len(models) == 1:
            return noun
    return "models"


def order_of(runs: Sequence[Results]) -> Order | None:
    """Returns the order of runs of several training steps, or several layers, of one model.

    For example, Order("layer", [0, 6, 12]) for three layers of gpt2. None for all other runs, as
    those of several models.
    """
    n = len(runs)
    if n < 2:
        return None
    if any(run.protocol.layer is not None for run in runs):
        models = {(run.model.id, run.model.revision, run.model.name) for run in runs}
        # a run without the option is of the last layer; its number may not be known
        layers = [run.layer for run in runs if run.layer is not None]
        is_one_model = len(models) == 1
        return Order("layer", layers) if is_one_model and len({*layers}) == n else None
    trained_models = {trained_model(run.model.id, run.model.revision) for run in runs}
    steps = [run.model.training_step for run in runs if run.model.training_step is not None]
    is_one_model = len(trained_models) == 1
    return Order("step", steps) if is_one_model and len({*steps}) == n else None


def title(results: Sequence[Results]) -> str:
    """Returns the title of a page on some runs, or of a table of all models.

    For example "pythia: 12 checkpoints" of one model, "gpt2 and bert" of two, or "12 models".
    """
    if order := order_of(results):
        model = results[0].model
        if order.name == "layer":
            name = model_label(model)
        else:
            [name] = distinct_names([trained_model(model.id, model.revision)]).values()
        return f"{visible(name)}: {len(results)} {order.plural}"
    if len(results) < 3:
        return " and ".join(dict.fromkeys(run_labels(results)))
    return f"{len(results)} models"


def positions_in_order(runs: Sequence[Results]) -> list[int]:
    """Returns the positions of runs in the order in which they are shown.

    Checkpoints and layers are in their order; others as they are, word frequencies after all
    models.
    """
    order = order_of(runs)
    # False, of models, is sorted before True, of word frequencies
    keys = order.numbers if order else [needs_no_context(run.model) for run in runs]
    return sorted(range(len(runs)), key=keys.__getitem__)


def run_labels(runs: Sequence[Results]) -> list[str]:
    """Returns names that tell runs apart: "layer 6", "step 1000", or the model and what differs.

    Runs of which nothing differs have their number behind the name, from 1: "gpt2 #2".
    """
    if order := order_of(runs):
        return [f"{order.name} {number}" for number in order.numbers]
    models = [run.model for run in runs]
    labels = [visible(label) for label in model_labels(models, [run.protocol for run in runs])]
    return [
        f"{label} #{number}" if labels.count(label) > 1 else label
        for number, label in enumerate(labels, start=1)
    ]
