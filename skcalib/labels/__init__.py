"""Which labels are wrong, and what to do about them?"""

from ._issues import LabelIssueFinder, find_label_issues

__all__ = ["LabelIssueFinder", "find_label_issues"]
