"""From stimuli to distinct questions, and from answers back to the rows.

Rows that share the text left and right of their blank are asked once, over all tasks, settings and
runs (docs/specification.md, section 2): the 326 rows of the three diagnostics are 198 questions.
So are rows that share their sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmdiag.asking.elicitation import ChoiceQuestion, Wording, choice_predictions, choices
from lmdiag.asking.protocol import FirstLetter, Predictions
from lmdiag.types import GAP_SPACES, Kind, Number, Query, Question, Sentence

if TYPE_CHECKING:
    from lmdiag.stimuli import Stimuli

_LETTER = re.compile(r"[^\W_]")

QuestionKey = tuple[Query, Number | None] | Sentence
"""What identifies a question: its query and, for EW and MW, the number that is right there; or the
sentence."""


@dataclass(frozen=True)
class Setting:
    """Stimuli as they are asked in one setting.

    Attributes:
        stimuli: the rows, perturbed.
        perturbation: name of the perturbation; "none" without.
        run: number of the shuffle, 0 outside the shuffled settings.
        wording: of the choices between the rows of a contrast; None to read probabilities.
        entropy: whether the entropy at each blank, or before each word, is asked for.
    """

    stimuli: Stimuli
    perturbation: str = "none"
    run: int = 0
    wording: Wording | None = None
    entropy: bool = False

    def choices(self, *, cased: bool) -> list[ChoiceQuestion]:
        """Returns the choices that are asked; [] where probabilities are read."""
        if self.wording is None:
            return []
        keys = row_keys(self, kind="masked", cased=cased)  # a question shows both sides
        texts = [key if isinstance(key, Sentence) else key[0] for key in keys]
        return [*choices(self.stimuli.columns(), texts, self.wording)]


def row_keys(setting: Setting, *, kind: Kind, cased: bool) -> Iterator[QuestionKey]:
    """Yields the key of each row's question.

    Causal models read the left context only. For cased models, contexts begin with a capital if
    the diagnostic says so (`Diagnostic.capitalise`).
    """
    columns = setting.stimuli.columns()
    diagnostic = setting.stimuli.diagnostic
    if diagnostic.asks == "sentence":
        regions = setting.stimuli.regions or [[]] * len(columns["id"])
        for text, parts in zip(columns["sentence"], regions, strict=True):
            filled = [region for region in parts if region["start"] < region["end"]]
            edges = {region[edge] for region in filled for edge in ("start", "end")}
            # regions that begin or end within a word
            cuts = sorted(x for x in edges if text[x - 1 : x].strip() and text[x : x + 1].strip())
            yield Sentence(text, tuple(cuts), setting.entropy)
        return
    capitalise = diagnostic.capitalise and cased
    numbers = columns["number"] if diagnostic.has_verbs else [None] * len(columns["id"])
    spaces = columns.get("gap_spaces", [""] * len(numbers))
    texts = zip(columns["context"], columns["right_context"], spaces, numbers, strict=True)
    for context, right_context, space, number in texts:
        left = with_first_letter(context, "upper") if capitalise else context
        query = Query(left, right_context, *GAP_SPACES[space])
        if kind == "causal":
            query = query._replace(right_context="", space_after=None)
        yield query, number


def distinct_questions(
    settings: Iterable[Setting], *, kind: Kind, cased: bool
) -> list[list[Question | Sentence]]:
    """Returns the distinct questions in parts, each with those that no earlier part has.

    The published rows of a task and its perturbed rows are in different parts, which never share a
    batch. So the answers to a part are the same to the last bit whatever else is asked.
    """
    words: dict[QuestionKey, dict[str, None]] = {}
    parts: dict[tuple[str, bool], list[QuestionKey]] = {}
    entropy = False
    for setting in settings:
        entropy |= setting.entropy
        rows = setting.stimuli.task, setting.perturbation == "none"
        for key, targets in _keys_and_words(setting, kind, cased):
            if key not in words:
                words[key] = {}
                parts.setdefault(rows, []).append(key)
            words[key] |= dict.fromkeys(targets)

    def question(key: QuestionKey) -> Question | Sentence:
        if isinstance(key, Sentence):
            return key
        query, number = key
        return Question(query, tuple(words[key]), number, entropy)

    return [[*map(question, keys)] for keys in parts.values()]


def _keys_and_words(
    setting: Setting, kind: Kind, cased: bool
) -> Iterator[tuple[QuestionKey, tuple[str, ...]]]:
    """Yields the key of each question of a setting and what is scored there."""
    if setting.wording is not None:
        for choice in setting.choices(cased=cased):
            yield (choice.query, None), choice.labels
        return
    columns = setting.stimuli.columns()
    keys = row_keys(setting, kind=kind, cased=cased)
    for key, target in zip(keys, columns.get("target", columns["id"]), strict=True):
        yield key, (target,)


def with_first_letter(context: str, case: FirstLetter) -> str:
    """Returns a context with its first letter in a case.

    Quotation marks, brackets and blanks may stand before the letter. A context that begins with a
    digit stays as it is.

    >>> with_first_letter("“the robin", "upper")
    '“The robin'
    """
    match = None if case == "as-is" else _LETTER.search(context)
    if match is None:
        return context
    letter = match[0].upper() if case == "upper" else match[0].lower()
    return context[: match.start()] + letter + context[match.end() :]


def to_predictions(
    setting: Setting, answers: Mapping[QuestionKey, Any], *, kind: Kind, cased: bool
) -> Predictions:
    """Returns the answers as one prediction per row, in the rows' order."""
    columns = setting.stimuli.columns()
    if setting.wording is not None:
        return choice_predictions(
            setting.choices(cased=cased), answers, columns["id"],
            perturbation=setting.perturbation, run=setting.run,
        )  # fmt: skip
    answer_of_row = [answers[key] for key in row_keys(setting, kind=kind, cased=cased)]
    no_values: list[Any] = [None] * len(answer_of_row)
    if setting.stimuli.diagnostic.asks == "sentence":
        return Predictions(
            id=list(columns["id"]),
            log_prob=[answer.log_prob for answer in answer_of_row],
            rank=no_values,
            n_tokens=[answer.n_tokens for answer in answer_of_row],
            top_words=no_values,
            top_log_probs=no_values,
            words=[answer.words for answer in answer_of_row],
            entropies=[[*answer.entropies] for answer in answer_of_row] if setting.entropy else [],
        )
    scores = [
        answer.words[word] for answer, word in zip(answer_of_row, columns["target"], strict=True)
    ]
    return Predictions(
        id=list(columns["id"]),
        log_prob=[score.log_prob for score in scores],
        rank=[score.rank for score in scores],
        n_tokens=[score.n_tokens for score in scores],
        top_words=[list(answer.top_words) for answer in answer_of_row],
        top_log_probs=[list(answer.top_log_probs) for answer in answer_of_row],
        perturbation=setting.perturbation,
        run=setting.run,
        agreement=[answer.agreement for answer in answer_of_row],
        entropies=[[answer.entropy] for answer in answer_of_row] if setting.entropy else [],
    )
