"""Finished runs of invented models, and predictions for rows, for tests that need no real model."""

import json
import math
import random
import re
from itertools import pairwise

from lmdiag.asking.protocol import Predictions, Protocol
from lmdiag.asking.questions import row_keys
from lmdiag.measures import AGREEMENT_LAYOUT
from lmdiag.results import RESULTS
from lmdiag.runs.asking import predict
from lmdiag.runs.inputs import load_inputs
from lmdiag.runs.run_model import save
from lmdiag.types import (
    AS_IT_IS,
    DIAGNOSTICS,
    Answer,
    ModelInfo,
    Sentence,
    SentenceAnswer,
    WordScore,
    WordSpan,
)

PERTURBED = Protocol(perturb=("shuf", "trunc", "shuf_trunc", "obj", "sub", "both"), shuffles=3)
ONE_TASK = Protocol(tasks=("role88",))
WITH_AGREEMENT = Protocol(tasks=(*DIAGNOSTICS, "agreement"))
FILLERS = tuple(f"filler{index}" for index in range(20))


def model_info(**changes):
    """The facts of a model of the Hub."""
    facts = {
        "id": "org/model", "revision": None, "commit": "a" * 40, "kind": "masked",
        "architecture": "BertForMaskedLM", "dtype": "float32", "tokenizer": "BertTokenizer",
        "cased": False, "vocab_size": 30522, "n_parameters": 110_000_000, "max_length": 512,
    }  # fmt: skip
    return ModelInfo(**facts | changes)


def make_run(
    folder, data, protocol=None, *, skill=1.0, seed=0, unscorable=0, fillers=FILLERS,
    table=AS_IT_IS, **facts,
):  # fmt: skip
    """Writes the run directory of an invented model, whose results.json tests may edit.

    Args:
        folder: the run directory.
        data: of the data set.
        protocol: what is asked; by default the three diagnostics, or what else the data have.
        skill: nats that good and expected words have before others, on average; of sentences, in
            their last word, and in suites before conditions that begin with "mis".
        seed: of the distributions.
        unscorable: rows of each setting, from the first on, whose target, or last word, the
            tokenizer cannot represent.
        fillers: words of the vocabulary beside those of the rows.
        table: how the data are read.
        facts: of the model, see `model_info`.
    """
    inputs = load_inputs(str(data), protocol or Protocol(tasks=()), table=table)
    model = InventedModel(inputs, model_info(**facts), skill, seed, unscorable, fillers)
    folder.mkdir(parents=True, exist_ok=True)
    answers = predict(model, inputs.settings, top=inputs.protocol.top)
    results = save(folder, model, inputs, *answers, 1, {"load": 1.0, "ask": 2.0})
    record = results.to_json() | {"finished": "2025-03-01T12:00:00+00:00"}
    record["table"] = table.stored()
    (folder / RESULTS).write_text(json.dumps(record, indent=1, allow_nan=False))
    return folder


class FakeModel:
    """A model without torch; see `lmdiag.models.model`. A subclass has `info` and `reply`."""

    device = "cpu"
    prompt, check_key, warning = "", "", None

    def set_verbs(self, pairs):
        """Does nothing: EW and MW are invented, too."""

    def control_names(self, texts):
        return [[] for _ in texts]

    def encode(self, question):
        return question

    def plan(self, encoded, batch_size=None):
        return [[number] for number in range(len(encoded))]

    def answer(self, batch, top):
        return [self.reply(question, top) for question in batch]

    def key(self, encoded, top):
        return repr((encoded, top))

    def with_options(self, options):
        return None


class InventedModel(FakeModel):
    """A model with random distributions, the same for the same question; see `make_run`."""

    def __init__(self, inputs, info, skill, seed, unscorable, fillers):
        self.info, self._skill, self._seed = info, skill, seed
        self._words = {}  # of a blank -> whether it is good
        self._good = {}  # sentence -> whether it is
        self._unscorable = set()
        for setting in inputs.settings:
            columns = setting.stimuli.columns()
            if "sentence" in columns:
                good = columns.get("good") or [c[:3] != "mis" for c in columns["condition"]]
                self._good |= dict(zip(columns["sentence"], good, strict=True))
                self._unscorable |= {*columns["sentence"][:unscorable]}
                continue
            queries = [key[0] for key in row_keys(setting, kind=info.kind, cased=info.cased)]
            good = columns.get("good", [False] * len(queries))
            rows = [*zip(queries, columns["target"], good, columns["expected"], strict=True)]
            for query, target, is_good, expected in rows:
                words = self._words.setdefault(query, dict.fromkeys(fillers, False))
                words[target.lower()] = words.get(target.lower(), False) or bool(is_good)
                words |= {word.lower(): True for word in expected}
            self._unscorable |= {(query, target) for query, target, *_ in rows[:unscorable]}

    def reply(self, question, top):
        if isinstance(question, Sentence):
            return self._read(question)
        context, right_context, *_ = question.query
        asked = f"Query({context=}, {right_context=})"  # the expected tables are of these seeds
        draw = random.Random(f"{self._seed} {asked}")
        labels = dict.fromkeys((*question.words, "other"), False)
        good = self._words.get(question.query, labels)  # labels: of a choice
        logits = {word: draw.gauss(self._skill if good[word] else 0.0, 1.0) for word in good}
        total = math.log(sum(map(math.exp, logits.values())))
        ranked = sorted(good, key=lambda word: (-logits[word], word))
        scores = {
            word: WordScore(None, None, 0)
            if (question.query, word) in self._unscorable
            else WordScore(logits[word.lower()] - total, 1 + ranked.index(word.lower()), 1)
            for word in question.words
        }
        best = tuple(ranked[:top])
        shares = tuple(draw.random() for _ in AGREEMENT_LAYOUT) if question.number else None
        return Answer(scores, best, tuple(logits[word] - total for word in best), shares)

    def _read(self, sentence):
        text, spans = sentence.text, []
        bounds = [x for word in re.finditer(r"\S+", text) for x in word.span()]
        words = pairwise(sorted({*bounds, *sentence.cuts}))
        for start, end in words:
            if text[start:end].isspace():
                continue
            draw = random.Random(f"{self._seed} {text[:end]}")
            is_last = end == bounds[-1]
            bonus = 0 if self._good[text] else self._skill * is_last
            is_known = not (is_last and text in self._unscorable)
            has_context = spans or self.info.kind != "causal" or self.info.bos
            log_prob = -draw.gammavariate(2, 2.5) - bonus if is_known and has_context else None
            spans.append(WordSpan(start, end, log_prob, is_known * (1 + (end - start > 6))))
        return SentenceAnswer(tuple(spans))


def json_lines(path, *rows):
    """Writes rows, given as objects or as text, as JSON lines; returns the path."""
    lines = [row if isinstance(row, str) else json.dumps(row) for row in rows]
    path.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    return path


def rows_of(*rows):
    """Columns of rows; what a row leaves out is filled in with something that does no harm."""
    filler = {"item": "1", "condition": "c", "context": "A", "right_context": "", "expected": []}
    filled = [{**filler, "target": f"w{i}", **row} for i, row in enumerate(rows)]
    names = dict.fromkeys(name for row in filled for name in row)
    return {name: [row.get(name) for row in filled] for name in names}


def predictions_of(rows, log_prob=None, top_words=None, **more):
    """Predictions for rows, with None for all that is not given."""
    nothing = [None] * len(rows["id"])
    columns = dict.fromkeys(("rank", "n_tokens", "top_log_probs"), nothing)
    given = {"log_prob": list(log_prob or nothing), "top_words": list(top_words or nothing)}
    return Predictions(**{"id": list(rows["id"])} | columns | given | more)


def perfect(rows):
    """An expected word on top, and all the mass on good completions."""
    tops = padded([words[:1] for words in rows["expected"]])
    return predictions_of(rows, [0.0 if good else -math.inf for good in rows["good"]], tops)


def padded(tops, n=10):
    """Lists of n top words that begin with the given words."""
    return [[*words, *["-"] * n][:n] for words in tops]


def uniform(rows):
    """Every word as probable as any other; the top words are no words of the rows."""
    n = len(rows["id"])
    return predictions_of(rows, [-math.log(30522)] * n, [["[PAD]", "[unused0]"] * 5] * n)


def by_name(scores):
    """Scores by the name of their measure."""
    return {one.name: one for one in scores}
