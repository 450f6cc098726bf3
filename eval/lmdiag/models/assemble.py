"""A loaded model and its tokenizer put together into one that answers questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from lmdiag.models.causal import CausalAsker, opening_tokens
from lmdiag.models.forward import Reader
from lmdiag.models.layout import settle
from lmdiag.models.masked import MaskedAsker
from lmdiag.models.model import Model
from lmdiag.models.probing import check_precision, probing
from lmdiag.models.rows import Asker
from lmdiag.models.search import WordSearch
from lmdiag.models.seq2seq import SENTINEL, Seq2SeqAsker, prompt_for
from lmdiag.models.vocabulary import Vocabulary
from lmdiag.models.words import Spelling, is_cased
from lmdiag.schema import BadInput, ModelInfo

if TYPE_CHECKING:
    import torch

    from lmdiag.models.loading import Parts
    from lmdiag.models.options import LoadOptions


LIMITS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length")
"""Where configurations keep the longest input."""

UNLIMITED = ("t5", "mt5", "umt5", "longt5", "switch_transformers")
"""Types whose `n_positions` is the length of their training inputs, not a limit."""


def assemble(model_id: str, parts: Parts, options: LoadOptions) -> Model:
    """Returns the model that answers questions.

    Raises:
        BadInput: it cannot be asked rightly.
    """
    try:
        spelling = Spelling(parts.tokenizer)
    except BadInput as error:
        raise BadInput(f"model {model_id}: {error}") from error
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
        asker = _seq2seq(model_id, parts, spelling, limit)
    reader = Reader(
        parts.model,
        _padding(parts),
        causal=parts.kind == "causal",
        first_position=first_position(parts),
    )
    info = _info(model_id, parts, options, limit, bos=bool(opening))
    vocabulary = Vocabulary(parts.tokenizer)
    words = None
    with probing(model_id):
        settle(reader, asker, options.packing, model_id)
        if options.unit == "word":
            check_precision(parts.model, model_id)
            words = WordSearch(asker, reader, vocabulary, info)
    return Model(info, asker, reader, vocabulary, words)


def _padding(parts: Parts) -> int:
    """Returns the id that fills up short rows: any that the model embeds, for it is masked.

    Padding tokens that were added to a tokenizer after training often have no embedding.
    """
    pad = parts.tokenizer.pad_token_id
    rows = len(cast("torch.Tensor", parts.model.get_input_embeddings().weight))
    return pad if pad is not None and pad < rows else 0


def _seq2seq(model_id: str, parts: Parts, spelling: Spelling, limit: int | None) -> Seq2SeqAsker:
    """Returns what asks an encoder-decoder: by sentinel (T5 family) or by mask (BART)."""
    start = parts.config.decoder_start_token_id
    sentinel = parts.tokenizer.get_vocab().get(SENTINEL)
    filler = parts.tokenizer.mask_token_id if sentinel is None else sentinel
    if filler is None or start is None or (sentinel is None and parts.config.model_type != "bart"):
        raise BadInput(
            f"model {model_id} ({parts.config.model_type}) was not trained to fill a blank in a "
            f"text: its tokenizer has no {SENTINEL}, as T5's has, and it is no BART"
        )
    return Seq2SeqAsker(spelling, filler, prompt_for(start, sentinel), limit, model_id)


def first_position(parts: Parts) -> int:
    """Returns the number of a text's first position where the model is given positions.

    Embeddings of positions that keep a padding index count from the one after it (RoBERTa).
    """
    table = _positions(parts)
    return 0 if table is None or table.padding_idx is None else int(table.padding_idx) + 1


def _positions(parts: Parts) -> torch.nn.Embedding | None:
    """Returns the model's table of learnt positions, if it has one by that name."""
    import torch

    for name, module in parts.model.named_modules():
        if name.endswith("position_embeddings") and isinstance(module, torch.nn.Embedding):
            return module
    return None


def max_length(parts: Parts) -> int | None:
    """Returns the longest input in tokens; None for a model without a limit."""
    config = parts.config.get_text_config()
    if config.model_type in UNLIMITED:
        return None
    limits = [getattr(config, name, None) for name in LIMITS]
    limit = next((int(limit) for limit in limits if limit and limit > 0), None)
    return limit if limit is None else limit - first_position(parts)


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
