"""The parts of a report, whatever it is written in: HTML and Markdown are made from them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Text:
    """A paragraph; a note is small print."""

    text: str
    note: bool = False


@dataclass(frozen=True)
class Table:
    """Rows of text. The first column names the row; the others are aligned to the right."""

    header: list[str]
    rows: list[list[str]]
    caption: str = ""


@dataclass(frozen=True)
class Code:
    """Lines of Python."""

    text: str


@dataclass(frozen=True)
class Samples:
    """Samples with a picture or a text, a heading and lines below it."""

    caption: str
    entries: list[dict[str, Any]]


@dataclass(frozen=True)
class Picture:
    """A drawing, by the name that :func:`draw` knows, and what a reader should see in it."""

    name: str
    caption: str


@dataclass(frozen=True)
class Section:
    """A question and its answer; where the answer is wide, pictures stand above it."""

    title: str
    blocks: list[Text | Table | Code | Samples]
    pictures: list[Picture] = field(default_factory=list)
    wide: bool = False


@dataclass(frozen=True)
class Document:
    """The whole report."""

    title: str
    subtitle: str
    kind: str
    verdict: str
    tiles: list[tuple[str, str]]
    sections: list[Section]
