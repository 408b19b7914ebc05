"""Reads a page of HTML as a browser would: text, elements, and what they refer to."""

from html.parser import HTMLParser
from typing import Any

VOID = {"meta", "img", "br", "link", "input", "hr"}


class Page(HTMLParser):
    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, Any]]] = []
        self.texts: list[str] = []
        self.styles: list[str] = []
        self.open: list[str] = []
        self.feed(html)
        self.close()

    @property
    def text(self) -> str:
        return "\n".join(self.texts).replace("\xa0", " ")

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        where = self.styles if self.open and self.open[-1] == "style" else self.texts
        where.append(data)


def read_page(html: str) -> Page:
    page = Page(html)
    assert not page.open
    return page
