"""From questions to prompts, and from replies to the tokens of words.

`TokenPrompts` sends token ids. The tokenizer that the user names splits contexts and words, as it
does for a model in this process, so nothing depends on how the server splits a text. `TextPrompts`
sends texts, and a word has the tokens that the server gives it: the server must split the context
as it does without the word, and a token must begin where the word, or the space before it, does.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from lmdiag.models.server.alignment import placed, spelled
from lmdiag.models.server.dialects import Prompt, Reply, ServedToken, WrongReply
from lmdiag.models.server.scoring import score_words, show_text
from lmdiag.models.tokens.framing import Framing
from lmdiag.models.tokens.sentences import CausalSentences, TokenSpan, word_spans
from lmdiag.models.tokens.spelling import opens_line
from lmdiag.text import truncated
from lmdiag.types import BadInput, Query, Question, Sentence, WordSpan

if TYPE_CHECKING:
    from transformers import PreTrainedTokenizerFast

    from lmdiag.models.tokens.encoders import CausalEncoder
    from lmdiag.models.tokens.vocabulary import Vocabulary


@dataclass(frozen=True)
class ServedQuestion:
    """A question as prompts.

    Attributes:
        question: the question.
        context: what stands before the blank.
        words: candidate word -> the context with the word; None for an unscorable word.
        bare: see `EncodedQuestion`.
    """

    question: Question
    context: Prompt
    words: Mapping[str, Prompt | None]
    bare: bool

    @property
    def text(self) -> str:
        """The context, for messages."""
        return self.question.query.context

    @property
    def prompts(self) -> list[Prompt]:
        """All that is asked: the context, then the words that can be scored."""
        return [self.context, *(each for each in self.words.values() if each is not None)]


@dataclass(frozen=True)
class ServedSentence:
    """A sentence as prompts: one, or a window each of a long text.

    Attributes:
        sentence: the sentence.
        prompts: all that is asked.
        parts: for each prompt, which of its tokens are those of the text that it scores.
        spans: words in order with their tokens; empty if only the server knows its tokens.
    """

    sentence: Sentence
    prompts: list[Prompt]
    parts: Sequence[range] = ()
    spans: Sequence[TokenSpan] = ()

    @property
    def text(self) -> str:
        """The sentence, for messages."""
        return self.sentence.text


class Prompts(ABC):
    """Turns questions into prompts, and replies into the tokens of words."""

    @abstractmethod
    def question(self, question: Question) -> ServedQuestion:
        """Returns a question as prompts. Raises `BadInput` if it is too long or too short."""

    @abstractmethod
    def sentence(self, sentence: Sentence) -> ServedSentence:
        """Returns a sentence as prompts. Raises `BadInput` if it has no words."""

    @abstractmethod
    def check(self, prompt: Prompt, reply: Reply) -> None:
        """Raises `WrongReply` if the tokens of a reply are not those of the prompt."""

    @abstractmethod
    def of_word(
        self, context: Prompt, whole: Prompt, before: Reply, reply: Reply
    ) -> Sequence[ServedToken]:
        """Returns the tokens of a word.

        Args:
            context, whole: the prompts without and with the word.
            before, reply: what the server said of them.

        Raises:
            WrongReply: the tokens of the word cannot be told from those of the context.
        """

    @abstractmethod
    def of_sentence(self, asked: ServedSentence, replies: Sequence[Reply]) -> list[WordSpan]:
        """Returns the words of a sentence. Raises `WrongReply` if they cannot be told apart."""

    @abstractmethod
    def show(self, token: ServedToken, *, bare: bool) -> str:
        """Returns a token as it stands in a list of top words; see `Vocabulary.show`."""

    def followed(self, context: Prompt) -> Prompt:
        """Returns a context with something after it, whatever it is."""
        return f"{context} the" if isinstance(context, str) else (*context, context[-1])

    @abstractmethod
    def extended(self, prompt: Prompt, token: ServedToken) -> Prompt | None:
        """Returns a prompt with a token after it; None if the token cannot be asked for."""


class TokenPrompts(Prompts):
    """Prompts of token ids.

    Args:
        encoder: splits contexts and words.
        sentences: splits sentences.
        vocabulary: shows tokens.
    """

    def __init__(
        self, encoder: CausalEncoder, sentences: CausalSentences, vocabulary: Vocabulary
    ) -> None:
        self.encoder, self.sentences, self.vocabulary = encoder, sentences, vocabulary

    def question(self, question: Question) -> ServedQuestion:
        """See `Prompts.question`."""
        context = self.encoder.blank(question.query).left
        spelt = {word: self.encoder.spell(word, question.query) for word in question.words}
        words = {word: None if ids is None else context + ids for word, ids in spelt.items()}
        self.encoder.check_length(self.encoder.encode(question).rows, question.query)
        return ServedQuestion(question, context, words, self.encoder.is_bare(question.query))

    def sentence(self, sentence: Sentence) -> ServedSentence:
        """See `Prompts.sentence`."""
        encoded = self.sentences.encode(sentence)
        opening, first = self.sentences.opening, self.sentences.first_scored
        windows = self.sentences.windows(len(encoded.ids))
        prompts: list[Prompt] = [opening + encoded.ids[each.start : each.end] for each in windows]
        before = len(opening)
        parts = [
            range(before + max(each.scored.start, first) - each.start,
                  before + each.scored.stop - each.start)
            for each in windows
        ]  # fmt: skip
        return ServedSentence(sentence, prompts, parts, encoded.spans)

    def check(self, prompt: Prompt, reply: Reply) -> None:
        """See `Prompts.check`."""
        ids = [token.id for token in reply.prompt]
        if len(ids) != len(prompt) or any(
            id not in (None, sent) for id, sent in zip(ids, prompt, strict=True)
        ):
            raise WrongReply(
                f"gives {len(ids)} tokens with log-probabilities for a prompt of {len(prompt)} "
                "tokens, or other tokens than were sent"
            )
        _refuse_gaps(reply.prompt)

    def of_word(
        self, context: Prompt, whole: Prompt, before: Reply, reply: Reply
    ) -> Sequence[ServedToken]:
        """See `Prompts.of_word`."""
        return _known(reply.prompt[len(context) :])

    def of_sentence(self, asked: ServedSentence, replies: Sequence[Reply]) -> list[WordSpan]:
        """See `Prompts.of_sentence`."""
        values: list[float | None] = [None] * self.sentences.first_scored
        for reply, part in zip(replies, asked.parts, strict=True):
            values += [reply.prompt[number].log_prob for number in part]
        return score_words(asked.spans, values)

    def extended(self, prompt: Prompt, token: ServedToken) -> Prompt | None:
        """See `Prompts.extended`."""
        ids = (token.id,) if token.id is not None else self.encoder.spelling.text(token.text or "")
        return (*prompt, *ids) if isinstance(prompt, tuple) and len(ids) == 1 else None

    def show(self, token: ServedToken, *, bare: bool) -> str:
        """See `Prompts.show`."""
        if token.id is None:
            return show_text(token.text or "", bare=bare)
        return self.vocabulary.show(token.id, bare=bare)


class TextPrompts(Prompts):
    """Prompts of text.

    Args:
        framing: how contexts are changed before they are sent.
        tokenizer: to know which words are unscorable; None if the user named none.
        encoder: the same tokenizer as an encoder.
    """

    def __init__(
        self,
        framing: Framing,
        tokenizer: PreTrainedTokenizerFast | None = None,
        encoder: CausalEncoder | None = None,
    ) -> None:
        self.framing, self.encoder = framing, encoder
        self._special = frozenset(tokenizer.all_special_tokens if tokenizer else ())

    def question(self, question: Question) -> ServedQuestion:
        """See `Prompts.question`."""
        context = self.framing.apply(question.query).context
        if not context:
            raise BadInput(
                "a question has an empty context, and a server gives no probability to the first "
                "word of a text: leave the row out, or add --prompt"
            )
        bare = opens_line(context)
        before = context if bare else f"{context} "
        words = {
            word: before + word if self._is_scorable(word, question.query) else None
            for word in question.words
        }
        return ServedQuestion(question, context, words, bare)

    def _is_scorable(self, word: str, query: Query) -> bool:
        return self.encoder is None or self.encoder.spell(word, query) is not None

    def sentence(self, sentence: Sentence) -> ServedSentence:
        """See `Prompts.sentence`."""
        if not sentence.text.strip():
            raise BadInput(f"the sentence {sentence.text!r} has no words: leave it out")
        return ServedSentence(sentence, [sentence.text])

    def check(self, prompt: Prompt, reply: Reply) -> None:
        """See `Prompts.check`."""
        before, _ = _placed(str(prompt), reply)
        _refuse_gaps(reply.prompt[max(0, before - 1) :])

    def of_word(
        self, context: Prompt, whole: Prompt, before: Reply, reply: Reply
    ) -> Sequence[ServedToken]:
        """See `Prompts.of_word`."""
        special, starts = _placed(str(whole), reply)
        n_before = sum(start < len(context) for start in starts) + special
        texts = [[token.text for token in each.prompt] for each in (before, reply)]
        if texts[0] != texts[1][:n_before] or len(context) not in starts:
            raise WrongReply(
                f"splits the context {truncated(str(context))!r} in another way where "
                f"{str(whole)[len(context) :]!r} follows, so that the tokens of the word are not "
                "known: leave the row out, or use a server that takes token ids, with --tokenizer"
            )
        return _known(reply.prompt[n_before:])

    def of_sentence(self, asked: ServedSentence, replies: Sequence[Reply]) -> list[WordSpan]:
        """See `Prompts.of_sentence`."""
        (reply,) = replies
        before, starts = _placed(asked.sentence.text, reply)
        spans = tuple(word_spans(asked.sentence, spelled(asked.sentence.text, starts)))
        return score_words(spans, [token.log_prob for token in reply.prompt[before:]])

    def extended(self, prompt: Prompt, token: ServedToken) -> Prompt | None:
        """See `Prompts.extended`; what does not begin a word would join the last one."""
        text = token.text or ""
        begins_word = text.startswith(" ") and text.isascii() and text[1:].isalpha()
        return prompt + text if isinstance(prompt, str) and begins_word else None

    def show(self, token: ServedToken, *, bare: bool) -> str:
        """See `Prompts.show`."""
        text = token.text or ""
        return text if text in self._special else show_text(text, bare=bare)


def _placed(prompt: str, reply: Reply) -> tuple[int, list[int]]:
    if not reply.prompt:
        raise WrongReply("gives no log-probabilities of the prompt")
    if (place := placed(prompt, reply.prompt)) is None:
        joined = "".join(token.text or "" for token in reply.prompt)
        raise WrongReply(
            f"gives tokens that join to {truncated(joined)!r} for the text {truncated(prompt)!r}"
        )
    return place


def _refuse_gaps(tokens: Sequence[ServedToken]) -> None:
    """Raises `WrongReply` if a token other than the first one has no log-probability."""
    lacking = sum(token.log_prob is None for token in tokens[1:])
    if lacking:
        raise WrongReply(
            f"gives no log-probability for {lacking} of {len(tokens)} tokens of a prompt"
        )


def _known(tokens: Sequence[ServedToken]) -> Sequence[ServedToken]:
    """The tokens of a word, all of which have a log-probability."""
    if not tokens or any(token.log_prob is None for token in tokens):
        raise WrongReply("gives no log-probability for a word, since nothing stands before it")
    return tokens
