"""What the data show to be wrong is told, and right models are never accused."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax

from skcalib.labels import LabelIssueFinder
from skcalib.metrics import (
    calibration_error_interval,
    compare_calibration,
    expected_calibration_error,
    get_scorer,
    ks_calibration_error,
    smooth_reliability_curve,
)
from skcalib.plots import ReliabilityDisplay
from skcalib.posthoc import (
    BetaCalibration,
    IsotonicCalibration,
    PostHocCalibratedClassifier,
    TemperatureScaling,
)
from skcalib.report import CalibrationReport
from skcalib.utils import SkcalibWarning
from skcalib.utils.checking._guard import (
    _listed,
    doubt_of_columns,
    doubt_of_rows,
    misplaced_columns,
)


def right(n=800, k=4, sharpness=1.5, seed=0):
    rng = np.random.default_rng(seed)
    proba = softmax(sharpness * rng.normal(size=(n, k)), axis=1)
    return (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1), proba


def draw(kind, rng):
    """A model whose columns are in order: calibrated, overconfident, or of other frequencies."""
    n, k = int(np.exp(rng.uniform(np.log(20), np.log(3000)))), int(rng.integers(2, 13))
    sharpness = {"weak": rng.uniform(0, 0.3), "useless": 0.0}.get(kind, rng.uniform(0.1, 2))
    if kind == "tiny":
        n = int(rng.integers(4, 40))
    if kind == "many":
        k = int(rng.integers(20, 100))
        n = int(rng.integers(k, 20 * k))
    k = 2 if kind == "two" else k
    frequency = np.log(rng.dirichlet(np.full(k, 0.3 if kind in ("rare", "many") else 3)) + 1e-6)
    logits = sharpness * rng.normal(size=(n, k)) + frequency
    proba = softmax(logits, axis=1)
    y = (proba.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, k - 1)
    if kind == "useless":
        proba = softmax(rng.uniform(0, 4) * rng.normal(size=(n, k)) + frequency, axis=1)
    if kind == "overconfident":
        shift = rng.uniform(0, 2) * rng.normal(size=k)
        proba = softmax(rng.uniform(0.3, 4) * logits + shift, axis=1)
    if kind == "shifted":
        weight = rng.dirichlet(np.full(k, 0.5))[y] + 1e-3
        rows = rng.choice(n, n, p=weight / weight.sum())
        proba, y = proba[rows], y[rows]
    return y, proba


KINDS = ["weak", "rare", "two", "tiny", "useless", "many", "overconfident", "shifted"]


@pytest.mark.parametrize("kind", KINDS)
def test_right_models_are_never_accused(kind):
    rng = np.random.default_rng(7)
    for number in range(25):
        y, proba = draw(kind, rng)
        k = proba.shape[1]
        given = proba[:, 1] if k == 2 and number % 2 else proba
        assert doubt_of_columns(given, y, np.arange(k)) is None


def test_a_rare_class_within_another_is_not_accused():
    # Where b is sure there is a little a: samples of a have larger p_b than those of b have.
    rng = np.random.default_rng(0)
    b = rng.choice([0.95, 0.2], 20_000)
    a = np.where(b > 0.5, 0.03, 0.0)
    proba = np.column_stack([a, b, 1 - a - b])
    y = (proba.cumsum(axis=1) < rng.random((len(b), 1))).sum(axis=1)
    assert proba[y == 0, 1].mean() + proba[y == 1, 0].mean() > (
        proba[y == 0, 0].mean() + proba[y == 1, 1].mean()
    )
    assert misplaced_columns(proba, y) is None


def test_left_out_frequencies_are_not_accused():
    # Every sample that is left out makes its own class less frequent.
    for n in (20, 60, 200):
        y = np.arange(n) % 2
        rest = (y.sum() - y) / (n - 1)
        assert doubt_of_columns(rest, y, np.arange(2)) is None


@pytest.mark.parametrize("order", [[1, 0, 2, 3], [3, 0, 1, 2], [1, 0, 3, 2]])
def test_another_order_is_told_and_named(order):
    y, proba = right()
    with pytest.warns(SkcalibWarning, match="in another order") as caught:
        expected_calibration_error(y, proba[:, order])
    assert str(order) in str(caught[0].message)
    # What the message says to do is right.
    assert expected_calibration_error(y, proba[:, order], labels=order) == pytest.approx(
        expected_calibration_error(y, proba)
    )


def test_two_columns_of_many_are_named():
    y, proba = right(n=3000, k=20, sharpness=3)
    order = np.arange(20)
    order[[4, 11]] = 11, 4
    doubt = doubt_of_columns(proba[:, order], y, np.array(list("abcdefghijklmnopqrst")))
    assert "column 4 that of 'l', column 11 that of 'e'. If so" in doubt


def test_the_other_class_is_told():
    y, proba = right(k=2)
    with pytest.warns(SkcalibWarning, match=r"probability of 0, not of 1.*pass 1 - y_proba"):
        ks_calibration_error(y, 1 - proba[:, 1])
    with pytest.warns(SkcalibWarning, match="in another order"):
        expected_calibration_error(y, proba[:, ::-1])


@pytest.mark.parametrize("k", [100, 130])
def test_metrics_see_the_order_of_many_columns(k):
    y, proba = right(n=12 * k, k=k, sharpness=3)
    names = [f"class {i}" for i in range(k)]
    labels = np.array(names)[y]
    with pytest.warns(SkcalibWarning, match="in another order"):  # sorted as text
        expected_calibration_error(labels, proba)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected_calibration_error(labels, proba, labels=names)


def test_metrics_see_that_some_of_many_columns_have_moved():
    y, proba = right(n=2000, k=100, sharpness=3)
    order = np.arange(100)
    order[:40] = np.roll(order[:40], 1)
    with pytest.warns(SkcalibWarning, match="in another order"):
        expected_calibration_error(y, proba[:, order])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected_calibration_error(y, proba)


def test_the_probability_of_the_answer_is_told():
    y, proba = right(k=2)
    sentence = r"y_proba is never below 0.5.*pass that of 1, or whether the predictions are right"
    with pytest.warns(SkcalibWarning, match=sentence):
        expected_calibration_error(y, proba.max(axis=1))
    with pytest.warns(SkcalibWarning, match="X is never below 0.5"):
        TemperatureScaling(input="proba").fit(proba.max(axis=1)[:, None], y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected_calibration_error(y == proba.argmax(axis=1), proba.max(axis=1))
        expected_calibration_error((y == proba.argmax(axis=1)).astype(int), proba.max(axis=1))


def test_probabilities_above_a_half_are_not_accused():
    rng = np.random.default_rng(0)
    for shift in (0.0, 0.1, 0.2):  # of the frequency: too sure, but of the right thing
        p = rng.uniform(0.5, 1, 2000)
        y = (rng.random(2000) < p - shift).astype(int)
        assert doubt_of_columns(p, y, np.arange(2)) is None


def test_shares_and_indicators_that_are_swapped_are_told():
    y, proba = right()
    with pytest.warns(SkcalibWarning, match="y_true and y_proba seem swapped"):
        expected_calibration_error(proba, np.eye(4)[y])
    with pytest.raises(ValueError, match="y_true and y_proba seem swapped"):
        expected_calibration_error(proba, np.eye(4, dtype=int)[y])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected_calibration_error(np.eye(4)[y], proba)
        expected_calibration_error(np.eye(4)[y], np.eye(4)[y])


def test_scores_of_the_opposite_sign_are_told():
    y, proba = right()
    with pytest.warns(SkcalibWarning, match="far below chance"):
        IsotonicCalibration().fit(-np.log(proba), y)


def test_groups_that_err_together_are_no_evidence():
    # Ten patients of two classes, a model that knows nothing of them: by chance it may be wrong
    # of most patients, and of all their samples.
    rng = np.random.default_rng(1)
    accused, with_groups = 0, 0
    for _ in range(60):
        patient = np.repeat(np.arange(10), 50)
        y = rng.permutation([0, 1] * 5)[patient]
        p = rng.uniform(size=10)[patient]
        accused += doubt_of_columns(p, y, np.arange(2)) is not None
        with_groups += doubt_of_columns(p, y, np.arange(2), groups=patient) is not None
    assert accused > 10
    assert with_groups == 0


def test_calibrators_and_finder_tell():
    y, proba = right(n=400, k=3)
    wrong = proba[:, [2, 0, 1]]
    for fit in (
        BetaCalibration(input="proba").fit,
        IsotonicCalibration(input="proba").fit,
        LabelIssueFinder("precomputed").fit,
    ):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            fit(wrong, y)
        told = [str(w.message) for w in caught if "in another order" in str(w.message)]
        assert len(told) == 1
        assert "[2, 0, 1]" in told[0]


def test_a_stack_tells_once():
    from skcalib.posthoc import StackedCalibration

    y, proba = right(n=200, k=3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        StackedCalibration(input="proba").fit(proba[:, [1, 2, 0]], y)
    assert sum("in another order" in str(w.message) for w in caught) == 1


def test_what_is_made_out_of_fold_is_not_accused():
    from sklearn.dummy import DummyClassifier
    from sklearn.model_selection import LeaveOneOut

    X, y = np.arange(24.0)[:, np.newaxis], np.arange(24) % 2
    PostHocCalibratedClassifier(
        DummyClassifier(strategy="prior"), calibrator="isotonic", cv=LeaveOneOut()
    ).fit(X, y)
    get_scorer("neg_expected_calibration_error")(DummyClassifier().fit(X, y), X, 1 - y)


class TestTextOfNumbers:
    def test_unnamed_columns_in_the_order_of_the_numbers_are_refused(self):
        y, proba = right(k=12)
        for call in (
            lambda: expected_calibration_error(y.astype(str), proba),
            lambda: LabelIssueFinder("precomputed").fit(proba, y.astype(str)),
        ):
            with pytest.raises(ValueError, match=r"labels must name.*numbers as text"):
                call()
        with pytest.raises(ValueError, match=r"classes must name.*classes=\['0', '1', '2'"):
            TemperatureScaling(input="proba").fit(proba, y.astype(str))

    def test_the_order_of_the_text_is_taken_where_it_fits(self):
        y, proba = right(k=12)
        by_text = proba[:, np.argsort([str(c) for c in range(12)])]
        expected = expected_calibration_error(y, proba)
        for given in (by_text, pd.DataFrame(by_text)):
            assert expected_calibration_error(y.astype(str), given) == pytest.approx(expected)
        TemperatureScaling(input="proba").fit(by_text, y.astype(str))

    def test_columns_that_are_numbered_match(self):
        y, proba = right(k=12)
        expected = expected_calibration_error(y, proba)
        frame = pd.DataFrame(proba)
        assert expected_calibration_error(y.astype(str), frame) == pytest.approx(expected)
        kept = y < 9  # also where classes are absent
        assert expected_calibration_error(y[kept].astype(str), frame[kept]) == pytest.approx(
            expected_calibration_error(y[kept], proba[kept])
        )


class TestLabelsWithout0:
    def test_labels_that_count_from_1_are_refused(self):
        y, proba = right()
        kept = y < 3  # without the top grade
        with pytest.raises(ValueError, match=r"labels must name the 4 columns.*range\(1, 5\)"):
            expected_calibration_error(y[kept] + 1, proba[kept])
        with pytest.raises(ValueError, match=r"classes must name the 4 columns"):
            TemperatureScaling(input="proba").fit(proba[kept], y[kept] + 1)
        value = expected_calibration_error(y[kept] + 1, proba[kept], labels=range(1, 5))
        assert value == pytest.approx(expected_calibration_error(y[kept], proba[kept]))

    @pytest.mark.parametrize("present", [(0,), (0, 1), (0, 2), (1, 2)])
    def test_they_are_refused_where_several_classes_are_absent_if_they_fit(self, present):
        y, proba = right(k=5, sharpness=3)
        kept = np.isin(y, present)
        with pytest.raises(ValueError, match=r"labels must name the 5 columns.*range\(1, 6\)"):
            expected_calibration_error(y[kept] + 1, proba[kept])
        if 0 not in present:
            value = expected_calibration_error(y[kept], proba[kept])
            assert value == expected_calibration_error(y[kept], proba[kept], labels=range(5))

    def test_labels_that_count_from_0_are_taken(self):
        y, proba = right()
        for kept in (y > 0, (y == 1) | (y == 3), y == 2):
            assert np.isfinite(expected_calibration_error(y[kept], proba[kept]))

    def test_what_cannot_be_told_is_refused(self):
        with pytest.raises(ValueError, match="may count from 0 or from 1"):
            expected_calibration_error([1, 2, 1, 2], np.full((4, 3), 1 / 3))


class TestRowsInAnotherOrder:
    def test_indexes_in_another_order_are_refused(self):
        y, proba = right(n=60)
        index = [f"i{k}" for k in range(60)]
        labels, frame = pd.Series(y, index), pd.DataFrame(proba, index)
        mixed = np.random.default_rng(0).permutation(60)
        weight = pd.Series(1.0, index).iloc[mixed]
        for call in (
            lambda: expected_calibration_error(labels, frame.iloc[mixed]),
            lambda: expected_calibration_error(labels, proba, sample_weight=weight),
            lambda: calibration_error_interval(labels, proba, groups=weight),
            lambda: TemperatureScaling(input="proba").fit(frame.iloc[mixed], labels),
            lambda: LabelIssueFinder("precomputed").fit(frame.iloc[mixed], labels),
        ):
            with pytest.raises(ValueError, match=r"same order, got indexes.*\.loc\["):
                call()

    def test_an_index_of_nobody_counts_where_the_data_agree(self):
        y, proba = right()
        mixed = np.random.default_rng(0).permutation(len(y))
        labels, frame = pd.Series(y), pd.DataFrame(proba)
        with pytest.raises(ValueError, match="same order"):
            expected_calibration_error(labels, frame.iloc[mixed])
        # Labels of shuffled rows, and the probabilities that a model gave them.
        shuffled = labels.iloc[mixed]
        assert expected_calibration_error(shuffled, pd.DataFrame(proba[mixed])) == pytest.approx(
            expected_calibration_error(y, proba)
        )

    def test_other_entries_say_nothing(self):
        y, proba = right(n=60)
        labels = pd.Series(y, index=np.arange(60) + 100)
        assert expected_calibration_error(labels, pd.DataFrame(proba)) >= 0


def test_a_series_called_after_the_negative_class_is_refused():
    y, proba = right(n=100, k=2)
    with pytest.raises(ValueError, match=r"positive class, 1, got a Series called 'prob_0': pass"):
        expected_calibration_error(y, pd.Series(proba[:, 0], name="prob_0"))
    # Of model 0, or of class 1: the values show it.
    y, proba = right(k=2, sharpness=3)
    for name in ("prob_0", "prob_1", "score", 0):
        expected_calibration_error(y, pd.Series(proba[:, 1], name=name))


@pytest.mark.parametrize("n", [1, 40])
def test_a_series_called_after_the_negative_class_may_hold_what_is_no_number(n):
    y = np.arange(n) % 2
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ValueError, match="y_proba must"):
            expected_calibration_error(y, pd.Series(np.full(n, np.nan), name="prob_0"))


def test_labels_that_fit_both_counts_alike_are_refused():
    y = 1 + np.arange(60) % 4
    proba = np.full((60, 5), 0.02)
    proba[np.arange(60), y] = proba[np.arange(60), y - 1] = 0.47
    with pytest.raises(ValueError, match="may count from 0 or from 1"):
        expected_calibration_error(y, proba)


def test_a_classifier_that_misbehaves_is_named():
    from sklearn.base import BaseEstimator, ClassifierMixin

    class Sloppy(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), 0.51)

    X, y = np.zeros((20, 1), dtype=np.float32) + np.arange(20)[:, np.newaxis], np.arange(20) % 2
    with pytest.raises(ValueError, match=r"predict_proba of Sloppy must sum to 1.*float64 may"):
        PostHocCalibratedClassifier(Sloppy(), cv=2).fit(X.astype(np.float32), y)


def test_a_frozen_classifier_of_other_labels_is_told_by_selective():
    from sklearn.frozen import FrozenEstimator
    from sklearn.linear_model import LogisticRegression

    from skcalib.selection import SelectiveClassifier

    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
    frozen = FrozenEstimator(LogisticRegression().fit(X, y))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        SelectiveClassifier(frozen, risk=0.5).fit(X, 1 - y)
    told = [str(w.message) for w in caught if "in another order" in str(w.message)]
    assert len(told) == 1
    assert "y has other labels than those" in told[0]
    SelectiveClassifier(frozen, risk=0.4).fit(X, y)


def test_what_breaks_results_down_has_the_rows_of_the_labels():
    from skcalib.metrics import groupwise_calibration_error

    y, proba = right(n=60)
    labels = pd.Series(y, index=np.arange(60) + 7)
    by = pd.Series(np.arange(60) % 2, index=labels.index).iloc[::-1]
    with pytest.raises(ValueError, match=r"y_true and by must have their rows in the same order"):
        groupwise_calibration_error(labels, proba, by)


def test_of_a_dozen_classes_all_columns_are_listed():
    for n in (12, 13):
        y, proba = right(n=4000, k=n, sharpness=3)
        order = [1, 0, *range(2, n)]
        doubt = doubt_of_columns(proba[:, order], y, np.arange(n))
        assert (str(order) in doubt) == (n == 12)
        assert ("column 0 that of 1, column 1 that of 0. If so" in doubt) == (n == 13)


@pytest.mark.parametrize("n_moved", [2, 8, 9])
def test_of_many_classes_the_first_columns_that_move_are_listed(n_moved):
    names = [f"c{k:02}" for k in range(20)]
    order = [*names[1:n_moved], names[0], *names[n_moved:]]
    told = _listed(order, names)
    assert told.count("that of") == min(n_moved, 8)
    assert told.startswith("column 0 that of 'c01'")
    assert told.endswith("...") == (n_moved > 8)


def test_rows_in_another_order_are_told():
    y, proba = right(sharpness=3)
    shuffled = np.random.default_rng(0).permutation(len(y))
    told = "belong to other rows.*Look for rows in another order"
    with pytest.warns(SkcalibWarning, match=told):
        expected_calibration_error(y[shuffled], proba)
    with pytest.warns(SkcalibWarning, match=f"X seems to {told}"):
        TemperatureScaling(input="proba").fit(proba, y[shuffled])
    two = np.column_stack([proba[:, :2].sum(axis=1), proba[:, 2:].sum(axis=1)])
    with pytest.warns(SkcalibWarning, match=told):
        ks_calibration_error(y[shuffled] >= 2, two[:, 1])


def test_most_shuffles_of_a_few_hundred_rows_are_told():
    n_told = 0
    for seed in range(30):
        y, proba = right(n=300, k=3, sharpness=1.0, seed=seed)
        assert doubt_of_rows(proba, y) is None
        n_told += doubt_of_rows(proba, np.random.default_rng(seed).permutation(y)) is not None
    assert n_told >= 22


def test_shares_as_weighted_rows_are_in_order_and_told_if_not():
    # A row for every class of a sample: without the weights, its labels say nothing.
    rng = np.random.default_rng(0)
    shares = rng.dirichlet(np.full(4, 0.4), 400)
    rows, y = np.repeat(np.arange(400), 4), np.tile(np.arange(4), 400)
    given = {"sample_weight": 2 * shares.ravel()}
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert expected_calibration_error(y, shares[rows], **given) == pytest.approx(0, abs=1e-12)
        assert CalibrationReport.from_predictions(y, shares[rows], groups=rows, **given)
        IsotonicCalibration(input="proba").fit(shares[rows], y, **given)
    moved = shares[rng.permutation(400)][rows]
    turned = shares[:, [1, 2, 0, 3]][rows]
    for proba, told in ((moved, "belong to other rows"), (turned, "columns .*in another order")):
        with pytest.warns(SkcalibWarning, match=told):
            expected_calibration_error(y, proba, **given)
        with pytest.warns(SkcalibWarning, match=told):
            IsotonicCalibration(input="proba").fit(proba, y, **given)


def test_what_is_no_probability_is_an_error_and_no_other_order():
    y, proba = right(sharpness=3, k=3)
    shuffled = np.random.default_rng(0).permutation(y)
    for row in ([-0.25, 0.65, 0.6], [1.25, 0, 0]):
        wrong = proba.copy()
        wrong[5] = row
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            for metric in (expected_calibration_error, smooth_reliability_curve):
                with pytest.raises(ValueError, match=r"y_proba must .*\[0, 1\]"):
                    metric(shuffled, wrong)


def test_rows_without_weight_tell_nothing():
    y, proba = right(sharpness=3)
    half = np.arange(len(y)) < len(y) // 2
    y = np.where(half, y, np.random.default_rng(0).permutation(y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected_calibration_error(y, proba, sample_weight=half)
    with pytest.warns(SkcalibWarning, match="belong to other rows"):
        expected_calibration_error(y, proba, sample_weight=~half)
    # Many columns, and next to no rows that count: nothing is known of them.
    many = np.eye(150)[np.arange(600) % 150] * 0.5 + 0.5 / 150
    weight = np.eye(600)[3]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        expected_calibration_error((np.arange(600) + 1) % 150, many, sample_weight=weight)
        expected_calibration_error(np.arange(600) % 150, many, sample_weight=np.ones(600))
    with pytest.warns(SkcalibWarning, match="in another order"):
        expected_calibration_error((np.arange(600) + 1) % 150, many, sample_weight=np.ones(600))


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "useless"])
def test_rows_of_models_that_know_little_are_not_accused(kind):
    rng = np.random.default_rng(8)
    for _ in range(25):
        y, proba = draw(kind, rng)
        assert doubt_of_rows(proba, y) is None
        assert doubt_of_rows(np.full_like(proba, 1 / proba.shape[1]), y) is None


def test_too_sure_models_are_not_accused():
    # Ten times too sure, and right in half of the samples of five classes.
    rng = np.random.default_rng(0)
    for n in (6, 20, 60, 200, 600):
        logits = 2 * rng.normal(size=(n, 5))
        y = (softmax(logits, axis=1).cumsum(axis=1) < rng.random((n, 1))).sum(axis=1).clip(0, 4)
        assert doubt_of_rows(softmax(10 * logits, axis=1), y) is None


def test_rows_of_groups_that_err_together_are_no_evidence():
    rng = np.random.default_rng(0)
    told, with_groups = 0, 0
    for _ in range(300):
        patient = np.repeat(np.arange(8), 40)
        p = rng.choice([0.03, 0.97], size=8)
        y = (rng.random(8) < 0.5 + 0.5 * (p - 0.5)).astype(int)  # knows half of what it states
        told += doubt_of_rows(p[patient], y[patient]) is not None
        with_groups += doubt_of_rows(p[patient], y[patient], groups=patient) is not None
    assert told > 10
    assert with_groups == 0


def test_samples_of_one_class_say_nothing_about_rows():
    y, proba = right(n=4000, sharpness=2)
    rows = np.flatnonzero(y == 0)
    assert doubt_of_rows(proba[rows], y[rows]) is None
    rows = np.append(rows, np.flatnonzero(y == 1)[:3])
    assert doubt_of_rows(proba[rows], y[rows]) is None


def test_what_asks_several_metrics_tells_once():
    y, proba = right()
    for wrong in (proba[:, [1, 0, 2, 3]], right(seed=1)[1]):
        for ask in (
            ReliabilityDisplay.from_predictions,
            lambda y, p: compare_calibration(y, {"a": p}, n_resamples=19),
            lambda y, p: smooth_reliability_curve(y, p, n_resamples=19),
            lambda y, p: calibration_error_interval(y, p, n_resamples=19),
        ):
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                ask(y, wrong)
            assert len(caught) == 1
