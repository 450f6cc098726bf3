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

_SIMPLER_LAYOUT: Mapping[Layout, Layout] = {"packed": "equal", "equal": "alone", "alone": "alone"}
"""Layout -> the one in which the short rows are read without the long one."""

_Setting = tuple[Layout, torch.nn.Module | None]
"""Layout and projection module of a reader."""


@dataclass(frozen=True)
class _Readings:
    """Log-probabilities (reads, vocabulary) of the rows of a probe in one setting, in nats.

    Attributes:
        shorts: of the short rows, read without the other rows in the simpler layout.
        together: of the short rows and the long one, read together with the sentences.
        sentences: of the sentences, read in the same pass as `together`.
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
    states_before = _generator_states(reader.device)
    probe = _Probe(reader, encoder)
    settings = _settings(reader)
    readings = probe.read(settings[0])
    draws_nothing = torch.equal(states_before, _generator_states(reader.device))
    if draws_nothing and readings is not None and probe.shows_all(readings):
        probe.check_lead(readings)
        return
    # something differs: each check is made by itself, then the first exact setting is found
    probe.check_repeatability()
    probe.check_causality()
    for setting in settings:
        readings = probe.read(setting)
        if readings is not None and probe.is_exact(readings):
            probe.check_lead(readings)
            return
    # none is exact: the reader keeps the last setting, the plain model that reads rows one by one


def _settings(reader: Reader) -> list[_Setting]:
    """Returns pairs of layout and projection module to try, those that save most first.

    The last one, ("alone", None), is the plain model.
    """
    attention = getattr(reader.model.config, "_attn_implementation", None)
    # other implementations, as flash attention, take no mask of which token sees which
    takes_masks = attention in (None, "eager", "sdpa")
    takes_positions = {"attention_mask", "position_ids"} <= reader.accepted_arguments
    is_wide_enough = reader.width >= _NARROWEST
    gains_by_packs = is_precise(reader) and reader.sizes.packs
    layouts: list[Layout] = ["equal", "alone"]
    if takes_masks and takes_positions and is_wide_enough and gains_by_packs:
        layouts.insert(0, "packed")
    modules = [*projection_modules(reader.model), None]
    return list(product(layouts, modules))


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
        # in tokens; of a row, and of a pack
        limits = encoder.limit, attention_window(reader.model.config)
        self._limits = [limit for limit in limits if limit]
        reader.width = min([reader.width, *self._limits])
        self._is_causal = not encoder.masked
        self._long = _long_row(reader, encoder)
        n_tokens = max(2, min(_SHORT, len(self._long.ids) // 2))
        # for each short row, how many of its first tokens are those of the long one: of rows of 12
        # tokens 2, 6 and 11
        self._n_shared = sorted({min(2, n_tokens - 1), n_tokens // 2, n_tokens - 1})
        mask = encoder.blank(Query("")).mask
        self._shorts = [_short_row(self._long, n, n_tokens, mask) for n in self._n_shared]
        self._sentences: list[TokenRow] = []
        self._lead = 0  # 1 if the model answers one place before the mask
        if isinstance(encoder, MaskedEncoder):
            self._sentences = _masked_sentences(encoder, n_tokens)
            self._lead = encoder.lead
        # log-probabilities of the long row by the plain model, for comparison with all settings
        self._alone = self._read(("alone", None), [self._long])

    def read(self, setting: _Setting) -> _Readings | None:
        """Returns what the model gives in a setting; None if it cannot be read in it.

        The reader keeps the setting in any case.
        """
        layout, module = setting
        width_before = self._reader.width
        rows = [*self._shorts, self._long, *self._sentences]
        try:
            shorts = self._read((_SIMPLER_LAYOUT[layout], module), self._shorts)
            # As wide as one pack of all rows, where the model reads as much.
            self._reader.width = min([sum(len(row.ids) for row in rows), *self._limits])
            # reads of the short rows and the long one
            n_compared = len(shorts) + len(self._alone)
            n_of_sentences = sum(len(row.reads) for row in self._sentences)
            # Fails where the projection takes other inputs, so that there are more or fewer reads.
            log_probs = self._read(setting, rows)
            together, sentences = torch.split(log_probs, [n_compared, n_of_sentences])
            return _Readings(shorts, together, sentences)
        except Exception:  # models raise anything for masks or states that they do not expect
            return None
        finally:
            self._reader.layout, self._reader.projection_module = setting
            self._reader.width = width_before

    def _read(self, setting: _Setting, rows: Sequence[TokenRow]) -> torch.Tensor:
        """Sets layout and projection module of the reader, and reads rows with them."""
        self._reader.layout, self._reader.projection_module = setting
        return self._reader.read(rows)

    def is_exact(self, readings: _Readings) -> bool:
        """Whether the setting, and the rows beside a row, change the numbers of no row."""
        expected = torch.cat([readings.shorts, self._alone])
        return agree(self._reader, readings.together, expected)

    def shows_all(self, readings: _Readings) -> bool:
        """Whether readings are exact, and show that the model is repeatable and causal.

        Then `check_repeatability` and `check_causality` cannot fail.
        """
        if not self.is_exact(readings):
            return False
        long_together = readings.together[len(readings.shorts) :]  # after those of the short rows
        change = _mean_change(self._alone, long_together)
        is_causal = self._change_by_later_tokens(readings.shorts) <= self._tolerance(_COARSE_MEAN)
        return is_causal and change <= self._tolerance(_REPEATED_MEAN)

    def _tolerance(self, coarse_units: float) -> float:
        """Returns the mean difference that is rounding, in nats.

        It is `coarse_units` (half precision) or `_ROUNDING` (float32 or better) times the epsilon
        of the dtype and the mean size of the log-probabilities.
        """
        units = _ROUNDING if is_precise(self._reader) else coarse_units
        return units * _epsilon(self._reader) * _mean_size(self._alone)

    def check_repeatability(self) -> None:
        """Refuses a model that gives other numbers when it reads the same row again.

        Dropout that a model's own code leaves on, and hashed attention, draw random numbers. Where
        none are drawn, the mean difference over the vocabulary at a position may be the rounding of
        the model's dtype.
        """
        for row in (self._shorts[0], self._long):
            first_log_probs = self._read(("alone", None), [row])
            states_before = _generator_states(self._reader.device)
            change = _mean_change(first_log_probs, self._read(("alone", None), [row]))
            draws_numbers = not torch.equal(states_before, _generator_states(self._reader.device))
            tolerance = 0.0 if draws_numbers else self._tolerance(_REPEATED_MEAN)
            if change > tolerance:
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
        """Refuses a masked model that answers at another place than its kind says.

        Models of kind mntp answer one place before the mask, others at the mask. Refused is a model
        to which the masked tokens of the sentences are more probable at the other place by more
        than `_LEAD_GAIN` nats in the mean, and that knows more of them there, beyond chance: models
        with random weights have differences of any size.
        """
        # each mask has two reads, before it and at it, which want the same token
        tokens = torch.tensor([token for row in self._sentences for token in row.wanted[1::2]])
        if len(tokens) < _FEWEST_HIDDEN:
            return
        tokens = tokens.to(readings.sentences.device)
        log_probs = readings.sentences[:, tokens]
        before_mask = log_probs[::2]  # (masks, tokens)
        at_mask = log_probs[1::2]
        if self._lead:
            at_kind_place, at_other_place = before_mask, at_mask
        else:
            at_kind_place, at_other_place = at_mask, before_mask
        gain = float((at_other_place - at_kind_place).diagonal().mean())
        kind_knowledge = _knowledge(at_kind_place, tokens)
        other_knowledge = _knowledge(at_other_place, tokens)
        chance_level = _STANDARD_ERRORS * _standard_error(other_knowledge)
        threshold = max(float(kind_knowledge.mean()), chance_level)
        if gain > _LEAD_GAIN and float(other_knowledge.mean()) > threshold:
            place = "at the mask" if self._lead else "one place before the mask"
            kind = "masked" if self._lead else "mntp"
            raise BadInput(
                f"{self._name} answers {place} (tokens of probe texts are more probable there by "
                f"{gain:.1f} nats in the mean): use --kind {kind}"
            )

    def _change_by_later_tokens(self, shorts: torch.Tensor) -> float:
        """Returns by how much later tokens change the distributions of a causal model, in nats.

        A short row and the long one share their first tokens, where a causal model has the same
        distributions. The largest mean difference is returned, see `_mean_change`; 0 for a masked
        model.

        Args:
            shorts: (reads, vocabulary) log-probabilities of all short rows.
        """
        if not self._is_causal:
            return 0.0
        parts = torch.split(shorts, [len(row.reads) for row in self._shorts])
        changes = []
        for part, n_shared in zip(parts, self._n_shared, strict=True):
            changes.append(_mean_change(part[:n_shared], self._alone[:n_shared]))
        return max(changes)


def _long_row(reader: Reader, encoder: QuestionEncoder) -> TokenRow:
    """Returns the long row of a probe, with the name of the padding token in its text.

    Of an encoder-decoder, the source is long and the decoder's row is not.
    """
    config = reader.model.config.get_text_config()
    padding = encoder.spelling.name(getattr(config, "pad_token_id", None))
    text = _TEXT.format(padding=padding) * 5  # more than `_LONG` tokens
    pieces = encoder.spelling.text(text)
    # The text as context, and again as pieces at the blank: the decoder of an encoder-decoder reads
    # the pieces alone. The total makes a masked model's row go on with one mask.
    row = encoder.blank(Query(text)).row(PartialWord(pieces, total=len(pieces) + 1))
    n_tokens = min(_LONG, encoder.limit or _LONG)
    ids = row.ids[: 2 * _SHORT if row.source else n_tokens]
    step = math.ceil(len(ids) / _READS_OF_LONG)
    first_positions = range(min(_SHORT, len(ids)))
    spread_positions = range(0, len(ids), step)
    reads = sorted({*first_positions, *spread_positions})
    return TokenRow(ids, tuple(reads), row.source[:n_tokens])


def _masked_sentences(encoder: MaskedEncoder, n_tokens: int) -> list[TokenRow]:
    """Returns rows of `n_tokens` with every third token masked, but for control tokens.

    Each mask has two reads, at the place before it and at the mask; the token that is wanted at
    both is the masked one. Sentences that are too short are left out.
    """
    spelling = encoder.spelling
    opening, closing = spelling.opening, spelling.closing
    n_pieces = n_tokens - len(opening) - len(closing)
    rows = []
    for number, sentence in enumerate(_SENTENCES):
        text = f"{sentence} {_SENTENCES[number - 1]}"  # two, to fill the row
        pieces = list(spelling.text(text)[: max(n_pieces, 0)])
        mask_positions = range(1 + number % 3, len(pieces), 3)  # not the same in all sentences
        token_at_mask = {
            position: pieces[position]
            for position in mask_positions
            if not spelling.is_control(pieces[position])
        }
        for position in token_at_mask:
            pieces[position] = encoder.mask
        reads: list[int] = []
        wanted: list[int] = []
        for position, token in token_at_mask.items():
            reads += [len(opening) + position - 1, len(opening) + position]
            wanted += [token, token]
        if len(pieces) == n_pieces and reads:
            ids = (*opening, *pieces, *closing)
            rows.append(TokenRow(ids, tuple(reads), wanted=tuple(wanted)))
    return rows


def _short_row(long: TokenRow, n_shared: int, n_tokens: int, mask: int | None) -> TokenRow:
    """Returns a short row of a probe, which is read at all positions.

    Its first `n_shared` tokens are those of the long row; then come the mask, if there is one, and
    later tokens of the long row.
    """
    masks = () if mask is None else (mask,)
    # later tokens, so that the row goes on otherwise than the long one
    ids = (*long.ids[:n_shared], *masks, *long.ids[n_tokens:])[:n_tokens]
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

    Expected is the mean of the other tokens at this place plus the mean of this token at the places
    of others, less the mean of all: a model that knows how frequent words are, and nothing else,
    has 0.

    Args:
        log_probs: (places, tokens), the token of a place on the diagonal.
        tokens: (places,) id of the token of each place.
    """
    is_other = tokens[:, None] != tokens
    other_nats = torch.where(is_other, log_probs, 0.0)
    mean_of_place = other_nats.sum(1) / is_other.sum(1)
    mean_of_token = other_nats.sum(0) / is_other.sum(0)
    mean_of_all = other_nats.sum() / is_other.sum()
    return log_probs.diagonal() - mean_of_place - mean_of_token + mean_of_all


def _standard_error(values: torch.Tensor) -> float:
    """Returns the standard error of the mean of some values."""
    return float(values.std()) / math.sqrt(len(values))


def _mean_change(before: torch.Tensor, after: torch.Tensor) -> float:
    """Returns the largest mean difference of two distributions at a position, in nats.

    Both are (positions, vocabulary) log-probabilities; differences of infinite ones count as 0.
    """
    is_finite = before.isfinite() & after.isfinite()
    differences = torch.where(is_finite, (before - after).abs(), 0.0)
    return float(differences.mean(-1).max())


def _mean_size(log_probs: torch.Tensor) -> float:
    """Returns the mean size of log-probabilities, which rounding is proportional to; at least 1."""
    return max(1.0, float(log_probs[log_probs.isfinite()].abs().mean()))


def agree(reader: Reader, log_probs: torch.Tensor, expected: torch.Tensor) -> bool:
    """Whether two arrays of log-probabilities differ by no more than the rounding of the dtype.

    NaN equals NaN here: a broken model is refused later, with the context that it cannot answer.
    """
    if log_probs.shape != expected.shape:  # the projection module takes other inputs
        return False
    scale = max(1.0, float(expected.nan_to_num(0.0, 0.0, 0.0).abs().max()))
    units = _ROUNDING if is_precise(reader) else _COARSE_ROUNDING
    tolerance = units * _epsilon(reader) * scale
    return torch.allclose(log_probs, expected, rtol=0.0, atol=tolerance, equal_nan=True)


def attention_window(config: PretrainedConfig) -> int | None:
    """Returns how far apart two tokens may be and still see each other in every layer.

    None for any distance. The mask of a pack replaces windows and chunks of attention, so that
    packs must fit into them.
    """
    text_config = config.get_text_config()
    names = ("sliding_window", "window_size", "attention_chunk_size")
    windows = [getattr(text_config, name, None) for name in names]
    both_sides = getattr(text_config, "local_attention", None)  # left and right (ModernBERT)
    windows.append(both_sides // 2 if both_sides else None)
    return min((int(window) for window in windows if window), default=None)


def projection_modules(model: PreTrainedModel) -> list[torch.nn.Module]:
    """Returns the modules that may need the wanted positions only, the one that saves most first.

    The attention of BERT and its relatives ends with a module that adds the residual. After the
    last one nothing mixes positions, so that the rest of the last layer is computed only where it
    is wanted. Almost all models have the projection to the vocabulary.
    """
    attention_outputs = [x for x in model.modules() if type(x).__name__.endswith("SelfOutput")]
    modules = attention_outputs[-1:]
    projection = model.get_output_embeddings()  # type: ignore[no-untyped-call]
    if projection is not None:
        modules.append(projection)
    return modules


def check_layers(reader: Reader, encoder: QuestionEncoder) -> Layers:
    """Returns the layers of a model, after it has shown that it can answer after each of them.

    The answer after the last layer, computed as for inner layers, must be the ordinary one.

    Raises:
        BadInput: the layers are not found, or the model cannot answer in this way.
    """
    name = f"model {encoder.spelling.model_id} ({type(reader.model).__name__})"
    layers = reader.layers
    if layers is None:
        raise BadInput(
            f"{name} has no list of as many layers as its configuration says, so that it cannot "
            "answer after a layer: leave layers out"
        )
    n_masks = 1 if encoder.masked else 0  # a masked model is read at a mask
    row = encoder.blank(_LAYER_PROBE).row(PartialWord((), total=n_masks))
    inputs, _ = reader.side_by_side([row])
    reads = [(0, position) for position in range(len(row.ids))]
    module_before = reader.projection_module
    reader.projection_module = None  # all positions go through the layers and the projection
    is_ordinary = False
    last_layer = len(layers)
    try:
        # Which layers do not run on a text is found out anew: an earlier call may have set it.
        layers.skipped = ()
        all_layers = range(last_layer + 1)
        states = reader.network(inputs, reads, (*all_layers, None)).states
        layers.skipped = {number for number in all_layers if number and number not in states}
        network_pass = reader.network(inputs, reads, (last_layer, None))
        after_last, ordinary = reader.log_probs(network_pass, (last_layer, None))
        is_ordinary = agree(reader, after_last, ordinary)
    except Exception as error:  # models raise anything for states that they do not expect
        raise BadInput(
            f"{name} cannot make an answer of the state after a layer, {type(error).__name__}: "
            f"{shortened(error)}: leave layers out"
        ) from error
    finally:
        reader.projection_module = module_before
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
