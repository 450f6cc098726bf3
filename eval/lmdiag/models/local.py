"""A model whose weights are in this process, and how it is put together from its parts."""

from __future__ import annotations

import gc
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import cached_property
from typing import Any, cast

import torch

from lmdiag.asking.protocol import layer_numbers
from lmdiag.models.answers import answers, refuse_nan
from lmdiag.models.forward.layers import ORDINARY
from lmdiag.models.forward.packing import plan_batches
from lmdiag.models.forward.probing import check_layers, choose_layout
from lmdiag.models.forward.reader import Reader
from lmdiag.models.loading.errors import is_out_of_memory, one_line_errors
from lmdiag.models.loading.load import Parts, quiet
from lmdiag.models.loading.load_options import LoadOptions
from lmdiag.models.positions import longest_input
from lmdiag.models.sentences import SentenceScorer
from lmdiag.models.token_model import TokenModel, tokenizer_facts
from lmdiag.models.tokens.encoded_questions import EncodedQuestion
from lmdiag.models.tokens.encoded_sentences import Encoded, EncodedSentence
from lmdiag.models.tokens.encoders import question_encoder
from lmdiag.models.whole_words.search import WordSearch
from lmdiag.text import truncated
from lmdiag.types import Answer, BadInput, ModelInfo, Query, Question, Sentence, SentenceAnswer


@dataclass(eq=False)
class LocalModel(TokenModel):
    """A model with weights of transformers in this process.

    Attributes:
        parts: what it was put together from.
        reader: turns rows into distributions.
        words: answers in unit `word`; None in unit `token`.
    """

    parts: Parts
    reader: Reader
    words: WordSearch | None = None
    _verbs: Sequence[tuple[int, int]] | None = field(default=None, init=False)
    _fitting_tokens: int | None = field(default=None, init=False)
    """Tokens of a batch that should fit into memory; None until a batch does not fit."""

    @property
    def device(self) -> str:
        return str(self.reader.model.device)

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int:
        """Sets the verbs of EW and MW from (singular, plural) forms, and returns how many count.

        A verb counts if its two forms are two single tokens, whose ids are kept.
        """
        ids = []
        for forms in pairs:
            question = Question(Query("The old man", "it."), forms)  # any text with a verb
            pieces = self.encoder.encode(question).words
            singular, plural = pieces[forms[0]], pieces[forms[1]]
            if singular and plural and len(singular) == len(plural) == 1 and singular != plural:
                ids.append((singular[0], plural[0]))
        self._verbs = list(dict.fromkeys(ids))
        return len(self._verbs)

    def with_options(self, options: LoadOptions) -> LocalModel | None:
        """Returns a model with the same weights that is asked with other options.

        None where the new options may need weights of another dtype, so that it must be loaded
        again.
        """
        # With --dtype auto the unit can change the dtype: unit `word` needs float32, and unit
        # `token` has the checkpoint's own, but float32 on the CPU.
        on_cpu = self.reader.device.type == "cpu" and options.device_map is None
        has_dtype_of_words = options.unit == "word" and self.parts.model.dtype == torch.float32
        keeps_dtype = options.dtype != "auto" or options.unit == self.options.unit
        if not (keeps_dtype or on_cpu or has_dtype_of_words):
            return None
        return assemble(self.info.id, self.parts, options)

    def encode(self, question: Question | Sentence) -> Encoded:
        """Returns a question as rows of token ids; in unit `word` with those of its search."""
        if self.words is not None and isinstance(question, Question):
            return self.words.encode(question)
        return super().encode(question)

    def further_key_parts(self, encoded: Encoded) -> tuple[Any, ...]:
        """Returns what else the answer depends on: verbs, the search of words, layers.

        The order of the parts, and their types, are those of keys in journals of earlier runs: the
        `repr` of a key differs between () and [].
        """
        parts: tuple[Any, ...] = ()
        if isinstance(encoded, EncodedQuestion):
            verbs: Sequence[Any] = ()
            if encoded.question.number:
                verbs = self._verbs or []
            parts = (verbs,)
            if self.words is not None:
                # the name of the function that reuses contexts: it decides the rounding of answers
                parts = (*parts, self.words.reuse.__name__, encoded.is_after_space)
        return parts if self.layers == ORDINARY else (*parts, self.layers)

    def plan(self, encoded: Sequence[Encoded], batch_size: int | None = None) -> list[list[int]]:
        """Returns the numbers of the questions of each batch, by their tokens.

        `batch_size` is the number of questions in a batch; None for as many as the device takes.
        """
        budget = self.reader.sizes.budget
        has_sentences = any(isinstance(part, EncodedSentence) for part in encoded)
        if self.reader.causal and has_sentences:  # a distribution is read after each token
            budget = min(budget, self._scorer.most_reads)
        return plan_batches(
            encoded,
            budget=budget,
            count=batch_size,
            packed=self.reader.layout == "packed",
            causal=self.reader.causal,
        )

    @cached_property
    def _scorer(self) -> SentenceScorer:
        """Answers questions about sentences."""
        boundaries = None
        if self.words is not None and self.reader.causal:  # unit `word` corrects boundaries
            boundaries = self.words.boundaries
        return SentenceScorer(self.reader, self.info, boundaries)

    def at_layers(self, layers: Sequence[str | int]) -> LocalLayers:
        """Returns a model that shares the weights and answers after each of some layers.

        `layers` are numbers, or "all" alone. The last layer becomes None, the ordinary answer. What
        is set after a model was made (verbs, `report`, `check_key`) is not taken over.
        """
        last_layer = len(check_layers(self.reader, self.encoder))
        try:
            numbers = layer_numbers(layers, last_layer)
        except BadInput as error:
            raise BadInput(f"model {self.info.id}: {error}") from None
        # the arguments with which this model was made
        own_fields = {x.name: getattr(self, x.name) for x in fields(LocalModel) if x.init}
        own_fields["layers"] = tuple(None if n == last_layer else n for n in numbers)
        return LocalLayers(**own_fields)

    def answer(self, batch: Sequence[Encoded], top: int) -> list[Answer | SentenceAnswer]:
        """Returns the answers to a batch, in its order, with lists of `top` words."""
        # `layers` has one layer: of several, the model is a `LocalLayers`
        [answers_of_layer] = self.answers_by_layer(batch, top)
        return answers_of_layer

    def answers_by_layer(
        self, batch: Sequence[Encoded], top: int
    ) -> list[list[Answer | SentenceAnswer]]:
        """Returns for each layer the answers to a batch, in its order.

        Questions without rows, all of whose words are unscorable, are answered without the model.
        A batch that does not fit into memory is asked in halves, and so are later ones of its size.
        """
        answers_without_model = [
            part.unasked if isinstance(part, EncodedQuestion) else None for part in batch
        ]
        to_ask = [
            part for part, answer in zip(batch, answers_without_model, strict=True) if not answer
        ]
        model_answers = self._ask_or_halve(to_ask, top) if to_ask else [[] for _ in self.layers]
        if len(to_ask) == len(batch):
            return model_answers
        batch_answers = []
        for answers_of_layer in model_answers:
            # the model's answers, and between them those without the model, in the batch's order
            remaining = iter(answers_of_layer)
            batch_answers.append([answer or next(remaining) for answer in answers_without_model])
        return batch_answers

    def _ask_or_halve(
        self, batch: Sequence[Encoded], top: int
    ) -> list[list[Answer | SentenceAnswer]]:
        """Returns the answers after each layer; a batch that does not fit into memory is halved.

        Half the tokens of such a batch are what later batches may have: larger ones are halved
        without being tried.
        """
        n_tokens = sum(encoded.length for encoded in batch)
        should_fit = self._fitting_tokens is None or n_tokens <= self._fitting_tokens
        if len(batch) == 1 or should_fit:
            batch_answers = self._answers_if_they_fit(batch, top)
            if batch_answers is not None:
                return batch_answers
            self._fitting_tokens = n_tokens // 2
            gc.collect()
            if torch.accelerator.is_available():
                with suppress(AttributeError):  # torch before 2.9
                    torch.accelerator.empty_cache()
        # the batch did not fit, or is larger than what should fit
        middle = len(batch) // 2
        first_half = self._ask_or_halve(batch[:middle], top)
        second_half = self._ask_or_halve(batch[middle:], top)
        return [a + b for a, b in zip(first_half, second_half, strict=True)]

    def _answers_if_they_fit(self, batch: Sequence[Encoded], top: int) -> list[list[Any]] | None:
        """Returns for each layer the answers to a batch, in its order; None if memory runs out.

        A batch has sentences, or questions about words at blanks; of a question, one distribution
        is read for each of its partial words (beginnings of words, the empty one first).

        Raises `BadInput` if memory runs out for a single text, since it cannot be halved.
        """
        try:
            if isinstance(batch[0], EncodedSentence):
                sentences = cast("Sequence[EncodedSentence]", batch)
                return [*self._scorer.answer(sentences, self.report, self.layers)]
            questions = cast("Sequence[EncodedQuestion]", batch)
            if self.words is not None:  # unit `word`
                return [*self.words.answer(questions, top, self._verbs, self.layers)]
            rows = [row for encoded in questions for row in encoded.rows]
            # for the message of `refuse_nan`: the query that each distribution is about
            query_of_read = [
                encoded.question.query for encoded in questions for _ in encoded.partials
            ]
            answers_of_layers = []
            for log_probs in self.reader.read_layers(rows, self.layers):
                refuse_nan(query_of_read, log_probs, self.info)
                answers_of_layers.append(
                    answers(questions, log_probs, self.vocabulary, top, self._verbs)
                )
            return answers_of_layers
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            if len(batch) == 1:
                raise BadInput(
                    f"model {self.info.id} runs out of memory on the one text "
                    f"{truncated(batch[0].text)!r}: use a smaller --dtype, --device-map auto, "
                    "or another device"
                ) from error
            return None


class LocalLayers(LocalModel):
    """A model whose answer to a question is a tuple with an answer after each of its layers."""

    def answer(self, batch: Sequence[Encoded], top: int) -> list[Any]:
        """Returns for each question the tuple of its answers, in the order of `layers`."""
        return list(zip(*self.answers_by_layer(batch, top), strict=True))


def assemble(model_id: str, parts: Parts, options: LoadOptions) -> LocalModel:
    """Makes a model of its loaded network and tokenizer, and tries how the network may be run.

    `model_id` is its name in results and messages. Raises `BadInput` if it cannot be asked in this
    way.
    """
    encoder = question_encoder(model_id, parts, options, longest_input(parts.model))
    reader = Reader(parts.model, parts.tokenizer.pad_token_id, causal=parts.kind == "causal")
    info = ModelInfo(
        id=model_id,
        revision=options.revision,
        commit=parts.commit,
        kind=parts.kind,
        architecture=type(parts.model).__name__,
        dtype=str(parts.model.dtype).removeprefix("torch."),
        vocab_size=parts.model.config.get_text_config().vocab_size,
        n_parameters=parts.model.num_parameters(),
        training_step=parts.training_step,
        quantization=options.quantization,
        attention=getattr(parts.model.config, "_attn_implementation", None),
        n_layers=None if reader.layers is None else len(reader.layers),
        **tokenizer_facts(parts.tokenizer, encoder),
    )
    model = LocalModel(info, options, parts.warning, parts.tokenizer, encoder, parts, reader)
    dtype = info.dtype if options.dtype == "auto" else options.dtype  # for messages alone
    with quiet(), one_line_errors(model_id, dtype=dtype):
        choose_layout(reader, encoder)  # runs the model for the first time
        if options.unit == "word":
            model.words = WordSearch(encoder, reader, model.vocabulary, info)
        if options.layer is not None:
            # its check and its number; the model itself answers with one answer, not with a tuple
            model.layers = model.at_layers([options.layer]).layers
    return model
