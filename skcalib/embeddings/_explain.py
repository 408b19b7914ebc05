"""Which descriptions go with the hard images?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.stats import norm, rankdata
from sklearn.preprocessing import normalize
from sklearn.utils.validation import check_array, check_consistent_length, column_or_1d

from ._images import check_texts
from ._open_clip import OpenClipEmbedder

if TYPE_CHECKING:
    import pandas as pd


def explain_difficulty(
    embedder: OpenClipEmbedder,
    scorer: Any,
    X: Any,
    y: ArrayLike,
    prompts: Sequence[str],
) -> pd.DataFrame | NDArray:
    """Correlate the difficulty of images with their similarity to descriptions, within class.

    Every image is compared with every prompt by the cosine of their features. Similarity and
    difficulty are replaced by their ranks within the class of the image (divided by the size of
    the class, and centered), and the ranks of all classes are correlated: Spearman's correlation
    where there is one class. A prompt that merely names a hard class thus explains nothing.

    Parameters
    ----------
    embedder : OpenClipEmbedder
        A model with an image and a text tower: it has `transform` and `encode_text`.
    scorer : difficulty scorer or array-like of shape (n_samples,)
        A scorer fitted on features of `embedder`, or the difficulty of every image itself
        (larger = harder), for instance from other features.
    X : list, ndarray or DataFrame of n_samples images
        As for ``embedder.transform``.
    y : array-like of shape (n_samples,)
        Classes of the images.
    prompts : sequence of str
        Descriptions, for instance "a blurry photo" or "a photo of several objects". Compare
        them with a neutral one ("a photo"), to which hard images may be less similar as well.

    Returns
    -------
    table : DataFrame (structured array without pandas) of len(prompts) rows
        ``prompt``; ``correlation`` in [-1, 1], positive where images like the prompt are harder
        than others of their class, in falling order; ``p_value``, two-sided, of the test that
        permutes the images within classes (normal approximation, not corrected for the number
        of prompts).

    Raises
    ------
    ValueError
        If X, y and the difficulties differ in length, or if difficulty or similarity is
        constant within every class.

    Notes
    -----
    Cui et al. (NeurIPS 2023) name such explanations as future work. A correlation is no cause: it
    is a question to put to the data.

    Examples
    --------
    >>> from skcalib.difficulty import RMDScorer
    >>> from skcalib.embeddings import OpenClipEmbedder, explain_difficulty
    >>> embedder = OpenClipEmbedder("ViT-B-32", pretrained="openai")
    >>> prompts = ["a photo", "a blurry photo", "a photo of several objects"]
    >>> files, y = ["a.jpg", "b.jpg"], ["cat", "dog"]
    >>> scorer = RMDScorer().fit(embedder.transform(files), y)  # doctest: +SKIP
    >>> explain_difficulty(embedder, scorer, files, y, prompts)  # doctest: +SKIP
    """
    prompts = check_texts(prompts, "prompts")
    y = np.asarray(column_or_1d(y))
    features = embedder.transform(X)
    if hasattr(scorer, "difficulty"):
        scorer = scorer.difficulty(features, y)
    difficulty = np.asarray(
        check_array(scorer, ensure_2d=False, dtype=np.float64, input_name="difficulty")
    )
    if difficulty.shape != (len(features),):
        raise ValueError(
            f"the difficulty must be of shape ({len(features)},), one value an image, "
            f"got {difficulty.shape}"
        )
    check_consistent_length(features, y)
    texts = embedder.encode_text(prompts)
    similarity = normalize(features.astype(float)) @ normalize(texts.astype(float)).T
    correlation, p_value = _within_class_correlation(similarity, difficulty, y)
    order = np.argsort(-correlation, kind="stable")
    table = np.array(
        [(prompts[i], correlation[i], p_value[i]) for i in order],
        dtype=[("prompt", object), ("correlation", float), ("p_value", float)],
    )
    try:
        import pandas as pd
    except ImportError:
        return table
    return pd.DataFrame(table)


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
        if n < 2:
            continue
        a = rankdata(similarity[rows], axis=0) / n
        b = rankdata(difficulty[rows])[:, None] / n
        a, b = a - a.mean(axis=0), b - b.mean(axis=0)
        here = np.array([(a**2).sum(axis=0), np.repeat((b**2).sum(), len(product))])
        product += (a * b).sum(axis=0)
        squares += here
        # Of the sum of products over all permutations of the rows of this class.
        variance += here[0] * here[1] / (n - 1)
    if not (variance > 0).all():
        raise ValueError(
            "difficulty and similarity must vary within a class, got "
            f"{'difficulties' if squares[1, 0] == 0 else 'similarities'} that are constant "
            "within every class"
        )
    correlation = product / np.sqrt(squares[0] * squares[1])
    return correlation, 2 * norm.sf(np.abs(product) / np.sqrt(variance))
