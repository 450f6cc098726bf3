"""Asks a model all questions: in batches, on several processes, resuming an interrupted run.

The batches depend only on the questions and the batch size. The journal of an interrupted run
holds whole batches, so the batches that remain are those of an undisturbed run, for any number of
processes, and the answers are the same to the last bit.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from lmdiag.asking.protocol import Predictions
from lmdiag.asking.questions import Setting, distinct_questions, to_predictions
from lmdiag.runs.processes import Processes
from lmdiag.text import first_few, visible
from lmdiag.types import Kind, OnProgress, Question, Sentence

if TYPE_CHECKING:
    from lmdiag.models import Model
    from lmdiag.runs.journal import Journal
    from lmdiag.stimuli import Stimuli


def predict(
    model: Model,
    settings: Sequence[Setting],
    *,
    top: int,
    processes: Processes | None = None,
    **how: Any,
) -> tuple[list[Predictions], int]:
    """Returns the predictions of each setting and the number of distinct contexts.

    Each distinct question of all settings is asked once, by `ask`, which has the other arguments.
    On all processes but the first: ([], 0).
    """
    questions, answers = _asked(model, settings, top=top, processes=processes, **how)
    predictions = _predictions(model, settings, questions, answers) if answers else []
    return predictions, _n_contexts(questions) if answers else 0


def predict_layers(
    model: Model,
    settings: Sequence[Setting],
    *,
    top: int,
    processes: Processes | None = None,
    **how: Any,
) -> tuple[list[list[Predictions]], int]:
    """Returns what `predict` returns after each layer of a model; see `Model.at_layers`."""
    questions, answers = _asked(model, settings, top=top, processes=processes, **how)
    by_layer = zip(*answers, strict=True)
    predictions = [_predictions(model, settings, questions, layer) for layer in by_layer]
    return predictions, _n_contexts(questions) if answers else 0


def _asked(
    model: Model, settings: Sequence[Setting], **how: Any
) -> tuple[list[Question | Sentence], list[Any]]:
    """Returns the distinct questions of settings and their answers, [] where `ask` returns none."""
    parts = distinct_questions(settings, kind=model.info.kind, cased=model.info.cased)
    questions = [*chain.from_iterable(parts)]
    return questions, ask(model, questions, [*map(len, parts)], **how)


def _predictions(
    model: Model,
    settings: Sequence[Setting],
    questions: Sequence[Question | Sentence],
    answers: Sequence[Any],
) -> list[Predictions]:
    """The predictions of each setting, from the answers to the distinct questions of all."""
    keys = [q if isinstance(q, Sentence) else (q.query, q.number) for q in questions]
    by_key = dict(zip(keys, answers, strict=True))
    how: dict[str, Any] = {"kind": model.info.kind, "cased": model.info.cased}
    return [to_predictions(setting, by_key, **how) for setting in settings]


def _n_contexts(questions: Sequence[Question | Sentence]) -> int:
    return len({q if isinstance(q, Sentence) else q.query for q in questions})


def ask(
    model: Model,
    questions: Sequence[Question | Sentence],
    sizes: Sequence[int] | None = None,
    *,
    top: int,
    batch_size: int | None = None,
    journal: Journal | None = None,
    processes: Processes | None = None,
    label: str | None = None,
    on_progress: OnProgress | None = None,
) -> list[Any]:
    """Returns the answers to all questions, in their order; [] on all processes but the first.

    Args:
        model: the model to ask.
        questions: distinct questions, the same on every process: all about blanks, which gives an
            `Answer` each, or all about sentences, which gives a `SentenceAnswer` each.
        sizes: number of questions of each part, in order; None for one part. No batch has questions
            of two parts: the last bits of an answer depend on the other questions of its batch, and
            runs that have a part in common have its answers in common, whatever else they ask.
        top: length of the lists of top words.
        batch_size: questions in a batch; None for what suits the device.
        journal: saves finished batches, and has answers of earlier runs; None to keep nothing.
        processes: the processes that share the work; None for this one alone.
        label: name of the model in the progress bar; None for no bar.
        on_progress: see `OnProgress`.

    Raises:
        BadInput: the model cannot answer (a context is too long, NaN in its logits); raised on
            every process, after the other processes have asked and saved their batches.
    """
    processes = processes or Processes(alone=True)
    sizes = sizes or [len(questions)]
    with processes.shared_errors():
        encoded = [model.encode(question) for question in questions]
    keys = [model.key(question, top) for question in encoded]
    answers: dict[str, Any] = journal.read() if journal else {}
    if model.check_key:
        _refuse_other_model(model, answers, journal, processes)
    answered = processes.share({*answers} & {*keys})
    plan: list[list[int]] = []
    for end, size in zip(accumulate(sizes), sizes, strict=True) if processes.first else ():
        part = model.plan(encoded[end - size : end], batch_size)
        plan += [[end - size + number for number in batch] for batch in part]
    batches = _unanswered(processes.share(plan), keys, answered)
    rank, step = (0, 1) if processes.together else (processes.rank, processes.count)
    reached = [*accumulate(map(len, batches), initial=len(questions) - sum(map(len, batches)))]
    unit = "sentences" if questions and isinstance(questions[0], Sentence) else "contexts"
    asked: dict[str, Any] = {}
    with show_progress(len(questions), reached[0], label, unit=unit, also=on_progress) as show:
        show(reached[0])
        with processes.shared_errors():
            for number in range(rank, len(batches), step):
                batch = batches[number]
                model.report = partial(_show_share, show, *reached[number : number + 2])
                found = model.answer([encoded[i] for i in batch], top)
                finished = dict(zip([keys[i] for i in batch], found, strict=True))
                if journal:
                    journal.append(finished)
                asked |= finished
                # the other processes are about as far
                show(reached[min(number - rank + step, len(batches))])
        for others in processes.gather(asked):
            answers |= others
    return [answers[key] for key in keys] if processes.first else []


def _refuse_other_model(
    model: Model, answers: Mapping[str, Any], journal: Journal | None, processes: Processes
) -> None:
    """Refuses a server whose model did not give the saved answers; saves what it is known by."""
    log_probs = answers.get(model.check_key, model.info.check_log_probs)
    log_probs = processes.share(log_probs)
    with processes.shared_errors():
        model.refuse_other_model(log_probs)
    if journal and processes.first and model.check_key not in answers:
        journal.append({model.check_key: log_probs})


def _show_share(show: Callable[[float], None], start: int, end: int, share: float) -> None:
    """Shows how far a batch is, of contexts from `start` to `end`."""
    show(start + share * (end - start))


def _unanswered(
    batches: Sequence[Sequence[int]], keys: Sequence[str], known: set[str]
) -> list[list[int]]:
    """The batches without questions whose key is known, or that of an earlier question."""
    seen = set(known)
    rest = []
    for batch in batches:
        new = {keys[number]: number for number in reversed(batch) if keys[number] not in seen}
        seen.update(new)
        if new:
            rest.append([*reversed(new.values())])
    return rest


@contextmanager
def show_progress(
    total: int,
    done: int = 0,
    label: str | None = "",
    *,
    unit: str = "contexts",
    also: OnProgress | None = None,
) -> Iterator[Callable[[float], None]]:
    """Shows a bar on a terminal (standard error) or in a notebook; nothing in the log of a job.

    Args:
        total: contexts of the whole run, over all processes.
        done: contexts that an earlier, interrupted run had saved.
        label: printed in front, e.g. the name of the model; None to show nothing at all.
        unit: what is counted, "contexts" or "sentences".
        also: is told the same.

    Yields:
        a function that takes the number of contexts that are saved now.
    """
    # rich's own bar of notebooks needs ipywidgets
    in_notebook = Console().is_jupyter or None
    console = Console(stderr=True, force_jupyter=False, force_terminal=in_notebook)
    started = time.monotonic()
    columns = (
        TextColumn("{task.description}", markup=False), BarColumn(), MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"), TimeRemainingColumn(),
    )  # fmt: skip
    is_shown = label is not None and console.is_terminal
    with Progress(*columns, console=console, disable=not is_shown) as bar:
        task = bar.add_task(visible(label or ""), total=total, completed=done, rate=unit)

        def update(now: float) -> None:
            rate = (now - done) / max(time.monotonic() - started, 1e-9)
            bar.update(task, completed=now, rate=f"{rate:.1f} {unit}/s")
            if also:
                also(now, total)

        yield update


def row_texts(stimuli: Iterable[Stimuli], kind: Kind) -> dict[str, str]:
    """Returns the text that a kind of model reads of each row, by "row ID"."""
    read = ["context", "sentence"] if kind == "causal" else ["context", "right_context", "sentence"]
    return {
        f"row {row}": text
        for rows in stimuli
        for row, text in zip(rows.columns()["id"], rows.texts(*read), strict=True)
    }


def start_warning(model: Model, texts: Mapping[str, str]) -> str | None:
    """Returns one line about contexts that are empty for a model that reads nothing before them."""
    empty = [place for place, text in texts.items() if not text]
    if not empty or model.info.kind != "causal" or model.info.sentence_bos or model.prompt:
        return None
    why = "has no beginning-of-sequence token before an empty context"
    return f"model {model.info.id} {why}: no probability of the word in {first_few(empty)}"


def control_warning(model: Model, texts: Mapping[str, str]) -> str | None:
    """Returns one line about `texts` (place -> text) with the name of a control token, or None."""
    distinct = list(dict.fromkeys(texts.values()))
    names = dict(zip(distinct, model.control_names(distinct), strict=True))
    examples = [f"{names[text][0]} in {place}" for place, text in texts.items() if names[text]]
    if not examples:
        return None
    return (
        f"model {model.info.id} reads the name of a control token as the token itself, and not as "
        f"text ({first_few(examples)}): rewrite these texts if this is not intended"
    )
