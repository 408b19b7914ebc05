"""Precomputed probabilities in chunks of a dask array.

With very many samples, the noise model is fitted to a random part of them: to the same part here
as in memory. So there are three passes: count the labels, fetch the drawn rows, and sum the
probabilities of wrong labels over all rows.
"""

from __future__ import annotations

from copy import copy
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit
from sklearn.utils.validation import check_is_fitted

from ..utils._arrays import check_mask, check_weights, warn_of_total
from ..utils._backends import align_chunks, map_chunks, reduce_chunks
from ..utils._compat import print_elapsed
from ..utils._labels import check_class_labels, check_several_classes, encode, merge_classes
from ..utils._proba import check_proba_matrix
from ._base_models import Precomputed, iter_blocks, warn_of_order
from ._checks import label_log_odds
from ._em import EMState, diagnose, run_em
from ._noise_model import FittedNoiseModel, choose_positions_to_fit, compute_rate_interval

# Arrays with one entry per sample: probabilities, labels, weights, verified.
Rows = list[NDArray[Any]]


class Labels(NamedTuple):
    """What one pass over labels and weights finds."""

    classes: NDArray[Any]
    size: NDArray[Any]  # total weight of every class
    example: NDArray[np.intp]  # (n_classes, 2) chunk and row of one sample of every class
    n_counted: list[int]  # samples of positive weight, per chunk
    sums: NDArray[np.float64]  # of weights, of squared weights, of weights of verified labels

    def joined(self, other: Labels) -> Labels:
        """Return the labels of these chunks and the chunks after them."""
        if not len(self.classes) or not len(other.classes):
            classes = other.classes if len(other.classes) else self.classes
        else:
            classes = merge_classes(self.classes, other.classes, name="y")
        size, example = np.zeros(len(classes)), np.zeros((len(classes), 2), dtype=np.intp)
        for part, shift in ((other, len(self.n_counted)), (self, 0)):
            if len(part.classes):
                columns = encode(part.classes, classes)
                size[columns] += part.size
                example[columns] = part.example + np.array([shift, 0])
        n_counted = self.n_counted + other.n_counted
        return Labels(classes, size, example, n_counted, self.sums + other.sums)


class LabelsInChunks:
    """Probabilities, labels, weights and verified labels, in chunks of the same samples."""

    def __init__(self, X: Any, y: Any, sample_weight: Any, verified: Any) -> None:
        if X.ndim != 2:
            raise ValueError(f"X must have shape (n_samples, n_classes), got shape {X.shape}.")
        given = {"y": y, "sample_weight": sample_weight, "verified": verified}
        self.once = align_chunks(True, X=X, **given)
        self.lazily = align_chunks(X=X, **given)

    def labels(self) -> Labels:
        """Return the labels of all chunks."""
        _, y, weight, verified = self.once
        return reduce_chunks(_check_labels, Labels.joined, y, weight, verified)

    def rows(self, labels: Labels) -> tuple[Rows, Rows]:
        """Return the samples to fit the noise model to, and one sample of every class."""
        end = np.cumsum(labels.n_counted)
        drawn = choose_positions_to_fit(int(end[-1]), len(labels.classes))
        start = end - labels.n_counted
        inside = np.split(drawn, np.searchsorted(drawn, end[:-1]))
        chunk, row = labels.example.T
        wanted = [
            (rows - first, row[chunk == number])
            for number, (rows, first) in enumerate(zip(inside, start))
        ]
        found: Any = reduce_chunks(_select_rows, _join, *self.once, wanted)
        return found[:4], found[4:]

    def sums(self, model: FittedNoiseModel, classes: NDArray, threshold: float) -> NDArray:
        """Return the informative wrong weight, the number of issues, wrong weight per class."""
        of_chunk = partial(_compute_sums, model, classes, threshold)
        return reduce_chunks(of_chunk, np.add, *self.once)


def make_base_model(drawn: Rows, others: Rows) -> Precomputed:
    """Return the base model of the drawn samples; `others` add the classes that these lack."""
    lacking = ~np.isin(others[1], drawn[1])
    X, labels = (np.concatenate([a, b[lacking]]) for a, b in zip(drawn[:2], others))
    base_model = Precomputed(X, labels)
    warn_of_order(X, labels)
    base_model.proba = base_model.proba[: len(drawn[1])]
    return base_model


def check_supported_in_chunks(estimator: Any, y: Any, groups: Any, votes: Any) -> None:
    """Raise an error for what chunks do not support; it says what to do instead."""
    if not isinstance(estimator, str):
        raise TypeError(
            "X must be in memory here, got a collection of dask: in chunks, the finder takes "
            "probabilities, LabelIssueFinder('precomputed').fit(proba, y). To use features, take "
            "a sample, such as X[::100].compute(), and fit the finder to it; its "
            "score_labels(X, y) then takes all chunks."
        )
    if y is None or votes is not None:
        raise TypeError(
            "y must be given and votes must be None if X is a collection of dask; to use votes, "
            "take a sample, such as X[::100].compute() and the same rows of votes."
        )
    if groups is not None:
        raise ValueError("groups must be None for precomputed probabilities, got groups.")


def _check_labels(y: Any, weight: Any, verified: Any) -> Labels:
    if not len(y):  # a mask may have left a chunk without samples
        none = np.zeros((0, 2), dtype=np.intp)
        return Labels(np.empty(0), np.empty(0), none, [0], np.zeros(3))
    labels = check_class_labels(y)
    weight, known = _take_rows(weight, verified, len(labels))
    classes, row, codes = np.unique(labels, return_index=True, return_inverse=True)
    example = np.column_stack([np.zeros_like(row), row])
    sums = np.array([weight.sum(), weight @ weight, weight @ known])
    size = np.bincount(codes, weight)
    return Labels(classes, size, example, [int(np.count_nonzero(weight))], sums)


def _take_rows(
    weight: Any, verified: Any, n_samples: int
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return weights and verified labels of a chunk, whose weights may all be 0."""
    given = None if weight is None else np.asarray(weight)
    checked = check_weights(given, n_samples) if given is not None and given.any() else given
    none = np.zeros(n_samples, dtype=bool)
    return (
        np.ones(n_samples) if checked is None else checked.astype(np.float64),
        none if verified is None else check_mask(verified, none.shape, "verified"),
    )


def _select_rows(
    X: Any, y: Any, weight: Any, verified: Any, wanted: tuple[NDArray, NDArray]
) -> Rows:
    weight, known = _take_rows(weight, verified, len(X))
    drawn, others = wanted
    return [
        np.asarray(values)[rows]
        for rows in (np.flatnonzero(weight)[drawn], others)
        for values in (X, y, weight, known)
    ]


def _join(some: Rows, other: Rows) -> Rows:
    return [np.concatenate(pair) for pair in zip(some, other)]


def _compute_sums(
    model: FittedNoiseModel,
    classes: NDArray,
    threshold: float,
    X: Any,
    y: Any,
    weight: Any,
    verified: Any,
) -> NDArray[np.float64]:
    sums = np.zeros(2 + len(classes))
    if not len(X):
        return sums
    weight, known = _take_rows(weight, verified, len(X))
    proba, codes = check_proba_matrix(X, name="X"), encode(check_class_labels(y), classes)
    for rows in iter_blocks(proba.shape):
        given = proba[rows], codes[rows], classes, known[rows]
        prior, found = model.score_informative(*given)[:2]
        wrong = 1.0 - np.take_along_axis(found, codes[rows, None], axis=1).astype(np.float64)
        model.add_noninformative(found, prior, known[rows])
        p_correct = expit(label_log_odds(found, codes[rows]))
        sums[0] += weight[rows] @ wrong[:, 0]
        sums[1] += np.count_nonzero(p_correct < threshold)
        sums[2:] += np.bincount(codes[rows], weight[rows] * (1.0 - p_correct), len(classes))
    return sums


class ChunksMixin:
    """The methods of the finder for probabilities in chunks of a dask array."""

    issues_: Any
    label_proba_: Any
    _model: Any

    if TYPE_CHECKING:  # attributes of the finder

        def __getattr__(self, name: str) -> Any: ...

    def _fit_chunks(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        verified: Any = None,
        groups: Any = None,
        votes: Any = None,
    ) -> Self:
        """Fit to precomputed probabilities in chunks, by the same search as in memory."""
        check_supported_in_chunks(self.estimator, y, groups, votes)
        chunks = LabelsInChunks(X, y, sample_weight, verified)
        step = partial(print_elapsed, type(self).__name__, self.verbose)
        with step("labels of all chunks"):
            found = chunks.labels()
        if not found.sums[0]:
            raise ValueError("sample_weight must not be zero everywhere.")
        check_several_classes(found.classes[found.size > 0])
        warn_of_total(float(found.sums[0]), sum(found.n_counted))
        self.classes_, self.n_duplicates_ = found.classes, 0
        with step("samples to fit the noise model to"):
            drawn, others = chunks.rows(found)
        _, labels, weight, known = drawn
        scale = found.sums[0] / found.sums[1]  # as effective_weights
        counted = encode(labels, found.classes), found.classes, scale * weight, known
        models: dict[str, Any] = {str(self.estimator): make_base_model(drawn, others)}
        mixed = self.noise == "mixed"
        state = run_em(EMState(*counted, models, mixed, is_fitted=False, step=step), 0)
        with step("probabilities of the labels"):
            self._show_chunks(state, chunks, found)
        self._show_estimator(None)
        return self

    def _show_chunks(self, state: EMState, chunks: LabelsInChunks, found: Labels) -> None:
        """Set the attributes of a fit in chunks: rates now, rows of tables lazily."""
        total, _, verified = found.sums
        fitted: dict[str, Any] = state.base_models
        models = {name: model.without_samples() for name, model in fitted.items()}
        self._model = replace(state.model, base_models=models)
        informative, n_issues, *wrong = chunks.sums(self._model, self.classes_, self.threshold)
        self._set_rates(found.size, np.array(wrong))
        self.noise_rate_ = float(np.sum(wrong) / total)
        self._forget_earlier("_weight")
        unverified = 1.0 - float(verified / total)
        ends = compute_rate_interval(state.likelihood, state.model)
        interval = self._compute_interval(state, ends, float(informative / total), unverified)
        self._set_model(state)
        self._set_unchecked(np.empty(0), interval, diagnose(state, int(n_issues)))
        X, y, _, known = chunks.lazily
        proba: Any = np.float32 if X.dtype in (np.float16, np.float32) else np.float64
        of_issues, of_proba = self._table_dtype(), np.dtype(proba)
        sent = self._to_send()
        self.issues_ = map_chunks(
            _make_table_of_chunk, (sent, of_issues), X, y, known, dtype=of_issues
        )
        n_classes = len(self.classes_)
        self.label_proba_ = map_chunks(
            _make_table_of_chunk,
            (sent, of_proba),
            X,
            y,
            known,
            dtype=of_proba,
            n_columns=n_classes,
        )

    def _score_chunks(self, X: Any, y: Any) -> Any:
        """Score labels of new samples in chunks."""
        check_is_fitted(self)
        X, y = align_chunks(X=X, y=y)
        dtype = self._table_dtype()
        return map_chunks(score_chunk, (self._to_send(), dtype), X, y, dtype=dtype)

    def _to_send(self) -> Self:
        """Return a copy that can score labels, without the arrays of single samples."""
        sent = copy(self)
        for name in ("issues_", "label_proba_", "_weight", "_of_model", "_voted"):
            sent.__dict__.pop(name, None)
        return sent

    def _table_dtype(self) -> np.dtype:
        """Return the dtype of `issues_` in chunks: texts have the length of the longest class."""
        n_classes = len(self.classes_)
        return self._table(self.classes_, np.eye(n_classes), *np.zeros((4, n_classes))).dtype

    def _check_in_memory(self, method: str) -> None:
        check_is_fitted(self)
        if not hasattr(self, "_weight"):
            raise TypeError(
                f"{method} needs a finder that was fitted in memory, got one of a collection of "
                "dask: fit another to a sample, X[::100].compute() and y[::100].compute(). After "
                "its checks, its score_labels(X, y) takes all chunks."
            )


def score_chunk(state: tuple[Any, Any], X: NDArray, y: NDArray) -> NDArray[Any]:
    finder, dtype = state
    return finder.score_labels(X, y).astype(dtype)  # texts of one length in all chunks


def _make_table_of_chunk(
    state: tuple[Any, np.dtype], X: Any, y: Any, verified: Any = None
) -> NDArray[Any]:
    """Return the rows of `issues_` of a chunk or, if the dtype has no names, of `label_proba_`."""
    finder, dtype = state
    proba, labels, classes = (
        check_proba_matrix(X, name="X"),
        check_class_labels(y),
        finder.classes_,
    )
    codes, is_table = encode(labels, classes), dtype.names is not None
    model: FittedNoiseModel = finder._model
    result = np.empty(codes.shape if is_table else (len(codes), len(classes)), dtype=dtype)
    for rows in iter_blocks(proba.shape):
        known = None if verified is None else np.asarray(verified[rows])
        found, *shown = model.score(proba[rows], codes[rows], classes, known)
        p_correct = expit(label_log_odds(found, codes[rows]))
        found[np.arange(len(found)), codes[rows]] = p_correct
        result[rows] = finder._table(labels[rows], found, p_correct, *shown) if is_table else found
    return result
