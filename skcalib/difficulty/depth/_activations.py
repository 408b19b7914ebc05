"""Activations of a trained network, layer by layer, and its final answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.frozen import FrozenEstimator
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import Pipeline
from sklearn.random_projection import SparseRandomProjection
from sklearn.utils import gen_batches

from ._network import is_skorch_net, last_step

# Activations in memory at once, apart from those that are kept: half a gigabyte of float32.
BLOCK_SIZE = 2**27
MLP_ACTIVATIONS: dict[str, Callable] = {
    "identity": lambda z: z,
    "logistic": expit,
    "tanh": np.tanh,
    "relu": lambda z: np.maximum(z, 0),
}


class Reading(NamedTuple):
    """What the network makes of a block of rows: one array (n, d) a layer, and labels (n,)."""

    layers: list[NDArray]
    final: NDArray


def _label_columns(proba: NDArray, classes: NDArray) -> NDArray:
    """Return the label of the largest column: of `classes` where they fit, else its number."""
    n_columns = proba.shape[1]
    if len(classes) != n_columns:
        if classes.dtype.kind not in "biu" or classes.min() < 0 or classes.max() >= n_columns:
            raise ValueError(
                f"estimator must have one output a class: it has {n_columns} outputs, and y has "
                f"the {len(classes)} classes {classes.tolist()[:10]}."
            )
        classes = np.arange(n_columns)
    return classes[proba.argmax(axis=1)]


def _probabilities(logits: NDArray) -> NDArray:
    if logits.shape[1] == 1:
        positive = expit(logits)
        return np.hstack([1 - positive, positive])
    return softmax(logits, axis=1)


class _MLPReader:
    """Linear operations of a scikit-learn MLP, before the activation, and its output."""

    def __init__(self, model: MLPClassifier, layers: Any) -> None:
        known = [f"linear_{i}" for i in range(len(model.coefs_))]
        self.names = known if isinstance(layers, str) and layers == "auto" else list(layers)
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
        proba = _probabilities(linear)
        final = _label_columns(proba, self.model.classes_)
        return Reading([X, *(found[name] for name in self.names), proba], final)


class _TorchReader:
    """Layers of a torch module, or of the module of a skorch net, through forward hooks."""

    def __init__(self, model: Any, layers: Any, X: NDArray, classes: NDArray, **options: Any):
        from ...embeddings import LayerEmbedder

        self.embedder = LayerEmbedder(FrozenEstimator(model), layers, **options).fit(X[:1])
        self.with_output = isinstance(layers, str) and layers == "auto"
        self.names = [*self.embedder.layer_names_, *["output"] * self.with_output]
        self.sizes = [layer.shape[1] for layer in self._layers(X[:1])[: len(self.names)]]
        self.model = model
        self.classes = getattr(model, "classes_", classes)

    def _layers(self, X: NDArray) -> list[NDArray]:
        return self.embedder.transform_layers(X, output=True)

    def read(self, X: NDArray) -> Reading:
        layers = self._layers(X)
        logits = layers[-1]
        if is_skorch_net(self.model):  # It knows what its module gives: logits or probabilities.
            proba = self.model.predict_proba(X)
        else:
            proba = _probabilities(logits.astype(np.float64))
        final = _label_columns(proba, np.asarray(self.classes))
        return Reading([X.reshape(len(X), -1), *layers[: len(self.names)], proba], final)


class ActivationReader:
    """Read a trained network in blocks of rows.

    Parameters
    ----------
    model : MLPClassifier, skorch net, torch.nn.Module, or Pipeline that ends in one of them
        The trained network.
    X : array-like
        Its input; the first rows are run through it.
    classes : ndarray of shape (n_classes,)
        Labels of the outputs of a model that does not know them itself.
    layers, pooling, batch_size, n_components, random_state
        As in PredictionDepthScorer.
    """

    def __init__(
        self,
        model: Any,
        X: Any,
        classes: NDArray,
        *,
        layers: Any,
        pooling: Any,
        batch_size: int,
        n_components: int | None,
        random_state: np.random.RandomState,
    ) -> None:
        self.steps = model[:-1] if isinstance(model, Pipeline) and len(model) > 1 else None
        network = last_step(model)
        row = self._enter(X[:1])
        if isinstance(network, MLPClassifier):
            self.reader: Any = _MLPReader(network, layers)
        else:
            self.reader = _TorchReader(
                network, layers, row, classes, pooling=pooling, batch_size=batch_size
            )
        self.names = ["input", *self.reader.names, "softmax"]
        self.projections = [
            None
            if n_components is None or size <= n_components
            else SparseRandomProjection(
                n_components, dense_output=True, random_state=random_state
            ).fit(np.zeros((1, size), dtype=np.float32))
            for size in [int(np.prod(row.shape[1:])), *self.reader.sizes]
        ]
        self.block_rows = max(64, BLOCK_SIZE // (sum(self.reader.sizes) + row.size))

    def _enter(self, X: Any) -> NDArray:
        entered = X if not self.steps else self.steps.transform(X)
        return entered.toarray() if issparse(entered) else np.asarray(entered)

    def read(self, X: Any) -> Iterator[tuple[slice, Reading]]:
        """Yield (rows, reading) for consecutive blocks of rows."""
        for rows in gen_batches(len(X), self.block_rows):
            layers, final = self.reader.read(self._enter(X[rows]))
            for i, projection in enumerate(self.projections):
                if projection is not None:
                    layers[i] = projection.transform(layers[i])
            yield rows, Reading(layers, final)

    def read_all(self, X: Any) -> list[NDArray]:
        """Return the activations of all rows: what the probes are fitted to."""
        kept: list[NDArray] = []
        for rows, reading in self.read(X):
            if not kept:
                kept = [
                    np.empty((len(X), layer.shape[1]), np.result_type(layer, np.float32))
                    for layer in reading.layers
                ]
            for whole, layer in zip(kept, reading.layers):
                whole[rows] = layer
        return kept
