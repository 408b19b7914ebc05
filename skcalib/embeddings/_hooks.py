"""Activations of the layers of a torch module, and which layers carry a probe."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import partial
from itertools import chain
from typing import Any
from weakref import WeakKeyDictionary

import torch
from numpy.typing import NDArray
from sklearn.frozen import FrozenEstimator
from torch import nn
from torch.overrides import TorchFunctionMode

from ..utils._backends import unwrap_module
from ._pretrained import list_near_names

# Forward hooks: the activations of named layers for one batch, without a change to the module.

Pooling = str | Callable[[torch.Tensor], torch.Tensor] | None
OPERATIONS = (
    nn.Linear,
    nn.Bilinear,
    nn.Conv1d,
    nn.Conv2d,
    nn.Conv3d,
    nn.ConvTranspose1d,
    nn.ConvTranspose2d,
    nn.ConvTranspose3d,
)
# Behind the name of a residual block: its sum, before the activation that follows in the block.
SUM = ":sum"
# One lock for each module that has run here: hooks and the mode belong to the module, so that a
# second thread waits.
_LOCKS: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_taking_lock = threading.Lock()


class Additions(TorchFunctionMode):
    """Within this mode, call `receive(name, sum)` for sums of two activations of the same shape.

    The name is that of the innermost running module with a linear or convolution operation: an
    addition that is a module of its own is no block, but its parent is. After every module,
    `on_leave(name, part, input, output)` is called. Calls in other threads are ignored.
    """

    def __init__(self, module: nn.Module, receive: Callable[[str, torch.Tensor], object]) -> None:
        super().__init__()
        self.receive = receive
        self.on_leave: Callable[..., object] = lambda *_: None
        self._running: list[str] = []
        self._thread = threading.get_ident()
        self._blocks = {
            name
            for name, part in module.named_modules()
            if any(isinstance(inner, OPERATIONS) for inner in part.modules())
        }
        # The hooks return None, which leaves input and output as they are.
        self._handles = [
            handle
            for name, part in module.named_modules()
            for handle in (
                part.register_forward_pre_hook(partial(self._enter, name)),
                part.register_forward_hook(partial(self._leave, name)),
            )
        ]

    def _enter(self, name: str, *_: object) -> None:
        if threading.get_ident() == self._thread:
            self._running.append(name)

    def _leave(self, name: str, part: nn.Module, given: object, output: object) -> None:
        if threading.get_ident() == self._thread:
            self._running.pop()
            self.on_leave(name, part, given, output)

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        result = func(*args, **(kwargs or {}))
        if getattr(func, "__name__", "") in ("add", "add_"):
            shapes = [arg.shape for arg in args if isinstance(arg, torch.Tensor)]
            # A bias or a position embedding is broadcast over the rows; a shortcut is not.
            if len(shapes) == 2 and shapes[0] == shapes[1]:
                inside = (name for name in reversed(self._running) if name in self._blocks)
                self.receive(next(inside, ""), result)
        return result

    def __exit__(self, *error: object) -> None:
        for handle in self._handles:
            handle.remove()
        super().__exit__(*error)


def get_torch_module(value: object) -> nn.Module:
    """Return the torch module of a module, of a fitted skorch net or of either, frozen."""
    if isinstance(value, FrozenEstimator):
        value = value.estimator
    module = value if isinstance(value, nn.Module) else getattr(value, "module_", None)
    if not isinstance(module, nn.Module):
        raise TypeError(
            "module must be a torch.nn.Module or a skorch net that has been initialized "
            f"or fitted, got {type(value).__name__}."
        )
    return unwrap_module(module)  # a compiled module does not call hooks


def check_layers(names: list[str], module: nn.Module) -> list[str]:
    """Return the names if they are distinct names of submodules."""
    if not names:
        raise ValueError("layers must name at least one layer, got an empty list.")
    known = [name for name, _ in module.named_modules()]
    for name in names:
        if not isinstance(name, str) or name.removesuffix(SUM) not in known:
            raise ValueError(
                f"layers must name submodules of {type(module).__name__}, got {name!r}"
                f"{list_near_names(str(name), known, cutoff=0.4)}."
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
    """Run the module in evaluation mode without gradients; then restore the mode of its parts.

    One thread at a time.
    """
    with _taking_lock:
        lock = _LOCKS.setdefault(module, threading.RLock())
    with lock:
        former = [(part, part.training) for part in module.modules()]
        module.eval()
        try:
            # Not inference_mode: what a module caches there could not be used in training later.
            with torch.no_grad():
                yield
        finally:
            for part, training in former:
                # Not part.train(training), which would also set the mode of everything inside.
                part.training = training


def get_first_tensor(output: object) -> torch.Tensor | None:
    """Return the output, or its first part where a module returns several."""
    while isinstance(output, tuple | list) and output:
        output = output[0]
    return output if isinstance(output, torch.Tensor) else None


def _pool(activation: torch.Tensor, part: nn.Module, pooling: Pooling) -> torch.Tensor:
    """Return the activation (n, ...) of a layer, reduced as `pooling` defines."""
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
    parts = dict(module.named_modules())
    sums = [name for name in names if name.endswith(SUM)]
    # With one row, a bias would have the shape of an activation.
    rows = batch[[0, 0]] if sums and len(batch) == 1 else batch

    thread = threading.get_ident()

    def receive(name: str, output: object) -> None:
        if threading.get_ident() != thread:
            return  # the caller runs the module in another thread, too
        tensor = get_first_tensor(output)
        pooled = None if tensor is None else _pool(tensor, parts[name.removesuffix(SUM)], pooling)
        if pooled is None or pooled.ndim == 0 or len(pooled) != len(rows):
            got = type(output).__name__ if pooled is None else f"shape {tuple(pooled.shape)}"
            raise ValueError(
                f"layer {name!r} must give one row per sample ({len(rows)} here), got {got}."
            )
        # A copy, because the next layer may work in place.
        found[name] = pooled.reshape(len(rows), -1)[: len(batch)].to(torch.float32, copy=True)

    def receive_sum(block: str, total: torch.Tensor) -> None:
        if f"{block}{SUM}" in sums:
            receive(f"{block}{SUM}", total)

    with evaluating(module):
        handles = [
            parts[name].register_forward_hook(lambda *args, name=name: receive(name, args[-1]))
            for name in names
            if name not in sums
        ]
        try:
            with Additions(module, receive_sum) if sums else nullcontext():
                module(rows)
        finally:
            for handle in handles:
                handle.remove()
    if silent := [name for name in names if name not in found]:
        raise ValueError(
            f"layers must run in the forward pass of {type(module).__name__}, "
            f"got {silent}, which do not."
        )
    return [found[name] for name in names]


# Where probes go in a torch module: after its linear operations and its residual sums.

# Lazy norms become one of these once they have run.
NORMS = (
    nn.BatchNorm1d,
    nn.BatchNorm2d,
    nn.BatchNorm3d,
    nn.SyncBatchNorm,
    nn.InstanceNorm1d,
    nn.InstanceNorm2d,
    nn.InstanceNorm3d,
    nn.GroupNorm,
    nn.LayerNorm,
    nn.RMSNorm,
)


class _Trace:
    """A record of one pass: modules with the shapes of their outputs, in order, and sums."""

    def __init__(self, module: nn.Module, two_rows: torch.Tensor) -> None:
        self.shapes: dict[str, torch.Size | None] = {}
        self.sums: set[str] = set()
        self.norm_after: dict[str, str] = {}
        # By the id of a tensor; the tensor itself is kept, so that no other one gets its id.
        self._operations: dict[int, tuple[str, Any]] = {}
        with evaluating(module), Additions(module, lambda name, _: self.sums.add(name)) as running:
            running.on_leave = self._leave
            module(two_rows)

    def _leave(self, name: str, part: nn.Module, given: object, output: object) -> None:
        tensor = get_first_tensor(output)
        # Removed first: a layer that runs again takes the place of its last run.
        self.shapes.pop(name, None)
        self.shapes[name] = None if tensor is None else tensor.shape
        if isinstance(part, OPERATIONS):
            self._operations[id(tensor)] = name, tensor
        # A norm with parts of its own may hold an activation as well.
        elif isinstance(part, NORMS) and not list(part.children()):
            operation, _ = self._operations.get(id(get_first_tensor(given)), ("", None))
            self.norm_after[operation] = name


def _is_inside(name: str, blocks: set[str]) -> bool:
    """Return whether a submodule is inside one of the blocks."""
    return any(name.startswith(f"{block}.") for block in blocks)


def place_layers(module: nn.Module, two_rows: torch.Tensor) -> list[str]:
    """Return the names of the layers to embed, in the order in which they run.

    The rule is that of ``layers="auto"`` of :class:`LayerEmbedder`. Residual blocks are found by
    running the module on `two_rows` (two, so that nothing that is broadcast over the rows passes
    for an activation), not by their names.
    """
    trace = _Trace(module, two_rows)
    # The module's own forward may add as well; it is no block within itself.
    sums = trace.sums - {""}
    blocks = {name for name in sums if not _is_inside(name, sums)}
    chosen = blocks | {
        name
        for name, part in module.named_modules()
        if name and isinstance(part, OPERATIONS) and not _is_inside(name, blocks)
    }
    names = [name for name, shape in trace.shapes.items() if name in chosen and shape is not None]
    if (
        len(names) > 1
        and names[-1] not in blocks
        and trace.shapes[names[-1]] == trace.shapes.get("")
    ):
        # The last operation, with the shape of the output: it yields the logits.
        names.pop()
    if not blocks:
        return names
    # A norm at the start of a block belongs to the block, not to the operation before it.
    norms = {a: b for a, b in trace.norm_after.items() if not _is_inside(b, blocks)}
    return [f"{name}{SUM}" if name in blocks else norms.get(name, name) for name in names]
