"""Forward hooks: the activations of named layers for one batch, and the module left as it was."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from itertools import chain

import torch
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from torch import nn

Pooling = str | Callable[[torch.Tensor], torch.Tensor] | None


def torch_module(value: object) -> nn.Module:
    """Return the torch module of a module, of a fitted skorch net or of either, frozen."""
    if isinstance(value, FrozenEstimator):
        value = value.estimator
    module = value if isinstance(value, nn.Module) else getattr(value, "module_", None)
    if not isinstance(module, nn.Module):
        raise TypeError(
            "module must be a torch.nn.Module or a skorch net that has been initialized "
            f"or fitted, got {type(value).__name__}."
        )
    return module


def check_layers(names: list[str], module: nn.Module) -> list[str]:
    """Return the names if they are distinct names of submodules, else say which are near."""
    if not names:
        raise ValueError("layers must name at least one layer, got an empty list.")
    known = [name for name, _ in module.named_modules()]
    for name in names:
        if name not in known:
            near = difflib.get_close_matches(str(name), known, n=5, cutoff=0.4)
            hint = f" (near names: {', '.join(near)})" if near else ""
            raise ValueError(
                f"layers must name submodules of {type(module).__name__}, got {name!r}{hint}."
            )
        if names.count(name) > 1:
            raise ValueError(f"layers must be distinct, got {name!r} more than once.")
    return names


def to_input(X: NDArray | torch.Tensor, module: nn.Module) -> torch.Tensor:
    """Return X on the device of the module, numbers in its floating type."""
    state = chain(module.parameters(), module.buffers())
    # A module without floating-point numbers of its own gets torch's default type.
    reference = next((t for t in state if t.is_floating_point()), torch.zeros(()))
    if isinstance(X, torch.Tensor):
        # Integers are tokens for an embedding layer.
        dtype = reference.dtype if X.is_floating_point() else X.dtype
        return X.to(reference.device, dtype)
    # Contiguous, because the layout of X would change the last bit of a product.
    return torch.tensor(X, device=reference.device, dtype=reference.dtype).contiguous()


@contextmanager
def evaluating(module: nn.Module) -> Iterator[None]:
    """Run the module in evaluation mode, without gradients, and give every part its mode back."""
    former = [(part, part.training) for part in module.modules()]
    module.eval()
    try:
        # Not inference_mode: what a module caches under it could not be trained on later.
        with torch.no_grad():
            yield
    finally:
        for part, training in former:
            # Not part.train(training), which would set the mode of everything inside as well.
            part.training = training


def first_tensor(output: object) -> torch.Tensor | None:
    """Return the output, or its first part where a module returns several."""
    while isinstance(output, tuple | list) and output:
        output = output[0]
    return output if isinstance(output, torch.Tensor) else None


def _pool(activation: torch.Tensor, part: nn.Module, pooling: Pooling) -> torch.Tensor:
    if callable(pooling):
        return pooling(activation)
    if pooling == "mean" and activation.ndim > 2:
        # (n, tokens, channels): axis 1. (n, channels, ...), 1-D convolutions too: axes from 2 on.
        tokens = activation.ndim == 3 and not isinstance(part, nn.Conv1d | nn.ConvTranspose1d)
        return activation.mean(dim=1 if tokens else tuple(range(2, activation.ndim)))
    return activation


def record_layers(
    module: nn.Module, batch: torch.Tensor, names: list[str], pooling: Pooling
) -> list[torch.Tensor]:
    """Run the module on a batch; return the activations of the layers, float32 (n, size) each."""
    found: dict[str, torch.Tensor] = {}

    def receive(part: nn.Module, _: object, output: object, *, name: str) -> None:
        tensor = first_tensor(output)
        pooled = None if tensor is None else _pool(tensor, part, pooling)
        if pooled is None or pooled.ndim == 0 or len(pooled) != len(batch):
            got = type(output).__name__ if pooled is None else f"shape {tuple(pooled.shape)}"
            raise ValueError(
                f"layer {name!r} must give one row a sample ({len(batch)} here), got {got}."
            )
        # A copy, because the next layer may work in place.
        found[name] = pooled.reshape(len(batch), -1).to(torch.float32, copy=True)

    parts = dict(module.named_modules())
    handles = [parts[name].register_forward_hook(partial(receive, name=name)) for name in names]
    try:
        with evaluating(module):
            module(batch)
    finally:
        for handle in handles:
            handle.remove()
    if silent := [name for name in names if name not in found]:
        raise ValueError(
            f"layers must run in the forward pass of {type(module).__name__}, "
            f"got {silent}, which do not."
        )
    return [found[name] for name in names]
