import numpy as np
import pytest
from scipy.special import softmax

from skcalib.labels._likelihood import (
    NoiseLikelihood,
    NoiseParameters,
    believed_classes,
    label_posterior,
)
from skcalib.labels._systematic import SystematicFlips

PARAMETERS = NoiseParameters(2.0, 0.1, 0.2, 1.7)
CONFUSION = np.eye(7)
CONFUSION[2, [2, 4, 5]] = 0.5, 0.3, 0.2
CONFUSION[4, [4, 2]] = 0.75, 0.25
FLIPS = SystematicFlips(np.array([2, 2, 4]), np.array([4, 5, 2]), np.array([0.3, 0.2, 0.25]), 7)
DTYPES = pytest.mark.parametrize("dtype", [np.float32, np.float64])


def _tolerance(dtype, naive):
    """Rounding of a sum in the dtype, or the error of the naive computation."""
    return max(8 * float(np.finfo(dtype).eps), naive)


def _sample(n_samples=60, n_classes=7, seed=0, dtype=np.float64):
    rng = np.random.default_rng(seed)
    distances = rng.exponential(10.0, (n_samples, n_classes))
    given = rng.integers(0, n_classes, n_samples)
    codes = np.where(rng.random(n_samples) < 0.6, distances.argmin(axis=1), given)
    distances[3, codes[3]] = np.inf  # the only sample of its class
    return distances.astype(dtype), codes, rng


def _flip(p, f, label, k, flips):
    """P(label | true class k) of one sample, as the definition has it."""
    systematic = CONFUSION[k, label] if flips else float(k == label)
    value = (1 - p.rate) * systematic
    if k == label:
        return value
    return value + p.random_rate / (len(f) - 1) + p.near_rate * f[label] / (1 - f[k])


def _joint(p, distances, label, flips=None):
    q = softmax(-distances / (2 * p.temperature))
    f = softmax(-distances / (2 * p.temperature * p.spread))
    return np.array([q[k] * _flip(p, f, label, k, flips) for k in range(len(q))])


def _log_likelihood(p, distances, codes, weight, verified, flips=None):
    values = []
    for row, label, known in zip(distances.astype(np.float64), codes, verified):
        belief = softmax(-row / (2 * p.temperature))
        values.append(np.log(belief[label] if known else _joint(p, row, label, flips).sum()))
    return np.average(values, weights=weight)


@DTYPES
@pytest.mark.parametrize("flips", [None, FLIPS])
@pytest.mark.parametrize("p", [PARAMETERS, NoiseParameters(0.7, 0.3)])
def test_value_and_gradient_are_those_of_the_definition(p, flips, dtype):
    distances, codes, rng = _sample(dtype=dtype)
    verified = rng.random(len(codes)) < 0.3
    verified[3] = False
    data = distances, codes, rng.uniform(0.5, 2.0, len(codes)), verified, flips
    value, gradient, _ = NoiseLikelihood(*data).derivatives(p)
    assert value == pytest.approx(_log_likelihood(p, *data), abs=_tolerance(dtype, 1e-12))
    numbers = np.array([np.log(p.temperature), p.random_rate, p.near_rate, np.log(p.spread)])

    def at(x):
        moved = NoiseParameters(np.exp(x[0]), x[1], x[2], np.exp(x[3]))
        return _log_likelihood(moved, *data)

    numeric = [(at(numbers + step) - at(numbers - step)) / 2e-6 for step in 1e-6 * np.eye(4)]
    free = slice(0, 4) if p.near_rate else slice(0, 2)
    atol = _tolerance(dtype, 1e-7)
    np.testing.assert_allclose(gradient[free], np.array(numeric)[free], atol=atol)


def test_information_is_the_mean_of_the_outer_products_of_the_gradients():
    distances, codes, rng = _sample()
    weight = rng.uniform(0.5, 2.0, len(codes))
    verified = np.zeros(len(codes), dtype=bool)
    *_, information = NoiseLikelihood(distances, codes, weight, verified).derivatives(PARAMETERS)
    gradients = [
        NoiseLikelihood(*sample).derivatives(PARAMETERS).gradient
        for sample in zip(distances[:, None], codes[:, None], weight[:, None], verified[:, None])
    ]
    expected = np.average([np.outer(g, g) for g in gradients], axis=0, weights=weight)
    np.testing.assert_allclose(information, expected, rtol=1e-10, atol=1e-14)


@DTYPES
def test_likelihood_of_many_classes_keeps_its_digits(dtype):
    distances, codes, _ = _sample(n_classes=1000, dtype=dtype)
    p = NoiseParameters(0.5, 1e-4, 0.1, 3.0)
    none = np.zeros(1, dtype=bool)
    for row, label in zip(distances, codes):
        data = row[None], np.array([label]), np.ones(1), none
        value, *_ = NoiseLikelihood(*data).derivatives(p)
        expected = np.log(_joint(p, row.astype(np.float64), label).sum())
        assert value == pytest.approx(expected, abs=_tolerance(dtype, 1e-11))


@DTYPES
def test_a_sample_far_from_all_classes_but_one_keeps_its_digits(dtype):
    # The probability of the other classes is 1e-217: one minus that of the first would be 0.
    distances = np.array([[0.0, 1000.0, 1002.0]], dtype=dtype)
    p = NoiseParameters(1.0, 0.1, 0.2, 1.0)
    data = distances, np.array([2]), np.ones(1), np.zeros(1, dtype=bool)
    value, gradient, _ = NoiseLikelihood(*data).derivatives(p)
    near = 1 / (1 + np.exp(1.0))  # among the classes but the nearest
    tolerance = _tolerance(dtype, 1e-12)
    assert value == pytest.approx(np.log(0.1 / 2 + 0.2 * near), abs=tolerance)
    assert np.isfinite(gradient).all()


@DTYPES
@pytest.mark.parametrize("flips", [None, FLIPS])
@pytest.mark.parametrize("p", [PARAMETERS, NoiseParameters(0.7, 0.3)])
def test_posterior_is_bayes_rule(p, flips, dtype):
    distances, codes, _ = _sample(dtype=dtype)
    verified = np.zeros(len(codes), dtype=bool)
    verified[7] = True
    posterior = label_posterior(distances, codes, verified, p, flips)
    assert posterior.dtype == dtype
    for i, (row, label) in enumerate(zip(distances.astype(np.float64), codes)):
        joint = _joint(p, row, label, flips)
        expected = np.eye(len(row))[label] if verified[i] else joint / joint.sum()
        np.testing.assert_allclose(posterior[i], expected, atol=_tolerance(dtype, 1e-12))


def test_posterior_may_take_the_place_of_the_distances():
    distances, codes, _ = _sample()
    data = codes, np.zeros(len(codes), dtype=bool), PARAMETERS
    expected = label_posterior(distances, *data)
    assert label_posterior(distances, *data, out=distances) is distances
    np.testing.assert_array_equal(distances, expected)


def test_chunks_do_not_matter(monkeypatch):
    distances, codes, _ = _sample()
    data = distances, codes, np.ones(len(codes)), np.zeros(len(codes), dtype=bool)
    whole = NoiseLikelihood(*data).derivatives(PARAMETERS)
    monkeypatch.setattr("skcalib.labels._likelihood._CHUNK_ELEMENTS", 40)
    value, gradient, _ = NoiseLikelihood(*data).derivatives(PARAMETERS)
    assert value == pytest.approx(whole[0], rel=1e-13)
    np.testing.assert_allclose(gradient, whole[1], rtol=1e-11)


@DTYPES
def test_believed_classes_are_beliefs_over_the_likelihood(dtype):
    distances, codes, _ = _sample(dtype=dtype)
    verified = np.zeros(len(codes), dtype=bool)
    verified[7] = True
    believed = believed_classes(distances, codes, verified, PARAMETERS)
    assert 7 not in believed.sample
    for i, k, ratio in zip(*believed):
        row = distances[i].astype(np.float64)
        q = softmax(-row / (2 * PARAMETERS.temperature))
        total = _joint(PARAMETERS, row, codes[i]).sum()
        expected = (1 - PARAMETERS.rate) * q[k] / total
        assert ratio == pytest.approx(expected, rel=_tolerance(dtype, 1e-10))
        assert q[k] >= 0.02 or k == codes[i]
