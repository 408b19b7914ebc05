"""Import an optional dependency, or say how to install it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def import_optional(module: str, *, extra: str) -> ModuleType:
    """Import `module`, a dotted name, or raise an error that names the extra that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{package} is required here and could not be imported ({error}); "
            f"install skcalib with the extra that has it: pip install 'skcalib[{extra}]', "
            f"or '.[{extra}]' in a checkout"
        ) from error
