"""Errors and warnings for failures that a training would not show."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor
from torch.nn.utils import get_total_norm

from ..utils.meta._warnings import warn


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
    if not math.isfinite(get_total_norm(_trained_values(net), math.inf).item()):
        raise ValueError(
            "The parameters of the module, or the state of the optimizer, became NaN or infinite "
            f"in epoch {epoch} (lr={net.lr}). Lower lr, or scale X."
        )


def _trained_values(net: Any) -> Iterator[Tensor]:
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
