"""`lmdiag run` as a person types it: results, sweeps, and what is refused."""

from __future__ import annotations

import gc
import json
import shutil
import subprocess
import sys
import weakref
from pathlib import Path
from typing import Any

import pytest
from families import FAMILIES

from lmdiag import cli


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("models")
    return {name: FAMILIES[name].make(folder / name) for name in ("bert", "gpt2")}


class Typed:
    """Runs the command in this process and reads what it printed."""

    def __init__(self, capsys: pytest.CaptureFixture[str], data: Path, output: Path) -> None:
        self._capsys, self._data, self.output = capsys, data, output

    def __call__(self, *arguments: object) -> tuple[int, str, str]:
        words = ["run", "--data", str(self._data), "--output", str(self.output), "--quiet"]
        try:
            code = cli.main([*words, *map(str, arguments)])
        except SystemExit as stop:
            code = int(stop.code or 0)
        printed = self._capsys.readouterr()
        return code, printed.out, printed.err


@pytest.fixture
def typed(capsys: pytest.CaptureFixture[str], demo_dir: Path, tmp_path: Path) -> Typed:
    return Typed(capsys, demo_dir, tmp_path / "results")


def results(folder: Path) -> Any:
    (path,) = folder.rglob("results.json")
    return json.loads(path.read_text(encoding="utf-8"))


def test_a_run_leaves_the_files_of_the_specification(typed: Typed, models: dict[str, Path]) -> None:
    code, out, err = typed("--model", models["bert"])
    assert code == 0
    assert err == ""
    assert "table 4" in out
    assert "lmdiag:0.1|data:" in out
    folder = typed.output / "bert" / "diagnostics-token"
    names = {path.name for path in folder.iterdir()} - {".lock"}
    assert names == {"results.json", "predictions.parquet", "report.html"}
    found = results(folder)
    assert found["model"]["kind"] == "masked"
    assert found["protocol"]["match"] == "case-blind"
    assert found["tasks"]["neg136"]["none"]["measures"]["accuracy@1"]["n"] > 0


def test_json_is_the_only_thing_on_standard_output(typed: Typed, models: dict[str, Path]) -> None:
    code, out, _ = typed("--model", models["gpt2"], "--tasks", "neg136", "--json")
    assert code == 0
    assert json.loads(out) == results(typed.output)


def test_a_finished_run_is_not_asked_again(typed: Typed, models: dict[str, Path]) -> None:
    typed("--model", models["bert"], "--tasks", "neg136")
    (path,) = typed.output.rglob("results.json")
    before = path.read_bytes()
    code, out, _ = typed("--model", models["bert"], "--tasks", "neg136")
    assert code == 0
    assert path.read_bytes() == before
    assert "Affirmative" in out
    typed("--model", models["bert"], "--tasks", "neg136", "--overwrite")
    assert path.read_bytes() != before  # another time, other seconds


def test_a_sweep_goes_on_after_a_failure_and_lists_it(
    typed: Typed, models: dict[str, Path], tmp_path: Path
) -> None:
    code, out, err = typed("--model", tmp_path / "absent", *models.values(), "--tasks", "neg136")
    assert code == 1
    assert "1 of 3 runs failed" in err
    assert "absent" in err
    assert {path.parts[-3] for path in typed.output.rglob("results.json")} == {"bert", "gpt2"}
    code, again, _ = typed("--model", *models.values(), "--tasks", "neg136")
    assert code == 0
    assert again in out


def test_the_memory_of_a_model_is_free_before_the_next_is_loaded(
    typed: Typed, models: dict[str, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The loader is watched, not replaced: every model that it returned must be gone."""
    from lmdiag import models as loading

    load, seen, alive = loading.load, [], []

    def watched(*arguments: Any, **options: Any) -> Any:
        gc.collect()
        alive.append(sum(reference() is not None for reference in seen))
        model = load(*arguments, **options)
        seen.append(weakref.ref(model.reader.model))
        return model

    monkeypatch.setattr(loading, "load", watched)
    assert typed("--model", *models.values(), models["bert"], "--tasks", "neg136")[0] == 0
    assert alive == [0, 0, 0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "neg137"], "no task 'neg137'"),
        (["--tasks", "role88", "--perturb", "shuf"], "--perturb shuf is made for cprag102"),
        (["--perturb", "none", "shuf"], "--perturb none goes with no other"),
        (["--perturb", "shuffle"], "invalid choice: 'shuffle'"),
        (["--k", "0"], "must be a whole number of at least 1, not '0'"),
        (["--threshold", "1.5"], "must be a number from 0 to below 1, not '1.5'"),
        (["--batch-size", "many"], "must be a whole number of at least 1, not 'many'"),
        (["--data", "no/such/data"], "no/such/data"),
        (["--verbs", "no/such/verbs.csv", "--tasks", "agreement"], "verbs.csv"),
        (["--kind", "masked"], "mask token"),
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(
    typed: Typed, models: dict[str, Path], arguments: list[str], message: str
) -> None:
    code, out, err = typed("--model", models["gpt2"], *arguments)
    assert code == 2
    assert message in err
    assert out == ""
    assert "Traceback" not in err
    assert err.rstrip().splitlines()[-1].startswith(("lmdiag: error: ", "lmdiag run: error: "))
    assert not [*typed.output.rglob("results.json")]


def test_the_directory_of_another_model_is_refused_and_left_alone(
    typed: Typed, models: dict[str, Path], tmp_path: Path
) -> None:
    typed("--model", models["bert"], "--tasks", "neg136")
    (path,) = typed.output.rglob("results.json")
    before = path.read_bytes()
    namesake = tmp_path / "elsewhere" / "bert"
    shutil.copytree(models["gpt2"], namesake)
    code, _, err = typed("--model", namesake, "--tasks", "neg136")
    assert code == 2
    assert "holds a run of another" in err
    assert path.read_bytes() == before


@pytest.fixture
def namesakes(models: dict[str, Path], tmp_path: Path) -> list[Path]:
    """Two models in folders of the same last name."""
    return [
        Path(shutil.copytree(models[name], tmp_path / name / "final")) for name in ("bert", "gpt2")
    ]


def test_models_of_the_same_name_are_refused_before_any_is_run(
    typed: Typed, namesakes: list[Path]
) -> None:
    code, out, err = typed("--model", *namesakes, "--tasks", "neg136")
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert f"{namesakes[0]} and {namesakes[1]} would share the folder" in err
    assert "--name" in err
    assert not typed.output.exists()


def test_names_are_those_of_folders_and_tables(typed: Typed, namesakes: list[Path]) -> None:
    names = ("masked one", "causal")
    code, out, _ = typed("--model", *namesakes, "--name", *names, "--tasks", "neg136")
    assert code == 0
    assert all(name in out for name in names)
    assert not any(str(folder) in out for folder in namesakes)
    for folder, name, model in zip(("masked--one", "causal"), names, namesakes, strict=True):
        found = results(typed.output / folder)["model"]
        assert (found["name"], found["id"]) == (name, str(model))


@pytest.mark.parametrize(
    ("names", "message"),
    [
        (["a"], "one name per model, got 1 for 2 models"),
        (["a", "a"], "would share the folder"),
        (["a", ""], "must not be empty"),
    ],
)
def test_names_that_do_not_fit_the_models_are_refused(
    typed: Typed, namesakes: list[Path], names: list[str], message: str
) -> None:
    code, _, err = typed("--model", *namesakes, "--name", *names)
    assert code == 2
    assert message in err


def test_bad_data_end_the_run_before_torch_is_needed(tmp_path: Path) -> None:
    program = (
        "import sys; from lmdiag.cli import main\n"
        "code = main(['run', '--model', 'demo:masked', '--data', 'no/such/data'])\n"
        "print(code, 'lmdiag.models.local' in sys.modules)"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert done.stdout.split() == ["2", "False"]
    assert done.stderr.count("\n") == 1
