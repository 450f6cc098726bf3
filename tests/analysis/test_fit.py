"""Fits to human measures against arithmetic done by hand; published figures: test_reproduced.py."""

import math

import numpy as np
import pandas as pd
import pytest
from scipy.stats import chi2, norm
from scipy.stats import f as f_distribution
from wordfreq import word_frequency

import lmdiag
from lmdiag.analysis.fit import fit_surprisals
from lmdiag.analysis.human import read_human, read_surprisals
from lmdiag.analysis.procedures import Procedure
from lmdiag.analysis.regression import fit_formula, without_terms
from lmdiag.analysis.selection import Selection
from lmdiag.report.fits import human_plots
from lmdiag.types import BadInput


def fitted(frame, *sources, profile=None, **chosen):
    table = read_human(frame, profile, Procedure(**chosen))
    return fit_surprisals(table, [read_surprisals(table, source) for source in sources])


def coefficients(model):
    return dict(model.terms["estimate"])


# ---- held out -----------------------------------------------------------------------------------


def test_wilcox_equals_a_direct_computation_fold_by_fold():
    rng = np.random.default_rng(0)
    lengths = {"a": 40, "b": 33, "c": 31}
    places = [(text, position) for text, n in lengths.items() for position in range(1, n + 1)]
    words = pd.DataFrame(places, columns=["text", "position"])
    words = words.assign(len=rng.integers(1, 12, 104), freq=rng.uniform(4, 20, 104))
    words["bits"] = rng.exponential(6, 104)
    words.loc[[19, 44], "freq"] = math.inf, 0.0
    frame = words.loc[words.index.repeat(3)].reset_index(drop=True)
    frame["rt"] = 200 + 3 * frame["bits"] + rng.normal(0, 20, len(frame))
    frame.loc[3 * 81 + 1, "rt"] = math.nan  # a reader's; the word has a mean over two others
    fit = fitted(frame, "bits", profile="wilcox2023", response="rt")

    x = pd.DataFrame({"one": np.ones(104)})
    for name in ("freq", "len", "bits"):
        for lag in range(3):
            x[f"{name}{lag}"] = words.groupby("text")[name].shift(lag)
    y = frame.groupby(["text", "position"])["rt"].mean().reset_index()["rt"]
    kept = (
        x.notna().all(axis=1) & x.filter(like="freq").gt(0).all(axis=1) & ~np.isinf(x).any(axis=1)
    )
    x, y = x[kept].to_numpy(), y[kept].to_numpy()
    n = len(y)
    assert n == 104 - 3 * 2 - 2 * 3  # two words of each text, and three around each bad frequency
    bounds = [1 + k * (n - 1) / 10 for k in range(1, 10)]  # of folds, each closed on the right
    folds = np.searchsorted(bounds, range(1, n + 1))
    delta = np.empty(n)
    for fold in range(10):
        test = folds == fold
        density = []
        for columns in (x, x[:, :7]):
            beta, rss, rank, _ = np.linalg.lstsq(columns[~test], y[~test])
            sd = math.sqrt(rss[0] / (n - test.sum() - rank))
            density.append(norm.logpdf(y[test], columns[test] @ beta, sd))
        delta[test] = density[0] - density[1]
    (model,) = fit.models
    assert model.words["delta"].to_numpy() == pytest.approx(delta, rel=1e-9)
    assert model.n == n
    assert model.per_word == pytest.approx(delta.mean())
    margin = 1.96 * delta.std(ddof=1) / math.sqrt(n)
    assert (model.ci_low, model.ci_high) == pytest.approx(
        (delta.mean() - margin, delta.mean() + margin)
    )
    assert model.published_p < 0.001
    rss = [np.linalg.lstsq(columns, y)[1].item() for columns in (x[:, :7], x)]
    assert model.statistic == pytest.approx((rss[0] - rss[1]) / 3 / (rss[1] / (n - 10)))
    assert (model.test, model.df) == ("F", (3, n - 10))
    assert model.p == pytest.approx(f_distribution.sf(model.statistic, 3, n - 10))
    (other,) = fitted(frame, "bits", response="rt", controls=("len",), folds=5).models
    assert math.isnan(other.published_p)


def test_the_lags_of_a_file_are_used():
    """Files of the corpus hold the lags of words that have no row themselves."""
    rng = np.random.default_rng(1)
    names = ["surp", "prev_surp", "prev2_surp", "freq", "prev_freq", "prev2_freq", "len"]
    frame = pd.DataFrame(rng.uniform(1, 9, (60, 9)), columns=[*names, "prev_len", "prev2_len"])
    frame = frame.assign(trialid=1, ianum=range(60), gaze_rt=rng.normal(200, 9, 60), model="m")
    frame.loc[:1, ["prev2_surp", "prev2_freq", "prev2_len"]] = math.nan
    frame.loc[9, "freq"] = 0.0  # which the profile leaves out
    other = frame.assign(model="other", surp=0.0)
    both = pd.concat([frame, other])
    fit = fitted(both, "surp", profile="wilcox2023", filter=("model=m",))
    kept = frame.drop(index=[0, 1, 9])
    x = np.column_stack([np.ones(57), kept[[*names, "prev_len", "prev2_len"]]])
    beta = np.linalg.lstsq(x, kept["gaze_rt"], rcond=None)[0]
    assert coefficients(fit.models[0])["surprisal_prev_2"] == pytest.approx(beta[3])
    assert fit.models[0].left_out["not model=m"] == 59  # and one by the profile
    assert fit.models[0].n == 57
    with pytest.raises(BadInput, match=r"rows:61: column surprisal is 0 but was .* choose rows"):
        fitted(both.reset_index(drop=True), "surp", profile="wilcox2023")


# ---- without a profile --------------------------------------------------------------------------


def corpus():
    """Two texts, told apart by numbers that sort differently as text."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame(rng.uniform(1, 9, (60, 2)), columns=["a", "log_frequency"])
    frame = frame.assign(text=np.repeat([2, 10], 30), position=[*range(30)] * 2)
    frame["word"] = ["word" * (i % 4 + 1) for i in range(60)]
    return frame.assign(rt=300 + 4 * frame["a"] + rng.normal(0, 5, 60), keep=np.arange(60) % 3 > 0)


def test_lags_stay_within_texts_and_precede_filters():
    frame = corpus()
    fit = fitted(frame.sample(frac=1, random_state=0), "a", response="rt", filter=("keep=True",))
    (model,) = fit.models
    now = frame[["a", "log_frequency"]].assign(length=frame["word"].str.len())
    lagged = [now.groupby(frame["text"]).shift(lag).add_suffix(str(lag)) for lag in (1, 2)]
    x = pd.concat([now, *lagged], axis=1)
    kept = x[frame["keep"] & x.notna().all(axis=1)]
    y = frame["rt"][kept.index]
    beta, rss, *_ = np.linalg.lstsq(np.column_stack([np.ones(len(kept)), kept]), y)
    likelihood = -len(y) / 2 * (math.log(2 * math.pi * rss[0] / len(y)) + 1)
    assert coefficients(model)["surprisal"] == pytest.approx(beta[1])
    assert model.aic == pytest.approx(2 * 11 - 2 * likelihood)  # ten coefficients, a variance
    assert math.isnan(model.ci_low)  # a delta in sample cannot be negative
    # of each text's 30 rows 10 are filtered, and of its first two words the second
    assert model.left_out == {"not keep=True": 20, "surprisal_prev_2 is missing": 2}
    assert "length: characters of word" in fit.notes


def test_a_filter_names_columns_and_values_as_in_other_commands():
    frame = corpus().assign(subject=[*["01"] * 40, *["1"] * 20])
    for condition, n in (("Subject=01", 36), ("subject!=01", 20), ("keep=TRUE", 38)):
        assert fitted(frame, "a", response="rt", filter=(condition,)).models[0].n == n


def test_coefficients_are_per_unit_and_per_bit():
    frame = corpus()
    bits = fitted(frame, "a", response="rt").models[0]
    frame["a"] *= math.log(2)
    nats = fitted(frame, "a", response="rt", units="nats").models[0]
    assert coefficients(nats)["surprisal"] == pytest.approx(bits.per_bit / math.log(2))
    assert nats.per_bit == pytest.approx(bits.per_bit)
    assert nats.mean_surprisal == pytest.approx(bits.mean_surprisal)
    assert nats.delta_log_likelihood == pytest.approx(bits.delta_log_likelihood)
    formulas = ("rt ~ surprisal + length", "scale(rt) ~ scale(surprisal) + length")
    plain, scaled = (fitted(frame, "a", formula=x, units="nats").models[0] for x in formulas)
    assert scaled.per_bit == pytest.approx(plain.per_bit)


def test_models_are_compared_on_the_same_rows():
    frame = corpus()
    rng = np.random.default_rng(5)
    frame["b"] = rng.uniform(1, 9, len(frame))
    frame["c"] = frame["a"] + rng.normal(0, 0.1, len(frame))
    frame.loc[7, "b"] = math.nan
    fit = fitted(frame, "a", "b", "c", response="rt", lags=0)
    first, second, third = fit.models
    assert {model.n for model in fit.models} == {59}
    assert first.left_out == {"no surprisal of another model": 1}
    assert second.left_out == {"surprisal is missing": 1}
    against_b, against_c = fit.comparisons.itertuples()
    assert against_b.difference == pytest.approx(second.per_word - first.per_word)
    assert against_b.p_adjusted == pytest.approx(2 * against_b.p)
    assert against_c.p > 0.01
    assert against_c.ci_low < third.per_word - first.per_word < against_c.ci_high


def test_controls_are_computed_from_words_or_read():
    frame = corpus().drop(columns="log_frequency")
    frame["word"] = ["the", "robin", "is", "near", "a", "blue"] * 10
    computed = fitted(frame, "a", response="rt", lags=0).models[0]
    frequency = [-math.log2(word_frequency(word, "en")) for word in frame["word"]]
    for table in (frame, frame.assign(len=frame["word"].str.len(), freq=frequency)):
        read = fitted(table, "a", response="rt", lags=0, controls=("length", "freq")).models[0]
        assert read.delta_log_likelihood == pytest.approx(computed.delta_log_likelihood)
        assert coefficients(read)["freq"] == pytest.approx(-coefficients(computed)["log_frequency"])


def test_formulas_have_products_and_functions():
    frame = corpus()
    fit = fitted(frame, "a", formula="log(rt) ~ surprisal * log_frequency + scale(length)")
    f, s = frame["log_frequency"], frame["a"]
    length = frame["word"].str.len()
    x = np.column_stack([np.ones(60), s, f, s * f, (length - length.mean()) / length.std()])
    beta = np.linalg.lstsq(x, np.log(frame["rt"]), rcond=None)[0]
    names = ["Intercept", "surprisal", "log_frequency", "surprisal:log_frequency", "scale(length)"]
    assert coefficients(fit.models[0]) == pytest.approx(dict(zip(names, beta, strict=True)))
    assert fit.baseline == "log(rt) ~ log_frequency + scale(length)"


def test_a_mixed_model_has_a_likelihood_ratio_and_a_baseline_without_slopes_of_surprisal():
    frame = corpus().assign(s=[*"abcdef"] * 10)
    name = "log_frequency"  # does not predict rt: p is far from 0
    fit = fitted(frame, name, formula="rt ~ surprisal + position + (1 + position | s)")
    (model,) = fit.models
    assert fit.baseline == "rt ~ position + (1 + position | s)"
    assert (model.test, model.df) == ("LR", (1,))
    assert model.statistic == pytest.approx(2 * model.delta_log_likelihood)
    assert model.p == pytest.approx(chi2.sf(model.statistic, 1))
    assert math.isnan(model.ci_low)
    other = fitted(frame, name, profile="michaelov2024", formula=fit.full).models[0]
    assert other.aic == model.aic  # no row is repeated
    formula = "y ~ surprisal + a + (surprisal | s) + (1 + a + scale(surprisal) || i:j)"
    assert without_terms(formula, "surprisal") == "y ~ a + (1 | s) + (1 + a || i:j)"
    formula = "y ~ 0 + a + surprisal + (0 + surprisal | s) + (1 | i)"
    assert without_terms(formula, "surprisal") == "y ~ 0 + a + (1 | i)"


# ---- readers, gaps, predictors -------------------------------------------------------------------


def readers(n=3):
    """Rows of word and reader; the words of positions 0 to 2 and 5 of both texts are missing."""
    frame = corpus().loc[lambda words: ~words["position"].isin([0, 1, 2, 5])]
    rows = frame.loc[frame.index.repeat(n)].assign(subject=[*range(n)] * len(frame))
    return rows.assign(rt=rows["rt"] + rows["subject"] ** 2).reset_index(drop=True)


def test_names_in_backticks_and_functions_are_columns_of_their_own_in_mixed_models():
    rng = np.random.default_rng(0)
    rows = pd.DataFrame({"rt": rng.normal(size=60), "c": rng.uniform(1, 2, 60)})
    rows["subject"] = [f"s{i % 6}" for i in range(60)]
    rows["rt"] += rows["subject"].str[1:].astype(float)
    rows = rows.assign(**{"the subject": rows["subject"], "log_c": rng.normal(size=60)})
    plain = fit_formula("rt ~ c + (1 | subject)", rows)
    for group in ("`the subject`", "`subject`"):
        quoted = fit_formula(f"rt ~ c + (1 | {group})", rows)
        assert quoted.log_likelihood == plain.log_likelihood
        assert [*quoted.groups.values()] == [6]
    both = fit_formula("rt ~ log(c) + log_c + (1 | subject)", rows)
    assert [*both.terms.index] == ["Intercept", "log(c)", "log_c"]


def test_rows_of_a_word_are_averaged_unless_the_formula_groups_by_reader():
    frame = readers()
    averaged = fitted(frame, "a", response="rt", lags=0)
    # the mean of 0, 1 and 4 is added to each word
    words = frame[frame["subject"] == 0].assign(rt=lambda rows: rows["rt"] + 5 / 3)
    alone = fitted(words, "a", response="rt", lags=0)
    assert averaged.models[0].figures() == pytest.approx(alone.models[0].figures(), nan_ok=True)
    assert any("rt: mean over subject, 156 rows of 52 words" in note for note in averaged.notes)
    assert not any("mean" in note for note in alone.notes)
    by_text = fitted(frame, "a", formula="rt ~ surprisal + (1 | text)").models[0]
    by_reader = fitted(frame, "a", formula="rt ~ surprisal + (1 | subject)").models[0]
    assert (by_text.n, by_reader.n) == (52, 156)


def test_gaps_in_positions_are_counted_on_the_fitted_rows():
    notes = fitted(readers(1), "a", response="rt", filter=("text=10",)).notes
    # of positions 3, 4, 6, 7, ... the words 6 and 7 have an earlier word beyond the gap
    assert "earlier words of 2 rows are beyond a gap in the column position" in notes[-1]
    assert "the first time in rows:29" in notes[-1]


def test_predictors_are_fitted_alone_together_and_beyond_each_other(tmp_path):
    frame = corpus().assign(entropy=np.random.default_rng(3).uniform(1, 9, 60))
    chosen = {"response": "rt", "lags": 1, "controls": ("log_frequency",)}
    fit = fitted(frame, "a", predictors=("surprisal", "entropy"), **chosen)
    names = [model.name.removeprefix("a: ") for model in fit.models]
    assert names[:3] == ["surprisal", "entropy", "surprisal + entropy"]
    assert names[3:] == ["surprisal beyond entropy", "entropy beyond surprisal"]
    surprisal, entropy, both, _, beyond = fit.models
    (alone,) = fitted(frame, "a", **chosen).models
    assert surprisal.statistic == pytest.approx(alone.statistic)
    (alone,) = fitted(frame, "entropy", **chosen).models
    assert entropy.statistic == pytest.approx(alone.statistic)
    controls = ("log_frequency", "a")
    (rest,) = fitted(frame, "entropy", **{**chosen, "controls": controls}).models
    assert (beyond.statistic, beyond.df) == (pytest.approx(rest.statistic), (2, 58 - 7))
    assert both.delta_log_likelihood == pytest.approx(
        surprisal.delta_log_likelihood + beyond.delta_log_likelihood
    )
    made = frame[["text", "position", "entropy"]].assign(surprisal=frame["a"])
    made.to_csv(tmp_path / "a.csv", index=False)
    plain = frame.drop(columns="entropy")
    read = fitted(plain, str(tmp_path / "a.csv"), predictors=("surprisal", "entropy"), **chosen)
    assert [m.p for m in read.models] == pytest.approx([m.p for m in fit.models])


def test_a_misspelt_column_is_refused_before_a_model_is_loaded(monkeypatch):
    monkeypatch.setattr("lmdiag.api.model.load_model", None)
    with pytest.raises(BadInput, match=r"rows: no column 'RT' \(did you mean 'rt'\?\)"):
        lmdiag.fit(texts(), models="demo:causal", response="RT")


# ---- bad input ----------------------------------------------------------------------------------


def changed(**columns):
    frame = corpus()
    for name, value in columns.items():
        if isinstance(value, tuple):
            frame[name] = frame[name].astype(object)
            frame.loc[value[0], name] = value[1]
        else:
            frame[name] = value
    return frame


@pytest.mark.parametrize(
    ("frame", "chosen", "message"),
    [
        (changed(a=1.5), {}, "column surprisal is constant (1.5) on the fitted rows: drop it"),
        (changed(), {"controls": ("length", "nothing",)}, "rows: no column 'nothing'"),
        (changed(a=(4, math.inf)), {"lags": 0}, "rows:5: column surprisal is infinite"),
        (changed(rt=(4, 0.0)), {"formula": "log(rt) ~ surprisal"}, "rows:5: log(rt) is not"),
        (changed(b=corpus()["a"]), {"controls": ("b",), "lags": 0}, "surprisal and the control b"),
        (changed(position=0), {}, "rows:2: column word: 'wordword' stands where rows:1 has 'word'"),
        (changed(position=0, word="a"), {}, "in an earlier row of the same word"),
        (pd.concat([readers(), readers()[4:5]]), {}, "rows:157: a second row of subject 1 for the "
         "word of row 5"),
        (readers(), {"reader": "person"}, "rows: no column 'person'"),
        (readers().assign(age=readers()["subject"]), {"controls": ("age",), "lags": 0},
         "column age is 1 but was 0 in an earlier row of the same word"),
        (changed(), {"predictors": ("entropy",)}, "no column 'entropy'"),
        (changed(), {"filter": ("keep",)}, "filter 'keep': write it as COLUMN=VALUE"),
        (changed(), {"filter": ("text=02",)}, "no row has '02' in text, which has 2, 10"),
        (changed(), {"filter": ("other=1",)}, "filter 'other=1': rows: no column 'other'"),
        (changed(), {"filter": ("rt>b",)}, "filter 'rt>b': 'b' is not a number"),
        (changed(), {"filter": ("rt>9999",)}, "a: no row is left: not rt>9999 (60)"),
        (changed(), {"formula": "b ~ surprisal"}, "is not about rt: name one"),
        (changed(), {"filter": ("position<9",), "folds": 2}, "14 rows are too few for 10"),
        (changed(), {"folds": 1}, "folds must be 0"),
        (changed(), {"formula": "rt ~ surprisal ~ a"}, "write it as in time ~"),
        (changed(), {"formula": "rt ~ length"}, "has no term surprisal"),
        (changed(), {"formula": "rt ~ surprisal^2"}, "cannot read '^'"),
        (changed().drop(columns="position"), {}, "which column is the position of a word?"),
    ],
)  # fmt: skip
def test_bad_input_is_one_line(frame, chosen, message):
    with pytest.raises(BadInput) as refused:
        fitted(frame, "a", **{"response": "rt"} | chosen)
    assert message in str(refused.value)
    assert "\n" not in str(refused.value)


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("s.tsv", "text\tposition\tsurprisal\n2\t0\t1\n2\t0\t3\n", "s.tsv:3: a second surprisal"),
        ("s.tsv", "text\tbits\n2\t0\n", "needs a column 'surprisal'"),
        ("s.tsv", "text\tsurprisal\n7\t0\n", "s.tsv and rows have no text in common"),
        ("s.json", '{"2": [[1, 2]]}', "must be an object with the texts of rows"),
        ("s.json", '{"2": [[1, 2]], "10": [[1]]}', "text 2 has 2 surprisals; rows has 30 words"),
        ("s.json", '{"2": [["x"]], "10": [[1]]}', "text 2 is not a list of lists of numbers"),
        ("s.txt", "", "is neither a column of rows nor a file"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, name, text, message):
    path = tmp_path / name
    if text:
        path.write_text(text)
    with pytest.raises(BadInput, match=message):
        fitted(corpus(), str(path), response="rt")


def test_surprisals_are_joined_by_the_columns_that_tables_share(tmp_path):
    frame = corpus()
    other = frame[["text", "position", "word", "a"]].rename(columns={"a": "Surprisal"})
    other = pd.concat([other, other[:9]])  # rows of two readers repeat each other
    other = other.astype({"text": float}).sample(frac=1, random_state=0)
    other.to_csv(tmp_path / "model.csv", index=False)
    columns = {"text": "story", "position": "number", "word": "token"}
    # columns of the table with this name belong to other surprisals
    unrelated = frame.rename(columns=columns).assign(surprisal=1.0, surprisal_prev_1=1.0)
    joined = fitted(unrelated, str(tmp_path / "model.csv"), response="rt", **columns)
    direct = fitted(frame, "a", response="rt")
    assert joined.models[0].name == "model"
    assert joined.models[0].per_word == pytest.approx(direct.models[0].per_word)


def test_composed_and_decomposed_letters_are_one_word(tmp_path):
    """In tables that are joined, rows of readers, full texts, and lengths."""
    composed = ["le", "caf\u00e9", "na\u00eff"]
    decomposed = ["le", "cafe\u0301", "nai\u0308f"]
    frame = pd.DataFrame({"text": 1, "position": [1, 2, 3] * 2, "word": composed + decomposed})
    frame = frame.assign(reader=[1] * 3 + [2] * 3, full=" ".join(decomposed))
    frame["rt"] = [3.0, 8, 2, 5, 4, 4]
    other = frame[:3].assign(word=decomposed, surprisal=[4.0, 2, 5])[["word", "surprisal"]]
    other.to_csv(tmp_path / "other.csv", index=False)
    table = read_human(
        frame, chosen=Procedure(response="rt", formula="rt ~ surprisal + length", sentence="full")
    )
    source = read_surprisals(table, str(tmp_path / "other.csv"))
    assert source.values.tolist() == [4, 2, 5] * 2
    assert Selection(table, source).values("length").tolist() == [2, 4, 4] * 2
    assert [*table.running_texts().texts.values()] == [" ".join(decomposed)]


def test_a_filter_on_an_earlier_surprisal_takes_the_one_that_was_read(tmp_path):
    """Not the table's own column of that name, which belongs to other surprisals."""
    frame = corpus().assign(surprisal_prev_1=9.0)
    frame[["text", "position"]].assign(surprisal=frame["a"]).to_csv(tmp_path / "a.csv", index=False)
    chosen = {"response": "rt", "lags": 1, "filter": ("surprisal_prev_1>4",)}
    (model,) = fitted(frame, str(tmp_path / "a.csv"), **chosen).models
    assert model.n == (frame.groupby("text")["a"].shift(1) > 4).sum()


# ---- models are asked about the words -----------------------------------------------------------


WORDS = "the robin is not a bird tree hammer saw daisy of near old river while sang"


def texts():
    """Three texts of words that the demo model knows and some that it does not."""
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"text": np.sort(rng.integers(3, size=60)), "row": range(60)})
    frame["position"] = frame.groupby("text").cumcount()
    frame = frame.assign(word=rng.choice(WORDS.split(), 60), log_frequency=rng.normal(0, 1, 60))
    return frame.assign(rt=rng.normal(300, 20, 60))


def test_surprisals_of_a_model_are_those_of_its_words_and_an_interrupted_fit_resumes(
    tmp_path, monkeypatch
):
    frame = texts()
    model = lmdiag.load_model("demo:causal")
    joined = frame.groupby("text")["word"].agg(" ".join)
    frame["bits"] = np.asarray(model.surprisals(joined)["surprisal"])
    answer, asked = model.model.answer, []

    def counted(encoded, *top):
        if len(asked) == 2:
            raise KeyboardInterrupt
        asked.append(len(encoded))
        return answer(encoded, *top)

    monkeypatch.setattr(model.model, "answer", counted)
    options = {"models": model, "output": tmp_path, "response": "rt", "batch_size": 1}
    with pytest.raises(KeyboardInterrupt):
        lmdiag.fit(frame, **options)
    asked[:] = [0]
    again = [lmdiag.fit(frame, **options) for _ in range(2)]
    assert asked == [0, 1]  # the third text alone, once
    read = lmdiag.fit(frame, surprisal="bits", response="rt").models[0]
    for fit in again:
        assert fit.models[0].delta_log_likelihood == pytest.approx(
            read.delta_log_likelihood, rel=1e-3
        )


def test_each_layer_is_fitted_as_its_surprisals_alone():
    """Names have the layer; a line says how many were tried."""
    frame = texts()
    model = lmdiag.load_model("demo:causal")
    words = model.surprisals(frame.groupby("text")["word"].agg(" ".join), layers="all")
    layers = [*words["layer"].unique()]
    found = lmdiag.fit(frame, models=model, layers="all", response="rt")
    assert [fit.layer for fit in found.models] == layers
    names = [f"demo:causal, layer {layer}" for layer in layers]
    assert [fit.name for fit in found.models] == names
    for layer, fit in zip(layers, found.models, strict=True):
        frame["bits"] = words.loc[words["layer"] == layer, "surprisal"].to_numpy()
        alone = lmdiag.fit(frame, surprisal="bits", response="rt").models[0]
        for name in ("n", "per_word", "p", "mean_surprisal"):
            assert getattr(fit, name) == pytest.approx(getattr(alone, name), rel=1e-6)
    best = max(found.models, key=lambda fit: fit.per_word)
    (line,) = [note for note in found.notes if "tried" in note]
    assert line.startswith(
        f"{len(layers)} layers were tried; the largest gain is that of layer {best.layer}, "
    )
    assert line.endswith("test it on other rows")
    (plot,) = [plot for plot in human_plots(found) if plot.name == "layers"]
    drawn = plot.spec["data"]["values"]
    assert {row["layer"]: row["value"] for row in drawn} == {
        fit.layer: pytest.approx(fit.per_word) for fit in found.models
    }
    assert {row["series"] for row in drawn} == {"demo:causal"}


@pytest.mark.parametrize(
    ("word", "chosen", "message"),
    [
        ("ice cream", {"models": "demo:causal"}, "word 'ice cream' contains a blank; a row is one"),
        ("x", {"models": "demo:causal"}, "rows:61: column word: 'x' stands where rows:1 has"),
        ("x", {}, "name a model to ask, --model MODEL, or"),
        ("x", {"surprisal": "row", "lag": 1}, "fit has no option 'lag': choose from resp"),
    ],
)
def test_words_and_options_that_cannot_be_used(word, chosen, message):
    frame = texts()
    with pytest.raises(BadInput, match=message):
        lmdiag.fit(pd.concat([frame, frame.assign(word=word)]), response="rt", **chosen)
