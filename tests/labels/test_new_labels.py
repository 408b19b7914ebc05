import pickle

import numpy as np
import pytest
from sklearn.datasets import load_digits
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import roc_auc_score
from sklearn.model_selection import cross_val_predict
from sklearn.naive_bayes import GaussianNB
from sklearn.pipeline import make_pipeline

from skcalib.datasets import flip_labels
from skcalib.difficulty import RelativeMahalanobisScorer
from skcalib.labels import LabelIssueFinder
from skcalib.utils import SkcalibWarning

X, Y = load_digits(return_X_y=True)
X, Y, X_NEW, Y_NEW = X[:500], Y[:500], X[500:900], Y[500:900]
GIVEN, FLIPPED = flip_labels(Y, fraction=0.15, random_state=0)
NEW, WRONG = flip_labels(Y_NEW, fraction=0.15, random_state=1)
SCORER = make_pipeline(PCA(30, random_state=0), RelativeMahalanobisScorer())


@pytest.mark.slow
@pytest.mark.parametrize(
    "estimator", [None, SCORER, LogisticRegression(C=0.01, max_iter=500), [SCORER, GaussianNB()]]
)
def test_labels_of_new_samples_are_judged(estimator):
    finder = LabelIssueFinder(estimator).fit(X, GIVEN)
    issues = pickle.loads(pickle.dumps(finder)).score_labels(X_NEW, NEW)
    assert issues.dtype == finder.issues_.dtype
    assert roc_auc_score(WRONG, -issues["p_label_correct"]) > 0.9
    found = issues["is_issue"].astype(bool)
    assert (
        (np.where(found, issues["suggested_label"], NEW) == Y_NEW).mean()
        > 0.87
        > np.mean(NEW == Y_NEW)
    )
    # Row by row: what is judged besides does not matter.
    np.testing.assert_allclose(
        finder.score_labels(X_NEW[:3], NEW[:3])["p_label_correct"],
        issues["p_label_correct"][:3],
        atol=1e-6,
    )
    with pytest.raises(ValueError, match="y must hold labels among"):
        finder.score_labels(X_NEW[:2], [1, 11])


def test_new_probabilities_are_those_of_the_formula():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 600)
    proba = np.exp(3.0 * np.eye(3)[true] + rng.normal(size=(600, 3)))
    proba /= proba.sum(axis=1, keepdims=True)
    given, _ = flip_labels(true, fraction=0.2, random_state=0)
    finder = LabelIssueFinder("precomputed").fit(proba, given)
    # Nothing is fitted: the same samples are judged alike, also after checks.
    rows = finder.draw_samples_to_check(60, random_state=0)
    others = np.setdiff1d(np.arange(600), rows)
    for checks in (None, (rows, true[rows])):
        if checks is not None:
            finder.update_with_checks(*checks)
        again = finder.score_labels(proba, given)
        for name in ("p_label_correct", "margin", "difficulty"):
            np.testing.assert_allclose(
                again[name][others], finder.issues_[name][others], atol=1e-6
            )
    with pytest.raises(ValueError, match="X must have 3 columns of probabilities"):
        finder.score_labels(proba[:, :2] / proba[:, :2].sum(axis=1, keepdims=True), given)


@pytest.mark.slow
def test_probabilities_of_several_models_are_pooled():
    models = {"linear": LogisticRegression(C=0.01, max_iter=500), "bayes": GaussianNB()}
    proba = {
        name: cross_val_predict(model, X, GIVEN, method="predict_proba")
        for name, model in models.items()
    }
    finder = LabelIssueFinder("precomputed").fit(proba, GIVEN)
    assert list(finder.base_models_) == ["linear", "bayes"]
    assert sum(finder.base_models_.values()) == pytest.approx(1)
    both = roc_auc_score(FLIPPED, -finder.issues_["p_label_correct"])
    with pytest.warns(SkcalibWarning, match="issues may all be right"):
        alone = LabelIssueFinder("precomputed").fit(proba["bayes"], GIVEN)
    assert both > roc_auc_score(FLIPPED, -alone.issues_["p_label_correct"])
    assert len(finder.score_labels({k: v[:9] for k, v in proba.items()}, GIVEN[:9])) == 9
    with pytest.raises(ValueError, match=r"inconsistent|same number"):
        LabelIssueFinder("precomputed").fit({"a": proba["bayes"], "b": X[:5, :10]}, GIVEN)


@pytest.mark.slow
def test_samples_of_no_class_are_novel():
    junk = np.random.default_rng(0).permutation(500)[:25]
    data = X.copy()
    data[junk] = np.random.default_rng(1).uniform(0, 16, size=(25, 64))
    finder = LabelIssueFinder().fit(data, Y)
    assert roc_auc_score(np.isin(np.arange(500), junk), finder.issues_["novelty"]) > 0.99
    new = X_NEW.copy()
    new[:25] = np.random.default_rng(2).uniform(0, 16, size=(25, 64))
    novelty = finder.score_labels(new, Y_NEW)["novelty"]
    assert roc_auc_score(np.arange(400) < 25, novelty) > 0.95
    # Probabilities do not tell how far a sample is.
    assert np.isnan(LabelIssueFinder(GaussianNB(), n_refits=0).fit(X, Y).issues_["novelty"]).all()


# Right are 6 of 56 issues, as many as neighbors defend; the model takes 2 % for right.
@pytest.mark.slow
@pytest.mark.filterwarnings("ignore:Of the labels that the model calls wrong, 11%")
def test_rates_by_anything():
    batch = np.array(["a", "b"])[(np.arange(500) < 100).astype(int)]
    given = np.where((batch == "b") & (np.arange(500) % 2 == 0), (Y + 3) % 10, Y)
    finder = LabelIssueFinder(SCORER).fit(X, given)
    rates = finder.noise_rate_by(batch)
    assert list(rates["group"]) == ["b", "a"]
    assert list(rates["n_samples"]) == [100, 400]
    wrong = 1 - finder.issues_["p_label_correct"]
    np.testing.assert_allclose(rates["noise_rate"], [wrong[:100].mean(), wrong[100:].mean()])
    assert rates["noise_rate"][0] > 0.4
    assert rates["noise_rate"][1] < 0.05
    assert rates["n_issues"].sum() == finder.issues_["is_issue"].sum()
    with pytest.raises(ValueError, match="by must have one entry for every sample"):
        finder.noise_rate_by(batch[:5])


@pytest.mark.slow
def test_intervals_by_anything_hold_before_and_after_checks():
    rng = np.random.default_rng(0)
    true = rng.integers(0, 3, 1200)
    annotator = rng.integers(0, 3, 1200)
    scores = 2.0 * rng.normal(size=(1200, 3)) + 5.0 * np.eye(3)[true]
    proba = np.exp(scores) / np.exp(scores).sum(axis=1, keepdims=True)
    given = np.where(
        rng.random(1200) < np.array([0.02, 0.1, 0.3])[annotator], (true + 1) % 3, true
    )
    rate = np.array([(given != true)[annotator == name].mean() for name in range(3)])
    finder = LabelIssueFinder("precomputed").fit(proba, given)

    def held():
        rates = finder.noise_rate_by(annotator)
        assert (rates["low"] <= rates["noise_rate"]).all()
        assert (rates["noise_rate"] <= rates["high"]).all()
        expected = rate[rates["group"].astype(int)]
        return (rates["low"] <= expected) & (expected <= rates["high"]), rates

    assert held()[0].all()
    holds = []
    for seed in range(15):
        rows = finder.draw_samples_to_check(120, random_state=seed)
        finder.update_with_checks(rows, true[rows])
        of_groups, rates = held()
        holds.extend(of_groups)
    assert np.mean(holds) > 0.9
    assert np.diff([rates["low"], rates["high"]], axis=0).max() < 0.5
    few = finder.draw_samples_to_check(5, random_state=0)
    rates = finder.update_with_checks(few, true[few]).noise_rate_by(np.arange(1200))
    assert (rates["low"] == 0).all()
    assert (rates["high"] == 1).all()


@pytest.mark.slow
def test_a_finder_that_is_fitted_again_gets_how_checks_were_drawn():
    finder = LabelIssueFinder(SCORER).fit(X, GIVEN)
    rows, likely = finder.draw_samples_to_check(
        80, design="informative", random_state=0, return_inclusion=True
    )
    order = np.random.default_rng(0).permutation(80)
    expected = finder.update_with_checks(rows, Y[rows]).noise_rate_interval_
    again = LabelIssueFinder(SCORER).fit(X, GIVEN)
    again.update_with_checks(rows[order], Y[rows[order]], inclusion=likely[order])
    assert again.noise_rate_interval_ == pytest.approx(expected, abs=0.01)
    assert again.n_checks_ == 80
    for wrong in (likely[:5], np.zeros(80), likely + 1.0):
        with pytest.raises(ValueError, match="inclusion must be a probability in"):
            again.update_with_checks(rows, Y[rows], inclusion=wrong)
    surely = LabelIssueFinder(SCORER).fit(X, GIVEN)
    surely.update_with_checks(np.arange(len(Y)), Y, inclusion=np.ones(len(Y)))  # everything
    np.testing.assert_allclose(surely.noise_rate_interval_, np.mean(GIVEN != Y), atol=1e-3)


@pytest.mark.slow
def test_groups_are_no_matter_for_new_samples():
    finder = LabelIssueFinder().fit(X, GIVEN, groups=np.arange(500) // 2)
    assert "distances" not in finder.base_models_
    issues = finder.score_labels(X_NEW[:100], NEW[:100])
    assert roc_auc_score(WRONG[:100], -issues["p_label_correct"]) > 0.95
