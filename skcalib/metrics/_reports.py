"""Detection of errors and of out-of-distribution samples by several scores at once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._arrays import check_same_length
from ..utils._optional import import_optional
from ..utils._private import Interval, validate_params
from ._confidence import CONFIDENCES, check_scores, check_top_labels, confidence_of
from ._detection import check_both_kinds, detection_measures, read_detection
from ._ties import tie_groups

if TYPE_CHECKING:
    import pandas as pd

_CONSTRAINTS: dict[str, list[Any]] = {
    "tpr": [Interval(Real, 0, 1, closed="right")],
    "as_frame": ["boolean"],
}

Report = dict[str, dict[str, float]]


@validate_params(_CONSTRAINTS, prefer_skip_nested_validation=True)
def misclassification_report(
    y_true: ArrayLike,
    y_proba: ArrayLike,
    *,
    confidence: Sequence[str] | Mapping[str, ArrayLike] = CONFIDENCES,
    tpr: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    as_frame: bool = False,
) -> Report | pd.DataFrame:
    """How well confidence tells correct predictions from wrong ones [1]_, [2]_.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        True labels, integers or strings.
    y_proba : array-like of shape (n_samples, n_classes) or (n_samples,)
        Probabilities of the classes, in the order of `labels` or as columns of a DataFrame named
        by them, or of the positive class. The class of the largest probability is the prediction.
    confidence : sequence of str, dict or DataFrame, default=("msp", "entropy", "margin")
        The scores to report on: names of those that `y_proba` gives (see
        :func:`area_under_risk_coverage`), or scores of one's own as a dict of arrays of shape
        (n_samples,) or the columns of a DataFrame; larger = more confident.
    tpr : float, default=0.95
        True-positive rate at which the false-positive rate is taken, in (0, 1].
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; a weight of k counts as k samples.
    labels : array-like of shape (n_classes,), default=None
        Labels of the columns of `y_proba`, in order. None: integers 0, ..., n_classes - 1 or, if
        `y_true` holds other labels, its sorted distinct values.
    pos_label : int, bool or str, default=None
        Label of the positive class where `y_proba` has shape (n_samples,). None: the second of
        `labels`, or 1 where the labels are in {0, 1} or {-1, 1}.
    as_frame : bool, default=False
        Whether to return a DataFrame with one line for every score.

    Returns
    -------
    report : dict of str -> dict of str -> float, or DataFrame
        For every score, all in [0, 1]: ``fpr_at_tpr``, the fraction of the wrong predictions that
        is kept where the fraction `tpr` of the correct ones is (smaller = better); ``auroc``;
        ``aupr_success`` and ``aupr_error``, the average precision of finding correct predictions
        by high and wrong ones by low confidence (larger = better).

    Raises
    ------
    ValueError
        If all predictions are correct or all are wrong, if a score holds NaN or is unknown, or if
        `y_proba` is not valid.

    See Also
    --------
    area_under_risk_coverage : The cost of the errors that are not found.
    ood_report : The same measures for out-of-distribution samples.
    risk_coverage_curve : Error rate of the most confident samples.

    References
    ----------
    .. [1] D. Hendrycks, K. Gimpel, "A Baseline for Detecting Misclassified and Out-of-Distribution
       Examples in Neural Networks", ICLR 2017.
    .. [2] C. Corbière, N. Thome, A. Bar-Hen, M. Cord, P. Pérez, "Addressing Failure Prediction by
       Learning Model Confidence", NeurIPS 2019.

    Examples
    --------
    >>> from skcalib.metrics import misclassification_report
    >>> y_proba = [[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.4, 0.6]]
    >>> report = misclassification_report([0, 1, 1, 0], y_proba, confidence=["msp"])
    >>> report["msp"]["auroc"], report["msp"]["fpr_at_tpr"]
    (0.75, 0.5)
    """
    predicted = check_top_labels(
        y_true, y_proba, sample_weight=sample_weight, labels=labels, pos_label=pos_label
    )
    check_both_kinds(
        predicted.correct,
        predicted.weight,
        "y_true and y_proba must give correct and wrong predictions",
        kinds=("correct", "wrong"),
    )
    scores = {name: confidence_of(value, predicted) for name, value in _named(confidence).items()}
    return _report(
        scores, predicted.correct, predicted.weight, tpr, ("aupr_success", "aupr_error"), as_frame
    )


@validate_params(_CONSTRAINTS, prefer_skip_nested_validation=True)
def ood_report(
    y_true: ArrayLike,
    scores: ArrayLike | Mapping[str, ArrayLike],
    *,
    tpr: float = 0.95,
    sample_weight: ArrayLike | None = None,
    labels: ArrayLike | None = None,
    pos_label: Any = None,
    as_frame: bool = False,
) -> Report | pd.DataFrame:
    """How well scores tell in-distribution from out-of-distribution (OOD) samples [1]_, [2]_.

    Parameters
    ----------
    y_true : array-like of shape (n_samples,)
        1 for in-distribution samples, 0 or -1 for out-of-distribution ones, or two labels of which
        `pos_label` is that of the in-distribution ones.
    scores : dict of str -> array-like, DataFrame or array-like of shape (n_samples,)
        Scores of shape (n_samples,), larger = more like in-distribution data, as `score_samples`
        of scikit-learn's outlier detectors, :func:`max_logit_score` and :func:`energy_score`. A
        single array is reported under the name "score".
    tpr : float, default=0.95
        True-positive rate at which the false-positive rate is taken, in (0, 1].
    sample_weight : array-like of shape (n_samples,), default=None
        Weights of the samples; a weight of k counts as k samples.
    labels : array-like of shape (2,), default=None
        The label of out-of-distribution samples and that of in-distribution ones.
    pos_label : int, bool or str, default=None
        The label of in-distribution samples. None: the second of `labels`, or 1 where the labels
        are in {0, 1} or {-1, 1}.
    as_frame : bool, default=False
        Whether to return a DataFrame with one line for every score.

    Returns
    -------
    report : dict of str -> dict of str -> float, or DataFrame
        For every score, all in [0, 1]: ``fpr_at_tpr``, the fraction of the out-of-distribution
        samples that passes where the fraction `tpr` of the in-distribution ones does (smaller =
        better); ``auroc``; ``aupr_in`` and ``aupr_out``, the average precision of finding
        in-distribution samples by high and out-of-distribution ones by low scores (larger =
        better).

    Raises
    ------
    ValueError
        If `y_true` lacks one of the two kinds, or if a score holds NaN.

    See Also
    --------
    fpr_at_tpr : The first measure alone.
    misclassification_report : The same measures for errors.
    skcalib.difficulty.NoveltyDetector : Decides sample by sample.

    References
    ----------
    .. [1] D. Hendrycks, K. Gimpel, "A Baseline for Detecting Misclassified and Out-of-Distribution
       Examples in Neural Networks", ICLR 2017.
    .. [2] S. Liang, Y. Li, R. Srikant, "Enhancing the Reliability of Out-of-Distribution Image
       Detection in Neural Networks", ICLR 2018.

    Examples
    --------
    >>> from skcalib.metrics import ood_report
    >>> report = ood_report([1, 1, 0, 0], {"energy": [9.0, 4.0, 5.0, 1.0]})
    >>> report["energy"]["auroc"], report["energy"]["fpr_at_tpr"]
    (0.75, 0.5)
    """
    inside, weight = read_detection(y_true, sample_weight, labels, pos_label)
    named = _columns(scores)
    if named is None:
        named = {"score": scores}
    checked = {}
    for name, values in named.items():
        checked[name] = check_scores(values, name=f"scores[{name!r}]")
        check_same_length(y_true=inside, **{f"scores[{name!r}]": checked[name]})
    return _report(checked, inside, weight, tpr, ("aupr_in", "aupr_out"), as_frame)


def _columns(scores: Any) -> Mapping[str, Any] | None:
    """Return the scores of a dict or of the columns of a DataFrame by name, else None."""
    if isinstance(scores, Mapping):
        return scores
    if hasattr(scores, "columns"):
        return {str(name): scores[name] for name in scores.columns}
    return None


def _named(confidence: Sequence[str] | Mapping[str, ArrayLike]) -> Mapping[str, Any]:
    columns = _columns(confidence)
    if columns is not None:
        return columns
    # A str is a sequence of str, too: of its letters.
    if isinstance(confidence, str):
        return {confidence: confidence}
    if not isinstance(confidence, Sequence) or not all(isinstance(c, str) for c in confidence):
        raise TypeError(
            "confidence must be a sequence of names, a dict of arrays or a DataFrame, such as "
            f"{{'name': array}} for a single array, got {type(confidence).__name__}."
        )
    return {name: name for name in confidence}


def _report(
    scores: Mapping[str, NDArray[Any]],
    positive: NDArray[np.bool_],
    weight: NDArray[np.float64] | None,
    tpr: float,
    aupr_names: tuple[str, str],
    as_frame: bool,
) -> Report | pd.DataFrame:
    if not scores:
        raise ValueError("scores must hold at least one score to report on, got none.")
    columns = ("fpr_at_tpr", "auroc", *aupr_names)
    report = {
        name: dict(zip(columns, detection_measures(tie_groups(values, positive, weight), tpr)))
        for name, values in scores.items()
    }
    if not as_frame:
        return report
    pd = import_optional("pandas", extra="pandas")
    return pd.DataFrame.from_dict(report, orient="index")
