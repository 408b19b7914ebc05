"""What is judged once: rows that are equal, with equal labels; and which samples are near twins.

A copy is no second opinion. A judge that has seen the copy of a sample foretells its label, right
or wrong, so that wrong labels of copies would never be found.
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

from ..utils.checking._groups import copy_codes, group_codes, merged
from ._limits import FEW, N_NEIGHBORS, SOME_SAMPLES, STANDARD_ERRORS


class Distinct(NamedTuple):
    """One row for all that are equal and have the same label."""

    rows: NDArray[np.intp]  # positions of those that are judged
    of_sample: NDArray[np.intp]  # for every sample, its place among these
    groups: NDArray[np.intp] | None  # which of the rows belong together, None if none do
    copies: NDArray[np.intp] | None  # group of equal rows of every sample, None if none is

    def total(self, values: NDArray) -> NDArray[np.float64]:
        """Return the sum of the values of equal samples."""
        return np.bincount(self.of_sample, values).astype(np.float64)

    def any(self, flags: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Return where a flag is set for one of the equal samples."""
        return np.bincount(self.of_sample, flags).astype(bool)


def distinct_of(X: Any, codes: NDArray[np.intp], groups: Any) -> Distinct:
    """Return what of X, labels and groups is judged once, and what is judged apart.

    X is None where every sample is judged.
    """
    n_samples = len(codes)
    given = None if groups is None else group_codes(groups, n_samples)[1]
    copies = None if X is None else copy_codes(X)
    if copies is None:
        every = np.arange(n_samples)
        return Distinct(every, every, given, None)
    pairs = copies * (codes.max() + 1) + codes
    _, rows, of_sample = np.unique(pairs, return_index=True, return_inverse=True)
    of_rows = copies[rows]
    together = of_rows if len(np.unique(of_rows)) < len(rows) else None
    if given is not None:
        together = merged(given, copies)[rows]
    return Distinct(rows, of_sample, together, copies)


class Copied(NamedTuple):
    """Rows that repeat, or nearly, with the same votes."""

    twins: NDArray[np.intp] | None  # which rows are near twins, None if none are
    share: NDArray[np.float64]  # one over the number of copies of a row with its votes


def copied_votes(X: Any, alike: NDArray[np.intp]) -> Copied:
    """Return which rows are copies with their votes, which are no further evidence.

    Rows of which everybody said the same have the same number in `alike`. Where few of the nearest
    rows do, these are near twins, if there are any at all. Where many do, nobody knows which, and
    the row stands for as much as others on average: copying does not depend on the votes.
    """
    every, twins = np.arange(len(alike)), None
    if len(np.unique(alike)) == len(alike):
        return Copied(None, np.ones(len(alike)))
    copies = copy_codes(X)
    rows = np.stack([every if copies is None else copies, alike])
    same = np.unique(rows, axis=1, return_inverse=True)[1].ravel()
    clear = np.zeros(len(alike), dtype=bool)
    for features in _looks(X):
        n_twins = _n_twins(features, alike)
        if not n_twins:
            continue
        search = NearestNeighbors(n_neighbors=FEW + N_NEIGHBORS, algorithm="brute").fit(features)
        nearest = search.kneighbors(return_distance=False)
        agree = alike[nearest] == alike[:, None]
        few = agree.sum(axis=1) <= FEW
        clear |= few
        same = _connected(np.nonzero(agree & few[:, None])[0], nearest[agree & few[:, None]], same)
        agree[:, n_twins:] = False
        left, right = np.nonzero(agree)[0], nearest[agree]
        twins = _connected(left, right, same if twins is None else twins)
    if twins is None:  # equal rows may well be other samples, on which people agree
        return Copied(None, np.ones(len(alike)))
    share = 1.0 / np.bincount(same)[same]
    if clear.any():
        share[~clear & (share == 1.0)] = share[clear].mean()
    return Copied(joined(twins, same), share)


def joined(groups: NDArray[np.intp], others: NDArray[np.intp]) -> NDArray[np.intp]:
    """Return groups in which samples are together that are so in either."""
    _, start, group = np.unique(others, return_index=True, return_inverse=True)
    return _connected(np.arange(len(groups)), start[group], groups)


def with_twins(
    X: Any, codes: NDArray[np.intp], groups: NDArray[np.intp] | None
) -> NDArray[np.intp] | None:
    """Return groups in which near twins, such as augmented pictures, are together; else None.

    A wrong label surprises the neighbors of a sample, all alike. Where its nearest ones have the
    same wrong label and the next ones do not, these are copies. X is looked at as it is and
    standardized: noise in a column that is nearly constant parts copies after scaling.
    """
    for features in _looks(X):
        n_twins = _n_twins(features, codes)
        if n_twins:
            return _linked(features, n_twins, groups)
    return None


def _looks(X: Any) -> Iterator[NDArray]:
    """Yield X as it is and standardized; nothing where it is not of numbers, or has few rows."""
    if getattr(X, "ndim", 0) != 2 or issparse(X) or len(X) <= 2 * (FEW + N_NEIGHBORS):
        return
    X = np.asarray(X)
    if X.dtype.kind not in "iuf" or not np.isfinite(X).all():
        return
    X = X.astype(np.promote_types(X.dtype, np.float32), copy=False)
    yield X
    yield StandardScaler().fit_transform(X)


def _n_twins(X: NDArray, codes: NDArray[np.intp]) -> int:
    """Return how many near twins samples have, 0 where their labels show none."""
    asked = np.random.default_rng(0).permutation(len(X))[:SOME_SAMPLES]
    search = NearestNeighbors(n_neighbors=FEW + N_NEIGHBORS + 2, algorithm="brute").fit(X)
    nearest = search.kneighbors(X[asked], return_distance=False)
    # The sample itself is among them, first or after an equal one.
    own = nearest == asked[:, None]
    own[~own.any(axis=1), -1] = True
    nearest = nearest[~own].reshape(len(asked), -1)
    same = codes[nearest] == codes[asked][:, None]
    surprising = same[:, -N_NEIGHBORS:].sum(axis=1) <= 1
    found, largest = 0, 0.0
    for number in range(1, FEW + 1):
        # Where labels differ from place to place, they agree less and less, without such a step.
        more = same[surprising, number - 1].astype(float) - same[surprising, number]
        sure = more.sum() > STANDARD_ERRORS * np.sqrt(np.square(more).sum())
        if sure and more.mean() > largest:
            found, largest = number, more.mean()
    return found


def _linked(X: NDArray, n_twins: int, groups: NDArray[np.intp] | None) -> NDArray[np.intp]:
    """Return groups of samples that are among the nearest of one another, and of `groups`."""
    nearest = NearestNeighbors(n_neighbors=n_twins, algorithm="brute").fit(X).kneighbors_graph()
    links = nearest.multiply(nearest.T).tocoo()
    return _connected(links.row, links.col, np.arange(len(X)) if groups is None else groups)


def _connected(
    left: NDArray[np.intp], right: NDArray[np.intp], groups: NDArray[np.intp]
) -> NDArray[np.intp]:
    """Return groups of samples that are linked; those of a group are linked to its first one."""
    n_samples = len(groups)
    _, start, group = np.unique(groups, return_index=True, return_inverse=True)
    left = np.concatenate([left, np.arange(n_samples)])
    right = np.concatenate([right, start[group]])
    ones = np.ones(len(left), dtype=np.int8)
    whole = coo_array((ones, (left, right)), shape=(n_samples,) * 2)
    return connected_components(whole, directed=False)[1].astype(np.intp)
