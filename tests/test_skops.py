"""skops stores every fitted estimator without pickle, and loads one that answers alike."""

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.datasets import make_blobs

from tests.test_common import _instances

io = pytest.importorskip("skops.io")

# skops has no format for tensors outside of skorch's nets.
WITHOUT = {"LayerEmbedder"}
ANSWERS = ("predict", "predict_proba", "decision_function", "transform", "difficulty", "accept")


@pytest.mark.filterwarnings("ignore::skcalib.utils.SkcalibWarning")
@pytest.mark.parametrize("names", [None, ["ant", "bee", "cat"]], ids=["integers", "strings"])
@pytest.mark.parametrize(
    "estimator",
    [e for e in _instances() if type(e).__name__ not in WITHOUT],
    ids=lambda estimator: type(estimator).__name__,
)
def test_what_is_loaded_answers_as_what_was_stored(estimator, names):
    X, y = make_blobs(60, n_features=3, centers=3, cluster_std=2, random_state=0)
    fitted = clone(estimator).fit(X, y if names is None else np.array(names)[y])
    data = io.dumps(fitted)
    loaded = io.loads(data, trusted=io.get_untrusted_types(data=data))
    assert vars(loaded).keys() == vars(fitted).keys()
    for name in ANSWERS:
        if hasattr(fitted, name):
            expected = getattr(fitted, name)(X)
            np.testing.assert_array_equal(getattr(loaded, name)(X), expected)
