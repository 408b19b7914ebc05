"""Which descriptions go with the hard images?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, rankdata
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from ..utils.checking._arrays import naming
from ..utils.checking._validation import check_has, check_texts
from ..utils.meta._tables import as_table

if TYPE_CHECKING:
    import pandas as pd


def explain_difficulty(
    embedder: Any,
    scorer: Any,
    X: Any,
    y: ArrayLike,
    prompts: Sequence[str],
    *,
    as_frame: bool = False,
) -> pd.DataFrame | NDArray[Any]:
    """Correlate the difficulty of images with their similarity to descriptions, within class.

    Every image is compared with every prompt by the cosine of their features. Similarity and
    difficulty become ranks within the class of the image (divided by the size of the class, and
    centered). The result is the correlation of the ranks of all classes: with one class,
    Spearman's. So a prompt that only names a hard class explains nothing.

    Parameters
    ----------
    embedder : object with transform(X) and encode_text(texts)
        A model with an image and a text tower, for instance
        :class:`~skcalib.embeddings.OpenClipEmbedder`.
    scorer : difficulty scorer or array-like of shape (n_samples,)
        A scorer fitted on features of `embedder`, or the difficulty of every image itself
        (larger = harder), for instance from other features.
    X : list, ndarray or DataFrame of n_samples images
        The images, of any form that ``embedder.transform`` takes.
    y : array-like of shape (n_samples,)
        Classes of the images.
    prompts : sequence of str
        Descriptions, for instance "a blurry photo" or "a photo of several objects". Compare
        them with a neutral one ("a photo"), to which hard images may be less similar as well.
    as_frame : bool, default=False
        Whether to return a DataFrame (needs pandas) instead of a structured array.

    Returns
    -------
    table : structured array of shape (n_prompts,), or DataFrame
        ``prompt``; ``correlation`` in [-1, 1], positive where images like the prompt are harder
        than others of their class, in falling order; ``p_value``, two-sided, of the test that
        permutes the images within classes (normal approximation, not corrected for the number
        of prompts).

    Raises
    ------
    ValueError
        If difficulty or similarity is constant within every class.

    See Also
    --------
    skcalib.embeddings.OpenClipEmbedder : Embeds images and descriptions alike.
    RelativeMahalanobisScorer : A difficulty to explain.
    skcalib.plots.HardestSamplesDisplay : Shows the images.

    Notes
    -----
    The authors of the relative Mahalanobis difficulty name such explanations as future work. A
    correlation is not a cause, but a hint where to look.

    Examples
    --------
    Any object with the two methods will do as embedder. Here an "image" is its features already:

    >>> import numpy as np
    >>> from skcalib.difficulty import explain_difficulty
    >>> class Features:
    ...     def transform(self, X):
    ...         return np.asarray(X)
    ...     def encode_text(self, texts):
    ...         return np.array([[0.0, 1.0] if "blurry" in t else [1.0, 0.0] for t in texts])
    >>> rng = np.random.default_rng(0)
    >>> X, y = rng.uniform(size=(100, 2)), rng.integers(0, 2, 100)
    >>> difficulty = X[:, 1] + rng.uniform(size=100)
    >>> table = explain_difficulty(Features(), difficulty, X, y, ["a photo", "a blurry photo"])
    >>> table["prompt"].tolist(), bool(table["p_value"][0] < 0.001)
    (['a blurry photo', 'a photo'], True)
    """
    prompts = check_texts(prompts, "prompts")
    y = np.asarray(column_or_1d(y))
    what = "a model of images and texts, such as OpenClipEmbedder"
    check_has(embedder, "transform", "encode_text", name="embedder", what=what)
    features = embedder.transform(X)
    scores = scorer.difficulty(features, y) if hasattr(scorer, "difficulty") else scorer
    difficulty = np.asarray(
        check_array(scores, ensure_2d=False, dtype=np.float64, input_name="difficulty")
    )
    if difficulty.shape != (len(features),):
        raise ValueError(
            f"scorer must give difficulties of shape ({len(features)},), one for every image, "
            f"got shape {difficulty.shape}."
        )
    with naming("X", "y"):
        check_consistent_length(features, y)
    texts = embedder.encode_text(prompts)
    similarity = normalize(features.astype(float)) @ normalize(texts.astype(float)).T
    correlation, p_value = _within_class_correlation(similarity, difficulty, y)
    order = np.argsort(-correlation, kind="stable")
    columns = {
        "prompt": np.array(prompts, dtype=object)[order],
        "correlation": correlation[order],
        "p_value": p_value[order],
    }
    return as_table(columns, as_frame=as_frame)


def _within_class_correlation(
    similarity: NDArray, difficulty: NDArray, y: NDArray
) -> tuple[NDArray, NDArray]:
    """Return the rank correlation within class of every column of similarity, and its p-value."""
    product = np.zeros(similarity.shape[1])
    squares = np.zeros((2, similarity.shape[1]))
    variance = np.zeros(similarity.shape[1])
    for label in np.unique(y):
        rows = y == label
        n = np.count_nonzero(rows)
        # A single sample has no rank.
        if n < 2:
            continue
        a = rankdata(similarity[rows], axis=0) / n
        b = rankdata(difficulty[rows])[:, None] / n
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        here = np.array([(a**2).sum(axis=0), np.repeat((b**2).sum(), len(product))])
        product += (a * b).sum(axis=0)
        squares += here
        # Variance of the sum of products over all permutations of the rows of this class.
        variance += here[0] * here[1] / (n - 1)
    if not (variance > 0).all():
        # The squares of the difficulties are the same in every column.
        raise ValueError(
            "difficulty and similarity must vary within a class, got "
            f"{'difficulties' if squares[1, 0] == 0 else 'similarities'} that are constant "
            "within every class."
        )
    # The ranks of every class are centered: the sums over all classes are those of a correlation,
    # and the sum of products has mean 0 over the permutations.
    correlation = product / np.sqrt(squares[0] * squares[1])
    return correlation, 2 * norm.sf(np.abs(product) / np.sqrt(variance))
