"""TrainingMapDisplay draws what the functions of the record say."""

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA

from skcalib.difficulty.training_dynamics import confidence_variability, consistency_score
from skcalib.nets import MLP, CalibratedNetClassifier, TrainingDynamics
from skcalib.plots import TrainingMapDisplay


def record(n_samples=30):
    rng = np.random.default_rng(0)
    return rng.uniform(size=(4, n_samples)), rng.integers(2, size=(4, n_samples))


def example(**options):
    proba, predictions = record()
    y = np.zeros(30, dtype=int)
    return TrainingMapDisplay.from_predictions(proba, predictions=predictions, y=y, **options)


def test_points_are_spread_and_mean_of_the_record():
    proba, predictions = record()
    display = example()
    drawn = np.asarray(display.scatter_.get_offsets())
    expected = np.column_stack([confidence_variability(proba), proba.mean(axis=0)])
    order = np.lexsort(drawn.T), np.lexsort(expected.T)
    np.testing.assert_allclose(drawn[order[0]], expected[order[1]])
    colors = np.asarray(display.scatter_.get_array())
    np.testing.assert_allclose(
        colors[order[0]], consistency_score(predictions, np.zeros(30, dtype=int))[order[1]]
    )
    assert display.scatter_.get_clim() == (0, 1)


def test_all_points_are_inside_and_regions_where_they_are_named():
    ax = TrainingMapDisplay(np.array([0.0, 0.5, 0.0]), np.array([1.0, 0.5, 0.0])).plot().ax_
    (left, right), (bottom, top) = ax.get_xlim(), ax.get_ylim()
    assert -0.05 < left < 0 < 0.5 < right < 0.6
    assert -0.1 < bottom < 0 < 1 < top < 1.1
    place = {text.get_text(): text.xy for text in ax.texts}
    assert place["hard to learn"][1] < 0.5 < place["easy to learn"][1]
    assert place["ambiguous"][0] > 0.5 > place["easy to learn"][0]


@pytest.mark.slow
def test_a_second_display_replaces_the_color_bar():
    display = example()
    display.plot(ax=display.ax_)
    [bar] = display.ax_.child_axes
    display.figure_.canvas.draw()
    beside, plot = bar.get_position(), display.ax_.get_position()
    assert beside.x0 > plot.x1
    assert (beside.y0, beside.y1) == pytest.approx((plot.y0, plot.y1))


def test_a_record_without_predictions_has_one_color():
    display = TrainingMapDisplay.from_predictions(record()[0])
    assert display.correctness is None
    assert not display.ax_.child_axes


def test_the_record_of_a_net():
    X, y = load_iris(return_X_y=True)
    dynamics = TrainingDynamics()
    CalibratedNetClassifier(MLP, max_epochs=3, callbacks=[dynamics], random_state=0).fit(X, y)
    display = TrainingMapDisplay.from_dynamics(dynamics)
    # Without the untrained network.
    trained = dynamics.confidence_[1:].astype(np.float64)
    np.testing.assert_allclose(display.confidence, trained.mean(axis=0))
    np.testing.assert_allclose(display.variability, trained.std(axis=0), atol=1e-6)
    np.testing.assert_allclose(display.correctness, (dynamics.prediction_[1:] == y).mean(axis=0))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"y": [0, 0]}, "predictions must be given together with y"),
        ({"predictions": [[0], [0]], "y": [0]}, "predictions must have as many columns as"),
    ],
)
def test_bad_input_is_named(options, message):
    with pytest.raises(ValueError, match=message):
        TrainingMapDisplay.from_predictions([[0.1, 0.2], [0.3, 0.4]], **options)


def test_only_a_record_of_a_training_has_dynamics():
    with pytest.raises(TypeError, match=r"dynamics must be a TrainingDynamics .* got PCA, which"):
        TrainingMapDisplay.from_dynamics(PCA())
    with pytest.raises(TypeError, match=r"dynamics must be a .* which has no confidence_"):
        TrainingMapDisplay.from_dynamics(TrainingDynamics())
