"""A report on the confidence of a classifier, as one page."""

from ._report import CalibrationReport

__all__ = ["CalibrationReport"]
