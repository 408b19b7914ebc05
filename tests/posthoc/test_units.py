"""Probabilities do not depend on the unit of decision values, and pairs of classes are refused."""

import numpy as np
import pytest
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, clone
from sklearn.datasets import load_breast_cancer, make_classification
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression, RidgeClassifier, SGDClassifier
from sklearn.metrics import roc_auc_score
from sklearn.multiclass import OneVsOneClassifier
from sklearn.svm import SVC, LinearSVC

from skcalib import posthoc
from skcalib.posthoc import PostHocCalibratedClassifier

from ._sample import sample

CALIBRATORS = sorted(
    {
        name
        for name in posthoc.__all__
        if name not in ("PostHocCalibratedClassifier", "PostHocCalibrator", "PriorShift")
    }
)
NAMES = ["auto", "beta", "histogram", "isotonic", "sigmoid", "temperature", "structured_matrix"]


@pytest.mark.parametrize("name", CALIBRATORS)
@pytest.mark.parametrize("k", [2, 3])
def test_scores_have_no_unit(name, k):
    scores, y = sample(n=300, k=k)
    if k == 2:
        scores = scores[:, 1] - scores[:, 0]
    new = 20 * scores[:40]  # far beyond what was fitted
    model = getattr(posthoc, name)(input="scores")
    expected = clone(model).fit(scores, y).predict_proba(new)
    for scale in (1e-4, 1e6):
        fitted = clone(model).fit(scale * scores, y)
        np.testing.assert_allclose(fitted.predict_proba(scale * new), expected, atol=1e-7)
        assert fitted.unit_ == pytest.approx(scale * clone(model).fit(scores, y).unit_)


def test_the_unit_is_the_median_margin():
    scores, y = sample(n=301, k=3)
    second, first = np.sort(scores, axis=1)[:, 1:].T
    stack = posthoc.StackedCalibration(input="scores").fit(scores, y)
    assert stack.unit_ == np.median(first - second)
    tied = np.vstack([scores, np.repeat(scores[:, :1], 3, axis=1)])
    tied = posthoc.TemperatureScaling(input="scores").fit(tied, np.tile(y, 2))
    assert tied.unit_ == stack.unit_
    assert (
        posthoc.TemperatureScaling(input="scores").fit(np.zeros((9, 2)), [0, 1, 1] * 3).unit_ == 1
    )


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e6])
def test_maps_of_a_score_are_those_of_scikit_learn(scale):
    rng = np.random.default_rng(0)
    logits = 2 * rng.normal(size=800)
    y, new = (rng.random(800) < expit(logits)).astype(int), 3 * rng.normal(size=100)
    for form in ("logits", "scores"):
        isotonic = posthoc.IsotonicCalibration(input=form).fit(scale * logits, y)
        expected = IsotonicRegression(out_of_bounds="clip").fit(logits, y).predict(new)
        np.testing.assert_allclose(isotonic.predict_proba(scale * new)[:, 1], expected, atol=1e-9)
        sigmoid = posthoc.SigmoidCalibration(input=form).fit(scale * logits, y)
        platt = LogisticRegression(C=np.inf, tol=1e-10).fit(logits[:, None], y)
        expected = platt.predict_proba(new[:, None])
        np.testing.assert_allclose(sigmoid.predict_proba(scale * new), expected, atol=1e-6)
        temperature = posthoc.TemperatureScaling(input=form).fit(scale * logits, y)
        through_0 = LogisticRegression(C=np.inf, tol=1e-10, fit_intercept=False)
        expected = through_0.fit(logits[:, None], y).predict_proba(new[:, None])
        np.testing.assert_allclose(temperature.predict_proba(scale * new), expected, atol=1e-6)
        binning = posthoc.HistogramBinning(input=form, n_bins=5).fit(scale * logits, y)
        order = np.argsort(logits)
        means = np.repeat([y[part].mean() for part in np.split(order, 5)], 160)
        np.testing.assert_allclose(binning.predict_proba(scale * logits[order])[:, 1], means)


class Scaled(ClassifierMixin, BaseEstimator):
    """A classifier whose decision values have another unit."""

    def __init__(self, inner, scale=1.0):
        self.inner = inner
        self.scale = scale

    def fit(self, X, y):
        self.inner_ = clone(self.inner).fit(X, y)
        self.classes_ = self.inner_.classes_
        return self

    def decision_function(self, X):
        return self.scale * self.inner_.decision_function(X)

    def predict(self, X):
        return self.inner_.predict(X)


@pytest.mark.slow
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("k", [2, 3])
def test_a_calibrated_classifier_does_not_depend_on_the_unit(name, k):
    X, y = make_classification(
        600, n_informative=5, n_classes=k, class_sep=0.5, flip_y=0.1, random_state=0
    )
    model = RidgeClassifier().fit(X[:300], y[:300])
    proba = []
    for scale in (1.0, 1e-4, 1e6):
        calibrated = PostHocCalibratedClassifier(
            FrozenEstimator(Scaled(model).set_params(scale=scale).fit(X[:300], y[:300])), name
        )
        proba.append(calibrated.fit(X[300:], y[300:]).predict_proba(X))
    # A search for a matrix ends where a step would lower the log-loss by less than 1e-9.
    np.testing.assert_allclose(proba[1], proba[0], atol=1e-6)
    np.testing.assert_allclose(proba[2], proba[0], atol=1e-6)


@pytest.mark.parametrize("name", ["auto", "temperature", "sigmoid", "beta", "structured_matrix"])
def test_decision_values_of_a_hundred_thousand_keep_their_order(name):
    X, y = load_breast_cancer(return_X_y=True)  # on its own scale
    model = SGDClassifier(random_state=0).fit(X[:250], y[:250])
    scores = model.decision_function(X[400:])
    assert np.median(np.abs(scores)) > 1e4
    calibrated = PostHocCalibratedClassifier(FrozenEstimator(model), name).fit(
        X[250:400], y[250:400]
    )
    proba = calibrated.predict_proba(X[400:])[:, 1]
    assert roc_auc_score(y[400:], proba) >= roc_auc_score(y[400:], scores) - 1e-12
    assert len(np.unique(proba)) > 0.9 * len(np.unique(scores))


@pytest.mark.slow
def test_what_is_a_logit_stays_one():
    X, y = make_classification(400, n_informative=5, n_classes=3, random_state=0)
    for model, form in (
        (LogisticRegression(), "logits"),
        (LinearDiscriminantAnalysis(), "logits"),
        (LinearSVC(), "scores"),
        (SVC(), "scores"),
    ):
        fitted = PostHocCalibratedClassifier(model, cv=2).fit(X, y)
        assert fitted.calibrator_.input == form
    logits = fitted.estimator_.decision_function(X)
    plain = PostHocCalibratedClassifier(SVC(), "none", cv=2).fit(X, y).predict_proba(X)
    np.testing.assert_allclose(plain, softmax(logits, axis=1))


@pytest.mark.parametrize("form", ["logits", "scores"])
def test_beta_of_equal_logits_is_a_constant_map(form):
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 200) > 0
    for center in (-3.0, 0.5, 2.0):
        logits = center + 1e-8 * rng.random(200)
        beta = posthoc.BetaCalibration(input=form).fit(logits, y)
        found = beta.predict_proba([-5.0, center, 0.0, 9.0])[:, 1]
        np.testing.assert_allclose(found, y.mean(), atol=1e-6)


def test_logits_that_are_none_are_refused():
    with pytest.raises(
        ValueError, match=r"X must hold logits of at most 1e\+15, got 2e\+15; input"
    ):
        posthoc.TemperatureScaling().fit([-1.0, 2e15, 1.0, -2.0], [0, 1, 1, 0])
    scaling = posthoc.TemperatureScaling(input="scores")
    large = scaling.fit([-1e15, 2e15, -1e15, 2e15], [0, 1, 1, 1]).predict_proba([1e15])
    expected = scaling.fit([-1.0, 2.0, -1.0, 2.0], [0, 1, 1, 1]).predict_proba([1.0])
    np.testing.assert_allclose(large, expected)


@pytest.mark.slow
@pytest.mark.parametrize("frozen", [False, True])
def test_scores_of_pairs_of_classes_are_an_error_that_says_what_to_pass(frozen):
    X, y = make_classification(400, n_informative=6, n_classes=3, random_state=0)
    pairs = SVC(decision_function_shape="ovo")
    model = FrozenEstimator(pairs.fit(X, y)) if frozen else pairs
    with pytest.raises(ValueError, match=r"decision_function of .*SVC|Frozen") as caught:
        PostHocCalibratedClassifier(model, "temperature").fit(X, y)
    assert "decision_function_shape='ovr'" in str(caught.value)
    # With four classes there are six pairs.
    y = np.where(np.arange(400) % 9 == 0, 3, y)
    with pytest.raises(ValueError, match="one column for every class, 4, got shape") as caught:
        PostHocCalibratedClassifier(SVC(decision_function_shape="ovo"), cv=2).fit(X, y)
    assert "decision_function_shape='ovr'" in str(caught.value)
    PostHocCalibratedClassifier(SVC(), "temperature", cv=2).fit(X, y)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(3))
def test_tied_votes_are_no_contradiction(seed):
    # Of ten classes that cannot be separated, many votes of pairs are tied.
    rng = np.random.default_rng(seed)
    X, y = rng.normal(size=(300, 5)), rng.integers(0, 10, 300)
    for model in (SVC(kernel="linear"), OneVsOneClassifier(RidgeClassifier())):
        model.fit(X, y)
        PostHocCalibratedClassifier(FrozenEstimator(model), "sigmoid").fit(X, y)
