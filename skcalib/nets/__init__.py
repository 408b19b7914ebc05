"""Neural networks as scikit-learn classifiers."""

from ._mlp import MLP
from ._net import CalibratedNetClassifier

__all__ = ["CalibratedNetClassifier", "MLP"]  # noqa: RUF022  (plain order, as everywhere)
