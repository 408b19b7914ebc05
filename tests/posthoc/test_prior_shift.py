"""Prior shift: Bayes' rule in closed form, priors recovered from simulated samples."""

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from scipy.special import expit, softmax
from scipy.stats import binomtest
from sklearn.exceptions import ConvergenceWarning
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss

from skcalib.posthoc import PostHocCalibratedClassifier, PriorShift
from skcalib.posthoc._prior_shift import Estimated, compute_priors_interval
from skcalib.utils import SkcalibWarning

# Estimates from few samples; the warning has a test of its own.
pytestmark = pytest.mark.filterwarnings("ignore:The frequencies of")

CENTERS = np.array([[0.0, 0.0], [1.5, 0.0], [0.0, 2.0]])


def draw(n, priors, seed=0):
    """Samples of three Gaussian classes of unit variance, and their labels."""
    rng = np.random.default_rng(seed)
    y = rng.choice(3, n, p=priors)
    return CENTERS[y] + rng.normal(size=(n, 2)), y


def posterior(X, priors):
    """The true probabilities under these priors, by Bayes' rule on the densities."""
    squares = ((X[:, None, :] - CENTERS) ** 2).sum(axis=2)
    joint = np.exp(-squares / 2) * priors
    return joint / joint.sum(axis=1, keepdims=True)


TRAINING, NEW = np.array([0.2, 0.3, 0.5]), np.array([0.7, 0.25, 0.05])


@pytest.mark.parametrize("form", ["logits", "proba"])
def test_known_priors_give_the_true_posterior(form):
    X, _ = draw(200, NEW)
    scores = posterior(X, TRAINING)
    if form == "logits":
        scores = np.log(scores) + 7
    shift = PriorShift(NEW, training_priors=TRAINING, input=form).fit(scores)
    np.testing.assert_allclose(shift.predict_proba(scores), posterior(X, NEW), rtol=1e-9)
    np.testing.assert_array_equal(shift.priors_, NEW)


def test_labels_of_the_new_population_tell_the_priors():
    X, y = draw(500, NEW)
    scores, weight = posterior(X, TRAINING), np.random.default_rng(1).uniform(size=500)
    shift = PriorShift(training_priors=TRAINING, input="proba").fit(scores, y, weight)
    frequency = [weight[y == label].sum() / weight.sum() for label in range(3)]
    np.testing.assert_allclose(shift.priors_, frequency)
    np.testing.assert_allclose(shift.predict_proba(scores), posterior(X, frequency), rtol=1e-9)


@pytest.mark.slow
def test_priors_are_recovered_from_unlabeled_samples():
    estimates = []
    for seed in range(10):
        X, _ = draw(4000, NEW, seed)
        before, _ = draw(4000, TRAINING, 100 + seed)
        shift = PriorShift(training_scores=posterior(before, TRAINING), input="proba")
        estimates.append(shift.fit(posterior(X, TRAINING)).priors_)
    error = np.std(estimates, axis=0, ddof=1) / np.sqrt(10)
    assert np.all(np.abs(np.mean(estimates, axis=0) - NEW) < 4 * error)
    assert error.max() < 0.008


def test_only_ratios_of_weights_matter():
    X, _ = draw(60, np.array([0.4, 0.3, 0.3]), seed=3)
    proba = posterior(X, TRAINING)
    shift = PriorShift(training_priors=TRAINING, input="proba")
    plain = shift.fit(proba)
    trust, priors = plain.trust_, plain.priors_
    scaled = shift.fit(proba, sample_weight=np.full(60, 100.0))
    assert 0 < trust < 1
    assert scaled.trust_ == pytest.approx(trust)
    np.testing.assert_allclose(scaled.priors_, priors, rtol=1e-6)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("strength", [0, 5])
def test_the_estimate_is_the_most_likely(weighted, strength):
    X, _ = draw(300, NEW)
    proba = posterior(X, TRAINING)
    weight = np.random.default_rng(0).uniform(0.5, 2, 300) if weighted else None
    if weighted:
        weight /= weight.mean()  # only ratios matter: samples of mean weight count as one
    shift = PriorShift(training_priors=TRAINING, input="proba", prior_strength=strength, tol=1e-12)
    shift.fit(proba, sample_weight=weight)

    def loss(theta):
        priors = softmax(np.append(theta, 0))
        likelihood = np.log(proba @ (priors / TRAINING))
        # The Dirichlet prior of 5 pseudo-samples a class, at the training frequencies.
        pseudo = strength * 3 * TRAINING @ np.log(priors)
        return -(likelihood.sum() if weight is None else weight @ likelihood) - pseudo

    best = minimize(loss, np.zeros(2), method="BFGS", options={"gtol": 1e-9})
    # Drawn back to the training priors as far as it is not trusted.
    expected = TRAINING * (softmax(np.append(best.x, 0)) / TRAINING) ** shift.trust_
    assert 0.8 < shift.trust_ <= 1
    np.testing.assert_allclose(shift.priors_, expected / expected.sum(), atol=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize("n", [50, 1000])
@pytest.mark.parametrize("sharpness", [1.0, 2.0])
def test_without_a_shift_there_is_no_harm(n, sharpness):
    # An overconfident model, whose mean probabilities are not the class frequencies.
    def sharpened(X):
        proba = posterior(X, TRAINING) ** sharpness
        return proba / proba.sum(axis=1, keepdims=True)

    harms = []
    for seed in range(10):
        X, y = draw(3000 + n, TRAINING, seed)
        proba = sharpened(X)
        new, judged = proba[:n], proba[n:]
        for known in (
            {"training_priors": TRAINING},
            {"training_scores": sharpened(draw(1000, TRAINING, 50 + seed)[0])},
        ):
            shift = PriorShift(input="proba", **known).fit(new)
            harms.append(log_loss(y[n:], shift.predict_proba(judged)) - log_loss(y[n:], judged))
    assert np.mean(harms) < 0.01
    assert max(harms) < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("form", ["logits", "proba"])
def test_classes_that_look_different_are_noticed_and_other_frequencies_are_not(form):
    def scores(spread, priors, seed):
        rng = np.random.default_rng(seed)
        X = CENTERS[rng.choice(3, 500, p=priors)] + spread * rng.normal(size=(500, 2))
        proba = posterior(X, TRAINING)
        return proba if form == "proba" else np.log(proba)

    # All frequencies of the same classes are silent: a warning is an error here.
    for seed, priors in enumerate([TRAINING, NEW, [0.0, 0.5, 0.5], [0.0, 0.0, 1.0]] * 5):
        before = scores(1.0, TRAINING, 100 + seed)
        PriorShift(training_scores=before, input=form).fit(scores(1.0, priors, seed))
    shift = PriorShift(training_scores=scores(1.0, TRAINING, 0), input=form)
    new = scores(1.0, TRAINING, 1)
    sure = (softmax(new, axis=1) if form == "logits" else new).max(axis=1)
    for word, other in (("more", scores(2.5, TRAINING, 1)), ("less", new[np.argsort(sure)[:100]])):
        with pytest.warns(SkcalibWarning, match=f"The model is {word} confident on X than"):
            shift.fit(other)
    # With known priors, nothing is estimated that could be wrong.
    shift.set_params(priors=NEW).fit(other)


def test_training_scores_stand_for_their_mean():
    before = posterior(draw(500, TRAINING, 1)[0], TRAINING)
    new = posterior(draw(500, NEW)[0], TRAINING)
    shift = PriorShift(training_scores=before, input="proba").fit(new)
    np.testing.assert_allclose(shift.training_priors_, before.mean(axis=0))
    mean = new.mean(axis=0)
    distance = np.sum((mean - before.mean(axis=0)) ** 2 / before.mean(axis=0))
    chance = np.sum((new.var(axis=0) + before.var(axis=0)) / 500 / before.mean(axis=0))
    assert shift.trust_ == pytest.approx(1 - chance / distance)
    with pytest.raises(ValueError, match=r"^training_scores must .*, got"):
        PriorShift(training_scores=before + 1, input="proba").fit(new)
    with pytest.raises(ValueError, match=r"^training_priors must be None if training_scores"):
        PriorShift(training_priors=NEW, training_scores=before, input="proba").fit(new)


@pytest.mark.parametrize(("shifted", "trusted"), [(0.25, False), (0.5, True), (1.0, True)])
def test_a_shift_within_the_error_of_a_model_is_not_trusted(shifted, trusted):
    """Of label frequencies: a squared distance of .03 may be the model's own error."""
    priors = (1 - shifted) * TRAINING + shifted * NEW
    new = posterior(draw(20_000, priors)[0], TRAINING)
    shift = PriorShift(training_priors=TRAINING, input="proba").fit(new)
    distance = np.sum((new.mean(axis=0) - TRAINING) ** 2 / TRAINING)
    chance = np.sum(new.var(axis=0) / TRAINING) / 20_000
    assert distance > 20 * chance
    assert trusted == (distance > 0.03 + chance)
    assert shift.trust_ == pytest.approx(max(0, 1 - (chance + 0.03) / distance))
    if not trusted:
        np.testing.assert_allclose(shift.priors_, TRAINING)


def test_samples_as_in_training_leave_the_priors_and_the_probabilities():
    X, _ = draw(20_000, TRAINING)
    proba = posterior(X, TRAINING)
    shift = PriorShift(training_priors=TRAINING, input="proba").fit(proba)
    np.testing.assert_allclose(shift.priors_, TRAINING, atol=0.02)
    same = PriorShift(TRAINING, training_priors=TRAINING, input="proba").fit(proba)
    np.testing.assert_allclose(same.predict_proba(proba), proba, rtol=1e-9)


def test_there_and_back_is_where_it_was():
    X, _ = draw(100, TRAINING)
    proba = posterior(X, TRAINING)
    there = PriorShift(NEW, training_priors=TRAINING, input="proba").fit(proba)
    back = PriorShift(TRAINING, training_priors=NEW, input="proba")
    shifted = there.predict_proba(proba)
    np.testing.assert_allclose(back.fit(shifted).predict_proba(shifted), proba, rtol=1e-9)


def test_sampling_rate_of_the_negatives_in_closed_form():
    p, rate = np.linspace(0.01, 0.99, 50), 0.04
    shift = PriorShift(sampling_rate=rate, training_priors=[0.4, 0.6], input="proba").fit(p)
    # Dal Pozzolo et al., Eq. 4.
    expected = rate * p / (rate * p - p + 1)
    np.testing.assert_allclose(shift.predict_proba(p)[:, 1], expected, rtol=1e-9)
    # 40 negatives kept of 1000 stand beside 60 positives.
    np.testing.assert_allclose(shift.priors_, [1000 / 1060, 60 / 1060])


def test_a_model_of_undersampled_negatives_is_calibrated_again():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200_000, 1))
    y = rng.random(200_000) < expit(2 * x[:, 0] - 4)
    kept = y | (rng.random(200_000) < 0.1)
    model = LogisticRegression(C=1e6).fit(x[kept], y[kept])
    shift = PriorShift(sampling_rate=0.1).fit(model.decision_function(x[:100]))
    proba = shift.predict_proba(model.decision_function(x))[:, 1]
    assert abs(proba - expit(2 * x[:, 0] - 4)).max() < 0.02
    rates = PriorShift(sampling_rate=[0.1, 1.0]).fit(model.decision_function(x[:100]))
    np.testing.assert_array_equal(rates.predict_proba(model.decision_function(x))[:, 1], proba)


def test_inside_a_calibrated_classifier():
    X, y = draw(1000, TRAINING)
    model = PostHocCalibratedClassifier(
        LogisticRegression(), PriorShift(NEW, training_priors=TRAINING)
    ).fit(X, y)
    proba = model.predict_proba(X)
    plain = model.estimator_.predict_proba(X) * NEW / TRAINING
    np.testing.assert_allclose(proba, plain / plain.sum(axis=1, keepdims=True), rtol=1e-9)


def test_training_priors_are_needed_where_they_are():
    with pytest.raises(ValueError, match="training_priors must be given: the class frequencies"):
        PriorShift(NEW).fit(np.eye(3) * 2)
    shift = PriorShift(training_priors=TRAINING).fit(np.eye(3) * 2)
    # Not those of the fit before: the rates give the ratio of the priors alone.
    shift.set_params(training_priors=None, sampling_rate=[0.1, 0.5, 1.0]).fit(np.eye(3) * 2)
    assert not hasattr(shift, "priors_")
    assert not hasattr(shift, "training_priors_")
    np.testing.assert_allclose(shift.ratio_, [10, 2, 1])


@pytest.mark.slow
def test_without_a_shift_little_harm_and_with_one_a_gain():
    # Seven classes, the rarest 1 %, of which 50 unlabeled samples hold one every second time.
    frequency = np.array([0.42, 0.25, 0.14, 0.09, 0.06, 0.03, 0.01])
    shifted = np.array([0.05, 0.1, 0.15, 0.2, 0.2, 0.2, 0.1])
    centers = np.random.default_rng(0).normal(size=(7, 5))

    def sample(n, priors, rng):
        y = rng.choice(7, n, p=priors)
        X = centers[y] + rng.normal(size=(n, 5))
        joint = np.exp(-((X[:, None] - centers) ** 2).sum(axis=2) / 2) * frequency
        return joint / joint.sum(axis=1, keepdims=True), y

    def loss(proba, y):
        return -np.log(proba[np.arange(len(y)), y]).mean()

    def change(priors, strength, seed):
        rng = np.random.default_rng(seed)
        unlabeled, _ = sample(50, priors, rng)
        proba, y = sample(4000, priors, rng)
        shift = PriorShift(training_priors=frequency, input="proba", prior_strength=strength)
        return loss(shift.fit(unlabeled).predict_proba(proba), y) - loss(proba, y)

    plain, same, moved = (
        np.mean([change(priors, strength, seed) for seed in range(10)])
        for priors, strength in ((frequency, 0), (frequency, 5), (shifted, 5))
    )
    assert plain > 0.5
    assert same < 0.03
    assert moved < -0.15


def test_names_of_classes_without_labels():
    shift = PriorShift([0.1, 0.9], training_priors="uniform", classes=["no", "yes"]).fit(
        [0.0, 1.0]
    )
    assert shift.predict([0.0])[0] == "yes"
    with pytest.raises(ValueError, match="classes must hold 2 distinct classes"):
        PriorShift([0.1, 0.9], training_priors="uniform", classes=["no", "no"]).fit([0.0, 1.0])


def test_a_prior_of_zero_rules_a_class_out():
    shift = PriorShift([0.0, 0.5, 0.5], training_priors="uniform", input="proba").fit(np.eye(3))
    np.testing.assert_allclose(shift.training_priors_, 1 / 3)
    rounded = PriorShift(training_priors=[0.333, 0.333, 0.333], input="proba").fit(np.eye(3))
    np.testing.assert_allclose(rounded.training_priors_, 1 / 3)
    proba = shift.predict_proba([[0.8, 0.1, 0.1], [1.0, 0.0, 0.0]])
    np.testing.assert_allclose(proba[0], [0, 0.5, 0.5], atol=1e-10)
    assert np.isfinite(proba).all()


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"priors": [0.5, 0.5]}, r"priors must hold 3 frequencies of 0 or more that sum to 1"),
        ({"priors": [0.5, 0.5, 0.5]}, "priors must hold 3 frequencies"),
        ({"priors": [1.5, -0.5, 0]}, "priors must hold 3 frequencies"),
        ({"priors": [np.nan, 0.5, 0.5]}, "priors must hold 3 frequencies"),
        ({"training_priors": [1, 0, 0]}, "training_priors must hold 3 frequencies above 0"),
        ({"training_priors": "balanced"}, "'training_priors' parameter"),
        ({"sampling_rate": 0.1}, r"sampling_rate must hold 3 fractions in \(0, 1\]"),
        ({"sampling_rate": [0.1, 1, 2]}, "sampling_rate must hold 3 fractions"),
        ({"sampling_rate": 0.0}, "'sampling_rate' parameter"),
        ({"sampling_rate": [1, 1, 1], "priors": NEW}, "priors must be None if sampling_rate"),
    ],
)
def test_bad_parameters_are_named(params, message):
    with pytest.raises(ValueError, match=message):
        PriorShift(**{"training_priors": "uniform", **params}).fit(np.eye(3) * 2)


def test_stopping_early_is_a_warning():
    X, _ = draw(300, NEW)
    shift = PriorShift(training_priors=TRAINING, input="proba", max_iter=2)
    with pytest.warns(ConvergenceWarning, match="max_iter=2 iterations") as caught:
        assert shift.fit(posterior(X, TRAINING)).n_iter_ == 2
    assert caught[0].filename == __file__


def test_a_series_is_read_by_its_index():
    X, y = draw(300, NEW)
    names = pd.Series(np.array(["b", "c", "a"])[y])
    # value_counts has the most frequent class first.
    frequency = names.value_counts(normalize=True)
    assert frequency.index[0] == "b"
    given = {"training_priors": "uniform", "input": "proba", "classes": ["b", "c", "a"]}
    shift = PriorShift(frequency, **given).fit(posterior(X, TRAINING))
    np.testing.assert_allclose(shift.priors_, np.bincount(y) / 300)
    shift = PriorShift(frequency.set_axis(range(3)), **given)
    np.testing.assert_allclose(shift.fit(posterior(X, TRAINING)).priors_, frequency)


@pytest.mark.parametrize(
    ("priors", "message"),
    [
        (["a", "b", "c"], "priors must hold real numbers"),
        ({0: 0.2, 1: 0.3, 2: 0.5}, "priors must be an array or a Series, .* got a dict"),
        (pd.Series([0.2, 0.3, 0.5], index=[1, 2, 3]), "priors must have the classes as its index"),
    ],
)
def test_priors_that_cannot_be_read_are_named(priors, message):
    X, _ = draw(20, NEW)
    with pytest.raises((TypeError, ValueError), match=message):
        PriorShift(priors, training_priors="uniform", input="proba").fit(posterior(X, TRAINING))


def two_classes(n, frequency, rng):
    """Exact scores of a model of balanced classes."""
    y = rng.random(n) < frequency
    return 2 * (rng.normal(size=n) + 2 * y) - 2


@pytest.mark.slow
@pytest.mark.parametrize(("frequency", "n"), [(0.02, 1000), (0.3, 200)])
def test_intervals_of_estimated_priors_hold_the_truth(frequency, n):
    rng = np.random.default_rng(3)
    held, estimates = 0, []
    for _ in range(60):
        before, new = two_classes(1000, 0.5, rng), two_classes(n, frequency, rng)
        shift = PriorShift(training_scores=before, tol=1e-6).fit(new)
        (low, _), (high, _) = shift.priors_interval_.T[:, ::-1]
        assert low <= shift.priors_[1] <= high
        held += low <= frequency <= high
        estimates.append(shift.priors_[1])
    assert held >= 51  # 57 are expected; fewer than 51 have a probability of .01
    assert np.mean(estimates) < (0.03 if frequency == 0.02 else 0.33)


@pytest.mark.slow
def test_intervals_hold_where_rates_rise_and_the_training_frequency_is_a_mean():
    rng = np.random.default_rng(9)

    def draw(frequency, n):
        y = rng.random(n) < frequency
        return 1.8 * (rng.normal(size=n) + 1.8 * y) - 1.62 + np.log(0.02 / 0.98)

    held = 0
    for _ in range(60):
        before, new = draw(0.02, 2000), draw(0.05, 1000)
        low, high = PriorShift(training_scores=before, tol=1e-6).fit(new).priors_interval_[1]
        held += low <= 0.05 <= high
    # 57 are expected; without the standard error of the training frequency, 54
    assert held >= 57


@pytest.mark.slow
def test_the_interval_follows_the_likelihood_where_scores_are_known_exactly():
    """A grid over the frequency of two classes, beside the profile along a path."""
    rng = np.random.default_rng(0)
    new = two_classes(800, 0.1, rng)
    proba = expit(new)
    pseudo, training = np.array([0.5, 0.5]), np.array([0.5, 0.5])
    grid = np.linspace(1e-4, 0.5, 20_000)
    likelihood = sum(
        np.log(p * grid / 0.5 + (1 - p) * (1 - grid) / 0.5) for p in proba
    ) + 0.5 * np.log(grid * (1 - grid))
    inside = grid[likelihood > likelihood.max() - 3.841459 / 2]
    best = grid[likelihood.argmax()]
    columns = np.column_stack([1 - proba, proba])
    exact = Estimated(columns, np.ones(800), np.array([1 - best, best]), training, pseudo, None)
    low, high = compute_priors_interval(exact, error_of_frequencies=0.0)[1]
    assert [low, high] == pytest.approx([inside[0], inside[-1]], abs=1e-4)


def test_priors_that_are_known_and_those_of_labels_have_intervals_too():
    X, y = draw(500, NEW)
    scores = posterior(X, TRAINING)
    known = PriorShift(NEW, training_priors=TRAINING, input="proba").fit(scores)
    np.testing.assert_allclose(known.priors_interval_, np.column_stack([NEW, NEW]))
    counted = PriorShift(training_priors=TRAINING, input="proba").fit(scores, y)
    of_second = binomtest(int((y == 1).sum()), 500).proportion_ci(0.95, "exact")
    assert counted.priors_interval_[1] == pytest.approx([of_second.low, of_second.high])


@pytest.mark.filterwarnings("error:The frequencies of")
def test_a_prior_that_is_uncertain_by_a_factor_of_two_is_a_warning():
    rng = np.random.default_rng(1)
    before = two_classes(1000, 0.5, rng)
    PriorShift(training_scores=before).fit(two_classes(5000, 0.3, rng))
    with pytest.warns(SkcalibWarning, match="1 of 2 classes .* class 1 may be .* 100 random"):
        PriorShift(training_scores=before).fit(two_classes(300, 0.02, rng))
