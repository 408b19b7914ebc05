"""The most likely noise: its four numbers, and an interval of its rate."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.stats import chi2

from ._likelihood import NoiseLikelihood, NoiseParameters, believed_classes
from ._newton import Derivatives, maximum
from ._systematic import SystematicFlips, find_systematic_flips

# Elements of the distances that enter the likelihood, and samples that do in any case: of very
# many samples, a random part tells four numbers well enough.
_MAX_ELEMENTS = 2**21
_MIN_SAMPLES = 5000
# A vector of parameters holds the logarithms of t, of both rates relative to that of true labels
# (their odds), and of b - 1. Near flips are fewer than true labels, or the nearest class could
# pass for the truth and every label for wrong.
_BOUNDS = np.array([(-5.0, 10.0), (-14.0, 4.0), (-14.0, 0.0), (-6.0, 4.0)])
_START = NoiseParameters(8.0, 0.05)
_NEAR_START = NoiseParameters(1.0, 0.0, 0.15, 1.5)
# Times that systematic flips are looked for.
_SYSTEMATIC_ROUNDS = 4
_BISECTIONS = 5  # of a step that is about a standard error


class NoiseFit(NamedTuple):
    """The maximum of the likelihood."""

    parameters: NoiseParameters
    log_likelihood: float  # mean over the samples
    likelihood: NoiseLikelihood

    @property
    def flips(self) -> SystematicFlips | None:
        """Systematic flips, if there are any."""
        return self.likelihood.flips


def fit_noise_model(
    distances: NDArray,
    codes: NDArray[np.intp],
    weight: NDArray[np.float64],
    verified: NDArray[np.bool_],
    *,
    mixed: bool,
) -> NoiseFit:
    """Return the most likely parameters; those of random flips alone are among the candidates.

    Parameters
    ----------
    distances, codes, weight, verified : ndarray
        As in `NoiseLikelihood`.
    mixed : bool
        Whether there may be near and systematic flips.
    """
    n_classes = distances.shape[1]
    kept = np.flatnonzero(weight > 0)
    n_kept = max(_MIN_SAMPLES, _MAX_ELEMENTS // n_classes)
    if len(kept) > n_kept:
        kept = np.sort(np.random.default_rng(0).choice(kept, n_kept, replace=False))
    part = distances[kept], codes[kept], weight[kept], verified[kept]
    fit = _most_likely(NoiseLikelihood(*part), mixed=mixed)
    if not mixed:
        return fit
    systematic = _with_systematic_flips(fit, distances, codes, weight, verified)
    if systematic.flips is None:
        return fit
    # The model takes all classes for equally probable. Where they are not, the labels of the large
    # ones look like flips from the small ones; then the sizes explain them better than flips do.
    size = np.maximum(np.bincount(codes, weight, n_classes), 1.0)
    shift = -2.0 * fit.parameters.temperature * np.log(size)  # of q = softmax(-distances / (2 t))
    by_size = _most_likely(NoiseLikelihood(part[0] + shift, *part[1:]), mixed=True)
    return systematic if systematic.log_likelihood > by_size.log_likelihood else fit


def _with_systematic_flips(
    fit: NoiseFit,
    distances: NDArray,
    codes: NDArray[np.intp],
    weight: NDArray[np.float64],
    verified: NDArray[np.bool_],
) -> NoiseFit:
    likelihood = fit.likelihood
    # What has been verified tells nothing of how labels are before.
    unverified = np.where(verified, 0.0, weight)
    for _ in range(_SYSTEMATIC_ROUNDS):
        # Of all samples, also where a part of them served so far: a class needs some.
        believed = believed_classes(distances, codes, verified, fit.parameters)
        flips = find_systematic_flips(believed, codes, unverified, distances.shape[1])
        if flips is None and fit.flips is None:
            return fit
        before = fit
        # What the pairs explain passed for doubt of the scorer so far, and hid others.
        fit = _most_likely(likelihood.with_flips(flips), mixed=True)
        if flips is None or flips.has_pairs_of(before.flips):
            return fit
    return fit


def _most_likely(likelihood: NoiseLikelihood, *, mixed: bool) -> NoiseFit:
    random = _maximum(likelihood, _START, mixed=False)
    # Of two classes, the other one is random and near at once.
    if not mixed or likelihood.n_classes == 2:
        return random
    p, near = random.parameters, _NEAR_START
    # Near flips get a part of what random flips leave, so that the rates stay below one.
    rest = p.random_rate * (1.0 - near.near_rate)
    start = NoiseParameters(p.temperature, rest, near.near_rate * (1.0 - rest), near.spread)
    return max(random, _maximum(likelihood, start, mixed=True), key=lambda f: f.log_likelihood)


def rate_interval(fit: NoiseFit, confidence_level: float = 0.95) -> tuple[float, float]:
    """Return the profile likelihood interval of the noise rate.

    It holds the rates whose best likelihood is not below the maximum by more than chance makes it
    (Wilks): half a quantile of chi-squared, between logarithms.
    """
    # The log-likelihoods are means over the samples; this becomes one by the division.
    allowed = 0.5 * chi2.ppf(confidence_level, df=1) / fit.likelihood.total_weight
    best = float(np.log(fit.parameters.rate / (1.0 - fit.parameters.rate)))
    ends = []
    for direction in (-1.0, 1.0):
        vector = _vector(fit.parameters)

        def is_likely(log_odds: float) -> bool:
            nonlocal vector  # every search starts where the last one ended
            vector, value = _maximum_at_rate(fit.likelihood, vector, np.exp(log_odds))
            return value > fit.log_likelihood - allowed

        # The search begins at the standard error of a counted rate, in log-odds.
        n_wrong = fit.likelihood.total_weight * fit.parameters.rate
        step = direction / np.sqrt(max(n_wrong, 1.0))
        inside, outside = best, best + step
        # Ever longer steps until the rate is unlikely, or the end of the bounds is passed.
        while abs(outside) < -_BOUNDS[1, 0] and is_likely(outside):
            inside, step = outside, 2.0 * step
            outside += step
        for _ in range(_BISECTIONS if abs(outside) < -_BOUNDS[1, 0] else 0):
            middle = 0.5 * (inside + outside)
            inside, outside = (middle, outside) if is_likely(middle) else (inside, middle)
        # The outer side of the last step: the interval is never too narrow by the search.
        ends.append(outside)
    low, high = 1.0 / (1.0 + np.exp(-np.array(ends)))
    return float(low), float(high)


def _parameters(vector: NDArray[np.float64]) -> NoiseParameters:
    temperature, random, near, excess = np.exp(vector)
    # Odds against true labels, whose own are 1: the three probabilities add up to one.
    true = 1.0 / (1.0 + random + near)
    return NoiseParameters(
        float(temperature), float(true * random), float(true * near), 1.0 + float(excess)
    )


def _vector(p: NoiseParameters) -> NDArray[np.float64]:
    odds = np.array([p.random_rate, p.near_rate]) / (1.0 - p.rate)
    with np.errstate(divide="ignore"):  # no near flips
        return np.log([p.temperature, *odds, max(p.spread - 1.0, 1e-3)])


def _derivatives(likelihood: NoiseLikelihood, vector: NDArray[np.float64]) -> Derivatives:
    """Return the mean log-likelihood and its derivatives by the vector."""
    p = _parameters(vector)
    u, n = p.random_rate, p.near_rate
    # The rates are a softmax: d r_i / d log odds_j = r_i ([i = j] - r_j). With the excess
    # e = b - 1, d log b / d log e = e / b = 1 - 1 / b.
    directions = np.diag([1.0, u * (1.0 - u), n * (1.0 - n), 1.0 - 1.0 / p.spread])
    directions[1, 2] = directions[2, 1] = -u * n
    return likelihood.derivatives(p).along(directions)


def _maximum(likelihood: NoiseLikelihood, start: NoiseParameters, *, mixed: bool) -> NoiseFit:
    n_free = 4 if mixed else 2
    fixed = _vector(start)[n_free:]

    def derivatives(x: NDArray[np.float64]) -> Derivatives:
        return _derivatives(likelihood, np.append(x, fixed)).along(np.eye(n_free, 4))

    x, value = maximum(derivatives, _vector(start)[:n_free], _BOUNDS[:n_free])
    return NoiseFit(_parameters(np.append(x, fixed)), value, likelihood)


def _maximum_at_rate(
    likelihood: NoiseLikelihood, start: NDArray[np.float64], odds: float
) -> tuple[NDArray[np.float64], float]:
    """Return the vector, and the log-likelihood, where wrong labels have these odds."""
    # Both rates by the same factor, to begin with.
    start = start + np.log(odds / np.exp(start[1:3]).sum()) * np.array([0.0, 1.0, 1.0, 0.0])
    # Without near flips, the rate leaves the temperature alone to be fitted.
    free = [0] if np.isneginf(start[2]) else [0, 2, 3]

    def vector(x: NDArray[np.float64]) -> NDArray[np.float64]:
        moved = start.copy()
        moved[free] = x
        moved[1] = np.log(max(odds - np.exp(moved[2]), 1e-300))
        return moved

    def derivatives(x: NDArray[np.float64]) -> Derivatives:
        moved = vector(x)
        directions = np.eye(4)
        directions[2, 1] = -np.exp(moved[2] - moved[1])  # one rate grows at the cost of the other
        return _derivatives(likelihood, moved).along(directions[free])

    bounds = _BOUNDS.copy()
    # Near flips stay below the odds of all: something is left for random ones.
    highest = min(bounds[2, 1], np.log(odds) - 1e-6)
    bounds[2] = min(bounds[2, 0], highest - 1.0), highest
    x, value = maximum(derivatives, start[free], bounds[free])
    return vector(x), value
