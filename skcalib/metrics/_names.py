"""A metric by its function, its name or its scorer: one name everywhere."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ..utils.checking._labels import cut
from ..utils.meta._private import LabeledProbaScorer

# What takes a metric takes its function, its name or, behind either, its scorer.
AnyMetric: TypeAlias = Callable[..., float] | str
# The scorers enter their metrics: what they are made of stands below what asks for names.
BY_NAME: dict[str, Callable[..., Any]] = {}


def metric_of(metric: Any) -> Any:
    """Return the function of a metric that is given by its name or its scorer, of a partial too.

    A function stays as it is. The sign of a scorer ("neg_") says nothing of the metric.
    """
    if isinstance(metric, partial):
        return partial(metric_of(metric.func), *metric.args, **metric.keywords)
    if isinstance(metric, LabeledProbaScorer):
        return partial(metric_of(metric.name), **metric.options)
    if not isinstance(metric, str):
        return metric
    if (name := metric.removeprefix("neg_")) in BY_NAME:
        return BY_NAME[name]
    names = [name for name in BY_NAME if name.endswith("calibration_error")]
    raise ValueError(f"metric must be a function or one of {names}, got {cut(metric)}.")


def metric_name(metric: Any) -> Any:
    """Return the name of a metric that is given by it, by its function or by its scorer."""
    if isinstance(metric, LabeledProbaScorer) and not metric.options:
        metric = metric.name
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", metric)
    return name.removeprefix("neg_") if isinstance(name, str) else name
