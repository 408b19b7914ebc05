"""A trained net in a file that holds numbers and labels, and no code."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

from ..utils.checking._labels import shown
from ..utils.computing._files import write_atomically
from ..utils.computing._tensors import plain_module
from ..utils.meta._private import all_or_nothing_of

_FORMAT = 1


def save_net(net: Any, path: Any) -> None:
    """Write parameters, sizes and labels of a fitted net."""
    net.check_is_fitted()
    classes = net.classes_
    labels = classes.tolist()
    # Plain values only: what torch.load reads with weights_only=True.
    if not all(isinstance(label, bool | int | float | str) for label in labels):
        kinds = sorted({type(label).__name__ for label in labels})
        raise TypeError(
            f"classes_ must be numbers or strings to be saved, got {', '.join(kinds)}; pickle the "
            "net instead."
        )
    names = getattr(net, "feature_names_in_", None)
    record = {
        "format": _FORMAT,
        "module": plain_module(net.module_).state_dict(),
        "classes": labels,
        "classes_dtype": classes.dtype.str,
        "sizes": dict(net._data_sizes_),
        "n_features_in": getattr(net, "n_features_in_", None),
        "feature_names_in": None if names is None else names.tolist(),
    }
    with write_atomically(path) as file:
        torch.save(record, file)


def load_net(net: Any, path: Any) -> None:
    """Build the parts of an unfitted net for the saved sizes, and read its parameters."""
    record = _read(path, net.device or "cpu")
    classes = np.array(record["classes"], dtype=np.dtype(record["classes_dtype"]))
    if net.classes is not None and not np.array_equal(net.classes, classes):
        raise ValueError(
            f"classes must be None or the saved labels {shown(classes)}, got {shown(net.classes)}."
        )
    with all_or_nothing_of(net):
        net._forget_features()
        net.classes_inferred_ = classes
        net._data_sizes_ = record["sizes"]
        net.initialize()
        try:
            plain_module(net.module_).load_state_dict(record["module"])
        except RuntimeError as error:
            raise ValueError(
                f"module must have the parameters saved in {path!r}, got others: {error}"
            ) from None
        net._note_encoding()
        if record["n_features_in"] is not None:
            net.n_features_in_ = record["n_features_in"]
        if record["feature_names_in"] is not None:
            net.feature_names_in_ = np.array(record["feature_names_in"], dtype=object)


def _read(path: Any, device: Any) -> dict[str, Any]:
    """Return what `save_net` has written."""
    fault = f"path must be a file that save has written, got {path!r}"
    try:
        # weights_only: a file from elsewhere cannot run code.
        record = torch.load(path, map_location=device, weights_only=True)
    except OSError:  # no such file, or no right to read it
        raise
    except Exception as error:  # torch has no error of its own for what it cannot read
        reason = str(error).strip().partition("\n")[0] or type(error).__name__
        raise ValueError(f"{fault}, which torch cannot read ({reason[:200]}).") from error
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise ValueError(f"{fault}, with other contents.")
    return record
