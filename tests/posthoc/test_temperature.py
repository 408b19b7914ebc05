"""Temperature scaling against scipy in float64, laws of the log-loss, and its limits."""

import pickle
import warnings

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import expit, log_softmax, softmax
from sklearn.base import clone

from skcalib.metrics import _temperature_fit
from skcalib.metrics._temperature_fit import compute_slope_and_curvature
from skcalib.posthoc import TemperatureScaling
from skcalib.posthoc import _temperature as posthoc_temperature
from skcalib.posthoc._temperature import compute_top_confidence
from skcalib.utils import SkcalibWarning


def sample(n=3000, k=6, temperature=2.5, seed=0, scale=4.0):
    """Logits and labels drawn from softmax(logits / temperature)."""
    rng = np.random.default_rng(seed)
    logits = scale * rng.normal(size=(n, k))
    proba = softmax(logits / temperature, axis=1)
    y = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return logits, np.minimum(y, k - 1)


def log_loss(logits, y, temperature, weight=None):
    losses = -log_softmax(logits.astype(np.float64) / temperature, axis=1)[np.arange(len(y)), y]
    return np.average(losses, weights=weight)


def reference(logits, y, weight=None):
    result = minimize_scalar(
        lambda u: log_loss(logits, y, np.exp(u), weight),
        bounds=(np.log(1e-3), np.log(1e3)),
        method="bounded",
        options={"xatol": 1e-10},
    )
    return np.exp(result.x)


@pytest.mark.parametrize("n", [100, 500, 5000])
@pytest.mark.parametrize("random_labels", [0.0, 0.02, 0.1])
def test_the_default_is_the_least_mean_log_loss_and_nothing_else(n, random_labels):
    rng = np.random.default_rng(n)
    logits, y = sample(n, k=5, seed=n)
    y = np.where(rng.random(n) < random_labels, rng.integers(0, 5, n), y)
    weight = rng.uniform(0.2, 2, n)
    for w in (None, weight):
        fitted = TemperatureScaling().fit(logits, y, sample_weight=w)
        assert fitted.temperature_ == pytest.approx(reference(logits, y, w), rel=2e-6)
        assert fitted.uniform_weight_ == 0
        expected = softmax(logits / fitted.temperature_, axis=1)
        np.testing.assert_allclose(fitted.predict_proba(logits), expected, rtol=1e-12)


def test_random_labels_raise_the_temperature_but_not_beside_a_uniform_component():
    logits, y = sample(20_000, k=5)
    rng = np.random.default_rng(0)
    noisy = np.where(rng.random(20_000) < 0.1, rng.integers(0, 5, 20_000), y)
    assert TemperatureScaling().fit(logits, noisy).temperature_ > 2.8  # 2.5 in truth
    mixed = TemperatureScaling(mix_uniform=True).fit(logits, noisy)
    assert mixed.temperature_ == pytest.approx(2.5, abs=0.1)
    assert mixed.uniform_weight_ == pytest.approx(0.1, abs=0.03)


# Few rows, and enough rows for the search to start from a sample of them.
@pytest.mark.parametrize("n", [200, 20_000])
@pytest.mark.parametrize("scale", [0.02, 1.0, 50.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_least_log_loss_at_any_scale_of_the_logits(n, scale, dtype):
    logits, y = sample(n)
    logits = (scale * logits).astype(dtype)
    fitted = TemperatureScaling().fit(logits, y)
    np.testing.assert_allclose(fitted.temperature_, reference(logits, y), rtol=2e-6)


def test_temperature_is_recovered():
    logits, y = sample(100_000, temperature=1.7)
    assert TemperatureScaling().fit(logits, y).temperature_ == pytest.approx(1.7, rel=0.02)


def test_float16_and_float32_agree_with_float64():
    logits = np.round(sample()[0] * 4) / 4
    y = sample()[1]
    wide, *narrow = (
        TemperatureScaling().fit(logits.astype(d), y).temperature_
        for d in (np.float64, np.float32, np.float16)
    )
    np.testing.assert_allclose(narrow, wide, rtol=1e-6)


def test_slope_and_curvature_against_finite_differences():
    logits, y = sample(50)
    weight = np.random.default_rng(1).uniform(size=50)

    def total(beta):
        return log_loss(logits, y, 1 / beta, weight) * weight.sum()

    h, beta = 1e-4, 0.6
    slope, curvature = compute_slope_and_curvature(logits, y, weight, beta)
    assert slope == pytest.approx((total(beta + h) - total(beta - h)) / (2 * h), rel=1e-6)
    second = (total(beta + h) - 2 * total(beta) + total(beta - h)) / h**2
    assert curvature == pytest.approx(second, rel=1e-5)


def test_sorted_rows_do_not_mislead_the_start():
    logits, y = sample(20_000)
    loss = -log_softmax(logits, axis=1)[np.arange(len(y)), y]
    order = np.argsort(loss)
    expected = TemperatureScaling().fit(logits, y).temperature_
    assert TemperatureScaling().fit(logits[order], y[order]).temperature_ == pytest.approx(
        expected, rel=1e-9
    )


@pytest.mark.parametrize("criterion", ["log_loss", "ece"])
def test_weight_is_repetition_and_zero_weight_is_removal(criterion):
    logits, y = sample(400)
    weight = np.random.default_rng(1).integers(0, 4, len(y))
    scaling = TemperatureScaling(criterion=criterion)
    weighted = scaling.fit(logits, y, sample_weight=weight).temperature_
    repeated = scaling.fit(np.repeat(logits, weight, axis=0), np.repeat(y, weight)).temperature_
    assert weighted == pytest.approx(repeated, rel=1e-9)


def test_shift_of_a_row_changes_nothing():
    logits, y = sample()
    shift = 100 * np.random.default_rng(1).normal(size=(len(y), 1))
    assert TemperatureScaling().fit(logits + shift, y).temperature_ == pytest.approx(
        TemperatureScaling().fit(logits, y).temperature_, rel=1e-9
    )


def median_margin(logits):
    """The difference of the two largest logits in the middle of all samples, or just below it."""
    second, first = np.sort(logits, axis=1)[:, -2:].T
    return np.sort(first - second)[(len(logits) + 1) // 2 - 1]


def test_every_row_right_gives_the_lower_bound():
    logits, _ = sample()
    y = logits.argmax(axis=1)
    unit = median_margin(logits)
    with pytest.warns(
        SkcalibWarning, match="bound, 0.00[0-9]*: the samples are too few"
    ) as caught:
        assert TemperatureScaling().fit(logits, y).temperature_ == 1e-3 * unit
    assert caught[0].filename == __file__
    with pytest.warns(SkcalibWarning, match=r"at its lower bound, 0\.5:"):
        assert TemperatureScaling(bounds=(0.5, 2)).fit(logits, y).temperature_ == 0.5
    assert TemperatureScaling(bounds=(2, 2)).fit(logits, y).temperature_ == 2


def test_every_row_right_by_far_gives_the_lower_bound_too():
    # The slope of the log-loss is 0 to the last digit at every temperature in the bounds.
    with pytest.warns(SkcalibWarning, match="lower bound"):
        assert TemperatureScaling().fit(1e6 * np.eye(4), np.arange(4)).temperature_ == 1e3


def test_logits_that_mislead_give_the_upper_bound():
    logits, y = sample()
    with (
        pytest.warns(SkcalibWarning, match="at its upper bound, [0-9.]*: the logits say little"),
        pytest.warns(SkcalibWarning, match="X is far below chance"),
    ):
        found = TemperatureScaling().fit(-logits, y).temperature_
    assert found == 1e3 * median_margin(-logits)


def test_logits_that_say_nothing_leave_the_temperature_at_one():
    assert TemperatureScaling().fit(np.full((9, 3), 7.0), np.arange(9) % 3).temperature_ == (
        pytest.approx(1)
    )


def test_optimum_beyond_a_bound_gives_the_bound():
    logits, y = sample()
    with pytest.warns(SkcalibWarning, match="lower bound, 3"):
        assert TemperatureScaling(bounds=(3, 10)).fit(logits, y).temperature_ == 3
    with pytest.warns(SkcalibWarning, match="upper bound, 2"):
        assert TemperatureScaling(bounds=(0.1, 2)).fit(logits, y).temperature_ == 2


# With and without enough rows for the search to start from a sample of them.
@pytest.mark.parametrize("n", [4000, 20_000])
@pytest.mark.parametrize("temperature", [0.3, 2.5, 40.0])
@pytest.mark.parametrize("bounds", [(1e-3, 1e3), (3, 10), (0.1, 2)])
def test_few_passes_over_the_logits(n, temperature, bounds, monkeypatch):
    logits, y = sample(n, temperature=temperature)
    passed = []

    def counted(block, *args):
        passed.append(len(block))
        return compute_slope_and_curvature(block, *args)

    monkeypatch.setattr(_temperature_fit, "compute_slope_and_curvature", counted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkcalibWarning)
        TemperatureScaling(bounds=bounds).fit(logits, y)
    assert sum(passed) <= (5 if n > 10_000 else 8) * n


def test_prediction_is_the_softmax_at_the_temperature():
    logits, y = sample()
    fitted = TemperatureScaling().fit(logits, y)
    proba = fitted.predict_proba(logits)
    np.testing.assert_allclose(proba, softmax(logits / fitted.temperature_, axis=1), rtol=1e-12)
    np.testing.assert_array_equal(fitted.transform(logits), proba)
    np.testing.assert_array_equal(fitted.predict(logits), logits.argmax(axis=1))
    assert fitted.predict_proba(logits.astype(np.float32)).dtype == np.float32


def test_one_binary_logit_is_two_with_a_zero():
    rng = np.random.default_rng(0)
    logit = 5 * rng.normal(size=2000)
    y = np.where(rng.random(2000) < expit(logit / 2), "yes", "no")
    fitted = TemperatureScaling().fit(logit, y)
    both = TemperatureScaling().fit(np.column_stack([0 * logit, logit]), y)
    assert fitted.temperature_ == pytest.approx(both.temperature_, rel=1e-12)
    np.testing.assert_allclose(
        fitted.predict_proba(logit[:, None])[:, 1], expit(logit / fitted.temperature_)
    )
    np.testing.assert_array_equal(fitted.predict(logit), np.where(logit > 0, "yes", "no"))


def test_probabilities_give_the_temperature_of_their_logits():
    logits, y = sample(scale=1.5)
    expected = TemperatureScaling().fit(logits, y).temperature_
    proba = softmax(logits, axis=1)
    fitted = TemperatureScaling(input="proba").fit(proba, y)
    assert fitted.temperature_ == pytest.approx(expected, rel=1e-9)
    two = proba[y < 2, :2] / proba[y < 2, :2].sum(axis=1, keepdims=True)
    label = y[y < 2]
    assert TemperatureScaling(input="proba").fit(two[:, 1], label).temperature_ == pytest.approx(
        TemperatureScaling(input="proba").fit(two, label).temperature_, rel=1e-9
    )


def test_probability_zero_of_the_truth_is_finite():
    proba = np.array([[1.0, 0.0], [0.0, 1.0], [0.0, 1.0], [0.3, 0.7]] * 5)
    fitted = TemperatureScaling(input="proba").fit(proba, [0, 0, 1, 1] * 5)
    assert np.isfinite(fitted.predict_proba(proba)).all()


@pytest.mark.filterwarnings("ignore:y has no sample of class")
def test_string_labels_and_classes_without_rows():
    logits, y = sample()
    names = np.array(["f", "a", "e", "b", "d", "c"])
    fitted = TemperatureScaling(classes=names).fit(logits, names[y])
    assert fitted.temperature_ == TemperatureScaling().fit(logits, y).temperature_
    np.testing.assert_array_equal(fitted.predict(logits), names[logits.argmax(axis=1)])
    seen = y < 4
    partial = TemperatureScaling(classes=names).fit(logits[seen], names[y[seen]])
    assert partial.temperature_ == TemperatureScaling().fit(logits[seen], y[seen]).temperature_
    assert partial.predict_proba(logits).shape == logits.shape
    with pytest.raises(ValueError, match="6 classes in X and 4 classes in y"):
        TemperatureScaling().fit(logits[seen], names[y[seen]])


def test_ece_takes_the_best_of_the_grid():
    logits, y = sample(temperature=2.5)
    grid = np.array([0.5, 1.0, 2.0, 2.5, 3.0, 8.0])

    def error(temperature):
        proba = softmax(logits / temperature, axis=1)
        confidence, correct = proba.max(axis=1), proba.argmax(axis=1) == y
        bins = np.ceil(10 * confidence).astype(int)
        return sum(abs((confidence - correct)[bins == b].sum()) for b in np.unique(bins)) / len(y)

    fitted = TemperatureScaling(criterion="ece", grid=grid, n_bins=10).fit(logits, y)
    assert fitted.temperature_ == min(grid, key=error)
    assert (
        TemperatureScaling(criterion="ece").fit(logits, y).temperature_ in np.arange(1, 101) / 10
    )


def error_on_grid(logits, y, grid, n_bins, weight):
    """The weighted ECE at every temperature, from its definition."""
    errors = []
    for temperature in grid:
        proba = softmax(logits / temperature, axis=1)
        gap = weight * (proba.max(axis=1) - (proba.argmax(axis=1) == y))
        bins = np.ceil(n_bins * proba.max(axis=1)).astype(int)
        errors.append(np.abs(np.bincount(bins, gap)).sum() / weight.sum())
    return np.array(errors)


@pytest.mark.filterwarnings("ignore:X seems to belong to rows")
@pytest.mark.parametrize("n_bins", [1, 15, 60])
@pytest.mark.parametrize("temperature", [0.02, 0.7, 3.0, 200.0])
@pytest.mark.parametrize("seed", [0, 1])
def test_no_temperature_of_the_grid_is_better(n_bins, temperature, seed):
    logits, y = sample(150, k=3, temperature=temperature, seed=seed)
    rng = np.random.default_rng(seed)
    # A model whose errors no temperature mends, so that many are about as good.
    logits[:, 0] += rng.normal(size=150)
    weight, grid = rng.uniform(0.5, 2, 150), rng.permutation(np.geomspace(0.05, 20, 90))
    scaling = TemperatureScaling(criterion="ece", grid=grid, n_bins=n_bins)
    best = scaling.fit(logits, y, sample_weight=weight).temperature_
    errors = error_on_grid(logits, y, grid, n_bins, weight)
    assert errors[grid == best][0] <= errors.min() + 1e-12


def test_few_temperatures_of_the_grid_are_tried(monkeypatch):
    logits, y = sample(20_000, temperature=2.5)
    tried = []

    def counted(logits, temperature):
        tried.append(temperature)
        return compute_top_confidence(logits, temperature)

    monkeypatch.setattr(posthoc_temperature, "compute_top_confidence", counted)
    TemperatureScaling(criterion="ece").fit(logits, y)
    assert len(tried) == len(set(tried)) <= 12


def test_ends_of_the_default_grid():
    label = np.arange(60) % 3
    # Every prediction right, and every second: the confidence has to be 1, and as low as can be.
    timid, bold = 0.1 * np.eye(3)[label], 30 * np.eye(3)[label]
    scaling = TemperatureScaling(criterion="ece")
    assert scaling.fit(timid, label).temperature_ == 0.1
    assert scaling.fit(bold, (label + np.arange(60) % 2) % 3).temperature_ == 10.0


def test_ece_that_cannot_be_improved_leaves_one():
    logits = np.zeros((4, 2))
    assert TemperatureScaling(criterion="ece").fit(logits, [0, 1, 0, 1]).temperature_ == 1


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"bounds": (0, 1)}, "bounds must be two numbers"),
        ({"bounds": (2, 1)}, "bounds must be two numbers"),
        ({"bounds": (1, 2, 3)}, "bounds must be two numbers"),
        ({"criterion": "ece", "grid": [1, -1]}, "grid must be a list of positive"),
        ({"criterion": "ece", "grid": []}, "grid must be a list of positive"),
        ({"criterion": "ece", "grid": [1, np.inf]}, "grid must be a list of positive"),
        ({"bounds": (1, np.inf)}, "bounds must be two numbers"),
        ({"criterion": "brier"}, r"^criterion must be one of \['log_loss', 'ece'\], got 'brier'"),
        ({"input": "auto"}, "'input' parameter"),
        ({"n_bins": 0}, "'n_bins' parameter"),
        ({"classes": ["a", "a", "b"]}, "classes must hold 2 distinct classes"),
        ({"classes": ["a", "c"]}, r"y must hold labels among \['a', 'c'\], got 'b'"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        TemperatureScaling(**params).fit([[2.0, 0.0], [0.0, 2.0]], ["a", "b"])


@pytest.mark.parametrize(
    ("X", "y", "message"),
    [
        ([[1.0, 2.0]], [0, 1], "must have the same number of samples"),
        ([[1.0, np.inf], [0.0, 1.0]], [0, 1], "infinity"),
        ([[1.0, 2.0, 3.0]] * 4, ["a", "b", "a", "b"], "3 classes in X and 2 classes in y"),
        ([1.0, 2.0, 3.0], [0, 1, 2], "2 classes in X and 3 classes in y"),
        ([[1.0, 2.0]] * 2, [0.5, 1.5], "continuous"),
    ],
)
def test_bad_scores_and_labels_are_named(X, y, message):
    with pytest.raises(ValueError, match=message):
        TemperatureScaling().fit(X, y)


def test_logits_given_as_probabilities_are_an_error():
    with pytest.raises(ValueError, match=r"X must hold probabilities in \[0, 1\]"):
        TemperatureScaling(input="proba").fit([[3.0, -1.0], [0.0, 1.0]], [0, 1])


def test_pipeline_citizen():
    pandas = pytest.importorskip("pandas")
    logits, y = sample()
    frame = pandas.DataFrame(logits, columns=list("abcdef"))
    fitted = TemperatureScaling().fit(frame, y).set_output(transform="pandas")
    out = fitted.transform(frame)
    assert list(out.columns) == [f"proba_{k}" for k in range(6)]
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict_proba(frame), out)
    assert not hasattr(clone(fitted), "temperature_")
