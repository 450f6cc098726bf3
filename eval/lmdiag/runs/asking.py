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
    questions, answers = _questions_and_answers(
        model, settings, top=top, processes=processes, **how
    )
    predictions = _predictions_of(model, settings, questions, answers) if answers else []
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
    questions, answers = _questions_and_answers(
        model, settings, top=top, processes=processes, **how
    )
    by_layer = zip(*answers, strict=True)
    predictions = [_predictions_of(model, settings, questions, layer) for layer in by_layer]
    return predictions, _n_contexts(questions) if answers else 0


def _questions_and_answers(
    model: Model, settings: Sequence[Setting], **how: Any
) -> tuple[list[Question | Sentence], list[Any]]:
    """Returns the distinct questions of settings, and their answers.

    There are no answers, [], on all processes but the first.
    """
    parts = distinct_questions(settings, kind=model.info.kind, cased=model.info.cased)
    questions = [*chain.from_iterable(parts)]
    return questions, ask(model, questions, [*map(len, parts)], **how)


def _predictions_of(
    model: Model,
    settings: Sequence[Setting],
    questions: Sequence[Question | Sentence],
    answers: Sequence[Any],
) -> list[Predictions]:
    """Returns the predictions of each setting.

    Args:
        questions: the distinct questions of all settings.
        answers: one per question.
    """
    keys = [q if isinstance(q, Sentence) else (q.query, q.number) for q in questions]
    answer_of = dict(zip(keys, answers, strict=True))
    row_options: dict[str, Any] = {"kind": model.info.kind, "cased": model.info.cased}
    return [to_predictions(setting, answer_of, **row_options) for setting in settings]


def _n_contexts(questions: Sequence[Question | Sentence]) -> int:
    """Returns the number of distinct contexts or sentences; questions may share one."""
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
    answered_keys = processes.share({*answers} & {*keys})
    plan: list[list[int]] = []
    for end, size in zip(accumulate(sizes), sizes, strict=True) if processes.first else ():
        batches_of_part = model.plan(encoded[end - size : end], batch_size)
        plan += [[end - size + number for number in batch] for batch in batches_of_part]
    batches = _unanswered(processes.share(plan), keys, answered_keys)
    # process r of n asks the batches r, r + n, ...; those that share a model ask all of them
    rank, step = (0, 1) if processes.together else (processes.rank, processes.count)
    # contexts that are saved before each batch, and after the last
    n_saved_before = [
        *accumulate(map(len, batches), initial=len(questions) - sum(map(len, batches)))
    ]
    unit = "sentences" if questions and isinstance(questions[0], Sentence) else "contexts"
    own_answers: dict[str, Any] = {}
    with show_progress(
        len(questions), n_saved_before[0], label, unit=unit, also=on_progress
    ) as show:
        show(n_saved_before[0])
        with processes.shared_errors():
            for number in range(rank, len(batches), step):
                batch = batches[number]
                model.report = partial(_show_share, show, *n_saved_before[number : number + 2])
                batch_answers = model.answer([encoded[i] for i in batch], top)
                finished = dict(zip([keys[i] for i in batch], batch_answers, strict=True))
                if journal:
                    journal.append(finished)
                own_answers |= finished
                # the other processes are about as far
                show(n_saved_before[min(number - rank + step, len(batches))])
        for answers_of_process in processes.gather(own_answers):
            answers |= answers_of_process
    return [answers[key] for key in keys] if processes.first else []


def _refuse_other_model(
    model: Model, answers: Mapping[str, Any], journal: Journal | None, processes: Processes
) -> None:
    """Refuses a server whose model is not the one that gave the saved answers.

    Its check, log-probabilities of fixed texts, is saved with the first answers.
    """
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
    batches: Sequence[Sequence[int]], keys: Sequence[str], answered: set[str]
) -> list[list[int]]:
    """Returns the batches without the questions that need not be asked.

    These are questions with an answer, and those with the key of an earlier question.

    Args:
        batches: numbers of questions.
        keys: of all questions.
        answered: keys whose answers are saved.
    """
    seen = set(answered)
    remaining = []
    for batch in batches:
        questions = []
        for number in batch:
            if keys[number] not in seen:
                seen.add(keys[number])
                questions.append(number)
        if questions:
            remaining.append(questions)
    return remaining


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
        also: is called with the same numbers.

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
    columns_read = (
        ["context", "sentence"] if kind == "causal" else ["context", "right_context", "sentence"]
    )
    return {
        f"row {row}": text
        for rows in stimuli
        for row, text in zip(rows.columns()["id"], rows.texts(*columns_read), strict=True)
    }


def start_warning(model: Model, texts: Mapping[str, str]) -> str | None:
    """Returns one line about contexts that are empty for a model that reads nothing before them."""
    empty_rows = [row for row, text in texts.items() if not text]
    if not empty_rows or model.info.kind != "causal" or model.info.sentence_bos or model.prompt:
        return None
    problem = "has no beginning-of-sequence token before an empty context"
    return f"model {model.info.id} {problem}: no probability of the word in {first_few(empty_rows)}"


def control_warning(model: Model, texts: Mapping[str, str]) -> str | None:
    """Returns one line about `texts` (place -> text) with the name of a control token, or None."""
    distinct_texts = list(dict.fromkeys(texts.values()))
    names_in_text = dict(zip(distinct_texts, model.control_names(distinct_texts), strict=True))
    examples = [
        f"{names_in_text[text][0]} in {place}"
        for place, text in texts.items()
        if names_in_text[text]
    ]
    if not examples:
        return None
    return (
        f"model {model.info.id} reads the name of a control token as the token itself, and not as "
        f"text ({first_few(examples)}): rewrite these texts if this is not intended"
    )
