"""Validates what `lmdiag export --format every-eval-ever` wrote with that project's own code.

    python tests/peers/validate_every_eval_ever.py DIRECTORY

Run by hand, with a Python that has every_eval_ever (it pins other versions than lmdiag); DIRECTORY
is the one that holds `data/`. Two checks, since each finds what the other does not: the validator
of the project (types, paths, bounds, and whether record and items belong together), and its JSON
schemas. Prints a line for each file; the exit code is 1 if there is any complaint.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from importlib import metadata, resources
from pathlib import Path
from typing import Any


def schema(name: str) -> Any:
    """Returns a checker of one of the two JSON schemas."""
    from jsonschema import Draft7Validator

    file = resources.files("every_eval_ever") / f"schemas/{name}.schema.json"
    return Draft7Validator(json.loads(file.read_text("utf-8")))


def complaints(root: Path, file: Path) -> Iterator[str]:
    """Yields what is wrong with a file."""
    from every_eval_ever.validator.validate import _LocalRepositoryFiles
    from every_eval_ever.validator.validation_core import validate_file

    files = _LocalRepositoryFiles(root)
    report = validate_file(
        file,
        repo_path=file.relative_to(root).as_posix(),
        available_files=files,
        read_repo_file=files.read_text,
        run_semantic_checks=True,
    )
    yield from (f"{each['loc']}: {each['msg']}" for each in (*report.errors, *report.warnings))
    is_record = file.suffix == ".json"
    checker = schema("eval" if is_record else "instance_level_eval")
    texts = [file.read_text("utf-8")] if is_record else file.read_text("utf-8").splitlines()
    for number, text in enumerate(texts, start=1):
        for error in checker.iter_errors(json.loads(text)):
            yield f"line {number}, {error.json_path}: {error.message[:200]}"


def main(root: Path) -> int:
    """Validates every file below `root/data`."""
    files = sorted((root / "data").rglob("*.json*"))
    n_wrong = 0
    for file in files:
        found = list(complaints(root, file))
        n_wrong += len(found)
        print(f"{file.relative_to(root)}: {len(found)} complaints", *found[:20], sep="\n    ")
    version = metadata.version("every_eval_ever")
    print(f"every_eval_ever {version}: {len(files)} files, {n_wrong} complaints")
    return int(n_wrong > 0 or not files)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]).resolve()))
