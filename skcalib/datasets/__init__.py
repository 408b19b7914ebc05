"""Data with known truth, label noise and corrupted images."""

from ..utils.meta._docs import fill_docstrings
from ._corruptions import corrupt_images
from ._label_noise import flip_labels
from ._predictions import make_predictions

__all__ = ["corrupt_images", "flip_labels", "make_predictions"]

fill_docstrings(globals())
