"""DifficultySelector: the easiest samples, by any scorer, for any classifier."""

import pickle

import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta, chisquare
from sklearn import config_context
from sklearn.base import BaseEstimator, clone
from sklearn.datasets import load_digits, load_iris
from sklearn.decomposition import PCA
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from skcalib.datasets import flip_labels
from skcalib.difficulty import DifficultyMixin, KMeansPrototypeScorer, LossScorer, RMDScorer
from skcalib.selection import DifficultySelector, SubsetClassifier

X, y = load_iris(return_X_y=True)
names = np.array(["setosa", "versicolor", "virginica"])[y]


def test_keeps_the_easiest_or_the_hardest():
    difficulty = RMDScorer().fit(X, y).difficulty(X, y)
    order = np.argsort(difficulty, kind="stable")
    easiest = DifficultySelector(RMDScorer(), fraction=0.8).fit(X, names)
    np.testing.assert_array_equal(easiest.difficulty_, difficulty)
    np.testing.assert_array_equal(easiest.get_support(indices=True), np.sort(order[:120]))
    hardest = DifficultySelector(RMDScorer(), n_samples=30, keep="hardest").fit(X, names)
    np.testing.assert_array_equal(hardest.get_support(), ~easiest.get_support())
    assert DifficultySelector(RMDScorer()).fit(X, y).support_.sum() == 135
    both = DifficultySelector(RMDScorer(), n_samples=30, fraction=0.5).fit(X, y)
    assert both.support_.sum() == 30


def test_transform_scores_without_labels_and_keeps_all_samples():
    selector = DifficultySelector(RMDScorer()).fit(X, y).set_output(transform="pandas")
    scores = selector.transform(pd.DataFrame(X, index=range(100, 250)))
    assert scores.columns.tolist() == ["difficulty"]
    assert scores.index[0] == 100
    np.testing.assert_array_equal(scores["difficulty"], RMDScorer().fit(X, y).difficulty(X))


def test_select_scores_other_samples_anew():
    selector = DifficultySelector(RMDScorer(), fraction=0.5).fit(X[::2], names[::2])
    others, labels, number = X[1::2], names[1::2], list(range(75))
    difficulty = selector.scorer_.difficulty(others, labels)
    rows = np.sort(np.argsort(difficulty)[:38])
    chosen = selector.select(others, labels, number)
    np.testing.assert_array_equal(chosen[0], others[rows])
    np.testing.assert_array_equal(chosen[1], labels[rows])
    assert chosen[2] == rows.tolist()
    free = np.sort(np.argsort(selector.scorer_.difficulty(others))[:38])
    np.testing.assert_array_equal(selector.select(others), others[free])


def test_wrong_labels_are_left_out_of_a_classifier():
    X, y = load_digits(return_X_y=True)
    X = PCA(20, random_state=0).fit_transform(X / 16)
    given, wrong = flip_labels(y[:900], fraction=0.2, random_state=0)
    model = KNeighborsClassifier(1)
    clf = SubsetClassifier(model, DifficultySelector(RMDScorer(), fraction=0.8))
    clf.fit(X[:900], given)
    assert wrong[clf.selector_.get_support()].mean() < 0.02
    on_all = clone(model).fit(X[:900], given).score(X[900:], y[900:])
    assert clf.score(X[900:], y[900:]) > on_all + 0.1


def test_a_pipeline_embeds_then_scores():
    weight = np.random.default_rng(0).random(150) + 0.1
    pipeline = make_pipeline(StandardScaler(), make_pipeline(PCA(2), RMDScorer()))
    clf = SubsetClassifier(LogisticRegression(), DifficultySelector(pipeline))
    clf.fit(X, names, sample_weight=weight)
    Z = PCA(2).fit_transform(StandardScaler().fit_transform(X))
    alone = RMDScorer().fit(Z, names, sample_weight=weight).difficulty(Z, names)
    np.testing.assert_allclose(clf.selector_.difficulty_, alone, atol=1e-8)
    np.testing.assert_allclose(
        clf.selector_.transform(X)[:, 0], RMDScorer().fit(Z, names, weight).difficulty(Z)
    )


@pytest.mark.slow
def test_training_samples_are_scored_as_the_scorer_scores_them():
    scorer = LossScorer(LogisticRegression(max_iter=500), cv=3)
    selector = DifficultySelector(scorer).fit(X, names)
    np.testing.assert_array_equal(selector.difficulty_, clone(scorer).fit_difficulty(X, names))


def test_samples_of_weight_zero_are_not_counted_and_not_kept():
    weight = (np.arange(150) % 3).astype(float)
    selector = DifficultySelector(RMDScorer(), fraction=0.5).fit(X, y, sample_weight=weight)
    used = weight > 0
    assert selector.support_.sum() == 50
    assert not selector.support_[~used].any()
    assert np.isnan(selector.difficulty_[~used]).all()
    alone = DifficultySelector(RMDScorer(), fraction=0.5).fit(X[used], y[used], weight[used])
    np.testing.assert_array_equal(selector.support_[used], alone.support_)


def test_scorers_that_need_no_labels():
    scorer = KMeansPrototypeScorer(3, random_state=0)
    selector = DifficultySelector(scorer, fraction=0.9).fit(X)
    np.testing.assert_array_equal(selector.difficulty_, clone(scorer).fit(X).difficulty(X))


class Constant(DifficultyMixin, BaseEstimator):
    """The value of the only feature; knows no weights."""

    def fit(self, X, y=None):
        return self

    def difficulty(self, X, y=None):
        return np.asarray(X, dtype=float)[:, 0]


def test_ties_and_infinite_difficulty():
    values = np.array([[1.0], [np.inf], [1.0], [0.0], [1.0], [np.inf]])
    kept = DifficultySelector(Constant(), n_samples=3).fit(values).get_support(indices=True)
    assert kept.tolist() == [0, 2, 3]
    selector = DifficultySelector(Constant(), n_samples=1, keep="hardest").fit(values)
    assert selector.get_support(indices=True).tolist() == [1]


@pytest.mark.slow
def test_grid_search_over_the_fraction_in_a_pipeline():
    clf = SubsetClassifier(LogisticRegression(), DifficultySelector(RMDScorer()))
    grid = GridSearchCV(
        make_pipeline(StandardScaler(), clf),
        {"subsetclassifier__selector__fraction": [0.8, 1.0]},
        error_score="raise",
    ).fit(pd.DataFrame(X, columns=list("abcd")), names)
    assert grid.best_estimator_[-1].selector_.support_.sum() in (120, 150)


def test_metadata_routing():
    weight = np.random.default_rng(0).random(150) + 0.1
    expected = DifficultySelector(RMDScorer()).fit(X, y, sample_weight=weight)
    with config_context(enable_metadata_routing=True):
        scorer = RMDScorer().set_fit_request(sample_weight=True)
        selector = DifficultySelector(scorer).set_fit_request(sample_weight=True)
        model = LogisticRegression().set_fit_request(sample_weight=False)
        clf = SubsetClassifier(model, selector).fit(X, y, sample_weight=weight)
        unweighted = RMDScorer().set_fit_request(sample_weight=False)
        plain = DifficultySelector(unweighted).fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(clf.selector_.difficulty_, expected.difficulty_)
    np.testing.assert_array_equal(
        plain.difficulty_, DifficultySelector(RMDScorer()).fit(X, y).difficulty_
    )


def test_pickle():
    selector = DifficultySelector(RMDScorer()).fit(X, names)
    restored = pickle.loads(pickle.dumps(selector))
    np.testing.assert_array_equal(restored.transform(X), selector.transform(X))


@pytest.mark.parametrize(
    ("selector", "message"),
    [
        (DifficultySelector(RMDScorer(), fraction=0), "'fraction' parameter"),
        (DifficultySelector(RMDScorer(), keep="some"), "'keep' parameter"),
        (DifficultySelector(RMDScorer(), fraction=None), "'fraction' parameter"),
        (DifficultySelector(RMDScorer(), n_samples=151), "n_samples must be at most the number"),
        (DifficultySelector(RMDScorer(tol=-1)), "'tol' parameter"),
    ],
)
def test_bad_parameters(selector, message):
    with pytest.raises(ValueError, match=message):
        selector.fit(X, y)


def test_bad_input():
    with pytest.raises(TypeError, match="got LogisticRegression, which has no fit_difficulty"):
        DifficultySelector(LogisticRegression()).fit(X, y)
    with pytest.raises(ValueError, match="got NaN for 1 of 3"):
        DifficultySelector(Constant()).fit([[1.0], [np.nan], [2.0]])
    with pytest.raises(
        ValueError, match=r"scorer must have the parameter 'sample_weight' .*Constant"
    ):
        DifficultySelector(Constant()).fit(X[:, :1], sample_weight=np.ones(150))


def test_arrays_of_other_lengths_are_named():
    X, y = load_iris(return_X_y=True)
    selector = DifficultySelector(RMDScorer()).fit(X, y)
    with pytest.raises(ValueError, match=r"X, y and arrays must have .*, got 150, 150 and 149"):
        selector.select(X, y, y[1:])


class Given(DifficultyMixin, BaseEstimator):
    """The first feature is the difficulty."""

    def fit(self, X, y=None):
        return self

    def difficulty(self, X, y=None):
        return np.asarray(X, dtype=float)[:, 0]


def drawn(values, **options):
    selector = DifficultySelector(Given(), random_state=0, **options)
    return selector.fit(np.asarray(values)[:, None]).get_support()


def test_stratified_draws_equally_many_of_every_interval():
    rng = np.random.default_rng(0)
    values = np.concatenate([rng.uniform(0, 1, 900), rng.uniform(1, 50, 98), [0, 50]])
    support = drawn(values, sampling="stratified", n_samples=120)
    assert support.sum() == 120
    stratum = np.minimum(values.astype(int), 49)
    sizes, chosen = np.bincount(stratum), np.bincount(stratum[support], minlength=50)
    # All of a small interval; of the others as many as of any other, give or take one.
    share = chosen[chosen < sizes]
    assert (chosen[sizes <= share.min()] == sizes[sizes <= share.min()]).all()
    assert share.max() - share.min() <= 1


@pytest.mark.parametrize("fraction", [0.1, 0.5, 0.8])
def test_beta_draws_the_easier_the_fewer_are_kept(fraction):
    values = np.arange(2000.0)
    means = []
    for part in (fraction, min(fraction + 0.15, 0.95)):
        support = drawn(values, sampling="beta", fraction=part)
        assert support.sum() == round(part * 2000)
        means.append(values[support].mean())
    assert means[0] < means[1]
    assert 0 < (drawn(values, sampling="beta", fraction=0.5)[1000:]).sum() < 500


@pytest.mark.slow
def test_beta_draws_one_of_three_by_the_density_of_their_ranks():
    chosen = np.zeros(3)
    for seed in range(600):
        selector = DifficultySelector(Given(), sampling="beta", n_samples=1, random_state=seed)
        chosen += selector.fit([[1.0], [2.0], [3.0]]).get_support()
    b = 7.5 * (1 - (2 / 3) ** 2)
    density = beta(15 - b, b).pdf([5 / 6, 1 / 2, 1 / 6])
    assert chisquare(chosen[:2], chosen[:2].sum() * density[:2] / density[:2].sum()).pvalue > 1e-3
    assert chosen[2] <= 1  # one in fifty thousand


@pytest.mark.parametrize("sampling", ["stratified", "beta"])
def test_the_hardest_are_cut_off_and_the_draw_is_repeated(sampling):
    values = np.random.default_rng(1).normal(size=300)
    options = {"sampling": sampling, "fraction": 0.3, "cutoff": 0.2}
    support = drawn(values, **options)
    assert values[support].max() <= np.sort(values)[239]
    np.testing.assert_array_equal(support, drawn(values, **options))
    selector = DifficultySelector(Given(), random_state=0, **options).fit(values[:, None])
    np.testing.assert_array_equal(selector.select(values[:, None])[:, 0], values[support])
    assert (support != DifficultySelector(Given(), random_state=1, **options)
            .fit(values[:, None]).get_support()).any()  # fmt: skip
    with pytest.raises(ValueError, match="cutoff must leave the 270 samples to keep"):
        drawn(values, sampling=sampling, fraction=0.9, cutoff=0.2)


@pytest.mark.slow
def test_groups_go_to_the_folds_of_a_scorer():
    X, y = load_iris(return_X_y=True)
    groups = np.arange(150) % 10
    scorer = LossScorer(LogisticRegression(max_iter=500), cv=5)
    selector = DifficultySelector(scorer).fit(X, y, groups=groups)
    expected = clone(scorer).fit_difficulty(X, y, groups=groups)
    np.testing.assert_array_equal(selector.difficulty_, expected)
    assert not np.array_equal(clone(scorer).fit_difficulty(X, y), expected)
