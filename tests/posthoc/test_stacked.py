"""The stack: what it weighs, what it leaves out, and how near it comes to the best of its maps."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import softmax

from skcalib.posthoc import (
    IsotonicCalibration,
    StackedCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
)
from skcalib.posthoc._stacked import folds_by_class

from ._sample import mean_log_loss, sample


@pytest.mark.parametrize("temperature", [1.0, 3.0])
@pytest.mark.parametrize("bias", [0.0, 1.0])
@pytest.mark.parametrize("n", [100, 1000])
def test_it_is_about_as_good_as_the_better_of_two_maps(temperature, bias, n):
    logits, y = sample(20_000, 4, temperature=temperature, bias=bias * np.array([1, -1, 0.5, 0]))
    some, rest = slice(n), slice(n, None)
    losses = [
        mean_log_loss(model.fit(logits[some], y[some]).predict_proba(logits[rest]), y[rest])
        for model in (StackedCalibration(), TemperatureScaling(), StructuredMatrixScaling())
    ]
    as_it_is = mean_log_loss(softmax(logits[rest], axis=1), y[rest])
    assert losses[0] < min(*losses[1:], as_it_is) + 2 / n


def test_it_is_the_mixture_that_it_says():
    logits, y = sample(500)
    stack = StackedCalibration().fit(logits, y)
    assert sum(stack.weights_.values()) == pytest.approx(1)
    assert set(stack.log_losses_) == {*stack.weights_, "mixture"}
    mixed = stack.weights_["as it is"] * softmax(logits, axis=1)
    for name, calibrator in stack.calibrators_.items():
        alone = type(calibrator)().fit(logits, y)
        mixed += stack.weights_[name] * alone.predict_proba(logits)
    np.testing.assert_allclose(stack.predict_proba(logits), mixed, rtol=1e-10)
    again = StackedCalibration().fit(logits, y)
    np.testing.assert_array_equal(again.predict_proba(logits), stack.predict_proba(logits))


def test_maps_of_ones_own():
    logits, y = sample(2000, bias=[2, -2, 1, 0])
    own = [("isotonic", IsotonicCalibration()), ("temperature", TemperatureScaling())]
    stack = StackedCalibration(own).fit(logits, y)
    assert list(stack.calibrators_) == ["isotonic", "temperature"]
    assert not hasattr(own[0][1], "classes_")
    nothing = StackedCalibration([]).fit(logits, y)
    assert nothing.weights_ == {"as it is": 1.0}
    np.testing.assert_allclose(nothing.predict_proba(logits), softmax(logits, axis=1))


def test_a_map_that_costs_accuracy_is_left_out():
    logits, y = sample(600, 3)
    y = logits.argmax(axis=1)
    # The scores predict every label; this map says 2 where they say 1.

    class Spoiler(TemperatureScaling):
        _keeps_order = False

        def _predict_proba(self, scores):
            proba = np.full(scores.shape, 0.05)
            top = scores.argmax(axis=1)
            proba[np.arange(len(top)), top] = 0.45
            proba[:, 2] += np.where(top == 1, 0.5, 0.0)
            return proba / proba.sum(axis=1, keepdims=True)

    flat = np.where(np.arange(3) == y[:, None], 0.01, 0.0) + 0.0 * logits
    stack = StackedCalibration([("spoiler", Spoiler())]).fit(flat, y)
    assert stack.left_out_ == {"spoiler": "it made predictions of samples left out worse"}
    np.testing.assert_array_equal(stack.predict(flat), y)


def test_a_map_that_costs_few_predictions_stays():
    """One prediction of 200 may be lost by chance: more than 1 % have to be."""

    for n_lost, kept in ((1, True), (2, True), (3, False)):
        y = np.arange(200) % 2
        proba = np.where(np.arange(2) == y[:, None], 0.6, 0.4)
        lost = np.arange(200) < n_lost

        class Spoiler(TemperatureScaling):
            """Sure of the label, and of the other one where the first column says .61."""

            _keeps_order = False

            def _predict_proba(self, scores):
                sure = np.where(scores > 0.5, 0.99, 0.01)
                return np.where(np.isclose(scores.max(axis=1), 0.61)[:, None], 1 - sure, sure)

        proba[lost] = np.where(proba[lost] > 0.5, 0.61, 0.39)
        stack = StackedCalibration([("spoiler", Spoiler())], input="proba").fit(proba, y)
        assert ("spoiler" in stack.calibrators_) == kept
        assert "spoiler" in stack.log_losses_


def test_a_step_is_taken_as_far_as_the_labels_speak_for_it():
    """Against a general solver, from the probabilities of samples left out that it saw."""
    for n, seed in ((100, 0), (100, 1), (200, 2), (1000, 3)):
        logits, y = sample(n, 3, temperature=1.3, bias=[0.5, -0.5, 0], seed=seed)
        stack = StackedCalibration().fit(logits, y)
        folds = folds_by_class(y)
        of_label = [softmax(logits, axis=1)[np.arange(n), y]]
        for kind in (TemperatureScaling, StructuredVectorScaling, StructuredMatrixScaling):
            of_label.append(np.empty(n))
            for fold in range(5):
                rest = folds != fold
                proba = kind().fit(logits[rest], y[rest]).predict_proba(logits[~rest])
                of_label[-1][~rest] = proba[np.arange(len(proba)), y[~rest]]
        of_label = np.array(of_label)
        mixture = of_label[0]
        for count in (2, 4):

            def loss(z, part=of_label[:count]):
                return -np.log(softmax(z) @ part).sum()

            best = minimize(loss, np.zeros(count), options={"gtol": 1e-7})
            share = np.clip((best.fun + np.log(mixture).sum()) / -5, 0, 1)
            mixture = share * softmax(best.x) @ of_label[:count] + (1 - share) * mixture
        # EM ends a little before the optimum.
        assert stack.log_losses_["mixture"] == pytest.approx(-np.log(mixture).mean(), abs=3e-4)


def test_a_calibrated_model_is_hardly_changed():
    for seed in range(5):
        logits, y = sample(150, 3, temperature=1.0, seed=seed)
        stack = StackedCalibration().fit(logits, y)
        raw = softmax(logits, axis=1)
        assert np.abs(stack.predict_proba(logits) - raw).mean() < 0.03
        assert np.mean(stack.predict(logits) == raw.argmax(axis=1)) > 0.97
    logits, y = sample(150, 3, bias=[2, -2, 0])
    assert not StackedCalibration().fit(logits, y).left_out_


def test_small_probabilities_count_as_what_they_are():
    """Naive Bayes states 1e-20 and less, a forest states 0 where it knows no better."""
    logits, y = sample(2000, 3, temperature=30.0)
    logits *= 5
    proba = softmax(logits, axis=1)
    assert np.median(proba.min(axis=1)) < 1e-8
    by_logits = TemperatureScaling().fit(logits, y)
    by_proba = TemperatureScaling(input="proba").fit(proba, y)
    assert by_proba.temperature_ == pytest.approx(by_logits.temperature_, rel=0.05)
    votes = np.random.default_rng(0).multinomial(20, softmax(logits / 300, axis=1)) / 20
    assert (votes == 0).any()
    forest = TemperatureScaling(input="proba").fit(votes, y)
    floored = TemperatureScaling().fit(np.log(np.maximum(votes, 1e-7)), y)
    assert forest.temperature_ == pytest.approx(floored.temperature_, rel=1e-6)


def test_many_classes_do_without_a_matrix():
    logits, y = sample(600, 100)
    stack = StackedCalibration().fit(logits, y)
    assert list(stack.calibrators_) == ["temperature", "structured_vector"]
    assert stack.left_out_ == {"structured_matrix": "600 samples of 100 classes are too many"}
