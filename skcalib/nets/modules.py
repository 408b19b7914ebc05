"""Ready networks that give logits."""

from __future__ import annotations

from ._convnet import CifarVGG16, ConvNet
from ._mlp import MLP
from ._resnet import CifarResNet, CifarResNet18

__all__ = ["CifarResNet", "CifarResNet18", "CifarVGG16", "ConvNet", "MLP"]  # noqa: RUF022
