"""What turns questions into rows for a loaded model, as its options say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from lmdiag.models.loading.options import LoadOptions
from lmdiag.models.tokens.encoders import (
    SENTINEL,
    CausalEncoder,
    MaskedEncoder,
    QuestionEncoder,
    Seq2SeqEncoder,
)
from lmdiag.models.tokens.framing import SLOT, Framing, chat_prompt
from lmdiag.models.tokens.sentences import SentenceEncoder
from lmdiag.models.tokens.spelling import Pieces, Spelling
from lmdiag.protocol import Bos
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from lmdiag.models.loading.load import Parts

_LIMITS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length")
"""Where configurations keep the longest input."""

_KEPT = ("index_topk", "indexer_budget", "keep_window_size")
"""Where configurations keep how many tokens a token sees, the best ones of a longer text."""

_UNLIMITED = ("t5", "mt5", "umt5", "longt5", "switch_transformers")
"""Types whose `n_positions` is the length of their training inputs, not a limit."""


def question_encoder(
    model_id: str, parts: Parts, options: LoadOptions, limit: int | None
) -> QuestionEncoder:
    """Returns the encoder of the model's kind; `limit` is the longest input in tokens."""
    tokenizer = parts.tokenizer
    if parts.kind == "causal":
        return causal_encoder(model_id, tokenizer, options, limit)
    given = "--prompt" if options.prompt else ""
    given = "--chat" if options.chat else given
    given = "--elicitation choice" if options.elicitation == "choice" else given
    if given:
        raise BadInput(
            f"model {model_id} is not causal, and {given} is for models that continue a text: "
            "leave it out"
        )
    spelling = Spelling(tokenizer, model_id, final_period=options.final_period == "always")
    framing = Framing(options)
    if parts.kind == "masked":
        return MaskedEncoder(spelling, limit, framing, tokenizer.mask_token_id)
    start, model_type = parts.model.config.decoder_start_token_id, parts.model.config.model_type
    sentinel = tokenizer.get_vocab().get(SENTINEL)
    filler = tokenizer.mask_token_id if sentinel is None else sentinel
    if filler is None or start is None or (sentinel is None and model_type != "bart"):
        raise BadInput(
            f"model {model_id} is not supported: {model_type} is an encoder-decoder other than "
            f"BART, and its tokenizer does not have T5's {SENTINEL}"
        )
    return Seq2SeqEncoder(spelling, limit, framing, filler, start, sentinel is not None)


def causal_encoder(
    model_id: str, tokenizer: PreTrainedTokenizerFast, options: LoadOptions, limit: int | None
) -> CausalEncoder:
    """Returns the encoder of a causal model, of which only the tokenizer is needed."""
    spelling = Spelling(tokenizer, model_id, final_period=options.final_period == "always")
    prompt = options.prompt
    if options.chat:
        prompt = chat_prompt(tokenizer, options.instruction, model_id)
    # an assistant's turn begins without a space, unless the template writes one
    is_joined = options.chat and options.elicitation == "choice" and not prompt[-1].isspace()
    framing = Framing(options, prompt or SLOT, is_joined)
    bos = "never" if options.chat else options.bos  # a chat template has its own
    opening = _opening(spelling, bos, tokenizer.bos_token_id)
    if opening and spelling.text(framing.prompt)[: len(opening)] == opening:
        raise BadInput(
            f"model {model_id}: the prompt begins with {tokenizer.bos_token}, which stands "
            "before every context in any case: leave it out, or add --bos never"
        )
    return CausalEncoder(spelling, limit, framing, opening)


def _opening(spelling: Spelling, bos: Bos, bos_id: int | None) -> Pieces:
    """Returns the special tokens that stand before every text of a causal model.

    auto keeps what the tokenizer puts there, always adds the beginning-of-sequence token where it
    is missing, never leaves all of them out.
    """
    if bos == "never":
        return ()
    if bos == "auto" or (spelling.opening and bos_id in (None, *spelling.opening)):
        return spelling.opening
    if bos_id is None:
        raise BadInput(
            f"model {spelling.model_id}: its tokenizer has no beginning-of-sequence token: "
            "leave --bos always out"
        )
    return (bos_id, *spelling.opening)


def sentence_encoder(
    encoder: QuestionEncoder, tokenizer: PreTrainedTokenizerFast, options: LoadOptions
) -> SentenceEncoder | None:
    """Returns the encoder of whole sentences; None for an encoder-decoder.

    A causal model reads its own beginning-of-sequence token first where there is one and the
    tokenizer puts nothing before a text: otherwise the first word would have no probability.
    """
    spelling, limit = encoder.spelling, encoder.limit
    if isinstance(encoder, MaskedEncoder):
        special = spelling.opening, spelling.closing
        return SentenceEncoder(spelling, limit, *special, mask=encoder.mask, pll=options.pll)
    if not isinstance(encoder, CausalEncoder):
        return None
    lacks_one = not spelling.opening and tokenizer.bos_token_id is not None
    bos = "always" if options.bos == "auto" and lacks_one else options.bos
    opening = _opening(spelling, bos, tokenizer.bos_token_id)
    return SentenceEncoder(spelling, limit, opening, reads_end=options.unit == "word")


def reads_bos(encoder: QuestionEncoder, tokenizer: PreTrainedTokenizerFast) -> bool:
    """Whether a special token stands before the contexts of a causal model."""
    bos, prompt = tokenizer.bos_token, encoder.framing.prompt
    in_prompt = isinstance(bos, str) and prompt.startswith(bos)
    return isinstance(encoder, CausalEncoder) and (bool(encoder.opening) or in_prompt)


def padding_index(parts: Parts) -> int | None:
    """Returns the token id that a model leaves out when it counts positions; None for no such id.

    The embedding of positions has it, and the first position has the number after it (RoBERTa).
    """
    for name, module in parts.model.named_modules():
        if name.endswith("position_embeddings"):  # I-BERT's is no torch.nn.Embedding
            index = getattr(module, "padding_idx", None)
            return None if index is None else int(index)
    return None


def longest_input(parts: Parts) -> int | None:
    """Returns the longest input in tokens; None for a model without a limit.

    LongRoPE models (Phi-3 128k) have two sets of rotation factors, and the longest text of a batch
    selects the set for all: they are read up to the length of the first set, where a text's numbers
    do not depend on its batch. Models in which a token sees the best `_KEPT` tokens (DeepSeek-V3.2,
    GLM-5, Doge) are read up to that number: of equally good ones, such as a repeated word, the
    length of the text decides which are kept, so that longer texts are not read causally.
    """
    config = parts.model.config.get_text_config()
    if config.model_type in _UNLIMITED:
        return None
    padding = padding_index(parts)
    first_position = 0 if padding is None else padding + 1
    known = (getattr(config, name, None) for name in _LIMITS)
    limits = [int(limit) - first_position for limit in known if limit and limit > 0][:1]
    kept = (getattr(config, name, None) for name in _KEPT)
    limits += [int(limit) for limit in kept if limit]
    rope = getattr(config, "rope_parameters", None) or {}
    for parameters in (rope, *rope.values()):  # of all layers, or by kind of layer
        if isinstance(parameters, Mapping) and parameters.get("rope_type") == "longrope":
            end = parameters.get("original_max_position_embeddings")
            end = end or getattr(config, "original_max_position_embeddings", None)
            limits += [int(end)] if end else []
    return min(limits, default=None)
