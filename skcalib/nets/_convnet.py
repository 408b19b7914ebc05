"""Plain convolutional networks: a small one, and VGG16 in its CIFAR form."""

from __future__ import annotations

from torch import Tensor, nn

# Widths of the convolutions of VGG16; "M" is a 2 x 2 max-pooling.
_VGG16 = (64, 64, "M", 128, 128, "M", 256, 256, 256, "M", 512, 512, 512, "M", 512, 512, 512, "M")


def _convolution(n_in: int, n_out: int, batch_norm: bool) -> list[nn.Module]:
    convolution = nn.Conv2d(n_in, n_out, 3, padding=1, bias=not batch_norm)
    return [convolution, *([nn.BatchNorm2d(n_out)] if batch_norm else []), nn.ReLU()]


class ConvNet(nn.Module):
    """Small convolutional network: three 3 x 3 convolutions, average pooling, one linear layer.

    Each convolution has batch normalization and ReLU, and is followed by 2 x 2 max-pooling where
    at least two rows and columns are left; the width doubles from one to the next.

    Parameters
    ----------
    n_classes : int
        Number of classes.
    n_channels : int, default=3
        Number of channels of the images.
    width : int, default=16
        Number of channels after the first convolution.

    Examples
    --------
    >>> import torch
    >>> from skcalib.nets import ConvNet
    >>> ConvNet(n_classes=10, n_channels=1)(torch.zeros(2, 1, 8, 8)).shape
    torch.Size([2, 10])
    """

    def __init__(self, n_classes: int, *, n_channels: int = 3, width: int = 16) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for n_out in (width, 2 * width, 4 * width):
            layers += [
                *_convolution(n_channels, n_out, batch_norm=True),
                nn.MaxPool2d(2, ceil_mode=True),
            ]
            n_channels = n_out
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Linear(n_channels, n_classes)

    def forward(self, X: Tensor) -> Tensor:
        """Return the logits.

        Parameters
        ----------
        X : Tensor of shape (n_samples, n_channels, height, width)
            Images.

        Returns
        -------
        logits : Tensor of shape (n_samples, n_classes)
            Unnormalized log-probabilities.
        """
        return self.classifier(self.features(X))


class CifarVGG16(nn.Module):
    """VGG16 for 32 x 32 images: its 13 convolutions and one linear layer.

    The two wide dense layers of the original are left out, as usual on CIFAR.

    Parameters
    ----------
    n_classes : int, default=10
        Number of classes.
    n_channels : int, default=3
        Number of channels of the images.
    batch_norm : bool, default=True
        Whether every convolution is followed by batch normalization.

    References
    ----------
    Simonyan and Zisserman, Very Deep Convolutional Networks for Large-Scale Image Recognition,
    ICLR 2015, Table 1 (D).

    Examples
    --------
    >>> import torch
    >>> from skcalib.nets import CifarVGG16
    >>> net = CifarVGG16()
    >>> sum(type(layer).__name__ == "Conv2d" for layer in net.modules())
    13
    """

    def __init__(
        self, n_classes: int = 10, *, n_channels: int = 3, batch_norm: bool = True
    ) -> None:
        super().__init__()
        layers: list[nn.Module] = []
        for width in _VGG16:
            if isinstance(width, str):
                layers.append(nn.MaxPool2d(2))
            else:
                layers += _convolution(n_channels, width, batch_norm)
                n_channels = width
        self.features = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten())
        self.classifier = nn.Linear(n_channels, n_classes)

    def forward(self, X: Tensor) -> Tensor:
        """Return the logits.

        Parameters
        ----------
        X : Tensor of shape (n_samples, n_channels, height, width)
            Images of at least 32 x 32 pixels.

        Returns
        -------
        logits : Tensor of shape (n_samples, n_classes)
            Unnormalized log-probabilities.
        """
        return self.classifier(self.features(X))
