import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError

from skcalib.nets import MLP, CalibratedNetClassifier

X, Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[Y]


def make_net(**params):
    return CalibratedNetClassifier(MLP, **{"max_epochs": 3, "random_state": 0, **params})


@pytest.mark.parametrize("labels", [NAMES, NAMES.astype(object), Y, Y > 0, Y * 2.0 - 1, Y - 7])
def test_a_fresh_net_predicts_as_the_saved_one(tmp_path, labels):
    net = make_net().fit(X, labels)
    net.save(tmp_path / "net.pt")
    again = make_net(random_state=1).load(tmp_path / "net.pt")
    np.testing.assert_array_equal(again.predict_proba(X), net.predict_proba(X))
    np.testing.assert_array_equal(again.predict(X), net.predict(X))
    np.testing.assert_array_equal(again.classes_, net.classes_)
    assert again.classes_.dtype == net.classes_.dtype
    assert again.n_features_in_ == 4
    assert again.score(X, labels) == net.score(X, labels)


def test_another_process_predicts_as_the_saved_net(tmp_path):
    net = make_net().fit(X, NAMES)
    net.save(tmp_path / "net.pt")
    np.save(tmp_path / "X.npy", X)
    code = f"""
import numpy as np
from skcalib.nets import MLP, CalibratedNetClassifier
net = CalibratedNetClassifier(MLP).load(r"{tmp_path / "net.pt"}")
print(*net.predict(np.load(r"{tmp_path / "X.npy"}")))
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert run.stdout.split() == net.predict(X).tolist()


def test_names_of_columns_are_kept(tmp_path):
    frame = pd.DataFrame(X, columns=list("abcd"))
    make_net().fit(frame, NAMES).save(tmp_path / "net.pt")
    net = make_net().load(tmp_path / "net.pt")
    assert net.feature_names_in_.tolist() == list("abcd")
    with pytest.raises(ValueError, match="feature names should match"):
        net.predict(frame[list("dcba")])


def test_a_loaded_net_can_be_trained_further(tmp_path):
    make_net(max_epochs=50).fit(X, NAMES).save(tmp_path / "net.pt")
    net = make_net().load(tmp_path / "net.pt")
    before = net.score(X, NAMES)
    assert net.partial_fit(X, NAMES).score(X, NAMES) > before - 0.05
    assert len(net.history) == 3


def test_what_does_not_fit_is_told(tmp_path):
    path = tmp_path / "net.pt"
    with pytest.raises(NotFittedError):
        make_net().save(path)
    make_net().fit(X, NAMES).save(path)
    with pytest.raises(ValueError, match="module must have the parameters that are saved in path"):
        make_net(module__hidden=(7,)).load(path)
    with pytest.raises(ValueError, match="classes must be None or the saved labels"):
        make_net(classes=["a", "b", "c"]).load(path)
    torch.save(MLP(4, 3).state_dict(), path)
    with pytest.raises(ValueError, match="path must be a file that save has written"):
        make_net().load(path)


def test_code_in_a_file_is_not_run(tmp_path):
    class Evil:
        def __reduce__(self):
            return print, ("run",)

    torch.save({"format": 1, "module": Evil()}, tmp_path / "net.pt")
    with pytest.raises(Exception, match="Weights only load failed"):
        make_net().load(tmp_path / "net.pt")


def test_labels_that_are_no_plain_values_cannot_be_saved(tmp_path):
    dates = np.array(["2020-01-01", "2020-01-02", "2020-01-03"], dtype="datetime64[D]")[Y]
    net = make_net().fit(X, NAMES)
    net.classes_inferred_ = np.unique(dates)
    with pytest.raises(TypeError, match="classes_ must be numbers or strings to be saved"):
        net.save(tmp_path / "net.pt")
