"""A multi-layer perceptron, and how far an input is from the next class."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from numbers import Integral, Real
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ..utils._compat import set_training
from ._components import as_logits, get_first_output
from ._loop import TrainingLoop

# A multi-layer perceptron.


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
    hidden_layer_sizes : sequence of int, default=(100,)
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
    >>> MLP(n_features=4, n_classes=3, hidden_layer_sizes=(16, 8))(torch.zeros(5, 4)).shape
    torch.Size([5, 3])
    """

    def __init__(
        self,
        n_features: int,
        n_classes: int,
        *,
        hidden_layer_sizes: Sequence[int] = (100,),
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        _check_size("n_features", n_features)
        _check_size("n_classes", n_classes)
        if isinstance(hidden_layer_sizes, str) or not isinstance(hidden_layer_sizes, Iterable):
            raise TypeError(
                f"hidden_layer_sizes must be a sequence of integers, got {hidden_layer_sizes!r}."
            )
        rate: Any = dropout  # for mypy, no float is a Real
        if isinstance(rate, bool) or not isinstance(rate, Real) or not 0 <= float(rate) < 1:
            raise ValueError(f"dropout must be a number in [0, 1), got {dropout!r}.")
        layers: list[nn.Module] = [nn.Flatten()]  # images become tables
        for width in hidden_layer_sizes:
            _check_size("hidden_layer_sizes", width)
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


# How far an input is from the next class.


def adversarial_input_margin(
    net: TrainingLoop | nn.Module, X: Any, *, batch_size: int = 256
) -> NDArray[np.floating]:
    """Estimate the distance of every input to the decision boundary of a network.

    The smallest step that changes the predicted class i, to first order: ``min over j != i of
    (z_i - z_j) / norm(grad_x (z_i - z_j))`` with logits z [1]_, [2]_. **Larger = easier**: farther
    from the boundary. It takes K - 1 backward passes for K classes.

    Parameters
    ----------
    net : CalibratedNetClassifier or torch.nn.Module
        A fitted net whose module takes one tensor of floating-point numbers; or a module that
        gives logits, or what has them as ``logits``. A module runs in evaluation mode, and is as
        before afterwards.
    X : array-like or Tensor of shape (n_samples, ...), or dataset
        Inputs, as the net takes them. A module gets them as tensors of its own floating-point
        type, on its device; a dataset is for a net.
    batch_size : int, default=256
        Number of samples that a module gets at a time; a net has its own.

    Returns
    -------
    margin : ndarray of shape (n_samples,)
        Euclidean distances in units of X, >= 0; infinite where every gradient is zero.

    Raises
    ------
    sklearn.exceptions.NotFittedError
        If the net is not fitted.
    TypeError
        If `net` is neither a net nor a module.
    ValueError
        If the batches of X are not floating-point tensors, or `batch_size` is below 1.

    See Also
    --------
    skcalib.metrics.probability_margin : The margin of the probabilities, without gradients.
    skcalib.difficulty.PredictionDepthScorer : Difficulty from the layers of a network.

    References
    ----------
    .. [1] R. J. N. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Sec. 3.3. Calls: :ref:`paper-depth`.
    .. [2] Y. Jiang, D. Krishnan, H. Mobahi, S. Bengio, "Predicting the Generalization Gap in Deep
       Networks with Margin Distributions", ICLR 2019, Eq. 3.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from skcalib.nets import MLP, CalibratedNetClassifier, adversarial_input_margin
    >>> X, y = load_iris(return_X_y=True)
    >>> net = CalibratedNetClassifier(MLP, lr=0.1, random_state=0).fit(X, y)
    >>> adversarial_input_margin(net, X).shape
    (150,)
    """
    _check_size("batch_size", batch_size)
    if isinstance(net, TrainingLoop):
        net.check_is_fitted()
        set_training(net, False)
        batches = (batch for batch, _ in net.get_iterator(net.get_dataset(X)))
        return _compute_margins(batches, net.infer)
    if not isinstance(net, nn.Module):
        raise TypeError(
            "net must be a CalibratedNetClassifier or a torch.nn.Module, got "
            f"{type(net).__name__}."
        )
    parameter = next((p for p in net.parameters() if p.is_floating_point()), torch.zeros(()))
    inputs = X if isinstance(X, Tensor) else torch.as_tensor(np.asarray(X))
    if not inputs.is_complex() and not isinstance(X, Tensor):  # integers are numbers, in an array
        inputs = inputs.to(parameter.dtype)
    if inputs.ndim == 0 or len(inputs) == 0:
        raise ValueError(f"X must have a row for every sample, got shape {tuple(inputs.shape)}.")
    former = [(part, part.training) for part in net.modules()]
    net.eval()
    try:
        return _compute_margins(
            inputs.split(batch_size), lambda batch: as_logits(net(batch.to(parameter)))
        )
    finally:
        for part, training in former:
            part.training = training


def _compute_margins(
    batches: Iterable[Any], infer: Callable[[Tensor], Any]
) -> NDArray[np.floating]:
    """Return the distance of every input of the batches, whose logits `infer` computes."""
    margins = []
    for batch in batches:
        if not isinstance(batch, Tensor) or not batch.is_floating_point():
            raise ValueError(
                "X must come as one tensor of floating-point numbers, to be differentiable, "
                f"got {getattr(batch, 'dtype', type(batch).__name__)}."
            )
        inputs = batch.detach().clone().requires_grad_()
        logits = get_first_output(infer(inputs)).float()
        if logits.ndim != 2 or logits.shape[1] < 2:
            raise ValueError(
                "net must give logits of shape (n_samples, n_classes) of two classes or more, got "
                f"shape {tuple(logits.shape)}."
            )
        margins.append(_compute_margin(logits, inputs))
    return torch.cat(margins).cpu().numpy()


def _compute_margin(logits: Tensor, inputs: Tensor) -> Tensor:
    """Return the distance of every input to the nearest other class, to first order, (n,)."""
    samples, n_classes = torch.arange(len(logits), device=logits.device), logits.shape[1]
    predicted = logits.detach().argmax(1)
    smallest = torch.full((len(logits),), torch.inf, device=logits.device)
    # i + 1, ..., i + K - 1 modulo K are the classes other than i, each once: in every pass each
    # sample has another class of its own, and one backward pass serves the batch.
    for step in range(1, n_classes):
        other = (predicted + step) % n_classes
        gap = logits[samples, predicted] - logits[samples, other]
        # In evaluation mode no output depends on other samples: the sum has the gradient of each.
        (gradient,) = torch.autograd.grad(gap.sum(), inputs, retain_graph=step < n_classes - 1)
        # The gradient is on the device of the inputs; `infer` has moved a copy of them.
        length = gradient.flatten(1).norm(dim=1).to(gap.device)
        distance = torch.where(length > 0, gap.detach() / length, torch.inf)
        smallest = torch.minimum(smallest, distance)
    return smallest
