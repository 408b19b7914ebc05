"""
Prioritized training
====================

An epoch on the tenth of the samples that the network, or a target, is least certain of: how far
off are the probabilities by three losses?

Tables and terms of [PRIO] with their calls: :ref:`paper-prio`.
"""

# %%
# Max entropy, three losses, a target or not
# ------------------------------------------
# The protocol of the poster "Can Calibration Improve Sample Prioritization?" ([PRIO], Tables 1 and
# 2) on small networks: warm-up on all samples, then a tenth for every epoch. The target is a wider
# network with mixup, whose entropies of every epoch are recorded.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from skcalib.metrics import expected_calibration_error
from skcalib.nets import MLP, CalibratedNetClassifier, EpochPrioritizer, TrainingDynamics
from skcalib.selection import MaxEntropySelector

X, y = load_digits(return_X_y=True)
X_train, X_test, y_train, y_test = train_test_split(X / 16, y, train_size=600, random_state=0)
options = {"max_epochs": 40, "random_state": 0, "device": "cpu"}
ways = {
    "cross-entropy": {},
    "label smoothing": {"criterion": "label_smoothing", "criterion__alpha": 0.03},
    "focal loss": {"criterion": "focal", "criterion__gamma": 3.0},
    "mixup": {"mixup_alpha": 0.15},
}

dynamics = TrainingDynamics()
target = CalibratedNetClassifier(
    MLP,
    module__hidden_layer_sizes=(300,),
    mixup_alpha=0.3,
    callbacks=[dynamics],
    **options,
).fit(X_train, y_train)
prioritizer = EpochPrioritizer(MaxEntropySelector(fraction=0.1), warmup_epochs=10)
errors, accuracies = {}, {}
for name, way in ways.items():
    for kind in ("all samples", "tenth by itself", "tenth by target"):
        net = CalibratedNetClassifier(
            MLP, prioritizer=None if kind == "all samples" else prioritizer, **options, **way
        )
        scores = dynamics.entropy_.T if kind == "tenth by target" else None
        net.fit(X_train, y_train, target_score=scores)
        proba = net.predict_proba(X_test)
        errors[name, kind] = expected_calibration_error(y_test, proba)
        accuracies[name, kind] = net.score(X_test, y_test)

# %%
# Calibration error and accuracy
# ------------------------------
kinds = ("all samples", "tenth by itself", "tenth by target")
figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.4), layout="constrained")
for ax, values, what in zip(axes, (errors, accuracies), ("ECE", "Accuracy")):
    for kind, marker in zip(kinds, "osD"):
        line = [values[name, kind] for name in ways]
        ax.plot(np.arange(len(ways)), line, marker=marker, linestyle="", label=kind)
    ax.set(ylabel=what)
    ax.set_xticks(np.arange(len(ways)), ways, rotation=20)
axes[0].legend()

# %%
# **Learned:** here a tenth of the samples costs .04 of accuracy if the network ranks them itself,
# and .15 if the target does, and raises the calibration error of all four. Two steps of at most
# 32 samples make a short epoch: these networks are not trained to the end, and too unsure, and a
# loss that lowers the confidence makes that worse. Poster and ours differ: the page "[PRIO]
# Sample prioritization" has both.
