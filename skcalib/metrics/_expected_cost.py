"""Costs of decisions: of the model, recalibrated, and of one decision for all samples."""

from __future__ import annotations

from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import t as student
from sklearn.utils import check_random_state

from ..utils._arrays import as_floats
from ..utils._backends import is_chunked
from ..utils._compat import Interval, validate_params
from ..utils._labels import get_row_names, order_columns
from ..utils._output import as_table
from ..utils._proba import Predictions, add_unseen, check_predictions
from ._decisions import average_over_chunks
from ._per_sample import make_two_columns
from ._registry import register, register_losses
from ._resampling import warn_of_few_groups
from ._risk_model import Array, Sample, fit_logistic, get_groups

if TYPE_CHECKING:
    import pandas as pd

_COLUMNS = (
    *("cost", "low", "high", "predicted"),
    *("difference", "difference_low", "difference_high"),
)
# A probability of 0 has no logarithm; for the recalibration it counts as this.
_SMALLEST = 1e-7


def check_costs(costs: Any, n_samples: int, n_classes: int, *, name: str = "costs") -> Array:
    """Return costs of shape (n_decisions, n_classes), or (n_samples, n_decisions, n_classes)."""
    table: Array = as_floats(costs, name=name).astype(np.float64)
    of_samples = (n_samples,) if table.ndim == 3 else ()
    if (
        table.ndim not in (2, 3)
        or table.shape[:-2] != of_samples
        or table.shape[-1] != n_classes
        or table.shape[-2] < 1
    ):
        raise ValueError(
            f"{name} must have shape (n_decisions, {n_classes}), a column for every class, or "
            f"({n_samples}, n_decisions, {n_classes}), got shape {table.shape}."
        )
    if not np.isfinite(table).all():
        raise ValueError(f"{name} must be finite, got NaN or infinity.")
    return table


def compute_costs_of_decisions(proba: NDArray[Any], costs: Array) -> Array:
    """Return the expected cost of every decision, (n_samples, n_decisions)."""
    proba = proba.astype(np.float64)
    return proba @ costs.T if costs.ndim == 2 else np.einsum("nk,ndk->nd", proba, costs)


@register("expected_cost")
def expected_cost(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    costs: ArrayLike | None = None,
    *,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> float:
    """Mean cost of the decisions that the probabilities make look cheapest.

    For every sample, the decision d of least expected cost ``sum_k costs[d, k] p_k`` is taken
    [1]_; what it costs is ``costs[d, y]``. There may be more decisions than classes: a row of
    equal costs is asking a person, who is right and costs that much. With two classes and no other
    decisions, one acts from the probability
    ``(c_FP - c_TN) / (c_FP - c_TN + c_FN - c_TP)`` on.

    Parameters
    ----------
    y_true : of :func:`expected_calibration_error`
    y_proba : array-like or dask array of shape (n_samples, n_classes) or (n_samples,)
        Probabilities, as in :func:`expected_calibration_error`. The mean over the chunks of a dask
        array is computed where they are.
    costs : array-like of shape (n_decisions, n_classes) or (n_samples, n_decisions, n_classes), \
default=None
        Cost of every decision for every true class, in the order of the columns of `y_proba` (of
        the probability of the positive class: negative, positive), in any unit; negative = gain.
        The columns of a frame that have names are matched to the classes by them.
        Or one such table for every sample, as where a fraud costs its amount. None: every wrong
        class costs 1, so that the result is the error rate.
    sample_weight, labels, pos_label : of :func:`expected_calibration_error`

    Returns
    -------
    cost : float
        In the unit of `costs`, smaller = better.

    Raises
    ------
    ValueError
        If `costs` has no column for every class, or is not finite.

    See Also
    --------
    cost_summary : Beside what the model predicts, a recalibrated model and constant decisions.
    net_benefit : Two decisions, for one ratio of costs.
    skcalib.selection.MinimumCostClassifier : Takes these decisions.

    Notes
    -----
    As a score for a search of scikit-learn:
    ``get_scorer("neg_expected_cost", costs=[[0, 200], [5, 5]])``. Of decisions of equal expected
    cost, the first is taken.

    References
    ----------
    .. [1] C. Elkan, "The Foundations of Cost-Sensitive Learning", IJCAI 2001.

    Examples
    --------
    Missing a fraud costs 200, checking a payment 5:

    >>> from skcalib.metrics import expected_cost
    >>> costs = [[0, 200], [5, 5]]
    >>> expected_cost([0, 0, 0, 1, 1], [0.001, 0.01, 0.04, 0.02, 0.6], costs)
    42.0
    """
    if is_chunked(y_proba):
        if costs is not None and np.ndim(costs) == 3:
            raise ValueError(
                "costs must have shape (n_decisions, n_classes) if y_proba is a dask array, got "
                "one table for every sample."
            )
        of_part = partial(expected_cost, costs=costs)
        return float(
            average_over_chunks(of_part, y_true, y_proba, sample_weight, labels, pos_label)[0]
        )
    predictions = check_predictions(y_true, y_proba, sample_weight, labels, pos_label)
    costs = order_columns(costs, predictions.classes, name="costs")
    costs_of_labels = _select_labels(_compute_losses(predictions.proba, costs), predictions)
    return float(np.average(costs_of_labels, weights=predictions.weight))


def _compute_costs_of_classes(rule: _Rule, table: Array) -> Array:
    """Return what the decisions cost for every class, (n_samples, n_classes)."""
    if table.ndim == 2:
        return table[rule.decided]
    return table[np.arange(len(rule.decided)), rule.decided]


def _compute_losses(proba: NDArray[Any], costs: ArrayLike | None = None) -> Array:
    """Return what the decisions of least expected cost cost for every class, (n_samples, K)."""
    proba = make_two_columns(proba)
    table = check_costs(1 - np.eye(proba.shape[1]) if costs is None else costs, *proba.shape)
    rule = _Rule("model", compute_costs_of_decisions(proba, table).argmin(axis=1), proba)
    return _compute_costs_of_classes(rule, table)


register_losses(expected_cost, _compute_losses)


def _select_labels(of_classes: Array, predictions: Predictions) -> Array:
    """Return the costs of the true classes, (n_samples,)."""
    if predictions.is_soft:
        return (of_classes * predictions.truth).sum(axis=1)
    return of_classes[np.arange(len(of_classes)), predictions.codes]


class _Rule(NamedTuple):
    """A decision for every sample, and the probabilities that claim a cost for it."""

    name: str
    decided: NDArray[np.intp]
    proba: Array


@validate_params(
    {
        "n_folds": [Interval(Integral, 2, None, closed="left")],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "random_state": ["random_state"],
        "as_frame": ["boolean"],
    }
)
def cost_summary(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    costs: ArrayLike | None = None,
    *,
    decisions: ArrayLike | None = None,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    n_folds: int = 10,
    confidence_level: float = 0.95,
    random_state: Any = None,
    as_frame: bool = False,
) -> NDArray[Any] | pd.DataFrame:
    """Cost of a model's decisions, of those after recalibration, and of constant decisions.

    The difference to the recalibrated model is what miscalibration costs; that to the best
    constant decision is what the model is worth.

    Parameters
    ----------
    y_true, y_proba, costs : of :func:`expected_cost`
    decisions : array-like of shape (n_decisions,), default=None
        Names of the rows of `costs`. None means those of its index, if `costs` is a frame that
        names its rows, and 0, ..., n_decisions - 1 otherwise.
    groups : array-like of shape (n_samples,), default=None
        The group of every sample, such as its patient: texts, numbers, categories. Samples of a
        group are not taken for independent, and the folds keep them together. There should be 30
        or more; fewer than 20 bring a warning.
    sample_weight, labels, pos_label : of :func:`expected_calibration_error`
    n_folds : int, default=10
        Number of folds of the recalibration, at least 2; with fewer groups (or samples), each is
        one.
    confidence_level : float, default=0.95
        Level of every single interval, in (0, 1).
    random_state : int, RandomState instance or None, default=None
        Draws the folds.
    as_frame : bool, default=False
        Whether to return a DataFrame instead of a structured array.

    Returns
    -------
    table : structured array or DataFrame, one line per rule
        "model", "recalibrated" and "always <decision>" for every decision, with ``rule``, the
        mean ``cost`` (smaller = better), the ends ``low`` and ``high`` of its interval,
        ``predicted``, the cost if the probabilities behind the decisions were right, and the cost
        less that of the model: ``difference`` (negative = cheaper than the model),
        ``difference_low`` and ``difference_high``. For the model the difference is 0 and its
        interval NaN.

    Raises
    ------
    ValueError
        If `costs` has no column for every class, if `decisions` are not as many as its rows, or
        if all samples are one group.

    Warns
    -----
    SkcalibWarning
        If there are fewer than 20 groups.

    See Also
    --------
    expected_cost : The cost of the model alone.
    decision_curve : Two decisions, at all ratios of costs.
    score_decomposition : The regret of miscalibration, on average over all costs.

    Notes
    -----
    The recalibration is logistic, ``softmax(b log p + a)`` with one slope b and an intercept for
    every class, fitted without penalty to the other folds; a probability of 0 counts as 1e-7.
    Constant decisions claim what the probabilities of the model say. Intervals are Student's;
    their standard errors come from the sums over groups (without `groups`, every sample is one)
    or, if larger, from labels drawn from the recalibrated probabilities, with four pseudo-samples
    spread evenly over the classes: few samples may hold none of a rare, large loss.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import cost_summary
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.beta(1, 9, size=2000)
    >>> y_true = rng.uniform(size=2000) < risk
    >>> table = cost_summary(
    ...     y_true, risk**2, [[0, 10], [1, 1]], decisions=["wait", "act"], random_state=0
    ... )
    >>> for row in table:
    ...     print(f"{row['rule']}: {row['cost']:.3f}, predicted {row['predicted']:.2f}")
    model: 0.868, predicted 0.17
    recalibrated: 0.628, predicted 0.61
    always wait: 1.015, predicted 0.19
    always act: 1.000, predicted 1.00
    """
    predictions = check_predictions(y_true, y_proba, sample_weight, labels, pos_label)
    proba = make_two_columns(predictions.proba).astype(np.float64)
    n, k = proba.shape
    decisions = get_row_names(costs) if decisions is None else decisions
    costs = order_columns(costs, predictions.classes, name="costs")
    table = check_costs(1 - np.eye(k) if costs is None else costs, n, k)
    n_decisions = table.shape[-2]
    names = np.arange(n_decisions) if decisions is None else np.asarray(decisions)
    if names.shape != (n_decisions,):
        raise ValueError(
            f"decisions must name every row of costs, {n_decisions}, got shape {names.shape}."
        )
    group = get_groups(groups, n)
    again = _recalibrate_out_of_fold(predictions, proba, group, n_folds, random_state)
    if groups is not None:
        warn_of_few_groups(group)
    rules = [
        _Rule("model", compute_costs_of_decisions(proba, table).argmin(axis=1), proba),
        _Rule("recalibrated", compute_costs_of_decisions(again, table).argmin(axis=1), again),
        *(_Rule(f"always {name}", np.full(n, d), proba) for d, name in enumerate(names.tolist())),
    ]
    # Of class 1 any would do: only weights and groups are used.
    sample = Sample.of(predictions, 1, group)
    used = slice(None) if predictions.weight is None else predictions.weight > 0
    drawn = add_unseen(again, 1 / float(sample.weight @ sample.weight))[used]
    of_model = _compute_costs_of_classes(rules[0], table)
    lines = []
    for rule in rules:
        of_classes = _compute_costs_of_classes(rule, table)
        values = _select_labels(of_classes, predictions)[used]
        predicted = sample.weight @ (of_classes * rule.proba).sum(axis=1)[used]
        cost, *ends = _compute_interval(sample, values, of_classes[used], drawn, confidence_level)
        apart = of_classes - of_model
        values = _select_labels(apart, predictions)[used]
        difference, *more = _compute_interval(sample, values, apart[used], drawn, confidence_level)
        if rule.name == "model":
            more = [np.nan, np.nan]
        lines.append((cost, *ends, predicted, difference, *more))
    columns = dict(zip(_COLUMNS, np.array(lines, dtype=np.float64).T))
    return as_table(
        {"rule": np.array([rule.name for rule in rules]), **columns}, as_frame=as_frame
    )


def _compute_interval(
    sample: Sample, values: Array, of_classes: Array, drawn: Array, confidence_level: float
) -> tuple[float, float, float]:
    """Return a mean and the ends of its interval.

    `values` (n,) are costs of the labels, `of_classes` (n, K) those of every class, and `drawn`
    (n, K) the probabilities of the classes.
    """
    mean = float(sample.weight @ values)
    variance = float(np.square(sample.influence(values - mean)).sum())
    # A rare, large loss may not have occurred.
    expected = (drawn * (of_classes - mean) ** 2).sum(axis=1)
    variance = max(variance, float(sample.weight**2 @ expected))
    reach = float(student.ppf((1 + confidence_level) / 2, sample.freedom)) * np.sqrt(variance)
    return mean, mean - reach, mean + reach


def _recalibrate_out_of_fold(
    predictions: Predictions,
    proba: Array,
    group: NDArray[np.intp],
    n_folds: int,
    random_state: Any,
) -> Array:
    """Return out-of-fold probabilities of the logistic recalibration, (n, K)."""
    n_groups = int(group.max()) + 1
    if n_groups < 2:
        raise ValueError(f"groups must be two or more for the folds, got {n_groups}.")
    n_folds = min(n_folds, n_groups)
    logits = np.log(np.maximum(proba, _SMALLEST))
    targets = np.stack([predictions.of_class(k) for k in range(proba.shape[1])], axis=1)
    targets = targets.astype(np.float64)
    weight = np.ones(len(proba)) if predictions.weight is None else predictions.weight
    fold = (check_random_state(random_state).permutation(n_groups) % n_folds)[group]
    again = proba.copy()
    for k in range(n_folds):
        train, test = fold != k, fold == k
        if test.any():
            fit = fit_logistic(logits[train], targets[train], weight[train])
            again[test] = np.exp(fit.log_proba(logits[test]))
    return again
