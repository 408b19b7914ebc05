import pickle
import re
import warnings

import numpy as np
import pytest
import sklearn
from sklearn.base import clone
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.discriminant_analysis import LinearDiscriminantAnalysis
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler

from skcalib.datasets import flip_labels
from skcalib.difficulty import RelativeMahalanobisScorer
from skcalib.labels import LabelCleaningClassifier, LabelIssueFinder
from skcalib.labels._cleaning import make_soft_labels
from skcalib.utils import SkcalibWarning

pytestmark = pytest.mark.usefixtures("few_trees")
X, Y = load_digits(return_X_y=True)
X, TEST = X[:900], X[900:]
Y, Y_TEST = Y[:900], Y[900:]
GIVEN, FLIPPED = flip_labels(Y, fraction=0.2, random_state=0)
ACTIONS = ["soft", "relabel", "drop", "weight"]


def _finder():
    scorer = make_pipeline(PCA(30, random_state=0), RelativeMahalanobisScorer())
    return LabelIssueFinder(scorer)


class Recorder(GaussianNB):
    def fit(self, X, y, sample_weight=None, tag=None):
        self.seen_ = X, y, sample_weight, tag
        return super().fit(X, y, sample_weight)


class SoftRecorder(Recorder):
    def fit(self, X, y, sample_weight=None, target_proba=None):
        super().fit(X, y, sample_weight)
        self.proba_ = target_proba
        return self


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_every_action_repairs_random_flips(action):
    plain = LogisticRegression(C=0.01, max_iter=3000)
    cleaning = LabelCleaningClassifier(plain, _finder(), action=action).fit(X, GIVEN)
    clean = plain.fit(X, Y).score(TEST, Y_TEST)
    noisy = plain.fit(X, GIVEN).score(TEST, Y_TEST)
    assert cleaning.score(TEST, Y_TEST) > noisy + 0.5 * (clean - noisy)


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_what_the_estimator_is_given(action):
    cleaning = LabelCleaningClassifier(Recorder(), _finder(), action=action).fit(X, GIVEN)
    samples, labels, weight, _ = cleaning.estimator_.seen_
    issues = cleaning.finder_.issues_
    issue = issues["is_issue"]
    if action == "drop":
        np.testing.assert_array_equal(samples, X[~issue])
        np.testing.assert_array_equal(labels, GIVEN[~issue])
    elif action == "relabel":
        np.testing.assert_array_equal(labels[issue], issues["suggested_label"][issue])
        np.testing.assert_array_equal(labels[~issue], GIVEN[~issue])
    elif action == "weight":
        np.testing.assert_array_equal(labels, GIVEN)
        np.testing.assert_allclose(weight, issues["p_label_correct"])
    if action in ("drop", "relabel"):
        assert weight is None


def test_soft_labels_hold_nearly_all_of_the_probability():
    proba = np.random.default_rng(0).dirichlet(np.full(6, 0.2), size=200)
    samples, classes, weights = make_soft_labels(proba)
    np.testing.assert_allclose(np.bincount(samples, weights), 1.0)
    kept = np.bincount(samples, proba[samples, classes])
    assert (kept >= 0.99).all()
    for i in range(200):
        own = proba[i, classes[samples == i]]
        # None could be left out, and none of those left out is more probable.
        assert own.sum() - own.min() < 0.99
        assert (np.delete(proba[i], classes[samples == i]) <= own.min()).all()
        np.testing.assert_allclose(weights[samples == i], own / own.sum())


@pytest.mark.slow
def test_soft_labels_are_the_expected_loss():
    cleaning = LabelCleaningClassifier(Recorder(), _finder()).fit(X, GIVEN)
    samples, labels, weight, _ = cleaning.estimator_.seen_
    of_sample = {row.tobytes(): i for i, row in enumerate(X)}
    rows = [of_sample[row.tobytes()] for row in samples]
    proba = cleaning.finder_.label_proba_
    total = np.zeros_like(proba)
    np.add.at(total, (rows, labels), weight)
    np.testing.assert_allclose(total, proba, atol=0.011)


@pytest.mark.slow
def test_an_estimator_with_soft_targets_gets_the_posterior_and_every_sample_once():
    cleaning = LabelCleaningClassifier(SoftRecorder(), _finder()).fit(X, GIVEN)
    samples, labels, weight, _ = cleaning.estimator_.seen_
    np.testing.assert_array_equal(samples, X)
    np.testing.assert_array_equal(labels, GIVEN)
    assert weight is None
    np.testing.assert_array_equal(cleaning.estimator_.proba_, cleaning.finder_.label_proba_)
    relabeled = LabelCleaningClassifier(SoftRecorder(), _finder(), action="relabel")
    assert relabeled.fit(X, GIVEN).estimator_.proba_ is None


@pytest.mark.slow
def test_soft_targets_follow_the_samples_of_positive_weight():
    weight = np.random.default_rng(0).integers(0, 3, len(X)).astype(float)
    cleaning = LabelCleaningClassifier(SoftRecorder(), _finder())
    cleaning.fit(X, GIVEN, sample_weight=weight)
    samples, labels, given, _ = cleaning.estimator_.seen_
    np.testing.assert_array_equal(samples, X[weight > 0])
    np.testing.assert_array_equal(labels, GIVEN[weight > 0])
    np.testing.assert_array_equal(given, weight[weight > 0])
    assert cleaning.estimator_.proba_.shape == (len(samples), 10)


@pytest.mark.slow
def test_a_pipeline_hands_soft_targets_to_its_last_step():
    pipe = make_pipeline(MinMaxScaler(), SoftRecorder())
    cleaning = LabelCleaningClassifier(make_pipeline(pipe), _finder()).fit(X, GIVEN)
    last = cleaning.estimator_[-1][-1]
    np.testing.assert_array_equal(last.proba_, cleaning.finder_.label_proba_)
    with sklearn.config_context(enable_metadata_routing=True):
        pipe[-1].set_fit_request(target_proba=True)
        cleaning = LabelCleaningClassifier(pipe, _finder()).fit(X, GIVEN)
        np.testing.assert_array_equal(
            cleaning.estimator_[-1].proba_, cleaning.finder_.label_proba_
        )
        # Not requested: the samples are repeated.
        pipe[-1].set_fit_request(target_proba=False, sample_weight=True)
        cleaning = LabelCleaningClassifier(pipe, _finder()).fit(X, GIVEN)
        assert cleaning.estimator_[-1].proba_ is None
        assert len(cleaning.estimator_[-1].seen_[0]) > len(X)


@pytest.mark.slow
@pytest.mark.parametrize("action", ACTIONS)
def test_weight_zero_is_removal(action):
    weight = np.ones(len(X))
    weight[::7] = 0.0
    kept = weight > 0
    model = LabelCleaningClassifier(GaussianNB(var_smoothing=1e-3), _finder(), action=action)
    weighted = model.fit(X, GIVEN, sample_weight=weight).predict_proba(TEST)
    removed = model.fit(X[kept], GIVEN[kept]).predict_proba(TEST)
    np.testing.assert_allclose(weighted, removed, atol=1e-8)


@pytest.mark.slow
def test_weights_multiply():
    weight = np.random.default_rng(0).uniform(0.5, 2.0, len(X))
    cleaning = LabelCleaningClassifier(Recorder(), _finder(), action="weight")
    given = cleaning.fit(X, GIVEN, sample_weight=weight).estimator_.seen_[2]
    np.testing.assert_allclose(given, weight * cleaning.finder_.issues_["p_label_correct"])


@pytest.mark.slow
def test_metadata_goes_along_with_its_samples():
    tag = np.arange(len(X))
    cleaning = LabelCleaningClassifier(Recorder(), _finder(), action="drop").fit(X, GIVEN, tag=tag)
    np.testing.assert_array_equal(
        cleaning.estimator_.seen_[3], tag[~cleaning.finder_.issues_["is_issue"]]
    )


# Neighbors defend 12 % of the labels taken for wrong, though all of these are: a needless doubt.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Of the labels that the model calls wrong, 12%")
def test_verified_reaches_the_finder():
    cleaning = LabelCleaningClassifier(GaussianNB(), _finder(), action="drop")
    cleaning.fit(X, GIVEN, verified=~FLIPPED)
    assert not cleaning.finder_.issues_["is_issue"][~FLIPPED].any()


@pytest.mark.slow
@pytest.mark.parametrize("action", ["soft", "weight"])
def test_a_pipeline_takes_the_weights_at_its_last_step(action):
    pipe = make_pipeline(MinMaxScaler(), LogisticRegression(C=0.1, max_iter=1000))
    cleaning = LabelCleaningClassifier(pipe, _finder(), action=action)
    assert cleaning.fit(X, GIVEN).score(TEST, Y_TEST) > 0.88
    routed = pipe.set_params()
    with sklearn.config_context(enable_metadata_routing=True):
        routed[-1].set_fit_request(sample_weight=True)
        cleaning = LabelCleaningClassifier(routed, _finder(), action=action)
        weight = np.ones(len(X))
        assert cleaning.fit(X, GIVEN, sample_weight=weight).score(TEST, Y_TEST) > 0.88


@pytest.mark.slow
def test_at_the_end_of_a_pipeline_under_grid_search():
    pipe = make_pipeline(
        MinMaxScaler(),
        PCA(30, random_state=0),
        LabelCleaningClassifier(LinearDiscriminantAnalysis(), action="relabel"),
    )
    grid = {
        "labelcleaningclassifier__action": ["relabel", "drop"],
        "labelcleaningclassifier__finder": [LabelIssueFinder(noise="random")],
        "labelcleaningclassifier__finder__threshold": [0.4],
    }
    search = GridSearchCV(pipe, grid, cv=2).fit(X, GIVEN)
    assert len(search.cv_results_["params"]) == 2
    assert search.score(TEST, Y_TEST) > 0.88


@pytest.mark.slow
def test_folds_are_scored_against_the_given_labels():
    model = LabelCleaningClassifier(LinearDiscriminantAnalysis(), _finder(), action="relabel")
    score = cross_val_score(model, X, GIVEN, cv=KFold(3)).mean()
    # A fifth of the labels is wrong, and no model can know.
    assert score < 0.82


@pytest.mark.slow
def test_text_labels_and_pickle():
    words = np.array([f"digit {k}" for k in range(10)])
    cleaning = LabelCleaningClassifier(GaussianNB(), _finder()).fit(X, words[GIVEN])
    np.testing.assert_array_equal(cleaning.classes_, words)
    again = pickle.loads(pickle.dumps(cleaning))
    np.testing.assert_array_equal(again.predict(TEST), cleaning.predict(TEST))
    numbers = LabelCleaningClassifier(GaussianNB(), _finder()).fit(X, GIVEN)
    np.testing.assert_array_equal(words[numbers.predict(TEST)], cleaning.predict(TEST))


@pytest.mark.slow
@pytest.mark.parametrize("action", ["soft", "weight"])
def test_an_estimator_without_weights_is_told_what_it_can_do(action):
    with pytest.raises(ValueError, match="action='relabel' and action='drop' need none"):
        LabelCleaningClassifier(KNeighborsClassifier(), _finder(), action=action).fit(X, GIVEN)
    LabelCleaningClassifier(KNeighborsClassifier(), _finder(), action="drop").fit(X, GIVEN)


@pytest.mark.slow
def test_a_class_that_is_cleaned_away_keeps_its_column():
    words = np.array([f"digit {k}" for k in range(10)])[Y].astype(object)
    words[9] = "digit 9 "
    cleaning = LabelCleaningClassifier(GaussianNB(), _finder(), action="relabel")
    with pytest.warns(SkcalibWarning, match="No sample of class 'digit 9 ' is left"):
        cleaning.fit(X, words)
    proba = cleaning.predict_proba(TEST)
    assert proba.shape[1] == 11
    assert (proba[:, list(cleaning.classes_).index("digit 9 ")] == 0).all()


@pytest.mark.slow
def test_a_net_learns_soft_labels():
    pytest.importorskip("skorch")
    from skcalib.nets import MLP, CalibratedNetClassifier

    net = CalibratedNetClassifier(
        MLP, module__hidden_layer_sizes=(32,), lr=0.01, max_epochs=15, device="cpu", random_state=0
    )
    scaled = X.astype(np.float32) / 16
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        cleaning = LabelCleaningClassifier(net, _finder()).fit(scaled, GIVEN)
    assert cleaning.score(TEST.astype(np.float32) / 16, Y_TEST) > 0.88


@pytest.mark.slow
def test_an_updated_or_frozen_finder_is_taken_as_it_is():
    finder = _finder().fit(X, GIVEN)
    frozen = LabelCleaningClassifier(GaussianNB(), FrozenEstimator(finder), action="relabel")
    assert clone(frozen).fit(X, GIVEN).finder_ is finder
    with pytest.raises(ValueError, match="finder must be fitted to the labels of this fit"):
        frozen.fit(X[:100], GIVEN[:100])
    rows = finder.draw_samples_to_check(60, random_state=0)
    finder.update_with_checks(rows, Y[rows])
    weight = np.arange(len(X)) % 4
    cleaning = LabelCleaningClassifier(Recorder(), finder, action="relabel")
    cleaning.fit(X, GIVEN, sample_weight=weight)
    assert cleaning.finder_ is finder
    used = np.flatnonzero(weight)
    known = np.isin(used, rows)
    np.testing.assert_array_equal(cleaning.estimator_.seen_[1][known], Y[used][known])


@pytest.mark.slow
def test_verified_samples_are_those_of_positive_weight():
    verified = np.zeros(len(X), dtype=bool)
    verified[np.flatnonzero(~FLIPPED)[:300]] = True
    weight = (np.arange(len(X)) % 3).astype(float)
    cleaning = LabelCleaningClassifier(GaussianNB(), _finder(), action="drop")
    cleaning.fit(X, GIVEN, sample_weight=weight, verified=verified)
    p = cleaning.finder_.issues_["p_label_correct"]
    np.testing.assert_array_equal(p[verified[weight > 0]], 1.0)


@pytest.mark.slow
@pytest.mark.parametrize("action", ["soft", "relabel", "drop", "weight"])
def test_samples_of_none_of_the_classes_are_not_learned(action):
    given, _ = flip_labels(Y, fraction=0.1, random_state=0)
    finder = LabelIssueFinder(GaussianNB(), n_refits=0).fit(X, given)
    rows = finder.draw_samples_to_check(60, random_state=0)
    answers = Y[rows].astype(float)
    answers[:5] = np.nan
    with pytest.warns(SkcalibWarning, match="5 of the 60 answers are missing"):
        finder.update_with_checks(rows, answers)
    moved = X.copy()
    moved[rows[:5]] = 1e6  # would ruin the means of a class
    cleaning = LabelCleaningClassifier(GaussianNB(), FrozenEstimator(finder), action=action)
    assert cleaning.fit(moved, given).estimator_.theta_.max() < 100


@pytest.mark.slow
def test_the_finder_and_the_classifier_print_their_seconds(capsys):
    cleaning = LabelCleaningClassifier(GaussianNB(), verbose=1).fit(X[:200], GIVEN[:200])
    lines = capsys.readouterr().out.splitlines()
    assert re.match(r"\[LabelIssueFinder\] \.* fit: distances, total=", lines[0])
    for line, step in zip(lines[-2:], ("finder", "classifier")):
        assert re.match(rf"\[LabelCleaningClassifier\] \.* {step}, total=", line)
    cleaning.set_params(verbose=0).fit(X[:200], GIVEN[:200])
    assert not capsys.readouterr().out


@pytest.mark.parametrize("action", ["soft", "drop"])
def test_votes_alone_train_as_with_their_consensus(action):
    """Without y, the labels are the most probable classes by the votes."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(120, 3))
    true = np.where(X[:, 0] > 0, "ok", "defect")
    heard = rng.random((120, 3)) < [0.9, 0.8, 0.7]
    votes = np.where(heard, true[:, None], rng.choice(["ok", "defect"], (120, 3)))
    plain = LabelCleaningClassifier(LogisticRegression(), action=action)
    model = clone(plain).fit(X, votes=votes)
    consensus = LabelIssueFinder().fit(X, votes=votes).issues_["label"]
    assert np.mean(consensus == true) > 0.9
    expected = clone(plain).fit(X, consensus, votes=votes)
    np.testing.assert_allclose(model.predict_proba(X), expected.predict_proba(X), atol=1e-12)
    finder = FrozenEstimator(LabelIssueFinder().fit(X, votes=votes))
    with pytest.raises(ValueError, match=r"y must be finder\.issues_"):
        clone(plain).set_params(finder=finder).fit(X, votes=votes)
