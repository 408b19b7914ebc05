"""How many samples the validation of a risk model needs."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import brentq
from scipy.special import expit, logit, ndtri
from sklearn.utils import check_random_state

from ..utils._compat import Interval, validate_params
from ..utils._output import as_table
from ..utils._proba import as_proba, check_values
from ._decisions import estimate_benefit
from ._risk_model import (
    Array,
    Estimate,
    Sample,
    compute_norm_interval,
    estimate_auroc,
    estimate_observed_to_expected,
    estimate_smooth_residual,
    find_root,
    recalibrate,
)

if TYPE_CHECKING:
    import pandas as pd

# Usual widths of a validation study, those of the R package pmvalsampsize.
_WIDTHS = {"o_e_ratio": 0.2, "slope": 0.2, "auroc": 0.1}
_STATISTICS = "o_e_ratio", "calibration_in_the_large", "slope", "auroc", "ici", "net_benefit"
_DETECTABLE = "o_e_ratio", "calibration_in_the_large", "slope"
_FEWEST, _MOST = 20, 1_000_000
# The first simulations only show where to look.
_ROUNDS = (0.1, 0.25, 1.0)
_N_NOISE = 399


@validate_params(
    {
        "probability": [Interval(Real, 0, 1, closed="neither")],
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_simulations": [Interval(Integral, 20, None, closed="left")],
        "random_state": ["random_state"],
        "as_frame": ["boolean"],
    }
)
def samples_for_validation(
    y_proba: ArrayLike | None = None,
    *,
    rate: float | None = None,
    auroc: float | None = None,
    width: Mapping[str, float] | None = None,
    detect: Mapping[str, float] | None = None,
    threshold: float | None = None,
    probability: float = 0.9,
    confidence_level: float = 0.95,
    n_simulations: int = 400,
    random_state: Any = None,
    as_frame: bool = False,
) -> NDArray[Any] | pd.DataFrame:
    """Return how many samples the validation of a risk model needs.

    So many that an interval of :func:`validation_summary` is no wider than wanted, or excludes the
    ideal value where the model is miscalibrated, with a given probability. It is found by
    simulation: outcomes are drawn for the probabilities, and the intervals computed from them.

    Parameters
    ----------
    y_proba : array-like of shape (n_samples,) or (n_samples, 2), default=None
        Probabilities that the model gives to samples such as those of the study, of any number.
        None takes normal log-odds with the given `rate` and `auroc`.
    rate : float, default=None
        Expected fraction of events, in (0, 1), where `y_proba` is None.
    auroc : float, default=None
        Expected area under the ROC curve, in (.5, 1), where `y_proba` is None.
    width : dict of str to float, default=None
        Widths of the intervals, upper minus lower end, of a calibrated model: of "o_e_ratio",
        "calibration_in_the_large", "slope", "auroc", "ici" or "net_benefit". None without `detect`
        means those of the R package pmvalsampsize, .2 for O/E and slope and .1 for the AUROC.
    detect : dict of str to float, default=None
        True values of a miscalibrated model whose interval is to exclude the ideal one: of
        "o_e_ratio", "calibration_in_the_large" or "slope" (with a right mean probability).
    threshold : float, default=None
        Probability from which on one acts, in (0, 1), for "net_benefit".
    probability : float, default=0.9
        Probability, in (0, 1), with which the aim is reached.
    confidence_level : float, default=0.95
        Level of the intervals, in (0, 1).
    n_simulations : int, default=400
        Number of simulated studies, at least 20. With 400, the standard error of the numbers is
        about 4 % for "detect", and less for "width".
    random_state : int, RandomState instance or None, default=None
        Draws the studies.
    as_frame : bool, default=False
        Whether to return a DataFrame instead of a structured array.

    Returns
    -------
    table : structured array or DataFrame, one line per aim
        With ``statistic``, ``aim`` ("width" or "detect"), ``target``, the width or value,
        ``n_samples``, and ``n_events``, the number of events expected among them. Independent
        samples: several of a patient count for less.

    Raises
    ------
    ValueError
        If there are neither probabilities nor `rate` and `auroc`, if a statistic is unknown, or if
        more than a million samples would be needed.

    See Also
    --------
    validation_summary : The intervals.

    Notes
    -----
    At rates of 5 to 30 %, the numbers are .88 to 1.06 times those of the formulas for the expected
    width [1]_ for O/E ratios, 1.08 to 1.19 times for slopes and 1.05 to 1.18 times for areas
    (``python -m benchmarks.risk_models``): widths vary from one study to another, and for O/E
    ratios the mean of the probabilities explains a part of the outcomes.

    References
    ----------
    .. [1] R. D. Riley, T. P. A. Debray, G. S. Collins, L. Archer, J. Ensor, M. van Smeden,
       K. I. E. Snell, "Minimum Sample Size for External Validation of a Clinical Prediction Model
       with a Binary Outcome", Statistics in Medicine 2021.

    Examples
    --------
    >>> from skcalib.metrics import samples_for_validation
    >>> table = samples_for_validation(
    ...     rate=0.2, auroc=0.8, detect={"slope": 0.7}, random_state=0
    ... )
    >>> bool(700 <= table["n_samples"][0] <= 800)
    True
    """
    proba = _make_probabilities(y_proba, rate, auroc)
    if width is None and detect is None:
        width = _WIDTHS
    rng = check_random_state(random_state)
    columns: dict[str, list[Any]] = {
        name: [] for name in ("statistic", "aim", "target", "n_samples", "n_events")
    }
    for aim, targets, known in (
        ("width", width or {}, _STATISTICS),
        ("detect", detect or {}, _DETECTABLE),
    ):
        for statistic, target in targets.items():
            _check_target(aim, statistic, target, known, threshold)
            risk = _find_risk(proba, statistic, target) if aim == "detect" else proba
            seed = rng.randint(np.iinfo(np.int32).max)
            study = partial(
                _compute_excess if aim == "detect" else _compute_relative_width, proba, risk
            )
            study = partial(study, statistic, target, threshold, confidence_level)
            n = _search(study, probability, n_simulations, seed, statistic)
            for name, value in zip(columns, (statistic, aim, target, n, n * float(risk.mean()))):
                columns[name].append(value)
    return as_table(
        {name: np.array(column) for name, column in columns.items()}, as_frame=as_frame
    )


def _make_probabilities(y_proba: Any, rate: float | None, auroc: float | None) -> Array:
    """Return the probabilities of samples: those given, or of normal log-odds."""
    if y_proba is not None:
        proba = as_proba(y_proba)
        check_values(proba)
        if proba.ndim == 2 and proba.shape[1] != 2:
            raise ValueError(f"y_proba must be of two classes, got shape {proba.shape}.")
        proba = np.clip((proba if proba.ndim == 1 else proba[:, 1]).astype(np.float64), 0, 1)
        return proba
    if rate is None or auroc is None or not (0 < rate < 1 and 0.5 < auroc < 1):
        raise ValueError(
            "y_proba must be given, or rate in (0, 1) and auroc in (0.5, 1), "
            f"got rate={rate!r} and auroc={auroc!r}."
        )
    # At the middles of 2000 parts of equal weight.
    normal = ndtri((np.arange(2000) + 0.5) / 2000)

    def with_spread(spread: float) -> Array:
        far = 60 + spread * normal[-1]
        center = brentq(lambda m: expit(m + spread * normal).mean() - rate, -far, far)
        return expit(center + spread * normal)

    def area(spread: float) -> float:
        p = with_spread(spread)  # increasing
        negative = np.cumsum(1 - p) - (1 - p) / 2
        return float(p @ negative / (p.sum() * (1 - p).sum()))

    return with_spread(brentq(lambda s: area(s) - auroc, 1e-6, 1e6))


def _check_target(
    aim: str, statistic: str, target: float, known: tuple[str, ...], threshold: float | None
) -> None:
    """Raise unless the statistic is known, and the target possible."""
    if statistic not in known:
        raise ValueError(f"{aim} must name some of {list(known)}, got {statistic!r}.")
    if not np.isfinite(target) or (aim == "width" and target <= 0):
        raise ValueError(f"{aim} must hold positive numbers, got {target!r} for {statistic!r}.")
    if aim == "detect" and target == _get_ideal(statistic):
        raise ValueError(f"detect must hold values of a miscalibrated model, got {target!r}.")
    if statistic == "net_benefit" and (threshold is None or not 0 < threshold < 1):
        raise ValueError(f"threshold must be in (0, 1) for 'net_benefit', got {threshold!r}.")


def _get_ideal(statistic: str) -> float:
    return 0.0 if statistic == "calibration_in_the_large" else 1.0


def _find_risk(proba: Array, statistic: str, value: float) -> Array:
    """Return the true risks under which a statistic has this value."""
    with np.errstate(divide="ignore"):
        score = logit(proba)
    if statistic == "calibration_in_the_large":
        return expit(value + score)
    slope, mean = (value, proba.mean()) if statistic == "slope" else (1.0, value * proba.mean())
    if not 0 < mean < 1:
        raise ValueError(f"detect must hold a possible O/E ratio, got {value!r}.")
    far = 60 + abs(slope) * float(np.abs(score[np.isfinite(score)]).max(initial=0))
    shift = brentq(lambda a: expit(a + slope * score).mean() - mean, -far, far)
    return expit(shift + slope * score)


def _draw(proba: Array, risk: Array, n: int, rng: np.random.Generator) -> Sample:
    rows = rng.integers(len(proba), size=n)
    outcome = (rng.random(n) < risk[rows]).astype(np.float64)
    return Sample(outcome, proba[rows], np.full(n, 1 / n), np.arange(n))


def _estimate(sample: Sample, statistic: str, threshold: float | None) -> Estimate:
    if not 0 < sample.outcome.mean() < 1:
        return Estimate(np.nan, np.zeros(1))
    if statistic == "o_e_ratio":
        return estimate_observed_to_expected(sample)
    if statistic == "auroc":
        return estimate_auroc(sample)
    if statistic == "net_benefit":
        return estimate_benefit(sample, float(threshold or 0))
    inside = (sample.proba > 0) & (sample.proba < 1)
    some = sample if inside.all() else sample.rows(inside)
    fit = recalibrate(some, free_slope=statistic == "slope")
    return fit[1] if statistic == "slope" else fit[0]


def _compute_relative_width(
    proba: Array,
    risk: Array,
    statistic: str,
    target: float,
    threshold: float | None,
    confidence_level: float,
    n: int,
    rng: np.random.Generator,
) -> float:
    """Return the target over the width of the interval of a drawn study: 1 or more is wanted."""
    sample = _draw(proba, risk, n, rng)
    if statistic == "ici":
        smooth = estimate_smooth_residual(sample)
        noise = rng.standard_normal((_N_NOISE, len(smooth.node))) @ find_root(smooth.covariance)
        low, high = compute_norm_interval(smooth, "ICI", noise, confidence_level)
    else:
        estimate = _estimate(sample, statistic, threshold)
        low, high = estimate.interval(sample.freedom, confidence_level)
    return target / (high - low) if high > low else 0.0


def _compute_excess(
    proba: Array,
    risk: Array,
    statistic: str,
    target: float,
    threshold: float | None,
    confidence_level: float,
    n: int,
    rng: np.random.Generator,
) -> float:
    """Return the distance from the ideal over half the interval: above 1, it is excluded."""
    sample = _draw(proba, risk, n, rng)
    estimate = _estimate(sample, statistic, threshold)
    low, high = estimate.interval(sample.freedom, confidence_level)
    if not low < high:
        return 0.0
    value, ideal = estimate.value, _get_ideal(statistic)
    if statistic == "o_e_ratio":
        value, ideal, low, high = np.log([value, ideal, low, high])
    side = 1 if _has_higher_risk(statistic, target) else -1
    return float(side * (value - ideal) / ((high - low) / 2))


def _has_higher_risk(statistic: str, target: float) -> bool:
    return target > _get_ideal(statistic)


def _search(
    study: Callable[[int, np.random.Generator], float],
    probability: float,
    n_simulations: int,
    seed: int,
    statistic: str,
) -> int:
    """Return the n at which a study exceeds 1 with the given probability.

    Means grow with the root of n. Those of a detection vary around it with a constant spread, and
    relative widths by less and less: both are covered by mean and spread at a nearby n.
    """
    n, reach = 500.0, float(ndtri(probability))
    for part in _ROUNDS:
        m = int(np.clip(round(n), _FEWEST, _MOST))
        rng = np.random.default_rng((seed, m))
        values = np.array([study(m, rng) for _ in range(max(20, int(part * n_simulations)))])
        mean, spread = float(values.mean()), float(values.std())
        # mean sqrt(n / m) - reach spread = 1
        factor = (1 + reach * spread) / mean if mean > 0 else np.inf
        n = m * float(np.clip(factor, 0.2, 5)) ** 2
        if n > _MOST:
            raise ValueError(
                f"The aim for {statistic!r} must need fewer than {_MOST:,} samples, got more."
            )
    return max(int(np.ceil(n)), _FEWEST)
