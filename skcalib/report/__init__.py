"""A report on the confidence of a classifier as one page, and a page to check labels on."""

from ..utils.meta._docs import fill_docstrings
from ._commands import add_commands as add_commands  # for the command line of the package
from ._commands import show_reading as show_reading
from ._report import CalibrationReport
from ._review import LabelReviewPage

__all__ = ["CalibrationReport", "LabelReviewPage"]

fill_docstrings(globals())
