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
from lmdiag.asking.questions import (
    QuestionKey,
    Setting,
    distinct_questions,
    to_predictions,
)
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

    Each distinct question of all settings is asked once.

    Args:
        model: the model to ask.
        settings: the rows, as they are asked.
        top: length of the lists of top words.
        processes: the processes that share the work; None for this one alone.
        how: further arguments of `ask`: batch_size, journal, label, on_progress.

    Returns:
        one record for each setting, in their order, and the number of contexts; ([], 0) on all
        processes but the first, which alone gets the answers of all.
    """
    questions, answers = _questions_and_answers(
        model, settings, top=top, processes=processes, **how
    )
    if processes and not processes.is_first:
        return [], 0
    return _predictions_of(model, settings, questions, answers), _n_contexts(questions)


def predict_layers(
    model: Model,
    settings: Sequence[Setting],
    *,
    top: int,
    processes: Processes | None = None,
    **how: Any,
) -> tuple[list[list[Predictions]], int]:
    """Returns the predictions of each layer and setting, and the number of distinct contexts.

    Args:
        model: one that `Model.at_layers` returns; it answers each question after several layers.
        settings, top, processes, how: see `predict`.

    Returns:
        for each layer a list with one record for each setting, and the number of contexts; ([], 0)
        on all processes but the first.
    """
    questions, answers = _questions_and_answers(
        model, settings, top=top, processes=processes, **how
    )
    if processes and not processes.is_first:
        return [], 0
    # from a tuple for each question, with its answers by layer, to a tuple for each layer
    answers_by_layer = zip(*answers, strict=True)
    predictions = [
        _predictions_of(model, settings, questions, answers_of_layer)
        for answers_of_layer in answers_by_layer
    ]
    return predictions, _n_contexts(questions)


def _questions_and_answers(
    model: Model, settings: Sequence[Setting], **how: Any
) -> tuple[list[Question | Sentence], list[Any]]:
    """Returns the distinct questions of settings, and the answer to each of them.

    The answers are [] on all processes but the first. `how` has the arguments of `ask`.
    """
    # no batch mixes questions of two parts, see `ask`
    parts = distinct_questions(settings, kind=model.info.kind, cased=model.info.cased)
    questions = list(chain.from_iterable(parts))
    sizes = [len(part) for part in parts]
    return questions, ask(model, questions, sizes, **how)


def _predictions_of(
    model: Model,
    settings: Sequence[Setting],
    questions: Sequence[Question | Sentence],
    answers: Sequence[Any],
) -> list[Predictions]:
    """Returns the predictions of each setting.

    Args:
        questions: the distinct questions of all settings.
        answers: one per question: an `Answer` at a blank, or a `SentenceAnswer`.
    """
    # the keys are those by which `row_keys` finds the question of a row
    answer_of: dict[QuestionKey, Any] = {}
    for question, answer in zip(questions, answers, strict=True):
        if isinstance(question, Sentence):
            answer_of[question] = answer
        else:  # the number is the grammatical one of the verb, "singular" or "plural", or None
            answer_of[question.query, question.number] = answer
    kind = model.info.kind
    cased = model.info.cased
    return [to_predictions(setting, answer_of, kind=kind, cased=cased) for setting in settings]


def _n_contexts(questions: Sequence[Question | Sentence]) -> int:
    """Returns the number of distinct contexts or sentences.

    Two questions about one context, with verbs in the singular and in the plural, count once.
    """
    contexts = {
        question if isinstance(question, Sentence) else question.query for question in questions
    }
    return len(contexts)


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
    if model.check_key:  # of a model behind a server
        _refuse_other_model(model, answers, journal, processes)
    # the first process says for all which questions are answered, and how batches are made
    answered_keys = processes.share(set(answers) & set(keys))
    plan = _batches(model, encoded, sizes, batch_size) if processes.is_first else []
    batches = _unanswered(processes.share(plan), keys, answered_keys)
    # process r of n asks the batches r, r + n, ...; those that share a model ask all of them
    rank, step = (0, 1) if processes.together else (processes.rank, processes.count)
    # the number of contexts that are saved before each batch, and after the last one: for 10
    # questions, of which 4 are saved already, in batches of 4 and 2, [4, 8, 10]
    batch_lengths = [len(batch) for batch in batches]
    n_saved = len(questions) - sum(batch_lengths)
    n_saved_before = list(accumulate(batch_lengths, initial=n_saved))
    unit = "sentences" if questions and isinstance(questions[0], Sentence) else "contexts"
    own_answers: dict[str, Any] = {}
    with show_progress(
        total=len(questions), done=n_saved, label=label, unit=unit, also=on_progress
    ) as show:
        show(n_saved)
        with processes.shared_errors():
            for number in range(rank, len(batches), step):
                batch = batches[number]
                before, after = n_saved_before[number : number + 2]
                model.report = partial(_show_share, show, before, after)
                batch_answers = model.answer([encoded[i] for i in batch], top)
                finished = dict(zip([keys[i] for i in batch], batch_answers, strict=True))
                if journal:
                    journal.append(finished)
                own_answers |= finished
                # the other processes are about as far: a batch of each is finished
                n_finished = min(number - rank + step, len(batches))
                show(n_saved_before[n_finished])
        for answers_of_process in processes.gather(own_answers):
            answers |= answers_of_process
    return [answers[key] for key in keys] if processes.is_first else []


def _batches(
    model: Model, encoded: Sequence[Any], sizes: Sequence[int], batch_size: int | None
) -> list[list[int]]:
    """Returns the batches of all parts, as positions in `encoded`.

    Each batch has questions of one part alone. For example, sizes [2, 3] and batches of two
    questions may give [[0, 1], [2, 4], [3]].

    Args:
        encoded: the questions of all parts, in order, as `Model.encode` returns them.
        sizes: number of questions of each part.
        batch_size: questions in a batch; None for what suits the device.
    """
    batches: list[list[int]] = []
    start = 0
    for size in sizes:
        for batch in model.plan(encoded[start : start + size], batch_size):
            batches.append([start + number for number in batch])
        start += size
    return batches


def _refuse_other_model(
    model: Model, answers: Mapping[str, Any], journal: Journal | None, processes: Processes
) -> None:
    """Refuses a server whose model is not the one that gave the saved answers.

    A server may load another model under the same name. Two models of one name are told apart by
    their log-probabilities of fixed texts, which the journal has under `Model.check_key`.

    Args:
        answers: the content of the journal, by key.
        journal: gets the log-probabilities if it does not have them yet; None to keep nothing.
    """
    # those in the journal, or else those that the server gave when the model was loaded; all
    # processes are compared with those of the first one
    log_probs = answers.get(model.check_key, model.info.check_log_probs)
    log_probs = processes.share(log_probs)
    with processes.shared_errors():
        model.refuse_other_model(log_probs)
    if journal and processes.is_first and model.check_key not in answers:
        journal.append({model.check_key: log_probs})


def _show_share(show: Callable[[float], None], before: int, after: int, share: float) -> None:
    """Shows how many contexts are answered while a batch is under way.

    Args:
        show: takes the number of answered contexts.
        before: number of contexts that are answered before the batch.
        after: number of contexts that will be answered after the batch.
        share: how much of the batch is answered, in [0, 1]. With `before` 64, `after` 96 and a
            share of 0.5, 80 contexts are shown.
    """
    show(before + share * (after - before))


def _unanswered(
    batches: Sequence[Sequence[int]], keys: Sequence[str], answered: set[str]
) -> list[list[int]]:
    """Returns the batches without the questions that need not be asked.

    These are questions with an answer, and those with the key of an earlier question.

    Args:
        batches: numbers of questions.
        keys: of all questions.
        answered: keys whose answers are saved.

    >>> _unanswered([[0, 1], [2, 3]], ["a", "b", "a", "c"], answered={"b"})
    [[0], [3]]
    """
    seen_keys = set(answered)
    remaining_batches = []
    for batch in batches:
        remaining = []
        for number in batch:
            key = keys[number]
            if key not in seen_keys:
                seen_keys.add(key)
                remaining.append(number)
        if remaining:
            remaining_batches.append(remaining)
    return remaining_batches


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

        def update(n_saved: float) -> None:
            """Shows a number of contexts, and how many of them were answered per second."""
            seconds = max(time.monotonic() - started, 1e-9)  # not 0
            rate = (n_saved - done) / seconds
            bar.update(task, completed=n_saved, rate=f"{rate:.1f} {unit}/s")
            if also:
                also(n_saved, total)

        yield update


def row_texts(stimuli: Iterable[Stimuli], kind: Kind) -> dict[str, str]:
    """Returns "row ID" -> the text that a kind of model reads of the row."""
    columns_read = ["context", "right_context", "sentence"]
    if kind == "causal":
        columns_read.remove("right_context")
    text_of_row = {}
    for rows in stimuli:
        ids = rows.columns()["id"]
        for row_id, text in zip(ids, rows.texts(*columns_read), strict=True):
            text_of_row[f"row {row_id}"] = text
    return text_of_row


def start_warning(model: Model, texts: Mapping[str, str]) -> str | None:
    """Returns one line about rows with an empty text, for a model that reads nothing before it.

    None without such rows, and for a model that reads a token or a prompt before every text.
    `texts` is row -> the text that the model reads.
    """
    empty_rows = [row for row, text in texts.items() if not text]
    reads_nothing_before = (
        model.info.kind == "causal" and not model.info.sentence_bos and not model.prompt
    )
    if not empty_rows or not reads_nothing_before:
        return None
    problem = "has no beginning-of-sequence token before an empty context"
    return f"model {model.info.id} {problem}: no probability of the word in {first_few(empty_rows)}"


def control_warning(model: Model, texts: Mapping[str, str]) -> str | None:
    """Returns one line about texts with the name of a control token, e.g. `</s>`; None without any.

    `texts` is what the line calls a text -> the text.
    """
    distinct_texts = list(dict.fromkeys(texts.values()))
    names_in_text = dict(zip(distinct_texts, model.control_names(distinct_texts), strict=True))
    examples = []
    for place, text in texts.items():
        names = names_in_text[text]
        if names:
            examples.append(f"{names[0]} in {place}")
    if not examples:
        return None
    return (
        f"model {model.info.id} reads the name of a control token as the token itself, and not as "
        f"text ({first_few(examples)}): rewrite these texts if this is not intended"
    )
