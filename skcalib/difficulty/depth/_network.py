"""Networks that have layers to look at: which they are, and how one is trained."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import (
    check_consistent_length,
    check_is_fitted,
    has_fit_parameter,
    validate_data,
)

from ...utils._labels import as_labels


def unfrozen(estimator: Any) -> Any:
    """Return the model inside of a FrozenEstimator, or the estimator itself."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def is_torch_module(model: Any) -> bool:
    """Whether the model is a torch.nn.Module, without importing torch."""
    return any(
        cls.__name__ == "Module" and cls.__module__.startswith("torch.nn")
        for cls in type(model).__mro__
    )


def is_skorch_net(model: Any) -> bool:
    """Whether the model is a skorch net, without importing skorch."""
    return any(
        cls.__name__ == "NeuralNet" and cls.__module__.startswith("skorch")
        for cls in type(model).__mro__
    )


def last_step(model: Any) -> Any:
    """Return the network of a Pipeline, or the model itself."""
    return model[-1] if isinstance(model, Pipeline) else model


def check_rows(owner: Any, model: Any, X: Any, y: Any = None, *, reset: bool) -> tuple[Any, Any]:
    """Validate the input of a network on behalf of `owner`; `y` may be None unless in `fit`."""
    options: dict = {"allow_nd": is_torch_module(model) or is_skorch_net(model)}
    if isinstance(model, Pipeline):  # Its first step knows what it can read.
        options = {"skip_check_array": True}
    if y is None and not reset:
        return validate_data(owner, X, reset=reset, **options), None
    X, y = validate_data(owner, X, y, reset=reset, **options)
    check_consistent_length(X, y)
    return X, as_labels(y, name="y")


def check_network(network: Any) -> None:
    """Raise unless the model has layers that can be read."""
    if not (
        isinstance(network, MLPClassifier) or is_skorch_net(network) or is_torch_module(network)
    ):
        raise TypeError(
            "estimator must be an MLPClassifier, a skorch net, a torch.nn.Module, or a Pipeline "
            f"that ends in one, got {type(network).__name__}."
        )


def default_network(seed: int) -> MLPClassifier:
    """Return a small network that settles before it complains that it has not."""
    return MLPClassifier(
        (32, 32), learning_rate_init=0.01, tol=1e-3, max_iter=1000, random_state=seed
    )


def trained_network(
    estimator: Any,
    X: Any,
    y: ArrayLike,
    sample_weight: Any,
    random_state: np.random.RandomState,
) -> Any:
    """Return a fitted clone of the estimator, or what is frozen; None is a small default."""
    if estimator is None:
        estimator = default_network(random_state.randint(np.iinfo(np.int32).max))
    model = unfrozen(estimator)
    check_network(last_step(model))
    if is_torch_module(last_step(model)):
        return estimator
    if isinstance(estimator, FrozenEstimator):
        check_is_fitted(model)
        return estimator
    return clone(estimator).fit(X, y, **weight_arguments(model, sample_weight))


def weight_arguments(model: Any, sample_weight: Any) -> dict[str, Any]:
    """Return the arguments of `fit` that carry the weights to the network."""
    if sample_weight is None:
        return {}
    if not has_fit_parameter(last_step(model), "sample_weight"):
        raise ValueError(
            f"sample_weight must be None: {type(last_step(model)).__name__} has no use for it."
        )
    name = (
        f"{model.steps[-1][0]}__sample_weight" if isinstance(model, Pipeline) else "sample_weight"
    )
    return {name: sample_weight}
