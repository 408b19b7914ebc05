"""Where probes go in a torch module: after its linear operations and its residual sums."""

from __future__ import annotations

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from ._hooks import evaluating, first_tensor

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


class _Tracer(TorchFunctionMode):
    """Record which modules run, in which order, and in which of them two tensors are added."""

    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.shapes: dict[str, torch.Size | None] = {}
        self.sums: set[str] = set()
        self._running: list[str] = []
        self._handles = [
            handle
            for name, part in module.named_modules()
            for handle in (
                # Both hooks return None, which leaves input and output as they are.
                part.register_forward_pre_hook(lambda *_, name=name: self._running.append(name)),
                part.register_forward_hook(lambda _, __, out, name=name: self._leave(name, out)),
            )
        ]

    def _leave(self, name: str, output: object) -> None:
        self._running.pop()
        tensor = first_tensor(output)
        # Taken out first: a layer that runs again stands where it ran last, as its output does.
        self.shapes.pop(name, None)
        self.shapes[name] = None if tensor is None else tensor.shape

    def __torch_function__(self, func, types, args=(), kwargs=None):  # type: ignore[no-untyped-def]
        if getattr(func, "__name__", "") in ("add", "add_") and self._running:
            shapes = [arg.shape for arg in args[:2] if isinstance(arg, torch.Tensor)]
            # A bias or a position embedding is broadcast over the rows; a shortcut is not.
            if len(shapes) == 2 and shapes[0] == shapes[1]:
                self.sums.add(self._running[-1])
        return func(*args, **(kwargs or {}))

    def remove(self) -> None:
        for handle in self._handles:
            handle.remove()


def _is_inside(name: str, blocks: set[str]) -> bool:
    return any(name.startswith(f"{block}.") for block in blocks)


def place_layers(module: nn.Module, two_rows: torch.Tensor) -> list[str]:
    """Return the names of the layers to embed, in the order in which they run.

    These are the linear and convolution operations outside of residual blocks, and the
    residual blocks. A residual block is a submodule, the outermost one, whose own forward
    adds two activations of the same shape: it is found by running the module on `two_rows`
    (two, so that nothing which is broadcast over the rows passes for an activation), not by
    its name. The operation that yields the logits is left out unless it is the only one.
    """
    with evaluating(module):
        tracer = _Tracer(module)
        try:
            with tracer:
                module(two_rows)
        finally:
            tracer.remove()
    # The module's own forward may add as well; it is no block within itself.
    sums = tracer.sums - {""}
    blocks = {name for name in sums if not _is_inside(name, sums)}
    parts = dict(module.named_modules())
    names = [
        name
        for name, shape in tracer.shapes.items()
        if name
        and shape is not None
        and (
            name in blocks
            or (isinstance(parts[name], OPERATIONS) and not _is_inside(name, blocks))
        )
    ]
    if (
        len(names) > 1
        and names[-1] not in blocks
        and tracer.shapes[names[-1]] == tracer.shapes.get("")
    ):
        # The last operation, with the shape of the output: it yields the logits.
        names.pop()
    return names
