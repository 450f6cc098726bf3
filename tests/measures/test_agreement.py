"""TSE, EW and MW: the literal definition by hand, averages over contexts, a model against both."""

import math

import pandas as pd
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from invented_runs import by_name, predictions_of, rows_of
from models.toys import ask, asked, bert
from reference import CLOSE, Reference
from tokenizer_files import wordpiece

from lmdiag import api, diagnostics
from lmdiag.diagnostics import agreement
from lmdiag.measures import AGREEMENT_LAYOUT, CUTOFFS, MeasureName
from lmdiag.models.agreement import agreement_values
from lmdiag.models.demo import DEMO_NAMES, demo_folder
from lmdiag.stimuli import load, load_verbs
from lmdiag.types import Query, Question

TOY = {"are": 0.6, "is": 0.05, "exist": 0.1, "exists": 0.25}
PAIRS = [("are", "is"), ("exist", "exists")]


def ew_mw(probabilities, pairs, end="top", cutoff=1.0):
    """Returns EW, MW and the mass that counts; NaN where no verb is kept.

    A cut-off keeps tokens from its end of the vocabulary, sorted by probability, until their
    cumulative mass reaches it; the values are interpolated linearly at the cut-off between the last
    token before and the first at or past it, and where only one of the two is defined, it is used.
    In the top a verb counts for EW when either form is kept, and for MW only kept forms do; in the
    bottom both forms must be kept. A top cut-off of 1 keeps the whole vocabulary.

    Args:
        probabilities: every item of the vocabulary -> its probability; equal ones in order of id.
        pairs: (right form, wrong form) of every verb whose forms are both single items.
        end: "top" for the most probable items, "bottom" for the least probable ones.
        cutoff: cumulative probability up to which items are kept, from that end.
    """
    enough = 2 if end == "bottom" else 1

    def values(kept):
        """When exactly these items are kept."""
        counted = [pair for pair in pairs if sum(form in kept for form in pair) >= enough]
        right = sum(probabilities[pair[0]] for pair in counted if pair[0] in kept)
        mass = right + sum(probabilities[pair[1]] for pair in counted if pair[1] in kept)
        if not counted or mass == 0:
            return math.nan, math.nan, math.nan
        ew = sum(probabilities[a] > probabilities[b] for a, b in counted) / len(counted)
        return ew, right / mass, mass

    if (end, cutoff) == ("top", 1.0):
        return values(probabilities)
    order = sorted(probabilities, key=lambda token: -probabilities[token])
    if end == "bottom":
        order.reverse()
    before, cumulative = 0, 0.0
    while before < len(order) and cumulative + probabilities[order[before]] < cutoff:
        cumulative += probabilities[order[before]]
        before += 1
    last, first = values({*order[:before]}), values({*order[: before + 1]})
    if math.isnan(last[0]) or before >= len(order):
        return first
    share = (cutoff - cumulative) / probabilities[order[before]]
    ew, mw, mass = (a + share * (b - a) for a, b in zip(last, first, strict=True))
    return ew, mw, mass


def literal(p, verbs):
    """Every value of a context, over all verbs and at every cut-off; NaN where undefined.

    Args:
        p: probability of every token.
        verbs: ids of the right and the wrong form of every verb.
    """
    words = {str(token): value for token, value in enumerate(p)}
    pairs = [(str(right), str(wrong)) for right, wrong in verbs]
    values = [*ew_mw(words, pairs)[:2]]
    for cutoff in CUTOFFS:
        end, mass = cutoff.split("=")
        values += ew_mw(words, pairs, end, float(mass))
    return dict(zip(AGREEMENT_LAYOUT, values, strict=True))


def test_the_cut_offs_are_those_of_the_specification():
    top = [f"top=0.{digits}" for digits in (1, 2, 3, 4, 5, 6, 7, 8, 9, 95, 97)]
    bottom = ("0.5", "0.1", "0.01", "0.001", "0.0001", "1e-05", "1e-06")
    assert (*top, "top=1", *(f"bottom={mass}" for mass in bottom)) == CUTOFFS
    assert AGREEMENT_LAYOUT[:5] == ("ew", "mw", "ew@top=0.1", "mw@top=0.1", "mass@top=0.1")
    assert len(AGREEMENT_LAYOUT) == 2 + 3 * 19


def test_the_mass_on_verb_forms_is_not_labelled_as_the_mass_of_cloze_norms():
    assert MeasureName.of("mass@top=0.1").label == "mass, top 0.1"
    assert MeasureName.of("mass").label == "probability of human responses"


@pytest.mark.parametrize(
    ("end", "mass", "expected"),
    [
        # sorted from the top: are .6, exists .25, exist .1, is .05
        # .3 and .6 are reached by the first token alone, before which nothing is kept:
        # EW compares are with is though `is` is not kept, MW has the mass of are alone
        ("top", 0.3, (1, 1, 0.6)),
        ("top", 0.6, (1, 1, 0.6)),
        # .7 lies .1 into the .25 of exists, a share of .4: EW from 1 to 1/2, MW from 1 to .6 / .85
        ("top", 0.7, (1 - 0.4 / 2, 1 - 0.4 * (1 - 0.6 / 0.85), 0.6 + 0.4 * 0.25)),
        # .9 lies half way into exist: EW stays 1/2, MW goes from .6 / .85 to .7 / .95
        ("top", 0.9, (0.5, (0.6 / 0.85 + 0.7 / 0.95) / 2, 0.9)),
        ("top", 1.0, (0.5, 0.7, 1.0)),  # the toy example of Newman's text
        # from the bottom: is .05, exist .1, exists .25, are .6; both forms must be kept
        # up to .15 no verb has both: nothing is defined before or at the cut-off
        ("bottom", 0.1, (math.nan,) * 3),
        # .3 lies in exists, where the verb is complete for the first time: only that is defined
        ("bottom", 0.3, (0, 0.1 / 0.35, 0.35)),
        # .7 lies .3 into the .6 of are, half way: EW from 0 to 1/2, MW from .1 / .35 to .7
        ("bottom", 0.7, (0.25, (0.1 / 0.35 + 0.7) / 2, (0.35 + 1) / 2)),
    ],
)
def test_cut_offs_by_hand(end, mass, expected):
    assert ew_mw(TOY, PAIRS, end, mass) == pytest.approx(expected, nan_ok=True)


def check_values(found, row, pairs, plural, tolerance):
    """Compares values with the definition's, in the layout's order; None where undefined."""
    forms = [(p, s) if plural else (s, p) for s, p in pairs]
    expected = literal(row.double().exp().tolist(), forms)
    for (name, right), value in zip(expected.items(), found, strict=True):
        assert (value is None) == math.isnan(right), name
        assert value is None or value == pytest.approx(right, abs=tolerance), name


@given(
    seed=st.integers(0, 10**6),
    spread=st.sampled_from([0.0, 0.3, 2.0, 6.0, 12.0]),
    n_verbs=st.integers(0, 20),
)
@settings(max_examples=60)
def test_values_of_any_distribution(seed, spread, n_verbs):
    """Flat, peaked and tied distributions, few verbs and many, or none."""
    generator = torch.Generator().manual_seed(seed)
    logits = spread * torch.randn(11, 80, generator=generator, dtype=torch.float64)
    log_probs = logits.round(decimals=1).log_softmax(-1)  # rounded: some are equal
    pairs = torch.randperm(80, generator=generator)[: 2 * n_verbs].view(-1, 2).tolist()
    plural = [number % 3 != 1 for number in range(11)]  # more than are sorted at a time
    values = agreement_values(pairs, log_probs, plural)
    for found, row, label in zip(values, log_probs, plural, strict=True):
        check_values(found, row, pairs, label, 1e-9)


@pytest.mark.slow
def test_values_of_a_large_vocabulary():
    """Large enough for sums of float32 to differ, with ties, and more verbs than in the data."""
    generator = torch.Generator().manual_seed(0)
    logits = 3 * torch.randn(1, 20_000, generator=generator)
    log_probs = logits.bfloat16().float().log_softmax(-1)
    pairs = torch.randperm(20_000, generator=generator)[:1200].view(-1, 2).tolist()
    check_values(agreement_values(pairs, log_probs, [True])[0], log_probs[0], pairs, True, 1e-11)


PAIRS_OF_ROWS = (
    ("1", "The keys", "here.", "simple_agrmt_all", "plural"),
    ("2", "The keys", "here.", "simple_agrmt_all", "singular"),
    ("3", "The keys", "there.", "simple_agrmt_all", "plural"),
    ("4", "A key by doors", ".", "prep_anim_all", "singular"),
    ("5", "Women", ".", "irregular", "plural"),
    ("6", "Women", ".", "regular", "plural"),
)
"""Name, both sides of the blank, template and number: two share a context, over two templates."""
ROWS = rows_of(
    *(
        {
            "id": f"{name}-{side}", "good": side == "good", "contrast": name,
            "context": left, "right_context": right, "template": template,
            "source": "blimp" if name in "56" else "marvin_linzen", "number": number,
        }
        for name, left, right, template, number in PAIRS_OF_ROWS
        for side in (("bad", "good") if name == "4" else ("good", "bad"))
    )
)  # fmt: skip


def measured(*, left_only=False, **predictions):
    answers = vars(predictions_of(ROWS, **predictions))
    return by_name(diagnostics.get("agreement").score(ROWS, answers, left_only=left_only))


def values(ew, mw, at=(0.5, 0.5, 0.5)):
    """The values of a context, the same at every cut-off."""
    return (ew, mw, *at * len(CUTOFFS))


def test_tse_is_over_pairs_of_single_tokens():
    scores = measured(
        log_prob=[-1, -2, -3, -2, -1, -2, -2, -1, -1, -2, -1, None],
        n_tokens=[1, 1, 1, 1, 2, 1, 1, 1, 1, 3, 1, 0],
    )
    assert scores["tse"].items.tolist() == ["1", "2", "4"]  # 3 and 5 have pieces, 6 is unscorable
    assert scores["tse"].values.tolist() == [1, 0, 1]
    assert scores["sensitivity"].items.tolist() == ["1", "2", "3", "4", "5"]
    assert scores["sensitivity"].left_out == ("6",)
    by = scores["sensitivity"].levels["construction"]
    sizes = {"simple": 3, "across_prepositional_phrase": 1, "blimp": 1}
    assert {level: len(items) for level, items in by.items()} == sizes
    assert "ew" not in scores
    assert "tse" not in measured(log_prob=[-1.0, -2.0] * 6)  # token counts are not known


def test_a_context_counts_once_with_the_label_of_its_first_pair():
    by_pair = [(0.1, 0.2), (0.9, 0.8), (0.3, 0.3), (0.4, 0.4), (0.6, 0.6), (0.6, 0.6)]
    shares = [values(*pair) for pair in by_pair for _ in range(2)]
    ew = measured(agreement=shares)["ew"]
    assert ew.items.tolist() == ["1-good", "3-good", "4-good", "5-good"]
    assert ew.values.tolist() == [0.1, 0.3, 0.4, 0.6]
    assert set(ew.chance) == {0.5}
    means = {
        by: {level: ew.at(by, level).values.mean() for level in levels}
        for by, levels in ew.levels.items()
    }
    expected = {"simple": 0.2, "across_prepositional_phrase": 0.4, "blimp": 0.6}
    assert means["construction"] == pytest.approx(expected)
    assert ew.at("construction", "across_prepositional_phrase").items.tolist() == ["4-good"]
    # the shared context of the two BLiMP templates counts once in all, and once in each of them
    assert means["template"]["irregular"] == means["template"]["regular"] == pytest.approx(0.6)
    left = measured(agreement=shares, left_only=True)["ew"]
    assert left.items.tolist() == ["1-good", "4-good", "5-good"]


def test_contexts_without_kept_verbs_are_left_out_and_counted():
    nothing = values(0.5, 0.5, (None, None, None))
    scores = measured(agreement=[nothing] * 4 + [values(0.5, 0.5, (0.25, 0.75, 0.1))] * 8)
    for name, value in (("ew", 0.25), ("mw", 0.75), ("mass", 0.1)):
        assert scores[f"{name}@bottom=0.001"].values.tolist() == [value] * 3
    assert scores["ew@bottom=0.001"].left_out == ("1-good",)
    assert "simple" in scores["ew@bottom=0.001"].levels["construction"]  # context 3 is kept
    assert scores["left_out@bottom=0.001"].values.tolist() == [1, 0, 0, 0]
    assert scores["left_out@bottom=0.001"].statistic == "proportion"
    assert scores["ew"].values.tolist() == [0.5] * 4


def test_all_upstream_templates_have_a_construction(upstream):
    paths = (upstream / "refining-tse/data/ML").glob("*.jsonl")
    names = {path.stem: agreement.construction(path.stem) for path in paths}
    assert not set(names) & set(names.values())
    assert len(set(names.values())) == 9  # and BLiMP: the ten rows of the paper's table
    assert agreement.construction("regular", "blimp") == "blimp"


def test_a_model_with_verbs():
    """Verbs of single tokens count, once each, for questions with a number."""
    tokenizer = wordpiece("the", "key", "is", "are", "laugh", "##s", "laughs", "run", ".", "it")
    model = asked(bert(len(tokenizer)), tokenizer, "masked")
    verbs = [("is", "are"), ("laughs", "laugh")]
    others = [("runs", "run"), ("sings", "sing"), ("Is", "are"), ("is", "are"), ("it", "it")]
    assert model.set_verbs([*verbs, *others]) == 2
    query = Query("the key", ".")
    plain, numbered = ask(model, Question(query, ("is",)), Question(query, ("is",), "singular"))
    assert plain.agreement is None
    assert numbered.agreement


@pytest.mark.parametrize("name", DEMO_NAMES)
def test_all_scores_are_those_of_the_literal_calculation(name, demo_dir):
    """That of transformers' own forward pass, one context at a time, and `literal`.

    In float64: in float32 two verbs that are almost equally probable may change places.
    """
    model = api.load_model(f"demo:{name}", dtype="float64")
    stimuli = load(str(demo_dir), "agreement", limit=60)
    measures = api.measure(model.predict(stimuli), stimuli)
    convention = {"masked": "wordpiece", "causal": "byte-level"}[name]
    reference = Reference(demo_folder(name), name, convention)

    def item(word):
        pieces = reference.spell(word)
        return pieces[0] if pieces and len(pieces) == 1 else None

    verbs = [tuple(map(item, pair)) for pair in load_verbs(stimuli.source)]
    single = [verb for verb in verbs if None not in verb]
    assert len(single) > 20
    ids = {"singular": single, "plural": [(plural, singular) for singular, plural in single]}

    rows = stimuli.table.to_pandas()
    if name == "causal":
        rows["right_context"] = ""
    rows["asked"] = rows["context"] + " _ " + rows["right_context"]
    expected = {}
    for row in rows.drop_duplicates("asked").itertuples():  # the label is that of the first pair
        words = row.asked.split()
        absent = next(word for word in ("is", "was", "robin") if word not in words)
        left = row.context[0].upper() + row.context[1:]
        p = reference.blank(left, row.right_context, absent).exp().tolist()
        expected[row.asked] = literal(p, ids[row.number])

    scores = pd.DataFrame.from_dict(expected, orient="index")
    for name in scores:
        values = scores[name].dropna()
        if values.empty:
            assert name not in measures
            continue
        assert measures[name].n == len(values), name
        assert measures[name].value == pytest.approx(values.mean(), abs=CLOSE), name
