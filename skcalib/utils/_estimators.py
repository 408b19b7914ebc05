"""What meta-estimators share."""

from __future__ import annotations

from typing import Any


def show_inner(
    outer: Any, inner: Any, names: tuple[str, ...] = ("n_features_in_", "feature_names_in_")
) -> None:
    """Give `outer` those of the learned attributes that the fitted `inner` has."""
    for name in names:
        if hasattr(inner, name):
            setattr(outer, name, getattr(inner, name))
