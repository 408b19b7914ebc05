"""Neural networks as scikit-learn classifiers."""

from ..utils import import_optional

import_optional("torch", extra="nets")
import_optional("skorch", extra="nets")

from ._dynamics import TrainingDynamics
from ._input_margin import adversarial_input_margin
from ._monitor import CalibrationMonitor
from ._net import CalibratedNetClassifier
from .modules import MLP, CifarResNet, CifarResNet18, CifarVGG16, ConvNet

__all__ = [  # noqa: RUF022  (plain order, as everywhere)
    "CalibratedNetClassifier",
    "CalibrationMonitor",
    "CifarResNet",
    "CifarResNet18",
    "CifarVGG16",
    "ConvNet",
    "MLP",
    "TrainingDynamics",
    "adversarial_input_margin",
]
