"""What marks the place of a word, markup, and the end of a sentence in texts."""

GAP = (
    r"_{3,}|(?<!\w)__(?!\w)|\[(?:BLANK|MASK)\]|<(?:blank|mask|extra_id_0)>|\{\}|(?-i:\bX{4,}\b)"
    r"|(?-i:\$[A-Z][A-Z_]{2,}\b)"
)
"""How the place of a word is often marked, without regard to letter case. Two underscores may be
part of a name."""

MARKUP = (
    r"</?(?!(?:mask|blank|unk|s|bos|eos|pad|sep|cls)\b)[a-z][a-z0-9]*(?:\s[^<>]{0,200})?/?>|\\[a-z]+\{"
    r"|&(?:[a-z]{2,8}|#\d{1,6});"
)
"""HTML's tags and characters by name, and LaTeX's commands, without regard to letter case. Tokens
of models such as <unk> are not markup."""

SENTENCE_ENDS = ".!?…。！？\"'”’)"
"""Characters at the end of a whole sentence."""


def is_ended(text: str) -> bool:
    """Returns whether a text ends as sentences do, and not in an ellipsis.

    >>> is_ended("He ran. "), is_ended("He ran ..."), is_ended("He ran")
    (True, False, False)
    """
    end = text.rstrip()
    return end[-1:] in SENTENCE_ENDS and not end.endswith(("...", "…"))
