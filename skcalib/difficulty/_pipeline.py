"""Difficulty by a fitted scorer, or by a fitted Pipeline that ends in one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, overload

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._optional import import_optional
from ..utils._scorers import score
from ..utils._tables import row_index

if TYPE_CHECKING:
    import pandas as pd


@overload
def score_difficulty(
    scorer: Any, X: Any, y: ArrayLike | None = None, *, as_frame: Literal[False] = False
) -> NDArray[np.floating]: ...


@overload
def score_difficulty(
    scorer: Any, X: Any, y: ArrayLike | None = None, *, as_frame: bool
) -> NDArray[np.floating] | pd.Series: ...


def score_difficulty(
    scorer: Any, X: Any, y: ArrayLike | None = None, *, as_frame: bool = False
) -> NDArray[np.floating] | pd.Series:
    """Difficulty by a fitted scorer, or by a fitted Pipeline that ends in one.

    A Pipeline has no method ``difficulty``: its ``transform`` gives what the last step gives, and
    its ``score_samples`` the label-free score. Steps that resample take no part, as in prediction.

    Parameters
    ----------
    scorer : difficulty scorer or Pipeline that ends in one
        Fitted.
    X : array-like of shape (n_samples, n_features), or whatever the first step takes
        Samples.
    y : array-like of shape (n_samples,), default=None
        Labels. None asks for the label-free difficulty.
    as_frame : bool, default=False
        Return a pandas Series with the index of `X`, where that is of pandas.

    Returns
    -------
    difficulty : ndarray or Series of shape (n_samples,)
        Larger means harder.

    Raises
    ------
    TypeError
        If `scorer` is neither a difficulty scorer nor ends in one.

    See Also
    --------
    cross_val_difficulty : Out-of-fold difficulty.
    difficulty_weights : From difficulty to weights.

    Examples
    --------
    >>> from sklearn.datasets import load_digits
    >>> from sklearn.decomposition import PCA
    >>> from sklearn.pipeline import make_pipeline
    >>> from skcalib.difficulty import RMDScorer, score_difficulty
    >>> X, y = load_digits(return_X_y=True)
    >>> pipe = make_pipeline(PCA(20, random_state=0), RMDScorer()).fit(X, y)
    >>> score_difficulty(pipe, X, y).shape
    (1797,)
    """
    difficulty = score(scorer, X, y)
    if not as_frame:
        return difficulty
    pandas = import_optional("pandas", extra="pandas")
    return pandas.Series(difficulty, index=row_index(X), name="difficulty")
