"""Why a run has no figure: which rows could not be scored, in a sentence."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from lmdiag.measures import is_human
from lmdiag.results.results import Results, SettingResults, UnscoredWord
from lmdiag.text import describe_shared_tokens, first_few, visible


def without_any_figure(results: Results, name: str, task: str = "") -> list[str]:
    """Returns a sentence for each task of which a run has no figure: it says why.

    Args:
        results: the figures.
        name: of the model.
        task: the only one that is looked at; "" for all.
    """
    sentences = []
    tasks = results.tasks if task not in results.tasks else {task: results.tasks[task]}
    for task, settings in tasks.items():
        contents = [*settings.values()]
        figures = [x for content in contents for x in content.measures.items()]
        if any(figure.value is not None and not is_human(measure) for measure, figure in figures):
            continue
        causes = [*_causes(results, task, contents[0])]
        causes = causes or [*map(visible, contents[0].not_computed)]
        where = visible(results.diagnostic(task).short_title)
        sentences.append(f"{visible(name)} has no figure on {where}: {'; '.join(causes)}.")
    return sentences


def _causes(results: Results, task: str, content: SettingResults) -> Iterator[str]:
    """Why rows of a task have no probability, each cause in words."""
    model = results.model
    bos = model.sentence_bos if results.diagnostic(task).asks == "sentence" else model.bos
    if content.unscorable:
        words = _few_words(content.unscorable)
        if model.kind == "causal" and not bos:  # what stands first has no probability
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
    """The first words of some rows, and the number of the others."""
    return first_few([*dict.fromkeys(visible(row.word) for row in rows)], 5)
