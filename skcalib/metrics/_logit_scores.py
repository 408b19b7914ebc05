"""Per-sample scores of logits, for the detection of foreign data."""

from __future__ import annotations

from numbers import Real

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ..utils._blocks import iter_blocks, row_max, row_sum
from ..utils._private import Interval, validate_params
from ..utils._proba import check_logits


def max_logit_score(logits: ArrayLike) -> NDArray:
    """Largest logit of every row: larger = surer.

    Parameters
    ----------
    logits : array-like of shape (n_samples, n_classes)
        Logits; unlike probabilities they tell a row with several likely classes from one with
        none.

    Returns
    -------
    score : ndarray of shape (n_samples,)
        Largest logits; float64 for float64 input, float32 for float32 and float16.

    Raises
    ------
    ValueError
        If `logits` is not of two dimensions and at least two columns, or is not finite.

    See Also
    --------
    energy_score : The smooth maximum of the logits.
    confidence_score : The largest probability.

    References
    ----------
    .. [1] Hendrycks et al., Scaling Out-of-Distribution Detection for Real-World Settings,
       ICML 2022.

    Examples
    --------
    >>> from skcalib.metrics import max_logit_score
    >>> max_logit_score([[1.0, 7.0], [2.0, -1.0]])
    array([7., 2.])
    """
    matrix = _check_matrix(logits)
    return np.concatenate([row_max(block) for _, block in iter_blocks(matrix)])


@validate_params(
    {"temperature": [Interval(Real, 0, None, closed="neither")]},
    prefer_skip_nested_validation=True,
)
def energy_score(logits: ArrayLike, *, temperature: float = 1.0) -> NDArray:
    """Negative free energy of every row: larger = more like the data of the training.

    The score is ``T log(sum_k exp(z_k / T))``, the energy of the paper with its sign turned, so
    that it orders as :func:`max_logit_score`, its limit for T -> 0, and as :func:`ood_report`
    wants it.

    Parameters
    ----------
    logits : array-like of shape (n_samples, n_classes)
        Logits.
    temperature : float, default=1.0
        The temperature T, positive.

    Returns
    -------
    score : ndarray of shape (n_samples,)
        Scores between the largest logit and the largest logit plus ``T log(n_classes)``; float64
        for float64 input, float32 for float32 and float16.

    Raises
    ------
    ValueError
        If `logits` is not of two dimensions and at least two columns, or is not finite.

    See Also
    --------
    ood_report : How well scores tell foreign data.

    References
    ----------
    .. [1] Liu et al., Energy-based Out-of-distribution Detection, NeurIPS 2020, Eq. 4.

    Examples
    --------
    >>> from skcalib.metrics import energy_score
    >>> energy_score([[1.0, 7.0], [2.0, 2.0]]).round(3)
    array([7.002, 2.693])
    """
    matrix = _check_matrix(logits)
    return np.concatenate([_row_energy(block, temperature) for _, block in iter_blocks(matrix)])


def _row_energy(block: NDArray, temperature: float) -> NDArray:
    top = row_max(block)
    scale = block.dtype.type(temperature)
    return top + scale * np.log(row_sum(np.exp((block - top[:, None]) / scale)))


def _check_matrix(logits: ArrayLike) -> NDArray:
    matrix = check_logits(logits)
    if matrix.ndim != 2:
        raise ValueError(
            f"logits must have shape (n_samples, n_classes), got shape {matrix.shape}."
        )
    return matrix
