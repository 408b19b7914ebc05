"""DecompositionDisplay draws the parts of a score, and lines along which it is equal."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.naive_bayes import GaussianNB

from skcalib.metrics import score_decomposition
from skcalib.plots import DecompositionDisplay


def sample(sharpness=1.0):
    rng = np.random.default_rng(0)
    logits = rng.normal(size=(200, 3))
    y = (logits + rng.gumbel(size=(200, 3))).argmax(axis=1)
    proba = np.exp(sharpness * logits)
    return y, proba / proba.sum(axis=1, keepdims=True)


def example(**options):
    return DecompositionDisplay.from_predictions(*sample(2.0), **options)


@pytest.mark.parametrize("scoring_rule", ["brier", "log_loss"])
def test_the_point_is_the_decomposition(scoring_rule):
    weight = np.arange(200)
    display = DecompositionDisplay.from_predictions(
        *sample(2.0), scoring_rule=scoring_rule, sample_weight=weight, name="model"
    )
    parts = score_decomposition(*sample(2.0), scoring_rule=scoring_rule, sample_weight=weight)
    assert display.decomposition == parts
    assert display.line_.get_xdata()[0] == parts.miscalibration
    assert display.line_.get_ydata()[0] == parts.discrimination
    score = "Brier score" if scoring_rule == "brier" else "log-loss"
    text = display.ax_.get_title()
    assert text.startswith(f"model\n{score}: {parts.score:.4f}")


def test_the_score_is_equal_along_every_line():
    display = example()
    texts = {text.get_text(): text.xy for text in display.ax_.texts}
    lines = [line for line in display.ax_.lines if line is not display.line_]
    assert len(lines) == len(texts) >= 3
    uncertainty = display.decomposition.uncertainty
    for line in lines:
        score = line.get_xdata() - line.get_ydata() + uncertainty
        assert score[0] == pytest.approx(score[1])
        x, y = texts[f"{score[0]:.4g}"]
        assert x - y + uncertainty == pytest.approx(score[0])


def parts_of(*, discrimination, miscalibration):
    score = 0.2 + miscalibration - discrimination
    return score_decomposition(*sample())._replace(
        score=score, miscalibration=miscalibration, discrimination=discrimination, uncertainty=0.2
    )


@pytest.mark.parametrize(
    "points",
    [[(0.05, 0.01)], [(0.05, 0.0)], [(0.05, 0.01), (0.05 + 1e-17, 0.02)], [(0.01, 0), (0.1, 0)]],
)
def test_points_have_room_and_lines_fill_the_axes(points):
    ax = plt.subplots()[1]
    for discrimination, miscalibration in points:
        parts = parts_of(discrimination=discrimination, miscalibration=miscalibration)
        display = DecompositionDisplay(parts).plot(ax=ax)
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert left == 0 < right
    for y, x in points:
        assert x <= 0.9 * right
        assert bottom + 0.1 * (top - bottom) <= y <= top - 0.1 * (top - bottom)
    # The picture is no finer than its points need.
    assert right <= max(2 * max(x for _, x in points), 0.02)
    assert top - bottom >= 0.3 * right
    lines = [line for line in ax.lines if line.get_gid()]
    scores = sorted(0.2 + line.get_xdata()[0] - line.get_ydata()[0] for line in lines)
    np.testing.assert_allclose(np.diff(scores), scores[1] - scores[0])
    best, worst, step = 0.2 - top, 0.2 + right - bottom, scores[1] - scores[0]
    assert best < scores[0] <= best + step
    assert worst - step <= scores[-1] < worst
    for line, text in zip(lines, ax.texts, strict=True):
        np.testing.assert_array_equal(line.get_xdata(), [0, right])
        # The score stands where its line leaves the axes.
        assert text.xy[0] == pytest.approx(right) or text.xy[1] == pytest.approx(top)
        assert 0 <= text.xy[0] <= right * (1 + 1e-9)
        assert bottom <= text.xy[1] <= top + 1e-9
    assert display.line_ not in lines


def test_a_second_model_moves_the_lines():
    first = example(name="a")
    second = DecompositionDisplay.from_predictions(*sample(0.3), name="b", ax=first.ax_)
    assert len(second.ax_.texts) == len(second.ax_.lines) - 2
    low, high = second.ax_.get_ylim()
    for display in (first, second):
        assert low < display.decomposition.discrimination < high
        assert display.decomposition.miscalibration < second.ax_.get_xlim()[1]


def test_models_of_other_samples_are_refused():
    ax = plt.subplots()[1]
    example(ax=ax)
    y, proba = sample()
    with pytest.raises(ValueError, match="ax must hold models of the same samples and score"):
        DecompositionDisplay.from_predictions(y[:50], proba[:50], ax=ax)


def test_an_infinite_score_is_refused():
    with pytest.raises(ValueError, match="y_proba must give the true label a positive"):
        DecompositionDisplay.from_predictions([0, 1], [1.0, 0.0], scoring_rule="log_loss")


def test_estimator_that_misses_a_class():
    X, y = load_iris(return_X_y=True)
    model = GaussianNB().fit(X, y)
    display = DecompositionDisplay.from_estimator(model, X[:100], y[:100])
    expected = score_decomposition(y[:100], model.predict_proba(X[:100]), labels=[0, 1, 2])
    assert display.decomposition == expected
    assert display.name == "GaussianNB"
