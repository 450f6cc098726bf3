"""What turns questions into rows for a loaded model, as its options say."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lmdiag.models.loading.options import LoadOptions
from lmdiag.models.tokens.encoders import (
    SENTINEL,
    CausalEncoder,
    MaskedEncoder,
    QuestionEncoder,
    Seq2SeqEncoder,
    opening_tokens,
)
from lmdiag.models.tokens.framing import SLOT, Framing, chat_prompt
from lmdiag.models.tokens.sentences import SentenceEncoder
from lmdiag.models.tokens.spelling import Spelling
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from lmdiag.models.loading.load import Parts

_LIMITS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length")
"""Where configurations keep the longest input."""

_UNLIMITED = ("t5", "mt5", "umt5", "longt5", "switch_transformers")
"""Types whose `n_positions` is the length of their training inputs, not a limit."""


def question_encoder(
    model_id: str, parts: Parts, options: LoadOptions, limit: int | None
) -> QuestionEncoder:
    """Returns the encoder of the model's kind."""
    tokenizer = parts.tokenizer
    if parts.kind == "causal":
        return causal_encoder(model_id, tokenizer, options, limit)
    spelling = _spelling(model_id, tokenizer, options)
    framing = _framing(model_id, options)
    if parts.kind == "masked":
        return MaskedEncoder(spelling, limit, model_id, framing, tokenizer.mask_token_id)
    start, model_type = parts.model.config.decoder_start_token_id, parts.model.config.model_type
    sentinel = tokenizer.get_vocab().get(SENTINEL)
    filler = tokenizer.mask_token_id if sentinel is None else sentinel
    if filler is None or start is None or (sentinel is None and model_type != "bart"):
        raise BadInput(
            f"model {model_id} is not supported: {model_type} is an encoder-decoder other than "
            f"BART, and its tokenizer does not have T5's {SENTINEL}"
        )
    return Seq2SeqEncoder(spelling, limit, model_id, framing, filler, start, sentinel is not None)


def causal_encoder(
    model_id: str, tokenizer: PreTrainedTokenizerFast, options: LoadOptions, limit: int | None
) -> CausalEncoder:
    """Returns the encoder of a causal model, of which only the tokenizer is needed."""
    spelling = _spelling(model_id, tokenizer, options)
    prompt = options.prompt
    if options.chat:
        prompt = chat_prompt(tokenizer, options.instruction, model_id)
    framing = Framing.of(options, prompt or SLOT)
    bos = "never" if options.chat else options.bos  # a chat template has its own
    opening = opening_tokens(spelling, bos, tokenizer.bos_token_id, model_id)
    if opening and spelling.text(framing.prompt)[: len(opening)] == opening:
        raise BadInput(
            f"model {model_id}: the prompt begins with {tokenizer.bos_token}, which stands "
            "before every context in any case: leave it out, or add --bos never"
        )
    return CausalEncoder(spelling, limit, model_id, framing, opening)


def _spelling(model_id: str, tokenizer: PreTrainedTokenizerFast, options: LoadOptions) -> Spelling:
    try:
        return Spelling(tokenizer, final_period=options.final_period == "always")
    except BadInput as error:
        raise BadInput(f"model {model_id}: {error}") from error


def _framing(model_id: str, options: LoadOptions) -> Framing:
    """Returns how contexts are changed before a model that is not causal reads them."""
    if options.prompt or options.chat:
        given = "--chat" if options.chat else "--prompt"
        raise BadInput(
            f"model {model_id} is not causal, and {given} is for models that continue a text: "
            "leave it out"
        )
    return Framing.of(options)


def sentence_encoder(
    encoder: QuestionEncoder, tokenizer: PreTrainedTokenizerFast, options: LoadOptions
) -> SentenceEncoder | None:
    """Returns the encoder of whole sentences; None for an encoder-decoder."""
    spelling, limit, model_id = encoder.spelling, encoder.limit, encoder.model_id
    if isinstance(encoder, MaskedEncoder):
        special = spelling.opening, spelling.closing
        return SentenceEncoder(
            spelling, limit, model_id, *special, mask=encoder.mask, pll=options.pll
        )
    return (
        causal_sentences(encoder, tokenizer, options)
        if isinstance(encoder, CausalEncoder)
        else None
    )


def causal_sentences(
    encoder: CausalEncoder, tokenizer: PreTrainedTokenizerFast, options: LoadOptions
) -> SentenceEncoder:
    """Returns the encoder of whole sentences of a causal model.

    It reads its own beginning-of-sequence token first where there is one and the tokenizer puts
    nothing before a text: otherwise the first word would have no probability.
    """
    spelling, model_id, bos_id = encoder.spelling, encoder.model_id, tokenizer.bos_token_id
    lacks_one = options.bos == "auto" and not spelling.opening and bos_id is not None
    bos = "always" if lacks_one else options.bos
    opening = opening_tokens(spelling, bos, bos_id, model_id)
    reads_end = options.unit == "word"
    return SentenceEncoder(spelling, encoder.limit, model_id, opening, reads_end=reads_end)


def reads_bos(encoder: QuestionEncoder, tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether a special token stands before the contexts of a causal model."""
    bos, prompt = tokenizer.bos_token, encoder.framing.prompt
    in_prompt = isinstance(bos, str) and prompt.startswith(bos)
    return isinstance(encoder, CausalEncoder) and (bool(encoder.opening) or in_prompt)


def first_position(parts: Parts) -> int:
    """Returns the number of a text's first position where the model is given positions.

    Embeddings of positions that keep a padding index count from the one after it (RoBERTa).
    """
    import torch

    for name, module in parts.model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            return 0 if module.padding_idx is None else int(module.padding_idx) + 1
    return 0


def longest_input(parts: Parts) -> int | None:
    """Returns the longest input in tokens; None for a model without a limit.

    LongRoPE models (Phi-3 128k) have two sets of rotation factors, and the longest text of a batch
    selects the set for all: they are read up to the length of the first set, where a text's numbers
    do not depend on its batch.
    """
    config = parts.model.config.get_text_config()
    if config.model_type in _UNLIMITED:
        return None
    limits = [getattr(config, name, None) for name in _LIMITS]
    limit = next((int(limit) for limit in limits if limit and limit > 0), None)
    if limit is None:
        return None
    return min([limit, *_longrope_boundaries(config)]) - first_position(parts)


def _longrope_boundaries(config: Any) -> Iterator[int]:
    """Yields the lengths up to which the short factors are used, one per kind of layer."""
    rope = getattr(config, "rope_parameters", None) or {}
    for parameters in (rope, *rope.values()):  # of all layers, or by kind of layer
        if isinstance(parameters, Mapping) and parameters.get("rope_type") == "longrope":
            boundary = parameters.get("original_max_position_embeddings")
            if boundary := boundary or getattr(config, "original_max_position_embeddings", None):
                yield int(boundary)
