"""Where things stand in a display: inside their axes, apart from each other, as large as said."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_hex

from skcalib import plots
from skcalib.plots._base import MANY_POINTS, choose_opacity, choose_point_style, draw_points

HALF_TO_ONE = np.array([0.5, 1.0])


def probes(n_curves, *, size=(6.4, 4.8), layout="constrained", name="a{}", title=""):
    """Axes with curves of so many networks."""
    ax = plt.subplots(figsize=size, layout=layout)[1]
    ax.set_title(title)
    for i in range(n_curves):
        plots.ProbeAccuracyDisplay(HALF_TO_ONE, name=name.format(i)).plot(ax=ax)
    ax.figure.canvas.draw()
    return ax


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_curves", "options", "place"),
    [
        (3, {}, "inside"),
        (4, {}, "beside"),
        (4, {"title": "mine"}, "beside"),
        (4, {"layout": None}, "inside"),
        (3, {"size": (3, 3)}, "inside"),
        (4, {"size": (3, 3)}, "above"),
        # There the title of the user stands.
        (4, {"size": (3, 3), "title": "mine"}, "inside"),
    ],
)
def test_the_place_of_the_legend(n_curves, options, place):
    ax = probes(n_curves, **options)
    box, legend = ax.get_window_extent(), ax.get_legend().get_window_extent()
    gap = 0.1 * box.width
    if place == "beside":
        assert box.x1 < legend.x0 < box.x1 + gap
        assert legend.y1 == pytest.approx(box.y1, abs=gap)
    elif place == "above":
        assert legend.x0 == pytest.approx(box.x0, abs=gap)
        assert box.y1 < legend.y0 < box.y1 + gap
    else:
        assert box.x0 < legend.x0 < legend.x1 < box.x1
        assert box.y0 < legend.y0 < legend.y1 < box.y1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_curves", "size", "n_lines"),
    [(2, (6.4, 4.8), 2), (3, (6.4, 4.8), 2), (4, (6.4, 4.8), 3), (2, (3, 3), 1), (4, (3, 3), 1)],
)
def test_lines_of_a_long_name_in_the_legend(n_curves, size, n_lines):
    ax = probes(n_curves, size=size, name="{}" + " word" * 40)
    for text in ax.get_legend().get_texts():
        assert text.get_text().count("\n") + 1 == n_lines
        assert text.get_text().endswith("...")


def test_very_many_points_have_their_legend_in_a_corner():
    """To look for the best place among them takes long."""
    x = np.linspace(0, 1, MANY_POINTS + 1)
    ax = plt.subplots()[1]
    for name in "ab":
        plots.RiskCoverageDisplay(x, 1 - x, name=name).plot(ax=ax, ref_line=False)
    ax.figure.canvas.draw()
    box, legend = ax.get_window_extent(), ax.get_legend().get_window_extent()
    assert legend.x0 - box.x0 < 0.05 * box.width
    assert box.y1 - legend.y1 < 0.05 * box.height


def test_measures_that_differ_are_named_in_every_entry():
    curve = (HALF_TO_ONE, HALF_TO_ONE, np.ones(2), np.arange(3) / 2)
    ax = plt.subplots()[1]
    for name, n_bins in (("a", 5), ("b", 10)):
        plots.ReliabilityDisplay(*curve, calibration_error=0.1, n_bins=n_bins, name=name).plot(
            ax=ax
        )
    texts = [text.get_text().replace("\n", " ") for text in ax.get_legend().get_texts()]
    assert texts == ["a: top-label ECE, 5 bins: 0.100", "b: top-label ECE, 10 bins: 0.100"]
    assert ax.get_legend().get_title().get_text() == ""


@pytest.mark.parametrize("vertical", [False, True])
@pytest.mark.parametrize(("size", "dpi"), [((3, 6), 100), ((9, 2.5), 60)])
@pytest.mark.parametrize("font_size", [8, 14])
def test_so_many_letters_fit_along_the_axes(vertical, size, dpi, font_size):
    with plt.rc_context({"axes.labelsize": font_size}):
        ax = plt.subplots(figsize=size, dpi=dpi)[1]
        display = plots.ProbeAccuracyDisplay(HALF_TO_ONE).plot(ax=ax)
        n = display._count_characters(vertical=vertical)
        axis = ax.yaxis if vertical else ax.xaxis
        axis.set_label_text(("the calibration error of a model " * 9)[:n])
        ax.figure.canvas.draw()
        label, box = axis.label.get_window_extent(), ax.get_window_extent()
        fraction = label.height / box.height if vertical else label.width / box.width
        assert 0.75 < fraction < 1.05
        if not vertical:
            assert display._inches() == pytest.approx(box.height / dpi)


@pytest.mark.slow
def test_facts_of_wide_axes_alone():
    y, proba = np.tile([0, 1, 1], 40), np.tile([0.2, 0.6, 0.9], 40)
    display = plots.ReliabilityDisplay.from_predictions(y, proba, interval=False)
    for size, said in (((7, 5), True), ((3, 3), False)):
        ax = plt.subplots(figsize=size)[1]
        title = display.plot(ax=ax, name="a").ax_.title
        ax.figure.canvas.draw()
        assert ("n = 120" in title.get_text()) is said
        assert title.get_window_extent().x0 > 0
        assert title.get_window_extent().x1 < ax.figure.bbox.x1


@pytest.mark.parametrize(
    ("color", "dark"),
    [
        ("black", True),
        ((0.4, 0.4, 0.6), True),
        ((0.5, 0.5, 0.5), False),
        ("white", False),
        # What one sees through is judged by nothing behind it.
        ((0, 0, 0, 0.6), True),
        ((0, 0, 0, 0.5), False),
    ],
)
def test_colors_are_those_for_the_background(color, dark):
    ax = plt.subplots()[1]
    ax.set_facecolor(color)
    display = plots.ProbeAccuracyDisplay(HALF_TO_ONE, n_samples=20).plot(ax=ax)
    with plt.style.context("dark_background" if dark else "default"):
        expected = plots.ProbeAccuracyDisplay(HALF_TO_ONE).plot()
    assert display.line_.get_color() == expected.line_.get_color()


@pytest.mark.slow
def test_axes_below_fill_the_place_of_the_axes():
    ax = plt.subplots()[1]
    place = ax.get_position()
    display = plots.DifficultyDisplay.from_predictions(
        [0, 1] * 5, [0, 1, 1, 1, 0] * 2, np.arange(10), n_groups=2, ax=ax
    )
    ax.figure.canvas.draw()
    above, below = ax.get_position(), display.histogram_ax_.get_position()
    assert (above.x0, above.x1, above.y1) == pytest.approx((place.x0, place.x1, place.y1))
    assert (below.x0, below.x1, below.y0) == pytest.approx((place.x0, place.x1, place.y0))
    assert 0.05 < below.height / above.height < 0.4
    assert below.y1 < above.y0
    # The shared axis has its numbers below, and counts are whole.
    assert not any(tick.label1.get_visible() for tick in ax.xaxis.get_major_ticks())
    counts = [label.get_text() for label in display.histogram_ax_.get_yticklabels()]
    assert 2 <= len(counts) <= 3
    assert all(text.isdigit() for text in counts)


def test_an_end_on_the_wrong_side_by_rounding_is_drawn():
    rate = np.array([0.1, 0.2])
    band = rate + 1e-17 + 1e-16, rate - 1e-16
    display = plots.DifficultyDisplay(rate, band=band).plot()
    drawn = [segment[:, 1] for segment in display.ax_.collections[0].get_segments()]
    np.testing.assert_allclose(drawn, rate[:, np.newaxis] * np.ones(2))


def displays_at_95(**options):
    rng = np.random.default_rng(0)
    proba = rng.uniform(size=100)
    y = (rng.uniform(size=100) < proba).astype(int)
    both = np.column_stack([1 - proba, proba])
    return [
        plots.ReliabilityDisplay.from_predictions(y, proba, **options),
        plots.ReliabilityDisplay.from_predictions(y, proba, kind="isotonic", **options),
        plots.ClassReliabilityDisplay.from_predictions(y, both, **options).displays[1],
        plots.DifficultyDisplay.from_predictions(y, proba > 0.5, proba, **options),
        plots.RiskCoverageDisplay.from_predictions(y, proba, **options),
        plots.LossComparisonDisplay.from_scores({"a": [1, 2, 4]}, **options),
    ]


@pytest.mark.slow
def test_intervals_are_of_95_per_cent_unless_told():
    for display, expected in zip(displays_at_95(), displays_at_95(confidence_level=0.95)):
        if hasattr(display, "intervals_"):
            assert display.intervals_ == expected.intervals_
            continue
        if hasattr(display, "band"):
            np.testing.assert_array_equal(display.band, expected.band)
        for ours, theirs in zip(display.ax_.collections, expected.ax_.collections, strict=True):
            for path, other in zip(ours.get_paths(), theirs.get_paths(), strict=True):
                np.testing.assert_array_equal(path.vertices, other.vertices)


@pytest.mark.slow
@pytest.mark.parametrize("n_samples", [20_000, 20_001])
def test_from_20_000_samples_on_maps_show_cells(n_samples):
    rng = np.random.default_rng(0)
    x, y, value = rng.uniform(size=(3, n_samples))
    drawn = [
        plots.EmbeddingMapDisplay(np.column_stack([x, y]), value).plot().scatter_,
        plots.TrainingMapDisplay(x / 2, y, correctness=value).plot().scatter_,
        *plots.DifficultyPlaneDisplay.from_predictions(4 * x, 4 * y).scatters_.values(),
    ]
    as_cells = [hasattr(points, "get_array") and len(points.get_paths()) == 1 for points in drawn]
    n_drawn = [len(points.get_offsets()) for points in drawn]
    assert all(as_cells)
    if n_samples == 20_000:
        assert n_drawn[:2] == [n_samples] * 2
        assert sum(n_drawn[2:]) == n_samples
    else:
        assert max(n_drawn) < n_samples / 2


@pytest.mark.parametrize(
    ("limits", "extend"),
    [((0.0, 1.0), "neither"), ((0.1, 1.0), "min"), ((0.0, 0.9), "max"), ((0.1, 0.9), "both")],
)
def test_the_color_bar_points_to_values_beyond_its_colors(limits, extend):
    ax = plt.subplots()[1]
    values = np.linspace(0, 1, 11)
    points = draw_points(ax, np.ones((11, 2)), values, label="depth", limits=limits)
    assert points.colorbar.extend == extend
    assert ax.child_axes[0].get_ylabel() == "depth"


def test_the_hardest_samples_differ_most_from_the_background():
    values = np.linspace(0, 1, 50)
    hard_high = plots.EmbeddingMapDisplay(np.column_stack([values, values]), values).plot()
    hard_low = plots.TrainingMapDisplay(values / 2, values, correctness=values).plot()
    for points, hardest in ((hard_high.scatter_, 1.0), (hard_low.scatter_, 0.0)):
        shades = [np.abs(1 - np.array(points.cmap(end)[:3])).sum() for end in (hardest, 0.5)]
        assert shades[0] > shades[1]
        easy = np.array(points.cmap(1 - hardest)[:3])
        assert np.ptp(easy) == 0  # gray


def test_one_sample_far_away_leaves_the_others_their_colors():
    values = np.append(np.linspace(0, 1, 99), 1e6)
    display = plots.EmbeddingMapDisplay(np.column_stack([values, values]), values).plot()
    low, high = display.scatter_.get_clim()
    inside = (values >= low) & (values <= high)
    assert 0.9 < inside.mean() < 1
    assert high < 2


def test_the_fainter_the_fewer():
    counts = np.array([1.0, 2.0, 50.0, 100.0, 5000.0])
    alpha = choose_opacity(counts, np.full(1000, 100.0))
    assert (np.diff(alpha) > 0).tolist() == [True, True, True, False]
    assert alpha[0] > 0.1
    assert alpha[-1] == pytest.approx(1)
    # A few cells of far more samples make the others no fainter.
    of_all = np.append(np.full(1000, 100.0), np.full(5, 1e6))
    np.testing.assert_array_equal(choose_opacity(counts, of_all), alpha)
    styles = [choose_point_style(n) for n in (300, 301, 5000, 5001)]
    assert [style["rasterized"] for style in styles] == [False, False, False, True]
    sizes = [style["s"] for style in styles]
    assert sizes[0] > sizes[1] == sizes[2] > sizes[3]


@pytest.mark.parametrize("n_samples", [300, 5000, 5001])
def test_rings_are_larger_than_their_points_and_very_many_are_pixels(n_samples):
    position = np.random.default_rng(0).normal(size=(n_samples, 2))
    display = plots.EmbeddingMapDisplay(
        position, position[:, 0], suspected=np.ones(n_samples, bool)
    ).plot()
    for artist in (display.rings_, display.scatter_):
        assert bool(artist.get_rasterized()) is (n_samples > MANY_POINTS)
    [ring], [point] = display.rings_.get_sizes(), display.scatter_.get_sizes()
    assert 1.5 < np.sqrt(ring / point) < 4
    assert len(display.rings_.get_facecolors()) == 0


@pytest.mark.parametrize("style", ["default", "dark_background"])
def test_a_map_of_one_color_has_that_of_the_first_curve(style):
    with plt.style.context(style):
        points = plots.TrainingMapDisplay(HALF_TO_ONE / 2, HALF_TO_ONE).plot().scatter_
        line = plots.ProbeAccuracyDisplay(HALF_TO_ONE).plot().line_
    assert to_hex(points.get_facecolor()[0]) == to_hex(line.get_color())
    assert points.get_facecolor()[0, 3] < 1


def test_bands_and_lines_of_very_many_points_are_pixels():
    for n_points in (MANY_POINTS, MANY_POINTS + 1):
        x = np.linspace(0, 1, n_points)
        display = plots.ReliabilityDisplay(
            x, x, np.ones(2), np.arange(3) / 2, band=(x, x), kind="smooth"
        ).plot()
        for artist in (display.line_, display.ax_.collections[0]):
            assert bool(artist.get_rasterized()) is (n_points > MANY_POINTS)
