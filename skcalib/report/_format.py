"""Numbers as text."""

from __future__ import annotations

import math
from collections.abc import Mapping
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


def percent_interval(value: Mapping[str, Any]) -> str:
    """Return a fraction in per cent with its interval."""
    if math.isnan(value["value"]):
        return NONE
    low, high = 100 * value["low"], 100 * value["high"]
    return f"{percent(value['value'])} ({low:.1f}-{high:.1f})"


def threshold(value: float | None) -> str:
    """Return a confidence; one that would be rounded to 1 is told by its distance from 1."""
    if value is not None and 0 < 1 - value < 5e-5:
        return f"1 - {1 - value:.1g}"
    return number(value, 4)


def count(value: float) -> str:
    """Return a count in groups of three digits."""
    return f"{value:,.0f}".replace(",", "\u00a0")


def label(value: Any) -> str:
    """Return a label as text."""
    return str(value)
