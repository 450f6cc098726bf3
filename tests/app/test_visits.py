"""What the page does, without its widgets: reading, runs, files, escaped texts."""

import html
import shlex
import zipfile

import pytest
from launched import HANG
from pandas import DataFrame, read_csv
from pandas.testing import assert_frame_equal

import lmdiag
from lmdiag.app import calls, html_parts, menus, visits
from lmdiag.app.visits import Visit
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
    visit.read(tmp_path / "own.csv")
    for name, use in choices.items():
        visit.change_use([name], use)
    assert [column.use for column in visit.columns()] == uses, visit.table_check


def example(name, folder):
    """A visit with an example."""
    visit = Visit(folder)
    visit.replace_table(visits.example_file(name, folder))
    return visit


def test_a_choice_that_is_taken_back_leaves_the_table_as_it_was(tmp_path):
    for name in menus.EXAMPLE_TABLES:
        file = visits.example_file(name, tmp_path)
        found = lmdiag.check(file)
        for column in found.columns:
            if column.is_made or column.use not in menus.USES or column.use == "response":
                continue
            away = lmdiag.check(file, **found.with_uses({column.name: "not used"}))
            back = away.with_uses({column.name: column.use})
            read = lmdiag.check(file, **back)
            assert (read.reads, read.cells) == (found.reads, found.cells), (name, column)


def test_regions_are_one_line_and_a_menu(tmp_path):
    visit = example("2 x 2 design", tmp_path)
    regions = visit.column_groups()[-1]
    assert [column.name for column in regions] == [f"region_{number}" for number in range(1, 5)]
    assert html_parts.region_names(visit.table_check)["3"] == "region 3: is"
    visit.read_again({"critical": "region_3"})
    assert html_parts.region_names(visit.table_check) == {}


def test_what_is_proposed_and_what_a_warning_names_can_be_done():
    rows = DataFrame({"a": ["The hen sat."] * 4, "b": [*"xyxy"]}).assign(a=ITEMS["text"])
    text, options = lmdiag.check(rows).proposed()[0]
    assert text.startswith("Read it as: ")
    assert lmdiag.check(rows, **options).reads
    filler = DataFrame(
        {"nr": [3, 4], "number": "filler", "day": "a", "text": ["So it is.", "Yes."]}
    )
    rows = DataFrame([*ITEMS.to_dict("records"), *filler.to_dict("records")])
    found = lmdiag.check(rows, columns=["sentence=text", "item=nr"])
    offers = dict(remedy for line in found.warnings for remedy in found.remedies(line))
    assert lmdiag.check(rows, **offers["Keep only the rows with number!=filler"]).n_rows == 4


def call_of(name, folder):
    """The call for an example, or for the published diagnostics."""
    if name == "published":
        return calls.published_call(["neg136"], "demo", ["demo:causal"], {})
    found = example(name, folder).table_check
    region = "3" if found.regions else ""
    settings = {"response": found.response, "region": region, "unit": "word"}
    return calls.table_call(found, calls.default_function(found), ["demo:causal"], settings)


@pytest.mark.slow
@pytest.mark.parametrize("name", [*menus.EXAMPLE_TABLES, "published"])
def test_the_lines_beside_a_result_give_its_figures(name, tmp_path, monkeypatch):
    visit = tmp_path / "visit"
    visit.mkdir()
    call = call_of(name, visit)
    expected = call.make(visit).to_frame()
    monkeypatch.chdir(tmp_path)
    if name in menus.EXAMPLE_TABLES:
        visits.example_file(name, tmp_path)
    made = {}
    exec(call.python().replace("report.html", "python.csv"), made)
    assert_frame_equal(made["result"].to_frame(), expected)
    assert main(shlex.split(call.command().replace("report.html", "typed.csv"))[1:]) == 0
    if call.function == "run":
        paths = [run.path for run in made["result"]]
        typed = lmdiag.Runs(map(lmdiag.load_run, paths))
        assert all((path / "report.html").exists() for path in paths)
        assert_frame_equal(typed.to_frame(), expected)
        assert typed[0].results.design == made["result"][0].results.design
    else:
        assert_frame_equal(read_csv("typed.csv"), read_csv("python.csv"))


def test_what_is_not_chosen_is_an_error():
    call = calls.published_call(["neg136"], "demo", ["demo:causal"], {"layers": "0, 1"})
    assert call.command().endswith("--model demo:causal --tasks neg136 --layers 0 1")
    for tasks, models in (([], ["gpt2"]), (["neg136"], []), (["neg136"], ["a", *"bcdefgh"])):
        with pytest.raises(BadInput, match="choose"):
            calls.published_call(tasks, "demo", models, {})


def ended(job):
    """The job, after its end."""
    job.join(HANG)
    return job


@pytest.mark.slow
def test_a_run_is_stopped_and_goes_on_where_it_was(tmp_path):
    visit = example("2 x 2 design", tmp_path)
    call = calls.table_call(visit.table_check, "run", ["demo:causal"], {})
    job = visit.start(call)
    visit.stop()
    assert (ended(job).status, job.files) == ("Stopped. Run goes on where it was.", {})
    job = ended(visit.start(call))
    assert [*job.files] == [*menus.DOWNLOADS]
    assert job.files["csv"].name == "attraction-result.csv"
    page = job.files["page"].read_text("utf-8")
    assert "data attraction.jsonl" in page
    assert str(tmp_path) not in page
    visit.close()
    assert not tmp_path.exists()


def test_a_run_waits_for_others_and_can_be_stopped_meanwhile(tmp_path):
    visit = example("Acceptability ratings", tmp_path)
    call = calls.table_call(visit.table_check, "analyse", [], {"response": "rating"})
    with visits.RUN_SLOTS, visits.RUN_SLOTS:
        job = visit.start(call)
        visit.stop()
        assert (ended(job).status, job.files) == ("Stopped. Run goes on where it was.", {})
    assert "page" in ended(visit.start(call)).files


def test_another_reading_stops_the_run_of_the_table_before(tmp_path):
    visit = example("2 x 2 design", tmp_path)
    with visits.RUN_SLOTS, visits.RUN_SLOTS:
        job = visit.start(calls.table_call(visit.table_check, "run", ["demo:causal"], {}))
        visit.change_use(["attractor"], "not used")
        assert not ended(job).files


def test_what_cannot_be_run_is_an_error_in_words(tmp_path):
    visit = example("Words in context", tmp_path)
    call = calls.table_call(visit.table_check, "run", ["demo:causal"], {"layers": "x"})
    assert "no layer x" in ended(visit.start(call)).problem
    visit.add_problem(
        visit.without_folder(f"{tmp_path}/words.jsonl has items: give --filter item=1")
    )
    line = "words.jsonl has items: give --filter item=1"
    assert visit.table_check.warnings[-1] == line
    ((text, options),) = visit.table_check.remedies(line)
    assert text == "Keep only the rows with item=1"
    assert options["filter"] == ["item=1"]


def test_a_last_condition_that_is_not_to_be_used_stays_with_a_line(tmp_path):
    visit = example("Acceptability ratings", tmp_path)
    visit.change_use(["length"], "not used")
    assert visit.table_check.conditions == ("island",)
    visit.change_use(["island"], "not used")
    uses = {column.name: column for column in visit.columns()}
    assert (uses["island"].use, uses["length"].use) == ("condition", "not used")
    assert uses["island"].problems[-1].startswith("there is no other condition")


def test_a_menu_that_is_left_unchanged_changes_nothing(tmp_path):
    visit = example("2 x 2 design", tmp_path)
    visit.function = "analyse"
    version = visit.version
    for columns in visit.column_groups():
        assert not visit.change_use([column.name for column in columns], columns[0].use)
    assert (visit.version, visit.function) == (version, "analyse")
    assert visit.change_use(["attractor"], "not used")
    assert visit.function == "analyse"
    visit.replace_table(visits.example_file("2 x 2 design", tmp_path))
    assert visit.function == "run"


def test_a_column_that_is_said_to_have_words_makes_a_table_of_words(tmp_path):
    rows = {"story": [1] * 3, "pos": [1, 2, 3], "tok": [*"abc"], "ease": [300.5, 310.5, 320.5]}
    DataFrame(rows).to_csv(tmp_path / "own.csv", index=False)
    visit = Visit(tmp_path)
    visit.replace_table(tmp_path / "own.csv")
    assert visit.function == "run"
    visit.change_use(["tok"], "word")
    assert visit.function == "fit"
    assert [column.use for column in visit.columns()][:3] == ["text", "position", "word"]


@pytest.mark.parametrize(("message", "place"), [
    ("Name it, --word COLUMN", '"word" in the menus of the columns'),
    ("give --columns sentence=a item=b", '"sentence" and "item" in the menus of the columns'),
    ("give --columns NAME=COLUMN", "the menus of the columns"),
    ("--conditions a, --layers 1", '"condition" in the menus of the columns and More options'),
])  # fmt: skip
def test_messages_with_options_name_the_entries_of_menus(message, place):
    assert f"On this page, use {place}." in html.unescape(html_parts.problem_html(message))


def test_a_file_that_unpacks_to_hundreds_of_megabytes_is_not_read(tmp_path):
    with zipfile.ZipFile(tmp_path / "own.xlsx", "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("xl/worksheets/sheet1.xml", bytes(visits.MAX_UNPACKED_BYTES + 2**20))
    visit = Visit(tmp_path)
    visit.replace_table(tmp_path / "own.xlsx")
    assert visit.table_check.error.startswith(
        "own.xlsx has 201 MB when it is unpacked, at most 200 MB"
    )


HOSTILE = "<img src=x onerror=alert(1)>\u202e"


def test_names_and_texts_are_escaped(tmp_path):
    rows = DataFrame({HOSTILE: ["a", "b"], "sentence": [f"{HOSTILE} x y", "A hen sat."]})
    found = lmdiag.check(rows)
    columns = [column for column in found.columns if not column.is_made]
    parts = [html_parts.table(found), html_parts.column(columns), html_parts.column_note(columns)]
    parts += [
        html_parts.problem_html(HOSTILE),
        html_parts.progress(HOSTILE, 0.5),
        html_parts.framed(HOSTILE),
    ]
    for part in parts:
        assert "<img" not in part
    assert all("\u202e" not in part for part in parts[:-1])
    upload = tmp_path / "upload"
    upload.mkdir()
    (upload / "-<b>$(x).CSV").write_text("a\n")
    file = visits.uploaded_file(str(upload / "-<b>$(x).CSV"), tmp_path)
    assert (file.name, [*upload.iterdir()]) == ("_b__(x).csv", [])
