"""A trained net in a file that holds numbers and labels, and no code."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch

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
        "module": net.module_.state_dict(),
        "classes": labels,
        "classes_dtype": classes.dtype.str,
        "sizes": dict(net._data_sizes_),
        "n_features_in": getattr(net, "n_features_in_", None),
        "feature_names_in": None if names is None else names.tolist(),
    }
    torch.save(record, path)


def load_net(net: Any, path: Any) -> None:
    """Build the parts of an unfitted net for the saved sizes, and read its parameters."""
    # weights_only: a file from elsewhere cannot run code.
    record = torch.load(path, map_location=net.device or "cpu", weights_only=True)
    if not isinstance(record, dict) or record.get("format") != _FORMAT:
        raise ValueError(f"path must be a file that save has written, got {path!r}.")
    classes = np.array(record["classes"], dtype=np.dtype(record["classes_dtype"]))
    if net.classes is not None and not np.array_equal(net.classes_, classes):
        raise ValueError(
            f"classes must be None or the saved labels {classes.tolist()}, got {net.classes!r}."
        )
    net._forget_features()
    net.classes_inferred_ = classes
    net._data_sizes_ = record["sizes"]
    net.initialize()
    try:
        net.module_.load_state_dict(record["module"])
    except RuntimeError as error:
        raise ValueError(
            f"module must have the parameters that are saved in path, got {error}"
        ) from None
    net._note_encoding()
    if record["n_features_in"] is not None:
        net.n_features_in_ = record["n_features_in"]
    if record["feature_names_in"] is not None:
        net.feature_names_in_ = np.array(record["feature_names_in"], dtype=object)
