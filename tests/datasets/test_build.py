"""`lmdiag build`, data sets that are built on first use, and what other programs make of them."""

import hashlib
import json
import shutil
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyarrow.parquet as pq
import pytest
import yaml
from huggingface_hub import DatasetCard
from launched import LEAVE, finished

import lmdiag
from lmdiag import stimuli
from lmdiag.cli import main
from lmdiag.stimuli.dataset import BUILT, cached
from lmdiag.types import BadInput

DIAGNOSTICS = ["cprag102", "role88", "neg136"]
CHOICES = [
    f"{name}_choice"
    for name in (*DIAGNOSTICS[:2], "neg136_simp_affirmative", "neg136_simp_negative", "neg136_nat")
]
CONFIGS = [*DIAGNOSTICS, "agreement", "verbs", *CHOICES]


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, and an empty folder to work in; no network."""
    (tmp_path / "work").mkdir()
    monkeypatch.chdir(tmp_path / "work")
    monkeypatch.setenv("LMDIAG_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    return tmp_path / "cache"


def build(*arguments):
    return main(["build", *map(str, arguments)])


def contents(folder):
    files = (path for path in sorted(folder.rglob("*")) if path.is_file())
    return {str(path.relative_to(folder)): path.read_bytes() for path in files}


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def configs(folder):
    """Config -> its entry in the YAML `configs:` of the card."""
    front = yaml.safe_load((folder / "README.md").read_text("utf-8").split("---\n")[1])
    return {entry["config_name"]: entry for entry in front["configs"]}


def provenance(folder):
    return json.loads((folder / "provenance.json").read_text("utf-8"))


def test_a_second_build_gives_the_same_bytes(demo_dir, tmp_path, capsys):
    (tmp_path / "work/.lmdiag.building/new").mkdir(parents=True)  # of a killed build
    for _ in range(2):  # into a new directory, and over the existing one
        capsys.readouterr()
        assert build("--source", "demo") == 0
        assert contents(Path("lmdiag")) == contents(demo_dir)
    counts = {"cprag102": 54, "role88": 32, "neg136": 104, "agreement": 760, "verbs": 461}
    counts |= dict(zip(CHOICES, (54, 32, 36, 36, 32), strict=True))
    lines = [f"{config:<30}{n:>9} rows\n" for config, n in counts.items()]
    assert capsys.readouterr() == ("".join([*lines, "written: lmdiag\n"]), "")
    assert names(Path()) == ["lmdiag"]
    assert stimuli.tasks("lmdiag") == CONFIGS[:4]


@pytest.mark.slow
def test_the_script_of_the_data_set_is_the_command(demo_dir, tmp_path):
    finished(sys.executable, demo_dir / "build.py", "out", "--source", "demo", cwd=tmp_path)
    assert contents(tmp_path / "out") == contents(demo_dir)


def test_provenance_has_the_digest_of_every_file(demo_dir, scripts):
    record, entries = provenance(demo_dir), configs(demo_dir)
    assert list(entries) == list(record["configs"]) == CONFIGS
    assert [entry.get("default") for entry in entries.values()] == [True] + 9 * [None]
    for entry in entries.values():  # the cache of `datasets` depends on the description
        (file,) = entry["data_files"]
        assert record["outputs"][file["path"]] in entry["description"]
    files = contents(demo_dir)
    del files["provenance.json"]
    digests = {path: hashlib.sha256(content).hexdigest() for path, content in files.items()}
    assert (record["outputs"], record["source"]) == (digests, "demo")
    for config, facts in record["configs"].items():
        (file,) = (demo_dir / config).glob("*.parquet")
        assert (facts["rows"], facts["commit"]) == (pq.read_metadata(file).num_rows, None)
        for path, digest in facts["inputs"].items():
            assert hashlib.sha256((scripts / "demo" / path).read_bytes()).hexdigest() == digest
    for folder in ("lm-evaluation-harness", "lighteval", "inspect-ai"):
        source = {path.name: path.read_bytes() for path in (scripts / folder).glob("*.*")}
        assert contents(demo_dir / folder) == source


def test_the_published_files_have_their_commit_and_changed_ones_do_not(upstream, tmp_path):
    tree = shutil.copytree(upstream / "lm-diagnostics", tmp_path / "tree")  # one repository
    path = tree / "datasets/NEG-136/NEG-136-NAT.tsv"
    path.chmod(0o644)
    card, out = Path("out/README.md"), Path("out")
    assert build("out", "--source", tree) == 0
    assert "not the bytes of the pinned commit" not in card.read_text("utf-8")
    path.write_text(path.read_text("utf-8").replace("soft", "hairy"), "utf-8")
    assert build("out", "--source", tree) == 0
    record, text = provenance(out)["configs"], card.read_text("utf-8")
    assert list(configs(out)) == list(record) == [*DIAGNOSTICS, *CHOICES]
    commit = "080de8d8b29a3d6f5fe133af73d7e9170f4d4c0c"
    assert [facts["commit"] for facts in record.values()][:3] == [commit, commit, None]
    assert record["role88"]["repository"] == "aetting/lm-diagnostics"
    assert all(digest in text for facts in record.values() for digest in facts["inputs"].values())
    assert "not the bytes of the pinned commit" in text
    licence = Path("out/licenses/lm-diagnostics.txt").read_text("utf-8")
    assert "Copyright (c) 2020 Allyson Ettinger" in licence


def test_configs_can_be_chosen_and_earlier_ones_go(demo_dir, monkeypatch):
    out, order, replace = Path(shutil.copytree(demo_dir, "out")), [], Path.replace
    (out / "notes.txt").write_text("what was not built here is left alone")
    monkeypatch.setattr(Path, "replace", lambda *paths: order.append(replace(*paths).name))
    assert build("out", "--source", "demo", "--configs", "neg136_nat_choice", "verbs") == 0
    assert order[-2:] == ["provenance.json", "README.md"]  # a killed build has not its card
    assert list(configs(out)) == ["neg136_nat_choice", "verbs"]
    tasks = yaml.safe_load((out / "eval.yaml").read_text("utf-8"))["tasks"]
    assert {task["config"] for task in tasks} == {"neg136_nat_choice"}
    assert not (out / "eval-lmdiag.yaml").exists()  # it would have no tasks
    assert not (out / "cprag102").exists()
    assert (out / "notes.txt").exists()


def test_the_card_follows_the_conventions_of_the_hub(demo_dir):
    card = DatasetCard.load(demo_dir / "README.md")
    data = card.data.to_dict()
    assert (data["license"], data["language"]) == ("mit", ["en"])
    assert data["size_categories"] == ["1K<n<10K"]
    tasks = yaml.safe_load((demo_dir / "eval-lmdiag.yaml").read_text("utf-8"))["tasks"]
    assert {(task["config"], task["split"]) for task in tasks} == {(c, "test") for c in CONFIGS[:4]}
    for row in pq.read_table(demo_dir / "neg136").to_pylist()[16:20]:  # the example
        cells = (f"`{row['id']}`", row["context"], row["target"], str(row["good"]).lower())
        assert f"| {' | '.join(cells)} | `{row['contrast']}` |" in card.text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("out --source demo --configs negg", "unknown config 'negg' (did you mean 'neg136'?): cho"),
        ("out --source nowhere", "no directory nowhere: --source is upstream, demo or a directory"),
        ("out --source .", ". has no source files such as datasets/CPRAG-102/CPRAG-102.tsv"),
        ("out --source . --configs agreement", ".: agreement needs data/ML or data/blimp/*.jsonl"),
        ("out", "use --source demo, or --source DIR"),
        ("used --source demo", "is not a data set built"),
        ("used/chapter.txt --source demo", "is a file"),
    ],
)
def test_mistakes_give_one_line_and_exit_code_2(command, arguments, message):
    Path("used").mkdir()  # a directory of something else
    Path("used/chapter.txt").write_text("It was")
    assert message in command.refused("build", *arguments.split())
    assert contents(Path()) == {"used/chapter.txt": b"It was"}


def test_a_failed_build_leaves_the_data_set_as_it_was(tree, demo_dir, command):
    out = Path(shutil.copytree(demo_dir, "out"))
    before = contents(out)
    verbs = tree / "refining-tse/data/verbs/combined_verb_list.csv"
    verbs.write_text(verbs.read_text("utf-8") + "_,goes\n", "utf-8")
    problem = f"{len(verbs.read_text('utf-8').splitlines())}: 2 fields, expected 4"
    assert f"verb_list.csv:{problem}" in command.refused("build", out, "--source", tree)
    (tree / "lm-diagnostics/datasets/CPRAG-102/CPRAG-explanations.tsv").unlink()
    missing = "CPRAG-explanations.tsv is missing: cprag102 is made"
    assert missing in command.refused("build", out, "--source", tree)
    assert contents(out) == before
    assert names(Path()) == ["out"]


LOAD = """
import json
from datasets import load_dataset
rows = load_dataset("lmdiag", "neg136", split="test")
types = [str(rows.features[name]) for name in ("expected", "natural")]
print(json.dumps([rows.num_rows, rows[0]["context"], *types]))
"""
TYPES = ["List(Value('string'))", "Value('bool')"]


@pytest.mark.slow
def test_load_dataset_next_to_the_directory_after_each_build(tree, tmp_path):
    """The cache returns neither the rows of an earlier build nor those of another directory."""
    source = tree / "lm-diagnostics/datasets/NEG-136/NEG-136-SIMP.tsv"
    text = source.read_text("utf-8")
    for folder, subject in (("one", "trout"), ("one", "perch"), ("two", "tench"), ("one", "")):
        if subject:
            source.write_text(text.replace("A trout is", f"A {subject} is"), "utf-8")
            assert build(f"{folder}/lmdiag", "--source", tree, "--configs", "neg136") == 0
        caches = str(tmp_path / "caches")
        out = finished(sys.executable, "-c", LOAD + LEAVE, cwd=Path(folder), HF_HOME=caches)
        assert json.loads(out) == [104, f"A {subject or 'perch'} is a", *TYPES]


def test_of_simultaneous_processes_one_builds_on_first_use(
    cache, scripts, demo_dir, monkeypatch, capsys
):
    """The demo diagnostics stand for the published items."""
    with ThreadPoolExecutor(3) as pool:
        (folder,) = {*pool.map(cached, ["demo"] * 3)}
    assert [name.partition("-")[0] for name in names(cache / "data")] == ["demo", "demo"]
    Path("demo").mkdir()  # `make run` leaves such a folder in a clone, which is not a data set
    monkeypatch.setitem(BUILT, "lmdiag", str(scripts / "demo/lm-diagnostics"))
    Path("lmdiag").mkdir()
    Path("lmdiag/README.md").write_text("# lmdiag\n\nA clone is not a data set.\n")
    for rows in (stimuli.load("demo", "neg136"), *[lmdiag.load_stimuli(task="neg136")] * 2):
        assert rows.fingerprint == stimuli.load(str(demo_dir), "neg136").fingerprint
    demo, published = capsys.readouterr().err.splitlines()
    assert demo == f"lmdiag: building the demo items in {folder} (only the first time)"
    assert published.startswith("lmdiag: building the published items in ")


def test_without_a_network_one_line_names_both_remedies(command):
    _, _, error = command("run", "--model", "demo:masked")
    (line,) = (line for line in error.splitlines() if "error" in line)
    for words in ("cannot be fetched", "`lmdiag build --source DIR`", "`--data demo`"):
        assert words in line


def test_a_cache_that_cannot_be_written_is_named(cache):
    cache.write_text("not a directory")
    with pytest.raises(BadInput, match=r"cannot write the data set demo to .* set LMDIAG_CACHE to"):
        cached("demo")
