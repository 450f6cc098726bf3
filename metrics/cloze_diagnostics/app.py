"""The page of the metric on the Hub: takes rows and predictions as JSON lines, shows measures.

`launch_gradio_widget` of `evaluate` needs parts that gradio removed in version 4.
"""

import json
from pathlib import Path
from typing import Any

import evaluate
import gradio

ROWS = """\
{"id": "1-true", "item": "1", "condition": "true", "context": "A penguin is a", \
"right_context": "", "target": "bird", "good": true, "contrast": "1", "expected": ["bird"]}
{"id": "1-false", "item": "1", "condition": "false", "context": "A penguin is a", \
"right_context": "", "target": "tool", "good": false, "contrast": "1", "expected": []}
"""
PREDICTIONS = """\
{"top_words": ["bird", "seal", "person"], "log_prob": -0.6}
{"top_words": ["bird", "seal", "person"], "log_prob": -8.1}
"""


def compute(predictions: str, rows: str, threshold: float = 0.01) -> dict[str, Any]:
    """Returns the measures; an error in the input is shown on the page."""
    metric = evaluate.load(str(Path(__file__).with_name("cloze_diagnostics.py")))
    try:
        return dict(
            metric.compute(
                predictions=[json.loads(line) for line in predictions.splitlines() if line.strip()],
                references=[json.loads(line) for line in rows.splitlines() if line.strip()],
                threshold=threshold,
            )
        )
    except Exception as error:
        raise gradio.Error(str(error)) from error


def page() -> gradio.Interface:
    """Returns the page."""
    readme = Path(__file__).with_name("README.md").read_text(encoding="utf-8")
    return gradio.Interface(
        compute,
        inputs=[
            gradio.Textbox(PREDICTIONS, lines=6, label="Predictions, one JSON object per line"),
            gradio.Textbox(ROWS, lines=6, label="Rows of the data set, in the same order"),
            gradio.Number(0.01, label="Threshold of sensitivity, a difference in probability"),
        ],
        outputs=gradio.JSON(label="Measures"),
        title="Cloze diagnostics",
        article=readme.split("---\n", 2)[-1],
        flagging_mode="never",
    )


if __name__ == "__main__":
    page().launch()
