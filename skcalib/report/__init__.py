"""A report on the confidence of a classifier as one page, and a page to check labels on."""

from ..utils._output import fill_docstrings
from ._report import CalibrationReport
from ._review import LabelReviewPage

__all__ = ["CalibrationReport", "LabelReviewPage"]

fill_docstrings(globals())
