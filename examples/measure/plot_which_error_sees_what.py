"""
Which calibration error sees what?
==================================

Four distortions that occur in practice, and six errors. No error sees all of them.

The ECE is Eq. 2 of [GRA]: :ref:`paper-gra`.
"""

# %%
# Four ways to be wrong
# ---------------------
# We draw the probabilities of a positive class; the labels follow a distorted version of them.
import matplotlib.pyplot as plt
import numpy as np

from skcalib.metrics import (
    debiased_calibration_error,
    expected_calibration_error,
    ks_calibration_error,
    maximum_calibration_error,
    smooth_calibration_error,
)
from skcalib.plots import ReliabilityDisplay

# sphinx_gallery_thumbnail_number = 2
rng = np.random.default_rng(0)
predicted = rng.uniform(size=5000)
truths = {
    "shifted": np.clip(predicted - 0.08, 0, 1),
    "wavy": np.clip(predicted + 0.12 * np.sin(10 * np.pi * predicted), 0, 1),
    "rare but gross": np.where(predicted > 0.97, 0.5, predicted),
    "calibrated": predicted,
}
draws = {name: (rng.uniform(size=5000) < truth).astype(int) for name, truth in truths.items()}

figure, axes = plt.subplots(1, 4, figsize=(12, 4), layout="constrained")
for ax, (name, y) in zip(axes, draws.items()):
    ReliabilityDisplay.from_predictions(y, predicted, ax=ax)
    ax.set_title(name)

# %%
# Six errors
# ----------
# Darker is larger, within a row of one metric; the last column is what chance gives.
metrics = {
    "ECE": expected_calibration_error,
    "ECE, equal mass": lambda y, p: expected_calibration_error(y, p, strategy="quantile"),
    "maximum": maximum_calibration_error,
    "debiased L2": debiased_calibration_error,
    "smooth": smooth_calibration_error,
    "Kolmogorov-Smirnov": ks_calibration_error,
}
table = np.array([[metric(y, predicted) for y in draws.values()] for metric in metrics.values()])

figure, ax = plt.subplots(figsize=(6.5, 4), layout="constrained")
ax.imshow(table / table.max(axis=1, keepdims=True), cmap="Blues", vmin=0, vmax=1.4, aspect="auto")
ax.set_xticks(range(len(draws)), draws)
ax.set_yticks(range(len(metrics)), metrics)
for (i, j), value in np.ndenumerate(table):
    ax.text(j, i, f"{value:.3f}", ha="center", va="center", color="black")

# %%
# **Learned:** the Kolmogorov-Smirnov error misses waves, whose errors cancel; means over all
# samples hardly see a gross error of a rare confidence, which the maximum finds; but the maximum
# of a calibrated model is not small either. Report a mean error with its interval, and look at the
# diagram.
