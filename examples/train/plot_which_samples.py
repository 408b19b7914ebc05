"""
Which samples to train on
=========================

Is the most uncertain part of the data the best part to train on? With clean labels, and with a
fifth of them wrong.

The choice by maximum entropy is that of [PRIO]: :ref:`paper-prio`.
"""

# %%
# A fraction of the digits, chosen in four ways
# ---------------------------------------------
# A model trained on 100 digits chooses from the other 900 those to train on; the second model is
# evaluated on samples that neither has seen. Ten repetitions.
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import train_test_split

from skcalib.datasets import flip_labels
from skcalib.selection import MaxEntropySelector

X, y = load_digits(return_X_y=True)
X = X / 16
fractions = [0.1, 0.2, 0.4, 0.7]
ways = {
    "random": {"criterion": "random"},
    "top entropy": {"criterion": "entropy"},
    "smallest margin": {"criterion": "margin"},
    "in proportion to entropy": {"criterion": "entropy", "sampling": "soft"},
}


def accuracy(way, fraction, noise, seed):
    """Accuracy on unseen digits after training on the chosen fraction."""
    X_pool, X_test, y_pool, y_test = train_test_split(X, y, train_size=1000, random_state=seed)
    if noise:
        y_pool, _ = flip_labels(y_pool, fraction=noise, random_state=seed)
    first = LogisticRegression(max_iter=200).fit(X_pool[:100], y_pool[:100])
    selector = MaxEntropySelector(
        FrozenEstimator(first), fraction=fraction, random_state=seed, **ways[way]
    )
    chosen, labels = selector.fit(X_pool[100:], y_pool[100:]).select(X_pool[100:], y_pool[100:])
    return LogisticRegression(max_iter=200).fit(chosen, labels).score(X_test, y_test)


# %%
# Accuracy against the fraction
# -----------------------------
figure, axes = plt.subplots(1, 2, figsize=(7.5, 3.8), sharey=True, layout="constrained")
for ax, noise in zip(axes, [0.0, 0.2]):
    for way, marker in zip(ways, "osDv"):
        runs = np.array([[accuracy(way, f, noise, s) for s in range(10)] for f in fractions])
        mean, error = runs.mean(axis=1), runs.std(axis=1, ddof=1) / np.sqrt(10)
        ax.plot(fractions, mean, marker=marker, label=way)
        ax.fill_between(fractions, mean - error, mean + error, alpha=0.2)
    ax.set(xlabel="Fraction trained on", title=f"{noise:.0%} wrong labels")
axes[0].set_ylabel("Accuracy on unseen digits")
axes[0].legend()

# %%
# **Learned:** here nothing beats random samples by more than chance, with clean or wrong labels.
# The most uncertain samples resemble each other, and wrong labels gather among them. Drawing in
# proportion to the entropy is about as good as drawing at random. Whatever selects, compare it
# with ``criterion="random"`` at the same fraction.
