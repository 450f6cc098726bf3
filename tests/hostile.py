"""Texts that somebody could put into a data set, a model's name or its vocabulary, to do harm.

Every format that lmdiag writes is tested with all of them (`test_hostile_text.py`).
"""

import re

from invented_runs import json_lines

from lmdiag.stimuli.values.marks import MARKUP

HOSTILE = {
    "colour": "\x1b[31mred\x1b[0m",
    "title of the terminal": "\x1b]0;owned\x07",
    "link of the terminal": "\x1b]8;;http://evil.example\x1b\\click\x1b]8;;\x1b\\",
    "8-bit control": "\x9b2Jgone",
    "carriage return": "safe\roverwritten",
    "line feed": "one\ntwo",
    "backspace": "abc\b\b\bxyz",
    "right to left": "\u202egnp.exe",
    "isolate": "\u2066gnp\u2069",
    "zero width": "pa\u200bypal",
    "rich markup": "[bold red]loud[/bold red]",
    "rich link": "[link=http://evil.example]click[/link]",
    "pipe": "a|b",
    "backtick": "`code`",
    "Markdown link": "[click](javascript:alert(1))",
    "Markdown image": "![seen](http://evil.example/pixel.png)",
    "address": "http://evil.example/ https://evil.example www.evil.example",
    "element": "<script>document.title = 'owned'</script>",
    "image": "<img src=x onerror=alert(1)>",
    "attribute": '" onmouseover="alert(1)" \'',
    "entity": "&lt;script&gt; &#60;",
    "end of SVG text": "</text></svg><script>alert(1)</script>",
    "template": "{{ 7 * 7 }}{% raw %}",
    "LaTeX file": r"\input{/etc/passwd}",
    "LaTeX write": r"\immediate\write18{id}",
    "LaTeX characters": "100% #1 & ~x^2_3 $y$ {z}",
    "mathematics": r"$\frac{1}{0}$",
    "formula": "=cmd|'/C calc'!A0",
    "formula +": "+1+cmd",
    "formula -": "-1+cmd",
    "formula @": "@SUM(1)",
    "formula after tab": "\t=1+1",
    "wide formula": "＝1+1",
    "constructor of objects": "constructor",
    "method of objects": "toString",
    "value of objects": "valueOf",
    "prototype": "__proto__",
    "property of objects": "hasOwnProperty",
}
"""What it is -> the text; NUL is refused in cells."""

TEXTS = list(HOSTILE.values())
FEW = 8
"""Levels of a column: with more it would not be a break-down."""


def without_markup(text):
    """The text with a space after the first character of all markup, which is refused in texts."""
    return re.sub(MARKUP, lambda found: f"{found[0][0]} {found[0][1:]}", text, flags=re.IGNORECASE)


def hostile_rows(path):
    """Writes two rows for each text, which stands in every column that may hold it."""
    breakdowns = {TEXTS[i]: TEXTS[i : i + FEW] for i in range(0, len(TEXTS), FEW)}
    rows = []
    for i, text in enumerate(TEXTS):
        expected = re.sub(r"([,;|])\s+", r"\1", text).strip()  # other blanks are refused there
        asked = without_markup(text)
        row = {"item": text, "condition": TEXTS[i % FEW], "context": f"{asked} x"}
        row |= {"right_context": asked, "contrast": text}
        row |= {name: levels[i % len(levels)] for name, levels in breakdowns.items()}
        rows += [
            row | {"id": f"{text}-{good}", "target": f"{good}{asked}x", "good": good}
            | {"expected": [expected] if good else []}
            for good in (True, False)
        ]  # fmt: skip
    return json_lines(path, *rows)
