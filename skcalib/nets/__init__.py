"""Neural networks as scikit-learn classifiers."""

from ..utils.meta._docs import fill_docstrings
from ..utils.meta._optional import import_optional

import_optional("torch", extra="nets")
import_optional("skorch", extra="nets")

from ._dynamics import TrainingDynamics
from ._input_margin import adversarial_input_margin
from ._mlp import MLP
from ._monitor import CalibrationMonitor
from ._net import CalibratedNetClassifier
from ._prioritizer import EpochPrioritizer

__all__ = [  # noqa: RUF022  (plain order, as everywhere)
    "CalibratedNetClassifier",
    "CalibrationMonitor",
    "EpochPrioritizer",
    "MLP",
    "TrainingDynamics",
    "adversarial_input_margin",
]

fill_docstrings(globals())
