"""Cheap labels of all samples and checked ones of some: an interval of what all checks would say.

The checks tell how far to believe the cheap label and the model, and so which loss to expect of
every sample. The mean of that is known. What has to be added, the mean of its difference to the
loss under true labels, is estimated from the checked samples: it varies little where cheap labels
or the model are good. How much of the expected loss is taken is a regression on these samples.
"""

from __future__ import annotations

from numbers import Real
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from scipy.stats import rankdata, t

from ..utils.checking._arrays import as_array, calling
from ..utils.checking._groups import group_codes
from ..utils.checking._guard import told
from ..utils.checking._proba import LOSS_FLOOR, binomial_interval
from ..utils.checking._validation import Predictions, check_numbers, check_predictions
from ..utils.computing._blocks import iter_blocks, two_columns
from ..utils.meta._private import Interval, StrOptions, validate_params
from ..utils.meta._warnings import warn

_RANGES = {
    "accuracy": (0.0, 1.0),
    "brier": (0.0, 2.0),
    "log_loss": (0.0, np.inf),
    "overconfidence": (-1.0, 1.0),
}
# Of fewer errors, their number is hardly known. With 40 checks of a model that is always sure and
# wrong of 5 %, intervals of the accuracy hold in .81 to .86 of draws, and with this in 1.00.
_FEWEST = 5
# Standard errors between the mean rank of the checked samples and that of all, from which on they
# are no random draw: a normal number is as large once in 150 000 times.
_NO_DRAW = 4.5


class Checks(NamedTuple):
    """True losses of the checked samples.

    ``rows`` are the positions of these, ``inclusion`` how likely each was drawn, ``groups`` what
    they belong to, a number for each at least.
    """

    of_checked: NDArray[np.float64]
    rows: NDArray[np.intp]
    inclusion: NDArray[np.float64]
    groups: NDArray[np.intp]

    @property
    def share(self) -> NDArray[np.float64]:
        """What every checked sample stands for, as a fraction of all."""
        parts = 1 / self.inclusion
        return parts / parts.sum()

    @property
    def n_effective(self) -> float:
        """How many checks of independent samples, all drawn alike, tell as much as these."""
        return min(1 / float(self.share @ self.share), float(self.groups.max() + 1))

    def limits(self, event: NDArray[Any], confidence_level: float) -> tuple[float, float]:
        """Return Clopper and Pearson's limits of how often something is so, of the checked."""
        fraction, n = np.average(event, weights=self.share), self.n_effective
        low, high = binomial_interval(np.asarray(fraction), np.asarray(n), confidence_level)
        return float(low), float(high)


class Expected(NamedTuple):
    """The losses to expect: their mean over all samples, and of the checked ones by other checks.

    ``noise`` is the variance of an estimate to which the checks add what they find beyond what is
    expected, ``spread`` that of one to which they add what is expected.
    """

    mean: float
    of_checked: NDArray[np.float64]
    noise: float
    spread: float


@validate_params(
    {
        "metric": [StrOptions(set(_RANGES))],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
    }
)
def prediction_powered_interval(
    y_cheap: ArrayLike,
    y_proba: ArrayLike,
    checked: ArrayLike,
    y_checked: ArrayLike,
    *,
    metric: str = "accuracy",
    inclusion: ArrayLike | None = None,
    groups: Any = None,
    confidence_level: float = 0.95,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
) -> tuple[float, float]:
    """Interval of an error under true labels, from cheap labels of all samples and a few checks.

    An AI or a crowd labels all samples, and you check some that are drawn at random. The interval
    is for the mean that the labels of all samples would have if you had checked them all. It is
    valid however bad the cheap labels and the model are, and the narrower the better they are
    (prediction-powered inference [1]_, [2]_); where both are useless, it is about that of the
    checked samples alone.

    Parameters
    ----------
    y_cheap : array-like of shape (n_samples,) or (n_samples, n_classes)
        Cheap labels, integers or strings, or shares of them.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the model that is judged: of the classes, or of the positive class.
    checked : array-like of shape (n_checks,)
        Positions of the samples that were checked, two or more, all distinct. They have to be a
        random draw, whatever the cheap labels say of them.
    y_checked : array-like of shape (n_checks,) or (n_checks, n_classes)
        Their true labels, or shares of people.
    metric : {"accuracy", "brier", "log_loss", "overconfidence"}, default="accuracy"
        Fraction of right predictions (larger = better); Brier score, in [0, 2], or log-loss in
        nats (smaller = better); mean confidence minus accuracy (larger = more overconfident),
        with `y_proba` of shape (n_samples,) the mean probability minus the fraction of positives.
    inclusion : array-like of shape (n_samples,), default=None
        How likely every sample was to be drawn, in (0, 1], if not all were alike.
    groups : array-like of shape (n_samples,), default=None
        What samples that belong together have in common, such as the patient, where they were
        drawn together.
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
        If positions repeat or lie outside the samples, if there are fewer than two checks or
        groups, or if the inputs do not fit together.

    Warns
    -----
    SkcalibWarning
        If the cheap labels of the checked samples show that these are no random draw.

    See Also
    --------
    calibration_error_interval : Where all labels are true.
    skcalib.labels.LabelIssueFinder : Finds wrong labels, and draws samples to check.

    Notes
    -----
    Of every sample, a loss L' is expected: class k has a probability in proportion to
    ``p_k ** a * exp(g * c_k)``, p_k that of the model and c_k the share of the cheap label. a and
    g fit the checked labels best, with a normal prior of variance 1 around 1 for a, and for g one
    more check, of a sample of which the model says nothing, that finds the cheap label half right.
    The L' of a checked sample leaves out the checks of its group. With the loss L under the true
    label, the estimate is b times the mean of L' over all samples, plus the mean of ``L - b L'``
    over the checked ones, weighted by 1 / inclusion. b, in [0, 1], makes the variance of the
    second mean smallest (power tuning [2]_). The interval is one of Student's t. Its variance is
    that of a draw without replacement: the one that the checked samples show or, if it is larger,
    the one that the probabilities of the classes lead to expect of all samples.

    If fewer than five of the checked predictions are wrong, or right, accuracy and overconfidence
    have Clopper and Pearson's limits of these. A log-loss with long tails asks for many checks:
    with 60 of them, intervals of 95 % held in .83 to .98 of draws, those of the checked samples
    alone in .81 to .90.

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
    >>> y_cheap = np.where(rng.uniform(size=5000) < 0.1, rng.integers(0, 2, 5000), y)
    >>> checked = rng.choice(5000, 150, replace=False)
    >>> low, high = prediction_powered_interval(y_cheap, y_proba, checked, y[checked])
    >>> round(low, 3), round(high, 3)
    (0.718, 0.773)
    """
    # Cheap labels may be as bad as they are: the columns are looked at with the checked ones.
    with calling("y_true", "y_cheap"), told():
        given = check_predictions(y_cheap, y_proba, labels=labels, pos_label=pos_label)
    n_samples = len(given.truth)
    rows = _check_positions(checked, n_samples)
    named: dict[str, Any] = {"labels": labels, "pos_label": pos_label}
    with calling("y_true", "y_checked"):
        true = check_predictions(
            y_checked,
            given.proba[rows],
            **(named if labels is not None else {"labels": given.classes}),
        )
    included = _check_inclusion(inclusion, n_samples, rows)
    of_label = _losses_of_labels(given, metric)
    cheap = _of_truth(of_label, given.truth)
    of_checked = _of_truth(of_label[rows], true.truth)
    _warn_if_no_draw(cheap, rows, included)
    together = _groups_of_checked(groups, n_samples, rows)
    checks = Checks(of_checked, rows, included[rows], together)
    expected = _expected_losses(given, true.truth, of_label, checks, included)
    low, high = _interval(checks, expected, of_label, metric, confidence_level)
    least, most = _RANGES[metric]
    return max(low, least), min(high, most)


def _losses_of_labels(predictions: Predictions, metric: str) -> NDArray[np.float64]:
    """Return what every sample adds to the metric for every label that it may have, (n, K)."""
    proba = two_columns(predictions.proba).astype(np.float64)
    classes = np.arange(proba.shape[1])
    if metric == "log_loss":
        return -np.log(np.maximum(proba, LOSS_FLOOR))
    if metric == "brier":
        return 1 - 2 * proba + (proba**2).sum(axis=1, keepdims=True)
    if metric == "overconfidence" and predictions.proba.ndim == 1:
        return proba[:, 1:] - classes
    correct = (proba.argmax(axis=1)[:, np.newaxis] == classes).astype(np.float64)
    return correct if metric == "accuracy" else proba.max(axis=1, keepdims=True) - correct


def _of_truth(of_label: NDArray[np.float64], truth: NDArray[Any]) -> NDArray[np.float64]:
    """Return the losses under labels, or their means by shares."""
    if truth.ndim == 2:
        return (of_label * truth).sum(axis=1)
    return of_label[np.arange(len(truth)), truth]


def _expected_losses(
    cheap: Predictions,
    true: NDArray[Any],
    of_label: NDArray[np.float64],
    checks: Checks,
    inclusion: NDArray[np.float64],
) -> Expected:
    """Return the losses to expect, by what the checks tell of cheap labels and of the model."""

    def features(rows: Any) -> NDArray[np.float64]:  # (n, K, 2)
        proba = np.maximum(two_columns(cheap.proba[rows]), LOSS_FLOOR)
        return np.stack([np.log(proba), _as_shares(cheap.truth[rows], proba.shape[1])], axis=-1)

    at, share = features(checks.rows), _as_shares(true, of_label.shape[1])
    weight = checks.n_effective * checks.share
    theta, by_others = _fit_leaving_out(at, share, weight, checks.groups)
    mean, variance = np.empty((2, len(of_label)))
    for rows, losses in iter_blocks(of_label):
        proba = softmax(features(rows) @ theta, axis=1)
        mean[rows] = (proba * losses).sum(axis=1)
        variance[rows] = (proba * (losses - mean[rows, np.newaxis]) ** 2).sum(axis=1)
    proba = softmax(np.einsum("nki,ni->nk", at, by_others), axis=1)
    of_checked = (proba * of_label[checks.rows]).sum(axis=1)
    unknown = (1 / inclusion - 1) / len(of_label) ** 2
    spread = float(unknown @ (mean - mean.mean()) ** 2)
    return Expected(float(mean.mean()), of_checked, float(unknown @ variance), spread)


def _as_shares(truth: NDArray[Any], n_classes: int) -> NDArray[Any]:
    return truth if truth.ndim == 2 else np.eye(n_classes)[truth]


def _fit_leaving_out(
    at: NDArray[np.float64],
    share: NDArray[np.float64],
    weight: NDArray[np.float64],
    groups: NDArray[np.intp],
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Return the (a, g) of the Notes, and for every check those of the checks of other groups."""
    start, prior = np.array([1.0, 0.0]), np.diag([1.0, 0.0])
    n_groups, n_classes = groups.max() + 1, share.shape[1]
    # The prior of g, as the check of a sample of which the model says nothing.
    one = np.eye(n_classes)[:1]
    at = np.concatenate([at, np.stack([np.zeros_like(one), one], axis=-1)])
    share = np.concatenate([share, np.where(one, 0.5, 0.5 / (n_classes - 1))])
    weight, groups = np.append(weight, 1.0), np.append(groups, n_groups)

    def value(theta: NDArray[np.float64]) -> float:
        fit = (share * log_softmax(at @ theta, axis=1)).sum(axis=1)
        return float((theta[0] - 1) ** 2 / 2 - weight @ fit)

    def parts(theta: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the gradient and the curvature that every check adds."""
        proba = softmax(at @ theta, axis=1)
        mean = np.einsum("nk,nki->ni", proba, at)
        square = np.einsum("nk,nki,nkj->nij", proba, at, at) - mean[:, :, None] * mean[:, None]
        gradient = mean - np.einsum("nk,nki->ni", share, at)
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
    # Without a group, the optimum is one step of Newton's method away.
    others = prior + square.sum(axis=0) - square
    step = np.linalg.solve(others, gradient[:, :, np.newaxis])[:, :, 0]
    return theta, (theta + step)[groups[:-1]]


def _interval(
    checks: Checks,
    expected: Expected,
    of_label: NDArray[np.float64],
    metric: str,
    confidence_level: float,
) -> tuple[float, float]:
    """Return the interval, by limits that are exact where few errors are known."""
    # The loss of a sample is one of two numbers that differ by 1.
    least = of_label.min(axis=1)
    events = checks.of_checked - least[checks.rows]
    is_fraction = metric in ("accuracy", "overconfidence")
    if is_fraction and min(events.sum(), (1 - events).sum()) < _FEWEST:
        low, high = checks.limits(events, confidence_level)
        return float(least.mean()) + low, float(least.mean()) + high
    return _student(checks, expected, confidence_level)


def _student(checks: Checks, expected: Expected, confidence_level: float) -> tuple[float, float]:
    """Return the estimate plus and minus a multiple of its standard error."""
    unseen = 1 - checks.inclusion
    if not unseen.any():
        mean = float(checks.of_checked.mean())
        return mean, mean
    share = checks.share
    # Of every checked sample: what it adds to the sum whose variance is asked for.
    true, other = (
        np.sqrt(unseen) * _centered(share * _centered(values, share), unseen)
        for values in (checks.of_checked, expected.of_checked)
    )
    spread = float(other @ other)
    power = float(np.clip(true @ other / spread, 0, 1)) if spread > 0 else 0.0
    added = share @ (checks.of_checked - power * expected.of_checked)
    estimate = power * expected.mean + float(added)
    parts = np.bincount(checks.groups, true - power * other)
    n = len(parts)
    degrees = max(n - 1 - (0 < power < 1), 1)
    # Of rare losses, the checks may have found too few to show the variance.
    unseen_too = expected.noise + (1 - power) ** 2 * expected.spread
    error = max(n / degrees * float(parts @ parts), unseen_too) ** 0.5
    half = float(t.isf((1 - confidence_level) / 2, degrees)) * error
    return estimate - half, estimate + half


def _centered(values: NDArray[np.float64], weight: NDArray[np.float64]) -> NDArray[np.float64]:
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
    inclusion: ArrayLike | None, n_samples: int, rows: NDArray[np.intp]
) -> NDArray[np.float64]:
    if inclusion is None:
        return np.full(n_samples, len(rows) / n_samples)
    given = check_numbers(inclusion, "inclusion", ndim=(1,)).astype(np.float64)
    if len(given) != n_samples:
        raise ValueError(
            f"inclusion must have an entry for every sample, {n_samples}, got {len(given)}."
        )
    if given.min() <= 0 or given.max() > 1:
        raise ValueError(
            "inclusion must hold probabilities in (0, 1], got values from "
            f"{given.min():g} to {given.max():g}."
        )
    return given


def _groups_of_checked(groups: Any, n_samples: int, rows: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return the groups of the checked samples, numbered from 0: without any, each is one."""
    if groups is None:
        return np.arange(len(rows))
    codes = np.unique(group_codes(groups, n_samples)[1][rows], return_inverse=True)[1]
    if codes.max() < 1:
        raise ValueError("groups must hold at least two that were checked, got one.")
    return codes


def _warn_if_no_draw(
    cheap: NDArray[np.float64], rows: NDArray[np.intp], inclusion: NDArray[np.float64]
) -> None:
    """Warn where the ranks of the cheap losses of the checked samples are no draw from all."""
    # The sum over a draw of rank / inclusion has the sum of all ranks, 0, as its mean.
    rank = rankdata(cheap)
    of_draw = (rank - rank.mean()) / inclusion
    weight = inclusion * (1 - inclusion)
    if not weight.any():
        return
    error = np.sqrt(weight @ _centered(of_draw, weight) ** 2)
    if error > 0 and abs(of_draw[rows].sum()) > _NO_DRAW * error:
        warn(
            "checked must be a random draw from all samples, got others: by their cheap labels, "
            "they are not like the rest. Draw the samples to check at random, or pass the "
            "probabilities of the draw as inclusion."
        )
