"""Difficulty averaged over several views of the same samples."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ._pipeline import score_difficulty


def difficulty_over_views(
    scorer: Any, views: Iterable[Any], y: ArrayLike | None = None
) -> NDArray[np.float64]:
    """Average the difficulty of samples over their augmented views.

    Random crops and flips of an image differ in difficulty. The paper behind
    :class:`RelativeMahalanobisScorer` fits on several augmented views and averages the scores.
    To fit on all views, add them up with ``partial_fit``, as below.

    Parameters
    ----------
    scorer : difficulty scorer or Pipeline that ends in one
        Fitted.
    views : iterable of n_views array-likes of shape (n_samples, n_features)
        The same samples in the same order, once per view. An array of shape
        (n_views, n_samples, n_features) is one; a generator is read one view at a time.
    y : array-like of shape (n_samples,), default=None
        Labels; None averages the label-free difficulty.

    Returns
    -------
    difficulty : ndarray of shape (n_samples,)
        Mean over the views; larger means harder.

    Raises
    ------
    ValueError
        If there is no view, or if views differ in their number of samples.
    TypeError
        If `views` cannot be iterated over.

    See Also
    --------
    score_difficulty : Difficulty of one view.
    skcalib.embeddings.TimmEmbedder : Embeds images.

    Examples
    --------
    >>> import numpy as np
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.difficulty import RelativeMahalanobisScorer, difficulty_over_views
    >>> X, y = load_iris(return_X_y=True)
    >>> noise = np.random.default_rng(0).normal(scale=0.05, size=(5, *X.shape))
    >>> scorer = RelativeMahalanobisScorer()
    >>> for view in X + noise:
    ...     scorer = scorer.partial_fit(view, y)
    >>> difficulty_over_views(scorer, X + noise, y).shape
    (150,)
    """
    if not isinstance(views, Iterable):
        raise TypeError(f"views must be an iterable of array-likes, got {type(views).__name__}.")
    total: NDArray[np.float64] | None = None
    n_views = 0
    for view in views:
        difficulty = score_difficulty(scorer, view, y)
        if total is None:
            total = np.zeros(len(difficulty))
        # The sum would broadcast a view of one sample.
        if len(difficulty) != len(total):
            raise ValueError(
                "views must have the same number of samples, "
                f"got {len(total)} and {len(difficulty)}."
            )
        total += difficulty
        n_views += 1
    if total is None:
        raise ValueError("views must hold at least one view, got none.")
    return total / n_views
