"""Records of single items: what was asked, what the model answered, and how it was scored.

A row, contrast or item has one record for each measure and setting that it counts for.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from lmdiag.export.metrics import Over, is_of_model, metric_of, parameters_of
from lmdiag.perturb import NONE, is_shuffled, perturb
from lmdiag.report.choices import Choice, blank_choices, sentence_choices
from lmdiag.report.items import run_scores

if TYPE_CHECKING:
    from lmdiag.measures import Columns, Labels, Scores
    from lmdiag.results import Run


@dataclass(frozen=True)
class AskedRows:
    """The rows of one task as they were asked in one setting, with the answers.

    Attributes:
        task, setting: of the run.
        shuffle: its number in a shuffled setting, else None.
        columns: of the rows.
        levels: break-down -> level of each row.
        choices: the rows with their answers.
    """

    task: str
    setting: str
    shuffle: int | None
    columns: Columns
    levels: Mapping[str, Labels]
    choices: Sequence[Choice]

    def positions(self, over: Over) -> dict[str, list[int]]:
        """Returns id -> positions of its rows, for what the items of a measure are."""
        column = {"row": "id", "contrast": "contrast"}.get(over, "item")
        positions: dict[str, list[int]] = {}
        for position, name in enumerate(self.columns[column]):
            positions.setdefault(name, []).append(position)
        return positions


@dataclass(frozen=True)
class Exchange:
    """What an item was asked and what the model answered, in text.

    Attributes:
        raw: the text, with `____` for the blank; several texts one per line.
        reference: the right answers.
        answers: the answers of the model.
        extracted: the answer that was scored.
        method: how it was chosen among the answers.
        choices: the answers that were compared; None where any word could be the answer.
    """

    raw: str
    reference: Sequence[str]
    answers: Sequence[str]
    extracted: str
    method: str
    choices: Sequence[str] | None = None


def sample_records(run: Run) -> Iterator[dict[str, Any]]:
    """Yields the records of all items, without the keys that all records of a run share."""
    for task, parts in run.predictions.items():
        for setting, shuffle in parts:
            if setting not in run.results.tasks[task]:
                continue
            asked = _asked(run, task, setting, shuffle)
            for measure, scores in run_scores(run, task, setting, shuffle).items():
                over = metric_of(measure).over if is_of_model(measure) else None
                if over is not None:
                    yield from _of_measure(asked, measure, over, scores)


def _asked(run: Run, task: str, setting: str, shuffle: int) -> AskedRows:
    stimuli = run.stimuli[task]
    if setting != NONE:
        stimuli = perturb(stimuli, setting, shuffle, run.results.protocol.seed)
    rows, said = stimuli.columns(), run.predictions[task][setting, shuffle]
    read = sentence_choices if stimuli.diagnostic.asks == "sentence" else blank_choices
    return AskedRows(
        task,
        setting,
        shuffle if is_shuffled(task, setting) else None,
        rows,
        stimuli.diagnostic.levels(rows),
        list(read(rows, said, run.results.model.cased)),
    )


def _of_measure(
    asked: AskedRows, measure: str, over: Over, scores: Scores
) -> Iterator[dict[str, Any]]:
    positions = asked.positions(over)
    is_share = scores.statistic in ("proportion", "share")
    for item, value in zip(scores.items.tolist(), scores.values.tolist(), strict=True):
        owner, _, number = item.rpartition("/") if over == "prediction" else (item, "", "")
        rows = positions[owner]
        choices = [asked.choices[row] for row in rows]
        if over == "row":
            exchange = _row(choices[0], measure)
        elif over == "contrast":
            exchange = _contrast(choices, measure)
        else:
            formulas = asked.columns["formulas"][rows[0]]
            exchange = _item(choices, [formulas[int(number) - 1]] if number else formulas)
        yield {
            "evaluation_name": evaluation_name(asked.task, asked.setting),
            "evaluation_result_id": result_id(asked.task, asked.setting, measure),
            "sample_id": _sample_id(asked, item),
            **_as_record(exchange),
            "evaluation": {"score": value, "is_correct": is_share and value == 1},
            "metadata": _metadata(asked, rows),
        }


def evaluation_name(task: str, setting: str, by: str = "", level: str = "") -> str:
    """Returns the name of an evaluation.

    >>> evaluation_name("role88", "none"), evaluation_name("cprag102", "shuf", "constraint", "low")
    ('lmdiag.role88', 'lmdiag.cprag102.shuf.constraint.low')
    """
    return ".".join(
        ["lmdiag", task, *([setting] if setting != NONE else []), *filter(None, [by, level])]
    )


def result_id(task: str, setting: str, measure: str, by: str = "", level: str = "") -> str:
    """Returns the id of a figure in its run.

    >>> result_id("role88", "none", "accuracy@5")
    'role88/none/accuracy@5'
    """
    return "/".join([task, setting, measure, *([f"{by}={level}"] if by else [])])


def _sample_id(asked: AskedRows, item: str) -> str:
    """The id in the data set; of other contexts, with the setting and the shuffle."""
    if asked.setting == NONE:
        return item
    shuffle = [] if asked.shuffle is None else [str(asked.shuffle)]
    return "/".join([item, asked.setting, *shuffle])


def _as_record(exchange: Exchange) -> dict[str, Any]:
    question = {"raw": exchange.raw, "reference": list(exchange.reference)}
    # SHA-256 of question and reference, by the recipe of Every Eval Ever.
    hashed = json.dumps(question, sort_keys=True, separators=(",", ":")).encode()
    choices = {} if exchange.choices is None else {"choices": list(exchange.choices)}
    return {
        "sample_hash": hashlib.sha256(hashed).hexdigest(),
        "interaction_type": "single_turn",
        "input": question | choices,
        "output": {"raw": list(exchange.answers)},
        "answer_attribution": [
            {
                "turn_idx": 0,
                "source": "output.raw",
                "extracted_value": exchange.extracted,
                "extraction_method": exchange.method,
                "is_terminal": True,
            }
        ],
    }


def _metadata(asked: AskedRows, rows: Sequence[int]) -> dict[str, str]:
    """Returns what is known of the rows: their levels, and the scores of their words."""
    choices = [asked.choices[row] for row in rows]
    first = choices[0]
    return as_texts(
        {
            "task": asked.task,
            "setting": asked.setting,
            "shuffle": asked.shuffle,
            **{by: levels[rows[0]] for by, levels in asked.levels.items()},
            "rows": [choice.id for choice in choices],
            "log_probs": [_finite(choice.log_prob) for choice in choices],
            "ranks": None if first.is_sentence else [choice.rank for choice in choices],
            "n_tokens": [choice.n_tokens for choice in choices] if first.is_sentence else None,
            "top_log_probs": first.word_log_probs if len(choices) == 1 else None,
        }
    )


def _finite(log_prob: float | None) -> float | str | None:
    """A log-probability as JSON has it: that of a word with probability 0 is a text."""
    return "-inf" if log_prob == float("-inf") else log_prob


def as_texts(facts: Mapping[str, Any]) -> dict[str, str]:
    """Returns the facts that are known, with texts as values, as the schema has them."""
    return {
        name: value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
        for name, value in facts.items()
        if value is not None
    }


# ---- what an item was asked ----------------------------------------------------------------------


def _row(choice: Choice, measure: str) -> Exchange:
    """A blank at which any word could be the answer, or a sentence that is not compared."""
    name = measure.partition("@")[0]
    if name in ("surprisal", "surprisal_per_word", "rank"):
        target = choice.target or choice.sentence
        return Exchange(choice.sentence, [target], [target], target, "log-probability")
    k = parameters_of(measure)["k"]
    top = choice.top[: int(k)]
    words = [entry.word for entry in top]
    if name == "determiner_match":
        determiner = choice.context.rsplit(maxsplit=1)[-1]
        return Exchange(choice.sentence, [determiner], words, words[0], f"top {k}: {measure}")
    extracted = next((entry.word for entry in top if entry.expected), words[0])
    compared = "exactly" if choice.cased else "case-blind"
    method = f"top {k} compared {compared} with the reference"
    return Exchange(choice.sentence, choice.expected, words, extracted, method)


def _contrast(choices: Sequence[Choice], measure: str) -> Exchange:
    """The rows of a contrast, of which the model prefers the most probable one.

    If they have the same context, their targets are the choices, otherwise their sentences.
    """
    is_mean = measure == "sensitivity_mean"

    def value(choice: Choice) -> tuple[float, bool]:
        log_prob = float("-inf") if choice.log_prob is None else choice.log_prob
        return log_prob / (choice.n_tokens or 1) if is_mean else log_prob, not choice.good

    contexts = list(dict.fromkeys(choice.sentence for choice in choices))
    same = len(contexts) == 1 and not choices[0].is_sentence
    texts = [choice.target if same else filled(choice) for choice in choices]
    best = texts[max(range(len(choices)), key=lambda number: value(choices[number]))]
    good = [text for text, choice in zip(texts, choices, strict=True) if choice.good]
    method = "highest log-probability" + (" per token" if is_mean else "")
    return Exchange("\n".join(contexts), good, [best], best, method, texts)


def filled(choice: Choice) -> str:
    """Returns the sentence of a row with its target at the blank."""
    if choice.is_sentence:
        return choice.context
    end = choice.right_context
    space = " " if end[:1].isalnum() else ""
    return f"{choice.context} {choice.target}{space}{end}"


def _item(choices: Sequence[Choice], formulas: Sequence[str]) -> Exchange:
    """An item of a test suite: its sentences, and predictions on their surprisals."""
    sentences = "\n".join(f"{choice.condition}: {choice.sentence}" for choice in choices)
    bits = [f"{choice.condition}: {', '.join(map(str, choice.parts))}" for choice in choices]
    return Exchange(sentences, formulas, bits, "\n".join(bits), "formulas over surprisals in bits")
