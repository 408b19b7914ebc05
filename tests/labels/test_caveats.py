import re
import warnings

import numpy as np
import pytest
from scipy.special import expit
from sklearn.base import clone
from sklearn.datasets import (
    load_digits,
    make_blobs,
    make_classification,
    make_gaussian_quantiles,
    make_moons,
)
from sklearn.decomposition import PCA
from sklearn.ensemble import RandomForestClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.datasets import flip_labels
from skcalib.difficulty import RMDScorer
from skcalib.labels import LabelIssueFinder
from skcalib.labels import _em as em
from skcalib.labels._base_models import OutOfFold
from skcalib.labels._em import diagnose_leakage
from skcalib.utils import SkcalibWarning
from skcalib.utils._numeric import compute_binomial_interval


def _probabilities(n, scale, seed, n_classes=3):
    """Calibrated probabilities, and labels that follow them."""
    rng = np.random.default_rng(seed)
    scores = scale * rng.normal(size=(n, n_classes))
    proba = np.exp(scores - scores.max(axis=1, keepdims=True))
    proba /= proba.sum(axis=1, keepdims=True)
    labels = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
    return proba, np.minimum(labels, n_classes - 1)


@pytest.mark.slow
def test_right_labels_of_calibrated_base_models_are_left_alone():
    for seed in range(5):
        proba, labels = _probabilities(400, 3.0, seed)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            finder = LabelIssueFinder("precomputed").fit(proba, labels)
        assert finder.issues_["is_issue"].mean() < 0.005
        assert finder.noise_rate_interval_[0] == 0
        assert not finder.caveats_


@pytest.mark.slow
def test_noise_has_to_earn_its_number():
    proba, labels = _probabilities(60, 3.0, 3)
    given, _ = flip_labels(labels, fraction=0.2, random_state=0)
    score = -2 * np.log(proba)

    def log_likelihood(weight, rate):
        q = np.exp(-0.5 * weight * score)
        q /= q.sum(axis=1, keepdims=True)
        q = (1 - rate) * q + rate / 2 * (1 - q)
        return np.log(q[np.arange(60), given]).sum()

    weights, rates = np.linspace(0.1, 3, 150), np.linspace(0, 0.5, 51)
    with_noise = max(log_likelihood(w, r) for w in weights for r in rates)
    without = max(log_likelihood(w, 0.0) for w in weights)
    expected = expit(with_noise - without - 1.0)
    finder = LabelIssueFinder("precomputed", noise="random")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkcalibWarning)
        p = finder.fit(proba, given).issues_["p_label_correct"]
    # Of a sample whose label cannot be right, this is what is left.
    assert p.min() == pytest.approx(1 - expected, abs=0.17)


@pytest.mark.slow
def test_weak_base_models_warn():
    proba, true = _probabilities(9000, 1.7, 0, n_classes=4)
    given, _ = flip_labels(true, fraction=0.3, random_state=0)
    finder = LabelIssueFinder("precomputed")
    with pytest.warns(SkcalibWarning, match="knows too little about the classes"):
        finder.fit(proba, given)
    assert not finder.is_trustworthy_
    assert len(finder.caveats_) == 1
    rows = finder.draw_samples_to_check(100, random_state=0)
    assert not clone(finder).set_params(threshold=0.5).fit(proba, true).caveats_
    assert finder.update_with_checks(rows, true[rows]).is_trustworthy_


@pytest.mark.slow
def test_confused_base_models_warn():
    rng = np.random.default_rng(0)
    scores = 2.0 * rng.normal(size=(4000, 4))
    mixed = scores.copy()
    # Where they predict class 1, half of the evidence is for class 2, and the reverse.
    mixed[:, 1], mixed[:, 2] = 1.5 * scores[:, 2] + scores[:, 1], 1.5 * scores[:, 1]
    q = np.exp(scores - scores.max(axis=1, keepdims=True))
    q /= q.sum(axis=1, keepdims=True)
    labels = np.minimum((q.cumsum(axis=1) < rng.random((4000, 1))).sum(axis=1), 3)
    p = np.exp(mixed - mixed.max(axis=1, keepdims=True))
    finder = LabelIssueFinder("precomputed")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkcalibWarning)
        finder.fit(p / p.sum(axis=1, keepdims=True), labels)
    assert "many issues may be right" in "".join(finder.caveats_)


def _state(base_models, codes, distances, verified):
    """The state of one base model, without fits."""
    classes, weight = np.arange(distances.shape[1]), np.ones(len(codes))
    state = em.EMState(codes, classes, weight, verified, base_models, mixed=True)
    state.distances = [distances, np.zeros((1, len(classes)))]
    return state


@pytest.mark.slow
def test_base_models_that_fit_the_classes_have_no_caveats():
    # Shells around one center: Gaussians of one variance a class and feature fit.
    X, y = make_gaussian_quantiles(n_samples=800, n_features=4, random_state=0)
    given, _ = flip_labels(y, fraction=0.2, random_state=0)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not LabelIssueFinder(GaussianNB()).fit(X, given).caveats_


@pytest.mark.slow
def test_class_dependent_noise_has_to_win_before_and_after_refits(monkeypatch):
    X, y = load_digits(return_X_y=True)
    X, given = X[:600], np.where((y == 3) & (np.arange(len(y)) % 2 == 0), 8, y)[:600]
    finder = LabelIssueFinder(RMDScorer(shrinkage="auto"), n_refits=1)
    off = ~np.eye(10, dtype=bool)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkcalibWarning)
        assert finder.fit(X, given).noise_matrix_[3, 8] > 0.1
        monkeypatch.setattr(em, "MIN_GAIN_Z", np.inf)
        matrix = finder.fit(X, given).noise_matrix_
    np.testing.assert_allclose(matrix[off], matrix[0, 1])


@pytest.mark.slow
def test_rates_that_nobody_can_exclude_are_in_the_interval():
    # Two classes that overlap: a fifth of the labels is wrong, and next to none is found.
    X, y = make_moons(300, noise=0.25, random_state=3)
    given, _ = flip_labels(y, fraction=0.2, random_state=2)
    finder = LabelIssueFinder().fit(X, given)
    assert finder.noise_rate_ < 0.1
    assert finder.noise_rate_interval_[0] == 0.0
    assert finder.noise_rate_interval_[1] > 0.2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not finder.fit(X, y).caveats_


@pytest.mark.slow
def test_weak_base_models_find_no_confusion_dependent_noise_and_the_interval_holds_their_rate():
    rng = np.random.default_rng(1)
    centers, y, rows = 3.0 * rng.normal(size=(5, 4)), np.arange(300) % 5, np.arange(300)
    X = centers[y] + 4.0 * rng.normal(size=(300, 4))
    distance = ((X[:, None] - centers) ** 2).sum(axis=2)
    distance[rows, y] = np.inf
    given = np.where(rng.random(300) < 0.2, distance.argmin(axis=1), y)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkcalibWarning)
        finder = LabelIssueFinder().fit(X, given)
    assert finder.issues_["is_issue"].mean() < 0.05
    assert finder.noise_rate_interval_[1] > 0.2


@pytest.mark.slow
def test_labels_believed_to_be_of_one_class_are_not_refitted(monkeypatch):
    X, y = make_moons(60, noise=0.1, random_state=0)
    certain = em.ByRows(lambda rows: np.tile([1.0, 0.0], (60, 1))[rows], (60, 2))
    monkeypatch.setattr(em.EMState, "posterior", lambda *_: certain)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkcalibWarning)
        assert LabelIssueFinder().fit(X, y).label_proba_.shape == (60, 2)


@pytest.mark.slow
def test_most_labels_are_right():
    # Two components of what sets classes apart: base models that are trusted find wrong labels in
    # two thirds of the labels, and none of them is wrong.
    X, y = make_classification(
        1000, n_informative=6, n_classes=4, class_sep=2.0, flip_y=0, random_state=3
    )
    X = PCA(2, random_state=0).fit_transform(StandardScaler().fit_transform(X))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkcalibWarning)
        finder = LabelIssueFinder(RMDScorer(shrinkage="auto")).fit(X, y)
    assert finder.noise_rate_ < 0.1
    assert finder.noise_rate_interval_[0] < 0.05
    assert finder.issues_["is_issue"].mean() < 0.05


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:The columns of X seem to be in another order")
@pytest.mark.filterwarnings("ignore:X seems to belong to rows")
@pytest.mark.parametrize("n_classes", [2, 3, 10])
def test_uninformative_base_models_warn(n_classes):
    rng = np.random.default_rng(0)
    labels = rng.choice(
        n_classes, 300, p=np.r_[0.8, np.full(n_classes - 1, 0.2 / (n_classes - 1))]
    )
    wrong = np.eye(n_classes)[(labels + 1) % n_classes]
    noise = rng.dirichlet(np.ones(n_classes), 300)
    finder = LabelIssueFinder("precomputed")
    for proba in (np.full(wrong.shape, 1 / n_classes), wrong, noise):
        with pytest.warns(SkcalibWarning, match=r"probabilities hardly predict.* another model"):
            finder.fit(proba, labels)
        assert finder.issues_["is_issue"].sum() < 5
        assert not finder.is_trustworthy_
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert not finder.fit(np.eye(n_classes)[labels] * 0.6 + 0.4 / n_classes, labels).caveats_


@pytest.mark.slow
def test_features_of_noise_warn():
    _, y = load_digits(return_X_y=True)
    X = np.random.default_rng(0).normal(size=(300, 5))
    with pytest.warns(SkcalibWarning, match="features hardly predict"):
        LabelIssueFinder().fit(X, y[:300])


@pytest.mark.slow
def test_some_labels_are_noninformative(monkeypatch):
    proba, true = _probabilities(600, 2.0, 0)
    given, _ = flip_labels(true, fraction=0.1, random_state=0)
    verified = np.arange(600) % 10 == 0
    given[verified] = true[verified]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkcalibWarning)
        finder = LabelIssueFinder("precomputed").fit(proba, given, verified=verified)
        monkeypatch.setattr(em, "NONINFORMATIVE", 0.0)
        plain = LabelIssueFinder("precomputed").fit(proba, given, verified=verified)
    belief = np.exp(-finder.issues_["difficulty"])
    expected = 0.9 * plain.issues_["p_label_correct"] + 0.1 * belief
    expected[verified] = 1.0
    np.testing.assert_allclose(finder.issues_["p_label_correct"], expected)
    np.testing.assert_allclose(finder.label_proba_.sum(axis=1), 1.0)
    assert finder.noise_rate_interval_[0] == pytest.approx(plain.noise_rate_interval_[0])
    new = slice(1, 4)
    found = finder.score_labels(proba[new], given[new])["p_label_correct"]
    np.testing.assert_allclose(found, expected[new])


@pytest.mark.slow
def test_probabilities_at_hand_are_not_believed_to_be_surer_than_they_say():
    # The labels are those that the model expects, nearly all of them, though it says .7: it may
    # have learned them, wrong ones too.
    proba, _ = _probabilities(600, 1.0, 0)
    labels = proba.argmax(axis=1)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkcalibWarning)
        finder = LabelIssueFinder("precomputed").fit(proba, labels)
    unsure = 1.0 - proba.max(axis=1).mean()
    assert unsure < finder.noise_rate_interval_[1] < unsure + 0.05


def test_right_labels_that_probabilities_at_hand_misfit_may_all_be_right():
    # A line parts classes of two clusters each: what it gets wrong looks like wrong labels.
    options = {"n_informative": 6, "n_redundant": 2, "n_clusters_per_class": 2, "flip_y": 0}
    X, y = make_classification(400, 10, class_sep=1.0, random_state=701, **options)
    model = make_pipeline(StandardScaler(), LogisticRegression(C=0.3))
    proba = cross_val_predict(model, X, y, cv=4, method="predict_proba")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkcalibWarning)
        finder = LabelIssueFinder("precomputed").fit(proba, y)
    assert finder.issues_["is_issue"].sum() >= 5
    assert finder.noise_rate_interval_[0] == 0.0


@pytest.mark.slow
def test_probabilities_at_hand_that_are_sure_show_how_many_labels_are_wrong_at_least():
    proba, true = _probabilities(2000, 6.0, 0)
    given, flipped = flip_labels(true, fraction=0.2, random_state=0)
    several = {"a": proba, "b": proba}
    for X in (proba, several):
        finder = LabelIssueFinder("precomputed").fit(X, given)
        low, _ = finder.noise_rate_interval_
        assert 0.15 < low < flipped.mean()
        # Half of the labels are known to be right, none is checked.
        half = np.arange(2000) < 1000
        part = LabelIssueFinder("precomputed").fit(X, np.where(half, true, given), verified=half)
        assert part.noise_rate_interval_[0] == pytest.approx(0.5 * low, abs=0.02)


def test_probabilities_at_hand_know_how_frequent_classes_are():
    # Flips at a common rate of two classes rank as the probability of the label does.
    rng = np.random.default_rng(0)
    proba = expit(rng.normal(1.5, 2.0, size=1000))
    proba = np.stack([proba, 1.0 - proba], axis=1)
    true = (rng.random(1000) > proba[:, 0]).astype(int)
    given, _ = flip_labels(true, fraction=0.1, random_state=0)
    finder = LabelIssueFinder("precomputed", noise="random").fit(proba, given)
    of_label = proba[np.arange(1000), given]
    order = np.argsort(of_label)
    assert (np.diff(finder._of_model[0][order]) >= 0).all()


@pytest.mark.slow
def test_a_frozen_classifier_that_was_trained_on_the_labels_is_a_caveat():
    X, y = make_blobs(400, centers=[[0.0] * 4, [3.0] * 4, [-3.0] * 4], random_state=0)
    given, flipped = flip_labels(y, fraction=0.2, random_state=0)
    a, b = np.arange(400) % 2 == 0, np.arange(400) % 2 == 1
    forest = RandomForestClassifier(30, random_state=0)
    seen, unseen = (FrozenEstimator(clone(forest).fit(X[of], given[of])) for of in (a, b))
    with pytest.warns(SkcalibWarning, match="it has probably been trained on these labels"):
        finder = LabelIssueFinder(seen).fit(X[a], given[a])
    assert finder.issues_["is_issue"][flipped[a]].mean() < 0.2  # it defends them
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SkcalibWarning)
        finder = LabelIssueFinder(unseen).fit(X[a], given[a])
    assert not any("has probably been trained" in caveat for caveat in finder.caveats_)
    assert finder.issues_["is_issue"][flipped[a]].mean() > 0.5


def test_what_a_frozen_classifier_expects_where_neighbors_do_not():
    rng = np.random.default_rng(0)
    X, codes = rng.normal(size=(200, 2)) * [1.0, 50.0], rng.integers(0, 3, 200)
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    unlike = np.empty(200, dtype=bool)
    for i in range(200):
        order = [j for j in np.argsort(np.sum((Z - Z[i]) ** 2, axis=1)) if j != i][:15]
        unlike[i] = np.bincount(codes[order], minlength=3).argmax() != codes[i]

    def caveats(n_right, features=X):
        distances = 1.0 - np.eye(3)[codes]
        wrong = np.flatnonzero(unlike)[n_right:]
        distances[wrong] = 1.0 - np.eye(3)[(codes[wrong] + 1) % 3]
        net = OutOfFold(FrozenEstimator(GaussianNB()), features, None, [])
        return diagnose_leakage(_state({"net": net}, codes, distances, np.zeros(200, dtype=bool)))

    n, least = int(unlike.sum()), 0
    while compute_binomial_interval(np.asarray(least / n), np.asarray(n), 0.95)[0] <= 2 / 3:
        least += 1
    assert not caveats(least - 1)
    (caveat,) = caveats(least)
    assert f"net predicts {least / n:.0%} of the {n} labels" in caveat
    assert not caveats(n, features=["a text"] * 200)


def _clusters_of_three_classes(n=400):
    """Three clusters a class, in four features, far apart; and the classes."""
    rng = np.random.default_rng(2)
    centers, cluster = 3 * rng.normal(size=(9, 4)), rng.integers(9, size=n)
    return centers[cluster] + rng.normal(size=(n, 4)), cluster % 3


@pytest.mark.slow
def test_neighbors_that_defend_labels_tell_of_misfits():
    X, y = _clusters_of_three_classes()
    finder = LabelIssueFinder(RMDScorer(shrinkage="auto"))
    with pytest.warns(SkcalibWarning, match="may misfit the classes") as caught:
        finder.fit(X, y)
    text = next(str(w.message) for w in caught if "misfit" in str(w.message))
    defended, right = (int(part) / 100 for part in re.findall(r"(\d+)%", text))
    Z = (X - X.mean(axis=0)) / X.std(axis=0)
    distances = np.square(Z[:, None] - Z).sum(axis=2) + np.diag(np.full(len(Z), np.inf))
    around = np.array([np.bincount(y[np.argsort(row)[:15]]).argmax() for row in distances])
    # Issues are the labels taken for wrong, but for the tenth that tells nothing.
    issue = finder.issues_["is_issue"]
    assert issue.sum() > 40
    assert defended == pytest.approx((around == y)[issue].mean(), abs=0.03)
    assert right == pytest.approx(finder.issues_["p_label_correct"][issue].mean(), abs=0.05)


@pytest.mark.slow
def test_no_misfit_where_labels_differ_from_their_neighbors():
    X, y = make_blobs(600, 4, centers=4, cluster_std=1.5, random_state=0)
    for fraction in (0.0, 0.1, 0.3):
        given = flip_labels(y, fraction=fraction, random_state=0)[0] if fraction else y
        assert not LabelIssueFinder(RMDScorer(shrinkage="auto")).fit(X, given).caveats_
    # Judges that know the shape of the classes leave their labels alone.
    X, y = _clusters_of_three_classes()
    finder = LabelIssueFinder().fit(X, y)
    assert not finder.caveats_
    assert finder.issues_["is_issue"].mean() < 0.01
