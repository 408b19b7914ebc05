"""
Prediction depth and the four forms of difficulty
=================================================

The layer from which a net's neighbors agree with its answer says how hard a sample is. Seen once
with the sample in the training set and once without, it separates ambiguous samples from samples
that look like another class.

The depth is that of Section 2.1 of [DEPTH], the plane its Figure 7: :ref:`paper-depth`.
"""

# %%
# Fifteen small nets, each trained on another part of the digits
# --------------------------------------------------------------
# Some labels are wrong, so that there is something to find.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.neural_network import MLPClassifier

from skcalib.datasets import flip_labels
from skcalib.difficulty import DifficultyProfiler, PredictionDepthScorer
from skcalib.plots import DifficultyPlaneDisplay, ProbeAccuracyDisplay

# sphinx_gallery_thumbnail_number = 2
X, y = load_digits(return_X_y=True)
X, y = X[:600] / 16, y[:600]
noisy, flipped = flip_labels(y, fraction=0.1, random_state=0)
net = MLPClassifier((64, 64), learning_rate_init=0.005, max_iter=300, random_state=0)
scorer = PredictionDepthScorer(net)

# %%
# What does the net know, layer by layer?
# ---------------------------------------
# Accuracy on unseen digits of a nearest-neighbor probe after every layer. The neighbors of the
# input are right most often: the later layers have memorized the wrong labels.
scorer.fit(X[:450], noisy[:450])
ProbeAccuracyDisplay.from_estimator(scorer, X[450:], y[450:])
plt.show()

# %%
# Depth when trained on, depth when held out
# ------------------------------------------
profiler = DifficultyProfiler(scorer, n_repeats=15, random_state=0).fit(X, noisy)
DifficultyPlaneDisplay.from_profile(profiler.profile_)
plt.show()

# %%
kinds, counts = np.unique(profiler.profile_["difficulty_type"], return_counts=True)
for kind, count in zip(kinds, counts):
    fraction = flipped[profiler.profile_["difficulty_type"] == kind].mean()
    print(f"{kind:26} {count:4} samples, {fraction:.0%} of them with a wrong label")

# %%
# **Learned:** most samples that look like another class, decided early by nets that have not seen
# them and late by nets that have, carry a wrong label; among the easy ones there is none. This
# needs nets that memorize: with half the training, the wrong labels stay among the easy samples.
