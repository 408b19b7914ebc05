"""The one meaning of ``device="auto"``."""

from __future__ import annotations

from functools import cache


@cache
def auto_device() -> str:
    """Return the first of "cuda", "mps" and "cpu" that torch can use here."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
