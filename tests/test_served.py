"""Every served form of a fitted estimator answers as the estimator does, bit by bit.

ONNX and JSON, which round, are in ``tests/test_onnx.py`` and ``tests/posthoc/test_formula.py``;
nets that save their numbers, compiled or not, in ``tests/nets/test_storage.py``.
"""

import io
import pickle
from importlib.util import find_spec

import joblib
import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs
from sklearn.naive_bayes import GaussianNB

import skcalib
from skcalib.selection import MinimumCostClassifier
from tests.test_common import _instances

ANSWERS = ("predict", "predict_proba", "decision_function", "transform", "difficulty", "accept")
# skops has no format for tensors outside of skorch's nets, and nets hold types of torch.
NOT_IN_SKOPS = {"LayerEmbedder", "CalibratedNetClassifier"}
# Of scikit-learn, and unknown to skops.
INNER = {
    "sklearn.neural_network._stochastic_optimizers.AdamOptimizer",
    "sklearn.tree._tree.Tree",
}


def through_pickle(fitted):
    return pickle.loads(pickle.dumps(fitted))


def through_joblib(fitted):
    file = io.BytesIO()
    joblib.dump(fitted, file)
    file.seek(0)
    return joblib.load(file)


def through_skops(fitted):
    from skops.io import dumps, get_untrusted_types, loads

    data = dumps(fitted)
    trusted = skcalib.trusted_types()
    assert set(get_untrusted_types(data=data)) <= {*trusted, *INNER}
    return loads(data, trusted=[*trusted, *INNER])


def _forms():
    # Costs have no default, so that the checks of scikit-learn have no instance.
    costly = MinimumCostClassifier(GaussianNB(), 1 - np.eye(3))
    for estimator in [*_instances(), costly]:
        name = type(estimator).__name__
        for form in (through_pickle, through_joblib, through_skops):
            if form is through_skops and (name in NOT_IN_SKOPS or not find_spec("skops")):
                continue
            yield pytest.param(estimator, form, id=f"{name}-{form.__name__}")


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize(("estimator", "form"), list(_forms()))
def test_what_is_loaded_answers_as_what_was_stored(estimator, form):
    X, y = make_blobs(60, n_features=3, centers=3, cluster_std=2, random_state=0)
    fitted = clone(estimator).fit(X, np.array(["ant", "bee", "cat"])[y])
    loaded = form(fitted)
    assert vars(loaded).keys() == vars(fitted).keys()
    for name in ANSWERS:
        if hasattr(fitted, name):
            expected = getattr(fitted, name)(X)
            np.testing.assert_array_equal(getattr(loaded, name)(X), expected)


def test_types_that_are_trusted_are_classes_of_this_package():
    names = skcalib.trusted_types()
    assert names == sorted(set(names))
    assert "skcalib.posthoc._stacking.StackedCalibration" in names
    assert all(name.startswith("skcalib.") and "nets" not in name for name in names)
