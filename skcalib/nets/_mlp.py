"""A multi-layer perceptron."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from numbers import Integral, Real
from typing import Any

from torch import Tensor, nn


def _check_size(name: str, size: object) -> None:
    if isinstance(size, bool) or not isinstance(size, Integral) or size < 1:
        raise ValueError(f"{name} must be an integer >= 1, got {size!r}.")


class MLP(nn.Module):
    """Multi-layer perceptron with ReLU units, for tabular data.

    In :class:`~skcalib.nets.CalibratedNetClassifier` the sizes of input and output are taken from
    the data, so that ``CalibratedNetClassifier(MLP)`` fits any table.

    Parameters
    ----------
    n_features : int
        Number of inputs per sample; inputs of more dimensions are flattened.
    n_classes : int
        Number of classes.
    hidden : sequence of int, default=(100,)
        Number of units of every hidden layer; an empty sequence gives logistic regression.
    dropout : float in [0, 1), default=0.0
        Probability with which a hidden unit is left out in training.

    Raises
    ------
    TypeError, ValueError
        If a size or `dropout` is not as described.

    See Also
    --------
    CalibratedNetClassifier : Trains it.
    sklearn.neural_network.MLPClassifier : Without torch and its losses.

    Examples
    --------
    >>> import torch
    >>> from skcalib.nets import MLP
    >>> MLP(n_features=4, n_classes=3, hidden=(16, 8))(torch.zeros(5, 4)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        *,
        hidden: Sequence[int] = (100,),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        _check_size("n_features", n_features)
        _check_size("n_classes", n_classes)
        if isinstance(hidden, str) or not isinstance(hidden, Iterable):
            raise TypeError(f"hidden must be a sequence of integers, got {hidden!r}.")
        rate: Any = dropout  # for mypy, no float is a Real
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= float(rate) < 1:
            raise ValueError(f"dropout must be a number in [0, 1), got {dropout!r}.")
        layers: list[nn.Module] = [nn.Flatten()]  # images become tables
        for width in hidden:
            _check_size("hidden", width)
            layers += [nn.Linear(n_features, width), nn.ReLU()]
            if dropout:
                layers.append(nn.Dropout(dropout))
            n_features = width
        self.layers = nn.Sequential(*layers, nn.Linear(n_features, n_classes))

    def forward(self, X: Tensor) -> Tensor:
        """Return the logits.

        Parameters
        ----------
        X : Tensor of shape (n_samples, ...)
            Features.

        Returns
        -------
        logits : Tensor of shape (n_samples, n_classes)
            Unnormalized log-probabilities.
        """
        return self.layers(X)
