"""Squared distances of rows to Gaussians, in chunks and in the dtype of the rows."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray
from sklearn.utils import gen_batches

from ._gaussian_statistics import working_dtype
from ._joint_form import JointForm

_CHUNK_ELEMENTS = 2**21
_MIN_CHUNK_ROWS = 256


class ClassDistances:
    """Class distances minus background distances for one joint form.

    Parameters
    ----------
    form : JointForm
        Coordinates of both distances.
    means : ndarray of shape (n_classes, n_features)
        Class means; a row of NaN is a class without rows, infinitely far from everything.
    mean : ndarray of shape (n_features,)
        Mean of the background.
    """

    def __init__(
        self, form: JointForm, means: NDArray[np.float64], mean: NDArray[np.float64]
    ) -> None:
        self.form = form
        self.mean = mean
        self.means = means

    def _chunks(self, n_samples: int, n_features: int) -> Iterator[slice]:
        width = n_features + 2 * self.form.projection.shape[1] + len(self.means)
        return gen_batches(n_samples, max(_MIN_CHUNK_ROWS, _CHUNK_ELEMENTS // width))

    def to_all_classes(self, X: NDArray) -> Iterator[tuple[slice, NDArray]]:
        """Yield (rows, distances of those rows to every class)."""
        work = working_dtype(X.dtype)
        # With the centre representable in `work`, all constants are exact to float64.
        center = self.mean.astype(work)
        shift = (self.mean - center) @ self.form.projection
        offset = (self.means - center) @ self.form.projection
        own, background = self.form.class_weights, self.form.background
        absent = np.isnan(offset).any(axis=1)
        offset[absent] = 0.0
        constant = (offset**2) @ own - (shift**2) @ background
        constant[absent] = np.inf
        linear = (2.0 * (background * shift - own * offset)).T.astype(work)
        quadratic = (own - background).astype(work)
        projection, constant = self.form.projection.astype(work), constant.astype(work)
        for rows in self._chunks(*X.shape):
            z = (np.asarray(X[rows], dtype=work) - center) @ projection
            distances = z @ linear
            distances += np.einsum("ij,ij,j->i", z, z, quadratic)[:, None]
            distances += constant
            yield rows, distances

    def to_own_class(self, X: NDArray, codes: NDArray[np.intp]) -> NDArray[np.float64]:
        """Return the distance of each row to the class ``codes[i]``."""
        work = working_dtype(X.dtype)
        projection = self.form.projection
        own, background = self.form.class_weights, self.form.background
        anchor = np.where(np.isnan(self.means), self.mean, self.means).astype(work)
        # Rows are centred on (the rounding of) their class mean before the product: a large
        # distance between classes would otherwise cancel after it.
        to_class = (anchor - np.where(np.isnan(self.means), anchor, self.means)) @ projection
        to_background = (anchor - self.mean) @ projection
        linear = (2.0 * (own * to_class - background * to_background)).astype(work)
        constant = (to_class**2) @ own - (to_background**2) @ background
        constant[np.isnan(self.means).any(axis=1)] = np.inf
        quadratic = (own - background).astype(work)
        projection = projection.astype(work)
        difficulty = np.empty(len(X))
        for rows in self._chunks(*X.shape):
            label = codes[rows]
            z = (np.asarray(X[rows], dtype=work) - anchor[label]) @ projection
            difficulty[rows] = np.einsum("ij,ij->i", z, z * quadratic + linear[label])
            difficulty[rows] += constant[label]
        return difficulty
