"""The parts of a report, and numbers as text: HTML and Markdown are made from them."""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

NONE = "-"
# With a space at which no line breaks.
PER_CENT = "\u00a0%"


def number(value: float | None, digits: int = 3) -> str:
    """Return a number with fixed decimals; small ones other than 0 are not rounded away."""
    if value is None or math.isnan(value):
        return NONE
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if value and abs(value) < 0.5 * 10**-digits:
        return f"{value:.1g}"
    return f"{value:.{digits}f}"


def percent(value: float | None, digits: int = 1) -> str:
    """Return a fraction in per cent; one below 1 is never shown as 100 %."""
    if value is None or math.isnan(value):
        return NONE
    text = f"{100 * value:.{digits}f}"
    if value < 1 and float(text) == 100:
        text = f">{100 - 10**-digits:.{digits}f}"
    return text + PER_CENT


def probability(value: float) -> str:
    """Return a probability with three decimals; one below them is said to be so."""
    return "<0.001" if value < 0.001 else f"{value:.3f}"


def interval(value: Mapping[str, Any], digits: int = 3) -> str:
    """Return the ends of an interval."""
    if math.isnan(value["low"]):
        return NONE
    return f"{number(value['low'], digits)} to {number(value['high'], digits)}"


def with_interval(value: Mapping[str, Any]) -> str:
    """Return a number and its interval."""
    return f"{number(value['value'])} ({interval(value)})"


def percent_interval(value: Mapping[str, Any]) -> str:
    """Return a fraction in per cent with its interval."""
    if math.isnan(value["value"]):
        return NONE
    low, high = 100 * value["low"], 100 * value["high"]
    return f"{percent(value['value'])} ({low:.1f}-{high:.1f})"


def threshold(value: float | None) -> str:
    """Return a confidence; where it would round to 1, its distance from 1."""
    if value is not None and 0 < 1 - value < 5e-5:
        return f"1 - {1 - value:.1g}"
    return number(value, 4)


def count(value: float) -> str:
    """Return a count in groups of three digits."""
    return f"{value:,.0f}".replace(",", "\u00a0")


# Characters without a sign of their own: controls and formats (those that turn the direction of
# what follows among them), halves of a pair that UTF-8 cannot write, ends of lines and paragraphs.
_UNSEEN = ("Cc", "Cf", "Cs", "Zl", "Zp")
# The joiners within an emoji or a word of Persian are at home between letters beyond ASCII.
_BARE_JOINER = re.compile("(?<![^\0-\x7f])[\u200c\u200d]|[\u200c\u200d](?![^\0-\x7f])")
_KEPT = "\t\n\r\u200c\u200d"
# What stands between these marks has a direction of its own, and turns nothing around it.
_ISOLATED = re.compile("\u2068([^\u2066-\u2069]*)\u2069")


def visible(text: str) -> str:
    """Return text that any page can hold: what no screen shows becomes its code.

    The marks of :func:`isolated` stay.
    """
    pieces = map(_seen, _ISOLATED.split(text))
    return "".join(f"\u2068{x}\u2069" if k % 2 else x for k, x in enumerate(pieces))


def _seen(text: str) -> str:
    text = _BARE_JOINER.sub(lambda found: _code(found[0]), text)
    return "".join(
        _code(c) if c not in _KEPT and unicodedata.category(c) in _UNSEEN else c for c in text
    )


def label(value: Any) -> str:
    """Return a label or a name as one line that differs from that of every other name.

    Spaces that a page would drop become their codes as well: at an end, after a space, of
    another width (but for that of Chinese and Japanese), tabs and new lines.
    """
    text = re.sub(
        r"^\s|\s$|(?<=\s)\s|[^\S \u3000]", lambda found: _code(found[0]), _seen(str(value))
    )
    return text or "''"


def isolated(name: str) -> str:
    """Return a name for a sentence: one that runs from right to left turns nothing around it."""
    turns = any(unicodedata.bidirectional(letter) in ("R", "AL") for letter in name)
    return f"\u2068{name}\u2069" if turns else name


def in_sentence(value: Any) -> str:
    """Return a label or a name as it stands in a sentence or a table."""
    return isolated(label(value))


def apart(names: Sequence[Any]) -> list[Any]:
    """Return the names on one page, of which no two look alike for the form of their letters.

    A letter with a mark is one character or two (in macOS's names of files, for instance), which
    Unicode calls equal. Where names differ by that alone, those of two show codes.
    """
    forms = [unicodedata.normalize("NFC", x) if isinstance(x, str) else x for x in names]
    times = Counter(forms)
    return [
        "".join(map(_beyond_ascii, x)) if times[form] > 1 and x != form else x
        for x, form in zip(names, forms)
    ]


def _beyond_ascii(letter: str) -> str:
    return letter if letter.isascii() else _code(letter)


def _code(letter: str) -> str:
    escaped = letter.encode("unicode_escape").decode()
    return escaped if escaped != letter else f"\\x{ord(letter):02x}"


def points(value: float) -> str:
    """Return a difference of fractions in percentage points."""
    shown = f"{100 * value:.0f}" if round(100 * value, 1) >= 10 else f"{100 * value:.1f}"
    return f"{shown} point" + ("" if shown in ("1", "1.0") else "s")


def said_and_observed(view: Mapping[str, Any]) -> tuple[str, str, str]:
    """Return what was said and observed, and the range, with decimals that tell them apart."""
    observed = view["is"]
    for digits in range(3):
        ends = [f"{100 * observed[end]:.{digits}f}" for end in ("value", "low", "high")]
        if f"{100 * view['says']:.{digits}f}" not in ends:
            break
    said = f"{100 * view['says']:.{digits}f}"
    return said + PER_CENT, ends[0] + PER_CENT, f"{ends[1]} to {ends[2]}{PER_CENT}"


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
    name: str = "numbers"


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
    """A drawing by matplotlib, of a size in inches, and what a reader should see in it."""

    draw: Callable[[Any], Any]
    size: tuple[float, float]
    caption: str


@dataclass(frozen=True)
class Chart:
    """What was said (a ring) against what was observed (a dot on a bar), a row for everybody and
    for every part: dicts of ``name``, ``says``, ``value``, ``low``, ``high``, ``n`` and ``off``.
    """

    heading: str
    rows: list[dict[str, Any]]
    caption: str


@dataclass(frozen=True)
class Section:
    """A question, folded, and its answer; pictures stand beside the blocks."""

    title: str
    blocks: list[Any]
    pictures: list[Picture] = field(default_factory=list)


@dataclass(frozen=True)
class Tile:
    """A question and its answer in a few words; the tone is "good", "open", "bad" or none."""

    question: str
    answer: str
    detail: str
    tone: str = ""


@dataclass(frozen=True)
class Advice:
    """What to do, and what follows in the same sentence: how, and why."""

    what: str
    why: str


@dataclass(frozen=True)
class Document:
    """The whole report: what is on the first screen, and the sections that are folded below."""

    title: str
    subtitle: str
    tone: str
    headline: str
    explanation: str
    tiles: list[Tile]
    overview: Chart | Picture | Table
    advice: list[Advice]
    sections: list[Section]
