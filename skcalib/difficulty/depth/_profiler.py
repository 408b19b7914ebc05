"""The example-difficulty study: many networks, random splits, one line a sample."""

from __future__ import annotations

from itertools import islice
from math import ceil
from numbers import Integral, Real
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

import joblib
import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator
from sklearn.frozen import FrozenEstimator
from sklearn.utils import check_random_state

from ...utils._private import HasMethods, Interval, _fit_context
from ...utils._validation import check_weights
from ..records import (
    consensus_class,
    consensus_consistency,
    consistency_score,
    difficulty_quadrant,
    prediction_entropy,
)
from ._networks import check_network, check_samples, is_torch_module, last_step
from ._prediction_depth import PredictionDepthScorer
from ._repeats import plan_repeats, recall_or_run


class DifficultyProfiler(BaseEstimator):
    """Profile of every sample by an ensemble of networks trained on random splits.

    Every repeat trains a network on a random part of the rows. For each row, what the networks
    that trained on it say is set against what those say that did not.

    Parameters
    ----------
    estimator : MLPClassifier, skorch net, Pipeline or PredictionDepthScorer
        The network to train; in a :class:`PredictionDepthScorer`, together with the probes to
        measure its depth with. Every repeat sets all its ``random_state`` parameters.
    n_repeats : int, default=25
        Networks.
    test_size : float or int, default=0.1
        Share, or number, of rows that a repeat holds out. All rows are held out equally often,
        give or take one, and at least once: ``n_repeats * test_size`` must not be below 1.
    n_jobs : int, default=None
        Repeats run at the same time, through the joblib backend that is active.
    random_state : int, RandomState instance or None, default=None
        Draws the splits and the seeds of the networks.
    threshold : float, default=None
        Depths above it are high in `difficulty_type`; None as in :func:`difficulty_quadrant`.
    folder : str or path, default=None
        Where finished repeats are kept. A study that is fitted again, after an interruption or
        with more repeats, reads them instead of training. Needs an integer `random_state`.
    verbose : int, default=0
        Progress, as in :class:`joblib.Parallel`: 10 and more reports every repeat.

    Attributes
    ----------
    profile_ : structured ndarray of shape (n_samples,)
        One line a sample; ``pandas.DataFrame(profile_)`` makes a table of it. Its columns:

        - ``depth_trained``, ``depth_held_out``: mean prediction depth in networks that trained on
          the row and that did not; larger = harder; NaN where none has a depth.
        - ``iteration_learned_trained``, ``iteration_learned_held_out``: mean epoch from which on
          the prediction is the final one; larger = harder; NaN where epochs cannot be observed,
          that is, with L-BFGS or early stopping of an ``MLPClassifier``, or callbacks disabled.
        - ``consensus_class``: majority vote of the networks that held the row out.
        - ``consistency``, ``consensus_consistency``: share of those networks that are right, and
          that vote for the consensus class; larger = easier.
        - ``prediction_entropy``: entropy of those votes in nats; larger = harder.
        - ``n_held_out``: number of those networks.
        - ``difficulty_type``: "easy", "looks_like_other_class", "ambiguous_without_label",
          "ambiguous", or "undefined" where a depth is NaN.
    predictions_ : ndarray of shape (n_repeats, n_samples)
        Labels predicted by every network.
    depth_ : ndarray of shape (n_repeats, n_samples)
        Prediction depths; NaN where the last probe disagrees with the network.
    iteration_learned_ : ndarray of shape (n_repeats, n_samples)
        Epochs from which on the prediction is the final one.
    held_out_ : ndarray of bool of shape (n_repeats, n_samples)
        True where the network did not train on the row: the ``mask`` of
        :func:`consistency_score` and its like.
    n_features_in_ : int
        Features seen during `fit`.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the features, where X has string column names.

    References
    ----------
    Baldock, Maennel, Neyshabur, Deep Learning Through the Lens of Example Difficulty, NeurIPS
    2021, Secs. 2.2 and 4.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from sklearn.neural_network import MLPClassifier
    >>> from skcalib.difficulty import DifficultyProfiler, PredictionDepthScorer
    >>> X, y = load_iris(return_X_y=True)
    >>> net = MLPClassifier((8, 8), learning_rate_init=0.02, max_iter=40)
    >>> scorer = PredictionDepthScorer(net, n_neighbors=10)
    >>> profiler = DifficultyProfiler(scorer, n_repeats=4, test_size=0.25, random_state=0)
    >>> profile = profiler.fit(X, y).profile_
    >>> int((profile["n_held_out"] >= 1).sum())
    150
    >>> float(profile["consistency"].mean()) > 0.8
    True
    """

    _parameter_constraints: ClassVar[dict] = {
        "estimator": [HasMethods(["fit"])],
        "n_repeats": [Interval(Integral, 1, None, closed="left")],
        "test_size": [
            Interval(Real, 0, 1, closed="neither"),
            Interval(Integral, 1, None, closed="left"),
        ],
        "n_jobs": [Integral, None],
        "random_state": ["random_state"],
        "threshold": [Interval(Real, None, None, closed="neither"), None],
        "folder": [str, PathLike, None],
        "verbose": ["verbose"],
    }

    def __init__(
        self,
        estimator: Any,
        n_repeats: int = 25,
        test_size: float = 0.1,
        n_jobs: int | None = None,
        random_state: int | np.random.RandomState | None = None,
        *,
        threshold: float | None = None,
        folder: str | PathLike | None = None,
        verbose: int = 0,
    ) -> None:
        self.estimator = estimator
        self.n_repeats = n_repeats
        self.test_size = test_size
        self.n_jobs = n_jobs
        self.random_state = random_state
        self.threshold = threshold
        self.folder = folder
        self.verbose = verbose

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(
        self, X: Any, y: ArrayLike, sample_weight: ArrayLike | None = None
    ) -> DifficultyProfiler:
        """Train the networks and profile the rows.

        Parameters
        ----------
        X : array-like of shape (n_samples, n_features) or (n_samples, ...)
            Rows.
        y : array-like of shape (n_samples,)
            Labels.
        sample_weight : array-like of shape (n_samples,), default=None
            Passed to the training of the networks.

        Returns
        -------
        self : DifficultyProfiler
            The fitted profiler.
        """
        scorer = self.estimator
        if not isinstance(scorer, PredictionDepthScorer):
            scorer = PredictionDepthScorer(scorer)
        if isinstance(scorer.estimator, FrozenEstimator) or is_torch_module(scorer.estimator):
            raise TypeError(
                "estimator must be a network that can be trained again, got "
                f"{type(scorer.estimator).__name__}."
            )
        if scorer.estimator is not None:
            check_network(last_step(scorer.estimator))
        X, labels = check_samples(self, scorer.estimator, X, y, reset=True)
        weight = check_weights(sample_weight, len(labels))
        n_test = self._n_test(len(labels))
        folder, key = self._open_folder(scorer, X, labels, weight)
        plans = list(
            islice(
                plan_repeats(len(labels), n_test, check_random_state(self.random_state)),
                self.n_repeats,
            )
        )
        repeats = Parallel(n_jobs=self.n_jobs, verbose=self.verbose)(
            delayed(recall_or_run)(folder, number, key, scorer, X, labels, plan, weight)
            for number, plan in enumerate(plans)
        )
        self.held_out_ = np.stack([plan.held_out for plan in plans])
        self.predictions_ = np.stack([repeat.predictions for repeat in repeats])
        self.depth_ = np.stack([repeat.depth for repeat in repeats])
        self.iteration_learned_ = np.stack([repeat.iteration_learned for repeat in repeats])
        self.profile_ = self._profile(labels)
        return self

    def _n_test(self, n_rows: int) -> int:
        if isinstance(self.test_size, Integral):
            n_test = int(self.test_size)
        else:
            n_test = ceil(self.test_size * n_rows)
        if n_test >= n_rows:
            raise ValueError(
                f"test_size={self.test_size} must leave rows to train on, got n_samples={n_rows}."
            )
        if n_test * self.n_repeats < n_rows:
            raise ValueError(
                f"n_repeats must be at least {ceil(n_rows / n_test)} with "
                f"test_size={self.test_size}, so that every row is held out once, got "
                f"{self.n_repeats}."
            )
        return n_test

    def _open_folder(self, scorer: Any, *data: Any) -> tuple[Path | None, str]:
        if self.folder is None:
            return None, ""
        if not isinstance(self.random_state, Integral):
            raise ValueError(
                "random_state must be an integer where a folder is given, so that the same splits "
                f"come again, got {self.random_state!r}."
            )
        folder = Path(self.folder)
        folder.mkdir(parents=True, exist_ok=True)
        return folder, joblib.hash((scorer, self.test_size, int(self.random_state), *data))

    def _profile(self, y: NDArray) -> NDArray:
        held_out, votes = self.held_out_, self.predictions_
        columns = {
            "depth_trained": _mean(self.depth_, ~held_out),
            "depth_held_out": _mean(self.depth_, held_out),
            "iteration_learned_trained": _mean(self.iteration_learned_, ~held_out),
            "iteration_learned_held_out": _mean(self.iteration_learned_, held_out),
            "consensus_class": consensus_class(votes, y, mask=held_out),
            "consistency": consistency_score(votes, y, mask=held_out),
            "consensus_consistency": consensus_consistency(votes, y, mask=held_out),
            "prediction_entropy": prediction_entropy(votes, mask=held_out),
            "n_held_out": held_out.sum(axis=0),
        }
        columns["difficulty_type"] = difficulty_quadrant(
            columns["depth_held_out"], columns["depth_trained"], threshold=self.threshold
        )
        profile = np.empty(len(y), dtype=[(name, c.dtype) for name, c in columns.items()])
        for name, column in columns.items():
            profile[name] = column
        return profile

    def __sklearn_tags__(self):  # type: ignore[no-untyped-def]
        tags = super().__sklearn_tags__()
        tags.target_tags.required = True
        return tags


def _mean(values: NDArray, where: NDArray) -> NDArray:
    """Return the mean (n,) of the values (n_repeats, n) that count and are not NaN."""
    counted = where & ~np.isnan(values)
    total = np.where(counted, values, 0.0).sum(axis=0)
    number = counted.sum(axis=0)
    return np.divide(total, number, out=np.full(len(total), np.nan), where=number > 0)
