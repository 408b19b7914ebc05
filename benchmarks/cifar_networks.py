"""The networks of the papers, in their form for images of CIFAR: 32 x 32 pixels."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.utils.parametrize import register_parametrization


class _PadShortcut(nn.Module):
    """Shortcut without parameters: every second pixel, new channels are zero (He et al., A)."""

    def __init__(self, n_new: int) -> None:
        super().__init__()
        self.n_new = n_new

    def forward(self, X: Tensor) -> Tensor:
        return F.pad(X[:, :, ::2, ::2], (0, 0, 0, 0, 0, self.n_new))


class CifarResNet(nn.Module):
    """Residual network of the CIFAR experiments of He et al., CVPR 2016, Sec. 4.2.

    Three stages of 16, 32 and 64 channels with (depth - 2) / 6 blocks each, batch normalization,
    and shortcuts without parameters. `depth` counts the layers with weights: 8, 14, 20, 32, ...
    """

    def __init__(self, depth: int = 20, *, n_classes: int = 10, n_channels: int = 3) -> None:
        from torchvision.models.resnet import BasicBlock

        super().__init__()
        if depth < 8 or depth % 6 != 2:
            raise ValueError(f"depth must be 6 n + 2 with n >= 1, as 8, 14 or 20, got {depth}.")
        convolution = nn.Conv2d(n_channels, 16, 3, padding=1, bias=False)
        self.stem = nn.Sequential(convolution, nn.BatchNorm2d(16), nn.ReLU())
        self.blocks, n_in = nn.Sequential(), 16
        for width in (16, 32, 64):
            for _ in range((depth - 2) // 6):
                shortcut = None if n_in == width else _PadShortcut(width - n_in)
                self.blocks.append(BasicBlock(n_in, width, 1 + (n_in < width), shortcut))
                n_in = width
        self.classifier = nn.Linear(n_in, n_classes)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, X: Tensor) -> Tensor:
        """Return the logits of images (n_samples, n_channels, height, width)."""
        return self.classifier(self.blocks(self.stem(X)).mean(dim=(2, 3)))


class _Standardized(nn.Module):
    """Filters standardized to mean 0 and variance 1 (Qiao et al. 2019)."""

    def forward(self, weight: Tensor) -> Tensor:
        variance, mean = torch.var_mean(weight, dim=(1, 2, 3), correction=0, keepdim=True)
        return (weight - mean) * torch.rsqrt(variance + 1e-10)


def cifar_resnet(name: str, n_classes: int, **options: Any) -> nn.Module:
    """Return a ResNet of torchvision with the stem for 32 x 32 pixels: no stride, no pooling."""
    from torchvision.models import get_model

    net = get_model(name, num_classes=n_classes, **options)
    net.conv1 = nn.Conv2d(3, 64, 3, padding=1, bias=False)
    net.maxpool = nn.Identity()
    return net


def cifar_resnet18(n_classes: int = 10) -> nn.Module:
    """Return ResNet18 with group normalization and weight standardization.

    As in Baldock et al., NeurIPS 2021, App. A. No layer looks across the samples of a batch: the
    logits of a sample depend on this sample alone, in training too.
    """
    net = cifar_resnet("resnet18", n_classes, norm_layer=partial(nn.GroupNorm, 32))
    for layer in list(net.modules()):
        if isinstance(layer, nn.Conv2d):
            register_parametrization(layer, "weight", _Standardized())
    return net


def cifar_vgg16(n_classes: int = 10) -> nn.Sequential:
    """Return VGG16 for 32 x 32 images: its 13 convolutions and one linear layer.

    Simonyan and Zisserman, ICLR 2015, Table 1 (D). The two wide dense layers of the original are
    left out, as usual on CIFAR.
    """
    from torchvision.models import vgg16

    return nn.Sequential(*vgg16().features, nn.Flatten(), nn.Linear(512, n_classes))
