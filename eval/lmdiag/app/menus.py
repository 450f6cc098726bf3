"""What the menus of the page offer, in the words of the field."""

from __future__ import annotations

from collections.abc import Mapping

from lmdiag.tables.table_files import TABLE_SUFFIXES

FUNCTION_TEXTS = {
    "run": "Ask models about the texts",
    "cloze": "Compare responses of people with models (cloze norms)",
    "fit": "Fit reading times with the surprisals of models",
    "analyse": "Analyse a response of people, without a model",
}
"""Function of the Python API -> its text in the menu, which says what it does."""

FIT_NEEDS = "Fitting reading times needs a column of words, one in each row, and one of times."

USES = {
    "sentence": "sentence",
    "context": "context (text before the word)",
    "target": "target (word that is scored)",
    "right_context": "text after the word",
    "sentence_good": "good sentence of a pair",
    "sentence_bad": "bad sentence of a pair",
    "wide": "texts of one condition",
    "region": "region (part of the sentence)",
    "critical": "critical word, or its position",
    "item": "item",
    "condition": "condition",
    "response": "response",
    "text": "name of the text",
    "position": "position of the word",
    "word": "word",
}
"""Uses of a column that a person can choose -> their names in the menu."""

DETECTED_USES = {"covariate", "break-down", "list", "reader", "predictor", "control"}
"""Uses of a column that lmdiag recognises by its values, and that nobody can choose."""

EXAMPLE_TABLES: Mapping[str, tuple[str, str]] = {
    "2 x 2 design": ("starter.design.jsonl", "attraction.jsonl"),
    "Words in context": ("starter.rows.jsonl", "words.jsonl"),
    "Cloze responses": ("starter.cloze.jsonl", "responses.jsonl"),
    "Reading times": ("example.times.csv", "times.csv"),
    "Acceptability ratings": ("example.ratings.csv", "ratings.csv"),
}
"""Name of an example -> its file in `cards/`, and the name of this file on the page."""

UPLOADED_SUFFIXES = (*TABLE_SUFFIXES, ".txt")
"""Endings of the names of tables that can be uploaded."""

LISTED_MODELS = (
    "demo:causal", "demo:masked", "gpt2", "distilgpt2", "bert-base-uncased", "roberta-base",
    "HuggingFaceTB/SmolLM2-135M", "EleutherAI/pythia-70m",
)  # fmt: skip
"""Models that the menu lists; others can be typed."""

MAX_MODELS = 6

PUBLISHED_TASKS = {"cprag102": "CPRAG-102", "role88": "ROLE-88", "neg136": "NEG-136"}
"""Published diagnostics -> their names."""

ITEM_SETS = {"lmdiag": "published items (downloaded on first use)", "demo": "small demo items"}
"""Data set that has published diagnostics -> its description."""

UNIT_NAMES = {"": "default", "token": "token", "word": "whole word"}
"""Unit of probabilities, "" for the default -> its name in the menu."""

WHOLE_OR_EACH = {"": "whole sentence", "all": "each region by itself"}
"""Region whose surprisal is analysed -> its name in the menu, which also has single regions."""

DOWNLOADS = {"page": ".html", "Word": ".docx", "LaTeX": ".tex", "csv": ".csv", "charts": ""}
"""Name of a download -> the ending of its file; "" for a folder, which is sent as a zip archive."""


def menu_choices(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns the choices of a menu as gradio takes them: pairs of a text and its value.

    `texts` has value -> text: {"run": "Ask models"} becomes [("Ask models", "run")].
    """
    return [(text, value) for value, text in texts.items()]
