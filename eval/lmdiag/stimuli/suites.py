"""Test suites in SyntaxGym's JSON: their sentences as rows, with regions and formulas.

Source: the format of SyntaxGym (Gauthier et al. 2020) and of the suites of Hu et al. (2020).
"""

from __future__ import annotations

import unicodedata
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeGuard

from lmdiag.files import read_json
from lmdiag.formulas import Formula, FormulaError, parse_formula
from lmdiag.stimuli.checks import sentence_problem
from lmdiag.stimuli.table import RawTable, region_names
from lmdiag.types import BadInput

SUITE_SUFFIX = ".json"

_OPENING = ("Ps", "Pi")
"""Unicode categories of opening brackets and quotation marks, which have a blank before them."""


def is_suite(value: Any) -> bool:
    """Returns whether an object is meant to be a suite."""
    return isinstance(value, Mapping) and "items" in value and "predictions" in value


def read_suite(path: Path) -> RawTable:
    """Returns the rows of a suite in a JSON file; see `suite_rows`."""
    return suite_rows(read_json(path), str(path), path.stem)


def suite_rows(suite: Any, name: str, stem: str) -> RawTable:
    """Returns a row for each item and condition of a suite.

    Args:
        suite: JSON object with `meta`, `region_meta`, `items` and `predictions`.
        name: of its file, for messages.
        stem: name of the suite where `meta` has none.

    Raises:
        BadInput: it breaks a rule; the message names file, item, condition and field.
    """
    if not isinstance(suite, Mapping) or "items" not in suite:
        raise BadInput(
            f"{name} is not a test suite: one has `items` and `predictions` as SyntaxGym's have; "
            "save rows of other forms as JSON lines (.jsonl)"
        )
    title = _title(suite, name, stem)
    region_names = _region_names(suite, name)
    formulas = _formulas(suite, name)
    items = _items(suite, name)
    rows, places = [], []
    for number, conditions in items.items():
        for condition, regions in conditions.items():
            place = f"{name}, item {number}, condition {condition}"
            sentence, spans = _sentence(regions, region_names, place)
            rows.append(
                {
                    "id": f"{title}/{number}/{condition}",
                    "item": f"{title}/{number}",
                    "condition": condition,
                    "sentence": sentence,
                    "suite": title,
                    "regions": spans,
                    "formulas": [formula.text for formula in formulas],
                }
            )
            places.append(place)
    _check_references(formulas, items, name)
    columns = {column: [row[column] for row in rows] for column in rows[0]}
    return RawTable(name, columns, places.__getitem__, "suites")


def divided_rows(table: RawTable) -> RawTable:
    """Returns sentences with their regions: columns `region_1`, ... or parts between bars.

    Regions become sentences as those of suites do. A table without regions stays as it is.

    Raises:
        BadInput: there are both; or the regions of a row are no sentence.
    """
    columns = dict(table.columns)
    if names := region_names(columns):
        if "sentence" in columns:
            raise BadInput(
                f"{table.name}: the columns sentence and {names[0]} are both there: leave sentence "
                "out, which is made of the regions"
            )
        numbers = [int(name.partition("_")[2]) for name in names]
        parts = [
            list(zip(numbers, row, strict=True))
            for row in zip(*(columns.pop(name) for name in names), strict=True)
        ]
    elif any("|" in str(text) for text in columns["sentence"]):
        parts = [list(enumerate(str(text).split("|"), start=1)) for text in columns["sentence"]]
    else:
        return table
    if "regions" in columns:
        raise BadInput(f"{table.name}: the column regions is made of the regions: rename it")
    rows = [
        _sentence([(n, _content(text, table.where(row))) for n, text in of], {}, table.where(row))
        for row, of in enumerate(parts)
    ]
    columns |= {"sentence": [text for text, _ in rows], "regions": [spans for _, spans in rows]}
    return replace(table, columns=columns)


def _content(value: Any, place: str) -> str:
    if value is not None and not isinstance(value, str):
        raise BadInput(f"{place}: a region must be text, not {value!r:.60}")
    return value or ""


# ---- fields of a suite ---------------------------------------------------------------------------

_Regions = Sequence[tuple[int, str]]
"""Number and content of each region of a sentence."""

_Items = Mapping[int, Mapping[str, _Regions]]
"""Number of an item -> condition -> its regions."""


def _title(suite: Mapping[str, Any], name: str, stem: str) -> str:
    """The name of a suite, whose regions are summed."""
    meta = suite.get("meta") or {}
    if not isinstance(meta, Mapping):
        raise BadInput(f"{name}: meta is not an object")
    metric = meta.get("metric") or "sum"
    if metric != "sum":
        raise BadInput(
            f"{name}: meta.metric is {metric!r:.60}: only sum is computed, the surprisal of all "
            "tokens of a region"
        )
    title = meta.get("name") or stem
    if not isinstance(title, str):
        raise BadInput(f"{name}: meta.name is {title!r:.60}; it must be text")
    return title


def _region_names(suite: Mapping[str, Any], name: str) -> Mapping[str, str]:
    names = suite.get("region_meta") or {}
    if not isinstance(names, Mapping) or not all(isinstance(one, str) for one in names.values()):
        raise BadInput(f"{name}: region_meta must give the name of each region by its number")
    return names


def _formulas(suite: Mapping[str, Any], name: str) -> list[Formula]:
    predictions = suite.get("predictions")
    if not isinstance(predictions, list) or not predictions:
        raise BadInput(f"{name}: predictions is empty: a suite needs at least one formula")
    formulas = []
    for number, prediction in enumerate(predictions, start=1):
        place = f"{name}: prediction {number}"
        if not isinstance(prediction, Mapping) or not isinstance(prediction.get("formula"), str):
            raise BadInput(f"{place} has no formula, which must be text")
        if prediction.get("type", "formula") != "formula":
            raise BadInput(f"{place}: type is {prediction['type']!r:.60}; it must be formula")
        try:
            formulas.append(parse_formula(prediction["formula"]))
        except FormulaError as error:
            raise BadInput(f"{place}: formula {prediction['formula']!r}: {error}") from None
    return formulas


def _items(suite: Mapping[str, Any], name: str) -> _Items:
    """The items by number; all have the same conditions."""
    items: dict[int, dict[str, _Regions]] = {}
    if not isinstance(suite["items"], list) or not suite["items"]:
        raise BadInput(f"{name}: items is empty: a suite needs at least one item")
    for position, item in enumerate(suite["items"], start=1):
        if not isinstance(item, Mapping) or not _is_number(number := item.get("item_number")):
            raise BadInput(f"{name}: item_number of item {position} must be an integer")
        if number in items:
            raise BadInput(f"{name}, item {number}: item_number is there twice: number items anew")
        items[number] = _conditions(item.get("conditions"), f"{name}, item {number}")
    first = next(iter(items))
    for number in items:
        for a, b in ((first, number), (number, first)):
            if lacking := [one for one in items[a] if one not in items[b]]:
                raise BadInput(
                    f"{name}, item {b}: conditions: {lacking[0]} is missing, which item {a} has"
                )
    return items


def _conditions(conditions: Any, place: str) -> dict[str, _Regions]:
    if not isinstance(conditions, list) or not conditions:
        raise BadInput(f"{place}: conditions is empty: an item needs at least one")
    read: dict[str, _Regions] = {}
    for position, condition in enumerate(conditions, start=1):
        title = condition.get("condition_name") if isinstance(condition, Mapping) else None
        if not isinstance(title, str) or not title:
            raise BadInput(f"{place}: condition_name of condition {position} must be text")
        if title in read:
            raise BadInput(f"{place}: conditions: {title} is there twice: rename one")
        read[title] = _regions(condition.get("regions"), f"{place}, condition {title}")
    return read


def _regions(regions: Any, place: str) -> _Regions:
    if not isinstance(regions, list) or not regions:
        raise BadInput(f"{place}: regions is empty: a sentence needs at least one")
    read: list[tuple[int, str]] = []
    for position, region in enumerate(regions, start=1):
        number = region.get("region_number") if isinstance(region, Mapping) else None
        if not _is_number(number):
            raise BadInput(f"{place}: region_number of region {position} must be an integer")
        if read and number <= read[-1][0]:
            raise BadInput(
                f"{place}: region_number {number} follows {read[-1][0]}: give each region a number "
                "of its own, in ascending order"
            )
        if not isinstance(content := region.get("content"), str):
            raise BadInput(f"{place}: content of region {number} must be text, empty for none")
        read.append((number, content))
    return read


def _is_number(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _check_references(formulas: Sequence[Formula], items: _Items, name: str) -> None:
    """Checks that each item has what the formulas read."""
    for count, formula in enumerate(formulas, start=1):
        for region in formula.regions:
            for number, conditions in items.items():
                place = f"{name}, item {number}: prediction {count} reads {region}"
                if region.condition not in conditions:
                    known = ", ".join(conditions)
                    raise BadInput(f"{place}, but there is no such condition: choose from {known}")
                numbers = [one for one, _ in conditions[region.condition]]
                if region.number is not None and region.number not in numbers:
                    raise BadInput(f"{place}, but there is no such region: choose from {numbers}")


# ---- sentences -----------------------------------------------------------------------------------


def _sentence(
    regions: _Regions, names: Mapping[str, str], place: str
) -> tuple[str, list[dict[str, Any]]]:
    """The sentence, and each region with its position in it.

    Contents are stripped, empty ones left out, and the others joined by a blank, except before
    punctuation that belongs to what precedes it, as a comma does.
    """
    text = ""
    spans = []
    for number, content in regions:
        content = content.strip()
        if text and content and not _follows_directly(content):
            text += " "
        name = names.get(str(number), "")
        spans.append({"number": number, "name": name, "start": len(text), "end": len(text)})
        text += content
        spans[-1]["end"] = len(text)
    if not text:
        raise BadInput(f"{place}: regions do not join to a sentence: all are empty")
    if problem := sentence_problem(text):
        raise BadInput(f"{place}: content {problem}")
    return text, spans


def _follows_directly(content: str) -> bool:
    category = unicodedata.category(content[0])
    return category.startswith("P") and category not in _OPENING
