"""
Digits never seen
=================

A classifier of the digits 0 to 7 meets 8 and 9. It has to answer something; which score notices
that it should not?

Scores for samples of unseen classes are compared as in Table 4 of [RMD]: :ref:`paper-rmd`.
"""

# %%
# Train on eight digits, test on ten
# ----------------------------------
import matplotlib.pyplot as plt
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split
from sklearn.neural_network import MLPClassifier

from skcalib.difficulty import KNNScorer, RMDScorer
from skcalib.metrics import confidence_score, ood_report, predictive_entropy

X, y = load_digits(return_X_y=True)
known = y < 8
X_train, X_in, y_train, y_in = train_test_split(X[known] / 16, y[known], random_state=0)
X_test = np.concatenate([X_in, X[~known] / 16])
inside = np.repeat([1, 0], [len(X_in), (~known).sum()])

net = MLPClassifier((64,), max_iter=500, random_state=0).fit(X_train, y_train)
proba = net.predict_proba(X_test)

# %%
# Five scores, larger = more like the training data
# -------------------------------------------------
# Two read the probabilities; three measure distances in the features, either the pixels or what
# the hidden layer of the net makes of them.


def hidden(X):
    """Activations of the hidden layer."""
    return np.maximum(X @ net.coefs_[0] + net.intercepts_[0], 0)


scores = {
    "largest probability": confidence_score(proba),
    "minus entropy": -predictive_entropy(proba),
    "RMD, pixels": RMDScorer().fit(X_train, y_train).score_samples(X_test),
    "RMD, hidden layer": RMDScorer().fit(hidden(X_train), y_train).score_samples(hidden(X_test)),
    "neighbors, hidden layer": KNNScorer(n_neighbors=5)
    .fit(hidden(X_train), y_train)
    .score_samples(hidden(X_test)),
}
for row in ood_report(inside, scores):
    print(
        f"{row['score']:24} AUROC {row['auroc']:.3f}, false alarms at 95 % {row['fpr_at_tpr']:.2f}"
    )

# %%
# Histograms
# ----------
figure, axes = plt.subplots(3, 2, figsize=(7, 7), layout="constrained")
for ax, (name, score) in zip(axes.flat, scores.items()):
    low, high = np.quantile(score, [0.01, 0.99])
    bins = np.linspace(low, high, 30)
    ax.hist(np.clip(score[inside == 1], low, high), bins, alpha=0.6, label="0 to 7")
    ax.hist(np.clip(score[inside == 0], low, high), bins, alpha=0.6, hatch="//", label="8 and 9")
    ax.set(xlabel=name, ylabel="Samples", yscale="log")
axes[-1, -1].axis("off")
axes[-1, -1].legend(*axes[0, 0].get_legend_handles_labels(), loc="center")

# %%
# **Learned:** the probabilities of this small net notice most of the strangers. Distances in what
# the net has learned do as well, those to the nearest neighbors a little better, and distances
# between pixels worse: the features matter more than the score.
# :class:`~skcalib.difficulty.NoveltyDetector` turns any scorer into a decision.
