"""Proxy labels of all samples and checks of some: intervals of what all checks would give."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax
from scipy.stats import beta, t
from sklearn.metrics import accuracy_score, log_loss

from skcalib.datasets import make_predictions
from skcalib.metrics import prediction_powered_interval
from skcalib.utils import SkcalibWarning

METRICS = ("accuracy", "brier", "log_loss", "overconfidence")


def sample(n=3000, *, wrong=0.1, seed=0, n_classes=3):
    """True labels, proxy labels of which a fraction is drawn anew, and probabilities."""
    y, proba, _ = make_predictions(n, n_classes=n_classes, temperature=1.5, random_state=seed)
    rng = np.random.default_rng(seed)
    anew = rng.uniform(size=n) < wrong
    return y, np.where(anew, rng.integers(0, n_classes, n), y), proba, rng


def losses(y, proba, metric):
    """What the metrics are means of, written anew."""
    top = proba.argmax(axis=1) == y
    one_hot = np.eye(proba.shape[1])[y]
    return {
        "accuracy": 1.0 * top,
        "brier": ((proba - one_hot) ** 2).sum(axis=1),
        "log_loss": -np.log(proba[np.arange(len(y)), y]),
        "overconfidence": proba.max(axis=1) - top,
    }[metric]


def student(values, n):
    """Width of the interval of a mean of checked samples out of n, alone."""
    m = len(values)
    return 2 * t.isf(0.025, m - 1) * values.std(ddof=1) * np.sqrt((1 - m / n) / m)


def expected(proxy, proba, rows, y_checked, metric, weight=None, groups=None):
    """Losses to expect of all samples, of checked ones by a fit without their group, variances."""
    weight = np.ones(len(rows)) if weight is None else weight
    groups = np.arange(len(rows)) if groups is None else groups
    fractions = proxy if np.ndim(proxy) == 2 else np.eye(proba.shape[1])[proxy]
    of_label = np.stack(
        [losses(np.full(len(proba), k), proba, metric) for k in range(proba.shape[1])], axis=1
    )

    terms = np.stack([np.log(proba[rows]), fractions[rows]])

    def fit(used, start=(1.0, 0.0)):
        chosen, n_used, features = y_checked[used], np.arange(len(rows[used])), terms[:, used]

        def value(theta):
            fits = log_softmax(np.tensordot(theta, features, 1), axis=1)
            proba_fit = np.exp(fits)
            right = np.exp(theta[1]) / (np.exp(theta[1]) + proba.shape[1] - 1)
            half = (np.log(right) + np.log(1 - right)) / 2
            total = (theta[0] - 1) ** 2 / 2 - weight[used] @ fits[n_used, chosen] - half
            above = features[:, n_used, chosen] - (features * proba_fit).sum(axis=2)
            gradient = np.array([theta[0] - 1, right - 0.5]) - above @ weight[used]
            return total, gradient

        return minimize(value, start, jac=True, tol=1e-7).x

    def losses_at(theta, at):
        label_proba = softmax(theta[0] * np.log(proba[at]) + theta[1] * fractions[at], axis=1)
        mean = (label_proba * of_label[at]).sum(axis=1)
        return mean, (label_proba * of_label[at] ** 2).sum(axis=1) - mean**2

    whole = fit(groups >= 0)
    of_checked = np.empty(len(rows))
    for group in np.unique(groups):
        own = groups == group
        of_checked[own] = losses_at(fit(~own, whole), rows[own])[0]
    mean, variance = losses_at(whole, np.arange(len(proba)))
    return mean, of_checked, variance


def of_draw(mean, variance, power, inclusion):
    """The variance of an estimate by a draw, sample by sample, where this is what to expect."""
    values = variance + ((1 - power) * (mean - mean.mean())) ** 2
    return sum((1 / inclusion - 1) * values) / len(mean) ** 2


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
def test_agrees_with_ppi_python(metric):
    ppi = pytest.importorskip("ppi_py")
    y, proxy, proba, rng = sample(100_000)
    checked = rng.choice(len(y), 150, replace=False)
    low, high = prediction_powered_interval(
        y[checked], proba, proxy, checked=checked, metric=metric
    )
    true = losses(y, proba, metric)[checked]
    known, of_checked, variance = expected(proxy, proba, checked, y[checked], metric)
    both = np.cov(true, of_checked)
    power = min(both[0, 1] / both[1, 1], 1.0)
    center = ppi.ppi_mean_pointestimate(true, of_checked, known, lam=power)
    error = 0.005 * (high - low)  # of the step in place of a fit anew
    assert (low + high) / 2 == pytest.approx(float(np.ravel(center)[0]), abs=error)
    theirs = ppi.ppi_mean_ci(true, of_checked, known, lam=power, alpha=0.05)
    width = float(np.ravel(theirs[1])[0] - np.ravel(theirs[0])[0])
    # Normal instead of Student's t, another denominator, and samples from a population; theirs is
    # by the checked samples alone, ours also by what is expected.
    least = 2 * t.isf(0.025, np.inf) * of_draw(known, variance, power, 150 / len(y)) ** 0.5
    assert high - low == pytest.approx(max(width, least), rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("n_wrong", [None, 0])  # without any, the variance is the expected one
def test_the_formula_of_a_draw_without_replacement(metric, n_wrong):
    y, proxy, proba, rng = sample(1000, wrong=0.3)
    m = 150
    checked = rng.choice(1000, m, replace=False)
    if n_wrong is not None:
        proxy[checked] = y[checked]
    found = prediction_powered_interval(y[checked], proba, proxy, checked=checked, metric=metric)
    true = losses(y, proba, metric)[checked]
    known, of_checked, variance = expected(proxy, proba, checked, y[checked], metric)
    slope = np.polyfit(of_checked, true, 1)[0]
    power = min(slope, 1)
    residual = true - power * of_checked
    degrees = m - 1 - (power < 1)
    square = (1 - m / 1000) * residual.var() * m / degrees / m
    by_model = of_draw(known, variance, power, m / 1000)
    assert n_wrong is None or by_model > square
    half = t.isf(0.025, degrees) * max(square, by_model) ** 0.5
    center = power * known.mean() + residual.mean()
    np.testing.assert_allclose(found, [center - half, center + half], atol=0.02 * half)


def by_hand(true, of_all, of_checked, variance, rows, inclusion, groups):
    """The interval sample by sample: a ratio estimate and its Poisson variance, by groups."""
    share = [1 / inclusion[i] for i in rows]
    share = [x / sum(share) for x in share]
    unseen = [1 - inclusion[i] for i in rows]

    def parts(values):
        mean = sum(w * v for w, v in zip(share, values))
        raw = [w * (v - mean) for w, v in zip(share, values)]
        middle = sum(u * r for u, r in zip(unseen, raw)) / sum(unseen)
        return [u**0.5 * (r - middle) for u, r in zip(unseen, raw)]

    of_true, of_proxy = parts(true), parts(of_checked)
    slope = sum(a * b for a, b in zip(of_true, of_proxy)) / sum(b * b for b in of_proxy)
    power = min(max(slope, 0.0), 1.0)
    rest = sum(w * (a - power * b) for w, a, b in zip(share, true, of_checked))
    center, sums = power * of_all.mean() + rest, {}
    for a, b, g in zip(of_true, of_proxy, groups):
        sums[g] = sums.get(g, 0.0) + a - power * b
    degrees = len(sums) - 1 - (power not in (0.0, 1.0))
    square = sum(x * x for x in sums.values()) * len(sums) / degrees
    square = max(square, of_draw(of_all, variance, power, inclusion))
    half = t.ppf(0.975, degrees) * square**0.5
    return slope, [center - half, center + half]


@pytest.mark.slow
@pytest.mark.parametrize(("kind", "slopes"), [("good", (0, 1)), ("blurred", (1, 5))])
@pytest.mark.parametrize("n_groups", [None, 60, 3])
def test_by_hand_where_chances_differ_and_groups_were_drawn(kind, slopes, n_groups):
    y, proxy, proba, rng = sample(500, wrong=0.4)
    given = 0.25 * np.eye(3)[y] + 0.25 if kind == "blurred" else proxy
    inclusion = rng.uniform(0.05, 0.6, 500)
    rows = np.flatnonzero(rng.uniform(size=500) < inclusion)
    groups = np.arange(500) if n_groups is None else rng.integers(0, n_groups, 500)
    weight, of_group = 1 / inclusion[rows], groups[rows]
    n_effective = min(weight.sum() ** 2 / (weight**2).sum(), len(np.unique(of_group)))
    weight *= n_effective / weight.sum()
    of_losses = expected(given, proba, rows, y[rows], "brier", weight, of_group)
    true = losses(y, proba, "brier")[rows]
    slope, ends = by_hand(true, *of_losses, rows, inclusion, of_group)
    assert n_groups == 3 or slopes[0] < slope < slopes[1]
    found = prediction_powered_interval(
        y[rows],
        proba,
        given,
        checked=rows,
        metric="brier",
        inclusion_proba=inclusion,
        groups=None if n_groups is None else groups,
        labels=[0, 1, 2],
    )
    np.testing.assert_allclose(found, np.clip(ends, 0, 2), atol=(0.001, 0.01)[n_groups == 3])


def test_without_an_error_as_many_groups_as_were_checked_are_known():
    y = np.arange(400) % 3
    rows, groups = np.arange(0, 400, 4), np.arange(400) // 20
    found = prediction_powered_interval(
        y[rows], 0.7 * np.eye(3)[y] + 0.1, y, checked=rows, groups=groups
    )
    # Clopper and Pearson's limit of 20 right ones of 20.
    np.testing.assert_allclose(found, [0.025 ** (1 / 20), 1.0])


def test_two_groups_are_enough_and_one_is_not():
    y, proxy, proba, _ = sample(400)
    rows, halves = np.arange(0, 400, 4), np.arange(400) // 200
    low, high = prediction_powered_interval(y[rows], proba, proxy, checked=rows, groups=halves)
    assert low < high
    with pytest.raises(
        ValueError, match=r"^groups must have at least two groups with checked samples"
    ):
        prediction_powered_interval(y[rows], proba, proxy, checked=rows, groups=np.zeros(400))


@pytest.mark.slow
@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize(
    "kind",
    [
        "good",
        pytest.param("useless", marks=pytest.mark.long),
        pytest.param("inverted", marks=pytest.mark.long),
    ],
)
def test_it_holds_whatever_the_proxy_labels_are(metric, kind):
    held, widths, alone = 0, [], []
    for seed in range(30):
        y, proxy, proba, rng = sample(2000, wrong=0.1 if kind == "good" else 1.0, seed=seed)
        if kind == "inverted":
            top = proba.argmax(axis=1)
            proxy = np.where(top == y, (top + rng.integers(1, 3, 2000)) % 3, top)
        checked = rng.choice(2000, 150, replace=False)
        truth = losses(y, proba, metric)
        low, high = prediction_powered_interval(
            y[checked], proba, proxy, checked=checked, metric=metric
        )
        held += low <= truth.mean() <= high
        widths.append(high - low)
        alone.append(student(truth[checked], 2000))
    assert held >= 25  # 24 of 30 have a probability of .003 at 95 %
    assert np.mean(widths) <= (0.85 if kind == "good" else 1.05) * np.mean(alone)


@pytest.mark.slow
def test_a_draw_by_design_holds_and_is_narrower():
    held, by_design, uniform = 0, [], []
    for seed in range(60):
        y, proxy, proba, rng = sample(2000, wrong=0.15, seed=seed)
        # Proxy labels that the model finds unlikely are checked more often.
        doubt = 1 - proba[np.arange(2000), proxy]
        chance = 150 * (0.7 * doubt / doubt.sum() + 0.3 / 2000)
        ends, start = np.cumsum(chance), rng.uniform()
        checked = np.searchsorted(ends, start + np.arange(150))
        checked = np.unique(checked[checked < 2000])
        low, high = prediction_powered_interval(
            y[checked], proba, proxy, checked=checked, inclusion_proba=chance
        )
        held += low <= losses(y, proba, "accuracy").mean() <= high
        by_design.append(high - low)
        checked = rng.choice(2000, 150, replace=False)
        uniform.append(
            np.diff(prediction_powered_interval(y[checked], proba, proxy, checked=checked))
        )
    assert held >= 53
    assert np.mean(by_design) < 0.97 * np.mean(uniform)


@pytest.mark.slow
def test_groups_that_were_drawn_together():
    held = dict.fromkeys(("groups", "none"), 0)
    for seed in range(60):
        y, proxy, proba, rng = sample(1500, wrong=0.0, seed=seed)
        patient = np.arange(1500) // 10
        odd = rng.uniform(size=150) < 0.4  # of some, most proxy labels are wrong
        wrong = odd[patient] & (rng.uniform(size=1500) < 0.7)
        proxy = np.where(wrong, (y + 1) % 3, y)
        checked = np.flatnonzero(np.isin(patient, rng.choice(150, 30, replace=False)))
        truth = accuracy_score(y, proba.argmax(axis=1))
        for name, groups in (("groups", patient), ("none", None)):
            low, high = prediction_powered_interval(
                y[checked], proba, proxy, checked=checked, groups=groups
            )
            held[name] += low <= truth <= high
    assert held["groups"] >= 53
    assert held["groups"] > held["none"]


@pytest.mark.parametrize("metric", METRICS)
def test_all_checked_is_the_mean(metric):
    y, proxy, proba, rng = sample(300, wrong=0.5)
    order = rng.permutation(300)
    for inclusion in (None, np.ones(300)):
        found = prediction_powered_interval(
            y[order], proba, proxy, checked=order, metric=metric, inclusion_proba=inclusion
        )
        np.testing.assert_allclose(found, losses(y, proba, metric).mean(), atol=1e-12)
    assert log_loss(y, proba) == pytest.approx(losses(y, proba, "log_loss").mean())


def test_few_errors_have_the_limits_of_clopper_and_pearson():
    rng = np.random.default_rng(0)
    y = np.zeros(2000, dtype=int)
    y[:10] = 1
    proba = np.tile([0.9, 0.1], (2000, 1))
    checked = np.r_[0:2, 100:248]
    proxy = rng.integers(0, 2, 2000)
    low, high = prediction_powered_interval(y[checked], proba, proxy, checked=checked)
    assert high == pytest.approx(beta.isf(0.025, 149, 2))
    assert low == pytest.approx(beta.ppf(0.025, 148, 3))
    found = prediction_powered_interval(
        y[checked], proba, proxy, checked=checked, metric="overconfidence"
    )
    np.testing.assert_allclose(found, [0.9 - high, 0.9 - low])


@pytest.mark.parametrize("metric", METRICS)
def test_labels_of_any_kind_and_fractions(metric):
    y, proxy, proba, rng = sample(500, wrong=0.4)
    checked = rng.choice(500, 100, replace=False)
    options = {"metric": metric}
    expected = prediction_powered_interval(y[checked], proba, proxy, checked=checked, **options)
    names = np.array(["ant", "bee", "cat"])
    for a, b in ((names[proxy], names[y]), (np.eye(3)[proxy], np.eye(3)[y])):
        found = prediction_powered_interval(b[checked], proba, a, checked=checked, **options)
        np.testing.assert_allclose(found, expected, atol=1e-9)
    order = [2, 0, 1]
    found = prediction_powered_interval(
        names[y][checked],
        proba[:, order],
        names[proxy],
        checked=checked,
        labels=names[order],
        **options,
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


@pytest.mark.parametrize("metric", ["accuracy", "brier", "log_loss"])
def test_two_classes_in_either_form(metric):
    y, proxy, proba, rng = sample(500, wrong=0.4, n_classes=2)
    checked = rng.choice(500, 100, replace=False)
    expected = prediction_powered_interval(
        y[checked], proba, proxy, checked=checked, metric=metric
    )
    found = prediction_powered_interval(
        y[checked], proba[:, 1], proxy, checked=checked, metric=metric
    )
    np.testing.assert_allclose(found, expected, atol=1e-9)


def test_overconfidence_of_the_positive_class():
    y, proxy, proba, rng = sample(500, wrong=0.4, n_classes=2)
    checked = rng.choice(500, 200, replace=False)
    low, high = prediction_powered_interval(
        y[checked], proba[:, 0], proxy, checked=checked, metric="overconfidence", labels=[0, 1],
        pos_label=0,
    )  # fmt: skip
    assert low < (proba[:, 0] - (y == 0)).mean() < high
    assert high - low < 0.2


def test_checks_that_are_no_draw_bring_a_warning():
    y, proxy, proba, _ = sample(2000, wrong=0.2)
    doubted = np.flatnonzero(proxy != proba.argmax(axis=1))[:100]
    with pytest.warns(SkcalibWarning, match="^checked must be a random draw"):
        prediction_powered_interval(y[doubted], proba, proxy, checked=doubted)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (
            {"checked": [1, 1]},
            "^checked must hold distinct positions from 0 to 49, got 1 distinct",
        ),
        ({"checked": [1, 50]}, r"^checked must hold distinct positions .* from 1 to 50"),
        ({"checked": [0.5, 1]}, "^checked must hold two positions or more, integers"),
        ({"checked": [3], "y_true": [0]}, "^checked must hold two positions or more"),
        ({"y_true": [0]}, "^y_true and checked must have the same number of rows"),
        ({"y_true": [0, 7]}, r"^y_true must hold labels among \[0, 1, 2\], got 7"),
        ({"y_proxy": np.full(50, 9)}, "labels must name the columns"),
        (
            {"inclusion_proba": np.zeros(50)},
            r"^inclusion_proba must hold probabilities in \(0, 1\]",
        ),
        (
            {"inclusion_proba": np.ones(5)},
            "^inclusion_proba must have an entry for every sample, 50, got 5",
        ),
        (
            {"groups": np.zeros(50)},
            "^groups must have at least two groups with checked samples, got one",
        ),
        ({"metric": "recall"}, r"^metric must be one of \['accuracy', .*, got 'recall'"),
        ({"confidence_level": 1.0}, "'confidence_level' parameter"),
    ],
)
def test_bad_input(change, message):
    y, proxy, proba, _ = sample(50)
    given = {"y_true": y[[1, 2]], "y_proba": proba, "y_proxy": proxy, "checked": [1, 2]}
    with pytest.raises(ValueError, match=message):
        prediction_powered_interval(**(given | change))


def test_the_interval_of_the_brier_score_ends_at_2():
    # Sure of the first of two classes, and wrong wherever somebody looked, but once.
    y_proba = np.tile([1.0, 0.0], (400, 1))
    checked = np.arange(0, 400, 8)
    y_checked = np.where(checked == 0, 0, 1)
    low, high = prediction_powered_interval(
        y_checked, y_proba, np.ones(400, int), checked=checked, metric="brier", labels=[0, 1]
    )
    assert 1.7 < low < high == 2
