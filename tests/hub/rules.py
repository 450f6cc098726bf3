"""What the Hub accepts in the files that it reads: cards, `eval.yaml`, `.eval_results`.

The rules are those of the Hub's documentation, on the strict side: what passes here passes there.
"""

from __future__ import annotations

import json
import re
from typing import Any

import yaml
from jsonschema import Draft202012Validator

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
COLOR: Schema = {"enum": ["red", "yellow", "green", "blue", "indigo", "purple", "pink", "gray"]}
SPACE_SDKS = ("gradio", "docker", "static", "streamlit")
FRAMEWORKS = ("inspect-ai", "verifiers", "hal-harness", "lmdiag")
"""Identifiers that the Hub knows, and ours as it will be after its registration."""


def matching(pattern: str) -> Schema:
    return {"type": "string", "pattern": rf"\A(?:{pattern})\Z"}


def record(required: str, **properties: Schema) -> Schema:
    """A mapping with these keys, and possibly others."""
    return {"type": "object", "required": required.split(), "properties": properties}


def some(items: Schema) -> Schema:
    return {"type": "array", "items": items, "minItems": 1}


def one_or_more(item: Schema) -> Schema:
    return {"anyOf": [item, some(item)]}


REPO_ID = matching(r"[A-Za-z0-9][\w.-]{0,95}/[A-Za-z0-9][\w.-]{0,95}")
TASK_ID = matching(r"[a-z0-9][a-z0-9_.-]{0,95}")
CONFIG = record("config_name", config_name=TEXT, default={"type": "boolean"})
CONFIG["anyOf"] = [{"required": ["data_files"]}, {"required": ["data_dir"]}]
CARD = record(
    "",
    license=one_or_more(matching(r"mit|apache-2\.0|bsd-3-clause|cc-by(-sa)?-4\.0|cc0-1\.0|other")),
    task_categories=one_or_more(
        matching("fill-mask|multiple-choice|other|question-answering|text-(generation|classif.+)")
    ),
    size_categories=one_or_more(matching("n<1K|1K<n<10K|10K<n<100K|100K<n<1M|1M<n<10M")),
    language=one_or_more(matching("[a-z]{2,3}|multilingual|code")),
    tags=some(TEXT),
    configs=some(CONFIG),
)
SPACE_CARD = record(
    "sdk title", **CARD["properties"],
    sdk={"enum": SPACE_SDKS}, title=TEXT, colorFrom=COLOR, colorTo=COLOR,
    emoji=matching("[\u2000-\U0010ffff]+"), short_description={"type": "string", "maxLength": 60},
)  # fmt: skip
BENCHMARK = record(
    "name description evaluation_framework tasks",
    name=TEXT,
    description=TEXT,
    evaluation_framework={"enum": FRAMEWORKS},
    tasks=some(record("id", id=TASK_ID)),
)
RESULTS = some(
    record(
        "dataset value",
        dataset=record(
            "id task_id", id=REPO_ID, task_id=TASK_ID, revision=matching("[0-9a-f]{40}")
        ),
        value={"type": "number"},
        date=matching(r"\d{4}-\d\d-\d\d(T.+)?"),
        source=record("url", url=matching("https?:.+")),
    )
)


def check_file(kind: str, path: str, content: bytes) -> list[str]:
    """Complaints about one pushed file; files that the Hub does not read have none."""
    if path == "README.md":
        return check_card(kind, content.decode("utf-8", "replace"))
    if path == "eval.yaml" and kind == "datasets":
        return complaints(content, BENCHMARK, ("tasks", "id"))
    if path.startswith(".eval_results/") and path.endswith((".yaml", ".yml")):
        return complaints(content, RESULTS)
    return []


def check_card(kind: str, text: str) -> list[str]:
    """Complaints about the YAML metadata of a card; a card without metadata has none."""
    block = re.match(r"---[ \t]*\r?\n(.*?)\r?\n---[ \t]*(?:\r?\n|\Z)", text, re.DOTALL)
    schema = SPACE_CARD if kind == "spaces" else CARD
    return complaints(block[1], schema, ("configs", "config_name")) if block else []


def complaints(
    text: str | bytes, schema: Schema, distinct: tuple[str, str] = ("", "")
) -> list[str]:
    """What is wrong with a YAML text; `distinct` names a list, and a key that must differ in it."""
    try:
        value = json.loads(json.dumps(yaml.safe_load(text), default=str, allow_nan=False))
    except (yaml.YAMLError, ValueError) as error:
        return [f"not YAML with finite numbers: {error}"]
    errors = Draft202012Validator(schema).iter_errors(value)
    if said := [f"{error.json_path}: {error.message}" for error in errors]:
        return said
    names = [each[distinct[1]] for each in value.get(distinct[0], [])] if distinct[0] else []
    return [] if len(set(names)) == len(names) else [f"{distinct[0]} have equal names: {names}"]
