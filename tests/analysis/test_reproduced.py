"""Published figures are reproduced from the published data, and docs/reproduced.md says so.

What other programs compute is read from `tests/peers/records.json`, which `peers` there writes.
"""

import json
import re
import shlex
import shutil
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import torch
from launched import printed
from scipy.stats import ttest_ind

from lmdiag import api, stimuli
from lmdiag.analysis.linear import fit_mixed
from lmdiag.cli import main
from lmdiag.measures import quartiles
from lmdiag.models.agreement import agreement_values
from lmdiag.types import DIAGNOSTICS

ROOT = Path(__file__).resolve().parents[2]
PAGE = ROOT / "docs/reproduced.md"
PEERS_PAGE = ROOT / "docs/peers.md"
STUDIES = ROOT / "docs/studies.md"
PEERS = ROOT / "tests/peers/records.json"
NATURAL_STORIES = ("gpt2", "opt-125m", "Llama-2-7b-hf")
STUDY_FILES = (
    "priming/data/results/bert-base-uncased_polysemy_free.csv",
    "sap/Surprisals/data/gpt2/items_ClassicGP.gpt2.csv",
)
GARDEN_PATH_WORDS = ("critical", "next", "second")
TRIALS = [
    pytest.param("boyce", "pythia-160m", marks=pytest.mark.slow),
    pytest.param("boyce", "mamba-130m-hf", marks=pytest.mark.nightly),
    pytest.param("brothers", "pythia-160m", marks=pytest.mark.nightly),
    pytest.param("brothers", "mamba-130m-hf", marks=pytest.mark.nightly),
]
_TRIAL_FILES = {
    "boyce": ("boyce_2023.tsv", "futrell_2018_dl", "Maze"),
    "brothers": ("brothers_2021.tsv", "brothers_2021", "self-paced reading"),
}


def check(figure, published, computed, tolerance=0.0):
    """A figure is equal to the published one, and stands in the page as it is.

    All printed digits of `published` are compared, or `tolerance` is the largest difference.
    """

    def equals(text):
        if tolerance:
            return abs(computed - float(text)) <= tolerance
        return f"{computed:.{len(text.partition('.')[2])}f}" == text

    assert equals(published), (figure, published, computed)
    row = rf"^\| {re.escape(figure)} \| (\S+) \| (\S+) \| (\S+) \|"
    pages = (PAGE, STUDIES) if figure in STUDIES.read_text("utf-8") else (PAGE,)
    for page in pages:
        ((first, second, gap),) = re.findall(row, page.read_text("utf-8"), re.MULTILINE)
        assert first == published
        assert equals(second)
        assert float(gap) == float(f"{float(second) - float(first):.1g}")


@pytest.mark.parametrize("model", NATURAL_STORIES)
def test_natural_stories(human, model):
    """Kuribayashi et al. (2024): what they print for a model on Natural Stories."""
    folder = human / "kuribayashi-2024"
    result = folder / "results/NS" / model / "surprisal.json"
    times = folder / "data/NS/all.txt.annotation.filtered.averaged_rt.csv"
    (fit,) = api.fit(times, surprisal=str(result), profile="kuribayashi2024").models
    printed = Path(f"{result}.result").read_text("utf-8")
    known = dict(re.findall(r"^([a-z ]+): ([\d.]+)$", printed, re.MULTILINE))
    for figure, digits, value in (
        ("delta loglik", 8, fit.delta_log_likelihood),
        ("delta loglik per tokens", 12, fit.per_word),
        ("average surprisal", 10, fit.mean_surprisal),
    ):
        check(f"{model}: {figure}", f"{float(known[figure]):.{digits}f}", value)
    terms = fit.terms.to_dict("index")
    table = re.findall(r"^(\w+) +(-?\d+\.\d{4}) +(\d+\.\d{3}) ", printed, re.MULTILINE)
    for name, value, error in table:
        term = terms.pop("surprisal" if name == "interest" else name)
        check(f"{model}: coefficient of {name}", value, term["estimate"])
        check(f"{model}: standard error of {name}", error, term["se"])
    (n,) = re.findall(r"No. Observations: +(\d+)", printed)
    check(f"{model}: number of words", n, fit.n)


@pytest.mark.parametrize(("data", "model"), TRIALS)
def test_trials(human, data, model):
    """Michaelov et al. (2024): lme4's AIC of a model."""
    folder = human / "michaelov-2024"
    table, prefix, label = _TRIAL_FILES[data]
    (surprisals,) = (folder / "results").glob(f"{prefix}.*__{model}.causal.output")
    aics = pd.read_csv(folder / f"statistics/all_AICs_{data}.tsv", sep="\t", index_col="ModelName")
    aic = aics["Surprisal_AIC"][model]
    times = folder / "cleaned_datasets" / table
    (fit,) = api.fit(times, surprisal=str(surprisals), profile="michaelov2024").models
    check(f"{label}, {model}: AIC", f"{aic:.6f}", fit.aic, tolerance=1e-6)


@pytest.mark.parametrize(
    ("model", "f", "df"),
    [("gpt2-xl.causal", "64.013", "156.66"), ("albert-xxlarge-v2.masked", "20.61", "82.29")],
)
def test_items_of_ito(human, model, f, df):
    """Michaelov & Bergen (2022): lme4's F of semantically related against unrelated words."""
    folder = human / "michaelov-bergen-2022"
    stimuli = pd.read_csv(folder / "stimuli/ito_2016.tsv", sep="\t")
    name = f"surprisal/ito_2016.surprisal.{model}.output"
    surprisals = pd.read_csv(folder / name, sep="\t").drop(columns="Sentence")
    table = stimuli.merge(surprisals, left_on="Sentence", right_on="FullSentence")
    table = table[table.Condition.isin(["semantically_related", "unrelated"])]
    table = table.assign(target=table.TargetWords.str.strip())
    fit = fit_mixed("Surprisal ~ Condition + (1 | SentenceFrame) + (1 | target)", table)
    term = fit.terms.iloc[1]
    label = model.partition(".")[0]
    check(f"{label}: F", f, term["t"] ** 2, tolerance=1e-3 * term["t"] ** 2)
    # by numerical derivatives, which differ between processors: 82.20 to 82.25 for ALBERT
    check(f"{label}: df", df, term["df"], tolerance=2e-3 * term["df"])


@pytest.fixture(scope="module")
def effects(human, tmp_path_factory):
    """Runs docs/studies.md on the authors' files: (response, column, level) -> effect."""
    if not (human.parent / "priming").is_dir():
        pytest.skip("no studies beside the human measures")
    page, found, shown = STUDIES.read_text("utf-8"), {}, ""
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder := tmp_path_factory.mktemp("studies"))
        patch.delenv("COLUMNS", raising=False)  # the workers of pytest set it
        for name in STUDY_FILES:
            shutil.copy(human.parent / name, folder)
        for code in re.findall(r"^```python\n(.*?)^```", page, re.MULTILINE | re.DOTALL):
            exec(code, {})
        for command in re.findall(r"^lmdiag (analyse \S+-authors.csv .*)$", page, re.MULTILINE):
            words = shlex.split(command)
            if words[-1] == "constraint" or "critical" in words:  # the first of each study
                shown += printed(main, words)
            options = dict(zip(words[2::2], words[3::2], strict=True))
            for effect in json.loads(printed(main, [*words, "--json"]))["by"]:
                key = (options.get("--response", ""), options["--by"], effect["level"])
                found[key] = effect
    assert all(x in shown for x in re.findall(r"^```none\n(.*?)^```", page, re.M | re.S))
    return found


@pytest.mark.slow
def test_priming(human, effects):
    """Misra, Ettinger and Rayz (2020): facilitation from the authors' probabilities."""
    table = pd.read_csv(human.parent / STUDY_FILES[0])
    bits = np.log2(table["related_probability"] / table["unrelated_probability"])
    for column in ("constraint", "category"):
        for level, values in bits.groupby(table[column]):
            label = f"{column} {level}: facilitation, bits"
            check(label, f"{values.mean():.6f}", effects["", column, level]["estimate"])
    groups = dict(list(bits.groupby(table["constraint"])))
    for first, second in (("low", "high"), ("neutral", "low")):
        welch = ttest_ind(groups[first], groups[second], equal_var=False)
        effect = effects["", "constraint", f"{first} - {second}"]
        check(f"constraint {first} - {second}: Welch's t", f"{welch.statistic:.4f}", effect["t"])
        check(f"constraint {first} - {second}: df", f"{welch.df:.2f}", effect["df"])


@pytest.mark.slow
def test_garden_paths(human, effects):
    """Huang et al. (2024): ambiguous less unambiguous sentences, from GPT-2's surprisals."""
    table = pd.read_csv(human.parent / STUDY_FILES[1])
    signs = {"ambiguous": 1, "unambiguous": -1}
    constructions = ("MVRR", "NPS", "NPZ")
    for construction, (place, word) in product(constructions, enumerate(GARDEN_PATH_WORDS)):
        rows = table[table["condition"].str.startswith(construction)]
        rows = rows[rows["word_pos"] == rows["disambPosition_0idx"] + place]
        assert len(rows) == 2 * 24
        mean = (rows["sum_surprisal_base2"] * rows["ambiguity"].map(signs)).sum() / 24
        label = f"{construction}, {word} word: garden path, bits"
        check(label, f"{mean:.6f}", effects[word, "construction", construction]["estimate"])


def test_sizes_and_human_figures_of_ettinger(data_dir):
    """Ettinger (2020): sizes of the data sets, and human figures of ROLE-88."""
    rows = {task: pd.DataFrame(stimuli.load(str(data_dir), task).columns()) for task in DIAGNOSTICS}
    role88, subsets = rows["role88"], rows["neg136"]["subset"].value_counts()
    cloze = role88.pivot(index="contrast", columns="good", values="target_cloze")
    bins = role88["expected_cloze"].groupby([*map(str, quartiles(role88["expected_cloze"]))])
    table_8 = zip("1234", ("0.17", "0.23", "0.33", "0.77"), ("25", "23", "23", "17"), strict=True)
    check("CPRAG-102: items", "102", len(rows["cprag102"]))
    check("CPRAG-102: contexts", "34", rows["cprag102"]["expected"].map(bool).sum())
    check("ROLE-88: items", "88", len(role88))
    check("NEG-136-SIMP: items", "72", subsets["simp"])
    check("NEG-136-NAT: items", "64", subsets["nat"])
    check("section 5.2: mean cloze difference", "0.233", (cloze[True] - cloze[False]).mean())
    for level, bound, n in table_8:
        check(f"table 8: largest cloze of bin {level}", bound, bins.max()[level])
        check(f"table 8: items of bin {level}", n, bins.size()[level])


def test_the_example_of_newman():
    """Newman et al. (2021): the scores of the example in their text, of are/is and exist/exists."""
    toy = torch.tensor([[0.6, 0.05, 0.1, 0.25]], dtype=torch.float64).log()
    ew, mw, *_ = agreement_values([(1, 0), (3, 2)], toy, [True])[0]
    check("example: EW", "0.5", ew or 0)
    check("example: MW", "0.7", mw or 0)


def test_the_page_has_what_comparisons_with_other_programs_kept():
    text = PEERS_PAGE.read_text("utf-8")
    for name, kept in json.loads(PEERS.read_text("utf-8")).items():
        command = f"`PYTHONPATH=tests python -m peers {name}"
        rows = text.partition(command)[2].partition("\n## ")[0].strip().splitlines()
        assert rows[2].startswith(f"| figure | {kept['program']} | lmdiag |")
        assert [row.strip("| ") for row in rows[4:]] == kept["figures"]
