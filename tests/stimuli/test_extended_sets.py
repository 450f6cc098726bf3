"""NEG-1500 and ROLE-1500: reading, rows by hand, and one table with the small sets."""

import shutil
from dataclasses import replace
from pathlib import Path

import pytest
from invented_runs import make_run
from sentence_files import FILES, SIZES, write_set
from shown import plots_of

from lmdiag import diagnostics, stimuli
from lmdiag.asking.protocol import Protocol
from lmdiag.hub.benchmark import columns, protocol_problem
from lmdiag.hub.publish import plan_data
from lmdiag.report import numbers
from lmdiag.report.selections import ReportFigures
from lmdiag.report.tables import sections
from lmdiag.results import FigureKey, combined_fingerprint, load_run
from lmdiag.results.run import joined_runs
from lmdiag.types import DIAGNOSTICS, BadInput

NEGATION = "A robin is a bird,\nA robin is not an insect,\n"
ROLES = "the cook saw which chef the waiter had called,\n"
EXTENDED = tuple(FILES)


def rows(folder, text, name="NEG-1500-SIMP-GEN.txt"):
    (folder / name).write_text(text, "utf-8")
    return stimuli.load(str(folder / name)).table.to_pylist()


def test_a_pair_of_negation_has_the_four_conditions_of_neg136(demo_dir, tmp_path):
    found = rows(tmp_path, NEGATION)
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
    fitting = {"an": "uncle iPod hour Orange", "a": "utensil unit herb union"}
    for determiner, targets in fitting.items():
        for target in targets.split():
            found = rows(tmp_path, f"A thing is a {target},\nA thing is not a dog,\n")
            contexts = {r["context"] for r in found if r["target"] == target}
            assert contexts == {f"A thing is {determiner}", f"A thing is not {determiner}"}
    # blanks, empty lines and misprints of the subject do no harm
    text = "A human  is a mammal ,\n\n A human is not a device,\n\nA motel is a place,\n"
    contexts = {r["context"] for r in rows(tmp_path, f"{text}A model is not a plant,\n")}
    assert contexts == {"A human is a", "A human is not a", "A motel is a", "A model is not a"}


def test_a_pair_of_roles_has_two_contrasts_one_for_each_target(tmp_path):
    text = f"{ROLES}the cook saw which waiter the chef had paid,"
    found = rows(tmp_path, text, "ROLE-1500.txt")
    chef = "the cook saw which chef the waiter had"
    waiter = "the cook saw which waiter the chef had"
    assert [(r["id"], r["context"], r["target"], r["good"], r["expected"]) for r in found] == [
        ("role1500-1-a-appropriate", chef, "called", True, ["called"]),
        ("role1500-1-a-reversed", waiter, "called", False, []),
        ("role1500-1-b-appropriate", waiter, "paid", True, ["paid"]),
        ("role1500-1-b-reversed", chef, "paid", False, []),
    ]
    assert [r["contrast"] for r in found] == ["role1500-1-a"] * 2 + ["role1500-1-b"] * 2
    nouns = [(r["object"], r["subject"], r["pair"]) for r in found[:2]]
    assert nouns == [("chef", "waiter", "reversal"), ("waiter", "chef", "reversal")]
    for second in (
        "the cook saw which waiter the chef had called,",  # the same verb
        "the cook saw which chef the waiter had paid,",  # the same order
        "the guest saw which waiter the chef had paid,",
        "the cook saw which waiters had money,",
    ):
        found = rows(tmp_path, ROLES + second, "ROLE-1500.txt")
        assert {r["pair"] for r in found} == {"other"}


@pytest.mark.parametrize("name", SIZES)
def test_the_authors_files_have_this_many_pairs(tmp_path, name):
    path = write_set(tmp_path, name)
    (task,) = stimuli.tasks(str(path))
    found = stimuli.load(str(path))
    assert len(found) == 4 * SIZES[name] == diagnostics.get(task).published_rows
    numbers_of = [len(set(found.columns()[column])) for column in ("item", "contrast")]
    assert numbers_of == [SIZES[name], 2 * SIZES[name]]
    other = path.with_name(f"{name.lower().replace('-', '_')}.txt")
    other.write_bytes(path.read_bytes().rstrip(b"\n").replace(b"\n", b"\r\n"))
    assert stimuli.load(str(other)).fingerprint == found.fingerprint
    lines = {"text": path.read_text().splitlines()}  # as `datasets` reads the file
    assert stimuli.load(lines, task).fingerprint == found.fingerprint


MISTAKES = {
    NEGATION + "A dog is an animal,": r"GEN.txt:3: the pair of this .* odd number .* 3; add",
    "A robin is a bird\nA robin is not a tree,": r"GEN.txt:1: .*no comma at its end: 'A rob",
    NEGATION + ",\nA dog is not a cat,": r"GEN.txt:3: expected a sentence whose last wo",
    "A robin is not a tree,\nA robin is a bird,": r":1: the first sentence of a pair must be",
    "A robin is a bird,\nA robin is a fish,": r":2: the second sentence .*'SUBJECT is not a",
    NEGATION + "A robin is a bird,\nA trout is not a tree,":
        r":4: its subject 'A trout' is not that of the line before, 'A robin': the two",
}  # fmt: skip


@pytest.mark.parametrize("text", MISTAKES)
def test_mistakes_name_the_line(tmp_path, text):
    with pytest.raises(BadInput, match=r"mine.txt is not a table, .*ROLE-1500.txt\): `lmdiag sur"):
        rows(tmp_path, text, "mine.txt")
    with pytest.raises(BadInput, match=MISTAKES[text]):
        rows(tmp_path, text)


def test_a_folder_of_the_authors_files_has_all_of_them(demo_dir, tmp_path):
    folder = tmp_path / "data"
    for name in FILES.values():
        write_set(folder, name, 3)
    (folder / "README.md").write_text("# the authors' notes\n")
    assert stimuli.tasks(str(folder)) == list(EXTENDED)
    assert len(stimuli.load(str(folder), "role1500")) == 12
    # beside the published data set they are neither read nor published
    both = shutil.copytree(demo_dir, folder, dirs_exist_ok=True)
    assert stimuli.tasks(str(both)) == stimuli.tasks(str(demo_dir))
    suffixes = {Path(path).suffix for path in plan_data(both, "org/lmdiag").files}
    assert ".parquet" in suffixes
    assert ".txt" not in suffixes
    assert not {place.task for place in columns()} & set(EXTENDED)
    problem = protocol_problem(Protocol(tasks=(*DIAGNOSTICS, "role1500")))
    assert problem == "the leaderboard does not have role1500: submit a run without it"


@pytest.mark.slow
def test_runs_of_one_model_are_joined_into_one_table_and_chart(demo_dir, tmp_path):
    origins = (("small", demo_dir, ("role88", "neg136")), ("large", tmp_path / "data", EXTENDED))
    for name in SIZES:
        write_set(tmp_path / "data", name, 40)
    runs = [
        load_run(make_run(tmp_path / f"{model}-{kind}", data, Protocol(tasks=tasks), id=model))
        for kind, data, tasks in origins
        for model in "ab"
    ]
    small, _, large, _ = runs
    joined = joined_runs(runs)
    results = [run.results for run in joined]
    assert [of_model.model.id for of_model in results] == ["a", "b"]
    assert list(results[0].tasks) == ["role88", "neg136", *EXTENDED]
    facts = {task: data.fingerprint for task, data in results[0].data.tasks.items()}
    assert results[0].data.fingerprint == combined_fingerprint(facts)
    assert results[0].signature == results[1].signature
    assert list(joined[1].predictions) == list(joined[1].stimuli) == list(results[1].tasks)
    of_large = large.results
    other_unit = replace(of_large, protocol=replace(of_large.protocol, unit="word"))
    other_commit = replace(of_large, model=replace(of_large.model, commit="b" * 40))
    for results_of_other in (other_unit, other_commit, small.results):
        other = replace(large, results=results_of_other)
        assert joined_runs([small, other]) == [small, other]

    tables = {
        section.task: table
        for section in sections(ReportFigures.of(results[:1]))
        for table in section.tables
        if table.title == "Original and extended sets"
    }
    assert [row.labels for row in tables["role88"].rows] == [("ROLE-88",), ("ROLE-1500",)]
    sets = [("NEG-136-SIMP", 18), ("NEG-1500-GEN", 40), ("NEG-1500-TEMP", 40)]
    table = tables["neg136"]
    assert [(row.labels[0], int(row.cells[0].value)) for row in table.rows] == sets
    place = FigureKey("neg1500_temp", "none", "sensitivity", "subset/polarity", "simp/negative")
    figure = results[0].figure(place)
    assert table.rows[2].cells[4].value == numbers.value(figure)
    for some, series in ((runs[::2], set(dict(sets))), (runs, {"a", "b"})):
        plots = {plot.name: plot.spec["data"]["values"] for plot in plots_of(some)}
        assert {row["series"] for row in plots["neg136-extended-sets"]} == series
        assert plots["role88-extended-sets"]
