"""What the Hub accepts in the files that it reads: cards, `eval.yaml`, `.eval_results`.

Every check returns a list of complaints. The rules are those of the Hub's documentation, on the
strict side: what passes here passes there.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from datetime import datetime
from typing import Any

import yaml

LICENSES = {"mit", "apache-2.0", "bsd-3-clause", "cc-by-4.0", "cc-by-sa-4.0", "cc0-1.0", "other"}
TASK_CATEGORIES = {
    "fill-mask", "multiple-choice", "other", "question-answering", "text-classification",
    "text-generation",
}  # fmt: skip
SIZE_CATEGORIES = {"n<1K", "1K<n<10K", "10K<n<100K", "100K<n<1M", "1M<n<10M"}
SPACE_SDKS = {"gradio", "docker", "static", "streamlit"}
COLORS = {"red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"}
FRAMEWORKS = {"inspect-ai", "verifiers", "hal-harness", "lmdiag"}
"""Identifiers that the Hub knows, and ours as it will be after its registration."""

_METADATA = re.compile(r"\A---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", re.DOTALL)


def matches(pattern: str) -> Callable[[Any], bool]:
    return lambda value: isinstance(value, str) and re.fullmatch(pattern, value) is not None


REPO_ID = matches(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
TASK_ID = matches(r"[a-z0-9][a-z0-9_.-]{0,95}")

CARD: Mapping[str, Callable[[Any], bool]] = {
    "license": LICENSES.__contains__,
    "task_categories": TASK_CATEGORIES.__contains__,
    "size_categories": SIZE_CATEGORIES.__contains__,
    "language": matches(r"[a-z]{2,3}|multilingual|code"),
    "tags": lambda tag: isinstance(tag, str),
}
"""Key of a card's metadata -> what its value, or every entry of its list, must be."""

SPACE_CARD = CARD | {
    "sdk": SPACE_SDKS.__contains__,
    "title": lambda title: isinstance(title, str),
    "colorFrom": COLORS.__contains__,
    "colorTo": COLORS.__contains__,
    "emoji": lambda emoji: all(ord(character) >= 0x2000 for character in str(emoji)),
    "short_description": lambda text: len(str(text)) <= 60,
}


def check_file(kind: str, path: str, content: bytes) -> list[str]:
    """Complaints about one pushed file; files that the Hub does not read have none."""
    if path == "README.md":
        return check_card(kind, content.decode("utf-8", "replace"))
    if path == "eval.yaml" and kind == "datasets":
        return list(_check_benchmark(_load(content)))
    if path.startswith(".eval_results/") and path.endswith((".yaml", ".yml")):
        return check_results(content)
    return []


def _load(content: bytes | str) -> Any:
    try:
        return yaml.safe_load(content)
    except yaml.YAMLError:
        return None


def check_card(kind: str, text: str) -> list[str]:
    """Complaints about the YAML metadata of a card; a card without metadata has none."""
    block = _METADATA.match(text)
    if block is None:
        return []
    metadata = _load(block[1])
    if not isinstance(metadata, dict):
        return ["YAML metadata must be a mapping"]
    rules = SPACE_CARD if kind == "spaces" else CARD
    required = ("sdk", "title") if kind == "spaces" else ()
    listed = {k: v if isinstance(v, list) else [v] for k, v in metadata.items()}
    return [
        *(f'"{key}" is required' for key in required if key not in metadata),
        *(
            f'"{key}" cannot be {value!r}'
            for key, values in listed.items()
            for value in values
            if key in rules and not rules[key](value)
        ),
        *_check_configs(metadata.get("configs", [])),
    ]


def _check_configs(configs: list[dict[str, Any]]) -> Iterator[str]:
    names = [entry.get("config_name") for entry in configs]
    if len(set(names)) != len(names) or not all(isinstance(name, str) for name in names):
        yield f'"configs" must have one name each, not {names}'
    for name, entry in zip(names, configs, strict=True):
        if "data_files" not in entry and "data_dir" not in entry:
            yield f'config "{name}" names no data files'
    if sum(bool(entry.get("default")) for entry in configs) > 1:
        yield '"configs" has more than one default'


def _check_benchmark(benchmark: Any) -> Iterator[str]:
    """Yields complaints about an `eval.yaml`, the file that makes a data set a benchmark."""
    if not isinstance(benchmark, dict):
        yield "eval.yaml must be a mapping"
        return
    for key in ("name", "description"):
        if not isinstance(benchmark.get(key), str):
            yield f'eval.yaml: "{key}" must be a text'
    if benchmark.get("evaluation_framework") not in FRAMEWORKS:
        yield f'eval.yaml: "evaluation_framework" must be one of {sorted(FRAMEWORKS)}'
    ids = [task.get("id") for task in benchmark.get("tasks") or []]
    if not ids or not all(map(TASK_ID, ids)) or len(set(ids)) != len(ids):
        yield f'eval.yaml: "tasks" must have well-formed ids that differ, not {ids}'


def check_results(content: bytes) -> list[str]:
    """Complaints about a `.eval_results/*.yaml` file of a model's repository."""
    entries = _load(content)
    if not isinstance(entries, list) or not entries:
        return ["evaluation results must be a list with at least one entry"]
    return [
        f"evaluation result {index}: {complaint}"
        for index, entry in enumerate(entries)
        for complaint in _check_result(entry)
    ]


def _check_result(entry: dict[str, Any]) -> Iterator[str]:
    data, value = entry.get("dataset") or {}, entry.get("value")
    if not REPO_ID(data.get("id")):
        yield f"{data.get('id')!r} is not the id of a data set"
    if not TASK_ID(data.get("task_id")):
        yield f"{data.get('task_id')!r} is not the id of a task"
    if not matches(r"[0-9a-f]{40}")(data.get("revision", "0" * 40)):
        yield f"{data['revision']!r} is not a commit"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        yield f"{value!r} is not a finite number"
    try:
        datetime.fromisoformat(str(entry.get("date", "2024-01-01")))
    except ValueError:
        yield f"{entry['date']!r} is not an ISO 8601 date"
    if not str((entry.get("source") or {}).get("url", "http://")).startswith(("http:", "https:")):
        yield "its source has no web address"
