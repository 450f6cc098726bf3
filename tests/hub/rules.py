"""What the Hub accepts in the files whose content it reads: cards, `eval.yaml`, `.eval_results`.

Every check returns a list of complaints, empty where there is nothing to complain of. The rules are
those of the Hub's own documentation, on the strict side: what passes here passes there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from datetime import datetime
from typing import Any

import yaml

LICENSES = {"mit", "apache-2.0", "bsd-3-clause", "cc-by-4.0", "cc-by-sa-4.0", "cc0-1.0", "other"}
TASK_CATEGORIES = {
    "fill-mask",
    "multiple-choice",
    "other",
    "question-answering",
    "text-classification",
    "text-generation",
}
SIZE_CATEGORIES = {"n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M"}
SPACE_SDKS = {"gradio", "docker", "static", "streamlit"}
COLORS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
FRAMEWORKS = {"inspect-ai", "verifiers", "hal-harness", "lmdiag"}
"""Identifiers the Hub knows. Ours stands among them as it will after its registration."""

_REPO_ID = re.compile(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
_TASK_ID = re.compile(r"[a-z0-9][a-z0-9_.-]{0,95}")
_COMMIT = re.compile(r"[0-9a-f]{40}")
_METADATA = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


def check_file(kind: str, path: str, content: bytes) -> list[str]:
    """Complaints about one pushed file; files that the Hub does not read have none."""
    if path == "README.md":
        return check_card(kind, content.decode("utf-8", "replace"))[0]
    if path == "eval.yaml" and kind == "datasets":
        return check_benchmark(content)
    if path.startswith(".eval_results/") and path.endswith((".yaml", ".yml")):
        return check_results(content)
    return []


def check_card(kind: str, text: str) -> tuple[list[str], list[str]]:
    """Errors and warnings about the YAML metadata of a card."""
    block = _METADATA.match(text)
    if block is None:
        return [], ["empty or missing yaml metadata in repo card"]
    try:
        metadata = yaml.safe_load(block[1])
    except yaml.YAMLError as error:
        return [f"YAML metadata cannot be read: {str(error).splitlines()[0]}"], []
    if not isinstance(metadata, dict):
        return ["YAML metadata must be a mapping"], []
    checks = _CARD_CHECKS + (_SPACE_CHECKS if kind == "spaces" else ())
    errors = [complaint for check in checks for complaint in check(metadata)]
    if kind == "datasets":
        errors += _check_configs(metadata.get("configs", []))
    return errors, []


def _one_of(key: str, allowed: set[str], *, required: bool = False) -> Callable[..., Iterator[str]]:
    def check(metadata: dict[str, Any]) -> Iterator[str]:
        values = metadata.get(key)
        if values is None:
            if required:
                yield f'"{key}" is required'
            return
        for value in values if isinstance(values, list) else [values]:
            if value not in allowed:
                yield f'"{key}" must be one of {sorted(allowed)}, not {value!r}'

    return check


def _check_language(metadata: dict[str, Any]) -> Iterator[str]:
    languages = metadata.get("language", [])
    for code in languages if isinstance(languages, list) else [languages]:
        if not (isinstance(code, str) and re.fullmatch(r"[a-z]{2,3}|multilingual|code", code)):
            yield f'"language" must be an ISO 639 code, not {code!r}'


def _check_tags(metadata: dict[str, Any]) -> Iterator[str]:
    tags = metadata.get("tags", [])
    if not (isinstance(tags, list) and all(isinstance(tag, str) for tag in tags)):
        yield '"tags" must be a list of strings'


def _check_title(metadata: dict[str, Any]) -> Iterator[str]:
    if not isinstance(metadata.get("title"), str):
        yield '"title" is required'
    emoji = metadata.get("emoji", "")
    if any(ord(character) < 0x2000 for character in str(emoji)):
        yield f'"emoji" must be an emoji, not {emoji!r}'
    if len(str(metadata.get("short_description", ""))) > 60:
        yield '"short_description" must be at most 60 characters long'


_CARD_CHECKS = (
    _one_of("license", LICENSES),
    _one_of("task_categories", TASK_CATEGORIES),
    _one_of("size_categories", SIZE_CATEGORIES),
    _check_language,
    _check_tags,
)
_SPACE_CHECKS = (
    _one_of("sdk", SPACE_SDKS, required=True),
    _one_of("colorFrom", COLORS),
    _one_of("colorTo", COLORS),
    _check_title,
)


def _check_configs(configs: Any) -> Iterator[str]:
    if not isinstance(configs, list):
        yield '"configs" must be a list'
        return
    names = [entry.get("config_name") if isinstance(entry, dict) else None for entry in configs]
    if len(set(names)) != len(names):
        yield f'"configs" names a config twice: {names}'
    for name, entry in zip(names, configs, strict=True):
        if not isinstance(name, str) or not name:
            yield f'"configs" has an entry without "config_name": {entry!r}'
        elif "data_files" not in entry and "data_dir" not in entry:
            yield f'config "{name}" names no data files'
    if sum(bool(isinstance(entry, dict) and entry.get("default")) for entry in configs) > 1:
        yield '"configs" has more than one default'


def check_benchmark(content: bytes) -> list[str]:
    """Complaints about an `eval.yaml`, the file that makes a data set a benchmark."""
    try:
        benchmark = yaml.safe_load(content)
    except yaml.YAMLError:
        return ["eval.yaml cannot be read as YAML"]
    if not isinstance(benchmark, dict):
        return ["eval.yaml must be a mapping"]
    errors = [
        f'eval.yaml: "{key}" must be a text'
        for key in ("name", "description")
        if not isinstance(benchmark.get(key), str)
    ]
    if benchmark.get("evaluation_framework") not in FRAMEWORKS:
        errors.append(f'eval.yaml: "evaluation_framework" must be one of {sorted(FRAMEWORKS)}')
    tasks = benchmark.get("tasks")
    if not isinstance(tasks, list) or not tasks:
        return [*errors, 'eval.yaml: "tasks" must be a list with at least one task']
    ids = [task.get("id") if isinstance(task, dict) else None for task in tasks]
    errors += [
        f"eval.yaml: task {index} has no well-formed id: {name!r}"
        for index, name in enumerate(ids)
        if not (isinstance(name, str) and _TASK_ID.fullmatch(name))
    ]
    if len(set(ids)) != len(ids):
        errors.append("eval.yaml: a task id stands twice")
    return errors


def check_results(content: bytes) -> list[str]:
    """Complaints about a `.eval_results/*.yaml` file of a model's repository."""
    try:
        entries = yaml.safe_load(content)
    except yaml.YAMLError:
        return ["evaluation results cannot be read as YAML"]
    if not isinstance(entries, list) or not entries:
        return ["evaluation results must be a list with at least one entry"]
    return [
        f"evaluation result {index}: {complaint}"
        for index, entry in enumerate(entries)
        for complaint in _check_result(entry)
    ]


def _check_result(entry: Any) -> Iterator[str]:
    if not isinstance(entry, dict) or not isinstance(entry.get("dataset"), dict):
        yield "must have a data set"
        return
    data = entry["dataset"]
    if not _REPO_ID.fullmatch(str(data.get("id", ""))):
        yield f"{data.get('id')!r} is not the id of a data set"
    if not _TASK_ID.fullmatch(str(data.get("task_id", ""))):
        yield f"{data.get('task_id')!r} is not the id of a task"
    if "revision" in data and not _COMMIT.fullmatch(str(data["revision"])):
        yield f"{data['revision']!r} is not a commit"
    value = entry.get("value")
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        yield f"{value!r} is not a finite number"
    if "date" in entry and not _is_date(entry["date"]):
        yield f"{entry['date']!r} is not an ISO 8601 date"
    source = entry.get("source")
    if source is not None and not str(source.get("url", "")).startswith(("http://", "https://")):
        yield "its source has no web address"


def _is_date(value: Any) -> bool:
    try:
        datetime.fromisoformat(str(value))
    except ValueError:
        return False
    return True
