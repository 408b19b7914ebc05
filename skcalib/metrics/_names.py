"""Metrics by function, by name or by scorer."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, TypeAlias

from ..utils.checking._labels import cut
from ..utils.meta._private import LabeledProbaScorer

# The type of a parameter `metric`: a function, a name, or a scorer, which is callable, too.
AnyMetric: TypeAlias = Callable[..., float] | str
# Metrics by name. `_scorer` fills it, since it imports the modules that look names up here.
BY_NAME: dict[str, Callable[..., Any]] = {}


def metric_of(metric: Any) -> Any:
    """Return the function of a metric that is given by name or by scorer, also in a partial.

    A function is returned as it is. The prefix "neg_" of a scorer is ignored.
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
    """Return the name, without "neg_", of a metric that is given by name, function or scorer."""
    if isinstance(metric, LabeledProbaScorer) and not metric.options:
        metric = metric.name
    name = metric if isinstance(metric, str) else getattr(metric, "__name__", metric)
    return name.removeprefix("neg_") if isinstance(name, str) else name
