"""Activations of the layers of a torch module as features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from numbers import Integral
from typing import Any, ClassVar, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, gen_batches
from sklearn.utils.validation import check_is_fitted

from ..utils._features import validate_data
from ..utils._private import Interval, StrOptions, _check_feature_names_in, _fit_context
from ._hooks import check_layers, record_layers, to_input, torch_module
from ._placement import place_layers


class LayerEmbedder(TransformerMixin, BaseEstimator):
    """Activations of named layers of a torch module, one row a sample.

    The module is run batch by batch, without gradients and in evaluation mode; forward hooks
    copy the activations of the chosen layers into one float32 array. The module is left as it
    was: its hooks are removed and every part has its train or eval mode back, also after an
    error. Nothing is trained: `fit` runs the module on one row, to find the layers and their
    sizes.

    Parameters
    ----------
    module : torch.nn.Module, fitted skorch net, or FrozenEstimator of either
        The network. It stays on its device; batches are moved there. A skorch net stands for
        its ``module_``. :func:`~sklearn.base.clone` copies a module together with its
        weights, but resets a skorch net: wrap a net in
        :class:`~sklearn.frozen.FrozenEstimator` where clones are made (in cross-validation).
    layers : str or sequence of str, default="auto"
        Names of submodules as in ``module.named_modules()``, in the order of the output; the
        empty name is the module itself, that is, its output. A layer that runs several times
        in one pass gives its last output; one that returns a tuple gives its first tensor.
        "auto" takes, in the order in which they run, the linear and convolution operations
        outside of residual blocks (before batch normalization and activation) and the residual
        blocks (outermost submodules whose own forward adds two activations). It leaves out
        the input, the operation that yields the logits (unless it is the only one) and the
        output. This is the placement of [1]_, Appendix A.5, without its probes on the input
        and on the softmax, which are left to the caller.
    pooling : None, "mean" or callable, default=None
        What becomes of an activation of more than two axes. None flattens it. "mean" averages
        over space: (n, channels, ...) becomes (n, channels), and a sequence (n, tokens,
        channels) becomes (n, channels); three axes are read as a sequence, unless the layer is
        a 1-D convolution. A callable gets the activation, a tensor (n, ...), and returns one
        with n rows, for layouts that this rule misreads.
    batch_size : int, default=256
        Samples a pass.

    Attributes
    ----------
    layer_names_ : list of str
        The embedded layers.
    layer_sizes_ : list of int
        Features of each of them.
    n_features_in_ : int
        Length of the second axis of X.
    feature_names_in_ : ndarray of shape (`n_features_in_`,)
        Names of the columns of X, where it is a DataFrame.

    See Also
    --------
    TimmEmbedder : Models of timm.
    OpenClipEmbedder : Models of open_clip, which embed texts as well.
    skcalib.difficulty.PredictionDepthScorer : Probes on the layers of a network.

    References
    ----------
    .. [1] R. Baldock, H. Maennel, B. Neyshabur, "Deep Learning Through the Lens of Example
       Difficulty", NeurIPS 2021, Appendix A.5.

    Examples
    --------
    >>> import numpy as np
    >>> from torch import nn
    >>> from skcalib.embeddings import LayerEmbedder
    >>> net = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 6), nn.Linear(6, 3))
    >>> X = np.zeros((10, 4), dtype=np.float32)
    >>> embedder = LayerEmbedder(net).fit(X)
    >>> embedder.layer_names_
    ['0', '2']
    >>> embedder.transform(X).shape
    (10, 14)
    >>> [layer.shape for layer in embedder.transform_layers(X, output=True)]
    [(10, 8), (10, 6), (10, 3)]
    """

    _parameter_constraints: ClassVar[dict[str, list[Any]]] = {
        "module": [object],
        "layers": [str, "array-like"],
        "pooling": [None, StrOptions({"mean"}), callable],
        "batch_size": [Interval(Integral, 1, None, closed="left")],
    }

    def __init__(
        self,
        module: object,
        layers: str | Sequence[str] = "auto",
        *,
        pooling: str | Callable[[torch.Tensor], torch.Tensor] | None = None,
        batch_size: int = 256,
    ) -> None:
        self.module = module
        self.layers = layers
        self.pooling = pooling
        self.batch_size = batch_size

    @_fit_context(prefer_skip_nested_validation=True)
    def fit(self, X: ArrayLike | torch.Tensor, y: object = None) -> Self:
        """Find the layers and their sizes by running the module on the first row of X.

        Parameters
        ----------
        X : array-like or torch.Tensor of shape (n_samples, ...)
            Input of the module. Numbers are cast to the floating type of the module; a tensor
            of integers (tokens) is passed as it is.
        y : Ignored
            Present for the API of scikit-learn.

        Returns
        -------
        self : LayerEmbedder
            The fitted transformer.

        Raises
        ------
        TypeError
            If `module` is neither a torch module nor a skorch net that has one.
        ValueError
            If a layer does not exist, does not run, or does not give one row a sample.
        """
        module = torch_module(self.module)
        row = self._check_input(X, reset=True)[:1]
        if isinstance(self.layers, str) and self.layers == "auto":
            # The row twice: of one, a bias would have the shape of an activation.
            self.layer_names_ = place_layers(module, to_input(row, module)[[0, 0]])
            if not self.layer_names_:
                raise ValueError(
                    "layers must name submodules where a module has no linear or convolution "
                    f'operation and no residual block, got "auto" for {type(module).__name__}.'
                )
        else:
            names = [self.layers] if isinstance(self.layers, str) else list(self.layers)
            self.layer_names_ = check_layers(names, module)
        self.layer_sizes_ = [a.shape[1] for a in self._record(row, self.layer_names_)]
        return self

    def transform(self, X: ArrayLike | torch.Tensor) -> NDArray[np.float32]:
        """Return the activations of all layers side by side.

        Parameters
        ----------
        X : array-like or torch.Tensor of shape (n_samples, ...)
            Input of the module.

        Returns
        -------
        features : ndarray of shape (n_samples, `sum(layer_sizes_)`), float32
            Layer after layer, in the order of `layer_names_`.
        """
        check_is_fitted(self)
        X = self._check_input(X, reset=False)
        features = np.empty((len(X), sum(self.layer_sizes_)), dtype=np.float32)
        # Views of one array, which _fill writes into: no copy at the end.
        columns = np.split(features, np.cumsum(self.layer_sizes_)[:-1], axis=1)
        self._fill(columns, X, self.layer_names_)
        return features

    def transform_layers(
        self, X: ArrayLike | torch.Tensor, *, output: bool = False
    ) -> list[NDArray[np.float32]]:
        """Return the activations of each layer in an array of its own.

        Parameters
        ----------
        X : array-like or torch.Tensor of shape (n_samples, ...)
            Input of the module.
        output : bool, default=False
            Whether to append the output of the module itself, of the same pass.

        Returns
        -------
        layers : list of ndarray of shape (n_samples, `layer_sizes_[l]`), float32
            In the order of `layer_names_`; with `output`, one more.
        """
        check_is_fitted(self)
        X = self._check_input(X, reset=False)
        names, sizes = self.layer_names_, self.layer_sizes_
        if output:
            # torch's name of the module itself in named_modules.
            names = [*names, ""]
            sizes = [*sizes, self._record(X[:1], [""])[0].shape[1]]
        layers = [np.empty((len(X), size), dtype=np.float32) for size in sizes]
        self._fill(layers, X, names)
        return layers

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Return ``<layer>_<index>`` for every feature (``output_<index>`` for the module itself).

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Only checked against `feature_names_in_`.

        Returns
        -------
        names : ndarray of shape (`sum(layer_sizes_)`,), object
            Names of the columns that `transform` returns.
        """
        check_is_fitted(self)
        _check_feature_names_in(self, input_features, generate_names=False)
        return np.asarray(
            [
                f"{name or 'output'}_{i}"
                for name, size in zip(self.layer_names_, self.layer_sizes_)
                for i in range(size)
            ],
            dtype=object,
        )

    def _check_input(self, X: ArrayLike | torch.Tensor, *, reset: bool) -> NDArray | torch.Tensor:
        """Return X as an array of numbers, or the tensor as it is; batches are cast, not X."""
        if not isinstance(X, torch.Tensor):
            return validate_data(self, X, reset=reset, dtype="numeric", allow_nd=True)
        if X.ndim < 2 or len(X) == 0:
            raise ValueError(
                "X must be a tensor of two axes or more and at least one row, "
                f"got shape {tuple(X.shape)}."
            )
        if X.is_floating_point() and not bool(torch.isfinite(X).all()):
            raise ValueError("X must be finite, got NaN or infinity.")
        if reset:
            self.n_features_in_ = X.shape[1]
        elif X.shape[1] != self.n_features_in_:
            raise ValueError(
                f"X has {X.shape[1]} features, but {type(self).__name__} is expecting "
                f"{self.n_features_in_} features as input."
            )
        return X

    def _record(self, X: NDArray | torch.Tensor, names: list[str]) -> list[NDArray[np.float32]]:
        module = torch_module(self.module)
        return record_layers(module, to_input(X, module), names, self.pooling)

    def _fill(
        self, layers: list[NDArray[np.float32]], X: NDArray | torch.Tensor, names: list[str]
    ) -> None:
        for batch in gen_batches(len(X), self.batch_size):
            for layer, name, rows in zip(layers, names, self._record(X[batch], names)):
                if rows.shape[1] != layer.shape[1]:
                    raise ValueError(
                        f"layer {name!r} must give equally many features for all samples, got "
                        f"{rows.shape[1]} for rows {batch.start} to {batch.stop - 1} and "
                        f"{layer.shape[1]} for others."
                    )
                layer[batch] = rows

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.input_tags.three_d_array = True
        return tags
