"""
Calibration on the simplex
==========================

What can a calibrator move? Every prediction of three classes is a point in a triangle; arrows lead
from the predicted probabilities to the calibrated ones.
"""

# %%
# Three classes, one of them predicted too often
# ----------------------------------------------
import matplotlib.pyplot as plt
import numpy as np

from skcalib.datasets import make_predictions
from skcalib.posthoc import StructuredMatrixScaling, TemperatureScaling, VectorScaling

y, _, truth = make_predictions(5000, n_classes=3, scale=1.5, random_state=0)
logits = 2.0 * np.log(truth) + np.array([1.0, 0.0, -0.5])
logits += 0.4 * logits[:, [1, 0, 2]]  # and the first two classes are mixed up

# %%
# Arrows on a grid
# ----------------
# Corners: a prediction of one class for certain. The middle: no idea.
corners = np.array([[0, 0], [1, 0], [0.5, np.sqrt(0.75)]])
steps = np.arange(1, 12) / 12
grid = np.array([(a, b, 1 - a - b) for a in steps for b in steps if a + b < 0.999])

calibrators = {
    "temperature": TemperatureScaling(),
    "vector": VectorScaling(),
    "structured matrix": StructuredMatrixScaling(),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.9), layout="constrained")
for ax, (name, calibrator) in zip(axes, calibrators.items()):
    calibrated = calibrator.fit(logits, y).predict_proba(np.log(grid))
    start, end = grid @ corners, calibrated @ corners
    ax.fill(*corners.T, facecolor="none", edgecolor=plt.rcParams["text.color"])
    ax.quiver(*start.T, *(end - start).T, angles="xy", scale_units="xy", scale=1, width=0.006)
    for k, (corner, side) in enumerate(zip(corners, ("left", "right", "center"))):
        # Below the lower corners, above the upper one.
        height = corner[1] + (0.06 if k == 2 else -0.06)
        ax.text(corner[0], height, f"class {k}", ha=side, va="center")
    ax.set_aspect("equal")
    ax.set_title(name, pad=18)
    ax.axis("off")

# %%
# **Learned:** a temperature moves every prediction toward the middle and never across the line
# between two classes. Vector scaling also pulls away from a class whose probability is too high. A
# matrix can turn the whole field, and so change which class is predicted.
