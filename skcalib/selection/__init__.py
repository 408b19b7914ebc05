"""Which samples to train on, and which to answer?"""

from ..utils._output import fill_docstrings
from ._minimum_cost import MinimumCostClassifier
from ._selective_classifier import SelectiveClassifier
from ._selectors import DifficultySelector, MaxEntropySelector
from ._subset_classifier import SubsetClassifier

__all__ = [
    "DifficultySelector",
    "MaxEntropySelector",
    "MinimumCostClassifier",
    "SelectiveClassifier",
    "SubsetClassifier",
]

fill_docstrings(globals())
