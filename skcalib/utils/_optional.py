"""Import an optional dependency, or say how to install it."""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


def import_optional(module: str, *, extra: str) -> ModuleType:
    """Import `module`, or raise an error that names the extra that brings it.

    Parameters
    ----------
    module : str
        Dotted name of the module, for instance ``"matplotlib.pyplot"``.
    extra : str
        The extra of skcalib that installs it, for instance ``"plots"``.

    Returns
    -------
    module : module
        The imported module.

    Raises
    ------
    ImportError
        If the module cannot be imported.

    Examples
    --------
    >>> from skcalib.utils import import_optional
    >>> import_optional("json", extra="plots").dumps(1)
    '1'
    """
    try:
        return import_module(module)
    except ImportError as error:
        package = module.partition(".")[0]
        raise ImportError(
            f"{package} is required here and could not be imported ({error}); "
            f"install skcalib with the extra that has it: pip install 'skcalib[{extra}]', "
            f"or '.[{extra}]' in a checkout"
        ) from error
