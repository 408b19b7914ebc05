"""
Training dynamics: a data map
=============================

What a net says of a sample epoch by epoch shows more than what it says in the end: easy samples
are learned at once, wrong labels late or never.

When a sample is learned is asked in Section 3.2 of [DEPTH], too: :ref:`paper-depth`.
"""

# %%
# Record a training
# -----------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.metrics import roc_auc_score

from skcalib.datasets import flip_labels
from skcalib.difficulty.training_dynamics import (
    area_under_margin,
    forgetting_events,
    iteration_learned,
)
from skcalib.nets import MLP, CalibratedNetClassifier, TrainingDynamics
from skcalib.plots import TrainingMapDisplay

X, y = load_digits(return_X_y=True)
X = (X / 16).astype(np.float32)
noisy, flipped = flip_labels(y, fraction=0.1, random_state=0)
net = CalibratedNetClassifier(
    MLP, max_epochs=30, callbacks=[("dynamics", TrainingDynamics())], random_state=0
).fit(X, noisy)
dynamics = dict(net.callbacks_)["dynamics"]

# %%
# The map
# -------
# At the lower left are the samples that the net keeps getting wrong, with little doubt. That is
# where the wrong labels are.
TrainingMapDisplay.from_dynamics(dynamics)
plt.show()

# %%
# One number per sample
# ---------------------
# Three ways to turn the record into a ranking, evaluated by how well they find the wrong labels.
rankings = {
    "area under the margin": -area_under_margin(dynamics.margin_),
    "iteration learned": iteration_learned(dynamics.prediction_, final=dynamics.label_),
    "forgetting events": forgetting_events(dynamics.prediction_, dynamics.label_),
}
figure, axes = plt.subplots(1, 3, figsize=(11, 3.2), layout="constrained")
for ax, (name, ranking) in zip(axes, rankings.items()):
    never = len(dynamics.prediction_)  # samples that are never learned come last
    ranking = np.nan_to_num(ranking.astype(float), nan=never, posinf=never)
    bins = np.histogram_bin_edges(ranking, 20)
    ax.hist(ranking[~flipped], bins, alpha=0.6, label="right label")
    ax.hist(ranking[flipped], bins, alpha=0.6, hatch="//", label="wrong label")
    ax.set(xlabel=name, yscale="log", title=f"AUROC {roc_auc_score(flipped, ranking):.3f}")
axes[0].set_ylabel("Samples")
axes[0].legend()

# %%
# **Learned:** the margin, summed over the epochs, finds the wrong labels without a second model.
# The record costs seven bytes per sample and epoch.
