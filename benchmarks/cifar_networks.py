"""The networks of the papers, in their form for images of CIFAR: 32 x 32 pixels."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn
from torch.nn import functional as F

Convolution = Callable[..., nn.Module]
Norm = Callable[[int], nn.Module]


class _StandardizedConv2d(nn.Conv2d):
    """Convolution whose filters are standardized to mean 0 and variance 1 (Qiao et al. 2019)."""

    def forward(self, X: Tensor) -> Tensor:
        variance, mean = torch.var_mean(self.weight, dim=(1, 2, 3), correction=0, keepdim=True)
        weight = (self.weight - mean) * torch.rsqrt(variance + 1e-10)
        return F.conv2d(X, weight, self.bias, self.stride, self.padding)


class _PadShortcut(nn.Module):
    """Shortcut without parameters: every second pixel, new channels are zero (He et al., A)."""

    def __init__(self, n_in: int, n_out: int) -> None:
        super().__init__()
        self.n_new = n_out - n_in

    def forward(self, X: Tensor) -> Tensor:
        return F.pad(X[:, :, ::2, ::2], (0, 0, 0, 0, 0, self.n_new))


class _BasicBlock(nn.Module):
    """Two 3 x 3 convolutions and the sum with the input."""

    def __init__(
        self, n_in: int, n_out: int, convolution: Convolution, norm: Norm, shortcut: nn.Module
    ) -> None:
        super().__init__()
        stride = 1 if n_in == n_out else 2
        self.conv1 = convolution(n_in, n_out, 3, stride=stride, padding=1, bias=False)
        self.norm1 = norm(n_out)
        self.conv2 = convolution(n_out, n_out, 3, padding=1, bias=False)
        self.norm2 = norm(n_out)
        self.shortcut = shortcut

    def forward(self, X: Tensor) -> Tensor:
        out = F.relu(self.norm1(self.conv1(X)))
        return F.relu(self.norm2(self.conv2(out)) + self.shortcut(X))


class _ResNet(nn.Module):
    """Stem, stages of blocks of growing width, average pooling, linear layer."""

    def __init__(
        self, n_channels: int, n_classes: int, widths: tuple[int, ...], n_blocks: int,
        convolution: Convolution, norm: Norm, shortcut: Callable[[int, int], nn.Module],
    ) -> None:  # fmt: skip
        super().__init__()
        n_in = widths[0]
        self.stem = nn.Sequential(
            convolution(n_channels, n_in, 3, padding=1, bias=False), norm(n_in), nn.ReLU()
        )
        blocks = []
        for width in widths:
            for _ in range(n_blocks):
                skip = nn.Identity() if n_in == width else shortcut(n_in, width)
                blocks.append(_BasicBlock(n_in, width, convolution, norm, skip))
                n_in = width
        self.blocks = nn.Sequential(*blocks)
        self.classifier = nn.Linear(n_in, n_classes)
        for layer in self.modules():
            if isinstance(layer, nn.Conv2d):
                nn.init.kaiming_normal_(layer.weight, mode="fan_out", nonlinearity="relu")

    def forward(self, X: Tensor) -> Tensor:
        """Return the logits of images (n_samples, n_channels, height, width)."""
        return self.classifier(self.blocks(self.stem(X)).mean(dim=(2, 3)))


class CifarResNet(_ResNet):
    """Residual network of the CIFAR experiments of He et al., CVPR 2016, Sec. 4.2.

    Three stages of 16, 32 and 64 channels with (depth - 2) / 6 blocks each, batch normalization,
    and shortcuts without parameters. `depth` counts the layers with weights: 8, 14, 20, 32, ...
    """

    def __init__(self, depth: int = 20, *, n_classes: int = 10, n_channels: int = 3) -> None:
        if depth < 8 or depth % 6 != 2:
            raise ValueError(f"depth must be 6 n + 2 with n >= 1, as 8, 14 or 20, got {depth}.")
        n_blocks, widths = (depth - 2) // 6, (16, 32, 64)
        super().__init__(
            n_channels, n_classes, widths, n_blocks, nn.Conv2d, nn.BatchNorm2d, _PadShortcut
        )


class CifarResNet18(_ResNet):
    """ResNet18 for 32 x 32 images, with group normalization and weight standardization.

    As in Baldock et al., NeurIPS 2021, App. A. The stem is one 3 x 3 convolution without pooling.
    No layer looks across the samples of a batch: the logits of a sample depend on this sample
    alone, in training too. `width` is the number of channels of the first of the four stages, a
    multiple of `n_groups`; it doubles from stage to stage.
    """

    def __init__(
        self, n_classes: int = 10, *, n_channels: int = 3, width: int = 64, n_groups: int = 32
    ) -> None:
        def norm(n: int) -> nn.Module:
            return nn.GroupNorm(n_groups, n)

        def shortcut(n_in: int, n_out: int) -> nn.Module:
            projection = _StandardizedConv2d(n_in, n_out, 1, stride=2, bias=False)
            return nn.Sequential(projection, norm(n_out))

        widths = (width, 2 * width, 4 * width, 8 * width)
        super().__init__(n_channels, n_classes, widths, 2, _StandardizedConv2d, norm, shortcut)


def cifar_vgg16(n_classes: int = 10) -> nn.Sequential:
    """Return VGG16 for 32 x 32 images: its 13 convolutions and one linear layer.

    Simonyan and Zisserman, ICLR 2015, Table 1 (D). The two wide dense layers of the original are
    left out, as usual on CIFAR.
    """
    from torchvision.models import vgg16

    return nn.Sequential(*vgg16().features, nn.Flatten(), nn.Linear(512, n_classes))
