"""Timing on a shared machine, and the options of the scripts of speed."""

import argparse
import time
import tracemalloc
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from threadpoolctl import threadpool_limits

Functions = dict[str, Callable[[], object]]


def speed_options(doc: str | None) -> argparse.Namespace:
    """Parse the options of a script of speed, and set the threads.

    `size` of what is returned shrinks a size under --small, which tries a script in seconds.
    """
    parser = argparse.ArgumentParser(description=doc)
    parser.add_argument("--data", type=Path, help="folder with the real data")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--small", action="store_true", help="tiny sizes, to try the script")
    options = parser.parse_args()
    options.size = lambda n: max(n // 1000, 100) if options.small else n
    options.repeats = 1 if options.small else options.repeats
    threadpool_limits(options.threads)
    with suppress(ImportError):
        import torch

        torch.set_num_threads(options.threads)
    return options


def least_seconds(functions: Functions, *, repeats: int = 7) -> dict[str, float]:
    """Return the least processor seconds of every function, the functions taking turns.

    Processor time, over all threads: other processes disturb it less than the clock.
    """
    seconds = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.process_time()
            function()
            seconds[name] = min(seconds[name], time.process_time() - start)
    return seconds


def seconds(call: Callable[[], object], repeats: int = 3) -> float:
    return least_seconds({"": call}, repeats=repeats)[""]


def peak_bytes(call: Callable[[], object]) -> int:
    """Return the most memory that was allocated during a call."""
    tracemalloc.start()
    call()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    return peak


def print_ratios(title: str, bound: str, seconds: dict[str, float]) -> None:
    """Print the seconds of every function and their ratio to those of the bound."""
    print(f"\n{title}; bound: {bound}, {1e3 * seconds[bound]:.1f} ms")
    for name, value in seconds.items():
        print(f"  {name:<58}{1e3 * value:10.1f} ms {value / seconds[bound]:8.2f} x", flush=True)


def print_speed(
    title: str, bound: str, functions: Functions, *, repeats: int = 7
) -> dict[str, float]:
    """Time functions and print their ratios to the bound; return their seconds."""
    seconds = least_seconds(functions, repeats=repeats)
    print_ratios(title, bound, seconds)
    return seconds
