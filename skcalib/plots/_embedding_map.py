"""A map of the samples in two dimensions, colored by difficulty."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.pipeline import Pipeline

from ..difficulty import score_difficulty
from ..utils.checking._arrays import check_same_length
from ..utils.checking._validation import check_mask, check_numbers
from ._base import MANY_POINTS, BaseDisplay, plain_text
from ._points import draw_points, point_style


@dataclass(repr=False, eq=False)
class EmbeddingMapDisplay(BaseDisplay):
    """Map of the samples: their features in two dimensions, difficulty as color.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. Rings mark suspected
    labels. Two dimensions show only a part of the features: samples that are far apart on the map
    of principal components are far apart in the features, but near ones need not be near.

    Parameters
    ----------
    position : ndarray of shape (n_samples, 2)
        Positions of the samples on the map.
    difficulty : ndarray of shape (n_samples,)
        Difficulty, larger = harder.
    suspected : ndarray of bool of shape (n_samples,), default=None
        Samples with a ring.
    axis_names : tuple of two str, default=None
        Labels of the axes.
    name : str, default=None
        Title of the axes.

    Attributes
    ----------
    scatter_, ax_, figure_ : matplotlib Artist, Axes and Figure
        The points, their axes and the figure.
    rings_ : matplotlib Artist or None
        The rings.

    See Also
    --------
    HardestSamplesDisplay : The hardest samples themselves.
    skcalib.labels.LabelIssueFinder : Finds suspected labels.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.difficulty import RMDScorer
    >>> from skcalib.plots import EmbeddingMapDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = RMDScorer().fit(X, y)
    >>> display = EmbeddingMapDisplay.from_estimator(scorer, X, y)
    >>> display.axis_names
    ('PC 1 (92% of the variance)', 'PC 2 (5% of the variance)')
    """

    position: NDArray[np.float64]
    difficulty: NDArray[np.float64]
    _: KW_ONLY
    suspected: NDArray[np.bool_] | None = None
    axis_names: tuple[str, str] | None = None
    name: str | None = None

    @classmethod
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike | None = None,
        *,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Score samples and map them.

        Parameters
        ----------
        estimator : difficulty scorer or Pipeline that ends in one
            Fitted. For a Pipeline, the map shows the features that its scorer takes.
        X : array-like of shape (n_samples, n_features), or what a Pipeline takes
            Samples.
        y : array-like of shape (n_samples,), default=None
            Labels; None shows the label-free difficulty.
        name : str, default=None
            Title of the axes.
        **kwargs : dict
            Passed to :meth:`from_predictions`.

        Returns
        -------
        display : EmbeddingMapDisplay
            The display, plotted.
        """
        difficulty = score_difficulty(estimator, X, y)
        several = isinstance(estimator, Pipeline) and len(estimator) > 1
        features = estimator[:-1].transform(X) if several else X
        return cls.from_predictions(features, difficulty, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        features: ArrayLike,
        difficulty: ArrayLike,
        *,
        suspected: ArrayLike | None = None,
        projection: Any = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Map samples that have been scored.

        Parameters
        ----------
        features : array-like of shape (n_samples, n_features)
            Features, at least two. Two are drawn as they are.
        difficulty : array-like of shape (n_samples,)
            Difficulty, larger = harder.
        suspected : array-like of bool of shape (n_samples,), default=None
            Samples that get a ring, such as the ``is_issue`` of a
            :class:`~skcalib.labels.LabelIssueFinder`.
        projection : transformer with `fit_transform`, default=None
            Maps the features to two dimensions; None uses principal component analysis.
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : EmbeddingMapDisplay
            The display, plotted.
        """
        points = check_numbers(features, "features", ndim=(2,))
        values = check_numbers(difficulty, "difficulty", ndim=(1,))
        check_same_length(features=points, difficulty=values)
        if suspected is not None:
            suspected = check_mask(suspected, values.shape, "suspected")
        position, axis_names = _project(points, projection)
        return cls(position, values, suspected=suspected, axis_names=axis_names, name=name).plot(
            **kwargs
        )

    def _draw(self, name: str, kwargs: dict[str, Any]) -> None:
        # Not up to the extremes: with the few hardest and easiest samples, others would share one
        # color.
        low, high = np.quantile(self.difficulty, [0.02, 0.98])
        self.scatter_ = draw_points(
            self.ax_, self.position, self.difficulty, label="Difficulty",
            limits=(float(low), float(high)), **kwargs,
        )  # fmt: skip
        names = self.axis_names or ("", "")
        self.ax_.set_xlabel(plain_text(names[0], width=self._characters()))
        self.ax_.set_ylabel(plain_text(names[1], width=self._characters(vertical=True)))
        lines = [plain_text(name, width=self._characters())] if name else []
        self.rings_ = None
        if self.suspected is not None and self.suspected.any():
            x, y = self.position[self.suspected].T
            # The color of the axes' own lines is visible on any background.
            self.rings_ = self.ax_.scatter(
                x, y, s=4 * point_style(len(self.position))["s"] + 10, facecolors="none",
                edgecolors=self.ax_.spines["left"].get_edgecolor(), linewidths=1,
                rasterized=len(x) > MANY_POINTS,
            )  # fmt: skip
            lines.append(f"Rings: {len(x)} suspected labels")
        self.ax_.set_title("\n".join(lines), size="medium")


def _project(
    features: NDArray[Any], projection: Any
) -> tuple[NDArray[np.float64], tuple[str, str]]:
    """Return positions (n_samples, 2) and the names of the axes."""
    if features.shape[1] < 2:
        raise ValueError(f"features must have at least 2 columns, got {features.shape[1]}.")
    if projection is None and features.shape[1] == 2:
        return features, ("Feature 1", "Feature 2")
    if projection is None:
        if len(features) < 2:
            raise ValueError(f"features must have at least 2 rows, got {len(features)}.")
        pca = PCA(2, random_state=0)
        position = pca.fit_transform(features)
        first, second = (
            f"PC {i + 1} ({part:.0%} of the variance)"
            for i, part in enumerate(pca.explained_variance_ratio_)
        )
        return position, (first, second)
    if not hasattr(projection, "fit_transform"):
        raise TypeError(f"projection must have fit_transform, got {projection!r}.")
    position = np.asarray(projection.fit_transform(features))
    if position.shape != (len(features), 2):
        raise ValueError(
            f"projection must return shape ({len(features)}, 2), got {position.shape}."
        )
    kind = type(projection).__name__
    return position, (f"{kind} 1", f"{kind} 2")
