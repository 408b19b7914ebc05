"""Which labels are wrong, and what to do about them?"""

from ..utils._output import fill_docstrings
from ._agreement import annotator_agreement
from ._annotations import read_checks, votes_from_counts, votes_from_long
from ._cleaning import LabelCleaningClassifier
from ._finder import LabelIssueFinder, find_label_issues

__all__ = [
    "LabelCleaningClassifier",
    "LabelIssueFinder",
    "annotator_agreement",
    "find_label_issues",
    "read_checks",
    "votes_from_counts",
    "votes_from_long",
]

fill_docstrings(globals())
