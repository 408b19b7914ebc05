"""State of the process: the handler of Ctrl-C, torch's generators and the default device."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from threading import RLock, current_thread, main_thread
from typing import Any


@contextmanager
def raise_ctrl_c() -> Iterator[Callable[[], None]]:
    """Raise KeyboardInterrupt at the end of the block where Ctrl-C was swallowed within it.

    MLPClassifier and skorch catch KeyboardInterrupt, and `fit` returns a half-trained network as
    if it were whole. Python itself swallows it within `__del__` and the callbacks of weak
    references, which `import` has for every module, and the training would go on. So the block
    gets a function, which long computations call every now and then: it raises at once. The
    exception alone may also come from a callback that ends the training, such as EarlyStopping;
    the signal is always Ctrl-C.
    """
    interrupted = False

    def raise_if_interrupted() -> None:
        if interrupted:
            raise KeyboardInterrupt

    former = signal.getsignal(signal.SIGINT)
    # Only the main thread gets signals, and without a handler in Python, Ctrl-C raises nothing.
    if current_thread() is not main_thread() or not callable(former):
        yield raise_if_interrupted
        return

    def remember(number: int, frame: Any) -> None:
        nonlocal interrupted
        try:
            former(number, frame)
        except KeyboardInterrupt:
            interrupted = True
            raise

    signal.signal(signal.SIGINT, remember)
    try:
        yield raise_if_interrupted
    finally:
        signal.signal(signal.SIGINT, former)
    raise_if_interrupted()


_GENERATOR = RLock()


def _forget_other_threads() -> None:
    """Make a new lock in a forked process: the thread that holds the old one is not there."""
    global _GENERATOR
    _GENERATOR = RLock()


if hasattr(os, "register_at_fork"):  # the thread that holds the lock is not in the child
    os.register_at_fork(after_in_child=_forget_other_threads)


@contextmanager
def seeded(seed: int, device: Any = "cpu") -> Iterator[None]:
    """Seed torch's generators of the CPU and of `device`, and restore them at the end.

    They belong to the whole process, and dropout can draw from no others. So threads take turns:
    one that arrives while another is inside such a block waits for its end.
    """
    import torch

    with _GENERATOR:
        device = torch.device(device)
        with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
            # torch.manual_seed would also seed all other devices, which are not restored.
            torch.default_generator.manual_seed(seed)
            if device.type == "cuda":
                with torch.cuda.device(device):
                    torch.cuda.manual_seed(seed)
            elif device.type == "mps":
                torch.mps.manual_seed(seed)
            yield


@cache
def auto_device() -> str:
    """Return what ``device="auto"`` means: the first of "cuda", "mps" and "cpu" there is."""
    import torch

    if torch.cuda.is_available():
        return "cuda"
    return "mps" if torch.backends.mps.is_available() else "cpu"
