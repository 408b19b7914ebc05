"""Activations of the layers of a torch module as features."""

from __future__ import annotations

import copyreg
import io
import pickle
from collections.abc import Callable, Iterator, Sequence
from numbers import Integral
from types import SimpleNamespace
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags, gen_batches
from sklearn.utils.validation import check_is_fitted

from ..utils._compat import Interval, StrOptions, _check_feature_names_in, _fit_context
from ..utils._estimators import VersionMixin, validate_data
from ._hooks import check_layers, get_torch_module, place_layers, record_layers, to_input


class _Saved(NamedTuple):
    """What torch.save writes of a module or net."""

    content: bytes


class _Pickler(pickle._Pickler):  # that of C has no `memoize`
    """Pickles equal objects to equal bytes; torch.save writes their tensors beside them."""

    def memoize(self, obj: Any) -> None:
        # Whether two equal texts are one object differs between copies.
        if not isinstance(obj, str | bytes):
            super().memoize(obj)  # type: ignore[misc]

    def reducer_override(self, obj: Any) -> Any:
        # A skorch net pickles its modules on its own, with the addresses of their tensors.
        if hasattr(type(obj), "cuda_dependent_attributes_"):
            return copyreg.__newobj__, (type(obj),), vars(obj), None, None, _set_net  # type: ignore[attr-defined]
        return NotImplemented


def _set_net(net: Any, state: dict[str, Any]) -> None:
    """Give a net its attributes; without a GPU, the CPU is its device."""
    vars(net).update(state)
    if str(net.device).startswith("cuda") and not torch.cuda.is_available():
        net.device = "cpu"


def _to_bytes(module: Any) -> bytes:
    file = io.BytesIO()
    torch.save(module, file, pickle_module=SimpleNamespace(__name__=__name__, Pickler=_Pickler))
    return file.getvalue()


class LayerEmbedder(TransformerMixin, VersionMixin, BaseEstimator):
    """Activations of named layers of a torch module, one row per sample.

    The module runs batch by batch, without gradients and in evaluation mode; forward hooks copy
    the activations of the chosen layers into one float32 array. Afterwards, even after an error,
    the module is as it was. Nothing is trained: `fit` runs the module on one row to find the
    layers and their sizes.

    Parameters
    ----------
    module : torch.nn.Module, fitted skorch net, or FrozenEstimator of either
        The network. It stays on its device; batches are moved there. Of a skorch net, its
        ``module_``. :func:`~sklearn.base.clone`, as in cross-validation, copies a module with its
        weights, but resets a skorch net: wrap a net in :class:`~sklearn.frozen.FrozenEstimator`.
    layers : str or sequence of str, default="auto"
        Names of submodules as in ``module.named_modules()``, in the order of the output; the empty
        name is the output of the module itself. A layer that runs several times in one pass gives
        its last output; one that returns a tuple gives its first tensor. ``"layer1.0:sum"`` is the
        sum in the residual block ``"layer1.0"``, before an activation that may follow. "auto"
        takes what runs, in this order: linear and convolution operations outside residual blocks,
        before activation, and the sums of residual blocks (the outermost submodules that add two
        activations). In a network with such blocks, a convolution outside them is read after the
        normalization of its output. "auto" leaves out the operation that yields the logits, unless
        it is the only one. This is the placement of [1]_, Appendix A.5, without its probes on the
        input and on the softmax.
    pooling : None, "mean" or callable, default=None
        How to reduce an activation of more than two axes. None flattens it. "mean" averages
        over space: (n, channels, ...) and sequences (n, tokens, channels) become (n, channels);
        three axes are a sequence, unless the layer is a 1-D convolution. For other layouts, a
        callable takes the activation, a tensor (n, ...), and returns one with n rows.
    batch_size : int, default=256
        Samples per pass.

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
       Difficulty", NeurIPS 2021, Appendix A.5. Calls: :ref:`paper-depth`.

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
        y : None, default=None
            Ignored; for the interface of scikit-learn.

        Returns
        -------
        self : LayerEmbedder
            The fitted transformer.

        Raises
        ------
        TypeError
            If `module` is neither a torch module nor a skorch net that has one.
        ValueError
            If a layer does not exist, does not run, or does not give one row per sample.
        """
        module = get_torch_module(self.module)
        row = self._check_input(X, reset=True)[:1]
        try:
            self.layer_names_ = self._find_layers(module, row)
            self.layer_sizes_ = [a.shape[1] for a in self._record(row, self.layer_names_)]
        except RuntimeError as error:
            raise ValueError(
                f"X must be input that {type(module).__name__} can take, got samples of shape "
                f"{tuple(row.shape[1:])}: {error}"
            ) from error
        return self

    def _find_layers(self, module: torch.nn.Module, row: NDArray | torch.Tensor) -> list[str]:
        """Return the checked names in `layers` or, for "auto", those that the rule selects."""
        if isinstance(self.layers, str) and self.layers == "auto":
            # The row twice: with one, a bias would have the shape of an activation.
            names = place_layers(module, to_input(row, module)[[0, 0]])
            if not names:
                raise ValueError(
                    "layers must name submodules where a module has no linear or convolution "
                    f'operation and no residual block, got "auto" for {type(module).__name__}.'
                )
            return names
        names = [self.layers] if isinstance(self.layers, str) else list(self.layers)
        return check_layers(names, module)

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
        features = torch.empty((len(X), sum(self.layer_sizes_)), dtype=torch.float32, device="cpu")
        # Views of one tensor: no copy at the end.
        columns = features.split(self.layer_sizes_, dim=1)
        for batch, parts in self._batches(X, self.layer_names_):
            for column, part in zip(columns, parts):
                column[batch] = part
        return features.numpy()

    def transform_layers(
        self, X: ArrayLike | torch.Tensor, *, output: bool = False, as_tensors: bool = False
    ) -> list[Any]:
        """Return the activations of each layer in an array of its own.

        Parameters
        ----------
        X : array-like or torch.Tensor of shape (n_samples, ...)
            Input of the module.
        output : bool, default=False
            Whether to append the output of the module itself, of the same pass.
        as_tensors : bool, default=False
            Whether to leave the activations where the module computes them, on a GPU for
            example, as tensors.

        Returns
        -------
        layers : list of ndarray of shape (n_samples, `layer_sizes_[l]`), float32
            In the order of `layer_names_`; with `output`, one more. Tensors with `as_tensors`.
        """
        check_is_fitted(self)
        X = self._check_input(X, reset=False)
        # The empty name is the module itself, as in its named_modules.
        names = [*self.layer_names_, ""] if output else self.layer_names_
        layers: list[torch.Tensor] = []
        for batch, parts in self._batches(X, names):
            if not layers:
                device = None if as_tensors else "cpu"  # None: that of the activations
                layers = [p.new_empty((len(X), p.shape[1]), device=device) for p in parts]
            for layer, part in zip(layers, parts):
                layer[batch] = part
        return layers if as_tensors else [layer.numpy() for layer in layers]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray:
        """Return the names of the features of `transform`.

        Parameters
        ----------
        input_features : array-like of str or None, default=None
            Names of the columns of X, only compared with `feature_names_in_`.

        Returns
        -------
        names : ndarray of str objects
            ``<layer>_<index>``; ``output_<index>`` for the output of the module itself.
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
        # The values stay on their device: scikit-learn checks an array of their shape in place of
        # X, which takes no memory.
        stand_in = np.broadcast_to(0.0, tuple(X.shape))
        validate_data(self, stand_in, reset=reset, allow_nd=True, ensure_all_finite=False)
        if X.is_floating_point() and not bool(torch.isfinite(X).all()):
            raise ValueError("X must be finite, got NaN or infinity.")
        return X

    def _record(self, X: NDArray | torch.Tensor, names: list[str]) -> list[torch.Tensor]:
        """Return the activations of these layers for a batch, float32 (n, size) each."""
        module = get_torch_module(self.module)
        return record_layers(module, to_input(X, module), names, self.pooling)

    def _batches(
        self, X: NDArray | torch.Tensor, names: list[str]
    ) -> Iterator[tuple[slice, list[torch.Tensor]]]:
        """Yield (samples, activations of every layer) for batch after batch."""
        sizes = list(self.layer_sizes_)
        for batch in gen_batches(len(X), self.batch_size):
            parts = self._record(X[batch], names)
            # `layer_sizes_` lacks the size of the output.
            sizes += [part.shape[1] for part in parts[len(sizes) :]]
            for name, part, size in zip(names, parts, sizes):
                if part.shape[1] != size:
                    raise ValueError(
                        f"layer {name!r} must give equally many features for all samples, got "
                        f"{part.shape[1]} for rows {batch.start} to {batch.stop - 1} and "
                        f"{size} for others."
                    )
            yield batch, parts

    def __getstate__(self) -> dict[str, Any]:
        # joblib, which a Pipeline with `memory` asks, hashes what is pickled. A tensor is pickled
        # with the address of its memory, and no copy would ever be found; these bytes depend on
        # the numbers alone.
        state = super().__getstate__()
        try:
            return state | {"module": _Saved(_to_bytes(self.module))}
        except (pickle.PicklingError, AttributeError, TypeError):  # a lambda in it, for example
            return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        module = state["module"]
        if isinstance(module, _Saved):
            # A pickle is trusted as a whole, or not loaded at all.
            device = None if torch.cuda.is_available() else "cpu"
            file = io.BytesIO(module.content)
            module = torch.load(file, map_location=device, weights_only=False)
        super().__setstate__(state | {"module": module})

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.transformer_tags.preserves_dtype = ["float32"]
        tags.input_tags.three_d_array = True
        return tags
