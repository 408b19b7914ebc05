"""The networks of the papers: sizes as printed there, and what each promises."""

import numpy as np
import pytest
import torch
from torch import nn

from benchmarks.cifar_networks import CifarResNet, cifar_resnet18, cifar_vgg16
from skcalib.nets import CalibratedNetClassifier

IMAGES = np.random.RandomState(0).rand(12, 3, 32, 32).astype(np.float32)
LABELS = np.arange(12) % 4


def n_weights(module):
    return sum(p.numel() for p in module.parameters())


def test_trains_with_sizes_from_the_data():
    net = CalibratedNetClassifier(
        CifarResNet, module__depth=8, max_epochs=1, train_split=None, batch_size=12, random_state=0
    )
    net.fit(IMAGES[:, :2, :16, :16], LABELS)
    assert net.predict_proba(IMAGES[:, :2, :16, :16]).shape == (12, 4)
    assert all(p.grad is not None for p in net.module_.parameters())


@pytest.mark.parametrize(
    ("depth", "millions"), [(20, 0.27), (32, 0.46), (44, 0.66), (56, 0.85), (110, 1.7)]
)
def test_size_of_cifar_resnets_is_that_of_the_paper(depth, millions):
    module = CifarResNet(depth)
    assert round(n_weights(module) / 1e6, 1 if depth == 110 else 2) == millions
    layers = [m for m in module.modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len(layers) == depth


def test_depth_must_fit():
    with pytest.raises(ValueError, match="depth must be 6 n"):
        CifarResNet(18)


@pytest.mark.slow
def test_resnet18_has_18_layers_and_the_usual_size():
    module = cifar_resnet18()
    main = [n for n, m in module.named_modules() if isinstance(m, nn.Conv2d | nn.Linear)]
    assert len([name for name in main if "downsample" not in name]) == 18
    assert round(n_weights(module) / 1e6, 2) == 11.17


@pytest.mark.slow
def test_vgg16_has_its_convolutions_and_one_linear_layer():
    module = cifar_vgg16()
    linear = [m for m in module.modules() if isinstance(m, nn.Linear)]
    convolutions = [m for m in module.modules() if isinstance(m, nn.Conv2d)]
    assert [m.out_features for m in linear] == [10]
    assert len(convolutions) == 13
    assert sum(m.weight.numel() + m.bias.numel() for m in convolutions) == 14_714_688
    with torch.no_grad():
        assert module(torch.from_numpy(IMAGES[:1])).shape == (1, 10)


@pytest.mark.slow
def test_samples_of_resnet18_do_not_see_each_other_even_in_training():
    module = cifar_resnet18().train()
    data = torch.from_numpy(IMAGES[:3, :, :16, :16])
    together = module(data)
    alone = torch.cat([module(image[None]) for image in data])
    torch.testing.assert_close(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.slow
def test_weight_standardization_makes_the_scale_of_filters_irrelevant():
    torch.manual_seed(0)
    convolution = cifar_resnet18().conv1
    weight, data = convolution.parametrizations.weight.original, torch.from_numpy(IMAGES[:1])
    before = convolution(data)
    with torch.no_grad():
        weight.mul_(7).add_(3)
    torch.testing.assert_close(convolution(data), before, rtol=1e-3, atol=1e-4)
    standard = weight - weight.mean(dim=(1, 2, 3), keepdim=True)
    standard = standard / standard.pow(2).mean(dim=(1, 2, 3), keepdim=True).sqrt()
    expected = nn.functional.conv2d(data, standard, padding=1)
    torch.testing.assert_close(convolution(data), expected, rtol=1e-3, atol=1e-4)


def test_shortcut_without_parameters_subsamples_and_pads():
    block = CifarResNet(8).blocks[1]
    data = torch.rand(2, 16, 4, 4)
    out = block.downsample(data)
    assert out.shape == (2, 32, 2, 2)
    torch.testing.assert_close(out[:, :16], data[:, :, ::2, ::2])
    assert not out[:, 16:].any()
    with torch.no_grad():
        block.bn2.weight.zero_()
    torch.testing.assert_close(block.eval()(data), out)
