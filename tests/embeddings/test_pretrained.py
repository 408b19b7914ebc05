"""What is said when a model or its weights are not there."""

import numpy as np
import pytest
import torch
from torch import nn

from skcalib.embeddings import LayerEmbedder
from skcalib.embeddings._hooks import evaluating, get_first_tensor
from skcalib.embeddings._pretrained import list_near_names, loading


def test_a_long_reason_is_one_line_and_cut(tmp_path):
    file = tmp_path / "weights.pt"
    file.write_text("none")
    reason = "size mismatch\n\tfor layer " + "x" * 5000
    cases = [
        ("m", str(file), ValueError, "pretrained must hold weights that fit m, got "),
        ("m", "tag", OSError, "The pretrained weights 'tag' could not be loaded"),
        ("hub:m", None, OSError, "The pretrained weights 'hub:m' could not be loaded"),
    ]
    for name, pretrained, kind, begin in cases:
        with pytest.raises(kind) as caught, loading(name, pretrained):
            raise RuntimeError(reason)
        said = str(caught.value)
        assert said.startswith(begin)
        assert "size mismatch for layer xxx" in said
        assert "\n" not in said
        assert len(said) < 700
        assert ("local-dir:" in said) == (":" in name)
        assert isinstance(caught.value.__cause__, RuntimeError)
    # What a missing package says is left as it is.
    with pytest.raises(ImportError, match=r"^no package$"), loading("m", str(file)):
        raise ImportError("no package")


def test_names_are_near_or_not_there():
    assert list_near_names("resnet81", ["resnet18", "vit"]) == " (near names: resnet18)"
    assert list_near_names("qqq", ["resnet18", "vit"]) == ""


def test_the_first_tensor_of_any_output():
    tensor = torch.ones(2)
    for output in (tensor, (tensor, 3), [(tensor,), 3]):
        assert get_first_tensor(output) is tensor
    for output in ((), [], {"a": tensor}, (3, tensor), None):
        assert get_first_tensor(output) is None


def test_the_mode_of_every_part_comes_back_from_within_and_after_an_error():
    module = nn.Sequential(nn.Dropout(), nn.Sequential(nn.Dropout(), nn.BatchNorm1d(2)))
    module[1][0].eval()
    modes = [part.training for part in module.modules()]

    def fail_within():
        with evaluating(module):
            assert not any(part.training for part in module.modules())
            with evaluating(module):
                assert not torch.is_grad_enabled()
            assert not any(part.training for part in module.modules())
            raise KeyError

    with pytest.raises(KeyError):
        fail_within()
    assert [part.training for part in module.modules()] == modes
    assert torch.is_grad_enabled()


@pytest.mark.parametrize("default", [torch.float32, torch.float64])
def test_a_module_without_numbers_gets_those_of_torch(default):
    kinds = []

    class Plain(nn.Module):
        def forward(self, x):
            kinds.append(x.dtype)
            return 2 * x

    former = torch.get_default_dtype()
    torch.set_default_dtype(default)
    try:
        X = np.arange(6).reshape(3, 2)
        np.testing.assert_array_equal(LayerEmbedder(Plain(), "").fit(X).transform(X), 2 * X)
    finally:
        torch.set_default_dtype(former)
    assert set(kinds) == {default}


def test_the_last_batch_may_be_smaller_and_rows_one():
    X = np.random.default_rng(0).normal(size=(7, 3)).astype(np.float32)
    sizes = []

    class Plain(nn.Linear):
        def forward(self, x):
            sizes.append(len(x))
            return super().forward(x)

    module = Plain(3, 2)
    embedder = LayerEmbedder(module, "", batch_size=3).fit(X)
    with torch.no_grad():
        expected = nn.functional.linear(torch.tensor(X), module.weight, module.bias)
    sizes.clear()
    np.testing.assert_allclose(embedder.transform(X), expected, rtol=1e-6)
    assert sizes == [3, 3, 1]
    np.testing.assert_allclose(embedder.transform(X[:1]), expected[:1], rtol=1e-6)
