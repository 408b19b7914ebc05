import warnings

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit
from scipy.stats import chi2

from skcalib.labels import LabelIssueFinder
from skcalib.labels._constants import MIN_GAIN_Z, STEPS
from skcalib.labels._noise_model import (
    FittedNoiseModel,
    LabelLikelihood,
    choose_noise_model,
    compute_least_rate,
    compute_prior,
    compute_rate_interval,
    compute_row_minima,
    compute_row_sums,
    fit_without_noise,
    make_uniform_matrix,
    update_prior,
)
from skcalib.utils import SkcalibWarning


def explained(distances, codes, verified, weights, matrix):
    return update_prior(compute_prior(distances, weights), codes, verified, matrix)


def _naive(distances, codes, verified, weights, matrix):
    """P(y | x) and the posterior, one sample and one class at a time."""
    n, n_classes = distances[0].shape
    likelihood, posterior = np.zeros(n), np.zeros((n, n_classes))
    for i in range(n):
        total = [
            sum(w * d[i if len(d) > 1 else 0, k] for w, d in zip(weights, distances))
            for k in range(n_classes)
        ]
        q = np.exp(-0.5 * np.array(total))
        q /= q.sum()
        for k in range(n_classes):
            given = float(k == codes[i]) if verified[i] else matrix[k, codes[i]]
            posterior[i, k] = q[k] * given
        likelihood[i] = posterior[i].sum()
        posterior[i] /= likelihood[i]
    return likelihood, posterior


def _sample(n=400, n_classes=3, rate=0.2, seed=0, matrix=None, scale=4.0):
    """Distances of two calibrated base models, and labels with noise."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(scale=scale, size=(n, n_classes))
    q = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    true = np.array([rng.choice(n_classes, p=p) for p in q])
    matrix = make_uniform_matrix(rate, n_classes) if matrix is None else matrix
    codes = np.array([rng.choice(n_classes, p=matrix[k]) for k in true])
    noisy = -2.0 * scores + rng.normal(scale=3.0, size=scores.shape)
    return [-2.0 * scores, noisy, np.full((1, n_classes), 0.3)], codes, true


def test_likelihood_and_posterior_are_those_of_bayes_rule():
    distances, codes, _ = _sample(30)
    verified = np.arange(30) % 7 == 0
    rng = np.random.default_rng(1)
    matrix = rng.dirichlet(np.ones(3), size=3)
    distances[2] = rng.normal(size=(1, 3))
    weights = np.array([0.4, 0.2, 0.7])
    result = explained(distances, codes, verified, weights, matrix)
    likelihood, posterior = _naive(distances, codes, verified, weights, matrix)
    np.testing.assert_allclose(result[1], np.log(likelihood))
    np.testing.assert_allclose(result[0], posterior)


def _likelihood(distances, codes, weight=None, verified=None):
    n = len(codes)
    weight = np.ones(n) if weight is None else weight
    verified = np.zeros(n, dtype=bool) if verified is None else verified
    return LabelLikelihood(distances, codes, weight, verified)


@pytest.mark.slow
def test_the_uniform_rate_is_at_the_maximum_of_the_likelihood():
    distances, codes, _ = _sample()
    fit = _likelihood(distances, codes).fit_uniform()

    def loss(x):
        weights = np.append(np.abs(x[:2]), 0.0)
        matrix = make_uniform_matrix(expit(x[2]), 3)
        none = np.zeros(len(codes), dtype=bool)
        mean = np.mean(np.log(_naive(distances, codes, none, weights, matrix)[0]))
        # Log-odds are not far from 0, a priori, in units of four.
        spread = [np.std(d - d.mean(axis=1, keepdims=True)) / 2 / 4 for d in distances[:2]]
        return -mean + 0.5 * np.sum((weights[:2] * spread) ** 2) / len(codes)

    found = minimize(loss, [0.5, 0.1, -1.0], method="Nelder-Mead", options={"fatol": 1e-7})
    assert loss([*fit.weights[:2], logit(fit.rate)]) == pytest.approx(found.fun, abs=2e-5)
    np.testing.assert_allclose(fit.weights[:2], np.abs(found.x[:2]), atol=0.02)
    assert fit.rate == pytest.approx(expit(found.x[2]), abs=0.01)
    assert fit.rate == pytest.approx(0.2, abs=0.06)


def test_a_weight_is_a_number_of_copies_and_verified_labels_say_nothing_of_noise():
    distances, codes, true = _sample(200)
    copies = np.random.default_rng(0).integers(0, 3, 200)
    rows = np.repeat(np.arange(200), copies)
    weighted = _likelihood(distances, codes, copies.astype(float)).fit_uniform()
    repeated = [d if len(d) == 1 else d[rows] for d in distances]
    copied = _likelihood(repeated, codes[rows]).fit_uniform()
    assert weighted.rate == pytest.approx(copied.rate, abs=1e-3)
    np.testing.assert_allclose(weighted.weights, copied.weights, atol=0.01)
    verified = codes == true
    # Of the labels that nobody has verified, all are wrong.
    rate = _likelihood(distances, codes, verified=verified).fit_uniform().rate
    assert rate > 0.6


def _noise_of_a_class():
    matrix = np.eye(4) * 0.98 + 0.005
    matrix[1] = [0.0, 0.6, 0.4, 0.0]
    return matrix / matrix.sum(axis=1, keepdims=True)


@pytest.mark.slow
def test_class_dependent_noise_is_found_where_there_are_some():
    distances, codes, _ = _sample(1500, 4, matrix=_noise_of_a_class())
    choice = choose_noise_model(_likelihood(distances, codes), ("class-dependent",), compare=True)
    assert choice.gain_z["class-dependent"] > MIN_GAIN_Z
    matrix = choice.fits["class-dependent"].matrix
    assert matrix[1, 2] == pytest.approx(0.4, abs=0.1)
    assert np.diag(matrix)[[0, 2, 3]].min() > 0.9
    assert list(choose_noise_model(_likelihood(distances, codes), (), compare=True).fits) == [
        "uniform"
    ]


@pytest.mark.slow
def test_confusion_of_the_base_models_is_no_noise():
    rng = np.random.default_rng(0)
    distances, _, _ = _sample(3000, 4, rate=1e-9, scale=2.0)
    # Labels follow scores that the base models give to classes 1 and 2 in other proportions.
    scores = -0.5 * distances[0]
    scores = scores @ (np.eye(4) + 0.6 * (_noise_of_a_class() > 0.3) * (1 - np.eye(4)))
    q = np.exp(scores - scores.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(4, p=p) for p in q])
    likelihood = _likelihood([distances[0], distances[2]], codes)
    choice = choose_noise_model(
        likelihood, ("confusion-dependent", "class-dependent"), compare=True
    )
    assert choice.left_out["matrix scaling"] > choice.left_out["uniform"] + 0.01
    assert max(choice.gain_z.values()) < MIN_GAIN_Z


@pytest.mark.slow
def test_class_dependent_noise_wins_by_chance_seldom():
    out = 0
    for seed in range(10):
        distances, codes, _ = _sample(300, rate=0.1, seed=seed)
        choice = choose_noise_model(
            _likelihood(distances, codes), ("class-dependent",), compare=True
        )
        out += choice.gain_z["class-dependent"] > MIN_GAIN_Z
    assert out <= 2


@pytest.mark.slow
def test_the_interval_is_that_of_the_profile_likelihood():
    distances, codes, _ = _sample(500, scale=2.0)
    only = [distances[0], np.zeros((1, 3))]
    likelihood = _likelihood(only, codes)
    fit = likelihood.fit_uniform()
    low, high = compute_rate_interval(likelihood, fit)
    none = np.zeros(len(codes), dtype=bool)

    def drop(rate):
        def loss(x):
            matrix = make_uniform_matrix(rate, 3)
            return -np.sum(explained(only, codes, none, np.array([x[0], 0.0]), matrix)[1])

        best = minimize(loss, [fit.weights[0]], method="Nelder-Mead").fun
        return best + len(codes) * fit.log_likelihood - 0.5 * chi2.ppf(0.95, 1)

    step = brentq(drop, 1e-3, fit.rate), brentq(drop, fit.rate, 0.6)
    # The search ends within a thirtieth of a step, on the outer side.
    assert low - 2e-3 <= step[0] <= fit.rate <= step[1] <= high + 2e-3
    np.testing.assert_allclose((low, high), step, atol=0.012)


def test_the_interval_does_not_collapse_where_base_models_are_sharp():
    """Their weights are penalized; the interval must not take the penalty for a bad fit."""
    rng = np.random.default_rng(1)
    true = rng.integers(0, 12, 600)
    angle = 2 * np.pi * true / 12 + 0.18 * rng.standard_normal(600)
    codes = np.where(rng.random(600) < 0.1, rng.integers(0, 12, 600), true)
    gaps = np.angle(np.exp(1j * (angle[:, None] - 2 * np.pi * np.arange(12) / 12)))
    likelihood = _likelihood([(gaps / 0.18) ** 2, np.zeros((1, 12))], codes)
    fit = likelihood.fit_uniform()
    penalty = 0.5 * float(likelihood._precision @ fit.weights**2)
    assert penalty > 0.5 * chi2.ppf(0.95, 1)  # or this would show nothing
    low, high = compute_rate_interval(likelihood, fit)
    error = np.sqrt(fit.rate * (1 - fit.rate) / 600)
    assert fit.rate - 3 * error < low < fit.rate - 1.5 * error
    assert fit.rate + 1.5 * error < high < fit.rate + 3 * error


def test_the_least_rate_is_where_the_likelihood_falls_by_what_chance_makes():
    rng = np.random.default_rng(0)
    codes = rng.integers(3, size=400)
    own = np.where(np.arange(400) % 8 == 0, 0.02, 0.95)
    weight, verified = np.ones(400), np.zeros(400, dtype=bool)
    likelihood = LabelLikelihood([np.zeros((400, 3)), np.zeros((1, 3))], codes, weight, verified)
    rates = np.linspace(0.0, 0.9, 90_001)
    of = [np.log(p + rates * ((1.0 - p) / 2 - p)) for p in (0.02, 0.95)]
    value = 50 * of[0] + 350 * of[1]
    inside = value > value.max() - 0.5 * chi2.ppf(0.95, df=1)
    assert compute_least_rate(likelihood, own) == pytest.approx(rates[inside].min(), abs=2e-5)
    assert compute_least_rate(likelihood, np.full(400, 0.95)) == 0.0


def test_without_noise_the_weights_alone_are_fitted():
    distances, codes, _ = _sample(300, rate=1e-9)
    clean = _likelihood([distances[0], distances[2]], codes)
    none = fit_without_noise(clean, clean.fit_uniform())
    grid = [
        clean.log_likelihood(np.array([w, 0.0]), make_uniform_matrix(1e-12, 3))
        for w in np.linspace(0.5, 1.5, 101)
    ]
    assert none.log_likelihood == pytest.approx(max(grid), abs=1e-3)


def test_a_label_that_nothing_explains_is_predicted_by_the_base_models():
    far = [np.array([[0.0, 1e6], [0.0, 1e6]]), np.zeros((1, 2))]
    fit = FittedNoiseModel(np.ones(2), np.eye(2), 0.0, 0.0)
    verified = np.array([False, True])
    result = explained(far, np.array([1, 1]), verified, fit.weights, fit.matrix)
    np.testing.assert_array_equal(result[0], [[1, 0], [0, 1]])
    assert np.isfinite(result[1]).all()


def _confused_sample(n=600, n_classes=4, near=0.2, seed=0, scale=5.0):
    """Right labels of calibrated base models; some are drawn from predictions of other classes."""
    distances, _, true = _sample(n, n_classes, rate=1e-9, seed=seed, scale=scale)
    rng = np.random.default_rng(seed + 100)
    q = compute_prior(distances[:1], np.ones(1))
    q[np.arange(n), true] = 0.0
    q /= q.sum(axis=1, keepdims=True)
    other = (q.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    codes = np.where(rng.random(n) < near, np.minimum(other, n_classes - 1), true)
    return [distances[0], np.zeros((1, n_classes))], codes, true


def test_confusion_dependent_noise_follows_bayes_rule():
    distances, codes, _ = _confused_sample(30, 3)
    verified, near, matrix = np.arange(30) % 7 == 0, 0.15, make_uniform_matrix(0.1, 3)
    prior = compute_prior(distances, np.array([0.3, 0.5]))
    result = update_prior(prior, codes, verified, matrix, near)
    for i, q in enumerate(prior):
        drawn = np.array(
            [[q[y] / (1 - q[k]) if y != k else 0.0 for y in range(3)] for k in range(3)]
        )
        joint = q * ((1 - near) * matrix + near * drawn)[:, codes[i]]
        if verified[i]:
            joint = np.where(np.arange(3) == codes[i], q, 0.0)
        assert result[1][i] == pytest.approx(np.log(joint.sum()))
        np.testing.assert_allclose(result[0][i], joint / joint.sum())


@pytest.mark.slow
def test_confusion_dependent_noise_is_at_the_maximum_of_the_likelihood():
    distances, codes, true = _confused_sample()
    likelihood = _likelihood(distances, codes)
    fit = likelihood.fit_confusion_dependent(likelihood.fit_uniform())
    none = np.zeros(len(codes), dtype=bool)

    def loss(x):
        matrix, near = make_uniform_matrix(expit(x[1]), 4), expit(x[2])
        prior = compute_prior(distances, np.array([np.exp(x[0]), 0.0]))
        centered = distances[0] - distances[0].mean(axis=1, keepdims=True)
        penalty = 0.5 * (np.exp(x[0]) * np.std(centered) / 2 / 4) ** 2 / len(codes)
        return penalty - update_prior(prior, codes, none, matrix, near)[1].mean()

    found = minimize(loss, [0.0, -5.0, -1.0], method="Nelder-Mead", options={"fatol": 1e-8})
    elsewhere = (fit.rate - fit.confusion_rate) / (1 - fit.confusion_rate)
    here = loss([np.log(fit.weights[0]), logit(elsewhere), logit(fit.confusion_rate)])
    assert here == pytest.approx(found.fun, abs=2e-5)
    assert fit.confusion_rate == pytest.approx(expit(found.x[2]), abs=0.01)
    assert fit.rate == pytest.approx(np.mean(codes != true), abs=0.06)
    low, high = compute_rate_interval(likelihood, fit)
    assert low < fit.rate < high
    matrix = likelihood.noise_matrix(fit)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
    assert 1 - np.diag(matrix).mean() == pytest.approx(fit.rate, abs=1e-6)


@pytest.mark.slow
def test_confusion_dependent_noise_has_to_win():
    for seed in range(5):
        for near, stands_out in ((0.0, False), (0.25, True)):
            likelihood = _likelihood(*_confused_sample(near=near, seed=seed)[:2])
            choice = choose_noise_model(likelihood, ("confusion-dependent",), compare=True)
            assert (choice.gain_z.get("confusion-dependent", 0.0) > MIN_GAIN_Z) == stands_out
    # Of two classes, the other one is near and random at once.
    likelihood = _likelihood(*_confused_sample(200, 2)[:2])
    assert list(choose_noise_model(likelihood, ("confusion-dependent",), compare=True).fits) == [
        "uniform"
    ]


def test_confusion_dependent_noise_in_single_precision_where_base_models_are_certain():
    distances, codes, _ = _confused_sample(scale=60.0)
    matrix, fits = make_uniform_matrix(0.01, 4), []
    for dtype in (np.float32, np.float64):
        likelihood = _likelihood([d.astype(dtype) for d in distances], codes)
        fits.append(likelihood._newton_step(np.array([0.02, 0.0]), matrix, 0.1, 0.2))
    np.testing.assert_allclose(fits[0][0], fits[1][0], rtol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3, 80])
def test_sums_of_short_and_long_rows(n_classes):
    values = np.random.default_rng(0).random((50, n_classes))
    np.testing.assert_array_equal(compute_row_minima(values), values.min(axis=1))
    np.testing.assert_allclose(compute_row_sums(values), values.sum(axis=1))


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_the_likelihood_of_a_uniform_rate_is_that_of_its_matrix(n_classes):
    rng = np.random.default_rng(0)
    prior, codes = rng.dirichlet(np.ones(n_classes), 60), rng.integers(0, n_classes, 60)
    verified, matrix = np.arange(60) % 7 == 0, make_uniform_matrix(0.2, n_classes)
    likelihood = LabelLikelihood(
        [-2.0 * np.log(prior), np.zeros((1, n_classes))], codes, np.ones(60), verified
    )
    found = likelihood.log_likelihood(np.array([1.0, 0.0]), matrix)
    expected = [
        np.log(prior[i, codes[i]] if verified[i] else prior[i] @ matrix[:, codes[i]])
        for i in range(60)
    ]
    assert found == pytest.approx(np.mean(expected))
    of_all = update_prior(prior, codes, verified, matrix)
    np.testing.assert_allclose(of_all[1], expected)
    one = next(i for i in range(60) if not verified[i])
    posterior = prior[one] * matrix[:, codes[one]]
    np.testing.assert_allclose(of_all[0][one], posterior / posterior.sum())


@pytest.mark.slow
def test_nearly_every_fit_of_rates_ends_long_before_its_cap(monkeypatch):
    steps, step = [], LabelLikelihood._ascend

    def counted(self, *args):
        steps[-1] += 1
        return step(self, *args)

    def fit(self, *args, **kwargs):
        steps.append(0)
        return search(self, *args, **kwargs)

    search = LabelLikelihood.fit
    monkeypatch.setattr(LabelLikelihood, "_ascend", counted)
    monkeypatch.setattr(LabelLikelihood, "fit", fit)
    rng = np.random.default_rng(0)
    for seed in range(200):
        scores = (1 + seed % 5) * rng.standard_normal((80, 3))
        codes = (scores + rng.gumbel(size=scores.shape)).argmax(axis=1)
        wrong = rng.random(80) < 0.1 * (seed % 4)
        codes[wrong] = (codes[wrong] + 1) % 3
        likelihood = _likelihood([-2.0 * scores, np.zeros((1, 3))], codes)
        likelihood.fit_confusion_dependent(likelihood.fit_uniform())
        fit_without_noise(likelihood, likelihood.search_start())
    assert len(steps) == 1000
    # Where the likelihood is nearly flat, a fit may take all steps: here 1 does.
    assert np.mean(steps) < 8
    assert np.quantile(steps, 0.995) <= 0.5 * STEPS


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 3])
def test_features_of_pure_noise_do_not_make_most_labels_wrong(n_classes):
    # Models of noise contradict labels: a rate above one half would explain that.
    for seed in range(4):
        rng = np.random.default_rng(seed)
        X, y = rng.normal(size=(15 * n_classes, 4)), np.repeat(np.arange(n_classes), 15)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", SkcalibWarning)
            finder = LabelIssueFinder().fit(X, rng.permutation(y))
        assert finder.noise_rate_ < 0.5
