"""What holds for every display: each test file has an `example(**options)` of its own."""

import re
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pytest
from matplotlib.colors import to_rgb
from sklearn.linear_model import LogisticRegression

from skcalib import plots
from skcalib.difficulty import RMDScorer
from skcalib.plots._base import escape_text

NOT_A_FORMULA = r"$\frac{$ and $x^{x^{x_y"


def _examples():
    """Return the `example` of every display, found in the test file of its name."""
    for name in plots.__all__:
        stem = re.sub("(?<!^)(?=[A-Z])", "_", name.removesuffix("Display")).lower()
        path = Path(__file__).with_name(f"test_{stem}.py")
        spec = spec_from_file_location(f"example_of_{stem}", path)
        module = module_from_spec(spec)
        spec.loader.exec_module(module)
        yield pytest.param(module.example, id=name)


EXAMPLES = list(_examples())
every_display = pytest.mark.parametrize("example", EXAMPLES)


@pytest.mark.slow
@every_display
def test_axes_are_new_or_those_given(example):
    display = example()
    assert display.figure_ is display.ax_.figure
    assert display.figure_.get_layout_engine() is not None
    display.figure_.canvas.draw()
    ax = plt.subplots()[1]
    assert example(ax=ax).ax_ is ax
    assert display.plot(ax=ax) is display
    assert display.ax_ is ax
    assert display.figure_ is ax.figure


@pytest.mark.slow
@every_display
def test_a_display_equals_itself_alone_and_shows_no_arrays(example):
    display = example()
    assert len({display, example()}) == 2
    assert "array(" not in repr(display)


@pytest.mark.slow
@every_display
def test_a_name_is_that_of_the_call_or_of_the_display(example):
    display = example(name="model A")
    assert display.name == "model A"
    assert "'model A'" in repr(display)
    assert "model A" in _texts(display.figure_)
    display.plot(name="model B")
    assert display.name == "model A"
    assert "model B" in _texts(display.figure_)
    assert "model A" not in _texts(display.figure_)


def _texts(figure):
    return "\n".join(text.get_text() for text in figure.findobj(plt.Text))


@pytest.mark.slow
@every_display
@pytest.mark.parametrize(
    "layout", ["constrained", *(pytest.param(x, marks=pytest.mark.long) for x in (None, "tight"))]
)
def test_names_are_shown_letter_by_letter(example, layout):
    """Before, matplotlib took them for formulas and could not save the figure."""
    ax = plt.subplots(1, 2, layout=layout)[1][0]
    display = example(name=NOT_A_FORMULA, ax=ax)
    display.figure_.canvas.draw()
    assert NOT_A_FORMULA.replace("$", r"\$").split()[0] in _texts(display.figure_)


@every_display
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"ax": "a"}, TypeError, "ax must be a matplotlib Axes or None, got 'a'."),
        ({"ax": [1]}, TypeError, "ax must be a matplotlib Axes or None, got [1]."),
        ({"name": 3}, TypeError, "name must be a str or None, got 3."),
    ],
)
def test_wrong_axes_and_names_are_named(example, options, error, message):
    with pytest.raises(error, match=re.escape(message)):
        example(**options)
    assert not plt.get_fignums()


@every_display
def test_removed_axes_are_refused(example):
    ax = plt.subplots()[1]
    ax.remove()
    with pytest.raises(ValueError, match="ax must be part of a figure, got Axes removed"):
        example(ax=ax)


@pytest.mark.slow
@every_display
def test_axes_of_a_closed_figure_are_drawn_on(example, tmp_path):
    """A notebook closes its figures after every cell; they can still be drawn on and saved."""
    figure, ax = plt.subplots()
    plt.close(figure)
    example(ax=ax).figure_.savefig(tmp_path / "figure.png")
    assert (tmp_path / "figure.png").stat().st_size > 1000


@pytest.mark.slow
@every_display
def test_six_subplots_of_a_constrained_figure(example):
    figure, axes = plt.subplots(2, 3, figsize=(9, 7), layout="constrained")
    for i in (0, 5):
        example(ax=axes.flat[i], name=f"model {i}")
    figure.draw_without_rendering()  # warns where the axes have collapsed: an error here


@pytest.mark.slow
@every_display
def test_reference_lines_are_seen_on_a_dark_ground(example):
    with plt.style.context("dark_background"):
        display = example()
        dotted = [line for line in display.ax_.lines if line.get_linestyle() == ":"]
        assert "black" not in {line.get_color() for line in dotted}
        assert "k" not in {line.get_color() for line in dotted}


@pytest.mark.parametrize(
    ("text", "options", "shown"),
    [
        ("a$b", {}, r"a\$b"),
        ("_a", {}, " _a"),
        (3, {}, "3"),
        ("one two three", {"width": 8}, "one two\nthree"),
        ("a" * 30, {"width": 10}, "a" * 10 + "\n" + "a" * 7 + "..."),
        ("a" * 30, {"width": 10, "tail": ": 0.1"}, "a" * 10 + "\naa...: 0.1"),
        # What just fits is whole, and of a name at least eight letters are left.
        ("a" * 20, {"width": 10}, "a" * 10 + "\n" + "a" * 10),
        ("a" * 16, {"width": 10, "tail": "-b-c"}, "a" * 10 + "\n" + "a" * 6 + "-b-c"),
        ("a" * 9, {"width": 3, "n_lines": 1}, "aaaaa..."),
        # Before, whole words made a third line.
        ("one two three four five", {"width": 10}, "one two\nthree f..."),
        ("a" * 9, {"width": 10, "n_lines": 1, "tail": " = 1234567"}, "aaaaa... =\n1234567"),
    ],
)
def test_plain_text(text, options, shown):
    assert escape_text(text, **options) == shown


def test_a_legend_never_hides_a_name():
    ax = plt.subplots()[1]
    for name in ("_private", "public"):
        display = plots.ProbeAccuracyDisplay(np.array([0.5, 1.0]), name=name).plot(ax=ax)
    texts = [text.get_text().strip() for text in display.ax_.get_legend().get_texts()]
    assert texts == ["_private", "public"]


def test_curves_on_the_same_axes_differ_in_color_and_marker():
    ax = plt.subplots()[1]
    for i in range(8):
        plots.ProbeAccuracyDisplay(np.array([0.5, 1.0]), name=f"{i}").plot(ax=ax)
    assert len({(line.get_color(), line.get_marker()) for line in ax.lines}) == 8


@pytest.mark.parametrize("option", [{"c": "red"}, {"color": "red"}])
def test_options_of_the_line_have_the_last_word(option):
    display = plots.ProbeAccuracyDisplay(np.array([0.5, 1.0])).plot(**option, lw=3, label="x")
    assert display.line_.get_color() == "red"
    assert display.line_.get_linewidth() == 3
    assert display.ax_.get_legend().get_texts()[0].get_text() == "x"


@pytest.mark.slow
def test_the_legend_of_many_entries_stands_beside_the_axes():
    display = plots.ProbeAccuracyDisplay(np.array([0.5, 1.0]), name="0").plot()
    for i in range(4):
        display.plot(ax=display.ax_, name=f"a longer name {i}")
    display.figure_.canvas.draw()
    legend = display.ax_.get_legend().get_window_extent()
    assert legend.x0 > display.ax_.bbox.x1
    assert legend.x1 < display.figure_.bbox.x1


@pytest.mark.slow
@pytest.mark.parametrize("size", [(3, 3), (6.4, 4.8), (12, 4)])
@pytest.mark.parametrize("layout", [None, "constrained", "tight"])
def test_a_legend_never_leaves_the_figure(size, layout):
    ax = plt.subplots(figsize=size, layout=layout)[1]
    curve = np.array([0.1, 0.4, 0.9])
    for i in range(4):
        display = plots.ReliabilityDisplay(
            curve, curve, np.ones(3), np.arange(4) / 3, calibration_error=0.1, name=f"model {i}"
        ).plot(ax=ax)
    display.figure_.canvas.draw()
    legend, figure = ax.get_legend().get_window_extent(), display.figure_.bbox
    assert legend.x0 >= 0
    assert legend.y0 >= 0
    assert legend.x1 <= figure.x1
    assert legend.y1 <= figure.y1


@pytest.mark.slow
def test_the_legend_of_many_entries_stands_above_narrow_axes():
    ax = plt.subplots(figsize=(3, 3), layout="constrained")[1]
    for i in range(5):
        plots.ProbeAccuracyDisplay(np.array([0.5, 1.0]), name=f"model {i}").plot(ax=ax)
    ax.figure.canvas.draw()
    assert ax.get_legend().get_window_extent().y0 >= ax.bbox.y1
    assert ax.get_tightbbox().x0 >= 0


def test_curves_are_bright_on_a_dark_background():
    colors = []
    for style in ("default", "dark_background"):
        with plt.style.context(style):
            display = plots.ProbeAccuracyDisplay(np.array([0.5, 1.0])).plot()
            colors.append(sum(to_rgb(display.line_.get_color())))
    assert colors[0] < 1.5 < colors[1]


@pytest.mark.slow
def test_names_in_the_legend_of_a_small_figure_have_a_line_each():
    ax = plt.subplots(figsize=(3, 3), layout="constrained")[1]
    for i in range(5):
        name = f"{i}: a name that is long, and then some more of it"
        plots.ProbeAccuracyDisplay(np.array([0.5, 1.0]), name=name).plot(ax=ax)
    ax.figure.canvas.draw()
    texts = [text.get_text() for text in ax.get_legend().get_texts()]
    assert len(texts) == 5
    assert not any("\n" in text for text in texts)


def test_one_curve_has_a_title_and_two_have_a_legend():
    display = plots.RiskCoverageDisplay(np.array([0.5, 1]), np.array([0, 0.1]), area=0.05)
    ax = display.plot(name="one", ref_line=False).ax_
    assert ax.get_title() == "one\nAURC: 0.0500"
    assert ax.get_legend() is None
    display.plot(ax=ax, name="two", ref_line=False)
    assert ax.get_title() == ""
    assert ax.get_legend().get_title().get_text() == "AURC:"
    assert [t.get_text() for t in ax.get_legend().get_texts()] == ["one: 0.0500", "two: 0.0500"]


def test_a_title_of_the_user_stays():
    ax = plt.subplots()[1]
    ax.set_title("mine")
    for _ in range(2):
        plots.ProbeAccuracyDisplay(np.array([0.5, 1.0]), name="a").plot(ax=ax)
        assert ax.get_title() == "mine"


def test_many_points_are_drawn_as_pixels():
    for n_points, rasterized in [(5000, False), (5001, True)]:
        display = plots.RiskCoverageDisplay(np.linspace(0, 1, n_points), np.ones(n_points)).plot()
        assert bool(display.line_.get_rasterized()) is rasterized


@pytest.mark.parametrize(
    "display",
    [
        plots.ClassReliabilityDisplay,
        plots.DecompositionDisplay,
        plots.ReliabilityDisplay,
        plots.RiskCoverageDisplay,
    ],
)
@pytest.mark.parametrize("y", [[0, 1], [0, 1, 0.5, 1], [[0, 2]] * 4, [0, 1, 2, 1]])
def test_errors_of_from_estimator_speak_of_y(display, y):
    X = np.array([[0.0], [1.0], [0.5], [2.0]])
    model = LogisticRegression().fit(X, [0, 1, 0, 1])
    with pytest.raises(ValueError, match=r"^y (must|and y_proba must)"):
        display.from_estimator(model, X, y)


def test_errors_of_the_difficulty_display_speak_of_y():
    X = np.array([[0.0], [1.0], [0.5], [2.0]])
    model = LogisticRegression().fit(X, [0, 1, 0, 1])
    scorer = RMDScorer().fit(X, [0, 1, 0, 1])
    for y in ([0, 1], [0, 1, 0.5, 1], [[0, 1]] * 4):
        with pytest.raises(ValueError, match=r"\by\b") as caught:
            plots.DifficultyDisplay.from_estimator(model, X, y, scorer=scorer)
        assert "y_true" not in str(caught.value)


@every_display
def test_an_option_that_nobody_knows_names_the_display(example):
    message = r"Display has no such option, nor has matplotlib: .* keyword argument 'colour'"
    with pytest.raises(TypeError, match=message):
        example(colour="red")
