import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp, softmax
from sklearn.metrics import log_loss

from skcalib.metrics import _temperature_fit, refined_log_loss
from skcalib.posthoc import TemperatureScaling


@pytest.fixture(params=[2, 5], ids=["two classes", "five classes"])
def data(request):
    rng = np.random.default_rng(0)
    k = request.param
    logits = 2 * rng.normal(size=(800, k))
    y = np.array([rng.choice(k, p=p) for p in softmax(logits / 3, axis=1)])
    return y, logits, rng.uniform(0, 2, size=800)


@pytest.mark.parametrize("weighted", [False, True])
def test_least_log_loss_over_temperatures(data, weighted):
    y, logits, weight = data
    weight = weight if weighted else None

    def loss(log_temperature):
        proba = softmax(logits / np.exp(log_temperature), axis=1)
        return log_loss(y, proba, sample_weight=weight)

    expected = minimize_scalar(loss, bounds=(-5, 5), method="bounded").fun
    found = refined_log_loss(y, softmax(logits, axis=1), sample_weight=weight)
    assert found == pytest.approx(expected, rel=1e-8)
    assert found < loss(0)


def test_temperature_changes_nothing(data):
    y, logits, _ = data
    values = [refined_log_loss(y, softmax(logits / t, axis=1)) for t in (0.5, 1, 4)]
    assert values == pytest.approx([values[0]] * 3, rel=1e-8)


def test_it_is_the_log_loss_after_temperature_scaling(data):
    y, logits, _ = data
    proba = softmax(logits, axis=1)
    scaling = TemperatureScaling(input="proba")
    calibrated = scaling.fit(proba, y).predict_proba(proba)
    assert refined_log_loss(y, proba) == pytest.approx(log_loss(y, calibrated), rel=1e-8)


def test_both_forms_of_two_classes_are_one():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=300)
    y = rng.uniform(size=300) < p**2
    both = np.column_stack([1 - p, p])
    assert refined_log_loss(y, p) == pytest.approx(refined_log_loss(y, both), rel=1e-12)


def test_probabilities_of_zero_are_not_the_end():
    # Of the two extremes one is wrong: no temperature but the largest helps.
    assert refined_log_loss([0, 0], [0.0, 1.0]) == pytest.approx(np.log(2), rel=1e-3)
    # All right: no loss is left.
    assert refined_log_loss([0, 1], [0.0, 1.0]) == 0


@pytest.mark.parametrize("dtype", [np.float16, np.float32])
def test_narrow_floats_of_zero(dtype):
    found = refined_log_loss([0, 0], np.array([0.0, 1.0], dtype=dtype))
    assert found == pytest.approx(np.log(2), rel=1e-3)


def test_half_precision_counts_as_single_and_double_stays_double(data):
    y, logits, _ = data
    proba = softmax(logits, axis=1)
    half = proba.astype(np.float16)
    half[:20] = np.eye(half.shape[1])[y[:20]]  # probabilities of 0, of which float16 has no floor
    assert refined_log_loss(y, half) == refined_log_loss(y, half.astype(np.float32))
    tiny = np.where(np.arange(len(y))[:, None] < 20, 1e-11, proba)
    tiny[:20, 0] = 1 - tiny[:20, 1:].sum(axis=1)
    scaled = np.log(tiny)
    best = minimize_scalar(
        lambda b: -np.mean(np.log(softmax(np.exp(b) * scaled, axis=1)[np.arange(len(y)), y])),
        bounds=(-5, 5),
        method="bounded",
        options={"xatol": 1e-10},
    )
    assert refined_log_loss(y, tiny) == pytest.approx(best.fun, rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("n_classes", [2, 8])
def test_many_samples_are_read_twice_for_the_least_loss(n_classes):
    looks = []
    for seed in range(6):
        rng = np.random.default_rng(seed)
        logits = (1 + seed / 5) * rng.normal(size=(8000, n_classes))
        y = (logits / 2 + rng.gumbel(size=logits.shape)).argmax(axis=1)
        read, search = [], _temperature_fit.LogLossSeries.slope_and_curvature

        def count(problem, beta, read=read, search=search):
            read.append(len(problem.below) / 8000)
            return search(problem, beta)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(_temperature_fit.LogLossSeries, "slope_and_curvature", count)
            found = refined_log_loss(y, softmax(logits, axis=1))
        looks.append(sum(read))

        def loss(t, logits=logits, y=y):
            return np.mean(logsumexp(logits / t, axis=1) - logits[np.arange(8000), y] / t)

        expected = minimize_scalar(loss, bounds=(0.5, 40), options={"xatol": 1e-5})
        assert found == pytest.approx(expected.fun, rel=1e-8)
    # One or two looks at all samples, after some at a quarter of them.
    assert np.mean(looks) < 4
    assert max(looks) < 6


def test_soft_labels_count_as_rows_of_their_fractions():
    rng = np.random.default_rng(0)
    proba, fractions = rng.dirichlet(np.ones(3), (2, 200))
    weight = rng.uniform(size=200)
    rows = [np.repeat(proba, 3, axis=0), (weight[:, np.newaxis] * fractions).ravel()]
    one_label = refined_log_loss(np.tile(range(3), 200), rows[0], sample_weight=rows[1])
    soft = refined_log_loss(fractions, proba, sample_weight=weight)
    assert soft == pytest.approx(one_label, rel=1e-9)
