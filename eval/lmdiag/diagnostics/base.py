"""What a diagnostic declares: its columns, what is measured on it, and how the results are shown.

A diagnostic is a `Diagnostic` in a file of this package. Everything that is special to it is
declared there; stimuli, measures, tables, charts, the comparison and the leaderboard read the
declaration. Nothing here imports numpy when it is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from lmdiag.measures import Columns, Labels, Scores
    from lmdiag.types import Fold

Stimulus = Mapping[str, Any]
"""One row: column -> value."""

ColumnType = Literal["text", "number", "words", "boolean"]

MOST_LEVELS = 12
"""A column with more distinct values than this is text, not a break-down."""


# ---- data ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Column:
    """A column of the data.

    Attributes:
        type: how its values are read from a text file.
        required: rows without this column are not rows of the diagnostic.
        default: of a core column, where the data have no value; None if a value must be given.
    """

    name: str
    type: ColumnType = "text"
    required: bool = False
    default: Any = None


_ITEM = (Column("id"), Column("item", default=""), Column("condition", default=""))
_COMPARED = (Column("good", "boolean"), Column("contrast"))

CORE = (
    *_ITEM,
    Column("context", required=True),
    Column("right_context", default=""),
    Column("target", required=True),
    *_COMPARED,
    Column("expected", "words", default=()),
)
"""The core columns of rows with a blank, in their order."""

_GAP_SPACES = Column("gap_spaces")
"""Optional core column of rows with a blank: where a space stands at the gap of a sentence that was
typed otherwise than context, target and right_context are joined."""

SENTENCES = (*_ITEM, Column("sentence", required=True), *_COMPARED)
"""The core columns of rows that are whole sentences."""


@dataclass(frozen=True)
class Perturbation:
    """A setting in which the same rows have other contexts.

    Attributes:
        name: as `--perturb` takes it.
        label: heading in tables.
        change: (row, number of the shuffle, seed) -> context; a row is column -> value.
        needs: columns that `change` reads.
        shuffled: whether it depends on the seed; such a setting is run several times.
        unshuffled: the setting that differs from a shuffled one in the order of the words alone.
    """

    name: str
    label: str
    change: Callable[[Stimulus, int, int], str]
    needs: tuple[str, ...]
    shuffled: bool = False
    unshuffled: str = "none"


# ---- presentation --------------------------------------------------------------------------------


FigureColumn = Literal[
    "measure", "score", "cutoff", "setting", "level", "address", "heading", "set"
]
"""Column of the table of figures that is a side of a printed table.

`score` and `cutoff` are the parts of a name as `mw@top=0.1`; `address` is measure, break-down and
level; `heading` and `set` are for headline figures and extended sets.
"""


@dataclass(frozen=True)
class FigureSelection:
    """Figures of the unperturbed setting.

    Attributes:
        measures: names, in order; a `*` stands for any characters.
        by: break-down; "" for the figures over all items.
        levels: of the break-down, in order; none of them for all.
        label: heading; "" for the usual name.
        unless: a measure that they replace; they are left out if the rows have it.
        is_overview: whether they are in the first table of the leaderboard, which the first of all
            figures there orders.
    """

    measures: tuple[str, ...]
    by: str = ""
    levels: tuple[str, ...] = ()
    label: str = ""
    unless: str = ""
    is_overview: bool = False


CHOICE_HEADLINES = (FigureSelection(("position_bias", "labels_mass")),)
"""Headline figures that every run that asks for choices has beside those of its diagnostic."""


@dataclass(frozen=True)
class TableShape:
    """A printed table: a selection of the figures, and what its rows and columns are.

    The figures are those of the unperturbed setting, or of all settings if `setting` is a side of
    the table.

    Attributes:
        source: the table of the paper that has this shape; "" for one of our own.
        measures, levels: see `FigureSelection`.
        rows: one or two columns of the figures; the second one has rows of its own below each row
            of the first, indented.
        columns: column of the figures.
        by: break-downs, in the order of their rows; "" for the figures over all items.
        labels: value of `rows` or `columns` -> heading, where it is not the usual one.
        published: level -> heading on the rows that the paper reports on, and their number.
        plain: measures whose values stand without n and interval, which add nothing.
        is_further: whether it is folded in a page and left out on a terminal where it is long.
    """

    title: str
    source: str
    measures: tuple[str, ...]
    rows: tuple[FigureColumn, ...] = ("level",)
    columns: FigureColumn = "measure"
    by: tuple[str, ...] = ("",)
    levels: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    published: Mapping[str, tuple[str, int]] = field(default_factory=dict)
    plain: tuple[str, ...] = ()
    is_further: bool = False


@dataclass(frozen=True)
class Finding:
    """What a page says first of a figure with a chance level.

    Attributes:
        above, below: what a model does where the figure is above, or below, its chance level; the
            name of the model stands before it, and `items` and the figure behind it.
        measures: the first one that a run has is taken.
        by: break-down of the figure; "" for the one over all items.
        items: level -> words for its items; "" for the title of the diagnostic.
        noun: what the items are, after the words for them; then `above` is said of the shares of
            all levels, as in "in 90% of affirmative and 10% of negated sentences".
    """

    above: str
    below: str = ""
    measures: tuple[str, ...] = ("sensitivity",)
    by: str = ""
    items: Mapping[str, str] = field(default_factory=lambda: {"": ""})
    noun: str = ""


@dataclass(frozen=True)
class ExtendedSets:
    """A small set and larger ones that ask the same, which are shown in one table and one chart.

    Attributes:
        labels: task -> name of its set, the small one first.
        columns: figures that all of them have.
        title: of both.
        source: of the larger sets.
    """

    labels: Mapping[str, str]
    columns: tuple[FigureSelection, ...]
    title: str = "Original and extended sets"
    source: str = "Shivagunde et al. 2023"


@dataclass(frozen=True)
class Chart:
    """A chart of the report.

    Attributes:
        kind: what it shows, a key of `PLOTS_OF` in `lmdiag.report.charts.kinds`, which draws it.
        title: "" for the usual one.
        by, levels: the break-down that it shows, or the levels that it is restricted to (in
            `scatter`, a `*` stands for any part of a name).
        measures: see `FigureSelection`.
    """

    kind: str
    title: str = ""
    by: str = ""
    levels: tuple[str, ...] = ()
    measures: tuple[str, ...] = ("accuracy@*", "sensitivity*")


# ---- the diagnostic ------------------------------------------------------------------------------


MakeLevels = Callable[["Columns"], dict[str, "Labels"]]
"""Columns of the rows -> break-downs that are made of them -> level of each row."""


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """A set of items and everything that is special to it.

    Attributes:
        name: of the config; of a form, the name of the task takes its place and that of titles.
        title, short_title: in headings, and where there is little room.
        about: what it asks and how it is scored, for readers of a report.
        position: place among the diagnostics, from 1.
        columns: beyond the core columns.
        own_levels: break-downs that are made of its columns.
        accuracy_levels: further break-downs of accuracy alone.
        perturbations: in the order of the paper's tables.
        tables, charts: in the order of the report; measures without a table are in a further one.
        headlines: figures that stand for the diagnostic in a report.
        finding: what a page says first.
        extended_sets: larger and smaller sets that ask the same, this one included.
        leaderboard: its columns; measures and levels are named in full.
        in_data_set: whether the rows are in the data set that lmdiag publishes; the leaderboard
            takes no other ones.
        level_labels: break-down -> level -> words for it; levels appear in this order.
        verbatim: break-downs with names from the data as levels, which are shown as they are.
        compared_by: figures that stand for a measure in a comparison of two models where measures
            are named, without labels; all other measures are compared as a whole.
        untagged: break-downs that the list of items does not show.
        published_rows: number of rows that the paper reports on; None without published figures.
        has_verbs: whether contexts are also scored over a list of verbs (EW and MW), of which the
            column `number` names the right form.
        capitalise: whether contexts are given in lower case and start with a capital for models
            that distinguish case.
        asks: what a row asks: the word at a blank, or all words of a sentence.
        has_regions: whether a sentence is a row of regions; a sample then takes whole items.
        item_within: column within which the numbers of items are unique; "" for all rows.
        breakdowns: its columns that are break-downs, further ones that are even if they have many
            levels, and core columns that are if they have a few.
        top: least length of the lists of top words that are asked for.
        interval_from: number of items from which on a mean has an interval.
        form: of the data of any name that it is for, see `Stimuli.form`; "" for a built-in one.
    """

    name: str
    title: str = ""
    short_title: str = ""
    about: str
    position: int = 100
    columns: tuple[Column, ...] = ()
    own_levels: MakeLevels | None = None
    accuracy_levels: MakeLevels | None = None
    perturbations: tuple[Perturbation, ...] = ()
    tables: tuple[TableShape, ...] = ()
    charts: tuple[Chart, ...] = (Chart("figures"), Chart("scatter"))
    headlines: tuple[FigureSelection, ...] = ()
    finding: Finding = Finding("prefers the good completion", "prefers the bad completion")
    extended_sets: ExtendedSets | None = None
    leaderboard: tuple[FigureSelection, ...] = ()
    in_data_set: bool = True
    level_labels: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    verbatim: frozenset[str] = frozenset()
    compared_by: tuple[FigureSelection, ...] = ()
    untagged: frozenset[str] = frozenset()
    published_rows: int | None = None
    has_verbs: bool = False
    capitalise: bool = False
    asks: Literal["word", "sentence"] = "word"
    has_regions: bool = False
    item_within: str = ""
    breakdowns: tuple[str, ...] = ()
    top: int = 5
    interval_from: int = 2
    form: str = ""

    @property
    def is_form(self) -> bool:
        """Whether it is a form of data, for tasks of any name, and not a built-in diagnostic."""
        return bool(self.form)

    @property
    def core(self) -> tuple[Column, ...]:
        """Columns that the rows of every diagnostic that asks the same have, in their order."""
        return (*CORE, _GAP_SPACES) if self.asks == "word" else SENTENCES

    @property
    def core_columns(self) -> tuple[str, ...]:
        """The names of the columns of `core`."""
        return tuple(column.name for column in self.core)

    def missing_columns(self, names: Iterable[str]) -> list[str]:
        """Returns the required columns of the diagnostic that are not among the names, sorted."""
        required_names = {column.name for column in self.columns if column.required}
        return sorted(required_names - set(names))

    def has_shares(self, rows: Columns) -> bool:
        """Returns whether the column `human` has numbers: shares of people, and not levels."""
        from lmdiag.measures import human_shares

        return human_shares(rows) is not None

    def levels(self, rows: Columns) -> dict[str, Labels]:
        """Returns break-down -> level of each row, None where it has none.

        For example, {"number": ["sg", "pl"]}. Whether a column is a break-down depends on its kind:

        - a column in `self.columns`: if it is in `self.breakdowns`, too, with any number of levels;
        - a core column, as `condition`: if it is in `self.breakdowns` and has 2 to 12 levels;
        - any other column in `self.breakdowns`: if it has two levels or more;
        - any other column of the data: if it has 2 to 12 levels, and is neither a copy of the items
          nor has the shares of people.

        Break-downs that the diagnostic makes of its columns (`self.own_levels`) come first.

        Args:
            rows: name -> values of all columns.
        """
        names_of_own = {column.name for column in self.columns}
        levels_of_column = self.own_levels(rows) if self.own_levels else {}
        for name in rows:
            is_own = name in names_of_own
            is_core = name in self.core_columns
            is_share = name == "human" and self.has_shares(rows)
            is_copy_of_items = name != "item" and rows[name] == rows.get("item")
            is_declared = name in self.breakdowns
            is_excluded = is_own or is_core or is_share or is_copy_of_items
            if is_excluded and not is_declared:
                continue
            levels = levels_of(rows[name])
            n_levels = len(set(levels) - {None})
            # a declared column may have many levels; a core column may not, since a `condition` of
            # the user's own may differ in each row
            most_levels = MOST_LEVELS if is_core or not is_declared else len(levels)
            if is_own or 2 <= n_levels <= most_levels:
                levels_of_column[name] = levels
        return levels_of_column

    def score(
        self,
        rows: Columns,
        predictions: Columns,
        *,
        k: Sequence[int] = (1, 5),
        threshold: float = 0.01,
        folds: Collection[Fold] = (),
        left_only: bool = False,
        levels: Mapping[str, Labels] | None = None,
    ) -> list[Scores]:
        """Returns every measure that these rows and predictions allow.

        Which measures a diagnostic has is registered with them, see `lmdiag.measures.register`.
        One without a single item is left out, unless it says why it is not defined. A contrast with
        several good rows is a `ValueError`.

        Args:
            rows, predictions: their columns, by name.
            k: up to which ranks a word among the top words is right.
            threshold: that a difference of probabilities has to exceed, in `sensitivity@...`.
            folds: differences between words that do not count, see `lmdiag.measures.fold_word`.
            left_only: whether the model reads the left context alone.
            levels: break-downs; None for those of the method `levels`.
        """
        from lmdiag import measures

        is_choice = any(predictions.get("labels", ()))
        further_levels = self.accuracy_levels(rows) if self.accuracy_levels else {}
        trials = measures.Trials(
            rows,
            predictions,
            levels=self.levels(rows) if levels is None else levels,
            left_only=left_only and not is_choice,  # the options of a choice are read as a whole
            folds=folds,
            accuracy_levels=further_levels,
        )
        # choices have measures of their own, whatever the rows ask
        entries = measures.measures_of(self.form or self.name, "choice" if is_choice else self.asks)
        all_scores: list[Scores] = []
        for entry in entries:
            all_scores += entry.scores(trials, k=k, threshold=threshold)
        return [scores for scores in all_scores if len(scores.items) or scores.not_defined]

    def perturbation(self, name: str) -> Perturbation | None:
        """Returns the perturbation with a name; None if the diagnostic does not have it."""
        for perturbation in self.perturbations:
            if perturbation.name == name:
                return perturbation
        return None

    def setting_label(self, setting: str) -> str:
        """Returns the heading of a setting: "Original" for "none", if there are perturbations."""
        perturbation = self.perturbation(setting)
        if perturbation:
            return perturbation.label
        if setting == "none":
            return "Original" if self.perturbations else "All items"
        return setting

    def settings_in_order(self, settings: Iterable[str]) -> list[str]:
        """Returns settings in the order of the paper's tables; those of another name at the end."""
        names = list(settings)
        order = ["none", *(perturbation.name for perturbation in self.perturbations)]
        declared = [name for name in order if name in names]
        return declared + [name for name in names if name not in declared]

    def levels_in_order(self, by: str, levels: Iterable[str]) -> list[str]:
        """Returns the levels of a break-down in order: numbers by size, others as their labels.

        Levels without a label come last, in the order given.

        >>> from lmdiag.diagnostics import get
        >>> get("custom").levels_in_order("length", ["10", "9"])
        ['9', '10']
        """
        names = list(levels)
        # numbers of so few digits are exact as floats
        if all(re.fullmatch(r"-?\d{1,15}(\.\d{1,15})?", name) for name in names):
            return sorted(names, key=float)
        order = list(self.level_labels.get(by, ()))
        return sorted(names, key=lambda name: order.index(name) if name in order else len(order))

    def level_label(self, by: str, level: str) -> str:
        """Returns a level in words; a number, or yes or no, after the name of its break-down.

        >>> from lmdiag.diagnostics import get
        >>> get("custom").level_label("length", "9"), get("custom").level_label("a", "no_gap")
        ('length 9', 'no gap')
        """
        label = self.level_labels.get(by, {}).get(level)
        if label is not None:
            return label
        if by in self.verbatim:
            return level
        words = level.replace("/", ", ").replace("_", " ")
        # such a level says nothing without the name of its break-down
        is_bare = re.fullmatch(r"[-\d.]+|true|false|yes|no", words, re.IGNORECASE)
        return f"{by} {words}" if is_bare else words


# ---- break-downs ---------------------------------------------------------------------------------


def levels_of(column: Sequence[object]) -> Labels:
    """Returns a column of words, booleans or numbers as levels; None for missing ones.

    An empty text is a missing level, as a field of a csv file may be empty. A column with other
    values, as lists, has no levels.

    >>> levels_of(["a", "", None]), levels_of([True, 1.5])
    (['a', None, None], ['true', '1.5'])
    """
    types = {type(value) for value in column} - {type(None)}
    if types <= {str}:
        return [level or None for level in column]  # type: ignore[misc]
    if not types <= {str, bool, int, float}:
        return [None] * len(column)
    levels: list[str | None] = []
    for value in column:
        is_nan = value != value  # no other value differs from itself
        if value is None or value == "" or is_nan:
            levels.append(None)
        else:
            levels.append(str(value).lower() if isinstance(value, bool) else str(value))
    return levels


def crossed(outer: Labels, inner: Labels) -> Labels:
    """Returns the levels of two break-downs together; None for a row without one of the two.

    >>> crossed(["simp", None], ["affirmative", "negative"])
    ['simp/affirmative', None]
    """
    levels: list[str | None] = []
    for outer_level, inner_level in zip(outer, inner, strict=True):
        is_missing = outer_level is None or inner_level is None
        levels.append(None if is_missing else f"{outer_level}/{inner_level}")
    return levels
