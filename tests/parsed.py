"""Pages as their elements, for tests that need no browser."""

import json
from html.parser import HTMLParser

VOID = {"meta", "link", "input", "br", "img", "wbr"}


class ParsedPage(HTMLParser):
    """The elements of a page and the text between them; fails if the elements do not nest.

    Attributes:
        tags: the elements in their order, with their attributes.
        open: elements that are not closed.
        texts: what stands between the elements.
        code: the style sheet, and the script that runs.
        blocks: type of the scripts that do not run -> their contents.
    """

    def __init__(self, html):
        super().__init__()
        self.tags = []
        self.open = []
        self.texts = []
        self.code = {"style": "", "script": ""}
        self.blocks = {}
        self.feed(html)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.handle_startendtag(tag, attrs)
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, {name: value or "" for name, value in attrs}))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        inside = self.open[-1] if self.open else ""
        kind = self.tags[-1][1].get("type") if inside == "script" else None
        if kind:
            self.blocks.setdefault(kind, []).append(data)
        elif inside in self.code:
            self.code[inside] += data
        else:
            self.texts.append(data)

    @property
    def attributes(self):
        """Tag, name and value of every attribute."""
        return [(tag, *attribute) for tag, given in self.tags for attribute in given.items()]

    @property
    def ids(self):
        return [value for _, name, value in self.attributes if name == "id"]

    @property
    def links(self):
        return {value for _, name, value in self.attributes if name.endswith("href")}

    @property
    def text(self):
        return " ".join(" ".join(self.texts).split())

    @property
    def charts(self):
        """Name of each chart -> its specification."""
        names = [value for _, name, value in self.attributes if name == "data-name"]
        return dict(zip(names, map(json.loads, self.blocks["application/json"]), strict=False))
