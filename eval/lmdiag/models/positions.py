"""How a model counts the positions of its input, and how many it has."""

from __future__ import annotations

from collections.abc import Mapping

from transformers import PreTrainedModel

_LIMITS = ("max_position_embeddings", "n_positions", "max_seq_len", "max_sequence_length")
"""Where configurations keep the longest input."""

_ATTENDED_TOKENS = ("index_topk", "indexer_budget", "keep_window_size")
"""Where configurations keep how many tokens a token sees, the best ones of a longer text."""

_UNLIMITED = ("t5", "mt5", "umt5", "longt5", "switch_transformers")
"""Types whose `n_positions` is the length of their training inputs, not a limit."""


def padding_index(model: PreTrainedModel) -> int | None:
    """Returns the token id that a model leaves out when it counts positions; None for no such id.

    RoBERTa and its relatives have it as `padding_idx` of their embedding of positions; their first
    position has the number after it.
    """
    for name, module in model.named_modules():
        if name.endswith("position_embeddings"):  # of any class: I-BERT has its own
            index = getattr(module, "padding_idx", None)
            return None if index is None else int(index)
    return None


def longest_input(model: PreTrainedModel) -> int | None:
    """Returns the longest input in tokens; None for a model without a limit.

    It is the least of the number of positions, the length up to which LongRoPE models use their
    first set of rotation factors, and the number of tokens that a token sees where it sees only the
    best ones; `docs/specification.md` (section 2) says why.
    """
    config = model.config.get_text_config()
    if config.model_type in _UNLIMITED:
        return None
    padding = padding_index(model)
    first_position = 0 if padding is None else padding + 1
    limits: list[int] = []
    for name in _LIMITS:
        n_positions = getattr(config, name, None)
        if n_positions and n_positions > 0:  # some configurations have −1 for no limit
            limits.append(int(n_positions) - first_position)
            break  # the first one that is set counts
    for name in _ATTENDED_TOKENS:
        n_tokens = getattr(config, name, None)
        if n_tokens:
            limits.append(int(n_tokens))
    rope = getattr(config, "rope_parameters", None) or {}
    for parameters in (rope, *rope.values()):  # of all layers, or by kind of layer
        if isinstance(parameters, Mapping) and parameters.get("rope_type") == "longrope":
            end = parameters.get("original_max_position_embeddings")
            # some configurations have it beside `rope_parameters`, not in it
            end = end or getattr(config, "original_max_position_embeddings", None)
            if end:
                limits.append(int(end))
    return min(limits, default=None)
