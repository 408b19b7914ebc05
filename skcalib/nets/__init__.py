"""Neural networks as scikit-learn classifiers."""

from ..utils._output import fill_docstrings, import_optional

import_optional("torch", extra="nets")
import_optional("skorch", extra="nets")

from ._callbacks import CalibrationScoring, TrainingDynamics
from ._mlp import MLP, adversarial_input_margin
from ._net import CalibratedNetClassifier
from ._prioritizer import EpochPrioritizer

__all__ = [  # noqa: RUF022  (plain order, as everywhere)
    "CalibratedNetClassifier",
    "CalibrationScoring",
    "EpochPrioritizer",
    "MLP",
    "TrainingDynamics",
    "adversarial_input_margin",
]

fill_docstrings(globals())
