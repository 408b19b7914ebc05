"""Logistic recalibration against statsmodels and scikit-learn's regression without penalty."""

import json

import numpy as np
import pytest
from scipy.special import expit, log_softmax, softmax
from sklearn.calibration import CalibratedClassifierCV
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression

from skcalib.metrics import validation_summary
from skcalib.posthoc import PostHocCalibratedClassifier, SigmoidCalibration
from skcalib.utils import SkcalibWarning


def sample(n=600, seed=0):
    rng = np.random.default_rng(seed)
    logit = rng.normal(-1, 1.5, n)
    return logit, (rng.random(n) < expit(0.5 + 0.6 * logit)).astype(int)


def several(n=800, seed=0):
    rng = np.random.default_rng(seed)
    logits = 2 * rng.normal(size=(n, 4))
    proba = softmax(0.5 * logits + [0, 0.7, -0.4, 0.2], axis=1)
    return logits, (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)


@pytest.mark.parametrize("scale", [1e-4, 1.0, 1e4])
def test_two_classes_are_a_regression_without_penalty(scale):
    logit, y = sample()
    found = SigmoidCalibration().fit(scale * logit, y)
    reference = LogisticRegression(C=np.inf, tol=1e-12, max_iter=1000).fit(logit[:, None], y)
    assert found.slope_ * scale == pytest.approx(reference.coef_[0, 0], rel=1e-5)
    assert found.intercept_ == pytest.approx(reference.intercept_, abs=1e-5)
    np.testing.assert_allclose(
        found.predict_proba(scale * logit), reference.predict_proba(logit[:, None]), atol=1e-5
    )


@pytest.mark.slow
def test_standard_errors_are_those_of_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    logit, y = sample()
    family, group = sm.families.Binomial(), np.arange(600) // 4
    model = sm.GLM(y, sm.add_constant(logit), family=family)
    reference, found = model.fit(tol=1e-12), SigmoidCalibration().fit(logit, y)
    np.testing.assert_allclose([found.intercept_[0], found.slope_], reference.params, atol=1e-9)
    errors = found.intercept_se_[0], found.slope_se_
    np.testing.assert_allclose(errors, reference.bse, atol=1e-9)
    shift = sm.GLM(y, np.ones(600), offset=logit, family=family).fit(tol=1e-12)
    found = SigmoidCalibration(slope=False).fit(logit, y)
    assert (found.slope_, found.slope_se_) == (1, 0)
    assert found.intercept_ == pytest.approx(shift.params, abs=1e-9)
    assert found.intercept_se_ == pytest.approx(shift.bse, abs=1e-9)
    robust = model.fit(tol=1e-12, cov_type="cluster", cov_kwds={"groups": group})
    found = SigmoidCalibration().fit(logit, y, groups=group)
    # Theirs has a further factor of (n - 1) / (n - 2).
    errors = np.array([found.intercept_se_[0], found.slope_se_]) * np.sqrt(599 / 598)
    np.testing.assert_allclose(errors, robust.bse, rtol=1e-8)


def test_several_classes_have_the_least_log_loss_of_one_slope():
    from scipy.optimize import minimize

    logits, y = several()

    def loss(theta):
        scores = theta[0] * logits + np.append(0, theta[1:])
        return -log_softmax(scores, axis=1)[np.arange(len(y)), y].mean()

    best = minimize(loss, [1, 0, 0, 0], method="BFGS", options={"gtol": 1e-9}).x
    found = SigmoidCalibration().fit(logits, y)
    np.testing.assert_allclose([found.slope_, *found.intercept_], best, atol=1e-5)
    # The regression's own standard errors, by the curvature of the log-loss.
    step, errors = 1e-4, [found.slope_se_, *found.intercept_se_]
    hessian = np.empty((4, 4))
    for i in range(4):
        for j in range(4):
            a, b = step * np.eye(4)[i], step * np.eye(4)[j]
            corners = [loss(best + s * a + t * b) * s * t for s in (1, -1) for t in (1, -1)]
            hessian[i, j] = sum(corners) / (4 * step**2)
    expected = np.sqrt(np.diag(np.linalg.inv(hessian)) / len(y))
    np.testing.assert_allclose(errors, expected, rtol=1e-4)
    mean = found.predict_proba(logits).mean(axis=0)
    np.testing.assert_allclose(mean, np.bincount(y) / len(y), atol=1e-9)


def test_weights_are_samples_of_the_fit_and_effective_samples_of_the_errors():
    logit, y = sample(200)
    weight = np.random.default_rng(0).integers(0, 4, 200)
    found = SigmoidCalibration().fit(logit, y, weight)
    repeated = SigmoidCalibration().fit(np.repeat(logit, weight), np.repeat(y, weight))
    assert found.slope_ == pytest.approx(repeated.slope_, abs=1e-10)
    assert found.intercept_ == pytest.approx(repeated.intercept_, abs=1e-10)
    ratio = np.sqrt(weight @ weight / weight.sum())
    assert found.slope_se_ == pytest.approx(ratio * repeated.slope_se_)
    scaled = SigmoidCalibration().fit(logit, y, 7.0 * weight)
    assert scaled.slope_se_ == pytest.approx(found.slope_se_)


@pytest.mark.filterwarnings("ignore:y has no sample of class")
def test_a_class_without_samples():
    logits, y = several()
    kept = y != 2
    found = SigmoidCalibration(classes=range(4)).fit(logits[kept], y[kept])
    assert found.intercept_[1] == 0
    assert np.isnan(found.intercept_se_[1])
    assert np.isfinite(found.intercept_se_[[0, 2]]).all()


def test_separated_classes_bring_a_warning():
    with pytest.warns(SkcalibWarning, match="The scores separate the classes"):
        found = SigmoidCalibration().fit([-2.0, -1.0, 1.0, 2.0], [0, 0, 1, 1])
    assert np.isfinite(found.predict_proba([-1.0, 0.0, 1.0])).all()
    assert np.isnan(found.slope_se_)


def test_equal_scores_keep_the_slope():
    found = SigmoidCalibration().fit(np.full(10, 3.0), [0, 1] * 5)
    assert found.slope_ == 1
    assert found.intercept_[0] == pytest.approx(-3)
    np.testing.assert_allclose(found.predict_proba([3.0]), [[0.5, 0.5]])


@pytest.mark.parametrize("name", ["sigmoid", "platt"])
def test_names_in_a_calibrated_classifier(name):
    logit, y = sample()
    model = LogisticRegression().fit(logit[:, None], 1 - y * (logit < 0))
    wrong = PostHocCalibratedClassifier(FrozenEstimator(model), name).fit(logit[:, None], y)
    assert isinstance(wrong.calibrator_, SigmoidCalibration)
    beside = CalibratedClassifierCV(FrozenEstimator(model), method="sigmoid", ensemble=False)
    beside = beside.fit(logit[:, None], y).predict_proba(logit[:, None])
    # Theirs draws labels towards the frequencies.
    np.testing.assert_allclose(wrong.predict_proba(logit[:, None]), beside, atol=0.02)


def test_the_formula_is_the_map():
    logits, y = several()
    found = SigmoidCalibration().fit(logits, y)
    formula = json.loads(found.to_json())["map"]
    scores = formula["coef"] * logits / formula["temperature"] + formula["intercept"]
    np.testing.assert_allclose(softmax(scores, axis=1), found.predict_proba(logits), atol=1e-12)
    narrow = found.predict_proba(logits.astype(np.float32))
    assert narrow.dtype == np.float32
    np.testing.assert_allclose(narrow, found.predict_proba(logits), atol=1e-6)


@pytest.mark.slow
def test_an_updated_model_passes_its_validation():
    logit, y = sample()
    proba = expit(logit)
    before = validation_summary(y, proba, random_state=0)
    update = SigmoidCalibration(input="proba").fit(proba, y)
    after = validation_summary(y, update.predict_proba(proba), random_state=0)
    assert before["value"][2] == pytest.approx(update.slope_, abs=1e-8)
    np.testing.assert_allclose(after["value"][:3], after["ideal"][:3], atol=1e-8)
