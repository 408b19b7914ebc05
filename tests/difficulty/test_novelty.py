"""NoveltyDetector: the threshold means what it says, and scikit-learn's checks pass."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import norm
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.neighbors import KernelDensity
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks

from skcalib.difficulty import KMeansPrototypeScorer, KNNScorer, NoveltyDetector, RMDScorer
from skcalib.utils import SkcalibWarning

X, y = load_iris(return_X_y=True)
X[142, 0] += 0.01  # one flower is in it twice
names = np.array(["setosa", "versicolor", "virginica"])[y]


# One prototype hardly depends on the fold: exactly as many training samples as told are outliers.
@parametrize_with_checks([NoveltyDetector(KMeansPrototypeScorer(1, random_state=0))])
def test_checks_of_scikit_learn_with_folds(estimator, check):
    check(estimator)


def _gaussians(n, d=40, n_classes=5, seed=0):
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % n_classes
    return rng.normal(size=(n, d)) + 5 * np.eye(n_classes, d)[labels], labels


@pytest.mark.parametrize("contamination", [0.05, 0.2])
def test_as_many_new_samples_are_outliers_as_told(contamination):
    train, new = _gaussians(2000), _gaussians(4000, seed=1)
    detector = NoveltyDetector(RMDScorer(relative=False), contamination=contamination)
    flagged = (detector.fit(*train).predict(new[0]) == -1).mean()
    # Standard errors of .006 and .011; folds that know a fifth less put the threshold too low.
    assert contamination - 0.04 < flagged < contamination + 0.02


def test_in_sample_scores_would_call_many_new_samples_outliers():
    train, new = _gaussians(200), _gaussians(4000, seed=1)
    detector = NoveltyDetector(RMDScorer(relative=False)).fit(*train)
    assert (detector.predict(new[0]) == -1).mean() < 0.06
    detector.set_params(cv=None).fit(*train)
    assert (detector.predict(new[0]) == -1).mean() > 0.3


@pytest.mark.parametrize("contamination", [0.01, 0.1, 0.3, 0.5])
def test_in_sample_the_fraction_is_exact(contamination):
    detector = NoveltyDetector(RMDScorer(), contamination=contamination, cv=None)
    assert (detector.fit_predict(X, y) == -1).sum() == int(contamination * 150 + 1e-9)
    scores = detector.scorer_.score_samples(X)
    np.testing.assert_array_equal(detector.score_samples(X), scores)
    np.testing.assert_array_equal(detector.decision_function(X), scores - detector.offset_)
    np.testing.assert_array_equal(detector.predict(X) == -1, scores < detector.offset_)


def test_the_threshold_is_one_of_out_of_fold_scores():
    halves = [
        (np.arange(0, 150, 2), np.arange(1, 150, 2)),
        (np.arange(1, 150, 2), np.arange(0, 150, 2)),
    ]
    detector = NoveltyDetector(RMDScorer(), contamination=0.1, cv=halves).fit(X, names)
    scores = np.empty(150)
    for train, test in halves:
        scores[test] = RMDScorer().fit(X[train], names[train]).score_samples(X[test])
    # A new sample is among the 15 smallest of 151 with probability .0993, .1 is a bit more.
    assert detector.offset_ == pytest.approx(np.quantile(scores, 0.1, method="weibull"))
    with pytest.warns(SkcalibWarning, match="leave out 75 of 150 samples: only these"):
        half = NoveltyDetector(RMDScorer(), contamination=0.1, cv=halves[:1]).fit(X, names)
    assert half.offset_ == pytest.approx(np.quantile(scores[1::2], 0.1, method="weibull"))


@pytest.mark.slow
def test_sorted_samples_without_labels_are_shuffled_into_folds():
    detector = NoveltyDetector(KMeansPrototypeScorer(3, random_state=0)).fit(X)
    # Folds of neighboring rows would leave whole species out.
    assert detector.offset_ > -2
    assert clone(detector).fit(X).offset_ == detector.offset_


def test_weight_is_repetition():
    count = np.random.default_rng(0).integers(0, 4, 150)
    weighted = NoveltyDetector(RMDScorer(), cv=None).fit(X, y, sample_weight=count)
    repeated = NoveltyDetector(RMDScorer(), cv=None).fit(
        np.repeat(X, count, axis=0), np.repeat(y, count)
    )
    assert weighted.offset_ == pytest.approx(repeated.offset_)
    np.testing.assert_allclose(
        weighted.decision_function(X), repeated.decision_function(X), atol=1e-8
    )


@pytest.mark.parametrize("relative", [True, False])
@pytest.mark.parametrize("scale", [1e-300, 1e-9, 1 / 150])
def test_weights_below_one_have_no_scale(relative, scale):
    weight, scorer = np.random.default_rng(0).uniform(0.2, 1, 150), RMDScorer(relative=relative)
    fits = [
        NoveltyDetector(scorer, contamination=0.1).fit(X, y, sample_weight=w)
        for w in (weight, scale * weight)
    ]
    assert fits[1].offset_ == pytest.approx(fits[0].offset_)
    assert 5 <= (fits[1].predict(X) == -1).sum() <= 25


@pytest.mark.slow
@pytest.mark.parametrize("relative", [True, False])
def test_a_row_is_left_out_with_all_of_its_weight(relative):
    weight, scorer = np.random.default_rng(0).integers(1, 4, 150), RMDScorer(relative=relative)
    scores = np.empty(150)
    for i in range(150):
        rest = np.arange(150) != i
        fitted = clone(scorer).fit(X[rest], y[rest], sample_weight=weight[rest])
        scores[i] = fitted.score_samples(X[[i]])[0]
    detector = NoveltyDetector(scorer, contamination=0.2).fit(X, y, sample_weight=weight)
    below = weight[scores < detector.offset_ - 1e-9].sum()
    assert below <= 0.2 * (weight.sum() + 1) <= below + 2 * weight.max()
    equal = NoveltyDetector(scorer, contamination=0.2).fit(X, y, sample_weight=np.full(150, 3.0))
    one = NoveltyDetector(scorer, contamination=0.2).fit(X, y)
    assert equal.offset_ == pytest.approx(one.offset_, rel=0.02)


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["weights", "groups"])
def test_weights_and_groups_keep_false_alarms_as_rare(kind):
    # With copies that remain, 31 % of new samples are outliers; with five folds of groups, 1 %.
    rates = []
    for seed in range(20):
        train, labels = _gaussians(60, d=20, n_classes=2, seed=seed)
        given = {"sample_weight": np.random.default_rng(seed).integers(1, 5, 60)}
        if kind == "groups":
            train, labels = np.repeat(train, 3, axis=0), np.repeat(labels, 3)
            given = {"groups": np.repeat(np.arange(60), 3)}
        detector = NoveltyDetector(RMDScorer(relative=False)).fit(train, labels, **given)
        new, _ = _gaussians(2000, d=20, n_classes=2, seed=100 + seed)
        rates.append((detector.predict(new) == -1).mean())
    # Standard errors of .01 and .006.
    assert 0.02 < np.mean(rates) < 0.07


@pytest.mark.slow
def test_a_pipeline_embeds_then_scores():
    weight = np.random.default_rng(0).random(150)
    embed = make_pipeline(StandardScaler(), PCA(2, random_state=0))
    pipeline = make_pipeline(embed, make_pipeline("passthrough", RMDScorer()))
    detector = NoveltyDetector(pipeline, cv=None).fit(X, names, sample_weight=weight)
    Z = clone(embed).fit_transform(X)
    alone = NoveltyDetector(RMDScorer(), cv=None).fit(Z, names, sample_weight=weight)
    np.testing.assert_allclose(detector.decision_function(X), alone.decision_function(Z))
    assert set(NoveltyDetector(pipeline).fit(X, names).predict(X)) == {1, -1}


def test_other_scores_of_normality_will_do():
    detector = NoveltyDetector(KernelDensity(bandwidth=0.5)).fit(X)
    assert detector.predict(np.array([[5.0, 3.4, 1.5, 0.2], [9, 9, 9, 9]])).tolist() == [1, -1]


def test_frames_and_pickles():
    frame = pd.DataFrame(X, columns=list("abcd"))
    detector = NoveltyDetector(RMDScorer()).fit(frame, names)
    assert detector.feature_names_in_.tolist() == list("abcd")
    restored = pickle.loads(pickle.dumps(detector))
    np.testing.assert_array_equal(restored.predict(frame), detector.predict(frame))


def test_neighbors_tell_outliers():
    detector = NoveltyDetector(KNNScorer(), contamination=0.1).fit(X)
    assert abs((detector.predict(X) == -1).mean() - 0.1) < 0.05
    assert detector.predict([[9.0, 9.0, 9.0, 9.0]]).tolist() == [-1]


def test_metadata_routing():
    weight = np.arange(150) % 3 + 1.0
    expected = NoveltyDetector(RMDScorer()).fit(X, y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        scorer = RMDScorer().set_fit_request(sample_weight=True)
        routed = NoveltyDetector(scorer).fit(X, y, sample_weight=weight)
    assert routed.offset_ == expected.offset_


def test_bad_input():
    with pytest.raises(ValueError, match="'contamination' parameter"):
        NoveltyDetector(RMDScorer(), contamination=0.6).fit(X, y)
    with pytest.raises(ValueError, match="'scorer' parameter"):
        NoveltyDetector(StandardScaler()).fit(X, y)
    with pytest.raises(
        ValueError, match="y must hold labels: RelativeMahalanobisScorer requires y"
    ):
        NoveltyDetector(RMDScorer()).fit(X)
    with pytest.raises(ValueError, match="must have the parameter 'sample_weight'"):
        NoveltyDetector(PlainScorer()).fit(X, sample_weight=np.ones(150))
    with pytest.raises(ValueError, match="scorer must give every sample a score, got NaN for"):
        NoveltyDetector(PlainScorer()).fit(X)


class PlainScorer(KMeansPrototypeScorer):
    """Knows no sample weights and not all samples."""

    def fit(self, X, y=None):
        return self

    def difficulty(self, X, y=None):
        return np.where(X[:, 0] > 5, np.nan, X[:, 0])


@pytest.mark.parametrize(
    ("n", "contamination", "n_outliers"), [(100, 0.29, 29), (100, 0.07, 7), (150, 0.02, 3)]
)
def test_rounding_of_the_fraction_moves_no_sample(n, contamination, n_outliers):
    # .29 * 100 = 28.999999999999996 in floats.
    detector = NoveltyDetector(KMeansPrototypeScorer(1, random_state=0), cv=None)
    detector.set_params(contamination=contamination)
    assert (detector.fit_predict(X[:n]) == -1).sum() == n_outliers


@pytest.mark.slow
@pytest.mark.parametrize(
    "scorer",
    [
        RMDScorer(shrinkage="auto"),
        RMDScorer(),
        KNNScorer(n_neighbors=3, normalize=True),
        make_pipeline(StandardScaler(), RMDScorer(shrinkage=0.3)),
    ],
    ids=["shrunk", "plain", "neighbors", "folds"],
)
@pytest.mark.parametrize(("n_classes", "per_class", "d"), [(2, 50, 60), (5, 30, 20)])
def test_false_alarms_are_as_promised(scorer, n_classes, per_class, d):
    # With shrinkage chosen anew in every fold it was .15; with five folds and without, .001.
    rates = []
    for seed in range(8):
        rng = np.random.default_rng(seed)
        centers = np.random.default_rng(0).normal(size=(n_classes, d))

        def draw(n, rng=rng, centers=centers):
            labels = np.arange(n) % n_classes
            return rng.normal(size=(n, d)) + centers[labels], labels

        detector = NoveltyDetector(scorer).fit(*draw(n_classes * per_class))
        rates.append((detector.predict(draw(2000)[0]) == -1).mean())
    # Three standard errors of eight thresholds from 100 or 150 samples.
    assert abs(np.mean(rates) - 0.05) < 0.024


@pytest.mark.slow
def test_leaving_out_in_closed_form_is_a_fit_without_the_sample():
    rows = np.arange(0, 150, 3)
    for scorer in (RMDScorer(), KNNScorer(n_neighbors=2)):
        folds = [(np.delete(np.arange(50), i), [i]) for i in range(50)]
        found = NoveltyDetector(scorer).fit(X[rows], y[rows])
        one_by_one = NoveltyDetector(scorer, cv=folds).fit(X[rows], y[rows])
        assert found.offset_ == pytest.approx(one_by_one.offset_, rel=1e-5)


def test_more_classes_than_folds_could_hold():
    rng = np.random.default_rng(0)
    features, labels = rng.normal(size=(100, 5)), np.arange(100) % 45
    detector = NoveltyDetector(RMDScorer(shrinkage=0.5)).fit(features, labels)
    assert np.isfinite(detector.offset_)
    groups = np.arange(100) // 4
    grouped = NoveltyDetector(KNNScorer()).fit(features, np.arange(100) % 2, groups=groups)
    assert np.isfinite(grouped.offset_)


class _Ready(BaseEstimator):
    """Scores that are there already: training and new samples are exchangeable."""

    def fit(self, X, y=None):
        self.n_features_in_ = 1
        return self

    def score_samples(self, X):
        return np.asarray(X)[:, 0]


@pytest.mark.slow
@pytest.mark.parametrize("n", [20, 40, 60, 99])
def test_few_samples_keep_the_rate(n):
    rng = np.random.default_rng(0)
    rates = [
        norm.cdf(NoveltyDetector(_Ready(), cv=2).fit(rng.normal(size=(n, 1))).offset_)
        for _ in range(400)
    ]
    # Halfway between two scores it would be .065, .058, .057, .054.
    assert np.mean(rates) == pytest.approx(0.05, abs=3 * np.std(rates) / 20)


@pytest.mark.slow
def test_scores_of_minus_infinity_make_no_false_alarms():
    rng = np.random.default_rng(0)
    tophat = KernelDensity(kernel="tophat", bandwidth=0.5)
    with pytest.warns(SkcalibWarning, match="no sample will be called an outlier"):
        detector = NoveltyDetector(tophat).fit(rng.normal(size=(100, 4)))
    new = rng.normal(size=(500, 4))
    assert np.isneginf(detector.score_samples(new)).mean() > 0.5
    assert (detector.predict(new) == 1).all()
    assert not np.isnan(detector.decision_function(new)).any()
    # Rare enough, they are outliers.
    wide = NoveltyDetector(KernelDensity(kernel="tophat", bandwidth=1.5)).fit(
        rng.normal(size=(400, 2))
    )
    assert 0.02 < (wide.predict(rng.normal(size=(4000, 2))) == -1).mean() < 0.08


def test_duplicates_are_familiar_unless_groups_are_given():
    once = NoveltyDetector(KNNScorer()).fit(X)
    rows = np.append(np.arange(150), np.arange(150))
    with pytest.warns(SkcalibWarning, match="150 of the 300 rows of X equal .* pass groups="):
        NoveltyDetector(KNNScorer()).fit(X[rows])
    twice = NoveltyDetector(KNNScorer()).fit(X[rows], groups=rows)
    # Not 0, which it would be if every sample were its own neighbor.
    assert twice.offset_ < 0.5 * once.offset_


@pytest.mark.slow
def test_groups_of_any_kind_are_groups():
    text = np.array([None if i < 5 else f"flower {i // 5}" for i in range(150)], dtype=object)
    found = [
        NoveltyDetector(RMDScorer()).fit(X, names, groups=groups).offset_
        for groups in (np.arange(150) // 5, text)
    ]
    assert found[0] == pytest.approx(found[1], rel=0.2)
