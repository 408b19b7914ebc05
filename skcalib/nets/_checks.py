"""Checks of the arguments of `fit`, and of failures that a training would not show."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from scipy import sparse
from sklearn.utils.class_weight import compute_class_weight
from skorch.helper import SliceDataset
from skorch.utils import to_numpy
from torch import Tensor, nn
from torch.nn.utils import get_total_norm
from torch.utils.data import Dataset, IterableDataset, Subset, TensorDataset

from ..utils._arrays import check_numbers, check_weights
from ..utils._backends import is_on_accelerator
from ..utils._estimators import validate_data, validate_rows
from ..utils._labels import check_class_labels, encode_groups, get_column_names, match_names
from ..utils._output import warn
from ..utils._proba import check_proba_matrix
from ._data import FitInputs

# Check the arguments of `fit`, and convert them to the form that skorch reads.


def check_X(net: Any, X: Any, *, reset: bool) -> Any:
    """Return arrays and data frames as finite float32, and other inputs of skorch unchanged.

    A module in float64 that is given as an instance gets float64.
    """
    dtype = np.float64 if _is_double(getattr(net, "module", None)) else np.float32
    # Tensors of integers are tokens for an embedding, not a table.
    if isinstance(X, Tensor) and X.is_floating_point():
        if is_on_accelerator(X):
            rows = validate_rows(net, X, reset=reset, allow_nd=True).tensor
            return rows.double() if dtype is np.float64 else rows.float()
        if X.device.type == "cpu":
            X = X.detach().numpy()
    if isinstance(X, Dataset | SliceDataset | Mapping | tuple | Tensor) and not sparse.issparse(X):
        return X
    X = validate_data(net, X, reset=reset, dtype=dtype, accept_sparse="csr", allow_nd=True)
    # A row of a sparse array has one dimension, which skorch's Dataset does not expect.
    return sparse.csr_matrix(X) if sparse.issparse(X) else X


def _is_double(module: Any) -> bool:
    """Return whether a module, given as an instance, computes in float64."""
    parameters = module.parameters() if isinstance(module, nn.Module) else ()
    return next((p.dtype for p in parameters if p.is_floating_point()), None) == torch.float64


def check_y(y: Any, n_samples: int) -> NDArray[Any]:
    """Return `y` as an array of `n_samples` class labels."""
    labels = check_class_labels(to_numpy(y) if isinstance(y, Tensor | SliceDataset) else y)
    if len(labels) != n_samples:
        raise ValueError(
            f"X and y must have the same number of samples, got {n_samples} and {len(labels)}."
        )
    # torch takes only numbers in the native byte order.
    return labels.astype(labels.dtype.newbyteorder("="), copy=False)


def get_labels(dataset: Any) -> Any:
    """Return the labels that a dataset has in an attribute, None if it has none."""
    if isinstance(dataset, Subset):
        labels = get_labels(dataset.dataset)
        return None if labels is None else np.asarray(labels)[np.asarray(dataset.indices)]
    if isinstance(dataset, TensorDataset):  # by convention the last of its tensors
        return dataset.tensors[-1]
    for name in ("y", "targets", "labels"):
        if getattr(dataset, name, None) is not None:
            return getattr(dataset, name)
    return None


def get_sizes(X: Any) -> dict[str, int]:
    """Return `n_features` and `n_channels` of a sample, {} where X has no shape."""
    if isinstance(X, IterableDataset):  # the first sample of a stream may come only once
        shape: tuple[int, ...] = ()
    elif isinstance(X, Dataset | SliceDataset):
        # An item of a dataset is a pair (x, y), that of a slice is x alone.
        sample = X[0][0] if isinstance(X, Dataset) else X[0]
        shape = tuple(getattr(sample, "shape", ()))
    else:
        shape = tuple(X.shape[1:]) if hasattr(X, "shape") else ()
    return {"n_features": math.prod(shape), "n_channels": shape[0]} if shape else {}


def check_inputs(
    n_samples: int,
    classes: NDArray[Any],
    *,
    sample_weight: ArrayLike | None = None,
    difficulty_weight: ArrayLike | None = None,
    target_proba: ArrayLike | None = None,
    groups: Any = None,
) -> FitInputs:
    """Return the checked values of all samples: float32 tensors, and codes of the groups."""
    weight = check_weights(sample_weight, n_samples)
    difficulty = None
    if difficulty_weight is not None:
        difficulty = check_numbers(difficulty_weight, "difficulty_weight", ndim=(1,))
        if len(difficulty) != n_samples:
            raise ValueError(
                f"difficulty_weight must have shape ({n_samples},), got shape {difficulty.shape}."
            )
    return FitInputs(
        n_samples,
        _as_tensor("sample_weight", weight),
        _as_tensor("difficulty_weight", difficulty),
        None if target_proba is None else _check_target(target_proba, n_samples, classes),
        None if groups is None else encode_groups(groups, n_samples)[1],
    )


def _check_target(target_proba: ArrayLike, n_samples: int, classes: NDArray[Any]) -> Tensor:
    """Return class probabilities as float32, (n, K), with columns in the order of `classes`."""
    proba = check_proba_matrix(target_proba, name="target_proba")
    if proba.shape != (n_samples, len(classes)):
        raise ValueError(
            f"target_proba must have shape ({n_samples}, {len(classes)}), a column for every "
            "label of y or, where it may lack one, of the parameter classes of the net, got shape "
            f"{proba.shape}."
        )
    names = get_column_names(target_proba)
    if names is not None:
        proba, _ = match_names(proba, names, classes, classes, name="target_proba")
    # A copy only of another type or of what is read-only, as joblib's memory-mapped arrays are.
    return torch.from_numpy(np.require(proba, np.float32, "W"))


def check_difficulty_weight(difficulty_weight: Tensor | None) -> None:
    """Raise unless difficulty weights are in [0, 1], as the losses that use them require."""
    if difficulty_weight is None:
        return  # the loss itself raises if it needs them
    fault = (difficulty_weight < 0) | (difficulty_weight > 1)
    if fault.any():
        sample = int(fault.int().argmax())
        raise ValueError(
            "difficulty_weight must be in [0, 1], as skcalib.difficulty.difficulty_weights makes "
            f"of a difficulty, got {float(difficulty_weight[sample]):g} for sample {sample}."
        )


def _as_tensor(name: str, values: NDArray[Any] | None) -> Tensor | None:
    """Return values as float32, None as it is; values beyond its range are an error."""
    if values is None:
        return None
    with np.errstate(over="ignore", under="ignore"):
        single = values.astype(np.float32)
    # Losses are computed in float32, where 1e39 is infinite and 1e-46 is 0.
    if not np.isfinite(single).all() or (values.any() and not single.any()):
        raise ValueError(
            f"{name} must be in the range of float32, got a largest value of {values.max():g}."
        )
    return torch.from_numpy(single)


def weigh_classes(
    class_weight: Mapping[Any, float] | str,
    y: NDArray[Any] | None,
    sample_weight: ArrayLike | None,
) -> NDArray[np.float64]:
    """Return the weights of the samples times those of their classes, as in scikit-learn."""
    if y is None:
        raise ValueError(f"class_weight must be None without y, got {class_weight!r}.")
    given = check_weights(sample_weight, len(y))
    weight = np.ones(len(y)) if given is None else given
    used = weight > 0  # "balanced" gives their classes the same total weight
    classes, label = np.unique(y[used], return_inverse=True)
    of_class = compute_class_weight(
        class_weight, classes=classes, y=y[used], sample_weight=weight[used]
    )
    weighted = np.zeros(len(y))
    weighted[used] = weight[used] * of_class[label]
    check_weights(weighted, len(y), name="class_weight")
    return weighted


def check_streamed(net: Any, X: Any, of_samples: Mapping[str, Any]) -> None:
    """Raise where a fit on an IterableDataset needs to know which sample is which."""
    also = {"prioritizer": net.prioritizer, "class_weight": net.class_weight}
    named = [name for name, value in {**also, **of_samples}.items() if value is not None]
    if isinstance(X, IterableDataset) and named:
        raise ValueError(
            f"X must be a dataset with a length where {', '.join(named)} must be matched with its "
            f"samples, got {type(X).__name__}, an IterableDataset."
        )


def check_no_sampler(net: Any) -> None:
    """Raise where both a sampler and a prioritizer would choose the samples of an epoch."""
    params = net.get_params_for("iterator_train")
    for name in ("sampler", "batch_sampler"):
        if params.get(name) is not None:
            raise ValueError(
                f"iterator_train__{name} must be left out with a prioritizer, which chooses the "
                f"samples of every epoch itself, got a {type(params[name]).__name__}."
            )


def check_class_names(classes: Any) -> None:
    """Raise if the parameter `classes` is empty; skorch would find no attribute classes_."""
    if classes is not None and not len(classes):
        raise ValueError("classes must hold all labels, or be None for those of y, got none.")


def check_logits(net: Any, logits: Tensor, n_done: int) -> int:
    """Return the number of rows of a batch, whose first is row `n_done`; raise for NaN."""
    if not logits.is_floating_point() or logits.ndim != 2:
        return len(logits)
    n_classes = len(net.classes_) if hasattr(net, "classes_") else logits.shape[1]
    if logits.shape[1] != n_classes:
        raise ValueError(
            f"module must give logits of shape (n_samples, n_classes={n_classes}), got shape "
            f"{tuple(logits.shape)}."
        )
    # Of logits of -inf alone the softmax is NaN; beside others they are masked classes.
    largest = logits.amax(dim=1)
    faulty = (~torch.isfinite(largest) | logits.isnan().any(dim=1)).nonzero()[:, 0]
    if len(faulty):
        rows = ", ".join(str(n_done + int(row)) for row in faulty[:5])
        more = ", ..." if len(faulty) > 5 else ""
        raise ValueError(
            f"X must give finite logits, got {float(largest[faulty[0]]):g} for row"
            f"{'s' * (len(faulty) > 1)} {rows}{more}: its numbers are too large for the module, "
            "or weights of module_ are not finite."
        )
    return len(logits)


# Errors and warnings for failures that a training would not show.


_PARTS = (
    "module",
    "criterion",
    "optimizer",
    "iterator_train",
    "iterator_valid",
    "dataset",
    "callbacks",
    "prioritizer",
)


def check_names(net: Any, names: Any) -> None:
    """Raise if a keyword of the constructor is no parameter of the net."""
    known = {"history"}  # skorch takes it out of its keywords
    # An __init__ passes its **kwargs on to its bases: their parameters are parameters too.
    for base in type(net).__mro__:
        known |= set(inspect.signature(vars(base).get("__init__", object)).parameters)
    for name in names:
        # An argument of a component has "__" in it; skorch's own state starts or ends with "_".
        if "__" in name or name.startswith("_") or name.endswith("_") or name in known:
            continue
        part = next((p for p in _PARTS if name.startswith(f"{p}_")), None)
        if part is not None:  # in skorch's words
            raise TypeError(
                f"{type(net).__name__} has no parameter {name!r}. Did you mean "
                f"{f'{part}__{name[len(part) + 1 :]}'!r}?"
            )
        similar = get_close_matches(name, sorted(known - {"self", "args", "kwargs"}), cutoff=0.5)
        such_as = f". Did you mean {similar[0]!r}?" if similar else "."
        raise TypeError(f"{type(net).__name__} has no parameter {name!r}{such_as}")


def check_modes_of_torch(net: Any) -> None:
    """Raise where a mode of torch around `fit` would break the training, or stall it unnoticed."""
    if torch.is_inference_mode_enabled():
        raise RuntimeError("fit must be called outside of torch.inference_mode(), got it enabled.")
    kind = torch.device(net.device or "cpu").type
    if torch.is_autocast_enabled(kind):
        raise RuntimeError(
            f"fit must be called outside of torch.autocast({kind!r}), in which training stalls, "
            'got it enabled; mixed_precision="bf16" computes in bfloat16.'
        )
    default = torch.get_default_dtype()
    made_so = next((p for p in net.module_.parameters() if p.is_floating_point()), None)
    if default != torch.float32 and made_so is not None and made_so.dtype == default:
        raise RuntimeError(
            f"torch.get_default_dtype() must be torch.float32 where a net is made, got {default}: "
            "rows come in float32, and the module computes in another type."
        )


def check_callbacks(net: Any) -> None:
    """Raise if a callback monitors a validation score where no samples are held out."""
    for _, callback in net.callbacks_:
        monitor = str(getattr(callback, "monitor", None))
        if monitor.removesuffix("_best") in ("valid_loss", "valid_acc"):
            raise ValueError(
                f"train_split must hold out samples for {type(callback).__name__}, which monitors "
                f"{monitor!r}, got {net.train_split!r}."
            )


def check_finite(net: Any) -> None:
    """Raise if a number became infinite or NaN in the last epoch."""
    epoch = len(net.history)
    # skorch has copied the loss of every batch to the CPU: reading them costs nothing.
    for batch in net.history[-1]["batches"]:
        loss = batch.get("train_loss", 0.0)
        if not math.isfinite(loss):
            raise ValueError(
                f"The loss became {loss} in epoch {epoch} (lr={net.lr}). Lower lr, or scale X."
            )
    # One number: a single wait for an accelerator. The maximum with NaN is NaN.
    if not math.isfinite(get_total_norm(_iter_trained_values(net), math.inf).item()):
        raise ValueError(
            "The parameters of the module, or the state of the optimizer, became NaN or infinite "
            f"in epoch {epoch} (lr={net.lr}). Lower lr, or scale X."
        )


def _iter_trained_values(net: Any) -> Iterator[Tensor]:
    """Yield the trained parameters, and what the optimizer keeps of each."""
    # If squared gradients overflow, Adam makes steps of 0, and the loss stays finite.
    for parameter in net.module_.parameters():
        if parameter.requires_grad:
            yield parameter.detach()
            for value in net.optimizer_.state.get(parameter, {}).values():
                # Not the number of steps, which Adam keeps on the CPU: each would be a transfer.
                here = isinstance(value, Tensor) and value.device == parameter.device
                if here and value.is_floating_point():
                    yield value


def warn_of_probabilities(logits: Tensor) -> None:
    """Warn if the output of the module looks like the result of a softmax."""
    values = logits.detach()
    # Log-probabilities are no mistake: their softmax gives the probabilities.
    inside = bool(((values >= 0) & (values <= 1)).all())
    if inside and bool(((values.sum(dim=1) - 1).abs() < 1e-4).all()):
        warn(
            "The module gives probabilities: its output is in [0, 1] and sums to 1 for every "
            "sample of the first batch. It is read as logits, and the softmax is applied again; "
            "leave the softmax out of the module."
        )
