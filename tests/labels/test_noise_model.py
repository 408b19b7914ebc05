import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit
from scipy.stats import chi2

from skcalib.labels._constants import AHEAD
from skcalib.labels._noise_model import (
    LabelLikelihood,
    NoiseFit,
    choose,
    common_flips,
    explain,
    least_rate,
    no_flips,
    prior_of,
    rate_interval,
    row_minima,
    row_sums,
)


def explained(distances, codes, verified, weights, flips):
    return explain(prior_of(distances, weights), codes, verified, flips)


def _naive(distances, codes, verified, weights, flips):
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
            given = float(k == codes[i]) if verified[i] else flips[k, codes[i]]
            posterior[i, k] = q[k] * given
        likelihood[i] = posterior[i].sum()
        posterior[i] /= likelihood[i]
    return likelihood, posterior


def _sample(n=400, n_classes=3, rate=0.2, seed=0, flips=None, scale=4.0):
    """Distances of two judges who know as much as they say, and labels with flips."""
    rng = np.random.default_rng(seed)
    scores = rng.normal(scale=scale, size=(n, n_classes))
    q = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    true = np.array([rng.choice(n_classes, p=p) for p in q])
    flips = common_flips(rate, n_classes) if flips is None else flips
    codes = np.array([rng.choice(n_classes, p=flips[k]) for k in true])
    noisy = -2.0 * scores + rng.normal(scale=3.0, size=scores.shape)
    return [-2.0 * scores, noisy, np.full((1, n_classes), 0.3)], codes, true


def test_likelihood_and_posterior_are_those_of_bayes_rule():
    distances, codes, _ = _sample(30)
    verified = np.arange(30) % 7 == 0
    rng = np.random.default_rng(1)
    flips = rng.dirichlet(np.ones(3), size=3)
    distances[2] = rng.normal(size=(1, 3))
    weights = np.array([0.4, 0.2, 0.7])
    result = explained(distances, codes, verified, weights, flips)
    likelihood, posterior = _naive(distances, codes, verified, weights, flips)
    np.testing.assert_allclose(result.log_likelihood, np.log(likelihood))
    np.testing.assert_allclose(result.posterior, posterior)


def _likelihood(distances, codes, weight=None, verified=None):
    n = len(codes)
    weight = np.ones(n) if weight is None else weight
    verified = np.zeros(n, dtype=bool) if verified is None else verified
    return LabelLikelihood(distances, codes, weight, verified)


def test_the_common_rate_is_at_the_maximum_of_the_likelihood():
    distances, codes, _ = _sample()
    fit = _likelihood(distances, codes).common_rate()

    def loss(x):
        weights = np.append(np.abs(x[:2]), 0.0)
        flips = common_flips(expit(x[2]), 3)
        none = np.zeros(len(codes), dtype=bool)
        mean = np.mean(np.log(_naive(distances, codes, none, weights, flips)[0]))
        # Log-odds are not far from 0, a priori, in units of four.
        spread = [np.std(d - d.mean(axis=1, keepdims=True)) / 2 / 4 for d in distances[:2]]
        return -mean + 0.5 * np.sum((weights[:2] * spread) ** 2) / len(codes)

    found = minimize(loss, [0.5, 0.1, -1.0], method="Nelder-Mead", options={"fatol": 1e-7})
    assert loss([*fit.weights[:2], logit(fit.rate)]) == pytest.approx(found.fun, abs=2e-5)
    np.testing.assert_allclose(fit.weights[:2], np.abs(found.x[:2]), atol=0.02)
    assert fit.rate == pytest.approx(expit(found.x[2]), abs=0.01)
    assert fit.rate == pytest.approx(0.2, abs=0.06)


def test_a_weight_is_a_number_of_copies_and_verified_labels_say_nothing_of_flips():
    distances, codes, true = _sample(200)
    copies = np.random.default_rng(0).integers(0, 3, 200)
    rows = np.repeat(np.arange(200), copies)
    weighted = _likelihood(distances, codes, copies.astype(float)).common_rate()
    repeated = [d if len(d) == 1 else d[rows] for d in distances]
    copied = _likelihood(repeated, codes[rows]).common_rate()
    assert weighted.rate == pytest.approx(copied.rate, abs=1e-3)
    np.testing.assert_allclose(weighted.weights, copied.weights, atol=0.01)
    verified = codes == true
    # Of the labels that nobody has verified, all are wrong.
    rate = _likelihood(distances, codes, verified=verified).common_rate().rate
    assert rate > 0.6


def _flips_of_a_class():
    flips = np.eye(4) * 0.98 + 0.005
    flips[1] = [0.0, 0.6, 0.4, 0.0]
    return flips / flips.sum(axis=1, keepdims=True)


def test_flips_between_classes_are_found_where_there_are_some():
    distances, codes, _ = _sample(1500, 4, flips=_flips_of_a_class())
    choice = choose(_likelihood(distances, codes), ("flips",), compare=True)
    assert choice.ahead["flips"] > AHEAD
    flips = choice.fits["flips"].flips
    assert flips[1, 2] == pytest.approx(0.4, abs=0.1)
    assert np.diag(flips)[[0, 2, 3]].min() > 0.9
    assert list(choose(_likelihood(distances, codes), (), compare=True).fits) == ["common"]


def test_confusion_of_the_judges_is_no_flip():
    rng = np.random.default_rng(0)
    distances, _, _ = _sample(3000, 4, rate=1e-9, scale=2.0)
    # Labels follow scores that the judges give to classes 1 and 2 in other proportions.
    scores = -0.5 * distances[0]
    scores = scores @ (np.eye(4) + 0.6 * (_flips_of_a_class() > 0.3) * (1 - np.eye(4)))
    q = np.exp(scores - scores.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    codes = np.array([rng.choice(4, p=p) for p in q])
    likelihood = _likelihood([distances[0], distances[2]], codes)
    choice = choose(likelihood, ("near", "flips"), compare=True)
    assert choice.left_out["confusions"] > choice.left_out["common"] + 0.01
    assert max(choice.ahead.values()) < AHEAD


def test_flips_stand_out_by_chance_seldom():
    out = 0
    for seed in range(10):
        distances, codes, _ = _sample(300, rate=0.1, seed=seed)
        choice = choose(_likelihood(distances, codes), ("flips",), compare=True)
        out += choice.ahead["flips"] > AHEAD
    assert out <= 2


def test_the_interval_is_that_of_the_profile_likelihood():
    distances, codes, _ = _sample(500, scale=2.0)
    only = [distances[0], np.zeros((1, 3))]
    likelihood = _likelihood(only, codes)
    fit = likelihood.common_rate()
    low, high = rate_interval(likelihood, fit)
    none = np.zeros(len(codes), dtype=bool)

    def drop(rate):
        def loss(x):
            flips = common_flips(rate, 3)
            return -np.sum(explained(only, codes, none, np.array([x[0], 0.0]), flips)[2])

        best = minimize(loss, [fit.weights[0]], method="Nelder-Mead").fun
        return best + len(codes) * fit.log_likelihood - 0.5 * chi2.ppf(0.95, 1)

    step = brentq(drop, 1e-3, fit.rate), brentq(drop, fit.rate, 0.6)
    # The search ends within a thirtieth of a step, on the outer side.
    assert low - 2e-3 <= step[0] <= fit.rate <= step[1] <= high + 2e-3
    np.testing.assert_allclose((low, high), step, atol=0.012)


def test_the_interval_does_not_collapse_where_judges_are_sharp():
    """Their weights are penalized; the interval must not take the penalty for a bad fit."""
    rng = np.random.default_rng(1)
    true = rng.integers(0, 12, 600)
    angle = 2 * np.pi * true / 12 + 0.18 * rng.standard_normal(600)
    codes = np.where(rng.random(600) < 0.1, rng.integers(0, 12, 600), true)
    gaps = np.angle(np.exp(1j * (angle[:, None] - 2 * np.pi * np.arange(12) / 12)))
    likelihood = _likelihood([(gaps / 0.18) ** 2, np.zeros((1, 12))], codes)
    fit = likelihood.common_rate()
    penalty = 0.5 * float(likelihood._precision @ fit.weights**2)
    assert penalty > 0.5 * chi2.ppf(0.95, 1)  # or this would show nothing
    low, high = rate_interval(likelihood, fit)
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
    assert least_rate(likelihood, own) == pytest.approx(rates[inside].min(), abs=2e-5)
    assert least_rate(likelihood, np.full(400, 0.95)) == 0.0


def test_without_flips_the_weights_alone_are_fitted():
    distances, codes, _ = _sample(300, rate=1e-9)
    clean = _likelihood([distances[0], distances[2]], codes)
    none = no_flips(clean, clean.common_rate())
    grid = [
        clean.log_likelihood(np.array([w, 0.0]), common_flips(1e-12, 3))
        for w in np.linspace(0.5, 1.5, 101)
    ]
    assert none.log_likelihood == pytest.approx(max(grid), abs=1e-3)


def test_a_label_that_nothing_explains_is_judged_by_the_judges():
    far = [np.array([[0.0, 1e6], [0.0, 1e6]]), np.zeros((1, 2))]
    fit = NoiseFit(np.ones(2), np.eye(2), 0.0, 0.0)
    verified = np.array([False, True])
    result = explained(far, np.array([1, 1]), verified, fit.weights, fit.flips)
    np.testing.assert_array_equal(result.posterior, [[1, 0], [0, 1]])
    assert np.isfinite(result.log_likelihood).all()


def _near_sample(n=600, n_classes=4, near=0.2, seed=0, scale=5.0):
    """Right labels of calibrated judges; some are drawn from the predictions of other classes."""
    distances, _, true = _sample(n, n_classes, rate=1e-9, seed=seed, scale=scale)
    rng = np.random.default_rng(seed + 100)
    q = prior_of(distances[:1], np.ones(1))
    q[np.arange(n), true] = 0.0
    q /= q.sum(axis=1, keepdims=True)
    other = (q.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    codes = np.where(rng.random(n) < near, np.minimum(other, n_classes - 1), true)
    return [distances[0], np.zeros((1, n_classes))], codes, true


def test_near_flips_follow_bayes_rule():
    distances, codes, _ = _near_sample(30, 3)
    verified, near, flips = np.arange(30) % 7 == 0, 0.15, common_flips(0.1, 3)
    prior = prior_of(distances, np.array([0.3, 0.5]))
    result = explain(prior, codes, verified, flips, near)
    for i, q in enumerate(prior):
        drawn = np.array(
            [[q[y] / (1 - q[k]) if y != k else 0.0 for y in range(3)] for k in range(3)]
        )
        joint = q * ((1 - near) * flips + near * drawn)[:, codes[i]]
        if verified[i]:
            joint = np.where(np.arange(3) == codes[i], q, 0.0)
        assert result.log_likelihood[i] == pytest.approx(np.log(joint.sum()))
        np.testing.assert_allclose(result.posterior[i], joint / joint.sum())


def test_near_flips_are_at_the_maximum_of_the_likelihood():
    distances, codes, true = _near_sample()
    likelihood = _likelihood(distances, codes)
    fit = likelihood.near_flips(likelihood.common_rate())
    none = np.zeros(len(codes), dtype=bool)

    def loss(x):
        flips, near = common_flips(expit(x[1]), 4), expit(x[2])
        prior = prior_of(distances, np.array([np.exp(x[0]), 0.0]))
        centered = distances[0] - distances[0].mean(axis=1, keepdims=True)
        penalty = 0.5 * (np.exp(x[0]) * np.std(centered) / 2 / 4) ** 2 / len(codes)
        return penalty - explain(prior, codes, none, flips, near).log_likelihood.mean()

    found = minimize(loss, [0.0, -5.0, -1.0], method="Nelder-Mead", options={"fatol": 1e-8})
    elsewhere = (fit.rate - fit.near) / (1 - fit.near)
    here = loss([np.log(fit.weights[0]), logit(elsewhere), logit(fit.near)])
    assert here == pytest.approx(found.fun, abs=2e-5)
    assert fit.near == pytest.approx(expit(found.x[2]), abs=0.01)
    assert fit.rate == pytest.approx(np.mean(codes != true), abs=0.06)
    low, high = rate_interval(likelihood, fit)
    assert low < fit.rate < high
    matrix = likelihood.flip_matrix(fit)
    np.testing.assert_allclose(matrix.sum(axis=1), 1.0)
    assert 1 - np.diag(matrix).mean() == pytest.approx(fit.rate, abs=1e-6)


def test_near_flips_have_to_stand_out():
    for seed in range(5):
        for near, stands_out in ((0.0, False), (0.25, True)):
            likelihood = _likelihood(*_near_sample(near=near, seed=seed)[:2])
            choice = choose(likelihood, ("near",), compare=True)
            assert (choice.ahead["near"] > AHEAD) == stands_out
    # Of two classes, the other one is near and random at once.
    likelihood = _likelihood(*_near_sample(200, 2)[:2])
    assert list(choose(likelihood, ("near",), compare=True).fits) == ["common"]


def test_near_flips_in_single_precision_where_the_judges_are_certain():
    distances, codes, _ = _near_sample(scale=60.0)
    flips, fits = common_flips(0.01, 4), []
    for dtype in (np.float32, np.float64):
        likelihood = _likelihood([d.astype(dtype) for d in distances], codes)
        fits.append(likelihood._newton_step(np.array([0.02, 0.0]), flips, 0.1, 0.2))
    np.testing.assert_allclose(fits[0][0], fits[1][0], rtol=1e-3)


@pytest.mark.parametrize("n_classes", [2, 3, 80])
def test_sums_of_short_and_long_rows(n_classes):
    values = np.random.default_rng(0).random((50, n_classes))
    np.testing.assert_array_equal(row_minima(values), values.min(axis=1))
    np.testing.assert_allclose(row_sums(values), values.sum(axis=1))


@pytest.mark.parametrize("n_classes", [2, 3, 7])
def test_the_likelihood_of_a_common_rate_is_that_of_its_matrix(n_classes):
    rng = np.random.default_rng(0)
    prior, codes = rng.dirichlet(np.ones(n_classes), 60), rng.integers(0, n_classes, 60)
    verified, flips = np.arange(60) % 7 == 0, common_flips(0.2, n_classes)
    likelihood = LabelLikelihood(
        [-2.0 * np.log(prior), np.zeros((1, n_classes))], codes, np.ones(60), verified
    )
    found = likelihood.log_likelihood(np.array([1.0, 0.0]), flips)
    expected = [
        np.log(prior[i, codes[i]] if verified[i] else prior[i] @ flips[:, codes[i]])
        for i in range(60)
    ]
    assert found == pytest.approx(np.mean(expected))
    of_all = explain(prior, codes, verified, flips)
    np.testing.assert_allclose(of_all.log_likelihood, expected)
    one = next(i for i in range(60) if not verified[i])
    posterior = prior[one] * flips[:, codes[one]]
    np.testing.assert_allclose(of_all.posterior[one], posterior / posterior.sum())
