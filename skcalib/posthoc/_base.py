"""Base of the post-hoc calibrators: reads scores, labels and weights, and predicts."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.optimize import nnls
from scipy.special import expit, softmax, xlogy
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin
from sklearn.utils import assert_all_finite, check_consistent_length, column_or_1d
from sklearn.utils.validation import check_is_fitted

from ..metrics import check_alignment
from ..metrics._states import get_field, read_state
from ..metrics._temperature_fit import compute_margins
from ..utils._arrays import (
    as_numeric_features,
    average_to_one,
    check_weights,
    is_soft,
    keep_index,
    reword,
)
from ..utils._backends import align_chunks, by_chunks, find_accelerated, send_chunks_to
from ..utils._compat import StrOptions, _check_feature_names_in, _fit_context, _num_samples
from ..utils._estimators import PredictByProba, VersionMixin, validate_data, validate_rows
from ..utils._labels import (
    check_class_labels,
    check_column_labels,
    check_several_classes,
    draw_independent_rows,
    encode,
    encode_groups,
    format_labels,
    get_column_names,
    shorten,
)
from ..utils._numeric import compute_quantiles, iter_blocks
from ..utils._output import format_count, name_argument, warn
from ..utils._proba import (
    FLOAT32_ROUNDING,
    as_soft_labels,
    check_values,
    expand_soft_labels,
    holds_proba,
    match_soft_labels,
)
from ._dask import (
    DEVICE_SAMPLE_SIZE,
    ScoresInChunks,
    ScoresOnDevice,
    count_weights,
    find_range,
    find_smallest_positive,
)
from ._json import PlainMixin

_FORMAT = "skcalib.calibrator 2"
# Rows of a calibrator that was read from JSON whose probabilities are looked at.
_PROBES = 10
# A probability of 0 counts as SMALLEST: forests and counts give zeros, and the logarithm of a
# single one would otherwise decide a fit. Probabilities between 0 and SMALLEST are kept, down to
# SMALLEST_BUT_0.
SMALLEST = 1e-7
SMALLEST_BUT_0 = 1e-30
# Level at which the predicted number of samples of a class contradicts that there is none.
_LEAST_P_OF_NONE = 0.01
# A larger logit is none: squares of logits and their weights must not overflow float32.
_LARGEST_LOGIT = 1e15
LOWEST_LOG_PROBA = float(np.log(SMALLEST))
# `fit_simplex_weights`: stop after a step of this expected gain per sample; the factor by which a
# step may lower a probability; the part of its trace added to the diagonal of a curvature.
_LEAST_PROMISE, _LEAST_CHANGE = 1e-9, 1e-2
_RIDGE = 1e-12
_MOST_NEWTON_STEPS, _MOST_HALVINGS = 100, 40


class PostHocCalibrator(
    PredictByProba, PlainMixin, ClassifierMixin, TransformerMixin, VersionMixin, BaseEstimator, ABC
):
    """Base class for your own calibrator, a map from scores of a trained model to probabilities.

    A subclass implements two methods:

    - ``_fit(scores, y, sample_weight)`` learns from scores of shape (n_samples, n_columns), from
      `y`, the column of every label, and from weights, None if all are equal. Samples of weight 0
      are already removed, and the mean of the others is 1.
    - ``_predict_proba(scores)`` returns probabilities of shape (n_samples, n_classes).

    For :meth:`to_json` and ONNX it also needs ``_formula()``, which returns the map in the format
    of :meth:`to_json`.

    The scores are those of the user, checked. ``self._as_logits(scores)`` and
    ``self._as_proba(scores)`` convert them to one logit or one probability per class. ``__init__``
    takes `input`, `classes` and the parameters of the subclass, which are declared in
    ``_parameter_constraints``. The base class handles everything else: weights, labels of any
    type, one score for two classes, float32, DataFrames, feature names, ``set_output``.

    Parameters
    ----------
    input : {"logits", "proba", "scores"}, default="logits"
        What X holds: logits, whose softmax are probabilities; probabilities; or scores whose unit
        means nothing, such as the distances of a support vector machine from its planes. The logit
        of a probability is its logarithm; 0 counts as 1e-7, or as the smallest positive
        probability given to `fit` if that is less. Scores are divided by `unit_` and are then
        treated as logits, so that probabilities do not depend on their unit.
    classes : array-like of shape (n_classes,), default=None
        Labels of the columns of X. None means 0, ..., n_classes - 1 or, for other labels, the
        sorted labels of `y`; pass it if a class may have no sample in `y`.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Labels of the columns.
    n_features_in_ : int
        Number of columns of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of X, if they are all strings.
    unit_ : float
        What X is divided by. With ``input="scores"`` the median, over the samples given to `fit`,
        of the difference between the largest and the second-largest score; otherwise 1.

    See Also
    --------
    PostHocCalibratedClassifier : A classifier and any calibrator as one estimator.
    TemperatureScaling : A calibrator with two parameters.

    Examples
    --------
    Mix the probabilities with the class frequencies:

    >>> import numpy as np
    >>> from skcalib.posthoc import PostHocCalibrator
    >>> class Shrinkage(PostHocCalibrator):
    ...     def __init__(self, *, amount=0.1, input="logits", classes=None):
    ...         self.amount = amount
    ...         self.input = input
    ...         self.classes = classes
    ...
    ...     def _fit(self, scores, y, sample_weight):
    ...         count = np.bincount(y, sample_weight, minlength=len(self.classes_))
    ...         self.frequency_ = count / count.sum()
    ...
    ...     def _predict_proba(self, scores):
    ...         return (1 - self.amount) * self._as_proba(scores) + self.amount * self.frequency_
    >>> shrinkage = Shrinkage(amount=0.2, input="proba").fit([0.1, 0.6, 0.8, 0.9], list("nyyy"))
    >>> shrinkage.predict_proba([0.5])
    array([[0.45, 0.55]])
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "input": [StrOptions({"logits", "proba", "scores"})],
        "classes": ["array-like", None],
    }

    # Whether a logit of -inf may stand for an option that a sample does not have.
    _takes_missing_options: ClassVar[bool] = False
    # Whether the class of the largest score stays that of the largest probability.
    _keeps_order: ClassVar[bool] = False
    # Whether `input` may be "scores", whose unit means nothing.
    _takes_scores: ClassVar[bool] = True
    # Whether `_fit` draws folds, and takes the groups that they have to keep together.
    _has_folds: ClassVar[bool] = False
    # The smallest probability; lower ones are raised to it.
    _zero: float = SMALLEST
    unit_: float = 1.0

    def __init__(self, *, input: str = "logits", classes: ArrayLike | None = None) -> None:
        self.input = input
        self.classes = classes

    @_fit_context(prefer_skip_nested_validation=True)
    @send_chunks_to("_check_and_fit_chunks")
    def fit(
        self,
        X: ArrayLike,
        y: ArrayLike,
        sample_weight: ArrayLike | None = None,
        groups: Any = None,
    ) -> Self:
        """Fit the calibrator to scores of samples that the model was not trained on.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_classes) or (n_samples,)
            Logits, probabilities or scores, as `input` says, one column per class in the order of
            `classes_`; for two classes also the score of the second class alone. Only
            :class:`TemperatureScaling`, the vector and matrix calibrators,
            :class:`BetaCalibration`, :class:`IsotonicCalibration` and :class:`HistogramBinning`
            can be fitted to a dask array; they sum over its chunks.
        y : array-like of shape (n_samples,) or (n_samples, n_classes)
            Labels. If people disagree, the fraction of people who gave each label: one column per
            class, in the order of `classes_` or named after them, and rows that sum to 1. A sample
            then counts as one sample of every class, weighted by its fraction.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples; only their ratios matter.
        groups : array-like or DataFrame of shape (n_samples,) or (n_samples, n_columns), \
                default=None
            Which samples belong together, such as those of a patient: names or numbers. A
            calibrator with folds of its own keeps them together; others ignore them.

        Returns
        -------
        self : object
            The fitted calibrator.

        Raises
        ------
        ValueError
            If X, `y`, `sample_weight` and `groups` have different lengths, if X is not finite or
            not what `input` says, or if the labels of the columns are not clear from `y`.
        TypeError
            If X holds no numbers, or is a dask array and the calibrator cannot be fitted to one.

        Warns
        -----
        SkcalibWarning
            If X seems to hold probabilities and ``input="logits"``; if X and `y` seem to be in
            another order: what :func:`~skcalib.metrics.check_alignment` finds in them; or if `y`
            lacks one of the `classes` that were named, and X predicts so many samples of it that
            the probability of none is below .01. Its calibrated probabilities would all be too
            low.
        """
        if groups is not None:
            groups = encode_groups(groups, _num_samples(X))[1]
        if self._is_summed_on_device(X, y):
            return self._check_and_fit_on_device(X, y, sample_weight, groups)
        return self._check_and_fit(X, y, sample_weight, groups)

    @by_chunks
    def predict_proba(self, X: ArrayLike) -> NDArray:
        """Return calibrated probabilities.

        Parameters
        ----------
        X : array-like or dask array of shape (n_samples, n_classes) or (n_samples,)
            Scores in the form that `fit` got.

        Returns
        -------
        proba : ndarray or dask array of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`; rows sum to 1. Lazy if X is a dask array.

        Raises
        ------
        ValueError
            If X is not finite, has another number of columns than in `fit`, or should hold
            probabilities and does not.
        """
        if "classes_" not in vars(self):  # the check takes longer than most maps of one row
            check_is_fitted(self)
        return self._predict_proba(self._read_scores(X, reset=False))

    def transform(self, X: ArrayLike) -> NDArray:
        """Return calibrated probabilities, as `predict_proba` does.

        Parameters
        ----------
        X : of :meth:`predict_proba`

        Returns
        -------
        proba : ndarray or dask array of shape (n_samples, n_classes)
            Probabilities in the order of `classes_`; rows sum to 1. Lazy if X is a dask array.
        """
        return self.predict_proba(X)

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Return the names of the columns of `transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X, only compared with those of `fit`.

        Returns
        -------
        names : ndarray of str objects
            ``proba_<class>`` for every class.
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        return np.asarray([f"proba_{label}" for label in self.classes_], dtype=object)

    def to_json(self) -> str:
        """Return the fitted map as JSON: :meth:`from_json` and programs without skcalib read it.

        Returns
        -------
        text : str
            A JSON object. Its ``format`` is "skcalib.calibrator 2"; a program should refuse any
            other, whose formulas it does not know. Its ``map`` is a formula of z, one logit per
            class, and p, one probability per class, in the order of ``classes``. If ``input`` is
            "logits" or "scores", z is X divided by ``unit`` (1 for logits) and p the softmax of
            z. If it is "proba", p is X and z its logarithm, with probabilities below ``zero``
            raised to ``zero``. A single column belongs to the second of two classes: then z = (0,
            X) or p = (1 - X, X). ``kind`` names the formula:

            - "identity": p.
            - "uniform": equal probabilities for all classes with finite logits.
            - "linear": ``softmax(f @ coef.T + intercept)``, with ``f * coef`` if ``coef`` is one
              row. f is ``z / temperature`` or, if ``least`` is not null,
              ``max(log_softmax(z / temperature), least)``.
            - "mixture": the sum of ``parts``, which are formulas, times ``weights``. A class with
              a logit of -inf gets 0, and rows are divided by their sum.
            - "shifted": ``part``, which is a formula, times ``exp(intercept)``; rows are divided
              by their sum.
            - "one_vs_rest": one of ``curves`` is applied to the value v of every class, and rows
              are divided by their sum (a sum of 0 gives uniform probabilities). With two classes
              there is one curve, for the second class. ``of`` says what v is: "proba" p,
              "log_odds" the z of the class less the logarithm of the summed exponentials of the
              other z. A "line" interpolates between the points ``x``, ``y`` and is constant beyond
              them. "steps" change from ``y[j]`` to ``y[j + 1]`` right above ``x[j]``. "beta" is (1
              - w) times ``1 / (1 + exp(-(a log(q) - b log(1 - q) + c)))``, plus w divided by the
              number of classes; q is p clipped to [``zero``, 1 - ``zero``], with the curve's own
              ``zero``, or with "log_odds" ``1 / (1 + exp(-v))``, so that log(q) is
              ``-log(1 + exp(-v))`` and log(1 - q) is ``-log(1 + exp(v))``.
            - "confidence": let q be one of the probabilities of ``part``, which is a formula: the
              second of two classes, otherwise the largest. Clip q to [``zero``, 1 - ``zero``]. The
              line through ``x``, ``y``, constant beyond them, maps the log-odds of q to those of
              m. With two classes the result is (1 - m, m). With more, c classes share the largest
              probability, up to rounding: those of at least ``q (1 - equal)``. Let r be
              ``1 - c q``, at least ``zero``, and s the next largest probability, times
              ``1 + zero``. Raise m to at least ``s / (r + c s)``, then lower it to at most
              ``(1 - zero) / c``. Multiply the c classes by ``m / q`` and the others by
              ``(1 - c m) / r``; divide rows by their sum.

            ``calibrator`` is for :meth:`from_json`: the class, the parameters and the attributes;
            null if an attribute is of a type that JSON does not have. Samples are not stored.

        Raises
        ------
        NotImplementedError
            If the calibrator has no formula: :class:`GroupwiseCalibration`, or a subclass without
            ``_formula``.

        Examples
        --------
        >>> from skcalib.posthoc import TemperatureScaling
        >>> scaling = TemperatureScaling().fit([-1.0, 2.0, 1.0], [0, 1, 0])
        >>> scaling.to_json()
        '{"format": "skcalib.calibrator 2", "classes": [0, 1], "input": "logits", "zero": 1e-07,
        "unit": 1.0, "map": {"kind": "linear", "temperature": ..., "coef": 1.0,
        "intercept": 0.0, "least": null}, "calibrator": {"class": "TemperatureScaling", ...}}'
        """
        check_is_fitted(self)
        found = {
            "format": _FORMAT,
            "classes": self.classes_.tolist(),
            "input": self.input,
            "zero": self._zero,
            "unit": self.unit_,
            "map": self._formula(),
        }
        try:
            found["calibrator"] = self._to_plain()
        except TypeError:
            found["calibrator"] = None
        return json.dumps(found, allow_nan=False)

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Return the calibrator that :meth:`to_json` has written.

        Its probabilities are equal to the last bit. The text is read as data and nothing in it is
        run, so that it may come from anywhere; pickles may not.

        Parameters
        ----------
        text : str
            What :meth:`to_json` returned.

        Returns
        -------
        calibrator : PostHocCalibrator
            A fitted calibrator of the class that wrote the text, with its attributes and
            parameters. Parameters that JSON does not have, such as tables, and the
            `training_scores` of :class:`PriorShift` have their defaults: only `fit` reads them.

        Raises
        ------
        ValueError
            If the text is not that of a calibrator of this class, or is not whole:
            ``PostHocCalibrator.from_json`` takes every class of skcalib, and your own class its
            own.

        Examples
        --------
        >>> from skcalib.posthoc import PostHocCalibrator, TemperatureScaling
        >>> scaling = TemperatureScaling().fit([-1.0, 2.0, 1.0], [0, 1, 0])
        >>> again = PostHocCalibrator.from_json(scaling.to_json())
        >>> again
        TemperatureScaling()
        >>> again.temperature_ == scaling.temperature_
        True
        """
        try:
            state = read_state(text, (_FORMAT,))
            plain = get_field(state, "calibrator")
            if plain is None:
                raise ValueError("it holds the map alone, as an attribute has no type of JSON")
            found = cls._from_plain(plain)
            found._check_read(state)
        except ValueError as error:
            what = str(error)[:200].rstrip(".")
        except (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError) as error:
            too_deep = isinstance(error, RecursionError)
            what = "it is nested too deeply" if too_deep else "its values do not belong together"
        else:
            return found
        raise ValueError(
            f"text must be what to_json of a calibrator returned, got {shorten(text)}: {what}."
        )

    def _check_read(self, state: dict[str, Any]) -> None:
        """Raise unless a calibrator that was read writes the same, and returns probabilities."""
        k, n_columns = len(self.classes_), self.n_features_in_
        if n_columns != k and (n_columns, k) != (1, 2):
            raise ValueError("there must be a column for every class")
        if json.loads(self.to_json()) != state:
            raise ValueError("its map is not that of its calibrator")
        some = np.eye(k)[:_PROBES, -n_columns:]
        with np.errstate(all="ignore"):
            proba = self._predict_proba(some if self.input == "proba" else 4 * some - 2)
        sums = proba.sum(axis=1)
        if proba.shape != (len(some), k) or not (proba >= 0).all() or not np.allclose(sums, 1):
            raise ValueError("its map returns no probabilities")

    def _formula(self) -> dict[str, Any]:
        """Return the map in plain numbers, in the format of `to_json`."""
        raise NotImplementedError(
            f"{type(self).__name__} has no formula for other programs; implement _formula, which "
            "returns one in the format of to_json."
        )

    @abstractmethod
    def _fit(self, scores: NDArray, y: NDArray, sample_weight: NDArray | None) -> None:
        """Learn from checked scores, columns of the labels, and weights."""

    @abstractmethod
    def _predict_proba(self, scores: NDArray) -> NDArray:
        """Return calibrated probabilities of checked scores, one column per class."""

    def _check_and_fit(
        self,
        X: ArrayLike,
        y: ArrayLike | None,
        sample_weight: ArrayLike | None,
        groups: NDArray[np.intp] | None = None,
        *,
        warns: bool = True,
        aligned: bool = False,
    ) -> Self:
        """Check and fit; `warns` once about the user's data, of their order unless `aligned`."""
        scores = self._read_scores(X, reset=True)
        # One column in [0, 1] may well be logits; with several, rows that sum to 1 hardly are.
        if self.input == "logits" and scores.shape[1] > 1 and holds_proba(scores):
            self._warn_of_proba()
        self.classes_, codes = self._read_labels(y, scores)
        with name_argument("X", "y"):
            check_consistent_length(scores, codes)
        weight = average_to_one(check_weights(sample_weight, len(scores)))
        self.unit_ = find_unit(scores, weight) if self.input == "scores" else 1.0
        if warns and codes is not None:
            independent = draw_independent_rows(len(scores), groups, weight)
            if not aligned:
                self._warn_of_order(X, y, scores, codes, independent)
            self._warn_of_absent(scores, codes, scores, independent)
        if is_soft(codes):
            # One row per sample and class. Rows of a sample stay in one fold.
            samples, codes, weight = expand_soft_labels(codes, weight)
            if len(samples) > len(scores) or groups is not None:
                groups = samples if groups is None else groups[samples]
            scores = scores[samples]
        _check_options(scores, codes)
        if weight is not None:
            # Only now: the class of a sample of weight 0 is still a class.
            used = weight > 0
            scores, weight = scores[used], weight[used]
            codes = None if codes is None else codes[used]
            groups = None if groups is None else groups[used]
        if self.input == "proba":
            self._zero = _find_zero(self, scores)
        more = {"groups": groups} if self._has_folds else {}
        self._fit(scores, codes, weight, **more)
        return self

    def _warn_of_proba(self) -> None:
        """Warn of probabilities that are read as logits."""
        warn(
            'X holds probabilities, rows in [0, 1] that sum to 1, but input="logits"; pass '
            f'{type(self).__name__}(input="proba") to use them as probabilities.'
        )

    def _warn_of_order(
        self, X: Any, y: Any, scores: NDArray, codes: NDArray, rows: slice | NDArray[np.intp]
    ) -> None:
        """Warn if columns or rows of scores seem to be in another order than the labels."""
        scores = scores if self.unit_ == 1 else scores / self.unit_
        proba = as_proba_of(scores, logits=self.input != "proba")
        truth = codes if is_soft(codes) else self.classes_[codes]
        findings = check_alignment(
            keep_index(y, truth, rows),
            keep_index(X, proba, rows),
            labels=None if self.classes is None else self.classes_,
        )
        for finding in findings:
            warn(reword(finding, {"y_proba": "X", "y_true": "y", "labels=": "classes="}))

    def _warn_of_absent(self, scores: Any, codes: NDArray, some: NDArray, rows: Any) -> None:
        """Warn of classes without samples, of which X expects some: they are learned as rare.

        Whether it does is seen in rows of `some` of the scores.
        """
        # Only classes that somebody named, as a classifier does, are known to exist.
        if self.classes is None or self.input == "scores":
            return
        found = codes.sum(axis=0) if is_soft(codes) else np.bincount(codes)
        k = len(self.classes_)
        absent = np.flatnonzero(np.append(found, np.zeros(k - len(found)))[:k] == 0)
        if not len(absent):
            return
        proba = self._as_proba(some[rows].astype(np.float64))[:, absent]
        # The probability that independent samples of these probabilities have none of the class.
        p_of_none = np.exp(np.log1p(-np.minimum(proba, 1 - SMALLEST)).sum(axis=0))
        sure = np.flatnonzero(p_of_none < _LEAST_P_OF_NONE / len(absent))
        if len(sure):
            expected: NDArray[np.float64] = sum(
                self._as_proba(block.astype(np.float64))[:, absent[sure]].sum(axis=0)
                for _, block in iter_blocks(scores)
            )
            warn(
                f"y has no sample of class {format_labels(self.classes_[absent[sure]])}, of which "
                f"X predicts {', '.join(map(format_count, expected[:10]))} among "
                f"{len(scores)} samples: the calibrator learns it as absent. Pass samples of all "
                "classes, drawn as those to predict."
            )

    def _fit_aligned(
        self, X: ArrayLike, y: ArrayLike, sample_weight: ArrayLike | None, groups: Any = None
    ) -> Self:
        """Fit as `fit` does, to scores in the order of the labels, such as out-of-fold ones."""
        return self._check_and_fit(X, y, sample_weight, groups, aligned=True)

    def _check_and_fit_chunks(
        self, X: Any, y: Any, sample_weight: Any = None, groups: Any = None
    ) -> Self:
        """Check and fit where X is a dask array; labels and weights may be in memory."""
        if type(self)._fit_chunks is PostHocCalibrator._fit_chunks:
            raise TypeError(
                f"X must be in memory here, got a collection of dask: {type(self).__name__} is "
                "fitted to a sample, such as X[::100].compute(), and then predicts in chunks."
            )
        if groups is not None:
            raise ValueError("groups must be None if X is a dask array, got groups.")
        data = ScoresInChunks(self, *align_chunks(True, X=X, y=y, sample_weight=sample_weight))
        self.__dict__.pop("feature_names_in_", None)
        self.n_features_in_ = data.X.shape[1] if data.X.ndim == 2 else 1
        no_scores = np.empty((0, self.n_features_in_))
        self.classes_, _ = self._read_labels(data.distinct_labels(), no_scores)
        if sample_weight is not None:
            total, count = data.sum(count_weights)
            data = data._replace(scale=count / total)
        if self.input == "scores":
            some, _, weight = data.sample()
            self.unit_ = find_unit(some, weight)
        if self.input == "proba":
            self._zero = data.sum(_find_zero, combine=min)
        self._fit_chunks(data)
        return self

    def _fit_chunks(self, data: Any) -> None:
        """Learn by sums over :class:`ScoresInChunks` or :class:`ScoresOnDevice`."""
        raise NotImplementedError

    def _sums_on_device(self) -> bool:
        """Return whether the sums of `_fit_chunks` can be taken on an accelerator."""
        return False

    def _is_summed_on_device(self, X: Any, y: Any) -> bool:
        """Return whether X is fitted where it lies: many finite logits or probabilities there.

        With few samples, what is read on the host to start the search would be all of them.
        """
        if not self._sums_on_device() or self.input == "scores" or is_soft(y):
            return False
        rows = find_accelerated(X)
        if rows is None or rows.shape[1] < 2 or len(rows) < 3 * DEVICE_SAMPLE_SIZE:
            return False
        return bool(np.isfinite(find_range(rows)).all())  # infinite: an option is missing

    def _check_and_fit_on_device(
        self, X: Any, y: Any, sample_weight: Any, groups: NDArray[np.intp] | None
    ) -> Self:
        """Check and fit where X is on an accelerator; warn of what a sample of it shows."""
        rows = validate_rows(self, X, ensure_all_finite=False)
        if self.input == "proba":
            check_values(rows, name="X")
        else:
            _check_size(float(np.abs(find_range(rows)).max()))
        self.classes_, codes = self._read_labels(y, rows)
        with name_argument("X", "y"):
            check_consistent_length(rows, codes)
        weight = average_to_one(check_weights(sample_weight, len(rows)))
        self.unit_ = 1.0
        data = ScoresOnDevice(self, rows, codes, weight)
        scores, some, of_some = data.sample()
        groups = None if groups is None else groups[data.sampled]
        independent = draw_independent_rows(len(scores), groups, of_some)
        if self.input == "logits" and holds_proba(scores):
            self._warn_of_proba()
        self._warn_of_order(scores, some, scores, some, independent)
        self._warn_of_absent(rows, codes, scores, independent)
        if self.input == "proba":
            self._zero = _limit_zero(find_smallest_positive(data.scores))
        self._fit_chunks(data)
        return self

    def _is_readable(self, X: Any, reset: bool) -> bool:
        """Return whether X is an array that may be read as it is.

        The checks of scikit-learn take longer than most maps of a few samples.
        """
        if type(X) is not np.ndarray or X.dtype not in (np.float32, np.float64):
            return False
        if X.ndim not in (1, 2) or not X.size:
            return False
        n_columns = 1 if X.ndim == 1 else X.shape[1]
        if not reset and (hasattr(self, "feature_names_in_") or self.n_features_in_ != n_columns):
            return False
        with np.errstate(over="ignore", invalid="ignore"):
            return bool(np.isfinite(X.sum()))

    def _read_scores(self, X: Any, reset: bool) -> NDArray:
        if self._is_readable(X, reset):
            scores = X.reshape(len(X), -1)
            if reset:
                self.n_features_in_ = scores.shape[1]
                self.__dict__.pop("feature_names_in_", None)
        else:
            scores = self._validate_scores(X, reset)
        if self.input == "proba":
            proba = scores[:, 0] if scores.shape[1] == 1 else scores
            check_values(proba, name="X")
        elif self.input == "logits" and reset:
            largest = max(
                float(scores.max()), -float(scores.min(where=scores > -np.inf, initial=0))
            )
            _check_size(largest)
        return scores

    def _validate_scores(self, X: Any, reset: bool) -> NDArray:
        """Validate as scikit-learn does; a logit of -inf may stand for a missing option."""
        X = as_numeric_features(X)
        with name_argument("X"):
            n_axes = X.ndim if hasattr(X, "ndim") else np.asarray(X).ndim
        # (n_samples,) is one column. If `fit` had several columns, scikit-learn raises an error.
        if n_axes == 1 and (reset or self.n_features_in_ == 1):
            X = np.asarray(X).reshape(-1, 1)
        may_miss = self._takes_missing_options and self.input != "proba" and n_axes == 2
        scores = validate_data(
            self, X, reset=reset, dtype=[np.float64, np.float32], ensure_all_finite=not may_miss
        )
        if may_miss and not np.isfinite(scores).all():
            missing = np.isneginf(scores)
            with name_argument("X"):
                assert_all_finite(np.where(missing, 0, scores), input_name="X")
            if missing.all(axis=1).any():
                row = int(np.argmax(missing.all(axis=1)))
                raise ValueError(
                    f"X must hold a finite logit in every row, got none in row {row}."
                )
        return scores

    def _read_labels(self, y: Any, scores: NDArray) -> tuple[NDArray, Any]:
        """Return the label of every column; and every sample's column, or its soft label."""
        # One column is the score of the second of two classes.
        n_classes = max(2, scores.shape[1])
        if is_soft(y):
            classes = None if self.classes is None else column_or_1d(self.classes)
            if classes is not None:
                what = "one for every column of X"
                check_column_labels(classes, n_classes, what=what, name="classes")
            soft_labels, classes = match_soft_labels(
                as_soft_labels(y, name="y"),
                get_column_names(y),
                classes,
                n_classes,
                names=("y", "X", "classes"),
            )
            return classes, soft_labels
        labels = check_class_labels(y)
        if self.classes is not None:
            classes = column_or_1d(self.classes)
            check_column_labels(
                classes, n_classes, what="one for every column of X", name="classes"
            )
            return classes, encode(labels, classes)
        classes = np.unique(labels)
        check_several_classes(classes)
        # Labels in 0, ..., n_classes - 1 are column numbers, and y need not have all of them.
        if classes.dtype.kind in "iuf" and np.isin(classes, np.arange(n_classes)).all():
            classes = np.arange(n_classes, dtype=classes.dtype)
        if len(classes) != n_classes:
            raise ValueError(
                "classes must name the columns of X unless y has as many classes, got "
                f"{n_classes} classes in X and {len(classes)} classes in y."
            )
        return classes, encode(labels, classes)

    def _as_logits(self, scores: NDArray) -> NDArray:
        """Return one logit per class, up to a constant of the row."""
        if self.input != "proba":
            if self.input == "scores":
                scores = scores / scores.dtype.type(self.unit_)
            if scores.shape[1] > 1:
                return scores
            # softmax((0, z)) = (expit(-z), expit(z)).
            return np.hstack([np.zeros_like(scores), scores])
        if not isinstance(scores, np.ndarray):  # a block on an accelerator
            return scores.clip(min=self._zero).log()
        logits = np.maximum(self._as_proba(scores), scores.dtype.type(self._zero))
        return np.log(logits, out=logits)

    def _as_proba(self, scores: NDArray) -> NDArray:
        """Return one probability per class."""
        if self.input != "proba":
            return softmax(self._as_logits(scores), axis=1)
        return np.hstack([1 - scores, scores]) if scores.shape[1] == 1 else scores


def find_unit(scores: NDArray, weight: NDArray | None) -> float:
    """Return the unit of scores: the median margin of the samples that are not tied.

    A margin is the largest score less the second-largest; of one column, its absolute value.
    """
    if scores.shape[1] == 1:
        scores = np.hstack([np.zeros_like(scores), scores])
    margins = compute_margins(scores)
    # A tie up to the rounding of the scores says nothing about their unit.
    largest = np.abs(np.where(np.isneginf(scores), 0, scores)).max(axis=1)
    clear = margins > FLOAT32_ROUNDING * largest
    if weight is not None:
        clear &= weight > 0
    if not clear.any():
        return 1.0
    weight = None if weight is None else weight[clear]
    return float(compute_quantiles(margins[clear], np.array([0.5]), weight)[0])


def as_proba_of(scores: NDArray, *, logits: bool) -> NDArray:
    """Return the scores of a calibrator as probabilities, (n, K) or (n,)."""
    if scores.ndim == 2 and scores.shape[1] == 1:
        scores = scores[:, 0]
    if not logits:
        return scores
    return expit(scores) if scores.ndim == 1 else softmax(scores, axis=1)


def _check_size(largest: float) -> None:
    """Raise if the largest logit is none."""
    if largest > _LARGEST_LOGIT:
        raise ValueError(
            f"X must hold logits of at most {_LARGEST_LOGIT:g}, got {largest:g}; "
            'input="scores" takes scores of any unit.'
        )


def _find_zero(calibrator: PostHocCalibrator, scores: NDArray, *_: Any) -> float:
    """Return what a probability of 0 counts as, see :func:`_limit_zero`."""
    proba = calibrator._as_proba(scores)
    return _limit_zero(float(proba.min(where=proba > 0, initial=SMALLEST)))


def _limit_zero(smallest: float) -> float:
    """Return what a probability of 0 counts as: `SMALLEST`, or less if others are smaller."""
    return min(max(smallest, SMALLEST_BUT_0), SMALLEST)


def _check_options(scores: NDArray, codes: NDArray[np.intp] | None) -> None:
    """Raise an error if the logit of a label is -inf: the sample does not have this option."""
    if codes is None or scores.shape[1] == 1:
        return
    missing = np.isneginf(scores[np.arange(len(codes)), codes])
    if missing.any():
        raise ValueError(
            "y must name options that exist, got one with a logit of -inf in row "
            f"{int(np.argmax(missing))}."
        )


def compute_chance(logits: NDArray) -> NDArray[np.float64] | float:
    """Return 1 / K or, with logits of -inf, one over the number of finite logits of each row."""
    missing = np.isneginf(logits)
    if not missing.any():
        return 1 / logits.shape[1]
    return 1 / (logits.shape[1] - missing.sum(axis=1))


def mix_with_uniform(proba: NDArray, weight: float, logits: NDArray | None = None) -> NDArray:
    """Return ``(1 - weight) proba + weight / K``, computed in place in the dtype of `proba`."""
    chance = 1 / proba.shape[1] if logits is None else compute_chance(logits)
    exists = True if logits is None or np.isscalar(chance) else np.isfinite(logits)
    proba *= proba.dtype.type(1 - weight)
    shift = np.asarray(weight * chance, dtype=proba.dtype).reshape(-1, 1)
    return np.add(proba, shift, out=proba, where=exists)


def make_linear_formula(
    temperature: float = 1.0,
    *,
    coef: Any = 1.0,
    intercept: Any = 0.0,
    least: float | None = None,
) -> dict[str, Any]:
    """Return the formula of a softmax of linear scores, in the format of `to_json`."""
    return {
        "kind": "linear",
        "temperature": float(temperature),
        "coef": np.asarray(coef).tolist(),
        "intercept": np.asarray(intercept).tolist(),
        "least": least,
    }


def make_mixture_formula(weights: Any, parts: list[dict[str, Any]]) -> dict[str, Any]:
    """Return the formula of a mixture of maps; those of weight 0 are left out."""
    kept = [(float(weight), part) for weight, part in zip(weights, parts) if weight > 0]
    if len(kept) == 1:
        return kept[0][1]
    return {
        "kind": "mixture",
        "weights": [weight for weight, _ in kept],
        "parts": [part for _, part in kept],
    }


def add_uniform_formula(part: dict[str, Any], weight: float) -> dict[str, Any]:
    """Return the formula of `part` mixed with a uniform component of this weight."""
    return make_mixture_formula([1 - weight, weight], [part, {"kind": "uniform"}])


def fit_simplex_weights(
    of_label: NDArray,
    weight: NDArray,
    pseudo_count: NDArray | float = 0.0,
    start: NDArray | None = None,
) -> NDArray[np.float64]:
    """Return the weights w >= 0, sum 1, that maximize ``log(w @ of_label) @ weight``.

    `of_label` (m, n) holds the probabilities that m components give to the label of every sample.
    Every component gets `pseudo_count` further samples that it alone explains (one number, or one
    per component): a Dirichlet prior.

    The search is Newton's method with a line search: each step leads to the best weights >= 0 of a
    quadratic. It maximizes the log-likelihood less n times the sum of the weights, with n the
    total weight of the samples and of the prior: the best weights sum to 1.
    """
    m = len(of_label)
    prior = np.full(m, pseudo_count, dtype=np.float64)
    n = float(weight.sum() + prior.sum())
    weights = np.full(m, 1 / m) if start is None else start
    for _ in range(_MOST_NEWTON_STEPS):
        mixed, positive = weights @ of_label, np.maximum(weights, SMALLEST_BUT_0)
        ratio = of_label / mixed
        slope = ratio @ weight + prior / positive - n
        curvature = ratio * weight @ ratio.T + np.diag(prior / positive**2)
        # The ridge keeps it invertible where components are alike.
        curvature[np.diag_indices(m)] += _RIDGE * np.trace(curvature)
        root = np.linalg.cholesky(curvature)
        best, _ = nnls(root.T, np.linalg.solve(root, curvature @ weights + slope))
        step = best - weights
        promised = float(slope @ step)
        for _ in range(_MOST_HALVINGS):
            latest = weights + step
            change = latest @ of_label / mixed
            # What makes a label nearly impossible is too far for the quadratic.
            if change.min() > _LEAST_CHANGE:
                gain = float(weight @ np.log(change)) - n * float(step.sum())
                gain += float(xlogy(prior, latest / positive).sum())
                if gain >= 1e-4 * float(slope @ step):
                    break
            step /= 2
        weights = latest
        # What is left to gain is of the order of the square.
        if promised <= _LEAST_PROMISE * n:
            break
    return weights / weights.sum()
