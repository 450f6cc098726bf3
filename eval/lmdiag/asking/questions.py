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
        """Returns the questions that let a model choose among the rows of each contrast.

        For example, "Which of these sentences is more likely?" with the options "A robin is a
        bird." and "A robin is a tree.". [] if the model is not asked to choose (`wording` is None).

        Args:
            cased: whether the model tells "A" from "a".
        """
        if self.wording is None:
            return []
        # An option has the text on both sides of its blank, also for a causal model. `row_keys`
        # yields both sides for masked models only.
        keys = row_keys(self, kind="masked", cased=cased)
        texts: list[Query | Sentence] = []
        for key in keys:
            if isinstance(key, Sentence):
                texts.append(key)
            else:
                query, _ = key
                texts.append(query)
        return [*choices(self.stimuli.columns(), texts, self.wording)]


def row_keys(setting: Setting, *, kind: Kind, cased: bool) -> Iterator[QuestionKey]:
    """Yields the key of the question of each row; rows with the same question have equal keys.

    The key of a row with a sentence is the sentence. The key of a row with a blank is a pair: the
    text around the blank, and the grammatical number of the verb that is right there, "singular" or
    "plural" (None if the diagnostic has no verbs).

    Args:
        setting: the rows, as they are asked.
        kind: of the model. Causal models read the left context only.
        cased: whether the model tells "A" from "a". If so, contexts begin with a capital where the
            diagnostic says so (`Diagnostic.capitalise`).
    """
    columns = setting.stimuli.columns()
    diagnostic = setting.stimuli.diagnostic
    n_rows = len(columns["id"])
    if diagnostic.asks == "sentence":
        regions_of_rows = setting.stimuli.regions or [[]] * n_rows
        for text, regions in zip(columns["sentence"], regions_of_rows, strict=True):
            yield Sentence(text, _cuts_within_words(text, regions), setting.entropy)
        return
    numbers = columns["number"] if diagnostic.has_verbs else [None] * n_rows
    spaces = columns.get("gap_spaces", [""] * n_rows)
    for context, right_context, gap_space, number in zip(
        columns["context"], columns["right_context"], spaces, numbers, strict=True
    ):
        if diagnostic.capitalise and cased:
            context = with_first_letter(context, "upper")
        space_before, space_after = GAP_SPACES[gap_space]
        if kind == "causal":
            yield Query(context, space_before=space_before), number
        else:
            yield Query(context, right_context, space_before, space_after), number


def _cuts_within_words(text: str, regions: Iterable[Mapping[str, Any]]) -> tuple[int, ...]:
    """Returns the positions within words at which a region begins or ends, ascending.

    For example, 2 for the regions "do" and "n't" of "don't". Models read such a word in two parts.

    Args:
        regions: `start` and `end` of each, in characters of the text.
    """
    edges = set()
    for region in regions:
        if region["start"] < region["end"]:  # not empty
            edges |= {region["start"], region["end"]}
    return tuple(
        sorted(  # edges with a visible character on both sides
            edge
            for edge in edges
            if text[edge - 1 : edge].strip() and text[edge : edge + 1].strip()
        )
    )


def distinct_questions(
    settings: Iterable[Setting], *, kind: Kind, cased: bool
) -> list[list[Question | Sentence]]:
    """Returns the distinct questions of all settings in parts; a question is in one part only.

    A part has the questions of one task, of its unperturbed rows or of its perturbed ones. Parts
    never share a batch, so that the answers to a part are the same to the last bit whatever else is
    asked. A question that several parts need is in the first of them.

    Args:
        settings: rows, as they are asked.
        kind: of the model; a causal model reads the left context alone.
        cased: whether the model tells "A" from "a".
    """
    # key of a question -> the words to score there, in order of first appearance
    words_of_key: dict[QuestionKey, dict[str, None]] = {}
    # (task, whether its rows are unperturbed) -> keys of the questions that are new in this part
    parts: dict[tuple[str, bool], list[QuestionKey]] = {}
    entropy = False
    for setting in settings:
        entropy |= setting.entropy
        part = (setting.stimuli.task, setting.perturbation == "none")
        for key, words in _keys_and_words(setting, kind, cased):
            if key not in words_of_key:
                words_of_key[key] = {}
                parts.setdefault(part, []).append(key)
            words_of_key[key] |= dict.fromkeys(words)

    def to_question(key: QuestionKey) -> Question | Sentence:
        """Returns the question of a key, with all words that are scored there."""
        if isinstance(key, Sentence):
            return key
        query, number = key
        return Question(query, tuple(words_of_key[key]), number, entropy)

    return [[to_question(key) for key in keys] for keys in parts.values()]


def _keys_and_words(
    setting: Setting, kind: Kind, cased: bool
) -> Iterator[tuple[QuestionKey, tuple[str, ...]]]:
    """Yields, of each question of a setting, its key and the words to score at its blank.

    The words are the target of a row, or the labels "1", "2" ... of a choice. For a sentence, of
    which all words are scored, the caller does not use them.
    """
    if setting.wording is not None:
        for choice in setting.choices(cased=cased):
            yield (choice.query, None), choice.labels
        return
    columns = setting.stimuli.columns()
    keys = row_keys(setting, kind=kind, cased=cased)
    targets = columns.get("target", columns["id"])  # sentences have no targets: any text will do
    for key, target in zip(keys, targets, strict=True):
        yield key, (target,)


def with_first_letter(context: str, case: FirstLetter) -> str:
    """Returns a context with its first letter in upper or lower case; "as-is" changes nothing.

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
    """Returns the answers to the questions of a setting as one prediction per row, in row order.

    Rows that share a question get the same answer, and each reads the score of its own target.

    Args:
        setting: the rows, as they were asked.
        answers: key of a question (see `row_keys`) -> the model's answer.
        kind, cased: of the model.
    """
    columns = setting.stimuli.columns()
    # choices between the rows of a contrast
    if setting.wording is not None:
        return choice_predictions(
            setting.choices(cased=cased), answers, columns["id"],
            perturbation=setting.perturbation, run=setting.run,
        )  # fmt: skip
    answers_of_rows = [answers[key] for key in row_keys(setting, kind=kind, cased=cased)]
    no_values: list[Any] = [None] * len(answers_of_rows)
    entropies: list[list[float | None] | None] = []
    if setting.stimuli.diagnostic.asks == "sentence":
        # No diagnostic of sentences has perturbations: the setting keeps its default, "none".
        if setting.entropy:  # for each row a list with a value for each word
            entropies = [[*answer.entropies] for answer in answers_of_rows]
        return Predictions(
            id=list(columns["id"]),
            log_prob=[answer.log_prob for answer in answers_of_rows],
            rank=no_values,
            n_tokens=[answer.n_tokens for answer in answers_of_rows],
            top_words=no_values,
            top_log_probs=no_values,
            words=[answer.words for answer in answers_of_rows],
            entropies=entropies,
        )
    # words at a blank
    scores = [  # of the target of each row
        answer.words[target]
        for answer, target in zip(answers_of_rows, columns["target"], strict=True)
    ]
    if setting.entropy:  # for each row a list with the one value at the blank
        entropies = [[answer.entropy] for answer in answers_of_rows]
    return Predictions(
        id=list(columns["id"]),
        log_prob=[score.log_prob for score in scores],
        rank=[score.rank for score in scores],
        n_tokens=[score.n_tokens for score in scores],
        top_words=[list(answer.top_words) for answer in answers_of_rows],
        top_log_probs=[list(answer.top_log_probs) for answer in answers_of_rows],
        perturbation=setting.perturbation,
        run=setting.run,
        agreement=[answer.agreement for answer in answers_of_rows],
        entropies=entropies,
    )
