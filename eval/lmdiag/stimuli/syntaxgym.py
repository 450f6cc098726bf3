"""Test suites in SyntaxGym's JSON as rows: their sentences with regions and formulas.

Source: Gauthier et al. (2020), and the suites of Hu et al. (2020).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import BaseModel, Field, StrictInt, StrictStr, ValidationError

from lmdiag.stimuli.reading.forms import join_regions
from lmdiag.tables.table_files import Table, row_index
from lmdiag.text import ValidationProblem, first_problem
from lmdiag.types import BadInput

if TYPE_CHECKING:
    from lmdiag.measures.formulas import Formula


class _Region(BaseModel):
    region_number: StrictInt
    content: StrictStr


class _Condition(BaseModel):
    condition_name: Annotated[StrictStr, Field(min_length=1)]
    regions: list[_Region] = Field(min_length=1)


class _Item(BaseModel):
    item_number: StrictInt
    conditions: list[_Condition] = Field(min_length=1)


class _Prediction(BaseModel):
    type: Literal["formula"] = "formula"
    formula: StrictStr


class _Meta(BaseModel):
    name: StrictStr | None = None
    metric: Literal["sum", "", None] = None


class _Suite(BaseModel):
    meta: _Meta | None = None
    region_meta: dict[str, StrictStr] | None = None
    predictions: list[_Prediction] = Field(min_length=1)
    items: list[_Item] = Field(min_length=1)


def suite_rows(value: Any, name: str, stem: str) -> Table:
    """Returns a row for each item and condition of a test suite, with its sentence and regions.

    A suite that breaks a rule is a `BadInput`, which names file, item, condition and field.

    Args:
        value: the suite as JSON is read: dicts and lists.
        name: of the file, for messages.
        stem: name of the suite where `meta` has none.
    """
    from lmdiag.measures.formulas import FormulaError, parse_formula

    if not isinstance(value, Mapping) or "items" not in value:
        rule = "one has `items` and `predictions` as SyntaxGym's have; save other rows as a list"
        raise BadInput(f"{name} is not a test suite: {rule} of objects or as JSON lines (.jsonl)")
    try:
        suite = _Suite.model_validate(value)
    except ValidationError as error:
        raise BadInput(f"{name}{_problem_text(first_problem(error))}") from None
    title = (suite.meta and suite.meta.name) or stem
    formulas = []
    for number, prediction in enumerate(suite.predictions, start=1):
        try:
            formulas.append(parse_formula(prediction.formula))
        except FormulaError as error:
            place = f"{name}, prediction {number}: formula {prediction.formula!r}"
            raise BadInput(f"{place}: {error}") from None
    _check_items(suite.items, formulas, name)
    rows: dict[str, dict[str, Any]] = {}  # what messages call a row -> the row
    for item in suite.items:
        for condition in item.conditions:
            place = f"{name}, item {item.item_number}, condition {condition.condition_name}"
            regions = [(region.region_number, region.content) for region in condition.regions]
            sentence, spans = join_regions(regions, suite.region_meta or {}, place)
            rows[place] = {
                "id": f"{title}/{item.item_number}/{condition.condition_name}",
                "item": f"{title}/{item.item_number}",
                "condition": condition.condition_name,
                "sentence": sentence,
                "suite": title,
                "regions": spans,
                "formulas": [formula.text for formula in formulas],
            }
    return Table.of_rows(name, [*rows.values()], row_index([*rows]), form="suites")


def _problem_text(problem: ValidationProblem) -> str:
    """Returns the problem of a suite in words, to stand after the name of the file.

    For example, ", item 2, condition 1: condition_name is missing" for the location ("items", 1,
    "conditions", 0, "condition_name"), a path as pydantic gives it, with numbers from 0.
    """
    place = ""
    field = ""
    for part in problem.location:
        if isinstance(part, int):
            place = f"{place}, {field.removesuffix('s')} {part + 1}"
            field = ""
        else:
            field = f"{field}.{part}" if field else part
    plain = {"missing": "is missing", "too_short": "is empty", "model_type": "must be an object"}
    message = plain.get(problem.kind, "")
    if not message:
        message = problem.message.replace("input should", "must")
        if problem.given[0] not in "{[":  # objects and lists are too long to show
            message += f", not {problem.given}"
    return f"{place}: {field} {message}"


def _check_items(items: Sequence[_Item], formulas: Sequence[Formula], name: str) -> None:
    """Checks what the types of single fields cannot check.

    `BadInput` if two items have one number, conditions of an item have one name, regions are not in
    ascending order, an item has other conditions than the first one, or a formula reads a condition
    or region that an item lacks.

    Args:
        items: of the suite.
        formulas: of the predictions of the suite.
        name: of the file, for messages.
    """
    names = {condition.condition_name for condition in items[0].conditions}
    numbers: set[int] = set()
    for item in items:
        place = f"{name}, item {item.item_number}"
        if item.item_number in numbers:
            raise BadInput(f"{place}: item_number is there twice: number items anew")
        numbers.add(item.item_number)
        conditions: dict[str, list[int]] = {}  # name -> numbers of its regions
        for condition in item.conditions:
            title = condition.condition_name
            regions = [region.region_number for region in condition.regions]
            if title in conditions:
                raise BadInput(f"{place}: conditions: {title} is there twice: rename one")
            if regions != sorted(set(regions)):
                rule = "give each region a number of its own, in ascending order"
                raise BadInput(f"{place}, condition {title}: region_number: {rule}, not {regions}")
            conditions[title] = regions
        different = names ^ conditions.keys()
        if different:
            both = f"in this item and in item {items[0].item_number}, but in one of the two"
            raise BadInput(f"{place}: conditions: {min(different)} is not {both}")
        for number, formula in enumerate(formulas, start=1):
            for region in formula.regions:
                missing = f"{place}: prediction {number} reads {region}, but there is no such"
                if region.condition not in conditions:
                    raise BadInput(f"{missing} condition: choose from {', '.join(conditions)}")
                choices = conditions[region.condition]
                if region.number is not None and region.number not in choices:
                    raise BadInput(f"{missing} region: choose from {choices}")
