"""A report on the confidence of a classifier, as one page."""

from ..utils._docs import fill_docstrings
from ._report import CalibrationReport

__all__ = ["CalibrationReport"]

fill_docstrings(globals())
