"""A loaded model and its tokenizer put together into one that answers questions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from lmdiag.models.causal import CausalAsker, opening_tokens
from lmdiag.models.forward import Reader
from lmdiag.models.masked import MaskedAsker
from lmdiag.models.model import Model
from lmdiag.models.rows import Asker
from lmdiag.models.vocabulary import Vocabulary
from lmdiag.models.words import Spelling, is_cased
from lmdiag.schema import BadInput, ModelInfo

if TYPE_CHECKING:
    from lmdiag.models.loading import LoadOptions, Parts


def assemble(model_id: str, parts: Parts, options: LoadOptions) -> Model:
    """Returns the model that answers questions.

    Raises:
        BadInput: it cannot be asked rightly.
    """
    spelling = Spelling(parts.tokenizer)
    limit = max_length(parts)
    asker: Asker
    opening = spelling.opening
    if parts.kind == "masked":
        asker = MaskedAsker(spelling, parts.tokenizer.mask_token_id, limit, model_id)
    elif parts.kind == "causal":
        bos = parts.tokenizer.bos_token_id
        opening = opening_tokens(spelling, options.bos, bos, model_id)
        asker = CausalAsker(spelling, opening, limit, model_id)
    else:
        raise BadInput(f"model {model_id}: encoder-decoders cannot be asked yet")
    reader = Reader(parts.model, parts.tokenizer.pad_token_id or 0)
    info = _info(model_id, parts, options, limit, bos=bool(opening))
    return Model(info, asker, reader, Vocabulary(parts.tokenizer))


def max_length(parts: Parts) -> int | None:
    """Returns the longest input in tokens; None for a model without a limit.

    Embeddings of positions that keep a padding index count from the one after it (RoBERTa: 514
    entries, 512 tokens).
    """
    for name, module in parts.model.named_modules():
        padding = getattr(module, "padding_idx", None)
        if name.endswith("position_embeddings") and padding is not None:
            return int(module.num_embeddings) - int(padding) - 1
    if parts.config.model_type in ("mamba", "mamba2", "falcon_mamba", "rwkv", "t5", "mt5", "umt5"):
        return None
    names = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length")
    limits = [getattr(parts.config, name, None) for name in names]
    return next((int(limit) for limit in limits if limit and limit > 0), None)


def _info(
    model_id: str, parts: Parts, options: LoadOptions, limit: int | None, *, bos: bool
) -> ModelInfo:
    return ModelInfo(
        id=model_id,
        revision=options.revision,
        commit=parts.commit,
        kind=parts.kind,
        architecture=type(parts.model).__name__,
        dtype=parts.dtype,
        tokenizer=type(parts.tokenizer).__name__,
        cased=is_cased(parts.tokenizer),
        vocab_size=parts.config.get_text_config().vocab_size,
        n_parameters=parts.model.num_parameters(),
        max_length=limit,
        bos=bos and parts.kind == "causal",
        training_step=parts.training_step,
        quantization=parts.quantization,
        attention=parts.attention,
    )
