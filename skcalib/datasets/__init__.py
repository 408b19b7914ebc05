"""Data with known truth, and label noise."""

from ..utils.meta._docs import fill_docstrings
from ._label_noise import flip_labels
from ._predictions import make_predictions

__all__ = ["flip_labels", "make_predictions"]

fill_docstrings(globals())
