"""Every display in settings that break pictures, without a warning."""

import matplotlib.pyplot as plt
import pytest

from tests.draw_displays import DISPLAYS, settings_of

# `python -m tests.draw_displays` draws all of them, to be looked at. Here one each, in turns.
QUICK = [[(n, make) for n, make in settings_of(draw) if "million" not in n] for draw in DISPLAYS]
CHOSEN = [settings[i % len(settings)] for i, settings in enumerate(QUICK)]


@pytest.mark.slow
@pytest.mark.parametrize("make", [make for _, make in CHOSEN], ids=[name for name, _ in CHOSEN])
def test_a_display_is_drawn(make, tmp_path):
    figure = make()
    figure.savefig(tmp_path / "picture.png", dpi=80)
    plt.close(figure)
