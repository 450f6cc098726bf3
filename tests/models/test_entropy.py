"""Entropies over tokens in runs, files and `fit`; see test_families.py and test_word_by_word.py."""

import pandas as pd
import pytest
from reference import CLOSE

import lmdiag


def test_runs_tables_and_fits(command):
    """Equal figures and signature; the entropies of words and regions, also as a predictor."""
    folder, model = command.folder, command.models["gpt2"]
    (folder / "rows.csv").write_text("id,sentence\n1,A robin |is a bird.\n2,The dog |sleeps.\n")
    (folder / "texts.txt").write_text("A robin is a bird.\nThe dog sleeps.\n")
    start = ["run", "--model", model, "--quiet", "--data", folder / "rows.csv", "--output"]
    with_entropy = [*start, folder / "with", "--entropy"]
    assert command(*start, folder / "without")[0] == command(*with_entropy)[0] == 0
    refused = command.refused(*start, folder / "without", "--entropy")
    assert "has no entropies: --overwrite it" in refused
    assert command(*start, folder / "with")[0] == 0  # has more than is asked for
    plain, run = (lmdiag.load_run(folder / name) for name in ("without", "with"))
    assert plain.results.signature == run.results.signature
    assert plain.results.tasks == run.results.tasks
    words, regions = run.items("word"), run.items("region")
    assert words["entropy"].notna().sum() == len(words) == 8
    assert regions["entropy"].tolist() == words["entropy"][[0, 2, 5, 7]].tolist()
    assert "entropy" not in {*run.items(), *plain.items("word")}

    made = str(folder / "made.csv")
    texts = [folder / "texts.txt", "--quiet", "--entropy", "--output", made]
    assert command("surprisal", "--model", model, *texts)[0] == 0
    frame = pd.read_csv(made)
    assert frame["entropy"].tolist() == pytest.approx(words["entropy"].tolist(), abs=CLOSE)

    table = frame[["text", "position", "word"]].assign(rt=[1.0, 2, 4, 3, 5, 2, 1, 3])
    chosen = {"predictors": ("surprisal", "entropy"), "controls": (), "lags": 0}
    asked, again, read = (  # again: from the answers that are kept
        [
            x.delta_log_likelihood
            for x in lmdiag.fit(table, **source, response="rt", **chosen).models
        ]
        for source in ({"models": str(model), "output": folder},) * 2 + ({"surprisal": made},)
    )
    assert asked == again == pytest.approx(read, rel=1e-3)
