"""What a study of ablations is made of: losses of sets, and rules that are switched off."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any, NamedTuple


class Rule(NamedTuple):
    """What is switched off, and how: values of attributes, as {"module.attribute": value}."""

    name: str
    decides: str
    off: dict[str, Any]


class Loss(NamedTuple):
    """Losses of a set by their names; sets of one base share samples."""

    base: str
    kept_out: bool
    values: dict[str, float]


class Study(NamedTuple):
    """`losses` gets the folder of the data and yields a loss a set, always in one order."""

    rules: list[Rule]
    losses: Callable[[Path], Iterable[Loss]]


@contextmanager
def switched_off(rule: Rule | None) -> Iterator[None]:
    """Set the attributes of a rule, for a while."""
    old = []
    for path, value in ({} if rule is None else rule.off).items():
        module, name = path.rsplit(".", 1)
        owner = import_module(module)
        old.append((owner, name, getattr(owner, name)))
        setattr(owner, name, value)
    try:
        yield
    finally:
        for owner, name, value in old:
            setattr(owner, name, value)
