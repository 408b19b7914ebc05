"""Calibration metrics of data that arrives in pieces, from sums that add up."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from copy import copy
from functools import partial
from numbers import Integral
from operator import add
from threading import RLock
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._arrays import as_array, as_floats, is_soft, warn_if_normalized, warn_of_total
from ..utils._backends import (
    align_chunks,
    as_float64,
    get_back_end,
    is_chunked,
    is_on_accelerator,
    reduce_chunks,
    sum_by_index,
    to_host,
)
from ..utils._compat import Interval, validate_params
from ..utils._labels import as_labels, shorten
from ..utils._numeric import compute_uniform_edges
from ..utils._output import format_count, warn
from ..utils._proba import TOLERANCE, Predictions, as_proba, check_predictions
from ._binned_draws import count_effective
from ._calibration_error import (
    NORM_CONSTRAINTS,
    Bins,
    ReliabilityCurve,
    compute_class_sums_between,
    compute_curve,
    compute_debiased_norm,
    compute_residual_norm,
    iter_top_label,
    sum_bins,
)
from ._e_values import Evidence, combine_e_values, sum_log_ratios
from ._intervals import compute_binned_interval
from ._per_sample import (
    compute_brier_scores,
    compute_correctness,
    compute_excess_confidence,
    get_classes_of_chunks,
    log_losses,
    sum_losses,
)
from ._registry import AnyMetric, LossesOfLabels, choose_metric
from ._smooth import GridPlaces, compute_error_of_excess, compute_excess_on_grid, count_grid_steps
from ._states import get_field, read_count, read_labels, read_numbers, read_state


class Summed:
    """A metric that is a function of sums over samples."""

    def sums(self, predictions: Predictions, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        """Return the sums of the samples; `edges` are those of the bins."""
        raise NotImplementedError

    def value(self, sums: NDArray[np.float64], total: float, norm: str) -> float:
        """Return the metric from the sums, the total weight and the norm of the accumulator."""
        raise NotImplementedError


class _ECE(Summed):
    """Errors of the sums over bins, which are always kept."""

    def sums(self, predictions: Predictions, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        return sum_bins(predictions, edges)

    def value(self, sums: NDArray[np.float64], total: float, norm: str) -> float:
        return float(compute_residual_norm(sums, norm))


class _MCE(_ECE):
    def value(self, sums: NDArray[np.float64], total: float, norm: str) -> float:
        return float(compute_residual_norm(sums, "max"))


class _DebiasedECE(_ECE):
    def value(self, sums: NDArray[np.float64], total: float, norm: str) -> float:
        return compute_debiased_norm(sums)


class _ClasswiseECE(Summed):
    def sums(self, predictions: Predictions, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        return compute_class_sums_between(predictions, edges)

    def value(self, sums: NDArray[np.float64], total: float, norm: str) -> float:
        return float(compute_residual_norm(sums, norm).mean())


class _SmoothECE(Summed):
    def sums(self, predictions: Predictions, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        return compute_excess_on_grid(predictions, count_grid_steps(None))

    def value(self, sums: NDArray[np.float64], total: float, norm: str) -> float:
        return compute_error_of_excess(sums / total, None)


class _KS(Summed):
    """The residuals summed over bins of confidence as narrow as the grid of the smooth error."""

    def sums(self, predictions: Predictions, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        n_bins = count_grid_steps(None)
        sums = 0.0
        for rows, confidence, correct in iter_top_label(predictions, on_device=True):
            _, place = get_back_end(confidence)
            residual = as_float64(confidence) - correct
            if predictions.weight is not None:
                residual *= place(predictions.weight[rows])
            left = GridPlaces.of(confidence, n_bins).left
            sums += sum_by_index(left, residual, n_bins)
        return to_host(sums)

    def value(self, sums: NDArray[np.float64], total: float, norm: str) -> float:
        return float(np.abs(np.cumsum(sums)).max() / total)


class _MeanLoss(Summed):
    def __init__(self, losses: LossesOfLabels) -> None:
        self.losses = losses

    def sums(self, predictions: Predictions, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        return np.array(sum_losses(predictions, self.losses))

    def value(self, sums: NDArray[np.float64], total: float, norm: str) -> float:
        return float(sums / total)


class _EValue(Summed):
    def sums(self, predictions: Predictions, edges: NDArray[np.float64]) -> NDArray[np.float64]:
        return sum_log_ratios(predictions)

    def value(self, sums: NDArray[np.float64], total: float, norm: str) -> float:
        return combine_e_values(sums).e_value


_OF_BINS: dict[str, Summed] = {"ece": _ECE(), "mce": _MCE(), "debiased_ece": _DebiasedECE()}
_WITH_SUMS: dict[str, Summed] = {
    "classwise_ece": _ClasswiseECE(),
    "smooth_ece": _SmoothECE(),
    "ks": _KS(),
    "log_loss": _MeanLoss(log_losses),
    "brier": _MeanLoss(compute_brier_scores),
    "accuracy": _MeanLoss(compute_correctness),
    "overconfidence": _MeanLoss(compute_excess_confidence),
    "e_value": _EValue(),
}
_SUMMED = _OF_BINS | _WITH_SUMS


def _choose(metric: Any, names: Iterable[str], *, argument: str = "metric") -> str:
    """Return the short name of a metric; the e-value has a name alone."""
    return (
        "e_value"
        if metric == "e_value" and "e_value" in names
        else (choose_metric(metric, names, argument=argument).name)
    )


# What the JSON of an accumulator holds.
_FORMAT = "skcalib.CalibrationAccumulator 2"
_STATE = (
    "norm", "labels", "pos_label", "edges_", "sums_", "weight_norms_", "metric_sums_", "classes_",
    "_columns",
)  # fmt: skip
# Format 1 has no `weight_norms_`.
_WITHOUT_NORMS = "skcalib.CalibrationAccumulator 1"
# Of samples, more than any state has.
_MOST_EFFECTIVE = 1e16


class CalibrationAccumulator:
    """Calibration error of data that does not fit in memory, or that lies on several machines.

    It keeps three sums for every bin, however many samples there are, two norms of their weights,
    and the sums of the further `metrics`. Accumulators of parts of the data add up to that of the
    whole, by ``+`` or `sum`, in any order; one without samples adds nothing. The results equal
    those of the functions of the same names with ``strategy="uniform"``.

    Bins of equal weight depend on all samples at once, so no stream can build them exactly. Give
    `edges` instead, for instance those of a :func:`reliability_curve` of a first part.

    Parameters
    ----------
    n_bins : int, default=15
        Number of bins of equal width, at least 1. Not used where `edges` is given.
    norm : {"l1", "l2", "max"}, default="l1"
        How the residuals of the bins are combined, see :func:`expected_calibration_error`.
    metrics : sequence of str or callable, default=()
        Metrics with sums of their own to keep as well, each of which takes a pass over the
        probabilities: "classwise_ece" (three sums for every bin of every class), "smooth_ece"
        (2**14 + 1 sums), "ks" (2**14 sums: the largest cumulative residual at the ends of as many
        bins of the confidence, lower than that of the function by no more than the residuals in
        one bin), "log_loss", "brier", "accuracy" and "overconfidence" (one each), "e_value" (169
        sums for two classes, else 13 for every class and 13 more), see :meth:`evidence`. Full
        names, functions and scorers of these metrics, and "ece", "mce" and "debiased_ece", whose
        sums are always kept, are accepted, too.
    edges : array-like of shape (n_edges,), default=None
        Edges of the bins, increasing from 0 to 1.
    labels, pos_label : of :func:`expected_calibration_error`

    Attributes
    ----------
    edges_ : ndarray of shape (n_edges,)
        Edges of the bins in use.
    sums_ : ndarray of shape (3, n_edges - 1)
        Weight, weighted confidence and weighted correctness of every bin.
    metric_sums_ : dict of str -> ndarray
        Sums of every one of `metrics`, by its short name.
    weight_norms_ : ndarray of shape (2, n_edges - 1)
        Euclidean norm of the weights, ``sqrt(sum w^2)``, of the correct and of the wrong samples
        of every bin. Norms of parts add up by ``numpy.hypot``.
    n_effective_ : ndarray of shape (n_edges - 1,)
        Effective number of samples of every bin, ``(sum w)^2 / sum w^2``: so many samples of equal
        weight have as precise a mean.
    classes_ : ndarray of shape (n_classes,) or None
        Labels of the columns, from the first update on.

    See Also
    --------
    expected_calibration_error : The same for arrays in memory.
    calibration_error_interval : The interval of an error, for arrays in memory.

    Examples
    --------
    >>> from skcalib.metrics import CalibrationAccumulator
    >>> first = CalibrationAccumulator(n_bins=5).update([0, 1], [0.1, 0.7])
    >>> second = CalibrationAccumulator(n_bins=5).update([1, 1], [0.7, 0.9])
    >>> total = first + second
    >>> round(total.result(), 3), round(total.result("mce"), 3)
    (0.2, 0.3)
    >>> total
    CalibrationAccumulator(n_bins=5, samples=4, expected_calibration_error=0.2000)
    """

    @validate_params({"n_bins": [Interval(Integral, 1, None, closed="left")]} | NORM_CONSTRAINTS)
    def __init__(
        self,
        n_bins: int = 15,
        *,
        norm: str = "l1",
        metrics: Sequence[AnyMetric] = (),
        edges: ArrayLike | None = None,
        labels: ArrayLike | None = None,
        pos_label: Any = None,
    ) -> None:
        self.norm = norm
        self.labels = labels
        self.pos_label = pos_label
        self.edges_ = compute_uniform_edges(n_bins) if edges is None else _check_edges(edges)
        self.sums_ = np.zeros((3, len(self.edges_) - 1))
        self.weight_norms_ = np.zeros((2, len(self.edges_) - 1))
        # A str is a sequence of str, too: of its letters.
        if isinstance(metrics, str) or not isinstance(metrics, Iterable):
            raise ValueError(
                f"metrics must be a sequence of {list(_SUMMED)}, got {shorten(metrics)}."
            )
        names = [_choose(metric, _SUMMED, argument="metrics") for metric in metrics]
        # Scalars until the first update, which gives the shapes.
        self.metric_sums_ = {name: np.zeros(()) for name in names if name in _WITH_SUMS}
        self.classes_: NDArray[Any] | None = None
        self._columns: tuple[int, ...] | None = None
        self._lock = RLock()

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "_lock"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=RLock())

    @property
    def n_effective_(self) -> NDArray[np.float64]:
        """Effective number of samples of every bin."""
        return count_effective(self.sums_[0], np.hypot(*self.weight_norms_))

    def update(
        self,
        y_true: ArrayLike,
        y_proba: ArrayLike,
        *,
        sample_weight: ArrayLike | None = None,
        frequency_weight: bool = False,
    ) -> Self:
        """Add samples.

        Parameters
        ----------
        y_true : array-like or dask array of shape (n_samples,) or (n_samples, n_classes)
            True labels, integers or strings, or soft labels, see
            :func:`expected_calibration_error`. No samples at all, in `y_proba` as well, add
            nothing.
        y_proba : array-like or dask array of shape (n_samples, n_classes) or (n_samples,)
            Probabilities of the classes, or of the positive class; columns as in the updates
            before. The chunks of a dask array are added up where they are; if neither `labels` nor
            an earlier update gives the classes, a pass over the labels finds them first.
        sample_weight : array-like or dask array of shape (n_samples,), default=None
            Weights of the samples, such as those of a survey or inverse probabilities of being
            sampled. Every row is one sample, whatever its weight: intervals and reports count
            ``(sum w)^2 / sum w^2`` samples. Only "debiased_ece" takes a weight of k for k samples.
        frequency_weight : bool, default=False
            Whether a row of weight k stands for k independent samples of equal probabilities and
            label, as in a table of counts. Weights that sum to less than half of the rows bring a
            warning: they were normalized.

        Returns
        -------
        self : CalibrationAccumulator
            The accumulator itself.

        Raises
        ------
        ValueError
            As :func:`expected_calibration_error`, and if columns or classes are not those of the
            updates before. The sums then stay as they were.

        Notes
        -----
        Threads may update the same accumulator: one waits for the other.
        """
        if not isinstance(frequency_weight, bool | np.bool_):
            raise ValueError(
                "frequency_weight must be True if weights are numbers of samples, else False, got "
                f"{shorten(frequency_weight)}."
            )
        with self._lock:
            self._update(y_true, y_proba, sample_weight, bool(frequency_weight))
        if frequency_weight and sample_weight is not None and not is_chunked(sample_weight):
            warn_if_normalized(as_floats(sample_weight, name="sample_weight"))
        return self

    def _update(
        self, y_true: ArrayLike, y_proba: ArrayLike, sample_weight: Any, are_counts: bool
    ) -> Self:
        if is_chunked(y_proba):
            chunks = y_true, y_proba, sample_weight
            total = self + _sum_over_chunks(self._empty(), *chunks, are_counts)
            self.sums_, self.metric_sums_ = total.sums_, total.metric_sums_
            self.weight_norms_ = total.weight_norms_
            self.classes_, self._columns = total.classes_, total._columns
            return self
        if _is_empty(y_true, "y_true") and _is_empty(y_proba, "y_proba"):
            return self
        # () for the positive class alone, (n_classes,) for one column per class.
        columns = as_proba(y_proba, in_blocks=True).shape[1:]
        if self._columns not in (None, columns):
            raise ValueError(
                "y_proba must have the columns of the updates before, "
                f"{_count_columns(self._columns)}, got {_count_columns(columns)}."
            )
        # `classes_` has the positive class last, so `pos_label` is not needed any more; but the
        # columns of soft labels are in the order of `labels`.
        known = self.classes_ is not None
        as_given = not known or (is_soft(y_true) and self.labels is not None)
        predictions = check_predictions(
            y_true,
            y_proba,
            sample_weight=sample_weight,
            labels=self.labels if as_given else self.classes_,
            pos_label=self.pos_label if as_given else None,
            defer_values=True,
        )
        # Compute all sums before any is stored: an error in a late block must not leave half an
        # update. They are new arrays, since old ones from another process may be read-only.
        with np.errstate(over="ignore", under="ignore"):
            added = sum_bins(predictions, self.edges_)
            sums = self.sums_ + added * predictions.unit
            norms = np.hypot(self.weight_norms_, self._norms(predictions, added, are_counts))
            metric_sums = {
                name: kept + _WITH_SUMS[name].sums(predictions, self.edges_) * predictions.unit
                for name, kept in self.metric_sums_.items()
            }
        if not all(np.isfinite(array).all() for array in (sums, norms, *metric_sums.values())):
            raise ValueError(
                "sample_weight must be so small that the sums over all updates are finite, also "
                "those of losses, got inf: divide the weights by a constant."
            )
        self.sums_, self.weight_norms_, self.metric_sums_ = sums, norms, metric_sums
        self._columns = columns
        # (label, label): all labels so far are positive, and the other class is not known yet.
        if not known and len(set(predictions.classes.tolist())) == len(predictions.classes):
            # Later updates may lack a class: the classes of the columns are stored here.
            self.classes_ = predictions.classes
        return self

    def _norms(
        self, predictions: Predictions, sums: NDArray[np.float64], are_counts: bool
    ) -> NDArray[np.float64]:
        """Return the norms of the weights of correct and of wrong samples, (2, n_bins).

        `sums` are those over the bins, of weights in the unit of `predictions`.
        """
        scale = predictions.unit
        if are_counts:  # k samples of weight 1
            scale = np.sqrt(scale)
        elif predictions.weight is not None:
            squared = predictions._replace(weight=np.square(predictions.weight))
            sums = sum_bins(squared, self.edges_)
        return scale * np.sqrt([sums[2], np.maximum(sums[0] - sums[2], 0)])

    @np.errstate(under="ignore")
    def result(self, metric: AnyMetric = "ece") -> float:
        """Return a metric of all samples so far.

        Parameters
        ----------
        metric : str or callable, default="ece"
            "ece", "mce", "debiased_ece", or one of `metrics`, by its short or full name, its
            function or its scorer. "ece" and "classwise_ece" take the `norm`.

        Returns
        -------
        value : float
            What the function of the metric returns; for "e_value" the e-value, in [0, inf].

        Raises
        ------
        ValueError
            If there are no samples yet, or if the sums of `metric` are not kept.
        """
        name = _choose(metric, _SUMMED)
        if name not in _OF_BINS and name not in self.metric_sums_:
            raise ValueError(
                f"metric must be one of {[*_OF_BINS, *self.metric_sums_]}, whose sums are kept, "
                f"got {name!r}; name it in `metrics`."
            )
        self._check_not_empty()
        sums = self.metric_sums_.get(name, self.sums_)
        if name == "debiased_ece":  # there are at least as many samples as effective ones
            warn_of_total(self.sums_[0].sum(), int(self.n_effective_.sum()))
        return _SUMMED[name].value(sums, self.sums_[0].sum(), self.norm)

    @np.errstate(under="ignore")
    def interval(
        self,
        metric: AnyMetric = "ece",
        *,
        confidence_level: float = 0.95,
        n_resamples: int = 999,
        random_state: Any = None,
    ) -> tuple[float, float]:
        """Return the interval of a binned error of all samples so far.

        It is that of :func:`calibration_error_interval`, computed from the sums, so its cost does
        not depend on the number of samples. It allows for weights, also for those of merged parts
        with unlike weights: see `sample_weight` of :meth:`update`. On real models 95 %
        intervals contain the maximum error in 88 to 93 % of draws, the others in 94 to 98 %.

        Parameters
        ----------
        metric : str or callable, default="ece"
            "ece", with `norm`, "mce" or "debiased_ece", also by the full name, the function or
            the scorer.
        confidence_level, n_resamples, random_state : of :func:`calibration_error_interval`

        Returns
        -------
        low, high : float
            Ends of the interval, in [0, 1].

        Raises
        ------
        ValueError
            If there are no samples yet, if `metric` is another one, or if `confidence_level` or
            `n_resamples` is out of its range.
        """
        rules = {
            "ece": ("bins", self.norm),
            "mce": ("bins", "max"),
            "debiased_ece": ("debiased", "l2"),
        }
        name = _choose(metric, rules)
        if not 0 < confidence_level < 1:
            raise ValueError(f"confidence_level must be in (0, 1), got {confidence_level!r}.")
        if not isinstance(n_resamples, Integral) or n_resamples < 1:
            raise ValueError(f"n_resamples must be an integer of at least 1, got {n_resamples!r}.")
        self._check_not_empty()
        return compute_binned_interval(
            *rules[name],
            *(self.sums_, self.weight_norms_),
            *(confidence_level, n_resamples, random_state),
        )

    @np.errstate(under="ignore")
    def evidence(self) -> Evidence:
        """Return the evidence that the probabilities are wrong, which may be looked at any time.

        If the probabilities are right, whatever came before, the e-value ever exceeds
        ``1 / alpha`` with probability `alpha` at most, however often one looks and whenever one
        stops. It is the mean return of bets on fixed maps of the probabilities [1]_: slopes and
        shifts of the log-odds for two classes, slopes of all logits and a shift of every class for
        several.

        Labels may come late and in any order, as long as their delay does not depend on their
        values. The guarantee fails if labels depend on each other, as those of samples that belong
        together do, and if the model is updated on labels before they are added here.

        Returns
        -------
        e_value : float
            In [0, inf]: larger = more evidence that the probabilities are wrong. About 1 or less
            where they are right.
        pvalue : float
            ``min(1, 1 / e_value)``, valid at any time: smaller = more evidence.

        Raises
        ------
        ValueError
            If there are no samples yet, or if `metrics` does not name "e_value".

        See Also
        --------
        calibration_test : The p-value of a single look at all samples, with more power.

        References
        ----------
        .. [1] A. Ramdas, P. Gruenwald, V. Vovk, G. Shafer, "Game-theoretic statistics and safe
           anytime-valid inference", Statistical Science 2023.

        Examples
        --------
        >>> import numpy as np
        >>> from skcalib.metrics import CalibrationAccumulator
        >>> rng = np.random.default_rng(0)
        >>> days = CalibrationAccumulator(metrics=["e_value"])
        >>> for _ in range(5):
        ...     y = rng.integers(0, 2, 100)
        ...     _ = days.update(y, np.where(rng.random(100) < 0.8, 0.1 + 0.8 * y, 0.9 - 0.8 * y))
        >>> e_value, pvalue = days.evidence()
        >>> e_value > 20, pvalue < 0.05
        (True, True)
        """
        return combine_e_values(self._sums_of_evidence())

    def _sums_of_evidence(self) -> NDArray[np.float64]:
        if "e_value" not in self.metric_sums_:
            raise ValueError(
                f"metrics must name 'e_value' for its sums to be kept, got "
                f"{list(self.metric_sums_)}."
            )
        self._check_not_empty()
        return self.metric_sums_["e_value"]

    def to_json(self) -> str:
        """Return the accumulator as text, from which :meth:`from_json` makes an equal one.

        Returns
        -------
        text : str
            JSON, on one line. All numbers are kept to the last bit.

        Examples
        --------
        >>> from skcalib.metrics import CalibrationAccumulator
        >>> stream = CalibrationAccumulator(n_bins=5).update([0, 1, 1], [0.1, 0.7, 0.9])
        >>> CalibrationAccumulator.from_json(stream.to_json())
        CalibrationAccumulator(n_bins=5, samples=3, expected_calibration_error=0.1667)
        """
        state = {name: _as_plain(getattr(self, name)) for name in _STATE}
        return json.dumps({"format": _FORMAT, **state}, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the accumulator that :meth:`to_json` has written.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        accumulator : CalibrationAccumulator
            An equal one, which goes on with further updates and adds up with others.

        Raises
        ------
        ValueError
            If the text is not that of an accumulator.

        Warns
        -----
        SkcalibWarning
            If the text has format 1, which lacks `weight_norms_`: every weight of k then counts
            as k samples, which is right if none were passed, or numbers of samples.

        Examples
        --------
        >>> from skcalib.metrics import CalibrationAccumulator
        >>> stream = CalibrationAccumulator(n_bins=5).update([0, 1, 1], [0.1, 0.7, 0.9])
        >>> CalibrationAccumulator.from_json(stream.to_json()).result() == stream.result()
        True
        """
        try:
            state = read_state(text, (_FORMAT, _WITHOUT_NORMS))
            sums = get_field(state, "metric_sums_")
            if not isinstance(sums, dict):
                raise ValueError("'metric_sums_' must be an object")
            pos_label = get_field(state, "pos_label")
            found = cls(
                norm=get_field(state, "norm"),
                metrics=list(sums),
                edges=read_numbers(get_field(state, "edges_"), "edges_"),
                labels=read_labels(get_field(state, "labels"), "labels"),
                pos_label=None if pos_label is None else read_labels([pos_label], "pos_label")[0],  # type: ignore[index]
            )
            found._take(state)
        except (TypeError, ValueError) as error:
            raise ValueError(
                "text must be what to_json of an accumulator returned, got "
                f"{shorten(text)}: {str(error)[:200].rstrip('.')}."
            ) from None
        return found

    def _take(self, state: dict[str, Any]) -> None:
        """Set sums and classes from a dict of plain values, as JSON holds them."""
        self._take_classes(state)
        sums, norms = self._read_sums(state)
        if list(state["metric_sums_"]) != list(self.metric_sums_):
            raise ValueError("'metric_sums_' must have short names that differ")
        self.sums_, self.weight_norms_ = sums, norms
        self.metric_sums_ = {
            name: read_numbers(values, name, self._shape_of(name) if sums.any() else ())
            for name, values in state["metric_sums_"].items()
        }

    def _take_classes(self, state: dict[str, Any]) -> None:
        columns, classes = get_field(state, "_columns"), get_field(state, "classes_")
        if columns is not None:
            read_numbers(columns, "_columns")
            self._columns = tuple(read_count(k, "_columns", 2) for k in columns)
            if len(self._columns) > 1:
                raise ValueError("'_columns' must be of one number at most")
        if classes is not None:
            labels = set(read_labels(classes, "classes_") or ())
            if self.labels is not None and labels != set(np.asarray(self.labels).tolist()):
                raise ValueError("'classes_' must be 'labels', in any order")
            self.classes_ = as_labels(classes, name="classes_")
        known = self.labels if classes is None else classes
        if known is None:
            if self._columns:
                raise ValueError("'classes_' must have a label for every column")
            return
        names = np.asarray(known).tolist()
        if len(names) < 2 or (self._columns is not None and (*self._columns, 2)[0] != len(names)):
            raise ValueError("'classes_' and 'labels' must have a label for every column")
        if self.pos_label is not None and self.pos_label not in names:
            raise ValueError("'pos_label' must be one of the classes")
        if classes is not None and self._columns is None:
            raise ValueError("'_columns' must be known with the classes")

    def _read_sums(self, state: dict[str, Any]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Return the sums of a state, and the norms of the weights."""
        sums = read_numbers(get_field(state, "sums_"), "sums_", self.sums_.shape, low=-TOLERANCE)
        n, confidence, correct = sums
        if (n < 0).any() or (np.maximum(confidence, correct) > (1 + 2 * TOLERANCE) * n).any():
            raise ValueError("'sums_' must not exceed the weights")
        if self._columns is None and sums.any():
            raise ValueError("'_columns' must be known where there are samples")
        if state["format"] == _FORMAT:
            norms = get_field(state, "weight_norms_")
            norms = read_numbers(norms, "weight_norms_", self.weight_norms_.shape, low=0)
            norm, most = np.hypot(*norms), np.maximum(n, np.sqrt(n)) * (1 + TOLERANCE)
            # Squares of far smaller weights are 0.
            least = np.where(n > 1e-100 * n.max(), n / _MOST_EFFECTIVE**0.5, 0)
            if ((norm < least) | (norm > most)).any():
                raise ValueError("'weight_norms_' must fit the weights")
        else:
            norms = np.sqrt(np.maximum([sums[2], sums[0] - sums[2]], 0))
            if sums.any():
                warn(
                    "text has format 1, without the norms of weights: intervals and reports take "
                    "a weight of k for k samples. If other weights were passed, sum up again."
                )
        return sums, norms

    def _shape_of(self, metric: str) -> tuple[int, ...]:
        """Return the shape of the sums of a metric, once there are samples."""
        labels = [0, 1] if self.classes_ is None else self.classes_
        proba = np.full((1, *self._columns), 1 / len(labels))  # type: ignore[misc]
        one = check_predictions(labels[:1], proba, labels=labels)
        return _WITH_SUMS[metric].sums(one, self.edges_).shape

    def curve(self) -> ReliabilityCurve:
        """Return what :func:`reliability_curve` does, for all samples so far.

        Returns
        -------
        curve : ReliabilityCurve
            Accuracy and mean confidence of every bin, its weight and the edges.
        """
        self._check_not_empty()
        return compute_curve(Bins(self.edges_, self.sums_))

    def __repr__(self) -> str:
        n, n_bins = self.sums_[0].sum(), len(self.edges_) - 1
        error = f", expected_calibration_error={self.result():.4f}" if n else ""
        return f"CalibrationAccumulator(n_bins={n_bins}, samples={format_count(n)}{error})"

    def _empty(self) -> CalibrationAccumulator:
        """Return an accumulator without samples, with the same options and classes."""
        empty = copy(self)
        empty.sums_, empty.weight_norms_ = map(np.zeros_like, (self.sums_, self.weight_norms_))
        empty.metric_sums_ = {name: np.zeros(()) for name in self.metric_sums_}
        return empty

    def _check_not_empty(self) -> None:
        if not self.sums_[0].any():
            raise ValueError("CalibrationAccumulator has no samples yet: call update first.")

    def __add__(self, other: CalibrationAccumulator) -> CalibrationAccumulator:
        if not isinstance(other, CalibrationAccumulator):
            return NotImplemented
        if (
            self.norm != other.norm
            or not np.array_equal(self.edges_, other.edges_)
            or self.metric_sums_.keys() != other.metric_sums_.keys()
        ):
            raise ValueError(
                "Only accumulators with the same norm, the same bins and the same metrics add up."
            )
        total = copy(self)
        named = {"labels": "labels", "pos_label": "pos_label"}
        named |= {"classes_": "classes", "_columns": "classes"}
        for name, what in named.items():
            setattr(total, name, _check_common(getattr(self, name), getattr(other, name), what))
        total.sums_ = self.sums_ + other.sums_
        total.weight_norms_ = np.hypot(self.weight_norms_, other.weight_norms_)
        total.metric_sums_ = {
            name: kept + other.metric_sums_[name] for name, kept in self.metric_sums_.items()
        }
        return total

    def __radd__(self, other: object) -> CalibrationAccumulator:
        # `sum` begins with 0.
        return copy(self) if isinstance(other, int) and other == 0 else NotImplemented


def _as_plain(value: Any) -> Any:
    """Return a value as dicts, lists and numbers, which JSON can hold."""
    if isinstance(value, dict):
        return {name: _as_plain(part) for name, part in value.items()}
    return np.asarray(value).tolist()  # None and text as they are


def _check_common(some: Any, other: Any, what: str) -> Any:
    """Return the common value of two accumulators; None is unknown and fits any value."""
    if some is None or other is None:
        return other if some is None else some
    if not np.array_equal(some, other):
        raise ValueError(f"Only accumulators with the same {what} add up.")
    return some


def _count_columns(columns: tuple[int, ...] | None) -> str:
    """Return the number of columns in words."""
    return f"{columns[0]}, one for each class" if columns else "one, of the positive class"


def _is_empty(values: Any, name: str) -> bool:
    known = type(values) is np.ndarray or is_on_accelerator(values)
    array = values if known else as_array(values, name=name)
    return array.ndim > 0 and len(array) == 0


def _check_edges(edges: ArrayLike) -> NDArray[np.float64]:
    # Equal edges pass: where many confidences are 0, quantiles give the edges 0, 0, ..., 1, and
    # the first bin holds the zeros.
    array = as_floats(edges, name="edges").astype(np.float64)
    if not (
        array.ndim == 1
        and len(array) >= 2
        and array[0] == 0
        and array[-1] == 1
        and np.all(np.diff(array) >= 0)
    ):
        raise ValueError(f"edges must increase from 0 to 1, got {edges!r}.")
    return array


def _sum_over_chunks(
    empty: CalibrationAccumulator,
    y_true: Any,
    y_proba: Any,
    sample_weight: Any,
    are_counts: bool,
) -> CalibrationAccumulator:
    """Return the sum over the chunks, each added to a copy of `empty`, which has no samples."""
    proba, labels, weight = align_chunks(
        True, y_proba=y_proba, y_true=y_true, sample_weight=sample_weight
    )
    if empty.classes_ is None and empty.labels is None:
        # One chunk alone may lack a class that another chunk has.
        empty.labels = get_classes_of_chunks(labels, proba.shape[1:], empty.pos_label)
    update = partial(_update_empty, empty, are_counts)
    return reduce_chunks(update, add, proba, labels, weight)


def _update_empty(
    empty: Any,
    are_counts: bool,
    y_proba: NDArray,
    y_true: NDArray,
    sample_weight: NDArray | None,
) -> Any:
    accumulator = copy(empty)
    # Weights of 0 everywhere are an error for a call, but not for one of many chunks.
    if sample_weight is not None and len(sample_weight) == len(y_true) and not sample_weight.any():
        return accumulator
    return accumulator.update(
        y_true, y_proba, sample_weight=sample_weight, frequency_weight=are_counts
    )
