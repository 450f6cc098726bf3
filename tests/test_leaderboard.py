"""The leaderboard's files: who stands where, who is rejected; strangers' text stays text."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import unicodedata
from collections.abc import Callable, Iterator
from dataclasses import asdict, replace
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest
from hub import LoopbackHub, rules
from hub.boards import HOSTILE, build, hostile_runs
from hub.runs import make_run, model_info
from huggingface_hub import CommitOperationAdd, HfApi
from hypothesis import given
from hypothesis import strategies as st

from lmdiag.cli import main
from lmdiag.hub.benchmark import Benchmark
from lmdiag.hub.files import MAX_BYTES, read_files
from lmdiag.hub.headline import HEADLINES, OVERVIEW
from lmdiag.hub.isolation import Judges
from lmdiag.hub.names import display_name, is_hub_id, name_reason
from lmdiag.hub.publish import plan_leaderboard
from lmdiag.hub.refusal import Refused
from lmdiag.hub.shape import FORM
from lmdiag.hub.submit import run_place
from lmdiag.hub.text import all_visible, file_name, visible
from lmdiag.hub.verify import verify
from lmdiag.leaderboard.collect import find_submissions, judge
from lmdiag.leaderboard.pages import hub_link, render_board
from lmdiag.leaderboard.pictures import MOST
from lmdiag.leaderboard.site import write_site
from lmdiag.leaderboard.standing import PEOPLE, Figure, Standing, in_order, standings
from lmdiag.report.page import breakable
from lmdiag.schema import DIAGNOSTICS, BadInput, Protocol
from lmdiag.stimuli import load_verbs

pytest_plugins = ["hub.fixtures"]


@pytest.fixture(scope="module")
def runs(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three honest runs and a tampered one. Read only."""
    root = tmp_path_factory.mktemp("runs") / "runs"
    skills = {"org/strong": 4.0, "org/weak": 0.0, "org/middle": 1.5}
    for seed, (name, skill) in enumerate(skills.items()):
        info = model_info(id=name, kind="causal" if seed else "masked", commit=f"{seed}" * 40)
        make_run(root / name, demo_dir, info=info, skill=skill, seed=seed)
    path = make_run(root / "org/cheat", demo_dir, info=model_info(id="org/cheat")) / "results.json"
    results = json.loads(path.read_text())
    results["tasks"]["role88"]["none"]["measures"]["sensitivity"]["value"] = 1.0
    path.write_text(json.dumps(results))
    return root


@pytest.fixture(scope="module")
def site(runs: Path, demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The board of these runs. Read only."""
    return build(tmp_path_factory.mktemp("site") / "board", demo_dir, runs)


# ---- who stands where ---------------------------------------------------------------------------


def test_rows_stand_by_the_first_figure_of_the_overview(site: Path) -> None:
    board = json.loads((site / "leaderboard.json").read_text())
    names = [row["name"] for row in board["rows"]]
    assert names == ["org/strong", "org/middle", "org/weak", PEOPLE]
    first = [row["figures"][OVERVIEW[0]]["value"] for row in board["rows"][:3]]
    assert first == sorted(first, reverse=True)
    assert len(set(first)) == 3


def test_what_is_rejected_is_listed_and_not_shown(site: Path) -> None:
    board = json.loads((site / "leaderboard.json").read_text())
    (rejected,) = board["rejected"]
    assert rejected["place"] == "runs/org/cheat"
    assert rejected["reasons"][0].startswith("role88 none measures sensitivity value: is 1, its")
    page = (site / "index.html").read_text()
    assert page.count("org/cheat") == 1
    assert page.index("Rejected submissions") < page.index("org/cheat")
    assert not list(site.glob("models/*cheat*"))


def test_files_for_programs_hold_the_runs_own_figures(site: Path, runs: Path) -> None:
    results = json.loads((runs / "org/strong/results.json").read_text())
    board = json.loads((site / "leaderboard.json").read_text())
    row = next(row for row in board["rows"] if row["name"] == "org/strong")
    table = pq.read_table(site / "leaderboard.parquet").to_pylist()
    assert row["model"] == {key: results["model"][key] for key in FORM["model"]}
    assert row["signature"] == results["signature"]
    for headline in HEADLINES:
        said = headline.find(results)
        found = [e for e in table if (e["name"], e["figure"]) == ("org/strong", headline.id)]
        if said is None:
            assert not found
            assert headline.id not in row["figures"]
        else:
            figure = row["figures"][headline.id]
            assert (figure["value"], figure["n"]) == (said["value"], said["n"])
            assert (figure["low"], figure["high"]) == (said["ci_low"], said["ci_high"])
            assert [(e["value"], e["ci_low"], e["task"]) for e in found] == [
                (said["value"], said["ci_low"], headline.task)
            ]


def test_people_are_measured_from_the_data(demo_dir: Path) -> None:
    (people,) = (row for row in standings([], Benchmark(str(demo_dir))) if row.origin == "people")
    columns = Benchmark(str(demo_dir)).stimuli("role88").columns()
    cloze = dict(zip(columns["id"], columns["target_cloze"], strict=True))
    pairs = {name: [None, None] for name in columns["contrast"]}
    for row, name, good in zip(columns["id"], columns["contrast"], columns["good"], strict=True):
        pairs[name][0 if good else 1] = cloze[row]
    preferred = sum(good > bad for good, bad in pairs.values())
    assert set(people.figures) == {"role88_sensitivity", "role88_sensitivity_at_0_01"}
    assert people.figures["role88_sensitivity"].value == preferred / len(pairs)
    assert people.figures["role88_sensitivity"].n == len(pairs)


def test_published_rows_stand_beside_runs_on_the_published_data(
    data_dir: Path, demo_dir: Path
) -> None:
    rows = {row.name: row for row in standings([], Benchmark(str(data_dir)))}
    base = rows["bert-base-uncased"]
    assert base.origin == "published"
    # Ettinger (2020): table 4, base, k = 1: 23.5 = 8 of 34; table 12, negative: 0.0 of 18.
    accuracy = base.figures["cprag102_accuracy_at_1"]
    assert (accuracy.value, accuracy.n) == (0.235, 34)
    assert accuracy.low < 8 / 34 < accuracy.high
    assert base.figures["neg136_sensitivity_simp_negative"].value == 0.0
    # 44 of 44 pairs: the human row of role88.
    assert rows[PEOPLE].figures["role88_sensitivity"] == Figure(
        1.0, 44, pytest.approx(44 / (44 + 1.959964**2)), 1.0, chance=0.5
    )
    assert {row.origin for row in standings([], Benchmark(str(demo_dir)))} == {"people"}


@pytest.mark.slow
def test_agreement_has_its_columns_and_is_verified(demo_dir: Path, tmp_path: Path) -> None:
    verbs = len(load_verbs(str(demo_dir)))
    protocol = Protocol(tasks=(*DIAGNOSTICS, "agreement"), verbs=verbs)
    run = make_run(tmp_path / "run", demo_dir, protocol=protocol)
    verify(read_files(run), Benchmark(str(demo_dir)))
    site = build(tmp_path / "board", demo_dir, run)
    (row, _) = json.loads((site / "leaderboard.json").read_text())["rows"]
    assert {"agreement_tse", "agreement_ew", "agreement_mw"} < set(row["figures"])
    other = replace(protocol, verbs=verbs - 1)
    short = make_run(tmp_path / "short", demo_dir, protocol=other)
    with pytest.raises(Refused, match=f"its list has {verbs - 1} verbs, the benchmark's {verbs}"):
        verify(read_files(short), Benchmark(str(demo_dir)))
    (run / "agreement.parquet").unlink()
    with pytest.raises(Refused, match=r"there is no agreement\.parquet"):
        verify(read_files(run), Benchmark(str(demo_dir)))


@pytest.fixture(scope="module")
def judges(demo_dir: Path) -> Iterator[Judges]:
    with Judges(Benchmark(str(demo_dir))) as started:
        yield started


def test_of_two_runs_of_one_model_the_first_counts(
    demo_dir: Path, tmp_path: Path, judges: Judges
) -> None:
    for name in ("a", "b"):
        info = model_info(id="org/model" if name == "a" else "Org/Model")
        make_run(tmp_path / "runs" / name, demo_dir, info=info)
    entries, rejected = judge(find_submissions([str(tmp_path / "runs")]), judges)
    assert [entry.submission.place for entry in entries] == ["runs/a"]
    assert [(each.place, each.reasons) for each in rejected] == [
        ("runs/b", ("doubled: runs/a has the same model and protocol",))
    ]


def test_what_is_rejected_takes_nobodys_place(
    demo_dir: Path, tmp_path: Path, judges: Judges
) -> None:
    """A run with another's model and commit that is refused, named so that it is judged first."""
    honest = make_run(tmp_path / "runs/honest", demo_dir)
    fake = Path(shutil.copytree(honest, tmp_path / "runs/a-fake"))
    results = json.loads((fake / "results.json").read_text())
    results["tasks"]["role88"]["none"]["measures"]["sensitivity"]["value"] = 1.0
    (fake / "results.json").write_text(json.dumps(results))
    entries, rejected = judge(find_submissions([str(tmp_path / "runs")]), judges)
    assert [entry.submission.place for entry in entries] == ["runs/honest"]
    assert [each.place for each in rejected] == ["runs/a-fake"]


def test_equal_predictions_under_another_name_are_shown_as_such(
    demo_dir: Path, tmp_path: Path
) -> None:
    """A copy of a run under another name, its log-probabilities changed in the sixth decimal."""
    runs = tmp_path / "runs"
    make_run(runs / "a", demo_dir, info=model_info(id="org/first"))
    make_run(runs / "b", demo_dir, info=model_info(id="org/copy", commit="b" * 40))
    make_run(runs / "c", demo_dir, info=model_info(id="org/other", commit="c" * 40), seed=1)
    half = model_info(id="org/first", dtype="bfloat16")
    make_run(runs / "d", demo_dir, info=half)
    site = build(tmp_path / "board", demo_dir, runs)
    rows = json.loads((site / "leaderboard.json").read_text())["rows"]
    same = {(row["name"], row["model"].get("dtype")): row["same_as"] for row in rows}
    assert same == {
        ("org/first", "float32"): None,
        ("org/copy", "float32"): "runs/a",
        ("org/other", "float32"): None,
        ("org/first", "bfloat16"): None,
        (PEOPLE, None): None,
    }
    text = " ".join("".join(Page((site / "index.html").read_text()).text).split())
    assert text.count("identical to org/first, which came first") == 1


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
    reason = name_reason({"id": "org/model", "commit": "a" * 40} | model)
    assert reason is None if said is None else said in str(reason)


def test_local_folders_are_listed_where_the_owner_wants_them(
    demo_dir: Path, tmp_path: Path
) -> None:
    local = {"id": "/home/me/runs/my-model", "commit": "sha256:" + "0" * 16}
    assert name_reason(local, allow_local=True) is None
    assert display_name(local) == "local:my-model"
    for path in ("/", "", "..", "/home/m\u043edel", "x" * 200):
        assert name_reason(local | {"id": path}, allow_local=True) is not None
    run = make_run(tmp_path / "run", demo_dir, info=model_info(**local))
    out = tmp_path / "board"
    command = ["leaderboard", str(run), "--data", str(demo_dir), "--out", str(out)]
    assert main([*command, "--allow-local"]) == 0
    assert "/home/me" not in (out / "index.html").read_text()
    assert json.loads((out / "leaderboard.json").read_text())["rows"][0]["name"] == "local:my-model"


@given(st.text(max_size=120))
def test_hub_ids_are_plain(text: str) -> None:
    if is_hub_id(text):
        assert re.fullmatch(r"[\w.-]+(/[\w.-]+)?", text, re.ASCII)
        assert ".." not in text


# ---- ranks, revisions, chance -------------------------------------------------------------------


def entry(name: str, value: float | None, *, dtype: str = "float32") -> Standing:
    figures = {} if value is None else {OVERVIEW[0]: Figure(value, 34, 0.1, 0.9)}
    return Standing(name, "submitted", figures, {"commit": "c" * 40, "dtype": dtype})


def test_equal_figures_share_a_rank_and_revisions_stand_with_their_model() -> None:
    rows = [
        entry("org/a", 0.9), entry("org/b", 0.7), entry("org/a", 0.3, dtype="float16"),
        entry("org/c", 0.7), entry("org/d", 0.5), entry("org/e", None),
        Standing(PEOPLE, "people", {OVERVIEW[0]: Figure(0.8, 34, None, None)}),
    ]  # fmt: skip
    ranked = [(row.name, row.rank, row.is_first) for row in in_order(rows)]
    assert ranked == [
        ("org/a", 1, True), ("org/a", None, False), (PEOPLE, None, True), ("org/b", 2, True),
        ("org/c", 2, True), ("org/d", 4, True), ("org/e", None, True),
    ]  # fmt: skip


def test_a_figure_says_whether_it_is_at_chance() -> None:
    assert Figure(0.4, 34, 0.3, 0.6, chance=1 / 3).is_at_chance
    assert not Figure(0.9, 34, 0.8, 0.95, chance=1 / 3).is_at_chance
    assert not Figure(0.9, 34, None, None, chance=1 / 3).is_at_chance
    assert not Figure(0.4, 34, 0.3, 0.6).is_at_chance


def test_chance_stands_in_the_table_where_it_is_known(demo_dir: Path) -> None:
    figure = Figure(0.4, 34, 0.3, 0.6, chance=1 / 3)
    model = asdict(model_info())
    row = Standing("org/a", "submitted", {OVERVIEW[1]: figure}, model)
    page = render_board([row], [], Benchmark(str(demo_dir)))
    assert "chance 33" in page
    assert 'class="level-of-chance" x1="33.3"' in page
    assert 'title="the interval contains the chance level"' in page
    plain = render_board(
        [replace(row, figures={OVERVIEW[1]: replace(figure, chance=None)})],
        [],
        Benchmark(str(demo_dir)),
    )
    assert 'class="level-of-chance"' not in plain


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
    files = [path.relative_to(site) for path in site.rglob("*") if path.is_file()]
    assert {path.relative_to(out) for path in out.rglob("*") if path.is_file()} == set(files)
    for file in files:
        assert (out / file).read_bytes() == (site / file).read_bytes()
    assert [path.name for path in tmp_path.iterdir()] == ["board"]


def test_an_interrupted_exchange_leaves_the_old_site(
    demo_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, benchmark = tmp_path / "board", Benchmark(str(demo_dir))
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


def test_what_is_no_leaderboard_is_left_alone(
    runs: Path, demo_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "precious").write_text("mine")
    command = ["leaderboard", str(runs), "--data", str(demo_dir), "--out"]
    assert main([*command, str(tmp_path)]) == 2
    assert main([*command, str(tmp_path / "precious")]) == 2
    assert main(["leaderboard", str(tmp_path), "--out", str(tmp_path / "b")]) == 2
    err = capsys.readouterr().err
    assert "is not a leaderboard directory: choose an empty one" in err
    assert "is a file: name a directory" in err
    assert "holds no run: name run directories, or a results repository" in err
    assert [path.name for path in tmp_path.iterdir()] == ["precious"]


def test_the_card_is_one_that_the_hub_takes(site: Path) -> None:
    assert rules.check_card("spaces", (site / "README.md").read_text()) == ([], [])


def test_the_board_is_published_and_old_pages_go(
    api: HfApi, site: Path, tmp_path: Path, demo_dir: Path, runs: Path
) -> None:
    plan_leaderboard(site, "org/board").send(api, private=True)
    there = set(api.list_repo_files("org/board", repo_type="space"))
    assert {"index.html", "leaderboard.json", "README.md"} < there
    assert sum(path.startswith("models/") for path in there) == 3
    assert api.space_info("org/board").sdk == "static"
    smaller = build(tmp_path / "board", demo_dir, runs / "org/weak")
    plan_leaderboard(smaller, "org/board").send(api, private=True)
    there = api.list_repo_files("org/board", repo_type="space")
    assert sum(path.startswith("models/") for path in there) == 1


def test_a_results_repository_holds_each_run_in_its_place(
    hub: LoopbackHub, api: HfApi, runs: Path, demo_dir: Path, tmp_path: Path
) -> None:
    places = {
        "runs/org--strong/000000000000-float32/diagnostics-token": "org/strong",
        "runs/org--strong/somewhere-else/diagnostics-token": "org/weak",
    }
    api.create_repo("org/runs", repo_type="dataset", private=True)
    operations = [
        CommitOperationAdd(f"{place}/{name}", runs / run / name)
        for place, run in places.items()
        for name in ("results.json", "predictions.parquet")
    ]
    operations.append(CommitOperationAdd("runs/x/y/z/results.json", b"{}"))
    api.create_commit("org/runs", operations, commit_message="m", repo_type="dataset")
    site = build(tmp_path / "board", demo_dir, "org/runs")
    board = json.loads((site / "leaderboard.json").read_text())
    assert [row["name"] for row in board["rows"]] == ["org/strong", PEOPLE]
    reasons = {each["place"]: each["reasons"] for each in board["rejected"]}
    due = "runs/org--weak/111111111111-float32/diagnostics-token"
    assert reasons == {
        "org/runs/runs/org--strong/somewhere-else/diagnostics-token": [
            f"a run of org/weak belongs in {due}"
        ],
        "org/runs/runs/x/y/z": ["there is no predictions.parquet"],
    }


def test_what_is_too_large_for_a_run_is_not_fetched(
    hub: LoopbackHub, api: HfApi, runs: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    api.create_repo("org/runs", repo_type="dataset")
    for name in ("weights.safetensors", "predictions.parquet", "results.json"):
        api.upload_file(
            path_or_fileobj=runs / "org/weak" / name.replace("weights.safetensors", "results.json"),
            path_in_repo=f"runs/a/b/c/{name}",
            repo_id="org/runs",
            repo_type="dataset",
        )
    monkeypatch.setitem(MAX_BYTES, "predictions.parquet", 1000)
    (found,) = find_submissions(["org/runs"])
    assert [path.name for path in found.folder.iterdir()] == ["results.json"]
    fetched = {path for method, path, _ in hub.log if method == "GET" and "/resolve/" in path}
    assert not [path for path in fetched if not path.endswith("results.json")]


def test_in_a_results_repository_the_older_of_two_copies_came_first(
    hub: LoopbackHub, api: HfApi, demo_dir: Path, tmp_path: Path
) -> None:
    """The copy's folder sorts first, and its run claims to have been finished long before."""
    api.create_repo("org/runs", repo_type="dataset")
    for name in ("org/original", "org/a-copy"):
        folder = make_run(tmp_path / name, demo_dir, info=model_info(id=name))
        results = json.loads((folder / "results.json").read_text())
        if name == "org/a-copy":
            results["finished"] = "2001-01-01T00:00:00+00:00"
            (folder / "results.json").write_text(json.dumps(results))
        api.upload_folder(
            repo_id="org/runs",
            repo_type="dataset",
            folder_path=folder,
            path_in_repo=run_place(results),
        )
    submissions = find_submissions(["org/runs"])
    assert [each.place.split("/")[3] for each in submissions] == ["org--original", "org--a-copy"]
    dates = [each.date for each in submissions]
    assert None not in dates
    assert dates == sorted(dates)


def test_a_results_repository_that_is_not_there(
    hub: LoopbackHub, demo_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    command = ["leaderboard", "org/none", "--out", str(tmp_path / "b"), "--data", str(demo_dir)]
    assert main(command) == 2
    assert "cannot read the runs of org/none: not found" in capsys.readouterr().err


# ---- strangers' text ----------------------------------------------------------------------------


class Page(HTMLParser):
    """What a browser would make of a page: elements, their attributes, and the text between."""

    def __init__(self, text: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text: list[str] = []
        self.code: dict[str, list[str]] = {"script": [], "style": []}
        self._inside = ""
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        self._inside = tag

    def handle_endtag(self, tag: str) -> None:
        self._inside = ""

    def handle_data(self, data: str) -> None:
        self.code.get(self._inside, self.text).append(data)


@pytest.fixture(scope="module")
def hostile_site(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A board of models whose every free text is hostile, and of rejected ones named so."""
    root = tmp_path_factory.mktemp("hostile")
    hostile_runs(root / "runs", demo_dir, HOSTILE)
    shutil.copytree(root / "runs/b00", root / "runs" / "<img src=x onerror=alert(1)>")
    return build(root / "board", demo_dir, root / "runs")


def pages(site: Path) -> dict[str, Page]:
    return {path.name: Page(path.read_text()) for path in site.rglob("*.html")}


def test_hostile_text_is_all_shown(hostile_site: Path) -> None:
    board = json.loads((hostile_site / "leaderboard.json").read_text())
    assert len(board["rejected"]) == len(HOSTILE) + 1
    shown = {name: "".join(page.text) for name, page in pages(hostile_site).items()}
    for index, text in enumerate(HOSTILE.values()):
        name = next(name for name in shown if name.startswith(f"org-model-{index}-"))
        assert visible(text) in shown[name]
        reasons = " ".join(board["rejected"][index + 1]["reasons"])
        assert "is not an id of a model on the Hub" in reasons or len(text) >= 300


def test_hostile_text_makes_no_elements(hostile_site: Path, site: Path) -> None:
    allowed = {tag for page in pages(site).values() for tag, _ in page.tags}
    assert "img" not in allowed
    for page in pages(hostile_site).values():
        assert {tag for tag, _ in page.tags} <= allowed
        assert len(page.code["script"]) == 1
        for tag, attributes in page.tags:
            assert not [name for name in attributes if name.startswith("on")]
            assert "style" not in attributes
            link = attributes.get("href") or ""
            assert tag not in ("a", "link") or re.match(
                r"(#|https://huggingface\.co/|models/[\w-]+\.html$|\.\./index\.html$|"
                r"leaderboard\.(json|parquet)$|data:,$)",
                link,
            ), link
            assert "src" not in attributes


def test_only_the_pages_own_code_may_run(hostile_site: Path) -> None:
    for page in pages(hostile_site).values():
        policy = next(a["content"] for _, a in page.tags if "http-equiv" in a)
        assert policy.startswith("default-src 'none'; ")
        assert "unsafe" not in policy
        for kind in ("script", "style"):
            (code,) = page.code[kind]
            digest = base64.b64encode(hashlib.sha256(code.encode()).digest()).decode()
            assert f"{kind}-src 'sha256-{digest}';" in policy


def test_nothing_hidden_reaches_a_page_or_a_terminal(
    hostile_site: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for path in hostile_site.rglob("*"):
        if path.suffix in (".html", ".json", ".md"):
            categories = {unicodedata.category(c) for c in path.read_text() if c != "\n"}
            assert not categories & {"Cc", "Cf", "Cs", "Zl", "Zp"}, path


def test_file_names_are_safe(hostile_site: Path) -> None:
    names = [path.name for path in hostile_site.glob("models/*")]
    assert len(names) == len(HOSTILE)
    assert all(re.fullmatch(r"[a-z0-9-]{1,80}\.html", name) for name in names)
    assert {path.name for path in hostile_site.parent.iterdir()} == {"runs", "board"}


@given(st.text(), st.text(), st.text())
def test_file_names_tell_identities_apart(name: str, one: str, other: str) -> None:
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
def test_links_lead_to_models_of_the_hub_alone(model_id: str, commit: str, link: str) -> None:
    assert hub_link(model_id, commit) == link


# ---- a model's page -----------------------------------------------------------------------------


def test_a_page_has_every_item_with_what_the_model_said(
    site: Path, runs: Path, demo_dir: Path
) -> None:
    (path,) = site.glob("models/org-strong-*.html")
    page = Page(path.read_text())
    text = " ".join(" ".join(page.text).split())
    predictions = pq.read_table(runs / "org/strong/predictions.parquet").to_pylist()
    benchmark = Benchmark(str(demo_dir))
    contexts = [c for task in DIAGNOSTICS for c in benchmark.stimuli(task).columns()["context"]]
    assert all(row["id"] in text for row in predictions)
    assert all(context in text for context in contexts)
    items = [attributes for tag, attributes in page.tags if tag == "tbody" and "id" in attributes]
    contrasts = {
        name for task in DIAGNOSTICS for name in benchmark.stimuli(task).columns()["contrast"]
    }
    assert {attributes["id"] for attributes in items} == contrasts
    outcomes = [str(attributes["data-outcome"]).split() for attributes in items]
    assert all(set(each) <= {"good", "bad", "hit", "miss"} for each in outcomes)
    results = json.loads((runs / "org/strong/results.json").read_text())
    for_good = sum(
        round(figure["value"] * figure["n"])
        for task in DIAGNOSTICS
        for figure in [results["tasks"][task]["none"]["measures"]["sensitivity"]]
    )
    assert sum("good" in each for each in outcomes) == for_good


def test_pictures_hold_so_many_models_and_say_so(runs: Path, demo_dir: Path) -> None:
    from lmdiag.leaderboard.pictures import pictures

    rows = [
        Standing(f"org/{i}", "submitted", {OVERVIEW[0]: Figure(0.5, 34, 0.3, 0.7)})
        for i in range(MOST + 1)
    ]
    (picture,) = pictures(rows)
    assert picture.note == f"The first {MOST} of {MOST + 1}."
    assert f"org/{MOST - 1}<" in picture.svg
    assert f"org/{MOST}<" not in picture.svg
    assert "<style" not in picture.svg
    assert pictures([]) == []


def test_pictures_tell_the_revisions_of_a_model_apart() -> None:
    from lmdiag.leaderboard.pictures import pictures

    figures = {OVERVIEW[0]: Figure(0.5, 34, 0.3, 0.7)}
    infos = [model_info(revision="step1000"), model_info(revision=None), model_info(id="org/b")]
    rows = in_order(Standing(info.id, "submitted", figures, asdict(info)) for info in infos)
    (picture,) = pictures(rows)
    labels = re.findall(r">([^<>]*)<", picture.svg)
    assert "step1000 float32" in labels
    assert "· aaaaaaa float32" in labels
    assert "org/b" in labels


@pytest.mark.parametrize("call", [lambda: find_submissions(["/nowhere"])])
def test_a_place_that_is_not_there(call: Callable[[], Any]) -> None:
    with pytest.raises(BadInput, match="/nowhere holds no run"):
        call()
