"""Why a run has no figure: which rows could not be scored, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmdiag.measures import is_human
from lmdiag.results.results import Results, SettingResults, UnscoredWord
from lmdiag.text import describe_shared_tokens, first_few, visible


def without_any_figure(results: Results, name: str, task: str = "") -> list[str]:
    """Returns a sentence for each task on which a run has no figure, which says why.

    For example, "gpt2 has no figure on ROLE-88: its vocabulary lacks naïve.".

    Args:
        results: the figures of the run.
        name: what to call the model.
        task: the only task that is looked at; "" for all tasks.
    """
    sentences = []
    tasks = [task] if task in results.tasks else results.tasks
    for name_of_task in tasks:
        settings = list(results.tasks[name_of_task].values())
        if any(_has_figure_of_model(setting) for setting in settings):
            continue
        first_setting = settings[0]  # all settings ask for the same words
        causes = list(_causes(results, name_of_task, first_setting))
        if not causes:
            causes = [visible(line) for line in first_setting.not_computed]
        title = visible(results.diagnostic(name_of_task).short_title)
        sentences.append(f"{visible(name)} has no figure on {title}: {'; '.join(causes)}.")
    return sentences


def _has_figure_of_model(setting: SettingResults) -> bool:
    """Whether a setting has a figure that is defined and is not the human baseline."""
    return any(
        figure.value is not None and not is_human(measure)
        for measure, figure in setting.measures.items()
    )


def _causes(results: Results, task: str, content: SettingResults) -> Iterator[str]:
    """Yields the causes for which rows of a task have no probability, each as a clause."""
    model = results.model
    bos = model.sentence_bos if results.diagnostic(task).asks == "sentence" else model.bos
    if content.unscorable:
        words = _few_words(content.unscorable)
        # a causal model that reads nothing before a text gives its first word no probability
        if model.kind == "causal" and not bos:
            yield f"nothing stands before the first word, or its vocabulary lacks {words}"
        else:
            yield f"its vocabulary lacks {words}"
    if content.censored:
        yield f"the server's list does not reach {_few_words(content.censored)}"
    if content.shared_tokens:
        yield describe_shared_tokens([visible(row.word) for row in content.shared_tokens])
    if content.equal_contrasts:
        yield "the good and bad rows of its contrasts have the same text or the same tokens"


def _few_words(rows: Sequence[UnscoredWord]) -> str:
    """Returns the first five distinct words of some rows, and the number of the others.

    For example "a, b, c, d, e and 2 more".
    """
    words = dict.fromkeys(visible(row.word) for row in rows)
    return first_few(list(words), 5)
