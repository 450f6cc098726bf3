"""`lmdiag score` as typed: what it prints, what it says it cannot do, what it refuses."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from runs import make_run
from scored import perfect

from lmdiag import predictions, results, stimuli, summary
from lmdiag.cli import main
from lmdiag.schema import Protocol


@pytest.fixture(scope="module")
def run(demo_dir: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A finished run of a made-up model."""
    return make_run(tmp_path_factory.mktemp("run") / "run", demo_dir, id="org/a")


@pytest.fixture
def lines(demo_dir: Path, tmp_path: Path) -> Path:
    """Perfect predictions for neg136 as JSON lines."""
    best = perfect(stimuli.load(str(demo_dir), "neg136").columns())
    path = tmp_path / "p.jsonl"
    records = zip(best.id, best.top_words, best.log_prob, strict=True)
    path.write_text(
        "\n".join(json.dumps({"id": i, "top_words": w, "log_prob": p}) for i, w, p in records)
    )
    return path


def score(capsys: Any, *arguments: object) -> tuple[int, str, str]:
    """Exit code, standard output and standard error."""
    code = main(["score", *map(str, arguments)])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_json_is_one_document_in_the_form_of_the_specification(
    capsys: Any, demo_dir: Path, lines: Path
) -> None:
    asked = ("--task", "neg136", "--predictions", lines, "--data", demo_dir, "--json")
    code, out, err = score(capsys, *asked)
    document = json.loads(out)
    rows = stimuli.load(str(demo_dir), "neg136")
    assert code == 0
    assert list(document) == ["task", "signature", "measures", "unscorable"]
    assert document["task"] == "neg136"
    assert document["signature"] == results.signature(Protocol(), rows.fingerprint)
    best = perfect(rows.columns())
    assert document["measures"] == summary.evaluate(rows, [best], Protocol(), True)["measures"]
    assert document["unscorable"] == []
    assert err == ""


def test_accuracy_beyond_the_lists_is_left_out_in_one_line(
    capsys: Any, demo_dir: Path, lines: Path
) -> None:
    asked = ("--task", "neg136", "--predictions", lines, "--data", demo_dir, "--k", 1, 20)
    _, out, err = score(capsys, *asked, "--json")
    names = list(json.loads(out)["measures"])
    assert "accuracy@1" in names
    assert "accuracy@20" not in names
    assert err.startswith("lmdiag: not computed: accuracy@20: neg136-")
    assert err.endswith(" has 10 top words only; give 20 for each row\n")
    _, out, _ = score(capsys, *asked)
    assert "accuracy@1 " in out
    assert "accuracy@20" not in out


def test_knobs_name_the_measures_and_the_signature(
    capsys: Any, demo_dir: Path, lines: Path
) -> None:
    asked = ("--task", "neg136", "--predictions", lines, "--data", demo_dir, "--json")
    _, out, _ = score(capsys, *asked, "--k", 3, 1, "--threshold", 0.2)
    document = json.loads(out)
    names = ["accuracy@1", "accuracy@3", "sensitivity", "sensitivity@0.2"]
    assert list(document["measures"])[:4] == names
    assert "|k:1,3|t:0.2|" in document["signature"]


def test_tables_are_for_people(capsys: Any, demo_dir: Path, lines: Path) -> None:
    code, out, _ = score(capsys, "--task", "neg136", "--predictions", lines, "--data", demo_dir)
    assert code == 0
    assert "sensitivity" in out
    assert "100.0" in out
    assert "lmdiag:0.1|data:" in out


def test_case_is_exact_unless_said_otherwise(capsys: Any, demo_dir: Path, lines: Path) -> None:
    lines.write_text(
        "\n".join(
            json.dumps(record | {"top_words": [word.upper() for word in record["top_words"]]})
            for record in map(json.loads, lines.read_text().splitlines())
        )
    )
    asked = ("--task", "neg136", "--predictions", lines, "--data", demo_dir, "--json")
    values = []
    for case in ((), ("--cased",), ("--uncased",)):
        _, out, _ = score(capsys, *asked, *case)
        values.append(json.loads(out)["measures"]["accuracy@1"]["value"])
    assert values == [0.0, 0.0, 1.0]


def test_what_cannot_be_computed_is_said_on_standard_error(
    capsys: Any, demo_dir: Path, lines: Path
) -> None:
    records = map(json.loads, lines.read_text().splitlines())
    lines.write_text(
        "\n".join(json.dumps({"id": r["id"], "top_words": r["top_words"]}) for r in records)
    )
    asked = ("--task", "neg136", "--predictions", lines, "--data", demo_dir, "--json", "--k", 1)
    code, out, err = score(capsys, *asked)
    assert code == 0
    assert list(json.loads(out)["measures"]) == ["accuracy@1", "determiner_match@1"]
    assert err.startswith("lmdiag: not computed: all that compares probabilities:")


@pytest.mark.parametrize("task", ["cprag102", "role88", "neg136"])
def test_a_run_is_recomputed_bit_for_bit(capsys: Any, run: Path, demo_dir: Path, task: str) -> None:
    """From its directory, and from its predictions.parquet and the data set alone."""
    told = json.loads((run / "results.json").read_text())["tasks"][task]["none"]
    for source in (
        ("--predictions", run),
        ("--predictions", run / "predictions.parquet", "--data", demo_dir, "--uncased"),
    ):
        code, out, err = score(capsys, "--task", task, *source, "--json")
        assert (code, err) == (0, "")
        assert json.loads(out) == {"task": task, **told}


def test_a_run_can_be_scored_by_other_knobs(capsys: Any, run: Path) -> None:
    asked = ("--task", "role88", "--predictions", run, "--json")
    _, out, _ = score(capsys, *asked, "--threshold", 0.3, "--k", 2)
    document = json.loads(out)
    assert list(document["measures"])[:3] == ["accuracy@2", "sensitivity", "sensitivity@0.3"]
    assert "|k:2|t:0.3|" in document["signature"]


def test_shuffled_runs_of_a_run(capsys: Any, demo_dir: Path, tmp_path: Path) -> None:
    folder = make_run(tmp_path / "run", demo_dir, protocol=Protocol(tasks=("cprag102",)))
    plain = predictions.read(folder / "predictions.parquet")["none", 0]
    runs = [plain, *(shuffled(plain, i) for i in range(3))]
    predictions.write(folder / "predictions.parquet", runs)
    told = json.loads((folder / "results.json").read_text())
    told["tasks"]["cprag102"]["shuf"] = told["tasks"]["cprag102"]["none"]
    (folder / "results.json").write_text(json.dumps(told))
    asked = ("--task", "cprag102", "--predictions", folder, "--json")
    _, out, _ = score(capsys, *asked, "--setting", "shuf")
    _, tables, _ = score(capsys, *asked[:-1], "--setting", "shuf")
    assert "Shuf" in tables
    assert "Orig" not in tables
    measure = json.loads(out)["measures"]["sensitivity"]
    assert (measure["runs"], measure["sd"]) == (3, 0.0)
    assert measure["value"] == told["tasks"]["cprag102"]["none"]["measures"]["sensitivity"]["value"]


def shuffled(plain: Any, number: int) -> Any:
    from dataclasses import replace

    return replace(plain, perturbation="shuf", run=number)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--task", "role88", "--setting", "obj"), "has no role88 in setting obj: choose from"),
        (("--task", "agreement"), "has no agreement in setting none: choose from cprag102 (none)"),
        (("--task", "role88", "--k", "7"), "keeps the first 5 words only"),
    ],
)
def test_what_a_run_does_not_have(
    capsys: Any, run: Path, arguments: tuple[str, ...], message: str
) -> None:
    code, out, err = score(capsys, *arguments, "--predictions", run)
    assert (code, out) == (2, "")
    assert message in err
    assert err.count("\n") == 1


def test_bad_input_is_one_line_and_exit_code_2(
    capsys: Any, demo_dir: Path, lines: Path, tmp_path: Path
) -> None:
    first, second, *_ = lines.read_text().splitlines()
    broken = tmp_path / "broken.jsonl"
    broken.write_text(f"{first}\n{second[:-5]}\n")
    asked: list[tuple[tuple[object, ...], str]] = [
        (("--predictions", broken, "--data", demo_dir), "broken.jsonl, line 2: not valid JSON"),
        (("--predictions", tmp_path / "none", "--data", demo_dir), "does not exist"),
        (("--predictions", tmp_path, "--data", demo_dir), "not a finished run"),
        (("--predictions", lines, "--data", tmp_path / "nowhere"), "nowhere"),
    ]
    for arguments, message in asked:
        code, out, err = score(capsys, "--task", "neg136", *arguments)
        assert (code, out) == (2, "")
        assert message in err
        assert err.count("\n") == 1
    broken.write_text(first)
    code, _, err = score(capsys, "--task", "neg136", "--predictions", broken, "--data", demo_dir)
    assert code == 2
    n = len(stimuli.load(str(demo_dir), "neg136")) - 1
    assert f"{n} ids (neg136-" in err
    assert "…) missing" in err


def test_neither_torch_nor_transformers_is_imported(demo_dir: Path, lines: Path, run: Path) -> None:
    code = (
        "import sys; from lmdiag.cli import main; *asked, lines, run = sys.argv[1:];"
        "codes = [main([*asked, '--predictions', source]) for source in (lines, run)];"
        "heavy = {'torch', 'transformers', 'tokenizers', 'evaluate', 'datasets', 'accelerate'};"
        "print(codes, heavy & set(sys.modules), file=sys.stderr)"
    )
    asked = ["score", "--task", "neg136", "--data", str(demo_dir), "--json", "--k", "1"]
    done = subprocess.run(
        [sys.executable, "-c", code, *asked, str(lines), str(run)],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert [json.loads(line)["task"] for line in done.stdout.splitlines()] == ["neg136"] * 2
    assert done.stderr == "[0, 0] set()\n"


def test_a_run_finds_its_data_from_any_folder(
    capsys: Any, demo_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "work").mkdir()
    (tmp_path / "work/org").symlink_to(demo_dir.parent)
    monkeypatch.chdir(tmp_path / "work")
    source = Path("org") / demo_dir.name  # the name that a data set of the Hub could have
    make_run(Path("results/run"), source, id="org/a")
    monkeypatch.chdir(tmp_path)
    asked = ("--task", "role88", "--predictions", "work/results/run", "--json")
    assert score(capsys, *asked)[0] == 0
