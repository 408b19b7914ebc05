"""Prediction-powered intervals: proxy labels for all samples, and checked labels for some.

A model of the true label, given the proxy label and the probabilities, is fitted to the checked
samples; it gives an expected loss for every sample. The estimate is the mean expected loss of all
samples, plus the mean difference between true and expected loss of the checked samples. This
difference varies little if the proxy labels or the model are good. Power tuning multiplies the
expected loss by a factor in [0, 1].
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from scipy.stats import rankdata, t

from ..utils._arrays import as_array, check_numbers
from ..utils._compat import Interval, validate_params
from ..utils._labels import encode_groups
from ..utils._numeric import compute_binomial_interval, iter_blocks
from ..utils._output import rename_argument, warn
from ..utils._proba import LOSS_FLOOR, Predictions, check_predictions
from ._per_sample import compute_losses_of_truth, make_two_columns
from ._registry import AnyMetric, Metric, choose_metric

_RANGES = {
    "accuracy": (0.0, 1.0),
    "brier": (0.0, 2.0),
    "log_loss": (0.0, np.inf),
    "overconfidence": (-1.0, 1.0),
}
# With fewer wrong, or right, checks than this, the interval is that of Clopper and Pearson. With
# 40 checks of a model that is always certain and has an error rate of 5 %, intervals of the
# accuracy hold in .81 to .86 of draws without this rule, and in 1.00 with it.
_FEWEST = 5
# Standard errors by which the mean rank of the checked samples may differ from that of all; a
# random draw exceeds it once in 150 000 times.
_MOST_STANDARD_ERRORS = 4.5


class Checks(NamedTuple):
    """True losses of the checked samples.

    ``rows`` are their positions, ``inclusion`` their inclusion probabilities, ``groups`` the codes
    of their groups (without groups, all different).
    """

    of_checked: NDArray[np.float64]
    rows: NDArray[np.intp]
    inclusion: NDArray[np.float64]
    groups: NDArray[np.intp]

    @property
    def weight(self) -> NDArray[np.float64]:
        """The weight of every checked sample, proportional to 1 / inclusion, with sum 1."""
        parts = 1 / self.inclusion
        return parts / parts.sum()

    @property
    def n_effective(self) -> float:
        """The effective number of independent checks with equal weights."""
        return min(1 / float(self.weight @ self.weight), float(self.groups.max() + 1))

    def limits(self, event: NDArray[Any], confidence_level: float) -> tuple[float, float]:
        """Return Clopper and Pearson's limits of the fraction of samples with an event."""
        fraction, n = np.average(event, weights=self.weight), self.n_effective
        low, high = compute_binomial_interval(
            np.asarray(fraction), np.asarray(n), confidence_level
        )
        return float(low), float(high)


class Expected(NamedTuple):
    """Expected losses: their mean over all samples, and those of checked samples, by other checks.

    By the fitted model, ``noise`` is the variance of the mean difference of true and expected
    losses over a draw, and ``spread`` that of the mean expected loss.
    """

    mean: float
    of_checked: NDArray[np.float64]
    noise: float
    spread: float


@validate_params(
    {
        "metric": [callable, str],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    }
)
def prediction_powered_interval(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    y_proxy: ArrayLike,
    *,
    checked: ArrayLike,
    metric: AnyMetric = "accuracy",
    inclusion_proba: ArrayLike | None = None,
    groups: Any = None,
    confidence_level: float = 0.95,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> tuple[float, float]:
    """Interval of an error under true labels, from proxy labels for all samples and a few checks.

    An AI or a crowd has labeled all samples, and you check a random draw of them. The interval is
    for the value that the metric would have if you had checked all samples. It is valid however
    bad the proxy labels and the model are, and narrower the better they are (prediction-powered
    inference [1]_, [2]_). If both are useless, it is about as wide as an interval from the checked
    samples alone.

    Parameters
    ----------
    y_true : array-like of shape (n_checks,) or (n_checks, n_classes)
        True labels of the samples `checked`, in that order; or soft labels, the fraction of people
        who gave each label.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the model to evaluate: of all classes, or of the positive class.
    y_proxy : array-like of shape (n_samples,) or (n_samples, n_classes)
        Proxy labels of all samples, integers or strings; or the fraction of proxy labels for each
        class.
    checked : array-like of shape (n_checks,)
        Positions of the checked samples, two or more, all distinct. They must be a random draw:
        samples that were picked because of their proxy labels make the interval invalid.
    metric : {"accuracy", "brier", "log_loss", "overconfidence"}, default="accuracy"
        "accuracy": fraction of correct predictions, larger = better. "brier": Brier score in
        [0, 2], smaller = better. "log_loss": in nats, smaller = better. "overconfidence": mean
        confidence minus accuracy, larger = more overconfident; with `y_proba` of shape
        (n_samples,), mean probability minus fraction of positives. Full names and scorers of these
        metrics are accepted, too.
    inclusion_proba : array-like of shape (n_samples,), default=None
        Probability with which every sample was drawn, in (0, 1]. None means that all were equal.
    groups : array-like of shape (n_samples,), default=None
        Groups that were drawn as a whole, such as all samples of a patient. The groups are then
        the independent units.
    confidence_level : float, default=0.95
        Level of the interval, in (0, 1).
    labels, pos_label : of :func:`expected_calibration_error`

    Returns
    -------
    low, high : float
        Ends of the interval, in the range of the metric.

    Raises
    ------
    ValueError
        If positions repeat or are out of range, if there are fewer than two checks or two checked
        groups, or if the inputs have different lengths or classes.

    Warns
    -----
    SkcalibWarning
        If the proxy labels show that the checked samples are not a random draw.

    See Also
    --------
    calibration_error_interval : If all labels are true.
    skcalib.labels.LabelIssueFinder : Finds wrong labels, and draws samples to check.

    Notes
    -----
    Every sample has an expected loss L', under a true label that is class k with a probability
    proportional to ``p_k ** a * exp(g * c_k)``. p_k is the probability by the model and c_k the
    fraction of the proxy label. a and g maximize the likelihood of the checked labels; a has a
    normal prior with mean 1 and variance 1, and the prior of g is one pseudo-check, of a sample
    with equal p_k, where the proxy label is half right. The L' of a checked sample comes from a
    fit without the checks of its group.

    Let L be the loss under the true label. The estimate is b times the mean of L' over all
    samples, plus the mean of ``L - b L'`` over the checked samples, weighted by 1 /
    inclusion_proba; b in [0, 1] minimizes the variance (power tuning [2]_). The interval is
    Student's t. Its variance is that of a draw without replacement, estimated from the checked
    samples or from the fitted model, whichever is larger.

    If fewer than five of the checked predictions are wrong, or fewer than five are right, accuracy
    and overconfidence have Clopper and Pearson's limits. A log-loss with long tails needs many
    checks: with 60 checks, 95 % intervals held in .83 to .98 of draws, and those from the checked
    samples alone in .81 to .90.

    References
    ----------
    .. [1] A. N. Angelopoulos, S. Bates, C. Fannjiang, M. I. Jordan, T. Zrnic, "Prediction-powered
       inference", Science 2023.
    .. [2] A. N. Angelopoulos, J. C. Duchi, T. Zrnic, "PPI++: Efficient Prediction-Powered
       Inference", 2023.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.datasets import make_predictions
    >>> from skcalib.metrics import prediction_powered_interval
    >>> y, y_proba, _ = make_predictions(5000, random_state=0)
    >>> rng = np.random.default_rng(0)
    >>> y_proxy = np.where(rng.uniform(size=5000) < 0.1, rng.integers(0, 2, 5000), y)
    >>> checked = rng.choice(5000, 150, replace=False)
    >>> low, high = prediction_powered_interval(y[checked], y_proba, y_proxy, checked=checked)
    >>> round(low, 3), round(high, 3)
    (0.718, 0.773)
    """
    chosen = choose_metric(metric, _RANGES)
    with rename_argument("y_true", "y_proxy"):
        given = check_predictions(y_proxy, y_proba, labels=labels, pos_label=pos_label)
    n_samples = len(given.truth)
    rows = _check_positions(checked, n_samples)
    named: dict[str, Any] = {"labels": labels, "pos_label": pos_label}
    with rename_argument("y_proba", "checked"):
        true = check_predictions(
            y_true,
            given.proba[rows],
            **(named if labels is not None else {"labels": given.classes}),
        )
    included = _check_inclusion(inclusion_proba, n_samples, rows)
    of_label = _compute_losses_of_labels(chosen, given.proba)
    by_proxy = compute_losses_of_truth(of_label, given.truth)
    of_checked = compute_losses_of_truth(of_label[rows], true.truth)
    _warn_if_not_random(by_proxy, rows, included)
    codes = _number_groups_of_checked(groups, n_samples, rows)
    checks = Checks(of_checked, rows, included[rows], codes)
    expected = _compute_expected_losses(given, true.truth, of_label, checks, included)
    low, high = _compute_interval(checks, expected, of_label, chosen.name, confidence_level)
    least, most = _RANGES[chosen.name]
    return max(low, least), min(high, most)


def _compute_losses_of_labels(metric: Metric, proba: NDArray[Any]) -> NDArray[np.float64]:
    """Return the loss of every sample under every possible label, (n, K)."""
    if metric.losses is None:
        raise TypeError(f"metric must be a mean of losses of single samples, got {metric.name!r}.")
    return metric.losses(proba)


def _compute_expected_losses(
    proxy: Predictions,
    true: NDArray[Any],
    of_label: NDArray[np.float64],
    checks: Checks,
    inclusion: NDArray[np.float64],
) -> Expected:
    """Fit the model of the true label to the checks, and return expected losses."""

    def features(rows: Any) -> NDArray[np.float64]:  # (n, K, 2)
        proba = np.maximum(make_two_columns(proxy.proba[rows]), LOSS_FLOOR)
        return np.stack([np.log(proba), _as_soft(proxy.truth[rows], proba.shape[1])], axis=-1)

    at, soft_labels = features(checks.rows), _as_soft(true, of_label.shape[1])
    weight = checks.n_effective * checks.weight
    theta, by_others = _fit_leaving_out(at, soft_labels, weight, checks.groups)
    mean, variance = np.empty((2, len(of_label)))
    for rows, losses in iter_blocks(of_label):
        proba = softmax(features(rows) @ theta, axis=1)
        mean[rows] = (proba * losses).sum(axis=1)
        variance[rows] = (proba * (losses - mean[rows, np.newaxis]) ** 2).sum(axis=1)
    proba = softmax(np.einsum("nki,ni->nk", at, by_others), axis=1)
    of_checked = (proba * of_label[checks.rows]).sum(axis=1)
    # Variance of a Horvitz-Thompson mean per squared deviation of a sample.
    of_draw = (1 / inclusion - 1) / len(of_label) ** 2
    spread = float(of_draw @ (mean - mean.mean()) ** 2)
    return Expected(float(mean.mean()), of_checked, float(of_draw @ variance), spread)


def _as_soft(truth: NDArray[Any], n_classes: int) -> NDArray[Any]:
    return truth if truth.ndim == 2 else np.eye(n_classes)[truth]


def _fit_leaving_out(
    at: NDArray[np.float64],
    soft_labels: NDArray[np.float64],
    weight: NDArray[np.float64],
    groups: NDArray[np.intp],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return (a, g) of the Notes and, for every check, those without the checks of its group."""
    start, prior = np.array([1.0, 0.0]), np.diag([1.0, 0.0])
    n_groups, n_classes = groups.max() + 1, soft_labels.shape[1]
    # The prior of g: a pseudo-check with equal probabilities, where the proxy label is half right.
    one = np.eye(n_classes)[:1]
    at = np.concatenate([at, np.stack([np.zeros_like(one), one], axis=-1)])
    soft_labels = np.concatenate([soft_labels, np.where(one, 0.5, 0.5 / (n_classes - 1))])
    weight, groups = np.append(weight, 1.0), np.append(groups, n_groups)

    def value(theta: NDArray[np.float64]) -> float:
        fit = (soft_labels * log_softmax(at @ theta, axis=1)).sum(axis=1)
        return float((theta[0] - 1) ** 2 / 2 - weight @ fit)

    def parts(theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the gradient and the Hessian of every check."""
        proba = softmax(at @ theta, axis=1)
        mean = np.einsum("nk,nki->ni", proba, at)
        square = np.einsum("nk,nki,nkj->nij", proba, at, at) - mean[:, :, None] * mean[:, None]
        gradient = mean - np.einsum("nk,nki->ni", soft_labels, at)
        return weight[:, None] * gradient, weight[:, None, None] * square

    theta = minimize(
        value,
        start,
        jac=lambda theta: prior @ (theta - start) + parts(theta)[0].sum(axis=0),
        hess=lambda theta: prior + parts(theta)[1].sum(axis=0),
        method="trust-exact",
        options={"gtol": 1e-8},
    ).x
    gradient, square = np.zeros((n_groups + 1, 2)), np.zeros((n_groups + 1, 2, 2))
    for sums, part in zip((gradient, square), parts(theta)):
        np.add.at(sums, groups, part)
    # Leave out each group by one Newton step from the common optimum.
    others = prior + square.sum(axis=0) - square
    step = np.linalg.solve(others, gradient[:, :, np.newaxis])[:, :, 0]
    return theta, (theta + step)[groups[:-1]]


def _compute_interval(
    checks: Checks,
    expected: Expected,
    of_label: NDArray[np.float64],
    metric: str,
    confidence_level: float,
) -> tuple[float, float]:
    """Return the interval; with few errors, by Clopper and Pearson."""
    # For accuracy and overconfidence, a sample's loss is one of two numbers that differ by 1.
    least = of_label.min(axis=1)
    events = checks.of_checked - least[checks.rows]
    is_fraction = metric in ("accuracy", "overconfidence")
    if is_fraction and min(events.sum(), (1 - events).sum()) < _FEWEST:
        low, high = checks.limits(events, confidence_level)
        return float(least.mean()) + low, float(least.mean()) + high
    return _compute_student_interval(checks, expected, confidence_level)


def _compute_student_interval(
    checks: Checks, expected: Expected, confidence_level: float
) -> tuple[float, float]:
    """Return the estimate plus and minus a multiple of its standard error."""
    left = 1 - checks.inclusion  # finite population: 0 if a sample is drawn with certainty
    if not left.any():
        mean = float(checks.of_checked.mean())
        return mean, mean
    weight = checks.weight
    # Deviations of the weighted mean by every checked sample, of true and of expected losses.
    of_true, of_expected = (
        np.sqrt(left) * _center(weight * _center(values, weight), left)
        for values in (checks.of_checked, expected.of_checked)
    )
    # Power tuning: b is the slope of a regression of the one on the other.
    variance = float(of_expected @ of_expected)
    power = float(np.clip(of_true @ of_expected / variance, 0, 1)) if variance > 0 else 0.0
    correction = weight @ (checks.of_checked - power * expected.of_checked)
    estimate = power * expected.mean + float(correction)
    parts = np.bincount(checks.groups, of_true - power * of_expected)
    n = len(parts)
    degrees = max(n - 1 - (0 < power < 1), 1)
    # The checks may have missed rare large losses: use the model's variance if it is larger.
    by_model = expected.noise + (1 - power) ** 2 * expected.spread
    error = max(n / degrees * float(parts @ parts), by_model) ** 0.5
    half = float(t.isf((1 - confidence_level) / 2, degrees)) * error
    return estimate - half, estimate + half


def _center(values: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
    return values - np.average(values, weights=weight)


def _check_positions(checked: ArrayLike, n_samples: int) -> NDArray[np.intp]:
    rows = as_array(checked, name="checked")
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or len(rows) < 2:
        got = f"shape {rows.shape} and dtype {rows.dtype}"
        raise ValueError(f"checked must hold two positions or more, integers, got {got}.")
    distinct = np.unique(rows)
    if len(distinct) < len(rows) or distinct[0] < 0 or distinct[-1] >= n_samples:
        raise ValueError(
            f"checked must hold distinct positions from 0 to {n_samples - 1}, got {len(distinct)} "
            f"distinct ones of {len(rows)}, from {distinct[0]} to {distinct[-1]}."
        )
    return rows.astype(np.intp)


def _check_inclusion(
    inclusion_proba: ArrayLike | None, n_samples: int, rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    if inclusion_proba is None:
        return np.full(n_samples, len(rows) / n_samples)
    given = check_numbers(inclusion_proba, "inclusion_proba", ndim=(1,)).astype(np.float64)
    if len(given) != n_samples:
        raise ValueError(
            f"inclusion_proba must have an entry for every sample, {n_samples}, got {len(given)}."
        )
    if given.min() <= 0 or given.max() > 1:
        raise ValueError(
            "inclusion_proba must hold probabilities in (0, 1], got values from "
            f"{given.min():g} to {given.max():g}."
        )
    return given


def _number_groups_of_checked(
    groups: Any, n_samples: int, rows: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return codes of the checked samples' groups from 0; without groups, each is its own."""
    if groups is None:
        return np.arange(len(rows))
    codes = np.unique(encode_groups(groups, n_samples)[1][rows], return_inverse=True)[1]
    if codes.max() < 1:
        raise ValueError("groups must have at least two groups with checked samples, got one.")
    return codes


def _warn_if_not_random(
    by_proxy: NDArray[np.float64], rows: NDArray[np.intp], inclusion: NDArray[np.float64]
) -> None:
    """Warn if the losses by proxy labels of the checked samples rank unlike a random draw."""
    # Over a draw, the sum of centered rank / inclusion has mean 0.
    rank = rankdata(by_proxy)
    of_draw = (rank - rank.mean()) / inclusion
    weight = inclusion * (1 - inclusion)
    if not weight.any():
        return
    error = np.sqrt(weight @ _center(of_draw, weight) ** 2)
    if error > 0 and abs(of_draw[rows].sum()) > _MOST_STANDARD_ERRORS * error:
        warn(
            "checked must be a random draw from all samples, got one whose proxy labels differ "
            "from the rest. Draw the samples to check at random, or pass the probabilities of the "
            "draw as inclusion_proba."
        )
