"""The temperature of least log-loss: a safeguarded Newton search in one dimension.

Next to the temperature there may be a uniform component: the probability of a label is
``(1 - w) softmax(z / T)_y + w / K``. Without it, a few labels of probability near 0 would decide
the temperature. The best w is found for every T, at almost no cost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.polynomial import Polynomial
from numpy.typing import NDArray
from scipy.optimize import brentq

from ..utils._backends import as_float64, find_accelerated, get_back_end, to_host
from ..utils._numeric import (
    BLOCK_SIZE,
    compute_row_max,
    compute_row_sum,
    compute_row_top_two,
    iter_blocks,
)
from ..utils._output import warn

DEFAULT_BOUNDS = (1e-3, 1e3)
_SAMPLE_ROWS = 2048
_MAX_ITERATIONS = 200
# Newton's error after a step is of the order of the square of that step.
_RELATIVE_STEP = 1e-6
_RELATIVE_STEP_OF_SAMPLE = 1e-3
# Replaces a logit of -inf, relative to the top of its row: exp(0.001 * -1e18) is 0, and so is 0
# times its square, which float32 can hold.
_LOWEST = -1e18


class TemperatureFit(NamedTuple):
    """A temperature and the weight of the uniform component, None without one."""

    temperature: float
    uniform_weight: float | None


def fit_temperature(
    logits: NDArray,
    y: NDArray,
    sample_weight: NDArray | None,
    bounds: tuple[float, float],
    *,
    uniform: bool = False,
    pseudo_errors: float = 0.0,
    near: float | None = None,
    roughly: bool = False,
) -> TemperatureFit:
    """Return the T in `bounds` of least mean log-loss, and the weight of the uniform component.

    Without that component, the log-loss is convex in 1 / T, in which Newton's steps are taken. A
    strided subset of the samples finds their start, so that all samples are read only two or
    three times; `near`, the temperature of nearly the same samples, replaces it. It begins in the
    middle of the bounds, on a log scale. The
    `pseudo_errors` count like so many samples, spread over all, whose label is the runner-up.
    The start of another search may be found `roughly`.
    """
    if not pseudo_errors and _is_every_label_on_top(logits, y):
        return TemperatureFit(bounds[0], 0.0 if uniform else None)
    # beta = 1 / T falls as T rises, so the bounds change places.
    beta_bounds = (1 / bounds[1], 1 / bounds[0])
    middle = np.sqrt(beta_bounds[0]) * np.sqrt(beta_bounds[1])
    start = float(np.clip(middle if near is None else 1 / near, *beta_bounds))
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    stride = len(logits) // _SAMPLE_ROWS
    # A subset pays only where there are several times as many samples.
    if stride >= 3 and near is None:
        some = slice(None, None, stride)
        problem = TemperatureProblem(logits[some], y[some], weight[some], uniform, pseudo_errors)
        start = find_beta(problem, beta_bounds, start, _RELATIVE_STEP_OF_SAMPLE)
    problem = TemperatureProblem(logits, y, weight, uniform, pseudo_errors)
    rough = roughly or near is not None
    tolerance = _RELATIVE_STEP_OF_SAMPLE if rough else _RELATIVE_STEP
    beta = find_beta(problem, beta_bounds, start, tolerance)
    # Rounding in 1 / (1 / bound) may leave the bounds.
    return TemperatureFit(float(np.clip(1 / beta, *bounds)), problem.uniform_weight)


def warn_of_bound(temperature: float, bounds: tuple[float, float]) -> None:
    """Warn where the temperature is a bound."""
    if bounds[0] < bounds[1] and temperature in bounds:
        which, why = (
            ("lower", "the samples are too few or too well separated to find a temperature")
            if temperature == bounds[0]
            else ("upper", "the logits say little about the labels, or the opposite")
        )
        warn(f"The temperature is at its {which} bound, {temperature:g}: {why}.")


def compute_softmax_at(logits: NDArray, temperature: float) -> NDArray:
    """Return softmax(logits / T), whose rows sum to 1 in their own precision."""
    proba = np.empty(logits.shape, dtype=np.result_type(logits.dtype, np.float32))
    for rows, block in iter_blocks(logits):
        with np.errstate(over="ignore"):
            # Minus the largest first: what overflows afterwards is a probability of 0.
            below = block - compute_row_max(block)[:, None]
            below /= below.dtype.type(temperature)
        terms = np.exp(below, out=below)
        np.divide(terms, compute_row_sum(terms)[:, None], out=proba[rows])
    return proba


def compute_softmax_in_place(logits: NDArray) -> NDArray:
    """Turn a block of logits into their softmax."""
    logits -= compute_row_max(logits)[:, None]
    np.exp(logits, out=logits)
    logits /= compute_row_sum(logits)[:, None]
    return logits


def log_softmax_at(logits: NDArray, temperature: float) -> tuple[NDArray, NDArray]:
    """Return softmax(logits / T) and its logarithm, in the order of the logits in memory."""
    dtype = np.result_type(logits.dtype, np.float32)
    proba, log_proba = np.empty_like(logits, dtype), np.empty_like(logits, dtype)
    step = max(1, BLOCK_SIZE // logits.shape[1])
    for start in range(0, len(logits), step):
        rows = slice(start, start + step)
        block, below, terms = logits[rows], log_proba[rows], proba[rows]
        with np.errstate(over="ignore"):
            np.subtract(block, compute_row_max(block)[:, None], out=below, dtype=dtype)
            below /= dtype.type(temperature)
        np.exp(below, out=terms)
        total = compute_row_sum(terms)[:, None]
        terms /= total
        below -= np.log(total)
    return proba, log_proba


def compute_uniform_prior(n: float) -> float:
    """Return the probability that the pseudo-sample is of the uniform component: 1 / (n + 1)."""
    return 1 / (max(n, 1.0) + 1)


def find_uniform_weight(
    of_label: NDArray, chance: NDArray | float, fraction: NDArray, n: float, w: float
) -> float:
    """Return the w of largest mean log of ``(1 - w) of_label + w chance``, from the start `w`.

    The prior is one pseudo-sample that comes from the uniform component with probability
    1 / (n + 1): if no sample needs the component, w is 1 / (n + 1)^2. The function is concave:
    EM's steps approach its maximum from one side, Newton's are taken where they stay in (0, 1).
    """
    pseudo = compute_uniform_prior(n)
    for _ in range(100):
        mixed = (1 - w) * of_label + w * chance
        ratio = chance / mixed
        # EM: the fraction of the samples that the uniform component explains.
        target = (n * w * float(fraction @ ratio) + pseudo) / (n + 1)
        slope = (target - w) / (w * (1 - w))
        difference = (of_label - chance) / mixed
        bend = n / (n + 1) * float(fraction @ difference**2)
        bend += pseudo / (n + 1) / w**2 + (1 - pseudo) / (n + 1) / (1 - w) ** 2
        latest = w + slope / bend
        if not w / 2 < latest < (1 + w) / 2:
            # Near 0 and 1 the function behaves like a logarithm: take the step in log w.
            scale = bend * w - slope
            latest = w * np.exp(np.clip(slope / scale, -3, 3)) if scale > 0 else target
            latest = min(float(latest), (1 + w) / 2)
        if abs(latest - w) <= 1e-9 * w:
            return latest
        w = latest
    return w


def compute_slope_and_curvature(
    logits: NDArray, y: NDArray, sample_weight: NDArray | None, beta: float
) -> tuple[float, float]:
    """Return the first two derivatives in `beta` of the total log-loss of softmax(beta z)."""
    weight = np.ones(len(y)) if sample_weight is None else sample_weight
    slope = curvature = 0.0
    for rows, _, by_beta, twice in label_terms(logits, y, beta):
        slope += float(weight[rows] @ by_beta)
        curvature += float(weight[rows] @ twice)
    return slope, curvature


def label_terms(
    logits: NDArray, y: NDArray, beta: float
) -> Iterator[tuple[slice, NDArray, NDArray, NDArray]]:
    """Yield rows, -log softmax(beta z) of their labels, and its two derivatives in beta.

    With p = softmax(beta z) these are E_p[z] - z_y and Var_p[z]. The logits are processed in
    their own precision and summed in float64. On an accelerator all of these are tensors.
    """
    xp, _ = get_back_end(logits)
    for rows, block in iter_blocks(logits, on_device=True):
        z, label = _subtract_top(block, y[rows])
        # z <= 0, and 0 at the top: no term overflows, and their sum is at least 1.
        term = z * float(beta)
        total = as_float64(compute_row_sum(xp.exp(term, out=term)))
        mean = compute_row_sum(xp.multiply(term, z, out=term)) / total
        variance = compute_row_sum(xp.multiply(term, z, out=term)) / total - mean * mean
        yield rows, xp.log(total) - beta * label, mean - label, variance


def _subtract_top(block: Any, y: Any) -> tuple[Any, Any]:
    """Return the logits minus the largest of their row, and those of the labels."""
    xp, place = get_back_end(block)
    with np.errstate(over="ignore"):
        z = block - compute_row_max(block)[:, None]
    xp.clip(z, _LOWEST, None, out=z)
    return z, as_float64(z[place(np.arange(len(z))), y])


def _is_every_label_on_top(logits: NDArray, y: NDArray) -> bool:
    """Return whether the log-loss falls all the way to T = 0.

    It does if no label is below the top of its row and not all rows are constant. The slope does
    not show this, since it underflows to 0 long before.
    """
    varied = False
    for rows, block in iter_blocks(logits):
        z, label = _subtract_top(block, y[rows])
        if np.any(label < 0):
            return False
        varied = varied or bool(np.any(z < 0))
    return varied


def compute_margins(logits: Any) -> Any:
    """Return by how much the largest logit of every row is above the second-largest."""
    xp, _ = get_back_end(logits)
    margins = []
    for _, block in iter_blocks(logits, on_device=True):
        first, second = compute_row_top_two(block)
        # A single option cannot be wrong.
        second = xp.where(second == -xp.inf, first, second)
        margins.append(as_float64(first) - second)
    return xp.concatenate(margins)


def _compute_chance(logits: Any) -> Any:
    """Return the uniform probability over the options that exist, whose logit is not -inf."""
    xp, _ = get_back_end(logits)
    n_options = [(block != -xp.inf).sum(1) for _, block in iter_blocks(logits, on_device=True)]
    return 1 / as_float64(xp.concatenate(n_options))


class TemperatureProblem:
    """The log-loss as a function of beta, at the best weight of the uniform component."""

    def __init__(
        self, logits: NDArray, y: NDArray, weight: NDArray, uniform: bool, pseudo_errors: float
    ) -> None:
        self.logits, self.y, self.weight = logits, y, weight
        self.n = float(weight.sum())
        self.uniform_weight: float | None = None
        if uniform:
            self.uniform_weight = compute_uniform_prior(self.n)
            self.chance = _compute_chance(logits)
        self.margins = self.pseudo = None
        if pseudo_errors:
            self.pseudo = pseudo_errors * weight / max(self.n, 10.0)
            self.margins = compute_margins(logits)

    def slope_and_curvature(self, beta: float) -> tuple[float, float]:
        """Return the first two derivatives in beta."""
        with np.errstate(over="ignore", invalid="ignore"):  # logits too large for float32
            if self.uniform_weight is None:
                slope, curvature = compute_slope_and_curvature(
                    self.logits, self.y, self.weight, beta
                )
            else:
                slope, curvature = self._beside_uniform(beta)
        return self._with_pseudo_errors(beta, slope, curvature, self.pseudo)

    def _with_pseudo_errors(
        self,
        beta: float,
        slope: float,
        curvature: float,
        pseudo: NDArray | None,
        change: NDArray | None = None,
    ) -> tuple[float, float]:
        """Return slope and curvature plus those of the pseudo-errors.

        Their weights are `pseudo` (n,), whose derivatives in beta are `change`, 0 if None.
        """
        if self.margins is not None and pseudo is not None:
            # The log-loss of the runner-up against the top, log(1 + exp(beta margin)).
            wrong = 1 / (1 + np.exp(-np.minimum(beta * self.margins, 700)))
            slope += float(pseudo @ (wrong * self.margins))
            with np.errstate(over="ignore", invalid="ignore"):
                curvature += float(pseudo @ (wrong * (1 - wrong) * self.margins**2))
            if change is not None:
                curvature += float(change @ (wrong * self.margins))
        return slope, curvature

    def _beside_uniform(self, beta: float) -> tuple[float, float]:
        """Return the derivatives of the log-loss at the best weight, which moves with beta."""
        terms = np.empty((3, len(self.y)))
        for rows, *found in label_terms(self.logits, self.y, beta):
            terms[:, rows] = found
        of_label, (by_beta, twice) = np.exp(-terms[0]), terms[1:]
        fraction = self.weight / self.n
        w = self.uniform_weight or compute_uniform_prior(self.n)
        w = find_uniform_weight(of_label, self.chance, fraction, self.n, w)
        self.uniform_weight = w
        mixed = (1 - w) * of_label + w * self.chance
        # r is the probability that the label comes from the softmax, not from the uniform
        # component: d log mixed = -r d(-log q), and dr = -r (1 - r) d(-log q).
        r = (1 - w) * of_label / mixed
        slope = float(self.weight @ (r * by_beta))
        curvature = float(self.weight @ (r * twice - r * (1 - r) * by_beta**2))
        # The weight moves with beta: minus the squared mixed derivative over that in w.
        cross = float(self.weight @ (by_beta * of_label * self.chance / mixed**2))
        bend = float(self.weight @ ((of_label - self.chance) / mixed) ** 2)
        pseudo = compute_uniform_prior(self.n)
        bend += pseudo / w**2 + (1 - pseudo) / (1 - w) ** 2
        return slope, curvature - cross**2 / bend


def find_beta(
    problem: TemperatureProblem | LogLossSeries,
    bounds: tuple[float, float],
    beta: float,
    tolerance: float,
) -> float:
    """Return the beta in `bounds` of least log-loss, where its slope changes sign.

    Without a uniform component the log-loss is convex, so its slope rises with beta; with one, it
    does so near the optimum. The bracket low < high keeps a negative slope (or the lower bound) on
    its left and a positive one (or the upper bound) on its right::

        slope      - - - - - - - - - 0 + + + + + + + +
                |         |          |        |      |
               low       beta --> Newton     high   bound

    From beta, Newton's step leads to one of four places:

    1. inside the bracket: the search goes on there, and ends if the step is short;
    2. outside, where the slope bends: the same step is taken in log(beta), which cannot leave
       (0, inf), by at most a factor of e; the search goes on there if that is inside;
    3. both outside: the end of the bracket on that side, once, since the optimum may be the bound
       or beyond it;
    4. if that end has been seen: the middle of the bracket on a log scale.

    Newton's steps may go to and fro around a kink. Between two ends that have been seen, a step
    that did not halve the slope is therefore followed by the middle, too.
    """
    low, high = bounds
    seen = set()
    slope = np.inf
    for _ in range(_MAX_ITERATIONS):
        seen.add(beta)
        last = abs(slope)
        slope, curvature = problem.slope_and_curvature(beta)
        low, high = (beta, high) if slope < 0 else (low, beta)
        if slope == 0 or high - low <= tolerance * beta:
            break
        # A curvature of 0, or below it by rounding, means a step beyond either end.
        step = -slope / curvature if curvature > 0 else np.copysign(np.inf, -slope)
        if abs(step) <= tolerance * beta:
            return float(np.clip(beta + step, low, high))
        end = high if step > 0 else low
        candidates = (beta + step, beta * np.exp(min(step / beta, 1.0)))
        inside = [candidate for candidate in candidates if low < candidate < high]
        to_and_fro = abs(slope) > last / 2 and {low, high} <= seen
        if inside and not to_and_fro:
            beta = float(inside[0])
        elif end not in seen:
            beta = end
        else:
            beta = float(np.sqrt(low * high))
    return beta


# The least log-loss itself, without a uniform component: near its end the search needs no second
# look at the samples, because a series in beta gives the loss.

# A step by this fraction of beta ends the search; the first term left out of the series is then
# below 1e-8 nats in all cases tried, of 2 to 10 000 classes.
_STEP_OF_SERIES = 2e-2
# A second subset, a part of all samples, takes the start to within that step of the end.
_PART_OF_SECOND = 8


class LogLossSeries:
    """The mean log-loss of softmax(beta z) and its first four derivatives in beta.

    ``below`` are logits minus the largest of their row, (n, K), and ``of_label`` those of the
    labels, (n,). All are arrays, or tensors on an accelerator, where the sums are taken.
    """

    def __init__(self, below: Any, of_label: Any, weight: Any) -> None:
        self.xp, _ = get_back_end(below)
        self.below: Any = below if self.xp is np else find_accelerated(below)
        self.of_label, self.weight = of_label, weight
        self.n = float(len(of_label) if weight is None else weight.sum())
        self.beta, self.derivatives = 0.0, np.zeros(5)

    def slope_and_curvature(self, beta: float) -> tuple[float, float]:
        """Return the first two derivatives; keep all of them."""
        xp, sums = self.xp, 0.0
        for rows, z in iter_blocks(self.below, on_device=True):
            # z <= 0, and 0 at the top: no term overflows, and their sum is at least 1.
            term = z * float(beta)
            total = as_float64(compute_row_sum(xp.exp(term, out=term)))
            first, second, third, fourth = (
                compute_row_sum(xp.multiply(term, z, out=term)) / total for _ in range(4)
            )
            # The cumulants of z under the softmax, from its moments. Products, since numpy takes a
            # hundred times as long for cubes and fourth powers.
            square = first * first
            variance = second - square
            skew = third - 3 * first * second + 2 * square * first
            tails = fourth - 4 * first * third + 12 * square * second - 6 * square * square
            tails -= 3 * second * second
            label = self.of_label[rows]
            losses = xp.log(total) - beta * label, first - label, variance, skew, tails
            weight = 1.0 if self.weight is None else self.weight[rows]
            sums += xp.stack([(weight * part).sum() for part in losses])
        self.beta, self.derivatives = beta, to_host(sums) / self.n
        return self.derivatives[1], self.derivatives[2]

    def least(self, bounds: tuple[float, float]) -> float:
        """Return the least value of the series near the latest beta."""
        width = _STEP_OF_SERIES * self.beta
        low, high = max(bounds[0] - self.beta, -width), min(bounds[1] - self.beta, width)
        series = Polynomial(self.derivatives / [1, 1, 2, 6, 24])
        slope, step = series.deriv(), 0.0
        for _ in range(3):  # Newton's error is squared by every step
            curvature = slope.deriv()(step)
            if curvature > 0:
                step = min(max(step - slope(step) / curvature, low), high)
        return float(series(step))


def compute_least_log_loss(
    below: Any, of_label: Any, weight: Any, bounds: tuple[float, float]
) -> float:
    """Return the mean log-loss at the best T in `bounds`, of :class:`LogLossSeries`."""
    beta_bounds = (1 / bounds[1], 1 / bounds[0])
    beta = float(np.sqrt(beta_bounds[0]) * np.sqrt(beta_bounds[1]))
    problem = LogLossSeries(below, of_label, weight)
    if not (of_label < 0).any():  # the loss falls all the way to T = 0
        problem.slope_and_curvature(beta_bounds[1])
        return float(max(problem.derivatives[0], 0.0))
    n = len(below)
    for size in (_SAMPLE_ROWS, n // _PART_OF_SECOND):
        if _SAMPLE_ROWS <= size <= n // 3:
            some = slice(None, None, n // size)
            of_some = None if weight is None else weight[some]
            part = LogLossSeries(below[some], of_label[some], of_some)
            beta = find_beta(part, beta_bounds, beta, _RELATIVE_STEP_OF_SAMPLE)
    find_beta(problem, beta_bounds, beta, _STEP_OF_SERIES)
    return max(problem.least(beta_bounds), 0.0)


# The same search where the samples lie in chunks: each step is one pass that adds up sums


class TemperatureSums(NamedTuple):
    """Sums over samples at some beta = 1 / T and weight w of the uniform component.

    The log-loss without the prior of w, its first and second derivatives in beta and in w, the
    mixed one; how many labels are below the top of their row, and how many rows vary.
    """

    loss: float = 0.0
    slope: float = 0.0
    curvature: float = 0.0
    by_weight: float = 0.0
    twice_by_weight: float = 0.0
    mixed: float = 0.0
    n_below_top: float = 0.0
    n_varied: float = 0.0


def compute_temperature_sums(
    logits: Any,
    y: Any,
    weight: Any,
    beta: float,
    w: float | None,
    n: float,
    pseudo_errors: float,
) -> Any:
    """Return the :class:`TemperatureSums` of some samples; all samples together weigh n.

    They are one array, or a tensor where the samples are on an accelerator.
    """
    xp, place = get_back_end(logits)
    logits = logits if xp is np else find_accelerated(logits)
    terms = xp.concatenate([xp.stack(found) for _, *found in label_terms(logits, y, beta)], 1)
    margins, (by_beta, twice) = compute_margins(logits), terms[1:]
    sums = place(np.zeros(len(TemperatureSums._fields)))
    if w is None:
        sums[:3] = terms @ weight
    else:
        of_label, chance = xp.exp(-terms[0]), _compute_chance(logits)
        mixed = (1 - w) * of_label + w * chance
        r, gain = (1 - w) * of_label / mixed, (of_label - chance) / mixed
        variance = r * (1 - r)
        of_samples = TemperatureSums(
            loss=-xp.log(mixed),
            slope=r * by_beta,
            curvature=r * twice - variance * by_beta**2,
            by_weight=gain,
            twice_by_weight=gain**2,
            mixed=-variance * by_beta / (w * (1 - w)),
        )
        sums[:6] = xp.stack(of_samples[:6]) @ weight
    # The log-loss of the runner-up against the top, log(1 + exp(beta margin)), of the
    # pseudo-errors.
    pseudo = pseudo_errors * weight / max(n, 10.0)
    wrong = 1 / (1 + xp.exp(-(beta * margins).clip(max=700)))
    loss = xp.logaddexp(0 * margins, beta * margins)
    sums[:3] += xp.stack([loss, wrong * margins, wrong * (1 - wrong) * margins**2]) @ pseudo
    for rows, block in iter_blocks(logits, on_device=True):
        z, label = _subtract_top(block, y[rows])
        sums[6] += (label < 0).sum()
        sums[7] += (z < 0).any(1).sum()
    return sums


def fit_temperature_by_sums(
    sums_at: Callable[[float, float | None], NDArray[np.float64]],
    start: TemperatureFit,
    n: float,
    bounds: tuple[float, float],
    *,
    pseudo_errors: float = 0.0,
) -> TemperatureFit:
    """Return what :func:`fit_temperature` does, from sums over all samples, of weight n.

    `sums_at` makes one pass; `start` comes from a part of the samples. The steps are Newton's in
    beta and w at once, with the exact prior of w.
    """
    low, high = 1 / bounds[1], 1 / bounds[0]
    beta, w = float(np.clip(1 / start.temperature, low, high)), start.uniform_weight
    for _ in range(_MAX_ITERATIONS):
        at = TemperatureSums(*sums_at(beta, w))
        if not pseudo_errors and not at.n_below_top and at.n_varied:
            return TemperatureFit(bounds[0], None if w is None else 0.0)
        bend = at.curvature if at.curvature > 0 else abs(at.slope) / beta
        latest, change = w, 0.0
        if w is not None and bend > 0:
            latest = update_uniform_weight(
                at.by_weight - at.mixed * at.slope / bend,
                max(at.twice_by_weight - at.mixed**2 / bend, 0.0),
                w,
                n,
            )
            change = latest - w
        step = -(at.slope + at.mixed * change) / bend if bend > 0 else 0.0
        # A step of beta / 2 or more is taken in log(beta), by at most a factor of e.
        candidate = (
            beta + step if abs(step) < beta / 2 else beta * np.exp(np.clip(step / beta, -1, 1))
        )
        candidate = float(np.clip(candidate, low, high))
        done = abs(candidate - beta) <= _RELATIVE_STEP * beta
        beta, w = candidate, latest
        # Sums in single precision determine a small weight no better than this.
        if done and (w is None or abs(change) <= max(_RELATIVE_STEP * w, 1e-9)):
            break
    return TemperatureFit(float(np.clip(1 / beta, *bounds)), w)


def update_uniform_weight(slope: float, bend: float, w: float, n: float) -> float:
    """Return the weight of least ``slope (v - w) + bend (v - w)^2 / 2``, beside its prior.

    The prior is that of :func:`find_uniform_weight`; the weight falls by a factor of 1000 at most.
    """
    pseudo = compute_uniform_prior(n)

    def by_log(log_v: float) -> float:
        v = np.exp(log_v)
        return float(slope + bend * (v - w) - pseudo / v + (1 - pseudo) / (1 - v))

    low, high = np.log(w) - np.log(1000), np.log1p(-1e-12)
    if by_log(low) >= 0:
        return float(np.exp(low))
    return float(np.exp(high if by_log(high) <= 0 else brentq(by_log, low, high, xtol=1e-12)))
