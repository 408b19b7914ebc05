import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
import pytest

from skcalib.difficulty.training_dynamics import difficulty_quadrant
from skcalib.plots import DifficultyPlaneDisplay
from skcalib.plots._training import FORMS


def example(**options):
    depths = np.random.default_rng(0).uniform(0, 6, (2, 40))
    return DifficultyPlaneDisplay.from_predictions(*depths, **options)


@pytest.fixture
def depths():
    rng = np.random.default_rng(0)
    held_out, trained = rng.uniform(0, 6, (2, 40))
    held_out[3] = np.nan
    return held_out, trained


def test_points_and_fractions(depths):
    display = DifficultyPlaneDisplay.from_predictions(*depths, threshold=2.5)
    again = DifficultyPlaneDisplay.from_predictions(*depths, threshold=2.5)
    forms = difficulty_quadrant(*depths, threshold=2.5)
    texts = " ".join(t.get_text() for t in display.ax_.texts)
    for form, points in display.scatters_.items():
        chosen = forms == form
        moved = points.get_offsets() - np.column_stack([d[chosen] for d in depths])
        assert 0 < np.abs(moved).max() <= 0.15
        np.testing.assert_array_equal(points.get_offsets(), again.scatters_[form].get_offsets())
        assert f"{chosen.sum() / 40:.1%}" in texts
    assert sum(len(p.get_offsets()) for p in display.scatters_.values()) == 39


@pytest.mark.slow
def test_every_corner_has_its_form(depths):
    display = DifficultyPlaneDisplay.from_predictions(*depths, threshold=2.5)
    display.figure_.canvas.draw()
    box = display.ax_.get_window_extent()
    texts = {text.get_text().partition("\n")[0]: text for text in display.ax_.texts}
    assert [*texts] == ["easy", "looks like", "ambiguous", "ambiguous"][:3]
    gaps = []
    for text in display.ax_.texts:
        right, top = text.xy
        extent = text.get_window_extent()
        gaps += [box.x1 - extent.x1 if right else extent.x0 - box.x0]
        gaps += [box.y1 - extent.y1 if top else extent.y0 - box.y0]
        # The points of the form lie toward its corner.
        form = next(f for f, (*corner, _) in FORMS.items() if tuple(corner) == (right, top))
        center = np.mean(display.scatters_[form].get_offsets(), axis=0)
        assert (center[0] > 2.5, center[1] > 2.5) == (right, top)
    assert min(gaps) > 0
    assert max(gaps) < 0.05 * box.height
    places = [np.abs(text.xyann) for text in display.ax_.texts]
    assert np.ptp(places) == 0


def test_very_many_samples_are_cells_of_their_form():
    rng = np.random.default_rng(0)
    depths = rng.integers(4, size=(2, 30_000))
    depths[:, :25_000] = 0
    display = DifficultyPlaneDisplay.from_predictions(*depths)
    easy, ambiguous = display.scatters_["easy"], display.scatters_["ambiguous"]
    assert easy.get_alpha().max() == pytest.approx(1)
    assert ambiguous.get_alpha().max() < 0.6
    assert not np.array_equal(easy.get_facecolor()[0, :3], ambiguous.get_facecolor()[0, :3])
    points = DifficultyPlaneDisplay.from_predictions(*depths, s=1).scatters_["easy"]
    assert len(points.get_offsets()) == (display.difficulty_type == "easy").sum()


def test_from_profile_reads_a_study(depths):
    forms = difficulty_quadrant(*depths)
    profile = {"depth_held_out": depths[0], "depth_trained": depths[1], "difficulty_type": forms}
    ax = plt.subplots()[1]
    display = DifficultyPlaneDisplay.from_profile(profile, ax=ax)
    assert display.ax_ is ax
    assert display.figure_ is ax.figure
    np.testing.assert_array_equal(display.difficulty_type, forms)


def test_bad_depths_are_reported():
    with pytest.raises(ValueError, match="must have the same number of rows, got 2 and 1"):
        DifficultyPlaneDisplay.from_predictions([0, 1], [0])


@pytest.mark.parametrize("profile", [{"depth_held_out": [0.0]}, np.ones(3), 3])
def test_a_profile_without_its_columns_is_refused(profile):
    with pytest.raises(TypeError, match="profile must be a table with the columns depth_held_out"):
        DifficultyPlaneDisplay.from_profile(profile)


def test_masked_depths_are_refused():
    depth = np.ma.masked_array([0.0, 1.0], mask=[True, False])
    with pytest.raises(ValueError, match="depth_trained must not be masked"):
        DifficultyPlaneDisplay.from_predictions([0.0, 1.0], depth)


def test_frames_are_read(depths):
    forms = difficulty_quadrant(*depths)
    columns = {"depth_held_out": depths[0], "depth_trained": depths[1], "difficulty_type": forms}
    display = DifficultyPlaneDisplay.from_profile(pd.DataFrame(columns), name="digits")
    np.testing.assert_array_equal(display.depth_trained, depths[1])
    assert display.ax_.get_title() == "digits"
