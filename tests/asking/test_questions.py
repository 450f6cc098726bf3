"""Each distinct context is asked once, and its answer reaches every row that shares it."""

from itertools import chain

from lmdiag.asking.questions import Setting, distinct_questions, to_predictions
from lmdiag.stimuli import Stimuli, load
from lmdiag.types import Answer, Query, Question, Sentence, SentenceAnswer, WordScore, WordSpan


def setting(*rows, task="mine", name="none", run=0):
    """A setting with rows, which are completed."""
    filled = [{"id": str(i), "right_context": ""} | row for i, row in enumerate(rows, start=1)]
    columns = {column: [row[column] for row in filled] for column in filled[0]}
    return Setting(Stimuli(task, columns, "rows", None), name, run)


def asked(*settings, kind="masked", cased=True):
    return [*chain.from_iterable(distinct_questions(settings, kind=kind, cased=cased))]


def test_rows_that_share_a_context_are_one_question_with_their_words_in_order():
    robin, bee = {"context": "A robin is a"}, {"context": "A bee is an"}
    rows = [robin | {"target": "bird"}, bee | {"target": "insect"}, robin | {"target": "tree"}]
    first = Question(Query("A robin is a"), ("bird", "tree"))
    second = Question(Query("A bee is an"), ("insect",))
    assert asked(setting(*rows)) == [first, second]
    # perturbed rows are in other batches than the published ones
    parts = distinct_questions(
        [setting(rows[0]), setting(*rows, name="trunc")], kind="masked", cased=True
    )
    assert parts == [[first], [second]]


def test_published_rows_and_their_contexts(data_dir):
    settings = [Setting(load(str(data_dir), task)) for task in ("cprag102", "role88", "neg136")]
    columns = [setting.stimuli.columns() for setting in settings]
    assert [len(of["id"]) for of in columns] == [102, 88, 136]
    assert {text for of in columns for text in of["right_context"]} == {""}
    assert len(asked(*settings, cased=False)) == 198


def test_only_agreement_is_capitalised_and_causal_models_read_the_left_context():
    row = {"context": "the keys", "right_context": "here.", "target": "are", "number": "plural"}
    cases = [
        ("agreement", "masked", True, ("The keys", "here.")),
        ("agreement", "masked", False, ("the keys", "here.")),
        ("role88", "masked", True, ("the keys", "here.")),
        ("role88", "causal", True, ("the keys", "")),
    ]
    for task, kind, cased, query in cases:
        (question,) = asked(setting(row, task=task), kind=kind, cased=cased)
        assert question.query == Query(*query)
        assert question.number == ("plural" if task == "agreement" else None)


def test_every_row_gets_the_score_of_its_own_word_at_its_own_context():
    rows = [{"context": "A robin is a", "target": target} for target in ("bird", "tree")]
    scores = {"bird": WordScore(-0.5, 1, 1), "tree": WordScore(None, None, 0)}
    answers = {(Query("A robin is a"), None): Answer(scores, ("bird", "nest"), (-0.5, -1.5))}
    part = to_predictions(setting(*rows, name="shuf", run=7), answers, kind="masked", cased=True)
    assert (part.perturbation, part.run, part.id) == ("shuf", 7, ["1", "2"])
    assert (part.log_prob, part.rank, part.n_tokens) == ([-0.5, None], [1, None], [1, 0])
    assert part.top_words == [["bird", "nest"]] * 2
    assert part.top_log_probs == [[-0.5, -1.5]] * 2


def test_rows_that_share_a_sentence_share_its_words():
    """Log-probability and tokens are sums over the words that have a probability."""
    texts = ["A dog.", "A cat.", "A dog."]
    rows = Setting(load({"id": ["1", "2", "3"], "sentence": texts}))
    assert asked(rows, kind="causal") == [Sentence("A dog."), Sentence("A cat.")]
    first = WordSpan(0, 1, None, 1)
    answers = {
        Sentence("A dog."): SentenceAnswer((first, WordSpan(2, 6, -2.5, 2))),
        Sentence("A cat."): SentenceAnswer((first, WordSpan(2, 6, -0.5, 1))),
    }
    part = to_predictions(rows, answers, kind="causal", cased=True)
    assert (part.log_prob, part.n_tokens) == ([-2.5, -0.5, -2.5], [2, 1, 2])
    assert part.words == [answers[Sentence(text)].words for text in texts]
    assert part.rank == part.top_words == part.top_log_probs == [None] * 3
