"""Statistics of a risk model, two classes, with what every group of samples adds to their error.

An estimate has an influence for every group: about how much it changes if the group is left out.
The standard error is the root of the sum of their squares. Where a fit follows the data, the
influence is that of leaving the group out (the jackknife, called CR3 for a regression): the plain
residuals of a fit are too small.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit, log_softmax, logit
from scipy.stats import t as student

from ..utils._labels import encode_groups
from ..utils._numeric import compute_row_max, compute_row_sum
from ..utils._proba import Predictions

Array = NDArray[np.float64]

# Newton's method needs 5 to 10 steps. On separated classes it never ends: each step makes the
# slope about one larger.
_MOST_STEPS = 25
_LEAST_DECREMENT = 1e-16  # of the mean log-likelihood; what is left after such a step is rounding
_SHORTEST = 1e-6
_ROUNDING = 1e-12
# R's lowess has this span; so has the calibration plot of rms::val.prob.
SPAN = 2 / 3
# The smooth curve is computed at so many quantiles of the probabilities, and linear between.
_N_NODES = 100
_AT_ONCE = 2**20


def _compute_sums(place: NDArray[np.intp], values: Array, n: int) -> Array:
    """Return the sums of the values at each of n places."""
    return np.bincount(place, values, n).astype(np.float64)


def get_groups(groups: Any, n_samples: int) -> NDArray[np.intp]:
    """Return the number of every sample's group; without groups, each sample is one."""
    return np.arange(n_samples) if groups is None else encode_groups(groups, n_samples)[1]


class LogisticFit(NamedTuple):
    """The maximum-likelihood fit of softmax(slope z + intercept).

    ``intercept`` is (K,), 0 for the first class that occurs and for classes that do not; ``free``
    are the others. ``hessian`` is that of the negative log-likelihood in the slope, if it was
    fitted, and the free intercepts. Without a finite maximum, as for separated classes or equal
    scores, ``converged`` is False.
    """

    slope: float
    intercept: Array
    hessian: Array
    free: NDArray[np.intp]
    free_slope: bool
    converged: bool

    def log_proba(self, logits: NDArray[Any]) -> NDArray[Any]:
        """Return the logarithms of the probabilities, (n, K)."""
        scores = logits * logits.dtype.type(self.slope)
        return log_softmax(scores + self.intercept.astype(logits.dtype), axis=1)

    def derivatives(
        self, logits: Array, targets: Array, weight: Array, group: NDArray[np.intp]
    ) -> Array:
        """Return the gradient of the log-likelihood, a row for every group."""
        residual = (targets - np.exp(self.log_proba(logits))) * weight[:, np.newaxis]
        columns = [residual[:, k] for k in self.free]
        if self.free_slope:
            columns = [(residual * logits).sum(axis=1), *columns]
        return np.stack(
            [_compute_sums(group, column, int(group.max()) + 1) for column in columns], axis=1
        )


def fit_logistic(
    logits: Array, targets: Array, weight: Array, *, free_slope: bool = True
) -> LogisticFit:
    """Fit one slope, or keep it 1, and intercepts, by Newton's method.

    ``targets`` (n, K) are the labels as columns of 0 and 1, or parts of a sample.
    """
    occurs = weight @ targets > 0
    free = np.flatnonzero(occurs)[1:]
    # Scores of any scale and place: the search begins at slope 0, and has steps of about 1.
    z, center, scale, total = logits, np.zeros(len(occurs)), 1.0, weight.sum()
    free_slope = free_slope and len(free) > 0
    if free_slope:
        z = logits - logits[:, [int(occurs.argmax())]]
        center[free] = weight @ z[:, free] / total
        scale = float(np.sqrt(np.mean((z - center)[:, free] ** 2)))
        free_slope = scale > _ROUNDING * float(np.abs(z).max())
        z = (z - center) / scale if free_slope else logits
    first = int(free_slope)
    theta = np.zeros(first + len(free))

    def log_proba_at(theta: Array) -> Array:
        scores = z * theta[0] if free_slope else z.copy()
        scores[:, free] += theta[first:]
        scores -= compute_row_max(scores)[:, np.newaxis]
        scores -= np.log(compute_row_sum(np.exp(scores)))[:, np.newaxis]
        return scores

    log_proba = log_proba_at(theta)
    best, converged = float(weight @ (targets * log_proba).sum(axis=1)), False
    for _ in range(_MOST_STEPS if len(theta) else 0):
        gradient, hessian = _compute_derivatives(
            z, targets, weight, np.exp(log_proba), free, free_slope
        )
        try:
            step = np.linalg.solve(hessian, gradient)
        except np.linalg.LinAlgError:
            break
        converged = bool(gradient @ step < _LEAST_DECREMENT * total)
        size = 1.0
        while size > _SHORTEST:
            # A step that is far too long has no finite log-likelihood.
            with np.errstate(over="ignore", invalid="ignore"):
                latest = log_proba_at(theta + size * step)
                found = float(weight @ (targets * latest).sum(axis=1))
            if found >= best - 1e-13 * abs(best):
                theta, log_proba, best = theta + size * step, latest, found
                break
            size /= 2
        if converged or size <= _SHORTEST:
            break
    slope = float(theta[0]) / scale if free_slope else 1.0
    intercept = -slope * center if free_slope else np.zeros(len(occurs))
    intercept[free] += theta[first:]
    hessian = _compute_derivatives(logits, targets, weight, np.exp(log_proba), free, free_slope)[1]
    return LogisticFit(slope, intercept, hessian, free, free_slope, converged)


def _compute_derivatives(
    logits: Array,
    targets: Array,
    weight: Array,
    proba: Array,
    free: NDArray[np.intp],
    free_slope: bool,
) -> tuple[Array, Array]:
    """Return the gradient of the log-likelihood, and the Hessian of its negative."""
    residual, weighted = targets - proba, proba * weight[:, np.newaxis]
    gradient = (weight @ residual)[free]
    hessian = np.diag(weighted.sum(axis=0)[free]) - (proba.T @ weighted)[np.ix_(free, free)]
    if not free_slope:
        return gradient, hessian
    away = logits - np.einsum("ik,ik->i", proba, logits)[:, np.newaxis]
    gradient = np.append(weight @ np.einsum("ik,ik->i", residual, logits), gradient)
    weighted *= away
    mixed, own = weighted.sum(axis=0)[free], np.vdot(weighted, away)
    return gradient, np.vstack([np.append(own, mixed), np.column_stack([mixed, hessian])])


class Estimate(NamedTuple):
    """A value, its scale ("log", "logit" or "identity"), and the influence of every group.

    The influences are on that scale.
    """

    value: float
    influence: Array
    scale: str = "identity"

    def interval(self, freedom: float, confidence_level: float) -> tuple[float, float]:
        """Return the ends of the interval of Student's t; NaN where there is no standard error."""
        error = float(np.sqrt(np.square(self.influence).sum()))
        if not np.isfinite(self.value) or not np.isfinite(error) or error == 0:
            return np.nan, np.nan
        reach = float(student.ppf((1 + confidence_level) / 2, freedom)) * error
        with np.errstate(divide="ignore"):
            center = {"identity": lambda x: x, "log": np.log, "logit": logit}[self.scale](
                self.value
            )
        if not np.isfinite(center):
            return np.nan, np.nan
        back = {"identity": float, "log": np.exp, "logit": expit}[self.scale]
        return float(back(center - reach)), float(back(center + reach))


class Sample(NamedTuple):
    """Outcomes in [0, 1], probabilities, weights that sum to 1, and groups, numbered from 0."""

    outcome: Array
    proba: Array
    weight: Array
    group: NDArray[np.intp]

    @classmethod
    def of(cls, predictions: Predictions, k: int, group: NDArray[np.intp]) -> Sample:
        """Return the sample of class k, without samples of weight 0."""
        proba = predictions.proba if predictions.proba.ndim == 1 else predictions.proba[:, k]
        n = len(proba)
        weight = np.ones(n) if predictions.weight is None else predictions.weight
        outcome = predictions.of_class(k).astype(np.float64)
        proba = np.clip(proba.astype(np.float64), 0, 1)
        return cls(outcome, proba, weight, group).rows(weight > 0)

    @property
    def n_groups(self) -> int:
        return int(self.group.max()) + 1

    @property
    def of_group(self) -> float:
        """One over the effective number of groups, (sum w)^2 / sum w^2."""
        weights = self.sums(np.ones(len(self.weight)))
        return float(weights @ weights)

    @property
    def freedom(self) -> float:
        """The effective number of groups less 1."""
        return max(1 / self.of_group - 1, 1e-9)

    def sums(self, values: Array) -> Array:
        """Return the weighted sums over groups, (n_groups,)."""
        return _compute_sums(self.group, self.weight * values, self.n_groups)

    def rows(self, kept: NDArray[np.bool_]) -> Sample:
        """Return the sample of some rows."""
        weight, group = self.weight[kept], np.unique(self.group[kept], return_inverse=True)[1]
        return Sample(self.outcome[kept], self.proba[kept], weight / weight.sum(), group)

    def influence(self, values: Array) -> Array:
        """Return the influences on a mean from the influences of single samples, (n,)."""
        n = self.n_groups
        return self.sums(values) * np.sqrt(n / max(n - 1, 1))


def estimate_observed_to_expected(sample: Sample) -> Estimate:
    """Return O / E, the mean outcome over the mean probability, on the scale of its logarithm."""
    observed, expected = (
        float(sample.weight @ values) for values in (sample.outcome, sample.proba)
    )
    if expected == 0:
        return Estimate(np.nan, np.zeros(1))
    ratio = observed / expected
    influence = sample.sums(sample.outcome - ratio * sample.proba)
    # Left out, a group changes the expected outcomes as well.
    with np.errstate(divide="ignore", invalid="ignore"):
        influence /= observed * (1 - sample.sums(sample.proba) / expected)
    return Estimate(ratio, _shrink(influence), "log")


def recalibrate(sample: Sample, *, free_slope: bool) -> tuple[Estimate, Estimate]:
    """Return intercept and slope of the logistic recalibration."""
    score = logit(sample.proba)
    logits = np.stack([np.zeros_like(score), score], axis=1)
    targets = np.stack([1 - sample.outcome, sample.outcome], axis=1)
    fit = fit_logistic(logits, targets, sample.weight, free_slope=free_slope)
    nothing = Estimate(np.nan, np.zeros(1))
    if not fit.converged or fit.free_slope != free_slope:
        return nothing, nothing
    fitted = np.exp(fit.log_proba(logits)[:, 1])
    columns = [score, np.ones_like(score)] if free_slope else [np.ones_like(score)]
    residual = sample.outcome - fitted
    slopes = np.stack([sample.sums(residual * column) for column in columns], axis=1)
    curvature = fitted * (1 - fitted)
    of_groups = np.stack(
        [sample.sums(curvature * a * b) for a in columns for b in columns], axis=1
    ).reshape(-1, len(columns), len(columns))
    # One Newton step to the fit without the group.
    try:
        influence = np.linalg.solve(fit.hessian - of_groups, slopes[..., np.newaxis])[..., 0]
    except np.linalg.LinAlgError:
        return nothing, nothing
    intercept = Estimate(float(fit.intercept[1]), _shrink(influence[:, -1]))
    return intercept, Estimate(fit.slope, _shrink(influence[:, 0]))


def _shrink(influence: NDArray[Any]) -> Array:
    """Return the influences of leaving out one of G groups, whose squares count (G - 1) / G."""
    n = len(influence)
    return np.asarray(influence * np.sqrt(max(n - 1, 1) / n), dtype=np.float64)


def estimate_brier(sample: Sample) -> tuple[Estimate, Estimate]:
    """Return the Brier score and the scaled one, 1 - Brier score / (rate (1 - rate))."""
    outcome, proba = sample.outcome, sample.proba
    losses = (outcome - proba) ** 2 + outcome * (1 - outcome)
    score, rate = float(sample.weight @ losses), float(sample.weight @ outcome)
    most = rate * (1 - rate)
    scaled = (score / most * (1 - 2 * rate) * (outcome - rate) - (losses - score)) / most
    return (
        Estimate(score, sample.influence(losses - score)),
        Estimate(1 - score / most, sample.influence(scaled)),
    )


def estimate_auroc(sample: Sample) -> Estimate:
    """Return the area under the ROC curve, on the scale of its log-odds."""
    distinct, place = np.unique(sample.proba, return_inverse=True)
    positive = _compute_sums(place, sample.weight * sample.outcome, len(distinct))
    negative = _compute_sums(place, sample.weight * (1 - sample.outcome), len(distinct))
    n_positive, n_negative = positive.sum(), negative.sum()
    # For each sample, how many of the other class are on the wrong side, ties by half.
    below = (np.cumsum(negative) - negative / 2) / n_negative
    above = 1 - (np.cumsum(positive) - positive / 2) / n_positive
    area = float(positive @ below / n_positive)
    if min(area, 1 - area) < _ROUNDING:
        area = float(round(area))
    values = sample.outcome * (below[place] - area) / n_positive
    values = values + (1 - sample.outcome) * (above[place] - area) / n_negative
    with np.errstate(divide="ignore", invalid="ignore"):
        return Estimate(area, sample.influence(values / (area * (1 - area))), "logit")


class SmoothResidual(NamedTuple):
    """The smooth of outcome - probability at nodes, increasing, (m,), and its covariance (m, m).

    ``share`` is the weight of the samples nearest to every node.
    """

    node: Array
    residual: Array
    share: Array
    covariance: Array

    def at(self, proba: Array) -> Array:
        """Return the smooth at given probabilities."""
        return np.interp(proba, self.node, self.residual)


def estimate_smooth_residual(sample: Sample) -> SmoothResidual:
    """Smooth the outcomes over the probabilities by locally linear regression (lowess).

    A locally linear smooth of the probabilities themselves returns them: so the smooth of the
    outcomes less the probability is the smooth of the residuals. The kernel is tricube; it reaches
    as far as a fraction `SPAN` of the samples.
    """
    order = np.argsort(sample.proba, kind="stable")
    p, w = sample.proba[order], sample.weight[order]
    distinct, place = np.unique(p, return_inverse=True)
    cumulative = np.cumsum(_compute_sums(place, w, len(distinct)))
    node = distinct
    if len(distinct) > _N_NODES:
        middle = (np.arange(_N_NODES) + 0.5) / _N_NODES * cumulative[-1]
        inner = distinct[np.minimum(np.searchsorted(cumulative, middle), len(distinct) - 1)]
        node = np.unique(np.concatenate([distinct[[0, -1]], inner]))
    reach = _reach(node, distinct, cumulative)
    # Rows of a block belong to whole groups: their sums are multiplied with one another.
    order = np.argsort(sample.group, kind="stable")
    p, w, group = sample.proba[order], sample.weight[order], sample.group[order]
    residual = sample.outcome[order] - p
    cuts = iter_group_blocks(group, max(1, _AT_ONCE // len(node)))
    sums = np.zeros((3, len(node)))
    for rows in cuts:
        kernel, away = _compute_kernel(node, reach, p[rows], w[rows])
        sums += [kernel.sum(axis=1), (kernel * away).sum(axis=1), (kernel * away**2).sum(axis=1)]
    total, mean, square = sums[0], sums[1] / sums[0], sums[2] / sums[0]
    spread = square - mean**2
    # As in R: where all samples of the kernel are nearly at one place, the mean.
    least = (1e-3 * (p.max() - p.min())) ** 2
    slope = np.where(spread > least, -mean / np.where(spread > 0, spread, 1), 0.0)
    smoothed, covariance = np.zeros(len(node)), np.zeros((len(node), len(node)))
    n = sample.n_groups
    for rows in cuts:
        kernel, away = _compute_kernel(node, reach, p[rows], w[rows])
        kernel *= (1 + (away - mean[:, np.newaxis]) * slope[:, np.newaxis]) / total[:, np.newaxis]
        kernel *= residual[rows]
        smoothed += kernel.sum(axis=1)
        starts = np.flatnonzero(np.diff(group[rows], prepend=-1))
        of_groups = np.add.reduceat(kernel, starts, axis=1)
        covariance += of_groups @ of_groups.T
    nearest = np.searchsorted((node[1:] + node[:-1]) / 2, sample.proba)
    share = _compute_sums(nearest, sample.weight, len(node))
    return SmoothResidual(node, smoothed, share, covariance * n / max(n - 1, 1))


def iter_group_blocks(group: NDArray[np.intp], most: int) -> list[slice]:
    """Return blocks of about `most` rows that do not divide groups; `group` is sorted."""
    starts = np.flatnonzero(np.diff(group, prepend=-1))
    chosen = (
        starts[np.unique(np.searchsorted(starts, np.arange(0, len(group), most)))[:-1]]
        if (len(group) > most)
        else np.array([0])
    )
    chosen = np.unique(np.append(0, chosen))
    return [slice(a, b) for a, b in zip(chosen, np.append(chosen[1:], len(group)))]


def find_root(covariance: Array) -> Array:
    """Return R with R^T R = covariance."""
    values, vectors = np.linalg.eigh(covariance)
    return np.sqrt(np.maximum(values, 0))[:, np.newaxis] * vectors.T


def _reach(node: Array, place: Array, cumulative: Array) -> Array:
    """Return the least distance from every node within which lies a fraction `SPAN`."""
    padded = np.append(0.0, cumulative)
    wanted = SPAN * cumulative[-1] * (1 - 1e-12)

    def within(distance: Array) -> Array:
        right = np.searchsorted(place, node + distance, side="right")
        left = np.searchsorted(place, node - distance, side="left")
        return padded[right] - padded[left]

    low, high = np.full(len(node), -1e-12), np.full(len(node), place[-1] - place[0] + 1e-12)
    for _ in range(60):
        middle = (low + high) / 2
        enough = within(middle) >= wanted
        low, high = np.where(enough, low, middle), np.where(enough, middle, high)
    return np.maximum(high, 1e-12)


def _compute_kernel(node: Array, reach: Array, p: Array, w: Array) -> tuple[Array, Array]:
    """Return weights (m, n) of the samples at every node, and their distances from it."""
    away = p - node[:, np.newaxis]
    # Products: a power takes ten times as long.
    near = np.abs(away) / reach[:, np.newaxis]
    near *= near * near
    near = np.maximum(1 - near, 0)
    near *= near * near
    near *= w
    return near, away


def compute_residual_norm(residual: Array, share: Array, kind: str) -> Array:
    """Return mean ("ICI"), median ("E50") or 90 % quantile ("E90") of |residual|, last axis."""
    size = np.abs(residual)
    if kind == "ICI":
        return size @ share
    level = {"E50": 0.5, "E90": 0.9}[kind]
    order = np.argsort(size, axis=-1)
    cumulative = np.cumsum(share[order], axis=-1)
    place = (cumulative < level * share.sum() * (1 - 1e-12)).sum(axis=-1)
    chosen = np.take_along_axis(order, place[..., np.newaxis], axis=-1)
    return np.take_along_axis(size, chosen, axis=-1)[..., 0]


def compute_norm_interval(
    smooth: SmoothResidual, kind: str, noise: Array, confidence_level: float
) -> tuple[float, float]:
    """Return the interval of a norm of the residual, by inversion of a test.

    If the true residual were t times the observed one, one would observe norms of t times the
    residual plus `noise`, (n_draws, m). The interval consists of t times the norm for all t where
    the observed norm lies between the quantiles of those. It ends no lower than their upper
    quantile at t = 1, without which its upper end was too low in .05 to .12 of the draws.
    """
    tail = (1 - confidence_level) / 2
    observed = float(compute_residual_norm(smooth.residual, smooth.share, kind))

    def quantile(t: float, level: float) -> float:
        drawn = compute_residual_norm(t * smooth.residual + noise, smooth.share, kind)
        return float(np.quantile(drawn, level))

    def solve(level: float) -> float:
        if quantile(0.0, level) >= observed:
            return 0.0
        low, high = 0.0, 1.0
        while quantile(high, level) < observed and high < 64:
            low, high = high, 2 * high
        for _ in range(12):
            middle = (low + high) / 2
            low, high = (middle, high) if quantile(middle, level) < observed else (low, middle)
        return (low + high) / 2

    low, high = observed * solve(1 - tail), observed * solve(tail)
    return low, max(high, quantile(1.0, 1 - tail))
