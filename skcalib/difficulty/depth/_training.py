"""Train a network, and record its predictions after every epoch."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted, has_fit_parameter

from ...utils.computing._process import raise_ctrl_c, seeded
from ...utils.computing._tensors import on_accelerator
from ...utils.meta._estimators import last_step
from ...utils.meta._private import without_steps
from ._networks import check_network, is_skorch_net, is_torch_module, unfrozen


def default_network(seed: int) -> MLPClassifier:
    """Return a small network that converges within its iterations."""
    return MLPClassifier(
        (32, 32), learning_rate_init=0.01, tol=1e-3, max_iter=1000, random_state=seed
    )


def trained_network(
    estimator: Any, X: Any, y: NDArray, sample_weight: Any, random_state: np.random.RandomState
) -> Any:
    """Return a fitted clone of the estimator; frozen ones and torch modules as they are."""
    if estimator is None:
        estimator = default_network(random_state.randint(np.iinfo(np.int32).max))
    model = unfrozen(estimator)
    network, _ = last_step(model)
    check_network(network)
    if is_torch_module(network):
        return estimator
    if isinstance(estimator, FrozenEstimator):
        check_is_fitted(model)
        return estimator
    with raise_ctrl_c():
        return clone(estimator).fit(X, y, **_weight_arguments(model, sample_weight))


def _weight_arguments(model: Any, sample_weight: Any) -> dict[str, Any]:
    """Return the arguments of `fit` that carry the weights to the network."""
    if sample_weight is None:
        return {}
    network, prefix = last_step(model)
    if not has_fit_parameter(network, "sample_weight"):
        raise ValueError(
            f"sample_weight must be None for {type(network).__name__}, whose fit takes none, got "
            "weights."
        )
    return {f"{prefix}sample_weight": sample_weight}


def clone_with_seed(estimator: Any, seed: int) -> Any:
    """Return a clone with the seed in every `random_state`, also in those of its steps."""
    model = clone(estimator)
    names = [name for name in model.get_params() if name.split("__")[-1] == "random_state"]
    return model.set_params(**dict.fromkeys(names, seed))


def train_recorded(
    model: Any, X: Any, y: NDArray, X_all: Any, *, sample_weight: Any = None, seed: int
) -> list[NDArray] | None:
    """Train the model in place; return its labels for `X_all` before and after every epoch.

    None where epochs cannot be observed: an MLPClassifier that uses L-BFGS or early stopping.
    """
    network = model
    while isinstance(network, Pipeline):
        if len(network) > 1:
            before = network[:-1]
            X, X_all = before.fit_transform(X, y), before.transform(X_all)
            # With memory, a Pipeline fits copies of its steps.
            network.steps[:-1] = before.steps
        network = network[-1]
    weights = _weight_arguments(network, sample_weight)
    with raise_ctrl_c():
        if is_skorch_net(network):
            return _train_skorch(network, X, y, X_all, weights, seed)
        if network.solver != "lbfgs" and not network.early_stopping:
            return _train_mlp(network, X, y, X_all, weights, seed)
        network.fit(X, y, **weights)
        return None


def _train_mlp(
    net: MLPClassifier, X: Any, y: NDArray, X_all: Any, weights: dict, seed: int
) -> list[NDArray]:
    """Train by `partial_fit` until `fit` would stop; return labels as `train_recorded` does."""
    untrained = without_steps(net).set_params(random_state=np.random.RandomState(seed))
    # A generator goes on from epoch to epoch; an integer would shuffle alike every time.
    net.set_params(random_state=np.random.RandomState(seed))
    classes = np.unique(y)
    history = [untrained.partial_fit(X, y, classes=classes, **weights).predict(X_all)]
    best, waited = np.inf, 0
    for _ in range(net.max_iter):
        with raise_ctrl_c():  # after this epoch, not after all
            net.partial_fit(X, y, classes=classes, **weights)
        history.append(net.predict(X_all))
        # The stopping rule of `fit`, which `partial_fit` leaves to its caller.
        waited = waited + 1 if net.loss_ > best - net.tol else 0
        best = min(best, net.loss_)
        # With "adaptive", SGD lowers the learning rate instead of stopping.
        if waited > net.n_iter_no_change and net.learning_rate != "adaptive":
            break
    return history


def _train_skorch(
    net: Any, X: Any, y: NDArray, X_all: Any, weights: dict, seed: int
) -> list[NDArray]:
    """Train with a callback that records; return labels as `train_recorded` does."""
    import torch
    from skorch.callbacks import Callback

    history: list[NDArray] = []

    class Recorder(Callback):
        def on_epoch_begin(self, net: Any, *args: Any, **kwargs: Any) -> None:
            if not history:
                self.on_epoch_end(net)

        def on_epoch_end(self, net: Any, *args: Any, **kwargs: Any) -> None:
            # A net that casts its input to the type of its weights may do so in `fit` alone.
            weight = next(net.module_.parameters(), None)
            samples = X_all
            if weight is not None and weight.dtype == torch.float32:
                on_device = on_accelerator(samples)
                samples = samples.float() if on_device else np.asarray(samples, dtype=np.float32)
            history.append(net.predict(samples))

    former = net.callbacks
    if former != "disable":
        # First, since later callbacks are not called when one ends the training.
        net.set_params(callbacks=[("recorder", Recorder()), *(former or [])])
    # A net without a random_state draws from the global generator, which is restored.
    own = hasattr(net, "random_state")
    with nullcontext() if own else seeded(seed, net.device or "cpu"):
        net.fit(X, y, **weights)
    return history
