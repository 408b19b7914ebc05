"""
People against the model
========================

Ten people look at every picture, and they do not agree. A model that is evaluated by one label
looks as sure as it is right; the same model, evaluated by all ten, is too sure where people
differ.
"""

# %%
# Ten opinions on every sample
# ----------------------------
# Every sample has true fractions: how many of all people would call it a 0, a 1, a 2. One person
# is drawn for the label that most data sets have, and ten for soft labels. The model was trained
# to predict the answer of most people, as is usual: it is sharper than people are.
import matplotlib.pyplot as plt
import numpy as np
from scipy.special import softmax

from skcalib.metrics import calibration_error_interval, expected_calibration_error
from skcalib.plots import ReliabilityDisplay
from skcalib.posthoc import TemperatureScaling

rng = np.random.default_rng(0)
opinion = softmax(rng.normal(0, 3, (4000, 3)), axis=1)
soft_labels = np.stack([rng.multinomial(10, row) for row in opinion]) / 10
majority = soft_labels.argmax(axis=1)
logits = 1.8 * np.log(opinion) + rng.normal(0, 0.5, opinion.shape)
proba = softmax(logits, axis=1)

# %%
# By the majority, and by all people
# ----------------------------------------
# Shares go in where labels do. Where the model says .9 or more, most people agree with it, but
# not as many as it says.
figure, axes = plt.subplots(1, 2, figsize=(8, 5), layout="constrained")
truths = {"the majority's label": majority, "soft labels of ten people": soft_labels}
for ax, (name, truth) in zip(axes, truths.items()):
    ReliabilityDisplay.from_predictions(truth, proba, ax=ax)
    ax.set_title(f"Judged by {name}")
    low, high = calibration_error_interval(truth, proba, n_resamples=200, random_state=0)
    error = expected_calibration_error(truth, proba)
    print(f"{name:21} ECE {error:.3f} [{low:.3f}, {high:.3f}]")

# %%
# Where it is too sure
# --------------------
# Samples by how many of the ten agree with each other. Of unanimous people the model is no surer
# than it should be. Where they are split, it answers as if they were not.
agreement = soft_labels.max(axis=1)
confidence, chosen = proba.max(axis=1), proba.argmax(axis=1)
fraction_of_answer = soft_labels[np.arange(len(soft_labels)), chosen]
levels = np.unique(agreement)
figure, ax = plt.subplots(figsize=(6.4, 4.4), layout="constrained")
ax.plot(levels, [confidence[agreement == a].mean() for a in levels], "o-", label="the model says")
ax.plot(
    levels, [fraction_of_answer[agreement == a].mean() for a in levels], "s--",
    label="people who agree with it",
)  # fmt: skip
ax.set(xlabel="fraction of the most frequent answer", ylabel="mean", ylim=(0.3, 1.02))
ax.legend()

# %%
# Calibrated to people
# --------------------
# A calibrator takes soft labels, too. Fitted to the majority's labels, it makes the model surer
# still.
half = np.arange(4000) < 2000
for name, truth in truths.items():
    scaling = TemperatureScaling().fit(logits[half], truth[half])
    error = expected_calibration_error(soft_labels[~half], scaling.predict_proba(logits[~half]))
    print(f"fitted to {name:21} T = {scaling.temperature_:.2f}, ECE by people {error:.3f}")

# %% **Learned:** a label that a majority has settled hides that people differ, and a model that is
# calibrated to it predicts an agreement that there is not. Keep the votes, and evaluate and
# calibrate by their fractions.
