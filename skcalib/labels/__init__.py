"""Which labels are wrong, and what to do about them?"""

from ..utils.meta._docs import fill_docstrings
from ._annotations import votes_from_long
from ._cleaning import LabelCleaningClassifier
from ._issues import LabelIssueFinder, find_label_issues
from ._read_checks import read_checks

__all__ = [
    "LabelCleaningClassifier",
    "LabelIssueFinder",
    "find_label_issues",
    "read_checks",
    "votes_from_long",
]

fill_docstrings(globals())
