"""What would go wrong in silence in a training, told."""

from __future__ import annotations

import inspect
import math
import traceback
import warnings
from collections.abc import Iterator
from difflib import get_close_matches
from typing import Any

import torch
from torch import Tensor

from ..utils import SkcalibWarning


def check_names(net: Any, names: Any) -> None:
    """Raise if a keyword of the constructor is no parameter of the net."""
    known = {"history"}  # skorch takes it out of its keywords
    # What an __init__ passes on by **kwargs is a parameter of one of its bases.
    for base in type(net).__mro__:
        known |= set(inspect.signature(vars(base).get("__init__", object)).parameters)
    for name in names:
        # An argument of a component has "__" in it; skorch's own state starts or ends with "_".
        if "__" in name or name.startswith("_") or name.endswith("_") or name in known:
            continue
        similar = get_close_matches(name, sorted(known - {"self", "args", "kwargs"}), cutoff=0.5)
        such_as = f", such as {similar[0]}" if similar else ""
        raise TypeError(
            f"{name} must be a parameter of {type(net).__name__}{such_as}, got an unknown name."
        )


def check_callbacks(net: Any, *, has_validation: bool) -> None:
    """Raise if a callback monitors what nobody has written when its turn comes."""
    positions = {}
    for position, (_, callback) in enumerate(net.callbacks_):
        name = getattr(callback, "name_", getattr(callback, "name", None))
        if isinstance(name, str):  # a callback that writes its score into the history
            positions[name] = position
    for position, (_, callback) in enumerate(net.callbacks_):
        monitor = getattr(callback, "monitor", None)
        if not isinstance(monitor, str):
            continue
        written = positions.get(monitor.removesuffix("_best"))
        if written is None:  # by no score, so perhaps by a callback of the user's own
            continue
        reader, writer = callback, net.callbacks_[written][1]
        if not has_validation and not getattr(writer, "on_train", True):
            raise ValueError(
                f"train_split must hold out samples for {type(reader).__name__}, which monitors "
                f"{monitor!r}, got {net.train_split!r}."
            )
        if written > position:
            raise ValueError(
                f"callbacks must list {type(writer).__name__} before {type(reader).__name__}, "
                f"which monitors its {monitor!r}, got the other order."
            )


def check_finite(net: Any) -> None:
    """Raise if the epoch that has just been trained left the finite numbers."""
    epoch = len(net.history)
    # skorch has brought the loss of every batch to the CPU: looking at them costs nothing.
    for batch in net.history[-1]["batches"]:
        loss = batch.get("train_loss", 0.0)
        if not math.isfinite(loss):
            raise ValueError(
                f"lr and X must keep the loss finite, got a loss of {loss} in epoch {epoch} with "
                f"lr={net.lr}; lower lr, or scale X."
            )
    if not all(bool(torch.isfinite(values).all()) for values in _trained_values(net)):
        raise ValueError(
            "lr and X must keep the parameters of the module finite, and the state of the "
            f"optimizer, got NaN or infinity in epoch {epoch} with lr={net.lr}; lower lr, or "
            "scale X."
        )


def _trained_values(net: Any) -> Iterator[Tensor]:
    # With squared gradients beyond the largest float, Adam stands still and the loss is finite.
    for parameter in net.module_.parameters():
        if parameter.requires_grad:
            yield parameter.detach()
            for value in net.optimizer_.state.get(parameter, {}).values():
                if isinstance(value, Tensor) and value.is_floating_point():
                    yield value


def is_stop(interrupt: KeyboardInterrupt) -> bool:
    """Tell whether a callback has raised `interrupt` to end the training, as EarlyStopping does.

    Ctrl-C raises the same exception, in whatever line happens to run, of a callback as well.
    """
    # `raise KeyboardInterrupt` in a callback is the last line of the traceback; a signal stops at
    # the line that it has interrupted.
    frames = traceback.extract_tb(interrupt.__traceback__)
    in_callback = any(frame.name == "notify" for frame in frames)
    line = frames[-1].line or "raise"  # without source code, as skorch: callbacks mean to stop
    return in_callback and line.startswith("raise")


def warn_of_probabilities(logits: Tensor) -> None:
    """Warn if the output of the module looks like the result of a softmax."""
    values = logits.detach()
    # Log-probabilities are no fault: their softmax is what they are the logarithm of.
    inside = bool(((values >= 0) & (values <= 1)).all())
    if inside and bool(((values.sum(dim=1) - 1).abs() < 1e-4).all()):
        warnings.warn(
            "The module gives probabilities: its output is in [0, 1] and sums to 1 for every "
            "sample of the first batch. It is read as logits, and the softmax is taken once "
            "more; leave the softmax out of the module.",
            SkcalibWarning,
            stacklevel=2,
        )


def warn_of_cross_entropy(criterion: Any) -> None:
    """Warn that validation data is judged by another loss than `criterion`."""
    warnings.warn(
        "The validation samples are no part of the data given to fit, and have neither difficulty "
        f"weights nor a history, which {type(criterion).__name__} needs: valid_loss is their "
        "cross-entropy instead.",
        SkcalibWarning,
        stacklevel=2,
    )
