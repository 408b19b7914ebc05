"""Which samples to train on?"""

from ._max_entropy import MaxEntropySelector
from ._subset_classifier import SubsetClassifier

__all__ = ["MaxEntropySelector", "SubsetClassifier"]
