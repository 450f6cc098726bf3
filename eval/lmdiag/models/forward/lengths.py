"""Models that compute long inputs differently from short ones.

Two kinds are known. LongRoPE models (Phi-3 128k) have two sets of rotation factors, and the longest
text of a batch selects the set for the whole batch. BigBird computes sparse attention for long
inputs and full attention for short ones, pads all rows of a batch to a multiple of its block size,
and does not return to sparse attention after a short input. So the numbers of a text would depend
on the rest of its batch, or on earlier batches. `Reader` therefore keeps short and long rows apart,
and reads long rows of equal length only.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from lmdiag.models.tokens.questions import TokenRow

if TYPE_CHECKING:
    from transformers import PretrainedConfig, PreTrainedModel

_LONGROPE = ("longrope", "su")
"""Names of LongRoPE in configurations; `su` is the older one."""

_SPARSE, _DENSE = "block_sparse", "original_full"
"""BigBird's names of its two kinds of attention."""


def short_limit(model: PreTrainedModel) -> int | None:
    """Returns the length in tokens of the longest input that the model reads as a short one.

    None for models that treat inputs of all lengths alike, as far as they read.
    """
    longest = getattr(model.config.get_text_config(), "max_position_embeddings", None) or math.inf
    limits = [*_longrope_limits(model.config.get_text_config())]
    if _is_sparse(model):
        config: Any = model.config
        # transformers uses full attention up to this length (BigBirdModel.forward).
        limits.append((5 + 2 * config.num_random_blocks) * config.block_size)
    return min((limit for limit in limits if limit < longest), default=None)


def choose_attention(model: PreTrainedModel) -> None:
    """Has BigBird choose its attention for each input anew; other models stay as they are."""
    limit = short_limit(model)
    if limit is None or not _is_sparse(model):
        return
    base: Any = model.base_model

    def choose(_: Any, __: Any, inputs: Mapping[str, Any]) -> None:
        base.set_attention_type(_SPARSE if inputs["input_ids"].shape[1] > limit else _DENSE)

    model.register_forward_pre_hook(choose, with_kwargs=True)


def split(row: TokenRow, limit: int) -> Iterator[TokenRow]:
    """Yields a causal model's row, or two rows if its reads are on both sides of the limit.

    The distribution after a token is that of the text up to the token: if that text is short, it is
    read as a short one although the row continues.
    """
    short = tuple(read for read in row.reads if read < limit)
    if len(row.ids) <= limit or not short:
        yield row
        return
    yield TokenRow(row.ids[: short[-1] + 1], short, row.source)
    if len(short) < len(row.reads):
        yield TokenRow(row.ids, row.reads[len(short) :], row.source)


def _longrope_limits(config: PretrainedConfig) -> Iterator[int]:
    """Yields the lengths up to which the short factors are used, one for each kind of layer."""
    for name in ("rope_parameters", "rope_scaling"):
        parameters = getattr(config, name, None) or {}
        for rope in (parameters, *parameters.values()):
            if isinstance(rope, Mapping) and rope.get("rope_type", rope.get("type")) in _LONGROPE:
                limit = rope.get("original_max_position_embeddings")
                limit = limit or getattr(config, "original_max_position_embeddings", None)
                if limit:
                    yield int(limit)


def _is_sparse(model: PreTrainedModel) -> bool:
    switches = hasattr(model.base_model, "set_attention_type")
    return switches and getattr(model.config, "attention_type", None) == _SPARSE
