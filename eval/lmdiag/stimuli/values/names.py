"""Known names of columns, by what they are: one table that every command reads.

Names only suggest: whether a column is what its name says is decided by its values, see
`lmdiag.stimuli.values.kinds`. All names are folded, see `lmdiag.text.folded`.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import product

from lmdiag.text import DATA_SUFFIX, folded

NAMES_OF_RESPONSES = ("response", "answer", "reply", "produced", "typed")
"""Names that mean nothing else than what people wrote beside a context."""

NAMES: Mapping[str, tuple[str, ...]] = {
    "item": (
        "item", "itemid", "itemnumber", "itemnum", "itemno", "itemnr", "itemnummer", "itemindex",
        "itemset", "stimulus", "stimulusid", "stimid", "stim", "sentenceid", "sentid", "set",
        "frame", "sentenceframe", "frameid", "pair", "pairid", "quadruple", "id",
    ),
    "text": (
        "text", "textid", "textnumber", "textnr", "article", "articleid", "story", "storyid", "doc",
        "docid", "passage", "passageid", "trialid", "item", "itemid", "itemnumber", "itemnr",
        "sentence", "sentenceid", "sentencenumber", "sentenceindex", "sent", "sentid", "sentindex",
        "sentno", "sentnr", "trial",
    ),
    "position": (
        "position", "zone", "ianum", "iaid", "sentpos", "wordindex", "wordposition", "wordnumber",
        "wordnr", "wordno", "wordnum", "wordn", "wordid", "wordorder", "wordpos", "wordidx",
        "tokenid", "tokenindex", "regionposition", "regionnumber", "regionindex", "regionid", "aoi",
        "ia",
    ),
    "word": ("word", "ia", "token", "ialabel", "wordform", "target"),
    "reader": (
        "reader", "subject", "participant", "subid", "workerid", "subj", "sub", "participantid",
        "partid", "subjectid", "readerid", "ppt", "pp", "ppid", "vp", "proband", "subjnr",
        "subjectnr",
        "subjid", "subjectnumber", "participantnumber", "worker", "prolificid", "mturkid", "user",
        "userid", "respondent", "student", "person", "md5",
        "md5hashofparticipantsipaddress",
    ),
    "context": (
        "context", "sentencecontext", "preamble", "stem", "frame", "sentenceframe", "prompt",
        "fragment", "sentencefragment", "beginning", "sentencebeginning", "sentencestem",
        "sentencepreamble", "premise", "prime", "left",
        "discourse", "scenario", "background", "vignette", "leadin", "contextsentence",
        "leftcontext", "pretarget", "prefix",
    ),
    "right_context": (
        "rightcontext", "continuation", "sentencecontinuation", "rest", "sentencerest", "remainder",
        "right", "posttarget", "suffix", "aftertarget",
    ),
    "target": (
        "targetword", "criticalword", "critword", "finalword", "lastword", "word", "target",
        "completion", "continuation", "ending", "critical", "crit", "keyword", "tgt",
    ),
    "response": (
        *NAMES_OF_RESPONSES, "completion", "continuation", "ending", "word", "target",
    ),
    "count": (
        "count", "counts", "n", "freq", "frequency", "nresponses", "numresponses",
        "numberofresponses",
        "responsecount", "total",
    ),
    "cloze": (
        "cloze", "clozeprobability", "clozeprob", "clozevalue", "proportion", "prop", "share",
        "prob", "p", "percent", "percentage",
    ),
    "list": (
        "list", "lists", "lst", "group", "grp", "version", "latin", "form", "block",
        "counterbalance", "counterbalancing", "order", "script", "session", "listnumber", "listid",
        "listno", "listnr", "experimentlist", "presentationlist", "counterbalancelist",
        "questionnaire", "run", "half",
    ),
    "outcome": (
        "accuracy", "acc", "correct", "iscorrect", "correctness", "qcorrect", "questioncorrect",
        "questionaccuracy", "qacc", "answercorrect", "responsecorrect", "responseaccuracy", "error",
        "hit", "answer", "correctanswer", "expectedanswer", "expectedresponse", "correctresponse",
        "response", "choice", "selected", "key", "keypress", "keypressed", "button", "rating",
        "judgment", "judgement", "score", "rt", "rts", "readingtime", "time", "duration", "latency",
        "regression", "skip", "skipped", "fixated", "comprehension", "compacc", "compcorrect",
    ),
    "person": (
        "age", "sex", "gender", "education", "handedness", "nativelanguage", "firstlanguage", "l1",
        "nationality", "country", "proficiency",
    ),
    "set": (
        "dataset", "experiment", "exp", "expt", "study", "source", "corpus", "block", "part",
        "subset", "materials", "suite",
    ),
}  # fmt: skip
"""What a column is -> its known names; those that come first are preferred."""

NAMES_OF_WORDS: Mapping[str, tuple[str, ...]] = {
    "text": ("text", "article", "trialid", "docid", "sentence"),
    "position": ("position", "zone", "ianum", "sentpos"),
    "word": ("word", "ia", "target"),
}
"""Names of `NAMES` that mean nothing else in a table with a row per word: these are taken, the
first that a table has, while the others are only proposed. An `item` may be a text or its
condition, and the number of a sentence may count in its text or in the table."""

READING_MEASURES = frozenset((
    "ff", "ffd", "fp", "fpd", "fprt", "gd", "gaze", "gazeduration", "gopast", "gp", "gpt", "rp",
    "rpd", "rpt", "rpath", "regpath", "regressionpath", "tt", "tvt", "tft", "trt", "total",
    "totaltime", "totalreadingtime", "ro", "ri", "regout", "regin", "rr", "rrt", "rereading", "sp",
    "spd", "secondpass", "sfd", "singlefixation", "firstfixation", "firstfixationduration",
    "firstpass", "firstpasstime", "rt", "readingtime", "dwell", "dwelltime", "skip", "skipping",
    "accuracy", "acc", "rating", "fix", "nfix", "fixations", "rb", "rbt", "rightbounded",
))  # fmt: skip
"""Names of measures of reading, which may be levels of a column: a row is then one measure."""

_NO_TIMES = frozenset((
    "ff", "fp", "ro", "ri", "regout", "regin", "sp", "skip", "skipping", "accuracy", "acc",
    "rating", "fix", "nfix", "fixations",
))  # fmt: skip
_TIMES = (READING_MEASURES - _NO_TIMES) | {"rts", "time", "duration", "latency"}
"""Names of measures of time."""

_JUDGED = (
    ("good", "bad"), ("correct", "incorrect"), ("correct", "wrong"), ("right", "wrong"),
    ("grammatical", "ungrammatical"), ("gram", "ungram"), ("acceptable", "unacceptable"),
)  # fmt: skip
_PAIRS = (
    *_JUDGED, ("more", "less"), ("plausible", "implausible"), ("possible", "impossible"),
    ("positive", "negative"), ("pos", "neg"), ("true", "false"), ("a", "b"), ("1", "2"), ("0", "1"),
)  # fmt: skip
"""Parts of the names of two columns, of which the first is often the good one; those that are not
judgments stand in the names of sentences."""

_CONDITIONS = (
    *_PAIRS[:-2], ("sg", "pl"), ("sing", "plur"), ("singular", "plural"), ("match", "mismatch"),
    ("congruent", "incongruent"), ("expected", "unexpected"), ("related", "unrelated"),
    ("high", "low"), ("short", "long"), ("aff", "neg"), ("affirmative", "negative"),
    ("amb", "unamb"), ("masc", "fem"), ("male", "female"),
)  # fmt: skip
"""Parts of the names of two columns with texts of two conditions; numbers may count parts."""

_SENTENCES = ("sentence", "sent", "sentences", "s")

# parts of folded names of columns of whole sentences
_has_word_for_sentences = re.compile(r"sentence|sent\b|satz|stimul|phrase|oracion|text").search
# parts of folded names of columns of critical words, and of their positions
_has_word_for_critical = re.compile(r"crit|verb|disambig|target|wordpos|posit|^cw$").search
_has_word_for_positions = re.compile(
    r"(crit|verb|disambig|target).*(pos|ind|idx|word|num|nr)|wordpos|posit|crit(ical)?$"
).search
_has_word_for_zero = re.compile(r"0[-_ ]?(idx|ind|base)|zero|(idx|index)[-_ ]?0").search

_is_name_of_lists = re.compile(
    r"(lists?|lst|gro?u?ps?|versions?|latin|counterbalanc|subj|participant|session).*"
).fullmatch

# what folded names of measures have before and behind them
_UNIT = re.compile(r"\Alog|(in)?(ms|msec|milliseconds)\Z")

# the number or the letter of a list
_LAST_NUMBER = re.compile(r"(\d+|(?<![^\W\d_])[a-z])\Z")

_is_name_of_fillers = re.compile(
    r"(filler.*|fill|practi[cs]e.*|prac|training|warm[\W_]?up)[\W_]*\d*", re.IGNORECASE
).fullmatch

TEXT_COLUMNS = ("context", "target", "right_context", "sentence")
"""Columns of the text that a model reads."""


def is_named_as(name: str, role: str) -> bool:
    """Returns whether the name of a column is a known name of a role, see `NAMES`.

    >>> is_named_as("Subject", "reader"), is_named_as("list_2", "list"), is_named_as("rt", "item")
    (True, True, False)
    """
    plain = folded(name.removesuffix(DATA_SUFFIX))
    return plain in NAMES[role] or (role == "list" and bool(_is_name_of_lists(plain)))


def are_lists(name: str, levels: Iterable[str]) -> bool:
    """Returns whether a column has the lists of a Latin square, by its name and its levels.

    A name such as `form` may also be that of a condition: its levels must then differ in a number
    or a letter at their end alone. For other names of lists, the levels do not matter.

    >>> are_lists("version", ["long", "short"]), are_lists("form", ["long", "short"])
    (True, False)
    >>> are_lists("form", ["A", "B"]), are_lists("block", ["block1", "block2"])
    (True, True)
    """
    if not is_named_as(name, "list"):
        return False
    is_surely_list = bool(_is_name_of_lists(folded(name.removesuffix(DATA_SUFFIX))))
    levels_without_number = {_LAST_NUMBER.sub("", level.strip().casefold()) for level in levels}
    return is_surely_list or len(levels_without_number) == 1


def names_sentences(name: str) -> bool:
    """Returns whether the name of a column has a word for whole sentences in it.

    >>> names_sentences("TestSentence"), names_sentences("verb")
    (True, False)
    """
    return bool(_has_word_for_sentences(folded(name)))


def names_critical(name: str, *, is_position: bool) -> bool:
    """Returns whether the name of a column has a word for critical words, or positions, in it.

    >>> names_critical("CritWord", is_position=False), names_critical("verb", is_position=True)
    (True, False)
    """
    search = _has_word_for_positions if is_position else _has_word_for_critical
    return bool(search(folded(name)))


def names_from_zero(name: str) -> bool:
    """Returns whether the name of a column, as `verb_0idx`, says that positions count from 0."""
    return bool(_has_word_for_zero(name.casefold()))


def is_outcome(name: str) -> bool:
    """Returns whether a column has a known name of a response or of a measure of reading.

    >>> is_outcome("RT (ms)"), is_outcome("log_rt"), is_outcome("items")
    (True, True, False)
    """
    if is_named_as(name, "outcome"):
        return True
    plain = folded(name)
    without_unit = _UNIT.sub("", plain)
    if plain in READING_MEASURES or without_unit in READING_MEASURES:
        return True
    # a name without unit or logarithm was compared at the start, by `is_named_as`
    return without_unit != plain and without_unit in NAMES["outcome"]


def is_time(name: str) -> bool:
    """Returns whether a column has a known name of a time, which is not its logarithm.

    >>> is_time("RT"), is_time("Gaze duration (ms)"), is_time("log_rt"), is_time("rating")
    (True, True, False, False)
    """
    plain = folded(name)
    is_logarithm = plain.startswith("log")
    return not is_logarithm and _UNIT.sub("", plain) in _TIMES


def is_filler(level: str) -> bool:
    """Returns whether a level has the name of fillers or practice items.

    >>> is_filler("Filler 2"), is_filler("practice"), is_filler("filled gap")
    (True, True, False)
    """
    return bool(_is_name_of_fillers(level))


def names_measures(levels: Collection[str]) -> bool:
    """Returns whether half of the levels of a column or more, at least two, name reading measures.

    >>> names_measures(["FFD", "gaze", "go-past"]), names_measures(["FFD", "short", "long"])
    (True, False)
    """
    n_measures = sum(folded(level) in READING_MEASURES for level in levels)
    return n_measures >= 2 and 2 * n_measures >= len(levels)


def named_columns(role: str, columns: Iterable[str]) -> list[str]:
    """Returns the columns whose names are known names of a role, in the order of `NAMES`.

    >>> named_columns("reader", ["item", "Subj", "participant"])
    ['participant', 'Subj']
    """
    plain_names = {column: folded(column.removesuffix(DATA_SUFFIX)) for column in columns}
    known_names = NAMES[role]
    matches = [column for column, name in plain_names.items() if name in known_names]
    return sorted(matches, key=lambda column: known_names.index(plain_names[column]))


def pair_of_texts(names: Iterable[str]) -> tuple[str, ...]:
    """Returns two columns that differ in a part of their names, the good one first; () for none.

    The part stands at the beginning or the end: words for judgments, such as good and bad, beside
    any name, and other pairs, such as more and less, beside a name of sentences. The good column
    may lack its part, if what is left is a name of sentences, as in `sentence` and `sentence_bad`.

    >>> pair_of_texts(["sent_less", "sent_more"]), pair_of_texts(["bad_word", "good_word"])
    (('sent_more', 'sent_less'), ('good_word', 'bad_word'))
    """
    by_folded = {folded(name): name for name in names}
    for good, bad in _PAIRS:
        for plain, name in by_folded.items():
            without_end = plain.removesuffix(good)
            without_start = plain.removeprefix(good)
            choices = (
                (without_end, f"{without_end}{bad}"),
                (without_start, f"{bad}{without_start}"),
            )
            for stem, partner in choices:
                # `stem` is the whole name if the name does not have the part `good`
                is_judgment = stem != plain and (good, bad) in _JUDGED
                if (stem in _SENTENCES or is_judgment) and partner in by_folded:
                    return name, by_folded[partner]
    return ()


def name_conditions(first: str, second: str) -> bool:
    """Returns whether two names differ in a part that names conditions, as `verb_sg` and `verb_pl`.

    The part stands at the beginning or the end of the names.

    >>> name_conditions("det1sg", "det1pl"), name_conditions("det1", "det2")
    (True, False)
    """
    pair = {folded(first), folded(second)}
    for level, other_level in _CONDITIONS:
        for name in pair:
            without_end = name.removesuffix(level)
            without_start = name.removeprefix(level)
            differ_at_end = pair == {name, f"{without_end}{other_level}"}
            differ_at_start = pair == {name, f"{other_level}{without_start}"}
            if differ_at_end or differ_at_start:
                # False for names such as det and det_pl, of which one has no level
                return without_end != name or without_start != name
    return False


def pairs_of_conditions(names: Sequence[str]) -> list[tuple[str, str]]:
    """Returns the pairs of names, in their order, that differ in a condition: `name_conditions`.

    >>> pairs_of_conditions(["a", "verb_sg", "verb_pl"])
    [('verb_sg', 'verb_pl')]
    """
    positions_of: dict[str, list[int]] = {}  # folded name -> positions among the names
    for number, name in enumerate(names):
        positions_of.setdefault(folded(name), []).append(number)
    # To look up the name with the other level is faster than to compare all pairs of names.
    # `name_conditions` then excludes names such as det and det_pl.
    pairs = set()
    for plain, numbers in positions_of.items():
        for level, other_level in _CONDITIONS:
            at_end = f"{plain.removesuffix(level)}{other_level}"
            at_start = f"{other_level}{plain.removeprefix(level)}"
            partners = [*positions_of.get(at_end, ()), *positions_of.get(at_start, ())]
            for number, partner in product(numbers, partners):
                if number != partner:
                    pairs.add((min(number, partner), max(number, partner)))
    likely_pairs = [(names[earlier], names[later]) for earlier, later in sorted(pairs)]
    return [pair for pair in likely_pairs if name_conditions(*pair)]


def are_judged(pair: Sequence[str]) -> bool:
    """Returns whether the names of two columns say that the first is good and the second bad.

    >>> are_judged(["good_sentence", "bad_sentence"]), are_judged(["sent_a", "sent_b"])
    (True, False)
    """
    good_name, bad_name = (folded(name) for name in pair)
    return any(good in good_name and bad in bad_name for good, bad in _JUDGED)
