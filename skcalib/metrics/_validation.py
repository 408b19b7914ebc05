"""What the validation of a risk model reports, with intervals."""

from __future__ import annotations

from numbers import Integral, Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import check_random_state

from ..utils._compat import Interval, validate_params
from ..utils._labels import shorten
from ..utils._output import as_table, warn
from ..utils._proba import Predictions, check_predictions
from ._resampling import warn_of_few_groups
from ._risk_model import (
    Estimate,
    Sample,
    compute_norm_interval,
    compute_residual_norm,
    estimate_auroc,
    estimate_brier,
    estimate_observed_to_expected,
    estimate_smooth_residual,
    find_root,
    get_groups,
    recalibrate,
)

if TYPE_CHECKING:
    import pandas as pd

# The value of every statistic for a model that is calibrated (and, the last ones, perfect).
_IDEAL = {
    "O/E ratio": 1.0,
    "calibration in the large": 0.0,
    "slope": 1.0,
    "ICI": 0.0,
    "E50": 0.0,
    "E90": 0.0,
    "Brier score": 0.0,
    "scaled Brier score": 1.0,
    "AUROC": 1.0,
}


@validate_params(
    {
        "confidence_level": [Interval(Real, 0, 1, closed="neither")],
        "n_resamples": [Interval(Integral, 1, None, closed="left")],
        "random_state": ["random_state"],
        "as_frame": ["boolean"],
    }
)
def validation_summary(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    groups: Any = None,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    confidence_level: float = 0.95,
    n_resamples: int = 999,
    random_state: Any = None,
    as_frame: bool = False,
) -> NDArray[Any] | pd.DataFrame:
    """Calibration and discrimination of a risk model, as a validation study reports them.

    One line for each of

    - "O/E ratio": mean outcome over mean probability; above 1, the risks are too low.
    - "calibration in the large": the intercept a of ``logit q = a + logit p``, the shift of the
      log-odds that makes the mean probability right.
    - "slope": the slope b of ``logit q = a + b logit p``; below 1, the risks are too extreme.
    - "ICI", "E50", "E90": mean, median and 90 % quantile of the distance between the probabilities
      and a smooth curve of the outcomes over them (the integrated calibration index [1]_).
    - "Brier score", and "scaled Brier score", 1 minus its quotient with that of the event rate as
      everyone's probability.
    - "AUROC": area under the ROC curve.

    Parameters
    ----------
    y_true : of :func:`expected_calibration_error`
    y_proba : array-like of shape (n_samples,) or (n_samples, n_classes)
        Probabilities of the positive class, or of all classes. Of two, the second is the positive
        one; of more, each is evaluated against the rest.
    groups : array-like of shape (n_samples,), default=None
        The group of every sample, such as its patient: texts, numbers, categories. Samples of a
        group are not taken for independent; without groups, the intervals of repeated measurements
        are too narrow. There should be 30 or more; fewer than 20 bring a warning.
    sample_weight, labels, pos_label : of :func:`expected_calibration_error`
    confidence_level : float, default=0.95
        Level of every single interval, in (0, 1).
    n_resamples : int, default=999
        Number of smooth curves drawn for the intervals of ICI, E50 and E90.
    random_state : int, RandomState instance or None, default=None
        Draws these curves.
    as_frame : bool, default=False
        Whether to return a DataFrame instead of a structured array.

    Returns
    -------
    table : structured array or DataFrame, one line per statistic
        With ``statistic``, ``value``, the ends ``low`` and ``high`` of its interval, the value
        ``ideal`` of a calibrated model (for the Brier scores and AUROC, of a perfect one) and
        ``n_samples``, the number of samples that it was computed from. With more than two classes,
        the column ``class`` comes first. NaN where a value does not exist: the slope if all
        probabilities are equal or separate the classes, and the interval of an O/E ratio of 0.

    Raises
    ------
    ValueError
        If only one of two classes occurs in `y_true`.

    Warns
    -----
    SkcalibWarning
        If probabilities are exactly 0 or 1: these have no logit. Slope and calibration in the
        large are of the other samples, and all other statistics of all samples. If a class of more
        than two does not occur, or if there are fewer than 20 groups.

    See Also
    --------
    decision_curve : What acting on the model is worth.
    samples_for_validation : How many samples give intervals of a wanted width.
    skcalib.posthoc.SigmoidCalibration : Updates the intercept, or intercept and slope.
    calibration_error_interval : The interval of a calibration error.
    skcalib.plots.ReliabilityDisplay : The curve as a picture.

    Notes
    -----
    Every interval is Student's, with the effective number of groups less one as degrees of
    freedom, on the scale of the logarithm (O/E ratio) or of the log-odds (AUROC). The standard
    errors of intercept and slope are those of leaving out one group (or sample) after the other
    (the jackknife, CR3 [2]_), which holds with few events where the plain sandwich is too small.
    ``python -m benchmarks.risk_models`` measures their coverage. Intervals do not depend on the
    scale of weights, and are wider the more these differ.

    The smooth curve is locally linear with a tricube kernel that reaches two thirds of the samples
    (lowess without robustness steps, as in the function val.prob of the R package rms). It is
    computed at 100 quantiles of the probabilities, or at all if there are fewer, and linear
    between. Chance moves every smooth curve away from the diagonal, so ICI, E50 and E90 of a
    calibrated model are above 0. Their intervals invert a test, as those of
    :func:`calibration_error_interval` do: they hold the distances under which the observed one is
    neither unusually large nor unusually small, and end no lower than the bootstrap's quantile.
    That of a calibrated model begins at 0.

    References
    ----------
    .. [1] P. C. Austin, E. W. Steyerberg, "The Integrated Calibration Index (ICI) and Related
       Metrics for Quantifying the Calibration of Logistic Regression Models", Statistics in
       Medicine 2019.
    .. [2] R. M. Bell, D. F. McCaffrey, "Bias Reduction in Standard Errors for Linear Regression
       with Multi-Stage Samples", Survey Methodology 2002.
    .. [3] B. Van Calster, D. J. McLernon, M. van Smeden, L. Wynants, E. W. Steyerberg,
       "Calibration: the Achilles Heel of Predictive Analytics", BMC Medicine 2019.

    Examples
    --------
    >>> import numpy as np
    >>> from skcalib.metrics import validation_summary
    >>> rng = np.random.default_rng(0)
    >>> risk = rng.beta(1, 4, size=1000)
    >>> y_true = rng.uniform(size=1000) < risk
    >>> table = validation_summary(y_true, np.sqrt(risk), random_state=0)
    >>> for row in table[:4]:
    ...     name, value, low, high, *_ = row
    ...     print(f"{name}: {value:.2f} ({low:.2f} to {high:.2f})")
    O/E ratio: 0.53 (0.48 to 0.60)
    calibration in the large: -1.03 (-1.19 to -0.88)
    slope: 1.37 (1.13 to 1.60)
    ICI: 0.19 (0.16 to 0.21)
    """
    predictions = check_predictions(y_true, y_proba, sample_weight, labels, pos_label)
    group = get_groups(groups, len(predictions.proba))
    if groups is not None:
        warn_of_few_groups(group)
    several = predictions.proba.ndim == 2 and predictions.proba.shape[1] > 2
    rng = check_random_state(random_state)
    columns: dict[str, list[Any]] = {"class": []} if several else {}
    names = "statistic", "value", "low", "high", "ideal", "n_samples"
    columns |= {name: [] for name in names}
    for k in range(len(predictions.classes)) if several else [1]:
        sample = Sample.of(predictions, k, group)
        if several:
            columns["class"] += [predictions.classes[k]] * len(_IDEAL)
        for line in _make_lines(sample, predictions, k, confidence_level, n_resamples, rng):
            for name, value in zip(names, line):
                columns[name].append(value)
    return as_table(
        {name: np.array(column) for name, column in columns.items()}, as_frame=as_frame
    )


def _make_lines(
    sample: Sample,
    predictions: Predictions,
    k: int,
    confidence_level: float,
    n_resamples: int,
    rng: np.random.RandomState,
) -> list[tuple[str, float, float, float, float, int]]:
    """Return the lines of one class."""
    label, n = shorten(predictions.classes[k : k + 1].tolist()[0]), len(sample.proba)
    rate = float(sample.weight @ sample.outcome)
    if not 0 < rate < 1:
        if len(predictions.classes) == 2:
            raise ValueError(
                f"y_true must hold both classes, got one, class {label} "
                f"with a frequency of {rate:g}."
            )
        warn(f"Class {label} has a frequency of {rate:g} in y_true: its statistics are NaN.")
        return [(name, np.nan, np.nan, np.nan, ideal, n) for name, ideal in _IDEAL.items()]
    inside = (sample.proba > 0) & (sample.proba < 1)
    some = sample.rows(inside) if inside.any() else None
    if not inside.all():
        _warn_of_certain(sample, inside, label)
    nothing = Estimate(np.nan, np.zeros(1))
    intercept = slope = nothing
    if some is not None and 0 < some.weight @ some.outcome < 1:
        intercept, _ = recalibrate(some, free_slope=False)
        slope = recalibrate(some, free_slope=True)[1]
    score, scaled = estimate_brier(sample)
    estimates = {
        "O/E ratio": (estimate_observed_to_expected(sample), sample),
        "calibration in the large": (intercept, some),
        "slope": (slope, some),
        "Brier score": (score, sample),
        "scaled Brier score": (scaled, sample),
        "AUROC": (estimate_auroc(sample), sample),
    }
    smooth = estimate_smooth_residual(sample)
    noise = rng.standard_normal((n_resamples, len(smooth.node))) @ find_root(smooth.covariance)
    residual = smooth.at(sample.proba)
    lines = []
    for name, ideal in _IDEAL.items():
        if name in estimates:
            estimate, source = estimates[name]
            ends = (np.nan, np.nan)
            if source is not None:
                ends = estimate.interval(source.freedom, confidence_level)
            n_used = 0 if source is None else len(source.proba)
            lines.append((name, estimate.value, *ends, ideal, n_used))
        else:
            value = float(compute_residual_norm(residual, sample.weight, name))
            ends = compute_norm_interval(smooth, name, noise, confidence_level)
            lines.append((name, value, *ends, ideal, n))
    return lines


def _warn_of_certain(sample: Sample, inside: NDArray[np.bool_], label: str) -> None:
    """Warn of probabilities of exactly 0 or 1, and say how many of them are wrong."""
    certain = ~inside
    n_wrong = int((np.abs(sample.outcome - sample.proba)[certain] > 0.5).sum())
    warn(
        f"{int(certain.sum())} of {len(certain)} probabilities of class {label} are exactly 0 or "
        f"1, {n_wrong} of them wrong: these have no logit. Slope and calibration in the large are "
        "of the other samples."
    )
