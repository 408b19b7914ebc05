"""Networks: recognize, train and record them, and read the activations of their layers."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from math import prod
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.random_projection import SparseRandomProjection
from sklearn.utils import gen_batches
from sklearn.utils.validation import check_consistent_length, check_is_fitted, has_fit_parameter

from ..utils._backends import (
    TensorRows,
    exact_products,
    get_back_end,
    is_on_accelerator,
    raise_ctrl_c,
    seed_torch,
    to_host,
)
from ..utils._compat import clone_without_steps, predict_nonlinearity
from ..utils._estimators import get_last_step, validate_data, validate_rows
from ..utils._labels import (
    as_labels,
    check_class_labels,
    check_labels_like,
    find_positions,
    format_labels,
)
from ..utils._output import ignoring

# Networks, recognized by their class without importing torch or skorch, and their input.


def unfreeze(estimator: Any) -> Any:
    """Return the model inside a FrozenEstimator, or the estimator itself."""
    return estimator.estimator if isinstance(estimator, FrozenEstimator) else estimator


def _inherits_from(model: Any, name: str, package: str) -> bool:
    """Return whether the model is of the class `name` of a package."""
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
    return X, find_positions(labels, owner.classes_)


# Train a network, and record its predictions after every epoch.


def make_default_network(seed: int) -> MLPClassifier:
    """Return a small network that converges within its iterations."""
    return MLPClassifier(
        (32, 32), learning_rate_init=0.01, tol=1e-3, max_iter=1000, random_state=seed
    )


def train_network(
    estimator: Any, X: Any, y: NDArray, sample_weight: Any, random_state: np.random.RandomState
) -> Any:
    """Return a fitted clone of the estimator; frozen ones and torch modules as they are."""
    if estimator is None:
        estimator = make_default_network(random_state.randint(np.iinfo(np.int32).max))
    model = unfreeze(estimator)
    network, _ = get_last_step(model)
    check_network(network)
    if is_torch_module(network):
        return estimator
    if isinstance(estimator, FrozenEstimator):
        check_is_fitted(model)
        return estimator
    with raise_ctrl_c():
        return clone(estimator).fit(X, y, **_make_weight_arguments(model, sample_weight))


def _make_weight_arguments(model: Any, sample_weight: Any) -> dict[str, Any]:
    """Return the arguments of `fit` that carry the weights to the network."""
    if sample_weight is None:
        return {}
    network, prefix = get_last_step(model)
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
    weights = _make_weight_arguments(network, sample_weight)
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
    untrained = clone_without_steps(net).set_params(random_state=np.random.RandomState(seed))
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
                on_device = is_on_accelerator(samples)
                samples = samples.float() if on_device else np.asarray(samples, dtype=np.float32)
            history.append(net.predict(samples))

    former = net.callbacks
    if former != "disable":
        # First, since later callbacks are not called when one ends the training.
        net.set_params(callbacks=[("recorder", Recorder()), *(former or [])])
    # A net without a random_state draws from the global generator, which is restored.
    own = hasattr(net, "random_state")
    with nullcontext() if own else seed_torch(seed, net.device or "cpu"):
        net.fit(X, y, **weights)
    return history


# Activations of a trained network, layer by layer, and its predictions.

# Elements of the activations of all layers that are kept at a time: half a gigabyte of float32, a
# limit of memory and not of cache.
BLOCK_SIZE = 2**27
# Fraction of the free memory of an accelerator that activations may take. The search of a layer
# takes as much again, and the device has other work.
FREE_FRACTION = 0.5
MLP_ACTIVATIONS: dict[str, Callable] = {
    "identity": lambda z: z,
    "logistic": expit,
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
}


class Reading(NamedTuple):
    """Activations (n, d) of every layer for n samples, and the labels (n,) by the network."""

    layers: list[Any]
    final: NDArray


def _choose_labels(proba: Any, classes: NDArray) -> NDArray:
    """Return the label of the largest column: from `classes` where they fit, else its number."""
    n_columns = proba.shape[1]
    if len(classes) != n_columns:
        # More outputs than classes in y: labels that number the outputs are still unambiguous.
        if classes.dtype.kind not in "biu" or classes.min() < 0 or classes.max() >= n_columns:
            raise ValueError(
                f"estimator must have one output for every class, got {n_columns} outputs and "
                f"the classes {format_labels(classes)} in y."
            )
        classes = np.arange(n_columns)
    return classes[to_host(proba.argmax(1))]


def _compute_probabilities(logits: Any) -> Any:
    """Return the softmax of logits (n, K); a single column is read as (0, z)."""
    xp, _ = get_back_end(logits)
    if logits.shape[1] == 1:
        # A single logit belongs to the second class.
        logits = xp.concatenate([xp.zeros_like(logits), logits], 1)
    return softmax(logits, axis=1) if xp is np else logits.softmax(1)


class _MLPReader:
    """Linear operations of a scikit-learn MLP, before the activation, and its output."""

    device = None

    def __init__(self, model: MLPClassifier, layers: Any) -> None:
        known = [f"linear_{i}" for i in range(len(model.coefs_))]
        # The last one gives the logits, in the same order as the softmax that follows.
        self.names = known[:-1] if isinstance(layers, str) and layers == "auto" else list(layers)
        unknown = [name for name in self.names if name not in known]
        if unknown:
            raise ValueError(f"layers must name layers among {known}, got {unknown}.")
        self.model = model
        self.sizes = [model.coefs_[known.index(name)].shape[1] for name in self.names]

    def read(self, X: NDArray) -> Reading:
        found, hidden = {}, X
        activate = MLP_ACTIVATIONS[self.model.activation]
        for i, (coef, intercept) in enumerate(zip(self.model.coefs_, self.model.intercepts_)):
            found[f"linear_{i}"] = linear = hidden @ coef + intercept
            hidden = activate(linear)
        # The last linear operation gives the logits.
        proba = _compute_probabilities(linear)
        final = _choose_labels(proba, self.model.classes_)
        return Reading([X, *(found[name] for name in self.names), proba], final)


class _TorchReader:
    """Layers of a torch module, or of the module of a skorch net, through forward hooks.

    They are tensors on `device`, arrays where it is None.
    """

    def __init__(self, model: Any, layers: Any, X: Any, classes: NDArray, **options: Any):
        from ..embeddings import LayerEmbedder

        # One sample is enough to find names, sizes and the device.
        self.embedder = LayerEmbedder(FrozenEstimator(model), layers, **options).fit(X[:1])
        self.names = list(self.embedder.layer_names_)
        found = self.embedder.transform_layers(X[:1], output=True, as_tensors=True)
        self.sizes = [layer.shape[1] for layer in found[: len(self.names)]]
        self.device = found[-1].device if is_on_accelerator(found[-1]) else None
        self.model = model
        self.classes = np.asarray(getattr(model, "classes_", classes))

    def read(self, X: Any) -> Reading:
        on_device = self.device is not None
        layers = self.embedder.transform_layers(X, output=True, as_tensors=on_device)
        output = layers[-1]
        if is_skorch_net(self.model):
            proba = _compute_skorch_probabilities(self.model, output, X)
        else:
            xp, _ = get_back_end(output)
            proba = _compute_probabilities(xp.asarray(output, dtype=xp.float64))
        final = _choose_labels(proba, self.classes)
        return Reading([X.reshape(len(X), -1), *layers[: len(self.names)], proba], final)


def _compute_skorch_probabilities(net: Any, output: Any, X: Any) -> Any:
    """Return the result of `predict_proba`; the net decides whether outputs are logits."""
    for name in ("predict_proba", "forward_iter", "infer"):
        if getattr(type(net), name).__module__.split(".")[0] not in ("skorch", "skcalib"):
            return net.predict_proba(X)  # A method that the user overrides takes another pass.
    import torch

    return predict_nonlinearity(net)(torch.as_tensor(output)).reshape(len(X), -1)


def _project(projection: SparseRandomProjection, layer: Any) -> Any:
    """Return a layer (n, d) as (n, n_components), on its device."""
    xp, _ = get_back_end(layer)
    if xp is np:
        return projection.transform(layer)
    entries = projection.components_.tocoo()
    options = {"dtype": layer.dtype, "device": layer.device, "check_invariants": False}
    places = np.stack([entries.row, entries.col])
    # Some versions of torch warn that nothing is checked, although the options ask for that.
    with exact_products(layer), ignoring(UserWarning, "Sparse invariant checks"):
        matrix = xp.sparse_coo_tensor(places, entries.data, entries.shape, **options)
        return xp.sparse.mm(matrix, layer.T).T


def _make_empty(n_samples: int, layer: Any) -> Any:
    """Return an uninitialized (n_samples, d) of the type and device of a layer."""
    shape = (n_samples, layer.shape[1])
    return np.empty(shape, layer.dtype) if get_back_end(layer)[0] is np else layer.new_empty(shape)


class ActivationReader:
    """Read a trained network, block by block.

    Activations of a network on an accelerator stay there as tensors, together with the input, if
    `as_tensors` and if those of all samples take at most half of its free memory. Otherwise they
    are arrays.

    The model is an MLPClassifier, a skorch net, a torch.nn.Module or a Pipeline that ends in one.
    The first sample of X is run through it. `classes` are the labels of its outputs, for a model
    without `classes_`. Other options are those of PredictionDepthScorer.
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        classes: NDArray,
        *,
        as_tensors: bool,
        layers: Any,
        pooling: Any,
        batch_size: int,
        n_components: int | None,
        random_state: np.random.RandomState,
    ) -> None:
        self.model = model
        network, _ = get_last_step(model)
        sample = self._enter(X[:1])
        self.shape = tuple(sample.shape[1:])
        if isinstance(network, MLPClassifier):
            self.reader: Any = _MLPReader(network, layers)
        else:
            self.reader = _TorchReader(
                network, layers, sample, classes, pooling=pooling, batch_size=batch_size
            )
        self.names = ["input", *self.reader.names, "softmax"]
        sizes = [prod(self.shape), *self.reader.sizes]
        # One for the input and each layer; the softmax keeps its columns. A random projection
        # learns only a size from what it is fitted to.
        self.projections = [
            None
            if n_components is None or size <= n_components
            else SparseRandomProjection(n_components, random_state=random_state).fit(
                np.zeros((1, size), dtype=np.float32)
            )
            for size in sizes
        ]
        self.block_size = max(64, BLOCK_SIZE // sum(sizes))
        kept = [min(size, n_components or size) for size in sizes]
        if not (as_tensors and self._fits(len(X), sample, kept)):
            self.reader.device = None

    def _fits(self, n_samples: int, sample: Any, sizes: list[int]) -> bool:
        """Return whether the activations of all samples fit on the accelerator of the network."""
        device = self.reader.device
        if device is None:
            return False
        # The input may be in float64; layers are in float32.
        n_bytes = put_floats_on(device, sample).itemsize * sizes[0] + 4 * sum(sizes[1:])
        return n_samples * n_bytes <= FREE_FRACTION * count_free_bytes(device)

    def _enter(self, X: Any) -> Any:
        """Return the samples after the other steps of the Pipelines, as the network gets them."""
        model = self.model
        while isinstance(model, Pipeline):
            # The slice of a Pipeline of a network alone is empty.
            X = model[:-1].transform(X) if len(model) > 1 else X
            model = model[-1]
        if is_on_accelerator(X):
            return X
        return X.toarray() if issparse(X) else np.asarray(X)

    def read(self, X: Any) -> Iterator[tuple[slice, Reading]]:
        """Yield (samples, reading) for consecutive blocks."""
        for block in gen_batches(len(X), self.block_size):
            entered = self._enter(X[block])
            shape = tuple(entered.shape[1:])
            if shape != self.shape:
                raise ValueError(
                    f"X must hold samples of shape {self.shape}, as in fit, got shape {shape}."
                )
            reading = self.reader.read(entered)
            layers = [put_floats_on(self.reader.device, layer) for layer in reading.layers]
            # The search is in float32, where smaller probabilities are 0.
            layers[-1] = layers[-1] * (layers[-1] >= np.finfo(np.float32).tiny)
            for i, projection in enumerate(self.projections):
                if projection is not None:
                    layers[i] = _project(projection, layers[i])
            yield block, Reading(layers, reading.final)

    def read_all(self, X: Any) -> Reading:
        """Return the reading of all samples, to which the probes are fitted."""
        kept: list[Any] = []
        answers = []
        for block, reading in self.read(X):
            kept = kept or [_make_empty(len(X), layer) for layer in reading.layers]
            for whole, layer in zip(kept, reading.layers):
                whole[block] = layer
            answers.append(reading.final)
        return Reading(kept, np.concatenate(answers))


def put_floats_on(device: Any, values: Any) -> Any:
    """Return numbers as float32 or float64: a tensor on `device`, or an array where it is None."""
    if device is None or isinstance(values, np.ndarray):
        array = to_host(values)
        array = array.astype(np.result_type(array, np.float32), copy=False)
        if device is None:
            return array
        # torch has no negative strides.
        return sys.modules["torch"].tensor(np.ascontiguousarray(array), device=device)
    return TensorRows(values)[:].to(device)


def count_free_bytes(device: Any) -> float:
    """Return the memory that tensors may still take on a device; infinity if unknown."""
    memory = getattr(sys.modules["torch"], device.type)
    if not hasattr(memory, "mem_get_info"):
        return math.inf
    # The device counts what torch keeps for later tensors as taken.
    kept = memory.memory_reserved(device) - memory.memory_allocated(device)
    return memory.mem_get_info(device)[0] + kept
