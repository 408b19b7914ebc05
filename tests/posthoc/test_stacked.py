"""The stack: what it weighs, what it leaves out, and how near it comes to the best of its maps."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import log_softmax, softmax

from skcalib.posthoc import (
    IsotonicCalibration,
    StackedCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
)
from skcalib.posthoc._stacked import LooseMatrixScaling, folds_by_class

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
    assert set(stack.log_losses_) == {*stack.weights_, *stack.left_out_, "mixture"}
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


@pytest.mark.parametrize(
    ("sure", "n_lost", "kept"),
    [(0.53, 1, True), (0.53, 3, True), (0.53, 4, False), (0.99, 9, True)],
)
def test_a_map_that_costs_few_predictions_stays(sure, n_lost, kept):
    """Of 400 predictions 4 may be lost, and one more for every gain of 3 in log-likelihood.

    Standard errors included, 3 count as 5.6 and 4 as 7; a map that is hardly more sure than the
    model gains 6. Where it is sure of the rest, it may lose more.
    """
    y = np.arange(400) % 2
    proba = np.where(np.arange(2) == y[:, None], 0.52, 0.48)
    proba[:n_lost] = np.where(proba[:n_lost] > 0.5, 0.525, 0.475)

    class Spoiler(TemperatureScaling):
        """More sure of the label, but of the other one where the larger probability is .525."""

        _keeps_order = False

        def _predict_proba(self, scores):
            marked = np.isclose(scores.max(axis=1), 0.525)[:, None]
            return np.abs((scores <= 0.5) - np.where(marked, 0.3, sure))

    stack = StackedCalibration([("spoiler", Spoiler())], input="proba").fit(proba, y)
    assert ("spoiler" in stack.calibrators_) == kept
    assert "spoiler" in stack.log_losses_


def test_a_step_is_taken_as_far_as_the_labels_speak_for_it():
    """Against a general solver, from the probabilities of samples left out that it saw."""
    kinds = TemperatureScaling, StructuredVectorScaling, LooseMatrixScaling
    for n, n_foldings, seed in ((100, 2, 0), (100, 2, 1), (200, 2, 2), (1000, 1, 3)):
        logits, y = sample(n, 3, temperature=1.3, bias=[0.5, -0.5, 0], seed=seed)
        stack = StackedCalibration().fit(logits, y)
        raw, of_label = softmax(logits, axis=1), []
        for seed_of_folds in range(n_foldings):
            folds = folds_by_class(raw, y, np.ones(n), seed_of_folds)
            of_label.append([raw[np.arange(n), y], *np.empty((3, n))])
            for kind, column in zip(kinds, of_label[-1][1:]):
                for fold in range(5):
                    rest = folds != fold
                    proba = kind().fit(logits[rest], y[rest]).predict_proba(logits[~rest])
                    column[~rest] = proba[np.arange(len(proba)), y[~rest]]
        of_label = np.hstack(of_label)
        mixture = of_label[0]
        for count in (2, 3, 4):

            def loss(z, part=of_label[:count], n_foldings=n_foldings):
                return -np.log(softmax(z) @ part).sum() / n_foldings

            best = minimize(loss, np.zeros(count), options={"gtol": 1e-7})
            gain = -best.fun - np.log(mixture).sum() / n_foldings
            # Half of the first step in any case; later ones need .5 more for the third class.
            share = (1 + min(gain / 5, 1)) / 2 if count == 2 else np.clip(gain / 5.5, 0, 1)
            mixture = share * softmax(best.x) @ of_label[:count] + (1 - share) * mixture
        # EM ends a little before the optimum.
        assert stack.log_losses_["mixture"] == pytest.approx(-np.log(mixture).mean(), abs=3e-4)


def test_the_matrix_is_looser_from_ten_samples_a_class_on():
    """Its slope off the diagonal against the penalized log-loss, by a general solver."""
    logits, y = sample(400, 3, temperature=1.0)
    logits[:, 0] += 0.4 * logits[:, 1]
    for n, kind, strength in ((29, StructuredMatrixScaling, 1.0), (30, LooseMatrixScaling, 0.1)):
        matrix = StackedCalibration(classes=[0, 1, 2]).fit(logits[:n], y[:n]).calibrators_
        found = kind(uniform=False).fit(logits, y)
        assert all(type(part) is kind for name, part in matrix.items() if "matrix" in name)
        x = log_softmax(logits / found.temperature_, axis=1)

        def loss(theta, x=x, strength=strength):
            added = theta.reshape(3, 4)
            z = x @ (np.eye(3) + added[:, :3]).T + added[:, 3]
            penalty = np.where(np.eye(3, 4), 1.0, strength * 2)
            penalty[:, 3] = 0.1
            right = log_softmax(z, axis=1)[np.arange(len(y)), y]
            return -right.mean() + 3 / len(y) * np.sum(penalty * added**2)

        best = minimize(loss, np.zeros(12), options={"gtol": 1e-8}).x.reshape(3, 4)
        np.testing.assert_allclose(found.coef_, np.eye(3) + best[:, :3], atol=2e-3)


def test_folds_follow_from_the_samples():
    """Not from their order; every class is in all folds alike, and foldings differ."""
    logits, y = sample(203, 4)
    votes = np.round(5 * softmax(logits, axis=1)) + 1
    votes /= votes.sum(axis=1, keepdims=True)
    weight = np.random.default_rng(0).integers(1, 3, 203).astype(float)
    for proba in (softmax(logits, axis=1), votes):
        folds, other = (folds_by_class(proba, y, weight, seed) for seed in (0, 1))
        count = np.array([np.bincount(y[folds == fold], minlength=4) for fold in range(5)])
        assert np.ptp(count, axis=0).max() <= 1
        assert np.ptp(count.sum(axis=1)) <= 1
        assert np.mean(folds == other) < 0.4
        order = np.random.default_rng(1).permutation(203)
        again = folds_by_class(proba[order], y[order], weight[order], 0)
        rows = np.column_stack([proba, y, weight, folds])
        shuffled = np.column_stack([proba[order], y[order], weight[order], again])
        # Equal samples may change places.
        for found in (rows, shuffled):
            found[:] = found[np.lexsort(found.T)]
        np.testing.assert_array_equal(rows, shuffled)


@pytest.mark.parametrize("input", ["logits", "proba"])
@pytest.mark.parametrize("n", [30, 300])
def test_the_order_of_the_classes_does_not_matter(n, input):
    scores, y = sample(n, 5, bias=[1, -1, 0.5, 0, 0])
    if input == "proba":
        # Votes of a small forest: many samples are equal.
        scores = np.random.default_rng(0).multinomial(20, softmax(scores, axis=1)) / 20
    order = np.random.default_rng(1).permutation(5)
    stack = StackedCalibration(input=input, classes=list(range(5)))
    found = stack.fit(scores, y).predict_proba(scores)
    again = stack.fit(scores[:, order], np.argsort(order)[y]).predict_proba(scores[:, order])
    np.testing.assert_allclose(again, found[:, order], atol=1e-6)


def test_a_step_of_little_gain_is_taken_half_if_the_predicted_class_stays():
    """One that can change it is hardly taken."""
    y = np.arange(10) % 2
    proba = np.where(np.arange(2) == y[:, None], 0.6, 0.4)

    class Surer(TemperatureScaling):
        """So that the labels of all samples are likelier by e^.1 together, whatever it saw."""

        def _predict_proba(self, scores):
            sure = 0.6 * np.exp(0.01)
            return np.where(scores > 0.5, sure, 1 - sure)

    class Free(Surer):
        _keeps_order = False

    for kind, least in ((Surer, 0.5), (Free, 0.0)):
        stack = StackedCalibration([("surer", kind())], input="proba").fit(proba, y)
        assert stack.weights_["surer"] == pytest.approx(least + 0.1 * (1 - least) / 5, rel=0.05)


def test_a_step_too_far_is_shortened():
    """All of it loses 8 of 400 predictions for a gain of 6, three quarters of it none."""
    y = np.arange(400) % 2
    proba = np.where(np.arange(2) == y[:, None], 0.52, 0.48)
    proba[:8] = np.where(proba[:8] > 0.5, 0.58, 0.42)

    class Spoiler(TemperatureScaling):
        """Surer of the label, and a little on the other side where the first column says .58."""

        _keeps_order = False

        def _predict_proba(self, scores):
            marked = np.isclose(scores.max(axis=1), 0.58)[:, None]
            return np.abs((scores <= 0.5) - np.where(marked, 0.48, 0.53))

    stack = StackedCalibration([("spoiler", Spoiler())], input="proba").fit(proba, y)
    assert stack.weights_["spoiler"] == pytest.approx(0.75, abs=0.01)
    np.testing.assert_array_equal(stack.predict(proba), y)


def test_with_many_classes_a_step_needs_more():
    """Half a unit of log-likelihood for each class from the third to the tenth."""
    for k, full in ((3, 5.5), (4, 6), (10, 9), (40, 9)):
        y = np.arange(400) % k
        proba = np.full((400, k), 0.5 / (k - 1))
        proba[np.arange(400), y] = 0.5

        class Surer(TemperatureScaling):
            """Says .505 where the model says .5."""

            _keeps_order = False

            def _predict_proba(self, scores):
                label = scores.max(axis=1, keepdims=True) == scores
                return np.where(label, 0.505, 0.495 / (label.shape[1] - 1))

        stack = StackedCalibration([("surer", Surer())], input="proba").fit(proba, y)
        gain = 400 * np.log(0.505 / 0.5)
        assert stack.weights_["surer"] == pytest.approx(gain / full, rel=1e-4)


def test_a_single_sample_is_not_enough():
    match = "X must hold a sample to fit calibrators and another one to judge them"
    with pytest.raises(ValueError, match=match):
        StackedCalibration(classes=[0, 1]).fit([[1.0, 2.0]], [1])
    with pytest.raises(ValueError, match=match):
        StackedCalibration().fit([[1.0, 2.0], [2.0, 1.0]], [0, 1], sample_weight=[1, 0])


@pytest.mark.filterwarnings("error")
def test_a_hundred_classes_with_two_samples_each():
    logits, _ = sample(200, 100)
    stack = StackedCalibration().fit(logits, np.repeat(np.arange(100), 2))
    assert np.isfinite(stack.predict_proba(logits)).all()


def test_a_calibrated_model_is_hardly_changed():
    same = []
    for seed in range(20):
        logits, y = sample(150, 3, temperature=1.0, seed=seed)
        stack = StackedCalibration().fit(logits, y)
        raw = softmax(logits, axis=1)
        assert np.abs(stack.predict_proba(logits) - raw).mean() < 0.03
        same.append(np.mean(stack.predict(logits) == raw.argmax(axis=1)))
    assert min(same) > 0.95
    assert np.mean(same) > 0.985
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
