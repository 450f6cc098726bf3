"""The leaderboard's files: the order of its rows, rejected runs, and strangers' text as text."""

from __future__ import annotations

import json
import re
import unicodedata
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
import yaml
from hub import rules
from hub.boards import build
from huggingface_hub import HfApi
from hypothesis import given
from hypothesis import strategies as st
from parsed import ParsedPage
from runs import make_run, model_info

from lmdiag.cli import main
from lmdiag.hub.benchmark import Benchmark, columns
from lmdiag.hub.names import display_name, is_hub_id, name_reason
from lmdiag.hub.publish import plan_leaderboard
from lmdiag.leaderboard.pages import hub_link, render_board
from lmdiag.leaderboard.pictures import MOST_MODELS, pictures
from lmdiag.leaderboard.site import write_site
from lmdiag.leaderboard.standing import HUMAN_ROW, Standing, ranked, standings
from lmdiag.report.page import breakable
from lmdiag.results import Figure, Place, read_results
from lmdiag.text import all_visible, file_name, visible
from lmdiag.types import DIAGNOSTICS

pytest_plugins = ["hub.fixtures"]

ROOT = Path(__file__).resolve().parents[1]
OVERVIEW = [column.task_id for column in columns().values() if column.is_overview]
FIRST, SECOND = OVERVIEW[:2]


def board_of(site: Path) -> dict[str, Any]:
    record: dict[str, Any] = json.loads((site / "leaderboard.json").read_text())
    return record


@pytest.fixture(scope="module")
def runs(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three runs. Read only."""
    root = tmp_path_factory.mktemp("runs") / "runs"
    skills = {"org/strong": 4.0, "org/weak": 0.0, "org/middle": 1.5}
    for seed, (name, skill) in enumerate(skills.items()):
        facts = {"id": name, "kind": "causal" if seed else "masked", "commit": f"{seed}" * 40}
        make_run(root / name, demo_dir, skill=skill, seed=seed, **facts)
    return root


@pytest.fixture(scope="module")
def site(runs: Path, demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The board of these runs. Read only."""
    return build(tmp_path_factory.mktemp("site") / "board", demo_dir, runs)


# ---- columns and rows ---------------------------------------------------------------------------


def test_columns_are_the_tasks_of_the_benchmark_and_spell_the_measure() -> None:
    benchmark = yaml.safe_load((ROOT / "datasets/lmdiag/eval.yaml").read_text())
    assert [(each["id"], each["config"]) for each in benchmark["tasks"]] == [
        (column.task_id, place.task) for place, column in columns().items()
    ]
    for place, column in columns().items():
        level = f"_{place.level}" if place.level else ""
        spelled = f"{place.task}_{place.measure}{level}".replace("@", "_at_")
        assert column.task_id == re.sub(r"[./]", "_", spelled)
        assert re.fullmatch(r"[a-z0-9][a-z0-9_]{0,95}", column.task_id)


def test_rows_are_ordered_by_the_first_column_of_the_overview(site: Path) -> None:
    rows = board_of(site)["rows"]
    assert [row["name"] for row in rows] == ["org/strong", "org/middle", "org/weak", HUMAN_ROW]
    first = [row["figures"][FIRST]["value"] for row in rows[:3]]
    assert first == sorted(first, reverse=True)
    assert len(set(first)) == 3


def test_files_for_programs_have_the_figures_of_the_run(site: Path, runs: Path) -> None:
    results = read_results(runs / "org/strong")
    row = next(row for row in board_of(site)["rows"] if row["name"] == "org/strong")
    lines = [
        line
        for line in pq.read_table(site / "leaderboard.parquet").to_pylist()
        if line["name"] == "org/strong"
    ]
    assert row["model"].items() <= asdict(results.model).items()
    assert row["signature"] == results.signature
    expected = {
        column.task_id: (place.task, figure.value, figure.n, figure.ci_low, figure.ci_high)
        for place, column in columns().items()
        if (figure := results.figure(place)) is not None
    }
    assert len(expected) == 13
    said = {key: tuple(each.values())[:4] for key, each in row["figures"].items()}
    assert said == {key: figure[1:] for key, figure in expected.items()}
    names = ("task", "value", "n", "ci_low", "ci_high")
    assert {line["figure"]: tuple(line[name] for name in names) for line in lines} == expected


def test_the_human_baseline_is_measured_from_the_data(benchmark: Benchmark) -> None:
    (human,) = (row for row in standings([], benchmark) if row.origin == "people")
    columns = benchmark.stimuli("role88").columns()
    pairs: dict[str, dict[bool, float]] = {}
    for name, good, cloze in zip(
        columns["contrast"], columns["good"], columns["target_cloze"], strict=True
    ):
        pairs.setdefault(name, {})[good] = cloze
    assert set(human.figures) == {"role88_sensitivity", "role88_sensitivity_at_0_01"}
    preferred = sum(pair[True] > pair[False] for pair in pairs.values())
    assert human.figures["role88_sensitivity"].value == preferred / len(pairs)
    assert human.figures["role88_sensitivity"].n == len(pairs)


def test_published_rows_are_shown_with_runs_on_the_published_data(
    data_dir: Path, benchmark: Benchmark
) -> None:
    rows = {row.name: row for row in standings([], Benchmark(str(data_dir)))}
    base = rows["bert-base-uncased"]
    assert base.origin == "published"
    # Ettinger (2020): table 4, base, k = 1: 23.5 = 8 of 34; table 12, negative: 0.0 of 18.
    accuracy = base.figures["cprag102_accuracy_at_1"]
    assert (accuracy.value, accuracy.n) == (0.235, 34)
    assert accuracy.ci_low < 8 / 34 < accuracy.ci_high
    assert base.figures["neg136_sensitivity_simp_negative"].value == 0.0
    # 44 of 44 pairs: the human row of role88, with Wilson's interval.
    human = rows[HUMAN_ROW].figures["role88_sensitivity"]
    assert (human.value, human.n, human.ci_high, human.chance) == (1.0, 44, 1.0, 0.5)
    assert human.ci_low == pytest.approx(44 / (44 + 1.959964**2))
    assert {row.origin for row in standings([], benchmark)} == {"people"}


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ({"id": "gpt2"}, None),
        ({"id": "EleutherAI/pythia-70m"}, None),
        ({"id": ""}, "is not an id of a model on the Hub"),
        ({"id": "../../x"}, "is not an id"),
        ({"id": "/etc/passwd"}, "is not an id"),
        ({"id": "org/a/b"}, "is not an id"),
        ({"id": "org/m\u043edel"}, "is not an id"),  # a Cyrillic o
        ({"id": "org/mo\u200bdel"}, "is not an id"),  # a space of no width
        ({"id": "org/model.git"}, "is not an id"),
        ({"commit": "main"}, "is not a commit: expected 40 hexadecimal digits"),
        ({"commit": "A" * 40}, "is not a commit"),
        ({"commit": ""}, "is not a commit"),
        ({"id": "demo:masked", "commit": "sha256:" + "0" * 16}, None),
        ({"id": "demo:masked"}, "is not an id"),
        ({"id": "runs/my-model", "commit": "sha256:" + "0" * 16}, "is a local folder"),
    ],
)
def test_names_of_models(model: dict[str, str], said: str | None) -> None:
    reason = name_reason(model_info(**model))
    assert reason is None if said is None else said in str(reason)


def test_local_folders_are_listed_on_request(demo_dir: Path, tmp_path: Path) -> None:
    facts = {"id": "/home/me/runs/my-model", "commit": "sha256:" + "0" * 16}
    local = model_info(**facts)
    assert name_reason(local, allow_local=True) is None
    assert display_name(local) == "local:my-model"
    for path in ("/", "", "..", "/home/m\u043edel", "x" * 200):
        assert name_reason(replace(local, id=path), allow_local=True) is not None
    run = make_run(tmp_path / "run", demo_dir, **facts)
    site = build(tmp_path / "board", demo_dir, run, "--allow-local")
    assert "/home/me" not in (site / "index.html").read_text()
    assert board_of(site)["rows"][0]["name"] == "local:my-model"


@given(st.text(max_size=120))
def test_hub_ids_are_plain(text: str) -> None:
    if is_hub_id(text):
        assert re.fullmatch(r"[\w.-]+(/[\w.-]+)?", text, re.ASCII)
        assert ".." not in text


# ---- ranks, revisions, chance -------------------------------------------------------------------


def row(name: str, value: float | None, *, dtype: str = "float32", **more: Any) -> Standing:
    figures = {} if value is None else {FIRST: Figure(value, 34, 0.1, 0.9)}
    model = asdict(model_info(id=name, dtype=dtype, **more))
    return Standing(name, "submitted", figures, model)


def test_equal_figures_share_a_rank_and_revisions_are_listed_with_their_model() -> None:
    rows = [
        row("org/a", 0.9), row("org/b", 0.7), row("org/a", 0.3, dtype="float16"),
        row("org/c", 0.7), row("org/d", 0.5), row("org/e", None),
        Standing(HUMAN_ROW, "people", {FIRST: Figure(0.8, 34)}),
    ]  # fmt: skip
    order = [(each.name, each.rank, each.is_first) for each in ranked(rows)]
    assert order == [
        ("org/a", 1, True), ("org/a", None, False), (HUMAN_ROW, None, True), ("org/b", 2, True),
        ("org/c", 2, True), ("org/d", 4, True), ("org/e", None, True),
    ]  # fmt: skip


def test_the_table_shows_the_chance_level_if_it_is_known(benchmark: Benchmark) -> None:
    figure = Figure(0.4, 34, 0.3, 0.6, chance=1 / 3)
    at_chance = replace(row("org/a", None), figures={SECOND: figure})
    page = render_board([at_chance], [], benchmark)
    assert "chance 33" in page
    assert 'class="level-of-chance" x1="33.3"' in page
    assert 'title="not distinguishable from chance">†' in page
    unknown = replace(at_chance, figures={SECOND: replace(figure, chance=None)})
    assert 'class="level-of-chance"' not in render_board([unknown], [], benchmark)


# ---- the files ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_site_is_the_same_each_time_and_replaced_as_a_whole(
    runs: Path, site: Path, demo_dir: Path, tmp_path: Path
) -> None:
    out = tmp_path / "board"
    build(out, demo_dir, runs / "org/weak")
    old = next(out.glob("models/*.html"))
    build(out, demo_dir, runs / "org/strong", runs / "org/middle")
    assert not old.exists()
    build(out, demo_dir, runs)
    made, expected = (
        {path.relative_to(folder): path.read_bytes() for path in folder.rglob("*.*")}
        for folder in (out, site)
    )
    assert made == expected
    assert [path.name for path in tmp_path.iterdir()] == ["board"]


def test_an_interrupted_exchange_leaves_the_old_site(
    benchmark: Benchmark, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "board"
    write_site(out, [], [], benchmark)
    old = (out / "index.html").read_bytes()
    replace_path = Path.replace

    def interrupted(self: Path, target: Path) -> Path:
        if self.name.endswith(".building"):
            raise KeyboardInterrupt
        return replace_path(self, target)

    monkeypatch.setattr(Path, "replace", interrupted)
    with pytest.raises(KeyboardInterrupt):
        write_site(out, [], [], benchmark)
    assert (out / "index.html").read_bytes() == old
    assert [path.name for path in tmp_path.iterdir()] == ["board"]


def test_other_directories_are_left_alone(
    runs: Path, demo_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "precious").write_text("mine")
    cases = [
        (runs, tmp_path, "is not a leaderboard directory: choose an empty one"),
        (runs, tmp_path / "precious", "is a file: name a directory"),
        (tmp_path, tmp_path / "b", "has no runs: name run directories, or a results repository"),
        ("/nowhere", tmp_path / "b", "/nowhere has no runs"),
    ]
    for place, out, message in cases:
        command = ["leaderboard", str(place), "--out", str(out), "--data", str(demo_dir)]
        assert main(command) == 2
        assert message in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_the_board_is_published_and_old_pages_are_removed(
    api: HfApi, site: Path, tmp_path: Path, demo_dir: Path, runs: Path
) -> None:
    assert rules.check_card("spaces", (site / "README.md").read_text()) == []
    plan_leaderboard(site, "org/board").send(api, private=True)
    files = set(api.list_repo_files("org/board", repo_type="space"))
    assert {"index.html", "leaderboard.json", "README.md"} < files
    assert sum(path.startswith("models/") for path in files) == 3
    assert api.space_info("org/board").sdk == "static"
    smaller = build(tmp_path / "board", demo_dir, runs / "org/weak")
    plan_leaderboard(smaller, "org/board").send(api, private=True)
    files = set(api.list_repo_files("org/board", repo_type="space"))
    assert sum(path.startswith("models/") for path in files) == 1


@given(st.text(), st.text(), st.text())
def test_file_names_differ_for_each_identity(name: str, one: str, other: str) -> None:
    assert re.fullmatch(r"[a-z0-9][a-z0-9-]*-[0-9a-f]{10}", file_name(name, one))
    if one.encode("utf-8", "replace") != other.encode("utf-8", "replace"):
        assert file_name(name, one) != file_name(name, other)


@given(st.text(st.characters(exclude_categories=())))
def test_visible_text_hides_nothing_and_can_be_written(text: str) -> None:
    shown = visible(text)
    assert visible(shown) == shown
    assert shown.encode().decode() == shown
    assert not {unicodedata.category(c) for c in shown} & {"Cc", "Cs"}
    assert all_visible({text: [text, 1, None]}) == {shown: [shown, 1, None]}
    assert "<" not in breakable(text).replace("<wbr>", "")


@pytest.mark.parametrize(
    ("model_id", "commit", "link"),
    [
        ("org/model", "c" * 40, f"https://huggingface.co/org/model/tree/{'c' * 40}"),
        ("javascript:alert(1)", "c" * 40, ""),
        ("demo:masked", "c" * 40, ""),
        ("org/model", '"><script>', ""),
        ("org/model/../../settings", "c" * 40, ""),
        ("org/model", "", ""),
    ],
)
def test_links_lead_only_to_models_of_the_hub(model_id: str, commit: str, link: str) -> None:
    assert hub_link(model_info(id=model_id, commit=commit)) == link


# ---- a model's page and the charts --------------------------------------------------------------


def test_a_page_has_every_item_with_the_models_answers(
    site: Path, runs: Path, benchmark: Benchmark
) -> None:
    (path,) = site.glob("models/org-strong-*.html")
    page = ParsedPage(path.read_text())
    predictions = pq.read_table(runs / "org/strong/predictions.parquet").to_pylist()
    rows = [benchmark.stimuli(task).columns() for task in DIAGNOSTICS]
    assert all(row["id"] in page.text for row in predictions)
    assert all(context in page.text for columns in rows for context in columns["context"])
    items = [attributes for tag, attributes in page.tags if tag == "tbody" and "id" in attributes]
    contrasts = {name for columns in rows for name in columns["contrast"]}
    assert {attributes["id"] for attributes in items} == contrasts
    outcomes = [str(attributes["data-outcome"]).split() for attributes in items]
    assert all(set(each) <= {"good", "bad", "hit", "miss"} for each in outcomes)
    results = read_results(runs / "org/strong")
    sensitivity = [results.figure(Place(task, "none", "sensitivity")) for task in DIAGNOSTICS]
    preferred = sum(round(figure.value * figure.n) for figure in sensitivity)
    assert sum("good" in each for each in outcomes) == preferred


def test_a_chart_has_a_bounded_number_of_models() -> None:
    (picture,) = pictures([row(f"org/{i}", 0.5) for i in range(MOST_MODELS + 1)])
    assert picture.note == f"The first {MOST_MODELS} of {MOST_MODELS + 1}."
    assert f"org/{MOST_MODELS - 1}<" in picture.svg
    assert f"org/{MOST_MODELS}<" not in picture.svg
    assert "<style" not in picture.svg
    assert " style=" not in picture.svg
    assert pictures([]) == []


def test_charts_distinguish_the_revisions_of_a_model() -> None:
    rows = [row("org/model", 0.5, revision="step1000"), row("org/model", 0.5), row("org/b", 0.5)]
    (picture,) = pictures(ranked(rows))
    labels = re.findall(r">([^<>]*)<", picture.svg)
    assert {"step1000 float32", "· aaaaaaa float32", "org/b"} <= set(labels)
