import pickle

import torch
from sklearn.base import clone

from skcalib.nets import MLP, CalibratedNetClassifier
from skcalib.utils._backends import choose_device


def test_auto_is_resolved_where_the_net_computes_and_kept_in_its_parameters():
    net = CalibratedNetClassifier(MLP)
    assert net.device == choose_device()
    for copy in (net, clone(net), pickle.loads(pickle.dumps(net))):
        assert copy.get_params()["device"] == "auto"
    assert net.set_params(device="cpu").get_params()["device"] == "cpu"


def test_other_devices_are_left_as_they_are():
    for device in (None, "cpu", torch.device("cpu")):
        net = CalibratedNetClassifier(MLP, device=device)
        assert net.device is device
        assert clone(net).get_params()["device"] == device


def test_auto_prefers_cuda_then_mps(monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert choose_device.__wrapped__() == "mps"
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    assert choose_device.__wrapped__() == "cuda"
