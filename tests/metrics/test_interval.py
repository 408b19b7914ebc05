import inspect
import tracemalloc
from functools import partial, wraps

import numpy as np
import pytest
from joblib import parallel_config
from scipy.integrate import quad
from scipy.special import expit, logit, softmax
from scipy.stats import ks_2samp, norm

from skcalib.datasets import make_predictions
from skcalib.metrics import (
    calibration_error_interval,
    calibration_test,
    classwise_calibration_error,
    debiased_calibration_error,
    expected_calibration_error,
    ks_calibration_error,
    maximum_calibration_error,
    smooth_calibration_error,
)
from skcalib.metrics._binned_draws import MergedError, prepare_residual_error
from skcalib.metrics._resampling import AnyError, Resampled, draw_seeds


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.ones(3), size=300)
    true = 0.35 * proba + 0.65 / 3  # a model that is far too sure
    y = (true.cumsum(axis=1) < rng.random((300, 1))).sum(axis=1).clip(0, 2)
    return y, proba, rng.uniform(0, 2, size=300)


METRICS = [
    (expected_calibration_error, {}),
    (expected_calibration_error, {"n_bins": 4, "norm": "l2"}),
    (expected_calibration_error, {"n_bins": 5, "strategy": "quantile", "norm": "max"}),
    (maximum_calibration_error, {"n_bins": 6}),
    (classwise_calibration_error, {}),
    (classwise_calibration_error, {"norm": "l2", "n_bins": 7}),
    (classwise_calibration_error, {"norm": "max", "strategy": "quantile"}),
    (debiased_calibration_error, {}),
    (debiased_calibration_error, {"squared": True, "n_bins": 5}),
    (ks_calibration_error, {}),
    (smooth_calibration_error, {}),
    (smooth_calibration_error, {"bandwidth": 0.5}),
]


@pytest.mark.parametrize(("metric", "options"), METRICS)
def test_every_metric_has_an_interval(data, metric, options):
    y, proba, weight = data
    low, high = calibration_error_interval(
        y, proba, metric=metric, n_resamples=60, random_state=0, sample_weight=weight, **options
    )
    assert 0 < low < high < 1  # the labels have nothing to do with the probabilities
    assert isinstance(low, float)
    assert isinstance(high, float)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("metric", "options"), METRICS)
def test_sums_over_cells_are_the_metric(data, metric, options, weighted):
    # The samples, resamples, and labels drawn from the probabilities: the metric evaluated anew.
    y, proba, weight = data
    given = {"sample_weight": weight if weighted else None}
    found = Resampled.of(metric, options, y, proba, **given)
    codes, stated = found.error.codes, found.error.proba
    anew = AnyError(metric, options, codes, stated, weight if weighted else None, None)
    seeds = np.arange(8)

    def same(errors, values):
        if metric is debiased_calibration_error:  # the cells give it squared, before the cut
            values = np.sign(values) * np.abs(values) if options else np.square(values)
            errors = errors if options else np.maximum(errors, 0)
        smooth = metric is smooth_calibration_error
        np.testing.assert_allclose(errors, values, rtol=0.02 if smooth else 1e-9, atol=1e-12)

    assert found.estimate == metric(y, proba, **given, **options)
    same([found.statistic], [found.estimate])
    if "quantile" not in options.values():  # the bins stay those of the samples
        draws = found.error.bootstrap(seeds)
        errors = np.concatenate([found.error.errors(draw) for draw in draws])
        if metric is not smooth_calibration_error or options:  # the bandwidth stays, too
            same(errors, anew.bootstrap(seeds))
    if metric is not smooth_calibration_error or options:
        same(found.error.by_chance(seeds), anew.by_chance(seeds))


@pytest.mark.slow
def test_labels_by_chance_compare_with_the_smooth_error_as_their_own_errors_do(data):
    y, proba, _ = data
    found = Resampled.of(smooth_calibration_error, {}, y, proba)
    codes, stated = found.error.codes, found.error.proba
    drawn = AnyError(smooth_calibration_error, {}, codes, stated, None, None)
    seeds = np.arange(40)
    # For an estimate in the middle of the errors by chance.
    middle = float(np.median(drawn.by_chance(seeds)))
    error = prepare_residual_error(smooth_calibration_error, {}, middle, codes, stated, None, None)
    exceeds = np.array(drawn.by_chance(seeds)) > middle
    by_bins = np.array(error.by_chance(seeds)) > middle
    assert (exceeds == by_bins).mean() > 0.95
    assert 10 < exceeds.sum() < 30


@pytest.mark.slow
def test_interval_of_a_naive_inversion():
    rng = np.random.default_rng(3)
    p = rng.uniform(size=300)
    # Gaps of both signs: their mean, which has a limit of its own, is small.
    y = (rng.uniform(size=300) < p + 0.25 * np.sin(12 * p)).astype(int)
    seeds = draw_seeds(0, 200)
    bins = np.minimum((p * 15).astype(int), 14)

    def sums(rows):
        return np.array([sum(p[i] - y[i] for i in rows if bins[i] == b) for b in range(15)]) / 300

    observed = sums(range(300))
    noise = []
    for seed in seeds:
        rows = np.random.default_rng(seed).integers(300, size=300)
        noise.append(sums(rows) - observed)
    noise = np.array(noise)
    error = np.abs(observed).sum()
    assert error == pytest.approx(expected_calibration_error(y, p))
    scales = np.linspace(0, 3, 3001)
    shrunk = observed * np.clip(1 - noise.var(axis=0) / observed**2, 0, 1)

    def errors(shape, scale):
        return np.abs(noise + scale * shape).sum(axis=1)

    lows = [
        np.abs(shape).sum() * next(t for t in scales if (errors(shape, t) >= error).mean() >= 0.05)
        for shape in (observed, shrunk)
    ]
    last = next(t for t in scales if (errors(observed, t) <= error).mean() < 0.05)
    low, high = calibration_error_interval(
        y, p, n_resamples=200, random_state=0, confidence_level=0.9
    )
    assert low == pytest.approx(min(lows), abs=2e-3 * error)
    assert high == pytest.approx(np.abs(observed).sum() * last, abs=2e-3 * error)


@pytest.mark.slow
def test_jobs_and_seeds(data):
    y, proba, _ = data
    run = partial(
        calibration_error_interval, y, proba, n_resamples=20, metric=ks_calibration_error
    )
    for backend in ("threading", "multiprocessing"):
        with parallel_config(backend=backend):
            assert run(random_state=0) == run(random_state=0, n_jobs=2)
    assert run(random_state=0) != run(random_state=1)
    assert run(random_state=np.random.RandomState(0)) == run(random_state=0)


@pytest.mark.slow
@pytest.mark.parametrize("shape", ["matrix", pytest.param("vector", marks=pytest.mark.long)])
@pytest.mark.parametrize(
    "metric",
    [expected_calibration_error, classwise_calibration_error, debiased_calibration_error],
)
def test_coverage_of_perfect_calibration(metric, shape):
    # The true error is 0, and the interval misses it in 2.5 % of the draws: 3 misses in 20 trials
    # have a probability of 1 %. It is never [0, 0], which would say that there can be no error.
    rng = np.random.default_rng(0)
    covered = 0
    for seed in range(20):
        proba = rng.dirichlet(np.ones(3), size=200)
        y = (rng.uniform(size=(200, 1)) > np.cumsum(proba, axis=1)[:, :2]).sum(axis=1)
        if shape == "vector":
            y, proba = (y == 1).astype(int), proba[:, 1]
        labels = {} if shape == "vector" else {"labels": range(3)}
        low, high = calibration_error_interval(
            y, proba, metric=metric, n_resamples=100, random_state=seed, **labels
        )
        covered += low == 0
        assert high > 0.005
    assert covered >= 18


@pytest.mark.slow
def test_coverage_of_an_overconfident_model():
    # With 300 samples the debiased error is 0 in many draws, and its interval once was [0, 0].
    covered = 0
    for seed in range(20):
        y, proba, _ = make_predictions(300, temperature=1.2, random_state=seed)
        low, high = calibration_error_interval(
            y, proba, metric=debiased_calibration_error, n_resamples=100, random_state=seed
        )
        covered += low <= 0.03 <= high  # the true error, of 10**6 samples: .030
    assert covered >= 18


@pytest.mark.slow
@pytest.mark.parametrize(
    ("norm", "options"),
    [
        ("l1", {"n_bins": 1000}),
        pytest.param("l2", {"n_bins": 300}, marks=pytest.mark.long),
        pytest.param("l1", {"n_bins": 1000, "strategy": "quantile"}, marks=pytest.mark.long),
        ("l2", {"n_bins": 300, "groups": np.arange(1000)}),
    ],
)
def test_bins_of_one_sample_tell_no_more_than_there_is(norm, options):
    def frequency(p):
        return expit(logit(p) / 2)

    power = int(norm[1])
    # Bins are so narrow that the gap is that of every probability.
    true = quad(lambda p: abs(p - frequency(p)) ** power, 0, 1)[0] ** (1 / power)
    covered, lows = 0, []
    for seed in range(5):
        rng = np.random.default_rng(seed)
        p = rng.uniform(size=1000)
        y = rng.uniform(size=1000) < frequency(p)
        low, high = calibration_error_interval(
            y, p, norm=norm, n_resamples=99, random_state=seed, **options
        )
        covered += low <= true <= high
        lows.append(low)
    assert covered >= 4
    assert max(lows) > true / 4  # nor do they tell nothing


def swap(logits):
    """Two classes that are often taken for one another."""
    swapped = logits.copy()
    swapped[:, :2] = 0.1 * logits[:, :2] + 0.9 * logits[:, 1::-1]
    return softmax(swapped, axis=1)


def move(logits):
    """Most of the probability of one class is given to another one."""
    proba = softmax(logits, axis=1)
    proba[:, :2] = proba[:, :2] @ [[0.3, 0.7], [0.0, 1.0]]
    return proba


@pytest.mark.slow
@pytest.mark.parametrize(("make", "first", "most"), [(swap, 0, 2), (move, 11, 1)])
def test_two_bad_classes_of_fifty_are_no_more_than_they_are(make, first, most):
    def draw(rng, n):
        logits = rng.normal(0, 3, (n, 50)) + np.linspace(2, -2, 50)
        return make(logits), softmax(logits, axis=1)

    # The true error is that of the true probabilities in place of labels.
    proba, true = draw(np.random.default_rng(0), 50_000)
    index = np.clip(np.ceil(15 * proba).astype(int) - 1, 0, 14) + 15 * np.arange(50)
    residuals = np.bincount(index.ravel(), (proba - true).ravel())
    error = np.abs(residuals).sum() / proba.size
    ends = []
    for seed in range(first, first + 12):
        rng = np.random.default_rng([seed, 1])
        proba, true = draw(rng, 500)
        y = (rng.random((500, 1)) > true.cumsum(axis=1)[:, :-1]).sum(axis=1)
        ends.append(
            calibration_error_interval(
                y, proba, metric="classwise_ece", labels=range(50), n_resamples=99, random_state=0
            )
        )
    low, high = np.array(ends).T
    assert (low > error).sum() <= most  # with the noise of the bootstrap alone, 3 of `move`
    assert (high > error).all()
    if make is swap:
        assert (low > 0).sum() >= 5


@pytest.mark.slow
def test_the_estimate_may_lie_above_its_interval():
    y, proba, _ = make_predictions(500, temperature=1.0, random_state=0)
    _, high = calibration_error_interval(
        y, proba, metric=classwise_calibration_error, random_state=0
    )
    assert high < classwise_calibration_error(y, proba)


@pytest.mark.slow
def test_one_and_two_samples_are_no_evidence():
    # Whatever is said, one label or two tell next to nothing: about half is possible.
    assert calibration_error_interval([1], [0.5])[0] == 0
    assert calibration_error_interval([1], [0.5])[1] == pytest.approx(0.5, abs=1e-3)
    low, high = calibration_error_interval([1, 1], [0.9, 0.8])
    assert low == 0
    assert high > 0.5
    # Fifty right answers of which the model was certain: the exact interval ends at .929.
    low, high = calibration_error_interval(np.ones(50, int), np.ones(50))
    assert (low, high) == (0, pytest.approx(1 - 0.025 ** (1 / 50), abs=1e-4))


@pytest.mark.slow
def test_luck_does_not_lower_the_upper_end():
    """An error far below those of calibrated models hides as large an error as theirs do."""
    rng = np.random.default_rng(1)
    proba = np.repeat(np.linspace(0.05, 0.95, 10), 40)
    draws = [(rng.random(400) < proba).astype(int) for _ in range(300)]
    errors = [expected_calibration_error(y, proba, n_bins=10) for y in draws]
    for lucky in np.argsort(errors)[:10]:
        high = calibration_error_interval(draws[lucky], proba, n_bins=10, random_state=0)[1]
        assert high >= 0.95 * np.median(errors)


@pytest.mark.slow
def test_groups_are_resampled_as_a_whole():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=400)
    y = (rng.uniform(size=400) < p**1.5).astype(int)
    run = partial(calibration_error_interval, n_resamples=400, random_state=0)
    once = run(y, p)
    # Every sample five times: without groups five times as many samples, with them the same.
    five_times = {"y_true": np.repeat(y, 5), "y_proba": np.repeat(p, 5)}
    names = np.repeat(np.arange(400), 5)
    grouped = run(**five_times, groups=names)
    assert grouped == pytest.approx(once, abs=0.004)
    low, high = run(**five_times)
    assert high - low < 0.65 * (grouped[1] - grouped[0])
    with pytest.raises(ValueError, match=r"groups must have one entry .*, 400, got 3"):
        run(y, p, groups=[1, 2, 3])


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.5, 0.1])
@pytest.mark.parametrize("size", [4, 20])
def test_a_score_of_groups_is_as_uncertain_as_their_labels_are_alike(rate, size):
    """Whether a group has one label or each sample its own, on average over sixty draws."""
    widths = {"own": [], "copies": []}
    errors = {"own": [], "copies": []}
    for seed in range(60):
        rng = np.random.default_rng(seed)
        once = np.tile(expit(logit(rate) + np.linspace(-1.5, 1.5, 30)), 2)
        proba, groups = np.repeat(once, size), np.repeat(np.arange(60), size)
        labels = {
            "own": (rng.uniform(size=len(proba)) < proba).astype(int),
            "copies": np.repeat((rng.uniform(size=60) < once).astype(int), size),
        }
        for name, y in labels.items():
            low, high = calibration_error_interval(
                y, proba, metric="log_loss", groups=groups, n_resamples=60, random_state=seed
            )
            widths[name].append(high - low)
            # The bootstrap of groups, by hand.
            losses = -np.log(np.where(y == 1, proba, 1 - proba)).reshape(60, size).mean(axis=1)
            drawn = losses[rng.integers(60, size=(60, 60))].mean(axis=1)
            errors[name].append(2 * norm.ppf(0.975) * drawn.std())
    # A little wider: four samples of any class alike count beside those that are known.
    for name, of_draws in widths.items():
        assert 0.95 < np.mean(of_draws) / np.mean(errors[name]) < 1.3


@pytest.mark.slow
def test_a_score_of_rare_labels_that_half_of_the_groups_share():
    """Too few came to see that groups share them, and twice as many as the probabilities say."""
    held = 0
    for seed in range(60):
        rng = np.random.default_rng(seed)
        groups = np.repeat(np.arange(100), 10)
        shared = (rng.random(100) < 0.5)[groups]
        u = np.where(shared, rng.random(100)[groups], rng.random(1000))
        low, high = calibration_error_interval(
            (u < 0.01).astype(int),
            np.full(1000, 0.005),
            metric="log_loss",
            groups=groups,
            labels=[0, 1],
            n_resamples=60,
            random_state=seed,
        )
        held += low <= -(0.01 * np.log(0.005) + 0.99 * np.log(0.995)) <= high
    assert held >= 55


@pytest.mark.slow
def test_interval_shrinks_with_the_sample_and_the_level():
    rng = np.random.default_rng(0)
    p = rng.uniform(size=4000)
    y = rng.uniform(size=4000) < p**2
    run = partial(calibration_error_interval, n_resamples=200, random_state=0)
    widths = [high - low for low, high in (run(y[:n], p[:n]) for n in (250, 1000, 4000))]
    assert widths[0] > 1.5 * widths[1] > 2.25 * widths[2]
    low, high = run(y, p)
    narrow_low, narrow_high = run(y, p, confidence_level=0.5)
    assert low < narrow_low < 1 / 6 < narrow_high + 0.01
    assert narrow_high < high


def test_zero_weights_are_no_rows(data):
    y, proba, _ = data
    kept = np.arange(300) % 2 == 0
    run = partial(calibration_error_interval, n_resamples=20, random_state=0)
    weighted = run(y, proba, sample_weight=kept.astype(float))
    assert weighted == pytest.approx(run(y[kept], proba[kept]))


@pytest.mark.parametrize("value", [0, 2.5, None])
def test_number_of_resamples_is_a_number(data, value):
    with pytest.raises(ValueError, match="'n_resamples' parameter"):
        calibration_error_interval(*data[:2], n_resamples=value)


@pytest.mark.parametrize("scale", [5e-324, 1e-200, 1e308])
@pytest.mark.parametrize("metric", [expected_calibration_error, ks_calibration_error])
def test_extreme_weights(scale, metric):
    run = partial(
        calibration_error_interval,
        [0, 1, 1],
        [0.2, 0.3, 0.9],
        metric=metric,
        n_resamples=20,
        random_state=0,
    )
    assert run(sample_weight=[scale] * 3) == pytest.approx(run(), rel=1e-12)


def test_defaults_are_those_of_the_metric(data, monkeypatch):
    y, proba, _ = data
    run = partial(calibration_error_interval, y, proba, n_resamples=20, random_state=0)
    function = inspect.unwrap(expected_calibration_error)
    monkeypatch.setitem(function.__kwdefaults__, "n_bins", 3)
    changed = run()
    monkeypatch.undo()
    assert changed == run(n_bins=3) != run()


@pytest.mark.slow
def test_metric_of_the_user(data):
    y, proba, _ = data

    def score(y_true, y_proba, *, sample_weight=None, labels=None):
        error = ((y_proba - np.eye(3)[y_true]) ** 2).sum(axis=1)
        return 5 * np.average(error, weights=sample_weight)

    low, high = calibration_error_interval(y, proba, metric=score, n_resamples=400, random_state=0)
    # The mean of independent values: 1.96 standard errors on both sides, in its own unit.
    each = 5 * ((proba - np.eye(3)[y]) ** 2).sum(axis=1)
    half = 1.96 * each.std() / np.sqrt(300)
    assert (low, high) == pytest.approx((each.mean() - half, each.mean() + half), rel=0.03)
    assert low > 1


@pytest.mark.parametrize(
    "options",
    [
        {"confidence_level": 0},
        {"confidence_level": 1},
        {"n_resamples": 0},
        {"metric": 3},
        {"n_bins": 0},
        {"strategy": "x"},
    ],
)
def test_bad_options(data, options):
    with pytest.raises(ValueError, match=f"'{next(iter(options))}' parameter"):
        calibration_error_interval(*data[:2], **options)


def test_a_partial_is_the_metric_with_options():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet([0.3] * 3, size=200)
    y = np.array([rng.choice(3, p=p) for p in proba])
    inner = partial(partial(debiased_calibration_error, n_bins=7), strategy="quantile")
    options = {"n_resamples": 50, "random_state": 0}
    expected = calibration_error_interval(
        y, proba, metric=debiased_calibration_error, n_bins=5, strategy="quantile", **options
    )
    assert calibration_error_interval(y, proba, metric=inner, n_bins=5, **options) == expected
    assert calibration_test(y, proba, metric=inner, **options) == calibration_test(
        y, proba, metric=debiased_calibration_error, n_bins=7, strategy="quantile", **options
    )


@pytest.mark.slow
@pytest.mark.parametrize(
    "shape", ["positive class", pytest.param("several classes", marks=pytest.mark.long)]
)
def test_a_calibration_error_of_others_begins_at_zero_where_chance_explains_it(shape):
    @wraps(expected_calibration_error)  # copies what the metric declares of itself
    def doubled(y_true, y_proba, **options):
        return 2 * expected_calibration_error(y_true, y_proba, **options)

    rng = np.random.default_rng(1)
    options = {"metric": doubled, "n_resamples": 60}
    begins_at_zero, held = 0, 0
    for seed in range(12):
        if shape == "positive class":
            proba = rng.uniform(size=200)
            y, wrong = rng.uniform(size=200) < proba, rng.uniform(size=200) < proba**3
        else:
            proba = rng.dirichlet([1.0] * 4, size=200)
            y = np.array([rng.choice(4, p=p) for p in proba])
            wrong = (proba.argmin(axis=1)).astype(int)
        low, high = calibration_error_interval(y, proba, random_state=seed, **options)
        begins_at_zero += low == 0
        held += low <= 0 <= high
        assert high >= doubled(y, proba)
        low, high = calibration_error_interval(wrong, proba, random_state=seed, **options)
        assert 0 < low < doubled(wrong, proba) <= high
    assert begins_at_zero == held >= 10


@pytest.mark.slow
def test_a_score_of_others_is_no_calibration_error():
    rng = np.random.default_rng(1)
    proba = rng.uniform(0.2, 0.8, size=400)
    y = rng.uniform(size=400) < proba
    low, high = calibration_error_interval(y, proba, metric=brier_of, random_state=0)
    assert 0 < low < brier_of(y, proba) < high


def brier_of(y_true, y_proba, sample_weight=None, labels=None):
    return float(np.average((y_proba - y_true) ** 2, weights=sample_weight))


ONE_COLUMN = [case for case in METRICS if case[0] is not classwise_calibration_error]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("metric", "options"),
    [
        *ONE_COLUMN[:3],
        *(pytest.param(*case, marks=pytest.mark.long) for case in ONE_COLUMN[3:]),
    ],
)
def test_very_many_samples_are_drawn_together(metric, options, monkeypatch):
    y, proba, _ = make_predictions(6000, temperature=1.3, random_state=0)
    monkeypatch.setattr("skcalib.metrics._binned_draws._MERGED", 1000)
    alone = Resampled.of(metric, options, y, proba)
    together = alone.alone()
    error, merged = alone.error, together.error
    assert len(merged.bins) < 0.8 * len(error.bins)
    assert merged.weight.sum() == 6000
    assert merged.statistic == pytest.approx(error.statistic, abs=1e-12)
    seeds = draw_seeds(0, 200)
    one_by_one, drawn = (e.errors(e.bootstrap(seeds)[0]) for e in (error, merged))
    assert ks_2samp(one_by_one, drawn).pvalue > 1e-3
    one_by_one, drawn = (e.by_chance(seeds) for e in (error, merged))
    assert ks_2samp(one_by_one, drawn).pvalue > 1e-3
    ends = calibration_error_interval(
        y, proba, metric=metric, n_resamples=400, random_state=0, **options
    )
    monkeypatch.setattr("skcalib.metrics._binned_draws._MERGED", 10**9)
    assert not isinstance(Resampled.of(metric, options, y, proba).alone().error, MergedError)
    expected = calibration_error_interval(
        y, proba, metric=metric, n_resamples=400, random_state=0, **options
    )
    width = expected[1] - expected[0]
    np.testing.assert_allclose(ends, expected, atol=0.3 * width)


@pytest.mark.parametrize("together", [False, True])
def test_variance_of_the_residuals_of_a_calibrated_model(data, together):
    y, proba, weight = data
    y, p = proba.argmax(axis=1) == y, proba.max(axis=1)
    if together:  # more than 2**17
        y, p, weight = np.tile(y, 500), np.tile(p, 500), np.ones(500 * len(y))
    resampled = Resampled.of(expected_calibration_error, {"n_bins": 9}, y, p, sample_weight=weight)
    error = resampled.alone().error
    assert isinstance(error, MergedError) == together
    bins = np.minimum((9 * p).astype(int), 8)
    expected = np.bincount(bins, weight**2 * p * (1 - p), 9) / weight.sum() ** 2
    np.testing.assert_allclose(error.compute_null_variance(), expected, rtol=1e-6)


@pytest.mark.parametrize("given", ["weights", "groups", "classes", "few"])
def test_other_samples_are_drawn_one_by_one(data, given, monkeypatch):
    y, proba, weight = data
    monkeypatch.setattr("skcalib.metrics._binned_draws._MERGED", 301 if given == "few" else 100)
    metric = classwise_calibration_error if given == "classes" else expected_calibration_error
    more = {"weights": {"sample_weight": weight}, "groups": {"groups": y}}.get(given, {})
    resampled = Resampled.of(metric, {}, y, proba, **more)
    assert resampled.alone().error is resampled.error


@pytest.mark.slow
def test_the_interval_of_many_classes_keeps_few_copies_of_the_probabilities():
    rng = np.random.default_rng(0)
    proba = rng.dirichlet(np.full(200, 0.1), size=2000).astype(np.float32)
    y = (proba.cumsum(axis=1) < rng.random((2000, 1))).sum(axis=1).clip(0, 199)
    tracemalloc.start()
    calibration_error_interval(
        y, proba, metric=classwise_calibration_error, n_resamples=20, random_state=0
    )
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    # Gaps and sums of probabilities in float64, places of 4 bytes, and draws of labels.
    assert peak < 27 * proba.size


def excess_confidence(y_true, y_proba, sample_weight=None, labels=None):
    """The same as "overconfidence", by a function that is not known to have both signs."""
    right = y_true == np.asarray(y_proba).argmax(axis=1)
    return float(np.average(np.max(y_proba, axis=1) - right, weights=sample_weight))


@pytest.mark.parametrize("metric", ["overconfidence", excess_confidence])
@pytest.mark.parametrize("temperature", [0.6, 1.0])
def test_a_metric_with_both_signs_has_an_interval_about_it(metric, temperature):
    y, proba, _ = make_predictions(600, temperature=temperature, random_state=0)
    residual = proba.max(axis=1) - (proba.argmax(axis=1) == y)
    half = 1.96 * residual.std() / np.sqrt(len(y))
    expected = residual.mean() + np.array([-half, half])
    found = calibration_error_interval(y, proba, metric=metric, random_state=0, n_resamples=600)
    assert expected[0] < 0
    # 600 resamples know a standard error to 3 %; that of drawn labels, if larger, is taken.
    np.testing.assert_allclose(found, expected, atol=0.3 * half)
    assert found[0] < residual.mean() < found[1]
