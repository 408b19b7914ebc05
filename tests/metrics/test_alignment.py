"""What labels and probabilities show to be in another order is said, and never by a metric."""

import warnings

import numpy as np
import pandas as pd
import pytest
from scipy.special import softmax
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.dummy import DummyClassifier
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import LeaveOneOut

from skcalib import metrics
from skcalib.labels import LabelIssueFinder
from skcalib.metrics import check_alignment, expected_calibration_error

# The list of columns that move, and the order that is surely better: sentences show them rounded.
from skcalib.metrics._alignment import _list_order, find_misplaced_columns
from skcalib.posthoc import (
    BetaCalibration,
    GroupwiseCalibration,
    IsotonicCalibration,
    PostHocCalibratedClassifier,
    StackedCalibration,
    TemperatureScaling,
)
from skcalib.report import CalibrationReport
from skcalib.selection import SelectiveClassifier
from skcalib.utils import SkcalibWarning

ANOTHER_ORDER, OTHER_ROWS = "seem to be in another order", "rows in another order, or to a model"


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


def only(findings, *parts):
    """The single sentence, which has these parts."""
    assert len(findings) == 1
    for part in parts:
        assert part in findings[0]
    return findings[0]


def warned(call, part):
    """How many warnings of a call have this part."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return sum(part in str(w.message) for w in caught)


KINDS = ["weak", "rare", "two", "tiny", "useless", "many", "overconfident", "shifted"]


class TestRightData:
    @pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "useless"])
    def test_models_that_know_something(self, kind):
        for seed in (7, 8):
            rng = np.random.default_rng(seed)
            for number in range(25):
                y, proba = draw(kind, rng)
                given = proba[:, 1] if proba.shape[1] == 2 and number % 2 else proba
                assert check_alignment(y, given) == []

    def test_a_model_that_knows_nothing_may_seem_to_have_other_rows_but_no_other_columns(self):
        rng, found = np.random.default_rng(7), []
        for _ in range(25):
            y, proba = draw("useless", rng)
            found += check_alignment(y, proba)
            uninformed = np.full_like(proba, 1 / proba.shape[1])
            assert check_alignment(y, uninformed) == []
        assert 3 < len(found) < 25
        assert all("or to a model without skill" in finding for finding in found)

    def test_a_rare_class_within_another(self):
        # Where b is sure there is a little a: samples of a have larger p_b than those of b have.
        rng = np.random.default_rng(0)
        b = rng.choice([0.95, 0.2], 20_000)
        a = np.where(b > 0.5, 0.03, 0.0)
        proba = np.column_stack([a, b, 1 - a - b])
        y = (proba.cumsum(axis=1) < rng.random((len(b), 1))).sum(axis=1)
        assert proba[y == 0, 1].mean() + proba[y == 1, 0].mean() > (
            proba[y == 0, 0].mean() + proba[y == 1, 1].mean()
        )
        assert find_misplaced_columns(proba, y) is None

    def test_left_out_frequencies(self):
        # Every sample that is left out makes its own class less frequent.
        for n in (20, 60, 200):
            y = np.arange(n) % 2
            assert check_alignment(y, (y.sum() - y) / (n - 1)) == []

    def test_probabilities_above_a_half(self):
        rng = np.random.default_rng(0)
        for shift in (0.0, 0.1, 0.2):  # of the frequency: too sure, but of the right thing
            p = rng.uniform(0.5, 1, 2000)
            assert check_alignment((rng.random(2000) < p - shift).astype(int), p) == []

    def test_models_that_are_too_sure(self):
        # Ten times too sure, and right in half of the samples of five classes.
        rng = np.random.default_rng(0)
        for n in (6, 20, 60, 200, 600):
            logits = 2 * rng.normal(size=(n, 5))
            edges = softmax(logits, axis=1).cumsum(axis=1)
            y = (edges < rng.random((n, 1))).sum(axis=1).clip(0, 4)
            assert check_alignment(y, softmax(10 * logits, axis=1)) == []

    def test_samples_of_one_class(self):
        y, proba = right(n=4000, sharpness=2)
        rows = np.flatnonzero(y == 0)
        assert check_alignment(y[rows], proba[rows]) == []
        rows = np.append(rows, np.flatnonzero(y == 1)[:3])
        assert check_alignment(y[rows], proba[rows]) == []


class TestColumns:
    @pytest.mark.parametrize("order", [[1, 0, 2, 3], [3, 0, 1, 2], [1, 0, 3, 2]])
    def test_another_order_is_named(self, order):
        y, proba = right()
        only(check_alignment(y, proba[:, order]), ANOTHER_ORDER, str(order))
        # What the sentence says to do is right.
        assert check_alignment(y, proba[:, order], labels=order) == []
        assert expected_calibration_error(y, proba[:, order], labels=order) == pytest.approx(
            expected_calibration_error(y, proba)
        )

    def test_with_labels_the_order_of_the_columns_is_not_looked_at(self):
        y, proba = right()
        assert check_alignment(y, proba[:, [1, 0, 2, 3]], labels=range(4)) == []
        assert check_alignment(y == 1, 1 - (y == 1) * 0.9 - 0.05, labels=[0, 1]) != []  # rows

    def test_columns_that_are_named_by_the_labels_are_matched(self):
        y, proba = right(k=3)
        labels = np.array(list("cab"))[y]
        frame = pd.DataFrame(proba, columns=list("cab"))
        assert check_alignment(labels, frame) == []
        assert check_alignment(labels, frame[list("bca")]) == []
        only(check_alignment(labels, frame.set_axis(list("abc"), axis=1)), ANOTHER_ORDER)

    def test_two_columns_of_many_are_named(self):
        y, proba = right(n=3000, k=20, sharpness=3)
        order = np.arange(20)
        order[[4, 11]] = 11, 4
        labels = np.array(list("abcdefghijklmnopqrst"))[y]
        only(
            check_alignment(labels, proba[:, order]),
            "column 4 that of 'l', column 11 that of 'e'. If so",
        )

    def test_of_a_dozen_classes_all_columns_are_listed(self):
        for n in (12, 13):
            y, proba = right(n=4000, k=n, sharpness=3)
            order = [1, 0, *range(2, n)]
            (finding,) = check_alignment(y, proba[:, order])
            assert (str(order) in finding) == (n == 12)
            assert ("column 0 that of 1, column 1 that of 0. If so" in finding) == (n == 13)

    @pytest.mark.parametrize("n_moved", [2, 8, 9])
    def test_of_many_classes_the_first_columns_that_move_are_listed(self, n_moved):
        names = [f"c{k:02}" for k in range(20)]
        order = [*names[1:n_moved], names[0], *names[n_moved:]]
        text = _list_order(order, names)
        assert text.count("that of") == min(n_moved, 8)
        assert text.startswith("column 0 that of 'c01'")
        assert text.endswith("...") == (n_moved > 8)

    @pytest.mark.parametrize("k", [100, 130])
    def test_numbers_that_are_sorted_as_text(self, k):
        y, proba = right(n=12 * k, k=k, sharpness=3)
        labels = np.array([str(i) for i in range(k)])
        only(check_alignment(labels[y], proba), ANOTHER_ORDER)
        assert check_alignment(labels[y], proba, labels=labels) == []
        by_text = proba[:, np.argsort(labels)]
        assert check_alignment(labels[y], by_text) == []

    def test_some_of_many_columns_have_moved(self):
        y, proba = right(n=2000, k=100, sharpness=3)
        order = np.arange(100)
        order[:40] = np.roll(order[:40], 1)
        only(check_alignment(y, proba[:, order]), ANOTHER_ORDER)
        assert check_alignment(y, proba) == []

    def test_labels_that_count_from_1(self):
        y, proba = right()
        kept = y < 3  # without the top grade
        only(check_alignment(y[kept] + 1, proba[kept]), ANOTHER_ORDER)
        assert check_alignment(y[kept] + 1, proba[kept], labels=range(1, 5)) == []

    def test_the_probability_of_the_other_class(self):
        y, proba = right(k=2)
        only(check_alignment(y, 1 - proba[:, 1]), "probability of 0, not of 1", "pass 1 - y_proba")
        only(check_alignment(y, proba[:, ::-1]), ANOTHER_ORDER)
        # Of two texts the second is positive, as in classes_.
        labels = np.array(["no", "yes"])[y]
        assert check_alignment(labels, proba[:, 1]) == []
        only(check_alignment(labels, proba[:, 0]), "probability of 'no', not of 'yes'")
        assert check_alignment(labels, proba[:, 0], labels=["yes", "no"]) == []
        assert check_alignment(2 * y - 1, proba[:, 1]) == []
        with pytest.raises(ValueError, match="labels must name both classes"):
            check_alignment(["yes"] * 5, np.full(5, 0.7))

    def test_the_probability_of_the_predicted_class(self):
        y, proba = right(k=2)
        is_right = y == proba.argmax(axis=1)
        only(check_alignment(y, proba.max(axis=1)), "y_proba is never below 0.5", "that of 1, or")
        with pytest.warns(SkcalibWarning, match="X is never below 0.5"):
            TemperatureScaling(input="proba").fit(proba.max(axis=1)[:, None], y)
        for labels in (is_right, is_right.astype(int)):
            assert check_alignment(labels, proba.max(axis=1)) == []
        uninformed = np.random.default_rng(0).permutation(is_right)
        assert all("predicted class" not in f for f in check_alignment(uninformed, proba.max(1)))

    def test_scores_of_the_opposite_sign(self):
        y, proba = right()
        with pytest.warns(SkcalibWarning, match="X is far below chance"):
            IsotonicCalibration().fit(-np.log(proba), y)


class TestRows:
    def test_rows_of_other_labels(self):
        y, proba = right(sharpness=3)
        shuffled = np.random.default_rng(0).permutation(len(y))
        only(check_alignment(y[shuffled], proba), OTHER_ROWS, "learned little or nothing")
        only(check_alignment(y[shuffled], proba, labels=range(4)), OTHER_ROWS)
        with pytest.warns(SkcalibWarning, match=f"X seems to belong to {OTHER_ROWS}"):
            TemperatureScaling(input="proba").fit(proba, y[shuffled])
        with pytest.warns(SkcalibWarning, match=f"X seems to belong to {OTHER_ROWS}"):
            TemperatureScaling().fit(np.log(proba), y[shuffled])
        only(check_alignment(y[shuffled] >= 2, proba[:, 2:].sum(axis=1)), OTHER_ROWS)

    def test_most_shuffles_of_a_few_hundred_rows(self):
        n_found = 0
        for seed in range(30):
            y, proba = right(n=300, k=3, sharpness=1.0, seed=seed)
            assert check_alignment(y, proba) == []
            n_found += len(check_alignment(np.random.default_rng(seed).permutation(y), proba))
        assert n_found >= 22

    @pytest.mark.slow
    def test_indexes(self):
        y, proba = right(n=60)
        index = [f"i{k}" for k in range(60)]
        labels, frame = pd.Series(y, index), pd.DataFrame(proba, index)
        mixed = np.random.default_rng(0).permutation(60)
        sentence = only(
            check_alignment(labels, frame.iloc[mixed]), "indexes with the same entries"
        )
        assert "y_proba.loc[y_true.index]" in sentence
        assert check_alignment(labels, frame) == []
        assert check_alignment(labels, proba) == []
        assert check_alignment(labels, frame.set_axis(np.arange(60) + 100)) == []
        calls = {
            "X.loc[y.index]": lambda: TemperatureScaling(input="proba").fit(
                frame.iloc[mixed], labels
            ),
            "X.loc[y.index] ": lambda: LabelIssueFinder("precomputed").fit(
                frame.iloc[mixed], labels
            ),
        }
        for part, call in calls.items():
            assert warned(call, part) == 1

    def test_an_index_that_counts_rows_matters_where_the_data_agree(self):
        y, proba = right()
        mixed = np.random.default_rng(0).permutation(len(y))
        labels, frame = pd.Series(y), pd.DataFrame(proba)
        only(check_alignment(labels, frame.iloc[mixed]), "indexes with the same entries")
        two = pd.Series(proba[:, :2].sum(axis=1))
        only(check_alignment(labels < 2, two.iloc[mixed]), "indexes with the same entries")
        # Labels of shuffled rows, and the probabilities that a model gave them.
        assert check_alignment(labels.iloc[mixed], pd.DataFrame(proba[mixed])) == []


class TestShares:
    def test_swapped_with_indicators(self):
        y, proba = right()
        only(check_alignment(proba, np.eye(4)[y]), "y_true and y_proba seem swapped")
        with pytest.raises(ValueError, match="y_true and y_proba seem swapped"):
            check_alignment(proba, np.eye(4, dtype=int)[y])
        assert check_alignment(np.eye(4)[y], proba) == []
        assert check_alignment(np.eye(4)[y], np.eye(4)[y]) == []

    @pytest.mark.slow
    def test_as_weighted_rows(self):
        # A row for every class of a sample: without the weights, its labels say nothing.
        rng = np.random.default_rng(0)
        shares = rng.dirichlet(np.full(4, 0.4), 400)
        rows, y = np.repeat(np.arange(400), 4), np.tile(np.arange(4), 400)
        given = {"sample_weight": 2 * shares.ravel()}
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            page = CalibrationReport.from_predictions(y, shares[rows], groups=rows, **given)
            assert page.results_["alignment"] == []
            IsotonicCalibration(input="proba").fit(shares[rows], y, **given)
        moved = shares[rng.permutation(400)][rows]
        turned = shares[:, [1, 2, 0, 3]][rows]
        for proba, part in ((moved, "belong to rows"), (turned, ANOTHER_ORDER)):
            with pytest.warns(SkcalibWarning, match=part):
                IsotonicCalibration(input="proba").fit(proba, y, **given)
            page = CalibrationReport.from_predictions(y, proba, groups=rows, **given)
            only(page.results_["alignment"], part)


METRICS = [
    name
    for name in metrics.__all__
    if name.endswith(("calibration_error", "coverage")) and "multilabel" not in name
]


class TestMetrics:
    @pytest.mark.parametrize("name", METRICS)
    def test_they_compute_and_do_not_guess(self, name):
        # Warnings are errors. Rows, columns and the name of a Series in another order than theirs.
        y, proba = right(n=200)
        metric = getattr(metrics, name)
        more = {"by": np.zeros(200), "random_state": 0} if name.startswith("groupwise") else {}
        more |= {"coverage": 0.5} if name == "accuracy_at_coverage" else {}
        metric(np.random.default_rng(0).permutation(y), proba, **more)
        metric(y, proba[:, [1, 0, 2, 3]], **more)
        two, p = (y > 1).astype(int), proba[:, 2:].sum(axis=1)
        for values in (p, 1 - p, np.maximum(p, 1 - p)):
            expected = metric(two, values, **more)
            for series in ("prob_0", "prob_1", 0):
                got = metric(two, pd.Series(values, name=series), **more)
                np.testing.assert_equal(got, expected)

    def test_an_index_decides_nothing(self):
        y, proba = right(n=60)
        index = [f"i{k}" for k in range(60)]
        mixed = np.random.default_rng(0).permutation(60)
        labels, frame = pd.Series(y, index), pd.DataFrame(proba[mixed], np.array(index)[mixed])
        expected = expected_calibration_error(y, proba[mixed])
        assert expected_calibration_error(labels, frame) == expected
        weight = pd.Series(np.arange(60.0), frame.index)
        assert expected_calibration_error(labels, frame, sample_weight=weight) == (
            expected_calibration_error(y, proba[mixed], sample_weight=np.arange(60.0))
        )

    def test_labels_are_positions_or_sorted(self):
        y, proba = right(k=12)
        by_text = np.argsort([str(c) for c in range(12)])
        assert expected_calibration_error(y.astype(str), proba[:, by_text]) == pytest.approx(
            expected_calibration_error(y, proba)
        )
        for given in (proba, pd.DataFrame(proba)):
            assert expected_calibration_error(y.astype(str), given) == (
                expected_calibration_error(y, proba, labels=by_text)
            )
        kept = y > 0  # 1, ..., 11 are positions, whatever the probabilities say
        assert expected_calibration_error(y[kept], proba[kept]) == (
            expected_calibration_error(y[kept], proba[kept], labels=range(12))
        )


class TestWhoWarns:
    @pytest.mark.slow
    def test_calibrators_and_finder(self):
        y, proba = right(n=400, k=3)
        wrong = proba[:, [2, 0, 1]]
        for fit in (
            BetaCalibration(input="proba").fit,
            IsotonicCalibration(input="proba").fit,
            LabelIssueFinder("precomputed").fit,
            GroupwiseCalibration("temperature", input="proba").fit,
            StackedCalibration(input="proba").fit,
        ):
            assert warned(lambda fit=fit: fit(wrong, y), "[2, 0, 1]") == 1

    def test_the_classes_of_a_calibrator_are_the_order_of_its_columns(self):
        y, proba = right(n=400, k=3)
        with pytest.warns(SkcalibWarning, match="pass classes= in the order of the columns"):
            IsotonicCalibration(input="proba").fit(proba[:, [2, 0, 1]], y)
        TemperatureScaling(input="proba", classes=[2, 0, 1]).fit(proba[:, [2, 0, 1]], y)

    def test_names_of_columns_are_no_classes_for_a_calibrator(self):
        y, proba = right(n=400, k=3)
        frame = pd.DataFrame(proba, columns=["1", "0", "2"])
        expected = TemperatureScaling(input="proba").fit(proba, y).temperature_
        assert TemperatureScaling(input="proba").fit(frame, y).temperature_ == expected

    @pytest.mark.slow
    def test_a_report_lists_what_was_found(self):
        y, proba = right(n=400, k=3)
        report = CalibrationReport.from_predictions(y, proba[:, [1, 0, 2]])
        sentence = only(report.results_["alignment"], ANOTHER_ORDER, "[1, 0, 2]")
        assert report.results_["summary"]["kind"] == "alignment"
        assert sentence[-50:] in report.to_markdown().replace("\n", " ")
        report = CalibrationReport.from_predictions(y, proba[:, [1, 0, 2]], labels=[1, 0, 2])
        assert report.results_["alignment"] == []
        index = pd.Index([f"i{k}" for k in range(400)])
        moved = pd.DataFrame(proba, index).iloc[::-1]
        report = CalibrationReport.from_predictions(pd.Series(y, index), moved)
        only(report.results_["alignment"], "y_proba.loc[y_true.index]")

    @pytest.mark.slow
    def test_groups_that_err_together_are_no_evidence(self):
        # Ten patients of two classes, a model that knows nothing of them: by chance it may be
        # wrong of most patients, and of all their samples.
        rng = np.random.default_rng(1)
        found, with_groups = 0, 0
        for _ in range(40):
            patient = np.repeat(np.arange(10), 50)
            y = rng.permutation([0, 1] * 5)[patient]
            p = rng.uniform(size=10)[patient]
            found += len(check_alignment(y, p)) > 0
            fit = IsotonicCalibration(input="proba").fit
            with warnings.catch_warnings(record=True) as caught:
                warnings.simplefilter("always")
                fit(p[:, None], y, groups=patient)
            with_groups += len(caught)
        assert found > 10
        assert with_groups == 0

    def test_rows_without_weight_count_for_nothing(self):
        y, proba = right(sharpness=3)
        half = np.arange(len(y)) < len(y) // 2
        y = np.where(half, y, np.random.default_rng(0).permutation(y))
        fit = IsotonicCalibration(input="proba").fit
        fit(proba, y, sample_weight=half)
        with pytest.warns(SkcalibWarning, match=OTHER_ROWS):
            fit(proba, y, sample_weight=~half)

    @pytest.mark.slow
    def test_a_frozen_classifier_of_other_labels(self):
        rng = np.random.default_rng(0)
        X = rng.normal(size=(300, 2))
        y = (X[:, 0] + rng.normal(size=300) > 0).astype(int)
        frozen = FrozenEstimator(LogisticRegression().fit(X, y))
        part = "If so, y has other labels than those that it was fitted on."
        assert warned(lambda: SelectiveClassifier(frozen, risk=0.5).fit(X, 1 - y), part) == 1
        part = "X seems to be the probability of 0, not of 1"
        assert warned(lambda: PostHocCalibratedClassifier(frozen).fit(X, 1 - y), part) == 1
        SelectiveClassifier(frozen, risk=0.4).fit(X, y)
        PostHocCalibratedClassifier(frozen).fit(X, y)
        report = CalibrationReport.from_estimator(frozen, X, 1 - y)
        only(report.results_["alignment"], "the labels are not those that the classifier")

    @pytest.mark.slow
    def test_not_of_what_is_made_out_of_fold(self):
        X, y = np.arange(24.0)[:, np.newaxis], np.arange(24) % 2
        model = DummyClassifier(strategy="prior")
        for by in (None, "side"):
            given = X if by is None else pd.DataFrame({"x": X[:, 0], "side": y})
            PostHocCalibratedClassifier(
                model, calibrator="isotonic", cv=LeaveOneOut(), by_columns=by
            ).fit(given, y)
        metrics.get_scorer("neg_expected_calibration_error")(model.fit(X, y), X, 1 - y)


def test_values_are_checked_as_in_a_metric():
    y, proba = right(sharpness=3, k=3)
    for row in ([-0.25, 0.65, 0.6], [1.25, 0, 0]):
        wrong = proba.copy()
        wrong[5] = row
        with pytest.raises(ValueError, match=r"y_proba must .*\[0, 1\]"):
            check_alignment(y, wrong)
    with pytest.raises(ValueError, match="y_true and y_proba must have the same number of rows"):
        check_alignment(y[1:], proba)


def test_chunks_are_not_looked_at():
    da = pytest.importorskip("dask.array")
    y, proba = right()
    assert check_alignment(da.from_array(y), da.from_array(proba[::-1])) == []


def test_tensors_on_an_accelerator_are_not_looked_at(device):
    import torch

    y, proba = right(sharpness=3)
    assert check_alignment(y, torch.tensor(proba[::-1].copy(), device=device)) == []


def test_a_classifier_that_misbehaves_is_named():
    class Sloppy(ClassifierMixin, BaseEstimator):
        def fit(self, X, y):
            self.classes_ = np.unique(y)
            return self

        def predict_proba(self, X):
            return np.full((len(X), 2), 0.51)

    X, y = np.zeros((20, 1), dtype=np.float32) + np.arange(20)[:, np.newaxis], np.arange(20) % 2
    with pytest.raises(ValueError, match=r"predict_proba of Sloppy must sum to 1.*float64 may"):
        PostHocCalibratedClassifier(Sloppy(), cv=2).fit(X.astype(np.float32), y)


def test_a_class_of_subnormal_probability_brings_no_warning():
    y = np.arange(60) % 3
    proba = np.where(np.eye(3)[y] == 1, 0.8, 0.2)
    proba[:, 2] = 5e-324
    proba[:, :2] /= proba[:, :2].sum(axis=1, keepdims=True)
    assert isinstance(check_alignment(y, proba), list)
