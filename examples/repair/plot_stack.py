"""
How the default weighs its calibrators
======================================

The default fits a temperature, a vector and a matrix. It compares each of them, and the unchanged
probabilities, on samples that they were not fitted on, and mixes them. Which gets how much weight?
"""

# %%
# A model with three faults
# -------------------------
# It is overconfident, likes one class too much, and mixes up two others a little. A temperature
# repairs the first fault, a vector also the second, and a matrix all three.
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax
from sklearn.metrics import log_loss

from skcalib.datasets import make_predictions
from skcalib.posthoc import (
    StackedCalibration,
    StructuredMatrixScaling,
    StructuredVectorScaling,
    TemperatureScaling,
)

n_classes = 5
y, _, truth = make_predictions(26_000, n_classes=n_classes, random_state=0)
logits = 2.0 * np.log(truth)
logits[:, 0] += 0.7
logits[:, [1, 2]] += 0.15 * logits[:, [2, 1]]
y_test, logits_test = y[16_000:], logits[16_000:]

# %%
# Weights and log-losses
# ----------------------
# Means over eight draws of the samples.
maps = {
    "temperature": TemperatureScaling(),
    "structured_vector": StructuredVectorScaling(),
    "structured_matrix": StructuredMatrixScaling(),
}
names = ["identity", *maps]
sizes, n_draws = np.array([30, 100, 300, 1000, 3000, 10_000]), 8
rng = np.random.default_rng(0)
weights = {name: np.zeros(len(sizes)) for name in names}
losses = {name: np.zeros(len(sizes)) for name in [*names, "mixture"]}
for i, n in enumerate(sizes):
    for _ in range(n_draws):
        rows = rng.choice(16_000, n, replace=False)
        stack = StackedCalibration().fit(logits[rows], y[rows])
        fitted = {name: alone.fit(logits[rows], y[rows]) for name, alone in maps.items()}
        for name in names:
            weights[name][i] += stack.weights_.get(name, 0.0) / n_draws
        for name, calibrator in (fitted | {"mixture": stack}).items():
            loss = log_loss(y_test, calibrator.predict_proba(logits_test))
            losses[name][i] += loss / n_draws
losses["identity"] += log_loss(y_test, softmax(logits_test, axis=1))

colors = dict(zip(names, ["0.6", "C0", "C1", "C2"]))
figure, (left, right) = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
left.stackplot(sizes, weights.values(), labels=names, colors=colors.values(), alpha=0.8)
for area, hatch in zip(left.collections, ["", "..", "//", "xx"]):  # not by color alone
    area.set(hatch=hatch, edgecolor="white", linewidth=0)
left.legend(bbox_to_anchor=(0.5, 1.0), loc="lower center", ncols=2)
left.set(xscale="log", xlim=(30, 10_000), ylim=(0, 1), ylabel="Weight in the mixture")
for name, marker in zip(names, "osD^"):
    right.plot(sizes, losses[name], marker=marker, color=colors[name], label=name)
color = plt.rcParams["text.color"]
right.plot(sizes, losses["mixture"], color=color, linewidth=3, label="mixture")
right.set(xscale="log", ylabel="Log-loss on new samples")
for ax in (left, right):
    ax.set_xlabel("Samples to calibrate on")
right.legend()

# %%
# **Learned:** few samples leave most of the weight to the probabilities as they are and to the
# temperature, more samples to the vector, many to the matrix. From 100 samples on, the mixture is
# about as good as the best of its maps, which changes with their number.
