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
from lmdiag.models.token_model import TokenModel, facts_of_tokens
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
    _fits: int | None = field(default=None, init=False)

    @property
    def device(self) -> str:
        return str(self.reader.model.device)

    def set_verbs(self, pairs: Sequence[tuple[str, str]]) -> int:
        ids = []
        for forms in pairs:
            question = Question(Query("The old man", "it."), forms)
            singular, plural = map(self.encoder.encode(question).words.get, forms)
            if singular and plural and len(singular) == len(plural) == 1 and singular != plural:
                ids.append((singular[0], plural[0]))
        self._verbs = list(dict.fromkeys(ids))
        return len(self._verbs)

    def with_options(self, options: LoadOptions) -> LocalModel | None:
        on_cpu = self.reader.device.type == "cpu" and options.device_map is None
        is_float32 = options.unit == "word" and self.parts.model.dtype == torch.float32
        keeps_dtype = options.dtype != "auto" or options.unit == self.options.unit
        if not (keeps_dtype or on_cpu or is_float32):
            return None
        return assemble(self.info.id, self.parts, options)

    def encode(self, question: Question | Sentence) -> Encoded:
        if self.words is not None and isinstance(question, Question):
            return self.words.encode(question)
        return super().encode(question)

    def answered_by(self, encoded: Encoded) -> tuple[Any, ...]:
        # the order of these parts is that of keys in journals of earlier runs
        parts: tuple[Any, ...] = ()
        if isinstance(encoded, EncodedQuestion):
            parts = ((self._verbs or []) if encoded.question.number else (),)
            if self.words is not None:
                parts = (*parts, self.words.reuse.__name__, encoded.is_after_space)
        return parts if self.layers == ORDINARY else (*parts, self.layers)

    def plan(self, encoded: Sequence[Encoded], batch_size: int | None = None) -> list[list[int]]:
        budget = self.reader.sizes.budget
        reads_all = self.reader.causal and any(
            isinstance(part, EncodedSentence) for part in encoded
        )
        return plan_batches(
            encoded,
            budget=min(budget, self._scorer.most_reads) if reads_all else budget,
            count=batch_size,
            packed=self.reader.layout == "packed",
            causal=self.reader.causal,
        )

    @cached_property
    def _scorer(self) -> SentenceScorer:
        """Answers questions about sentences."""
        boundaries = self.words.boundaries if self.words and self.reader.causal else None
        return SentenceScorer(self.reader, self.info, boundaries)

    def at_layers(self, layers: Sequence[str | int]) -> LocalLayers:
        layers_found = check_layers(self.reader, self.encoder)
        try:
            numbers = layer_numbers(layers, len(layers_found))
        except BadInput as error:
            raise BadInput(f"model {self.info.id}: {error}") from None
        own_fields = {x.name: getattr(self, x.name) for x in fields(LocalModel) if x.init}
        layer_of_number = tuple(
            None if number == len(layers_found) else number for number in numbers
        )
        return LocalLayers(**own_fields | {"layers": layer_of_number})

    def answer(self, batch: Sequence[Encoded], top: int) -> list[Answer | SentenceAnswer]:
        [answered] = self.answers_by_layer(batch, top)
        return answered

    def answers_by_layer(
        self, batch: Sequence[Encoded], top: int
    ) -> list[list[Answer | SentenceAnswer]]:
        """Returns the answers after each layer, see `Model.answer`.

        A batch that does not fit into memory is asked in halves, and so are later ones of its size.
        """
        known_answers = [
            part.unasked if isinstance(part, EncodedQuestion) else None for part in batch
        ]
        to_ask = [part for part, answer in zip(batch, known_answers, strict=True) if not answer]
        new_answers = self._ask_or_halve(to_ask, top) if to_ask else [[] for _ in self.layers]
        if len(to_ask) == len(batch):
            return new_answers
        unused_answers = [iter(answers) for answers in new_answers]
        return [
            [answer or next(layer_answers) for answer in known_answers]
            for layer_answers in unused_answers
        ]

    def _ask_or_halve(
        self, batch: Sequence[Encoded], top: int
    ) -> list[list[Answer | SentenceAnswer]]:
        """Returns the answers after each layer; a batch that does not fit into memory is halved.

        What did not fit is remembered: later batches of that size are halved at once.
        """
        size = sum(encoded.length for encoded in batch)
        if len(batch) == 1 or self._fits is None or size <= self._fits:
            batch_answers = self._try(batch, top)
            if batch_answers is not None:
                return batch_answers
            self._fits = size // 2
            gc.collect()
            if torch.accelerator.is_available():
                with suppress(AttributeError):  # torch before 2.9
                    torch.accelerator.empty_cache()
        middle = len(batch) // 2
        halves = (self._ask_or_halve(half, top) for half in (batch[:middle], batch[middle:]))
        return [first + second for first, second in zip(*halves, strict=True)]

    def _try(self, batch: Sequence[Encoded], top: int) -> list[list[Any]] | None:
        """Returns the answers to a batch after each layer; None if memory runs out.

        A batch of one text cannot be divided further: then `BadInput`.
        """
        try:
            if isinstance(batch[0], EncodedSentence):
                sentences = cast("Sequence[EncodedSentence]", batch)
                return [*self._scorer.answer(sentences, self.report, self.layers)]
            blanks = cast("Sequence[EncodedQuestion]", batch)
            if self.words is not None:
                return [*self.words.answer(blanks, top, self._verbs, self.layers)]
            rows = [row for encoded in blanks for row in encoded.rows]
            queries = [encoded.question.query for encoded in blanks for _ in encoded.partials]
            answers_of_layers = []
            for log_probs in self.reader.read_layers(rows, self.layers):
                refuse_nan(queries, log_probs, self.info)
                answers_of_layers.append(
                    answers(blanks, log_probs, self.vocabulary, top, self._verbs)
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
    """The same model, whose answer is a tuple of its answers after each of its layers."""

    def answer(self, batch: Sequence[Encoded], top: int) -> list[Any]:
        return [*zip(*self.answers_by_layer(batch, top), strict=True)]


def assemble(model_id: str, parts: Parts, options: LoadOptions) -> LocalModel:
    """Puts a network and its tokenizer together; `BadInput` if the model cannot be queried."""
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
        **facts_of_tokens(parts.tokenizer, encoder),
    )
    model = LocalModel(info, options, parts.warning, parts.tokenizer, encoder, parts, reader)
    dtype = info.dtype if options.dtype == "auto" else options.dtype
    with quiet(), one_line_errors(model_id, dtype=dtype):
        choose_layout(reader, encoder)
        if options.unit == "word":
            model.words = WordSearch(encoder, reader, model.vocabulary, info)
        if options.layer is not None:
            model.layers = model.at_layers([options.layer]).layers
    return model
