"""Networks, recognized by their class without importing torch or skorch, and their input."""

from __future__ import annotations

from typing import Any

from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_consistent_length, check_is_fitted

from ...utils.checking._labels import (
    as_labels,
    check_class_labels,
    check_labels_like,
    class_positions,
)
from ...utils.checking._validation import validate_data, validate_rows
from ...utils.computing._tensors import TensorRows


def unfrozen(estimator: Any) -> Any:
    """Return the model inside a FrozenEstimator, or the estimator itself."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def _inherits_from(model: Any, name: str, package: str) -> bool:
    """Tell whether the model is of the class `name` of a package."""
    # By prefix: the classes are defined in modules below the package.
    return any(
        cls.__name__ == name and cls.__module__.startswith(package) for cls in type(model).__mro__
    )


def is_torch_module(model: Any) -> bool:
    """Whether the model is a torch.nn.Module."""
    return _inherits_from(model, "Module", "torch.nn")


def is_skorch_net(model: Any) -> bool:
    """Whether the model is a skorch net."""
    return _inherits_from(model, "NeuralNet", "skorch")


def check_network(network: Any) -> None:
    """Raise unless the model has layers that can be read."""
    if not (
        isinstance(network, MLPClassifier) or is_skorch_net(network) or is_torch_module(network)
    ):
        raise TypeError(
            "estimator must be an MLPClassifier, a skorch net, a torch.nn.Module, or a Pipeline "
            f"that ends in one, got {type(network).__name__}."
        )


def check_samples(
    owner: Any, model: Any, X: Any, y: Any, *, reset: bool = True
) -> tuple[Any, Any]:
    """Validate the input of a network on behalf of `owner`; `y` may be None except in `fit`.

    For a torch network, a tensor on an accelerator stays there.
    """
    of_torch = is_torch_module(model) or is_skorch_net(model)
    options: dict[str, Any] = {"allow_nd": of_torch}
    if isinstance(model, Pipeline):  # Its first step checks X.
        options = {"skip_check_array": True}
    validate = validate_rows if of_torch else validate_data
    if y is None and not reset:
        X = validate(owner, X, reset=reset, **options)
    else:
        X, y = validate(owner, X, check_class_labels(y), reset=reset, **options)
        check_consistent_length(X, y)
        y = as_labels(y, name="y")
    if isinstance(X, TensorRows):
        # Integers become floats, as those of an array do.
        X = X.tensor if X.tensor.is_floating_point() else X[:]
    return X, y


def check_queries(owner: Any, model: Any, X: Any, y: Any) -> tuple[Any, NDArray | None]:
    """Return X as the network reads it, and the positions of y in `classes_`, None without y."""
    check_is_fitted(owner)
    X, y = check_samples(owner, model, X, y, reset=False)
    if y is None:
        return X, None
    labels = check_labels_like(y, name="y", n_samples=len(y), like=owner.classes_)
    # -1 stands for a label that no training sample has.
    return X, class_positions(labels, owner.classes_)
