"""NEG-1500 and ROLE-1500: reading, rows, figures worked out by hand, and one table with the small
sets.
"""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pairs_of_sentences import FILES, SIZES, write_set
from runs import make_run, model_info, predictions_of

from lmdiag import diagnostics, stimuli
from lmdiag.evaluation import evaluate
from lmdiag.hub.benchmark import columns, protocol_problem
from lmdiag.hub.publish import plan_data
from lmdiag.protocol import Protocol
from lmdiag.report import numbers
from lmdiag.report.html import charts
from lmdiag.report.tables import sections
from lmdiag.results import (
    DataInfo,
    Device,
    Place,
    Results,
    TaskData,
    combine,
    load_run,
    read_results,
)
from lmdiag.results.published import published_beside
from lmdiag.results.run import joined_results, joined_runs
from lmdiag.types import DIAGNOSTICS, BadInput

if TYPE_CHECKING:
    from huggingface_hub import HfApi


NEGATION = "A robin is a bird,\nA robin is not an insect,\n"
ROLES = (
    "the cook saw which chef the waiter had called,\nthe cook saw which waiter the chef had paid,"
)
EXTENDED = tuple(FILES)


def file(folder: Path, text: str, name: str = "NEG-1500-SIMP-GEN.txt") -> str:
    (folder / name).write_text(text, "utf-8")
    return str(folder / name)


def rows(data: str, task: str | None = None) -> list[dict[str, Any]]:
    table = stimuli.load(data, task).columns()
    return [dict(zip(table, values, strict=True)) for values in zip(*table.values(), strict=True)]


# ---- rows ----------------------------------------------------------------------------------------


def test_a_pair_of_negation_has_the_four_conditions_of_neg136(
    demo_dir: Path, tmp_path: Path
) -> None:
    found = rows(file(tmp_path, NEGATION))
    assert [
        (r["id"], f"{r['context']} {r['target']}", r["good"], r["expected"]) for r in found
    ] == [
        ("neg1500_gen-1-TA", "A robin is a bird", True, ["bird"]),
        ("neg1500_gen-1-FA", "A robin is an insect", False, []),
        ("neg1500_gen-1-TN", "A robin is not an insect", True, []),
        ("neg1500_gen-1-FN", "A robin is not a bird", False, []),
    ]
    contrasts = [r["contrast"].rpartition("-")[2] for r in found]
    assert contrasts == ["affirmative"] * 2 + ["negative"] * 2
    facts = {(r["item"], r["subset"], r["natural"], r["right_context"]) for r in found}
    assert facts == {("1", "simp", None, "")}
    assert found[0].keys() == stimuli.load(str(demo_dir), "neg136").columns().keys()
    fitting = {"an": "insect uncle iPod hour Orange", "a": "bird utensil unit herb union"}
    for determiner, targets in fitting.items():
        for target in targets.split():
            found = rows(file(tmp_path, f"A thing is a {target},\nA thing is not a dog,\n"))
            contexts = {r["context"] for r in found if r["target"] == target}
            assert contexts == {f"A thing is {determiner}", f"A thing is not {determiner}"}


def test_a_pair_of_roles_has_two_contrasts_one_for_each_target(
    demo_dir: Path, tmp_path: Path
) -> None:
    found = rows(file(tmp_path, ROLES, "ROLE-1500.txt"))
    chef = "the cook saw which chef the waiter had"
    waiter = "the cook saw which waiter the chef had"
    assert [(r["id"], r["context"], r["target"], r["good"], r["expected"]) for r in found] == [
        ("role1500-1-a-appropriate", chef, "called", True, ["called"]),
        ("role1500-1-a-reversed", waiter, "called", False, []),
        ("role1500-1-b-appropriate", waiter, "paid", True, ["paid"]),
        ("role1500-1-b-reversed", chef, "paid", False, []),
    ]
    assert [r["contrast"] for r in found] == ["role1500-1-a"] * 2 + ["role1500-1-b"] * 2
    nouns = [(r["object"], r["subject"]) for r in found[:2]]
    assert nouns == [("chef", "waiter"), ("waiter", "chef")]
    norms = {"expected_cloze", "target_cloze", "target_cloze_strict", "expected_responses"}
    small = stimuli.load(str(demo_dir), "role88").columns().keys()
    assert found[0].keys() == small - norms | {"pair"}
    for second, kind in {
        "The cook saw which head waiter the chef had paid,": "reversal",
        "the cook saw which head waiter the chef had called,": "other",  # the same verb
        "the cook saw which chef the head waiter had paid,": "other",  # the same nouns
        "the guest saw which head waiter the chef had paid,": "other",
        "the cook saw which head waiters had money,": "other",
    }.items():
        text = f"the cook saw which chef the head waiter had called,\n{second}\n"
        assert {r["pair"] for r in rows(file(tmp_path, text, "ROLE-1500.txt"))} == {kind}


@pytest.mark.parametrize("name", SIZES)
def test_the_authors_files_have_this_many_pairs(tmp_path: Path, name: str) -> None:
    path = write_set(tmp_path, name)
    (task,) = stimuli.tasks(str(path))
    found = stimuli.load(str(path))
    columns = found.columns()
    assert len(found) == 4 * SIZES[name] == diagnostics.get(task).published_rows
    numbers_of = [len(set(columns[column])) for column in ("item", "contrast")]
    assert numbers_of == [SIZES[name], 2 * SIZES[name]]
    assert sum(map(bool, columns["expected"])) == SIZES[name] * (2 if name == "ROLE-1500" else 1)
    other = path.with_name(f"{name.lower().replace('-', '_')}.txt")
    other.write_bytes(path.read_bytes().rstrip(b"\n").replace(b"\n", b"\r\n"))
    assert stimuli.load(str(other)).fingerprint == found.fingerprint
    lines = {"text": path.read_text().splitlines()}  # as `datasets` reads the file
    assert stimuli.load(lines, task).fingerprint == found.fingerprint


def test_blanks_empty_lines_and_misprints_of_the_subject_do_no_harm(tmp_path: Path) -> None:
    text = "A human  is a mammal ,\n\n A human is not a device,\n\n\nA motel is a building,\n"
    found = rows(file(tmp_path, f"{text}A model is not a plant,\n"))
    contexts = list(dict.fromkeys(r["context"] for r in found))
    assert contexts == ["A human is a", "A human is not a", "A motel is a", "A model is not a"]


MISTAKES = {
    NEGATION + "A dog is an animal,": r"GEN.txt:3: the pair of this .* odd number .* 3; add",
    "A robin is a bird\nA robin is not a tree,": r"GEN.txt:1: .*no comma at its end: 'A rob",
    NEGATION + "bird,\nA dog is not a cat,": r"GEN.txt:3: expected a sentence whose last wo",
    "A robin is not a tree,\nA robin is a bird,": r":1: the first sentence of a pair must be",
    "A robin is a bird,\nA robin is a fish,": r":2: the second sentence .*'SUBJECT is not a",
    "A robin flies,\nA robin is not a fish,": r":1: the first sentence .*, not 'A robin fl",
    NEGATION + "A robin is a bird,\nA trout is not a tree,":
        r":4: its subject 'A trout' is not that of the line before, 'A robin': the two",
}  # fmt: skip


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_name_the_line(tmp_path: Path, text: str) -> None:
    with pytest.raises(BadInput, match=MISTAKES[text]):
        stimuli.load(file(tmp_path, text))
    with pytest.raises(BadInput, match=r"mine.txt is not known .*ROLE-1500.txt\); giv"):
        stimuli.load(file(tmp_path, text, "mine.txt"))


# ---- where they come from ------------------------------------------------------------------------


def test_a_folder_of_the_authors_files_has_all_of_them(demo_dir: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    for name in FILES.values():
        write_set(folder, name, 3)
    (folder / "README.md").write_text("# the authors' notes\n")
    assert stimuli.tasks(str(folder)) == list(EXTENDED)
    assert len(stimuli.load(str(folder), "role1500")) == 12
    # beside the published data set they are neither read nor published
    both = shutil.copytree(demo_dir, folder, dirs_exist_ok=True)
    assert stimuli.tasks(str(both)) == stimuli.tasks(str(demo_dir))
    sent = plan_data(both, "org/lmdiag").files
    assert sent
    assert not [path for path in sent if path.endswith(".txt")]
    assert not {place.task for place in columns()} & set(EXTENDED)
    problem = protocol_problem(Protocol(tasks=(*DIAGNOSTICS, "role1500")))
    assert problem == "the leaderboard does not have role1500: submit a run without it"


def test_the_data_set_of_the_hub_is_the_file(api: HfApi, tmp_path: Path) -> None:
    """A card without `configs:`, and one text file, as text-machine-lab has them."""
    task, repo = "neg1500_temp", f"org/{FILES['neg1500_temp']}"
    path = write_set(tmp_path, FILES[task], 4)
    (tmp_path / "README.md").write_text("---\nlicense: mit\n---\nA description.\n")
    api.create_repo(repo, repo_type="dataset")
    commit = api.upload_folder(repo_id=repo, repo_type="dataset", folder_path=tmp_path).oid
    assert stimuli.tasks(repo) == [task]
    remote = stimuli.load(repo)
    assert remote.columns() == stimuli.load(str(path)).columns()
    assert (remote.source, remote.revision) == (repo, commit)


# ---- small and extended sets together ------------------------------------------------------------


@pytest.fixture(scope="module")
def together(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Runs of two models on two diagnostics, and on their extended sets, which are shorter here."""
    folder = tmp_path_factory.mktemp("together")
    origins = (("small", demo_dir, ("role88", "neg136")), ("large", folder / "data", EXTENDED))
    for name in SIZES:
        write_set(folder / "data", name, 40)
    return {
        f"{model}-{kind}": make_run(
            folder / f"{model}-{kind}", data, Protocol(tasks=tasks), id=f"org/{model}", seed=seed
        )
        for seed, model in enumerate(("a", "b"))
        for kind, data, tasks in origins
    }


def test_runs_of_one_model_and_protocol_are_joined(together: dict[str, Path]) -> None:
    paths = [together[name] for name in ("a-small", "b-small", "a-large", "b-large")]
    given = [read_results(path) for path in paths]
    results = joined_results(given)
    assert [joined.model.id for joined in results] == ["org/a", "org/b"]
    assert list(results[0].tasks) == ["role88", "neg136", *EXTENDED]
    facts = {task: data.fingerprint for task, data in results[0].data.tasks.items()}
    assert results[0].data.fingerprint == combine(facts)
    assert results[0].signature == results[1].signature
    runs = joined_runs([load_run(path) for path in paths])
    assert [run.results for run in runs] == results
    assert list(runs[1].predictions) == list(runs[1].stimuli) == list(results[1].tasks)
    small, large = given[0], given[2]
    other_unit = replace(large, protocol=replace(large.protocol, unit="word"))
    other_commit = replace(large, model=replace(large.model, commit="b" * 40))
    for other in (other_unit, other_commit, small):
        assert joined_results([small, other]) == [small, other]


def test_small_and_extended_sets_stand_in_one_table_and_one_chart(
    together: dict[str, Path],
) -> None:
    (joined,) = joined_results([read_results(together[f"a-{kind}"]) for kind in ("small", "large")])
    tables = {
        section.task: table
        for section in sections([joined])
        for table in section.tables
        if table.title == "Original and extended sets"
    }
    assert list(tables) == ["role88", "neg136"]
    table = tables["neg136"]
    sets = [("NEG-136-SIMP", 18), ("NEG-1500-GEN", 40), ("NEG-1500-TEMP", 40)]
    assert [(row.labels[0], int(row.cells[0].value)) for row in table.rows] == sets
    assert [heading.label for heading in table.headings] == [
        "n", "accuracy@1", "accuracy@5", "sensitivity, affirmative", "sensitivity, negative",
    ]  # fmt: skip
    names = ("neg136", "neg1500_gen", "neg1500_temp")
    for row, task in zip(table.rows, names, strict=True):
        place = Place(task, "none", "sensitivity", "subset/polarity", "simp/negative")
        figure = joined.figure(place)
        assert figure is not None
        assert row.cells[4].value == numbers.value(figure)
    assert [row.labels for row in tables["role88"].rows] == [("ROLE-88",), ("ROLE-1500",)]
    runs = [load_run(together[name]) for name in ("a-small", "a-large", "b-small", "b-large")]
    for some, series in ((runs[:2], dict(sets)), (runs, {"org/a", "org/b"})):
        plots = {plot.name: plot for plot in charts(some)}
        drawn = plots["neg136-extended-sets"].spec["data"]["values"]
        assert {row["series"] for row in drawn} == set(series)
        assert all({"low", "high", "n"} <= row.keys() for row in drawn)
        assert "role88-extended-sets" in plots


def test_the_papers_figures_stand_beside_a_run_on_all_pairs(tmp_path: Path) -> None:
    for name in SIZES:
        write_set(tmp_path, name)
    loaded = {task: stimuli.load(str(tmp_path), task) for task in EXTENDED}
    tops = {task: [["-"] * 5 for _ in range(len(rows))] for task, rows in loaded.items()}
    results = Results(
        signature="", model=model_info(id="FacebookAI/roberta-base"),
        protocol=Protocol(tasks=EXTENDED), versions={}, finished="",
        data=DataInfo("", None, "", {t: TaskData("", len(s)) for t, s in loaded.items()}),
        device=Device("cpu", 1), seconds={}, n_contexts=1,
        tasks={
            task: {"none": evaluate(x, [predictions_of(x.columns(), top_words=tops[task])],
                                    Protocol(), cased=True)}
            for task, x in loaded.items()
        },
    )  # fmt: skip
    beside = published_beside(results)
    # Shivagunde et al. (2023), tables 2 to 4, the row of RoBERTa base; role1500 is left out
    expected = {
        ("neg1500_gen", "accuracy@5"): 44.0, ("neg1500_temp", "accuracy@5"): 62.1,
        ("neg1500_gen", "accuracy@1"): 15.4, ("neg1500_temp", "accuracy@1"): 22.2,
    }  # fmt: skip
    assert {(p.task, p.measure): known.value for p, known in beside.items()} == expected
    for place, known in beside.items():
        figure = results.figure(place)
        assert figure is not None
        assert figure.n == known.n
