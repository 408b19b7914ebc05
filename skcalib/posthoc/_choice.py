"""Which calibrator for how many samples and classes."""

from __future__ import annotations

from numbers import Integral, Real

from ..utils._private import Interval, validate_params
from ._base import PostHocCalibrator
from ._ensemble_temperature import EnsembleTemperatureScaling
from ._structured_matrix import StructuredMatrixScaling
from ._temperature import TemperatureScaling

# The least mean regret over the data sets of benchmarks/calibrator_choice.py, among 5 ... 200.
_SAMPLES_PER_CLASS = 20


@validate_params(
    {
        "samples_per_class": [Interval(Real, 0, None, closed="neither")],
        "n_classes": [Interval(Integral, 2, None, closed="left")],
    },
    prefer_skip_nested_validation=True,
)
def choose_calibrator(samples_per_class: float, n_classes: int) -> PostHocCalibrator:
    """Return the calibrator to start from, by how much there is to fit it on.

    - Two classes: :class:`EnsembleTemperatureScaling`.
    - More, with 20 samples a class or more: :class:`StructuredMatrixScaling`.
    - More, with fewer samples: :class:`TemperatureScaling`.

    The rule has the least mean regret, in log-loss, on the data sets of the user guide; it was
    chosen on these, and no rule knows how a model errs. With some thousand samples it pays to
    compare calibrators by cross-validation.

    Parameters
    ----------
    samples_per_class : float
        Number of samples to fit on, divided by the number of classes; above 0.
    n_classes : int
        Number of classes, 2 or more.

    Returns
    -------
    calibrator : PostHocCalibrator
        An unfitted calibrator with default parameters.

    Raises
    ------
    ValueError
        If `samples_per_class` is not above 0 or `n_classes` is below 2.

    See Also
    --------
    PostHocCalibratedClassifier : Follows it with ``calibrator="auto"``.
    skcalib.report.CalibrationReport : Compares the calibrators on given data.

    Examples
    --------
    >>> from skcalib.posthoc import choose_calibrator
    >>> choose_calibrator(500, 10)
    StructuredMatrixScaling()
    >>> choose_calibrator(5, 10)
    TemperatureScaling()
    """
    if n_classes == 2:
        return EnsembleTemperatureScaling()
    if samples_per_class < _SAMPLES_PER_CLASS:
        return TemperatureScaling()
    return StructuredMatrixScaling()
