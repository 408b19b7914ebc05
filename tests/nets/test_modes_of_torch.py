"""Modes of torch around a fit, in which a training would end or stall without a word."""

import numpy as np
import pytest
import torch
from sklearn.datasets import load_iris

from skcalib.nets import MLP, CalibratedNetClassifier

X, Y = load_iris(return_X_y=True)
X = X.astype(np.float32)


def _fit(**params):
    net = CalibratedNetClassifier(MLP, max_epochs=2, random_state=0, train_split=None, **params)
    return net.fit(X, Y)


@pytest.mark.usefixtures("on_host")
def test_inference_mode_and_autocast_are_refused():
    with torch.inference_mode(), pytest.raises(RuntimeError, match="outside of torch"):
        _fit()
    with (
        torch.autocast("cpu", dtype=torch.bfloat16),
        pytest.raises(RuntimeError, match=r"outside of torch.autocast\('cpu'\).*mixed_precision"),
    ):
        _fit()
    with torch.no_grad():
        assert _fit(mixed_precision="bf16").predict(X).shape == (150,)


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.float16])
def test_another_default_type_is_refused_where_a_net_is_made(dtype):
    net = _fit()
    torch.set_default_dtype(dtype)
    try:
        assert net.predict_proba(X).dtype == np.float32
        with pytest.raises(RuntimeError, match=f"must be torch.float32 .* got {dtype}"):
            _fit()
    finally:
        torch.set_default_dtype(torch.float32)
