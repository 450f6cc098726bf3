"""What the menus of the page offer, in the words of the field."""

from __future__ import annotations

from collections.abc import Mapping

from lmdiag.tables.table_files import TABLE_SUFFIXES

PURPOSES = {
    "run": "Ask models about the texts",
    "cloze": "Compare responses of people with models (cloze norms)",
    "fit": "Fit reading times with the surprisals of models",
    "analyse": "Analyse a response of people, without a model",
}
"""Function of a table -> in words."""

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
"""Uses that a person can choose for a column -> in words."""

FOUND_USES = {"covariate", "break-down", "list", "reader", "predictor", "control"}
"""Uses that follow from the values, and that nobody chooses."""

EXAMPLE_TABLES: Mapping[str, tuple[str, str]] = {
    "2 x 2 design": ("starter.design.jsonl", "attraction.jsonl"),
    "Words in context": ("starter.rows.jsonl", "words.jsonl"),
    "Cloze responses": ("starter.cloze.jsonl", "responses.jsonl"),
    "Reading times": ("example.times.csv", "times.csv"),
    "Acceptability ratings": ("example.ratings.csv", "ratings.csv"),
}
"""Examples -> the file in `cards/`, and its name on the page."""

UPLOADED_SUFFIXES = (*TABLE_SUFFIXES, ".txt")
"""Endings of the names of tables that can be uploaded."""

LISTED_MODELS = (
    "demo:causal", "demo:masked", "gpt2", "distilgpt2", "bert-base-uncased", "roberta-base",
    "HuggingFaceTB/SmolLM2-135M", "EleutherAI/pythia-70m",
)  # fmt: skip
"""Models that the menu lists; others can be typed."""

MOST_MODELS = 6

PUBLISHED_TASKS = {"cprag102": "CPRAG-102", "role88": "ROLE-88", "neg136": "NEG-136"}
"""Published diagnostics -> their names."""

ITEM_SETS = {"lmdiag": "published items (downloaded on first use)", "demo": "small demo items"}
"""Data set of the published diagnostics -> in words."""

UNIT_NAMES = {"": "default", "token": "token", "word": "whole word"}
"""Unit of probabilities -> in words."""

WHOLE_OR_EACH = {"": "whole sentence", "all": "each region by itself"}
"""Region whose surprisal is the response -> in words; the numbers of regions are further ones."""

DOWNLOADS = {"page": ".html", "Word": ".docx", "LaTeX": ".tex", "csv": ".csv", "charts": ""}
"""Downloads -> endings of their files, without one a folder."""


def menu_of(texts: Mapping[str, str]) -> list[tuple[str, str]]:
    """Returns values with their words as gradio takes them: the words first."""
    return [(text, value) for value, text in texts.items()]
