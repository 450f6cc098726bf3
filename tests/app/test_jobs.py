"""What the page does, without its widgets: menus, jobs, their lines, visits, escaped texts."""

import shlex

import pytest
from pandas import DataFrame, read_csv
from pandas.testing import assert_frame_equal

import lmdiag
from lmdiag.app import jobs, shown
from lmdiag.app.visits import JobThread, Stopped, Visit
from lmdiag.cli import main
from lmdiag.types import BadInput

ITEMS = DataFrame({"nr": [1, 1, 2, 2], "number": ["sg", "pl"] * 2, "day": ["a", "a", "b", "b"]})
ITEMS["text"] = ["The hen sat.", "The hens sat.", "A dog ran off.", "Some dogs ran off."]
CHOICES = {
    "a sentence": ({"text": "sentence"}, ["item", "condition", "covariate", "sentence"]),
    "two columns of items": (
        {"text": "sentence", "nr": "item", "day": "item"}, ["item", "condition", "item", "sentence"]
    ),
    "a critical word": (
        {"text": "sentence", "word": "critical"},
        ["item", "condition", "covariate", "sentence", "critical"],
    ),
}  # fmt: skip
"""What a person chooses -> the uses of the columns."""


@pytest.mark.parametrize("case", CHOICES)
def test_what_menus_say_is_read(case, tmp_path):
    choices, uses = CHOICES[case]
    visit = Visit(tmp_path)
    table = ITEMS.assign(word=2) if "word" in choices else ITEMS
    table.to_csv(tmp_path / "own.csv", index=False)
    visit.check(tmp_path / "own.csv")
    for name, use in choices.items():
        visit.choose([name], use)
    assert [column.use for column in visit.columns()] == uses, visit.found


def test_a_choice_that_is_taken_back_leaves_the_table_as_it_was(tmp_path):
    for name in jobs.EXAMPLE_TABLES:
        file = jobs.example_file(name, tmp_path)
        found = lmdiag.check(file)
        for column in found.columns:
            if column.is_made or column.use not in jobs.USES or column.use == "response":
                continue
            away = lmdiag.check(file, **jobs.chosen_options(found, {column.name: "not used"}))
            back = jobs.chosen_options(away, {column.name: column.use})
            read = lmdiag.check(file, **back)
            assert (read.reads, read.cells) == (found.reads, found.cells), (name, column)


def test_regions_are_one_line_and_proposals_are_offered(tmp_path):
    file = jobs.example_file("A 2 x 2 design (agreement)", tmp_path)
    found = lmdiag.check(file)
    assert jobs.grouped_columns(found)[-1] == [f"region_{number}" for number in range(1, 5)]
    assert jobs.regions_of(found) == ["1", "2", "3", "4"]
    rows = DataFrame({"a": ["The hen sat."] * 4, "b": [*"xyxy"]}).assign(a=ITEMS["text"])
    (text, options), *_ = jobs.remedies(lmdiag.check(rows))
    assert text.startswith("Read it as: ")
    assert lmdiag.check(rows, **options).reads
    filler = DataFrame(
        {"nr": [3, 4], "number": "filler", "day": "a", "text": ["So it is.", "Yes."]}
    )
    rows = DataFrame([*ITEMS.to_dict("records"), *filler.to_dict("records")])
    found = lmdiag.check(rows, columns=["sentence=text", "item=nr"])
    offers = dict(jobs.remedies(found))
    assert lmdiag.check(rows, **offers["Keep only the rows with number!=filler"]).n_rows == 4


@pytest.mark.parametrize("name", jobs.EXAMPLE_TABLES)
def test_the_lines_beside_a_result_give_its_figures(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    visit = tmp_path / "visit"
    visit.mkdir()
    file = jobs.example_file(name, visit)
    found = lmdiag.check(file)
    region = "3" if jobs.regions_of(found) else ""
    settings = {"response": found.response, "region": region, "unit": "word"}
    job = jobs.job_of(found, jobs.function_of(found), ["demo:causal"], settings)
    expected = job.call(visit, lambda *_: None).to_frame()
    jobs.example_file(name, tmp_path)
    made = {}
    exec(job.python().replace("report.html", "python.csv"), made)
    assert_frame_equal(made["result"].to_frame(), expected)
    assert main(shlex.split(job.command().replace("report.html", "typed.csv"))[1:]) == 0
    if job.function == "run":
        (path,) = (tmp_path / "results" / "demo--causal").iterdir()
        typed = lmdiag.load_run(path)
        assert (path / "report.html").exists()
        assert_frame_equal(typed.to_frame(), expected)
        assert typed.results.design == made["result"][0].results.design
    else:
        assert_frame_equal(read_csv("typed.csv"), read_csv("python.csv"))


def test_published_diagnostics_are_a_job(tmp_path):
    job = jobs.published_job(["neg136"], "demo", ["demo:causal"], {"unit": "", "layers": "0, 1"})
    assert shlex.split(job.command())[-3:] == ["--layers", "0", "1"]
    assert len(job.call(tmp_path, lambda *_: None)) == 2
    for tasks, models in (([], ["gpt2"]), (["neg136"], []), (["neg136"], ["a", *"bcdefgh"])):
        with pytest.raises(BadInput, match="choose"):
            jobs.published_job(tasks, "demo", models, {})


def test_a_run_is_stopped_and_goes_on_where_it_was(tmp_path):
    visit = Visit(tmp_path)
    visit.check(jobs.example_file("A 2 x 2 design (agreement)", tmp_path))
    job = jobs.job_of(visit.found, "run", ["demo:causal"], {})
    running = JobThread(job, visit)
    visit.stopped.set()
    with pytest.raises(Stopped):
        [*running.steps()]
    visit.stopped.clear()
    steps = [*JobThread(job, visit).steps()]
    assert steps[0] == ("Loading demo:causal", None)
    page = (tmp_path / "result.html").read_text("utf-8")
    assert "data attraction.jsonl" in page
    assert str(tmp_path) not in page


def test_what_cannot_be_run_is_an_error_in_words(tmp_path):
    visit = Visit(tmp_path)
    visit.check(jobs.example_file("Words in context", tmp_path))
    job = jobs.job_of(visit.found, "run", ["demo:causal"], {"layers": "x"})
    with pytest.raises(BadInput, match="layers"):
        [*JobThread(job, visit).steps()]
    line = visit.message(BadInput(f"{tmp_path}/words.jsonl has items: give --filter item=1"))
    assert line == "words.jsonl has items: give --filter item=1"
    offers = dict(jobs.remedies(visit.found))
    assert offers["Keep only the rows with item=1"]["filter"] == ["item=1"]


def test_a_last_condition_that_is_not_to_be_used_stays_with_a_line(tmp_path):
    visit = Visit(tmp_path)
    visit.check(jobs.example_file("Acceptability ratings", tmp_path))
    visit.choose(["length"], "not used")
    assert visit.found.conditions == ("island",)
    visit.choose(["island"], "not used")
    uses = {column.name: column for column in visit.columns()}
    assert (uses["island"].use, uses["length"].use) == ("condition", "not used")
    assert uses["island"].problems[-1].startswith("there is no other condition")


HOSTILE = "<img src=x onerror=alert(1)>\u202e"


def test_names_and_texts_are_escaped(tmp_path):
    rows = DataFrame({HOSTILE: ["a", "b"], "sentence": [f"{HOSTILE} x y", "A hen sat."]})
    found = lmdiag.check(rows)
    columns = [column for column in found.columns if not column.is_made]
    parts = [shown.table(found), shown.column(columns), shown.column_note(columns)]
    parts += [shown.problem(HOSTILE), shown.progress(HOSTILE, 0.5), shown.framed(HOSTILE)]
    for part in parts:
        assert "<img" not in part
    assert all("\u202e" not in part for part in parts[:-1])
    upload = tmp_path / "upload"
    upload.mkdir()
    (upload / "-<b>$(x).CSV").write_text("a\n")
    file = jobs.uploaded_file(str(upload / "-<b>$(x).CSV"), tmp_path)
    assert (file.name, [*upload.iterdir()]) == ("_b__(x).csv", [])
