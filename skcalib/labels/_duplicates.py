"""Duplicates: equal rows with equal labels count once, and near-duplicates are found.

A base model fitted to a duplicate of a sample predicts its label, right or wrong. So wrong labels
of duplicates would never be found if one could predict the other. Groups that are given overrule
what is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array, issparse
from scipy.sparse.csgraph import connected_components
from sklearn.neighbors import NearestNeighbors
from sklearn.preprocessing import StandardScaler

from ..utils._labels import encode_duplicates, encode_groups
from ._constants import FEW, N_NEIGHBORS, SOME_SAMPLES, STANDARD_ERRORS


class Distinct(NamedTuple):
    """The distinct samples: one row for all duplicates."""

    rows: NDArray[np.intp]  # positions of those that count
    of_sample: NDArray[np.intp]  # for every sample, its position in `rows`
    groups: NDArray[np.intp] | None  # of every row in `rows`; None without groups
    duplicates: NDArray[np.intp] | None  # of every sample, codes that they share; None without

    def total(self, values: NDArray) -> NDArray[np.float64]:
        """Return the sum of the values of equal samples."""
        return np.bincount(self.of_sample, values).astype(np.float64)

    def any(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return where a flag is set for one of the equal samples."""
        return np.bincount(self.of_sample, flags).astype(bool)


def find_distinct(X: Any, codes: NDArray[np.intp], groups: Any) -> Distinct:
    """Return the distinct samples: all of them with ``X=None``, and with groups."""
    n_samples = len(codes)
    given = None if groups is None else encode_groups(groups, n_samples)[1]
    duplicates = encode_duplicates(X, codes) if X is not None and groups is None else None
    if duplicates is None:
        every = np.arange(n_samples)
        return Distinct(every, every, given, None)
    _, rows = np.unique(duplicates, return_index=True)
    return Distinct(rows, duplicates, None, duplicates)


class VoteDuplicates(NamedTuple):
    """Rows that are equal, or near-duplicates, and have the same votes."""

    group_ids: NDArray[np.intp] | None  # of near-duplicates; None without any
    weight: NDArray[np.float64]  # of a row: one over the number of its duplicates


def find_vote_duplicates(X: Any, alike: NDArray[np.intp]) -> VoteDuplicates:
    """Return which rows are duplicates that have the same votes: their votes count once.

    Rows on which all annotators voted the same have the same number in `alike`. If any
    near-duplicates exist, those of a row are the nearest rows with its number, where few of the
    nearest have it. Where many have it, its duplicates are not known, and it gets the average
    weight of rows whose duplicates are: whether a row is duplicated does not depend on the votes.
    """
    every, group_ids = np.arange(len(alike)), None
    if len(np.unique(alike)) == len(alike):
        return VoteDuplicates(None, np.ones(len(alike)))
    equal = encode_duplicates(X)
    rows = np.stack([every if equal is None else equal, alike])
    same = np.unique(rows, axis=1, return_inverse=True)[1].ravel()
    is_known = np.zeros(len(alike), dtype=bool)
    for features in _iter_scalings(X):
        n_duplicates = _count_near_duplicates(features, alike)
        if not n_duplicates:
            continue
        search = NearestNeighbors(n_neighbors=FEW + N_NEIGHBORS, algorithm="brute").fit(features)
        nearest = search.kneighbors(return_distance=False)
        agree = alike[nearest] == alike[:, None]
        few = agree.sum(axis=1) <= FEW
        is_known |= few
        same = _connect(np.nonzero(agree & few[:, None])[0], nearest[agree & few[:, None]], same)
        agree[:, n_duplicates:] = False
        left, right = np.nonzero(agree)[0], nearest[agree]
        group_ids = _connect(left, right, same if group_ids is None else group_ids)
    if group_ids is None:  # equal rows may be different samples on which people agree
        return VoteDuplicates(None, np.ones(len(alike)))
    weight = 1.0 / np.bincount(same)[same]
    if is_known.any():
        weight[~is_known & (weight == 1.0)] = weight[is_known].mean()
    return VoteDuplicates(join_groups(group_ids, same), weight)


def join_groups(groups: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return groups that keep together what either of the two keeps together."""
    _, start, group = np.unique(others, return_index=True, return_inverse=True)
    return _connect(np.arange(len(groups)), start[group], groups)


def find_near_duplicates(
    X: Any, codes: NDArray[np.intp], groups: NDArray[np.intp] | None
) -> NDArray[np.intp] | None:
    """Return groups that keep near-duplicates, such as augmented pictures, together; else None.

    A wrong label differs from the labels of all neighbors. If the very nearest neighbors have the
    same label and the next ones do not, they are duplicates. They are searched for in X as it is,
    and in standardized X: after scaling, the noise of a nearly constant column can separate them.
    """
    for features in _iter_scalings(X):
        n_duplicates = _count_near_duplicates(features, codes)
        if n_duplicates:
            return _link_near_duplicates(features, n_duplicates, groups)
    return None


def _iter_scalings(X: Any) -> Iterator[NDArray]:
    """Yield X as it is and standardized; nothing if X has no numbers, or few rows."""
    if getattr(X, "ndim", 0) != 2 or issparse(X) or len(X) <= 2 * (FEW + N_NEIGHBORS):
        return
    X = np.asarray(X)
    if X.dtype.kind not in "iuf" or not np.isfinite(X).all():
        return
    X = X.astype(np.promote_types(X.dtype, np.float32), copy=False)
    yield X
    yield StandardScaler().set_output(transform="default").fit_transform(X)


def _count_near_duplicates(X: NDArray, codes: NDArray[np.intp]) -> int:
    """Return how many near-duplicates a sample has; 0 if the labels show none."""
    asked = np.random.default_rng(0).permutation(len(X))[:SOME_SAMPLES]
    search = NearestNeighbors(n_neighbors=FEW + N_NEIGHBORS + 2, algorithm="brute").fit(X)
    nearest = search.kneighbors(X[asked], return_distance=False)
    # Remove the sample itself, which is first or follows an equal one.
    own = nearest == asked[:, None]
    own[~own.any(axis=1), -1] = True
    nearest = nearest[~own].reshape(len(asked), -1)
    same = codes[nearest] == codes[asked][:, None]
    unexpected = same[:, -N_NEIGHBORS:].sum(axis=1) <= 1
    found, largest = 0, 0.0
    for number in range(1, FEW + 1):
        # Near-duplicates make agreement drop in one step after the last one. Labels that merely
        # vary over space agree less and less, without a step.
        drop = same[unexpected, number - 1].astype(float) - same[unexpected, number]
        sure = drop.sum() > STANDARD_ERRORS * np.sqrt(np.square(drop).sum())
        if sure and drop.mean() > largest:
            found, largest = number, drop.mean()
    return found


def _link_near_duplicates(
    X: NDArray, n_duplicates: int, groups: NDArray[np.intp] | None
) -> NDArray[np.intp]:
    """Return `groups`, joined where two samples are among each other's nearest."""
    nearest = (
        NearestNeighbors(n_neighbors=n_duplicates, algorithm="brute").fit(X).kneighbors_graph()
    )
    links = nearest.multiply(nearest.T).tocoo()
    return _connect(links.row, links.col, np.arange(len(X)) if groups is None else groups)


def _connect(
    left: NDArray[np.intp], right: NDArray[np.intp], groups: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return groups that also join linked samples, ``left[i]`` with ``right[i]``."""
    n_samples = len(groups)
    _, start, group = np.unique(groups, return_index=True, return_inverse=True)
    # Every sample is also linked to the first one of its group.
    left = np.concatenate([left, np.arange(n_samples)])
    right = np.concatenate([right, start[group]])
    ones = np.ones(len(left), dtype=np.int8)
    links = coo_array((ones, (left, right)), shape=(n_samples,) * 2)
    return connected_components(links, directed=False)[1].astype(np.intp)
