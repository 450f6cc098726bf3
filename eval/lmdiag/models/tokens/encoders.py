"""From questions to rows of token ids, one encoder per kind of model.

`docs/specification.md` ("Log-probability of a word") says how words of several pieces are scored:
masked models read a row with masks for each piece, models that continue a text one row that
continues with the pieces; the distribution at the blank is read in such a row, too.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from lmdiag.asking.protocol import Bos, QueryOptions
from lmdiag.asking.rules import Case, refusal
from lmdiag.models.tokens.encoded_questions import Blank, EncodedQuestion, TokenRow
from lmdiag.models.tokens.encoded_sentences import SentenceEncoder
from lmdiag.models.tokens.framing import SLOT, Framing, chat_prompt
from lmdiag.models.tokens.spelling import Pieces, Spelling
from lmdiag.text import truncated
from lmdiag.types import BadInput, Query, Question

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from lmdiag.models.loading.load import Parts

_SENTINEL = "<extra_id_0>"
"""What stands at the first blank for the T5 family."""


@dataclass(frozen=True)
class QuestionEncoder(ABC):
    """Turns questions into rows.

    Attributes:
        spelling: the tokenizer.
        limit: longest input in tokens; None for no limit.
        framing: how a query is changed before it is read.
        masked: whether the model sees how many pieces a word has.
    """

    spelling: Spelling
    limit: int | None
    framing: Framing
    masked: ClassVar[bool] = False

    @abstractmethod
    def blank(self, query: Query) -> Blank:
        """Returns the blank of a framed query: the tokens around it, and how it is filled."""

    def spell(self, word: str, query: Query) -> Pieces | None:
        """Returns the pieces of a word in a framed query; None if it is unscorable."""
        return self.spelling.in_sentence(word, query)

    def sentences(self) -> SentenceEncoder | None:
        """Returns the encoder of whole sentences; None for an encoder-decoder."""
        return None

    def encode(self, question: Question) -> EncodedQuestion:
        """Returns a question as rows of token ids.

        There are no rows if no token stands before the blank and the model needs one: then all
        words are unscorable, see `EncodedQuestion.unasked`.

        Raises:
            BadInput: a row is longer than the model can read.
        """
        query = self.framing.apply(question.query)
        blank = self.blank(query)
        if not (blank.left or blank.opens_text):
            unscorable = dict.fromkeys(question.words)  # word -> None
            return EncodedQuestion(question, query, blank, unscorable, (), (), bare=False)
        words = {word: self.spell(word, query) for word in question.words}  # word -> token ids
        rows, partials = blank.rows([pieces for pieces in words.values() if pieces])
        self.check_length(rows, question.query)
        bare = self.spelling.is_bare(query)  # a word lacks the mark of a word's start there
        return EncodedQuestion(question, query, blank, words, tuple(rows), tuple(partials), bare)

    def check_length(self, rows: Iterable[TokenRow], query: Query) -> None:
        """Raises `BadInput` if one of a query's rows is longer than the model can read."""
        longest = max(max(len(row.ids), len(row.source)) for row in rows)
        if self.limit is not None and longest > self.limit:
            context = truncated(query.context)
            prompt_text = "" if self.framing.prompt == SLOT else "its prompt and "
            raise BadInput(
                f"the context {context!r} takes {longest} tokens with {prompt_text}its longest "
                f"candidate, and model {self.spelling.model_id} reads at most {self.limit}: "
                "shorten it or leave it out"
            )


@dataclass(frozen=True)
class MaskedEncoder(QuestionEncoder):
    """Questions to a masked model.

    Attributes:
        mask: id of its mask token.
        lead: by how many tokens its answers stand before the mask: 1 for the kind mntp, else 0.
    """

    mask: int
    lead: int = 0
    masked = True

    def blank(self, query: Query) -> Blank:
        """Returns the tokens left and right of a query's blank, special ones included."""
        left, right = self.spelling.around(query)
        opening, closing = self.spelling.opening, self.spelling.closing
        return Blank(opening + left, right + closing, self.mask, lead=self.lead)

    def sentences(self) -> SentenceEncoder:
        """Returns the encoder of whole sentences, which masks one token after the other."""
        return SentenceEncoder(
            self.spelling,
            self.limit,
            opening=self.spelling.opening,
            closing=self.spelling.closing,
            mask=self.mask,
            lead=self.lead,
            pll=self.framing.options.pll,
        )


@dataclass(frozen=True)
class CausalEncoder(QuestionEncoder):
    """Questions to a causal model: `opening` (special tokens), the context, the word.

    A space before the word belongs to the word. A blank at the beginning of a text follows the
    model's beginning-of-sequence token, as the first word of a sentence does.

    Attributes:
        opening: ids of the special tokens before every context, see `_opening`; () for none.
    """

    opening: Pieces

    def blank(self, query: Query) -> Blank:
        """Returns the tokens left of a query's blank; the text right of it is not read."""
        left = self.opening + self.spelling.text(query.context)
        # A model tells what comes next only after some token: this one where there is no other. To
        # other contexts nothing is added that the tokenizer and `--bos` do not put before them.
        if not left and self.spelling.bos is not None and self.framing.options.bos != "never":
            left = (self.spelling.bos,)
        return Blank(left)

    def spell(self, word: str, query: Query) -> Pieces | None:
        """Returns the pieces of a word after the context; None if it is unscorable."""
        return self.spelling.after(word, query)

    def sentences(self) -> SentenceEncoder:
        """Returns the encoder of whole sentences.

        With `--bos auto`, the beginning-of-sequence token stands first where the model has one and
        the tokenizer puts nothing before a text: otherwise the first word would have no
        probability. In unit `word` the distribution after the last token is read, too, since the
        boundary correction needs it.
        """
        options = self.framing.options
        bos = options.bos
        tokenizer_omits_bos = not self.spelling.opening and self.spelling.bos is not None
        if bos == "auto" and tokenizer_omits_bos:
            bos = "always"
        opening = _opening(self.spelling, bos)
        return SentenceEncoder(self.spelling, self.limit, opening, reads_end=options.unit == "word")

    @property
    def reads_bos(self) -> bool:
        """Whether a special token stands before contexts, also as a part of a chat template."""
        bos_name = self.spelling.name(self.spelling.bos)  # "" without such a token
        prompt_has_bos = bos_name != "" and self.framing.prompt.startswith(bos_name)
        return bool(self.opening) or prompt_has_bos


@dataclass(frozen=True)
class Seq2SeqEncoder(QuestionEncoder):
    """Questions to an encoder-decoder: the encoder reads the sentence, the decoder fills its blank.

    The T5 family reads a sentinel at the blank and answers with the sentinel and what belongs
    there: the decoder is scored after the sentinel. BART reads a mask and writes the whole sentence
    again: the decoder is scored after the text left of the blank.

    Attributes:
        filler: id of the sentinel or mask that stands at the blank.
        start: the decoder's start token.
        repeats_filler: T5's way, not BART's.
    """

    filler: int
    start: int
    repeats_filler: bool

    def blank(self, query: Query) -> Blank:
        """Returns what decoder and encoder read: the source is the sentence with `filler` in it."""
        left, right = self.spelling.around(query)
        left = self.spelling.opening + left
        right = right + self.spelling.closing
        before_answer = (self.filler,) if self.repeats_filler else left
        return Blank((self.start, *before_answer), source=(*left, self.filler, *right))


def question_encoder(
    model_id: str, parts: Parts, options: QueryOptions, limit: int | None
) -> QuestionEncoder:
    """Returns the encoder of a model's kind; `limit` is the longest input in tokens, or None.

    Raises:
        BadInput: the options do not apply to the kind, or an encoder-decoder fills blanks in a way
            that is neither T5's nor BART's.
    """
    tokenizer = parts.tokenizer
    if parts.kind == "causal":
        return causal_encoder(model_id, tokenizer, options, limit)
    # `stored` has the options that are not at their default
    problem = refusal(Case(given=options.stored(), kind=parts.kind))
    if problem:
        raise BadInput(f"model {model_id}: {problem}")
    spelling = Spelling(tokenizer, model_id, final_period=options.final_period == "always")
    framing = Framing(options)
    if parts.kind in ("masked", "mntp"):
        lead = 1 if parts.kind == "mntp" else 0
        return MaskedEncoder(spelling, limit, framing, tokenizer.mask_token_id, lead)
    # an encoder-decoder: with T5's sentinel in its vocabulary, it fills blanks in T5's way
    start = parts.model.config.decoder_start_token_id
    model_type = parts.model.config.model_type
    sentinel = tokenizer.get_vocab().get(_SENTINEL)
    fills_like_t5 = sentinel is not None
    filler = sentinel if fills_like_t5 else tokenizer.mask_token_id
    if filler is None or start is None or not (fills_like_t5 or model_type == "bart"):
        raise BadInput(
            f"model {model_id} is not supported: {model_type} is an encoder-decoder other than "
            f"BART, and its tokenizer does not have T5's {_SENTINEL}"
        )
    return Seq2SeqEncoder(spelling, limit, framing, filler, start, repeats_filler=fills_like_t5)


def causal_encoder(
    model_id: str, tokenizer: PreTrainedTokenizerFast, options: QueryOptions, limit: int | None
) -> CausalEncoder:
    """Returns the encoder of a causal model, of which only the tokenizer is needed.

    `limit` is the longest input in tokens, or None.

    Raises:
        BadInput: there is no chat template, or the prompt repeats a special token.
    """
    spelling = Spelling(tokenizer, model_id, final_period=options.final_period == "always")
    prompt = options.prompt
    if options.chat:
        prompt = chat_prompt(tokenizer, options.instruction, model_id)
    framing = Framing(options, prompt or SLOT)
    bos = "never" if options.chat else options.bos  # a chat template has its own
    opening = _opening(spelling, bos)
    if opening and spelling.text(framing.prompt)[: len(opening)] == opening:
        raise BadInput(
            f"model {model_id}: the prompt begins with {tokenizer.bos_token}, which stands "
            "before every context in any case: leave it out, or add --bos never"
        )
    return CausalEncoder(spelling, limit, framing, opening)


def _opening(spelling: Spelling, bos: Bos) -> Pieces:
    """Returns the special tokens that stand before every text of a causal model.

    "auto" keeps what the tokenizer puts there, "always" adds the beginning-of-sequence token where
    it is missing, "never" leaves all of them out, and "eos" puts the end-of-sequence token there.
    Raises `BadInput` if the tokenizer lacks the token.
    """
    if bos == "never":
        return ()
    if bos == "eos":
        return _eos_opening(spelling)
    # of a tokenizer that names no such token, any token that it puts before a text counts as one
    has_bos = bool(spelling.opening) and spelling.bos in (None, *spelling.opening)
    if bos == "auto" or has_bos:
        return spelling.opening
    if spelling.bos is None:
        raise BadInput(
            f"model {spelling.model_id}: its tokenizer has no beginning-of-sequence token: "
            "leave --bos always out, or use --bos eos"
        )
    return (spelling.bos, *spelling.opening)


def _eos_opening(spelling: Spelling) -> Pieces:
    """Returns the special tokens before a text with `--bos eos`: the end-of-sequence token first.

    Raises `BadInput` if the tokenizer has a beginning-of-sequence token, or neither token.
    """
    head = f"model {spelling.model_id}: its tokenizer"
    if spelling.bos is not None:
        name = spelling.name(spelling.bos)
        raise BadInput(f"{head} has the beginning-of-sequence token {name}: use --bos always")
    if spelling.eos is None:
        raise BadInput(f"{head} has no end-of-sequence token: leave --bos eos out")
    if spelling.eos in spelling.opening:
        return spelling.opening
    return (spelling.eos, *spelling.opening)
