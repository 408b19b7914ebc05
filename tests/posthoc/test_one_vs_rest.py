"""Calibrators of one class at a time, against definitions."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import approx_fprime
from scipy.special import expit, logsumexp, softmax
from sklearn.isotonic import IsotonicRegression
from sklearn.linear_model import LogisticRegression

from skcalib.metrics import expected_calibration_error, score_decomposition
from skcalib.posthoc import BetaCalibration, HistogramBinning, IsotonicCalibration

from ._sample import mean_log_loss, sample

WEIGHT = np.random.default_rng(9).uniform(0.2, 2, 600)


def binary(n=600, a=1.5, b=0.7, c=0.3, seed=0):
    """Probabilities and labels whose truth is a beta map."""
    rng = np.random.default_rng(seed)
    p = rng.uniform(0.02, 0.98, n)
    truth = expit(a * np.log(p) - b * np.log1p(-p) + c)
    return p, (rng.random(n) < truth).astype(int)


@pytest.mark.parametrize("strategy", ["quantile", "uniform"])
def test_histogram_is_the_fraction_of_each_bin(strategy):
    p, y = binary()
    fitted = HistogramBinning(n_bins=7, strategy=strategy, input="proba")
    fitted.fit(p, y, sample_weight=WEIGHT)
    edges = fitted.calibrators_[0].edges
    mapped = fitted.predict_proba(p)[:, 1]
    for low, high in pairwise(edges):
        inside = (p > low) & (p <= high)
        expected = np.average(y[inside], weights=WEIGHT[inside])
        np.testing.assert_allclose(mapped[inside], expected)
    if strategy == "uniform":
        np.testing.assert_allclose(edges, np.arange(8) / 7)
    else:
        masses = [WEIGHT[(p > lo) & (p <= hi)].sum() for lo, hi in pairwise(edges)]
        np.testing.assert_allclose(masses, WEIGHT.sum() / 7, rtol=0.05)


def test_histogram_is_calibrated_on_its_own_rows():
    p, y = binary()
    fitted = HistogramBinning(input="proba").fit(p, y)
    assert expected_calibration_error(y, fitted.predict_proba(p)[:, 1], n_bins=1000) < 1e-12


def test_a_bin_without_rows_keeps_its_middle():
    fitted = HistogramBinning(n_bins=4, strategy="uniform", input="proba")
    fitted.fit([0.1, 0.2, 0.9, 0.9], [0, 1, 1, 1])
    np.testing.assert_allclose(
        fitted.predict_proba([0.1, 0.3, 0.6, 0.9])[:, 1], [0.5, 0.375, 0.625, 1]
    )


@pytest.mark.parametrize("weight", [None, [0.5, 0.5, 0.25, 1.0]])
def test_a_bin_of_one_sample_is_its_label(weight):
    p, y = [0.1, 0.3, 0.6, 0.9], [1, 0, 1, 0]
    fitted = HistogramBinning(n_bins=4, strategy="uniform", input="proba")
    fitted.fit(p, y, sample_weight=weight)
    np.testing.assert_array_equal(fitted.predict_proba(p)[:, 1], y)


def test_one_bin_is_the_class_frequency():
    fitted = HistogramBinning(n_bins=1, input="proba").fit([0.1, 0.3, 0.6, 0.9], [1, 0, 1, 1])
    np.testing.assert_allclose(fitted.predict_proba([0.2, 0.8])[:, 1], 0.75)


def test_equal_probabilities_share_a_bin():
    fitted = HistogramBinning(n_bins=10, input="proba").fit([0.5] * 30, [0, 1, 1] * 10)
    assert len(fitted.calibrators_[0].values) <= 2
    np.testing.assert_allclose(fitted.predict_proba([0.5])[:, 1], 2 / 3)


def test_isotonic_is_that_of_scikit_learn_and_removes_all_miscalibration():
    p, y = binary()
    fitted = IsotonicCalibration(input="proba").fit(p, y, sample_weight=WEIGHT)
    expected = IsotonicRegression(out_of_bounds="clip").fit(p, y, sample_weight=WEIGHT)
    mapped = fitted.predict_proba(p)[:, 1]
    np.testing.assert_allclose(mapped, expected.predict(p))
    before = score_decomposition(y, p, sample_weight=WEIGHT)
    after = score_decomposition(y, mapped, sample_weight=WEIGHT)
    assert after.miscalibration == pytest.approx(0, abs=1e-12)
    assert after.score == pytest.approx(before.score - before.miscalibration)


@pytest.mark.parametrize("model", [IsotonicCalibration, HistogramBinning, BetaCalibration])
def test_several_classes_are_binary_maps_divided_by_their_sum(model):
    logits, y = sample(n=500)
    proba = softmax(logits, axis=1)
    columns = [
        model(input="proba")
        .fit(proba[:, k], (y == k).astype(int))
        .predict_proba(proba[:, k])[:, 1]
        for k in range(4)
    ]
    mapped = np.column_stack(columns)
    total = mapped.sum(axis=1, keepdims=True)
    expected = np.where(total > 0, mapped / np.where(total > 0, total, 1), 0.25)
    np.testing.assert_allclose(
        model(input="proba").fit(proba, y).predict_proba(proba), expected, atol=1e-7
    )


@pytest.mark.filterwarnings("ignore:X seems to belong to rows")
def test_a_row_of_zeros_is_uniform():
    proba = np.array([[0.9, 0.05, 0.05], [0.05, 0.9, 0.05], [0.05, 0.05, 0.9]] * 3)
    binning = HistogramBinning(n_bins=2, strategy="uniform", input="proba")
    binning.fit(proba, [0, 1, 2] * 3)
    np.testing.assert_array_equal(binning.predict_proba([[0.04, 0.06, 0.9]]), [[0, 0, 1]])
    np.testing.assert_array_equal(binning.predict_proba([[0.4, 0.3, 0.3]]), [[1 / 3] * 3])
    flat = IsotonicCalibration(input="proba").fit(proba, [1, 2, 0] * 3)
    # Every class is where its probability is low: the maps are constant, and so are the rows.
    np.testing.assert_allclose(flat.predict_proba(proba), 1 / 3)


@pytest.mark.parametrize("parameters", ["abm", "am", "ab"])
def test_beta_is_a_constrained_optimum(parameters):
    p, y = binary()
    model = BetaCalibration(parameters=parameters, input="proba").fit(p, y, sample_weight=WEIGHT)
    a, b, c, _ = model.calibrators_[0]

    def loss(theta):
        if parameters == "abm":
            a, b, c = theta
        elif parameters == "am":
            a, b, c = theta[0], theta[0], theta[1]
        else:
            a, b, c = *theta, 0.0
        q = expit(a * np.log(p) - b * np.log1p(-p) + c)
        return mean_log_loss(np.column_stack([1 - q, q]), y, WEIGHT)

    theta = {"abm": [a, b, c], "am": [a, c], "ab": [a, b]}[parameters]
    if parameters == "am":
        assert a == b
    if parameters == "ab":
        assert c == 0
    np.testing.assert_allclose(approx_fprime(theta, loss, 1e-6), 0, atol=5e-6)


def test_beta_am_is_logistic_regression_on_the_logit():
    p, y = binary()
    logit = (np.log(p) - np.log1p(-p))[:, None]
    fitted = BetaCalibration(parameters="am", input="proba").fit(p, y)
    platt = LogisticRegression(C=1e10, tol=1e-10).fit(logit, y)
    np.testing.assert_allclose(fitted.predict_proba(p), platt.predict_proba(logit), atol=1e-5)


def test_beta_recovers_its_truth():
    p, y = binary(n=60_000)
    np.testing.assert_allclose(
        BetaCalibration(input="proba").fit(p, y).calibrators_[0][:3], [1.5, 0.7, 0.3], atol=0.06
    )


@pytest.mark.filterwarnings("ignore:X seems to be the probability of 0")
def test_beta_slopes_are_never_negative():
    p, y = binary()
    a, b, *_ = BetaCalibration(input="proba").fit(p, 1 - y).calibrators_[0]
    assert a == b == 0
    np.testing.assert_allclose(
        BetaCalibration(input="proba").fit(p, 1 - y).predict_proba([0.1, 0.9])[:, 1],
        np.mean(1 - y),
        atol=1e-5,
    )


def test_certain_probabilities_stay_finite():
    p = np.array([0.0, 0.0, 1.0, 1.0, 0.5] * 20)
    y = np.array([0, 1, 1, 0, 1] * 20)
    for model in (BetaCalibration, IsotonicCalibration, HistogramBinning):
        assert np.isfinite(model(input="proba").fit(p, y).predict_proba(p)).all()


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (HistogramBinning(n_bins=0), "'n_bins' parameter"),
        (HistogramBinning(strategy="kmeans"), "'strategy' parameter"),
        (BetaCalibration(parameters="a"), "'parameters' parameter"),
    ],
)
def test_bad_parameters(model, message):
    with pytest.raises(ValueError, match=message):
        model.fit(*sample(n=60))


@pytest.mark.parametrize("scale", [1.0, 1e3])
def test_what_is_mapped_of_logits_are_log_odds_against_the_rest(scale):
    rng = np.random.default_rng(0)
    y = np.arange(60) % 5
    logits = scale * (rng.normal(size=(60, 5)) + np.eye(5)[y])
    logits[:3] = 0.0  # ties
    others = [np.delete(logits, k, axis=1) for k in range(5)]
    odds = logits - np.column_stack([logsumexp(part, axis=1) for part in others])
    found = IsotonicCalibration(classes=range(5)).fit(logits, y).predict_proba(logits)
    regressions = [IsotonicRegression().fit(odds[:, k], y == k) for k in range(5)]
    mapped = np.column_stack([fit.predict(odds[:, k]) for k, fit in enumerate(regressions)])
    total = mapped.sum(axis=1, keepdims=True)
    expected = np.where(total > 0, mapped / np.maximum(total, 1e-300), 0.2)
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_isotonic_maps_are_those_of_the_regressions():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(4), 300)
    y = np.array([rng.choice(4, p=row) for row in proba])
    isotonic = IsotonicCalibration(input="proba").fit(proba, y)
    new = rng.dirichlet(np.ones(4), 50)
    mapped = np.column_stack(
        [regression.predict(new[:, k]) for k, regression in enumerate(isotonic.calibrators_)]
    )
    expected = mapped / mapped.sum(axis=1, keepdims=True)
    np.testing.assert_array_equal(isotonic.predict_proba(new), expected)


@pytest.mark.parametrize("n_columns", [1, 3])
def test_arrays_are_read_as_lists_are(n_columns):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, n_columns))
    y = rng.integers(0, max(2, n_columns), 200)
    calibrator = BetaCalibration().fit(X, y)
    for rows in (X[:1], X, X[:, 0] if n_columns == 1 else X[::-1]):
        expected = calibrator.predict_proba(rows.tolist())
        np.testing.assert_allclose(calibrator.predict_proba(rows), expected, rtol=1e-12)
    for wrong, message in [
        (np.full_like(X, np.nan), "NaN"),
        (np.hstack([X, X]), "features"),
        (X[:0], "0 sample"),
    ]:
        with pytest.raises(ValueError, match=message):
            calibrator.predict_proba(wrong)
