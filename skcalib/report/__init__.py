"""A report on the confidence of a classifier, as one page."""

from ..utils.meta._docs import fill_docstrings
from ._commands import add_commands as add_commands  # for the command line of the package
from ._report import CalibrationReport

__all__ = ["CalibrationReport"]

fill_docstrings(globals())
