"""The stack: what it weighs, what it leaves out, and how near it comes to the best of its maps."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, log_softmax, logit, softmax
from sklearn.base import clone
from sklearn.isotonic import IsotonicRegression

from skcalib.posthoc import (
    IsotonicCalibration,
    SigmoidCalibration,
    StackedCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
    VectorScaling,
)
from skcalib.posthoc._stacking import ShrunkIsotonic, WeakRidgeMatrixScaling, draw_folds

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


@pytest.mark.slow
def test_it_is_the_mixture_that_it_says():
    logits, y = sample(500)
    stack = StackedCalibration().fit(logits, y)
    assert sum(stack.weights_.values()) == pytest.approx(1)
    assert set(stack.log_losses_) == {*stack.weights_, *stack.excluded_, "mixture"}
    mixed = stack.weights_["identity"] * softmax(logits, axis=1)
    assert {"temperature", "structured_matrix"} <= set(stack.log_losses_)
    for name, calibrator in stack.calibrators_.items():
        alone = clone(calibrator).fit(logits, y)
        mixed += stack.weights_[name] * alone.predict_proba(logits)
    mixed *= np.exp(stack.intercept_)
    mixed /= mixed.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(stack.predict_proba(logits), mixed, rtol=1e-10)
    again = StackedCalibration().fit(logits, y)
    np.testing.assert_array_equal(again.predict_proba(logits), stack.predict_proba(logits))


@pytest.mark.slow
def test_its_own_maps_stand_beside_a_uniform_component():
    logits, y = sample(500, 3, bias=[1, 0, -1])
    y[::10] = (y[::10] + 1) % 3
    stack = StackedCalibration().fit(logits, y)
    own = [
        ("temperature", TemperatureScaling(mix_uniform=True)),
        ("structured_vector", StructuredVectorScaling(mix_uniform=True)),
        ("structured_matrix", WeakRidgeMatrixScaling(mix_uniform=True)),
        ("isotonic", ShrunkIsotonic()),
    ]
    same = StackedCalibration(own).fit(logits, y)
    assert same.weights_ == stack.weights_
    assert same.log_losses_ == stack.log_losses_
    shifted = same.predict_proba(logits) * np.exp(stack.intercept_)
    shifted /= shifted.sum(axis=1, keepdims=True)
    np.testing.assert_allclose(stack.predict_proba(logits), shifted, rtol=1e-10)
    assert not same.intercept_.any()
    # A stack of other maps takes them as they are given: by default as published.
    published = StackedCalibration([("vector", VectorScaling())]).fit(logits, y)
    assert published.calibrators_["vector"].uniform_weight_ == 0


@pytest.mark.slow
def test_maps_of_ones_own():
    logits, y = sample(2000, bias=[2, -2, 1, 0])
    own = [("isotonic", IsotonicCalibration()), ("vector", StructuredVectorScaling())]
    stack = StackedCalibration(own).fit(logits, y)
    assert list(stack.calibrators_) == ["isotonic", "vector"]
    assert not hasattr(own[0][1], "classes_")
    nothing = StackedCalibration([]).fit(logits, y)
    assert nothing.weights_ == {"identity": 1.0}
    np.testing.assert_allclose(nothing.predict_proba(logits), softmax(logits, axis=1))


class Stated(TemperatureScaling):
    """Says of the label of every sample what it is given, whatever it is fitted to."""

    def __init__(self, said=0.5, input="logits", classes=None):
        super().__init__(input=input, classes=classes)
        self.said = said

    def _shares_temperature(self):
        return False

    def _predict_proba(self, scores):
        # The label is 1; the second column numbers the samples.
        said = np.asarray(self.said)[(scores[:, 1] * 1000).round().astype(int)]
        return np.column_stack([1 - said, said])


@pytest.mark.filterwarnings("ignore:y has no sample of class")
@pytest.mark.parametrize(("n", "gained"), [(12, 0.2), (40, 0.2), (40, 1.0), (300, 0.5)])
def test_weights_follow_from_what_the_maps_say_of_labels_left_out(n, gained):
    """Against a general solver; a prior of two samples, a nat for the step, even odds."""
    rng = np.random.default_rng(n)
    raw = np.arange(n) / 1000 + 0.2
    said = np.clip(raw * np.exp(gained * rng.normal(size=(2, n))), 0.01, 0.99)
    table = np.zeros((2, 1001))
    table[:, (raw * 1000).round().astype(int)] = said
    maps = [(name, Stated(part)) for name, part in zip("ab", table)]
    proba, y = np.column_stack([1 - raw, raw]), np.ones(n, dtype=int)
    stack = StackedCalibration(maps, input="proba", classes=[0, 1]).fit(proba, y)
    of_label = np.vstack([raw, said])

    def loss(z):
        return -np.log(softmax(z) @ of_label).sum() - log_softmax(z) @ [5 / 6, 5 / 6, 1 / 3]

    best = softmax(minimize(loss, np.zeros(3), options={"gtol": 1e-8}).x)
    gain = np.log(best @ of_label / raw).sum() - 1
    expected = best / (1 + np.exp(-gain))
    expected[0] += 1 / (1 + np.exp(gain))
    small = (expected < 0.1) & [True, False, True]
    expected[1] += expected[small].sum()
    expected[small] = 0
    found = [stack.weights_.get(name, 0.0) for name in ("identity", "a", "b")]
    np.testing.assert_allclose(found, expected, atol=2e-4)
    mixture = -np.log(expected @ of_label).mean()
    assert stack.log_losses_["mixture"] == pytest.approx(mixture, abs=1e-4)


@pytest.mark.filterwarnings("ignore:y has no sample of class")
def test_what_hardly_counts_is_left_out():
    n = 300
    raw = np.full(n, 0.5)
    maps = [("right", Stated(np.full(1001, 0.9))), ("wrong", Stated(np.full(1001, 0.001)))]
    proba, y = np.column_stack([1 - raw, raw]), np.ones(n, dtype=int)
    stack = StackedCalibration(maps, input="proba", classes=[0, 1]).fit(proba, y)
    assert stack.excluded_ == {"wrong": "its weight is below 10%"}
    assert list(stack.calibrators_) == ["right"]
    assert stack.weights_ == {"identity": 0.0, "right": pytest.approx(1.0)}
    assert stack.log_losses_["wrong"] == pytest.approx(-np.log(0.001))
    np.testing.assert_allclose(stack.predict_proba(proba)[:, 1], 0.9)


@pytest.mark.parametrize("form", ["logits", "proba"])
def test_mean_probabilities_follow_class_frequencies_under_class_weights(form):
    """A model whose training gave both classes equal weight, of one label in fifty."""
    rng = np.random.default_rng(0)
    weighted = 1.5 * rng.normal(size=30_000)
    y = (rng.random(30_000) < expit(weighted - np.log(49))).astype(int)
    scores = weighted if form == "logits" else expit(weighted)
    some, rest = slice(2000), slice(2000, None)
    stack = StackedCalibration(input=form).fit(scores[some], y[some])
    proba = stack.predict_proba(scores)
    assert proba[some, 1].mean() == pytest.approx(y[some].mean(), rel=0.02)
    plain = SigmoidCalibration(input=form).fit(scores[some], y[some]).predict_proba(scores[rest])
    assert mean_log_loss(proba[rest], y[rest]) < mean_log_loss(plain, y[rest]) + 0.003


@pytest.mark.slow
def test_several_classes_follow_their_frequencies_and_need_no_intercepts_without_weights():
    rng = np.random.default_rng(1)
    logits = 1.5 * rng.normal(size=(3000, 3))
    bias = np.array([0.0, -1.0, -4.0])
    y = (softmax(logits + bias, axis=1).cumsum(axis=1) < rng.random((3000, 1))).sum(axis=1)
    proba = StackedCalibration().fit(logits, y).predict_proba(logits)
    np.testing.assert_allclose(proba.mean(axis=0), np.bincount(y) / 3000, rtol=0.03)
    plain = StackedCalibration().fit(logits + bias, y)
    assert np.abs(plain.intercept_).max() < 0.05


@pytest.mark.parametrize("seed", [1, 2, 7])
def test_a_calibrated_model_of_several_classes_gets_no_intercepts_by_chance(seed):
    # Without a price, the frequencies of these 60 samples would move them by .13 to .19.
    rng = np.random.default_rng(seed)
    logits = 1.5 * rng.normal(size=(2060, 5))
    p = softmax(logits, axis=1)
    y = (p.cumsum(axis=1) < rng.random((2060, 1))).sum(axis=1)
    stack = StackedCalibration(classes=range(5)).fit(logits[:60], y[:60])
    assert np.abs(stack.intercept_).max() < 0.02
    excess = p * (np.log(p) - np.log(stack.predict_proba(logits)))
    assert excess[60:].sum(axis=1).mean() < 0.02


@pytest.mark.parametrize("names", [("a", "a"), ("identity", "a"), ("a", "mixture")])
def test_names_that_mean_two_components_are_refused(names):
    logits, y = sample(60, 3)
    stack = StackedCalibration([(name, TemperatureScaling()) for name in names])
    with pytest.raises(ValueError, match="calibrators must have distinct names other than"):
        stack.fit(logits, y)


@pytest.mark.slow
def test_maps_of_one_temperature_are_those_that_stand_alone():
    logits, y = sample(700, 3, bias=[1, 0, -1])
    stack = StackedCalibration().fit(logits, y)
    assert {part.temperature_ for part in stack.calibrators_.values()} == {
        TemperatureScaling(mix_uniform=True).fit(logits, y).temperature_
    }
    for part in stack.calibrators_.values():
        alone = clone(part).fit(logits, y)
        np.testing.assert_allclose(
            part.predict_proba(logits), alone.predict_proba(logits), rtol=1e-12
        )


@pytest.mark.parametrize("k", [2, 4])
def test_the_shrunk_isotonic_map(k):
    """Blocks by scikit-learn, a sample more in each; the other classes keep their shares."""
    logits, y = sample(400, k, temperature=2.0)
    weight = np.random.default_rng(1).integers(1, 4, 400).astype(float)
    weight /= weight.mean()  # only ratios matter; a sample more is one of mean weight
    scaling = TemperatureScaling(mix_uniform=True).fit(logits, y, sample_weight=weight)
    proba = scaling.predict_proba(logits)
    column = np.full(400, 1) if k == 2 else proba.argmax(axis=1)
    p, hit = proba[np.arange(400), column], (column == y).astype(float)
    blocks = IsotonicRegression().fit(p, hit, sample_weight=weight).predict(p)
    values, of_block = np.unique(blocks.round(12), return_inverse=True)
    total = np.bincount(of_block, weight)
    stated, odds = (np.bincount(of_block, weight * part) / total for part in (p, logit(p)))
    shrunk = (values * total + stated) / (total + 1)
    shrunk = IsotonicRegression().fit(odds, shrunk, sample_weight=total).predict(odds)
    expected = expit(np.interp(logit(p), odds, logit(shrunk)))
    if k > 2:
        following = np.sort(proba, axis=1)[:, -2]
        expected = np.maximum(expected, following / (1 - p + following))
    fitted = ShrunkIsotonic().fit(logits, y, sample_weight=weight)
    found = fitted.predict_proba(logits)
    np.testing.assert_allclose(found[np.arange(400), column], expected, atol=1e-6)
    if k > 2:
        np.testing.assert_array_equal(found.argmax(axis=1), proba.argmax(axis=1))
    np.testing.assert_allclose(found.sum(axis=1), 1)
    rest = np.arange(k) != column[:, None]
    shares = [np.where(rest, part, 0) for part in (found, proba)]
    shares = [part / part.sum(axis=1, keepdims=True) for part in shares]
    np.testing.assert_allclose(*shares, atol=1e-9)
    assert (np.diff(fitted.values_) >= 0).all()
    assert found.min() > 0


def test_votes_that_are_equal_but_for_rounding_are_mapped_alike():
    """Shares of trees, .35 and .35, differ in float32, and which is larger is luck."""
    rng = np.random.default_rng(0)
    votes = rng.multinomial(20, [0.4, 0.3, 0.2, 0.1], size=500) / 20
    y = votes.argmax(axis=1)
    wrong = rng.random(500) < 0.4
    y[wrong] = rng.integers(0, 4, wrong.sum())
    fitted = ShrunkIsotonic(input="proba").fit(votes, y)
    tied = np.array([[0.35, 0.35, 0.2, 0.1], [0.35, 0.35, 0.2, 0.1]])
    tied[1] *= 1 + 1e-8 * rng.normal(size=4)
    exact, rounded = fitted.predict_proba(tied)
    np.testing.assert_allclose(rounded, exact, atol=1e-6)
    assert exact[0] == exact[1]
    assert rounded.argmax() == tied[1].argmax()


def test_votes_that_say_little_are_mapped_where_they_say_it():
    """Beyond a temperature: a model whose middle scores are noise and whose ends are right."""
    rng = np.random.default_rng(0)
    p = rng.random(6000)
    y = (rng.random(6000) < np.where(p < 0.3, 0.02, np.where(p > 0.7, 0.98, 0.5))).astype(int)
    some, rest = slice(1000), slice(1000, None)
    stack = StackedCalibration(input="proba").fit(p[some], y[some])
    assert stack.weights_["isotonic"] > 0.5
    scaling = TemperatureScaling(input="proba").fit(p[some], y[some])
    losses = [mean_log_loss(m.predict_proba(p[rest]), y[rest]) for m in (stack, scaling)]
    assert losses[0] < losses[1] - 0.02


def test_two_classes_have_no_vector():
    logits, y = sample(300, 2)
    found = StackedCalibration().fit(logits, y).log_losses_
    assert list(found)[:-1] == ["identity", "temperature", "structured_matrix", "isotonic"]


@pytest.mark.slow
def test_of_many_samples_a_fifth_judges():
    logits, y = sample(20_005, 3, temperature=2.0)
    judged = []

    class Counted(TemperatureScaling):
        def _shares_temperature(self):
            return False

        def _predict_proba(self, scores):
            judged.append(len(scores))
            return super()._predict_proba(scores)

    for n, expected in ((20_000, [4000] * 5), (20_005, [4001])):
        judged.clear()
        StackedCalibration([("counted", Counted())]).fit(logits[:n], y[:n])
        assert judged == expected


@pytest.mark.slow
def test_the_matrix_is_drawn_to_its_diagonal_a_tenth_as_strongly():
    """Its slope off the diagonal against the penalized log-loss, by a general solver."""
    logits, y = sample(400, 3, temperature=1.0)
    logits[:, 0] += 0.4 * logits[:, 1]
    matrix = StackedCalibration([("matrix", WeakRidgeMatrixScaling())]).fit(logits, y)
    assert matrix.weights_["matrix"] > 0.5
    for kind, strength in ((StructuredMatrixScaling, 1.0), (WeakRidgeMatrixScaling, 0.1)):
        found = kind().fit(logits, y)
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
    """Not from their order; folds are equally large, and foldings differ."""
    logits, y = sample(203, 4)
    votes = np.round(5 * softmax(logits, axis=1)) + 1
    votes /= votes.sum(axis=1, keepdims=True)
    weight = np.random.default_rng(0).integers(1, 3, 203).astype(float)
    for proba in (softmax(logits, axis=1), votes):
        folds, other = (draw_folds(proba, y, weight, seed) for seed in (0, 1))
        assert np.ptp(np.bincount(folds, minlength=5)) <= 1
        assert np.mean(folds == other) < 0.4
        order = np.random.default_rng(1).permutation(203)
        again = draw_folds(proba[order], y[order], weight[order], 0)
        rows = np.column_stack([proba, y, weight, folds])
        shuffled = np.column_stack([proba[order], y[order], weight[order], again])
        # Equal samples may change places.
        for found in (rows, shuffled):
            found[:] = found[np.lexsort(found.T)]
        np.testing.assert_array_equal(rows, shuffled)


@pytest.mark.slow
def test_samples_left_out_are_no_easier_than_new_ones():
    """Folds of equal class frequencies would flatter intercepts, here by .1."""
    excess = []
    for seed in range(30):
        rng = np.random.default_rng(seed)
        logits = 0.5 * rng.normal(size=(2020, 10))
        y = (softmax(logits, axis=1).cumsum(axis=1) < rng.random((2020, 1))).sum(axis=1)
        few = logits[:20], y[:20].clip(max=9)
        vector = StructuredVectorScaling(classes=list(range(10))).fit(*few)
        stack = StackedCalibration([("vector", vector)], classes=list(range(10))).fit(*few)
        proba = vector.predict_proba(logits[20:])
        new = -np.log(proba[np.arange(2000), y[20:].clip(max=9)]).mean()
        excess.append(stack.log_losses_["vector"] - new)
    assert np.mean(excess) > -0.05


@pytest.mark.slow
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


def test_a_single_sample_is_not_enough():
    match = "X must hold at least two samples of positive weight"
    with pytest.raises(ValueError, match=match):
        StackedCalibration(classes=[0, 1]).fit([[1.0, 2.0]], [1])
    with pytest.raises(ValueError, match=match):
        StackedCalibration().fit([[1.0, 2.0], [2.0, 1.0]], [0, 1], sample_weight=[1, 0])
    with pytest.raises(ValueError, match="groups must have at least two groups"):
        StackedCalibration().fit([[1.0, 2.0], [2.0, 1.0]], [0, 1], groups=[3, 3])
    fitted = StackedCalibration().fit([[1.0, 2.0], [2.0, 1.0]], [0, 1], groups=[3, 4])
    np.testing.assert_allclose(fitted.predict_proba([[0.0, 0.0]]), 0.5)


@pytest.mark.slow
@pytest.mark.filterwarnings("error")
def test_a_hundred_classes_with_two_samples_each():
    logits, _ = sample(200, 100)
    y = np.repeat(np.arange(100), 2)
    logits[np.arange(200), y] += 3
    stack = StackedCalibration().fit(logits, y)
    assert np.isfinite(stack.predict_proba(logits)).all()


@pytest.mark.slow
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


@pytest.mark.filterwarnings("ignore:X seems to belong to rows")
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


@pytest.mark.slow
def test_what_takes_too_long_is_left_out(monkeypatch):
    """Passes over 600 x 20 numbers for a vector, over 20 times as many for a matrix."""
    logits, y = sample(600, 20)
    reason = "600 samples of 20 classes are too many"
    for most, missing in (
        (600 * 20**2, set()),
        (600 * 20**2 - 1, {"structured_matrix"}),
        (600 * 20 - 1, {"structured_vector", "structured_matrix", "isotonic"}),
    ):
        monkeypatch.setattr("skcalib.posthoc._stacking.MOST_NUMBERS", most)
        stack = StackedCalibration().fit(logits, y)
        assert {"temperature", "structured_vector", "structured_matrix", "isotonic"} - set(
            stack.log_losses_
        ) == missing
        assert {name for name, why in stack.excluded_.items() if why == reason} == missing
