"""Timing on a shared machine: interleaved repetitions, the least of each."""

import time
from collections.abc import Callable


def least_seconds(
    functions: dict[str, Callable[[], object]], *, repeats: int = 7
) -> dict[str, float]:
    """Return the least seconds of every function, the functions taking turns."""
    seconds = dict.fromkeys(functions, float("inf"))
    for _ in range(repeats):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            seconds[name] = min(seconds[name], time.perf_counter() - start)
    return seconds


def print_ratios(title: str, bound: str, seconds: dict[str, float]) -> None:
    """Print the seconds of every function and their ratio to those of the bound."""
    print(f"\n{title}; bound: {bound}, {1e3 * seconds[bound]:.1f} ms")
    for name, value in seconds.items():
        print(f"  {name:<58}{1e3 * value:10.1f} ms {value / seconds[bound]:8.2f} x")
