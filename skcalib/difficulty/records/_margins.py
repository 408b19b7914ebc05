"""Distance of a prediction to the decision boundary."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ...utils._validation import check_numbers


def output_margin(logits: ArrayLike) -> NDArray:
    """Largest logit minus the second largest; larger = easier.

    The larger it is, the further is the prediction from changing [1]_.

    Parameters
    ----------
    logits : array-like of shape (n_samples, n_classes)
        Logits, n_classes >= 2.

    Returns
    -------
    margin : ndarray of shape (n_samples,)
        Non-negative, in units of logits; 0 where the two best classes tie.

    Raises
    ------
    ValueError
        If `logits` is not finite, or has fewer than 2 columns.

    See Also
    --------
    area_under_margin : Mean margin of the label through a training.
    skcalib.nets.adversarial_input_margin : Margin in the input.
    skcalib.metrics.probability_margin : The margin of probabilities.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Sec. 3.3.

    Examples
    --------
    >>> from skcalib.difficulty import output_margin
    >>> output_margin([[3.0, 1.0, 2.5], [0.0, 4.0, 4.0]])
    array([0.5, 0. ])
    """
    scores = check_numbers(logits, "logits", ndim=(2,))
    if scores.shape[1] < 2:
        raise ValueError(f"logits must have at least 2 columns, got shape {scores.shape}.")
    # Only the two largest need their places: no full sort.
    best = np.partition(scores, -2, axis=1)[:, -2:].astype(np.float64)
    return best[:, 1] - best[:, 0]
