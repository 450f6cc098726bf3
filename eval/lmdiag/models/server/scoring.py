"""From the log-probabilities of tokens to the scores of words."""

from __future__ import annotations

import math
from collections.abc import Sequence

from lmdiag.models.server.dialects import ServedToken
from lmdiag.models.tokens.conventions import CONTINUES
from lmdiag.models.tokens.sentences import TokenSpan
from lmdiag.types import WordScore, WordSpan


def score_tokens(own: Sequence[ServedToken], top: Sequence[ServedToken]) -> WordScore:
    """Returns the score of a word.

    Its rank is known where it is not less probable than the last of the top tokens. Its own first
    token does not count, and a word of one token has the place of its token in the list.

    Args:
        own: its tokens.
        top: the most probable tokens at the blank, best first.

    Raises:
        WrongReply: a token has no log-probability.
    """
    total = math.fsum(token.nats for token in own)
    if total == -math.inf:
        return WordScore(None, None, len(own))
    first = own[0]
    others = [token for token in top if not same_token(token, first)]
    listed = next((token.log_prob for token in top if same_token(token, first)), None)
    value = total if listed is None or len(own) > 1 else listed
    above = sum(token.nats > value for token in others)
    is_known = bool(top) and value >= top[-1].nats
    return WordScore(total, 1 + above if is_known else None, len(own))


def same_token(one: ServedToken, other: ServedToken) -> bool:
    """Returns whether two tokens are one, by their ids if both have one, else by their texts."""
    if one.id is not None and other.id is not None:
        return one.id == other.id
    return one.text is not None and one.text == other.text


def is_complete(top: Sequence[ServedToken], length: int) -> bool:
    """Returns whether a list of top tokens lacks none.

    Servers send the list as texts with a log-probability each. Tokens that have a part of a
    character only may share a text, and then only one of them is in the list.

    Args:
        top: the list.
        length: that was asked for.
    """
    return len(top) >= length or not any(token.id is None and _is_broken(token) for token in top)


def _is_broken(token: ServedToken) -> bool:
    return not token.text or "\ufffd" in token.text


def score_words(spans: Sequence[TokenSpan], values: Sequence[float | None]) -> list[WordSpan]:
    """The words of a sentence, from the log-probability of each token.

    A word that is less probable than the server tells counts as one that cannot be represented:
    without it the sentence would be too probable.
    """
    words = []
    for span in spans:
        own = values[span.first : span.last]
        known = [value for value in own if value is not None]
        if not span.spelled or -math.inf in known:
            words.append(WordSpan(span.start, span.end, None, 0))
        else:
            total = math.fsum(known) if len(known) == len(own) else None
            words.append(WordSpan(span.start, span.end, total, span.last - span.first))
    return words


def show_text(text: str, *, bare: bool) -> str:
    """A token as it stands in a list of top words, from its text alone."""
    solid = text.strip()
    if not solid or not solid.isprintable() or "\ufffd" in solid:
        shown = text.replace(" ", "▁")
        return "".join(x if x.isprintable() else repr(x)[1:-1] for x in shown) or "[no text]"
    return solid if bare or text[:1].isspace() else CONTINUES + solid
