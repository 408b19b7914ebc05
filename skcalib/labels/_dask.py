"""Precomputed probabilities in chunks of a dask array.

With very many samples, the noise model is fitted to a random part of them: to the same part here
as in memory. So there are three passes: count the labels, fetch the drawn rows, and sum the
probabilities of wrong labels over all rows.
"""

from __future__ import annotations

from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import expit

from ..utils._arrays import check_mask, check_weights
from ..utils._backends import aligned, reduce_chunks
from ..utils._labels import check_class_labels, encode, joined_classes
from ..utils._proba import check_proba_matrix
from ._base_models import Precomputed, blocks_of, warn_of_order
from ._checks import log_odds_of
from ._em import Explanation
from ._noise_model import positions_to_fit

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
            classes = joined_classes(self.classes, other.classes, name="y")
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
        self.once = aligned(True, X=X, **given)
        self.lazily = aligned(X=X, **given)

    def labels(self) -> Labels:
        """Return the labels of all chunks."""
        _, y, weight, verified = self.once
        return reduce_chunks(_labels_of, Labels.joined, y, weight, verified)

    def rows(self, labels: Labels) -> tuple[Rows, Rows]:
        """Return the samples to fit the noise model to, and one sample of every class."""
        end = np.cumsum(labels.n_counted)
        drawn = positions_to_fit(int(end[-1]), len(labels.classes))
        start = end - labels.n_counted
        inside = np.split(drawn, np.searchsorted(drawn, end[:-1]))
        chunk, row = labels.example.T
        wanted = [
            (rows - first, row[chunk == number])
            for number, (rows, first) in enumerate(zip(inside, start))
        ]
        found: Any = reduce_chunks(_rows_of, _joined, *self.once, wanted)
        return found[:4], found[4:]

    def sums(self, explanation: Explanation, classes: NDArray, threshold: float) -> NDArray:
        """Return the weight of flips, the number of issues, and per class the wrong weight."""
        of_chunk = partial(_sums_of, explanation, classes, threshold)
        return reduce_chunks(of_chunk, np.add, *self.once)


def judge_of(drawn: Rows, others: Rows) -> Precomputed:
    """Return the judge of the drawn samples; `others` add the classes that these lack."""
    lacking = ~np.isin(others[1], drawn[1])
    X, labels = (np.concatenate([a, b[lacking]]) for a, b in zip(drawn[:2], others))
    judge = Precomputed(X, labels)
    warn_of_order(X, labels)
    judge.proba = judge.proba[: len(drawn[1])]
    return judge


def refuse_in_chunks(estimator: Any, y: Any, groups: Any, votes: Any) -> None:
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


def _labels_of(y: Any, weight: Any, verified: Any) -> Labels:
    if not len(y):  # a mask may have left a chunk without samples
        none = np.zeros((0, 2), dtype=np.intp)
        return Labels(np.empty(0), np.empty(0), none, [0], np.zeros(3))
    labels = check_class_labels(y)
    weight, known = _of_rows(weight, verified, len(labels))
    classes, row, codes = np.unique(labels, return_index=True, return_inverse=True)
    example = np.column_stack([np.zeros_like(row), row])
    sums = np.array([weight.sum(), weight @ weight, weight @ known])
    size = np.bincount(codes, weight)
    return Labels(classes, size, example, [int(np.count_nonzero(weight))], sums)


def _of_rows(
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


def _rows_of(X: Any, y: Any, weight: Any, verified: Any, wanted: tuple[NDArray, NDArray]) -> Rows:
    weight, known = _of_rows(weight, verified, len(X))
    drawn, others = wanted
    return [
        np.asarray(values)[rows]
        for rows in (np.flatnonzero(weight)[drawn], others)
        for values in (X, y, weight, known)
    ]


def _joined(some: Rows, other: Rows) -> Rows:
    return [np.concatenate(pair) for pair in zip(some, other)]


def _sums_of(
    explanation: Explanation,
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
    weight, known = _of_rows(weight, verified, len(X))
    proba, codes = check_proba_matrix(X, name="X"), encode(check_class_labels(y), classes)
    for rows in blocks_of(proba.shape):
        given = proba[rows], codes[rows], classes, known[rows]
        prior, found = explanation.before_hidden(*given)[:2]
        flipped = 1.0 - np.take_along_axis(found, codes[rows, None], axis=1).astype(np.float64)
        explanation.add_hidden(found, prior, known[rows])
        p_correct = expit(log_odds_of(found, codes[rows]))
        sums[0] += weight[rows] @ flipped[:, 0]
        sums[1] += np.count_nonzero(p_correct < threshold)
        sums[2:] += np.bincount(codes[rows], weight[rows] * (1.0 - p_correct), len(classes))
    return sums
