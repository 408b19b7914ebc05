"""Measure, repair and use the confidence of scikit-learn and torch classifiers.

Sub-packages and the headline names below are resolved on first use, so that
``import skcalib`` loads neither torch nor matplotlib.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from . import (
        datasets,
        difficulty,
        embeddings,
        labels,
        losses,
        metrics,
        nets,
        plots,
        posthoc,
        report,
        selection,
        utils,
    )
    from .difficulty import (
        DifficultyAwareClassifier,
        NoveltyDetector,
        PredictionDepthScorer,
        RelativeMahalanobisScorer,
        RMDScorer,
    )
    from .labels import LabelCleaningClassifier, LabelIssueFinder, find_label_issues
    from .metrics import (
        calibration_error_interval,
        compare_calibration,
        expected_calibration_error,
    )
    from .nets import CalibratedNetClassifier
    from .posthoc import PostHocCalibratedClassifier, TemperatureScaling
    from .report import CalibrationReport
    from .selection import MaxEntropySelector, SelectiveClassifier, SubsetClassifier
    from .utils import trusted_types

__version__ = "0.1.0"

_HEADLINE = {
    "CalibratedNetClassifier": "nets",
    "CalibrationReport": "report",
    "DifficultyAwareClassifier": "difficulty",
    "LabelCleaningClassifier": "labels",
    "LabelIssueFinder": "labels",
    "MaxEntropySelector": "selection",
    "NoveltyDetector": "difficulty",
    "PostHocCalibratedClassifier": "posthoc",
    "PredictionDepthScorer": "difficulty",
    "RMDScorer": "difficulty",
    "RelativeMahalanobisScorer": "difficulty",
    "SelectiveClassifier": "selection",
    "SubsetClassifier": "selection",
    "TemperatureScaling": "posthoc",
    "calibration_error_interval": "metrics",
    "compare_calibration": "metrics",
    "expected_calibration_error": "metrics",
    "find_label_issues": "labels",
    "trusted_types": "utils",
}

__all__ = [
    "CalibratedNetClassifier",
    "CalibrationReport",
    "DifficultyAwareClassifier",
    "LabelCleaningClassifier",
    "LabelIssueFinder",
    "MaxEntropySelector",
    "NoveltyDetector",
    "PostHocCalibratedClassifier",
    "PredictionDepthScorer",
    "RMDScorer",
    "RelativeMahalanobisScorer",
    "SelectiveClassifier",
    "SubsetClassifier",
    "TemperatureScaling",
    "__version__",
    "calibration_error_interval",
    "compare_calibration",
    "datasets",
    "difficulty",
    "embeddings",
    "expected_calibration_error",
    "find_label_issues",
    "labels",
    "losses",
    "metrics",
    "nets",
    "plots",
    "posthoc",
    "report",
    "selection",
    "trusted_types",
    "utils",
]


# Type checkers see the imports above, and not that other names may exist.
if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _HEADLINE:
            value = getattr(import_module(f"{__name__}.{_HEADLINE[name]}"), name)
            globals()[name] = value
            return value
        if name in __all__:  # the other names are sub-packages
            return import_module(f"{__name__}.{name}")
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
