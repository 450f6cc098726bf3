"""Cloze norms: what people say at a blank, and what models expect there.

The measures are those of docs/specification.md, section 4 (Cloze norms).
"""

from __future__ import annotations

import math
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from pandas import DataFrame, Series, concat, to_numeric
from pydantic_core import to_jsonable_python

from lmdiag import stats
from lmdiag.measures import Scores, cloze_correlations, fold_word, folds_for, match_rule
from lmdiag.measures.scores import build, objects
from lmdiag.presentable import Presentable
from lmdiag.results.items import items_of_predictions
from lmdiag.results.models import model_labels
from lmdiag.stimuli.forms import without_gaps
from lmdiag.stimuli.proposals import naming_option
from lmdiag.stimuli.reading import read_rows
from lmdiag.stimuli.rows import Stimuli
from lmdiag.stimuli.shown import first_rows
from lmdiag.stimuli.table import check
from lmdiag.table_files import Problems, Table, row_index
from lmdiag.text import first_few
from lmdiag.types import AS_IT_IS, BadInput, Fold, TableOptions

if TYPE_CHECKING:
    from lmdiag.measures import Statistic
    from lmdiag.protocol import Predictions
    from lmdiag.results import Run

MEASURES: Mapping[str, Statistic] = {
    "mass": "mean", "top_agrees": "proportion", "cross_entropy": "mean", "divergence": "mean",
    "spearman": "mean",
}  # fmt: skip
"""Measure of an item -> how its values become the figure of a model."""

POOLED = "spearman_pooled"
"""The correlation over the words of all items."""

LABELS = {
    "top_agrees": "top word agrees, %",
    "cross_entropy": "cross-entropy, bits",
    "divergence": "divergence, bits",
    POOLED: "Spearman, pooled over words",
}
"""Measure -> words for readers, of those that do not go by their usual name."""

TOP = 10
"""Words of a model that are asked for at each blank."""

_ITEM = ["item", "context", "right_context"]
_WORDS = ("response", "word", "target")
_SHARES = ("cloze", "target_cloze")
_KNOWN = frozenset((*_ITEM, "sentence", "participant", "count", *_WORDS, *_SHARES))
_RULE = "a row is a response (item, context, response), or a word with its count or cloze"
_FINAL = re.compile(r"[\s.,;:!?…。，、；：！？]+\Z")
_ROUNDING = 0.005
"""How far a published share may be from the counted one."""


# ---- people's words -----------------------------------------------------------------------------


def plain_word(text: str, folds: Collection[Fold] = ()) -> str:
    """Returns a response without outer blanks, final punctuation, and what `folds` name.

    >>> plain_word(" Wooden spoon. ", ["case"])
    'wooden spoon'
    """
    return fold_word(_FINAL.sub("", text.strip()), folds)


def read_norms(
    source: str | Path | DataFrame,
    options: TableOptions = AS_IT_IS,
    *,
    response: str = "",
    keep_case: bool = False,
) -> Stimuli:
    """Returns a row per item and word: item, context, right_context, target, cloze, maybe count.

    Args:
        source: a file or a DataFrame with a row per response, or per word with its count or cloze.
            Its columns are context (or sentence, with a gap) and response or word; item (else each
            context is one), right_context, and count or cloze are optional.
        options: how it is read.
        response: column of the responses or words; "" for `response`, `word` or `target`.
        keep_case: whether Goal and goal are two words.

    Raises:
        BadInput: a column is missing, or a value cannot be used (column and row are named).
    """
    table = read_rows(source, options, _KNOWN, raw=True, reads=("gap",))
    word = table.column_of(response, "--response") if response else ""
    word = word or next((name for name in _WORDS if name in table.columns), "")
    perhaps = ""
    if not word or "context" not in table.columns:
        option = naming_option(table.columns, "cloze")
        perhaps = f"; perhaps {option}" if option else ""
    if not word:
        rule = f"{_RULE}; --response names the column of responses{perhaps}"
        raise table.lacks(_WORDS[0], rule)
    named = table.having({"target": table.columns[word]})
    named = without_gaps(named, options.gap)
    if "context" not in named.columns:
        mark = "; a sentence has ___ in the place of the word, or another mark: --gap TEXT"
        raise table.lacks("context", _RULE + mark * ("sentence" in table.columns) + perhaps)
    table = named
    rows = _rows(table)
    written = [plain_word(text) for text in rows["target"]]
    rows["target"] = written if keep_case else [text.lower() for text in written]
    said = rows[rows["target"] != ""]
    if said.empty:
        raise BadInput(f"{table.name} has no responses: {_RULE}")
    _check(table, said)
    items = _numbered(said)
    words = _counted(table.name, items)
    words.insert(0, "id", words["item"] + ": " + words["target"])
    notes = [*table.notes]
    if "item" not in table.columns:
        notes.append("no column item: each context is an item")
    if empty := rows.index.difference(said.index).tolist():
        notes.append(f"empty responses left out: {len(empty)} ({table.places(empty)})")
    if capital := [text for text in written if text != text.lower() and not keep_case]:
        always = [*dict.fromkeys(text for text in capital if text.lower() not in written)]
        never = f"; never written so: {first_few(always, 5)} (--keep-case)" if always else ""
        notes.append(f"responses with capitals read in lower case: {len(capital):,}{never}")
    if several := [*said["item"][items["item"] != said["item"]].unique()]:
        notes.append(f"each context of items with several is an item: {first_few(several, 5)}")
    stimuli = Stimuli("cloze", words.to_dict("list"), table.name)
    return replace(stimuli, notes=tuple(notes))


def _rows(table: Table) -> DataFrame:
    """The rows of a table: item, context, right_context, target, and count or cloze."""
    columns = table.columns
    share = next((name for name in _SHARES if name in columns), "")
    absent = [""] * len(table)
    rows = DataFrame({
        name: ["" if x in (None, "NA") else str(x).strip() for x in columns.get(name, absent)]
        for name in (*_ITEM, "target")
    })  # fmt: skip
    if "gap_spaces" in columns:
        rows["gap_spaces"] = columns["gap_spaces"]
    if "item" not in columns:
        rows["item"] = rows["context"]
    if not share and "count" not in columns:
        return rows.assign(count=1)
    column = share or "count"
    values = to_numeric(Series(columns[column], dtype=object), errors="coerce").astype(float)
    most = 1.0 if share else float(2**53)
    if (wrong := np.flatnonzero(~values.between(0, most))).size:
        wanted = "a share from 0 to 1" if share else "a number from 0 up"
        problem = f"the column {column}: expected {wanted}, not {columns[column][wrong[0]]!r}"
        raise table.error(int(wrong[0]), problem)
    return rows.assign(**{"cloze" if share else "count": values})


def _check(table: Table, rows: DataFrame) -> None:
    """Refuses two spellings of a context, and texts that no model is asked."""
    place = rows["context"] + "\n" + rows["right_context"]
    unasked = "write the text before the word, or what follows it into right_context"
    for name, texts, remedy in (
        ("context", place.str.strip(), unasked),
        ("item", rows["item"], "number the contexts"),
    ):
        if (empty := rows.index[texts == ""]).size:
            raise table.error(empty[0], f"the column {name} is empty: {remedy}")
    alike = place.str.lower().str.replace(r"[^\w\n]+", " ", regex=True).str.strip()
    spelling = place.groupby([rows["item"], alike]).transform("first")
    if (different := rows.index[place != spelling]).size:
        earlier = table.where((place == spelling[different[0]]).idxmax())
        problem = f"the context differs from that in {earlier} in case, blanks or punctuation alone"
        raise table.error(different[0], f"{problem}: write both alike")
    columns = rows.to_dict("list")
    columns["id"] = [*map(str, rows.index)]  # a row of a wide table is several here
    problems = Problems()
    check(columns, table.of_rows_at(rows.index), problems)
    problems.refuse()


def _numbered(rows: DataFrame) -> DataFrame:
    """Numbers the contexts of each item that has several: 7.1, 7.2."""
    place = (rows["context"] + "\n" + rows["right_context"]).groupby(rows["item"])
    number = place.transform(lambda texts: texts.factorize()[0] + 1)
    is_alone = number.groupby(rows["item"]).transform("max") == 1
    return rows.assign(item=rows["item"].where(is_alone, rows["item"] + "." + number.map(str)))


def _counted(name: str, rows: DataFrame) -> DataFrame:
    """The words of each item, the most frequent first; ties in the order of the table."""
    amount = "cloze" if "cloze" in rows else "count"
    texts = [name for name in (*_ITEM, "gap_spaces") if name in rows]
    words = rows.groupby([*texts, "target"], sort=False)[amount].sum().reset_index()
    amounts = words.groupby("item", sort=False)[amount]
    total = amounts.transform("sum")
    if amount == "count":
        words["cloze"] = words["count"] / total
    elif (above := total > 1 + _ROUNDING * amounts.transform("size") + 1e-9).any():
        item = words["item"][above].iloc[0]
        rule = "it is the share of a word; a table of single responses has no column cloze"
        raise BadInput(f"{name}: cloze of item {item} adds up to {total[above].iloc[0]:g}: {rule}")
    return words.iloc[np.lexsort([-words["cloze"], amounts.ngroup()])]


def norms_of_run(run: Run) -> tuple[Stimuli, Predictions]:
    """Returns the words of a run with their cloze probabilities, and what was predicted.

    Raises:
        BadInput: no task, or several, have words with a column cloze or target_cloze.
    """
    tasks = [
        task
        for task, rows in run.stimuli.items()
        if rows.asks_words and {*_SHARES} & rows.columns().keys()
    ]
    if len(tasks) != 1:
        problem = f"{', '.join(tasks)} have" if tasks else "no task has"
        rule = "give a run of one set of words with a column cloze, or a table of responses"
        raise BadInput(f"{run.path}: {problem} cloze probabilities: {rule}")
    columns = run.stimuli[tasks[0]].columns()
    words = _numbered(_rows(Table.of(str(run.path), columns, row_index(columns["id"]))))
    norms = Stimuli("cloze", {"id": columns["id"], **words.to_dict("list")}, str(run.path))
    return norms, run.predictions[tasks[0]]["none", 0]


# ---- measures -----------------------------------------------------------------------------------


def item_measures(
    cloze: stats.Values, log_prob: stats.Values, top_share: float
) -> dict[str, float]:
    """Returns the measures of an item; NaN where undefined.

    mass: sum of p over the words that people gave. top_agrees: whether the model's most probable
    word is a most frequent response. cross_entropy: -sum q log2 p, bits. divergence: this minus the
    entropy of q. These are undefined where the shares do not add up to 1 (but for rounding), since
    words are missing, and all but top_agrees where p of a word is not known. spearman: of q and p
    over the words with a known p, at least three.

    Args:
        cloze: share of the responses of each word, q, (n,).
        log_prob: of each word in nats, (n,); NaN where it is not known.
        top_share: share of the responses of the model's most probable word; NaN where it has none.
    """
    q = cloze[cloze > 0]
    nats = log_prob[cloze > 0]
    is_complete = abs(q.sum() - 1) <= _ROUNDING * len(q) + 1e-9
    is_known = is_complete and bool(np.isfinite(nats).all())
    has_top = is_complete and not math.isnan(top_share)
    cross_entropy = float(-(q * nats).sum() / math.log(2)) if is_known else math.nan
    pairs = np.column_stack([log_prob, cloze])[~np.isnan(log_prob)]
    return {
        "mass": float(np.exp(nats).sum()) if is_known else math.nan,
        "top_agrees": float(top_share >= q.max() - 1e-12) if has_top else math.nan,
        "cross_entropy": cross_entropy,
        "divergence": cross_entropy + float((q * np.log2(q)).sum()),
        "spearman": stats.point(pairs, "spearman") if len(pairs) >= 3 else math.nan,
    }


@dataclass(frozen=True, repr=False)
class ClozeAnalysis(Presentable):
    """What people said, and what models expect.

    Attributes:
        words: a row per model, item and word: item, context, right_context (if an item has one),
            word, count (where it is known), cloze, probability, surprisal (bits), rank, state
            (scored, censored, unscorable), model.
        items: a row per model and item: item, context, right_context, the measures, model.
        top_words: a row per model, item and word of the model's list: item, context,
            right_context, word, probability, is_said (by people), model.
        figures: a row per model and measure: model, measure, statistic, value, n (items; of
            spearman_pooled words), ci_low, ci_high.
        notes: what was read and left out, and how models were asked.
        name: of the file or run.
        comparisons: of the first model with each of the others, see `lmdiag.comparison.Comparison`;
            the difference in cross-entropy is that in divergence.
        reads: the first word in its context, with the share of the responses.
    """

    words: DataFrame
    items: DataFrame
    top_words: DataFrame
    figures: DataFrame
    notes: Sequence[str]
    name: str
    comparisons: Sequence[Any] = ()
    reads: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return f"<ClozeAnalysis of {self.name} by {', '.join(self.models)}>"

    @property
    def models(self) -> list[str]:
        """The names of the models."""
        return list(self.figures["model"].unique())

    def scores(self, model: str) -> dict[str, Scores]:
        """Returns measure -> its values for the items of a model, but for cross-entropy."""
        items = self.items[self.items["model"] == model]
        names = objects(items["item"].tolist())
        return {
            name: build(name, names, items[name].to_numpy(float), statistic)
            for name, statistic in MEASURES.items()
            if name != "cross_entropy"  # the same test as divergence
        }

    def missed(self, model: str) -> DataFrame:
        """Returns the words that people say, the least probable for the model first."""
        words = self.words[(self.words["model"] == model) & (self.words["cloze"] > 0)]
        words = words.dropna(subset="surprisal")
        return words.sort_values("surprisal", ascending=False, kind="stable")

    def unsaid(self, model: str) -> DataFrame:
        """Returns the model's top words that nobody said, the most probable first.

        Pieces of words and punctuation marks, which lists in unit token have, are left out.
        """
        words = self.top_words[(self.top_words["model"] == model) & ~self.top_words["is_said"]]
        words = words[words["word"].str.contains(r"^(?!##).*\w")]
        return words.sort_values("probability", ascending=False, kind="stable")

    def to_frame(self) -> DataFrame:
        """Returns a pandas table with a row per model and measure; see `figures`."""
        return self.figures.copy()

    def to_json(self) -> dict[str, Any]:
        """Returns all figures as plain values; undefined is None."""
        models = []
        for name, figures in self.figures.groupby("model", sort=False):
            values = figures.set_index("measure")[["value", "n", "ci_low", "ci_high"]]
            n_items = int((self.items["model"] == name).sum())
            models.append({"name": name, "items": n_items} | values.to_dict("index"))
        unsaid = concat([self.unsaid(model) for model in self.models])
        records = {
            name: table.astype(object).where(table.notna(), None).to_dict("records")
            for name, table in {"words": self.words, "unsaid": unsaid}.items()
        }
        comparisons = [
            {"base_model": self.models[0], "new_model": self.models[comparison.number]}
            | {name: value for name, value in vars(comparison).items() if name != "number"}
            for comparison in self.comparisons
        ]
        document = {"models": models, **records, "notes": self.notes, "comparisons": comparisons}
        plain: dict[str, Any] = to_jsonable_python(document, inf_nan_mode="null")
        return plain


def analyse_norms(
    norms: Stimuli, predictions: Sequence[Predictions], *, keep_case: bool = True
) -> ClozeAnalysis:
    """Returns what models expect where people gave their responses.

    Args:
        norms: what people said, see `read_norms`.
        predictions: of each model for the rows of the norms.
        keep_case: whether words that differ in letter case alone differ, for a cased model.

    Raises:
        BadInput: a model is there twice.
    """
    models = model_labels([asked.model for asked in predictions], predictions)
    if repeated := [model for model in models if models.count(model) > 1]:
        raise BadInput(f"two models are called {repeated[0]}: give one of them another name")
    notes = [*norms.notes]
    tables = []
    for model, of in zip(models, predictions, strict=True):
        if of.model:
            notes.append(f"{model}: {of.model.kind}, unit {of.unit}, {of.model.dtype}")
        folds = folds_for(of.model)
        if not keep_case and "case" not in folds:
            folds = ("case", *folds)
        notes.append(f"{model}: words are compared {match_rule(folds)}")
        tables.append(_of_model(norms, of, model, folds))
    words, items, tops = (concat(parts, ignore_index=True) for parts in zip(*tables, strict=True))
    figures = [row for model in models for row in _figures(model, words, items)]
    lines = [*notes, *_left_out(words, items)]
    share = norms.columns()["cloze"][0]
    reads = tuple(f"reads {line}, {share:.0%} of the responses" for line in first_rows(norms))
    return ClozeAnalysis(words, items, tops, DataFrame(figures), lines, norms.source, reads=reads)


def _of_model(
    norms: Stimuli, of: Predictions, model: str, folds: Collection[Fold]
) -> tuple[DataFrame, DataFrame, DataFrame]:
    """The tables of words, items and top words of one model."""
    table = items_of_predictions(of, norms, scored=False).rename(columns={"target": "word"})
    table = table.assign(model=model, rank=table["rank"].astype("Int64"))
    names = (*_ITEM, "word", "count", "cloze", "probability", "surprisal", "rank", "state", "model")
    words = table[[name for name in names if name in table]]
    items = []
    tops = []
    for _, group in words.groupby("item", sort=False):
        row = group.index[0]
        place = {name: norms.columns()[name][row] for name in _ITEM} | {"model": model}
        alike = [plain_word(word, folds) for word in group["word"]]
        nats = Series([of.log_prob[i] for i in group.index], alike, dtype=float)
        nats = nats[~nats.index.duplicated()]  # the same word for the model
        share_of = group["cloze"].groupby(alike, sort=False).sum()
        listed = of.top_words[row] or []
        shares = [share_of.get(plain_word(word, folds), 0.0) for word in listed]
        top_share = shares[0] if shares else math.nan
        items.append(place | item_measures(share_of.to_numpy(), nats.to_numpy(), top_share))
        probabilities = np.exp(of.top_log_probs[row] or [math.nan] * len(listed))
        tops += [
            place | {"word": word, "probability": p, "is_said": share > 0}
            for word, p, share in zip(listed, probabilities.tolist(), shares, strict=True)
        ]
    columns = [*_ITEM, "word", "probability", "is_said", "model"]
    return words, DataFrame(items), DataFrame(tops, columns=columns)


def _figures(model: str, words: DataFrame, items: DataFrame) -> Iterator[dict[str, Any]]:
    """Yields the measures of a model: over items, and the correlation over all words."""
    values_of = items[items["model"] == model]
    bits, cloze = words.loc[words["model"] == model, ["surprisal", "cloze"]].to_numpy(float).T
    pairs = cloze_correlations(objects(range(len(bits))), -bits, cloze)[0].values
    for measure, statistic in {**MEASURES, POOLED: "spearman"}.items():
        values = pairs if measure == POOLED else values_of[measure].dropna().to_numpy()
        figure = asdict(stats.estimate(values, statistic))
        if measure == POOLED or (statistic == "mean" and len(values) < stats.FEWEST):
            figure |= {"ci_low": math.nan, "ci_high": math.nan}
        yield {"model": model, "measure": measure, "statistic": statistic} | figure


def _left_out(words: DataFrame, items: DataFrame) -> Iterator[str]:
    """Yields the words without a probability, and the items without a measure."""
    for (model, state), lost in words[words["state"] != "scored"].groupby(["model", "state"]):
        names = [f"{word.word} (item {word.item})" for word in lost.itertuples()]
        yield f"{model}: {len(lost)} {state} words, never counted as 0: {first_few(names, 5)}"
    for model, rows in items.groupby("model", sort=False):
        if lost := rows["item"][rows["divergence"].isna()].tolist():
            why = "the shares do not add up to 1, or a word has no probability"
            what = f"{len(lost)} of {len(rows)} items have no mass and no divergence"
            yield f"{model}: {what}, since {why}: {first_few(lost, 5)}"
