"""Which samples to train on, and which to answer?"""

from ..utils.meta._docs import fill_docstrings
from ._difficulty import DifficultySelector
from ._max_entropy import MaxEntropySelector
from ._selective_classifier import SelectiveClassifier
from ._subset_classifier import SubsetClassifier

__all__ = ["DifficultySelector", "MaxEntropySelector", "SelectiveClassifier", "SubsetClassifier"]

fill_docstrings(globals())
