"""How rows may go through a model together without changing its numbers: tried once per model.

Position schemes, convolutions, state-space recurrences and Fourier mixing differ in which positions
influence each other. So instead of relying on a list of families, a few contexts are read one at a
time, by the plain model, and then together.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace

import torch
from transformers import PretrainedConfig, PreTrainedModel

from lmdiag.models.forward.reader import Reader
from lmdiag.models.tokens.encoders import QuestionEncoder
from lmdiag.models.tokens.questions import PartialWord, TokenRow
from lmdiag.types import BadInput, Query, Question

_SHORT_PROBE = Question(Query("It is a"), ())
"""For models of very few positions."""

_ROUNDING, _COARSE_ROUNDING = 100.0, 8.0
"""Tolerance in units of the dtype's epsilon times the largest value: for float32 or better, and for
half precision, where 100 units would accept anything."""

_COARSE_MEAN = 4.0
"""The same for the mean difference at a position in half precision."""

_REPEATED_MEAN = 1.0
"""The same for two readings of one row: half precision gives other numbers only where an
accelerator adds in any order."""

_WORDS = (
    "The old man said that every morning a dog had been in the garden, and when it rained his two "
    "daughters took their books to the house near the river, where nobody knew why they came. "
)
"""Part of a long text."""

_LONG = 150
"""Tokens of a row that hashed or chunked attention does not read as a short text."""

_NARROWEST = 16
"""Packs of fewer tokens gain nothing."""


def choose_layout(reader: Reader, encoder: QuestionEncoder) -> None:
    """Sets `projection_module`, `width` and the first exact `layout`: packed, equal or alone.

    Packing is tried on devices that gain by it (`sizes`), and in float32 or better, where rounding
    does not hide an error.
    """
    check_repeatability(reader, encoder)
    probes = _rows(encoder, probe_questions(reader, encoder))
    rows = probes or _rows(encoder, (_SHORT_PROBE,))
    reader.layout, reader.projection_module = "equal", None
    if not rows:
        return
    whole = [reader.whole(row) for row in rows]
    if not encoder.masked:
        check_causality(reader, rows[0], whole[0], encoder.spelling.model_id)
    reader.projection_module = _find_projection_module(reader, rows[0], whole[0])
    alone = torch.cat([nats[list(row.reads)] for row, nats in zip(rows, whole, strict=True)])
    reader.width = min(reader.width, attention_window(reader.model.config) or reader.width)
    takes_packs = (
        getattr(reader.model.config, "_attn_implementation", None) in (None, "eager", "sdpa")
        and {"attention_mask", "position_ids"} <= reader.accepted
        and reader.width >= _NARROWEST
    )
    gains = is_precise(reader) and reader.sizes.packs
    if probes and gains and takes_packs:
        reader.layout = "packed"
        if _agrees(reader, lambda: reader.read(rows), alone):
            return
        reader.layout = "equal"
    if not _agrees(reader, lambda: reader.read([*rows, *rows]), torch.cat([alone, alone])):
        reader.layout = "alone"


def probe_questions(reader: Reader, encoder: QuestionEncoder) -> list[Question]:
    """Returns two contexts that begin alike, with words of several pieces.

    One has the name of the padding token, which some models leave out when they count positions.
    """
    config = reader.model.config.get_text_config()
    padding = encoder.spelling.name(getattr(config, "pad_token_id", None))
    return [
        Question(Query("The old man said that it was a"), ("house", "wheelbarrow", "wheelhouse")),
        Question(Query(f"The old {padding} dog had a"), ("home", "philosophy")),
    ]


def check_repeatability(reader: Reader, encoder: QuestionEncoder) -> None:
    """Refuses a model that gives other numbers when it reads the same row again.

    Dropout that a model's own code leaves on, and hashed attention, draw random numbers. A short
    row is read twice, and one of `_LONG` tokens (fewer if the model reads fewer), since hashing and
    chunks begin beyond short texts. Where no random numbers are drawn, the mean difference over the
    vocabulary, at each of up to 16 positions, may be the rounding of the model's dtype.
    """
    for text, length in ((_SHORT_PROBE.query.context, 16), (_WORDS * 5, _LONG)):
        blank = encoder.blank(Query(text))
        row = blank.row(PartialWord((), int(encoder.masked)))
        length = min(length, encoder.limit or length)
        row = replace(row, ids=row.ids[:length], source=row.source[:length])
        inputs, _ = reader.side_by_side([row])
        step = math.ceil(len(row.ids) / 16)
        reads = [(0, position) for position in range(0, len(row.ids), step)]
        log_probs = reader.run(inputs, reads)
        generators = _generator_states(reader.device)
        change = _mean_change(log_probs, reader.run(inputs, reads))
        tolerance = (_ROUNDING if is_precise(reader) else _REPEATED_MEAN) * _epsilon(reader)
        if not torch.equal(generators, _generator_states(reader.device)):
            tolerance = 0.0
        if change > tolerance * _mean_size(log_probs):
            raise BadInput(
                f"model {encoder.spelling.model_id} ({type(reader.model).__name__}) gives other "
                f"numbers when it reads the same text again (by {change:.1g} nats on average over "
                "the vocabulary): its code draws random numbers, as dropout or hashed attention "
                "does; turn that off in its code or config.json, or choose another model"
            )


def _generator_states(device: torch.device) -> torch.Tensor:
    """Returns the states of torch's generators of random numbers, which change if one is drawn."""
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state(device))
    return torch.cat(states)


def check_causality(reader: Reader, row: TokenRow, whole: torch.Tensor, model_id: str) -> None:
    """Refuses a model that sees to the right, as XLNet and prefix language models do.

    Rows continue with the pieces of candidates, and contexts share rows: the numbers of such a
    model would depend on which other words are scored. A text is cut after two tokens and in its
    middle, and its last token is replaced: none of this may change the earlier distributions by
    more than the rounding of the model's dtype.

    `whole` has the (tokens, vocabulary) log-probabilities of the row, of four tokens or more, in
    nats, read without a projection module.
    """
    tolerance = (_ROUNDING if is_precise(reader) else _COARSE_MEAN) * _epsilon(reader)
    tolerance *= _mean_size(whole)
    last, n_tokens = row.ids[-1], len(row.ids)
    other = next((token for token in reversed(row.ids) if token != last), 0)
    for ids in (row.ids[:2], row.ids[: n_tokens // 2], (*row.ids[:-1], other)):
        earlier = min(len(ids), n_tokens - 1)
        before, after = whole[:earlier], reader.whole(replace(row, ids=ids))[:earlier]
        change = _mean_change(before, after)
        if change > tolerance:
            raise BadInput(
                f"model {model_id} ({type(reader.model).__name__}) is not causal: a token changes "
                f"the distributions before it (by {change:.1g} nats on average over the "
                "vocabulary), so that scores would depend on the other words asked; choose a "
                "left-to-right model, or --kind masked if it was trained with a mask token"
            )


def _mean_change(before: torch.Tensor, after: torch.Tensor) -> float:
    """Returns the largest mean difference of two distributions at a position, in nats."""
    finite = before.isfinite() & after.isfinite()
    return float(torch.where(finite, (before - after).abs(), 0.0).mean(-1).max())


def _mean_size(log_probs: torch.Tensor) -> float:
    """Returns the mean size of log-probabilities, which rounding is proportional to; at least 1."""
    return max(1.0, float(log_probs[log_probs.isfinite()].abs().mean()))


def same(reader: Reader, log_probs: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two sets of log-probabilities differ by no more than the rounding of the dtype.

    NaN equals NaN here: a broken model is refused with the context that it cannot answer.
    """
    if log_probs.shape != expected.shape:  # its projection takes other inputs
        return False
    scale = max(1.0, float(expected.nan_to_num(0.0, 0.0, 0.0).abs().max()))
    tolerance = (_ROUNDING if is_precise(reader) else _COARSE_ROUNDING) * _epsilon(reader) * scale
    return torch.allclose(log_probs, expected, rtol=0.0, atol=tolerance, equal_nan=True)


def attention_window(config: PretrainedConfig) -> int | None:
    """Returns how far apart two tokens may be that see each other in every layer; None: any.

    The mask of a pack replaces windows and chunks of attention, so that packs must fit into them.
    """
    text = config.get_text_config()
    names = ("sliding_window", "window_size", "attention_chunk_size")
    windows = [getattr(text, name, None) for name in names]
    local = getattr(text, "local_attention", None)  # both sides together (ModernBERT)
    windows.append(local // 2 if local else None)
    return min((int(window) for window in windows if window), default=None)


def projection_modules(model: PreTrainedModel) -> list[torch.nn.Module]:
    """Returns the modules that may need the wanted positions only, the one that saves most first.

    The attention of BERT and its relatives ends with a module that adds the residual. After the
    last one nothing mixes positions, so that the rest of the last layer is computed only where it
    is wanted. Almost all models have the projection to the vocabulary.
    """
    closing = [m for m in model.modules() if type(m).__name__.endswith("SelfOutput")]
    head = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    return [*closing[-1:], *([] if head is None else [head])]


def _find_projection_module(
    reader: Reader, row: TokenRow, whole: torch.Tensor
) -> torch.nn.Module | None:
    """Returns the first of `projection_modules` that leaves the numbers of a row alone, or None.

    The positions are read in reverse order, and there are more of them than the row is long: some
    models count the rows in the module (XMOD) or cut off positions beyond the length of a row
    (LUKE), and a module after which positions still see each other would not have all of them in
    their order.
    """
    backwards = list(reversed(range(len(row.ids))))
    last = backwards[:1] * len(row.ids)
    reads = [(0, position) for position in backwards] + [(1, position) for position in last]
    inputs, _ = reader.side_by_side([row, row])
    for module in projection_modules(reader.model):
        reader.projection_module = module
        if _agrees(reader, lambda: reader.run(inputs, reads), whole[backwards + last]):
            return module
    return None


def _agrees(reader: Reader, read: Callable[[], torch.Tensor], expected: torch.Tensor) -> bool:
    """Whether the model runs at all and gives the expected numbers."""
    with suppress(Exception):  # models raise anything for masks or states that they do not expect
        return same(reader, read(), expected)
    return False


def _rows(encoder: QuestionEncoder, questions: Sequence[Question]) -> list[TokenRow]:
    """Returns some rows of each probe; none if the model cannot read as many tokens.

    The rows of a probe differ in their length; those of a masked model in nothing else.
    """
    most = 1 if encoder.masked else 2
    with suppress(BadInput):
        return [row for question in questions for row in encoder.encode(question).rows[:most]]
    return []


def _epsilon(reader: Reader) -> float:
    """Returns the epsilon of the model's dtype, at least float32's; bfloat16's if quantized."""
    is_quantized = getattr(reader.model, "is_quantized", False)
    least = torch.bfloat16 if is_quantized else torch.float32
    return max(torch.finfo(reader.model.dtype).eps, torch.finfo(least).eps)


def is_precise(reader: Reader) -> bool:
    """Whether the model computes in float32 or better, without quantized weights."""
    return _epsilon(reader) == torch.finfo(torch.float32).eps
