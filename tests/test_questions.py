"""Each distinct context is asked once, and its answer reaches every row that shares it."""

from pathlib import Path

import pyarrow as pa
import pytest

from lmdiag.perturb import perturb
from lmdiag.questions import Setting, collect, spread
from lmdiag.schema import Answer, Query, WordScore
from lmdiag.stimuli import Stimuli, load


def stimuli(task: str, rows: list[dict[str, object]]) -> Stimuli:
    return Stimuli(task, pa.Table.from_pylist(rows), "1a2b3c4d", "rows.csv", None)


def row(name: str, context: str, target: str, **more: object) -> dict[str, object]:
    return {"id": name, "context": context, "right_context": "", "target": target} | more


def test_rows_that_share_a_context_are_one_question_with_their_words_in_order() -> None:
    rows = [row("1", "A robin is a", "bird"), row("2", "A bee is an", "insect")]
    rows.append(row("3", "A robin is a", "tree"))
    questions = collect([Setting(stimuli("mine", rows))], kind="masked", cased=True)
    assert [(q.query.context, q.words) for q in questions] == [
        ("A robin is a", ("bird", "tree")),
        ("A bee is an", ("insect",)),
    ]


def test_the_three_diagnostics_are_326_rows_and_198_contexts(data_dir: Path) -> None:
    settings = [Setting(load(str(data_dir), task)) for task in ("cprag102", "role88", "neg136")]
    assert sum(len(setting.stimuli) for setting in settings) == 326
    assert len(collect(settings, kind="masked", cased=False)) == 198


@pytest.mark.slow
def test_the_minimal_pairs_are_78153_contexts_or_15588_left_ones(agreement_dir: Path) -> None:
    setting = Setting(load(str(agreement_dir), "agreement"))
    masked = collect([setting], kind="masked", cased=False)
    causal = collect([setting], kind="causal", cased=False)
    assert len({question.query for question in masked}) == 78_153
    assert len({question.query for question in causal}) == 15_588


def test_perturbed_settings_share_their_contexts_with_each_other(data_dir: Path) -> None:
    rows = load(str(data_dir), "role88")
    settings = [Setting(rows)]
    settings += [Setting(perturb(rows, name, 0, 0), name) for name in ("obj", "sub", "both")]
    texts = {context for s in settings for context in s.stimuli.columns()["context"]}
    assert len(collect(settings, kind="causal", cased=True)) == len(texts) < 4 * 88


def test_only_agreement_is_capitalised_and_only_for_cased_models() -> None:
    rows = [row("1", "the authors", "laugh", number="plural")]
    for task, cased, expected in (
        ("agreement", True, "The authors"),
        ("agreement", False, "the authors"),
        ("role88", True, "the authors"),
    ):
        (question,) = collect([Setting(stimuli(task, rows))], kind="masked", cased=cased)
        assert question.query.context == expected


def test_a_causal_model_sees_the_left_context_alone() -> None:
    rows = [row("1", "The keys", "are", right_context="here.")]
    for kind, right in (("causal", ""), ("masked", "here.")):
        (question,) = collect([Setting(stimuli("mine", rows))], kind=kind, cased=True)
        assert question.query == Query("The keys", right)


def test_every_row_gets_the_score_of_its_own_word_at_its_own_context() -> None:
    rows = [row("1", "A robin is a", "bird"), row("2", "A robin is a", "tree")]
    setting = Setting(stimuli("mine", rows), "shuf", 7)
    scores = {"bird": WordScore(-0.5, 1, 1), "tree": WordScore(None, None, 0)}
    answer = Answer(scores, ("bird", "nest"), (-0.5, -1.5))
    found = spread(setting, {(Query("A robin is a"), None): answer}, kind="masked", cased=True)
    assert (found.perturbation, found.run) == ("shuf", 7)
    assert found.id == ["1", "2"]
    assert found.log_prob == [-0.5, None]
    assert found.rank == [1, None]
    assert found.n_tokens == [1, 0]
    assert found.top_words == [["bird", "nest"]] * 2
