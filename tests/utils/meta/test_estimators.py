from types import SimpleNamespace

import numpy as np
import pytest
import sklearn
from sklearn.base import BaseEstimator
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from skcalib.utils.meta._estimators import (
    check_fit_takes,
    common_input_tags,
    fit_router,
    inner_fit_params,
    show_inner,
    takes,
)


class Meta(BaseEstimator):
    def __init__(self, estimator):
        self.estimator = estimator

    def fit(self, X, y, sample_weight=None):
        return self

    def get_metadata_routing(self):
        return fit_router(self, estimator=self.estimator)


def test_gives_what_there_is_and_no_more():
    outer = SimpleNamespace()
    show_inner(outer, SimpleNamespace(n_features_in_=3, other_=1))
    assert vars(outer) == {"n_features_in_": 3}


@pytest.mark.parametrize(
    ("estimators", "sparse", "allow_nan"),
    [
        ([LogisticRegression()], True, False),
        ([LogisticRegression(), GaussianNB()], False, False),
        ([HistGradientBoostingClassifier(), HistGradientBoostingClassifier()], False, True),
        ([HistGradientBoostingClassifier(), GaussianNB()], False, False),
        ([LogisticRegression(), object()], True, False),
    ],
    ids=["sparse", "dense", "NaN", "no NaN", "no estimator"],
)
def test_input_that_all_take(estimators, sparse, allow_nan):
    tags = common_input_tags(*estimators)
    assert (tags.sparse, tags.allow_nan) == (sparse, allow_nan)


def test_parameters_of_fit():
    assert takes(GaussianNB().fit, "sample_weight")
    assert takes(make_pipeline(GaussianNB()).fit, "gaussiannb__sample_weight")
    assert not takes(KNeighborsClassifier().fit, "sample_weight")
    check_fit_takes(GaussianNB(), "sample_weight")
    with pytest.raises(
        ValueError,
        match=r"^scorer must have the parameter 'sample_weight' in its fit \(why\), got KNeigh",
    ):
        check_fit_takes(KNeighborsClassifier(), "sample_weight", " (why)", name="scorer")


def test_without_routing_everything_reaches_the_estimator():
    weight = np.ones(3)
    meta = Meta(GaussianNB())
    assert inner_fit_params(meta, "estimator", None, {"a": 1}) == {"a": 1}
    params = inner_fit_params(meta, "estimator", weight, {"a": 1})
    assert params == {"a": 1, "sample_weight": weight}
    with pytest.raises(ValueError, match="estimator must have the parameter 'sample_weight'"):
        inner_fit_params(Meta(KNeighborsClassifier()), "estimator", weight, {})


def test_with_routing_the_estimator_gets_what_it_requests():
    weight = np.ones(3)
    with sklearn.config_context(enable_metadata_routing=True):
        asks = Meta(GaussianNB().set_fit_request(sample_weight=True))
        assert inner_fit_params(asks, "estimator", weight, {}) == {"sample_weight": weight}
        assert inner_fit_params(asks, "estimator", None, {}) == {}
        refuses = Meta(GaussianNB().set_fit_request(sample_weight=False))
        refuses.set_fit_request(sample_weight=True)
        assert inner_fit_params(refuses, "estimator", weight, {}) == {}
