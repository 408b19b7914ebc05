"""Where probes go in a torch module: after its linear operations and its residual sums."""

from __future__ import annotations

from typing import Any

import torch
from torch import nn

from ._hooks import OPERATIONS, SUM, Additions, evaluating, first_tensor

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
        tensor = first_tensor(output)
        # Removed first: a layer that runs again takes the place of its last run.
        self.shapes.pop(name, None)
        self.shapes[name] = None if tensor is None else tensor.shape
        if isinstance(part, OPERATIONS):
            self._operations[id(tensor)] = name, tensor
        # A norm with parts of its own may hold an activation as well.
        elif isinstance(part, NORMS) and not list(part.children()):
            operation, _ = self._operations.get(id(first_tensor(given)), ("", None))
            self.norm_after[operation] = name


def _is_inside(name: str, blocks: set[str]) -> bool:
    """Tell whether a submodule is inside one of the blocks."""
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
