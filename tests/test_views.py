"""One value in every view: page, `analyse`, `items`, `compare`, csv, json and Python."""

import csv
import io
import json
import math
import shutil
import tempfile
from pathlib import Path

import pytest
from hypothesis import Phase, given, settings
from hypothesis import strategies as st
from invented_runs import make_run

import lmdiag
from lmdiag.cli import main
from lmdiag.measures import part_bits
from lmdiag.protocol import Protocol
from lmdiag.report.html import Report
from lmdiag.report.item_list import item_list
from lmdiag.results import load_run, read_results

MODELS = st.lists(
    st.fixed_dictionaries({
        "id": st.sampled_from(["org/a", "org/b"]),
        "dtype": st.sampled_from(["float32", "bfloat16"]),
        "name": st.sampled_from([None, "x"]), "revision": st.sampled_from([None, "step1"]),
        "quantization": st.sampled_from([None, "8bit"]),
    }),
    min_size=2, max_size=2, unique_by=lambda model: json.dumps(model),
)  # fmt: skip
WORDS = st.sampled_from(["bird", "Bird", "tool", "hen"])
PROTOCOLS = st.builds(
    Protocol, tasks=st.just(()), k=st.sampled_from([(1, 5), (1, 2)]),
    threshold=st.sampled_from([0.01, 0.1]),
)  # fmt: skip


@st.composite
def contrasts(draw):
    """Rows with a blank in two conditions, some of whose contrasts ask the same."""
    lines = ["item,size,context,target,good,contrast,expected"]
    for item in range(1, draw(st.integers(4, 7))):
        for size in ("small", "large"):
            good, bad = draw(WORDS), draw(WORDS)
            bad = "stone" if bad == good else bad
            for word, is_good in ((good, 1), (bad, 0)):
                expected = good if is_good else ""
                context = f"The {size} animal {item} is a"
                lines.append(f"{item},{size},{context},{word},{is_good},{item}{size},{expected}")
    return "own.csv", "\n".join(lines)


@st.composite
def suites(draw):
    """A test suite in two conditions, some of whose regions are empty."""
    items = []
    for number in range(1, draw(st.integers(3, 5))):
        conditions = []
        for name in ("a", "b"):
            verb = draw(st.sampled_from(["bark", "", "that barked"]))
            texts = enumerate(("The dogs", verb, "loudly."), start=1)
            regions = [{"region_number": n, "content": text} for n, text in texts]
            conditions.append({"condition_name": name, "regions": regions})
        items.append({"item_number": number, "conditions": conditions})
    document = {"predictions": [{"formula": "(2;%a%) < (2;%b%)"}], "items": items}
    return "own.json", json.dumps(document)


@settings(max_examples=3, phases=[Phase.generate])
@given(st.one_of(contrasts(), suites()), MODELS, PROTOCOLS, st.integers(0, 9))
def test_every_view_has_the_same_value(data, models, protocol, seed):
    folder = Path(tempfile.mkdtemp())
    try:
        file = folder / data[0]
        file.write_text(data[1])
        paths = [
            make_run(folder / str(i), file, protocol, seed=seed + i, cased=False, bos=True, **facts)
            for i, facts in enumerate(models)
        ]
        runs = [lmdiag.load_run(path) for path in paths]
        check_figures(runs)
        check_models(runs)
        if file.suffix == ".csv":
            check_contrasts(runs)
        else:
            check_regions(runs)
    finally:
        shutil.rmtree(folder)


def printed(*words):
    """What a command prints."""
    from contextlib import redirect_stderr, redirect_stdout

    with redirect_stdout(io.StringIO()) as output, redirect_stderr(io.StringIO()):
        assert main([*map(str, words)]) == 0
    return output.getvalue()


def check_figures(runs):
    """csv, json, `score`, Python and the comparison have the figure of the table of scores."""
    first, second = runs[:2]
    results = read_results(first.path)
    rows = csv.DictReader(io.StringIO(printed("report", first.path, "--format", "csv")))
    of_csv = {row["measure"]: row for row in rows if not row["by"]}
    scored = json.loads(printed("score", "--task", "own", "--predictions", first.path, "--json"))
    compared = {x.measure: x for x in lmdiag.compare(first, second) if not x.by}
    for name, scores in first.scores["own"]["none", 0].items():
        if scores.statistic == "median" or not len(scores.values):
            continue
        value = scores.values.mean()
        assert results.measure("own", "none", name).value == pytest.approx(value, abs=1e-12)
        assert float(of_csv[name]["value"]) == scored["measures"][name]["value"]
        assert float(of_csv[name]["value"]) == pytest.approx(value, abs=1e-12)
        other = second.scores["own"]["none", 0][name]
        if name in compared and {*scores.items} == {*other.items}:
            assert compared[name].a == pytest.approx(value, abs=1e-12)
            assert compared[name].b == pytest.approx(other.values.mean(), abs=1e-12)


def check_models(runs):
    """Each model is analysed by itself, under a label of its own."""
    condition = "size" if "size" in runs[0].stimuli["own"].columns() else "condition"
    alone = [lmdiag.analyse(run, conditions=[condition]).cells["mean"].tolist() for run in runs]
    cells = lmdiag.analyse(runs, conditions=[condition]).cells
    assert [rows["mean"].tolist() for _, rows in cells.groupby("model", sort=False)] == alone
    labels = [source.label for source in Report(runs).figures.sources]
    assert len({*labels}) == len(runs)
    assert [*dict.fromkeys(cells["model"])] == labels
    file = runs[0].path.parent / "items.csv"
    printed("items", *(run.path for run in runs), "--out", file, "--overwrite")
    effects = json.loads(printed("analyse", file, "--conditions", condition, "--json"))["cells"]
    assert [x["mean"] for x in effects] == pytest.approx([x for means in alone for x in means])


def check_contrasts(runs):
    """A contrast is right, wrong or left out in the same way everywhere."""
    for run in runs:
        scores = run.scores["own"]["none", 0]["sensitivity"]
        verdict = dict(zip(scores.items, scores.values, strict=True))
        table = run.items()
        good = table[table["good"]].set_index("contrast")["sensitivity"].to_dict()
        listed = {x["item"].id: x["verdicts"][0][0] for x in page_items(run)}
        for name, value in good.items():
            assert math.isnan(value) if name not in verdict else value == verdict[name]
            known = {1: ("right", "narrow"), 0: ("wrong",), None: ("unknown",)}
            assert listed[name] in known[verdict.get(name)]
        if len({name[-5:] for name in verdict}) < 2:
            continue
        try:
            cells = lmdiag.analyse(run, response="correct", conditions=["size"])
        except lmdiag.types.BadInput:  # no item has both contrasts
            continue
        complete = table[table["good"]].pivot(index="item", columns="size", values="sensitivity")
        means = complete.dropna().mean()
        assert cells.cells["mean"].tolist() == pytest.approx([means["large"], means["small"]])


def check_regions(runs):
    """A region has one surprisal: of its words, or 0 bits where it has none."""
    for run in runs:
        table = run.items(per="region")
        words = dict(
            zip(run.stimuli["own"].columns()["id"], run.predictions["own"]["none", 0].words,
                strict=True)
        )  # fmt: skip
        regions = run.stimuli["own"].columns()["regions"]
        bits = {}
        for row, of_row in zip(words, regions, strict=True):
            for x in of_row:
                is_empty = x["start"] == x["end"]
                value = 0.0 if is_empty else part_bits(words[row], x["start"], x["end"])
                bits[row, x["number"]] = value
        rows = zip(table["id"], table["number"], table["surprisal"], strict=True)
        assert {(row, number): value for row, number, value in rows} == bits
        for item in page_items(run):
            for choice in item["item"].choices:
                assert [x.bits for x in choice.parts] == [bits[choice.id, n] for n in (1, 2, 3)]
        (chart,) = [x for x in Report([run]).charts() if x.kind == "regions"]
        cells = lmdiag.analyse(run, region=2, conditions=["condition"]).cells
        drawn = {x["series"]: x for x in chart.spec["data"]["values"] if x["level"] == "2"}
        for row in cells.itertuples():
            assert drawn[row.condition]["n"] == row.n
            assert drawn[row.condition]["value"] == pytest.approx(row.mean)


def page_items(run):
    """The items that the page of a run lists."""
    return item_list(Report(load_run(run.path)).tasks["own"])["listed"]
