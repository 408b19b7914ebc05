import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest
from scipy.stats import beta
from sklearn.datasets import load_iris
from sklearn.decomposition import PCA
from sklearn.neural_network import MLPClassifier

from skcalib.difficulty import PredictionDepthScorer
from skcalib.difficulty.training_dynamics import prediction_depth
from skcalib.plots import ProbeAccuracyDisplay


def example(**options):
    predictions = np.random.default_rng(0).integers(3, size=(50, 9))
    return ProbeAccuracyDisplay.from_predictions(predictions[:, -1], predictions, **options)


def test_from_estimator_and_from_predictions_agree():
    X, y = load_iris(return_X_y=True)
    net = MLPClassifier(
        (6,), tol=1e9, n_iter_no_change=20, learning_rate_init=0.05, random_state=0
    )
    names = np.array(["ant", "bee", "cat"])
    scorer = PredictionDepthScorer(net, n_neighbors=5).fit(X[::2], names[y[::2]])
    display = ProbeAccuracyDisplay.from_estimator(scorer, X[1::2], names[y[1::2]], name="net")
    predictions = scorer.probe_predict(X[1::2])
    expected = [np.mean([a == b for a, b in zip(c, names[y[1::2]])]) for c in predictions.T]
    np.testing.assert_allclose(display.line_.get_ydata(), expected)
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == scorer.layer_names_
    assert display.ax_.get_title() == "net"
    other = ProbeAccuracyDisplay.from_predictions(
        names[y[1::2]], predictions, layer_names=scorer.layer_names_, ax=display.ax_
    )
    np.testing.assert_array_equal(other.accuracy, display.accuracy)
    assert other.ax_ is display.ax_
    assert other.figure_ is display.figure_


def test_plot_again_without_a_name():
    display = ProbeAccuracyDisplay(np.array([0.5, 1.0])).plot(color="black", marker="x")
    assert display.line_.get_color() == "black"
    assert display.line_.get_marker() == "x"
    assert [t.get_text() for t in display.ax_.get_xticklabels()] == ["0", "1"]
    assert display.ax_.get_legend() is None


@pytest.mark.parametrize(
    ("predictions", "names", "message"),
    [
        ([0, 1], None, r"probe_predictions must be 2-dimensional .*, got shape \(2,\)"),
        ([[0, 1]], None, r"y_true must have shape \(1,\), got length 2"),
        ([[0], [1]], ["a", "b"], "layer_names must hold 1 names, got 2"),
    ],
)
def test_bad_input(predictions, names, message):
    with pytest.raises(ValueError, match=message):
        ProbeAccuracyDisplay.from_predictions([0, 1], predictions, layer_names=names)


@pytest.mark.parametrize(
    "predictions",
    [
        [["0", "0"], ["1", "1"]],
        [["0", 0], ["1", 1]],
        [[0, np.nan], [1, 1]],
        [[0, np.inf], [1, 1]],
        [[0, 0.5], [1, 1]],
        [[0, 1j], [1, 1]],
        [[0, None], [1, 1]],
        np.array([[0, 1], [1, 1]], dtype="datetime64[s]"),
    ],
)
def test_what_prediction_depth_refuses_is_refused(predictions):
    """Before, text against numbers was an accuracy of 0, and NaN a class of its own."""
    with pytest.raises((TypeError, ValueError)):
        prediction_depth(predictions, [0, 1])
    with pytest.raises((TypeError, ValueError), match=r"probe_predictions|y_true"):
        ProbeAccuracyDisplay.from_predictions([0, 1], predictions)


def test_mixed_and_masked_labels_are_refused():
    with pytest.raises(TypeError, match=r"probe_predictions\[1\] must hold class"):
        ProbeAccuracyDisplay.from_predictions(["0", "1"], [["0", "0"], [1, "1"]])
    with pytest.raises(TypeError, match=r"probe_predictions\[0\] must hold class"):
        ProbeAccuracyDisplay.from_predictions(["0", "1"], [["0", 0], ["1", 1]])
    masked = np.ma.masked_array([[0, 1], [1, 1]], mask=[[0, 0], [1, 0]])
    with pytest.raises(ValueError, match="probe_predictions must not be masked"):
        ProbeAccuracyDisplay.from_predictions([0, 1], masked)


def test_frames_of_text_are_read():
    predictions = pd.DataFrame({"conv": ["ant", "bee"], "fc": ["ant", "ant"]})
    display = ProbeAccuracyDisplay.from_predictions(pd.Series(["ant", "ant"]), predictions)
    np.testing.assert_array_equal(display.accuracy, [0.5, 1.0])


def test_names_of_layers_are_shown_letter_by_letter():
    display = ProbeAccuracyDisplay.from_predictions(
        [0, 1], [[0, 0], [1, 1]], layer_names=["$\\frac{$", "_"]
    )
    display.figure_.canvas.draw()
    names = [text.get_text() for text in display.ax_.get_xticklabels()]
    assert names == ["\\$\\frac{\\$", " _"]


def test_many_layers_are_named_in_part():
    display = ProbeAccuracyDisplay(np.linspace(0, 1, 60)).plot()
    names = [int(text.get_text()) for text in display.ax_.get_xticklabels()]
    assert 5 <= len(names) <= 21
    assert len(set(np.diff(names))) == 1


def test_only_a_depth_scorer_has_probes():
    with pytest.raises(TypeError, match=r"estimator must be a PredictionDepthScorer, got PCA"):
        ProbeAccuracyDisplay.from_estimator(PCA(), [[0.0], [1.0]], [0, 1])


def test_bars_are_exact_binomial_intervals():
    predictions = np.zeros((40, 2), dtype=int)
    predictions[:7, 0] = 1
    display = ProbeAccuracyDisplay.from_predictions(np.zeros(40, dtype=int), predictions)
    drawn = [segment[:, 1] for segment in display.ax_.collections[0].get_segments()]
    np.testing.assert_allclose(drawn[0], beta.ppf([0.025, 0.975], [33, 34], [8, 7]))
    np.testing.assert_allclose(drawn[1], [0.025 ** (1 / 40), 1])
    bottom, top = display.ax_.get_ylim()
    assert bottom == 0
    assert 1 < top < 1.1
    assert not ProbeAccuracyDisplay(np.array([0.5, 1.0])).plot().ax_.collections


@pytest.mark.slow
@pytest.mark.parametrize(("n_layers", "inches"), [(20, 6.4), (21, 2), (60, 3), (7, 1)])
def test_names_of_layers_do_not_overlap(n_layers, inches):
    ax = plt.subplots(figsize=(inches, 3))[1]
    display = ProbeAccuracyDisplay(np.linspace(0, 1, n_layers)).plot(ax=ax)
    ax.figure.canvas.draw()
    places = [int(text.get_text()) for text in ax.get_xticklabels()]
    room = display._count_characters()
    step = places[1] - places[0] if len(places) > 1 else n_layers
    # Three letters for a name, and no fewer names than fit.
    assert len(places) * 3 <= max(room, 3)
    assert step == 1 or -(-n_layers // (step - 1)) * 3 > room
    assert places == list(range(0, n_layers, step))
