"""How rows may go through a model together without changing its numbers: tried once per model.

Position schemes, convolutions, state-space recurrences and Fourier mixing differ in which positions
influence each other. So instead of relying on a list of families, a long row is read by itself, by
the plain model, and again together with short rows, in the layout and with the projection module
that save most. Equal numbers show in three forwards that these change nothing, that the model gives
the same numbers when it reads a row again, and that a causal model does not see to the right. Only
where numbers differ is each of these tried by itself.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import product

import torch
from transformers import PretrainedConfig, PreTrainedModel

from lmdiag.models.forward.layers import Layers
from lmdiag.models.forward.reader import Layout, Reader
from lmdiag.models.tokens.encoded_questions import PartialWord, TokenRow
from lmdiag.models.tokens.encoders import MaskedEncoder, QuestionEncoder
from lmdiag.text import shortened
from lmdiag.types import BadInput, Query, Question

_TEXT = (
    "The {padding} old man said that every morning a dog had been in the garden, and when it "
    "rained his two daughters took their books to the house near the river, where nobody knew why. "
)
"""Part of the long row. Some models leave the padding token out when they count positions, also
where a text has its name."""

_LONG = 150
"""Tokens of the long row: hashed and chunked attention do not read it as they read a short text."""

_READS_OF_LONG = 16
"""Positions at which the long row is read, beside its first `_SHORT`."""

_SHORT = 12
"""Tokens of a short row."""

_NARROWEST = 16
"""Packs of fewer tokens gain nothing."""

_ROUNDING = 100.0
_COARSE_ROUNDING = 8.0
"""Tolerance in units of the dtype's epsilon times the largest value: for float32 or better, and for
half precision, where 100 units would accept anything."""

_COARSE_MEAN = 4.0
"""The same for the mean difference at a position in half precision."""

_REPEATED_MEAN = 1.0
"""The same for two readings of one row: half precision gives other numbers only where an
accelerator adds in any order."""

_LAYER_PROBE = Query("It is a")
"""Read to compare the answer after the last layer with the ordinary one."""

_SENTENCES = (
    "The woman sings very old songs in the evening.", "The ice is cold and the fire is hot.",
    "A barn is a building. This hammer is a tool.", "The men walk to the market on Sunday.",
    "The child sees the house near the garden.", "The boys in the garden are young.",
    "The girl that likes the boy works in the garden.",
    "The old man thought that the guests are happy.", "A robin is a bird. A dog is an animal.",
    "The friends of the man are kind.", "The sun is hot. The night is dark.",
    "The writer said that the singer is coming.",
)  # fmt: skip
"""Plain sentences, a third of whose tokens masked models are asked, to see where they answer."""

_FEWEST_HIDDEN = 8
"""Masked tokens that show where a model answers, at least."""

_LEAD_GAIN = 0.5
_STANDARD_ERRORS = 5.0
"""Nats per token by which answers at another place must be better, and the number of standard
errors that this difference must exceed."""

_SIMPLER: Mapping[Layout, Layout] = {"packed": "equal", "equal": "alone", "alone": "alone"}
"""Layout -> the one in which the short rows are read without the long one."""

_Setting = tuple[Layout, torch.nn.Module | None]
"""Layout and projection module of a reader."""


@dataclass(frozen=True)
class _Readings:
    """Log-probabilities (reads, vocabulary) of the rows of a probe in one setting, in nats.

    Attributes:
        shorts: of the short rows without the others, in the simpler layout.
        together: of the short rows and the long one, which are read beside the sentences.
        sentences: of the sentences, which are read once.
    """

    shorts: torch.Tensor
    together: torch.Tensor
    sentences: torch.Tensor


def choose_layout(reader: Reader, encoder: QuestionEncoder) -> None:
    """Sets `width`, and the `layout` and the `projection_module` that save most and are exact.

    Packing is tried on devices that gain by it (`sizes`), and in float32 or better, where rounding
    does not hide an error.

    Raises:
        BadInput: the model gives other numbers when it reads a row again, it is queried as a causal
            one and sees to the right, or as a masked one and answers at another place.
    """
    generators = _generator_states(reader.device)
    probe = _Probe(reader, encoder)
    settings = _settings(reader)
    readings = probe.read(settings[0])
    is_plain = torch.equal(generators, _generator_states(reader.device))
    if is_plain and readings is not None and probe.shows_all(readings):
        probe.check_lead(readings)
        return
    probe.check_repeatability()
    probe.check_causality()
    for setting in settings:
        readings = probe.read(setting)
        if readings is not None and probe.is_exact(readings):
            probe.check_lead(readings)
            return


def _settings(reader: Reader) -> list[_Setting]:
    """Returns what may be exact, first what saves most; the last one is the plain model."""
    takes_packs = (
        getattr(reader.model.config, "_attn_implementation", None) in (None, "eager", "sdpa")
        and {"attention_mask", "position_ids"} <= reader.accepted
        and reader.width >= _NARROWEST
    )
    gains = is_precise(reader) and reader.sizes.packs
    layouts: list[Layout] = ["packed"] if takes_packs and gains else []
    return [*product([*layouts, "equal", "alone"], [*projection_modules(reader.model), None])]


class _Probe:
    """Rows that a model reads in several ways, and what it gives for them.

    The long row has `_LONG` tokens, or as many as the model reads, and is read at some positions.
    The short rows have one length. They begin as the long one and go on otherwise, with a mask
    where the model has one, and are read at all positions.

    A masked model reads sentences of the same length with some tokens masked, too, beside the short
    rows and the long one. What it gives there shows where it answers, and is compared with nothing.
    """

    def __init__(self, reader: Reader, encoder: QuestionEncoder) -> None:
        self._reader = reader
        self._name = f"model {encoder.spelling.model_id} ({type(reader.model).__name__})"
        self._limits = [*filter(None, (encoder.limit, attention_window(reader.model.config)))]
        reader.width = min([reader.width, *self._limits])
        self._is_causal = not encoder.masked
        self._long = _long_row(reader, encoder)
        n_tokens = max(2, min(_SHORT, len(self._long.ids) // 2))
        self._shared = sorted({min(2, n_tokens - 1), n_tokens // 2, n_tokens - 1})
        mask = encoder.blank(Query("")).mask
        self._shorts = [_branch(self._long, count, n_tokens, mask) for count in self._shared]
        self._sentences: list[TokenRow] = []
        self._lead = 0
        if isinstance(encoder, MaskedEncoder):
            self._sentences = _masked_sentences(encoder, n_tokens)
            self._lead = encoder.lead
        self._alone = self._read(("alone", None), [self._long])

    def read(self, setting: _Setting) -> _Readings | None:
        """Returns what the model gives in a setting; None if it cannot be read in it."""
        layout, module = setting
        width = self._reader.width
        rows = [*self._shorts, self._long, *self._sentences]
        try:
            shorts = self._read((_SIMPLER[layout], module), self._shorts)
            # As wide as one pack of all rows, where the model reads as much.
            self._reader.width = min([sum(len(row.ids) for row in rows), *self._limits])
            n_compared = len(shorts) + len(self._alone)
            n_of_sentences = sum(len(row.reads) for row in self._sentences)
            # Fails where the projection takes other inputs, so that there are more or fewer reads.
            parts = torch.split(self._read(setting, rows), [n_compared, n_of_sentences])
            return _Readings(shorts, *parts)
        except Exception:  # models raise anything for masks or states that they do not expect
            return None
        finally:
            self._reader.layout, self._reader.projection_module = setting
            self._reader.width = width

    def _read(self, setting: _Setting, rows: Sequence[TokenRow]) -> torch.Tensor:
        """Sets layout and projection module of the reader, and reads rows with them."""
        self._reader.layout, self._reader.projection_module = setting
        return self._reader.read(rows)

    def is_exact(self, readings: _Readings) -> bool:
        """Whether no row has other numbers because of the setting and the rows beside it."""
        return same(self._reader, readings.together, torch.cat([readings.shorts, self._alone]))

    def shows_all(self, readings: _Readings) -> bool:
        """Whether readings are exact, and show that no check below can fail."""
        if not self.is_exact(readings):
            return False
        change = _mean_change(self._alone, readings.together[len(readings.shorts) :])
        is_causal = self._change_by_later_tokens(readings.shorts) <= self._tolerance(_COARSE_MEAN)
        return is_causal and change <= self._tolerance(_REPEATED_MEAN)

    def _tolerance(self, coarse: float) -> float:
        """Returns the mean difference that is rounding, in nats; `coarse` is for half precision."""
        units = _ROUNDING if is_precise(self._reader) else coarse
        return units * _epsilon(self._reader) * _mean_size(self._alone)

    def check_repeatability(self) -> None:
        """Refuses a model that gives other numbers when it reads the same row again.

        Dropout that a model's own code leaves on, and hashed attention, draw random numbers. Where
        none are drawn, the mean difference over the vocabulary at a position may be the rounding of
        the model's dtype.
        """
        for row in (self._shorts[0], self._long):
            log_probs = self._read(("alone", None), [row])
            generators = _generator_states(self._reader.device)
            change = _mean_change(log_probs, self._read(("alone", None), [row]))
            is_drawn = not torch.equal(generators, _generator_states(self._reader.device))
            if change > (0.0 if is_drawn else self._tolerance(_REPEATED_MEAN)):
                raise BadInput(
                    f"{self._name} gives other numbers when it reads the same text again (by "
                    f"{change:.1g} nats on average over the vocabulary): its code draws random "
                    "numbers, as dropout or hashed attention does; turn that off in its code or "
                    "config.json, or choose another model"
                )

    def check_causality(self) -> None:
        """Refuses a model that sees to the right, as XLNet and prefix language models do.

        Rows continue with the pieces of candidates, and contexts share rows: the numbers of such a
        model would depend on which other words are scored.
        """
        shorts = torch.cat([self._read(("alone", None), [row]) for row in self._shorts])
        change = self._change_by_later_tokens(shorts)
        if change > self._tolerance(_COARSE_MEAN):
            raise BadInput(
                f"{self._name} is not causal: a token changes the distributions before it (by "
                f"{change:.1g} nats on average over the vocabulary), so that scores would depend "
                "on the other words asked; choose a left-to-right model, or --kind masked if it "
                "was trained with a mask token"
            )

    def check_lead(self, readings: _Readings) -> None:
        """Refuses a masked model that answers one place before the mask, or at it, unlike its kind.

        The masked tokens of the sentences are more probable at the other place by more than
        `_LEAD_GAIN` nats in the mean, and the model knows more of them there, beyond chance: models
        with random weights have differences of any size.
        """
        tokens = torch.tensor([token for row in self._sentences for token in row.wanted[1::2]])
        if len(tokens) < _FEWEST_HIDDEN:
            return
        tokens = tokens.to(readings.sentences.device)
        log_probs = readings.sentences[:, tokens]
        before, at_mask = log_probs[::2], log_probs[1::2]
        at_kind_place, at_other_place = (before, at_mask) if self._lead else (at_mask, before)
        gain = float((at_other_place - at_kind_place).diagonal().mean())
        knowledge_here, knowledge_at_other = (
            _knowledge(part, tokens) for part in (at_kind_place, at_other_place)
        )
        threshold = max(
            float(knowledge_here.mean()), _STANDARD_ERRORS * _standard_error(knowledge_at_other)
        )
        if gain > _LEAD_GAIN and float(knowledge_at_other.mean()) > threshold:
            place = "at the mask" if self._lead else "one place before the mask"
            kind = "masked" if self._lead else "mntp"
            raise BadInput(
                f"{self._name} answers {place} (tokens of probe texts are more probable there by "
                f"{gain:.1f} nats in the mean): use --kind {kind}"
            )

    def _change_by_later_tokens(self, shorts: torch.Tensor) -> float:
        """Returns how much the distributions of a causal model change by the tokens after them.

        They are those at the tokens that a short row and the long one share, see `_mean_change`.
        """
        if not self._is_causal:
            return 0.0
        parts = torch.split(shorts, [len(row.reads) for row in self._shorts])
        pairs = zip(parts, self._shared, strict=True)
        changes = [_mean_change(part[:count], self._alone[:count]) for part, count in pairs]
        return max(changes)


def _long_row(reader: Reader, encoder: QuestionEncoder) -> TokenRow:
    """Returns the long row of a probe; of an encoder-decoder, one with a long source."""
    config = reader.model.config.get_text_config()
    padding = encoder.spelling.name(getattr(config, "pad_token_id", None))
    text = _TEXT.format(padding=padding) * 5
    pieces = encoder.spelling.text(text)
    row = encoder.blank(Query(text)).row(PartialWord(pieces, len(pieces) + 1))
    n_tokens = min(_LONG, encoder.limit or _LONG)
    ids = row.ids[: 2 * _SHORT if row.source else n_tokens]
    step = math.ceil(len(ids) / _READS_OF_LONG)
    reads = {*range(min(_SHORT, len(ids))), *range(0, len(ids), step)}
    return TokenRow(ids, tuple(sorted(reads)), row.source[:n_tokens])


def _masked_sentences(encoder: MaskedEncoder, n_tokens: int) -> list[TokenRow]:
    """Returns rows of one length with every third token masked, but for control tokens.

    They are read at the place before each mask and at it; what is wanted there is its token.
    """
    spelling = encoder.spelling
    opening, closing = spelling.opening, spelling.closing
    n_pieces = n_tokens - len(opening) - len(closing)
    rows = []
    for number, sentence in enumerate(_SENTENCES):
        text = f"{sentence} {_SENTENCES[number - 1]}"
        pieces = list(spelling.text(text)[: max(n_pieces, 0)])
        mask_positions = range(1 + number % 3, len(pieces), 3)
        token_at_mask = {
            position: pieces[position]
            for position in mask_positions
            if not spelling.is_control(pieces[position])
        }
        for position in token_at_mask:
            pieces[position] = encoder.mask
        reads = [len(opening) + position - lead for position in token_at_mask for lead in (1, 0)]
        wanted = [token for token in token_at_mask.values() for _ in range(2)]
        if len(pieces) == n_pieces and reads:
            rows.append(TokenRow((*opening, *pieces, *closing), tuple(reads), (), tuple(wanted)))
    return rows


def _branch(long: TokenRow, shared: int, n_tokens: int, mask: int | None) -> TokenRow:
    """Returns a short row of a probe, whose first `shared` tokens are those of the long row."""
    masks = () if mask is None else (mask,)
    ids = (*long.ids[:shared], *masks, *long.ids[n_tokens:])[:n_tokens]
    return TokenRow(ids, tuple(range(len(ids))), long.source)


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


def _generator_states(device: torch.device) -> torch.Tensor:
    """Returns the states of torch's generators of random numbers, which change if one is drawn."""
    states = [torch.get_rng_state()]
    if device.type != "cpu":
        states.append(torch.get_device_module(device).get_rng_state(device))
    return torch.cat(states)


def _knowledge(log_probs: torch.Tensor, tokens: torch.Tensor) -> torch.Tensor:
    """Returns by how much each token is more probable at its place than expected, in nats.

    Expected is what the other tokens are there, and what the token is at the places of others: a
    model that knows how frequent words are, and nothing else, has 0.

    Args:
        log_probs: (places, tokens), the token of a place on the diagonal.
        tokens: of each place.
    """
    differs = tokens[:, None] != tokens
    others = torch.where(differs, log_probs, 0.0)
    of_place, of_token = (others.sum(axis) / differs.sum(axis) for axis in (1, 0))
    return log_probs.diagonal() - of_place - of_token + others.sum() / differs.sum()


def _standard_error(values: torch.Tensor) -> float:
    """Returns the standard error of the mean of some values."""
    return float(values.std()) / math.sqrt(len(values))


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


def check_layers(reader: Reader, encoder: QuestionEncoder) -> Layers:
    """Returns the layers of a model that can answer after each of them.

    Raises:
        BadInput: its layers are not found, or the state after the last one, by the way that all
            others go, does not give the model's ordinary answer or any.
    """
    name = f"model {encoder.spelling.model_id} ({type(reader.model).__name__})"
    layers = reader.layers
    if layers is None:
        raise BadInput(
            f"{name} has no list of as many layers as its configuration says, so that it cannot "
            "answer after a layer: leave layers out"
        )
    row = encoder.blank(_LAYER_PROBE).row(PartialWord((), int(encoder.masked)))
    inputs, _ = reader.side_by_side([row])
    reads = [(0, position) for position in range(len(row.ids))]
    module, reader.projection_module = reader.projection_module, None
    is_ordinary = False
    try:
        states = reader.network(inputs, reads, (*range(len(layers) + 1), None)).states
        layers.skipped = {*range(1, len(layers) + 1)} - {*states}
        done = reader.network(inputs, reads, (len(layers), None))
        is_ordinary = same(reader, *reader.log_probs(done, (len(layers), None)))
    except Exception as error:  # models raise anything for states that they do not expect
        raise BadInput(
            f"{name} cannot make an answer of the state after a layer, {type(error).__name__}: "
            f"{shortened(error)}: leave layers out"
        ) from error
    finally:
        reader.projection_module = module
    if not is_ordinary:
        raise BadInput(
            f"{name} makes another answer of the state after its last layer than its own, so that "
            "the answers after other layers would mean nothing: leave layers out"
        )
    return layers


def _epsilon(reader: Reader) -> float:
    """Returns the epsilon of the model's dtype, at least float32's; bfloat16's if quantized."""
    is_quantized = getattr(reader.model, "is_quantized", False)
    least = torch.bfloat16 if is_quantized else torch.float32
    return max(torch.finfo(reader.model.dtype).eps, torch.finfo(least).eps)


def is_precise(reader: Reader) -> bool:
    """Whether the model computes in float32 or better, without quantized weights."""
    return _epsilon(reader) == torch.finfo(torch.float32).eps
