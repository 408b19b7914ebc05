import pickle

import numpy as np
import pandas as pd
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline

from skcalib.selection import MaxEntropySelector

X, y = load_iris(return_X_y=True)


def dirichlet(n, n_classes=4, seed=0):
    return np.random.RandomState(seed).dirichlet(np.full(n_classes, 0.5), size=n)


def naive_scores(proba, criterion):
    scores = []
    for row in proba:
        top, second = sorted(row)[-1], sorted(row)[-2]
        if criterion == "entropy":
            scores.append(-sum(p * np.log(p) for p in row if p > 0))
        elif criterion == "margin":
            scores.append(second - top)
        else:
            scores.append(1 - top)
    return np.array(scores)


@pytest.mark.parametrize("criterion", ["entropy", "margin", "least_confidence"])
def test_scores_and_choice_follow_the_definition(criterion):
    proba = dirichlet(57)
    selector = MaxEntropySelector(fraction=0.3, criterion=criterion).fit(proba)
    scores = naive_scores(proba, criterion)
    np.testing.assert_allclose(selector.transform(proba).ravel(), scores, rtol=1e-10)
    order = sorted(range(57), key=lambda i: (-scores[i], i))
    np.testing.assert_array_equal(selector.get_support(indices=True), sorted(order[:17]))


@pytest.mark.slow
@given(
    values=st.lists(st.integers(1, 5), min_size=1, max_size=40),
    fraction=st.floats(0.01, 1.0),
)
def test_ties_are_broken_by_row_order(values, fraction):
    confidence = 0.5 + np.array(values) / 10
    proba = np.column_stack([confidence, 1 - confidence])
    mask = MaxEntropySelector(fraction=fraction).fit(proba).get_support()
    count = max(1, int(fraction * len(values) + 0.5))
    expected = sorted(sorted(range(len(values)), key=lambda i: (values[i], i))[:count])
    np.testing.assert_array_equal(np.flatnonzero(mask), expected)


@pytest.mark.slow
@given(
    row=st.lists(st.floats(1e-6, 1), min_size=2, max_size=30),
    order=st.randoms(use_true_random=False),
    dtype=st.sampled_from([np.float32, np.float64]),
)
def test_rows_equal_up_to_the_order_of_the_classes_tie(row, order, dtype):
    rows = [np.array(row, dtype=dtype) / sum(row)]
    for _ in range(5):
        rows.append(rows[0][order.sample(range(len(row)), len(row))])
    for criterion in ("entropy", "margin", "least_confidence"):
        selector = MaxEntropySelector(n_samples=2, criterion=criterion).fit(np.array(rows))
        assert len(set(selector.scores_)) == 1
        np.testing.assert_array_equal(selector.get_support(indices=True), [0, 1])


def test_three_orders_of_one_row():
    a, b, c = 0.6482021419113102, 0.35166006400659455, 0.00013779408209523564
    selector = MaxEntropySelector(n_samples=1).fit(np.array([[a, b, c], [c, a, b], [b, c, a]]))
    np.testing.assert_array_equal(selector.get_support(), [True, False, False])


def test_a_number_a_fraction_or_seven_tenths():
    assert MaxEntropySelector(n_samples=7).fit(dirichlet(20)).get_support().sum() == 7
    assert MaxEntropySelector(fraction=0.5).fit(dirichlet(20)).get_support().sum() == 10
    assert MaxEntropySelector().fit(dirichlet(20)).get_support().sum() == 14
    assert MaxEntropySelector(n_samples=7, fraction=0.5).fit(dirichlet(20)).support_.sum() == 7
    assert MaxEntropySelector(fraction=1e-9).fit(dirichlet(20)).get_support().sum() == 1


def test_fraction_one_keeps_all():
    assert MaxEntropySelector(fraction=1.0).fit(dirichlet(20)).get_support().all()


def test_estimator_is_fitted_as_a_clone():
    model = GaussianNB()
    selector = MaxEntropySelector(model, fraction=0.2).fit(X, y)
    assert not hasattr(model, "classes_")
    np.testing.assert_allclose(
        selector.scores_, naive_scores(clone(model).fit(X, y).predict_proba(X), "entropy")
    )


def test_frozen_estimator_is_used_as_it_is():
    model = GaussianNB().fit(X[::2], y[::2])
    selector = MaxEntropySelector(FrozenEstimator(model)).fit(X, y)
    np.testing.assert_allclose(
        selector.scores_, naive_scores(model.predict_proba(X), "entropy"), atol=1e-12
    )


@pytest.mark.slow
def test_lists_and_sparse_features():
    model = LogisticRegression(max_iter=2000, tol=1e-9)
    expected = MaxEntropySelector(model).fit(X, y)
    for data in (X.tolist(), csr_array(X)):
        selector = MaxEntropySelector(model).fit(data, y.tolist())
        np.testing.assert_allclose(selector.scores_, expected.scores_, rtol=1e-3)
        assert selector.select(data, y)[1].shape == (105,)
    proba = dirichlet(20)
    np.testing.assert_array_equal(
        MaxEntropySelector().fit(proba.tolist()).scores_, MaxEntropySelector().fit(proba).scores_
    )


def test_fit_params_reach_the_estimator():
    weight = np.random.RandomState(0).uniform(size=len(y))
    selector = MaxEntropySelector(GaussianNB()).fit(X, y, sample_weight=weight)
    expected = GaussianNB().fit(X, y, sample_weight=weight).predict_proba(X)
    np.testing.assert_allclose(selector.scores_, naive_scores(expected, "entropy"), atol=1e-12)


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_samples_of_weight_zero_are_neither_counted_nor_chosen(estimator):
    data, labels = (dirichlet(60), None) if estimator is None else (X, y)
    weight = np.random.RandomState(0).uniform(size=len(data)) * (np.arange(len(data)) % 3 > 0)
    selector = MaxEntropySelector(estimator, fraction=0.5).fit(data, labels, sample_weight=weight)
    kept = np.flatnonzero(weight)
    scores = selector.transform(data).ravel()
    np.testing.assert_array_equal(selector.scores_, scores)
    order = sorted(kept, key=lambda i: (-scores[i], i))
    expected = sorted(order[: round(len(kept) / 2)])
    np.testing.assert_array_equal(selector.get_support(indices=True), expected)
    with pytest.raises(ValueError, match="n_samples must be at most the number of rows"):
        MaxEntropySelector(n_samples=len(kept) + 1).fit(dirichlet(len(data)), sample_weight=weight)


@pytest.mark.parametrize("estimator", [None, GaussianNB()])
def test_negative_weights_are_refused(estimator):
    weight = np.where(np.arange(150) == 4, -1.0, 1.0)
    data = dirichlet(150) if estimator is None else X
    with pytest.raises(ValueError, match=r"sample_weight must be finite and not .*-1\.0 in row 4"):
        MaxEntropySelector(estimator).fit(data, y, sample_weight=weight)


def test_weights_that_the_estimator_does_not_take():
    with pytest.raises(ValueError, match=r"estimator must have the parameter .*KNeighborsC"):
        MaxEntropySelector(KNeighborsClassifier()).fit(X, y, sample_weight=np.ones(150))


def test_metadata_routing():
    weight = np.random.RandomState(0).uniform(size=len(y))
    expected = MaxEntropySelector(GaussianNB()).fit(X, y, sample_weight=weight)
    with sklearn.config_context(enable_metadata_routing=True):
        asks = GaussianNB().set_fit_request(sample_weight=True)
        selector = MaxEntropySelector(asks).set_fit_request(sample_weight=True)
        routed = make_pipeline(selector).fit(X, y, sample_weight=weight)
        alone = MaxEntropySelector(GaussianNB().set_fit_request(sample_weight=False))
        alone.fit(X, y, sample_weight=weight)
    np.testing.assert_array_equal(routed[-1].scores_, expected.scores_)
    np.testing.assert_array_equal(
        alone.scores_, MaxEntropySelector(GaussianNB()).fit(X, y).scores_
    )


def test_labels_of_mixed_type_are_refused():
    with pytest.raises(ValueError, match="y must hold labels of one type, got int, str"):
        MaxEntropySelector(GaussianNB()).fit(X[:4], [0, 1, "a", "a"])


def test_random_is_repeatable_and_uniform_in_the_rows():
    proba = dirichlet(50)
    first = MaxEntropySelector(criterion="random", random_state=3).fit(proba)
    again = MaxEntropySelector(criterion="random", random_state=3).fit(proba)
    other = MaxEntropySelector(criterion="random", random_state=4).fit(proba)
    np.testing.assert_array_equal(first.support_, again.support_)
    assert (first.support_ != other.support_).any()
    assert first.support_.sum() == 35


def test_select_returns_the_same_rows_of_every_array():
    frame = pd.DataFrame(dirichlet(10), columns=list("abcd"))
    labels = np.array(list("zyxwvutsrq"))
    selector = MaxEntropySelector(n_samples=3).fit(frame)
    rows = selector.get_support(indices=True)
    chosen, chosen_labels, chosen_list = selector.select(frame, labels, list(range(10)))
    pd.testing.assert_frame_equal(chosen, frame.iloc[rows])
    np.testing.assert_array_equal(chosen_labels, labels[rows])
    assert chosen_list == rows.tolist()
    pd.testing.assert_frame_equal(selector.select(frame), frame.iloc[rows])


def test_select_scores_new_rows():
    selector = MaxEntropySelector(n_samples=1).fit(dirichlet(10))
    new = np.array([[1, 0, 0, 0], [0.25] * 4, [0.7, 0.3, 0, 0]])
    np.testing.assert_array_equal(selector.select(new), new[[1]])


def test_pandas_output_and_names():
    frame = pd.DataFrame(dirichlet(10), columns=list("abcd"))
    selector = MaxEntropySelector().set_output(transform="pandas").fit(frame)
    out = selector.transform(frame)
    assert list(out.columns) == ["entropy"]
    assert list(selector.feature_names_in_) == list("abcd")


def test_pickle():
    proba = dirichlet(10)
    selector = pickle.loads(pickle.dumps(MaxEntropySelector().fit(proba)))
    np.testing.assert_array_equal(selector.transform(proba).ravel(), selector.scores_)


@pytest.mark.parametrize(
    ("params", "proba", "message"),
    [
        ({"fraction": 0}, dirichlet(5), "'fraction' parameter .* must be a float in the range"),
        ({"fraction": 1.5}, dirichlet(5), "'fraction' parameter .* must be a float in the range"),
        ({"n_samples": 0}, dirichlet(5), "'n_samples' parameter .* must be an int in the range"),
        ({"n_samples": 6}, dirichlet(5), "n_samples must be at most the number of rows, 5, got 6"),
        ({"criterion": "best"}, dirichlet(5), "'criterion' parameter .* must be a str among"),
        ({"fraction": None}, dirichlet(5), "'fraction' parameter .* must be a float in the range"),
        ({}, np.ma.array(dirichlet(5), mask=True), "X must not be masked"),
        ({}, dirichlet(5) * 2, r"X must hold probabilities in \[0, 1\]"),
        ({}, dirichlet(5)[:, :3], "rows of X must sum to 1"),
        ({}, np.where(np.eye(4, dtype=bool), np.nan, 0.25), "X must not contain NaN"),
    ],
)
def test_bad_input(params, proba, message):
    with pytest.raises(ValueError, match=message):
        MaxEntropySelector(**params).fit(proba)


def test_fit_params_without_an_estimator():
    with pytest.raises(
        ValueError, match=r"estimator must be given with fit parameters \['epochs'\]"
    ):
        MaxEntropySelector().fit(dirichlet(5), epochs=3)


def test_select_arrays_of_other_length():
    selector = MaxEntropySelector().fit(dirichlet(5))
    with pytest.raises(ValueError, match="must have the same number of samples"):
        selector.select(dirichlet(5), [1, 2])


def test_estimator_without_probabilities():
    from sklearn.svm import LinearSVC

    with pytest.raises(ValueError, match="'predict_proba'"):
        MaxEntropySelector(LinearSVC()).fit(X, y)


@pytest.mark.parametrize("params", [{"fraction": 0.5, "n_samples": 151}, {"n_samples": 151}])
def test_a_wrong_number_is_an_error_before_the_estimator_is_fitted(params):
    class Slow(GaussianNB):
        def fit(self, X, y, sample_weight=None):
            raise AssertionError("fitted in vain")

    with pytest.raises(ValueError, match="n_samples must be"):
        MaxEntropySelector(Slow(), **params).fit(X, y)


def test_one_class():
    with pytest.raises(ValueError, match="at least two classes, got one class"):
        MaxEntropySelector(GaussianNB()).fit(X, np.zeros(150))


def test_logistic_regression_sees_hard_rows_between_classes():
    selector = MaxEntropySelector(LogisticRegression(max_iter=500), fraction=0.3).fit(X, y)
    # Setosa is linearly separable from the others: none of it is informative.
    assert (y[selector.support_] > 0).all()


@pytest.mark.slow
@pytest.mark.parametrize(
    "criterion",
    [
        "margin",
        *(pytest.param(x, marks=pytest.mark.long) for x in ("entropy", "least_confidence")),
    ],
)
def test_soft_choice_is_in_proportion_to_the_score(criterion):
    proba = np.array([[1.0, 0.0, 0.0], [0.8, 0.2, 0.0], [0.6, 0.4, 0.0], [0.4, 0.3, 0.3]])
    chosen = np.zeros(4)
    for seed in range(2000):
        selector = MaxEntropySelector(
            n_samples=1, criterion=criterion, sampling="soft", random_state=seed
        )
        chosen += selector.fit(proba).get_support()
    weight = naive_scores(proba, criterion) + (criterion == "margin")
    expected = weight / weight.sum()
    assert chosen[0] == 0
    error = np.sqrt(expected * (1 - expected) / 2000)
    assert (np.abs(chosen / 2000 - expected) <= 4 * error).all()


def test_soft_choice_is_without_replacement_and_repeatable():
    proba = dirichlet(200)
    selector = MaxEntropySelector(fraction=0.25, sampling="soft", random_state=3)
    support = selector.fit(proba).get_support()
    assert support.sum() == 50
    np.testing.assert_array_equal(clone(selector).fit(proba).get_support(), support)
    np.testing.assert_array_equal(selector.select(proba), proba[support])
    other = clone(selector).set_params(random_state=4).fit(proba).get_support()
    assert (other != support).any()
    top = MaxEntropySelector(fraction=0.25).fit(proba)
    assert top.scores_[support].mean() > top.scores_.mean()
    assert (top.get_support() != support).any()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_soft_draw_among_certain_samples_is_not_the_first_ones(dtype):
    proba = np.eye(2, dtype=dtype)[np.repeat([0, 1], 100)]  # sorted by class
    proba[[3, 150]] = 0.5
    for seed in range(5):
        selector = MaxEntropySelector(n_samples=42, sampling="soft", random_state=seed).fit(proba)
        assert selector.support_[[3, 150]].all()  # those of a score above 0
        assert 8 <= selector.support_[100:].sum() - 1 <= 32


def test_a_soft_draw_of_random_scores_draws_other_numbers():
    # With the numbers of the scores themselves the draw would be the top of the scores.
    options = {"criterion": "random", "fraction": 0.5, "random_state": 0}
    proba = dirichlet(200)
    soft = MaxEntropySelector(sampling="soft", **options).fit(proba).support_
    top = MaxEntropySelector(**options).fit(proba).support_
    # Of two independent halves, 50 are common on average; here the draw leans to larger scores.
    assert 60 <= (soft & top).sum() <= 90


@pytest.mark.parametrize("sampling", ["top", "soft"])
@pytest.mark.parametrize("criterion", ["entropy", "margin", "least_confidence"])
def test_choosing_by_scores_is_what_fit_does(criterion, sampling):
    proba = dirichlet(60)
    options = {"criterion": criterion, "sampling": sampling, "random_state": 0}
    selector = MaxEntropySelector(**options).fit(proba)
    scores = MaxEntropySelector(**options).score_proba(proba)
    np.testing.assert_array_equal(scores, selector.scores_)
    np.testing.assert_array_equal(selector.choose(scores), selector.support_)
    uniform = np.linspace(0.01, 0.99, 60)
    weight = scores + 1 if criterion == "margin" else scores
    key = np.log(weight) - np.log(-np.log(uniform)) if sampling == "soft" else scores
    expected = np.sort(np.argsort(-key, kind="stable")[:42])
    np.testing.assert_array_equal(np.flatnonzero(selector.choose(scores, uniform)), expected)


def test_random_scores_no_probabilities_and_soft_choices_need_a_seed():
    with pytest.raises(ValueError, match=r"criterion must not be .* got 'random'"):
        MaxEntropySelector(criterion="random").score_proba(dirichlet(5))
    with pytest.raises(NotFittedError):
        MaxEntropySelector(sampling="soft").choose(np.arange(5.0))
