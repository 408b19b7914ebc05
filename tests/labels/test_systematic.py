import numpy as np
import pytest
from scipy.special import softmax
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA

from skcalib.labels import LabelIssueFinder
from skcalib.labels._noise_model import fit_noise_model
from skcalib.labels._systematic import SystematicFlips

N_CLASSES = 6


def _simulate(confusion, *, n_samples=1500, temperature=2.0, prior=None, seed=0):
    """Distances of which the scorer believes what is true, and labels by a matrix P(label | k)."""
    rng = np.random.default_rng(seed)
    distances = rng.gamma(1.0, 30.0, (n_samples, N_CLASSES))
    if prior is not None:
        # More samples of the frequent classes, in the same places.
        q = softmax(-distances / (2 * temperature) + np.log(prior), axis=1)
    else:
        q = softmax(-distances / (2 * temperature), axis=1)
    true = (q.cumsum(axis=1) > rng.random((n_samples, 1))).argmax(axis=1)
    cumulated = np.asarray(confusion)[true].cumsum(axis=1)
    given = (cumulated > rng.random((n_samples, 1))).argmax(axis=1)
    return distances, true, given


def _fit(distances, given, weight=None, verified=None):
    weight = np.ones(len(given)) if weight is None else weight
    verified = np.zeros(len(given), dtype=bool) if verified is None else verified
    return fit_noise_model(distances, given, weight, verified, mixed=True)


def _two_pairs():
    confusion = np.eye(N_CLASSES)
    confusion[1, [1, 3]] = 0.65, 0.35
    confusion[4, [4, 0]] = 0.75, 0.25
    return confusion


def test_pairs_and_their_rates_are_found_again():
    flips = _fit(*_simulate(_two_pairs(), n_samples=4000)[::2]).flips
    assert list(zip(flips.true, flips.given)) == [(1, 3), (4, 0)]
    np.testing.assert_allclose(flips.rate, [0.35, 0.25], atol=0.05)
    np.testing.assert_allclose(flips.lost, [0, flips.rate[0], 0, 0, flips.rate[1], 0])


def test_expected_number_is_that_of_the_flipped_labels():
    distances, true, given = _simulate(_two_pairs(), n_samples=4000)
    flips = _fit(distances, given).flips
    flipped = [((true == k) & (given == y)).sum() for k, y in zip(flips.true, flips.given)]
    np.testing.assert_allclose(flips.n_flipped, flipped, rtol=0.2)


@pytest.mark.parametrize("noise", [0.0, 0.1, 0.3])
@pytest.mark.parametrize("seed", range(3))
def test_labels_right_or_flipped_at_random_have_no_pairs(noise, seed):
    confusion = np.full((N_CLASSES, N_CLASSES), noise / (N_CLASSES - 1))
    np.fill_diagonal(confusion, 1 - noise)
    assert _fit(*_simulate(confusion, seed=seed)[::2]).flips is None


@pytest.mark.parametrize("seed", range(3))
def test_classes_of_different_sizes_are_no_flips(seed):
    prior = np.array([1.0, 1.0, 3.0, 5.0, 0.5, 10.0])
    distances, _, given = _simulate(np.eye(N_CLASSES), prior=prior, n_samples=3000, seed=seed)
    assert _fit(distances, given).flips is None


def test_weight_is_repetition():
    distances, _, given = _simulate(_two_pairs())
    weight = np.random.default_rng(0).integers(0, 3, len(given))
    rows = np.repeat(np.arange(len(given)), weight)
    weighted = _fit(distances, given, weight=weight.astype(float)).flips
    repeated = _fit(distances[rows], given[rows]).flips
    np.testing.assert_array_equal(weighted.true, repeated.true)
    np.testing.assert_allclose(weighted.rate, repeated.rate, atol=1e-4)
    np.testing.assert_allclose(weighted.n_flipped, repeated.n_flipped, rtol=1e-3)


def test_verified_samples_are_no_flips():
    distances, true, given = _simulate(_two_pairs())
    # Somebody has looked at all samples that bear the label 3, and all are right.
    labels = np.where(given == 3, true, given)
    flips = _fit(distances, labels, verified=given == 3).flips
    assert list(zip(flips.true, flips.given)) == [(4, 0)]


@pytest.mark.parametrize("seed", range(3))
def test_classes_of_less_than_ten_samples_have_no_pairs(seed):
    distances, _, given = _simulate(_two_pairs(), temperature=0.1, n_samples=300, seed=seed)
    assert _fit(distances, given).flips is not None
    rows = np.concatenate([np.flatnonzero(given == k)[:9] for k in range(N_CLASSES)])
    assert _fit(distances[rows], given[rows]).flips is None


def test_rates_of_a_class_leave_some_labels_right():
    flips = SystematicFlips(np.array([0, 0]), np.array([1, 2]), np.array([0.8, 0.4]), 3)
    np.testing.assert_allclose(flips.rate, [0.4, 0.2])
    sample, column, change = flips.changes(np.array([1, 0, 2, 1]))
    dense = np.zeros((4, 3))
    dense[sample, column] = change
    np.testing.assert_allclose(dense, [[0.4, 0, 0], [-0.6, 0, 0], [0.2, 0, 0], [0.4, 0, 0]])


def test_confused_digits_are_found():
    X, y = load_digits(return_X_y=True)
    X = PCA(30, random_state=0).fit_transform(X)
    rng = np.random.default_rng(0)
    given = y.copy()
    for a, b in ((7, 8), (6, 4)):
        rows = np.flatnonzero(y == a)
        given[rng.choice(rows, round(0.4 * len(rows)), replace=False)] = b
    wrong = given != y
    finder = LabelIssueFinder().fit(X, given)
    issue = finder.issues_["is_issue"]
    assert (issue & wrong).sum() > 0.9 * max(issue.sum(), wrong.sum())
    table = finder.systematic_flips_
    assert {(row["true_label"], row["label"]) for row in table} == {(7, 8), (6, 4)}
    np.testing.assert_allclose(table["rate"], 0.4, atol=0.05)
    assert (np.diff(table["rate"]) <= 0).all()
    low, high = finder.noise_rate_interval_
    assert low < wrong.mean() < high
    assert finder.systematic_rate_ == pytest.approx(wrong.mean(), abs=0.01)
    parts = finder.random_rate_ + finder.near_rate_ + finder.systematic_rate_
    assert parts == pytest.approx(finder.noise_rate_)
    random = LabelIssueFinder(noise="random").fit(X, given)
    assert random.systematic_rate_ == 0
    assert len(random.systematic_flips_) == 0
