"""Displays of difficulty: error rate by difficulty, and a map of the samples."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import TYPE_CHECKING, Any, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.decomposition import PCA
from sklearn.metrics import roc_auc_score
from sklearn.pipeline import Pipeline

from ..difficulty import error_rate_by_difficulty, score_difficulty
from ..utils._arrays import check_mask, check_numbers, check_same_length, check_weights
from ..utils._labels import as_labels
from ..utils._numeric import compute_binomial_interval, compute_quantiles
from ..utils._output import rename_argument
from ._base import FEW, MANY_POINTS, BaseDisplay, choose_point_style, draw_points, escape_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes


# Error rate by difficulty.

N_CELLS = 30
HISTOGRAM_LABEL = "histogram of the difficulty"


class HistogramBins(NamedTuple):
    """Histogram of the difficulty: edges (n_bins + 1,) and counts (n_bins,)."""

    edges: NDArray[np.float64]
    right: NDArray[np.float64]
    wrong: NDArray[np.float64]


@dataclass(repr=False, eq=False)
class DifficultyDisplay(BaseDisplay):
    """Error rate of a classifier by difficulty, with counts of right and wrong predictions.

    Use :meth:`from_estimator` or :meth:`from_predictions` to create one. Where the curve rises,
    the difficulty predicts where the classifier errs. Groups whose middle samples are equally
    difficult, as with a depth in layers, are merged. Groups of fewer than ten samples have empty
    dots and no line.

    Parameters
    ----------
    error_rate : ndarray of shape (n_groups,)
        Error rate of each group, from the easiest to the hardest.
    band : tuple of two ndarrays of shape (n_groups,), default=None
        Lower and upper end of an interval of `error_rate`.
    difficulty : ndarray of shape (n_groups,), default=None
        Middle difficulty of each group.
    bins : HistogramBins, default=None
        Histogram of the difficulty: named tuple of ``edges`` and of the counts ``right`` and
        ``wrong``.
    area : float, default=None
        AUROC of the difficulty for errors, shown in the title.
    fraction : ndarray of shape (n_groups,), default=None
        Fraction of the samples in each group, in (0, 1]. None stands for groups of equal size.
    name : str, default=None
        Name in the title or, of several, in the legend.

    Attributes
    ----------
    line_, ax_, figure_ : matplotlib Artist, Axes and Figure
        The curve, its axes and the figure.
    histogram_ax_ : matplotlib Axes or None
        Axes with the histogram, below.

    See Also
    --------
    skcalib.difficulty.error_rate_by_difficulty : The numbers.
    HardestSamplesDisplay : The hardest samples themselves.
    RiskCoverageDisplay : Error rate by confidence.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.naive_bayes import GaussianNB
    >>> from skcalib.difficulty import RelativeMahalanobisScorer
    >>> from skcalib.plots import DifficultyDisplay
    >>> X, y = load_iris(return_X_y=True)
    >>> scorer = RelativeMahalanobisScorer().fit(X, y)
    >>> classifier = GaussianNB().fit(X, y)
    >>> display = DifficultyDisplay.from_estimator(
    ...     classifier, X, y, scorer=scorer, n_groups=5
    ... )
    >>> display.error_rate.round(2)
    array([0.  , 0.  , 0.  , 0.03, 0.17])
    """

    error_rate: NDArray[np.float64]
    _: KW_ONLY
    band: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None
    difficulty: NDArray[np.float64] | None = None
    bins: HistogramBins | None = None
    area: float | None = None
    fraction: NDArray[np.float64] | None = None
    name: str | None = None

    @classmethod
    @rename_argument("y_true", "y")
    def from_estimator(
        cls,
        estimator: Any,
        X: Any,
        y: ArrayLike,
        *,
        scorer: Any,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Predict and score samples, and plot the error rate.

        Parameters
        ----------
        estimator : object
            Fitted classifier.
        X : array-like of shape (n_samples, n_features)
            Input of the classifier and of the scorer.
        y : array-like of shape (n_samples,)
            True labels.
        scorer : difficulty scorer or Pipeline that ends in one
            Fitted, on other samples or on the same.
        name : str, default=None
            Name in the title, by default that of the class of the scorer.
        **kwargs : dict
            Passed to :meth:`from_predictions`.

        Returns
        -------
        display : DifficultyDisplay
            The display, plotted.
        """
        difficulty = score_difficulty(scorer, X, y)
        name = type(scorer).__name__ if name is None else name
        return cls.from_predictions(y, estimator.predict(X), difficulty, name=name, **kwargs)

    @classmethod
    def from_predictions(
        cls,
        y_true: ArrayLike,
        y_pred: ArrayLike,
        difficulty: ArrayLike,
        *,
        n_groups: int = 10,
        confidence_level: float | None = 0.95,
        sample_weight: ArrayLike | None = None,
        name: str | None = None,
        **kwargs: Any,
    ) -> Self:
        """Plot the error rate of given predictions.

        Parameters
        ----------
        y_true : array-like of shape (n_samples,)
            True labels.
        y_pred : array-like of shape (n_samples,)
            Predicted labels.
        difficulty : array-like of shape (n_samples,)
            Difficulty, larger = harder.
        n_groups : int, default=10
            Number of groups of equal size; groups of equal difficulty are merged.
        confidence_level : float or None, default=0.95
            Level in (0, 1) of the bars, exact binomial intervals of the error rates, with weights
            counted as numbers of samples. None draws no bars.
        sample_weight : array-like of shape (n_samples,), default=None
            Weights of the samples.
        name : str, default=None
            Name of the display, which its title or legend shows.
        **kwargs : dict
            Options of :meth:`plot`.

        Returns
        -------
        display : DifficultyDisplay
            The display, plotted.
        """
        rate = error_rate_by_difficulty(
            y_true, y_pred, difficulty, n_groups=n_groups, sample_weight=sample_weight
        )
        wrong = as_labels(y_true, name="y_true") != as_labels(y_pred, name="y_pred")
        values = np.asarray(difficulty, dtype=np.float64)
        given = check_weights(sample_weight, len(values))
        weight = np.ones(len(values)) if given is None else given
        # The AUROC needs both errors and correct predictions.
        both = 0 < rate.mean() < 1
        middles = compute_quantiles(values, (np.arange(n_groups) + 0.5) / n_groups, weight)
        middle, group = np.unique(middles, return_inverse=True)
        n_joined = np.bincount(group)
        rate, fraction = np.bincount(group, rate) / n_joined, n_joined / n_groups
        band = None
        if confidence_level is not None:
            band = compute_binomial_interval(rate, weight.sum() * fraction, confidence_level)
        return cls(
            rate,
            band=band,
            difficulty=middle,
            fraction=fraction,
            bins=_make_histogram(values, weight, wrong),
            area=float(roc_auc_score(wrong, values, sample_weight=weight)) if both else None,
            name=name,
        ).plot(**kwargs)

    def plot(
        self,
        *,
        ax: Axes | None = None,
        name: str | None = None,
        histogram: bool = True,
        **kwargs: Any,
    ) -> Self:
        """Draw the curve, and how many samples are right and wrong; return the display.

        Parameters
        ----------
        ax : matplotlib Axes, default=None
            Axes to draw on. None makes new ones.
        name : str, default=None
            Name to show. None takes the name of the display.
        histogram : bool, default=True
            Whether to draw the histogram below the curve, over the difficulty. False draws only
            the curve, over the percentile of the difficulty, to compare measures in different
            units. A second display on the same axes adds only its curve.
        **kwargs : dict
            Passed to :meth:`matplotlib.axes.Axes.plot` for the curve.

        Returns
        -------
        display : DifficultyDisplay
            Itself, with ``ax_`` and ``figure_``.
        """
        label = self._open_axes(ax, name)
        n_groups = len(self.error_rate)
        fraction = np.full(n_groups, 1 / n_groups) if self.fraction is None else self.fraction
        x = 100 * (np.cumsum(fraction) - fraction / 2)
        xlabel, limits = "Difficulty percentile (easy to hard)", (0.0, 100.0)
        if histogram and self.bins is not None and self.difficulty is not None:
            x, xlabel, limits = self.difficulty, "Difficulty", tuple(self.bins.edges[[0, -1]])
        else:
            histogram = False
        # Rates weighted by the sizes of their groups give the rate of all samples.
        self._draw_reference(limits, [float(fraction @ self.error_rate)] * 2, "All samples")
        style: dict[str, Any] = {}
        n_samples = np.inf if self.bins is None else np.sum(self.bins.right + self.bins.wrong)
        if n_samples * fraction.min() < FEW * (1 - 1e-9):
            style = {"linestyle": "", "markerfacecolor": "none"}
        self.line_ = self._draw_curve(x, self.error_rate, label, kwargs, **style)
        if self.band is not None:
            self._draw_bars(x, self.error_rate, *self.band, self.line_)
        self.histogram_ax_ = self._draw_histogram() if histogram else None
        (self.histogram_ax_ or self.ax_).set_xlabel(xlabel)
        self.ax_.set_ylabel("Error rate")
        if len(self._find_curves()) > 1:  # the axes hold the curves of all their displays
            low, high = self.ax_.get_xlim()
            limits = min(low, limits[0]), max(high, limits[1])
        self.ax_.set_xlim(limits)
        self.ax_.set_ylim(bottom=0)
        self._explain()
        return self

    def _measure(self) -> tuple[str, str]:
        return ("", "") if self.area is None else ("AUROC for errors", f"{self.area:.3f}")

    def _draw_histogram(self) -> Axes:
        """Draw the counts below the curve, in grays: colors distinguish displays."""
        below, new = self._open_below(HISTOGRAM_LABEL)
        if new:
            edges, right, wrong = self.bins  # type: ignore[misc]
            below.stairs(right + wrong, edges, fill=True, color="silver", label="right")
            below.stairs(wrong, edges, fill=True, color="dimgray", label="wrong")
            below.legend(fontsize="x-small", ncols=2).set_in_layout(False)
        return below


def _make_histogram(
    values: NDArray[np.float64], weight: NDArray[np.float64], wrong: NDArray[np.bool_]
) -> HistogramBins:
    """Return a histogram whose outer bins also count the 0.5 % of samples beyond each end."""
    low, high = compute_quantiles(values, np.array([0.005, 0.995]), weight)
    if low == high:
        low, high = low - 0.5, high + 0.5
    edges = np.linspace(low, high, N_CELLS + 1)
    inside = np.clip(values, low, high)
    right = np.histogram(inside, edges, weights=weight * ~wrong)[0]
    return HistogramBins(edges, right, np.histogram(inside, edges, weights=weight * wrong)[0])


# A map of the samples in two dimensions, colored by difficulty.


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
        self.ax_.set_xlabel(escape_text(names[0], width=self._count_characters()))
        self.ax_.set_ylabel(escape_text(names[1], width=self._count_characters(vertical=True)))
        lines = [escape_text(name, width=self._count_characters())] if name else []
        self.rings_ = None
        if self.suspected is not None and self.suspected.any():
            x, y = self.position[self.suspected].T
            # The color of the axes' own lines is visible on any background.
            self.rings_ = self.ax_.scatter(
                x, y, s=4 * choose_point_style(len(self.position))["s"] + 10, facecolors="none",
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
